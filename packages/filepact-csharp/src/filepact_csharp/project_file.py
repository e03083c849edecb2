"""Reads a project file: what is compiled, with what, and what could not be found out."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, cast

from filepact_csharp.evaluation import ProjectReader
from filepact_csharp.expressions import UnknownPropertyError
from filepact_csharp.frameworks import (
    Framework,
    parse_framework,
    preferred,
    read_packages,
    shared_frameworks,
    usual_usings,
)
from filepact_csharp.projects import (
    FilePattern,
    GlobalUsing,
    ItemElement,
    Nullable,
    Output,
    Project,
    ProjectFiles,
    ProjectItem,
    split_list,
    unescape,
)
from filepact_csharp.safe_xml import XmlElement, parse
from filepact_csharp.severities import codes, features, read_severities

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from filepact_csharp.evaluation import Evaluate, Parsed, PendingItem
    from filepact_csharp.frameworks import Framework
    from filepact_csharp.projects import FileTree

__all__ = ["read_project"]

_KINDS: Final = frozenset(
    {
        "compile",
        "using",
        "projectreference",
        "packagereference",
        "reference",
        "frameworkreference",
        "internalsvisibleto",
        "protobuf",
        "editorconfigfiles",
        "globalanalyzerconfigfiles",
        "addmodules",
    }
)
_MAX_SOURCES: Final = 50_000
_MAX_COMPARED: Final = 10_000_000
_UNSEEN: Final = {
    "protobuf": "code from .proto files is not seen",
    "addmodules": "added modules are not seen",
}
_NULLABLE: Final = ("disable", "enable", "warnings", "annotations")
_COMPONENTS: Final = frozenset(
    {"microsoft.net.sdk.web", "microsoft.net.sdk.razor", "microsoft.net.sdk.blazorwebassembly"}
)
# Packages that write the program's entry point when it is built.
_ENTRY_POINTS: Final = frozenset({"microsoft.net.test.sdk", "xunit.v3", "mstest", "tunit"})


def read_project(
    path: str,
    root: str,
    files: FileTree,
    fixed: Mapping[str, str],
    parsed: Parsed,
    newest: int = 0,
    evaluate: Evaluate | None = None,
) -> tuple[Project, tuple[str, ...]]:
    """One project, and the files that have a say in it.

    Whatever is wrong with a file becomes a message; nothing is raised for it.

    Args:
        path: The project file, absolute.
        root: The folder that is not left.
        files: Where files are.
        fixed: Properties that the project cannot change, such as ``SolutionDir``.
        parsed: Files that other projects of the solution have read.
        newest: The latest version of .NET whose libraries are there; 0 if that does not matter.
        evaluate: Goes before the rules here, where it knows the project; None for nothing.
    """
    fixed = {"Configuration": "Debug", "Platform": "AnyCPU", **fixed}
    reader = _ProjectReader(path, root, files, fixed, parsed, newest, evaluate)
    project = reader.read()
    return project, tuple(dict.fromkeys(reader.inputs))


@dataclass(slots=True)
class _Found:
    """The sum of a project's items."""

    steps: list[ProjectItem] = field(default_factory=list)
    usings: dict[str, GlobalUsing] = field(default_factory=dict)
    references: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    packages: dict[str, str] = field(default_factory=dict)
    dlls: list[str] = field(default_factory=list)
    frameworks: dict[str, None] = field(default_factory=dict)
    friends: dict[str, None] = field(default_factory=dict)
    configs: list[str] = field(default_factory=list)

    def use(self, item: ItemElement) -> None:
        """Take an item of usings."""
        static = item.metadata.get("static", "").lower() == "true"
        for name in (*item.removes, *item.includes):
            self.usings.pop(name, None)
            if name in item.includes:
                self.usings[name] = GlobalUsing(name, item.metadata.get("alias", ""), static)


