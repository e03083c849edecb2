"""The context of a command: its roots, its state folder, and the person who runs it."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, Literal

from filepact.config.folders import project_folder, state_folder
from filepact.errors import FilepactError, InvalidParamsError, NotFoundError
from filepact.values import dataclass, replace

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from filepact.config.settings import Settings
    from filepact.domain.operation import Session
    from filepact.domain.person import Caller
    from filepact.workspace.workspace import Workspace

__all__ = [
    "CommandContext",
    "acting",
    "agent_of",
    "called_by",
    "find_context",
    "gone",
    "here",
    "login_name",
    "moved_here",
    "opened",
    "person",
]

_LOOKING_BACK: Final = frozenset(
    {"approve", "diff", "log", "pending", "redo", "reject", "review", "show", "status", "undo"}
)
"""Commands that are about what was done in the project's linked worktrees as well."""

Origin = Literal["--root", "FILEPACT_ROOT", "journal", "git", "this folder"]


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The folders in use.

    Attributes:
        roots: As they were given or found; the first is the working folder.
        state: The state folder.
        origin: Why these roots.
    """

    roots: tuple[str, ...]
    state: str
    origin: Origin


def find_context(arguments: Namespace) -> CommandContext:
    """The roots that were named, else the nearest that makes sense at or above this folder."""
    state = state_folder(arguments.state)
    if arguments.root:
        return CommandContext(tuple(arguments.root), state, "--root")
    named = os.environ.get("FILEPACT_ROOT", "")
    if named:
        return CommandContext(tuple(filter(None, named.split(os.pathsep))), state, "FILEPACT_ROOT")
    folder = Path.cwd()
    above = (folder, *folder.parents)
    for number, one in enumerate(above):
        there = os.path.lexists(one / ".git")  # Which a closed folder does not stop.
        if there and (one / ".git").is_file() and project_folder(str(one)) != str(one):
            above = above[: number + 1]  # A linked worktree, whatever it lies in.
            break
    settings, roots = _journal(state, arguments.config)
    found: tuple[str, Origin] = str(folder), "this folder"
    known = _nearest_known(above, state, settings, roots)
    if known is not None:
        found = known, "journal"
    elif (top := next((one for one in above if os.path.lexists(one / ".git")), None)) is not None:
        found = str(top), "git"
    beside: list[str] = []
    if arguments.command in _LOOKING_BACK:
        beside = [one for one in _worktrees(Path(found[0])) if one in roots]
    return CommandContext((found[0], *beside), state, found[1])


def _worktrees(folder: Path) -> Iterator[str]:
    """Yield a folder's counterpart in each linked worktree of the repository whose main worktree holds it."""
    above = (one for one in (folder, *folder.parents) if os.path.lexists(one / ".git"))
    top = next((one for one in above if (one / ".git").is_dir()), None)
    if top is None:
        return
    for file in sorted(top.glob(".git/worktrees/*/gitdir")):
        with suppress(OSError, ValueError):
            tree = (file.parent / os.fsdecode(file.read_bytes().rstrip(b"\n"))).parent
            place = (tree / folder.relative_to(top)).resolve()
            if place.is_dir() and place != folder:
                yield str(place)


def moved_here(context: CommandContext, config: str | None) -> tuple[str, str] | None:
    """Return a message and the next step, if the folder seems to have been moved here from where its history is."""
    from filepact.config.person import read_store  # noqa: PLC0415 - loads the database
    from filepact.opening import moved_from  # noqa: PLC0415 - with it

    folder = str(Path(context.roots[0]).resolve())
    found = moved_from(context.state, read_store(config), folder)
    if found is None:
        return None
    old, operations = found
    said = f"{operations:,} operation{' belongs' if operations == 1 else 's belong'} to {old}, which is gone"
    return said, f"If this folder is it, moved here: `filepact doctor --moved {quote(old)}`."


def _journal(state: str, config: str | None) -> tuple[Settings | None, tuple[str, ...]]:
    """Settings with nothing but where the journal is, and the folders that it tells of."""
    if not Path(state).is_dir():
        return None, ()
    from filepact.app import journal_roots  # noqa: PLC0415 - loads the database
    from filepact.config.person import read_store  # noqa: PLC0415 - with it
    from filepact.config.settings import Settings  # noqa: PLC0415 - with it

    try:
        settings = Settings(store=read_store(config))
        return settings, journal_roots(state, settings.store)
    except FilepactError:
        return None, ()  # Whoever opens it next tells.


