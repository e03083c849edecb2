"""How long an agent's ``rm -rf`` of a folder takes to be recorded and undone, beside ``cp -a`` and ``rm -rf`` alone.

    PYTHONPATH=src python bench/remove_folder.py [FILES ...] [--rounds N] [--write]

Each round is a new folder of small files in fifty others.  A copy by ``cp -a`` is what whoever wants it back without filepact
makes before each command; the snapshot is made once a session.  After the undo every file has to hold what it held; a
round in which one does not ends the run.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session

if TYPE_CHECKING:
    from collections.abc import Iterator

README = Path(__file__).with_name("README.md")
MARK = "<!-- figures: written by remove_folder.py -->"
END = "<!-- end of what remove_folder.py wrote -->"
PERSON = Session("bench", Actor("person", "bench"))
AGENT = Session("bench", Actor("agent", "bench"))
STEPS = ("cp -a", "rm -rf", "snapshot", "look after it", "undo")

Took = dict[str, tuple[float, float]]


@contextmanager
def measured(took: Took, name: str) -> Iterator[None]:
    """Take the seconds by the clock, and those of the processor for this process and its children."""
    begun, spent = time.perf_counter(), _spent()
    yield
    took[name] = time.perf_counter() - begun, _spent() - spent


def _spent() -> float:
    some = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in some)


def plant(folder: Path, files: int) -> None:
    for number in range(files):
        below = folder / f"d{number % 50}"
        below.mkdir(parents=True, exist_ok=True)
        (below / f"f{number}.py").write_text(f"x = {number}\n" * 20)


def held(folder: Path) -> dict[str, tuple[int, bytes]]:
    """The mode and bytes of each file and folder."""
    return {
        str(one.relative_to(folder)): (
            one.stat().st_mode,
            one.read_bytes() if one.is_file() else b"",
        )
        for one in folder.rglob("*")
    }


def once(files: int) -> Took:
    base = Path(tempfile.mkdtemp(prefix="filepact-bench-")).resolve()
    took: Took = {}
    try:
        folder, copy = base / "root" / "a", base / "copy"
        plant(folder, files)
        before = held(folder)
        with measured(took, "cp -a"):
            subprocess.run(["cp", "-a", folder, copy], check=True)
        with measured(took, "rm -rf"):
            subprocess.run(["rm", "-rf", copy], check=True)
        with open_workspace([str(base / "root")], state_dir=str(base / "state")) as workspace:
            with measured(took, "snapshot"):
                workspace.external.snapshot()
            subprocess.run(["rm", "-rf", folder], check=True)
            with measured(took, "look after it"):
                found = workspace.external.detect(AGENT)
            if found.lost or found.operation is None:
                sys.exit(f"{files} files: not all of it was recorded")
            with measured(took, "undo"):
                workspace.undo(PERSON, found.operation.id)
        if held(folder) != before:
            sys.exit(f"{files} files: not as it was after the undo")
        return took
    finally:
        shutil.rmtree(base)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=int, default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="put the figures into README.md")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    lines = [
        f"Median of {options.rounds} rounds, by the clock / on processors, {platform.system()}, load {load:.1f}.",
        "",
        f"| files | {' | '.join(STEPS)} |",
        f"| ---: |{' ---: |' * len(STEPS)}",
    ]
    for files in options.files:
        rounds = [once(files) for _ in range(options.rounds)]
        cells = [
            " / ".join(
                f"{statistics.median(one[name][at] for one in rounds):,.2f}" for at in (0, 1)
            )
            for name in STEPS
        ]
        lines.append(f"| {files:,} | {' | '.join(f'{one} s' for one in cells)} |")
        print(lines[-1], flush=True)
    if options.write:
        text = README.read_text(encoding="utf-8")
        start, end = text.index(MARK) + len(MARK), text.index(END)
        said = "\n\n" + "\n".join(lines) + "\n\n"
        README.write_text(text[:start] + said + text[end:], encoding="utf-8")


if __name__ == "__main__":
    main()
