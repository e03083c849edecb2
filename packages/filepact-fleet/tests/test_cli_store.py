"""What the command does with a journal in a database: what it does with one in a file."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import test_cli_commands
import test_cli_turns
from tests.postgres import server

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faces.command_line import CommandLine

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def named(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> str:
    """The settings that name the database, for every command."""
    url = server().url
    monkeypatch.setenv("FILEPACT_STORE", url)
    return url


# A few of the tests of the command, with the same words.
for _name in (
    "a_checkpoint_brings_everything_back",
    "a_proposal_is_listed_shown_and_approved",
    "a_proposal_is_rejected_with_a_reason",
    "status_says_what_is_used_and_what_happened_last",
    "the_log_has_one_line_for_each_operation_newest_first",
    "the_log_of_what_was_asked_tells_how_it_was_answered_and_by_whom",
    "the_root_is_the_nearest_that_makes_sense",
    "undo_and_redo_are_operations_that_can_be_previewed",
    "undo_keeps_what_was_changed_since",
    "what_came_past_the_doors_is_named_in_the_log_and_can_be_undone",
):
    globals()[f"test_{_name}"] = getattr(test_cli_commands, f"test_{_name}")
test_undo_takes_what_is_selected = test_cli_turns.test_undo_takes_what_is_selected


def test_no_journal_lies_in_the_state_folder(cli: CommandLine) -> None:
    assert cli("edit", "src/app.py", "--old", "80", "--new", "81").code == 0
    assert not (cli.state / "journal.db").exists()
    assert len(cli.json("log")["operations"]) == 1


def test_a_journal_is_copied_in_and_back(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.delenv("FILEPACT_STORE")
    cli("edit", "src/app.py", "--old", "80", "--new", "81")
    ids = [one["id"] for one in cli.json("log")["operations"]]
    assert cli("store", "copy").code == 2
    monkeypatch.setenv("FILEPACT_STORE", named)
    assert cli.json("store", "copy")["operations"] == 1
    assert cli.json("store", "copy")["copied"] == 0
    assert [one["id"] for one in cli.json("log")["operations"]] == ids
    assert cli("undo", ids[0], "--unattended").code == 0
    assert "80" in (cli.root / "src" / "app.py").read_text()
    assert cli.json("store", "copy", "--back")["operations"] == 2
    monkeypatch.delenv("FILEPACT_STORE")
    assert len(cli.json("log")["operations"]) == 2


def test_the_database_is_told_of_and_looked_after(cli: CommandLine, named: str) -> None:
    cli("edit", "src/app.py", "--old", "80", "--new", "81")
    found = cli.json("store", "status")
    assert (found["tables"], found["operations"]) == (found["newest"], 1)
    assert named not in cli("store", "status").out
    assert cli("store", "migrate").code == 3
    assert cli("store", "prune", "--days", "90").code == 3


def test_a_database_without_tables_says_what_makes_them(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    settings = cli.root.parent / "filepact.toml"
    schema = f"cli_{os.getpid()}_{next(NUMBERS)}"
    settings.write_text(f'[store]\nurl = "{named}"\nschema = "{schema}"\nworkspace = "it"\n')
    monkeypatch.delenv("FILEPACT_STORE")
    monkeypatch.setenv("FILEPACT_CONFIG", str(settings))
    said = cli("log")
    assert said.code != 0
    assert "STORE_SCHEMA" in said.err
    assert "filepact store migrate" in said.err
    assert cli("store", "status").code == 1
    assert cli("store", "migrate", "--partitions", "day").code == 0
    assert cli("log").code == 0
    assert cli("store", "status").code == 0
    assert cli.json("store", "status")["workspace"] == "it"
    shown = cli.json("config", "show")
    assert schema in json.dumps(shown)


@pytest.mark.parametrize(
    "url", ["mysql://x", "postgresql://ada:secret@127.0.0.1:1/x"], ids=["other", "with a password"]
)
def test_an_address_that_is_wrong_is_refused_and_no_password_is_shown(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("FILEPACT_STORE", url)
    for words in (("log",), ("store", "status")):
        said = cli(*words)
        assert said.code == 2
        assert "INVALID_PARAMS" in said.err
        assert "secret" not in said.err + said.out


@pytest.mark.parametrize(
    "line", ['url = "sqlite:///x"', "url = 1", 'schema = ""', 'password = "x"', 'url = ""']
)
def test_settings_of_a_store_are_read_strictly(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    settings = cli.root.parent / "filepact.toml"
    settings.write_text(f"[store]\n{line}\n")
    monkeypatch.delenv("FILEPACT_STORE")
    monkeypatch.setenv("FILEPACT_CONFIG", str(settings))
    said = cli("store", "status")
    assert said.code == 2
    assert "filepact.toml, line 2" in said.err


def test_where_no_database_is_named_none_is_looked_after(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FILEPACT_STORE")
    said = cli("store", "status")
    assert (said.code, "[store]" in said.err) == (2, True)


def test_without_the_package_it_says_what_to_install(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    said = cli("log")
    assert said.code == 2
    assert "[postgres]" in said.err


def test_a_server_of_tools_that_confines_itself_reaches_its_database(
    cli: CommandLine, named: str
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "filepact", "mcp", str(cli.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    handshake = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    edit = {"path": "src/app.py", "old_string": "80", "new_string": "8080"}
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, (method, params) in enumerate(
            [
                ("initialize", handshake),
                ("tools/call", {"name": "read_file", "arguments": {"path": "src/app.py"}}),
                ("tools/call", {"name": "edit_file", "arguments": edit}),
            ]
        ):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert not answer["result"].get("isError"), answer
        process.stdin.close()
        assert process.wait(60) == 0
    assert "8080" in (cli.root / "src" / "app.py").read_text()
    assert len(cli.json("log")["operations"]) == 1


def test_the_audit_log_is_compared_with_whatever_journal_is_in_use(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, named: str, tmp_path: Path
) -> None:
    def verified(*own: str, code: int = 0) -> int:
        found = cli.json(*own, "audit", "verify", code=code)
        assert bool(found["problems"]) == (code == 1)
        operations: int = found["operations"]
        return operations

    monkeypatch.delenv("FILEPACT_STORE")
    cli("write", "in-the-file", stdin=b"text\n")
    assert verified() == 1
    # From one journal to another, and back.
    monkeypatch.setenv("FILEPACT_STORE", named)
    cli("write", "in-the-database", stdin=b"text\n")
    assert verified() == 1
    # What was begun here has the place that the other's has there.
    monkeypatch.delenv("FILEPACT_STORE")
    assert verified() == 1
    # Two state folders have one journal in common, each with a log of its own.
    settings = tmp_path / "own.toml"
    settings.write_text(f'[store]\nurl = "{named}"\nworkspace = "{tmp_path.name}"\n')
    own = "--config", str(settings)
    other = *own, "--state", str(tmp_path / "other-state")
    for number in range(2):
        assert cli(*own, "write", f"a{number}", stdin=b"text\n").code == 0
        assert cli(*other, "write", f"b{number}", stdin=b"text\n").code == 0
    assert verified(*own) == verified(*other) == 2
    # Its oldest operations may be dropped, others not.
    with psycopg.connect(named, autocommit=True) as database:
        database.execute("SET search_path TO filepact")
        mine = "workspace = (SELECT number FROM workspace WHERE name = %(name)s)"
        for moved, which, code in (("- 7200", "max", 1), ("+ 7200", "min", 0)):
            assert cli(*own, "write", "c", stdin=moved.encode()).code == 0
            one = "(SELECT WHICH(seq) FROM operation_all WHERE MINE)".replace("WHICH", which)
            for query in (
                "DELETE FROM operation_change_all WHERE MINE AND owner = ONE",
                "DELETE FROM operation_all WHERE MINE AND seq = ONE",
                "UPDATE operation_all SET created = created MOVED WHERE MINE",
            ):
                said = query.replace("ONE", one).replace("MINE", mine).replace("MOVED", moved)
                database.execute(said, {"name": tmp_path.name})
            verified(*own, code=code)
            assert cli(*own, "state", "repair").code == (0 if code else 3)
