"""How a text is found that was not sent as the file has it, and when it is refused."""

from __future__ import annotations

import pytest

from filepact.errors import AmbiguousMatchError, NoChangeError, StringNotFoundError
from filepact.text.locate import MatchResult, place

PYTHON = """\
import os


class Reader:
    def first(self, path):
        with open(path) as handle:
            line = handle.readline()
        return line.strip()

    def second(self, path):
        text = self.read(path,
                         encoding="utf-8")
        return text

    def third(self):
        return None
"""
TABBED = "func main() {\n\tif ready {\n\t\tstart(now)\n\t}\n\tstop(later)\n}\n"
TYPED = (
    "He said \u201cyes\u201d, didn\u2019t he?\n"
    "From 1 \u2013 9, it\u2019s\u00a0open.\n"
    "    The end \u2014 or so.\n"
)


def placed(text: str, old: str, new: str) -> tuple[str, MatchResult]:
    placement = place(text, old, new)
    return placement.edits.apply(text), placement


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    ("text", "old", "new", "after", "steps"),
    [
        pytest.param(
            PYTHON,
            "class Reader:  \n    def first(self, path): \n",
            "class Writer:  \n    def first(self, path): \n",
            changed(PYTHON, ("class Reader", "class Writer")),
            ("trailing blanks",),
            id="blanks at the ends of the copy's lines",
        ),
        pytest.param(
            "first line  \nsecond line\t\nthird line\n",
            "first line\nsecond line\n",
            "first line\n2nd line\nnew line\n",
            "first line  \n2nd line\nnew line\nthird line\n",
            ("trailing blanks",),
            id="blanks at the ends of the file's lines, one line made two",
        ),
        pytest.param(
            "first line  \nsecond line\t\nthird line\n",
            "first line\nsecond line\n",
            "first line\n2nd line\n",
            "first line  \n2nd line\t\nthird line\n",
            ("trailing blanks",),
            id="blanks at the end of a changed line",
        ),
        pytest.param(
            PYTHON,
            "def first(self, path):\n    with open(path) as handle:\n"
            "        line = handle.readline()\n    return line.strip()\n",
            "def first(self, path):\n    with open(path) as handle:\n"
            "        line = handle.readline()\n        if not line:\n            raise EOFError\n"
            "    return line\n",
            changed(
                PYTHON,
                ("readline()\n", "readline()\n            if not line:\n                raise EOFError\n"),
                ("line.strip()", "line"),
            ),
            ("indentation",),
            id="dedented, with a new depth",
        ),
        pytest.param(
            PYTHON,
            "  def first(self, path):\n    with open(path) as handle:\n"
            "      line = handle.readline()\n    return line.strip()\n",
            "  def first(self, path):\n    with open(path) as handle:\n"
            "      line = handle.readline()\n      if not line:\n        raise EOFError\n"
            "    return line.strip()\n",
            changed(
                PYTHON,
                ("readline()\n", "readline()\n            if not line:\n                raise EOFError\n"),
            ),
            ("indentation",),
            id="two blanks for four",
        ),
        pytest.param(
            TABBED,
            "    if ready {\n        start(now)\n    }\n",
            "    if ready {\n        if not now {\n            wait()\n        }\n"
            "        start(now)\n    }\n",
            changed(
                TABBED, ("\t\tstart", "\t\tif not now {\n\t\t\twait()\n\t\t}\n\t\tstart")
            ),
            ("indentation",),
            id="blanks for tabs",
        ),
        pytest.param(
            TABBED,
            "    stop(later)\n",
            "    if done {\n        stop(later)\n    }\n",
            changed(TABBED, ("\tstop(later)\n", "\tif done {\n\t\tstop(later)\n\t}\n")),
            ("indentation",),
            id="blanks for tabs, one line known",
        ),
        pytest.param(
            TABBED.replace("\t", "    "),
            "\tstop(later)\n",
            "\tif done {\n\t\tstop(later)\n\t}\n",
            changed(TABBED, ("\tstop(later)\n", "\tif done {\n\t\tstop(later)\n\t}\n")).replace(
                "\t", "    "
            ),
            ("indentation",),
            id="tabs for blanks, one line known",
        ),
        pytest.param(
            PYTHON,
            'text = self.read(path,\n                 encoding="utf-8")\nreturn text\n',
            'text = self.read(path,\n                 encoding="latin-1")\nreturn text\n',
            changed(PYTHON, ("utf-8", "latin-1")),
            ("indentation",),
            id="an aligned line keeps its alignment",
        ),
        pytest.param(
            PYTHON,
            "class Reader:\ndef first(self, path):\nwith open(path) as handle:\n"
            "line = handle.readline()\n",
            "class Reader:\ndef first(self, path):\nwith open(path) as handle:\n"
            "line = handle.readline(80)\n",
            changed(PYTHON, ("readline()", "readline(80)")),
            ("indentation",),
            id="no indentation at all, line for line",
        ),
        pytest.param(
            PYTHON,
            "    15\u2502    def third(self):\n    16\u2502        return None\n",
            "    15\u2502    def third(self):\n    16\u2502        return 3\n",
            changed(PYTHON, ("return None", "return 3")),
            ("line numbers",),
            id="line numbers",
        ),
        pytest.param(
            PYTHON,
            "7\tline = handle.readline()\n8\treturn line.strip()\n9\t\n10\tdef second(self, path):",
            "7\tline = handle.readline()\n8\treturn line\n9\t\n10\tdef second(self, path):",
            changed(PYTHON, ("line.strip()", "line")),
            ("indentation", "line numbers"),
            id="line numbers and no indentation",
        ),
        pytest.param(
            PYTHON,
            "15|    def third(self):\n16|        return None",
            "15|    def third(self):\n        pass\n16|        return None",
            changed(PYTHON, ("third(self):\n", "third(self):\n        pass\n")),
            ("line numbers",),
            id="line numbers, a new line without one",
        ),
        pytest.param(
            TYPED,
            "He said \"yes\", didn't he?\nFrom 1 - 9, it's open.\n",
            "He said \"no\", didn't she?\nFrom 1 - 9, it's open.\n",
            changed(TYPED, ("yes", "no"), ("he?", "she?")),
            ("typography",),
            id="typographic quotes",
        ),
        pytest.param(
            TYPED,
            "The end - or so.",
            'The end - or "so".',
            changed(TYPED, ("or so", 'or "so"')),
            ("indentation", "typography"),
            id="a typographic dash, new quotes as they were sent",
        ),
        pytest.param(
            "call('one', \"two\")\nreturn 'three'\n",
            "call(\u2018one\u2019, \u201ctwo\u201d)\n",
            "call(\u2018one\u2019, \u201ctwo\u201d, 2)\n",
            "call('one', \"two\", 2)\nreturn 'three'\n",
            ("typography",),
            id="typographic quotes in the copy only",
        ),
        pytest.param(
            PYTHON,
            "        return line.strip()\n    def second(self, path):\n        text = self.read(path,\n",
            "        return line.strip()\n    def second(self, name):\n        text = self.read(path,\n",
            changed(PYTHON, ("second(self, path)", "second(self, name)")),
            ("blank line",),
            id="a blank line lost",
        ),
        pytest.param(
            PYTHON,
            "    def third(self):\n\n        return None\n",
            "    def third(self):\n\n        return 3\n",
            changed(PYTHON, ("return None", "return 3")),
            ("blank line",),
            id="a blank line too many",
        ),
        pytest.param(
            PYTHON,
            "\n        text = self.read(path,\n",
            "\n        text = self.load(path,\n",
            changed(PYTHON, ("self.read", "self.load")),
            ("exact",),
            id="a line end before it",
        ),
        pytest.param(
            PYTHON,
            "\n\n\n    def third(self):\n        return None\n",
            "\n\n\n    def third(self):\n        return 3\n",
            changed(PYTHON, ("return None", "return 3")),
            ("blank line",),
            id="blank lines before it",
        ),
        pytest.param(
            "one line\nlast line",
            "last line\n",
            "last line\nnew line\n",
            "one line\nlast line\nnew line",
            ("line ends",),
            id="a line end where the file has none",
        ),
        pytest.param(
            "first()\r\n\tsecond()\nthird()\r\n",
            "    second()\nthird()\n",
            "    2nd()\nthird()\nfourth()\n",
            "first()\r\n\t2nd()\nthird()\r\nfourth()\r\n",
            ("indentation",),
            id="mixed line ends",
        ),
        pytest.param(
            "first()\r\tsecond()\rthird()\r",
            "    second()\nthird()\n",
            "    2nd()\nthird()\nfourth()\n",
            "first()\r\t2nd()\rthird()\rfourth()\r",
            ("indentation",),
            id="the classic Mac's line ends",
        ),
        pytest.param(
            PYTHON,
            "def third(self):\n    return None\n",
            "",
            changed(PYTHON, ("    def third(self):\n        return None\n", "")),
            ("indentation",),
            id="lines taken away",
        ),
        pytest.param(
            "one line\n\tlast line",
            "    last line",
            "    last line\n    and more\n",
            "one line\n\tlast line\n\tand more\n",
            ("indentation",),
            id="more after the last line",
        ),
        pytest.param(
            "one line\n\tlast line",
            "one line\n    last line",
            "first line\none line\n\n    last line",
            "first line\none line\n\n\tlast line",
            ("indentation",),
            id="a blank line and a first line",
        ),
    ],
)  # fmt: skip
def test_a_copy_with_a_slip_is_found_and_the_file_keeps_its_own(
    text: str, old: str, new: str, after: str, steps: tuple[str, ...]
) -> None:
    result, placement = placed(text, old, new)
    assert result == after
    assert placement.steps == steps
    assert all(step in placement.words for step in steps)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_the_changed_lines_are_written(end: str) -> None:
    text = PYTHON.replace("\n", end)
    old = "def first(self, path):\n    with open(path) as handle:\n"
    placement = place(text, old, old.replace("first", "next"))
    (edit,) = placement.edits.edits
    assert text[edit.start : edit.end] == "firs"
    assert edit.text == "nex"
    assert [text.count("\n", 0, start) for start, _ in placement.spans] == [4]


