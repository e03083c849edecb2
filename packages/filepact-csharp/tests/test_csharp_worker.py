"""The server for C# over a solution of three projects: what it finds, and that it stays right.

One server is enough for all of them: each test leaves files, documents and what is found as they were.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from talk import AnswerError, Talk, copy_shop
from tests.servers.csharp_toolchain import toolchain_or_skip

if TYPE_CHECKING:
    from collections.abc import Iterator

MONEY = "Shop.Core/Money.cs"
TABLE = "Shop.Core/Text/Table.cs"
SKU = "Shop.Core/Catalogue/Sku.cs"
SEARCH = "Shop.App/Commands/SearchCommand.cs"
ORDER_COMMAND = "Shop.App/Commands/OrderCommand.cs"
PRICES = "Shop.Core/Pricing/PriceList.cs"
WORDS_TESTS = "Shop.Tests/WordsTests.cs"
LATER = "Shop.App/Drafts/Later.cs"
CORE = "Shop.Core/Shop.Core.csproj"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    talk = Talk(copy_shop(tmp_path_factory.mktemp("csharp") / "shop"))
    yield talk
    talk.kill()


@pytest.fixture
def shop(shared: Talk) -> Iterator[Talk]:
    yield shared
    assert shared.survey() == {}, "the test has left something behind"


@pytest.fixture
def laid(shop: Talk) -> Iterator[Any]:
    """Lays texts over files, and takes them away in the end."""
    names: list[str] = []

    def lay(name: str, text: str) -> None:
        names.append(name)
        shop.open(name, text)

    yield lay
    for name in names:
        shop.close(name)


def replaced(shop: Talk, name: str, old: str, new: str) -> str:
    text = shop.text(name)
    assert old in text
    return text.replace(old, new)


# -- what is found ----------------------------------------------------------------------------------


def test_nothing_is_wrong_in_a_solution_that_is_right(shop: Talk) -> None:
    assert shop.survey() == {}
    assert shop.items(MONEY) == []


def test_errors_are_told_with_place_code_and_message(shop: Talk, laid: Any) -> None:
    laid(MONEY, replaced(shop, MONEY, "new(0m, currency)", 'new("😀", currency)'))
    (one,) = shop.items(MONEY)
    line = (
        shop.text(MONEY)
        .split("\n")
        .index("    public static Money Zero(Currency currency) => new(0m, currency);")
    )
    assert one["range"] == {
        "start": {"line": line, "character": 55},
        "end": {"line": line, "character": 59},  # two units of UTF-16
    }
    assert (one["code"], one["severity"], one["source"]) == ("CS1503", 1, "csharp")
    assert "string" in one["message"]


@pytest.mark.parametrize(
    ("name", "old", "new", "codes"),
    [
        # A warning of the compiler; what only an editor would show is not told.
        (TABLE, "var text = new", "int unused;\n        var text = new", ["CS0168"]),
        (TABLE, "using System.Text;", "using System.Text;\nusing System.IO.Pipes;", []),
        # Nullable is on, and a warning of it counts as an error here.
        (SEARCH, "foreach (var", "string s = null;\n        foreach (var", ["CS0219", "CS8600"]),
        (WORDS_TESTS, "Words.Of", "Words.In", ["CS0117"]),
        (PRICES, "order.Total - best", "order.Totals - best", ["CS1061"]),
        # What stands behind a symbol that is not defined is no code.
        (PRICES, "#else", "#else\n    this is no code", []),
        (PRICES, "#if WITH_DISCOUNTS", "#if !WITH_DISCOUNTS", ["CS1061"]),
        (TABLE, "return this;", "return this", ["CS1002"]),
    ],
)
def test_what_is_wrong_in_one_file(
    shop: Talk, laid: Any, name: str, old: str, new: str, codes: list[str]
) -> None:
    laid(name, replaced(shop, name, old, new))
    assert sorted(shop.codes(name)) == codes


def test_implicit_usings_and_those_of_a_project_hold_in_every_file(shop: Talk, laid: Any) -> None:
    used = 'class New { Sku? a; List<Article>? b; Task? c; public override string ToString() => $"{a}{b}{c}"; }'
    laid("Shop.Tests/New.cs", used)
    assert shop.codes("Shop.Tests/New.cs") == []
    laid("Shop.Core/New.cs", used)
    assert shop.codes("Shop.Core/New.cs") == ["CS0246", "CS0246"]


def test_what_is_internal_is_seen_by_friends_alone(shop: Talk, laid: Any) -> None:
    laid(
        SEARCH, shop.text(SEARCH) + '\nfile static class More { static object o = Words.Of(""); }\n'
    )
    assert shop.codes(SEARCH) == ["CS0122"]


def test_a_library_is_seen_by_projects_that_refer_to_it_and_through_others(
    shop: Talk, laid: Any
) -> None:
    laid("Shop.Core/Order2.cs", "namespace Shop.App.Commands { internal class Never { } }")
    laid(SKU, replaced(shop, SKU, "IsValid(string? text)", "IsRight(string? text)"))
    assert shop.codes(SKU) == ["CS0103"]
    assert shop.codes(ORDER_COMMAND) == ["CS0117"]
    assert shop.codes("Shop.Tests/MoneyTests.cs") == []
    laid(MONEY, replaced(shop, MONEY, "public static Money Zero", "public static Money Nought"))
    assert shop.codes("Shop.Tests/MoneyTests.cs") == ["CS0117", "CS0117"]


def test_the_whole_solution_says_what_its_files_say(shop: Talk, laid: Any) -> None:
    laid(
        MONEY,
        replaced(
            shop,
            MONEY,
            "public static Money Zero",
            "private int unused; public static Money Nought",
        ),
    )
    whole = shop.survey()
    assert len(whole) > 3
    assert whole == {name: shop.codes(name) for name in whole}


def test_a_program_without_an_entry_point_is_told_with_the_file_that_had_it(
    shop: Talk, laid: Any
) -> None:
    assert shop.codes("Shop.Tests/Program.cs") == []
    laid("Shop.Tests/Program.cs", "// nothing\n")
    assert shop.survey() == {"Shop.Tests/Program.cs": ["CS5001"]}
    assert shop.codes("Shop.Tests/Program.cs") == ["CS5001"]
    assert shop.codes("Shop.Tests/Check.cs") == []


def test_two_entry_points_are_told_with_the_files_that_have_them(shop: Talk) -> None:
    program = shop.text("Shop.Tests/Program.cs")
    of = "class Main{0} {{ static {1} Main(string[] words) => {2}; }}\n"
    waits = of.format(2, "System.Threading.Tasks.Task", "System.Threading.Tasks.Task.CompletedTask")
    shop.write("Shop.Tests/Program.cs", of.format(1, "int", "1"))
    shop.write("Shop.Tests/Second.cs", waits)
    assert shop.codes("Shop.Tests/Second.cs") == []  # one that does not wait goes before
    shop.write("Shop.Tests/Second.cs", of.format(2, "void", "System.Console.WriteLine()"))
    assert shop.codes("Shop.Tests/Second.cs") == ["CS0017"]
    assert shop.survey() == {
        "Shop.Tests/Program.cs": ["CS0017"],
        "Shop.Tests/Second.cs": ["CS0017"],
    }
    project = shop.text("Shop.Tests/Shop.Tests.csproj")
    start = "<PropertyGroup><StartupObject>Main2</StartupObject></PropertyGroup></Project>"
    shop.write("Shop.Tests/Shop.Tests.csproj", project.replace("</Project>", start))
    assert shop.survey() == {}
    shop.write("Shop.Tests/Shop.Tests.csproj", project)
    shop.remove("Shop.Tests/Second.cs")
    shop.write("Shop.Tests/Program.cs", program)


# -- membership -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "projects"),
    [
        (MONEY, ["Shop.Core"]),
        ("Shop.App/Program.cs", ["Shop.App"]),
        (LATER, []),
        ("Shop.Core/NotThere.cs", ["Shop.Core"]),
        (CORE, ["Shop.Core"]),
    ],
)
def test_the_projects_of_a_file(shop: Talk, name: str, projects: list[str]) -> None:
    assert shop.projects(name) == {"projects": projects, "approximate": False, "messages": []}


def test_a_file_that_no_project_includes_is_not_looked_at(shop: Talk, laid: Any) -> None:
    assert shop.items(LATER) == []
    laid(LATER, "this is no code")
    assert shop.items(LATER) == []
    assert shop.projects(LATER)["projects"] == []


# -- texts and files that change --------------------------------------------------------------------


def test_an_overlay_counts_for_other_files_until_it_is_closed(shop: Talk) -> None:
    shop.open(SKU, replaced(shop, SKU, "IsValid", "IsRight"))
    assert shop.codes(ORDER_COMMAND) == ["CS0117"]
    shop.close(SKU)
    assert shop.codes(ORDER_COMMAND) == []


def test_changes_of_parts_are_followed(shop: Talk, laid: Any) -> None:
    laid(MONEY, shop.text(MONEY))
    line = next(number for number, one in enumerate(shop.text(MONEY).split("\n")) if "Zero(" in one)
    place = {"line": line, "character": 51}
    shop.change(MONEY, {"range": {"start": place, "end": {**place, "character": 53}}, "text": "x"})
    assert shop.codes(MONEY) == ["CS0103"]
    shop.change(
        MONEY, {"range": {"start": {"line": 9999, "character": 0}, "end": place}, "text": ""}
    )
    for name in (MONEY, SKU):  # which may depend on it
        with pytest.raises(AnswerError) as caught:
            shop.items(name)
        assert caught.value.code == -32803
    shop.change(MONEY, {"text": shop.text(MONEY)})
    assert shop.codes(MONEY) == []


def test_an_unsaved_new_file_is_seen_by_others(shop: Talk) -> None:
    shop.open("Shop.App/Uses.cs", "namespace Shop.App; class Uses { int n = Extra.Word; }")
    assert shop.codes("Shop.App/Uses.cs") == ["CS0103"]
    shop.open(
        "Shop.Core/Extra.cs",
        'namespace Shop; public class Extra { public const string Word = ""; }',
    )
    assert shop.codes("Shop.App/Uses.cs") == ["CS0029"]
    assert shop.projects("Shop.Core/Extra.cs")["projects"] == ["Shop.Core"]
    shop.close("Shop.Core/Extra.cs")
    assert shop.codes("Shop.App/Uses.cs") == ["CS0103"]
    shop.close("Shop.App/Uses.cs")


def test_files_that_come_change_and_go_on_the_disk(shop: Talk) -> None:
    name = "Shop.Core/Deep/Er/Extra.cs"
    shop.write(name, "namespace Shop; class Extra { int n = true; }")
    assert shop.codes(name) == ["CS0029"]
    shop.write(name, "namespace Shop; class Extra { Missing? n; }")
    assert shop.codes(name) == ["CS0246"]
    shop.remove(name)
    assert shop.codes(name) == []
    assert name not in shop.survey()


def test_a_source_that_is_no_text_is_said_and_counts_once_it_is_one(shop: Talk) -> None:
    name = "Shop.Core/Odd.cs"
    (shop.root / name).write_bytes(bytes(range(256)) * 9)
    shop.happened(created=name)
    assert shop.projects(MONEY) == {
        "projects": ["Shop.Core"],
        "approximate": True,
        "messages": ["Odd.cs cannot be read"],
    }
    shop.write(name, "namespace Shop; class Odd { int n = true; }")
    assert shop.codes(name) == ["CS0029"]
    assert not shop.projects(MONEY)["approximate"]
    shop.remove(name)


def test_a_folder_that_goes_takes_its_files_along(shop: Talk) -> None:
    shop.write("Shop.Core/Gone/A.cs", "namespace Shop; public class A { }")
    shop.write("Shop.App/B.cs", "namespace Shop.App; class B : A { }")
    assert shop.codes("Shop.App/B.cs") == []
    (shop.root / "Shop.Core/Gone/A.cs").unlink()
    (shop.root / "Shop.Core/Gone").rmdir()
    shop.happened(deleted="Shop.Core/Gone")
    assert shop.codes("Shop.App/B.cs") == ["CS0246"]
    shop.remove("Shop.App/B.cs")


def test_an_open_document_counts_more_than_the_disk(shop: Talk) -> None:
    right = shop.text(SKU)
    shop.open(SKU, right)
    shop.write(SKU, "broken")
    assert shop.codes(SKU) == []
    shop.close(SKU)
    assert shop.codes(SKU) != []
    shop.write(SKU, right)
    assert shop.codes(SKU) == []


def test_projects_and_what_they_import_count_as_soon_as_they_change(shop: Talk) -> None:
    right = shop.text(CORE)
    shop.write(CORE, right.replace("WITH_DISCOUNTS", "WITHOUT"))
    assert shop.codes(PRICES) == ["CS1061"]
    shop.write(
        CORE,
        right.replace("<RootNamespace>", "<ImplicitUsings>disable</ImplicitUsings><RootNamespace>"),
    )
    assert "CS0246" in shop.codes("Shop.Core/Result.cs")
    shop.write(CORE, right)
    props = "Directory.Build.props"
    before = shop.text(props)
    shop.write(props, before.replace("12.0", "9.0"))
    assert "CS8773" in shop.codes("Shop.Core/Money.cs")
    shop.write(props, before)
    assert shop.codes("Shop.Core/Money.cs") == []


def test_a_project_that_is_named_newly_is_read(shop: Talk) -> None:
    solution, app = shop.text("Shop.sln"), shop.text("Shop.App/Shop.App.csproj")
    shop.write("More/More.csproj", '<Project Sdk="Microsoft.NET.Sdk"/>')
    shop.write("More/A.cs", "namespace More { public class A { } }")
    assert shop.projects("More/A.cs")["projects"] == []
    shop.write("Shop.App/Uses.cs", "class Uses : More.A { }")
    assert shop.codes("Shop.App/Uses.cs") == ["CS0246"]
    reference = '<ProjectReference Include="../More/More.csproj" />'
    shop.write("Shop.App/Shop.App.csproj", app.replace("<Compile", reference + "<Compile"))
    assert shop.codes("Shop.App/Uses.cs") == []
    assert shop.projects("More/A.cs")["projects"] == ["More"]
    shop.write("Shop.App/Shop.App.csproj", app)
    assert shop.codes("Shop.App/Uses.cs") == ["CS0246"]
    shop.remove("Shop.App/Uses.cs")
    shop.remove("More/A.cs")
    shop.remove("More/More.csproj")
    assert shop.text("Shop.sln") == solution


def test_a_broken_project_file_is_said_and_mended(shop: Talk) -> None:
    right = shop.text(CORE)
    shop.write(CORE, right[: len(right) // 2])
    shop.codes(MONEY)
    shop.write(CORE, right)
    assert shop.codes(MONEY) == []
    assert shop.projects(MONEY)["projects"] == ["Shop.Core"]


# -- answers ----------------------------------------------------------------------------------------


def test_an_answer_that_stays_the_same_is_not_sent_again(shop: Talk, laid: Any) -> None:
    laid(SKU, replaced(shop, SKU, "=> Text;", "=> Text + missing;"))
    document = {"textDocument": {"uri": shop.uri(SKU)}}
    first = shop.ask("textDocument/diagnostic", document)
    again = {**document, "previousResultId": first["resultId"]}
    shop.change(MONEY, {"text": "not open, and passed over"})
    assert shop.ask("textDocument/diagnostic", again) == {
        "kind": "unchanged",
        "resultId": first["resultId"],
    }
    shop.change(SKU, {"text": shop.text(SKU)})
    assert shop.ask("textDocument/diagnostic", again)["kind"] == "full"


def test_a_survey_says_what_stayed_and_what_was_mended(shop: Talk) -> None:
    shop.open(SKU, replaced(shop, SKU, "=> Text;", "=> Text + missing;"))
    (first,) = shop.ask("workspace/diagnostic", {"previousResultIds": []})["items"]
    before = {"previousResultIds": [{"uri": first["uri"], "value": first["resultId"]}]}
    (again,) = shop.ask("workspace/diagnostic", before)["items"]
    assert again["kind"] == "unchanged"
    shop.close(SKU)
    (mended,) = shop.ask("workspace/diagnostic", before)["items"]
    assert (mended["kind"], mended["items"]) == ("full", [])


def test_a_survey_comes_in_parts_if_that_is_wanted(shop: Talk, laid: Any) -> None:
    laid(SKU, replaced(shop, SKU, "IsValid", "IsRight"))
    shop.heard.clear()
    answer = shop.ask("workspace/diagnostic", {"previousResultIds": [], "partialResultToken": "t"})
    parts = [one["params"] for one in shop.heard if one["method"] == "$/progress"]
    assert answer["items"] == []
    assert [one["token"] for one in parts] == ["t"] * len(parts)
    told = [item["uri"] for one in parts for item in one["value"]["items"]]
    assert shop.uri(ORDER_COMMAND) in told


def test_questions_that_were_given_up_are_not_answered(shop: Talk, laid: Any) -> None:
    laid(MONEY, shop.text(MONEY))
    numbers = [
        shop.begin("workspace/diagnostic", {"previousResultIds": []}),
        shop.begin("textDocument/diagnostic", {"textDocument": {"uri": shop.uri(MONEY)}}),
    ]
    shop.tell("$/cancelRequest", {"id": numbers[1]})
    assert shop.end(numbers[0]) == {"items": []}
    with pytest.raises(AnswerError) as caught:
        shop.end(numbers[1])
    assert caught.value.code == -32800
    assert shop.codes(MONEY) == []


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/diagnostic", None),
        ("textDocument/diagnostic", {"textDocument": {"uri": "untitled:1"}}),
        ("textDocument/diagnostic", {"textDocument": {"uri": 5}}),
        ("workspace/diagnostic", {"previousResultIds": 5}),
        ("filepact/projects", {}),
        ("textDocument/hover", {}),
    ],
)
def test_odd_questions_are_refused(shop: Talk, method: str, params: Any) -> None:
    with pytest.raises(AnswerError):
        shop.ask(method, params)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/didOpen", {}),
        ("textDocument/didOpen", {"textDocument": {"uri": "file:///etc/passwd", "text": None}}),
        ("textDocument/didChange", {"textDocument": {"uri": 5}, "contentChanges": 7}),
        ("textDocument/didClose", {"textDocument": {"uri": "file:///nowhere/at/all.cs"}}),
        ("workspace/didChangeWatchedFiles", {"changes": [{"uri": "file:///", "type": 3}]}),
        ("workspace/didChangeWatchedFiles", {"changes": [{"uri": None}, 5]}),
        ("workspace/didChangeWatchedFiles", {"changes": [{"uri": "http://x", "type": 1}]}),
        ("solution/open", {"solution": 7}),
        ("project/open", {"projects": []}),
    ],
)
def test_odd_notifications_change_nothing(shop: Talk, method: str, params: Any) -> None:
    shop.tell(method, params)
    assert shop.codes(MONEY) == []


def test_texts_that_no_compiler_expects_end_nothing(shop: Talk, laid: Any) -> None:
    name = "Shop.Core/Odd.cs"
    laid(name, "")
    for text in (
        "\ud800",
        '// \udfff half of a pair\nclass A { string s = "\ud83d"; }',
        "\0\0\0",
        "\ufeffclass A { }",
        "class A { int x = " + "(" * 500 + "1" + ")" * 500 + "; }",
        "class A { int x = " + "1+" * 2_000 + "1; }",
        "class A {" * 300,
        "class A { object M() => this" + ".M()" * 1_000 + "; }",
        "#if" * 3_000,
        "/* never ends",
        '"""',
        "\u2028\u0085class A { int x = true; }",
    ):
        shop.change(name, {"text": text})
        items = shop.items(name)
        assert all(one["range"]["start"]["line"] <= text.count("\n") for one in items)
    assert shop.codes(MONEY) == []


