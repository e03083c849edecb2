from __future__ import annotations

import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.errors import (
    AmbiguousMatchError,
    InvalidParamsError,
    NoChangeError,
    StringNotFoundError,
)
from filepact.text.lines import line_of
from filepact.text.locate import MOST_PLACES, MatchResult, place

CRLF = "one\r\ntwo\r\nthree\r\nfour\r\n"
MIXED = "one\r\ntwo\nthree\r\nfour\nfive"


def placed(text: str, old: str, new: str, *, replace_all: bool = False) -> tuple[str, MatchResult]:
    placement = place(text, old, new, replace_all=replace_all)
    return placement.edits.apply(text), placement


def miss(text: str, old: str) -> StringNotFoundError:
    with pytest.raises(StringNotFoundError) as caught:
        place(text, old, "new", name="a.py")
    assert caught.value.message.startswith("a.py: ")
    assert caught.value.hint
    return caught.value


def test_more_places_than_are_replaced_at_once_are_refused() -> None:
    text = "x\n" * (MOST_PLACES + 1)
    with pytest.raises(InvalidParamsError):
        place(text, "x", "y", replace_all=True)
    assert len(place(text, "x\nx\n", "y\n", replace_all=True).edits.edits) == MOST_PLACES // 2


def test_a_text_of_very_many_lines_is_not_looked_through_for_similar_ones() -> None:
    few, many = "a line of text\n" * 100, "a line of text\n" * 200_001
    assert miss(few, "a line of tekst\n").details["nearest"] == 1
    assert miss(many, "a line of tekst\n").details["nearest"] is None
    assert miss(few, "a line of tekst\n" * 20_001).details["nearest"] is None
    assert miss(few, "none of\nthese lines\n" * 20_001).details["nearest"] is None


# -- placing -------------------------------------------------------------------------------


def begins(text: str, placement: MatchResult) -> tuple[int, ...]:
    """The lines in which the places begin."""
    return tuple(line_of(text, start) for start, _ in placement.spans)


