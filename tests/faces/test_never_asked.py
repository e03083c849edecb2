"""What rules ask about is not done where nobody is asked, in any mode, by any door."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import filepact
from filepact.config.settings import parse_settings
from filepact_hooks.service import HookDaemon
from tests.faces.command_line import command
from tests.faces.line_client import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RULES = """
[[ask]]
name = "mine"
paths = ["asked/**"]
actions = ["write", "create", "delete"]
why = "I look"

[[ask]]
name = "unread"
paths = ["unread/**"]
actions = ["read"]
why = "I look"
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which every file has to be as it was in the end."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "etc"))
    monkeypatch.delenv("FILEPACT_CONFIG", raising=False)
    settings = tmp_path / "home" / "filepact" / "filepact.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(RULES)
    made = tmp_path / "root"
    for name in ("asked", "unread"):
        (made / name).mkdir(parents=True)
        (made / name / "a.txt").write_text("one\nPLANTED\n")
    yield made
    found = sorted(path.relative_to(made).as_posix() for path in made.rglob("*.txt"))
    assert found == ["asked/a.txt", "unread/a.txt"]
    assert (made / "asked/a.txt").read_text() == "one\nPLANTED\n"


CALLS = (
    ("edit_file", {"path": "asked/a.txt", "old_string": "one", "new_string": "two"}),
    ("write_file", {"path": "asked/b.txt", "content": "new\n"}),
    ("manage_files", {"action": "move", "path": "asked/a.txt", "to": "c.txt"}),
    ("manage_files", {"action": "delete", "path": "asked/a.txt"}),
    (
        "patch_apply",
        {"patch": "--- asked/a.txt\n+++ asked/a.txt\n@@ -1,2 +1,2 @@\n-one\n+two\n PLANTED\n"},
    ),
)


@pytest.mark.parametrize("mode", ["auto", "review", "preview", "read-only"])
def test_a_server_does_nothing_and_shows_nothing_that_has_to_be_asked_about(root, mode):
    words = ("mcp", str(root), "--state", str(root.parent / "state"), "--mode", mode)
    with serving(*words, stderr=subprocess.DEVNULL) as (_, client):
        # A client that could ask makes no difference where its person has not turned that on.
        client.shake_hands("2025-11-25", elicitation={"form": {}, "url": {}})
        for name, arguments in CALLS:
            answer = client.ask("tools/call", {"name": name, "arguments": arguments})
            if "error" not in answer and not answer["result"]["isError"]:
                receipt = answer["result"]["_meta"]["filepact/receipt"]
                assert receipt["status"] in ("pending", "unchanged"), (name, answer)
        seen = client.call("read_file", path="unread/a.txt")
        assert seen["isError"]
        assert seen["content"][0]["text"].startswith("APPROVAL_REQUIRED")
        assert "PLANTED" not in json.dumps(client.call("grep", pattern="PLANTED", path="unread"))
        assert client.asked.empty()


def test_a_program_that_uses_the_library_has_it_wait(root):
    with filepact.open(root, agent="tester", state_dir=root.parent / "state") as files:
        done = files.edit("asked/a.txt", "one", "two")
        assert done.status == "pending"
        assert files.write("asked/b.txt", "new\n").status == "pending"


MODES = [
    ("claude", "PreToolUse", {"permission_mode": "dontAsk"}, "deny"),
    ("claude", "PreToolUse", {"permission_mode": "bypassPermissions"}, "deny"),
    ("claude", "PreToolUse", {"permission_mode": "acceptEdits"}, "ask"),
    ("claude", "PreToolUse", {}, "ask"),
    ("codex", "PreToolUse", {}, "deny"),
    ("gemini", "BeforeTool", {}, "deny"),
    ("opencode", "tool.execute.before", {}, "deny"),
    ("copilot", "preToolUse", {}, "ask"),
    ("cursor", "preToolUse", {}, "deny"),
    ("cursor", "beforeMCPExecution", {}, "ask"),
]


def test_a_host_that_asks_nobody_is_told_no(root):
    with closing(HookDaemon((str(root),), str(root.parent / "state"))) as daemon:
        for agent, name, more, wanted in MODES:
            event = {
                "hook_event_name": name,
                "session_id": "s",
                "cwd": str(root),
                **more,
                "tool_name": "write",
                "tool_use_id": f"{agent}{len(more)}{name}",
                "tool_input": {"file_path": str(root / "asked/a.txt"), "content": "x"},
            }
            answer = json.loads(daemon.answer(agent, json.dumps(event).encode()).out)
            said = answer.get("hookSpecificOutput", answer)
            verdict = said.get("permissionDecision", said.get("permission", said.get("decision")))
            assert verdict == wanted, (agent, name, more)
            assert "mine" in json.dumps(answer)


def test_a_command_without_a_person_decides_nothing(root):
    place = ("--root", str(root), "--state", str(root.parent / "state"))
    with filepact.open(root, agent="tester", state_dir=root.parent / "state") as files:
        files.edit("asked/a.txt", "one", "two")
    for words in (["approve", "--all"], ["review"], ["review", "--plain"], ["review", "--web"]):
        said = command(*words, *place)
        assert said.code != 0
        assert "UNATTENDED" in said.err, said


def test_the_rules_of_this_test_are_read():
    assert len(parse_settings(RULES, name="f").rules.rules) == 2
