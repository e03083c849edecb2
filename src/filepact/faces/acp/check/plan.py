"""What the suite and the agent that it has started tell each other, as files in their folder."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import filepact
from filepact.faces.acp.check.folder import Scratch
from filepact.faces.acp.check.outcome import Report, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["At", "Log", "Plan", "agent_command", "prepare"]

_PLAN, _LOG, _AGENT = "plan.json", "report.jsonl", "agent"

At = Literal["prompt", "session"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How the checks are to run.

    Attributes:
        at: Begin when the client sends a prompt, or as soon as it has opened a session.
        wait: Seconds that it may take for the session, and as many for the prompt.
        patience: Seconds for one check.
        steered: The client does what the agent wishes; see `Conversation`.
        only: Ids of checks, or of groups; empty for all.
    """

    at: At = "prompt"
    wait: float = 30.0
    patience: float = 5.0
    steered: bool = False
    only: tuple[str, ...] = ()

    @classmethod
    def load(cls, scratch: Scratch) -> Plan:
        """The plan that `prepare` has left."""
        facts = json.loads(scratch.get(_PLAN) or b"{}")
        return cls(**{**facts, "only": tuple(facts.get("only", ()))})


def prepare(path: str, plan: Plan) -> Scratch:
    """Fill an empty folder with all that the agent and the checks need from the start."""
    scratch = Scratch(path)
    scratch.put(_PLAN, json.dumps(asdict(plan)).encode())
    scratch.put(_LOG, b"")
    scratch.work.put("alive.txt", b"alive\n")
    words = [sys.executable, "-P", "-m", "filepact", "acp-check", "--agent", path]
    # Clients start agents in other folders and with few variables; a program of one word that
    # brings its own is what all of them can start.
    source = filepact.__path__[0].rpartition("/")[0]
    script = f"#!/bin/sh\nPYTHONPATH={shlex.quote(source)} exec {shlex.join(words)}\n"
    scratch.put(_AGENT, script.encode(), 0o755)
    return scratch


def agent_command(scratch: Scratch) -> tuple[str, ...]:
    """The words that start the agent."""
    return (scratch.at(_AGENT),)


class Log:
    """Lines that the agent adds and the suite reads: verdicts, wishes, and that it is over.

    Args:
        scratch: Where it is.

    Attributes:
        size: How many bytes have been taken in.
        over: The agent has said its last word.
        trouble: Why it could not run the checks.
        gone: The check in which the client closed the connection; empty if it did not.
        client: What the client said of itself.
    """

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self.size = 0
        self._verdicts: list[Verdict] = []
        self.over = False
        self.trouble = ""
        self.gone = ""
        self.client: dict[str, Any] = {}

    def add(self, **facts: object) -> None:
        """Add a line; the agent's side."""
        self._scratch.add(_LOG, json.dumps(facts).encode() + b"\n")

    def follow(self) -> Iterator[dict[str, Any]]:
        """Take in what is new; yields the agent's wishes."""
        data = self._scratch.get(_LOG) or b""
        whole = data.rfind(b"\n") + 1
        new, self.size = data[self.size : whole], whole
        for line in new.splitlines():
            facts = json.loads(line)
            if "wants" in facts:
                yield facts
            elif "verdict" in facts:
                self._verdicts.append(Verdict(**facts["verdict"]))
            else:
                self.client = facts.get("client", self.client)
                self.trouble = facts.get("trouble", self.trouble)
                self.gone = facts.get("gone", self.gone)
                self.over = self.over or "over" in facts

    @property
    def started(self) -> bool:
        """Whether a client has spoken to the agent."""
        return bool(self.client) or self.over

    def report(self) -> Report:
        """What was found so far."""
        return Report(self.client, tuple(self._verdicts))
