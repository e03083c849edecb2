"""No module of the folder that a process stands in is taken for ours: `-P` or `-I` comes first.

Without one of them Python looks for modules in the present folder, which may be a project that
agents change, before it looks where filepact is installed.
"""

from __future__ import annotations

import ast

import pytest

from tests.architecture.project import HOUSE, ROOT, syntax

ALL = (*HOUSE, *sorted(ROOT.glob("packages/*/src/**/*.py")))
CLOSED = {"-I", "-P"}


def unsafe(tree: ast.AST) -> list[int]:
    """Lines with a command of the own interpreter whose first option is neither of the two."""
    found: list[int] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple):
            words = node.elts
            at = [number for number, one in enumerate(words) if _is_own(one)]
            found += [node.elts[one].lineno for one in at if not _closed(words[one + 1 : one + 2])]
        elif isinstance(node, ast.Call | ast.Dict):
            named = _named(node)
            if _is_own(named.get("command")):
                arguments = named.get("args")
                first = arguments.elts[:1] if isinstance(arguments, ast.List | ast.Tuple) else []
                if not _closed(first):
                    found.append(node.lineno)
        elif isinstance(node, ast.JoinedStr):
            found += [
                node.lineno
                for one, after in zip(node.values, [*node.values[1:], None], strict=True)
                if isinstance(one, ast.FormattedValue)
                and _is_own(one.value)
                and isinstance(after, ast.Constant)
                and str(after.value).split()[:1] not in [[word] for word in CLOSED]
                and str(after.value).lstrip().startswith("-")
            ]
    return found


def _named(node: ast.Call | ast.Dict) -> dict[str, ast.expr]:
    if isinstance(node, ast.Call):
        return {one.arg: one.value for one in node.keywords if one.arg}
    return {
        key.value: value
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def _is_own(node: ast.AST | None) -> bool:
    return node is not None and ast.unparse(node) == "sys.executable"


def _closed(words: list[ast.expr]) -> bool:
    return any(isinstance(one, ast.Constant) and one.value in CLOSED for one in words)


def test_python_is_started_without_the_present_folder() -> None:
    found = {str(path.relative_to(ROOT)): unsafe(syntax(path)) for path in ALL}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('run([sys.executable, "-m", "x"])', 1),
        ('run([sys.executable, "-P", "-m", "x"])', 0),
        ("run((sys.executable, script))", 1),
        ('start(command=sys.executable, args=["-m", "x"])', 1),
        ('start(command=sys.executable, args=["-I", "x"])', 0),
        ('entry = {"command": sys.executable, "args": words}', 1),
        ('entry = {"command": sys.executable, "args": ["-P", "x"]}', 0),
        ('f"Run: {sys.executable} -m x"', 1),
        ('f"Run: {sys.executable} -P -m x"', 0),
        ('f"{sys.executable} is too old"', 0),
        ("Path(sys.executable)", 0),
    ],
)
def test_a_start_that_looks_into_the_present_folder_is_found(text: str, count: int) -> None:
    assert len(unsafe(ast.parse(text))) == count
