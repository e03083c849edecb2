"""A confined server for agents has real language servers, and is as confined as without them."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from filepact.fs import sandbox
from tests.faces.test_sandbox import BROKEN, WAYS_OUT, base, privileges, served

__all__ = ["base"]

pytestmark = pytest.mark.skipif(not sandbox.landlock_abi(), reason="this system has no Landlock")

PROGRAMS = str(Path(sys.executable).parent)
SETTINGS = """
[diagnostics]
mode = "always"
budget = 30
[guard]
landlock = "required"
"""
OTHERS = ("basedpyright", "pyright", "ty")


def descendants(pid: int) -> dict[str, int]:
    """Processes that a process has started, and those that these have, by their names."""
    found: dict[str, int] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found[Path(f"/proc/{child}/comm").read_text().strip()] = child
            found |= descendants(child)
    return found


@pytest.mark.skipif(shutil.which("ruff", path=PROGRAMS) is None, reason="ruff is not installed")
def test_a_linter_works_outside_a_wall_that_keeps_its_server_in(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    config = base / "mine.toml"
    off = "".join(f"[servers.{name}]\nenabled = false\n" for name in OTHERS)
    config.write_text(SETTINGS + off)
    with served(base, (BROKEN, "on"), ("--config", str(config))) as (process, client):
        said = client.text("write_file", path="src/bad.py", content="print(nobody)\n")
        assert "Diagnostics (ruff): 1 new error" in said
        assert "src/bad.py:1:7 error F821" in said
        started = descendants(process.pid)
        assert privileges(process) == {"1"}
        (confined,) = {
            line.split()[1]
            for line in Path(f"/proc/{started['ruff']}/status").read_text().splitlines()
            if line.startswith("NoNewPrivs:")
        }
        assert confined == "0"
        for tool, arguments in WAYS_OUT:
            answer = client.call(tool, **arguments)
            assert "SECRET" not in json.dumps(answer), tool
        said = client.text("write_file", path="src/bad.py", content="print(1)\n")
        assert "1 fixed" in said
    assert {one.read_text() for one in (base / "outside").iterdir()} == {"SECRET\n"}


REVEALING = """\
template <int> struct X;
constexpr unsigned char s[] = {
#embed "../outside/secret.txt"
};
X<s[0]> first;
"""


@pytest.mark.slow(after=1)
@pytest.mark.skipif(shutil.which("clangd", path=PROGRAMS) is None, reason="no clangd")
@pytest.mark.parametrize("trusted", [False, True])
def test_a_compiler_tells_an_agent_of_files_outside_only_where_it_is_trusted(
    base: Path, monkeypatch: pytest.MonkeyPatch, *, trusted: bool
) -> None:
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    config = base / "mine.toml"
    config.write_text(SETTINGS + ("[servers.clangd]\ntrusted = true\n" if trusted else ""))
    (base / "outside" / "secret.txt").write_text("SECRET\n")
    with served(base, (BROKEN, "on"), ("--config", str(config))) as (_process, client):
        said = client.text("write_file", path="a.cpp", content=REVEALING, dry_run=True)
        assert "Diagnostics" in said
        assert (f"X<{ord('S')}>" in said) is trusted
