"""Changes in steps: what somebody does between two of them is never taken for ours, nor lost."""

from __future__ import annotations

import errno
import os
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.domain.document import LINK, Revision, content_id
from filepact.errors import NotFoundError, StaleFileError, WriteFailedError
from filepact.fs import atomic
from filepact.fs.in_place import Staging
from filepact.fs.outside import replace_outside
from filepact.fs.root import Root
from tests.needs import UNNAMED_FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.fs.atomic import StagedContent
    from filepact.fs.read_only_root import OpenFile
    from filepact.fs.staged import StagedChange
    from tests.fs.conftest import Grounds

MARK = "c0123456789-0"
TEMP = f".filepact-{MARK}.tmp"
OLD = Revision(content_id(b"readme"), 0o644)
NEW = Revision(content_id(b"new"), 0o644)


@pytest.fixture
def root(grounds: Grounds) -> Iterator[Root]:
    with Root.open(grounds.root) as opened:
        yield opened


def staged(root: Root, what: str) -> StagedChange:
    if what == "create":
        return root.stage("new.txt", b"new", after=NEW, expected=None, token=MARK)
    if what == "remove":
        return root.stage("README.md", None, after=None, expected=OLD, token=MARK)
    return root.stage("README.md", b"new", after=NEW, expected=OLD, token=MARK)


def names(grounds: Grounds) -> set[str]:
    return set(os.listdir(grounds.root))


@pytest.mark.parametrize("what", ["create", "replace", "remove"])
def test_what_was_applied_is_taken_back(grounds: Grounds, root: Root, what: str) -> None:
    before = grounds.left()
    with closing(staged(root, what)) as one:
        root.apply(one)
        assert grounds.left() != before
        root.take_back(one)
        root.drop(one)
    assert grounds.left() == before
    assert TEMP not in names(grounds)


@pytest.mark.parametrize("what", ["create", "replace", "remove"])
def test_what_somebody_made_of_it_since_is_not_taken_back(
    grounds: Grounds, root: Root, what: str
) -> None:
    name = "new.txt" if what == "create" else "README.md"
    with closing(staged(root, what)) as one:
        root.apply(one)
        (grounds.root / name).write_text("theirs")
        with pytest.raises((StaleFileError, WriteFailedError)):
            root.take_back(one)
    assert (grounds.root / name).read_text() == "theirs"


@pytest.mark.parametrize("what", ["replace", "remove"])
def test_what_has_lost_its_old_text_is_not_taken_back(
    grounds: Grounds, root: Root, what: str
) -> None:
    with closing(staged(root, what)) as one:
        root.apply(one)
        (grounds.root / TEMP).unlink()
        (grounds.root / TEMP).write_text("somebody's")
        with pytest.raises(StaleFileError):
            root.take_back(one)
    assert (grounds.root / TEMP).read_text() == "somebody's"


def linked(grounds: Grounds) -> None:
    (grounds.root / "README.md").unlink()
    (grounds.root / "README.md").symlink_to("docs/guide.md")


