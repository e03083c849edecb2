"""The keys of the gateway's settings, for the template of the settings file and its JSON schema."""

from __future__ import annotations

from typing import Final

from filepact.config.keys import TEXT, TEXTS, between
from filepact.extension import SettingInfo
from filepact_gateway.settings import ALGORITHMS, NUMBERS, TOKEN_TYPES, GatewaySettings

__all__ = ["KEYS"]


def _number(key: str, about: str) -> SettingInfo:
    usual = getattr(GatewaySettings(), key)
    kind = "number" if isinstance(usual, float) else "integer"
    return SettingInfo("serve", key, f"{usual:g}", about, between(*NUMBERS[key], kind))


KEYS: Final = (
    SettingInfo(
        *("serve", "hosts", "[]", "names by which clients reach the gateway"),
        TEXTS,
    ),
    SettingInfo(
        *("serve", "origins", "[]", "web pages that may ask it"),
        {"type": "array", "items": {"type": "string", "pattern": "^https?://"}},
    ),
    _number("workers", "its processes"),
    _number("megabytes", "most that a request may have"),
    _number("threads", "calls at once of a worker"),
    _number("drain", "seconds for calls when it ends"),
    _number("patience", "seconds that a client may take"),
    SettingInfo(
        *("serve", "url", "", "where clients reach it; left out, where it listens"),
        {"type": "string", "pattern": "^https?://"},
        '"https://files.example.com"',
    ),
    SettingInfo(
        *("serve", "issuer", "", "whose tokens are taken"),
        {"type": "string", "pattern": "^https?://"},
        '"https://login.example.com"',
    ),
    SettingInfo(
        *("serve", "audience", "", "for whom they have to be; left out, the realm's address"),
        {"type": "string"},
        '"https://files.example.com"',
    ),
    SettingInfo(
        *("serve", "algorithms", '["RS256", "PS256", "ES256", "EdDSA"]', "how they may be signed"),
        {"type": "array", "items": {"enum": list(ALGORITHMS)}, "minItems": 1},
    ),
    SettingInfo(
        *("serve", "token_types", "[]", "what their `typ` may be; none: as the audience is"),
        {"type": "array", "items": {"enum": list(TOKEN_TYPES)}},
        '["at+jwt", "JWT"]',
    ),
    _number("leeway", "seconds by which clocks may differ"),
    SettingInfo("serve", "user_claim", '"sub"', "the claim that names the user", TEXT),
    SettingInfo("serve", "scopes", "[]", "what every token has to allow", TEXTS),
    SettingInfo(
        *("serve", "tokens", "", "a file with tokens of its own"),
        {"type": "string", "pattern": "^/"},
        '"/etc/filepact/tokens"',
    ),
    SettingInfo("serve", "proxies", "[]", "whose X-Forwarded-For is believed", TEXTS),
    _number("session_calls", "requests of a session within a minute"),
    _number("user_calls", "requests of a user within a minute"),
    _number("session_at_once", "requests of a session at once"),
    _number("user_at_once", "requests of a user at once"),
    _number("session_waiting", "calls of a session that wait for others"),
    _number("user_waiting", "calls of a user that wait for others"),
    _number("user_megabytes", "most that a user may send within a minute"),
    _number("session_hours", "hours of a session"),
)
