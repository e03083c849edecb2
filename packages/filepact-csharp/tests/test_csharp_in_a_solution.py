"""What agents are told of C#: how far an answer goes stands in each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filepact_diagnostics.lsp.pool import ServerPool
from project_tree import sdk
from tests.servers.csharp_toolchain import toolchain_or_skip
from tests.servers.real_servers import locate, server
from tests.servers.solution_world import World, served

if TYPE_CHECKING:
    from collections.abc import Iterator

MANY = 200
GIVEN = """public class Shared { }
class Given
{
    internal int Size => Count();
    int Count() { return 1; }
}
"""
_PACKAGE = '<ItemGroup><PackageReference Include="Pack" Version="1" /></ItemGroup>'


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    toolchain_or_skip()
    servers = [server("filepact-csharp"), server("csharp-projects")]
    pool = ServerPool(servers, {"PATH": os.environ["PATH"]}, locate)
    base = tmp_path_factory.mktemp("told")
    try:
        with served(base, pool) as made:
            made.put(
                "App/App.csproj", sdk("<PropertyGroup><OutputType>Exe</OutputType></PropertyGroup>")
            )
            made.put("App/Program.cs", "public class Program { static void Main() { } }\n")
            made.put("Many/Many.csproj", sdk())
            made.put("Many/Given.cs", GIVEN)
            made.put(
                "Many/Between.cs", "static class Between { internal static Given It() => new(); }\n"
            )
            for number in range(MANY):
                made.put(
                    f"Many/User{number}.cs",
                    f"class User{number} {{ int n = Between.It().Size; }}\n",
                )
            reference = '<ItemGroup><ProjectReference Include="../Many/Many.csproj" /></ItemGroup>'
            made.put("Near/Near.csproj", sdk(reference))
            made.put("Near/Uses.cs", "class Uses { Shared s = new(); }\n")
            made.put("Lacking/Lacking.csproj", sdk(_PACKAGE))
            made.put("Lacking/One.cs", "using Pack;\nclass One : FromPack { }\n")
            yield made
    finally:
        pool.close()


def test_a_program_that_loses_its_entry_point_is_told(world: World) -> None:
    data = world.data("write_file", filePath="App/Program.cs", content="public class Program { }\n")
    found = data["workspaceUpdate"]["diagnostics"]
    assert [one["id"] for one in found["new"]] == ["CS5001"]


def test_a_file_of_no_project_is_not_said_to_be_without_errors(world: World) -> None:
    text = 'class X { int a = "s"; }\n'
    data = world.data("write_file", filePath="tools/X.cs", content=text, createIfMissing=True)
    update = data["workspaceUpdate"]
    found = update["diagnostics"]  # of others, which the file might concern
    assert found is None or (found["total"] is None and not found["complete"])
    assert "no project includes X.cs" in update["message"]
    world.put("tools/Y.cs", text)
    told = world.data("get_diagnostics", filePath="tools/Y.cs")
    assert not told["fresh"]
    assert not told["complete"]
    assert "no project includes Y.cs" in told["message"]


def test_what_was_not_restored_is_said_with_each_answer(world: World) -> None:
    text = "using Pack;\nclass One : FromPack { int n = true; }\n"
    data = world.data("write_file", filePath="Lacking/One.cs", content=text)
    update = data["workspaceUpdate"]
    assert "Pack" in update["message"]
    found = update["diagnostics"]
    assert not found["complete"]
    assert [one["id"] for one in found["new"] if one["severity"] == "error"] == ["CS0029"]
    told = world.data("get_diagnostics", filePath="Lacking/One.cs")
    assert told["fresh"]
    assert not told["complete"]
    assert "Pack" in told["message"]
    loaded = world.data("load")
    assert loaded["approximate"]
    assert any("Pack" in one for one in loaded["messages"])


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("return 1;", "return 1 + 1;", []),
        ("return 1;", 'return "1";', ["Many/Given.cs"]),
        ("int Size", "int Extent", [f"Many/User{number}.cs" for number in range(MANY)]),
        ("public class Shared", "class Shared", ["Near/Uses.cs"]),
    ],
)
def test_an_answer_about_a_large_project_is_complete_without_asking_about_each_file(
    world: World, old: str, new: str, told: list[str]
) -> None:
    world.data("get_diagnostics", filePath="Many/Given.cs")  # the server runs
    text = GIVEN.replace(old, new)
    data = world.data("write_file", filePath="Many/Given.cs", content=text)
    found = data["workspaceUpdate"]["diagnostics"]
    assert found["complete"] is (len(told) < MANY)
    files = sorted({os.path.relpath(one["filePath"], world.root) for one in found["new"]})
    assert files == told if len(told) < MANY else set(files) < set(told)


def test_a_project_file_is_judged_with_the_files_of_its_projects(world: World) -> None:
    data = world.data("write_file", filePath="Near/Near.csproj", content=sdk())
    update = data["workspaceUpdate"]
    assert update["inWorkspaceAfter"]
    found = update["diagnostics"]
    assert found["complete"]
    assert [(Path(one["filePath"]).name, one["id"]) for one in found["new"]] == [
        ("Uses.cs", "CS0246")
    ]
    broken = world.data("write_file", filePath="Near/Near.csproj", content="<Project>")
    new = broken["workspaceUpdate"]["diagnostics"]["new"]
    assert ("Near.csproj", "MSB4025") in [(Path(one["filePath"]).name, one["id"]) for one in new]
