"""Texts that editors hold and have not saved; they stand before what the disk has.

An editor says when it opens a file, what it types, and when it closes the file.  In between its
text is the file, for every tool: what is read is what the person sees.  What the file on the disk
was when buffer and disk last agreed is kept, so that a change on the disk behind an editor's back
is noticed: a buffer in which nobody has typed since is older than the disk, and the disk counts.

An editor that is asked answers with a text, and the text alone does not say whether anybody typed
it.  It may be the file in the editor's own way of showing files, the file as it was before another
program wrote to it, or bytes read in a wrong encoding.  None of these is unsaved text, and none may
reach the disk: `standing` tells them apart.
"""

from __future__ import annotations

import codecs
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.errors import BinaryFileError, InvalidParamsError, StaleFileError
from filepact.text.edit import Edit, EditList, merge
from filepact.text.lines import LineIndex, Position
from filepact.values import dataclass, replace
from filepact.workspace.read_tracker import TextCache

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact.domain.document import Document, WorkspacePath
    from filepact.text.lines import Unit


__all__ = [
    "Buffer",
    "BufferFormat",
    "BufferHistory",
    "BufferStatus",
    "Buffers",
    "Delivery",
    "Typed",
    "apply_typed",
    "differs_in_form",
    "same_text",
    "standing",
]


@dataclass(frozen=True, slots=True)
class Typed:
    """One change that a person or an editor made to a buffer.

    Attributes:
        text: What is put in.
        start: Where the text that it replaces begins; None replaces everything.
        end: Where that text ends.
    """

    text: str
    start: Position | None = None
    end: Position | None = None


@dataclass(frozen=True, slots=True)
class Buffer:
    """The text of one open file.

    Attributes:
        client: The editor's connection.
        version: The editor's own count of changes; it only grows.
        base: The file as it was on the disk when buffer and disk were last known to belong
            together; None when there was no file.
        announced: Whether the editor says by itself what becomes of it, and need not be asked.
    """

    path: WorkspacePath
    client: str
    text: str
    version: int
    base: Document | None = None
    announced: bool = False

    @property
    def is_unsaved(self) -> bool:
        """Whether the buffer holds more than the disk had; else it can only be older than the disk."""
        return self.base is None or not same_text(self.text, self.base)

    def holding(self, text: str) -> Buffer:
        """The buffer with another text, whose lines end as its own do."""
        return replace(self, text=BufferFormat(lf=BufferFormat.of(self.text).lf).apply(text))


@dataclass(frozen=True, slots=True)
class Delivery:
    """Edits that an editor has to make in its buffer, which the disk has already.

    Attributes:
        version: The version that the edits are for; with them made, it is the next one.
        edits: The fewest that make the new text of it.
        text: The whole new text, for editors that replace it.
        before: What the editor has until it has made them.
    """

    path: WorkspacePath
    client: str
    version: int
    edits: EditList
    text: str
    before: Buffer

    def typed(self, unit: Unit = "utf-16") -> tuple[Typed, ...]:
        """The edits as lines and columns, the last first, so that none moves another."""
        index = LineIndex(self.before.text)
        return tuple(
            Typed(edit.text, index.position(edit.start, unit), index.position(edit.end, unit))
            for edit in reversed(self.edits.edits)
        )


_BOM: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class BufferFormat:
    """How an editor shows a file's text where that differs from the file.

    Attributes:
        bom: A byte-order mark stands at the start.
        lf: Lines end in LF, whatever they end in on the disk.
    """

    bom: bool = False
    lf: bool = False

    @classmethod
    def of(cls, text: str) -> BufferFormat:
        """The style of a text that an editor has sent."""
        return cls(text.startswith(_BOM), "\n" in text and "\r" not in text)

    def apply(self, text: str) -> str:
        """A file's text in this style."""
        if self.lf:
            text = text.replace("\r\n", "\n")
        return f"{_BOM}{text}" if self.bom else text


@dataclass(frozen=True, slots=True)
class BufferHistory:
    """Facts about a file from what an editor showed of it before.

    Attributes:
        agreed: The file as editor and disk last had it alike; None for never.
        style: How the editor shows its text.
        absent: Whether the editor has said that it has no text of it.
    """

    agreed: Document | None = None
    style: BufferFormat = BufferFormat()
    absent: bool = False

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        return 500 + (0 if self.agreed is None else self.agreed.size)


@dataclass(slots=True, eq=False)
class _Shown:
    """A file that an editor shows now.

    Attributes:
        client: The editor's connection.
        buffer: Its text; None where nobody can know it.
        delivery: What the editor has to make and did not yet.
        handed: Whether it is making that.
    """

    client: str
    buffer: Buffer | None
    delivery: Delivery | None = None
    handed: bool = False


