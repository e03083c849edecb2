"""Projects as the MSBuild of an installed .NET SDK evaluates them, within this process.

Evaluation decides properties, items and imports; no target runs, no task, and nothing of the project's.
What it opens is chosen by the project all the same, so it is done only where the kernel keeps the process
to its folders: see `is_confined`.
"""

from __future__ import annotations

import importlib
import os
import posixpath
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from filepact_csharp.projects import FilePattern, ItemElement, ProjectFiles, ProjectItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from filepact_csharp.roslyn import Roslyn

__all__ = ["SdkProject", "SdkProjects", "begin", "is_confined", "prepare"]

_OUTSIDE: Final = "/etc/passwd"
"""What every program of a Linux system may read, and a confined one may not."""

_ASSEMBLIES: Final = ("Microsoft.Build.Framework", "Microsoft.Build")
_SETTINGS: Final = {
    "DesignTimeBuild": "true",
    "ImportUserLocationsByWildcardBeforeMicrosoftCommonProps": "false",
    "ImportUserLocationsByWildcardAfterMicrosoftCommonProps": "false",
    "ImportUserLocationsByWildcardBeforeMicrosoftCommonTargets": "false",
    "ImportUserLocationsByWildcardAfterMicrosoftCommonTargets": "false",
    "ImportUserLocationsByWildcardBeforeMicrosoftCSharpTargets": "false",
    "ImportUserLocationsByWildcardAfterMicrosoftCSharpTargets": "false",
}
"""Properties by which nothing of the person's own settings is taken."""

_FORBIDDEN: Final = ("MSBUILDENABLEALLPROPERTYFUNCTIONS", "MSBUILDADDITIONALSDKRESOLVERSFOLDER")
"""Variables by which a project could call anything, and other programs would resolve its SDKs."""

_MOST: Final = 600
"""Most projects whose evaluation is kept."""

_NAMED: Final = (".cs", ".csproj", ".sln", ".slnx")
"""Files that are not imported."""

_NEAREST: Final = (
    *("Directory.Build.props", "Directory.Build.targets", "Directory.Packages.props"),
    "global.json",
)
"""Files that have a say where they lie at or above a project."""


def is_confined() -> bool:
    """Whether the kernel keeps this process from other files than its own, and from the network."""
    try:
        os.close(os.open(_OUTSIDE, os.O_RDONLY))
    except PermissionError:
        pass
    except OSError:
        return False
    else:
        return False
    try:
        socket.socket().close()
    except PermissionError:
        return True
    return False


def prepare(sdk: str) -> None:
    """Name an SDK to the runtime that is about to be started.

    Args:
        sdk: Its folder, with `Microsoft.Build.dll` in it.
    """
    for name in _FORBIDDEN:
        os.environ.pop(name, None)
    os.environ["MSBUILD_EXE_PATH"] = f"{sdk}/MSBuild.dll"
    os.environ["MSBuildExtensionsPath"] = f"{sdk}/"  # noqa: SIM112 - as it is spelt
    os.environ["MSBuildSDKsPath"] = f"{sdk}/Sdks"  # noqa: SIM112 - the same
    os.environ["DOTNET_CLI_TELEMETRY_OPTOUT"] = "1"


@dataclass(frozen=True, slots=True)
class SdkProject:
    """A project as it was evaluated.

    Attributes:
        values: The final values of properties, by name.
        early: Whether the SDK is from before .NET 5: symbols are properties there, and no item makes a friend.
        items: In order, patterns of sources first.
        imports: The files beneath the root that were imported.
    """

    values: Mapping[str, str]
    early: bool
    items: tuple[ItemElement, ...]
    imports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    """An evaluation, and the files that it came from, as they were."""

    project: SdkProject
    state: tuple[object, ...]


