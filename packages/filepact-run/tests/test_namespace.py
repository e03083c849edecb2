"""What is heard of a program in namespaces when it ends before it has read everything."""

from __future__ import annotations

import os
import signal
import socket
import sys

import pytest

from filepact_run.namespace import NamespaceProgram

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
