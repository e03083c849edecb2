"""The endpoint: POST, GET and DELETE of MCP's Streamable HTTP, in both protocol eras; an ASGI application.

The protocol itself is that of `filepact_mcp`.  Nothing of a session is kept here: its id has what
the handshake said, so that any worker can go on with it.
"""

from __future__ import annotations

import asyncio
import math
import time
from codecs import BOM_UTF8
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import (
    FilepactError,
    GatewayBusyError,
    NoThreadsError,
    OtherRequestError,
    RateLimitedError,
    RequestTooLargeError,
    ShuttingDownError,
    without_threads,
)
from filepact.values import dataclass, replace
from filepact_gateway.context import RequestContext, TokenAccess
from filepact_gateway.exchange import ASIDE, CallPool, GatewayCall, ResponseWriter, answer_together
from filepact_gateway.repeats import RequestName
from filepact_gateway.requests import (
    REFUSED,
    STATUS,
    HttpAnswer,
    HttpRequest,
    RequestChecks,
    plain,
    refusal,
    refused_modern,
    wire_refusal,
)
from filepact_mcp.calls import TASK_AFTER, as_number
from filepact_mcp.results import (
    BATCH_VERSION,
    HANDSHAKE_VERSIONS,
    MODERN_VERSION,
    VERSION_KEY,
    VERSIONS,
)
from filepact_mcp.server import decode, encode
from filepact_wire.framing import read_batch, read_message
from filepact_wire.messages import INVALID_REQUEST, ErrorResponse, request_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import Receive, Scope, Send

    from filepact_gateway.context import UserContext
    from filepact_gateway.guard import OpenGatewayGuard
    from filepact_gateway.limits import LimitChecks
    from filepact_gateway.metrics import Metrics
    from filepact_gateway.repeats import RequestHistory
    from filepact_gateway.tokens import GatewaySession, SessionTokens
    from filepact_wire.messages import Message, RequestId

__all__ = ["GatewayHandler", "GatewayOptions"]

_SESSION: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"
_QUICK: Final = 0.05  # seconds after which it is looked whether the client is still there
_HEARING: Final = 1.0  # seconds for which it is waited to hear which sessions have ended
_HEARINGS: Final = 3
_NOTHING: Final = HttpAnswer(202)
_SEEN: Final = 2.0  # seconds after which a worker says that the call of a task goes on
_SILENT: Final = 15.0  # seconds after which a client, and whatever stands between, hears of us


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """How the endpoint behaves.

    Attributes:
        body: Most bytes of a request.
        patience: Seconds that a client may take to send a request, and to take an answer.
        threads: Most calls that are carried out at once.
        waits: Seconds for which a call waits in line at most.
        task_after: Seconds after which a call is answered with a task, where its client knows tasks.
    """

    body: int = 8_000_000
    patience: float = 30.0
    threads: int = 16
    waits: float = 50.0
    task_after: float = TASK_AFTER


