"""The settings file as a person begins it: every key with its default and what it is for; and its JSON schema."""

from __future__ import annotations

from typing import Any, Final

from filepact.config.serving import ALGORITHMS, TOKEN_TYPES
from filepact.values import dataclass

__all__ = ["KEYS", "SettingInfo", "json_schema", "template"]


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """A key of a table.

    Attributes:
        default: As TOML; empty for a key that is left out.
        example: As TOML, for a key without a default.
        about: What it is for.
        allows: JSON schema of its values.
    """

    table: str
    name: str
    default: str
    about: str
    allows: dict[str, Any]
    example: str = ""


def _between(least: int, most: int, kind: str = "integer") -> dict[str, Any]:
    return {"type": kind, "minimum": least, "maximum": most}


def _one_of(*words: object) -> dict[str, Any]:
    return {"enum": list(words)}


_SWITCH: Final[dict[str, Any]] = {"type": "boolean"}
_TEXT: Final[dict[str, Any]] = {"type": "string", "minLength": 1}
_TEXTS: Final[dict[str, Any]] = {"type": "array", "items": {"type": "string"}}

KEYS: Final = (
    SettingInfo(
        "guard", "mounts", "false", "use file systems that are mounted below a root", _SWITCH
    ),
    SettingInfo(
        "guard", "content", "true", "look through files for private keys and tokens", _SWITCH
    ),
    SettingInfo(
        *("guard", "landlock", '"auto"', "whether the kernel keeps servers inside as well"),
        _one_of("auto", "off", "required"),
    ),
    SettingInfo(
        *("guard", "hard_links", '"keep"', "whether a file of several names stays one file"),
        _one_of("keep", "replace"),
    ),
    SettingInfo(
        *("mcp", "page", "", "bytes of one answer; left out, what each program takes"),
        _between(2_000, 1_000_000),
        "40000",
    ),
    SettingInfo("mcp", "timeout", "20", "seconds of one call", _between(1, 3_600, "number")),
    SettingInfo(
        *("mcp", "elicitation", '"off"', "how you are asked in your chat about what waits"),
        _one_of("off", "form", "url", "both"),
    ),
    SettingInfo(
        *("mcp", "patience", "50", "seconds that a call waits for what you say there"),
        _between(1, 3_600, "number"),
    ),
    SettingInfo(
        "mcp", "app", "true", "show the review within your chat, where it shows apps", _SWITCH
    ),
    SettingInfo(
        "mcp", "shared_index", "true", "keep the search index for other servers and starts", _SWITCH
    ),
    SettingInfo("acp", "answer_own", "true", "answer for the proxy's own reading tools", _SWITCH),
    SettingInfo(
        "hooks", "idle", "600", "seconds until their process ends", _between(1, 86_400, "number")
    ),
    SettingInfo(
        *("hooks", "unapproved", '"tell"', "what becomes of what a call changed without approval"),
        _one_of("tell", "propose"),
    ),
    SettingInfo(
        *("recording", "quiet", "1", "seconds of rest that end an operation of `guard`"),
        _between(0, 3_600, "number"),
    ),
    SettingInfo(
        *("recording", "longest", "30", "seconds after which it ends all the same"),
        _between(1, 86_400, "number"),
    ),
    SettingInfo(
        "recording", "files", "200000", "most files that it knows", _between(1_000, 2_000_000)
    ),
    SettingInfo("recording", "megabytes", "1000", "most that it keeps", _between(1, 1_000_000)),
    SettingInfo(
        *("run", "builds", '"move"', "what becomes of node_modules and the like after `run`"),
        _one_of("move", "record", "discard"),
    ),
    SettingInfo(
        *("run", "commit", '"quiet"', "when what `run` may commit is committed"),
        _one_of("quiet", "end"),
    ),
    SettingInfo(
        *("run", "writable", "[]", "folders that programs behind `run` change as they are"),
        {"type": "array", "items": {"type": "string", "pattern": "^(/|~/)"}},
    ),
    SettingInfo(
        *("serve", "hosts", "[]", "names by which clients reach the gateway"),
        _TEXTS,
    ),
    SettingInfo(
        *("serve", "origins", "[]", "web pages that may ask it"),
        {"type": "array", "items": {"type": "string", "pattern": "^https?://"}},
    ),
    SettingInfo("serve", "workers", "1", "its processes", _between(1, 64)),
    SettingInfo("serve", "megabytes", "8", "most that a request may have", _between(1, 64)),
    SettingInfo("serve", "threads", "16", "calls at once of a worker", _between(1, 256)),
    SettingInfo(
        "serve", "drain", "30", "seconds for calls when it ends", _between(1, 3_600, "number")
    ),
    SettingInfo(
        *("serve", "patience", "30", "seconds that a client may take"),
        _between(1, 3_600, "number"),
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
        _between(0, 300, "number"),
    ),
    SettingInfo("serve", "user_claim", '"sub"', "the claim that names the user", _TEXT),
    SettingInfo("serve", "scopes", "[]", "what every token has to allow", _TEXTS),
    SettingInfo(
        *("serve", "tokens", "", "a file with tokens of its own"),
        {"type": "string", "pattern": "^/"},
        '"/etc/filepact/tokens"',
    ),
    SettingInfo("serve", "proxies", "[]", "whose X-Forwarded-For is believed", _TEXTS),
    SettingInfo(
        *("serve", "session_calls", "600", "requests of a session within a minute"),
        _between(1, 1_000_000),
    ),
    SettingInfo(
        *("serve", "user_calls", "1200", "requests of a user within a minute"),
        _between(1, 1_000_000),
    ),
    SettingInfo(
        "serve", "session_at_once", "8", "requests of a session at once", _between(1, 1_000)
    ),
    SettingInfo("serve", "user_at_once", "32", "requests of a user at once", _between(1, 10_000)),
    SettingInfo(
        *("serve", "user_megabytes", "64", "most that a user may send within a minute"),
        _between(1, 100_000),
    ),
    SettingInfo("serve", "session_hours", "24", "hours of a session", _between(1, 720, "number")),
    SettingInfo("proposals", "days", "14", "days that a change waits for you", _between(1, 3_650)),
    SettingInfo("proposals", "count", "100", "most that wait in one root", _between(1, 100_000)),
    SettingInfo("proposals", "megabytes", "100", "most that they hold", _between(1, 1_000_000)),
    SettingInfo("proposals", "notify", "false", "tell the desktop that something waits", _SWITCH),
    SettingInfo("audit", "enabled", "true", "write down every call", _SWITCH),
    SettingInfo("audit", "sync", "false", "on the disk before the effect", _SWITCH),
    SettingInfo("audit", "days", "365", "days that it is kept", _between(1, 36_500)),
    SettingInfo("audit", "megabytes", "1000", "most that it takes", _between(1, 1_000_000)),
    SettingInfo(
        *("audit", "heads", "", "where signed heads are kept as well, out of agents' reach"),
        {"type": ["string", "array"], "pattern": "^(git:)?/", "items": {"type": "string"}},
        '"/var/log/filepact-heads"',
    ),
    SettingInfo(
        *("audit", "syslog", "", "the socket of a system log that is told them as well"),
        {"type": "string", "pattern": "^/"},
        '"/dev/log"',
    ),
    SettingInfo(
        *("audit", "telemetry", "", "where OpenTelemetry's spans and counts go"),
        {"type": "string", "pattern": "^(/|provider$)"},
        '"/var/log/filepact-spans.jsonl"',
    ),
    SettingInfo(
        *("store", "url", "", "a PostgreSQL database for the journal, without a password"),
        {"type": "string", "pattern": "^postgres(ql)?://"},
        '"postgresql://filepact@db.example:5432/filepact"',
    ),
    SettingInfo(
        *("store", "workspace", '""', "the journal's name there; empty, one of its own"),
        {"type": "string"},
    ),
    SettingInfo("store", "schema", '"filepact"', "the schema with its tables", {"type": "string"}),
    SettingInfo(
        *("diagnostics", "mode", '"auto"', "when language servers are used"),
        _one_of("auto", "always", "off"),
    ),
    SettingInfo(
        "diagnostics", "budget", "2", "seconds that an answer waits for them", {"type": "number"}
    ),
    SettingInfo(
        *("diagnostics", "new_errors", '"allow"', "what becomes of a change that adds errors"),
        _one_of("allow", "ask", "deny"),
    ),
    SettingInfo("diagnostics", "idle", "600", "seconds until one is stopped", {"type": "number"}),
    SettingInfo("diagnostics", "memory", "2048", "MiB that one may take", {"type": "integer"}),
    SettingInfo(
        *("diagnostics", "receipts", '"errors"', "the least that a receipt tells"),
        _one_of("errors", "warnings"),
    ),
)

