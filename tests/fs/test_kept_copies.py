"""Copies of large files: on one file system and across two, with and without room."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filepact.errors import StaleFileError, WriteFailedError
from filepact.fs import kept_copies
from filepact.fs.atomic import LARGEST
from filepact.fs.kept_copies import KeptCopies, find_aside, put_back
from filepact.fs.watch import stamp_at
from tests.needs import UNNAMED_FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.fs.root import Root

SIZE = 1_000_000
MEMORY = Path("/dev/shm")


@pytest.fixture(params=["same", "other"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where copies are: on the file system of the root, or on another."""
    if request.param == "same":
        yield str(tmp_path)
        return
    if not MEMORY.is_dir():
        pytest.skip("no file system in memory")
    with tempfile.TemporaryDirectory(dir=MEMORY) as other:
        yield other


@pytest.fixture
def file(root: Root) -> Path:
    made = Path(root.path) / "big"
    with made.open("wb") as stream:
        stream.truncate(SIZE - 4)
        stream.seek(0, os.SEEK_END)
        stream.write(b"end\n")
    return made


def keep(copies: KeptCopies, root: Root, name: str = "big", **other: bool | float) -> str:
    stamp = stamp_at(root, name)
    assert stamp is not None
    given = {"in_place": True, "racy": False, "until": time.monotonic() + 60} | other
    return copies.keep(name, root, name, stamp, **given)


