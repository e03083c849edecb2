"""The manual page and the completion scripts, made from the command; a wheel installs them.

`scripts/reference` writes them; a test compares.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import shtab

from filepact_cli.main import build_parser
from tests.architecture.project import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["COMPLETIONS", "PACKAGING", "files"]

PACKAGING = ROOT / "packaging"
COMPLETIONS = ROOT / "packages" / "filepact-cli" / "src" / "filepact_cli" / "completions"

_FOLDERS = ("DIR", "ROOT", "FOLDER")
_FILES = ("PATH", "FILE")
_IDS = ("OP", "ID")
_NEWEST = "{ filepact log -n 50; filepact review --list; } 2>/dev/null | cut -d' ' -f1 | grep '^c'"
_NAMED = "filepact checkpoint 2>/dev/null | cut -d' ' -f1"
_PREAMBLE = {
    "bash": f"""_filepact_ids() {{ compgen -W "$({_NEWEST})" -- "$1"; }}
_filepact_checkpoints() {{ compgen -W "$({_NAMED})" -- "$1"; }}""",
    "zsh": f"""_filepact_ids() {{ local -a ids; ids=(${{(f)"$({_NEWEST})"}}); compadd -a ids }}
_filepact_checkpoints() {{ local -a names; names=(${{(f)"$({_NAMED})"}}); compadd -a names }}""",
}


def files() -> dict[Path, str]:
    """By path, what each file holds."""
    scripts = {COMPLETIONS / shell: completion(shell) for shell in ("bash", "zsh", "fish", "tcsh")}
    return {PACKAGING / "filepact.1": manual(), **scripts}


def completion(shell: str) -> str:
    """The completion script of a shell: of commands and options, paths, and in bash and zsh of ids."""
    parser = build_parser()
    for action in actions(parser):
        if action.metavar in _FOLDERS:
            action.complete = shtab.DIRECTORY
        elif action.metavar in _FILES:
            action.complete = shtab.FILE
        elif action.metavar in _IDS:
            action.complete = dict.fromkeys(("bash", "zsh"), "_filepact_ids")
        elif action.help == "the checkpoint":
            action.complete = dict.fromkeys(("bash", "zsh"), "_filepact_checkpoints")
    return f"{shtab.complete(parser, shell, preamble=_PREAMBLE).rstrip()}\n"


def actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Every option and argument, of all commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from actions(command)


def manual() -> str:
    """The manual page, as roff with the macros of man(7)."""
    parser = build_parser()
    top = (parser.description or "").split("\n\n")
    lines = [
        '.TH FILEPACT 1 "" "filepact" "User Commands"',
        ".SH NAME",
        r"filepact \- what AI agents do to files, judged, shown, recorded and undoable",
        ".SH SYNOPSIS",
        r"\fBfilepact\fR [\fIOPTION\fR]... \fICOMMAND\fR [\fIARGUMENT\fR]...",
        ".SH DESCRIPTION",
        roff(top[0]),
        *(line for part in top[1:] for line in (".PP", ".nf", roff(part), ".fi")),
        ".SH OPTIONS",
        *options(parser),
        ".SH COMMANDS",
        *(line for name, one in commands(parser) for line in about(name, one)),
        ".SH EXIT STATUS",
        ".nf",
        roff((parser.epilog or "").partition("\n")[2].rstrip()),
        ".fi",
        ".SH FILES",
        roff(
            "Settings are in filepact.toml in the person's settings folder (filepact config path), the journal in "
            "the person's state folder (filepact status)."
        ),
    ]
    return "\n".join([*lines, ""])


def commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, one in action.choices.items():
                nested = list(commands(one))
                yield from ((f"{name} {below}", inner) for below, inner in nested)
                if not nested:
                    yield name, one


def about(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    places = [
        f" \\fI{roff(str(one.metavar or one.dest))}\\fR"
        for one in parser._actions
        if not one.option_strings and one.nargs != argparse.REMAINDER
    ]
    yield f".SS filepact {roff(name)}{''.join(places)}"
    yield roff(parser.description or "")
    yield from options(parser)


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options of a command; those that every command takes are told once, at the top."""
    top = parser.prog == "filepact" and any(
        isinstance(one, argparse._SubParsersAction) for one in parser._actions
    )
    shared = {"--root", "--state", "--config", "--json", "--no-color", "--no-pager", "--help"}
    for one in parser._actions:
        if not one.option_strings or (not top and shared & set(one.option_strings)):
            continue
        takes = "" if one.nargs == 0 else f" \\fI{roff(str(one.metavar or one.dest))}\\fR"
        names = ", ".join(f"\\fB{roff(name)}\\fR" for name in one.option_strings)
        yield from (".TP", f"{names}{takes}", roff(one.help or ""))


def roff(text: str) -> str:
    """Text that the formatter prints as it is."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("%%", "%")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in text.split("\n"))


if __name__ == "__main__":
    for path, text in files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
