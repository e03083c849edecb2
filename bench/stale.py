"""Whether an answer straight after a change by another program is about the file as it is now.

Each case changes a file past filepact and asks at once.  Anything that was true before and is not any more
counts as wrong; so does an edit that is made of a text that is gone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    from bench.stdio_client import StdioServer

__all__ = ["Staleness", "look"]


@dataclass(slots=True)
class Staleness:
    """How often it was asked after each kind of change, and how often the answer was wrong."""

    asked: dict[str, int] = field(default_factory=dict)
    wrong: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)

    def count(self, kind: str, *, right: bool, said: str) -> None:
        self.asked[kind] = self.asked.get(kind, 0) + 1
        if not right:
            self.wrong[kind] = self.wrong.get(kind, 0) + 1
            self.examples.append(f"{kind}: {said[:200]}")

    def to_json(self) -> dict[str, Any]:
        return {
            "asked": sum(self.asked.values()),
            "wrong": sum(self.wrong.values()),
            "kinds": {
                kind: {"asked": count, "wrong": self.wrong.get(kind, 0)}
                for kind, count in sorted(self.asked.items())
            },
            "examples": self.examples[:10],
        }


def look(server: StdioServer, tree: Path, rounds: int, dice: random.Random) -> Staleness:
    """Change and ask, so many times; `tree` has to be one of the server's roots."""
    found = Staleness()
    here = tree / "stale"
    here.mkdir(exist_ok=True)
    files = [here / f"file_{n}.py" for n in range(20)]
    for number, path in enumerate(files):
        path.write_text(_text(f"word{number:06}"))
        server.call("read_file", {"path": str(path)})
    steps: list[Callable[[StdioServer, Path, int, Staleness], None]] = [
        _rewritten,
        _rewritten_with_its_times,
        _replaced,
        _moved,
        _made,
        _removed,
        _edited_of_a_gone_text,
        _appended,
    ]
    for number in range(rounds):
        path = dice.choice(files)
        if not path.exists():
            path.write_text(_text(f"again{number:06}"))
        dice.choice(steps)(server, path, number, found)
    return found


def _text(word: str) -> str:
    # Longer than what is always read anew, so that what is kept of a file is asked for.
    return "".join(f"    {word} = {n:05}\n" for n in range(2_500))


def _says(server: StdioServer, path: Path, word: str) -> tuple[bool, str]:
    _, text, failed = server.call("read_file", {"path": str(path), "lines": 5, "offset": 1_000})
    return not failed and text.count(word) == 5, text


def _found(server: StdioServer, path: Path, word: str) -> tuple[bool, str]:
    _, text, failed = server.call("grep", {"pattern": f"{word} = 00007"})
    return not failed and path.name in text, text


def _both(server: StdioServer, path: Path, word: str, kind: str, found: Staleness) -> None:
    right, said = _says(server, path, word)
    found.count(f"read: {kind}", right=right, said=said)
    right, said = _found(server, path, word)
    found.count(f"grep: {kind}", right=right, said=said)


def _rewritten(server: StdioServer, path: Path, number: int, found: Staleness) -> None:
    word = f"plain{number:06}"
    path.write_text(_text(word))
    _both(server, path, word, "rewritten", found)


def _rewritten_with_its_times(
    server: StdioServer, path: Path, number: int, found: Staleness
) -> None:
    word = f"times{number:06}"
    path.write_text(_text(f"first{number:06}"))
    before = path.stat()
    _says(server, path, f"first{number:06}")
    path.write_text(_text(word))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    _both(server, path, word, "same size and times", found)


def _replaced(server: StdioServer, path: Path, number: int, found: Staleness) -> None:
    word = f"other{number:06}"
    beside = path.with_suffix(".new")
    beside.write_text(_text(word))
    beside.replace(path)
    _both(server, path, word, "another file in its place", found)


def _moved(server: StdioServer, path: Path, number: int, found: Staleness) -> None:
    word = f"moved{number:06}"
    path.write_text(_text(word))
    folder = path.parent / f"folder_{number}"
    folder.mkdir()
    gone = folder / path.name
    path.rename(gone)
    _both(server, gone, word, "moved into a new folder", found)
    _, text, failed = server.call("read_file", {"path": str(path)})
    found.count("read: the name that it had", right=failed, said=text)
    gone.rename(path)
    folder.rmdir()


def _made(server: StdioServer, path: Path, number: int, found: Staleness) -> None:
    name = f"made_{number}.py"
    made = path.parent / name
    made.write_text("x = 1\n")
    _, text, _ = server.call("search_files", {"pattern": f"**/made_{number}.py"})
    found.count("find: made", right=name in text, said=text)
    made.unlink()
    _, text, _ = server.call("search_files", {"pattern": f"**/made_{number}.py"})
    found.count("find: removed", right=f"/{name}\n" not in text, said=text)


def _removed(server: StdioServer, path: Path, number: int, found: Staleness) -> None:
    path.unlink()
    _, text, failed = server.call("read_file", {"path": str(path)})
    found.count("read: removed", right=failed, said=text)
    path.write_text(_text(f"again{number:06}"))


def _edited_of_a_gone_text(server: StdioServer, path: Path, number: int, found: Staleness) -> None:
    path.write_text(_text(f"seen0{number:06}"))
    server.call("read_file", {"path": str(path)})
    now = _text(f"gone0{number:06}")
    path.write_text(now)
    old = f"    seen0{number:06} = 00003\n"
    call = {"path": str(path), "old_string": old, "new_string": "    lost = 1\n"}
    _, text, failed = server.call("edit_file", call)
    right = failed and path.read_text() == now
    found.count("edit: of a text that is gone", right=right, said=text)


def _appended(server: StdioServer, path: Path, number: int, found: Staleness) -> None:
    path.write_text(_text(f"whole{number:06}"))
    _says(server, path, f"whole{number:06}")
    with path.open("a") as stream:
        stream.write(f"last{number:06} = 00007\n")
    _, text, failed = server.call("read_file", {"path": str(path), "offset": -1, "lines": 1})
    right = not failed and f"last{number:06}" in text
    found.count("read: appended", right=right, said=text)
