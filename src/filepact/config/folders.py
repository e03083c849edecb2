"""Where a person's folders are, those of agents, and in which folders agents are guarded.

A hook asks for some at every event, so this loads next to nothing.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

__all__ = [
    "SET_UP_FILE",
    "agents_place",
    "project_folder",
    "read_set_up",
    "set_up_bytes",
    "set_up_root",
    "state_folder",
    "usual_folder",
]

SET_UP_FILE = "set-up"
_LARGEST = 4096  # bytes of a file with which Git tells where its folder is


def state_folder(named: str | None = None) -> str:
    """The person's state folder, where `filepact log` and `filepact undo` look.

    Args:
        named: Another; else ``FILEPACT_STATE_DIR`` counts, and then the usual one.
    """
    named = named or os.environ.get("FILEPACT_STATE_DIR")
    if named:
        path = os.path.join(os.getcwd(), os.path.expanduser(named))
        return path.rstrip("/") or "/"
    return usual_folder("state")


_USUAL = {
    "administrator": ("XDG_CONFIG_DIRS:/etc/xdg", "/Library", "PROGRAMDATA:C:/ProgramData"),
    "data": ("XDG_DATA_HOME:~/.local/share", "~/Library", "LOCALAPPDATA:~/AppData/Local"),
    "settings": ("XDG_CONFIG_HOME:~/.config", "~/Library", "APPDATA:~/AppData/Roaming"),
    "state": ("XDG_STATE_HOME:~/.local/state", "~/Library", "LOCALAPPDATA:~/AppData/Local"),
}


def usual_folder(what: str, system: str = sys.platform) -> str:
    """Where a system has one kind of what we keep, if no variable names another place for that kind."""
    elsewhere, macos, windows = _USUAL[what]
    variable, _, usual = (windows if system == "win32" else elsewhere).partition(":")
    said = os.environ.get(variable, "")
    said = said.split(os.pathsep)[0] if what == "administrator" and system != "win32" else said
    usual = f"{macos}/Application Support" if system == "darwin" else usual
    base = said if said.strip() else os.path.expanduser(usual)
    if system == "win32":
        from ntpath import normpath  # noqa: PLC0415 - there alone

        return normpath(f"{base}/filepact")
    return os.path.join(base, "filepact")


_AGENTS = {
    "~/.config/Claude": ("~/Library/Application Support/Claude", "~/AppData/Roaming/Claude"),
    "/etc/claude-code": ("/Library/Application Support/ClaudeCode", "C:/Program Files/ClaudeCode"),
    "~/.config/zed": ("~/.config/zed", "~/AppData/Roaming/Zed"),
}


def agents_place(folder: str, system: str = sys.platform) -> str:
    """Where an agent has, on macOS and on Windows, what it has in this folder on Linux."""
    macos, windows = _AGENTS[folder]
    return {"darwin": macos, "win32": windows}.get(system, folder)


def read_set_up(state: str) -> list[tuple[str, str, str]]:
    """The agents set up: each name, how far it is guarded, and its folder.

    Nothing where that cannot be told, which never means that nothing is guarded.
    """
    try:
        with open(os.path.join(state, SET_UP_FILE), "rb") as file:
            lines = os.fsdecode(file.read()).split("\0\n")
        return [(agent, guard, folder) for agent, guard, folder in (_fields(one) for one in lines)]
    except (OSError, ValueError):
        return []


def _fields(line: str) -> list[str]:
    return line.split(" ", 2)


def set_up_bytes(found: Iterable[tuple[str, str, str]]) -> bytes:
    """The bytes that `read_set_up` reads; a folder's name may hold anything but NUL."""
    return b"\0\n".join(os.fsencode(" ".join(one)) for one in found)


def set_up_root(folder: str, known: Collection[str]) -> tuple[str, str] | None:
    """The root of a session in a folder, and the folder for whose sake it is guarded; None for unguarded.

    What was set up is guarded with all that lies in it.  Each linked worktree of Git is a root of its own,
    guarded for the sake of its project; one of which nobody can tell whose it is, for the sake of none.

    Args:
        folder: Its true path.
        known: The true paths of all that was set up.
    """
    for above in _upwards(folder):
        if above in known:
            return above, above
        try:
            main = _main_worktree(above)
        except (OSError, ValueError):
            return above, ""
        for one in _upwards(main + folder[len(above.rstrip("/")) :]) if main else ():
            if one in known:
                return above + (one[len(main) :] if one.startswith(f"{main}/") else ""), one
    return None


def project_folder(folder: str) -> str:
    """The folder that is set up where this one is meant: of a linked worktree, the same in its main one."""
    for above in _upwards(folder):
        try:
            main = _main_worktree(above)
        except (OSError, ValueError):
            return folder
        if main:
            return main + folder[len(above.rstrip("/")) :]
    return folder


def _upwards(folder: str) -> list[str]:
    """A folder and all above it."""
    found = [folder]
    while found[-1] != os.path.dirname(found[-1]):
        found.append(os.path.dirname(found[-1]))
    return found


def _main_worktree(folder: str) -> str:
    """The main worktree of the linked one that a folder is, or the folder of a bare repository; else empty.

    Raises:
        OSError: Git's file leads nowhere.
        ValueError: It is not one of Git's.
    """
    file = os.path.join(folder, ".git")
    if not os.path.isfile(file):
        return ""
    word, _, named = _line(file).partition(" ")
    if word != "gitdir:" or not named:
        raise ValueError(file)
    place = os.path.join(folder, named)
    common = os.path.join(place, "commondir")
    if not os.path.isfile(common):
        os.stat(place)
        return ""  # a submodule, or a repository that is kept elsewhere
    found = os.path.realpath(os.path.join(place, _line(common)))
    return os.path.dirname(found) if os.path.basename(found) == ".git" else found


def _line(path: str) -> str:
    """The one line of a file of Git's."""
    with open(path, "rb") as file:
        found = os.fsdecode(file.read(_LARGEST)).rstrip("\n")
    if not found or "\0" in found:
        raise ValueError(path)
    return found
