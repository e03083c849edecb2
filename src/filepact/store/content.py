"""Contents of files by their id: small ones in rows, large ones in files beside the journal.

Each is kept whole, or as a delta against another that is kept.  A delta names how much the two
share at their beginnings and ends; what stands between is compressed with the neighbourhood of the
same place in the base as dictionary.  Trimming first keeps one changed line in ten megabytes at
some dozens of bytes, where a dictionary alone reaches only a part of so large a text.

Files are named by content id and written only inside a writing transaction, so two processes never
write one at the same time.
"""

from __future__ import annotations

import os
import struct
from functools import cached_property
from typing import TYPE_CHECKING

from filepact.compression import compress, decompress
from filepact.domain.document import content_id
from filepact.errors import NotFoundError, StateFailedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from filepact.store.transaction import Transaction

__all__ = [
    "LONGEST_CHAIN",
    "ROW_LIMIT",
    "ContentStore",
    "pack",
    "pack_against",
    "pack_best",
    "unpack",
    "unpack_against",
]

ROW_LIMIT = 65_536
"""Most compressed bytes that are kept in a row."""

LONGEST_CHAIN = 32
"""Most deltas between a content and one that is kept whole."""

_LINK = (
    "SELECT lower(hex(c.id)), c.size, c.base, c.kept, i.data"
    " FROM content c LEFT JOIN image i USING (number) WHERE c.number = ?"
)


Near = tuple[int, int, bytes]
"""The number of a content that another may need, its depth, and its bytes."""


