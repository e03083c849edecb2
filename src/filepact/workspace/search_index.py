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
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.errors import FilepactError
from filepact.fs.trigrams import TrigramIndex
from filepact.fs.walk import Entry, TreeReader, open_batch
from filepact.text.query import searchable
from filepact.text.secrets import holds_private_key
from filepact.workspace.documents import EDITORCONFIG
from filepact.workspace.name_index import NameIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from filepact.domain.document import RootId
    from filepact.fs.root import Root
    from filepact.fs.walk import EntryFilter, EntryList
    from filepact.text.codec import NamedEncoding
    from filepact.text.literals import Needs
    from filepact.workspace.guard import Guard
    from filepact.workspace.name_index import IndexChanges

__all__ = ["FILE_LIMIT", "NO_INDEX", "KnownTexts", "RootSearch", "SearchIndexes", "TextIndex"]

FILE_LIMIT: Final = 64 << 20
"""Largest file that is searched, in bytes."""

_BUDGET: Final = 64 << 20
_STEP_SECONDS: Final = 0.02
_PAUSE_SECONDS: Final = 0.005
_VERIFY_EVERY: Final = 60.0
_FEW: Final = 2_000


class KnownTexts(NamedTuple):
    """What is known for one search.

    Attributes:
        numbers: Of the files whose text is indexed, by path.
        hits: The numbers of those that may match; None where all of them may.
        limit: Files with higher numbers were indexed later, so nothing is known of them here.
        binary: Files that are no text.
    """

    numbers: Mapping[str, int]
    hits: Collection[int] | None
    limit: int
    binary: Collection[str]

    def among(
        self, prefix: str, names: list[str], held: Collection[str]
    ) -> tuple[list[str], int, int]:
        """Those files of one folder that have to be searched.

        Args:
            prefix: The folder's path with a slash behind it; empty for the root.
            names: The files.
            held: Paths of files of which something else than the disk is searched.

        Returns:
            They, and how many of the others are texts, and no texts.
        """
        numbers, hits, limit, binary = self
        look: list[str] = []
        passed = skipped = 0
        for name in names:
            path = prefix + name
            number = numbers.get(path)
            if number is None:
                if path in binary and path not in held:
                    skipped += 1
                    continue
            elif hits is not None and number not in hits and number < limit and path not in held:
                passed += 1
                continue
            look.append(name)
        return look, passed, skipped


_Stamp = tuple[int, ...]
"""Inode, size and both times of a file, as `Root.glance` has them."""


class TextIndex:
    """The trigrams of a root's texts; for all threads.

    Args:
        trigrams: Makes an empty index; None where there is none, then nothing is ever known.
    """

    def __init__(self, trigrams: Callable[[], TrigramIndex | None] = TrigramIndex.open) -> None:
        self._lock = threading.Lock()
        self._make = trigrams
        self._trigrams: TrigramIndex | None = None
        self._numbers: dict[str, int]
        self._stamps: dict[str, _Stamp]
        self._binary: set[str]
        self._searched: set[str]
        self._wide: set[str]
        self._claimed: set[str]
        self._empty()
        self._trigrams = trigrams()

    @property
    def usable(self) -> bool:
        """Whether texts can be indexed here."""
        return self._trigrams is not None

    def close(self) -> None:
        """Give the memory back."""
        with self._lock:
            self._empty()
            self._trigrams = None

    def _empty(self) -> None:
        """Forget everything; a search that has begun keeps what it was given."""
        if self._trigrams is not None:
            self._trigrams.close()
        self._numbers, self._stamps = {}, {}
        self._binary, self._searched = set(), set()
        self._wide, self._claimed = set(), set()
        self._full = False

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            if self._trigrams is not None:
                self._empty()
                self._trigrams = self._make()

    def forget(self, changes: IndexChanges) -> None:
        """Of these files nothing is known any more."""
        names, folders = changes
        if not names and not folders:
            return
        with self._lock:
            if any(name.rpartition("/")[2] == EDITORCONFIG for name in names):
                # What is said about encodings may be another now.
                names = names | self._wide | self._binary
            if folders:
                inside = tuple("" if one == "." else f"{one}/" for one in folders)
                known = (self._numbers, self._binary, self._searched, self._claimed)
                names = names | {name for some in known for name in some if name.startswith(inside)}
            for name in names:
                self._forget(name)

    def _forget(self, name: str) -> None:
        self._numbers.pop(name, None)
        self._stamps.pop(name, None)
        for some in (self._binary, self._searched, self._wide, self._claimed):
            some.discard(name)

    def known(self, needs: Needs) -> KnownTexts:
        """What is known for a search.

        Args:
            needs: The literals that a text must hold to match.
        """
        with self._lock:
            hits, limit = None, 0
            if self._trigrams is not None and needs:
                hits, limit = self._trigrams.find(needs), self._trigrams.size
            return KnownTexts(self._numbers, hits, limit, self._binary)

    # -- filling --------------------------------------------------------------------------

    def claim(self, paths: Collection[str]) -> list[str]:
        """Those of some files of which nothing is known; they are about to be read.

        What is forgotten before it is put is not put.
        """
        with self._lock:
            if self._trigrams is None or self._full:
                return []
            if self._trigrams.size > 2 * len(self._numbers) + _FEW:
                # Most numbers stand for texts that have changed since.
                self._empty()
                self._trigrams = self._make()
            unknown = [
                path
                for path in paths
                if path not in self._numbers
                and path not in self._binary
                and path not in self._searched
            ]
            self._claimed.update(unknown)
            return unknown

    def put(self, path: str, text: bytes | None, stamp: _Stamp) -> None:
        """A claimed file holds this text, as UTF-8; None for no text."""
        with self._lock:
            if path not in self._claimed or self._trigrams is None:
                return
            self._claimed.discard(path)
            self._stamps[path] = stamp
            if text is None:
                self._binary.add(path)
                return
            try:
                self._numbers[path] = self._trigrams.add(text)
            except MemoryError:
                self._full = True
                return
            self._full = self._trigrams.memory > _BUDGET
            if not text.isascii():
                self._wide.add(path)

    def put_off(self, path: str) -> None:
        """A claimed file is always to be searched, until it changes."""
        with self._lock:
            if path in self._claimed:
                self._claimed.discard(path)
                self._searched.add(path)

    def verify(self, stamp: Callable[[str], _Stamp | None]) -> None:
        """Forget what has changed without a notice, as writes through a memory map can."""
        with self._lock:
            stamps = list(self._stamps.items())
        for path, known in stamps:
            if stamp(path) != known:
                with self._lock:
                    if self._stamps.get(path) == known:
                        self._forget(path)


