"""Contents of files by their id: small ones in rows, large ones in files beside the journal.

Each is kept whole or as a delta against another that is kept.  Files are named by content id and
written only inside a writing transaction, so two processes never write one at the same time.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from filepact.domain.document import content_id
from filepact.errors import NotFoundError, StateFailedError
from filepact.store.delta import pack, pack_against, unpack, unpack_against

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from filepact.store.connection import View

__all__ = ["LONGEST_CHAIN", "ROW_LIMIT", "Contents"]

ROW_LIMIT = 65_536
"""Most compressed bytes that are kept in a row."""

LONGEST_CHAIN = 32
"""Most deltas between a content and one that is kept whole."""

_LINK = (
    "SELECT lower(hex(c.id)), c.size, c.base, c.kept, i.data"
    " FROM content c LEFT JOIN image i USING (number) WHERE c.number = ?"
)


class Contents:
    """The tables ``content`` and ``image`` and the folder of large contents.

    All methods but `remove_strays` belong into a transaction of the caller.

    Args:
        folder: Where large contents are kept; made when the first one comes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    # -- storing ------------------------------------------------------------------------------

    def put(
        self,
        view: View,
        name: str,
        contents: Mapping[str, bytes],
        *,
        base: int | None = None,
    ) -> int:
        """Keep a content unless it is kept already.

        Args:
            view: In a writing transaction.
            name: The content id.
            contents: Its bytes by id; others may serve as bases.
            base: The number of a content that is probably much alike.

        Returns:
            The number of the content.

        Raises:
            ValueError: The bytes are missing or are not those of the id.
        """
        key = bytes.fromhex(name)
        row = view.one("SELECT number, kept FROM content WHERE id = ?", (key,))
        if row is not None and row[1] != "gone":
            return int(row[0])
        data = contents.get(name)
        if data is None or content_id(data) != name:
            raise ValueError(f"the bytes of content {name} were not given")
        packed, used, depth = self._pack(view, data, base, contents)
        if row is None:
            number = view.value(
                "INSERT INTO content (id, size, kept, base, depth, stored)"
                " VALUES (?, ?, 'gone', NULL, 0, 0) RETURNING number",
                (key, len(data)),
            )
        else:
            number = row[0]
            # A content that was known by its id only had no size.
            view.run("UPDATE content SET size = ? WHERE number = ?", (len(data), number))
        self._keep(view, int(number), name, packed, base=used, depth=depth)
        return int(number)

    def put_if_given(
        self,
        view: View,
        name: str,
        contents: Mapping[str, bytes],
        *,
        base: int | None = None,
    ) -> int:
        """As `put`, but when the bytes are missing only the id is kept."""
        if name in contents:
            return self.put(view, name, contents, base=base)
        key = bytes.fromhex(name)
        view.run(
            "INSERT OR IGNORE INTO content (id, size, kept, base, depth, stored)"
            " VALUES (?, 0, 'gone', NULL, 0, 0)",
            (key,),
        )
        return int(view.value("SELECT number FROM content WHERE id = ?", (key,)))

    def make_whole(self, view: View, number: int) -> int:
        """Keep a content without a base from now on.

        Returns:
            How many bytes more it takes than before; may be negative.
        """
        query = "SELECT lower(hex(id)), stored FROM content WHERE number = ?"
        [(name, stored)] = view.all(query, (number,))
        packed = pack(self.load(view, number))
        self._keep(view, number, name, packed, base=None, depth=0)
        return len(packed) - int(stored)

    def drop(self, view: View, number: int) -> int:
        """Give up a content that is nobody's base; its file stays until `remove_strays`.

        Returns:
            How many bytes it took.
        """
        stored = view.value("SELECT stored FROM content WHERE number = ?", (number,))
        view.run(
            "UPDATE content SET kept = 'gone', base = NULL, depth = 0, stored = 0 WHERE number = ?",
            (number,),
        )
        view.run("DELETE FROM image WHERE number = ?", (number,))
        return int(stored)

    def _pack(
        self,
        view: View,
        data: bytes,
        base: int | None,
        contents: Mapping[str, bytes],
    ) -> tuple[bytes, int | None, int]:
        """Packed bytes, the number of the base that they need, and the depth."""
        row = None
        if base is not None:
            row = view.one(
                "SELECT lower(hex(id)), depth FROM content WHERE number = ? AND kept <> 'gone'",
                (base,),
            )
        if base is None or row is None or row[1] >= LONGEST_CHAIN:
            return pack(data), None, 0
        name, depth = row
        known = contents.get(name)
        delta = pack_against(data, self.load(view, base) if known is None else known)
        if len(delta) * 4 > len(data):
            # A delta that saves little is not worth being read through another content.
            whole = pack(data)
            if len(delta) * 2 > len(whole):
                return whole, None, 0
        return delta, base, depth + 1

    def _keep(
        self,
        view: View,
        number: int,
        name: str,
        packed: bytes,
        *,
        base: int | None,
        depth: int,
    ) -> None:
        inside = len(packed) <= ROW_LIMIT
        if inside:
            view.run("INSERT OR REPLACE INTO image VALUES (?, ?)", (number, packed))
        else:
            view.run("DELETE FROM image WHERE number = ?", (number,))
            self._write(self._place(name, base), packed)
        view.run(
            "UPDATE content SET kept = ?, base = ?, depth = ?, stored = ? WHERE number = ?",
            ("row" if inside else "file", base, depth, len(packed), number),
        )

    # -- reading ------------------------------------------------------------------------------

    def find(self, view: View, name: str) -> bytes:
        """Stored bytes by content id, verified.

        Raises:
            NotFoundError: They were never kept, or were given up.
            StateFailedError: They are damaged.
        """
        try:
            key = bytes.fromhex(name)
        except ValueError:
            key = b""
        row = view.one("SELECT number, kept FROM content WHERE id = ?", (key,))
        if row is None:
            raise NotFoundError(f"no content {name[:12]} is in the journal")
        if row[1] == "gone":
            raise NotFoundError(
                f"content {name[:12]} was given up to make room",
                hint="Operations this old can be looked at but not be taken back.",
            )
        return self.load(view, int(row[0]))

    def load(self, view: View, number: int, loaded: Mapping[int, bytes] | None = None) -> bytes:
        """Stored bytes by number, verified; as `find`.

        Args:
            view: In a transaction.
            number: The content.
            loaded: Contents by number that were verified already and may serve as bases.
        """
        links: list[tuple[bytes, int, str]] = []
        data: bytes | None = None
        at: int | None = number
        while at is not None and data is None:
            row = view.one(_LINK, (at,))
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
        """Where a content is kept; the two forms of one content never overwrite each other."""
        form = "" if base is None else f"-{base}"
        return self._folder / name[:2] / f"{name[2:]}{form}"

    def _read(self, name: str, base: int | None) -> bytes:
        try:
            return self._place(name, base).read_bytes()
        except FileNotFoundError as error:
            raise _damaged(name) from error

    def _write(self, place: Path, packed: bytes) -> None:
        """Put a file on the disk, name and all, before a row may tell of it."""
        for folder in (self._folder, place.parent):
            if not folder.is_dir():
                folder.mkdir(mode=0o700)
                _sync(folder.parent)
        fresh = place.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(packed)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(place)
        _sync(place.parent)

    def files(self, view: View, numbers: Sequence[int]) -> list[Path]:
        """The files in which contents are kept, of those that have one."""
        rows = view.all(
            "SELECT lower(hex(id)), base FROM content"
            " WHERE kept = 'file' AND number IN (SELECT value FROM json_each(?))",
            (json.dumps(list(numbers)),),
        )
        return [self._place(name, base) for name, base in rows]

    def remove_strays(self, view: View, among: Iterable[Path] | None = None) -> None:
        """Remove files that no row tells of: of contents given up, or from a crash.

        Args:
            view: In a writing transaction that did nothing else, so that nobody writes
                files meanwhile and what the rows tell is already on the disk.
            among: Only these; None for all that there are.
        """
        for file in self.strays(view, among):
            file.unlink(missing_ok=True)

    def strays(self, view: View, among: Iterable[Path] | None = None) -> list[Path]:
        """The files that no row tells of, of some or of all."""
        files = self._folder.glob("??/*") if among is None else among
        rows = view.all("SELECT lower(hex(id)), base FROM content WHERE kept = 'file'")
        wanted = {self._place(name, base) for name, base in rows}
        return [file for file in files if file not in wanted]


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _damaged(name: str) -> StateFailedError:
    return StateFailedError(
        f"content {name[:12]} is damaged in the journal",
        hint="Nothing was changed. What needs it cannot be taken back.",
    )