class ContentStore:
    """The tables ``content`` and ``image`` and the folder of large contents.

    All methods but `remove_strays` belong into a transaction of the caller.

    Args:
        folder: Where large contents are kept; made when the first one comes.
    """

    def __init__(self, folder: str) -> None:
        self._named = folder

    @cached_property
    def _folder(self) -> Path:
        from pathlib import Path  # noqa: PLC0415 - takes its time to load; few contents are large

        return Path(self._named)

    # -- storing ------------------------------------------------------------------------------

    def number(self, tx: Transaction, name: str) -> int | None:
        """The number of a content that is kept; None for any other."""
        key = (bytes.fromhex(name),)
        row = tx.one("SELECT number FROM content WHERE id = ? AND kept <> 'gone'", key)
        return None if row is None else int(row[0])

    def put(
        self, tx: Transaction, name: str, contents: Mapping[str, bytes], *, base: int | None = None
    ) -> int:
        """Keep a content unless it is kept already.

        Args:
            tx: In a writing transaction.
            name: The content id.
            contents: Bytes by their ids, which are taken to be right; others may serve as bases.
            base: The number of a content that is probably much alike.

        Returns:
            The number of the content.

        Raises:
            ValueError: The bytes are missing.
        """
        key = bytes.fromhex(name)
        row = tx.one("SELECT number, kept FROM content WHERE id = ?", (key,))
        if row is not None and row[1] != "gone":
            return int(row[0])
        data = contents.get(name)
        if data is None:
            raise ValueError(f"the bytes of content {name} were not given")
        near = self._near(tx, base, contents)
        if row is None:
            return self._add(tx, name, data, near)
        packed, used, depth = _packed(data, near)
        # A content that was known by its id only had no size.
        tx.run("UPDATE content SET size = ? WHERE number = ?", (len(data), row[0]))
        self._keep(tx, int(row[0]), name, packed, base=used, depth=depth)
        return int(row[0])

    def _add(self, tx: Transaction, name: str, data: bytes, near: Near | None) -> int:
        """Keep a content that is not in the table at all; returns its number."""
        packed, used, depth = _packed(data, near)
        kept = self._write_large(name, packed, used)
        number = int(
            tx.value(
                "INSERT INTO content (id, size, kept, base, depth, stored)"
                " VALUES (?, ?, ?, ?, ?, ?) RETURNING number",
                (bytes.fromhex(name), len(data), kept, used, depth, len(packed)),
            )
        )
        if kept == "row":
            tx.run("INSERT INTO image VALUES (?, ?)", (number, packed))
        return number

    def put_if_given(
        self, tx: Transaction, name: str, contents: Mapping[str, bytes], *, base: int | None = None
    ) -> int:
        """Store a content as `put` does; where its bytes are missing, keep only the id."""
        if name in contents:
            return self.put(tx, name, contents, base=base)
        key = bytes.fromhex(name)
        tx.run(
            "INSERT OR IGNORE INTO content (id, size, kept, base, depth, stored)"
            " VALUES (?, 0, 'gone', NULL, 0, 0)",
            (key,),
        )
        return int(tx.value("SELECT number FROM content WHERE id = ?", (key,)))

    def make_whole(self, tx: Transaction, number: int) -> int:
        """Keep a content without a base from now on.

        Returns:
            How many bytes more it takes than before; may be negative.
        """
        query = "SELECT lower(hex(id)), stored FROM content WHERE number = ?"
        [(name, stored)] = tx.all(query, (number,))
        packed = pack(self.load(tx, number))
        self._keep(tx, number, name, packed, base=None, depth=0)
        return len(packed) - int(stored)

    def drop(self, tx: Transaction, number: int) -> int:
        """Give up a content that is nobody's base; its file stays until `remove_strays`.

        Returns:
            How many bytes it took.
        """
        stored = tx.value("SELECT stored FROM content WHERE number = ?", (number,))
        tx.run(
            "UPDATE content SET kept = 'gone', base = NULL, depth = 0, stored = 0 WHERE number = ?",
            (number,),
        )
        tx.run("DELETE FROM image WHERE number = ?", (number,))
        return int(stored)

    def _near(
        self, tx: Transaction, base: int | None, contents: Mapping[str, bytes]
    ) -> Near | None:
        """A content against which others may be kept."""
        row = None
        if base is not None:
            row = tx.one(
                "SELECT lower(hex(id)), depth FROM content WHERE number = ? AND kept <> 'gone'",
                (base,),
            )
        if base is None or row is None or row[1] >= LONGEST_CHAIN:
            return None
        name, depth = row
        known = contents.get(name)
        return base, depth, self.load(tx, base) if known is None else known

    def _keep(
        self,
        tx: Transaction,
        number: int,
        name: str,
        packed: bytes,
        *,
        base: int | None,
        depth: int,
    ) -> None:
        kept = self._write_large(name, packed, base)
        tx.run("DELETE FROM image WHERE number = ?", (number,))
        if kept == "row":
            tx.run("INSERT INTO image VALUES (?, ?)", (number, packed))
        tx.run(
            "UPDATE content SET kept = ?, base = ?, depth = ?, stored = ? WHERE number = ?",
            (kept, base, depth, len(packed), number),
        )

    def _write_large(self, name: str, packed: bytes, base: int | None) -> str:
        """Write a content that is too large for a row into its file; ``row`` or ``file``."""
        if len(packed) <= ROW_LIMIT:
            return "row"
        self._write(self._place(name, base), packed)
        return "file"

    # -- reading ------------------------------------------------------------------------------

    def find(self, tx: Transaction, name: str) -> bytes:
        """Stored bytes by content id, verified.

        Raises:
            NotFoundError: They were never kept, or were given up.
            StateFailedError: They are damaged.
        """
        try:
            key = bytes.fromhex(name)
        except ValueError:
            key = b""
        row = tx.one("SELECT number, kept FROM content WHERE id = ?", (key,))
        if row is None:
            raise NotFoundError(f"no content {name[:12]} is in the journal")
        if row[1] == "gone":
            raise NotFoundError(
                f"content {name[:12]} was given up to make room",
                hint="Operations this old can be shown but not undone.",
            )
        return self.load(tx, int(row[0]))

    def load(
        self, tx: Transaction, number: int, loaded: Mapping[int, bytes] | None = None
    ) -> bytes:
        """Stored bytes by number, verified; as `find`.

        Args:
            tx: In a transaction.
            number: The content.
            loaded: ContentStore by number that were verified already and may serve as bases.
        """
        links: list[tuple[bytes, int, str]] = []
        data: bytes | None = None
        at: int | None = number
        while at is not None and data is None:
            row = tx.one(_LINK, (at,))
            if row is None:
                raise _damaged(links[0][2] if links else str(number))
            name, size, base, kept, packed = row
            if kept == "file":
                packed = self._read(name, base)
            if packed is None or len(links) > LONGEST_CHAIN:
                raise _damaged(name)
            links.append((packed, size, name))
            at = base
            if loaded is not None and at is not None:
                data = loaded.get(at)
        name = links[0][2]
        try:
            while links:
                packed, size, _ = links.pop()
                data = unpack(packed, size) if data is None else unpack_against(packed, data, size)
        except ValueError as error:
            raise _damaged(name) from error
        if data is None or content_id(data) != name:
            raise _damaged(name)
        return data

    # -- files --------------------------------------------------------------------------------

    def _place(self, name: str, base: int | None) -> Path:
        """The path of a content; the two forms of one content never overwrite each other."""
        form = "" if base is None else f"-{base}"
        return self._folder / name[:2] / f"{name[2:]}{form}"

    def _read(self, name: str, base: int | None) -> bytes:
        try:
            return self._place(name, base).read_bytes()
        except FileNotFoundError as error:
            raise _damaged(name) from error

    def _write(self, place: Path, packed: bytes) -> None:
        """Write a file durably, with its folder entry, before a row names it."""
        for folder in (self._folder, place.parent):
            if not folder.is_dir():
                folder.mkdir(mode=0o700)
                sync(folder.parent)
        fresh = place.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(packed)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(place)
        sync(place.parent)

    def files(self, tx: Transaction, numbers: Sequence[int]) -> list[Path]:
        """The files in which contents are kept, of those that have one."""
        rows = tx.among(
            "SELECT lower(hex(id)), base FROM content WHERE kept = 'file' AND number IN {wanted}",
            numbers,
        )
        return [self._place(name, base) for name, base in rows]

    def remove_strays(self, tx: Transaction, among: Iterable[Path] | None = None) -> None:
        """Remove files that no row names: of contents given up, or from a crash.

        Args:
            tx: In a writing transaction that did nothing else, so that nobody writes
                files meanwhile and what the rows tell is already on the disk.
            among: Only these; None for all that there are.
        """
        for file in self.strays(tx, among):
            file.unlink(missing_ok=True)

    def strays(self, tx: Transaction, among: Iterable[Path] | None = None) -> list[Path]:
        """The files that no row names, among some or all."""
        if among is None:
            among = self._folder.glob("??/*") if os.path.exists(self._named) else ()
        rows = tx.all("SELECT lower(hex(id)), base FROM content WHERE kept = 'file'")
        wanted = {self._place(name, base) for name, base in rows}
        return [file for file in among if file not in wanted]


