"""The documents that one server holds open, and the notifications that tell it of changes.

Pure state, without I/O: whoever changes a text gets the notifications to be sent, in order.  Versions
come from one counter for all documents of a server and only rise, also when a document is closed and
opened again, so that an answer about an earlier text never passes for one about this.
"""

from __future__ import annotations

import posixpath
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from filepact.errors import SearchFailedError
from filepact.text.glob import Glob
from filepact.text.lines import LineIndex, Position, Unit, common_head, common_tail
from filepact.values import dataclass, field
from filepact_diagnostics.lsp.spec import beneath
from filepact_wire.uris import path_of, uri_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from filepact_diagnostics.lsp.spec import Notice, ServerSpec

__all__ = [
    "DiskChange",
    "EventKind",
    "FileEvent",
    "FileWatchers",
    "Notification",
    "OpenDocument",
    "OpenDocuments",
    "SyncKind",
    "SyncMessages",
    "SyncProtocol",
    "operation_notifications",
    "position_value",
]

Notification = tuple[str, dict[str, Any]]
"""A method and its parameters."""

EventKind = Literal["created", "changed", "deleted"]

_NUMBER: dict[EventKind, int] = {"created": 1, "changed": 2, "deleted": 3}
_BIT: dict[EventKind, int] = {"created": 1, "changed": 2, "deleted": 4}
_EVERY_KIND = 7
_MOST_WATCHERS = 10_000

_INCREMENTAL_FROM = 4_096
"""Below this many characters the whole text is as quick, and cannot be misunderstood."""


@dataclass(frozen=True, slots=True)
class SyncKind:
    """The notifications about open documents that a server wants.

    Attributes:
        open_close: That they are opened and closed.
        change: 0 nothing, 1 the whole text, 2 what changed.
        save: That they were saved.
        save_text: With their text.
    """

    open_close: bool = True
    change: int = 1
    save: bool = False
    save_text: bool = False

    @property
    def texts(self) -> bool:
        """Whether the server takes texts from the client at all, and not only from the disk."""
        return self.open_close or bool(self.change)


@dataclass(frozen=True, slots=True)
class OpenDocument:
    """An open document.

    Attributes:
        path: Absolute.
        language: The protocol's name of its language.
        version: Of its present text.
        text: As the server has it.
    """

    path: str
    language: str
    version: int
    text: str

    @property
    def uri(self) -> str:
        """Its name in the protocol."""
        return uri_of(self.path)


