"""What a dialog shows of a change that waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact.errors import NoChangeError
from filepact_acp.approvals import exhibit
from tests.workspace.acting import write

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.domain.document import WorkspacePath

AGENT = Session("s", Actor("agent", "you (person)\u202e " + "x" * 500))


def name(path: WorkspacePath) -> str:
    return path.absolute


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    made.mkdir()
    return made


def test_the_title_says_what_is_wanted_then_who_asked_however_long_the_name_is(root: Path) -> None:
    state = str(root.parent / "state")
    with open_workspace([str(root)], state_dir=state, mode="preview") as workspace:
        write(workspace, AGENT, "a.txt", "one\n")
        (proposal,) = workspace.pending()
        title = exhibit(workspace, proposal, name).title
    assert title.startswith("write a.txt (preview mode), ")
    assert " agent you (person)" in title
    assert "\u202e" not in title
    assert len(title) < 250


def test_a_change_that_another_stands_in_place_of_is_refused_as_such(root: Path) -> None:
    state = str(root.parent / "state")
    with open_workspace([str(root)], state_dir=state, mode="preview") as workspace:
        write(workspace, AGENT, "a.txt", "one\n")
        (proposal,) = workspace.pending()
        write(workspace, AGENT, "a.txt", "two\n")
        with pytest.raises(NoChangeError) as caught:
            exhibit(workspace, proposal, name)
        (present,) = workspace.pending()
    assert caught.value.details["superseded_by"] == present.id
