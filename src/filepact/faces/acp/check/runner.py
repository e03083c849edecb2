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
from typing import TYPE_CHECKING

from filepact.errors import FilepactError, NotFoundError, TimedOutError
from filepact.faces.acp.check.checks import choose
from filepact.faces.acp.check.folder import Scratch, resolved
from filepact.faces.acp.check.plan import Log, Plan, agent_command, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.faces.acp.check.outcome import Report

__all__ = ["check_program", "fill_in"]

_TICK = 0.05
_LAST_WORDS = 3.0


def check_program(command: Sequence[str], plan: Plan) -> Report:
    """Start a client in a folder made for it, and report what its agent has found.

    Args:
        command: The client's words; see `fill_in` for where the agent's go.
        plan: How the checks are to run.

    Raises:
        InvalidParamsError: The plan names a check that there is not.
        NotFoundError: There is no such program.
        TimedOutError: The client did not let the checks come to their end.
        FilepactError: The checks could not be run.
    """
    choose(plan.only)
    path = resolved(tempfile.mkdtemp(prefix="filepact-acp-check-"))
    try:
        scratch = prepare(path, plan)
        words = fill_in(command, agent_command(scratch))
        client = _start(words, scratch)
        try:
            return _follow(client, Log(scratch), plan)
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


def _start(words: Sequence[str], scratch: Scratch) -> subprocess.Popen[bytes]:
    try:
        # What a client prints for people must not get into our own answer.
        return subprocess.Popen(  # noqa: S603 - starting what a person names is what it is for
            words, cwd=scratch.work.path, stdout=2, stdin=subprocess.DEVNULL, start_new_session=True
        )
    except OSError:
        raise NotFoundError(
            f"the client {words[0]!r} cannot be started",
            hint="Name a program on the PATH, or one by its absolute path.",
        ) from None


def _follow(client: subprocess.Popen[bytes], log: Log, plan: Plan) -> Report:
    """Wait until the agent has said its last word."""
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
        if not log.started and (ended or now - start > 2 * plan.wait):
            raise TimedOutError(
                "the client did not start the agent and open a session",
                hint="Put {agent} where the client takes an agent's command line.",
            )
        silent = ended and now - latest > 2 * plan.patience + _LAST_WORDS
        if silent or now - start > longest:
            raise TimedOutError("the client ended, or stood still, before the checks were over")
        time.sleep(_TICK)
    if log.trouble:
        raise FilepactError(f"the checks could not be run: {log.trouble}")
    return log.report()


def _stop(client: subprocess.Popen[bytes]) -> None:
    """Let the client end by itself; if it does not, end it with all that it has started."""
    with suppress(subprocess.TimeoutExpired):
        client.wait(_LAST_WORDS)
    for number in (signal.SIGTERM, signal.SIGKILL):
        # The group outlives its leader while others are in it.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(client.pid, number)
        with suppress(subprocess.TimeoutExpired):
            client.wait(_LAST_WORDS)
