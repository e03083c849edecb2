"""Calls of the kernel that the standard library does not have, and systems that lack them."""

from __future__ import annotations

import ctypes
import errno
import os
from functools import partial
from typing import TYPE_CHECKING

import pytest

from filepact.fs import kernel
from filepact.fs.kernel import FileSync
from tests.needs import CAPABILITIES

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = os.uname().machine
NO_SUCH_CALL = 9_999


@pytest.mark.parametrize("numbers", [{}, {MACHINE: (NO_SUCH_CALL,) * 4}])
def test_where_the_system_cannot_sync_meanwhile_it_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: dict[str, tuple[int, ...]]
) -> None:
    monkeypatch.setattr(kernel, "_ASYNCHRONOUS", numbers)
    disk = FileSync()
    with (tmp_path / "a").open("wb") as file:
        assert [disk.begin(file.fileno()) for _ in range(2)] == [False, False]
    disk.wait()
    disk.close()


@pytest.fixture
def disk(tmp_path: Path) -> FileSync:
    found = FileSync()
    with (tmp_path / "probe").open("wb") as file:
        if not found.begin(file.fileno()):
            pytest.skip("the system cannot sync meanwhile")
        found.wait()
    return found


def test_what_cannot_be_synchronised_is_said_at_once_and_nothing_is_waited_for(
    disk: FileSync,
) -> None:
    assert not disk.begin(-1)
    disk.wait()
    disk.close()


def test_an_end_that_cannot_be_asked_for_is_an_error(
    tmp_path: Path, disk: FileSync, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "a").open("wb") as file:
        assert disk.begin(file.fileno())
        with monkeypatch.context() as patched:
            assert disk._calls is not None
            patched.setattr(disk, "_calls", (*disk._calls[:3], NO_SUCH_CALL))
            with pytest.raises(OSError, match="not implemented"):
                disk.wait()
        disk.wait()
    disk.close()


def test_what_a_disk_refused_is_told_with_its_number(
    tmp_path: Path, disk: FileSync, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_number: int, _context: object, _least: int, _most: int, event: int, _end: None):
        (ctypes.c_int64 * 4).from_address(event)[2] = -errno.EIO
        return 1

    with (tmp_path / "a").open("wb") as file:
        assert disk.begin(file.fileno())
        with monkeypatch.context() as patched:
            patched.setattr(kernel, "_getevents", refused)
            with pytest.raises(OSError) as caught:
                disk.wait()
        assert caught.value.errno == errno.EIO
        disk.wait()
    disk.close()


@pytest.mark.parametrize("there", [True, False])
def test_the_allocator_is_asked_where_it_hears(
    monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    asked: list[tuple[object, ...]] = []

    def ask(*words: object) -> None:
        asked.append(words)

    for name in ("_mallopt", "_malloc_trim"):
        monkeypatch.setattr(kernel, name, partial(ask, name) if there else None)
    kernel.use_few_arenas()
    kernel.give_memory_back()
    wanted = [("_mallopt", kernel._ARENAS, 2), ("_malloc_trim", 0)]
    assert asked == (wanted if there else [])


@CAPABILITIES
def test_a_call_that_the_system_does_not_have_is_refused() -> None:
    with pytest.raises(OSError, match="no such call here"):
        kernel.checked(None)
