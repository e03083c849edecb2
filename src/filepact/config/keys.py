"""The keys of a person's settings: for each its default, what it is for, and which values it takes.

The template of the file, its JSON schema, the reference and the check of what a person has written all come from here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from filepact.config.problems import refusal
from filepact.extension import SettingInfo, extensions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "KEYS",
    "SWITCH",
    "TEXT",
    "TEXTS",
    "all_keys",
    "between",
    "json_schema",
    "one_of",
    "read_table",
    "template",
]


def read_table(
    found: Mapping[str, Any],
    table: str,
    text: str,
    name: str,
    keys: Iterable[SettingInfo] | None = None,
) -> dict[str, Any]:
    """A table of a settings file, whose values are those that its keys take; lists as tuples, of no table nothing.

    Args:
        found: The file's keys, as the TOML reader gives them.
        table: Its name.
        text: What the file holds.
        name: How the file is called in messages.
        keys: All that are known; None for the core's own.

    Raises:
        InvalidParamsError: It is no table, or a key or a value in it is not one that is known.
    """
    chosen = found.get(table, {})
    if not isinstance(chosen, dict):
        raise refusal(text, name, (table,), "has to be a table")
    known = {key.name: key for key in (KEYS if keys is None else keys) if key.table == table}
    for key, value in chosen.items():
        if key not in known:
            said = f"there is no such key; known are {', '.join(known)}"
            raise refusal(text, name, (table, key), said)
        if not _allowed(value, known[key].allows):
            said = known[key].form or _form(known[key].allows)
            raise refusal(text, name, (table, key), f"has to be {said}")
    return {
        key: tuple(value) if isinstance(value, list) else value for key, value in chosen.items()
    }


def _allowed(value: object, schema: Mapping[str, Any]) -> bool:
    """Whether a value is as a schema says, as far as the schemas of settings go."""
    if "enum" in schema:
        return any(type(value) is type(one) and value == one for one in schema["enum"])
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if not isinstance(value, tuple(kind for name in kinds for kind in _KINDS[name])) or (
        isinstance(value, bool) and "boolean" not in kinds
    ):
        return not kinds
    if isinstance(value, str):
        return len(value) >= schema.get("minLength", 0) and bool(
            re.search(schema.get("pattern", ""), value)
        )
    if isinstance(value, list):
        first = zip(value, schema.get("prefixItems", ()), strict=False)
        return (
            len(value) >= schema.get("minItems", 0)
            and all(_allowed(one, schema.get("items", {})) for one in value)
            and all(_allowed(one, {"type": "string", **other}) for one, other in first)
        )
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return True


def _form(schema: Mapping[str, Any]) -> str:
    """The values that a schema allows, as the end of a sentence."""
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}, in quotes"
    if schema["type"] in ("integer", "number"):
        number = "a whole number" if schema["type"] == "integer" else "a number"
        return f"{number} from {schema['minimum']:g} to {schema['maximum']:g}"
    text = "a text, and not empty" if "minLength" in schema else "a text"
    return {"boolean": "true or false", "array": "a list of texts"}.get(schema["type"], text)


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
}


def between(least: float, most: float, kind: str = "integer") -> dict[str, Any]:
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
        "guard",
        "landlock",
        '"auto"',
        "whether the kernel keeps servers inside as well",
        one_of("auto", "off", "required"),
    ),
    SettingInfo(
        "guard",
        "hard_links",
        '"keep"',
        "whether a file of several names stays one file",
        one_of("keep", "replace"),
    ),
    SettingInfo(
        "guard",
        "dependency_versions",
        "false",
        "do not ask about another version in a manifest",
        SWITCH,
    ),
    SettingInfo(
        "mcp",
        "page",
        "",
        "bytes of one answer; left out, what each program takes",
        between(2_000, 1_000_000),
        "40000",
    ),
    SettingInfo("mcp", "timeout", "20", "seconds of one call", between(1, 3_600, "number")),
    SettingInfo(
        "mcp",
        "elicitation",
        '"off"',
        "how you are asked in your chat about what waits",
        one_of("off", "form", "url", "both"),
    ),
    SettingInfo(
        "mcp",
        "patience",
        "50",
        "seconds that a call waits for what you say there",
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
        "hooks",
        "unapproved",
        '"tell"',
        "what becomes of what a call changed without approval",
        one_of("tell", "propose"),
    ),
    SettingInfo(
        "recording",
        "quiet",
        "1",
        "seconds of rest that end an operation of `guard`",
        between(0, 3_600, "number"),
    ),
    SettingInfo(
        "recording",
        "longest",
        "30",
        "seconds after which it ends all the same",
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
        "audit",
        "heads",
        "",
        "where signed heads are kept as well, out of agents' reach",
        {
            "type": ["string", "array"],
            "pattern": "^(git:)?/",
            "items": {"type": "string"},
            "prefixItems": [{"pattern": "^/"}],
            "minItems": 1,
        },
        '"/var/log/filepact-heads"',
        "an absolute path, git: and a path, or a list of words that begins with the path of a program",
    ),
    SettingInfo(
        "audit",
        "syslog",
        "",
        "the socket of a system log that is told them as well",
        {"type": "string", "pattern": "^/"},
        '"/dev/log"',
        "an absolute path",
    ),
    SettingInfo(
        "audit",
        "telemetry",
        "",
        "where OpenTelemetry's spans and counts go",
        {"type": "string", "pattern": "^(/|provider$)"},
        '"/var/log/filepact-spans.jsonl"',
        "provider, or an absolute path",
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
