"""Declares every command: its names, arguments and help, and the function behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact_cli.journal_commands import add_journal_commands
from filepact_cli.parser import RECEIPT, add_dry_run, add_offer, add_unattended, count, whole

if TYPE_CHECKING:
    from filepact_cli.parser import CommandGroup

__all__ = ["add_commands", "add_file_commands"]


def add_commands(group: CommandGroup) -> None:
    """Add them, in the order in which the help shows them."""
    _add_serving(group)
    add_journal_commands(group)
    _add_looking(group)
    _add_rules(group)
    _add_config(group)


def _add_serving(group: CommandGroup) -> None:
    add = group.add(
        "mcp",
        "serve:mcp",
        "serve folders to an agent over MCP on standard input and output",
        "filepact mcp ~/project --mode preview",
        "The agent can use only these folders. With --toolset solution, the first may be a "
        ".sln, .slnx or .csproj file, which means its folder.",
    )
    add(
        "roots",
        metavar="ROOT",
        nargs="+",
        help="folder that the agent may use; the first is its working folder",
    )
    add(
        "--toolset",
        choices=("files", "solution"),
        default="files",
        help="files: read, search and change files; solution: write files of a solution, with what "
        "language servers find in them (default: files)",
    )
    add(
        "--read-only",
        action="store_true",
        help="offer only tools that change nothing, as --max-level safe does",
    )
    add_offer(add)
    add(
        "--mode",
        choices=("auto", "review", "preview", "read-only"),
        default="auto",
        help="auto: do what the rules allow; review (old name: preview): every change waits for a person; "
        "read-only: as --read-only (default: auto)",
    )
    add = group.add(
        "completion",
        "main:completion",
        "print a completion script for a shell",
        'eval "$(filepact completion bash)"',
        answers="shell, script",
    )
    add("shell", choices=("bash", "zsh", "fish", "tcsh"), help="the shell")


def _add_looking(group: CommandGroup) -> None:
    add = group.add(
        "doctor",
        "doctor:doctor",
        "check the installation, the state folder and this folder",
        "filepact doctor",
        "Each problem comes with its fix. The exit code is 1 if there is a problem. Also lists the installed language servers, "
        "and how to install those that fit this folder's files. "
        "With --journal: rebuilds every text and compares it with its id, and lists what the state folder takes, who has "
        "the journal open, and files there that do not belong to it. Servers may be running. "
        "With --repair: keeps the damaged journal in the state folder, and lists what is lost. No server may be running. "
        "Of a sound journal that differs from the audit log, it records in the log that they differ: "
        "`filepact audit verify` then compares only what comes later. The exit code is 3 if there is nothing to repair. "
        "With --moved: call it in the folder, where it lies now. `filepact status`, `log` and `doctor` say when it is needed.",
        answers="ok, guard, diagnostics, checks; with --moved: from, to, operations; with --journal: state, sound, journal, bytes, in_use_by, besides; with --repair: operations, contents, lost, damaged_folder, or written_down",
    )
    add(
        "--all",
        action="store_true",
        help="list every known language server, and every package",
    )
    add(
        "--servers",
        action="store_true",
        help="start each language server that has files here, and show its version and the time "
        "to its first diagnostics",
    )
    for option, does, said in (
        ("--journal", "check", "instead: check the whole journal, and list what cannot be undone"),
        ("--repair", "repair", "instead: rebuild a damaged journal from what can still be read"),
    ):
        add(option, dest="does", action="store_const", const=f"state:{does}", help=said)
    add(
        "--moved",
        metavar="FOLDER",
        help="instead: keep the history of a folder that you have moved or renamed; FOLDER is where it lay before",
    )


def _add_rules(group: CommandGroup) -> None:
    add = group.add(
        "explain",
        "policy:explain",
        "say whether a file may be read and written, which rule decides, and how to change that",
        "filepact explain src/.env --action write --agent claude-code",
        "Opens and changes nothing. The exit code is 0 for every verdict.",
        answers="path, root, action, agent, verdict, rule, harmless, refusal, resolved, compared, missing, alike, others, advice; reading, the same for reading, where no action is named",
    )
    add("path", metavar="PATH", help="the file, which need not exist")
    add(
        "--action",
        choices=("read", "list", "write", "create", "delete"),
        help="what is to be done to it (default: read and write, both are told)",
    )
    add(
        "--agent",
        metavar="NAME",
        default="",
        help="the name that the agent gives itself (default: none, as for a person)",
    )
    below = group.nested(
        "policy",
        "look at the rules, and check them",
        "Rules are in filepact.toml, an administrator's and your own, and in a project's "
        ".filepact.toml, which can only add restrictions. `filepact policy show` says where these "
        "files are.",
    )
    add = below.add(
        "show",
        "policy:show",
        "list every rule in force here, strictest file first, with its file and line",
        "filepact policy show --built-in",
        answers="files, rules, keep",
    )
    add("--built-in", action="store_true", help="also the rules that come with filepact")
    add = below.add(
        "lint",
        "policy:lint",
        "list all mistakes in the files of rules",
        "filepact policy lint .filepact.toml",
        "The exit code is 1 if there are any. No other command starts while a file in force has mistakes. If "
        "there are none, it says what each rule answers when an agent asks for permission to read, change, "
        "delete or move a file, to run a command, to fetch, to use another tool or to switch its mode.",
        answers="files, problems, answers",
    )
    add(
        "file",
        metavar="FILE",
        nargs="?",
        help="only this one: a .filepact.toml as a project's, any other as a person's "
        "(default: every file in force here)",
    )
    below.add(
        "test",
        "policy:test",
        "check the rules against the [[expect]] tables of their files",
        "filepact policy test",
        "The exit code is 1 if one fails, 3 if there are none.",
        answers="expectations",
    )
    add = below.add(
        "grants",
        "deciding:grants",
        "list what was approved in advance, or revoke it",
        "filepact policy grants --revoke g4k2m",
        "You approve in advance with `filepact approve ID --also GLOB`. This holds for one session of one agent, for the "
        "rules that asked, and for a day at most. It never holds for rules that look at the text of a change. What you allow in "
        "an editor's dialog for longer than once is listed as well.",
        answers="grants",
    )
    add(
        "--revoke",
        metavar="ID",
        action="append",
        default=[],
        help="from now on you are asked again",
    )
    add("--all", action="store_true", help="include expired and revoked ones")
    add_unattended(add)


def _add_config(group: CommandGroup) -> None:
    below = group.nested(
        "config",
        "show and edit your settings",
        "They are in filepact.toml in your settings folder, or the file that --config or FILEPACT_CONFIG names.",
    )
    below.add(
        "show",
        "config:show",
        "list every setting in force, and which of them are yours",
        "filepact config show",
        answers="path, exists, settings",
    )
    below.add(
        "edit",
        "config:edit",
        "edit your settings file, and save it only if it has no mistakes",
        "EDITOR=nano filepact config edit",
        "The editor is VISUAL or EDITOR. If you have no settings file, you start with one that has every setting "
        "as a comment.",
        answers="path",
    )
    below.add(
        "path",
        "config:path",
        "print where your settings file is",
        "filepact config path",
        answers="path, exists",
    )
    below.add(
        "schema",
        "config:schema",
        "print the JSON schema of the file, for editors that check TOML",
        "filepact config schema > filepact.schema.json",
    )


def add_file_commands(group: CommandGroup) -> None:
    """Add them, those that only look first."""
    _add_file_reads(group)
    _add_file_changes(group)


def _add_file_reads(group: CommandGroup) -> None:
    add = group.add(
        "read",
        "files:read",
        "print a text file, or a part of it",
        "filepact read src/app.py --offset 40 --lines 20",
        answers="shown, lines, first, total, more, size, encoding, ends, revision, ends_with_newline, column, goes_on, within, start, text",
    )
    add("path", metavar="PATH", help="the file")
    add("--lines", metavar="N", type=whole, help="print at most N lines")
    add(
        "--offset",
        metavar="N",
        type=int,
        default=0,
        help="skip N lines (default: 0); -5 prints the last five",
    )
    add("--column", metavar="N", type=whole, default=0, help="skip N characters of the first line")
    add("--base64", action="store_true", help="print the bytes of any file as base64")
    add("--no-numbers", action="store_true", help="without line numbers")
    add = group.add(
        "find",
        "files:find",
        "list files whose path matches a glob",
        "filepact find '**/*.py' src",
        answers="pattern, paths, total, total_is_floor, unreadable, stopped, looked_at, unsearched, lasts, text",
    )
    add("pattern", metavar="GLOB", help="such as '**/*.ts', in quotes")
    add(
        "directory",
        metavar="DIR",
        nargs="?",
        default=".",
        help="where to look (default: this folder)",
    )
    add("--max", metavar="N", type=count, default=100, help="at most N files (default: 100)")
    add = group.add(
        "grep",
        "files:grep",
        "print lines that match a regular expression",
        "filepact grep 'def \\w+_test' src -C 2",
        answers="pattern, mode, files, total, matches, total_is_floor, offset, shown, searched, binary, large, slow, unreadable, stopped, more, unsearched, text",
    )
    add("pattern", metavar="PATTERN", help="regular expression; case is ignored without -s")
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
    add("--max", metavar="N", type=count, default=50, help="at most N matches (default: 50)")
    add("--offset", metavar="N", type=whole, default=0, help="skip N matches")
    add("-s", "--case-sensitive", action="store_true", help="match upper and lower case exactly")
    add("-U", "--multiline", action="store_true", help="let a match span several lines")
    add(
        "-l",
        "--files",
        dest="output_mode",
        action="store_const",
        const="files",
        default="content",
        help="print only the names of the files",
    )
    add(
        "-c",
        "--count",
        dest="output_mode",
        action="store_const",
        const="count",
        help="print only a count for each file",
    )
    add = group.add(
        "tree",
        "files:tree",
        "draw the tree of a folder",
        "filepact tree src --depth 2",
        answers="text, directories, files, hidden, totals_are_floor",
    )
    add("path", metavar="PATH", nargs="?", default=".", help="the folder (default: this one)")
    add(
        "--depth",
        metavar="N",
        type=count,
        default=3,
        help="levels to descend, 1 to 10 (default: 3)",
    )
    add("--no-files", action="store_true", help="only folders")
    add("--pattern", metavar="GLOB", help="only files whose name matches")


def _add_file_changes(group: CommandGroup) -> None:
    add = group.add(
        "write",
        "files:write",
        "create a file or overwrite it",
        "echo hello | filepact write notes.txt",
        "The text comes from standard input, or from --content.",
        answers=RECEIPT,
    )
    add("path", metavar="PATH", help="the file")
    add("--content", metavar="TEXT", help="the text, in place of standard input")
    add("--append", action="store_true", help="add the text to the end of the file")
    add("--create-dirs", action="store_true", help="make the folders above it that are missing")
    add_dry_run(add, revision=True)
    add = group.add(
        "edit",
        "files:edit",
        "replace exact text in a file",
        "filepact edit app.py --old 'port = 80' --new 'port = 8080'",
        "The old text must occur exactly once, unless --all is given.",
        answers=RECEIPT,
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
        answers=RECEIPT,
    )
    add(
        "path",
        metavar="PATH",
        nargs="?",
        help="the file to patch, if the patch does not name it",
    )
    add("--file", metavar="FILE", help="the patch, in place of standard input")
    add("-R", "--reverse", action="store_true", help="apply it in reverse")
    add_dry_run(add, revision=True)
    add = group.add(
        "mkdir",
        "files:mkdir",
        "make a folder, and those above it that are missing",
        "filepact mkdir docs/notes",
        answers=RECEIPT,
    )
    add("path", metavar="PATH", help="the folder")
    add_dry_run(add)
    add = group.add(
        "mv",
        "files:mv",
        "move or rename a file, or a folder with all it holds",
        "filepact mv src/old.py src/new.py",
        answers=RECEIPT,
    )
    add("path", metavar="PATH", help="the file or folder")
    add("to", metavar="NEW", help="the new path, name included, where nothing may be yet")
    add_dry_run(add, revision=True)
    add = group.add(
        "rm",
        "files:rm",
        "remove a file, or a folder with all it holds",
        "filepact rm docs/old.md",
        "`filepact undo` brings it back.",
        answers=RECEIPT,
    )
    add("path", metavar="PATH", help="the file or folder")
    add_dry_run(add, revision=True)
