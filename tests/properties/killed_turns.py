"""Turns of an agent, of whose processes one is killed at a random moment: nothing of the person is lost.

What of the agent's is not taken back then is named, or in the journal.  Run as a program:
``python -m tests.properties.killed_turns [--tries N] [--seed S]``.
"""

from __future__ import annotations

import argparse
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
from tests.properties.turn_histories import Call, History, Step, event, history, script
from tests.properties.turn_truth import Truth, tree
from tests.properties.turns import Figures, Found, Place, Wrong, ready

if TYPE_CHECKING:
    from collections.abc import Sequence

VICTIMS: Final = ("client", "daemon", "undo", "off", "layers", "guard")
"""Whose process is killed: the hook's, the daemon's, that of undo, of `filepact run` and of a guard."""


class _Killed:
    """Plays a history to real processes of hooks, and kills some.

    Args:
        place: Where.
        truth: What is seen.
        victim: Whose process is killed.
        chance: When.
    """

    def __init__(self, place: Place, truth: Truth, victim: str, chance: random.Random) -> None:
        self.place, self.truth, self.victim, self.chance = place, truth, victim, chance
        self.number = 0
        self.moments: list[str] = []

    def daemons(self) -> list[int]:
        locks = (self.place.state / "hooks").glob("*.lock")
        return [int(one.read_text() or 0) for one in locks]

    def kill_daemon(self) -> None:
        for pid in filter(None, self.daemons()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def tell(self, *facts: Any) -> str:
        told = json.dumps({**event(*facts), "cwd": str(self.place.root)}).encode()
        with Command(
            ["hook", "claude", *self.place.common],
            cwd=self.place.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            strikes = self.chance.random() < 0.25
            process.stdin.write(told)
            process.stdin.close()
            process.stdin = None
            if strikes and self.victim in ("client", "daemon"):
                time.sleep(self.chance.random() * 0.03)
                self.moments.append(str(facts[0]))
                if self.victim == "client":
                    process.kill()
                else:
                    self.kill_daemon()
            out, _ = process.communicate()
        if self.victim == "daemon" and self.chance.random() < 0.1:
            self.moments.append(f"after {facts[0]}")
            self.kill_daemon()
        return out.decode()

    def play(self, one: History) -> None:
        self.tell("SessionStart")
        self.tell("UserPromptSubmit", "t2")
        self.moves(one.turn, "between calls")
        self.tell("Stop", "t2")

    def moves(self, moves: tuple[Step | Call, ...], when: str, *, runs: bool = False) -> None:
        begun = False
        for move in moves:
            if isinstance(move, Call):
                self.number += 1
                number = self.number
                if '"deny"' in self.tell("PreToolUse", "t2", move, number):
                    continue
                since = self.truth.counts
                self.moves(move.steps, f"during {move.tool}", runs=move.tool == "Bash")
                if move.tool != "Bash" or move.command:
                    self.tell("PostToolUse", "t2", move, number)
                if move.tool != "Task":
                    self.truth.blend(since)
                continue
            self.place.shell(move.line)
            begun = begun or move.who == "agent"
            who = move.who if move.who == "agent" or not runs else "either"
            self.truth.see(tree(self.place.root), who, when)


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
    told = _Killed(place, truth, victim, chance)
    try:
        told.play(one)
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
            truth.see(tree(place.root), "agent", "while it guarded")
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
            truth.see(tree(place.root), "either", "while it ran")
    _struck(process, chance, 0.15)
    for run in json.loads(command("runs", "--json", *place.common).out)["runs"]:
        said = command("runs", "--commit", run["run"], *place.common)
        # What the rules want a person for stays, and is said.
        if said.code and "not committed, and kept as" not in said.err:
            raise Found(Wrong(f"{victim}: a run that was killed cannot be committed", said.err))
    # What a program without layers still did after the kill, nobody records but the next look.
    truth.see(tree(place.root), "agent", "while it ran")
    return place.session("run-"), ["while it ran"]


def play(one: History, folder: Path, victim: str, chance: random.Random) -> Wrong | None:
    """Play a history in an empty folder, kill, take it back, and look."""
    place = Place(folder)
    place.shell("\n".join(f"({line})" for line in one.tree))
    truth = Truth(tree(place.root))
    plays = _hooks if victim in ("client", "daemon", "undo") else _program
    try:
        session, moments = plays(place, one, truth, victim, chance)
    except Found as found:
        return found.wrong
    for step in one.later:
        place.shell(step.line)
        truth.see(tree(place.root), "person", "afterwards")
    if session == "all":
        found = json.loads(command("log", "--all", "--json", *place.common).out)["operations"]
        words: tuple[str, ...] = tuple(each["id"] for each in found)
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
    log = json.loads(command("log", "--all", "--json", *place.common).out)["operations"]
    recorded = {one["path"] for operation in log for one in operation.get("files", ())}
    held = {name.rpartition("/")[0] for name in found}
    for name in sorted(truth.now.keys() | found.keys() | truth.changes.keys()):
        wanted, _ = truth.wanted(name)
        entry = found.get(name)
        if truth.suits(name, entry) or (None in wanted and name in held):
            continue
        changes = truth.changes.get(name, [])
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


def tried(seed: int, victim: str, base: str | None = None) -> tuple[History, Wrong | None]:
    """Play the history of a seed, with a kill."""
    one = replace(history(seed, "hook"), earlier=(), back="--session")
    base = None if victim == "layers" else base
    with tempfile.TemporaryDirectory(dir=base, ignore_cleanup_errors=True) as folder:
        try:
            return one, play(one, Path(folder), victim, random.Random(seed))
        except Exception as error:  # noqa: BLE001 - whatever is raised is the finding
            return one, Wrong(f"{victim}: raised {type(error).__name__}", f"{error!r}")


def run(tries: int, seed: int, victims: Sequence[str]) -> Figures:
    """Kill some.

    Args:
        tries: How many.
        seed: Of the first.
        victims: Whose processes; one after the other, and again.
    """
    figures = Figures()
    base = ready()
    for at in range(seed, seed + tries):
        victim = victims[at % len(victims)]
        one, wrong = tried(at, victim, base)
        figures.played[victim] += 1
        if wrong is None:
            continue
        figures.wrong[wrong.kind] += 1
        if figures.wrong[wrong.kind] == 1:
            said = f"WRONG: {wrong.kind} (seed {at})\n{wrong.said}\n{script(one)}\n"
            print(said, flush=True)
            figures.said += said
    return figures


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.properties.killed_turns", description=__doc__)
    parser.add_argument("--tries", type=int, default=200, help="how many kills")
    parser.add_argument("--seed", type=int, default=0, help="the first of the seeds")
    parser.add_argument("--victim", choices=VICTIMS, action="append", help="only these")
    given = parser.parse_args(arguments)
    figures = run(given.tries, given.seed, given.victim or VICTIMS)
    print(figures)
    return 1 if figures.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