@pytest.mark.parametrize(
    ("text", "old", "new", "after", "step", "line"),
    [
        ("a b c", "b", "x", "a x c", "exact", 1),
        ("a\nb\nc\n", "b\n", "", "a\nc\n", "exact", 2),
        ("a\nb\nc\n", "a\nb", "x\ny\nz", "x\ny\nz\nc\n", "exact", 1),
        ("a\nb", "b", "b\n", "a\nb\n", "exact", 2),
        ("aé😀b", "😀", "$&\\1\\g<0>&", "aé$&\\1\\g<0>&b", "exact", 1),
        ("a.c abc", "a.c", "x", "x abc", "exact", 1),
        # A file in CRLF, an author in LF.
        (CRLF, "two", "2", "one\r\n2\r\nthree\r\nfour\r\n", "exact", 2),
        (CRLF, "two", "2\n2b", "one\r\n2\r\n2b\r\nthree\r\nfour\r\n", "exact", 2),
        (CRLF, "two\nthree", "2\n3", "one\r\n2\r\n3\r\nfour\r\n", "line ends", 2),
        (CRLF, "two\n", "", "one\r\nthree\r\nfour\r\n", "line ends", 2),
        (CRLF, "\ntwo", "\n2", "one\r\n2\r\nthree\r\nfour\r\n", "line ends", 1),
        (CRLF, "\nfour\n", "\n", "one\r\ntwo\r\nthree\r\n", "line ends", 3),
        # An author who sees the CRs, and one who wants one end to be different.
        (CRLF, "two\r\nthree", "2\r\n3", "one\r\n2\r\n3\r\nfour\r\n", "exact", 2),
        (CRLF, "two\r\nthree", "2\n3", "one\r\n2\r\n3\r\nfour\r\n", "exact", 2),
        (CRLF, "two", "2\r\n2b\nc", "one\r\n2\r\n2b\r\nc\r\nthree\r\nfour\r\n", "exact", 2),
        # An author in CRLF, a file in LF.
        ("a\nb\nc\n", "a\r\nb", "x\r\ny", "x\ny\nc\n", "line ends", 1),
        ("a\nb\nc\n", "a", "x\r\ny", "x\ny\nb\nc\n", "exact", 1),
        ("a\r\n5%\r9%\r\nb\r\n", "5%\r9%\nb\n", "6%\r9%\nB\n", "a\r\n6%\r9%\r\nB\r\n", "line ends", 2),
        (MIXED, "two\n", "2\r\n2b\r\n", "one\r\n2\r\n2b\r\nthree\r\nfour\nfive", "line ends", 2),
        ("a\rb\nc\n", "c", "c\rd\ne", "a\rb\nc\rd\ne\n", "exact", 2),
        # Classic Mac.
        ("a\rb\rc\r", "a\nb", "x\ny\nz", "x\ry\rz\rc\r", "line ends", 1),
        ("a\rb\rc\r", "b", "x\ny", "a\rx\ry\rc\r", "exact", 2),
        ("a\rb\rc\r", "a\rb\nc", "x", "x\r", "line ends", 1),
        ("a\rb\rc\r", "b\r", "x\r", "a\rx\rc\r", "exact", 2),
        # Mixed: each line keeps its own end, new lines take that of their place.
        (MIXED, "one\ntwo\nthree", "1\ntwo\n3", "1\r\ntwo\n3\r\nfour\nfive", "line ends", 1),
        (MIXED, "two\nthree\n", "two\nnew\nthree\n", "one\r\ntwo\nnew\nthree\r\nfour\nfive",
         "line ends", 2),
        (MIXED, "one", "one\n1", "one\r\n1\r\ntwo\nthree\r\nfour\nfive", "exact", 1),
        (MIXED, "two", "two\n2", "one\r\ntwo\n2\nthree\r\nfour\nfive", "exact", 2),
        (MIXED, "five", "five\n5\n", "one\r\ntwo\nthree\r\nfour\nfive\n5\n", "exact", 5),
        (MIXED, "three\nfour", "3\n4\n5", "one\r\ntwo\n3\r\n4\r\n5\nfive", "line ends", 3),
        ("a\r\nb\nlast\rline", "last\rline", "x\ny", "a\r\nb\nx\ny", "exact", 3),
        ("x\na\r\n b", "b", "c\nd", "x\na\r\n c\r\nd", "exact", 3),
    ],
)  # fmt: skip
def test_a_text_is_replaced_where_it_stands(
    text: str, old: str, new: str, after: str, step: str, line: int
) -> None:
    result, placement = placed(text, old, new)
    assert result == after
    assert placement.steps == (step,)
    assert begins(text, placement) == (line,)


@pytest.mark.parametrize(
    ("text", "old", "new", "after", "lines"),
    [
        ("a b a", "a", "aa", "aa b aa", (1, 1)),
        ("aaaaa", "aa", "b", "bba", (1, 1)),
        ("x\na\nx\n", "x\n", "y\n", "y\na\ny\n", (1, 3)),
        ("x\r\na\nx\n", "x\n", "y\nz\n", "y\r\nz\r\na\ny\nz\n", (1, 3)),
        ("one", "one", "1", "1", (1,)),
        # The break after a place is the beginning of the next one.
        ("x\n\na\na\nb\n", "\na", "", "x\n\nb\n", (2, 3)),
        ("x\r\n\r\na\r\na\r\nb", "\na", "", "x\r\n\r\nb", (2, 3)),
    ],
)
def test_every_place_is_replaced_when_all_are_wanted(
    text: str, old: str, new: str, after: str, lines: tuple[int, ...]
) -> None:
    result, placement = placed(text, old, new, replace_all=True)
    assert result == after
    assert begins(text, placement) == lines


