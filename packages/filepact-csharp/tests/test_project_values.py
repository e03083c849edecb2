"""What a project file says becomes a value."""

from __future__ import annotations

import json

import pytest

from filepact_csharp.frameworks import parse_framework, preferred
from filepact_csharp.projects import GlobalUsing
from project_tree import ProjectTree, sdk


def group(text: str, condition: str = "") -> str:
    """A group of properties."""
    attribute = f' Condition="{condition}"' if condition else ""
    return f"<PropertyGroup{attribute}>{text}</PropertyGroup>"


def items(text: str, condition: str = "") -> str:
    """A group of items."""
    attribute = f' Condition="{condition}"' if condition else ""
    return f"<ItemGroup{attribute}>{text}</ItemGroup>"


# -- properties -----------------------------------------------------------------------------------


def test_a_project_that_says_nothing_gets_what_the_sdk_gives(tree: ProjectTree) -> None:
    tree.put("App.csproj", sdk())
    tree.put("Program.cs")
    project = tree.project(quiet=True)
    assert (project.name, project.assembly, project.output) == ("App", "App", "library")
    assert (project.lang_version, project.nullable) == ("12.0", "disable")
    assert not project.implicit_usings
    assert project.global_usings == ()
    assert tree.sources(project) == ["Program.cs"]


@pytest.mark.parametrize(
    ("properties", "field", "value"),
    [
        ("<LangVersion>Preview</LangVersion>", "lang_version", "preview"),
        ("<LangVersion> 10 </LangVersion>", "lang_version", "10"),
        ("<Nullable>Enable</Nullable>", "nullable", "enable"),
        ("<Nullable>annotations</Nullable>", "nullable", "annotations"),
        ("<AssemblyName>Acme.$(MSBuildProjectName)</AssemblyName>", "assembly", "Acme.App"),
        ("<OutputType>Exe</OutputType>", "output", "exe"),
        ("<OutputType>WinExe</OutputType>", "output", "winexe"),
        ("<AllowUnsafeBlocks>true</AllowUnsafeBlocks>", "unsafe", True),
        ("<CheckForOverflowUnderflow>true</CheckForOverflowUnderflow>", "checked", True),
        ("<NoWarn>$(NoWarn);1591,CS0168;168</NoWarn>", "no_warn", ("CS1591", "CS0168")),
        ("<TreatWarningsAsErrors>true</TreatWarningsAsErrors>", "warnings_as_errors", ("*",)),
        (
            "<WarningsAsErrors>nullable;CS0168</WarningsAsErrors>",
            "warnings_as_errors",
            ("NULLABLE", "CS0168"),
        ),
    ],
)
def test_properties_become_fields(
    properties: str, field: str, value: object, tree: ProjectTree
) -> None:
    tree.put("App.csproj", sdk(group(properties)))
    assert getattr(tree.project(quiet=True), field) == value


@pytest.mark.parametrize(
    ("framework", "there", "not_there", "language"),
    [
        ("net8.0", {"NET", "NET8_0", "NET5_0_OR_GREATER", "NETCOREAPP3_1_OR_GREATER"}, {"NET9_0_OR_GREATER"}, "12.0"),
        ("net10.0", {"NET10_0", "NET10_0_OR_GREATER"}, {"NET8_0"}, "14.0"),
        ("net8.0-windows10.0.19041", {"NET8_0", "WINDOWS", "WINDOWS10_0_19041"}, {"ANDROID"}, "12.0"),
        ("netstandard2.0", {"NETSTANDARD", "NETSTANDARD2_0", "NETSTANDARD1_6_OR_GREATER"}, {"NETSTANDARD2_1_OR_GREATER", "NET"}, "7.3"),
        ("netstandard2.1", {"NETSTANDARD2_1_OR_GREATER"}, {"NETCOREAPP"}, "8.0"),
        ("netcoreapp3.1", {"NETCOREAPP", "NETCOREAPP3_1"}, {"NET", "NET5_0_OR_GREATER"}, "8.0"),
        ("net472", {"NETFRAMEWORK", "NET472", "NET45_OR_GREATER"}, {"NET48_OR_GREATER", "NET"}, "7.3"),
        ("net40", {"NET40", "NET35_OR_GREATER"}, {"NET45_OR_GREATER"}, "7.3"),
    ],
)  # fmt: skip
def test_a_target_framework_brings_symbols_and_a_language(
    framework: str, there: set[str], not_there: set[str], language: str, tree: ProjectTree
) -> None:
    tree.put("App.csproj", sdk(framework=framework))
    project = tree.project(quiet=True)
    assert there <= set(project.defines)
    assert not not_there & set(project.defines)
    assert project.lang_version == language
    assert project.target_framework == framework


