"""The made-up server as one of a pool's, and what is left of processes."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filepact_diagnostics.lsp.pool import ServerPool
from filepact_diagnostics.lsp.spec import parse_servers

if TYPE_CHECKING:
    from filepact_diagnostics.lsp.spec import ServerSpec

PROGRAM = str(Path(__file__).parent / "fake_server.py")
PAUSES = (0.0, 0.1, 0.2, 0.2)
SECONDS = 90.0
"""Far more than any answer takes."""


def fake(orders: dict[str, Any] | None = None, **fields: Any) -> ServerSpec:
    """A server that behaves as its orders say; fields are those of its table."""
    orders = orders or {}
    table = {
        "command": [sys.executable, "-I", "-S", PROGRAM, json.dumps(orders)],
        "files": {"*.x": "x"},
        "diagnostics": orders.get("kind", "pull"),
        "first": 5,
        **fields,
    }
    (server,) = parse_servers({"fake": table})
    return server


def pool_of(
    *servers: ServerSpec, idle: float = 600.0, memory: int = 0, **environment: str
) -> ServerPool:
    return ServerPool(
        servers,
        {"PATH": os.environ["PATH"], **environment},
        lambda name: name,
        idle=idle,
        pauses=PAUSES,
        memory=memory,
    )


def wait_for_end(pid: int, seconds: float = SECONDS) -> bool:
    """Whether a process has ended, or does within the time."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def processes_with(mark: str) -> list[int]:
    """Processes that have a word in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                if mark.encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


def are_there(number: int, mark: str, seconds: float = SECONDS) -> bool:
    """Whether so many processes have a word in their environment, or do within the time.

    While a program takes a process over, Linux tells of no environment.
    """
    end = time.monotonic() + seconds
    while (found := len(processes_with(mark))) != number and time.monotonic() < end:
        time.sleep(0.01)
    return found == number


def left_of(mark: str) -> list[int]:
    """Processes with a word in their environment that do not end by themselves."""
    for _ in range(100):
        there = processes_with(mark)
        stubborn = [pid for pid in there if not wait_for_end(pid, 10.0)]
        if not there or stubborn:
            return stubborn
    return processes_with(mark)
