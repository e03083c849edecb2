"""Other file systems below a root: refused unless a person permits them, and made-up ones always."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from filepact.domain.document import Revision, WorkspacePath
from filepact.domain.policy import EntryFilter
from filepact.errors import FilepactError, PathBlockedError, WriteFailedError
from filepact.fs.home_secrets import SecretIndex
from filepact.fs.inotify import InotifyWatcher
from filepact.fs.root import Root
from filepact.fs.walk import TreeReader
from filepact.workspace.find import find_files
from filepact.workspace.guard import Guard
from filepact_hooks.call_files import files_of
from filepact_hooks.call_rules import CallJudge
from filepact_hooks.tool_call import read_tool_call
from filepact_index.name_index import NameIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="mounts as Linux has them"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts"),
]

RESOLVERS = ["openat2", "walk"]


@pytest.fixture
def mount() -> Iterator[Callable[..., None]]:
    """Mount things for the time of a test; skipped where nothing can be mounted."""
    mounted: list[str] = []

    def mount_one(*words: str) -> None:
        done = subprocess.run(["mount", *words], capture_output=True, check=False)
        if done.returncode:
            pytest.skip("nothing can be mounted here")
        mounted.append(words[-1])

    yield mount_one
    for place in reversed(mounted):
        subprocess.run(["umount", "-l", place], capture_output=True, check=False)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A root with a folder and a file to mount upon, and a folder outside."""
    root = tmp_path / "root"
    (root / "in").mkdir(parents=True)
    (root / "one.txt").write_text("inside\n")
    (root / "plain.txt").write_text("plain\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("SECRET\n")
    return root


@pytest.mark.parametrize("resolver", RESOLVERS)
@pytest.mark.parametrize("kind", ["tmpfs", "bind"])
def test_a_mounted_folder_is_refused_by_every_verb(
    top: Path, mount: Callable[..., None], resolver: str, kind: str
) -> None:
    if kind == "tmpfs":
        mount("-t", "tmpfs", "none", str(top / "in"))
        (top / "in" / "secret.txt").write_text("SECRET\n")
    else:
        mount("--bind", str(top.parent / "outside"), str(top / "in"))
    with Root.open(top, resolver=resolver) as root:
        verbs: list[Callable[[], object]] = [
            lambda: root.place("in"),
            lambda: root.place("in/secret.txt"),
            lambda: root.place("in/new.txt"),
            lambda: root.read("in/secret.txt", limit=99),
            lambda: root.read("in/secret.txt", limit=99, follow=False),
            lambda: root.open_directory("in"),
            lambda: root.open_directory("in", follow=False),
            lambda: root.make_directories("in/new"),
            lambda: root.replace("in/new.txt", b"x", mode=0o600, expected=None, token="abcd"),
            lambda: root.remove(
                "in/secret.txt", expected=Revision(b"SECRET\n", 0o644), token="abcd"
            ),
            lambda: root.place("in/.."),
        ]
        for number, verb in enumerate(verbs):
            with pytest.raises(FilepactError) as caught:
                verb()
            assert caught.value.code in ("PATH_BLOCKED", "STALE_FILE"), number
            assert "SECRET" not in caught.value.report()
        with TreeReader(root, allow=lambda _path, _is_dir: True) as entries:
            assert "in/secret.txt" not in [entry.path for entry in entries]
            assert entries.beyond == 1
        found = find_files(root, ".", "**/*", allow=lambda _path, _is_dir: True)
        assert found.unsearched.mounted == 1
        assert root.read("plain.txt", limit=99).data == b"plain\n"
    assert os.listdir(top / "in") == ["secret.txt"]


@pytest.mark.parametrize("name", ["in", "in it\\ä"])
def test_what_is_mounted_over_a_known_folder_is_noticed_and_so_that_it_went(
    top: Path, mount: Callable[..., None], name: str
) -> None:
    (top / "in").rename(top / name)
    (top / name / "beneath.txt").write_text("")
    (top.parent / "beside").mkdir()
    with Root.open(top / "..") as above, Root.open(top) as root:
        one, other = InotifyWatcher.open(root), InotifyWatcher.open(above)
        assert one is not None
        assert other is not None
        index = NameIndex(root)
        assert index.build()
        mount("-t", "tmpfs", "none", str(top.parent / "beside"))
        assert index.refresh() is not None
        assert other.drain().lost
        mount("-t", "tmpfs", "none", str(top / name))
        assert index.refresh() is None
        assert index.build()
        assert one.drain().lost
        assert not one.drain().lost
        (walk,) = [index.walk(".", EntryFilter(lambda _path, _is_dir: True))]
        assert walk is not None
        assert f"{name}/beneath.txt" not in [entry.path for entry in walk]
        assert walk.beyond == 1
        subprocess.run(["umount", str(top / name)], check=True)
        assert index.refresh() is None
        for watcher in (one, other, index):
            watcher.close()


@pytest.mark.parametrize("resolver", RESOLVERS)
@pytest.mark.parametrize("follow", [True, False])
def test_a_single_file_that_is_mounted_is_read_and_written_in_place(
    top: Path, mount: Callable[..., None], resolver: str, follow: bool
) -> None:
    mounted = top.parent / "outside" / "secret.txt"
    mount("--bind", str(mounted), str(top / "one.txt"))
    inode = mounted.stat().st_ino
    with Root.open(top, resolver=resolver) as root:
        assert root.read("one.txt", limit=99, follow=follow).data == b"SECRET\n"
        before = Revision.of(b"SECRET\n", 0o644)
        for text in (b"longer than before\n", b"short\n", b""):
            done = root.replace("one.txt", text, mode=0o644, expected=before, token="abcd")
            assert "mounted" in " ".join(done.notes)
            assert mounted.read_bytes() == text
            before = Revision.of(text, 0o644)
        assert mounted.stat().st_ino == inode
        with pytest.raises(WriteFailedError) as caught:
            root.remove("one.txt", expected=before, token="abcd")
        assert "write_file" in caught.value.hint
        with TreeReader(root, allow=lambda _path, _is_dir: True) as entries:
            assert [entry.read(limit=99) for entry in entries if entry.name == "one.txt"] == [b""]
    assert sorted(os.listdir(top)) == ["in", "one.txt", "plain.txt"]


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_a_secret_that_is_mounted_by_itself_is_refused(
    top: Path, mount: Callable[..., None], resolver: str
) -> None:
    secrets = SecretIndex(str(top.parent / "outside"), lambda path: path.endswith("secret.txt"))
    mount("--bind", str(top.parent / "outside" / "secret.txt"), str(top / "one.txt"))
    with (
        Root.open(top, resolver=resolver, secrets=secrets) as root,
        pytest.raises(PathBlockedError),
    ):
        root.read("one.txt", limit=99)


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_a_mounted_folder_is_used_where_a_person_permits_it(
    top: Path, mount: Callable[..., None], resolver: str
) -> None:
    mount("--bind", str(top.parent / "outside"), str(top / "in"))
    with Root.open(top, resolver=resolver, mounts=True) as root:
        assert root.read("in/secret.txt", limit=99).data == b"SECRET\n"
        assert root.read("in/secret.txt", limit=99, follow=False).data == b"SECRET\n"
        root.replace("in/new.txt", b"x", mode=0o600, expected=None, token="abcd")
        with TreeReader(root, allow=lambda _path, _is_dir: True) as entries:
            assert "in/new.txt" in [entry.path for entry in entries]
    assert (top.parent / "outside" / "new.txt").read_text() == "x"


@pytest.mark.parametrize("resolver", RESOLVERS)
@pytest.mark.parametrize("mounts", [True, False])
@pytest.mark.parametrize("follow", [True, False])
def test_what_the_kernel_makes_up_is_refused_even_then(
    top: Path, mount: Callable[..., None], resolver: str, mounts: bool, follow: bool
) -> None:
    mount("-t", "proc", "none", str(top / "in"))
    with Root.open(top, resolver=resolver, mounts=mounts) as root:
        for path in ("in/version", "in/self/environ", "in/self/root/etc/passwd", "in/1/mem"):
            with pytest.raises(FilepactError) as caught:
                root.read(path, limit=9_999, follow=follow)
            assert caught.value.code in ("PATH_BLOCKED", "NOT_FOUND", "STALE_FILE")
        if mounts:
            with pytest.raises(PathBlockedError, match="file system of the kernel"):
                root.read("in/version", limit=9_999)


def test_a_root_on_a_file_system_that_the_kernel_makes_up_is_refused() -> None:
    for path in ("/proc", "/proc/self", "/sys"):
        with pytest.raises(PathBlockedError):
            Root.open(path)


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_a_root_that_something_is_mounted_over_is_noticed(
    top: Path, mount: Callable[..., None], resolver: str
) -> None:
    with Root.open(top, resolver=resolver) as root:
        assert root.read("plain.txt", limit=99).data == b"plain\n"
        mount("-t", "tmpfs", "none", str(top))
        with pytest.raises(PathBlockedError):
            root.read("plain.txt", limit=99)
        with pytest.raises(PathBlockedError):
            root.replace("new.txt", b"x", mode=0o600, expected=None, token="abcd")


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_a_root_that_is_a_mount_itself_is_used_until_it_is_unmounted(
    top: Path, mount: Callable[..., None], resolver: str
) -> None:
    mount("-t", "tmpfs", "none", str(top / "in"))
    (top / "in" / "a.txt").write_text("a\n")
    with Root.open(top / "in", resolver=resolver) as root:
        assert root.read("a.txt", limit=9).data == b"a\n"
        subprocess.run(["umount", "-l", str(top / "in")], check=True)
        with pytest.raises(PathBlockedError):
            root.read("a.txt", limit=9)


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_nothing_is_made_on_what_the_kernel_makes_up(
    top: Path, mount: Callable[..., None], resolver: str
) -> None:
    mount("-t", "proc", "none", str(top / "in"))
    with Root.open(top, resolver=resolver, mounts=True) as root:
        with pytest.raises(FilepactError) as caught:
            root.replace("in/self/x", b"x", mode=0o600, expected=None, token="abcd")
        assert caught.value.code == "STALE_FILE"


def test_a_root_that_is_mounted_twice_is_known_by_both_names(
    top: Path, mount: Callable[..., None]
) -> None:
    (top.parent / "again").mkdir()
    mount("--bind", str(top), str(top.parent / "again"))
    with Root.open(top) as root:
        guard = Guard([root])
        again = str(top.parent / "again")
        assert guard.find(f"{again}/plain.txt", "read").path.path == "plain.txt"
        assert guard.find(again, "list").place.path == "."
        call = read_tool_call("Write", {"file_path": f"{again}/plain.txt", "content": "x"})
        assert files_of(call, guard, again).files == {WorkspacePath(root.path, "plain.txt")}
        assert CallJudge(guard, "agent", again).inside("plain.txt") is not None
        guard.narrow([f"{again}/in"])
        with pytest.raises(PathBlockedError):
            guard.find(f"{again}/plain.txt", "read")
