"""Characters that are not seen or taken for others: shown, and told from honest text."""

# ruff: noqa: RUF001 - letters of other scripts are what this is about
from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.text.confusables import adds_hidden, find_look_alikes, readable, resembles, visible


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(
    "codes", [range(0x3200), range(0xD7A4, 0x11000), range(sys.maxunicode + 1)], ids=str
)
def test_every_character_that_is_not_seen_is_written_out(codes: range) -> None:
    unseen = [
        chr(code)
        for code in codes
        if (unicodedata.category(chr(code)) in ("Cc", "Cf", "Zl", "Zp", "Co", "Cs"))
        or (unicodedata.category(chr(code)) == "Zs" and code != 0x20)
        or code in (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0)
        or 0xFE00 <= code <= 0xFE0F
        or 0xE0100 <= code <= 0xE01EF
    ]
    assert len(unseen) > 50
    raw = [char for char in unseen if char not in "\n\t" and char in visible(f"a{char}b")]
    assert raw == []


def test_line_ends_and_tabs_and_letters_of_all_scripts_stay() -> None:
    text = "a\tb\nжизнь ζωή 生活 जीवन حياة חיים café Ångström 😀\n"
    assert visible(text) == text


HONEST = [
    "plain ASCII with\ttabs\f and form feeds\n",
    "Der Bär trägt süße Äpfel; naïve café, Ångström, coöperate\n",
    "Жили-были старик со старухой. Оса и сор рот\n",
    "Το γρήγορο αλεπού πηδά; ΔΟΚΙΜΗ και Νόμος\n",
    "Հայերեն լեզու\n",
    "日本語のテキスト、全角　空白\n",
    "中文文本，标点。\n",
    "한국어 텍스트\n",
    "हिन्दी में क\u094d\u200dष\n",
    "فارسی می\u200cخواهم کتاب\u200cها\n",
    "العربية \u200fنص\n",
    "עברית \u200eטקסט\n",
    "ไทย\u200bภาษา\n",
    "Tiếng Việt có dấu\n",
    "Türkçe: ışık İstanbul\n",
    "emoji: 👨\u200d👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f 🇩🇪\n",
    "maths: Δx = 3 µm, α+β ≤ γ, ρ_max, ν, ∑ x², 𝛼\n",
    "French\u00a0: «\u202foui\u202f» and a soft\u00adhyphen\n",
    "\ufeffa file with a byte-order mark\r\nand CRLF\r\n",
]


@pytest.mark.parametrize("text", HONEST)
def test_honest_text_hides_nothing(text: str) -> None:
    assert adds_hidden("", text) == ""


def test_where_lines_end_in_cr_it_hides_nothing() -> None:
    assert adds_hidden("old\rline\r", "old\rline\rends\r") == ""
    assert adds_hidden("old\nline\n", "old\rline\rends\r") == "U+000D CONTROL CHARACTER"
    assert adds_hidden("", "import os\rimport sys") == "U+000D CONTROL CHARACTER"


TRICKS = {
    "if access != 'user\u202e \u2066// admin\u2069 \u2066'": "U+202E RIGHT-TO-LEFT OVERRIDE",
    "x = 1 \x1b[2K\x1b[1A# harmless": "U+001B CONTROL CHARACTER",
    "import os\rimport sys\n": "U+000D CONTROL CHARACTER",
    "back\x08space": "U+0008 CONTROL CHARACTER",
    "READ\u200bME": "U+200B ZERO WIDTH SPACE",
    "a\u2060b": "U+2060 WORD JOINER",
    "na\u200dme": "U+200D ZERO WIDTH JOINER",
    "say \U000e0068\U000e0069": "U+E0068 TAG LATIN SMALL LETTER H",
    "\u3164 = 1": "U+3164 HANGUL FILLER",
    "p\u0430ss": "U+0430 CYRILLIC SMALL LETTER A in a word of other letters",
    "\u0441\u043e\u0440\u0435 = 1": "U+0441 CYRILLIC SMALL LETTER ES in a word of other letters",
    "\uff50rint(x)": "U+FF50 FULLWIDTH LATIN SMALL LETTER P in a word of other letters",
    "x\ufe0fy": "U+FE0F VARIATION SELECTOR-16",
    "mid\ufeffdle": "U+FEFF ZERO WIDTH NO-BREAK SPACE",
    "line\u2028end": "U+2028 LINE SEPARATOR",
    "return\u037e x": "U+037E GREEK QUESTION MARK",
    "x = 1" + " " * 4_000 + "; import os": "blanks that push what follows out of sight",
    "\t" * 50 + "os.system(x)": "blanks that push what follows out of sight",
}


