"""`filepact run` on a real terminal: keys, job control, sizes, and whose the terminal is afterwards."""

from __future__ import annotations

import os
import pty
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from filepact.faces.cli import perform
from filepact_run import namespace
from run_place import Place
from run_shell import PATIENCE, Shell
from tests import forked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's"),
    pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here"),
    pytest.mark.slow,
]

RUN = f"{shlex.quote(sys.executable)} -m filepact run --"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def shell(place: Place) -> Iterator[Shell]:
    found = Shell(place.root, {**os.environ, **place.environment, "TERM": "dumb"}, {})
    yield found
    found.close()


def test_a_program_is_interrupted_stopped_and_gone_on_with_by_keys(
    place: Place, shell: Shell
) -> None:
    shell.line(f"{RUN} sh -c 'echo x > a; echo begun; cat; echo no'", "begun\r\n")
    shell.line("first", "first\r\n")
    shell.type("\x1a")
    assert "Stopped" in shell.until("outer> ")
    shell.line("fg", "cat; echo no'\r\n")
    shell.line("second", "second\r\n")
    shell.type("\x03")
    assert "no\r\n" not in shell.until("outer> ")
    assert shell.status() == "130"
    assert place.state() == {"a": "x\n"}
    assert place.facts("runs") == {"runs": []}


def test_a_key_that_is_typed_before_the_program_has_begun_is_not_lost(place: Place) -> None:
    process, terminal = pty.fork()
    if not process:
        plain = namespace._write_maps

        def late(*given: int) -> None:
            os.write(1, b"entered")
            while not signal.sigpending():
                os.sched_yield()
            plain(*given)

        namespace._write_maps = late
        os.environ.update(place.environment)
        os.chdir(place.root)
        os._exit(perform(["run", "--", "sh", "-c", "sleep 9; echo not interrupted"]))
    shown = b""
    with suppress(OSError):  # the end of a terminal is an error on Linux
        while b"entered" not in shown:
            shown += os.read(terminal, 4096)
        os.write(terminal, b"\x03")
        while block := os.read(terminal, 4096):
            shown += block
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 130, shown


def test_a_shell_has_jobs_of_its_own_and_gives_the_terminal_back(
    place: Place, shell: Shell
) -> None:
    shell.type(f"PS1='inner> ' {RUN} bash --norc --noprofile --noediting -i\n")
    shell.until("inner> ")
    shell.line("cat")
    shell.line("text", "text\r\n")
    shell.type("\x1a")
    assert "Stopped" in shell.until("inner> ")
    assert "Stopped" in shell.line("jobs", "inner> ")
    shell.line("fg", "cat\r\n")
    shell.line("more", "more\r\n")
    shell.type("\x03")
    shell.until("inner> ")
    shell.line("echo x > a", "inner> ")
    shell.type("exit 3\n")
    shell.until("outer> ")
    assert shell.status() == "3"
    # The outer shell has its terminal again, and jobs of its own.
    shell.line("cat")
    shell.line("text", "text\r\n")
    shell.type("\x1a")
    assert "Stopped" in shell.until("outer> ")
    shell.line("kill %1; fg", "outer> ")
    assert place.state() == {"a": "x\n"}


def test_the_size_of_the_window_is_the_programs(shell: Shell) -> None:
    shell.resize(24, 80)
    shell.line(
        f"{RUN} bash -c 'stty size; trap \"stty size; exit 0\" WINCH; echo ready; while :; do read -t 1 x; done'",
        "24 80\r\n",
    )
    shell.until("ready\r\n")
    shell.resize(50, 132)
    assert shell.until("outer> ").startswith("50 132\r\n")
    assert shell.status() == "0"


def test_a_program_in_the_background_does_not_take_the_terminal(place: Place, shell: Shell) -> None:
    shell.line(f"{RUN} sh -c 'echo x > a; echo begun; sleep 1000' &", "begun\r\n")
    shell.line("echo mine", "mine\r\n")
    shell.line("kill %1; wait %1", "outer> ")
    assert shell.status() == "143"
    assert place.state() == {"a": "x\n"}


