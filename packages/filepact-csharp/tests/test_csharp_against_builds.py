"""What the server says of faults and of edits, beside what a real build says of them."""

from __future__ import annotations

import os
import re
import zipfile
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.domain.operation import Actor, Session
from filepact_diagnostics.lsp.pool import ServerPool
from filepact_supervisor.sandbox_process import can_confine_servers
from project_tree import ProjectTree, sdk
from real_build import FRAMEWORK, errors_of_build, sdk_folder, sdk_or_skip
from talk import Talk
from tests.hostile.sweeps import often
from tests.servers.csharp_toolchain import toolchain_or_skip
from tests.servers.real_servers import Tree, locate, server
from tests.servers.solution_world import served

if TYPE_CHECKING:
    from pathlib import Path

_PERSON = Session("p", Actor("human", "person"))
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


def _project(body: str) -> str:
    return f"<Project>{body}</Project>"


def _defined(symbol: str) -> str:
    """A file that sets a symbol."""
    value = f"$(DefineConstants);{symbol}"
    return _project(f"<PropertyGroup><DefineConstants>{value}</DefineConstants></PropertyGroup>")


def _told(symbol: str) -> str:
    """A source that has an error if a symbol is set."""
    return f"#if {symbol}\nclass {symbol} {{ Missing m; }}\n#endif\n"


_FEED = """<configuration><packageSources><add key="feed" value="../feed" /></packageSources>
</configuration>"""


def _put_package(root: Path) -> None:
    """A package that sets a symbol, in a folder that serves as its source."""
    (root / "feed").mkdir()
    spec = (
        "<package><metadata><id>Settings</id><version>1.0.0</version><authors>a</authors>"
        "<description>d</description></metadata></package>"
    )
    with zipfile.ZipFile(root / "feed" / "Settings.1.0.0.nupkg", "w") as packed:
        packed.writestr("Settings.nuspec", spec)
        packed.writestr("build/Settings.props", _defined("FROM_PACKAGE"))


_EXES = {
    "no main": "class A { }",
    "two mains": "class A { static void Main() { } } class B { static void Main() { } }",
}


