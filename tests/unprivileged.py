"""Acting as somebody whom permissions stop, whoever runs the tests."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, TypeVar

from filepact.fs.kernel import capset

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["unprivileged"]

T = TypeVar("T")


def unprivileged(action: Callable[[], T]) -> T:
    """The result of something done without capabilities, which let root pass every permission.

    On Linux they are those of a thread, and go with it.
    """
    if sys.platform != "linux":
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