class GatewayHandler:
    """Answers the requests of MCP clients.

    Args:
        guard: Who may ask.
        checks: What every request has to say of itself.
        sessions: The ids of sessions.
        limits: How much may be asked for.
        metrics: Counts what is done.
        options: How it behaves.
        ended: Told the id of a session that its client ends, and when it would have ended anyway; answers for how many
            seconds others may not know it yet.
        cancelled: Told of what a client cancels that does not run here.
        repeats: Recognises requests that are sent again.
    """

    def __init__(  # noqa: PLR0913 - what a gateway is made of, by name
        self,
        guard: OpenGatewayGuard,
        checks: RequestChecks,
        sessions: SessionTokens,
        limits: LimitChecks,
        metrics: Metrics,
        options: GatewayOptions,
        *,
        ended: Callable[[str, float], float],
        cancelled: Callable[[str, RequestId], None],
        repeats: RequestHistory,
    ) -> None:
        self._repeats = repeats
        self._guard = guard
        self._checks = checks
        self._sessions = sessions
        self._limits = limits
        self._metrics = metrics
        self._options = options
        self._ended = ended
        self._cancelled = cancelled
        self._threads = CallPool(options.threads)
        self._running: dict[tuple[str, RequestId], list[GatewayCall]] = {}
        self._hearing: asyncio.Future[None] | None = None
        self._late = 0.0
        self.draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = HttpRequest.of(scope)
        send = self._checks.shared(request, send)
        channel = scope["state"][ASIDE], receive, send
        out = ResponseWriter(request, channel, self._options.patience, self._metrics)
        answer = await self._answer(request, out)
        if answer is not None:
            if answer.code or answer.status >= 400:
                self._metrics.add(
                    "filepact_gateway_refused_total", f'code="{answer.code or "other"}"'
                )
            await out.whole(answer)

    async def _answer(self, request: HttpRequest, out: ResponseWriter) -> HttpAnswer | None:
        """The answer; None where it was sent already."""
        led = self._checks.led_here(request)
        if led is not None:
            return led
        page = self._guard.page(request) or self._checks.from_page(request)
        if page is not None:
            return page
        realm = self._guard.realm(request.path)
        if realm is None:
            return plain(404, "There is nothing here.")
        if self.draining:
            return refusal(_shutting_down())
        try:
            caller = await self._guard.caller(request, realm)
            if isinstance(caller, HttpAnswer):
                # Whatever the method: clients ask with GET or HEAD where to log in, too.
                return caller
            if request.method not in ("POST", "DELETE"):
                # There is nothing that is not an answer to a request, so there is no stream to listen
                # to, nor one that could be gone on with: `Last-Event-ID` is refused with it.
                return plain(405, "This gateway takes POST and DELETE.", Allow="POST, DELETE")
            if request.method == "DELETE":
                return await self._end(request, caller)
            refused = self._checks.post(request)
            if refused is not None:
                return refused
            return await self._post(caller, await self._body(out), out)
        except FilepactError as error:
            return refusal(error)
        except RuntimeError as error:
            if (known := without_threads(error)) is None:
                raise
            return refusal(known)
        except _DisconnectedError:
            return None

    async def _end(self, request: HttpRequest, caller: UserContext) -> HttpAnswer:
        session = await self._session(request, caller)
        until = session.begun + self._sessions.lasts
        # When this is answered no gateway takes the session any more.
        await asyncio.sleep(await asyncio.to_thread(self._ended, session.id, until))
        return HttpAnswer(204)

    async def _session(self, request: HttpRequest, caller: UserContext) -> GatewaySession:
        for _ in range(_HEARINGS):
            # One that took longer than it counts for is not enough.
            if self._sessions.up_to_date():
                break
            await self._hear()
        return self._sessions.read(request.get(_SESSION), user=caller.user, realm=caller.realm)

    async def _hear(self) -> None:
        """Hear which sessions have ended: once for all who want to know, and for no longer than a moment."""
        loop = asyncio.get_running_loop()
        if self._hearing is None or self._hearing.done():
            self._late = loop.time() + _HEARING
            self._hearing = loop.run_in_executor(None, self._sessions.hear)
        # A database that is away keeps nobody waiting; which session its client has ended is no question of rights.
        if (wait := self._late - loop.time()) > 0:
            await asyncio.wait([self._hearing], timeout=wait)

    async def _body(self, out: ResponseWriter) -> bytes:
        most = self._options.body
        said = out.request.get("content-length")
        if said.isascii() and said.isdecimal() and int(said) > most:
            raise _too_large(most)
        parts: list[bytes] = []
        size, more = 0, True
        out.hurry()
        while more:
            event = await out.receive()
            if event["type"] != "http.request":
                raise _DisconnectedError
            part = event.get("body", b"")
            size += len(part)
            if size > most:
                raise _too_large(most)
            parts.append(part)
            more = event.get("more_body", False)
        out.rest()
        self._metrics.add("filepact_gateway_received_bytes_total", by=size)
        return b"".join(parts)

    # -- messages -----------------------------------------------------------------------------

    async def _post(
        self, caller: UserContext, body: bytes, out: ResponseWriter
    ) -> HttpAnswer | None:
        request = out.request
        body = body.strip().removeprefix(BOM_UTF8)
        message = read_message(body, decode)
        if message is None:
            return HttpAnswer(202)
        if isinstance(message, ErrorResponse):
            if body[:1] == b"[" and request.get(_SESSION):
                session = await self._session(request, caller)
                if session.version == BATCH_VERSION:
                    return await self._batch(caller, body, session, out)
            return wire_refusal(message)
        wanted = request_id(message)
        version = request.get(_VERSION)
        if _is_modern(message, version):
            return refused_modern(request, message) or await self._converse(
                caller, message, None, len(body), out, modern=True
            )
        if version and version not in HANDSHAKE_VERSIONS:
            said = ErrorResponse(-32022, "Unsupported protocol version", wanted)
            return wire_refusal(said, {"supported": [*VERSIONS], "requested": version})
        opened: GatewaySession | None = None
        if message.get("method") != "initialize" or wanted is None:
            if not request.get(_SESSION):
                said = ErrorResponse(INVALID_REQUEST, "Mcp-Session-Id is missing", wanted)
                return wire_refusal(said)
            opened = await self._session(request, caller)
        return await self._take(caller, message, opened, len(body), out)

    async def _take(
        self,
        caller: UserContext,
        message: Message,
        session: GatewaySession | None,
        size: int,
        out: ResponseWriter,
    ) -> HttpAnswer | None:
        """Take one message of the era of handshakes."""
        if "id" not in message or "method" not in message:
            if session is not None and message.get("method") == "notifications/cancelled":
                self._cancel(session.id, message)
            return HttpAnswer(202)
        return await self._converse(caller, message, session, size, out, modern=False)

    async def _batch(
        self, caller: UserContext, body: bytes, session: GatewaySession, out: ResponseWriter
    ) -> HttpAnswer | None:
        """Take several messages that came as one; what answers them is sent as one as well."""
        messages = read_batch(body, decode)
        if isinstance(messages, ErrorResponse):
            return wire_refusal(messages)

        async def take(message: Message | ErrorResponse, part: ResponseWriter) -> HttpAnswer | None:
            if isinstance(message, ErrorResponse):
                return wire_refusal(message)
            if message.get("method") == "initialize":
                said = "a handshake comes alone"
                return wire_refusal(ErrorResponse(INVALID_REQUEST, said, request_id(message)))
            return await self._take(caller, message, session, len(body) // len(messages), part)

        await answer_together([partial(take, one) for one in messages], out)
        return None

    async def _converse(
        self,
        caller: UserContext,
        message: Message,
        session: GatewaySession | None,
        size: int,
        out: ResponseWriter,
        *,
        modern: bool,
    ) -> HttpAnswer | None:
        """Carry a request out and send what comes of it, within the limits; else why it is refused."""
        talk: RequestContext | None = None
        try:
            if caller.wider is not None:
                asked = (message["method"], message.get("params"))
                seen = await asyncio.to_thread(caller.seen, *asked)
                if isinstance(seen, TokenAccess):
                    return refusal(seen.error, message["id"], seen.challenge)
                caller = seen
            talk = self._talk(out.request, caller, message, session, modern=modern)
            self._limits.count(talk.line, caller.user, size)
            call = GatewayCall(asyncio.get_running_loop(), talk.answer)
            if talk.waits:
                await self._carry_out(talk, call, out)
            else:
                does = call.carry_out
                answer = await asyncio.to_thread(does) if talk.looks_up else does()
                await out.whole(_NOTHING if answer is None else self._answer_to(talk, answer))
        except (RateLimitedError, GatewayBusyError) as error:
            refused = refusal(error, message["id"])
            # As an answer, so that the model is told to wait; its host takes a status for a server that is broken.
            told = talk and talk.refused(error)
            return replace(refused, status=200, body=encode(told)) if told else refused
        except FilepactError as error:
            return refusal(error, message["id"])
        if talk.told_again:
            self._metrics.add("filepact_gateway_repeated_total")
        if talk.answered is not None:
            await asyncio.to_thread(talk.settle, delivered=await out.delivered())
        return None

    def _talk(
        self,
        request: HttpRequest,
        caller: UserContext,
        message: Message,
        session: GatewaySession | None,
        *,
        modern: bool,
    ) -> RequestContext:
        key: RequestName | None = None
        if message["method"] == "tools/call":
            sent = request.all_of("idempotency-key")
            name = session.id if session else ""
            whose = (caller.user, caller.realm)
            key = RequestName.of(sent, name, message["id"], whose, request.place)
        return RequestContext(
            caller, message, session, modern=modern, repeats=self._repeats, key=key
        )

    async def _carry_out(
        self, talk: RequestContext, exchange: GatewayCall, out: ResponseWriter
    ) -> None:
        calls = talk.message["method"] == "tools/call"
        begun = 0.0

        def start() -> None:
            nonlocal begun
            try:
                if not self._threads.begin(exchange):
                    return
            except NoThreadsError as error:
                exchange.finish(talk.failed(error))
                return
            begun = time.perf_counter()
            if calls:
                self._metrics.add("filepact_gateway_running_calls")

        def give_up() -> None:
            error = GatewayBusyError(
                "the calls before this one took so long that it was not begun",
                hint="Send it again.",
            )
            exchange.finish(talk.refused(error) or talk.failed(error))

        over = self._limits.enter(talk.line, talk.caller.user, start)
        later = asyncio.get_running_loop().call_later
        late = None if begun else later(self._options.waits, give_up)
        # Where there are no sessions nobody names a call, and all are cancelled at the end.
        key = (talk.line, talk.message["id"])
        self._running.setdefault(key, []).append(exchange)
        try:
            try:
                outcome = await self._send_all(talk, exchange, out)
            except asyncio.CancelledError:
                # The time is over that calls have to end by themselves.
                exchange.cancel()
                ended = refusal(_shutting_down(), talk.message["id"])
                outcome = await self._send_all(talk, exchange, out, ended)
        finally:
            if late is not None:
                late.cancel()
            if calls and begun:
                self._metrics.add("filepact_gateway_running_calls", by=-1.0)
                self._metrics.called(time.perf_counter() - begun)
            with suppress(asyncio.CancelledError):
                await exchange.settled()
            if begun:
                self._threads.end()
            over()
            self._running[key].remove(exchange)
            if not self._running[key]:
                del self._running[key]
        if calls:
            self._metrics.add("filepact_gateway_calls_total", f'outcome="{outcome}"')

    async def _send_all(
        self,
        talk: RequestContext,
        exchange: GatewayCall,
        out: ResponseWriter,
        nothing: HttpAnswer = _NOTHING,
    ) -> str:
        """Send messages as they come; JSON where the first one is the answer, else a stream.

        Args:
            talk: What was asked for, with its conversation.
            exchange: Gives the messages.
            out: The way to the client, who may leave.
            nothing: What is sent where there is no message.

        Returns:
            What came of it, as it is counted.
        """
        watch: asyncio.Task[None] | None = None
        streams = out.request.accepts("text/event-stream")
        now = asyncio.get_running_loop().time
        due = now() + (self._options.task_after if talk.task else math.inf)
        try:
            while not exchange.handed_out:
                try:
                    patience = _QUICK if watch is None else _SILENT
                    message = await exchange.next(max(0.0, min(patience, due - now())))
                except TimeoutError:
                    if now() >= due:
                        due = math.inf
                        await self._hand_out(talk, exchange, out)
                        continue
                    if watch is None:
                        watch = asyncio.create_task(
                            _watch(out.receive, exchange, modern=talk.modern)
                        )
                        continue
                    if streams:
                        await out.stream(b": still at work\r\n\r\n")
                    continue
                if message is None:
                    if out.begun:
                        await out.stream(_event(nothing.body) if nothing.body else b"", last=True)
                    else:
                        await out.whole(nothing)
                    return "unanswered"
                if "method" in message:
                    if streams:
                        await out.stream(_event(encode(message)))
                    continue
                await self._send_last(talk, message, out)
                return _outcome(message)
        finally:
            if watch is not None:
                watch.cancel()
        return await self._see_through(talk, exchange)

    async def _send_last(self, talk: RequestContext, message: Message, out: ResponseWriter) -> None:
        if out.begun:
            await out.stream(_event(encode(message)), last=True)
        else:
            await out.whole(self._answer_to(talk, message))

    async def _hand_out(
        self, talk: RequestContext, exchange: GatewayCall, out: ResponseWriter
    ) -> None:
        """Answer a call that takes long with a task; it goes on."""
        with suppress(FilepactError):  # Where none can be noted, the call is waited for.
            named = await asyncio.to_thread(talk.begin_task)
            if exchange.hand_out():
                await self._send_last(talk, named, out)

    async def _see_through(self, talk: RequestContext, exchange: GatewayCall) -> str:
        """Wait for what comes of a task; its client may have cancelled it at another worker."""
        while True:
            try:
                message = await exchange.next(_SEEN)
            except TimeoutError:
                with suppress(FilepactError):
                    if await asyncio.to_thread(talk.keep_task):
                        exchange.cancel()
                continue
            if message is None or "method" not in message:
                await asyncio.to_thread(talk.end_task, message, cancelled=exchange.is_cancelled())
                return _outcome(message or {})

    def _answer_to(self, talk: RequestContext, message: Message) -> HttpAnswer:
        headers: dict[str, str] = {}
        status = 200
        if talk.opens and "result" in message:
            headers["Mcp-Session-Id"] = self._open(talk, message["result"])
        elif "error" in message and (talk.modern or talk.opens):
            status = STATUS.get(message["error"].get("code"), 200)
        if message.get("error", {}).get("code") == REFUSED:
            data = message["error"]["data"]
            status = 409 if data["code"] == OtherRequestError.code else 503
            if "retryAfter" in data:
                headers["Retry-After"] = str(data["retryAfter"])
        return HttpAnswer(status, encode(message), headers)

    def _open(self, talk: RequestContext, result: Mapping[str, Any]) -> str:
        told = talk.message["params"].get("clientInfo", {})
        client = (str(told.get("name", "")), str(told.get("version", "")))
        version = str(result.get("protocolVersion"))
        _, token = self._sessions.open(
            version, client, user=talk.caller.user, realm=talk.caller.realm
        )
        self._metrics.add("filepact_gateway_sessions_total")
        return token

    # -- ends ---------------------------------------------------------------------------------

    def _cancel(self, session: str, message: Message) -> None:
        wanted = request_id({"id": (message.get("params") or {}).get("requestId")})
        if wanted is not None and not self.cancel(session, wanted):
            self._cancelled(session, wanted)

    def cancel(self, session: str, wanted: RequestId) -> bool:
        """End a request of a session, if it runs here."""
        here, number = self._running, as_number(wanted)
        for exchange in (found := here.get((session, wanted)) or here.get((session, number), [])):
            exchange.cancel()
        return bool(found)

    def close(self) -> None:
        """Cancel what runs, and wait for it, so that no change is left half done."""
        for exchanges in list(self._running.values()):
            for exchange in exchanges:
                exchange.cancel()
        self._threads.close()


class _DisconnectedError(Exception):
    """Nobody is there any more to be answered."""


async def _watch(receive: Receive, exchange: GatewayCall, *, modern: bool) -> None:
    """Wait until the client leaves before it was answered."""
    while (await receive())["type"] != "http.disconnect":
        pass
    # Where there are sessions, who loses a connection has not said that the answer is not wanted.
    if not exchange.handed_out:
        (exchange.cancel if modern else exchange.abandon)()


def _outcome(message: Message) -> str:
    """What came of a call, as it is counted."""
    result = message.get("result")
    return "done" if isinstance(result, dict) and result.get("isError") is not True else "failed"


def _event(message: bytes) -> bytes:
    return b"event: message\r\ndata: " + message + b"\r\n\r\n"


def _is_modern(message: Message, version: str) -> bool:
    """Whether a request is of the era without handshakes."""
    meta = params.get("_meta") if isinstance(params := message.get("params"), dict) else None
    if isinstance(meta, dict) and VERSION_KEY in meta:
        return True
    return bool(version) and version not in HANDSHAKE_VERSIONS and version >= MODERN_VERSION


def _too_large(most: int) -> RequestTooLargeError:
    return RequestTooLargeError(
        f"a request may have {most:,} bytes",
        hint="Send less at once; a file can be changed in several steps.",
    )


def _shutting_down() -> ShuttingDownError:
    return ShuttingDownError("this gateway is shutting down", hint="Send it again.", retry_after=1)
