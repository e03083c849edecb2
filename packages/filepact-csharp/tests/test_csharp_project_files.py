"""What is wrong with project files, and what a change of one breaks in the files of its projects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from project_tree import ProjectTree, sdk
from talk import Talk

if TYPE_CHECKING:
    from collections.abc import Iterator

REFERENCE = '<ItemGroup><ProjectReference Include="../Lib/Lib.csproj" /></ItemGroup>'
USING = '<ItemGroup><Using Include="Nowhere" /></ItemGroup>'
SOURCE = '<ItemGroup><Compile Include="Gone.cs" /></ItemGroup>'
OLD = "<PropertyGroup><LangVersion>7.3</LangVersion><Nullable>enable</Nullable></PropertyGroup>"
APP = "App/App.csproj"
PROPS = "Directory.Build.props"
IMPLICIT = (
    "<Project><PropertyGroup>\n<ImplicitUsings>enable</ImplicitUsings>\n</PropertyGroup></Project>"
)


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    tree = ProjectTree(tmp_path_factory.mktemp("files"))
    tree.put(PROPS, IMPLICIT)
    tree.put("Lib/Lib.csproj", sdk())
    tree.put("Lib/Lib.cs", "namespace Lib { public class Given { } }\n")
    tree.put(APP, sdk(REFERENCE))
    tree.put("App/Use.cs", "class Use { Lib.Given g; List<int> list; }\n")
    entry = 'Project("{9A19103F-16F7-4668-BE54-9A1E7A4F7556}") = "A", "%s", "{00000000-0000-0000-0000-000000000000}"'
    head = "Microsoft Visual Studio Solution File, Format Version 12.00"
    tree.put("All.sln", "\n".join([head, entry % APP, entry % "Lib/Lib.csproj", "EndProject"]))
    made = Talk(tree.root)
    yield made
    made.kill()


def told(talk: Talk, name: str) -> list[tuple[str, int, int]]:
    """The code, severity and line of all that is wrong with a file."""
    return [
        (one["code"], one["severity"], one["range"]["start"]["line"]) for one in talk.items(name)
    ]


def test_right_project_files_are_without_fault_and_known(talk: Talk) -> None:
    for name in (APP, "Lib/Lib.csproj", "All.sln", PROPS):
        answer = talk.ask("textDocument/diagnostic", {"textDocument": {"uri": talk.uri(name)}})
        assert answer["items"] == []
        assert answer["filepact"]["known"]
    for name, known in {"Other.props": True, "Other.csproj": False}.items():
        answer = talk.ask("textDocument/diagnostic", {"textDocument": {"uri": talk.uri(name)}})
        assert answer["filepact"]["known"] is known  # no project reads them


@pytest.mark.parametrize(
    ("name", "text", "own", "users"),
    [
        (APP, sdk(), [], ["CS0246"]),
        (APP, sdk(REFERENCE.replace("Lib.c", "Gone.c")), [("MSB9008", 2, 2)], None),
        (APP, sdk(REFERENCE).replace("</Project>", ""), [("MSB4025", 1, 4)], None),
        (APP, "<Wrong />", [("MSB4068", 1, 0)], None),
        (APP, sdk(REFERENCE, framework="net8.o"), [("NETSDK1013", 1, 0)], None),
        (APP, sdk(REFERENCE + USING), [("CS0400", 1, 0)], []),
        (APP, sdk(REFERENCE + SOURCE), [("CS2001", 1, 0)], []),
        (APP, sdk(REFERENCE + OLD), [("CS8370", 1, 0), ("CS8630", 1, 0)], None),
        (APP, sdk(REFERENCE + '<Import Project="No.props" />'), [("MSB4019", 1, 2)], []),
        (PROPS, "<Project />", [], ["CS0246"]),
        (PROPS, "<Project><PropertyGroup></Project>", [("MSB4025", 1, 0)], None),
        ("All.sln", "nothing", [("MSB5010", 1, 0)], None),
    ],
)
def test_a_proposed_project_file_is_judged_with_the_files_of_its_projects(
    talk: Talk, name: str, text: str, own: list[tuple[str, int, int]], users: list[str] | None
) -> None:
    talk.open(name, text)
    try:
        assert told(talk, name) == own
        if users is not None:
            assert talk.codes("App/Use.cs") == users
    finally:
        talk.close(name)
    assert told(talk, name) == []
    assert talk.codes("App/Use.cs") == []


def test_a_solution_that_names_a_project_that_is_not_there_is_told(talk: Talk) -> None:
    text = talk.text("All.sln").replace("App.csproj", "Gone.csproj")
    talk.open("All.sln", text)
    try:
        assert told(talk, "All.sln") == [("MSB3202", 1, 1)]
    finally:
        talk.close("All.sln")
