"""The walk: order, links, limits, rules, and trees that change under it."""

from __future__ import annotations

import os
import shutil

import pytest

from filepact.errors import FilepactError, ReadFailedError, TooLargeError
from filepact.fs import trigrams
from filepact.fs import walk as walking
from filepact.fs.read import read_regular
from filepact.fs.root import Root
from filepact.fs.walk import TreeReader
from filepact.workspace.find import find_files
from tests.needs import PROCESSES
from tests.unprivileged import unprivileged


@pytest.fixture
def top(tmp_path):
    folder = tmp_path / "top"
    folder.mkdir()
    return folder


def make(top, files):
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def yes(path, is_dir):
    return True


def paths(top, base=".", **options):
    root = Root.open(str(top))
    try:
        with TreeReader(root, base, **{"allow": yes, **options}) as entries:
            return [entry.path for entry in entries]
    finally:
        root.close()


def test_entries_come_in_the_order_of_their_paths(top):
    make(top, dict.fromkeys(["b/x", "b.txt", "a/z", "B", "a-b/y", "a.c", ".hidden", "ä"], ""))
    found = [path for path in paths(top) if (top / path).is_file()]
    assert found == sorted(found)
    assert found == [".hidden", "B", "a-b/y", "a.c", "a/z", "b.txt", "b/x", "ä"]


def walked(top, base, **options):
    """All that a walk finds, and says of it."""
    root = Root.open(str(top))
    try:
        with TreeReader(root, base, **{"allow": yes, **options}) as entries:
            found = [batch[:-1] for batch in entries.batches()]
            said = ("left_out", "ignored", "unreadable", "too_deep", "cut", "looked_at", "complete")
            return found, [getattr(entries, what) for what in said]
    finally:
        root.close()


@pytest.mark.parametrize("library", [True, False])
def test_listing_ahead_finds_what_a_walk_from_folder_to_folder_finds(top, library, monkeypatch):
    if not library:
        monkeypatch.setattr(trigrams, "_library", lambda: None)
    names = [f"{a}/{b}/{c}/{d}.txt" for a in "abc" for b in "xyz" for c in "klmn" for d in "12"]
    names += ["a/build/CMakeCache.txt", "b/build/keep.py", "c/node_modules/x/y.js", "ä/ö/ü"]
    make(top, dict.fromkeys(names, ""))
    make(
        top, {"b/.gitignore": "k/\n1.txt\n!x/k/1.txt\n", "c/y/.ignore": "*.txt\n", ".git/HEAD": ""}
    )
    (top / "a" / "link").symlink_to("x")
    os.mkfifo(top / "a" / "x" / "pipe")
    (top / "c" / "empty").mkdir()
    (top / "b" / "z" / ".gitignore").symlink_to("k")
    os.mkfifo(top / "b" / "y" / "k" / ".ignore")
    some = {"allow": lambda path, _folder: "/y" not in path}
    for base in (".", "a", "b/x"):
        for options in (
            {},
            {"max_depth": 1},
            {"max_depth": 2},
            {"max_depth": 3},
            some,
            {"most": 30},
        ):
            assert walked(top, base, **options, ahead=True) == walked(top, base, **options)


@pytest.mark.parametrize("base", [".", "a", "a/b"])
@pytest.mark.parametrize("max_depth", [2, 3, None])
def test_as_much_is_listed_ahead_as_a_walk_goes_down_and_no_more(top, base, max_depth, monkeypatch):
    make(top / base, {f"{one}/{two}/x/y/f": "" for one in "ghijk" for two in "ghijk"})
    asked, list_some = [], Root.list_some
    monkeypatch.setattr(
        Root, "list_some", lambda root, some: [asked.append(some), list_some(root, some)][1]
    )
    walked(top, base, max_depth=max_depth, ahead=True)
    assert max(map(len, asked)) > 3
    listed = [os.path.relpath(path, base).count("/") + 1 for some in asked for path in some]
    assert max(listed) == (max_depth - 1 if max_depth else 4)