class OpenDocuments:
    """The open documents of one server, those used last at the end.

    Args:
        language: The protocol's name of a path's language.
    """

    def __init__(self, language: Callable[[str], str]) -> None:
        self._language = language
        self._open: dict[str, OpenDocument] = {}
        self._shown: set[str] = set()
        self._version = 0
        self.kind = SyncKind()
        self.unit: Unit = "utf-16"

    def __contains__(self, path: str) -> bool:
        return path in self._open

    def get(self, path: str) -> OpenDocument | None:
        """The document of a path; None when it is not open."""
        return self._open.get(path)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all open documents, the most recently used last."""
        return tuple(self._open)

    def was_shown(self, path: str) -> bool:
        """Whether the server has had a text of ours for a path since it was started."""
        return path in self._shown

    def hold(self, path: str, text: str) -> list[Notification]:
        """Make the server see this text: open the document, or change it if it differs."""
        before = self._open.pop(path, None)
        if before is None:
            return self._opened(path, text)
        self._open[path] = before
        return [] if before.text == text else self._changed(before, text)

    def repeat(self, path: str) -> list[Notification]:
        """Send the text of an open document once more, under a new version."""
        return self._changed(self._open[path], self._open[path].text)

    def save(self, path: str) -> list[Notification]:
        """Say that an open document is on the disk as it is; nothing if the server did not ask."""
        document = self._open.get(path)
        if document is None or not self.kind.save:
            return []
        params: dict[str, Any] = {"textDocument": {"uri": document.uri}}
        if self.kind.save_text:
            params["text"] = document.text
        return [("textDocument/didSave", params)]

    def close(self, path: str) -> list[Notification]:
        """Close a document; from here on the server reads the disk."""
        document = self._open.pop(path, None)
        if document is None or not self.kind.open_close:
            return []
        return [("textDocument/didClose", {"textDocument": {"uri": document.uri}})]

    def reopen(self) -> list[Notification]:
        """Open all documents again, for a server that was started anew."""
        documents = list(self._open.values())
        self._open.clear()
        self._shown.clear()
        return [sent for one in documents for sent in self._opened(one.path, one.text)]

    def _opened(self, path: str, text: str) -> list[Notification]:
        self._version += 1
        document = OpenDocument(path, self._language(path), self._version, text)
        self._open[path] = document
        self._shown.add(path)
        if not self.kind.open_close:
            return []
        item = {
            "uri": document.uri,
            "languageId": document.language,
            "version": document.version,
            "text": text,
        }
        return [("textDocument/didOpen", {"textDocument": item})]

    def _changed(self, before: OpenDocument, text: str) -> list[Notification]:
        if not self.kind.change:
            return [*self.close(before.path), *self._opened(before.path, text)]
        self._version += 1
        self._open[before.path] = OpenDocument(before.path, before.language, self._version, text)
        name = {"uri": before.uri, "version": self._version}
        change = self._difference(before.text, text) if self.kind.change == 2 else {"text": text}
        params = {"textDocument": name, "contentChanges": [change]}
        return [("textDocument/didChange", params)]

    def _difference(self, before: str, after: str) -> dict[str, Any]:
        """The difference of two texts as one replacement; the whole text where it is short."""
        if len(after) < _INCREMENTAL_FROM or before == after:
            return {"text": after}
        start = common_head(before, after)
        tail = common_tail(before[start:], after[start:])
        # A replacement must not begin or end within CR LF: what is a line end is not the same then.
        if start and before[start - 1] == "\r":
            start -= 1
        if tail and before[len(before) - tail] == "\n":
            tail -= 1
        place = LineIndex(before).position if "\r" in before else partial(_place, before)
        places = [position_value(place(at, self.unit)) for at in (start, len(before) - tail)]
        return {
            "range": {"start": places[0], "end": places[1]},
            "text": after[start : len(after) - tail],
        }


def _place(text: str, offset: int, unit: Unit) -> Position:
    """The position of an offset in a text of LF lines, without an index of all lines."""
    start = text.rfind("\n", 0, offset) + 1
    column = LineIndex(text[start:offset]).position(offset - start, unit).column
    return Position(text.count("\n", 0, start), column)


def position_value(position: Position) -> dict[str, int]:
    """A position as the protocol writes it."""
    return {"line": position.line, "character": position.column}


# -- changes on the disk -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DiskChange:
    """A change of a file on the disk.

    Attributes:
        path: Absolute; of a renamed file its new name.
        kind: What happened.
        text: What it holds now; None for a deleted file, and where it is not text.
        old_path: Where a renamed file was.
        same_date: Whether its date may be that of another text that it held before.
    """

    path: str
    kind: Literal["created", "changed", "deleted", "renamed"]
    text: str | None = None
    old_path: str = ""
    same_date: bool = False


@dataclass(slots=True)
class SyncMessages:
    """The notifications that one server needs for some changes, and what has to follow them.

    Attributes:
        notifications: To be sent, in order.
        repeat: Whether open documents have to be sent again before they are asked about.
        announce: Whether the server's announcements have to be sent again.
        restart: Whether the server has to be started anew to see what happened.
        back: A file that the server was told had gone, and that is there again; None for none.
    """

    notifications: list[Notification] = field(default_factory=list)
    repeat: bool = False
    announce: bool = False
    restart: bool = False
    back: str | None = None


class SyncProtocol:
    """Turns changes on the disk into what one server has to be sent.

    Args:
        spec: The server, whose policy counts.
        root: The folder that it serves, absolute.
        documents: What it holds open.
    """

    def __init__(self, spec: ServerSpec, root: str, documents: OpenDocuments) -> None:
        self._spec = spec
        self._root = root
        self._documents = documents
        self._folders: set[str] = set()  # those that the server was told of
        self._gone: set[str] = set()  # files that it was told had gone

    def reset(self) -> None:
        """The server starts anew, and reads the disk as it is."""
        self._folders.clear()
        self._gone.clear()

    def translate(
        self, changes: Sequence[DiskChange], watchers: FileWatchers, operations: Mapping[str, Any]
    ) -> SyncMessages:
        """Translate changes into notifications, open documents before file events.

        Args:
            changes: What happened, in order.
            watchers: The events that the server wants to hear of.
            operations: Its ``workspace.fileOperations``.
        """
        found = _Collected()
        for change in changes:
            names = {posixpath.basename(one) for one in (change.path, change.old_path)}
            found.result.restart |= not names.isdisjoint(self._spec.steered)
            if beneath(self._root, change.path) is None and any(map(self._spec.language, names)):
                found.follow(self._spec.sync.elsewhere)
            if change.kind in ("deleted", "renamed"):
                self._leave(change.old_path or change.path, found)
            if change.kind != "deleted":
                self._arrive(change, found)
        if found.save and not found.saves:
            for path in self._documents.paths[-1:]:
                found.saves += self._documents.save(path)
        if self._spec.sync.coarse:
            # It dates all open texts anew when one was saved, and then cannot tell them apart.
            found.saves.clear()
        found.result.notifications = [
            *found.texts,
            *operation_notifications(operations, self._root, changes),
            *watchers.notification(found.events, unasked=not watchers.count),
            *found.saves,
        ]
        return found.result

    def _leave(self, path: str, found: _Collected) -> None:
        """A file is no longer there."""
        found.texts += self._documents.close(path)
        found.events.append(FileEvent(path, "deleted"))
        self._gone.add(path)
        # Its folders may have gone with it, and are new when they come again.
        self._folders = {one for one in self._folders if not path.startswith(one + "/")}
        found.follow(self._spec.sync.deleted)

    def _arrive(self, change: DiskChange, found: _Collected) -> None:
        """A file is there, new or changed."""
        path, sync = change.path, self._spec.sync
        if change.kind == "changed":
            notice = sync.written
            found.events.append(FileEvent(path, "changed"))
        else:
            notice = sync.created
            # A server that looked at the disk before it heard that the file had gone may have found
            # it there again, and one that looked before it heard that it is back, missing.
            back = path in self._gone
            if back:
                self._gone.discard(path)
                found.result.back = path
            doubtful = back or change.same_date or self._documents.was_shown(path)
            new = self._folders_of(path, doubtful=doubtful)
            found.events += [FileEvent(one, "created") for one in new if one not in found.folders]
            found.folders.update(new)
            if sync.lazy:
                found.events.append(FileEvent(path, "changed"))
            found.events.append(FileEvent(path, "created"))
        found.follow(notice)
        name = beneath(self._root, path) or posixpath.basename(path)
        known = self._spec.language(name) is not None
        hidden = known and change.same_date and sync.by_date
        if change.text is None:
            found.texts += self._documents.close(path)
            found.result.restart |= hidden
        elif path in self._documents or (notice == "open" and known):
            found.texts += self._documents.hold(path, change.text)
            found.saves += self._documents.save(path)
        elif hidden:
            # The server could not tell the new text from the old one by the file's date, but it
            # takes the text of an open document, and reads the disk when that is closed.
            found.texts += self._documents.hold(path, change.text)
            found.texts += self._documents.close(path)

    def _folders_of(self, path: str, *, doubtful: bool) -> list[str]:
        """The folders above a file that may be as new as the file, outermost first.

        Args:
            path: The file.
            doubtful: Whether the server may take the file for one that it knows, and would keep a
                list of its folder that was made while the file was not there.
        """
        if not self._spec.sync.folders:
            return []
        above = posixpath.dirname(path)
        found = [above] if doubtful else []
        while above not in self._folders and above.startswith(self._root + "/"):
            self._folders.add(above)
            found.append(above)
            above = posixpath.dirname(above)
        return list(dict.fromkeys(found[::-1]))


@dataclass(slots=True)
class _Collected:
    """The events that `SyncProtocol.translate` has collected so far."""

    texts: list[Notification] = field(default_factory=list)
    saves: list[Notification] = field(default_factory=list)
    events: list[FileEvent] = field(default_factory=list)
    folders: set[str] = field(default_factory=set)
    save: bool = False
    result: SyncMessages = field(default_factory=SyncMessages)

    def follow(self, notice: Notice) -> None:
        """Note what a policy asks for besides events."""
        self.save |= notice == "save"
        self.result.repeat |= notice in ("open", "repeat")
        self.result.announce |= notice == "announce"
        self.result.restart |= notice == "nothing"


@dataclass(frozen=True, slots=True)
class FileEvent:
    """An event of a file.

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

    def wants(self, event: FileEvent) -> bool:
        if not self.kinds & _BIT[event.kind]:
            return False
        name = "" if event.path == self.folder else beneath(self.folder, event.path)
        return name is not None and (self.glob is None or self.glob.matches(name))


