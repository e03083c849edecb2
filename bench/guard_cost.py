"""What the guard adds to opening one file, by depth, beside a check of strings.

    python bench/guard_cost.py [--write]

By turns a file is opened and closed plainly, after `realpath` and a comparison of strings, and
through a root, which resolves, checks and opens it.  ``--write`` puts the table into
bench/README.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.fs.root import Root
from filepact.workspace.guard import Guard

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
MARK = "<!-- figures: written by guard_cost.py -->"
END = "<!-- end of what guard_cost.py wrote -->"
ROUNDS = 4_000


def ways(top: str, path: str, root: Root, guard: Guard) -> dict[str, Callable[[], object]]:
    """The ways to open a file, each opening and closing it."""
    full = f"{top}/{path}"

    def checked() -> None:
        true = os.path.realpath(full)
        if not true.startswith(f"{top}/"):
            raise ValueError(full)
        os.close(os.open(true, os.O_RDONLY))

    def rooted() -> None:
        with root.stream(path):
            pass

    def guarded() -> None:
        location = guard.find(path, "read", agent="a")
        with root.stream(location.place.path, follow=False):
            pass

    return {
        "plain": lambda: os.close(os.open(full, os.O_RDONLY)),
        "realpath, then open": checked,
        "root": rooted,
        "guard: rules, root, root again": guarded,
    }


def measure(acts: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Microseconds of each way, by turns."""
    taken: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(ROUNDS):
        for name, act in acts.items():
            before = time.perf_counter_ns()
            act()
            taken[name].append((time.perf_counter_ns() - before) / 1e3)
    return taken


def report() -> str:
    rows = [
        "| folders above | way | median | 99 of 100 within |",
        "| --- | --- | --- | --- |",
    ]
    with tempfile.TemporaryDirectory() as name:
        top = os.path.realpath(name)
        with Root.open(top) as root:
            guard = Guard([root])
            for depth in (1, 4, 8, 16):
                folders = "/".join(f"d{number}" for number in range(depth))
                os.makedirs(f"{top}/{folders}", exist_ok=True)
                path = f"{folders}/f.txt"
                Path(top, path).write_text("x")
                for way, taken in measure(ways(top, path, root, guard)).items():
                    within = statistics.quantiles(taken, n=100)[98]
                    rows.append(
                        f"| {depth} | {way} | {statistics.median(taken):.1f} | {within:.1f} |"
                    )
    about = (
        f"Measured {dt.datetime.now(tz=dt.UTC).date()}: microseconds; {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f}."
    )
    return "\n".join([MARK, "", about, "", *rows, "", END])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    arguments = parser.parse_args()
    text = report()
    print(text)
    if arguments.write:
        page = HERE / "README.md"
        old = page.read_text(encoding="utf-8")
        before, _, rest = old.partition(MARK)
        page.write_text(before + text + rest.partition(END)[2], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
