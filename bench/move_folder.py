"""How long a folder takes to be moved, and to be moved back, by how many files it holds.

    PYTHONPATH=src python bench/move_folder.py [FILES ...] [--rounds N] [--write]

Each round is a new folder of small files in fifty others, a move of it by an agent's tool, its undo and its redo,
and an undo by a person, for whom the names in it are not looked at.  After that every file has to be the one that it was, by inode; a round in which one is not ends the run.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Session
from filepact.tools.registry import CallContext

README = Path(__file__).with_name("README.md")
MARK = "<!-- figures: written by move_folder.py -->"
END = "<!-- end of what move_folder.py wrote -->"
PERSON = Session("bench", Actor("person", "bench"))
AGENT = CallContext(Session("bench", Actor("agent", "bench")))
CALLS = {
    "move": ("manage_files", {"action": "move", "path": "a", "to": "b"}),
    "undo": ("history", {"action": "undo"}),
    "redo": ("history", {"action": "redo"}),
}
BACK = "undo by a person"


def plant(folder: Path, files: int) -> dict[str, int]:
    """Make so many files in fifty folders; the inode of each."""
    for number in range(files):
        below = folder / f"d{number % 50}"
        below.mkdir(parents=True, exist_ok=True)
        (below / f"f{number}.py").write_text(f"x = {number}\n" * 20)
    return inodes(folder)


def inodes(folder: Path) -> dict[str, int]:
    """The inode of each file and folder."""
    return {str(one.relative_to(folder)): one.stat().st_ino for one in folder.rglob("*")}


def once(files: int) -> dict[str, float]:
    """Seconds of each call."""
    base = Path(tempfile.mkdtemp(prefix="filepact-bench-")).resolve()
    try:
        before = plant(base / "root" / "a", files)
        took: dict[str, float] = {}
        with open_workspace([str(base / "root")], state_dir=str(base / "state")) as workspace:
            box = open_toolbox(workspace, own=True)
            box.call("manage_files", {"action": "create_dir", "path": "warm"}, AGENT)
            for name, (tool, sent) in CALLS.items():
                begun = time.perf_counter()
                outcome = box.call(tool, sent, AGENT)
                took[name] = time.perf_counter() - begun
                if outcome.failed:
                    sys.exit(f"{files} files, {name}: {outcome.text}")
            begun = time.perf_counter()
            workspace.undo(PERSON)
            took[BACK] = time.perf_counter() - begun
        if inodes(base / "root" / "a") != before:
            sys.exit(f"{files} files: not the same files any more after the undo")
        return took
    finally:
        shutil.rmtree(base)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=int, default=[100, 1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put the figures into README.md")
    options = parser.parse_args()
    machine = (
        f"Median of {options.rounds} rounds, {platform.system()}, load average {os.getloadavg()[0]:.1f}"
        f" on {os.cpu_count()} processors."
    )
    lines = [
        machine,
        "",
        f"| files | {' | '.join((*CALLS, BACK))} |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for files in options.files:
        rounds = [once(files) for _ in range(options.rounds)]
        figures = (statistics.median(one[name] for one in rounds) for name in (*CALLS, BACK))
        lines.append(
            f"| {files:,} | " + " | ".join(f"{1000 * one:,.0f} ms" for one in figures) + " |"
        )
        print(lines[-1], flush=True)
    if options.write:
        text = README.read_text(encoding="utf-8")
        start, end = text.index(MARK) + len(MARK), text.index(END)
        said = "\n\n" + "\n".join(lines) + "\n\n"
        README.write_text(text[:start] + said + text[end:], encoding="utf-8")


if __name__ == "__main__":
    main()
