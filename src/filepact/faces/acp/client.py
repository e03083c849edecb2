"""A client's file system for agents, on the protocol's official package."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acp import Client, RequestError
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
    WriteTextFileResponse,
)

from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import FilepactError
from filepact.faces.acp import files
from filepact.faces.acp.errors import (
    CANCELLED,
    INVALID,
    MISSING,
    REFUSED,
    Refusal,
    refuse,
    to_refusal,
)
from filepact.faces.acp.quirks import quirks_of
from filepact.faces.acp.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from acp.schema import PermissionOption, ToolCallUpdate

    from filepact.faces.acp.sessions import Bound
    from filepact.workspace.receipt import Receipt
    from filepact.workspace.workspace import Mode

__all__ = ["ClientFileSystem", "Question"]

_NAMES = frozenset(
    name
    for _, method in inspect.getmembers(Client, inspect.isfunction)
    for name in inspect.signature(method).parameters
)
"""What the package would let a request's ``_meta`` put in the place of real parameters."""


@dataclass(frozen=True, slots=True)
class Question:
    """A change that a person has to answer.

    Attributes:
        change: Its id in the journal.
        path: As the agent sent it.
        diff: Unified.
        rule: Why it is asked.
    """

    change: str
    path: str
    diff: str
    rule: str


