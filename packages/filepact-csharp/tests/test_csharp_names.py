"""What names stand for in C#, where they are used, and what another name changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from project_tree import ProjectTree, sdk
from talk import AnswerError, Talk, copy_shop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIBRARY = """namespace Lib;
/// <summary>See <see cref="Total"/>.</summary>
public record Order(int Id, decimal Total) : IPriced;
public interface IPriced { decimal Total { get; } }
public abstract class Shape { public abstract int Area(int scale); protected int side; }
public class Square : Shape { public override int Area(int scale) => side * scale; }
public class MarkAttribute : System.Attribute { public string Name { get; set; } = ""; }
public static class Texts { public static string Shout(this string text) => text.ToUpper(); }
public class Box { public int Area(int scale) => scale; public void Put(int value) { Put(value); } public void Put(string value) { } }
"""
USER = """using Lib;
using Alias = Lib.Square;
namespace App;
[Mark(Name = "x")]
class Use : IPriced
{
    decimal IPriced.Total => 1;
    int area = new Alias().Area(scale: 2);
    object row = new { new Order(1, 2).Total };
    string s = "a".Shout() + nameof(Shape.Area);
    bool Has(Order one) => one is { Total: 3 } && new Order(Id: 1, Total: 2) with { Total = 4 } == one;
    // Total and Area stay as words in a comment
}
"""


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    tree = ProjectTree(tmp_path_factory.mktemp("names"))
    usings = "<PropertyGroup><Nullable>enable</Nullable></PropertyGroup>"
    tree.put("Lib/Lib.csproj", sdk(usings))
    tree.put("Lib/Lib.cs", LIBRARY)
    tree.put(
        "App/App.csproj",
        sdk('<ItemGroup><ProjectReference Include="../Lib/Lib.csproj" /></ItemGroup>'),
    )
    tree.put("App/Use.cs", USER)
    made = Talk(tree.root)
    yield made
    made.kill()


def place(text: str, before: str) -> dict[str, int]:
    """The position behind some text."""
    at = text.index(before) + len(before)
    return {"line": text.count("\n", 0, at), "character": at - text.rfind("\n", 0, at) - 1}


def ask(talk: Talk, method: str, name: str, before: str, **more: Any) -> Any:
    document = {"uri": talk.uri(name)}
    position = place(talk.text(name), before)
    return talk.ask(
        f"textDocument/{method}", {"textDocument": document, "position": position, **more}
    )


def renamed(talk: Talk, name: str, before: str, new: str) -> dict[str, str]:
    """The texts of the files that another name changes."""
    changes = ask(talk, "rename", name, before, newName=new)["changes"]
    start, found = len(talk.uri("x")) - 1, {}
    for uri, edits in changes.items():
        lines = talk.text(uri[start:]).split("\n")
        for one in sorted(edits, key=lambda it: tuple(it["range"]["start"].values()), reverse=True):
            line, first = one["range"]["start"]["line"], one["range"]["start"]["character"]
            last = one["range"]["end"]["character"]
            lines[line] = lines[line][:first] + one["newText"] + lines[line][last:]
        found[uri[start:]] = "\n".join(lines)
    return found


def test_a_record_s_member_is_renamed_with_its_parameter_interface_and_uses(talk: Talk) -> None:
    assert renamed(talk, "Lib/Lib.cs", "int Id, decimal ", "Sum") == {
        "Lib/Lib.cs": LIBRARY.replace("Total", "Sum"),
        "App/Use.cs": USER.replace("Total", "Sum")
        .replace("// Sum", "// Total")
        .replace("new { new Order(1, 2).Sum }", "new { Total = new Order(1, 2).Sum }"),
    }


def test_overrides_are_renamed_together_and_others_of_the_name_stay(talk: Talk) -> None:
    kept = LIBRARY.replace("Area", "Size").replace("Box { public int Size", "Box { public int Area")
    wanted = {
        "Lib/Lib.cs": kept,
        "App/Use.cs": USER.replace("Area", "Size").replace("and Size", "and Area"),
    }
    assert renamed(talk, "Lib/Lib.cs", "override int ", "Size") == wanted
    assert renamed(talk, "App/Use.cs", "new Alias().", "Size") == wanted


def test_one_of_several_overloads_is_renamed_alone(talk: Talk) -> None:
    found = renamed(talk, "Lib/Lib.cs", "public void Put(int value) { ", "Lay")
    assert found == {"Lib/Lib.cs": LIBRARY.replace("Put(int", "Lay(int").replace("Put(v", "Lay(v")}


@pytest.mark.parametrize(
    ("before", "old", "new", "files"),
    [
        ("class ", "MarkAttribute", "NoteAttribute", 2),
        ("public static string ", "Shout", "Cry", 2),
        ("public override int Area(int ", "scale", "by", 2),
        ("protected int ", "side", "width", 1),
    ],
)
def test_what_is_renamed_is_found_in_all_projects(
    talk: Talk, before: str, old: str, new: str, files: int
) -> None:
    found = renamed(talk, "Lib/Lib.cs", LIBRARY[: LIBRARY.index(before + old)] + before, new)
    assert len(found) == files
    user = found.get("App/Use.cs", "")
    assert ("[Note(" in user) is (old == "MarkAttribute")
    assert ('"a".Cry()' in user) is (old == "Shout")
    assert ("Area(by: 2)" in user) is (old == "scale")


@pytest.mark.parametrize(
    ("name", "before", "new"),
    [
        ("Lib/Lib.cs", "class Shape { public abstract int ", "side"),  # there is such a member
        ("Lib/Lib.cs", "public class ", "Box"),  # and such a type
        ("Lib/Lib.cs", "text.", "ToLower"),  # not the solution's own
        ("Lib/Lib.cs", "namespace ", "Other"),
        ("Lib/Lib.cs", "public class ", "class"),
        ("App/Use.cs", "Has(Order ", "area = 1; //"),
        ("App/Use.cs", "string ", "area"),  # two of one name
    ],
)
def test_a_name_that_would_mean_something_else_is_refused(
    talk: Talk, name: str, before: str, new: str
) -> None:
    with pytest.raises(AnswerError) as refused:
        ask(talk, "rename", name, before, newName=new)
    assert refused.value.code == -32803
    assert talk.codes("Lib/Lib.cs") == []  # nothing of what was tried stays
    assert talk.codes("App/Use.cs") == []


def test_uses_are_listed_with_the_declaration(talk: Talk) -> None:
    context = {"context": {"includeDeclaration": True}}
    found = ask(talk, "references", "App/Use.cs", "bool Has(", **context)
    lines = [(one["uri"].rpartition("/")[2], one["range"]["start"]["line"]) for one in found]
    assert lines == [("Use.cs", 8), ("Use.cs", 10), ("Use.cs", 10), ("Lib.cs", 2)]
    assert ask(talk, "references", "App/Use.cs", "decimal IPriced.Total =", **context) == []


def test_the_place_of_a_name_and_what_a_file_declares_are_told(talk: Talk) -> None:
    place_of = ask(talk, "prepareRename", "App/Use.cs", "new Al")
    assert (place_of["start"]["character"], place_of["end"]["character"]) == (19, 24)
    assert ask(talk, "prepareRename", "App/Use.cs", "int area ") is None
    document = {"textDocument": {"uri": talk.uri("Lib/Lib.cs")}}
    (space,) = talk.ask("textDocument/documentSymbol", document)
    assert space["name"] == "Lib"
    assert [one["name"] for one in space["children"]][:3] == ["Order", "IPriced", "Shape"]
    assert [one["name"] for one in space["children"][0]["children"]] == ["Id", "Total"]


def test_unsaved_texts_are_renamed_as_they_are(talk: Talk) -> None:
    shown = "namespace Lib;\n// \U0001f600\npublic class Fresh { /* \U0001f600 */ Fresh f; }\n"
    talk.open("Lib/Lib.cs", shown)
    try:
        position = {"line": 2, "character": 13}
        params = {"textDocument": {"uri": talk.uri("Lib/Lib.cs")}, "position": position}
        changes = talk.ask("textDocument/rename", {**params, "newName": "Ripe"})["changes"]
        (edits,) = changes.values()
        assert [one["range"]["start"]["character"] for one in edits] == [13, 30]
    finally:
        talk.close("Lib/Lib.cs")


@pytest.mark.slow
def test_a_project_of_many_files_is_renamed_in_all(tmp_path: Path) -> None:
    talk = Talk(copy_shop(tmp_path / "shop"))
    try:
        found = renamed(talk, "Shop.Core/Money.cs", "readonly record struct ", "Cash")
        assert len(found) == 12
        for name, text in found.items():
            talk.write(name, text)
        assert talk.survey() == {}
    finally:
        talk.kill()
