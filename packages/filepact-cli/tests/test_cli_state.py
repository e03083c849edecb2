"""The journal checked and repaired by a person, and what other commands say of a damaged one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import apsw
import pytest

from filepact.app import open_observed, open_workspace
from filepact.config.person import read_settings
from filepact.domain.document import content_id
from filepact.domain.operation import Actor, Session
from filepact_cli import doctor
from tests.workspace.acting import write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.faces.command_line import CommandLine


def text(number: int) -> bytes:
    """A text that does not become much smaller."""
    return b"".join(content_id(b"%d %d" % (number, at)).encode() + b"\n" for at in range(40))


def fill(cli: CommandLine) -> None:
    for number in range(3):
        assert cli("write", f"f{number}.txt", stdin=text(number)).code == 0


def damage(cli: CommandLine, number: int) -> None:
    """Change a byte in the middle of one of the texts."""
    file = cli.state / "journal.db"
    database = apsw.Connection(str(file))
    image = database.execute(
        "SELECT data FROM image ORDER BY number LIMIT 1 OFFSET ?", (number,)
    ).get
    database.close()
    piece = image[400:416]
    # Free pages may hold it once more.
    file.write_bytes(file.read_bytes().replace(piece, bytes([piece[0] ^ 1]) + piece[1:]))


def test_what_was_done_in_a_linked_worktree_is_told_and_undone_from_its_project_as_well(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = (tmp_path / "tree", cli.root / ".claude" / "worktrees" / "x")
    git = ["git", "-C", str(cli.root), "-c", "user.name=a", "-c", "user.email=a@b"]
    add = [("worktree", "add", "-q", "--detach", str(one)) for one in trees]
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "s"), *add):
        subprocess.run([*git, *words], check=True)
    assert cli("write", "first.txt", stdin=b"1\n").code == 0
    for folder in (*trees, trees[0] / "src"):
        monkeypatch.chdir(folder)
        assert cli("write", f"in-{folder.name}.txt", stdin=b"2\n").code == 0
    for tree, count in ((trees[0], 2), (trees[1], 1)):
        monkeypatch.chdir(tree)
        assert len(cli.json("log")["operations"]) == count
    monkeypatch.chdir(cli.root)
    assert len(cli.json("log")["operations"]) == 4
    roots = [one["path"] for one in cli.json("status")["roots"]]
    assert (roots[0], {*roots[1:]}) == (str(cli.root), {str(tree) for tree in trees})
    for made in (trees[0] / "src" / "in-src.txt", trees[1] / "in-x.txt", trees[0] / "in-tree.txt"):
        assert made.exists()
        assert cli.undo_own().code == 0
        assert not made.exists()
    assert (cli.root / "first.txt").exists()
    # Other commands are about the project alone.
    assert cli("write", "src/second.txt", stdin=b"3\n").code == 0
    assert (cli.root / "src" / "second.txt").exists()


def test_before_anything_was_done_there_is_nothing_to_check_or_repair(cli: CommandLine) -> None:
    assert cli.json("state", "check")["sound"] is None
    assert cli("state", "repair").code == 3


def test_a_sound_journal_is_said_to_be_sound_with_what_it_takes(cli: CommandLine) -> None:
    fill(cli)
    assert cli("state", "check").code == 0
    found = cli.json("state", "check")
    assert found["sound"] is True
    assert found["journal"]["contents"] == 3
    assert found["bytes"]["journal"] > 4_096
    assert found["besides"] == []
    assert cli("state", "repair").code == 3


def test_a_damaged_text_is_named_by_all_commands_and_the_rest_goes_on(cli: CommandLine) -> None:
    fill(cli)
    assert cli("write", "f0.txt", stdin=text(9)).code == 0
    damage(cli, 0)
    lost = cli.json("state", "check", code=1)["journal"]["unusable"]
    assert [one["path"] for one in lost] == [str(cli.root / "f0.txt")] * 2
    second, third, _, _ = [one["id"] for one in cli.json("log")["operations"]]
    assert second in {one["id"] for one in lost}
    error = cli.json("undo", second, "--unattended", code=1)["error"]
    assert error["code"] == "STATE_ERROR"
    assert second in error["message"]
    assert str(cli.root / "f0.txt") in error["message"]
    [journal] = [
        one
        for one in cli.json("doctor", code=1)["checks"]
        if one["name"] == "journal" and one["level"] == "fail"
    ]
    assert "--repair" in journal["next"]
    assert "All is well" not in cli("doctor").out

    assert cli.json("state", "repair")["operations"] == 4
    assert cli.json("state", "check")["sound"] is True
    assert cli.json("undo", second, "--unattended", code=1)["error"]["code"] == "NOT_FOUND"
    assert cli("undo", third, "--unattended").code == 0
    assert not (cli.root / "f2.txt").exists()


@pytest.mark.parametrize("command", ["log", "status", "undo", "doctor", "diff"])
def test_a_journal_that_cannot_be_read_is_told_with_the_way_on(
    cli: CommandLine, command: str
) -> None:
    fill(cli)
    file = cli.state / "journal.db"
    file.write_bytes(b"SQLite format 3\0" + os.urandom(9_000))
    said = cli(command, *(["--unattended"] if command == "undo" else []))
    assert said.code == 1
    assert "STATE_ERROR" in said.err or command == "doctor"
    assert "--repair" in said.out + said.err
    assert cli("state", "repair").code == 0
    assert cli.json("log")["operations"] == []


def test_of_a_journal_that_cannot_be_read_the_doctor_counts_nothing(cli: CommandLine) -> None:
    fill(cli)
    (cli.state / "journal.db").write_bytes(b"SQLite format 3\0" + os.urandom(9_000))
    [said] = [
        one["said"] for one in cli.json("doctor", code=1)["checks"] if one["name"] == "journal"
    ]
    assert re.search(r"\b0 ", said) is None


@pytest.mark.parametrize(
    "command", [("log",), ("status",), ("state", "check"), ("state", "repair")]
)
def test_a_journal_that_is_a_link_is_refused_with_its_reason(
    cli: CommandLine, tmp_path: Path, command: tuple[str, ...]
) -> None:
    fill(cli)
    journal, elsewhere = cli.state / "journal.db", tmp_path / "elsewhere.db"
    journal.rename(elsewhere)
    journal.symlink_to(elsewhere)
    kept = elsewhere.read_bytes()
    error = cli.json(*command, code=1)["error"]
    assert error["code"] == "STATE_ERROR"
    assert str(journal) in error["message"]
    assert cli("doctor").code == 1
    assert elsewhere.read_bytes() == kept
    assert sorted(tmp_path.glob("elsewhere*")) == [elsewhere]


HOLDER = """
import sys
from filepact.store.sqlite import SqliteStore
store = SqliteStore(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
store.close()
"""


def test_a_journal_in_use_is_checked_but_not_repaired(cli: CommandLine) -> None:
    fill(cli)
    damage(cli, 0)
    server = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(cli.state / "journal.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"open\n"
    assert f"process {server.pid}" in cli.json("state", "check", code=1)["in_use_by"]
    error = cli.json("state", "repair", code=1)["error"]
    assert error["code"] == "STATE_ERROR"
    assert f"process {server.pid}" in error["message"]
    assert list(cli.state.glob("damaged-*")) == []
    server.communicate(timeout=60)
    assert cli("state", "repair").code == 0


def test_what_is_not_ours_in_the_state_folder_is_named_and_left_alone(cli: CommandLine) -> None:
    fill(cli)
    (cli.state / "conversations").mkdir()
    (cli.state / "notes.txt").write_text("mine")
    assert cli.json("state", "check")["besides"] == ["conversations", "notes.txt"]
    assert (cli.state / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(("free", "level"), [(1 << 40, None), (1 << 25, "warn"), (0, "fail")])
def test_the_doctor_tells_of_a_state_disk_without_room(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, free: int, level: str | None
) -> None:
    fill(cli)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=free))
    found = [one.level for one in doctor.check_room(str(cli.state))]
    assert found == ([] if level is None else [level])


@pytest.fixture
def read_only(cli: CommandLine) -> Iterator[Callable[[], None]]:
    """Remount the state folder read-only for the rest of a test."""

    def remount() -> None:
        for words in (["--bind", str(cli.state)], ["-o", "remount,bind,ro"]):
            done = subprocess.run(
                ["mount", *words, str(cli.state)], capture_output=True, check=False
            )
            if done.returncode:
                pytest.skip("nothing can be mounted here")

    yield remount
    subprocess.run(["umount", "-l", str(cli.state)], capture_output=True, check=False)


def leave_log(cli: CommandLine, *names: str) -> None:
    """Leave the journal as a process that was killed leaves it, with some of its files."""
    journal = cli.state / "journal.db"
    held = apsw.Connection(str(journal))
    # Who reads keeps the log from being put into the file.
    held.execute("BEGIN; SELECT count(*) FROM operation").fetchall()
    assert cli("write", "last.txt", stdin=text(9)).code == 0
    files = {journal.with_name(journal.name + one) for one in ("", *names)}
    kept = {one: one.read_bytes() for one in files}
    held.close()
    for one, data in kept.items():
        one.write_bytes(data)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts as Linux has them")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
@pytest.mark.parametrize("left", [(), ("-wal", "-shm")])
def test_a_state_folder_that_is_mounted_read_only_is_checked_and_read(
    cli: CommandLine, read_only: Callable[[], None], left: tuple[str, ...]
) -> None:
    fill(cli)
    newest = cli.newest()
    if left:
        leave_log(cli, *left)
    read_only()
    assert cli.json("state", "check")["sound"] is True
    levels = {(one["name"], one["level"]) for one in cli.json("doctor")["checks"]}
    assert {("state disk", "warn"), ("journal", "ok")} <= levels
    assert cli("state", "repair").code == 3
    assert cli("log").code == cli("status").code == 0
    assert cli.json("undo", newest, "--unattended", code=1)["error"]["code"] == "STATE_ERROR"


@pytest.mark.skipif(sys.platform != "linux", reason="mounts as Linux has them")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_log_that_cannot_be_read_in_a_read_only_folder_is_an_error_of_the_state(
    cli: CommandLine, read_only: Callable[[], None]
) -> None:
    fill(cli)
    leave_log(cli, "-wal")
    read_only()
    levels = {(one["name"], one["level"]) for one in cli.json("doctor", code=1)["checks"]}
    assert {("state disk", "warn"), ("workspace", "fail")} <= levels
    for words in (("state", "check"), ("state", "repair"), ("log",), ("undo", "--unattended")):
        assert cli.json(*words, code=1)["error"]["code"] == "STATE_ERROR"


@pytest.mark.skipif(sys.platform != "linux", reason="mounts as Linux has them")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_damaged_journal_in_a_read_only_folder_is_not_repaired(
    cli: CommandLine, read_only: Callable[[], None]
) -> None:
    fill(cli)
    damage(cli, 1)
    read_only()
    assert cli.json("state", "repair", code=1)["error"]["code"] == "STATE_ERROR"
    levels = {(one["name"], one["level"]) for one in cli.json("doctor", code=1)["checks"]}
    assert {("state disk", "warn"), ("journal", "fail")} <= levels


def test_a_folder_that_was_moved_keeps_its_history(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = Session("s", Actor("agent", "robot"))
    with open_workspace([str(cli.root)], state_dir=str(cli.state)) as workspace:
        write(workspace, robot, "made.txt", "1\n")
        workspace.checkpoint("here")
        write(workspace, robot, "made.txt", "2\n")
    old, new = str(cli.root), tmp_path / "elsewhere"
    refusal = cli.json("state", "move", old, code=2)["error"]
    assert refusal["code"] == "INVALID_PARAMS"
    cli.root.rename(new)
    monkeypatch.chdir(new)
    command = f"filepact doctor --moved {old}"
    assert command in cli("log").out
    assert command in cli.json("status")["moved"]
    checks = json.loads(cli("doctor", "--json").out)["checks"]
    assert [one["next"] for one in checks if one["name"] == "history" and command in one["next"]]
    assert cli.json("state", "move", old)["operations"] == 2
    assert cli.json("status")["moved"] is None
    assert len(cli.json("log")["operations"]) == 2
    assert cli.json("restore", "here", "--unattended")["status"] == "applied"
    assert (new / "made.txt").read_text() == "1\n"
    assert cli.json("state", "move", old, code=1)["error"]["code"] == "NOT_FOUND"
    assert cli("audit", "verify").code in (0, 4)
    assert [one.get("code") for one in moves(cli)] == [None, None, "NOT_FOUND"]
    assert {(one["from"], one["to"]) for one in moves(cli)} == {(old, str(new))}


def moves(cli: CommandLine) -> list[dict[str, str]]:
    told = map(json.loads, cli("audit", "export").out.splitlines())
    return [one for one in told if one["event"] == "moved"]


def test_what_was_done_in_both_places_is_one_history(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = Session("s", Actor("agent", "robot"))
    with open_workspace([str(cli.root)], state_dir=str(cli.state)) as workspace:
        write(workspace, robot, "made.txt", "1\n")
    old, new = str(cli.root), tmp_path / "elsewhere"
    cli.root.rename(new)
    monkeypatch.chdir(new)
    with open_workspace([str(new)], state_dir=str(cli.state)) as workspace:
        write(workspace, robot, "made.txt", "2\n")
    assert cli.json("state", "move", old)["operations"] == 2
    for _ in range(2):
        cli.json("undo", "--unattended")
    assert not (new / "made.txt").exists()


def test_a_folder_that_is_known_by_its_files_takes_its_history_along(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = Session("s", Actor("agent", "robot"))
    for number in range(3):
        (cli.root / f"old-{number}.txt").write_text("1\n")

    def seen() -> None:
        settings = read_settings(None)
        with open_observed([str(new)], state_dir=str(cli.state), settings=settings) as workspace:
            workspace.external.resnapshot()
            (new / "made.txt").write_text("2\n")
            assert workspace.external.detect(robot).operation

    new = cli.root
    seen()
    # What was copied is another folder; what is still there was not moved.
    copied, new = tmp_path / "copied", tmp_path / "moved"
    shutil.copytree(cli.root, copied)
    monkeypatch.chdir(copied)
    assert cli.json("log")["operations"] == []
    cli.root.rename(new)
    assert cli.json("log")["operations"] == []
    monkeypatch.chdir(new)
    assert [one["tool"] for one in cli.json("log")["operations"]] == ["outside"]
    assert [one["to"] for one in moves(cli)] == [str(new)]
    assert cli.json("undo", "--unattended")["status"] == "applied"
    assert not (new / "made.txt").exists()
