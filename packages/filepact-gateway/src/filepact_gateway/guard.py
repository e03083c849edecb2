"""Who may ask, and for what, at a gateway: a resource server as MCP's authorization has it."""

from __future__ import annotations

import ipaddress
import json
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Final

from filepact.errors import AccessDeniedError, FilepactError, UnauthorizedError
from filepact.values import late_logger
from filepact_gateway.context import TokenAccess, UserContext
from filepact_gateway.issuer import UserClaims
from filepact_gateway.limits import LimitChecks
from filepact_gateway.realms import path_of_realm, realm_at
from filepact_gateway.requests import HttpAnswer, plain, refusal
from filepact_gateway.settings import CallLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from filepact_gateway.issuer import TokenIssuer
    from filepact_gateway.realms import Realms
    from filepact_gateway.requests import HttpRequest
    from filepact_gateway.settings import AccessRule, GatewaySettings, RealmAccess

__all__ = ["OpenGatewayGuard", "TokenGatewayGuard", "peer_of"]

_log = late_logger(__name__)

_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
_FAILURES: Final = 60  # tokens of one address within a minute that may be refused
OWN: Final = "token:"
"""Goes before the names of those who have a token of the gateway's own."""


class OpenGatewayGuard:
    """Says who asks, and what they may use: lets everybody in who can reach the address, which is a loopback one.

    Args:
        realms: The workspaces.
        access: How they may be used.
    """

    def __init__(self, realms: Realms, access: RealmAccess) -> None:
        self._realms = realms
        self._access = access
        self._callers: dict[str, UserContext] = {}

    def realm(self, path: str) -> str | None:
        """The workspace at a path; None where there is none."""
        found = realm_at(path)
        return found if found in self._realms else None

    async def caller(self, _request: HttpRequest, realm: str) -> UserContext | HttpAnswer:
        """Somebody on this computer."""
        found = self._callers.get(realm)
        if found is None:
            served = self._realms.served(realm, self._access)
            found = self._callers[realm] = UserContext("", realm, served)
        return found

    def page(self, _request: HttpRequest) -> HttpAnswer | None:
        """There is nothing that everybody may read."""
        return None


