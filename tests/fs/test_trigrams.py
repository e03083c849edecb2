"""The index of trigrams: what it excludes never matches, for all patterns and texts."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from filepact.errors import SearchFailedError
from filepact.fs import trigrams
from filepact.fs.root import Root
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
            if dice.random() < 0.1:
                index.rest()
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


@pytest.fixture
def many(tmp_path):
    """A folder of files of which some are read at once and some are not; what each holds."""
    (tmp_path / "root" / "in" / "deep").mkdir(parents=True)
    root = tmp_path / "root"
    held = {f"in/{number}.txt": os.urandom(number * 137) for number in range(200)}
    held["in/deep/empty"] = b""
    held["in/half"] = b"x" * 600_000
    held["in/other half"] = b"y" * 600_000
    for name, data in held.items():
        (root / name).write_bytes(data)
    (root / "large").write_bytes(b"z" * (1 << 20))
    (root / "twice").write_bytes(b"twice")
    os.link(root / "twice", root / "again")
    (root / "to.txt").symlink_to("in/1.txt")
    (root / "into").symlink_to("in")
    (tmp_path / "outside").write_bytes(b"outside")
    os.mkfifo(root / "pipe")
    return held


ODD = [
    "large",
    "twice",
    "again",
    "to.txt",
    "into/1.txt",
    "../outside",
    "pipe",
    "in",
    "none",
    "in/1.txt/x",
]


@needs_library
def test_many_files_are_read_as_each_alone(many, tmp_path):
    with Root.open(tmp_path / "root", resolver="openat2") as root:
        paths = sorted([*many, *ODD])
        for name, got in zip(paths, root.read_small(paths), strict=True):
            if name in ODD:
                assert got is None
            else:
                assert got == (many[name], root.glance(name))
        first = root.read_small(["in/5.txt", "in/6.txt"])
        assert next(first)[0] == many["in/5.txt"]
        assert [got[0] for got in root.read_small(["in/7.txt"])] == [many["in/7.txt"]]
        assert next(first)[0] == many["in/6.txt"]


def test_where_files_are_not_read_at_once_each_is_read_alone(many, tmp_path, monkeypatch):
    with Root.open(tmp_path / "root", resolver="walk") as root:
        assert list(root.read_small(["in/1.txt", "in/2.txt"])) == [None, None]
    monkeypatch.setattr(trigrams, "_library", lambda: None)
    with Root.open(tmp_path / "root") as root:
        assert list(root.read_small(["in/1.txt"])) == [None]


def test_no_file_is_read_at_once_of_a_root_that_has_gone(many, tmp_path):
    with Root.open(tmp_path / "root") as root:
        (tmp_path / "root").rename(tmp_path / "moved")
        assert list(root.read_small(["in/1.txt"])) == [None]


def test_a_library_of_an_earlier_version_is_not_used(monkeypatch):
    monkeypatch.setattr(trigrams.ctypes, "CDLL", lambda _path: object())
    assert trigrams._library.__wrapped__() is None


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
            if (number %% 37 == 0) trigram_rest(index);
            free(text);
        }
        if (trigram_add(index, 1, (const uint8_t *)"again", 5)) return 4;
        trigram_free(index);
    }
    int folder = open(".", O_RDONLY | O_DIRECTORY);
    for (size_t room = 1; room < 3000; room += 1 + room / 7) {
        const char *at = "a\0b\0none\0link\0.\0a\0", *end = at + 18;
        uint32_t left = 6;
        uint8_t *out = malloc(room);
        while (left) {
            record_t *records = malloc(left * sizeof *records);
            uint32_t done = read_files(folder, 0x0c, at, left, out, room, records);
            if (!done) return 5;
            for (uint32_t one = 0; one < done; one++) {
                if (at >= end || (records[one].size >= 0 && (size_t)records[one].size >= room)) return 6;
                at += strlen(at) + 1;
            }
            left -= done;
            free(records);
        }
        free(out);
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
    flags += ["-D_GNU_SOURCE"]
    program = tmp_path / "harness"
    made = subprocess.run(["cc", *flags, "-o", program, tmp_path / "harness.c"], check=False)
    if made.returncode:
        pytest.skip("this compiler has no sanitizers")
    (tmp_path / "a").write_bytes(b"a" * 1_000)
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "link").symlink_to("a")
    assert subprocess.run([program], cwd=tmp_path, check=False).returncode == 0
