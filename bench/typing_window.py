"""What is lost of what a person types into a file that an agent changes through the Agent Client Protocol.

    PYTHONPATH=src python bench/typing_window.py [--typed N] [--pause SECONDS] [--write]

An editor shows a file in which somebody types a line every other moment, while an agent changes
other lines of it, one change after the other.  The editor takes each new text in place of what it
shows, whatever that is by then, and somebody can type between any two requests, also of those that
came together.  Through the proxy, from an agent with `AgentFiles`, each of which asks such an editor
over pipes, and in a client with `ClientFileSystem`, which has the editor in its own process; the
first two also with an editor that sends notifications of what is typed.

Counted are the lines that the editor does not show at the end, those that were typed unseen, and the
times from the editor's last answer about the text to the new text, in which that can happen.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acp import RequestError

from filepact.acp import ClientFileSystem, Delivery, Position, Typed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

README = Path(__file__).with_name("README.md")
MARK = "<!-- figures: written by typing_window.py -->"
END = "<!-- end of what typing_window.py wrote -->"
LINES = 200
BLOCK = 250
"""Lines that are typed into one file."""

CHANGED = """
def changed(text, number):
    old, new = f"line {number}\\n", f"line {number} changed\\n"
    return text.replace(old, new) if old in text else text.replace(new, old)
"""

PROXIED = (
    CHANGED
    + """
import json, sys
out, source = sys.stdout.buffer, sys.stdin.buffer
def send(message):
    out.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
    out.flush()
def ask(number, method, params):
    send({"id": number, "method": method, "params": {"sessionId": "s1", **params}})
    while (answer := json.loads(source.readline())).get("id") != number:
        pass
    return answer
for line in source:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer = {"result": {}}
    if asked["method"] == "initialize":
        about = {"name": "bench", "version": "1"}
        answer["result"] = {"protocolVersion": 1, "agentInfo": about}
    elif asked["method"] == "session/new":
        answer["result"] = {"sessionId": "s1"}
    elif asked["method"] == "session/prompt":
        number, path = json.loads(asked["params"]["prompt"][0]["text"])
        answer = ask("r", "fs/read_text_file", {"path": path})
        if "result" in answer:
            text = changed(answer["result"]["content"], number)
            answer = ask("w", "fs/write_text_file", {"path": path, "content": text})
        if "result" in answer:
            answer["result"] = {"stopReason": "end_turn"}
    answer.pop("id", None)
    send({**answer, "id": asked["id"]})
"""
)

OWN = (
    CHANGED
    + """
import asyncio, json, sys
from acp import InitializeResponse, NewSessionResponse, PromptResponse, RequestError, run_agent
from filepact.acp import AgentFiles
from filepact.errors import FilepactError

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
        try:
            text = await self.session.read(path)
            if sys.argv[2] == "write":
                await self.session.write(path, changed(text, number))
            else:
                old = next(line for line in text.splitlines() if f"{line} ".startswith(f"line {number} "))
                edit = {"old_string": old + "\\n", "new_string": changed(old + "\\n", number)}
                done = await self.session.call("edit_file", {"path": path, **edit})
                if done.failed:
                    raise RequestError(-32603, done.text)
        except FilepactError as error:
            raise RequestError(-32603, error.message) from None
        return PromptResponse(stop_reason="end_turn")

asyncio.run(run_agent(Agent(), use_unstable_protocol=True))
"""
)


def changed(text: str, number: int) -> str:
    """What the agents' programs do, for the agent that is no program."""
    old, new = f"line {number}\n", f"line {number} changed\n"
    return text.replace(old, new) if old in text else text.replace(new, old)