_MADE = "written while it is built"
# Of each project: its lines, and files beside it.  What they decide shows as an error.
_SHAPES: dict[str, tuple[str, dict[str, str]]] = {
    "props above": (
        "",
        {
            "Directory.Build.props": _project(
                "<PropertyGroup><Nullable>enable</Nullable>"
                "<TreatWarningsAsErrors>true</TreatWarningsAsErrors></PropertyGroup>"
            ),
            "A.cs": "class A { string M() => null; }",
        },
    ),
    "targets above": (
        "",
        {
            "Directory.Build.targets": _defined("$(MSBuildProjectName)_$(TargetFramework.Length)"),
            "A.cs": _told("P#_13"),
        },
    ),
    "folder of artifacts": (
        "",
        {
            "Directory.Build.props": _project(
                "<PropertyGroup><BaseIntermediateOutputPath>$(MSBuildThisFileDirectory)artifacts/obj/"
                "$(MSBuildProjectName)/</BaseIntermediateOutputPath></PropertyGroup>"
            ),
            "A.cs": "class A { void M(B b) { b.Nothing(); } }",
            "obj/B.cs": "class B { }",
        },
    ),
    "central settings": (
        '<ItemGroup><Compile Remove="*.cs" /><Compile Include="A.cs" /></ItemGroup>',
        {
            "Directory.Build.targets": _project(
                '<ItemGroup><Compile Update="A.cs"><Link>B.cs</Link></Compile>'
                '<Compile Include="more/**/*.cs" Exclude="more/not/*" /></ItemGroup>'
            ),
            "A.cs": "class A { B b; }",
            "B.cs": "class B { }",
            "more/not/C.cs": "class C { Missing m; }",
        },
    ),
    "by framework": (
        (
            "<ItemGroup Condition=\"$(TargetFramework.StartsWith('netcoreapp'))\">"
            '<Compile Remove="B.cs" /></ItemGroup>'
        ),
        {"A.cs": "class A { B b; }", "B.cs": "class B { }"},
    ),
    "several frameworks": (
        (
            "<PropertyGroup><TargetFrameworks>netcoreapp3.1</TargetFrameworks></PropertyGroup>"
            "<PropertyGroup Condition=\"'$(TargetFramework)' == 'netcoreapp3.1'\">"
            "<DefineConstants>$(DefineConstants);ONE</DefineConstants></PropertyGroup>"
        ),
        {"A.cs": _told("ONE")},
    ),
    "package": (
        '<ItemGroup><PackageReference Include="Settings" Version="1.0.0" /></ItemGroup>',
        {"nuget.config": _FEED, "A.cs": _told("FROM_PACKAGE")},
    ),
    "list": (
        '<ItemGroup><Not Include="not/*.cs" /><Compile Remove="@(Not)" /></ItemGroup>',
        {"A.cs": "class A { B b; }", "not/B.cs": "class B { }"},
    ),
    "file above": (
        "<Import Project=\"$([MSBuild]::GetPathOfFileAbove('own.props'))\" />",
        {"own.props": _defined("OWN"), "A.cs": _told("OWN")},
    ),
    "functions": (
        (
            "<PropertyGroup><L>a;b</L><DefineConstants>$(DefineConstants);$(L.Split(';')[1].ToUpper())"
            "$([MSBuild]::Add(1, 2))$([System.Text.RegularExpressions.Regex]::Replace('xyz', 'y+', 'Y'))"
            "</DefineConstants></PropertyGroup>"
        ),
        {"A.cs": _told("B3xYz")},
    ),
    "numbers": (
        (
            '<PropertyGroup Condition="0x10 == 16 and 2.10 &lt; 2.9">'
            "<DefineConstants>$(DefineConstants);SMALL</DefineConstants></PropertyGroup>"
        ),
        {"A.cs": _told("SMALL")},
    ),
    "variable": (
        (
            "<PropertyGroup Condition=\"'$(HOME)' != ''\">"
            "<DefineConstants>$(DefineConstants);HOME</DefineConstants></PropertyGroup>"
        ),
        {"A.cs": _told("HOME")},
    ),
    "symbols": ("", {"A.cs": _told("NETCOREAPP2_0_OR_GREATER")}),
    "friends": (
        '<ItemGroup><InternalsVisibleTo Include="Other" /></ItemGroup>',
        {"A.cs": "class A { Missing m; }"},
    ),
    "items by hand": (
        (
            "<PropertyGroup><EnableDefaultCompileItems>false</EnableDefaultCompileItems></PropertyGroup>"
            '<ItemGroup><Compile Include="[A-B]*.cs;A.cs;s?b/*.cs" /></ItemGroup>'
        ),
        {
            "A.cs": "class A { B b; C c; }",
            "B.cs": "class B { }",
            "sub/C.cs": "class C { }",
            "stub/D.cs": "class D { Missing m; }",
        },
    ),
    "removed and brought back": (
        (
            '<ItemGroup><Compile Remove="more/**" /><Compile Include="more/kept/**/*.cs" />'
            '<Compile Remove="more/kept/?.cs" /></ItemGroup>'
        ),
        {
            "A.cs": "class A { Kept k; B b; }",
            "more/kept/deep/Kept.cs": "class Kept { }",
            "more/kept/B.cs": "class B { }",
        },
    ),
    "linked files": (
        (
            '<ItemGroup><Compile Include="../P#-linked/**/*.cs" Exclude="../P#-linked/not/**" '
            'LinkBase="Linked" /></ItemGroup>'
        ),
        {
            "A.cs": "class A { B b; C c; }",
            "../P#-linked/deep/B.cs": "class B { Missing m; }",
            "../P#-linked/not/C.cs": "class C { }",
        },
    ),
    "central versions": (
        '<ItemGroup><PackageReference Include="Settings" /></ItemGroup>',
        {
            "nuget.config": _FEED,
            "Directory.Build.targets": _project(
                '<ItemGroup><PackageReference Update="Settings" Version="1.0.0" /></ItemGroup>'
            ),
            "A.cs": _told("FROM_PACKAGE"),
        },
    ),
    "props by props": (
        "<PropertyGroup><DefineConstants>$(DefineConstants);OWN_$(Mine)</DefineConstants></PropertyGroup>",
        {
            "Directory.Build.props": _project(
                '<Import Project="$(MSBuildThisFileDirectory)settings/inner.props" />'
                "<PropertyGroup Condition=\"'$(Mine)' == ''\"><Mine>OUTER</Mine></PropertyGroup>"
            ),
            "settings/inner.props": _project("<PropertyGroup><Mine>INNER</Mine></PropertyGroup>"),
            "A.cs": _told("OWN_INNER") + _told("OWN_OUTER"),
        },
    ),
    "targets have the last word": (
        "<PropertyGroup><TreatWarningsAsErrors>true</TreatWarningsAsErrors></PropertyGroup>",
        {
            "Directory.Build.targets": _project(
                "<PropertyGroup><TreatWarningsAsErrors>false</TreatWarningsAsErrors></PropertyGroup>"
            ),
            "A.cs": "class A { void M() { int n; } }",
        },
    ),
    "one of several": (
        (
            "<Choose><When Condition=\"'$(Configuration)' == 'Release'\"><PropertyGroup>"
            "<DefineConstants>$(DefineConstants);ONE</DefineConstants></PropertyGroup></When>"
            "<When Condition=\"Exists('there.txt') and !Exists('not.txt')\"><PropertyGroup>"
            "<DefineConstants>$(DefineConstants);TWO</DefineConstants></PropertyGroup></When>"
            "<Otherwise><PropertyGroup><DefineConstants>$(DefineConstants);THREE</DefineConstants>"
            "</PropertyGroup></Otherwise></Choose>"
        ),
        {"there.txt": "", "A.cs": _told("ONE") + _told("TWO") + _told("THREE")},
    ),
    "imports by a pattern": (
        '<Import Project="parts/*.props" /><Import Project="gone.props" Condition="Exists(\'gone.props\')" />',
        {
            "parts/a.props": _defined("PART_A"),
            "parts/b.props": _defined("PART_B"),
            "A.cs": _told("PART_A") + _told("PART_B"),
        },
    ),
    "items of items": (
        (
            '<ItemGroup><Name Include="B;C" /><Compile Remove="@(Name->\'%(Identity).cs\')" />'
            "</ItemGroup>"
        ),
        {
            "A.cs": "class A { B b; D d; }",
            "B.cs": "class B { }",
            "C.cs": "class C { Missing m; }",
            "D.cs": "class D { }",
        },
    ),
    "no source any more": (
        '<ItemGroup><Compile Remove="B.cs;sub\\*.cs" /><None Include="B.cs" /></ItemGroup>',
        {"A.cs": "class A { B b; }", "B.cs": "class B { }", "sub/C.cs": "class C { Missing m; }"},
    ),
    "older language": (
        "<PropertyGroup><LangVersion>7.3</LangVersion></PropertyGroup>",
        {"A.cs": "class A { void M(int n) { using var a = new System.IO.MemoryStream(); } }"},
    ),
    "some warnings are errors": (
        (
            "<PropertyGroup><WarningsAsErrors>CS0168;CS0219</WarningsAsErrors><NoWarn>$(NoWarn);CS0219</NoWarn>"
            "</PropertyGroup>"
        ),
        {"A.cs": "class A { void M() { int n; } void N() { int n = 1; } int unused; }"},
    ),
    "all but some": (
        (
            "<PropertyGroup><TreatWarningsAsErrors>true</TreatWarningsAsErrors>"
            "<WarningsNotAsErrors>CS0168</WarningsNotAsErrors></PropertyGroup>"
        ),
        {"A.cs": "class A { void M() { int n; } void N() { int n = 1; } }"},
    ),
    "which main": (
        "<PropertyGroup><OutputType>Exe</OutputType><StartupObject>B</StartupObject></PropertyGroup>",
        {
            "A.cs": "class A { static void Main() { } }",
            "B.cs": "class B { static void Main() { } }",
        },
    ),
    "another project": (
        (
            '<ItemGroup><Compile Remove="lib/**" /><ProjectReference Include="lib/L#.csproj" />'
            "</ItemGroup>"
        ),
        {
            "A.cs": "class A { Open o; Closed c; }",
            "lib/L#.csproj": sdk(framework=FRAMEWORK),
            "lib/L.cs": "public class Open { } class Closed { }",
        },
    ),
    "this system": (
        (
            "<PropertyGroup Condition=\"$([MSBuild]::IsOSPlatform('Linux'))\">"
            "<DefineConstants>$(DefineConstants);LINUX</DefineConstants></PropertyGroup>"
        ),
        {"A.cs": _told("LINUX")},
    ),
    _MADE: (
        (
            '<Target Name="Write" BeforeTargets="CoreCompile"><WriteLinesToFile '
            'File="$(IntermediateOutputPath)M.cs" Lines="class Made { public const int N = 1%3B }" Overwrite="true" />'
            '<ItemGroup><Compile Include="$(IntermediateOutputPath)M.cs" /></ItemGroup></Target>'
        ),
        {"A.cs": "class A { int n = Made.N; string s = 1; }"},
    ),
}


