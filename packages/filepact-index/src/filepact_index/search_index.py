"""The search index: what is known of a root's files, so that a search opens only those that may match.

`NameIndex` knows the names.  `TextIndex` knows of each text which trigrams it holds, and of other files
that they are none.  Both are filled in the background, from the first search on, and a file is forgotten
before a search begins if the kernel has noticed anything about it: of what is not known every byte is
searched.  Nothing is answered from here: of each file of which a line is shown the bytes are read through
the guard, now.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from filepact.errors import FilepactError
from filepact.fs.inotify import WatcherLimit
from filepact.fs.kernel import give_memory_back
from filepact.fs.walk import Entry, EntryList, FileRecord, TreeReader, open_batch
from filepact.text.query import searchable
from filepact.text.secrets import holds_private_key
from filepact.values import begun
from filepact.workspace.search import FILE_LIMIT, RootSearch
from filepact_index.name_index import NameIndex
from filepact_index.text_index import TextIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from filepact.domain.document import RootId
    from filepact.domain.policy import EntryFilter
    from filepact.fs.locks import FileLocks
    from filepact.fs.root import Root
    from filepact.text.codec import NamedEncoding
    from filepact.text.literals import Needs
    from filepact.workspace.guard import Guard
    from filepact.workspace.search import KnownTexts
    from filepact_index.index_file import IndexFile
    from filepact_index.name_views import FileList

T = TypeVar("T")

__all__ = ["IndexSearch", "RootIndexes"]

_STEP_SECONDS: Final = 0.02
_PAUSE_SECONDS: Final = 0.005
_VERIFY_EVERY: Final = 60.0
_FEW_TEXTS: Final = 500
"""So many stamps are compared before every search, which takes less than a millisecond."""

_AT_ONCE: Final = 16
_REST_SECONDS: Final = 1.0
"""So long after the last search the memory that searches took goes back to the system."""

_LEAST_KEPT: Final = 200
"""Fewer texts are read anew as quickly as they are taken over from another server."""

_TURN_SECONDS: Final = 60.0
"""So long it is waited for another server that reads the same texts."""

_SAVE_EVERY: Final = 60.0
_IDLE_SECONDS: Final = 900.0
"""After so long without a search nothing is known any more."""


class IndexSearch(RootSearch):
    """The view of a root of which something is known.

    Args:
        names: The names; None where the disk has to be walked.
        texts: The texts.
    """

    def __init__(self, names: NameIndex | None, texts: TextIndex) -> None:
        self._names = names
        self._texts = texts

    def walk(
        self,
        root: Root,
        base: str,
        *,
        allow: EntryFilter,
        max_depth: int | None = None,
        cancelled: Callable[[], bool],
        progress: Callable[[int, str], None] = lambda _seen, _path: None,
    ) -> TreeReader:
        if self._names is not None:
            known = self._names.walk(base, allow, max_depth=max_depth, cancelled=cancelled)
            if known is not None:
                return known
        walk = super().walk
        return walk(
            root, base, allow=allow, max_depth=max_depth, cancelled=cancelled, progress=progress
        )

    def answer(
        self,
        base: str,
        allow: EntryFilter,
        asked: Hashable,
        make: Callable[[], T],
        lasts: Callable[[T], bool],
    ) -> T:
        if self._names is None or asked is None:
            return make()
        return self._names.answer(base, allow, asked, make, lasts)

    def known(
        self, base: str, allow: EntryFilter, glob: str, needs: Needs, held: Collection[str]
    ) -> KnownTexts | None:
        files = None if self._names is None else self._names.files(base, allow, glob)
        return None if files is None else self._texts.known(files, needs, held)


class _RootIndex:
    """The names and the texts of one root.

    Attributes:
        kept: Where other servers leave what they know of it; None where nobody does.
        adopted: Whether that was tried.
        left: The stamp of the file that was taken over or written last.
        strange: Whether there is something in it that may not be known.
        saved: When it was written last.
    """

    def __init__(self, root: Root, locks: FileLocks | None, kept: IndexFile | None) -> None:
        self.root = root
        self.kept = kept
        self.adopted = False
        self.left: bytes | None = None
        self.strange = False
        self.saved: float | None = None
        self.names = NameIndex(root, share=WatcherLimit(locks))
        self.texts = TextIndex()
        self.verified = time.monotonic()
        self.filled: tuple[int, int] | None = None
        self._refreshing = threading.Lock()

    @property
    def wants(self) -> bool:
        """Whether there is something to do in the background."""
        if self.names.unusable:
            return False
        late = time.monotonic() - self.verified > _VERIFY_EVERY
        return late or self.filled != (self.names.changed, self.texts.changed)

    def forget(self) -> None:
        """Forget everything, and watch nothing any more, until somebody searches again."""
        self.names.close()
        self.texts.clear()
        self.filled = None
        self.adopted = False

    def refresh(self) -> bool:
        """Whether the names can be relied on now; what has changed is forgotten."""
        # In one step: a search must not begin between two, when another has taken the notices of a
        # change and the text from before it still counts.
        with self._refreshing:
            changes = self.names.refresh()
            if changes is None:
                self.texts.clear()
                self.adopted = False
                return False
            self.texts.forget(changes)
            if self.texts.size <= _FEW_TEXTS:
                self.texts.verify(self.root.glance)
            return True


class RootIndexes:
    """The search indexes of all roots, filled by one thread in the background.

    Args:
        guard: The roots, and what of them may be read at all.
        given: What is said about a file's encoding outside the file, by root.
        locks: By which processes agree on how many folders they watch; None for a process by itself.
        keep: Where servers leave what they know of a root to others; None where they do not.
    """

    def __init__(
        self,
        guard: Guard,
        given: Callable[[Root], Callable[[str], NamedEncoding | None]],
        locks: FileLocks | None = None,
        keep: Callable[[Root], IndexFile] | None = None,
    ) -> None:
        self._locks = locks
        self._keep = keep
        self._guard = guard
        self._given = given
        self._roots: dict[RootId, _RootIndex] = {}
        self._wanted: dict[RootId, None] = {}  # in the order of asking
        self._changed = threading.Condition()
        self._searching = 0
        self._filling = False
        self._resting = False
        self._closed = False
        self._rest = 0.0
        self._searched = 0.0
        self._thread: threading.Thread | None = None
        self._turns: dict[RootId, float] = {}  # for how long another server is waited for

    def close(self) -> None:
        """End the thread, and give all memory back."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        for one in self._roots.values():
            one.names.close()
            one.texts.close()

    @contextmanager
    def search(self, root: Root) -> Iterator[IndexSearch]:
        """The view of a root for one search; nothing is filled while it lasts."""
        with self._changed:
            self._searching += 1
            index = self._roots.get(root.path)
            if index is None:
                kept = None if self._keep is None else self._keep(root)
                index = self._roots[root.path] = _RootIndex(root, self._locks, kept)
        try:
            ready = index.names.ready and index.refresh()
            yield IndexSearch(index.names if ready else None, index.texts)
        finally:
            with self._changed:
                self._searching -= 1
                self._searched = time.monotonic()
                if not self._closed and index.wants:
                    self._wanted[root.path] = None
                    if self._thread is None:
                        thread = threading.Thread(
                            target=self._run, name="search index", daemon=True
                        )
                        if begun(thread):
                            self._thread = thread
                        else:
                            self._wanted.clear()
                if self._wanted or self._filling or self._resting:
                    self._changed.notify_all()

    def settle(self) -> None:
        """Wait until everything is known that searches so far have asked for."""
        with self._changed:
            while not self._closed and (self._wanted or self._filling):
                self._changed.wait()

    # -- in the background ----------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                self._filling = False
                self._changed.notify_all()
                while not self._closed and (self._searching or not self._wanted):
                    self._changed.wait(self._rest_all())
                if self._closed:
                    return
                path = next(iter(self._wanted))
                del self._wanted[path]
                index = self._roots[path]
                self._filling = True
            with suppress(FilepactError, OSError):
                self._fill(index)

    def _rest_all(self) -> float | None:
        """Give back what is not worth keeping while nobody searches; seconds until there is more of that."""
        idle = time.monotonic() - self._searched
        self._resting = idle > _REST_SECONDS and not self._searching
        if not self._resting:
            return _REST_SECONDS
        give_memory_back()
        if idle <= _IDLE_SECONDS:
            return _IDLE_SECONDS - idle + _PAUSE_SECONDS
        for one in self._roots.values():
            one.forget()
        return None

    def _stopped(self) -> bool:
        return self._closed

    def _fill(self, index: _RootIndex) -> None:
        """Bring one root's index up to date, as far as something is not known of it."""
        if not index.names.ready and not index.names.build(self._stopped):
            return
        if not index.texts.usable or not index.refresh():
            return
        if time.monotonic() - index.verified > _VERIFY_EVERY:
            index.verified = time.monotonic()
            index.texts.verify(index.root.glance)
        self._adopt(index)
        state = index.names.changed, index.texts.changed
        files = self._readable(index)
        if files is None:
            return
        paths = index.texts.claim(files)
        with ExitStack() as turn:
            if index.kept is not None and len(paths) >= _LEAST_KEPT:
                held = self._turn(index.root.path, index.kept)
                if held is None:
                    with self._changed:
                        self._wanted[index.root.path] = None
                    return
                turn.enter_context(held)
                if index.kept.stamp != index.left:
                    # Somebody has read these texts meanwhile.
                    index.adopted = False
                    self._adopt(index)
                    paths = index.texts.claim(files)
            if not self._put_all(index, paths):
                return
            if paths or index.strange:
                index.texts.rest(anew=index.strange)
                self._save(index)
        index.filled = state

    def _readable(self, index: _RootIndex) -> FileList | None:
        """The files that are looked into here: not those that no agent may read without being asked about."""
        allow = self._guard.listing(index.root, "read")
        if index.names.walk(".", allow, cancelled=self._stopped) is None:
            return None
        return index.names.files(".", allow, "**/*")

    def _put_all(self, index: _RootIndex, paths: Sequence[str]) -> bool:
        """Take in files that were claimed; whether that came to an end."""
        self._rest = time.monotonic() + _STEP_SECONDS
        given = self._given(index.root)
        for at in range(0, len(paths), _AT_ONCE):
            some = paths[at : at + _AT_ONCE]
            for path, found in zip(some, index.root.read_small(some), strict=True):
                self._pause()
                if index.texts.full:
                    index.texts.rest()
                if self._closed or index.texts.full:
                    return False
                record = FileRecord(*found, 1) if isinstance(found, tuple) else None
                self._index(index, path, record, partial(given, path))
        return True

    # -- with other servers ---------------------------------------------------------------

    def _turn(self, root: RootId, kept: IndexFile) -> AbstractContextManager[object] | None:
        """Wait until no other server reads the same texts, but not for ever; None where another root is wanted."""
        end = self._turns.setdefault(root, time.monotonic() + _TURN_SECONDS)
        with suppress(FilepactError):
            while not self._closed and time.monotonic() < end:
                held = kept.turn()
                if held is not None:
                    del self._turns[root]
                    return held
                with self._changed:
                    self._changed.wait(_PAUSE_SECONDS * 20)
                    if self._wanted.keys() - {root}:
                        return None
        del self._turns[root]
        return nullcontext()

    def _adopt(self, index: _RootIndex) -> None:
        """Take over what another server knows, as far as files are still as they were then."""
        if index.adopted or index.kept is None:
            return
        index.adopted = True
        index.left = index.kept.stamp
        record = None if index.left is None else index.kept.load()
        files = None if record is None else self._readable(index)
        if record is None or files is None:
            return
        given, glance = self._given(index.root), index.root.glance
        index.texts.adopt(record, files, glance, lambda path: _said(given(path)))
        others = {path for path in (*record.paths, *record.binary) if path not in files.among}
        index.strange = not self._narrow(index) and any(path and glance(path) for path in others)

    def _narrow(self, index: _RootIndex) -> bool:
        return self._guard.listing(index.root, "read").narrow

    def _save(self, index: _RootIndex) -> None:
        """Leave what is known to others, and use it together with them from then on."""
        kept, now = index.kept, time.monotonic()
        record = None if kept is None else index.texts.record()
        if kept is None or record is None or len(record.paths) < _LEAST_KEPT:
            return
        often = index.saved is not None and now - index.saved < _SAVE_EVERY
        if often or self._narrow(index):
            return
        before = kept.stamp
        if before is not None and before != index.left:
            index.left = before  # another server was quicker; the next time it is our turn
        elif kept.save(record):
            index.saved, index.strange = now, False
            index.left = kept.stamp
            ours = kept.load()
            if ours is not None:
                index.texts.share(record, ours.image)

    def _index(
        self,
        index: _RootIndex,
        path: str,
        found: FileRecord | None,
        given: Callable[[], NamedEncoding | None],
    ) -> None:
        """Take in one file, or note that it is to be searched every time."""
        texts, prefix = index.texts, path[: path.rfind("/") + 1]
        try:
            if found is None:
                with open_batch(index.root, EntryList(prefix, [], {}, "", 1, -1)) as folder:
                    entry = Entry(path, path[len(prefix) :], "file", 1, folder, index.root)
                    found = entry.sample(limit=FILE_LIMIT)
        except FilepactError:
            texts.put_off(path)
            return
        # By another name of the same file it may change without a notice.
        if found.links > 1 or holds_private_key(found.data):
            texts.put_off(path)
            return
        said: list[str] = []

        def asked() -> NamedEncoding | None:
            one = given()
            said.append(_said(one))
            return one

        text = searchable(found.data, name=path, given=asked)
        recoded = text is not found.data
        texts.put(path, text, found.stamp, recoded=recoded, said=said[-1] if said else None)

    def _pause(self) -> None:
        """Leave the processor to searches, and now and then to everything else."""
        if time.monotonic() > self._rest:
            with self._changed:
                self._changed.wait(_PAUSE_SECONDS)
                while self._searching and not self._closed:
                    self._changed.wait()
            self._rest = time.monotonic() + _STEP_SECONDS


def _said(encoding: NamedEncoding | None) -> str:
    """The declared encoding, in a form that can be compared."""
    return "" if encoding is None else f"{encoding.codec} {encoding.origin}"