@pytest.mark.parametrize(
    ("text", "old", "count", "lines"),
    [
        ("x\na\nx\n", "x", 2, (1, 3)),
        ("aaa", "aa", 2, (1,)),
        ("x\r\na\r\nx\r\n", "x\n", 2, (1, 3)),
        # An author in LF cannot tell these two apart.
        ("x\na\r\nx\r\n", "x\n", 2, (1, 3)),
        ("x\ra\rx\r", "x\n", 2, (1, 3)),
    ],
)
def test_several_places_are_refused_with_their_lines(
    text: str, old: str, count: int, lines: tuple[int, ...]
) -> None:
    with pytest.raises(AmbiguousMatchError) as caught:
        place(text, old, "new", name="a.py")
    assert caught.value.details["lines"] == lines
    assert caught.value.details["count"] == count
    assert f"{count} places" in caught.value.message
    assert "replace_all" in caught.value.hint


def test_of_very_many_places_some_are_listed() -> None:
    with pytest.raises(AmbiguousMatchError) as caught:
        place("x\n" * 1_500, "x", "y")
    assert "1,500 places" in caught.value.message
    assert ", 20 and 1,480 more" in caught.value.message


def test_nothing_cannot_be_replaced() -> None:
    with pytest.raises(InvalidParamsError):
        place("abc", "", "x")


@pytest.mark.parametrize(
    ("text", "old", "new"), [("abc", "b", "b"), ("zzz", "b", "b"), ("a\r\nb\r\n", "a\r\nb", "a\nb")]
)
def test_a_replacement_by_the_same_is_refused(text: str, old: str, new: str) -> None:
    with pytest.raises(NoChangeError):
        place(text, old, new)


WORDS = st.lists(st.sampled_from(["a", "b", "ab", "\n", "\r\n", " "]), max_size=12).map("".join)


@given(WORDS, WORDS.filter(bool), st.sampled_from(["", "x", "x\ny", "x\r\ny"]))
def test_what_is_placed_stood_there_but_for_line_ends(text: str, old: str, new: str) -> None:
    def plain(text: str) -> str:
        return text.replace("\r\n", "\n").replace("\r", "\n")

    placement = None
    with suppress(AmbiguousMatchError, StringNotFoundError):
        placement = place(text, old, new)
    if placement is None:
        if "\r" not in old:
            hay, needle = plain(text), plain(old)
            assert sum(hay.startswith(needle, i) for i in range(len(hay))) != 1
        return
    (edit,) = placement.edits.edits
    assert plain(text[edit.start : edit.end]) == plain(old)
    assert plain(edit.text) == plain(new)
    if "\r" not in text:
        assert placement.edits.apply(text).replace("\r\n", "\n") == text.replace(
            old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
        )


# -- explaining a miss ------------------------------------------------------------------------

SOURCE = (
    "import os\n"
    "\n"
    "\n"
    "def first(a, b):\n"
    '    """It\u2019s first."""\n'
    "\tx = compute(a,  b)\n"
    "    return\u00a0x\n"
    "\n"
    "class Second(Base):\n"
    "    trailing = 1   \n"
    "    caf\u00e9 = {'key': \"value\"}\n"
    "    dash = 'a \u2013 b'\n"
    "    end = True"
)


