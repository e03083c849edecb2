"""The server of the page: Starlette and uvicorn on a loopback address, until it is interrupted."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from operator import itemgetter
from pkgutil import get_data
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from filepact.errors import FilepactError, NoChangeError, NotFoundError
from filepact_windows.web.access import HEADERS, PageAccess, PageRequest, PageSession
from filepact_windows.web.elements import document, tag
from filepact_windows.web.handler import PageAnswer, ReviewHandler
from filepact_wire.pipes import listen

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Mapping
    from threading import Event

    from starlette.types import Receive, Scope, Send

    from filepact_cli.review import Review

__all__ = ["ReviewServer", "addresses", "serve", "serve_at"]

_ADDRESS: Final = "127.0.0.1"
_MOST: Final = 64_000_000  # bytes of a form: a text of the largest size that is edited, quoted
_FIELDS: Final = 50
_STRANGERS: Final = 32  # connections that have not shown the cookie
_PATIENCE: Final = 10.0  # seconds for the head of a request
_CONNECTION: Final = "connection"
_FILES: Final = {"/page.css": "text/css", "/page.js": "text/javascript"}


class ReviewServer:
    """Answers requests of browsers; an ASGI application.

    Args:
        handler: What the pages are of.
        access: Who may ask.
    """

    def __init__(self, handler: ReviewHandler, access: PageAccess) -> None:
        self._handler = handler
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        connection: _Connection = scope["state"][_CONNECTION]
        with suppress(ClientDisconnect):
            answer = await self._answer(request, connection)
            headers = {**HEADERS, **answer.headers}
            response = Response(answer.content, answer.code, headers, answer.media)
            if await connection.whole(response(scope, receive, send)):
                for seen, page in answer.shows:
                    seen.add(page)

    async def _answer(self, request: Request, connection: _Connection) -> PageAnswer:
        asked = PageRequest(
            request.method,
            request.scope["raw_path"].decode("latin-1"),
            tuple(
                (key.decode("latin-1"), value.decode("latin-1"))
                for key, value in request.headers.raw
            ),
        )
        refused = self.access.refusal(asked)
        if refused is not None:
            return _plainly(*refused)
        query = _fields(request.scope["query_string"])
        if asked.path == "/enter":
            return self._enter(asked, query)
        session = self.access.session(asked)
        if session is None:
            return _plainly(
                403,
                "This needs the link that `filepact review --web` prints; each link works once.",
            )
        connection.known = True
        if asked.path in _FILES:
            return PageAnswer(
                get_data(__package__, asked.path[1:]) or b"", media=_FILES[asked.path]
            )
        form: Mapping[str, str] = {}
        if asked.method == "POST":
            body = await _body(request)
            if body is None:
                return _plainly(413, "This is too much.")
            form = _fields(body)
            if form.get("secret") != session.secret:
                return _plainly(403, "Another page sent this.")
        return await run_in_threadpool(self._look_up, asked, session, query, form)

    def _look_up(
        self,
        asked: PageRequest,
        session: PageSession,
        query: Mapping[str, str],
        form: Mapping[str, str],
    ) -> PageAnswer:
        try:
            return self._handler.answer(asked, session, query, form)
        except NotFoundError as error:
            return self._handler.refusal(session, 404, error)
        except NoChangeError as error:
            return self._handler.over(session, error)
        except FilepactError as error:
            return self._handler.refusal(session, 409, error)

    def _enter(self, asked: PageRequest, query: Mapping[str, str]) -> PageAnswer:
        cookie = self.access.enter(query.get("token", "")) if asked.method == "GET" else None
        if cookie is None:
            return _plainly(403, "This link was used before, or is not from filepact.")
        change = query.get("to", "")
        place = f"/p/{change}" if change.isascii() and change.isalnum() else "/"
        # Not a redirect: what a link elsewhere leads to would come without the cookie.
        page = document(
            "filepact",
            (tag("meta", http_equiv="refresh", content=f"0;url={place}"),),
            (tag("a", "Go on", href=place),),
        )
        held = f"{self.access.cookie}={cookie}; HttpOnly; SameSite=Strict; Path=/"
        return PageAnswer(page.encode(), headers={"Set-Cookie": held})


def _plainly(code: int, text: str) -> PageAnswer:
    return PageAnswer(f"{text}\n".encode(), code, media="text/plain")


async def _body(request: Request) -> bytes | None:
    """Return a request's body; None where it is too large."""
    said = request.headers.get("content-length", "0")
    if not (said.isascii() and said.isdecimal()) or int(said) > _MOST:
        return None
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > _MOST:
            return None
        parts.append(part)
    return b"".join(parts)


