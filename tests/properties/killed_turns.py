"""Turns of an agent, of whose processes one is killed at a random moment: nothing of the person is lost.

What of the agent's is not taken back then is named, or in the journal.  Run as a program:
``python -m tests.properties.killed_turns [--tries N] [--seed S]``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.faces.command_line import command
from tests.forked import Command
from tests.properties.turn_histories import Call, History, Step, event, history
from tests.properties.turn_player import Place, Player
from tests.properties.turn_truth import Truth, above, tree
from tests.properties.turns import Figures, Found, Played, Wrong, guarded, main, run
from tests.properties.watchdog import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

VICTIMS: Final = ("client", "daemon", "undo", "off", "layers", "guard")
"""Whose process is killed: the hook's, the daemon's, that of undo, of `filepact run` and of a guard."""


class _Killed(Player):
    """Plays a history to real processes of hooks, and kills some.

    Args:
        place: Where.
        truth: What is seen.
        one: The history.
        victim: Whose process is killed.
        chance: When.
    """

    asks = False

    def __init__(
        self, place: Place, truth: Truth, one: History, victim: str, chance: random.Random
    ) -> None:
        super().__init__(place, truth, one)
        self.victim, self.chance = victim, chance
        self.moments: list[str] = []

    def kill_daemon(self) -> None:
        for lock in (self.place.state / "hooks").glob("*.lock"):
            pid = int(lock.read_text() or 0)
            with suppress(ProcessLookupError):
                _ = pid and os.kill(pid, signal.SIGKILL)

    def tell(self, *facts: Any, took: bool = False, inner: bool = False) -> str:
        told = {**event(*facts), "cwd": str(self.place.root)}
        told |= {"agent_id": "a1"} if inner else {}
        assert not took, "nobody is asked here"
        with Command(
            ["hook", "claude", *self.place.common],
            cwd=self.place.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            strikes = self.chance.random() < 0.25
            process.stdin.write(json.dumps(told).encode())
            process.stdin.close()
            process.stdin = None
            if strikes and self.victim in ("client", "daemon"):
                time.sleep(self.chance.random() * 0.03)
                self.moments.append(str(facts[0]))
                if self.victim == "client":
                    process.kill()
                    self.unheard |= facts[0] == "PostToolUse"
                else:
                    self.kill_daemon()
            out, _ = process.communicate()
        self.unheard = self.unheard and (strikes or facts[0] != "Stop")
        if self.victim == "daemon" and self.chance.random() < 0.1:
            self.moments.append(f"after {facts[0]}")
            self.kill_daemon()
        return str(out.decode())


def _start(words: tuple[str, ...], place: Place) -> Command:
    return Command(
        words,
        cwd=place.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _struck(process: Command, chance: random.Random, most: float) -> None:
    time.sleep(chance.random() * most)
    process.kill()
    process.communicate()


def _hooks(
    place: Place, one: History, truth: Truth, victim: str, chance: random.Random
) -> tuple[str, list[str]]:
    told = _Killed(place, truth, one, victim, chance)
    try:
        told.play()
    finally:
        told.kill_daemon()
    return "s", told.moments


def _program(
    place: Place, one: History, truth: Truth, victim: str, chance: random.Random
) -> tuple[str, list[str]]:
    """A run or a guard that is killed; what it leaves is found by the next one, or committed."""
    call = next((move for move in one.turn if isinstance(move, Call) and move.tool == "Bash"), None)
    steps = [] if call is None else [step for step in call.steps if isinstance(step, Step)]
    if victim == "guard":
        process = _start(("guard", *place.common), place)
        while not (line := process.stdout.readline()).startswith(b"Guarding"):
            assert line, "it has ended"
        at = chance.randrange(len(steps) + 1)
        for number, step in enumerate(steps):
            if number == at:
                _struck(process, chance, 0.1)
            place.shell(step.line)
            truth.look(place.root, "agent", "while it guarded")
        if process.returncode is None:
            _struck(process, chance, 0.6)
        with _start(("guard", *place.common), place) as again:
            while not (line := again.stdout.readline()).startswith(b"Guarding"):
                assert line, "it has ended"
            again.terminate()
            again.communicate()
        return "all", [f"before step {at}"]
    layers = "required" if victim == "layers" else "off"
    lines = "\n".join(f"({step.line})" for step in steps if step.who == "agent")
    words = ("run", "--layers", layers, *place.common, "--", "sh", "-c", f"echo @\n{lines}")
    process = _start(words, place)
    process.stdout.readline()
    for step in steps:
        if step.who == "person":
            place.shell(step.line)
            truth.look(place.root, "either", "while it ran")
    _struck(process, chance, 0.15)
    for left in json.loads(command("runs", "--json", *place.common).out)["runs"]:
        said = command("runs", "--commit", left["run"], *place.common)
        # What the rules want a person for stays, and is said.
        if said.code and "not committed, and kept as" not in said.err:
            raise Found(Wrong(f"{victim}: a run that was killed cannot be committed", said.err))
    # What a program without layers still did after the kill, nobody records but the next look.
    truth.look(place.root, "agent", "while it ran")
    return place.session("run-"), ["while it ran"]


def play(one: History, folder: Path, victim: str, chance: random.Random) -> Played:
    """Play a history in an empty folder, kill, take it back, and look."""
    place = Place(folder)
    place.shell("\n".join(f"({line})" for line in one.tree))
    truth = Truth.of(place.root)
    plays = _hooks if victim in ("client", "daemon", "undo") else _program
    try:
        session, moments = plays(place, one, truth, victim, chance)
        for step in one.later:
            place.shell(step.line)
            truth.look(place.root, "person", "afterwards")
        wrong = _taken_back(place, truth, victim, session, moments, chance)
    except Found as found:
        wrong = found.wrong
    finally:
        place.close()
    return Played(truth.acted, wrong)


def _taken_back(
    place: Place,
    truth: Truth,
    victim: str,
    session: str,
    moments: list[str],
    chance: random.Random,
) -> Wrong | None:
    if session == "all":
        words: tuple[str, ...] = tuple(each["id"] for each in place.log())
    else:
        words = ("--session", session) if session else ()
    if victim == "undo" and words:
        _struck(_start(("undo", "--unattended", *words, *place.common), place), chance, 0.15)
        moments = ["undo"]
    code, said = place.undo(*words) if words else (3, "nothing was recorded")
    if code == 1 and "--partly" in said:
        code, said = place.undo(*words, "--partly")
    return _judged(place, truth, victim, moments, f"exit {code}: {said}")


def _judged(place: Place, truth: Truth, victim: str, moments: list[str], said: str) -> Wrong | None:
    found = tree(place.root)
    recorded = {one["path"] for operation in place.log() for one in operation.get("files", ())}
    held = {at for name in found for at in above(name)}
    for name in truth.names(found):
        wanted, _ = truth.wanted(name)
        entry = found.get(name)
        if truth.suits(name, entry) or (None in wanted and name in held):
            continue
        changes = truth.really(name)
        # What came and went at once was there at a look of which nobody heard, and comes back by the undo.
        if not changes and name not in truth.now and name in recorded:
            continue
        detail = f"{name!r}: wanted {wanted!r:.300}, is {entry!r:.300}\n{changes!r:.600}\nkilled: {moments}\n{said}"
        if not any(one[0] == "agent" for one in changes):
            when = changes[-1][3] if changes else "untouched"
            return Wrong(f"{victim}: a person's is lost, {when}", detail)
        if name not in recorded and name not in said and entry != truth.now.get(name):
            return Wrong(f"{victim}: neither back nor as it was", detail)
    check = command("state", "check", *place.common)
    if check.code:
        return Wrong(f"{victim}: the journal is damaged", check.out + check.err)
    return None


def tried(seed: int, victim: str, base: str | None = None) -> tuple[History, Played]:
    """Play the history of a seed, with a kill."""
    one = history(seed, "hook")
    one = replace(one, earlier=(), back="--session", host=False, killed=False)
    base = None if victim == "layers" else base
    with tempfile.TemporaryDirectory(dir=base, ignore_cleanup_errors=True) as folder:
        chance = random.Random(seed)
        given = victim, folder, lambda: play(one, Path(folder), victim, chance)
        return one, guarded(*given, PATIENCE)


def through_kills(tries: int, seed: int, victims: Sequence[str], **limits: Any) -> Figures:
    """Kill some."""
    return run(tries, seed, victims, tried, **limits)


if __name__ == "__main__":
    sys.exit(main("tests.properties.killed_turns", __doc__, VICTIMS, VICTIMS, through_kills))
