"""Random turns of an agent beside a person, taken back: the agent's are gone, the person's are there.

Run as a program: ``python -m tests.properties.turns [--tries N] [--seed S] [--only DOOR]``.  A history that goes
wrong is made smaller, and printed as a shell script that plays it again.

Mostly they are played fast: 24 turns come one after the other in one project, each with an undo of its own that is
judged, with one state folder, one shell and, by hooks, one daemon that goes on while it is taken back (but for each
fifth).  Between them a person sets the tree back, which nobody is told of.  What that leaves out: a journal and a
snapshot without a past (each project has its first turn), and of hooks, that a file is read again at each look until
its stamp is two seconds old, as on the coarsest disks (60 ms here).  One project in 20 is played slowly: each history
in a folder and a state of its own, without any of that.

A turn by hooks takes 0.11 s of a processor so, and 0.16 s slowly; the rest is filepact's own work for its events
(some 13 of them, and 4 ms each), the undo, and the programs.

What was played, from 29 November to 1 December 2026, while one head followed the other (what was wrong is mended, or was the model's):

- seeds from 2026130000 to 2026610000 on: some 65,000, mostly by hooks, 1,100 with kills (`killed_turns`); 60 wrong;
- from 2026700000 to 2027040000 on: 116,635 by all doors and by hooks alone (13,961 the most on one head); 29 wrong, 10 of them the model's;
- from 2027100000 to 2027400000 on: 57,151 by all doors (15,430 the most on one head); 14 wrong, 8 of them the model's.  One stays in the model:
  2027304475 (rights that another agent gave a file which goes back).  From 2027400000 on a seed stands for another history than before: there are more lines;
- from 2027510000 to 2028000000 on, 30 November and 1 December: some 86,000 by all doors, 20,000 on each of three heads; 22 wrong: 9 the product's, 10 the
  model's, three of the first 10 not looked at one by one;
- from 2028100000 on, 1 December: 20,000 on one head (4 wrong, all the model's), and 8,600, 12,700 and 14,500 on three later ones (3, 2 and 2 wrong: 2 the
  product's, 5 the model's).  All of them are mended or settled; after the last of these mends a few hundred were played.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from posixpath import basename, dirname
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from filepact.workspace import file_snapshot
from tests.forked import Command
from tests.properties.turn_histories import (
    GIT,
    Call,
    Door,
    History,
    Step,
    history,
    script,
    smaller,
)
from tests.properties.turn_player import DaemonPlayer, Place
from tests.properties.turn_truth import LARGE, Copy, Entry, Truth, above, make, tree
from tests.properties.watchdog import PATIENCE, watched

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    Tried = Callable[[int, str, str | None], tuple["History", "Played"]]
    Again = Callable[["History", "Wrong", str | None], tuple["History", "Wrong"]]


@dataclass(frozen=True)
class Wrong:
    """What is not as it should be.

    Attributes:
        kind: In short, the same for what has the same cause.
        said: The rest.
    """

    kind: str
    said: str


def _play_hook(place: Place, one: History, truth: Truth) -> str:
    player = DaemonPlayer(place, truth, one)
    with closing(player):
        player.play()
    # What the agent's program was, or what another daemon knew of it, is no part of what comes then.
    if not place.stays or one.killed:
        place.end_daemon()
    return f"s{place.mark}"


def _program(
    one: History,
) -> tuple[tuple[Step | Call, ...], tuple[Step | Call, ...], tuple[Step | Call, ...]]:
    """What comes before the program, what happens while it runs, and what comes after it."""
    at = next((at for at, move in enumerate(one.turn) if isinstance(move, Call)), len(one.turn))
    during = one.turn[at].steps if at < len(one.turn) else ()  # type: ignore[union-attr]
    return one.turn[:at], during, one.turn[at + 1 :]


def _persons(place: Place, steps: tuple[Step | Call, ...], truth: Truth, when: str) -> None:
    for step in steps:
        assert isinstance(step, Step)
        place.shell(step.line)
        truth.look(place.root, "person", when)


@contextmanager
def _ended(process: Command) -> Iterator[None]:
    """Have a process end in any case."""
    with process:
        try:
            yield
        finally:
            if process.returncode is None:
                process.kill()


_MOUNTED = 'mv() { case $1 in */.git) return 16;; esac; command mv "$@"; }; '
"""Behind layers each repository's own folder is mounted (read-only), and what is mounted the system renames for nobody."""