class ClientFileSystem:
    """The two methods on files; a class of a client's own can inherit it.

    Args:
        state_dir: The state folder; never inside a session's folders.
        read: Whether reading is announced.
        write: Whether writing is announced.
        mode: Whether allowed writes are done, or wait for a person.
        ask: Asks a person and says whether the change may be done; None leaves it waiting.
        home: The person's home folder, if links to the secrets in it are to be known.
    """

    def __init__(
        self,
        *,
        state_dir: str,
        read: bool = True,
        write: bool = True,
        mode: Mode = "auto",
        ask: Callable[[Question], Awaitable[bool]] | None = None,
        home: str | None = None,
    ) -> None:
        self._can_read = read
        self._can_write = write
        self._ask = ask
        self._sessions = Sessions(state_dir, mode=mode, home=home)
        self._locks: dict[str, asyncio.Lock] = {}
        self._agent = Actor("agent", "acp agent")

    def capabilities(self) -> ClientCapabilities:
        """What to send as ``clientCapabilities``."""
        fs = FileSystemCapabilities(read_text_file=self._can_read, write_text_file=self._can_write)
        return ClientCapabilities(fs=fs)

    # -- sessions -------------------------------------------------------------------------

    def on_connect(self, connection: Any) -> None:
        """Learn sessions from what passes over a connection; the package calls this itself."""
        # The package offers no public way to see answers in order with the requests around them.
        wire = connection._conn  # noqa: SLF001 - see above
        handler, request, notify = wire._handler, wire.send_request, wire.send_notification  # noqa: SLF001

        async def handle(method: str, params: Any, is_notification: bool) -> Any:
            return await handler(method, _without_overrides(params), is_notification)

        async def send_request(method: str, params: Any = None) -> Any:
            try:
                answer = await request(method, params)
            finally:
                if method == "session/prompt":
                    self.turn_ended(params["sessionId"])
            await self._learn(method, params or {}, answer or {})
            return answer

        async def send_notification(method: str, params: Any = None) -> None:
            if method == "session/cancel":
                self.turn_ended(params["sessionId"])
            await notify(method, params)

        wire._handler = handle  # noqa: SLF001
        wire.send_request = send_request
        wire.send_notification = send_notification

    async def _learn(self, method: str, params: dict[str, Any], answer: dict[str, Any]) -> None:
        if method == "initialize":
            info = answer.get("agentInfo") or {}
            self._agent = Actor(
                "agent", str(info.get("name") or "acp agent"), str(info.get("version") or "")
            )
        elif method in {"session/new", "session/fork", "session/load", "session/resume"}:
            made = method in {"session/new", "session/fork"}
            session_id = answer["sessionId"] if made else params["sessionId"]
            roots = params.get("additionalDirectories") or ()
            await self.session_started(session_id, params["cwd"], roots)
        elif method in {"session/close", "session/delete"}:
            await self.session_closed(params["sessionId"])

    async def session_started(
        self, session_id: str, cwd: str, additional_directories: Sequence[str] = ()
    ) -> None:
        """Bind a session to its folders, in place of those it had."""
        self.turn_ended(session_id)
        async with self._lock(session_id):
            self._sessions.start(session_id, cwd, additional_directories)

    async def session_closed(self, session_id: str) -> None:
        """Forget a session, once what is being done for it has ended."""
        self.turn_ended(session_id)
        async with self._lock(session_id):
            self._sessions.end(session_id)
        self._locks.pop(session_id, None)

    def turn_ended(self, session_id: str) -> None:
        """Drop what a session still has to write."""
        bound = self._sessions.get(session_id)
        if bound is not None:
            bound.turn += 1

    def close(self) -> None:
        """Forget all sessions; call it when the connection is closed."""
        self._sessions.end_all()

    # -- methods of the protocol ----------------------------------------------------------

    async def read_text_file(
        self,
        session_id: str,
        path: str,
        line: int | None = None,
        limit: int | None = None,
        **_: Any,
    ) -> ReadTextFileResponse:
        """Answer ``fs/read_text_file``."""
        if not self._can_read:
            raise RequestError.method_not_found("fs/read_text_file")
        try:
            bound = self._bound(session_id)
            async with self._lock(session_id):
                self._check_open(bound)
                content = await _in_thread(
                    bound, files.read, bound, self._session(bound), path, line, limit
                )
        except Refusal as refusal:
            if refusal.code == MISSING and quirks_of(self._agent.name).missing_is_empty:
                return ReadTextFileResponse(content="")
            raise RequestError(refusal.code, refusal.message, refusal.data) from None
        return ReadTextFileResponse(content=content)

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_: Any
    ) -> WriteTextFileResponse:
        """Answer ``fs/write_text_file``; the text is on the disk then."""
        if not self._can_write:
            raise RequestError.method_not_found("fs/write_text_file")
        try:
            bound = self._bound(session_id)
            turn = bound.turn
            async with self._lock(session_id):
                self._check_open(bound)
                receipt = await _in_thread(
                    bound, files.write, bound, self._session(bound), path, content, turn
                )
            if receipt.status == "pending":
                await self._settle(bound, path, receipt, turn)
        except Refusal as refusal:
            raise RequestError(refusal.code, refusal.message, refusal.data) from None
        return WriteTextFileResponse()

    async def request_permission(
        self,
        session_id: str,  # noqa: ARG002 - the protocol's
        tool_call: ToolCallUpdate,  # noqa: ARG002 - the protocol's
        options: list[PermissionOption],
        **_: Any,
    ) -> RequestPermissionResponse:
        """Say no, once; a client that can ask a person puts its own method in this place."""
        for option in options:
            if option.kind == "reject_once":
                chosen = AllowedOutcome(outcome="selected", option_id=option.option_id)
                return RequestPermissionResponse(outcome=chosen)
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Take no notice; a client that shows what an agent does has a method of its own."""

    async def _settle(self, bound: Bound, path: str, receipt: Receipt, turn: int) -> None:
        """Ask a person about a stored change, and do it or not."""
        change = str(receipt.operation)
        if self._ask is None:
            raise refuse(
                REFUSED,
                "approval_required",
                f"This change waits for a person as {change} ({receipt.rule}). "
                f"`filepact approve {change}` does it.",
            )
        approved = await self._ask(Question(change, path, receipt.diff, receipt.rule))
        person = Approval(Actor("person", "client"))
        async with self._lock(bound.id):
            self._check_open(bound)
            if bound.turn != turn:
                raise refuse(CANCELLED, "cancelled", "The turn ended before this was approved.")
            decide = bound.workspace.approve if approved else bound.workspace.reject
            try:
                await _in_thread(bound, decide, change, person)
            except FilepactError as error:
                raise to_refusal(error, path, bound.roots) from None
        if not approved:
            raise refuse(REFUSED, "denied", "The person refused this change.")

    def _bound(self, session_id: str) -> Bound:
        bound = self._sessions.get(session_id)
        if bound is None:
            raise refuse(INVALID, "unknown_session", "No such session is open.")
        return bound

    def _check_open(self, bound: Bound) -> None:
        """Refuse what waited while its session was closed or got other folders."""
        if self._sessions.get(bound.id) is not bound:
            raise refuse(CANCELLED, "cancelled", "The session was closed before this was done.")

    def _session(self, bound: Bound) -> Session:
        return Session(bound.id, self._agent)

    def _lock(self, session_id: str) -> asyncio.Lock:
        return self._locks.setdefault(session_id, asyncio.Lock())


async def _in_thread(bound: Bound, work: Callable[..., Any], *arguments: Any) -> Any:
    """Run in a thread; who gives up waiting still waits until the thread lets go of the files."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        bound.turn += 1
        await asyncio.wait([running])
        raise


def _without_overrides(params: Any) -> Any:
    """A message's parameters without those that its ``_meta`` would put in their place."""
    if not isinstance(params, dict) or not isinstance(params.get("_meta"), dict):
        return params
    kept = {name: value for name, value in params["_meta"].items() if name not in _NAMES}
    return {**params, "_meta": kept}
