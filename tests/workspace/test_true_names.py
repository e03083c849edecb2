"""A path that filepact has found itself is no name that somebody sent: it is not read as one again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from filepact.domain.operation import Actor, Session
from tests.workspace.acting import read, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

PERSON = Session("p", Actor("person", "p"))


def test_a_change_below_a_root_inside_a_root_can_be_taken_back(
    open_here: Callable[..., Workspace], session: Session, root: Path
) -> None:
    inner = root / "inner"
    inner.mkdir()
    (inner / "a.txt").write_text("one\n")
    workspace = open_here(roots=[str(root), str(inner)])
    receipt = write(workspace, session, "inner/a.txt", "two\n")
    assert workspace.undo(PERSON, receipt.operation, dry_run=False).status == "applied"
    assert (inner / "a.txt").read_text() == "one\n"


def test_a_name_that_is_no_text_and_was_changed_past_the_doors_can_be_taken_back(
    workspace: Workspace, session: Session, root: Path
) -> None:
    odd = root / os.fsdecode(b"caf\xe9.txt")
    odd.write_text("one\n")
    workspace.external.resnapshot()
    odd.write_text("two\n")
    operation = workspace.external.detect(session).operation
    assert operation is not None
    workspace.undo(PERSON, operation.id, dry_run=False)
    assert odd.read_text() == "one\n"


def test_a_deep_name_is_not_too_long_because_its_root_is_deep_as_well(
    open_here: Callable[..., Workspace], session: Session, tmp_path: Path
) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    part = "d" * 200
    whole = str(tmp_path)
    while len(whole) < 3_800:
        os.mkdir(part, dir_fd=folder)
        below = os.open(part, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder, whole = below, f"{whole}/{part}"
    os.close(folder)
    workspace = open_here(roots=[whole])
    name = f"{part}/{'f' * 200}"
    receipt = write(workspace, session, name, "one\n")
    assert read(workspace, session, name) == "one\n"
    assert workspace.undo(PERSON, receipt.operation, dry_run=False).status == "applied"
