"""The index of a root's names by itself: what it takes, what it gives up, and what it never shows."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from filepact.domain.policy import EntryFilter
from filepact.fs.inotify import InotifyWatcher
from filepact.fs.root import Root
from filepact.fs.walk import TreeReader
from filepact_index import name_index
from filepact_index.name_index import NameIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator
    from pathlib import Path


class Everything(EntryFilter):
    """Lets everything be seen, and can be compared."""

    def __init__(self) -> None:
        super().__init__(lambda _path, _is_folder: True)

    @property
    def key(self) -> Hashable:
        return "everything"


ALL = Everything()


@pytest.fixture
def opened(root: Path) -> Iterator[Root]:
    with Root.open(root) as one:
        watcher = InotifyWatcher.open(one)
        if watcher is None:
            pytest.skip("no notices on this file system")
        watcher.close()
        yield one


@pytest.fixture
def index(opened: Root) -> Iterator[NameIndex]:
    made = NameIndex(opened)
    yield made
    made.close()


def fill(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def names(index: NameIndex, base: str = ".", glob: str = "**/*") -> list[str] | None:
    if index.walk(base, ALL) is None:
        return None
    files = index.files(base, ALL, glob)
    assert files is not None
    assert files.among == set(files.paths)
    return files.paths


def on_disk(opened: Root) -> list[str]:
    with TreeReader(opened, ".", allow=ALL) as entries:
        return sorted(entry.path for entry in entries if entry.kind == "file")


def git(root: Path, *words: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words], cwd=root, env=environment, check=True)


def test_before_it_is_built_it_knows_nothing(index: NameIndex) -> None:
    assert index.refresh() is None
    assert names(index) is None


def test_whoever_gives_up_can_build_it_later(index: NameIndex, root: Path) -> None:
    fill(root, "a/b.txt")
    assert not index.build(lambda: True)
    assert not index.unusable
    assert index.build()
    assert names(index) == ["a/b.txt"]


def test_more_names_than_it_takes_make_it_unusable(opened: Root, root: Path) -> None:
    fill(root, *(f"{number}.txt" for number in range(5)))
    few = NameIndex(opened, most=4)
    assert not few.build()
    assert few.unusable
    assert names(few) is None


def test_names_that_become_too_many_are_given_up(opened: Root, root: Path) -> None:
    fill(root, "1.txt", "2.txt")
    few = NameIndex(opened, most=3)
    assert few.build()
    fill(root, "3.txt", "4.txt")
    assert few.refresh() is None
    assert not few.ready


def test_a_root_that_goes_while_it_is_listed_has_an_index_once_it_is_back(
    index: NameIndex, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(root, "a.txt")
    plain, moved = InotifyWatcher.open, root.with_name("moved")

    def watched(asked: Root) -> InotifyWatcher | None:
        made = plain(asked)
        root.rename(moved)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(InotifyWatcher, "open", watched)
        assert not index.build()
    moved.rename(root)
    assert index.build()
    assert names(index) == ["a.txt"]


def test_only_so_many_readers_views_and_globs_are_kept(index: NameIndex, root: Path) -> None:
    folders = [f"d{number:02}" for number in range(12)]
    fill(root, *(f"{folder}/a.txt" for folder in folders))
    assert index.build()
    for folder in folders:
        assert names(index, folder) == [f"{folder}/a.txt"]
    assert index.files(folders[0], ALL, "**/*") is None
    for number in range(8):
        assert names(index, glob=f"d0{number}/*") == [f"d0{number}/a.txt"]
    made: list[int] = []

    def make(number: int) -> Callable[[], int]:
        return lambda: made.append(number) or number

    for _ in range(2):
        for number in range(20):
            assert index.answer(".", ALL, number, make(number), lambda _: True) == number
    assert len(made) == 40
    assert index.answer(".", ALL, 19, make(19), lambda _: True) == 19
    assert len(made) == 40


def test_a_walk_that_is_given_up_is_not_kept(index: NameIndex, root: Path) -> None:
    fill(root, "a/b.txt")
    assert index.build()
    index.walk(".", ALL, cancelled=lambda: True)
    assert index.files(".", ALL, "**/*") is None
    assert names(index) == ["a/b.txt"]


def test_a_walk_to_some_depth_is_made_for_whoever_asks(index: NameIndex, root: Path) -> None:
    fill(root, "a/b/c.txt", "d.txt")
    assert index.build()
    walked = index.walk(".", ALL, max_depth=1)
    assert walked is not None
    with walked as entries:
        assert {entry.name for entry in entries} == {"a", "d.txt"}


def test_rules_that_went_with_their_folder_are_asked_no_more(
    index: NameIndex, opened: Root, root: Path
) -> None:
    fill(root, "d/a.log", "d/b.txt", "c.txt")
    assert index.build()
    (root / "d" / ".gitignore").write_text("*.log\n")
    shutil.rmtree(root / "d")
    assert index.refresh() is not None
    assert names(index) == on_disk(opened) == ["c.txt"]


def test_a_folder_that_goes_while_it_is_listed_is_not_looked_into(
    index: NameIndex, opened: Root, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(root, "a/b/c/deep.txt", "z.txt")
    plain = name_index.list_folder

    def listed(asked: Root, descriptor: int, path: str, *more: object, **how: object) -> object:
        found = plain(asked, descriptor, path, *more, **how)  # type: ignore[arg-type]
        if path == "a/b":
            shutil.rmtree(root / "a")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(name_index, "list_folder", listed)
        assert index.build()
    assert names(index) == on_disk(opened) == ["z.txt"]


def test_what_is_no_folder_any_more_when_it_is_opened_is_not_looked_into(
    index: NameIndex, opened: Root, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(root, "a/b.txt", "z.txt")
    plain = name_index.list_folder

    def listed(asked: Root, descriptor: int, path: str, *more: object, **how: object) -> object:
        found = plain(asked, descriptor, path, *more, **how)  # type: ignore[arg-type]
        if path == "." and (root / "a").is_dir():
            shutil.rmtree(root / "a")
            (root / "a").symlink_to("z.txt")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(name_index, "list_folder", listed)
        assert index.build()
    assert names(index) == on_disk(opened) == ["z.txt"]


def test_of_an_ignored_folder_only_what_is_tracked_is_seen_and_nothing_from_within(
    index: NameIndex, opened: Root, root: Path
) -> None:
    fill(root, "out/kept/a.txt", "out/kept/b.txt", "c.txt")
    (root / ".gitignore").write_text("out/\n")
    git(root, "init", "-q")
    git(root, "add", "-f", "out/kept/a.txt")
    assert index.build()
    assert names(index) == on_disk(opened)
    assert "out/kept/a.txt" in names(index)
    assert "out/kept/b.txt" not in names(index)
    # Named, such a folder is searched as a whole: on the disk.
    assert index.walk("out/kept", ALL) is None


@pytest.mark.parametrize("name", ["new.txt", "dist/x.txt", ".gitignore"])
def test_what_git_tracks_from_now_on_is_seen_though_a_name_came_with_it(
    index: NameIndex, opened: Root, root: Path, name: str
) -> None:
    fill(root, "dist/a.txt", "src/build/b.txt", "c.txt")
    git(root, "init", "-q")
    git(root, "add", "c.txt")
    assert index.build()
    for words in (
        ("add", "-f", "dist/a.txt", "src/build/b.txt"),
        ("rm", "-q", "--cached", "-rf", "."),
    ):
        git(root, *words)
        fill(root, name)
        assert index.refresh() is not None
        assert names(index) == on_disk(opened), words
        (root / name).unlink()
        assert index.refresh() is not None
        assert names(index) == on_disk(opened), words


def test_a_folder_without_a_head_that_becomes_a_repository_hides_what_it_does_not_track(
    index: NameIndex, opened: Root, root: Path
) -> None:
    fill(root, "inner/dist/a", "inner/.git/config")
    assert index.build()
    assert names(index) == on_disk(opened) == ["inner/dist/a"]
    fill(root, "inner/.git/HEAD")
    assert index.refresh() is not None
    assert names(index) == on_disk(opened) == []


def test_a_folder_that_is_not_there_is_not_known(index: NameIndex, root: Path) -> None:
    fill(root, "a.txt")
    assert index.build()
    assert names(index, "nowhere") is None
