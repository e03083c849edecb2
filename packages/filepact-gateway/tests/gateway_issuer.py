"""An issuer as the tests need one: real keys, discovery, three ways to know a client, codes with PKCE, refreshing."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import secrets
import ssl
import threading
import time
import urllib.request
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

__all__ = ["PAGE", "Issuer", "Key"]

PAGE: Final = """<!doctype html><title>Log in</title>
<p><b>{client}</b> wants to use {resource} as <b>{user}</b>, with {scope}, and goes back to <b>{host}</b>.</p>
<form method="post" action="/allow"><input type="hidden" name="asked" value="{asked}">
<button id="allow">Allow</button></form>
"""
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class Key:
    """A key that signs tokens."""

    def __init__(self, name: str, algorithm: str = "RS256") -> None:
        self.name, self.algorithm = name, algorithm
        if algorithm.startswith("ES"):
            self.private: Any = ec.generate_private_key(ec.SECP256R1())
        else:
            self.private = rsa.generate_private_key(65_537, 2_048)

    @property
    def public(self) -> dict[str, Any]:
        made = jwt.get_algorithm_by_name(self.algorithm).to_jwk(self.private.public_key())
        found = made if isinstance(made, dict) else json.loads(made)
        return {**found, "kid": self.name, "use": "sig", "alg": self.algorithm}


class Issuer(ThreadingHTTPServer):
    """Listens on the loopback interface, and lets in whoever it is told to.

    Attributes:
        user: Who is logged in at the browser that asks.
        scope: What that user allows.
        asks: Whether the user is shown a page, and has to press its button.
        lasts: Seconds that a token is good for.
        registers: Whether clients may register themselves.
        documents: Whether it takes clients that are known by the address of a document.
        clients: What is known of each client, by its id; also of documents that it has had before.
        trusted: By whose certificates documents are fetched.
        tells: Cleared, it keeps whoever asks for its keys waiting.
        asked: The paths that were asked for.
        issued: What tokens were asked for with, in turn.
        grants: What was answered to that.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.keys = [Key("first")]
        self.user = "ann"
        self.scope = "files"
        self.asks = False
        self.lasts = 600
        self.registers, self.documents = True, False
        self.clients: dict[str, dict[str, Any]] = {}
        self.trusted = ssl.create_default_context()
        self.tells = threading.Event()
        self.tells.set()
        self.asked: list[str] = []
        self.issued: list[dict[str, str]] = []
        self.grants: list[dict[str, Any]] = []
        self.codes: dict[str, dict[str, str]] = {}
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def token(
        self, audience: str, *, key: Key | None = None, header: Any = None, **claims: Any
    ) -> str:
        """A token of this issuer, or one that differs from one."""
        signing = key or self.keys[-1]
        now = int(time.time())
        said = {
            "iss": self.url,
            "sub": self.user,
            "aud": audience,
            "iat": now,
            "exp": now + self.lasts,
            "scope": self.scope,
            **claims,
        }
        said = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(
            said,
            signing.private,
            algorithm=signing.algorithm,
            headers={"kid": signing.name, "typ": "at+jwt", **(header or {})},
        )

    def end(self) -> None:
        self.tells.set()
        self.shutdown()
        self.server_close()
        self.thread.join()

    # -- clients and what they get ----------------------------------------------------------------

    def metadata(self) -> dict[str, Any]:
        """What it tells of itself."""
        said: dict[str, Any] = {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
            "scopes_supported": self.scope.split(),
        }
        if self.registers:
            said["registration_endpoint"] = f"{self.url}/register"
        if self.documents:
            said["client_id_metadata_document_supported"] = True
        return said

    def client(self, name: str) -> dict[str, Any]:
        """What is known of a client.

        Raises:
            LookupError: Nothing, nor does its document say enough.
        """
        if name not in self.clients and self.documents and name.startswith("https://"):
            with suppress(OSError, ValueError):
                opened = urllib.request.urlopen(name, timeout=60, context=self.trusted)  # noqa: S310 - it begins with https
                with opened as answer:
                    found = json.loads(answer.read())
                if found["client_id"] == name and found["client_name"]:
                    self.clients[name] = found
        return self.clients[name]

    def refused(self, asked: dict[str, str]) -> str:
        """What is wrong with a request for a code; empty for nothing."""
        try:
            known = self.client(asked["client_id"])["redirect_uris"]
            fits = any(_same_address(one, asked["redirect_uri"]) for one in known)
        except LookupError:
            return "the client is not known"
        if not fits:
            return "the client does not come back to there"
        if asked.get("code_challenge_method") != "S256" or not asked.get("code_challenge"):
            return "there is no challenge"
        return "" if asked.get("resource") else "it does not say for what"

    def code(self, asked: dict[str, str]) -> str:
        """Where a user's browser goes with a code."""
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        back = {"code": code, "state": asked.get("state", ""), "iss": self.url}
        return f"{asked['redirect_uri']}?{urlencode(back)}"

    def grant(self, form: dict[str, str]) -> dict[str, Any] | None:
        """What a client gets for a code, or for what lets it ask again; None where that is none of its own."""
        fresh = form["grant_type"] == "authorization_code"
        asked = self.codes.pop(form["code" if fresh else "refresh_token"], None)
        if asked is None or form.get("client_id") != asked["client_id"]:
            return None
        if fresh and not _proves(form, asked):
            return None
        if form.get("resource", asked["resource"]) != asked["resource"]:
            return None
        self.issued.append(form)
        allowed = self.scope.split()
        wanted = [one for one in asked.get("scope", "").split() if one in allowed] or allowed
        again = secrets.token_urlsafe(16)
        given = {
            "access_token": self.token(asked["resource"], scope=" ".join(wanted)),
            "token_type": "Bearer",
            "expires_in": self.lasts,
            "refresh_token": again,
            "scope": " ".join(wanted),
        }
        self.codes[again] = asked
        self.grants.append(given)
        return given