def test_a_folder_that_went_after_it_was_listed_ahead_is_no_error(top):
    make(top, dict.fromkeys(["a/1", "b/1", "c/1"], ""))
    root = Root.open(str(top))
    with TreeReader(root, allow=yes, ahead=True) as entries:
        batches = entries.batches()
        next(batches)
        shutil.rmtree(top / "a")
        assert [batch.prefix + name for batch in batches for name in batch.names] == ["b/1", "c/1"]
        assert entries.unreadable == ["a"]
        assert not entries.complete
    root.close()


def test_a_folder_stands_before_its_contents(top):
    make(top, {"a/b/c": ""})
    root = Root.open(str(top))
    with TreeReader(root, allow=yes) as entries:
        seen = [(e.path, e.name, e.kind, e.depth) for e in entries]
        assert entries.complete
    root.close()
    assert seen == [
        ("a", "a", "folder", 1),
        ("a/b", "b", "folder", 2),
        ("a/b/c", "c", "file", 3),
    ]


def test_links_are_listed_and_never_followed(top):
    make(top, {"a/file": "x"})
    (top / "a" / "up").symlink_to("..")
    (top / "loop").symlink_to("loop")
    (top / "out").symlink_to("/")
    os.mkfifo(top / "pipe")
    root = Root.open(str(top))
    with TreeReader(root, allow=yes) as entries:
        kinds = {e.path: e.kind for e in entries}
    root.close()
    assert kinds == {
        "a": "folder",
        "a/file": "file",
        "a/up": "link",
        "loop": "link",
        "out": "link",
        "pipe": "other",
    }


def test_files_open_relative_to_their_folder(top):
    make(top, {"a/b": "inside", "c": ""})
    (top / "link").symlink_to("a/b")
    root = Root.open(str(top))
    with TreeReader(root, allow=yes) as entries:
        for entry in entries:
            if entry.kind == "file":
                assert entry.read(limit=6) == (top / entry.path).read_bytes()
            if entry.name == "b":
                with pytest.raises(TooLargeError):
                    entry.read(limit=5)
            if entry.kind == "link":
                with pytest.raises(ReadFailedError) as caught:
                    entry.read(limit=100)
                assert str(top) not in caught.value.message
    root.close()


def test_a_file_exchanged_for_a_pipe_or_a_link_is_not_read(top):
    make(top, {"a": "x", "b": "y"})
    root = Root.open(str(top))
    with TreeReader(root, allow=yes) as entries:
        for entry in entries:
            (top / entry.name).unlink()
            if entry.name == "a":
                os.mkfifo(top / "a")
            else:
                (top / "b").symlink_to("/etc/passwd")
            with pytest.raises(ReadFailedError):
                entry.read(limit=100)
    root.close()


def test_a_folder_that_vanishes_is_noted_and_the_walk_goes_on(top):
    make(top, {"a/x": "", "b/x": "", "c": ""})
    root = Root.open(str(top))
    seen = []
    with TreeReader(root, allow=yes) as entries:
        for entry in entries:
            seen.append(entry.path)
            if entry.path == "a":
                shutil.rmtree(top / "a")
        assert entries.unreadable == ["a"]
        assert not entries.complete
    root.close()
    assert seen == ["a", "b", "b/x", "c"]


def test_a_folder_exchanged_for_a_link_is_not_entered(top):
    make(top, {"a/x": "", "z/secret": ""})
    root = Root.open(str(top))
    seen = []
    with TreeReader(root, allow=yes) as entries:
        for entry in entries:
            seen.append(entry.path)
            if entry.path == "a":
                shutil.rmtree(top / "a")
                (top / "a").symlink_to("z")
        assert entries.unreadable == ["a"]
    root.close()
    assert "a/secret" not in seen


def test_what_the_guard_refuses_is_neither_shown_nor_entered(top):
    make(top, {"keys/a": "", ".env": "", "ok/.env": "", "ok/b": ""})
    asked = []

    def allow(path, is_dir):
        asked.append((path, is_dir))
        return "keys" not in path and not path.endswith(".env")

    assert paths(top, allow=allow) == ["ok", "ok/b"]
    assert sorted(asked) == [
        (".env", False),
        ("keys", True),
        ("ok", True),
        ("ok/.env", False),
        ("ok/b", False),
    ]


