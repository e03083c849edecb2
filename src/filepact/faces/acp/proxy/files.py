"""The agent's requests about files, carried out in order and answered once each."""

from __future__ import annotations

import logging
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from filepact.domain.operation import Actor, Session
from filepact.errors import (
    ApprovalRequiredError,
    FilepactError,
    PathBlockedError,
    ProposalChangedError,
)
from filepact.faces.acp import files
from filepact.faces.acp.agents import quirks_of
from filepact.faces.acp.errors import (
    CANCELLED,
    INVALID,
    MISSING,
    REFUSED,
    ClientRequestError,
    refuse,
    to_refusal,
)
from filepact.faces.acp.proxy.dialog import settle, waits
from filepact.faces.acp.proxy.line import encode
from filepact.faces.acp.proxy.protocol import READ
from filepact.wire.messages import error_response, response

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from filepact.domain.operation import Approval
    from filepact.faces.acp.agents import ConnectionInfo
    from filepact.faces.acp.proxy.editor_buffers import EditorTexts
    from filepact.faces.acp.proxy.protocol import AgentRequest
    from filepact.faces.acp.proxy.questions import EditorRequests, EditorResult
    from filepact.faces.acp.sessions import AcpSession
    from filepact.wire.keyed_executor import KeyedExecutor
    from filepact.wire.messages import Message
    from filepact.workspace.excerpt import Excerpt
    from filepact.workspace.guard import Location
    from filepact.workspace.receipt import Receipt

__all__ = ["FileRequests", "failure"]

_log = logging.getLogger(__name__)

_SMALL: Final = 262_144  # bytes, or characters of an editor's text


@dataclass(slots=True, eq=False)
class _Job:
    """A request on its way.

    Attributes:
        turn: The session's turn in which it came.
        key: Of its file, for the executor.
    """

    request: AgentRequest
    bound: AcpSession
    turn: int
    key: Hashable
    cancelled: bool = False


