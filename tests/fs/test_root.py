"""What a root lets be done beneath it, with real files of every kind."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
from typing import TYPE_CHECKING

import pytest

from filepact.domain.document import Revision, content_id
from filepact.errors import FilepactError, NotFoundError
from filepact.fs.read import read_umask
from filepact.fs.root import Root
from tests.needs import HELD_FILES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fs.conftest import Grounds


MARK = "c0123456789-0"


def fails(code: str, act) -> str:
    with pytest.raises(FilepactError) as caught:
        act()
    assert caught.value.code == code, caught.value.report()
    return caught.value.message


# -- holding it -------------------------------------------------------------------------------


def test_a_root_is_named_by_its_true_path(grounds: Grounds, resolver: str) -> None:
    (grounds.outer / "alias").symlink_to("root")
    with Root.open(grounds.outer / "alias", resolver=resolver) as root:
        assert root.path == os.path.realpath(grounds.root)
        assert root.resolver == resolver
        assert root.new_mode("x") == 0o666 & ~read_umask()
        assert root.alive()
    root.close()


@pytest.mark.parametrize(
    ("name", "code"),
    [("missing", "NOT_FOUND"), ("root/README.md", "NOT_A_FILE"), ("loop", "NOT_FOUND")],
)
def test_only_a_folder_can_be_a_root(grounds: Grounds, name: str, code: str) -> None:
    (grounds.outer / "loop").symlink_to("loop")
    fails(code, lambda: Root.open(grounds.outer / name))


def test_no_name_is_not_the_working_folder() -> None:
    with pytest.raises(NotFoundError):
        Root.open("")


def test_a_root_that_was_moved_or_exchanged_is_not_used(grounds: Grounds, root: Root) -> None:
    grounds.root.rename(grounds.outer / "elsewhere")
    assert not root.alive()
    fails("PATH_BLOCKED", lambda: root.place("README.md"))
    grounds.root.mkdir()
    (grounds.root / "README.md").write_text("another")
    assert not root.alive()
    fails("PATH_BLOCKED", lambda: root.read("README.md", limit=99))
    fails(
        "PATH_BLOCKED",
        lambda: root.replace("x", b"x", mode=0o644, expected=None, token=MARK),
    )
    assert os.listdir(grounds.root) == ["README.md"]


# -- places -----------------------------------------------------------------------------------


def test_a_place_tells_what_is_there(grounds: Grounds, root: Root) -> None:
    os.link(grounds.root / "README.md", grounds.root / "again.md")
    (grounds.root / "README.md").chmod(0o640)
    place = root.place("README.md")
    assert (place.kind, place.mode, place.size, place.links) == ("file", 0o640, 6, 2)
    status = (grounds.root / "README.md").stat()
    assert (place.device, place.inode) == (status.st_dev, status.st_ino)
    read = root.read("again.md", limit=9)
    assert (read.device, read.inode, read.links) == (place.device, place.inode, 2)
    gone = root.place("gone")
    assert (gone.device, gone.inode) == (0, 0)
    assert (gone.kind, gone.mode, gone.size, gone.links) == ("missing", 0, 0, 0)


def test_every_name_of_one_file_has_one_lock(grounds: Grounds, root: Root) -> None:
    (grounds.root / "l").symlink_to("src")
    (grounds.root / "m").symlink_to("src/main.py")
    names = ["src/main.py", "l/main.py", "m", "./src//main.py", "docs/../src/main.py"]
    assert len({root.place(name).lock_key for name in names}) == 1
    assert root.place("src/new.py").lock_key == root.place("l/NEW.py").lock_key
    assert root.place("caf\u00e9").lock_key == root.place("cafe\u0301").lock_key
    assert root.place("src/main.py").lock_key != root.place("docs/main.py").lock_key


def test_a_new_name_that_misleads_is_blocked_and_an_old_one_is_not(
    grounds: Grounds, root: Root
) -> None:
    (grounds.root / "old\u200b.md").write_text("old")
    assert root.place("old\u200b.md").kind == "file"
    fails("PATH_BLOCKED", lambda: root.place("new\u200b.md"))


# -- reading ----------------------------------------------------------------------------------


def test_a_file_is_read_whole_with_its_mode(grounds: Grounds, root: Root) -> None:
    (grounds.root / "x").write_bytes(b"\0\xff\r\n" * 1_000)
    (grounds.root / "x").chmod(0o751)
    contents = root.read("x", limit=4_000)
    assert (contents.data, contents.mode) == (b"\0\xff\r\n" * 1_000, 0o751)


def test_an_empty_file_is_read(grounds: Grounds, root: Root) -> None:
    (grounds.root / "x").touch()
    assert root.read("x", limit=0).data == b""


def test_what_is_no_readable_file_is_refused_with_its_reason(grounds: Grounds, root: Root) -> None:
    fails("NOT_FOUND", lambda: root.read("gone", limit=9))
    fails("NOT_A_FILE", lambda: root.read("src", limit=9))
    fails("NOT_A_FILE", lambda: root.read(".", limit=9))
    fails("FILE_TOO_LARGE", lambda: root.read("README.md", limit=5))


def test_pipes_and_sockets_answer_at_once(grounds: Grounds, root: Root) -> None:
    os.mkfifo(grounds.root / "pipe")
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(grounds.root):
        server.bind("sock")  # A whole path may be too long for one.
    for name in ("pipe", "sock"):
        assert root.place(name).kind == "other"
        assert "not a regular file" in fails("PATH_BLOCKED", lambda n=name: root.read(n, limit=9))
        fails("NOT_A_FILE", lambda n=name: root.open_directory(n))
        fails(
            "STALE_FILE",
            lambda n=name: root.replace(
                n, b"x", mode=0o644, expected=Revision(content_id(b""), 0o644), token=MARK
            ),
        )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
@pytest.mark.parametrize(("kind", "major", "minor"), [("c", 1, 5), ("c", 5, 0), ("b", 7, 0)])
def test_devices_answer_at_once(
    grounds: Grounds, root: Root, kind: str, major: int, minor: int
) -> None:
    flag = stat.S_IFCHR if kind == "c" else stat.S_IFBLK
    try:
        os.mknod(grounds.root / "dev", 0o666 | flag, os.makedev(major, minor))
    except PermissionError:
        pytest.skip("devices cannot be made here")
    assert root.place("dev").kind == "other"
    fails("PATH_BLOCKED", lambda: root.read("dev", limit=1 << 20))


@pytest.fixture(params=[pytest.param("held", marks=HELD_FILES), "without proc", "by name"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a file is opened that was found: the ways of three kinds of systems."""
    if request.param == "without proc":
        real = os.open

        def without_proc(path, flags, *args, **more):
            if str(path).startswith("/proc/"):
                raise FileNotFoundError(2, "no proc")
            return real(path, flags, *args, **more)

        monkeypatch.setattr(os, "open", without_proc)
    elif request.param == "by name":
        for module in ("resolve", "read"):
            monkeypatch.setattr(f"filepact.fs.{module}.HOLD", 0)
    return request.param


