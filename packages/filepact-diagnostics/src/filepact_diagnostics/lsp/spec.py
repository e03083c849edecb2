"""Specifications of language servers: which files they know, how they start, how they are synced.

No server's name stands in any other code: what is particular about one is a field here.  Tables
come from `builtin` and from people's settings, in the same form.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from filepact.errors import InvalidParamsError, SearchFailedError
from filepact.text.glob import Glob
from filepact.values import dataclass, field, late_regex, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "PAUSES",
    "Asking",
    "Notice",
    "Risk",
    "Role",
    "ServerSpec",
    "SyncMethod",
    "Unsaved",
    "beneath",
    "is_within",
    "parse_servers",
]

Role = Literal["types", "lint", "projects"]
"""What a server is for; a file has at most one server of each role.  One of the role ``projects`` is
asked for no diagnostics: it knows which files belong to a project, see `ServerPool.projects`."""

Asking = Literal["pull", "push", "tsserver"]
"""Whether a server is asked for diagnostics, or publishes them.  ``tsserver``: it is asked for them by
the requests of TypeScript's own server, which it passes on."""

Notice = Literal["watched", "open", "save", "repeat", "announce", "nothing"]
"""What makes a server see what happened on the disk.

``watched``: being told of it.  ``open``: being given the file's text as an open document.
``save``: being told that an open document was saved.  ``repeat``: getting the texts of open
documents again.  ``announce``: being told again what it is told after its start.  ``nothing``: only
a new start, which it then gets; a watcher of its own is no help, since nobody knows when it looks.
"""

Risk = Literal["", "runs", "discloses", "evaluates"]
"""What an agent could reach through a server, past every rule.  ``runs``: it runs what a project's
build files say, and so what an agent has written there.  ``discloses``: it reads whatever file a text
names, inside the root or not, and its messages tell what is in it.  ``evaluates``: it evaluates
build files as their tools do where it is confined, and elsewhere by rules of its own; it needs nobody's
trust either way."""

Unsaved = Literal["change", "repeat", "alone", "nothing"]
"""What makes other files see the unsaved text of an open one: the change itself, their own texts
sent again, nothing at all; or no file looks at another (``alone``)."""

PAUSES: Final = (0.2, 1.0, 5.0, 20.0)
"""Seconds before a new start, by how often the server has ended shortly after its start; once more,
and it is not started any more."""

_NAME = late_regex(r"[a-z][a-z0-9-]{0,39}")
_LONGEST = 120.0
_BRACES = late_regex(r"\{([a-z][a-z0-9._+-]*)\}")
_VARIABLE = late_regex(r"\{([A-Z][A-Z0-9_]*)\}")
_PROGRAM = late_regex(r"\{program:([a-z][a-z0-9._+-]*)\}")


