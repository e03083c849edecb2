"""What follows from a project's target framework: symbols, the language's version, usual namespaces."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from filepact.csharp.projects import GlobalUsing

__all__ = ["Framework", "parse_framework", "preferred", "shared_frameworks", "usual_usings"]

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
        """How the package manager names it, the likeliest first."""
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
    """Of several target frameworks, the one that is looked at.

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
