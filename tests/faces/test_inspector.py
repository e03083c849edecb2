"""The MCP Inspector's command line finds nothing to complain about, in both eras."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gateway_running import RunningGateway

if TYPE_CHECKING:
    from pathlib import Path

    from tests.node_programs import Programs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ERAS = ["legacy", "modern"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    return folder


def inspect(
    programs: Programs, root: Path, era: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    config = root.parent / "config.json"
    server = {
        "command": sys.executable,
        "args": ["-m", "filepact", "mcp", str(root), "--state", str(root.parent / "state")],
        "env": {"PYTHONPATH": os.pathsep.join(sys.path)},
    }
    config.write_text(json.dumps({"mcpServers": {"filepact": server}}))
    home = root.parent / "home"
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [
            *programs.command("@modelcontextprotocol/inspector", "clients/launcher/build/index.js"),
            *("--cli", "--config", str(config), "--server", "filepact", "--protocol-era", era),
            *arguments,
        ],
        env=programs.environment(home) | {"MCP_INSPECTOR_SECRET_STORE": "memory"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=270,
    )


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("era", ERAS)
def test_it_lists_the_tools(programs: Programs, root: Path, era: str) -> None:
    done = inspect(programs, root, era, "--method", "tools/list", "--strict")
    assert done.returncode == 0, done.stderr
    names = [tool["name"] for tool in json.loads(done.stdout)["tools"]]
    assert names == [
        "read_file",
        "write_file",
        "edit_file",
        "search_files",
        "grep",
        "directory_tree",
        "patch_apply",
        "manage_files",
        "history",
    ]


CALLS = [
    ("read_file", {"path": "a.txt"}, 0),
    ("write_file", {"path": "b.txt", "content": "b\n"}, 0),
    ("edit_file", {"path": "a.txt", "old_string": "two", "new_string": "2"}, 0),
    ("search_files", {"pattern": "*.txt"}, 0),
    ("grep", {"pattern": "one"}, 0),
    ("directory_tree", {}, 0),
    ("patch_apply", {"path": "a.txt", "patch": "@@ -1,2 +1,2 @@\n-one\n+1\n two\n"}, 0),
    ("read_file", {"path": "missing"}, 5),
]


@pytest.mark.parametrize("era", ERAS)
def test_it_calls_every_tool_and_sees_a_failure_as_one(
    programs: Programs, root: Path, era: str
) -> None:
    # Each starts both programs: how it speaks to the tools of an older server is the same for all of them.
    for tool, arguments, code in CALLS if era == ERAS[-1] else (*CALLS[1:3], CALLS[-1]):
        (root / "a.txt").write_text("one\ntwo\n")
        done = inspect(
            programs,
            root,
            era,
            *("--method", "tools/call", "--tool-name", tool),
            *("--tool-args-json", json.dumps(arguments)),
        )
        assert done.returncode == code, (tool, done.stdout, done.stderr)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("era", ERAS)
def test_it_works_through_a_gateway(
    programs: Programs, root: Path, tmp_path: Path, era: str
) -> None:
    running = RunningGateway(tmp_path, [str(root)])
    try:
        config = tmp_path / "config.json"
        server = {"type": "streamable-http", "url": f"http://{running.address}/mcp"}
        config.write_text(json.dumps({"mcpServers": {"filepact": server}}))
        arguments = {"path": "a.txt", "old_string": "two", "new_string": "2"}
        done = subprocess.run(
            [
                *programs.command(
                    "@modelcontextprotocol/inspector", "clients/launcher/build/index.js"
                ),
                *("--cli", "--config", str(config), "--server", "filepact", "--protocol-era", era),
                *("--method", "tools/call", "--tool-name", "edit_file"),
                *("--tool-args-json", json.dumps(arguments)),
            ],
            env=programs.environment(tmp_path / "home") | {"MCP_INSPECTOR_SECRET_STORE": "memory"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert (root / "a.txt").read_text() == "one\n2\n"
    finally:
        assert running.end() == 0