@pytest.mark.parametrize(
    ("body", "symbols"),
    [
        ("", {"DEBUG", "TRACE"}),
        (
            "<DefineConstants>$(DefineConstants);ONE;TWO</DefineConstants>",
            {"DEBUG", "TRACE", "ONE", "TWO"},
        ),
        # What came before is gone, what comes after is not.
        ("<DefineConstants>ONE, TWO</DefineConstants>", {"DEBUG", "ONE", "TWO"}),
        (
            "<DisableImplicitConfigurationDefines>true</DisableImplicitConfigurationDefines>",
            {"TRACE"},
        ),
    ],
)
def test_symbols_add_up_as_in_the_build(body: str, symbols: set[str], tree: ProjectTree) -> None:
    off = "<DisableImplicitFrameworkDefines>true</DisableImplicitFrameworkDefines>"
    tree.put("App.csproj", sdk(group(body + off)))
    assert set(tree.project(quiet=True).defines) == symbols


@pytest.mark.parametrize(
    ("several", "chosen"),
    [
        (["net472", "net8.0"], "net8.0"),
        (["net10.0", "net8.0", "netstandard2.0"], "net10.0"),
        (["netstandard2.0", "net472"], "netstandard2.0"),
        (["net8.0-android", "net8.0"], "net8.0"),
    ],
)
def test_of_several_target_frameworks_one_is_looked_at_and_that_is_said(
    several: list[str], chosen: str, tree: ProjectTree
) -> None:
    assert preferred(several) == chosen
    body = group(f"<TargetFrameworks>{';'.join(several)}</TargetFrameworks>")
    only = group("<DefineConstants>HERE</DefineConstants>", f"'$(TargetFramework)' == '{chosen}'")
    tree.put("App.csproj", sdk(body + only, framework=""))
    project = tree.project()
    assert project.target_framework == chosen
    assert "HERE" in project.defines
    assert project.approximate
    assert len(project.messages) == 1


@pytest.mark.parametrize(
    ("newest", "chosen"),
    [(0, "net10.0"), (10, "net10.0"), (9, "net8.0"), (8, "net8.0"), (7, "net8.0")],
)
def test_of_several_target_frameworks_one_is_taken_whose_libraries_are_there(
    newest: int, chosen: str
) -> None:
    assert preferred(["net472", "net10.0", "net8.0"], newest) == chosen


def test_one_of_several_alone_is_nothing_to_mention(tree: ProjectTree) -> None:
    tree.put("App.csproj", sdk(group("<TargetFrameworks>net8.0</TargetFrameworks>"), framework=""))
    assert tree.project(quiet=True).target_framework == "net8.0"


def test_a_framework_that_nobody_knows_has_no_symbols_and_is_told(tree: ProjectTree) -> None:
    assert parse_framework("tizen40").defines == ()
    tree.put("App.csproj", sdk(framework="tizen40"))
    assert tree.project().approximate


# -- files above the project -------------------------------------------------------------------------


def test_what_lies_above_comes_before_and_after_the_project(tree: ProjectTree) -> None:
    tree.put(
        "Directory.Build.props",
        f"<Project>{group('<LangVersion>9</LangVersion><Nullable>enable</Nullable>')}</Project>",
    )
    tree.put(
        "Directory.Build.targets", f"<Project>{group('<Nullable>warnings</Nullable>')}</Project>"
    )
    tree.put("a/b/App.csproj", sdk(group("<LangVersion>11</LangVersion>")))
    project = tree.project("a/b/App.csproj", quiet=True)
    assert project.lang_version == "11"
    assert project.nullable == "warnings"


def test_the_file_of_package_versions_has_a_say_too(tree: ProjectTree) -> None:
    target = "<TargetFramework>net8.0</TargetFramework>"
    tree.put("Directory.Packages.props", f"<Project>{group(target)}</Project>")
    tree.put("a/App.csproj", sdk(framework=""))
    assert tree.project("a/App.csproj", quiet=True).target_framework == "net8.0"


