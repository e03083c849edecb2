"""manage_files: folders made, files and folders moved and deleted, and all of it taken back."""

from __future__ import annotations

import os

import pytest

from filepact.app import open_toolbox
from filepact.domain.operation import Actor, Approval, Session
from filepact.tools.registry import CallContext
from filepact.workspace.folders import MOST_OPENED
from tests.unprivileged import unprivileged

SESSION = Session("s1", Actor("agent", "tester"))
PERSON = Approval(Actor("person", "ann"))


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    (folder / "pkg" / "sub" / "empty").mkdir(parents=True)
    (folder / "pkg").chmod(0o700)
    (folder / "pkg" / "sub" / "empty").chmod(0o711)
    (folder / "pkg" / "a.py").write_text("a = 1\n")
    (folder / "pkg" / "sub" / "b.bin").write_bytes(b"\0\1\2")
    (folder / "pkg" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "pkg" / "run.sh").chmod(0o755)
    (folder / "pkg" / ".gitignore").write_text("ignored.log\n")
    (folder / "pkg" / "ignored.log").write_text("log\n")
    (folder / "plain.txt").write_text("plain\n")
    return folder


@pytest.fixture
def manage(workspace):
    return caller(workspace)


def caller(workspace):
    toolbox = open_toolbox(workspace, own=True)

    def call(action, path, **more):
        arguments = {"action": action, "path": path, **more}
        return toolbox.call("manage_files", arguments, CallContext(SESSION))

    call.workspace = workspace
    return call


def undo(manage):
    manage.workspace.undo(Session("p", PERSON.actor))


def picture(root):
    """Everything below a folder: bytes and permissions of files, permissions of all folders."""
    return {
        str(path.relative_to(root)): path.readlink()
        if path.is_symlink()
        else (path.read_bytes() if path.is_file() else b"", path.stat().st_mode)
        for path in sorted(root.rglob("*"))
    }


def test_a_folder_is_made_with_those_above_it_and_undone(manage, root):
    before = picture(root)
    assert manage("create_dir", "new/deep/").receipt["status"] == "applied"
    assert (root / "new" / "deep").is_dir()
    assert manage("create_dir", "new/deep").receipt["status"] == "unchanged"
    undo(manage)
    assert picture(root) == before


def test_a_folder_that_looks_like_one_beside_it_waits(manage, root):
    (root / "new").mkdir()
    assert manage("create_dir", "n\u0435w").receipt["status"] == "pending"
    assert manage("create_dir", "жизнь").receipt["status"] == "applied"


def test_an_undo_leaves_a_folder_in_which_there_is_something_by_now(manage, root):
    manage("create_dir", "new")
    (root / "new" / "by-hand.txt").write_text("x\n")
    undo(manage)
    assert (root / "new" / "by-hand.txt").read_text() == "x\n"


def test_a_file_is_moved_to_a_new_folder_and_back(manage, root):
    before = picture(root)
    assert not manage("move", "pkg/run.sh", to="other/start.sh").failed
    assert not (root / "pkg" / "run.sh").exists()
    assert os.access(root / "other" / "start.sh", os.X_OK)
    undo(manage)
    assert picture(root) == before


def test_a_name_changes_its_case(manage, root):
    assert not manage("move", "plain.txt", to="Plain.txt").failed
    assert "Plain.txt" in os.listdir(root)
    assert "plain.txt" not in os.listdir(root)


def test_a_folder_is_moved_with_all_that_is_in_it_and_back(manage, root):
    before = picture(root)
    outcome = manage("move", "pkg", to="lib/pkg")
    assert not outcome.failed, outcome.text
    assert not (root / "pkg").exists()
    moved = {f"lib/{name}": what for name, what in before.items() if name.startswith("pkg")}
    after = picture(root)
    assert {name: after.get(name, "missing") for name in moved} == moved
    undo(manage)
    assert picture(root) == before


def test_a_folder_that_its_owner_may_not_write_to_is_moved_there_and_back(manage, root):
    shut = root / "pkg" / "sub"
    shut.chmod(0o555)
    before, inode = picture(root), shut.stat().st_ino
    assert not unprivileged(lambda: manage("move", "pkg/sub", to="lib/sub")).failed
    assert ((root / "lib" / "sub").stat().st_ino, shut.exists()) == (inode, False)
    assert (root / "lib" / "sub").stat().st_mode & 0o777 == 0o555
    unprivileged(lambda: undo(manage))
    assert picture(root) == before
    assert shut.stat().st_ino == inode


