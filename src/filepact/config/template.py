"""The settings file as a person begins it: every key with its default and what it is for; and its JSON schema."""

from __future__ import annotations

from typing import Any, Final

from filepact.extension import SettingInfo, extensions

__all__ = [
    "KEYS",
    "SWITCH",
    "TEXT",
    "TEXTS",
    "all_keys",
    "between",
    "json_schema",
    "one_of",
    "template",
]


def between(least: int, most: int, kind: str = "integer") -> dict[str, Any]:
    """JSON schema of a number within limits."""
    return {"type": kind, "minimum": least, "maximum": most}


def one_of(*words: object) -> dict[str, Any]:
    """JSON schema of a word out of some."""
    return {"enum": list(words)}


SWITCH: Final[dict[str, Any]] = {"type": "boolean"}
TEXT: Final[dict[str, Any]] = {"type": "string", "minLength": 1}
TEXTS: Final[dict[str, Any]] = {"type": "array", "items": {"type": "string"}}

KEYS: Final = (
    SettingInfo(
        "guard", "mounts", "false", "use file systems that are mounted below a root", SWITCH
    ),
    SettingInfo(
        "guard", "content", "true", "look through files for private keys and tokens", SWITCH
    ),
    SettingInfo(
        *("guard", "landlock", '"auto"', "whether the kernel keeps servers inside as well"),
        one_of("auto", "off", "required"),
    ),
    SettingInfo(
        *("guard", "hard_links", '"keep"', "whether a file of several names stays one file"),
        one_of("keep", "replace"),
    ),
    SettingInfo(
        *(
            "guard",
            "dependency_versions",
            "false",
            "do not ask about another version in a manifest",
        ),
        SWITCH,
    ),
    SettingInfo(
        *("mcp", "page", "", "bytes of one answer; left out, what each program takes"),
        between(2_000, 1_000_000),
        "40000",
    ),
    SettingInfo("mcp", "timeout", "20", "seconds of one call", between(1, 3_600, "number")),
    SettingInfo(
        *("mcp", "elicitation", '"off"', "how you are asked in your chat about what waits"),
        one_of("off", "form", "url", "both"),
    ),
    SettingInfo(
        *("mcp", "patience", "50", "seconds that a call waits for what you say there"),
        between(1, 3_600, "number"),
    ),
    SettingInfo(
        "mcp", "app", "true", "show the review within your chat, where it shows apps", SWITCH
    ),
    SettingInfo(
        "mcp", "shared_index", "true", "keep the search index for other servers and starts", SWITCH
    ),
    SettingInfo(
        "hooks", "idle", "600", "seconds until their process ends", between(1, 86_400, "number")
    ),
    SettingInfo(
        *("hooks", "unapproved", '"tell"', "what becomes of what a call changed without approval"),
        one_of("tell", "propose"),
    ),
    SettingInfo(
        *("recording", "quiet", "1", "seconds of rest that end an operation of `guard`"),
        between(0, 3_600, "number"),
    ),
    SettingInfo(
        *("recording", "longest", "30", "seconds after which it ends all the same"),
        between(1, 86_400, "number"),
    ),
    SettingInfo(
        "recording", "files", "200000", "most files that it knows", between(1_000, 2_000_000)
    ),
    SettingInfo("recording", "megabytes", "1000", "most that it keeps", between(1, 1_000_000)),
    SettingInfo("proposals", "days", "14", "days that a change waits for you", between(1, 3_650)),
    SettingInfo("proposals", "count", "100", "most that wait in one root", between(1, 100_000)),
    SettingInfo("proposals", "megabytes", "100", "most that they hold", between(1, 1_000_000)),
    SettingInfo("proposals", "notify", "false", "tell the desktop that something waits", SWITCH),
    SettingInfo("audit", "enabled", "true", "write down every call", SWITCH),
    SettingInfo("audit", "sync", "false", "on the disk before the effect", SWITCH),
    SettingInfo("audit", "days", "365", "days that it is kept", between(1, 36_500)),
    SettingInfo("audit", "megabytes", "1000", "most that it takes", between(1, 1_000_000)),
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


def all_keys() -> tuple[SettingInfo, ...]:
    """The keys of the core's tables, and then those of each extension."""
    return (*KEYS, *(key for one in extensions() for key in one.setting_keys()))


def template() -> str:
    """A settings file in which every key stands as a comment, with its default."""
    lines = [_HEAD.rstrip("\n")]
    table = ""
    for key in all_keys():
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
    for key in all_keys():
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
            **{table: form for one in extensions() for table, form in one.schema.items()},
            **tables,
        },
    }
