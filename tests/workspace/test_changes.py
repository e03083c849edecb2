"""What a change does to files, journal and session."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from filepact.domain.operation import Actor, Approval
from filepact.errors import CODES, FilepactError
from filepact.text.locate import place
from tests import entries
from tests.entries import access_list, facts
from tests.unprivileged import unprivileged
from tests.workspace.acting import delete, edit, read, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.workspace.receipt import Receipt
    from filepact.workspace.workspace import Workspace


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(FilepactError) as caught:
        call()
    assert caught.value.code in CODES
    return caught.value.code


def test_a_new_file_is_written_and_journalled(
    workspace: Workspace, session: Session, root: Path
) -> None:
    receipt = write(workspace, session, "a.txt", "one\ntwo\n")
    assert (root / "a.txt").read_bytes() == b"one\ntwo\n"
    assert receipt.status == "applied"
    assert receipt.files[0].before is None
    assert (receipt.files[0].added, receipt.files[0].removed) == (2, 0)
    (operation,) = workspace.log()
    assert operation.id == receipt.operation
    assert operation.state == "applied"
    assert workspace.diff(operation) == receipt.diff


@pytest.mark.skipif(sys.platform != "linux", reason="access lists as Linux has them")
def test_what_is_new_has_the_rights_that_the_system_gives_there(
    workspace: Workspace, session: Session, root: Path
) -> None:
    shared = root / "shared"
    shared.mkdir()
    shared.chmod(0o2775)
    listed = access_list(("u", 7), ("user", 1234, 7), ("g", 7), ("mask", 7), ("o", 5))
    os.setxattr(shared, entries.DEFAULT, listed)
    made = shared / "made by hand"
    made.mkdir()
    (made / "k").write_text("new\n")
    (shared / "x").write_text("new\n")
    write(workspace, session, "shared/made here/k", "new\n")
    write(workspace, session, "shared/y", "new\n")
    wanted, found = (facts(shared / name) for name in ("made by hand", "made here"))
    assert not_times(found) == not_times(wanted)
    assert not_times(facts(shared / "y")) == not_times(facts(shared / "x"))
    assert workspace.undo(session).status == "applied"
    workspace.redo(session)
    assert not_times(facts(shared / "y")) == not_times(facts(shared / "x"))


def not_times(found: dict[str, Any]) -> dict[str, Any]:
    return {name: {**said, "written": None} for name, said in found.items()}


def test_a_dry_run_shows_the_same_diff_and_changes_nothing(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_bytes(b"one\n")
    preview = write(workspace, session, "a.txt", "two\n", dry_run=True)
    assert preview.status == "preview"
    assert preview.operation is None
    assert (root / "a.txt").read_bytes() == b"one\n"
    assert workspace.log() == ()
    assert write(workspace, session, "a.txt", "two\n").diff == preview.diff


@pytest.mark.parametrize("keeps", [True, False])
def test_a_file_with_several_names_stays_one_file_or_does_not_as_a_person_has_set(
    workspace: Workspace, session: Session, root: Path, keeps: bool
) -> None:
    workspace.guard.roots[0].keeps_links = keeps
    (root / "a.txt").write_text("one\n")
    (root / "sub").mkdir()
    os.link(root / "a.txt", root / "sub/b.txt")
    for step in ("preview", "applied"):
        receipt = write(workspace, session, "a.txt", "two\n", dry_run=step == "preview")
        assert receipt.status == step
        assert ("sub/b.txt" in " ".join(receipt.notes)) == keeps
        assert ("keep the old text" in " ".join(receipt.notes)) != keeps
    assert (root / "sub/b.txt").read_text() == ("two\n" if keeps else "one\n")
    assert (root / "a.txt").samefile(root / "sub/b.txt") == keeps
    workspace.undo(session)
    assert {(root / name).read_text() for name in ("a.txt", "sub/b.txt")} == {"one\n"}
    assert (root / "a.txt").samefile(root / "sub/b.txt") == keeps


def test_a_file_whose_other_name_is_elsewhere_or_protected_is_replaced(
    workspace: Workspace, session: Session, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text("one\n")
    (root / ".git/hooks").mkdir(parents=True)
    (root / ".git/hooks/pre-commit").write_text("one\n")
    for name, other in (("a", tmp_path / "outside"), ("b", root / ".git/hooks/pre-commit")):
        os.link(other, root / name)
        receipt = write(workspace, session, name, "two\n")
        assert "keep the old text" in " ".join(receipt.notes)
        assert other.read_text() == "one\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as others")
def test_a_file_that_its_user_could_not_open_for_writing_is_refused(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("one\n")
    os.chown(root / "a.txt", 1234, 1235)
    root.chmod(0o777)

    def act() -> Receipt:
        return write(workspace, session, "a.txt", "two\n")

    assert code_of(lambda: unprivileged(act)) == "WRITE_ERROR"
    (root / "a.txt").chmod(0o666)
    receipt = unprivileged(act)
    assert "in place" in " ".join(receipt.notes)
    now = (root / "a.txt").stat()
    assert (now.st_uid, now.st_gid) == (1234, 1235)
    unprivileged(lambda: workspace.undo(session))
    now = (root / "a.txt").stat()
    assert (now.st_uid, now.st_gid) == (1234, 1235)
    assert (root / "a.txt").read_text() == "one\n"


def test_writing_what_is_there_is_unchanged_and_not_journalled(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    assert write(workspace, session, "a.txt", "one\ntwo\n").status == "unchanged"
    assert workspace.log() == ()


def test_an_overwrite_keeps_line_ends_encoding_and_mode(
    workspace: Workspace, session: Session, root: Path
) -> None:
    path = root / "run.sh"
    path.write_bytes("\ufeffé\r\nzwei\r\n".encode())
    path.chmod(0o750)
    write(workspace, session, "run.sh", "é\nzwei\ndrei\n")
    assert path.read_bytes() == "\ufeffé\r\nzwei\r\ndrei\r\n".encode()
    assert path.stat().st_mode & 0o7777 == 0o750


@pytest.mark.parametrize(
    "change",
    [
        lambda *there: edit(*there, "6\n", "six\n"),
        lambda *there: write(*there, "1\n2\n3\n4\n5\nsix\n"),
    ],
    ids=["edit", "whole"],
)
def test_a_change_over_somebody_elses_later_one_keeps_both(
    workspace: Workspace, session: Session, root: Path, change: Callable[..., Receipt]
) -> None:
    (root / "a.txt").write_text("1\n2\n3\n4\n5\n6\n")
    read(workspace, session, "a.txt")
    (root / "a.txt").write_text("one\n2\n3\n4\n5\n6\n")
    receipt = change(workspace, session, "a.txt")
    assert (root / "a.txt").read_text() == "one\n2\n3\n4\n5\nsix\n"
    assert any("merged" in note for note in receipt.notes)


def test_an_edit_of_lines_that_somebody_rewrote_is_stale_and_shows_the_difference(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("alpha\nbeta\ngamma\n")
    read(workspace, session, "a.txt")
    (root / "a.txt").write_text("alpha\nBETA!\ngamma\n")
    with pytest.raises(FilepactError) as caught:
        edit(workspace, session, "a.txt", "beta\n", "b\n")
    assert caught.value.code == "STALE_FILE"
    assert "+BETA!" in caught.value.message
    assert (root / "a.txt").read_text() == "alpha\nBETA!\ngamma\n"


def test_a_whole_write_over_the_same_lines_is_stale(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("alpha\n")
    read(workspace, session, "a.txt")
    (root / "a.txt").write_text("theirs\n")
    assert code_of(lambda: write(workspace, session, "a.txt", "mine\n")) == "STALE_FILE"
    assert (root / "a.txt").read_text() == "theirs\n"


def test_what_a_session_wrote_itself_counts_as_seen(
    workspace: Workspace, session: Session, root: Path
) -> None:
    write(workspace, session, "a.txt", "alpha\n")
    receipt = write(workspace, session, "a.txt", "beta\n")
    assert receipt.status == "applied"
    assert receipt.notes == ()
    assert (root / "a.txt").read_text() == "beta\n"


def test_an_expected_revision_that_is_not_there_is_refused(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("alpha\n")
    seen = workspace.reader(session).document("a.txt").revision.short
    (root / "a.txt").write_text("beta\n")
    with pytest.raises(FilepactError) as caught, workspace.draft(session, "t") as draft:
        draft.open("a.txt", expected_revision=seen)
    assert caught.value.code == "STALE_FILE"
    assert "+beta" in caught.value.message
    now = workspace.reader(session).document("a.txt").revision.short
    with workspace.draft(session, "t") as draft:
        assert draft.open("a.txt", expected_revision=now).document is not None


def test_latin_1_keeps_every_byte_outside_the_edit(
    workspace: Workspace, session: Session, root: Path
) -> None:
    before = b"caf\xe9\nplain\nna\xefve\n"
    (root / "a.txt").write_bytes(before)
    edit(workspace, session, "a.txt", "plain", "simple")
    assert (root / "a.txt").read_bytes() == before.replace(b"plain", b"simple")
    assert code_of(lambda: edit(workspace, session, "a.txt", "simple", "é")) == "ENCODING_UNSAFE"


REFUSED = [
    ("../x.txt", "PATH_BLOCKED"),
    ("/etc/hostname", "PATH_BLOCKED"),
    ("out/x.txt", "PATH_BLOCKED"),
    ("dangling", "PATH_BLOCKED"),
    ("id_rsa", "PATH_BLOCKED"),
    ("alias", "PATH_BLOCKED"),
    (".git/hooks/pre-commit", "PATH_BLOCKED"),
    ("pipe", "PATH_BLOCKED"),
    ("folder", "NOT_A_FILE"),
    ("a\0b", "PATH_BLOCKED"),
    ("\ud800", "PATH_BLOCKED"),
]


@pytest.mark.parametrize(("path", "code"), REFUSED)
def test_what_must_not_be_written_is_refused_by_code(
    workspace: Workspace, session: Session, root: Path, tmp_path: Path, path: str, code: str
) -> None:
    (tmp_path / "outside").mkdir()
    (root / "out").symlink_to("../outside")
    (root / "dangling").symlink_to("../outside/new.txt")
    (root / "id_rsa").write_text("KEY=SECRET\n")
    (root / "alias").symlink_to("id_rsa")
    (root / ".git" / "hooks").mkdir(parents=True)
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    before = sorted(p.name for p in tmp_path.rglob("*") if "state" not in p.parts)
    with pytest.raises(FilepactError) as caught:
        write(workspace, session, path, "x\n")
    assert caught.value.code == code
    assert "SECRET" not in caught.value.report()
    assert sorted(p.name for p in tmp_path.rglob("*") if "state" not in p.parts) == before


def test_an_in_root_link_is_written_through_and_stays_a_link(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "real.txt").write_text("old\n")
    (root / "link.txt").symlink_to("real.txt")
    write(workspace, session, "link.txt", "new\n")
    assert (root / "link.txt").is_symlink()
    assert (root / "real.txt").read_text() == "new\n"
    assert workspace.log()[0].changes.paths[0].path == "real.txt"


def test_a_change_of_several_files_is_done_whole_or_not_at_all(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "b.txt").write_text("b\n")
    with workspace.draft(session, "t") as draft:
        first, second = draft.open_all(["a.txt", "b.txt"])
        draft.write(first, "A\n")
        draft.write(second, "B\n")
        # A program that knows no locks saves the second file at this very moment.
        (root / "b.txt").write_text("theirs\n")
        assert code_of(lambda: workspace.submit(draft, "both")) == "STALE_FILE"
    assert (root / "a.txt").read_text() == "a\n"
    assert (root / "b.txt").read_text() == "theirs\n"
    assert workspace.log()[0].state == "rolled_back"
    assert not list(root.glob(".filepact-*"))


def test_two_names_of_one_file_are_refused_in_one_change(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "b.txt").symlink_to("a.txt")
    with workspace.draft(session, "t") as draft:
        assert code_of(lambda: draft.open_all(["a.txt", "b.txt"])) == "INVALID_PARAMS"


def test_sixteen_edits_at_once_leave_sixteen_edits(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("".join(f"line {n}\n" for n in range(16)))
    errors: list[BaseException] = []

    def one(number: int) -> None:
        try:
            edit(workspace, session, "a.txt", f"line {number}\n", f"LINE {number}\n")
        except BaseException as error:  # noqa: BLE001 - reported by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert (root / "a.txt").read_text() == "".join(f"LINE {n}\n" for n in range(16))
    assert len(workspace.log(limit=None)) == 16


def test_a_deleted_file_is_gone_and_comes_back_by_undo(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "a.txt").chmod(0o600)
    delete(workspace, session, "a.txt")
    assert not (root / "a.txt").exists()
    workspace.undo(session, dry_run=False)
    assert (root / "a.txt").read_text() == "a\n"
    assert (root / "a.txt").stat().st_mode & 0o777 == 0o600


def test_a_preview_mode_change_waits_and_is_done_on_approval(
    open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("1\n2\n3\n4\n5\n")
    waiting = open_here(mode="preview")
    receipt = write(waiting, session, "a.txt", "1\n2\n3\n4\nfive\n")
    assert receipt.status == "pending"
    assert receipt.operation is not None
    assert (root / "a.txt").read_text() == "1\n2\n3\n4\n5\n"
    (root / "a.txt").write_text("one\n2\n3\n4\n5\n")

    # Another process, after a restart, with the files moved on.
    person = open_here()
    (proposal,) = person.pending()
    assert proposal.id == receipt.operation
    with pytest.raises(FilepactError) as caught:
        person.approve(proposal.id, Approval(Actor("person", "ada")))
    assert caught.value.code == "PROPOSAL_CHANGED"
    (proposal,) = person.pending()
    assert caught.value.details["proposal"] == proposal.id != receipt.operation
    done = person.approve(proposal.id, Approval(Actor("person", "ada")))
    assert done.operation == proposal.id
    assert (root / "a.txt").read_text() == "one\n2\n3\n4\nfive\n"
    assert person.log()[0].approved_by == "ada"
    assert person.pending() == ()
    again = lambda: person.approve(proposal.id, Approval(Actor("person", "ada")))  # noqa: E731
    assert code_of(again) == "NO_CHANGE"


def test_a_rejected_proposal_keeps_the_reason_and_changes_nothing(
    open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    waiting = open_here(mode="preview")
    receipt = write(waiting, session, "a.txt", "x\n")
    assert receipt.operation is not None
    rejected = waiting.reject(receipt.operation, Approval(Actor("person", "ada"), "not now"))
    assert rejected.state == "rejected"
    assert rejected.reason == "not now"
    assert not (root / "a.txt").exists()


def test_edits_of_one_file_by_two_sessions_are_both_kept(
    open_here: Callable[..., Workspace], session: Session, other: Session, root: Path
) -> None:
    (root / "a.txt").write_text("1\n2\n3\n4\n5\n6\n")
    first, second = open_here(), open_here()
    read(first, session, "a.txt")
    read(second, other, "a.txt")
    edit(first, session, "a.txt", "1\n", "one\n")
    edit(second, other, "a.txt", "6\n", "six\n")
    assert (root / "a.txt").read_text() == "one\n2\n3\n4\n5\nsix\n"


def test_a_file_over_the_limit_cannot_be_edited_but_read_in_windows(
    workspace: Workspace, session: Session, root: Path
) -> None:
    with (root / "big.log").open("wb") as stream:
        stream.writelines(b"line %d\n" % number for number in range(1_000_000))
    assert code_of(lambda: edit(workspace, session, "big.log", "line 7\n", "x")) == "FILE_TOO_LARGE"
    window = workspace.reader(session).window("big.log", first=500_000, count=2)
    assert window.lines == ("line 500000", "line 500001")
    assert window.more
    assert window.revision is None


def test_placing_never_runs_on_an_old_text(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("x\n")
    with workspace.draft(session, "t") as draft:
        target = draft.open_existing("a.txt")
        draft.edit(target, lambda text: place(text, "x", "y").edits)
        (root / "a.txt").write_text("x and more\n")
        assert code_of(lambda: workspace.submit(draft, "edit")) == "STALE_FILE"
    assert (root / "a.txt").read_text() == "x and more\n"


def test_an_approval_that_the_disk_refuses_leaves_a_proposal_to_approve_again(
    open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("a\n")
    (root / "a.txt").chmod(0o444)
    waiting = open_here(mode="preview")
    receipt = write(waiting, session, "a.txt", "b\n")
    assert receipt.operation is not None
    person = Approval(Actor("person", "ada"))
    with pytest.raises(FilepactError) as caught:
        waiting.approve(receipt.operation, person)
    assert caught.value.code == "WRITE_ERROR"
    (again,) = waiting.pending()
    assert caught.value.details["proposal"] == again.id == receipt.operation
    assert waiting.events(session) == ()
    (root / "a.txt").chmod(0o644)
    with pytest.raises(FilepactError):
        waiting.approve(again.id, person)
    (fitted,) = waiting.pending()
    waiting.approve(fitted.id, person)
    assert (root / "a.txt").read_text() == "b\n"