@dataclass(frozen=True, slots=True)
class SyncMethod:
    """How a server is made to see a change: a property for each kind of change.

    Attributes:
        written: A file that is not open was written.
        created: A file has come.
        deleted: A file has gone.
        unsaved: An open file has a text that is not on the disk.
        unsaved_new: The same, of a file that is not on the disk at all.
        folders: Whether it has to be told of the folders of files that come besides the files:
            of new ones, and where it may know the file already.
        lazy: Whether it may have read a file before it hears that the file has come, and does not
            read it again then.
        by_date: Whether it takes a file that is not open for unchanged while its date is the same.
        coarse: Whether it tells texts of a file apart by size and whole seconds only; it is told of
            no saves then.
        idle: Whether open documents cost it nothing until it is asked about them, so that more of them
            are left open.
        reload: A command of the server's, called with the address of a file that went and is there
            again.  For servers that learn a project from another program, which may have looked
            while the file was gone; an event alone tells them nothing that they do not know.
        elsewhere: What makes it see that a file of another root has changed.
    """

    written: Notice = "watched"
    created: Notice = "watched"
    deleted: Notice = "watched"
    unsaved: Unsaved = "change"
    unsaved_new: Unsaved = "nothing"
    folders: bool = False
    lazy: bool = False
    by_date: bool = False
    coarse: bool = False
    idle: bool = False
    reload: str = ""
    elsewhere: Notice = "watched"


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """A language server.

    Attributes:
        name: Short, lower case.
        command: The program and its arguments.  `{root}` in them stands for the folder that is
            served, and the name of a program in `needs`, in braces, for where that is.
        files: Globs of the files that it knows, each with the protocol's name of the language.
        role: What it is for.
        install: How a person gets it; a sentence or a command.
        needs: Other programs without which it finds nothing.  One with arguments is run, and has to
            end with status 0; what it prints may be a JSON object with facts for the doctor.
        asking: Whether it is asked for diagnostics.
        probe: A request that is answered only when all that was sent before has been worked up;
            empty where there is none.  With a blank and the name of a parameter behind it, it takes the
            addresses of files there, and publishes about each before it answers.  With
            `workspace/executeCommand` it is a command that follows, with what that takes after a file.
        ordered: Whether it publishes without saying about which version, but checks one text after
            the other and only the last that it has, each time that it is sent one: so a list that
            comes once it has read a text is about that text.
        once: Whether it publishes all that it finds in a text in one list; where it does not, one that
            names the text's version may lack what comes later, and counts as incomplete.
        reading: What stands in the title of the progress that it tells of while it reads the project,
            as it does after its start; what it says before the end counts for nothing.  Or the
            notification by which it says that it has: `experimental/serverStatus` or `language/status`.
        outside: Codes of what it finds in a file that belongs to no project, of which it says little else.
        quiet: Seconds without a further publication after which a list is told, for servers that
            prove nothing; such a list does not count as fresh.  Others are given so long for more.
        first: Seconds that the first diagnostics of a project may take.
        sync: What makes it see a change.
        alone: Requests of which it answers one at a time, and that must not be cancelled.
        endings: What is cut off the end of its messages, because it comes and goes with what the
            server happens to know, and not with the text.
        options: Its initialisation options; None for none.  `{program:NAME}` in their texts stands
            for the place of a program, and for one where nothing is if it is not installed: a
            server that would look for it in the project's folder is told where it is instead.
        settings: What it is answered when it asks for its configuration, nested by section; the
            same.
        announce: Notifications to send after the start, with `{root_uri}` and other facts in braces;
            `{opened_uri}` is the solution that somebody opened, else the root.
        discovers: Whether it looks for projects by itself where an announcement's facts are not
            known; else it is known then to see nothing, and its lists do not count.
        only_new: Whether only what differs between two of its lists means anything; the lists
            themselves, and how long they are, are not to be told.
        risk: Why an agent's texts are not shown to it unless the person trusts it; empty where
            there is no reason.
        trusted: Whether the person does.
        only_in: The folders in which, and beneath which, it may be used; empty for everywhere.
        confined: Whether it may be used in other folders too, or everywhere if none is named, in a
            sandbox.
        toolchain: Folders that it may read in a sandbox, besides what belongs to its program; a
            program as ``{program:NAME}`` stands for the folder that it lies in, and a
            variable's name in braces stands for its value.
        dependents: A command of the server's that tells which other files a change concerns; empty
            where that is guessed.
        includes: Endings of texts that others include.  What it finds in a file depends then on no
            others but those that the text includes by name, and that these include; an option may
            include a text with such an ending that nobody names.
        steered: Names of files that say how it reads others, and whose change only a new start shows it.
        configured: What lies in a project that has settings for it, so that it is used before
            others: a file's name, and after a blank what stands in it.
    """

    name: str
    command: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    role: Role = "types"
    install: str = ""
    needs: tuple[str, ...] = ()
    asking: Asking = "pull"
    probe: str = ""
    ordered: bool = False
    once: bool = False
    reading: str = ""
    outside: tuple[str, ...] = ()
    quiet: float = 0.0
    first: float = 10.0
    sync: SyncMethod = field(default_factory=SyncMethod)
    endings: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    options: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    announce: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    discovers: bool = False
    only_new: bool = False
    risk: Risk = ""
    trusted: bool = False
    only_in: tuple[str, ...] = ()
    confined: bool = False
    toolchain: tuple[str, ...] = ()
    configured: tuple[str, ...] = ()
    dependents: str = ""
    includes: tuple[str, ...] = ()
    steered: tuple[str, ...] = ()
    _named: bool = False

    @property
    def named(self) -> bool:
        """Whether the person's settings name it, so that no project's put another before it."""
        return self._named

    @property
    def serves_agents(self) -> bool:
        """Whether the server may see what an agent writes, and its answers may go to an agent."""
        return self.trusted or self.risk in ("", "evaluates")

    @property
    def serves_people(self) -> bool:
        """Whether the server may see a folder whose texts nobody has vouched for."""
        return self.trusted or self.risk != "runs"

    def allowed_in(self, root: str) -> bool:
        """Whether the server may be used in a folder, given by its absolute path."""
        return self.confined or not self.only_in or is_within(root, self.only_in)

    def is_confined(self, root: str) -> bool:
        """Whether the server is confined to a sandbox in a folder, given by its absolute path."""
        return self.confined and not is_within(root, self.only_in)

    def language(self, path: str) -> str | None:
        """The language of a path as the protocol names it; None if the server does not know it.

        Args:
            path: Relative to the root, or a bare name.
        """
        for glob, language in self.files:
            if _compiled(glob).matches(path):
                return language
        return None

    def filled(self, places: Mapping[str, str]) -> tuple[str, ...]:
        """The command with what stands in braces; braces around anything else stay.

        Args:
            places: By the words that may stand there.
        """
        return tuple(
            _BRACES.sub(lambda found: places.get(found[1], found[0]), word) if "{" in word else word
            for word in self.command
        )

    def folders_of(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """The folders of its toolchain; those that an unset variable would name are left out."""
        found = (
            _VARIABLE.sub(lambda name: environment.get(name[1], ""), word)
            for word in self.toolchain
            if all(environment.get(name) for name in _VARIABLE.findall(word))
        )
        return tuple(one for one in found if one.startswith("/"))

    def placed(self, locate: Callable[[str], str | None]) -> ServerSpec:
        """The server with the places of programs in its options, settings and toolchain.

        Args:
            locate: Where a program is, or None.
        """
        if "{program:" not in repr((self.options, self.settings, self.toolchain)):
            return self

        def fill(value: Any) -> Any:
            if isinstance(value, str):
                return _PROGRAM.sub(lambda found: locate(found[1]) or os.devnull, value)
            if isinstance(value, dict):
                return {key: fill(inner) for key, inner in value.items()}
            return [fill(inner) for inner in value] if isinstance(value, list) else value

        folders = (
            locate(found[1]) or "" if (found := _PROGRAM.fullmatch(word)) else word
            for word in self.toolchain
        )
        return replace(
            self,
            options=fill(self.options),
            settings=fill(self.settings),
            toolchain=tuple(folders),
        )


def is_within(folder: str, others: Iterable[str]) -> bool:
    """Whether a folder is one of others or lies beneath one; all are absolute."""
    return any(folder == one or folder.startswith(f"{one.rstrip('/')}/") for one in others)


def parse_servers(
    tables: Mapping[str, Any], known: Iterable[ServerSpec] = (), *, sound: bool = False
) -> tuple[ServerSpec, ...]:
    """Servers from plain tables, such as those of a settings file.

    Args:
        tables: One table for each server, by its name.
        known: Servers that are there already.  A table with the name of one of them replaces only
            the fields that it has, and ``enabled = false`` removes it.
        sound: Whether their globs are known to be right, so that they are compiled when they are first used.

    Raises:
        InvalidParamsError: A table is not as it has to be; the message names the key.
    """
    known = tuple(known)
    found = {one.name: one for one in known}
    for name, table in tables.items():
        if not _NAME.fullmatch(name):
            raise _wrong(name, "is not a name: use lower-case letters, digits and `-`, at most 40")
        reader = _Table(name, table)
        if not reader.truth("enabled", default=True):
            found.pop(name, None)
            continue
        found[name] = _server(reader, found.get(name), named=bool(known), sound=sound)
        reader.finish()
    return tuple(found.values())


def _server(table: _Table, old: ServerSpec | None, *, named: bool, sound: bool) -> ServerSpec:
    files = table.pairs("files", () if old is None else old.files)
    command = table.words("command", () if old is None else old.command)
    old = old or ServerSpec(table.name, command, files)
    sync = table.below("sync")
    try:
        for glob, _ in () if sound else files:
            _compiled(glob)
    except SearchFailedError as error:
        raise _wrong(f"{table.name}.files", error.message) from error
    server = ServerSpec(
        table.name,
        command,
        files,
        table.one_of("role", get_args(Role), old.role),
        table.text("install", old.install),
        table.words("needs", old.needs),
        table.one_of("diagnostics", get_args(Asking), old.asking),
        table.text("probe", old.probe),
        table.truth("ordered", default=old.ordered),
        table.truth("once", default=old.once),
        table.text("reading", old.reading),
        table.words("outside", old.outside),
        table.seconds("quiet", old.quiet),
        table.seconds("first", old.first),
        SyncMethod(
            sync.one_of("written", get_args(Notice), old.sync.written),
            sync.one_of("created", get_args(Notice), old.sync.created),
            sync.one_of("deleted", get_args(Notice), old.sync.deleted),
            sync.one_of("unsaved", get_args(Unsaved), old.sync.unsaved),
            sync.one_of("unsaved_new", get_args(Unsaved), old.sync.unsaved_new),
            sync.truth("folders", default=old.sync.folders),
            sync.truth("lazy", default=old.sync.lazy),
            sync.truth("by_date", default=old.sync.by_date),
            sync.truth("coarse", default=old.sync.coarse),
            sync.truth("idle", default=old.sync.idle),
            sync.text("reload", old.sync.reload),
            sync.one_of("elsewhere", get_args(Notice), old.sync.elsewhere),
        ),
        table.words("endings", old.endings),
        table.words("alone", old.alone),
        table.table("options", old.options),
        table.table("settings", old.settings) or {},
        table.announcements("announce", old.announce),
        table.truth("discovers", default=old.discovers),
        table.truth("only_new", default=old.only_new),
        table.one_of("risk", get_args(Risk), old.risk),
        table.truth("trusted", default=old.trusted),
        (),
        False,
        table.words("toolchain", old.toolchain),
        table.words("configured", old.configured),
        table.text("dependents", old.dependents),
        table.words("includes", old.includes),
        table.words("steered", old.steered),
        named,
    )
    sync.finish()
    return server


@lru_cache(maxsize=1_024)
def _compiled(glob: str) -> Glob:
    return Glob.parse(glob, braces=True)


class _Table:
    """One table, whose fields are taken one by one; what is left in the end is not known."""

    def __init__(self, name: str, table: object) -> None:
        if not isinstance(table, dict):
            raise _wrong(name, "has to be a table")
        self.name = name
        self._left = dict(table)

    def finish(self) -> None:
        for key in self._left:
            raise _wrong(f"{self.name}.{key}", "is not known")

    def text(self, key: str, default: str) -> str:
        value = self._left.pop(key, default)
        if not isinstance(value, str) or len(value) > 500 or not value.isprintable():
            raise _wrong(f"{self.name}.{key}", "has to be a text of at most 500 characters")
        return value

    def words(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        if key not in self._left and (default or key != "command"):
            return default
        value = self._left.pop(key, None)
        if not isinstance(value, list) or not value or not all(_plain(one) for one in value):
            raise _wrong(
                f"{self.name}.{key}", 'has to be a list of texts, such as ["ty", "server"]'
            )
        return tuple(value)

    def pairs(self, key: str, default: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        value = self._left.pop(key, dict(default))
        fine = isinstance(value, dict) and value
        if not fine or not all(_plain(part) for pair in value.items() for part in pair):
            raise _wrong(f"{self.name}.{key}", 'has to be a table such as {"*.py" = "python"}')
        return tuple(value.items())

    def one_of(self, key: str, allowed: tuple[Any, ...], default: Any) -> Any:
        value = self._left.pop(key, default)
        if value not in allowed:
            raise _wrong(f"{self.name}.{key}", f"has to be one of: {', '.join(allowed)}")
        return value

    def truth(self, key: str, *, default: bool) -> bool:
        value = self._left.pop(key, default)
        if not isinstance(value, bool):
            raise _wrong(f"{self.name}.{key}", "has to be true or false")
        return value

    def seconds(self, key: str, default: float) -> float:
        value = self._left.pop(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong(f"{self.name}.{key}", "has to be a number of seconds")
        if not 0 <= value <= _LONGEST:
            raise _wrong(f"{self.name}.{key}", f"has to be between 0 and {_LONGEST:.0f}")
        return float(value)

    def table(self, key: str, default: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        value = self._left.pop(key, default)
        if value is not None and not isinstance(value, dict):
            raise _wrong(f"{self.name}.{key}", "has to be a table")
        return value

    def below(self, key: str) -> _Table:
        return _Table(f"{self.name}.{key}", self._left.pop(key, {}))

    def announcements(
        self, key: str, default: tuple[tuple[str, Mapping[str, Any]], ...]
    ) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        value = self._left.pop(key, None)
        if value is None:
            return default
        if not isinstance(value, list):
            raise _wrong(f"{self.name}.{key}", "has to be a list of tables")
        found = []
        for number, one in enumerate(value):
            table = _Table(f"{self.name}.{key}[{number}]", one)
            found.append((table.text("method", ""), table.table("params", {}) or {}))
            table.finish()
        return tuple(found)


def _plain(value: object) -> bool:
    return isinstance(value, str) and bool(value) and len(value) <= 4_000 and value.isprintable()


def _wrong(where: str, what: str) -> InvalidParamsError:
    return InvalidParamsError(
        f"servers.{where} {what}", hint="Correct the server's table in the settings.", key=where
    )


def beneath(folder: str, path: str) -> str | None:
    """The part of a path beneath a folder; None when it lies elsewhere."""
    start = folder.rstrip("/") + "/"
    return path.removeprefix(start) if path.startswith(start) and path != start else None