def _proves(form: dict[str, str], asked: dict[str, str]) -> bool:
    """Whether who brings a code is who asked for it."""
    digest = hashlib.sha256(form["code_verifier"].encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return challenge == asked["code_challenge"] and form["redirect_uri"] == asked["redirect_uri"]


def _same_address(known: str, told: str) -> bool:
    """Whether a client comes back to where it said; on the same computer at any port."""
    one, other = urlsplit(known), urlsplit(told)
    if one.hostname in _LOOPBACK and one.hostname == other.hostname:
        return (one.scheme, one.path) == (other.scheme, other.path)
    return known == told


class _Handler(BaseHTTPRequestHandler):
    server: Issuer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.server.asked.append(parts.path)
        if parts.path == "/.well-known/oauth-authorization-server":
            self._json(self.server.metadata())
        elif parts.path == "/keys":
            self.server.tells.wait()
            self._json({"keys": [key.public for key in self.server.keys]})
        elif parts.path == "/authorize":
            self._authorize({name: values[0] for name, values in parse_qs(parts.query).items()})
        elif parts.path == "/deep":
            self._bytes(b"[" * 500_000)
        elif parts.path in ("/late", "/later"):
            self._drip(head=parts.path == "/late")
        else:
            self._json({}, 404)

    def do_POST(self) -> None:
        self.server.asked.append(self.path)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/register" and self.server.registers:
            name = secrets.token_hex(8)
            self.server.clients[name] = {**json.loads(body), "client_id": name}
            self._json(self.server.clients[name], 201)
            return
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if self.path == "/allow":
            self._send_to(self.server.code(json.loads(form["asked"])))
            return
        given = self.server.grant(form)
        if given is None:
            self._json({"error": "invalid_grant"}, 400)
        else:
            self._json(given)

    def _authorize(self, asked: dict[str, str]) -> None:
        why = self.server.refused(asked)
        if why:
            self._json({"error": "invalid_request", "error_description": why}, 400)
            return
        if not self.server.asks:
            self._send_to(self.server.code(asked))
            return
        shown = {
            "client": self.server.client(asked["client_id"]).get("client_name", ""),
            "resource": asked["resource"],
            "user": self.server.user,
            "scope": asked.get("scope", self.server.scope),
            "host": urlsplit(asked["redirect_uri"]).hostname or "",
            "asked": json.dumps(asked),
        }
        page = PAGE.format_map({name: html.escape(text) for name, text in shown.items()})
        self._bytes(page.encode(), media="text/html; charset=utf-8")

    def _drip(self, *, head: bool) -> None:
        """Answer a byte at a time, and never to the end."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX: " if head else b"HTTP/1.1 200 OK\r\n\r\n[")
        with suppress(OSError):
            while True:
                self.wfile.write(b" ")
                time.sleep(0.01)

    def _send_to(self, address: str) -> None:
        self.send_response(302)
        self.send_header("Location", address)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _json(self, said: Any, status: int = 200) -> None:
        self._bytes(json.dumps(said).encode(), status)

    def _bytes(self, data: bytes, status: int = 200, media: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nobody reads along."""