def _play_run(place: Place, one: History, truth: Truth) -> str:
    before, during, after = _program(one)
    _persons(place, before, truth, "before")
    start = truth.now
    model = place.root.parent / "model"
    layers = one.door == "layers"
    sight = Sight(place.root.parent / "sight") if layers else None
    if sight:
        subprocess.run(["cp", "-a", str(place.root), str(model)], check=True)
        sight.open(place.root)
    lines = [
        f"({step.line})\necho @; read x"
        for step in during
        if isinstance(step, Step) and step.who == "agent"
    ]
    words = (
        "run",
        "--layers",
        "required" if layers else "off",
        *place.common,
        "--",
        "sh",
        "-c",
        "echo @; read x\n" + "\n".join(lines),
    )
    process = Command(
        words,
        cwd=place.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    seen = model if layers else place.root

    heard: list[bytes] = []

    def until() -> None:
        while (said := process.stdout.readline()) != b"@\n":
            assert said, f"it has ended: {b''.join(heard)!r}"
            heard.append(said)

    with _ended(process):
        until()
        for step in during:
            assert isinstance(step, Step)
            if step.who == "agent":
                process.stdin.write(b"\n")
                process.stdin.flush()
                until()
                if sight:
                    place.shell(f"{_MOUNTED}{step.line}", model)
                    place.shell(f"{_MOUNTED}{step.line}", sight.folder)
                    sight.truth.look(sight.folder, "agent", "while it ran")
            elif sight:
                before = tree(place.root)
                _beside_layers(place, step.line, model, truth)
                sight.show(before, tree(place.root), truth)
            else:
                place.shell(step.line)
            who = step.who if layers or step.who == "agent" else "either"
            truth.look(seen, who, "while it ran")
        said = process.communicate(b"\n")[0].decode(errors="replace")
    if sight and (found := tree(place.root)) != truth.now:
        waits = re.search("waits? for you|kept as", said) is not None

        def is_committed(name: str) -> bool:
            changes, came = truth.really(name), found.get(name)
            if came != truth.now.get(name) and sight.went_on(name, came, truth):
                truth.changes[name] = sight.truth.changes.get(name, [])
                if came and truth.beside.get(name, came) is None:  # They have moved it away.
                    truth.changes[name] = [("agent", None, came, "while it ran")]
                truth.now |= {name: came} if came else {}
                return True
            removed = bool(changes) and changes[-1][0] == "person" and changes[-1][2] is None
            anew = any(one[0] == "touch" for one in sight.truth.changes.get(name, ()))
            if removed and anew and came and came[0] == "folder" == (start.get(name) or came)[0]:
                # They moved away one that the program had made anew, and has its own of.
                truth.changes[name] = [("agent", None, came, "while it ran")]
                truth.now[name] = came
                return came == sight.truth.now.get(name)
            is_empty = not any(below.startswith(f"{name}/") for below in found)
            if removed and came == start.get(name) and came and came[0] == "folder" and is_empty:
                return False  # It comes back with something in it, and not by itself.
            if came and removed and came in [state for one in changes for state in one[1:3]]:
                # They removed it in the first moments, as nobody knew yet that it was there.
                truth.changes[name] = [("agent", None, came, "while it ran")]
                truth.now[name] = came
                return True
            # A name that the program looked for in vain is not there for it, whatever a person makes there since.
            anew = [at for at in above(name) if at in truth.beside and at not in start]
            if came is None and any(sum(at in line for line in lines) > 1 for at in anew):
                return {one[0] for one in changes} == {"agent"}
            states = [truth.now.get(name)]
            gone = truth.beside.get(name, came) is None and name in truth.now
            if gone and came and came[0] == "folder" and came == sight.truth.now.get(name):
                # They removed a folder in which the program has something: it comes as the program sees it.
                truth.changes[name] = [("agent", None, came, "while it ran")]
                truth.now[name] = came
                return True
            if waits:
                if truth.holds_only_persons(name, start.get(name), found.get(name)):
                    return True
                if name in truth.beside and truth.beside[name] == found.get(name):
                    return True
                seen = truth.really(name)
                states += [start.get(name), *(state for one in seen for state in one[1:3])]
                source = truth.came.get(name, "")
                others = truth.by_all_names(source) if source in truth.linked else ()
                if came and came not in states and came in [x for one in others for x in one[1:3]]:
                    # Moved as the program saw it: what a person wrote by its other name waits for them.
                    truth.changes[name] = [("agent", start.get(name), came, "while it ran")]
                    truth.now[name] = came
                    return True
            # What programs fill goes without a record, and so does what a person put there meanwhile.
            top = re.escape(name.partition("/")[0])
            if came is None and re.search(rf"no undo changes it: (.*, )?{top}\b", said):
                return True
            # Modes of folders that stay are not committed, and that is said.
            kinds = {one[0] for one in (found.get(name), truth.now.get(name)) if one}
            if kinds == {"folder"} and came == truth.beside.get(name):
                return True  # As a person left it, who did not see its rights in the layers.
            # What belongs to Git is read-only there, and stays with its folder.
            if kinds == {"folder"} and (place.root / name / ".git").exists():
                return True
            # Between layers `mv` makes a folder anew, and it gets the set-group-id bit of the one that it is made in.
            came, around = found.get(name), found.get(dirname(name))
            if changes and came and around and around[1] & 0o2000:
                by, was, after, when = truth.changes[name][-1]
                if after and came == (after[0], after[1] | 0o2000, *after[2:]):
                    truth.changes[name][-1] = by, was, came, when
                    truth.now |= {name: came}
                    return True
            # Of a file with other names, the one that the program changes becomes a file of its own in the layers.
            by_names = truth.by_all_names(name) if name in truth.linked else ()
            if found.get(name) == start.get(name) and any(one[0] == "agent" for one in by_names):
                return True
            told = kinds == {"folder"} or _is_limit(truth, name) or name in truth.linked
            return found.get(name) in states or (told and name in said)

        names = [name for name in sorted(found.keys() | truth.now.keys()) if not is_committed(name)]
        shown = {name: (truth.now.get(name), found.get(name)) for name in names}
        kinds = sorted({f"{_kind(a)} as {_kind(b)}" for a, b in shown.values()})
        if kinds:
            raise Found(Wrong(f"layers: committed {kinds[0]}", f"{shown}\n{said}"))
        for name in [one for one in truth.changes if found.get(one) != truth.now.get(one)]:
            # What waits for a person has changed nothing yet; what the program did before that is done.
            changes, came = truth.changes.pop(name), found.get(name)
            done = [at for at, one in enumerate(changes) if one[0] == "agent" and came == one[2]]
            stays = came and came != start.get(name) and done
            kept = changes[: done[-1] + 1] if stays else [x for x in changes if x[0] == "person"]
            truth.changes |= {name: kept} if kept else {}
        truth.now = found
    session = place.session("run-")
    done = {
        file["path"]
        for one in place.log()
        if one["session"] == session
        for file in one.get("files", ())
    }
    for name, changes in truth.changes.items() if layers else ():
        if name not in done and changes[-1][0] == "person" and changes[-1][2] is None:
            # Nothing of it was done: what the program changed, and they removed, waits for them.
            truth.changes[name] = [one for one in changes if one[0] == "person"]
    _persons(place, after, truth, "after")
    return session


class Sight:
    """What the program may still see, and go on with, of what a person has removed or moved away beside its layers.

    The kernel shows it what it has looked at, or changed something in, until a commit; so what it does then comes either of that
    or of what is there.  What the person has removed does not come back by that under its name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._kept: dict[str, int] = {}
        self._since: tuple[dict[str, int], dict[str, int]] | None = None

    def open(self, root: Path) -> None:
        """Begin with what is there."""
        subprocess.run(["cp", "-a", str(root), str(self.folder)], check=True)
        self.truth = Truth.of(self.folder)

    def show(self, before: dict[str, Entry], after: dict[str, Entry], truth: Truth) -> None:
        """Show what a person has made or changed, where the program has done nothing, and keep what they removed."""
        now = self.truth.now
        some = self.truth.changes.items()
        by_program = [x for x, changes in some if any(one[0] == "agent" for one in changes)]
        in_layers = {at for name in by_program for at in above(name)}
        for name in sorted(before.keys() | after.keys()):
            entry = after.get(name)
            if entry == before.get(name):
                continue
            kinds = {one[0] for one in (entry, before.get(name)) if one}
            if name in in_layers and entry and kinds == {"folder"}:
                # It has the rights that it had when something in it was changed.
                self._since = self._since or (self.truth.counts, truth.counts)
                continue
            if entry is None:
                self._kept |= {x: len(self.truth.changes.get(x, [])) for x in {name} & now.keys()}
            elif now.get(name) == before.get(name):
                with suppress(OSError):  # The program has put something else above it.
                    if name in now and now[name][0] != "folder":
                        (self.folder / name).unlink()
                    make(self.folder / name, entry)
                    self._kept.pop(name, None)
        self.truth.look(self.folder, "person", "while it ran")
        if self._kept and self._since is None:
            self._since = self.truth.counts, truth.counts

    def went_on(self, name: str, came: Entry | None, truth: Truth) -> bool:
        """Whether the program has changed an entry to this after something was kept from it, which it may have gone on with."""
        later = self.truth.changes.get(name, [])[self._kept.get(name, 0) :]
        if name in self._kept and came is not None:
            # It went on there, in a folder that they have moved away.
            return self.truth.now.get(name) == came and bool(later) and later[-1][0] == "agent"
        if name in self._kept:
            # It saw there still what the person had removed, so what came there by its line is elsewhere.
            made = [one for one in truth.changes.get(name, []) if one[0] == "agent" and not one[1]]
            return came is None and bool(made)
        if self._since is None or self.truth.now.get(name) != came:
            return False
        sides = zip((self.truth, truth), self._since, strict=True)
        done = [one.changes.get(name, [])[since.get(name, 0) :] for one, since in sides]
        return any(some and some[-1][0] in ("agent", "touch") for some in done)


def _beside_layers(place: Place, line: str, model: Path, truth: Truth) -> None:
    """Have a person do something in the root, and the same in what is to come of it and the layers."""
    before = tree(place.root)
    place.shell(line)
    after = tree(place.root)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    # They do not see what is in the layers: where nothing comes of it in the root, nothing does at all.
    if not changed:
        return
    truth.beside |= {name: after.get(name) for name in changed}
    for name in changed:
        replaced = (
            before.get(name) != truth.now.get(name) and after.get(name, ("file",))[0] == "link"
        )
        if replaced or truth.now.get(name) == after.get(name):
            # What the layers hold is there by then, or something else that nothing merges, and is not committed.
            truth.changes[name] = [("person", before.get(name), after.get(name), "while it ran")]
        elif name not in truth.now and before.get(name) and after.get(name):
            # The program has removed it, and they go on with it.
            change = ("person", before.get(name), after.get(name), "while it ran")
            truth.changes.setdefault(name, []).append(change)
        elif not after.get(name) and (
            before[name][0] != truth.now[name][0]
            or any(one.startswith(f"{name}/") for one in truth.now.keys() - before.keys())
        ):
            # They have taken it away from where the program has put something else, or into it.
            first = ("person", before[name], None, "while it ran")
            truth.changes[name] = [first, ("agent", None, truth.now[name], "while it ran")]
    if all(_is_another_kind(one, before, after, truth.now) for one in changed):
        # The program has put something else there: what they did to it comes before that.
        for name in changed:
            came = before.get(name), after.get(name), truth.now.get(name)
            first = ("person", *came[:2], "while it ran")
            truth.changes[name] = [first, ("agent", *came[1:], "while it ran")]
        return
    for at in sorted({at for name in changed & after.keys() for at in above(name)} & before.keys()):
        with suppress(OSError):  # It is there, or something else is.
            shutil.copytree(place.root / at, model / at, ignore=lambda _, names: names)
    place.shell(line, model)
    _see_only_the_root(model, before, after, truth.now)


def _see_only_the_root(
    model: Path, before: dict[str, Entry], after: dict[str, Entry], now: dict[str, Entry]
) -> None:
    """Of what is in the layers alone a person who works in the root has changed nothing, and of the rest what they see.

    Where only they have changed something, it becomes what it is in the root; what both have is left as the line made it.
    What the program has removed, and they go on with, it does not see again.
    """
    made = tree(model)
    names = made.keys() | now.keys() | after.keys()
    gone = {name for name in before.keys() & after.keys() if name not in now}
    wanted = {
        name: now.get(name) if before.get(name) == after.get(name) else after.get(name)
        for name in names
        if before.get(name) in (after.get(name), now.get(name))
    } | dict.fromkeys(gone)
    other = [name for name, one in wanted.items() if made.get(name) != one]
    for name in sorted(other, reverse=True):
        if name in made:
            with suppress(OSError):  # A folder stays as long as something is in it.
                (os.rmdir if made[name][0] == "folder" else os.unlink)(model / name)
    for name in sorted(other):
        entry, path = wanted[name], model / name
        # Where the program has put something else in the place of a folder, nothing that they put into that is seen.
        hidden = any(os.path.lexists(x) and not x.is_dir() for x in path.parents)
        if hidden or entry is None or entry[0] == "special":
            continue
        for at in reversed([*above(name)]):
            if not (model / at).exists():
                (model / at).mkdir()
                (model / at).chmod(now[at][1] if at in now else 0o755)
        make(path, entry)


def _is_another_kind(
    name: str, before: dict[str, Entry], after: dict[str, Entry], now: dict[str, Entry]
) -> bool:
    """Whether somebody has changed only the rights of what is of another kind by now."""
    kinds = [one[name][0] if name in one else "" for one in (before, after, now)]
    return kinds[0] == kinds[1] != kinds[2] and bool(kinds[0] and kinds[2])


def _play_guard(place: Place, one: History, truth: Truth) -> str:
    before, during, after = _program(one)
    _persons(place, before, truth, "before")
    words = ("guard", *place.common)
    process = Command(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with _ended(process):
        while not (line := process.stdout.readline()).startswith(b"Guarding"):
            assert line, "it has ended"
        for step in during:
            assert isinstance(step, Step)
            place.shell(step.line)
            truth.look(place.root, "agent", "while it guarded")
        process.terminate()
        process.communicate()
    _persons(place, after, truth, "after")
    return place.session("guard-")


DOORS: dict[Door, Callable[[Place, History, Truth], str]] = {
    "hook": _play_hook,
    "layers": _play_run,
    "off": _play_run,
    "guard": _play_guard,
}


USUAL: tuple[Door, ...] = (*["hook"] * 13, "off", "guard", "layers")  # type: ignore[assignment]
"""Hooks mostly: the others take longer."""


TURNS = 24
"""How many turns one project sees."""

SLOW = 20
"""Of so many projects one's turns are played in folders of their own, without anything that makes it fast."""

_ENDED = 5
"""After so many turns the hooks' daemon ends before what was done is taken back."""

_RACY = file_snapshot._RACY
_FINE = 60_000_000
"""Nanoseconds in which a file may change under one stamp, on a disk in memory; else it is the coarsest of all disks."""

_BESIDE = ("ignored", "patch")
"""Files that the lines of a history make beside the root."""

_PROTECTED = ": the file is write-protected for everybody"
_STAYS = ": it was made there and stays"


_TOLD = 60.0
"""Seconds after which a long run says how far it is."""


class Found(Exception):  # noqa: N818 - what is wrong, on its way to whoever asked
    """Something is wrong before anything is taken back."""

    def __init__(self, wrong: Wrong) -> None:
        super().__init__(wrong.kind)
        self.wrong = wrong


@dataclass(frozen=True)
class Played:
    """What came of a history: whether the agent changed something, what went wrong, whether something was not seen."""

    acted: bool = False
    wrong: Wrong | None = None
    unseen: bool = False


def play(one: History, folder: Path) -> Played:
    """Play a history in an empty folder, take it back, and look."""
    with closing(Place(folder)) as place:
        plant(place, one)
        return play_at(place, one)


def plant(place: Place, one: History) -> None:
    """Make the tree of a history."""
    place.shell("\n".join(f"({line})" for line in one.tree))


def play_at(place: Place, one: History) -> Played:
    """Play a history where its tree is, take it back, and look."""
    truth = Truth.of(place.root)
    try:
        session = DOORS[one.door](place, one, truth)
        _persons(place, one.later, truth, "afterwards")
        wrong = _taken_back(place, one, truth, session)
        return Played(truth.acted, wrong, bool(truth.unseen))
    except Found as found:
        return Played(truth.acted, found.wrong)


def _taken_back(place: Place, one: History, truth: Truth, session: str) -> Wrong | None:
    if not truth.acted:
        return None
    held = _held(truth.now)
    if (one.earlier or place.mark) and all(
        _is_left_out(one, name) or _is_unseen(one.door, truth.now.get(name), wanted[0], name, held)
        for name in truth.changes
        if "agent" in {change[0] for change in truth.really(name)}
        and not truth.suits(name, truth.now.get(name))
        for wanted in [truth.wanted(name)[0]]
    ):
        truth.unseen.append("all")
        return None  # The newest turn that is known is the one before.
    words = (one.back, session) if one.back == "--session" else (one.back,)
    if one.back == "--session" and not session:
        code, said = 3, "nothing was recorded"
    else:
        code, said = place.undo(*words)
    found = tree(place.root)
    names = truth.names(found)
    partly = False
    contested = {
        name
        for name in names
        if truth.wanted(name)[1]
        or truth.in_the_way(name)
        or truth.is_hidden(name)
        or name in truth.linked
        or any(change[0] == "either" for change in truth.really(name))
        or _is_covered(one, name, said)
    }
    if code and found == truth.now and (contested or _PROTECTED in said) and "--partly" in said:
        code, said = place.undo(*words, "--partly")
        partly = True
        found = tree(place.root)
    held = _held(found) | _needed(found, truth)
    ids = re.findall(r"Not taken back, since [^:]*: (\w+),", said)
    log = place.log() if ids else ()
    beside = {file["path"] for one in log if one["id"] in ids for file in one.get("files", ())}
    for name in names:
        wanted, _ = truth.wanted(name)
        entry = found.get(name)
        if truth.suits(name, entry) or (
            None in wanted
            and (name in held or (place.root / name / ".git").exists())
            and entry
            and entry[0] == "folder"
        ):
            continue
        told = (code == 1 or partly) and _shown(name) in said
        stays = (entry == truth.now.get(name) or truth.has_only_other_rights(name, entry)) and any(
            at in contested and _shown(at) in said for at in (name, *above(name))
        )
        left = f"the folder {_visible(name)} stays: it is not empty" in said
        if left and code == 1 and _holds(place.root / name):
            continue
        # A pipe or the like that went with its folder does not come back, and is named where it is.
        odd = wanted[0] if wanted[0] and wanted[0][0] == "special" else None
        if code == 1 and odd and any(e == odd and _shown(at) in said for at, e in found.items()):
            continue
        # One that came into a repository which goes back as a whole goes along, and is named where it was.
        was_at = [
            x for x, one in truth.now.items() if one == entry and x.endswith(f"/{basename(name)}")
        ]
        if code == 1 and entry and entry[0] == "special" and any(_shown(x) in said for x in was_at):
            continue
        # What was moved from where a person had just saved is nobody's: it stays, is named, and nothing is lost by that.
        if (
            name in beside
            and entry in (truth.now.get(name), *(change[2] for change in truth.really(name)))
            and (truth.came_with_others(name) or _shown(name) in said)
            and (
                wanted[0] is None
                or any(_goes_on(one, wanted[0]) for one in found.values())
                or truth.was_removed(wanted[0])
                # What a person had made, and came there with its folder, stays; the id that is named has the one before.
                or (_shown(name) in said and _was_persons(truth, entry))
            )
        ):
            continue
        # What a person put into a folder stays there, or comes back, whatever the folder was called then.
        # So it does where something that nobody can take back keeps the folder.
        left_above = any(
            f"the folder {_visible(at)} stays: it is not empty" in said for at in above(name)
        ) or any(f"{_shown(x)}{_STAYS}" in said and {*above(x)} & {*above(name)} for x in names)
        is_left = entry in (truth.now.get(name), *truth.removed(name))
        if left_above and is_left and _was_persons(truth, entry):
            continue
        # What a person did last to a name stays, where only what the agent made of it since goes back.
        if told and name in contested and entry in truth.left(name):
            continue
        # What goes back of a file by one of its names is gone by all, also by one that is left.
        if told and name in truth.linked and truth.has_less(name, entry):
            continue
        # A folder that a person made again in the place of one that went has the rights that they gave it.
        if f"{_shown(name)} stays as somebody made it" in said and entry == truth.now.get(name):
            continue
        # What a person did to a file that goes back to its former name goes with it.
        others = [
            x
            for x in names
            if f"{_visible(name)} keeps what was changed in {_visible(x)} meanwhile" in said
        ]
        if any(entry == truth.now.get(one) for one in others) and _was_persons(truth, entry):
            continue
        # What somebody did to it while the command ran is put down to that, and goes.
        if entry and any(truth.goes_back_with(one, x, entry) for one in others for x in wanted):
            continue
        # What was written through a protection stays under it, until a person lifts that.
        protected = f"{_shown(name)}{_PROTECTED}" in said
        limit = told and (protected or _is_limit(truth, name))
        stays = stays or (is_left and (told or left_above))
        if (code == 1 or partly) and (limit or stays):
            continue
        if (
            _is_left_out(one, name)
            or _is_unseen(one.door, entry, wanted[0], name, held)
            or _came_unseen(one, truth, name, entry)
            or (wanted == [None] and left_above and _came_ignored(one, name))
            or (truth.is_led_to(name) and _is_left_out(replace(one, door="off"), name))
        ):
            truth.unseen.append(name)
            continue
        if code and found == truth.now:
            return Wrong(f"{one.door}: refused {_code(said)}", f"{name!r}: {said}")
        changes = truth.really(name)
        whose = "agent's" if any(change[0] == "agent" for change in changes) else "person's"
        when = f" {changes[-1][3]}" if whose == "person's" and changes else ""
        way = "told" if told else "untold"
        kind = f"{one.door}: {whose}{when} {_kind(wanted[0])} is {_kind(entry)}, {way}"
        return Wrong(
            kind,
            f"{name!r}: wanted {wanted!r:.300}, is {entry!r:.300}\n{changes!r:.600}\nexit {code}: {said}",
        )
    return None


def _holds(folder: Path) -> bool:
    """Whether a folder holds more than folders; of a repository, which nothing takes back, all counts."""
    return any(files or ".git" in folders for _, folders, files in os.walk(folder))


def _was_persons(truth: Truth, entry: Entry | None) -> bool:
    """Whether a person or another turn has made a file that is like this one, and may have been moved with its folder."""
    return any(
        one[0] not in ("agent", "touch") and one[2] == entry
        for some in truth.changes.values()
        for one in some
    )


def _held(found: dict[str, Entry]) -> set[str]:
    """The folders that hold something else than folders."""
    return {at for name, entry in found.items() if entry[0] != "folder" for at in above(name)}


def _needed(found: dict[str, Entry], truth: Truth) -> set[str]:
    """The folders that another turn has removed, in which something lies that came back."""
    back = [
        name for name in found if name not in truth.now and found[name] in truth.wanted(name)[0]
    ]
    return {at for name in back if None not in truth.wanted(name)[0] for at in above(name)}


def _commands(moves: tuple[Step | Call, ...]) -> list[str]:
    calls = [move for move in moves if isinstance(move, Call)]
    return [call.command for call in calls] + [
        one for call in calls for one in _commands(call.steps)
    ]


def _steps(moves: tuple[Step | Call, ...]) -> Iterator[Step]:
    for move in moves:
        yield from [move] if isinstance(move, Step) else _steps(move.steps)


def _is_left_out(one: History, name: str) -> bool:
    """Whether the documents say that no look sees a file: what programs make, and what is ignored, unless a call names it."""
    top = name.partition("/")[0]
    if one.door == "hook" or top == "node_modules":
        return top == "node_modules"
    lines = (*one.tree, *_commands((*one.earlier, *one.turn)))
    hides = any(f"'{top}/' > " in line for line in lines)
    if any(part.startswith("mine") for part in name.split("/")):
        moves = (*one.earlier, *one.turn)
        persons = [step.line for step in _steps(moves) if step.who == "person"]
        hides = hides or any("'mine*' >> .gitignore" in line for line in persons)
    return hides or top in ("out", "build", "dist") or name.endswith((".log", ".tmp"))


def _goes_on(entry: Entry, known: Entry) -> bool:
    """Whether an entry holds what was known of one, and what a person may have added to that."""
    data, before = entry[2:], known[2:]
    added = data and before and isinstance(data[0], bytes) and isinstance(before[0], bytes)
    return data == before or bool(added and data[0].startswith(before[0]))


def _is_covered(one: History, name: str, said: str) -> bool:
    """Whether it was told that a folder stands in a file's place, with something that no look sees and that would be lost."""
    inside = re.search(
        rf"^{re.escape(_shown(name))}: the folder that stands there holds (.+), which would be lost$",
        said,
        re.MULTILINE,
    )
    return inside is not None and _is_left_out(one, inside[1])


def _came_ignored(one: History, name: str) -> bool:
    """Whether the documents say that nobody sees a file come: ignored by rules that were there before the turn."""
    rules = " ".join(line for line in one.tree if "ignore" in line or "exclude" in line)
    folder = "out/" in rules and "out" in name.split("/")[1:-1]
    return folder or any(f"*{end}" in rules and name.endswith(end) for end in (".log", ".tmp"))


def _came_unseen(one: History, truth: Truth, name: str, entry: Entry | None) -> bool:
    """Whether the documents say that a file stays under its new name, since nobody looks where it was moved from."""
    if "git" in name.split("/"):
        return True  # A repository that is none any more.
    return entry is not None and any(
        change[1] and change[2] is None and _goes_on(entry, change[1])
        for other, changes in truth.changes.items()
        if _is_left_out(one, other)
        for change in changes
    )


def _is_unseen(
    door: Door, entry: Entry | None, wanted: Entry | None, name: str, held: set[str]
) -> bool:
    """Whether the documents say that nobody sees such a change: without hooks, of empty folders, their modes, pipes."""
    kinds = {one[0] for one in (entry, wanted) if one}
    if "special" in kinds:
        # Of one that stays nobody looks at the rights.
        return door in ("off", "guard") or (kinds == {"special"} and None not in (entry, wanted))
    if door in ("hook", "layers") or kinds != {"folder"}:
        return False
    return name not in held if entry and not wanted else True


def _is_limit(truth: Truth, name: str) -> bool:
    """Whether the documents say that it cannot be taken back."""
    states = [state for change in truth.really(name) for state in change[1:3] if state]
    return any(
        state[0] == "special" or (state[0] == "file" and len(state[2]) > LARGE) for state in states
    )


def _shown(name: str) -> str:
    return name if name.isprintable() else name.rpartition("/")[2][:3]


def _visible(name: str) -> str:
    """A name as answers have it."""
    return os.fsencode(name).decode(errors="backslashreplace")


def _kind(entry: Entry | None) -> str:
    if entry is None:
        return "nothing"
    return f"{entry[0]} {entry[1]:o}" if entry[0] == "folder" else entry[0]


def _code(said: str) -> str:
    return ", ".join(sorted(set(re.findall(r"\[([A-Z_]+)\]", said)))) or said.strip()[:60]


def tried(one: History, base: str | None = None, patience: float = PATIENCE) -> Played:
    """Play a history in a folder of its own; an error of ours is wrong as well, and so is it to stand still."""
    # Behind layers a program has devices of its own, and nothing below `/dev` but them.
    base = None if one.door == "layers" else base
    with tempfile.TemporaryDirectory(dir=base, ignore_cleanup_errors=True) as folder:
        return guarded(one.door, folder, lambda: play(one, Path(folder)), patience)


def guarded(way: str, folder: str, played: Callable[[], Played], patience: float) -> Played:
    """Play, and end it once it stands still; what is raised is wrong."""
    with watched(folder, patience) as still:
        try:
            found = played()
        except AssertionError as error:
            found = Played(wrong=Wrong(f"{way}: assertion", repr(error)))
        except Exception as error:  # noqa: BLE001 - whatever is raised is the finding
            found = Played(wrong=Wrong(f"{way}: raised {type(error).__name__}", f"{error!r}"))
    if not still:
        return found
    then = found.wrong.said if found.wrong else "it came to its end all the same"
    return Played(wrong=Wrong(f"{way}: stands still", "\n".join([*still, then])))


class Projects:
    """Projects in which a turn comes after the other, one for each door."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[int, Project]] = {}

    def tried(self, seed: int, door: Door, base: str | None) -> tuple[History, Played]:
        """Play the history of a seed: in the project of its door, or in its own."""
        first = seed - seed % TURNS
        if first // TURNS % SLOW == 0:
            file_snapshot._RACY = _RACY  # type: ignore[misc]
            one = history(seed, door)
            return one, tried(one, base)
        file_snapshot._RACY = _FINE  # type: ignore[misc]
        opened, project = self._open.get(door, (-1, None))
        if opened != first or project is None:
            self._end(door)
            # Behind layers a program has devices of its own, and nothing below `/dev` but them.
            project = Project(history(first, door), None if door == "layers" else base)
            self._open[door] = first, project
        one = history(seed, door, project.lines)
        played = guarded(door, project.folder, lambda: project.play(one), PATIENCE)
        if (wrong := played.wrong) is not None:
            self._end(door)
            again = f"--seed {first} --tries {seed - first + 1}, as many processes"
            said = f"turn {project.turns} of its project ({again})\n{wrong.said}"
            played = replace(played, wrong=Wrong(wrong.kind, said))
        return one, played

    def _end(self, door: str) -> None:
        if door in self._open:
            self._open.pop(door)[1].close()

    def close(self) -> None:
        for door in [*self._open]:
            self._end(door)


class Project:
    """A folder in which one turn after the other is played and taken back; a person sets back what is left of it.

    Args:
        one: Of which the tree is.
        base: In which folder.

    Attributes:
        lines: Lines of shell that have made the tree.
        turns: How many were played.
    """

    def __init__(self, one: History, base: str | None) -> None:
        self._whole = tempfile.TemporaryDirectory(dir=base, ignore_cleanup_errors=True)
        self.folder, self.lines, self.turns = self._whole.name, one.tree, 0
        self._place = Place(Path(self.folder))
        plant(self._place, one)
        self._first = Copy(self._place.root)
        self._beside = {name: self._read(name) for name in _BESIDE}

    def _read(self, name: str) -> bytes | None:
        path = self._place.root.parent / name
        return path.read_bytes() if path.exists() else None

    def play(self, one: History) -> Played:
        """Play a history, take it back, and look; then the tree is as it was first."""
        place = self._place
        self.turns += 1
        place.mark = f"-{self.turns}"
        place.stays = self.turns % _ENDED != 0
        played = play_at(place, one)
        if played.wrong is None:
            for model in ("model", "sight"):
                place.leave(place.root.parent / model)
                shutil.rmtree(place.root.parent / model, ignore_errors=True)
            self._first.set_back()
            for name, data in self._beside.items():
                path = place.root.parent / name
                path.unlink(missing_ok=True) if data is None else path.write_bytes(data)
        return played

    def close(self) -> None:
        self._place.close()
        self._whole.cleanup()


def smallest(
    one: History, wrong: Wrong, base: str | None = None, patience: float = 15.0
) -> tuple[History, Wrong]:
    """The same history without what does not matter to what is wrong with it."""
    until = time.monotonic() + patience
    again = True
    while again and time.monotonic() < until:
        again = False
        for less in smaller(one):
            found = tried(less, base).wrong
            if found is not None and found.kind == wrong.kind:
                one, wrong, again = less, found, True
                break
            if time.monotonic() > until:
                break
    return one, wrong


class _Result(NamedTuple):
    """What came of one history: how it was played, what it had in it, what was wrong, and that as a script."""

    way: str
    acted: bool
    unseen: bool
    kind: str
    said: str


@dataclass
class Figures:
    """What came of some histories.

    Attributes:
        show: How many of each kind are shown.
        played: How many, by door or victim.
        acted: In how many the agent changed something.
        unseen: In how many something stayed that the documents say is not seen.
        wrong: How many went wrong, by kind.
        said: The first of each kind, made smaller, as a script.
    """

    show: int = 1
    played: Counter[str] = field(default_factory=Counter)
    acted: int = 0
    unseen: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    said: str = ""

    def add(self, result: _Result) -> None:
        self.played[result.way] += 1
        self.acted += result.acted
        self.unseen += result.unseen
        if result.kind:
            self.wrong[result.kind] += 1
            first, _, rest = result.said.partition("\n")
            print(first, flush=True)
            if self.wrong[result.kind] <= self.show:
                print(rest, flush=True)
                self.said += result.said

    def __str__(self) -> str:
        kinds = "".join(f"{number:>6}  {kind}\n" for kind, number in self.wrong.most_common())
        how = ", ".join(f"{number} {what}" for what, number in self.played.items())
        right = f"{self.acted} with changes of the agent, {self.unseen} with one that is not seen"
        right += f", {sum(self.wrong.values())} wrong"
        return f"{kinds}{sum(self.played.values())} histories ({how}), {right}"


def ready() -> str | None:
    """Have Git know an author and no settings; where small folders are made."""
    os.environ.update(GIT)
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def run(
    tries: int,
    seed: int,
    ways: Sequence[str],
    tried: Tried,
    *,
    show: int = 1,
    seconds: float = float("inf"),
    again: Again = lambda one, wrong, _: (one, wrong),
    over: Callable[[], None] = lambda: None,
    at_once: int = 1,
) -> Figures:
    """Play histories, until there are enough, or somebody ends it: then what is known counts.

    Args:
        tries: How many.
        seed: Of the first.
        ways: Doors or victims; one after the other, and again.
        tried: Plays the one of a seed in one of these ways, in a small folder.
        show: How many of each kind are shown.
        seconds: After how long it ends in any case.
        again: Makes one smaller.
        over: Ends what is left of them, in each process.
        at_once: How many processes play, each its share of the seeds.
    """
    figures = Figures(show)
    base = ready()
    begun = told = time.monotonic()

    def played(seeds: range) -> Generator[_Result]:
        shown: Counter[str] = Counter()
        # Nothing of what was imported is looked at for garbage, nor copied for that.
        gc.freeze()
        try:
            for at in seeds:
                if time.monotonic() > begun + seconds:
                    return
                way = ways[at % len(ways)]
                one, played = tried(at, way, base)
                wrong = played.wrong
                if wrong and (shown := shown + Counter([wrong.kind]))[wrong.kind] <= show:
                    one, wrong = again(one, wrong, base)
                said = (
                    f"WRONG: {wrong.kind} (seed {at})\n{wrong.said}\n{script(one)}\n"
                    if wrong
                    else ""
                )
                yield _Result(way, played.acted, played.unseen, wrong.kind if wrong else "", said)
        finally:
            over()

    shares = [range(seed + at, seed + tries, at_once) for at in range(at_once)]
    results = played(shares[0]) if at_once == 1 else _side_by_side(played, shares)
    with closing(results), suppress(KeyboardInterrupt):
        for result in results:
            figures.add(result)
            if (now := time.monotonic()) > told + _TOLD:
                told = now
                count = sum(figures.played.values())
                wrong = sum(figures.wrong.values())
                each = f"{(now - begun) / count:.2f} s each"
                print(f"{count} histories, {each}, {wrong} wrong", file=sys.stderr, flush=True)
    return figures


def _side_by_side(
    played: Callable[[range], Generator[_Result]], shares: Sequence[range]
) -> Generator[_Result]:
    """What processes find that are forked from this one, as they find it."""
    workers: dict[Connection, int] = {}
    try:
        for share in shares:
            ours, theirs = Pipe(duplex=False)
            if not (pid := os.fork()):
                _work(played(share), theirs)
            theirs.close()
            workers[ours] = pid
        while workers:
            for one in wait([*workers]):
                assert isinstance(one, Connection)
                if (result := one.recv()) is not None:
                    yield result
                    continue
                os.waitpid(workers.pop(one), 0)
    finally:
        for pid in workers.values():
            os.kill(pid, signal.SIGTERM)
        for pid in workers.values():
            os.waitpid(pid, 0)


def _work(results: Generator[_Result], line: Connection) -> NoReturn:
    # Ctrl-C reaches all of a terminal's processes; the one that has forked this one ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended = False

    def end(*_: object) -> None:
        nonlocal ended
        ended = True  # A command of ours that is under way takes the exception for its own.
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        for result in results:
            if ended:
                break
            line.send(result)
        line.send(None)
        os._exit(0)
    except KeyboardInterrupt:
        os._exit(0)
    except BaseException:  # noqa: BLE001 - whatever is raised, nobody else tells it
        traceback.print_exc()
    os._exit(1)


def main(
    program: str,
    text: str,
    ways: Sequence[str],
    usual: Sequence[str],
    played: Callable[..., Figures],
) -> int:
    """Play as many as the command line says; 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog=program, description=text)
    parser.add_argument("--tries", type=int, default=200, help="how many histories")
    parser.add_argument("--seed", type=int, default=0, help="the first of the seeds")
    parser.add_argument("--only", choices=ways, action="append", help="only in these ways")
    parser.add_argument("--show", type=int, default=1, help="how many of each kind are shown")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long at most")
    parser.add_argument("--at-once", type=int, default=2, help="how many processes play")
    given = parser.parse_args()
    limits = {"show": given.show, "seconds": given.seconds, "at_once": given.at_once}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    figures = played(given.tries, given.seed, given.only or usual, **limits)
    print(figures)
    return 1 if figures.wrong else 0


def through_doors(tries: int, seed: int, doors: Sequence[str], **limits: Any) -> Figures:
    """Play histories by some doors."""
    projects = Projects()
    return run(tries, seed, doors, projects.tried, again=smallest, over=projects.close, **limits)


if __name__ == "__main__":
    sys.exit(main("tests.properties.turns", __doc__, [*DOORS], USUAL, through_doors))