def test_only_the_nearest_file_above_counts_unless_it_imports_the_next(tree: ProjectTree) -> None:
    tree.put("Directory.Build.props", f"<Project>{group('<LangVersion>9</LangVersion>')}</Project>")
    tree.put(
        "a/Directory.Build.props", f"<Project>{group('<Nullable>enable</Nullable>')}</Project>"
    )
    tree.put("a/App.csproj", sdk())
    assert tree.project("a/App.csproj", quiet=True).lang_version == "12.0"
    above = "$([MSBuild]::GetPathOfFileAbove('Directory.Build.props', '$(MSBuildThisFileDirectory)../'))"
    tree.put("a/Directory.Build.props", f'<Project><Import Project="{above}" /></Project>')
    assert tree.project("a/App.csproj", quiet=True).lang_version == "9"


def test_all_that_has_a_say_is_named_even_what_is_not_there(tree: ProjectTree) -> None:
    tree.put("a/App.csproj", sdk('<Import Project="../more.props" />'))
    tree.put("more.props", "<Project />")
    solution = tree.read("a/App.csproj")
    named = {one.removeprefix(f"{tree.root}/") for one in solution.inputs}
    assert named >= {
        "a/App.csproj",
        "more.props",
        "Directory.Build.props",
        "a/Directory.Build.props",
        "a/Directory.Build.targets",
        "a/obj/project.assets.json",
    }


def test_an_sdk_that_is_imported_by_hand_counts_the_same(tree: ProjectTree) -> None:
    tree.put("Directory.Build.props", f"<Project>{group('<Nullable>enable</Nullable>')}</Project>")
    tree.put(
        "App.csproj",
        '<Project><Import Project="Sdk.props" Sdk="Microsoft.NET.Sdk" />'
        + group("<TargetFramework>net8.0</TargetFramework>")
        + '<Import Project="Sdk.targets" Sdk="Microsoft.NET.Sdk" /></Project>',
    )
    tree.put("A.cs")
    project = tree.project(quiet=True)
    assert project.nullable == "enable"
    assert "NET8_0" in project.defines
    assert tree.sources(project) == ["A.cs"]


# -- usings -----------------------------------------------------------------------------------------


def test_the_usual_usings_come_when_they_are_wanted(tree: ProjectTree) -> None:
    tree.put("App.csproj", sdk(group("<ImplicitUsings>enable</ImplicitUsings>")))
    names = [one.source() for one in tree.project(quiet=True).global_usings]
    assert names[0] == "global using global::System;"
    assert len(names) == 7


def test_a_web_project_has_more_of_them_and_another_framework(tree: ProjectTree) -> None:
    tree.put(
        "App.csproj",
        sdk(group("<ImplicitUsings>true</ImplicitUsings>"), name="Microsoft.NET.Sdk.Web"),
    )
    project = tree.project(quiet=True)
    assert GlobalUsing("Microsoft.AspNetCore.Builder") in project.global_usings
    assert project.frameworks == ("Microsoft.AspNetCore.App",)


def test_single_usings_come_and_go(tree: ProjectTree) -> None:
    body = items(
        '<Using Remove="System.IO" /><Using Include="Xunit" />'
        '<Using Include="System.Math" Static="true" /><Using Include="System.Text.Json" Alias="Json" />'
    )
    tree.put("App.csproj", sdk(group("<ImplicitUsings>enable</ImplicitUsings>") + body))
    lines = [one.source() for one in tree.project(quiet=True).global_usings]
    assert "global using global::System.IO;" not in lines
    assert lines[-3:] == [
        "global using global::Xunit;",
        "global using static global::System.Math;",
        "global using Json = global::System.Text.Json;",
    ]


# -- references ---------------------------------------------------------------------------------------


def test_a_project_sees_all_to_which_it_refers_also_through_others(tree: ProjectTree) -> None:
    for name, other in (("a", "b"), ("b", "c")):
        tree.put(
            f"{name}/{name}.csproj",
            sdk(items(f'<ProjectReference Include="..\\{other}\\{other}.csproj" />')),
        )
    tree.put("c/c.csproj", sdk(items('<InternalsVisibleTo Include="b" />')))
    solution = tree.read("a/a.csproj")
    assert [one.name for one in solution.projects] == ["a", "b", "c"]
    first, second, third = solution.projects
    assert first.references == (second.path, third.path)
    assert second.references == (third.path,)
    assert third.friends == ("b",)
    assert not solution.approximate


