"""The agent's requests about files, carried out in order and answered once each."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from filepact.domain.operation import Actor, Session
from filepact.errors import (
    ApprovalRequiredError,
    FilepactError,
    PathBlockedError,
    TimedOutError,
)
from filepact.values import dataclass
from filepact_acp import files
from filepact_acp.agents import quirks_of
from filepact_acp.approvals import LATER, ApprovalRequest
from filepact_acp.errors import (
    CANCELLED,
    INVALID,
    MISSING,
    REFUSED,
    ClientRequestError,
    refuse,
    to_refusal,
)
from filepact_acp.proxy.line import encode
from filepact_acp.proxy.protocol import READ
from filepact_wire.messages import error_response, response

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from filepact.domain.operation import Approval
    from filepact.domain.policy import Action
    from filepact.workspace.excerpt import Excerpt
    from filepact.workspace.location import Location
    from filepact.workspace.receipt import Receipt
    from filepact_acp.agents import ConnectionInfo
    from filepact_acp.approvals import ApprovalQuestion
    from filepact_acp.keyed_executor import KeyedExecutor
    from filepact_acp.proxy.editor_buffers import EditorTexts
    from filepact_acp.proxy.editor_requests import EditorRequests, EditorResult
    from filepact_acp.proxy.protocol import AgentRequest
    from filepact_acp.sessions import AcpSession
    from filepact_wire.messages import Message

__all__ = ["FileRequests", "failure", "settle"]

_log = logging.getLogger(__name__)

_SMALL: Final = 262_144  # bytes, or characters of an editor's text


@dataclass(slots=True, eq=False)
class _Job:
    """A request on its way.

    Attributes:
        session: Whose request it is, for the journal.
        path: As it was sent.
        drops: Those of the session when it came.
        reads: Whether it is one to read the file.
        location: The file, if the rules let it be used so; None where that is to be found out.
        key: Of the file, for the executor.
        recorded: Whether the audit log is told of the call by what carries it out.
        to_person: Whether it waits for a person.
    """

    request: AgentRequest
    bound: AcpSession
    session: Session
    path: str
    drops: int
    reads: bool
    location: Location | None = None
    key: Hashable = None
    cancelled: bool = False
    recorded: bool = False
    to_person: bool = False

    @property
    def is_wanted(self) -> bool:
        """Whether a write is still to be done; a read is answered in any case."""
        return not self.cancelled and (self.reads or self.bound.drops == self.drops)


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
        self._less = threading.Condition()

    def take(self, request: AgentRequest, bound: AcpSession) -> None:
        """Carry out a request after those before it that are about the same file.

        A small file that nothing is done with is read at once, by whoever hears of it last: to
        wake another thread takes longer than that.
        """
        session, path = self._session(bound), str(request.params.get("path"))
        job = _Job(request, bound, session, path, bound.drops, request.method == READ)
        job.location = location = _find(job)
        job.key = files.key(bound, session, path) if location is None else location.lock_key
        self._jobs[_name(request.id)] = job
        small = location is not None and location.place.size <= _SMALL
        if not job.reads or not small or not self._executor.try_acquire(job.key):
            if not self._executor.is_free(job.key):
                # What runs before it may make another file of it.
                job.location = None
            self._executor.submit(job.key, partial(self._finish, job, partial(self._act, job)))
            return
        asked = None if location is None else self._texts.question(bound, location, path)
        if asked is None:
            self._finish_reserved(job, partial(self._found, job))
        else:
            patience = self._texts.patience
            heard = partial(self._receive_reply, job)
            self._questions.ask_then(READ, asked, heard, request=job, patience=patience)

    def _receive_reply(self, job: _Job, reply: EditorResult) -> None:
        work = partial(self._finish_reserved, job, partial(self._receive_text, job, reply))
        if _is_long(reply.value):
            self._executor.run(work)
        else:
            work()

    def _finish_reserved(self, job: _Job, work: Callable[[], Message]) -> None:
        try:
            self._finish(job, work)
        finally:
            self._executor.release(job.key)

    def cancel(self, wanted: Any) -> bool:
        """The agent does not want a request any more, which is answered all the same; whether it is one of these."""
        job = self._jobs.get(_name(wanted))
        if job is not None:
            job.cancelled = True
            self._questions.drop_for(job)
        return job is not None

    def finish(self, bound: AcpSession, patience: float) -> None:
        """Wait until what came of a session is written, but for what a person decides, or for so many seconds."""

        def is_done() -> bool:
            return not any(
                job.bound is bound and not job.reads and not job.to_person
                for job in tuple(self._jobs.values())
            )

        with self._less:
            self._less.wait_for(is_done, patience)

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
            with self._less:
                self._less.notify_all()

    def _answer(self, job: _Job, work: Callable[[], Message | bytes]) -> Message | bytes:
        """The answer that some work comes to; in bytes where it has been encoded."""
        request, begun, code = job.request, time.perf_counter(), "INTERNAL_ERROR"
        try:
            with self._questions.asked_for(job):
                result = work()
            code = "OK"
        except ClientRequestError as refusal:
            return failure(request.id, refusal)
        except FilepactError as error:
            code = error.code
            if isinstance(error, PathBlockedError | ApprovalRequiredError):
                tool = "read" if job.reads else request.method
                job.bound.workspace.asked.refused(job.session, tool, error)
            return failure(request.id, to_refusal(error, job.path, job.bound.roots))
        except Exception:  # noqa: BLE001 - the last line of defence, and it is logged
            # The exception's text may name host paths: for the log only.
            _log.exception("%s failed", request.method)
            return failure(request.id, refuse(REFUSED, "internal", "It failed unexpectedly."))
        finally:
            audit = job.bound.workspace.audit
            if audit is not None and not job.recorded:
                seconds = time.perf_counter() - begun
                audit.called(job.session, request.method, job.path, code, seconds)
        return result if isinstance(result, bytes) else response(request.id, result)

    def _act(self, job: _Job) -> Message | bytes:
        path = _text(job.request.params, "path")
        if not path.startswith("/") or "\0" in path:
            raise refuse(INVALID, "invalid_params", "The path has to be absolute.")
        if not job.reads:
            self._write(job)
            return {}
        guard, agent = job.bound.workspace.guard, job.session.agent
        job.location = location = job.location or guard.find(path, "read", agent=agent)
        asked = self._texts.question(job.bound, location, path)
        if asked is None:
            return self._found(job)
        # A long file takes as long to read here as there, and most often both have the same.
        part = self._part(job, location, asked)
        if part is not None:
            return self._result(part)
        question = self._questions.begin(READ, asked)
        known = self._beforehand(job)
        ready = None
        if known is not None:
            ready = encode(response(job.request.id, self._result(known.part)))
        reply = self._questions.end_of(question, patience=self._texts.patience)
        text = self._texts.text_of_reply(job.bound, location, reply)
        if ready is not None and known is not None and known.agrees(job.bound, job.session, text):
            self._texts.mark_agreed(known.document)
            return ready
        self._texts.receive(job.bound, location, text)
        job.location = None
        return self._found(job)

    def _part(self, job: _Job, location: Location, asked: Message) -> Excerpt | None:
        """Return lines of a long file, where the editor shows the same as the disk there.

        None where only the whole text tells what it shows.
        """
        _, line, limit = _window(job.request.params)
        if limit is None or location.place.size <= _SMALL:
            return None
        known = self._beforehand(job)
        if known is None:
            return None
        asked = {**asked, "line": max(line or 1, 1), "limit": limit}
        reply = self._questions.ask(READ, asked, patience=self._texts.patience)
        if self._texts.text_of_reply(job.bound, location, reply) != known.part.text:
            return None
        known.remember(job.bound, job.session)
        return known.part

    def _beforehand(self, job: _Job) -> files.DiskFile | None:
        return files.beforehand(job.bound, job.session, *_window(job.request.params))

    def _receive_text(self, job: _Job, reply: EditorResult) -> Message:
        """The answer once the editor has said what it shows of a file that was found."""
        location = job.location
        if location is None:
            raise AssertionError
        text = self._texts.text_of_reply(job.bound, location, reply)
        known = None if text is None else self._beforehand(job)
        if known is not None and known.agrees(job.bound, job.session, text):
            self._texts.mark_agreed(known.document)
            return self._result(known.part)
        self._texts.receive(job.bound, location, text)
        job.location = None
        return self._found(job)

    def _found(self, job: _Job) -> Message:
        """The answer from what is known of a file here, which may just have been found."""
        window = _window(job.request.params)
        job.recorded = True
        try:
            return self._result(files.excerpt(job.bound, job.session, *window, found=job.location))
        except ClientRequestError as refusal:
            if refusal.code == MISSING and quirks_of(self._facts.agent).missing_is_empty:
                return {"content": ""}
            raise

    def _result(self, part: Excerpt) -> Message:
        if quirks_of(self._facts.agent).counts_lines and part.total is not None:
            return {"content": part.text, "_meta": {"originalLineCount": part.total}}
        return {"content": part.text}

    def _write(self, job: _Job) -> None:
        key = files.key(job.bound, job.session, job.path)
        try:
            with self._texts.alone(job.bound, [key]):
                self._write_alone(job)
        except TimedOutError as error:
            raise to_refusal(error, job.path, job.bound.roots) from None

    def _write_alone(self, job: _Job) -> None:
        params, bound, session = job.request.params, job.bound, job.session
        content = _text(params, "content")
        if not job.is_wanted:
            raise refuse(CANCELLED, "cancelled", "The turn ended before this was written.")
        self._fetch(job, job.location)
        quirks, job.recorded = quirks_of(self._facts.agent), True
        form = params.get("_meta") if quirks.tells_form else None
        comes = partial(self._texts.begin_write, bound, session, job.path, content)
        write = partial(
            files.write,
            *(bound, session, job.path, content, job.drops),
            dropped=lambda: job.cancelled,
            form=form if isinstance(form, dict) else None,
            found=job.location,
        )
        if not quirks.writes_itself:
            receipt = write()
        else:
            if comes():
                self._fetch(job)
            try:
                receipt = write(locked=comes)
            except ClientRequestError:
                if not comes():
                    raise
                # Its own writing came in between.
                self._fetch(job)
                receipt = write(locked=comes)
        if receipt.status == "pending":
            receipt = self._settle(job, receipt)
        if quirks.writes_itself:
            self._texts.end_write(bound, session, content, receipt)
        for note in self._texts.deliver(bound, session, receipt, found=job.location):
            _log.warning("%s", note)

    def _fetch(self, job: _Job, found: Location | None = None) -> None:
        with suppress(FilepactError):
            # What the rules say of it is said by what comes next.
            self._texts.fetch(job.bound, job.session, job.path, to_write=True, found=found)

    def _settle(self, job: _Job, receipt: Receipt) -> Receipt:
        """Ask the person, while other requests about the file are served, and do what they say."""
        bound, job.to_person = job.bound, True
        with self._less:
            self._less.notify_all()

        def approve(change: str, person: Approval) -> Receipt:
            # They may have typed meanwhile, and others may have written.
            self._texts.go_on()
            self._fetch(job)
            return bound.workspace.approve(change, person, to_agent=True)

        def meanwhile() -> AbstractContextManager[object]:
            self._texts.let_others()
            return self._executor.suspended(job.key)

        receipt = settle(self._questions, self._facts, bound, receipt, approve, meanwhile=meanwhile)
        if receipt.status == "pending":
            raise refuse(
                REFUSED,
                "approval_required",
                f"This change waits for a person as {receipt.operation} ({receipt.rule}); nothing "
                "is changed yet. The person finds it with `filepact review --list`, and decides there. "
                "Do not send it again.",
            )
        return receipt

    def _session(self, bound: AcpSession) -> Session:
        return bound.caller(Actor("agent", self._facts.agent, self._facts.version))


def settle(
    questions: EditorRequests,
    facts: ConnectionInfo,
    bound: AcpSession,
    receipt: Receipt,
    approve: Callable[[str, Approval], Receipt],
    *,
    meanwhile: Callable[[], AbstractContextManager[object]] = nullcontext,
    patience: float | None = None,
) -> Receipt:
    """Ask the person about a change that waits, in the editor's dialog, and do it or not.

    Args:
        questions: Asks the editor.
        facts: Which version of the protocol it speaks.
        bound: The session.
        receipt: Of the change, which is pending.
        approve: Does it, once it was allowed.
        meanwhile: Is entered while the person looks.
        patience: Seconds after which the change is left waiting; None for as long as it takes.

    Returns:
        The receipt of what was done, or of what waits when the editor has no dialog or nobody
        answers.

    Raises:
        ClientRequestError: The question was closed, or the turn ended first.
        FilepactError: The person said no, or it was allowed and could not be done.
    """
    person, modern = Actor("person", "editor"), facts.protocol > 1
    dialog = ApprovalRequest(
        *(bound.workspace, str(receipt.operation), person),
        name=bound.name_of,
        modern=modern,
        prefix="filepact",
        approve=approve,
    )
    while dialog.is_open:
        question, reply, call_id = dialog.question(), None, dialog.call_id
        try:
            allowed: bool | None = True
            if question is not None:
                asked = _permission_request(bound.id, question, modern=modern)
                with meanwhile():
                    reply = questions.ask("session/request_permission", asked, patience=patience)
                allowed = _decision(dialog, reply)
            if allowed is None:
                break
            dialog.carry_out(allowed=allowed)
        finally:
            if reply is not None and reply.kind != "silent":
                # The editor need not show the call as one that waits.
                update = {
                    "sessionUpdate": "tool_call_update",
                    "toolCallId": call_id,
                    "status": "completed" if dialog.done else "failed",
                }
                questions.tell("session/update", {"sessionId": bound.id, "update": update})
    return dialog.receipt or receipt


def _decision(dialog: ApprovalRequest, reply: EditorResult) -> bool | None:
    """Whether the person's answer allows the change; None leaves it waiting.

    Raises:
        ClientRequestError: The question was closed without an answer, or the turn ended first.
    """
    if reply.kind == "cancelled":
        dialog.withdraw(Actor("program", "editor"), "the turn ended")
        raise refuse(CANCELLED, "cancelled", "The turn ended before this was approved.")
    outcome = reply.value.get("outcome") if isinstance(reply.value, dict) else None
    if reply.kind != "result" or not isinstance(outcome, dict):
        return None
    if outcome.get("outcome") == "cancelled":
        dialog.withdraw(Actor("person", "editor"), "closed without an answer")
        closed = refuse(
            REFUSED, "denied", "The question was closed without an answer; nothing was changed."
        )
        closed.data["closed"] = True
        raise closed
    chosen = outcome.get("optionId") if outcome.get("outcome") == "selected" else None
    allowed = dialog.understand(chosen)
    return False if allowed is None and chosen != LATER else allowed


def _permission_request(session_id: str, question: ApprovalQuestion, *, modern: bool) -> Message:
    if not modern:
        return {"sessionId": session_id, "toolCall": question.call, "options": question.options}
    asked: Message = {
        "sessionId": session_id,
        "title": question.call["title"],
        "subject": {"type": "tool_call", "toolCall": question.call},
        "options": question.options,
    }
    # What is in the call stays with the call; what is said besides is for the question alone.
    return {**asked, "description": question.text} if question.text else asked


def _find(job: _Job) -> Location | None:
    """The file of a request, where the rules let it be read, or written."""
    action: Action = "read" if job.reads else "write"
    with suppress(FilepactError, ValueError):
        if job.path.startswith("/"):
            return job.bound.workspace.guard.find(job.path, action, agent=job.session.agent)
    return None


def failure(wanted: Any, refusal: ClientRequestError) -> Message:
    """A refusal as the answer to a request."""
    return error_response(wanted, refusal.code, refusal.message, refusal.data)


def _window(params: Message) -> tuple[str, int | None, int | None]:
    """The path, the first line and the count of lines that a request names."""
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
