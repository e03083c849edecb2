"""Acting as somebody whom permissions stop, whoever runs the tests."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from filepact.fs.kernel import capset

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["kept_so", "unprivileged"]

T = TypeVar("T")


def unprivileged(action: Callable[[], T]) -> T:
    """The result of something done without capabilities, which let root pass every permission.

    On Linux they are those of a thread, and go with it.  Elsewhere root cannot do without them, and a test is skipped.
    """
    if sys.platform != "linux":
        if not os.geteuid():
            pytest.skip("root passes every permission here")
        return action()
    done: list[T] = []
    failed: list[BaseException] = []

    def act() -> None:
        try:
            capset(0)
            done.append(action())
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the caller's
            failed.append(error)

    thread = threading.Thread(target=act)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


def kept_so() -> tuple[str, ...]:
    """The words before a command that keep it without capabilities where this thread is, which root would get back."""
    if sys.platform != "linux" or os.geteuid():
        return ()
    status = Path(f"/proc/self/task/{threading.get_native_id()}/status").read_text()
    held = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return () if int(held.split()[1], 16) else ("setpriv", "--bounding-set=-all", "--no-new-privs")
