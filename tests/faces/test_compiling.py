"""What a server loads inside its sandbox was compiled before, once."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import filepact
import filepact_diagnostics
from tests.architecture.test_start import START

if TYPE_CHECKING:
    from pathlib import Path

ASK = """
import sys
from filepact_cli.serve import compile_ahead
from filepact_diagnostics.opening import Diagnostics
asked = compile_ahead(Diagnostics.later)
sys.exit(asked.__self__.wait() if hasattr(asked, "__self__") else 77)
"""


@pytest.mark.slow
def test_what_is_loaded_later_is_compiled_once(tmp_path: Path) -> None:
    def ask() -> int:
        command = [sys.executable, "-X", f"pycache_prefix={tmp_path}", "-c", ASK]
        variables = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        return subprocess.run(command, env=variables, check=False).returncode

    assert ask() == 0, "every module of the list can be loaded"
    wanted = {
        filepact: (
            "tools/engine",
            "tools/parameters",
            "workspace/workspace",
            "text/patch_place",
            "text/miss_report",
        ),
        filepact_diagnostics: ("lsp/session", "semantic/service"),
    }
    for package, names in wanted.items():
        kept = tmp_path / package.__path__[0].lstrip("/")
        assert [name for name in names if not list(kept.glob(f"{name}.*.pyc"))] == []
    assert ask() == 77, "there is nothing left to do"
    for _ in range(2):
        compiled = compiled_by_a_server(tmp_path)
    assert not compiled


def compiled_by_a_server(tmp_path: Path) -> list[str]:
    """What a server compiles, and cannot keep, in a session in which files are read and changed."""
    root, said = tmp_path / "root", tmp_path / "said"
    root.mkdir(exist_ok=True)
    (root / "a.txt").write_text("a\n")
    calls = [
        ("read_file", {"path": "a.txt"}),
        ("grep", {"pattern": "a"}),
        ("edit_file", {"path": "a.txt", "edits": [{"old_string": "a", "new_string": "b"}]}),
        ("edit_file", {"path": "a.txt", "edits": [{"old_string": "x", "new_string": "y"}]}),
        ("patch_apply", {"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-b\n+c\n"}),
    ]
    asked = [("initialize", START), ("tools/list", {})]
    asked += [("tools/call", {"name": name, "arguments": given}) for name, given in calls]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(asked)
    ]
    command = [sys.executable, "-v", "-X", f"pycache_prefix={tmp_path}", "-m", "filepact", "mcp"]
    variables = {
        "HOME": str(tmp_path),
        "PATH": "/usr/bin:/bin",
        "FILEPACT_STATE_DIR": str(tmp_path / "state"),
    }
    with said.open("wb") as errors:
        done = subprocess.run(
            [*command, str(root)],
            input="\n".join(lines).encode() + b"\n",
            stdout=subprocess.PIPE,
            stderr=errors,
            env=variables,
            check=True,
        )
    assert len(done.stdout.splitlines()) == len(asked)
    return [line for line in said.read_text().splitlines() if "could not create" in line]