class Screen:
    """An editor's window: one text, in which somebody types.

    Attributes:
        text: What it shows.
        lock: Held by whoever reads or changes it.
        typed: Lines that were typed so far.
        on_typed: Told the number of the line of the text before which a line was typed, and the line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = "".join(f"line {number}\n" for number in range(LINES))
        path.write_text(self.text)
        self.lock = threading.Lock()
        self.typed = 0
        self.on_typed: Callable[[int, str], None] = lambda _at, _line: None

    def type_one(self) -> None:
        """Somebody types one more line below the last one."""
        with self.lock:
            line = f"typed {self.typed}\n"
            after = f"typed {self.typed - 1}\n" if self.typed else f"line {LINES // 2}\n"
            at = self.text.find(after) + len(after) if after in self.text else len(self.text)
            self.text = self.text[:at] + line + self.text[at:]
            self.typed += 1
            self.on_typed(self.text.count("\n", 0, at), line)

    def type_lines(self, lines: int, pause: float) -> None:
        for _ in range(lines):
            time.sleep(pause)
            self.type_one()

    def lost(self) -> int:
        """How many of the typed lines it does not show."""
        shown = self.text.splitlines()
        missing = sum(f"typed {number}" not in shown for number in range(self.typed))
        if len(shown) != len(set(shown)):
            raise RuntimeError(self.text)
        return missing


class Editor:
    """An editor on the other end of two pipes.

    Attributes:
        windows: Seconds from its last answer to each new text.
        unseen: Lines that were typed in these.
    """

    def __init__(self, command: Sequence[str], screen: Screen, *, notifies: bool) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError
        self._into, self._out = self._process.stdin, self._process.stdout
        self.screen = screen
        self.windows: list[float] = []
        self.unseen = self._seen = 0
        self._answered = time.perf_counter()
        able = {"fs": {"readTextFile": True, "writeTextFile": True}}
        self._ask("initialize", {"protocolVersion": 1, "clientCapabilities": able})
        self._ask("session/new", {"cwd": str(screen.path.parent), "mcpServers": []})
        self._version = 1
        if notifies:
            screen.on_typed = self._notify
            document = {"uri": screen.path.as_uri(), "text": screen.text, "version": 1}
            params = {"sessionId": "s1", "languageId": "text", **document}
            self._send({"method": "document/didOpen", "params": params})
        self._notifies = notifies

    def change(self, number: int) -> bool:
        """The agent changes one line; whether it was not refused."""
        asked = json.dumps([number, str(self.screen.path)])
        prompt = [{"type": "text", "text": asked}]
        return self._ask("session/prompt", {"sessionId": "s1", "prompt": prompt})

    def close(self) -> None:
        self._into.close()
        self._out.close()
        self._process.wait()

    def _notify(self, at: int, line: str) -> None:
        place = {"line": at, "character": 0}
        self._changed({"range": {"start": place, "end": place}, "text": line})

    def _changed(self, change: dict[str, Any]) -> None:
        self._version += 1
        document = {"uri": self.screen.path.as_uri(), "version": self._version}
        params = {"sessionId": "s1", **document, "contentChanges": [change]}
        self._send({"method": "document/didChange", "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        os.write(self._into.fileno(), json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _ask(self, method: str, params: dict[str, Any]) -> bool:
        self._send({"id": "asked", "method": method, "params": params})
        for line in self._out:
            heard = time.perf_counter()
            message = json.loads(line)
            if message.get("method") == "fs/read_text_file":
                with self.screen.lock:
                    self._send({"id": message["id"], "result": {"content": self.screen.text}})
                    self._seen = self.screen.typed
                self._answered = time.perf_counter()
            elif message.get("method") == "fs/write_text_file":
                if not self._notifies:
                    self.windows.append(heard - self._answered)
                with self.screen.lock:
                    self.unseen += 0 if self._notifies else self.screen.typed - self._seen
                    self._seen = self.screen.typed
                    self.screen.text = message["params"]["content"]
                    self.screen.path.write_text(self.screen.text)
                    if self._notifies:
                        self._changed({"text": self.screen.text})
                        saved = {"sessionId": "s1", "uri": self.screen.path.as_uri()}
                        self._send({"method": "document/didSave", "params": saved})
                    self._send({"id": message["id"], "result": None})
            elif message.get("id") == "asked":
                return "result" in message
        raise RuntimeError(method)


@dataclass
class Found:
    """What was seen at one door."""

    typed: int = 0
    lost: int = 0
    unseen: int = 0
    changes: int = 0
    refused: int = 0
    windows: list[float] = field(default_factory=list)

    def row(self, door: str) -> str:
        window = ["", ""]
        if len(self.windows) > 1:
            window = [
                f"{1000 * statistics.median(self.windows):.2f} ms",
                f"{1000 * statistics.quantiles(self.windows, n=20)[18]:.2f} ms",
            ]
        counts = (self.typed, self.lost, self.unseen, self.changes, self.refused)
        return f"| {' | '.join([door, *(f'{count:,}' for count in counts), *window])} |"


def through(
    command: Sequence[str], path: Path, given: argparse.Namespace, found: Found, *, notifies: bool
) -> None:
    """One file through an agent's program, or through the proxy with one."""
    editor = Editor(command, Screen(path), notifies=notifies)
    screen = editor.screen
    typing = threading.Thread(target=screen.type_lines, args=(BLOCK, given.pause))
    typing.start()
    number = 0
    while typing.is_alive():
        found.refused += not editor.change(lines_of_the_agent(number))
        number += 1
    typing.join()
    # What was typed while a text was on its way is given again, which the editor hears with the next change.
    found.refused += not editor.change(lines_of_the_agent(number))
    editor.close()
    found.windows += editor.windows
    found.unseen += editor.unseen
    count(found, screen, number + 1)


