"""Reads the person's settings: from the text of ``filepact.toml`` to a value.

Strict: what is not known is refused, so that a mistyped key is not a setting that silently does
nothing.  Every refusal names the file, the line and the key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.config.layers import RuleSet, SettingsSource
from filepact.config.problems import ProblemList, no_toml, refusal, refuse
from filepact.config.rules import RULE_KEYS, read_rules
from filepact.domain.deadline import DEFAULT_SECONDS
from filepact.domain.operation import AuditOptions, ProposalLimits, StoreOptions
from filepact.errors import SearchFailedError
from filepact.text.detect_encoding import find_charset
from filepact.text.glob import Glob
from filepact.values import dataclass, field, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.domain.policy import Layer

__all__ = [
    "OTHER_KEYS",
    "GuardSettings",
    "HookSettings",
    "RecordingSettings",
    "ServerSettings",
    "Settings",
    "known_table",
    "other_keys",
    "parse_settings",
    "read_others",
]

OTHER_KEYS: Final[dict[Layer, tuple[str, ...]]] = {
    "administrator": ("audit",),
    "person": (
        "encodings",
        "guard",
        "mcp",
        "hooks",
        "recording",
        "proposals",
        "audit",
    ),
    "project": (),
}
"""What a file of each layer may hold besides rules and the tables of extensions."""

_GUARD: Final[dict[str, tuple[object, ...]]] = {
    "mounts": (True, False),
    "content": (True, False),
    "landlock": ("auto", "off", "required"),
    "hard_links": ("keep", "replace"),
    "dependency_versions": (True, False),
}

_SERVING: Final[dict[str, tuple[int, int, tuple[type, ...], str]]] = {
    "page": (2_000, 1_000_000, (int,), "whole number"),
    "timeout": (1, 3_600, (int, float), "number of seconds"),
    "patience": (1, 3_600, (int, float), "number of seconds"),
}
_ELICITATION: Final = ("off", "form", "url", "both")
_SWITCHES: Final = ("app", "shared_index")
_HOOKS: Final[dict[str, tuple[int, int, tuple[type, ...], str]]] = {
    "idle": (1, 86_400, (int, float), "number of seconds"),
}
_RECORDING: Final[dict[str, tuple[int, int, tuple[type, ...], str]]] = {
    "quiet": (0, 3_600, (int, float), "number of seconds"),
    "longest": (1, 86_400, (int, float), "number of seconds"),
    "files": (1_000, 2_000_000, (int,), "whole number"),
    "megabytes": (1, 1_000_000, (int,), "whole number"),
}
_PROPOSALS: Final[dict[str, tuple[int, int, tuple[type, ...], str]]] = {
    "days": (1, 3_650, (int,), "whole number"),
    "count": (1, 100_000, (int,), "whole number"),
    "megabytes": (1, 1_000_000, (int,), "whole number"),
}
_AUDIT: Final[dict[str, tuple[int, int, tuple[type, ...], str]]] = {
    "days": (1, 36_500, (int,), "whole number"),
    "megabytes": (1, 1_000_000, (int,), "whole number"),
}


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """The guard's settings.

    Attributes:
        mounts: Whether other file systems that are mounted below a root may be used.
        content: Whether files are looked through for private keys, and hits for tokens.
        landlock: Whether a server asks the kernel to keep it inside as well.
        hard_links: Whether a file with several names goes on being one file when it is changed.
        dependency_versions: Whether nobody is asked where a manifest names another plain version of what is in it.
    """

    mounts: bool = False
    content: bool = True
    landlock: Literal["auto", "off", "required"] = "auto"
    hard_links: Literal["keep", "replace"] = "keep"
    dependency_versions: bool = False


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The MCP server's settings.

    Attributes:
        page: What one answer may take, in bytes as UTF-8; None for what is known of each program.
        timeout: Seconds that one call may take.
        elicitation: How a person may be asked in their chat about what waits.
        patience: Seconds that a call waits for what they say there.
        app: Whether their chat is given the frame of the review, where it shows such.
        shared_index: Whether the search index is left to other servers in the state folder.
    """

    page: int | None = None
    timeout: float = DEFAULT_SECONDS
    elicitation: Literal["off", "form", "url", "both"] = "off"
    patience: float = 50.0
    app: bool = True
    shared_index: bool = True


@dataclass(frozen=True, slots=True)
class HookSettings:
    """The settings of hooks.

    Attributes:
        idle: Seconds after which the process that answers them ends when nothing was asked.
        unapproved: What becomes of a change that rules want a person to be asked about, and that a
            command has made without: they are told, or it is taken back and waits for them.
    """

    idle: float = 600.0
    unapproved: Literal["tell", "propose"] = "tell"


@dataclass(frozen=True, slots=True)
class RecordingSettings:
    """The settings of `filepact guard`.

    Attributes:
        quiet: Seconds without a change after which what was changed is one operation.
        longest: Seconds after which it is one although changes go on.
        files: Most files that are known.
        megabytes: Most that the kept states of files take on the disk, and as much in the journal.
    """

    quiet: float = 1.0
    longest: float = 30.0
    files: int = 200_000
    megabytes: int = 1_000


