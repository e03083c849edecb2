"""Extensions, which packages beside this one add to filepact: commands, settings, extras, windows, and stores of journals and files.

A package names its `Extension` in the entry point group ``filepact.extensions``.  They are looked for when somebody names what is
not the core's own, or wants a list of all: a start pays nothing for them.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import InvalidParamsError
from filepact.values import dataclass, field

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from filepact.domain.operation import StoreOptions
    from filepact.domain.policy import Layer
    from filepact.fs.root import Root
    from filepact.fs.state import StateFolder
    from filepact.workspace.journal import JournalDatabase
    from filepact.workspace.workspace import Workspace
    from filepact.workspace.writer import ChangePublisher

__all__ = [
    "Extension",
    "SettingInfo",
    "check_hosts",
    "extensions",
    "extensions_of",
    "has_hooks",
    "open_chat",
    "open_database",
    "open_diagnostics",
    "open_frame",
    "open_publisher",
    "open_turn_errors",
    "reason_against",
]

_GROUP: Final = "filepact.extensions"
_FILE: Final = "entry_points.txt"


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """A key of a table.

    Attributes:
        default: As TOML; empty for a key that is left out.
        example: As TOML, for a key without a default.
        about: What it is for.
        allows: JSON schema of its values.
        form: These values in words, as the end of a sentence; empty where the schema says it well enough.
    """

    table: str
    name: str
    default: str
    about: str
    allows: dict[str, Any]
    example: str = ""
    form: str = ""


@dataclass(frozen=True, slots=True)
class Extension:
    """An extension of one package; its functions load the rest of the package when they are called.

    Attributes:
        name: What it is called among the others.
        add_commands: Adds its commands to a `CommandGroup`, a type of a floor above.
        tables: The tables of a person's settings file that it reads.
        read_settings: Makes one value of them, of no table the defaults; is told the file's keys, its text and its
            name.  Raises InvalidParamsError for what is wrong.  Where it makes `StoreOptions`, the journal is there.
        setting_keys: Their keys, each an attribute of that value, for the template, the schema and `filepact config show`.
        in_force: What a value comes to, with the defaults in; told with one of `read_settings`.
        join: What a person's value, or None, comes to beneath an administrator's.  None where an administrator's file
            has no place for its tables.
        against_projects: Why a project's file has no place for its tables, as the end of a sentence.
        schema: JSON schema of the tables whose keys a person names.
        stores: What the address of a journal begins with that it opens.
        open_store: Opens one, under the name of the state folder; None where it has no journals.
        open_publisher: Opens what makes the changes of a checkout known elsewhere; is told those roots that are one, and
            refuses several.  None where it has no checkouts.
        open_chat: Opens what puts changes that wait to a person in their chat: is told the settings of the server, what ends
            it, and what is above the client's program, and answers an `ElicitationHandler` for a workspace.
        open_frame: Makes the `FrameHandler` of a workspace, with that one or None; both are types of a floor above.
        open_diagnostics: Opens what judges changes by their diagnostics: is told the settings and the state folder.  None
            where it judges nothing.
        open_turn_errors: Opens what tells hooks, at the end of a turn, which errors it has left: is told what sums them up
            for a session.  Its `note` is told each session, `close` ends it.  None where it has no hooks.
        check: What `filepact doctor` says of it: is told a workspace, the settings, the state folder, whether to start
            programs, and what to tell of those that take their time; answers with `CheckResult`, a type of a floor above.
        check_hosts: What `filepact doctor` says of the agents and editors that are here: is told a folder, the words that
            were typed, and the state folder.  None where it knows no such.
        has_hooks: Whether it wrote hooks of ours into the settings of an agent, by its name; is told the state folder, too.
        extras: What only some people need, by the name of the extra: a module that it brings, and what that is for.
    """

    name: str
    add_commands: Callable[[Any], None] = lambda _group: None
    tables: tuple[str, ...] = ()
    read_settings: Callable[[Mapping[str, Any], str, str], Any] = lambda _found, _text, _name: None
    setting_keys: Callable[[], tuple[SettingInfo, ...]] = tuple
    in_force: Callable[[Any], Any] = lambda value: value
    join: Callable[[Any, Any], Any] | None = None
    against_projects: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    stores: tuple[str, ...] = ()
    open_store: Callable[[StoreOptions, str], JournalDatabase] | None = None
    open_publisher: Callable[[StateFolder, Sequence[Root]], ChangePublisher] | None = None
    open_chat: Callable[[Any, ExitStack, str], Callable[[Workspace], Any]] | None = None
    open_frame: Callable[[Workspace, Any], Any] | None = None
    open_diagnostics: Callable[[Any, str], Any] | None = None
    open_turn_errors: Callable[[Any], Any] | None = None
    check: Callable[[Workspace, Any, str, bool, Callable[[str], None]], Iterator[Any]] | None = None
    check_hosts: Callable[[Path, Namespace, str], Iterator[Any]] | None = None
    has_hooks: Callable[[str, str], bool] | None = None
    extras: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def tables_of(self, layer: Layer) -> tuple[str, ...]:
        """The tables that a file of a layer may hold of it."""
        if layer == "person" or (layer == "administrator" and self.join is not None):
            return self.tables
        return ()

    def joined(self, mine: Any, above: Any) -> Any:
        """The value of a person, or None, beneath that of an administrator."""
        return above if self.join is None else self.join(mine, above)


@cache
def extensions() -> tuple[Extension, ...]:
    """Return the extensions of all installed packages, by name; of two with one name, the first on Python's path."""
    points = _points("")
    return tuple(_loaded(points[name]) for name in sorted(points))


