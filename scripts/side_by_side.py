"""Several pytest processes at once, with one readable output.

Lines of progress appear as they are complete, each after the number of its process.  What a process
reports in the end (failures, summary) is kept together, and printed when that process has ended.
"""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import FrameType

# A terminal sends an interrupt to all of a job's processes; whoever sends it to us alone gets it
# passed on after so many seconds, because a second one would cut short how pytest ends.
PASSED_ON = 5.0
# After so many more, processes that were asked to end are ended.
PATIENCE = 20.0
# How long what a process has said is still read after it has ended.
_REST = 3.0

INTERRUPTED = 130

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_HEADING = re.compile(r"={3,} (?!test session starts)|!{3,} ")
_SUMMARY = re.compile(r"={3,} short test summary info ={3,}")


@dataclass
class Run:
    """One process.

    Attributes:
        name: What its lines begin with.
        process: The process.
        report: What it said from its first heading on.
        code: How it ended: pytest's exit status, 1 when something else ended it.
    """

    name: str
    process: subprocess.Popen[str]
    report: list[str] = field(default_factory=list)
    code: int = 1

    @property
    def summary(self) -> list[str]:
        """The last part of the report, which names what failed."""
        plain = [_COLOUR.sub("", line) for line in self.report]
        starts = [at for at, line in enumerate(plain) if _SUMMARY.match(line)]
        return self.report[starts[-1] :] if starts else self.report[-20:]

    def hear(self, line: str) -> None:
        if self.report or _HEADING.match(_COLOUR.sub("", line)):
            self.report.append(line)
        elif line.strip():
            print(f"{self.name}| {line}", end="", flush=True)

    def end(self) -> None:
        status = self.process.wait()
        self.code = status if status >= 0 else 1
        said = "all passed" if status == 0 else f"ended with {status}"
        print(f"\n-- {self.name}: {said}")
        print("".join(self.report), flush=True)


# What the reading threads and the signals tell the loop: whose line it is, None at its end; or the
# number of a signal.
_Heard = queue.SimpleQueue[tuple[Run, "str | None"] | int]


def run(
    commands: Mapping[str, Sequence[str]],
    folder: Path,
    environments: Mapping[str, Mapping[str, str]],
    *,
    first_failure_ends: bool = False,
) -> list[Run]:
    """Run commands at once and print what they say.

    Args:
        commands: pytest's command lines, by name.
        folder: Where they run.
        environments: Variables that each has besides ours, by name.
        first_failure_ends: Whether the others are interrupted as soon as one has failed.

    Returns:
        How each ended, in order.

    Raises:
        KeyboardInterrupt: This process was asked to end; by then all of them have.
    """
    heard: _Heard = queue.SimpleQueue()
    runs: list[Run] = []
    with _told_of_signals(heard):
        try:
            for name, command in commands.items():
                runs.append(_start(name, command, folder, environments.get(name, {})))
                threading.Thread(target=_watch, args=(runs[-1], heard), daemon=True).start()
            _follow(runs, heard, first_failure_ends=first_failure_ends)
        finally:
            for one in runs:
                if one.process.poll() is None:
                    one.process.kill()
                    one.process.wait()
    return runs


def print_failed(runs: Sequence[Run]) -> None:
    """Print the summaries of those that failed, which may be far above by now."""
    for one in runs:
        if one.code:
            print(f"\n-- {one.name} failed:")
            print("".join(one.summary), flush=True)


def status(runs: Sequence[Run]) -> int:
    """One exit status for all: 0 only if each ended with 0."""
    return min((one.code for one in runs if one.code), default=0)


def _start(name: str, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Run:
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return Run(name, process)


def _watch(run: Run, heard: _Heard) -> None:
    """Pass on all lines, and then that there are no more."""
    reader = threading.Thread(target=_read, args=(run, heard), daemon=True)
    reader.start()
    run.process.wait()
    # Something that a test left behind may hold the pipe open for ever.
    reader.join(_REST)
    heard.put((run, None))


def _read(run: Run, heard: _Heard) -> None:
    lines: IO[str] | None = run.process.stdout
    for line in lines or ():
        heard.put((run, line))


@contextmanager
def _told_of_signals(heard: _Heard) -> Iterator[None]:
    """Signals that end us are heard like lines.

    They are set here also where a shell has them ignored, and so what we start has them as usual.
    """

    def tell(number: int, _frame: FrameType | None) -> None:
        heard.put(number)

    earlier = {number: signal.signal(number, tell) for number in _ENDINGS}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _follow(runs: Sequence[Run], heard: _Heard, *, first_failure_ends: bool) -> None:
    """Print what is heard until all have ended; see that they end when they have to."""
    there = list(runs)
    asked = False  # whether a signal has come
    steps: list[tuple[float, signal.Signals]] = []  # when what is to be sent to those still there
    while there:
        wait = max(0.0, steps[0][0] - time.monotonic()) if steps else None
        try:
            one = heard.get(timeout=wait)
        except queue.Empty:
            _send(there, steps.pop(0)[1])
            continue
        if isinstance(one, int):
            now = time.monotonic()
            if asked:
                steps = [(now, signal.SIGKILL)]
            else:
                grace = PASSED_ON if one == signal.SIGINT else 0.0
                steps = [(now + grace, signal.SIGINT), (now + grace + PATIENCE, signal.SIGKILL)]
                print("filepact: ending the tests", file=sys.stderr, flush=True)
            asked = True
        elif one[1] is not None:
            one[0].hear(one[1])
        else:
            one[0].end()
            there.remove(one[0])
            if first_failure_ends and one[0].code and not steps:
                now = time.monotonic()
                steps = [(now, signal.SIGINT), (now + PATIENCE, signal.SIGKILL)]
    if asked:
        raise KeyboardInterrupt


def _send(runs: Sequence[Run], number: signal.Signals) -> None:
    for one in runs:
        if one.process.poll() is None:
            one.process.send_signal(number)
