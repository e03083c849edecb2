"""The server of the page: Starlette and uvicorn on a loopback address, until it is interrupted."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pkgutil import get_data
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from uvicorn import Config, Server

from filepact.errors import FilepactError, NoChangeError, NotFoundError
from filepact.faces.web.access import HEADERS, PageAccess, PageRequest, PageSession
from filepact.faces.web.elements import document, tag
from filepact.faces.web.handler import PageAnswer, ReviewHandler
from filepact.wire.pipes import listen

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping
    from threading import Event

    from starlette.types import Receive, Scope, Send

    from filepact.workspace.review import Review

__all__ = ["ReviewServer", "addresses", "serve", "serve_at"]

_ADDRESS: Final = "127.0.0.1"
_MOST: Final = 64_000_000  # bytes of a form: a text of the largest size that is edited, quoted
_FIELDS: Final = 50
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
        with suppress(ClientDisconnect):
            answer = await self._answer(request)
            response = Response(
                b"" if request.method == "HEAD" else answer.content,
                answer.code,
                {**HEADERS, **answer.headers},
                answer.media,
            )
            await response(scope, receive, send)

    async def _answer(self, request: Request) -> PageAnswer:
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
    """What was sent; None where that is too much."""
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
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
        backlog=64,
        limit_concurrency=200,
    )
    server = _Served(config, ended)
    try:
        asyncio.run(server.until_ended(listening))
    finally:
        ended.set()
        listening.close()


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
