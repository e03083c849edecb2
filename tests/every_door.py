"""Every kind of entry, moved, removed and brought back through every door, and what is different afterwards.

``python -m tests.every_door [--door DOOR] [--entry NAME] [--user] [--base FOLDER [--apart]]`` prints the table in numbers, and
each cell that is wrong.  A cell is *as it was* or *as it is to be*; *refused* with a code, and then nothing is changed; *told*,
where something could not be kept and the answer says so; or *wrong*.

``--whole [--folding FOLDER]`` makes all of it: on disk, in memory and where letter case tells no names apart, as root and as an
ordinary user.  That takes an hour of a processor, most of it for kills and for an ordinary user's processes.

At commit 0aad9fab (2026-11-30), all of it on one head, in 25 minutes of two processors: cells as they are to be / refused of each
door; none told and none wrong, 17,466 and 580 in all:

=======================  ==========  ==========  ============  ============  =======================
.                        ext4, root  ext4, user  memory, root  memory, user  exFAT, root and as user
=======================  ==========  ==========  ============  ============  =======================
tools, restore, library  328 / 14    252 / 19    328 / 14      252 / 19      144 / 0
patch                    184 / 4     136 / 6     184 / 4       136 / 6       80 / 0
mcp                      308 / 19    236 / 23    308 / 19      236 / 23      144 / 0
command                  328 / 14    252 / 19    328 / 14      252 / 19      144 / 0
hooks                    371 / 11    295 / 15    371 / 11      295 / 15      144 / 0
run with layers          364 / 15    295 / 15    371 / 11      295 / 15      144 / 0
run without layers       371 / 11    295 / 15    371 / 11      295 / 15      144 / 0
guard                    355 / 11    281 / 15    355 / 11      281 / 15      144 / 0
killed tools             604 / 0     492 / 0     975 / 0       492 / 0       261 / 0
=======================  ==========  ==========  ============  ============  =======================

Killed was before every 61st call in memory as root and every 131st elsewhere; before, every 7th call of the folder of odd names was 308 / 0.

Not run: every single call of all entries, kills of other doors, and ext4 or XFS that fold letter case, which the kernel here does not
mount.  exFAT was mounted through FUSE, with the state beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import filepact
from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError
from filepact.tools.registry import CallContext
from filepact_hooks.service import HookDaemon
from tests import forked
from tests.entries import ENTRIES, SPECIAL, facts, made
from tests.faces.line_client import serving
from tests.unprivileged import kept_so, unprivileged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from filepact.workspace.workspace import Workspace
    from tests.entries import Entry

__all__ = ["DOORS", "OF_ROOT", "Cell", "Door", "crashed", "judged", "root_judged", "table"]

AGENT = Session("every-door", Actor("agent", "every-door"))
PERSON = Session("person", Actor("person", "person"))
STEPS = ("undo", "redo", "undo")
OF_ROOT = {
    "0700": ("chmod", "700", "."),
    "2750": ("chmod", "2750", "."),
    "0555": ("chmod", "555", "."),
    "0700 with all in it": ("chmod", "-R", "u=rwX,go=", "."),
    "another's": ("chown", "1234:1235", "."),
    "an attribute": ("setfattr", "-n", "user.tag", "-v", "value", "."),
    "an access list": ("setfacl", "-m", "u:1234:rx", "."),
    "a default list": ("setfacl", "-d", "-m", "u:1234:rx", "."),
}
"""What a program makes of the root itself."""
AWAY = "-moved"


@dataclass(frozen=True)
class Cell:
    """One step with one entry through one door."""

    door: str
    entry: str
    step: str
    verdict: str
    said: str = ""

    def __str__(self) -> str:
        return f"{self.door}: {self.entry}, {self.step}: {self.verdict} ({self.said})"


class RefusedError(Exception):
    """A door did not do what was wanted, and said why."""


class Door:
    """One way to move, remove and bring back; each has a root, a state and a home of its own."""

    name: ClassVar[str] = ""
    whole: ClassVar[bool] = False
    """Whether all entries go through it at once, since it takes long to open."""
    known: ClassVar[bool] = True
    """Whether it knows whose a change is, so that restoring takes it back."""

    def __init__(self, base: Path, apart: Path | None = None) -> None:
        apart = apart or base
        self.root, self.state, self.home = base / "root", apart / "state", apart / "home"
        for one in (self.root, self.home):
            one.mkdir(parents=True, exist_ok=True)
        self.variables = {
            **os.environ,
            "HOME": str(self.home),
            "FILEPACT_STATE_DIR": str(self.state),
        }

    @contextmanager
    def opened(self) -> Iterator[None]:
        yield

    def takes(self, entry: Entry) -> bool:
        """Whether it has a word for such an entry."""
        return bool(entry.name)

    def move(self, names: Sequence[str]) -> str:
        raise NotImplementedError

    def remove(self, names: Sequence[str]) -> str:
        raise NotImplementedError

    def undo(self) -> str:
        return self.command("undo")

    def redo(self) -> str:
        return self.command("redo")

    def command(self, *words: str) -> str:
        """The command, by a person; what it said.

        Raises:
            RefusedError: It refused.
        """
        words = (*words, "--unattended") if words[0] in ("undo", "redo", "restore") else words
        options = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "cwd": self.root,
            "env": self.variables,
            "text": True,
            "errors": "backslashreplace",
        }
        if how := kept_so():
            command = (*how, sys.executable, "-m", "filepact", *words)
            done = subprocess.run(command, check=False, **options)
        else:
            done = forked.run(words, **options)
        # What of other operations stays, since nobody can bring it back, is named in what is done of this one.
        if done.returncode and not done.stdout.startswith("Done"):
            raise RefusedError(done.stderr or done.stdout)
        return f"{done.stdout}{done.stderr}"

    def program(self, *words: str) -> str:
        """A program that this door sees.

        Raises:
            RefusedError: It failed.
            NotImplementedError: It sees none.
        """
        raise NotImplementedError

    def shell(self, *words: str) -> str:
        """A program of the agent's own."""
        done = subprocess.run(
            (*kept_so(), *words), cwd=self.root, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RefusedError(f"{words[0]}: {done.stderr}")
        return ""


class ToolsDoor(Door):
    """The agent's tools, in this process; undo is the person's."""

    name = "tools"

    @contextmanager
    def opened(self) -> Iterator[None]:
        with open_workspace([str(self.root)], state_dir=str(self.state)) as workspace:
            self.workspace: Workspace = workspace
            self._toolbox = open_toolbox(workspace, own=True)
            yield

    def call(self, tool: str, **given: Any) -> str:
        outcome = self._toolbox.call(tool, given, CallContext(AGENT))
        if outcome.failed:
            raise RefusedError(outcome.text)
        return outcome.text

    def move(self, names: Sequence[str]) -> str:
        (name,) = names
        return self.call("manage_files", action="move", path=name, to=name + AWAY)

    def remove(self, names: Sequence[str]) -> str:
        (name,) = names
        return self.call("manage_files", action="delete", path=name)

    def undo(self) -> str:
        return self._back(self.workspace.undo)

    def redo(self) -> str:
        return self._back(self.workspace.redo)

    def _back(self, go: Callable[[Session], Any]) -> str:
        try:
            return " ".join(go(PERSON).notes)
        except FilepactError as error:
            raise RefusedError(error.report()) from None


class PatchDoor(ToolsDoor):
    """Patches that rename and delete files."""

    name = "patch"

    def takes(self, entry: Entry) -> bool:
        return "file" in entry.name or ("link" in entry.name and "folder" not in entry.name)

    def move(self, names: Sequence[str]) -> str:
        (name,) = names
        head = f"diff --git a/{name} b/{name}{AWAY}\nsimilarity index 100%\n"
        return self.call("patch_apply", patch=f"{head}rename from {name}\nrename to {name}{AWAY}\n")

    def remove(self, names: Sequence[str]) -> str:
        (name,) = names
        patch = f"*** Begin Patch\n*** Delete File: {name}\n*** End Patch\n"
        return self.call("patch_apply", patch=patch)


class RestoreDoor(ToolsDoor):
    """The agent's tools, and a person's restore of a checkpoint."""

    name = "restore"

    def __init__(self, base: Path, apart: Path | None = None) -> None:
        super().__init__(base, apart)
        self._marks = count()

    def move(self, names: Sequence[str]) -> str:
        self._mark()
        return super().move(names)

    def remove(self, names: Sequence[str]) -> str:
        self._mark()
        return super().remove(names)

    def _mark(self) -> None:
        self._last = f"before {next(self._marks)}"
        self.workspace.checkpoint(self._last)

    def undo(self) -> str:
        return self._back(lambda person: self.workspace.restore(person, self._last))


class LibraryDoor(Door):
    """A Python program."""

    name = "library"

    @contextmanager
    def opened(self) -> Iterator[None]:
        with filepact.open(self.root, rules="built-in", state_dir=self.state) as files:
            self._files = files
            yield

    def _done(self, act: Callable[[], Any]) -> str:
        try:
            return " ".join(act().notes)
        except FilepactError as error:
            raise RefusedError(error.report()) from None

    def move(self, names: Sequence[str]) -> str:
        (name,) = names
        return self._done(lambda: self._files.move(name, name + AWAY))

    def remove(self, names: Sequence[str]) -> str:
        (name,) = names
        return self._done(lambda: self._files.delete(name))

    def undo(self) -> str:
        return self._done(self._files.undo)

    def redo(self) -> str:
        return self._done(self._files.redo)


class McpDoor(Door):
    """A server and a client of it; what the agent may not take back, the person does by the command."""

    name = "mcp"

    @contextmanager
    def opened(self) -> Iterator[None]:
        options: dict[str, Any] = {"env": self.variables, "cwd": self.root}
        words: tuple[str, ...] = ("mcp", str(self.root))
        if how := kept_so():
            words = (*how, sys.executable, "-m", "filepact", *words)
            options["start"] = subprocess.Popen
        with serving(*words, **options) as (_, client):
            client.shake_hands()
            self._client = client
            yield

    def call(self, tool: str, **given: Any) -> str:
        result = self._client.call(tool, **given)
        text = str(result["content"][0]["text"])
        if result.get("isError"):
            raise RefusedError(text)
        return text

    def move(self, names: Sequence[str]) -> str:
        (name,) = names
        return self.call("manage_files", action="move", path=name, to=name + AWAY)

    def remove(self, names: Sequence[str]) -> str:
        (name,) = names
        return self.call("manage_files", action="delete", path=name)

    def undo(self) -> str:
        with suppress(RefusedError):
            return self.call("history", action="undo")
        return super().undo()

    def redo(self) -> str:
        with suppress(RefusedError):
            return self.call("history", action="redo")
        return super().redo()


class CommandDoor(Door):
    """The command, by a person."""

    name = "command"

    def move(self, names: Sequence[str]) -> str:
        (name,) = names
        return self.command("mv", name, name + AWAY)

    def remove(self, names: Sequence[str]) -> str:
        (name,) = names
        return self.command("rm", name)

    def undo(self) -> str:
        # What a person did is taken back when it is named.
        return self.command("undo", self._newest())

    def redo(self) -> str:
        return self.command("redo", self._newest())

    def _newest(self) -> str:
        return str(json.loads(self.command("log", "--json"))["operations"][0]["id"])


class HooksDoor(Door):
    """The agent's own shell, seen by hooks."""

    name = "hooks"

    @contextmanager
    def opened(self) -> Iterator[None]:
        with closing(HookDaemon((str(self.root),), str(self.state), clock=lambda: 0.0)) as daemon:
            self._daemon, self._calls = daemon, 0
            yield

    def program(self, *words: str) -> str:
        from test_hooks import event  # noqa: PLC0415 - which is a test module

        self._calls += 1
        given = {"call": f"t{self._calls}", "command": " ".join(words)}
        self._daemon.answer("claude", event("PreToolUse", "Bash", **given))
        try:
            return self.shell(*words)
        finally:
            self._daemon.answer("claude", event("PostToolUse", "Bash", **given))

    def move(self, names: Sequence[str]) -> str:
        (name,) = names
        return self.program("mv", name, name + AWAY)

    def remove(self, names: Sequence[str]) -> str:
        return self.program("rm", "-rf", *names)


class RunDoor(Door):
    """A program in layers, and their commit."""

    name = "run"
    whole = True
    options: ClassVar[tuple[str, ...]] = ()

    def move(self, names: Sequence[str]) -> str:
        script = "; ".join(f"mv {name} {name}{AWAY}" for name in names)
        return self.program("sh", "-c", script)

    def remove(self, names: Sequence[str]) -> str:
        return self.program("rm", "-rf", *names)

    def program(self, *words: str) -> str:
        return self.command("run", *self.options, "--", *words)


class RecordedRunDoor(RunDoor):
    """A program whose changes are found by comparing."""

    name = "run without layers"
    options = ("--layers", "off")


class GuardDoor(Door):
    """Whoever it was, seen by a guard."""

    name = "guard"
    whole = True
    known = False

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        options: dict[str, Any] = {"cwd": self.root, "env": self.variables, "text": True}
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        words, how = ("guard", str(self.root)), kept_so()
        alone = (*how, sys.executable, "-m", "filepact", *words)
        with (
            subprocess.Popen(alone, **options)
            if how
            else forked.Command(words, **options) as process
        ):
            while not (line := process.stdout.readline()).startswith("Guarding"):
                if not line:
                    raise RefusedError(process.stderr.read())
            try:
                yield
            finally:
                process.send_signal(signal.SIGTERM)
                process.communicate()

    def move(self, names: Sequence[str]) -> str:
        with self._guarded():
            for name in names:
                self.shell("mv", name, name + AWAY)
        return ""

    def remove(self, names: Sequence[str]) -> str:
        return self.program("rm", "-rf", *names)

    def program(self, *words: str) -> str:
        with self._guarded():
            return self.shell(*words)

    def undo(self) -> str:
        # Of what a guard saw nobody knows whose it is, so it has to be named.
        return self.command(
            "undo", json.loads(self.command("log", "--json"))["operations"][0]["id"]
        )


DOORS: tuple[type[Door], ...] = (
    ToolsDoor,
    PatchDoor,
    RestoreDoor,
    LibraryDoor,
    McpDoor,
    CommandDoor,
    HooksDoor,
    RunDoor,
    RecordedRunDoor,
    GuardDoor,
)


# -- judging ----------------------------------------------------------------------------------


def there(path: Path) -> dict[str, Any] | None:
    return facts(path) if os.path.lexists(path) else None


def difference(wanted: dict[str, Any] | None, found: dict[str, Any] | None) -> str:
    """What differs, in words; empty for nothing."""
    if wanted is None or found is None:
        return "" if wanted is found else "is there" if wanted is None else "is not there"
    told = []
    for name in sorted(wanted.keys() | found.keys()):
        one, other = wanted.get(name), found.get(name)
        if one is None or other is None:
            told.append(f"{name!a} {'came' if one is None else 'is missing'}")
        else:
            told += [
                f"{key} of {name!a}: {one[key]!r} -> {other[key]!r}"
                for key in one
                if one[key] != other[key]
            ]
    return "; ".join(told)


TOLD = ("could not be", "instead of", "does not set", "stays", "keep", "preserving", "denied")


def judged(
    door: type[Door], entries: Sequence[Entry], base: Path, apart: Path | None = None
) -> list[Cell]:
    """All steps with some entries through one door; ``apart`` is where its state lies, if not beside the root."""
    one = door(base, apart)
    cells: list[Cell] = []
    names = {entry: f"e{number:02}" for number, entry in enumerate(entries)}
    try:
        ready = {
            entry: name
            for entry, name in names.items()
            if one.takes(entry) and made(entry, one.root / name)
        }
        with one.opened():
            # What an ordinary user may not open goes alone, and last: it stays a part of what is told of the others.
            # So does, before that, what a program moves or removes and nobody brings back.
            left = [entry for entry in ready if _is_left(entry)]
            shut = [entry for entry, name in ready.items() if not _is_open(one.root / name)]
            alone = [*left, *(entry for entry in shut if entry not in left)]
            open_ = [entry for entry in ready if entry not in alone]
            some = [open_] * bool(open_) if door.whole else [[entry] for entry in open_]
            groups = [
                {entry: ready[entry] for entry in group}
                for group in [*some, *([entry] for entry in alone)]
            ]
            for group in groups:
                for action in ("move", "remove"):
                    cells += _sequence(one, group, action)
    finally:
        _unsealed(one.root)
    return cells


def _unsealed(folder: Path) -> None:
    """Have nothing in a folder be immutable or shut, so that whoever made it can remove it."""
    for words in (("chattr", "-R", "-ia"), ("chmod", "-R", "u+rwX")):
        subprocess.run([*words, folder], capture_output=True, check=False)


def _is_left(entry: Entry) -> bool:
    """Whether an entry is left to people, as it is not brought back, or nobody may change it, at least in layers."""
    return entry.tags == SPECIAL or "immutable" in entry.name or "security" in entry.name


def _is_open(place: Path) -> bool:
    """Whether this user may read all that lies there, and remove it."""
    if place.is_symlink() or not place.is_dir():
        return place.is_symlink() or os.access(place, os.R_OK, effective_ids=True)
    return os.access(place, os.R_OK | os.W_OK | os.X_OK, effective_ids=True)


def _sequence(door: Door, group: dict[Entry, str], action: str) -> Iterator[Cell]:
    """One action with entries, taken back, done again and taken back."""
    found = {entry: there(door.root / name) for entry, name in group.items()}
    # What is neither file nor folder nor link was moved by a program, and nothing brings it back.
    group = {entry: name for entry, name in group.items() if found[entry] is not None}
    if not group:
        return
    was = {entry: one for entry, one in found.items() if one is not None}
    last: dict[Entry, tuple[Any, Any]] = {}
    left: dict[Entry, tuple[Any, Any]] = {}
    shut = {entry for entry, name in group.items() if not _is_open(door.root / name)}
    acts = {"move": door.move, "remove": door.remove}
    for number, step in enumerate((action, *STEPS)):
        label = action if step == action else f"{step} of {action}" + " again" * (number == 3)
        said, refused = "", ""
        try:
            if step == action:
                said = acts[action]([*group.values()])
            else:
                said = door.undo() if step == "undo" else door.redo()
        except RefusedError as error:
            refused = str(error).strip()
        still = (difference(was[entry], there(door.root / name)) for entry, name in group.items())
        if step == action and door.whole and not refused and not any(still):
            refused = said.strip()  # A run ends as its program does, and says what it did not do.
        forward = step in (action, "redo")
        for entry, name in group.items():
            here, away = there(door.root / name), there(door.root / (name + AWAY))
            if refused:
                before_it = last.get(entry, (was[entry], None))
                same = "; ".join(filter(None, map(difference, before_it, (here, away))))
                code = refused.splitlines()[0]
                # Nobody can bring back what this user could not read before, nor a pipe; that is named then.
                named = _is_left(entry) and name in refused
                fine = not same and (step == action or entry in shut or named)
                verdict = "refused" if fine else "wrong"
                # A program that could not end what it began has left a copy, which undo is to remove.
                partly = step == action and away is not None and not difference(was[entry], here)
                last[entry] = here, away
                if partly:
                    left[entry] = here, away
                yield Cell(
                    door.name, entry.name, label, "told" if partly else verdict, f"{code} {same}"
                )
                continue
            wanted_here = None if forward else was[entry]
            wanted_away = was[entry] if forward and action == "move" else None
            if forward:
                # Of what was not done as it should, and told, the same is done again.
                wanted_here, wanted_away = left.get(entry, (wanted_here, wanted_away))
                if step == action:
                    left[entry] = here, away
            last[entry] = here, away
            differs = "; ".join(
                filter(None, (difference(wanted_here, here), difference(wanted_away, away)))
            )
            verdict = "as it is to be"
            if (
                step == action
                and entry.tags == SPECIAL
                and name not in door.command("log", "--json")
            ):
                verdict, differs = "wrong", "is not named"
            elif differs:
                verdict = "told" if any(word in said for word in TOLD) else "wrong"
            yield Cell(door.name, entry.name, label, verdict, differs)
        if refused and not (left and step == action):
            return


def root_judged(door: type[Door], base: Path, labels: Iterable[str] = OF_ROOT) -> Iterator[Cell]:
    """What a program makes of the root itself, taken back, done again and restored."""
    if door.program is Door.program:
        return
    for number, (label, words) in enumerate((one, OF_ROOT[one]) for one in labels):
        one = door(base / str(number))
        (one.root / "k").write_text("one\n")
        one.root.chmod(0o755)
        if shutil.which(words[0]) is None:
            continue
        with one.opened():
            one.command("checkpoint", "before")
            was = wanted = facts(one.root)
            steps = {
                "change": partial(one.program, *words),
                "undo": one.undo,
                "redo": one.redo,
                "restore": partial(one.command, "restore", "before"),
                "redo of restore": one.redo,
            }
            for step, act in [*steps.items()][: 5 if door.known else 3]:
                said, refused = "", False
                try:
                    said = act()
                except RefusedError as error:
                    said, refused = str(error), True
                now = facts(one.root)
                if step == "change":
                    made = now
                wanted = was if refused or step in ("undo", "restore") else made
                differs = difference(wanted, now)
                wrong = differs or (refused if step != "change" else not refused and now == was)
                verdict = "wrong" if wrong else "refused" if refused else "as it is to be"
                yield Cell(door.name, f"root: {label}", step, verdict, differs or said.strip())
                if refused:
                    break


# -- killed -----------------------------------------------------------------------------------


def crashed(
    entry: Entry, base: Path, apart: Path | None = None, *, first: int, step: int
) -> Iterator[Cell]:
    """An entry moved, removed and brought back by the tools, killed before every so many calls of the system.

    Whatever is between two of them changes nothing on the disk.
    """
    for action in ("move", "remove", "undo of move", "undo of remove"):
        point, ended = first, False
        while not ended:
            for one in {base, apart or base}:
                _unsealed(one)
                shutil.rmtree(one, ignore_errors=True)
            door = ToolsDoor(base, apart)
            place, away = door.root / "e", door.root / f"e{AWAY}"
            if not made(entry, place):
                return
            was = there(place)
            act = partial({"move": door.move, "remove": door.remove}[action.split()[-1]], ["e"])
            after = (None, was if action == "move" else None)
            if action.startswith("undo"):
                try:
                    with door.opened():
                        act()
                except RefusedError:
                    break
                act, after = door.undo, (was, None)
            states = (there(place), there(away)), after
            pid = os.fork()
            if pid == 0:
                _killed(door, act, point)
            ended = os.WIFEXITED(os.waitpid(pid, 0)[1])
            with door.opened():
                now = there(place), there(away)
                unfinished = door.workspace.unfinished()
            told = [
                f"{difference(here, now[0])} {difference(gone, now[1])}".strip()
                for here, gone in states
            ]
            differs = told[-1] if all(told) else "unfinished" * bool(unfinished)
            verdict = "wrong" if differs else "as it is to be"
            yield Cell("killed", entry.name, f"{action}, call {point}", verdict, differs)
            point += step
        _unsealed(base)


def _killed(door: ToolsDoor, act: Callable[[], object], point: int) -> None:
    try:
        with door.opened():
            calls = 0

            def hook(_frame: object, event: str, called: Any) -> None:
                nonlocal calls
                if event == "c_call" and _asks_the_system(called):
                    calls += 1
                    if calls == point:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.setprofile(hook)
            with suppress(RefusedError):
                act()
            sys.setprofile(None)
    finally:
        os._exit(0)


def _asks_the_system(called: Any) -> bool:
    """Whether a function of C is one of the system, of its locks, of files or of the database."""
    owner = called.__module__ or type(getattr(called, "__self__", None)).__module__
    return owner in _OF_THE_SYSTEM


_OF_THE_SYSTEM = ("posix", "fcntl", "_io", "apsw", "mmap", "_ctypes")


# -- the table --------------------------------------------------------------------------------


def table(cells: Sequence[Cell]) -> str:
    """How many cells there are, by doors and verdicts."""
    verdicts = ("as it is to be", "refused", "told", "wrong")
    lines = [f"{'door':<20}" + "".join(f"{verdict:>16}" for verdict in verdicts)]
    for door in dict.fromkeys(cell.door for cell in cells):
        found = Counter(cell.verdict for cell in cells if cell.door == door)
        lines.append(f"{door:<20}" + "".join(f"{found[verdict]:>16}" for verdict in verdicts))
    found = Counter(cell.verdict for cell in cells)
    return "\n".join([*lines, f"{'all':<20}" + "".join(f"{found[one]:>16}" for one in verdicts)])


def measured(given: argparse.Namespace) -> list[Cell]:
    """All cells of one file system and one user."""
    entries = [one for one in ENTRIES if not given.entry or one.name.startswith(given.entry)]
    cells: list[Cell] = []
    of_root = given.entry in (None, "root") and not given.apart
    for door in DOORS:
        if given.door in (None, door.name):
            with (
                tempfile.TemporaryDirectory(dir=given.base) as folder,
                tempfile.TemporaryDirectory() as apart,
            ):
                roots = Path(folder) / "roots"
                whole = (door, entries, Path(folder), Path(apart) if given.apart else None)
                cells += _as(given, lambda some=whole: judged(*some))
                if of_root:
                    cells += _as(given, lambda some=(door, roots): [*root_judged(*some)])
    if given.door in (None, "killed") and given.step:
        for number, entry in enumerate(entries):
            with (
                tempfile.TemporaryDirectory(dir=given.base) as folder,
                tempfile.TemporaryDirectory() as apart,
            ):
                state = Path(apart) / "w" if given.apart else None
                kill = partial(crashed, entry, Path(folder) / "w", state, step=given.step)
                # Entries go much the same way, so others of its calls are taken for each.
                first = 1 + number % given.step
                cells += _as(given, lambda go=kill, at=first: [*go(first=at)])
    return cells


def _as(given: argparse.Namespace, go: Callable[[], list[Cell]]) -> list[Cell]:
    return unprivileged(go) if given.user else go()


def _places(given: argparse.Namespace) -> Iterator[tuple[str, argparse.Namespace]]:
    """The file systems and users of the whole table."""
    bases = {"disk": given.base, "memory": Path("/dev/shm"), "folding": given.folding}
    for place, base in bases.items():
        for user in (False, True):
            one = argparse.Namespace(**{**vars(given), "base": base, "user": user})
            # A state folder is for one user, which it cannot be where there are no modes.
            one.apart = place == "folding"
            if base is not None or place == "disk":
                yield f"{place}, {'ordinary user' if user else 'root'}", one


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.every_door", description=__doc__)
    names = ", ".join(door.name for door in DOORS)
    parser.add_argument("--door", help=f"only this one, or `killed`: {names}")
    parser.add_argument(
        "--entry", help="only those whose names begin so; `root` for the root itself"
    )
    parser.add_argument("--whole", action="store_true", help="all file systems and users, in turn")
    parser.add_argument(
        "--folding", type=Path, help="a folder where letter case tells no names apart"
    )
    parser.add_argument("--user", action="store_true", help="without the rights of root")
    parser.add_argument("--base", type=Path, help="a folder on the file system that is meant")
    parser.add_argument("--apart", action="store_true", help="only the root is in that folder")
    parser.add_argument(
        "--step", type=int, default=1, help="calls of the system between two kills; 0 for none"
    )
    given = parser.parse_args(arguments)
    cells: list[Cell] = []
    for place, one in _places(given) if given.whole else [("", given)]:
        found = measured(one)
        print(f"{place}\n{table(found)}".lstrip("\n"), flush=True)
        for cell in found:
            if cell.verdict == "wrong":
                print(str(cell)[:600], flush=True)
        cells += found
    if given.whole:
        print(f"everything\n{table(cells)}")
    return 1 if any(cell.verdict == "wrong" for cell in cells) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
