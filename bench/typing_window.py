"""How long a person can type into an editor unseen while a change of an agent's is written to it.

    PYTHONPATH=src python bench/typing_window.py [--changes N] [--write]

Measured at the editor: from its last answer about a file's text to the arrival of the file's new
text.  What is typed in between is up to the editor.  Once through the proxy, with the agent's
``fs/write_text_file``, and once for an agent with `AgentFiles`, with ``edit_file``.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

README = Path(__file__).with_name("README.md")
MARK = "<!-- figures: written by typing_window.py -->"
END = "<!-- end of what typing_window.py wrote -->"
LINES = 200

PROXIED = """
import json, sys
out, source = sys.stdout.buffer, sys.stdin.buffer
def send(message):
    out.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
    out.flush()
def ask(number, method, params):
    send({"id": number, "method": method, "params": {"sessionId": "s1", **params}})
    return json.loads(source.readline())["result"]
for line in source:
    asked = json.loads(line)
    result = {}
    if asked["method"] == "initialize":
        result = {"protocolVersion": 1, "agentInfo": {"name": "bench", "version": "1"}}
    elif asked["method"] == "session/new":
        result = {"sessionId": "s1"}
    elif asked["method"] == "session/prompt":
        number, path = json.loads(asked["params"]["prompt"][0]["text"])
        text = ask("r", "fs/read_text_file", {"path": path})["content"]
        text = text.replace(f"line {number}\\n", f"line {number} changed\\n")
        ask("w", "fs/write_text_file", {"path": path, "content": text})
        result = {"stopReason": "end_turn"}
    send({"id": asked["id"], "result": result})
"""

OWN = """
import asyncio, json, sys
from acp import InitializeResponse, NewSessionResponse, PromptResponse, run_agent
from filepact.acp import AgentFiles

class Agent:
    def on_connect(self, connection):
        self.files = AgentFiles(connection, state_dir=sys.argv[1])

    async def initialize(self, protocol_version, **_):
        return InitializeResponse(protocol_version=1)

    async def new_session(self, cwd, **_):
        self.session = await self.files.session("s1", cwd)
        return NewSessionResponse(session_id="s1")

    async def prompt(self, prompt, session_id, **_):
        number, path = json.loads(prompt[0].text)
        edit = {"old_string": f"line {number}\\n", "new_string": f"line {number} changed\\n"}
        done = await self.session.call("edit_file", {"path": path, **edit})
        assert not done.failed, done.text
        return PromptResponse(stop_reason="end_turn")

asyncio.run(run_agent(Agent(), use_unstable_protocol=False))
"""


class Editor:
    """An editor that shows one file, and takes what it is given as its new text.

    Attributes:
        windows: Seconds from its last answer to each new text.
    """

    def __init__(self, command: Sequence[str], work: Path) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError
        self._into, self._out = self._process.stdin, self._process.stdout
        self.path = work / "shown.txt"
        self.text = "".join(f"line {number}\n" for number in range(LINES))
        self.path.write_text(self.text)
        self.windows: list[float] = []
        self._answered = 0.0
        able = {"fs": {"readTextFile": True, "writeTextFile": True}}
        self._ask("initialize", {"protocolVersion": 1, "clientCapabilities": able})
        self._ask("session/new", {"cwd": str(work), "mcpServers": []})

    def change(self, number: int) -> None:
        """The agent changes one line, while the editor holds text that is not saved."""
        self.text += f"typed {number}\n"
        asked = json.dumps([number, str(self.path)])
        prompt = [{"type": "text", "text": asked}]
        self._ask("session/prompt", {"sessionId": "s1", "prompt": prompt})
        if f"line {number} changed\n" not in self.text or f"typed {number}\n" not in self.text:
            raise RuntimeError(self.text)

    def close(self) -> None:
        self._into.close()
        self._out.close()
        self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        self._into.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._into.flush()

    def _ask(self, method: str, params: dict[str, Any]) -> None:
        self._send({"id": "asked", "method": method, "params": params})
        for line in self._out:
            heard = time.perf_counter()
            message = json.loads(line)
            if message.get("method") == "fs/read_text_file":
                self._send({"id": message["id"], "result": {"content": self.text}})
                self._answered = time.perf_counter()
            elif message.get("method") == "fs/write_text_file":
                self.windows.append(heard - self._answered)
                self.text = message["params"]["content"]
                self.path.write_text(self.text)
                self._send({"id": message["id"], "result": None})
            elif message.get("id") == "asked":
                return
        raise RuntimeError(method)


def report(changes: int) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        proxy = ["-m", "filepact", "acp", "--state", str(folder / "p"), "--"]
        ways = {
            "proxy, `fs/write_text_file`": [*proxy, sys.executable, "-c", PROXIED],
            "agent's side, `edit_file`": ["-c", OWN, str(folder / "a")],
        }
        editors = {}
        for number, (way, command) in enumerate(ways.items()):
            work = folder / f"work{number}"
            work.mkdir()
            editors[way] = Editor([sys.executable, *command], work)
        for number in range(changes):
            for editor in editors.values():
                editor.change(number % LINES)
                editor.text = editor.text.replace(" changed\n", "\n")
        for editor in editors.values():
            editor.close()
        found = {way: editor.windows for way, editor in editors.items()}
    today = dt.datetime.now(tz=dt.UTC).date()
    about = (
        f"Measured {today}: Python {platform.python_version()} on {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
        f"{changes} changes of a file of {LINES} lines with unsaved text."
    )
    head = ["| what | median | 95 of 100 within |", "| --- | --- | --- |"]
    rows = [
        f"| {way} | {statistics.median(taken) * 1000:.2f} ms "
        f"| {statistics.quantiles(taken, n=20)[18] * 1000:.2f} ms |"
        for way, taken in found.items()
    ]
    return "\n".join([MARK, "", about, "", *head, *rows, "", END])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=200, help="changes through each side")
    parser.add_argument("--write", action="store_true", help="put the figures into README.md")
    given = parser.parse_args()
    found = report(given.changes)
    print(found)
    if given.write:
        text = README.read_text(encoding="utf-8")
        head, _, rest = text.partition(MARK)
        README.write_text(head + found + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