def test_a_folder_is_deleted_with_all_that_is_in_it_and_brought_back(manage, root):
    before = picture(root)
    outcome = manage("delete", "pkg")
    assert not outcome.failed, outcome.text
    assert not (root / "pkg").exists()
    undo(manage)
    assert picture(root) == before
    manage.workspace.redo(Session("p", PERSON.actor))
    assert not (root / "pkg").exists()


def test_a_link_is_moved_and_deleted_itself(manage, root):
    (root / "link").symlink_to("plain.txt")
    (root / "pkg" / "dangling").symlink_to("nowhere")
    before = picture(root)
    for path, to in (("link", "other"), ("pkg", "lib")):
        outcome = manage("move", path, to=to)
        assert not outcome.failed, outcome.text
    assert (root / "other").is_symlink()
    assert (root / "lib" / "dangling").is_symlink()
    for path in ("other", "lib"):
        outcome = manage("delete", path)
        assert not outcome.failed, outcome.text
    assert (root / "plain.txt").read_text() == "plain\n"
    assert not (root / "lib").exists()
    for _ in range(4):
        undo(manage)
    assert picture(root) == before


@pytest.mark.parametrize(
    "name", ["link/", "link//", "link/.", "to file/", "dangling/", "sub/inner/..", "./sub/inner/.."]
)
def test_a_name_that_leads_on_to_another_folder_removes_and_moves_nothing(manage, root, name):
    (root / "sub" / "inner").mkdir(parents=True, exist_ok=True)
    (root / "sub" / "kept.txt").write_text("kept")
    (root / "link").symlink_to("sub")
    (root / "to file").symlink_to("sub/kept.txt")
    (root / "dangling").symlink_to("nowhere")
    before = sorted(root.rglob("*"))
    for given in ({"action": "delete"}, {"action": "move", "to": "elsewhere"}):
        outcome = manage(path=name, **given)
        assert outcome.failed, outcome.text
        assert sorted(root.rglob("*")) == before
    outcome = manage(action="move", path="sub/kept.txt", to="free/")
    assert outcome.failed
    assert outcome.text.startswith("NOT_A_FILE")
    assert sorted(root.rglob("*")) == before
    assert not manage(action="delete", path="link").failed
    assert (root / "sub" / "kept.txt").exists()


def test_a_file_is_deleted_and_an_empty_folder_too(manage, root):
    assert not manage("delete", "plain.txt").failed
    assert not manage("delete", "pkg/sub/empty").failed
    assert not (root / "plain.txt").exists()
    assert not (root / "pkg" / "sub" / "empty").exists()
    undo(manage)
    undo(manage)
    assert (root / "plain.txt").read_text() == "plain\n"
    assert (root / "pkg" / "sub" / "empty").is_dir()


def test_the_answer_of_a_move_does_not_repeat_the_files(manage):
    answer = manage("move", "pkg", to="lib")
    assert "rename to lib/a.py" in answer.receipt["diff"]
    assert "a = 1" not in answer.receipt["diff"]
    assert len(answer.text) < 200


