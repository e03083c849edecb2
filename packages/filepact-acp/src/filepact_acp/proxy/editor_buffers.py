"""The editor's texts: asked for before a file is used, and handed over after it was changed.

An editor answers with a text, says that it has no such file, refuses, or answers late.  Only the
second means that the disk is to be looked at: a refusal is passed on, and of an editor that is
late nobody knows what it has.
"""

from __future__ import annotations

import logging
import threading
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from filepact.errors import BinaryFileError, FilepactError, StaleFileError
from filepact.workspace.buffers import BufferFormat
from filepact.workspace.documents import EDIT_LIMIT
from filepact_acp.agents import AgentWrites
from filepact_acp.client_buffers import PATIENCE, ClientBuffers, ClientWrite
from filepact_acp.errors import (
    CANCELLED,
    REFUSED,
    ClientRequestError,
    is_for_the_disk,
    refuse,
    to_refusal,
)
from filepact_acp.proxy.protocol import READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from filepact.domain.document import Document, WorkspacePath
    from filepact.domain.operation import Session
    from filepact.domain.policy import Action
    from filepact.workspace.buffers import Buffers
    from filepact.workspace.location import Location, Name
    from filepact.workspace.receipt import Receipt
    from filepact_acp.agents import ConnectionInfo
    from filepact_acp.errors import ClientResponseError
    from filepact_acp.proxy.editor_requests import EditorRequests, EditorResult
    from filepact_acp.sessions import AcpSession
    from filepact_wire.messages import Message

__all__ = ["EditorTexts"]

EDITOR: Final = "editor"
"""The name of the editor's connection among the buffers."""

_TAKING_BACK: Final = 10.0  # seconds for an editor to take the old text of a file again

