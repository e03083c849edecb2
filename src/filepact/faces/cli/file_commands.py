"""The tools of an agent as commands: the same names for the same things, done by a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.faces.cli.group import add_dry_run, count, whole

if TYPE_CHECKING:
    from filepact.faces.cli.group import Group

__all__ = ["add_file_commands"]


def add_file_commands(group: Group) -> None:
    """Add them, those that only look first."""
    _add_looking(group)
    _add_changing(group)


def _add_looking(group: Group) -> None:
    add = group.add(
        "read",
        "files:read",
        "print a text file, or a part of it",
        "filepact read src/app.py --offset 40 --lines 20",
    )
    add("path", metavar="PATH", help="the file")
    add("--lines", metavar="N", type=whole, help="most lines to print")
    add(
        "--offset",
        metavar="N",
        type=int,
        default=0,
        help="lines to skip (default: 0); -5 for the last five",
    )
    add("--column", metavar="N", type=whole, default=0, help="characters of the first one to skip")
    add("--base64", action="store_true", help="the bytes of any file as base64")
    add("--no-numbers", action="store_true", help="no line numbers")
    add = group.add(
        "find", "files:find", "list files whose path matches a glob", "filepact find '**/*.py' src"
    )
    add("pattern", metavar="GLOB", help="such as '**/*.ts'; quote it")
    add(
        "directory",
        metavar="DIR",
        nargs="?",
        default=".",
        help="where to look (default: this folder)",
    )
    add("--max", metavar="N", type=count, default=100, help="most files (default: 100)")
    add = group.add(
        "grep",
        "files:grep",
        "print lines that match a regular expression",
        "filepact grep 'def \\w+_test' src -C 2",
    )
    add("pattern", metavar="PATTERN", help="regular expression; letter case does not matter")
    add(
        "path", metavar="PATH", nargs="?", default=".", help="file or folder (default: this folder)"
    )
    add("--glob", metavar="GLOB", default="**/*", help="only files whose path matches")
    add(
        "-C",
        "--context",
        metavar="N",
        type=whole,
        default=0,
        help="lines before and after each match",
    )
    add("--max", metavar="N", type=count, default=50, help="most matches (default: 50)")
    add("--offset", metavar="N", type=whole, default=0, help="matches to skip")
    add("-s", "--case-sensitive", action="store_true", help="tell letter case apart")
    add("-U", "--multiline", action="store_true", help="let a match span lines")
    add(
        "-l",
        "--files",
        dest="output_mode",
        action="store_const",
        const="files",
        default="content",
        help="only the names of files",
    )
    add(
        "-c",
        "--count",
        dest="output_mode",
        action="store_const",
        const="count",
        help="only a count for each file",
    )
    add = group.add(
        "tree", "files:tree", "draw a folder and what it holds", "filepact tree src --depth 2"
    )
    add("path", metavar="PATH", nargs="?", default=".", help="the folder (default: this one)")
    add(
        "--depth",
        metavar="N",
        type=count,
        default=3,
        help="levels to descend, 1 to 10 (default: 3)",
    )
    add("--no-files", action="store_true", help="folders only")
    add("--pattern", metavar="GLOB", help="only files whose name matches")


def _add_changing(group: Group) -> None:
    add = group.add(
        "write",
        "files:write",
        "create a file or overwrite it",
        "echo hello | filepact write notes.txt",
        "The text comes from standard input, or from --content.",
    )
    add("path", metavar="PATH", help="the file")
    add("--content", metavar="TEXT", help="the text, instead of standard input")
    add("--append", action="store_true", help="add to the end instead")
    add("--create-dirs", action="store_true", help="make missing folders")
    add_dry_run(add, revision=True)
    add = group.add(
        "edit",
        "files:edit",
        "replace exact text in a file",
        "filepact edit app.py --old 'port = 80' --new 'port = 8080'",
        "The old text has to stand in the file once, or use --all.",
    )
    add("path", metavar="PATH", help="the file")
    add("--old", metavar="TEXT", help="text to replace")
    add("--old-file", metavar="FILE", help="the same from a file, - for standard input")
    add("--new", metavar="TEXT", help="text to put in its place")
    add("--new-file", metavar="FILE", help="the same from a file, - for standard input")
    add("--all", action="store_true", help="replace every occurrence")
    add_dry_run(add, revision=True)
    add = group.add(
        "patch",
        "files:patch",
        "apply a patch, all of it or nothing",
        "git diff | filepact patch -R",
        "The patch comes from standard input, or from --file; its names are relative to the root.",
    )
    add(
        "path",
        metavar="PATH",
        nargs="?",
        help="the one file to patch, when the patch does not name it",
    )
    add("--file", metavar="FILE", help="the patch, instead of standard input")
    add("-R", "--reverse", action="store_true", help="take the patch back")
    add_dry_run(add, revision=True)
    add = group.add(
        "mkdir", "files:mkdir", "make a folder, and those above it", "filepact mkdir docs/notes"
    )
    add("path", metavar="PATH", help="the folder")
    add_dry_run(add)
    add = group.add(
        "mv",
        "files:mv",
        "move or rename a file, or a folder with all it holds",
        "filepact mv src/old.py src/new.py",
    )
    add("path", metavar="PATH", help="the file or folder")
    add("to", metavar="NEW", help="the whole new path, which has to be free")
    add_dry_run(add, revision=True)
    add = group.add(
        "rm",
        "files:rm",
        "remove a file, or a folder with all it holds",
        "filepact rm docs/old.md",
        "`filepact undo` brings it back.",
    )
    add("path", metavar="PATH", help="the file or folder")
    add_dry_run(add, revision=True)
