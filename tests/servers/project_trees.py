"""Trees of other people's projects, and one to the shape of such, with edits of what they declare.

They are fetched as packages on first use and kept in `.trees` beside the project file.  An edit gives
another name to something that a file declares, and nowhere else, so that whoever uses it breaks; or it
adds a line that is wrong, or one that is right.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fetching import FetchError, fetch, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["REAL", "RealTree", "edit"]

_FOLDER = Path(__file__).resolve().parents[2] / ".trees"
_DJANGO = "django==5.2.8"
_ZOD = "zod@4.1.12"
_GO = ("golang-github-spf13-cobra-dev", "golang-github-spf13-pflag-dev")
_LIBRARY, _TESTS, _USERS = 250, 600, 50


@dataclass(frozen=True, slots=True)
class RealTree:
    """A tree of sources.

    Attributes:
        server: The language server.
        files: Its files, by their paths.
        edited: Which of them are edited.
        declares: What declares a name in a line, as a group.
        wrong: A line with an error, with a number in braces.
        right: The same without.
    """

    server: str
    files: Callable[[], dict[str, str]]
    edited: str
    declares: str
    wrong: str
    right: str


def edit(tree: RealTree, files: Mapping[str, str], dice: random.Random) -> tuple[str, str]:
    """A file and its next text."""
    places = [one for one in files if re.search(tree.edited, one)]
    kind = dice.random()
    while True:
        place = dice.choice(places)
        text = files[place]
        found = list(re.finditer(tree.declares, text, re.MULTILINE))
        if not found:
            continue
        if kind > 0.7:
            line = tree.wrong if kind > 0.85 else tree.right
            return place, f"{text.rstrip()}\n{line.format(dice.randrange(1_000))}\n"
        one = dice.choice(found)
        start, end = one.span(one.lastindex or 0)
        return place, f"{text[:start]}{text[start:end]}Changed{text[end:]}"


def _kept(name: str, endings: tuple[str, ...], bring: Callable[[Path], Path]) -> dict[str, str]:
    """The files of a tree that is fetched on first use."""
    folder = _FOLDER / name
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        bring(folder).rename(folder / "tree")
        (folder / "whole").touch()
    root = folder / "tree"
    found = {}
    for path in sorted(root.rglob("*")):
        if path.name.endswith(endings) and path.is_file():
            try:
                found[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # Django has some on purpose.
    return found


def _django() -> dict[str, str]:
    def bring(folder: Path) -> Path:
        more = ["--no-deps", "--no-binary", "django", "-d", str(folder)]
        fetch([sys.executable, "-m", "pip", "download", _DJANGO, *more])
        unpack(next(folder.glob("*.tar.gz")), folder)
        return next(one for one in folder.iterdir() if one.is_dir())

    return _kept("django", (".py", "pyproject.toml"), bring)


def _zod() -> dict[str, str]:
    def bring(folder: Path) -> Path:
        fetch(["npm", "pack", _ZOD, "--silent"], cwd=folder)
        unpack(next(folder.glob("*.tgz")), folder)
        return folder / "package" / "src"

    sources = _kept("zod", (".ts",), bring)
    options = '"strict": true, "noEmit": true, "module": "nodenext", "target": "es2022"'
    return {
        "package.json": '{"name": "zod-like", "type": "module"}\n',
        "tsconfig.json": f'{{"compilerOptions": {{{options}}}, "include": ["src"]}}\n',
        **{f"src/{name}": text for name, text in sources.items() if "/tests/" not in name},
    }


def _cobra() -> dict[str, str]:
    def bring(folder: Path) -> Path:
        for name in _GO:
            fetch(["apt-get", "download", name], cwd=folder)
        for one in folder.glob("*.deb"):
            command = ["dpkg-deb", "-x", str(one), str(folder)]
            if subprocess.run(command, check=False).returncode:
                raise FetchError(f"{one.name} cannot be unpacked")
        return folder / "usr" / "share" / "gocode" / "src" / "github.com" / "spf13"

    sources = _kept("cobra", (".go",), bring)
    return {
        "go.mod": "module github.com/spf13\n\ngo 1.19\n",
        **{
            name: text
            for name, text in sources.items()
            if "/doc/" not in name and not name.endswith("command_win.go")
        },
    }


def _csharp() -> dict[str, str]:
    """900 files in three projects, as Newtonsoft.Json has: a library, its tests, and who uses it."""
    dice = random.Random(9)
    head = '<Project Sdk="Microsoft.NET.Sdk">\n  <PropertyGroup><TargetFramework>net8.0</TargetFramework>'
    head += "<Nullable>enable</Nullable><ImplicitUsings>enable</ImplicitUsings></PropertyGroup>\n"
    uses = '  <ItemGroup><ProjectReference Include="../Lib/Lib.csproj" /></ItemGroup>\n'
    files = {
        "Lib/Lib.csproj": f"{head}</Project>\n",
        "Tests/Tests.csproj": f"{head}{uses}</Project>\n",
        "Users/Users.csproj": f"{head}{uses}</Project>\n",
    }
    for number in range(_LIBRARY):
        used = dice.sample(range(_LIBRARY), 6)
        methods = "".join(
            f"    public int Work{number}x{one}(IReadOnlyList<string> names, int n)\n    {{\n"
            f"        var found = names.Where(name => name.Length > {one}).ToList();\n"
            f"        var other = new Part{used[one]} {{ Size{used[one]} = n }};\n"
            f"        if (other.Label is {{ }} name && name.Length > n)\n        {{\n"
            f"            return other.Work{used[one]}x{one}(found, n - 1) + Size{number};\n        }}\n"
            + "".join(f"        Size{number} += n * {bit} + {one};\n" for bit in range(6))
            + "        return found.Count;\n    }\n\n"
            for one in range(6)
        )
        files[f"Lib/Group{number % 10}/Part{number}.cs"] = (
            f"namespace Lib;\n\npublic partial class Part{number}\n{{\n"
            f"    public int Size{number} {{ get; set; }}\n\n    public string? Label {{ get; set; }}\n\n"
            f"{methods}}}\n"
        )
    for folder, count in (("Tests", _TESTS), ("Users", _USERS)):
        for number in range(count):
            one, other = dice.sample(range(_LIBRARY), 2)
            lines = "".join(
                f"        var part{at} = new Part{one} {{ Size{one} = {at} }};\n"
                f"        total += part{at}.Work{one}x{at % 6}(names, {at}) + From(part{at}).Size{other};\n"
                for at in range(12)
            )
            files[f"{folder}/{folder}{number}.cs"] = (
                f"using Lib;\n\nnamespace {folder};\n\npublic class {folder}{number}\n{{\n"
                f"    Part{other} From(Part{one} part) => new() {{ Size{other} = part.Size{one} }};\n\n"
                "    public int Check(List<string> names)\n    {\n        var total = 0;\n"
                f"{lines}        return total;\n    }}\n}}\n"
            )
    return files


_PYTHON = (
    r"^django/.*\.py$",
    r"^(?: {4})?(?:def|class) ((?!__)\w+)",
    '_added_{}: int = "text"',
    "_added_{}: int = 1",
)
_SCRIPT = (
    r"^src/.*\.ts$",
    r"^(?:export (?:abstract )?(?:function|const|interface|class|type) |  )(\w+)(?=[(<:]| =| extends|\?:)",
    'export const added{}: number = "text";',
    "export const added{}: number = 1;",
)

REAL = {
    "django-ty": RealTree("ty", _django, *_PYTHON),
    "django-basedpyright": RealTree("basedpyright", _django, *_PYTHON),
    "zod": RealTree("typescript", _zod, *_SCRIPT),
    "cobra": RealTree(
        "gopls",
        _cobra,
        r"^(?:cobra|pflag)/(?!.*_test).*\.go$",
        r"^(?:func (?:\([^)]*\) )?|type |\t(?=\w+ +[\w.*\[\]]+$))(\w+)",
        'var added{} int = "text"',
        "var added{} int = 1",
    ),
    "newtonsoft-like": RealTree(
        "filepact-csharp",
        _csharp,
        r"^Lib/.*\.cs$",
        r"public (?:partial class|int|string\?) (\w+)",
        'file static class Added{} {{ public static int Value => "text"; }}',
        "file static class Added{} {{ public static int Value => 1; }}",
    ),
}