_Told = dict["WorkspacePath", "str | None"]
"""Files of which an editor was given a new text; with what was typed where that stands, if both do not go together."""

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
        self._client = ClientBuffers(EDITOR, buffers)
        self._buffers = buffers
        self._twice = AgentWrites(EDITOR)
        self._mine = threading.local()

    # -- other proxies of the same editor -------------------------------------------------

    @contextmanager
    def alone(self, bound: AcpSession, keys: Iterable[str]) -> Iterator[None]:
        """Change files while no other proxy does, from what the editor shows until it has the new text.

        Else it would be given an older text after a newer one, which takes the other agent's change away.

        Args:
            bound: The session's folders.
            keys: The files' lock keys.

        Raises:
            TimedOutError: Another agent's change is still being looked at in the editor.
        """
        with ExitStack() as held:
            self._mine.held = held
            self._mine.take = partial(bound.workspace.editors.alone, tuple(keys))
            held.enter_context(self._mine.take())
            yield

    def let_others(self) -> None:
        """Let other proxies change the files of this thread's call, while a person is asked."""
        self._mine.held.close()

    def go_on(self) -> None:
        """Keep them from it again: what comes now is written."""
        self._mine.held.close()
        self._mine.held.enter_context(self._mine.take())

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
        sent = str(path)
        if not any(sent.startswith(f"{root.rstrip('/')}/") for root in bound.roots):
            sent = bound.name_of(location.path)
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
        text = _content_of(reply)
        if text is not None:
            return text
        if location.place.kind == "missing":
            return None
        raise refuse(REFUSED, "read_error", f"The editor sent no text of {location.shown}.")

    def receive(self, bound: AcpSession, location: Location, text: str | None) -> None:
        """Take what the editor said when it was asked.

        Raises:
            ClientRequestError: It is no text that can be written.
        """
        _check_whole(location, text)
        self._client.take(location.path, text, partial(self._stored, bound, location))

    def mark_agreed(self, document: Document) -> None:
        """The editor shows of a file just what the disk has, and has shown nothing else."""
        style = BufferFormat()
        self._buffers.remember(document.path, agreed=document, style=style, absent=False)

    def receive_notification(self, bound: AcpSession, method: str, params: Message) -> None:
        """Take what the editor says of a file by itself; nonsense is ignored."""
        with suppress(FilepactError):
            self._client.receive(bound.workspace, method, params)

    # -- what the agent writes by itself as well ------------------------------------------

    def begin_write(self, bound: AcpSession, session: Session, path: str, content: str) -> bool:
        """The agent sends a text; whether it has written that by itself already."""
        before, disk = self._twice.first(bound, session, path, content)
        if before is None:
            return False
        if self._buffers.history(before.path).agreed in (None, disk):
            # What the editor holds grew from that.
            self._buffers.agree(before)
        return True

    def end_write(
        self, bound: AcpSession, session: Session, content: str, receipt: Receipt
    ) -> None:
        """Note that the agent's text was written, or merged and written."""
        if receipt.status == "applied":
            for meant in bound.workspace.editors.written(str(receipt.operation)):
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
        merged = self._buffers.take(EDITOR)
        for delivery in merged:
            base = delivery.before.base
            if base is not None and self._facts.reads and self._buffers.announces(base.path):
                # With the new text it is asked what it shows, and what it says by itself is too late.
                self._client.close(base.path)
                self._buffers.agree(base)
        told: _Told = {}
        if receipt.status == "unchanged":
            # The disk had it already, and has now what was typed as well.
            for delivery in merged:
                try:
                    self._tell(bound, delivery.path, "", told)
                except ClientRequestError:
                    self._give_back(bound, delivery.path, told, "")
                    raise
        operation = receipt.operation
        if receipt.status != "applied" or operation is None:
            return ()
        notes: list[str] = []
        try:
            for path, there in receipt.present:
                if there:
                    known = found if found is not None and found.path == path else None
                    notes.append(self._tell(bound, path, operation, told, known))
                else:
                    self._client.close(path)
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
        told: _Told,
        found: Location | None = None,
        *,
        patience: float | None = None,
    ) -> str:
        shown = bound.workspace.show(path)
        if not self._facts.writes:
            if self._buffers.get(path) is None or self._buffers.announces(path):
                return ""
            self._client.close(path)
            return f"{shown}: the editor takes no writes; it shows the old text until it loads it."
        # From the editor's answer on nothing is done that takes time: what is typed from then on
        # is not in what it is given.
        meant, stored, showed = self._read_again(bound, path, found)
        if meant is None or _text_of(meant) is None:
            return ""
        meant, reply = self._hand_over(
            *(bound, meant, showed, told), typing=stored is not meant, patience=patience
        )
        if stored is not meant:
            _log.warning("%s: what was typed meanwhile was kept", shown)
        if reply.kind == "error":
            raise _refused("The editor refused this change", reply.value)
        if reply.kind == "cancelled":
            raise refuse(CANCELLED, "cancelled", "The turn ended before this was done.")
        if reply.kind == "silent" and patience is not None:
            return ""
        return self._settle(bound, meant, operation, over=stored)

    def _hand_over(
        self,
        bound: AcpSession,
        meant: Document,
        showed: str | None,
        told: _Told,
        *,
        typing: bool,
        patience: float | None = None,
    ) -> tuple[Document, EditorResult]:
        """Give the editor a new text, and again what was typed between its last answer and that.

        Args:
            bound: The session's folders.
            meant: The file as it is to be.
            showed: What the editor showed when that was made; None where it was not asked.
            told: Takes what the editor has then.
            typing: Whether somebody has typed while the change was made.
            patience: Seconds for the editor to take it; None for as long as it takes a person.

        Returns:
            The file as the editor has it now, and its answer.

        Raises:
            ClientRequestError: The same was typed meanwhile; it shows that again.
        """
        path, place = meant.path, _place(bound, meant.path)
        styled = partial(self._client.in_style, path)
        news, seen = ClientWrite(meant, styled, showed, typing=typing), None
        try:
            while True:
                while news.waits:
                    seen = _content_of(self._questions.ask(READ, place, patience=self.patience))
                    news.looked(seen)
                self._twice.update(path, news.meant)
                late = partial(self._answered_late, bound, news.meant)
                write = {**place, "content": news.text}
                if not news.asks:
                    reply = self._questions.ask(WRITE, write, patience=patience, late=late)
                    told.update({path: None} if reply.kind == "result" else {})
                    return news.meant, reply
                asked = self._questions.begin_together((READ, place), (WRITE, write), late=late)
                seen = _content_of(self._questions.end_of(asked[0], patience=self.patience))
                reply = self._questions.end_of(asked[1], patience=patience)
                told.update({path: None} if reply.kind == "result" else {})
                if reply.kind != "result" or news.given(seen):
                    return news.meant, reply
        except StaleFileError as error:
            if seen is not None and news.was_given:
                told[path] = seen
            raise to_refusal(error, path.absolute, bound.roots) from None

    def _read_again(
        self, bound: AcpSession, path: WorkspacePath, found: Location | None = None
    ) -> tuple[Document | None, Document | None, str | None]:
        """A file as the editor is to show it, as the disk has it, and what the editor shows if it was asked.

        The first two differ where somebody has typed while the change was made: the editor is given all of
        the text.

        Raises:
            ClientRequestError: It was typed in the same lines, or nobody can know what it is.
        """
        workspace, agent = bound.workspace, self._facts.agent
        try:
            buffer = self._buffers.get(path)
            if buffer is not None and buffer.announced:
                stored = self._stored(bound, path)
                if not buffer.is_unsaved:
                    return stored, stored, None
                joined = workspace.editors.merge(path, agent=agent)
                return (stored if joined == stored else joined), stored, None
            # What is known of it has gone into the change.
            self._client.close(path)
            text, location = None, None
            if not self._buffers.history(path).absent:
                location = found or workspace.guard.find(path, "list")
                asked = self.question(bound, location, path)
                if asked is not None:
                    reply = self._questions.ask(READ, asked, patience=self.patience)
                    text = self.text_of_reply(bound, location, reply)
                    _check_whole(location, text)
            stored = self._stored(bound, location or path)
            if text is None or stored is None:
                return stored, stored, text
            return self._client.joined(workspace, stored, text, agent=agent), stored, text
        except FilepactError as error:
            raise to_refusal(error, path.absolute, bound.roots) from None

    def _settle(
        self, bound: AcpSession, meant: Document, operation: str, *, over: Document | None = None
    ) -> str:
        """The editor has the new text and, as the protocol wants it, has saved it."""
        path, shown = meant.path, bound.workspace.show(meant.path)
        self._client.close(path)
        with suppress(FilepactError):
            self._twice.put_right(bound, path)
        left = self._client.settle(bound.workspace, meant, operation, over)
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
        told: _Told,
        refusal: ClientRequestError,
    ) -> None:
        workspace = bound.workspace
        for path in paths:
            self._twice.forget(path)
            # It shows what the disk is to have again.
            self._client.close(path)
        try:
            undone = workspace.undo(session, operation, dry_run=False)
        except FilepactError:
            raise refuse(
                REFUSED,
                "editor_refused",
                f"{refusal.message} It is on the disk as {operation} all the same and could not "
                f"be taken back; `filepact show {operation}` shows it.",
            ) from None
        self._buffers.take(EDITOR)
        for path, seen in tuple(told.items()):
            if seen is None:
                with suppress(ClientRequestError):
                    # What was typed in the same lines meanwhile stays as it is.
                    self._tell(bound, path, str(undone.operation), told, patience=_TAKING_BACK)
            self._give_back(bound, path, told, str(undone.operation))

    def _give_back(
        self, bound: AcpSession, path: WorkspacePath, told: _Told, operation: str
    ) -> None:
        """Give the editor again what was typed where it was given another text."""
        seen, disk = told.get(path), self._stored(bound, path)
        if seen is not None and disk is not None:
            # It is the editor's again, and what that saves is a change of its own.
            news = {**_place(bound, path), "content": seen}
            self._questions.ask(WRITE, news, patience=_TAKING_BACK)
            self._settle(bound, disk, operation)

    def _answered_late(self, bound: AcpSession, told: Document, reply: EditorResult) -> None:
        """An editor that was told to forget a change may have made it all the same."""

        def look() -> None:
            shown = bound.workspace.show(told.path)
            try:
                found = bound.workspace.editors.record_late_save(told)
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


def _place(bound: AcpSession, path: WorkspacePath) -> Message:
    """A file of a session as the editor calls it."""
    return {"sessionId": bound.id, "path": bound.name_of(path)}


def _content_of(reply: EditorResult) -> str | None:
    """The text that an editor answered with; None for none."""
    text = reply.value.get("content") if isinstance(reply.value, dict) else None
    return text if isinstance(text, str) else None


def _text_of(document: Document) -> str | None:
    """The text for an editor; None for no text, and for one with bytes that no editor can be sent."""
    try:
        return None if document.source.encoding.damaged else document.text
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
