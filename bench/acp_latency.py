"""What the proxy adds between an editor and an agent: reads of files, and the start.

    PYTHONPATH=src python bench/acp_latency.py [--reads N] [--starts N] [--write]

One agent asks for files and takes the time; beside the bare pair, the same two with the proxy
between them, which serves the files itself or asks the editor.  All pairs live at once and are
asked by turns.
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
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from acp import spawn_agent_process, text_block
from acp.schema import ReadTextFileResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

README = Path(__file__).with_name("README.md")
MARK = "<!-- figures: written by acp_latency.py -->"
END = "<!-- end of what acp_latency.py wrote -->"
ROUND = 50  # reads in one turn
BIG = 10_000_000  # bytes
LONGEST = 64 * 1_048_576  # bytes of a line

AGENT = """
import json, sys, time
out, source = sys.stdout.buffer, sys.stdin.buffer
def send(message):
    out.write(json.dumps(message).encode() + b"\\n")
    out.flush()
for line in source:
    asked = json.loads(line)
    if "id" not in asked or "method" not in asked:
        continue
    result = {}
    if asked["method"] == "initialize":
        result = {"protocolVersion": 1, "agentInfo": {"name": "bench", "version": "1"}}
    elif asked["method"] == "session/new":
        result = {"sessionId": "s1"}
    elif asked["method"] == "session/prompt":
        count, _, path = asked["params"]["prompt"][0]["text"].partition(" ")
        taken = []
        for number in range(int(count)):
            params = {"sessionId": "s1", "path": path}
            before = time.perf_counter()
            send({"jsonrpc": "2.0", "id": number, "method": "fs/read_text_file", "params": params})
            answer = json.loads(source.readline())
            taken.append(time.perf_counter() - before)
            assert answer["id"] == number and answer["result"]["content"], answer
        result = {"stopReason": "end_turn", "_meta": {"taken": taken}}
    send({"jsonrpc": "2.0", "id": asked["id"], "result": result})
