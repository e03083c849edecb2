"""Which files a TypeScript project takes, by its settings file."""

from __future__ import annotations

import time

import pytest

from filepact_diagnostics.semantic.tsconfig import read_commented, read_project_files

CASES: dict[str, tuple[dict[str, str], dict[str, bool]]] = {
    "nothing said": (
        {"/p/tsconfig.json": "{}"},
        {
            "/p/a.ts": True,
            "/p/deep/er/b.tsx": True,
            "/p/a.js": False,
            "/p/node_modules/x/a.ts": False,
            "/p/deep/node_modules/x/a.ts": False,
            "/q/a.ts": False,
        },
    ),
    "include": (
        {"/p/tsconfig.json": '{"include": ["src", "tests/*.ts", "lib/**/*.d.ts"]}'},
        {
            "/p/src/a.ts": True,
            "/p/src/deep/a.ts": True,
            "/p/tests/a.ts": True,
            "/p/tests/deep/a.ts": False,
            "/p/lib/deep/a.d.ts": True,
            "/p/lib/a.ts": False,
            "/p/other.ts": False,
            "/p/srcs/a.ts": False,
        },
    ),
    "files alone": (
        {"/p/tsconfig.json": '{"files": ["main.ts", "./data.json"]}'},
        {"/p/main.ts": True, "/p/data.json": True, "/p/a.ts": False},
    ),
    "exclude": (
        {"/p/tsconfig.json": '{"exclude": ["**/*.test.ts", "made"]}'},
        {"/p/a.ts": True, "/p/x/a.test.ts": False, "/p/made/a.ts": False},
    ),
    "what is built": (
        {"/p/tsconfig.json": '{"compilerOptions": {"outDir": "./out"}}'},
        {"/p/out/a.ts": False, "/p/a.ts": True},
    ),
    "scripts too": (
        {"/p/tsconfig.json": '{"compilerOptions": {"allowJs": true}}'},
        {"/p/a.js": True, "/p/a.mjs": True},
    ),
    "scripts alone": ({"/p/jsconfig.json": "{}"}, {"/p/a.js": True, "/p/a.ts": True}),
    "extends": (
        {
            "/p/app/tsconfig.json": '{"extends": "../base", "compilerOptions": {"strict": true}}',
            "/p/base.json": '{"include": ["shared/**/*"], "compilerOptions": {"allowJs": true}}',
        },
        {"/p/shared/a.js": True, "/p/app/a.ts": False},
    ),
    "extends several": (
        {
            "/p/tsconfig.json": '{"extends": ["./one.json", "./two.json", "@a/package"]}',
            "/p/one.json": '{"include": ["one"]}',
            "/p/two.json": '{"include": ["two"]}',
        },
        {"/p/one/a.ts": False, "/p/two/a.ts": True},
    ),
    "extends itself": ({"/p/tsconfig.json": '{"extends": "./tsconfig.json"}'}, {"/p/a.ts": True}),
    "comments": (
        {
            "/p/tsconfig.json": '\ufeff// a\n{ /* "x": */ "include": ["s//c", "a,]b"], // ]\n'
            '"files": ["m.ts",],\n}'
        },
        {"/p/s/c/a.ts": True, "/p/m.ts": True, "/p/a,]b/x.ts": True},
    ),
    "odd values": (
        {"/p/tsconfig.json": '{"include": [1, "a[b]"], "files": "x", "compilerOptions": 3}'},
        {"/p/a[b]/x.ts": True, "/p/ab/x.ts": False},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_project_takes_the_files_that_its_settings_say(case: str) -> None:
    files, expected = CASES[case]
    project = read_project_files(next(iter(files)), files.get)
    assert project is not None
    assert {path: project.includes(path) for path in expected} == expected
    assert set(files) <= set(project.inputs)


@pytest.mark.parametrize("text", ["", "[]", "{", '"x"', "{'a': 1}", "[" * 100_000])
def test_what_cannot_be_understood_is_no_project(text: str) -> None:
    assert read_project_files("/p/tsconfig.json", {"/p/tsconfig.json": text}.get) is None
    assert read_project_files("/p/tsconfig.json", {}.get) is None


def test_other_projects_are_named() -> None:
    text = '{"files": [], "references": [{"path": "./a"}, {"path": "b/x.json"}, {}, 1]}'
    project = read_project_files("/p/tsconfig.json", {"/p/tsconfig.json": text}.get)
    assert project is not None
    assert project.others == ("/p/a/tsconfig.json", "/p/b/x.json")


def test_hostile_patterns_and_texts_take_no_time() -> None:
    began = time.process_time()
    glob = "/".join(["**", "*a*a*a*a*b"] * 9)
    text = '{"include": ["' + glob + '"]}'
    project = read_project_files("/p/tsconfig.json", {"/p/tsconfig.json": text}.get)
    assert project is not None
    assert not project.includes("/p/" + "a" * 60 + "/" + "/".join(["aaaa"] * 60) + "/x.ts")
    for noise in (
        "/* " * 50_000,
        ",/* */" * 30_000,
        "," * 100_000,
        ", " * 50_000,
        '"' * 100_000,
        ",/" * 50_000,
    ):
        with pytest.raises(ValueError):
            read_commented(noise)
    assert time.process_time() - began < 20