LATE = """
import os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})
print("begun", flush=True)
while signal.SIGTSTP not in signal.sigpending():
    time.sleep(0.01)
time.sleep(0.3)
print("last", flush=True)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
print("goes on", flush=True)
"""


def test_a_shell_goes_on_only_when_all_that_the_program_started_stands_still(
    place: Place, shell: Shell
) -> None:
    place.file("late.py", LATE)
    shell.line(f"{RUN} sh -c '{shlex.quote(sys.executable)} late.py; true'", "begun\r\n")
    shell.type("\x1a")
    shown = shell.until("outer> ")
    assert "last" in shown
    assert shown.index("last") < shown.index("Stopped")
    shell.line("fg", "goes on\r\n")
    shell.until("outer> ")
    assert shell.status() == "0"


def test_a_program_that_stops_itself_gives_way_to_the_shell(place: Place, shell: Shell) -> None:
    shell.line(f"{RUN} sh -c 'kill -STOP $$; echo x > a; echo goes on'")
    assert "Stopped" in shell.until("outer> ")
    shell.line("fg", "goes on\r\n")
    shell.until("outer> ")
    assert shell.status() == "0"
    assert place.state() == {"a": "x\n"}


def test_a_shell_inside_is_suspended_and_has_the_terminal_again_when_it_goes_on(
    shell: Shell,
) -> None:
    shell.type(f"PS1='inner> ' {RUN} bash --norc --noprofile --noediting -i\n")
    shell.until("inner> ")
    shell.line("suspend")
    assert "Stopped" in shell.until("outer> ")
    shell.line("echo of the outer", "of the outer\r\n")
    shell.line("fg", "inner> ")
    shell.line("echo of the inner", "of the inner\r\n")
    shell.line("exit 4", "outer> ")
    assert shell.status() == "4"


def test_a_program_that_ends_in_the_background_leaves_the_terminal_to_the_shell(
    place: Place, shell: Shell
) -> None:
    script = "trap 'echo x > a; exit 7' USR1; echo begun; while :; do sleep 0.05; done"
    place.file("script.sh", script)
    # Not dash: one that is stopped between vfork and exec never stops, without us as well.
    shell.line(f"{RUN} bash script.sh", "begun\r\n")
    shell.type("\x1a")
    assert "Stopped" in shell.until("outer> ")
    shell.line("bg", "outer> ")
    shell.line("kill -USR1 %1", "outer> ")
    until = time.monotonic() + PATIENCE
    while not (place.root / "a").exists():
        assert time.monotonic() < until
    shell.line("cat")
    shell.line("text", "text\r\n")
    shell.type("\x03")
    shell.until("outer> ")
    shell.line("wait %1", "outer> ")


@pytest.mark.parametrize("name", ["USR1", "USR2", "HUP"])
def test_a_signal_to_the_whole_job_reaches_the_program_and_ends_nothing_else(
    place: Place, shell: Shell, name: str
) -> None:
    place.file("script.sh", f"trap 'sleep 0.5; echo x > a; exit 7' {name}; echo begun; sleep 9")
    shell.line(f"{RUN} sh script.sh &", "begun\r\n")
    shell.line(f"kill -{name} %1; wait %1", "outer> ")
    assert shell.status() == "7"
    assert place.state()["a"] == "x\n"


def test_a_program_that_nobody_could_continue_is_not_left_stopped(place: Place) -> None:
    words = ("run", "--", "sh", "-c", "kill -TSTP $$; kill -STOP $$; echo goes on")
    options = place.options(stdin=subprocess.DEVNULL, start_new_session=True)
    done = forked.run(words, timeout=PATIENCE, **options)
    assert (done.stdout, done.returncode) == ("goes on\n", 0)
