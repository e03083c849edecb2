"""Projects of medium size, and edits of them of which it is known what is wrong after each."""

from __future__ import annotations

import importlib.util
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PROJECTS", "Project", "plant"]

PLACES = 5  # files that are edited by turns
LINES = (120, 1_000)  # so long are these


@dataclass(frozen=True, slots=True)
class Project:
    """Where a project's files come from, and a line to add to any of them.

    Attributes:
        make: Puts the files into an empty folder.
        endings: Of the files that count and are edited.
        right: A line with a number in braces; nothing is wrong with it.
        wrong: The same; there is one error in it.
    """

    make: Callable[[Path], None]
    endings: tuple[str, ...]
    right: str
    wrong: str
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Planted:
    """A project on the disk.

    Attributes:
        places: The files that are edited, by their paths in it.
    """

    root: Path
    places: tuple[str, ...]
    files: int
    lines: int


def plant(project: Project, root: Path) -> Planted:
    """Make a project in an empty folder; the same files are edited every time."""
    project.make(root)
    for name, text in project.settings.items():
        (root / name).write_text(text)
    lengths = {
        path.relative_to(root).as_posix(): len(path.read_bytes().splitlines())
        for path in sorted(root.rglob("*"))
        if path.suffix in project.endings and path.is_file()
    }
    fit = [name for name, count in lengths.items() if LINES[0] <= count <= LINES[1]]
    fit = [name for name in fit if not name.endswith((".h", "__init__.py"))]
    places = random.Random(5).sample(fit, PLACES)
    return Planted(root, tuple(places), len(lengths), sum(lengths.values()))


def _type_checker(root: Path) -> None:
    """The sources of mypy and its compiler, which are installed with the checks."""
    for name in ("mypy", "mypyc"):
        spec = importlib.util.find_spec(name)
        if spec is None or spec.submodule_search_locations is None:
            raise SystemExit(f"{name} is not installed here; scripts/check installs it")
        _copy(Path(spec.submodule_search_locations[0]), root / name, ".py", {"typeshed"})


def _schema_library(root: Path) -> None:
    """The sources of zod, which some of the programs from npm bring along."""
    from tests.node_programs import install  # noqa: PLC0415 - installs when it is called

    _copy(install().modules / "zod" / "src", root / "src", ".ts", {"tests", "benchmarks"})


def _copy(source: Path, target: Path, ending: str, without: set[str]) -> None:
    for path in source.rglob(f"*{ending}"):
        place = path.relative_to(source)
        if not without.intersection(place.parts):
            (target / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / place)


def _c_library(root: Path) -> None:
    """125 pairs of a header and a source, each of which uses what eight others have."""
    dice = random.Random(7)
    for number in range(125):
        used = sorted(dice.sample(range(125), 8))
        (root / f"part{number}.h").write_text(
            f"#pragma once\n#include <stddef.h>\n"
            f"typedef struct part{number} {{ int size; const char *name; double share; }} part{number};\n"
            + "".join(
                f"int part{number}_f{one}(const part{number} *p, int n);\n" for one in range(10)
            )
        )
        functions = [
            f"int part{number}_f{one}(const part{number} *p, int n) {{\n"
            "  int sum = p->size;\n"
            "  for (int at = 0; at < n; at++) {\n"
            f"    part{used[one % 8]} other = {{at, p->name, p->share / (at + 1)}};\n"
            f"    if (strlen(p->name) > {one + 3}u) sum += part{used[one % 8]}_f{one}(&other, at - 1);\n"
            f'    else printf("%d %s\\n", sum, other.name);\n'
            + "".join(f"    sum ^= (at << {bit}) + {bit * one};\n" for bit in range(6))
            + "  }\n  return sum;\n}\n\n"
            for one in range(10)
        ]
        (root / f"part{number}.c").write_text(
            "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
            + "".join(f'#include "part{one}.h"\n' for one in (number, *used))
            + "\n"
            + "".join(functions)
        )


def _cs_library(root: Path) -> None:
    """Two projects of 125 classes each, of which the second uses the first."""
    dice = random.Random(9)
    for project in ("Core", "Shop"):
        (root / project).mkdir()
        uses = '<ItemGroup><ProjectReference Include="../Core/Core.csproj" /></ItemGroup>'
        (root / project / f"{project}.csproj").write_text(
            '<Project Sdk="Microsoft.NET.Sdk">\n  <PropertyGroup>'
            "<TargetFramework>net8.0</TargetFramework><Nullable>enable</Nullable>"
            "<ImplicitUsings>enable</ImplicitUsings></PropertyGroup>\n"
            f"  {uses if project == 'Shop' else ''}\n</Project>\n"
        )
        for number in range(125):
            others = [f"Core.Part{one}" for one in dice.sample(range(125), 8)]
            methods = [
                f"    public int Work{one}(IReadOnlyList<string> names, int n)\n    {{\n"
                f"        var found = names.Where(name => name.Length > {one}).ToList();\n"
                f"        var other = new {others[one % 8]} {{ Size = n, Name = found.FirstOrDefault() }};\n"
                "        if (other.Name is { } name && name.Length > n)\n        {\n"
                f"            return other.Work{one}(found, n - 1) + Size;\n        }}\n"
                + "".join(f"        Size += n * {bit} + {one};\n" for bit in range(3))
                + "        return found.Count;\n    }\n\n"
                for one in range(10)
            ]
            (root / project / f"Part{number}.cs").write_text(
                f"namespace {project};\n\npublic sealed class Part{number}\n{{\n"
                "    public int Size { get; set; }\n\n    public string? Name { get; set; }\n\n"
                + "".join(methods)
                + "}\n\n"
            )


_PYTHON = Project(
    _type_checker, (".py",), "_added_{n}: int = {n}\n", "_added_{n}: int = 'x' + missing_{n}\n"
)
_TYPESCRIPT = Project(
    _schema_library,
    (".ts",),
    "export const added_{n}: number = {n};\n",
    "export const added_{n}: number = 'x';\n",
    {
        "tsconfig.json": '{"compilerOptions": {"strict": true, "module": "nodenext", "noEmit": true}, '
        '"include": ["src"]}\n',
        "package.json": '{"name": "medium", "type": "module"}\n',
    },
)
_C = Project(
    _c_library,
    (".c", ".h"),
    "int added_{n}(void) {{ return {n}; }}\n",
    "int added_{n}(void) {{ return missing_{n}; }}\n",
    {"compile_flags.txt": "-xc\n-std=c11\n"},
)

_CSHARP = Project(
    _cs_library,
    (".cs",),
    "file static class Added{n} {{ public static int Value => {n}; }}\n",
    "file static class Added{n} {{ public static int Value => Missing{n}; }}\n",
)

PROJECTS = {
    "ruff": _PYTHON,
    "ty": _PYTHON,
    "typescript": _TYPESCRIPT,
    "clangd": _C,
    "basedpyright": _PYTHON,
    "filepact-csharp": _CSHARP,
}
