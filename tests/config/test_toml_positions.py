"""Every key, table and element of a TOML text is found on its line."""

from __future__ import annotations

import tomllib

import pytest

from filepact.config.problems import TomlPositions

TEXT = '''\
# [not]
a = 1
[[deny]]
paths = [
  "x", # ] "
  """y
  z""",
  'w', ]
why = "a\\"]\\\\"
[[deny]]
paths = ["q"]
b.c = {d = [1, 2], "e f" = 1979-05-27 07:32:00}
[[deny.sub]]
k = 3
[deny.tab]
x = """a"""""
y = \'\'\'b\'\'\'\'
z = ""
[z.y.w]
[z]
e = 1.5
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("a",), 2),
        (("deny",), 3),
        (("deny", 0), 3),
        (("deny", 0, "paths"), 4),
        (("deny", 0, "paths", 0), 5),
        (("deny", 0, "paths", 1), 6),
        (("deny", 0, "paths", 2), 8),
        (("deny", 0, "why"), 9),
        (("deny", 1), 10),
        (("deny", 1, "paths", 0), 11),
        (("deny", 1, "b"), 12),
        (("deny", 1, "b", "c", "d", 1), 12),
        (("deny", 1, "b", "c", "e f"), 12),
        (("deny", 1, "sub", 0, "k"), 14),
        (("deny", 1, "tab", "y"), 17),
        (("deny", 1, "tab", "z"), 18),
        (("z", "y"), 19),
        (("z",), 20),
        (("z", "e"), 21),
        (("deny", 1, "missing"), 10),
        (("deny", 7), 3),
        (("missing", "x"), 1),
        ((), 1),
    ],
)
def test_a_key_is_found_on_its_line(key: tuple[str | int, ...], line: int) -> None:
    tomllib.loads(TEXT)
    assert TomlPositions(TEXT).of(key) == line
    assert TomlPositions(TEXT.replace("\n", "\r\n")).of(key) == line


def test_quoted_keys_are_found_by_what_they_say() -> None:
    text = "\n\"a\\u0062\".'c d' = 1\n"
    assert tomllib.loads(text) == {"ab": {"c d": 1}}
    assert TomlPositions(text).of(("ab", "c d")) == 2


def test_an_empty_text_has_one_line() -> None:
    assert TomlPositions("").of(("a",)) == 1
