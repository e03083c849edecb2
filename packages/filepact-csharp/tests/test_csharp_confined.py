"""The compiler's server in the sandbox of language servers: what it opens by mistake the kernel refuses."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from filepact_supervisor.sandbox_process import can_confine_servers
from project_tree import sdk
from real_build import FRAMEWORK, sdk_folder
from tests.servers.csharp_toolchain import toolchain_or_skip
from tests.servers.real_servers import Tree

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


def codes(folder: Path, hints: dict[str, str], *, confined: bool) -> dict[str, tuple[bool, str]]:
    """By project, whether the library is known that it names, and what is said of how far that goes."""
    found = {}
    tree = Tree(folder, "filepact-csharp", confined=confined)
    try:
        for name, hint in hints.items():
            reference = f'<Reference Include="it"><HintPath>{hint}</HintPath></Reference>'
            tree.write(f"{name}/{name}.csproj", sdk(f"<ItemGroup>{reference}</ItemGroup>"))
            tree.write(f"{name}/a.cs", USES)
        for name in hints:
            report = tree.report(f"{name}/a.cs")[f"{name}/a.cs"]
            assert report.fresh, report.reason
            assert report.known
            said = {str(one.code) for one in report.diagnostics}
            found[name] = "CS0246" not in said, " ".join(report.notes)
    finally:
        tree.close()
    return found


def test_of_libraries_that_a_project_names_those_are_read_that_may_be(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    outside = library(folder.parent / "outside" / "it.dll")
    library(folder / "libs" / "it.dll")
    package = library(folder.parent / ".nuget" / "packages" / "it" / "1.0.0" / "lib" / "it.dll")
    (folder / "linked").mkdir()
    (folder / "linked" / "it.dll").symlink_to(outside)
    hints = {
        "named": str(outside),
        "linked": "it.dll",
        "inside": "../libs/it.dll",
        "packed": str(package),
    }
    said = codes(folder, hints, confined=True)
    assert {name for name, (known, _) in said.items() if known} == {"inside", "packed"}
    assert all("it.dll" in notes for known, notes in said.values() if not known)
    said = codes(folder, hints, confined=False)
    assert all(known for known, _ in said.values())


# -- what the evaluation of an SDK opens -----------------------------------------------------------

SECRET = "S3CRET"  # noqa: S105 - as it is planted
_READ = "<PropertyGroup><DefineConstants>$([System.IO.File]::ReadAllText('{}'))</DefineConstants></PropertyGroup>"
WAYS = {
    "a file outside": _READ.format("{outside}/secret.txt"),
    "a link": _READ.format("$(MSBuildProjectDirectory)/../link.txt"),
    "a protected file": _READ.format("$(MSBuildProjectDirectory)/../.env"),
    "an import": '<Import Project="{outside}/secret.props" />',
    "an import by wildcards": '<Import Project="{outside}/*.props" />',
}
SOURCE = f"#if {SECRET}\n#error found\n#endif\nclass A {{ Missing m; }}\n"
_EVALUATED = """
import json, sys
from pathlib import Path
from filepact_csharp.roslyn import start
from filepact_csharp.sdk_projects import begin, is_confined
roslyn, dotnet, sdk, root = sys.argv[1:]
found = begin(start(roslyn, dotnet, sdk), root)
found.show({})
projects = [found.evaluate(str(one), {}) for one in sorted(Path(root).glob("*/*.csproj"))]
print(json.dumps([is_confined(), [one and one.values["DefineConstants"] for one in projects]]))
"""


def evaluated(folder: Path) -> tuple[bool, list[str | None]]:
    """Whether a process that nobody confined takes itself for confined, and the symbols that it evaluates."""
    found = toolchain_or_skip()
    words = [
        sys.executable,
        "-c",
        _EVALUATED,
        found.roslyn,
        found.dotnet,
        sdk_folder(),
        str(folder),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    confined, symbols = json.loads(done.stdout)
    return confined, symbols


def asked(folder: Path, *, confined: bool) -> dict[str, list[str]]:
    """What is said of the file of each project."""
    found = {}
    tree = Tree(folder, "filepact-csharp", confined=confined, sdk=sdk_folder())
    try:
        for name in sorted(str(one.relative_to(folder)) for one in folder.glob("*/*.cs")):
            report = tree.report(name)[name]
            assert report.fresh, report.reason
            found[name] = [str(one.code) for one in report.diagnostics]
    finally:
        tree.close()
    return found


def put(folder: Path, project: str) -> None:
    """Make a project of a source that has one error, and another if the secret is a symbol."""
    folder.mkdir()
    (folder / "a.csproj").write_text(project)
    (folder / "a.cs").write_text(SOURCE)


def test_an_evaluation_reads_nothing_that_is_kept_from_it(folder: Path) -> None:
    """Unconfined it would, and so it is not done there."""
    outside = folder.parent / "outside"
    outside.mkdir()
    for place in (outside / "secret.txt", folder / ".env"):
        place.write_text(SECRET)
    (folder / "link.txt").symlink_to(outside / "secret.txt")
    symbol = f"<PropertyGroup><DefineConstants>{SECRET}</DefineConstants></PropertyGroup>"
    (outside / "secret.props").write_text(f"<Project>{symbol}</Project>")
    for number, way in enumerate(WAYS.values()):
        body = way.replace("{outside}", str(outside))
        put(folder / str(number), sdk(body, framework=FRAMEWORK))
    for confined in (True, False):
        said = asked(folder, confined=confined)
        assert set(map(tuple, said.values())) == {("CS0246",)}, said
        assert len(said) == len(WAYS)
    itself, symbols = evaluated(folder)
    assert not itself
    assert len(symbols) == len(WAYS)
    assert all(SECRET in str(one) for one in symbols), symbols


def test_an_evaluation_runs_nothing_of_the_project(folder: Path) -> None:
    ran = folder / "ran"
    program = folder / "run.sh"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    body = (
        f'<Target Name="Now" BeforeTargets="Restore;Build;CoreCompile;ResolveReferences">'
        f'<Exec Command="{program}" /></Target>'
        '<UsingTask TaskName="Mine" TaskFactory="RoslynCodeTaskFactory" '
        'AssemblyFile="$(MSBuildToolsPath)/Microsoft.Build.Tasks.Core.dll"><Task>'
        f'<Code Type="Fragment" Language="cs">System.IO.File.WriteAllText("{ran}", "");</Code>'
        "</Task></UsingTask>"
        "<PropertyGroup><DefineConstants>$(DefineConstants);$([System.Diagnostics.Process]::Start("
        f"'{program}'))</DefineConstants></PropertyGroup>"
    )
    text = sdk(body, framework=FRAMEWORK).replace("<Project ", '<Project InitialTargets="Now" ')
    put(folder / "a", text)
    assert "CS0246" in asked(folder, confined=True)["a/a.cs"]
    evaluated(folder)
    assert not ran.exists()


def test_no_package_is_asked_for_by_an_sdk_that_a_project_names(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        where = f"http://127.0.0.1:{listener.getsockname()[1]}/index.json"
        (folder / "nuget.config").write_text(
            f'<configuration><packageSources><clear /><add key="a" value="{where}" />'
            "</packageSources></configuration>"
        )
        put(folder / "a", sdk(name="Some.Sdk/1.0.0", framework=FRAMEWORK))
        assert "CS0246" in asked(folder, confined=True)["a/a.cs"]
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_proposed_project_file_is_evaluated_as_if_it_were_there(folder: Path) -> None:
    """By the SDK, which alone knows what is asked here, and without a trace."""
    sets = '<PropertyGroup Condition="0x10 == 16"><DefineConstants>{}</DefineConstants></PropertyGroup>'
    off, on = (f"<Project>{sets.format(symbol)}</Project>" for symbol in ("OTHER", SECRET))
    put(folder / "a", sdk(framework=FRAMEWORK))
    (folder / "Directory.Build.props").write_text(off)
    tree = Tree(folder, "filepact-csharp", confined=True, sdk=sdk_folder())

    def found() -> list[str]:
        return [str(one.code) for one in tree.report("a/a.cs")["a/a.cs"].diagnostics]

    def proposed(name: str, text: str) -> tuple[list[str], list[str]]:
        seen = tree.preview(name, text, ["a/a.cs"])
        assert seen.withdrawn
        assert seen.delta is not None, seen.message
        return [str(one.code) for one in seen.delta.new], [
            str(one.code) for one in seen.delta.fixed
        ]

    try:
        assert found() == ["CS0246"]
        assert proposed("Directory.Build.props", on) == (["CS1029"], [])
        own = sdk(sets.format(SECRET), framework=FRAMEWORK)
        assert proposed("a/a.csproj", own) == (["CS1029"], [])
        assert found() == ["CS0246"]
        tree.tell(tree.write("Directory.Build.props", on))
        assert found() == ["CS1029", "CS0246"]
        assert proposed("Directory.Build.props", off) == ([], ["CS1029"])
        # A project of its own, which is not there yet, and whose nearest file sets the symbol.
        assert proposed("b/b.csproj", own) == ([], [])
        tree.tell(tree.write("a/Directory.Build.props", off))
        assert found() == ["CS0246"]
    finally:
        tree.close()
