"""The editor's texts: asked for before a file is used, and handed over after it was changed.

An editor answers with a text, says that it has no such file, refuses, or answers late.  Only the
second means that the disk is to be looked at: a refusal is passed on, and of an editor that is
late nobody knows what it has.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from filepact.domain.document import WorkspacePath
from filepact.errors import BinaryFileError, FilepactError
from filepact.faces.acp.client_buffers import PATIENCE, ClientBuffers
from filepact.faces.acp.errors import (
    CANCELLED,
    REFUSED,
    ClientRequestError,
    is_for_the_disk,
    refuse,
    to_refusal,
)
from filepact.faces.acp.proxy.protocol import READ, WRITE
from filepact.values import dataclass
from filepact.workspace.buffers import same_text
from filepact.workspace.documents import EDIT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.domain.document import Document
    from filepact.domain.operation import Session
    from filepact.domain.policy import Action
    from filepact.faces.acp.agents import ConnectionInfo
    from filepact.faces.acp.errors import ClientResponseError
    from filepact.faces.acp.proxy.editor_requests import EditorRequests, EditorResult
    from filepact.faces.acp.sessions import AcpSession
    from filepact.wire.messages import Message
    from filepact.workspace.buffers import Buffers
    from filepact.workspace.location import Location, Name
    from filepact.workspace.receipt import Receipt

__all__ = ["AgentWrites", "EditorTexts"]

EDITOR: Final = "editor"
"""The name of the editor's connection among the buffers."""

_TAKING_BACK: Final = 10.0  # seconds for an editor to take the old text of a file again

_log = logging.getLogger(__name__)


