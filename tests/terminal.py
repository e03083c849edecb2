"""A command with a person's terminal as its input and output."""

from __future__ import annotations

import os
import pty
import subprocess
import termios
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["on_terminal"]

SECONDS = 120


def on_terminal(
    command: Sequence[str],
    *,
    typed: Sequence[tuple[str, str | Callable[[], str]]] = (),
    start: Callable[..., subprocess.Popen[Any]] = subprocess.Popen,
    **options: Any,
) -> tuple[int, str]:
    """Run it to its end: its exit status, and all that the terminal shows.

    Args:
        command: The program and its arguments.
        typed: What is typed in answer to what, one after the other; nothing is echoed.  A function
            is called once it is asked for, and says what.
        start: What starts it; with `tests.forked.Command` it is the command's arguments alone.
        options: Of `subprocess.Popen`.
    """
    ours, theirs = pty.openpty()
    attributes = termios.tcgetattr(theirs)
    attributes[1] &= ~termios.OPOST
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    shown, answers = b"", list(typed)
    with start(
        command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, **options
    ) as process:
        os.close(theirs)
        patience = threading.Timer(SECONDS, process.kill)
        patience.start()
        asked = 0
        with suppress(OSError):  # the end of a terminal is an error on Linux
            while block := os.read(ours, 65_536):
                shown += block
                while answers and answers[0][0].encode() in shown[asked:]:
                    question, answer = answers.pop(0)
                    asked = shown.index(question.encode(), asked) + len(question.encode())
                    os.write(ours, (answer if isinstance(answer, str) else answer()).encode())
        process.wait()
        patience.cancel()
    os.close(ours)
    return process.returncode, shown.decode()
