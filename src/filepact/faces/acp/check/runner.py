"""The suite against a client program, which starts the agent as it starts any agent."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.errors import FilepactError, InvalidParamsError, NotFoundError, TimedOutError
from filepact.faces.acp.check.checks import choose
from filepact.faces.acp.check.folder import Scratch, resolved
from filepact.faces.acp.check.outcome import Verdict
from filepact.faces.acp.check.plan import Log, Plan, agent_command, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.faces.acp.check.outcome import Report

__all__ = ["check_program", "fill_in"]

_TICK = 0.05
_LAST_WORDS = 3.0
_SAY = " If it reads its prompts from standard input, give it one: --say go"


def check_program(command: Sequence[str], plan: Plan, say: Sequence[str] = ()) -> Report:
    """Start a client in a folder made for it, and report what its agent has found.

    Args:
        command: The client's words; see `fill_in` for where the agent's go.  Files of the present
            folder are found from there.
        plan: How the checks are to run.
        say: Lines for the client's standard input, which stays open until the end; without any it
            is empty.

    Raises:
        InvalidParamsError: The plan names a check that there is not, or the client ended before
            it opened a session.
        NotFoundError: There is no such program.
        TimedOutError: The client opened no session in time.
        FilepactError: The checks could not be run.
    """
    choose(plan.only)
    path = resolved(tempfile.mkdtemp(prefix="filepact-acp-check-"))
    try:
        scratch = prepare(path, plan)
        words = fill_in(_found_from_here(command), agent_command(scratch))
        client = _start(words, scratch, say)
        try:
            return _follow(client, Log(scratch), plan, spoken=bool(say))
        finally:
            _stop(client)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def fill_in(command: Sequence[str], agent: Sequence[str]) -> list[str]:
    """A client's words with those of the agent in them.

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


def _found_from_here(command: Sequence[str]) -> list[str]:
    """A client's words, of which those that name files of the present folder name them whole.

    The client is started in another folder.  A word without a dot and a slash is left alone: it may
    be anything, such as a prompt.
    """
    return [
        str(Path(word).absolute()) if {".", "/"} & set(word) and _is_file(word) else word
        for word in command
    ]


def _is_file(word: str) -> bool:
    # Of a long prompt the system says that it is no name, which is an error.
    with suppress(OSError, ValueError):
        return Path(word).is_file()
    return False


def _start(words: Sequence[str], scratch: Scratch, say: Sequence[str]) -> subprocess.Popen[bytes]:
    try:
        # What a client prints for people must not get into our own answer.
        client = subprocess.Popen(  # noqa: S603 - starting what a person names is what it is for
            words,
            cwd=scratch.work.path,
            stdout=2,
            stdin=subprocess.PIPE if say else subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        raise NotFoundError(
            f"the client {words[0]!r} cannot be started",
            hint="Name a program on the PATH, or a file.",
        ) from None
    if client.stdin is not None:
        with suppress(BrokenPipeError):
            client.stdin.write("".join(f"{line}\n" for line in say).encode())
            client.stdin.flush()
    return client


def _follow(client: subprocess.Popen[bytes], log: Log, plan: Plan, *, spoken: bool) -> Report:
    """Wait until the agent has said its last word, or there is nobody to say it."""
    start = latest = time.monotonic()
    longest = 2 * plan.wait + 3 * plan.patience * len(choose(plan.only))
    seen = 0
    while not log.over:
        ended = client.poll() is not None
        # The client's end is looked at first: what the agent wrote before it still counts.
        tuple(log.follow())
        now = time.monotonic()
        if log.size > seen:
            seen, latest = log.size, now
        if log.over:
            break
        if not log.started and ended:
            raise InvalidParamsError(
                f"the client {_end(client)} before it had started the agent",
                hint="Put {agent} where the client takes an agent's command line. It runs in a "
                f"folder of its own.{'' if spoken else _SAY}",
            )
        if not log.started and now - start > 2 * plan.wait:
            raise TimedOutError(
                "the client did not start the agent and open a session",
                hint="Put {agent} where the client takes an agent's command line.",
            )
        if ended and now - latest > 2 * plan.patience + _LAST_WORDS:
            return _cut_short(log, plan, f"the client {_end(client)} before they were over")
        if now - start > longest:
            return _cut_short(log, plan, "the client stood still")
        time.sleep(_TICK)
    ending = _end(client) if log.trouble or log.gone else ""
    if log.trouble:
        said = f"{log.trouble}; it {ending}" if ending else log.trouble
        hint = _SAY if "prompt" in log.trouble and not spoken else ""
        raise FilepactError(f"the checks could not be run: {said}", hint=hint.strip())
    return _with_the_end(log.report(), log.gone, ending)


def _end(client: subprocess.Popen[bytes]) -> str:
    """How a client has ended; empty if it has not."""
    try:
        status = client.wait(_LAST_WORDS)
    except subprocess.TimeoutExpired:
        return ""
    return f"ended with exit status {status}" if status >= 0 else f"was ended by signal {-status}"


def _cut_short(log: Log, plan: Plan, trouble: str) -> Report:
    """What was found, and which checks were not tried."""
    report = log.report()
    tried = {one.id for one in report.verdicts}
    left = tuple(
        Verdict(one.id, one.level, one.source, one.says, "skipped", f"not tried: {trouble}")
        for one in choose(plan.only)
        if one.id not in tried
    )
    return replace(report, verdicts=report.verdicts + left, trouble=trouble)


def _with_the_end(report: Report, check: str, ending: str) -> Report:
    """A report in which the check that a client did not survive says how it ended."""
    if not ending:
        return report
    verdicts = [
        replace(one, why=f"{one.why}; it {ending}") if one.id == check else one
        for one in report.verdicts
    ]
    return replace(report, verdicts=tuple(verdicts))


def _stop(client: subprocess.Popen[bytes]) -> None:
    """Let the client end by itself; if it does not, end it with all that it has started."""
    if client.stdin is not None:
        with suppress(OSError):
            client.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        client.wait(_LAST_WORDS)
    for number in (signal.SIGTERM, signal.SIGKILL):
        # The group outlives its leader while others are in it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(client.pid, number)
        with suppress(subprocess.TimeoutExpired):
            client.wait(_LAST_WORDS)
