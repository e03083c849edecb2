"""What the doctor says of C#: by which of the four ways it is looked at."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filepact_csharp.toolchain import USUAL
from tests.servers import csharp_toolchain as toolchain

if TYPE_CHECKING:
    from tests.faces.command_line import CommandLine

NAMES = ("roslyn", "csharp-ls", "filepact-csharp", "csharp-syntax")


@pytest.fixture
def machine(cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which nothing is installed but what comes with this program's packages."""
    pytest.importorskip("tree_sitter_c_sharp")
    pytest.importorskip("pythonnet")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("DOTNET_ROOT", raising=False)
    if any(map(os.path.isdir, USUAL)):
        pytest.skip("a .NET SDK may be installed here for everybody")
    for name in ("bin", "home", "data"):
        (tmp_path / name).mkdir()
    (cli.root / "A.cs").write_text("class A { }\n")
    return tmp_path


def checks(cli: CommandLine, *words: str) -> dict[str, dict[str, Any]]:
    found = {one["name"]: one for one in cli.json("doctor", *words)["checks"]}
    return {name: found[name] for name in NAMES}


def _fetch(machine: Path) -> None:
    """Put what was fetched where it is looked for."""
    try:
        toolchain.fetched()
    except toolchain.ToolchainError as error:
        pytest.skip(str(error))
    place = machine / "data" / "filepact"
    place.mkdir()
    (place / "csharp").symlink_to(toolchain.FOLDER)


def test_without_a_compiler_the_form_alone_is_looked_at(cli: CommandLine, machine: Path) -> None:
    found = checks(cli)
    assert {name: one["level"] for name, one in found.items()} == {
        "roslyn": "none",
        "csharp-ls": "none",
        "filepact-csharp": "none",
        "csharp-syntax": "ok",
    }
    assert found["csharp-syntax"]["used"] is True
    assert "filepact install csharp" in found["filepact-csharp"]["next"]


def test_what_was_fetched_goes_before_the_form_alone(cli: CommandLine, machine: Path) -> None:
    _fetch(machine)
    found = checks(cli)
    assert found["filepact-csharp"]["used"] is True
    assert found["filepact-csharp"]["compiler"] == "4.8.0"
    assert "filepact install csharp" in found["filepact-csharp"]["said"]
    assert found["csharp-syntax"]["used"] is False


def test_an_installed_server_goes_before_both_once_it_is_trusted(
    cli: CommandLine, machine: Path
) -> None:
    _fetch(machine)
    program = machine / "bin" / "csharp-ls"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    used = {name: one.get("used") for name, one in checks(cli).items()}
    assert used == {
        "roslyn": None,
        "csharp-ls": False,
        "filepact-csharp": True,
        "csharp-syntax": False,
    }
    trusting = machine / "trusting.toml"
    trusting.write_text("[servers.csharp-ls]\ntrusted = true\n")
    used = {name: one.get("used") for name, one in checks(cli, "--config", str(trusting)).items()}
    assert used == {
        "roslyn": None,
        "csharp-ls": True,
        "filepact-csharp": False,
        "csharp-syntax": False,
    }


def test_an_installed_sdk_goes_before_what_was_fetched(cli: CommandLine, machine: Path) -> None:
    _fetch(machine)
    # Laid out as its installer does, with a compiler and a runtime that start.
    root, own = machine / "home" / ".dotnet", toolchain.fetched()
    compiler = root / "sdk" / "8.0.100" / "Roslyn" / "bincore"
    compiler.mkdir(parents=True)
    for one in Path(own.roslyn).iterdir():
        (compiler / one.name).symlink_to(one)
    for name in ("host", "shared"):
        (root / name).symlink_to(Path(own.dotnet) / name)
    found = checks(cli, "--servers")["filepact-csharp"]
    assert found["compiler"] == "SDK 8.0.100"
    assert str(compiler) in found["said"]
    assert found["version"].startswith("4.8.0")
    assert found["first_report_in"] > 0


def test_a_compiler_that_agents_may_change_is_not_used(
    cli: CommandLine, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fetch(machine)
    found = cli.json("doctor", "--root", str(toolchain.FOLDER), "--root", str(cli.root))["checks"]
    assert next(one for one in found if one["name"] == "filepact-csharp")["level"] == "none"


def test_each_way_is_started_when_asked(
    cli: CommandLine, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fetch(machine)
    # As for whoever has activated an environment of their project's.
    venv.create(machine / "environment", symlinks=True)
    monkeypatch.setenv("VIRTUAL_ENV", str(machine / "environment"))
    found = checks(cli, "--servers")
    assert found["filepact-csharp"]["version"].startswith("4.8.0")
    for name in ("filepact-csharp", "csharp-syntax"):
        assert found[name]["program"] == str(Path(sys.executable).with_name("filepact-csharp"))
        assert found[name]["first_report_in"] > 0