TWICE = "if a:\n    call(one)\n    done()\nelse:\n    if b:\n        call(one)\n        done()\n"


@pytest.mark.parametrize(
    ("text", "old"),
    [
        (TWICE, "call(one)\ndone()\n"),
        (TWICE, "  call(one)\n  done()\n"),
        (TWICE, "    call(one) \n    done()\n"),
        (TWICE, "\tcall(one)\n\tdone()"),
        ("it\u2019s here now\nit's here now \n", "it\u2018s here now\n"),
        ("begin here\n\nend there\nbegin here\nend there \n", "begin here \nend there\n"),
        ("1\u2502first line\nfirst line\nfirst line\n", "8\u2502first line\n"),
    ],
)
def test_two_places_that_are_alike_are_refused(text: str, old: str) -> None:
    with pytest.raises(AmbiguousMatchError) as caught:
        place(text, old, old.replace("e", "E") + "new\n")
    assert len(caught.value.details["lines"]) > 1


@pytest.mark.parametrize(
    "old",
    [
        "    def first(self, paht):\n        with open(path) as handle:\n",
        "    def frist(self, path):  \n",
        '        return line.strip(\\"\\")\n',
        "    def second(self, path): \n        return text\n",
        "    def first(self, path):\n            line = handle.readline()\n",
        "    def First(self, path):\n",
        "        line  =  handle.readline()\n",
        "    def third(self):\n\n\n        return None\n",
        "import os\nclass Reader:\n",
        "\n\n\n\n        return text\n\n\n\n",
        "12|    def third(self):\n14|        return None\n",
        "12|    def third(self):\n        return None\n",
        "7\tline = handle.readline()\n8|return line.strip()\n",
        "12|\n",
        " \n \n \n \n",
        "'\t' \n",
        "   def third(self):\r        return None\n",
    ],
)  # fmt: skip
def test_a_text_that_differs_in_more_is_refused(old: str) -> None:
    with pytest.raises(StringNotFoundError):
        place(PYTHON, old, "new text\n")


