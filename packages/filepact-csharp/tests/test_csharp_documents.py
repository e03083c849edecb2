"""Open documents follow what a client says changed in them."""

from __future__ import annotations

from typing import Any

import pytest

from filepact.errors import InvalidParamsError
from filepact_csharp.diagnostics import CompilerDiagnostic, published
from filepact_csharp.files import OpenDocuments

PATH = "/r/a.cs"
URI = "file://" + PATH


def opened(text: str, unit: Any = "utf-16") -> OpenDocuments:
    documents = OpenDocuments(unit)
    documents.open({"textDocument": {"uri": URI, "text": text}})
    return documents


def change(start: tuple[int, int], end: tuple[int, int], text: str) -> dict[str, Any]:
    first, last = ({"line": line, "character": column} for line, column in (start, end))
    return {"range": {"start": first, "end": last}, "text": text}


def changed(documents: OpenDocuments, *changes: dict[str, Any]) -> str:
    documents.change({"textDocument": {"uri": URI}, "contentChanges": list(changes)})
    return documents.texts[PATH]


@pytest.mark.parametrize(
    ("text", "unit", "changes", "expected"),
    [
        ("ab", "utf-16", [{"text": "new"}], "new"),
        ("ab", "utf-16", [change((0, 1), (0, 1), "-")], "a-b"),
        ("a\nb\nc", "utf-16", [change((0, 1), (2, 0), " ")], "a c"),
        ("a\r\nb\rc\n", "utf-16", [change((1, 0), (1, 1), "B"), change((2, 0), (2, 1), "C")], "a\r\nB\rC\n"),
        ("a😀b", "utf-16", [change((0, 3), (0, 4), "!")], "a😀!"),
        ("a😀b", "utf-8", [change((0, 5), (0, 6), "!")], "a😀!"),
        ("äb", "utf-8", [change((0, 2), (0, 2), "-")], "ä-b"),
        ("ab", "utf-16", [change((0, 9), (0, 99), "!")], "ab!"),
        ("a\u2028b\fc", "utf-16", [change((0, 2), (0, 3), "B")], "a\u2028B\fc"),
        ("", "utf-16", [change((0, 0), (0, 0), "x"), change((0, 1), (0, 1), "y")], "xy"),
    ],
)  # fmt: skip
def test_changes_are_followed(
    text: str, unit: Any, changes: list[dict[str, Any]], expected: str
) -> None:
    assert changed(opened(text, unit), *changes) == expected


@pytest.mark.parametrize(
    "bad",
    [
        change((9, 0), (9, 0), "x"),
        change((0, 2), (0, 1), "x"),
        change((0, 2), (0, 2), "x") | {"text": 5},
        {"range": {"start": {"line": 0}}, "text": "x"},
        {"range": 5, "text": "x"},
        {"text": None},
        {},
    ],
)
def test_a_change_that_cannot_be_followed_makes_the_text_unknown_until_it_comes_whole(
    bad: dict[str, Any],
) -> None:
    documents = opened("a😀b")
    with pytest.raises((InvalidParamsError, KeyError, TypeError, ValueError, AttributeError)):
        changed(documents, bad)
    assert documents.lost(PATH)
    changed(documents, change((0, 0), (0, 0), "-"))
    assert documents.lost(PATH)
    assert documents.first_lost == PATH
    assert changed(documents, {"text": "whole"}) == "whole"
    assert not documents.lost(PATH)
    assert documents.first_lost is None


def test_documents_that_are_closed_or_no_files_are_not_held() -> None:
    documents = opened("text")
    assert documents.close({"textDocument": {"uri": URI}}) == PATH
    assert not documents.texts
    with pytest.raises(InvalidParamsError):
        changed(documents, {"text": "x"})
    for uri in ("untitled:a", "https://a/b.cs", 5, None):
        with pytest.raises(InvalidParamsError):
            documents.open({"textDocument": {"uri": uri, "text": ""}})
    assert not documents.texts


@pytest.mark.parametrize(
    ("text", "offsets", "unit", "expected"),
    [
        ("ab\ncd", (3, 5), "utf-16", [(1, 0), (1, 2)]),
        ("a😀b\n😀c", (3, 7), "utf-16", [(0, 3), (1, 2)]),
        ("a😀b\n😀c", (3, 7), "utf-8", [(0, 5), (1, 4)]),
        ("ä\u2028b", (2, 3), "utf-16", [(0, 2), (0, 3)]),
        ("ä\u2028b", (2, 3), "utf-8", [(0, 5), (0, 6)]),
        ("ab", (90, 99), "utf-16", [(0, 2), (0, 2)]),
        ("", (0, 0), "utf-16", [(0, 0), (0, 0)]),
    ],
)
def test_places_are_told_in_the_units_that_were_agreed_on(
    text: str, offsets: tuple[int, int], unit: Any, expected: list[tuple[int, int]]
) -> None:
    (told,) = published(text, [CompilerDiagnostic(*offsets, 1, "CS1", "m")] * 2, unit)
    places = [told["range"][one] for one in ("start", "end")]
    assert [(one["line"], one["character"]) for one in places] == expected
