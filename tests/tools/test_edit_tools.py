"""write_file and edit_file on a real workspace: what they answer where there is nothing to edit."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Session
from filepact.tools.registry import CallContext

if TYPE_CHECKING:
    from pathlib import Path

CALL = CallContext(Session("s1", Actor("agent", "tester")))


@pytest.mark.parametrize(
    ("path", "code"), [("missing.txt", "NOT_FOUND"), ("empty.txt", "INVALID_PARAMS")]
)
def test_who_edits_what_holds_nothing_is_sent_to_write_file(tmp_path: Path, path: str, code: str):
    root = tmp_path / "root"
    root.mkdir()
    (root / "empty.txt").touch()
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
        sent = {"path": path, "old_string": "", "new_string": "text\n"}
        outcome = open_toolbox(workspace).call("edit_file", sent, CALL)
    assert outcome.code == code
    assert "write_file" in outcome.text
    assert [file.name for file in root.iterdir()] == ["empty.txt"]
    assert (root / "empty.txt").read_bytes() == b""


def test_edits_go_with_the_empty_parameters_that_some_clients_always_send(tmp_path: Path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_bytes(b"one\n")
    filled = {"old_string": "", "new_string": "", "expected_revision": "", "replace_all": None}
    edit = {"old_string": "one", "new_string": "", "replace_all": ""}
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
        box = open_toolbox(workspace, own=True)
        sent = {"path": "a.txt", "edits": [edit], **filled}
        assert not box.call("edit_file", sent, CALL).failed
        assert (root / "a.txt").read_bytes() == b"\n"
        moved = {"action": "delete", "path": "a.txt", "to": "", "expected_revision": ""}
        assert not box.call("manage_files", moved, CALL).failed
    assert not list(root.iterdir())
