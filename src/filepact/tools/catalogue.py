"""Every tool, in the order in which it is shown."""

from __future__ import annotations

from filepact.tools.edit import edit_file, write_file
from filepact.tools.patch import patch_apply
from filepact.tools.read import directory_tree, grep, read_file, search_files

__all__ = ["TOOLS"]

TOOLS = (
    read_file,
    write_file,
    edit_file,
    search_files,
    grep,
    directory_tree,
    patch_apply,
)
