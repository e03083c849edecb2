"""What an entry has besides its bytes comes back with it: owner, mode, access lists, attributes, times."""

from __future__ import annotations

import errno
import os
import shutil
import struct
import subprocess
from functools import partial
from typing import TYPE_CHECKING

import pytest

from filepact.domain.attributes import Attributes
from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError, StaleFileError, WriteFailedError
from filepact.fs import atomic, attributes
from filepact.fs.attributes import dress_link
from filepact.tools.edit import manage_files
from filepact.workspace.selection import Selection
from tests.unprivileged import unprivileged

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

PERSON = Session("p", Actor("person", "p"))
AGENT = Session("a", Actor("agent", "a"))
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
NOBODY = 0xFFFFFFFF

pytestmark = pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes here")


def entries(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in entries)


# The group reads nothing, 1234 reads.
WITHHELD = entries((1, 6, NOBODY), (2, 4, 1234), (4, 0, NOBODY), (16, 4, NOBODY), (32, 0, NOBODY))
SHARED = entries((1, 7, NOBODY), (2, 7, 1234), (4, 5, NOBODY), (16, 7, NOBODY), (32, 5, NOBODY))


def traits(path: Path) -> tuple[object, ...]:
    status = path.lstat()
    extended: list[tuple[str, bytes]] = []
    if not path.is_symlink():
        extended = [(one, os.getxattr(path, one)) for one in sorted(os.listxattr(path))]
    held: object = None
    if path.is_symlink():
        held = os.readlink(path)
    elif not path.is_dir():
        held = path.read_bytes()
    return status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, extended, held


def everything(root: Path) -> dict[str, tuple[object, ...]]:
    return {str(one.relative_to(root)): traits(one) for one in sorted(root.rglob("*"))}


def rights(root: Path) -> dict[str, tuple[object, ...]]:
    """All but the times."""
    return {name: (*one[:3], *one[4:]) for name, one in everything(root).items()}


def owned(path: Path, user: int, group: int, mode: int) -> None:
    if ROOT:
        os.chown(path, user, group)
    path.chmod(mode)


def fill(root: Path) -> None:
    """A folder with entries of all sorts of rights; what needs root has those of the caller elsewhere."""
    root.mkdir()
    for name, mode in [("plain", 0o644), ("private", 0o600), ("runs", 0o755), ("closed", 0o400)]:
        (root / name).write_text(name)
        (root / name).chmod(mode)
    (root / "empty").touch()
    for name, user, group, mode in [
        ("theirs", 1234, 1235, 0o640),
        ("lends user", 1234, 1235, 0o4755),
        ("lends group", 0, 1235, 0o2755),
    ]:
        (root / name).write_text(name)
        owned(root / name, user, group, mode)
    (root / "withheld").write_text("withheld")
    os.setxattr(root / "withheld", ACCESS, WITHHELD)
    (root / "noted").write_text("noted")
    os.setxattr(root / "noted", "user.tag", b"\0\xff")
    os.setxattr(root / "noted", "user.\u00e9", b"")
    if ROOT:
        os.setxattr(root / "noted", "trusted.tag", b"t")
    for name, user, group, mode in [
        ("own", 0, 0, 0o700),
        ("team", 1234, 1235, 0o2770),
        ("sticky", 0, 0, 0o1777),
        ("read only", 0, 0, 0o500),
    ]:
        (root / name).mkdir()
        (root / name / "inside").write_text(name)
        owned(root / name, user, group, mode)
    (root / "shared").mkdir()
    os.setxattr(root / "shared", DEFAULT, SHARED)
    os.setxattr(root / "shared", ACCESS, SHARED)
    os.setxattr(root / "shared", "user.tag", b"folder")
    (root / "shared" / "inside").write_text("by the default list")
    (root / "shared" / "none").mkdir()
    os.removexattr(root / "shared" / "none", DEFAULT)
    (root / "shared" / "none" / "inside").write_text("by no list")
    for number, path in enumerate(sorted(root.rglob("*"), reverse=True)):
        os.utime(path, ns=(1, 1_000_000_000 + number))
    os.utime(root, ns=(1, 2_000_000_000))


def managed(workspace: Workspace, action: str, path: str, to: str | None = None) -> object:
    with workspace.draft(AGENT, "manage_files") as draft:
        summary = manage_files.function(draft, action, path, to)
        return workspace.submit(draft, summary)


