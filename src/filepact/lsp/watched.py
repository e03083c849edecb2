"""Which events on the disk a server wants to hear of, by the patterns that it has registered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from filepact.errors import SearchFailedError
from filepact.text.glob import Glob
from filepact.wire.uris import path_of, uri_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from filepact.lsp.documents import Notification

__all__ = ["DiskEvent", "EventKind", "Watchers", "beneath", "operation_notifications"]

EventKind = Literal["created", "changed", "deleted"]

_NUMBER: dict[EventKind, int] = {"created": 1, "changed": 2, "deleted": 3}
_BIT: dict[EventKind, int] = {"created": 1, "changed": 2, "deleted": 4}
_EVERY_KIND = 7
_MOST_WATCHERS = 10_000


@dataclass(frozen=True, slots=True)
class DiskEvent:
    """Something that happened to a file.

    Attributes:
        path: Absolute.
        kind: What happened.
    """

    path: str
    kind: EventKind


@dataclass(frozen=True, slots=True)
class _Watcher:
    """One pattern beneath one folder; no pattern stands for everything there."""

    folder: str
    glob: Glob | None
    kinds: int

    def wants(self, event: DiskEvent) -> bool:
        if not self.kinds & _BIT[event.kind]:
            return False
        name = "" if event.path == self.folder else beneath(self.folder, event.path)
        return name is not None and (self.glob is None or self.glob.matches(name))


class Watchers:
    """All patterns of one server.

    Args:
        root: The folder that patterns count from, absolute.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._by_id: dict[str, tuple[_Watcher, ...]] = {}

    @property
    def count(self) -> int:
        """How many patterns there are."""
        return sum(len(watchers) for watchers in self._by_id.values())

    def register(self, number: str, options: Any) -> None:
        """Take the patterns of one registration; whatever cannot be read stands for everything."""
        wanted = options.get("watchers", []) if isinstance(options, dict) else []
        self._by_id[number] = tuple(
            self._watcher(one) for one in wanted[:_MOST_WATCHERS] if isinstance(one, dict)
        )

    def unregister(self, number: str) -> None:
        """Forget the patterns of one registration."""
        self._by_id.pop(number, None)

    def notification(
        self, events: Iterable[DiskEvent], *, unasked: bool = False
    ) -> list[Notification]:
        """The events that the server wants, as one notification; or all of them, unasked."""
        changes = [
            {"uri": uri_of(event.path), "type": _NUMBER[event.kind]}
            for event in events
            if unasked or self.wants(event)
        ]
        return [("workspace/didChangeWatchedFiles", {"changes": changes})] if changes else []

    def wants(self, event: DiskEvent) -> bool:
        """Whether one of the patterns fits."""
        return any(one.wants(event) for several in self._by_id.values() for one in several)

    def _watcher(self, one: Mapping[str, Any]) -> _Watcher:
        kinds = one.get("kind")
        kinds = kinds if isinstance(kinds, int) and kinds else _EVERY_KIND
        pattern, folder = one.get("globPattern"), self._root
        if isinstance(pattern, dict):
            place = pattern.get("baseUri")
            place = place.get("uri") if isinstance(place, dict) else place
            folder = (path_of(place) if isinstance(place, str) else None) or self._root
            pattern = pattern.get("pattern")
        if not isinstance(pattern, str):
            return _Watcher(folder, None, kinds)
        if pattern.startswith("/"):
            within = beneath(folder, pattern)
            if within is None:
                folder, within = "/", pattern.removeprefix("/")
            pattern = within
        try:
            return _Watcher(folder, Glob.parse(pattern, braces=True), kinds)
        except SearchFailedError:
            return _Watcher(folder, None, kinds)


def operation_notifications(
    operations: Mapping[str, Any],
    root: str,
    made: Sequence[str],
    gone: Sequence[str],
    moved: Sequence[tuple[str, str]],
) -> list[Notification]:
    """What a server asked to be told of files made, removed and renamed.

    Args:
        operations: Its ``workspace.fileOperations``.
        root: The folder that patterns count from.
        made: Absolute paths, as the others.
        gone: Removed.
        moved: Old and new.
    """
    found: list[Notification] = []
    singles = (("didCreate", "Create", made), ("didDelete", "Delete", gone))
    for key, word, paths in singles:
        files = [{"uri": uri_of(one)} for one in paths if _asked(operations.get(key), root, one)]
        if files:
            found.append((f"workspace/did{word}Files", {"files": files}))
    pairs = [
        {"oldUri": uri_of(old), "newUri": uri_of(new)}
        for old, new in moved
        if _asked(operations.get("didRename"), root, old)
    ]
    return [*found, ("workspace/didRenameFiles", {"files": pairs})] if pairs else found


def _asked(options: Any, root: str, path: str) -> bool:
    filters = options.get("filters") if isinstance(options, dict) else None
    for one in filters if isinstance(filters, list) else ():
        pattern = one.get("pattern") if isinstance(one, dict) else None
        if not isinstance(pattern, dict) or pattern.get("matches") == "folder":
            continue
        glob = pattern.get("glob")
        if not isinstance(glob, str):
            continue
        try:
            name = beneath(root, path)
            if name and Glob.parse(glob, braces=True).matches(name):
                return True
        except SearchFailedError:
            return True
    return False


def beneath(folder: str, path: str) -> str | None:
    """The part of a path beneath a folder; None when it lies elsewhere."""
    start = folder.rstrip("/") + "/"
    return path.removeprefix(start) if path.startswith(start) and path != start else None
