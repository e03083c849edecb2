"""The protocol package's server, with the toolbox behind it."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote_to_bytes, urlsplit

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from filepact.domain.operation import Actor
from filepact.faces.mcp.lines import INTERNAL_ERROR, INVALID_PARAMS, request_id
from filepact.tools.registry import Call, UnknownToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.server.context import ServerRequestContext

    from filepact.domain.operation import Session
    from filepact.faces.mcp.lines import Message, RequestId
    from filepact.faces.mcp.wire import Wire
    from filepact.tools.registry import Outcome, Toolbox

__all__ = ["Service", "folder_of_uri", "run"]

_log = logging.getLogger(__name__)

_WORKERS = 8
_PROGRESS_EVERY = 0.2  # seconds
_ROOTS_WAIT = 1.0  # seconds that a first call waits for the client's folders
_ROOTS_TIMEOUT = 10.0  # seconds after which the client is not heard any more
_GRACE = 1.5  # seconds for calls in flight when the client closes its end


class Service:
    """What the server answers with.

    Args:
        tools: The tools as the protocol lists them.
        session_factory: Makes the session of an actor; asked once for each.
        narrow: Told the client's folders; answers what a person should know of it, if anything.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        tools: Sequence[dict[str, Any]],
        *,
        session_factory: Callable[[Actor], Session],
        narrow: Callable[[Sequence[str]], str | None],
    ) -> None:
        self._toolbox = toolbox
        self._listed = types.ListToolsResult(
            tools=[types.Tool.model_validate(one) for one in tools]
        )
        self._session_factory = session_factory
        self._sessions: dict[Actor, Session] = {}
        self._sessions_lock = threading.Lock()
        self._narrow = narrow
        self._workers = anyio.CapacityLimiter(_WORKERS)
        self._roots_asked = False
        self._roots_settled = anyio.Event()

    async def list_tools(
        self, _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return self._listed

    async def call_tool(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        await self._wait_for_roots()
        cancelled = threading.Event()

        async def watch() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                cancelled.set()

        def work() -> Outcome | MCPError:
            try:
                call = Call(self._session(ctx), cancelled.is_set, _progress_reporter(ctx))
                return self._toolbox.call(params.name, params.arguments or {}, call)
            except UnknownToolError as error:
                return MCPError(INVALID_PARAMS, str(error))
            except Exception:  # noqa: BLE001 - the last line of defence, and it is logged
                # The package would send the exception's text, which may name host paths.
                _log.exception("%s could not be called", params.name)
                return MCPError(INTERNAL_ERROR, "internal error; the server's log has the details")

        # A cancelled call is told so, and waited for: a change is never left half done.
        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            try:
                outcome = await anyio.to_thread.run_sync(work, limiter=self._workers)
            finally:
                group.cancel_scope.cancel()
        if isinstance(outcome, MCPError):
            raise outcome
        return types.CallToolResult(
            content=[types.TextContent(text=outcome.text)],
            structured_content=outcome.receipt,
            is_error=outcome.failed,
        )

    async def initialized(self, ctx: ServerRequestContext[Any], _params: object) -> None:
        """A client of the handshake era is ready: ask for its folders, if it has any to tell."""
        await self._ask_roots(ctx)

    async def roots_changed(self, ctx: ServerRequestContext[Any], _params: object) -> None:
        self._roots_asked = False
        await self._ask_roots(ctx)

    async def _wait_for_roots(self) -> None:
        if self._roots_asked and not self._roots_settled.is_set():
            with anyio.move_on_after(_ROOTS_WAIT):
                await self._roots_settled.wait()
            self._roots_settled.set()

    async def _ask_roots(self, ctx: ServerRequestContext[Any]) -> None:
        capabilities = ctx.session.client_capabilities
        if self._roots_asked or capabilities is None or capabilities.roots is None:
            return
        self._roots_asked = True
        try:
            listed = await ctx.session.send_request(
                types.ListRootsRequest(), types.ListRootsResult, _ROOTS_TIMEOUT
            )
            folders = [folder for root in listed.roots if (folder := folder_of_uri(str(root.uri)))]
            if folders:
                note = await anyio.to_thread.run_sync(self._narrow, folders)
                if note:
                    _log.warning("%s", note)
        except (MCPError, ValueError) as error:
            _log.warning("the client did not tell its folders: %s", type(error).__name__)
        finally:
            self._roots_settled.set()

    def _session(self, ctx: ServerRequestContext[Any]) -> Session:
        params = ctx.session.client_params
        actor = Actor("agent", "unknown")
        if params is not None:
            info = params.client_info
            actor = Actor("agent", _name(info.name) or "unknown", _name(info.version))
        with self._sessions_lock:
            if actor not in self._sessions:
                self._sessions[actor] = self._session_factory(actor)
            return self._sessions[actor]


def _name(text: str) -> str:
    """A client's word for itself, fit for a line of a log."""
    return "".join(char for char in text[:80] if char.isprintable()).strip()


def _progress_reporter(ctx: ServerRequestContext[Any]) -> Callable[[int, str], None]:
    """Tells the client how far a call is, a few times a second, from the worker's thread."""
    if ctx.meta is None or ctx.meta.get("progress_token") is None:
        return lambda _done, _what: None
    told, told_at = -1, -math.inf

    def report(done: int, what: str) -> None:
        nonlocal told, told_at
        now = time.monotonic()
        if done > told and now - told_at >= _PROGRESS_EVERY:
            told, told_at = done, now
            anyio.from_thread.run(ctx.session.report_progress, done, None, what)

    return report


def folder_of_uri(uri: str) -> str | None:
    """The folder that a ``file:`` URI names, decoded once; None for anything else."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = os.fsdecode(unquote_to_bytes(parts.path))
    return path if path.startswith("/") and "\0" not in path else None


async def run(wire: Wire, service: Service, *, name: str, version: str, instructions: str) -> None:
    """Serve one client until it closes its end or the process is told to stop."""
    server: Server[Any] = Server(
        name,
        version=version,
        instructions=instructions,
        on_list_tools=service.list_tools,
        on_call_tool=service.call_tool,
    )
    server.middleware.clear()  # spans for a tracer that nobody has set up
    server.add_notification_handler(
        "notifications/initialized", types.NotificationParams, service.initialized
    )
    server.add_notification_handler(
        "notifications/roots/list_changed", types.NotificationParams, service.roots_changed
    )
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
    loop = asyncio.get_running_loop()
    async with anyio.create_task_group() as group:
        link = _Link(wire, to_server, spawn=group.start_soon)

        def receive(message: Message | None) -> None:
            with suppress(RuntimeError):  # the loop may be closed when the client speaks last
                loop.call_soon_threadsafe(link.receive, message)

        if threading.current_thread() is threading.main_thread():
            group.start_soon(_cancel_on_signal, group.cancel_scope)
        wire.attach(receive)
        await server.run(from_client, link, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _cancel_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        async for _ in received:
            scope.cancel()
            return


class _Link:
    """The server's two streams, as they are on the wire; runs in the event loop only."""

    def __init__(
        self,
        wire: Wire,
        to_server: MemoryObjectSendStream[SessionMessage | Exception],
        *,
        spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], object],
    ) -> None:
        self._wire = wire
        self._to_server = to_server
        self._spawn = spawn
        self._open: set[RequestId] = set()
        self._ended = False
        self._idle = anyio.Event()

    def receive(self, message: Message | None) -> None:
        """Take a message from the client; None when there will be no more."""
        if message is None:
            if not self._ended:
                self._ended = True
                self._spawn(self._hang_up)
            return
        wanted = request_id(message)
        if "method" in message and wanted is not None:
            self._open.add(wanted)
        elif message.get("method") == "notifications/cancelled":
            # What is cancelled is never answered, so nobody has to wait for it.
            self._settle((message.get("params") or {}).get("requestId"))
        with suppress(anyio.BrokenResourceError, ValidationError):
            typed = types.jsonrpc_message_adapter.validate_python(message, by_name=False)
            self._to_server.send_nowait(SessionMessage(typed))

    async def _hang_up(self) -> None:
        """Let calls in flight be answered for a moment: some clients pipe a script and close."""
        if self._open:
            with anyio.move_on_after(_GRACE):
                await self._idle.wait()
        self._to_server.close()

    def _settle(self, answered: object) -> None:
        if isinstance(answered, int | str):
            self._open.discard(answered)
        if self._ended and not self._open:
            self._idle.set()

    # -- what the server writes to ---------------------------------------------------------

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message.model_dump(by_alias=True, exclude_unset=True)
        self._wire.send(message)
        if "method" not in message:
            self._settle(message["id"])

    async def aclose(self) -> None:
        """Nothing to do: the wire outlives the server, to send its last words."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.aclose()
