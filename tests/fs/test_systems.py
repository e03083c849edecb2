"""What the calls of every system do, in one table: those of this system, and macOS' own over a C library that stands in for its."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import stat
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from filepact.fs import darwin, kernel
from filepact.fs.inotify import InotifyWatcher
from filepact.fs.root import Root
from filepact.fs.watch import moment, scan
from filepact_hooks import client
from filepact_hooks.client import peer
from tests.as_macos import build, macos_fcntl, missing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if said := missing():
        pytest.skip(said)
    return ctypes.CDLL(str(build(tmp_path_factory.mktemp("macos"))), use_errno=True)


@pytest.fixture(params=["this system", "macOS"])
def calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The calls of one system; on macOS both are the same."""
    if request.param == "this system":
        yield kernel
        return
    if sys.platform != "darwin":
        monkeypatch.setattr(darwin, "_libc", request.getfixturevalue("library"))
        monkeypatch.setattr(darwin, "fcntl", macos_fcntl.as_there)
    darwin._function.cache_clear()
    yield darwin
    darwin._function.cache_clear()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path, os.O_RDONLY)
    yield opened
    os.close(opened)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(opened, b"text")
    yield opened
    os.close(opened)


# -- names ----------------------------------------------------------------------------------------


def test_two_names_are_exchanged_in_one_step(calls: Any, folder: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    calls.renameat2(folder, "a", "b", calls.EXCHANGE)
    assert [(tmp_path / name).read_text() for name in "ab"] == ["2", "1"]


def test_what_is_exchanged_has_to_be_there(calls: Any, folder: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    with pytest.raises(FileNotFoundError):
        calls.renameat2(folder, "a", "b", calls.EXCHANGE)
    assert os.listdir(tmp_path) == ["a"]


def test_a_rename_that_may_not_replace_replaces_nothing(
    calls: Any, folder: int, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    with pytest.raises(FileExistsError):
        calls.renameat2(folder, "a", "b", calls.NOREPLACE)
    assert [(tmp_path / name).read_text() for name in "ab"] == ["1", "2"]


def test_a_rename_goes_to_another_folder(calls: Any, folder: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "d").mkdir()
    to = os.open(tmp_path / "d", os.O_RDONLY)
    calls.renameat2(folder, "a", "b", calls.NOREPLACE, to)
    os.close(to)
    assert (tmp_path / "d" / "b").read_text() == "1"
    assert not (tmp_path / "a").exists()


def test_a_way_of_renaming_that_the_system_does_not_know_is_reported_as_missing(
    calls: Any, folder: int, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("1")
    with pytest.raises(OSError) as caught:
        calls.renameat2(folder, "a", "b", 1 << 20)
    assert caught.value.errno == errno.ENOSYS


def test_a_nul_shortens_no_name(calls: Any, folder: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    with pytest.raises(OSError) as caught:
        calls.renameat2(folder, "a\0b", "c", calls.NOREPLACE)
    assert caught.value.errno == errno.EINVAL


def test_a_folder_has_its_true_name(calls: Any, tmp_path: Path) -> None:
    (tmp_path / "true").mkdir()
    (tmp_path / "link").symlink_to("true")
    opened = os.open(tmp_path / "link", os.O_RDONLY)
    assert calls.true_name(opened) == os.path.realpath(tmp_path / "true")
    os.close(opened)


def test_a_name_that_is_there_is_spelt_as_it_is(calls: Any, folder: int, tmp_path: Path) -> None:
    for name in ("a", "\u00e9", "Caf\u00e9 \u65e5", "x" * 255):
        (tmp_path / name).write_text("1")
        (tmp_path / f"{name[:200]} link").symlink_to(name)
        assert calls.spelling(folder, name) == name
        assert calls.spelling(folder, f"{name[:200]} link") == f"{name[:200]} link"


def test_a_name_that_leads_to_nothing_is_spelt_as_it_came(calls: Any, folder: int) -> None:
    assert calls.spelling(folder, "gone") == "gone"


def test_when_it_was_made_is_told_of_what_has_one_name(
    calls: Any, folder: int, tmp_path: Path
) -> None:
    # Stamps go in steps of the clock.
    before = time.time_ns() - 20_000_000
    (tmp_path / "made").write_text("a")
    (tmp_path / "made here").mkdir()
    os.utime(tmp_path / "made", (1, 1))
    after = time.time_ns()
    times = [calls.born(folder, "made"), calls.born(folder, "made here")]
    times.append(calls.born(0, str(tmp_path / "made here")))
    if None in times:
        pytest.skip("this file system does not tell it")
    assert all(before <= one <= after for one in times)
    os.link(tmp_path / "made", tmp_path / "also")
    assert [calls.born(folder, name) for name in ("made", "also", "gone")] == [None] * 3


@pytest.mark.parametrize("flag", [0, stat.UF_NODUMP, stat.UF_APPEND, stat.SF_APPEND])
def test_a_folder_that_only_takes_names_is_told_by_its_flags_on_macos(
    folder: int, monkeypatch: pytest.MonkeyPatch, flag: int
) -> None:
    """On Linux `test_atomic` makes such a folder; nobody can give one these flags there."""
    assert not kernel.only_takes(folder)
    monkeypatch.setattr(
        darwin, "os", SimpleNamespace(fstat=lambda _: SimpleNamespace(st_flags=flag))
    )
    assert darwin.only_takes(folder) == (flag in (stat.UF_APPEND, stat.SF_APPEND))


# -- the disk -------------------------------------------------------------------------------------


def test_a_file_and_a_folder_are_put_on_the_disk(calls: Any, folder: int, file: int) -> None:
    for descriptor in (folder, file):
        calls.full_sync(descriptor)
    calls.data_sync(file)
    for pipe in os.pipe():  # which has no place on a disk
        with pytest.raises(OSError):
            calls.full_sync(pipe)
        os.close(pipe)


def test_room_is_taken_for_what_is_written_later(calls: Any, file: int) -> None:
    calls.reserve(file, 4, 1 << 16)
    assert os.fstat(file).st_blocks * 512 >= 1 << 16
    assert os.pread(file, 4, 0) == b"text"


# -- attributes -----------------------------------------------------------------------------------


def test_attributes_are_given_listed_read_and_taken(calls: Any, file: int) -> None:
    values = {"user.one": b"1 \0 of it", "user.\u00e9": b"", "user.long": b"x" * 2_000}
    for name, value in values.items():
        calls.setxattr(file, name, value)
    assert {name: calls.getxattr(file, name) for name in calls.listxattr(file)} == values
    calls.setxattr(file, "user.one", b"2")
    assert calls.getxattr(file, "user.one") == b"2"
    for name in values:
        calls.removexattr(file, name)
    assert calls.listxattr(file) == []


def test_an_attribute_that_is_not_there_is_told_by_the_same_number(calls: Any, file: int) -> None:
    for act in (calls.getxattr, calls.removexattr):
        with pytest.raises(OSError) as caught:
            act(file, "user.none")
        assert caught.value.errno == errno.ENODATA


def test_a_file_without_an_access_list_gives_none(calls: Any, file: int, tmp_path: Path) -> None:
    other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT, 0o640)
    assert calls.copy_list(file, other)
    assert os.fstat(other).st_mode & 0o777 == 0o640
    os.close(other)


# -- locks, the other end, notices ----------------------------------------------------------------


def test_a_lock_of_some_bytes_keeps_others_out(calls: Any, file: int, tmp_path: Path) -> None:
    ask = getattr(calls, "fcntl", fcntl.fcntl)
    other = os.open(tmp_path / "file", os.O_RDWR)
    ask(file, calls.SET_LOCK, calls.lock_request(fcntl.F_WRLCK, 7, 2))
    ask(other, calls.SET_LOCK, calls.lock_request(fcntl.F_WRLCK, 9, 1))
    with pytest.raises((BlockingIOError, PermissionError)):
        ask(other, calls.SET_LOCK, calls.lock_request(fcntl.F_WRLCK, 8, 1))
    ask(file, calls.SET_LOCK, calls.lock_request(fcntl.F_UNLCK, 0, 0))
    ask(other, calls.WAIT_LOCK, calls.lock_request(fcntl.F_WRLCK, 8, 1))
    os.close(other)


def test_the_holder_of_a_lock_is_named(calls: Any, file: int, tmp_path: Path) -> None:
    ask = getattr(calls, "fcntl", fcntl.fcntl)
    ready, told = os.pipe()
    ended, end = os.pipe()
    if not (child := os.fork()):
        os.close(end)
        theirs = os.open(tmp_path / "file", os.O_RDWR)
        fcntl.lockf(theirs, fcntl.LOCK_EX, 1, 3)
        os.write(told, b"1")
        os.read(ended, 1)
        os._exit(0)
    os.read(ready, 1)
    found = ask(file, fcntl.F_GETLK, calls.lock_request(fcntl.F_WRLCK, 0, 8))
    assert calls.lock_holder(found) == (fcntl.F_WRLCK, child)
    os.close(end)
    os.waitpid(child, 0)
    for one in (ready, told, ended):
        os.close(one)


class OtherEnd:
    """A connection as macOS has it: `struct xucred` and a number, at the level of local sockets."""

    def getsockopt(self, level: int, option: int, size: int = 0) -> int | bytes:
        if (level, option, size) == (0, 1, 76):
            return b"".join(one.to_bytes(4, sys.byteorder) for one in (0, 501, 1, *range(16)))
        assert (level, option, size) == (0, 2, 0)
        return 4_711


def test_the_other_end_of_a_socket_says_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = socket.socketpair()
    with here, there:
        process, user = peer(here)
        assert user in (os.geteuid(), None)
        assert process in (os.getpid(), 0)
        monkeypatch.delattr(client.socket, "SO_PEERCRED", raising=False)
        if sys.platform != "darwin":
            assert peer(here) == (0, None)
    assert peer(OtherEnd()) == (4_711, 501)  # type: ignore[arg-type]


def test_what_is_changed_after_a_moment_has_a_later_stamp(tmp_path: Path) -> None:
    for number in range(50):
        begun = moment()
        (tmp_path / f"{number}").write_text("1")
        assert (tmp_path / f"{number}").stat().st_mtime_ns > begun


def test_a_change_is_noticed_with_notices_or_by_looking(tmp_path: Path) -> None:
    with Root.open(tmp_path) as root:
        notices = InotifyWatcher.open(root)
        assert (notices is None) == (sys.platform != "linux")
        if notices is not None:
            notices.close()
        looked = [scan(root, skip=(), most=9, cancelled=lambda: False)]
        (tmp_path / "new").write_text("1")
        looked.append(scan(root, skip=(), most=9, cancelled=lambda: False))
        assert looked[0] != looked[1]
