"""A shared workspace: versions of a set of files, each made from the one before it by exchanging the head on a condition.

A change writes what its files hold first, under names that nobody else uses, and then exchanges the head, if it still is the one that
the change was made from.  So all files of a change are there at once or not at all, and a writer that is killed at any point has
left either its change or some bytes that nothing names.

An exchange without an answer is looked for: each head names the latest changes, and the pages with those before.  While the head is as before, the same exchange is
tried again, and only one of the two can ever be done, since each names the state that it replaces.
"""

from __future__ import annotations

import os
import time
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.domain.document import content_id
from filepact.errors import (
    InvalidParamsError,
    NoChangeError,
    ObjectStoreFailedError,
    OutcomeUnknownError,
    SharedBusyError,
    SharedConflictError,
    SharedDamagedError,
    SharedGoneError,
    TooLargeError,
)
from filepact.values import replace
from filepact_fleet.manifest import MOST_FILES, ManifestEntry, check_names, check_path
from filepact_fleet.objects.bucket import (
    StaleItemError,
    UnknownItemError,
    UnknownResultError,
    probe,
    put_new,
)
from filepact_fleet.objects.heads import (
    HEAD,
    LATEST,
    PAGES,
    SHARDS,
    Head,
    ManifestPage,
    read_head,
    read_page,
    read_shard,
    shard_count,
    shard_of,
    shown_head,
    shown_page,
    shown_shard,
)
from filepact_fleet.objects.packs import LARGEST_CONTENT, PackReader, write_packs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from filepact_fleet.manifest import FileState
    from filepact_fleet.objects.bucket import Bucket
    from filepact_fleet.objects.heads import ChangePage

__all__ = ["BucketWorkspace"]

_TRIES: Final = 24
"""Exchanges of the head that a change tries, each with what the one before it found."""
_UNSURE_TRIES: Final = 6
_FIRST_WAIT: Final = 0.004  # seconds
_LONGEST_WAIT: Final = 0.5
_MOST_DELTA: Final = 256
"""Files that the head names by itself."""


class _Seen(NamedTuple):
    """A version that was there once."""

    workspace: str
    number: int
    change: str


