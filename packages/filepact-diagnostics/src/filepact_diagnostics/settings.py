"""Settings about language servers: how far they are used, and which.

Servers are programs that run with the person's rights, so only the person's and the administrator's
files may speak of them; a project's file cannot.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from filepact.config.person import settings_text
from filepact.config.problems import refusal
from filepact.errors import InvalidParamsError
from filepact.values import dataclass, field, fields, late_regex, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.config.settings import Settings
    from filepact.extension import SettingInfo
    from filepact_diagnostics.lsp.spec import ServerSpec

__all__ = [
    "NAME",
    "TABLES",
    "TRUST_FILE",
    "LanguageServerOptions",
    "LanguageServerSettings",
    "NewErrors",
    "ServerTrust",
    "Using",
    "keys",
    "options_of",
    "parse_trust",
    "read_trust",
    "read_wishes",
]

Using = Literal["auto", "off", "always"]
"""When language servers are used: those that are installed, once a change of a file that one knows
has started it; never; or waited for also while they start."""

Receipts = Literal["errors", "warnings"]
"""The least of what servers find that a receipt tells."""

NewErrors = Literal["allow", "ask", "deny"]
"""What becomes of a change that servers find new errors in."""

NAME: Final = "diagnostics"
"""The name of the extension."""

TRUST_FILE: Final = "trust.json"

TABLES: Final = ("diagnostics", "servers")
"""What a person's and an administrator's file may hold about them."""

_STEP = late_regex(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class LanguageServerSettings:
    """The use of language servers.

    Attributes:
        mode: When.
        budget: Seconds that an answer to a change may wait for them.
        new_errors: What becomes of a change that they find new errors in.
        idle: Seconds without use after which one is stopped.
        memory: MiB that one may take; with more it is started anew.
        receipts: The least of what they find that a receipt tells.
    """

    mode: Using = "auto"
    budget: float = 2.0
    new_errors: NewErrors = "allow"
    idle: float = 600.0
    memory: int = 2048
    receipts: Receipts = "errors"


@dataclass(frozen=True, slots=True)
class LanguageServerOptions:
    """The settings about language servers in one file, or in two together; None where unset.

    Attributes:
        mode: As in `LanguageServerSettings`; None where nothing is said, and so for the next five.
        budget: The same.
        new_errors: The same.
        idle: The same.
        memory: The same.
        receipts: The same.
        tables: Tables of servers by their names, in the order of preference.
    """

    mode: Using | None = None
    budget: float | None = None
    new_errors: NewErrors | None = None
    idle: float | None = None
    memory: int | None = None
    receipts: Receipts | None = None
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def beneath(self, above: LanguageServerOptions) -> LanguageServerOptions:
        """A person's, as far as an administrator's leave room.

        The administrator's mode is final.  Of both words on new errors the stricter counts, and
        where the administrator wants them noticed, nobody switches off what notices them.  Of a
        server that both name, the administrator's fields count.  All else is the person's.
        """
        strictness = get_args(NewErrors).index
        errors = [one.new_errors for one in (self, above) if one.new_errors is not None]
        mode = above.mode or self.mode
        if mode == "off" and not above.mode and above.new_errors in ("ask", "deny"):
            mode = None
        mine = {field.name: getattr(self, field.name) for field in fields(self)}
        said = {name: value for name, value in mine.items() if value is not None}
        tables = {
            name: {**self.tables.get(name, {}), **table} for name, table in above.tables.items()
        }
        return replace(
            above,
            **said
            | {
                "mode": mode,
                "new_errors": max(errors, key=strictness, default=None),
                "tables": tables | {n: t for n, t in self.tables.items() if n not in tables},
            },
        )

    @property
    def diagnosing(self) -> LanguageServerSettings:
        """These, and the defaults where nothing is said."""
        names = (field.name for field in fields(LanguageServerSettings))
        said = {name: value for name in names if (value := getattr(self, name)) is not None}
        return LanguageServerSettings(**said)

    @property
    def servers(self) -> tuple[ServerSpec, ...]:
        """The servers that may be used, in order of preference; those named in the files come first."""
        # Not at the top: most commands need no server.
        from filepact_diagnostics.lsp.builtin import builtin_servers  # noqa: PLC0415
        from filepact_diagnostics.lsp.spec import parse_servers  # noqa: PLC0415

        found = {one.name: one for one in parse_servers(self.tables, builtin_servers())}
        named = [found.pop(name) for name in self.tables if name in found]
        return (*named, *found.values())

    def agents_servers(
        self, trust: ServerTrust, *, confines: bool = False
    ) -> tuple[ServerSpec, ...]:
        """The servers that may see agents' texts and whose findings agents may see.

        Args:
            trust: Where the person lets further servers work.
            confines: Whether those that only disclose or evaluate can be confined to a sandbox.
        """
        found: list[ServerSpec] = []
        for one in self.servers:
            confined = confines and not one.trusted and one.risk in ("discloses", "evaluates")
            if one.serves_agents and not confined:
                found.append(one)
            elif confined or trust.of(one.name):
                found.append(replace(one, only_in=trust.of(one.name), confined=confined))
        return tuple(found)

    def peoples_servers(self, *, confines: bool = False) -> tuple[ServerSpec, ...]:
        """The servers that may see a person's folders.

        Args:
            confines: Whether those that evaluate build files can be confined to a sandbox.
        """
        return tuple(
            replace(one, confined=confines and not one.trusted and one.risk == "evaluates")
            for one in self.servers
            if one.serves_people
        )


@dataclass(frozen=True, slots=True)
class ServerTrust:
    """The trust that a person has given to language servers, folder by folder.

    Attributes:
        folders: By a server's name, the folders in which and beneath which it is trusted, absolute.
    """

    folders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, server: str) -> tuple[str, ...]:
        """The folders in which a server is trusted."""
        return self.folders.get(server, ())

    def with_folder(self, server: str, folder: str) -> ServerTrust:
        """These settings, with a server trusted in a folder."""
        return self._with(server, (*self._others(server, folder), folder))

    def without_folder(self, server: str, folder: str) -> ServerTrust:
        """These settings, without a server's trust in a folder."""
        return self._with(server, self._others(server, folder))

    def to_json(self) -> bytes:
        """The form that `parse_trust` reads."""
        told = {name: list(some) for name, some in sorted(self.folders.items())}
        return json.dumps({"servers": told}, indent=2).encode() + b"\n"

    def _others(self, server: str, folder: str) -> tuple[str, ...]:
        return tuple(one for one in self.of(server) if one != folder)

    def _with(self, server: str, folders: tuple[str, ...]) -> ServerTrust:
        changed = {**self.folders, server: folders}
        return ServerTrust({name: some for name, some in changed.items() if some})


