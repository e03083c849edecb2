"""Parts of text files of any size: windows of lines for readers, and exact excerpts.

A part is cut out of a whole text, or, for files that are too large to be loaded, out of a stream
that is read no further than the part goes.  In an excerpt only LF ends a line, and every line has
its own end.
"""

from __future__ import annotations

import codecs
import time
from io import SEEK_END
from typing import TYPE_CHECKING, NamedTuple

from filepact.domain.deadline import FOREVER, Deadline
from filepact.errors import BinaryFileError, TooLargeError
from filepact.text.codec import detect
from filepact.text.detect_encoding import STATEFUL, UNIT
from filepact.text.lines import chomp, is_open, line_start, line_window
from filepact.text.raw_bytes import describe_raw_bytes
from filepact.values import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from filepact.domain.document import Document
    from filepact.fs.known_lines import KnownExcerpt, KnownLines
    from filepact.text.codec import Encoding, NamedEncoding
    from filepact.workspace.location import Location

__all__ = [
    "Excerpt",
    "ExcerptOptions",
    "LineExcerpt",
    "cut",
    "excerpt_of",
    "stream_excerpt",
    "window",
]

_HEAD = 65_536
_BLOCK = 1_048_576


@dataclass(frozen=True, slots=True)
class ExcerptOptions:
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


@dataclass(frozen=True, slots=True)
class LineExcerpt:
    """An excerpt: lines of a file, and what a reader needs to go on.

    Attributes:
        shown: The file's name as it is shown.
        lines: The lines without their ends.
        first: 0-based number of the first of them; below 0 where only the end was read.
        total: How many lines the file has; None when it was not read to its end.
        more: Whether lines follow the window.
        size: Bytes of the whole file.
        encoding: For people.
        ends: ``lf``, ``crlf``, ``cr``, ``mixed`` or ``none``; None when only a part was read.
        revision: Short revision; None for a file that is too large to be edited.
        column: How many characters of the first line were passed over.
        goes_on: Whether the last line is not whole.
        within: Bytes of a streamed file ``[start, end)`` in which the lines stand; None where it is known that they are
            no part of a key.
        start: Of a file that was loaded, where in its text the first line starts.
    """

    shown: str
    lines: tuple[str, ...]
    first: int
    total: int | None
    more: bool
    size: int
    encoding: str
    ends: str | None
    revision: str | None
    ends_with_newline: bool
    column: int = 0
    goes_on: bool = False
    within: tuple[int, int] | None = (0, 0)
    start: int = 0

    def span(self, text: str, sent: int, reached: int) -> tuple[int, int]:
        """Where in the file's text the first lines are, as characters ``[start, end)``.

        Args:
            text: The text that the window was cut out of.
            sent: How many of the lines.
            reached: How far into the last of these, if not to its end.
        """
        first = self.start
        if reached:
            return first + self.column, line_start(text, sent - 1, first) + reached
        if sent == len(self.lines) and not self.more:
            return first + self.column, len(text)
        return first + self.column, line_start(text, sent, first)


def cut(text: str, first: int, count: int | None) -> str:
    """The part of a text from a line on, 0-based."""
    start = _after(text, first)
    if start is None or count == 0:
        return ""
    return text[start : None if count is None else _after(text, count, start)]


def excerpt_of(text: str, wanted: ExcerptOptions, shown: str) -> Excerpt:
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


def stream_excerpt(
    location: Location,
    given: NamedEncoding | None,
    wanted: ExcerptOptions,
    deadline: Deadline,
    known: KnownLines,
) -> Excerpt:
    """A part of a file on the disk, of any size.

    Args:
        location: The file.
        given: What is said about its encoding outside the file.
        wanted: Which part.
        deadline: How long it is read.
        known: Where lines begin in large files.

    Raises:
        BinaryFileError: It holds no text, or the part holds bytes that are none.
        TooLargeError: The part comes to more than is wanted.
        TimedOutError: It was not reached in time.
    """
    with location.stream() as (stream, size):
        head = stream.read(_HEAD)
        complete = len(head) == size
        encoding = detect(head, complete=complete, name=location.place.path, given=given)
        if encoding is None:
            raise BinaryFileError(f"{location.shown}: does not hold text ({size:,} bytes)")
        stream.seek(len(encoding.bom))
        if wanted.count == 0:
            return Excerpt("", None)
        left = wanted.first
        if encoding.name not in STATEFUL and encoding.name not in UNIT:
            left = known.skip(stream, left, deadline.check)
        skipped = wanted.first - left
        start = stream.tell()
        part = _collect(stream, encoding, wanted, left, skipped, location.shown, deadline)
        within = _around(start, stream.tell(), len(part.text), left)
        return replace(part, within=within)


def _around(start: int, reached: int, characters: int, left: int) -> tuple[int, int]:
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


