"""A file in the form that Roslyn's formatter gives it: as text edits, and through the one door."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from project_tree import sdk
from talk import AnswerError, Talk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_WIDE = "\N{MATHEMATICAL FRAKTUR SMALL A}"  # two units of UTF-16
ROUGH = f'class A\n{{\n  int  x=1 ;  // {_WIDE} here\n\n\n  string M( ){{return  "a  b";}}\n}}\n'


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    root = tmp_path_factory.mktemp("root").resolve()
    (root / "a.csproj").write_text(sdk("<ItemGroup><Compile Remove='out/**' /></ItemGroup>"))
    for folder, text in {
        "": "root = true\n[*.cs]\ncsharp_new_line_before_open_brace = all\n",
        "deep/": "[*.cs]\nindent_style = space\nindent_size = 3\nend_of_line = crlf\n",
    }.items():
        (root / folder).mkdir(exist_ok=True)
        (root / folder / ".editorconfig").write_text(text)
    found = Talk(root)
    yield found
    found.kill()


def formatted(talk: Talk, name: str, text: str, tab: int = 4, *, spaces: bool = True) -> str:
    """What a file is after the edits that the server tells."""
    talk.open(name, text)
    asked = {
        "textDocument": {"uri": talk.uri(name)},
        "options": {"tabSize": tab, "insertSpaces": spaces},
    }
    edits = talk.ask("textDocument/formatting", asked)
    talk.close(name)
    lines = [one.encode("utf-16-le") for one in text.splitlines(keepends=True)] + [b""]

    def offset(place: dict[str, int]) -> int:
        return sum(map(len, lines[: place["line"]])) + 2 * place["character"]

    data = b"".join(lines)
    for one in reversed(edits):
        start, end = offset(one["range"]["start"]), offset(one["range"]["end"])
        data = data[:start] + one["newText"].encode("utf-16-le") + data[end:]
    return data.decode("utf-16-le")


def test_a_file_is_formatted_and_what_it_means_and_says_stays(talk: Talk) -> None:
    assert talk.welcome["capabilities"]["documentFormattingProvider"]
    found = formatted(talk, "a.cs", ROUGH)
    assert found == (
        f'class A\n{{\n    int x = 1;  // {_WIDE} here\n\n\n    string M() {{ return "a  b"; }}\n}}\n'
    )
    assert formatted(talk, "a.cs", found) == found


def test_the_settings_above_a_file_count_before_what_a_client_says(talk: Talk) -> None:
    text = "class A { void M() {\nint x = 1; } }\n"
    assert formatted(talk, "a.cs", text, 2).splitlines()[2:4] == ["  void M()", "  {"]
    assert formatted(talk, "b.cs", text, spaces=False).splitlines()[3] == "\t{"
    deep = formatted(talk, "deep/a.cs", text, 2)
    assert deep.split("\r\n")[2:4] == ["   void M()", "   {"]


def test_lines_end_as_those_of_the_file_do(talk: Talk) -> None:
    found = formatted(talk, "a.cs", "class A { void M() {\r\nint x = 1; } }\r\n")
    assert found.count("\n") == found.count("\r\n") > 4


def test_a_file_of_no_project_and_one_with_errors_are_formatted_as_far_as_they_can_be(
    talk: Talk,
) -> None:
    assert formatted(talk, "out/a.cs", "class  A{}\n") == "class A { }\n"
    assert "Missing" in formatted(talk, "a.cs", "class A { void M( { Missing }\n")


def test_what_is_no_source_is_not_formatted(talk: Talk) -> None:
    with pytest.raises(AnswerError):
        formatted(talk, "a.csproj", sdk())


def test_a_secret_that_stands_where_settings_do_is_not_taken_for_them(
    talk: Talk, tmp_path: Path
) -> None:
    outside = tmp_path / "settings"
    outside.write_text("[*.cs]\nindent_size = 7\n")
    (talk.root / "linked").mkdir()
    (talk.root / "linked" / ".editorconfig").symlink_to(outside)
    text = "class A { void M() {\nint x = 1; } }\n"
    assert "\n    void M()" in formatted(talk, "linked/a.cs", text)
