"""The context of a command: its roots, its state folder, and the person who runs it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from filepact.config.folders import state_folder
from filepact.errors import FilepactError, InvalidParamsError
from filepact.values import dataclass, replace

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from filepact.domain.operation import Session
    from filepact.domain.person import Caller
    from filepact.workspace.workspace import Workspace

__all__ = [
    "CommandContext",
    "acting",
    "called_by",
    "find_context",
    "here",
    "login_name",
    "opened",
    "person",
]

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
    known = _nearest_known(above, state, arguments.config)
    if known is not None:
        return CommandContext((known,), state, "journal")
    for candidate in above:
        if os.path.lexists(candidate / ".git"):
            return CommandContext((str(candidate),), state, "git")
    return CommandContext((str(folder),), state, "this folder")


def _nearest_known(folders: Sequence[Path], state: str, config: str | None) -> str | None:
    """The first of some folders in which something was done."""
    if not Path(state).is_dir():
        return None
    from filepact.app import journal_roots, open_workspace  # noqa: PLC0415 - loads the database
    from filepact.config.person import read_store  # noqa: PLC0415 - with it
    from filepact.config.settings import Settings  # noqa: PLC0415 - with it
    from filepact.workspace.documents import PROJECT_FILE  # noqa: PLC0415 - with it

    try:
        settings = Settings(store=read_store(config))
        roots = journal_roots(state, settings.store)
    except FilepactError:
        return None  # Whoever opens it next tells.
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


def here(workspace: Workspace, path: str) -> str:
    """A path as a person types it, relative to the present folder, as tools take it.

    Tools count from the first root.  Outside the roots the present folder means nothing to them,
    so there a relative path counts from the first root as well.
    """
    if path.startswith("/"):
        return path
    folder = Path.cwd()
    first = Path(workspace.guard.roots[0].path)
    if not any(folder.is_relative_to(root.path) for root in workspace.guard.roots):
        return path
    # Only put in front: what `..` or a slash at the end mean, the disk decides and not the text.
    above = folder.relative_to(first) if folder.is_relative_to(first) else folder
    return path if above == Path() else f"{above}/{path}"
