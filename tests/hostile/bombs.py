"""Special files, large trees, patterns, differences and messages that may take for ever, or all memory."""

from __future__ import annotations

import json
import os
import pty
import random
import socket
import stat
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["BOMBS", "Bomb", "Call"]


Call = tuple[str, dict[str, Any]] | bytes
"""A tool and its arguments, or a message in bytes; those have the ids 1,000 and on."""


@dataclass(frozen=True, slots=True)
class Bomb:
    """Something that may take for ever, or all memory.

    Attributes:
        make: Puts it into a root; answers the calls: a tool and its arguments each, or raw bytes
            of a message whose id is 1,000 and more.
        codes: The right codes; empty for an answer.
    """

    name: str
    make: Callable[[Path, bool], list[Call]]
    codes: frozenset[str] = frozenset()


Call = tuple[str, dict[str, Any]] | bytes


# -- special files ----------------------------------------------------------------------------


def _looks(name: str) -> list[Call]:
    """Every way to look into a file, and to change it."""
    return [
        ("read_file", {"path": name}),
        ("read_file", {"path": name, "encoding": "base64"}),
        ("grep", {"pattern": "x", "path": name}),
        ("edit_file", {"path": name, "old_string": "a", "new_string": "b"}),
        ("write_file", {"path": name, "content": "x"}),
    ]


def _fifo(root: Path, _large: bool) -> list[Call]:
    os.mkfifo(root / "it")
    return _looks("it")


def _socket(root: Path, _large: bool) -> list[Call]:
    # The address of a socket is short; the name stays when the socket is closed.
    with socket.socket(socket.AF_UNIX) as one, tempfile.TemporaryDirectory(dir="/tmp") as short:
        one.bind(f"{short}/s")
        os.rename(f"{short}/s", root / "it")
    return _looks("it")


def _device(kind: int, major: int, minor: int) -> Callable[[Path, bool], list[Call]]:
    def make(root: Path, _large: bool) -> list[Call]:
        os.mknod(root / "it", kind | 0o666, os.makedev(major, minor))
        return _looks("it")

    return make


def _terminal(root: Path, _large: bool) -> list[Call]:
    ours, theirs = pty.openpty()
    os.symlink(os.ttyname(theirs), root / "it")
    os.close(ours)
    os.close(theirs)
    return _looks("it")


def _sparse(root: Path, _large: bool) -> list[Call]:
    with (root / "it").open("wb") as handle:
        handle.truncate(1 << 40)
    return [*_looks("it"), ("read_file", {"path": "it", "offset": 1 << 30, "lines": 1})]


# -- large trees ------------------------------------------------------------------------------


def _walks(folder: str) -> list[Call]:
    return [
        ("directory_tree", {"path": folder, "depth": 10}),
        ("search_files", {"pattern": "**/*.none", "directory": folder}),
        ("search_files", {"pattern": "**/*", "directory": folder}),
    ]


def _entries(root: Path, large: bool) -> list[Call]:
    (root / "many").mkdir()
    for number in range(200_000 if large else 5_000):
        os.close(os.open(f"{root}/many/f{number:06}", os.O_CREAT | os.O_WRONLY, 0o644))
    return _walks("many")


def _levels(root: Path, _large: bool) -> list[Call]:
    handle = os.open(root, os.O_RDONLY)
    for _ in range(400):
        os.mkdir("d", dir_fd=handle)
        below = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    deep = "/".join(["d"] * 400)
    return [
        *_walks("."),
        ("read_file", {"path": f"{deep}/x"}),
        ("write_file", {"path": f"{deep}/x", "content": "x"}),
    ]


# -- patterns ---------------------------------------------------------------------------------

_BACKTRACKERS = (
    "(a+)+$",
    "(a|a)*$",
    "(a|aa)+$",
    "(.*a){25}",
    "(.*)*x",
    "(x+x+)+y",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(?:a?){40}a{40}",
    "((a{0,99}){0,99}){0,99}",
    r"(a+)+\1$",
    "(?=(a+)+$)b",
    r"(?<=a)(a*)*b\b",
)


def _backtracking(root: Path, _large: bool) -> list[Call]:
    (root / "a.txt").write_text("a" * 50_000 + "!\n" + "x" * 20_000 + "\n")
    calls: list[Call] = [("grep", {"pattern": one, "path": "a.txt"}) for one in _BACKTRACKERS]
    calls += [
        ("grep", {"pattern": one, "path": "a.txt", "multiline": True}) for one in _BACKTRACKERS[:4]
    ]
    return calls


def _large_patterns(root: Path, _large: bool) -> list[Call]:
    return [
        ("grep", {"pattern": "(" * 5_000 + "a" + ")" * 5_000}),
        ("grep", {"pattern": "a" * 1_000_000}),
        ("grep", {"pattern": "|".join(f"w{number}" for number in range(50_000))}),
        ("grep", {"pattern": r"\pL{1000}{1000}"}),
        ("grep", {"pattern": "[" + "a-z" * 100_000 + "]"}),
    ]


def _globs(root: Path, _large: bool) -> list[Call]:
    (root / ("a" * 200 + ".txt")).write_text("x")
    patterns = (
        "**/" * 40 + "x",
        "*a" * 60 + "b",
        "{a,b}" * 30,
        "{" * 500 + "a" + "}" * 500,
        "{" + ",".join(["a*"] * 20_000) + "}",
        "[" * 5_000,
        "**" * 5_000,
        "?" * 100_000,
        "{1..999999999}",
    )
    calls: list[Call] = [("search_files", {"pattern": one}) for one in patterns]
    calls += [("grep", {"pattern": "x", "glob": one}) for one in patterns[:4]]
    return [*calls, ("directory_tree", {"pattern": "*a" * 60 + "b"})]


