"""One small project in each language: a file that another imports, and names by which tests speak."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PROJECTS", "Project"]


@dataclass(frozen=True, slots=True)
class Project:
    """A project and the texts that its files take in a test.

    Attributes:
        server: The server that is tested with it.
        settings: Files that only configure.
        dependency: The file that the user imports.
        user: The file that imports it.
        fits: Texts of the dependency for which the user is right, and wrong.
        wants_new: A text of the user that imports the new file.
        new: The new file, with a text that does not fit the user.
        broken: A text of the dependency that cannot be parsed.
        folder_user: A text of the user that imports from a new folder.
        folder: The files of that folder.
        moved: A new name of the dependency.
        moved_user: The user's text that imports it by its new name.
    """

    server: str
    settings: dict[str, str]
    dependency: str
    user: str
    right: str
    wrong: str
    user_text: str
    wants_new: str
    new: str
    new_text: str
    broken: str
    folder_user: str
    folder: dict[str, str]
    moved: str
    moved_user: str


def _python(server: str) -> Project:
    return Project(
        server=server,
        settings={"pyproject.toml": '[project]\nname = "p"\nversion = "1"\n'},
        dependency="lib.py",
        user="use.py",
        right="def double(n: int) -> int:\n    return n * 2\n",
        wrong="def double(n: str) -> str:\n    return n * 2\n",
        user_text="from lib import double\n\nanswer: int = double(21)\n",
        wants_new="from extra import word\n\nnumber: int = word\n",
        new="extra.py",
        new_text='word: str = "one"\n',
        broken="def double(n: int -> int:\n    return n * 2\n",
        folder_user="from parts.inner import size\n\nlength: str = size\n",
        folder={"parts/__init__.py": "", "parts/inner.py": "size: int = 3\n"},
        moved="other.py",
        moved_user="from other import double\n\nanswer: int = double(21)\n",
    )


PROJECTS = {
    "basedpyright": _python("basedpyright"),
    "ty": _python("ty"),
    "ruff": _python("ruff"),
    "typescript": Project(
        server="typescript",
        settings={
            "tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true, '
            '"module": "nodenext"}, "include": ["**/*.ts"]}\n',
            "package.json": '{"name": "p", "type": "module"}\n',
        },
        dependency="lib.ts",
        user="use.ts",
        right="export function double(n: number): number {\n  return n * 2;\n}\n",
        wrong="export function double(n: string): string {\n  return n + n;\n}\n",
        user_text='import { double } from "./lib.js";\n\nexport const a: number = double(21);\n',
        wants_new='import { word } from "./extra.js";\n\nexport const n: number = word;\n',
        new="extra.ts",
        new_text='export const word: string = "one";\n',
        broken="export function double(n: number: number {\n  return n * 2;\n}\n",
        folder_user='import { size } from "./parts/inner.js";\n\nexport const s: string = size;\n',
        folder={"parts/inner.ts": "export const size: number = 3;\n"},
        moved="other.ts",
        moved_user='import { double } from "./other.js";\n\nexport const a: number = double(21);\n',
    ),
    "filepact-csharp": Project(
        server="filepact-csharp",
        settings={
            "p.csproj": '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup>'
            "<TargetFramework>net8.0</TargetFramework><Nullable>enable</Nullable>"
            "</PropertyGroup></Project>\n",
        },
        dependency="Lib.cs",
        user="Use.cs",
        right="public static class Lib\n{\n    public static int Twice(int n) => n * 2;\n}\n",
        wrong="public static class Lib\n{\n    public static string Twice(string n) => n + n;\n}\n",
        user_text="public static class Use\n{\n    public static int Answer = Lib.Twice(21);\n}\n",
        wants_new="public static class Use\n{\n    public static int Number = Extra.Word;\n}\n",
        new="Extra.cs",
        new_text='public static class Extra\n{\n    public static string Word = "one";\n}\n',
        broken="public static class Lib\n{\n    public static int Twice(int n => n * 2;\n}\n",
        folder_user="public static class Use\n{\n    public static string Size = Parts.Inner.Size;\n}\n",
        folder={
            "Parts/Inner.cs": "namespace Parts;\n\n"
            "public static class Inner\n{\n    public const int Size = 3;\n}\n"
        },
        moved="Other.cs",
        moved_user="public static class Use\n{\n    public static int Moved = Lib.Twice(21);\n}\n",
    ),
    "clangd": Project(
        server="clangd",
        settings={"compile_flags.txt": "-xc++\n-std=c++17\n-Wall\n"},
        dependency="lib.hpp",
        user="use.cpp",
        right="#pragma once\ninline int twice(int n) { return n * 2; }\n",
        wrong="#pragma once\ninline char* twice(char* n) { return n; }\n",
        user_text='#include "lib.hpp"\n\nint answer = twice(21);\n',
        wants_new='#include "extra.hpp"\n\nint number = word;\n',
        new="extra.hpp",
        new_text='#pragma once\nconst char* const word = "one";\n',
        broken="#pragma once\ninline int twice(int n { return n * 2; }\n",
        folder_user='#include "parts/inner.hpp"\n\nconst char* length = size;\n',
        folder={"parts/inner.hpp": "#pragma once\nconst int size = 3;\n"},
        moved="other.hpp",
        moved_user='#include "other.hpp"\n\nint answer = twice(21);\n',
    ),
    "gopls": Project(
        server="gopls",
        settings={"go.mod": "module p\n\ngo 1.19\n"},
        dependency="lib.go",
        user="use.go",
        right="package p\n\nfunc Double(n int) int { return n * 2 }\n",
        wrong="package p\n\nfunc Double(n string) string { return n + n }\n",
        user_text="package p\n\nvar Answer int = Double(21)\n",
        wants_new="package p\n\nvar Number int = Word\n",
        new="extra.go",
        new_text='package p\n\nvar Word string = "one"\n',
        broken="package p\n\nfunc Double(n int int { return n * 2 }\n",
        folder_user='package p\n\nimport "p/parts"\n\nvar Length string = parts.Size\n',
        folder={"parts/inner.go": "package parts\n\nconst Size int = 3\n"},
        moved="other.go",
        moved_user="package p\n\nvar Answer int = Double(21)\n",
    ),
}
