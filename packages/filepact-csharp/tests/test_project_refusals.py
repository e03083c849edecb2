"""Project files that are broken or made to do harm: each is an answer with a place, never an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from filepact_csharp.evaluation import MAX_BYTES
from filepact_csharp.files import DiskTree
from filepact_csharp.safe_xml import MAX_DEPTH, MAX_ELEMENTS, XmlError, parse
from filepact_csharp.solution import read_solution
from project_tree import ProjectTree, sdk

if TYPE_CHECKING:
    from pathlib import Path

LAUGHS = """<?xml version="1.0"?>
<!DOCTYPE Project [
<!ENTITY a "ha">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
]>
<Project Sdk="Microsoft.NET.Sdk">&b;</Project>"""
OUTSIDE = '<!DOCTYPE Project SYSTEM "file:///etc/passwd"><Project Sdk="Microsoft.NET.Sdk" />'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("<Project", 1),
        ('<Project Sdk="Microsoft.NET.Sdk">\n<PropertyGroup>\n</Project>', 3),
        ("<Project>\n&nbsp;</Project>", 2),
        ("<html></html>", 1),
        ("plain text", 1),
        ("\x00\x01", 1),
        (LAUGHS, 2),
        (OUTSIDE, 1),
        ("<Project>" + "<a>" * (MAX_DEPTH + 10), 1),
        ("<Project>" + "<a />\n" * (MAX_ELEMENTS + 10) + "</Project>", MAX_ELEMENTS),
        ("<Project Sdk='a' Sdk='b' />", 1),
    ],
    ids=["empty", "cut off", "not closed", "entity", "other", "text", "bytes", "laughs", "outside", "deep", "many", "twice"],
)  # fmt: skip
def test_a_broken_project_is_told_with_its_line(text: str, line: int, tree: ProjectTree) -> None:
    path = tree.put("App.csproj", text)
    tree.put("A.cs")
    solution = tree.read("App.csproj")
    (project,) = solution.projects
    assert (project.path, project.sources) == (path, ())
    assert project.approximate
    assert solution.approximate
    assert (project.messages[0].path, project.messages[0].line) == (path, line)


def test_a_project_that_is_too_large_is_told(tree: ProjectTree) -> None:
    tree.put("App.csproj", "<Project>" + " " * MAX_BYTES + "</Project>")
    assert tree.project().messages[0].line == 0


def test_a_project_that_is_no_text_is_told(tree: ProjectTree) -> None:
    (tree.root / "App.csproj").write_bytes(b"<Project>\xff\xfe\x80</Project>")
    assert len(tree.project().messages) == 1


def test_a_project_in_utf_16_is_read(tree: ProjectTree) -> None:
    (tree.root / "App.csproj").write_text(sdk(), encoding="utf-16")
    tree.project(quiet=True)


def test_one_broken_project_does_not_hide_the_others(tree: ProjectTree) -> None:
    tree.put("a/a.csproj", "<Project>\n<")
    tree.put("b/b.csproj", sdk())
    tree.put("b/B.cs")
    solution = tree.read()
    assert [one.approximate for one in solution.projects] == [True, False]
    assert len(solution.projects[1].sources) == 1


def test_imports_in_a_circle_end(tree: ProjectTree) -> None:
    tree.put("a.props", '<Project><Import Project="b.props" /></Project>')
    tree.put(
        "b.props", '<Project><Import Project="a.props" /><Import Project="App.csproj" /></Project>'
    )
    tree.put("App.csproj", sdk('<Import Project="a.props" />'))
    tree.project(quiet=True)


def test_a_chain_of_imports_has_an_end(tree: ProjectTree) -> None:
    for number in range(300):
        tree.put(f"p{number}.props", f'<Project><Import Project="p{number + 1}.props" /></Project>')
    tree.put("App.csproj", sdk('<Import Project="p0.props" />'))
    project = tree.project()
    assert project.approximate
    assert len(project.messages) == 1


@pytest.mark.parametrize(
    ("element", "told"),
    [
        ('<Import Project="../outside.props" />', True),
        ('<Import Project="/etc/passwd" />', True),
        ('<Import Project="C:\\Users\\x.props" />', True),
        ('<Import Project="gone.props" />', True),
        ('<Import Project="gone.props" Condition="Exists(\'gone.props\')" />', False),
        ('<Import Project="$([System.Guid]::NewGuid()).props" />', True),
        ('<Import Project="x.props" Condition="$([System.Guid]::NewGuid()) == 1" />', True),
        ('<Import Project="$(Nothing)" />', False),
        ('<Import Project="$(MSBuildToolsPath)\\Microsoft.CSharp.targets" />', False),
        ('<Import Project="none/*.props" />', False),
        ('<Sdk Name="Aspire.AppHost.Sdk" Version="9.0.0" />', True),
    ],
)
def test_imports_that_are_not_read_are_told(element: str, told: bool, tree: ProjectTree) -> None:
    tree.put("App.csproj", sdk(f"\n\n{element}"))
    project = tree.project()
    assert project.approximate is told
    assert [one.line for one in project.messages] == ([5] if told else [])


@pytest.mark.parametrize(
    ("body", "told"),
    [
        # Nobody asks for this property, so nobody has to know it.
        ("<PropertyGroup><Version>$([System.DateTime]::Now)</Version></PropertyGroup>", False),
        ("<PropertyGroup Condition=\"'$([System.Guid]::NewGuid())' == ''\"><Title>x</Title></PropertyGroup>", False),
        ("<PropertyGroup><Nullable>$([System.DateTime]::Now)</Nullable></PropertyGroup>", True),
        ("<PropertyGroup><X>$([System.Guid]::NewGuid())</X><Nullable>$(X)</Nullable></PropertyGroup>", True),
        ("<PropertyGroup><X>$([System.Guid]::NewGuid())</X></PropertyGroup><PropertyGroup Condition=\"'$(X)' == ''\"><LangVersion>9</LangVersion></PropertyGroup>", True),
        ("<PropertyGroup><Nullable>$([System.DateTime]::Now)</Nullable><Nullable>enable</Nullable></PropertyGroup>", False),
        ('<ItemGroup><Compile Include="@(Other)" /></ItemGroup>', True),
        ('<ItemGroup><None Include="@(Other)" /></ItemGroup>', False),
        ("<ItemGroup Condition=\"'@(Other)' == ''\"><Compile Include=\"A.cs\" /></ItemGroup>", True),
        ("<Choose><When Condition=\"'$(X)' == ''\"><PropertyGroup><Nullable>enable</Nullable></PropertyGroup></When></Choose>", False),
        ('<Choose><When Condition="$([System.Guid]::NewGuid())" /></Choose>', True),
        ('<Target Name="x"><ItemGroup><Compile Include="x.g.cs" /></ItemGroup></Target>', True),
        ('<Target Name="x"><Exec Command="rm" /></Target>', False),
        ("<PropertyGroup><Nullable>perhaps</Nullable></PropertyGroup>", True),
    ],
)  # fmt: skip
def test_what_cannot_be_found_out_is_told_where_it_matters(
    body: str, told: bool, tree: ProjectTree
) -> None:
    tree.put("App.csproj", sdk(body))
    project = tree.project()
    assert project.approximate is told
    assert bool(project.messages) is told


@pytest.mark.parametrize(
    ("name", "body", "file"),
    [
        ("MSTest.Sdk/3.6.4", "", "x.txt"),
        ("Microsoft.NET.Sdk.Razor", "", "x/Page.razor"),
        ("Microsoft.NET.Sdk.Web", "", "x/Page.razor"),
        ("Microsoft.NET.Sdk", "<PropertyGroup><UseWPF>true</UseWPF></PropertyGroup>", "A.xaml"),
        (
            "Microsoft.NET.Sdk.Web",
            '<ItemGroup><Protobuf Include="a.proto" /></ItemGroup>',
            "a.proto",
        ),
    ],
)
def test_what_makes_code_is_told(name: str, body: str, file: str, tree: ProjectTree) -> None:
    tree.put("App.csproj", sdk(body, name=name))
    tree.put("A.cs")
    tree.put(file)
    project = tree.project()
    assert project.approximate
    assert len(project.messages) == 1
    assert tree.sources(project) == ["A.cs"]


BIG = "x" * 90_000


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    "body",
    [
        # Each of these would be gigabytes, or hours.
        f"<PropertyGroup><X>{BIG}</X>"
        + "".join(f"<Y{n}>$(X)</Y{n}>" for n in range(10_000))
        + "</PropertyGroup>",
        f"<PropertyGroup><X>{BIG.replace('xx', 'x;')}</X></PropertyGroup><ItemGroup>"
        + '<Compile Include="$(X)" />' * 10_000
        + "</ItemGroup>",
        "<ItemGroup>"
        + '<Compile Include="**/*a*b*c*.cs" Exclude="**/x*/**/y*/**" />' * 20_000
        + "</ItemGroup>",
        f"<ItemGroup Condition=\"'{BIG[:4_000]}' == ''\">"
        + '<Compile Include="A.cs" />' * 20_000
        + "</ItemGroup>",
        "<ItemGroup>"
        + "".join(f'<Compile Include="F{n}.cs" />' for n in range(20_000))
        + "</ItemGroup>",
    ],
    ids=["properties", "entries", "wildcards", "conditions", "names"],
)
def test_a_project_made_to_take_long_does_not(body: str, tree: ProjectTree) -> None:
    for number in range(600):
        tree.put(f"src/F{number}.cs")
    tree.put("App.csproj", sdk(body))
    assert len(tree.project().messages) <= 50


def test_messages_are_not_without_number(tree: ProjectTree) -> None:
    tree.put(
        "App.csproj", sdk("".join(f'<Import Project="gone{n}.props" />\n' for n in range(500)))
    )
    assert len(tree.project().messages) == 50


def test_no_message_names_a_place_outside_of_the_root(tree: ProjectTree) -> None:
    body = '<Import Project="../../secret/x.props" /><ItemGroup><Compile Include="../../../tmp/**/*.cs" /></ItemGroup>'
    tree.put("a/App.csproj", sdk(body))
    for message in tree.project("a/App.csproj").messages:
        assert message.path.startswith(str(tree.root))
        assert str(tree.root.parent) not in message.text


# -- anything at all ----------------------------------------------------------------------------------

NAMES = st.sampled_from(
    ["Project", "PropertyGroup", "ItemGroup", "Import", "ImportGroup", "Choose", "When", "Otherwise", "Target",
     "Compile", "Using", "ProjectReference", "PackageReference", "Nullable", "TargetFramework", "TargetFrameworks",
     "DefineConstants", "Sdk", "DefaultItemExcludes"]
)  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(
        ["", "**/*.cs", "$(X)", "$(", "@(Compile)", "'$(X)' == ''", "App.csproj", "..", "/", "true", "net8.0",
         "net4.7;;net8.0", "Microsoft.NET.Sdk", "$(MSBuildThisFileDirectory)", "%2A", ";", "net99999999999.0"]
    ),
    st.text("$()'@%;.*/\\ ab1", max_size=8),
)  # fmt: skip
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["Include", "Remove", "Exclude", "Condition", "Project", "Sdk", "Name"]),
    VALUES,
    max_size=3,
)


def _element(name: str, attributes: dict[str, str], inside: str) -> str:
    def quoted(value: str) -> str:
        return value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")

    written = "".join(f' {key}="{quoted(value)}"' for key, value in attributes.items())
    return f"<{name}{written}>{inside}</{name}>"


ELEMENTS = st.recursive(
    st.builds(
        _element, NAMES, ATTRIBUTES, VALUES.map(lambda text: text.replace("&", "").replace("<", ""))
    ),
    lambda inner: st.builds(_element, NAMES, ATTRIBUTES, st.lists(inner, max_size=4).map("".join)),
    max_leaves=12,
)


@pytest.mark.slow
@settings(
    max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(body=ELEMENTS, above=ELEMENTS)
@example(body="", above="")
def test_any_elements_make_a_project(body: str, above: str, tmp_path: Path) -> None:
    tree = ProjectTree(tmp_path)
    tree.put("A.cs")
    tree.put("Directory.Build.props", f"<Project>{above}</Project>")
    tree.put("App.csproj", f'<Project Sdk="Microsoft.NET.Sdk">{body}</Project>')
    project = tree.project()
    assert all(project.includes(one) for one in project.sources)
    assert all(one.startswith(str(tmp_path)) for one in (*project.sources, *project.references))
    assert project == tree.project()


@pytest.mark.slow
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    lines: list[int] = []
    try:
        parse(text)
    except XmlError as error:
        lines.append(error.line)
    assert all(line >= 1 for line in lines)


@settings(
    max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(content=st.binary(max_size=200), name=st.sampled_from(["a.csproj", "a.sln", "a.slnx"]))
def test_any_bytes_make_an_answer(content: bytes, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    solution = read_solution(str(tmp_path / name), str(tmp_path), DiskTree(str(tmp_path)))
    assert solution.inputs