class _ProjectReader:
    """Reads one project, if it has several target frameworks for one of them."""

    def __init__(
        self,
        path: str,
        root: str,
        files: FileTree,
        fixed: Mapping[str, str],
        parsed: Parsed,
        newest: int,
        evaluate: Evaluate | None,
    ) -> None:
        self.path, self.root, self.files = path, root, files
        self.fixed, self.parsed, self.newest = dict(fixed), parsed, newest
        self.evaluate = evaluate
        self.inputs: list[str] = []
        self.sdk = ""

    def read(self) -> Project:
        evaluation, framework = self._by_sdk() or self._by_rules()
        project = self._project(evaluation, framework)
        self.inputs += evaluation.inputs
        return replace(
            project, approximate=evaluation.approximate, messages=tuple(evaluation.messages)
        )

    def _by_sdk(self) -> tuple[ProjectReader, Framework] | None:
        """The project as an SDK evaluates it; None where none does."""
        found = self.evaluate and self.evaluate(self.path, self.fixed)
        if self.evaluate is None or found is None:
            return None
        evaluation = ProjectReader(self.path, self.root, self.files, self.fixed, self.parsed)
        frameworks = split_list(found.values["TargetFrameworks"])
        if frameworks and not found.values["TargetFramework"]:
            chosen = preferred(frameworks, self.newest)
            found = self.evaluate(self.path, {**self.fixed, "TargetFramework": chosen})
            if len(frameworks) > 1:
                evaluation.say(f"of {', '.join(frameworks)[:200]}, only {chosen} is looked at")
        if found is None or not evaluation.take_evaluated(found):
            return None
        element = evaluation.load(self.path)
        names = split_list(element.get("Sdk")) if element is not None else []
        self.sdk = names[0].partition("/")[0].strip() if names else "Microsoft.NET.Sdk"
        return evaluation, parse_framework(found.values["TargetFramework"])

    def _by_rules(self) -> tuple[ProjectReader, Framework]:
        evaluation, framework = self._evaluate()
        frameworks = split_list(evaluation.properties.get("TargetFrameworks"))
        if frameworks and not evaluation.properties.get("TargetFramework"):
            chosen = preferred(frameworks, self.newest)
            self.fixed["TargetFramework"] = chosen
            self.inputs += evaluation.inputs
            evaluation, framework = self._evaluate()
            if len(frameworks) > 1:
                evaluation.say(f"of {', '.join(frameworks)[:200]}, only {chosen} is looked at")
        return evaluation, framework

    def _evaluate(self) -> tuple[ProjectReader, Framework]:
        evaluation = ProjectReader(self.path, self.root, self.files, self.fixed, self.parsed)
        self.sdk = ""
        evaluation.on_sdk = lambda sdk, file: self._import_sdk(evaluation, sdk, file)
        element = evaluation.load(self.path)
        evaluation.unread = element is None
        if element is not None:
            names = [one.split("/")[0].strip() for one in split_list(element.get("Sdk"))]
            if names:
                self.sdk = next((one for one in names if one.lower() in KNOWN), names[0])
                take_before(evaluation, self.sdk)
            elif not any(one.name == "Import" and one.get("Sdk") for one in element.children):
                evaluation.take_above("Directory.Build.props")
                evaluation.say(
                    "it is no project of the SDK's style; only what stands in it is known"
                )
            for name in names:
                if name.lower() not in KNOWN:
                    evaluation.say(f"what the SDK {name[:80]} adds is not known", line=element.line)
            evaluation.take(element, self.path)
        return evaluation, take_after(evaluation, by_sdk=bool(self.sdk))

    def _import_sdk(self, evaluation: ProjectReader, sdk: str, file: str) -> None:
        """A project that imports its SDK by hand: what comes before stands where it says so."""
        sdk = sdk.partition("/")[0]
        if sdk.lower() not in KNOWN:
            evaluation.say(f"what the SDK {sdk[:80]} adds is not known")
        elif file.lower().endswith(".props"):
            self.sdk = self.sdk or sdk
            take_before(evaluation, self.sdk)

    def _project(self, evaluation: ProjectReader, framework: Framework) -> Project:
        value = evaluation.value
        by_sdk = bool(self.sdk)

        def true(name: str) -> bool:
            return value(name).lower() == "true"

        implicit = by_sdk and value("ImplicitUsings").lower() in ("enable", "true")
        found = self._items(evaluation, framework, implicit=implicit)
        membership = ProjectFiles(tuple(found.steps))
        packages = read_packages(evaluation, framework, found.packages)
        nullable = value("Nullable", "disable").lower()
        if nullable not in _NULLABLE:
            evaluation.say(f"Nullable is {nullable[:40]}, which means nothing")
            nullable = "disable"
        self._say_what_is_generated(evaluation, framework)
        return Project(
            path=self.path,
            name=posixpath.splitext(posixpath.basename(self.path))[0],
            assembly=value("AssemblyName"),
            sources=(sources := self._sources(evaluation, membership)),
            membership=membership,
            defines=symbols(evaluation, framework, by_sdk=by_sdk),
            lang_version=value("LangVersion", framework.lang_version).lower(),
            nullable=cast("Nullable", nullable),
            implicit_usings=implicit,
            global_usings=tuple(found.usings.values()),
            references=tuple(dict.fromkeys([*found.references, *packages.projects])),
            packages=(*found.dlls, *packages.references),
            missing_packages=packages.missing,
            missing_projects=tuple(found.absent),
            unread=evaluation.unread,
            maybe_friends=evaluation.maybe_friends,
            generators=packages.generators,
            startup=value("StartupObject"),
            frameworks=tuple(dict.fromkeys([*shared_frameworks(self.sdk), *found.frameworks])),
            target_framework=framework.moniker,
            output=_output(value("OutputType"), found.packages),
            unsafe=true("AllowUnsafeBlocks"),
            checked=true("CheckForOverflowUnderflow"),
            no_warn=codes(value("NoWarn")),
            warnings_as_errors=("*",)
            if true("TreatWarningsAsErrors")
            else codes(value("WarningsAsErrors")),
            severities=read_severities(evaluation, sources, found.configs, self.files),
            documented=bool(value("DocumentationFile")) or true("GenerateDocumentationFile"),
            features=features(value("Features")),
            friends=tuple(found.friends),
            key_file=self._key_file(evaluation),
        )

    def _items(self, evaluation: ProjectReader, framework: Framework, *, implicit: bool) -> _Found:
        found = _Found()
        if implicit and evaluation.evaluated is None:
            found.usings = {one.name: one for one in usual_usings(self.sdk, framework)}
        for item in read_items(evaluation, _KINDS):
            match item.kind:
                case "compile":
                    self._compile(evaluation, item, found)
                case "using":
                    found.use(item)
                case "editorconfigfiles" | "globalanalyzerconfigfiles":
                    found.configs += item.includes
                case "projectreference":
                    self._reference(evaluation, item, found)
                case "packagereference":
                    for name in item.removes:
                        found.packages.pop(name.lower(), None)
                    found.packages |= {name.lower(): name for name in item.includes}
                case "reference":
                    if hint := item.metadata.get("hintpath", ""):
                        found.dlls.append(self._absolute(hint))
                case "frameworkreference":
                    found.frameworks |= dict.fromkeys(item.includes)
                case "internalsvisibleto":
                    key = item.metadata.get("key") or evaluation.value("PublicKey")
                    found.friends |= {
                        f"{name}, PublicKey={key}" if key else name: None for name in item.includes
                    }
                case _ if item.kind in _UNSEEN:
                    evaluation.say(_UNSEEN[item.kind], item.path, item.line)
                case _:
                    pass
        return found

    def _compile(self, evaluation: ProjectReader, item: ItemElement, found: _Found) -> None:
        if item.includes:
            patterns = self._patterns(evaluation, item, item.includes)
            found.steps.append(
                ProjectItem(True, patterns, self._patterns(evaluation, item, item.excludes))
            )
        elif item.removes:
            found.steps.append(ProjectItem(False, self._patterns(evaluation, item, item.removes)))

    def _patterns(
        self, evaluation: ProjectReader, item: ItemElement, texts: Iterable[str]
    ) -> tuple[FilePattern, ...]:
        patterns = []
        for text in texts:
            pattern = FilePattern.parse(text, evaluation.folder)
            if pattern is None:
                evaluation.say(f"{text[:100]} is no pattern that is read", item.path, item.line)
            else:
                patterns.append(pattern)
        return tuple(patterns)

    def _sources(self, evaluation: ProjectReader, membership: ProjectFiles) -> tuple[str, ...]:
        """The files of a project that are there."""
        found: set[str] = set()
        listed: set[tuple[str, str]] = set()
        compared = 0
        for pattern in membership.added():
            name, place = posixpath.basename(pattern.folder)[:80], (pattern.folder, pattern.ending)
            if not evaluation.within(pattern.folder) and pattern.folder != evaluation.root:
                evaluation.say(f"sources in {name} lie outside of the root and are not read")
            elif not pattern.parts:
                if not membership.includes(pattern.folder):
                    continue
                if self.files.has(pattern.folder):
                    found.add(pattern.folder)
                else:
                    evaluation.say(f"the source {name} is not there", harmless=True, code="CS2001")
            elif place not in listed:
                listed.add(place)
                places = set(self.files.below(*place)) - found
                compared += len(places) * membership.wildcards
                if compared > _MAX_COMPARED:
                    evaluation.say("there are too many wildcards for so many files")
                    break
                found.update(filter(membership.includes, places))
        if len(found) > _MAX_SOURCES:
            evaluation.say(f"of {len(found):,} sources, {_MAX_SOURCES:,} are looked at")
        return tuple(sorted(found)[:_MAX_SOURCES])

    def _reference(self, evaluation: ProjectReader, item: ItemElement, found: _Found) -> None:
        gone = {self._absolute(name) for name in item.removes}
        found.references = [one for one in found.references if one not in gone]
        if item.metadata.get("referenceoutputassembly", "").lower() == "false":
            return
        for name in item.includes:
            path = self._absolute(name)
            if not evaluation.within(path):
                evaluation.say(
                    f"the project {name[:100]} lies outside of the root and is not read",
                    item.path,
                    item.line,
                )
                found.absent.append(path)
            elif not self.files.has(path):
                said = f"the project {name[:100]} is not there"
                evaluation.say(said, item.path, item.line, code="MSB9008")
                evaluation.inputs.append(path)
                found.absent.append(path)
            else:
                found.references.append(path)

    def _key_file(self, evaluation: ProjectReader) -> str:
        name = evaluation.value("AssemblyOriginatorKeyFile")
        if not name or evaluation.value("SignAssembly").lower() != "true":
            return ""
        path = self._absolute(name)
        if evaluation.within(path) and self.files.has(path):
            return path
        evaluation.say(
            "the key file is not there, so other assemblies may be refused what is internal"
        )
        return ""

    def _say_what_is_generated(self, evaluation: ProjectReader, framework: Framework) -> None:
        """Say which code would be made from other files when it is built."""
        value = evaluation.value
        if self.sdk.lower() in _COMPONENTS and any(self.files.below(evaluation.folder, ".razor")):
            evaluation.say("code from .razor files is not seen")
        if value("UseWPF").lower() == "true" or value("UseMaui").lower() == "true":
            evaluation.say("code from XAML files is not seen")
        if self.sdk and not framework.identifier:
            name = framework.moniker[:40] or "none"
            code = "" if evaluation.approximate else "NETSDK1013"
            evaluation.say(f"the target framework ({name}) is not known", code=code)

    def _absolute(self, name: str) -> str:
        folder = posixpath.dirname(self.path)
        return posixpath.normpath(posixpath.join(folder, unescape(name.replace("\\", "/"))))


