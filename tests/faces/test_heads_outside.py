"""Signed heads that are kept outside by one setting: a file, notes in a Git repository, a command of the person's."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_workspace
from filepact.config.settings import parse_settings
from filepact.domain.operation import Actor, Session
from filepact.errors import InvalidParamsError
from filepact.text.signed_note import split_notes
from tests.workspace.acting import write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faces.command_line import CommandLine

AGENT = Session("s", Actor("agent", "tester"))
SCRIPT = f"""#!{sys.executable} -I
import os, sys
here = os.path.dirname(os.path.realpath(__file__))
with open(here + "/seen", "a") as seen:
    print(os.getcwd(), *sorted(os.environ), file=seen)
if sys.argv[-1] == "keep":
    with open(here + "/kept", "a") as kept:
        kept.write(sys.stdin.read())
elif os.path.exists(here + "/kept"):
    print(open(here + "/kept").read(), end="")
"""


def place_of(kind: str, folder: Path) -> str:
    """A place of a kind, as the settings name it."""
    folder.mkdir(exist_ok=True)
    if kind == "file":
        return json.dumps(str(folder / "heads"))
    if kind == "git":
        subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
        return json.dumps(f"git:{folder}")
    script = folder / "keep"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    return json.dumps([str(script), "a word"])


def empty(kind: str, folder: Path) -> None:
    if kind == "git":
        notes = ["git", "-C", str(folder), "update-ref", "-d", "refs/notes/filepact-audit"]
        subprocess.run(notes, check=True)
    else:
        (folder / ("heads" if kind == "file" else "kept")).write_text("")


def with_settings(cli: CommandLine, heads: str) -> tuple[str, str]:
    settings = cli.state.parent / "own.toml"
    settings.write_text(f"[audit]\nheads = {heads}\n")
    return "--config", str(settings)


def check_of(cli: CommandLine, *own: str) -> dict[str, Any]:
    checks = json.loads(cli(*own, "doctor", "--json").out)["checks"]
    return {one["name"]: one for one in checks}


@pytest.mark.parametrize("kind", ["file", "git", "command"])
def test_heads_are_kept_and_compared_by_themselves_and_a_place_that_was_emptied_is_found(
    cli: CommandLine, tmp_path: Path, kind: str
) -> None:
    folder = tmp_path / "outside"
    own = with_settings(cli, place_of(kind, folder))
    assert cli(*own, "write", "a.txt", stdin=b"text\n").code == 0
    assert cli(*own, "audit", "verify").code == 0
    assert check_of(cli, *own)["heads outside"]["level"] == "none"
    for number in range(2):
        assert cli(*own, "audit", "sign").code == 0
        found = cli.json(*own, "audit", "verify")
        assert found["heads"] == number + 1
        assert found["taken"]
    said = check_of(cli, *own)["heads outside"]
    assert (said["level"], found["taken"] in said["said"]) == ("ok", True)
    empty(kind, folder)
    assert cli.json(*own, "audit", "verify", code=1)["heads"] == 0
    assert check_of(cli, *own)["audit log"]["level"] == "fail"
    # The next one that is kept is one to compare with again.
    assert cli(*own, "audit", "sign").code == 0
    assert cli.json(*own, "audit", "verify")["heads"] == 1


@pytest.mark.parametrize("kind", ["file", "git", "command"])
def test_log_and_journal_that_were_put_back_together_are_found_without_being_told_where_heads_are(
    cli: CommandLine, tmp_path: Path, kind: str
) -> None:
    own = with_settings(cli, place_of(kind, tmp_path / "outside"))
    assert cli(*own, "write", "a.txt", stdin=b"text\n").code == 0
    shutil.copytree(cli.state, tmp_path / "older")
    assert cli(*own, "write", "b.txt", stdin=b"text\n").code == 0
    assert cli(*own, "audit", "sign").code == 0
    shutil.rmtree(cli.state)
    shutil.copytree(tmp_path / "older", cli.state)
    assert cli(*own, "audit", "verify").code == 1


@pytest.mark.parametrize("inside", ["file", "git", "command", "argument"])
def test_nothing_in_a_folder_that_agents_change_is_a_place_or_run(
    cli: CommandLine, tmp_path: Path, inside: str
) -> None:
    folder = cli.root / "outside"
    named = place_of("command" if inside == "argument" else inside, folder)
    if inside == "argument":
        named = json.dumps([sys.executable, str(folder / "keep")])
    own = with_settings(cli, named)
    assert cli(*own, "write", "a.txt", stdin=b"text\n").code == 0
    before = sorted(folder.rglob("*"))
    assert cli(*own, "audit", "sign").code == 1
    assert cli(*own, "audit", "verify").code == 1
    assert sorted(folder.rglob("*")) == before
    assert check_of(cli, *own)["audit log"]["level"] == "fail"


@pytest.mark.parametrize(
    "named",
    ['"/none/heads"', '"git:/none"', '["/none/keep"]', '["/bin/false"]'],
)
def test_a_place_that_takes_nothing_keeps_nobody_from_a_change_and_is_told(
    cli: CommandLine, named: str, caplog: pytest.LogCaptureFixture
) -> None:
    own = with_settings(cli, named)
    settings = parse_settings(f"[audit]\nheads = {named}\n", name="f")
    with open_workspace(str(cli.root), state_dir=str(cli.state), settings=settings) as workspace:
        assert workspace.audit is not None
        for number in range(3):
            for _ in range(1_000):
                workspace.audit.called(AGENT, "read_file", "a.txt", "OK", 0.001)
            write(workspace, AGENT, f"{number}.txt", "text\n")
    assert (cli.root / "2.txt").exists()
    assert [one.name for one in caplog.records] == ["filepact.workspace.audit"]
    assert check_of(cli, *own)["heads outside"]["level"] == "warn"
    assert cli(*own, "audit", "sign").code == 1


def test_what_is_run_sees_nothing_that_an_agent_can_write(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cli.root / "git").write_text("#!/bin/sh\ntouch ran\n")
    (cli.root / "git").chmod(0o755)
    for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "GIT_DIR", "GIT_EXEC_PATH", "BASH_ENV"):
        monkeypatch.setenv(name, str(cli.root))
    folder = tmp_path / "outside"
    monkeypatch.chdir(cli.root)
    own = with_settings(cli, place_of("command", folder))
    assert cli(*own, "write", "a.txt", stdin=b"text\n").code == 0
    assert cli(*own, "audit", "sign").code == 0
    seen = (folder / "seen").read_text().split()
    assert seen[0] == "/"
    assert not {"PYTHONPATH", "LD_LIBRARY_PATH", "GIT_DIR", "GIT_EXEC_PATH", "BASH_ENV"} & {*seen}
    assert not (cli.root / "ran").exists()


@pytest.mark.parametrize("kind", ["file", "git", "command"])
def test_a_server_that_has_confined_itself_keeps_heads_outside(
    cli: CommandLine, tmp_path: Path, kind: str
) -> None:
    folder = tmp_path / "outside"
    own = with_settings(cli, place_of(kind, folder))
    calls = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "write_file", "arguments": {"path": f"{number}.txt", "content": "text\n"}}}
            for number in range(1, 31)
        ),
    ]  # fmt: skip
    words = [sys.executable, "-m", "filepact", *own, "mcp", str(cli.root)]
    done = subprocess.run(
        words,
        input="".join(json.dumps(one) + "\n" for one in calls),
        env={"FILEPACT_STATE_DIR": str(cli.state), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = cli.json(*own, "audit", "verify")
    assert found["heads"] == 1, done.stderr
    assert found["operations"] == 30


def test_only_the_persons_settings_name_a_place(cli: CommandLine, tmp_path: Path) -> None:
    (cli.root / ".filepact.toml").write_text(f'[audit]\nheads = "{tmp_path / "heads"}"\n')
    assert cli("write", "a.txt", stdin=b"text\n").code == 2
    for wrong in ('"here"', '"git:here"', "[]", '["keep"]', "[1]", "3", '["/bin/true", 1]'):
        with pytest.raises(InvalidParamsError):
            parse_settings(f"[audit]\nheads = {wrong}\n", name="f")


def test_of_heads_that_two_processes_keep_at_once_none_is_lost(
    cli: CommandLine, tmp_path: Path
) -> None:
    folder = tmp_path / "outside"
    own = with_settings(cli, place_of("git", folder))
    assert cli(*own, "write", "a.txt", stdin=b"text\n").code == 0
    words = [sys.executable, "-m", "filepact", *own, "--root", str(cli.root), "--state", str(cli.state), "audit", "sign"]  # fmt: skip
    signing = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    notes = {one.communicate()[0] for one in signing}
    assert len(notes) == 6
    show = ["git", "-C", str(folder), "notes", "--ref=filepact-audit", "show", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"]  # fmt: skip
    kept = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    assert {one.strip() for one in split_notes(kept)} == {one.strip() for one in notes}
    assert cli.json(*own, "audit", "verify")["heads"] == 6
