"""Where a C# compiler and a .NET runtime are on this machine."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from filepact.csharp.recipe import COMPILER_VERSION, RUNTIME_VERSION, installed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["USUAL", "Toolchain", "find"]

USUAL: Final = (
    "/usr/lib/dotnet",
    "/usr/share/dotnet",
    "/usr/lib64/dotnet",
    "/usr/local/share/dotnet",
    "/opt/dotnet",
    "C:/Program Files/dotnet",
)
"""Where installers put it."""

_COMPILER: Final = ("Microsoft.CodeAnalysis.dll", "Microsoft.CodeAnalysis.CSharp.dll")
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})(-[\w.-]+)?")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler and a runtime that belong together.

    Attributes:
        roslyn: The folder with the compiler's DLLs, absolute.
        dotnet: The folder of the runtime, absolute.
        version: What is known of the version without starting it.
        source: Where it comes from; a sentence without a full stop.
    """

    roslyn: str
    dotnet: str
    version: str
    source: str


def find(
    *,
    dotnet_root: str = "",
    path: str = "",
    usual: Iterable[str] = USUAL,
    own: str = "",
    allowed: Callable[[str], bool] = lambda _folder: True,
) -> Toolchain | None:
    """The compiler of the newest .NET SDK that is installed, else the one that we have fetched.

    Args:
        dotnet_root: A folder that somebody named as the place of .NET; may be empty.
        path: Folders of programs, as the system separates them; `dotnet` is looked for there.
        usual: Folders in which it usually is.
        own: The folder in which we keep what we have fetched; empty for none.
        allowed: Whether programs in a folder may be started at all.
    """
    for root in dict.fromkeys(_roots(dotnet_root, path, usual)):
        if allowed(root) and (sdk := _newest(Path(root))) is not None:
            roslyn = str(sdk / "Roslyn" / "bincore")
            if allowed(roslyn):
                return Toolchain(roslyn, root, f"SDK {sdk.name}", f"the .NET SDK {sdk.name}")
    if own and allowed(own) and (copy := installed(own)) is not None:
        said = f"Roslyn {COMPILER_VERSION} on .NET {RUNTIME_VERSION}, fetched by `filepact setup csharp`"
        return Toolchain(copy.roslyn, copy.dotnet, COMPILER_VERSION, said)
    return None


def _roots(dotnet_root: str, path: str, usual: Iterable[str]) -> Iterator[str]:
    if dotnet_root and Path(dotnet_root).is_absolute():
        yield os.path.realpath(dotnet_root)
    for folder in path.split(os.pathsep):
        for name in ("dotnet", "dotnet.exe"):
            program = Path(folder, name)
            if program.is_absolute() and program.is_file():
                # The program of that name is often only a link into the real place.
                yield os.path.dirname(os.path.realpath(program))  # noqa: PTH120 - of a resolved name
    for folder in usual:
        if Path(folder).is_dir():
            yield os.path.realpath(folder)


def _newest(root: Path) -> Path | None:
    """The newest SDK of an installation that has a compiler, and a runtime beside it."""
    try:
        folders = sorted((root / "sdk").iterdir(), key=_age, reverse=True)
    except OSError:
        return None
    if (
        not (root / "host" / "fxr").is_dir()
        or not (root / "shared" / "Microsoft.NETCore.App").is_dir()
    ):
        return None
    for folder in folders:
        compiler = folder / "Roslyn" / "bincore"
        if _age(folder) and all((compiler / name).is_file() for name in _COMPILER):
            return folder
    return None


def _age(folder: Path) -> tuple[int, ...]:
    """What is greater the newer a version is, finished ones after their previews; empty for none."""
    found = _VERSION.fullmatch(folder.name)
    if found is None:
        return ()
    return (int(found[1]), int(found[2]), int(found[3]), found[4] is None)
