"""What the sandbox costs: setting it up, each open, each call, and a server's start.

Two processes do the same, one behind the wall and one not, by turns; what is reported is the
median of the differences of the pairs, with their quartiles.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.stdio_client import StdioServer
from filepact.fs.root import Root
from filepact.fs.sandbox import confine, landlock_abi

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH = 500
DEEP = "/".join("abcdefgh")
# The same server with the wall and without: what differs is one argument.
SERVER = """
import sys
from filepact import app
wall, opened = sys.argv.pop(1), app.open_workspace
app.open_workspace = lambda roots, **options: opened(roots, **options | {"landlock": wall})
from filepact.faces.cli import run
sys.exit(run())
"""


def work(wall: str, base: str) -> None:
    """One side of the pairs: does a batch of what it is told, and answers the time of one."""
    with Root.open(f"{base}/root") as root:
        before = time.perf_counter_ns()
        confine(wall, [root], f"{base}/state")
        print(time.perf_counter_ns() - before, flush=True)
        top, deep = f"{base}/root/file.txt", f"{base}/root/{DEEP}/file.txt"
        acts = {
            "open": lambda: os.close(os.open(top, os.O_RDONLY)),
            "open deep": lambda: os.close(os.open(deep, os.O_RDONLY)),
            "read": lambda: root.read("file.txt", limit=1_000),
            "read deep": lambda: root.read(f"{DEEP}/file.txt", limit=1_000),
        }
        for line in sys.stdin:
            act = acts[line.strip()]
            before = time.perf_counter_ns()
            for _ in range(BATCH):
                act()
            print((time.perf_counter_ns() - before) / BATCH, flush=True)


def worker(wall: str, base: Path) -> tuple[subprocess.Popen[str], float]:
    process = subprocess.Popen(
        [sys.executable, __file__, "work", wall, base],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, float(process.stdout.readline())


def told(process: subprocess.Popen[str], act: str) -> float:
    process.stdin.write(f"{act}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def row(name: str, off: list[float], on: list[float], unit: float) -> str:
    pairs = [(b - a) / unit for a, b in zip(off, on, strict=True)]
    low, _, high = statistics.quantiles(pairs, n=4)
    without, behind = statistics.median(off) / unit, statistics.median(on) / unit
    return (
        f"| {name} | {without:.2f} | {behind:.2f} | "
        f"{statistics.median(pairs):+.2f} ({low:+.2f} to {high:+.2f}) |"
    )


def served(wall: str, base: Path) -> StdioServer:
    command = [sys.executable, "-c", SERVER, wall, "mcp", str(base / "root")]
    return StdioServer(
        [*command, "--state", str(base / "state")], env=dict(os.environ), cwd=base / "root"
    )


def spent() -> float:
    """Seconds of a processor that ended children took."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def turns(rounds: int, act: Callable[[str], float]) -> tuple[list[float], list[float]]:
    """Both sides by turns, who begins alternating."""
    times: dict[str, list[float]] = {"off": [], "required": []}
    for turn in range(rounds):
        for wall in sorted(times, reverse=turn % 2 == 1):
            times[wall].append(act(wall))
    return times["off"], times["required"]


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder).resolve()
        (base / "root" / DEEP).mkdir(parents=True)
        (base / "state").mkdir(mode=0o700)
        for file in ("file.txt", f"{DEEP}/file.txt"):
            (base / "root" / file).write_text("text\n" * 20)
        set_up = []
        for _ in range(rounds):
            process, took = worker("required", base)
            process.communicate()
            set_up.append(took / 1e6)
        print(
            f"Landlock ABI {landlock_abi()}, {rounds} pairs, set-up {statistics.median(set_up):.2f} ms\n"
        )
        print("| | without | behind it | difference |\n| --- | --- | --- | --- |")
        sides = {wall: worker(wall, base)[0] for wall in ("off", "required")}
        for act in ("open", "open deep", "read", "read deep"):
            print(row(f"{act}, us", *turns(rounds, lambda wall: told(sides[wall], act)), 1e3))  # noqa: B023
        for process in sides.values():
            process.communicate()

        used: dict[str, list[float]] = {"off": [], "required": []}

        def begin(wall: str) -> float:
            before = spent()
            with served(wall, base) as server:
                started = server.started
            used[wall].append(spent() - before)
            return started

        print(row("start to first answer, ms", *turns(rounds, begin), 1e-3))
        print(row("start and end, ms of a processor", used["off"], used["required"], 1e-3))
        with served("off", base) as off, served("required", base) as on:
            servers = {"off": off, "required": on}

            def call(wall: str) -> float:
                return servers[wall].call("read_file", {"path": "file.txt"})[0]

            print(row("read_file, ms", *turns(rounds, call), 1e-3))


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(*sys.argv[2:])
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 200)
