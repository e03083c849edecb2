"""Which files are in the workspace, before a change and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.servers.fakes import fake
from tests.servers.real_servers import server
from tests.servers.scene import AGENT, Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact_diagnostics.semantic.updates import WorkspaceUpdate

EVERYTHING = {f"*.{one}": one for one in ("py", "cs", "ts", "js", "c", "h")}
PROJECT = """<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Remove="Old/**" /></ItemGroup>
</Project>
"""
TREES: dict[str, dict[str, str]] = {
    "ignore files": {".gitignore": "made/\n*.tmp.py\n", "src/a.py": "", "made/a.py": ""},
    "C#": {"App/App.csproj": PROJECT, "App/A.cs": "class A {}\n", "Loose.cs": "class L {}\n"},
    "TypeScript": {
        "tsconfig.json": '{"include": ["src"]} // sources',
        "src/a.ts": "import '../lib/used.js';\n",
        "lib/used.ts": "export {};\n",
        "lib/lost.ts": "export {};\n",
    },
    "several TypeScript projects": {
        "tsconfig.json": '{"files": [], "references": [{"path": "one"}]}',
        "one/tsconfig.json": '{"include": ["*.ts", "../common/*.ts"]}',
    },
    "C": {
        "build/compile_commands.json": '[{"directory": "ROOT/build", "file": "../a.c"}]',
        "a.c": "",
        "b.c": "",
    },
    "nothing": {},
}
CASES = [
    ("ignore files", "src/new.py", True),
    ("ignore files", "made/new.py", False),
    ("ignore files", "src/new.tmp.py", False),
    ("C#", "App/B.cs", True),
    ("C#", "App/Old/B.cs", False),
    ("C#", "App/obj/B.cs", False),
    ("C#", "Elsewhere/B.cs", False),
    ("TypeScript", "src/deep/b.ts", True),
    ("TypeScript", "lib/other.ts", False),
    ("TypeScript", "src/b.js", False),
    ("several TypeScript projects", "one/a.ts", True),
    ("several TypeScript projects", "common/a.ts", True),
    ("several TypeScript projects", "two/a.ts", False),
    ("C", "new.c", False),
    ("C", "new.h", True),
    ("nothing", "new.c", True),
    ("nothing", "new.ts", True),
    ("nothing", "New.cs", True),
    ("nothing", "new.txt", False),
]


@pytest.fixture
def scene_of(tmp_path: Path) -> Iterator[Callable[[str], Scene]]:
    scenes: list[Scene] = []

    def make(tree: str) -> Scene:
        root = str(tmp_path / str(len(scenes)) / "deep/enough/project")
        files = {name: text.replace("ROOT", root) for name, text in TREES[tree].items()}
        servers = [fake(files=EVERYTHING)]
        if tree in ("C#", "nothing"):
            servers.append(server("csharp-projects"))
        scenes.append(Scene(tmp_path / str(len(scenes)), servers, files))
        return scenes[-1]

    yield make
    for one in scenes:
        one.close()


def sides(update: WorkspaceUpdate) -> tuple[bool, bool]:
    return update.in_workspace_before, update.in_workspace_after


@pytest.mark.parametrize(("tree", "name", "member"), CASES)
def test_a_file_is_in_the_workspace_if_a_project_includes_it(
    tree: str, name: str, member: bool, scene_of: Callable[[str], Scene]
) -> None:
    scene = scene_of(tree)
    (scene.root / name).parent.mkdir(parents=True, exist_ok=True)
    assert sides(scene.write({name: "one\n"})) == (False, member)
    assert sides(scene.write({name: "two\n"})) == (member, member)
    assert sides(scene.foresee({name: "three\n"})) == (member, member)
    assert sides(scene.write({name: None})) == (member, False)


def test_what_a_project_imports_is_in_it(scene_of: Callable[[str], Scene]) -> None:
    scene = scene_of("TypeScript")
    assert sides(scene.write({"lib/used.ts": "export const a = 1;\n"})) == (True, True)
    assert sides(scene.write({"lib/lost.ts": "export const a = 1;\n"})) == (False, False)


def test_a_project_is_read_again_when_it_has_changed(scene_of: Callable[[str], Scene]) -> None:
    scene = scene_of("TypeScript")
    assert sides(scene.write({"lib/lost.ts": "export const a = 1;\n"})) == (False, False)
    scene.put("tsconfig.json", '{"include": ["src", "lib"]}')
    assert sides(scene.write({"lib/lost.ts": "export const a = 2;\n"})) == (True, True)


def test_a_project_that_comes_or_goes_counts(scene_of: Callable[[str], Scene]) -> None:
    scene = scene_of("C#")
    assert sides(scene.write({"Other/B.cs": "class B {}\n"})) == (False, False)
    scene.put("Other/Other.csproj", PROJECT)
    assert sides(scene.write({"Other/B.cs": "class B1 {}\n"})) == (True, True)
    scene.put("All.sln", "Microsoft Visual Studio Solution File, Format Version 12.00\n")
    assert sides(scene.write({"Other/B.cs": "class B2 {}\n"})) == (False, False)
    (scene.root / "All.sln").unlink()
    assert sides(scene.write({"Other/B.cs": "class B3 {}\n"})) == (True, True)


def test_projects_are_named_when_they_are_opened(scene_of: Callable[[str], Scene]) -> None:
    scene = scene_of("C#")
    loaded = scene.semantics.load(".")
    assert (loaded.kind, loaded.projects, loaded.files) == ("folder", ("App",), 2)
    assert scene.semantics.load("App/App.csproj").kind == "project"
    assert scene.semantics.reload().path == scene.path("App/App.csproj")
    broken = scene_of("C#")
    broken.put("App/App.csproj", "<Project>")
    assert broken.semantics.load(".").messages


def test_what_others_wrote_is_told_on_request(scene_of: Callable[[str], Scene]) -> None:
    scene = scene_of("ignore files")
    scene.write({"src/a.py": "fine\n"})
    scene.put("src/b.py", "wrong\n")
    scene.put("notes.txt", "words\n")
    scene.put("made/b.py", "ignored, and servers may read it\n")
    scene.put("made/notes.txt", "words\n")
    synced = scene.semantics.sync()
    assert set(synced.updated) == {scene.path("src/b.py"), scene.path("made/b.py")}
    assert synced.skipped == (scene.path("notes.txt"),)
    assert (synced.total, synced.reloaded) == (3, False)
    assert synced.revision_after == synced.revision_before + 3
    again = scene.semantics.sync()
    assert (again.total, again.revision_after) == (0, synced.revision_after)
    forced = scene.semantics.sync(force=True)
    assert set(forced.updated) == {
        scene.path(one) for one in ("src/a.py", "src/b.py", "made/a.py", "made/b.py")
    }


def test_everything_is_looked_at(scene_of: Callable[[str], Scene]) -> None:
    scene = scene_of("ignore files")
    scene.put("src/b.py", "wrong\nwrong\n")
    surveyed = scene.semantics.survey(session=AGENT)
    assert surveyed.complete
    assert sum(len(one.diagnostics) for one in surveyed.reports) == 2
    (provider,) = scene.semantics.status()
    assert provider.program is not None
    assert [one.state for one in provider.running] == ["ready"]


ABOVE = {
    # Server, files beneath the root, settings above it, what takes their place within it.
    "ty": ({"a.py": "x: int = 1\n"}, {"pyproject.toml": ""}, {"ty.toml": ""}),
    "basedpyright": (
        {"a.py": "x: int = 1\n", "pyproject.toml": ""},
        {"pyrightconfig.json": "{}\n"},
        {"pyrightconfig.json": "{}\n"},
    ),
    "typescript": (
        {"src/a.ts": "let x: number = 1;\n", "tsconfig.json": '{"extends": "../base.json"}\n'},
        {"base.json": "{}\n"},
        {"tsconfig.json": '{"extends": "./base.json"}\n', "base.json": "{}\n"},
    ),
    "ruff": ({"sub/a.py": "x = 1\n"}, {"ruff.toml": ""}, {"sub/pyproject.toml": ""}),
}


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("name", ABOVE)
def test_where_settings_above_the_root_may_count_nothing_is_complete(
    tmp_path: Path, name: str
) -> None:
    beneath, above, instead = ABOVE[name]
    scene = Scene(tmp_path, [name], beneath)
    try:
        file = next(one for one in beneath if one.endswith((".py", ".ts")))
        (plain,) = scene.semantics.look([file], session=AGENT)
        assert (plain.fresh, plain.complete) == (True, name != "typescript")
        for one, text in above.items():
            (scene.root.parent / one).write_text(text)
        (limited,) = scene.semantics.look([file], session=AGENT)
        assert (limited.fresh, limited.complete) == (True, False)
        assert any(one in note for one in above for note in limited.notes)
        for one, text in instead.items():
            scene.put(one, text)
        (own,) = scene.semantics.look([file], session=AGENT)
        assert (own.fresh, own.complete, own.notes) == (True, True, ())
    finally:
        scene.close()