def _fields(data: bytes) -> dict[str, str]:
    """The fields of a form; of those that come several times the first."""
    try:
        found = parse_qs(
            data.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS
        )
    except ValueError:
        return {}
    return {name: values[0] for name, values in found.items()}


def addresses(listening: socket.socket) -> tuple[str, ...]:
    """The names that a page has which is served at a socket, the first of them for links."""
    port = listening.getsockname()[1]
    return (f"{_ADDRESS}:{port}", f"localhost:{port}")


def serve(review: Review, *, port: int, told: Callable[[str], None], ended: Event) -> None:
    """Serve the review to the person's browser until that is interrupted.

    Args:
        review: Of the person.
        port: Where; 0 for any that is free.
        told: Is given the link that lets a browser in, once.
        ended: Ends it when it is set, and is set when it ends.

    Raises:
        OSError: The port is in use.
    """
    listening = listen(_ADDRESS, port)
    access = PageAccess(addresses(listening))
    told(access.link())
    serve_at(listening, access, review, ended)


def serve_at(listening: socket.socket, access: PageAccess, review: Review, ended: Event) -> None:
    """Serve the review at a socket, which is closed in the end; otherwise as `serve`."""
    handler = ReviewHandler(review, ended)
    config = Config(
        ReviewServer(handler, access),
        http=_Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
        backlog=512,
    )
    server = _Served(config, ended)
    try:
        asyncio.run(server.until_ended(listening))
    finally:
        ended.set()
        listening.close()


class _Connection(H11Protocol):
    """A connection of somebody on this computer.

    Anybody there can have as many as they like, and an address does not tell who it is.  So those that have
    not shown the cookie are few, the oldest makes room for the newest, and no head is waited for long.

    Attributes:
        known: Whether the cookie has come by it.
        since: When it was made, by the clock of its event loop.
    """

    known = False
    since = 0.0
    _late: asyncio.TimerHandle | None = None
    _lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        strangers = [
            (one.since, one.transport)
            for one in self.connections
            if isinstance(one, _Connection) and not (one.known or one.transport.is_closing())
        ]
        super().connection_made(transport)
        self.app_state = {_CONNECTION: self}
        transport.set_write_buffer_limits(0)  # so that draining waits for all of it
        self.since = self.loop.time()
        if len(strangers) >= _STRANGERS:
            min(strangers, key=itemgetter(0))[1].abort()
        self._await_head()

    def data_received(self, data: bytes) -> None:
        before: Any = self.cycle
        if self._late is None and (before is None or before.response_complete):
            self._await_head()
        super().data_received(data)
        if self.cycle is not before:
            self._had_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = exc is not None
        self._had_head()
        super().connection_lost(exc)

    async def whole(self, sending: Awaitable[None]) -> bool:
        """Send an answer; whether all of it has left here."""
        cycle: Any = self.cycle
        await sending
        await self.flow.drain()
        # A write that failed just now is told by `connection_lost`, in the loop's next round.
        await asyncio.sleep(0)
        return cycle.response_complete and not self._lost

    def _await_head(self) -> None:
        self._late = self.loop.call_later(_PATIENCE, self.transport.abort)

    def _had_head(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class _Served(Server):
    """A server that ends when it is told to; whoever waits for news is answered then."""

    def __init__(self, config: Config, ended: Event) -> None:
        super().__init__(config)
        self._ended = ended

    async def until_ended(self, listening: socket.socket) -> None:
        watching = asyncio.create_task(self._watch())
        await self.serve(sockets=[listening])
        watching.cancel()

    async def _watch(self) -> None:
        while not self.should_exit:
            await asyncio.sleep(0.1)
            if self._ended.is_set():
                self.should_exit = True
        self._ended.set()
