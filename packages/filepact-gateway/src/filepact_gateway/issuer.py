"""Tokens of an issuer: its address and keys by discovery, and what a token has to say.

The issuer is asked for nothing but its metadata and its keys, within bounds, and what it answers is
kept; a token with a key that is not known asks again, though not more often than once in a while.
"""

from __future__ import annotations

import asyncio
import json
import math
import ssl
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import SHUT_RDWR, socket
from threading import Timer
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

import jwt

from filepact.errors import StateFailedError, UnauthorizedError
from filepact.values import dataclass, late_logger
from filepact_gateway.settings import is_safe_url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["TokenIssuer", "UserClaims", "fetch_json"]

_log = late_logger(__name__)

_FRESH: Final = 600.0  # seconds after which keys are asked for again
_KEPT: Final = 86_400.0  # seconds for which they count while the issuer does not answer
_PAUSE: Final = 10.0  # least seconds between two questions
_LONGEST: Final = 16_384  # characters of a token
_ANSWER: Final = 1_000_000  # bytes of what the issuer answers
_SECONDS: Final = 10.0  # that one question may take, and that a token with a new key waits for it
_MOMENT: Final = 1.0  # that a token with a known key waits for what the issuer says by now
_KEYS: Final = 100
_KNOWN: Final = 512  # tokens whose signature is not checked again
_LAST: Final = 253_402_300_799  # the end of the year 9999, after which no time is right


@dataclass(frozen=True, slots=True)
class UserClaims:
    """Who asks, as it was vouched for.

    Attributes:
        user: The name.
        scopes: What the token allows.
        claims: All that it says.
    """

    user: str
    scopes: frozenset[str]
    claims: Mapping[str, Any]


class _Verified(NamedTuple):
    """A token whose signature was checked.

    Attributes:
        named: Its header's word for its key.
        key: The key itself, one of those that the issuer had.
        until: When it is over, seconds since the epoch, with what clocks may differ by.
    """

    named: object
    algorithm: str
    key: jwt.PyJWK
    until: float
    claims: UserClaims


