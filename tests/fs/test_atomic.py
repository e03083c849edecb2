"""Replacing, creating and removing a file: what is kept, what is refused, what others save."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pytest

from filepact.domain.attributes import Attributes
from filepact.domain.document import LINK, Revision, content_id
from filepact.errors import FilepactError, StaleFileError, WriteFailedError
from filepact.fs import atomic, attributes, read, staged
from filepact.fs.atomic import DisplacedFile
from filepact.fs.in_place import Staging, is_torn
from filepact.fs.kernel import EXCHANGE, getxattr, renameat2, setxattr
from filepact.fs.root import Root
from tests.needs import LEASES, MOUNTS
from tests.unprivileged import unprivileged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.fs.in_place import WriteResult
    from tests.fs.conftest import Grounds

MARK = "c0123456789-0"
TEMP = f".filepact-{MARK}.tmp"
KEPT = f"README.md.filepact-rescued-{MARK}"
OLD = Revision(content_id(b"readme"), 0o644)


@pytest.fixture
def root(grounds: Grounds) -> Iterator[Root]:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with Root.open(grounds.root) as opened:
        yield opened
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before, "a descriptor was left open"


@pytest.fixture(params=["exchange", "rename", "rename without links"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the kernel's exchange, and as on a file system that has none, such as those of memory cards by FUSE."""
    if request.param == "rename without links":
        refuse_second_names(monkeypatch)
    if request.param != "exchange":

        def missing(*_: object) -> None:
            raise OSError(errno.ENOSYS, "no")

        monkeypatch.setattr(atomic, "renameat2", missing)
    return request.param


def refuse_second_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(os, "link", refused)


def replace(root: Root, path: str = "README.md", expected: Revision | None = OLD, **more: int):
    written = root.replace(path, b"new", **{"mode": 0o644, **more}, expected=expected, token=MARK)
    if written.displaced:
        written.displaced.close()
    return written


def remove(root: Root, expected: Revision = OLD):
    written = root.remove("README.md", expected=expected, token=MARK)
    if written.displaced:
        written.displaced.close()
    return written


def names(grounds: Grounds) -> list[str]:
    return sorted(os.listdir(grounds.root))


def before_exchange(monkeypatch: pytest.MonkeyPatch, acts: dict[int, Callable[[], object]]) -> None:
    """Let somebody act right before the n-th of our renames."""
    count = iter(range(1, 100))

    def renamed(parent: int, old: str, new: str, flags: int, to: int = -1) -> None:
        if (act := acts.get(next(count))) is not None:
            act()
        renameat2(parent, old, new, flags, to)

    monkeypatch.setattr(atomic, "renameat2", renamed)


def save(grounds: Grounds, text: str, name: str = "README.md") -> None:
    """What an editor does that saves by renaming."""
    fresh = grounds.root / "editor~"
    fresh.write_text(text)
    fresh.chmod(0o644)
    fresh.rename(grounds.root / name)


# -- plain ------------------------------------------------------------------------------------


def test_a_file_is_replaced_created_and_removed(grounds: Grounds, root: Root, either: str) -> None:
    written = replace(root)
    assert written.outcome == "applied"
    assert bool(written.notes) == (either != "exchange")
    made_now = replace(root, "src/made.py", None, mode=0o755)
    assert made_now.outcome == "applied"
    assert bool(made_now.notes) == (either == "rename without links")
    made = grounds.root / "src/made.py"
    assert (made.read_text(), stat.S_IMODE(made.stat().st_mode)) == ("new", 0o755)
    assert grounds.left()["README.md"] == "new"
    assert remove(root, Revision(content_id(b"new"), 0o644)).outcome == "applied"
    assert names(grounds) == ["docs", "src"]
    assert os.listdir(grounds.root / "docs") == ["guide.md"]