_REMEMBERED: Final = 32 * 1_048_576


class Buffers:
    """The texts that editors show of files, and showed before; one file is owned by the editor that opened it last.

    Several workspaces can share them, with roots that lie in one another: a file is known by its
    absolute name.  What is shown now counts until it is closed; of what was shown before, the oldest
    is forgotten.
    """

    def __init__(self) -> None:
        self._shown: dict[str, _Shown] = {}
        self._history: TextCache[str, BufferHistory] = TextCache(_REMEMBERED)
        self._lock = RLock()

    def __bool__(self) -> bool:
        """Whether an editor shows a file."""
        return bool(self._shown)

    def get(self, path: WorkspacePath) -> Buffer | None:
        """The buffer of a file, by its canonical name."""
        shown = self._shown.get(path.absolute) if self._shown else None
        return None if shown is None else shown.buffer

    def announces(self, path: WorkspacePath) -> bool:
        """Whether an editor says by itself what becomes of a file, and need not be asked."""
        buffer = self.get(path)
        return buffer is not None and buffer.announced

    def shows_below(self, folder: WorkspacePath) -> bool:
        """Whether an editor shows a file in a folder."""
        return any(name.startswith(f"{folder.absolute}/") for name in list(self._shown))

    @property
    def present(self) -> tuple[Buffer, ...]:
        """All buffers, as they are now."""
        return tuple(one.buffer for one in list(self._shown.values()) if one.buffer is not None)

    def history(self, path: WorkspacePath) -> BufferHistory:
        """The facts about a file from what was shown of it before."""
        return self._history.get(path.absolute) or BufferHistory()

    def remember(self, path: WorkspacePath, **facts: Any) -> None:
        """Replace some of the facts about a file; the others are as they are at that moment."""
        with self._lock:
            self._history.put(path.absolute, replace(self.history(path), **facts))

    def agree(self, disk: Document) -> None:
        """Editor and disk have the same text of a file."""
        self.remember(disk.path, agreed=disk)

    def open(
        self,
        path: WorkspacePath,
        text: str,
        *,
        client: str,
        version: int,
        base: Document | None,
        announced: bool = False,
    ) -> Buffer:
        """An editor shows a file."""
        buffer = Buffer(path, client, text, version, base, announced)
        with self._lock:
            self.remember(path, absent=False)
            self._shown[path.absolute] = _Shown(client, buffer)
        return buffer

    def doubt(self, path: WorkspacePath, *, client: str) -> None:
        """An editor may have unsaved text of a file, and shows it in a way that loses some of it.

        The file is what the disk has, and is not changed until the editor says more.
        """
        with self._lock:
            self._shown[path.absolute] = _Shown(client, None)

    def is_doubtful(self, path: WorkspacePath) -> bool:
        """Whether an editor may have text of a file that nobody can know."""
        shown = self._shown.get(path.absolute)
        return shown is not None and shown.buffer is None

    def change(
        self,
        path: WorkspacePath,
        typed: Sequence[Typed],
        *,
        client: str,
        version: int,
        unit: Unit = "utf-16",
    ) -> Buffer:
        """An editor's text has changed, one change after the other.

        What was typed before the editor made what it has to make stays, as far as both go together.

        Raises:
            InvalidParamsError: The editor has not opened the file, or a place is none; the
                buffer is what it was.
            StaleFileError: The version is not a later one.
        """
        with self._lock:
            shown, after = self._owned(path, client)
            buffer, waits = after, shown.delivery
            if waits is not None and (not shown.handed or version == waits.version + 1):
                buffer = waits.before
            if version <= buffer.version:
                raise StaleFileError(
                    f"{path.path}: version {version} came after version {buffer.version}",
                    hint="Send changes in order, or open the file again with its whole text.",
                    path=path.path,
                )
            text = buffer.text
            for each in typed:
                text = apply_typed(text, each, unit)
            changed = replace(buffer, text=text, version=version)
            self._shown[path.absolute] = shown = _Shown(client, changed)
            if waits is not None and buffer is not after:
                self._wait_for(shown, waits.before.text, after.text, after.base, changed)
        return changed

    def saved(self, path: WorkspacePath, *, client: str, base: Document | None) -> Buffer:
        """The disk holds what the buffer does."""
        with self._lock:
            shown, buffer = self._owned(path, client)
            shown.buffer = buffer = replace(buffer, base=base)
        return buffer

    def close(self, path: WorkspacePath, *, client: str) -> None:
        """An editor no longer shows a file; unsaved text is gone with it, as it is there."""
        with self._lock:
            shown = self._shown.get(path.absolute)
            if shown is not None and shown.client == client:
                del self._shown[path.absolute]

    def deliver(self, written: Document, start: tuple[Buffer, Document] | None = None) -> None:
        """Bring a buffer to what was written to its file, and note what the editor must be told.

        A buffer whose lines all end in LF stays so, whatever the file has.  What somebody typed
        while the file was written stays; if it is on the same lines, the buffer stays as it is.

        Args:
            written: The file.
            start: The buffer that the change started from, and the file with that; None where nothing was shown.
        """
        with self._lock:
            shown = self._shown.get(written.path.absolute)
            buffer = None if shown is None else shown.buffer
            if shown is None or buffer is None:
                return
            try:
                text = None if written.source.encoding.damaged else written.text
            except BinaryFileError:
                text = None
            if text is None:
                # No editor can show it as it is.
                del self._shown[written.path.absolute]
                return
            was, begun = buffer, buffer if start is None else start[0]
            if start is not None and begun.holding(start[1].text) == begun:
                was = replace(buffer, base=start[1])
            if shown.delivery is not None:
                was = shown.delivery.before
            self._wait_for(shown, begun.text, buffer.holding(text).text, written, was)

    def _wait_for(
        self, shown: _Shown, start: str, text: str, base: Document | None, was: Buffer
    ) -> None:
        """Bring a buffer to a new text of its file, which the editor has to make.

        Args:
            shown: The file as it is shown.
            start: The text that the new one was made of.
            text: The new one.
            base: The file with it.
            was: What the editor has.
        """
        buffer = shown.buffer or was
        if start != buffer.text:
            both = merge(start, buffer.text, text)
            if both.text is None:
                return
            text = both.text
        edits = EditList.between(was.text, text)
        version = was.version + bool(edits)
        shown.buffer = replace(buffer, text=text, version=version, base=base)
        shown.delivery, shown.handed = None, False
        if edits:
            shown.delivery = Delivery(buffer.path, buffer.client, was.version, edits, text, was)
            # They are made in the order in which they came up.
            self._shown[buffer.path.absolute] = self._shown.pop(buffer.path.absolute)

    def refused(self, delivery: Delivery) -> None:
        """An editor did not make the edits: what it has is what the file is, until it says more."""
        with self._lock:
            self.made(delivery)
            shown = self._shown.get(delivery.path.absolute)
            now = None if shown is None else shown.buffer
            made = (delivery.client, delivery.version + 1, delivery.text)
            if shown and now is not None and (now.client, now.version, now.text) == made:
                shown.buffer = delivery.before

    def made(self, delivery: Delivery) -> None:
        """An editor has made the edits; what was typed before it had is still to be told."""
        with self._lock:
            if self.is_waited_for(delivery):
                shown = self._shown[delivery.path.absolute]
                shown.delivery, shown.handed = None, False

    def is_waited_for(self, delivery: Delivery) -> bool:
        """Whether the editor has still to make just these edits."""
        shown = self._shown.get(delivery.path.absolute)
        return shown is not None and shown.delivery is delivery

    def hand_over(self, client: str) -> Delivery | None:
        """The next that an editor is to make, until it is `made` or `refused`; None for no more."""
        with self._lock:
            for shown in self._shown.values():
                if shown.delivery is not None and shown.client == client:
                    shown.handed = True
                    return shown.delivery
        return None

    def take(self, client: str) -> tuple[Delivery, ...]:
        """The deliveries for one editor, in order; each is returned once."""
        taken: list[Delivery] = []
        with self._lock:
            while (delivery := self.hand_over(client)) is not None:
                taken.append(delivery)
                self.made(delivery)
        return tuple(taken)

    def _owned(self, path: WorkspacePath, client: str) -> tuple[_Shown, Buffer]:
        shown = self._shown.get(path.absolute)
        if shown is None or shown.buffer is None or shown.client != client:
            raise InvalidParamsError(
                f"{path.path}: is not open in this editor",
                hint="Open it first, with its whole text.",
                path=path.path,
            )
        return shown, shown.buffer