def _output(kind: str, packages: Mapping[str, str]) -> Output:
    if _ENTRY_POINTS & packages.keys():
        return "library"
    return {"exe": "exe", "winexe": "winexe"}.get(kind.lower(), "library")  # type: ignore[return-value]  # its keys are such


# -- items, when all properties are known ----------------------------------------------------------

MAX_ENTRIES: Final = 100_000
"""Most entries of items that are taken of one project."""


def read_items(evaluation: ProjectReader, kinds: frozenset[str]) -> Iterator[ItemElement]:
    """The items of some kinds that hold, in order.

    What cannot be evaluated is said, and left out.

    Args:
        evaluation: The project, worked through to its end.
        kinds: Their names, in lower case.
    """
    if evaluation.evaluated is not None:
        yield from evaluation.evaluated.items
        return
    entries = 0
    # A group's condition is asked for each of its items, and no property changes any more.
    known: dict[tuple[str, str], bool] = {}
    for pending in evaluation.pending:
        kind, line = pending.element.name.lower(), pending.element.line
        if kind not in kinds:
            continue
        evaluation.enter(pending.path)
        try:
            if not _hold(evaluation, pending, known):
                continue
            item = _item(evaluation, kind, pending)
        except UnknownPropertyError as error:
            evaluation.say(f"not evaluated here: {error}", pending.path, line)
            continue
        entries += sum(map(len, (item.includes, item.excludes, item.removes)))
        if entries > MAX_ENTRIES:
            evaluation.say(f"more than {MAX_ENTRIES:,} entries are not read", pending.path, line)
            return
        yield item