def test_a_dry_run_changes_nothing(manage, root):
    before = picture(root)
    for sent in (("create_dir", "n", {}), ("move", "pkg", {"to": "lib"}), ("delete", "pkg", {})):
        outcome = manage(sent[0], sent[1], dry_run=True, **sent[2])
        assert outcome.receipt["status"] == "preview"
    assert picture(root) == before


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (("create_dir", "plain.txt"), "NOT_A_FILE"),
        (("create_dir", "../out"), "PATH_BLOCKED"),
        (("move", "pkg", "plain.txt"), "NOT_A_FILE"),
        (("move", "plain.txt", "pkg"), "NOT_A_FILE"),
        (("move", "plain.txt", "pkg/a.py"), "INVALID_PARAMS"),
        (("move", "pkg", "pkg/sub"), "INVALID_PARAMS"),
        (("move", "pkg", "pkg/sub/more"), "INVALID_PARAMS"),
        (("move", "pkg/sub", "pkg"), "INVALID_PARAMS"),
        (("move", "missing", "x"), "NOT_FOUND"),
        (("move", "plain.txt", "../out.txt"), "PATH_BLOCKED"),
        (("move", "plain.txt"), "INVALID_PARAMS"),
        (("delete", "plain.txt", "x"), "INVALID_PARAMS"),
        (("delete", "missing"), "NOT_FOUND"),
        (("delete", "."), "INVALID_PARAMS"),
        (("move", ".", "x"), "INVALID_PARAMS"),
        (("move", "plain.txt", "link"), "INVALID_PARAMS"),
        (("create_dir", "link"), "NOT_A_FILE"),
        (("delete", "piped"), "PATH_BLOCKED"),
        (("delete", "secret"), "PATH_BLOCKED"),
        (("move", "secret", "x"), "PATH_BLOCKED"),
        (("delete", "vendor"), "PATH_BLOCKED"),
        (("delete", "large"), "FILE_TOO_LARGE"),
        (("delete", "many"), "FILE_TOO_LARGE"),
    ],
)
def test_what_is_refused_changes_nothing(manage, root, sent, code):
    (root / "link").symlink_to("plain.txt")
    for folder in ("piped", "secret", "vendor/.git", "large", "many"):
        (root / folder).mkdir(parents=True)
    os.mkfifo(root / "piped" / "pipe")
    (root / "secret" / "id_rsa").write_text("key\n")
    (root / "vendor" / ".git" / "config").write_text("[core]\n")
    action, path, *to = sent
    if path == "large":
        with (root / "large" / "big.bin").open("wb") as stream:
            stream.truncate(70_000_000)
    if path == "many":
        for number in range(MOST_OPENED + 1):
            (root / "many" / str(number)).touch()
    before = picture(root)
    outcome = manage(action, path, **({"to": to[0]} if to else {}))
    assert (outcome.failed, outcome.code) == (True, code), outcome.text
    assert picture(root) == before


@pytest.mark.parametrize("name", [".", "../pkg", "ROOT/pkg"])
def test_the_folder_that_a_client_shares_stays(manage, workspace, root, name):
    workspace.guard.narrow([str(root / "pkg")])
    before = picture(root)
    for sent in (("delete", {}), ("move", {"to": "sub/other"})):
        outcome = manage(sent[0], name.replace("ROOT", str(root)), **sent[1])
        assert (outcome.failed, outcome.code) == (True, "INVALID_PARAMS"), outcome.text
    assert picture(root) == before


def test_a_folder_of_many_files_is_one_renaming_there_and_back(manage, root):
    many = root / "many"
    many.mkdir()
    for number in range(MOST_OPENED + 100):
        (many / str(number)).write_text(f"{number}\n")
    inodes = {one.name: one.stat().st_ino for one in [many, *many.iterdir()]}
    outcome = manage("move", "many", to="pkg/much")
    assert not outcome.failed, outcome.text
    moved = root / "pkg" / "much"
    assert {one.name: one.stat().st_ino for one in moved.iterdir()}.items() <= inodes.items()
    assert moved.stat().st_ino == inodes["many"]
    undo(manage)
    assert {one.name: one.stat().st_ino for one in [many, *many.iterdir()]} == inodes


def test_a_revision_that_is_another_is_refused(manage, root):
    for action, more in (("move", {"to": "x.txt"}), ("delete", {})):
        outcome = manage(action, "plain.txt", expected_revision="0" * 12, **more)
        assert outcome.code == "STALE_FILE"
    assert (root / "plain.txt").exists()


def test_what_somebody_changed_since_it_was_read_is_not_deleted(manage, root):
    manage.workspace.reader(SESSION).document("pkg/a.py")
    (root / "pkg" / "a.py").write_text("by hand\n")
    assert manage("delete", "pkg").code == "STALE_FILE"
    assert (root / "pkg" / "a.py").read_text() == "by hand\n"


def test_a_folder_with_a_file_that_rules_ask_about_waits_as_a_whole(manage, root):
    (root / "pkg" / "conftest.py").write_text("x = 1\n")
    before = picture(root)
    outcome = manage("delete", "pkg")
    assert outcome.receipt["status"] == "pending"
    assert picture(root) == before
    manage.workspace.approve(outcome.receipt["operation"], PERSON)
    assert not (root / "pkg").exists()


