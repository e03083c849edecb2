"""What an agent waits for its write, and for what servers find, on trees of a real size.

    PYTHONPATH=src python bench/write_latency.py [TREE...] [--rounds N] [--write]

Each round is one `edit_file` of a file of a few hundred lines, right and wrong by turns, every third
one of a signature that other files use.  It is made twice, on a copy of the tree without servers and
on one with them, the first to be asked alternating; what a receipt adds is the median of the
differences.  Both have nothing else to do: a round begins when nothing is pending any more.  *Own* are
the edited file's errors, *others* those of files that depend on it.  The wrong line has to be told
newly wrong, in the receipt or later; a round in which it is not ends the run.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.lsp_projects import PROJECTS
from filepact.app import open_toolbox
from filepact.tools.registry import CallContext
from tests.real_trees import django, zod
from tests.servers.scene import AGENT, Scene

if TYPE_CHECKING:
    from collections.abc import Callable

README = Path(__file__).resolve().parent / "README.md"
MARK = "<!-- figures: written by write_latency.py -->"
END = "<!-- end of what write_latency.py wrote -->"
PATIENT = 240.0
TITLES = (
    "| tree, server | files | without | with | added | own at once | own within 0.5 s | own | all "
    "| others within 3 s or said pending |"
)
OWN_SECONDS = 0.5
OTHERS_SECONDS = 3.0
PLACES = 6
LENGTHS = (150, 900)


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree, its server, and how its files are edited.

    Attributes:
        make: Puts it into an empty folder.
        folder: Where the edited files are.
        signature: Finds a signature that others use; its groups stand before and after a new parameter.
        parameter: The parameter.
    """

    make: Callable[[Path], None]
    server: str
    folder: str
    ending: str
    right: str
    wrong: str
    signature: str
    parameter: str


def _django(folder: Path) -> None:
    shutil.copytree(django(), folder, dirs_exist_ok=True)


def _cs(folder: Path) -> None:
    """Four projects of 225 classes each, each of which uses the first."""
    PROJECTS["filepact-csharp"].make(folder)


_PYTHON = ("django", ".py", PROJECTS["ty"].right, PROJECTS["ty"].wrong, r"(?m)^(def [a-z]\w*\()()")
TREES = {
    "Django, ty": Tree(_django, "ty", *_PYTHON, "added_first, "),
    "Django, basedpyright": Tree(_django, "basedpyright", *_PYTHON, "added_first, "),
    "zod, TypeScript": Tree(
        *(zod, "typescript", "src/v4", ".ts"),
        *(PROJECTS["typescript"].right, PROJECTS["typescript"].wrong),
        *(r"(?m)^(export function \w+(?:<[^(]*>)?\()()", "addedFirst: symbol, "),
    ),
    "made up, C#": Tree(
        *(_cs, "filepact-csharp", "", ".cs"),
        *(PROJECTS["filepact-csharp"].right, PROJECTS["filepact-csharp"].wrong),
        *(r"(public int Work\d\()()", "int added, "),
    ),
}


@dataclass(slots=True)
class Times:
    """What was measured; seconds.

    Attributes:
        own: From the write to what the server says of the edited file, told at once or later.
        said: The same of dependents.
        told: How many were in the receipt.
    """

    files: int = 0
    plain: list[float] = field(default_factory=list)
    served: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    all: list[float] = field(default_factory=list)
    at_once: int = 0
    others_in_time: int = 0
    rounds: int = 0


class Desk:
    """An agent that edits files in a copy of a tree."""

    def __init__(self, folder: Path, tree: Tree, source: Path, mode: str) -> None:
        self.scene = Scene(folder, [tree.server], {}, mode=mode, budget=2.0)
        shutil.copytree(source, self.scene.root, dirs_exist_ok=True)
        self._toolbox = open_toolbox(self.scene.workspace, semantics=self.scene.semantics)

    def put(self, place: str, text: str) -> tuple[float, str]:
        """Write a file; seconds to the receipt, and what it says."""
        old = self.scene.get(place)
        arguments = {"path": place, "old_string": old, "new_string": text}
        began = time.perf_counter()
        outcome = self._toolbox.call("edit_file", arguments, CallContext(AGENT))
        took = time.perf_counter() - began
        outcome.on_sent()
        if outcome.failed:
            raise SystemExit(outcome.text)
        lines = outcome.text.split("\n")
        first = next((at for at, one in enumerate(lines) if "Diagnostics" in one), len(lines))
        return took, "\n".join(lines[first:])

    def later(self, began: float) -> tuple[float, str]:
        """Wait until nothing is pending; seconds from then to the news, and what they say."""
        end = time.monotonic() + PATIENT
        while time.monotonic() < end:
            news = self.scene.semantics.events(AGENT.id)
            waits = self.scene.semantics.waits(AGENT.id)
            if news or not waits:
                self.scene.semantics.acknowledge(AGENT.id, news)
                return time.perf_counter() - began, "\n".join(one.text for one in news)
            time.sleep(0.01)
        raise SystemExit("it went on pending")