class BucketWorkspace:
    """One workspace in one bucket.  For all threads.

    Args:
        bucket: Where it is.
        wait: Waits so many seconds between two tries.
    """

    def __init__(self, bucket: Bucket, wait: Callable[[float], None] = time.sleep) -> None:
        self._bucket = bucket
        self._wait = wait
        self._packs = PackReader(bucket)
        self._lock = Lock()
        self._publishing = Lock()
        self._newest: Head | None = None
        self._stood: _Seen | None = None
        self._shards: dict[ManifestPage, dict[str, ManifestEntry]] = {}
        self._files: tuple[Head, dict[str, ManifestEntry]] | None = None

    # -- making one ----------------------------------------------------------------------

    def create(self, change: str, by: str) -> Head:
        """Make a workspace without files, where there is none, on a server that can hold one.

        Raises:
            InvalidParamsError: There is one.
            ObjectStoreUnsafeError: The server does not keep conditions.
        """
        probe(self._bucket)
        head = Head(
            workspace=f"w{os.urandom(8).hex()}",
            number=0,
            change=change,
            parent="",
            by=by,
            at=round(time.time(), 3),
            shards=(self._write_shard({}, change, 0),),
            delta={},
            latest=(change,),
        )
        for number in range(_UNSURE_TRIES):
            self._pause(number)
            try:
                tag = self._bucket.create(HEAD, shown_head(head))
            except UnknownResultError:
                continue
            except StaleItemError:
                there = self.newest()
                if there.change == change:
                    return there
                raise InvalidParamsError(
                    "there is a shared workspace at this place already",
                    hint="Choose another prefix, or check this one out.",
                ) from None
            return self._take(replace(head, tag=tag))
        raise _unknown(change)

    # -- looking -------------------------------------------------------------------------

    def expect(self, workspace: str, number: int, change: str) -> None:
        """Take only what goes on from a version that was seen before this process began.

        Args:
            workspace: Its id; empty where that is not known.
            number: Of the version.
            change: That made it; empty for no version.
        """
        self._stood = _Seen(workspace, number, change) if change else None

    def newest(self) -> Head:
        """As of `SharedFiles`.

        Raises:
            SharedDamagedError: What is here is no workspace.
        """
        known = self._newest
        try:
            if known is None:
                head = read_head(*self._bucket.get(HEAD))
            else:
                found = self._bucket.get_other(HEAD, known.tag)
                if found is None:
                    return known
                head = read_head(*found)
        except UnknownItemError:
            raise _gone() from None
        # It was seen before this was asked for, so the server has it or what came after it.
        seen = self._stood if known is None else _Seen(known.workspace, known.number, known.change)
        if seen is not None and not self._goes_on(head, seen):
            raise _another()
        return self._take(head)

    def _goes_on(self, head: Head, seen: _Seen) -> bool:
        """Whether a head is a version that was seen before, or one after it, as far as that can be told."""
        if seen.workspace not in ("", head.workspace):
            return False
        if head.change == seen.change:
            return True
        if head.number <= seen.number:
            return False
        # By the number alone, one that was put back to an older state and changed since would not be found out.
        return self._has(head, seen.change) or (bool(seen.workspace) and seen.number <= head.since)

    def _take(self, head: Head) -> Head:
        """Take a head for the newest, unless a newer one was seen meanwhile."""
        with self._lock:
            known = self._newest
            if known is None or head.number > known.number:
                self._newest = head
            return head

    def files(self, version: Head) -> dict[str, ManifestEntry]:
        """As of `SharedFiles`; what it returns is not to be changed."""
        with self._lock:
            known = self._files
        if known is not None and known[0].change == version.change:
            return known[1]
        found: dict[str, ManifestEntry] = {}
        kept = {name: self._shard(name) for name in version.shards}
        for shard in kept.values():
            found.update(shard)
        for path, entry in version.delta.items():
            if entry is None:
                found.pop(path, None)
            else:
                found[path] = entry
        check_names(found)
        with self._lock:
            self._shards = kept
            self._files = (version, found)
        return found

    def _shard(self, name: ManifestPage) -> dict[str, ManifestEntry]:
        known = self._shards.get(name)
        if known is not None:
            return known
        try:
            data, _ = self._bucket.get(name.name)
        except UnknownItemError:
            raise _missing(name.name) from None
        return read_shard(data, name)

    def content(self, entry: ManifestEntry) -> bytes:
        """As of `SharedFiles`."""
        return self._packs.one(entry)

    def contents(self, entries: Iterable[ManifestEntry]) -> Iterator[tuple[ManifestEntry, bytes]]:
        """As of `SharedFiles`."""
        return self._packs.all(entries)

    # -- changing ------------------------------------------------------------------------

    def publish(
        self,
        change: str,
        by: str,
        wanted: Mapping[str, FileState | None],
        contents: Callable[[str], bytes],
        agrees: Callable[[str, FileState | None], bool],
        request: str = "",
    ) -> tuple[Head, Mapping[str, ManifestEntry | None]]:
        """As of `SharedFiles`."""
        _check(wanted)
        with self._publishing:
            # One after the other here: threads of one process need not run a race for the head.
            return self._publish(change, by, wanted, contents, agrees, request or change)

    def _publish(
        self,
        change: str,
        by: str,
        wanted: Mapping[str, FileState | None],
        contents: Callable[[str], bytes],
        agrees: Callable[[str, FileState | None], bool],
        request: str,
    ) -> tuple[Head, Mapping[str, ManifestEntry | None]]:
        placed: dict[str, ManifestEntry] = {}
        made: dict[str, ManifestEntry | None] = {}  # by the latest exchange
        ids = tuple(dict.fromkeys((change, request)))
        tag, failures = "", 0
        unsure = ""  # the state of the head that an exchange without an answer was for
        for number in range(_TRIES):
            self._pause(number)
            try:
                head = self.newest()
                if unsure and self._has(head, change):
                    return head, made
                if not set(ids).isdisjoint(head.latest):
                    raise _made_already(change)
                tag = head.tag
                if tag != unsure:
                    unsure = ""  # The head is another, and not ours: so ours can never be done.
                files = self.files(head)
                for path in wanted:
                    there = files.get(path)
                    if not agrees(path, None if there is None else there.state):
                        raise _conflict(path, head)
                edits = self._edits(change, wanted, contents, files, placed)
                made = {path: files.get(path) for path in wanted} | edits
                if not edits:
                    return head, made
                return self._exchange(head, files, edits, ids, by, attempt=number), made
            except StaleItemError:
                continue
            except UnknownResultError:
                unsure, failures = tag, failures + 1
            except (ObjectStoreFailedError, SharedGoneError, SharedDamagedError):
                if not unsure:
                    raise
                failures += 1  # The caller must not be told that nothing was done.
            if failures > _UNSURE_TRIES:
                break
        if unsure:
            raise _unknown(change)
        raise _busy()

    def _pause(self, number: int) -> None:
        """Wait before a further try, each time longer and never as long as others."""
        if number:
            chance = 0.5 + int.from_bytes(os.urandom(2), "big") / 65_536
            self._wait(min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(number, 10)) * chance)

    def _edits(
        self,
        change: str,
        wanted: Mapping[str, FileState | None],
        contents: Callable[[str], bytes],
        files: Mapping[str, ManifestEntry],
        placed: dict[str, ManifestEntry],
    ) -> dict[str, ManifestEntry | None]:
        """What the manifest is to have of each file, whose bytes are written where they are not there yet."""
        # What is moved is there under another name of the same change.
        there = {files[path].content: files[path] for path in wanted if path in files}
        if len(wanted) > _MOST_DELTA:
            there = {one.content: one for one in files.values()}
        missing = [
            one
            for one in wanted.values()
            if one is not None and one.content not in there and one.content not in placed
        ]
        if missing:
            first = 1 + max(
                (int(one.pack.rpartition("-")[2]) for one in placed.values()), default=-1
            )
            placed |= write_packs(self._bucket, change, missing, contents, first)
        edits: dict[str, ManifestEntry | None] = {}
        for path, state in wanted.items():
            if state is None:
                if path in files:
                    edits[path] = None
                continue
            place = there.get(state.content) or placed[state.content]
            entry = place._replace(mode=state.mode)
            if path not in files or files[path].state != state:
                edits[path] = entry
        return edits

    def _exchange(
        self,
        head: Head,
        files: Mapping[str, ManifestEntry],
        edits: Mapping[str, ManifestEntry | None],
        ids: tuple[str, ...],
        by: str,
        attempt: int = 0,
        last: tuple[str, int] | None = None,
    ) -> Head:
        """Exchange the head for one with some edits; raises StaleItemError or UnknownResultError.

        Args:
            head: What it is exchanged for one after it.
            files: Its files.
            edits: What these become.
            ids: Of the change, and of what it is made for.
            by: Who makes it.
            attempt: How often that was tried before.
            last: The last page of ids that is to count, and the latest version of those that are given up.
        """
        change = ids[0]
        made = {path: one for path, one in edits.items() if one is not None}
        after = {path: one for path, one in files.items() if path not in edits} | made
        if len(after) > MOST_FILES:
            raise TooLargeError(f"a shared workspace has at most {MOST_FILES:,} files")
        if any(path not in files for path in made):
            _check_room(after)
        delta, shards = {**head.delta, **edits}, head.shards
        if len(delta) > _MOST_DELTA:
            shards, delta = self._folded(head, after, delta, change, attempt), {}
        latest, earlier = (*ids, *head.latest), head.earlier
        if len(latest) > 2 * LATEST:
            page = f"{PAGES}{change}-{attempt}"
            put_new(self._bucket, page, shown_page(latest[LATEST:], earlier, head.number))
            latest, earlier = latest[:LATEST], page
        following = Head(
            workspace=head.workspace,
            number=head.number + 1,
            change=change,
            parent=head.change,
            by=by,
            at=round(time.time(), 3),
            shards=shards,
            delta=delta,
            latest=latest,
            earlier=earlier,
            oldest=head.oldest if last is None else last[0],
            since=head.since if last is None else last[1],
        )
        tag = self._bucket.swap(HEAD, shown_head(following), head.tag)
        following = self._take(replace(following, tag=tag))
        with self._lock:
            if self._newest == following:
                self._files = (following, after)
        return following

    def made(self, change: str, *, fence: str = "", after: int | None = None) -> bool:
        """As of `SharedFiles`."""
        for number in range(_TRIES):
            self._pause(number)
            head = self.newest()
            if self._has(head, change):
                return True
            if after is not None and after < head.since:
                raise OutcomeUnknownError(
                    f"whether the change {change} was made cannot be told any more: the shared workspace remembers"
                    f" changes since version {head.since:,}, and this checkout stood at {after:,}",
                    hint="Nothing was changed. Check the shared workspace out into another folder, and bring over what "
                    "is only here.",
                    change=change,
                    outcome="unknown",
                )
            if not fence:
                return False
            try:
                self._exchange(head, self.files(head), {}, (fence,), "filepact", attempt=number)
            except (StaleItemError, UnknownResultError):
                continue
            return False
        raise _busy()

    def _has(self, head: Head, change: str) -> bool:
        """Whether a change is among those that led to a version."""
        return change in head.latest or any(change in page.changes for _, page in self.pages(head))

    def pages(self, head: Head) -> Iterator[tuple[str, ChangePage]]:
        """The pages of ids that came before those that a head has, with their names, newest first."""
        name = head.earlier
        while name:
            try:
                page = read_page(self._bucket.get(name)[0], name)
            except UnknownItemError:
                raise _missing(name) from None
            yield name, page
            name = "" if name == head.oldest else page.earlier

    def _folded(
        self,
        head: Head,
        after: Mapping[str, ManifestEntry],
        delta: Mapping[str, ManifestEntry | None],
        change: str,
        attempt: int,
    ) -> tuple[ManifestPage, ...]:
        """Shards that have everything; those that nothing was changed of stay."""
        count = max(len(head.shards), shard_count(len(after)))
        grown = count != len(head.shards)
        touched = set(range(count)) if grown else {shard_of(path, count) for path in delta}
        parts: dict[int, dict[str, ManifestEntry]] = {number: {} for number in touched}
        for path in sorted(after):
            number = shard_of(path, count)
            if number in touched:
                parts[number][path] = after[path]
        first = attempt * 1_000
        made = {
            number: self._write_shard(part, change, first + number)
            for number, part in parts.items()
        }
        return tuple(made.get(number) or head.shards[number] for number in range(count))

    def _write_shard(
        self, entries: Mapping[str, ManifestEntry], change: str, number: int
    ) -> ManifestPage:
        data = shown_shard(entries)
        name = f"{SHARDS}{change}-{number}"
        put_new(self._bucket, name, data)
        return ManifestPage(name, content_id(data), len(entries))

    def rewrite(
        self,
        change: str,
        by: str,
        places: Mapping[str, ManifestEntry],
        last: tuple[str, int] | None = None,
    ) -> Head | None:
        """Have files be somewhere else, which are the same as before, or pages of ids not count any more.

        Args:
            change: The id of this change.
            by: Who makes it.
            places: Where the bytes are by now, by their SHA-256.
            last: The last page that counts, which is not the first one there was, and the latest version that an id of
                the others can be of; None to leave that.

        Returns:
            None where others were faster each time; what was written is named by nothing then.
        """
        for number in range(_TRIES):
            self._pause(number)
            head = self.newest()
            if change in head.latest:
                return head
            files = self.files(head)
            edits = {
                path: places[one.content]._replace(mode=one.mode)
                for path, one in files.items()
                if one.content in places
            }
            try:
                return self._exchange(head, files, edits, (change,), by, attempt=number, last=last)
            except (StaleItemError, UnknownResultError):
                continue
        return None


