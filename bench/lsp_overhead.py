"""What our own client adds to a language server's time, as pairs.

    PYTHONPATH=src python bench/lsp_overhead.py [SERVER...] [--rounds N] [--write]

Two servers of one kind work on copies of one project.  Each round makes the same edit in both, the
first to be asked alternating: once through `ServerPool.tell` and `ask`, once by a client that is nothing but a
loop.  What counts is the quotient of each pair.  Processor time is that of this process alone, so
that it says what the machine's other work cannot blur.  A wrong answer ends the run.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.lsp_alone import Alone
from bench.lsp_projects import PROJECTS, plant
from filepact_diagnostics.lsp.documents import DiskChange
from filepact_diagnostics.lsp.pool import ServerPool
from tests.servers.asking import update_of
from tests.servers.real_servers import locate, node_folders, server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

README = Path(__file__).resolve().parent / "README.md"
MARK = "<!-- figures: written by lsp_overhead.py -->"
END = "<!-- end of what lsp_overhead.py wrote -->"
SERVERS = ("ruff", "ty", "typescript", "basedpyright")
SECONDS = 120.0

Taken = tuple[float, float]
"""Seconds by the clock, and of this process's processor time."""


def timed(act: Callable[[], bool]) -> tuple[Taken, bool]:
    before, begun = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    answer = act()
    took = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (took, used), answer


def measure(name: str, rounds: int) -> tuple[list[Taken], list[Taken]]:
    """Both sides of all pairs: the bare client's and ours."""
    which, project = server(name), PROJECTS[name]
    environment = {
        "HOME": os.environ["HOME"],
        "PATH": ":".join([str(Path(sys.executable).parent), *node_folders(), "/usr/bin:/bin"]),
        "LANG": "C.UTF-8",
    }
    bare: list[Taken] = []
    ours: list[Taken] = []
    with tempfile.TemporaryDirectory() as folder:
        mine, other = (Path(folder).resolve() / one for one in ("a", "b"))
        mine.mkdir()
        other.mkdir()
        plant(project, mine)
        planted = plant(project, other)
        places = {place: (mine / place).read_text(encoding="utf-8") for place in planted.places}
        pool = ServerPool([which], environment, locate)
        program = locate(which.command[0]) or which.command[0]
        with Alone(which, [program, *which.command[1:]], other, environment) as alone:
            for number in range(rounds + 2 * len(places)):
                place = planted.places[number % len(places)]
                line = (project.wrong if number % 2 else project.right).format(n=number)
                text = places[place] + line

                def by_pool(place: str = place, text: str = text, line: str = line) -> bool:
                    change = DiskChange(str(mine / place), "changed", text)
                    (update,) = update_of(pool, str(mine), [change], {change.path: text}, SECONDS)
                    return update.fresh and any(
                        one.line == line.strip()
                        for report in update.reports
                        for one in report.diagnostics
                    )

                def by_loop(place: str = place, text: str = text, number: int = number) -> bool:
                    last = text.count("\n") - 1
                    found = alone.diagnostics(place, number, text)
                    return any(one["range"]["start"]["line"] == last for one in found)

                for root in (mine, other):
                    (root / place).write_text(text, encoding="utf-8")
                sides = [(ours, by_pool), (bare, by_loop)]
                for times, act in sides if number % 4 < 2 else reversed(sides):
                    taken, wrong = timed(act)
                    if wrong != bool(number % 2):
                        raise SystemExit(f"{name}: a wrong answer in round {number}")
                    if number >= 2 * len(places):
                        times.append(taken)
        pool.close()
    return bare, ours


def row(name: str, rounds: int) -> str:
    bare, ours = measure(name, rounds)
    low, middle, high = statistics.quantiles(
        [mine[0] / alone[0] for alone, mine in zip(bare, ours, strict=True)], n=4
    )
    clock = [_ms(statistics.median(one[0] for one in side)) for side in (bare, ours)]
    own = [_ms(statistics.mean(one[1] for one in side)) for side in (bare, ours)]
    return (
        f"| {name} | {clock[0]} | {clock[1]} | {middle:.2f} ({low:.2f} to {high:.2f}) "
        f"| {own[0]} | {own[1]} |"
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"


def report(names: Sequence[str], rounds: int) -> str:
    rows = [
        "| server | bare loop | ours | quotient of pairs (quartiles) | own, bare | own, ours |",
        "| --- " * 6 + "|",
    ]
    for name in names:
        rows.append(row(name, rounds))
        print(rows[-1], file=sys.stderr, flush=True)
    about = (
        f"Measured {datetime.now(tz=UTC).date()}: Python {platform.python_version()} on "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}; {rounds} pairs of each."
    )
    return "\n".join([MARK, "", about, "", *rows, "", END])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", nargs="*", choices=[[], *SERVERS], help="only these")
    parser.add_argument("--rounds", type=int, default=60, help="pairs of each server")
    parser.add_argument("--write", action="store_true", help="put the figures into README.md")
    given = parser.parse_args()
    found = report(given.server or SERVERS, given.rounds)
    print(found)
    if given.write:
        text = README.read_text(encoding="utf-8")
        head, _, rest = text.partition(MARK)
        README.write_text(head + found + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