class FileRequests:
    """``fs/read_text_file`` and ``fs/write_text_file``.

    Args:
        texts: What the editor shows.
        questions: Asks the editor.
        facts: What editor and agent have said about themselves.
        send: Takes a message for the agent, perhaps encoded.
        executor: Threads, by file.
    """

    def __init__(
        self,
        texts: EditorTexts,
        questions: EditorRequests,
        facts: ConnectionInfo,
        send: Callable[[Message | bytes], None],
        executor: KeyedExecutor,
    ) -> None:
        self._texts = texts
        self._questions = questions
        self._facts = facts
        self._send = send
        self._executor = executor
        self._jobs: dict[Hashable, _Job] = {}

    def take(self, request: AgentRequest, bound: AcpSession) -> None:
        """Carry out a request after those before it that are about the same file.

        A small file that nothing is done with is read at once, by whoever hears of it last: to
        wake another thread takes longer than that.
        """
        session, path = self._session(bound), str(request.params.get("path"))
        spot = self._readable(request, bound, session, path)
        key = files.key(bound, session, path) if spot is None else spot.lock_key
        asked = None if spot is None else self._texts.question(bound, spot, path)
        job = _Job(request, bound, bound.turn, key)
        self._jobs[_name(request.id)] = job
        if spot is None or spot.place.size > _SMALL or not self._executor.try_acquire(key):
            self._executor.submit(key, lambda: self._finish(job, lambda: self._act(job)))
            return

        def done(work: Callable[[], Message]) -> None:
            try:
                self._finish(job, work)
            finally:
                self._executor.release(key)

        def heard(reply: EditorResult) -> None:
            work = partial(self._heard, job, session, spot, reply)
            if _is_long(reply.value):
                self._executor.run(lambda: done(work))
            else:
                done(work)

        if asked is None:
            done(lambda: self._found(job, session, spot))
        else:
            patience = self._texts.patience
            self._questions.ask_then(READ, asked, heard, request=job, patience=patience)

    def _readable(
        self, request: AgentRequest, bound: AcpSession, session: Session, path: str
    ) -> Location | None:
        """The file of a request to read, where the rules let it be read."""
        if request.method != READ or not path.startswith("/"):
            return None
        try:
            return bound.workspace.guard.find(path, "read", agent=session.agent)
        except (FilepactError, ValueError):
            return None

    def cancel(self, wanted: Any) -> None:
        """The agent does not want a request any more; it is answered all the same."""
        job = self._jobs.get(_name(wanted))
        if job is not None:
            job.cancelled = True
            self._questions.drop_for(job)

    def close(self) -> None:
        """Begin nothing more, and wait for what has begun."""
        self._executor.close()

    # -- in the workers' threads ----------------------------------------------------------

    def _finish(self, job: _Job, work: Callable[[], Message | bytes]) -> None:
        name = _name(job.request.id)
        try:
            self._send(self._answer(job, work))
        finally:
            if self._jobs.get(name) is job:
                del self._jobs[name]

    def _answer(self, job: _Job, work: Callable[[], Message | bytes]) -> Message | bytes:
        """The answer that some work comes to; in bytes where it has been encoded."""
        request = job.request
        try:
            with self._questions.asked_for(job, lambda: _is_wanted(job)):
                result = work()
        except ClientRequestError as refusal:
            return failure(request.id, refusal)
        except FilepactError as error:
            path = str(request.params.get("path"))
            if isinstance(error, PathBlockedError | ApprovalRequiredError):
                tool = "read" if request.method == READ else request.method
                job.bound.workspace.asked.refused(self._session(job.bound), tool, error)
            return failure(request.id, to_refusal(error, path, job.bound.roots))
        except Exception:  # noqa: BLE001 - the last line of defence, and it is logged
            # The exception's text may name host paths: for the log only.
            _log.exception("%s failed", request.method)
            return failure(request.id, refuse(REFUSED, "internal", "It failed unexpectedly."))
        return result if isinstance(result, bytes) else response(request.id, result)

    def _act(self, job: _Job) -> Message | bytes:
        if job.request.method != READ:
            self._write(job)
            return {}
        path, session = _text(job.request.params, "path"), self._session(job.bound)
        if not path.startswith("/") or "\0" in path:
            raise refuse(INVALID, "invalid_params", "The path has to be absolute.")
        spot = job.bound.workspace.guard.find(path, "read", agent=session.agent)
        asked = self._texts.question(job.bound, spot, path)
        if asked is None:
            return self._found(job, session, spot)
        ready: list[tuple[files.DiskFile, bytes]] = []
        part = self._part(job, session, spot, asked)
        if part is not None:
            return self._result(part)

        def prepare() -> None:
            # A long file takes as long here as there, and most often both have the same.
            known = files.beforehand(job.bound, session, *_window(job.request.params))
            if known is not None:
                ready.append((known, encode(response(job.request.id, self._result(known.part)))))

        patience = self._texts.patience
        reply = self._questions.ask(READ, asked, patience=patience, meanwhile=prepare)
        text = self._texts.text_in(job.bound, spot, reply)
        if ready and ready[0][0].agrees(job.bound, session, text):
            self._texts.agreed(ready[0][0].document)
            return ready[0][1]
        self._texts.heard(job.bound, spot, text)
        return self._found(job, session)

    def _part(self, job: _Job, session: Session, spot: Location, asked: Message) -> Excerpt | None:
        """Some lines of a long file, where the editor shows there what the disk has.

        None where only the whole text tells what it shows.
        """
        path, line, limit = _window(job.request.params)
        if limit is None or spot.place.size <= _SMALL:
            return None
        known = files.beforehand(job.bound, session, path, line, limit)
        if known is None:
            return None
        asked = {**asked, "line": max(line or 1, 1), "limit": limit}
        reply = self._questions.ask(READ, asked, patience=self._texts.patience)
        if self._texts.text_in(job.bound, spot, reply) != known.part.text:
            return None
        known.remember(job.bound, session)
        return known.part

    def _heard(self, job: _Job, session: Session, spot: Location, reply: EditorResult) -> Message:
        """The answer once the editor has said what it shows."""
        text = self._texts.text_in(job.bound, spot, reply)
        if text is not None:
            known = files.beforehand(job.bound, session, *_window(job.request.params))
            if known is not None and known.agrees(job.bound, session, text):
                self._texts.agreed(known.document)
                return self._result(known.part)
        self._texts.heard(job.bound, spot, text)
        return self._found(job, session)

    def _found(self, job: _Job, session: Session, spot: Location | None = None) -> Message:
        """The answer from what is known of a file here, which may just have been found."""
        window = _window(job.request.params)
        try:
            return self._result(files.excerpt(job.bound, session, *window, found=spot))
        except ClientRequestError as refusal:
            if refusal.code == MISSING and quirks_of(self._facts.agent).missing_is_empty:
                return {"content": ""}
            raise

    def _result(self, part: Excerpt) -> Message:
        if quirks_of(self._facts.agent).counts_lines and part.total is not None:
            return {"content": part.text, "_meta": {"originalLineCount": part.total}}
        return {"content": part.text}

    def _write(self, job: _Job) -> None:
        params, bound = job.request.params, job.bound
        path, content = _text(params, "path"), _text(params, "content")
        if not path.startswith("/") or "\0" in path:
            raise refuse(INVALID, "invalid_params", "The path has to be absolute.")
        if not _is_wanted(job):
            raise refuse(CANCELLED, "cancelled", "The turn ended before this was written.")
        session = self._session(bound)
        self._fetch(job, session, path)
        comes = partial(self._texts.comes, bound, session, path, content)
        form = params.get("_meta") if quirks_of(self._facts.agent).tells_form else None
        write = partial(
            files.write,
            *(bound, session, path, content, job.turn),
            dropped=lambda: job.cancelled,
            locked=comes,
            form=form if isinstance(form, dict) else None,
        )
        if comes():
            self._fetch(job, session, path)
        try:
            receipt = write()
        except ClientRequestError:
            if not comes():
                raise
            # Its own writing came in between.
            self._fetch(job, session, path)
            receipt = write()
        if receipt.status == "pending":
            receipt = self._settle(job, session, path, receipt)
        self._texts.came(bound, session, content, receipt)
        for note in self._texts.deliver(bound, session, receipt):
            _log.warning("%s", note)

    def _fetch(self, job: _Job, session: Session, path: str) -> None:
        with suppress(FilepactError):
            # What the rules say of it is said by what comes next.
            self._texts.fetch(job.bound, session, path, to_write=True)

    def _settle(self, job: _Job, session: Session, path: str, receipt: Receipt) -> Receipt:
        """Ask the person, while other requests about the file are served, and do what they say."""
        bound = job.bound

        def approve(change: str, person: Approval) -> Receipt:
            outside.close()
            # They may have typed meanwhile, and others may have written.
            self._fetch(job, session, path)
            try:
                return bound.workspace.approve(change, person, to_agent=True)
            except ProposalChangedError:
                # They are asked once more.
                outside.enter_context(self._executor.suspended(job.key))
                raise

        with ExitStack() as outside:
            outside.enter_context(self._executor.suspended(job.key))
            receipt = settle(self._questions, self._facts, bound, receipt, approve)
        if receipt.status == "pending":
            raise waits(receipt)
        return receipt

    def _session(self, bound: AcpSession) -> Session:
        return Session(bound.id, Actor("agent", self._facts.agent, self._facts.version), bound.id)


