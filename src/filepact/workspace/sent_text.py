"""The text that was sent for a file: what may not be in it, and its line ends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from filepact.errors import BinaryFileError, InvalidParamsError
from filepact.text.lines import adopt_line_ends, is_open, line_ends
from filepact.text.page import left_in
from filepact.values import late_regex
from filepact.workspace.target import existing

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.domain.document import Document, WorkspacePath
    from filepact.workspace.target import Target

__all__ = [
    "NUL_PUT_IN",
    "appended",
    "changed_ends",
    "check_nothing_left_in",
    "escape_notes",
    "fitted_ends",
    "text_of",
]

_KINDS: Final = {"lf": "LF", "cr": "CR"}


def fitted_ends(
    target: Target, text: str, like: str, wanted: Callable[[WorkspacePath], str]
) -> tuple[str, list[str]]:
    """A text with the line ends that it takes in a file, and notes where they are not those that were sent.

    Args:
        target: The file.
        text: The text as it was sent.
        like: What the file holds, or held; empty for a new one.
        wanted: The end that each line is to have in a file without any; empty for what was sent.
    """
    kind = line_ends(like)
    model = wanted(target.location.path) if kind == "none" else like
    fitted = adopt_line_ends(text, model)
    if kind != "none":
        return fitted, changed_ends(target, text)
    told = fitted != text and not target.hidden
    return fitted, [
        f"Its lines end in {_KINDS.get(line_ends(model), 'CRLF')}, as .editorconfig says."
    ] * told


def changed_ends(target: Target, text: str) -> list[str]:
    """A note where lines of a text were sent with CRLF, and end otherwise in the file."""
    # The one character is found far sooner than both.
    if "\r" not in text or "\r\n" not in text:
        return []
    held = None if target.document is None or target.hidden else text_of(target.document)
    kind = "" if held is None else line_ends(held)
    if kind not in _KINDS:
        return []
    return [f"CRLF was sent; the lines end in {_KINDS[kind]}, as the file has it."]


def appended(
    target: Target, text: str, wanted: Callable[[WorkspacePath], str]
) -> tuple[str, list[str]]:
    """The text to append to an existing file: it begins a new line, where the last one has no end.

    Args:
        target: The file.
        text: The text as it was sent.
        wanted: As of `fitted_ends`.
    """
    there = existing(target).text
    if not text or not is_open(there) or text.startswith(("\n", "\r\n")):
        return fitted_ends(target, text, there, wanted)
    crlf = line_ends(there) == "none" and line_ends(text) == "crlf"
    more, notes = fitted_ends(target, ("\r\n" if crlf else "\n") + text, there, wanted)
    if target.hidden:
        return more, []
    said = "The last line had no end; what was appended begins a line of its own."
    return more, [said, *notes]


NUL_PUT_IN: Final = (
    "The new text holds a NUL character (U+0000), which most programs do not expect. If its escape was "
    "meant, send that, such as `\\0` or `\\x00` (in JSON: `\\\\0`)."
)


_TAB_SPELT = late_regex(r"^[ \t]*\\t", re.MULTILINE)
_TAB_PUT_IN: Final = (
    "A new line begins with the two characters `\\t`, where the file's lines begin with a tab. If a tab was "
    "meant, send that (in JSON: `\\t`, with one backslash)."
)


def escape_notes(before: Document | None, written: Document) -> list[str]:
    """Notes on a text that has NUL characters, or escapes where its lines begin with tabs, and had none before.

    Args:
        before: What the file held; None for a new one, and for one that may not be seen.
        written: What it is to hold.
    """
    data = written.data
    if b"\0" not in data and (b"\\" not in data or b"\\t" not in data):
        return []
    text, had = text_of(written) or "", "" if before is None else text_of(before)
    notes = [NUL_PUT_IN] * ("\0" in text and had is not None and "\0" not in had)
    tabbed = "\n\t" in f"\n{had or ''}" and not _TAB_SPELT.search(had or "")
    return [*notes, *[_TAB_PUT_IN] * bool(tabbed and _TAB_SPELT.search(text))]


def text_of(document: Document) -> str | None:
    """The text of a file; None for one that holds no text."""
    try:
        return document.text
    except BinaryFileError:
        return None


def check_nothing_left_in(shown: str, text: str, there: str | None) -> None:
    """Refuse a new text with what a reader adds to lines.

    Args:
        shown: The file.
        text: What it is to hold.
        there: What it holds.
    """
    if left := left_in(text, there or ""):
        raise InvalidParamsError(
            f"{shown}: the new text holds {left}",
            hint="Send the text exactly as it should be in the file; leave out what read_file "
            "adds to the lines. edit_file changes single places, and puts in any text that is meant.",
            path=shown,
        )
