"""Session ids that any worker understands: the facts of the handshake, signed by the gateway; and tokens of its own.

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

from filepact.config.person import settings_text
from filepact.errors import InvalidParamsError, SessionUnknownError, StateFailedError
from filepact.values import dataclass, late_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact_wire.messages import Message

__all__ = ["GatewaySession", "SessionTokens", "TokenFile"]

_SIGNED: Final = 16  # bytes of the signature
_LONGEST: Final = 2_000  # characters of a session id
_KNOWN: Final = 4_096
_RACY: Final = 20_000_000  # nanoseconds: a younger stamp may be that of two states of a file

_log = late_logger(__name__)


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
        client = {"name": name, "version": version}
        told = {"protocolVersion": self.version, "capabilities": {}, "clientInfo": client}
        return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": told}


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
        # Ids whose signature was looked at, with what they say.
        self._known: dict[str, list[Any]] = {}

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


class TokenFile:
    """The gateway's own tokens, as their file has them now: whoever is taken out of it is not let in any more.

    Args:
        name: The file's path.

    Raises:
        InvalidParamsError: It cannot be read, or a line is wrong.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._stamp: tuple[int, ...] | None = self._look()
        self._found = _read_tokens(name)

    def __call__(self) -> Mapping[str, str]:
        """By name, what the SHA-256 of each token is.

        Raises:
            StateFailedError: It cannot be read, or a line is wrong: nobody knows whom it was to keep out.
        """
        stamp = self._look()
        if stamp is None or stamp != self._stamp:
            self._stamp = None
            try:
                self._found = _read_tokens(self._name)
            except InvalidParamsError as error:
                _log.warning("the tokens cannot be read: %s", error.message)
                raise StateFailedError(
                    "the gateway cannot read its tokens, so none can be checked",
                    hint="Send it again later.",
                    retry_after=10,
                ) from error
            self._stamp = stamp
        return self._found

    def _look(self) -> tuple[int, ...] | None:
        """What changes with the file; None where that may come too late, or nothing can be told."""
        try:
            found = os.stat(self._name)
        except OSError:
            return None
        if time.time_ns() - found.st_mtime_ns < _RACY:
            # Another change within the same tick of the system's clock would look the same.
            return None
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _read_tokens(name: str) -> dict[str, str]:
    """The gateway's own tokens in a file: by name, what their SHA-256 is.

    Args:
        name: The file's path; a line has a name and the hash of a token, in hexadecimal.

    Raises:
        InvalidParamsError: It cannot be read, or a line is not of this form.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(settings_text(name).splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or len(words[1]) != 64 or set(words[1]) - set("0123456789abcdef"):
            raise InvalidParamsError(
                f"{name}, line {number}: each line needs a name and a hash",
                hint="`filepact serve --new-token NAME` prints one.",
            )
        if words[0] in found:
            raise InvalidParamsError(f"{name}, line {number}: the name {words[0]} appears twice")
        found[words[0]] = words[1]
    return found
