"""An inverted index of trigrams over many texts: which of them cannot hold a literal.

It is a small library in C (``native``), built with the package where there is a compiler, and
shipped in the wheels; without it `TrigramIndex.open` returns None, and everything is searched.  The library also
reads many files at once.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from array import array
from functools import cache
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact.text.literals import Needs

__all__ = [
    "LIBRARY_VERSION",
    "NO_LINE",
    "NO_TEXT",
    "FileRead",
    "FoundLine",
    "SmallFile",
    "TrigramImage",
    "TrigramIndex",
    "find_lines",
    "list_folders",
    "read_files",
]

_LIBRARY = os.path.join(
    os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "libtrigram.so.1"
)
LIBRARY_VERSION: Final = 5
"""That of the library that this module was written for."""

_KELVIN: Final = b"\xe2\x84\xaa"
_LONG_S: Final = b"\xc5\xbf"


@cache
def _library() -> Any:
    """The library in C; None where there is none."""
    try:
        library = ctypes.CDLL(_LIBRARY)
        if library.trigram_version() != LIBRARY_VERSION:
            return None
        library.trigram_rest.argtypes = [ctypes.c_void_p]
        library.read_files.argtypes = [
            *(ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint32),
            *(ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int),
            *(ctypes.c_char_p, ctypes.c_size_t),
            *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p),
        ]
        library.read_files.restype = ctypes.c_uint32
        library.list_folders.argtypes = [
            *(ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint32),
            *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p),
        ]
        library.list_folders.restype = ctypes.c_uint32
        library.find_lines.argtypes = [
            *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32),
            *(ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int),
            *(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p),
        ]
        library.find_lines.restype = ctypes.c_uint32
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
    block = pointer, ctypes.c_uint64
    library.sealed_texts.argtypes = [*block]
    library.sealed_texts.restype = ctypes.c_int64
    library.sealed_find.argtypes = [*block, ctypes.c_char_p, ctypes.c_size_t, pointer, number]
    library.sealed_find.restype = ctypes.c_int64
    library.trigram_seal.argtypes = [*block, pointer, pointer, number, number, *block]
    library.trigram_seal.restype = ctypes.c_uint64
    return library


class TrigramImage:
    """The trigrams of texts that none are added to any more, in one block of bytes.

    Args:
        block: What `TrigramIndex.seal` has made, up to the end; any other bytes hold no texts.
        start: Where it begins.

    Attributes:
        view: The block.
        size: How many numbers there are for texts.
    """

    def __init__(self, block: mmap, start: int = 0) -> None:
        self.view = memoryview(block)[start:]
        self.at: tuple[Any, int] = (
            (ctypes.c_char * len(self.view)).from_buffer(block, start),
            len(self.view),
        )
        self.size = max(0, int(_library().sealed_texts(*self.at)))


class TrigramIndex:
    """Which numbers stand for texts with given trigrams; for one thread at a time, but for `seal`.

    Args:
        library: The library in C.
        handle: An empty index of it.
        sealed: Texts with the lowest numbers.

    Attributes:
        image: These texts; None for none.
        size: The number of the next text.
    """

    def __init__(self, library: Any, handle: int, sealed: TrigramImage | None = None) -> None:
        self._library = library
        self._handle = handle
        self.image = sealed
        self._sealing = threading.Lock()
        self.size = 0 if sealed is None else sealed.size

    @classmethod
    def open(cls, sealed: TrigramImage | None = None) -> Self | None:
        """An index of the texts of a block, or an empty one; None without the library in C."""
        library = _library()
        handle = None if library is None else library.trigram_new()
        return None if handle is None else cls(library, handle, sealed)

    def close(self) -> None:
        """Give the memory back; may be called twice."""
        with self._sealing:
            handle, self._handle, self.image = self._handle, 0, None
            self._library.trigram_free(handle or None)

    @property
    def added(self) -> int:
        """How many numbers of texts are behind those of the block."""
        return self.size - (0 if self.image is None else self.image.size)

    def add(self, text: bytes) -> int:
        """Take in a text, and return its number.

        Raises:
            MemoryError: There is no room.
        """
        number = self.size
        if _KELVIN in text or _LONG_S in text:
            # Where case does not matter, these are letters of ASCII.
            text += b"\n" + text.replace(_KELVIN, b"k").replace(_LONG_S, b"s")
        if text[-1:] != b"\n":
            text += b"\n"  # so that its last two bytes are in a trigram
        if not self._library.trigram_add(self._handle, number, text, len(text)):
            raise MemoryError("no room for the index of trigrams")
        self.size += 1
        return number

    def rest(self) -> None:
        """Give back what only adding needs, and what the system may have again."""
        vars(_rooms).pop("room", None)
        self._library.trigram_rest(self._handle)

    def seal(self, numbers: Sequence[int], texts: int) -> TrigramImage | None:
        """All its texts in a block; another thread may look something up meanwhile, and close it, but add nothing.

        Args:
            numbers: For each number what it is in the block, in the same order; `NO_TEXT` for what is left out.
            texts: How many numbers there are in the block.

        Returns:
            It; None where there is no room, or this was closed.
        """
        renumbered = array("I", numbers)
        given = (ctypes.c_uint32 * len(renumbered)).from_buffer(renumbered)
        with self._sealing:
            if not self._handle:
                return None
            sealed = (None, 0) if self.image is None else self.image.at
            size = self.memory + _LEAST_BLOCK
            while True:
                # Of its own, so that all of it goes back to the system one day.
                block = mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS)
                room = (ctypes.c_char * size).from_buffer(block)
                needed = self._library.trigram_seal(
                    *sealed, self._handle, given, len(renumbered), texts, room, size
                )
                del room
                if 0 < needed <= size:
                    break
                block.close()
                if not needed:
                    return None
                size = needed
        block.resize(needed)
        return TrigramImage(block)

    def find(self, needs: Needs) -> list[int]:
        """The numbers of the texts that may match, in order."""
        found: list[int] | None = None
        for group in sorted(needs, key=_is_short):
            if found is None:
                found = self._with_any(group)
            elif not _is_short(group):  # of two bytes there are many
                among = frozenset(self._with_any(group))
                found = [number for number in found if number in among]
        return list(range(self.size)) if found is None else found

    def _with_any(self, group: Sequence[bytes]) -> list[int]:
        if len(group) == 1:
            return self._with(group[0])
        return sorted({number for literal in group for number in self._with(literal)})

    def _with(self, literal: bytes) -> list[int]:
        room = max(self.size, 1)
        out = (ctypes.c_uint32 * room)()
        count = 0
        if self.image is not None:
            asked = *self.image.at, literal, len(literal), out, room
            count = self._library.sealed_find(*asked)
        if count >= 0 and self.added:
            behind = ctypes.byref(out, 4 * count)
            more = self._library.trigram_find(
                self._handle, literal, len(literal), behind, room - count
            )
            count = -1 if more < 0 else count + more
        return list(range(self.size)) if count < 0 else out[:count]

    @property
    def memory(self) -> int:
        """Bytes that it takes, about."""
        sealed = 0 if self.image is None else len(self.image.view)
        return sealed + int(self._library.trigram_memory(self._handle))


def _is_short(group: Sequence[bytes]) -> bool:
    return min(map(len, group)) < _THREE


NO_TEXT: Final = 0xFFFF_FFFF
"""What stands for the number of a text that is left out."""

_LEAST_BLOCK: Final = 1 << 16
_THREE: Final = 3
_ROOM: Final = 1 << 20
_AT_ONCE: Final = 1_024
_LACKING: Final = -2
_LACKING_IN_UTF8: Final = -3
_FIELDS: Final = 4
_rooms = threading.local()

SmallFile = tuple[bytes, tuple[int, ...]]
"""The bytes of a file, and its inode, size and both times."""

FileRead = SmallFile | bool | None
"""What was read of a file: what it holds; False where that is not what is wanted, True where it is not in UTF-8;
None for what has to be read in another way, which tells what it is."""


def read_files(
    folder: int,
    resolve: int,
    paths: Sequence[str],
    needs: Needs = (),
    *,
    fold: bool = False,
    odd: Sequence[bytes] = (),
) -> Iterator[FileRead]:
    """Read regular files that have one name and are not large, each in one state.

    Args:
        folder: Descriptor of the folder that the paths start from.
        resolve: Flags of openat2, as of `kernel`.
        paths: The files.
        needs: What a file must hold as bytes to be wanted.
        fold: Whether the case of ASCII letters does not matter in that.
        odd: Words by which a file is wanted as well, and by bytes that are no text in UTF-8, if there are any.

    Yields:
        What was read of each.
    """
    library, at = _library(), 0
    packed, strange = _packed(needs, fold), _packed((odd,) if odd else (), fold=False)
    while library is not None and at < len(paths):
        some = paths[at : at + _AT_ONCE]
        room = _room()
        records = (ctypes.c_int64 * (_FIELDS * len(some)))()
        names = os.fsencode("\0".join(some)) + b"\0"
        done = library.read_files(
            folder,
            resolve,
            names,
            len(some),
            packed,
            len(packed),
            fold,
            strange,
            len(strange),
            room,
            _ROOM,
            records,
        )
        at += done
        got: list[FileRead] = [False] * done
        start = 0
        view = memoryview(room)
        for number, size in enumerate(records[: _FIELDS * done : _FIELDS]):
            if size >= 0:
                _, inode, *times = records[_FIELDS * number : _FIELDS * (number + 1)]
                got[number] = (bytes(view[start : start + size]), (inode, size, *times))
                start += size
            elif size != _LACKING:
                got[number] = True if size == _LACKING_IN_UTF8 else None
        yield from got
    for _ in range(at, len(paths)):
        yield None


def list_folders(folder: int, resolve: int, paths: Sequence[str]) -> Iterator[list[str] | None]:
    """List folders; arguments as for `read_files`.

    Yields:
        For each its names in any order; behind those of folders stands ``/``, behind those of links ``/@``, behind
        those of what is neither nor a file ``/?``.  None for what has to be listed in another way.
    """
    library, at = _library(), 0
    while library is not None and at < len(paths):
        some = paths[at : at + _AT_ONCE]
        room = _room()
        sizes = (ctypes.c_int64 * len(some))()
        names = os.fsencode("\0".join(some)) + b"\0"
        done = library.list_folders(folder, resolve, names, len(some), room, _ROOM, sizes)
        at += done
        view, start = memoryview(room), 0
        got: list[list[str] | None] = []
        for size in sizes[:done]:
            if size > 0:
                got.append(os.fsdecode(bytes(view[start : start + size - 1])).split("\0"))
                start += size
            else:
                got.append(None if size else [])
        yield from got
    for _ in range(at, len(paths)):
        yield None


def _room() -> Any:
    """Room for what the library reads, for this thread."""
    room = getattr(_rooms, "room", None)
    if room is None:
        room = _rooms.room = (ctypes.c_char * _ROOM)()
    return room


_MOST_LINES: Final = 4_096


FoundLine = tuple[int, int, int, int]
"""In which of some texts a line is, the offsets of its start, of what it holds, and of its end without its LF."""

NO_LINE: Final = 0xFFFF_FFFF
"""The start in a `FoundLine` where it is not known which lines of the text hold something."""


def find_lines(
    texts: Sequence[bytes], needs: Needs, *, fold: bool = False
) -> list[FoundLine] | None:
    """The lines of some texts that hold literals, in order; None without the library in C.

    Args:
        texts: The texts.
        needs: What a line must hold; not nothing.
        fold: Whether the case of letters does not matter.
    """
    library = _library()
    if library is None:
        return None
    packed = _packed(needs, fold)
    found: list[FoundLine] = []
    at = 0
    done = ctypes.c_uint32()
    out = (ctypes.c_uint32 * (4 * _MOST_LINES))()
    while at < len(texts):
        some = texts[at:] if at else texts
        pointers = (ctypes.c_char_p * len(some))(*some)
        sizes = (ctypes.c_uint64 * len(some))(*map(len, some))
        count = library.find_lines(
            pointers,
            sizes,
            len(some),
            packed,
            len(packed),
            fold,
            out,
            _MOST_LINES,
            ctypes.byref(done),
        )
        fields = iter(out[: 4 * count])
        lines = zip(fields, fields, fields, fields, strict=True)
        found += [(at + number, start, hit, end) for number, start, hit, end in lines]
        at += done.value
    return found


def _packed(needs: Sequence[Sequence[bytes]], fold: bool) -> bytes:
    """Literals as the library takes them: each behind its length, 0 behind a group."""
    parts: list[bytes] = []
    for group in needs:
        for literal in group:
            parts += (len(literal).to_bytes(4, sys.byteorder), literal.lower() if fold else literal)
        parts.append(bytes(4))
    return b"".join(parts)
