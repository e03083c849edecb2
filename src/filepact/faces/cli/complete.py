"""Completion scripts for shells, made from the command's own parser."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import shtab

from filepact.faces.cli.main import build_parser
from filepact.faces.cli.screen import CommandAnswer, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact.faces.cli.screen import Terminal

__all__ = ["completion", "script"]

_FOLDERS = ("DIR", "ROOT")
_FILES = ("PATH", "FILE")


def completion(arguments: argparse.Namespace, _screen: Terminal) -> CommandAnswer:
    """Print the script of one shell."""
    made = script(arguments.shell)
    return CommandAnswer(plain(made), {"shell": arguments.shell, "script": made})


def script(shell: str) -> str:
    """The completion script of a shell: ``bash``, ``zsh``, ``fish`` or ``tcsh``."""
    parser = build_parser()
    for action in _actions(parser):
        if action.metavar in _FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # how shtab is told
        elif action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # how shtab is told
    return f"{shtab.complete(parser, shell).rstrip()}\n"


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Every option and argument, of all commands."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list them
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - nor a public name
            for command in action.choices.values():
                yield from _actions(command)
