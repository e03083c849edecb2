"""Locks across threads and processes, and the folder they are in."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from filepact.domain.document import RootId
from filepact.errors import StateFailedError, TimedOutError
from filepact.fs import locks as locking
from filepact.fs import state as states
from filepact.fs.kernel import WAIT_LOCK
from filepact.fs.locks import FileLocks, ProcessLock, described, keep_out
from filepact.fs.state import open_state
from tests.needs import PROCESSES

if TYPE_CHECKING:
    from pathlib import Path

HOLDER = """
import sys
from filepact.fs.locks import FileLocks
with FileLocks(sys.argv[1] + "/locks").hold(["a"]):
    print("held", flush=True)
    sys.stdin.read()
"""

COUNTER = """
import sys, threading
from filepact.fs.locks import FileLocks
locks, counter, rounds = FileLocks(sys.argv[1]), sys.argv[2], int(sys.argv[3])
done = []
def add():
    for _ in range(rounds):
        with locks.hold(["a", "b"], timeout=60):
            with open(counter) as file:
                now = int(file.read())
            with open(counter, "w") as file:
                file.write(str(now + 1))
    done.append(1)
threads = [threading.Thread(target=add) for _ in range(int(sys.argv[4]))]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
sys.exit(len(done) != len(threads))
"""


def holder(folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def end(process: subprocess.Popen[bytes], *, kill: bool = False) -> None:
    if kill:
        process.kill()
    process.communicate()


def test_another_process_waits_and_is_told_what_for(tmp_path: Path) -> None:
    locks = FileLocks(str(tmp_path / "locks"))
    process = holder(tmp_path)
    with pytest.raises(TimedOutError) as caught, locks.hold(["a"], timeout=0.05):
        pass
    assert "0.05 seconds" in caught.value.message
    assert locks.try_hold(["a"]) is None
    with locks.hold(["another"], timeout=0):
        pass
    end(process)
    with locks.hold(["a"], timeout=30):
        pass


def test_a_holder_that_is_killed_frees_its_locks(tmp_path: Path) -> None:
    process = holder(tmp_path)
    end(process, kill=True)
    held = FileLocks(str(tmp_path / "locks")).try_hold(["a"])
    assert held is not None
    held.close()


def test_who_waits_gets_the_lock_as_soon_as_it_is_free(tmp_path: Path) -> None:
    locks = FileLocks(str(tmp_path / "locks"))
    process = holder(tmp_path)
    got = threading.Event()

    def wait() -> None:
        with locks.hold(["a"], timeout=60):
            got.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    end(process, kill=True)
    waiter.join(60)
    assert got.is_set()


def test_a_wait_that_was_given_up_does_not_keep_the_lock(tmp_path: Path) -> None:
    locks = FileLocks(str(tmp_path / "locks"))
    process = holder(tmp_path)
    for _ in range(3):
        with pytest.raises(TimedOutError), locks.hold(["a"], timeout=0.01):
            pass
    end(process, kill=True)
    with locks.hold(["a"], timeout=30):
        pass


@pytest.mark.parametrize("freed", [True, False])
def test_who_gets_no_thread_to_wait_in_looks_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, freed: bool
) -> None:
    monkeypatch.setattr(locking, "begun", lambda _thread: False)
    process = holder(tmp_path)
    if freed:
        threading.Timer(0.1, process.kill).start()
    locks = FileLocks(str(tmp_path / "locks"))
    if freed:
        with locks.hold(["a"], timeout=60):
            pass
    else:
        with pytest.raises(TimedOutError), locks.hold(["a"], timeout=0.1):
            pass
    end(process)


@pytest.mark.parametrize("late", [True, False])
def test_a_wait_that_a_signal_ends_does_not_keep_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    locks = FileLocks(str(tmp_path / "locks"))
    process = holder(tmp_path)
    real = threading.Event.wait

    def stopped(event: threading.Event, timeout: float | None = None) -> bool:
        if threading.current_thread() is not threading.main_thread() or timeout != pytest.approx(
            50, abs=2
        ):
            return real(event, timeout)
        if late:
            process.kill()
            real(event, 30)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Event, "wait", stopped)
        with pytest.raises(KeyboardInterrupt), locks.hold(["a"], timeout=50):
            pass
    end(process, kill=True)
    with locks.hold(["a"], timeout=30):
        pass


def test_threads_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    locks = FileLocks(str(tmp_path / "locks"))
    with locks.hold(["a", "b"]):
        answers: list[object] = []

        def attempt() -> None:
            answers.append(locks.try_hold(["b", "c"]))
            held = locks.try_hold(["c"])
            answers.append(held is not None)
            if held:
                held.close()

        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
    assert answers == [None, True]


def test_nobody_waits_for_another_key(tmp_path: Path) -> None:
    locks = FileLocks(str(tmp_path / "locks"))
    with locks.hold([f"key {number}" for number in range(4_000)]):
        other = FileLocks(str(tmp_path / "locks"))
        with other.hold([f"other {number}" for number in range(4_000)], timeout=0):
            pass
        assert other.try_hold(["key 7"]) is None
    with locks.hold([], timeout=0):
        pass
    assert [file.name for file in tmp_path.iterdir()] == ["locks"]
    assert (tmp_path / "locks").stat().st_size < 10_000


def in_folder(folder: int, count: int = 1, first: int = 0) -> list[str]:
    return [f"1:{folder}:{name}" for name in range(first, first + count)]


def test_many_names_of_a_folder_are_locked_in_one_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    lock = locking._lock
    monkeypatch.setattr(
        locking, "_lock", lambda *args, **how: asked.append(how["length"]) or lock(*args, **how)
    )
    locks, other = (FileLocks(str(tmp_path / "locks")) for _ in range(2))
    many = [*in_folder(7, 900), *in_folder(8, 900), "1:9:alone"]
    with locks.hold(many):
        assert sorted(asked) == [1, 1 << 22, 1 << 22]
        for held in (*in_folder(7), *in_folder(8, first=899), *in_folder(7, first=5_000), many[-1]):
            assert other.try_hold([held]) is None
        with other.hold([*in_folder(6), *in_folder(9, 300), "1:70:0", "1"], timeout=0):
            pass
        assert other.try_hold(in_folder(7, 900)) is None
    with other.hold(in_folder(7, 1)):
        assert locks.try_hold(many) is None
    with other.hold(many, timeout=0):
        pass


def test_few_names_of_a_folder_leave_the_others_free(tmp_path: Path) -> None:
    locks, other = (FileLocks(str(tmp_path / "locks")) for _ in range(2))
    with locks.hold(in_folder(7, 100)), other.hold(in_folder(7, 100, first=100), timeout=0):
        pass


def test_who_needs_no_lock_has_it_at_once_and_makes_no_file(tmp_path: Path) -> None:
    locks = FileLocks(str(tmp_path / "locks"))
    with locks.hold([]):
        locks.check()
    assert locks.try_hold([]) is not None
    assert not (tmp_path / "locks").exists()


def test_any_number_of_files_takes_one_descriptor(tmp_path: Path) -> None:
    most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(1)  # that is free: other tests of this process may leave files open
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 8, hard))
    try:
        with FileLocks(str(tmp_path / "locks")).hold(map(str, range(1_000))):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def test_what_was_had_is_given_up_when_the_rest_was_not(tmp_path: Path) -> None:
    locks = FileLocks(str(tmp_path / "locks"))
    names = sorted("abcdef", key=locking._place)
    with locks.hold([names[-1]]):
        for timeout in (0, 0.01):
            with pytest.raises(TimedOutError), locks.hold(names, timeout=timeout):
                pass
            held = locks.try_hold(names[:-1])
            assert held is not None
            held.close()


# -- the file that they are in ----------------------------------------------------------------


@pytest.mark.parametrize("replaced", [False, True])
def test_locks_that_were_taken_in_a_removed_file_are_noticed(
    tmp_path: Path, *, replaced: bool
) -> None:
    locks = FileLocks(str(tmp_path / "locks"))
    with locks.hold(["a"]):
        locks.check()
        (tmp_path / "locks").unlink()
        if replaced:
            (tmp_path / "locks").touch()
        with pytest.raises(StateFailedError):
            locks.check()
    locks.check()
    with locks.hold(["a"]):
        locks.check()
        assert FileLocks(str(tmp_path / "locks")).try_hold(["a"]) is None


def test_who_waited_for_a_lock_in_a_removed_file_takes_it_in_the_new_one(tmp_path: Path) -> None:
    process = holder(tmp_path)
    locks, waits, got = FileLocks(str(tmp_path / "locks")), threading.Event(), threading.Event()
    real = locks._open

    def opened(end: float) -> int:
        descriptor = real(end)
        if not waits.is_set():
            # Opened before it is removed, and locked after that.
            (tmp_path / "locks").unlink()
            waits.set()
        return descriptor

    locks._open = opened  # type: ignore[method-assign] # the moment in between

    def wait() -> None:
        with locks.hold(["a"], timeout=60):
            got.set()
            assert FileLocks(str(tmp_path / "locks")).try_hold(["a"]) is None

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert waits.wait(60)
    end(process, kill=True)
    waiter.join(60)
    assert got.is_set()


@pytest.mark.parametrize("kind", ["folder", "fifo", "link"])
def test_a_file_of_locks_that_is_something_else_is_refused_at_once(
    tmp_path: Path, kind: str
) -> None:
    locks = FileLocks(str(tmp_path / "locks"))
    with locks.hold(["a"]):
        pass
    (tmp_path / "locks").unlink()
    {
        "folder": (tmp_path / "locks").mkdir,
        "fifo": lambda: os.mkfifo(tmp_path / "locks"),
        "link": lambda: (tmp_path / "locks").symlink_to("elsewhere"),
    }[kind]()
    with pytest.raises(StateFailedError), locks.hold(["a"]):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_the_folder_of_an_earlier_version_becomes_a_file_in_which_it_cannot_lock(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "locks"
    folder.mkdir()
    with (folder / "abc").open("w") as earlier:
        fcntl.flock(earlier, fcntl.LOCK_EX)
        for locks in (FileLocks(str(folder)), FileLocks(str(folder))):
            # Whoever is changing a file is waited for, by everybody.
            assert locks.try_hold(["a"]) is None
            with pytest.raises(TimedOutError), locks.hold(["a"], timeout=0.05):
                pass
        with pytest.raises(NotADirectoryError):
            (folder / "abd").touch()
        with pytest.raises(FileExistsError):
            folder.mkdir(exist_ok=True)
    with locks.hold(["a"]):
        assert [file.name for file in tmp_path.iterdir()] == ["locks"]


@PROCESSES
def test_a_holder_that_is_stopped_is_named(tmp_path: Path) -> None:
    process = holder(tmp_path)
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    with (
        pytest.raises(TimedOutError) as caught,
        FileLocks(str(tmp_path / "locks")).hold(["a"], timeout=0.05),
    ):
        pass
    assert str(process.pid) in caught.value.message
    assert "stopped" in caught.value.message
    os.kill(process.pid, signal.SIGCONT)
    end(process, kill=True)


def test_a_name_that_is_no_text_can_be_locked(tmp_path: Path) -> None:
    with FileLocks(str(tmp_path / "locks")).hold(["1:2:\udcff", "1:2:\ud800"]):
        pass


def test_a_folder_that_takes_no_locks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = FileLocks(str(tmp_path / "locks"))

    def refused(*_: object) -> None:
        raise OSError(37, "No locks available")

    with monkeypatch.context() as patch:
        patch.setattr("fcntl.fcntl", refused)
        with pytest.raises(StateFailedError), locks.hold(["a"]):
            pass


def test_a_state_folder_that_is_gone_is_told_until_it_is_back(tmp_path: Path) -> None:
    state = open_state(str(tmp_path / "state"))
    (tmp_path / "state").rename(tmp_path / "gone")
    with pytest.raises(StateFailedError), state.locks.hold(["a"]):
        pass
    (tmp_path / "gone").rename(tmp_path / "state")
    with state.locks.hold(["a"]):
        pass


@pytest.mark.parametrize(
    ("processes", "threads", "rounds"),
    [(2, 8, 20), pytest.param(16, 1, 60, marks=pytest.mark.slow)],
)
def test_no_addition_is_lost_and_nobody_starves(
    tmp_path: Path, processes: int, threads: int, rounds: int
) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    started = [
        subprocess.Popen(
            [sys.executable, "-c", COUNTER, tmp_path / "locks", counter, str(rounds), str(threads)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for _ in range(processes)
    ]
    assert [process.wait(100) for process in started] == [0] * processes
    assert int(counter.read_text()) == processes * threads * rounds


# -- the state folder -------------------------------------------------------------------------


def test_the_state_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    state = open_state(str(tmp_path / "a/b"))
    assert stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == 0o700
    assert state.path == os.path.realpath(tmp_path / "a/b")
    assert os.path.dirname(state.database) == state.path
    with state.locks.hold(["a"]):
        pass


def test_a_state_folder_that_others_may_write_is_refused(tmp_path: Path) -> None:
    for mode in (0o770, 0o707, 0o777):
        tmp_path.chmod(mode)
        with pytest.raises(StateFailedError) as caught:
            open_state(str(tmp_path))
        assert "chmod" in caught.value.hint
    tmp_path.chmod(0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_state_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 1_234, 1_234)
    with pytest.raises(StateFailedError):
        open_state(str(tmp_path))


def test_a_state_folder_has_to_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "file/below"):
        with pytest.raises(StateFailedError):
            open_state(str(tmp_path / name))


@pytest.mark.parametrize(
    ("state", "root", "apart"),
    [
        ("s", "r", True), ("s", "s-2", True), ("r/s", "r", False), ("s", "s", False),
        ("s", "s/r", False), ("r/.a/b/s", "r", False),
    ],
)  # fmt: skip
def test_state_and_roots_are_kept_apart(tmp_path: Path, state: str, root: str, apart: bool) -> None:
    (tmp_path / root).mkdir(parents=True, exist_ok=True)
    named = RootId(str(tmp_path / root))
    if apart:
        assert open_state(str(tmp_path / state), [named]).path == str(tmp_path / state)
        return
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StateFailedError):
        open_state(str(tmp_path / state), [named])
    # Nothing is made in a folder of agents.
    assert sorted(tmp_path.rglob("*")) == before


def test_state_and_roots_are_told_apart_by_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "alias").symlink_to("root")
    for state, root in (("root/state", "alias"), ("alias/state", "root"), ("alias", "root")):
        with pytest.raises(StateFailedError):
            open_state(str(tmp_path / state), [RootId(str(tmp_path / root))])
    assert list((tmp_path / "root").iterdir()) == []
    open_state(str(tmp_path / "state"), [RootId(str(tmp_path / "gone"))])


@pytest.mark.parametrize(
    "name", ["x.txt", "a/b", "../../x", "文" * 85, "é" * 127, "n" * 255, "\udcff", ""]
)
def test_a_text_is_rescued_under_any_name(tmp_path: Path, name: str) -> None:
    state = open_state(str(tmp_path))
    paths = {state.rescue(name, text) for text in (b"one", b"two")}
    assert {os.path.dirname(path) for path in paths} == {os.path.join(state.path, "rescued")}
    texts = set()
    for path in paths:
        with open(path, "rb") as kept:
            texts.add(kept.read())
            assert stat.S_IMODE(os.fstat(kept.fileno()).st_mode) == 0o600
    assert texts == {b"one", b"two"}


def test_a_text_that_cannot_be_rescued_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = open_state(str(tmp_path))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(states, "_write_new", full)
    with pytest.raises(StateFailedError):
        state.rescue("x", b"x")

    def taken(*_: object) -> None:
        raise FileExistsError(17, "exists")

    monkeypatch.setattr(states, "_write_new", taken)
    with pytest.raises(StateFailedError):
        state.rescue("x", b"x")


def test_a_wait_that_the_system_ends_without_the_lock_is_told_as_one_that_was_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (FileLocks(str(tmp_path / "locks")) for _ in range(2))
    real = fcntl.fcntl

    def none_left(descriptor: int, command: int, wanted: bytes) -> object:
        if command == WAIT_LOCK:
            raise OSError(37, "No locks available")
        return real(descriptor, command, wanted)

    with first.hold(["a"]), monkeypatch.context() as patch:
        patch.setattr("fcntl.fcntl", none_left)
        with pytest.raises(TimedOutError), second.hold(["a"], timeout=0.2):
            pass
    with second.hold(["a"], timeout=30):
        pass


@PROCESSES
def test_a_long_command_is_named_by_its_beginning() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "input()", "x" * 500], stdin=subprocess.PIPE
    ) as process:
        # Once it answers to its own name it is no copy of this process any more.
        while "input()" not in (said := described(process.pid)):
            assert process.poll() is None
    assert said.endswith("...")
    assert len(said) < 200


# -- what lasts as long as a process ----------------------------------------------------------


def test_of_two_holders_one_has_the_lock_and_tells_the_other_something(tmp_path: Path) -> None:
    path = tmp_path / "new" / "one"
    first, second = ProcessLock(str(path)), ProcessLock(str(path))
    assert second.told() is None
    second.tell("nothing, as it is not held")
    assert first.take()
    assert not second.take()
    first.tell("a text")
    assert second.told() == "a text"
    first.tell("other")
    assert second.told() == "other"
    first.release()
    first.release()
    assert second.told() is None
    assert second.told(after=True) == "other"
    assert second.take()
    second.release()


def test_a_lock_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    for path in (tmp_path / "file" / "one", tmp_path / "link"):
        with pytest.raises(StateFailedError):
            ProcessLock(str(path)).take()


def test_some_bytes_of_a_file_are_kept_from_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with keep_out(str(path), 10, 2) as had, keep_out(str(path), 12, 2) as beside:
        assert (had, beside) == (True, True)
        with keep_out(str(path), 11, 2) as again:
            assert not again
    with keep_out(str(path), 11, 2) as free:
        assert free
