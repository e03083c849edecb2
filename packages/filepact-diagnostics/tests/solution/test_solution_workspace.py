"""load, reload, sync, server_status, and diagnostics of everything."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from filepact.domain.operation import Actor, Approval
from filepact.tools.engine import TOOLS
from filepact_diagnostics.lsp.pool import ServerPool
from filepact_diagnostics.lsp.spec import parse_servers
from filepact_diagnostics.solution import SOLUTION_TOOLS
from tests.servers.fakes import fake, pool_of
from tests.servers.real_servers import locate, server
from tests.servers.solution_world import served, world

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.solution_world import World

GOOD = "one\ntwo\n"
BAD = "one\nthis is wrong\nand wrong\n"
MOST_CHARACTERS = 7_150


@pytest.fixture
def it(tmp_path: Path) -> Iterator[World]:
    with served(tmp_path, pool_of(fake())) as made:
        made.put("a.x", GOOD)
        made.put("sub/b.x", BAD)
        made.put("notes.txt", "wrong\n")
        yield made


def test_the_toolset_has_its_tools_with_levels_and_tiers() -> None:
    assert {one.name: (one.level, one.tier, one.kind) for one in SOLUTION_TOOLS} == {
        "write_file": ("moderate", "essential", "writes"),
        "rename_symbol": ("moderate", "essential", "writes"),
        "find_references": ("safe", "essential", "reads"),
        "code_action": ("moderate", "standard", "writes"),
        "get_diagnostics": ("safe", "essential", "reads"),
        "load": ("safe", "standard", "reads"),
        "reload": ("safe", "standard", "reads"),
        "sync": ("safe", "standard", "reads"),
        "server_status": ("safe", "standard", "reads"),
    }
    assert {one.name for one in SOLUTION_TOOLS} & {one.name for one in TOOLS} == {"write_file"}


def test_the_description_of_all_tools_stays_small() -> None:
    said = sum(
        len(one.name) + len(one.description) + len(str(one.schema)) for one in SOLUTION_TOOLS
    )
    assert said < MOST_CHARACTERS


def test_loading_starts_the_servers_and_waits_for_them(it: World) -> None:
    data = it.data("load")
    assert (data["loadedKind"], data["loadedPath"], data["ready"]) == ("folder", str(it.root), True)
    assert data["files"] == 2
    (server,) = data["servers"]
    assert (server["name"], server["fresh"], server["files"]) == ("fake", True, 2)
    (running,) = it.data("server_status")["servers"][0]["running"]
    assert running["state"] == "ready"


@pytest.mark.parametrize("tool", ["load", "reload"])
def test_paths_of_what_is_loaded_have_the_style_that_was_asked_for(it: World, tool: str) -> None:
    data = it.data(tool, pathStyle="relative")
    assert (data["loadedPath"], data["root"]) == (".", ".")


def test_a_reload_starts_the_servers_anew(it: World) -> None:
    it.data("load")
    before = it.data("server_status")["servers"][0]["running"][0]["pid"]
    data = it.data("reload")
    assert data["ready"] is True
    after = it.data("server_status")["servers"][0]["running"][0]["pid"]
    assert before != after


LOADING = [
    ({"solutionPath": "gone.sln"}, "NOT_FOUND"),
    ({"solutionPath": "../other"}, "PATH_BLOCKED"),
    ({"waitSeconds": -1}, "INVALID_PARAMS"),
    ({"take": -1}, "INVALID_PARAMS"),
]


@pytest.mark.parametrize(("sent", "code"), LOADING)
def test_what_cannot_be_loaded_is_refused(it: World, sent: dict[str, Any], code: str) -> None:
    assert it.code("load", **sent) == code


def test_what_others_wrote_is_told_and_named(it: World) -> None:
    it.data("load")
    it.put("a.x", BAD)
    it.put("new.x", GOOD)
    it.put("notes.txt", "changed\n")
    data = it.data("sync", pathStyle="relative")
    assert sorted(data["updated"]) == ["a.x", "new.x"]
    assert data["skipped"] == ["notes.txt"]
    assert data["totalSynced"] == 3
    assert data["revisionAfter"] > data["revisionBefore"]
    assert (data["fallbackToReload"], data["fallbackReason"]) == (False, None)
    again = it.data("sync")
    assert (again["updated"], again["skipped"], again["totalSynced"]) == ([], [], 0)
    assert again["revisionBefore"] == again["revisionAfter"] == data["revisionAfter"]


def test_everything_is_told_when_that_is_asked_for(it: World) -> None:
    it.data("load")
    page = it.data("sync", forceSync=True, take=1, pathStyle="relative")
    assert page["paging"] == {"skip": 0, "take": 1, "returned": 1, "total": 2}
    assert len(page["updated"]) == 1


def test_the_whole_solution_is_looked_at(it: World) -> None:
    data = it.data("get_diagnostics", pathStyle="relative")
    assert (data["scope"], data["fresh"], data["complete"]) == ("project", True, True)
    assert data["counts"]["error"] == 2
    assert {one["filePath"] for one in data["diagnostics"]} == {"sub/b.x"}
    assert data["servers"][0]["files"] == 2


def test_a_folder_is_no_file_and_the_answer_says_what_to_do(it: World) -> None:
    error = it.answer("get_diagnostics", filePath="sub")["error"]
    assert error["code"] == "NOT_A_FILE"
    assert "filePath" in error["hint"]


def test_servers_are_listed_with_what_they_do(tmp_path: Path) -> None:
    missing = fake()
    with served(tmp_path, ServerPool([missing], {}, lambda _name: None)) as it:
        assert it.data("server_status")["servers"] == []
        (server,) = it.data("server_status", includeMissing=True)["servers"]
        assert (server["name"], server["installed"], server["running"]) == ("fake", False, [])
        loaded = it.data("load")
        assert (loaded["ready"], loaded["servers"]) == (False, [])


def test_a_server_that_cannot_start_is_shown_with_the_reason(tmp_path: Path) -> None:
    orders = {"fail_starts": 99, "notes": str(tmp_path / "notes")}
    with served(tmp_path, pool_of(fake(orders)), budget=1.0) as it:
        it.put("a.x", GOOD)
        loaded = it.data("load", waitSeconds=1.0)
        assert loaded["ready"] is False
        assert loaded["servers"][0]["message"]
        (running,) = it.data("server_status")["servers"][0]["running"]
        assert running["state"] in ("waiting", "broken", "starting")
        assert it.data("sync")["totalSynced"] == 0


@pytest.mark.parametrize("tool", ["load", "reload", "sync", "server_status", "get_diagnostics"])
def test_without_servers_every_tool_answers_and_says_so(tmp_path: Path, tool: str) -> None:
    with world(tmp_path) as it:
        data = it.data(tool)
        said = [data.get("message"), data.get("fallbackReason"), *data.get("messages", [])]
        assert any(said)


def test_lists_of_a_server_of_which_only_differences_count_are_not_told(tmp_path: Path) -> None:
    with served(tmp_path, pool_of(fake(only_new=True))) as it:
        it.put("a.x", BAD)
        data = it.data("get_diagnostics", filePath="a.x")
        assert (data["diagnostics"], data["fresh"], data["complete"]) == ([], False, False)
        assert "fake" in data["message"]
        found = it.data("write_file", filePath="a.x", content=BAD + "wrong\n")["workspaceUpdate"]
        assert (found["diagnostics"]["newCount"], found["diagnostics"]["total"]) == (1, None)


# -- a policy about new errors --------------------------------------------------------------


def test_a_change_that_brings_errors_can_be_refused(tmp_path: Path) -> None:
    with served(tmp_path, pool_of(fake()), new_errors="deny") as it:
        it.put("a.x", GOOD)
        sent = {"filePath": "a.x", "content": BAD}
        assert it.data("write_file", **sent)["workspaceUpdate"]["diagnostics"]["newCount"] == 2
        assert it.code("write_file", **sent, applyChanges=True) == "NEW_ERRORS"
        assert it.held("a.x") == GOOD
        fine = it.data("write_file", filePath="a.x", content="fine\n", applyChanges=True)
        assert fine["workspaceUpdate"]["updated"] is True


def test_a_change_that_brings_errors_can_be_put_to_a_person(tmp_path: Path) -> None:
    with served(tmp_path, pool_of(fake()), new_errors="ask") as it:
        it.put("a.x", GOOD)
        data = it.data("write_file", filePath="a.x", content=BAD, applyChanges=True)
        assert (data["applied"], data["pending"]["rule"]) == (False, "new errors")
        assert data["workspaceUpdate"]["kind"] == "preview"
        assert data["workspaceUpdate"]["diagnostics"]["newCount"] == 2
        it.workspace.approve(data["pending"]["id"], Approval(Actor("person", "p")))
        assert it.held("a.x") == BAD
        assert it.data("get_diagnostics", filePath="a.x")["counts"]["error"] == 2


# -- C# projects ----------------------------------------------------------------------------

KIND = "{FAE04EC0-301F-11D3-BF4B-00C04F79EFBC}"
SOLUTION = "Microsoft Visual Studio Solution File, Format Version 12.00\n" + "".join(
    f'Project("{KIND}") = "{name}", "{path}", "{{0000000{number}-0000-0000-0000-000000000000}}"\n'
    "EndProject\n"
    for number, (name, path) in enumerate(
        {
            "App": "App\\App.csproj",
            "Broken": "Broken\\Broken.csproj",
            "Out": "..\\Out\\Out.csproj",
        }.items()
    )
)
APP = """\
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup>
  <ItemGroup><Compile Remove="Drafts/**" /></ItemGroup>