@cache
def _own(name: str) -> Extension | None:
    """An extension that comes with filepact, without a look at other packages, of which there may be hundreds."""
    place = _points("filepact-").get(name)
    return None if place is None else _loaded(place)


def _loaded(place: str) -> Extension:
    module, _, value = place.partition(":")
    found: Extension = getattr(import_module(module), value)
    return found


def _points(start: str) -> dict[str, str]:
    """The entry points of our group, by name, of packages whose name begins so; as installers write them."""
    # `importlib.metadata` does the same, and takes as long to load as the whole command line.
    points: dict[str, str] = {}
    for folder in filter(os.path.isabs, sys.path):
        with suppress(OSError):
            for name in os.listdir(folder):
                if not (name.startswith(start) and name.endswith(".dist-info")):
                    continue
                with suppress(OSError), open(f"{folder}/{name}/{_FILE}", encoding="utf-8") as file:
                    _, _, after = file.read().partition(f"[{_GROUP}]\n")
                    for line in after.partition("\n[")[0].splitlines():
                        point, equals, place = line.partition("=")
                        if equals:
                            points.setdefault(point.strip(), place.strip())
    return points


def extensions_of(tables: Iterable[str]) -> list[Extension]:
    """Return the extensions that read some tables of the settings; one that a table is called after is looked for first."""
    wanted = set(tables)
    named = [one for table in sorted(wanted) if (one := _own(table)) and table in one.tables]
    if wanted <= {table for one in named for table in one.tables}:
        return named
    return [one for one in extensions() if not wanted.isdisjoint(one.tables)]


def reason_against(table: str) -> str:
    """Why a project's file has no place for a table of an extension, as the end of a sentence; empty if none says so."""
    return next((one.against_projects for one in extensions() if table in one.tables), "")


def check_hosts(folder: Path, arguments: Namespace, state: str) -> Iterator[Any]:
    """Yield what `filepact doctor` says of the agents and editors that are here; as `Extension` says."""
    found = _own("setup")
    if found is not None and found.check_hosts is not None:
        yield from found.check_hosts(folder, arguments, state)


def has_hooks(agent: str, state: str) -> bool:
    """Whether hooks of ours were written into the settings of an agent; as `Extension` says."""
    found = _own("setup")
    return found is not None and found.has_hooks is not None and found.has_hooks(agent, state)


def open_diagnostics(settings: Any, state: str) -> Any:
    """Return what judges changes by their diagnostics, from the extension that does; as `Extension` says."""
    found = _own("diagnostics")
    if found is None or found.open_diagnostics is None:
        raise InvalidParamsError(
            "nothing that is installed asks language servers", hint="Install filepact again."
        )
    return found.open_diagnostics(settings, state)


def open_turn_errors(summary: Any) -> Any:
    """Return what tells hooks which errors a turn has left, from the extension that has hooks; as `Extension` says."""
    found = _own("hooks")
    if found is None or found.open_turn_errors is None:
        raise InvalidParamsError(
            "nothing that is installed answers hooks", hint="Install filepact again."
        )
    return found.open_turn_errors(summary)


def open_database(store: StoreOptions, name: str) -> JournalDatabase:
    """The journal in a database, by the extension that knows such addresses.

    Args:
        store: Which one.
        name: The name of the state folder.

    Raises:
        InvalidParamsError: None does, or what it needs is not installed.
        StoreUnreachableError: The server does not answer.
        StoreSchemaError: It has no tables of ours, or of another version.
    """
    for one in extensions():
        if one.open_store is not None and store.url.startswith(one.stores):
            return one.open_store(store, name)
    raise InvalidParamsError(
        "nothing that is installed opens the address of the journal",
        hint="Install filepact again.",
    )


def open_publisher(state: StateFolder, roots: Sequence[Root]) -> ChangePublisher:
    """Return the publisher of a checkout's changes, from the extension that has checkouts; errors are its own."""
    for one in extensions():
        if one.open_publisher is not None:
            return one.open_publisher(state, roots)
    raise InvalidParamsError(
        f"{roots[0].path} is a checkout, and nothing that is installed has such",
        hint="Install filepact again.",
    )


def open_chat(settings: Any, ends: ExitStack, above: str) -> Callable[[Workspace], Any]:
    """Return the maker of the review in a person's chat, from the extension that has windows; as `Extension` says."""
    for one in extensions():
        if one.open_chat is not None:
            return one.open_chat(settings, ends, above)
    raise InvalidParamsError(
        "nothing that is installed asks a person in their chat", hint="Install filepact again."
    )


def open_frame(workspace: Workspace, chat: Any) -> Any:
    """Return the page for a frame of a person's chat, from the extension that has windows; as `Extension` says."""
    for one in extensions():
        if one.open_frame is not None:
            return one.open_frame(workspace, chat)
    raise InvalidParamsError(
        "nothing that is installed draws the review in a chat", hint="Install filepact again."
    )
