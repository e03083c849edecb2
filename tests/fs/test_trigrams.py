"""The index of trigrams: what it excludes never matches, for all patterns and texts."""

from __future__ import annotations

import os
import random
import shutil

import pytest

from filepact.errors import SearchFailedError
from filepact.fs import trigrams
from filepact.fs.root import Root
from filepact.fs.trigrams import NO_LINE, NO_TEXT, TrigramIndex, find_lines
from filepact.text.literals import needs_of
from filepact.text.query import Query
from tests.fs import trigram_fuzz
from tests.hostile.sweeps import often
from tests.needs import ONE_STEP, PROCESSES

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
        ("(foo|bar)baz+qux?", ((b"foo", b"bar"), (b"baz",), (b"qu",))),
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


def sealed(index):
    """The same texts in one block."""
    block = index.seal(range(index.size), index.size)
    index.close()
    return TrigramIndex.open(block)


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
            if dice.random() < 0.1:
                index = sealed(index)
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
    tries = often(1_000, 60_000)
    assert compare(2, tries) > tries // 6


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


@ONE_STEP
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


@ONE_STEP
@needs_library
def test_a_file_without_what_is_needed_is_told_from_one_that_may_mean_it(tmp_path):
    held = {
        "plain": b"nothing here\n" * 9,
        "with": b"x" * 50 + b"needle",
        "utf-8": "nichts für dich\n".encode() * 9,
        "latin": "nichts für dich\n".encode("latin-1"),
        "zero": b"nothing\0here",
        "word": "für ODD\n".encode(),
        "both": "für needle\n".encode(),
        "kelvin": "\u212a".encode(),
    }
    for name, data in held.items():
        (tmp_path / name).write_bytes(data)
    with Root.open(tmp_path) as root:
        how = {"needs": ((b"needle", b"pin"),), "odd": (b"ODD",)}
        found = dict(zip(held, root.read_small(list(held), **how), strict=True))
        folded = list(root.read_small(["kelvin"], **how, fold=True))
    assert {name for name, one in found.items() if one is False} == {"plain"}
    assert {name for name, one in found.items() if one is True} == {"utf-8", "kelvin"}
    wanted = {name: one[0] for name, one in found.items() if isinstance(one, tuple)}
    assert wanted == {name: held[name] for name in ("with", "latin", "zero", "word", "both")}
    assert isinstance(folded[0], tuple)


@ONE_STEP
@needs_library
def test_many_folders_are_listed_as_they_are(many, tmp_path, monkeypatch):
    monkeypatch.setattr(trigrams, "_AT_ONCE", 2)
    with Root.open(tmp_path / "root") as root:
        top, inside, *odd = root.list_some([".", "in", "none", "into", "../", "large", "in/deep"])
        assert set(top) == {"in/", "large", "twice", "again", "to.txt/@", "into/@", "pipe/?"}
        assert set(inside) == {name[3:] for name in many if name.count("/") == 1} | {"deep/"}
        assert odd == [None, None, None, None, ["empty"]]
        (tmp_path / "root/in/deep/empty").unlink()
        assert list(root.list_some(["in/deep"])) == [[]]
        # Names that do not fit into what is left come with the next, those of a large folder in another way.
        monkeypatch.setattr(trigrams, "_ROOM", 1_000)
        assert list(root.list_some([".", "in", "in/deep", "."])) == [top, None, [], top]
        monkeypatch.setattr(trigrams, "_ROOM", 80)
        assert list(root.list_some([".", ".", "in/deep"])) == [top, top, []]
    with Root.open(tmp_path / "root", resolver="walk") as root:
        assert list(root.list_some(["in"])) == [None]


def test_no_file_is_read_at_once_of_a_root_that_has_gone(many, tmp_path):
    with Root.open(tmp_path / "root") as root:
        (tmp_path / "root").rename(tmp_path / "moved")
        assert list(root.read_small(["in/1.txt"])) == [None]


def test_a_library_of_an_earlier_version_is_not_used(monkeypatch):
    class Earlier:
        def trigram_version(self):
            return trigrams.LIBRARY_VERSION - 1

    for library in (object(), Earlier()):
        monkeypatch.setattr(trigrams.ctypes, "CDLL", lambda _path, library=library: library)
        assert trigrams._library.__wrapped__() is None


