"""Checks a client program, which starts the suite's agent as it starts any agent."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from acp_conformance.checks import choose
from acp_conformance.report import SuiteError, Verdict
from acp_conformance.scratch import CheckFolders, CheckLog, Plan, agent_command, new_scratch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from acp_conformance.report import Report

__all__ = ["check_program", "fill_in"]

_TICK = 0.05
_GRACE = 3.0
_SAY = " If it reads its prompts from standard input, give it one: --say go"


def check_program(command: Sequence[str], plan: Plan, say: Sequence[str] = ()) -> Report:
    """Start a client in a throw-away folder, and report what its agent found.

    Args:
        command: The client's words; see `fill_in` for where the agent's go.  Words that name files
            of the present folder are made absolute.
        plan: How to make the checks.
        say: Lines for the client's standard input, which stays open until the end; without any it
            is empty.

    Raises:
        SuiteError: `UNKNOWN_CHECK`: the plan names a check that does not exist.
            `CLIENT_NOT_FOUND`: there is no such program.  `AGENT_NOT_STARTED`: the client ended
            before it started the agent.  `TIMED_OUT`: it opened no session in time.
            `CHECKS_NOT_RUN`: it did not get as far as the first check.
    """
    choose(plan.only)
    with new_scratch(plan) as scratch:
        words = fill_in(_absolute(command), agent_command(scratch))
        client = None
        try:
            with _signals_deferred():
                client = _start(words, scratch, say)
            return _follow(client, CheckLog(scratch), plan, spoken=bool(say))
        finally:
            if client is not None:
                _stop(client)


def fill_in(command: Sequence[str], agent: Sequence[str]) -> list[str]:
    """A client's command line with the agent's in it.

    ``{agent}`` anywhere in a word becomes the agent's whole command line, quoted for a shell; a
    word that is ``{agent...}`` becomes its single words.  Without either they are put at the end.
    """
    words: list[str] = []
    for word in command:
        if word == "{agent...}":
            words += agent
        else:
            words.append(word.replace("{agent}", shlex.join(agent)))
    return words if words != list(command) else [*command, *agent]


def _absolute(command: Sequence[str]) -> list[str]:
    """A client's words, with absolute paths in place of names of files.

    The client is started in another folder.  A word without a dot or a slash is left alone: it may
    be anything, such as a prompt.
    """
    return [
        str(Path(word).absolute()) if {".", "/"} & set(word) and _is_file(word) else word
        for word in command
    ]


def _is_file(word: str) -> bool:
    # A long prompt is no possible name, which the system reports as an error.
    with suppress(OSError, ValueError):
        return Path(word).is_file()
    return False


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Handle signals afterwards: a client that is just being started could not be ended yet."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    earlier = {
        number: signal.signal(number, lambda number, _: pending.append(number))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
    for late in pending:
        signal.raise_signal(late)


def _start(
    words: Sequence[str], scratch: CheckFolders, say: Sequence[str]
) -> subprocess.Popen[bytes]:
    try:
        # What a client prints must not get into our own report.
        client = subprocess.Popen(  # noqa: S603 - starting what a person names is what it is for
            words,
            cwd=scratch.work.path,
            stdout=2,
            stdin=subprocess.PIPE if say else subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        raise SuiteError(
            "CLIENT_NOT_FOUND",
            f"the client {words[0]!r} cannot be started",
            hint="Name a program on the PATH, or a file.",
        ) from None
    if client.stdin is not None:
        with suppress(BrokenPipeError):
            client.stdin.write("".join(f"{line}\n" for line in say).encode())
            client.stdin.flush()
    return client


def _follow(client: subprocess.Popen[bytes], log: CheckLog, plan: Plan, *, spoken: bool) -> Report:
    """Read the log until the agent has made all checks, or cannot make them any more."""
    start = latest = time.monotonic()
    longest = 2 * plan.wait + 3 * plan.patience * len(choose(plan.only))
    seen = 0
    while not log.over:
        ended = client.poll() is not None
        # Whether the client ended is asked first: what the agent logged before that still counts.
        tuple(log.follow())
        now = time.monotonic()
        if log.size > seen:
            seen, latest = log.size, now
        if log.over:
            break
        if not log.started and ended:
            raise SuiteError(
                "AGENT_NOT_STARTED",
                f"the client {_end(client)} before it had started the agent",
                hint="Put {agent} where the client takes an agent's command line. It runs in a "
                f"folder of its own.{'' if spoken else _SAY}",
            )
        if not log.started and now - start > 2 * plan.wait:
            raise SuiteError(
                "TIMED_OUT",
                "the client did not start the agent and open a session",
                hint="Put {agent} where the client takes an agent's command line.",
            )
        if ended and now - latest > 2 * plan.patience + _GRACE:
            return _cut_short(log, plan, f"the client {_end(client)} before they were over")
        if now - start > longest:
            return _cut_short(log, plan, "the client stood still")
        time.sleep(_TICK)
    ending = _end(client) if log.trouble or log.gone else ""
    if log.trouble:
        said = f"{log.trouble}; it {ending}" if ending else log.trouble
        hint = _SAY if "prompt" in log.trouble and not spoken else ""
        raise SuiteError(
            "CHECKS_NOT_RUN", f"the checks could not be made: {said}", hint=hint.strip()
        )
    return _with_the_end(log.report(), log.gone, ending)


def _end(client: subprocess.Popen[bytes]) -> str:
    """The way in which a client has ended; empty if it runs."""
    try:
        status = client.wait(_GRACE)
    except subprocess.TimeoutExpired:
        return ""
    return f"ended with exit status {status}" if status >= 0 else f"was ended by signal {-status}"


def _cut_short(log: CheckLog, plan: Plan, trouble: str) -> Report:
    """The report so far, with the checks that were not tried as skipped."""
    report = log.report()
    tried = {one.id for one in report.verdicts}
    left = tuple(
        Verdict(one.id, one.level, one.source, one.says, "skipped", f"not tried: {trouble}")
        for one in choose(plan.only)
        if one.id not in tried
    )
    return replace(report, verdicts=report.verdicts + left, trouble=trouble)


def _with_the_end(report: Report, check: str, ending: str) -> Report:
    """The report, with how the client ended in the verdict of the check that it did not survive."""
    if not ending:
        return report
    verdicts = [
        replace(one, why=f"{one.why}; it {ending}") if one.id == check else one
        for one in report.verdicts
    ]
    return replace(report, verdicts=tuple(verdicts))


def _stop(client: subprocess.Popen[bytes]) -> None:
    """Wait for the client to end; if it does not, end its whole process group."""
    if client.stdin is not None:
        with suppress(OSError):
            client.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        client.wait(_GRACE)
    for number in (signal.SIGTERM, signal.SIGKILL):
        # The group outlives its leader while other processes are in it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(client.pid, number)
        with suppress(subprocess.TimeoutExpired):
            client.wait(_GRACE)