_HEAD: Final = """\
# filepact's settings, for you and all of your projects. Every line is what counts without it:
# take away the # of those that you change. `filepact config show` says what is in force,
# `filepact policy lint` what is wrong.

# Rules about files: deny goes before ask, and ask before allow. Patterns as in .gitignore.
#
# [[deny]]
# paths = ["/private/**"]
# why = "these are mine"
#
# [[ask]]
# paths = ["*.sql"]
# actions = ["change"]
# why = "the database is shared"
#
# [encodings]
# "legacy/**/*.txt" = "cp1252"
"""


def template() -> str:
    """A settings file in which every key stands as a comment, with its default."""
    lines = [_HEAD.rstrip("\n")]
    table = ""
    for key in KEYS:
        if key.table != table:
            table = key.table
            lines += ["", f"# [{table}]"]
        said = f"{key.name} = {key.default or key.example}"
        lines.append(f"# {said:<34}# {key.about}")
    return "\n".join([*lines, ""])


def json_schema() -> dict[str, Any]:
    """The JSON schema of a person's file, for editors that complete and check TOML."""
    texts = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    rule = {
        "type": "object",
        "required": ["paths"],
        "additionalProperties": False,
        "properties": {
            "paths": texts,
            "actions": texts,
            "agents": texts,
            "why": {"type": "string"},
            "name": {"type": "string"},
            "lifts": texts,
        },
    }
    tables: dict[str, Any] = {}
    for key in KEYS:
        table = tables.setdefault(
            key.table, {"type": "object", "additionalProperties": False, "properties": {}}
        )
        told = {"description": key.about, **key.allows}
        table["properties"][key.name] = told
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "filepact.toml",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            **{verdict: {"type": "array", "items": rule} for verdict in ("deny", "ask", "allow")},
            "default": {"type": "object"},
            "expect": {"type": "array", "items": {"type": "object"}},
            "encodings": {"type": "object", "additionalProperties": {"type": "string"}},
            "servers": {"type": "object"},
            "realms": {"type": "object"},
            "access": {"type": "array", "items": {"type": "object"}},
            **tables,
        },
    }
