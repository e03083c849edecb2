"""An inverted index of trigrams over many texts: which of them cannot hold a literal.

It is a small library in C (``native/trigram.c``), built with the package where there is a compiler, and
shipped in the wheels; without it `TrigramIndex.open` returns None, and everything is searched.  The library also
reads many files at once.
"""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact.text.literals import Needs

__all__ = ["TrigramIndex", "read_files"]

_LIBRARY = Path(__file__).resolve().parent.parent / "libtrigram.so.1"
_KELVIN: Final = b"\xe2\x84\xaa"
_LONG_S: Final = b"\xc5\xbf"


@cache
def _library() -> Any:
    """The library in C; None where there is none."""
    try:
        library = ctypes.CDLL(str(_LIBRARY))
        library.trigram_rest.argtypes = [ctypes.c_void_p]
        library.read_files.argtypes = [
            *(ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint32),
            *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p),
        ]
        library.read_files.restype = ctypes.c_uint32
    except (OSError, AttributeError):
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    library.trigram_new.restype = pointer
    library.trigram_free.argtypes = [pointer]
    library.trigram_add.argtypes = [pointer, number, ctypes.c_char_p, ctypes.c_size_t]
    library.trigram_find.argtypes = [pointer, ctypes.c_char_p, ctypes.c_size_t, pointer, number]
    library.trigram_find.restype = ctypes.c_int64
    library.trigram_memory.argtypes = [pointer]
    library.trigram_memory.restype = ctypes.c_uint64
    return library


class TrigramIndex:
    """Which numbers stand for texts with given trigrams; for one thread at a time.

    Attributes:
        size: The number of the next text.
    """

    def __init__(self, library: Any, handle: int) -> None:
        self._library = library
        self._handle = handle
        self.size = 0

    @classmethod
    def open(cls) -> Self | None:
        """An empty index; None without the library in C."""
        library = _library()
        handle = None if library is None else library.trigram_new()
        return None if handle is None else cls(library, handle)

    def close(self) -> None:
        """Give the memory back; may be called twice."""
        handle, self._handle = self._handle, 0
        self._library.trigram_free(handle or None)

    def add(self, text: bytes) -> int:
        """Take in a text, and return its number.

        Raises:
            MemoryError: There is no room.
        """
        number = self.size
        if _KELVIN in text or _LONG_S in text:
            # Where case does not matter, these are letters of ASCII.
            text += b"\n" + text.replace(_KELVIN, b"k").replace(_LONG_S, b"s")
        if not self._library.trigram_add(self._handle, number, text, len(text)):
            raise MemoryError("no room for the index of trigrams")
        self.size += 1
        return number

    def rest(self) -> None:
        """Give back what only adding needs, and what the system may have again."""
        self._library.trigram_rest(self._handle)

    def find(self, needs: Needs) -> set[int] | None:
        """The numbers of the texts that may match; None where all of them may."""
        found: set[int] | None = None
        for group in needs:
            some: set[int] = set()
            for literal in group:
                some.update(self._with(literal))
            found = some if found is None else found & some
        return found

    def _with(self, literal: bytes) -> list[int]:
        room = max(self.size, 1)
        out = (ctypes.c_uint32 * room)()
        count = self._library.trigram_find(self._handle, literal, len(literal), out, room)
        return list(range(self.size)) if count < 0 else out[:count]

    @property
    def memory(self) -> int:
        """Bytes that it takes, about."""
        return int(self._library.trigram_memory(self._handle))


_ROOM: Final = 1 << 20
_AT_ONCE: Final = 64
_Record = ctypes.c_int64 * 4
_rooms = threading.local()


def read_files(
    folder: int, resolve: int, paths: Sequence[str]
) -> Iterator[tuple[bytes, tuple[int, ...]] | None]:
    """Read regular files that have one name and are not large, each in one state.

    Args:
        folder: Descriptor of the folder that the paths start from.
        resolve: Flags of openat2, as of `kernel`.
        paths: The files.

    Yields:
        For each its bytes, and its inode, size and both times; None for what has to be read in another
        way, which tells what it is.
    """
    library, at = _library(), 0
    while library is not None and at < len(paths):
        some = paths[at : at + _AT_ONCE]
        room = getattr(_rooms, "room", None)
        if room is None:
            room = _rooms.room = (ctypes.c_char * _ROOM)()
        records = (_Record * len(some))()
        names = b"\0".join(map(os.fsencode, some)) + b"\0"
        done = library.read_files(folder, resolve, names, len(some), room, _ROOM, records)
        at += done
        view, start = memoryview(room), 0
        got: list[tuple[bytes, tuple[int, ...]] | None] = []
        for number in range(done):
            size, inode, *times = records[number]
            got.append(
                None if size < 0 else (bytes(view[start : start + size]), (inode, size, *times))
            )
            start += max(size, 0)
        yield from got
    for _ in range(at, len(paths)):
        yield None
