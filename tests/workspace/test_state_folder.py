"""What a running workspace does when somebody takes parts of its state folder away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.errors import FilepactError
from tests.workspace.acting import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.workspace.workspace import Workspace


def test_locks_that_are_removed_between_two_changes_are_made_anew(
    workspace: Workspace, session: Session, root: Path, tmp_path: Path
) -> None:
    write(workspace, session, "a.txt", "one\n")
    (tmp_path / "state/locks").unlink()
    write(workspace, session, "a.txt", "two\n")
    assert (root / "a.txt").read_text() == "two\n"


def test_a_change_whose_locks_were_removed_meanwhile_is_refused_and_can_be_sent_again(
    open_here: Callable[..., Workspace],
    session: Session,
    other: Session,
    root: Path,
    tmp_path: Path,
) -> None:
    one, two = open_here(), open_here()
    with one.draft(session, "write_file") as draft:
        draft.write(draft.open("a.txt"), "one\n")
        (tmp_path / "state/locks").unlink()
        write(two, other, "a.txt", "two\n")
        with pytest.raises(FilepactError) as caught:
            one.submit(draft, "write a.txt")
    assert caught.value.code == "STATE_ERROR"
    assert (root / "a.txt").read_text() == "two\n"
    assert len(one.log()) == 1
    write(one, session, "b.txt", "again\n")


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_stands_in_the_place_of_the_locks_is_told_and_looking_back_goes_on(
    open_here: Callable[..., Workspace], session: Session, tmp_path: Path, kind: str
) -> None:
    write(open_here(), session, "a.txt", "one\n")
    (tmp_path / "state/locks").unlink()
    if kind == "folder":
        # Of an earlier version, whose programs have ended.
        (tmp_path / "state/locks").mkdir()
        (tmp_path / "state/locks/abc").touch()
    else:
        (tmp_path / "state/locks").touch()
    workspace = open_here()
    assert len(workspace.log()) == 1
    write(workspace, session, "a.txt", "two\n")
    assert (tmp_path / "state/locks").is_file()