@pytest.mark.parametrize("size", [0, 1, (1 << 20) + 1])
def test_all_bytes_are_written_also_when_the_system_takes_a_few_at_a_time(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    data = os.urandom(size)
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, view: real(fd, view[: max(1, len(view) // 2)]))
    root.replace("x", data, mode=0o600, expected=None, token=MARK)
    assert (grounds.root / "x").read_bytes() == data


def test_through_a_link_the_real_file_is_replaced_and_the_link_stays(
    grounds: Grounds, root: Root
) -> None:
    (grounds.root / "l").symlink_to("README.md")
    replace(root, root.place("l").path)
    assert os.readlink(grounds.root / "l") == "README.md"
    assert grounds.left()["README.md"] == "new"


def test_hard_links_are_broken_and_told(grounds: Grounds, root: Root) -> None:
    os.link(grounds.root / "README.md", grounds.root / "other")
    assert any("hard link" in note for note in replace(root).notes)
    assert grounds.left()["other"] == "readme"


@pytest.mark.parametrize(
    ("name", "mode", "owned", "at_first"),
    [
        ("new.md", 0o644, False, 0o644),
        ("new.md", 0o600, False, 0o600),
        # Whose it is, and what takes rights away, is set afterwards.
        ("new.md", 0o644, True, 0o600),
        ("README.md", 0o644, False, 0o600),
        ("README.md", 0o755, True, 0o600),
    ],
)
def test_no_unfinished_text_can_be_read_by_others_than_the_whole_one(
    grounds: Grounds,
    root: Root,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    mode: int,
    at_first: int,
    *,
    owned: bool,
) -> None:
    seen: list[int] = []
    fill = atomic._fill

    def look(descriptor: int, *more: object) -> tuple[str, ...]:
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return fill(descriptor, *more)

    monkeypatch.setattr(atomic, "_fill", look)
    done = root.replace(
        name,
        b"new",
        mode=mode,
        attributes=Attributes(os.geteuid(), os.getegid()) if owned else None,
        expected=OLD if name == "README.md" else None,
        token=MARK,
    )
    if done.displaced is not None:
        done.displaced.close()
    assert seen == [at_first]


def test_mode_owner_and_attributes_are_kept(grounds: Grounds, root: Root) -> None:
    target = grounds.root / "README.md"
    if os.geteuid() == 0:
        os.chown(target, 1_234, 2_345)
    target.chmod(0o2750)
    try:
        os.setxattr(target, "user.note", b"kept")
        # user::rwx user:1234:r-x group::r-x mask::r-x other::---, as the kernel stores it
        acl = "0200000001000700ffffffff02000500d204000004000500ffffffff"
        acl += "10000500ffffffff20000000ffffffff"
        os.setxattr(target, "system.posix_acl_access", bytes.fromhex(acl))
    except (OSError, AttributeError):
        pytest.skip("this file system has no attributes")
    was = target.stat()
    access = os.getxattr(target, "system.posix_acl_access")
    replace(root, expected=Revision(OLD.content, stat.S_IMODE(was.st_mode)), mode=0o2750)
    now = target.stat()
    assert (now.st_mode, now.st_uid, now.st_gid) == (was.st_mode, was.st_uid, was.st_gid)
    assert now.st_ino != was.st_ino
    assert os.getxattr(target, "user.note") == b"kept"
    assert os.getxattr(target, "system.posix_acl_access") == access


def test_what_cannot_be_kept_is_told(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no")

    setxattr(str(grounds.root / "README.md"), "user.note", b"kept")
    monkeypatch.setattr(attributes, "setxattr", refused)
    assert "user.note" in " ".join(replace(root).notes)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_a_file_whose_owner_could_not_be_kept_is_written_in_place(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no")

    file = grounds.root / "README.md"
    setxattr(str(file), "user.note", b"kept")
    os.chown(file, 1_234, 1_235)
    was = file.stat()
    monkeypatch.setattr(os, "fchown", refused)
    assert "in place" in " ".join(replace(root).notes)
    now = file.stat()
    assert file.read_text() == "new"
    assert (now.st_ino, now.st_uid, now.st_gid) == (was.st_ino, was.st_uid, was.st_gid)
    assert getxattr(str(file), "user.note") == b"kept"
    assert names(grounds) == ["README.md", "docs", "src"]


def unlike(*states: bytes) -> bool:
    return not is_torn(*states)


def test_what_a_crash_leaves_of_a_text_written_in_place_is_told_from_what_a_person_wrote() -> None:
    old, new = b"o" * 5_000, b"n" * 3_000
    for at in (0, 512, 1_024, 2_560):
        assert is_torn(new[:at] + old[at:], old, new)
        assert is_torn(old[:at] + new[at:], old, new)
    assert is_torn(new + old[len(new) :], old, new)
    assert is_torn(old[:1_024] + new[1_024:] + old[3_000:], old, new)
    assert is_torn(new + bytes(2_000), new, new + b"m" * 2_000)
    assert unlike(b"p" + old[1:], old, new)
    assert unlike(old[:-1], old, new)
    assert unlike(old + b"\n", old, new)
    assert unlike(b"", b"one\n", b"two\n")


@pytest.mark.parametrize(("number", "told"), [(errno.ENOTSUP, False), (errno.EIO, True)])
def test_attributes_that_cannot_be_read_are_told_where_there_are_any(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch, number: int, told: bool
) -> None:
    def refused(*_: object) -> list[str]:
        raise OSError(number, "no")

    monkeypatch.setattr(attributes, "listxattr", refused)
    written = replace(root)
    assert ("attributes" in " ".join(written.notes)) == told
    assert (grounds.root / "README.md").read_text() == "new"


def test_a_file_that_is_protected_from_everybody_stays(grounds: Grounds, root: Root) -> None:
    (grounds.root / "README.md").chmod(0o444)
    with pytest.raises(WriteFailedError) as caught:
        replace(root, expected=Revision(OLD.content, 0o444), mode=0o444)
    assert "chmod" in caught.value.hint
    assert grounds.left()["README.md"] == "readme"


# -- another state ----------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["text", "mode", "gone", "folder", "link", "pipe"])
def test_a_file_in_another_state_is_left_as_it_is(
    grounds: Grounds, root: Root, either: str, state: str
) -> None:
    target = grounds.root / "README.md"
    if state == "mode":
        target.chmod(0o600)
    else:
        target.unlink()
    if state == "text":
        save(grounds, "person's")
    elif state == "folder":
        target.mkdir()
    elif state == "link":
        target.symlink_to("../outside/secret.txt")
    elif state == "pipe":
        os.mkfifo(target)
    before = (names(grounds), target.lstat().st_ino if state != "gone" else 0)
    for act in (replace, remove):
        with pytest.raises(StaleFileError):
            act(root)
        assert before == (names(grounds), target.lstat().st_ino if state != "gone" else 0)
    assert grounds.untouched()


@pytest.mark.parametrize("new", [b"new", None])
def test_a_folder_that_is_moved_before_a_change_is_applied_keeps_its_file_and_nothing_of_ours(
    grounds: Grounds, root: Root, new: bytes | None
) -> None:
    folder = grounds.root / "here"
    folder.mkdir()
    (folder / "a.txt").write_text("readme")
    moved = grounds.outer / "moved"
    with closing(root.hold("here/a.txt")) as held:
        staged = root.stage(
            "here/a.txt",
            new,
            after=None if new is None else Revision.of(new, 0o644),
            expected=OLD,
            token=MARK,
            file=held,
        )
        folder.rename(moved)
        folder.mkdir()
        (folder / "a.txt").write_text("other")
        with pytest.raises(StaleFileError):
            root.apply(staged)
        root.drop(staged)
        staged.close()
    assert os.listdir(folder) == os.listdir(moved) == ["a.txt"]
    assert (folder / "a.txt").read_text() == "other"
    assert (moved / "a.txt").read_text() == "readme"


def test_a_save_that_is_seen_only_when_the_names_are_exchanged_stays_in_place(
    grounds: Grounds, root: Root
) -> None:
    save(grounds, "theirs")
    after = Revision.of(b"new", 0o644)
    staged = root.stage(
        "README.md", b"new", after=after, expected=OLD, token=MARK, how=Staging(early=False)
    )
    with pytest.raises(StaleFileError):
        root.apply(staged)
    root.drop(staged)
    staged.close()
    assert grounds.left()["README.md"] == "theirs"
    assert TEMP not in names(grounds)


def test_a_file_of_any_size_in_its_place_is_told_at_once(grounds: Grounds, root: Root) -> None:
    os.truncate(grounds.root / "README.md", 1 << 40)
    with pytest.raises(StaleFileError):
        root.replace("README.md", b"new", mode=0o644, expected=OLD, token=MARK)
    with pytest.raises(StaleFileError):
        root.remove("README.md", expected=OLD, token=MARK)


def test_a_file_that_grows_while_it_is_read_is_not_read_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "LARGEST", 3 * read._PIECE)
    path = tmp_path / "grows"
    path.write_bytes(b"x")
    pread = os.pread

    def growing(descriptor: int, size: int, offset: int) -> bytes:
        os.truncate(path, offset + 2 * size)
        return pread(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", growing)
    descriptor = os.open(path, os.O_RDONLY)
    assert read.digest(descriptor) == ""
    os.close(descriptor)


@pytest.mark.parametrize("there", ["file", "folder", "link"])
def test_a_new_file_never_takes_the_place_of_another(
    grounds: Grounds, root: Root, either: str, there: str
) -> None:
    target = grounds.root / "new"
    {
        "file": lambda: target.write_text("person's"),
        "folder": target.mkdir,
        "link": lambda: target.symlink_to("../outside/created"),
    }[there]()
    inode = target.lstat().st_ino
    with pytest.raises(StaleFileError):
        replace(root, "new", None)
    assert target.lstat().st_ino == inode
    assert names(grounds) == ["README.md", "docs", "new", "src"]
    assert os.listdir(grounds.outside) == ["secret.txt"]


def test_a_temporary_name_that_is_taken_is_not_ours_to_remove(
    grounds: Grounds, root: Root, either: str
) -> None:
    (grounds.root / TEMP).write_text("somebody's")
    for act in (replace, remove, lambda r: replace(r, "new", None)):
        with pytest.raises(WriteFailedError):
            act(root)
    assert grounds.left()[TEMP] == "somebody's"
    assert grounds.left()["README.md"] == "readme"
    assert "new" not in names(grounds)


# -- saved at the same moment -------------------------------------------------------------------


def test_a_save_at_the_moment_of_the_exchange_goes_back(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    for act in (replace, remove):
        (grounds.root / "README.md").write_text("readme")
        before_exchange(monkeypatch, {1: lambda: save(grounds, "person's")})
        with pytest.raises(StaleFileError):
            act(root)
        assert grounds.left()["README.md"] == "person's"
        assert names(grounds) == ["README.md", "docs", "src"]


def test_a_save_in_place_at_that_moment_goes_back(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    for act in (replace, remove):
        (grounds.root / "README.md").write_text("readme")
        before_exchange(monkeypatch, {1: lambda: (grounds.root / "README.md").write_text("own")})
        with pytest.raises(StaleFileError):
            act(root)
        assert grounds.left()["README.md"] == "own"
        assert names(grounds) == ["README.md", "docs", "src"]


def test_a_change_of_rights_at_that_moment_is_not_lost(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    for act in (replace, remove):
        (grounds.root / "README.md").chmod(0o644)
        before_exchange(monkeypatch, {1: lambda: (grounds.root / "README.md").chmod(0o600)})
        with pytest.raises(StaleFileError):
            act(root)
        assert stat.S_IMODE((grounds.root / "README.md").stat().st_mode) == 0o600


def test_of_two_saves_the_newer_stays_in_place_and_the_older_is_kept(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_exchange(
        monkeypatch, {1: lambda: save(grounds, "first"), 2: lambda: save(grounds, "second")}
    )
    with pytest.raises(StaleFileError) as caught:
        replace(root)
    assert KEPT in caught.value.message
    assert (grounds.left()["README.md"], grounds.left()[KEPT]) == ("second", "first")
    assert TEMP not in names(grounds)


def test_a_save_into_our_text_before_it_goes_away_stays_in_place(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    def begin() -> None:
        opened.append((grounds.root / "README.md").open("w"))  # Emptied, not yet written.

    before_exchange(monkeypatch, {1: lambda: save(grounds, "first"), 2: begin})
    with pytest.raises(StaleFileError):
        replace(root)
    opened[0].write("second")
    opened[0].close()
    assert (grounds.left()["README.md"], grounds.left()[KEPT]) == ("second", "first")


@pytest.mark.parametrize("dropped", [False, pytest.param(True, marks=LEASES)])
def test_a_save_into_our_text_after_it_was_looked_at_is_kept(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch, dropped: bool
) -> None:
    drop = staged.StagedChange.drop

    def late(change: staged.StagedChange, parent: int) -> None:
        # Its editor has opened what stood at the name, and writes only now, or when we think that we are done.
        with (grounds.root / TEMP).open("r+b", buffering=0) as editor:
            if dropped:
                drop(change, parent)
            editor.write(b"second")
            editor.truncate()
        if not dropped:
            drop(change, parent)

    monkeypatch.setattr(staged.StagedChange, "drop", late)
    before_exchange(monkeypatch, {1: lambda: save(grounds, "first")})
    with pytest.raises(StaleFileError):
        replace(root)
    assert (grounds.left()["README.md"], grounds.left()[KEPT]) == ("first", "second")
    assert TEMP not in names(grounds)


def test_a_save_while_another_is_brought_back_from_removal_is_kept_too(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_exchange(
        monkeypatch, {1: lambda: save(grounds, "first"), 2: lambda: save(grounds, "second")}
    )
    with pytest.raises(StaleFileError):
        remove(root)
    assert (grounds.left()["README.md"], grounds.left()[KEPT]) == ("second", "first")


@pytest.mark.parametrize("aside", [True, False])
@pytest.mark.parametrize("in_place", [True, False])
def test_a_save_that_the_system_does_not_let_back_is_kept_and_told(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch, aside: bool, in_place: bool
) -> None:
    def broken() -> None:
        if not in_place:
            (grounds.root / "README.md").unlink()
        raise OSError(errno.EIO, "io")

    def refused() -> None:
        if not aside:
            raise OSError(errno.EIO, "io")

    before_exchange(monkeypatch, {1: lambda: save(grounds, "person's"), 2: broken, 3: refused})
    kept = KEPT if aside else TEMP
    if in_place:
        written = replace(root)
        assert kept in " ".join(written.notes)
        assert grounds.left()["README.md"] == "new"
    else:
        with pytest.raises(StaleFileError) as caught:
            replace(root)
        assert kept in caught.value.message
    assert grounds.left()[kept] == "person's"


def test_a_long_name_leaves_room_for_the_mark_of_a_kept_text(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "é" * 127
    save(grounds, "readme", name)
    before_exchange(
        monkeypatch,
        {1: lambda: save(grounds, "first", name), 2: lambda: save(grounds, "second", name)},
    )
    with pytest.raises(StaleFileError) as caught:
        replace(root, name)
    assert grounds.left()[str(caught.value.details["kept"])] == "first"
    assert TEMP not in names(grounds)


def test_what_is_written_to_the_replaced_file_later_is_found(grounds: Grounds, root: Root) -> None:
    with (grounds.root / "README.md").open("r+") as editor:
        written = root.replace("README.md", b"new", mode=0o644, expected=OLD, token=MARK)
        assert written.displaced is not None
        assert written.displaced.late_write() is None
        editor.write("READ")
        editor.flush()
        assert written.displaced.late_write() == b"READme"
        written.displaced.close()
        written.displaced.close()
    assert grounds.left()["README.md"] == "new"


def test_a_replaced_file_that_cannot_be_read_any_more_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert DisplacedFile(-1, "x").late_write() is None


# -- refused by the system ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EPERM]
)
@pytest.mark.parametrize("call", ["open", "write", "fchmod", "full_sync"])
def test_a_refusal_before_the_exchange_changes_nothing(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    place = atomic if call == "full_sync" else os
    real = getattr(place, call)

    def refused(*args: object, **more: object) -> object:
        if call == "open" and args[0] != TEMP:
            return real(*args, **more)
        raise OSError(number, "no", str(grounds.outer))

    monkeypatch.setattr(place, call, refused)
    acts = [replace, lambda r: replace(r, "new", None)]
    # The system gives a new file its rights.
    for act in acts[: 1 if call == "fchmod" else 2]:
        with pytest.raises(WriteFailedError) as caught:
            act(root)
        assert str(grounds.outer) not in caught.value.report()
        assert caught.value.details["errno"] == number
    assert names(grounds) == ["README.md", "docs", "src"]
    assert grounds.left()["README.md"] == "readme"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
def test_a_refused_exchange_changes_nothing(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(*_: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(atomic, "renameat2", refused)
    for act in (replace, remove, lambda r: replace(r, "new", None)):
        with pytest.raises(WriteFailedError):
            act(root)
    assert names(grounds) == ["README.md", "docs", "src"]
    assert grounds.left()["README.md"] == "readme"


def test_a_file_that_goes_away_at_that_moment_is_not_made_again(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    for act in (replace, remove):
        save(grounds, "readme")
        before_exchange(monkeypatch, {1: (grounds.root / "README.md").unlink})
        with pytest.raises(StaleFileError):
            act(root)
        assert names(grounds) == ["docs", "src"]


def test_a_file_that_cannot_be_read_is_not_replaced(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: int) -> bytes:
        raise OSError(errno.EIO, "io")

    monkeypatch.setattr(atomic.os, "pread", broken)
    for act in (replace, remove):
        with pytest.raises(WriteFailedError):
            act(root)
    monkeypatch.undo()
    real = os.open

    def denied(path: str, *args: object, **more: object) -> int:
        if path == "README.md":
            raise PermissionError(errno.EACCES, "no")
        return real(path, *args, **more)

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(WriteFailedError):
        replace(root)
    monkeypatch.undo()
    assert grounds.left()["README.md"] == "readme"


@pytest.mark.parametrize("call", ["open", "full_sync"])
def test_a_folder_that_cannot_be_made_durable_is_told_and_no_failure(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    place = atomic if call == "full_sync" else os
    real = getattr(place, call)

    def refused(*args, **more):
        folder = args[0] == "." if call == "open" else stat.S_ISDIR(os.fstat(args[0]).st_mode)
        if folder:
            raise OSError(errno.EIO, "io")
        return real(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(root._resolver, "open_folder", lambda fd, _: os.dup(fd))
        patch.setattr(place, call, refused)
        assert replace(root).outcome == "applied_not_durable"
        assert remove(root, Revision(content_id(b"new"), 0o644)).outcome == "applied_not_durable"
        assert replace(root, "new", None).outcome == "applied_not_durable"
    assert names(grounds) == ["docs", "new", "src"]


def test_an_old_text_that_cannot_be_removed_is_told_and_no_failure(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch, either: str
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "io")

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refused)
        written = replace(root, "new", None)
        assert written.outcome == "applied"
        assert bool(written.notes) == (either != "exchange")
    (grounds.root / TEMP).unlink(missing_ok=True)
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refused)
        removed = remove(root)
        assert removed.outcome == "applied_not_durable"
        assert TEMP in " ".join(removed.notes)
    assert grounds.left()["new"] == "new"
    assert "README.md" not in names(grounds)
    (grounds.root / TEMP).unlink()
    save(grounds, "readme")
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refused)
        replaced = replace(root)
    if either == "exchange":
        assert replaced.outcome == "applied_not_durable"
        assert TEMP in " ".join(replaced.notes)
    assert grounds.left()["README.md"] == "new"


def test_without_an_exchange_the_file_is_checked_as_late_as_possible(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    saves = iter(())

    def missing(*_: object) -> None:
        for text in saves:
            save(grounds, text)
        raise OSError(errno.ENOSYS, "no")

    monkeypatch.setattr(atomic, "renameat2", missing)
    for act in (replace, remove):
        save(grounds, "readme")
        saves = iter(["person's"])
        with pytest.raises(StaleFileError):
            act(root)
        assert grounds.left()["README.md"] == "person's"
        assert names(grounds) == ["README.md", "docs", "src"]


def test_a_plain_rename_that_is_refused_changes_nothing(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch, either: str
) -> None:
    if either == "exchange":
        pytest.skip("no plain rename is needed")

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "io")

    monkeypatch.setattr(os, "rename", refused)
    for act in (replace, remove):
        with pytest.raises(WriteFailedError):
            act(root)
    assert names(grounds) == ["README.md", "docs", "src"]


def test_a_call_that_is_stopped_leaves_what_recovery_can_read(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic, "full_sync", stopped)
    with pytest.raises(KeyboardInterrupt):
        replace(root)
    assert names(grounds) == ["README.md", "docs", "src"]
    monkeypatch.undo()
    monkeypatch.setattr(staged, "sync", stopped)
    with pytest.raises(KeyboardInterrupt):
        replace(root)
    assert grounds.left()["README.md"] == "new"
    assert root.leftover(".", MARK).data == b"readme"


# -- real pressure ------------------------------------------------------------------------------


@MOUNTS
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_full_disk_changes_nothing(grounds: Grounds) -> None:
    folder = grounds.outer / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        (folder / "README.md").write_text("readme")
        (folder / "README.md").chmod(0o644)
        with Root.open(folder) as root:
            for path, expected in (("README.md", OLD), ("new", None)):
                with pytest.raises(WriteFailedError) as caught:
                    root.replace(path, b"x" * (2 << 20), mode=0o644, expected=expected, token=MARK)
                assert "no space" in caught.value.message
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
            with pytest.raises(WriteFailedError) as caught:
                replace(root)
            assert "read-only" in caught.value.message
        assert os.listdir(folder) == ["README.md"]
        assert (folder / "README.md").read_text() == "readme"
    finally:
        subprocess.run(["umount", str(folder)], check=True)


EDITOR = """
import ctypes, json, os, sys
target, how, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
fresh, here, exchange = target + "~", -100, 2
displaced = []
call = ctypes.CDLL(None).renameat2
for number in range(rounds):
    text = f"person {number}\\n"
    if how == "rename":
        with open(fresh, "w") as new:
            new.write(text)
        os.chmod(fresh, 0o644)
        # An exchange is a rename that tells what it took the place of.
        if call(here, fresh.encode(), here, target.encode(), exchange):
            os.rename(fresh, target)
        else:
            with open(fresh) as old:
                displaced.append(old.read())
            os.unlink(fresh)
    else:
        with open(target, "w") as same:
            same.write(text)
    for _ in range(number % 40):
        os.stat("/")
with open(sys.argv[4], "w") as answer:
    json.dump(displaced, answer)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["rename", "in place"])
def test_no_save_of_an_editor_that_knows_no_locks_is_lost_unseen(
    grounds: Grounds, how: str
) -> None:
    """A text of the person is what we started from, what the person replaced, kept, or in place.

    Of saves in place only the last can be told: each of them empties the one before.
    """
    rounds = 4_000
    target = grounds.root / "README.md"
    save(grounds, "start\n")
    answer = grounds.outer / "answer"
    editor = subprocess.Popen(
        [sys.executable, "-c", EDITOR, str(target), how, str(rounds), str(answer)]
    )
    accounted: list[str] = []
    watched: list[DisplacedFile] = []
    done = stale = 0
    with Root.open(grounds.root) as root:
        while editor.poll() is None:
            try:
                now = root.read("README.md", limit=1_000)
                written = root.replace(
                    "README.md",
                    now.data + b"agent\n" if len(now.data) < 500 else b"agent\n",
                    mode=0o644,
                    expected=Revision(content_id(now.data), now.mode),
                    token=f"mark-{done + stale}",
                )
            except FilepactError as error:
                if error.code not in {"STALE_FILE", "READ_ERROR", "NOT_FOUND"}:
                    raise
                stale += 1
                continue
            done += 1
            accounted.append(now.data.decode())
            assert written.displaced is not None
            watched.append(written.displaced)
            if len(watched) > 200:
                accounted.append((watched[0].late_write() or b"").decode())
                watched.pop(0).close()
        for displaced in watched:
            accounted.append((displaced.late_write() or b"").decode())
            displaced.close()
    accounted += json.loads(answer.read_text())
    accounted += grounds.left().values()
    found = {text.partition("\n")[0] for text in accounted}
    saved = {f"person {number}" for number in range(rounds if how == "rename" else 0)}
    assert saved - found == set()
    assert f"person {rounds - 1}" in found
    assert done
    assert stale
    assert not [name for name in names(grounds) if name.endswith((".tmp", "~"))]


def test_the_exchange_is_what_the_kernel_calls_it() -> None:
    assert EXCHANGE == 2


def test_what_cannot_be_looked_at_is_not_taken_for_what_was_expected(
    grounds: Grounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise OSError(errno.EIO, "io")

    parent = os.open(grounds.root, os.O_RDONLY)
    target = os.open("README.md", os.O_RDONLY, dir_fd=parent)
    ours = atomic.StagedFile(os.fstat(target), OLD.content)
    try:
        assert ours.still(parent, "README.md")
        monkeypatch.setattr(atomic, "digest", broken)
        assert not ours.still(parent, "README.md")
    finally:
        os.close(target)
        os.close(parent)


def test_a_folder_that_may_not_be_written_is_told_as_a_refused_write(
    grounds: Grounds, root: Root
) -> None:
    grounds.root.chmod(0o555)
    try:
        for act in (remove, lambda r: replace(r, "new", None)):
            with pytest.raises(WriteFailedError) as caught:
                unprivileged(partial(act, root))
            assert "permission denied" in caught.value.message
            assert str(grounds.outer) not in caught.value.report()
    finally:
        grounds.root.chmod(0o755)
    assert grounds.left()["README.md"] == "readme"


def test_a_default_access_list_gives_nobody_a_file_that_they_could_not_read(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    path = folder / "private.txt"
    path.write_bytes(b"old")
    path.chmod(0o640)
    # user::rwx user:1234:rw- group::r-x mask::rwx other::---, as the kernel stores it
    default = "0200000001000700ffffffff02000600d204000004000500ffffffff"
    default += "10000700ffffffff20000000ffffffff"
    try:
        os.setxattr(folder, "system.posix_acl_default", bytes.fromhex(default))
    except (OSError, AttributeError):
        pytest.skip("this file system has no access lists")
    with Root.open(folder) as root:
        before = Revision(content_id(b"old"), 0o640)
        written = root.replace("private.txt", b"new", mode=0o640, expected=before, token="abcd-0")
    assert written.displaced is not None
    written.displaced.close()
    assert path.read_bytes() == b"new"
    assert "system.posix_acl_access" not in os.listxattr(path)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("name", "new", "moves"),
    [
        ("README.md", "free.md", True),
        ("src", "sources", True),
        ("gone.md", "free.md", False),
        ("README.md", "src", False),
        ("README.md", "taken.md", False),
    ],
)
def test_an_entry_is_given_a_free_name_in_one_step_or_left(
    grounds: Grounds, name: str, new: str, *, moves: bool
) -> None:
    (grounds.root / "docs" / "taken.md").write_text("taken")
    (grounds.root / "docs" / "src").mkdir()
    before = grounds.left()
    parent = os.open(grounds.root, os.O_RDONLY)
    to = os.open(grounds.root / "docs", os.O_RDONLY)
    try:
        if moves:
            assert atomic.move_entry(parent, name, to, new, (name, new))
            assert not (grounds.root / name).exists()
            assert (grounds.root / "docs" / new).exists()
        else:
            with pytest.raises(StaleFileError):
                atomic.move_entry(parent, name, to, new, (name, new))
            assert grounds.left() == before
    finally:
        os.close(parent)
        os.close(to)


# -- links ------------------------------------------------------------------------------------

LEADS = Revision(content_id(b"nowhere"), LINK)


def remove_link(root: Root) -> WriteResult:
    return root.remove("docs/link", expected=LEADS, token=MARK)


def leads(grounds: Grounds) -> str:
    return os.readlink(grounds.root / "docs/link")


def test_a_link_is_made_and_removed_itself(grounds: Grounds, root: Root, either: str) -> None:
    made = root.replace("docs/link", b"nowhere", mode=LINK, expected=None, token=MARK)
    assert (made.outcome, leads(grounds)) == ("applied", "nowhere")
    assert root.place("docs/link", follow=False).kind == "link"
    assert root.read_link("docs/link").data == b"nowhere"
    assert remove_link(root).outcome == "applied"
    assert os.listdir(grounds.root / "docs") == ["guide.md"]


def test_a_link_takes_no_name_that_something_has(grounds: Grounds, root: Root, either: str) -> None:
    for name in ("README.md", "docs"):
        with pytest.raises(StaleFileError):
            root.replace(name, b"nowhere", mode=LINK, expected=None, token=MARK)
    assert grounds.left()["README.md"] == "readme"
    assert names(grounds) == ["README.md", "docs", "src"]


@pytest.mark.parametrize("other", ["link", "file", "nothing"])
def test_what_is_no_longer_that_link_is_left_alone(
    grounds: Grounds, root: Root, either: str, other: str
) -> None:
    if other == "link":
        (grounds.root / "docs/link").symlink_to("elsewhere")
    elif other == "file":
        (grounds.root / "docs/link").write_text("nowhere")
    with pytest.raises(StaleFileError):
        remove_link(root)
    assert len(os.listdir(grounds.root / "docs")) == (1 if other == "nothing" else 2)


def test_a_file_that_takes_a_links_name_at_that_moment_is_brought_back(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    (grounds.root / "docs/link").symlink_to("nowhere")
    before_exchange(monkeypatch, {1: lambda: save(grounds, "somebody's", "docs/link")})
    with pytest.raises(StaleFileError):
        remove_link(root)
    assert (grounds.root / "docs/link").read_text() == "somebody's"


def test_who_may_move_no_links_removes_one_and_says_how(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    (grounds.root / "docs/link").symlink_to("nowhere")

    def forbidden(*_: object) -> None:
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(atomic, "renameat2", forbidden)
    assert remove_link(root).notes
    assert os.listdir(grounds.root / "docs") == ["guide.md"]


def test_a_link_that_cannot_be_made_leaves_nothing(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no")

    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "no")

    for where, call, refusal in (
        (atomic, "renameat2", full),
        (os, "symlink", full),
        (os, "symlink", forbidden),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(where, call, refusal)
            with pytest.raises(WriteFailedError):
                root.replace("docs/link", b"nowhere", mode=LINK, expected=None, token=MARK)
        assert os.listdir(grounds.root / "docs") == ["guide.md"]


def test_a_link_that_cannot_be_moved_out_stays(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    (grounds.root / "docs/link").symlink_to("nowhere")

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(atomic, "renameat2", broken)
    with pytest.raises(WriteFailedError):
        remove_link(root)
    assert leads(grounds) == "nowhere"


def test_who_may_move_no_links_removes_none_that_was_exchanged_just_now(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    (grounds.root / "docs/link").symlink_to("nowhere")

    def forbidden(*_: object) -> None:
        save(grounds, "somebody's", "docs/link")
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(atomic, "renameat2", forbidden)
    with pytest.raises(StaleFileError):
        remove_link(root)
    assert (grounds.root / "docs/link").read_text() == "somebody's"


@pytest.mark.parametrize("movable", [True, False])
def test_a_link_that_cannot_be_removed_is_told_as_such(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch, movable: bool
) -> None:
    (grounds.root / "docs/link").symlink_to("nowhere")

    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "no")

    monkeypatch.setattr(os, "unlink", forbidden)
    if not movable:
        monkeypatch.setattr(atomic, "renameat2", forbidden)
    if movable:
        # It can be taken back until it is settled, and to fail then is to leave it aside.
        written = remove_link(root)
        assert written.outcome == "applied_not_durable"
        assert TEMP in " ".join(written.notes)
    else:
        with pytest.raises(WriteFailedError):
            remove_link(root)
        assert leads(grounds) == "nowhere"
    assert sorted(os.listdir(grounds.root / "docs")) == [
        *([TEMP] if movable else []),
        "guide.md",
        *([] if movable else ["link"]),
    ]


def only_added_to(folder: Path, on: bool) -> bool:
    """Let names only be put into a folder, or taken out again; false where that cannot be."""
    if sys.platform == "darwin":
        change = getattr(os, "chflags", None)
        return bool(change) and change(folder, stat.UF_APPEND if on else 0) is None
    words = (shutil.which("chattr"), f"{'+' if on else '-'}a", folder)
    return bool(words[0]) and not subprocess.run(words, check=False).returncode


def test_in_a_folder_that_is_only_added_to_files_are_written_in_place_and_nothing_is_left(
    grounds: Grounds, root: Root
) -> None:
    folder = grounds.root / "docs"
    if not only_added_to(folder, True):
        pytest.skip("no folder can be made append-only here")
    state = Revision(content_id(b"guide"), 0o644)
    try:
        for act in (
            lambda: replace(root, "docs/new", None),
            lambda: root.remove("docs/guide.md", expected=state, token=MARK),
        ):
            with pytest.raises(WriteFailedError):
                act()
        assert replace(root, "docs/guide.md", state).outcome == "applied"
        assert os.listdir(folder) == ["guide.md"]
        assert (folder / "guide.md").read_text() == "new"
    finally:
        only_added_to(folder, False)
