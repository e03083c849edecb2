"""What one warm call costs in functions and system calls, and where they are.

    python bench/call_path.py [--functions]

Three calls are recorded, each in a server of its own over real pipes: ``read_file`` and ``edit_file`` of
``filepact mcp``, and ``fs/write_text_file`` of an agent behind ``filepact acp`` whose editor can
read and write files.  A function counts as often as it was called in every one of several rounds:
what threads do after an answer falls into the next round at times.  Comprehensions and generator expressions are no functions
here: which of them have a frame depends on Python's version.  ``--functions`` lists every function
with its calls.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import socket
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.stdio_client import StdioServer
from tests.faces.acp.proxy.rig import BOTH, Rig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CallPath", "acp_write", "mcp_edit", "mcp_read"]

TRACED = str(Path(__file__).with_name("traced.py"))
_VALUES = "values:"
_ROUNDS = 7
_TEXT = "".join(f"row {number} = old\n" for number in range(200))

_NAMED = {
    "names resolved": (
        "workspace.guard:Guard.find",
        "workspace.guard:Guard.find_again",
        "fs.read_only_root:RootReader.hold_in_one_step",
    ),
    "openat2": ("fs.kernel:openat2",),
    "whole reads": ("fs.read:read_whole",),
    "texts decoded": ("text.codec:decode",),
    "policy decisions": ("domain.policy:Policy.decide",),
    "looks for .editorconfig": ("workspace.documents:EncodingSettings.given",),
}


@dataclass(frozen=True, slots=True)
class CallPath:
    """The record of one call.

    Attributes:
        calls: How often each function of ours was called, as ``module:name``.
        system: How often each function of the system or of its hash library was called.
        changes: How many calls went from one module to another.
    """

    calls: Counter[str]
    system: Counter[str]
    changes: int

    @property
    def total(self) -> int:
        """Calls of functions."""
        return sum(self.calls.values())

    @property
    def modules(self) -> frozenset[str]:
        """The modules that were entered."""
        return frozenset(name.partition(":")[0] for name in self.calls)

    def named(self) -> dict[str, int]:
        """The figures that the way of a call is judged by."""
        figures = {
            "modules": len(self.modules),
            "functions": len(self.calls),
            "calls": self.total,
            "changes of module": self.changes,
        }
        for said, names in _NAMED.items():
            missing = [name for name in names if name not in _known()]
            if missing:
                raise ValueError(f"there is no function {missing[0]} any more")
            figures[said] = sum(self.calls[name] for name in names)
        return figures | {"sha256": self.system["openssl_sha256"], "fsync": self.system["fsync"]}


def _in_every(rounds: list[CallPath]) -> CallPath:
    """What each of the rounds did."""
    return CallPath(
        reduce(and_, (one.calls for one in rounds)),
        reduce(and_, (one.system for one in rounds)),
        min(one.changes for one in rounds),
    )


def _known() -> frozenset[str]:
    """The functions that are counted by name, as far as they still are there."""
    found = set()
    for name in (one for names in _NAMED.values() for one in names):
        module, _, path = name.partition(":")
        thing: Any = importlib.import_module(f"filepact.{module}")
        for part in path.split("."):
            thing = getattr(thing, part, None)
        if thing is not None:
            found.add(name)
    return frozenset(found)


class _Control:
    """The line to a traced process."""

    def __init__(self, door: socket.socket) -> None:
        self._door = door
        self._stream: Any = None

    def record(self, act: Callable[[], object]) -> CallPath:
        """Record what the process does for one act."""
        if self._stream is None:
            line, _ = self._door.accept()
            self._stream = line.makefile("rw", encoding="utf-8")
            line.close()
        self._ask("on")
        act()
        found = self._ask("off")
        # Equality and hashes of values are not ours: of dataclasses they would not be counted either.
        calls = {
            name: some for name, some in found["calls"].items() if not name.startswith(_VALUES)
        }
        return CallPath(Counter(calls), Counter(found["system"]), found["changes"])

    def _ask(self, order: str) -> Any:
        self._stream.write(f"{order}\n")
        self._stream.flush()
        return json.loads(self._stream.readline())

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()


@contextmanager
def _control(folder: Path) -> Iterator[tuple[str, _Control]]:
    address = str(folder / "control")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        door.settimeout(60)
        control = _Control(door)
        try:
            yield address, control
        finally:
            control.close()


@contextmanager
def _served(folder: Path) -> Iterator[tuple[StdioServer, _Control]]:
    """A server of a folder with one file."""
    root = folder / "root"
    root.mkdir()
    file = root / "src" / "rows.txt"
    file.parent.mkdir()
    file.write_text(_TEXT)
    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "settings")}
    with _control(folder) as (address, control):
        arguments = ["mcp", str(root), "--state", str(folder / "state")]
        command = [sys.executable, TRACED, address, *arguments]
        with StdioServer(command, env=environment, cwd=root) as server:
            server.call("read_file", {"path": "src/rows.txt"})
            yield server, control


def mcp_read(folder: Path) -> CallPath:
    """One warm ``read_file`` of a small file, over pipes."""
    with _served(folder) as (server, control):

        def read() -> None:
            _, said, failed = server.call("read_file", {"path": "src/rows.txt"})
            if failed:
                raise RuntimeError(said)

        read()
        return _in_every([control.record(read) for _ in range(1, _ROUNDS)])


def mcp_edit(folder: Path) -> CallPath:
    """One warm ``edit_file`` of one line, over pipes."""
    with _served(folder) as (server, control):

        def edit(row: int) -> None:
            arguments = {
                "path": "src/rows.txt",
                "old_string": f"row {row} = old\n",
                "new_string": f"row {row} = new\n",
            }
            _, said, failed = server.call("edit_file", arguments)
            if failed:
                raise RuntimeError(said)

        edit(0)
        return _in_every([control.record(partial(edit, row)) for row in range(1, _ROUNDS)])


def acp_write(folder: Path) -> CallPath:
    """One warm ``fs/write_text_file`` of a file that the editor shows."""
    with (
        _control(folder) as (address, control),
        Rig(folder, fs=BOTH, program=[TRACED, address]) as rig,
    ):
        rig.start()
        file = rig.work / "src" / "rows.txt"
        file.parent.mkdir()
        file.write_text(_TEXT)

        def write(number: int) -> None:
            rows = _TEXT.splitlines(keepends=True)
            old = [row.replace("old", "new") for row in rows[:number]] + rows[number:]
            new = "".join([*old[:number], rows[number].replace("old", "new"), *old[number + 1 :]])
            asked = rig.begin_write("src/rows.txt", new)
            rig.shows("".join(old))
            # An editor saves what it is told to write.
            file.write_text(rig.takes()["content"])
            answer = rig.agent.answer_to(asked)
            if "result" not in answer:
                raise RuntimeError(str(answer))

        write(0)
        paths = [control.record(partial(write, row)) for row in range(1, _ROUNDS)]
    return _in_every(paths)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--functions", action="store_true", help="list every function")
    wanted = parser.parse_args()
    for said, measure in (
        ("read_file", mcp_read),
        ("edit_file", mcp_edit),
        ("fs/write_text_file", acp_write),
    ):
        with tempfile.TemporaryDirectory() as folder:
            path = measure(Path(folder).resolve())
        print(f"{said}")
        for figure, count in path.named().items():
            print(f"{count:6} {figure}")
        if wanted.functions:
            for name, count in sorted(path.calls.items(), key=lambda one: (-one[1], one[0])):
                print(f"{count:10} {name}")
            for name, count in path.system.most_common():
                print(f"{count:10} {name} (system)")


if __name__ == "__main__":
    main()
