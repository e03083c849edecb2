"""Renames over more than twenty files: each is shown, done, built by the language's own tools, and undone.

python -m tests.tools.renames [LANGUAGE...] [--tries N]

It is wrong if an undo leaves one byte that was another before, if what was done is not what was shown, or
if the tree does not build afterwards.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.tools.test_server_edits import BESIDE, PERSON, is_right, real, state

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.solution_world import World

USERS = 22
PROJECT = Path(__file__).resolve().parents[2]


def names(number: int) -> tuple[str, str]:
    """What the core declares by a number, and its next name."""
    kinds = [("Thing", "Item"), ("make", "build"), ("total", "amount")]
    old, new = kinds[number % len(kinds)]
    return f"{old}{number}", f"{new}{number}"


def python(count: int) -> dict[str, str]:
    core, uses = "class Holder:\n    first: int = 1\n", ""
    functions = ""
    for number in range(count):
        old, _ = names(number)
        if old.startswith("total"):
            core += f"\n    def {old}(self) -> int:\n        return self.first\n"
            uses += f"    found += Holder().{old}()\n"
        elif old.startswith("make"):
            functions += f"\n\ndef {old}() -> int:\n    return {number}\n"
            uses += f"    found += core.{old}()\n"
        else:
            functions += f"\n\nclass {old}(Holder):\n    second: int = {number}\n"
            uses += f"    found += core.{old}().second\n"
    users = {
        f"shop/use{one}.py": "from shop import core\nfrom shop.core import Holder\n\n\n"
        f"def use{one}() -> int:\n    found = 0\n{uses}    return found\n"
        for one in range(USERS)
    }
    return {
        "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n',
        "shop/__init__.py": "",
        "shop/core.py": core + functions,
        **users,
    }


def script(count: int) -> dict[str, str]:
    core, functions, uses = "", "", ""
    for number in range(count):
        old, _ = names(number)
        if old.startswith("total"):
            core += f"  {old}(): number {{\n    return this.first;\n  }}\n"
            uses += f"  found += new Holder().{old}();\n"
        elif old.startswith("make"):
            functions += f"export function {old}(): number {{\n  return {number};\n}}\n"
            uses += f"  found += core.{old}();\n"
        else:
            functions += f"export class {old} extends Holder {{\n  second = {number};\n}}\n"
            uses += f"  found += new core.{old}().second;\n"
    users = {
        f"src/use{one}.ts": 'import * as core from "./index";\nimport { Holder } from "./core";\n'
        f"export function use{one}(): number {{\n  let found = 0;\n{uses}  return found;\n}}\n"
        for one in range(USERS)
    }
    options = '{"compilerOptions": {"strict": true, "noEmit": true}, "include": ["src"]}\n'
    return {
        "tsconfig.json": options,
        "src/index.ts": 'export * from "./core";\n',
        "src/core.ts": f"export class Holder {{\n  first = 1;\n{core}}}\n{functions}",
        **users,
    }


def csharp(count: int) -> dict[str, str]:
    core, functions, uses = "", "", ""
    for number in range(count):
        old, _ = names(number)
        if old.startswith("total"):
            core += f"        public int {old} => First;\n"
            uses += f"            found += new Holder().{old};\n"
        elif old.startswith("make"):
            core += f"        public static int {old}() => {number};\n"
            uses += f"            found += Holder.{old}();\n"
        else:
            functions += f"    public class {old} : Holder {{ public int Second = {number}; }}\n"
            uses += f"            found += new {old}().Second;\n"
    head = '<Project Sdk="Microsoft.NET.Sdk">\n  <PropertyGroup><TargetFramework>netcoreapp3.1</TargetFramework>'
    head += "<UseAppHost>false</UseAppHost></PropertyGroup>\n"
    reference = '  <ItemGroup><ProjectReference Include="../Lib/Lib.csproj" /></ItemGroup>\n'
    users = {
        f"App/Use{one}.cs": f"using Lib;\n\nnamespace App\n{{\n    public class Use{one}\n    {{\n"
        f"        public int Count()\n        {{\n            var found = 0;\n{uses}"
        "            return found;\n        }\n    }\n}\n"
        for one in range(USERS)
    }
    return {
        "Lib/Lib.csproj": f"{head}</Project>\n",
        "App/App.csproj": f"{head}{reference}</Project>\n",
        "Lib/Core.cs": "namespace Lib\n{\n    public class Holder\n    {\n        public int First = 1;\n"
        f"{core}    }}\n{functions}}}\n",
        **users,
    }


def builds(it: World) -> bool:
    """Whether a real build of a copy finds nothing."""
    sys.path.insert(0, str(PROJECT / "packages" / "filepact-csharp" / "tests"))
    from project_tree import ProjectTree  # noqa: PLC0415 - found only now
    from real_build import errors_of_build  # noqa: PLC0415 - as above

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve() / "copy"
        shutil.copytree(it.root, copy)
        return not errors_of_build(ProjectTree(copy), Path(folder) / "home")


LANGUAGES: dict[str, tuple[str, Callable[[int], dict[str, str]], str, Callable[[World], bool]]] = {
    "csharp": ("filepact-csharp", csharp, "Lib/Core.cs", builds),
    "typescript": (
        "typescript",
        script,
        "src/core.ts",
        lambda it: is_right(it, ["tsc", "-p", "."]),
    ),
    "python": (
        "ty",
        python,
        "shop/core.py",
        lambda it: is_right(it, [f"{BESIDE}/ty", "check", "."]),
    ),
}


def wrong_of(it: World, main: str, number: int, right: Callable[[World], bool]) -> str:
    """What is wrong with one rename; empty if nothing is."""
    before = state(it.root)
    old, new = names(number)
    sent = {"filePath": main, "name": old, "newName": new}
    shown = it.data("rename_symbol", **sent)
    if state(it.root) != before:
        return f"{old}: a preview wrote"
    done = it.data("rename_symbol", **sent, applyChanges=True)
    if done["filesChanged"] <= 20 or done["unifiedDiff"] != shown["unifiedDiff"]:
        return f"{old}: {done['filesChanged']} files, shown were {shown['filesChanged']}"
    built = right(it)
    it.workspace.undo(PERSON, done["operation"])
    if state(it.root) != before:
        return f"{old}: not undone to the byte"
    return "" if built else f"{old}: does not build as {new}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", nargs="*", choices=[[], *LANGUAGES], help="only these")
    parser.add_argument("--tries", type=int, default=20)
    given = parser.parse_args()
    failed = False
    for name in given.language or list(LANGUAGES):
        which, tree, place, right = LANGUAGES[name]
        with tempfile.TemporaryDirectory() as folder:
            try:
                with real(Path(folder).resolve(), which, tree(given.tries)) as it:
                    if not right(it):
                        raise SystemExit(f"{name}: the tree does not build as it is")
                    wrong = [
                        said
                        for number in range(given.tries)
                        if (said := wrong_of(it, place, number, right))
                    ]
            except pytest.skip.Exception as reason:
                print(f"{name}: cannot be had here: {reason}", flush=True)
                continue
        failed = failed or bool(wrong)
        good = given.tries - len(wrong)
        print(f"{name}: {good} of {given.tries} renames right {'; '.join(wrong[:5])}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
