"""Servers that disclose, confined: they find what they find outside, and say nothing of what is protected."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from filepact_supervisor.sandbox_process import can_confine_servers
from tests.hostile.sweeps import often
from tests.servers.real_servers import Tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not can_confine_servers(), reason="this system lacks what it takes"),
]

SECRET = "TOKENS3CRET"  # noqa: S105 - as it is planted
REVEALING = "template <int> struct X;\nconstexpr char s[] = {\n#embed %s\n};\nX<s[0]> first;\n"
FIRST = f"X<{ord(SECRET[0])}>"
FILES = {
    "../outside.h": f"{SECRET} outside;\n",
    "../outside.json": json.dumps({SECRET: 1}),
    ".env": f"{SECRET}=1\n",
    "secrets.json": json.dumps({SECRET: 1}),
    "deep/.env": f"{SECRET}=1\n",
}

# Of each server: files that are there besides, and texts that would tell what is in a secret.
ATTACKS = {
    "clangd": (
        {"via.inc": '#include ".env"\n'},
        [
            ("a.cpp", '#include ".env"\n'),
            ("b.cpp", REVEALING % '".env"'),
            ("c.cpp", REVEALING % '"../outside.h"'),
            ("d.cpp", "#define DOT(x) <./.x>\n#define F DOT(env)\n#include F\n"),
            ("e.cpp", "#define S(x) #x\n#define P(x) S(./deep/.x)\n#include P(env)\n"),
            ("f.cpp", '#include "via.inc"\n'),
            ("g.cpp", '#include "/proc/self/cwd/.env"\n'),
            ("h.cpp", REVEALING % '"/usr/../proc/self/cwd/.env"'),
        ],
    ),
    "typescript": (
        {
            "tsconfig.json": json.dumps(
                {
                    "compilerOptions": {
                        "resolveJsonModule": True,
                        "strict": True,
                        "module": "esnext",
                        "moduleResolution": "bundler",
                        "paths": {"x*": ["./sec*.json"]},
                    }
                }
            ),
        },
        [
            ("a.ts", 'import s from "./secrets.json";\nexport const n: number = s;\n'),
            ("b.ts", 'import s from "../outside.json";\nexport const n: number = s;\n'),
            ("c.ts", 'import s from "xrets";\nexport const n: number = s;\n'),
            ("d.ts", '/// <reference path=".env" />\nexport const n: number = "";\n'),
            ("e.ts", 'import s = require("./secrets.json");\nexport const n: number = s;\n'),
        ],
    ),
    "gopls": (
        {"go.mod": "module a\n\ngo 1.19\n"},
        [
            ("a.go", 'package a\n\n// #include ".env"\nimport "C"\n\nvar X C.int = 1\n'),
            (
                "b.go",
                'package a\n\nimport _ "embed"\n\n//go:embed .env\nvar s string\n\nvar y int = s\n',
            ),
            ("c.go", 'package a\n\n// #include "../outside.h"\nimport "C"\n\nvar Z C.int = 1\n'),
        ],
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "deep" / "enough" / "project"
    (root / "deep").mkdir(parents=True)
    for name, text in FILES.items():
        (root / name).write_text(text)
    return root.resolve()


def said(tree: Tree, server: str) -> Iterator[str]:
    """All that a server says of each attack, from the file and as a preview."""
    more, attacks = ATTACKS[server]
    for name, text in more.items():
        tree.write(name, text)
    for name, text in attacks:
        tree.tell(tree.write(name, text))
        yield repr(tree.report(name))
        tree.tell(tree.write(name, ""))
        yield repr(tree.preview(name, text, [name]))


@pytest.mark.parametrize("server", [one for one in ATTACKS if one != "gopls" or often(0, 1)])
def test_a_confined_server_tells_nothing_of_a_protected_file_or_of_one_outside(
    folder: Path, server: str
) -> None:
    tree = Tree(folder, server, confined=True)
    try:
        found = "\n".join(said(tree, server))
    finally:
        tree.close()
    assert SECRET not in found
    assert FIRST not in found


@pytest.mark.parametrize("server", ["clangd", "typescript"])
def test_unconfined_it_would(folder: Path, server: str) -> None:
    tree = Tree(folder, server)
    try:
        assert any(SECRET in one or FIRST in one for one in said(tree, server))
    finally:
        tree.close()


@pytest.mark.parametrize("server", ["clangd", "typescript"])
def test_a_text_that_names_a_protected_file_is_not_told_whether_that_is_there(
    folder: Path, server: str
) -> None:
    tree = Tree(folder, server, confined=True)
    name, text = ATTACKS[server][1][0]
    missing = text.replace(".env", ".env.local").replace("secrets.", "secret.")
    try:
        for one in (text, missing):
            tree.tell(tree.write(name, one))
            (report,) = tree.report(name).values()
            assert not report.known
            assert not report.diagnostics
            assert report.notes
    finally:
        tree.close()


RIGHT = {
    "clangd": (
        {"b.h": "int y;\n"},
        ("a.cpp", '#include <vector>\n#include "b.h"\nint f() { return y + z; }\n'),
    ),
    "typescript": (
        {"b.ts": 'export const y = "s";\n', "tsconfig.json": '{"compilerOptions":{"strict":true}}'},
        ("a.ts", 'import { y } from "./b";\nexport const x: number = y;\n'),
    ),
    "typescript-language-server": (
        {"b.ts": 'export const y = "s";\n', "tsconfig.json": '{"compilerOptions":{"strict":true}}'},
        ("a.ts", 'import { y } from "./b";\nexport const x: number = y;\n'),
    ),
    "filepact-csharp": (
        {
            "a.csproj": '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup>'
            "<TargetFramework>net8.0</TargetFramework></PropertyGroup></Project>",
            "b.cs": 'class B { public string Y => ".env"; }',
        },
        ("a.cs", 'using System.Linq;\nclass A { int x = new B().Y; string env = ".env"; }\n'),
    ),
    "gopls": (
        {"go.mod": "module a\n\ngo 1.19\n", "b.go": 'package a\n\nvar b = "s"\n'},
        ("a.go", 'package a\n\nimport "net/http"\n\nvar x int = b\nvar _ = http.Get\n'),
    ),
}


@pytest.mark.parametrize("server", [one for one in RIGHT if one != "gopls" or often(0, 1)])
def test_a_confined_server_finds_what_it_finds_unconfined(folder: Path, server: str) -> None:
    more, (name, text) = RIGHT[server]
    found = []
    for confined in (False, True):
        tree = Tree(folder, server, confined=confined)
        try:
            for other, content in {**more, name: text}.items():
                tree.write(other, content)
            report = tree.report(name)[name]
        finally:
            tree.close()
        assert report.fresh, report.reason
        found.append([(one.start, one.code, one.message) for one in report.diagnostics])
    assert found[0] == found[1]
    assert found[0]
