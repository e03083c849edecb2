"""What the editor shows of a file: asked before it is used, told after it was changed.

An editor answers with a text, says that it has no such file, refuses, or answers late.  Only the
second means that the disk is to be looked at: a refusal is passed on, and of an editor that is
late nobody knows what it has.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from filepact.errors import BinaryFileError, FilepactError
from filepact.faces.acp.asked import PATIENCE, Manner
from filepact.faces.acp.errors import (
    CANCELLED,
    REFUSED,
    Refusal,
    is_for_the_disk,
    refuse,
    to_refusal,
)
from filepact.faces.acp.proxy.traffic import READ, WRITE
from filepact.faces.acp.proxy.twice import Twice
from filepact.faces.acp.quirks import quirks_of
from filepact.text.position import Position
from filepact.wire.uris import path_of
from filepact.workspace.buffers import Typed
from filepact.workspace.documents import EDIT_LIMIT, with_typed
from filepact.workspace.seen import Lately
from filepact.workspace.standing import same_text, standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.domain.document import Document, WorkspacePath
    from filepact.domain.operation import Operation, Session
    from filepact.domain.policy import Action
    from filepact.faces.acp.errors import PeerError
    from filepact.faces.acp.proxy.questions import Questions, Reply
    from filepact.faces.acp.proxy.traffic import Facts
    from filepact.faces.acp.sessions import Bound
    from filepact.faces.wire.lines import Message
    from filepact.workspace.guard import Spot
    from filepact.workspace.receipt import Receipt

__all__ = ["Texts"]

EDITOR: Final = "editor"
"""The name of the editor's connection among the buffers."""

_TAKING_BACK: Final = 10.0  # seconds for an editor to take the old text of a file again
_REMEMBERED: Final = 32 * 1_048_576  # bytes of files as editor and disk last had them alike

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    """What is known of the editor's copies of files, by the files' names.

    Attributes:
        manners: How it shows them.
        absent: Files of which it has said that it has no text.
        announced: Files of which it says by itself what happens to them.
    """

    manners: dict[str, Manner] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    announced: set[str] = field(default_factory=set)


class _Files:
    """Files as they were at some time, for all threads; the oldest are forgotten."""

    def __init__(self) -> None:
        self._files: Lately[WorkspacePath, Document] = Lately(_REMEMBERED)
        self._lock = threading.Lock()

    def get(self, path: WorkspacePath) -> Document | None:
        with self._lock:
            return self._files.get(path)

    def put(self, document: Document) -> None:
        with self._lock:
            self._files.put(document.path, document)

    def drop(self, path: WorkspacePath) -> None:
        with self._lock:
            self._files.drop(path)


