"""A review that is served as it is, and a plain HTTP client that can lie about everything."""

from __future__ import annotations

import html
import re
import threading
from http.client import HTTPConnection
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest

from filepact.domain.operation import Actor, Session
from filepact.faces.web.server import serve
from filepact.workspace.review import Review

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.workspace.workspace import Workspace

PERSON = Session("cli-1", Actor("person", "ann"))


class Reply(NamedTuple):
    code: int
    headers: dict[str, str]
    text: str

    @property
    def secret(self) -> str:
        """What goes with every form of the page."""
        return re.findall(r'name="secret" value="([^"]+)"', self.text)[0]

    @property
    def said(self) -> str:
        """What came of the last decision."""
        found = re.findall(r'<div id="said" role="status">(.*?)</div>', self.text)
        return html.unescape(found[0]) if found else ""


class Page:
    """The page, and a client of it."""

    def __init__(self, link: str, review: Review) -> None:
        self.link = link
        self.review = review
        parts = urlsplit(link)
        self.host = parts.netloc
        self.entrance = f"{parts.path}?{parts.query}"
        self.cookie = ""

    def ask(self, method: str, path: str, body: str | bytes | None = None, **headers: str) -> Reply:
        """One request with these headers alone; underscores stand for hyphens."""
        connection = HTTPConnection(self.host, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            sent = {"Host": self.host, **{k.replace("_", "-"): v for k, v in headers.items()}}
            data = body.encode() if isinstance(body, str) else body
            if data is not None:
                sent.setdefault("Content-Length", str(len(data)))
            for name, value in sent.items():
                if value:
                    connection.putheader(name, value)
            connection.endheaders(data)
            answer = connection.getresponse()
            return Reply(
                answer.status,
                {name.lower(): value for name, value in answer.getheaders()},
                answer.read().decode(),
            )
        finally:
            connection.close()

    def enter(self) -> None:
        """As a browser enters with the link."""
        self.cookie = self.ask("GET", self.entrance).headers["set-cookie"].partition(";")[0]

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, **{"Cookie": self.cookie, **headers})

    def post(self, path: str, fields: dict[str, str], **headers: str) -> Reply:
        """As a browser sends a form of the page."""
        own = {
            "Cookie": self.cookie,
            "Origin": f"http://{self.host}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        return self.ask("POST", path, urlencode(fields), **{**own, **headers})

    def send(self, path: str, fields: dict[str, str], at: str = "") -> Reply:
        """Send a form as the page has it, and look at where that leads."""
        secret = self.get(at or path).secret
        reply = self.post(path, {"secret": secret, **fields})
        return self.get(reply.headers["location"]) if reply.code == 303 else reply


@pytest.fixture(scope="module")
def serving() -> Iterator[Callable[[Workspace], Page]]:
    """Serves the reviews of workspaces until the tests of a file are over."""
    ends: list[tuple[threading.Event, threading.Thread]] = []

    def start(workspace: Workspace) -> Page:
        review = Review(workspace, PERSON)
        links: list[str] = []
        ready, ended = threading.Event(), threading.Event()

        def told(link: str) -> None:
            links.append(link)
            ready.set()

        thread = threading.Thread(
            target=serve, args=(review,), kwargs={"port": 0, "told": told, "ended": ended}
        )
        thread.start()
        ends.append((ended, thread))
        assert ready.wait(60)
        return Page(links[0], review)

    yield start
    for ended, thread in ends:
        ended.set()
        thread.join(60)
        assert not thread.is_alive()
