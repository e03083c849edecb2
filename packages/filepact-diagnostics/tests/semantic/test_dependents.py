"""What a change breaks in files that do not name the changed one is found, or left open."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from filepact.domain.document import WorkspacePath
from filepact_diagnostics.semantic.changed_names import changed_names, changed_places, flowing_names
from filepact_diagnostics.semantic.deadline import CallDeadline
from filepact_diagnostics.semantic.updates import TextChange
from tests.servers.real_servers import SECONDS
from tests.servers.scene import AGENT, Scene, codes

if TYPE_CHECKING:
    from pathlib import Path

FILLERS = 200  # more than are ever asked about at once
"""So many files more that not all can be asked about."""

_PYTHON = {
    "pyproject.toml": '[project]\nname = "p"\nversion = "1"\n',
    "shop/__init__.py": "from shop.impl import Order as Order, price as price\n",
    "shop/impl.py": (
        "from dataclasses import dataclass\n\n\n@dataclass\nclass Order:\n    number: int\n"
        "    total: int\n\n\ndef price(order: Order) -> int:\n    return order.total\n"
    ),
    "app/report.py": (
        "from shop import Order\n\n\ndef show(order: Order) -> str:\n    return str(order.total)\n"
    ),
    "app/till.py": "from shop import Order, price\n\npaid: int = price(Order(1, 2))\n",
    "base.py": "def start():\n    return 1\n",
    "mid.py": "from base import start\n\n\ndef between():\n    return start()\n",
    "chain.py": "from mid import between\n\nend: int = between()\n",
    "waits.py": "from comes import helper\n\nhelper(1)\n",
}
_SCRIPT = {
    "tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true}}\n',
    "lib/index.ts": 'export * from "./impl";\n',
    "lib/impl.ts": (
        "export interface Order {\n  number: number;\n  total: number;\n}\n\n"
        "export function price(order: Order) {\n  return order.total;\n}\n"
    ),
    "app/report.ts": (
        'import { Order } from "../lib";\n\n'
        "export const show = (order: Order): string => order.total.toFixed();\n"
    ),
    "app/till.ts": (
        'import { price } from "../lib";\n\n'
        "export const paid = () => price({ number: 1, total: 2 });\n"
    ),
    "app/chain.ts": 'import { paid } from "./till";\n\nexport const end: number = paid();\n',
}
_CASES = {
    "a field that a package hands on": (
        *("ty", "shop/impl.py", "total", "sum"),
        {"report.py": 1},
    ),
    "a parameter that a package hands on": (
        *("ty", "shop/impl.py", "order: Order)", "order: Order, rate: int)"),
        {"till.py": 1},
    ),
    "a type that is inferred from file to file": (
        *("basedpyright", "base.py", "return 1", 'return "1"'),
        {"chain.py": 1},
    ),
    "a field behind a barrel": (
        *("typescript", "lib/impl.ts", "total", "sum"),
        {"report.ts": 1, "till.ts": 1},
    ),
    "a function behind a barrel": (
        *("typescript", "lib/impl.ts", "price", "cost"),
        {"till.ts": 1},
    ),
    "a type that is inferred behind a barrel": (
        *("typescript", "lib/impl.ts", "return order.total;", "return String(order.total);"),
        {"chain.ts": 1},
    ),
}


def _scene(folder: Path, server: str, *, large: bool) -> Scene:
    files = dict(_SCRIPT if server == "typescript" else _PYTHON)
    for number in range(FILLERS if large else 0):
        if server != "typescript":
            files[f"filler/f{number}.py"] = (
                f"def other{number}(total: int) -> int:\n    return total\n"
            )
        else:
            files[f"filler/f{number}.ts"] = f"export const other{number} = (n: number) => n;\n"
    return Scene(folder, [server], files)


@pytest.mark.parametrize("large", [False, True], ids=["all files asked", "some files asked"])
@pytest.mark.parametrize("case", _CASES)
def test_files_that_never_name_the_changed_one_are_asked_about(
    case: str, large: bool, tmp_path: Path
) -> None:
    server, name, old, new, broken = _CASES[case]
    scene = _scene(tmp_path, server, large=large)
    try:
        text = scene.get(name).replace(old, new)
        assert text != scene.get(name)
        if large:
            scene.index_words()
        foreseen, done = scene.foresee({name: text}), scene.write({name: text})
    finally:
        scene.close()
    for update in (foreseen, done):
        assert update.findings is not None
        assert update.findings.complete is not large
        names = [file for file, _ in codes(update)]
        assert {file: names.count(file) for file in broken} == broken


_STEPS = 6
"""So many files hand a type on, each under a name of its own: more than are guessed by words."""


def _long_chain(server: str) -> tuple[dict[str, str], str, str]:
    """Files, that of the end of a chain, and that of its beginning."""
    if server == "typescript":
        files = {
            "lib/base.ts": "export function step0() {\n  return 1;\n}\n",
            "lib/index.ts": 'export * from "./base";\n',
            "tsconfig.json": _SCRIPT["tsconfig.json"],
        }
        for number in range(1, _STEPS):
            before = "../lib" if number == 1 else f"./c{number - 1}"
            files[f"app/c{number}.ts"] = (
                f'import {{ step{number - 1} }} from "{before}";\n\n'
                f"export const step{number} = () => step{number - 1}();\n"
            )
        files["app/end.ts"] = (
            f'import {{ step{_STEPS - 1} }} from "./c{_STEPS - 1}";\n\n'
            f"export const end: number = step{_STEPS - 1}();\n"
        )
        files |= {f"filler/f{n}.ts": f"export const other{n} = 1;\n" for n in range(FILLERS)}
        return files, "app/end.ts", "lib/base.ts"
    files = {
        "pyproject.toml": _PYTHON["pyproject.toml"],
        "lib/base.py": "def step0():\n    return 1\n",
        "lib/__init__.py": "from lib.base import step0 as step0\n",
    }
    for number in range(1, _STEPS):
        before = "lib" if number == 1 else f"c{number - 1}"
        files[f"c{number}.py"] = (
            f"from {before} import step{number - 1}\n\n\n"
            f"def step{number}():\n    return step{number - 1}()\n"
        )
    files["end.py"] = (
        f"from c{_STEPS - 1} import step{_STEPS - 1}\n\nend: int = step{_STEPS - 1}()\n"
    )
    files |= {f"filler/f{n}.py": f"def other{n}():\n    return {n}\n" for n in range(FILLERS)}
    return files, "end.py", "lib/base.py"


@pytest.mark.parametrize("server", ["typescript", "basedpyright"])
def test_what_words_do_not_tell_the_server_does(server: str, tmp_path: Path) -> None:
    files, end, name = _long_chain(server)
    scene = Scene(tmp_path, [server], files)
    try:
        scene.semantics.look([name], session=AGENT, seconds=SECONDS)
        scene.index_words()
        text = scene.get(name).replace("return 1", 'return "1"')
        index = scene.semantics._servers[str(scene.root)].index
        assert end not in index.candidates(changed_names(scene.get(name), text), [name])
        foreseen, done = scene.foresee({name: text}), scene.write({name: text})
    finally:
        scene.close()
    for update in (foreseen, done):
        assert update.findings is not None
        assert not update.findings.complete
        assert [file for file, _ in codes(update)] == [end.rpartition("/")[2]]


_C = {
    "compile_flags.txt": "-Wall\n",
    "one.h": "int size(int n);\n",
    "two.h": '#define ONE "one.h"\n#include ONE\n',
    "far.c": '#include "two.h"\nint far(void) { return size(1); }\n',
    "one.c": '#include "one.h"\nint size(int n) { return n; }\n',
    "near.c": "int size(const char *);\nint near(void) { return size(0); }\n",
}


@pytest.mark.parametrize(
    ("name", "old", "new", "wrong", "asked"),
    [
        ("one.h", "int n", "int n, int m", {"far.c", "one.c"}, ["far.c", "one.c", "two.h"]),
        ("one.c", "return n", "return size", set(), []),
        ("alone.h", "int", "long", set(), ["near.c"]),
    ],
)
def test_of_included_texts_those_that_include_them_are_asked_about(
    tmp_path: Path, name: str, old: str, new: str, wrong: set[str], asked: list[str]
) -> None:
    files = {**_C, "alone.h": "int size(int near);\n"}
    files |= {f"filler/f{n}.c": f"int other{n}(int size);\n" for n in range(FILLERS)}
    scene = Scene(tmp_path, ["clangd"], files)
    try:
        scene.index_words()
        (servers,) = scene.semantics._servers.values()
        text = scene.get(name).replace(old, new)
        step = TextChange(WorkspacePath(str(scene.root), name), "changed", scene.get(name), text)
        deadline = CallDeadline(SECONDS, lambda: False, patient=True)
        found, whole = servers.dependents([step], deadline)
        done = scene.write({name: text})
    finally:
        scene.close()
    names = [path.path for path in found]
    assert not whole
    if name == "alone.h":  # an option may include what nobody names
        assert set(asked) <= set(names)
    else:
        assert sorted(names) == asked
    assert {file for file, _ in codes(done)} - {name} == wrong


def test_a_new_file_repairs_others(tmp_path: Path) -> None:
    scene = _scene(tmp_path, "ty", large=True)
    try:
        scene.write({"base.py": scene.get("base.py") + "\n"})
        text = "def helper(n: int) -> int:\n    return n\n"
        added = scene.write({"comes.py": text}, remembered=True)
    finally:
        scene.close()
    assert codes(added, "fixed") == [("waits.py", "import-not-found")]
    assert added.findings is not None
    assert not added.findings.complete


def test_what_only_a_linter_looked_at_is_not_complete(tmp_path: Path) -> None:
    scene = Scene(tmp_path, ["ruff"], {"a.py": "import os\n\nos.getcwd()\n"})
    try:
        update = scene.write({"a.py": "import os\n"})
    finally:
        scene.close()
    assert codes(update) == [("a.py", "F401")]
    assert update.findings is not None
    assert not update.findings.complete


def test_a_file_that_scripts_may_import_is_not_complete_by_itself(tmp_path: Path) -> None:
    files = {**_SCRIPT, "data.json": '{"a": 1}\n'}
    scene = Scene(tmp_path, ["typescript", "json"], files)
    try:
        update = scene.write({"data.json": '{"b": 1}\n'})
    finally:
        scene.close()
    assert update.findings is not None
    assert not update.findings.complete


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ("x = one\n", "x = two\n", {"x", "one", "two"}),
        ("def f_one(\n    a: int,\n) -> int:\n    return a\n",) * 2 + (set(),),
        (
            "def outer(\n    a: int,\n) -> int:\n    return one\n",
            "def outer(\n    a: int,\n) -> int:\n    return two\n",
            {"outer", "one", "two", "return"},
        ),
        (
            "class Box\n{\n    int Size()\n    {\n        return 1;\n    }\n}\n",
            "class Box\n{\n    int Size()\n    {\n        return 2;\n    }\n}\n",
            {"Box", "Size", "return"},
        ),
        (None, "def fresh() -> int: ...\n", {"def", "fresh", "int"}),
    ],
)
def test_names_of_a_change(before: str | None, after: str | None, names: set[str]) -> None:
    assert {one for one in changed_names(before, after) if not one.isdigit()} >= names
    if not names:
        assert not changed_names(before, after)


def test_a_name_that_comes_or_goes_counts_more_than_one_that_stays() -> None:
    found = changed_names("def old(path, mode):\n", "def new(path, mode):\n")
    assert found["old"] == found["new"] > found["path"] == found["mode"]
    kept = changed_names("size: int = 1\n", "size: str = 1\n")
    assert kept["size"] > kept["int"] == kept["str"]


def asked(folder: Path, files: dict[str, str], name: str, seconds: float) -> list[str]:
    """The files that may depend on a name of `base.py` that comes or goes, as words tell it."""
    scene = Scene(folder, ["ty"], {"pyproject.toml": "", "p/base.py": "", **files}, mode="auto")
    try:
        scene.index_words()
        (servers,) = scene.semantics._servers.values()
        return servers.index.candidates({name: 4.0}, {"p/base.py"}, seconds=seconds)
    finally:
        scene.close()


def test_what_hands_on_the_names_of_a_folder_is_asked_about_first(tmp_path: Path) -> None:
    files = {"p/__init__.py": "from p.base import include as include\n"}
    for number in range(12):
        files[f"o{number}.py"] = "base = 1\n\n\ndef include() -> None: ...\n"
        files[f"other{number}.py"] = files[f"more{number}.py"] = ""
    found = asked(tmp_path, files, "include", 0.0)
    assert found[0] == "p/__init__.py"
    assert len(found) == 13


@pytest.mark.parametrize(
    ("holding", "seconds", "followed"),
    [(1, math.inf, True), (1, 0.0, False), (30, math.inf, False)],
)
def test_types_are_followed_where_a_name_is_rare_and_there_is_time(
    tmp_path: Path, holding: int, seconds: float, *, followed: bool
) -> None:
    files = {"mid.py": "def second():\n    return first()\n", "end.py": "second()\n"}
    files |= {f"o{number}.py": "first\n" if number < holding else "" for number in range(90)}
    found = asked(tmp_path, files, "first", seconds)
    assert "mid.py" in found
    assert ("end.py" in found) is followed


@pytest.mark.parametrize(
    ("text", "other", "names"),
    [
        ("def one():\n    return 1\n", "def one():\n    return 2\n", {"one"}),
        ("class A:\n    b: int\n    c: int\n", "class A:\n    b: int\n", {"A", "c"}),
        ("def one():\n    return 1\n", "def one():\n    x = 2\n    return 1\n", {"one"}),
        ("a = 1\x0cb = 2\r\nc = 3\r\n", "a = 1\x0cb = 2\r\nc = 4\r\n", {"c"}),
        ("a = 1\n", "a = 1\n", set()),
        ("def gone():\n    pass\n", None, {"gone"}),
    ],
)
def test_places_of_a_change(text: str, other: str | None, names: set[str]) -> None:
    places = changed_places(text, other)
    assert set(places.values()) == names
    assert all(text[at:].startswith(name) for at, name in places.items())


@pytest.mark.parametrize(
    ("text", "flows"),
    [
        ("def between():\n    return start()\n", {"between"}),
        ("from base import start as begin\n", {"begin"}),
        ("const paid = () => start();\n", {"paid"}),
        ("class A:\n    kept = start()\n", {"A", "kept"}),
        ("    public string Shout(this string s) => start(s);\n", {"Shout"}),
        ("nothing = 1\n", set()),
    ],
)
def test_types_flow_through_what_is_declared_with_a_name(text: str, flows: set[str]) -> None:
    assert flowing_names(text, {"start"}) >= flows
