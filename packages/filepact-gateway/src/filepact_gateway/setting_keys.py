"""The keys of the gateway's settings, for the template of the settings file and its JSON schema."""

from __future__ import annotations

from typing import Final

from filepact.config.keys import TEXT, TEXTS, between
from filepact.extension import SettingInfo
from filepact_gateway.settings import ALGORITHMS, TOKEN_TYPES

__all__ = ["KEYS"]

KEYS: Final = (
    SettingInfo(
        *("serve", "hosts", "[]", "names by which clients reach the gateway"),
        TEXTS,
    ),
    SettingInfo(
        *("serve", "origins", "[]", "web pages that may ask it"),
        {"type": "array", "items": {"type": "string", "pattern": "^https?://"}},
    ),
    SettingInfo("serve", "workers", "1", "its processes", between(1, 64)),
    SettingInfo("serve", "megabytes", "8", "most that a request may have", between(1, 64)),
    SettingInfo("serve", "threads", "16", "calls at once of a worker", between(1, 256)),
    SettingInfo(
        "serve", "drain", "30", "seconds for calls when it ends", between(1, 3_600, "number")
    ),
    SettingInfo(
        *("serve", "patience", "30", "seconds that a client may take"),
        between(1, 3_600, "number"),
    ),
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
    SettingInfo(
        *("serve", "leeway", "30", "seconds by which clocks may differ"),
        between(0, 300, "number"),
    ),
    SettingInfo("serve", "user_claim", '"sub"', "the claim that names the user", TEXT),
    SettingInfo("serve", "scopes", "[]", "what every token has to allow", TEXTS),
    SettingInfo(
        *("serve", "tokens", "", "a file with tokens of its own"),
        {"type": "string", "pattern": "^/"},
        '"/etc/filepact/tokens"',
    ),
    SettingInfo("serve", "proxies", "[]", "whose X-Forwarded-For is believed", TEXTS),
    SettingInfo(
        *("serve", "session_calls", "600", "requests of a session within a minute"),
        between(1, 1_000_000),
    ),
    SettingInfo(
        *("serve", "user_calls", "1200", "requests of a user within a minute"),
        between(1, 1_000_000),
    ),
    SettingInfo(
        "serve", "session_at_once", "8", "requests of a session at once", between(1, 1_000)
    ),
    SettingInfo("serve", "user_at_once", "32", "requests of a user at once", between(1, 10_000)),
    SettingInfo(
        *("serve", "session_waiting", "128", "calls of a session that wait for others"),
        between(0, 10_000),
    ),
    SettingInfo(
        *("serve", "user_waiting", "1000", "calls of a user that wait for others"),
        between(0, 100_000),
    ),
    SettingInfo(
        *("serve", "user_megabytes", "64", "most that a user may send within a minute"),
        between(1, 100_000),
    ),
    SettingInfo("serve", "session_hours", "24", "hours of a session", between(1, 720, "number")),
)
