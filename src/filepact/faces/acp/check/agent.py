"""The scripted agent: answers like any agent, and then looks at how it is answered."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from filepact.faces.acp.check.checks import choose
from filepact.faces.acp.check.conversation import Conversation
from filepact.faces.acp.check.folder import Scratch
from filepact.faces.acp.check.outcome import Failed, Outcome, Skipped, Verdict
from filepact.faces.acp.check.peer import Closed, NoAnswer, Peer
from filepact.faces.acp.check.plan import Log, Plan
from filepact.faces.acp.check.scene import Scene

if TYPE_CHECKING:
    from io import BufferedReader
    from typing import BinaryIO

    from filepact.faces.acp.check.group import Check

__all__ = ["serve"]

_A_DAY = 86_400.0


def serve(path: str, source: BufferedReader | None = None, sink: BinaryIO | None = None) -> None:
    """Be an agent until the client closes its end.

    Args:
        path: The folder that `prepare` has filled; what is found is written there.
        source: Where the client's messages come from; None is standard input.
        sink: Where ours go; None is standard output.
    """
    scratch = Scratch(path)
    if source is None:
        source = cast("BufferedReader", sys.stdin.buffer)
    _Agent(scratch, source, sink or sys.stdout.buffer).serve()


class _Agent:
    def __init__(self, scratch: Scratch, source: BufferedReader, sink: BinaryIO) -> None:
        self._plan = plan = Plan.load(scratch)
        self._scratch = scratch
        self._log = Log(scratch)
        self._talk = Conversation(plan, self._log, scratch.work.at("alive.txt"))
        self._peer = self._talk.peer = Peer(source, sink, self._talk.hear)
        self._stuck = ""

    def serve(self) -> None:
        self._peer.deadline = time.monotonic() + self._plan.wait
        self._peer.start()
        trouble = self._meet()
        if trouble:
            self._log.add(trouble=trouble)
        else:
            for check in choose(self._plan.only):
                self._log.add(verdict=asdict(self._verdict(check)))
        self._log.add(over=True)
        for opened in self._talk.sessions.values():
            self._talk.end_turn(opened)
        self._wait(_A_DAY, until_prompt=False)

    def _meet(self) -> str:
        """Wait for the client; the answer is why no check can run, or empty."""
        talk = self._talk
        opened = talk.wait_for_client()
        said = {key: talk.initialize.get(key) for key in ("clientInfo", "clientCapabilities")}
        self._log.add(client=said)
        if not opened:
            closed = "closed the connection before it opened a session"
            return f"the client {closed if self._peer.closed else 'opened no session in time'}"
        cwd = talk.sessions[talk.first_session].params.get("cwd")
        if not isinstance(cwd, str) or not self._scratch.work.is_same(cwd):
            return (
                "the client opened its session in another folder than the one that it was "
                "started in; only that one may be written to"
            )
        if self._plan.at == "prompt":
            self._wait(self._plan.wait, until_prompt=True)
            if not talk.sessions[talk.first_session].prompts:
                return self._without_prompt()
        return ""

    def _without_prompt(self) -> str:
        """Why no check can run, where there is no prompt; empty where the client goes on."""
        if self._peer.closed:
            return "the client closed the connection before it sent a prompt"
        self._peer.deadline = time.monotonic() + self._plan.patience
        try:
            Scene(self._peer, self._talk, self._scratch, "first").alive()
        except NoAnswer:
            return "the client sent no prompt, and answers no request"
        except (Failed, Skipped):
            pass
        return ""

    def _wait(self, seconds: float, *, until_prompt: bool) -> None:
        self._peer.deadline = time.monotonic() + seconds
        first = next(iter(self._talk.sessions.values()), None)
        try:
            self._peer.until(lambda: until_prompt and first is not None and first.prompts > 0, "")
        except NoAnswer:
            return

    def _verdict(self, check: Check) -> Verdict:
        outcome, why = self._try(check)
        self._talk.end_other_turns()
        return Verdict(check.id, check.level, check.source, check.says, outcome, why)

    def _try(self, check: Check) -> tuple[Outcome, str]:
        if self._stuck:
            return "skipped", f"not tried: {self._stuck}"
        self._peer.deadline = time.monotonic() + self._plan.patience
        scene = Scene(self._peer, self._talk, self._scratch, check.id)
        try:
            check.run(scene)
        except Skipped as skipped:
            return "skipped", str(skipped)
        except Closed as closed:
            self._stuck = f"the client had closed the connection in {check.id}"
            self._log.add(gone=check.id)
            return "failed", str(closed)
        except NoAnswer as silence:
            self._probe(scene, check.id)
            return "failed", str(silence)
        except Failed as failed:
            return "failed", str(failed)
        return "passed", ""

    def _probe(self, scene: Scene, name: str) -> None:
        """After a silence: give up if the client does not answer ordinary requests either."""
        self._peer.deadline = time.monotonic() + 2 * self._plan.patience
        try:
            scene.alive()
        except NoAnswer:
            self._stuck = f"the client had stopped answering in {name}"
        except (Failed, Skipped):
            return