class EditorTexts:
    """The editor's texts.

    Args:
        questions: Asks the editor.
        facts: What it can do.
        aside: Has something done in a thread of its own.
        buffers: Those of all sessions.
        patience: Seconds in which it has to say what it shows.
    """

    def __init__(
        self,
        questions: EditorRequests,
        facts: ConnectionInfo,
        aside: Callable[[Callable[[], None]], object],
        buffers: Buffers,
        patience: float = PATIENCE,
    ) -> None:
        self._questions = questions
        self._facts = facts
        self._aside = aside
        self.patience = patience
        self._buffers = ClientBuffers(EDITOR, buffers)
        # Files of which it has said that it has no text.
        self._absent: set[WorkspacePath] = set()
        self._twice = AgentWrites(EDITOR)

    # -- what the editor shows ------------------------------------------------------------

    def fetch(
        self,
        bound: AcpSession,
        session: Session,
        path: Name,
        *,
        to_write: bool = False,
        found: Location | None = None,
    ) -> None:
        """Learn what the editor shows of a file; unsaved text of it counts from now on.

        Args:
            bound: The session's folders.
            session: Who asks.
            path: As the agent sent it, or the file's true name.
            to_write: Whether it is asked so that nothing is lost: what may be written and not
                read is not shown to the agent.
            found: The file, where it has just been found for that.

        Raises:
            FilepactError: The rules refuse the file, and the editor was not asked.
            ClientRequestError: The editor refused or was late, or the turn ended meanwhile.
        """
        if not self._facts.reads:
            return
        action: Action = "write" if to_write else "read"
        location = found or bound.workspace.guard.find(path, action, agent=session.agent)
        asked = self.question(bound, location, path)
        if asked is not None:
            reply = self._questions.ask(READ, asked, patience=self.patience)
            self.receive(bound, location, self.text_of_reply(bound, location, reply))

    def question(self, bound: AcpSession, location: Location, path: Name) -> Message | None:
        """Make the request for the editor's text of a file; None when there is nothing to ask.

        Args:
            bound: The session's folders.
            location: The file, about which the rules were asked.
            path: As the agent sent it, or the file's true name.
        """
        if not self._facts.reads:
            return None
        if location.place.kind not in ("file", "missing") or location.place.size > EDIT_LIMIT:
            # Too large to be changed here: it is read where it is.
            return None
        if self._buffers.announces(location.path):
            return None
        sent = path if isinstance(path, str) and path.startswith("/") else location.path.absolute
        return {"sessionId": bound.id, "path": sent}

    def text_of_reply(
        self, bound: AcpSession, location: Location, reply: EditorResult
    ) -> str | None:
        """The text that an editor answered with; None where the disk is to be looked at.

        Raises:
            ClientRequestError: It refused or was late, or the turn ended meanwhile.
        """
        if reply.kind == "cancelled":
            raise refuse(CANCELLED, "cancelled", "The turn ended before this was done.")
        if reply.kind == "silent":
            late = refuse(
                REFUSED,
                "timeout",
                f"The editor did not say within {self.patience:g} s what it shows of "
                f"{location.shown}. Nothing was changed; try again, or ask the person to look at the "
                "editor.",
            )
            late.data["retriable"] = True
            raise late
        if reply.kind == "error":
            error: ClientResponseError = reply.value
            if is_for_the_disk(error, _stored(bound, location.path)):
                return None
            raise _refused("The editor refused to show this file", error)
        text = reply.value.get("content") if isinstance(reply.value, dict) else None
        if isinstance(text, str):
            return text
        if location.place.kind == "missing":
            return None
        raise refuse(REFUSED, "read_error", f"The editor sent no text of {location.shown}.")

    def receive(self, bound: AcpSession, location: Location, text: str | None) -> None:
        """Take what the editor said when it was asked.

        Raises:
            ClientRequestError: It is no text that can be written.
        """
        path = location.path
        _check_whole(location, text)
        found = self._buffers.take(
            bound.workspace, path, text, partial(self._stored, bound, location)
        )
        if found.kind == "nothing":
            self._absent.add(path)
        else:
            self._absent.discard(path)

    def mark_agreed(self, document: Document) -> None:
        """The editor shows of a file just what the disk has, and has shown nothing else."""
        self._buffers.forget_style(document.path)
        self._absent.discard(document.path)
        self._buffers.agree(document)

    def receive_notification(self, bound: AcpSession, method: str, params: Message) -> None:
        """Take what the editor says of a file by itself; nonsense is ignored."""
        with suppress(FilepactError):
            self._buffers.receive(bound.workspace, method, params)

    # -- what the agent writes by itself as well ------------------------------------------

    def begin_write(self, bound: AcpSession, session: Session, path: str, content: str) -> bool:
        """The agent sends a text; whether it has written that by itself already."""
        before, disk = self._twice.first(bound, session, path, content)
        if before is None:
            return False
        if self._buffers.agreed(before.path) in (None, disk):
            # What the editor holds grew from that.
            self._buffers.agree(before)
        return True

    def end_write(
        self, bound: AcpSession, session: Session, content: str, receipt: Receipt
    ) -> None:
        """Note that the agent's text was written, or merged and written."""
        if receipt.status == "applied":
            for meant in bound.workspace.unsaved.written(str(receipt.operation)):
                self._twice.sent(bound, session, content, meant)

    def end_step(self, bound: AcpSession) -> None:
        """Note that external changes of the agent's last step were looked for."""
        self._twice.end_step(bound)

    def _stored(self, bound: AcpSession, file: WorkspacePath | Location) -> Document | None:
        """Read a file from the disk; None for no file, or one that cannot be read whole."""
        with suppress(FilepactError):
            return self._twice.disk(bound, file)
        return None

    # -- what the editor is told ----------------------------------------------------------

    def deliver(
        self,
        bound: AcpSession,
        session: Session,
        receipt: Receipt,
        *,
        found: Location | None = None,
    ) -> tuple[str, ...]:
        """Give the editor the new texts of a change that was done, or take the change back.

        A person may look at the change in the editor before it answers: it takes what it takes.

        Args:
            bound: The session's folders.
            session: Who has changed the files.
            receipt: Of the change.
            found: One of the files, where it was found for that.

        Returns:
            What there is to say about what the editor made of it.

        Raises:
            ClientRequestError: The editor did not want it, somebody typed in the same lines
                meanwhile, or the turn ended; the files are what they were.
        """
        editors = bound.workspace.editors
        merged = editors.take(EDITOR)
        if receipt.status == "unchanged":
            # The disk had it already, and has now what was typed as well.
            for delivery in merged:
                self._tell(bound, delivery.path, "")
        operation = receipt.operation
        if receipt.status != "applied" or operation is None:
            return ()
        notes: list[str] = []
        told: list[WorkspacePath] = []
        try:
            for path, there in receipt.present:
                if there:
                    known = found if found is not None and found.path == path else None
                    notes.append(self._tell(bound, path, operation, known))
                    told.append(path)
                else:
                    editors.close(path, client=EDITOR)
        except ClientRequestError as refusal:
            paths = [path for path, _ in receipt.present]
            self._take_back(bound, session, operation, paths, told, refusal)
            raise
        return tuple(filter(None, notes))

    def _tell(
        self,
        bound: AcpSession,
        path: WorkspacePath,
        operation: str,
        found: Location | None = None,
    ) -> str:
        shown = bound.workspace.show(path)
        was_typed = self._buffers.unsaved(path) is not None
        self._buffers.committed(path)
        if not self._facts.writes:
            if not self._buffers.announces(path):
                self._buffers.close(path)
            if not was_typed:
                return ""
            return f"{shown}: the editor takes no writes; it shows the old text until it loads it."
        # From the editor's answer on nothing is done that takes time: what is typed from then on
        # is not in what it is given.
        meant, stored = self._read_again(bound, path, found)
        text = None if meant is None else _text_of(meant)
        if meant is None or text is None:
            return ""
        self._twice.update(path, meant)
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

    def _news(self, bound: AcpSession, path: WorkspacePath, text: str) -> Message:
        """A file's new text in the editor's own way of showing it."""
        content = self._buffers.in_style(path, text)
        return {"sessionId": bound.id, "path": path.absolute, "content": content}

    def _read_again(
        self, bound: AcpSession, path: WorkspacePath, found: Location | None = None
    ) -> tuple[Document | None, Document | None]:
        """A file as the editor is to show it, and as the disk has it.

        They differ where somebody has typed while the change was made: the editor is given all of
        the text.

        Raises:
            ClientRequestError: It was typed in the same lines, or nobody can know what it is.
        """
        workspace, agent = bound.workspace, self._facts.agent
        try:
            if self._buffers.announces(path):
                stored = self._stored(bound, path)
                buffer = workspace.editors.buffer(path)
                if buffer is None or not buffer.is_unsaved:
                    return stored, stored
                joined = workspace.unsaved.merge(path, agent=agent)
                return (stored if joined == stored else joined), stored
            # What is known of it has gone into the change.
            self._buffers.close(path)
            text, location = None, None
            if path not in self._absent:
                location = found or workspace.guard.find(path, "list")
                asked = self.question(bound, location, path)
                if asked is not None:
                    reply = self._questions.ask(READ, asked, patience=self.patience)
                    text = self.text_of_reply(bound, location, reply)
                    _check_whole(location, text)
            stored = self._stored(bound, location or path)
            if text is None or stored is None:
                return stored, stored
            return self._buffers.joined(workspace, stored, text, agent=agent), stored
        except FilepactError as error:
            raise to_refusal(error, path.absolute, bound.roots) from None

    def _settle(
        self, bound: AcpSession, meant: Document, operation: str, *, over: Document | None = None
    ) -> str:
        """The editor has the new text and, as the protocol wants it, has saved it."""
        path, shown = meant.path, bound.workspace.show(meant.path)
        self._buffers.closed(path)
        self._absent.discard(path)
        with suppress(FilepactError):
            self._twice.put_right(bound, path)
        left = self._buffers.settle(bound.workspace, meant, operation, over)
        if left is None:
            return f"{shown}: what the editor made of it could not be looked at; read it again."
        if left.document is None:
            return f"{shown}: is not on the disk, though the editor was given its text."
        if left.kind == "text":
            return (
                f"{shown}: the editor saved another text than it was given, as one that formats "
                "what it saves does; read the file again."
            )
        return ""

    def _take_back(
        self,
        bound: AcpSession,
        session: Session,
        operation: str,
        paths: Sequence[WorkspacePath],
        told: list[WorkspacePath],
        refusal: ClientRequestError,
    ) -> None:
        workspace = bound.workspace
        for path in paths:
            self._twice.forget(path)
            # It shows what the disk is to have again.
            workspace.editors.close(path, client=EDITOR)
        try:
            undone = workspace.undo(session, operation, dry_run=False)
        except FilepactError:
            raise refuse(
                REFUSED,
                "editor_refused",
                f"{refusal.message} It is on the disk as {operation} all the same and could not "
                f"be taken back; `filepact show {operation}` shows it.",
            ) from None
        workspace.editors.take(EDITOR)
        for path in told:
            with suppress(ClientRequestError):
                # What was typed in the same lines meanwhile stays as it is.
                meant, stored = self._read_again(bound, path)
                text = None if meant is None else _text_of(meant)
                if meant is not None and text is not None:
                    news = self._news(bound, path, text)
                    reply = self._questions.ask(WRITE, news, patience=_TAKING_BACK)
                    if reply.kind == "result":
                        self._settle(bound, meant, str(undone.operation), over=stored)

    def _answered_late(self, bound: AcpSession, told: Document, reply: EditorResult) -> None:
        """An editor that was told to forget a change may have made it all the same."""

        def look() -> None:
            shown = bound.workspace.show(told.path)
            try:
                found = bound.workspace.unsaved.record_late_save(told)
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