@pytest.mark.parametrize(("text", "what"), TRICKS.items())
def test_a_trick_that_a_change_puts_in_is_named(text: str, what: str) -> None:
    honest = "first\n" * 10
    assert adds_hidden(honest, f"{honest}{text}\n{honest}") == what
    assert readable(text) != text


@pytest.mark.parametrize("text", TRICKS)
def test_a_trick_that_was_there_before_is_not_the_changes(text: str) -> None:
    before = f"first\n{text}\nlast\n"
    assert adds_hidden(before, before.replace("first", "1st")) == ""
    assert adds_hidden(before, f"new\n{before}") == ""
    assert adds_hidden(before, "first\nlast\n") == ""
    assert adds_hidden(before, f"{before}{text}\n") != ""


def test_words_of_one_script_are_left_alone_beside_their_own() -> None:
    assert find_look_alikes("рот и оса") == []
    assert find_look_alikes("the сор") == [(4, 7)]
    assert find_look_alikes("x = а") == [], "one letter alone may be a formula's"
    assert find_look_alikes("a\nb сonfig") == [(4, 10)]


@pytest.mark.parametrize(
    ("name", "others", "meant"),
    [
        ("\u0441onfig.py", ["main.py", "config.py"], "config.py"),
        ("READ\u200bME.md", ["README.md"], "README.md"),
        ("\uff43onfig.py", ["config.py"], "config.py"),
        ("\u0441onfig.py", ["main.py"], ""),
        ("config.py", ["\u0441onfig.py"], ""),
        ("жизнь.txt", ["zhizn.txt"], ""),
        ("cafe\u0301.txt", ["cafe.txt"], ""),
    ],
)
def test_a_new_name_that_looks_like_one_beside_it_is_told(
    name: str, others: list[str], meant: str
) -> None:
    assert resembles(name, others) == meant


@given(st.text(), st.text())
def test_any_text_is_looked_at_without_a_mistake(before: str, after: str) -> None:
    adds_hidden(before, after)
    assert adds_hidden(after, after) == ""
    shown = visible(after)
    assert all(char.isprintable() or char in "\n\t" for char in shown)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "import os\rimport sys"),
        ("x = 1\ny = 2\n", "import os\rx = 1\ny = 2\n"),
        ("", "import os\rimport sys"),
        ("one", "import os\rimport sys\r"),
    ],
)
def test_a_return_hides_a_line_where_lines_do_not_end_in_returns(before, after):
    assert adds_hidden(before, after) == "U+000D CONTROL CHARACTER"


def test_a_return_ends_a_line_where_all_lines_do_so():
    assert adds_hidden("one\rtwo\r", "one\rzwei\rdrei\r") == ""


def test_signs_that_are_drawn_like_those_of_ascii_are_written_out() -> None:
    assert visible("a \u2212 b\u037e") == "a \\u2212 b\\u037e"


@pytest.mark.parametrize(
    ("diff", "shown"),
    [
        ("@@ -1 +1 @@\n-a\r\n+b\r\n", "@@ -1 +1 @@\n-a\r\n+b\r\n"),
        ("@@ -1 +1 @@\n-a\n+a\r\n", "@@ -1 +1 @@\n-a\n+a\\r\n"),
        ("@@ -1 +1 @@\n-a\r\n+a\n", "@@ -1 +1 @@\n-a\\r\n+a\n"),
        ("@@ -1 +1 @@\n--- a\r\n+b\u202e\r\n", "@@ -1 +1 @@\n--- a\r\n+b\\u202e\r\n"),
        (
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+b\r\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+a\r\n",
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+b\r\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+a\\r\n",
        ),
        ("+x" + " " * 300 + "y\n", "+x[300 blanks]y\n"),
        ("+x" + " " * 300 + "\n", "+x" + " " * 300 + "\n"),
    ],
)
def test_a_diff_for_a_reader_hides_no_line_end_and_pushes_nothing_away(
    diff: str, shown: str
) -> None:
    assert readable(diff) == shown


_ODD = st.sampled_from(
    ["a", "b = 1", "\u202e", "\u200b", "p\u0430y", "\u00e9", "\a", " " * 200 + "x"]
)
_TEXTS = st.lists(_ODD, max_size=4)


@given(_TEXTS, _TEXTS, st.sampled_from(["\n", "\r\n"]))
def test_lines_that_both_texts_have_around_it_change_nothing(
    old: list[str], new: list[str], end: str
) -> None:
    alone = ["".join(f"{line}{end}" for line in some) for some in (old, new)]
    around = f"plain{end}" * 80, f"text{end}" * 80
    assert adds_hidden(*(f"{around[0]}{one}{around[1]}" for one in alone)) == adds_hidden(*alone)
