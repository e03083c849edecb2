"""What the server offers to do about lines of a file, and what the compiler says once it is done."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from filepact.domain.operation import Actor, Session
from filepact_diagnostics.lsp.pool import ServerPool
from project_tree import sdk
from talk import Talk
from tests.servers.real_servers import locate, server
from tests.servers.solution_world import served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PERSON = Session("p", Actor("human", "person"))
TEXT = """using System.Threading;

class A
{
    StringBuilder s;
    void M(int[] xs) { Console.WriteLine(xs.Where(x => x > 1)); }
    [Serializable] class B { Nowhere n; }
    Own o = "".Longer();
}
"""
OWN = """namespace Mine { public class Own { } class Hidden { } }
namespace Mine.More { static class Texts { internal static Mine.Own Longer(this string s) => null; } }
"""


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    root = tmp_path_factory.mktemp("root").resolve()
    package = '<ItemGroup><PackageReference Include="Some" Version="1" /></ItemGroup>'
    for name, text in {
        "a/a.csproj": sdk(),
        "a/own.cs": OWN,
        "b/b.csproj": sdk(package),
    }.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    found = Talk(root)
    yield found
    found.kill()


def actions(talk: Talk, name: str, text: str, lines: tuple[int, int]) -> dict[str, Any]:
    """The actions for some lines, numbered from 0, of a file that is left open: edits by title."""
    talk.open(name, text)
    first, last = ({"line": line, "character": 0} for line in lines)
    asked = {
        "textDocument": {"uri": talk.uri(name)},
        "range": {"start": first, "end": last},
        "context": {"diagnostics": []},
    }
    found = talk.ask("textDocument/codeAction", asked)
    return {one["title"]: one["edit"]["changes"][talk.uri(name)] for one in found}


def test_names_that_a_using_would_bring_are_found_and_the_error_is_gone(talk: Talk) -> None:
    wanted = {
        4: {"System.Text"},
        5: {"System", "System.Linq"},
        6: {"System"},
        7: {"Mine", "Mine.More"},
    }
    for line, names in wanted.items():
        found = actions(talk, "a/a.cs", TEXT, (line, line + 1))
        talk.close("a/a.cs")
        found.pop("Remove unused usings")
        assert found.keys() == {f"using {name};" for name in names}
    every = actions(talk, "a/a.cs", TEXT, (0, 8))
    for title in sorted(every.keys() - {"Remove unused usings"}):
        talk.change(
            "a/a.cs", *({"range": one["range"], "text": one["newText"]} for one in every[title])
        )
    assert talk.codes("a/a.cs") == ["CS0246"]  # of a type that is nowhere
    talk.close("a/a.cs")


LACKING = """using System;
using System.Collections.Generic;

interface IShape<T> where T : class
{
    int Corners { get; }
    string Name { get; set; }
    T this[int at] { get; }
    event Action Moved;
    List<T> Parts<U>(ref int from, string? of = null) where U : IDisposable;
    void Inherited() { }
}

abstract class Base
{
    protected abstract void Draw(params object[] with);
    public abstract int Depth { get; set; }
    public abstract void Known();
    public virtual void Free() { }
}

abstract class Middle : Base
{
    public override void Known() { }
}

namespace Inner
{
    class Square : Middle, IShape<string>
    {
        public int Corners => 4;
    }

    struct Dot : IComparable<Dot> { }

    class Odd : System.Collections.IEnumerable { }
}
"""


def test_members_that_a_type_has_to_have_are_added_and_the_errors_are_gone(talk: Talk) -> None:
    title, rows = "Add missing members", LACKING.split("\n")
    (alone,) = actions(talk, "a/a.cs", LACKING, (28, 29))[title]
    talk.close("a/a.cs")
    every = actions(talk, "a/a.cs", LACKING, (0, 37))[title]
    talk.close("a/a.cs")
    assert alone in every
    for one in every:
        at = one["range"]["start"]
        row, column = rows[at["line"]], at["character"]
        behind = row[one["range"]["end"]["character"] :]
        rows[at["line"]] = f"{row[:column]}{one['newText']}{behind}"
    text = "\n".join(rows)
    talk.open("a/a.cs", text)
    assert [one for one in talk.codes("a/a.cs") if one not in ("CS0067", "CS8632")] == []
    assert "Add missing members" not in actions(talk, "a/a.cs", text, (0, 37))
    talk.close("a/a.cs")


def test_usings_that_nothing_needs_are_taken_out_where_all_is_known(talk: Talk) -> None:
    text = "// Head.\nusing System;\nusing System.IO;\nusing System.Text;\n\nclass A { StringBuilder s; }\n"
    (edits,) = actions(talk, "a/a.cs", text, (0, 1)).values()
    for one in reversed(edits):
        talk.change("a/a.cs", {"range": one["range"], "text": one["newText"]})
    assert talk.codes("a/a.cs") == []
    assert (
        actions(talk, "a/a.cs", "using System.Text;\nclass A { StringBuilder s; }\n", (0, 1)) == {}
    )
    talk.close("a/a.cs")
    # What is not restored may need them.
    assert actions(talk, "b/a.cs", text, (0, 1)) == {}
    talk.close("b/a.cs")


def test_nothing_is_added_where_it_would_count_in_some_builds_only(talk: Talk) -> None:
    text = "#if DEBUG\nusing System.IO;\n#endif\nclass A { StringBuilder s; }\n"
    assert "using System.Text;" not in actions(talk, "a/a.cs", text, (0, 4))
    talk.close("a/a.cs")


def test_lines_end_as_those_of_the_file_do(talk: Talk) -> None:
    text = "using System;\r\nclass A { StringBuilder s; Int32 n; }\r\n"
    (edit,) = actions(talk, "a/a.cs", text, (1, 2))["using System.Text;"]
    assert edit["newText"] == "using System.Text;\r\n"
    assert edit["range"]["start"] == {"line": 1, "character": 0}
    talk.close("a/a.cs")


def test_an_action_and_the_form_are_changes_like_any_other(tmp_path: Path) -> None:
    rough = "class A\n{\n  StringBuilder  s ;\n}\n"
    pool = ServerPool([server("filepact-csharp")], {"PATH": os.environ["PATH"]}, locate)
    with closing(pool), served(tmp_path, pool) as world:
        world.put("a.csproj", sdk())
        world.put("a.cs", rough)
        listed = world.data("code_action", filePath="a.cs", line=3)
        assert [one["title"] for one in listed["actions"]] == [
            "using System.Text;",
            "Format document",
        ]
        shown = world.data("code_action", filePath="a.cs", line=3, title="using System.Text;")
        assert shown["applied"] is False
        assert shown["change"]["workspaceUpdate"]["diagnostics"]["fixed"]
        assert world.held("a.cs") == rough
        operations = []
        for title in ("using System.Text;", "Format document"):
            done = world.data(
                "code_action", filePath="a.cs", line=3, title=title, applyChanges=True
            )
            assert done["applied"], done
            operations.append(done["operation"])
        assert world.held("a.cs") == "using System.Text;\nclass A\n{\n  StringBuilder s;\n}\n"
        for operation in reversed(operations):
            world.workspace.undo(_PERSON, operation)
        assert world.held("a.cs") == rough
