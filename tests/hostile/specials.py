"""Special files and bombs, each answered by the real server, with time and memory measured.

``python -m tests.hostile.specials [--large] [NAME...]`` prints a table.  Every bomb has a server of
its own, so that the growth of its memory is that bomb's.
"""

from __future__ import annotations

import argparse
import os
import queue
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.faces.line_client import LineClient
from tests.hostile.bombs import BOMBS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.hostile.bombs import Bomb, Call

__all__ = ["CannotMakeError", "Measured", "NoAnswerError", "detonate", "table"]

WATCHDOG = 60.0
"""Seconds until a server counts as hung; how fast it was is measured and not asserted."""

MOST_SECONDS, MOST_GROWN = 1.0, 64 << 20
"""What counts as too slow and too large, on a machine that does nothing else."""

_SOURCE = str(Path(__file__).parents[2] / "src")


class CannotMakeError(Exception):
    """This system, or this user, cannot make what a bomb needs."""


class NoAnswerError(Exception):
    """The server did not answer in time, or ended."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a bomb did.

    Attributes:
        codes: Of each answer; empty for one that is no refusal.
        seconds: Of the slowest answer.
        grown: Bytes by which the server's memory had grown at its highest.
        alive: Whether the server still answered afterwards.
    """

    bomb: Bomb
    codes: tuple[str, ...]
    seconds: float
    grown: int
    alive: bool


# -- the server -------------------------------------------------------------------------------


class _Client(LineClient):
    def wait_for(self, number: int) -> dict[str, Any]:
        while number not in self._held:
            try:
                message = self._answers.get(timeout=WATCHDOG)
            except queue.Empty as error:
                raise NoAnswerError("no answer in time") from error
            if message is None:
                raise NoAnswerError("the server has ended")
            # A message that could not be read has no id that could be answered.
            self._held[number if message.get("id") is None else message["id"]] = message
        found: dict[str, Any] = self._held.pop(number)
        return found


@contextmanager
def _serving(base: Path) -> Iterator[tuple[_Client, int]]:
    """The server as an agent's program starts it, and its process id."""
    home = base / "home"
    home.mkdir(exist_ok=True)
    kept = {name: text for name, text in os.environ.items() if not name.startswith("XDG_")}
    words = ["-m", "filepact", "--state", str(base / "state"), "mcp", str(base / "root")]
    with subprocess.Popen(
        [sys.executable, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=kept | {"HOME": str(home), "PYTHONPATH": _SOURCE},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        client = _Client(os.dup(process.stdin.fileno()), os.dup(process.stdout.fileno()))
        process.stdin.close()
        process.stdout.close()
        try:
            client.shake_hands()
            yield client, process.pid
        finally:
            client.hang_up()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _memory(pid: int, what: str) -> int:
    """Bytes of a process's memory: ``VmRSS`` now, ``VmHWM`` at its highest."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    raise CannotMakeError("this system does not say how much memory a process uses")


def detonate(bomb: Bomb, base: Path, *, large: bool = False) -> Measured:
    """Put a bomb into a folder of its own and send its calls to a server.

    Raises:
        CannotMakeError: It cannot be made here.
        NoAnswerError: The server hung or ended.
    """
    root = base / "root"
    root.mkdir()
    (root / "README.md").write_text("hello\n")
    try:
        calls = bomb.make(root, large)
    except PermissionError as error:
        raise CannotMakeError("needs more rights") from error
    with _serving(base) as (client, pid):
        # The first call loads what every call needs.
        _answer(client, ("read_file", {"path": "README.md"}), 1)
        _answer(client, ("grep", {"pattern": "hello"}), 2)
        _answer(
            client,
            ("edit_file", {"path": "README.md", "old_string": "hello", "new_string": "hi"}),
            3,
        )
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # the highest mark begins anew
        before = _memory(pid, "VmRSS")
        codes, slowest = [], 0.0
        for number, call in enumerate(calls, 1_000):
            start = time.perf_counter()
            codes.append(_answer(client, call, number))
            slowest = max(slowest, time.perf_counter() - start)
        grown = _memory(pid, "VmHWM") - before
        alive = _answer(client, ("read_file", {"path": "README.md"}), 4) == ""
    return Measured(bomb, tuple(codes), slowest, grown, alive)


def _answer(client: _Client, call: Call, number: int) -> str:
    """Send a call; the code of the answer, empty where it is none of a refusal."""
    if isinstance(call, bytes):
        client.send(call + b"\n")
    else:
        params = {"name": call[0], "arguments": call[1]}
        client.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    return _code(client.wait_for(number))


def _code(message: Mapping[str, Any]) -> str:
    if "error" in message:
        return str(message["error"]["code"])
    result = message["result"]
    if not result.get("isError"):
        return ""
    return str(result["content"][0]["text"]).partition(":")[0]


# -- by hand --------------------------------------------------------------------------------


def _over(one: Measured) -> bool:
    return one.seconds > MOST_SECONDS or one.grown > MOST_GROWN


def table(measured: list[Measured], left_out: list[tuple[str, str]]) -> str:
    """The figures, slowest and largest last."""
    lines = [f"{'special file or bomb':<32}{'calls':>6}{'slowest':>10}{'memory':>12}  answers"]
    for one in measured:
        said = ", ".join(dict.fromkeys(code or "answered" for code in one.codes))
        lines.append(
            f"{one.bomb.name:<32}{len(one.codes):>6}{one.seconds:>8.2f} s"
            f"{one.grown / (1 << 20):>8.1f} MiB  {said}{'' if one.alive else '; THEN DEAD'}"
            f"{'; TOO MUCH' if _over(one) else ''}"
        )
    slowest = max((one.seconds for one in measured), default=0.0)
    largest = max((one.grown for one in measured), default=0) / (1 << 20)
    lines.append(f"{'all':<32}{'':>6}{slowest:>8.2f} s{largest:>8.1f} MiB")
    return "\n".join([*lines, *(f"not made: {name}: {why}" for name, why in left_out)])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Special files and bombs against the real server.")
    parser.add_argument("--large", action="store_true", help="in the large form")
    parser.add_argument("name", nargs="*", help="only those whose name begins so")
    given = parser.parse_args(arguments)
    measured, left_out, bad = [], [], 0
    for bomb in BOMBS:
        if given.name and not bomb.name.startswith(tuple(given.name)):
            continue
        with tempfile.TemporaryDirectory(prefix="special-") as folder:
            try:
                measured.append(detonate(bomb, Path(folder), large=given.large))
            except CannotMakeError as error:
                left_out.append((bomb.name, str(error)))
            except NoAnswerError as error:
                bad += 1
                left_out.append((bomb.name, f"WRONG: {error}"))
            else:
                wrong = bomb.codes and set(measured[-1].codes) - bomb.codes
                bad += bool(wrong) or not measured[-1].alive
                bad += given.large and _over(measured[-1])
    print(table(measured, left_out))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
