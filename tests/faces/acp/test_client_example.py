"""The example of a client runs a real agent, whose files pass the guard and can be taken back."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.faces.acp.talking import AGENT, READ, WRITE

EXAMPLES = Path(__file__).parents[3] / "examples"
SOURCE = Path(__file__).parents[3] / "src"


def python(folder, state, *arguments):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "FILEPACT_STATE_DIR": str(state)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def ask(folder, state, *steps):
    agent = [sys.executable, str(AGENT), json.dumps({"prompt": steps}), "raw"]
    return python(folder, state, str(EXAMPLES / "acp_client.py"), "go", *agent)


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
    assert said.stdout == "\n[greet]\ndone\n(end_turn)\n"
    assert path.read_bytes() == b"Hello, client!\r\n"
    assert (work / ".env").read_text() == "KEY=1\n"
    assert "greeting.txt" in python(work, state, "-m", "filepact", "log").stdout
    python(work, state, "-m", "filepact", "undo")
    assert path.read_bytes() == b"Hello, world!\r\n"


def test_the_example_is_short():
    assert len((EXAMPLES / "acp_client.py").read_text().splitlines()) <= 60
