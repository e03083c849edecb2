"""An issuer as the tests need one: real keys, discovery, registration, and authorization codes with PKCE."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

__all__ = ["Issuer"]


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
        asked: The paths that were asked for.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.keys = [Key("first")]
        self.user = "ann"
        self.scope = "files"
        self.asked: list[str] = []
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
            "exp": now + 600,
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
        self.shutdown()
        self.server_close()
        self.thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Issuer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.server.asked.append(parts.path)
        url = self.server.url
        if parts.path == "/.well-known/oauth-authorization-server":
            self._json(
                {
                    "issuer": url,
                    "jwks_uri": f"{url}/keys",
                    "authorization_endpoint": f"{url}/authorize",
                    "token_endpoint": f"{url}/token",
                    "registration_endpoint": f"{url}/register",
                    "response_types_supported": ["code"],
                    "grant_types_supported": ["authorization_code"],
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none"],
                }
            )
        elif parts.path == "/keys":
            self._json({"keys": [key.public for key in self.server.keys]})
        elif parts.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            assert asked["code_challenge_method"] == "S256"
            code = secrets.token_urlsafe(16)
            self.server.codes[code] = asked
            back = urlencode({"code": code, "state": asked.get("state", ""), "iss": url})
            self.send_response(302)
            self.send_header("Location", f"{asked['redirect_uri']}?{back}")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif parts.path == "/deep":
            self._bytes(b"[" * 500_000)
        else:
            self._json({}, 404)

    def do_POST(self) -> None:
        self.server.asked.append(self.path)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/register":
            self._json({**json.loads(body), "client_id": secrets.token_hex(8)}, 201)
            return
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        asked = self.server.codes.pop(form["code"])
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if challenge != asked["code_challenge"] or form["resource"] != asked["resource"]:
            self._json({"error": "invalid_grant"}, 400)
            return
        self._json(
            {
                "access_token": self.server.token(asked["resource"]),
                "token_type": "Bearer",
                "expires_in": 600,
                "scope": self.server.scope,
            }
        )

    def _json(self, said: Any, status: int = 200) -> None:
        self._bytes(json.dumps(said).encode(), status)

    def _bytes(self, data: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nobody reads along."""