@pytest.mark.parametrize("becomes", ["link", "nothing", "pipe", "folder", "another"])
def test_what_takes_a_files_place_on_the_way_is_not_read(
    grounds: Grounds, way: str, monkeypatch: pytest.MonkeyPatch, becomes: str
) -> None:
    with Root.open(grounds.root, resolver="walk") as root:
        real = root._resolver.find

        def find(folder: int, path: str):
            found = real(folder, path)
            target = grounds.root / "README.md"
            target.rename(grounds.root / "old.md")
            if becomes == "link":
                target.symlink_to("../outside/secret.txt")
            elif becomes == "pipe":
                os.mkfifo(target)
            elif becomes == "folder":
                target.mkdir()
            elif becomes == "another":
                target.write_text("newer")
            return found

        monkeypatch.setattr(root._resolver, "find", find)
        if way == "held":
            # What was looked at is what is read, whatever its name leads to by now.
            assert root.read("README.md", limit=9).data == b"readme"
        elif becomes == "another":
            assert root.read("README.md", limit=9).data == b"newer"
        else:
            codes = {"nothing": "NOT_FOUND", "folder": "NOT_A_FILE"}
            fails(codes.get(becomes, "PATH_BLOCKED"), lambda: root.read("README.md", limit=9))


def test_every_verb_works_in_every_way_of_opening(grounds: Grounds, way: str) -> None:
    (grounds.root / "l").symlink_to("src")
    os.mkfifo(grounds.root / "pipe")
    with Root.open(grounds.root, resolver="walk") as root:
        assert root.read("l/main.py", limit=9).data == b"main"
        assert root.read("src/main.py", limit=9, follow=False).data == b"main"
        assert root.place("pipe").kind == "other"
        assert root.place(".").kind == root.place("src").kind == "directory"
        for path in ("src", "."):
            for follow in (True, False):
                os.close(root.open_directory(path, follow=follow))
        fails("PATH_BLOCKED", lambda: root.read("pipe", limit=9))
        fails("PATH_BLOCKED", lambda: root.read("pipe", limit=9, follow=False))
        fails("PATH_BLOCKED", lambda: root.place("../outside"))
        fails("STALE_FILE", lambda: root.read("l", limit=9, follow=False))
        expected = Revision(content_id(b"main"), 0o644)
        root.replace("src/main.py", b"new", mode=0o644, expected=expected, token=MARK)
    assert (grounds.root / "src/main.py").read_bytes() == b"new"


