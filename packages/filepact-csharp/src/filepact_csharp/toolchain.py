"""The compiler and the .NET runtime of this machine: those of an installed SDK, else fetched ones.

`filepact` has this looked up each time it starts, which is why little is imported here.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = [
    "COMPILER_VERSION",
    "FOLDER",
    "LIST",
    "RUNTIME_VERSION",
    "USUAL",
    "Toolchain",
    "find",
    "find_here",
    "installed",
    "listed_files",
    "newest_framework",
    "own_folder",
]

USUAL: Final = (
    "/usr/lib/dotnet",
    "/usr/share/dotnet",
    "/usr/lib64/dotnet",
    "/usr/local/share/dotnet",
    "/opt/dotnet",
    "C:/Program Files/dotnet",
)
"""Where installers put .NET."""

COMPILER_VERSION: Final = "4.8.0"
RUNTIME_VERSION: Final = "8.0.4"
FOLDER: Final = f"roslyn-{COMPILER_VERSION}-net-{RUNTIME_VERSION}"
"""The folder of the fetched compiler and runtime, in `own_folder`."""

LIST: Final = "files.json"
"""The list of all files in it, which is written last."""

_OLDEST_RUNTIME: Final = 6
"""The first version that is started; see `runtimeconfig.json`."""

_COMPILER: Final = ("Microsoft.CodeAnalysis.dll", "Microsoft.CodeAnalysis.CSharp.dll")
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})(-[\w.-]+)?")


class Toolchain(NamedTuple):
    """A compiler and a runtime that belong together.

    Attributes:
        roslyn: The folder with the compiler's DLLs, absolute.
        dotnet: The folder of the runtime, absolute.
        version: What is known of the version without starting it.
        source: Where it comes from; a sentence without a full stop.
        sdk: The folder of the SDK, which has what evaluates projects; empty for none.
    """

    roslyn: str
    dotnet: str
    version: str
    source: str
    sdk: str = ""


def own_folder() -> str:
    """The folder for what was fetched, in the person's data."""
    from platformdirs import user_data_dir  # noqa: PLC0415 - an installed SDK needs none of it

    return os.path.join(user_data_dir("filepact", appauthor=False), "csharp")


def find_here(environment: Mapping[str, str] = os.environ) -> Toolchain | None:
    """The compiler that this machine's environment leads to, outside of `FILEPACT_CHANGEABLE`."""
    changeable = [
        os.path.realpath(one)
        for one in environment.get("FILEPACT_CHANGEABLE", "").split(os.pathsep)
        if one
    ]

    def allowed(folder: str) -> bool:
        places = (os.path.normpath(folder), os.path.realpath(folder))
        return not any(_beneath(place, root) for place in places for root in changeable)

    home = environment.get("HOME", "")
    return find(
        dotnet_root=environment.get("DOTNET_ROOT", ""),
        path=environment.get("PATH", ""),
        usual=(*([os.path.join(home, ".dotnet")] if home else []), *USUAL),
        own=own_folder,
        allowed=allowed,
    )


def find(
    *,
    dotnet_root: str = "",
    path: str = "",
    usual: Iterable[str] = USUAL,
    own: Callable[[], str] | None = None,
    allowed: Callable[[str], bool] = lambda _folder: True,
) -> Toolchain | None:
    """The compiler of the newest .NET SDK that is installed, else the one that was fetched.

    Args:
        dotnet_root: A folder that somebody named as the place of .NET; may be empty.
        path: Folders of programs, as the system separates them; `dotnet` is looked for there.
        usual: Folders in which it usually is.
        own: Names the folder of what was fetched; None for no such folder.
        allowed: Whether programs in a folder may be started.
    """
    for root in dict.fromkeys(_roots(dotnet_root, path, usual)):
        if allowed(root) and (sdk := _newest(root)):
            roslyn = os.path.join(root, "sdk", sdk, "Roslyn", "bincore")
            if allowed(roslyn):
                folder = os.path.join(root, "sdk", sdk)
                return Toolchain(roslyn, root, f"SDK {sdk}", f"the .NET SDK {sdk}", folder)
    folder = own() if own is not None else ""
    if folder and allowed(folder) and installed(folder):
        place = os.path.join(folder, FOLDER)
        said = f"Roslyn {COMPILER_VERSION} on .NET {RUNTIME_VERSION}, fetched by `filepact install csharp`"
        roslyn, dotnet = os.path.join(place, "roslyn"), os.path.join(place, "dotnet")
        return Toolchain(roslyn, dotnet, COMPILER_VERSION, said)
    return None


def newest_framework(found: Toolchain) -> int:
    """The version of .NET whose libraries a toolchain has, without what comes after the first dot.

    It is that of the runtime that the compiler runs on, so that whoever starts none names the same
    target framework.  0 if it is not known.
    """
    return _newest_runtime(found.dotnet)


def installed(folder: str) -> bool:
    """Whether all files that were fetched into a folder are there, and as large as they have to be."""
    place = os.path.join(folder, FOLDER)
    listed = listed_files(folder)
    try:
        sizes = [os.stat(os.path.join(place, name)).st_size for name in listed]
    except OSError:
        return False
    return bool(listed) and sizes == [size for size, _ in listed.values()]


def listed_files(folder: str) -> dict[str, tuple[int, str]]:
    """The size and SHA-256 of each file that was fetched, by name; empty if there is no list."""
    try:
        with open(os.path.join(folder, FOLDER, LIST), encoding="utf-8") as handle:
            whole = json.load(handle)
        return {str(name): (int(size), str(sha256)) for name, (size, sha256) in whole.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _roots(dotnet_root: str, path: str, usual: Iterable[str]) -> Iterator[str]:
    if os.path.isabs(dotnet_root):
        yield os.path.realpath(dotnet_root)
    for folder in path.split(os.pathsep):
        for name in ("dotnet", "dotnet.exe"):
            program = os.path.join(folder, name)
            if os.path.isabs(program) and os.path.isfile(program):
                # The program of that name is often only a link into the real place.
                yield os.path.dirname(os.path.realpath(program))
    for folder in usual:
        if os.path.isdir(folder):
            yield os.path.realpath(folder)


def _newest(root: str) -> str:
    """The version of an installation's newest SDK with a compiler and a runtime; empty for none."""
    needed = (("host", "fxr"), ("shared", "Microsoft.NETCore.App"))
    if not all(os.path.isdir(os.path.join(root, *parts)) for parts in needed):
        return ""
    if 0 < _newest_runtime(root) < _OLDEST_RUNTIME:
        return ""  # it could not be started in this process
    try:
        versions = sorted(os.listdir(os.path.join(root, "sdk")), key=_age, reverse=True)
    except OSError:
        return ""
    for version in versions:
        compiler = os.path.join(root, "sdk", version, "Roslyn", "bincore")
        if _age(version) and all(os.path.isfile(os.path.join(compiler, one)) for one in _COMPILER):
            return version
    return ""


def _newest_runtime(root: str) -> int:
    try:
        names = os.listdir(os.path.join(root, "shared", "Microsoft.NETCore.App"))
    except OSError:
        return 0
    return max((age[0] for name in names if (age := _age(name))), default=0)


def _age(version: str) -> tuple[int, ...]:
    """Sorts versions, finished ones after their previews; empty for what is none."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return ()
    return (int(found[1]), int(found[2]), int(found[3]), found[4] is None)


def _beneath(place: str, root: str) -> bool:
    return place == root or place.startswith(root.rstrip(os.sep) + os.sep)
