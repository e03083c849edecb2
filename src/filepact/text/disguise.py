r"""Bytes that a reader sees as one thing and a program takes for another.

Some encodings write a letter with bytes that are ASCII by themselves: in Shift-JIS the second byte
of U+8868 is a backslash.  A program that takes the file for ASCII, as shells and compilers do, obeys
that byte, and no view of the text shows it.  So views write these bytes out
(:func:`with_bytes_shown`), and a change that brings them in is noticed (:func:`disguises`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.text.charsets import STATEFUL, UNIT, WIDER, is_faithful
from filepact.text.declared import heeded, misleading, names_encoding

if TYPE_CHECKING:
    from filepact.text.codec import SourceText

__all__ = ["disguises", "encoding_named", "with_bytes_shown"]

_ACTING: Final = frozenset("\\|`")
"""What joins lines, ends strings early, or starts another program."""


def encoding_named(source: SourceText | None) -> str:
    """The encoding that decides a file's bytes, for people; empty for plain UTF-8."""
    if source is None:
        return ""
    encoding = source.encoding
    if encoding.name == "utf-8" and encoding.known and not encoding.bom and not encoding.rival:
        return ""
    return encoding.traced if encoding.bom or _decides(source) else ""


def with_bytes_shown(source: SourceText) -> str:
    r"""The text, with the bytes behind each letter that a program may take for ASCII signs.

    They stand in brackets as such a program sees them: ``\x95`` and a backslash.
    """
    shown = {}
    for char, data in _signs(source).items():
        read = "".join(chr(byte) if byte < 0x80 else f"\\x{byte:02x}" for byte in data)
        shown[ord(char)] = f"{char}[{read}]"
    return source.text.translate(shown) if shown else source.text


def disguises(before: SourceText | None, after: SourceText) -> bool:
    """Whether after a change programs may read the bytes otherwise than people, and did not before.

    What the person's own settings or the caller say of a file is taken for known to them.

    Args:
        before: The file as it was; None for no file, or for one that held no text.
        after: The file as it is to be.
    """
    if after.data.isascii() and not names_encoding(after.data):
        return False
    word = misleading(after.data, after.name)
    if word and (before is None or misleading(before.data, before.name) != word):
        return True
    encoding = after.encoding
    if encoding.origin in ("settings", "caller") or not encoding.known or encoding.rival:
        return False
    heeds = heeded(after.data, after.name, encoding.name)
    declared = encoding.origin == "declared"
    if before is not None and _same(before, after):
        return not heeds and not _acting(after) <= _acting(before)
    if is_faithful(encoding.name):
        return declared and not heeds and _decides(after)
    return declared or _decides(after)


def _decides(source: SourceText) -> bool:
    """Whether the same text would be other bytes in UTF-8."""
    name = source.encoding.name
    if name == "utf-8":
        return bool(source.encoding.rival)
    return (
        name in UNIT or not source.data.isascii() or (name in STATEFUL and b"\x1b" in source.data)
    )


def _same(before: SourceText, after: SourceText) -> bool:
    """Whether a file is in the encoding already, or in the wider one that stands for it."""
    old, new = before.encoding.name, after.encoding.name
    return _decides(before) and (
        old == new or new in WIDER.get(old, ()) or old in WIDER.get(new, ())
    )


def _acting(source: SourceText) -> set[str]:
    """Which signs that programs act upon are among the bytes of letters.

    One with a line end after it stands for one that ends a line.
    """
    found: set[str] = set()
    for char, data in _signs(source).items():
        acting = _ACTING & {chr(byte) for byte in data}
        found |= acting
        if data.endswith(b"\\") and any(f"{char}{end}" in source.text for end in "\r\n"):
            found.add("\\\n")
    return found


def _signs(source: SourceText) -> dict[str, bytes]:
    """The letters of a text among whose bytes are signs of ASCII, with these bytes."""
    name = source.encoding.name
    if is_faithful(name) or name in UNIT or name in STATEFUL or source.data.isascii():
        return {}
    found = {}
    for char in {one for one in source.text if one > "\x7f"}:
        data = char.encode(name, "ignore")
        if any(byte < 0x80 and not chr(byte).isalnum() for byte in data):
            found[char] = data
    return found
