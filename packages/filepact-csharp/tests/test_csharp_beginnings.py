"""How the server for C# begins and ends, and what it reads where there is no solution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact_csharp.server import WATCHED
from filepact_wire.uris import uri_of
from talk import AnswerError, Talk, copy_shop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PROJECT = (
    '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><TargetFramework>net8.0</TargetFramework>'
    "</PropertyGroup></Project>"
)


@pytest.fixture
def begin() -> Iterator[Callable[..., Talk]]:
    begun: list[Talk] = []

    def make(*args: object, **more: object) -> Talk:
        begun.append(Talk(*args, **more))  # type: ignore[arg-type]
        return begun[-1]

    yield make
    for one in begun:
        one.kill()


def test_sources_without_a_project_are_taken_for_one(
    tmp_path: Path, begin: Callable[..., Talk]
) -> None:
    root = tmp_path.resolve()
    (root / "A.cs").write_text('class A { string s = "é😀" + B.N; int n = "é😀"; }')
    (root / "B.cs").write_bytes(
        "class B { public const int N = 1; // \xe9t\xe9\n}".encode("latin-1")
    )
    (root / "notes.txt").write_text("this is no code")
    talk = begin(root, encodings=("utf-16", "utf-8"))
    assert talk.welcome["capabilities"]["positionEncoding"] == "utf-8"
    assert talk.welcome["serverInfo"]["name"] == "filepact-csharp"
    (one,) = talk.items("A.cs")
    assert one["code"] == "CS0029"
    # Counted in bytes: two for the letter, four for the face.
    assert one["range"]["start"]["character"] == talk.text("A.cs").index('"é😀";') + 4
    assert one["range"]["end"]["character"] == one["range"]["start"]["character"] + 8
    found = talk.projects("A.cs")
    assert found["projects"] == [root.name]
    assert found["approximate"]
    assert found["messages"]

    # A project that comes takes its sources over.
    talk.write("p/p.csproj", PROJECT)
    talk.write("p/C.cs", "class C { A a; int n = true; }")
    assert talk.projects("A.cs")["projects"] == []
    assert talk.items("A.cs") == []
    assert sorted(talk.codes("p/C.cs")) == ["CS0029", "CS0246"]
    assert talk.projects("p/C.cs") == {"projects": ["p"], "approximate": False, "messages": []}

    (registered,) = (one for one in talk.heard if one["method"] == "client/registerCapability")
    (told,) = registered["params"]["registrations"]
    assert [one["globPattern"] for one in told["registerOptions"]["watchers"]] == list(WATCHED)
    assert talk.leave() == 0


def test_one_project_is_read_with_what_it_refers_to_until_another_is_opened(
    tmp_path: Path, begin: Callable[..., Talk]
) -> None:
    root = copy_shop(tmp_path / "shop")
    talk = begin(root, str(root / "Shop.App" / "Shop.App.csproj"))
    assert talk.projects("Shop.Core/Money.cs")["projects"] == ["Shop.Core"]
    assert talk.projects("Shop.Tests/Check.cs")["projects"] == []
    talk.tell("solution/open", {"solution": uri_of(str(root / "Shop.sln"))})
    assert talk.projects("Shop.Tests/Check.cs")["projects"] == ["Shop.Tests"]
    talk.tell("project/open", {"projects": [talk.uri("Shop.Core/Shop.Core.csproj")]})
    assert talk.projects("Shop.App/Session.cs")["projects"] == []
    # Whoever is gone is not waited for.
    assert talk.process.stdin is not None
    talk.begin("workspace/diagnostic", {})
    talk.process.stdin.close()
    assert talk.process.wait() == 1


def test_a_compiler_that_is_not_there_is_said_when_the_conversation_begins(
    tmp_path: Path, begin: Callable[..., Talk]
) -> None:
    with pytest.raises(AnswerError) as caught:
        begin(tmp_path, roslyn=str(tmp_path))
    assert caught.value.code == -32803
    (tmp_path / "Microsoft.CodeAnalysis.dll").write_text("no library")
    (tmp_path / "Microsoft.CodeAnalysis.CSharp.dll").write_text("no library")
    with pytest.raises(AnswerError) as caught:
        begin(tmp_path, roslyn=str(tmp_path))
    assert caught.value.code == -32803
