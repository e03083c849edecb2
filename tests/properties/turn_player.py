"""Plays a history: the lines of both, and the events that an agent's program tells its hooks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from filepact.app import open_workspace
from filepact.config.settings import Settings
from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError
from filepact_hooks.service import HookDaemon
from tests.faces.command_line import command
from tests.properties.turn_histories import ANOTHER, Call, History, Step, event
from tests.properties.turn_truth import above
from tests.workspace.acting import write

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.workspace.workspace import Workspace
    from filepact_hooks.tool_call import HostProcess
    from tests.properties.turn_truth import Truth

SLACK = 1_000_000_000
"""Nanoseconds before a command began in which a change may be its own, since no clock is exact."""


class Shell:
    """A shell in a folder, which runs lines one after the other."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            ["sh"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def run(self, line: str) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"({line}\n) < /dev/null > /dev/null\necho @\n".encode())
        self._process.stdin.flush()
        assert self._process.stdout.readline() == b"@\n", line

    def close(self) -> None:
        self._process.communicate()

    @property
    def process(self) -> HostProcess:
        return self._process.pid, _started(self._process.pid)


def _started(process: int) -> str:
    with open(f"/proc/{process}/stat") as stream:
        return stream.read().rpartition(")")[2].split()[19]


class Place:
    """A root and a state folder.

    Args:
        folder: Where.

    Attributes:
        mark: What the names of sessions, turns and calls end with: no two turns in a place have the same.
        daemon: The hooks' daemon, while one serves the place.
        at: The player that is heard by it.
        stays: Whether it goes on from turn to turn, also while one is taken back.
    """

    mark = ""
    stays = False
    daemon: HookDaemon | None = None
    at: DaemonPlayer

    def __init__(self, folder: Path) -> None:
        self.root, self.state = folder / "root", folder / "state"
        self.root.mkdir(parents=True)
        self.config = folder / "settings.toml"
        self.config.write_text("[recording]\nquiet = 0.05\nlongest = 1\n")
        self.common = (
            *("--root", str(self.root), "--state", str(self.state)),
            *("--config", str(self.config)),
        )
        self._shells: dict[Path, Shell] = {}
        self._known: set[str] = set()

    def open_daemon(self) -> HookDaemon:
        """The daemon, which is started if none serves the place."""
        if self.daemon is None:
            roots = (str(self.root),)
            self.daemon = HookDaemon(roots, str(self.state), str(self.config), now=self._now)
        return self.daemon

    def _now(self) -> int:
        return self.at.now()

    def end_daemon(self) -> None:
        daemon, self.daemon = self.daemon, None
        if daemon is not None:
            daemon.close()

    def shell(self, line: str, root: Path | None = None) -> None:
        """Run a line of shell."""
        folder = root or self.root
        if folder not in self._shells:
            self._shells[folder] = Shell(folder)
        self._shells[folder].run(line)

    def close(self) -> None:
        self.end_daemon()
        for folder in [*self._shells]:
            self.leave(folder)

    def leave(self, folder: Path) -> None:
        """End the shell in a folder, if there is one."""
        if folder in self._shells:
            self._shells.pop(folder).close()

    def undo(self, *words: str) -> tuple[int, str]:
        said = command("undo", "--unattended", *words, *self.common)
        return said.code, said.out + said.err

    def log(self) -> list[dict[str, Any]]:
        """What was done, the newest first: as much as one turn may have done, if there were others here."""
        much = ("-n", "40") if self.mark else ("--all",)
        found = json.loads(command("log", *much, "--json", *self.common).out)
        operations: list[dict[str, Any]] = found["operations"]
        return operations

    def session(self, begins: str) -> str:
        """The session that has come since this was last asked for; empty if none has."""
        came = [one["session"] for one in self.log() if one["session"].startswith(begins)]
        new = [one for one in came if one not in self._known]
        self._known.update(came)
        return next(iter(new), "")