@dataclass(frozen=True, slots=True)
class Settings:
    """A person's settings.

    Attributes:
        encodings: Globs with the encoding of the files that match, by Python's name, in the order
            of the file; of several that match the last one counts.
        rules: Rules about files.
        guard: How far the guard goes.
        server: How agents' programs are served.
        hooks: How agents' own tools are watched over.
        recording: How a guard records.
        limits: How much may wait for this person, and for how long.
        notify: Whether the desktop is told that something new waits, where a window or a command watches.
        audit: What is recorded of every call; None where nothing is said about it.
        store: Where the journal is when it is not in the state folder; None for there.
        extensions: What extensions have made of their tables, by the extension's name.
    """

    encodings: tuple[tuple[Glob, str], ...] = ()
    rules: RuleSet = field(default_factory=RuleSet)
    guard: GuardSettings = GuardSettings()
    server: ServerSettings = ServerSettings()
    hooks: HookSettings = HookSettings()
    recording: RecordingSettings = RecordingSettings()
    limits: ProposalLimits = field(default_factory=ProposalLimits)
    notify: bool = False
    audit: AuditOptions | None = None
    store: StoreOptions | None = None
    extensions: Mapping[str, Any] = field(default_factory=dict)


def parse_settings(text: str, *, name: str, source: SettingsSource | None = None) -> Settings:
    """Read the text of a settings file.

    Args:
        text: What the file holds.
        name: How the file is called in messages.
        source: What its rules need to know: the home folder, and what goes before them.

    Raises:
        InvalidParamsError: It is not TOML, or a key or a value in it is not one that is known.
    """
    import tomllib  # noqa: PLC0415 - not before there is a file

    found: dict[str, Any] = {}
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        refuse([no_toml(text, name, error)])
    source = source or SettingsSource("person", name)
    settings = read_others(found, text, name, source.layer)
    problems = ProblemList(text, name)
    rules = read_rules(found, source, problems)
    refuse(problems.found)
    return replace(settings, rules=rules)


def read_others(found: Mapping[str, Any], text: str, name: str, layer: Layer) -> Settings:
    """The settings but for the rules; errors as `parse_settings`.

    Args:
        found: The file's keys, as the TOML reader gives them.
        text: What the file holds.
        name: How it is called in messages.
        layer: Who wrote it.
    """
    extended = _extended(found, text, name, layer)
    encodings: tuple[tuple[Glob, str], ...] = ()
    guard, serving = GuardSettings(), ServerSettings()
    hooks = HookSettings()
    recording = RecordingSettings()
    if "encodings" in found:
        encodings = _encodings(found["encodings"], text, name)
    if "guard" in found:
        guard = _guarding(found["guard"], text, name)
    if "mcp" in found:
        serving = _serving(found["mcp"], text, name)
    if "hooks" in found:
        hooks = _hooking(found["hooks"], text, name)
    if "recording" in found:
        chosen = _numbers(found["recording"], "recording", _RECORDING, text, name)
        recording = RecordingSettings(**chosen)
    limits, notify = _proposing(found.get("proposals", {}), text, name)
    audit = _auditing(found["audit"], text, name) if "audit" in found else None
    addresses = (one for one in extended.values() if isinstance(one, StoreOptions) and one.url)
    store = next(addresses, None)
    return Settings(
        encodings,
        guard=guard,
        server=serving,
        hooks=hooks,
        recording=recording,
        limits=limits,
        notify=notify,
        audit=audit,
        store=store,
        extensions=extended,
    )


def other_keys(layer: Layer) -> tuple[str, ...]:
    """As `OTHER_KEYS`, with the tables that extensions have in a file of that layer."""
    from filepact.extension import extensions  # noqa: PLC0415 - most files have nothing of theirs

    return (*OTHER_KEYS[layer], *(table for one in extensions() for table in one.tables_of(layer)))


def _extended(found: Mapping[str, Any], text: str, name: str, layer: Layer) -> dict[str, Any]:
    """The settings of extensions; nobody looks for extensions where all tables are the core's own."""
    if found.keys() <= {*OTHER_KEYS[layer], *RULE_KEYS[layer]}:
        return {}
    from filepact.extension import extensions_of  # noqa: PLC0415 - as above

    more = found.keys() - {*OTHER_KEYS[layer], *RULE_KEYS[layer]}
    wanted = extensions_of(more)
    if not more <= {table for one in wanted for table in one.tables_of(layer)}:
        keys = (*other_keys(layer), *RULE_KEYS[layer])
        key = next(key for key in found if key not in keys)
        known = ", ".join(keys)
        raise refusal(text, name, (key,), f"there is no such setting; known are {known}")
    return {one.name: one.read_settings(found, text, name) for one in wanted}


def _guarding(table: Any, text: str, name: str) -> GuardSettings:
    for key, value in known_table(table, ("guard",), tuple(_GUARD), text, name).items():
        if type(value) is not type(_GUARD[key][0]) or value not in _GUARD[key]:
            known = ", ".join(str(each).lower() for each in _GUARD[key])
            raise refusal(text, name, ("guard", key), f"has to be one of {known}")
    return GuardSettings(**table)


