"""Access to the page: who may ask for it at all, before anything is looked up."""

from __future__ import annotations

import secrets
from hashlib import sha256
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal

from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from filepact_windows.web.frame import View

__all__ = ["HEADERS", "PageAccess", "PageRequest", "PageSession"]

HEADERS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Go with every answer."""

_PURPOSES: Final = ("sec-purpose", "purpose", "x-purpose", "x-moz")
_EARLY: Final = ("prefetch", "prerender", "preview")
"""What browsers and extensions say who fetch a page that nobody may ever look at; they ask again when somebody does."""
_FORM: Final = "application/x-www-form-urlencoded"
_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request, as far as access looks at it.

    Attributes:
        path: As it was sent, with nothing decoded.
        headers: Every header as it was sent, by lower-case names.
    """

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]

    def all_of(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for key, value in self.headers if key == name]

    def only(self, name: str) -> str:
        """The value of a header that was sent once; empty for none, or for several."""
        values = self.all_of(name)
        return values[0] if len(values) == 1 else ""


class PageSession:
    """A browser that was let in.

    Attributes:
        secret: Goes with every form.
        view: How diffs are drawn.
        said: What came of the last decision, until it is shown.
    """

    def __init__(self) -> None:
        self.secret = secrets.token_urlsafe(_BYTES)
        self.view: View = "unified"
        self.said: list[tuple[str, bool]] = []


class PageAccess:
    """Lets one person's browser in, and nobody else.

    Args:
        hosts: The names that the page has, with its port: whoever asks by another one was led here.
    """

    def __init__(self, hosts: Iterable[str]) -> None:
        named = tuple(hosts)
        self._place = f"http://{named[0]}"
        self._hosts = frozenset(named)
        self._lock = Lock()
        self._tokens: set[bytes] = set()
        self._sessions: dict[bytes, PageSession] = {}
        port = next(iter(self._hosts)).rpartition(":")[2]
        self.cookie = f"filepact-{port}"
        """Its name; browsers have one for all ports of a host."""

    def token(self) -> str:
        """A token that lets a browser in, once."""
        made = secrets.token_urlsafe(_BYTES)
        with self._lock:
            self._tokens.add(_digest(made))
        return made

    def link(self, change: str = "") -> str:
        """A link that lets a browser in once: to a proposal, or to all that waits."""
        return f"{self._place}/enter?token={self.token()}{f'&to={change}' if change else ''}"

    def enter(self, token: str) -> str | None:
        """The cookie for a token, which is used up; None for one that was never given, or was used."""
        given = _digest(token)
        with self._lock:
            known = [one for one in self._tokens if compare_digest(one, given)]
            if not known:
                return None
            self._tokens -= {*known}
            cookie = secrets.token_urlsafe(_BYTES)
            self._sessions[_digest(cookie)] = PageSession()
            return cookie

    def session(self, request: PageRequest) -> PageSession | None:
        """The session of a request, by its cookie."""
        read = SimpleCookie()
        try:
            read.load(request.only("cookie"))
        except CookieError:
            return None
        morsel = read.get(self.cookie)
        if morsel is None:
            return None
        given = _digest(morsel.value)
        with self._lock:
            found = [one for key, one in self._sessions.items() if compare_digest(key, given)]
        return found[0] if found else None

    def refusal(
        self, request: PageRequest
    ) -> tuple[Literal[400, 403, 404, 405, 415, 421, 503], str] | None:
        """Why a request is refused, before its cookie or its path are looked at; None where it is not."""
        if request.only("host") not in self._hosts:
            return 421, "This page has another name."
        if request.method not in ("GET", "POST"):
            return 405, "Nothing is done so here."
        said = [value.lower() for name in _PURPOSES for value in request.all_of(name)]
        if any(word in one for word in _EARLY for one in said):
            return 503, "Nothing is told before somebody looks at it."
        if not request.path.isascii() or set(request.path) & set("%\\") or ".." in request.path:
            return 404, "There is no such page."
        if len(request.all_of("cookie")) > 1:
            return 400, "One cookie header is enough."
        return self._led_here(request)

    def _led_here(self, request: PageRequest) -> tuple[Literal[403, 415], str] | None:
        """Whether another page sent this, by what browsers say of it."""
        origins = request.all_of("origin")
        own = f"http://{request.only('host')}"
        if any(one != own for one in origins):
            return 403, "Another page sent this."
        site = request.all_of("sec-fetch-site")
        if any(one not in ("same-origin", "none") for one in site):
            return 403, "Another page sent this."
        if request.method != "POST":
            return None
        if len(origins) != 1:
            return 403, "A form says where it was sent from."
        if request.only("content-type").partition(";")[0].strip().lower() != _FORM:
            return 415, "Only forms are taken."
        return None


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
