"""The four doors between an agent and the files, and which of them an agent uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact.faces.acp.proxy.questions import Questions
    from filepact.faces.acp.proxy.traffic import Facts

__all__ = ["AGENTS", "Doors", "Habits", "Links", "habits_of"]

Use = Literal["yes", "no", "in part"]


@dataclass(frozen=True, slots=True)
class Habits:
    """What an agent was seen to do.

    Attributes:
        version: In which it was seen.
        reads: Whether it reads files through its client.
        writes: Whether it writes them so.
        asks: Whether it asks for permission before it changes a file.
        tools: Whether it uses the tools of a server that the client names.
        note: What else there is to know.
    """

    version: str
    reads: Use
    writes: Use
    asks: Use
    tools: Use
    note: str = ""


AGENTS: Mapping[str, Habits] = {
    "claude-agent-acp": Habits(
        "0.100.0", "no", "no", "yes", "yes", "speaks version 2, which has no files of clients"
    ),
    "claude-code-acp": Habits("0.16.2", "yes", "yes", "yes", "yes", "asks for 2,000 lines at most"),
    "code-puppy": Habits("0.0.946", "yes", "yes", "no", "yes", "reads two or three times an edit"),
    "fast-agent": Habits("0.10.46", "yes", "yes", "in part", "yes"),
    "gemini-cli": Habits(
        "0.61.0", "in part", "yes", "yes", "yes", "its reading tool reads the disk"
    ),
    "kimi-code": Habits("2.1.0", "yes", "yes", "yes", "yes"),
    "mistral-vibe": Habits("3.0.2", "no", "no", "in part", "yes", "asks nobody inside the folder"),
    "opencode": Habits(
        "1.18.33",
        "no",
        "in part",
        "in part",
        "yes",
        "writes by itself and tells its client afterwards",
    ),
    "qwen-code": Habits(
        "0.24.4", "yes", "yes", "in part", "yes", "looks up such tools by a search"
    ),
}
"""By the name that an agent gives itself, without the scope of a package."""


def habits_of(agent: str) -> Habits | None:
    """What is known of an agent by its name."""
    return AGENTS.get(agent.rpartition("/")[2].lower())


class Doors:
    """What came through each door of one connection."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts = dict.fromkeys(("reads", "writes", "asked", "refused", "calls", "past"), 0)

    def count(self, what: str, number: int = 1) -> None:
        """Something has come through."""
        with self._lock:
            self._counts[what] += number

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each was used.

        ``reads`` and ``writes`` through the protocol, permissions ``asked`` for and ``refused`` by
        the rules, ``calls`` of tools, and files changed ``past`` all of these.
        """
        with self._lock:
            return dict(self._counts)

    def __str__(self) -> str:
        counts = self.counts
        return (
            f"{counts['reads']} reads and {counts['writes']} writes through the protocol, "
            f"{counts['asked']} permissions asked for ({counts['refused']} refused by the rules), "
            f"{counts['calls']} calls of tools, {counts['past']} files changed past the doors"
        )


@dataclass(frozen=True, slots=True)
class Links:
    """The ways from the service back to both sides.

    Attributes:
        to_editor: Takes a line for the editor.
        to_agent: Takes a line for the agent.
        questions: Asks the editor.
        facts: What both sides have said about themselves.
        doors: Counts what comes through.
    """

    to_editor: Callable[[bytes], None]
    to_agent: Callable[[bytes], None]
    questions: Questions
    facts: Facts
    doors: Doors = field(default_factory=Doors)
