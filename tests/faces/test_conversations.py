"""What a session knows of files goes on with its conversation, and with no other."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.faces.command_line import command
from tests.faces.line_client import LineClient, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINES = [f"line {number}" for number in range(1, 21)]
PATIENCE = 90


def text(**changed: str) -> str:
    new = {int(name.partition("_")[2]): value for name, value in changed.items()}
    return "".join(f"{new.get(number, line)}\n" for number, line in enumerate(LINES, start=1))


class Host:
    """An agent's program that starts servers over one folder, one after the other or at once."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.state = folder / "state"
        self.root.mkdir()
        self.file = self.root / "a.txt"
        self.file.write_text(text())

    @contextmanager
    def server(
        self, client: str = "tester", *, kill: bool = False, **variables: str
    ) -> Iterator[Server]:
        words = ("mcp", str(self.root), "--state", str(self.state))
        with serving(*words, env=variables) as (process, lines):
            yield Server(lines, client)
            if kill:
                process.send_signal(signal.SIGKILL)

    def wait_until_kept(self) -> None:
        """Until what was read is in the state folder, which it is soon and not at once."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with closing(sqlite3.connect(self.state / "known.db")) as database:
                try:
                    if database.execute("SELECT count(*) FROM known").fetchone()[0]:
                        return
                except sqlite3.OperationalError:
                    pass
            time.sleep(0.02)
        raise AssertionError("nothing was kept")


class Server:
    def __init__(self, lines: LineClient, client: str) -> None:
        self._lines = lines
        lines.ask(
            "initialize",
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": client, "version": "1"},
            },
        )
        lines.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, meta: dict | None = None, **arguments: object) -> tuple[bool, str]:
        """Whether it was done, and what was said."""
        params: dict = {"name": tool, "arguments": {"path": "a.txt", **arguments}}
        result = self._lines.ask("tools/call", params | ({"_meta": meta} if meta else {}))["result"]
        return not result["isError"], result["content"][0]["text"]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_what_was_read_is_known_after_a_restart(host: Host):
    with host.server() as server:
        server.call("read_file")
    host.file.write_text(text(line_3="a person's"))
    with host.server() as server:
        done, said = server.call("write_file", content=text(line_15="mine"))
    assert done, said
    assert "merged" in said
    assert host.file.read_text() == text(line_3="a person's", line_15="mine")


def test_what_was_read_is_known_after_the_server_was_killed(host: Host):
    with host.server(kill=True) as server:
        server.call("read_file")
        host.wait_until_kept()
    host.file.write_text(text(line_3="a person's"))
    with host.server() as server:
        assert server.call("write_file", content=text(line_15="mine"))[0]
    assert host.file.read_text() == text(line_3="a person's", line_15="mine")


def test_own_text_after_a_merge_is_known_after_a_restart(host: Host):
    with host.server() as server:
        server.call("read_file")
        host.file.write_text(text(line_3="a person's"))
        server.call("write_file", content=text(line_15="first"))
    with host.server() as server:
        assert server.call("write_file", content=text(line_15="first", line_19="second"))[0]
    assert host.file.read_text() == text(line_3="a person's", line_15="first", line_19="second")


def test_another_client_knows_nothing_of_it(host: Host):
    with host.server() as server:
        server.call("read_file")
    host.file.write_text(text(line_3="a person's"))
    with host.server("another") as server:
        done, said = server.call("write_file", content=text(line_15="mine"))
    assert done
    assert "had not read" in said


def test_two_windows_of_one_program_do_not_share_what_they_know(host: Host):
    with host.server() as first:
        first.call("read_file")
        host.wait_until_kept()
        host.file.write_text(text(line_3="a person's"))
        with host.server() as second:
            done, said = second.call("write_file", content=text(line_15="mine"))
            assert done
            assert "had not read" in said


def test_a_named_conversation_goes_on_and_another_one_knows_nothing(host: Host):
    with host.server("opencode") as server:
        server.call("read_file", {"ai.opencode/sessionID": "ses_1"})
    host.file.write_text(text(line_3="a person's"))
    with host.server("opencode") as server:
        _, said = server.call(
            "write_file",
            {"ai.opencode/sessionID": "ses_2"},
            content=text(line_15="mine"),
            dry_run=True,
        )
        assert "had not read" in said
        done, said = server.call(
            "write_file", {"ai.opencode/sessionID": "ses_1"}, content=text(line_15="mine")
        )
    assert done, said
    assert host.file.read_text() == text(line_3="a person's", line_15="mine")


def test_a_conversation_is_named_by_its_own_hosts_variable(host: Host):
    with host.server("claude-code", CLAUDE_CODE_SESSION_ID="one") as server:
        server.call("read_file")
    host.file.write_text(text(line_3="a person's"))
    for client, name, known in (
        ("claude-code", "two", False),
        ("another", "one", False),
        ("claude-code", "one", True),
    ):
        with host.server(client, CLAUDE_CODE_SESSION_ID=name) as server:
            _, said = server.call("write_file", content=text(line_15="mine"), dry_run=True)
        assert ("merged" in said) is known


def test_sub_agents_that_the_host_names_know_each_its_own_text(host: Host):
    with host.server("codex-mcp-client") as server:
        server.call("read_file", {"threadId": "a"})
        server.call("read_file", {"threadId": "b"})
        edit = {"old_string": "line 3\n", "new_string": "b's\n"}
        assert server.call("edit_file", {"threadId": "b"}, **edit)[0]
        done, said = server.call("write_file", {"threadId": "a"}, content=text(line_15="a's"))
    assert done, said
    assert host.file.read_text() == text(line_3="b's", line_15="a's")


def test_nothing_is_kept_of_files_that_may_not_be_read(host: Host):
    (host.root / ".env").write_text("KEY=SECRET\n")
    with host.server() as server:
        server.call("read_file", path=".env")
        server.call("write_file", path=".env", content="KEY=OTHER\n")
        server.call("read_file")
    with closing(sqlite3.connect(host.state / "known.db")) as database:
        assert database.execute("SELECT path FROM known").fetchall() == [(b"a.txt",)]


def test_a_damaged_file_of_what_was_known_is_begun_anew(host: Host):
    with host.server() as server:
        server.call("read_file")
    for name in ("known.db", "known.db-wal", "known.db-shm"):
        (host.state / name).unlink(missing_ok=True)
    (host.state / "known.db").write_bytes(b"this is no database" * 100)
    for _ in range(2):
        with host.server() as server:
            assert server.call("read_file")[0]
    with host.server() as server:
        assert server.call("read_file")[0]
    host.file.write_text(text(line_3="a person's"))
    with host.server() as server:
        assert "merged" in server.call("write_file", content=text(line_15="mine"))[1]


@pytest.mark.parametrize(
    ("client", "meta", "turn", "call"),
    [
        ("claude-code", {"claudecode/toolUseId": "toolu_01"}, "", "toolu_01"),
        ("Visual Studio Code", {"vscode.requestId": "request_1"}, "request_1", ""),
        ("codex-mcp-client", {"x-codex-turn-metadata": {"turn_id": "0199-a"}}, "0199-a", ""),
        ("codex-mcp-client", {"x-codex-turn-metadata": '{"turn_id": "0199-a"}'}, "0199-a", ""),
        ("codex-mcp-client", {"x-codex-turn-metadata": "no json", "threadId": "a"}, "", ""),
        ("tester", {"vscode.requestId": "two words", "claudecode/toolUseId": 7}, "", ""),
        ("tester", {"vscode.requestId": "x" * 201}, "", ""),
    ],
)
def test_what_a_host_says_of_the_turn_and_the_call_is_kept(
    host: Host, client: str, meta: dict, turn: str, call: str
):
    with host.server(client) as server:
        assert server.call("write_file", meta, content="new\n")[0]
    words = ("log", "--json", "--root", str(host.root), "--state", str(host.state))
    (operation,) = json.loads(command(*words).out)["operations"]
    assert (operation["turn"], operation["call"]) == (turn, call)
