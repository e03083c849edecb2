"""The form of what lies in a shared workspace: its head and the shards of its manifest.

The head is the one object that changes: it names the shards, and has the latest changes in itself, so that a change of few
files writes one pack and the head.  When there are too many of those, they go into the shards that they belong to.

The ids of changes stay for long: the latest in the head, those before them in pages, each of which names the one before it.
"""

from __future__ import annotations

import json
from hashlib import sha256
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from filepact.compression import compress, decompress
from filepact.domain.document import content_id
from filepact.errors import SharedDamagedError
from filepact.values import dataclass, field, late_regex
from filepact_fleet.manifest import MOST_FILES, ManifestEntry, check_path
from filepact_fleet.objects.packs import LARGEST_CONTENT, PACKS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "HEAD",
    "LATEST",
    "MISTOLD",
    "PAGES",
    "SHARDS",
    "ChangePage",
    "Head",
    "ManifestPage",
    "read_head",
    "read_page",
    "read_shard",
    "read_time",
    "shard_count",
    "shard_of",
    "shown_head",
    "shown_page",
    "shown_shard",
]

HEAD: Final = "head"
SHARDS: Final = "shards/"
PAGES: Final = "changes/"
LATEST: Final = 256
"""Ids of changes that a page has, and the head at least; it has up to twice as many."""
_FORM: Final = "filepact workspace 1"
_LARGEST_HEAD: Final = 1 << 20
_LARGEST_SHARD: Final = 64 << 20
_MOST_SHARDS: Final = 256
_FULL: Final = 1_024  # files of a shard
_ID: Final = late_regex(r"[a-z0-9]{4,64}")
_OBJECT: Final = late_regex(r"[a-z0-9]{4,64}-[0-9]{1,9}")
_HASH: Final = late_regex(r"[0-9a-f]{64}")
_MODES: Final = 0o777
_LONGEST_NAME: Final = 200
MISTOLD: Final = (
    *(ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError),
)
"""What is raised where JSON that others wrote is not what was expected."""


@dataclass(frozen=True, slots=True)
class ManifestPage:
    """A shard: the object, the SHA-256 of its bytes, and how many files it names."""

    name: str
    content: str
    files: int


@dataclass(frozen=True, slots=True)
class Head:
    """One version of a shared workspace.

    Attributes:
        workspace: Its id; the same for as long as it is there.
        number: How many versions came before.
        change: The id of the change that made this one.
        parent: That of the one before; empty for none.
        by: Who made it, for people.
        at: When, by that machine's clock, in seconds; for people.
        shards: Where the files are named, by the beginning of a hash of the path.
        delta: What differs from that; None for a file that is not there any more.
        latest: The ids of the latest changes, this one first, and of the requests that they were made for.
        earlier: The page with the ids before them; empty for none.
        oldest: The last page that counts; empty for all of them.
        since: Ids of changes that are not of a later version may have been given up with the pages before that.
        tag: What the server calls this state of the object.
    """

    workspace: str
    number: int
    change: str
    parent: str
    by: str
    at: float
    shards: tuple[ManifestPage, ...]
    delta: Mapping[str, ManifestEntry | None]
    latest: tuple[str, ...]
    earlier: str = ""
    oldest: str = ""
    since: int = 0
    tag: str = field(default="", compare=False)


