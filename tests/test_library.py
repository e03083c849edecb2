"""The public library does what the command does: a person's rules and journal, unless left out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from filepact import Actor, EditList, FilepactError, Session, Settings, open_workspace
from filepact.acp import AgentFiles, ClientFileSystem
from tests.needs import CONFIG_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact import Workspace

ME = Session("s1", Actor("program", "script"))
DENIED = '[[deny]]\npaths = ["x.py"]\nwhy = "it is mine"\nname = "mine"\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "x.py").write_text("a = 1\n")
    return folder


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's settings file, which is not there yet; with a home of this test's own."""
    home = tmp_path / "home"
    file = home / CONFIG_FOLDER / "filepact" / "filepact.toml"
    file.parent.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "etc"))
    return file


def edit(workspace: Workspace, path: str, old: str, new: str) -> str:
    """A script's edit of one file; the code of the error that refuses it, else the status."""
    try:
        with workspace.draft(ME, "script") as draft:
            target = draft.open_existing(path)
            draft.edit(target, lambda text: EditList.between(text, text.replace(old, new)))
            return workspace.submit(draft, f"edit {path}").status
    except FilepactError as error:
        return error.code


def test_a_script_edits_no_file_that_the_persons_rules_forbid(root: Path, settings: Path) -> None:
    with open_workspace([str(root)]) as workspace:
        assert edit(workspace, "x.py", "1", "2") == "applied"
    settings.write_text(DENIED)
    with open_workspace([str(root)]) as workspace:
        assert edit(workspace, "x.py", "2", "3") == "PATH_BLOCKED"
    with open_workspace([str(root)], settings=Settings()) as workspace:
        assert edit(workspace, "x.py", "2", "3") == "applied"
    assert (root / "x.py").read_text() == "a = 3\n"


def test_nor_one_that_the_administrators_rules_or_a_named_file_forbid(
    root: Path, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    above = tmp_path / "etc" / "filepact" / "filepact.toml"
    above.parent.mkdir(parents=True)
    above.write_text(DENIED)
    with open_workspace([str(root)]) as workspace:
        assert edit(workspace, "x.py", "1", "2") == "PATH_BLOCKED"
    above.unlink()
    monkeypatch.setenv("FILEPACT_CONFIG", str(tmp_path / "named.toml"))
    (tmp_path / "named.toml").write_text(DENIED)
    with open_workspace([str(root)]) as workspace:
        assert edit(workspace, "x.py", "1", "2") == "PATH_BLOCKED"


def test_encodings_and_how_far_the_guard_goes_are_the_persons_too(
    root: Path, settings: Path
) -> None:
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU" * 3 + "\n"
    (root / "notes.txt").write_text(key)
    (root / "old.txt").write_bytes("日本\n".encode("shift_jis"))
    settings.write_text('[encodings]\n"old.txt" = "shift_jis"\n[guard]\ncontent = false\n')
    with open_workspace([str(root)]) as workspace:
        assert workspace.reader(ME).document("old.txt").text == "日本\n"
        assert workspace.reader(ME).document("notes.txt").text == key


@pytest.mark.parametrize(
    "start",
    [lambda root: open_workspace([root]), lambda _: ClientFileSystem(), lambda _: AgentFiles(None)],
    ids=["workspace", "client", "agent"],
)
def test_a_settings_file_that_is_wrong_opens_nothing(
    root: Path, settings: Path, tmp_path: Path, start: Callable[[str], object]
) -> None:
    settings.write_text("[[deny]]\npaths = 7\n")
    with pytest.raises(FilepactError) as caught:
        start(str(root))
    assert caught.value.code == "INVALID_PARAMS"
    assert caught.value.details["file"] == str(settings)
    assert not (tmp_path / "home" / ".local").exists()


def test_a_link_to_a_secret_of_the_persons_home_is_known_as_such(
    root: Path, settings: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "home" / ".ssh" / "id_ed25519"
    assert secret.parents[1] in settings.parents
    secret.parent.mkdir()
    secret.write_text("SECRET\n")
    os.link(secret, root / "innocent.txt")
    with open_workspace([str(root)]) as workspace:
        assert edit(workspace, "innocent.txt", "S", "s") == "PATH_BLOCKED"
    with open_workspace([str(root)], home=str(root)) as workspace:
        assert edit(workspace, "innocent.txt", "S", "s") == "applied"


def test_what_a_script_did_is_where_the_command_looks_and_can_be_taken_back(
    root: Path, settings: Path
) -> None:
    with open_workspace(str(root)) as workspace:
        assert edit(workspace, "x.py", "1", "2") == "applied"
    command = [sys.executable, "-m", "filepact", "log", "--json", "--root", str(root)]
    run = subprocess.run(command, capture_output=True, check=True, env={**os.environ})
    assert [one["session"] for one in json.loads(run.stdout)["operations"]] == ["s1"]
    with open_workspace(str(root)) as workspace:
        assert workspace.undo(ME).status == "applied"
        assert (root / "x.py").read_text() == "a = 1\n"
        assert workspace.redo(ME).status == "applied"
        workspace.checkpoint("here")
        assert edit(workspace, "x.py", "2", "3") == "applied"
        assert workspace.restore(ME, "here").status == "applied"
    assert (root / "x.py").read_text() == "a = 2\n"


def test_another_state_folder_leaves_the_persons_journal_alone(
    root: Path, settings: Path, tmp_path: Path
) -> None:
    with open_workspace([str(root)], state_dir=str(tmp_path / "state")) as workspace:
        assert edit(workspace, "x.py", "1", "2") == "applied"
    assert not (tmp_path / "home" / ".local").exists()
