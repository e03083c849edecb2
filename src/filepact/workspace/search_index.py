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
from collections import OrderedDict
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from filepact.errors import FilepactError
from filepact.fs.trigrams import TrigramIndex
from filepact.fs.walk import Entry, EntryList, FileRecord, TreeReader, open_batch
from filepact.text.query import searchable
from filepact.text.secrets import holds_private_key
from filepact.workspace.documents import EDITORCONFIG
from filepact.workspace.name_index import NameIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator, Mapping

    from filepact.domain.document import RootId
    from filepact.fs.root import Root
    from filepact.fs.walk import EntryFilter
    from filepact.text.codec import NamedEncoding
    from filepact.text.literals import Needs
    from filepact.workspace.guard import Guard
    from filepact.workspace.name_index import FileList, IndexChanges

T = TypeVar("T")

__all__ = ["FILE_LIMIT", "NO_INDEX", "KnownTexts", "RootSearch", "SearchIndexes", "TextIndex"]

FILE_LIMIT: Final = 64 << 20
"""Largest file that is searched, in bytes."""

_BUDGET: Final = 64 << 20
_STEP_SECONDS: Final = 0.02
_PAUSE_SECONDS: Final = 0.005
_VERIFY_EVERY: Final = 60.0
_AT_ONCE: Final = 16
_FEW: Final = 2_000
_MOST_NOTED: Final = 10_000
_MOST_KEPT: Final = 64 << 20
_KEPT_SECONDS: Final = 60.0
"""Texts are kept, so many bytes of a root, until for so long nobody searches."""


_Stamp = tuple[int, ...]
"""Inode, size and both times of a file, as `Root.glance` has them."""


class KnownTexts(NamedTuple):
    """What is known for one search.

    Attributes:
        look: The files that may match, in path order.
        sure: Whether the text of a file is known.
        same: Whether it is of a file with this stamp.
        passed: How many of the others are texts.
        binary: How many of them are none.
        text: The text of a file as UTF-8, as far as it is kept; None where it has to be read.
        keep: Takes the text of a file that was read.
    """

    look: list[str]
    sure: Callable[[str], bool]
    same: Callable[[str, _Stamp], bool]
    passed: int
    binary: int
    text: Callable[[str], bytes | None]
    keep: Callable[[str, bytes], None]


