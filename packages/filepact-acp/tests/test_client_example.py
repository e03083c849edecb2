"""The example of a client runs a real agent, whose files pass the guard and can be taken back."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faces.acp.talking import AGENT, READ, WRITE

EXAMPLES = Path(__file__).parents[3] / "examples"
SOURCE = Path(__file__).parents[3] / "src"


def python(folder, state, *arguments, said=""):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "FILEPACT_STATE_DIR": str(state)},
        input=said,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def ask(folder, state, *steps, said=""):
    agent = [sys.executable, str(AGENT), json.dumps({"prompt": steps}), "raw"]
    return python(folder, state, str(EXAMPLES / "acp_client.py"), "go", *agent, said=said)


def test_the_example_of_a_client_shows_what_an_agent_says_and_serves_its_files(tmp_path):
    work, state = tmp_path / "work", tmp_path / "state"
    work.mkdir()
    path = work / "greeting.txt"
    path.write_bytes(b"Hello, world!\r\n")
    (work / ".env").write_text("KEY=1\n")
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "done"}}
    call = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "greet", "kind": "edit"}
    options = [
        {"optionId": "a", "name": "always", "kind": "allow_always"},
        {"optionId": "o", "name": "once", "kind": "allow_once"},
    ]
    said = ask(
        work,
        state,
        ["notify", "session/update", {"sessionId": "s1", "update": call}],
        [
            "session/request_permission",
            {"toolCall": {"toolCallId": "t", "kind": "edit"}, "options": options},
        ],
        [READ, {"path": str(path)}],
        [WRITE, {"path": str(path), "content": "Hello, client!\n"}],
        [WRITE, {"path": str(work / ".env"), "content": "KEY=2\n"}],
        ["notify", "session/update", {"sessionId": "s1", "update": chunk}],
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith(f"\n[greet]\n\napplied: {path} +1 -1\n\npending: {work}/.env ")
    assert said.stdout.endswith(f"\nrefused: {work}/.env +0 -0\ndone\n(end_turn)\n")
    assert path.read_bytes() == b"Hello, client!\r\n"
    assert (work / ".env").read_text() == "KEY=1\n"
    assert "greeting.txt" in python(work, state, "-m", "filepact", "log").stdout
    python(work, state, "-m", "filepact", "undo", "--unattended")
    assert path.read_bytes() == b"Hello, world!\r\n"


def tool_call(path, **more):
    """What Kimi and claude-code-acp tell of an edit before they ask; their question names it."""
    diff = {"type": "diff", "path": str(path), "oldText": "old\n", "newText": "new\n"}
    call = {
        "sessionUpdate": "tool_call",
        "toolCallId": "t",
        "title": "Edit a.txt",
        "kind": "edit",
        "status": "pending",
        "content": [diff],
        "locations": [{"path": str(path)}],
    }
    return ["notify", "session/update", {"sessionId": "s1", "update": {**call, **more}}]


QUESTIONS = {
    "claude-code-acp": (
        {"toolCallId": "t", "title": "Edit a.txt", "rawInput": {"file_path": "a.txt"}},
        [("allow_always", "allow_always"), ("allow", "allow_once"), ("reject", "reject_once")],
    ),
    "kimi": (
        {"toolCallId": "t", "title": "Edit", "content": [{"type": "content", "content": {}}]},
        [("allow_once", "allow_once"), ("allow_session", "allow_always"), ("no", "reject_once")],
    ),
    "bare": ({"toolCallId": "t"}, [("allow", "allow_once"), ("reject", "reject_once")]),
}
QUESTIONS["kimi"][0]["content"][0]["content"] = {"type": "text", "text": "Edit a.txt?"}


def question(agent):
    call, options = QUESTIONS[agent]
    offered = [{"optionId": name, "name": name, "kind": kind} for name, kind in options]
    return ["session/request_permission", {"toolCall": call, "options": offered}]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("agent", QUESTIONS)
def test_it_allows_an_edit_whose_kind_was_told_before_the_question(tmp_path, agent):
    work, state = tmp_path / "work", tmp_path / "state"
    work.mkdir()
    path = work / "a.txt"
    path.write_text("old\n")
    write = [WRITE, {"path": str(path), "content": "new\n"}]
    said = ask(work, state, tool_call(path), question(agent), ["allowed", write])
    assert said.returncode == 0, said.stderr
    assert path.read_text() == "new\n"


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("answer", "text"), [("y\n", "new\n"), ("n\n", "old\n"), ("", "old\n")])
def test_it_asks_about_a_command_and_about_a_change_that_a_rule_wants_asked(tmp_path, answer, text):
    work, state = tmp_path / "work", tmp_path / "state"
    work.mkdir()
    path, listed = work / "a.txt", work / "package.json"
    path.write_text("old\n")
    write = [WRITE, {"path": str(path), "content": "new\n"}]
    command = tool_call(path, kind="execute", title="Run tests", content=[])
    ran = ask(work, state, command, question("bare"), ["allowed", write], said=answer)
    assert "Allow 'Run tests'?" in ran.stdout
    assert path.read_text() == text
    written = ask(work, state, [WRITE, {"path": str(listed), "content": "{}\n"}], said=answer)
    assert "+{}" in written.stdout
    assert listed.exists() is (text == "new\n")
    assert f"{'applied' if listed.exists() else 'refused'}: {listed}" in written.stdout


def test_the_example_is_short():
    assert len((EXAMPLES / "acp_client.py").read_text().splitlines()) <= 90