COARSE = 25_000_000
"""Nanoseconds by which the birth of a file may be told too early."""


def _later_than_all(root: Path) -> int:
    """Wait until the clock of the disk is past all that was changed until now, also by the times of birth; that time."""
    clock = root.parent / "clock"
    before = 0
    while True:
        clock.write_text("")
        now = clock.stat().st_mtime_ns
        if now > (before := before or now) + COARSE:
            return now
        time.sleep(0.001)


def _leads(folder: Path, name: str) -> str:
    """The file that a name in a folder leads to now."""
    root = os.path.realpath(folder)
    return os.path.relpath(os.path.realpath(os.path.join(root, name)), root)


class Player:
    """Plays a history to hooks; how these are told is for who inherits from it.

    Args:
        place: Where.
        truth: What is seen.
        one: The history.

    Attributes:
        asks: Whether a person is asked about each call, and its end says how long it has run.
        ran: When the command that is under way began; 0 while none runs.
        unheard: Whether nobody has heard that a command is over, which is documented as not covered.
        beneath: Whether a command of another agent runs around the call that is under way.
        waits: Whether a person is asked about such a command.
    """

    asks = True

    def __init__(self, place: Place, truth: Truth, one: History) -> None:
        self.place, self.truth, self.one = place, truth, one
        self.ran = 0
        self.unheard = self.beneath = self.waits = False
        self._number = 0
        self._mine = "", ""
        self._led: set[str] = set()

    def tell(self, *facts: Any, took: bool = False, inner: bool = False) -> str:
        """Tell of an event; the answer."""
        raise NotImplementedError

    def play(self) -> None:
        one = self.one
        self.tell("SessionStart")
        if one.others:
            self.tell("UserPromptSubmit", ANOTHER)
        whole = one.back == "--session"
        for turn, moves in (("t1", one.earlier), ("t2", one.turn)):
            if moves:
                self.tell("UserPromptSubmit", turn)
                agent = "agent" if whole or turn == "t2" else "other"
                self._mine = turn, agent
                last = [at for at, move in enumerate(moves) if isinstance(move, Call)][-1:]
                if one.killed and turn == "t2" and last:
                    self.moves(moves[: last[0]], turn, agent, "between calls")
                    self.call(moves[last[0]], turn, agent, killed=True)  # type: ignore[arg-type]
                    self.die()
                    self.moves(moves[last[0] + 1 :], turn, agent, "after the agent's end")
                    return
                self.moves(moves, turn, agent, "between calls")
                self.tell("Stop", turn)
        if one.others and self.place.stays:
            self.tell("Stop", ANOTHER)

    def moves(
        self,
        moves: tuple[Step | Call, ...],
        turn: str,
        agent: str,
        when: str,
        *,
        by: Call | None = None,
        asks: bool = True,
    ) -> None:
        runs = by is not None and by.tool == "Bash"
        begun = not (self.asks and asks)
        since = self.truth.counts
        for move in moves:
            if isinstance(move, Call) and (move.another or (by is not None and by.another)):
                self.beside(move, turn, agent, by, since)
            elif isinstance(move, Call):
                self.call(move, turn, agent, inner=by is not None)
            elif move.who == "late":
                self.late()
            elif by is not None and by.own and move.who == "agent":
                self.write(by, move.line, turn)
                self.truth.look(self.place.root, agent, when)
            else:
                if move.who == "agent" and runs and not self.ran and self.asks:
                    self.ran = _later_than_all(self.place.root)
                begun = begun or bool(self.ran)
                if move.who == "agent" and by is not None and by.named:
                    self._led.add(_leads(self.place.root, by.named))
                self.place.shell(move.line)
                # By a link that a command has moved it writes what no word of it names.
                written = re.findall(r">> (\S+)", move.line) if move.who == "agent" and runs else ()
                anew = (name for name in written if name not in self.truth.now)
                self._led.update(_leads(self.place.root, name) for name in anew)
                # What a person saves while a command runs is put down to the command.
                during = (runs and begun) or self.unheard or self.beneath
                who = agent if move.who == "agent" else "either" if during else "person"
                asked = when if during or not (runs or self.waits) else f"asked about {when}"
                self.truth.look(self.place.root, who, asked)

    def beside(
        self, call: Call, turn: str, agent: str, by: Call | None, since: dict[str, int]
    ) -> None:
        """Play a call of another agent, or one that begins and ends while one of another agent is under way."""
        outer = self.ran, self.beneath, self.waits
        within = by is not None and by.tool == "Bash"
        runs = within and (bool(self.ran) or not self.asks)
        self.ran, self.beneath = 0, self.beneath or runs
        self.waits = self.waits or (within and not runs)
        self.call(call, *((turn, agent) if call.another else self._mine))
        self.ran, self.beneath, self.waits = outer
        if by is not None and by.another != call.another:
            # What either may have changed is nobody's, but for what only one of them names.
            self.truth.share(since)

    def call(
        self, call: Call, turn: str, agent: str, *, inner: bool = False, killed: bool = False
    ) -> None:
        self._number += 1
        number = self._number
        turn, agent = (ANOTHER, "other") if call.another else (turn, agent)
        if '"deny"' in self.tell("PreToolUse", turn, call, number, inner=inner):
            return
        since = self.truth.counts
        named = {call.named, _leads(self.place.root, call.named)} if call.named else set()
        # Of a command that was asked about and broken off nobody knows whether it ran.
        asks = self.asks and not killed
        if asks:
            self.tell("PermissionRequest", turn, call, inner=inner)
        self._call, self._led = number, set()
        self.moves(call.steps, turn, agent, f"during {call.tool}", by=call, asks=asks)
        # A call has what it names, whoever wrote it meanwhile, also if nobody hears of its end.
        led = {_leads(self.place.root, call.named)} if call.named else set()
        self.truth.through |= (led | self._led) - named
        # What somebody moved away from a name of its words meanwhile goes back to that.
        named |= led | {new for old, new in self.truth.moved.items() if old in call.command}
        if killed:
            self.truth.blend(since, set() if call.own else named)
            self.ran = 0
            return
        if call.tool == "Bash" and not (self.ran if self.asks else call.command):
            return  # The person has said no.
        self.behind(call, since, agent)
        self.tell("PostToolUse", turn, call, number, took=bool(self.ran), inner=inner)
        self.ran = 0
        if call.tool != "Task" and not call.own:
            self.truth.blend(since, named)

    def write(self, call: Call, text: str, turn: str) -> None:
        """Have a tool of ours write a file."""

    def behind(self, call: Call, since: dict[str, int], agent: str) -> None:
        """Start what a command leaves in the background."""

    def late(self) -> None:
        """Have something in the background go on."""

    def die(self) -> None:
        """The agent's program is killed."""