class Texts:
    """The editor's texts.

    Args:
        questions: Asks the editor.
        facts: What it can do.
        aside: Has something done in a thread of its own.
        patience: Seconds in which it has to say what it shows.
    """

    def __init__(
        self,
        questions: Questions,
        facts: Facts,
        aside: Callable[[Callable[[], None]], None],
        patience: float = PATIENCE,
    ) -> None:
        self._questions = questions
        self._facts = facts
        self._aside = aside
        self.patience = patience
        self._versions = 0
        self._known = _Known()
        # The files as editor and disk last had them alike, and as the editor showed them last
        # where it had text that was not saved.
        self._agreed = _Files()
        self._showing = _Files()
        self._twice = Twice(EDITOR)

    # -- what the editor shows ------------------------------------------------------------

    def fetch(self, bound: Bound, session: Session, path: str, *, to_write: bool = False) -> None:
        """Learn what the editor shows of a file; unsaved text of it counts from now on.

        Args:
            bound: The session's folders.
            session: Who asks.
            path: As the agent sent it.
            to_write: Whether it is asked so that nothing is lost: what may be written and not
                read is not shown to the agent.

        Raises:
            FilepactError: The rules refuse the file, and the editor was not asked.
            Refusal: The editor refused or was late, or the turn ended meanwhile.
        """
        if not self._facts.reads:
            return
        action: Action = "write" if to_write else "read"
        spot = bound.workspace.guard.find(path, action, agent=session.agent)
        asked = self.question(bound, spot, path)
        if asked is not None:
            reply = self._questions.ask(READ, asked, patience=self.patience)
            self.heard(bound, spot, self.text_in(bound, spot, reply))

    def question(self, bound: Bound, spot: Spot, path: str) -> Message | None:
        """What the editor is to be asked of a file; None when there is nothing to ask.

        Args:
            bound: The session's folders.
            spot: The file, about which the rules were asked.
            path: As the agent sent it.
        """
        if not self._facts.reads:
            return None
        if spot.place.kind not in ("file", "missing") or spot.place.size > EDIT_LIMIT:
            # Too large to be changed here: it is read where it is.
            return None
        name = spot.path.absolute
        if name in self._known.announced:
            return None
        return {"sessionId": bound.id, "path": path if path.startswith("/") else name}

    def text_in(self, bound: Bound, spot: Spot, reply: Reply) -> str | None:
        """The text that an editor answered with; None where the disk is to be looked at.

        Raises:
            Refusal: It refused or was late, or the turn ended meanwhile.
        """
        if reply.kind == "cancelled":
            raise refuse(CANCELLED, "cancelled", "The turn ended before this was done.")
        if reply.kind == "silent":
            late = refuse(
                REFUSED,
                "timeout",
                f"The editor did not say within {self.patience:g} s what it shows of "
                f"{spot.shown}. Nothing was changed; try again, or ask the person to look at the "
                "editor.",
            )
            late.data["retriable"] = True
            raise late
        if reply.kind == "error":
            error: PeerError = reply.value
            if is_for_the_disk(error, _stored(bound, spot.path.absolute)):
                return None
            raise _refused("The editor refused to show this file", error)
        text = reply.value.get("content") if isinstance(reply.value, dict) else None
        if isinstance(text, str):
            return text
        if spot.place.kind == "missing":
            return None
        raise refuse(REFUSED, "read_error", f"The editor sent no text of {spot.shown}.")

    def heard(self, bound: Bound, spot: Spot, text: str | None) -> None:
        """Take what the editor said when it was asked.

        Raises:
            Refusal: It is no text that can be written.
        """
        path, name = spot.path, spot.path.absolute
        editors, disk = bound.workspace.editors, self._stored(bound, path)
        if text is not None and text and not _is_whole(text):
            raise refuse(
                REFUSED, "read_error", f"The editor sent half a character in {spot.shown}."
            )
        known = editors.buffer(name)
        found = standing(
            text,
            disk,
            agreed=self._agreed.get(path),
            known=None if known is None else known.text,
        )
        self._showing.drop(path)
        if text is None or found.kind == "nothing":
            self._known.absent.add(name)
            editors.close(name, client=EDITOR)
            return
        self._known.absent.discard(name)
        if found.kind == "doubtful":
            editors.doubt(name, client=EDITOR)
            return
        if found.kind != "mangled":
            self._known.manners[name] = Manner.of(text)
        if found.kind != "unsaved":
            editors.close(name, client=EDITOR)
            if found.kind == "same" and disk is not None:
                self._agreed.put(disk)
            elif found.kind == "mangled" and found.base is not None:
                self._agreed.put(found.base)
            return
        if found.base is not None:
            self._agreed.put(found.base)
        self._versions += 1
        bare = text.removeprefix("\ufeff")
        editors.open(name, bare, client=EDITOR, version=self._versions, base=found.base)
        with suppress(FilepactError):
            showing = editors.shown(name)
            if showing is not None:
                self._showing.put(showing)

    def agreed(self, document: Document) -> None:
        """The editor shows of a file just what the disk has, and has shown nothing else."""
        name = document.path.absolute
        self._known.manners.pop(name, None)
        self._known.absent.discard(name)
        self._agreed.put(document)

    def said(self, bound: Bound, method: str, params: Message) -> None:
        """Take what the editor says of a file by itself; nonsense is ignored."""
        path = path_of(params.get("uri"))
        if path is None:
            return
        editors, version = bound.workspace.editors, params.get("version")
        # What lacks a member, or has one of another type, is nonsense too.
        with suppress(FilepactError, AttributeError, LookupError, TypeError, ValueError):
            if method == "document/didOpen":
                opened = editors.open(
                    path, str(params["text"]), client=EDITOR, version=_whole(version)
                )
                self._known.announced.add(opened.path.absolute)
            elif method == "document/didChange":
                typed = [_typed(one) for one in params["contentChanges"]]
                editors.change(path, typed, client=EDITOR, version=_whole(version))
            elif method == "document/didSave":
                editors.saved(path, client=EDITOR)
            else:
                buffer = editors.buffer(path)
                editors.close(path, client=EDITOR)
                if buffer is not None:
                    self._known.announced.discard(buffer.path.absolute)

    # -- what the agent writes by itself as well ------------------------------------------

    def comes(self, bound: Bound, session: Session, path: str, content: str) -> bool:
        """The agent sends a text; whether it has written that by itself already."""
        if not quirks_of(self._facts.agent).writes_itself:
            return False
        before, disk = self._twice.first(bound, session, path, content)
        if before is None:
            return False
        if self._agreed.get(before.path) in (None, disk):
            # What the editor holds grew from that.
            self._agreed.put(before)
        return True

    def came(self, bound: Bound, session: Session, content: str, receipt: Receipt) -> None:
        """What the agent sent was written, or merged and written."""
        if receipt.status == "applied" and quirks_of(self._facts.agent).writes_itself:
            for meant in bound.workspace.unsaved.written(str(receipt.operation)):
                self._twice.sent(bound, session, content, meant)

    def looked(self, bound: Bound) -> None:
        """What an agent wrote by itself in a step that has ended was looked for."""
        self._twice.looked(bound)

    def _stored(self, bound: Bound, path: WorkspacePath) -> Document | None:
        """What the disk has of a file; None for no file, or none that can be read whole."""
        with suppress(FilepactError):
            return self._twice.disk(bound, path)
        return None

    # -- what the editor is told ----------------------------------------------------------

    def deliver(self, bound: Bound, session: Session, receipt: Receipt) -> tuple[str, ...]:
        """Give the editor the new texts of a change that was done, or take the change back.

        A person may look at the change in the editor before it answers: it takes what it takes.

        Returns:
            What there is to say about what the editor made of it.

        Raises:
            Refusal: The editor did not want it, somebody typed in the same lines meanwhile, or
                the turn ended; the files are what they were.
        """
        editors = bound.workspace.editors
        merged = editors.take(EDITOR)
        if receipt.status == "unchanged":
            # The disk had it already, and has now what was typed as well.
            for delivery in merged:
                self._tell(bound, delivery.path, "")
        if receipt.status != "applied" or receipt.operation is None:
            return ()
        operation = bound.workspace.operation(receipt.operation)
        notes: list[str] = []
        told: list[WorkspacePath] = []
        try:
            for change in operation.changes.changes:
                if change.after is None:
                    editors.close(change.path.absolute, client=EDITOR)
                else:
                    notes.append(self._tell(bound, change.path, operation.id))
                    told.append(change.path)
        except Refusal as refusal:
            self._take_back(bound, session, operation, told, refusal)
            raise
        return tuple(filter(None, notes))

    def _tell(self, bound: Bound, path: WorkspacePath, operation: str) -> str:
        name = path.absolute
        shown = bound.workspace.show(path)
        typed = self._showing.get(path)
        if typed is not None:
            # It has gone to the disk, so from now on it is only older than that.
            self._agreed.put(typed)
            self._showing.drop(path)
        if not self._facts.writes:
            if name not in self._known.announced:
                bound.workspace.editors.close(name, client=EDITOR)
            if typed is None:
                return ""
            return f"{shown}: the editor takes no writes; it shows the old text until it loads it."
        # From the editor's answer on nothing is done that takes time: what is typed from then on
        # is not in what it is given.
        meant, stored = self._read_again(bound, path)
        text = None if meant is None else _text_of(meant)
        if meant is None or text is None:
            return ""
        self._twice.became(path, meant)
        reply = self._questions.ask(
            WRITE,
            self._news(bound, path, text),
            late=lambda reply: self._answered_late(bound, meant, reply),
        )
        if stored is not meant:
            _log.warning("%s: what was typed meanwhile was kept", shown)
        if reply.kind == "error":
            raise _refused("The editor refused this change", reply.value)
        if reply.kind == "cancelled":
            raise refuse(CANCELLED, "cancelled", "The turn ended before this was done.")
        return self._settle(bound, meant, operation, over=stored)

    def _news(self, bound: Bound, path: WorkspacePath, text: str) -> Message:
        """A file's new text in the editor's own way of showing it."""
        manner = self._known.manners.get(path.absolute, Manner())
        return {"sessionId": bound.id, "path": path.absolute, "content": manner.shown(text)}

    def _read_again(
        self, bound: Bound, path: WorkspacePath
    ) -> tuple[Document | None, Document | None]:
        """A file as the editor is to show it, and as the disk has it.

        They differ where somebody has typed while the change was made: the editor is given all of
        the text.

        Raises:
            Refusal: It was typed in the same lines, or nobody can know what it is.
        """
        workspace, name = bound.workspace, path.absolute
        if self._facts.reads and name not in self._known.announced | self._known.absent:
            # What is known of it has gone into the change.
            workspace.editors.close(name, client=EDITOR)
            spot = workspace.guard.find(name, "list")
            asked = self.question(bound, spot, name)
            if asked is not None:
                reply = self._questions.ask(READ, asked, patience=self.patience)
                text, agreed = self.text_in(bound, spot, reply), self._agreed.get(path)
                stored = self._stored(bound, path)
                if text is None or agreed is None or not same_text(text, agreed):
                    joined = _joined(text, stored, agreed)
                    if joined is not None:
                        return joined, stored
                    self.heard(bound, spot, text)
        stored = self._stored(bound, path)
        buffer = workspace.editors.buffer(name)
        if not workspace.editors.is_doubtful(name) and (buffer is None or not buffer.is_unsaved):
            return stored, stored
        try:
            joined = workspace.unsaved.joined(path, agent=self._facts.agent)
        except FilepactError as error:
            raise to_refusal(error, name, bound.roots) from None
        return (stored if joined == stored else joined), stored

    def _settle(
        self, bound: Bound, meant: Document, operation: str, *, over: Document | None = None
    ) -> str:
        """The editor has the new text and, as the protocol wants it, has saved it."""
        path, name, shown = meant.path, meant.path.absolute, bound.workspace.show(meant.path)
        self._known.announced.discard(name)
        self._known.absent.discard(name)
        bound.workspace.editors.close(name, client=EDITOR)
        self._stored(bound, path)
        try:
            left = bound.workspace.unsaved.look_after(
                meant, client=EDITOR, operation=operation, over=over
            )
        except FilepactError:
            return f"{shown}: what the editor made of it could not be looked at; read it again."
        if left.document is None:
            self._agreed.drop(path)
            return f"{shown}: is not on the disk, though the editor was given its text."
        self._agreed.put(left.document)
        if left.kind == "text":
            return (
                f"{shown}: the editor saved another text than it was given, as one that formats "
                "what it saves does; read the file again."
            )
        return ""

    def _take_back(
        self,
        bound: Bound,
        session: Session,
        operation: Operation,
        told: list[WorkspacePath],
        refusal: Refusal,
    ) -> None:
        workspace = bound.workspace
        for path in operation.changes.paths:
            self._twice.forget(path)
            # It shows what the disk is to have again.
            workspace.editors.close(path.absolute, client=EDITOR)
        try:
            undone = workspace.undo(session, operation.id, dry_run=False)
        except FilepactError:
            raise refuse(
                REFUSED,
                "editor_refused",
                f"{refusal.message} It is on the disk as {operation.id} all the same and could not "
                f"be taken back; `filepact show {operation.id}` shows it.",
            ) from None
        workspace.editors.take(EDITOR)
        for path in told:
            meant = _stored(bound, path.absolute)
            text = None if meant is None else _text_of(meant)
            if meant is not None and text is not None:
                news = self._news(bound, path, text)
                reply = self._questions.ask(WRITE, news, patience=_TAKING_BACK)
                if reply.kind == "result":
                    self._settle(bound, meant, str(undone.operation))

    def _answered_late(self, bound: Bound, told: Document, reply: Reply) -> None:
        """An editor that was told to forget a change may have made it all the same."""

        def look() -> None:
            shown = bound.workspace.show(told.path)
            try:
                found = bound.workspace.unsaved.own_up(told)
            except FilepactError as error:
                _log.warning("%s: could not be looked at: %s", shown, error.message)
                return
            if found is not None:
                _log.warning(
                    "%s: the editor made a change that was taken back when its turn was cancelled; "
                    "it is in the log as %s",
                    shown,
                    found.id,
                )

        if reply.kind == "result":
            self._aside(look)


