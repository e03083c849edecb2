"""Audit log and journal, two accounts that are compared: what was done to one of them is found, and nothing else is."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from filepact.app import open_workspace
from filepact.config.settings import parse_settings
from filepact.domain.audit import digest
from filepact.domain.operation import Actor, Approval, Session
from tests.workspace.acting import edit, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.faces.command_line import CommandLine

AGENT = Session("s", Actor("agent", "tester"))


def fill(cli: CommandLine, first: int = 0, count: int = 3) -> None:
    for number in range(first, first + count):
        assert cli("write", f"{number}.txt", stdin=b"text\n").code == 0


def verified(cli: CommandLine, code: int = 0, *more: str) -> Any:
    return cli.json(*more, "audit", "verify", code=code)


def audit_check(cli: CommandLine) -> Any:
    (found,) = [one for one in cli.json("doctor", code=1)["checks"] if one["name"] == "audit log"]
    return found


def forget(cli: CommandLine) -> None:
    shutil.rmtree(cli.state / "audit")


def cut_tail(cli: CommandLine) -> None:
    """Cut off the last ten records, so that the note of the last record knows no better."""
    (log,) = (cli.state / "audit").glob("*.jsonl")
    lines = log.read_bytes().splitlines(keepends=True)[:-10]
    log.write_bytes(b"".join(lines))
    (cli.state / "audit" / "head").unlink()
    assert cli("read", "0.txt").code == 0
    # What tells that the note was gone goes as well.
    kept = b"".join(lines)
    log.write_bytes(kept)
    told = b"%d %b 1 %d\n" % (len(lines), digest(lines[-1]).encode(), len(kept))
    (cli.state / "audit" / "head").write_bytes(told.rjust(256))


def put_back(cli: CommandLine, folder: Path) -> None:
    for file in cli.state.glob("journal.db*"):
        file.unlink()
    for file in folder.glob("journal.db*"):
        shutil.copy(file, cli.state)


def older(cli: CommandLine) -> None:
    """A journal as it was before the last three operations."""
    copy = cli.state.parent / "older"
    shutil.copytree(cli.state, copy)
    fill(cli, 3)
    put_back(cli, copy)


def remove_journal(cli: CommandLine) -> None:
    for file in cli.state.glob("journal.db*"):
        file.unlink()


def remove_operation(cli: CommandLine) -> None:
    with closing(apsw.Connection(str(cli.state / "journal.db"))) as journal:
        journal.execute("DELETE FROM operation_change WHERE owner = 2")
        journal.execute("DELETE FROM operation WHERE seq = 2")


def renumber(cli: CommandLine) -> None:
    with closing(apsw.Connection(str(cli.state / "journal.db"))) as journal:
        journal.execute("UPDATE operation SET logged = logged + 1 WHERE seq = 2")


def another_day(cli: CommandLine) -> None:
    with closing(apsw.Connection(str(cli.state / "journal.db"))) as journal:
        journal.execute("UPDATE operation SET created = created - 200000 WHERE seq = 2")


TAMPERING: tuple[Callable[[CommandLine], object], ...] = (
    forget,
    cut_tail,
    older,
    remove_journal,
    remove_operation,
    renumber,
    another_day,
)


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("tamper", TAMPERING)
def test_what_was_done_to_one_of_both_is_found_also_when_work_goes_on(
    cli: CommandLine, tamper: Callable[[CommandLine], object], goes_on: bool
) -> None:
    fill(cli)
    assert verified(cli)["operations"] == 3
    tamper(cli)
    if goes_on:
        fill(cli, 10, 5)
    found = verified(cli, 1)
    assert found["sound"] is False
    assert len(found["problems"]) == 1
    assert found["problems"][0]["next"]
    assert audit_check(cli)["level"] == "fail"
    # Who has done it himself, as with a backup put back, writes that down, and goes on.
    assert cli("state", "repair").code == 0
    assert cli("state", "repair").code == 3
    fill(cli, 20)
    again = verified(cli)
    assert again["sound"] is True
    assert again["notes"]


def test_what_was_written_down_once_does_not_cover_what_is_done_later(cli: CommandLine) -> None:
    fill(cli)
    forget(cli)
    assert cli("state", "repair").code == 0
    fill(cli, 10)
    assert verified(cli)["sound"] is True
    forget(cli)
    fill(cli, 20)
    assert verified(cli, 1)["sound"] is False


def test_a_journal_that_was_put_back_so_that_what_was_rejected_waits_again_is_found(
    cli: CommandLine, tmp_path: Path
) -> None:
    def opened() -> Any:
        return open_workspace(str(cli.root), state_dir=str(cli.state), mode="preview")

    with opened() as workspace:
        (cli.root / "a.txt").write_text("one\n")
        edit(workspace, AGENT, "a.txt", "one", "two")
    shutil.copytree(cli.state, tmp_path / "older")
    with opened() as workspace:
        (waiting,) = workspace.pending()
        workspace.reject(waiting.id, Approval(Actor("person", "ada"), "no"))
    fill(cli)
    assert verified(cli)["sound"] is True
    put_back(cli, tmp_path / "older")
    found = verified(cli, 1)
    assert any(waiting.id in one["said"] for one in found["problems"])


def test_both_put_back_are_found_by_heads_that_lie_elsewhere(
    cli: CommandLine, tmp_path: Path
) -> None:
    fill(cli)
    shutil.copytree(cli.state, tmp_path / "older")
    fill(cli, 3)
    heads = tmp_path / "heads"
    heads.write_text(cli("audit", "sign").out)
    assert cli("audit", "verify", "--heads", str(heads)).code == 0
    shutil.rmtree(cli.state)
    shutil.copytree(tmp_path / "older", cli.state)
    assert verified(cli)["sound"] is True
    assert cli("audit", "verify", "--heads", str(heads)).code == 1


def test_a_log_that_is_compared_with_nothing_is_not_called_whole(
    cli: CommandLine, tmp_path: Path
) -> None:
    (cli.root / "a.txt").write_text("one\n")
    assert verified(cli, 3)["sound"] is None
    assert cli("read", "a.txt").code == 0
    found = verified(cli, 4)
    assert (found["sound"], found["compared"]) == (None, False)
    (tmp_path / "empty").touch()
    fill(cli)
    assert verified(cli)["compared"] is True
    # Who names a file of heads wants the log compared with heads.
    assert cli("audit", "verify", "--heads", str(tmp_path / "empty")).code == 4
    assert cli("audit", "verify", "--heads", str(tmp_path / "missing")).code == 2


def newest(cli: CommandLine) -> str:
    """The id of the newest operation: a person's own has to be named."""
    return str(json.loads(cli("log", "--json").out)["operations"][0]["id"])


