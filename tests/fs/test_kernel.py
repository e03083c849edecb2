"""Calls of the kernel that the standard library does not have, and systems that lack them."""

from __future__ import annotations

import os
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


@CAPABILITIES
def test_a_call_that_the_system_does_not_have_is_refused() -> None:
    with pytest.raises(OSError, match="no such call here"):
        kernel.checked(None)