@pytest.mark.parametrize(
    ("old", "line", "said"),
    [
        ("compute(b,  b)", 6, "the text from column 14"),
        ("    x = compute(a,  b)\n", 6, "indented with tabs"),
        ("\tclass Second(Base):\n", 9, "indented with blanks"),
        ('def first(a, b):\n\t"""It\u2019s first."""\n', 5, "indented with blanks"),
        ("        trailing = 1\n", 10, "indented by 4 blanks, not by 8"),
        ("x = compute(a, b)", 6, "number of blanks"),
        ("x = compute(a,b)", 6, "blanks between"),
        ("x = compute(a,\tb)", 6, "blanks within the line where tabs"),
        ("    trailing = 1\n    caf\u00e9", 10, "the file has blanks at the end"),
        ("class Second(Base):  \n", 9, "blanks at the end of the line were sent"),
        ("It's first", 5, "U+2019 RIGHT SINGLE QUOTATION MARK"),
        ("turn x", 7, "U+00A0 NO-BREAK SPACE"),
        ("'a - b'", 12, "U+2013 EN DASH"),
        ("cafe\u0301 =", 11, "composed differently"),
        ("class second(base)", 9, "letter case"),
        ("end = tru\u200be", 13, "letter case"),
        ("end = \u200bTrue", 13, "U+200B ZERO WIDTH SPACE was sent"),
        ("end = True\u200b", 13, "invisible"),
        ("9\tclass Second(Base):\n11\t    trailing = 1   \n", 9, "line numbers"),
        ("9: class Second(Base):\n10:     trailing = 1   ", 9, "line numbers"),
        ("  9\u2192class second(Base):\n", 9, "line numbers"),
        ("import os\\n\\n\\ndef first", 1, "escapes"),
        ("{\\'key\\': \\\"value\\\"}", 11, "escapes"),
        ("import\r os", 1, "carriage returns"),
        ("end = True\n", 13, "line end where the file has none"),
        ("\n\n\n\ndef first(a, b):", 4, "blank lines at its start"),
        ("import os\n\ndef first(a, b):\n", 3, "the file has a blank line there"),
        ('import os\n\n\n\ndef first(a, b):\n    """It\u2019s first."""\n', 4, "a blank line"),
        ('def first(a, b):\n    """It\u2019s last."""\n', 5, "the text from column 13"),
        ("def frist(a, b):\n", 4, "the text from column 6"),
        ("    def frist(a, b):\n", 4, "indented by 0 blanks, not by 4"),
        ("more\nimport os\n\n\ndef first(a, b):", 1, "this line was sent"),
        ("    dash = 'a \u2013 b'\n    end = True\nmore", 14, "this line was sent"),
        ("    end = True\n    dash = 'a \u2013 b'\n", 11, "stands at line 13"),
    ],
)
def test_a_miss_shows_the_nearest_line_and_what_differs(old: str, line: int, said: str) -> None:
    error = miss(SOURCE, old)
    assert said in error.message
    assert error.details["nearest"] == line


FAR = "x\n" * 99


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("the same\none\n" + FAR + "the same\ntwo\n", 2),
        ("x\nthe same\none\n" + FAR + "the same\ntwo\n", 3),
    ],
)
def test_of_places_that_are_alike_the_first_in_the_file_is_shown(text: str, nearest: int) -> None:
    assert miss(text, "the same\nnot there\n").details["nearest"] == nearest


def test_blanks_are_made_visible_where_they_differ() -> None:
    message = miss(SOURCE, "    x = compute(a, b)\n").message
    assert "\n6\u2502\u2192x\u00b7=\u00b7compute(a,\u00b7\u00b7b)" in message
    assert "\nsent: \u00b7\u00b7\u00b7\u00b7x\u00b7=\u00b7compute(a,\u00b7b)" in message


def test_lines_around_the_difference_are_shown_with_their_numbers() -> None:
    text = "".join(f"line number {n}\n" for n in range(1, 100))
    old = "".join(f"line number {n}\n" for n in range(40, 50)).replace("44", "four")
    message = miss(text, old).message
    assert "lines 40-49, 9 of 10 equal. Line 44 differs" in message
    assert (
        "42\u2502line number 42\n43\u2502line number 43\n44\u2502line number 44\nsent: line"
        in message
    )
    assert "46\u2502line number 46" in message
    assert "47\u2502" not in message