"""


class RawPair:
    """A client that is nothing but a loop, and the agent.

    Attributes:
        started: Seconds from the spawn to the answer to ``initialize``.
    """

    def __init__(self, command: Sequence[str], work: Path, *, fs: bool) -> None:
        before = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        able = {"fs": {"readTextFile": fs, "writeTextFile": fs}}
        self._ask("initialize", {"protocolVersion": 1, "clientCapabilities": able})
        self.started = time.perf_counter() - before
        self._work = work

    def __enter__(self) -> Self:
        self._ask("session/new", {"cwd": str(self._work), "mcpServers": []})
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def reads(self, path: Path, count: int) -> list[float]:
        """Seconds of each read, as the agent saw them."""
        prompt = [{"type": "text", "text": f"{count} {path}"}]
        taken: list[float] = self._ask("session/prompt", {"sessionId": "s1", "prompt": prompt})[
            "_meta"
        ]["taken"]
        return taken

    def _send(self, message: dict[str, Any]) -> None:
        if self._process.stdin is None:
            raise RuntimeError
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._send({"id": "asked", "method": method, "params": params})
        for line in self._process.stdout or ():
            message = json.loads(line)
            if message.get("method") == "fs/read_text_file":
                with open(message["params"]["path"], encoding="utf-8", newline="") as file:
                    self._send({"id": message["id"], "result": {"content": file.read()}})
            elif message.get("id") == "asked":
                result: dict[str, Any] = message["result"]
                return result
        raise RuntimeError(f"{method}: nobody answered")


class PlainClient:
    """A client of the official package that reads with a plain `open`."""

    async def read_text_file(self, path: str, **_: Any) -> ReadTextFileResponse:
        with open(path, encoding="utf-8", newline="") as file:  # noqa: ASYNC230 - as many do
            return ReadTextFileResponse(content=file.read())

    def on_connect(self, conn: Any) -> None:
        """Nothing is asked of the agent from here."""


class PackagePair:
    """A client made with the official package, and the agent."""

    def __init__(self, command: Sequence[str], work: Path, *, fs: bool) -> None:
        self._loop = asyncio.new_event_loop()
        self._spawned = spawn_agent_process(
            PlainClient(),  # type: ignore[arg-type]
            *command,
            env=os.environ,
            transport_kwargs={"stderr": None, "limit": LONGEST},
        )
        self._able = {"fs": {"readTextFile": fs, "writeTextFile": fs}}
        self._work = work

    def __enter__(self) -> Self:
        self._agent, _ = self._loop.run_until_complete(self._spawned.__aenter__())
        self._loop.run_until_complete(self._begin())
        return self

    async def _begin(self) -> None:
        from acp.schema import ClientCapabilities  # noqa: PLC0415 - only here

        able = ClientCapabilities.model_validate(self._able)
        await self._agent.initialize(1, client_capabilities=able)
        await self._agent.new_session(cwd=str(self._work), mcp_servers=[])

    def __exit__(self, *_: object) -> None:
        self._loop.run_until_complete(self._spawned.__aexit__(None, None, None))
        self._loop.close()

    def reads(self, path: Path, count: int) -> list[float]:
        asked = self._agent.prompt(prompt=[text_block(f"{count} {path}")], session_id="s1")
        done = self._loop.run_until_complete(asked)
        taken: list[float] = (done.field_meta or {})["taken"]
        return taken


def row(called: str, taken: Sequence[float], bare: Sequence[float]) -> str:
    middle, before = statistics.median(taken) * 1000, statistics.median(bare) * 1000
    late = statistics.quantiles(taken, n=100)[98] * 1000
    added = f"{middle - before:+.2f} ms" if taken is not bare else ""
    return f"| {called} | {middle:.2f} ms | {late:.2f} ms | {middle / before:.2f} | {added} |"


def report(reads: int, starts: int) -> str:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name).resolve()
        work = folder / "work"
        work.mkdir()
        small, big = work / "small.py", work / "big.txt"
        small.write_text("a line of forty characters, all of them\n" * 40)
        big.write_text("a line of forty characters, all of them\n" * (BIG // 40))
        agent = [sys.executable, "-c", AGENT]

        def through(state: str) -> list[str]:
            own = ["--state", str(folder / state), "--", *agent]
            return [sys.executable, "-m", "filepact", "acp", *own]

        pairs: dict[str, Any] = {}
        for kind, pair in (("raw client", RawPair), ("official package", PackagePair)):
            short = kind[0]
            for way, command, fs in (
                ("bare", agent, True),
                ("proxy serves", through(f"a{short}"), False),
                ("editor behind the proxy", through(f"b{short}"), True),
            ):
                pairs[f"{kind}, {way}"] = stack.enter_context(pair(command, work, fs=fs))
        lines = []
        for called, path, count, each in (
            ("small", small, reads, ROUND),
            ("10 MB", big, max(6, reads // 100), 2),
        ):
            taken: dict[str, list[float]] = {pair: [] for pair in pairs}
            for pair in pairs.values():
                pair.reads(path, 2)
            for _ in range(0, count, each):
                for pair, asked in pairs.items():
                    taken[pair] += asked.reads(path, each)
            for pair, found in taken.items():
                bare = taken[f"{pair.partition(',')[0]}, bare"]
                lines.append(row(f"{called}: {pair}", found, bare))
        begun: dict[str, list[float]] = {"bare": [], "proxy": []}
        for _ in range(starts):
            for way, command in (("bare", agent), ("proxy", through("c"))):
                started = RawPair(command, work, fs=True)
                begun[way].append(started.started)
                started.close()
        lines += [row(f"start: {way}", found, begun["bare"]) for way, found in begun.items()]
    today = dt.datetime.now(tz=dt.UTC).date()
    about = (
        f"Measured {today}: Python {platform.python_version()} on {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
        f"{reads:,} small reads, {starts} starts."
    )
    head = ["| what | median | 99 of 100 within | ratio to bare | added |", "| --- " * 5 + "|"]
    return "\n".join([MARK, "", about, "", *head, *lines, "", END])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reads", type=int, default=2_000, help="small reads of each pair")
    parser.add_argument("--starts", type=int, default=15, help="starts of each kind")
    parser.add_argument("--write", action="store_true", help="put the figures into README.md")
    given = parser.parse_args()
    found = report(given.reads, given.starts)
    print(found)
    if given.write:
        text = README.read_text(encoding="utf-8")
        head, _, rest = text.partition(MARK)
        README.write_text(head + found + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
