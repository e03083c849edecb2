"""Looking at a root again and again: nothing that happened is missed, and little is looked at."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from filepact.domain.document import Revision, WorkspacePath
from filepact.fs.inotify import InotifyWatcher
from filepact.fs.root import Root
from filepact.fs.watch import moment
from filepact.workspace.external_files import ExternalFiles
from filepact.workspace.file_snapshot import FileSnapshot
from filepact.workspace.observe import RootEvents, RootWatcher, Stamp
from tests.needs import NOTICES
from tests.unprivileged import unprivileged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.workspace.workspace import Workspace


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name in ("a.txt", "sub/b.txt", "sub/deep/c.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / ".gitignore").write_text("*.log\n")
    return root


class Caller:
    """What a caller knows, brought up to date by glances alone."""

    def __init__(self, folder: Path, few: int = 0) -> None:
        self.folder = folder
        self.root = Root.open(str(folder))
        self.clock = 0.0
        self.watcher = RootWatcher(self.root, (), lambda: self.clock, few=few)
        self.known: set[str] = set()
        self.look()

    def look(self) -> RootEvents:
        seen = self.watcher.check(self.known.__contains__, lambda: False)
        if seen.scan is not None:
            self.known = set(seen.scan.stamps)
        self.known |= {name for name in seen.names if (self.folder / name).exists()}
        self.known -= {name for name in seen.names if not (self.folder / name).exists()}
        return seen

    def close(self) -> None:
        self.watcher.close()
        self.root.close()


@pytest.fixture
def caller(tree: Path) -> Iterator[Caller]:
    made = Caller(tree)
    if made.watcher._notices is None:  # the system gives none here; scans are tested elsewhere
        made.close()
        pytest.skip("no notices on this file system")
    yield made
    made.close()


@pytest.fixture
def patient(tree: Path, caller: Caller) -> Iterator[Caller]:
    """One that has a few unknown files looked up one by one."""
    made = Caller(tree, few=5)
    yield made
    made.close()


def rewrite_unseen(path: Path) -> None:
    """Other bytes of the same length under the same times."""
    status = path.stat()
    path.write_text(path.read_text().upper())
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("more")


DONE: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "nothing": (lambda _: None, set()),
    "written": (lambda root: (root / "a.txt").write_text("other"), {"a.txt"}),
    "rewritten under the same times": (lambda root: rewrite_unseen(root / "a.txt"), {"a.txt"}),
    "appended in a folder": (lambda root: append(root / "sub/deep/c.txt"), {"sub/deep/c.txt"}),
    "mode": (lambda root: (root / "a.txt").chmod(0o600), {"a.txt"}),
    "removed": (lambda root: (root / "sub/b.txt").unlink(), {"sub/b.txt"}),
    "renamed over another": (
        lambda root: (root / "a.txt").rename(root / "sub/b.txt"),
        {"a.txt", "sub/b.txt"},
    ),
    "read": (lambda root: (root / "a.txt").read_text(), set()),
}  # fmt: skip


@pytest.mark.parametrize("what", DONE)
def test_what_was_touched_is_named_without_looking_at_the_rest(
    what: str, caller: Caller, tree: Path
) -> None:
    act, names = DONE[what]
    act(tree)
    seen = caller.look()
    assert seen.scan is None
    assert seen.watched
    assert seen.complete
    assert seen.names == names
    assert caller.look().names == frozenset()


WHOLE: dict[str, Callable[[Path], object]] = {
    "a new file": lambda root: (root / "sub/new.txt").write_text("new"),
    "a new folder": lambda root: (root / "more").mkdir(),
    "a folder moved": lambda root: (root / "sub").rename(root / "moved"),
    "a folder removed": lambda root: shutil.rmtree(root / "sub"),
    "other ignore rules": lambda root: (root / ".gitignore").write_text("*.txt\n"),
}


@pytest.mark.parametrize("what", WHOLE)
def test_where_names_come_and_go_everything_is_looked_at(
    what: str, caller: Caller, tree: Path
) -> None:
    WHOLE[what](tree)
    seen = caller.look()
    assert seen.scan is not None
    assert caller.look().scan is None


def test_files_in_a_folder_that_came_later_are_noticed(caller: Caller, tree: Path) -> None:
    (tree / "more/below").mkdir(parents=True)
    (tree / "more/below/x.txt").write_text("x")
    caller.look()
    (tree / "more/below/x.txt").write_text("y")
    assert caller.look().names == {"more/below/x.txt"}


def test_a_file_that_goes_while_everything_is_looked_at_is_seen_when_it_comes_again(
    caller: Caller, tree: Path
) -> None:
    place = tree / "sub/new.txt"
    place.write_text("1")

    def remove() -> bool:
        place.unlink(missing_ok=True)
        return False

    seen = caller.watcher.check(caller.known.__contains__, remove)
    assert seen.scan is not None
    assert "sub/new.txt" not in seen.scan.stamps
    for text in "23":
        place.write_text(text)
        again = caller.look()
        assert "sub/new.txt" in caller.known | again.names
        place.unlink()
        caller.look()


def test_an_ignored_file_is_looked_for_once(caller: Caller, tree: Path) -> None:
    (tree / "noise.log").write_text("1")
    assert caller.look().scan is not None
    (tree / "noise.log").write_text("2")
    seen = caller.look()
    assert seen.scan is None
    assert seen.names == frozenset()


@pytest.mark.parametrize("few", [0, 5])
def test_a_file_that_was_ignored_by_former_rules_is_seen_when_it_comes_again(
    caller: Caller, tree: Path, few: int
) -> None:
    caller.watcher._few = few
    (tree / "noise.log").write_text("1")
    caller.look()
    for gone in ("noise.log", ".gitignore"):
        (tree / gone).unlink()
    # Since a known folder has gone as well, everything is looked at.
    shutil.rmtree(tree / "sub")
    assert caller.look().scan is not None
    (tree / "noise.log").write_text("2")
    seen = caller.look()
    assert "noise.log" in (seen.names if seen.scan is None else seen.scan.stamps)


def test_now_and_then_everything_is_looked_at_all_the_same(caller: Caller) -> None:
    caller.clock += 3_600
    seen = caller.look()
    assert seen.scan is not None
    assert seen.complete
    assert caller.look().scan is None


def test_whoever_is_distrusted_gives_way_to_looking(caller: Caller, tree: Path) -> None:
    caller.watcher.distrust()
    (tree / "a.txt").write_text("other")
    for _ in range(2):
        seen = caller.look()
        assert seen.scan is not None
        assert not seen.watched


def test_more_than_can_be_told_is_looked_at(tree: Path) -> None:
    root = Root.open(str(tree))
    notices = InotifyWatcher.open(root)
    if notices is None:
        pytest.skip("no notices on this file system")
    try:
        assert notices.watch(["."])
        assert not notices.watch(["."])
        for number in range(30_000):
            os.close(os.open(tree / f"n{number % 7}", os.O_CREAT | os.O_WRONLY))
        assert notices.drain().folders
    finally:
        notices.close()
        root.close()


def test_an_exchange_of_names_is_no_absence(caller: Caller, tree: Path) -> None:
    old = (tree / "a.txt").read_bytes()
    with Root.open(tree) as root:
        for number, text in enumerate((b"one", b"two", b"three")):
            expected = Revision(hashlib.sha256(old).hexdigest(), 0o644)
            written = root.replace(
                "a.txt", text, mode=0o644, expected=expected, token=f"mark-{number}"
            )
            written.close()
            seen = caller.look()
            assert (seen.names, seen.removed) == ({"a.txt"}, frozenset())
            assert seen.added <= {"a.txt"}
            old = text


def test_what_went_and_came_again_was_gone(caller: Caller, tree: Path) -> None:
    place = tree / "a.txt"

    def removed() -> None:
        place.unlink()
        place.write_text("a.txt")

    def moved() -> None:
        place.rename(tree / "sub/a.txt")
        (tree / "sub/a.txt").rename(place)

    def moved_out() -> None:
        place.rename(tree.parent / "a.txt")
        (tree.parent / "a.txt").rename(place)

    def replaced_then_moved_back() -> None:
        (tree / "n.txt").write_text("n")
        (tree / "n.txt").rename(place)
        place.rename(tree / "n.txt")
        (tree / "n.txt").rename(place)

    for act in (removed, moved, moved_out, replaced_then_moved_back):
        act()
        assert "a.txt" in caller.look().removed
        assert not caller.look().removed
    (tree / "passing.txt").write_text("made")
    (tree / "passing.txt").unlink()
    assert "passing.txt" in caller.look().added
    place.unlink()
    assert "a.txt" not in caller.look().added
    place.write_text("other")
    assert "a.txt" in caller.look().added
    other = tree / "other"
    other.write_text("replaced by")
    other.rename(place)
    assert "a.txt" not in caller.look().removed


def test_only_folders_that_came_are_looked_into_where_few_files_are_looked_up(
    patient: Caller, tree: Path
) -> None:
    (tree / "more/below").mkdir(parents=True)
    (tree / "more/below/x.txt").write_text("x")
    (tree / "more/x.log").write_text("ignored")
    (tree / "passing").mkdir()
    (tree / "passing").rmdir()
    (tree / "empty.log").mkdir()
    (tree / "empty.log/x.txt").write_text("ignored with its folder")
    seen = patient.look()
    assert seen.scan is None
    assert seen.complete
    assert seen.names == {"more/below/x.txt"}
    assert seen.added >= seen.names
    assert set(seen.folders) == {"more", "more/below"}
    (tree / "more/below/x.txt").write_text("y")
    (tree / "more/below/deeper").mkdir()
    (tree / "more/below/deeper/z.txt").write_text("z")
    (tree / "sub/new.txt").write_text("new")
    seen = patient.look()
    assert seen.scan is None
    assert seen.names == {"more/below/x.txt", "more/below/deeper/z.txt", "sub/new.txt"}
    (tree / "more/below/deeper/z.txt").write_text("zz")
    assert patient.look().names == {"more/below/deeper/z.txt"}
    assert patient.look().names == frozenset()


@pytest.mark.parametrize("what", ["gone", "moved", "came again", "marked"])
def test_folders_that_were_known_are_looked_for_everywhere(
    what: str, patient: Caller, tree: Path
) -> None:
    if what == "marked":
        patient.watcher.mark()
        (tree / "new").mkdir()
    else:
        (tree / "sub").rename(tree / "moved")
        if what != "moved":
            shutil.rmtree(tree / "moved")
        if what == "came again":
            (tree / "sub/deep").mkdir(parents=True)
    assert patient.look().scan is not None
    assert patient.look().scan is None


def test_a_folder_of_more_files_than_are_known_of_a_root_is_looked_for_everywhere(
    tree: Path,
) -> None:
    with Root.open(str(tree)) as root:
        watcher = RootWatcher(root, (), most=6, few=5)
        watcher.check(lambda _name: True, lambda: False)
        (tree / "many").mkdir()
        for number in range(8):
            (tree / "many" / str(number)).write_text("")
        seen = watcher.check(lambda _name: True, lambda: False)
        watcher.close()
    assert seen.scan is not None
    assert seen.scan.end is not None


@NOTICES
def test_a_snapshot_knows_the_folders_that_came(tree: Path) -> None:
    with Root.open(str(tree)) as root:
        snapshot = FileSnapshot(root, (), few=5)
        snapshot.begin(snapshot.check(lambda: False))
        (tree / "new").mkdir()
        (tree / "new/x.txt").write_text("x")
        found = snapshot.compare(snapshot.check(lambda: False), racy=False)
        snapshot.watcher.close()
    assert set(found.stamps) == {"new/x.txt"}
    assert "new" in snapshot.there


@pytest.mark.parametrize("few", [0, 5])
@pytest.mark.parametrize("seed", range(5))
def test_no_change_is_ever_missed(seed: int, few: int, caller: Caller, tree: Path) -> None:
    caller.watcher._few = few
    chance = random.Random(seed)
    folders = [tree, tree / "sub", tree / "sub/deep", tree / "x", tree / "x/y"]

    def contents() -> dict[str, bytes]:
        paths = (one for one in tree.rglob("*") if one.is_file() and one.suffix != ".log")
        return {str(one.relative_to(tree)): one.read_bytes() for one in paths}

    before = contents()
    for step in range(200):
        folder = chance.choice(folders)
        file = folder / f"{chance.choice('abc')}.{chance.choice(('txt', 'txt', 'log'))}"
        match chance.randrange(7):
            case 0 | 1 | 2 if folder.is_dir():
                file.write_text(str(step))
            case 3 if file.exists():
                file.unlink()
            case 4:
                folder.mkdir(parents=True, exist_ok=True)
            case 5 if folder.exists() and folder != tree and chance.random() < 0.4:
                shutil.rmtree(folder)
            case 6 if folder.exists() and folder != tree and chance.random() < 0.4:
                folder.rename(tree / f"moved{step}")
        if chance.random() < 0.5:
            seen, now = caller.look(), contents()
            if seen.scan is None:
                changed = {name for name in {*before, *now} if before.get(name) != now.get(name)}
                assert changed <= seen.names
            else:
                assert set(seen.scan.stamps) == set(now)
            before = now


def test_a_mark_parts_what_was_touched_before_it_from_what_is_touched_after(
    caller: Caller, tree: Path
) -> None:
    (tree / "a.txt").write_text("before")
    caller.watcher.mark()
    (tree / "sub/b.txt").write_text("after")
    seen = caller.look()
    assert seen.names == {"a.txt", "sub/b.txt"}
    assert (seen.early, seen.late) == ({"a.txt"}, {"sub/b.txt"})
    (tree / "a.txt").write_text("later")
    seen = caller.look()
    assert (seen.names, seen.early, seen.late) == ({"a.txt"}, None, None)


def test_a_mark_that_was_made_while_everything_is_looked_at_tells_nothing(
    caller: Caller, tree: Path
) -> None:
    (tree / "new.txt").write_text("1")

    def during() -> bool:
        caller.watcher.mark()
        (tree / "a.txt").write_text("after")
        return False

    caller.watcher.check(caller.known.__contains__, during)
    seen = caller.look()
    assert "a.txt" in seen.names
    assert seen.late is None
    caller.watcher.distrust()
    caller.watcher.mark()
    assert caller.look().late is None


def test_a_moment_lies_between_the_stamps_before_it_and_those_after(tree: Path) -> None:
    for number in range(20):
        (tree / f"{number} before").write_text("x")
        between = moment()
        (tree / f"{number} after").write_text("x")
        assert (tree / f"{number} before").stat().st_ctime_ns <= between
        assert (tree / f"{number} after").stat().st_ctime_ns > between


def test_a_racy_file_is_suspect_until_it_is_settled(tree: Path) -> None:
    with Root.open(str(tree)) as root:
        snapshot = FileSnapshot(root, ())
        snapshot.watcher.distrust()
        snapshot.begin(snapshot.check(lambda: False))
        racy = {".gitignore", "a.txt", "sub/b.txt", "sub/deep/c.txt"}
        for _ in range(2):
            assert snapshot.compare(snapshot.check(lambda: False)).stamps.keys() == racy
        for name in racy:
            snapshot.settle(name, racy=name == "a.txt")
        assert snapshot.compare(snapshot.check(lambda: False)).stamps.keys() == {"a.txt"}
        snapshot.put("a.txt", snapshot.stamps["a.txt"], racy=False)
        assert not snapshot.compare(snapshot.check(lambda: False)).stamps


def test_a_suspect_stays_one_until_its_owner_knows_it(caller: Caller, tree: Path) -> None:
    snapshot = FileSnapshot(caller.root, ())
    try:
        snapshot.begin(snapshot.check(lambda: False))
        (tree / "a.txt").write_text("other")
        (tree / "sub/b.txt").unlink()
        for _ in range(2):
            suspects = snapshot.compare(snapshot.check(lambda: False)).stamps
            assert suspects.keys() == {"a.txt", "sub/b.txt"}
            assert suspects["sub/b.txt"] is None
        snapshot.put("a.txt", suspects["a.txt"])
        snapshot.drop("sub/b.txt")
        assert not snapshot.compare(snapshot.check(lambda: False)).stamps
    finally:
        snapshot.watcher.close()


@NOTICES
def test_what_is_written_by_one_name_is_seen_under_the_others(tree: Path) -> None:
    # The kernel tells of the name alone by which a file was written.
    (tree / "sub/other.txt").hardlink_to(tree / "a.txt")
    with Root.open(str(tree)) as root:
        snapshot = FileSnapshot(root, ())
        snapshot.begin(snapshot.check(lambda: False))
        (tree / "a.txt").write_text("something else")
        found = snapshot.compare(snapshot.check(lambda: False), racy=False)
        snapshot.watcher.close()
    assert found.stamps.keys() == {"a.txt", "sub/other.txt"}


def test_known_files_behind_the_most_that_are_looked_at_are_still_compared(tree: Path) -> None:
    with Root.open(str(tree)) as root:
        snapshot = FileSnapshot(root, (), most=2)
        snapshot.watcher.distrust()
        snapshot.begin(snapshot.check(lambda: False))
        late = root.glance("sub/deep/c.txt")
        assert late is not None
        snapshot.put("sub/deep/c.txt", Stamp(*late[:4], 0o100644))
        (tree / "sub/deep/c.txt").write_text("other")
        suspects = snapshot.compare(snapshot.check(lambda: False))
        assert "sub/deep/c.txt" in suspects.stamps
        assert suspects.newly == frozenset()


def test_folders_that_come_faster_than_they_can_be_watched_are_looked_at_each_time(
    tree: Path,
) -> None:
    made = 0

    def another() -> bool:
        nonlocal made
        made += 1
        (tree / f"new{made}").mkdir()
        return False

    with Root.open(str(tree)) as root:
        watcher = RootWatcher(root, ())
        seen = watcher.check(lambda _: True, another)
        assert seen.scan is not None
        assert not seen.watched
        assert watcher.descriptor is None
        assert watcher.check(lambda _: True, lambda: False).scan is not None
        watcher.close()


@pytest.mark.parametrize("folder", ["sub", "."])
def test_other_rights_of_a_folder_alone_are_collected(caller: Caller, folder: str) -> None:
    assert not caller.watcher.collect()
    (caller.folder / folder).chmod(0o700)
    assert caller.watcher.collect()


def test_without_notices_nothing_is_collected_marked_or_kept_for_later(tree: Path) -> None:
    with Root.open(str(tree)) as root:
        watcher = RootWatcher(root, (), most=2)
        assert watcher.check(lambda _: False, lambda: False).scan is not None
        assert not watcher.collect()
        watcher.mark()
        seen = watcher.check(lambda _: False, lambda: False)
        assert seen.scan is not None
        assert seen.late is None


def test_what_outgrows_the_most_that_is_looked_at_is_not_watched_any_more(tree: Path) -> None:
    with Root.open(str(tree)) as root:
        watcher = RootWatcher(root, (), most=4)
        known = watcher.check(lambda _: False, lambda: False)
        assert known.scan is not None
        if not known.watched:
            pytest.skip("no notices on this file system")
        (tree / "zz.txt").write_text("one too many")
        seen = watcher.check(known.scan.stamps.__contains__, lambda: False)
        assert seen.scan is not None
        assert (seen.scan.end is None, seen.watched) == (False, False)
        watcher.close()


def test_a_mark_that_is_kept_parts_what_is_touched_while_everything_is_looked_at(
    caller: Caller, tree: Path
) -> None:
    caller.watcher.mark()
    (tree / "new.txt").write_text("1")

    def during() -> bool:
        (tree / "a.txt").write_text("after")
        return False

    seen = caller.watcher.check(caller.known.__contains__, during, keep=True)
    assert seen.late == {"new.txt"}
    seen = caller.watcher.check(lambda _: True, lambda: False)
    assert seen.late is not None
    assert "a.txt" in seen.late


def test_a_folder_that_comes_while_everything_is_looked_at_is_looked_into_next_time(
    caller: Caller, tree: Path
) -> None:
    (tree / "new.txt").write_text("1")
    folders = iter(("sub/late",))

    def during() -> bool:
        for folder in folders:
            (tree / "sub").rename(tree / "away")
            (tree / "away").rename(tree / "sub")
            (tree / folder).mkdir()
            (tree / folder / "late.txt").write_text("late")
        return False

    caller.watcher.check(caller.known.__contains__, during)
    seen = caller.look()
    assert seen.scan is not None
    assert "sub/late/late.txt" in seen.scan.stamps


def test_a_snapshot_begins_with_a_scan(caller: Caller) -> None:
    with pytest.raises(ValueError, match="scan"):
        FileSnapshot(caller.root, ()).begin(RootEvents(frozenset()))


@pytest.mark.parametrize("watched", [True, False])
def test_what_cannot_be_looked_at_is_not_gone(tree: Path, *, watched: bool) -> None:
    with Root.open(str(tree)) as root:
        snapshot = FileSnapshot(root, ())
        if not watched:
            snapshot.watcher.distrust()
        snapshot.begin(snapshot.check(lambda: False))
        (tree / "a.txt").write_text("other")
        (tree / "sub/deep/c.txt").write_text("other")
        (tree / "sub").chmod(0)
        try:
            suspects = unprivileged(lambda: snapshot.compare(snapshot.check(lambda: False)))
        finally:
            (tree / "sub").chmod(0o755)
        assert "a.txt" in suspects.stamps
        assert "sub/deep/c.txt" not in suspects.stamps
        suspects = snapshot.compare(snapshot.check(lambda: False))
        assert "sub/deep/c.txt" in suspects.stamps
        snapshot.watcher.close()


# -- as other programs read them --------------------------------------------------------------


def test_a_file_is_taken_with_its_stamp_and_its_text(
    root: Path, open_here: Callable[..., Workspace]
) -> None:
    files = ExternalFiles(open_here().guard, lambda _: None)
    (root / "a.txt").write_text("text\n")
    (root / "b.bin").write_bytes(b"\0\1")
    (root / "large").write_bytes(b"")
    os.truncate(root / "large", 1 << 30)
    (root / "link").symlink_to("a.txt")
    taken = {
        name: files.take(WorkspacePath(str(root), name))
        for name in ("a.txt", "b.bin", "large", "link", "gone")
    }
    assert {name: one and one.text for name, one in taken.items()} == {
        **dict.fromkeys(taken, None),
        "a.txt": "text\n",
    }
    assert {name for name, one in taken.items() if one and one.content} == {"a.txt", "b.bin"}
    assert taken["gone"] is None
    assert taken["link"] is not None
    assert taken["link"].stamp.is_link


def test_a_file_that_keeps_changing_is_taken_without_its_text(
    root: Path, open_here: Callable[..., Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ExternalFiles(open_here().guard, lambda _: None)
    (root / "a.txt").write_text("0")
    real = Root.read

    def read(asked: Root, path: str, **how: Any) -> object:
        found = real(asked, path, **how)
        append(root / path)
        return found

    monkeypatch.setattr(Root, "read", read)
    taken = files.take(WorkspacePath(str(root), "a.txt"))
    assert taken is not None
    assert (taken.text, taken.stamp.size) == (None, (root / "a.txt").stat().st_size)

    def gone(asked: Root, path: str, **how: Any) -> object:
        found = real(asked, path, **how)
        (root / path).unlink()
        return found

    monkeypatch.setattr(Root, "read", gone)
    assert files.take(WorkspacePath(str(root), "a.txt")) is None


def test_a_file_that_may_not_be_read_is_taken_without_its_text(
    root: Path, open_here: Callable[..., Workspace]
) -> None:
    files = ExternalFiles(open_here().guard, lambda _: None)
    (root / "a.txt").write_text("0")
    (root / "a.txt").chmod(0)
    taken = unprivileged(lambda: files.take(WorkspacePath(str(root), "a.txt")))
    assert taken is not None
    assert taken.content is None
