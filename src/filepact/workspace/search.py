"""Find files, search their contents, draw folders: all through the guard's question.

The parts stand in :mod:`~filepact.workspace.find`, :mod:`~filepact.workspace.grep` and
:mod:`~filepact.workspace.tree`, which return values, and in :mod:`~filepact.workspace.findings`,
which writes the first two as text.
"""

from __future__ import annotations

from filepact.workspace.find import Found, find_files
from filepact.workspace.findings import render_found, render_grepped
from filepact.workspace.grep import FILE_LIMIT, FileMatches, GrepMode, Grepped, Line, grep
from filepact.workspace.tree import Tree, tree

__all__ = [
    "FILE_LIMIT",
    "FileMatches",
    "Found",
    "GrepMode",
    "Grepped",
    "Line",
    "Tree",
    "find_files",
    "grep",
    "render_found",
    "render_grepped",
    "tree",
]