# -- libraries --------------------------------------------------------------------------------------


def assets(folder: str, dll: str) -> str:
    """What a restore leaves behind of one package."""
    package = {"type": "package", "compile": {dll: {}}, "runtime": {dll: {}}}
    return json.dumps(
        {
            "version": 3,
            "targets": {"net8.0": {"Some.Package/1.0.0": package}},
            "libraries": {"Some.Package/1.0.0": {"type": "package", "path": "some.package/1.0.0"}},
            "packageFolders": {f"{folder}/": {}},
            "project": {"frameworks": {"net8.0": {}}},
        }
    )


def test_packages_are_seen_once_they_are_restored(shop: Talk, tmp_path: Path) -> None:
    """The compiler's own library serves as one that somebody has restored."""
    name = "Shop.Core/Uses.cs"
    right = shop.text(CORE)
    package = '<PackageReference Include="Some.Package" Version="1.0.0" />'
    shop.write(CORE, right.replace("<InternalsVisibleTo", package + "<InternalsVisibleTo"))
    shop.write(name, "public class Uses { public Microsoft.CodeAnalysis.SyntaxNode? node; }")
    assert shop.codes(name) == ["CS0234"]
    found = shop.projects(name)
    assert found["approximate"]
    assert "Some.Package" in str(found["messages"])

    place = tmp_path / "packages" / "some.package" / "1.0.0" / "lib" / "net8.0"
    place.mkdir(parents=True)
    dll = "Microsoft.CodeAnalysis.dll"
    shutil.copyfile(Path(toolchain_or_skip().roslyn, dll), place / dll)
    shop.write(
        "Shop.Core/obj/project.assets.json", assets(str(tmp_path / "packages"), f"lib/net8.0/{dll}")
    )
    assert shop.codes(name) == []
    assert not shop.projects(name)["approximate"]

    # One that is no library is said, and ends nothing.
    (place / dll).write_text("no library")
    shop.happened(changed="Shop.Core/obj/project.assets.json")
    assert shop.codes(name) == ["CS0234"]
    assert dll in str(shop.projects(name)["messages"])

    shop.write(CORE, right)
    shop.remove(name)
    shop.remove("Shop.Core/obj/project.assets.json")


