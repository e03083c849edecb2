"""Tracks which text of each file a session knows, so that stale writes are recognised.

A session knows the text that it was sent or has sent itself.  That may never have been on the disk:
where the session's change was merged with somebody else's, it goes on knowing its own text, and
where it read a part of a file that had changed meanwhile, it knows the old text with the new part.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, Generic, Literal, Protocol, TypeVar

from filepact.domain.document import KnownTextRecord, Revision
from filepact.errors import BinaryFileError, FilepactError
from filepact.text.compare import compare_lines
from filepact.text.edit import EditList
from filepact.text.lines import chomp, line_starts, split_lines, with_line_ends_of
from filepact.values import begun, dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from filepact.domain.document import Document, RootId, WorkspacePath
    from filepact.domain.operation import Session
    from filepact.fs.locks import FileLocks

__all__ = ["KnownText", "KnownTextCache", "KnownTextStore", "KnownTextWriter", "Span", "TextCache"]

_LIMIT: Final = 64 * 1024 * 1024

_OLDER: Final = 8
"""The number of earlier texts of a file that are kept for each session.

Several agents may speak through one connection, and one of them may still hold the text of before
another one's change.
"""

_LONGEST: Final = 256 * 1024  # characters of a text that is kept beyond the process's end
_DELAY: Final = 0.2  # seconds for which what is to be written down is gathered

ChangedBy = Literal["sent", "alone", "own", "others", "read"]

Span = tuple[int, int]
"""The characters ``[start, end)`` of a text."""


@dataclass(frozen=True, slots=True)
class KnownText:
    """The known text of a file.

    Attributes:
        content: The text that it takes the file to have; None for a file that is not text.
        revision: The state of the file that it was told last.
        shown: The parts of the text that it was really shown or wrote, in order and apart; None
            for all of it.
        read: Whether any of it was shown by a tool that reads; if not, by diffs of changes alone.
        sole: Where one agent of the session alone has it: ``sent`` if it was sent as a whole and not
            read since, ``alone`` if it was shown once, as a whole and as the first of the file.
        older: Texts that it knew before, the newest first, and for each of them who has changed the
            file since: one agent of the session, by whole texts (as of ``sole``), only the session itself
            (``own``), others too, or others before all of it was read again (``read``).
    """

    content: str | None
    revision: Revision
    shown: tuple[Span, ...] | None = None
    read: bool = True
    sole: Literal["", "sent", "alone"] = ""
    older: tuple[tuple[str, ChangedBy], ...] = ()

    @property
    def text(self) -> str:
        """The text.

        Raises:
            BinaryFileError: There is none.
        """
        if self.content is None:
            raise BinaryFileError("what was read is not text")
        return self.content

    @property
    def size(self) -> int:
        """Characters that it takes to remember this."""
        return len(self.content or "") + sum(len(text) for text, _ in self.older)

    @classmethod
    def of(cls, document: Document, shown: Iterable[Span] | None = None) -> KnownText:
        """The known text of a file of which all, or these parts, were shown."""
        try:
            text = document.text
        except BinaryFileError:
            return cls(None, document.revision)
        return cls(text, document.revision, _normal(shown, len(text)))

    def differs(self, document: Document) -> bool:
        """Whether a file is no longer what is known of it."""
        if self.revision.content == document.revision.content and self.content is None:
            return False
        try:
            return self.content != document.text
        except BinaryFileError:
            return True

    def renewed(self, document: Document, shown: Iterable[Span] | None) -> KnownText:
        """Update the known text after all, or some parts, of a file were shown.

        Where the file has changed in lines that were shown before and are not now, they are still
        known as they were.
        """
        return self.joined(KnownText.of(document, shown))

    def joined(self, fresh: KnownText) -> KnownText:
        """Combine this known text with a newer one."""
        if not fresh.revision.was_read and self.content == fresh.content:
            fresh = replace(fresh, revision=self.revision)
        if self.content is None or fresh.content is None or fresh.shown is None:
            return fresh
        if (known := self.with_ends_of(fresh.content)).content != self.content:
            return known.joined(fresh)
        if self.content == fresh.content:
            if self.shown is None:
                return replace(fresh, shown=None)
            return replace(fresh, shown=_normal((*self.shown, *fresh.shown), len(fresh.content)))
        before = ((0, len(self.content)),) if self.shown is None else self.shown
        parts: list[str] = []
        spans: list[Span] = []
        at = size = shift = 0

        def take(source: str, first: int, last: int, *known: tuple[Iterable[Span], int]) -> None:
            nonlocal size
            for some, offset in known:
                move = size - first - offset
                spans.extend(
                    (start + move, end + move)
                    for start, end in _within(some, first + offset, last + offset)
                )
            parts.append(source[first:last])
            size += last - first

        for edit in EditList.between(self.content, fresh.content).edits:
            # The stretch that both have in common, then what the two have instead of each other.
            take(self.content, at, edit.start, (before, 0), (fresh.shown, shift))
            start, end = edit.start + shift, edit.start + shift + len(edit.text)
            if _touched(fresh.shown, start, end, len(fresh.content), inside=True) or not _touched(
                before, edit.start, edit.end, len(self.content), inside=False
            ):
                take(fresh.content, start, end, (fresh.shown, 0))
            else:
                take(self.content, edit.start, edit.end, (before, 0))
            at, shift = edit.end, shift + len(edit.text) - (edit.end - edit.start)
        take(self.content, at, len(self.content), (before, 0), (fresh.shown, shift))
        return replace(fresh, content="".join(parts), shown=_normal(spans, size))

    def with_ends_of(self, like: str) -> KnownText:
        """The known text of a file whose line ends somebody converted to those of another text."""
        text = with_line_ends_of(like, self.text)
        if text == self.content or self.shown is None:
            return replace(self, content=text)
        ends = [len(with_line_ends_of(like, self.text[:at])) for span in self.shown for at in span]
        spans = zip(ends[::2], ends[1::2], strict=True)
        return replace(self, content=text, shown=_normal(spans, len(text)))

    def edited(self, edits: EditList) -> KnownText:
        """Update the known text after the session's own edits of it."""
        text = edits.apply(self.text)
        if self.shown is None:
            return KnownText(text, self.revision, read=self.read)
        spans: list[Span] = []
        at = shift = 0
        for edit in edits.edits:
            spans += [(a + shift, b + shift) for a, b in _within(self.shown, at, edit.start)]
            spans.append((edit.start + shift, edit.start + shift + len(edit.text)))
            at, shift = edit.end, shift + len(edit.text) - (edit.end - edit.start)
        spans += [(a + shift, b + shift) for a, b in _within(self.shown, at, len(self.text))]
        return KnownText(text, self.revision, _normal(spans, len(text)), self.read)

    # -- questions about a text that is to take the file's place ------------------------------

    def lost_unshown(self, text: str) -> tuple[tuple[int, int], ...]:
        """The lines that were never shown and would go, as 1-based first and last numbers.

        None are answered when most of the lines that were never shown are in the new text: whoever
        sends them knows the file from elsewhere.
        """
        if self.shown is None or self.content is None or not self.read:
            return ()
        lines = split_lines(self.content)
        unshown = [
            number
            for number, (line, start) in enumerate(zip(lines, line_starts(lines), strict=False))
            if line.strip() and not _covers(self.shown, start, start + len(chomp(line)))
        ]
        old, new = [chomp(line) for line in lines], [chomp(one) for one in split_lines(text)]
        changed = compare_lines(old, new)
        gone = {number for one in changed for number in range(one.old_start, one.old_end)}
        lost = [number for number in unshown if number in gone]
        if 2 * len(lost) <= len(unshown):
            return ()
        ranges: list[tuple[int, int]] = []
        for number in lost:
            if ranges and ranges[-1][1] == number:
                ranges[-1] = (ranges[-1][0], number + 1)
            else:
                ranges.append((number + 1, number + 1))
        return tuple(ranges)

    def taken_back(self, text: str) -> tuple[str, ChangedBy] | None:
        """The earlier text that a new one seems to have been made from, if it is an earlier one, and who changed it since.

        It has nothing of what was changed since, and what was there before stands in some of the
        places.  Exactly an earlier text is taken as meant where nobody else has a part in what
        goes.
        """
        exactly = (by for earlier, by in self.older if earlier == text)
        if self.content is None or text == self.content or {"own", "sent"} & {*exactly}:
            return None
        from filepact.text.diff import takes_back  # noqa: PLC0415 - who reads needs none

        older = (one for one in self.older if one[1] != "sent")
        return next((one for one in older if takes_back(one[0], self.content, text)), None)


