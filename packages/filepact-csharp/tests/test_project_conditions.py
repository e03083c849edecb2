"""Conditions and expressions of project files."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact_csharp.expressions import MAX_VALUE, ProjectProperties, UnknownPropertyError, holds
from filepact_csharp.files import DiskTree

if TYPE_CHECKING:
    from pathlib import Path

VALUES = {
    "Configuration": "Debug",
    "TargetFramework": "net8.0",
    "Version": "12.0.3",
    "Yes": "true",
    "Empty": "",
    "Folder": "a/b",
    "Text": "a.b;c",
}


@pytest.fixture
def properties(tmp_path: Path) -> ProjectProperties:
    found = ProjectProperties(DiskTree(str(tmp_path)), str(tmp_path))
    for name, value in VALUES.items():
        found.put(name, value)
    found.put("MSBuildProjectDirectory", str(tmp_path))
    found.put("MSBuildThisFileDirectory", f"{tmp_path}/")
    return found


@pytest.mark.parametrize(
    ("condition", "result"),
    [
        ("", True),
        ("  ", True),
        ("'$(Configuration)' == 'debug'", True),
        ("'$(Configuration)'!='Debug'", False),
        ("$(Configuration) == Debug", True),
        ("'$(Configuration)|$(Nothing)' == 'Debug|'", True),
        ("'$(Nothing)' == ''", True),
        ("$(Yes)", True),
        ("!$(Yes)", False),
        ("! ('$(Yes)' == 'true')", False),
        ("'$(Yes)' == 'on'", True),
        ("'$(Yes)' And '$(Empty)' == ''", True),
        ("'$(Yes)' == 'false' or '$(Empty)' == ''", True),
        ("false and true or true", True),
        ("false and (true or true)", False),
        ("'$(Version)' >= '12.0'", True),
        ("'$(Version)' < 12.0.10", True),
        ("5 > 4", True),
        ("'4.0' == '4'", True),
        ("'$(TargetFramework)' == 'net8.0' and exists('there.txt')", True),
        ("Exists('gone.txt')", False),
        ("!Exists('$(Folder)\\gone.txt')", True),
        ("HasTrailingSlash('a\\')", True),
        ("$(TargetFramework.StartsWith('net4'))", False),
        ("$(TargetFramework.StartsWith('net')) and !$(TargetFramework.Contains(`standard`))", True),
        (
            "'$([MSBuild]::GetTargetFrameworkIdentifier('$(TargetFramework)'))' == '.NETCoreApp'",
            True,
        ),
        ("$([MSBuild]::IsTargetFrameworkCompatible('$(TargetFramework)', 'net6.0'))", True),
        ("$([MSBuild]::IsTargetFrameworkCompatible('net472', 'net6.0'))", False),
        ("$([MSBuild]::IsTargetFrameworkCompatible('net8.0', 'netstandard2.1'))", True),
        ("$([MSBuild]::IsOsPlatform(Linux))", True),
        ("$([MSBuild]::VersionGreaterThanOrEquals('$(Version)', '13.0'))", False),
        # What is not needed for the outcome is not looked at.
        ("false and '$([System.Guid]::NewGuid())' == ''", False),
        ("true or $(Version) > 'x'", True),
    ],
)
def test_conditions_are_decided(
    condition: str,
    result: bool,
    properties: ProjectProperties,
    tmp_path: Path,
) -> None:
    (tmp_path / "there.txt").write_text("")

    def exists(path: str) -> bool:
        return (tmp_path / path.replace("\\", "/")).is_file()

    assert holds(condition, properties.expand, exists) is result


@pytest.mark.parametrize(
    "condition",
    [
        "'$(Configuration)' ==",
        "'a' == 'b' 'c'",
        "(true",
        "true)",
        "maybe",
        "'$(Configuration)'",
        "'$(Version)' > 'x'",
        "'@(Compile)' == ''",
        "'%(Identity)' == ''",
        "'$([System.Guid]::NewGuid())' == ''",
        "'$(Text.Nothing())' == ''",
        "Unknown('x')",
        "'a' = 'b'",
        "'a' == \"b\"",
        "$(Broken",
        "(" * 1_000 + "true" + ")" * 1_000,
        "!" * 4_000 + "true",
        "'" + "x" * 10_000 + "' == ''",
        "true" + " and true" * 5_000,
    ],
)
def test_what_cannot_be_decided_is_not_guessed(
    condition: str, properties: ProjectProperties
) -> None:
    with pytest.raises(UnknownPropertyError):
        holds(condition, properties.expand, lambda _path: False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("$(folder)/c", "a/b/c"),
        ("$(Nothing)", ""),
        ("$$(Empty)$", "$$"),
        ("$(Text.Replace('.', '-').ToUpper())", "A-B;C"),
        ("$(Text.Length)", "5"),
        ("$(Text.Substring(2))", "b;c"),
        ("$(Text.Substring(2, 1))", "b"),
        ("$(Text.IndexOf(';'))", "3"),
        ("$(Version.Split('.')[0])", None),
        ("$(Empty.Substring(2))", None),
        ("$(Text.Substring(-1))", None),
        ("$(Text.Substring(1e9))", None),
        ("$([System.IO.Path]::Combine('x', '$(Folder)'))", "x/a/b"),
        ("$([System.IO.Path]::GetFileNameWithoutExtension('x\\y.z.cs'))", "y.z"),
        ("$([MSBuild]::EnsureTrailingSlash('a'))", "a/"),
        ("$([MSBuild]::ValueOrDefault('$(Empty)', 'd'))", "d"),
        ("$([System.IO.File]::ReadAllText('/etc/passwd'))", None),
        ("$([System.Environment]::GetEnvironmentVariable('HOME'))", None),
        ("$([MSBuild]::GetRegistryValue('x'))", None),
        ("$(Registry:HKEY_LOCAL_MACHINE\\Software@X)", None),
        ("$(", None),
        ("$()", None),
    ],
)
def test_expressions_become_values(
    text: str, value: str | None, properties: ProjectProperties
) -> None:
    if value is None:
        with pytest.raises(UnknownPropertyError):
            properties.expand(text)
    else:
        assert properties.expand(text) == value


def test_a_folder_above_is_looked_for_within_the_root(
    properties: ProjectProperties, tmp_path: Path
) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)
    (tmp_path / "x" / "marker").write_text("")
    assert (
        properties.expand("$([MSBuild]::GetDirectoryNameOfFileAbove('x/y', 'marker'))")
        == f"{tmp_path}/x"
    )
    assert properties.expand("$([MSBuild]::GetPathOfFileAbove('none'))") == ""
    assert properties.expand("$([MSBuild]::GetDirectoryNameOfFileAbove('/', 'etc/passwd'))") == ""


def test_values_cannot_grow_without_end(properties: ProjectProperties) -> None:
    properties.put("X", "x" * 1_000)
    properties.put("X", properties.expand("$(X)" * 100))
    assert len(properties.get("X")) == MAX_VALUE
    with pytest.raises(UnknownPropertyError):
        properties.expand("$(X)$(X)")
    properties.put("X", "x" * MAX_VALUE)
    with pytest.raises(UnknownPropertyError):
        properties.expand("$(X.Replace('x', '$(X)'))")


def test_a_value_that_is_not_known_makes_what_uses_it_unknown(
    properties: ProjectProperties,
) -> None:
    from filepact_csharp.projects import ProjectMessage  # noqa: PLC0415 - only here

    properties.spoil("Version", ProjectMessage("/p", 3, "not evaluated here"))
    with pytest.raises(UnknownPropertyError):
        properties.expand("$(Version)")
    properties.put("Version", "1")
    assert properties.expand("$(Version)") == "1"


PIECES = st.sampled_from(
    [
        "'",
        "$(",
        ")",
        "(",
        "==",
        "!=",
        "!",
        "and",
        "or",
        "true",
        "Exists",
        "'a'",
        "$(Text)",
        "@(",
        "%(",
        "<",
        " ",
        "1.2",
    ]
)


@given(st.lists(PIECES, max_size=15).map("".join))
def test_any_condition_is_decided_or_refused(condition: str) -> None:
    properties = ProjectProperties(DiskTree("/nowhere"), "/nowhere")
    with suppress(UnknownPropertyError):
        assert holds(condition, properties.expand, lambda _path: False) in (True, False)


@given(st.lists(st.one_of(PIECES, st.text("$()[]:.,'`ab", max_size=5)), max_size=15).map("".join))
def test_any_expression_has_a_value_or_is_refused(text: str) -> None:
    properties = ProjectProperties(DiskTree("/nowhere"), "/nowhere")
    properties.put("Text", "a")
    with suppress(UnknownPropertyError):
        assert isinstance(properties.expand(text), str)