def measure(tree: Tree, rounds: int) -> Times:
    """Take the times of one tree."""
    times, dice = Times(), random.Random(3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        source = folder / "source"
        source.mkdir()
        tree.make(source)
        fit: list[str] = []
        for path in sorted((source / tree.folder).rglob(f"*{tree.ending}")):
            text = path.read_text(encoding="utf-8")
            if LENGTHS[0] <= text.count("\n") <= LENGTHS[1] and re.search(tree.signature, text):
                fit.append(path.relative_to(source).as_posix())
        times.files = sum(1 for _ in source.rglob(f"*{tree.ending}"))
        places = dice.sample(fit, PLACES)
        plain = Desk(folder / "plain", tree, source, "off")
        served = Desk(folder / "served", tree, source, "auto")
        try:
            served.scene.semantics.look(places[:1], session=AGENT, seconds=PATIENT)
            served.scene.index_words()
            for number in range(rounds + PLACES):
                _round(tree, times, (plain, served), places[number % PLACES], number)
                if number == PLACES - 1:  # the first of each file is not counted
                    files = times.files
                    times = Times(files)
        finally:
            plain.scene.close()
            served.scene.close()
    return times


def _round(tree: Tree, times: Times, desks: tuple[Desk, Desk], place: str, number: int) -> None:
    plain, served = desks
    old = served.scene.get(place)
    wrong = (tree.wrong if number % 2 else tree.right).format(n=number)
    text = old + wrong
    if number % 3 == 2:
        text = re.sub(tree.signature, rf"\g<1>{tree.parameter}\g<2>", text, count=1)
    took: dict[str, float] = {}
    began, receipt = 0.0, ""
    for desk in (plain, served) if number % 4 < 2 else (served, plain):
        began = time.perf_counter() if desk is served else began
        seconds, said = desk.put(place, text)
        took["plain" if desk is plain else "served"] = seconds
        receipt = said if desk is served else receipt
    times.rounds += 1
    times.plain.append(took["plain"])
    times.served.append(took["served"])
    at_once = receipt.startswith("Diagnostics (")
    waited, news = served.later(began)
    late = waited if news or not at_once else took["served"]
    times.own.append(took["served"] if at_once else waited)
    times.all.append(late)
    times.at_once += at_once
    told = "pending" in receipt or " in " in receipt.split("\n")[0]
    times.others_in_time += late <= OTHERS_SECONDS or told
    if number % 2 and place not in receipt + news:
        raise SystemExit(f"{place}: its wrong line was not told: {receipt!r} {news!r}")
    for desk in desks:
        desk.put(place, old)
    served.later(time.perf_counter())


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"


def _high(found: list[float]) -> float:
    return sorted(found)[min(int(len(found) * 0.95), len(found) - 1)]


def row(name: str, times: Times) -> str:
    added = statistics.median(b - a for a, b in zip(times.plain, times.served, strict=True))
    within = sum(one <= OWN_SECONDS for one in times.own)
    return (
        f"| {name} | {times.files:,} | {_ms(statistics.median(times.plain))} "
        f"| {_ms(statistics.median(times.served))} | {_ms(added)} "
        f"| {times.at_once} of {times.rounds} | {within} of {times.rounds} "
        f"| {_ms(statistics.median(times.own))} / {_ms(_high(times.own))} "
        f"| {_ms(statistics.median(times.all))} / {_ms(_high(times.all))} "
        f"| {times.others_in_time} of {times.rounds} |"
    )


def report(names: list[str], rounds: int) -> str:
    rows = [
        TITLES,
        "| --- " * 10 + "|",
    ]
    for name in names:
        rows.append(row(name, measure(TREES[name], rounds)))
        print(rows[-1], f"load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    about = (
        f"Measured {datetime.now(tz=UTC).date()}: Python {platform.python_version()} on "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}; {rounds} edits of each."
    )
    return "\n".join([MARK, "", about, "", *rows, "", END])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", nargs="*", choices=[[], *TREES], help="only these")
    parser.add_argument("--rounds", type=int, default=60, help="edits of each tree")
    parser.add_argument("--write", action="store_true", help="put the figures into README.md")
    given = parser.parse_args()
    found = report(given.tree or list(TREES), given.rounds)
    print(found)
    if given.write:
        text = README.read_text(encoding="utf-8")
        head, _, rest = text.partition(MARK)
        README.write_text(head + found + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
