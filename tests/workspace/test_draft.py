"""What a draft takes and refuses, before anything is done."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import pytest

from filepact.config.settings import parse_settings
from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import Revision, RootId, WorkspacePath
from filepact.domain.operation import Actor, Approval
from filepact.errors import FilepactError
from filepact.fs.locks import FileLocks
from filepact.fs.path_form import lock_key
from filepact.text.edit import Edit, EditList
from filepact.workspace.documents import EDIT_LIMIT
from filepact.workspace.target import existing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.workspace.draft import Draft
    from filepact.workspace.workspace import Workspace


@pytest.fixture
def draft(workspace: Workspace, session: Session) -> Iterator[Draft]:
    with workspace.draft(session, "t") as draft:
        yield draft


@contextmanager
def refused(code: str) -> Iterator[None]:
    with pytest.raises(FilepactError) as caught:
        yield
    assert caught.value.code == code


def everything(text: str) -> EditList:
    return EditList((Edit(0, len(text), ""),))


def test_files_are_opened_once(draft: Draft, root: Path) -> None:
    (root / "a.txt").write_text("a\n")
    draft.open("a.txt")
    with pytest.raises(RuntimeError):
        draft.open("a.txt")


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(
    ("act", "code"),
    [
        ("rm -r sub", "NOT_FOUND"),
        ("rm sub/a && mkdir sub/a", "NOT_A_FILE"),
        (
            "rm sub/a && mkdir .git && cp .env .git/config && ln -s ../.git/config sub/a",
            "PATH_BLOCKED",
        ),
        ("mv sub other && mkdir sub && cp other/a sub/a", ""),
        ("rm sub/a && ln -s ../b sub/a && cp .env b", ""),
    ],
)
def test_what_a_name_led_to_is_not_taken_for_what_it_leads_to(
    workspace: Workspace,
    session: Session,
    root: Path,
    tmp_path: Path,
    act: str,
    code: str,
    *,
    there: bool,
) -> None:
    (root / "sub").mkdir()
    for name in ("sub/a", ".env"):
        (root / name).write_text("a\n")
    for _ in range(2):
        with workspace.draft(session, "t") as draft:
            draft.open("sub/a", there=there)
    subprocess.run(act, shell=True, check=True, cwd=root)  # noqa: S602 - our own words
    true = (root / "sub/a").resolve()
    with workspace.draft(session, "t") as draft, refused(code) if code else nullcontext():
        target = draft.open("sub/a", there=there)
        if code == "NOT_FOUND" and not there:
            existing(target)
        # Whoever changes the file by another of its names waits.
        key = lock_key(true.parent.stat(), true.name)
        held = FileLocks(str(tmp_path / "state" / "locks")).try_hold([key])
        assert (held is None) == (not code)


def test_a_file_that_has_gone_since_is_missed_also_where_none_may_be_made(
    open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    rules = "[[deny]]\nname = 'none new'\npaths = ['*.txt']\nactions = ['create']\n"
    workspace = open_here(settings=parse_settings(rules, name="f"))
    (root / "a.txt").write_text("a\n")
    with workspace.draft(session, "t") as draft:
        draft.open_existing("a.txt")
    (root / "a.txt").unlink()
    with workspace.draft(session, "t") as draft, refused("NOT_FOUND"):
        draft.open_existing("a.txt")


def test_a_moved_file_has_its_bytes_and_mode_under_the_new_name(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.bin").write_bytes(b"\0\1\2")
    (root / "a.bin").chmod(0o750)
    with workspace.draft(session, "t") as draft:
        source, target = draft.open_all(["a.bin", "sub/b.bin"])
        draft.move(source, target, None)
        assert [change.kind for change in draft.changes.changes] == ["create", "delete"]
        workspace.submit(draft, "move")
    assert not (root / "a.bin").exists()
    assert (root / "sub/b.bin").read_bytes() == b"\0\1\2"
    assert (root / "sub/b.bin").stat().st_mode & 0o777 == 0o750
    workspace.undo(session, dry_run=False)
    assert (root / "a.bin").read_bytes() == b"\0\1\2"
    assert not (root / "sub").exists()


def test_a_file_does_not_move_over_another(draft: Draft, root: Path) -> None:
    (root / "a").write_text("a")
    (root / "b").write_text("b")
    source, target = draft.open_all(["a", "b"])
    with refused("INVALID_PARAMS"):
        draft.move(source, target, None)


def test_what_does_not_exist_cannot_be_edited_moved_or_removed(draft: Draft) -> None:
    missing, other = draft.open_all(["missing", "other"])
    with refused("NOT_FOUND"):
        draft.edit(missing, everything)
    with refused("NOT_FOUND"):
        draft.move(missing, other, None)
    with refused("NOT_FOUND"):
        draft.delete(missing, emptied_by=everything)


def test_a_file_that_holds_more_than_is_removed_is_not_deleted(draft: Draft, root: Path) -> None:
    (root / "a.txt").write_text("one\ntwo\n")
    target = draft.open("a.txt")
    with refused("PATCH_CONTEXT_MISMATCH"):
        draft.delete(target, emptied_by=lambda _: EditList((Edit(0, 4, ""),)))
    assert not draft.changes


def test_a_mode_that_lets_a_file_run_waits_for_a_person(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "run.sh").write_text("true\n")
    (root / "run.sh").chmod(0o640)
    with workspace.draft(session, "t") as draft:
        draft.set_mode(draft.open("run.sh"), 0o750)
        receipt = workspace.submit(draft, "chmod")
    assert "new mode" in receipt.diff
    assert (receipt.status, receipt.rule) == ("pending", "executable files")
    workspace.approve(receipt.operation, Approval(Actor("person", "ann")))
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o750


def test_a_mode_that_lets_nothing_run_needs_no_approval(
    workspace: Workspace, draft: Draft, root: Path
) -> None:
    (root / "run.sh").write_text("true\n")
    (root / "run.sh").chmod(0o750)
    draft.set_mode(draft.open("run.sh"), 0o640)
    assert workspace.submit(draft, "chmod").status == "applied"
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o640


def test_a_mode_goes_with_new_contents(workspace: Workspace, session: Session, root: Path) -> None:
    (root / "run.sh").write_text("true\n")
    with workspace.draft(session, "t") as draft:
        target = draft.open("run.sh")
        draft.put(target, b"false\n")
        draft.set_mode(target, 0o700)
        receipt = workspace.submit(draft, "both")
    workspace.approve(receipt.operation, Approval(Actor("person", "ann")))
    assert (root / "run.sh").read_bytes() == b"false\n"
    assert (root / "run.sh").stat().st_mode & 0o777 == 0o700


def test_a_change_that_ends_where_it_began_is_none(draft: Draft, root: Path) -> None:
    (root / "a.txt").write_text("a\n")
    target = draft.open("a.txt")
    draft.put(target, b"b\n")
    assert draft.changes
    draft.put(target, b"a\n")
    assert not draft.changes


def test_appending_nothing_is_no_change_and_something_takes_the_files_line_ends(
    draft: Draft, root: Path
) -> None:
    (root / "a.txt").write_bytes(b"a\r\n")
    target = draft.open("a.txt")
    draft.write(target, "", append=True)
    assert not draft.changes
    draft.write(target, "b\n", append=True)
    (change,) = draft.changes.changes
    assert change.after is not None
    assert draft.result().contents[change.after.content] == b"a\r\nb\r\n"


def test_more_than_the_limit_is_not_written(draft: Draft) -> None:
    target = draft.open("a.txt")
    with refused("FILE_TOO_LARGE"):
        draft.write(target, "x" * (EDIT_LIMIT + 1))


def test_a_revision_is_expected_of_a_file_that_exists(draft: Draft) -> None:
    with refused("STALE_FILE"):
        draft.open("new.txt", expected_revision="0123456789ab")


def test_an_edit_that_fits_neither_text_says_why_it_does_not_fit_the_present_one(
    workspace: Workspace, session: Session, root: Path
) -> None:
    (root / "a.txt").write_text("a\n")
    workspace.reader(session).document("a.txt")
    (root / "a.txt").write_text("b\n")

    def fits_nothing(text: str) -> EditList:
        message = f"not in {text!r}"
        raise FilepactError(message)

    with workspace.draft(session, "t") as draft, pytest.raises(FilepactError) as caught:
        draft.edit(draft.open("a.txt"), fits_nothing)
    assert "not in 'b" in caught.value.message


def test_values_hold_what_they_promise() -> None:
    path = WorkspacePath(RootId("/r"), "a/b")
    state = Revision.of(b"x", 0o644)
    assert (path.absolute, WorkspacePath(RootId("/r"), ".").absolute) == ("/r/a/b", "/r")
    for bad in ("", "./a", "a/.", "a/../b", "/a", "a//b"):
        with pytest.raises(ValueError, match="canonical"):
            WorkspacePath(RootId("/r"), bad)
    with pytest.raises(ValueError, match="nothing changes"):
        FileChange(path, state, state)
    with pytest.raises(ValueError, match="changed twice"):
        ChangeSet((FileChange(path, None, state), FileChange(path, state, None)))
    assert state.short != Revision.of(b"x", 0o755).short
    change = FileChange(path, None, state)
    assert change.inverse().inverse() == change
    assert change.inverse().kind == "delete"
    assert FileChange(path, state, Revision.of(b"y", 0o644)).kind == "modify"
