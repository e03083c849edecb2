"""How far an answer goes: what is not known is said, and is no error and no silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from filepact_csharp.files import DiskTree
from filepact_csharp.solution import read_solution
from filepact_csharp.toolchain import newest_framework
from project_tree import ProjectTree, sdk
from talk import Talk
from tests.servers.csharp_toolchain import toolchain_or_skip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_WRONG = 'class {0} {{ int n = "text"; }}\n'
_FRIENDLY = (
    '<Target Name="Friends" BeforeTargets="CoreCompile"><ItemGroup>'
    '<AssemblyAttribute Include="System.Runtime.CompilerServices.InternalsVisibleToAttribute" />'
    "</ItemGroup></Target>"
)
_FILES = {
    # Nothing of this one is restored.
    "Lacking/Lacking.csproj": sdk(
        '<ItemGroup><PackageReference Include="Pack" Version="1" /></ItemGroup>'
    ),
    "Lacking/Base.cs": "using Pack;\nnamespace L;\npublic class Base : FromPack { }\n",
    "Lacking/Follows.cs": """namespace L;
public class Follows : System.IDisposable
{
    void Uses(Base one) { using (one) { } one.Missing(); Takes(one); string s = one.Count + 1; }
    void Takes(System.IDisposable one) { }
    public void Dispose() { }
}
""",
    "Lacking/Derived.cs": "namespace L;\npublic class Derived : Base { public override void Run() { Known(); } }\n",
    "Lacking/Later.cs": "namespace L;\nclass Later { [System.FromLater(1)] void M() { } }\n",
    "Lacking/Wrong.cs": "namespace L;\n" + _WRONG.format("Wrong"),
    # A target decides who sees what is internal.
    "Open/Open.csproj": sdk(_FRIENDLY),
    "Open/Inner.cs": "namespace O;\ninternal class Inner { internal static int One => 1; }\n",
    "Sees/Sees.csproj": sdk(
        '<ItemGroup><ProjectReference Include="../Open/Open.csproj" /></ItemGroup>'
    ),
    "Sees/Use.cs": "namespace S;\nclass Use { int n = O.Inner.One; string s = O.Inner.One; }\n",
    # What a generator of the framework writes.
    "Made/Made.csproj": sdk(),
    "Made/Words.cs": """using System.Text.Json.Serialization;
