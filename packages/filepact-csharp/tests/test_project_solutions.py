"""Solutions and folders: which projects belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from project_tree import ProjectTree, sdk

if TYPE_CHECKING:
    from pathlib import Path

CSHARP = "FAE04EC0-301F-11D3-BF4B-00C04F79EFBC"
FOLDER = "2150E333-8FDC-42A3-9474-1A3956D46DE8"


@pytest.fixture
def tree(tmp_path: Path) -> ProjectTree:
    found = ProjectTree(tmp_path)
    for name in ("a", "b", "c"):
        found.put(f"src/{name}/{name}.csproj", sdk())
        found.put(f"src/{name}/{name.upper()}.cs")
    return found


def old_form(*paths: str) -> str:
    """A solution file of the old form."""
    lines = [
        "\ufeff",
        "Microsoft Visual Studio Solution File, Format Version 12.00",
        "# Visual Studio Version 17",
    ]
    lines += [
        f'Project("{{{FOLDER}}}") = "src", "src", "{{00000000-0000-0000-0000-000000000000}}"',
        "EndProject",
    ]
    for path in paths:
        lines += [
            f'Project("{{{CSHARP}}}") = "x", "{path}", "{{00000000-0000-0000-0000-000000000001}}"',
            "EndProject",
        ]
    return "\r\n".join([*lines, "Global", "EndGlobal", ""])


def new_form(*paths: str) -> str:
    """A solution file of the new form."""
    entries = "".join(f'<Folder Name="/x/"><Project Path="{path}" /></Folder>\n' for path in paths)
    return f"<Solution>\n<Configurations />\n{entries}</Solution>\n"


@pytest.mark.parametrize(("ending", "form"), [("sln", old_form), ("slnx", new_form)])
def test_a_solution_names_its_projects_in_order(ending, form, tree: ProjectTree) -> None:
    tree.put(
        f"All.{ending}",
        form("src\\b\\b.csproj", "src/a/a.csproj", "src/b/b.csproj", "other.vbproj"),
    )
    solution = tree.read(f"All.{ending}")
    assert solution.kind == "solution"
    assert [one.name for one in solution.projects] == ["b", "a"]
    assert solution.inputs[0] == f"{tree.root}/All.{ending}"
    assert solution.all_messages() == ()
    assert not solution.approximate


def test_a_folder_is_read_by_the_solution_that_lies_in_it(tree: ProjectTree) -> None:
    tree.put("Some.sln", old_form("src\\a\\a.csproj"))
    solution = tree.read()
    assert (solution.kind, [one.name for one in solution.projects]) == ("solution", ["a"])


def test_a_folder_with_two_solutions_has_the_projects_of_both(tree: ProjectTree) -> None:
    tree.put("One.sln", old_form("src\\a\\a.csproj"))
    tree.put("Two.slnx", new_form("src/b/b.csproj"))
    solution = tree.read()
    assert (solution.kind, [one.name for one in solution.projects]) == ("folder", ["a", "b"])


def test_a_folder_without_a_solution_has_all_projects_below_it(tree: ProjectTree) -> None:
    tree.put("src/a/bin/Copy.csproj", sdk())
    tree.put("node_modules/x/x.csproj", sdk())
    solution = tree.read()
    assert (solution.kind, [one.name for one in solution.projects]) == ("folder", ["a", "b", "c"])


def test_a_solution_further_down_is_not_the_folders(tree: ProjectTree) -> None:
    tree.put("src/Some.sln", old_form("a\\a.csproj"))
    assert len(tree.read().projects) == 3
    assert len(tree.read("src").projects) == 1


def test_a_project_that_is_only_referred_to_comes_after_all_others(tree: ProjectTree) -> None:
    body = '<ItemGroup><ProjectReference Include="../c/c.csproj" /></ItemGroup>'
    tree.put("src/a/a.csproj", sdk(body))
    tree.put("Some.sln", old_form("src\\a\\a.csproj", "src\\b\\b.csproj"))
    assert [one.name for one in tree.read().projects] == ["a", "b", "c"]


def test_a_project_knows_the_folder_of_its_solution(tree: ProjectTree) -> None:
    tree.put(
        "Common.props",
        "<Project><PropertyGroup><Nullable>enable</Nullable></PropertyGroup></Project>",
    )
    tree.put("src/a/a.csproj", sdk('<Import Project="$(SolutionDir)Common.props" />'))
    tree.put("Some.sln", old_form("src\\a\\a.csproj"))
    (project,) = tree.read().projects
    assert (project.nullable, project.messages) == ("enable", ())


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("Some.sln", "no solution at all", 0),
        ("Some.sln", "", 0),
        ("Some.slnx", "<Solution>\n<Project Path=", 2),
        ("Some.slnx", "", 1),
        ("Some.sln", old_form("gone\\gone.csproj"), 6),
        ("Some.slnx", new_form("gone/gone.csproj"), 3),
        ("Some.sln", old_form("..\\..\\outside.csproj"), 6),
    ],
)
def test_what_is_wrong_with_a_solution_is_told_with_its_place(
    name: str, text: str, line: int, tree: ProjectTree
) -> None:
    path = tree.put(name, text)
    solution = tree.read(name)
    assert solution.projects == ()
    assert solution.approximate
    assert [(one.path, one.line) for one in solution.messages] == [(path, line)]


def test_a_solution_that_is_not_there_is_told(tree: ProjectTree) -> None:
    solution = tree.read("Gone.sln")
    assert [one.path for one in solution.messages] == [f"{tree.root}/Gone.sln"]


def test_sources_without_any_project_are_taken_for_one(tmp_path: Path) -> None:
    tree = ProjectTree(tmp_path)
    for name in ("A.cs", "x/B.cs", "x/obj/C.cs", ".git/D.cs"):
        tree.put(name)
    solution = tree.read()
    (project,) = solution.projects
    assert solution.kind == "loose"
    assert tree.sources(project) == ["A.cs", "x/B.cs"]
    assert project.includes(f"{tmp_path}/y/New.cs")
    assert project.approximate
    assert project.messages


def test_a_folder_without_sources_has_no_project(tmp_path: Path) -> None:
    solution = ProjectTree(tmp_path).read()
    assert (solution.kind, solution.projects) == ("loose", ())