def test_ignore_files_and_default_names_leave_entries_out(top):
    make(
        top,
        {
            ".gitignore": "*.log\n/out/\n",
            ".ignore": "!kept.log\n",
            "a.log": "",
            "kept.log": "",
            "out/x": "",
            "sub/out/x": "",
            "sub/.gitignore": b"\xef\xbb\xbflocal\r\n",
            "sub/local": "",
            "local": "",
            "node_modules/m/index.js": "",
            "sub/__pycache__/x.pyc": "",
            "dist": "a file",
        },
    )
    shown = paths(top)
    assert shown == [
        ".gitignore", ".ignore", "dist", "kept.log", "local", "sub", "sub/.gitignore", "sub/out",
        "sub/out/x",
    ]  # fmt: skip
    assert "node_modules/m/index.js" in paths(top, ignore=False)
    assert "a.log" in paths(top, ignore=False)


def test_the_exclude_file_of_a_repository_counts(top):
    make(top, {".git/info/exclude": "*.tmp\n", "a.tmp": "", "b": ""})
    assert paths(top) == ["b"]


@pytest.mark.parametrize("mark", [".git/HEAD", ".git"])
def test_that_rules_above_the_root_are_not_read_is_told(top, mark):
    make(top, {mark: "x", ".gitignore": "*.log\n", "in/deep/a.log": "a\n"})
    root = Root.open(str(top / "in" / "deep"))
    found = find_files(root, ".", "**/*", allow=yes)
    assert found.paths == ("a.log",)
    assert found.unsearched.more_rules
    # From here on Git reads no rules above.
    make(top, {"in/deep/.git/HEAD": "x"})
    assert not find_files(root, ".", "**/*", allow=yes).unsearched.more_rules
    root.close()
    root = Root.open(str(top))
    assert not find_files(root, ".", "**/*", allow=yes).unsearched.more_rules
    root.close()


def test_rules_of_a_repository_reach_a_base_through_folders_that_are_none(top):
    make(top, {".git/info/exclude": "*.tmp\n", "a/b/x.tmp": "", "a/b/y": ""})
    assert paths(top, "a/b") == ["a/b/y"]


@pytest.mark.parametrize("common", ["../..", "{top}/.git"], ids=["relative", "absolute"])
def test_linked_work_trees_share_the_exclude_file_of_their_repository(top, common):
    make(
        top,
        {
            ".git/info/exclude": "*.tmp\n",
            ".git/worktrees/w/commondir": common.format(top=top) + "\n",
            ".git/worktrees/w/info/exclude": "*.log\n",
            "w/.git": f"gitdir: {top}/.git/worktrees/w\n",
            "w/a.tmp": "",
            "w/b.log": "",
        },
    )
    assert paths(top, "w") == ["w/.git", "w/b.log"]


def test_an_exclude_file_outside_of_the_root_is_not_read(tmp_path, top):
    make(tmp_path, {"main/.git/info/exclude": "*\n"})
    make(
        top,
        {
            ".git/worktrees/w/commondir": f"{tmp_path}/main/.git\n",
            "w/.git": f"gitdir: {top}/.git/worktrees/w\n",
            "w/a": "",
        },
    )
    assert paths(top, "w") == ["w/.git", "w/a"]


def test_rules_do_not_reach_into_a_nested_repository(top):
    make(
        top,
        {
            ".gitignore": "*.log\n",
            "inner/.git/HEAD": "",
            "inner/a.log": "",
            "work/.git": "gitdir: elsewhere\n",
            "work/a.log": "",
            "plain/a.log": "",
        },
    )
    shown = paths(top)
    assert "inner/a.log" in shown
    assert "work/a.log" in shown
    assert "plain/a.log" not in shown


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("out", ["out/b", "out/deep", "out/deep/c"]),
        ("out/deep", ["out/deep/c"]),
        (
            "node_modules/m",
            ["node_modules/m/dist", "node_modules/m/dist/x.js", "node_modules/m/index.js"],
        ),
        ("src", ["src/x.c"]),
    ],
)
def test_a_folder_named_outright_is_never_ignored(top, base, expected):
    make(
        top,
        {
            ".gitignore": "/out/\n*.o\n",
            "out/b": "",
            "out/b.o": "",
            "out/deep/c": "",
            "src/x.c": "",
            "src/x.o": "",
            "node_modules/m/index.js": "",
            "node_modules/m/dist/x.js": "",
        },
    )
    assert paths(top, base) == expected


