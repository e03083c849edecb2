"""A plain HTTP client of the page, which can lie about everything."""

from __future__ import annotations

import html
import re
from http.client import HTTPConnection
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

__all__ = ["PageClient", "Reply"]


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


class PageClient:
    """A client of the page that has its link."""

    def __init__(self, link: str) -> None:
        self.link = link
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
