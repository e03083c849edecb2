"""How long an agent waits for `filepact hook`, before and after a tool, on a tree of 5,000 files.

``python bench/hook_latency.py [FILES] [ROUNDS] [PROGRAM]`` prints medians in milliseconds.  What is measured
is the whole process that a host starts, from its start to its end.  In each round a Python that does nothing
stands beside it, so that what else the machine does meets both.  *cpu* is the processor time of the process
that waits, *daemon* that of the one that answers (the mean, for the system counts it in hundredths of a
second).
"""

from __future__ import annotations

import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROUNDS = 15
COLD = 7
TICKS = os.sysconf("SC_CLK_TCK")


class Taken(NamedTuple):
    """What a process took, in milliseconds."""

    wall: float
    cpu: float


def make_tree(root: Path, files: int) -> None:
    for number in range(files):
        folder = root / f"d{number // 20}"
        folder.mkdir(parents=True, exist_ok=True)
        text = f"# {number}\n" + "def f(x):\n    return x\n" * 60
        (folder / f"f{number % 20}.py").write_text(text)


def timed(words: Sequence[str], cwd: Path, environment: Mapping[str, str], data: bytes) -> Taken:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(words, input=data, cwd=cwd, env=environment, check=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(wall * 1_000, cpu * 1_000)


def middle(all_taken: Sequence[Taken]) -> str:
    wall = statistics.median(one.wall for one in all_taken)
    cpu = statistics.median(one.cpu for one in all_taken)
    return f"{wall:7.0f} (cpu {cpu:5.1f})"


def nothing(_root: Path, _number: int) -> None:
    pass


def edit(root: Path, number: int) -> None:
    (root / f"d{number}" / "f1.py").write_text(f"edited = {number}\n")


def shell(root: Path, number: int) -> None:
    (root / f"d{number}" / "f2.py").write_text(f"edited = {number}\n")
    (root / f"d{number}" / "made.py").write_text("made\n")
    (root / f"d{number}" / "f3.py").unlink()


def folder(root: Path, number: int) -> None:
    (root / f"new{number}").mkdir()
    (root / f"new{number}" / "a.py").write_text("made\n")


def main(
    files: str = "5000",
    rounds_: str = str(ROUNDS),
    program: str = str(Path(sys.executable).with_name("filepact")),
) -> None:
    rounds = int(rounds_)
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        root = base / "root"
        make_tree(root, int(files))
        environment = {"HOME": name, "PATH": os.environ["PATH"]}
        environment["FILEPACT_STATE_DIR"] = str(base / "state")

        def hook(moment: str) -> Taken:
            event = {"session_id": "s", "hook_event_name": moment, "tool_name": "Bash"}
            event |= {"tool_use_id": "1", "tool_input": {"command": "make"}, "prompt_id": "t"}
            return timed([program, "hook", "claude"], root, environment, json.dumps(event).encode())

        def python() -> Taken:
            return timed([sys.executable, "-c", "pass"], root, environment, b"")

        def daemons() -> list[int]:
            return [int(one.read_text()) for one in (base / "state" / "hooks").glob("*.lock")]

        def daemon_cpu() -> float:
            """Of all daemons that there are, in milliseconds."""
            numbers = [
                Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                for pid in daemons()
            ]
            return sum(int(one[11]) + int(one[12]) for one in numbers) * 1_000 / TICKS

        def end_daemon() -> None:
            for lock in (base / "state" / "hooks").glob("*.lock"):
                with suppress(ProcessLookupError):
                    os.kill(int(lock.read_text()), signal.SIGTERM)
                while lock.with_suffix(".sock").exists():
                    time.sleep(0.01)

        def measure(what: str, change: Callable[[Path, int], None]) -> None:
            before, after, plain = [], [], []
            used = {"before": 0.0, "after": 0.0}
            for number in range(rounds):
                plain.append(python())
                start = daemon_cpu()
                before.append(hook("PreToolUse"))
                between = daemon_cpu()
                change(root, number)
                after.append(hook("PostToolUse"))
                used["before"] += (between - start) / rounds
                used["after"] += (daemon_cpu() - between) / rounds
            print(
                f"{what:<20} {middle(plain)}  {middle(before)} daemon {used['before']:4.1f}  "
                f"{middle(after)} daemon {used['after']:4.1f}"
            )

        try:
            print(f"{files} files, median of {rounds}, ms; load {os.getloadavg()[0]:.0f}")
            print(f"{'':<20} {'Python alone':<19}  {'before':<31}  after")
            print(f"{'first event ever':<20} {middle([python()])}  {middle([hook('PreToolUse')])}")
            for what, change in (
                ("nothing changed", nothing),
                ("one file edited", edit),
                ("edit, make, remove", shell),
                ("a folder made", folder),
            ):
                measure(what, change)
            cold, plain, used = [], [], []
            for _ in range(COLD):
                end_daemon()
                plain.append(python())
                cold.append(hook("PreToolUse"))
                used.append(daemon_cpu())
            spent = f"daemon {statistics.median(used):4.0f}"
            print(f"{'daemon started':<20} {middle(plain)}  {middle(cold)} {spent}")
        finally:
            end_daemon()


if __name__ == "__main__":
    main(*sys.argv[1:])
