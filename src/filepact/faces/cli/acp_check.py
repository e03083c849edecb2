"""The command that checks a client of the Agent Client Protocol, and what it tells."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from filepact.errors import InvalidParamsError
from filepact.faces.cli.screen import DONE, FAILED, Answer, Span

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from filepact.faces.acp.check.outcome import Outcome, Report, Verdict
    from filepact.faces.cli.screen import Screen, Style

__all__ = ["acp_check", "tell"]

_MARKS: dict[Outcome, tuple[str, Style]] = {
    "passed": ("ok", "good"),
    "failed": ("FAILED", "bad"),
    "skipped": ("skipped", "dim"),
}


def acp_check(arguments: Namespace, _screen: Screen) -> Answer | None:
    """Check a client; or be the agent that it starts, if the command line says so."""
    from filepact.faces.acp.check.plan import Plan  # noqa: PLC0415 - only this command needs it

    if arguments.agent:
        from filepact.faces.acp.check.agent import serve  # noqa: PLC0415 - the same

        serve(arguments.agent)
        return None
    if arguments.list:
        return _table()
    if not arguments.client:
        raise InvalidParamsError(
            "no client is named", hint="`filepact acp-check -- CLIENT ARGS...` checks one."
        )
    from filepact.faces.acp.check.runner import check_program  # noqa: PLC0415 - the same

    plan = Plan(
        at=arguments.at,
        wait=arguments.wait,
        patience=arguments.patience,
        only=tuple(arguments.only),
    )
    with _ended_in_order():
        report = check_program(arguments.client, plan, arguments.say)
    good = report.conforms and not (arguments.strict and report.failed())
    return Answer(tuple(tell(report)), report.facts(), DONE if good else FAILED)


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Whoever ends this command ends the client with it, and the throw-away folder goes."""
    earlier = {
        number: signal.signal(number, signal.default_int_handler)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def tell(report: Report) -> list[Span]:
    """A report for people: what passed in one line a group, what did not with its reason."""
    from filepact.faces.acp.check.checks import GROUPS  # noqa: PLC0415 - only with a report

    spans: list[Span] = []
    for group in GROUPS:
        verdicts = [one for one in report.verdicts if one.group == group.name]
        if not verdicts:
            continue
        passed = sum(one.outcome == "passed" for one in verdicts)
        spans.append(Span(group.title, "strong"))
        spans.append(Span(f"  {passed} of {len(verdicts)}\n", "dim"))
        for one in verdicts:
            spans += _verdict(one)
    spans.append(Span(f"\n{_sum(report)}\n", "good" if not report.failed() else "strong"))
    return spans


def _verdict(one: Verdict) -> list[Span]:
    mark, style = _MARKS[one.outcome]
    spans = [Span(f"  {mark:<8}", style), Span(one.id)]
    if one.outcome == "passed":
        return [*spans, Span("\n")]
    if one.outcome == "skipped":
        return [*spans, Span(f"  {one.why}\n", "dim")]
    return [
        *spans,
        Span(f"  {one.level}, {one.source}\n", "warn"),
        Span(f"          {one.says}\n"),
        Span(f"          {one.why}\n", "dim"),
    ]


def _sum(report: Report) -> str:
    if report.trouble:
        return f"The checks did not come to their end: {report.trouble}.\n{_counts(report)}"
    must = report.failed("must")
    return _counts(report) + ("" if must else " The client does what the protocol demands.")


def _counts(report: Report) -> str:
    must, should = len(report.failed("must")), len(report.failed("should"))
    return (
        f"{report.count('passed')} passed, {must + should} failed "
        f"({must} must, {should} should), {report.count('skipped')} skipped."
    )


def _table() -> Answer:
    """All checks, without running any."""
    from filepact.faces.acp.check.checks import GROUPS  # noqa: PLC0415 - only with a report

    spans: list[Span] = []
    known: list[dict[str, str]] = []
    for group in GROUPS:
        spans.append(Span(f"{group.title}\n", "strong"))
        for check in group.checks:
            spans += [
                Span(f"  {check.id:<36}"),
                Span(f"{check.level:<7}", "warn" if check.level == "must" else "dim"),
                Span(f"{check.says}\n"),
            ]
            known.append(
                {
                    "id": check.id,
                    "level": check.level,
                    "source": check.source,
                    "says": check.says,
                }
            )
    return Answer(tuple(spans), {"checks": known})