class TextIndex:
    """The trigrams of a root's texts, and some of the texts; for all threads.

    Args:
        trigrams: Makes an empty index; None where there is none, then nothing is ever known.

    Attributes:
        changed: How often something was forgotten.
    """

    def __init__(self, trigrams: Callable[[], TrigramIndex | None] = TrigramIndex.open) -> None:
        self._lock = threading.Lock()
        self._make = trigrams
        self._trigrams: TrigramIndex | None = None
        self._numbers: dict[str, int]
        self._paths: list[str | None]
        self._kept: OrderedDict[int, bytes]
        self._stamps: dict[str, _Stamp]
        self._binary: set[str]
        self._searched: set[str]
        self._wide: set[str]
        self._claimed: set[str]
        self._noted: list[str]
        self._emptied = 0
        self.changed = 0
        self._empty()
        self._trigrams = trigrams()

    @property
    def usable(self) -> bool:
        """Whether texts can be indexed here."""
        return self._trigrams is not None

    @property
    def full(self) -> bool:
        """Whether no more texts are taken in."""
        return self._full

    def close(self) -> None:
        """Give the memory back."""
        with self._lock:
            self._empty()
            self._trigrams = None

    def _empty(self) -> None:
        """Forget everything; a search that has begun keeps what it was given."""
        if self._trigrams is not None:
            self._trigrams.close()
        self._numbers, self._paths, self._stamps = {}, [], {}
        self._binary, self._searched = set(), set()
        self._wide, self._claimed = set(), set()
        self._kept, self._kept_bytes = OrderedDict(), 0
        self._full = False
        self._noted = []
        self._emptied += 1
        self.changed += 1

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
        number = self._numbers.pop(name, None)
        if number is not None:
            self._paths[number] = None
            self._kept_bytes -= len(self._kept.pop(number, b""))
        self._stamps.pop(name, None)
        for some in (self._binary, self._searched, self._wide, self._claimed):
            some.discard(name)
        self._note(name)
        self.changed += 1

    def _note(self, name: str) -> None:
        """Have lists of files look at one of them again."""
        self._noted.append(name)
        if len(self._noted) > _MOST_NOTED:
            self._noted = []
            self._emptied += 1

    def known(
        self, files: FileList, needs: Needs, held: Collection[str], *, keeps: bool
    ) -> KnownTexts:
        """What is known for a search.

        Args:
            files: The files that are searched.
            needs: The literals that a text must hold to match.
            held: Those of which something else than the disk is searched.
            keeps: Whether texts that are read are worth keeping.
        """
        with self._lock:
            self._sort(files)
            binary = files.binary.difference(held)
            hits = None
            if self._trigrams is not None and needs:
                hits = self._trigrams.find(needs)
            if hits is None:
                look = [path for path in files.paths if path not in binary]
            else:
                paths = self._paths
                found = {path for number in hits if (path := paths[number]) is not None}
                found |= files.unknown
                found.update(held)
                look = sorted(found & files.among)
            passed = len(files.paths) - len(binary) - len(look)
            before = len(self._paths)
            text = partial(self._text, frozenset(held))
            keep = partial(self._keep, self._numbers, before) if keeps else _keep_nothing
            sure = partial(self._sure, frozenset(held))
            return KnownTexts(look, sure, self._same, passed, len(binary), text, keep)

    def _sort(self, files: FileList) -> None:
        """Take into a list what has changed of its texts since the last time."""
        emptied, upto = files.noted or (0, 0)
        numbers, binary = self._numbers, self._binary
        if emptied != self._emptied:
            files.binary = binary & files.among
            files.unknown = set(files.paths).difference(numbers, binary)
        else:
            for name in (*self._noted[upto:], *files.come):
                if name in files.among:
                    files.binary.discard(name)
                    files.unknown.discard(name)
                    if name in binary:
                        files.binary.add(name)
                    elif name not in numbers:
                        files.unknown.add(name)
        files.noted, files.come = (self._emptied, len(self._noted)), set()

    def _sure(self, held: frozenset[str], path: str) -> bool:
        return path in self._numbers and path not in held

    def _same(self, path: str, stamp: _Stamp) -> bool:
        return self._stamps.get(path) == stamp

    def _text(self, held: frozenset[str], path: str) -> bytes | None:
        number = self._numbers.get(path)
        return None if number is None or path in held else self._kept.get(number)

    def _keep(self, numbers: Mapping[str, int], before: int, path: str, text: bytes) -> None:
        """Keep a text that was read after the changes of its file were taken in.

        What has changed since has another number by now, or none.
        """
        with self._lock:
            number = numbers.get(path, before)
            if numbers is not self._numbers or number >= before or number in self._kept:
                return
            self._kept[number] = text
            self._kept_bytes += len(text)
            while self._kept_bytes > _MOST_KEPT:
                self._kept_bytes -= len(self._kept.popitem(last=False)[1])

    def drop_texts(self) -> None:
        """Keep no texts any more."""
        with self._lock:
            self._kept, self._kept_bytes = OrderedDict(), 0
            if self._trigrams is not None:
                self._trigrams.rest()

    def rest(self) -> None:
        """Take up less memory, until the next text comes."""
        with self._lock:
            if self._trigrams is not None:
                self._trigrams.rest()

    # -- filling --------------------------------------------------------------------------

    def claim(self, files: FileList) -> list[str]:
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
            self._sort(files)
            unknown = files.unknown - self._searched
            self._claimed |= unknown
            return sorted(unknown)

    def put(self, path: str, text: bytes | None, stamp: _Stamp) -> None:
        """A claimed file holds this text, as UTF-8; None for no text."""
        with self._lock:
            if path not in self._claimed or self._trigrams is None:
                return
            self._claimed.discard(path)
            self._stamps[path] = stamp
            self._note(path)
            if text is None:
                self._binary.add(path)
                return
            try:
                self._numbers[path] = self._trigrams.add(text)
                self._paths.append(path)
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

    def answer(
        self,
        base: str,
        allow: EntryFilter,
        asked: Hashable,
        make: Callable[[], T],
        lasts: Callable[[T], bool],
    ) -> T:
        """An answer about names; as of `NameIndex`, if something is ``asked`` that can be compared."""
        if self._names is None or asked is None:
            return make()
        return self._names.answer(base, allow, asked, make, lasts)

    def known(
        self, base: str, allow: EntryFilter, glob: str, needs: Needs, held: Collection[str]
    ) -> KnownTexts | None:
        """What is known of texts; None where that is nothing.

        Args:
            base: As of the walk.
            allow: As of the walk.
            glob: Which files below the base are searched.
            needs: The literals that a text must hold to match.
            held: Files of which something else than the disk is searched.
        """
        files = None if self._names is None else self._names.files(base, allow, glob)
        return None if files is None else self._texts.known(files, needs, held, keeps=bool(needs))


