"""Who decides: a person at a terminal, or a program that says that it is meant to."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filepact.errors import UnattendedError
from filepact.faces.cli.place import person
from filepact.text.hidden import visible

if TYPE_CHECKING:
    from argparse import Namespace

    from filepact.domain.operation import Session
    from filepact.faces.cli.screen import Screen

__all__ = ["agrees", "at_terminal", "decider"]

_NAMED: Final = 6  # programs that one decision came through; the first of them say the most


def at_terminal(screen: Screen) -> bool:
    """Whether a person reads what is said here, and types what is asked."""
    asks = sys.stdin is not None and sys.stdin.isatty()
    return asks and screen.terminal and not screen.json


def decider(arguments: Namespace, screen: Screen) -> Session:
    """Whose word this is, and how it came: the journal keeps both.

    Raises:
        UnattendedError: Neither is a person there, nor does the caller say that none is needed.
    """
    there = at_terminal(screen)
    if not there and not arguments.unattended and not getattr(arguments, "dry_run", False):
        raise UnattendedError(
            f"`filepact {arguments.command}` is for a person at a terminal, and no terminal is here",
            hint="Type it in a terminal. A program of the person's that is meant to decide says "
            "`--unattended`, and stands in the journal.",
        )
    where = "at a terminal" if there else "without a terminal"
    programs = ", ".join(_callers())
    return person(how=f"{where}, from {programs}" if programs else where, program=not there)


def agrees(question: str, screen: Screen) -> bool:
    """Whether the person at the terminal says yes; an end of the input is a no."""
    while True:
        screen.ask(f"{question} [y/N] ")
        said = sys.stdin.readline()
        word = said.strip().lower()
        if word in ("y", "yes"):
            return True
        if word in ("", "n", "no"):
            return False


def _callers() -> list[str]:
    """The programs that this one was started by, the nearest first, as far as the system tells."""
    names: list[str] = []
    process = os.getppid()
    with suppress(OSError, ValueError, IndexError):
        while process > 1 and len(names) < _NAMED:
            # The name stands in brackets and may hold any; what follows the last one is numbers.
            told = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
            name, _, numbers = told.partition("(")[2].rpartition(")")
            names.append(visible(name).replace("\n", " "))
            process = int(numbers.split()[1])
    return names