class _Behind:
    """What a command has left in the background.

    Args:
        call: The command.
        folder: Where.
        truth: What is seen.
        since: How often each file had changed when the call began.
        agent: Whose call it is: of this turn, or of an earlier one.
    """

    def __init__(
        self, call: Call, folder: Path, truth: Truth, since: dict[str, int], agent: str
    ) -> None:
        self.agent = agent
        self.shell = Shell(folder)
        self.process = self.shell.process
        self.lines = list(call.behind)
        self.since = since
        self.folder = folder
        names = {line.rpartition(">> ")[2] for line in call.behind}
        leads = {one: _leads(folder, one) for one in names}
        # What the call has changed before, or made anew as it was, by whatever name, is not its own any more: other than
        # what a person has put there while they were asked.
        self.names = {
            one: to
            for one, to in leads.items()
            if not any(
                change[0] != "person"
                for each in ({one} if one == to else {one, to, *above(one)})
                for change in truth.changes.get(each, [])[since.get(each, 0) :]
            )
        }
        self.since = truth.counts

    def has(self, name: str) -> bool:
        """Whether what is written to a name now is its own: it names that file, and had not written it before."""
        return self.names.get(name) == _leads(self.folder, name)

    def blend(self, truth: Truth) -> None:
        """What somebody else changed of what it names, nobody can tell from its own."""
        for name in self.names.values():
            changes = truth.changes.get(name, [])
            at = self.since.get(name, 0)
            if any(change[0] not in (self.agent, "touch") for change in changes[at:]):
                changes[at:] = [("either", *change[1:]) for change in changes[at:]]
                # A folder that goes with a file that it names is put down to it as well.
                for folder in above(name) if changes[-1][2] is None else ():
                    some = truth.changes.get(folder, [])
                    some[:] = [("either", *one[1:]) if one[2] is None else one for one in some]