def apply_typed(text: str, typed: Typed, unit: Unit) -> str:
    """A text with one change made in it.

    Raises:
        InvalidParamsError: A place is none.
    """
    if typed.start is None:
        return typed.text
    index = LineIndex(text)
    start = index.offset(typed.start, unit)
    end = start if typed.end is None else index.offset(typed.end, unit)
    if end < start:
        raise InvalidParamsError(
            "the end of a change lies before its start", hint="Send start before end."
        )
    return EditList((Edit(start, end, typed.text),)).apply(text)


_LOST: Final = "\ufffd"

_GUESSES: Final = (
    *("latin-1", "cp1252", "cp932", "gb18030", "euc_jp", "euc_kr", "big5"),
    *("cp1250", "cp1251", "koi8_r", "cp437", "cp850", "mac_roman"),
)
"""Encodings in which editors misread bytes that are not UTF-8."""


@dataclass(frozen=True, slots=True)
class BufferStatus:
    """The relation of an editor's text to the file on the disk.

    Attributes:
        kind: ``nothing``: the editor has no such file.  ``same``: what the disk has.  ``older``:
            what editor and disk agreed on before the disk changed.  ``unsaved``: somebody typed
            it.  ``mangled``: what the disk has or had, read in a wrong encoding.  ``doubtful``:
            read in a wrong encoding, and perhaps typed in.
        base: Of unsaved text, the file that it grew from; None for no file.  Of a text that was
            read in a wrong encoding, the file that was read.
    """

    kind: Literal["nothing", "same", "older", "unsaved", "mangled", "doubtful"]
    base: Document | None = None


