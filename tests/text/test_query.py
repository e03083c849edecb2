"""Queries: what matches, where, and what hostile patterns and texts do."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filepact.errors import SearchFailedError, TimedOutError
from filepact.text.query import MAX_PATTERN, Query, searchable


def lines(pattern: str, data: bytes, **options) -> list[int]:
    return [hit.line for hit in Query.compile(pattern, **options).find(data)]


@pytest.mark.parametrize(
    ("pattern", "data", "expected"),
    [
        ("foo", b"foo\nbar\nFOO foo\n", [1, 3]),
        ("^bar$", b"foo\nbar\n", [2]),
        ("bar$", b"foo bar\r\nbar\r\n", [1, 2]),
        ("^$", b"a\n\nb\n", [2]),
        ("^$", b"a\r\n\r\nb", [2]),
        ("$", b"a", [1]),
        ("$", b"a\n", [1]),
        ("^", b"", []),
        ("x*", b"a\nb", [1, 2]),
        (r"a\s+b", b"a\nb\na b\n", [3]),
        ("[^x]+", b"ab\ncd\n", [1, 2]),
        (r"\bword\b", b"sword\nword\nwords", [2]),
        ("é", "É\n".encode(), [1]),
        ("a.c", "aéc\n".encode(), [1]),
        ("a", b"\xff a \xff\n", [1]),
        (r"\r$", b"a\r\nb\n", [1]),
        (r"a\\n", b"a\\n\n", [1]),
        (r"[^\n]b", b"ab", [1]),
        ("interface{}", b"interface{}\n", [1]),
        ("(?i)a|b", b"B\n", [1]),
        ("last", b"first\nlast", [2]),
    ],
)
def test_lines_that_match_are_found(pattern, data, expected):
    assert lines(pattern, data) == expected


def test_case_is_told_apart_when_asked_for():
    assert lines("foo", b"Foo\nfoo\n", case_sensitive=True) == [2]


@pytest.mark.parametrize("text", ["a.b", "a(b", "[", "\\", r"a\n", r"a\r"])
def test_a_literal_query_takes_every_character_as_it_is(text):
    assert lines(text, f"axb\n{text}\n".encode(), literal=True) == [2]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a.*c", [(1, 2)]),
        (r"b\nc", [(1, 2)]),
        ("[abc]", [(1, 1), (1, 1), (2, 2)]),
        (r"b\s", [(1, 1)]),
        ("^", [(1, 1), (2, 2)]),
        ("(?<=b\n)c", [(2, 2)]),
        ("(?!x)a.*c", [(1, 2)]),
        ("(?!z)$", [(1, 1), (2, 2)]),
    ],
)
def test_a_multiline_match_may_span_lines(pattern, expected):
    hits = Query.compile(pattern, multiline=True).find(b"ab\r\nc\r\n")
    assert [(hit.line, hit.last_line) for hit in hits] == expected


@pytest.mark.parametrize(
    ("pattern", "data", "expected"),
    [
        (r"foo(?!bar)", b"foobar\nfoobaz\n", [2]),
        (r"(\w)\1", b"abc\nabba\n", [2]),
        (r"(?<=\$)\d+", "é $5\nß 6\n€ $7\n".encode(), [1, 3]),
        (r"(?=a)a\s+b", b"a\nb\na b\n", [3]),
        (r"(?=a)a\s*", b"a\n\n\na\n", [1, 4]),
        (r"(?!x)$", b"a\n", [1]),
        (r"(?!x)\w", "é\nx\ny".encode(), [3]),
        (r"(?<!x)y", b"\xff y", [1]),
    ],
)
def test_lookaround_and_backreferences_work_too(pattern, data, expected):
    assert lines(pattern, data) == expected


def test_offsets_count_bytes_with_either_engine():
    data = "ééé needle\n".encode()
    for pattern in ("needle", "(?=n)needle"):
        (hit,) = Query.compile(pattern).find(data)
        assert data[hit.start : hit.end] == b"needle"
        assert (hit.line_start, hit.line_end) == (0, len(data) - 1)


@pytest.mark.parametrize(
    ("pattern", "position"),
    [("a(b", 2), ("[a", 2), ("a)b", 1), ("*a", 0), ("a**", None), ("a\\", None), (r"\q", None)],
)
def test_a_broken_pattern_is_refused_and_its_place_named(pattern, position):
    with pytest.raises(SearchFailedError) as caught:
        Query.compile(pattern)
    assert caught.value.code == "SEARCH_ERROR"
    assert "at character" in caught.value.message
    if position is not None:
        assert abs(caught.value.details["position"] - position) <= 1


@pytest.mark.parametrize(
    "pattern", ["", "a" * (MAX_PATTERN + 1), "a\nb", r"a\nb", "\ud800", r"(\pL{100}){10}{9}"]
)
def test_a_pattern_that_cannot_be_used_is_refused(pattern):
    with pytest.raises(SearchFailedError):
        Query.compile(pattern)


def test_a_pattern_with_too_many_states_is_refused():
    with pytest.raises(SearchFailedError, match="too large"):
        Query.compile(r"\pL{800}" * 10)
    with pytest.raises(SearchFailedError, match="too large"):
        Query.compile(r"\pL{80}")


def test_exponential_patterns_take_linear_time():
    data = b"a" * 1_000_000 + b"b\n"
    assert lines("(a+)+$", data) == []
    assert lines("(a|aa)*c", data) == []
    assert lines("(x+x+)+y", b"x" * 100_000) == []


def test_a_slow_pattern_of_the_other_engine_is_stopped():
    query = Query.compile(r"(?=a)(a|aa)+$")
    with pytest.raises(TimedOutError) as caught:
        list(query.hits(b"a" * 40 + b"b\n", seconds=0.05))
    assert caught.value.code == "TIMEOUT"


@pytest.mark.parametrize(
    ("pattern", "multiline"), [("a", False), ("a", True), ("(?=a)a", False), ("(?=a)a", True)]
)
def test_a_search_stops_when_told_so(pattern, multiline):
    query = Query.compile(pattern, multiline=multiline)
    with pytest.raises(TimedOutError):
        query.count(b"b\na\n", stop=lambda: True)


def test_as_many_are_counted_as_are_asked_for_and_no_more_is_looked_for() -> None:
    query = Query.compile("^x$")
    looked = 0

    class Counting:
        def search(self, *about: object) -> object:
            nonlocal looked
            looked += 1
            return query._re2.search(*about)

    counting = replace(query, _re2=Counting())
    assert counting.count(b"x\n" * 50_000, 7) == 7
    assert looked == 7
    assert counting.count(b"x\n" * 9) == 9


def test_a_large_multiline_search_with_a_large_pattern_is_refused():
    query = Query.compile("[ab]*a[ab]{900}c", multiline=True)
    with pytest.raises(TimedOutError):
        query.count(b"b" * 8_000_000)


def test_a_text_that_cannot_be_searched_in_pieces_is_as_large_as_a_call_can_wait_for():
    query = Query.compile("a[ab]{60}c", multiline=True)
    assert query.count(b"b" * (10 * query._step)) == 0
    with pytest.raises(TimedOutError):
        query.count(b"b" * (10 * query._step + 1))


def test_long_texts_are_searched_piece_by_piece_without_loss():
    pattern = "needle|x{900}"  # a large program makes small pieces
    row = b"y" * 99 + b"\n"
    data = (row * 3_000 + b"needle\n") * 3 + b"needle"
    assert lines(pattern, data) == [3_001, 6_002, 9_003, 9_004]
    assert lines("^$|x{900}", b"a\n" * 200_000 + b"\n") == [200_001]
    one_line = b"z" * 300_000 + b"needle"
    assert lines(pattern, one_line) == [1]


def test_a_line_of_a_megabyte_is_searched():
    data = b"a" * 1_000_000 + b"needle" + b"a" * 1_000_000
    (hit,) = Query.compile("needle").find(data)
    assert hit.start == 1_000_000
    assert hit.line_end == len(data)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"plain", b"plain"),
        ("ü".encode(), "ü".encode()),
        (b"\xef\xbb\xbfx\xc3\xa9", b"x\xc3\xa9"),
        ("x\u00e9\n".encode("utf-16"), "xé\n".encode()),
        ("\ufeffx\u00e9\n".encode("utf-16-be"), "xé\n".encode()),
        (b"\x7fELF\x00\x01\x02\x00\xff\xfe", None),
    ],
)
def test_text_in_any_encoding_becomes_searchable(data, expected):
    assert searchable(data, name="x") == expected


def test_a_latin_1_file_is_searchable():
    text = searchable("Grüße aus Köln, größer\n".encode("latin-1"), name="x.txt")
    assert text is not None
    assert lines("gr", text) == [1]


TEXT = st.lists(st.sampled_from(["a", "b", "ab", " ", "\n", "\r\n", "é", "\r"]), max_size=30)


@settings(max_examples=3 * settings().max_examples)
@given(
    TEXT.map("".join),
    st.sampled_from(["a", "b$", "^a", "a b", "^$", "a*", "[^a]", "é", r"\s", "ab|b"]),
)
def test_both_engines_and_a_line_by_line_search_agree(text, pattern):
    data = text.encode()
    rows = text.replace("\r\n", "\n").split("\n")
    if rows and not rows[-1]:
        rows.pop()
    expected = [n for n, row in enumerate(rows, start=1) if re.search(pattern, row, re.ASCII)]
    assert lines(pattern, data) == expected
    assert lines(f"(?!q)(?:{pattern})", data) == expected
    assert Query.compile(pattern).count(Query.compile(pattern).prepare(data)) == len(expected)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    "pattern",
    [
        "foo",
        "fo{2}",
        r"\bfoo\b",
        "^a|b$",
        r"\d",
        "f.*o$",
        r"\Afoo",
        "k",
        "(?s)a.b",
        "foo|bar",
        "^$",
    ],
)
def test_texts_that_are_searched_as_one_match_where_each_does(pattern, exact):
    query = Query.compile(pattern, case_sensitive=exact)
    texts = [b"foo\nbar\r\n", b"", b"Foo", "\u212a\nb".encode(), b"a\nb\n", b"x" * 50, b"9", b"f o"]
    texts.append(b"a foo\r\n" * 3)
    among = query.among(texts)
    assert among == sorted(among)
    sure = [at for at, text in enumerate(texts) if query.find(text)]
    assert set(sure) <= set(among) <= {*sure, 1, *(() if pattern != "^$" else range(9))}
    if query.by_lines:
        lines = [line for text in texts for line in query.prepare(text).split(b"\n") if line]
        first = {at: query.find(line) for at, line in enumerate(lines)}
        assert query.matching(lines) == {
            at: (found[0].start, found[0].end) for at, found in first.items() if found
        }


def test_a_line_on_which_a_pattern_would_take_long_may_match():
    query = Query.compile("needed[ab]{900}c")
    lines = [b"needed", b"x" * (query._step + 1), b"needed" + b"a" * 900 + b"c"]
    assert query.matching(lines) == {1: (-1, -1), 2: (0, 907)}
    assert query.among(lines) == [1, 2]


def test_plain_text_is_found_once_in_each_line_and_the_clock_is_looked_at():
    query = Query.compile("a.b", literal=True, case_sensitive=True)
    text = b"a.b a.b\nA.B\na.b"
    assert [(one.line, one.start) for one in query.find(text)] == [(1, 0), (3, 12)]
    any_case = Query.compile("a-B")
    assert [one.line for one in any_case.find(b"A-B a-b\n\na-b\n")] == [1, 3]
    assert any_case.find("A-b \u212a".encode())[0].start == 0
    asked = iter([False, True])
    with pytest.raises(TimedOutError):
        list(query.hits(b"a.b\n" * 3_000, stop=lambda: next(asked)))
    with pytest.raises(TimedOutError):
        list(query.hits(text, stop=lambda: True))


def test_many_texts_are_searched_in_two_threads_and_found_in_their_order():
    query = Query.compile(r"\d\d:\d\d")
    texts = [b"x" * 300_000 + (b"\n12:34" if number % 3 else b"") for number in range(20)]
    assert query.among(texts) == [number for number in range(20) if number % 3]
