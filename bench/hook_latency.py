"""How long an agent waits for `filepact hook`, before and after a tool, on a tree of 5,000 files.

``python bench/hook_latency.py [FILES]`` prints medians in milliseconds.  What is measured is the whole
process that a host starts, from its start to its end; beside it stands a Python that does nothing.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 15
COLD = 5


def make_tree(root: Path, files: int) -> None:
    for number in range(files):
        folder = root / f"d{number // 20}"
        folder.mkdir(parents=True, exist_ok=True)
        text = f"# {number}\n" + "def f(x):\n    return x\n" * 60
        (folder / f"f{number % 20}.py").write_text(text)


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    program = Path(sys.executable).with_name("filepact")
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        root = base / "root"
        make_tree(root, files)
        environment = {"HOME": name, "PATH": os.environ["PATH"]}
        environment["FILEPACT_STATE_DIR"] = str(base / "state")

        def hook(moment: str) -> float:
            event = {"session_id": "s", "hook_event_name": moment, "tool_name": "Bash"}
            event |= {"tool_use_id": "1", "tool_input": {"command": "make"}, "prompt_id": "t"}
            data = json.dumps(event).encode()
            start = time.perf_counter()
            subprocess.run(
                [program, "hook", "claude"], input=data, cwd=root, env=environment, check=True
            )
            return (time.perf_counter() - start) * 1_000

        def end_daemon() -> None:
            for lock in (base / "state" / "hooks").glob("*.lock"):
                pid = int(lock.read_text())
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
                while (lock.parent / lock.with_suffix(".sock").name).exists():
                    time.sleep(0.01)

        def measure(change: Callable[[int], None]) -> tuple[float, float]:
            before, after = [], []
            for number in range(ROUNDS):
                before.append(hook("PreToolUse"))
                change(number)
                after.append(hook("PostToolUse"))
            return statistics.median(before), statistics.median(after)

        def python(_number: int) -> float:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", "pass"], env=environment, check=True)
            return (time.perf_counter() - start) * 1_000

        def nothing(_number: int) -> None:
            pass

        def edit(number: int) -> None:
            (root / f"d{number}" / "f1.py").write_text(f"edited = {number}\n")

        def shell(number: int) -> None:
            (root / f"d{number}" / "f2.py").write_text(f"edited = {number}\n")
            (root / f"d{number}" / "made.py").write_text("made\n")
            (root / f"d{number}" / "f3.py").unlink()

        def folder(number: int) -> None:
            (root / f"new{number}").mkdir()
            (root / f"new{number}" / "a.py").write_text("made\n")

        try:
            print(f"{files} files, median of {ROUNDS}, ms")
            print(f"python -c pass       {statistics.median(map(python, range(ROUNDS))):7.0f}")
            print(f"first event ever     {hook('PreToolUse'):7.0f}")
            for what, change in (
                ("nothing changed", nothing),
                ("one file edited", edit),
                ("edit, make, remove", shell),
                ("a folder made", folder),
            ):
                before, after = measure(change)
                print(f"{what:<20} {before:7.0f} before {after:7.0f} after")
            cold = []
            for _ in range(COLD):
                end_daemon()
                cold.append(hook("PreToolUse"))
            print(f"daemon started       {statistics.median(cold):7.0f} before")
        finally:
            end_daemon()


if __name__ == "__main__":
    main()
