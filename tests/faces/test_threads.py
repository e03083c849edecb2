"""Where the system gives no further thread: answers all the same, or a refusal with a code, and nothing that hangs."""

from __future__ import annotations

import contextlib
import json
import re
import resource
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from gateway_running import Client
from tests.faces.envelopes import CLIENT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

if sys.platform != "linux":
    pytest.skip("limits are told of a process from without", allow_module_level=True)

STACK = 1 << 30  # bytes of address space that each thread takes
PATIENCE = 60
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "f1.txt"}),
    ("grep", {"pattern": "needle 7"}),
    ("edit_file", {"path": "f1.txt", "old_string": "needle 1", "new_string": "found"}),
    ("directory_tree", {}),
    ("read_file", {"path": "f1.txt"}),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """So many files that a search would take help."""
    made = tmp_path / "root"
    made.mkdir()
    for number in range(300):
        (made / f"f{number}.txt").write_text("one\n" * 50 + f"needle {number}\n")
    return made


def few(threads: int | None, *words: str) -> list[str]:
    """A command that finds room for so many threads; None for as many as it wants, each of which takes the same."""
    limits = f"ulimit -s {STACK // 1_024}"
    if threads is not None:
        limits += f" && ulimit -v {(threads * STACK + STACK // 2) // 1_024}"
    return ["sh", "-c", f'{limits} && exec "$@"', "sh", sys.executable, "-m", "filepact", *words]


@pytest.mark.parametrize("threads", [0, 2, 3, 5])
def test_a_server_does_with_few_threads_or_says_that_it_cannot(root: Path, threads: int) -> None:
    asked: list[dict[str, Any]] = [
        {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": CLIENT,
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    for number, (tool, arguments) in enumerate(CALLS, start=1):
        params = {"name": tool, "arguments": arguments}
        asked.append({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    server = subprocess.Popen(
        few(threads, "mcp", str(root), "--state", str(root.parent / "state")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        server.stdin.write("".join(json.dumps(one) + "\n" for one in asked))
        server.stdin.flush()
    # The input stays open meanwhile: its end would cancel what is not done yet.
    lines = [server.stdout.readline() for _ in range(len(CALLS) + 1)]
    said = server.communicate(timeout=PATIENCE)[1]
    if server.returncode:
        assert threads < 5
        assert "[NO_THREADS]" in said
        return
    assert threads > 0
    results = {one["id"]: one["result"] for one in map(json.loads, lines)}
    assert set(results) == set(range(len(CALLS) + 1)), said
    assert [results[number]["isError"] for number in range(1, len(CALLS) + 1)] == [False] * 5
    assert "found" in (root / "f1.txt").read_text()


@pytest.fixture
def gateway(root: Path) -> Iterator[subprocess.Popen[str]]:
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    words = ["serve", str(root), "--listen", "127.0.0.1:0", "--state", str(root.parent / "state")]
    running = subprocess.Popen(
        few(None, *words),
        stderr=subprocess.PIPE,
        text=True,
    )
    yield running
    running.terminate()
    running.communicate(timeout=PATIENCE)
    assert running.returncode == 0


def limited(process: int, threads: int | None) -> None:
    """Leave a program room for so many further threads; None for all that it wants."""
    most = resource.RLIM_INFINITY
    if threads is not None:
        with open(f"/proc/{process}/status") as stream:
            (size,) = re.findall(r"^VmSize:\s+(\d+) kB", stream.read(), re.MULTILINE)
        most = int(size) * 1_024 + threads * STACK + STACK // 2
    resource.prlimit(process, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def test_a_gateway_does_with_the_threads_it_has_or_asks_to_come_again(
    gateway: subprocess.Popen[str],
) -> None:
    assert gateway.stderr is not None
    (address,) = re.findall(r"http://([^/]+)/mcp", gateway.stderr.readline())
    limited(gateway.pid, 0)
    client = Client(address)
    # To greet takes no thread.
    assert client.open().status == 200
    refused = client.call("read_file", id_="r", path="f0.txt")
    assert (refused.status, refused.code) == (503, "NO_THREADS")
    assert int(refused.headers["retry-after"]) >= 1
    limited(gateway.pid, None)
    assert client.call("read_file", id_="r", path="f0.txt").result["isError"] is False
    limited(gateway.pid, 0)
    answers = []

    def ask(number: int) -> None:
        answers.append(client.call("read_file", id_=f"r{number}", path=f"f{number}.txt"))

    asking = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for one in asking:
        one.start()
    for one in asking:
        one.join(PATIENCE)
    assert [one.result["isError"] for one in answers] == [False] * 6
    again = Client(address)
    again.session = client.session
    edit = {"path": "f2.txt", "old_string": "needle 2", "new_string": "found"}
    assert again.call("edit_file", id_="e", **edit).result["isError"] is False
    limited(gateway.pid, None)
