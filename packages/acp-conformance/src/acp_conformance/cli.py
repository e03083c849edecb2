"""The command `acp-conformance`: its arguments, and the report for people and for programs."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

from acp_conformance.checks import GROUPS
from acp_conformance.program import check_program
from acp_conformance.report import SuiteError
from acp_conformance.scratch import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from acp_conformance.report import Outcome, Report, Verdict

__all__ = ["build_parser", "main", "render"]

_DONE, _FAILED, _USAGE, _INTERRUPTED = 0, 1, 2, 130

_GOOD, _BAD, _WARN, _DIM, _STRONG, _PLAIN = "32", "1;31", "33", "2", "1", ""

_MARKS: dict[Outcome, tuple[str, str]] = {
    "passed": ("ok", _GOOD),
    "failed": ("FAILED", _BAD),
    "skipped": ("skipped", _DIM),
}

_Span = tuple[str, str]
"""A text and its style, as the numbers of a terminal's escape sequence."""


_NAME = "acp-conformance"


def main(argv: Sequence[str] | None = None, name: str = _NAME) -> int:
    """Run the command.

    Args:
        argv: Its words without the program's name; None takes the process's own.
        name: What people type for it.

    Returns:
        The exit status: 0 the client conforms, 1 it does not or the checks could not be made, 2
        wrong usage, 130 interrupted.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    as_json = "--json" in words[: words.index("--")] if "--" in words else "--json" in words
    try:
        return _run(build_parser(name).parse_args(words))
    except _UsageError as misuse:
        error = SuiteError("USAGE", str(misuse), hint=f"See `{name} --help`.")
        _explain(error, as_json=as_json)
        return _USAGE
    except SuiteError as error:
        _explain(error, as_json=as_json)
        return _FAILED
    except BrokenPipeError:
        # Whoever read our output has seen enough.  Python would complain once more at exit.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _DONE
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(arguments: argparse.Namespace) -> int:
    if arguments.agent:
        from acp_conformance.agent import serve  # noqa: PLC0415 - only the agent's process needs it

        serve(arguments.agent)
        return _DONE
    colour = _has_colour(arguments)
    if arguments.list:
        _print(arguments, _list(), {"checks": _known()}, colour=colour)
        return _DONE
    if not arguments.client:
        raise SuiteError(
            "NO_CLIENT",
            "no client is named",
            hint="`acp-conformance -- CLIENT ARGS...` checks one.",
        )
    plan = Plan(
        at=arguments.at,
        wait=arguments.wait,
        patience=arguments.patience,
        only=tuple(arguments.only),
    )
    with _interruptible():
        report = check_program(arguments.client, plan, arguments.say)
    _print(arguments, render(report), report.facts(), colour=colour)
    return _DONE if report.conforms and not (arguments.strict and report.failed()) else _FAILED


@contextmanager
def _interruptible() -> Iterator[None]:
    """Turn signals into KeyboardInterrupt, so that the client and the throw-away folder go too."""
    earlier = {
        number: signal.signal(number, signal.default_int_handler)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


# -- arguments -------------------------------------------------------------------------------


_ABOUT = """\
Check how a client of the Agent Client Protocol serves files.

The client is started in a temporary folder; the agent that it starts there
makes the checks. In the client's words, {agent} stands for the agent's command
line as one word and {agent...} for its words; without either they are appended.

exit status:
  0 the client conforms   1 it does not, or the checks could not be made
  2 wrong usage           130 interrupted
"""


class _UsageError(Exception):
    """The command line cannot be understood."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UsageError(message)