def test_what_was_done_while_there_was_no_log_is_counted_and_no_fault(
    cli: CommandLine, tmp_path: Path
) -> None:
    off = tmp_path / "off.toml"
    off.write_text("[audit]\nenabled = false\n")
    fill(cli)
    for number in range(3):
        assert cli("--config", str(off), "write", f"off{number}", stdin=b"text\n").code == 0
    assert cli("--config", str(off), "undo", newest(cli), "--unattended").code == 0
    fill(cli, 3)
    assert cli("undo", newest(cli), "--unattended").code == 0
    found = verified(cli)
    assert (found["operations"], found["unlogged"]) == (7, 4)


def test_a_state_folder_from_before_operations_named_their_records_is_whole(
    cli: CommandLine,
) -> None:
    fill(cli)
    with closing(apsw.Connection(str(cli.state / "journal.db"))) as journal:
        journal.execute("ALTER TABLE operation DROP COLUMN logged")
        for table in ("proposal_change", "operation_change"):
            for side in ("before", "after"):
                journal.execute(f"ALTER TABLE {table} DROP COLUMN {side}_attributes")
        journal.pragma("user_version", 9)
    assert verified(cli)["operations"] == 3
    fill(cli, 3)
    found = verified(cli)
    assert (found["operations"], found["unlogged"], found["problems"]) == (6, 0, [])


def test_a_pruned_journal_and_a_log_that_gave_up_its_oldest_are_whole(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("filepact.workspace.audit._LARGEST", 100_000)
    settings = parse_settings("[audit]\nmegabytes = 1\n", name="filepact.toml")
    for _ in range(2):
        with open_workspace(
            str(cli.root), state_dir=str(cli.state), settings=settings
        ) as workspace:
            write(workspace, AGENT, f"early{_}.txt", "text\n")
            assert workspace.audit is not None
            for _number in range(4_000):
                workspace.audit.called(AGENT, "read_file", "a.txt", "OK", 0.001)
    fill(cli)
    found = verified(cli)
    assert found["first"] > 1
    assert found["problems"] == []


def test_a_journal_that_was_damaged_and_repaired_is_no_fault(cli: CommandLine) -> None:
    fill(cli, 0, 60)
    path = cli.state / "journal.db"
    with closing(apsw.Connection(str(path))) as journal:
        size = journal.pragma("page_size")
        leaves = "SELECT pageno FROM dbstat WHERE name = 'operation' AND pagetype = 'leaf'"
        pages = [number for (number,) in journal.execute(leaves)]
    with path.open("r+b") as file:
        file.seek((pages[-1] - 1) * size)
        file.write(bytes(size))
    assert cli("state", "check").code == 1
    kept = cli.json("state", "repair")["operations"]
    assert 0 < kept < 60
    assert verified(cli)["operations"] == kept
    fill(cli, 100)
    assert verified(cli)["problems"] == []
