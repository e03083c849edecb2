"""No known server runs a program that lies in the project's folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from filepact.lsp.builtin import builtin_servers
from filepact.lsp.pool import Pool
from tests.lsp.fakes import fake
from tests.lsp.real_servers import SECONDS, locate, server

PROGRAMS = ("python", "python3", "node", "ruff", "ty", "clang", "clang++", "gcc", "cc", "go")
TEXTS = {
    "*.py": "import installed_here\n\ninstalled_here.f('a')\n",
    "*.{c,h}": "int main(void) { return x; }\n",
}


@pytest.mark.parametrize("name", ["basedpyright", "ty", "ruff", "clangd"])
def test_a_known_server_runs_nothing_that_lies_in_the_project(tmp_path: Path, name: str) -> None:
    known, root, ran = server(name), tmp_path / "root", tmp_path / "ran"
    for folder in (root / ".venv" / "bin", root / "node_modules" / ".bin", root / "bin"):
        folder.mkdir(parents=True)
        for program in PROGRAMS:
            trap = folder / program
            trap.write_text(f'#!/bin/sh\necho "$0" >> {ran}\nexec {sys.executable} "$@"\n')
            trap.chmod(0o755)
    (root / ".venv" / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\n")
    (root / "pyproject.toml").write_text(
        '[tool.basedpyright]\nvenvPath = "."\nvenv = ".venv"\n'
        '[tool.ty.environment]\npython = ".venv"\n'
    )
    (root / "compile_commands.json").write_text(
        f'[{{"directory": "{root}", "file": "a.c", "command": "{root}/bin/gcc -c a.c"}}]'
    )
    glob = known.files[0][0]
    path = root / ("a.py" if glob == "*.py" else "a.c")
    path.write_text(TEXTS[glob])
    seen = {"PATH": os.environ["PATH"], "VIRTUAL_ENV": str(root / ".venv")}
    pool = Pool([known], seen, locate)
    try:
        (report,) = pool.report(str(root), {str(path): TEXTS[glob]}, SECONDS)
    finally:
        pool.close()
    assert report.fresh
    assert not ran.exists(), ran.read_text()


def test_packages_of_a_project_are_seen_though_its_python_is_not_run(tmp_path: Path) -> None:
    known = server("basedpyright")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    package = tmp_path / ".venv" / "lib" / version / "site-packages" / "installed_here"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def f(x: int) -> int:\n    return x\n")
    path = tmp_path / "a.py"
    path.write_text(TEXTS["*.py"])
    pool = Pool([known], {"PATH": os.environ["PATH"]}, locate)
    try:
        (report,) = pool.report(str(tmp_path), {str(path): TEXTS["*.py"]}, SECONDS)
    finally:
        pool.close()
    codes = [one.code for one in report.diagnostics]
    assert "reportArgumentType" in codes
    assert "reportMissingImports" not in codes


def test_places_of_programs_are_filled_in_and_nothing_stands_for_one_that_is_missing() -> None:
    inner = {"a": ["{program:python3}", 1, {"b": "x{program:node}"}], "c": "{python3}", "d": None}
    found = fake(settings=inner, options={"p": "{program:python3}"}).placed(
        {"python3": "/usr/bin/python3"}.get
    )
    filled = {"a": ["/usr/bin/python3", 1, {"b": f"x{os.devnull}"}], "c": "{python3}", "d": None}
    assert found.settings == filled
    assert found.options == {"p": "/usr/bin/python3"}
    assert found.language("a.x") == "x"
    assert fake().placed({}.get) == fake()


def test_every_known_server_can_be_placed() -> None:
    for known in builtin_servers():
        assert "{program:" not in str(known.placed(lambda name: f"/bin/{name}"))