def test_projects_that_refer_to_each_other_end(tree: ProjectTree) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        tree.put(
            f"{name}/{name}.csproj",
            sdk(items(f'<ProjectReference Include="../{other}/{other}.csproj" />')),
        )
    solution = tree.read("a/a.csproj")
    assert [one.references for one in solution.projects] == [
        (solution.projects[1].path,),
        (solution.projects[0].path,),
    ]


def test_a_reference_whose_output_is_not_used_is_none(tree: ProjectTree) -> None:
    tree.put("b/b.csproj", sdk())
    body = '<ProjectReference Include="../b/b.csproj" ReferenceOutputAssembly="false" />'
    tree.put("a/a.csproj", sdk(items(body)))
    assert tree.project("a/a.csproj", quiet=True).references == ()


@pytest.mark.parametrize("path", ["../gone/gone.csproj", "../../../outside/outside.csproj"])
def test_a_reference_that_leads_nowhere_is_told_with_its_line(path: str, tree: ProjectTree) -> None:
    tree.put(
        "a/a.csproj", sdk(f'\n<ItemGroup>\n<ProjectReference Include="{path}" />\n</ItemGroup>')
    )
    project = tree.project("a/a.csproj")
    assert project.references == ()
    assert project.approximate
    assert [(one.path, one.line) for one in project.messages] == [(project.path, 5)]


# -- packages -----------------------------------------------------------------------------------------


def _assets(tree: ProjectTree, *, target: str = "net8.0") -> str:
    return json.dumps(
        {
            "version": 3,
            "targets": {
                target: {
                    "Acme.Json/1.2.3": {
                        "type": "package",
                        "compile": {"lib/net8.0/Acme.Json.dll": {}, "lib/net8.0/_._": {}},
                    },
                    "Acme.Gen/1.0.0": {"type": "package"},
                    "Lib/1.0.0": {"type": "project", "compile": {"bin/placeholder/Lib.dll": {}}},
                },
                f"{target}/linux-x64": {},
            },
            "libraries": {
                "Acme.Json/1.2.3": {"type": "package", "path": "acme.json/1.2.3", "files": ["lib/net8.0/Acme.Json.dll"]},
                "Acme.Gen/1.0.0": {"type": "package", "path": "acme.gen/1.0.0", "files": ["analyzers/dotnet/cs/Acme.Gen.dll"]},
                "Lib/1.0.0": {"type": "project", "path": "../lib/Lib.csproj", "msbuildProject": "../lib/Lib.csproj"},
            },
            "packageFolders": {f"{tree.root}/first/": {}, f"{tree.root}/second/": {}},
        }
    )  # fmt: skip


@pytest.mark.parametrize("target", ["net8.0", ".NETCoreApp,Version=v8.0"])
def test_what_was_restored_is_found(target: str, tree: ProjectTree) -> None:
    tree.put("app/App.csproj", sdk(items('<PackageReference Include="acme.json" Version="1.*" />')))
    tree.put("lib/Lib.csproj", sdk())
    tree.put("app/obj/project.assets.json", _assets(tree, target=target))
    dll = tree.put("second/acme.json/1.2.3/lib/net8.0/Acme.Json.dll")
    solution = tree.read("app/App.csproj")
    project = solution.projects[0]
    assert project.packages == (dll,)
    assert project.missing_packages == ()
    assert [one.name for one in solution.projects] == ["App", "Lib"]
    # Its generator does not run, which is worth a word.
    assert len(project.messages) == 1
    assert "Acme.Gen" in project.messages[0].text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        "{}",
        '{"targets": {"net9.0": {}}, "libraries": {}, "packageFolders": {}}',
        "[" * 100_000,
    ],
    ids=["empty", "words", "a list", "no tables", "another framework", "nested"],
)
def test_a_broken_list_of_packages_is_told(text: str, tree: ProjectTree) -> None:
    tree.put("App.csproj", sdk(items('<PackageReference Include="Acme.Json" />')))
    tree.put("obj/project.assets.json", text)
    project = tree.project()
    assert project.packages == ()
    assert project.missing_packages == ("Acme.Json",)
    assert project.approximate


def test_packages_that_were_not_restored_are_named(tree: ProjectTree) -> None:
    body = '<PackageReference Include="One" /><PackageReference Include="Two" /><PackageReference Remove="one" />'
    tree.put("App.csproj", sdk(items(body)))
    project = tree.project()
    assert project.missing_packages == ("Two",)
    assert project.approximate