_EVENTS = count()


class DaemonPlayer(Player):
    """Plays a history to a daemon in this process."""

    def __init__(self, place: Place, truth: Truth, one: History) -> None:
        super().__init__(place, truth, one)
        place.at = self
        self.daemon = place.open_daemon()
        self._host = (os.getpid(), _started(os.getpid()))
        self._behind: list[_Behind] = []
        self._workspace: Workspace | None = None

    def close(self) -> None:
        for one in self._behind:
            one.shell.close()
            self.daemon.ended(one.process)
        if self._workspace is not None:
            self._workspace.close()

    def play(self) -> None:
        super().play()
        for one in self._behind:
            one.blend(self.truth)

    def now(self) -> int:
        """The time; at the end of a command one at which it has just begun, as far as the daemon may tell."""
        return self.ran - 1 + SLACK if self.ran else time.time_ns()

    def tell(self, *facts: Any, took: bool = False, inner: bool = False) -> str:
        told = {**event(*facts), "cwd": str(self.place.root)}
        names = {"session_id", "prompt_id", "tool_use_id"} & told.keys()
        told |= {name: f"{told[name]}{self.place.mark}" for name in names}
        told |= {"duration_ms": 0} if took else {}
        told |= {"agent_id": "a1"} if inner else {}
        ticks = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
        hook = ((1 << 30) + next(_EVENTS), str(ticks))
        above = (hook, self._host) if self.one.host else ()
        out = self.daemon.answer("claude", json.dumps(told).encode(), above=above).out
        assert "filepact records nothing" not in out, out
        return out

    def write(self, call: Call, text: str, turn: str) -> None:
        if self._workspace is None:
            self._workspace = open_workspace(
                str(self.place.root), state_dir=str(self.place.state), settings=Settings()
            )
        known = self.daemon.turns_of(self._host)
        mark = self.place.mark
        name, turn = f"toolu_{self._call}{mark}", f"{turn}{mark}"
        assert not self.one.host or known[name] == turn, known
        actor = Actor("agent", "claude-code")
        session = Session(f"ours{mark}", actor, f"s{mark}", turn=turn, call=name)
        with suppress(FilepactError):
            write(self._workspace, session, call.named, f"{text}\n")

    def behind(self, call: Call, since: dict[str, int], agent: str) -> None:
        if call.behind and self.one.host:
            self._behind.append(_Behind(call, self.place.root, self.truth, since, agent))

    def late(self) -> None:
        for one in self._behind[:1]:
            line = one.lines.pop(0)
            name = line.rpartition(">> ")[2]
            who = one.agent if one.has(name) else "either"
            one.shell.run(line)
            self.truth.look(self.place.root, who, "in the background")
            if not one.lines:
                self._end(self._behind.pop(0))

    def _end(self, one: _Behind) -> None:
        """It has ended, which the daemon sees; what both changed of what it names is all its own."""
        one.shell.close()
        self.daemon.ended(one.process)
        one.blend(self.truth)

    def die(self) -> None:
        for one in self._behind:
            one.shell.close()
            one.blend(self.truth)
        self._behind.clear()
        self.daemon.ended(self._host)
