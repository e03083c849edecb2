"""Every tool, in the order in which it is shown."""

from __future__ import annotations

from filepact.tools.edit import edit_file, write_file
from filepact.tools.history import history
from filepact.tools.manage import manage_files
from filepact.tools.patch import patch_apply
from filepact.tools.read import directory_tree, grep, read_file, search_files
from filepact.tools.solution import get_diagnostics, load, reload, server_status, sync
from filepact.tools.solution import write_file as write_solution_file

__all__ = ["SERVER_TOOLS", "SOLUTION_TOOLS", "TOOLS"]

TOOLS = (
    read_file,
    write_file,
    edit_file,
    search_files,
    grep,
    directory_tree,
    patch_apply,
)
"""The seven tools over files, which every face offers."""

SERVER_TOOLS = (*TOOLS, manage_files, history)
"""The toolset `files` of a server: with folders, and what an agent can do about its own changes."""

SOLUTION_TOOLS = (
    write_solution_file,
    get_diagnostics,
    load,
    reload,
    sync,
    server_status,
)
"""The toolset `solution`."""
