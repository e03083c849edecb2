"""What a gateway costs: a read against the bare framework's answer, and the memory of idle sessions.

    python -m bench.gateway_cost [SESSIONS]

Pairs are interleaved, and the median of their ratios is told; absolute times are this machine's.
"""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.faces.envelopes import CLIENT
from tests.faces.gateway.running import BOTH, RunningGateway

ROUNDS = 15
CALLS = 60

BARE = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

async def answer(request):
    said = await request.json()
    return JSONResponse({"jsonrpc": "2.0", "id": said["id"], "result": {"content": [], "isError": False}})

app = Starlette(routes=[Route("/mcp", answer, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[1]), http="h11", log_level="critical", access_log=False, timeout_keep_alive=75)
"""


class Line:
    """A connection that is kept, as clients keep theirs."""

    def __init__(self, address: str) -> None:
        self.connection = http.client.HTTPConnection(address)
        self.headers = {"content-type": "application/json", "accept": BOTH}

    def post(self, message: dict) -> dict:
        self.connection.request("POST", "/mcp", json.dumps(message), self.headers)
        response = self.connection.getresponse()
        session = response.getheader("mcp-session-id")
        if session:
            self.headers["mcp-session-id"] = session
        return json.loads(response.read())

    def seconds(self, message: dict) -> float:
        begun = time.perf_counter()
        for number in range(CALLS):
            self.post({**message, "id": number + 10})
        return (time.perf_counter() - begun) / CALLS


def memory(process: int) -> float:
    """MiB that are a process's own."""
    text = Path(f"/proc/{process}/smaps_rollup").read_text()
    kib = sum(
        int(line.split()[1])
        for line in text.splitlines()
        if line.startswith(("Private_Clean", "Private_Dirty"))
    )
    return kib / 1024


def opening(name: str) -> dict:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
    return {"jsonrpc": "2.0", "id": name, "method": "initialize", "params": params}


def main() -> None:
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    base = Path(tempfile.mkdtemp(prefix="filepact-bench-"))
    (base / "root").mkdir()
    (base / "root" / "a.txt").write_text("".join(f"line {n}\n" for n in range(40)))
    settings = "[serve]\nsession_calls = 1000000\nuser_calls = 1000000\n"
    running = RunningGateway(base, [str(base / "root")], settings=settings)
    port = int(running.address.partition(":")[2]) + 1
    bare = subprocess.Popen([sys.executable, "-c", BARE, str(port)])
    try:
        line, plain = Line(running.address), Line(f"127.0.0.1:{port}")
        line.post(opening("a"))
        while True:
            try:
                plain.post(opening("a"))
                break
            except OSError:
                plain.connection.close()
                time.sleep(0.1)
        read = {"jsonrpc": "2.0", "method": "tools/call"}
        read["params"] = {"name": "read_file", "arguments": {"path": "a.txt"}}
        ping = {"jsonrpc": "2.0", "method": "ping"}
        for one in (line, plain):
            one.seconds(read)
        ratios: dict[str, list[float]] = {"read": [], "ping": []}
        times: list[float] = []
        for _ in range(ROUNDS):
            base_time = plain.seconds(read)
            times.append(base_time)
            ratios["read"].append(line.seconds(read) / base_time)
            ratios["ping"].append(line.seconds(ping) / base_time)
        print(f"bare framework: {statistics.median(times) * 1000:.2f} ms an answer")
        for name, found in ratios.items():
            print(
                f"{name}: {statistics.median(found):.2f} times that ({min(found):.2f} to {max(found):.2f})"
            )
        pid = running.process.pid
        before = memory(pid)
        lines = []
        for number in range(sessions):
            one = Line(running.address)
            one.post(opening(str(number)))
            one.post({**read, "id": 1})
            if number < 200:
                lines.append(one)  # some keep their connection
            else:
                one.connection.close()
        after = memory(pid)
        print(f"{sessions} sessions: {after - before:.1f} MiB beyond one ({before:.0f} MiB)")
    finally:
        bare.kill()
        bare.wait()
        running.end()


if __name__ == "__main__":
    main()