@pytest.mark.parametrize(
    ("text", "old", "said"),
    [
        ("", "abc", "empty"),
        ("abc\n", "quite different", "No line"),
        ("abc\n", "???", "No line"),
        ("abc\n", "\n\n\n", "No line"),
        ("abc\n", "   ", "No line"),
    ],
)
def test_where_nothing_is_similar_that_is_said(text: str, old: str, said: str) -> None:
    error = miss(text, old)
    assert said in error.message
    assert error.details["nearest"] is None


@pytest.mark.parametrize(
    ("text", "old", "line", "said"),
    [
        ("a \r\n\tfirst line\r\nc\r\n", "    first line\n", 2, "indented with tabs"),
        # What is found is a part of the line, and ends within a character.
        ("one\nin der stra\u00dfe\n", "STRAS", 2, "the text from column 8 on"),
        ("a\r\tfirst line\rc\r", "a\n    first line\n", 2, "indented with tabs"),
        ("a\n  \nb", "a\n\t\nb", 2, "otherwise empty"),
        ("Straße  eins\n", "strasse eins", 1, "letter case"),
        ("x" * 300 + " = call(1)\n", "x" * 300 + " = call(2)\n", 1, "the text from column 309"),
        ("x=1;" * 2_000 + "  function needle(a, b)" + "y=2;" * 900, "function needle(a,  b)", 1,
         "the number of blanks"),
        ("x=1;" * 2_000 + "  function needle(a, b)" + "y=2;" * 900, "function noodle(a, b)", 1,
         "the text from column 8013"),
        ("q" * 5_000 + "1", "q" * 5_000 + "2\n", 1, "the text from column 5001"),
    ],
)  # fmt: skip
def test_other_line_ends_and_long_lines_are_explained_too(
    text: str, old: str, line: int, said: str
) -> None:
    error = miss(text, old)
    assert said in error.message
    assert error.details["nearest"] == line
    assert len(error.message) < 1_000


def test_a_miss_in_very_many_lines_shows_the_first_that_differs() -> None:
    lines = [f"line {n}" for n in range(5_000)]
    sent = [*lines[:4_000], "line four thousand", *lines[4_001:4_100]]
    error = miss("\n".join(lines), "\n".join(sent))
    assert error.details["nearest"] == 4_001
    assert "4099 of 4100 equal" in error.message


_WORDS = st.sampled_from(["alpha", "beta", "gamma", "delta", "Epsilon", "zeta", "é", "x", "  "])
_LINES = st.lists(st.lists(_WORDS, min_size=1, max_size=6).map(" ".join), min_size=1, max_size=12)


@given(_LINES, _LINES, st.booleans())
def test_lines_without_any_of_the_words_do_not_change_what_is_nearest(
    lines: list[str], sent: list[str], ascii_only: bool
) -> None:
    text, old = "\n".join(lines), "\n".join([f"{sent[0]} eta!", *sent[1:]])
    if ascii_only:
        text, old = text.replace("é", "e"), old.replace("é", "e")
    # Among so few lines a word is frequent, among so many the same one is rare.
    some, many = (miss(text + "\n12" * count, old) for count in (1, 400))
    assert (some.message, some.details["nearest"]) == (many.message, many.details["nearest"])


def test_lines_that_cannot_be_aligned_in_time_are_explained_too() -> None:
    chance = random.Random(1)
    text, old = ("\n".join(chance.choices("abcdefgh", k=5_000)) for _ in range(2))
    assert miss(text, old).details["nearest"]


