"""How much of the house a program loads before it answers: people and agents wait for it.

The bounds only go down.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from filepact_diagnostics.lsp.forkserver import _program

if TYPE_CHECKING:
    from pathlib import Path

MOST_FOR_A_SERVER = 87
"""Modules of ours that `filepact mcp` loads before its first answer."""

MORE = 20 if sys.version_info >= (3, 14) else 0
"""From 3.14 on Python's own modules are cut smaller."""

MOST_IN_ALL = 196 + MORE
"""Modules of anybody's that it loads before its first answer, Python's own among them."""

MOST_AT_REST = 148
"""Modules of ours that it holds when a file was read; each takes 60 kB, of which no server shares anything with another."""

MOST_IN_ALL_AT_REST = 264 + MORE
"""Those of anybody, Python's own among them."""

NEVER_FOR_READING = {"pydantic", "mcp", "dataclasses", "inspect", "asyncio", "importlib.metadata"}
"""What takes its time to load, and is needed neither for the first answer nor to read a file."""

if sys.version_info >= (3, 14):
    NEVER_FOR_READING -= {"dataclasses", "inspect"}  # argparse itself wants them, for its colours

NEVER_AT_REST = NEVER_FOR_READING | {
    *("logging", "traceback", "difflib", "argparse", "gettext", "locale", "pathlib", "subprocess"),
    "socket",
}
"""What a server that was only read from does not hold."""

NEVER_AT_FIRST = NEVER_AT_REST | {"pydantic_core", "backports", "hashlib", "copy", "glob"}

NOT_ASKED_FOR = ("tools", "workspace.workspace", "store.known_texts")
"""Places that a server without language servers needs for calls at most."""

OURS = ("filepact.", "filepact_cli", "filepact_index", "filepact_mcp", "filepact_wire")
"""What the modules begin with of the core, of the command line, of the search index, and of the protocol and its messages."""

WINGS_ASKED_FOR = {"filepact_cli", "filepact_diagnostics", "filepact_mcp", "filepact_wire"}
"""Those of which any such server loads something: what starts it, what speaks to its client, with the messages below it, and what says that there are no language servers."""

START = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "somebody", "version": "1"},
}


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """An environment in which no language server is to be started."""
    settings = tmp_path / "filepact.toml"
    settings.write_text('diagnostics = "off"\n')
    own = {"FILEPACT_CONFIG": str(settings), "FILEPACT_STATE_DIR": str(tmp_path / "state")}
    return {**os.environ, **own}


def loaded(report: Path) -> set[str]:
    """Modules of ours and of wings, by the interpreter's own report of what it has imported."""
    names = {line.rpartition("|")[2].strip() for line in report.read_text().splitlines()}
    ours = ("filepact.", "filepact_")
    return {name.removeprefix("filepact.") for name in names if name.startswith(ours)}


PROBE = """
import json, sys
from filepact.faces.cli import run
from filepact_mcp import server
load = server._load
def told(*tools):
    loaded = sorted({*sys.modules} - {"sitecustomize", "usercustomize", "apport_python_hook"})
    print(json.dumps(loaded), file=sys.stderr, flush=True)
    if tools:
        load(*tools)
server._load = told
run(sys.argv[1:])
told()
"""
"""Runs the command, and tells what is loaded at the first answer, and at the end, but for what a machine adds to every Python."""