def test_a_framework_that_is_not_installed_is_said(shop: Talk) -> None:
    right = shop.text(CORE)
    shop.write(CORE, right.replace('Sdk="Microsoft.NET.Sdk"', 'Sdk="Microsoft.NET.Sdk.Web"'))
    assert "Microsoft.AspNetCore.App" in str(shop.projects(MONEY)["messages"])
    shop.write(
        CORE,
        right.replace(
            "<RootNamespace>", "<TargetFramework>netstandard2.0</TargetFramework><RootNamespace>"
        ),
    )
    assert "netstandard2.0" in str(shop.projects(MONEY)["messages"])
    shop.write(
        CORE, right.replace("<RootNamespace>", "<LangVersion>99.0</LangVersion><RootNamespace>")
    )
    assert "99.0" in str(shop.projects(MONEY)["messages"])
    assert shop.codes(MONEY) == []
    shop.write(CORE, right)


def severities(shop: Talk, name: str) -> dict[str, int]:
    return {one["code"]: one["severity"] for one in shop.items(name)}


def test_names_that_a_missing_package_may_have_are_no_certain_errors(shop: Talk) -> None:
    """Only where a using leads nowhere; elsewhere what is not found is an error as ever."""
    right = shop.text(CORE)
    package = '<PackageReference Include="Some.Package" Version="1.0.0" />'
    doubtful, certain = "Shop.Core/Doubtful.cs", "Shop.Core/Certain.cs"
    shop.write(doubtful, "using Some.Package; class Doubtful : Thing { int n = true; }")
    shop.write(certain, "class Certain : Thing { }")
    assert severities(shop, doubtful) == {"CS0246": 1, "CS0029": 1}

    shop.write(CORE, right.replace("<InternalsVisibleTo", package + "<InternalsVisibleTo"))
    assert severities(shop, doubtful) == {"CS0246": 2, "CS0029": 1}
    assert severities(shop, certain) == {"CS0246": 1}
    whole = shop.ask("workspace/diagnostic", {"previousResultIds": []})["items"]
    for told in whole:
        assert told["items"] == shop.items(told["uri"].removeprefix(shop.uri("") + "/"))

    # A using for all files casts its doubt on all.
    shop.write("Shop.Core/All.cs", "global using Some.Package;")
    assert severities(shop, certain) == {"CS0246": 2}
    shop.remove("Shop.Core/All.cs")
    using = '<Using Include="Some.Package" />'
    shop.write(CORE, right.replace("<InternalsVisibleTo", package + using + "<InternalsVisibleTo"))
    assert severities(shop, certain) == {"CS0246": 2}

    shop.write(CORE, right)
    shop.remove(doubtful)
    shop.remove(certain)
