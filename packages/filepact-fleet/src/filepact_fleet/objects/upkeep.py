"""Upkeep of a shared workspace: whether all can be read, small packs made into large ones, and what nothing names any more.

Nothing is removed in the round that finds it.  A round writes down what no file of the newest version is in, with the version, and a
later one removes of that what still is in none, once it was written down long enough ago, by the server's clock alone, and no
checkout stands at a version that may name it.  A pack that somebody is just writing is younger than that, and its name is never used
again, so that nothing can come to name what is being removed.

Pages of ids of changes are named by the head, through one another.  First the head says from which on they do not count any more, by an
exchange like any other; then nothing names these, and they go as all else does.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from filepact.domain.operation import following
from filepact.errors import FilepactError, InvalidParamsError
from filepact.values import dataclass
from filepact_fleet.objects.bucket import UnknownItemError
from filepact_fleet.objects.heads import MISTOLD, PAGES, SHARDS, read_time
from filepact_fleet.objects.packs import PACKS, write_packs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact_fleet.manifest import ManifestEntry
    from filepact_fleet.objects.bucket import Bucket
    from filepact_fleet.objects.heads import Head
    from filepact_fleet.objects.repository import BucketWorkspace

__all__ = ["BucketLifecycle", "BucketPruneResult", "BucketStatistics", "CheckoutRecord"]

GRACE: Final = 86_400.0
_MARKS: Final = "gc"
_CHECKOUTS: Final = "checkouts/"
_FORGOTTEN: Final = 30 * 86_400.0
"""Seconds after which a checkout that has not been heard of keeps nothing any more."""
_SMALL: Final = 1 << 20
_FEW: Final = 64
"""Small packs from which on they are made into large ones."""


class _Mark(NamedTuple):
    """What was found that nothing names: the version of then, and the server's time."""

    number: int
    at: float


@dataclass(frozen=True, slots=True)
class CheckoutRecord:
    """What a checkout leaves of itself: which version it stands at, and when that was written down."""

    name: str
    number: int
    written: float


@dataclass(frozen=True, slots=True)
class BucketStatistics:
    """What a workspace takes.

    Attributes:
        files: Files of the newest version.
        size: Bytes that these have.
        objects: Objects beneath the prefix.
        stored: Bytes that these take.
        named: Bytes of packs that files of the newest version are in, of these alone.
    """

    files: int
    size: int
    objects: int
    stored: int
    named: int


@dataclass(frozen=True, slots=True)
class BucketPruneResult:
    """What a round of upkeep did.

    Attributes:
        removed: Objects that it removed.
        freed: The bytes that they took.
        marked: Objects that a later round may remove.
        held: Of these, what a checkout may still name.
        packed: Small packs whose bytes are in large ones now.
    """

    removed: int
    freed: int
    marked: int
    held: int
    packed: int