def test_a_server_answers_before_it_loads_what_nobody_has_asked_for(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("a\n")
    read = {"name": "read_file", "arguments": {"path": "a.txt"}}
    first: list[str] = []
    asked = [("initialize", START), ("tools/list", {}), ("tools/call", read)]
    command = [sys.executable, "-c", PROBE, "mcp", str(root)]
    with subprocess.Popen(
        command,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        for number, (method, params) in enumerate(asked):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(request).encode() + b"\n")
            server.stdin.flush()
            assert "result" in json.loads(server.stdout.readline())
            if method == "initialize":
                first = json.loads(server.stderr.readline())
        server.stdin.close()
        last = json.loads(server.stderr.read())
        assert server.wait(60) == 0
    modules = {name.removeprefix("filepact.") for name in first if name.startswith(OURS)}
    wings = {name.partition(".")[0] for name in first if name.startswith("filepact_")}
    assert wings == WINGS_ASKED_FOR
    assert "opening" in modules
    assert not {one for one in modules if one.startswith(NOT_ASKED_FOR)}
    assert not {one for one in modules if "solution" in one}
    assert not NEVER_AT_FIRST.intersection(first)
    assert len(modules) <= MOST_FOR_A_SERVER, sorted(modules)
    assert len(first) <= MOST_IN_ALL, sorted(first)
    assert not NEVER_AT_REST.intersection(last)
    assert len([one for one in last if one.startswith(OURS)]) <= MOST_AT_REST, last
    assert len(last) <= MOST_IN_ALL_AT_REST, last


MOST_FOR_A_COMMAND = {
    "log": 120,
    "status": 119,
    "review --list": 123,
    "undo --since 1d --all --unattended": 125,
    "setup claude": 127,
}
"""Modules of ours that a command with the journal, or the settings of agents, loads in all."""

MOST_BESIDE = 140 + MORE
"""Modules of anybody else's that each of them loads, Python's own among them."""


@pytest.mark.parametrize("command", MOST_FOR_A_COMMAND)
def test_a_command_loads_what_it_needs_and_no_more(
    tmp_path: Path, variables: dict[str, str], command: str
) -> None:
    root, report = tmp_path / "root", tmp_path / "imports"
    root.mkdir()
    program = [sys.executable, "-I", "-X", "importtime", "-m", "filepact"]
    with report.open("ab") as errors:
        made = ""
        for words in (["write", "a.txt", "--content", "a"], command.split()):
            errors.truncate(0)
            done = subprocess.run(
                [*program, *(made if word == "ID" else word for word in words)],
                cwd=root,
                env=variables,
                stdout=subprocess.PIPE,
                stderr=errors,
                check=False,
                text=True,
            )
            assert done.returncode in (0, 3)
            made = "".join(re.findall(r"^Operation (\w+);", done.stdout, re.MULTILINE))
    modules = loaded(report)
    lines = report.read_text().splitlines()
    everything = {line.rpartition("|")[2].strip() for line in lines if "|" in line}
    assert "app" in modules
    assert not NEVER_FOR_READING.intersection(everything)
    assert len(modules) <= MOST_FOR_A_COMMAND[command], sorted(modules)
    assert len(everything) - len(modules) <= MOST_BESIDE, sorted(everything)


@pytest.mark.parametrize(
    ("words", "most"), [(["--help"], 10), (["undo", "--help"], 10), (["--version"], 10)]
)
def test_what_needs_no_journal_loads_next_to_nothing(
    tmp_path: Path, variables: dict[str, str], words: list[str], most: int
) -> None:
    report = tmp_path / "imports"
    with report.open("wb") as errors:
        command = [sys.executable, "-I", "-X", "importtime", "-m", "filepact", *words]
        subprocess.run(command, env=variables, stdout=subprocess.DEVNULL, stderr=errors, check=True)
    # Help names what wings add as well, and loads of each what says that.
    modules = {one for one in loaded(report) if not one.startswith("filepact_")}
    assert len(modules) <= most, sorted(modules)


MOST_FOR_A_FORK_SERVER = 30
"""Modules that it loads, Python's own start among them; most of its memory is Python's."""


def test_a_fork_server_rests_with_next_to_nothing_loaded(tmp_path: Path) -> None:
    report = tmp_path / "imports"
    python, *words = _program("serve")
    ours, theirs = socket.socketpair()
    with ours, report.open("wb") as errors:
        with theirs:
            words = ["-X", "importtime", *words, str(theirs.fileno())]
            resting = subprocess.Popen([python, *words], stderr=errors, pass_fds=[theirs.fileno()])
        ours.sendall(b"\0\0\0\2{}")
    assert resting.wait(60) == 0
    lines = report.read_text().splitlines()
    modules = {line.rpartition("|")[2].strip() for line in lines if "|" in line}
    assert "supervisor" in modules
    assert len(modules) <= MOST_FOR_A_FORK_SERVER, sorted(modules)
