"""Target frameworks, and the packages that a restore has left for one."""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import FilepactError
from filepact_csharp.projects import GlobalUsing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from filepact_csharp.evaluation import ProjectReader
    from filepact_csharp.projects import FileTree

__all__ = [
    "Framework",
    "parse_framework",
    "preferred",
    "read_packages",
    "shared_frameworks",
    "usual_usings",
]

_MODERN = re.compile(r"net(\d{1,2})\.(\d{1,2})(?:-([a-z]+)([\d.]*))?")
_CORE = re.compile(r"netcoreapp(\d)\.(\d)")
_STANDARD = re.compile(r"netstandard(\d)\.(\d)")
_CLASSIC = re.compile(r"net(\d)(\d)(\d?)")

_CORE_VERSIONS: Final = ((1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (3, 0), (3, 1))
_STANDARD_VERSIONS: Final = (*((1, minor) for minor in range(7)), (2, 0), (2, 1))
_CLASSIC_VERSIONS: Final = (
    "20", "30", "35", "40", "45", "451", "452", "46", "461", "462", "47", "471", "472", "48", "481",
)  # fmt: skip
_FIRST_MODERN: Final = 5
_OLDEST_LANGUAGE: Final = "7.3"

_USUAL: Final = (
    "System",
    "System.Collections.Generic",
    "System.IO",
    "System.Linq",
    "System.Net.Http",
    "System.Threading",
    "System.Threading.Tasks",
)
_HOSTING: Final = (
    "Microsoft.Extensions.Configuration",
    "Microsoft.Extensions.DependencyInjection",
    "Microsoft.Extensions.Hosting",
    "Microsoft.Extensions.Logging",
)
_WEB: Final = (
    "System.Net.Http.Json",
    "Microsoft.AspNetCore.Builder",
    "Microsoft.AspNetCore.Hosting",
    "Microsoft.AspNetCore.Http",
    "Microsoft.AspNetCore.Routing",
    *_HOSTING,
)


@dataclass(frozen=True, slots=True)
class Framework:
    """A target framework.

    Attributes:
        moniker: As projects name it, in lower case, such as ``net8.0``.
        identifier: The family, such as ``.NETCoreApp``; empty if it is not known.
        version: Within the family, such as ``8.0``.
        platform: The system that it is for, such as ``windows``; may be empty.
        defines: The symbols that it brings.
        lang_version: The version of the language that is taken if the project names none.
    """

    moniker: str
    identifier: str
    version: str
    platform: str
    defines: tuple[str, ...]
    lang_version: str

    @property
    def modern(self) -> bool:
        """Whether it is .NET 5 or later."""
        return self.identifier == ".NETCoreApp" and int(self.version.split(".")[0]) >= _FIRST_MODERN

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the package manager may give it, the likeliest first."""
        long = f"{self.identifier},Version=v{self.version}" if self.identifier else ""
        return (self.moniker, long) if long else (self.moniker,)


def parse_framework(moniker: str) -> Framework:
    """A target framework by its moniker; one without symbols if it is not known."""
    moniker = moniker.strip().lower()
    if found := _MODERN.fullmatch(moniker):
        return _modern(moniker, found)
    if found := _CORE.fullmatch(moniker):
        version = (int(found[1]), int(found[2]))
        names = ["NETCOREAPP", f"NETCOREAPP{version[0]}_{version[1]}", *_core_or_greater(version)]
        language = "8.0" if version >= (3, 0) else _OLDEST_LANGUAGE
        return Framework(moniker, ".NETCoreApp", _dotted(version), "", tuple(names), language)
    if found := _STANDARD.fullmatch(moniker):
        version = (int(found[1]), int(found[2]))
        names = ["NETSTANDARD", f"NETSTANDARD{version[0]}_{version[1]}"]
        names += [
            f"NETSTANDARD{a}_{b}_OR_GREATER" for a, b in _STANDARD_VERSIONS if (a, b) <= version
        ]
        language = "8.0" if version >= (2, 1) else _OLDEST_LANGUAGE
        return Framework(moniker, ".NETStandard", _dotted(version), "", tuple(names), language)
    if found := _CLASSIC.fullmatch(moniker):
        digits = "".join(found.groups())
        before = (
            _CLASSIC_VERSIONS[: _CLASSIC_VERSIONS.index(digits) + 1]
            if digits in _CLASSIC_VERSIONS
            else ()
        )
        names = ["NETFRAMEWORK", f"NET{digits}", *(f"NET{one}_OR_GREATER" for one in before)]
        return Framework(
            moniker, ".NETFramework", ".".join(digits), "", tuple(names), _OLDEST_LANGUAGE
        )
    return Framework(moniker, "", "", "", (), "latest")


def _modern(moniker: str, found: re.Match[str]) -> Framework:
    major, minor = int(found[1]), int(found[2])
    if major < _FIRST_MODERN:
        return Framework(moniker, "", "", "", (), "latest")
    platform, platform_version = found[3] or "", (found[4] or "").strip(".")
    names = ["NET", f"NET{major}_{minor}", "NETCOREAPP"]
    names += [f"NET{one}_0_OR_GREATER" for one in range(_FIRST_MODERN, major + 1)]
    names += _core_or_greater((major, minor))
    if platform:
        names.append(platform.upper())
        if platform_version:
            names.append(platform.upper() + platform_version.replace(".", "_"))
    # .NET 5 came with version 9 of the language; each year brought one more of both.
    language = f"{major + 4}.0"
    return Framework(moniker, ".NETCoreApp", f"{major}.{minor}", platform, tuple(names), language)


def _core_or_greater(version: tuple[int, int]) -> list[str]:
    return [f"NETCOREAPP{a}_{b}_OR_GREATER" for a, b in _CORE_VERSIONS if (a, b) <= version]


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def preferred(monikers: list[str], newest: int = 0) -> str:
    """Choose the one of several target frameworks that is compiled for.

    The newest of .NET 5 and later for which there are libraries, else the oldest of these, else the first.

    Args:
        monikers: At least one.
        newest: The latest version of .NET whose libraries are there; 0 if that does not matter.
    """
    known = [one for one in map(parse_framework, monikers) if one.modern]
    if not known:
        return monikers[0]

    def rank(one: Framework) -> tuple[bool, tuple[int, ...], bool]:
        numbers = tuple(int(part) for part in one.version.split("."))
        fits = not newest or numbers[0] <= newest
        return fits, numbers if fits else tuple(-part for part in numbers), not one.platform

    return max(known, key=rank).moniker


def usual_usings(sdk: str, framework: Framework) -> tuple[GlobalUsing, ...]:
    """The namespaces that are imported where a project wants the usual ones.

    Args:
        sdk: The project's SDK, such as ``Microsoft.NET.Sdk.Web``.
        framework: What it is built for.
    """
    names = [
        name
        for name in _USUAL
        if framework.identifier != ".NETFramework" or name != "System.Net.Http"
    ]
    names += {
        "microsoft.net.sdk.web": _WEB,
        "microsoft.net.sdk.worker": _HOSTING,
        "microsoft.net.sdk.blazorwebassembly": ("System.Net.Http.Json",),
    }.get(sdk.lower(), ())
    return tuple(GlobalUsing(name) for name in names)


def shared_frameworks(sdk: str) -> tuple[str, ...]:
    """The shared frameworks that an SDK brings besides the usual one."""
    return ("Microsoft.AspNetCore.App",) if sdk.lower() == "microsoft.net.sdk.web" else ()


# -- packages: what a restore has left in `obj/project.assets.json` --------------------------------

MAX_BYTES: Final = 64_000_000
"""Largest file that is read."""


class PackageFileError(Exception):
    """The file is not what a restore writes."""


@dataclass(frozen=True, slots=True)
class FrameworkPackages:
    """The packages that were restored for one target framework.

    Attributes:
        packages: Names of the packages, in lower case.
        references: The absolute paths of their DLLs, sorted.
        generators: Names of packages that bring analyzers or generators of sources.
        projects: The project files of all projects that are referred to, also through others.
    """

    packages: frozenset[str]
    references: tuple[str, ...]
    generators: tuple[str, ...]
    projects: tuple[str, ...]


def read_assets(text: str, framework: Framework, folder: str, files: FileTree) -> FrameworkPackages:
    """The packages of a project.

    Args:
        text: The file's text.
        framework: The target framework that is wanted.
        folder: The project's folder.
        files: Where the DLLs may be.

    Raises:
        PackageFileError: It is no such file, or has nothing for this framework.
    """
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PackageFileError("it is no JSON") from error
    target = _target(_table(whole, "targets"), framework)
    libraries = _table(whole, "libraries")
    folders = [one.replace("\\", "/").rstrip("/") for one in _table(whole, "packageFolders")]
    packages: set[str] = set()
    references: list[str] = []
    generators: list[str] = []
    projects: list[str] = []
    for key, entry in target.items():
        library = libraries.get(key)
        if not isinstance(entry, dict) or not isinstance(library, dict):
            continue
        name = key.split("/")[0]
        if entry.get("type") == "project":
            if isinstance(path := library.get("msbuildProject"), str):
                place = posixpath.join(folder, path.replace("\\", "/"))
                projects.append(posixpath.normpath(place))
            continue
        packages.add(name.lower())
        if any(_generates(one) for one in library.get("files") or () if isinstance(one, str)):
            generators.append(name)
        path = library.get("path")
        if isinstance(path, str) and _plain(path):
            references += _dlls(entry, path, folders, files)
    return FrameworkPackages(
        frozenset(packages), tuple(sorted(set(references))), tuple(generators), tuple(projects)
    )


def _target(targets: dict[str, Any], framework: Framework) -> dict[str, Any]:
    """The restored target of a framework, without a runtime identifier."""
    wanted = {name.lower() for name in framework.names}
    for name, target in targets.items():
        if name.lower() in wanted and isinstance(target, dict):
            return target
    raise PackageFileError(
        f"it has nothing for {framework.moniker or 'a project without target framework'}"
    )


def _dlls(entry: dict[str, Any], path: str, folders: list[str], files: FileTree) -> Iterator[str]:
    compiled = entry.get("compile")
    for name in compiled if isinstance(compiled, dict) else ():
        if isinstance(name, str) and name.lower().endswith(".dll") and _plain(name):
            places = [posixpath.join(folder, path, name) for folder in folders]
            if places:
                yield next(filter(files.has, places), places[0])


def _generates(file: str) -> bool:
    return file.startswith("analyzers/") and file.endswith(".dll") and "/vb/" not in file


def _plain(path: str) -> bool:
    """Whether a path stays in the folder of its package."""
    return not path.startswith("/") and ".." not in path.replace("\\", "/").split("/")


def _table(whole: object, key: str) -> dict[str, Any]:
    table = whole.get(key) if isinstance(whole, dict) else None
    if not isinstance(table, dict):
        raise PackageFileError(f"it has no table {key!r}")
    return table


@dataclass(frozen=True, slots=True)
class ProjectPackages:
    """The packages of a project, as far as they are known.

    Attributes:
        references: Their DLLs, absolute.
        missing: The names of those whose DLLs are not known.
        projects: Project files that are seen through others.
        generators: Names of packages that bring analyzers or generators of sources.
    """

    references: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    generators: tuple[str, ...] = ()


def read_packages(
    evaluation: ProjectReader, framework: Framework, wanted: Mapping[str, str]
) -> ProjectPackages:
    """Read the result of a restore, and report what is missing.

    Args:
        evaluation: The project, worked through to its end.
        framework: Its target framework.
        wanted: The packages that it names, by their names in lower case.
    """
    assets = _assets(evaluation, framework)
    if assets is None:
        if wanted:
            names = ", ".join(wanted.values())[:200]
            evaluation.say(
                f"nothing was restored, so what is in these packages is not known: {names}"
            )
        return ProjectPackages((), tuple(wanted.values()))
    missing = tuple(name for key, name in wanted.items() if key not in assets.packages)
    if missing:
        evaluation.say(f"not restored: {', '.join(missing)[:200]}")
    if assets.generators:
        names = ", ".join(assets.generators)[:200]
        evaluation.say(f"generators and analyzers do not run: {names}")
    projects = (one for one in assets.projects if evaluation.within(one))
    there = tuple(filter(evaluation.files.has, projects))
    return ProjectPackages(assets.references, missing, there, assets.generators)


def _assets(evaluation: ProjectReader, framework: Framework) -> FrameworkPackages | None:
    value = evaluation.value
    folder = value("MSBuildProjectExtensionsPath") or value("BaseIntermediateOutputPath")
    name = posixpath.join(folder.replace("\\", "/"), "project.assets.json")
    path = posixpath.normpath(posixpath.join(evaluation.folder, name))
    evaluation.inputs.append(path)
    try:
        text = evaluation.files.text(path, MAX_BYTES) if evaluation.within(path) else None
        if text is not None:
            return read_assets(text, framework, evaluation.folder, evaluation.files)
    except FilepactError as error:
        evaluation.say(error.message, path)
    except PackageFileError as error:
        evaluation.say(f"what was restored is not known: {error}", path)
    return None