def test_a_miss_in_a_huge_file_is_explained() -> None:
    chance = random.Random(1)
    words = ["alpha", "beta", "gamma", "return", "self.value", "if", "x", "foo(bar)"]
    lines = [
        "    " * chance.randrange(4) + " ".join(chance.choices(words, k=6)) for _ in range(50_000)
    ]
    block = lines[30_000:30_006]
    block[2] = block[2] + " changed"
    error = miss("\n".join(lines), "\n".join(block))
    assert error.details["nearest"] == 30_003
    assert len(error.message) < 2_000


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("a" * 1_000_000, "a" * 300 + "b"),
        ("a" * 1_000_000, "a" * 300_000 + "b"),
        ("x " * 500_000, "x " * 200 + " y"),
        (" " * 1_000_000, "x   y"),
        ("ab" * 500_000, "abb" * 1_000),
        ("word\n" * 200_000, "word\n" * 1_999 + "x"),
        ("a\n" * 500_000, "  a\nb\n" * 1_000),
        ("\u2019 " * 500_000, "' '  '"),
    ],
    ids=range(8),
)
def test_a_miss_in_a_hostile_text_has_an_answer_of_bounded_size(text: str, old: str) -> None:
    assert len(miss(text, old).message) < 2_000


FOLLOWED = [
    ("if (a < b && c) {}\n", "(a &lt; b &amp;&amp; c)", "(a < b && c)", "HTML entities"),
    ("if (a &lt; b) {}\n", "(a < b)", "(a &lt; b)", "HTML entities"),
    ("x = &quot;it&#39;s&quot;\n", 'x = "it\'s"', "x = &quot;it&#39;s&quot;", "HTML entities"),
    ('s = "a\\u00A0b";\n', 's = "a\xa0b"', 's = "a\\u00A0b"', "code of a character"),
    ('s = "a\\xe9b";\n', 's = "a\xe9b"', 's = "a\\xe9b"', "code of a character"),
    ('s = "a\xa0b";\n', 's = "a\\u00a0b"', 's = "a\xa0b"', "code of a character"),
    ("one\rtwo\nthree\n", "one\ntwo\nth", "one\rtwo\nth", "carriage return alone"),
    ("if x:\n\treturn 1\n", "\\treturn 1", "\treturn 1", "escapes, a backslash"),
    ('say \\"hi\\"\n', 'say "hi"', 'say \\"hi\\"', "backslash before a quote"),
    ("say \\'hi\\' \"\n", "say 'hi' \"", "say \\'hi\\' \"", "backslash before a quote"),
    ("cafe\u0301 au lait\n", "caf\xe9", "cafe\u0301", "composed differently"),
    ("un cafe\u0301\n", "un caf\xe9", "un cafe\u0301", "composed differently"),
    ("one\ntwo\nthree\n", "ne\n2\u2502two\n", "ne\ntwo\n", "line numbers"),
    ("one\ntwo\nthree\n", "    2 | two", "two", "line numbers"),
    ("a\r\none\rtwo\r\n", "one\ntwo\n", "one\rtwo\n", "carriage return alone"),
]


@pytest.mark.parametrize(("text", "sent", "wanted", "named"), FOLLOWED)
def test_a_mistake_that_has_a_name_is_named_and_what_is_said_can_be_done(
    text: str, sent: str, wanted: str, named: str
) -> None:
    with pytest.raises(StringNotFoundError) as caught:
        place(text, sent, "new")
    assert named in caught.value.message
    assert place(text, wanted, "new").edits.apply(text) != text


@pytest.mark.parametrize(
    ("text", "sent", "column"),
    [
        ("    return compute(alpha, beta)\n", "compute(alpha, betta)", 30),
        ("    total = compute(alpha, beta) + 1\n", "total = compute(alpha, betta)", 31),
        ("total = compute(alpha, beta)\n", "total = compute(alpha, betta)", 27),
    ],
)
def test_the_column_of_a_difference_is_one_of_the_file(text: str, sent: str, column: int) -> None:
    with pytest.raises(StringNotFoundError) as caught:
        place(text, sent, "new")
    assert f"from column {column} on" in caught.value.message
    assert "indented" not in caught.value.message


def test_what_cannot_be_seen_is_written_out_in_a_miss() -> None:
    with pytest.raises(StringNotFoundError) as caught:
        place("let name = 1;\n", "let na\u200bme\u202e = 3;", "new")
    assert "sent: let na\\u200bme\\u202e = 3;" in caught.value.message