using System.Text.RegularExpressions;
namespace M;
public partial class Words
{
    [GeneratedRegex("a+")]
    private static partial Regex Pattern();
    bool Has(string text) => Pattern().IsMatch(text);
}
[JsonSerializable(typeof(Words))]
public partial class Context : JsonSerializerContext { }
class Uses { object o = Context.Default.Words; int n = "text"; }
""",
    # One that cannot be read, and one that refers to it, in the same namespace.
    "Broken/Broken.csproj": sdk().replace("</Project>", ""),
    "Broken/Thing.cs": "namespace B;\npublic class Thing { }\n",
    "Above/Above.csproj": sdk(
        '<ItemGroup><ProjectReference Include="../Broken/Broken.csproj" /></ItemGroup>'
    ),
    "Above/Use.cs": 'namespace B;\nclass Use : Thing { int n = "text"; }\n',
    # For a .NET and in a language that are not here.
    "Later/Later.csproj": sdk(framework="net99.0"),
    "Later/New.cs": "class New { int N { get => field; set => field = value; } int M() => System.Math.Newest(1); }\n",
    "Fine/Fine.csproj": sdk(),
    "Fine/Right.cs": "namespace F;\nclass Right { }\n",
    "Fine/.editorconfig": "[*.cs]\nindent_size = 4\ndotnet_diagnostic.CA1822.severity = error\n",
    "Nowhere/Loose.cs": _WRONG.format("Loose"),
}


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    tree = ProjectTree(tmp_path_factory.mktemp("caveats"))
    for name, text in _FILES.items():
        tree.put(name, text)
    made = Talk(tree.root)
    yield made
    made.kill()


def answer(talk: Talk, name: str) -> tuple[dict[str, Any], dict[str, int]]:
    """How far the answer about a file goes, and what it says: the worst severity by code."""
    document = {"textDocument": {"uri": talk.uri(name)}}
    told = talk.ask("textDocument/diagnostic", document)
    found: dict[str, int] = {}
    for one in told["items"]:
        found[one["code"]] = min(one["severity"], found.get(one["code"], 9))
    return told["filepact"], found


def test_what_is_known_has_no_caveats(talk: Talk) -> None:
    caveats, found = answer(talk, "Fine/Right.cs")
    assert caveats["known"]
    assert found == {}


@pytest.mark.parametrize("name", ["Nowhere/Loose.cs", "Broken/Thing.cs"])
def test_a_file_of_no_project_is_not_known(talk: Talk, name: str) -> None:
    caveats, found = answer(talk, name)
    assert not caveats["known"]
    assert caveats["approximate"]
    assert found == {}
    # The project that cannot be read is named with the reason.
    assert any(one.startswith("Broken: ") for one in caveats["notes"])


def test_packages_that_were_not_restored_are_told_with_each_file(talk: Talk) -> None:
    caveats, found = answer(talk, "Lacking/Wrong.cs")
    assert caveats["known"]
    assert caveats["approximate"]
    assert any("Pack" in one for one in caveats["notes"])
    assert found == {"CS0029": 1}


@pytest.mark.parametrize("name", ["Base", "Follows", "Derived", "Later"])
def test_what_follows_from_a_package_is_no_certain_error(talk: Talk, name: str) -> None:
    _, found = answer(talk, f"Lacking/{name}.cs")
    assert found
    assert set(found.values()) == {2}


def test_internals_that_a_target_may_show_are_seen(talk: Talk) -> None:
    caveats, found = answer(talk, "Sees/Use.cs")
    assert caveats["approximate"]
    assert any(one.startswith("Open: ") for one in caveats["notes"])
    assert found == {"CS0029": 1}


def test_what_a_generator_of_the_framework_writes_is_not_missed(talk: Talk) -> None:
    _, found = answer(talk, "Made/Words.cs")
    assert found == {"CS8795": 2, "CS0534": 2, "CS7036": 2, "CS0117": 2, "CS0029": 1}


def test_a_project_that_cannot_be_read_makes_no_errors_elsewhere(talk: Talk) -> None:
    caveats, found = answer(talk, "Above/Use.cs")
    assert caveats["approximate"]
    assert found == {"CS0246": 2, "CS0029": 1}


def test_a_newer_framework_and_language_are_said(talk: Talk) -> None:
    caveats, found = answer(talk, "Later/New.cs")
    assert caveats["approximate"]
    assert any("C#" in one for one in caveats["notes"])
    assert any("net99.0" in one for one in caveats["notes"])
    assert set(found.values()) <= {2}


def test_the_answer_is_renewed_when_only_its_caveats_change(talk: Talk) -> None:
    document = {"textDocument": {"uri": talk.uri("Fine/Right.cs")}}
    number = talk.ask("textDocument/diagnostic", document)["resultId"]
    again = talk.ask("textDocument/diagnostic", {**document, "previousResultId": number})
    assert again == {"kind": "unchanged", "resultId": number}
    package = sdk('<ItemGroup><PackageReference Include="Pack" Version="1" /></ItemGroup>')
    talk.write("Fine/Fine.csproj", package)
    told = talk.ask("textDocument/diagnostic", {**document, "previousResultId": number})
    assert told["kind"] == "full"
    assert told["filepact"]["approximate"]
    talk.write("Fine/Fine.csproj", sdk())


def test_both_servers_choose_the_same_target(tmp_path: Path) -> None:
    """The one that knows projects alone starts no runtime, and is asked which files there are."""
    found = toolchain_or_skip()
    targets = "<TargetFrameworks>net99.0;net8.0;netstandard2.0</TargetFrameworks>"
    tree = ProjectTree(tmp_path)
    tree.put("App.csproj", sdk(f"<PropertyGroup>{targets}</PropertyGroup>", framework=""))
    tree.put("One.cs", "#if NET99_0\n#error LATER\n#endif\n")
    talk = Talk(tmp_path)
    try:
        assert talk.codes("One.cs") == []
        told = talk.projects("One.cs")["messages"]
    finally:
        talk.kill()
    newest = newest_framework(found)
    read = read_solution(str(tmp_path), str(tmp_path), DiskTree(str(tmp_path)), newest)
    said = [one.text for one in read.projects[0].messages]
    assert read.projects[0].target_framework == "net8.0"
    assert "of net99.0, net8.0, netstandard2.0, only net8.0 is looked at" in told
    assert set(said) <= set(told)
