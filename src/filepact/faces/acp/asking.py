"""What a person is asked: about changes that wait, and what agents ask to permit."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from acp.schema import ToolCallUpdate
from pydantic import BaseModel, ValidationError

from filepact.domain.operation import Actor, Approval
from filepact.errors import FilepactError
from filepact.faces.acp.errors import CANCELLED, REFUSED, ClientRequestError, refuse
from filepact.faces.acp.permissions import call_of, choose, read_question, rule_on
from filepact.faces.acp.record import PermissionLogWriter, read_report

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from filepact.faces.acp.agents import ConnectionInfo
    from filepact.faces.acp.sessions import AcpSession, Sessions

__all__ = ["ApprovalRequests", "PermissionRequests", "Question", "too_late", "withdraw"]

_log = logging.getLogger("filepact.acp")

_TOLD: Final = ("title", "kind", "status", "content", "locations", "rawInput")
_CALLS: Final = 256  # calls that are remembered whole; an agent has a few at once
_HEAVY: Final = 1_000_000  # characters of the diffs of one, beyond which they are not kept
_HELD: Final = 16 * _HEAVY  # the same of all of them


@dataclass(frozen=True, slots=True)
class Question:
    """A change that a person has to answer.

    Attributes:
        change: Its id in the journal.
        path: As the agent sent it.
        diff: Unified, whole, with what is hidden in it written out.
        rule: Why it is asked.
    """

    change: str
    path: str
    diff: str
    rule: str


class ApprovalRequests:
    """What a person is being asked.

    Args:
        ask: Asks; None leaves every change waiting.
    """

    def __init__(self, ask: Callable[[Question], Awaitable[bool]] | None) -> None:
        self._ask = ask

    async def answer(self, bound: AcpSession, question: Question) -> bool:
        """What a person says to a stored change.

        Raises:
            ClientRequestError: Nobody can be asked, and it waits; or its turn ended, and it waits no more.
        """
        change = question.change
        waits = refuse(
            REFUSED,
            "approval_required",
            f"This change waits for a person as {change} ({question.rule}). "
            "The person finds it with `filepact pending`, and decides there.",
        )
        if self._ask is None:
            raise waits
        asking = asyncio.ensure_future(self._ask(question))
        bound.waiting[asking] = change
        try:
            return await asking
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                withdraw(bound, change)
                raise
            raise too_late() from None
        except Exception:  # noqa: BLE001 - a client's own, whose text is not for the agent
            _log.exception("a person could not be asked")
            raise waits from None
        finally:
            bound.waiting.pop(asking, None)


def too_late() -> ClientRequestError:
    """The refusal of a change whose turn ended before a person agreed."""
    return refuse(CANCELLED, "cancelled", "The turn ended before this was approved.")


def withdraw(bound: AcpSession, change: str) -> None:
    """Let a change that nobody waits for any more wait for nobody."""
    with suppress(FilepactError):
        said = "nobody waited for an answer any more"
        bound.workspace.reject(change, Approval(Actor("program", "client"), said))


class PermissionRequests:
    """What an agent asks a person to permit.

    A question is joined with what was told of its call before, judged by the rules, and written
    into the journal with its answer.

    Args:
        sessions: Their folders.
        facts: Who the agent is.
    """

    def __init__(self, sessions: Sessions, facts: ConnectionInfo) -> None:
        self._sessions = sessions
        self._facts = facts
        self._told: OrderedDict[tuple[AcpSession, str], tuple[Mapping[str, Any], int]] = (
            OrderedDict()
        )
        self._held = 0
        self._numbers = count()
        self._record: PermissionLogWriter | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def told(self, bound: AcpSession, update: Mapping[str, Any], *, again: bool) -> None:
        """An agent tells of a call of its tools.

        Args:
            bound: The session.
            update: As it was sent.
            again: The session is being loaded, and what happened in it is told once more.
        """
        call = {name: value for name, value in update.items() if name != "sessionUpdate"}
        bound.calls.learn(call, bound.roots[0])
        self._keep(bound, call)
        if not again:
            self._recording(bound).told(bound, call)

    async def ask(
        self,
        bound: AcpSession,
        params: dict[str, Any],
        pass_on: Callable[[dict[str, Any]], Awaitable[Any]],
        note: Callable[[str], Awaitable[None]],
    ) -> Any:
        """The answer to a question: the rules', or what the client's own method makes of it.

        Args:
            bound: The session.
            params: As they were sent.
            pass_on: The client's method.
            note: Tells the person a sentence.
        """
        call = call_of(params)
        asked = bound.calls.whole(call, read_question(params, bound.roots[0]))
        guard, record = bound.workspace.guard, self._recording(bound)
        ruling = await asyncio.to_thread(rule_on, asked, guard, self._facts.agent)
        if ruling.verdict != "person":
            answer = choose(params.get("options"), ruling.verdict)
            record.ruled(bound, params, asked, ruling, answer)
            await note(
                f"{asked.title or 'A tool call'}: {ruling.verdict} by the rules. {ruling.why}"
            )
            return answer
        number, said = next(self._numbers), None
        record.passed(number, bound, params, asked)
        try:
            said = await pass_on({**params, "toolCall": self._whole(bound, call)})
        finally:
            plain = said.model_dump(by_alias=True) if isinstance(said, BaseModel) else said
            record.answered(number, {"result": plain})
        return said

    def end(self, bound: AcpSession) -> None:
        """A session is over."""
        for key in [key for key in self._told if key[0] is bound]:
            self._held -= self._told.pop(key)[1]
        if self._record is not None and bound.recorded:
            bound.recorded = False
            self._record.end(bound)

    def close(self) -> None:
        """Write what is left, and end."""
        if self._record is not None:
            self._record.close()
        self._record = None

    def _recording(self, bound: AcpSession) -> PermissionLogWriter:
        """What writes; with a hold on the session's folders that lasts until it has written."""
        if self._record is None:
            self._loop = asyncio.get_running_loop()
            self._record = PermissionLogWriter(self._facts, self._let_go)
        if not bound.recorded:
            bound.recorded = True
            self._sessions.hold(bound)
        return self._record

    def _let_go(self, session: AcpSession) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):
                # The loop is closed: so are the sessions, or they will be with the process.
                self._loop.call_soon_threadsafe(self._sessions.release, session)

    def _keep(self, bound: AcpSession, call: Mapping[str, Any]) -> None:
        name = call.get("toolCallId")
        if not isinstance(name, str):
            return
        known, weight = self._told.pop((bound, name), ({}, 0))
        self._held -= weight
        whole = {**known, **{key: call[key] for key in _TOLD if call.get(key)}}
        weight = read_report(whole, bound.roots[0]).weight + len(str(whole.get("rawInput", "")))
        if weight > _HEAVY:
            whole, weight = {k: v for k, v in whole.items() if k not in {"content", "rawInput"}}, 0
        self._told[bound, name] = (whole, weight)
        self._held += weight
        while len(self._told) > _CALLS or self._held > _HELD:
            self._held -= self._told.popitem(last=False)[1][1]

    def _whole(self, bound: AcpSession, call: dict[str, Any]) -> dict[str, Any]:
        """A question's call with what was told of it before, where that is of the protocol."""
        known, _ = self._told.get((bound, str(call.get("toolCallId"))), ({}, 0))
        whole = {**known, **{name: value for name, value in call.items() if value}}
        try:
            ToolCallUpdate.model_validate(whole)
        except ValidationError:
            return call
        return whole
