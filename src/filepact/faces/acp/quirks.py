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
    """

    missing_is_empty: bool = False


QUIRKS: Mapping[str, Quirks] = {"gemini-cli": Quirks(missing_is_empty=True)}


def quirks_of(agent: str) -> Quirks:
    """What is known of an agent by its name."""
    return QUIRKS.get(agent, Quirks())
