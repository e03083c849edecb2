"""The toolset of a solution with real language servers behind a real server process."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from tests.faces.line_client import serving
from tests.servers.csharp_toolchain import FOLDER, toolchain_or_skip
from tests.servers.real_servers import server

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 120
SHOP = Path(__file__).resolve().parents[2] / "packages" / "filepact-csharp" / "tests" / "shop"

PROJECT = """\
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>net8.0</TargetFramework>
    <Nullable>enable</Nullable>
  </PropertyGroup>
  <ItemGroup>
    <Compile Remove="Drafts/**" />
  </ItemGroup>
</Project>
"""
SOLUTION = """\
Microsoft Visual Studio Solution File, Format Version 12.00
Project("{FAE04EC0-301F-11D3-BF4B-00C04F79EFBC}") = "MyProject", "MyProject.csproj", "{11111111-1111-1111-1111-111111111111}"
EndProject
Global
EndGlobal
"""
OLD = "namespace MyProject;\n\npublic class Program\n{\n    public static void Main() { }\n}\n"
NEW = "namespace MyProject;\n\npublic class Program { }"


class Served:
    """A solution behind a server process, and a client of it."""

    def __init__(self, root: Path, path: str = "", settings: str = "") -> None:
        self.root = root
        home = root.parent / "home"
        (home / "data" / "filepact").mkdir(parents=True)
        (home / "data" / "filepact" / "csharp").symlink_to(FOLDER)
        (home / "settings.toml").write_text(f"{settings}\n")
        beside = str(Path(sys.executable).parent)
        environment = {
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PATH": f"{beside}:{os.environ['PATH']}",
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CONFIG_DIRS": str(home),
            "FILEPACT_CONFIG": str(home / "settings.toml"),
        }
        words = ("mcp", "--toolset", "solution", "--state", root.parent / "state", root / path)
        self._stack = ExitStack()
        self.process, self.client = self._stack.enter_context(serving(*words, env=environment))
        self.client.shake_hands()

    def answer(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.client.call(tool, **arguments)["structuredContent"]

    def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = self.answer(tool, **arguments)
        assert answer["error"] is None, answer["error"]
        return answer["data"]

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Served]:
    """The project of the document's examples, its compiler at work."""
    toolchain_or_skip()
    root = tmp_path / "MyProject"
    root.mkdir()
    (root / "MyProject.sln").write_text(SOLUTION)
    (root / "MyProject.csproj").write_text(PROJECT)
    (root / "Program.cs").write_text(OLD)
    served = Served(root, "MyProject.sln")
    loaded = served.data("load", waitSeconds=PATIENCE)
    assert (loaded["loadedKind"], loaded["ready"]) == ("solution", True), loaded
    yield served
    served.close()


def test_the_examples_of_the_document_are_answered_field_for_field(project: Served) -> None:
    path = str(project.root / "Program.cs")
    header = f"--- {path}\n+++ {path}\n@@ "

    preview = project.answer("write_file", filePath=path, content=NEW)
    data = preview["data"]
    assert data["unifiedDiff"].startswith(header)
    expected = {
        "filePath": path,
        "changed": True,
        "applied": False,
        "created": False,
        "filesChanged": 1,
        "unifiedDiff": data["unifiedDiff"],
        "changedFiles": [{"filePath": path, "changeCount": 1, "diff": data["unifiedDiff"]}],
    }
    assert {name: data[name] for name in expected} == expected
    update = data["workspaceUpdate"]
    expected = {
        "kind": "preview",
        "updated": False,
        "inWorkspaceBefore": True,
        "inWorkspaceAfter": True,
        "message": None,
    }
    assert {name: update[name] for name in expected} == expected
    assert (preview["success"], preview["error"]) == (True, None)
    assert {name: preview["meta"][name] for name in ("cancelled", "timedOut", "timeoutMs")} == {
        "cancelled": False,
        "timedOut": False,
        "timeoutMs": 1_200_000,
    }
    found = update["diagnostics"]
    assert (found["fresh"], found["complete"]) == (True, True)
    assert Path(path).read_text() == OLD

    applied = project.data("write_file", filePath=path, content=NEW, applyChanges=True)
    assert (applied["applied"], applied["changed"], applied["created"]) == (True, True, False)
    update = applied["workspaceUpdate"]
    assert (update["kind"], update["updated"], update["message"]) == ("updated", True, None)
    assert update["servers"][0]["confirmedBy"] in ("pull", "version")
    assert Path(path).read_text() == NEW

    created = project.data(
        "write_file",
        filePath="src/NewType.cs",
        content="namespace MyProject;\n\npublic class NewType { }",
        applyChanges=True,
        createIfMissing=True,
        pathStyle="relative",
    )
    assert (created["applied"], created["created"]) == (True, True)
    assert created["filePath"] == "src/NewType.cs"
    update = created["workspaceUpdate"]
    assert (update["kind"], update["updated"]) == ("added", True)
    assert (update["inWorkspaceBefore"], update["inWorkspaceAfter"]) == (False, True)


def test_what_a_change_would_break_is_known_before_it_is_made(project: Served) -> None:
    project.data(
        "write_file",
        filePath="User.cs",
        content="namespace MyProject;\n\npublic class User\n{\n    Program it = new();\n}\n",
        createIfMissing=True,
        applyChanges=True,
    )
    text = OLD.replace("class Program", "class Other")
    sent = {"filePath": "Program.cs", "content": text, "pathStyle": "relative"}
    before = project.data("write_file", **sent)["workspaceUpdate"]["diagnostics"]
    assert {(one["filePath"], one["id"], one["line"]) for one in before["new"]} == {
        ("User.cs", "CS0246", 5)
    }
    assert project.data("get_diagnostics")["counts"]["error"] == 0
    after = project.data("write_file", **sent, applyChanges=True)["workspaceUpdate"]["diagnostics"]
    assert [one["id"] for one in after["new"]] == ["CS0246"]
    everything = project.data("get_diagnostics", idPrefix="CS02", pathStyle="relative")
    assert [one["filePath"] for one in everything["diagnostics"]] == ["User.cs"]
    fixed = project.data("write_file", filePath="Program.cs", content=OLD, applyChanges=True)
    assert fixed["workspaceUpdate"]["diagnostics"]["fixedCount"] == 1