def parse_trust(data: bytes) -> ServerTrust:
    """Read stored trust; data that cannot be understood trusts nothing."""
    try:
        told = json.loads(data)["servers"]
        return ServerTrust({name: _absolute(some) for name, some in told.items()})
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ServerTrust()


def _absolute(folders: object) -> tuple[str, ...]:
    if isinstance(folders, list) and all(isinstance(one, str) for one in folders):
        found = tuple(folders)
        if all(one.startswith("/") for one in found):
            return found
    raise ValueError(folders)


def options_of(settings: Settings) -> LanguageServerOptions:
    """What the settings in force say about language servers."""
    found: LanguageServerOptions = settings.extensions.get(NAME, LanguageServerOptions())
    return found


def read_trust(state_dir: str) -> ServerTrust:
    """The language servers that a person trusts, by folder; nobody's file is nobody's trust.

    Args:
        state_dir: The state folder, which need not be there.
    """
    try:
        text = settings_text(os.path.join(state_dir, TRUST_FILE))
    except InvalidParamsError:
        text = ""
    return parse_trust(text.encode())


def keys() -> tuple[SettingInfo, ...]:
    """The keys of the table `diagnostics`, each an attribute of `LanguageServerSettings`."""
    from filepact.config.keys import between, one_of  # noqa: PLC0415 - most files have no such table
    from filepact.extension import SettingInfo  # noqa: PLC0415 - the same

    return (
        SettingInfo(
            *("diagnostics", "mode", '"auto"', "when language servers are used"),
            one_of("auto", "always", "off"),
        ),
        SettingInfo(
            "diagnostics",
            "budget",
            "2",
            "seconds that an answer waits for them",
            between(0.1, 60, "number"),
        ),
        SettingInfo(
            *("diagnostics", "new_errors", '"allow"', "what becomes of a change that adds errors"),
            one_of("allow", "ask", "deny"),
        ),
        SettingInfo(
            "diagnostics",
            "idle",
            "600",
            "seconds until one is stopped",
            between(1, 86_400, "number"),
        ),
        SettingInfo(
            "diagnostics", "memory", "2048", "MiB that one may take", between(64, 1_048_576)
        ),
        SettingInfo(
            *("diagnostics", "receipts", '"errors"', "the least that a receipt tells"),
            one_of("errors", "warnings"),
        ),
    )


def read_wishes(tables: Mapping[str, Any], text: str, name: str) -> LanguageServerOptions:
    """Read a file's settings about language servers.

    Args:
        tables: All of the file, as the TOML reader gives it; other keys are left to others.
        text: The same as text.
        name: How the file is called in messages.

    Raises:
        InvalidParamsError: Something in it is not as it has to be; the first is told, with the
            file, the line and the key.
    """
    said: dict[str, Any] = {}
    if "diagnostics" in tables:
        said = _fields(tables["diagnostics"], text, name)
    if "servers" in tables:
        said["tables"] = _servers(tables["servers"], text, name)
    return LanguageServerOptions(**said)


def _fields(table: Any, text: str, name: str) -> dict[str, Any]:
    if isinstance(table, str):
        if table not in get_args(Using):
            words = ", ".join(get_args(Using))
            raise refusal(
                text, name, ("diagnostics",), f"has to be one of {words}, in quotes, or a table"
            )
        return {"mode": table}
    from filepact.config.keys import read_table  # noqa: PLC0415 - as above

    said = read_table({"diagnostics": table}, "diagnostics", text, name, keys())
    if said.get("mode") == "off" and said.get("new_errors", "allow") != "allow":
        path = ("diagnostics", "new_errors")
        raise refusal(text, name, path, 'nothing finds errors while mode is "off"')
    return said


def _servers(tables: Any, text: str, name: str) -> dict[str, dict[str, Any]]:
    if not isinstance(tables, dict):
        raise refusal(text, name, ("servers",), "has to hold tables, such as [servers.ruff]")
    # Not at the top: most files name no server.
    from filepact_diagnostics.lsp.builtin import builtin_servers  # noqa: PLC0415
    from filepact_diagnostics.lsp.spec import parse_servers  # noqa: PLC0415

    known = builtin_servers()
    for server, table in tables.items():
        try:
            parse_servers({server: table}, known)
        except InvalidParamsError as error:
            where = str(error.details["key"])
            said = error.message.removeprefix(f"servers.{where} ")
            raise refusal(text, name, ("servers", *_path(where, server)), said) from None
    return dict(tables)


def _path(where: str, server: str) -> tuple[str | int, ...]:
    """The key that a message about a server names, part by part."""
    inner = where.removeprefix(server)
    steps = (int(number) if number else word for word, number in _STEP.findall(inner))
    return (server, *steps)
