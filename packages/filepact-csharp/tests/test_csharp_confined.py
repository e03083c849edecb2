"""The compiler's server in the sandbox of language servers: what it opens by mistake the kernel refuses."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from filepact.fs.server_sandbox import can_confine_servers
from project_tree import sdk
from tests.lsp.real_servers import Tree

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not can_confine_servers(), reason="this system lacks what it takes"),
]

USES = "class A { Python.Runtime.PyObject it; }\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "deep" / "enough" / "project"
    root.mkdir(parents=True)
    return root.resolve()


def library(place: Path) -> Path:
    """A library of .NET, which comes with the bridge."""
    found = find_spec("pythonnet")
    assert found is not None
    assert found.origin is not None
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(Path(found.origin).parent / "runtime" / "Python.Runtime.dll", place)
    return place


def codes(folder: Path, hint: str, *, confined: bool) -> tuple[set[str], str]:
    """What is found in a file that uses a library, and what is said of how far that goes."""
    reference = f'<Reference Include="it"><HintPath>{hint}</HintPath></Reference>'
    tree = Tree(folder, "filepact-csharp", confined=confined)
    try:
        tree.write("a.csproj", sdk(f"<ItemGroup>{reference}</ItemGroup>"))
        tree.tell(tree.write("a.cs", USES))
        report = tree.report("a.cs")["a.cs"]
    finally:
        tree.close()
    assert report.fresh, report.reason
    assert report.known
    return {str(one.code) for one in report.diagnostics}, " ".join(report.notes)


@pytest.mark.parametrize("way", ["by its name", "by a link"])
def test_a_library_outside_that_a_project_names_is_read_by_none_that_is_confined(
    folder: Path, way: str
) -> None:
    outside = library(folder.parent / "outside" / "it.dll")
    hint = str(outside)
    if way == "by a link":
        hint = "it.dll"
        (folder / hint).symlink_to(outside)
    said, notes = codes(folder, hint, confined=True)
    assert "CS0246" in said
    assert "it.dll" in notes
    said, _notes = codes(folder, hint, confined=False)
    assert "CS0246" not in said


def test_a_library_in_the_root_or_among_the_packages_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library(folder / "libs" / "it.dll")
    assert "CS0246" not in codes(folder, "libs/it.dll", confined=True)[0]
    packages = folder.parent / ".nuget" / "packages"
    monkeypatch.setenv("HOME", str(folder.parent))
    hint = library(packages / "it" / "1.0.0" / "lib" / "it.dll")
    assert "CS0246" not in codes(folder, str(hint), confined=True)[0]