def _is_wanted(job: _Job) -> bool:
    """Whether a write is still to be done; a read is answered in any case."""
    written = job.request.method != READ
    return not job.cancelled and not (written and job.bound.turn != job.turn)


def failure(wanted: Any, refusal: ClientRequestError) -> Message:
    """A refusal as the answer to a request."""
    return error_response(wanted, refusal.code, refusal.message, refusal.data)


def _window(params: Message) -> tuple[str, int | None, int | None]:
    """Which lines of which file are to be read."""
    return _text(params, "path"), _number(params.get("line")), _number(params.get("limit"))


def _text(params: Message, name: str) -> str:
    found = params.get(name)
    if not isinstance(found, str):
        raise refuse(INVALID, "invalid_params", f"{name} has to be a text.")
    return found


def _is_long(value: Any) -> bool:
    """Whether an editor's answer is one that takes a while to look at."""
    text = value.get("content") if isinstance(value, dict) else None
    return isinstance(text, str) and len(text) > _SMALL


def _number(found: object) -> int | None:
    """A count; what is none is as if it had not been sent, as the protocol's schema has it."""
    return found if type(found) is int and found >= 0 else None


def _name(wanted: Any) -> Hashable:
    """An id as a key: 1 and "1" are two."""
    return (type(wanted).__name__, str(wanted))
