"""Inotify and the calls beneath them: where the system has none, or no more, that is told."""

from __future__ import annotations

import errno
import os
import resource
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from filepact.fs import inotify, kernel
from filepact.fs.inotify import InotifyWatcher
from filepact.fs.kernel import file_system, inotify_add_watch, inotify_init, mount_of
from filepact.fs.root import Root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fs.conftest import Grounds

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the calls are those of Linux")

NFS = 0x6969
ONLY_FOLDERS = 0x0100_0000
MODIFY = 0x2


@contextmanager
def no_more_descriptors() -> Iterator[None]:
    """As if this process had as many open files as it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def notices(grounds: Grounds) -> Iterator[InotifyWatcher]:
    with Root.open(grounds.root) as root:
        made = InotifyWatcher.open(root)
        if made is None:
            pytest.skip("no notices on this file system")
        yield made
        made.close()


# -- the calls --------------------------------------------------------------------------------


def test_a_system_without_these_calls_says_so(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    fd = os.open(grounds.root, os.O_RDONLY)
    try:
        assert file_system(fd) is not None
        monkeypatch.setattr("sys.platform", "darwin")
        assert mount_of(fd) is None
        assert file_system(fd) is None
        for act in (inotify_init, lambda: inotify_add_watch(fd, fd, MODIFY)):
            with pytest.raises(OSError) as caught:
                act()
            assert caught.value.errno == errno.ENOSYS
    finally:
        os.close(fd)


def test_a_c_library_without_a_function_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernel.library_call("getpid")() == os.getpid()
    assert kernel.library_call("filepact_has_no_such_function") is None
    monkeypatch.setattr(kernel, "_libc", None)
    assert kernel.library_call("getpid") is None


def test_of_a_file_that_is_closed_the_system_tells_nothing(grounds: Grounds) -> None:
    fd = os.open(grounds.root, os.O_RDONLY)
    os.close(fd)
    assert mount_of(fd) is None
    assert file_system(fd) is None


def test_what_the_system_refuses_to_notice_is_told_with_its_reason(grounds: Grounds) -> None:
    with no_more_descriptors(), pytest.raises(OSError) as caught:
        inotify_init()
    assert caught.value.errno == errno.EMFILE
    read, file = inotify_init(), os.open(grounds.root / "README.md", os.O_RDONLY)
    try:
        with pytest.raises(OSError) as caught:
            inotify_add_watch(read, file, MODIFY | ONLY_FOLDERS)
        assert caught.value.errno == errno.ENOTDIR
    finally:
        os.close(read)
        os.close(file)


# -- notices ----------------------------------------------------------------------------------


def test_where_other_machines_write_there_are_no_notices(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inotify, "file_system", lambda _descriptor: NFS)
    with Root.open(grounds.root) as root:
        assert InotifyWatcher.open(root) is None


def test_a_folder_of_another_machine_below_a_root_is_not_watched(
    grounds: Grounds, notices: InotifyWatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert notices.watch(["."])
    monkeypatch.setattr(inotify, "file_system", lambda _descriptor: NFS)
    with pytest.raises(OSError):
        notices.watch([".", "src"])
    monkeypatch.undo()
    assert notices.watch([".", "src"]), "it was not taken for watched"
    assert not notices.watch([".", "src"])


def test_without_a_free_descriptor_there_are_no_notices(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted() -> int:
        with no_more_descriptors():
            return inotify_init()

    monkeypatch.setattr(inotify, "inotify_init", exhausted)
    before = len(os.listdir("/proc/self/fd"))
    with Root.open(grounds.root) as root:
        assert InotifyWatcher.open(root) is None
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_root_that_is_gone_gives_no_notices(grounds: Grounds) -> None:
    with Root.open(grounds.root / "src") as root:
        (grounds.root / "src").rename(grounds.root / "moved")
        assert InotifyWatcher.open(root) is None


def test_a_folder_that_went_meanwhile_is_told_by_the_one_above(
    grounds: Grounds, notices: InotifyWatcher
) -> None:
    notices.watch(["."])
    (grounds.root / "new").mkdir()
    (grounds.root / "new").rmdir()
    assert notices.watch(["new"]), "what was in it may have changed"
    assert notices.drain().folders
    (grounds.root / "new").mkdir()
    notices.watch(["new"])
    notices.drain()
    (grounds.root / "new" / "a.txt").touch()
    assert notices.drain().added == {"new/a.txt"}, "it is watched once it is there"


def test_closed_notices_tell_nothing_and_watch_nothing(
    grounds: Grounds, notices: InotifyWatcher
) -> None:
    notices.watch(["."])
    (grounds.root / "a.txt").touch()
    notices.close()
    notices.close()
    assert notices.drain().names == frozenset()
    assert notices.watch(["src"])
    assert notices.watch(["src"]), "nobody may rely on it"


@pytest.mark.parametrize(
    ("shares", "covered"), [(0, True), (0.5, True), (1, True), (1.5, True), (2, True), (2.5, False)]
)
def test_half_of_what_a_system_watches_is_for_an_index(
    monkeypatch: pytest.MonkeyPatch, shares: float, *, covered: bool
) -> None:
    monkeypatch.setattr(inotify, "most_watches", lambda: 5 * inotify._AT_A_TIME - 1)
    limit = inotify.WatcherLimit(None)
    for _ in range(2):
        assert limit.covers(int(shares * inotify._AT_A_TIME)) is covered
        limit.close()