def _joined(text: str | None, stored: Document | None, agreed: Document | None) -> Document | None:
    """What the disk has with what the editor shows, where that is plain; else it takes longer."""
    if text is None or stored is None or agreed is None or not _is_whole(text):
        return None
    if standing(text, stored, agreed=agreed).kind != "unsaved":
        return None
    with suppress(FilepactError):
        return with_typed(stored, agreed, text.removeprefix("\ufeff"))
    return None


def _refused(what: str, error: PeerError) -> Refusal:
    """An editor's error for the agent, with the editor's own words and data."""
    said: dict[str, object] = {"code": error.code, "message": error.message}
    if error.data is not None:
        said["data"] = error.data
    data: dict[str, object] = {"errorKind": error.kind or "editor_refused", "editor": said}
    return Refusal(error.code, f"{what}: {error.reason}", data)


def _stored(bound: Bound, name: str) -> Document | None:
    """What the disk has of a file; None for no file, or none that can be read whole."""
    with suppress(FilepactError):
        return bound.workspace.editors.stored(name)
    return None


def _text_of(document: Document) -> str | None:
    try:
        return document.text
    except BinaryFileError:
        return None


def _is_whole(text: str) -> bool:
    """Whether a text has no half characters in it."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _whole(version: object) -> int:
    if type(version) is not int:
        raise TypeError
    return version


def _typed(change: Message) -> Typed:
    text = change["text"]
    if not isinstance(text, str):
        raise TypeError
    where = change.get("range")
    if where is None:
        return Typed(text)
    return Typed(text, _position(where["start"]), _position(where["end"]))


def _position(place: Message) -> Position:
    return Position(_whole(place["line"]), _whole(place["character"]))
