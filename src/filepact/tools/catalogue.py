"""Toolsets over files: every tool of theirs, in the order in which it is shown."""

from __future__ import annotations

from filepact.tools.edit import edit_file, history, manage_files, write_file
from filepact.tools.patch import patch_apply
from filepact.tools.read import directory_tree, grep, read_file, search_files

__all__ = ["SERVER_TOOLS", "TOOLS"]

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
