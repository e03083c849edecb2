"""Hooks into a connection of the protocol's package, for a client that has to know what passes over it.

The package offers no public way to see answers in order with the requests around them, lets a
request's ``_meta`` take the place of its parameters, does nothing about cancelled requests, and ends
the connection at a line that is no message.  So this looks at parts of it that are not public, each
of which all versions from 0.11 on have, or does without, which is said: what is sent is learned
from the connection's public methods then.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, Protocol

from acp import Client, RequestError
from pydantic import BaseModel, ValidationError

from filepact_acp.errors import CANCELLED, INVALID
from filepact_wire.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    error_response,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

__all__ = ["ClientEvents", "Start", "listen", "without_overrides"]

Start = tuple[str, tuple[str, ...]]
"""A session that is being started: its id, empty if the agent chooses it, and its folders."""

_NEW: Final = frozenset({"session/new", "session/fork"})
_AGAIN: Final = frozenset({"session/load", "session/resume"})
_ENDS: Final = frozenset({"session/close", "session/delete"})

_NAMES: Final = frozenset(
    name
    for _, method in inspect.getmembers(Client, inspect.isfunction)
    for name in inspect.signature(method).parameters
)
"""What the package would let a request's ``_meta`` put in the place of real parameters."""

_OPTIONAL: Final = {
    "terminal/create": "create_terminal",
    "terminal/output": "terminal_output",
    "terminal/release": "release_terminal",
    "terminal/wait_for_exit": "wait_for_terminal_exit",
    "terminal/kill": "kill_terminal",
}
"""What the package answers with nothing where a client has no such method."""

_SENT: Final = {
    "initialize": "initialize",
    "new_session": "session/new",
    "fork_session": "session/fork",
    "load_session": "session/load",
    "resume_session": "session/resume",
    "close_session": "session/close",
    "delete_session": "session/delete",
    "prompt": "session/prompt",
    "cancel": "session/cancel",
}
"""The connection's public methods, and what they send."""

_SERVED: Final = frozenset(
    {"fs/read_text_file", "fs/write_text_file", "session/request_permission"}
)
_PERMISSION: Final = "session/request_permission"
_UPDATE: Final = "session/update"
_NUMBERS: Final = (int, str, type(None))
_NO_MESSAGE: Final = "This is no message of the protocol."


_log = logging.getLogger("filepact.acp")


class ClientEvents(Protocol):
    """Events of a session, for a client."""

    def agent_named(self, name: str, version: str) -> None: ...

    def starting(self, start: Start) -> AbstractAsyncContextManager[None]: ...

    async def session_started(
        self, session_id: str, cwd: str, additional_directories: Sequence[str] = ()
    ) -> None: ...

    async def session_closed(self, session_id: str) -> None: ...

    def turn_started(self, session_id: str) -> None: ...

    def turn_ended(self, session_id: str) -> None: ...

    def turn_cancelled(self, session_id: str) -> None: ...

    def update_received(self, params: dict[str, Any]) -> None: ...

    async def permission(
        self, params: dict[str, Any], ask: Callable[[dict[str, Any]], Awaitable[Any]]
    ) -> Any: ...


def listen(connection: Any, listener: ClientEvents) -> None:
    """Tell a client what passes over a connection from now on."""
    wire = getattr(connection, "_conn", None)
    if all(hasattr(wire, name) for name in ("send_request", "send_notification")):
        _follow_wire(wire, listener)
    else:
        _follow_methods(connection, listener)
    if all(hasattr(wire, name) for name in ("_handler", "_process_message")):
        _Incoming(wire, listener)
    else:
        _log.warning(
            "this version of agent-client-protocol cannot be listened to: cancelled requests, and "
            "what a tool call said before its question, are not seen"
        )


# -- what the client sends ---------------------------------------------------------------------


def _follow_wire(wire: Any, listener: ClientEvents) -> None:
    request, notify = wire.send_request, wire.send_notification

    async def send_request(method: str, params: Any = None) -> Any:
        return await _follow(listener, method, params or {}, partial(request, method, params))

    async def send_notification(method: str, params: Any = None) -> None:
        await _follow(listener, method, params or {}, partial(notify, method, params))

    wire.send_request = send_request
    wire.send_notification = send_notification