class SdkProjects:
    """The evaluation of an SDK.

    Args:
        roslyn: The runtime, which was started after `prepare`.
        sdk: The folder of the SDK.
        root: The folder whose projects are evaluated.

    Raises:
        Exception: The SDK has no such program, or it is none for this runtime.
    """

    def __init__(self, roslyn: Roslyn, sdk: str, root: str) -> None:
        self._roslyn, self._root = roslyn, root.rstrip("/") + "/"
        assembly = roslyn.reflection.Assembly

        def resolve(_sender: Any, wanted: Any) -> Any:
            place = f"{sdk}/{str(wanted.Name).partition(',')[0]}.dll"
            return assembly.LoadFrom(place) if Path(place).is_file() else None

        handler = roslyn.system.ResolveEventHandler(resolve)
        roslyn.system.AppDomain.CurrentDomain.AssemblyResolve += handler
        for name in _ASSEMBLIES:
            assembly.LoadFrom(f"{sdk}/{name}.dll")
            roslyn.clr.AddReference(name)
        roslyn.clr.AddReference("System.Private.Xml")
        self._build = importlib.import_module("Microsoft.Build.Evaluation")
        self._construction = importlib.import_module("Microsoft.Build.Construction")
        definition = importlib.import_module("Microsoft.Build.Definition")
        self._options = definition.ProjectOptions
        context = importlib.import_module("Microsoft.Build.Evaluation.Context")
        self._contexts = context.EvaluationContext
        self._xml = importlib.import_module("System.Xml")
        self._io = importlib.import_module("System.IO")
        self._texts: dict[str, str] = {}
        self._possible = True
        self._kept: dict[tuple[object, ...], _Kept] = {}
        self._collection: Any = None
        self._context: Any = None

    def show(self, texts: Mapping[str, str | None], moved: Iterable[str] = ()) -> None:
        """Take what project files hold that are not as they are on the disk.

        A new or absent file that others import cannot be shown to it; until it is there, or gone, nothing
        is evaluated, so that what is said before and after is said by the same rules.

        Args:
            texts: By path; None for a file that is not there.
            moved: Files that come or go with what is looked at.
        """
        self._texts = {path: text for path, text in texts.items() if text is not None}
        moved = {*moved, *(path for path in texts if not Path(path).is_file())}
        moved |= texts.keys() - self._texts.keys()
        self._possible = all(path.lower().endswith(_NAMED) for path in moved)
        self.renew()

    def renew(self) -> None:
        """Read files anew from here on, where they have changed."""
        self._collection = None

    def forget(self) -> None:
        """Keep nothing: which files count may have changed."""
        self._kept.clear()
        self.renew()

    def evaluate(self, path: str, settings: Mapping[str, str]) -> SdkProject | None:
        """A project as it is now; None where that is not known, or not known to hold.

        Args:
            path: The project file, absolute, beneath the root.
            settings: Properties that it cannot change.
        """
        if not self._possible:
            return None
        key = (path, *sorted(settings.items()))
        kept = self._kept.get(key)
        if kept is not None and kept.state == self._state((path, *kept.project.imports)):
            return kept.project if _is_understood(kept.project) else None
        try:
            project = self._evaluated(path, settings)
        except self._roslyn.system.Exception:
            return None
        if len(self._kept) >= _MOST:
            self._kept.clear()
        self._kept[key] = _Kept(project, self._state((path, *project.imports)))
        return project if _is_understood(project) else None

    def _state(self, paths: Iterable[str]) -> tuple[object, ...]:
        """What an evaluation depends on, as it is now."""
        folder = posixpath.dirname(next(iter(paths)))
        found: list[object] = []
        for one in (*paths, *self._candidates(folder)):
            shown = self._texts.get(one)
            found.append(_stamp(one) if shown is None else hash(shown))
        return tuple(found)

    def _candidates(self, folder: str) -> Iterator[str]:
        """Files that have a say if they are there."""
        while f"{folder}/".startswith(self._root):
            yield from (posixpath.join(folder, name) for name in _NEAREST)
            folder = posixpath.dirname(folder)

    def _evaluated(self, path: str, settings: Mapping[str, str]) -> SdkProject:
        if self._collection is None:
            self._collection = self._build.ProjectCollection()
            self._context = self._contexts.Create(self._contexts.SharingPolicy.Shared)
            for place, text in self._texts.items():
                self._put(place, text)
        system = self._roslyn.system
        table = self._roslyn.table(system.String, system.String)
        for name, value in {**_SETTINGS, **settings}.items():
            table[name] = value
        # What one project has found out of the disk and of SDKs counts for the others of a reading.
        options = self._options()
        options.GlobalProperties = table
        options.ProjectCollection = self._collection
        options.EvaluationContext = self._context
        element = self._construction.ProjectRootElement.Open(path, self._collection)
        found = self._build.Project.FromProjectRootElement(element, options)
        imported = (str(one.ImportedProject.FullPath) for one in found.Imports)
        values = {name: str(found.GetPropertyValue(name)).strip() for name in _PROPERTIES}
        early = _number(values["MSBuildVersion"]) < _LATER
        return SdkProject(
            values,
            early,
            tuple(self._items(found, posixpath.dirname(path), early=early)),
            tuple(dict.fromkeys(one for one in imported if one.startswith(self._root))),
        )

    def _put(self, path: str, text: str) -> None:
        """Have a file hold another text than on the disk."""
        if not path.lower().endswith((".sln", ".slnx")):
            reader = self._xml.XmlReader.Create(self._io.StringReader(text))
            element = self._construction.ProjectRootElement.Create(reader, self._collection)
            element.FullPath = path

    def _items(self, project: Any, folder: str, *, early: bool) -> Iterator[ItemElement]:
        steps = []
        for one in project.GetAllGlobs("Compile"):
            includes = tuple(map(str, one.IncludeGlobs))
            excludes = (*map(str, one.Excludes), *map(str, one.Removes))
            yield ItemElement("compile", includes, excludes)
            patterns, without = (
                tuple(found for each in some if (found := FilePattern.parse(each, folder)))
                for some in (includes, excludes)
            )
            steps.append(ProjectItem(True, patterns, without))
        globbed = ProjectFiles(tuple(steps))
        for one in project.GetItems("Compile"):
            name = str(one.EvaluatedInclude).replace("\\", "/")
            place = posixpath.normpath(posixpath.join(folder, name))
            if not globbed.includes(place):
                yield ItemElement("compile", (name,))
        kinds = _KINDS if early else {**_KINDS, "InternalsVisibleTo": ("Key",)}
        for kind, said in kinds.items():
            for one in project.GetItems(kind):
                metadata = {name.lower(): str(one.GetMetadataValue(name)) for name in said}
                if metadata.pop("isimplicitlydefined", "").lower() != "true":
                    include = str(one.EvaluatedInclude)
                    yield ItemElement(kind.lower(), (include,), metadata=metadata)