class BucketLifecycle:
    """Upkeep of one workspace; one at a time, which the caller sees to by running it in one place.

    Args:
        workspace: The workspace.
        bucket: Where it is.
    """

    def __init__(self, workspace: BucketWorkspace, bucket: Bucket) -> None:
        self._workspace = workspace
        self._bucket = bucket

    # -- checkouts -------------------------------------------------------------------------

    def note(self, name: str, number: int) -> None:
        """Write down which version a checkout stands at, so that nothing of it is removed."""
        self._bucket.replace(f"{_CHECKOUTS}{name}", str(number).encode())

    def checkouts(self) -> tuple[CheckoutRecord, ...]:
        """All checkouts that left a note."""
        found = []
        for one in self._bucket.list(_CHECKOUTS):
            try:
                text = self._bucket.get(one.name)[0].decode("ascii")
                number = int(text) if text.isdigit() else 0
            except (UnknownItemError, ValueError):
                continue
            found.append(CheckoutRecord(one.name.removeprefix(_CHECKOUTS), number, one.written))
        return tuple(sorted(found, key=lambda one: one.name))

    # -- looking ---------------------------------------------------------------------------

    def figures(self) -> BucketStatistics:
        """What the workspace takes."""
        files = self._workspace.files(self._workspace.newest())
        objects = list(self._bucket.list(""))
        named = {(one.pack, one.offset): one.length for one in files.values()}
        return BucketStatistics(
            len(files),
            sum(one.size for one in files.values()),
            len(objects),
            sum(one.size for one in objects),
            sum(named.values()),
        )

    def check(self) -> Iterator[tuple[str, FilepactError]]:
        """Read all that the newest version names; the files that cannot be read, with the reason."""
        for path, entry in sorted(self._workspace.files(self._workspace.newest()).items()):
            try:
                self._workspace.content(entry)
            except FilepactError as error:
                yield path, error

    # -- removing --------------------------------------------------------------------------

    def collect(
        self, change: str, by: str, *, grace: float = GRACE, remembered: float = _FORGOTTEN
    ) -> BucketPruneResult:
        """One round.

        Args:
            change: An id that no other change has, for large packs that are made of small ones.
            by: Who does it.
            grace: How many seconds an object that nothing names stays at least.
            remembered: For how many seconds the ids of changes are kept at least.

        Raises:
            InvalidParamsError: The grace is no time.
        """
        if grace < 0:
            raise InvalidParamsError("an object cannot be kept for a negative time")
        packed = self._pack(change, by)
        now = self._now(self._workspace.newest())
        lowest = self._lowest(now)
        self._forget(following(change), by, now - remembered, lowest)
        head = self._workspace.newest()
        # After the head: what is newer than it has no mark yet, and only gets one.
        objects = [one for prefix in (PACKS, SHARDS, PAGES) for one in self._bucket.list(prefix)]
        named = self._named(head)
        marks = self._marks(head)
        removed = freed = held = 0
        kept: dict[str, _Mark] = {}
        for one in objects:
            if one.name in named:
                continue
            mark = marks.get(one.name)
            if mark is None:
                kept[one.name] = _Mark(head.number, now)
            elif lowest is not None and lowest < mark.number:
                kept[one.name], held = mark, held + 1
            elif now - mark.at < grace:
                kept[one.name] = mark
            else:
                self._bucket.delete(one.name)
                removed, freed = removed + 1, freed + one.size
        told = {"workspace": head.workspace, "marks": kept}
        self._bucket.replace(_MARKS, json.dumps(told).encode())
        return BucketPruneResult(removed, freed, len(kept), held, packed)

    def _named(self, head: Head) -> set[str]:
        packs = {one.pack for one in self._workspace.files(head).values()}
        pages = {name for name, _ in self._workspace.pages(head)}
        return packs | pages | {one.name for one in head.shards}

    def _forget(self, change: str, by: str, before: float, lowest: int | None) -> None:
        """Have pages of ids not count any more that were written before a time, and that no checkout may ask for."""
        written = {one.name: one.written for one in self._bucket.list(PAGES)}
        head = self._workspace.newest()
        number, newer = head.number, ""
        for name, page in self._workspace.pages(head):
            # One that does not say of which versions it is has none after those of the page after it.
            number = number if page.number is None else page.number
            aged = written.get(name, before) < before
            if newer and aged and (lowest is None or number < lowest):
                self._workspace.rewrite(change, by, {}, (newer, number))
                return
            newer = name

    def _now(self, head: Head) -> float:
        """What time it is for the server."""
        name = f"probe/clock-{head.workspace}"
        self._bucket.replace(name, b"")
        found = [one.written for one in self._bucket.list("probe/") if one.name == name]
        return max(found, default=0.0)

    def _marks(self, head: Head) -> dict[str, _Mark]:
        """What earlier rounds found; nothing for a note that cannot be understood, which is made anew."""
        try:
            told: Any = json.loads(self._bucket.get(_MARKS)[0].decode())
            if told["workspace"] != head.workspace:
                return {}
            return {
                name: _Mark(int(number), read_time(at))
                for name, (number, at) in told["marks"].items()
            }
        except (UnknownItemError, *MISTOLD):
            return {}

    def _lowest(self, now: float) -> int | None:
        """The oldest version that a checkout stands at; None for no checkout."""
        notes = (one for one in self.checkouts() if now - one.written < _FORGOTTEN)
        return min((one.number for one in notes), default=None)

    def _pack(self, change: str, by: str) -> int:
        """Make small packs into large ones; how many."""
        files = self._workspace.files(self._workspace.newest())
        in_use: dict[str, dict[str, ManifestEntry]] = {}
        for entry in files.values():
            in_use.setdefault(entry.pack, {})[entry.content] = entry
        small = {
            pack: held
            for pack, held in in_use.items()
            if sum(one.length for one in held.values()) < _SMALL
        }
        if len(small) < _FEW:
            return 0
        entries = {one.content: one for held in small.values() for one in held.values()}
        # In the order of the paths: what is read together lies together.
        ordered = dict.fromkeys(
            one.state._replace(mode=0) for _, one in sorted(files.items()) if one.content in entries
        )
        places = write_packs(self._bucket, change, ordered, self._reading(entries))
        done = self._workspace.rewrite(change, by, places)
        return 0 if done is None else len(small)

    def _reading(self, entries: dict[str, ManifestEntry]) -> Callable[[str], bytes]:
        def read(content: str) -> bytes:
            return self._workspace.content(entries[content])

        return read
