"""Why a text cannot be written in an encoding, and what can be done about it."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, NoReturn

from filepact.errors import EncodingUnsafeError
from filepact.text.charsets import UNIT
from filepact.text.lines import line_of

if TYPE_CHECKING:
    from filepact.text.evidence import Encoding, Origin

__all__ = ["mistaken", "refuse", "settle"]

_SAY_SO = (
    "say in which encoding the file is: in the settings ([encodings]), in .editorconfig (charset), "
    "or in a line of the file itself that its kind has for this."
)


def mistaken(encoding: Encoding, name: str, hint: str) -> EncodingUnsafeError:
    """An error about a file that would be read in another encoding than it is written in.

    Args:
        encoding: What it is written in.
        name: The file.
        hint: What to do.
    """
    return EncodingUnsafeError(
        f"{name or 'the file'}: is in {encoding.label}, and with this text it would be taken for "
        "something else"
        + ("" if encoding.bom or encoding.name not in UNIT else "; it has no byte-order mark"),
        hint=hint,
        path=name,
    )


def refuse(text: str, at: int, encoding: Encoding, name: str) -> NoReturn:
    """Refuse one character of a text.

    Args:
        text: What was to be written.
        at: The character's place in it.
        encoding: What it was to be written in.
        name: The file; empty for a mere text.

    Raises:
        EncodingUnsafeError: Always, with the character, its place and the ways out.
    """
    char = text[at]
    line = line_of(text, at)
    column = at - text.rfind("\n" if "\n" in text else "\r", 0, at)
    lone = "\ud800" <= char <= "\udfff"
    title = "LONE SURROGATE" if lone else unicodedata.name(char, "UNNAMED CHARACTER")
    if lone:
        hint = "Send the character whole; half of a surrogate pair cannot be written."
    elif not encoding.known:
        hint = f"Use ASCII characters or an escape there, or {_SAY_SO}"
    elif encoding.rival:
        hint = settle(encoding)
    else:
        hint = f"Use a character that the encoding has, or an escape{_way_out(encoding.origin)}."
    raise EncodingUnsafeError(
        f"{name or 'the text'}: U+{ord(char):04X} ({title}) at line {line}, column {column} "
        f"cannot be written in {encoding.traced}",
        hint=hint,
        path=name,
        line=line,
        column=column,
        character=f"U+{ord(char):04X}",
    )


def settle(encoding: Encoding) -> str:
    """How a file comes to have one encoding only."""
    line = "correct the line of the file that names the encoding"
    rule = "have .editorconfig or the settings ([encodings]) say which it is"
    return (
        f"The bytes are UTF-8. Use ASCII characters or an escape there, or first "
        f"{line if encoding.origin == 'declared' else rule}."
    )


def _way_out(origin: Origin) -> str:
    match origin:
        case "declared":
            return ", or convert the file and change the line in it that names its encoding"
        case "settings":
            return ", or convert the file and have the settings ([encodings]) say so"
        case ".editorconfig":
            return ", or convert the file and have .editorconfig say so"
        case "caller" | "":
            return ", or convert the file first"