def test_what_is_proposed_counts_as_done_for_its_author(open_here, root):
    before = picture(root)
    workspace = open_here("preview")
    manage = caller(workspace)
    assert manage("move", "pkg", to="lib").receipt["status"] == "pending"
    reader = workspace.reader(SESSION)
    assert "lib/a.py" in reader.find(".", "**/*.py", limit=10).paths
    assert "pkg/a.py" not in reader.find(".", "**/*.py", limit=10).paths
    drawn = reader.tree(".", depth=3, include_files=True, pattern=None, budget=50).text
    assert "lib/" in drawn
    assert "pkg/" not in drawn
    manage("create_dir", "docs")
    assert manage("create_dir", "docs").receipt["status"] == "pending"
    outcome = manage("move", "lib", to="src")
    assert not outcome.failed, outcome.text
    assert picture(root) == before
    for proposal in workspace.pending():
        workspace.approve(proposal.id, PERSON)
    assert (root / "src" / "a.py").read_text() == "a = 1\n"
    assert (root / "docs").is_dir()
    assert not (root / "pkg").exists()
    assert not (root / "lib").exists()


def test_a_proposed_folder_is_taken_back_by_deleting_it(open_here, root):
    workspace = open_here("preview")
    manage = caller(workspace)
    manage("create_dir", "docs")
    assert manage("delete", "docs").receipt["status"] == "withdrawn"
    assert workspace.pending() == ()


def test_a_root_is_there_already(manage):
    assert manage("create_dir", ".").receipt["status"] == "unchanged"


def test_what_is_proposed_to_go_can_be_made_anew_and_is_in_no_folder_any_more(open_here, root):
    workspace = open_here("preview")
    manage = caller(workspace)
    assert manage("delete", "pkg/sub/empty").receipt["status"] == "pending"
    assert manage("create_dir", "pkg/sub/empty").receipt["status"] in ("pending", "withdrawn")
    assert manage("delete", "pkg/a.py").receipt["status"] == "pending"
    # With all that it holds for its author: what is to go anyway is not moved.
    assert not manage("move", "pkg", to="lib").failed
    reader = workspace.reader(SESSION)
    assert "lib/run.sh" in reader.find(".", "**/*", limit=50).paths
    assert "lib/a.py" not in reader.find(".", "**/*", limit=50).paths


def test_a_folder_that_is_not_seen_as_a_whole_is_neither_moved_nor_deleted(
    manage, root, monkeypatch
):
    monkeypatch.setattr("filepact.fs.walk.MAX_DEPTH", 2)
    (root / "pkg" / "sub" / "empty" / "deep").mkdir()
    (root / "pkg" / "sub" / "empty" / "deep" / "x").touch()
    before = picture(root)
    assert manage("move", "pkg", to="lib").code == "PATH_BLOCKED"
    assert manage("delete", "pkg").code == "PATH_BLOCKED"
    assert picture(root) == before


def test_a_file_is_not_moved_onto_a_folder_and_the_name_that_it_would_get_is_said(manage, root):
    for to in ("pkg", "pkg/", "./pkg"):
        outcome = manage("move", "plain.txt", to=to)
        assert outcome.code == "NOT_A_FILE"
        assert "pkg/plain.txt" in outcome.text
    assert (root / "plain.txt").exists()
    manage("move", "plain.txt", to="pkg/plain.txt")


def test_an_expected_revision_after_a_change_of_the_mode_says_that_it_is_the_mode(manage, root):
    seen = manage.workspace.reader(SESSION).document("plain.txt").revision.short
    (root / "plain.txt").chmod(0o755)
    outcome = manage("delete", "plain.txt", expected_revision=seen)
    assert outcome.code == "STALE_FILE"
    assert "0755" in outcome.text


def test_what_has_no_name_in_utf_8_is_moved_deleted_and_brought_back(manage, root):
    odd = root / os.fsdecode(b"odd\xe9")
    odd.mkdir()
    (odd / os.fsdecode(b"lat\xe9.txt")).write_text("one\n")
    (odd / "sub").mkdir()
    (odd / "sub" / os.fsdecode(b"\xff\xfe")).write_text("two\n")
    (root / "literal\\xe9").write_text("literal\n")
    before = picture(root)
    for action, path, to in (
        ("move", "odd\\xe9", "plain"),
        ("move", "odd\\xe9/lat\\xe9.txt", "odd\\xe9/plain.txt"),
        ("move", "odd\\xe9/lat\\xe9.txt", "plainer.txt"),
        ("delete", "odd\\xe9/lat\\xe9.txt", None),
        ("delete", "odd\\xe9", None),
        ("move", "literal\\xe9", "a"),
    ):
        manage(action, path, **({} if to is None else {"to": to}))
        after = picture(root)
        assert len(before.keys() - after.keys()) >= 1
        undo(manage)
        assert picture(root) == before
        manage.workspace.redo(Session("p", PERSON.actor))
        assert picture(root) == after
        undo(manage)
        assert picture(root) == before