def count(found: Found, screen: Screen, changes: int) -> None:
    found.typed += screen.typed
    found.lost += screen.lost()
    found.changes += changes


def lines_of_the_agent(number: int) -> int:
    """The line that is changed next: none beside those that are typed."""
    return (number * 7) % (LINES // 2 - 10)


async def in_a_client(path: Path, state: str, given: argparse.Namespace, found: Found) -> None:
    """One file in a client that has `ClientFileSystem`."""
    screen = Screen(path)
    now = 1

    async def deliver(delivery: Delivery) -> bool:
        nonlocal now
        with screen.lock:
            if delivery.version != now:
                return False
            screen.text, now = delivery.text, now + 1
        return True

    files = ClientFileSystem(state_dir=state, on_delivery=deliver)
    await files.session_started("s1", str(path.parent))
    files.buffers.open(str(path), screen.text, now)
    loop = asyncio.get_running_loop()

    def typed(at: int, line: str) -> None:
        nonlocal now
        now += 1
        place = Position(at, 0)
        change = (str(path), [Typed(line, place, place)], now)
        loop.call_soon_threadsafe(files.buffers.change, *change)

    screen.on_typed = typed
    typing = threading.Thread(target=screen.type_lines, args=(BLOCK, given.pause))
    typing.start()
    number = 0
    while typing.is_alive():
        line = lines_of_the_agent(number)
        number += 1
        text = (await files.read_text_file("s1", str(path))).content
        text = changed(text, line)
        try:
            await files.write_text_file("s1", str(path), text)
        except RequestError:
            found.refused += 1
        await asyncio.sleep(0)
    typing.join()
    files.close()
    count(found, screen, number)


def measure(given: argparse.Namespace) -> dict[str, Found]:
    """What was seen at each door."""
    found: dict[str, Found] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for block in range(-(-given.typed // BLOCK)):
            proxy = ["-m", "filepact", "acp", "--state", str(folder / "p"), "--"]
            programs = {
                "proxy, `fs/write_text_file`": [*proxy, sys.executable, "-c", PROXIED],
                "agent's side, `edit_file`": ["-c", OWN, str(folder / "a"), "edit"],
                "agent's side, `write`": ["-c", OWN, str(folder / "a"), "write"],
            }
            ways = [(door, command, "") for door, command in programs.items()]
            ways += [(door, command, ", notified") for door, command in programs.items()]
            for number, (door, command, notified) in enumerate(ways):
                if given.only not in door + notified:
                    continue
                work = folder / f"work{block}-{number}"
                work.mkdir()
                at = found.setdefault(door + notified, Found())
                path = work / "shown.txt"
                through([sys.executable, *command], path, given, at, notifies=bool(notified))
            if given.only in (door := "client, `ClientFileSystem`"):
                work = folder / f"client{block}"
                work.mkdir()
                at = found.setdefault(door, Found())
                asyncio.run(in_a_client(work / "shown.txt", str(folder / "c"), given, at))
    return found


def report(given: argparse.Namespace) -> str:
    found = measure(given)
    today = dt.datetime.now(tz=dt.UTC).date()
    about = (
        f"Measured {today}: Python {platform.python_version()} on {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
        f"a line each {given.pause * 1000:g} ms, in files of {LINES} lines that grow to {LINES + BLOCK}."
    )
    head = [
        "| door | typed | lost | unseen | changes | refused | window: median | 95 of 100 within |",
        f"|{' --- |' * 8}",
    ]
    return "\n".join(
        [MARK, "", about, "", *head, *(at.row(door) for door, at in found.items()), "", END]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--typed", type=int, default=500, help="lines typed at each door")
    parser.add_argument("--pause", type=float, default=0.002, help="seconds before each of them")
    parser.add_argument("--only", default="", help="the doors that have this in their names")
    parser.add_argument("--write", action="store_true", help="put the figures into README.md")
    given = parser.parse_args()
    found = report(given)
    print(found)
    if given.write:
        text = README.read_text(encoding="utf-8")
        head, _, rest = text.partition(MARK)
        README.write_text(head + found + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