@pytest.mark.slow
def test_the_errors_of_a_build_are_those_that_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the rules of our own, and by the evaluation of the SDK, which knows the last ones too."""
    root = tmp_path / "root"
    root.mkdir()
    tree = ProjectTree(root)
    programs = "<PropertyGroup><OutputType>Exe</OutputType></PropertyGroup>"
    projects = {}
    for number, (name, text) in enumerate([*_FAULTS.items(), *_EXES.items()]):
        projects[f"P{number}"] = name
        body = programs if name in _EXES else ""
        tree.put(f"P{number}/P{number}.csproj", sdk(body, framework=FRAMEWORK))
        tree.put(f"P{number}/A.cs", text + "\n")
    shapes = {}
    for number, (name, (body, files)) in enumerate(_SHAPES.items(), len(projects)):
        shapes[f"P{number}"] = name
        target = "" if "TargetFrameworks" in body else FRAMEWORK
        tree.put(
            f"P{number}/P{number}.csproj", sdk(body, framework=target).replace("#", f"{number}")
        )
        for file, text in files.items():
            own = re.sub(r"\b([PL])#", rf"\g<1>{number}", text)
            tree.put(f"P{number}/{file}".replace("#", f"{number}"), own + "\n")
    _put_package(root)
    faults = [one for one, name in projects.items() if name in _FAULTS]
    found = errors_of_build(tree, tmp_path / "home", faults)
    built = {project: {code for _, code in some} for project, some in found.items()}
    made = next(project for project, name in shapes.items() if name == _MADE)
    if can_confine_servers():
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        confined = Tree(root, "filepact-csharp", confined=True, sdk=sdk_folder())
        try:
            # What a text comes to is not the evaluation's: a part of these is enough.  Each takes most of a second.
            shaped = [one for one, name in shapes.items() if name != _MADE][:: often(2, 1)]
            asked = (*[*projects][:: often(12, 1)], *shaped, made)
            reports = {one: confined.report(f"{one}/A.cs")[f"{one}/A.cs"] for one in asked}
        finally:
            confined.close()
        by_sdk = {
            project: {str(one.code) for one in report.diagnostics if one.severity == "error"}
            for project, report in reports.items()
        }
        names = projects | shapes
        # No target runs here: what one brings is missed, and that is said.
        assert not reports[made].complete
        by_sdk[made] -= {"CS0103"}
        assert {
            names[one]: (sorted(built.get(one, ())), sorted(by_sdk[one]))
            for one in by_sdk
            if built.get(one, set()) != by_sdk[one]
        } == {}
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


# -- other names -----------------------------------------------------------------------------------

_USERS = 20
_LIBRARY = {
    "Shapes.cs": """namespace Lib
{
    /// <summary>See <see cref="Square"/> and <see cref="IShape.Area(int)"/>.</summary>
    public interface IShape { int Area(int scale); string Title { get; } }
    public abstract class Shape : IShape
    {
        public const int Most = 9;
        public static int Count;
        public Kind Kind = Kind.Plain;
        public abstract int Area(int scale);
        int IShape.Area(int scale) => Area(scale);
        public virtual string Title => nameof(Title);
        public event System.Action<int> Moved;
        protected void Move(int by) => Moved?.Invoke(by);
        public class Corner { public int At; }
    }
    public enum Kind { Plain, Fancy }
    public delegate int Measure(Shape shape);
    public struct Size { public int Width { get; set; } public static Size operator +(Size one, Size other) => one; }
}
""",
    "Square.cs": """namespace Lib
{
    public partial class Square : Shape { public Square(int side = 1) { Side = side; Named(); } public int Side { get; } partial void Named(); }
    [System.AttributeUsage(System.AttributeTargets.All)]
    public class MarkAttribute : System.Attribute { public string Text { get; set; } }
}
""",
    "Square.More.cs": """namespace Lib
{
    public partial class Square
    {
        public override int Area(int scale) => Side * scale;
        partial void Named() { }
        ~Square() { }
    }
    public static class Shapes
    {
        public static T Twice<T>(this T shape) where T : Shape { Shape.Count += shape.Area(2); return shape; }
        public static Holder<T> Held<T>(this T shape) where T : Shape => new Holder<T> { Value = shape };
    }
    public class Holder<TValue> where TValue : Shape { public TValue Value { get; set; } }
}
""",
}
_USER = """using System.Linq;
using Lib;
using Own = Lib.Square;
using static Lib.Shape;
namespace App
{
    [Mark(Text = nameof(Square))]
    public class User# : Shape
    {
        readonly Measure measure = shape => shape.Area(scale: 3);
        Size size = new Size { Width = Most };
        public override int Area(int scale) => measure(new Square(side: 2).Twice()) + Count + size.Width;
        public override string Title => base.Title + (Kind == Kind.Fancy ? Kind.Plain.ToString() : "Area");
        public int Rest(IShape other)
        {
            Moved += by => Move(by);
            var row = new { new Own().Side, other.Title };
            var corner = new Corner { At = row.Side };
            Holder<Square> held = new Square().Held();
            return held.Value.Side + (from one in new[] { held } select one.Value.Side).First() + corner.At + (size + size).Width;
        }
    }
}
"""
_RENAMES = {
    "Shape.Area": "Extent",
    "Shape.Title": "Caption",
    "Shape.Most": "Limit",
    "Shape.Count": "Number",
    "Shape.Kind": "Sort",
    "Shape.Moved": "Shifted",
    "Shape.Move": "Shift",
    "Corner.At": "Place",
    "Shape.Corner": "Edge",
    "Kind.Fancy": "Rich",
    "Lib.Kind": "Style",
    "Measure": "Gauge",
    "Size.Width": "Breadth",
    "Size": "Extents",
    "MarkAttribute": "NoteAttribute",
    "Square.Side": "Length",
    "Shapes.Twice": "Doubled",
    "IShape": "IForm",
    "Square": "Quad",
    "Shape": "Form",
}
"""By what is renamed, in this order: a type, or one and its member."""


def _bytes(root: Path) -> dict[Path, bytes]:
    return {one: one.read_bytes() for one in root.rglob("*.cs") if "obj" not in one.parts}


@pytest.mark.slow
def test_twenty_names_over_twenty_files_are_changed_so_that_it_builds_and_taken_back(
    tmp_path: Path,
) -> None:
    sdk_or_skip()
    toolchain_or_skip()
    tree = ProjectTree(tmp_path / "root")
    tree.put("Lib/Lib.csproj", sdk(framework=FRAMEWORK))
    reference = '<ItemGroup><ProjectReference Include="../Lib/Lib.csproj" /></ItemGroup>'
    tree.put("App/App.csproj", sdk(reference, framework=FRAMEWORK))
    for name, text in _LIBRARY.items():
        tree.put(f"Lib/{name}", text)
    for user in range(_USERS):
        tree.put(f"App/User{user}.cs", _USER.replace("#", str(user)))
    states, done = [_bytes(tree.root)], list[str]()
    pool = ServerPool([server("filepact-csharp")], {"PATH": os.environ["PATH"]}, locate)
    with closing(pool), served(tmp_path, pool) as world:
        for name, new in _RENAMES.items():
            holder = rf"(?:class|interface|enum|struct|delegate int) {name.split('.')[-2:][0]}\b"
            if name == "Lib.Kind":
                holder = "enum Kind"
            file = next(one for one in _LIBRARY if re.search(holder, _LIBRARY[one]))
            sent = {"filePath": f"Lib/{file}", "name": name, "newName": new}
            answer = world.data("rename_symbol", **sent, applyChanges=True)
            assert answer["applied"], name
            assert answer["filesChanged"] > _USERS, name
            found = answer["workspaceUpdate"]["diagnostics"]
            assert found is None or found["new"] == [], name
            states.append(_bytes(tree.root))
            done.append(answer["operation"])
        assert errors_of_build(tree, tmp_path / "home") == {}
        for operation in reversed(done):
            assert _bytes(tree.root) == states.pop()
            world.workspace.undo(_PERSON, operation)
        assert [_bytes(tree.root)] == states


# -- edits -----------------------------------------------------------------------------------------

_PARTS = """namespace Made
{
    public interface IPart { int Size { get; } string Name(int at); }
    public abstract class Part : IPart
    {
        public abstract int Size { get; }
        public virtual string Name(int at) { return "part"; }
        protected int inner;
        internal static int Hidden = 1;
    }
    public class Wheel : Part
    {
        public Wheel(int size) { Size = size; }
        public override int Size { get; }
        public Wheel Turn(double by = 1) { return this; }
    }
    public enum Kind { One, Two }
    public struct Spot { public int X; public Spot(int x) { X = x; } }
    public static class Parts
    {
        public const int Most = 3;
        public static T Last<T>(this T[] all) where T : IPart { return all[0]; }
    }
    public delegate int Told(Part part);
}
"""
_USES = """namespace Uses
{
    using Made;
    class Rim : Wheel
    {
        public Rim() : base(2) { inner = Parts.Most; }
        public override string Name(int at) { return base.Name(at); }
    }
    class Own : IPart { public int Size => 1; public string Name(int at) => "own"; }
}
"""
_FLOWS = """using Made;
class Flows
{
    const int N = Parts.Most;
    readonly Told told = part => part.Size;
    int M(Kind kind) { switch (kind) { case Kind.One: return 1; default: return N; } }
    int Far() { var wheel = new Wheel(1); return told(wheel.Turn().Turn(2)) + wheel.Name(1).Length; }
    int Deep() { var all = new[] { new Uses.Rim() }; return all.Last().Size; }
    Spot At() { return new Spot(1) { X = 3 }; }
}
"""


_OF_AN_OLDER = {"CS0115", "CS0534"}
"""What the compiler of that SDK says besides, of a type whose base is wrong, and later ones do not."""


def _nth(text: str, old: str, new: str, number: int) -> str:
    at = [one.start() for one in re.finditer(old, text)][number]
    return text[:at] + re.sub(old, new, text[at:], count=1)


def _edits() -> list[tuple[str, str]]:
    """Fifty edits: the name of a file, and its text afterwards."""
    names = ("IPart", "Part", "Wheel", "Kind", "Spot", "Parts", "Told", "Size", "Name", "inner")
    names += ("Turn", "Last", "Most", "One", "X", "Hidden")
    texts = [_nth(_PARTS, rf"\b{name}\b", f"{name}2", 0) for name in names]
    texts += [_nth(_PARTS, r"\bpublic\b", word, number)
              for number, word in enumerate(["internal"] * 4 + ["private", "protected internal"] * 4)]  # fmt: skip
    texts += [_nth(_PARTS, r"\bint\b", "string", number) for number in range(6)]
    texts += [
        _PARTS.replace(old, new)
        for old, new in {
            "struct Spot": "class Spot",
            "abstract class": "class",
            "virtual ": "",
            " = 1)": ")",
            "const int Most": "static readonly int Most",
            "where T : IPart": "where T : struct",
            "delegate int": "delegate void",
            'return "part"': "return 1",
            "this T[] all": "T[] all",
            "class Wheel": "sealed class Wheel",
        }.items()
    ]
    reference = '<ItemGroup><ProjectReference Include="../L/L.csproj" /></ItemGroup>'
    setting = "<PropertyGroup><{0}>{1}</{0}></PropertyGroup>"
    settings = {"LangVersion": "5", "AssemblyName": "Other", "Nullable": "enable"}
    settings["OutputType"] = "Exe"
    projects = [
        sdk(framework=FRAMEWORK),
        sdk(reference + '<ItemGroup><Compile Remove="Uses.cs" /></ItemGroup>', framework=FRAMEWORK),
        *(sdk(reference + setting.format(*one), framework=FRAMEWORK) for one in settings.items()),
    ]
    found = [("L/Parts.cs", text) for text in texts] + [("A/A.csproj", text) for text in projects]
    assert len(found) == 50
    assert all(text != _PARTS for _, text in found)
    return found


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_what_is_told_of_an_edit_before_it_is_done_is_what_a_build_says_afterwards(
    tmp_path: Path,
) -> None:
    sdk_or_skip()
    toolchain_or_skip()
    tree = ProjectTree(tmp_path / "root")
    places = {}
    for number, (name, text) in enumerate(_edits()[:: often(11, 1)]):
        files = {
            "L/L.csproj": sdk(framework=FRAMEWORK),
            "L/Parts.cs": _PARTS,
            "A/A.csproj": sdk(
                '<ItemGroup><ProjectReference Include="../L/L.csproj" /></ItemGroup>',
                framework=FRAMEWORK,
            ),
            "A/Uses.cs": _USES,
            "A/Flows.cs": _FLOWS,
        }

        def own(given: str, number: int = number) -> str:
            return re.sub(r"\b([LA])(?=/|\.csproj)", rf"\g<1>{number}", given)

        for each, content in files.items():
            tree.put(own(each), own(content))
        places[number] = (own(name), own(text))
    told: dict[int, set[tuple[str, str]]] = {}
    talk = Talk(tree.root)
    try:
        for number, (name, text) in places.items():
            asked = {"uri": talk.uri(name), "before": talk.text(name), "after": text}
            command = {"command": "filepact.dependents", "arguments": [{"changes": [asked]}]}
            others = talk.ask("workspace/executeCommand", command)["files"]
            concerned = [name, *(one.removeprefix(talk.uri("x")[:-1]) for one in others)]
            talk.open(name, text)
            told[number] = {
                (one.partition("/")[2], each["code"])
                for one in concerned
                for each in talk.items(one)
                if each["severity"] == 1
            }
            talk.close(name)
    finally:
        talk.kill()
    for name, text in places.values():
        tree.put(name, text)
    built = errors_of_build(tree, tmp_path / "home")
    for number, (name, _) in places.items():
        library, user = built.get(f"L{number}", set()), built.get(f"A{number}", set())
        # What refers to a project with errors is not compiled, and bodies are not where a
        # declaration is wrong: more may be told then, and else nothing else.
        said = {(place if code != "CS5001" else "CSC", code) for place, code in told[number]}
        missing = {one for one in library | user if one not in said and one[1] not in _OF_AN_OLDER}
        assert not missing, (name, sorted(said), sorted(missing))
        assert bool(said) is bool(library | user), (name, sorted(said))