def _follow_methods(connection: Any, listener: ClientEvents) -> None:
    for name, method in _SENT.items():
        send = getattr(connection, name, None)
        if send is not None:
            setattr(connection, name, _followed(listener, method, send))


def _followed(listener: ClientEvents, method: str, send: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(send)

    @wraps(send)
    async def call(*arguments: Any, **named: Any) -> Any:
        if arguments and isinstance(arguments[0], BaseModel):
            given = arguments[0].model_dump(by_alias=True)
        else:
            known = signature.bind(*arguments, **named).arguments
            given = {
                "sessionId": known.get("session_id"),
                "cwd": known.get("cwd"),
                "additionalDirectories": known.get("additional_directories"),
            }
        return await _follow(listener, method, given, partial(send, *arguments, **named))

    return call


async def _follow(
    listener: ClientEvents,
    method: str,
    given: Mapping[str, Any],
    send: Callable[[], Awaitable[Any]],
) -> Any:
    """Send something, and tell what it means for sessions and turns."""
    if method in _NEW | _AGAIN:
        roots = (given["cwd"], *(given.get("additionalDirectories") or ()))
        known = given["sessionId"] if method in _AGAIN else ""
        async with listener.starting((known, roots)):
            answer = await send()
            session_id = known or _fields(answer).get("sessionId")
            if isinstance(session_id, str):
                await listener.session_started(session_id, roots[0], roots[1:])
        return answer
    if method == "session/cancel":
        listener.turn_cancelled(given["sessionId"])
    if method == "session/prompt":
        listener.turn_started(given["sessionId"])
    try:
        answer = await send()
    finally:
        if method == "session/prompt":
            listener.turn_ended(given["sessionId"])
    if method == "initialize":
        info = _fields(answer).get("agentInfo") or {}
        listener.agent_named(str(info.get("name") or ""), str(info.get("version") or ""))
    elif method in _ENDS:
        await listener.session_closed(given["sessionId"])
    return answer


def _fields(answer: Any) -> dict[str, Any]:
    """An answer's members by their names in the protocol, if it has any."""
    if isinstance(answer, BaseModel):
        return answer.model_dump(by_alias=True)
    return answer if isinstance(answer, dict) else {}


# -- what the agent sends ----------------------------------------------------------------------


class _Numbered(dict[str, Any]):
    """The parameters of a request, which know its number."""

    number: Any = None


class _Incoming:
    """Stands before what the package does with messages, and before the client's methods."""

    def __init__(self, wire: Any, listener: ClientEvents) -> None:
        self._listener = listener
        self._handler = wire._handler  # noqa: SLF001 - see the module
        self._process = wire._process_message  # noqa: SLF001 - see the module
        self._waits = inspect.iscoroutinefunction(self._process)
        self._transport = transport = getattr(wire, "_transport", None)
        sender = transport if transport is not None else getattr(wire, "_sender", None)
        self._send = sender.send if sender is not None else None
        self._running: dict[Any, asyncio.Task[Any]] = {}
        self._refusing: set[asyncio.Future[None]] = set()
        wire._handler = self._handle  # noqa: SLF001 - see the module
        wire._process_message = self._take  # noqa: SLF001 - see the module
        if transport is not None:
            self._receive = transport.receive
            transport.receive = self._receive_next

    async def _receive_next(self) -> Any:
        """The next message; the package takes a line that says ``null`` for the end."""
        while (message := await self._receive()) is None and not _at_end(self._transport):
            self._refuse(None)
        return message

    def _take(self, message: Any) -> Any:
        """One message, whatever it is; awaited or not, as the package does."""
        sound = _sound(message)
        if sound is None:
            self._refuse(message)
            return asyncio.sleep(0) if self._waits else None
        if "method" in sound and "id" in sound and isinstance(sound.get("params"), dict):
            numbered = _Numbered(sound["params"])
            numbered.number = sound["id"]
            sound = {**sound, "params": numbered}
        return self._process(sound)

    def _refuse(self, message: Any) -> None:
        number = message.get("id") if isinstance(message, dict) else None
        number = number if type(number) in _NUMBERS else None
        if self._send is not None:
            answer = error_response(number, INVALID_REQUEST, _NO_MESSAGE)
            refusing = asyncio.ensure_future(self._send(answer))
            self._refusing.add(refusing)
            refusing.add_done_callback(self._refused)

    def _refused(self, refusing: asyncio.Future[None]) -> None:
        self._refusing.discard(refusing)
        if not refusing.cancelled() and (error := refusing.exception()) is not None:
            _log.info("a line that is no message could not be answered: %s", error)

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        if method == "$/cancel_request":
            number = params.get("requestId") if isinstance(params, dict) else None
            task = self._running.get(number) if isinstance(number, (int, str)) else None
            if task is not None:
                task.cancel()
            return None
        if is_notification:
            return await self._hear(method, params)
        if method in _OPTIONAL and not hasattr(self._listener, _OPTIONAL[method]):
            raise RequestError.method_not_found(method)
        # One of its own, so that it can be cancelled and its answer still be sent.
        task = asyncio.ensure_future(self._serve(method, params))
        number = params.number if isinstance(params, _Numbered) else None
        if number is not None:
            self._running[number] = task
        waiting = asyncio.current_task()
        try:
            return await task
        except asyncio.CancelledError:
            raise RequestError(
                CANCELLED, "The request was cancelled.", {"errorKind": "cancelled"}
            ) from None
        finally:
            if self._running.get(number) is task:
                del self._running[number]
            if waiting is not None and waiting.cancelling():
                # The connection is closed, and the package would wait for ever to send an answer.
                raise asyncio.CancelledError

    async def _hear(self, method: str, params: Any) -> None:
        if method == _UPDATE and isinstance(params, dict):
            self._listener.update_received(params)
        try:
            await self._handler(method, without_overrides(params), True)
        except RequestError as error:
            # Agents tell more than the protocol has; nobody has to know of it.
            if error.code != METHOD_NOT_FOUND:
                raise

    async def _serve(self, method: str, params: Any) -> Any:
        """Answer a request, and tell neither its parameters nor the text of an exception."""
        plain = without_overrides(params)
        try:
            if method == _PERMISSION and isinstance(plain, dict):
                return await self._listener.permission(plain, self._ask)
            return await self._handler(method, plain, False)
        except RequestError:
            raise
        except ValidationError as error:
            if method not in _SERVED:
                raise
            said = "; ".join(
                f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()
            )
            data = {"errorKind": "invalid_params"}
            raise RequestError(INVALID, f"A parameter is wrong: {said}.", data) from None
        except Exception:
            if method not in _SERVED:
                raise
            _log.exception("%s could not be answered", method)
            said = "This could not be done, by a mistake of the client's."
            raise RequestError(INTERNAL_ERROR, said, {"errorKind": "internal"}) from None

    async def _ask(self, params: dict[str, Any]) -> Any:
        return await self._handler(_PERMISSION, params, False)


def _at_end(transport: Any) -> bool:
    """Whether nothing more comes; the package takes a line that says ``null`` for that."""
    reader = getattr(transport, "_reader", None)
    return reader is None or bool(reader.at_eof())


def _sound(message: Any) -> dict[str, Any] | None:
    """A message that does not end the package's connection; None if there is none in it."""
    if not isinstance(message, dict) or type(message.get("id")) not in _NUMBERS:
        return None
    if not isinstance(message.get("method", ""), str):
        return None
    if "method" not in message and not isinstance(message.get("error", {}), dict):
        return {
            **message,
            "error": {"code": INTERNAL_ERROR, "message": "The answer was no answer."},
        }
    return message


def without_overrides(params: Any) -> Any:
    """A message's parameters without those that its ``_meta`` would put in their place.

    One that is no object counts as absent; older versions of the package refuse it.
    """
    if not isinstance(params, dict) or "_meta" not in params:
        return params
    if not isinstance(params["_meta"], dict):
        return {name: value for name, value in params.items() if name != "_meta"}
    kept = {name: value for name, value in params["_meta"].items() if name not in _NAMES}
    return {**params, "_meta": kept}
