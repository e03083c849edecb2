"""filepact beside the reference MCP file server, in one run, as ratios.

    python bench/compare.py [--rounds N] [--write]

Both servers work on the same generated tree of 6,000 files; every operation is sent to them in
turn, so that a change in the machine's speed meets both.  A ratio below 1 means that filepact
is quicker.  ``--write`` puts the table into bench/README.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.stdio_client import StdioServer
from bench.tree import plant
from tests.node_programs import install

if TYPE_CHECKING:
    from collections.abc import Callable

README = Path(__file__).resolve().parent / "README.md"
MARK = "<!-- figures: written by compare.py -->"

Call = tuple[str, dict[str, Any]]


def operations(tree: Path) -> dict[str, tuple[Callable[[int], Call], Callable[[int], Call]]]:
    """For each operation the call of the reference and the call of filepact, by round."""
    small = sorted(tree.rglob("*.py"))[:200]
    long = tree / "long.txt"
    long.write_text("".join(f"line {n} of a longer file\n" for n in range(11_000)))
    for who in ("r", "f"):
        (tree / f"edit_{who}.txt").write_text("".join(f"row {n} = old\n" for n in range(2_000)))
    text = "".join(f"written line {n}\n" for n in range(400))

    def pick(number: int) -> str:
        return str(small[number % len(small)])

    def edit(number: int, key: tuple[str, str]) -> dict[str, str]:
        old, new = ("old", "new") if number < 2_000 else ("new", "old")
        row = number % 2_000
        return {key[0]: f"row {row} = {old}\n", key[1]: f"row {row} = {new}\n"}

    return {
        "read a small file": (
            lambda n: ("read_text_file", {"path": pick(n)}),
            lambda n: ("read_file", {"path": pick(n)}),
        ),
        "first 100 of 11,000 lines": (
            lambda _: ("read_text_file", {"path": str(long), "head": 100}),
            lambda _: ("read_file", {"path": str(long), "lines": 100}),
        ),
        "write 400 lines": (
            lambda n: ("write_file", {"path": str(tree / "w_r.txt"), "content": f"{n}\n{text}"}),
            lambda n: ("write_file", {"path": str(tree / "w_f.txt"), "content": f"{n}\n{text}"}),
        ),
        "edit one line of 2,000": (
            lambda n: (
                "edit_file",
                {
                    "path": str(tree / "edit_r.txt"),
                    "edits": [edit(n, ("oldText", "newText"))],
                },
            ),
            lambda n: (
                "edit_file",
                {"path": str(tree / "edit_f.txt"), **edit(n, ("old_string", "new_string"))},
            ),
        ),
        "edit that misses": (
            lambda n: (
                "edit_file",
                {
                    "path": str(tree / "edit_r.txt"),
                    "edits": [{"oldText": f"row {n} = none", "newText": "x"}],
                },
            ),
            lambda n: (
                "edit_file",
                {
                    "path": str(tree / "edit_f.txt"),
                    "old_string": f"row {n} = none",
                    "new_string": "x",
                },
            ),
        ),
        "find **/*.py": (
            lambda _: ("search_files", {"path": str(tree), "pattern": "**/*.py"}),
            lambda _: ("search_files", {"pattern": "**/*.py", "maxResults": 10_000}),
        ),
        "whole tree": (
            lambda _: ("directory_tree", {"path": str(tree)}),
            lambda _: ("directory_tree", {"depth": 10}),
        ),
    }


HEAVY = {"find **/*.py", "whole tree"}


def fsync_cost(folder: Path, rounds: int) -> float:
    """Median seconds that making one replacement durable adds: the file and its folder."""

    def once(*, durable: bool) -> float:
        begin = time.perf_counter()
        temp = folder / "sync.tmp"
        descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(descriptor, b"x" * 10_000)
        if durable:
            os.fsync(descriptor)
        os.close(descriptor)
        os.replace(temp, folder / "sync.txt")
        if durable:
            holder = os.open(folder, os.O_RDONLY)
            os.fsync(holder)
            os.close(holder)
        return time.perf_counter() - begin

    pairs = [(once(durable=True), once(durable=False)) for _ in range(rounds)]
    return statistics.median(with_ - without for with_, without in pairs)


def run(rounds: int) -> list[str]:
    """Measure everything; the lines of the report."""
    programs = install()
    reference = programs.command("@modelcontextprotocol/server-filesystem", "dist/index.js")
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch).resolve()
        tree = base / "tree"
        tree.mkdir()
        count = plant(tree)
        big = base / "big" / "big.log"
        big.parent.mkdir()
        with big.open("wb") as stream:
            stream.writelines(
                b"%09d a line of a hundred megabytes of log\n" % n for n in range(2_000_000)
            )
        env = programs.environment(base)
        roots = [str(tree), str(big.parent)]
        mine = [sys.executable, "-m", "filepact", "mcp", *roots, "--state", str(base / "state")]
        starts: dict[str, list[float]] = {"reference": [], "filepact": []}
        for _ in range(5):
            for name, command in (("reference", [*reference, *roots]), ("filepact", mine)):
                with StdioServer(command, env=env, cwd=tree) as server:
                    starts[name].append(server.started)
        lines = []
        with (
            StdioServer([*reference, *roots], env=env, cwd=tree) as theirs,
            StdioServer(mine, env=env, cwd=tree) as ours,
        ):
            idle = theirs.memory()[0], ours.memory()[0]
            for name, (their_call, our_call) in operations(tree).items():
                times: tuple[list[float], list[float]] = ([], [])
                number = max(5, rounds // 10) if name in HEAVY else rounds
                for turn in range(-2, number):
                    for side, server, call in ((0, theirs, their_call), (1, ours, our_call)):
                        seconds, text, failed = server.call(*call(turn + 2))
                        if failed != ("misses" in name) and turn >= 0:
                            raise RuntimeError(f"{name}: {text[:300]}")
                        if turn >= 0:
                            times[side].append(seconds)
                lines.append(row(name, *times))
            windows = [
                (
                    theirs.call("read_text_file", {"path": str(big), "head": 20})[0],
                    ours.call("read_file", {"path": str(big), "lines": 20})[0],
                )
                for _ in range(max(5, rounds // 10))
            ]
            lines.append(row("first 20 lines of 100 MB", *map(list, zip(*windows, strict=True))))
            lines.append(row("start to first answer", starts["reference"], starts["filepact"]))
            work = theirs.memory(), ours.memory()
        lines.append(
            f"| memory, idle / peak (MiB) | {idle[0]:.0f} / {work[0][1]:.0f} "
            f"| {idle[1]:.0f} / {work[1][1]:.0f} | {work[1][1] / work[0][1]:.2f} |"
        )
        sync = fsync_cost(tree, rounds)
    return report(lines, count, rounds, sync)


def row(name: str, theirs: list[float], ours: list[float]) -> str:
    """One line: medians in milliseconds and the median of the ratios, pair by pair."""
    ratio = statistics.median(b / a for a, b in zip(theirs, ours, strict=True))
    medians = [statistics.median(times) * 1_000 for times in (theirs, ours)]
    return f"| {name} | {medians[0]:.2f} ms | {medians[1]:.2f} ms | {ratio:.2f} |"


def report(lines: list[str], count: int, rounds: int, sync: float) -> list[str]:
    today = datetime.now(tz=UTC).date().isoformat()
    measured = (
        f"Measured {today}: {count:,} generated files, {rounds} rounds, Python "
        f"{platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores."
    )
    durable = (
        f"Making one replacement durable (fsync of the file and of its folder) costs "
        f"{sync * 1_000:.2f} ms on this disk; filepact pays it for every write and once more for "
        f"the journal, the reference server pays none."
    )
    head = ["| operation | reference server | filepact | ratio |", "| --- | --- | --- | --- |"]
    return [measured, "", *head, *lines, "", durable]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    options = parser.parse_args()
    lines = run(options.rounds)
    print("\n".join(lines))
    if options.write:
        head = README.read_text().split(MARK)[0]
        README.write_text(head + MARK + "\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