def _keep_nothing(_path: str, _text: bytes) -> None:
    pass


NO_INDEX: Final = RootSearch(None, TextIndex(lambda: None))
"""What is known where nothing is."""


class _RootIndex:
    """The names and the texts of one root."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self.names = NameIndex(root)
        self.texts = TextIndex()
        self.verified = time.monotonic()
        self.filled: tuple[int, int] | None = None

    @property
    def wants(self) -> bool:
        """Whether there is something to do in the background."""
        if self.names.unusable:
            return False
        late = time.monotonic() - self.verified > _VERIFY_EVERY
        return late or self.filled != (self.names.changed, self.texts.changed)

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
        self._searched = 0.0
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
                self._searched = time.monotonic()
                if not self._closed and index.wants:
                    self._wanted.add(root.path)
                    if self._thread is None:
                        self._thread = threading.Thread(
                            target=self._run, name="search index", daemon=True
                        )
                        self._thread.start()
                if self._wanted or self._filling:
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
                idle = False
                while not self._closed and (self._searching or not self._wanted):
                    self._changed.wait(None if idle else _KEPT_SECONDS)
                    idle = time.monotonic() - self._searched > _KEPT_SECONDS
                    for one in self._roots.values() if idle else ():
                        one.texts.drop_texts()
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
        state = index.names.changed, index.texts.changed
        # What no agent may read without being asked about is not looked into here.
        allow = self._guard.listing(index.root, "read")
        if index.names.walk(".", allow, cancelled=self._stopped) is None:
            return
        files = index.names.files(".", allow, "**/*")
        if files is None:
            return
        self._rest = time.monotonic() + _STEP_SECONDS
        paths = index.texts.claim(files)
        given = self._given(index.root)
        for at in range(0, len(paths), _AT_ONCE):
            some = paths[at : at + _AT_ONCE]
            for path, found in zip(some, index.root.read_small(some), strict=True):
                self._pause()
                if self._closed or index.texts.full:
                    return
                record = None if found is None else FileRecord(*found, 1)
                self._index(index, path, record, partial(given, path))
        if paths:
            index.texts.rest()
        index.filled = state

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
        texts.put(path, searchable(found.data, name=path, given=given), found.stamp)

    def _pause(self) -> None:
        """Leave the processor to searches, and now and then to everything else."""
        if time.monotonic() > self._rest:
            with self._changed:
                self._changed.wait(_PAUSE_SECONDS)
                while self._searching and not self._closed:
                    self._changed.wait()
            self._rest = time.monotonic() + _STEP_SECONDS
