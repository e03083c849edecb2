r"""Raw bytes in texts: how they are shown, sent back and kept.

A raw byte is one that is no text: in a text it is a lone surrogate, as Python's ``surrogateescape``
makes it, or a NUL.  Readers see ``\xff`` and ``\x00``, and can send only that, which may as well be meant
as four characters.  So an escape counts as the byte only where a byte is that would be lost otherwise:
in the old text of an edit where the file does not have the characters, and in the new text as often as
the old text there has the byte.  New text never makes a raw byte.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from filepact.text.compare import compare_lines
from filepact.text.edit import Edit, EditList
from filepact.text.lines import chomp, split_lines
from filepact.values import late_regex

if TYPE_CHECKING:
    import re

__all__ = [
    "RawByteText",
    "describe_raw_bytes",
    "escaped",
    "holds_raw_bytes",
    "restore",
    "shown_for_raw_bytes",
    "with_escapes",
]

_RAW: Final = late_regex("[\0\ud800-\udfff]")
_ESCAPE: Final = late_regex(r"[\0\ud800-\udfff]|\\(?:x[0-9a-f]{2}|ud[89a-f][0-9a-f]{2})")
_NAMED: Final = 5
"""Lines that are named of those that hold raw bytes."""


def holds_raw_bytes(text: str) -> bool:
    """Whether a text holds raw bytes; for most texts this looks for one character and encodes."""
    if "\0" in text:
        return True
    if text.isascii():
        return False
    try:
        text.encode("utf-16-le")
    except UnicodeEncodeError:
        return True
    return False


def with_escapes(text: str) -> str:
    """A text with its raw bytes as readers see them."""
    return _RAW.sub(escaped, text) if holds_raw_bytes(text) else text


def escaped(found: re.Match[str]) -> str:
    """A character that cannot be shown as an escape; of a surrogate that carries a byte, that byte."""
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def shown_for_raw_bytes(text: str, sent: str) -> int:
    """How often a text is shown as what was sent where it holds raw bytes, and not these characters."""
    if not holds_raw_bytes(text) or not _ESCAPE.search(sent):
        return 0
    return with_escapes(text).count(sent) - text.count(sent)


def describe_raw_bytes(text: str, first: int = 0) -> str:
    """How many raw bytes a text has, and in which lines; empty for none.

    Args:
        text: The text.
        first: The 0-based number of its first line.
    """
    if not holds_raw_bytes(text):
        return ""
    places = [found.start() for found in _RAW.finditer(text)]
    separator = "\n" if "\n" in text else "\r"
    lines: dict[int, None] = {}
    line, at = first + 1, 0
    for place in places:
        line += text.count(separator, at, place)
        at = place
        lines[line] = None
    some = ", ".join(map(str, list(lines)[:_NAMED])) + (", ..." if len(lines) > _NAMED else "")
    count = f"{len(places):,} bytes that are" if len(places) > 1 else "1 byte that is"
    shown = with_escapes(text[places[0]])
    return f"{count} no text ({shown}), in line{'s' if len(lines) > 1 else ''} {some}"


def restore(there: str, sent: str) -> str:
    """A text that was sent for another, with the raw bytes that it keeps of that.

    Of lines that both have, those that were there are taken.  Of others, the escapes that stand in both, in
    order, are what they were; any other escape is the characters that were sent.

    Args:
        there: The text that it replaces.
        sent: The new text, in which escapes may stand for raw bytes.
    """
    if not holds_raw_bytes(there) or not _ESCAPE.search(sent):
        return sent
    old, new = split_lines(there), split_lines(sent)
    shown = [chomp(with_escapes(line)) for line in old]
    parts: list[str] = []
    at_old = at_new = 0
    for region in (*compare_lines(shown, [chomp(line) for line in new]), None):
        until = len(new) if region is None else region.new_start
        for line in new[at_new:until]:
            parts.append(chomp(old[at_old]) + line[len(chomp(line)) :])
            at_old += 1
        if region is None:
            break
        before, after = (
            old[region.old_start : region.old_end],
            new[region.new_start : region.new_end],
        )
        parts.append(_kept("".join(before), "".join(after)))
        at_old, at_new = region.old_end, region.new_end
    return "".join(parts)


def _kept(there: str, sent: str) -> str:
    """Lines with the raw bytes that their escapes stand for, in the order in which they were there."""
    was = [found[0] for found in _ESCAPE.finditer(there)]
    escapes = list(_ESCAPE.finditer(sent))
    shown = [found[0] for found in escapes]
    meant = list(shown)
    at_old = at_new = 0
    for region in (*compare_lines([with_escapes(one) for one in was], shown), None):
        until = len(shown) if region is None else region.new_start
        meant[at_new:until] = was[at_old : at_old + until - at_new]
        if region is not None:
            at_old, at_new = region.old_end, region.new_end
    parts: list[str] = []
    done = 0
    for found, one in zip(escapes, meant, strict=True):
        parts += (sent[done : found.start()], one)
        done = found.end()
    return "".join((*parts, sent[done:]))


class RawByteText:
    """A text with raw bytes as it is shown, and the way back from places in that.

    Args:
        text: A text that holds raw bytes.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        places = [found.start() for found in _RAW.finditer(text)]
        wider = [len(with_escapes(text[place])) - 1 for place in places]
        grown = [0, *accumulate(wider)]
        self._grown = grown
        self._starts = [place + more for place, more in zip(places, grown, strict=False)]
        self._wider = wider
        self.shown = with_escapes(text)

    def edits(self, shown: EditList) -> EditList | None:
        """Edits of the shown text as those of the text; None where one cuts an escape."""
        found: list[Edit] = []
        for edit in shown.edits:
            start, end = self._back(edit.start), self._back(edit.end)
            if start is None or end is None:
                return None
            found.append(Edit(start, end, restore(self._text[start:end], edit.text)))
        return EditList(tuple(found))

    def _back(self, offset: int) -> int | None:
        """A place in the text; None for one within an escape."""
        at = bisect_right(self._starts, offset) - 1
        if at < 0 or offset == self._starts[at]:
            return offset - self._grown[max(at, 0)]
        if offset <= self._starts[at] + self._wider[at]:
            return None
        return offset - self._grown[at + 1]