def _serving(table: Any, text: str, name: str) -> ServerSettings:
    chosen = known_table(table, ("mcp",), (*_SERVING, "elicitation", *_SWITCHES), text, name)
    elicitation = chosen.get("elicitation", "off")
    if elicitation not in _ELICITATION:
        known = ", ".join(_ELICITATION)
        raise refusal(text, name, ("mcp", "elicitation"), f"has to be one of {known}")
    switches = {key: chosen[key] for key in _SWITCHES if key in chosen}
    for key, value in switches.items():
        if type(value) is not bool:
            raise refusal(text, name, ("mcp", key), "has to be true or false")
    numbers = {key: value for key, value in chosen.items() if key in _SERVING}
    numbers = _numbers(numbers, "mcp", _SERVING, text, name)
    return ServerSettings(**numbers, elicitation=elicitation, **switches)


def _hooking(table: Any, text: str, name: str) -> HookSettings:
    chosen = known_table(table, ("hooks",), (*_HOOKS, "unapproved"), text, name)
    if chosen.get("unapproved", "tell") not in ("tell", "propose"):
        raise refusal(text, name, ("hooks", "unapproved"), "has to be one of tell, propose")
    numbers = {key: value for key, value in chosen.items() if key in _HOOKS}
    return HookSettings(**{**chosen, **_numbers(numbers, "hooks", _HOOKS, text, name)})


def _numbers(
    table: Any,
    called: str,
    known: Mapping[str, tuple[int, int, tuple[type, ...], str]],
    text: str,
    name: str,
) -> dict[str, Any]:
    """A table of numbers within limits."""
    chosen = known_table(table, (called,), tuple(known), text, name)
    for key, value in chosen.items():
        least, most, kinds, unit = known[key]
        if type(value) not in kinds or not least <= value <= most:
            problem = f"has to be a {unit} from {least} to {most}"
            raise refusal(text, name, (called, key), problem)
    return chosen


def _proposing(table: Any, text: str, name: str) -> tuple[ProposalLimits, bool]:
    """The limits of waiting proposals, and whether the desktop is told of them."""
    chosen = known_table(table, ("proposals",), (*_PROPOSALS, "notify"), text, name)
    notify = chosen.get("notify", False)
    if type(notify) is not bool:
        raise refusal(text, name, ("proposals", "notify"), "has to be one of true, false")
    limits = {key: value for key, value in chosen.items() if key != "notify"}
    return ProposalLimits(**_numbers(limits, "proposals", _PROPOSALS, text, name)), notify


def _auditing(table: Any, text: str, name: str) -> AuditOptions:
    switches, told = ("enabled", "sync"), ("heads", "syslog", "telemetry")
    chosen = known_table(table, ("audit",), (*switches, *_AUDIT, *told), text, name)
    for key in switches:
        if type(chosen.get(key, True)) is not bool:
            raise refusal(text, name, ("audit", key), "has to be one of true, false")
    for key in told:
        path, also = chosen.get(key, "/"), ""
        if key == "telemetry":
            also = "provider, or "
            path = "/" if path == "provider" else path
        elif key == "heads":
            also = "a list of words that begins with the path of a program, git: and a path, or "
            if isinstance(path, list):
                chosen[key] = tuple(path)
                path = path[0] if path and all(isinstance(one, str) for one in path) else ""
            path = path.removeprefix("git:") if isinstance(path, str) else ""
        if not (isinstance(path, str) and path.startswith("/")):
            raise refusal(text, name, ("audit", key), f"has to be {also}an absolute path")
    _numbers({key: chosen[key] for key in _AUDIT if key in chosen}, "audit", _AUDIT, text, name)
    return AuditOptions(**chosen)


def known_table(
    table: Any, path: tuple[str], known: tuple[str, ...], text: str, name: str
) -> dict[str, Any]:
    """A table of a file that holds nothing but known keys.

    Raises:
        InvalidParamsError: It is no table, or has another key.
    """
    if not isinstance(table, dict):
        raise refusal(text, name, path, "has to be a table")
    for key in table:
        if key not in known:
            said = f"there is no such key; known are {', '.join(known)}"
            raise refusal(text, name, (*path, key), said)
    return table


def _encodings(table: Any, text: str, name: str) -> tuple[tuple[Glob, str], ...]:
    if not isinstance(table, dict):
        raise refusal(text, name, ("encodings",), "has to be a table of globs")
    chosen: list[tuple[Glob, str]] = []
    for pattern, value in table.items():
        path = ("encodings", pattern)
        if isinstance(value, dict):
            raise refusal(text, name, path, "put the glob in quotes, its dots are not for TOML")
        if not isinstance(value, str):
            raise refusal(text, name, path, "has to be the name of an encoding, in quotes")
        codec = find_charset(value)
        if codec is None:
            raise refusal(
                text, name, path, f"{value!r} is not the name of an encoding that can be kept"
            )
        try:
            glob = Glob.parse(pattern, braces=True)
        except SearchFailedError as error:
            raise refusal(text, name, path, error.message) from None
        chosen.append((glob, codec))
    return tuple(chosen)