@pytest.mark.parametrize("path", ["l", "l/main.py", "f"])
def test_a_canonical_path_is_read_without_following_what_became_a_link(
    grounds: Grounds, root: Root, path: str
) -> None:
    (grounds.root / "l").symlink_to("src")
    (grounds.root / "f").symlink_to("README.md")

    def streamed() -> None:
        with root.stream(path, follow=False):
            pass

    for act in (
        lambda: root.read(path, limit=9, follow=False),
        streamed,
        lambda: root.open_directory(path, follow=False),
    ):
        fails("STALE_FILE", act)
    fails("NOT_FOUND", lambda: root.read("gone", limit=9, follow=False))
    fails("STALE_FILE", lambda: root.read("src/../README.md", limit=9, follow=False))
    fails("NOT_A_FILE", lambda: root.read("src", limit=9, follow=False))
    assert root.read("README.md", limit=9, follow=False).data == b"readme"


def test_a_sparse_file_of_a_terabyte_is_refused_and_can_be_streamed(
    grounds: Grounds, root: Root
) -> None:
    try:
        with open(grounds.root / "big", "wb") as big:
            big.truncate(1 << 40)
    except OSError:
        pytest.skip("this file system has no files of that size")
    fails("FILE_TOO_LARGE", lambda: root.read("big", limit=1 << 24))
    with root.stream("big") as (stream, size):
        assert size == 1 << 40
        stream.seek(-4, os.SEEK_END)
        assert stream.read() == b"\0" * 4


def test_only_regular_files_are_streamed(root: Root) -> None:
    with root.stream("src/main.py") as (stream, size):
        assert (stream.read(), size) == (b"main", 4)
    for path, code in (("src", "NOT_A_FILE"), ("gone", "NOT_FOUND"), ("..", "PATH_BLOCKED")):
        with pytest.raises(FilepactError) as caught, root.stream(path):
            pass
        assert caught.value.code == code


