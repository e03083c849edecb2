"""What is heard of a program in namespaces when it ends unread, and which calls are refused in there."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from filepact_run.kernel import forbid_calls, prctl
from filepact_run.namespace import NamespaceProgram

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")


@pytest.mark.parametrize(
    ("said", "status"), [((b"ended 143",), 143), ((b"ended -9",), 137), ((), 128 + signal.SIGKILL)]
)
@pytest.mark.parametrize("asked", [False, True])
def test_who_ends_with_a_signal_unread_is_heard_all_the_same(
    said: tuple[bytes, ...], status: int, asked: bool
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    gone, until = os.pipe()
    program = NamespaceProgram(os.getpid(), ours, gone, signal.pthread_sigmask(0, ()))
    program.send(signal.SIGTERM)
    for word in said:
        theirs.send(word)
    theirs.close()
    os.close(until)
    assert not (asked and program.hold())
    assert program.ended() == status


def in_thread(action: Callable[[], Any]) -> Any:
    """The result of something in a thread of its own, which ends with what it gave up."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(action).result()


def attempt(action: Callable[[], Any]) -> str:
    """What became of it: the error's name, or ``done``."""
    try:
        action()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "done"


CALLS = {"x86_64": {"keyctl": 250, "fsopen": 430}, "aarch64": {"keyctl": 219, "fsopen": 430}}
needs_filter = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine not in CALLS,
    reason="the filter does not know this machine",
)


@needs_filter
def test_calls_that_reach_past_namespaces_are_refused_and_others_are_not(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("readme")
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    read_only = os.open(tmp_path / "README.md", os.O_RDONLY)

    def call(number: int) -> str:
        libc.syscall(ctypes.c_long(number), ctypes.c_long(-1), zero, zero, zero, zero)
        return errno.errorcode[ctypes.get_errno()]

    def steer(request: int) -> str:
        return attempt(lambda: fcntl.ioctl(read_only, request, b"x"))

    def attempts() -> tuple[Any, ...]:
        # Of this thread alone, as is the filter.
        prctl(38, 1)
        forbid_calls()
        numbers = CALLS[os.uname().machine].values()
        refused = [*map(call, numbers), steer(0x5412), steer(0x541C)]
        # io_uring: its setup, enter and register, as a kernel answers that has none.
        missing = [*map(call, (425, 426, 427))]
        return refused, missing, steer(0x5401), (tmp_path / "README.md").read_text()

    refused, missing, other, text = in_thread(attempts)
    os.close(read_only)
    assert (refused, missing, other, text) == (["EPERM"] * 4, ["ENOSYS"] * 3, "ENOTTY", "readme")


def test_a_machine_that_the_filter_does_not_know_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = os.uname()
    unknown = os.uname_result((*machine[:4], "pdp11"))
    monkeypatch.setattr(os, "uname", lambda: unknown)
    in_thread(forbid_calls)
    assert attempt(lambda: os.listdir("/")) == "done"