</Project>
"""


@pytest.fixture
def projects(tmp_path: Path) -> Iterator[World]:
    (tmp_path / "Out").mkdir()
    (tmp_path / "Out" / "Out.csproj").write_text(APP)
    # The program's place, where the pool is one of fakes that need none.
    found = server("csharp-projects")
    (found,) = parse_servers(
        {found.name: {"command": [str(locate(found.command[0])), *found.command[1:]]}}, [found]
    )
    pool = pool_of(fake(files={"*.cs": "csharp"}), found)
    with served(tmp_path, pool, name="All.sln") as made:
        made.put("All.sln", SOLUTION)
        made.put("App/App.csproj", APP)
        made.put("App/Program.cs", GOOD)
        made.put("Broken/Broken.csproj", "<Project>\n  <PropertyGroup>\n</Project>\n")
        yield made


def test_what_is_not_covered_and_what_is_broken_is_named(projects: World) -> None:
    data = projects.data("load", pathStyle="relative")
    assert (data["loadedKind"], data["loadedPath"]) == ("solution", "All.sln")
    assert "App" in data["projects"]
    assert data["approximate"] is True
    said = "\n".join(data["messages"])
    assert "Out" in said
    assert "outside" in said
    assert "Broken.csproj" in said
    broken = next(one for one in data["messages"] if "Broken.csproj" in one)
    assert ":3" in broken or "line 3" in broken


def test_a_file_that_no_project_includes_is_on_the_disk_and_not_in_the_workspace(
    projects: World,
) -> None:
    sent = {"content": GOOD, "createIfMissing": True, "applyChanges": True}
    inside = projects.data("write_file", filePath="App/New.cs", **sent)
    assert inside["workspaceUpdate"]["inWorkspaceBefore"] is False
    assert inside["workspaceUpdate"]["inWorkspaceAfter"] is True
    assert inside["workspaceUpdate"]["updated"] is True
    outside = projects.data("write_file", filePath="App/Drafts/New.cs", **sent)
    assert outside["applied"] is True
    assert outside["workspaceUpdate"]["inWorkspaceAfter"] is False
    assert outside["workspaceUpdate"]["updated"] is False
    assert outside["workspaceUpdate"]["kind"] == "none"
    assert "no project includes the file" in outside["workspaceUpdate"]["message"]
    assert any("project" in one for one in outside["hints"]["nextSteps"])
    again = projects.data("write_file", filePath="App/Drafts/New.cs", **sent)
    assert again["workspaceUpdate"]["inWorkspaceAfter"] is False


def test_a_project_file_that_changes_changes_what_is_in_the_workspace(projects: World) -> None:
    sent = {"filePath": "App/Drafts/New.cs", "content": GOOD, "createIfMissing": True}
    assert projects.data("write_file", **sent)["workspaceUpdate"]["inWorkspaceAfter"] is False
    projects.put("App/App.csproj", APP.replace("Drafts", "Nothing"))
    assert projects.data("write_file", **sent)["workspaceUpdate"]["inWorkspaceAfter"] is True


def test_a_new_file_that_breaks_others_is_taken_back(tmp_path: Path) -> None:
    environment = {"HOME": os.environ["HOME"], "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    pool = ServerPool([server("ty")], environment, locate)
    with served(tmp_path, pool, new_errors="deny") as it:
        it.put("use.py", "from core import double\n\nanswer: int = double(21)\n")
        sent = {"filePath": "core.py", "createIfMissing": True, "applyChanges": True}
        wrong = "def double(n: str) -> str:\n    return n\n"
        error = it.answer("write_file", **sent, content=wrong)["error"]
        assert (error["code"], "use.py" in error["message"]) == ("NEW_ERRORS", True), error
        assert "a preview lists" in error["hint"]
        assert not (it.root / "core.py").exists()
        right = wrong.replace("str", "int")
        assert it.data("write_file", **sent, content=right)["applied"]
        assert it.held("core.py") == right
