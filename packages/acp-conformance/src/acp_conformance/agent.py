"""The agent that the client under test starts: it makes the checks and logs what they find."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from acp_conformance.check import CheckContext
from acp_conformance.checks import choose
from acp_conformance.connection import Connection, ConnectionClosedError, RequestTimeoutError
from acp_conformance.conversation import ClientRequests
from acp_conformance.report import CheckFailedError, CheckSkippedError, Outcome, Verdict
from acp_conformance.scratch import CheckFolders, CheckLog, Plan

if TYPE_CHECKING:
    from io import BufferedReader
    from typing import BinaryIO

    from acp_conformance.check import Check

__all__ = ["serve"]

_A_DAY = 86_400.0


def serve(path: str, source: BufferedReader | None = None, sink: BinaryIO | None = None) -> None:
    """Be an agent until the client closes its end.

    Args:
        path: The folder that `prepare` has filled; the log is there.
        source: The client's messages; None is standard input.
        sink: For ours; None is standard output.
    """
    scratch = CheckFolders(path)
    if source is None:
        source = cast("BufferedReader", sys.stdin.buffer)
    _Agent(scratch, source, sink or sys.stdout.buffer).serve()


class _Agent:
    def __init__(self, scratch: CheckFolders, source: BufferedReader, sink: BinaryIO) -> None:
        self._plan = plan = Plan.load(scratch)
        self._scratch = scratch
        self._log = CheckLog(scratch)
        self._conversation = ClientRequests(plan, self._log, scratch.work.at("alive.txt"))
        self._connection = self._conversation.connection = Connection(
            source, sink, self._conversation.on_message
        )
        self._stopped = ""

    def serve(self) -> None:
        self._connection.deadline = time.monotonic() + self._plan.wait
        self._connection.start()
        trouble = self._start()
        if trouble:
            self._log.add(trouble=trouble)
        else:
            for check in choose(self._plan.only):
                self._log.add(verdict=asdict(self._verdict(check)))
        self._log.add(over=True)
        for opened in self._conversation.sessions.values():
            self._conversation.end_turn(opened)
        self._wait(_A_DAY, until_prompt=False)

    def _start(self) -> str:
        """Wait for the client; returns why no check can be made, or an empty text."""
        conversation = self._conversation
        opened = conversation.wait_for_session()
        said = {
            key: conversation.initialize.get(key) for key in ("clientInfo", "clientCapabilities")
        }
        self._log.add(client=said)
        if not opened:
            closed = "closed the connection before it opened a session"
            return (
                f"the client {closed if self._connection.closed else 'opened no session in time'}"
            )
        cwd = conversation.sessions[conversation.first_session].params.get("cwd")
        if not isinstance(cwd, str) or not self._scratch.work.is_same(cwd):
            return (
                "the client opened its session in another folder than the one that it was "
                "started in; only that one may be written to"
            )
        if self._plan.at == "prompt":
            self._wait(self._plan.wait, until_prompt=True)
            if not conversation.sessions[conversation.first_session].prompts:
                return self._without_prompt()
        return ""

    def _without_prompt(self) -> str:
        """Why no check can be made without a prompt; empty if the client answers all the same."""
        if self._connection.closed:
            return "the client closed the connection before it sent a prompt"
        self._connection.deadline = time.monotonic() + self._plan.patience
        try:
            CheckContext(
                self._connection, self._conversation, self._scratch, "first"
            ).expect_alive()
        except RequestTimeoutError:
            return "the client sent no prompt, and answers no request"
        except (CheckFailedError, CheckSkippedError):
            pass
        return ""

    def _wait(self, seconds: float, *, until_prompt: bool) -> None:
        self._connection.deadline = time.monotonic() + seconds
        first = next(iter(self._conversation.sessions.values()), None)
        try:
            self._connection.until(
                lambda: until_prompt and first is not None and first.prompts > 0, ""
            )
        except RequestTimeoutError:
            return

    def _verdict(self, check: Check) -> Verdict:
        outcome, why = self._try(check)
        self._conversation.end_other_turns()
        return Verdict(check.id, check.level, check.source, check.says, outcome, why)

    def _try(self, check: Check) -> tuple[Outcome, str]:
        if self._stopped:
            return "skipped", f"not tried: {self._stopped}"
        self._connection.deadline = time.monotonic() + self._plan.patience
        context = CheckContext(self._connection, self._conversation, self._scratch, check.id)
        try:
            check.run(context)
        except CheckSkippedError as skipped:
            return "skipped", str(skipped)
        except ConnectionClosedError as closed:
            self._stopped = f"the client had closed the connection in {check.id}"
            self._log.add(gone=check.id)
            return "failed", str(closed)
        except RequestTimeoutError as silence:
            self._probe(context, check.id)
            return "failed", str(silence)
        except CheckFailedError as failed:
            return "failed", str(failed)
        return "passed", ""

    def _probe(self, context: CheckContext, name: str) -> None:
        """After a check without an answer: stop if ordinary requests get none either."""
        self._connection.deadline = time.monotonic() + 2 * self._plan.patience
        try:
            context.expect_alive()
        except RequestTimeoutError:
            self._stopped = f"the client had stopped answering in {name}"
        except (CheckFailedError, CheckSkippedError):
            return