def _check(wanted: Mapping[str, FileState | None]) -> None:
    for path, state in wanted.items():
        try:
            check_path(path)
        except SharedDamagedError as error:
            raise InvalidParamsError(
                error.message.replace("the shared workspace has a file", "this is a file"),
                hint="A shared workspace cannot have it. Give it another name.",
                outcome="not_applied",
            ) from None
        if state is not None and state.size > LARGEST_CONTENT:
            raise TooLargeError(
                f"{path}: over {LARGEST_CONTENT:,} bytes, the limit for a file of a shared workspace",
                outcome="not_applied",
            )


def _check_room(after: Mapping[str, ManifestEntry]) -> None:
    """Check that no file is where a folder is, or lies in a file."""
    try:
        check_names(after)
    except SharedDamagedError:
        raise SharedConflictError(
            "a new file has the name of a folder, or its folder has become a file",
            hint="Nothing was changed. Look at what others made there, and choose another name.",
            outcome="not_applied",
        ) from None


def _gone() -> SharedGoneError:
    return SharedGoneError(
        "there is no shared workspace at this place",
        hint="Nothing was changed. If there was one, it was removed: restore it on the server, or make one anew of a "
        "checkout's files with `filepact workspace create` and `import`.",
        outcome="not_applied",
    )


def _another() -> SharedGoneError:
    return SharedGoneError(
        "the shared workspace at this place is another one, or an older state of it, than this checkout has seen",
        hint="Nothing was changed. A person has to say which counts: `filepact workspace import` sends the files of a "
        "folder, and `filepact workspace checkout` begins anew.",
        outcome="not_applied",
    )


def _conflict(path: str, head: Head) -> SharedConflictError:
    return SharedConflictError(
        f"{path}: was changed elsewhere meanwhile, last by {head.by} (version {head.number})",
        hint="Nothing was changed. Read the file again, and make the change on what it holds now.",
        path=path,
        outcome="not_applied",
    )


def _missing(name: str) -> SharedDamagedError:
    return SharedDamagedError(
        f"a part of the manifest is missing: {name}",
        hint="Something other than filepact may have removed it.",
    )


def _busy() -> SharedBusyError:
    return SharedBusyError(
        "others changed the shared workspace during every attempt",
        hint="Nothing was changed. Try again.",
        outcome="not_applied",
    )


def _made_already(change: str) -> NoChangeError:
    return NoChangeError(
        f"another machine has already made the change {change}",
        hint="Read the files: they contain it.",
        outcome="not_applied",
    )


def _unknown(change: str) -> OutcomeUnknownError:
    return OutcomeUnknownError(
        "the object store does not answer, so it is unknown whether this change was made",
        hint="Look again when it answers: the change is there as a whole, or not at all.",
        change=change,
        outcome="unknown",
    )
