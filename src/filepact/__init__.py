"""The guarded, previewable, undoable door through which AI agents read and change files.

The names below are what other programs may rely on.  Each is loaded when it is first used, so
that importing the package, and `filepact --help`, cost next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` takes longer to load than a hook has time
if TYPE_CHECKING:
    from filepact.app import open_workspace
    from filepact.config.person import read_settings, state_folder
    from filepact.config.settings import Settings
    from filepact.domain.change import ChangeSet, FileChange
    from filepact.domain.document import Document, Revision, WorkspacePath
    from filepact.domain.operation import (
        Actor,
        Approval,
        Checkpoint,
        Operation,
        Proposal,
        Session,
    )
    from filepact.errors import CODES, FilepactError
    from filepact.faces.library.agent_tool import AgentTool
    from filepact.faces.library.async_files import AsyncFiles, AsyncTurn
    from filepact.faces.library.files import Files, Match, Turn
    from filepact.faces.library.files import open_files as open  # noqa: A004 - as of gzip or tarfile
    from filepact.text.edit import Edit, EditList
    from filepact.workspace.draft import Draft
    from filepact.workspace.receipt import FileReport, Receipt
    from filepact.workspace.target import Target
    from filepact.workspace.workspace import Workspace

VERSION = "0.1.0"
"""The one place where it stands: what packs a distribution reads it here."""


def unsupported() -> str:
    """Why nothing works on this system, and what does; empty where filepact runs."""
    import sys  # noqa: PLC0415 - its name is not ours to give away

    if sys.platform != "win32":
        return ""
    from filepact.errors import NOT_ON_WINDOWS  # noqa: PLC0415 - a hook has no time for it

    return NOT_ON_WINDOWS


__all__ = [
    "CODES",
    "Actor",
    "AgentTool",
    "Approval",
    "AsyncFiles",
    "AsyncTurn",
    "ChangeSet",
    "Checkpoint",
    "Document",
    "Draft",
    "Edit",
    "EditList",
    "FileChange",
    "FileReport",
    "FilepactError",
    "Files",
    "Match",
    "Operation",
    "Proposal",
    "Receipt",
    "Revision",
    "Session",
    "Settings",
    "Target",
    "Turn",
    "Workspace",
    "WorkspacePath",
    "open",
    "open_workspace",
    "read_settings",
    "state_folder",
]

_HOMES = {
    "CODES": "errors",
    "Actor": "domain.operation",
    "AgentTool": "faces.library.agent_tool",
    "Approval": "domain.operation",
    "AsyncFiles": "faces.library.async_files",
    "AsyncTurn": "faces.library.async_files",
    "ChangeSet": "domain.change",
    "Checkpoint": "domain.operation",
    "Document": "domain.document",
    "Draft": "workspace.draft",
    "Edit": "text.edit",
    "EditList": "text.edit",
    "FileChange": "domain.change",
    "FileReport": "workspace.receipt",
    "FilepactError": "errors",
    "Files": "faces.library.files",
    "Match": "faces.library.files",
    "Operation": "domain.operation",
    "Proposal": "domain.operation",
    "Receipt": "workspace.receipt",
    "Revision": "domain.document",
    "Session": "domain.operation",
    "Settings": "config.settings",
    "Target": "workspace.target",
    "Turn": "faces.library.files",
    "Workspace": "workspace.workspace",
    "WorkspacePath": "domain.document",
    "open": "faces.library.files",
    "open_workspace": "app",
    "read_settings": "config.person",
    "state_folder": "config.person",
}

_NAMES = {"open": "open_files"}
"""What is called otherwise where it stands."""


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only here

    found = getattr(import_module(f"{__name__}.{home}"), _NAMES.get(name, name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