def test_too_little_text_is_not_searched_for_by_its_lines() -> None:
    with pytest.raises(StringNotFoundError):
        place("if x:\n    pass\n", "pass \n", "done\n")


UNEVEN = (
    "def run():\n    result = call(one,\n                  two)\n    if result:\n"
    "        finish(result)\n    finish(result)\n"
)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        pytest.param(
            PYTHON, "def third(self):\nreturn None\n", "def third(self):\npass\nreturn None\n",
            id="one depth in the copy, two in the file",
        ),
        pytest.param(
            UNEVEN, "finish(result)\nfinish(result)\n", "finish(result)\n",
            id="one of two lines that only the file tells apart is taken away",
        ),
        pytest.param(
            UNEVEN,
            "  result = call(one,\n        two)\n  if result:\n    finish(result)\n",
            "  result = call(one,\n        two)\n  if result:\n    if two:\n      finish(result)\n",
            id="an aligned line leaves no rule for a new depth",
        ),
        pytest.param(
            PYTHON, "    def third(self):  \n        return None\n", "    def third(self):\n        return 3",
            id="the line end at the end is missing from the new text",
        ),
        pytest.param(
            TABBED, "    stop(later)\n", "    if x:\n      stop(later)\n",
            id="a depth that is none of the copy's",
        ),
        pytest.param(
            "\tstart(now)\n    if x:\n", "    start(now)\n", "    if x:\n        start(now)\n",
            id="a file with tabs and blanks",
        ),
        pytest.param(
            TYPED, "He said \"yes\", didn't he?\nFrom 1 - 9, it's open.\n", 'He said "yes".\n',
            id="two typographic lines made one",
        ),
        pytest.param(
            "call('one', 2)\n", "call(\u2018one\u2019, 2)\n", "call(\u2018one\u2019, \u2018two\u2019)\n",
            id="new typographic quotes where the file has plain ones",
        ),
        pytest.param(
            "first line\n\nlast line\n", "first line\nlast line\n", "first line\nnew\nlast line\n",
            id="a new line at a blank line that was lost",
        ),
        pytest.param(
            "first line\n\nlast line\n", "first line\nlast line\n", "only line\n",
            id="a blank line that was lost among those that change",
        ),
        pytest.param(
            "first line\nlast line\n", "first line\n\nlast line\n", "first line\nnew\nlast line\n",
            id="text for a blank line that is not there",
        ),
        pytest.param(
            "first line\nlast line\n", "first line\n\nlast line\n", "first line\nnew\nold\nlast line\n",
            id="two lines for a blank line that is not there",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_carried_over_with_certainty_is_refused(
    text: str, old: str, new: str
) -> None:
    with pytest.raises(StringNotFoundError) as caught:
        place(text, old, new)
    assert "Its lines are there" in caught.value.message


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("\tfirst line\n", "    first line\n", "  first line\n"),
        ("first line\nlast line\n", "first line\n\nlast line\n", "first line\nlast line\n"),
        ("first line\n", "1\tfirst line", "2\tfirst line"),
        ("it\u2019s here now\n", "it's here now", "it\u2019s here now"),
    ],
)
def test_a_change_of_nothing_but_the_slip_is_refused(text: str, old: str, new: str) -> None:
    with pytest.raises((NoChangeError, StringNotFoundError)):
        place(text, old, new)


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("a word\n" * 100_000, "a word \n" * 500 + "more words\n"),
        ("a word\n" * 100_000, "a word \n" * 1_000),
        ("a word\n\n" * 50_000, " a word\n\n" * 999 + "a word\n" * 5),
        ("word " * 200_000, "word " * 1_000 + "\nword \n"),
        ("x" * 1_000_000, " " + "x" * 1_000 + "\n"),
        ("ab\r\n" * 100_000, "ab\n" * 500 + "b"),
    ],
    ids=range(6),
)
def test_hostile_texts_are_refused(text: str, old: str) -> None:
    with pytest.raises((StringNotFoundError, AmbiguousMatchError)):
        place(text, old, "new\n")