def _nearest_known(
    folders: Sequence[Path], state: str, settings: Settings | None, roots: Sequence[str]
) -> str | None:
    """The first of some folders in which something was done."""
    if settings is None:
        return None
    from filepact.app import open_workspace  # noqa: PLC0415 - loads the database
    from filepact.workspace.documents import PROJECT_FILE  # noqa: PLC0415 - with it

    for folder in folders:
        if str(folder) not in roots and not os.path.lexists(folder / PROJECT_FILE):
            continue  # Nothing was done there.
        try:
            # Nobody's other settings: only its journal is looked into.
            with open_workspace((str(folder),), state_dir=state, settings=settings) as workspace:
                if workspace.log(limit=1):
                    return str(folder)
        except InvalidParamsError:
            # Its own file of rules is wrong; going on above would be going on without it.
            return str(folder)
        except FilepactError:
            # A folder that holds the state folder cannot be a root, so never was; and a journal
            # that cannot be read is told by whoever opens it next.
            continue
    return None


@contextmanager
def opened(arguments: Namespace, context: CommandContext | None = None) -> Iterator[Workspace]:
    """The workspace of a command, open while it is used."""
    from filepact.app import open_workspace  # noqa: PLC0415 - loads the database
    from filepact.config.person import read_settings  # noqa: PLC0415 - with it

    context = context or find_context(arguments)
    settings = read_settings(arguments.config)
    with open_workspace(context.roots, state_dir=context.state, settings=settings) as workspace:
        yield workspace


def person(*, how: str = "", program: bool = False) -> Session:
    """A session for this run of the command, with the person who is logged in as its actor.

    Args:
        how: Where the word was given, and through which programs.
        program: Whether a program of theirs gave it, and nobody was there.
    """
    from filepact.domain.operation import Actor, Session  # noqa: PLC0415 - loads what changes are

    actor = Actor("program" if program else "person", login_name(), how)
    return Session(f"cli-{os.urandom(4).hex()}", actor)


def called_by(arguments: Namespace, *, serves: bool = False) -> Caller:
    """Who has called this command, as far as the system and the notes of hooks and servers tell.

    Args:
        arguments: The command's.
        serves: Whether it serves the program that has started it.
    """
    from filepact.app import who_calls  # noqa: PLC0415 - loads the database

    # Another state folder than the usual one has no notes of what the usual one knows.
    return who_calls((state_folder(arguments.state), state_folder(None)), serves=serves)


def acting(arguments: Namespace) -> Session:
    """The session of whoever reads and changes files by a command: a person, or the agent that called it."""
    from filepact.domain.operation import Actor  # noqa: PLC0415 - loads what changes are

    session, caller = person(), called_by(arguments)
    if not caller.agent:
        return session
    return replace(session, actor=Actor("agent", caller.agent, "by a command"))


def login_name() -> str:
    """The account's name; the environment is asked only where there are no accounts."""
    try:
        from pwd import getpwuid  # noqa: PLC0415 - not on every system

        return getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return os.environ.get("USERNAME") or os.environ.get("USER") or "somebody"


def here(workspace: Workspace, path: str, *, there: bool = False) -> str:
    """A path as a person types it, relative to the present folder, as tools take it.

    Tools count from the first root.  Outside the roots the present folder means nothing to them,
    so there a relative path counts from the first root as well.  With ``there``, a name that is no UTF-8 is one of
    something that is there: none is made.
    """
    shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if path != shown:
        # A name that is no UTF-8, as a shell completes it, is told as lists show it; some file may be called just that.
        odd = {*shown.split("/")} - {*path.split("/")}
        place = workspace.guard.find(path := here(workspace, shown), "list").place
        gone = place.kind == "missing"
        if gone and there:
            raise NotFoundError(
                f"{shown}: nothing has this name, and a new one has to be UTF-8",
                hint="Give it another name; `filepact find` lists what is there.",
            )
        if gone or odd.isdisjoint(place.path.split("/")):
            return path
        raise InvalidParamsError(
            f"{shown}: a file is called so, and another has bytes in its name that are shown so",
            hint="Rename one of them with `mv`, outside of filepact.",
        )
    if path.startswith("/"):
        return path
    folder = Path.cwd()
    first = Path(workspace.guard.roots[0].path)
    if not any(folder.is_relative_to(root.path) for root in workspace.guard.roots):
        return path
    # Only put in front: what `..` or a slash at the end mean, the disk decides and not the text.
    above = folder.relative_to(first) if folder.is_relative_to(first) else folder
    return path if above == Path() else f"{above}/{path}"


def gone(error: Exception) -> FilepactError | None:
    """Return the error that the command's own folder was removed; None if something else is wrong."""
    try:
        if isinstance(error, FileNotFoundError):
            Path.cwd()
    except FileNotFoundError:
        return NotFoundError(
            "the folder that you are in was removed",
            hint='If it was made anew, type cd "$PWD"; else go into another one.',
        )
    return None


def agent_of(command: Sequence[str]) -> str:
    """The name that rules know a program by: its own, without folders."""
    name = os.path.basename(command[0]) if command else ""  # noqa: PTH119 - a name alone
    if not name:
        raise InvalidParamsError(
            "no program was named", hint="Name it at the end: `filepact run -- claude`."
        )
    return name