class TokenIssuer:
    """Reads the tokens of one issuer.

    Args:
        issuer: Its identifier, as its tokens have it.
        algorithms: By which tokens may be signed.
        leeway: Seconds by which clocks may differ.
        types: What tokens may call themselves; empty for what tells them from ID tokens.
        user_claim: The claim that names the user.
        fetch: Gets the JSON at an address; None for none there.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        issuer: str,
        *,
        algorithms: Sequence[str],
        leeway: float,
        types: Sequence[str] = (),
        user_claim: str = "sub",
        fetch: Callable[[str], Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.issuer = issuer
        self._algorithms = tuple(algorithms)
        self._leeway = leeway
        self._types = tuple(one.lower() for one in types)
        self._user_claim = user_claim
        self._fetch = fetch or fetch_json
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._had: float | None = None
        self._tried: float | None = None
        self._failed = False
        self._asking: asyncio.Task[None] | None = None
        self._verified: dict[tuple[str, str], _Verified] = {}

    async def read(self, token: str, audience: str) -> UserClaims:
        """What a token says.

        Args:
            token: As it came.
            audience: For whom it has to be.

        Raises:
            UnauthorizedError: It is none, not of this issuer, not for this audience, over, or not signed by
                a key of the issuer's.
            StateFailedError: The issuer does not tell its keys.
        """
        if len(token) > _LONGEST:
            raise _wrong("it is too long")
        known = self._verified.get((token, audience))
        # What it says does not change; when it ends, and whether the issuer still has the key, is looked at.
        if known is not None and time.time() < known.until:
            if await self._key(known.named, known.algorithm) is known.key:
                return known.claims
            del self._verified[token, audience]
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise _wrong("it is not a JSON Web Token") from None
        algorithm = header.get("alg")
        if algorithm not in self._algorithms:
            raise _wrong("its signature algorithm is not accepted")
        if not self._is_access_token(header.get("typ"), audience) or "crit" in header:
            raise _wrong("it is not an access token")
        key = await self._key(header.get("kid"), str(algorithm))
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[str(algorithm)],
                audience=audience,
                issuer=self.issuer,
                leeway=self._leeway,
                options={"require": ["exp", "iss", "aud", self._user_claim]},
            )
        except jwt.ExpiredSignatureError:
            raise _wrong("it has expired") from None
        except jwt.InvalidAudienceError:
            raise _wrong("it is for another service") from None
        except jwt.InvalidIssuerError:
            raise _wrong("another issuer made it") from None
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
            raise _wrong("it is not valid") from None
        # `exp` is there, and what is a text or beyond all calendars is no time (RFC 7519, 2).
        if not all(_is_time(claims.get(name, 0)) for name in ("exp", "nbf", "iat")):
            raise _wrong("its times are not valid")
        # What ID tokens have and access tokens have not; Keycloak says it in so many words.
        if claims.get("typ") == "ID" or not claims.keys().isdisjoint(("at_hash", "c_hash")):
            raise _wrong("it is not an access token")
        user = claims.get(self._user_claim)
        if not isinstance(user, str) or not user or len(user) > 200 or user.startswith("token:"):
            raise _wrong(f"its {self._user_claim} names no user")
        found = UserClaims(user, _scopes(claims), claims)
        if len(self._verified) >= _KNOWN:
            self._verified.clear()
        until = int(claims["exp"]) + self._leeway
        self._verified[token, audience] = _Verified(
            header.get("kid"), str(algorithm), key, until, found
        )
        return found

    def _is_access_token(self, said: object, audience: str) -> bool:
        """Whether a token calls itself one for a service.

        An ID token, which is for a client and not to be shown to a service, calls itself `JWT` or nothing, as do
        the access tokens of many issuers.  These are known by the audience: the id of a client is no address.
        """
        usual = ("at+jwt", "jwt") if "://" in audience else ("at+jwt",)
        called = str(said or "JWT").lower().removeprefix("application/")
        return called in (self._types or usual)

    # -- keys ---------------------------------------------------------------------------------

    async def _key(self, named: object, algorithm: str) -> jwt.PyJWK:
        known = self._find(named, algorithm)
        if known is None or self._age() > _FRESH:
            # The issuer may have a new one, or have given up this one.
            await self._refresh(_SECONDS if known is None else _MOMENT)
        if self._age() > _KEPT:
            raise _silent()
        found = self._find(named, algorithm)
        if found is None:
            raise _silent() if self._failed else _wrong("no key of the issuer's signed it")
        return found

    def _age(self) -> float:
        """Seconds since the keys were had."""
        return math.inf if self._had is None else self._clock() - self._had

    def _find(self, named: object, algorithm: str) -> jwt.PyJWK | None:
        if isinstance(named, str):
            found = self._keys.get(named)
            return found if found is not None and _fits(found, algorithm) else None
        fitting = [one for one in self._keys.values() if _fits(one, algorithm)]
        return fitting[0] if named is None and len(fitting) == 1 else None

    async def _refresh(self, patience: float) -> None:
        """Ask for the keys, unless that was done just now, and wait so long for the answer.

        An issuer that is slow holds up no more than that: the question goes on, and is asked once for all.
        """
        if self._asking is None or self._asking.done():
            now = self._clock()
            if self._tried is not None and now - self._tried < _PAUSE:
                return
            self._tried, self._failed = now, True
            self._asking = asyncio.create_task(self._learn(now))
        await asyncio.wait({self._asking}, timeout=patience)

    async def _learn(self, now: float) -> None:
        try:
            self._keys = await asyncio.to_thread(self._ask)
            self._had, self._failed = now, False
        except (OSError, ValueError, HTTPException, LookupError, TypeError) as error:
            # What it says may be the issuer's own words.
            said = (type(error).__name__, str(error))
            _log.warning("the issuer's keys cannot be had: %s %a", *said)

    def _ask(self) -> dict[str, jwt.PyJWK]:
        for address in _metadata_addresses(self.issuer):
            metadata = self._fetch(address)
            if metadata is None:
                continue
            if metadata["issuer"] != self.issuer:
                raise ValueError(f"{address} is about another issuer")
            where = metadata["jwks_uri"]
            scheme = urlsplit(self.issuer).scheme
            if not isinstance(where, str) or not where.startswith(f"{scheme}:"):
                raise ValueError(
                    f"{address} names an address of keys with another scheme than its own"
                )
            if not is_safe_url(where.partition("?")[0]):
                raise ValueError(f"{address} names an address of keys that is not safe")
            return _keys(self._fetch(where), self._algorithms)
        raise LookupError(self.issuer)


def _metadata_addresses(issuer: str) -> tuple[str, ...]:
    """Where an issuer tells about itself, by RFC 8414 and by OpenID Connect."""
    parts = urlsplit(issuer)
    base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    known = (
        f"{base}/.well-known/oauth-authorization-server{path}",
        f"{base}/.well-known/openid-configuration{path}",
        f"{base}{path}/.well-known/openid-configuration",
    )
    return tuple(dict.fromkeys(known))


def _keys(found: Any, algorithms: Sequence[str]) -> dict[str, jwt.PyJWK]:
    """The keys that can sign tokens, by their ids."""
    keys: dict[str, jwt.PyJWK] = {}
    for number, one in enumerate(found["keys"][:_KEYS]):
        if not isinstance(one, dict) or one.get("kty") not in ("RSA", "EC", "OKP"):
            continue
        if one.get("use", "sig") != "sig" or "d" in one:
            continue
        if "alg" in one and one["alg"] not in algorithms:
            continue
        with suppress(jwt.PyJWTError, ValueError, TypeError):
            name = one.get("kid")
            keys[name if isinstance(name, str) else f"\0{number}"] = jwt.PyJWK(one)
    return keys


def _fits(key: jwt.PyJWK, algorithm: str) -> bool:
    """Whether a key is one for an algorithm."""
    if algorithm.startswith(("RS", "PS")):
        return key.key_type == "RSA"
    return key.algorithm_name == algorithm


def _is_time(said: object) -> bool:
    return type(said) in (int, float) and 0 <= cast("float", said) <= _LAST


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    told = claims.get("scope", claims.get("scp", ()))
    if isinstance(told, str):
        return frozenset(told.split())
    found = told if isinstance(told, list) else ()
    return frozenset(one for one in found if isinstance(one, str))


def _wrong(why: str) -> UnauthorizedError:
    return UnauthorizedError(
        f"the token is not accepted: {why}", hint="Log in again, and send the new token."
    )


def _silent() -> StateFailedError:
    return StateFailedError(
        "the issuer does not provide its keys, so the token cannot be checked",
        hint="Send it again later.",
        retry_after=int(_PAUSE),
    )


def fetch_json(address: str, *, seconds: float = _SECONDS) -> Any:
    """The JSON at an address; None where there is none.  Follows nothing, and takes so much and so long.

    Args:
        address: Where it is.
        seconds: That all of it may take.

    Raises:
        OSError: It cannot be had.
        HTTPException: What answers does not speak HTTP, or was cut off.
        ValueError: It is not JSON, or too large, or came too slowly.
    """
    parts = urlsplit(address)
    until = time.monotonic() + seconds
    connection: HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = HTTPSConnection(parts.netloc, timeout=seconds / 2, context=context)
    else:
        connection = HTTPConnection(parts.netloc, timeout=seconds / 2)
    late: Timer | None = None
    try:
        connection.connect()
        # What comes byte by byte is never late by itself.
        late = Timer(until - time.monotonic(), _cut, (connection.sock,))
        late.daemon = True
        late.start()
        path = parts.path or "/"
        connection.request(
            "GET",
            f"{path}?{parts.query}" if parts.query else path,
            headers={"Accept": "application/json", "User-Agent": "filepact"},
        )
        response = connection.getresponse()
        if response.status != 200:
            return None
        data = b""
        while part := response.read1(65_536):
            data += part
            if len(data) > _ANSWER:
                raise ValueError(f"{address} answers too much")
        if time.monotonic() >= until:
            raise ValueError(f"{address} answers too slowly")
        return json.loads(data)
    except RecursionError:
        raise ValueError(f"{address} answers in more depth than JSON needs") from None
    finally:
        if late is not None:
            late.cancel()
        connection.close()


def _cut(connection: socket) -> None:
    """End a connection, whoever waits for it."""
    with suppress(OSError):
        connection.shutdown(SHUT_RDWR)
