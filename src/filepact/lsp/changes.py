"""What happened to files, as the servers are told of it."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from filepact.lsp.watched import DiskEvent, beneath, operation_notifications

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from filepact.lsp.documents import Documents, Notification
    from filepact.lsp.servers import Notice, Server
    from filepact.lsp.watched import Watchers

__all__ = ["Change", "Teller"]


@dataclass(frozen=True, slots=True)
class Change:
    """Something that happened to a file on the disk.

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
class Teller:
    """Turns changes into what one server has to be sent.

    Attributes:
        server: Whose policy counts.
        root: The folder that it serves, absolute.
        documents: What it holds open.
        repeats: Open documents have to be sent again before they are asked about.
        announces: The server has to be told again what it is told after its start.
        anew: It has to be started anew to see what happened.
    """

    server: Server
    root: str
    documents: Documents
    repeats: bool = False
    announces: bool = False
    anew: bool = False
    _folders: set[str] = field(default_factory=set)

    def tell(
        self, changes: Iterable[Change], watchers: Watchers, operations: Mapping[str, Any]
    ) -> list[Notification]:
        """All that has to be sent, in order.

        Open documents come first, so that whoever hears of an event sees the new texts.
        """
        texts: list[Notification] = []
        saves: list[Notification] = []
        events: list[DiskEvent] = []
        made: list[str] = []
        gone: list[str] = []
        moved: list[tuple[str, str]] = []
        folders: set[str] = set()
        save_any = False
        for change in changes:
            if change.kind == "renamed":
                moved.append((change.old_path, change.path))
            elif change.kind == "created":
                made.append(change.path)
            elif change.kind == "deleted":
                gone.append(change.path)
            leaving = change.old_path if change.kind == "renamed" else change.path
            if change.kind in ("deleted", "renamed"):
                texts += self.documents.close(leaving)
                events.append(DiskEvent(leaving, "deleted"))
                # Its folders may have gone with it, and are new when they come again.
                self._folders = {one for one in self._folders if not leaving.startswith(one + "/")}
                save_any |= self._note(self.server.sync.deleted)
            if change.kind == "deleted":
                continue
            if change.kind == "changed":
                notice = self.server.sync.written
                events.append(DiskEvent(change.path, "changed"))
            else:
                notice = self.server.sync.created
                doubtful = change.same_date or self.documents.was_shown(change.path)
                new = self._folders_of(change.path, doubtful=doubtful)
                events += [DiskEvent(one, "created") for one in new if one not in folders]
                folders.update(new)
                if self.server.sync.lazy:
                    events.append(DiskEvent(change.path, "changed"))
                events.append(DiskEvent(change.path, "created"))
            save_any |= self._note(notice)
            name = beneath(self.root, change.path)
            known = name is not None and self.server.language(name) is not None
            hidden = known and change.same_date and self.server.sync.by_date
            if change.text is None:
                texts += self.documents.close(change.path)
                self.anew |= hidden
            elif change.path in self.documents or (notice == "open" and known):
                texts += self.documents.hold(change.path, change.text)
                saves += self.documents.saved(change.path)
            elif hidden:
                # A version of ours lies between the two that it could not tell apart.
                texts += self.documents.hold(change.path, change.text)
                texts += self.documents.close(change.path)
        if save_any and not saves:
            for path in self.documents.paths[-1:]:
                saves += self.documents.saved(path)
        if self.server.sync.coarse:
            # It dates all open texts anew when one was saved, and then cannot tell them apart.
            saves = []
        told = watchers.notification(events, unasked=not watchers.count)
        return [
            *texts,
            *operation_notifications(operations, self.root, made, gone, moved),
            *told,
            *saves,
        ]

    def forget(self) -> None:
        """The server starts anew: it has seen the disk as it is."""
        self.repeats = self.announces = self.anew = False
        self._folders.clear()

    def _note(self, notice: Notice) -> bool:
        """Take down what a policy asks for besides events; whether a save has to be told."""
        self.repeats |= notice in ("open", "repeat")
        self.announces |= notice == "announce"
        self.anew |= notice == "nothing"
        return notice == "save"

    def _folders_of(self, path: str, *, doubtful: bool) -> list[str]:
        """The folders above a file that may be as new as the file, outermost first.

        Args:
            path: The file.
            doubtful: Whether the server may take the file for one that it knows, and would keep a
                list of its folder that was made while the file was not there.
        """
        if not self.server.sync.folders:
            return []
        above = posixpath.dirname(path)
        found = [above] if doubtful else []
        while above not in self._folders and above.startswith(self.root + "/"):
            self._folders.add(above)
            found.append(above)
            above = posixpath.dirname(above)
        return list(dict.fromkeys(found[::-1]))