@pytest.mark.parametrize("what", ["replace", "remove"])
@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize(
    "act",
    [
        linked,
        lambda grounds: (grounds.root / "README.md").unlink(),
        lambda grounds: (grounds.root / "README.md").write_text("theirs"),
        lambda grounds: (grounds.root / "README.md").chmod(0o600),
    ],
    ids=["linked", "removed", "written", "closed"],
)
def test_what_somebody_does_before_a_change_is_applied_stays(
    grounds: Grounds,
    root: Root,
    what: str,
    *,
    exchange: bool,
    act: Callable[[Grounds], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not exchange:

        def missing(*_: object) -> None:
            raise OSError(errno.ENOSYS, "no")

        monkeypatch.setattr(atomic, "renameat2", missing)
    with closing(staged(root, what)) as one:
        act(grounds)
        place = grounds.root / "README.md"
        there = place.lstat() if os.path.lexists(place) else None
        with pytest.raises(StaleFileError):
            root.apply(one)
        root.drop(one)
    now = place.lstat() if os.path.lexists(place) else None
    assert (now and (now.st_ino, now.st_mode)) == (there and (there.st_ino, there.st_mode))
    assert TEMP not in names(grounds)


@pytest.mark.parametrize("what", ["replace", "remove"])
def test_what_came_out_and_cannot_be_read_goes_back_with_the_reason(
    grounds: Grounds, root: Root, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refused = os.open, list[str]()

    def denied(path: str, *args: object, **more: object) -> int:
        if path == TEMP and not refused:
            refused.append(path)
            raise OSError(errno.EMFILE, "too many open files")
        return real(path, *args, **more)  # type: ignore[arg-type]

    with closing(staged(root, what)) as one:
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", denied)
            with pytest.raises(WriteFailedError):
                root.apply(one)
        root.drop(one)
    assert grounds.left()["README.md"] == "readme"


@pytest.mark.parametrize("what", ["create", "replace", "remove"])
def test_what_a_process_left_that_is_gone_is_taken_back_by_another(
    grounds: Grounds, root: Root, what: str
) -> None:
    before = grounds.left()
    with closing(staged(root, what)) as one:
        root.apply(one)
    name = "new.txt" if what == "create" else "README.md"
    with closing(
        root.resume(
            name,
            before=None if what == "create" else OLD,
            after=None if what == "remove" else NEW,
            token=MARK,
        )
    ) as again:
        root.take_back(again)
        root.drop(again)
    assert grounds.left() == before
    assert TEMP not in names(grounds)


@pytest.mark.parametrize("made", [True, False])
def test_a_link_that_a_process_left_made_or_removed_is_taken_back(
    grounds: Grounds, root: Root, *, made: bool
) -> None:
    link = Revision.of(b"README.md", LINK)
    if not made:
        (grounds.root / "way").symlink_to("README.md")
    with closing(
        root.stage(
            "way",
            b"README.md" if made else None,
            after=link if made else None,
            expected=None if made else link,
            token=MARK,
        )
    ) as one:
        root.apply(one)
    assert os.path.lexists(grounds.root / "way") is made
    with closing(
        root.resume("way", before=None if made else link, after=link if made else None, token=MARK)
    ) as again:
        root.take_back(again)
        root.drop(again)
    assert os.path.lexists(grounds.root / "way") is not made
    assert TEMP not in names(grounds)


@pytest.mark.parametrize(("before", "after"), [(None, NEW), (OLD, None), (OLD, NEW)])
def test_where_nothing_is_left_nothing_is_taken_back(
    root: Root, grounds: Grounds, before: Revision | None, after: Revision | None
) -> None:
    (grounds.root / "README.md").unlink()
    with pytest.raises(StaleFileError):
        root.resume("README.md", before=before, after=after, token=MARK)


HERE, THERE = Revision.of(b"README.md", LINK), Revision.of(b"docs/guide.md", LINK)
FILE = Revision.of(b"a text", 0o644)
HELD = {HERE: b"README.md", THERE: b"docs/guide.md", FILE: b"a text"}


def put(place: Path, state: Revision) -> None:
    if state.is_link:
        place.symlink_to(HELD[state].decode())
    else:
        place.write_bytes(HELD[state])
        place.chmod(state.mode)


def found(place: Path) -> Revision:
    if place.is_symlink():
        return Revision.of(os.fsencode(os.readlink(place)), LINK)
    return Revision.of(place.read_bytes(), place.stat().st_mode & 0o777)


@pytest.fixture(params=[True, False], ids=["exchange", "rename"])
def exchanges(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:

        def missing(*_: object) -> None:
            raise OSError(errno.ENOSYS, "no")

        monkeypatch.setattr(atomic, "renameat2", missing)
    return bool(request.param)


@pytest.mark.parametrize(
    ("before", "after"),
    [(HERE, THERE), (HERE, FILE), (FILE, HERE)],
    ids=["link to link", "link to file", "file to link"],
)
def test_a_link_is_exchanged_in_one_step_and_taken_back(
    grounds: Grounds, root: Root, before: Revision, after: Revision, *, exchanges: bool
) -> None:
    way = grounds.root / "way"
    put(way, before)
    for again in (False, True):
        with closing(
            root.stage("way", HELD[after], after=after, expected=before, token=MARK)
        ) as one:
            root.apply(one)
            assert found(way) == after
            assert one.retains is exchanges
            if again or not exchanges:
                root.settle(one).close()
                break
            if before != HERE:
                root.take_back(one)
                root.drop(one)
        if before == HERE:  # A process that is gone has applied it.
            with closing(root.resume("way", before=before, after=after, token=MARK)) as resumed:
                root.take_back(resumed)
                root.drop(resumed)
        assert found(way) == before
        assert TEMP not in names(grounds)
    assert found(way) == after
    assert TEMP not in names(grounds)


@pytest.mark.parametrize("theirs", ["link", "file", "folder", "nothing"])
@pytest.mark.parametrize(("before", "after"), [(HERE, THERE), (HERE, FILE), (FILE, HERE)])
def test_what_takes_the_place_of_a_link_at_that_moment_stays(
    grounds: Grounds,
    root: Root,
    theirs: str,
    before: Revision,
    after: Revision,
    *,
    exchanges: bool,
) -> None:
    way = grounds.root / "way"
    put(way, before)
    with closing(root.stage("way", HELD[after], after=after, expected=before, token=MARK)) as one:
        way.unlink()
        if theirs == "link":
            way.symlink_to("elsewhere")
        elif theirs == "file":
            way.write_text("theirs")
        elif theirs == "folder":
            way.mkdir()
            (way / "theirs").touch()
        there = way.lstat() if os.path.lexists(way) else None
        with pytest.raises(StaleFileError):
            root.apply(one)
        root.drop(one)
    now = way.lstat() if os.path.lexists(way) else None
    assert (now and now.st_ino) == (there and there.st_ino)
    assert TEMP not in names(grounds)


def test_what_is_no_longer_that_link_is_not_staged(grounds: Grounds, root: Root) -> None:
    put(grounds.root / "way", HERE)
    for after in (HERE, FILE):
        with pytest.raises(StaleFileError):
            root.stage("way", HELD[after], after=after, expected=THERE, token=MARK)
    assert TEMP not in names(grounds)


def test_a_file_is_made_in_a_folder_and_removed_with_it_from_the_folder_beside(
    grounds: Grounds, root: Root
) -> None:
    guide = Revision.of((grounds.root / "docs/guide.md").read_bytes(), 0o644)
    with closing(
        root.stage("docs/guide.md", None, after=None, expected=guide, token=MARK, beside=".")
    ) as one:
        root.apply(one)
        assert TEMP in names(grounds)
        assert root.remove_directory("docs")
        root.make_directories("docs", Revision.folder(0o700))
        assert (grounds.root / "docs").stat().st_mode & 0o777 == 0o700
        root.take_back(one)
        assert (grounds.root / "docs/guide.md").exists()
        root.drop(one)
    with closing(
        root.stage("in/new.txt", b"new", after=NEW, expected=None, token=MARK, beside=".")
    ) as one:
        root.make_directories("in")
        root.apply(one)
        assert (grounds.root / "in/new.txt").read_text() == "new"
        assert root.sync(one)
        root.take_back(one)
        assert os.listdir(grounds.root / "in") == []
        root.drop(one)
    assert TEMP not in names(grounds)


def test_a_change_from_nothing_to_nothing_is_a_mistake_of_the_caller(root: Root) -> None:
    with pytest.raises(ValueError, match="nothing"):
        root.stage("README.md", None, after=None, expected=None, token=MARK)


# -- files in no root -------------------------------------------------------------------------


def outside(path: Path, data: bytes | None, expected: bytes | None) -> None:
    replace_outside(str(path), data, expected=expected, token=MARK)


def test_a_file_in_no_root_is_made_with_its_folders_replaced_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "some" / "where" / "settings.json"
    outside(path, b"one", None)
    assert path.read_bytes() == b"one"
    path.chmod(0o600)
    outside(path, b"two", b"one")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o600)
    outside(path, None, b"two")
    assert os.listdir(path.parent) == []


def test_a_file_in_no_root_that_has_changed_meanwhile_is_left(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"theirs")
    for expected in (b"ours", None):
        with pytest.raises(StaleFileError):
            outside(path, b"new", expected)
    path.unlink()
    with pytest.raises(StaleFileError):
        outside(path, b"new", b"ours")
    assert os.listdir(tmp_path) == []


def test_what_is_not_there_is_not_removed_and_makes_no_folders(tmp_path: Path) -> None:
    with pytest.raises((NotFoundError, StaleFileError)):
        outside(tmp_path / "some" / "settings.json", None, b"ours")
    outside(tmp_path / "settings.json", None, None)
    assert os.listdir(tmp_path) == []


def test_of_a_link_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "true").write_bytes(b"one")
    (tmp_path / "link").symlink_to("true")
    outside(tmp_path / "link", b"two", b"one")
    assert (tmp_path / "true").read_bytes() == b"two"
    assert (tmp_path / "link").is_symlink()


def test_a_file_that_is_protected_from_everybody_is_left(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b"one")
    path.chmod(0o444)
    with pytest.raises(WriteFailedError):
        outside(path, b"two", b"one")
    assert path.read_bytes() == b"one"


# -- texts that have no name yet --------------------------------------------------------------


def prepared(grounds: Grounds, root: Root, what: str) -> StagedContent:
    place, expected = ("new.txt", None) if what == "create" else ("README.md", OLD)
    with closing(root.hold(place)) as file:
        found = root.prepare(place, b"new", after=NEW, expected=expected, file=file)
    assert found is not None
    return found


def from_prepared(root: Root, what: str, unnamed: StagedContent, *, early: bool) -> StagedChange:
    place, expected = ("new.txt", None) if what == "create" else ("README.md", OLD)
    return root.stage(place, unnamed, after=NEW, expected=expected, token=MARK, how=Staging(early))


@UNNAMED_FILES
@pytest.mark.parametrize("what", ["create", "replace"])
@pytest.mark.parametrize("early", [True, False])
def test_a_prepared_text_has_no_name_before_it_is_staged(
    grounds: Grounds, root: Root, what: str, early: bool
) -> None:
    before = names(grounds)
    with closing(prepared(grounds, root, what)) as unnamed:
        assert names(grounds) == before
        inode = os.fstat(unnamed.descriptor).st_ino
        with closing(from_prepared(root, what, unnamed, early=early)) as one:
            assert names(grounds) == before | {TEMP}
            root.apply(one)
            root.settle(one).close()
    made = grounds.root / ("new.txt" if what == "create" else "README.md")
    assert (made.read_bytes(), made.stat().st_mode & 0o777) == (b"new", 0o644)
    assert made.stat().st_ino == inode
    assert names(grounds) == before | {made.name}


@UNNAMED_FILES
@pytest.mark.parametrize("what", ["create", "replace"])
def test_a_prepared_text_that_is_not_used_leaves_nothing(
    grounds: Grounds, root: Root, what: str
) -> None:
    before = grounds.left()
    prepared(grounds, root, what).close()
    assert grounds.left() == before


@UNNAMED_FILES
@pytest.mark.parametrize("what", ["create", "replace"])
def test_a_prepared_text_that_cannot_be_given_a_name_is_written_once_more(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "not here")

    with closing(prepared(grounds, root, what)) as unnamed:
        monkeypatch.setattr(os, "link", refused)
        with closing(from_prepared(root, what, unnamed, early=False)) as one:
            root.apply(one)
            root.settle(one).close()
    made = grounds.root / ("new.txt" if what == "create" else "README.md")
    assert made.read_bytes() == b"new"
    assert TEMP not in names(grounds)


@UNNAMED_FILES
@pytest.mark.parametrize("what", ["create", "replace"])
def test_a_prepared_text_takes_no_name_that_something_has(
    grounds: Grounds, root: Root, what: str
) -> None:
    (grounds.root / TEMP).write_bytes(b"somebody's")
    with closing(prepared(grounds, root, what)) as unnamed, pytest.raises(WriteFailedError):
        from_prepared(root, what, unnamed, early=False)
    assert (grounds.root / TEMP).read_bytes() == b"somebody's"
    assert not (grounds.root / "new.txt").exists()


def _written_at_the_same_time(grounds: Grounds) -> None:
    file = grounds.root / "README.md"
    before = file.stat()
    file.write_text("theirs")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def _replaced(grounds: Grounds, text: str = "theirs") -> None:
    new = grounds.root / "saved"
    new.write_text(text)
    new.chmod(0o644)
    new.rename(grounds.root / "README.md")


@UNNAMED_FILES
@pytest.mark.parametrize(
    "act",
    [
        linked,
        lambda grounds: (grounds.root / "README.md").unlink(),
        lambda grounds: (grounds.root / "README.md").chmod(0o600),
        _written_at_the_same_time,
        _replaced,
    ],
    ids=["linked", "removed", "closed", "written", "replaced"],
)
def test_what_somebody_does_to_a_file_that_is_held_since_it_was_read_stays(
    grounds: Grounds, root: Root, act: Callable[[Grounds], None]
) -> None:
    with closing(root.hold("README.md")) as file:
        file.read(limit=99)
        with closing(of_held(root, file)) as one:
            act(grounds)
            left = grounds.left()
            with pytest.raises(StaleFileError):
                root.apply(one)
            assert grounds.left() == left
            root.drop(one)
    assert (grounds.root / "README.md").is_symlink() == (act is linked)
    assert TEMP not in names(grounds)


@UNNAMED_FILES
def test_a_file_that_took_the_place_of_one_that_is_held_keeps_what_it_has_besides(
    grounds: Grounds, root: Root
) -> None:
    with closing(root.hold("README.md")) as file, closing(root.hold("README.md")) as again:
        file.read(limit=99)
        unnamed = root.prepare("README.md", b"new", after=NEW, expected=OLD, file=file)
        assert unnamed is not None
        _replaced(grounds, "readme")
        os.setxattr(grounds.root / "README.md", "user.note", b"kept")
        with closing(unnamed), closing(of_held(root, again, unnamed)) as one:
            root.apply(one)
            assert root.sync(one)
            root.settle(one).close()
    assert (grounds.root / "README.md").read_bytes() == b"new"
    assert os.getxattr(grounds.root / "README.md", "user.note") == b"kept"
    assert TEMP not in names(grounds)


def of_held(root: Root, file: OpenFile, unnamed: StagedContent | None = None) -> StagedChange:
    made = unnamed or root.prepare("README.md", b"new", after=NEW, expected=OLD, file=file)
    assert made is not None
    how, after = Staging(early=False), NEW
    return root.stage("README.md", made, after=after, expected=OLD, token=MARK, file=file, how=how)


@UNNAMED_FILES
def test_nothing_is_prepared_for_a_file_in_another_state_or_where_files_have_names(
    grounds: Grounds, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Revision(OLD.content, 0o600)
    with closing(root.hold("README.md")) as file, pytest.raises(StaleFileError):
        root.prepare("README.md", b"new", after=NEW, expected=other, file=file)
    monkeypatch.delattr(os, "O_TMPFILE")
    with closing(root.hold("new.txt")) as file:
        assert root.prepare("new.txt", b"new", after=NEW, expected=None, file=file) is None
