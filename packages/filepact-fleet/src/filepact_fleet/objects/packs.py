"""Packs: the bytes of many files in one object, so that thousands of small files are not thousands of requests.

A pack has no table of its own: the manifest says where each file's bytes begin and how many they are.  Its name is used once and
never again, whatever it holds, so that whoever removes a pack that nothing names cannot remove one that is just being written.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from filepact.compression import compress, decompress
from filepact.domain.document import content_id
from filepact.errors import SharedDamagedError
from filepact_fleet.manifest import ManifestEntry
from filepact_fleet.objects.bucket import UnknownItemError, put_new

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from filepact_fleet.manifest import FileState
    from filepact_fleet.objects.bucket import Bucket

__all__ = ["LARGEST_CONTENT", "PACKS", "PackReader", "pack_name", "write_packs"]

PACKS: Final = "packs/"
_PACK: Final = 8 << 20
"""Bytes after which a pack is full; one larger file has one for itself."""
LARGEST_CONTENT: Final = 1 << 26
"""As many bytes as a file may have that a change of ours can write."""
_GAP: Final = 1 << 16
"""Bytes that are rather read and thrown away than asked for around them."""
_TOGETHER: Final = 32 << 20
"""Bytes of packs that are in memory at one time."""


def pack_name(change: str, number: int) -> str:
    """The name of a pack: of the change that writes it, and its number among that change's."""
    return f"{PACKS}{change}-{number}"


def write_packs(
    bucket: Bucket,
    change: str,
    wanted: Iterable[FileState],
    contents: Callable[[str], bytes],
    first: int = 0,
) -> dict[str, ManifestEntry]:
    """Write what files are to hold, each content once.

    Args:
        bucket: Where.
        change: The id that the packs are named by; no other change has it.
        wanted: The files.
        contents: The bytes by their SHA-256.
        first: The number of the first pack.

    Returns:
        Where each content is, by its SHA-256; of the entries, the mode means nothing.
    """
    placed: dict[str, ManifestEntry] = {}
    parts: list[bytes] = []
    size, number = 0, first

    def flush() -> None:
        nonlocal size, number
        if parts:
            put_new(bucket, pack_name(change, number), b"".join(parts))
            parts.clear()
            size, number = 0, number + 1

    for state in wanted:
        if state.content in placed:
            continue
        data = contents(state.content)
        if content_id(data) != state.content or len(data) != state.size:
            raise ValueError(f"other bytes than {state.content}")
        packed = compress(data)
        held = packed if len(packed) < len(data) else data
        if size and size + len(held) > _PACK:
            flush()
        placed[state.content] = ManifestEntry(
            state.content, state.size, 0, pack_name(change, number), size, len(held)
        )
        parts.append(held)
        size += len(held)
    flush()
    return placed


class PackReader:
    """Reads what files hold, and believes nothing that it has not checked.

    Args:
        bucket: Where the packs are.
    """

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def one(self, entry: ManifestEntry) -> bytes:
        """The bytes of one file.

        Raises:
            SharedDamagedError: They are others, or not there.
        """
        for _, data in self.all([entry]):
            return data
        raise AssertionError("one file has one content")

    def all(self, entries: Iterable[ManifestEntry]) -> Iterator[tuple[ManifestEntry, bytes]]:
        """The bytes of many files, a few packs at a time, each content once; errors as `one`."""
        packs: dict[str, dict[str, ManifestEntry]] = defaultdict(dict)
        for entry in entries:
            packs[entry.pack].setdefault(entry.content, entry)
        for pack, held in packs.items():
            group: list[ManifestEntry] = []
            size = 0
            for entry in sorted(held.values(), key=lambda one: one.offset):
                if group and size + entry.length > _TOGETHER:
                    yield from self._read(pack, group)
                    group, size = [], 0
                group.append(entry)
                size += entry.length
            yield from self._read(pack, group)

    def _read(
        self, pack: str, entries: list[ManifestEntry]
    ) -> Iterator[tuple[ManifestEntry, bytes]]:
        ranges = _joined(one for one in entries if one.length)
        try:
            parts = self._bucket.get_ranges(pack, ranges)
        except UnknownItemError:
            raise SharedDamagedError(
                f"a pack of the shared workspace is missing or cut short: {pack}",
                hint="`filepact workspace check` lists all files that cannot be read.",
            ) from None
        for entry in entries:
            yield entry, _unpacked(entry, _part(entry, ranges, parts))


def _joined(entries: Iterable[ManifestEntry]) -> list[tuple[int, int]]:
    """What to ask for, by first byte and length: what lies near together, at once."""
    found: list[tuple[int, int]] = []
    for entry in entries:
        begin, end = entry.offset, entry.offset + entry.length
        if found and begin <= sum(found[-1]) + _GAP and end - found[-1][0] <= _TOGETHER:
            found[-1] = (found[-1][0], max(sum(found[-1]), end) - found[-1][0])
        else:
            found.append((begin, entry.length))
    return found


def _part(entry: ManifestEntry, ranges: list[tuple[int, int]], parts: list[bytes]) -> bytes:
    for (begin, length), part in zip(ranges, parts, strict=True):
        if begin <= entry.offset and entry.offset + entry.length <= begin + length:
            return part[entry.offset - begin : entry.offset - begin + entry.length]
    return b""


def _unpacked(entry: ManifestEntry, held: bytes) -> bytes:
    data: bytes | None = None
    if len(held) == entry.length:
        try:
            # The size was checked against the largest before anything was read.
            data = held if entry.length == entry.size else decompress(held, entry.size)
        except ValueError:
            data = None
    if data is None or content_id(data) != entry.content:
        raise _wrong(entry)
    return data


def _wrong(entry: ManifestEntry) -> SharedDamagedError:
    return SharedDamagedError(
        f"the content of a file in the shared workspace is damaged, in {entry.pack}",
        hint="Nothing was done with it. `filepact workspace check` lists all such files.",
        pack=entry.pack,
    )