def standing(
    text: str | None,
    disk: Document | None,
    *,
    agreed: Document | None = None,
    known: str | None = None,
) -> BufferStatus:
    """Tell what an editor's text is.

    Args:
        text: What the editor shows; None for no such file.
        disk: What the disk has; None for no file.
        agreed: The file as it was when editor and disk last had the same text.
        known: The unsaved text that the editor showed when it was asked before.
    """
    if text is None or (disk is None and not text):
        # Many editors answer an empty text for a file that is not there.
        return BufferStatus("nothing")
    if disk is not None and same_text(text, disk):
        return BufferStatus("same")
    if agreed is not None and same_text(text, agreed):
        return BufferStatus("older")
    if disk is None:
        return BufferStatus("unsaved")
    if _is_damaged(text, disk):
        shown = _seen_in(text, (disk, agreed))
        return BufferStatus("doubtful") if shown is None else BufferStatus("mangled", shown)
    if known is not None and same_text(known, disk):
        # The editor has saved what was known of it, and somebody typed on.
        return BufferStatus("unsaved", disk)
    return BufferStatus("unsaved", agreed or disk)


def same_text(text: str, document: Document) -> bool:
    """Whether a text is a document's, in whatever way an editor shows line ends and marks.

    The end of the last line counts as well: an editor that knows lines only shows none.
    """
    try:
        known = document.text
    except BinaryFileError:
        return False
    return text == known or _bare(text).removesuffix("\n") == _bare(known).removesuffix("\n")


def differs_in_form(written: Document, meant: Document) -> bool:
    """Whether a file has the text that was meant in other bytes.

    Other bytes are another encoding, other line ends, or no mark or no end of the last line where
    there was one.  An end of a last line that was not there is text: editors add it on purpose.
    """
    if written.data == meant.data:
        return False
    try:
        wanted = _bare(meant.text)
    except BinaryFileError:
        return False
    return any(_bare(text) in (wanted, wanted.removesuffix("\n")) for text in _readings(written))


def _bare(text: str) -> str:
    """A text without what tells how it is stored rather than what it says."""
    text = text.removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _readings(document: Document) -> Iterator[str]:
    """The texts that a file's bytes decode to: in its own encoding, and in UTF-8."""
    with suppress(BinaryFileError):
        yield document.text
    with suppress(UnicodeDecodeError):
        yield document.data.decode()


def _is_damaged(text: str, document: Document) -> bool:
    """Whether an editor may have read a document's bytes in a wrong encoding."""
    try:
        known = document.text
    except BinaryFileError:
        return True
    if text.count(_LOST) > known.count(_LOST):
        return True
    # Only ASCII can be typed into a file of which nobody knows the encoding.
    return not document.source.encoding.known and _beyond(text) != _beyond(known)


def _beyond(text: str) -> str:
    return "" if text.isascii() else "".join(char for char in text if char > "\x7f")


def _seen_in(text: str, documents: tuple[Document | None, ...]) -> Document | None:
    """The document of whose bytes a text is all that some encoding makes."""
    shown = _joined(text)
    for document in documents:
        if document is not None and any(_joined(one) == shown for one in _views(document.data)):
            return document
    return None


def _views(data: bytes) -> Iterator[str]:
    data = data.removeprefix(codecs.BOM_UTF8)
    for errors in ("replace", "ignore"):
        yield data.decode("utf-8", errors)
        yield data.decode("ascii", errors)
    for name in _GUESSES:
        yield data.decode(name, "replace")


def _joined(text: str) -> str:
    """A text in which what was lost counts once, however many characters stand for it."""
    text = _bare(text).removesuffix("\n")
    while _LOST * 2 in text:
        text = text.replace(_LOST * 2, _LOST)
    return text
