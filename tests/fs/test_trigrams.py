"""The index of trigrams: what it excludes never matches, for all patterns and texts."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from filepact.errors import SearchFailedError
from filepact.fs.trigrams import TrigramIndex
from filepact.text.literals import needs_of
from filepact.text.query import Query

ATOMS = [
    r"a",
    r"b",
    r"ab",
    r"abc",
    r"foo",
    r"(foo)",
    r"(?:ba|fo)",
    r"[ab]",
    r"[^a]",
    r".",
    r"\w",
    r"\d",
    r"\s",
    r"\.",
    r"k",
    r"s",
    r"S",
    r"\t",
    r"|",
    r"|",
    r"|",
    r"*",
    r"+",
    r"?",
    r"{2}",
    r"{0,1}",
    r"{1,}",
    r"{",
    r"(",
    r")",
    r"^",
    r"$",
    r"[",
    r"]",
    r"\b",
    r"\-",
    r"(?i)",
    r"[]a]",
    r"}",
    r"{,3}",
    r"(?P<n>oo)",
    r"\Q",
    r"\E",
    r"\x61",
    r"\pL",
    r"[[:alpha:]]",
    r"[\d]",
]
ATOMS += ["\u212a", "\u017f", "\u00e9", "\u00df"]
LETTERS = "aAbBcCfFoOkKsS .-\n\r\t1{}]\u212a\u017f\u00e9\u00df"
PIECES = ("abc", "foo", "ab", "FOO", "bafo", " ", "k", "oo")
SOURCE = Path(__file__).resolve().parents[2] / "native" / "trigram.c"


def test_there_is_an_index_where_there_is_a_compiler():
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    index = TrigramIndex.open()
    assert index is not None
    index.close()
    index.close()


@pytest.mark.parametrize(
    ("pattern", "needs"),
    [
        ("foo|barbaz", ((b"foo", b"barbaz"),)),
        (r"class\s+\w+\(Test", ((b"class",), (b"(Test",))),
        ("(foo|bar)baz+qux?", ((b"foo", b"bar"), (b"baz",))),
        ("(abc)*def", ((b"def",),)),
        ("abc{", ((b"abc{",),)),
        ("[A-Z]{3}", ()),
        ("(?i)abc", ()),
        (r"\Qabc", ()),
        ("[[:alpha:]]abc", ()),
        ("abc|d", ()),
    ],
)
def test_a_pattern_needs_its_plain_letters(pattern, needs):
    assert needs_of(pattern, literal=False, case_sensitive=False) == needs


def compare(seed, patterns):
    """How many patterns needed something; each match of each of them is in a text that is found."""
    dice = random.Random(seed)
    planned = 0
    for _ in range(patterns):
        pattern = "".join(dice.choice(ATOMS) for _ in range(dice.randint(1, 9)))
        how = {"case_sensitive": dice.random() < 0.4, "literal": dice.random() < 0.1}
        try:
            query = Query.compile(pattern, multiline=dice.random() < 0.2, **how)
        except SearchFailedError:
            continue
        if not query.needs:
            continue
        planned += 1
        texts = [
            "".join(dice.choice(LETTERS) for _ in range(dice.randint(0, 60))) for _ in range(6)
        ]
        texts += ["".join(dice.choice(PIECES) for _ in range(20)) for _ in range(4)]
        index = TrigramIndex.open()
        for text in texts:
            index.add(text.encode())
        found = index.find(query.needs)
        index.close()
        for number, text in enumerate(texts):
            data = text.encode()
            assert number in found or not query.count(query.prepare(data)), (pattern, how, text)
    return planned


needs_library = pytest.mark.skipif(TrigramIndex.open() is None, reason="built without a C compiler")


@needs_library
def test_what_is_excluded_never_matches():
    assert compare(1, 1_500) > 200


@needs_library
@pytest.mark.slow(measured=True)
def test_what_is_excluded_never_matches_for_many_patterns():
    assert compare(2, 60_000) > 10_000


HARNESS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "%s"
int main(void) {
    unsigned seed = 7;
    for (int round = 0; round < 30; round++) {
        index_t *index = trigram_new();
        for (uint32_t number = 0; number < 400; number += 1 + seed %% 3) {
            size_t size = (seed = seed * 1103515245u + 12345u) %% 3000;
            uint8_t *text = malloc(size ? size : 1);
            for (size_t at = 0; at < size; at++)
                text[at] = (uint8_t)((seed = seed * 1103515245u + 12345u) >> 16) & (round %% 2 ? 255 : 15);
            if (!trigram_add(index, number, text, size)) return 2;
            uint32_t out[400];
            size_t from = size > 20 ? size / 2 : 0, wide = size > 20 ? 3 + seed %% 8 : size;
            int64_t count = trigram_find(index, text + from, wide, out, 400);
            int there = wide < 3 || count < 0;
            for (int64_t at = 0; at < count; at++) there |= out[at] == number;
            if (!there) return 3;
            free(text);
        }
        if (trigram_add(index, 1, (const uint8_t *)"again", 5)) return 4;
        trigram_free(index);
    }
    return 0;
}
"""


@pytest.mark.slow(measured=True)
def test_the_library_in_c_stays_in_its_memory(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    (tmp_path / "harness.c").write_text(HARNESS % SOURCE)
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1", "-Wall"]
    program = tmp_path / "harness"
    made = subprocess.run(["cc", *flags, "-o", program, tmp_path / "harness.c"], check=False)
    if made.returncode:
        pytest.skip("this compiler has no sanitizers")
    assert subprocess.run([program], check=False).returncode == 0
