"""How much of the house a program loads before it answers: people and agents wait for it.

The bounds only go down.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

MOST_FOR_A_SERVER = 117
"""Modules of ours that `filepact mcp` loads before its first answer."""

NOT_ASKED_FOR = ("tools", "semantic", "faces.acp")
"""Folders that a server without language servers needs for calls at most, or not at all."""

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
    """Modules of ours, by the interpreter's own report of what it has imported."""
    names = {line.rpartition("|")[2].strip() for line in report.read_text().splitlines()}
    return {name.removeprefix("filepact.") for name in names if name.startswith("filepact.")}


def test_a_server_answers_before_it_loads_what_nobody_has_asked_for(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    root, report = tmp_path / "root", tmp_path / "imports"
    root.mkdir()
    command = [sys.executable, "-X", "importtime", "-m", "filepact", "mcp", str(root)]
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": START}
    with (
        report.open("wb") as errors,
        subprocess.Popen(
            command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        ) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request).encode() + b"\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["result"]["instructions"]
        modules = loaded(report)
        server.stdin.close()
        assert server.wait(60) == 0
    assert "workspace.workspace" in modules
    assert not {one for one in modules if one.startswith(NOT_ASKED_FOR)}
    assert not {one for one in modules if "solution" in one}
    assert len(modules) <= MOST_FOR_A_SERVER, sorted(modules)


@pytest.mark.parametrize(
    ("words", "most"), [(["--help"], 10), (["undo", "--help"], 10), (["--version"], 10)]
)
def test_what_needs_no_journal_loads_next_to_nothing(
    tmp_path: Path, variables: dict[str, str], words: list[str], most: int
) -> None:
    report = tmp_path / "imports"
    with report.open("wb") as errors:
        command = [sys.executable, "-X", "importtime", "-m", "filepact", *words]
        subprocess.run(command, env=variables, stdout=subprocess.DEVNULL, stderr=errors, check=True)
    modules = loaded(report)
    assert len(modules) <= most, sorted(modules)