def test_a_file_that_is_being_written_is_read_again(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = grounds.root / "README.md"
    texts = iter(["first, longer", "second"])
    real = os.pread

    def busy(descriptor: int, size: int, offset: int) -> bytes:
        data = real(descriptor, size, offset)
        if offset == 0 and (text := next(texts, None)) is not None:
            target.write_text(text)
        return data

    monkeypatch.setattr(os, "pread", busy)
    assert root.read("README.md", limit=99).data == b"second"


def test_a_file_that_never_rests_is_given_up(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pread

    def busy(descriptor: int, size: int, offset: int) -> bytes:
        if offset == 0:
            with open(grounds.root / "README.md", "a") as more:
                more.write("x")
        return real(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", busy)
    fails("READ_ERROR", lambda: root.read("README.md", limit=1_000))


def test_a_device_that_cannot_be_read_is_told_without_host_paths(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: int) -> bytes:
        raise OSError(5, "io", str(grounds.outer))

    monkeypatch.setattr(os, "pread", broken)
    assert str(grounds.outer) not in fails("READ_ERROR", lambda: root.read("README.md", limit=9))
    monkeypatch.undo()

    def denied(*_: object, **__: object) -> int:
        raise PermissionError(13, "no", str(grounds.outer))

    found = root._resolver.find(root._descriptor, "README.md")
    monkeypatch.setattr(root._resolver, "find", lambda *_: found)
    monkeypatch.setattr(os, "open", denied)
    assert str(grounds.outer) not in fails("READ_ERROR", lambda: root.read("README.md", limit=9))


# -- folders ----------------------------------------------------------------------------------


def test_a_folder_is_opened_to_be_walked(grounds: Grounds, root: Root) -> None:
    (grounds.root / "l").symlink_to("src")
    for path in ("src", "l", "src/"):
        descriptor = root.open_directory(path)
        assert os.listdir(descriptor) == ["main.py"]
        os.close(descriptor)
    fails("NOT_FOUND", lambda: root.open_directory("gone"))
    fails("NOT_A_FILE", lambda: root.open_directory("README.md"))


def test_missing_folders_are_made_and_told_outermost_first(grounds: Grounds, root: Root) -> None:
    assert root.make_directories("src/a/b/c") == ("src/a", "src/a/b", "src/a/b/c")
    assert root.make_directories("src/a/b") == ()
    (grounds.root / "l").symlink_to("src/a")
    assert root.make_directories("l/x") == ("src/a/x",)
    assert (grounds.root / "src/a/x").is_dir()
    mode = stat.S_IMODE((grounds.root / "src/a").stat().st_mode)
    assert mode == 0o777 & ~read_umask()


def test_folders_are_not_made_outside_or_over_files(grounds: Grounds, root: Root) -> None:
    (grounds.root / "l").symlink_to("../outside")
    fails("PATH_BLOCKED", lambda: root.make_directories("l/new"))
    fails("PATH_BLOCKED", lambda: root.make_directories("../new"))
    fails("NOT_A_FILE", lambda: root.make_directories("README.md"))
    fails("NOT_FOUND", lambda: root.make_directories("README.md/x"))
    assert grounds.untouched()


def test_folders_that_were_made_in_vain_are_removed_again(grounds: Grounds, root: Root) -> None:
    fails("WRITE_ERROR", lambda: root.make_directories("a/b/" + "n" * 300))
    assert sorted(os.listdir(grounds.root)) == ["README.md", "docs", "src"]


def test_a_folder_that_somebody_else_makes_just_now_is_theirs(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.mkdir

    def beaten(path, mode=0o777, *, dir_fd=None):
        if path == "a":
            real(path, mode, dir_fd=dir_fd)
        real(path, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", beaten)
    assert root.make_directories("a/b") == ("a/b",)


def test_a_link_that_takes_a_new_folders_place_is_not_followed(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beaten(path, mode=0o777, *, dir_fd=None):
        os.symlink("../outside", path, dir_fd=dir_fd)
        raise FileExistsError(17, "exists")

    monkeypatch.setattr(os, "mkdir", beaten)
    fails("WRITE_ERROR", lambda: root.make_directories("a/b"))
    assert grounds.untouched()
    assert os.listdir(grounds.outside) == ["secret.txt"]


def test_only_an_empty_folder_is_removed(grounds: Grounds, root: Root) -> None:
    (grounds.root / "src/empty").mkdir()
    assert root.remove_directory("src/empty")
    assert not root.remove_directory("src")
    assert not root.remove_directory("README.md")
    assert not root.remove_directory("gone")


CANONICAL = ["../outside/secret.txt", "../empty", "src/../../outside/secret.txt", "/x", ".", "",
             "src/../README.md", "src//main.py", "src/"]  # fmt: skip


@pytest.mark.parametrize("path", CANONICAL)
def test_what_changes_files_takes_canonical_paths_only(
    grounds: Grounds, root: Root, path: str
) -> None:
    (grounds.outer / "empty").mkdir()
    (grounds.outside / "secret.txt").chmod(0o644)
    expected = Revision(content_id(b"SECRET"), 0o644)
    acts = (
        lambda: root.replace(path, b"x", mode=0o644, expected=expected, token=MARK),
        lambda: root.replace(path, b"x", mode=0o644, expected=None, token=MARK),
        lambda: root.remove(path, expected=expected, token=MARK),
        lambda: root.remove_directory(path),
    )
    for act in acts:
        with pytest.raises(ValueError):
            act()
    assert grounds.untouched()
    assert (grounds.outer / "empty").is_dir()
    assert grounds.left() == {
        "README.md": "readme",
        "docs/guide.md": "guide",
        "src/main.py": "main",
    }


@pytest.mark.parametrize("gone", ["link", "nothing", "file"])
def test_a_folder_that_was_exchanged_since_is_not_written_into(
    grounds: Grounds, root: Root, gone: str
) -> None:
    path = root.place("src/main.py").path
    shutil.rmtree(grounds.root / "src")
    if gone == "link":
        (grounds.root / "src").symlink_to("../outside")
    elif gone == "file":
        (grounds.root / "src").write_text("file")
    fails("STALE_FILE", lambda: root.replace(path, b"x", mode=0o644, expected=None, token=MARK))
    assert grounds.untouched()
    assert os.listdir(grounds.outside) == ["secret.txt"]


@pytest.mark.parametrize("token", ["", "a/b", "../x", "abc", "a.b.c.d", "x" * 65])
def test_a_token_is_never_part_of_a_path(root: Root, token: str) -> None:
    for act in (
        lambda: root.replace("x", b"", mode=0o644, expected=None, token=token),
        lambda: root.leftover(".", token),
        lambda: root.discard_leftover(".", token),
    ):
        with pytest.raises(ValueError):
            act()


@pytest.mark.parametrize("directory", [".", "src"])
def test_what_a_crash_left_is_told_and_removed(
    grounds: Grounds, root: Root, directory: str
) -> None:
    left = grounds.root / directory / f".filepact-{MARK}.tmp"
    assert root.leftover(directory, MARK) is None
    left.write_text("half")
    assert root.leftover(directory, MARK).data == b"half"
    root.discard_leftover(directory, MARK)
    assert not left.exists()
    root.discard_leftover(directory, MARK)


def test_a_link_that_a_crash_left_is_told_itself(grounds: Grounds, root: Root) -> None:
    left = grounds.root / "src" / f".filepact-{MARK}.tmp"
    left.symlink_to(grounds.outside / "secret.txt")
    assert root.leftover("src", MARK).data == os.fsencode(grounds.outside / "secret.txt")
    root.discard_leftover("src", MARK)
    assert not left.is_symlink()
    left.mkdir()
    assert root.leftover("src", MARK) is None
    assert grounds.untouched()


def test_a_name_that_is_too_long_for_the_system_is_refused(grounds: Grounds, root: Root) -> None:
    long, expected = "n" * 300, Revision(content_id(b"x"), 0o644)
    for path in (long, f"{long}/x", f"src/{long}/x"):
        fails("PATH_BLOCKED", lambda path=path: root.place(path))
        fails("PATH_BLOCKED", lambda path=path: root.read(path, limit=9))
        below = f"{path}/x"
        fails(
            "WRITE_ERROR",
            lambda path=below: root.remove(path, expected=expected, token=MARK),
        )
    assert sorted(os.listdir(grounds.root)) == ["README.md", "docs", "src"]


def test_reading_needs_no_right_to_write(grounds: Grounds, resolver: str, tmp_path: Path) -> None:
    grounds.root.chmod(0o555)
    with Root.open(grounds.root, resolver=resolver) as root:
        assert root.read("src/main.py", limit=9).data == b"main"
    grounds.root.chmod(0o755)
