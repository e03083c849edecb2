"""Source text in colours: what the parts of a line are, whatever a stranger has put into it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact_windows.syntax import highlight

TABLE = [
    (
        "a.py",
        'return "x" + f(1)  # why',
        ["keyword return", 'string "x"', "number 1", "comment # why"],
    ),
    ("a.py", "x = y#z", []),
    ("Makefile", "# all", ["comment # all"]),
    ("lib/a.ts", "const a = 0xff; // so", ["keyword const", "number 0xff", "comment // so"]),
    ("a.c", "int a; /* x */ int b;", ["keyword int", "comment /* x */", "keyword int"]),
    ("a.sql", "SELECT 'a' -- b", ["keyword SELECT", "string 'a'", "comment -- b"]),
    ("a.json", '{"a": true, "b": 1.5}', ['string "a"', "keyword true", 'string "b"', "number 1.5"]),
    ("a.html", "<!-- x --> y", ["comment <!-- x -->"]),
    ("a.py", '"never ends \\', ['string "never ends ']),
    ("notes.txt", "if this is true", []),
    ("a.py", "if " * 1_000, []),
]


@pytest.mark.parametrize(("name", "line", "parts"), TABLE)
def test_the_parts_of_a_line(name: str, line: str, parts: list[str]) -> None:
    found = [f"{one.kind} {line[one.start : one.end]}" for one in highlight(line, name)]
    assert found == parts


@given(st.text(alphabet="ab\"'`\\#/*-<!> 0x1.", max_size=60), st.sampled_from(["py", "c", "html"]))
def test_parts_are_in_order_and_apart(line: str, kind: str) -> None:
    at = 0
    for one in highlight(line, f"a.{kind}"):
        assert at <= one.start < one.end <= len(line)
        at = one.end
