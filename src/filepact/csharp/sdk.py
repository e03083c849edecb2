"""What the SDK itself says before and after a project, as far as it concerns what is compiled.

Written down here in the same form as a project, so that the same rules work it through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.csharp.frameworks import Framework, parse_framework
from filepact.csharp.markup import Element, parse

if TYPE_CHECKING:
    from filepact.csharp.evaluation import Evaluation

__all__ = ["KNOWN", "symbols", "take_after", "take_before"]

KNOWN: Final = frozenset(
    {
        "microsoft.net.sdk",
        "microsoft.net.sdk.web",
        "microsoft.net.sdk.worker",
        "microsoft.net.sdk.razor",
        "microsoft.net.sdk.windowsdesktop",
        "microsoft.net.sdk.blazorwebassembly",
    }
)
"""SDKs whose additions are known, in lower case."""

_BEFORE: Final[Element] = parse(
    """
<Project>
  <PropertyGroup>
    <Configuration Condition="'$(Configuration)' == ''">Debug</Configuration>
    <Platform Condition="'$(Platform)' == ''">AnyCPU</Platform>
    <EnableDefaultItems Condition="'$(EnableDefaultItems)' == ''">true</EnableDefaultItems>
    <EnableDefaultCompileItems Condition="'$(EnableDefaultCompileItems)' == ''">true</EnableDefaultCompileItems>
    <DefineConstants Condition="'$(DefineConstants)' != ''">$(DefineConstants);TRACE</DefineConstants>
    <DefineConstants Condition="'$(DefineConstants)' == ''">TRACE</DefineConstants>
  </PropertyGroup>
  <ItemGroup Condition="'$(EnableDefaultItems)' == 'true' and '$(EnableDefaultCompileItems)' == 'true'">
    <Compile Include="**/*.cs" Exclude="$(DefaultItemExcludes);$(DefaultExcludesInProjectFolder)" />
  </ItemGroup>
</Project>
"""
)
_AFTER: Final[Element] = parse(
    """
<Project>
  <PropertyGroup>
    <BaseOutputPath Condition="'$(BaseOutputPath)' == ''">bin/</BaseOutputPath>
    <BaseIntermediateOutputPath Condition="'$(BaseIntermediateOutputPath)' == ''">obj/</BaseIntermediateOutputPath>
    <DefaultItemExcludes>$(DefaultItemExcludes);$(BaseOutputPath)/**;$(BaseIntermediateOutputPath)/**</DefaultItemExcludes>
    <DefaultItemExcludes>$(DefaultItemExcludes);bin/**;obj/**</DefaultItemExcludes>
    <DefaultExcludesInProjectFolder>$(DefaultExcludesInProjectFolder);**/.*/**</DefaultExcludesInProjectFolder>
    <AssemblyName Condition="'$(AssemblyName)' == ''">$(MSBuildProjectName)</AssemblyName>
    <OutputType Condition="'$(OutputType)' == ''">Library</OutputType>
  </PropertyGroup>
</Project>
"""
)


def take_before(evaluation: Evaluation) -> None:
    """Work through what comes before a project's own lines."""
    evaluation.take_above("Directory.Build.props")
    evaluation.take_above("Directory.Packages.props")
    evaluation.take(_BEFORE, evaluation.path)


def take_after(evaluation: Evaluation, *, by_sdk: bool) -> Framework:
    """Work through what comes after a project's own lines.

    Args:
        evaluation: The project.
        by_sdk: Whether it is built by an SDK, and not in the old style.

    Returns:
        Its target framework.
    """
    properties = evaluation.properties
    moniker = evaluation.value("TargetFramework")
    if not moniker and not by_sdk:
        version = evaluation.value("TargetFrameworkVersion").lstrip("v")
        moniker = f"net{version.replace('.', '')}" if version else ""
    framework = parse_framework(moniker)
    if framework.identifier:
        properties.put("TargetFrameworkIdentifier", framework.identifier)
        properties.put("TargetFrameworkVersion", f"v{framework.version}")
        properties.put("TargetPlatformIdentifier", framework.platform)
    evaluation.take_above("Directory.Build.targets")
    evaluation.take(_AFTER, evaluation.path)
    return framework


def symbols(evaluation: Evaluation, framework: Framework, *, by_sdk: bool) -> tuple[str, ...]:
    """The symbols for `#if`, each once, sorted.

    Args:
        evaluation: The project, worked through.
        framework: Its target framework.
        by_sdk: Whether it is built by an SDK, which adds some.
    """
    found = set(evaluation.value("DefineConstants").replace(",", ";").replace(" ", ";").split(";"))
    if by_sdk and evaluation.value("DisableImplicitFrameworkDefines").lower() != "true":
        found |= set(framework.defines)
    if by_sdk and evaluation.value("DisableImplicitConfigurationDefines").lower() != "true":
        configuration = evaluation.value("Configuration").upper()
        found.add(configuration.replace("-", "_").replace(".", "_").replace(" ", "_"))
    return tuple(sorted(found - {""}))
