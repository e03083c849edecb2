"""What Git tracks is found by a walk, whatever the folders are called and whatever is ignored."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filepact.fs.root import Root
from filepact.fs.walk import TreeReader
from filepact.fs.work_trees import read_index
from filepact.text.gitignore import DEFAULT_IGNORED

GIT = shutil.which("git")
pytestmark = pytest.mark.skipif(GIT is None, reason="needs git")


def git(top, *words):
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(top.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b.invalid",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b.invalid",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        [GIT, "-c", "protocol.file.allow=always", *words],
        cwd=top,
        check=True,
        capture_output=True,
        env=environment,
    )
    return done.stdout.decode()


@pytest.fixture
def top(tmp_path):
    folder = tmp_path / "top"
    folder.mkdir()
    git(folder, "init", "-q", ".")
    return folder


def make(top, names):
    for name in names:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text\n")


def tracked(top):
    listed = git(top, "ls-files", "-z", "--recurse-submodules").split("\0")
    return {name for name in listed if name}


def untracked(top):
    listed = git(top, "ls-files", "-z", "--others", "--exclude-standard").split("\0")
    return {name for name in listed if name}


def seen(top, base="."):
    with (
        Root.open(top) as root,
        TreeReader(root, base, allow=lambda _path, _is_dir: True) as entries,
    ):
        return {entry.path for entry in entries if entry.kind in ("file", "link")}


@pytest.mark.parametrize("name", sorted(DEFAULT_IGNORED - {".git"}))
@pytest.mark.parametrize("rule", ["", "{}/", "{}/*", "*"])
def test_a_folder_of_any_name_is_searched_as_far_as_it_is_tracked(top, name, rule):
    make(top, [f"{name}/a.js", f"pkg/{name}/deep/b.js", f"{name}-x/c.js", "src/d.js"])
    git(top, "add", ".")
    git(top, "commit", "-qm", "x")
    (top / ".gitignore").write_text(rule.format(name) + "\n")
    git(top, "add", "-f", ".gitignore")
    make(top, [f"{name}/new.js", f"other/{name}/e.js"])
    assert seen(top) >= tracked(top)
    assert f"other/{name}/e.js" not in seen(top)
    if rule:
        assert seen(top) == tracked(top) | untracked(top) - {f"other/{name}/e.js"}


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_every_version_of_the_index_is_read(tmp_path, version, kind):
    top = tmp_path / "top"
    top.mkdir()
    git(top, "init", "-q", f"--object-format={kind}", ".")
    git(top, "config", "index.version", str(version))
    long = "/".join(["n" * 200] * 25)  # over what the length in an entry can say
    make(top, ["build/a", "build.x", "ä/b c", "dist/x/y", "zz", f"{long[:4000]}/z"])
    git(top, "add", ".")
    if version == 3:
        make(top, ["later"])
        git(top, "add", "--intent-to-add", "later")
    names, shared = read_index((top / ".git" / "index").read_bytes())
    assert (top / ".git" / "index").read_bytes()[7] == version
    assert {name.decode() for name in names} == tracked(top)
    assert shared == ""
    assert seen(top) == tracked(top)


def test_a_split_index_is_read_with_the_one_it_shares(top):
    make(top, ["build/a", "src/b"])
    git(top, "add", ".")
    git(top, "update-index", "--split-index")
    make(top, ["dist/c"])
    git(top, "add", ".")
    assert seen(top) == {"build/a", "src/b", "dist/c"}


def test_submodules_and_linked_work_trees_inside_the_root_have_their_own(tmp_path, top):
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q", ".")
    make(inner, ["dist/a.js", "x"])
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "x")
    git(top, "submodule", "--quiet", "add", str(inner), "vendor/build")
    git(top, "commit", "-qm", "x")
    make(top, ["vendor/build/venv/untracked"])
    assert seen(top) >= tracked(top) >= {"vendor/build/dist/a.js"}
    assert "vendor/build/venv/untracked" not in seen(top)

    make(top, ["dist/b.js"])
    git(top, "add", ".")
    git(top, "commit", "-qm", "y")
    git(top, "worktree", "add", "-q", "trees/one")
    make(top, ["trees/one/build/untracked"])
    assert "trees/one/dist/b.js" in seen(top)
    assert "trees/one/build/untracked" not in seen(top)


def test_of_a_tree_whose_index_lies_outside_the_root_nothing_is_hidden_by_a_plain_name(
    tmp_path, top
):
    make(top, ["build/a", "x"])
    git(top, "add", ".")
    git(top, "commit", "-qm", "x")
    linked = tmp_path / "linked"
    git(top, "worktree", "add", "-q", str(linked))
    assert seen(linked) >= {"build/a", "x"}


def test_in_an_untracked_folder_that_is_named_no_folder_is_left_out_for_being_untracked(top):
    make(top, ["src/a", "node_modules/m/dist/b.js", "node_modules/m/venv/pyvenv.cfg"])
    git(top, "add", "src")
    assert seen(top) == {"src/a"}
    assert seen(top, "node_modules/m") == {"node_modules/m/dist/b.js"}
    make(top, ["src/build/c"])
    assert seen(top, "src") == {"src/a"}


def test_a_change_of_the_index_is_noticed(top):
    make(top, ["build/a"])
    with Root.open(top) as root:

        def found():
            with TreeReader(root, allow=lambda _path, _is_dir: True) as entries:
                return [entry.path for entry in entries if entry.kind == "file"]

        assert found() == []
        git(top, "add", ".")
        assert found() == ["build/a"]
        git(top, "rm", "-q", "--cached", "build/a")
        assert found() == []


NAMES = ["a", "build", "dist", "x.o", "node_modules", ".cache", "build-x", "b"]
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
RULES = ["build/", "dist", "*.o", "/a", "a/*", "!a/b", "!build/", "node_modules", "*", "b/**/a"]


@settings(
    max_examples=int(os.environ.get("FILEPACT_EXAMPLES", "40")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    known=st.lists(PATHS, max_size=8),
    new=st.lists(PATHS, max_size=8),
    rules=st.lists(st.sampled_from(RULES), max_size=4),
)
def test_all_that_is_tracked_is_seen_and_nothing_that_git_ignores(tmp_path, known, new, rules):
    top = tmp_path / "top"
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    git(top, "init", "-q", ".")
    for names in (known, new):
        for name in names:
            try:
                make(top, [name])
            except OSError:
                continue  # A file stands where a folder is wanted, or the other way round.
        if names is known:
            git(top, "add", ".")
    (top / ".gitignore").write_text("\n".join(rules) + "\n")
    git(top, "add", "-f", ".gitignore")
    assert tracked(top) <= seen(top) <= tracked(top) | untracked(top)