def test_a_package_path_cannot_leave_its_folder(tree: ProjectTree) -> None:
    assets = (
        _assets(tree)
        .replace("acme.json/1.2.3", "../../elsewhere")
        .replace("lib/net8.0/Acme", "../Acme")
    )
    tree.put("App.csproj", sdk())
    tree.put("obj/project.assets.json", assets)
    assert tree.project().packages == ()


def test_assemblies_that_are_named_by_a_path_are_seen(tree: ProjectTree) -> None:
    body = '<Reference Include="Old"><HintPath>..\\lib\\Old.dll</HintPath></Reference>'
    tree.put("a/App.csproj", sdk(items(body)))
    assert tree.project("a/App.csproj", quiet=True).packages == (f"{tree.root}/lib/Old.dll",)


def test_a_test_project_has_no_entry_point_of_its_own(tree: ProjectTree) -> None:
    body = group("<OutputType>Exe</OutputType>") + items('<PackageReference Include="xunit.v3" />')
    tree.put("App.csproj", sdk(body))
    assert tree.project().output == "library"


# -- the old style ------------------------------------------------------------------------------------


def test_a_project_of_the_old_style_says_what_it_says_itself(tree: ProjectTree) -> None:
    tree.put(
        "App.csproj",
        """<?xml version="1.0" encoding="utf-16"?>
<Project ToolsVersion="15.0" xmlns="http://schemas.microsoft.com/developer/msbuild/2003">
  <Import Project="$(MSBuildExtensionsPath)\\$(MSBuildToolsVersion)\\Microsoft.Common.props" />
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFrameworkVersion>v4.7.2</TargetFrameworkVersion>
    <DefineConstants>DEBUG;TRACE</DefineConstants>
  </PropertyGroup>
  <ItemGroup>
    <Reference Include="System" />
    <Compile Include="Program.cs" />
    <Compile Include="Properties\\AssemblyInfo.cs" />
  </ItemGroup>
  <Import Project="$(MSBuildToolsPath)\\Microsoft.CSharp.targets" />
</Project>""",
    )
    for name in ("Program.cs", "Properties/AssemblyInfo.cs", "Other.cs"):
        tree.put(name)
    project = tree.project()
    assert tree.sources(project) == ["Program.cs", "Properties/AssemblyInfo.cs"]
    assert project.target_framework == "net472"
    assert project.defines == ("DEBUG", "TRACE")
    assert project.output == "exe"
    assert project.approximate
    assert len(project.messages) == 1


_FLAT_ARTIFACTS = (
    "<UseArtifactsOutput>true</UseArtifactsOutput>"
    "<IncludeProjectNameInArtifactsPaths>false</IncludeProjectNameInArtifactsPaths>"
)


@pytest.mark.parametrize(
    ("props", "assets"),
    [
        ("<UseArtifactsOutput>true</UseArtifactsOutput>", "artifacts/obj/App"),
        (
            "<ArtifactsPath>$(MSBuildThisFileDirectory)out</ArtifactsPath>",
            "out/obj/App",
        ),
        (
            _FLAT_ARTIFACTS,
            "artifacts/obj",
        ),
    ],
)
def test_what_was_restored_is_found_in_the_folder_of_artifacts(
    tree: ProjectTree, props: str, assets: str
) -> None:
    tree.put("Directory.Build.props", f"<Project>{group(props)}</Project>")
    tree.put("src/App/App.csproj", sdk())
    tree.put(f"{assets}/Generated.cs")
    solution = tree.read("src/App/App.csproj")
    assert str(tree.root / assets / "project.assets.json") in solution.inputs


def test_nothing_in_the_folder_of_artifacts_is_a_source(tree: ProjectTree) -> None:
    tree.put(
        "Directory.Build.props",
        f"<Project>{group('<UseArtifactsOutput>true</UseArtifactsOutput>')}</Project>",
    )
    tree.put("App.csproj", sdk())
    tree.put("One.cs")
    tree.put("artifacts/obj/App/Made.cs")
    assert tree.sources(tree.project()) == ["One.cs"]


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("Microsoft.NET.Sdk.Web", "exe"),
        ("Microsoft.NET.Sdk.Worker", "exe"),
        ("Microsoft.NET.Sdk.Razor", "library"),
        ("Microsoft.NET.Sdk", "library"),
    ],
)
def test_what_an_sdk_builds_if_nothing_is_said(tree: ProjectTree, name: str, output: str) -> None:
    tree.put("App.csproj", sdk(name=name))
    assert tree.project().output == output
