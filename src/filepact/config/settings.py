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
    "other_keys",
    "parse_settings",
    "read_others",
]

_TABLES: Final = ("guard", "mcp", "hooks", "recording", "proposals", "audit")
OTHER_KEYS: Final[dict[Layer, tuple[str, ...]]] = {
    "administrator": ("audit",),
    "person": ("encodings", *_TABLES),
    "project": (),
}
"""What a file of each layer may hold besides rules and the tables of extensions."""


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
    tables: dict[str, Any] = {}
    if not found.keys().isdisjoint(_TABLES):
        from filepact.config.keys import read_table  # noqa: PLC0415 - most files have none of these

        tables = {
            table: read_table(found, table, text, name) for table in _TABLES if table in found
        }
    limits = tables.get("proposals", {})
    addresses = (one for one in extended.values() if isinstance(one, StoreOptions) and one.url)
    return Settings(
        _encodings(found["encodings"], text, name) if "encodings" in found else (),
        guard=GuardSettings(**tables.get("guard", {})),
        server=ServerSettings(**tables.get("mcp", {})),
        hooks=HookSettings(**tables.get("hooks", {})),
        recording=RecordingSettings(**tables.get("recording", {})),
        notify=limits.pop("notify", False),
        limits=ProposalLimits(**limits),
        audit=AuditOptions(**tables["audit"]) if "audit" in tables else None,
        store=next(addresses, None),
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
