"""What is installed with the package is what the command says now, and what distributes it names the same version."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib

import pytest

from filepact import VERSION
from tests.architecture.manual import PACKAGING, files
from tests.architecture.project import PROJECT, ROOT, WINGS
from tests.installed import installed_size, needed_to_run


def test_the_manual_page_and_the_completions_are_those_of_the_command() -> None:
    for path, made in files().items():
        assert path.read_text(encoding="utf-8") == made, f"run ./scripts/reference: {path.name}"


def test_a_wheel_installs_them_where_they_are_looked_for() -> None:
    shared = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    completions = "packages/filepact-cli/src/filepact_cli/completions"
    assert shared == {
        "packaging/filepact.1": "share/man/man1/filepact.1",
        f"{completions}/bash": "share/bash-completion/completions/filepact",
        f"{completions}/zsh": "share/zsh/site-functions/_filepact",
        f"{completions}/fish": "share/fish/vendor_completions.d/filepact.fish",
    }
    assert all((ROOT / name).exists() for name in shared)


@pytest.mark.skipif(shutil.which("man") is None, reason="no program for manual pages is here")
def test_the_manual_page_is_understood() -> None:
    done = subprocess.run(
        ["man", "--warnings", "-l", str(PACKAGING / "filepact.1")],
        capture_output=True,
        text=True,
        check=True,
        env={"MANWIDTH": "80", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "MANROFFSEQ": ""},
    )
    assert "filepact undo" in done.stdout
    assert done.stderr == ""


def test_what_distributes_it_names_this_version() -> None:
    registry = json.loads((PACKAGING / "server.json").read_text(encoding="utf-8"))
    assert registry["version"] == VERSION
    assert [one["version"] for one in registry["packages"]] == [VERSION]
    assert len(registry["description"]) <= 100
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"<!-- mcp-name: {registry['name']} -->" in readme
    bundle = json.loads((PACKAGING / "manifest.json").read_text(encoding="utf-8"))
    assert bundle["version"] == VERSION


def test_what_is_needed_to_run_has_a_licence_that_we_accept() -> None:
    listed = (ROOT / "packaging" / "licences.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z0-9][a-z0-9.-]*) \| ([^|]+) \|", listed, flags=re.MULTILINE)
    rows = rows[1:]  # without the head
    names = {name for name, _ in rows}
    for needed in PROJECT["project"]["dependencies"]:
        name = re.split(r"[<>=;\[ ]", needed)[0].lower().replace("_", "-").replace(".", "-")
        assert name in names, f"run ./scripts/licences: {name}"
    accepted = ("MIT", "BSD", "Apache", "PSF", "ISC", "0BSD", "any-OSI", "Zlib", "CNRI", "MPL-2.0")
    assert not [row for row in rows if not any(word in row[1] for word in accepted)]


def test_a_wing_is_declared_in_its_folder_as_the_wheel_has_it() -> None:
    points: dict[str, str] = {}
    for wing in WINGS:
        folder = wing.parents[1]
        declared = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert declared["name"] == folder.name
        assert declared["version"] == VERSION
        assert declared["requires-python"] == PROJECT["project"]["requires-python"]
        points |= declared.get("entry-points", {}).get("filepact.extensions", {})
        extras = PROJECT["project"]["optional-dependencies"]
        brought = {one: extra for extra, found in extras.items() for one in found}
        assert set(declared["dependencies"]) <= brought.keys(), folder.name
    assert points == PROJECT["project"]["entry-points"]["filepact.extensions"]


MOST_PACKAGES = 15
MOST_MEGABYTES = 33


def test_an_installation_without_extras_is_small() -> None:
    """Files as wheels bring them: what Python compiles of them later comes to it."""
    found = needed_to_run()
    sizes = {one.name: installed_size(one) for one in found}
    assert len(sizes) <= MOST_PACKAGES, sizes
    assert sum(sizes.values()) <= MOST_MEGABYTES * 1_000_000, sizes


def test_the_list_of_licences_and_the_bill_of_materials_name_what_is_installed() -> None:
    needed = {re.sub(r"[-_.]+", "-", one.name).lower() for one in needed_to_run()} - {"filepact"}
    needed.add("backports-zstd")  # from Python 3.14 on that has it itself
    listed = (ROOT / "packaging" / "licences.md").read_text(encoding="utf-8")
    assert (
        set(re.findall(r"^\| ([a-z0-9][a-z0-9-]+) \|", listed, flags=re.MULTILINE)) - {"package"}
        == needed
    )
    bill = json.loads((PACKAGING / "sbom.json").read_text(encoding="utf-8"))
    assert {one["name"] for one in bill["components"]} == needed