def build_parser(name: str = _NAME) -> argparse.ArgumentParser:
    """The command line as a parser."""
    parser = _Parser(
        prog=name,
        usage=f"{name} [OPTIONS] -- CLIENT [ARGUMENT ...]",
        description=_ABOUT,
        epilog=f"example:\n  {name} -- my-client --agent {{agent}}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("client", metavar="CLIENT", nargs="*", help="the client and its arguments, after --")
    add(
        "--at",
        choices=("prompt", "session"),
        default="prompt",
        help="when the checks begin: at the client's first prompt, or as soon as it has opened a "
        "session (default: prompt)",
    )
    add(
        "--wait",
        metavar="SECONDS",
        type=_seconds,
        default=30.0,
        help="how long the client may take until then; without a prompt the checks begin after "
        "that time (default: 30)",
    )
    add(
        "--patience",
        metavar="SECONDS",
        type=_seconds,
        default=5.0,
        help="how long one check may take (default: 5)",
    )
    add(
        "--only",
        metavar="NAME",
        action="append",
        default=[],
        help="only this check, or the checks of this group; may be given several times",
    )
    add(
        "--say",
        metavar="LINE",
        action="append",
        default=[],
        help="a line for the client's standard input, such as a prompt; may be given several times",
    )
    add("--strict", action="store_true", help="count advice that is not followed as failure")
    add("--list", action="store_true", help="list the checks, and make none of them")
    add("--json", action="store_true", help="print exactly one JSON object")
    add("--no-color", action="store_true", help="no colours (NO_COLOR); never in a pipe")
    add("--agent", metavar="DIR", help=argparse.SUPPRESS)
    return parser


def _seconds(text: str) -> float:
    """A span of time above 0."""
    seconds = float(text)
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text} is no span between 0 and 86400")
    return seconds


_seconds.__name__ = "number"


# -- output ----------------------------------------------------------------------------------


def _has_colour(arguments: argparse.Namespace) -> bool:
    unwanted = arguments.no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not unwanted


def _print(
    arguments: argparse.Namespace,
    spans: Sequence[_Span],
    facts: Mapping[str, object],
    *,
    colour: bool,
) -> None:
    if arguments.json:
        print(json.dumps(facts))
    else:
        print("".join(_styled(*span) if colour else span[0] for span in spans), end="")
    sys.stdout.flush()


def _styled(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if style else text


def _explain(error: SuiteError, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(error.facts()), flush=True)
        return
    hint = f"\n{error.hint}" if error.hint else ""
    print(f"acp-conformance: {error.code}: {error.message}{hint}", file=sys.stderr, flush=True)


def render(report: Report) -> list[_Span]:
    """A report for people: a heading for each group, a line for each check, reasons of failures."""
    spans: list[_Span] = []
    for group in GROUPS:
        verdicts = [one for one in report.verdicts if one.group == group.name]
        if not verdicts:
            continue
        passed = sum(one.outcome == "passed" for one in verdicts)
        spans.append((group.title, _STRONG))
        spans.append((f"  {passed} of {len(verdicts)}\n", _DIM))
        for one in verdicts:
            spans += _verdict(one)
    spans.append((f"\n{_summary(report)}\n", _STRONG if report.failed() else _GOOD))
    return spans


def _verdict(one: Verdict) -> list[_Span]:
    mark, style = _MARKS[one.outcome]
    spans: list[_Span] = [(f"  {mark:<8}", style), (one.id, _PLAIN)]
    if one.outcome == "passed":
        return [*spans, ("\n", _PLAIN)]
    if one.outcome == "skipped":
        return [*spans, (f"  {one.why}\n", _DIM)]
    return [
        *spans,
        (f"  {one.level}, {one.source}\n", _WARN),
        (f"          {one.says}\n", _PLAIN),
        (f"          {one.why}\n", _DIM),
    ]


def _summary(report: Report) -> str:
    must, should = len(report.failed("must")), len(report.failed("should"))
    counts = (
        f"{report.count('passed')} passed, {must + should} failed "
        f"({must} must, {should} should), {report.count('skipped')} skipped."
    )
    if report.trouble:
        return f"The checks did not come to their end: {report.trouble}.\n{counts}"
    return counts if must else f"{counts} The client does what the protocol demands."


def _list() -> list[_Span]:
    spans: list[_Span] = []
    for group in GROUPS:
        spans.append((f"{group.title}\n", _STRONG))
        for check in group.checks:
            spans += [
                (f"  {check.id:<36}", _PLAIN),
                (f"{check.level:<7}", _WARN if check.level == "must" else _DIM),
                (f"{check.says}\n", _PLAIN),
            ]
    return spans


def _known() -> list[dict[str, str]]:
    return [
        {"id": check.id, "level": check.level, "source": check.source, "says": check.says}
        for group in GROUPS
        for check in group.checks
    ]
