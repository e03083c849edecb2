"""What passes over a connection of the protocol's package, for a client that has to know it.

The package offers no public way to see answers in order with the requests around them, lets a
request's ``_meta`` take the place of its parameters, does nothing about cancelled requests, and ends
the connection at a line that is no message.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, Final, Protocol

from acp import Client, RequestError

from filepact.faces.acp.errors import CANCELLED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

__all__ = ["Listener", "Start", "listen", "without_overrides"]

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

_SERVED: Final = frozenset(
    {"fs/read_text_file", "fs/write_text_file", "session/request_permission"}
)
_UNKNOWN, _INTERNAL = -32601, -32603
_CANCELLED: Final = {
    "code": CANCELLED,
    "message": "The request was cancelled.",
    "data": {"errorKind": "cancelled"},
}
_NUMBERS: Final = (int, str, type(None))
_NO_MESSAGE: Final = {"code": -32600, "message": "This is no message of the protocol."}


class Listener(Protocol):
    """What a client is told."""

    def agent_named(self, name: str, version: str) -> None: ...

    def starting(self, start: Start) -> AbstractAsyncContextManager[None]: ...

    async def session_started(
        self, session_id: str, cwd: str, additional_directories: Sequence[str] = ()
    ) -> None: ...

    async def session_closed(self, session_id: str) -> None: ...

    def turn_started(self, session_id: str) -> None: ...

    def turn_ended(self, session_id: str) -> None: ...

    def turn_cancelled(self, session_id: str) -> None: ...


def listen(connection: Any, listener: Listener) -> None:
    """Tell a client what passes over a connection from now on."""
    wire = connection._conn  # noqa: SLF001 - see the module
    handler, request, notify = wire._handler, wire.send_request, wire.send_notification  # noqa: SLF001
    execute = wire._execute_request  # noqa: SLF001 - see the module
    transport = wire._transport  # noqa: SLF001 - see the module
    receive = transport.receive
    running: dict[Any, asyncio.Task[Any]] = {}

    async def receive_sound() -> dict[str, Any] | None:
        while True:
            message = await receive()
            if message is None and _at_end(transport):
                return None
            sound = _sound(message)
            if sound is not None:
                return sound
            number = message.get("id") if isinstance(message, dict) else None
            number = number if type(number) in _NUMBERS else None
            await transport.send({"jsonrpc": "2.0", "id": number, "error": _NO_MESSAGE})

    async def handle(method: str, params: Any, is_notification: bool) -> Any:
        if method == "$/cancel_request":
            number = params.get("requestId") if isinstance(params, dict) else None
            task = running.get(number) if isinstance(number, (int, str)) else None
            if task is not None:
                task.cancel()
            return None
        if not is_notification and method in _OPTIONAL and not hasattr(listener, _OPTIONAL[method]):
            raise RequestError.method_not_found(method)
        try:
            return await handler(method, without_overrides(params), is_notification)
        except RequestError as error:
            # Agents tell more than the protocol has; nobody has to know of it.
            if not is_notification or error.code != _UNKNOWN:
                raise

    async def execute_request(message: dict[str, Any]) -> dict[str, Any]:
        number = message["id"]
        task = asyncio.ensure_future(execute(message))
        running[number] = task
        try:
            return _discreet(message["method"], await task)
        except asyncio.CancelledError:
            waiting = asyncio.current_task()
            if waiting is not None and waiting.cancelling():
                raise
            return {"jsonrpc": "2.0", "id": number, "error": _CANCELLED}
        finally:
            if running.get(number) is task:
                del running[number]

    async def send_request(method: str, params: Any = None) -> Any:
        given = params or {}
        if method in _NEW | _AGAIN:
            roots = (given["cwd"], *(given.get("additionalDirectories") or ()))
            known = given["sessionId"] if method in _AGAIN else ""
            async with listener.starting((known, roots)):
                answer = await request(method, params)
                session_id = known or (answer or {}).get("sessionId")
                if isinstance(session_id, str):
                    await listener.session_started(session_id, roots[0], roots[1:])
            return answer
        if method == "session/prompt":
            listener.turn_started(given["sessionId"])
        try:
            answer = await request(method, params)
        finally:
            if method == "session/prompt":
                listener.turn_ended(given["sessionId"])
        if method == "initialize":
            info = (answer or {}).get("agentInfo") or {}
            listener.agent_named(str(info.get("name") or ""), str(info.get("version") or ""))
        elif method in _ENDS:
            await listener.session_closed(given["sessionId"])
        return answer

    async def send_notification(method: str, params: Any = None) -> None:
        if method == "session/cancel":
            listener.turn_cancelled(params["sessionId"])
        await notify(method, params)

    transport.receive = receive_sound
    wire._handler = handle  # noqa: SLF001 - see the module
    wire._execute_request = execute_request  # noqa: SLF001 - see the module
    wire.send_request = send_request
    wire.send_notification = send_notification


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
        return {**message, "error": {"code": _INTERNAL, "message": "The answer was no answer."}}
    return message


def _discreet(method: Any, answer: dict[str, Any]) -> dict[str, Any]:
    """An answer that tells neither the parameters that were sent nor the text of an exception."""
    error = answer.get("error")
    data = error.get("data") if isinstance(error, dict) else None
    if method not in _SERVED or not isinstance(data, dict) or "errorKind" in data:
        return answer
    if isinstance(wrong := data.get("errors"), list):
        said = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in wrong)
        kind, message = "invalid_params", f"A parameter is wrong: {said}."
    else:
        kind, message = "internal", "This could not be done, by a mistake of the client's."
    said_so = {"code": answer["error"]["code"], "message": message, "data": {"errorKind": kind}}
    return {**answer, "error": said_so}


def without_overrides(params: Any) -> Any:
    """A message's parameters without those that its ``_meta`` would put in their place."""
    if not isinstance(params, dict) or not isinstance(params.get("_meta"), dict):
        return params
    kept = {name: value for name, value in params["_meta"].items() if name not in _NAMES}
    return {**params, "_meta": kept}
