"""Reading: whole documents, and windows of lines from files of any size."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, replace
from io import SEEK_END
from typing import TYPE_CHECKING, NamedTuple

from filepact.domain.deadline import FOREVER, Deadline
from filepact.domain.document import LINK, Document, Revision, WorkspacePath
from filepact.errors import BinaryFileError, EncodingUnsafeError, StaleFileError
from filepact.text.charsets import STATEFUL, UNIT
from filepact.text.codec import detect, encode_new, rewrite
from filepact.text.edit import EditList
from filepact.text.lines import (
    adopt_line_ends,
    chomp,
    chomp_all,
    line_ends,
    line_start,
    line_window,
)
from filepact.text.merge import merge
from filepact.workspace.excerpt import around, skip_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import BinaryIO

    from filepact.domain.change import ChangeSet
    from filepact.fs.root import Root
    from filepact.text.codec import Encoding, Given
    from filepact.workspace.buffers import Buffer, Buffers
    from filepact.workspace.encodings import Encodings
    from filepact.workspace.guard import Spot
    from filepact.workspace.waiting import Layer, Proposed

__all__ = ["EDIT_LIMIT", "Documents", "Merged", "Window", "window", "with_typed"]

EDIT_LIMIT = 10_000_000
"""Largest file, in bytes, that is loaded whole: to be edited, or to be returned as base64."""

_HEAD = 65_536
_LONGEST_PIECE = 1_048_576


@dataclass(frozen=True, slots=True)
class Window:
    """Some lines of a file, and what a reader needs to go on.

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
        within: Bytes of a streamed file ``[start, end)`` in which the lines stand.
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
    within: tuple[int, int] = (0, 0)

    def span(self, text: str, sent: int, reached: int) -> tuple[int, int]:
        """Where in the file's text the first lines are, as characters ``[start, end)``.

        Args:
            text: The text that the window was cut out of.
            sent: How many of the lines.
            reached: How far into the last of these, if not to its end.
        """
        first = line_start(text, self.first)
        if reached:
            return first + self.column, line_start(text, sent - 1, first) + reached
        return first + self.column, line_start(text, sent, first)


@dataclass(frozen=True, slots=True)
class Merged:
    """A file for a change.

    Attributes:
        stored: What the disk has; None for no file.
        shown: What the change starts from; None for no file.
        note: A sentence about what was merged; empty when nothing was.
    """

    stored: Document | None
    shown: Document | None
    note: str = ""

    @property
    def saved(self) -> str | None:
        """The text that the disk has, where the change starts from more; empty for no file."""
        if self.shown is None or self.shown == self.stored:
            return None
        return "" if self.stored is None else self.stored.text


