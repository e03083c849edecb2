"""Runs a command line and turns its outcome into an exit code."""

from __future__ import annotations

import atexit
import gc
import os
import re
import sys
from contextlib import suppress
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final, cast

from filepact import VERSION
from filepact.errors import (
    BelowAgentError,
    FilepactError,
    InvalidParamsError,
    NoChangeError,
    NotFoundError,
    SearchFailedError,
    without_threads,
)
from filepact_cli.screen import (
    DONE,
    FAILED,
    INTERRUPTED,
    NOTHING,
    USAGE,
    CommandAnswer,
    CommandError,
    Terminal,
    find_pager,
    plain,
    remark,
)

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence
    from typing import NoReturn, TextIO

    from filepact_cli.parser import CommandParser

__all__ = ["build_parser", "completion", "end", "execute", "parse", "run"]


def run(argv: Sequence[str] | None = None) -> int:
    """Do what a command line says.

    Args:
        argv: Its words without the program's name; None takes the process's own.

    Returns:
        The exit code: 0 done, 1 refused or failed, 2 wrong usage or settings, 3 nothing found or nothing to
        do, 130 interrupted.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        return _run(words)
    except OSError as error:
        full = _full()
        if not full and os.environ.get("FILEPACT_DEBUG"):
            raise
        # Python would complain once more at exit.
        for stream in full:
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if isinstance(error, BrokenPipeError):
            return DONE  # Whoever read our output has seen enough.
        with suppress(OSError):
            remark(f"filepact: the answer cannot be written: {error.strerror}\n")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else DONE


def end(code: int) -> NoReturn:
    """End this process, in which all is closed by now.

    To take apart what was loaded, as Python does at its end, takes longer than to read a hundred files.
    """
    atexit._run_exitfuncs()  # noqa: SLF001 - what libraries have asked for; there is no public name
    for stream in (sys.stdout, sys.stderr):
        # Nobody may be there any more to read it.
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _run(words: list[str]) -> int:
    try:
        arguments = parse(words)
    except CommandError as misuse:
        return _explain_misuse(misuse, json="--json" in words)
    if arguments.version:
        return _print_version(arguments)
    if arguments.command is None:
        from filepact_cli.parser import OVERVIEW  # noqa: PLC0415 - loaded by now

        return _explain_misuse(CommandError("name a command", OVERVIEW), json=arguments.json)
    screen = _screen(arguments)
    try:
        _check_caller(arguments, words)
        answer = _perform(arguments, screen)
    except FilepactError as error:
        return _explain(error, screen)
    except (BrokenPipeError, KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:
        if isinstance(error, OSError) and _full():
            raise
        from filepact_cli.context import gone  # noqa: PLC0415 - for errors

        missing = _missing(error, arguments) or gone(error)
        if missing is None and os.environ.get("FILEPACT_DEBUG"):
            raise
        return _explain(missing or _internal(error), screen)
    if answer is None:
        return DONE
    screen.answer(answer)
    return answer.code


def _full() -> list[TextIO]:
    """Return the outputs that take no more; they keep their text in memory."""
    found = []
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            found.append(stream)
    return found


def _check_caller(arguments: Namespace, words: Sequence[str]) -> None:
    """Refuse to an agent what only a person decides.

    Raises:
        BelowAgentError: A process above is an agent's program, or a variable says that one has started this.
    """
    from filepact.domain.person import decides  # noqa: PLC0415 - a server for agents starts without

    if arguments.command == "mcp" or not decides(_usual(words)):
        return
    from filepact_cli.context import called_by  # noqa: PLC0415 - few commands decide

    caller = called_by(arguments)
    if caller.agent:
        raise BelowAgentError(
            f"`filepact {arguments.command}` is a person's decision, and an agent has called it: {caller.because}",
            hint="The person decides in a terminal that no agent has started. Go on without it, or tell them.",
        )


def parse(words: Sequence[str]) -> Namespace:
    """Parse a command line; `does` of the answer names the function to call.

    Making all commands takes longer than most of them, so only those are made that the words name.

    Raises:
        CommandError: It cannot be understood.
    """
    if (served := _plain_server(words)) is not None:
        return served
    words = _usual(words)
    before = words[: words.index("--")] if "--" in words else words
    if "-h" not in before and "--help" not in before:
        # Whatever is not understood is for the whole parser to explain.
        with suppress(CommandError):
            return build_parser(frozenset(words)).parse_args(words)
    return build_parser().parse_args(words)


_SERVER_VALUES: Final[dict[str, tuple[str, ...]]] = {
    "--toolset": ("files", "solution"),
    "--tier": ("full", "essential", "standard"),
    "--max-level": ("dangerous", "safe", "moderate"),
    "--mode": ("auto", "review", "preview", "read-only"),
    "--state": (),
    "--config": (),
}
"""Options of `mcp` and what each may be, the default first; none for anything."""


def _plain_server(words: Sequence[str]) -> Namespace | None:
    """Return the parser's result for a plain `mcp ROOT... [OPTION VALUE]...`; None for any other line.

    A host starts that for each session, and the parser takes longer than to open the journal.
    """
    if words[:1] != ["mcp"]:
        return None
    named = {option: allowed[0] if allowed else None for option, allowed in _SERVER_VALUES.items()}
    roots: list[str] = []
    rest = iter(words[1:])
    begun = closed = read_only = False
    for word in rest:
        if not word.startswith("-"):
            if closed:
                return None
            begun = True
            roots.append(word)
            continue
        closed = begun
        if word == "--read-only":
            read_only = True
            continue
        allowed, value = _SERVER_VALUES.get(word), next(rest, "-")
        if allowed is None or value.startswith("-") or (allowed and value not in allowed):
            return None
        named[word] = value
    if not roots:
        return None
    said = {option[2:].replace("-", "_"): value for option, value in named.items()}
    common = {"version": False, "root": None, "json": False, "no_color": False, "no_pager": False}
    what = {"command": "mcp", "does": "serve:mcp", "extra": "", "roots": roots}
    return cast("Namespace", SimpleNamespace(**common, **what, **said, read_only=read_only))


def _usual(words: Sequence[str]) -> Sequence[str]:
    """Return the words with options in place of what people type from habit."""
    from filepact_cli.parser import renewed  # noqa: PLC0415 - a server for agents starts without

    if words[:1] == ["version"]:
        return ["--version", *words[1:]]
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    words = renewed(words)
    if "log" in words:
        # As with Git: `-3` for the newest three.
        place = words.index("log")
        return [*words[:place], *(re.sub(r"^-(\d+)$", r"-n\1", one) for one in words[place:])]
    return words


def build_parser(only: frozenset[str] | None = None) -> CommandParser:
    """Make the parser of all commands, or of those with some names."""
    from filepact_cli.commands import (  # noqa: PLC0415 - a server for agents starts without
        add_commands,
        add_file_commands,
    )
    from filepact_cli.parser import new_parser  # noqa: PLC0415 - the same

    parser, group = new_parser(only)
    add_commands(group)
    add_file_commands(group)
    if only is None or (group.is_empty() and any(word[:1] != "-" for word in only)):
        from filepact.extension import extensions  # noqa: PLC0415 - not for a command of ours

        for one in extensions():
            one.add_commands(group)
    return parser


def execute(words: Sequence[str], screen: Terminal) -> CommandAnswer | None:
    """Do what a command line says, for another command that wants to show the answer.

    Raises:
        FilepactError: The command refused or failed.
    """
    return _perform(parse(words), screen)


def _perform(arguments: Namespace, screen: Terminal) -> CommandAnswer | None:
    # What stands after the command's name adds to what stands before it.
    arguments.root = [*(arguments.root or []), *getattr(arguments, "root_after", [])]
    return _function(arguments.does)(arguments, screen)


def _function(name: str) -> Callable[[Namespace, Terminal], CommandAnswer | None]:
    """The function behind a command; its module is loaded only now."""
    module, _, function = name.partition(":")
    gc.disable()  # what is loaded stays to the end, and is a tenth of the start to look through
    place = module if "." in module else f"filepact_cli.{module}"
    found: Callable[[Namespace, Terminal], CommandAnswer | None] = getattr(
        import_module(place), function
    )
    gc.freeze()
    gc.enable()
    return found


def _screen(arguments: Namespace) -> Terminal:
    terminal = sys.stdout.isatty()
    wanted = not (
        arguments.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    )
    pager: list[str] = []
    if terminal and not arguments.json and not arguments.no_pager:
        pager = find_pager()
    return Terminal(
        sys.stdout.buffer,
        terminal=terminal,
        colour=terminal and wanted,
        json=arguments.json,
        pager=pager,
    )


def _print_version(arguments: Namespace) -> int:
    _screen(arguments).answer(CommandAnswer(plain(f"filepact {VERSION}\n"), {"version": VERSION}))
    return DONE


def _explain_misuse(misuse: CommandError, *, json: bool) -> int:
    if json:
        error = InvalidParamsError(misuse.message, hint=misuse.hint)
        Terminal(sys.stdout.buffer, terminal=False, colour=False, json=True).object(_facts(error))
    else:
        remark(f"filepact: {misuse.message}\n{misuse.hint.rstrip()}\n")
    return USAGE


def _explain(error: FilepactError, screen: Terminal) -> int:
    from filepact_cli.wording import hint_for_people, message_for_people  # noqa: PLC0415 - for errors

    error.hint = hint_for_people(error)
    if screen.json:
        screen.object(_facts(error))
    else:
        first, *others = message_for_people(error).split("\n")
        # A log, or a program, tells by the code; a person reads the sentence.
        code = "" if sys.stderr.isatty() else f" [{error.code}]"
        lines = [f"filepact: {first}{code}", *others, *filter(None, [error.hint])]
        remark("\n".join(lines) + "\n")
    if isinstance(error, NoChangeError):
        return NOTHING
    # Both are what was typed, or stands in a settings file: to try again is no use.
    return USAGE if isinstance(error, InvalidParamsError | SearchFailedError) else FAILED


def _facts(error: FilepactError) -> dict[str, object]:
    return {
        "error": {
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
            "details": error.details,
        }
    }


def _missing(error: Exception, arguments: Namespace) -> FilepactError | None:
    """Return the error that a command's extra is not installed; None if something else is wrong."""
    extra = getattr(arguments, "extra", "")
    if not extra or not isinstance(error, ModuleNotFoundError):
        return None
    if (error.name or "").startswith("filepact"):
        return None
    return NotFoundError(
        f"`filepact {arguments.command}` needs a package that is not installed: {error.name}",
        hint=f"Install filepact's extra `{extra}`.",
    )


def _internal(error: Exception) -> FilepactError:
    """An exception that nobody expected; its text may hold anything and is not shown."""
    return without_threads(error) or FilepactError(
        f"{type(error).__name__}, which should not happen",
        hint="Set FILEPACT_DEBUG=1 and run it again to see where; please report it.",
    )


# -- completion ----------------------------------------------------------------------------------


def completion(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Print the script of one shell, which `scripts/reference` has made of the commands."""
    folder = os.path.join(os.path.dirname(__file__), "completions")  # noqa: PTH118, PTH120 - no pathlib yet
    with open(os.path.join(folder, arguments.shell), encoding="utf-8") as file:  # noqa: PTH118, PTH123
        made = file.read()
    return CommandAnswer(plain(made), {"shell": arguments.shell, "script": made})
