"""Parts of a file's text exactly as they stand, with every line's own end.

Only LF ends a line here.  A part is cut out of a whole text, or, for files that are too large to be
loaded, out of a stream that is read no further than the part goes.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from filepact.errors import BinaryFileError, TooLargeError
from filepact.text.charsets import STATEFUL, UNIT
from filepact.text.codec import detect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from filepact.domain.deadline import Deadline
    from filepact.text.codec import Encoding, Given
    from filepact.workspace.guard import Spot

__all__ = ["Excerpt", "Wanted", "cut", "excerpt_of", "skip_lines", "stream_excerpt"]

_HEAD = 65_536
_BLOCK = 1_048_576


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which part, and how much of it may be answered.

    Attributes:
        first: 0-based number of the first line.
        count: Most lines; None for all the rest.
        most: What the part may come to.
        measure: What a piece of it comes to.
        bound: No less than that, where it can be told more quickly.
    """

    first: int = 0
    count: int | None = None
    most: int = _BLOCK
    measure: Callable[[str], int] = len
    bound: Callable[[str], int] | None = None


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a file's text.

    Attributes:
        text: The part.
        total: Parts between line feeds in the whole file, so one more than it has line feeds; None
            when it was not read to its end.
        start: Where it starts in the whole text, in characters; 0 where that is not known.
        within: Bytes of a streamed file ``[start, end)`` in which it stands.
    """

    text: str
    total: int | None
    start: int = 0
    within: tuple[int, int] = (0, 0)


def cut(text: str, first: int, count: int | None) -> str:
    """The part of a text from a line on, 0-based."""
    start = _after(text, first)
    if start is None or count == 0:
        return ""
    end = None if count is None else _after(text, count, start)
    return text[start:end]


def excerpt_of(text: str, wanted: Wanted, shown: str) -> Excerpt:
    """A part of a text that is here.

    Raises:
        TooLargeError: It comes to more than is wanted.
    """
    part = cut(text, wanted.first, wanted.count)
    start = _after(text, wanted.first) or 0
    if wanted.bound is None or wanted.bound(part) > wanted.most:
        spent = 0
        for start in range(0, len(part), _BLOCK):
            spent += wanted.measure(part[start : start + _BLOCK])
            _check(spent, wanted, shown)
    return Excerpt(part, text.count("\n") + 1, start)


def stream_excerpt(spot: Spot, given: Given | None, wanted: Wanted, deadline: Deadline) -> Excerpt:
    """A part of a file on the disk, of any size.

    Args:
        spot: The file.
        given: What is said about its encoding outside the file.
        wanted: Which part.
        deadline: How long it is read.

    Raises:
        BinaryFileError: It holds no text, or the part holds bytes that are none.
        TooLargeError: The part comes to more than is wanted.
        TimedOutError: It was not reached in time.
    """
    with spot.root.stream(spot.place.path, follow=False) as (stream, size):
        head = stream.read(_HEAD)
        complete = len(head) == size
        encoding = detect(head, complete=complete, name=spot.place.path, given=given)
        if encoding is None:
            raise BinaryFileError(f"{spot.shown}: does not hold text ({size:,} bytes)")
        stream.seek(len(encoding.bom))
        if wanted.count == 0:
            return Excerpt("", None)
        left = wanted.first
        if encoding.name not in STATEFUL and encoding.name not in UNIT:
            left = skip_lines(stream, left, deadline)
        skipped = wanted.first - left
        start = stream.tell()
        part = _collect(stream, encoding, wanted, left, skipped, spot.shown, deadline)
        within = around(start, stream.tell(), len(part.text), left)
        return replace(part, within=within)


def around(start: int, reached: int, characters: int, left: int) -> tuple[int, int]:
    """Bytes in which a part of a stream stands that was decoded from a place on.

    Args:
        start: Where decoding began.
        reached: How far the stream was read.
        characters: How long the part is.
        left: What was passed over after the start; then only the end is known, about.
    """
    longest = characters * 4
    if left:
        return max(start, reached - longest - 2 * _BLOCK), reached
    return start, min(reached, start + longest)


def skip_lines(stream: BinaryIO, lines: int, deadline: Deadline) -> int:
    """Pass over lines by their line feeds alone; how many lines fewer there were."""
    while lines:
        deadline.check()
        block = stream.read(_BLOCK if stream.tell() > _HEAD else _HEAD)
        if not block:
            break
        found = block.count(b"\n")
        if found < lines:
            lines -= found
            continue
        at = 0
        for _ in range(lines):
            at = block.index(b"\n", at) + 1
        stream.seek(at - len(block), 1)
        lines = 0
    return lines


def _collect(
    stream: BinaryIO,
    encoding: Encoding,
    wanted: Wanted,
    left: int,
    skipped: int,
    shown: str,
    deadline: Deadline,
) -> Excerpt:
    """Decode from here on, pass over what is left to pass, and keep what is wanted."""
    parts: list[str] = []
    spent, seen, missing = 0, skipped, wanted.count
    for text in _decoded(stream, encoding, shown):
        deadline.check()
        start, end = 0, None
        found = text.count("\n")
        seen += found
        if left:
            if found < left:
                left -= found
                continue
            start = _after(text, left) or 0
            found -= left
            left = 0
        if missing is not None:
            end = _after(text, missing, start) if found >= missing else None
            missing -= found
        parts.append(text[start:end])
        spent += wanted.measure(parts[-1])
        _check(spent, wanted, shown)
        if missing is not None and missing <= 0:
            return Excerpt("".join(parts), None)
    return Excerpt("".join(parts), seen + 1)


def _decoded(stream: BinaryIO, encoding: Encoding, shown: str) -> Iterator[str]:
    """The text from here on, in pieces.

    Bytes that are no text are refused once they are reached, and no sooner: a damaged place further
    down does not hide what was asked for.
    """
    decoder = codecs.getincrementaldecoder(encoding.name)("strict")
    size = _HEAD
    while True:
        block = stream.read(size)
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            if encoding.name not in STATEFUL:
                yield error.object[: error.start].decode(encoding.name, errors="ignore")
            raise BinaryFileError(
                f"{shown}: holds bytes that are no {encoding.label} text where it was read",
                hint="Ask for lines that end before them.",
                path=shown,
            ) from None
        yield text
        if not block:
            return
        size = _BLOCK


def _after(text: str, lines: int, start: int = 0) -> int | None:
    """Where the text goes on after so many line feeds; None when there are fewer."""
    for _ in range(lines):
        start = text.find("\n", start) + 1
        if not start:
            return None
    return start


def _check(spent: int, wanted: Wanted, shown: str) -> None:
    if spent > wanted.most:
        raise TooLargeError(
            f"{shown}: what was asked for is too long for one answer",
            hint="Ask for fewer lines, with line and limit.",
            path=shown,
        )