class FileWatchers:
    """The patterns of the files that one server wants to hear of.

    Args:
        root: The folder that patterns count from, absolute.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._by_id: dict[str, tuple[_Watcher, ...]] = {}

    @property
    def count(self) -> int:
        """The number of patterns."""
        return sum(len(watchers) for watchers in self._by_id.values())

    def register(self, number: str, options: Any) -> None:
        """Add the patterns of one registration; one that cannot be read stands for everything."""
        wanted = options.get("watchers", []) if isinstance(options, dict) else []
        self._by_id[number] = tuple(
            self._watcher(one) for one in wanted[:_MOST_WATCHERS] if isinstance(one, dict)
        )

    def unregister(self, number: str) -> None:
        """Forget the patterns of one registration."""
        self._by_id.pop(number, None)

    def notification(
        self, events: Iterable[FileEvent], *, unasked: bool = False
    ) -> list[Notification]:
        """The events that the server wants, or all of them, as one notification."""
        changes = [
            {"uri": uri_of(event.path), "type": _NUMBER[event.kind]}
            for event in events
            if unasked or self.wants(event) or beneath(self._root, event.path) is None
        ]
        return [("workspace/didChangeWatchedFiles", {"changes": changes})] if changes else []

    def wants(self, event: FileEvent) -> bool:
        """Whether a pattern of the server fits the file."""
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
    operations: Mapping[str, Any], root: str, changes: Iterable[DiskChange]
) -> list[Notification]:
    """The notifications of created, deleted and renamed files that a server has asked for.

    Args:
        operations: Its ``workspace.fileOperations``.
        root: The folder that patterns count from.
        changes: What happened.
    """
    found: list[Notification] = []
    for key, kind in (("didCreate", "created"), ("didDelete", "deleted"), ("didRename", "renamed")):
        files = []
        for one in changes:
            if one.kind == kind and _wanted(operations.get(key), root, one.old_path or one.path):
                new = uri_of(one.path)
                renamed = kind == "renamed"
                files.append(
                    {"oldUri": uri_of(one.old_path), "newUri": new} if renamed else {"uri": new}
                )
        if files:
            found.append((f"workspace/{key}Files", {"files": files}))
    return found


def _wanted(options: Any, root: str, path: str) -> bool:
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
