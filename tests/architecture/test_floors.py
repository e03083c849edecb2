"""How the house is built: floors, size, no event loop in the core."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

from tests.architecture.project import MODULES, PACKAGE, ROOT, dotted, syntax

LONGEST = 600
SYNCHRONOUS = ("errors", "text", "domain", "fs", "store", "workspace")


def test_imports_only_go_down() -> None:
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    result = subprocess.run(
        [sys.executable, "-c", command, "--no-logo", "--no-cache"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_module_fits_in_a_head() -> None:
    lines = {dotted(one): len(one.read_text(encoding="utf-8").splitlines()) for one in MODULES}
    assert {name: count for name, count in lines.items() if count > LONGEST} == {}


def test_the_core_never_waits_in_an_event_loop() -> None:
    """What does begins at the tools and the faces."""
    kinds = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
    waits = [
        f"{dotted(path)}, line {node.lineno}"
        for path in MODULES
        if dotted(path).startswith(SYNCHRONOUS)
        for node in ast.walk(syntax(path))
        if isinstance(node, kinds)
    ]
    assert waits == []


def test_no_module_is_named_after_nothing() -> None:
    nothing = {"utils", "util", "helpers", "helper", "manager", "base", "common"}
    assert nothing.isdisjoint(path.stem for path in MODULES)


def test_every_module_says_what_it_is() -> None:
    silent = [
        dotted(path)
        for path in MODULES
        if path.stat().st_size and ast.get_docstring(syntax(path)) is None
    ]
    assert not silent


def test_values_are_ours() -> None:
    spelt = [
        dotted(path)
        for path in MODULES
        if "dataclasses" in {getattr(node, "module", "") for node in ast.walk(syntax(path))}
    ]
    assert spelt == ["values"], "made at import, each takes half a millisecond of every start"