class Documents:
    """Whole documents: what an editor has not saved stands before what the disk has.

    What a session has proposed stands before both, for that session alone.

    Args:
        encodings: What is said about files' encodings outside the files.
        buffers: What editors hold.
        proposed: What the session wants that looks; None for the files as they are.
    """

    def __init__(
        self, encodings: Encodings, buffers: Buffers, proposed: Proposed | None = None
    ) -> None:
        self._encodings = encodings
        self._buffers = buffers
        self.proposed = proposed

    def over(self, proposed: Proposed) -> Documents:
        """The same with what a session has proposed before all else."""
        return Documents(self._encodings, self._buffers, proposed)

    def layer(self, path: WorkspacePath) -> Layer | None:
        """What the session has proposed for a file."""
        return None if self.proposed is None else self.proposed.of(path)

    def given(self, path: WorkspacePath) -> Given | None:
        """What is said about a file's encoding outside the file."""
        return self._encodings.given(path)

    def given_in(self, root: Root) -> Callable[[str], Given | None]:
        """The same question about files of one root, by their canonical paths."""
        return lambda path: self.given(WorkspacePath(root.path, path))

    def held(self, path: WorkspacePath) -> bool:
        """Whether there is a text of the file that the disk need not have."""
        layer = self.layer(path)
        if layer is not None:
            return layer.change.after is not None
        return self._buffers.get(path) is not None

    def holds_file(self, path: WorkspacePath) -> bool:
        """The same, and it is no folder."""
        layer = self.layer(path)
        after = None if layer is None else layer.change.after
        return self.held(path) and not (after is not None and after.is_folder)

    def typed(self, path: WorkspacePath) -> str | None:
        """That text."""
        layer = self.layer(path)
        if layer is not None and self.proposed is not None:
            document = self.proposed.after(layer)
            return None if document is None else document.text
        buffer = self._unsaved(path)
        return None if buffer is None else buffer.text

    def sides(
        self, changes: ChangeSet, contents: Mapping[str, bytes]
    ) -> list[tuple[Document | None, Document | None]]:
        """Each file before and after its change, where the bytes are here, by content id."""
        return [
            (self._of(one.path, one.before, contents), self._of(one.path, one.after, contents))
            for one in changes.changes
            if not any(side and side.is_folder for side in (one.before, one.after))
        ]

    def _of(
        self, path: WorkspacePath, revision: Revision | None, contents: Mapping[str, bytes]
    ) -> Document | None:
        if revision is None or revision.content not in contents:
            return None
        return Document(path, contents[revision.content], revision, self.given(path))

    def stored(self, spot: Spot, *, limit: int = EDIT_LIMIT) -> Document:
        """What the disk has.

        Raises:
            TooLargeError: It has more than ``limit`` bytes.
        """
        if spot.place.kind == "link":
            target = spot.root.read_link(spot.place.path)
            return Document(spot.path, target, Revision.of(target, LINK))
        # The rules were asked about this very path: a link that appeared in it since is refused.
        contents = spot.root.read(spot.place.path, limit=limit, follow=False)
        revision = Revision.of(contents.data, contents.mode)
        return Document(spot.path, contents.data, revision, self.given(spot.path))

    def load(self, spot: Spot, *, limit: int = EDIT_LIMIT) -> Document | None:
        """What the session proposed for a file, else what a person sees of it; None for no file.

        An editor's text comes as the bytes that it would be saved as.

        Raises:
            TooLargeError: It has more than ``limit`` bytes.
            EncodingUnsafeError: Somebody typed what the file's encoding cannot hold.
        """
        layer = self.layer(spot.path)
        if layer is not None and self.proposed is not None:
            return self.proposed.after(layer)
        return self.present(spot, limit=limit)

    def present(self, spot: Spot, *, limit: int = EDIT_LIMIT) -> Document | None:
        """The same without what the session proposed."""
        stored = None if spot.place.kind == "missing" else self.stored(spot, limit=limit)
        buffer = self._unsaved(spot.path)
        if buffer is None:
            return stored
        if stored is None:
            data = encode_new(buffer.text, spot.shown, self.given(spot.path))
            revision = Revision.of(data, spot.root.new_mode)
            return Document(spot.path, data, revision, self.given(spot.path))
        return _with_text(stored, buffer.text)

    def merged(self, spot: Spot, *, limit: int = EDIT_LIMIT, proposed: bool = True) -> Merged:
        """The same for a change: with what others wrote to the disk behind the editor's back.

        Args:
            spot: The file.
            limit: Most bytes of it.
            proposed: Whether what the session proposed counts.

        Raises:
            StaleFileError: Somebody wrote to the disk on lines that the editor has changed too.
            EncodingUnsafeError: Nobody can know what the editor has of it.
        """
        layer = self.layer(spot.path)
        if proposed and layer is not None and self.proposed is not None:
            # What happened to the file since is asked when a person says yes.
            return Merged(self.proposed.before(layer), self.proposed.after(layer))
        if self._buffers.is_doubtful(spot.path):
            raise EncodingUnsafeError(
                f"{spot.shown}: the editor shows it in a wrong encoding and may have unsaved text "
                "of it, which a change would lose",
                hint="Ask the person to save it, or to open it again in its own encoding.",
                path=spot.shown,
            )
        stored = None if spot.place.kind == "missing" else self.stored(spot, limit=limit)
        buffer = self._buffers.get(spot.path) if self._buffers else None
        if buffer is None or stored is None:
            return Merged(stored, stored if buffer is None else self.present(spot))
        base = buffer.base
        if base is None:
            return Merged(stored, _with_text(stored, buffer.text))
        moved = base.revision.content != stored.revision.content
        note = (
            f"{spot.shown} had changed on the disk while an editor had it open; both were merged."
            if moved
            else ""
        )
        if not buffer.is_unsaved:
            return Merged(stored, stored, note)
        if not moved:
            return Merged(stored, _with_text(stored, buffer.text))
        both = with_typed(stored, base, buffer.text)
        if both is None:
            raise StaleFileError(
                f"{spot.shown}: the editor has unsaved changes on lines that the disk has "
                "changed too",
                hint="Ask the person to save or to reload the file in the editor.",
                path=spot.shown,
            )
        return Merged(stored, both, note)

    def newer(self, root: Root) -> Callable[[str], bytes | None]:
        """The question of a search: the bytes of a file of a root that the disk need not have."""
        waits = self.proposed is not None and self.proposed.below(root.path, ".")
        if not self._buffers and not waits:
            return lambda _path: None

        def bytes_of(path: str) -> bytes | None:
            layer = self.layer(WorkspacePath(root.path, path))
            if layer is not None and self.proposed is not None:
                document = self.proposed.after(layer)
                return None if document is None else document.data
            buffer = self._unsaved(WorkspacePath(root.path, path))
            return None if buffer is None else buffer.text.encode("utf-8", "replace")

        return bytes_of

    def _unsaved(self, path: WorkspacePath) -> Buffer | None:
        """The buffer of a file, if it holds anything that the disk never had."""
        buffer = self._buffers.get(path) if self._buffers else None
        return buffer if buffer is not None and buffer.is_unsaved else None


