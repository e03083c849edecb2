"""What a server loads inside its sandbox was compiled before, once."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import filepact

if TYPE_CHECKING:
    from pathlib import Path

ASK = """
import sys
from filepact.faces.cli.programs import compile_ahead
asked = compile_ahead()
sys.exit(asked.__self__.wait() if hasattr(asked, "__self__") else 77)
"""


@pytest.mark.slow
def test_what_is_loaded_later_is_compiled_once(tmp_path: Path) -> None:
    def ask() -> int:
        command = [sys.executable, "-X", f"pycache_prefix={tmp_path}", "-c", ASK]
        variables = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        return subprocess.run(command, env=variables, check=False).returncode

    assert ask() == 0, "every module of the list can be loaded"
    kept = tmp_path / filepact.__path__[0].lstrip("/")
    wanted = ("tools/engine", "tools/parameters", "lsp/session", "semantic/service")
    for name in (*wanted, "workspace/workspace", "text/miss_report", "text/patch_place"):
        assert list(kept.glob(f"{name}.*.pyc")), name
    assert ask() == 77, "there is nothing left to do"
