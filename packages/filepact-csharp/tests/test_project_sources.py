"""Which files a project compiles."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact_csharp.projects import (
    MAX_PATTERN,
    FilePattern,
    ProjectFiles,
    ProjectItem,
    split_list,
    unescape,
)
from project_tree import ProjectTree, sdk

# -- patterns -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("a.cs", "/p/a.cs", True),
        ("a.cs", "/p/A.cs", False),
        ("a.cs", "/p/sub/a.cs", False),
        ("sub\\a.cs", "/p/sub/a.cs", True),
        ("./sub/../a.cs", "/p/a.cs", True),
        ("../other/a.cs", "/other/a.cs", True),
        ("/x/a.cs", "/x/a.cs", True),
        ("*.cs", "/p/a.cs", True),
        ("*.cs", "/p/sub/a.cs", False),
        ("*.CS", "/p/a.cs", True),
        ("a?.cs", "/p/ab.cs", True),
        ("a?.cs", "/p/a.cs", False),
        ("**/*.cs", "/p/a.cs", True),
        ("**/*.cs", "/p/x/y/a.cs", True),
        ("**/*.cs", "/q/a.cs", False),
        ("**/*.cs", "/prefix/a.cs", False),
        ("**/*.cs", "/p/a.csx", False),
        ("**/*.*", "/p/x/y", True),
        ("sub/**", "/p/sub/x/a.cs", True),
        ("sub/**", "/p/sub", False),
        ("sub/**/*.g.cs", "/p/sub/x/y/a.g.cs", True),
        ("sub/**/*.g.cs", "/p/sub/a.cs", False),
        ("**/obj/**", "/p/x/obj/y/a.cs", True),
        ("**/obj/**", "/p/obj/a.cs", True),
        ("**/obj/**", "/p/x/object/a.cs", False),
        ("**/.*/**", "/p/x/.git/a.cs", True),
        ("**/.*/**", "/p/x/a.cs", False),
        ("..\\Common\\**\\*.cs", "/Common/x/a.cs", True),
        ("a%2Ab.cs", "/p/a*b.cs", True),
        ("a*b*c.cs", "/p/aXbXXc.cs", True),
        ("a*b*c.cs", "/p/aXcXb.cs", False),
    ],
)
def test_patterns_name_files(pattern: str, path: str, *, matches: bool) -> None:
    parsed = FilePattern.parse(pattern, "/p")
    assert parsed is not None
    assert parsed.matches(path) is matches


@pytest.mark.parametrize("pattern", ["", "   ", "*/../a.cs", "x" * (MAX_PATTERN + 1)])
def test_what_names_nothing_is_no_pattern(pattern: str) -> None:
    assert FilePattern.parse(pattern, "/p") is None


NAMES = st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1, max_size=4).filter(
    lambda names: not {".", ".."} & set(names)
)
PARTS = st.lists(
    st.one_of(st.just("**"), st.text("ab.*?", min_size=1, max_size=4)), min_size=1, max_size=4
).filter(
    lambda parts: (
        not {".", ".."} & set(parts) and all("**" not in one or one == "**" for one in parts)
    )
)


@given(parts=PARTS, names=NAMES)
def test_patterns_match_as_the_regular_expressions_that_they_stand_for(
    parts: list[str], names: list[str]
) -> None:
    pattern = FilePattern.parse("/".join(parts), "/p")
    assert pattern is not None
    assert pattern.matches("/p/" + "/".join(names)) == bool(
        re.fullmatch(_expression(parts), "".join(f"/{one}" for one in names))
    )


def _expression(parts: list[str]) -> str:
    if parts[-1] == "**":
        parts = [*parts, "*"]
    written = []
    for part in parts:
        if part == "**":
            written.append("(?:/[^/]+)*")
        elif part == "*.*":
            written.append("/[^/]*")
        else:
            written.append("/" + re.escape(part).replace(r"\*", "[^/]*").replace(r"\?", "[^/]"))
    return "".join(written)


def test_a_pattern_made_to_take_long_does_not() -> None:
    pattern = FilePattern.parse("/".join(["**", "*a*a*a*a*a*b"] * 100), "/p")
    assert pattern is not None
    assert not pattern.matches("/p/" + "/".join(["a" * 200] * 200))


@given(st.text("ab;% 2A\n"))
def test_lists_are_cut_at_semicolons(text: str) -> None:
    assert all(one and one == one.strip() and ";" not in one for one in split_list(text))


def test_escapes_stand_for_characters() -> None:
    assert unescape("a%3Bb%zz%4") == "a;b%zz%4"


def test_the_last_that_names_a_file_decides() -> None:
    def patterns(*texts: str) -> tuple[FilePattern, ...]:
        return tuple(one for text in texts if (one := FilePattern.parse(text, "/p")))

    membership = ProjectFiles(
        (
            ProjectItem(True, patterns("**/*.cs"), patterns("bin/**")),
            ProjectItem(False, patterns("old/**")),
            ProjectItem(True, patterns("old/keep.cs")),
        )
    )
    assert membership.includes("/p/a.cs")
    assert not membership.includes("/p/bin/a.cs")
    assert not membership.includes("/p/old/a.cs")
    assert membership.includes("/p/old/keep.cs")
    assert not membership.includes("/elsewhere/a.cs")


# -- projects -----------------------------------------------------------------------------------------

FILES = (
    "A.cs",
    "sub/B.cs",
    "sub/deep/C.cs",
    "bin/Debug/X.cs",
    "obj/Debug/Y.cs",
    "sub/obj/Z.cs",
    ".hidden/H.cs",
    "notes.txt",
    "Template.cs.txt",
)
DEFAULT = ["A.cs", "sub/B.cs", "sub/deep/C.cs", "sub/obj/Z.cs"]


@pytest.mark.parametrize(
    ("body", "sources"),
    [
        # As the build has it: only the project's own bin and obj are left out, and nothing of other
        # projects that lie below it.
        ("", DEFAULT),
        ('<ItemGroup><Compile Remove="sub/**" /></ItemGroup>', ["A.cs"]),
        ('<ItemGroup><Compile Remove="sub\\deep\\C.cs;A.cs" /></ItemGroup>', ["sub/B.cs", "sub/obj/Z.cs"]),
        ('<ItemGroup><Compile Remove="**" /><Compile Include="A.cs" /></ItemGroup>', ["A.cs"]),
        ('<ItemGroup><Compile Include="obj/Debug/Y.cs" /></ItemGroup>', sorted([*DEFAULT, "obj/Debug/Y.cs"])),
        ('<ItemGroup><Compile Update="A.cs" DependentUpon="x" /></ItemGroup>', DEFAULT),
        ('<ItemGroup><Compile Include="*.txt" Exclude="n*" /></ItemGroup>', sorted([*DEFAULT, "Template.cs.txt"])),
        ("<PropertyGroup><EnableDefaultCompileItems>false</EnableDefaultCompileItems></PropertyGroup>", []),
        ('<PropertyGroup><EnableDefaultItems>false</EnableDefaultItems></PropertyGroup><ItemGroup><Compile Include="sub\\*.cs" /></ItemGroup>', ["sub/B.cs"]),
        ("<PropertyGroup><DefaultItemExcludes>$(DefaultItemExcludes);sub/**</DefaultItemExcludes></PropertyGroup>", ["A.cs"]),
        ("<PropertyGroup><BaseIntermediateOutputPath>out\\</BaseIntermediateOutputPath></PropertyGroup>", DEFAULT),
        ("<ItemGroup Condition=\"'$(TargetFramework)' == 'net8.0'\"><Compile Remove=\"sub/**\" /></ItemGroup>", ["A.cs"]),
        ("<ItemGroup><Compile Remove=\"sub/**\" Condition=\"'$(Configuration)' != 'Debug'\" /></ItemGroup>", DEFAULT),
        # Items come after all properties, wherever these stand.
        ('<ItemGroup><Compile Remove="$(Late)" /></ItemGroup><PropertyGroup><Late>A.cs</Late></PropertyGroup>', DEFAULT[1:]),
    ],
)  # fmt: skip
def test_a_project_compiles_what_its_items_say(
    body: str, sources: list[str], tree: ProjectTree
) -> None:
    for name in FILES:
        tree.put(name)
    tree.put("App.csproj", sdk(body))
    project = tree.project(quiet=True)
    assert tree.sources(project) == sources


def test_sources_of_another_folder_within_the_root_count(tree: ProjectTree) -> None:
    tree.put("shared/S.cs")
    tree.put("a/A.cs")
    tree.put(
        "a/App.csproj",
        sdk('<ItemGroup><Compile Include="..\\shared\\**\\*.cs" Link="S.cs" /></ItemGroup>'),
    )
    project = tree.project("a/App.csproj", quiet=True)
    assert tree.sources(project) == ["a/A.cs", "shared/S.cs"]
    assert project.includes(f"{tree.root}/shared/new/New.cs")


def test_a_shared_project_that_is_imported_names_its_own_files(tree: ProjectTree) -> None:
    here = "$(MSBuildThisFileDirectory)"
    tree.put(
        "shared/Shared.projitems",
        f'<Project><ItemGroup><Compile Include="{here}S.cs" /></ItemGroup></Project>',
    )
    tree.put("shared/S.cs")
    tree.put(
        "a/App.csproj", sdk('<Import Project="..\\shared\\Shared.projitems" Label="Shared" />')
    )
    assert tree.sources(tree.project("a/App.csproj", quiet=True)) == ["shared/S.cs"]


def test_a_file_that_is_not_there_yet_belongs_where_it_would(tree: ProjectTree) -> None:
    tree.put("a/a.csproj", sdk('<ItemGroup><Compile Remove="drafts/**" /></ItemGroup>'))
    tree.put("b/b.csproj", sdk())
    solution = tree.read()
    where = {
        name: [one.name for one in solution.including(f"{tree.root}/{name}")]
        for name in (
            "a/New.cs",
            "a/drafts/New.cs",
            "b/x/New.cs",
            "b/obj/New.cs",
            "New.cs",
            "a/New.txt",
        )
    }
    assert where == {
        "a/New.cs": ["a"],
        "a/drafts/New.cs": [],
        "b/x/New.cs": ["b"],
        "b/obj/New.cs": [],
        "New.cs": [],
        "a/New.txt": [],
    }


def test_a_named_source_that_is_not_there_is_told_and_harms_nothing(tree: ProjectTree) -> None:
    tree.put("App.csproj", sdk('<ItemGroup><Compile Include="Gone.cs" /></ItemGroup>'))
    project = tree.project()
    assert project.sources == ()
    assert len(project.messages) == 1
    assert not project.approximate


def test_sources_outside_of_the_root_are_told_and_not_read(tree: ProjectTree) -> None:
    (tree.root.parent / "outside").mkdir(exist_ok=True)
    tree.put(
        "App.csproj",
        sdk('<ItemGroup><Compile Include="../outside/**/*.cs;/etc/*.cs" /></ItemGroup>'),
    )
    project = tree.project()
    assert project.sources == ()
    assert project.approximate
    assert len(project.messages) == 2


def test_links_are_not_followed_out_of_the_root(
    tree: ProjectTree, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "Secret.cs").write_text("class Secret {}")
    (outside / "More.props").write_text(
        "<Project><PropertyGroup><Nullable>enable</Nullable></PropertyGroup></Project>"
    )
    (tree.root / "linked").symlink_to(outside)
    (tree.root / "More.props").symlink_to(outside / "More.props")
    tree.put("App.csproj", sdk('<Import Project="More.props" />'))
    project = tree.project()
    assert project.sources == ()
    assert project.nullable == "disable"
    assert project.approximate
    assert str(outside) not in project.messages[0].text
