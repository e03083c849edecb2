"""A path for messages is never read again as if somebody had sent it.

`WorkspacePath.absolute` is for people, for URIs and for other programs.  Who looks for a file hands
over the `WorkspacePath` or the place that the guard found: spelt out and read once more, it might be
another file's (a root inside a root), or none (a name that is no text, or too long).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from tests.architecture.project import MODULES, dotted, syntax

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Folder or module, and for what it may be spelt out.
ALLOWED = {
    "domain.permission_log": "what a record of an agent's question shows",
    "filepact_acp": "messages to editors and agents",
    "filepact_diagnostics.command": "what language servers are asked about",
    "filepact_diagnostics.semantic": "URIs of language servers",
    "filepact_diagnostics.solution_engine": "what language servers are asked about",
    "workspace.permission_log": "what a record of an agent's question shows",
    "workspace.buffers": "one key for a file in a root inside a root",
    "workspace.documents": "what sections of .editorconfig are compared with",
    "workspace.reader": "what a record of an agent's question shows",
}

# Methods that take a name as it was sent: of the guard, readers, drafts, editors, and of a client.
TAKES_A_NAME = frozenset(
    {
        "ask", "buffer", "close", "doubt", "document", "excerpt", "fetch", "find", "find_file",
        "glance", "is_doubtful", "open", "open_all", "open_existing", "piece", "picture", "saved",
        "shown", "stored", "to_save", "window",
    }
)  # fmt: skip


def spelt_out(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Where `.absolute` is read; `pathlib` has a method of that name, which is called."""
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "absolute" and node not in called:
            yield node


def read_again(tree: ast.AST) -> Iterator[int]:
    """Lines in which something spelt out, or a name for it, is handed to who takes names."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        names = set(_names_for_it(function))
        for call in ast.walk(function):
            if not isinstance(call, ast.Call):
                continue
            # Either called, or handed over with its arguments to a thread that calls it.
            called = [call.func, *call.args[:1]]
            if not any(
                isinstance(one, ast.Attribute) and one.attr in TAKES_A_NAME for one in called
            ):
                continue
            for part in (part for given in call.args for part in ast.walk(given)):
                if (isinstance(part, ast.Attribute) and part.attr == "absolute") or (
                    isinstance(part, ast.Name) and part.id in names
                ):
                    yield call.lineno


def _names_for_it(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign) or not any(spelt_out(node.value)):
            continue
        for target in node.targets:
            pairs = (
                zip(target.elts, node.value.elts, strict=False)
                if (isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple))
                else [(target, node.value)]
            )
            for name, value in pairs:
                if isinstance(name, ast.Name) and any(spelt_out(value)):
                    yield name.id


@pytest.fixture(scope="module")
def spelling() -> tuple[Path, ...]:
    """The modules in which a path is spelt out."""
    some = (path for path in MODULES if b".absolute" in path.read_bytes())
    return tuple(path for path in some if any(spelt_out(syntax(path))))


def test_a_path_is_spelt_out_for_messages_only(spelling: tuple[Path, ...]) -> None:
    assert [
        name
        for name in map(dotted, spelling)
        if not any(f"{name}.".startswith(f"{allowed}.") for allowed in ALLOWED)
    ] == []


def test_what_is_spelt_out_is_not_read_again(spelling: tuple[Path, ...]) -> None:
    found = {dotted(path): sorted(set(read_again(syntax(path)))) for path in spelling}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "code",
    [
        "    guard.find(path.absolute, 'list')",
        "    name = location.path.absolute\n    editors.close(name, client='x')",
        "    path, name = location.path, location.path.absolute\n    reader.document(name)",
        "    name = location.path.absolute\n    asyncio.to_thread(shown.to_save, [name])",
    ],
)
def test_one_that_is_read_again_is_found(code: str) -> None:
    assert list(read_again(ast.parse(f"def f():\n{code}")))


def test_every_allowance_is_in_use(spelling: tuple[Path, ...]) -> None:
    used = [f"{dotted(path)}." for path in spelling]
    assert [
        allowed for allowed in ALLOWED if not any(name.startswith(f"{allowed}.") for name in used)
    ] == []