def _hold(
    evaluation: ProjectReader, pending: PendingItem, known: dict[tuple[str, str], bool]
) -> bool:
    for condition in (*pending.conditions, pending.element.get("Condition")):
        key = (condition, pending.path)
        if key not in known:
            known[key] = evaluation.holds(condition)
        if not known[key]:
            return False
    return True


def _item(evaluation: ProjectReader, kind: str, pending: PendingItem) -> ItemElement:
    element, expand = pending.element, evaluation.properties.expand

    def entries(attribute: str) -> tuple[str, ...]:
        found = split_list(expand(element.get(attribute)))
        for entry in found:
            if "@(" in entry or "%(" in entry:
                raise UnknownPropertyError(entry[:80])
        return tuple(found)

    includes, excludes = entries("Include"), entries("Exclude")
    removes, updates = entries("Remove"), entries("Update")
    metadata = {key.lower(): value for key, value in element.attributes.items()}
    metadata |= {child.name.lower(): child.text.strip() for child in element.children}
    for key, value in metadata.items():
        try:
            metadata[key] = expand(value)
        except UnknownPropertyError:
            metadata[key] = value
    return ItemElement(
        kind, includes, excludes, removes, updates, metadata, pending.path, element.line
    )


# -- what the SDK says before and after a project, in the form of a project ------------------------

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