@pytest.mark.parametrize(
    "mark",
    [
        "build/CACHEDIR.TAG",
        "build/CMakeCache.txt",
        "build/bdist.linux-x86_64/x",
        "build/tsconfig.tsbuildinfo",
        "coverage/lcov.info",
        "venv/pyvenv.cfg",
        "dist/.vite/manifest.json",
    ],
)
def test_outside_of_git_a_plain_name_is_left_out_only_with_the_marks_of_a_build(top, mark):
    make(top, dict.fromkeys(["build/a", "coverage/a", "dist/a", "venv/a"], ""))
    assert [path for path in paths(top) if path.endswith("/a")] == [
        "build/a", "coverage/a", "dist/a", "venv/a",
    ]  # fmt: skip
    make(top, {mark: ""})
    folder = mark.partition("/")[0]
    root = Root.open(str(top))
    with TreeReader(root, allow=yes) as entries:
        assert f"{folder}/a" not in [entry.path for entry in entries]
        assert entries.left_out == [(folder, "made by a build")]
    root.close()
    assert f"{folder}/a" in paths(top, folder)


def test_what_is_left_out_is_told_but_not_what_the_guard_refuses(top):
    make(
        top,
        {
            ".gitignore": "out/\n*.o\nkeys/\n*.key\n",
            "out/x": "",
            "keys/x": "",
            "a.o": "",
            "a.key": "",
            "node_modules/x": "",
            "__pycache__/x.pyc": "",
            ".env": "",
        },
    )

    def allow(path, is_dir):
        return path not in ("keys", "a.key", ".env")

    root = Root.open(str(top))
    with TreeReader(root, allow=allow) as entries:
        assert [entry.path for entry in entries] == [".gitignore"]
        assert sorted(entries.left_out) == [("node_modules", ""), ("out", "ignored")]
        assert entries.ignored == ["a.o"]
        assert entries.refused == 1
    root.close()


def _link(top, git):
    make(top, {"real": ""})
    (git / "index").symlink_to(top / "real")


def _loop(top, git):
    (git / "index").symlink_to("index")


@pytest.mark.parametrize(
    "plant",
    [
        lambda _top, git: os.mkfifo(git / "index"),
        _link,
        _loop,
        lambda _top, git: (git / "index").mkdir(),
        lambda _top, git: (git / "index").write_bytes(b"DIRC\0\0\0\2\xff\xff\xff\xff"),
        lambda _top, git: (git / "index").write_bytes(b"\0" * 1_000),
        lambda _top, git: (git / "index").write_bytes(b""),
    ],
    ids=["pipe", "link", "loop", "folder", "count", "zeros", "empty"],
)
def test_an_index_that_is_none_hides_nothing_and_stops_nothing(top, plant):
    make(top, {".git/HEAD": "", "dist/a": "", "b": "", "node_modules/m": ""})
    plant(top, top / ".git")
    assert {"b", "dist/a"} <= set(paths(top))
    assert "node_modules/m" not in paths(top)


@pytest.mark.parametrize(
    "said",
    ["gitdir: /etc", "gitdir: ../..", "gitdir: ", "x" * 9_000, "gitdir: ../top/.git/./"],
    ids=range(5),
)
def test_a_work_tree_that_leads_elsewhere_is_not_followed(tmp_path, top, said):
    (tmp_path / "index").write_bytes(b"DIRC" + bytes([0, 0, 0, 2, 0, 0, 0, 0]) + bytes(20))
    make(top, {".git": said, "dist/a": "", "b": ""})
    assert {"b", "dist/a"} <= set(paths(top))


