"""What is known of a root's texts: which trigrams each holds, and, for a while, the texts themselves.

Nothing is answered from here: it says in which files a search need not look.
"""

from __future__ import annotations

import struct
import threading
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.fs.trigrams import TrigramIndex
from filepact.workspace.documents import EDITORCONFIG

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from filepact.text.literals import Needs
    from filepact.workspace.name_index import FileList, IndexChanges

__all__ = ["KnownTexts", "TextIndex"]

_BUDGET: Final = 64 << 20
_FEW: Final = 2_000
_MOST_NOTED: Final = 10_000
_MOST_KEPT: Final = 64 << 20
_LARGEST_KEPT: Final = 4 << 20
"""So many bytes of a root's texts are kept, none of them longer than that."""


_STAMP: Final = struct.Struct("=Qqqq")
_FIELDS: Final = 4
_INODE: Final = (1 << 64) - 1  # the library in C has them with a sign

_Stamp = tuple[int, ...]
"""Inode, size and both times of a file, as `Root.glance` has them."""


class KnownTexts(NamedTuple):
    """What is known for one search.

    Attributes:
        look: The files that may match, in path order.
        sure: Whether the text of a file is known.
        recoded: Those whose text is not what their bytes are.
        same: Whether it is of a file with this stamp.
        passed: How many of the others are texts.
        binary: How many of them are none.
        text: The text of a file as UTF-8, as far as it is kept; None where it has to be read.
        keep: Takes the text of a file that was read.
    """

    look: list[str]
    sure: Callable[[str], bool]
    recoded: Collection[str]
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
        self._kept: dict[int, bytes]
        self._stamps: dict[str, bytes]
        self._binary: set[str]
        self._searched: set[str]
        self._wide: set[str]
        self._recoded: set[str]
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
        self._wide, self._recoded, self._claimed = set(), set(), set()
        self._kept, self._kept_bytes = {}, 0
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
        for some in (self._binary, self._searched, self._wide, self._recoded, self._claimed):
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
        """What is known for a search.

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
            before = len(self._paths)
            text = partial(self._text, frozenset(held))
            keep = partial(self._keep, self._numbers, before)
            sure = partial(self._sure, frozenset(held))
            return KnownTexts(
                look, sure, self._recoded, self._same, passed, len(binary), text, keep
            )

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
        return self._stamps.get(path) == _packed(stamp)

    def _text(self, held: frozenset[str], path: str) -> bytes | None:
        number = self._numbers.get(path)
        return None if number is None or path in held else self._kept.get(number)

    def _keep(self, numbers: Mapping[str, int], before: int, path: str, text: bytes) -> None:
        """Keep a text that was read after the changes of its file were taken in.

        What has changed since has another number by now, or none.
        """
        with self._lock:
            number = numbers.get(path, before)
            if numbers is self._numbers and number < before and number not in self._kept:
                self._keep_some(number, text)

    def _keep_some(self, number: int, text: bytes) -> None:
        """Keep a text, as long as there is room: those that searches begin with were there first."""
        if len(text) <= _LARGEST_KEPT and self._kept_bytes + len(text) <= _MOST_KEPT:
            self._kept[number] = text
            self._kept_bytes += len(text)

    def drop_texts(self) -> None:
        """Keep no texts any more."""
        with self._lock:
            self._kept, self._kept_bytes = {}, 0
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

    def put(self, path: str, text: bytes | None, stamp: _Stamp, *, recoded: bool = False) -> None:
        """A claimed file holds a text.

        Args:
            path: The file.
            text: It, as UTF-8; None for no text.
            stamp: That of the file.
            recoded: Whether the file holds other bytes than these.
        """
        with self._lock:
            if path not in self._claimed or self._trigrams is None:
                return
            self._claimed.discard(path)
            self._stamps[path] = _packed(stamp)
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
            self._keep_some(len(self._paths) - 1, text)
            if not text.isascii():
                self._wide.add(path)
            if recoded:
                self._recoded.add(path)

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
            if _packed(stamp(path) or ()) != known:
                with self._lock:
                    if self._stamps.get(path) == known:
                        self._forget(path)


def _packed(stamp: _Stamp) -> bytes:
    """A stamp in a third of the memory; empty for one that no file has."""
    if len(stamp) != _FIELDS:
        return b""
    inode, size, modified, changed = stamp
    return _STAMP.pack(inode & _INODE, size, modified, changed)