def shard_count(files: int) -> int:
    """How many shards so many files are named in; a power of two."""
    return min(_MOST_SHARDS, 1 << max(0, (files - 1) // _FULL).bit_length())


def shard_of(path: str, shards: int) -> int:
    """Which of so many shards names a file."""
    return int.from_bytes(sha256(path.encode()).digest()[:2], "big") % shards


def shown_head(head: Head) -> bytes:
    """A head as it is stored."""
    return json.dumps(
        {
            "form": _FORM,
            "workspace": head.workspace,
            "number": head.number,
            "change": head.change,
            "parent": head.parent,
            "by": head.by,
            "at": head.at,
            "shards": [[one.name, one.content, one.files] for one in head.shards],
            "delta": _shown(head.delta),
            "latest": head.latest,
            "earlier": head.earlier,
            "oldest": head.oldest,
            "since": head.since,
        },
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode()


def shown_shard(entries: Mapping[str, ManifestEntry]) -> bytes:
    """A shard as it is stored."""
    text = json.dumps(_shown(entries), ensure_ascii=False, separators=(",", ":"))
    return compress(text.encode())


def _shown(entries: Mapping[str, ManifestEntry | None]) -> dict[str, object]:
    return {
        path: None if one is None else [*one[:3], one.pack.removeprefix(PACKS), *one[4:]]
        for path, one in entries.items()
    }


def read_head(data: bytes, tag: str) -> Head:
    """A head from its bytes.

    Raises:
        SharedDamagedError: It is none.
    """
    if len(data) > _LARGEST_HEAD:
        raise _no_head("it is too large")
    try:
        told = json.loads(data.decode())
        if told["form"] != _FORM:
            raise _no_head(
                f"its form is {str(told['form'])[:60]!r}, and this program knows {_FORM!r}"
            )
        shards = tuple(_shard(one) for one in told["shards"])
        head = Head(
            workspace=_matching(_ID, told["workspace"]),
            number=_whole(told["number"], 1 << 62),
            change=_matching(_ID, told["change"]),
            parent=_matching(_ID, told["parent"]) if told["parent"] else "",
            by=_text(told["by"]),
            at=read_time(told["at"]),
            shards=shards,
            delta=_entries(told["delta"]),
            latest=tuple(_matching(_ID, one) for one in told["latest"]),
            earlier=_page(told.get("earlier", "")),
            oldest=_page(told.get("oldest", "")),
            since=_whole(told.get("since", 0), 1 << 62),
            tag=tag,
        )
    except MISTOLD as error:
        raise _no_head(f"it cannot be understood ({type(error).__name__})") from None
    count = len(shards)
    if count & (count - 1) or count > _MOST_SHARDS or not count:
        raise _no_head("it names a wrong number of shards")
    if sum(one.files for one in shards) > MOST_FILES or len(head.latest) > 2 * LATEST:
        raise _no_head("it names too much")
    return head


def read_shard(data: bytes, name: ManifestPage) -> dict[str, ManifestEntry]:
    """The files that a shard names; errors as `read_head`."""
    if content_id(data) != name.content:
        raise SharedDamagedError(f"a part of the manifest is not what it should be: {name.name}")
    try:
        told = json.loads(_unpacked(data).decode())
        entries = _entries(told)
    except MISTOLD:
        raise SharedDamagedError(
            f"a part of the manifest cannot be understood: {name.name}"
        ) from None
    found = {path: one for path, one in entries.items() if one is not None}
    if len(found) != len(entries) or len(found) != name.files:
        raise SharedDamagedError(f"a part of the manifest names too many files: {name.name}")
    return found


class ChangePage(NamedTuple):
    """A page of ids of changes.

    Attributes:
        changes: The ids.
        earlier: The page before it; empty for none.
        number: The latest version that one of them can be of; None where that was not written down.
    """

    changes: frozenset[str]
    earlier: str
    number: int | None


def shown_page(changes: tuple[str, ...], earlier: str, number: int) -> bytes:
    """A page of ids of changes, newest first, as it is stored."""
    told = {"changes": changes, "earlier": earlier, "number": number}
    return json.dumps(told, separators=(",", ":")).encode()


def read_page(data: bytes, name: str) -> ChangePage:
    """A page from its bytes; errors as `read_head`."""
    try:
        told = json.loads(data.decode())
        changes = frozenset(_matching(_ID, one) for one in told["changes"])
        number = _whole(told["number"], 1 << 62) if "number" in told else None
        return ChangePage(changes, _page(told["earlier"]), number)
    except MISTOLD:
        raise SharedDamagedError(
            f"a page of the changes of the shared workspace cannot be understood: {name}"
        ) from None


def _page(told: Any) -> str:
    """The name of a page; empty for none."""
    if told == "":
        return ""
    if not isinstance(told, str) or not told.startswith(PAGES):
        raise ValueError("no page")
    _matching(_OBJECT, told.removeprefix(PAGES))
    return told


def _unpacked(data: bytes) -> bytes:
    # A frame says how long it is before anything of it is unpacked.
    size = _frame_size(data)
    if size > _LARGEST_SHARD:
        raise ValueError("too large")
    return decompress(data, size)


def _frame_size(data: bytes) -> int:
    """What a Zstandard frame says of its size, by RFC 8878, 3.1.1.1; raises ValueError where it does not."""
    if data[:4] != b"\x28\xb5\x2f\xfd" or len(data) < 6:
        raise ValueError("no frame")
    said = data[4]
    single, dictionary = bool(said & 0x20), (0, 1, 2, 4)[said & 3]
    length = (1 if single else 0, 2, 4, 8)[said >> 6]
    begin = 5 + (not single) + dictionary
    if not length or len(data) < begin + length:
        raise ValueError("no size")
    size = int.from_bytes(data[begin : begin + length], "little")
    return size + 256 if length == 2 else size


def _entries(told: Any) -> dict[str, ManifestEntry | None]:
    if not isinstance(told, dict):
        raise TypeError("no object")
    if len(told) > MOST_FILES:
        raise ValueError("too many")
    return {check_path(path): None if one is None else _entry(one) for path, one in told.items()}


def _entry(told: Any) -> ManifestEntry:
    content, size, mode, pack, offset, length = told
    size, length = _whole(size, LARGEST_CONTENT), _whole(length, LARGEST_CONTENT)
    if length > size:
        raise ValueError("longer than the file")
    if _whole(mode, 1 << 20) & ~_MODES:
        # A link leads somewhere, and a set-user-ID bit gives somebody's rights away.
        raise SharedDamagedError(
            f"the shared workspace has something that is not an ordinary file: mode {mode:o}",
            hint="Nothing was done with it.",
        )
    pack = PACKS + _matching(_OBJECT, pack)
    return ManifestEntry(
        _matching(_HASH, content), size, mode, pack, _whole(offset, 1 << 40), length
    )


def _shard(told: Any) -> ManifestPage:
    name, content, files = told
    if not isinstance(name, str) or not name.startswith(SHARDS):
        raise ValueError("no shard")
    _matching(_OBJECT, name.removeprefix(SHARDS))
    return ManifestPage(name, _matching(_HASH, content), _whole(files, MOST_FILES))


def _matching(pattern: Any, told: Any) -> str:
    if not isinstance(told, str) or not pattern.fullmatch(told):
        raise ValueError("no name")
    return told


def _whole(told: Any, most: int) -> int:
    if type(told) is not int or not 0 <= told <= most:
        raise ValueError("no number")
    return told


def _text(told: Any) -> str:
    if not isinstance(told, str):
        raise TypeError("no text")
    told.encode()  # A half of a character is in no journal.
    return told[:_LONGEST_NAME]


def read_time(told: Any) -> float:
    """A time, in seconds; raises one of `MISTOLD` for what is none."""
    if not isfinite(told):
        raise ValueError("no time")
    return float(told)


def _no_head(why: str) -> SharedDamagedError:
    return SharedDamagedError(
        f"the head of the shared workspace is not what filepact writes: {why}",
        hint="Nothing was done. Check that this is the right place, and that filepact is new enough.",
    )