class RootSearch:
    """What one search knows of a root, from the moment it began.

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
        """A walk through a folder; arguments as for `TreeReader`."""
        if self._names is not None:
            known = self._names.walk(base, allow, max_depth=max_depth, cancelled=cancelled)
            if known is not None:
                return known
        return TreeReader(
            root, base, allow=allow, max_depth=max_depth, cancelled=cancelled, progress=progress
        )

    def known(self, needs: Needs) -> KnownTexts | None:
        """What is known of texts; None where that is nothing."""
        return None if self._names is None else self._texts.known(needs)


NO_INDEX: Final = RootSearch(None, TextIndex(lambda: None))
"""What is known where nothing is."""


class _RootIndex:
    """The names and the texts of one root."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self.names = NameIndex(root)
        self.texts = TextIndex()
        self.verified = time.monotonic()

    def refresh(self) -> bool:
        """Whether the names can be relied on now; what has changed is forgotten."""
        changes = self.names.refresh()
        if changes is None:
            self.texts.clear()
            return False
        self.texts.forget(changes)
        return True


class SearchIndexes:
    """The search indexes of all roots, filled by one thread in the background.

    Args:
        guard: The roots, and what of them may be read at all.
        given: What is said about a file's encoding outside the file, by root.
    """

    def __init__(
        self,
        guard: Guard,
        given: Callable[[Root], Callable[[str], NamedEncoding | None]],
    ) -> None:
        self._guard = guard
        self._given = given
        self._roots: dict[RootId, _RootIndex] = {}
        self._wanted: set[RootId] = set()
        self._changed = threading.Condition()
        self._searching = 0
        self._filling = False
        self._closed = False
        self._rest = 0.0
        self._thread: threading.Thread | None = None

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
    def search(self, root: Root) -> Iterator[RootSearch]:
        """What is known of a root for one search; nothing is filled while it lasts."""
        with self._changed:
            self._searching += 1
            index = self._roots.get(root.path)
            if index is None:
                index = self._roots[root.path] = _RootIndex(root)
        try:
            ready = index.names.ready and index.refresh()
            yield RootSearch(index.names if ready else None, index.texts)
        finally:
            with self._changed:
                self._searching -= 1
                if not self._closed and not index.names.unusable:
                    self._wanted.add(root.path)
                    if self._thread is None:
                        self._thread = threading.Thread(
                            target=self._run, name="search index", daemon=True
                        )
                        self._thread.start()
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
                    self._changed.wait()
                if self._closed:
                    return
                index = self._roots[self._wanted.pop()]
                self._filling = True
            with suppress(FilepactError, OSError):
                self._fill(index)

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
        # What no agent may read without being asked about is not looked into here.
        allow = self._guard.listing(index.root, "read")
        walked = index.names.walk(".", allow, cancelled=self._stopped)
        if walked is None:
            return
        self._rest = time.monotonic() + _STEP_SECONDS
        with walked as entries:
            for batch in entries.batches():
                names = [name for name in batch.names if name not in batch.other_kinds]
                unknown = index.texts.claim([batch.prefix + name for name in names])
                if unknown:
                    self._read(index, batch, unknown)
                if self._closed:
                    return

    def _read(self, index: _RootIndex, batch: EntryList, paths: list[str]) -> None:
        root, skip = index.root, len(batch.prefix)
        given = self._given(root)
        with open_batch(root, batch) as folder:
            for path in paths:
                self._pause()
                if self._closed:
                    return
                entry = Entry(path, path[skip:], "file", batch.depth, folder, root)
                self._index(index.texts, entry, partial(given, path))

    def _index(
        self, texts: TextIndex, entry: Entry, given: Callable[[], NamedEncoding | None]
    ) -> None:
        """Take in one file, or note that it is to be searched every time."""
        try:
            found = entry.sample(limit=FILE_LIMIT)
        except FilepactError:
            texts.put_off(entry.path)
            return
        # By another name of the same file it may change without a notice.
        if found.links > 1 or holds_private_key(found.data):
            texts.put_off(entry.path)
            return
        texts.put(entry.path, searchable(found.data, name=entry.path, given=given), found.stamp)

    def _pause(self) -> None:
        """Leave the processor to searches, and now and then to everything else."""
        if time.monotonic() > self._rest:
            with self._changed:
                self._changed.wait(_PAUSE_SECONDS)
                while self._searching and not self._closed:
                    self._changed.wait()
            self._rest = time.monotonic() + _STEP_SECONDS