@pytest.mark.slow
def test_a_file_that_the_project_leaves_out_is_written_and_not_in_the_workspace(
    project: Served,
) -> None:
    sent = {"content": "namespace MyProject;\n\npublic class Later { }\n", "createIfMissing": True}
    data = project.data("write_file", filePath="Drafts/Later.cs", **sent, applyChanges=True)
    assert (data["applied"], data["created"]) == (True, True)
    assert data["workspaceUpdate"]["inWorkspaceAfter"] is False
    assert any("project" in one for one in data["hints"]["nextSteps"])


@pytest.mark.slow
def test_several_projects_of_a_solution_are_one_workspace(tmp_path: Path) -> None:
    toolchain_or_skip()
    root = tmp_path / "Shop"
    shutil.copytree(SHOP, root)
    served = Served(root, "Shop.sln")
    try:
        loaded = served.data("load", waitSeconds=PATIENCE)
        assert loaded["ready"] is True
        assert {"Shop.Core", "Shop.App"} <= set(loaded["projects"])
        money = (root / "Shop.Core" / "Money.cs").read_text()
        text = money.replace("CompareTo(Money other)", "ComparedTo(Money other)")
        update = served.data("write_file", filePath="Shop.Core/Money.cs", content=text)[
            "workspaceUpdate"
        ]
        assert update["diagnostics"]["fresh"] is True
        assert "CS0535" in {one["id"] for one in update["diagnostics"]["new"]}
        assert served.data("get_diagnostics")["counts"]["error"] == 0
    finally:
        served.close()


# -- Python ---------------------------------------------------------------------------------


def test_a_folder_of_python_is_a_workspace_too(tmp_path: Path) -> None:
    server("ty")
    server("ruff")
    root = tmp_path / "work"
    root.mkdir()
    (root / "lib.py").write_text("def double(n: int) -> int:\n    return n * 2\n")
    (root / "use.py").write_text("from lib import double\n\nprint(double(21))\n")
    # One of the servers for Python is enough here, and the quicker one.
    served = Served(root, settings='[servers.basedpyright]\nfiles = {"*.none" = "none"}')
    try:
        loaded = served.data("load", waitSeconds=PATIENCE)
        assert {one["name"] for one in loaded["servers"]} >= {"ruff"}
        assert loaded["ready"] is True
        text = "def double(n: str) -> str:\n    return n * 2\n"
        sent = {"filePath": "lib.py", "content": text, "pathStyle": "relative"}
        shown = served.data("write_file", **sent)["workspaceUpdate"]["diagnostics"]
        assert {one["filePath"] for one in shown["new"]} == {"use.py"}
        done = served.data("write_file", **sent, applyChanges=True)["workspaceUpdate"]
        assert (done["kind"], done["updated"]) == ("updated", True)
        assert {one["filePath"] for one in done["diagnostics"]["new"]} == {"use.py"}
        (root / "use.py").write_text("print()\n")
        synced = served.data("sync", pathStyle="relative")
        assert synced["updated"] == ["use.py"]
        assert served.data("get_diagnostics", filePath="use.py")["counts"]["error"] == 0
    finally:
        served.close()


PYTHON = {
    "pyproject.toml": '[project]\nname = "p"\nversion = "1"\n',
    "lib.py": "def give() -> int:\n    return 1\n",
    **{f"use{n}.py": f"from lib import give\n\nx{n} = give()\n" for n in range(20)},
}


def test_a_rename_over_many_files_is_one_operation_that_a_person_undoes(tmp_path: Path) -> None:
    server("ty")
    root = tmp_path / "project"
    root.mkdir()
    for name, text in PYTHON.items():
        (root / name).write_text(text)
    served = Served(root)
    try:
        sent = {"filePath": "lib.py", "name": "give", "newName": "hand"}
        shown = served.data("rename_symbol", **sent)
        assert (shown["applied"], shown["filesChanged"]) == (False, 21)
        assert (root / "lib.py").read_text() == PYTHON["lib.py"]
        done = served.data("rename_symbol", **sent, applyChanges=True)
        assert (done["applied"], done["filesChanged"]) == (True, 21)
        assert done["workspaceUpdate"]["diagnostics"]["newCount"] == 0
        for name, text in PYTHON.items():
            assert (root / name).read_text() == text.replace("give", "hand")
        uses = served.data("find_references", filePath="lib.py", name="hand")
        assert (uses["paging"]["total"], uses["files"]) == (41, 21)
    finally:
        served.close()
    with open_workspace([str(root)], state_dir=str(tmp_path / "state")) as workspace:
        workspace.undo(Session("p", Actor("human", "person")), done["operation"])
    assert {one.name: one.read_text() for one in root.iterdir() if one.is_file()} == PYTHON


def test_where_no_server_renames_in_a_language_it_is_said(project: Served) -> None:
    (project.root / "page.zig").write_text("const Page = 1;\n")
    sent = {"filePath": "page.zig", "name": "Page", "newName": "Other"}
    refused = project.answer("rename_symbol", **sent)["error"]
    assert refused["code"] == "NO_SERVER"
    assert ".zig" in refused["message"]
