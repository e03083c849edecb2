"""Tools on the official package's server, to compare our own answers with."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from filepact_mcp.calls import (
    WORKERS,
    ElicitationConnection,
    ElicitationRequest,
    ToolExecutor,
    throttled,
)
from filepact_mcp.clients import ClientFolders, ClientQuestions, actor_named
from filepact_mcp.results import (
    MODERN_VERSION,
    ServerInfo,
    ToolCache,
    call_result,
    elicitation_modes,
)
from filepact_mcp.server import decode, encode
from filepact_wire.messages import ErrorResponse
from filepact_wire.pipes import MessagePipes

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.server.context import ServerRequestContext

    from filepact.domain.operation import Actor, Session
    from filepact.tools.registry import CallResult, Toolset
    from filepact_wire.messages import Message


def start(
    toolset: Toolset,
    *,
    pipes: tuple[int, int],
    session_factory: Callable[[Actor], Session],
) -> None:
    """Serve the tools as `filepact_mcp.serve` does, but for the client's folders."""
    tools = ToolCache(lambda: toolset)
    facts = ServerInfo(
        name="small", version="1.2", instructions="Be gentle.", tools=tools.described
    )
    folders = ClientFolders(lambda _folders: None)
    service = ToolExecutor(tools, session_factory=session_factory, folders=folders)
    wire = MessagePipes(*pipes, decode, encode, workers=WORKERS)

    def attach(take: Callable[[Message | None], None]) -> None:
        wire.start(take, ended=lambda: take(None), lost=lambda: take(None))

    anyio.run(_serve, attach, wire.send, service, facts, ClientQuestions(wire.send))
    wire.close()


async def _serve(
    attach: Callable[..., None],
    send: Callable[[Message], None],
    service: ToolExecutor,
    facts: ServerInfo,
    questions: ClientQuestions,
) -> None:
    handlers = _Handlers(service, facts, questions)
    server: Server[Any] = Server(
        facts.name,
        version=facts.version,
        instructions=facts.instructions,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
    )
    server.middleware.clear()  # spans for a tracer that nobody has set up
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
    loop = asyncio.get_running_loop()
    async with to_server:
        link = _Link(send, to_server, handlers.sent)

        def take(message: Message | None) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(link.receive, message)

        attach(take)
        await server.run(from_client, link, server.create_initialization_options())


class _Handlers:
    """The handlers that the SDK calls."""

    def __init__(
        self, service: ToolExecutor, facts: ServerInfo, questions: ClientQuestions
    ) -> None:
        self._service = service
        self._questions = questions
        self._listed = types.ListToolsResult(
            tools=[types.Tool.model_validate(one) for one in facts.tools()]
        )
        self._workers = anyio.CapacityLimiter(WORKERS)
        self._unsent: dict[types.RequestId, Callable[[], None]] = {}

    def sent(self, answered: types.RequestId) -> None:
        """The answer to a request is on its way to the client."""
        self._unsent.pop(answered, _nothing)()

    async def list_tools(
        self, _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return self._listed

    async def call_tool(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        cancelled = False
        channel = self._channel(ctx, params)

        async def watch() -> None:
            nonlocal cancelled
            try:
                await anyio.sleep_forever()
            finally:
                cancelled = True

        def work() -> CallResult | ErrorResponse | ElicitationRequest:
            return self._service.call(
                params.name,
                params.arguments or {},
                actor=_actor(ctx),
                meta=dict(ctx.meta) if ctx.meta is not None else None,
                cancelled=lambda: cancelled,
                progress=_progress_reporter(ctx),
                channel=channel,
            )

        # A cancelled call is told so, and waited for: a change is never left half done.
        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            try:
                outcome = await anyio.to_thread.run_sync(work, limiter=self._workers)
            finally:
                group.cancel_scope.cancel()
        if isinstance(outcome, ErrorResponse):
            raise MCPError(outcome.code, outcome.reason)
        if isinstance(outcome, ElicitationRequest):
            asked = {"inputRequests": dict(outcome.requests), "requestState": outcome.state}
            return types.InputRequiredResult.model_validate(asked, by_name=False)
        if anyio.current_effective_deadline() == -math.inf:
            outcome.on_lost()  # it was cancelled, so the package drops what is returned
        elif ctx.request_id is not None:
            self._unsent[ctx.request_id] = outcome.on_sent
        return types.CallToolResult.model_validate(call_result(outcome), by_name=False)

    def _channel(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> ElicitationConnection:
        declared = ctx.session.client_capabilities
        known = declared.model_dump(by_alias=True, exclude_none=True) if declared else {}
        answers = params.input_responses or {}
        return ElicitationConnection(
            elicitation_modes(known, ctx.protocol_version),
            None if ctx.protocol_version == MODERN_VERSION else self._questions.ask,
            self._questions.told,
            params.request_state,
            {key: one.model_dump(by_alias=True, mode="json") for key, one in answers.items()},
        )


def _nothing() -> None:
    """An answer that tells nothing besides."""


def _actor(ctx: ServerRequestContext[Any]) -> Actor:
    params = ctx.session.client_params
    if params is None:
        return actor_named(None)
    return actor_named({"name": params.client_info.name, "version": params.client_info.version})


def _progress_reporter(ctx: ServerRequestContext[Any]) -> Callable[[int, str], None]:
    """Tells the client how far a call is, from the worker's thread."""
    if ctx.meta is None or ctx.meta.get("progress_token") is None:
        return lambda _done, _what: None

    def tell(done: int, what: str) -> None:
        anyio.from_thread.run(ctx.session.report_progress, done, None, what)

    return throttled(tell)


class _Link:
    """The server's two streams, as the rest of the program sees them; in the event loop only."""

    def __init__(
        self,
        send: Callable[[Message], None],
        to_server: MemoryObjectSendStream[SessionMessage | Exception],
        sent: Callable[[types.RequestId], None],
    ) -> None:
        self._send = send
        self._to_server = to_server
        self._sent = sent

    def receive(self, message: Message | None) -> None:
        """Take a message for the server; None when there will be no more."""
        if message is None:
            self._to_server.close()
            return
        with suppress(anyio.BrokenResourceError, ValidationError):
            typed = types.jsonrpc_message_adapter.validate_python(message, by_name=False)
            self._to_server.send_nowait(SessionMessage(typed))

    # -- what the server writes to ---------------------------------------------------------

    async def send(self, item: SessionMessage, /) -> None:
        if isinstance(item.message, types.JSONRPCResponse):
            self._sent(item.message.id)
        self._send(item.message.model_dump(by_alias=True, exclude_unset=True))

    async def aclose(self) -> None:
        """Nothing to do: the wire outlives the server, to send its last words."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.aclose()
