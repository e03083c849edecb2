"""What every command of the command line has: how it is declared and what all of them take."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Group",
    "Misuse",
    "Parser",
    "add_dry_run",
    "add_unattended",
    "count",
    "seconds",
    "whole",
]


class Misuse(Exception):  # noqa: N818 - not an error of the product; becomes exit code 2
    """The command line cannot be understood.

    Args:
        message: What is wrong with it.
        usage: The usage line of the command that was meant.
    """

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.message = message
        self.usage = usage


class Parser(argparse.ArgumentParser):
    """Says what is wrong to the caller, who knows in which form it is wanted."""

    def error(self, message: str) -> NoReturn:
        raise Misuse(message, self.format_usage())


@dataclass(frozen=True, slots=True)
class Group:
    """Where commands are added, and the options that all of them take."""

    commands: argparse._SubParsersAction[Parser]
    common: Parser

    def add(
        self, name: str, does: str, short: str, example: str, more: str = ""
    ) -> Callable[..., Any]:
        """Add a command; the answer adds its arguments.

        Args:
            name: What people type.
            does: The function behind it, as ``module:function`` of this package.
            short: What it does, one line for the list of commands.
            example: One way to call it.
            more: Further sentences for its own help.
        """
        about = f"{short[:1].upper()}{short[1:]}."
        parser = self.commands.add_parser(
            name,
            parents=[self.common],
            help=short,
            description=f"{about} {more}".strip(),
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        parser.set_defaults(does=does)
        return parser.add_argument

    def nested(self, name: str, short: str, more: str) -> Group:
        """Add a word that further commands stand below; they are added to the answer.

        Args:
            name: What people type first.
            short: What the commands are about, one line for the list of commands.
            more: Further sentences for its own help.
        """
        about = f"{short[:1].upper()}{short[1:]}."
        parser = self.commands.add_parser(
            name,
            help=short,
            description=f"{about} {more}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        below = parser.add_subparsers(
            dest="below", metavar="COMMAND", title="commands", required=True, parser_class=Parser
        )
        return Group(below, self.common)


def add_dry_run(add: Callable[..., Any], *, revision: bool = False) -> None:
    """Add what every command takes that changes files."""
    add("--dry-run", action="store_true", help="only show the diff, change nothing")
    if revision:
        add("--expect", metavar="REVISION", help="refuse if the file is at another revision")


def add_unattended(add: Callable[..., Any]) -> None:
    """Add what every command takes that is a person's decision."""
    add(
        "--unattended",
        action="store_true",
        help="decide without a person at a terminal, and without a question; the journal says so",
    )


def whole(text: str) -> int:
    """A number of at least 0."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number


def count(text: str) -> int:
    """A number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


def seconds(text: str) -> float:
    """A time of up to an hour."""
    number = float(text)
    if not 0 < number <= 3_600:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 3600")
    return number


whole.__name__ = count.__name__ = seconds.__name__ = "number"