def _refused(what: str, error: ClientResponseError) -> ClientRequestError:
    """An editor's error for the agent, with the editor's own words and data."""
    said: dict[str, object] = {"code": error.code, "message": error.message}
    if error.data is not None:
        said["data"] = error.data
    data: dict[str, object] = {"errorKind": error.kind or "editor_refused", "editor": said}
    return ClientRequestError(error.code, f"{what}: {error.reason}", data)


def _stored(bound: AcpSession, path: WorkspacePath) -> Document | None:
    """Read a file from the disk; None for no file, or one that cannot be read whole."""
    with suppress(FilepactError):
        return bound.workspace.editors.stored(path)
    return None


def _text_of(document: Document) -> str | None:
    try:
        return document.text
    except BinaryFileError:
        return None


def _check_whole(location: Location, text: str | None) -> None:
    """Refuse a text with half a character in it: it could not be written."""
    try:
        if text is not None and not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        said = f"The editor sent half a character in {location.shown}."
        raise refuse(REFUSED, "read_error", said) from None


@dataclass(slots=True, eq=False)
class _Sent:
    """A text that was merged.

    Attributes:
        turn: The session's turn in which it was sent.
        text: As it was sent.
        meant: The file that came of it.
    """

    session: Session
    turn: int
    text: str
    meant: Document


