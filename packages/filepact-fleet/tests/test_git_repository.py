"""Shared workspaces from and to real Git repositories, some of which were made to harm whoever looks."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest

from filepact.errors import (
    InvalidParamsError,
    NotFoundError,
    ReadFailedError,
    SharedConflictError,
    TooLargeError,
    WriteFailedError,
)
from filepact_fleet import git_repository, sharing
from filepact_fleet.git_repository import CommitRecord, GitFolder
from filepact_fleet.objects.bucket import over
from filepact_fleet.sharing import SharedPlace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

URL = "s3://team/project"
NOTE = CommitRecord("somebody", 1_700_000_000, "by hand\n")
ODD = 'od"d\\ \n ü\t.txt'


class Repository(NamedTuple):
    folder: Path

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=ann", "-c", "user.email=ann@example.com")
        done = subprocess.run(
            ["git", *who, *words],
            cwd=self.folder,
            env=os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, **files: str | bytes) -> str:
        for path, data in files.items():
            text = data if isinstance(data, bytes) else data.encode()
            (self.folder / path).write_bytes(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "of the test")
        return self.git("rev-parse", "HEAD")

    def names(self, revision: str) -> list[str]:
        return self.git("ls-tree", "-rz", "--name-only", revision).strip("\0").split("\0")


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Repository]:
    def made(name: str, *words: str) -> Repository:
        (tmp_path / name).mkdir()
        repository = Repository(tmp_path / name)
        repository.git("init", "-q", "-b", "main", *words)
        return repository

    return made


@pytest.fixture
def source(make: Callable[..., Repository]) -> Repository:
    one = make("source")
    (one.folder / "d").mkdir()
    (one.folder / "d/b.txt").write_text("b\n")
    (one.folder / "run").write_text("#!/bin/sh\n")
    (one.folder / "run").chmod(0o755)
    (one.folder / "link").symlink_to("d")
    one.git("update-index", "--add", "--cacheinfo", f"160000,{'ab' * 20},sub")
    one.git("add", "link", "run", "d")
    one.git("commit", "-q", "-m", "first")
    (one.folder / ODD).write_bytes(b"odd\r\n\0")
    one.git("add", ODD)
    one.git("commit", "-q", "-m", "second")
    return one


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> SharedPlace:
    store = pytest.importorskip("obstore.store", reason="obstore is not installed")
    bucket = over(store.MemoryStore())
    monkeypatch.setattr(sharing, "open_bucket", lambda _url: bucket)
    made = SharedPlace(URL)
    made.create("somebody")
    return made


def held(place: SharedPlace) -> dict[str, tuple[bytes, int]]:
    files = place.workspace.files(place.workspace.newest())
    return {path: (place.workspace.content(one), one.mode) for path, one in files.items()}


# -- in --------------------------------------------------------------------------------------------


def test_a_commit_is_taken_in_as_it_is_and_the_work_tree_is_not_looked_at(place, source):
    (source.folder / "run").write_text("changed since\n")
    (source.folder / "new").write_text("never committed\n")
    done = place.take_revision(str(source.folder), "main", "somebody")
    assert held(place) == {
        "d/b.txt": (b"b\n", 0o644),
        "run": (b"#!/bin/sh\n", 0o755),
        ODD: (b"odd\r\n\0", 0o644),
    }
    assert (done.number, done.files, done.commit) == (1, 3, source.git("rev-parse", "main"))
    assert done.left_out == ("link: is a link", "sub: is a submodule")


def test_any_commit_of_a_bare_repository_can_be_taken_in(place, source, make):
    bare = make("bare.git", "--bare")
    source.git("push", "-q", str(bare.folder), "main", "main~1:refs/tags/v1")
    assert place.take_revision(str(bare.folder), "v1", "somebody").files == 2
    assert place.take_revision(str(bare.folder), "main", "somebody").number == 2
    source.commit(run="another\n")
    with pytest.raises(SharedConflictError):
        place.take_revision(str(source.folder), "main", "somebody")
    place.take_revision(str(source.folder), "main", "somebody", replace=True)
    assert held(place)["run"][0] == b"another\n"


@pytest.mark.parametrize("name", ["none", "", "-h", "--all", "main:run", "HEAD^{tree}", "a\0b"])
def test_what_names_no_commit_is_said(source, name):
    with pytest.raises(NotFoundError):
        GitFolder(str(source.folder)).revision(name)


def test_a_folder_in_a_repository_is_not_taken_for_it(source):
    for folder in (source.folder / "d", source.folder / "none"):
        with pytest.raises(InvalidParamsError):
            GitFolder(str(folder))


def test_without_git_it_is_said(source, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidParamsError):
        GitFolder(str(source.folder))


def test_nothing_that_a_repository_names_is_run_and_nothing_is_fetched(place, source, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    harm = tmp_path / "harm"
    harm.write_text(f"#!/bin/sh\ntouch {marks}/$$\ncat\n")
    harm.chmod(0o755)
    for hook in ("reference-transaction", "post-index-change", "pre-auto-gc", "post-commit"):
        shutil.copy(harm, source.folder / ".git/hooks" / hook)
    for key, value in {
        "core.fsmonitor": str(harm),
        "core.pager": str(harm),
        "core.sshCommand": str(harm),
        "alias.cat-file": f"!{harm}",
        "filter.x.smudge": str(harm),
        "filter.x.clean": str(harm),
        "diff.x.textconv": str(harm),
        "extensions.partialClone": "far",
        "remote.far.url": f"ext::{harm}",
        "remote.far.promisor": "true",
        "protocol.ext.allow": "always",
        "uploadpack.packObjectsHook": str(harm),
    }.items():
        source.git("config", key, value)
    (source.folder / ".git/info/attributes").write_text("* filter=x diff=x\n")
    name = source.git("rev-parse", "main:run")
    assert place.take_revision(str(source.folder), "main", "somebody").files == 3
    assert place.commit(str(source.folder), "out").made
    # A clone that is not whole would have Git ask another machine for what is missing.
    (source.folder / ".git/objects" / name[:2] / name[2:]).unlink()
    with pytest.raises(ReadFailedError):
        place.take_revision(str(source.folder), "main", "somebody")
    assert not list(marks.iterdir())


def test_names_that_no_checkout_may_have_are_left_out(place, make):
    one = make("odd")
    (one.folder / "x").write_text("x")
    blob = one.git("hash-object", "-w", "x")
    rows = b"".join(
        b"100644 blob %s\t%s\0" % (blob.encode(), name)
        for name in (b".filepact-x", b"\xff", b"n" * 300, b"ok")
    )
    tree = subprocess.run(
        ["git", "mktree", "-z"], cwd=one.folder, input=rows, capture_output=True, check=True
    )
    commit = one.git("commit-tree", "-m", "x", tree.stdout.decode().strip())
    done = place.take_revision(str(one.folder), commit, "somebody")
    assert set(held(place)) == {"ok"}
    assert len(done.left_out) == 3


def test_too_much_is_refused_before_any_of_it_is_read(place, source, monkeypatch):
    monkeypatch.setattr(git_repository, "MOST_FILES", 2)
    with pytest.raises(TooLargeError):
        place.take_revision(str(source.folder), "main", "somebody")
    monkeypatch.undo()
    monkeypatch.setattr(git_repository, "_MOST_NAMES", 10)
    with pytest.raises(TooLargeError), GitFolder(str(source.folder)).revision("main") as files:
        list(files.states())
    monkeypatch.setattr(git_repository, "_MOST_NAMES", 10_000)
    monkeypatch.setattr(git_repository, "LARGEST", 5)
    with GitFolder(str(source.folder)).revision("main") as files:
        assert [path for path, _ in files.states()] == ["d/b.txt"]
        assert sum("bytes" in one for one in files.left_out) == 2


def test_a_program_that_stands_still_is_ended(source, monkeypatch, tmp_path):
    repository = GitFolder(str(source.folder))
    stuck = tmp_path / "git"
    stuck.write_text("#!/bin/sh\nexec sleep 600\n")
    stuck.chmod(0o755)
    repository.command[0] = str(stuck)
    monkeypatch.setattr(git_repository, "_PATIENCE", 0.05)
    with pytest.raises(ReadFailedError):
        repository.revision("main")


# -- out -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_a_version_becomes_a_commit_of_a_new_branch(place, source, make, form):
    place.take_revision(str(source.folder), "main", "ann <x> agent")
    bare = make("bare.git", "--bare", f"--object-format={form}")
    done = place.commit(str(bare.folder), "main")
    assert (done.number, done.files, done.made) == (1, 3, True)
    assert done.commit == bare.git("rev-parse", "main")
    bare.git("fsck", "--strict")
    assert sorted(bare.names("main")) == sorted(held(place))
    assert bare.git("ls-tree", "main", "run").startswith("100755")
    assert bare.git("show", "main:d/b.txt") == "b"
    change = place.workspace.newest().change
    assert bare.git("log", "-1", "--format=%an <%ae>|%s|%b", "main") == (
        f"ann x agent <>|Version 1 of {URL}|Filepact-Version: 1\nFilepact-Change: {change}"
    )


def test_the_next_version_goes_on_top_and_the_same_one_changes_nothing(place, source, tmp_path):
    place.take_revision(str(source.folder), "main", "somebody")
    source.git("branch", "out", "main")
    assert not place.commit(str(source.folder), "out").made
    assert source.git("rev-parse", "out") == source.git("rev-parse", "main")
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "run").write_text("other\n")
    place.take_in(str(folder), "somebody", replace=True)
    head = place.workspace.newest()
    content = place.workspace.files(head)["run"].state
    wanted = {"d/b.txt": None, "d": content, "new/deep": content}
    data = place.workspace.content(place.workspace.files(head)["run"])
    place.workspace.publish("c9999", "bob", wanted, lambda _: data, lambda *_: True)
    before = source.git("status", "--porcelain")
    done = place.commit(str(source.folder), "out")
    assert done.made
    assert source.git("rev-parse", "out~1") == source.git("rev-parse", "main")
    # Links and submodules, which no shared workspace has, are not taken out of it.
    assert set(source.names("out")) == {"d", "new/deep", "run", ODD, "link", "sub"}
    assert source.git("ls-tree", "out", "run").startswith("100644")
    assert place.commit(str(source.folder), "out") == sharing.CommitResult(
        3, 4, done.commit, made=False
    )
    assert source.git("status", "--porcelain") == before
    assert (source.folder / "d/b.txt").read_text() == "b\n"


def test_a_branch_that_is_in_use_in_a_work_tree_is_left_alone(place, source, make, tmp_path):
    place.take_revision(str(source.folder), "main", "somebody")
    source.git("worktree", "add", "-q", "-b", "aside", str(tmp_path / "aside"))
    for repository, branch in ((source, "main"), (source, "aside"), (make("unborn"), "main")):
        with pytest.raises(InvalidParamsError):
            place.commit(str(repository.folder), branch)
    for branch in ("", "-x", "a..b", "a b", "x.lock", "a\0b"):
        with pytest.raises(InvalidParamsError):
            place.commit(str(source.folder), branch)


@pytest.mark.parametrize("born", [True, False])
def test_a_branch_that_moves_meanwhile_is_not_taken_back(source, born):
    if born:
        source.git("branch", "out", "main~1")

    def contents():
        yield "one", b"1"
        # While files are being written somebody else moves the branch.
        source.git("branch", "-f", "out", "main")
        yield "two", b"2"

    repository = GitFolder(str(source.folder))
    files = {"a": ("one", 0o644), "b": ("two", 0o644)}
    with pytest.raises(SharedConflictError):
        repository.write("out", NOTE, files, contents())
    assert source.git("rev-parse", "out") == source.git("rev-parse", "main")


def test_a_repository_that_cannot_be_written_to_is_said(source, make):
    repository = GitFolder(str(source.folder))
    source.git("branch", "out/below", "main")
    with pytest.raises(WriteFailedError):
        repository.write("out", NOTE, {"a": ("one", 0o644)}, [("one", b"1")])
