"""What each process of a history does that stands still: its stacks, what it waits for in the kernel, its pipes."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

STACKS = signal.SIGRTMAX - 1 if sys.platform == "linux" else 0
"""At this signal, which no program of ours knows, processes that `show_stacks` was called in write their stacks."""

PATIENCE = 120.0
"""Seconds after which a history stands still: none takes a tenth of that on a machine with other work."""

_PROC = Path("/proc")
_MOMENT = 0.5


def show_stacks() -> None:
    """Have this process, and all that are forked from it, write the stacks of its threads to standard error when asked."""
    if STACKS:
        faulthandler.register(STACKS, all_threads=True)


@contextmanager
def watched(folder: str, patience: float = PATIENCE) -> Iterator[list[str]]:
    """End what this process has started for a history once that stands still.

    Args:
        folder: What the history's processes name, lie in or hold open.
        patience: Seconds until then.

    Yields:
        What the processes did then; empty as long as it goes on.
    """
    said: list[str] = []
    over = threading.Event()

    def watch() -> None:
        if not over.wait(patience):
            said.extend(_told(folder))
            print(*said, sep="\n", file=sys.stderr, flush=True)
            _end(folder)

    dog = threading.Thread(target=watch, daemon=True)
    dog.start()
    try:
        yield said
    finally:
        over.set()
        dog.join()


def _told(folder: str) -> Iterator[str]:
    yield f"nothing has come for too long in {folder}; its processes:"
    with tempfile.TemporaryFile("w+") as own:
        faulthandler.dump_traceback(own, all_threads=True)
        own.seek(0)
        yield f"{os.getpid()} is this one\n{own.read()}"
    found = _processes(folder)
    yield from map(_state, found)
    for pid in found:
        # Who has no such handler would end of it.
        if STACKS and int(_field(pid, "SigCgt") or "0", 16) >> (STACKS - 1) & 1:
            with suppress(OSError):
                os.kill(pid, STACKS)
    # They write to what this process is reading from, or to its own standard error.
    threading.Event().wait(_MOMENT)


def _end(folder: str) -> None:
    """Kill all but what serves other histories too: who waits for them reads an end."""
    for pid in _processes(folder):
        if b"tests.forked" not in _read(pid, "cmdline"):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _processes(folder: str) -> list[int]:
    """All that this one has started, itself or through others, and all that have to do with a folder."""
    every = [int(one.name) for one in _PROC.iterdir() if one.name.isdigit()]
    below = {os.getpid()}
    above = {pid: int(_field(pid, "PPid") or "0") for pid in every}
    while more := {pid for pid in every if above[pid] in below} - below:
        below |= more
    name = os.fsencode(folder)
    below |= {pid for pid in every if name in _read(pid, "cmdline") or folder in str(_holds(pid))}
    return sorted(below - {os.getpid()})


def _state(pid: int) -> str:
    words = _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")
    lines = [f"{pid} below {_field(pid, 'PPid')}: {words[:300]}"]
    lines.append(f"  {_field(pid, 'State')}, blocked {_field(pid, 'SigBlk')}, at {_holds(pid)}")
    for task in _names(_PROC / str(pid) / "task"):
        at = f"task/{task}"
        waits = _read(pid, f"{at}/wchan").decode(), _read(pid, f"{at}/syscall").decode().strip()
        stack = " < ".join(_read(pid, f"{at}/stack").decode().split("\n"))
        lines.append(f"  {task}: {' '.join(waits)}: {stack}")
    return "\n".join(lines)


def _holds(pid: int) -> dict[str, str]:
    """Where a process is, and what it has open."""
    found = {}
    for name in ("cwd", *(f"fd/{one}" for one in _names(_PROC / str(pid) / "fd"))):
        with suppress(OSError):
            found[name] = os.readlink(_PROC / str(pid) / name)
    return found


def _field(pid: int, name: str) -> str:
    lines = _read(pid, "status").decode(errors="replace").splitlines()
    return next((one.partition(":")[2].strip() for one in lines if one.startswith(f"{name}:")), "")


def _read(pid: int, name: str) -> bytes:
    with suppress(OSError):
        return (_PROC / str(pid) / name).read_bytes()
    return b""


def _names(folder: Path) -> list[str]:
    with suppress(OSError):
        return os.listdir(folder)
    return []