class AgentWrites:
    """What such an agent has sent, until it has written it; for all threads.

    Args:
        client: The editor among the buffers.
    """

    def __init__(self, client: str) -> None:
        self._client = client
        self._sent: dict[WorkspacePath, _Sent] = {}
        self._lock = threading.Lock()

    def first(
        self, bound: AcpSession, session: Session, path: str, text: str
    ) -> tuple[Document | None, Document | None]:
        """Return a file as it was before the agent wrote to the disk what it now sends, and as it is.

        What it wrote is in the journal then.  None for the first where it has not, or nobody knows.
        """
        with suppress(FilepactError):
            disk = bound.workspace.editors.stored(path)
            if disk is not None and same_text(text, disk):
                bound.workspace.external.detect_in(disk.path, session)
                return bound.workspace.unsaved.before_external(disk), disk
        return None, None

    def sent(self, bound: AcpSession, session: Session, text: str, meant: Document) -> None:
        """A text was sent and written; another one may have come of it."""
        with self._lock:
            if same_text(text, meant):
                self._sent.pop(meant.path, None)
            else:
                self._sent[meant.path] = _Sent(session, bound.turn, text, meant)

    def update(self, path: WorkspacePath, meant: Document | None) -> None:
        """The file has become something else since, which is meant as well."""
        with self._lock:
            sent = self._sent.get(path)
            if sent is not None and meant is not None:
                sent.meant = meant

    def forget(self, path: WorkspacePath) -> None:
        """Forget what was sent: it is taken back."""
        with self._lock:
            self._sent.pop(path, None)

    def disk(self, bound: AcpSession, file: WorkspacePath | Location) -> Document | None:
        """Read a file from the disk, after the agent's own writing of it was put right.

        Args:
            bound: The session.
            file: Its true name, or the file where it was found before.

        Raises:
            FilepactError: It cannot be read whole, or not be put right.
        """
        with self._lock:
            sent = self._sent.get(file if isinstance(file, WorkspacePath) else file.path)
        if sent is None or bound.turn != sent.turn:
            return bound.workspace.editors.stored(file)
        return self._keep(bound, sent)

    def put_right(self, bound: AcpSession, path: WorkspacePath) -> None:
        """Put the agent's own writing of a file right, if it may have written it.

        Raises:
            FilepactError: It cannot be.
        """
        with self._lock:
            sent = self._sent.get(path)
        if sent is not None and bound.turn == sent.turn:
            self._keep(bound, sent)

    def end_step(self, bound: AcpSession) -> None:
        """The agent has ended one of its steps: what it wrote in it is on the disk."""
        with self._lock:
            ended = [one for one in self._sent.values() if one.session.id == bound.id]
            for one in ended:
                del self._sent[one.meant.path]
        for one in ended:
            self._keep(bound, one)

    def _keep(self, bound: AcpSession, sent: _Sent) -> Document | None:
        keep = bound.workspace.unsaved.restore_merge
        return keep(sent.meant, sent.text, sent.session, client=self._client)
