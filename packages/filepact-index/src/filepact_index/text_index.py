"""The index of a root's texts: which trigrams each holds.

Nothing is answered from here: it says in which files a search need not look.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from filepact.fs.trigrams import NO_TEXT, TrigramIndex
from filepact.workspace.documents import EDITORCONFIG
from filepact.workspace.search import KnownTexts
from filepact_index.index_file import STAMP, IndexRecord

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from filepact.fs.trigrams import TrigramImage
    from filepact.text.literals import Needs
    from filepact_index.name_index import IndexChanges
    from filepact_index.name_views import FileList

__all__ = ["TextIndex"]

_BUDGET: Final = 64 << 20
_FEW: Final = 2_000
_MOST_ADDED: Final = 8
"""A block smaller than this many times the later additions is merged with them."""

_MOST_NOTED: Final = 10_000

_RACY_NANOSECONDS: Final = 2_000_000_000
"""A stamp may stay the same while the file changes once more, if it is younger than that; nobody else is told it."""

_FIELDS: Final = 4
_INODE: Final = (1 << 64) - 1  # the library in C has them with a sign

MakeTrigrams = Callable[..., TrigramIndex | None]
_Stamp = tuple[int, ...]
"""Inode, size and both times of a file, as `Root.glance` has them."""


class TextIndex:
    """The trigrams of a root's texts; for all threads.

    Args:
        trigrams: Makes an index of the texts in a block, or an empty one; None where there is none, then nothing
            is ever known.

    Attributes:
        changed: How often something was forgotten.
    """

    def __init__(self, trigrams: MakeTrigrams = TrigramIndex.open) -> None:
        self._lock = threading.Lock()
        self._make = trigrams
        self._trigrams: TrigramIndex | None = None
        self._numbers: dict[str, int]
        self._paths: list[str | None]
        self._stamps: bytearray
        self._binary: dict[str, bytes]
        self._searched: set[str]
        self._wide: set[str]
        self._recoded: set[str]
        self._racy: set[str]
        self._said: dict[str, str]
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
    def size(self) -> int:
        """Of how many files something is known."""
        return len(self._numbers) + len(self._binary)

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
        self._numbers, self._paths, self._stamps = {}, [], bytearray()
        self._binary, self._searched = {}, set()
        self._wide, self._recoded, self._claimed = set(), set(), set()
        self._racy, self._said = set(), {}
        self._shared: TrigramImage | None = None
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
                names = names | self._wide | self._binary.keys() | self._claimed
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
        self._binary.pop(name, None)
        self._said.pop(name, None)
        for some in (self._searched, self._wide, self._recoded, self._claimed, self._racy):
            some.discard(name)
        self._note(name)
        self.changed += 1

    def _note(self, name: str) -> None:
        """Have lists of files look at one of them again."""
        self._noted.append(name)
        if len(self._noted) > _MOST_NOTED:
            self._noted = []
            self._emptied += 1

    def known(self, files: FileList, needs: Needs, held: Collection[str]) -> KnownTexts:
        """The index of texts for a search.

        Args:
            files: The files that are searched.
            needs: The literals that a text must hold to match.
            held: Those of which something else than the disk is searched.
        """
        with self._lock:
            self._sort(files)
            binary = files.binary.difference(held) if held else files.binary
            if self._trigrams is None or not needs:
                look = [path for path in files.paths if path not in binary]
            else:
                paths, among = self._paths, files.among
                # Most numbers are in the order of their paths.
                look = [path for n in self._trigrams.find(needs) if (path := paths[n]) in among]
                more = files.unknown.union(held) & among if held else files.unknown
                look = sorted({*look, *more} if more else look)
            passed = len(files.paths) - len(binary) - len(look)
            sure = partial(self._sure, frozenset(held))
            return KnownTexts(look, sure, self._recoded, self._same, passed, len(binary))

    def _sort(self, files: FileList) -> None:
        """Take into a list what has changed of its texts since the last time."""
        emptied, upto = files.noted or (0, 0)
        numbers, binary = self._numbers, self._binary
        if emptied != self._emptied:
            files.binary = set(binary.keys() & files.among)
            files.unknown = {
                path for path in files.paths if path not in numbers and path not in binary
            }
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
        return self._stamp(path) == _packed(stamp)

    def _stamp(self, path: str) -> bytes | None:
        """The stamp of a file of which something is known."""
        number = self._numbers.get(path)
        if number is None:
            return self._binary.get(path)
        return bytes(self._stamps[number * STAMP.size : (number + 1) * STAMP.size])

    def rest(self, *, anew: bool = False) -> None:
        """Take up less memory, until the next text comes; for the thread that puts texts.

        Args:
            anew: Whether also what has gone is to be left out.
        """
        self._seal(anew=anew)
        with self._lock:
            # Sets do not become smaller by what is taken out.
            self._claimed, self._searched = set(self._claimed), set(self._searched)
            if self._trigrams is not None:
                self._trigrams.rest()

    def _seal(self, *, anew: bool) -> None:
        """Put all into one block, without holding up searches."""
        with self._lock:
            trigrams = self._trigrams
            if trigrams is None or not trigrams.size:
                return
            if trigrams.added * _MOST_ADDED <= trigrams.size and not anew:
                return
            paths = self._paths.copy()
        anew = anew or len(paths) > len(self._numbers) + _FEW
        kept = [number for number, path in enumerate(paths) if path is not None]
        numbers = [NO_TEXT] * len(paths)
        for number, old in enumerate(kept) if anew else zip(kept, kept, strict=True):
            numbers[old] = number
        block = trigrams.seal(numbers, len(kept) if anew else len(paths))
        with self._lock:
            if block is None or trigrams is not self._trigrams:
                return
            self._trigrams = self._make(block)
            self._full = len(block.view) > _BUDGET
            trigrams.close()
            if anew:
                self._renumber(kept)

    def _renumber(self, kept: Sequence[int]) -> None:
        """Give texts other numbers: to each its place among those that are kept."""
        stamps, size = self._stamps, STAMP.size
        self._stamps = bytearray().join(stamps[old * size : (old + 1) * size] for old in kept)
        # What was forgotten meanwhile has no path any more.
        self._paths = [self._paths[old] for old in kept]
        self._numbers = {path: at for at, path in enumerate(self._paths) if path is not None}

    # -- filling --------------------------------------------------------------------------

    def claim(self, files: FileList) -> list[str]:
        """Claim the files that are not in the index; they are about to be read.

        What is forgotten before it is put is not put.
        """
        with self._lock:
            if self._trigrams is None or self._full:
                return []
            self._sort(files)
            unknown = files.unknown - self._searched
            self._claimed |= unknown
            return sorted(unknown)

    def put(
        self,
        path: str,
        text: bytes | None,
        stamp: _Stamp,
        *,
        recoded: bool = False,
        said: str | None = None,
    ) -> None:
        """A claimed file holds a text.

        Args:
            path: The file.
            text: It, as UTF-8; None for no text.
            stamp: That of the file.
            recoded: Whether the file holds other bytes than these.
            said: What is said about its encoding outside the file, if it was asked.
        """
        with self._lock:
            if path not in self._claimed or self._trigrams is None:
                return
            self._claimed.discard(path)
            self._note(path)
            if said is not None:
                self._said[path] = said
            if max(stamp[-2:]) > time.time_ns() - _RACY_NANOSECONDS:
                self._racy.add(path)
            if text is None:
                self._binary[path] = _packed(stamp)
                return
            try:
                self._numbers[path] = self._trigrams.add(text)
                self._paths.append(path)
                self._stamps += _packed(stamp)
            except MemoryError:
                self._full = True
                return
            self._full = self._trigrams.memory > _BUDGET
            if not text.isascii():
                self._wide.add(path)
            if recoded:
                self._recoded.add(path)

    # -- for others -----------------------------------------------------------------------

    def record(self) -> IndexRecord | None:
        """The index for other processes; None where it would not be complete, or there is nothing new."""
        with self._lock:
            trigrams = self._trigrams
            image = None if trigrams is None else trigrams.image
            if trigrams is None or image is None or image is self._shared or trigrams.added:
                return None
            racy = self._racy
            binary = {path: one for path, one in self._binary.items() if path not in racy}
            return IndexRecord(
                image,
                [None if path in racy else path for path in self._paths],
                bytes(self._stamps),
                frozenset(self._wide),
                frozenset(self._recoded),
                binary,
                dict(self._said),
            )

    def share(self, record: IndexRecord, image: TrigramImage) -> None:
        """Use an image that others have too in place of the same one in a record."""
        with self._lock:
            trigrams = self._trigrams
            if trigrams is not None and trigrams.image is record.image and not trigrams.added:
                self._trigrams = self._make(image)
                self._shared = image
                trigrams.close()

    def adopt(
        self,
        record: IndexRecord,
        files: FileList,
        stamp: Callable[[str], _Stamp | None],
        said: Callable[[str], str],
    ) -> int:
        """Take in what another has recorded, as far as it is still so, if nothing is known yet.

        Args:
            record: It.
            files: The files that may be known.
            stamp: That of a file now; None for one that has gone.
            said: What is said about a file's encoding outside it.

        Returns:
            How many files that is.
        """
        # What changes from now on is forgotten, and then not taken in.
        claimed = dict(zip(names := self.claim(files), names, strict=True))
        with self._lock:
            if self._trigrams is None or self._trigrams.size or self._binary:
                return 0
            self._trigrams.close()
            mine = self._trigrams = self._make(record.image)
            self._shared = record.image
            self._paths = [None] * len(record.paths)
            self._stamps = bytearray(record.stamps)
            self._full = record.image.size > 0 and len(record.image.view) > _BUDGET
        same = partial(_unchanged, record, stamp, said)
        size, stamps = STAMP.size, record.stamps
        texts = [
            (at, claimed[path])
            for at, path in enumerate(record.paths)
            if path in claimed and same(path, stamps[at * size : (at + 1) * size])
        ]
        binary = [
            claimed[path]
            for path, one in record.binary.items()
            if path in claimed and same(path, one)
        ]
        with self._lock:
            if mine is None or mine is not self._trigrams:
                return 0
            for at, path in texts:
                if path in self._claimed:
                    self._numbers[path], self._paths[at] = at, path
            for path in binary:
                if path in self._claimed:
                    self._binary[path] = record.binary[path]
            known = self._numbers.keys() | self._binary.keys()
            self._claimed -= known
            self._wide |= record.wide & known
            self._recoded |= record.recoded & known
            self._said |= {path: one for path, one in record.said.items() if path in known}
            self._emptied += 1
            self.changed += 1
        return len(texts) + len(binary)

    def put_off(self, path: str) -> None:
        """A claimed file is always to be searched, until it changes."""
        with self._lock:
            if path in self._claimed:
                self._claimed.discard(path)
                self._searched.add(path)

    def verify(self, stamp: Callable[[str], _Stamp | None]) -> None:
        """Forget what has changed without a notice: through a memory map, or by another name of the file."""
        with self._lock:
            paths = [*self._numbers, *self._binary]
        for path in paths:
            known = self._stamp(path)
            if known is not None and _packed(stamp(path) or ()) != known:
                with self._lock:
                    if self._stamp(path) == known:
                        self._forget(path)


def _unchanged(
    record: IndexRecord,
    stamp: Callable[[str], _Stamp | None],
    said: Callable[[str], str],
    path: str,
    known: bytes,
) -> bool:
    """Whether a file is as it was recorded, and would be read alike."""
    before = record.said.get(path)
    return _packed(stamp(path) or ()) == known and (before is None or before == said(path))


def _packed(stamp: _Stamp) -> bytes:
    """A stamp in a third of the memory; empty for one that no file has."""
    if len(stamp) != _FIELDS:
        return b""
    inode, size, modified, changed = stamp
    return STAMP.pack(inode & _INODE, size, modified, changed)
