"""A workspace that goes away under a session: its folder, or its journal in a database."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from gateway_running import RunningGateway
from tests.postgres import server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITE = {"old_string": "one\n", "new_string": "two\n"}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[RunningGateway]:
    """A gateway with two workspaces, whose journal is in a database."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    for one in ("root", "docs"):
        (tmp_path / one).mkdir()
        (tmp_path / one / "a.txt").write_text("one\n")
    settings = f"""
[store]
url = "{server().url}"
workspace = "gone {os.getpid()} {tmp_path.name}"

[realms.docs]
roots = [{json.dumps(str(tmp_path / "docs"))}]
"""
    running = RunningGateway(tmp_path, [str(tmp_path / "root")], settings=settings)
    yield running
    assert running.end() == 0


def code(answer: Any) -> str:
    """With which a tool refused."""
    assert (answer.status, answer.result["isError"]) == (200, True)
    return answer.text.partition(":")[0]


def test_a_folder_that_is_deleted_under_a_session_is_refused_and_the_others_are_served(
    served: RunningGateway, tmp_path: Path
) -> None:
    client, other = served.opened(), served.client("/mcp/docs")
    other.open()
    assert "one" in client.call("read_file", path="a.txt").text
    shutil.rmtree(tmp_path / "root")
    codes = {
        code(client.call("read_file", path="a.txt")),
        code(client.call("edit_file", path="a.txt", **WRITE)),
        code(client.call("write_file", path="b.txt", content="b\n")),
    }
    assert codes == {"PATH_BLOCKED"}
    assert not (tmp_path / "root").exists()
    assert client.ask("ping").status == 200
    assert other.call("edit_file", path="a.txt", **WRITE).result["isError"] is False
    assert (tmp_path / "docs" / "a.txt").read_text() == "two\n"


def test_a_journal_that_is_deleted_under_a_session_stops_changes_before_they_are_made(
    served: RunningGateway, tmp_path: Path
) -> None:
    words = pytest.importorskip("filepact_fleet.postgres_words", reason="psycopg is not installed")
    client = served.opened()
    assert "one" in client.call("read_file", path="a.txt").text
    with words.open_connection(server().url) as connection:
        connection.execute(
            "DELETE FROM filepact.workspace WHERE name LIKE %s",
            (f"gone {os.getpid()} {tmp_path.name}%",),
        )
    assert code(client.call("edit_file", path="a.txt", **WRITE)) == "STATE_ERROR"
    assert (tmp_path / "root" / "a.txt").read_text() == "one\n"
    assert "one" in client.call("read_file", path="a.txt").text
    assert client.ask("ping").status == 200