def sync(place: str | Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _damaged(name: str) -> StateFailedError:
    return StateFailedError(
        f"content {name[:12]} is damaged in the journal",
        hint="Nothing was changed. What needs it cannot be taken back.",
    )


_HEADER = struct.Struct("<QQ")
_NEIGHBOURHOOD = 65_536
_LONGEST_DICTIONARY = 8_388_608
_STEP = 65_536
_ALONE = 1_024
"""Bytes up to which a middle is compressed without its neighbourhood: it would gain less than a
quarter by that, and loading so much text takes longer than all else that is written with it."""


def pack(data: bytes) -> bytes:
    """Compressed bytes that need nothing else to be read."""
    return compress(data)


def _packed(data: bytes, near: Near | None) -> tuple[bytes, int | None, int]:
    """Packed bytes, the number of the base that they need, and the depth."""
    if near is None or near[1] >= LONGEST_CHAIN:
        return pack(data), None, 0
    packed, used = pack_best(data, near[2])
    return (packed, near[0], near[1] + 1) if used else (packed, None, 0)


def pack_best(data: bytes, base: bytes) -> tuple[bytes, bool]:
    """Packed bytes, and whether they need the base to be read."""
    delta = pack_against(data, base)
    if len(delta) * 4 > len(data):
        # A delta that saves little is not worth being read through another content.
        whole = pack(data)
        if len(delta) * 2 > len(whole):
            return whole, False
    return delta, True


def unpack(packed: bytes, size: int) -> bytes:
    """The bytes that `pack` was given.

    Args:
        packed: What `pack` returned.
        size: How many bytes it must come to.

    Raises:
        ValueError: It is not what `pack` returned.
    """
    return decompress(packed, size)


def pack_against(data: bytes, base: bytes) -> bytes:
    """Compressed bytes that need ``base`` to be read."""
    start = _shared(data, base)
    end = _shared_end(data, base, min(len(data), len(base)) - start)
    middle = data[start : len(data) - end]
    header = _HEADER.pack(start, end)
    if not middle:
        return header
    near = _near(base, start, end) if len(middle) > _ALONE else b""
    return header + compress(middle, near=near)


def unpack_against(packed: bytes, base: bytes, size: int) -> bytes:
    """The bytes that `pack_against` was given.

    Args:
        packed: What `pack_against` returned.
        base: The same bytes that it was given.
        size: How many bytes it must come to.

    Raises:
        ValueError: It is not what `pack_against` returned for this base.
    """
    if len(packed) < _HEADER.size:
        raise ValueError("a delta without its header")
    start, end = _HEADER.unpack_from(packed)
    length = size - start - end
    if length < 0 or start + end > len(base):
        raise ValueError("a delta of another base")
    middle = b""
    if length:
        middle = decompress(packed[_HEADER.size :], length, near=_near(base, start, end))
    return base[:start] + middle + base[len(base) - end :]


def _near(base: bytes, start: int, end: int) -> bytes:
    """The base around the place that changed, as a dictionary; empty when too little is there to help."""
    first = max(0, start - _NEIGHBOURHOOD)
    last = min(len(base), len(base) - end + _NEIGHBOURHOOD, first + _LONGEST_DICTIONARY)
    near = base[first:last]
    return near if len(near) >= 8 else b""


def _shared(one: bytes, two: bytes) -> int:
    """The length of the common prefix of two texts, in bytes."""
    limit = min(len(one), len(two))
    at = 0
    step = _STEP
    while at < limit and step:
        if one[at : at + step] == two[at : at + step]:
            at = min(at + step, limit)
        else:
            step //= 2
    return at


def _shared_end(one: bytes, two: bytes, limit: int) -> int:
    """The length of the common suffix of two texts, in bytes, at most ``limit``."""
    at = 0
    step = _STEP
    while at < limit and step:
        width = min(step, limit - at)
        left = one[len(one) - at - width : len(one) - at]
        if left == two[len(two) - at - width : len(two) - at]:
            at += width
        else:
            step = width // 2
    return at