def overwrite(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.write(b"other")


def replace(file: Path) -> None:
    file.with_name("new").write_text("other")
    file.with_name("new").replace(file)


@pytest.mark.parametrize("becomes", [Path.unlink, replace, overwrite])
@pytest.mark.parametrize("room", [True, False], ids=["room", "no room"])
def test_what_becomes_of_a_file_that_is_kept(
    root: Root, folder: str, file: Path, becomes: Callable[[Path], None], room: bool
) -> None:
    copies = KeptCopies(folder, free=0 if room else 1 << 62)
    held, stamp, status = file.read_bytes(), stamp_at(root, "big"), file.stat()
    assert stamp is not None
    names = sorted(os.listdir(folder))
    assert keep(copies, root) == ("copy" if room else "open")
    assert stamp_at(root, "big") == stamp  # Nobody takes it for changed.
    assert sorted(os.listdir(folder)) == names  # What stops this process leaves nothing behind.
    becomes(file)
    found = copies.read("big", stamp)
    if becomes is overwrite and not room:
        assert found is None
    else:
        assert found is not None
        assert (found.data, found.mode, found.inode) == (held, 0o777 & status.st_mode, stamp.inode)
        assert found.attributes is not None
        assert found.attributes.modified == stamp.modified
    assert copies.read("big", stamp._replace(changed=0)) is None
    copies.release()
    assert copies.read("big", stamp) is None


def test_a_file_that_is_only_removed_is_not_copied_where_that_takes_room(
    root: Root, folder: str, file: Path
) -> None:
    copies = KeptCopies(folder)
    first = keep(copies, root, in_place=False)
    assert first in ("open", "copy")  # The latter where blocks are shared.
    assert keep(copies, root) == "copy"  # Another call may overwrite it.
    assert keep(copies, root, in_place=False) == "copy"
    copies.release({"big"})
    assert copies.is_kept("other", stamp_at(root, "big"))
    copies.release()
    assert not copies.is_kept("big", stamp_at(root, "big"))


def test_what_cannot_be_kept(root: Root, tmp_path: Path, file: Path) -> None:
    stamp = stamp_at(root, "big")
    assert stamp is not None
    assert keep(KeptCopies(""), root) == ""
    assert keep(KeptCopies(str(tmp_path), most=SIZE - 1), root) == ""
    full = KeptCopies(str(tmp_path), free=1 << 62)
    assert keep(full, root, racy=True) == ""  # An open file could change and keep its stamp.
    late = KeptCopies(str(tmp_path))
    assert keep(late, root, until=0.0) in ("open", "copy")
    late.release()
    assert late.keep("big", root, "big", stamp._replace(changed=1), **WAY) == ""
    assert late.keep("gone", root, "gone", stamp, **WAY) == ""
    os.truncate(file, LARGEST + 1)
    assert keep(late, root) == ""
    assert not late._copies


WAY = {"in_place": True, "racy": False, "until": float("inf")}


def test_blocks_are_shared_where_the_file_system_can(
    root: Root, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a call of the system that does what such a file system does, no room is asked for."""
    asked: list[tuple[int, int]] = []

    def clone(source: int, copy: int) -> bool:
        asked.append((source, copy))
        os.pwrite(copy, file.read_bytes(), 0)
        return True

    monkeypatch.setattr(kept_copies, "_cloned", clone)
    copies = KeptCopies(str(tmp_path), free=1 << 62)
    stamp = stamp_at(root, "big")
    assert stamp is not None
    assert keep(copies, root, racy=True) == "copy"
    assert asked
    overwrite(file)
    assert copies.read("big", stamp) is not None
    copies.release()


# -- files that are too large for the journal --------------------------------------------------------


@pytest.fixture(params=["held", "by name"])
def large(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are large soon; they get their other name as on Linux, and as on macOS."""
    monkeypatch.setattr(kept_copies, "LARGEST", 1_000)
    if request.param == "by name":
        monkeypatch.setattr(kept_copies, "has_proc", lambda: False)
        monkeypatch.setattr(kept_copies, "_cloned", lambda *_: False)


def set_aside(copies: KeptCopies, root: Root, file: Path) -> str:
    """Keep a large file, and lose it; where it is then."""
    stamp = stamp_at(root, "big")
    assert stamp is not None
    assert keep(copies, root, in_place=False) in ("open", "copy")
    file.unlink()
    assert copies.is_aside(stamp)
    copies.release()
    place, inode = find_aside(os.path.dirname(copies._folder), stamp.set_aside)
    assert inode
    return place


@pytest.mark.usefixtures("large")
def test_a_large_file_that_is_lost_is_put_back(root: Root, tmp_path: Path, file: Path) -> None:
    (tmp_path / "contents").mkdir()
    copies = KeptCopies(str(tmp_path / "contents"), "mine")
    held, inode = file.read_bytes(), file.stat().st_ino
    place = set_aside(copies, root, file)
    put_back(place, root, "deep/big", now=None, other="", token="t")
    made = Path(root.path) / "deep/big"
    assert (made.read_bytes(), made.stat().st_nlink) == (held, 1)
    assert made.stat().st_ino == inode or not os.path.exists(place)
    assert find_aside(str(tmp_path), None) == ("", 0)


@pytest.mark.usefixtures("large")
def test_a_large_file_that_is_overwritten_in_place_is_put_back(
    root: Root, tmp_path: Path, file: Path
) -> None:
    (tmp_path / "contents").mkdir()
    copies = KeptCopies(str(tmp_path / "contents"), "mine", free=0)
    held, stamp = file.read_bytes(), stamp_at(root, "big")
    assert stamp is not None
    assert keep(copies, root) == "copy"
    overwrite(file)
    assert copies.is_aside(stamp)
    copies.release()
    place, _ = find_aside(str(tmp_path), stamp.set_aside)
    put_back(place, root, "deep/big", now=None, other="", token="t")
    made = Path(root.path) / "deep/big"
    assert (made.read_bytes(), made.stat().st_mtime_ns) == (held, stamp.modified)


def too_slow(_source: int, copy: int, size: int, _until: float) -> bool:
    os.ftruncate(copy, size)
    return False


def no_room(*_: object) -> bool:
    raise OSError(errno.ENOSPC, "no space left")


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("fill", "way"),
    [(too_slow, "open"), (no_room, "open"), ("changed", "")],
    ids=["too slow", "no room", "changed"],
)
def test_a_copy_that_is_not_whole_is_not_set_aside(
    *, root: Root, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch, fill: Any, way: str
) -> None:
    filled = kept_copies._filled

    def changed(*given: Any) -> bool:
        overwrite(file)
        return filled(*given)

    (tmp_path / "contents").mkdir()
    copies = KeptCopies(str(tmp_path / "contents"), "mine", free=0)
    monkeypatch.setattr(kept_copies, "_cloned", lambda *_: False)
    monkeypatch.setattr(kept_copies, "_filled", changed if fill == "changed" else fill)
    assert keep(copies, root) == way
    copies.release()
    assert [*tmp_path.glob("kept/mine/*")] == []


@pytest.mark.usefixtures("large")
def test_a_large_file_is_not_put_in_the_place_of_another(
    root: Root, tmp_path: Path, file: Path
) -> None:
    (tmp_path / "contents").mkdir()
    copies = KeptCopies(str(tmp_path / "contents"), "mine")
    place = set_aside(copies, root, file)
    file.write_text("a person's\n")
    with pytest.raises(StaleFileError):
        put_back(place, root, "big", now=None, other="", token="t")
    assert file.read_text() == "a person's\n"
    assert os.path.exists(place)
    with pytest.raises(WriteFailedError):
        put_back(place, root, "x" * 300, now=None, other="", token="t")
    assert os.path.exists(place)


@pytest.mark.usefixtures("large")
def test_what_a_process_that_was_killed_has_left_is_given_up_while_its_file_is_there(
    root: Root, tmp_path: Path, file: Path
) -> None:
    (tmp_path / "contents").mkdir()
    aside = tmp_path / "kept" / "mine"
    aside.mkdir(parents=True)
    other = Path(root.path) / "other"
    other.write_text("x" * 2_000)
    (aside / "left").hardlink_to(other)
    (aside / f"gone{kept_copies._LOST}").write_text("the only copy")
    copies = KeptCopies(str(tmp_path / "contents"), "mine")
    assert keep(copies, root, in_place=False)
    assert not (aside / "left").exists()
    assert (aside / f"gone{kept_copies._LOST}").exists()
    copies.release()
    stamp = stamp_at(root, "big")
    assert stamp is not None
    assert not copies.is_aside(stamp)
    assert not KeptCopies(str(tmp_path / "contents")).is_aside(stamp)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("left", ["whole", "half", "of a lost file"])
def test_a_copy_that_a_killed_process_has_left_keeps_no_file_from_being_kept(
    root: Root, tmp_path: Path, file: Path, left: str
) -> None:
    (tmp_path / "contents").mkdir()
    held, stamp = file.read_bytes(), stamp_at(root, "big")
    assert stamp is not None
    killed = KeptCopies(str(tmp_path / "contents"), "mine", free=0)
    assert keep(killed, root) == "copy"
    for one in killed._copies.values():
        os.close(one.descriptor)
    killed._copies.clear()
    (copy,) = (tmp_path / "kept" / "mine").iterdir()
    if left == "half":
        os.truncate(copy, SIZE // 2)
    if left == "of a lost file":
        file.unlink()
        assert KeptCopies(str(tmp_path / "contents"), "mine").is_aside(stamp)
        return
    copies = KeptCopies(str(tmp_path / "contents"), "mine", free=0)
    assert keep(copies, root) == "copy"
    overwrite(file)
    assert copies.is_aside(stamp)
    copies.release()
    place, _ = find_aside(str(tmp_path), stamp.set_aside)
    put_back(place, root, "deep/big", now=None, other="", token="t")
    assert (Path(root.path) / "deep/big").read_bytes() == held


@pytest.mark.usefixtures("large")
def test_a_large_file_whose_name_leads_to_another_by_now_is_not_kept(
    root: Root, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "contents").mkdir()
    copies = KeptCopies(str(tmp_path / "contents"), "mine")
    monkeypatch.setattr(kept_copies, "has_proc", lambda: False)
    monkeypatch.setattr(kept_copies, "_cloned", lambda *_: False)
    real = os.link

    def late(*args: str, **more: int) -> None:
        file.rename(file.with_name("older"))
        file.write_text("another")
        real(*args, **more)

    monkeypatch.setattr(os, "link", late)
    assert keep(copies, root, in_place=False) == ""
    assert [*(tmp_path / "kept" / "mine").iterdir()] == []


@UNNAMED_FILES
def test_without_files_that_have_no_name_a_copy_is_made_all_the_same(
    root: Root, tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def refused(path: str | bytes | int, flags: int, *more: int, **others: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "no files without a name here")
        return real(path, flags, *more, **others)

    monkeypatch.setattr(os, "open", refused)
    copies = KeptCopies(str(tmp_path), free=0)
    held, stamp = file.read_bytes(), stamp_at(root, "big")
    assert stamp is not None
    assert keep(copies, root) == "copy"
    found = copies.read("big", stamp)
    assert found is not None
    assert found.data == held
    copies.release()
