"""Declares commands: the parser of the command line, and the options that commands share.

Only the standard library's argparse: `filepact --help` has to answer at once.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from filepact.values import dataclass
from filepact_cli.screen import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from _typeshed import SupportsWrite

__all__ = [
    "CHANGE",
    "GROUPS",
    "OLD_NAMES",
    "OVERVIEW",
    "RECEIPT",
    "WORDS",
    "CommandError",
    "CommandGroup",
    "CommandParser",
    "add_dry_run",
    "add_offer",
    "add_unattended",
    "count",
    "meant",
    "new_parser",
    "numbers",
    "renewed",
    "seconds",
    "whole",
]


OVERVIEW = """\
Look at what agents did, and take it back:
  filepact log             what was done here, newest first
  filepact diff c4k2m      what one operation changed
  filepact undo            take the newest operation back
Connect an agent:
  filepact setup           which agents are here, and how each is connected
  filepact setup claude    what would change in its settings (--write does it)
  filepact tour            see it at work in a minute, on a copy
All commands: filepact --help
"""
"""The commands to begin with."""

_TOP = (
    "The guarded, previewable, undoable door through which AI agents read and change your files.\n\n"
    + OVERVIEW.rpartition("All commands")[0]
)

GROUPS: Final = {
    "look, and take back": "log show diff undo redo status checkpoint restore",
    "decide": "approve reject",
    "set up": "doctor config completion",
    "rules": "explain policy",
    "run and watch programs": "",
    "files by hand": "read find grep tree write edit patch mkdir mv rm",
    "servers and teams": "mcp audit",
}
"""The commands by what people want, at most ten of each kind, what is wanted most first.  Those of extensions say which, or are of the last."""

Place = tuple[str, Literal["first", "last"]]
"""One of `GROUPS`, and whether before or behind the core's own commands of it."""

RECEIPT: Final = "operation, status, confirmed, files, diff, summary, notes, left"
"""The fields of the object that a command prints which has changed files."""

CHANGE: Final = (
    "id, kind, state, summary, tool, created, actor, session, turn, call, target, added, removed, files; of an "
    "operation: seq, undone_by, approved_by, note; of a proposal: rule, reason"
)
"""Those of an operation, or of a proposal."""

_CODES = """\
exit codes:
  0 done   1 refused or failed, the answer says why   2 wrong usage
  3 nothing found or nothing to do   130 interrupted
"""


