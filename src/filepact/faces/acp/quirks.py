"""What single agents need to be answered otherwise, by the name they give themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["QUIRKS", "Quirks", "quirks_of"]


@dataclass(frozen=True, slots=True)
class Quirks:
    """How one agent differs.

    Attributes:
        missing_is_empty: It reads a file before it makes it, and gives up at any error.
        counts_lines: It pages by ``_meta.originalLineCount`` of an answer, and counts the lines of
            the disk's file where there is none.
        tells_form: It sends LF always, and in ``_meta`` how a new file is to be saved.
        writes_itself: It writes the disk itself, and tells the client afterwards.  Refusing that
            stops nothing; its permission request is the place to say no.
        window: Lines that it asks for, from line 1, where its model wants the file; None if it asks
            for the whole.
    """

    missing_is_empty: bool = False
    counts_lines: bool = False
    tells_form: bool = False
    writes_itself: bool = False
    window: int | None = None


QUIRKS: Mapping[str, Quirks] = {
    "claude-code-acp": Quirks(window=2000),
    "gemini-cli": Quirks(missing_is_empty=True),
    "opencode": Quirks(writes_itself=True),
    "qwen-code": Quirks(counts_lines=True, tells_form=True),
}


def quirks_of(agent: str) -> Quirks:
    """What is known of an agent by its name, with or without an npm scope before it."""
    return QUIRKS.get(agent.rpartition("/")[2].lower(), Quirks())
