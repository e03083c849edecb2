"""The settings of the gateway: the tables `serve`, `realms` and `access`, and their keys for template and schema."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from filepact.config.keys import TEXT, TEXTS, between, read_table
from filepact.config.problems import refusal
from filepact.extension import SettingInfo
from filepact.values import dataclass, field, late_regex

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ALGORITHMS",
    "KEYS",
    "TOKEN_TYPES",
    "AccessMode",
    "AccessRule",
    "CallLimits",
    "GatewaySettings",
    "Level",
    "RealmAccess",
    "Tier",
    "is_safe_url",
    "read_serving",
]

AccessMode = Literal["auto", "review", "read-only"]
Level = Literal["safe", "moderate", "dangerous"]
Tier = Literal["essential", "standard", "full"]

_RULE: Final = ("users", "claims", "scopes", "realms", "mode", "tier", "max_level")
_CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "mode": ("auto", "review", "read-only"),
    "tier": ("essential", "standard", "full"),
    "max_level": ("safe", "moderate", "dangerous"),
}
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""The algorithms by which tokens may be signed: those with a public key."""
TOKEN_TYPES: Final = ("at+jwt", "JWT")
"""What an access token may call itself; `JWT` stands for nothing as well."""
_SCOPE: Final = late_regex(r"[\x21\x23-\x5b\x5d-\x7e]{1,100}")
_REALM: Final = late_regex(r"[a-z0-9][a-z0-9_-]{0,62}")
_NAMELESS: Final = "default"
_HOST: Final = late_regex(r"[^/?#@\s]+")
_ORIGIN: Final = late_regex(r"https?://[^/?#@\s]+", re.ASCII)
_FORMS: Final = (
    ("hosts", _HOST, "host[:port]"),
    ("origins", _ORIGIN, "scheme://host[:port]"),
    ("scopes", _SCOPE, "a scope"),
)


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What one session, and one user with all sessions, may ask for.

    Attributes:
        session_calls: Calls of a session within a minute.
        user_calls: Calls of a user within a minute.
        session_at_once: Calls of a session in flight.
        user_at_once: Calls of a user in flight.
        user_megabytes: Millions of bytes that a user may send within a minute.
        session_waiting: Calls of a session that may wait until others are over.
        user_waiting: Calls of a user that may.
    """

    session_calls: int = 600
    user_calls: int = 1_200
    session_at_once: int = 8
    user_at_once: int = 32
    user_megabytes: int = 64
    session_waiting: int = 128
    user_waiting: int = 1_000


@dataclass(frozen=True, slots=True)
class RealmAccess:
    """How somebody may use a workspace.

    Attributes:
        mode: Whether changes are done, wait for a person, or are not to be had.
        tier: Only tools of this set and the smaller ones.
        max_level: Only tools up to this level.
    """

    mode: AccessMode = "auto"
    tier: Tier = "full"
    max_level: Level = "dangerous"


@dataclass(frozen=True, slots=True)
class AccessRule:
    """Who may use which realms, and how.

    Attributes:
        users: Names; ``*`` stands for anybody, and ``token:*`` for whoever has a token of the gateway's.
        claims: What a token has to say, each by the claim's name.
        scopes: Scopes that a token needs besides.
        realms: Names; ``default`` is the one without a name, ``*`` stands for each.
    """

    users: tuple[str, ...]
    claims: Mapping[str, str]
    scopes: tuple[str, ...]
    realms: tuple[str, ...]
    access: RealmAccess


@dataclass(frozen=True, slots=True)
class GatewaySettings(CallLimits):
    """The settings of `filepact serve`; its limits are those of `CallLimits`.

    Attributes:
        hosts: The names by which clients reach it, with the port where that is not the usual one.
        origins: Web pages that may ask, as schemes and hosts.
        workers: How many processes serve.
        megabytes: Millions of bytes that a request may have.
        threads: Most calls that a worker carries out at once.
        drain: Seconds that calls in flight have to finish when it is ended.
        patience: Seconds that a client may take to send a request, and to take an answer.
        session_hours: Hours for which a session lasts.
        realms: The folders of workspaces, by the name that stands in their address.
        url: Where clients reach the gateway; empty for where it listens.
        issuer: Whose tokens are taken; empty for nobody's.
        audience: For whom tokens have to be; empty for the address of the realm.
        algorithms: By which they may be signed.
        token_types: What they may call themselves; empty for what tells them from ID tokens.
        leeway: Seconds by which clocks may differ.
        user_claim: The claim that names the user.
        scopes: What every token has to allow.
        tokens: The file with the gateway's own tokens; empty for none.
        proxies: Addresses, and networks, whose ``X-Forwarded-For`` is believed.
        access: Who may use what; empty for anybody who has a token, as the command says.
    """

    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    workers: int = 1
    megabytes: int = 8
    threads: int = 16
    drain: float = 30.0
    patience: float = 30.0
    session_hours: float = 24.0
    realms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    url: str = ""
    issuer: str = ""
    audience: str = ""
    algorithms: tuple[str, ...] = ("RS256", "PS256", "ES256", "EdDSA")
    token_types: tuple[str, ...] = ()
    leeway: float = 30.0
    user_claim: str = "sub"
    scopes: tuple[str, ...] = ()
    tokens: str = ""
    proxies: tuple[str, ...] = ()
    access: tuple[AccessRule, ...] = ()

    @property
    def knows_users(self) -> bool:
        """Whether whoever asks has to say who they are."""
        return bool(self.issuer or self.tokens)


def is_safe_url(url: str) -> bool:
    """Whether an address can be asked without others reading along, or putting in what they like."""
    try:
        parts = urlsplit(url)
        known = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    if not known or parts.query or parts.fragment or "@" in parts.netloc:
        return False
    if parts.scheme == "https":
        return True
    return parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")


def _spelt(address: str) -> str:
    """A scheme with a host, in small letters and without the port that is the usual one."""
    scheme, _, host = address.lower().partition("://")
    return f"{scheme}://{host.removesuffix(':443' if scheme == 'https' else ':80')}"


def read_serving(found: Mapping[str, Any], text: str, name: str) -> GatewaySettings:
    """Read the tables about the gateway.

    Args:
        found: The file's keys, as the TOML reader gives them.
        text: What the file holds.
        name: How it is called in messages.

    Raises:
        InvalidParamsError: A key or a value in them is not one that is known.
    """
    chosen = read_table(found, "serve", text, name, KEYS)
    return _Reader(text, name).read(chosen, found.get("realms", {}), found.get("access", []))


class _Reader:
    """Refuses what is wrong in one file."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name

    def read(self, chosen: dict[str, Any], realms: Any, rules: Any) -> GatewaySettings:
        self._check_texts(chosen)
        # As clients and browsers spell them, who compare them letter by letter.
        if "url" in chosen:
            chosen["url"] = _spelt(chosen["url"])
        chosen["origins"] = tuple(_spelt(one) for one in chosen.get("origins", ()))
        found = self._realms(realms)
        access = self._access(rules, found)
        return GatewaySettings(realms=found, access=access, **chosen)

    def _check_texts(self, chosen: Mapping[str, Any]) -> None:
        for key, form, said in _FORMS:
            for one in chosen.get(key, ()):
                if not form.fullmatch(one):
                    raise self._wrong(("serve", key), f"{one!r} is not {said}")
        for key in ("url", "issuer"):
            if key in chosen and not is_safe_url(chosen[key]):
                raise self._wrong(("serve", key), f"has to be {_SAFE}")
        if "url" in chosen and not _ORIGIN.fullmatch(chosen["url"]):
            raise self._wrong(("serve", "url"), "is scheme://host[:port], without a path")
        for one in chosen.get("proxies", ()):
            try:
                ipaddress.ip_network(one)
            except ValueError:
                said = f"{one!r} is neither an address nor a network"
                raise self._wrong(("serve", "proxies"), said) from None

    def _access(self, rules: Any, realms: Mapping[str, Any]) -> tuple[AccessRule, ...]:
        if not isinstance(rules, list):
            raise self._wrong(("access",), "has to be a list of tables, [[access]]")
        found: list[AccessRule] = []
        for rule in rules:
            path = ("access",)
            chosen = self._table(rule, path, _RULE)
            lists = {
                key: self._texts(chosen.get(key, usual), (*path, key))
                for key, usual in (("users", ["*"]), ("scopes", []), ("realms", ["*"]))
            }
            for realm in lists["realms"]:
                if realm not in ("*", _NAMELESS, *realms):
                    raise self._wrong((*path, "realms"), f"there is no realm {realm!r}")
            claims = chosen.get("claims", {})
            if not isinstance(claims, dict) or not all(
                isinstance(one, str) for one in claims.values()
            ):
                raise self._wrong((*path, "claims"), "has to be a table of texts")
            for key, known in _CHOICES.items():
                if chosen.get(key, known[0]) not in known:
                    raise self._wrong((*path, key), f"has to be one of {', '.join(known)}")
            how = {key: chosen[key] for key in _CHOICES if key in chosen}
            found.append(AccessRule(claims=claims, access=RealmAccess(**how), **lists))
        return tuple(found)

    def _realms(self, table: Any) -> dict[str, tuple[str, ...]]:
        if not isinstance(table, dict):
            raise self._wrong(("realms",), "has to be a table")
        found: dict[str, tuple[str, ...]] = {}
        for realm, value in table.items():
            path = ("realms", realm)
            if realm == _NAMELESS:
                said = "is what rules call the workspace without a name"
                raise self._wrong(path, said)
            if not _REALM.fullmatch(realm):
                raise self._wrong(path, "a name has small letters, digits, - and _")
            chosen = self._table(value, path, ("roots",))
            roots = self._texts(chosen.get("roots"), (*path, "roots"))
            if not roots or not all(one.startswith("/") for one in roots):
                said = "has to be a list of absolute paths, and not empty"
                raise self._wrong((*path, "roots"), said)
            found[realm] = roots
        return found

    def _table(self, table: Any, path: tuple[str, ...], known: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(table, dict):
            raise self._wrong(path, "has to be a table")
        for key in table:
            if key not in known:
                said = f"there is no such key; known are {', '.join(known)}"
                raise self._wrong((*path, key), said)
        return table

    def _texts(self, value: Any, path: tuple[str, ...]) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise self._wrong(path, "has to be a list of texts")
        return tuple(value)

    def _wrong(self, path: tuple[str, ...], said: str) -> Exception:
        return refusal(self._text, self._name, path, said)


def _number(key: str, about: str, least: int, most: int) -> SettingInfo:
    usual = getattr(GatewaySettings(), key)
    kind = "number" if isinstance(usual, float) else "integer"
    return SettingInfo("serve", key, f"{usual:g}", about, between(least, most, kind))


def _some_of(
    key: str, known: tuple[str, ...], default: str, about: str, example: str = "", least: int = 0
) -> SettingInfo:
    allows = {"type": "array", "items": {"enum": list(known)}, "minItems": least}
    form = f"a list of any of {', '.join(known)}{', one at least' * least}"
    return SettingInfo("serve", key, default, about, allows, example, form)


_SAFE: Final = "an address that begins with https://, or http:// at a loopback address"
_USUAL: Final = '["RS256", "PS256", "ES256", "EdDSA"]'

KEYS: Final = (
    SettingInfo("serve", "hosts", "[]", "names by which clients reach the gateway", TEXTS),
    SettingInfo(
        "serve",
        "origins",
        "[]",
        "web pages that may ask it",
        {"type": "array", "items": {"type": "string", "pattern": "^https?://"}},
        form="a list of scheme://host[:port]",
    ),
    _number("workers", "its processes", 1, 64),
    _number("megabytes", "most that a request may have", 1, 64),
    _number("threads", "calls at once of a worker", 1, 256),
    _number("drain", "seconds for calls when it ends", 1, 3_600),
    _number("patience", "seconds that a client may take", 1, 3_600),
    SettingInfo(
        "serve",
        "url",
        "",
        "where clients reach it; left out, where it listens",
        {"type": "string", "pattern": "^https?://"},
        '"https://files.example.com"',
        _SAFE,
    ),
    SettingInfo(
        "serve",
        "issuer",
        "",
        "whose tokens are taken",
        {"type": "string", "pattern": "^https?://"},
        '"https://login.example.com"',
        _SAFE,
    ),
    SettingInfo(
        "serve",
        "audience",
        "",
        "for whom they have to be; left out, the realm's address",
        TEXT,
        '"https://files.example.com"',
    ),
    _some_of("algorithms", ALGORITHMS, _USUAL, "how they may be signed", least=1),
    _some_of(
        "token_types",
        TOKEN_TYPES,
        "[]",
        "what their `typ` may be; none: as the audience is",
        '["at+jwt", "JWT"]',
    ),
    _number("leeway", "seconds by which clocks may differ", 0, 300),
    SettingInfo("serve", "user_claim", '"sub"', "the claim that names the user", TEXT),
    SettingInfo("serve", "scopes", "[]", "what every token has to allow", TEXTS),
    SettingInfo(
        "serve",
        "tokens",
        "",
        "a file with tokens of its own",
        {"type": "string", "pattern": "^/"},
        '"/etc/filepact/tokens"',
        "an absolute path",
    ),
    SettingInfo("serve", "proxies", "[]", "whose X-Forwarded-For is believed", TEXTS),
    _number("session_calls", "requests of a session within a minute", 1, 1_000_000),
    _number("user_calls", "requests of a user within a minute", 1, 1_000_000),
    _number("session_at_once", "requests of a session at once", 1, 1_000),
    _number("user_at_once", "requests of a user at once", 1, 10_000),
    _number("session_waiting", "calls of a session that wait for others", 0, 10_000),
    _number("user_waiting", "calls of a user that wait for others", 0, 100_000),
    _number("user_megabytes", "most that a user may send within a minute", 1, 100_000),
    _number("session_hours", "hours of a session", 1, 720),
)