_USUAL = 78


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps each line of descriptions and epilogues, and keeps the line breaks between them."""

    def __init__(self, prog: str, **options: Any) -> None:
        # One is made for each argument; without a width it would ask for that each time, through a module
        # that takes as long to load as a tenth of a server's start.
        options.setdefault("width", _USUAL)
        super().__init__(prog, **options)

    def format_help(self) -> str:
        """All of it, as wide as the terminal is."""
        import shutil  # noqa: PLC0415 - for help alone

        if self._width == _USUAL:
            self._width = shutil.get_terminal_size().columns - 2
            self._max_help_position = min(self._max_help_position, max(self._width - 20, 4))
        return super().format_help()

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        import textwrap  # noqa: PLC0415 - for help alone

        lines = (textwrap.fill(line, width, break_on_hyphens=False) for line in text.splitlines())
        return textwrap.indent("\n".join(lines), indent)


class CommandParser(argparse.ArgumentParser):
    """Says what is wrong to the caller, who knows in which form it is wanted.

    Attributes:
        answers: The fields of the object that the command prints with ``--json``, as `CommandGroup.add` has them.
    """

    answers: str = ""

    def format_help(self) -> str:
        """As of argparse, but that of all commands has them in groups."""
        text = super().format_help()
        every = [one for one in self._actions if isinstance(one, argparse._SubParsersAction)]  # noqa: SLF001 - no public name
        if not every or self.prog != "filepact":
            return text
        head, list_of_them, rest = text.partition("\ncommands:\n")
        if not list_of_them:
            return text
        does = {one.dest: one.help or "" for one in every[0]._choices_actions}  # noqa: SLF001 - the same
        places = {name: one.get_default("place") for name, one in every[0].choices.items()}
        groups = {
            title: [
                *(name for name in does if places[name] == (title, "first")),
                *names.split(),
                *(name for name in does if places[name] == (title, "last")),
            ]
            for title, names in GROUPS.items()
        }
        known = {name for names in groups.values() for name in names}
        [*groups.values()][-1].extend(name for name in does if name not in known)
        lines = [
            line
            for title, names in groups.items()
            for line in ("", f"{title}:", *_in_columns({name: does[name] for name in names}))
        ]
        usage, _, options = head.partition("\noptions:\n")
        after = rest.partition("\nexit codes:")[2]
        listed = "\n".join(lines)
        return f"{usage}{listed}\n\noptions:\n{options}\nexit codes:{after}"

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """As of argparse, which keeps quiet where nobody can get it."""
        stream = sys.stderr if file is None else file
        stream.write(message)
        sys.stdout.flush()

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong, in other words than argparse has for it."""
        _, missing, names = message.partition("the following arguments are required: ")
        if missing:
            message = f"`{self.prog}` needs {names.upper() if names.islower() else names}"
        if names == "COMMAND":
            raise CommandError(message.replace("COMMAND", "one more word"), self._below())
        message = message.removeprefix("argument ").replace(
            ": invalid number value: ", ": not a number: "
        )
        raise CommandError(message, f"See `{self.prog} --help`.")

    def _below(self) -> str:
        """The commands below this word, each in a line."""
        lines = [
            (f"{self.prog} {one.dest}", one.help)
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - no public name
            for one in action._choices_actions  # noqa: SLF001 - the same
        ]
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"  {name:<{width}}  {does}" for name, does in lines)

    def parse_known_args(  # type: ignore[override]  # of its overloads only this one is used
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """As of argparse, but what a command does not know is that command's to explain."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self._explain_unknown(unknown)
        return found, unknown

    def _explain_unknown(self, unknown: Sequence[str]) -> NoReturn:
        word = unknown[0]
        if not word.startswith("-"):
            raise CommandError(
                f"`{self.prog}` does not take {' '.join(unknown)!r}", f"See `{self.prog} --help`."
            )
        option = word.partition("=")[0]
        raise CommandError(
            f"`{self.prog}` has no option {option}",
            # Without the dashes, which all have in common.
            meant(option[2:], [one[2:] for one in self._option_string_actions], "--{}")
            or f"`{self.prog} --help` lists its options.",
        )

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """As of argparse, but with the command that was probably meant, instead of all of them."""
        commands = isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - no public name
        known = list(action.choices or ()) if commands else [value]
        if value not in known:
            raise CommandError(
                f"there is no command `{self.prog} {value}`",
                _instead(self.prog, value)
                or meant(str(value), known, f"`{self.prog} {{}}`")
                or f"`{self.prog} --help` lists the commands.",
            )
        if action.choices is not None and value not in action.choices:
            options = [str(one) for one in action.choices]
            name = "/".join(action.option_strings) or str(action.metavar or action.dest).upper()
            raise CommandError(
                f"{name} cannot be {value!r}; it is one of {', '.join(options)}",
                meant(str(value), options, "{}")
                or _instead(self.prog)
                or f"See `{self.prog} --help`.",
            )
        super()._check_value(action, value)


OLD_NAMES: Final = {
    "pending": "review --list",
    "grants": "policy grants",
    "checkpoints": "checkpoint",
    "state check": "doctor --journal",
    "state repair": "doctor --repair",
    "state move": "doctor --moved",
}
"""What commands were called before, and what that is now: understood for the scripts that have it, and shown nowhere."""


def renewed(words: Sequence[str]) -> list[str]:
    """A command line with the present name of its command."""
    if not {name.partition(" ")[0] for name in OLD_NAMES}.intersection(words):
        return [*words]
    from filepact.domain.person import command_place  # noqa: PLC0415 - for old names

    place = command_place(words)
    for length in (1, 2):
        name = " ".join(words[place : place + length])
        if name in OLD_NAMES:
            return [*words[:place], *OLD_NAMES[name].split(), *words[place + length :]]
    return [*words]


WORDS: Final = {
    "setup": "init connect start enable attach link add hooks register configure",
    "setup AGENT --remove": "uninstall remove disconnect disable detach unlink unsetup",
    "setup AGENT": "install",
    "doctor": "troubleshoot diagnose check verify health debug test state journal repair",
    "tour": "demo example tutorial try learn",
    "undo": "revert rollback back reset discard",
    "restore": "goto rewind checkout",
    "log": "history list activity audit-log operations turns changes",
    "review": "ui tui gui web proposals queue waiting",
    "approve": "accept allow yes confirm apply commit",
    "reject": "deny refuse no decline",
    "explain": "why blame who",
    "policy show": "rules rule permissions protect",
    "config show": "settings options preferences set get",
    "guard": "watch monitor record daemon",
    "run -- COMMAND": "exec sandbox wrap",
    "mcp FOLDER": "server mcp-server start-server",
    "read": "cat open view print",
    "find": "ls dir files glob",
    "grep": "search rg",
    "rm": "delete del",
    "mv": "move rename",
    "mkdir": "md",
    "write": "create touch new",
}
"""What people type for it elsewhere, by what to type here."""


def _instead(prog: str, word: str = "") -> str:
    """Return a sentence with our command for a common word of other programs; empty for none."""
    if prog == "filepact install":
        return "`filepact setup AGENT` connects an agent or editor."
    found = [name for name, words in WORDS.items() if prog == "filepact" and word in words.split()]
    return f"Did you mean `filepact {found[0]}`?" if found else ""


def _in_columns(lines: Mapping[str, str]) -> Iterator[str]:
    """Names, and beside each what it is, within the terminal's width."""
    import shutil  # noqa: PLC0415 - for help alone
    import textwrap  # noqa: PLC0415 - the same

    room = shutil.get_terminal_size().columns - 2
    for name, text in lines.items():
        yield from textwrap.wrap(
            text,
            room,
            initial_indent=f"  {name:<12} ",
            subsequent_indent=" " * 15,
            break_on_hyphens=False,
        )


def meant(word: str, known: Iterable[str], form: str) -> str:
    """Which of some words was probably meant, as a question; empty for none.

    Args:
        word: What was typed.
        known: The words that there are.
        form: How one is written in the question.
    """
    import difflib  # noqa: PLC0415 - only for what was mistyped

    near = difflib.get_close_matches(word, known, n=1, cutoff=0.65)
    return f"Did you mean {form.format(*near)}?" if near else ""


@dataclass(frozen=True, slots=True)
class CommandGroup:
    """A group to which commands are added; all of them take the same common options.

    Attributes:
        commands: Where.
        common: The options.
        only: The names of the commands to make; None makes all, and the others are passed over.
    """

    commands: argparse._SubParsersAction[CommandParser]
    common: CommandParser
    only: frozenset[str] | None = None

    def add(
        self,
        name: str,
        does: str,
        short: str,
        example: str,
        more: str = "",
        *,
        answers: str = "",
        extra: str = "",
        place: Place | None = None,
    ) -> Callable[..., Any]:
        """Add a command; the answer adds its arguments.

        Args:
            name: What people type.
            does: The function behind it, as ``module:function`` of this package, or of another by the module's whole name.
            short: What it does, one line for the list of commands.
            example: One way to call it.
            more: Further sentences for its own help.
            answers: The names of all fields of the object that it prints with ``--json``, in words that say when it has
                which; empty for a command that prints no such object.
            extra: What has to be installed with filepact for it; empty for nothing.
            place: Where an extension's command is listed; behind all others if it does not matter.
        """
        if not self._wants(name):
            return _pass_over
        about = f"{short[:1].upper()}{short[1:]}."
        parser = self.commands.add_parser(
            name,
            parents=[self.common],
            help=short,
            description=f"{about} {more}".strip(),
            epilog=f"example:\n  {example}"
            + (f"\n\nfields with --json: {answers}" if answers else ""),
            formatter_class=_HelpFormatter,
            allow_abbrev=False,
        )
        parser.answers = answers
        parser.set_defaults(does=does, extra=extra, **({"place": place} if place else {}))
        return parser.add_argument

    def hand_on(self, name: str, does: str, short: str, more: str) -> None:
        """Add a command whose words are another program's, options and `--` among them.

        Args:
            name: What people type.
            does: The function behind it, as ``module:function`` of this package.
            short: What it does, one line for the list of commands.
            more: Further sentences, for the reference.
        """
        if not self._wants(name):
            return
        about = f"{short[:1].upper()}{short[1:]}."
        parser = self.commands.add_parser(
            name,
            help=short,
            description=f"{about} {more}",
            add_help=False,
            allow_abbrev=False,
            # No word begins with it, so that none is taken for an option of ours.
            prefix_chars="\0",
        )
        parser.add_argument(
            "words", metavar="WORD", nargs=argparse.REMAINDER, help="for the other command"
        )
        parser.set_defaults(does=does)

    def nested(self, name: str, short: str, more: str) -> CommandGroup:
        """Add a word that further commands stand below; they are added to the answer.

        Args:
            name: What people type first.
            short: What the commands are about, one line for the list of commands.
            more: Further sentences for its own help.
        """
        if not self._wants(name):
            return CommandGroup(self.commands, self.common, frozenset())
        about = f"{short[:1].upper()}{short[1:]}."
        parser = self.commands.add_parser(
            name,
            help=short,
            description=f"{about} {more}",
            formatter_class=_HelpFormatter,
            allow_abbrev=False,
        )
        below = parser.add_subparsers(
            dest="below",
            metavar="COMMAND",
            title="commands",
            required=True,
            parser_class=CommandParser,
        )
        return CommandGroup(below, self.common)

    def is_empty(self) -> bool:
        """Whether no command was made so far."""
        return not self.commands.choices

    def _wants(self, name: str) -> bool:
        return self.only is None or name in self.only


def _pass_over(*_: Any, **__: Any) -> None:
    """Takes the arguments of a command that is not made."""


def new_parser(only: frozenset[str] | None = None) -> tuple[CommandParser, CommandGroup]:
    """Make a parser without commands, and the group to add them, or only some, to."""
    parser = CommandParser(
        prog="filepact",
        description=_TOP,
        epilog=_CODES,
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the version and exit")
    _add_common(parser, default=None)
    common = CommandParser(add_help=False)
    # What was said before the command's name must outlive the command's own defaults.
    _add_common(common, default=argparse.SUPPRESS)
    commands = parser.add_subparsers(
        dest="command",
        metavar="COMMAND",
        title="commands",
        parser_class=CommandParser,
        prog="filepact",  # which would be worked out by formatting the usage
    )
    return parser, CommandGroup(commands, common, only)


def _add_common(parser: argparse.ArgumentParser, *, default: str | None) -> None:
    shared = parser.add_argument_group("options of every command")
    before = default is None
    shared.add_argument(
        "--root",
        dest="root" if before else "root_after",
        metavar="DIR",
        action="append",
        default=default,
        help="folder to work in; may be given several times (default: FILEPACT_ROOT, else the nearest "
        "folder known to the journal, else the git top level, else this folder)",
    )
    shared.add_argument(
        "--state",
        metavar="DIR",
        default=default,
        help="state folder with the journal (default: FILEPACT_STATE_DIR, else yours)",
    )
    shared.add_argument(
        "--config",
        metavar="FILE",
        default=default,
        help="file with your settings (default: FILEPACT_CONFIG, else filepact.toml in your settings "
        "folder)",
    )
    for option, about in (
        ("--json", "print exactly one JSON object"),
        ("--no-color", "no colours, as with NO_COLOR; a pipe never gets any"),
        (
            "--no-pager",
            "print long answers without a pager; the pager is FILEPACT_PAGER or PAGER",
        ),
    ):
        shared.add_argument(
            option, action="store_true", default=False if before else default, help=about
        )


def add_dry_run(add: Callable[..., Any], *, revision: bool = False) -> None:
    """Add what every command takes that changes files."""
    add("--dry-run", action="store_true", help="show the diff and change nothing")
    if revision:
        add("--expect", metavar="REVISION", help="refuse if the file is not at this revision")


def add_unattended(add: Callable[..., Any]) -> None:
    """Add what every command takes that is a person's decision."""
    add(
        "--unattended",
        action="store_true",
        help="do it without a terminal and without asking, for your own programs; the journal records that. Below an agent "
        "it is refused",
    )


def add_offer(add: Callable[..., Any]) -> None:
    """Add what every command takes that serves tools."""
    add(
        "--tier",
        choices=("essential", "standard", "full"),
        default="full",
        help="offer the tools up to this tier (default: full)",
    )
    add(
        "--max-level",
        choices=("safe", "moderate", "dangerous"),
        default="dangerous",
        help="offer the tools up to this level (default: dangerous)",
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


_MOST_NUMBERS = 10_000


def numbers(text: str) -> frozenset[int]:
    """Numbers of at least 1, such as ``1,3-5``."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        begin = count(first)
        end = count(last) if dash else begin
        if not begin <= end < begin + _MOST_NUMBERS:
            raise argparse.ArgumentTypeError(f"{part} is not a range of numbers, such as 3-5")
        found.update(range(begin, end + 1))
    return frozenset(found)


def seconds(most: int) -> Callable[[str], float]:
    """A time above 0 and up to that many seconds."""

    def number(text: str) -> float:
        given = float(text)
        if not 0 < given <= most:
            raise argparse.ArgumentTypeError(f"{text} is not between 0 and {most}")
        return given

    return number


whole.__name__ = count.__name__ = "number"
numbers.__name__ = "list of numbers"