def test_an_ignore_file_that_is_no_regular_file_does_nothing(top):
    make(top, {"rules": "*\n", "a": "", "sub/b": ""})
    (top / ".gitignore").symlink_to("rules")
    (top / "sub" / ".gitignore").mkdir()
    os.mkfifo(top / "sub" / ".ignore")
    root = Root.open(str(top))
    with TreeReader(root, allow=yes) as entries:
        shown = [entry.path for entry in entries]
        assert entries.unreadable == [".gitignore", "sub/.ignore"]
    root.close()
    assert "a" in shown
    assert "sub/b" in shown


def test_an_endless_ignore_file_is_noted(top):
    make(top, {".gitignore": "a\n" * 200_000, "a": ""})
    root = Root.open(str(top))
    with TreeReader(root, allow=yes) as entries:
        assert [entry.path for entry in entries] == [".gitignore", "a"]
        assert entries.unreadable == [".gitignore"]
    root.close()


def test_the_depth_can_be_bounded(top):
    make(top, {"a/b/c/d": ""})
    assert paths(top, max_depth=1) == ["a"]
    assert paths(top, max_depth=3) == ["a", "a/b", "a/b/c"]


def test_folders_beyond_the_depth_limit_are_counted(top, monkeypatch):
    monkeypatch.setattr(walking, "MAX_DEPTH", 3)
    make(top, {"a/b/c/d/e": "", "z": ""})
    root = Root.open(str(top))
    with TreeReader(root, allow=yes) as entries:
        assert [e.path for e in entries] == ["a", "a/b", "a/b/c", "z"]
        assert entries.too_deep == 1
        assert not entries.complete
    root.close()


def test_a_very_deep_tree_is_walked(top):
    deepest = top
    os.chdir(top)
    try:
        for _ in range(390):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir("/")
    assert len(paths(top)) == 390
    assert deepest.exists()


def test_a_walk_ends_at_its_limit_of_entries(top, monkeypatch):
    monkeypatch.setattr(walking, "MAX_ENTRIES", 5)
    make(top, dict.fromkeys(["a/1", "a/2", "a/3", "b/1", "c/1", "d"], ""))
    root = Root.open(str(top))
    with TreeReader(root, allow=yes) as entries:
        seen = [entry.path for entry in entries]
        assert entries.cut
        assert not entries.complete
    root.close()
    assert 4 <= len(seen) <= 7


def test_a_walk_stops_when_it_is_cancelled(top):
    make(top, {"a/x": "", "b": ""})
    root = Root.open(str(top))
    with TreeReader(root, allow=yes, cancelled=lambda: True) as entries:
        assert [entry.path for entry in entries] == ["a"]
        assert entries.cancelled
    root.close()


@PROCESSES
def test_every_descriptor_is_closed_also_when_the_walk_is_left_early(top):
    make(top, {"a/b/c": "", "d": ""})
    root = Root.open(str(top))
    before = len(os.listdir("/proc/self/fd"))
    with TreeReader(root, allow=yes) as entries:
        next(iter(entries))
    with TreeReader(root, allow=yes) as entries:
        list(entries)
    with TreeReader(root, "a/b", allow=yes) as entries:
        list(entries)
    assert len(os.listdir("/proc/self/fd")) == before
    root.close()


def test_a_base_that_is_not_there_is_an_error(top):
    with pytest.raises(FilepactError):
        paths(top, "missing")


def test_a_folder_without_permission_is_noted(top):
    make(top, {"a/x": "", "b": ""})
    (top / "a").chmod(0)
    root = Root.open(str(top))

    def walked():
        with TreeReader(root, allow=yes) as entries:
            return [entry.path for entry in entries], entries.unreadable

    assert unprivileged(walked) == (["a", "b"], ["a"])
    (top / "a").chmod(0o755)
    root.close()


@PROCESSES
def test_a_file_without_a_true_size_is_read_to_its_end():
    folder = os.open("/proc/self", os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert b"Name:" in read_regular(folder, "status", 100_000)
        assert read_regular(folder, "status", 10) is None
    finally:
        os.close(folder)
