"""The suite's throw-away folder: the only files that it touches, and how it talks with its agent.

The client runs in one folder of it and must not reach the folders beside that.  The agent is
another process, started by the client: it reads its plan from a file, and adds what it finds to a
log, which the suite follows.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from acp_conformance.report import Report, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "At",
    "CheckFolders",
    "CheckLog",
    "Folder",
    "Plan",
    "agent_command",
    "new_scratch",
    "prepare",
]

_PLAN, _LOG, _AGENT = "plan.json", "report.jsonl", "agent"

At = Literal["prompt", "session"]


class Folder:
    """A folder that a check may write to.

    Args:
        path: Absolute, with every link resolved.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._path = Path(path)

    def at(self, name: str) -> str:
        """The path of an entry."""
        return f"{self.path}/{name}"

    def below(self, name: str) -> Folder:
        """A folder in it, created if needed."""
        (self._path / name).mkdir(parents=True, exist_ok=True)
        return Folder(self.at(name))

    def put(self, name: str, data: bytes, mode: int | None = None) -> str:
        """Write a file; returns its path."""
        file = self._path / name
        file.write_bytes(data)
        if mode is not None:
            file.chmod(mode)
        return self.at(name)

    def add(self, name: str, data: bytes) -> None:
        """Append to a file, or create it."""
        with (self._path / name).open("ab") as file:
            file.write(data)

    def get(self, name: str) -> bytes | None:
        """A file's bytes; None if there is no file."""
        file = self._path / name
        return file.read_bytes() if file.is_file() else None

    def link(self, name: str, target: str) -> str:
        """Create a symbolic link; returns its path."""
        (self._path / name).symlink_to(target)
        return self.at(name)

    def pipe(self, name: str) -> str:
        """Create a named pipe that nobody writes to; returns its path."""
        os.mkfifo(self._path / name)
        return self.at(name)

    def release(self, name: str) -> None:
        """Wake whoever waits for the other end of a named pipe."""
        os.close(os.open(self._path / name, os.O_RDWR | os.O_NONBLOCK))

    def mode(self, name: str) -> int:
        """A file's permission bits."""
        return (self._path / name).stat().st_mode & 0o7777

    def names(self) -> list[str]:
        """The names of its entries, sorted."""
        return sorted(entry.name for entry in self._path.iterdir())

    def is_same(self, path: str) -> bool:
        """Whether a path leads to this very folder."""
        other = Path(path)
        return other.is_dir() and other.samefile(self._path)


class CheckFolders(Folder):
    """The throw-away folder with its parts.

    Attributes:
        work: The folder of the session that the client opens.
        more: A further folder of sessions that have two.
        other: The folder of another session.
        evil: Beside ``work``, with a name that begins like it.
        outside: No session's.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.work = self.below("work")
        self.more = self.below("more")
        self.other = self.below("other")
        self.evil = self.below("work-evil")
        self.outside = self.below("outside")


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of a run of the checks.

    Attributes:
        at: Begin when the client sends a prompt, or as soon as it has opened a session.
        wait: Seconds that it may take for the session, and as many for the prompt.
        patience: Seconds for one check.
        driven: The suite drives the client, so that the agent can ask for further sessions and
            turns; see `Conversation`.
        only: Ids of checks, or of groups; empty for all.
    """

    at: At = "prompt"
    wait: float = 30.0
    patience: float = 5.0
    driven: bool = False
    only: tuple[str, ...] = ()

    @classmethod
    def load(cls, scratch: CheckFolders) -> Plan:
        """Read the plan that `prepare` wrote."""
        facts = json.loads(scratch.get(_PLAN) or b"{}")
        return cls(**{**facts, "only": tuple(facts.get("only", ()))})


def prepare(path: str, plan: Plan) -> CheckFolders:
    """Fill an empty folder with what the agent and the checks start from."""
    scratch = CheckFolders(path)
    scratch.put(_PLAN, json.dumps(asdict(plan)).encode())
    scratch.put(_LOG, b"")
    scratch.work.put("alive.txt", b"alive\n")
    words = [sys.executable, "-P", "-m", "acp_conformance", "--agent", path]
    # Clients start agents in other folders and with few variables; a script without arguments that
    # sets its own is what all of them can start.
    source = str(Path(__file__).resolve().parents[1])
    script = f"#!/bin/sh\nPYTHONPATH={shlex.quote(source)} exec {shlex.join(words)}\n"
    scratch.put(_AGENT, script.encode(), 0o755)
    return scratch


def agent_command(scratch: CheckFolders) -> tuple[str, ...]:
    """The words that start the agent."""
    return (scratch.at(_AGENT),)


class CheckLog:
    """JSON lines that the agent appends and the suite reads: verdicts, and actions for the client.

    Attributes:
        size: The number of bytes read so far.
        over: The agent has made all checks.
        trouble: Why it could not run the checks.
        gone: The check in which the client closed the connection; empty if it did not.
        client: The client's ``clientInfo`` and ``clientCapabilities``.
    """

    def __init__(self, scratch: CheckFolders) -> None:
        self._scratch = scratch
        self.size = 0
        self._verdicts: list[Verdict] = []
        self.over = False
        self.trouble = ""
        self.gone = ""
        self.client: dict[str, Any] = {}

    def add(self, **facts: object) -> None:
        """Append a line; for the agent."""
        self._scratch.add(_LOG, json.dumps(facts).encode() + b"\n")

    def follow(self) -> Iterator[dict[str, Any]]:
        """Read what is new; yields the actions that the agent asks for."""
        data = self._scratch.get(_LOG) or b""
        whole = data.rfind(b"\n") + 1
        new, self.size = data[self.size : whole], whole
        for line in new.splitlines():
            facts = json.loads(line)
            if "action" in facts:
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
        """Whether a client has connected to the agent."""
        return bool(self.client) or self.over

    def report(self) -> Report:
        """The verdicts so far."""
        return Report(self.client, tuple(self._verdicts))


@contextmanager
def new_scratch(plan: Plan) -> Iterator[CheckFolders]:
    """A prepared throw-away folder, removed at the end."""
    # Compared with what clients send, so without symbolic links.
    path = str(Path(tempfile.mkdtemp(prefix="acp-conformance-")).resolve())
    try:
        yield prepare(path, plan)
    finally:
        shutil.rmtree(path, ignore_errors=True)
