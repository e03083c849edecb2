"""Files that are written in place, and what an entry has besides bytes: what the system refuses, and what others do meanwhile."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filepact.domain.attributes import ACCESS_LIST, Attributes
from filepact.domain.document import Revision
from filepact.errors import FilepactError, OutcomeUnknownError, StaleFileError, WriteFailedError
from filepact.fs import attributes, in_place
from filepact.fs.atomic import StagedFile
from filepact.fs.attributes import dress, file_id, folder_state, not_kept, read_attributes
from filepact.fs.in_place import check_writable, is_torn, names_of, same_owner, write_over
from filepact.fs.kernel import getxattr, setxattr
from tests.needs import PROCESSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


OLD, NEW = b"old\n" * 300, b"new text\n" * 300
BEFORE, AFTER = Revision.of(OLD, 0o644), Revision.of(NEW, 0o644)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def fails(number: int) -> Callable[..., None]:
    def refused(*_words: object, **_options: object) -> None:
        raise OSError(number, os.strerror(number))

    return refused


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    """A folder with a file, and the text beside it that is to be in the file."""
    (tmp_path / "a").write_bytes(OLD)
    (tmp_path / "a").chmod(0o644)
    (tmp_path / "new").write_bytes(NEW)
    with opened(tmp_path) as descriptor:
        yield descriptor


def written(folder: int, after: Revision = AFTER) -> tuple[str, ...]:
    return write_over(folder, "a", NEW, expected=BEFORE, after=after, shown="a")


def test_a_text_is_written_over_another_in_the_same_file(folder: int, tmp_path: Path) -> None:
    inode = (tmp_path / "a").stat().st_ino
    assert written(folder) == ()
    assert ((tmp_path / "a").read_bytes(), (tmp_path / "a").stat().st_ino) == (NEW, inode)
    # By another of its names it has the new text already.
    assert written(folder) == ()


@pytest.mark.parametrize(
    ("meanwhile", "code"),
    [
        (lambda top: (top / "a").unlink(), "STALE_FILE"),
        (lambda top: (top / "a").write_bytes(b"theirs\n"), "STALE_FILE"),
        (lambda top: (top / "a").chmod(0o600), "STALE_FILE"),
        (lambda top: ((top / "a").unlink(), os.mkfifo(top / "a")), "STALE_FILE"),
        (lambda top: ((top / "a").unlink(), (top / "a").mkdir()), "WRITE_ERROR"),
    ],
    ids=["gone", "another text", "another mode", "a pipe", "a folder"],
)
def test_what_others_have_done_is_left_as_it_is(
    folder: int, tmp_path: Path, meanwhile: Callable[[Path], object], code: str
) -> None:
    meanwhile(tmp_path)
    with pytest.raises(FilepactError) as caught:
        written(folder)
    assert caught.value.code == code
    assert not (tmp_path / "a").is_file() or (tmp_path / "a").read_bytes() != NEW


def test_without_room_the_old_text_stays(
    folder: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_place, "reserve", fails(errno.ENOSPC))
    with pytest.raises(WriteFailedError) as caught:
        written(folder)
    assert not isinstance(caught.value, OutcomeUnknownError)
    assert (tmp_path / "a").read_bytes() == OLD


def test_a_disk_that_takes_neither_text_has_recovery_bring_back_the_old_one(
    folder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_place.os, "pwrite", fails(errno.EIO))
    with pytest.raises(OutcomeUnknownError):
        written(folder)


@pytest.mark.parametrize(
    ("now", "torn"),
    [
        (NEW[:1024] + OLD[1024:], True),
        (OLD, True),
        (NEW, True),
        (NEW[:700] + OLD[700:], False),  # a sector reaches the disk as a whole
        (b"something else", False),
    ],
)
def test_half_of_a_text_is_told_from_somebody_elses(now: bytes, torn: bool) -> None:
    assert is_torn(now, OLD, NEW) is torn


def test_whoever_may_not_write_to_a_file_is_told_before(folder: int, tmp_path: Path) -> None:
    protected = Revision.of(OLD, 0o444)
    with pytest.raises(WriteFailedError):
        check_writable(folder, "a", expected=protected, after=Revision.of(NEW, 0o444), shown="a")
    # Of its rights alone, and where the change gives back the right to write, it may.
    check_writable(folder, "a", expected=protected, after=Revision.of(OLD, 0o644), shown="a")
    (tmp_path / "a").chmod(0o444)
    check_writable(folder, "a", expected=protected, after=AFTER, shown="a")
    check_writable(folder, "gone", expected=BEFORE, after=AFTER, shown="gone")


@pytest.mark.parametrize("number", [errno.EACCES, errno.ETXTBSY, errno.EROFS])
def test_what_the_system_says_of_a_file_that_may_not_be_opened_is_told(
    folder: int, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(in_place.os, "access", lambda *_words, **_options: False)
    monkeypatch.setattr(in_place.os, "open", fails(number))
    with pytest.raises(WriteFailedError):
        check_writable(folder, "a", expected=BEFORE, after=AFTER, shown="a")


def test_an_owner_that_is_changed_or_not_there_stops_nothing(folder: int, tmp_path: Path) -> None:
    mine = Attributes(os.geteuid(), os.getegid())
    other = Revision(AFTER.content, AFTER.mode, Attributes(4321, 4321))
    known = Revision(BEFORE.content, BEFORE.mode, mine)
    new = StagedFile((tmp_path / "new").stat(), AFTER.content)
    for was in (known, known.bare):
        assert same_owner(folder, "a", new, was, known)
        assert same_owner(folder, "a", new, was, other)
        assert same_owner(folder, "a", new, was, known.bare)
    (tmp_path / "a").unlink()
    assert same_owner(folder, "a", new, known.bare, known.bare)
    assert not same_owner(folder, "a", new, other, other.bare)


def test_all_names_of_a_file_are_found_and_no_folder_is_looked_at_twice(tmp_path: Path) -> None:
    for name in ("a", "deep/er/b", "deep/c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if name == "a":
            (tmp_path / name).write_text("x")
        else:
            os.link(tmp_path / "a", tmp_path / name)
    looked: list[str] = []

    def open_below(path: str) -> int:
        looked.append(path)
        return os.open(tmp_path / path, os.O_RDONLY | os.O_DIRECTORY)

    found = names_of(file_id((tmp_path / "a").stat()), open_below, near="deep/c", most=3)
    assert sorted(found) == ["a", "deep/c", "deep/er/b"]
    assert len(looked) == len(set(looked))
    alone = tmp_path / "alone"
    alone.write_text("y")
    assert names_of(file_id(alone.stat()), open_below, near="alone", most=2) == []


# -- what an entry has besides bytes -------------------------------------------------------------


def test_set_id_bits_of_nobody_knows_whom_are_not_given(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    with opened(tmp_path / "a") as descriptor:
        assert dress(descriptor, 0o4755, None) != ()
        assert os.fstat(descriptor).st_mode & 0o7777 == 0o755
        assert dress(descriptor, 0o640, None) == ()


def test_lists_that_nobody_may_read_close_a_file_to_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("x")
    with opened(tmp_path / "a") as descriptor:
        with monkeypatch.context() as patch:
            patch.setattr(attributes, "listxattr", fails(errno.EACCES))
            found = read_attributes(descriptor, os.fstat(descriptor))
            assert ACCESS_LIST in found.omitted
            assert dress(descriptor, 0o664, found) != ()
        assert os.fstat(descriptor).st_mode & 0o777 == 0o644
        with monkeypatch.context() as patch:
            patch.setattr(attributes, "listxattr", lambda _file: [ACCESS_LIST, "user.a"])
            patch.setattr(attributes, "getxattr", fails(errno.EACCES))
            assert ACCESS_LIST in read_attributes(descriptor, os.fstat(descriptor)).omitted


def test_an_attribute_that_cannot_be_given_or_taken_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("x")
    setxattr(str(tmp_path / "a"), "user.there", b"1")
    mine = Attributes(os.geteuid(), os.getegid(), (("user.wanted", b"2"),))
    with opened(tmp_path / "a") as descriptor:
        monkeypatch.setattr(attributes, "removexattr", fails(errno.EPERM))
        monkeypatch.setattr(attributes, "setxattr", fails(errno.EPERM))
        told = dress(descriptor, 0o644, mine)
    assert len([one for one in told if "user.there" in one or "user.wanted" in one]) == 2


def test_of_a_folder_that_may_not_be_opened_the_mode_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d").mkdir(mode=0o700)
    (tmp_path / "f").write_text("x")
    with opened(tmp_path) as folder:
        assert folder_state(folder, "f") is None
        assert folder_state(folder, "gone") is None
        monkeypatch.setattr(attributes.os, "open", fails(errno.EACCES))
        assert folder_state(folder, "d") == Revision.folder(0o700)
        assert folder_state(folder, "f") is None


def test_a_file_in_another_state_is_stale(folder: int) -> None:
    with pytest.raises(StaleFileError):
        write_over(folder, "a", b"x", expected=AFTER, after=Revision.of(b"x", 0o644), shown="a")


def test_attributes_over_the_bound_are_named_and_those_that_are_there_stay(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    setxattr(str(tmp_path / "a"), "user.big", b"12345")
    with opened(tmp_path / "a") as descriptor:
        status = os.fstat(descriptor)
        cut = read_attributes(descriptor, status, limit=2)
        assert (cut.extended, cut.omitted) == ((), ("user.big",))
        whole = read_attributes(descriptor, status)
        assert dress(descriptor, 0o644, whole) == ()
    assert getxattr(str(tmp_path / "a"), "user.big") == b"12345"


def test_what_a_file_system_does_not_keep_is_known_without_a_trial(tmp_path: Path) -> None:
    owner = ("the owner",) if os.geteuid() else ()
    # Of macOS' lists nobody has a copy: they go from file to file.
    lists = () if hasattr(os, "getxattr") else ("access lists",)
    with opened(tmp_path) as folder:
        assert not_kept(folder) == (*lists, *owner)
    assert not [*tmp_path.iterdir()]


@PROCESSES
def test_what_a_file_system_of_the_kernel_does_not_keep_is_known() -> None:
    owner = ("the owner",) if os.geteuid() else ()
    with opened(Path("/proc/self")) as folder:
        assert not_kept(folder) == ("extended attributes", "access lists", *owner)
        held = os.open(".", os.O_PATH, dir_fd=folder)  # as a root has it
        assert not_kept(held) == ("extended attributes", "access lists", *owner)
        os.close(held)


@pytest.mark.parametrize(
    ("sizes", "oldest", "left"),
    [
        ((30, 30, 30), None, 3),
        # Too many bytes, or too many files: the newest of them stay, with room for more.
        ((30, 30, 30, 30), None, 2),
        ((0, 0, 0, 0, 0), None, 3),
        # With a time all are looked at.
        ((30, 30), "before", 2),
        ((30, 30), "after", 0),
    ],
)
def test_removed_files_that_are_too_many_or_too_old_are_given_up(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sizes: tuple[int, ...],
    oldest: str | None,
    left: int,
) -> None:
    monkeypatch.setattr(in_place, "_MOST_KEPT", 100)
    monkeypatch.setattr(in_place, "_MOST_FILES", 4)
    folder = tmp_path / in_place._REMOVED
    folder.mkdir()
    newest = 0
    for number, size in enumerate(sizes):
        one = folder / f"{number}-x-{size:x}"
        one.write_bytes(bytes(size))
        while one.stat().st_ctime_ns <= newest:
            one.chmod(0o644)
        newest = one.stat().st_ctime_ns
    time = {None: None, "before": newest / 1e9 - 60, "after": newest / 1e9 + 60}[oldest]
    in_place.tidy_removed(str(tmp_path), time)
    kept = [f"{number}-x-{size:x}" for number, size in enumerate(sizes)][len(sizes) - left :]
    assert sorted(one.name for one in folder.iterdir()) == kept


def test_a_removed_file_that_came_back_is_given_up(tmp_path: Path) -> None:
    folder = tmp_path / in_place._REMOVED
    folder.mkdir()
    for name in ("0-x-3", "1-x-3"):
        (folder / name).write_bytes(b"one")
    (tmp_path / "again").hardlink_to(folder / "0-x-3")
    in_place.tidy_removed(str(tmp_path), 0.0)
    assert [one.name for one in folder.iterdir()] == ["1-x-3"]