def with_typed(stored: Document, base: Document, typed: str) -> Document | None:
    """What the disk has with what somebody typed into an earlier state of it.

    None where both changed the same lines.

    Raises:
        EncodingUnsafeError: The file's encoding cannot hold what was typed.
    """
    both = merge(base.text, _with_text(base, typed).text, stored.text)
    return None if both.text is None else _with_text(stored, both.text)


def _with_text(document: Document, text: str) -> Document:
    """A document with another text, in its own encoding and with its own line ends.

    Raises:
        EncodingUnsafeError: Its encoding cannot hold the text.
    """
    edits = EditList.between(document.text, adopt_line_ends(text, document.text))
    if not edits:
        return document
    data = rewrite(document.source, edits, name=document.path.path)
    revision = Revision.of(data, document.revision.mode)
    return Document(document.path, data, revision, document.given)


def window(
    spot: Spot,
    document: Document | None,
    documents: Documents,
    *,
    first: int,
    count: int,
    column: int = 0,
    most: int = _LONGEST_PIECE,
    deadline: Deadline = FOREVER,
) -> Window:
    """Cut lines out of a document, or out of a stream when the file was too large to load.

    Args:
        spot: The file.
        document: The loaded document, or None to stream.
        documents: Tells what is said about its encoding outside the file.
        first: 0-based number of the first line wanted; below 0 it counts from the end.
        count: Most lines wanted.
        column: 0-based number of the first character wanted of the first line.
        most: Characters after which a stream is not read on.
        deadline: How long a stream is read.

    Raises:
        TimedOutError: What is wanted was not reached in time.
    """
    if document is None:
        wanted = _Wanted(first, count, column, most, deadline)
        with spot.root.stream(spot.place.path, follow=False) as (stream, size):
            return _stream_window(spot, documents, stream, size, wanted)
    text = document.text
    if first < 0:
        first = max(line_window(text, 0, 0)[1] + first, 0)
    chosen, total = line_window(text, first, count)
    lines = chomp_all(chosen)
    if lines and column:
        lines[0] = lines[0][column:]
    return Window(
        shown=spot.shown,
        lines=tuple(lines),
        first=first,
        total=total,
        more=first + count < total,
        size=len(document.data),
        encoding=document.source.encoding.traced,
        ends=line_ends(text),
        revision=document.revision.short,
        ends_with_newline=text.endswith(("\n", "\r")) or not text,
        column=column,
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which part of a stream; see `window`."""

    first: int
    count: int
    column: int
    most: int
    deadline: Deadline


def _stream_window(
    spot: Spot, documents: Documents, stream: BinaryIO, size: int, wanted: _Wanted
) -> Window:
    head = stream.read(_HEAD)
    encoding = detect(
        head, complete=len(head) == size, name=spot.place.path, given=documents.given(spot.path)
    )
    if encoding is None:
        raise BinaryFileError(
            f"{spot.shown}: does not hold text ({size:,} bytes)",
            hint="encoding base64 reads its bytes, in parts if need be.",
        )
    first, left = wanted.first, 0
    stream.seek(len(encoding.bom))
    if first < 0:
        first, left = _seek_from_end(stream, size, encoding, wanted)
    elif encoding.name in STATEFUL or encoding.name in UNIT:
        left = first
    else:
        missing = skip_lines(stream, first, wanted.deadline)
        if missing:
            # It ends before the first line that is wanted.
            there = first - missing
            if stream.seek(0, SEEK_END) > len(encoding.bom):
                stream.seek(-1, SEEK_END)
                there += stream.read(1) != b"\n"
            return _streamed(spot, encoding, size, wanted.first, _Cut((), there, more=False))
    start = stream.tell()
    cut = _cut_lines(_decoded(stream, encoding, wanted.deadline), left, wanted)
    length = sum(map(len, cut.lines)) + len(cut.lines)
    within = around(start, stream.tell(), length, left + wanted.column)
    total = None if cut.total is None or first < 0 else first - left + cut.total
    found = _Cut(cut.lines, total, more=cut.more, goes_on=cut.goes_on)
    return replace(_streamed(spot, encoding, size, first, found, wanted.column), within=within)


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
    spot: Spot, encoding: Encoding, size: int, first: int, cut: _Cut, column: int = 0
) -> Window:
    return Window(
        shown=spot.shown,
        lines=cut.lines,
        first=first,
        total=cut.total,
        more=cut.more,
        size=size,
        encoding=encoding.traced,
        ends=None,
        revision=None,
        ends_with_newline=True,
        column=column,
        goes_on=cut.goes_on,
    )


def _cut_lines(texts: Iterator[str], left: int, wanted: _Wanted) -> _Cut:
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
        lines.append(chomp("".join(parts)))
    return _Cut(tuple(lines), passed + len(lines), more=False)


def _line_parts(texts: Iterator[str]) -> Iterator[tuple[str, bool]]:
    """Lines without their line feeds, in parts, and whether each part ends its line."""
    for text in texts:
        *whole, last = text.split("\n")
        for part in whole:
            yield part, True
        if last:
            yield last, False


def _decoded(stream: BinaryIO, encoding: Encoding, deadline: Deadline) -> Iterator[str]:
    """The text from here on, in pieces.

    A damaged spot far down in a large file must not hide the rest from a reader; what is shown this
    way is never written back, because streamed files are too large to edit.
    """
    decoder = codecs.getincrementaldecoder(encoding.name)(errors="replace")
    size = _HEAD
    while block := stream.read(size):
        deadline.check()
        yield decoder.decode(block)
        size = _LONGEST_PIECE
    yield decoder.decode(b"", final=True)


def _seek_from_end(
    stream: BinaryIO, size: int, encoding: Encoding, wanted: _Wanted
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
        for _, ended in _line_parts(_decoded(stream, encoding, wanted.deadline)):
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
    while end > begin:
        wanted.deadline.check()
        start = max(begin, end - _LONGEST_PIECE)
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
        end = start
    stream.seek(begin)
    return 0, 0
