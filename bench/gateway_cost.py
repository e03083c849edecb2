"""What a gateway costs: a read against the bare framework's answer, many sessions at once, and idle ones.

    python -m bench.gateway_cost [SESSIONS]

The bare framework has the same server, parses the same request and sends an answer of the same bytes.  Pairs are
interleaved, and the median of their ratios is told, of the time that a client waits and of the processor
time of the server, which other work on the machine changes less; absolute times are this machine's.
"""

from __future__ import annotations

import http.client
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "packages" / "filepact-gateway" / "tests")]

from filepact_mcp.results import VERSION_KEY  # noqa: E402
from gateway_running import BOTH, RunningGateway  # noqa: E402
from tests.faces.envelopes import CLIENT, modern  # noqa: E402

ROUNDS = 15
CALLS = 60
CLIENTS = 64
EACH = 50

READ: dict[str, Any] = {
    "jsonrpc": "2.0",
    "method": "tools/call",
    "params": {"name": "read_file", "arguments": {"path": "a.txt"}},
}
MODERN_READ: dict[str, Any] = {**READ, "params": modern(**READ["params"])}

BARE = """
import json, socket, sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

result = json.loads(sys.argv[2])

async def answer(request):
    said = await request.json()
    return JSONResponse({"jsonrpc": "2.0", "id": said["id"], "result": result})

app = Starlette(routes=[Route("/mcp", answer, methods=["POST"])])
config = uvicorn.Config(app, http="h11", log_level="critical", access_log=False, timeout_keep_alive=75)
uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
"""


class Line:
    """A connection that is kept, as clients keep theirs."""

    def __init__(self, address: str) -> None:
        self.connection = http.client.HTTPConnection(address, timeout=60)
        self.headers = {"content-type": "application/json", "accept": BOTH}

    def post(self, message: dict) -> dict:
        self.connection.request("POST", "/mcp", json.dumps(message), self.headers)
        response = self.connection.getresponse()
        session = response.getheader("mcp-session-id")
        if session:
            self.headers["mcp-session-id"] = session
        return json.loads(response.read())

    def cost(self, process: int, message: dict) -> tuple[float, float]:
        """Seconds that an answer takes, and of them those that the server works."""
        worked, begun = processor(process), time.perf_counter()
        for number in range(CALLS):
            self.post({**message, "id": number + 10})
        passed = time.perf_counter() - begun
        return passed / CALLS, (processor(process) - worked) / CALLS


def processor(process: int) -> float:
    """Seconds that the threads of a process have worked."""
    threads = Path(f"/proc/{process}/task").iterdir()
    return sum(int((one / "schedstat").read_text().split()[0]) for one in threads) / 1e9


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


def ratios(gateway: tuple[Line, int], bare: tuple[Line, int]) -> None:
    """Tell how many times the bare answer's the gateway's are."""
    asked = {
        "read": (gateway[0], READ),
        "read without a session": (modern_line(gateway[0]), MODERN_READ),
        "ping": (gateway[0], {"jsonrpc": "2.0", "method": "ping"}),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in asked}
    bases: list[tuple[float, float]] = []
    for turn in range(ROUNDS + 1):
        base = bare[0].cost(bare[1], READ)
        costs = {name: line.cost(gateway[1], said) for name, (line, said) in asked.items()}
        if turn:  # the first only warms up
            bases.append(base)
            for name, cost in costs.items():
                found[name].append((cost[0] / base[0], cost[1] / base[1]))
    waits, works = (statistics.median(one) * 1e6 for one in zip(*bases, strict=True))
    print(f"bare framework: {waits:.0f} us an answer, {works:.0f} us of processor time")
    for name, pairs in found.items():
        waits, works = (statistics.median(one) for one in zip(*pairs, strict=True))
        print(f"{name}: {waits:.2f} times the wait, {works:.2f} times the processor time")


def modern_line(line: Line) -> Line:
    """A connection of a client that knows no sessions."""
    made = Line(f"{line.connection.host}:{line.connection.port}")
    version = MODERN_READ["params"]["_meta"][VERSION_KEY]
    made.headers |= {"mcp-protocol-version": version, "mcp-method": "tools/call"}
    made.headers["mcp-name"] = "read_file"
    return made


def together(address: str, process: int, clients: int) -> None:
    """Tell how many reads are answered to so many sessions that all ask at once."""

    def ask(name: int) -> None:
        line = Line(address)
        line.post(opening(str(name)))
        for number in range(EACH):
            line.post({**READ, "id": number})

    begun, worked = time.perf_counter(), processor(process)
    with ThreadPoolExecutor(clients) as threads:
        list(threads.map(ask, range(clients)))
    passed, worked = time.perf_counter() - begun, processor(process) - worked
    reads = clients * EACH
    print(f"{clients} sessions at once: {reads / passed:.0f} reads a second here,", end=" ")
    print(f"{reads / worked:.0f} a second of processor time")


def idle(address: str, process: int, sessions: int) -> None:
    """Tell the memory of sessions that have read something; 200 of them keep their connection."""
    before = memory(process)
    kept = []
    for number in range(sessions):
        one = Line(address)
        one.post(opening(str(number)))
        one.post({**READ, "id": 1})
        if number < 200:
            kept.append(one)
        else:
            one.connection.close()
    after = memory(process)
    print(f"{sessions} sessions: {after - before:.1f} MiB beyond one ({before:.0f} MiB)")


def main() -> None:
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    base = Path(tempfile.mkdtemp(prefix="filepact-bench-"))
    (base / "root").mkdir()
    (base / "root" / "a.txt").write_text("".join(f"line {n}\n" for n in range(40)))
    settings = "[serve]\nsession_calls = 1000000\nuser_calls = 1000000\n"
    running = RunningGateway(base, [str(base / "root")], settings=settings)
    try:
        line = Line(running.address)
        line.post(opening("a"))
        answer = json.dumps(line.post({**READ, "id": 1})["result"])
        with socket.create_server(("127.0.0.1", 0)) as door:
            # It listens before the other process is there, at a port that nobody else has.
            command = [sys.executable, "-c", BARE, str(door.fileno()), answer]
            bare = subprocess.Popen(command, pass_fds=[door.fileno()])
            place = f"127.0.0.1:{door.getsockname()[1]}"
        try:
            ratios((line, running.process.pid), (Line(place), bare.pid))
        finally:
            bare.kill()
            bare.wait()
        together(running.address, running.process.pid, CLIENTS)
        idle(running.address, running.process.pid, sessions)
    finally:
        running.end()


if __name__ == "__main__":
    main()