def _collect(
    stream: BinaryIO,
    encoding: Encoding,
    wanted: ExcerptOptions,
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
    decoder = codecs.getincrementaldecoder(encoding.name)(_errors(encoding, "strict"))
    size = _HEAD
    while True:
        block = stream.read(size)
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            if encoding.name not in STATEFUL:
                yield error.object[: error.start].decode(encoding.name, errors="ignore")
            raise BinaryFileError(
                f"{shown}: holds bytes that are not {encoding.label} text in the part that was read",
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


def _check(spent: int, wanted: ExcerptOptions, shown: str) -> None:
    if spent > wanted.most:
        raise TooLargeError(
            f"{shown}: {'these lines are' if wanted.count else 'it is'} too large for one answer",
            hint="Ask for fewer lines, with line and limit.",
            path=shown,
        )


# -- windows of lines ------------------------------------------------------------------------------


def window(
    location: Location, document: Document, *, first: int, count: int, column: int, most: int
) -> LineExcerpt:
    """Cut lines out of a document.

    Args:
        location: The file.
        document: What it holds.
        first: 0-based number of the first line wanted; below 0 it counts from the end.
        count: Most lines wanted.
        column: 0-based number of the first character wanted of the first line.
        most: Characters after which no further line is cut.
    """
    text, marks = document.text, document.marks
    if first < 0:
        first = max(marks.total + first, 0)
    lines, total, start = line_window(text, first, count, marks, column + most)
    if lines and column:
        lines[0] = lines[0][column:]
    return LineExcerpt(
        shown=location.shown,
        lines=tuple(lines),
        first=first,
        total=total,
        more=first + len(lines) < total,
        size=len(document.data),
        encoding=_told(document.source.encoding, document.raw_bytes),
        ends=marks.ends,
        revision=document.revision.short,
        ends_with_newline=not is_open(text),
        column=column,
        start=start,
    )


def _told(encoding: Encoding, raw_bytes: str) -> str:
    """The encoding for a reader, with what is no text."""
    return f"{encoding.traced}, {raw_bytes}" if raw_bytes else encoding.traced


def stream_window(
    location: Location,
    given: NamedEncoding | None,
    *,
    first: int,
    count: int,
    column: int = 0,
    most: int = _BLOCK,
    deadline: Deadline = FOREVER,
    known: KnownLines,
) -> LineExcerpt:
    """Cut lines out of a file that is too large to be loaded.

    Args:
        location: The file.
        given: What is said about its encoding outside the file.
        first: As for `window`.
        count: See there.
        column: See there.
        most: Characters after which it is not read on.
        deadline: How long it is read.
        known: Where lines begin in large files.

    Raises:
        TimedOutError: What is wanted was not reached in time.
    """
    opened = location.held
    part = opened and not column and known.part(opened, given, first, count, most)
    if part:
        return _known_window(location, part, first)
    wanted = _Lines(first, count, column, most, deadline, known)
    now = time.time_ns()
    with location.stream() as (stream, size):
        encoding = _detected(location, given, stream, size)
        if opened is not None and encoding.name not in STATEFUL and encoding.name not in UNIT:
            known.learn(opened, now, encoding, given)
        return _stream_window(location, encoding, stream, size, wanted)


def _known_window(location: Location, part: KnownExcerpt, first: int) -> LineExcerpt:
    """Lines that were read at once, as `_stream_window` has them."""
    lines = part.data.decode(part.encoding.name, _errors(part.encoding)).split("\n")
    if part.data.endswith(b"\n"):
        lines.pop()
    total = None if part.more or first < 0 else first + len(lines)
    found = _Cut(tuple(line.removesuffix("\r") for line in lines), total, more=part.more)
    shown = _streamed(location, part.encoding, location.place.size, first, found)
    return replace(shown, within=None)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Which part of a stream; see `stream_window`."""

    first: int
    count: int
    column: int
    most: int
    deadline: Deadline
    known: KnownLines


def _detected(
    location: Location, given: NamedEncoding | None, stream: BinaryIO, size: int
) -> Encoding:
    head = stream.read(_HEAD)
    encoding = detect(head, complete=len(head) == size, name=location.place.path, given=given)
    if encoding is None:
        raise BinaryFileError(
            f"{location.shown}: does not hold text ({size:,} bytes)",
            hint="encoding base64 reads its bytes, in parts if need be.",
        )
    return encoding


def _stream_window(
    location: Location, encoding: Encoding, stream: BinaryIO, size: int, wanted: _Lines
) -> LineExcerpt:
    first, left = wanted.first, 0
    stream.seek(len(encoding.bom))
    if first < 0:
        first, left = _seek_from_end(stream, size, encoding, wanted)
    elif encoding.name in STATEFUL or encoding.name in UNIT:
        left = first
    else:
        missing = wanted.known.skip(stream, first, wanted.deadline.check)
        if missing:
            # It ends before the first line that is wanted.
            there = first - missing
            if stream.seek(0, SEEK_END) > len(encoding.bom):
                stream.seek(-1, SEEK_END)
                there += stream.read(1) != b"\n"
            return _streamed(location, encoding, size, wanted.first, _Cut((), there, more=False))
    start = stream.tell()
    cut = _cut_lines(_decoded_with_gaps(stream, encoding, wanted.deadline), left, wanted)
    length = sum(map(len, cut.lines)) + len(cut.lines)
    within = _around(start, stream.tell(), length, left + wanted.column)
    total = None if cut.total is None or first < 0 else first - left + cut.total
    found = _Cut(cut.lines, total, more=cut.more, goes_on=cut.goes_on)
    return replace(_streamed(location, encoding, size, first, found, wanted.column), within=within)


class _Cut(NamedTuple):
    """Lines out of a stream.

    Attributes:
        total: How many there are, with those that were passed over; None if it was not read to its
            end.
        more: Whether anything follows.
        goes_on: Whether the last of them is not whole.
    """

    lines: tuple[str, ...]
    total: int | None
    more: bool
    goes_on: bool = False


def _streamed(
    location: Location, encoding: Encoding, size: int, first: int, cut: _Cut, column: int = 0
) -> LineExcerpt:
    return LineExcerpt(
        shown=location.shown,
        lines=cut.lines,
        first=first,
        total=cut.total,
        more=cut.more,
        size=size,
        encoding=_told(encoding, describe_raw_bytes("\n".join(cut.lines), max(first, 0))),
        ends=None,
        revision=None,
        ends_with_newline=True,
        column=column,
        goes_on=cut.goes_on,
    )


def _cut_lines(texts: Iterator[str], left: int, wanted: _Lines) -> _Cut:
    """Pass over lines, then take some, as far as there is room for them."""
    lines: list[str] = []
    parts: list[str] = []
    column, used, passed = wanted.column, 0, 0
    begun = False
    for part, ended in _line_parts(texts):
        if len(lines) == wanted.count and not left:
            return _Cut(tuple(lines), None, more=True)
        begun = not ended
        if left:
            left -= ended
            passed += ended
            continue
        shown = part[column:] if not lines else part
        column = 0 if ended else max(column - len(part), 0)
        parts.append(shown[: wanted.most - used])
        used += len(parts[-1])
        if used >= wanted.most:
            return _Cut((*lines, "".join(parts)), None, more=True, goes_on=True)
        if ended:
            lines.append(chomp("".join(parts) + "\n"))
            parts = []
    if begun and left:
        passed += 1
    elif begun:
        lines.append("".join(parts))
    return _Cut(tuple(lines), passed + len(lines), more=False)


def _line_parts(texts: Iterator[str]) -> Iterator[tuple[str, bool]]:
    """Lines without their line feeds, in parts, and whether each part ends its line."""
    for text in texts:
        *whole, last = text.split("\n")
        for part in whole:
            yield part, True
        if last:
            yield last, False


def _decoded_with_gaps(stream: BinaryIO, encoding: Encoding, deadline: Deadline) -> Iterator[str]:
    """The text from here on, in pieces.

    A damaged place far down in a large file must not hide the rest from a reader; what is shown this
    way is never written back, because streamed files are too large to edit.
    """
    decoder = codecs.getincrementaldecoder(encoding.name)(_errors(encoding))
    size = _HEAD
    while block := stream.read(size):
        deadline.check()
        yield decoder.decode(block)
        size = _BLOCK
    yield decoder.decode(b"", final=True)


def _errors(encoding: Encoding, others: str = "replace") -> str:
    """The error handler for bytes outside an encoding; raw bytes of UTF-8 are carried everywhere."""
    return "surrogateescape" if encoding.name == "utf-8" else others


def _seek_from_end(
    stream: BinaryIO, size: int, encoding: Encoding, wanted: _Lines
) -> tuple[int, int]:
    """Go to where so many lines are left.

    Returns:
        The number of the first line then, below 0 if only counted from the end, and how many lines
        are still to be passed over.
    """
    begin, lines = len(encoding.bom), -wanted.first
    if encoding.name in STATEFUL:
        # What bytes mean was said in those before them, so all of them are read.
        total, open_end = 0, False
        for _, ended in _line_parts(_decoded_with_gaps(stream, encoding, wanted.deadline)):
            total += ended
            open_end = not ended
        stream.seek(begin)
        first = max(total + open_end - lines, 0)
        return first, first
    newline = "\n".encode(encoding.name)
    width = len(newline)
    end = begin + (size - begin) // width * width
    stream.seek(max(end - width, begin))
    if stream.read(width) == newline:
        end -= width
    room = _HEAD  # mostly the lines stand in it
    while end > begin:
        wanted.deadline.check()
        start = max(begin, end - room)
        stream.seek(start)
        block = stream.read(end - start)
        at = len(block)
        while (at := block.rfind(newline, 0, at)) >= 0:
            if at % width:
                at += width - 1  # not on a unit's border
                continue
            lines -= 1
            if not lines:
                stream.seek(start + at + width)
                return wanted.first, 0
        end, room = start, _BLOCK
    stream.seek(begin)
    return 0, 0