_KINDS: Final = {
    "Using": ("Static", "Alias"),
    "ProjectReference": ("ReferenceOutputAssembly",),
    "PackageReference": ("IsImplicitlyDefined",),
    "FrameworkReference": ("IsImplicitlyDefined",),
    "Reference": ("HintPath",),
    "Protobuf": (),
    "EditorConfigFiles": (),
    "GlobalAnalyzerConfigFiles": (),
    "AddModules": (),
}
"""Items that count, with what is asked of each."""

_PROPERTIES: Final = (
    *("TargetFramework", "TargetFrameworks", "TargetFrameworkIdentifier", "TargetFrameworkVersion"),
    *("NETCoreAppMaximumVersion", "UsingMicrosoftNETSdk", "MSBuildVersion", "Configuration"),
    *("AssemblyName", "OutputType", "StartupObject", "LangVersion", "Nullable", "ImplicitUsings"),
    *("DefineConstants", "DisableImplicitFrameworkDefines", "DisableImplicitConfigurationDefines"),
    *("AllowUnsafeBlocks", "CheckForOverflowUnderflow", "NoWarn", "TreatWarningsAsErrors"),
    *("WarningsAsErrors", "WarningsNotAsErrors", "WarningLevel", "CodeAnalysisRuleSet"),
    *("DiscoverEditorConfigFiles", "GenerateDocumentationFile", "DocumentationFile", "Features"),
    *("CompilerResponseFile", "CodePage", "KeyContainerName", "ModuleAssemblyName"),
    *("SignAssembly", "AssemblyOriginatorKeyFile", "PublicKey"),
    *("MSBuildProjectExtensionsPath", "BaseIntermediateOutputPath", "UseWPF", "UseMaui"),
)
"""Properties that count."""

_LATER: Final = (16, 8)
"""The version of MSBuild that came with .NET 5."""


def _is_understood(project: SdkProject) -> bool:
    """Whether an SDK knows what a project is built for; later ones bring rules that it has not."""
    values = project.values
    if values["UsingMicrosoftNETSdk"].lower() != "true":
        return False
    target, family = values["TargetFramework"], values["TargetFrameworkIdentifier"]
    if not target:
        return bool(values["TargetFrameworks"])
    if family == ".NETFramework":
        # An SDK from before .NET 5 takes what it does not understand for one of these.
        return "." not in target
    newest = _number(values["NETCoreAppMaximumVersion"])
    later = (
        family == ".NETCoreApp" and newest and _number(values["TargetFrameworkVersion"]) > newest
    )
    return bool(family) and not later


def _number(version: str) -> tuple[int, ...]:
    """The first two numbers of a version; empty for none."""
    parts = version.lstrip("v").split(".")[:2]
    return tuple(int(one) for one in parts) if all(one.isdigit() for one in parts) else ()


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def begin(roslyn: Roslyn, root: str) -> SdkProjects | None:
    """The evaluation of the SDK that a runtime was started with; None where there is none for it."""
    if not roslyn.sdk:
        return None
    try:
        return SdkProjects(roslyn, roslyn.sdk, root)
    except (ImportError, roslyn.system.Exception):
        return None
