"""The server that knows the form of C# alone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact_csharp.syntax import SyntaxReader
from filepact_diagnostics.lsp.builtin import builtin_servers
from filepact_diagnostics.lsp.documents import DiskChange
from filepact_diagnostics.lsp.pool import ServerPool
from tests.servers.asking import delta_of, preview_of, report_of, update_of
from tests.servers.real_servers import locate, server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 60.0

RIGHT = """using System;

namespace Shop;

public record Item(string Name, decimal Price)
{
    public required int Count { get; init; }
    public string Show() => $"{Name,-10} {Price:0.00} {(Count is > 0 and < 10 ? "few" : "many")}";
}
"""
# Right for a compiler, and more than the grammar can take: the directives cut an expression in two.
CUT = """class A
{
    int M() => F(1
#if NET8_0
        , 2
#else
        + 3
#endif
        );
    int F(params int[] all) => 0;
}
"""


@pytest.fixture(scope="module")
def grammar() -> SyntaxReader:
    pytest.importorskip("tree_sitter_c_sharp")
    return SyntaxReader()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (RIGHT, []),
        ("", []),
        ("class A { void M() { int x = 1 } }", [("missing", 30, 30)]),
        ("class A { public void { } \n int x = ; }", [("syntax", 34, 35)]),
        ("@@@", [("syntax", 0, 3)]),
        # Places are counted in units of UTF-16.
        ('class A { string s = "\U0001f600" int x; }', [("syntax", 26, 31)]),
    ],
)
def test_damaged_places_are_found(
    text: str, found: list[tuple[str, int, int]], grammar: SyntaxReader
) -> None:
    assert [(one.code, one.start, one.end) for one in grammar.check(text)] == found


def test_a_damaged_place_ends_with_its_first_line(grammar: SyntaxReader) -> None:
    text = "class A {\n" + "    void M() { }\n" * 50
    (one,) = grammar.check(text)
    assert text[one.start : one.end] == "class A {"


def test_right_texts_with_directives_may_look_damaged_so_lists_mean_nothing(
    grammar: SyntaxReader,
) -> None:
    assert grammar.check(CUT)
    (server,) = [one for one in builtin_servers() if one.name == "csharp-syntax"]
    assert server.only_new


def test_very_damaged_texts_have_an_end(grammar: SyntaxReader) -> None:
    assert len(grammar.check("class { ) int = ;\n" * 3_000)) <= 500
    grammar.check("(" * 20_000)
    grammar.check("class A { " * 5_000)


PIECES = st.sampled_from(
    ["class A ", "{", "}", "(", ")", ";", "int x", " = ", '"', "'", "/*", "//", "\n", "#if X\n", "#endif\n", "\U0001f600", "\x00", "\ud800", '$"{', "=>"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_text_has_places_within_it(text: str) -> None:
    pytest.importorskip("tree_sitter_c_sharp")
    length = len(text.encode("utf-16-le", "surrogatepass")) // 2
    for one in SyntaxReader().check(text):
        assert 0 <= one.start <= one.end <= length


# -- as a process -----------------------------------------------------------------------------------


@pytest.fixture
def pool() -> Iterator[ServerPool]:
    pytest.importorskip("tree_sitter_c_sharp")
    opened = ServerPool([server("csharp-syntax")], {"PYTHONPATH": ":".join(sys.path)}, locate)
    yield opened
    opened.close()


def test_an_edit_that_damages_a_file_is_told_and_one_that_mends_it_too(
    pool: ServerPool, tmp_path: Path
) -> None:
    path = tmp_path / "Item.cs"
    path.write_text(RIGHT)
    root, broken = str(tmp_path), RIGHT.replace("init; }", "init; ")
    (report,) = report_of(pool, root, {str(path): RIGHT}, SECONDS)
    assert (report.confirmed_by, report.diagnostics) == ("pull", ())
    path.write_text(broken)
    (update,) = update_of(
        pool, root, [DiskChange(str(path), "changed", broken)], {str(path): broken}, SECONDS
    )
    assert update.fresh
    assert update.reports[0].diagnostics
    path.write_text(RIGHT)
    (update,) = update_of(
        pool, root, [DiskChange(str(path), "changed", RIGHT)], {str(path): RIGHT}, SECONDS
    )
    assert update.fresh
    assert not update.reports[0].diagnostics


def test_a_proposed_text_is_looked_at_and_forgotten(pool: ServerPool, tmp_path: Path) -> None:
    path = tmp_path / "Cut.cs"
    path.write_text(CUT)
    proposed = CUT.replace("=> 0;", "=> 0")
    files = {str(path): CUT}
    (preview,) = preview_of(pool, str(tmp_path), {str(path): proposed}, files, SECONDS)
    assert delta_of(preview) is not None
    assert [one.code for one in delta_of(preview).new] == ["missing"]
    # What the grammar made nothing of before is no news.
    assert len(preview.before[0].diagnostics) == len(preview.reports[0].diagnostics) - 1
