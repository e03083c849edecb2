"""Session ids that any worker understands: the facts of the handshake, signed by the gateway.

A session id is no proof of who asks.  It is bound to the user that opened it, and with another one it
is unknown.
"""

from __future__ import annotations

import json
import os
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from hmac import compare_digest, digest
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import SessionUnknownError
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.wire.messages import Message

__all__ = ["GatewaySession", "SessionTokens"]

_SIGNED: Final = 16  # bytes of the signature
_LONGEST: Final = 2_000  # characters of a session id
_KNOWN: Final = 4_096


@dataclass(frozen=True, slots=True)
class GatewaySession:
    """A session of the handshake era.

    Attributes:
        id: Its name in the journal.
        begun: When it was opened, seconds since the epoch.
        version: The protocol version that was agreed on.
        client: The name and version that the client calls itself.
        user: Who opened it; empty where nobody has to say who they are.
        realm: The workspace that it was opened in.
    """

    id: str
    begun: float
    version: str
    client: tuple[str, str]
    user: str
    realm: str

    @property
    def opening(self) -> Message:
        """The handshake as it would be sent again."""
        name, version = self.client
        return {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": self.version,
                "capabilities": {},
                "clientInfo": {"name": name, "version": version},
            },
        }


class SessionTokens:
    """Makes and reads session ids.

    Args:
        secret: What they are signed with; all workers have the same.
        lasts: Seconds for which a session lasts.
        has_ended: Whether a session was ended by its client.
        clock: Seconds since the epoch.
        up_to_date: Whether that is known by what others have told by now.
        hear: Has it be known; may wait for a database.
    """

    def __init__(
        self,
        secret: bytes,
        *,
        lasts: float,
        has_ended: Callable[[str], bool],
        clock: Callable[[], float] = time.time,
        up_to_date: Callable[[], bool] = lambda: True,
        hear: Callable[[], None] = lambda: None,
    ) -> None:
        self.up_to_date, self.hear = up_to_date, hear
        self._secret = secret
        self.lasts = lasts
        self._has_ended = has_ended
        self._clock = clock
        self._known: dict[
            str, list[Any]
        ] = {}  # ids whose signature was looked at, with what they say

    def open(
        self, version: str, client: tuple[str, str], *, user: str, realm: str
    ) -> tuple[GatewaySession, str]:
        """A session that begins now, and its id for the client."""
        session = GatewaySession(
            f"mcp-{os.urandom(8).hex()}",
            int(self._clock()),
            version,
            (client[0][:80], client[1][:80]),
            user,
            realm,
        )
        facts = [
            *(session.id, session.begun, session.version, *session.client),
            *(_short(user), realm),
        ]
        said = urlsafe_b64encode(json.dumps(facts, separators=(",", ":")).encode()).rstrip(b"=")
        return session, f"{said.decode()}.{self._signature(said)}"

    def read(self, token: str, *, user: str, realm: str) -> GatewaySession:
        """The session of an id.

        Raises:
            SessionUnknownError: It is none of ours, too old, ended, of another user or for another realm.
        """
        facts = self._known.get(token)
        if facts is None:
            facts = self._facts(token)
            if len(self._known) >= _KNOWN:
                self._known.clear()
            self._known[token] = facts
        name, begun, version, client, its_version, whose, where = facts
        session = GatewaySession(name, begun, version, (client, its_version), user, realm)
        over = self._clock() > begun + self.lasts
        if over or whose != _short(user) or where != realm or self._has_ended(name):
            raise _unknown()
        return session

    def _facts(self, token: str) -> list[Any]:
        said, _, signature = token.partition(".")
        signed = compare_digest(
            signature.encode("latin-1", "replace"),
            self._signature(said.encode("latin-1", "replace")).encode(),
        )
        if not signed or len(token) > _LONGEST:
            raise _unknown()
        facts: list[Any] = json.loads(urlsafe_b64decode(f"{said}{'=' * (-len(said) % 4)}"))
        return facts

    def _signature(self, said: bytes) -> str:
        made = digest(self._secret, said, "sha256")[:_SIGNED]
        return urlsafe_b64encode(made).rstrip(b"=").decode()


def _short(user: str) -> str:
    return sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:16] if user else ""


def _unknown() -> SessionUnknownError:
    return SessionUnknownError(
        "this gateway does not know the session, or it has ended",
        hint="Begin a new one with initialize.",
    )
