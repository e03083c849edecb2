"""A bare MCP client over stdio: one request, one answer, nothing that would blur a timing."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["StdioServer"]


class StdioServer:
    """A server process and its pipe.

    Attributes:
        started: Seconds from the spawn to the answer to ``initialize``.
    """

    def __init__(self, command: list[str], *, env: dict[str, str], cwd: Path) -> None:
        begin = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            cwd=cwd,
        )
        self._number = 0
        self.request(
            "initialize",
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            },
        )
        self.started = time.perf_counter() - begin
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _send(self, message: dict[str, Any]) -> None:
        if self._process.stdin is None:
            raise RuntimeError("no pipe")
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer; other messages are passed over."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        if self._process.stdout is None:
            raise RuntimeError("no pipe")
        for line in self._process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self._number and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
        raise RuntimeError(f"{method}: the server ended")

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[float, str, bool]:
        """Call a tool; seconds, the answer's text, and whether it failed."""
        begin = time.perf_counter()
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        seconds = time.perf_counter() - begin
        text = "".join(part.get("text", "") for part in result.get("content", []))
        return seconds, text, bool(result.get("isError"))

    def memory(self) -> tuple[float, float]:
        """Resident memory now and at its peak, in MiB (Linux)."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        values = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        return tuple(int(values[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM"))  # type: ignore[return-value]
