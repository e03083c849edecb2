"""Every tool, in the order in which it is shown."""

from __future__ import annotations

from filepact.tools.edit import edit_file, write_file
from filepact.tools.patch import patch_apply
from filepact.tools.read import directory_tree, grep, read_file, search_files
from filepact.tools.solution import get_diagnostics, load, reload, server_status, sync
from filepact.tools.solution import write_file as write_solution_file

__all__ = ["SOLUTION_TOOLS", "TOOLS"]

TOOLS = (
    read_file,
    write_file,
    edit_file,
    search_files,
    grep,
    directory_tree,
    patch_apply,
)
"""The toolset `files`."""

SOLUTION_TOOLS = (
    write_solution_file,
    get_diagnostics,
    load,
    reload,
    sync,
    server_status,
)
"""The toolset `solution`."""
