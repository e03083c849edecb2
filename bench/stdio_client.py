"""A bare MCP client over stdio: one request, one answer, nothing that would blur a timing."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

__all__ = ["StdioServer"]

_SCHED = 2  # of a process's clocks the one that counts nanoseconds on a processor


class StdioServer:
    """A server process and its pipe.

    Attributes:
        started: Seconds from the spawn to the answer to ``initialize``.
        started_cpu: Seconds of processor time until then, of the process and of those it started.
        young: Seconds for which a file counts as one that may change once more without a sign of it.
    """

    young: ClassVar[float] = 2.5

    def __init__(self, command: Sequence[str], *, env: dict[str, str], cwd: Path) -> None:
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
        self.started_cpu = self.cpu()
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

    @property
    def pid(self) -> int:
        return self._process.pid

    def _write(self, data: bytes) -> None:
        if self._process.stdin is None:
            raise RuntimeError("no pipe")
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _send(self, message: dict[str, Any]) -> None:
        self._write(json.dumps(message).encode() + b"\n")

    def _answer(self, wanted: int) -> dict[str, Any]:
        """The answer with a number; other messages are passed over."""
        if self._process.stdout is None:
            raise RuntimeError("no pipe")
        for line in self._process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == wanted and "method" not in message:
                if "error" in message:
                    raise RuntimeError(str(message["error"]))
                result: dict[str, Any] = message["result"]
                return result
        raise RuntimeError("the server ended")

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._answer(self._number)

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[float, str, bool]:
        """Call a tool; seconds, the answer's text, and whether it failed."""
        begin = time.perf_counter()
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        seconds = time.perf_counter() - begin
        text = "".join(part.get("text", "") for part in result.get("content", []))
        return seconds, text, bool(result.get("isError"))

    def call_together(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> tuple[float, list[int]]:
        """Send calls without waiting between them; seconds until all are answered, and the answers' sizes."""
        if self._process.stdout is None:
            raise RuntimeError("no pipe")
        lines = []
        for tool, arguments in calls:
            self._number += 1
            params = {"name": tool, "arguments": arguments}
            asked = {"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params}
            lines.append(json.dumps(asked).encode() + b"\n")
        begin = time.perf_counter()
        self._write(b"".join(lines))
        answers: list[bytes] = []
        while len(answers) < len(calls):
            line = self._process.stdout.readline()
            if not line:
                raise RuntimeError("the server ended")
            if b'"id"' in line and b'"method"' not in line[:200]:
                answers.append(line)
        return time.perf_counter() - begin, [len(line) for line in answers]

    def cpu(self) -> float:
        """Seconds of processor time so far, of the process and of those that it has started and are there."""
        total = 0.0
        for pid in self._family(self._process.pid):
            with suppress(OSError):
                total += time.clock_gettime((~pid << 3) | _SCHED)
        return total

    def rest(self, most: float = 60.0) -> None:
        """Wait until it has done what it does in the background, and files made before are no longer young.

        A file that changed in the last two seconds is read anew each time, whatever is known of it.
        """
        late = time.monotonic() + most
        time.sleep(self.young)
        before = self.cpu()
        while time.monotonic() < late:
            time.sleep(min(self.young, 0.3))
            if (now := self.cpu()) - before < 0.003:
                return
            before = now

    def _family(self, pid: int) -> list[int]:
        found = [pid]
        with suppress(OSError):
            for one in Path(f"/proc/{pid}/task").iterdir():
                for child in (one / "children").read_text().split():
                    found += self._family(int(child))
        return found

    def memory(self) -> tuple[float, float]:
        """Resident memory now and at its peak, in MiB (Linux)."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        values = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        return tuple(int(values[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM"))  # type: ignore[return-value]

    def own_memory(self) -> float:
        """Pages that no other process shares, in MiB, of the process and of those that it has started."""
        total = 0
        for pid in self._family(self._process.pid):
            with suppress(OSError):
                rolled = Path(f"/proc/{pid}/smaps_rollup").read_text()
                total += sum(
                    int(line.split()[1])
                    for line in rolled.splitlines()
                    if line.startswith("Private_")
                )
        return total / 1024

    def watches(self) -> int:
        """How many folders the process has the system watch."""
        count = 0
        for one in Path(f"/proc/{self._process.pid}/fdinfo").iterdir():
            with suppress(OSError):
                count += one.read_text().count("inotify wd:")
        return count