def past_the_doors(change: Callable[[Path], object]) -> Callable[[Workspace, Path], None]:
    def done(workspace: Workspace, root: Path) -> None:
        change(root)
        workspace.external.detect(AGENT, tool="bash")

    return done


WAYS: dict[str, Callable[[Workspace, Path], object]] = {
    "the agent's mv": past_the_doors(lambda root: (root / "box").rename(root / "elsewhere")),
    "the agent's rm": past_the_doors(lambda root: shutil.rmtree(root / "box")),
    "move": lambda workspace, _root: managed(workspace, "move", "box", "elsewhere"),
    "delete": lambda workspace, _root: managed(workspace, "delete", "box"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_folder_that_went_or_was_moved_comes_back_with_all_that_it_had(
    root: Path, workspace: Workspace, way: str
) -> None:
    fill(root / "box")
    workspace.external.resnapshot()
    was = everything(root)
    WAYS[way](workspace, root)
    after, rights_after = everything(root), rights(root)
    if "m" in way.rsplit(maxsplit=1)[-1][0]:
        moved = {name.replace("elsewhere", "box"): one for name, one in after.items()}
        assert moved == was
    for _ in range(2):
        assert workspace.undo(PERSON).notes == ()
        assert everything(root) == was
        assert workspace.redo(PERSON).notes == ()
        assert rights(root) == rights_after
    assert workspace.external.detect(AGENT, tool="bash").operation is None


def changed_rights(box: Path) -> None:
    (box / "plain").chmod(0o600)
    (box / "own").chmod(0o2755)
    (box / "runs").chmod(0o4755)
    owned(box / "private", 1234, 1235, 0o600)
    owned(box / "empty", 0, 1235, 0o660)
    owned(box / "sticky", 1234, 0, 0o1777)
    os.removexattr(box / "withheld", ACCESS)
    (box / "withheld").chmod(0o644)
    os.setxattr(box / "plain", "user.new", b"new")
    os.removexattr(box / "noted", "user.tag")
    os.setxattr(box / "own", "user.tag", b"folder")
    os.removexattr(box / "shared", DEFAULT)


def test_rights_and_attributes_that_an_agent_changes_are_recorded_and_go_back(
    root: Path, workspace: Workspace
) -> None:
    fill(root / "box")
    workspace.external.resnapshot()
    was = rights(root)
    changed_rights(root / "box")
    now = rights(root)
    looked = workspace.external.detect(AGENT, tool="bash")
    assert looked.operation is not None
    names = {one.path.path for one in looked.operation.changes.changes}
    assert names == {f"box/{name.split('/')[1]}" for name in now if now[name] != was[name]}
    for _ in range(2):
        workspace.undo(PERSON)
        assert rights(root) == was
        workspace.redo(PERSON)
        assert rights(root) == now
    assert workspace.external.detect(AGENT, tool="bash").operation is None


def test_what_was_changed_of_other_rights_meanwhile_stays(root: Path, workspace: Workspace) -> None:
    (root / "a").write_text("one\n")
    os.setxattr(root / "a", "user.mine", b"1")
    workspace.external.resnapshot()
    (root / "a").chmod(0o600)
    workspace.external.detect(AGENT, tool="bash")
    os.setxattr(root / "a", "user.mine", b"2")
    workspace.undo(PERSON)
    assert (root / "a").stat().st_mode & 0o7777 == 0o644
    assert os.getxattr(root / "a", "user.mine") == b"2"


@pytest.mark.skipif(not ROOT, reason="owners are set by root alone")
def test_who_may_not_set_an_owner_or_a_list_gives_nobody_more_rights(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(root / "box")
    workspace.external.resnapshot()
    shutil.rmtree(root / "box")
    workspace.external.detect(AGENT, tool="bash")

    def refused(*_: object) -> None:
        raise PermissionError(1, "no")

    monkeypatch.setattr(attributes, "setxattr", refused)
    receipt = unprivileged(lambda: workspace.undo(PERSON))
    for name in ("theirs", "lends user", "withheld", "team"):
        assert any(f"box/{name}" in note for note in receipt.notes), name
        assert f"box/{name}" in workspace.log()[0].note
    assert (root / "box/theirs").stat().st_mode & 0o7777 == 0o600
    assert (root / "box/lends user").stat().st_mode & 0o7777 == 0o755
    assert (root / "box/lends group").stat().st_mode & 0o7777 == 0o755
    assert (root / "box/withheld").stat().st_mode & 0o7777 == 0o600
    assert (root / "box/team").stat().st_mode & 0o7777 == 0o700


def inodes(root: Path) -> dict[str, int]:
    return {str(one.relative_to(root)): one.lstat().st_ino for one in sorted(root.rglob("*"))}


def test_what_moves_is_the_same_entry_with_its_links_and_whoever_has_it_open(
    root: Path, workspace: Workspace
) -> None:
    fill(root / "box")
    os.link(root / "box/plain", root / "twin")
    (root / "box/to").symlink_to("plain")
    was = inodes(root)
    with (root / "box/plain").open("ab") as late:
        managed(workspace, "move", "box", "new/elsewhere")
        moved = {name.replace("new/elsewhere", "box"): one for name, one in inodes(root).items()}
        assert {name: one for name, one in moved.items() if name != "new"} == was
        late.write(b", and more")
    assert (root / "twin").read_text() == "plain, and more"
    workspace.undo(PERSON)
    assert inodes(root) == was
    assert (root / "box/plain").read_text() == "plain, and more"


def test_rights_of_a_file_of_several_names_go_back_by_each_of_them(
    root: Path, workspace: Workspace
) -> None:
    box = root / "box"
    box.mkdir()
    (box / "a").write_text("same")
    os.link(box / "a", box / "b")
    workspace.external.resnapshot()
    before = rights(root)

    def change(_root: Path) -> None:
        (box / "a").chmod(0o600)
        os.setxattr(box / "b", "user.tag", b"new")

    past_the_doors(change)(workspace, root)
    after = rights(root)
    for _ in range(2):
        workspace.undo(PERSON)
        assert rights(root) == before
        workspace.redo(PERSON)
        assert rights(root) == after
    assert (box / "a").samefile(box / "b")


@pytest.mark.parametrize("by", ["delete", "the agent's rm"])
def test_names_of_one_file_that_go_together_come_back_as_one_file(
    root: Path, workspace: Workspace, by: str
) -> None:
    box = root / "box"
    for name in ("a", "deep/c", "other"):
        (box / name).parent.mkdir(parents=True, exist_ok=True)
        (box / name).write_text("same")
        os.utime(box / name, ns=(1, 1_000_000_000))
    os.link(box / "a", box / "b")
    os.link(box / "a", box / "deep" / "d")
    workspace.external.resnapshot()
    before = everything(root)
    WAYS[by](workspace, root)
    for _ in range(2):
        assert not box.exists()
        workspace.undo(PERSON)
        assert everything(root) == before
        assert {one.samefile(box / "a") for one in (box / "b", box / "deep" / "d")} == {True}
        assert (box / "a").stat().st_nlink == 3
        assert (box / "deep" / "c").stat().st_nlink == 1, "which holds the same by chance"
        workspace.redo(PERSON)


def test_a_name_that_comes_back_is_one_of_the_file_that_stayed_unless_that_was_changed(
    root: Path, workspace: Workspace
) -> None:
    for name in ("x", "sub/y"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("text")
        os.link(root / name, root / f"{name}2")
    managed(workspace, "delete", "x")
    workspace.undo(PERSON)
    assert (root / "x").samefile(root / "x2")
    managed(workspace, "delete", "sub/y")
    (root / "sub" / "y2").write_text("something else")
    workspace.undo(PERSON)
    assert (root / "sub" / "y").read_text() == "text"
    assert (root / "sub" / "y2").read_text() == "something else"


@pytest.mark.parametrize("by", ["delete", "the agent's rm"])
def test_a_name_of_a_file_whose_other_names_are_not_here_is_told_when_it_comes_back(
    root: Path, tmp_path: Path, workspace: Workspace, by: str
) -> None:
    (root / "box").mkdir()
    (root / "box" / "a").write_text("text")
    os.link(root / "box" / "a", tmp_path / "elsewhere")
    workspace.external.resnapshot()
    WAYS[by](workspace, root)
    assert "hard link" in " ".join(workspace.undo(PERSON).notes)
    assert (root / "box" / "a").read_text() == "text"


def test_where_names_cannot_be_joined_each_is_a_file_of_its_own(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "box").mkdir()
    (root / "box" / "a").write_text("same")
    os.link(root / "box" / "a", root / "box" / "b")
    managed(workspace, "delete", "box")

    def refuse(*_given: object, **_more: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr("os.link", refuse)
    receipt = workspace.undo(PERSON)
    assert [(root / "box" / one).read_text() for one in "ab"] == ["same", "same"]
    assert "hard link" in " ".join(receipt.notes)


def test_a_link_comes_back_with_owner_and_time(root: Path, workspace: Workspace) -> None:
    (root / "box").mkdir()
    link = root / "box" / "link"
    link.symlink_to("nothing")
    if ROOT:
        os.chown(link, 1234, 1235, follow_symlinks=False)
    os.utime(link, ns=(1, 1_000_000_000), follow_symlinks=False)
    before = everything(root)
    for path in ("box/link", "box"):
        managed(workspace, "delete", path)
        workspace.undo(PERSON)
        assert traits(link) == before["box/link"]


@pytest.mark.skipif(not ROOT, reason="a link of somebody else")
def test_a_link_whose_owner_cannot_be_given_is_told(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nothing")
    folder = os.open(tmp_path, os.O_RDONLY)
    wanted = Attributes(1234, 1235, modified=5)
    assert len(unprivileged(partial(dress_link, folder, "link", wanted))) == 2


def test_a_file_is_edited_in_a_folder_that_takes_no_other_file(
    root: Path, workspace: Workspace
) -> None:
    shut = root / "shut"
    shut.mkdir()
    for name in ("a", "b"):
        (shut / name).write_text("old\n")
    (root / "free").write_text("old\n")
    inode = (shut / "a").stat().st_ino
    shut.chmod(0o555)
    files = {one: (root / one) for one in ("shut/a", "shut/b", "free")}

    def edit(*names: str) -> tuple[str, ...]:
        with workspace.draft(Session(" ".join(names), AGENT.actor), "patch_apply") as draft:
            for target in draft.open_all(names):
                draft.write(target, "new text\n")
            return workspace.submit(draft, "edit").notes

    def texts() -> list[str]:
        return [one.read_text() for one in files.values()]

    for names in (["shut/a"], ["shut/a", "shut/b"], ["free", "shut/a", "shut/b"]):
        told = unprivileged(partial(edit, *names))
        assert "written in place" in " ".join(told)
        assert texts() == ["new text\n" if one in names else "old\n" for one in files]
        unprivileged(partial(workspace.undo, PERSON))
        assert texts() == ["old\n"] * 3
    assert (shut / "a").stat().st_ino == inode
    # A removal has its sign in another folder, and what cannot be done takes all of it back.
    with workspace.draft(Session("new", AGENT.actor), "patch_apply") as draft:
        free, shut_in = draft.open_all(["free", "shut/a"])
        draft.delete(free, emptied_by=None)
        draft.write(shut_in, "new text\n")
        unprivileged(partial(workspace.submit, draft, "edit"))
    assert (files["free"].exists(), files["shut/a"].read_text()) == (False, "new text\n")
    unprivileged(partial(workspace.undo, PERSON))
    assert texts() == ["old\n"] * 3
    with pytest.raises(WriteFailedError):
        unprivileged(partial(managed, workspace, "delete", "shut/b"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sets such an attribute")
def test_what_a_security_module_keeps_itself_is_left_to_it_and_all_else_comes_back(
    root: Path, workspace: Workspace
) -> None:
    names = ("security.note", "security.SMACK64", "trusted.note", "user.note")
    (root / "a").write_text("one\n")
    for name in names:
        try:
            os.setxattr(root / "a", name, b"value")
        except OSError:
            pytest.skip("no such attributes here")
    workspace.external.resnapshot()
    past_the_doors(lambda _: (root / "a").unlink())(workspace, root)
    workspace.undo(PERSON)
    assert sorted(os.listxattr(root / "a")) == ["security.note", "trusted.note", "user.note"]
    with workspace.draft(AGENT, "write_file") as draft:
        draft.write(draft.open("a"), "two\n")
        workspace.submit(draft, "edit")
    assert sorted(os.listxattr(root / "a")) == ["security.note", "trusted.note", "user.note"]
    managed(workspace, "delete", "a")
    root.chmod(0o777)
    told = unprivileged(lambda: workspace.undo(PERSON)).notes
    assert "security.note" in str(told)


@pytest.mark.parametrize("inside", [False, True], ids=["empty", "with-a-file"])
def test_a_name_of_a_file_of_several_that_becomes_a_folder_goes_back_and_is_one_again(
    root: Path, workspace: Workspace, inside: bool
) -> None:
    (root / "a").write_text("one\n")
    os.link(root / "a", root / "twin")
    workspace.external.resnapshot()
    (root / "a").unlink()
    (root / "a").mkdir()
    if inside:
        (root / "a/k").write_text("k\n")
    workspace.external.detect(AGENT)
    for _ in range(2):
        workspace.undo(PERSON)
        assert (root / "a").samefile(root / "twin")
        workspace.redo(PERSON)
        assert sorted(one.name for one in (root / "a").iterdir()) == ["k"] * inside


def test_names_of_one_file_of_which_a_program_renames_and_writes_one_go_back_as_one(
    root: Path, workspace: Workspace
) -> None:
    (root / "a").write_text("one\n")
    os.link(root / "a", root / "twin")
    workspace.external.resnapshot()
    number = (root / "a").stat().st_ino
    (root / "a").rename(root / "b")
    (root / "b").write_text("two\n")
    workspace.external.detect(AGENT)
    for name, text in (("a", "one\n"), ("b", "two\n")) * 2:
        getattr(workspace, "undo" if name == "a" else "redo")(PERSON)
        assert sorted(os.listdir(root)) == sorted([name, "twin"])
        assert {(root / one).read_text() for one in (name, "twin")} == {text}
        assert {(root / one).stat().st_ino for one in (name, "twin")} == {number}


def test_what_was_made_of_a_moved_file_goes_back_with_it(root: Path, workspace: Workspace) -> None:
    (root / "a").write_text("one\n")
    managed(workspace, "move", "a", "b")
    (root / "b").write_text("one\ntwo\n")
    (root / "b").chmod(0o600)
    number = (root / "b").stat().st_ino
    workspace.undo(PERSON)
    assert not (root / "b").exists()
    assert (root / "a").read_text() == "one\ntwo\n"
    status = (root / "a").stat()
    assert (status.st_ino, status.st_mode & 0o7777) == (number, 0o600)


@pytest.mark.parametrize("beside", ["renamed", "renamed and changed", "removed", "made", "alike"])
@pytest.mark.parametrize("calls", [1, 2])
def test_what_was_made_of_a_renamed_and_changed_file_goes_back_with_it_beside_others(
    root: Path, workspace: Workspace, beside: str, calls: int
) -> None:
    (root / "a").write_text("".join(f"a{number}\n" for number in range(30)))
    (root / "c").write_text("".join(f"c{number}\n" for number in range(30)))
    if beside == "alike":
        (root / "c").write_text((root / "a").read_text().replace("a5\n", "c5\n"))
    workspace.external.resnapshot()
    (root / "a").rename(root / "b")
    if beside == "removed":
        (root / "c").unlink()
    elif beside == "made":
        (root / "d").write_text("new\n")
    else:
        (root / "c").rename(root / "d")
    if calls == 2:
        workspace.external.detect(AGENT)
    (root / "b").write_text((root / "b").read_text().replace("a3\n", "A3\n"))
    if beside in ("renamed and changed", "alike"):
        (root / "d").write_text((root / "d").read_text().replace("9\n", "9 and more\n"))
    workspace.external.detect(AGENT)
    (root / "b").write_text((root / "b").read_text().replace("a20\n", "mine\n"))
    if beside == "alike":  # Which of them became which is not certain.
        with pytest.raises(StaleFileError):
            workspace.undo_selected(PERSON, Selection(session=AGENT))
        assert "mine" in (root / "b").read_text()
        return
    workspace.undo_selected(PERSON, Selection(session=AGENT))
    assert sorted(os.listdir(root)) == ["a", "c"]
    wanted = "".join("mine\n" if number == 20 else f"a{number}\n" for number in range(30))
    assert (root / "a").read_text() == wanted
    assert (root / "c").read_text() == "".join(f"c{number}\n" for number in range(30))


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
@pytest.mark.parametrize("hook", [False, True], ids=["plain", "with-a-hook"])
@pytest.mark.parametrize("deep", ["box", "box/x/y"])
def test_a_repository_that_a_program_moves_goes_back_as_a_whole_with_what_was_committed_since(
    root: Path, workspace: Workspace, deep: str, hook: bool
) -> None:
    (root / deep).mkdir(parents=True)
    (root / deep / "f").write_text("text")
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-C"]
    subprocess.run([*git, root / deep, "init", "-q"], check=True)
    if hook:
        (root / deep / ".git/hooks/post-commit").write_text("#!/bin/sh\n")
        (root / deep / ".git/hooks/post-commit").chmod(0o755)
    workspace.external.resnapshot()
    WAYS["the agent's mv"](workspace, root)
    moved = root / deep.replace("box", "elsewhere")
    subprocess.run([*git, moved, "add", "f"], check=True)
    subprocess.run([*git, moved, "commit", "-qm", "since"], check=True)
    for here, there, back in (("box", "elsewhere", "undo"), ("elsewhere", "box", "redo")) * 2:
        getattr(workspace, back)(PERSON)
        assert not (root / there).exists()
        place = root / deep.replace("box", here)
        told = subprocess.run([*git, place, "log", "--format=%s"], check=True, capture_output=True)
        assert told.stdout == b"since\n"
        assert (place / ".git/hooks/post-commit").exists() == hook


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
@pytest.mark.parametrize("by", ["the same call", "the next call", "a person"])
@pytest.mark.parametrize("hook", [False, True], ids=["plain", "with-a-hook"])
@pytest.mark.parametrize("what", ["edit", "new file", "file elsewhere"])
def test_a_moved_repository_is_not_torn_apart_by_what_is_done_in_it(
    root: Path, workspace: Workspace, by: str, hook: bool, what: str
) -> None:
    (root / "box").mkdir()
    (root / "box/f").write_text("one\ntwo\nthree\n")
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-C"]
    for words in (["init", "-q"], ["add", "f"], ["commit", "-qm", "first"]):
        subprocess.run([*git, root / "box", *words], check=True)
    if hook:
        (root / "box/.git/hooks/post-commit").write_text("#!/bin/sh\n")
    workspace.external.resnapshot()

    def change() -> None:
        if what == "edit":
            (root / "there/f").write_text("one\ntwo\nTHREE\n")
        elif what == "new file":
            (root / "there/new").mkdir()
            (root / "there/new/n").write_text("n")
        else:
            (root / "there/f").rename(root / "f")

    (root / "box").rename(root / "there")
    if by == "the same call":
        change()
    done = [workspace.external.detect(AGENT).operation]
    if by != "the same call":
        change()
        found = workspace.external.detect(AGENT if by == "the next call" else PERSON).operation
        done += [found] if by == "the next call" else []
    ids = [one.id for one in done if one]
    if by == "a person" and what == "file elsewhere" and found:
        ids.append(found.id)
    result = workspace.undo_selected(PERSON, Selection(ids=tuple(ids)))
    assert not result.left
    assert not (root / "there").exists()
    assert (root / "box/f").exists()
    assert (root / "box/.git/hooks/post-commit").exists() == hook
    told = subprocess.run(
        [*git, root / "box", "log", "--format=%s"], check=True, capture_output=True
    )
    assert told.stdout == b"first\n"
    stays = by == "a person" and what != "file elsewhere"
    assert ("THREE" in (root / "box/f").read_text()) == (stays and what == "edit")
    assert (root / "box/new/n").exists() == (stays and what == "new file")
    workspace.redo(PERSON)
    assert (root / "there/.git/HEAD").exists()
    assert not (root / "box").exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
@pytest.mark.parametrize("deep", ["box", "box/x/y"])
def test_what_somebody_puts_into_a_moved_repository_goes_back_with_it(
    root: Path, workspace: Workspace, deep: str
) -> None:
    (root / deep).mkdir(parents=True)
    (root / deep / "f").write_text("text")
    subprocess.run(["git", "init", "-q", root / deep], check=True)
    workspace.external.resnapshot()
    (root / "box").rename(root / "there")
    found = workspace.external.detect(AGENT).operation
    assert found
    (root / deep.replace("box", "there") / "mine").write_text("mine")
    assert not workspace.undo(PERSON, found.id).left
    assert sorted(os.listdir(root / deep)) == [".git", "f", "mine"]
    assert not (root / "there").exists()


@pytest.mark.parametrize("edited", [False, True])
def test_a_moved_submodule_goes_back_with_the_file_that_is_its_git(
    root: Path, workspace: Workspace, edited: bool
) -> None:
    (root / "box").mkdir()
    (root / "box/.git").write_text("gitdir: ../.git/modules/box\n")
    (root / "box/f").write_text("one\ntwo\n")
    workspace.external.resnapshot()
    (root / "box").rename(root / "there")
    if edited:
        (root / "there/f").write_text("one\nTWO\n")
    workspace.external.detect(AGENT)
    assert not workspace.undo(PERSON).left
    assert not (root / "there").exists()
    assert sorted(os.listdir(root / "box")) == [".git", "f"]


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
@pytest.mark.parametrize("what", ["gone", "taken", "hook"])
def test_a_moved_repository_that_cannot_go_back_is_left_whole_and_named(
    root: Path, workspace: Workspace, what: str
) -> None:
    (root / "box").mkdir()
    (root / "box/f").write_text("text\n")
    subprocess.run(["git", "init", "-q", root / "box"], check=True)
    workspace.external.resnapshot()
    (root / "box").rename(root / "there")
    moved = workspace.external.detect(AGENT).operation
    assert moved
    if what == "gone":
        shutil.rmtree(root / "there/.git")
        assert "there/.git is not there any more" in str(workspace.undo(PERSON, moved.id).notes)
        assert (root / "box/f").exists()
        return
    if what == "taken":
        subprocess.run(["git", "init", "-q", root / "box"], check=True)
        ids = [moved.id]
    else:
        (root / "there/.git/hooks/pre-commit").write_text("#!/bin/sh\n")
        later = workspace.external.detect(AGENT).operation
        assert later
        ids = [later.id, moved.id]
    with pytest.raises(FilepactError) as caught:
        workspace.undo_selected(PERSON, Selection(ids=tuple(ids)))
    assert caught.value.hint
    assert (root / "there/f").exists()
    assert (root / "there/.git/HEAD").exists()
    if what == "hook":
        for one in ids:
            workspace.undo(PERSON, one)
        assert (root / "box/.git/HEAD").exists()
        assert not (root / "there").exists()


def entries(root: Path) -> dict[str, tuple[int, bytes]]:
    """All that lies in a folder, what is Git's own as well: modes and bytes."""
    return {
        str(one.relative_to(root)): (
            one.lstat().st_mode,
            one.read_bytes() if one.is_file() else b"",
        )
        for one in root.rglob("*")
    }


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
@pytest.mark.parametrize(
    ("where", "moves"),
    [
        ("box", "mv {box} there; repo=there"),  # the root itself is not moved while it is in use
        *(
            (where, moves)
            for where in ("box", ".")
            for moves in (
                "mv {box}/.git {box}/git; repo={box}; git=git",
                "mkdir there; mv {box}/.git there/.git; repo=there",
            )
        ),
    ],
)
@pytest.mark.parametrize(
    "change",
    [
        "",
        "echo evil > $git/hooks/pre-push",
        "echo evil > $git/hooks/post-merge; chmod +x $git/hooks/post-merge",
        "rm $git/hooks/pre-push",
        "chmod +x $git/hooks/pre-push",
        "mv $git/hooks/pre-push $git/hooks/post-merge; echo x > $git/info/exclude",
        "git --git-dir=$git config core.fsmonitor evil",
        "git --git-dir=$git config user.name somebody; echo two >> f; echo new > new",
    ],
)
def test_what_steers_git_is_no_part_of_a_repository_that_is_moved_in_the_same_call(
    root: Path, workspace: Workspace, where: str, moves: str, change: str
) -> None:
    """It goes back after that, and nothing is torn apart."""
    box = root / where
    box.mkdir(exist_ok=True)
    (box / "f").write_text("one\n")
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-C", box]
    for words in (["init", "-q"], ["add", "f"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    (box / ".git/hooks/pre-push").write_text("mine\n")
    workspace.external.resnapshot()
    before = entries(root)
    script = f"set -e; git=.git; {moves.format(box=where)}; cd $repo; {change or 'true'}"
    subprocess.run(["sh", "-c", script], cwd=root, check=True)
    after = entries(root)
    found = workspace.external.detect(AGENT)
    assert found.lost is None
    done = [one for one in (found.operation, found.inner) if one]
    assert len(done) == 1 + bool(change)
    if change:
        with pytest.raises(StaleFileError) as caught:
            workspace.undo_selected(PERSON, Selection(ids=tuple(one.id for one in done)))
        order = [caught.value.hint.index(one.id) for one in done]
        assert order == sorted(order)
        assert entries(root) == after
    for one in done:
        assert not workspace.undo(PERSON, one.id).left
    assert entries(root) == before
    for _ in done:
        workspace.redo(PERSON)
    assert entries(root) == after


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
@pytest.mark.parametrize("deep", ["box", "box/x/y"])
@pytest.mark.parametrize("way", ["removed", "moved"])
def test_what_a_repository_held_is_named_as_lost_where_it_was_removed(
    root: Path, workspace: Workspace, deep: str, way: str
) -> None:
    (root / deep).mkdir(parents=True)
    (root / deep / "f").write_text("text")
    subprocess.run(["git", "init", "-q", root / deep], check=True)
    workspace.external.resnapshot()
    if way == "moved":
        (root / "box").rename(root / "elsewhere")
    else:
        shutil.rmtree(root / "box")
    found = workspace.external.detect(AGENT)
    lost = [f"{deep}/.git"] if way == "removed" else []
    assert [*found.unkept] == lost
    assert found.operation is not None
    left = workspace.undo(PERSON, found.operation.id).left
    assert [(one.path, one.lost) for one in left] == [(name, True) for name in lost]
    assert (root / deep / "f").read_text() == "text"
    assert (root / deep / ".git/HEAD").exists() == (way == "moved")


@pytest.mark.parametrize("refused", ["all", "folders"])
def test_where_nothing_can_be_renamed_a_copy_has_all_that_was_there(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    real = atomic.move_entry

    def refusing(parent: int, name: str, to: int, new: str, shown: tuple[str, str]) -> bool:
        if refused == "all" or (root / shown[0]).is_dir():
            return False
        return real(parent, name, to, new, shown)

    monkeypatch.setattr(atomic, "move_entry", refusing)
    fill(root / "box")
    was, numbers = everything(root), inodes(root)
    managed(workspace, "move", "box", "elsewhere")
    after = {name.replace("elsewhere", "box"): one for name, one in everything(root).items()}
    assert after == was
    assert (inodes(root)["elsewhere/plain"] == numbers["box/plain"]) == (refused == "folders")
    workspace.undo(PERSON)
    assert everything(root) == was
    assert inodes(root)["box/plain"] == numbers["box/plain"], "which was kept when it was copied"


def test_moves_of_which_one_fails_are_all_taken_back(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (root / name).write_text(f"{name}\n")
    was = inodes(root)
    real = atomic.move_entry

    def late(parent: int, name: str, to: int, new: str, shown: tuple[str, str]) -> bool:
        if shown == ("b", "y"):
            (root / "y").write_text("mine\n")
        return real(parent, name, to, new, shown)

    monkeypatch.setattr(atomic, "move_entry", late)
    with workspace.draft(AGENT, "patch_apply") as draft:
        one, to, two, there = draft.open_all(["a", "x", "b", "y"], itself=["a", "b"])
        draft.move(one, to, None)
        draft.move(two, there, None)
        with pytest.raises(StaleFileError):
            workspace.submit(draft, "two moves")
    assert (root / "y").read_text() == "mine\n"
    assert {name: one for name, one in inodes(root).items() if name != "y"} == was
    assert [one.state for one in workspace.log()] == ["rolled_back"]


def test_what_becomes_of_rights_is_shown_in_words(root: Path, workspace: Workspace) -> None:
    (root / "a").write_text("a\n")
    (root / "folder").mkdir()
    workspace.external.resnapshot()
    os.setxattr(root / "a", ACCESS, WITHHELD)
    os.setxattr(root / "a", "user.tag", b"1")
    (root / "folder").chmod(0o2750)
    workspace.external.detect(AGENT, tool="bash")
    shown = workspace.undo(PERSON, dry_run=True).diff
    for line in (
        "a: access list: - user:1234:r--",
        "a: attribute - user.tag",
        "folder/: mode 2750 -> 0755",
    ):
        assert line in shown.splitlines()


def test_attributes_of_older_journals_are_read_and_names_of_one_file_are_kept() -> None:
    plain = Attributes(1, 2, modified=3)
    assert Attributes.unpacked(b"[1,2,3]") == plain
    assert Attributes.unpacked(b'[1,2,3,[["user.a","eA=="]],["user.b"]]').omitted == ("user.b",)
    for one in (
        plain,
        Attributes(1, 2, (("user.a", b"x"),), (), 3, "fe00:1a"),
        Attributes(1, 2, linked="1:2"),
    ):
        again = Attributes.unpacked(one.packed())
        assert (again, again.modified, again.linked) == (one, one.modified, one.linked)
