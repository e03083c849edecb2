"""Tokens of an issuer: its address and keys by discovery, and what a token has to say.

The issuer is asked for nothing but its metadata and its keys, within bounds, and what it answers is
kept; a token with a key that is not known asks again, though not more often than once in a while.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import jwt

from filepact.config.serving import is_safe_url
from filepact.errors import StateFailedError, UnauthorizedError
from filepact.values import dataclass, late_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["TokenIssuer", "UserClaims", "fetch_json"]

_log = late_logger(__name__)

_FRESH: Final = 600.0  # seconds after which keys are asked for again
_KEPT: Final = 86_400.0  # seconds for which they count while the issuer does not answer
_PAUSE: Final = 10.0  # least seconds between two questions
_LONGEST: Final = 16_384  # characters of a token
_ANSWER: Final = 1_000_000  # bytes of what the issuer answers
_SECONDS: Final = 10.0  # that one question may take
_KEYS: Final = 100
_TYPES: Final = ("", "jwt", "at+jwt", "application/at+jwt")


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


class TokenIssuer:
    """Reads the tokens of one issuer.

    Args:
        issuer: Its identifier, as its tokens have it.
        algorithms: By which tokens may be signed.
        leeway: Seconds by which clocks may differ.
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
        user_claim: str = "sub",
        fetch: Callable[[str], Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.issuer = issuer
        self._algorithms = tuple(algorithms)
        self._leeway = leeway
        self._user_claim = user_claim
        self._fetch = fetch or fetch_json
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._had: float | None = None
        self._tried: float | None = None
        self._asking = asyncio.Lock()

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
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise _wrong("it is not a JSON Web Token") from None
        algorithm = header.get("alg")
        if algorithm not in self._algorithms:
            raise _wrong("its signature algorithm is not accepted")
        if str(header.get("typ", "")).lower() not in _TYPES or "crit" in header:
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
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise _wrong("it is not valid") from None
        user = claims.get(self._user_claim)
        if not isinstance(user, str) or not user or len(user) > 200 or user.startswith("token:"):
            raise _wrong(f"its {self._user_claim} names no user")
        return UserClaims(user, _scopes(claims), claims)

    # -- keys ---------------------------------------------------------------------------------

    async def _key(self, named: object, algorithm: str) -> jwt.PyJWK:
        now = self._clock()
        if self._had is None or now - self._had > _FRESH:
            await self._refresh()
        found = self._find(named, algorithm)
        if found is None:
            # The issuer may have a new one.
            await self._refresh()
            found = self._find(named, algorithm)
        if found is None:
            raise _wrong("no key of the issuer's signed it")
        return found

    def _find(self, named: object, algorithm: str) -> jwt.PyJWK | None:
        if isinstance(named, str):
            found = self._keys.get(named)
            return found if found is not None and _fits(found, algorithm) else None
        fitting = [one for one in self._keys.values() if _fits(one, algorithm)]
        return fitting[0] if named is None and len(fitting) == 1 else None

    async def _refresh(self) -> None:
        """Ask for the keys, unless that was done just now."""
        async with self._asking:
            now = self._clock()
            if self._tried is None or now - self._tried >= _PAUSE:
                self._tried = now
                try:
                    self._keys = await asyncio.to_thread(self._ask)
                    self._had = now
                except (OSError, ValueError, HTTPException, LookupError, TypeError) as error:
                    # What it says may be the issuer's own words.
                    said = (type(error).__name__, str(error))
                    _log.warning("the issuer's keys cannot be had: %s %a", *said)
            if self._had is None or now - self._had > _KEPT:
                raise StateFailedError(
                    "the issuer does not provide its keys, so no token can be checked",
                    hint="Send it again later.",
                    retry_after=int(_PAUSE),
                )

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


def fetch_json(address: str) -> Any:
    """The JSON at an address; None where there is none.  Follows nothing, and takes so much and so long.

    Raises:
        OSError: It cannot be had.
        ValueError: It is not JSON, or too large.
    """
    parts = urlsplit(address)
    until = time.monotonic() + _SECONDS
    connection: HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = HTTPSConnection(parts.netloc, timeout=_SECONDS / 2, context=context)
    else:
        connection = HTTPConnection(parts.netloc, timeout=_SECONDS / 2)
    try:
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
            if len(data) > _ANSWER or time.monotonic() > until:
                raise ValueError(f"{address} answers too much, or too slowly")
        return json.loads(data)
    except RecursionError:
        raise ValueError(f"{address} answers in more depth than JSON needs") from None
    finally:
        connection.close()
