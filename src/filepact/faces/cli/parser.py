"""The whole command line as one parser.

Only the standard library's argparse: `filepact --help` has to answer at once.  Each command names
the function that does it as ``module:function`` of this package, imported when it is called.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING

from filepact.faces.cli.acp_commands import add_acp_commands
from filepact.faces.cli.commands import add_commands
from filepact.faces.cli.file_commands import add_file_commands
from filepact.faces.cli.group import Group, Misuse, Parser

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["build_parser", "parse"]

_TOP = """\
The guarded, previewable, undoable door through which AI agents read and change your files.

Look at what agents did, and take it back:
  filepact log                 what was done here, newest first
  filepact diff c4k2m          what one operation changed
  filepact undo                take the newest operation back
Connect an agent:
  filepact setup               the lines for Claude Code, Codex, Gemini CLI, VS Code, Cursor, Zed
  filepact tour                see it at work in a minute, on a copy
"""

_CODES = """\
exit codes:
  0 done   1 refused or failed, the answer says why   2 wrong usage
  3 nothing found or nothing to do   130 interrupted
"""


def parse(words: Sequence[str]) -> argparse.Namespace:
    """What a command line says; `does` names the function to call.

    An editor waits for `filepact acp -- AGENT`, so the other commands are not made for it.

    Raises:
        Misuse: It cannot be understood.
    """
    before = list(words[: words.index("--")]) if "--" in words else []
    if "acp" in before and "-h" not in before and "--help" not in before:
        # Whatever is not understood is for the whole parser to explain.
        with suppress(Misuse):
            return build_parser(only_acp=True).parse_args(words)
    return build_parser().parse_args(words)


def build_parser(*, only_acp: bool = False) -> argparse.ArgumentParser:
    """The whole command line as a parser, or as much of it as has to do with that protocol."""
    parser = Parser(
        prog="filepact",
        description=_TOP,
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    _add_common(parser, default=None)
    common = Parser(add_help=False)
    # What was said before the command's name must outlive the command's own defaults.
    _add_common(common, default=argparse.SUPPRESS)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=Parser
    )
    group = Group(commands, common)
    if not only_acp:
        add_commands(group)
        add_file_commands(group)
    add_acp_commands(group)
    return parser


def _add_common(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    shared = parser.add_argument_group("options of every command")
    before = default is None
    shared.add_argument(
        "--root",
        dest="root" if before else "root_after",
        metavar="DIR",
        action="append",
        default=default,
        help="folder to work in, may be given several times (default: the nearest folder known "
        "to the journal, else the git top level, else this folder; FILEPACT_ROOT)",
    )
    shared.add_argument(
        "--state",
        metavar="DIR",
        default=default,
        help="state folder with the journal (default: the user's; FILEPACT_STATE_DIR)",
    )
    shared.add_argument(
        "--config",
        metavar="FILE",
        default=default,
        help="file with your settings (default: filepact.toml in your settings folder; "
        "FILEPACT_CONFIG)",
    )
    for option, about in (
        ("--json", "print exactly one JSON object"),
        ("--no-color", "no colours (NO_COLOR); never in a pipe"),
        ("--no-pager", "long answers at once (FILEPACT_PAGER, PAGER); always in a pipe"),
    ):
        shared.add_argument(
            option, action="store_true", default=False if before else default, help=about
        )