class TokenGatewayGuard(OpenGatewayGuard):
    """Lets in whoever has a token, and says where one is to be had.

    Args:
        realms: The workspaces.
        access: How they may be used where no rules are.
        settings: The rules that say who may use what, of which the first that fits decides, the audience and
            the scopes of tokens, and whose ``X-Forwarded-For`` is believed.
        url: Where clients reach the gateway.
        issuer: Whose tokens are taken; None for nobody's.
        tokens: Tells the gateway's own tokens as they are now: by name, their hashes.
    """

    def __init__(
        self,
        realms: Realms,
        access: RealmAccess,
        settings: GatewaySettings,
        *,
        url: str,
        issuer: TokenIssuer | None,
        tokens: Callable[[], Mapping[str, str]],
    ) -> None:
        super().__init__(realms, access)
        self._rules = settings.access
        self._url = url
        self._issuer = issuer
        self._audience = settings.audience
        self._scopes = frozenset(settings.scopes)
        self._tokens = tokens
        self._proxies = [ipaddress.ip_network(one) for one in settings.proxies]
        self._failures = LimitChecks(CallLimits(user_calls=_FAILURES))

    def page(self, request: HttpRequest) -> HttpAnswer | None:
        """What says whose tokens are taken for a realm."""
        if self._issuer is None or not request.path.startswith(_WELL_KNOWN):
            return None
        path = request.path.removeprefix(_WELL_KNOWN)
        realm = self.realm(path)
        if realm is None:
            return plain(404, "There is nothing here.")
        if request.method not in ("GET", "HEAD", "OPTIONS"):
            return plain(405, "This can be read.", Allow="GET")
        told = {
            "resource": self._resource(realm),
            "authorization_servers": [self._issuer.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "filepact",
        }
        if scopes := self._first_scopes():
            told["scopes_supported"] = scopes
        # Clients in web pages read it as well; it is nobody's secret.
        # They send the version of the protocol along, so browsers ask first whether that is taken.
        shown = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*"}
        return HttpAnswer(200, json.dumps(told).encode(), shown)

    async def caller(self, request: HttpRequest, realm: str) -> UserContext | HttpAnswer:
        """Who asks, or why they are refused."""
        kind, _, token = request.get("authorization").partition(" ")
        token = token.strip()
        if kind.lower() != "bearer" or not token:
            error = UnauthorizedError(
                "this gateway needs a token", hint="Send it as `Authorization: Bearer ...`."
            )
            return refusal(error, challenge=self._challenge(realm))
        try:
            known = await self._known(token, realm)
        except UnauthorizedError as error:
            return self._failed(request, realm, error)
        allowed = self._allowed(known, realm)
        if isinstance(allowed, HttpAnswer):
            return allowed
        access, passed = allowed
        wider: TokenAccess | None = None
        if passed is not None:
            lack, challenge = self._lacking(realm, self._scopes | frozenset(passed.scopes))
            wider = TokenAccess(self._realms.served(realm, passed.access), lack, challenge)
        return UserContext(known.user, realm, self._realms.served(realm, access), wider)

    # -- who ----------------------------------------------------------------------------------

    async def _known(self, token: str, realm: str) -> UserClaims:
        own = self._own(token)
        if own:
            return UserClaims(own, self._scopes, {})
        if self._issuer is None:
            raise UnauthorizedError("the token is not accepted", hint="Ask for a new one.")
        return await self._issuer.read(token, self._audience or self._resource(realm))

    def _own(self, token: str) -> str:
        """Whose token of the gateway's this is; empty for nobody's."""
        digest = sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
        found = ""
        for name, known in self._tokens().items():
            # All of them are looked at, so that the time says nothing.
            if compare_digest(known, digest):
                found = OWN + name
        return found

    def _failed(self, request: HttpRequest, realm: str, error: UnauthorizedError) -> HttpAnswer:
        address = peer_of(request, self._proxies)
        try:
            self._failures.count("", address, 0)
        except FilepactError as limited:
            return refusal(limited)
        _log.warning("a token from %s was refused: %s", address, error.message)
        return refusal(error, challenge=self._challenge(realm, "invalid_token", error.message))

    # -- what they may ------------------------------------------------------------------------

    def _allowed(
        self, known: UserClaims, realm: str
    ) -> tuple[RealmAccess, AccessRule | None] | HttpAnswer:
        """What somebody may, with the first rule that was passed over for scopes; or why nothing."""
        if not self._rules:
            missing = self._scopes - known.scopes
            return self._more_scopes(realm, self._scopes) if missing else (self._access, None)
        fitting = [one for one in self._rules if _fits(one, known, realm)]
        for number, rule in enumerate(fitting):
            # A token of the gateway's own has no scopes: the rules alone say what it may.
            own = known.user.startswith(OWN)
            if own or self._scopes | frozenset(rule.scopes) <= known.scopes:
                return rule.access, fitting[0] if number else None
        if fitting:
            return self._more_scopes(realm, self._scopes | frozenset(fitting[0].scopes))
        error = AccessDeniedError(
            "you may not use this workspace",
            hint="Ask whoever runs this gateway; [[access]] in its settings says who may.",
        )
        return refusal(error)

    def _more_scopes(self, realm: str, scopes: frozenset[str]) -> HttpAnswer:
        error, challenge = self._lacking(realm, scopes)
        return refusal(error, challenge=challenge)

    def _lacking(self, realm: str, scopes: frozenset[str]) -> tuple[AccessDeniedError, str]:
        error = AccessDeniedError(
            "the token lacks a scope for this",
            hint="Log in again with the scopes that the answer names.",
            scopes=tuple(sorted(scopes)),
        )
        return error, self._challenge(realm, "insufficient_scope", error.message, scopes)

    # -- what clients are told ----------------------------------------------------------------

    def _resource(self, realm: str) -> str:
        return f"{self._url}{path_of_realm(realm)}"

    def _first_scopes(self) -> list[str]:
        """What a client asks for at its first login: what everybody needs, for the rest is asked for when used."""
        more = {scope for rule in self._rules for scope in rule.scopes}
        return sorted(self._scopes or more)

    def _challenge(
        self, realm: str, error: str = "", why: str = "", scopes: frozenset[str] | None = None
    ) -> str:
        said = {}
        if error:
            said = {"error": error, "error_description": why.replace('"', "'")}
        wanted = sorted(self._scopes if scopes is None else scopes)
        if wanted:
            said["scope"] = " ".join(wanted)
        if self._issuer is not None:
            said["resource_metadata"] = f"{self._url}{_WELL_KNOWN}{path_of_realm(realm)}"
        told = ", ".join(f'{key}="{value}"' for key, value in said.items())
        return f"Bearer {told}".strip()


def _fits(rule: AccessRule, known: UserClaims, realm: str) -> bool:
    """Whether a rule is about a user and a realm."""
    own = known.user.startswith(OWN)
    names = {"*", known.user, f"{OWN}*" if own else ""}
    if not names.intersection(rule.users):
        return False
    if not {"*", realm or "default"}.intersection(rule.realms):
        return False
    return all(_says(known.claims.get(name), value) for name, value in rule.claims.items())


def _says(claim: object, value: str) -> bool:
    return claim == value or (isinstance(claim, list) and value in claim)


def peer_of(
    request: HttpRequest, proxies: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]
) -> str:
    """The address of a client, as the proxies tell that are believed; else of whoever is connected."""
    found = request.peer
    told = [one.strip() for value in request.all_of("x-forwarded-for") for one in value.split(",")]
    while told and _is_among(found, proxies):
        found = told.pop()
    return found


def _is_among(
    address: str, networks: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]
) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(found in one for one in networks)
