"""What is opened for reading is a regular file, whatever took its place at the last moment."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from filepact.errors import NotFoundError, PathBlockedError
from filepact.fs import read as reading
from filepact.fs.path_form import check_form
from filepact.fs.root import Root

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize(
    ("name", "code"),
    [("link", errno.ELOOP), ("pipe", errno.EINVAL), ("folder", errno.EINVAL)],
)
def test_nothing_but_a_regular_file_is_opened_by_name(
    folder: int, monkeypatch: pytest.MonkeyPatch, hold: bool, name: str, code: int
) -> None:
    if not hold:
        monkeypatch.setattr(reading, "HOLD", 0)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with pytest.raises(OSError) as caught:
        reading.open_named(folder, name)
    assert caught.value.errno == code
    if before:
        assert len(os.listdir("/proc/self/fd")) == before, "nothing stays open"
    descriptor = reading.open_named(folder, "file")
    assert os.read(descriptor, 9) == b"x"
    os.close(descriptor)


@pytest.mark.parametrize("resolver", ["auto", "walk"])
@pytest.mark.parametrize("path", ["missing/..", "folder/missing/../x", "missing/../file"])
def test_a_step_up_from_what_is_missing_leads_nowhere(
    folder: int, tmp_path: Path, resolver: str, path: str
) -> None:
    with Root.open(tmp_path, resolver=resolver) as root, pytest.raises(NotFoundError):
        root.place(path)


@pytest.mark.parametrize("path", ["\\\\server\\share\\x", "\\\\?\\C:\\x", "//./pipe/x"])
def test_a_network_or_device_path_is_called_so(path: str) -> None:
    with pytest.raises(PathBlockedError, match="network"):
        check_form(path, system="windows")