_PROGRAMS: Final = frozenset(
    {"microsoft.net.sdk.web", "microsoft.net.sdk.worker", "microsoft.net.sdk.blazorwebassembly"}
)
"""SDKs whose projects are programs if they do not say what they are."""

_BEFORE: Final[XmlElement] = parse(
    """
<Project>
  <PropertyGroup>
    <UseArtifactsOutput Condition="'$(UseArtifactsOutput)' == '' and '$(ArtifactsPath)' != ''">true</UseArtifactsOutput>
  </PropertyGroup>
  <PropertyGroup Condition="'$(UseArtifactsOutput)' == 'true'">
    <IncludeProjectNameInArtifactsPaths Condition="'$(IncludeProjectNameInArtifactsPaths)' == '' and ('$(ArtifactsPath)' != '' or '$(_DirectoryBuildPropsBasePath)' != '')">true</IncludeProjectNameInArtifactsPaths>
    <ArtifactsPath Condition="'$(ArtifactsPath)' == '' and '$(_DirectoryBuildPropsBasePath)' != ''">$(_DirectoryBuildPropsBasePath)/artifacts</ArtifactsPath>
    <ArtifactsPath Condition="'$(ArtifactsPath)' == ''">$(MSBuildProjectDirectory)/artifacts</ArtifactsPath>
    <ArtifactsProjectName Condition="'$(ArtifactsProjectName)' == ''">$(MSBuildProjectName)</ArtifactsProjectName>
    <BaseIntermediateOutputPath Condition="'$(BaseIntermediateOutputPath)' == '' and '$(IncludeProjectNameInArtifactsPaths)' == 'true'">$(ArtifactsPath)/obj/$(ArtifactsProjectName)/</BaseIntermediateOutputPath>
    <BaseIntermediateOutputPath Condition="'$(BaseIntermediateOutputPath)' == ''">$(ArtifactsPath)/obj/</BaseIntermediateOutputPath>
    <DefaultItemExcludes>$(DefaultItemExcludes);$(ArtifactsPath)/**</DefaultItemExcludes>
  </PropertyGroup>
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
_AFTER: Final[XmlElement] = parse(
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


def take_before(evaluation: ProjectReader, sdk: str) -> None:
    """Work through what comes before a project's own lines.

    Args:
        evaluation: The project.
        sdk: By which it is built.
    """
    folder = posixpath.dirname(evaluation.take_above("Directory.Build.props"))
    evaluation.properties.put("_DirectoryBuildPropsBasePath", folder)
    if sdk.lower() in _PROGRAMS and not evaluation.properties.get("OutputType"):
        evaluation.properties.put("OutputType", "Exe")
    evaluation.take_above("Directory.Packages.props")
    evaluation.take(_BEFORE, evaluation.path)


def take_after(evaluation: ProjectReader, *, by_sdk: bool) -> Framework:
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


def symbols(evaluation: ProjectReader, framework: Framework, *, by_sdk: bool) -> tuple[str, ...]:
    """The symbols for `#if`, each once, sorted.

    Args:
        evaluation: The project, worked through.
        framework: Its target framework.
        by_sdk: Whether it is built by an SDK, which adds some.
    """
    found = set(evaluation.value("DefineConstants").replace(",", ";").replace(" ", ";").split(";"))
    early = evaluation.evaluated is not None and evaluation.evaluated.early
    own = evaluation.value("DisableImplicitFrameworkDefines").lower() == "true"
    if by_sdk and not early and not own:
        found |= set(framework.defines)
    if by_sdk and evaluation.value("DisableImplicitConfigurationDefines").lower() != "true":
        configuration = evaluation.value("Configuration").upper()
        found.add(configuration.replace("-", "_").replace(".", "_").replace(" ", "_"))
    return tuple(sorted(found - {""}))
