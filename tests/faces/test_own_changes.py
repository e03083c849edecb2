"""What an agent sees of its own changes, over real server processes, with a person in between."""

from __future__ import annotations

import re
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.faces.command_line import command
from tests.faces.line_client import LineClient, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ID = re.compile(r"\bc[0-9a-z]{10}\b")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "a.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    return folder


@contextmanager
def agent(root: Path, *options: str) -> Iterator[LineClient]:
    """A client of a server process of its own."""
    words = ("mcp", str(root), "--state", str(root.parent / "state"), *options)
    with serving(*words, stderr=subprocess.DEVNULL) as (_, client):
        client.shake_hands()
        yield client


def person(root: Path, *arguments: str, status: int = 0) -> str:
    said = command(*arguments, "--root", str(root), "--state", str(root.parent / "state"))
    assert said.code == status, said
    return said.out + said.err


def proposal_in(text: str) -> str:
    """The first id in an answer."""
    found = ID.search(text)
    assert found, text
    return found[0]


def test_an_agent_goes_on_with_what_waits_and_a_person_sees_one_change(root: Path) -> None:
    before = (root / "a.py").read_text()
    with agent(root, "--mode", "preview") as one, agent(root, "--mode", "preview") as other:
        edit = {"path": "a.py", "old_string": "return 1\n", "new_string": "return 10\n"}
        first = proposal_in(one.text("edit_file", **edit))
        assert proposal_in(one.text("edit_file", **edit)) == first
        read = one.text("read_file", path="a.py")
        assert "return 10" in read
        assert first in read
        assert first in one.text("grep", pattern="return 10")
        assert "return 10" not in other.text("read_file", path="a.py")
        further = {"path": "a.py", "old_string": "return 10\n", "new_string": "return 11\n"}
        second = proposal_in(one.text("edit_file", **further))
        assert second != first
        one.text("write_file", path="pkg/new.py", content="x = 1\n", createDirs=True)
        assert "pkg/new.py" in one.text("search_files", pattern="**/*.py")
        one.text("edit_file", path="pkg/new.py", old_string="x = 1", new_string="x = 2")
        assert "new.py" not in other.text("directory_tree")
        assert (root / "a.py").read_text() == before

        waiting = person(root, "pending")
        assert second in waiting
        assert first not in waiting
        assert second in person(root, "approve", "--unattended", first, status=3)
        person(root, "approve", "--unattended", second)
        assert second in one.text("read_file", path="a.py")  # the news, once
        assert second not in one.text("read_file", path="a.py")
    assert (root / "a.py").read_text() == before.replace("return 1\n", "return 11\n")


def test_after_a_refusal_an_agent_sees_the_files_as_they_are(root: Path) -> None:
    with agent(root, "--mode", "preview") as one:
        edit = {"path": "a.py", "old_string": "return 1\n", "new_string": "return 10\n"}
        change = proposal_in(one.text("edit_file", **edit))
        person(root, "reject", "--unattended", change, "--reason", "rather not")
        read = one.text("read_file", path="a.py")
        assert "return 1\n" in read
        assert "rather not" in read
        assert proposal_in(one.text("edit_file", **edit)) != change
        assert "return 10" in one.text("read_file", path="a.py")


def test_an_agent_lists_shows_and_takes_back_its_own_changes(root: Path) -> None:
    before = (root / "a.py").read_text()
    with agent(root) as one, agent(root) as other:
        edit = {"path": "a.py", "old_string": "return 1\n", "new_string": "return 10\n"}
        change = proposal_in(one.text("edit_file", **edit))
        assert change in one.text("history", action="log")
        assert "+    return 10" in one.text("history", action="diff")
        assert other.call("history", action="undo", change=change)["isError"]
        assert change not in other.text("history", action="log")
        assert not one.call("history", action="undo").get("isError")
        assert (root / "a.py").read_text() == before
        one.call("history", action="redo")
        assert "return 10" in (root / "a.py").read_text()
        assert one.call("history", action="log", wait=1)["isError"]


@pytest.mark.parametrize("named", [False, True])
def test_an_agent_waits_for_a_person_and_goes_on_meanwhile(root: Path, named: bool) -> None:
    with agent(root, "--mode", "preview") as one:
        change = proposal_in(one.text("write_file", path="b.py", content="b = 1\n"))
        arguments = {"action": "status", "wait": 25} | ({"change": change} if named else {})
        asked = one.begin("tools/call", {"name": "history", "arguments": arguments})
        assert "return 1" in one.text("read_file", path="a.py")
        person(root, "reject", "--unattended", change, "--reason", "rather not")
        (block,) = one.answer(asked)["result"]["content"]
        assert change in block["text"]
        assert "rather not" in block["text"]


def test_without_tools_that_change_there_is_no_history(root: Path) -> None:
    for option in ("--read-only", "--tier=essential", "--max-level=safe"):
        with agent(root, option) as one:
            tools = one.ask("tools/list")["result"]["tools"]
            assert "history" not in {tool["name"] for tool in tools}


def test_a_server_that_is_started_again_goes_on_with_the_conversation(root: Path) -> None:
    def call(client: LineClient, talk: str, tool: str, **arguments: str) -> str:
        meta = {"vscode.conversationId": talk}
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        (block,) = client.ask("tools/call", params)["result"]["content"]
        return block["text"]

    edit = {"path": "a.py", "old_string": "return 1\n", "new_string": "return 10\n"}
    with agent(root, "--mode", "preview") as one:
        change = proposal_in(call(one, "first", "edit_file", **edit))
    with agent(root, "--mode", "preview") as one:
        assert "return 10" not in call(one, "second", "read_file", path="a.py")
        assert "return 10" in call(one, "first", "read_file", path="a.py")
        assert change in call(one, "first", "history", action="status")
        assert change not in call(one, "second", "history", action="status")