# -- differences ------------------------------------------------------------------------------


def _lines(root: Path, _large: bool) -> list[Call]:
    chance = random.Random(1)
    old, new = (
        "".join(f"{chance.choice('abc')}{chance.randrange(100)}\n" for _ in range(64_000))
        for _ in range(2)
    )
    (root / "lines.txt").write_text(old)
    return [
        ("write_file", {"path": "lines.txt", "content": new, "dry_run": True}),
        ("write_file", {"path": "lines.txt", "content": new}),
    ]


def _one_line(root: Path, _large: bool) -> list[Call]:
    chance = random.Random(2)
    old = "".join(chance.choices("abcdefgh ", k=10 << 20))
    (root / "line.txt").write_text(old)
    middle = len(old) // 2
    return [
        ("read_file", {"path": "line.txt"}),
        ("grep", {"pattern": "zzz", "path": "line.txt"}),
        ("edit_file", {"path": "line.txt", "old_string": "zz zz", "new_string": "y"}),
        (
            "edit_file",
            {"path": "line.txt", "old_string": old[middle : middle + 60], "new_string": "y"},
        ),
    ]


def _alike(root: Path, _large: bool) -> list[Call]:
    """Lines that are nearly the same: every one a rival of every other."""
    (root / "alike.txt").write_text("".join(f"    value = {n % 7} + x\n" for n in range(40_000)))
    old = "".join(f"    value = {n % 7} + y\n" for n in range(400))
    hunk = "".join(f"-value = {n % 7} + z\n" for n in range(200))
    return [
        ("edit_file", {"path": "alike.txt", "old_string": old, "new_string": "z\n"}),
        ("edit_file", {"path": "alike.txt", "old_string": "value = 3", "new_string": "z"}),
        (
            "patch_apply",
            {"patch": f"--- a/alike.txt\n+++ b/alike.txt\n@@ -9,200 +9,0 @@\n{hunk}"},
        ),
    ]


# -- messages ---------------------------------------------------------------------------------


def _raw(arguments: str) -> bytes:
    return (
        '{"jsonrpc":"2.0","id":1000,"method":"tools/call","params":'
        f'{{"name":"read_file","arguments":{arguments}}}}}'
    ).encode()


def _nested(opening: str, closing: str) -> Callable[[Path, bool], list[Call]]:
    def make(_root: Path, _large: bool) -> list[Call]:
        middle = "1" if closing else ""
        return [_raw(f'{{"path":{opening * 100_000}{middle}{closing * 100_000}}}')]

    return make


def _digits(_root: Path, _large: bool) -> list[Call]:
    return [_raw('{"path":"README.md","offset":' + "9" * 1_000_000 + "}")]


def _names(_root: Path, _large: bool) -> list[Call]:
    named = {f"x{number}": number for number in range(100_000)}
    return [("read_file", {"path": "README.md", **named})]


def _path(_root: Path, _large: bool) -> list[Call]:
    return [
        ("read_file", {"path": "a/" * (1 << 20)}),
        ("read_file", {"path": "../" * (1 << 20)}),
        ("write_file", {"path": "x" * (5 << 20), "content": "x"}),
        _raw(json.dumps({"path": ["x"] * 300_000})).replace(b'"id":1000', b'"id":1003'),
    ]


def _patches(root: Path, _large: bool) -> list[Call]:
    many = "".join(
        f"--- /dev/null\n+++ b/n{number}\n@@ -0,0 +1 @@\n+x\n" for number in range(1_000)
    )
    return [
        ("patch_apply", {"patch": f"{many}--- a/none\n+++ b/none\n@@ -1 +1 @@\n-x\n+y\n"}),
        ("patch_apply", {"patch": "@@ -1 +1 @@\n" * 200_000}),
        (
            "patch_apply",
            {"patch": "--- a/README.md\n+++ b/README.md\n@@ -1,9999999999 +1,1 @@\n-x\n"},
        ),
        ("patch_apply", {"patch": "*** Begin Patch\n" * 100_000}),
        (
            "edit_file",
            {"path": "README.md", "edits": [{"old_string": "h", "new_string": "hh"}] * 1_000},
        ),
    ]


_REFUSED = frozenset({"PATH_BLOCKED"})
_BLOCK, _CHARACTER = stat.S_IFBLK, stat.S_IFCHR

BOMBS = (
    Bomb("pipe", _fifo, _REFUSED),
    Bomb("socket", _socket, _REFUSED),
    Bomb("endless device", _device(_CHARACTER, 1, 5), _REFUSED),
    Bomb("full device", _device(_CHARACTER, 1, 7), _REFUSED),
    Bomb("terminal", _device(_CHARACTER, 5, 0), _REFUSED),
    Bomb("link to a terminal", _terminal, _REFUSED),
    Bomb("block device", _device(_BLOCK, 7, 0), _REFUSED),
    Bomb("1 TiB of nothing", _sparse),
    Bomb("many entries", _entries),
    Bomb("400 levels", _levels),
    Bomb("backtracking", _backtracking),
    Bomb("large patterns", _large_patterns),
    Bomb("globs and braces", _globs),
    Bomb("64,000 lines changed", _lines),
    Bomb("one line of 10 MiB", _one_line),
    Bomb("lines all alike", _alike),
    Bomb("100,000 open brackets", _nested("[", "]")),
    Bomb("100,000 objects", _nested('{"a":', "}")),
    Bomb("100,000 brackets, never closed", _nested("[", "")),
    Bomb("a million digits", _digits),
    Bomb("100,000 names", _names),
    Bomb("long paths", _path),
    Bomb("patches", _patches),
)
"""Everything that is tried."""