_Who = tuple[str, str]
_FileOf = tuple[_Who, "WorkspacePath"]
_NOBODY: Final[_Who] = ("", "")


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


_Key = TypeVar("_Key")
_Value = TypeVar("_Value", bound=_Sized)


class TextCache(Generic[_Key, _Value]):
    """Values by key, the oldest dropped over a size limit; not for several threads at once.

    Args:
        limit: The size of all of them together; one is kept whatever its size.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._values: OrderedDict[_Key, _Value] = OrderedDict()
        self.get: Callable[[_Key], _Value | None] = self._values.get

    def put(self, key: _Key, value: _Value) -> None:
        self.drop(key)
        self._values[key] = value
        self._size += value.size
        while self._size > self._limit and len(self._values) > 1:
            self.drop(next(iter(self._values)))

    def drop(self, key: _Key) -> None:
        """Forget what was put under a key, if anything."""
        value = self._values.pop(key, None)
        if value is not None:
            self._size -= value.size


class KnownTextStore(Protocol):
    """Storage of known texts between two processes of one conversation; it raises nothing."""

    def get(self, conversation: str, path: WorkspacePath) -> KnownTextRecord | None:
        """The known text that was kept of a file."""

    def paths(self, conversation: str, root: RootId) -> AbstractSet[WorkspacePath]:
        """The files of a root of which something is kept."""

    def put(self, known: Mapping[tuple[str, WorkspacePath], KnownTextRecord | None]) -> None:
        """Keep what is known of files by conversation; None forgets it."""

    def close(self) -> None:
        """Let go of it."""


class KnownTextWriter:
    """Known texts that outlive the process: loaded once, written behind.

    Of several processes that speak for the same conversation only the first one does both, until
    it ends: two windows of one program must not take each other's texts for their own.

    Args:
        memory: Where it is kept.
        locks: By which processes see that another one is still there.
    """

    def __init__(self, memory: KnownTextStore, locks: FileLocks) -> None:
        self._memory = memory
        self._locks = locks
        self._held = ExitStack()
        # By conversation and root: the session that speaks for it here, and whether it takes over.
        self._owners: dict[tuple[str, RootId], tuple[_Who, bool]] = {}
        # Nobody else writes for it since then: the files of which an earlier process has left something.
        self._left: dict[tuple[str, RootId], AbstractSet[WorkspacePath]] = {}
        self._asked: set[tuple[_Who, WorkspacePath]] = set()
        self._news: dict[tuple[str, WorkspacePath], KnownTextRecord | None] = {}
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def recall(self, session: Session, path: WorkspacePath) -> KnownText | None:
        """The known text of an earlier process; asked once for each file."""
        name = _lasting_name(session)
        if name is None or not (session.shared or self._takes_over(session, name, path)):
            return None
        if not session.shared and path not in self._left[name, path.root]:
            return None
        kept = self._memory.get(name, path)
        return None if kept is None else KnownText(kept.text, kept.revision, kept.shown, kept.read)

    def _takes_over(self, session: Session, name: str, path: WorkspacePath) -> bool:
        who = _who(session)
        with self._lock:
            if (who, path) in self._asked:
                return False
            self._asked.add((who, path))
            return self._owner(name, path.root, who) == (who, True)

    def keep(self, session: Session, path: WorkspacePath, known: KnownText | None) -> None:
        """Write down soon what is known of a file; never waits for the disk."""
        name, who = _lasting_name(session), _who(session)
        if name is None:
            return
        kept = None
        if known is not None and known.content is not None and len(known.content) <= _LONGEST:
            kept = KnownTextRecord(known.content, known.revision, known.shown, known.read)
        if session.shared:
            self._memory.put({(name, path): kept})
            return
        with self._lock:
            owner, _ = self._owner(name, path.root, who)
            self._asked.add((who, path))
            if self._closed or owner != who:
                return
            first = not self._news
            self._news[name, path] = kept
            if self._thread is None:
                # Without one it is written down when there is one again, or at the end.
                thread = threading.Thread(target=self._work, name="known", daemon=True)
                self._thread = thread if begun(thread) else None
            if first:
                self._wake.notify_all()  # else it gathers already

    def _owner(self, name: str, root: RootId, who: _Who) -> tuple[_Who, bool]:
        owner = self._owners.get((name, root))
        if owner is None:
            held = None
            with suppress(FilepactError):
                held = self._locks.try_hold([f"{root}\0{name}"])
            if held is None:
                # Somebody else goes on with it.  Who has begun on his own takes nothing over later.
                owner = (_NOBODY, False)
            else:
                self._held.push(held)
                owner = (who, True)
                self._left[name, root] = self._memory.paths(name, root)
            self._owners[name, root] = owner
        return owner

    def _work(self) -> None:
        while True:
            with self._lock:
                self._wake.wait_for(lambda: self._news or self._closed)
                if self._closed:
                    return
                # Much is often read at once, and one text many times.
                self._wake.wait_for(lambda: self._closed, _DELAY)
            self.flush()

    def flush(self) -> None:
        """Write down what is known by now."""
        with self._writing:
            with self._lock:
                news, self._news = self._news, {}
            if news:
                self._memory.put(news)

    def close(self) -> None:
        """Write down the rest, and leave the conversations to others."""
        with self._lock:
            self._closed = True
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join()
        self.flush()
        self._memory.close()
        self._held.close()


class KnownTextCache:
    """The known texts of all sessions, the oldest dropped over a size limit.

    Args:
        limit: Characters of texts kept, over all sessions.
        lasting: What is known beyond the end of the process; None keeps nothing.
    """

    def __init__(self, limit: int = _LIMIT, lasting: KnownTextWriter | None = None) -> None:
        self._known: TextCache[_FileOf, KnownText] = TextCache(limit)
        self._doubted: set[_FileOf] = set()
        self._lasting = lasting
        self._lock = threading.Lock()

    def close(self) -> None:
        """Write down what is to last."""
        if self._lasting is not None:
            self._lasting.close()

    def last(self, session: Session, path: WorkspacePath) -> KnownText | None:
        """The session's known text of a file, if any."""
        key = _key(session, path)
        with self._lock:
            known = self._known.get(key)
            asks = self._lasting is not None and (known is None or session.shared)
            if asks and self._lasting and (told := self._lasting.recall(session, path)):
                told = told if known is None else replace(told, older=known.older)
                if told != known:
                    self._known.put(key, known := told)
        return known

    def shown(
        self, session: Session, document: Document, parts: Iterable[Span] | None = None
    ) -> None:
        """A file was shown to the session, all of it or some parts of its text."""
        if not self._knows(session, document):
            self._shown(session, document.path, KnownText.of(document, parts))

    def _knows(self, session: Session, document: Document) -> bool:
        """Whether a session was shown all of this very state before, so that no part of it is news to it."""
        key = (session.id, session.conversation or ""), document.path
        known = self.last(session, document.path) if session.shared else self._known.get(key)
        if known is None or known.content is None or known.shown is not None:
            return False
        if not known.read or known.sole:
            return False
        same = known.revision is document.revision or known.revision == document.revision
        same = same and all(by != "others" for _, by in known.older)
        return same and known.content == document.text and key not in self._doubted

    def shown_text(
        self, session: Session, path: WorkspacePath, text: str, parts: Iterable[Span]
    ) -> None:
        """Note parts of a file's text as shown; nothing else is known of the file."""
        revision = Revision.unread("only its text", 0)
        self._shown(session, path, KnownText(text, revision, _normal(parts, len(text))))

    def _shown(self, session: Session, path: WorkspacePath, fresh: KnownText) -> None:
        key = _key(session, path)
        before = self.last(session, path)
        with self._lock:
            if before is None:
                alone = fresh.shown is None and fresh.read and not session.shared
                known = replace(fresh, sole="alone" if alone else "")
            elif key in self._doubted:
                # It was told that others may hold an earlier text, and has looked again.
                self._doubted.discard(key)
                known = replace(before.joined(fresh), older=())
            else:
                known = _after(before, before.joined(fresh), own=False)
                if fresh.shown is None and fresh.read:
                    # It has seen all that others changed, and what goes now is meant to go.
                    known = replace(known, older=_marked(known.older, "others", "read"))
            if known != before:
                self._put(session, path, known)

    def shown_change(self, session: Session, before: Document | None, after: Document) -> None:
        """The session was shown the diff of a change that was made."""
        from filepact.text.diff import shown_by_diff  # noqa: PLC0415 - who reads needs none

        with suppress(BinaryFileError):
            was = "" if before is None else before.text
            self.shown(session, after, shown_by_diff(was, after.text))

    def record_write(self, session: Session, files: Mapping[WorkspacePath, KnownText]) -> None:
        """The session has changed files, and knows this of them now."""
        with self._lock:
            for path, known in files.items():
                key = _key(session, path)
                before = self._known.get(key)
                self._doubted.discard(key)
                now = known if before is None else _after(before, known, own=True)
                self._put(session, path, now)

    def doubt(self, session: Session, path: WorkspacePath) -> None:
        """A text made from an earlier one was refused; the next reading counts as the answer."""
        with self._lock:
            self._doubted.add(_key(session, path))

    def record_undo(self, session: Session, path: WorkspacePath, known: KnownText) -> None:
        """Restore a known text after the session's change came to nothing."""
        with self._lock:
            self._put(session, path, known)

    def forget(self, session: Session, path: WorkspacePath) -> None:
        """Drop what a session knew of a file, for example because it deleted it."""
        key = _key(session, path)
        with self._lock:
            self._doubted.discard(key)
            self._known.drop(key)
            if self._lasting is not None:
                self._lasting.keep(session, path, None)

    def _put(self, session: Session, path: WorkspacePath, known: KnownText) -> None:
        self._known.put(_key(session, path), known)
        if self._lasting is not None:
            self._lasting.keep(session, path, known)