@pytest.mark.slow(measured=True)
def test_what_many_texts_hold_takes_little_room_for_each():
    index = TrigramIndex.open()
    assert index is not None
    text = bytes(range(32, 127)) * 2 + b"\n"
    trigrams = len({text[at : at + 3].lower() for at in range(len(text) - 2)})
    for number in range(2_000):
        assert index.add(text if number % 8 else b"\n" * 3) == number
    index.rest()
    # Of each eight numbers seven are there: a bit for each, and some more where one is not.
    assert index.memory < 200_000 + trigrams * 2_000 // 4
    wanted = [number for number in range(2_000) if number % 8]
    assert index.find(((b"xyz",),)) == wanted
    before, index = index.memory, sealed(index)
    assert len(index.image.view) < before // 4
    assert index.find(((b"xyz",),)) == wanted
    index.close()


@PROCESSES
def test_the_library_in_c_stays_in_its_memory_and_finds_what_is_there(tmp_path):
    program = trigram_fuzz.build(tmp_path)
    if program is None:
        pytest.skip("no C compiler with sanitizers here")
    assert {trigram_fuzz.run(program, tmp_path, seed, 1_000) for seed in range(often(1, 9))} == {0}


@needs_library
@pytest.mark.parametrize("fold", [False, True])
def test_lines_are_found_that_hold_what_is_needed(fold):
    texts = [b"one abc\ntwo ABC foo", b"", b"abc foo\r\nfoo abc\n\nabc", "\u212a abc foo".encode()]
    found = find_lines(texts, ((b"abc", b"none"), (b"foo",)), fold=fold)
    wanted = [(2, 0, 0, 8), (2, 9, 13, 16)]
    if fold:
        # A letter that is another case of one of ASCII leaves it open.
        assert found == [(0, 8, 12, 19), *wanted, (3, NO_LINE, 0, 0)]
    else:
        assert found == [*wanted, (3, 0, 4, 11)]


@needs_library
def test_lines_of_many_texts_are_found_however_many_there_are():
    texts = [b"abc\n" * number for number in (3_000, 2_000, 9_000, 1)]
    found = find_lines(texts, ((b"abc",),))
    assert [sum(line[0] == text for line in found) for text in range(4)] == [3_000, 2_000, 1, 1]
    assert [line[1] for line in found if line[0] == 2] == [NO_LINE]
    assert found[3_000] == (1, 0, 0, 3)


@ONE_STEP
@needs_library
def test_of_files_that_lack_what_is_needed_no_bytes_are_read(many, tmp_path):
    with Root.open(tmp_path / "root", resolver="openat2") as root:
        paths = ["in/half", "in/1.txt", "in/other half", "large"]
        got = list(root.read_small(paths, ((b"xxxx", b"none"),)))
        assert [one and one[0] for one in got] == [many["in/half"], False, False, None]
        folded = root.read_small(paths[:1], ((b"XXXX",),), fold=True)
        assert next(folded)[0] == many["in/half"]


@needs_library
def test_two_bytes_in_a_row_are_found_wherever_they_stand():
    index = TrigramIndex.open()
    for text in (b"ab", b"xab", b"abx", b"a b", b"a", b"", b"AB\n", "b\u212a".encode()):
        index.add(text)
    assert index.find(((b"ab",),)) == [0, 1, 2, 6]
    assert index.find(((b"bk",),)) == [7]
    assert index.find(((b"ab", b"xa"), (b"abx",))) == [2]
    index.close()


def test_without_the_library_no_lines_are_found(monkeypatch):
    monkeypatch.setattr(trigrams, "_library", lambda: None)
    assert find_lines([b"abc"], ((b"abc",),)) is None


@needs_library
def test_texts_in_a_block_have_the_numbers_that_they_are_given():
    index = TrigramIndex.open()
    for text in (b"abc", b"abcd", b"bcd", b"abc abc"):
        index.add(text)
    block = index.seal([0, NO_TEXT, 1, 2], 3)
    index.close()
    assert index.seal([], 0) is None
    index = TrigramIndex.open(block)
    assert (index.size, index.added) == (3, 0)
    assert index.find(((b"abc",),)) == [0, 2]
    assert index.add(b"xabcx") == 3
    assert index.find(((b"abc",),)) == [0, 2, 3]
    assert index.find(((b"bc",),)) == [0, 1, 2, 3]
    assert index.find(((b"bcd",),)) == [1]
    again = TrigramIndex.open(index.seal([NO_TEXT, 0, 1, 2], 3))
    assert again.find(((b"abc",),)) == [1, 2]
    for one in (index, again):
        one.close()