def _who(session: Session) -> _Who:
    return session.id, session.conversation or ""


def _key(session: Session, path: WorkspacePath) -> _FileOf:
    return (session.id, session.conversation or ""), path


def _lasting_name(session: Session) -> str | None:
    """The name by which a later process of the same conversation is recognised; None for none."""
    agent = session.agent
    if session.conversation is None or not agent:
        return None
    return f"{agent}\0{session.conversation}"


def _after(before: KnownText, known: KnownText, *, own: bool) -> KnownText:
    """The known text with the earlier ones added."""
    if known.content is None or before.content is None:
        return known
    older = before.older
    if not known.sole:
        older = _marked(_marked(older, "sent", "own"), "alone", "own")
    if before.content != known.content:
        by: ChangedBy = "others" if not own else (known.sole and before.sole) or "own"
        older = ((before.content, by), *older)
        if not own:
            older = _marked(_marked(older, "own", "others"), "read", "others")
    return replace(known, older=tuple(one for one in older if one[0] != known.content)[:_OLDER])


def _marked(
    older: tuple[tuple[str, ChangedBy], ...], before: ChangedBy, now: ChangedBy
) -> tuple[tuple[str, ChangedBy], ...]:
    return tuple((text, now if by == before else by) for text, by in older)


# -- spans ----------------------------------------------------------------------------------------


def _normal(spans: Iterable[Span] | None, size: int) -> tuple[Span, ...] | None:
    """Sort spans and join those that touch; None where they cover the whole text."""
    if spans is None:
        return None
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        elif start < end:
            joined.append((start, end))
    return None if size == 0 or joined == [(0, size)] else tuple(joined)


def _within(spans: Iterable[Span], first: int, last: int) -> Iterator[Span]:
    """The spans cut to ``[first, last)``."""
    for start, end in spans:
        if start < last and first < end:
            yield max(start, first), min(end, last)


def _covers(spans: Iterable[Span], first: int, last: int) -> bool:
    """Whether one span has all of ``[first, last)``; they are joined where they touch."""
    return any(start <= first and last <= end for start, end in spans)


def _touched(spans: Iterable[Span], first: int, last: int, size: int, *, inside: bool) -> bool:
    """Whether a span has some of ``[first, last)``.

    For a point: whether it lies within a span, or, unless ``inside``, at an end of one.
    """
    if first < last:
        return any(start < last and first < end for start, end in spans)
    if not inside:
        return any(start <= first <= end for start, end in spans)
    return any(
        (start < first or first == 0 == start) and (first < end or first == size == end)
        for start, end in spans
    )
