"""Globs: what they match, what is refused, and how long a hostile one takes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filepact.errors import SearchFailedError
from filepact.text.glob import MAX_LENGTH, Glob, compile_filter, select_paths, translate


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/down/a.py", True),
        ("*.py", "a.pyc", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "x/y/a.py", True),
        ("/*.py", "a.py", True),
        ("/*.py", "x/a.py", False),
        ("./*.py", "a.py", True),
        ("./*.py", "x/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/x/a.py", False),
        ("src/*.py", "lib/src/a.py", False),
        ("src/**", "src/x/a.py", True),
        ("src/**", "src", False),
        ("src/**/a.py", "src/a.py", True),
        ("src/**/a.py", "src/x/y/a.py", True),
        ("src/**/t/**/a.py", "src/t/t/x/a.py", True),
        ("src/**/t/**/a.py", "src/x/a.py", False),
        ("**/t/*/a.py", "t/t/x/a.py", True),
        ("a**b", "axxb", True),
        ("x/a**b", "x/a/b", False),
        ("***", "x/y", True),
        ("**/**", "x/y", True),
        ("a?c", "abc", True),
        ("a?c", "aéc", True),
        ("x/a?c", "x/a/c", False),
        ("[a-c].txt", "b.txt", True),
        ("[!a-c].txt", "b.txt", False),
        ("[^a-c].txt", "d.txt", True),
        ("x/a[!b]c", "x/a/c", False),
        ("x/a[.-0]c", "x/a/c", False),
        ("[]a]", "]", True),
        ("[a-]", "-", True),
        ("[a-c-e]", "-", True),
        ("[z-a]", "m", False),
        ("[[:digit:]]x", "7x", True),
        ("[[:digit:]x]", "x", True),
        (r"[\]]", "]", True),
        (r"\*.py", "*.py", True),
        (r"\*.py", "a.py", False),
        ("a.b", "axb", False),
        ("{a,b}", "{a,b}", True),
        ("a b", "x/a b", True),
        ("line\nbreak", "line\nbreak", True),
        ("*.x", "a\nb.x", True),
    ],
)
def test_a_pattern_matches_the_paths_it_describes(pattern, path, expected):
    assert Glob.parse(pattern).matches(path) is expected


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.{js,ts}", "src/a.ts", True),
        ("*.{js,ts}", "src/a.tsx", False),
        ("src/{a,b/**}/*.py", "src/b/x/y/c.py", True),
        ("src/{a,b}/{c,d}.py", "src/b/c.py", True),
        ("{,x}a", "a", True),
        ("{a,{b,c}}", "c", True),
        ("{**/*.c,Makefile}", "x/Makefile", True),
        (r"\{a,b\}", "{a,b}", True),
        ("[{]a", "{a", True),
        ("[{a", "{a", None),
        ("a,b", "a,b", True),
        ("{a?,[x-z]*}", "y1", True),
    ],
)
def test_braces_stand_for_alternatives_when_asked_for(pattern, path, expected):
    if expected is None:
        with pytest.raises(SearchFailedError):
            Glob.parse(pattern, braces=True)
    else:
        assert Glob.parse(pattern, braces=True).matches(path) is expected


def test_a_slash_at_the_end_finds_folders_only():
    glob = Glob.parse("build/")
    assert glob.directories_only
    assert glob.finds_folders
    assert glob.matches("x/build", is_dir=True)
    assert not glob.matches("x/build")
    mixed = Glob.parse("{a/,b}", braces=True)
    assert not mixed.directories_only
    assert mixed.matches("b")
    assert not mixed.matches("a")
    assert mixed.matches("a", is_dir=True)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "/",
        "a" * (MAX_LENGTH + 1),
        "/".join(["**", "a"] * 21),
        "[a",
        "[[:nothing:]]",
        "a[b-",
        "[\\",
        "a\\",
        "../x",
        "a/../b",
    ],
)
def test_a_bad_pattern_is_refused(pattern):
    with pytest.raises(SearchFailedError) as caught:
        Glob.parse(pattern)
    assert caught.value.code == "SEARCH_ERROR"
    assert caught.value.hint


@pytest.mark.parametrize(
    "pattern",
    [
        "{a",
        "a}",
        "{a,b}" * 20,
        "{" * 500,
        "{" * 11 + "a" + "}" * 11,
        "{" + "a," * 400 + "}",
        "{a,b}" * 7 + "x" * 900,
        "{..,a}/b",
    ],
)
def test_braces_that_do_not_pair_or_grow_too_much_are_refused(pattern):
    with pytest.raises(SearchFailedError):
        Glob.parse(pattern, braces=True)


def test_a_filter_is_turned_round_by_an_exclamation_mark():
    wanted = compile_filter("!*.min.js")
    assert wanted("a.js")
    assert not wanted("x/a.min.js")
    assert compile_filter("*.js")("x/a.js")


@pytest.mark.parametrize("pattern", ["!**", "!*", "!**/*", "!{*.py,**}"])
def test_what_is_turned_round_has_to_leave_something(pattern):
    with pytest.raises(SearchFailedError):
        compile_filter(pattern)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 200 + "b", "a" * 255),
        ("?*" * 300 + "b", "a" * 255),
        ("**/a/" * 19 + "b", "a/" * 2000 + "c"),
        ("**/*a*a*a*/" * 18 + "b", "aaaaaaaa/" * 450 + "c"),
        ("x/" + "*a" * 100 + "*/b", "x/" + "a" * 4000 + "/c"),
    ],
)
def test_a_hostile_pattern_takes_no_exponential_time(pattern, path):
    # Backtracking over these would outlast the test's time limit many times over.
    assert not Glob.parse(pattern).matches(path)


def slow_match(pattern: str, path: str) -> bool:
    """The meaning of `*`, `?` and `**`, written the obvious exponential way."""
    if not pattern:
        return not path
    if pattern.startswith("**/"):
        rest = pattern[3:]
        if slow_match(rest, path):
            return True
        head, slash, tail = path.partition("/")
        return bool(slash) and bool(head) and slow_match(pattern, tail)
    if pattern == "**":
        return bool(path)
    if pattern[0] == "*":
        return slow_match(pattern[1:], path) or (
            bool(path) and path[0] != "/" and slow_match(pattern, path[1:])
        )
    if not path:
        return False
    if pattern[0] == "?":
        return path[0] != "/" and slow_match(pattern[1:], path[1:])
    return pattern[0] == path[0] and slow_match(pattern[1:], path[1:])


SEGMENT = st.one_of(
    st.just("**"),
    st.lists(st.sampled_from("aab*?"), min_size=1, max_size=5)
    .map("".join)
    .filter(lambda text: "**" not in text),
)


@settings(max_examples=4 * settings().max_examples)
@given(
    st.lists(SEGMENT, min_size=1, max_size=5).map("/".join),
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=5).map("/".join),
)
def test_the_fast_expression_means_what_the_obvious_matcher_means(pattern, path):
    assert bool(re.fullmatch(translate(pattern), path)) is slow_match(pattern, path)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "**/*",
            "*.py",
            "**/*.{py,md}",
            "a*",
            "**/*a*",
            "a.py",
            "**/a.py",
            "x/**",
            "x/*.py",
            "/*.py",
        ),
        *("**/x/**/*.py", "{x,y}/**", "[ab]/**", "*/a*", "!*.py", "!x/**", "{a.py,*.md,x/*}", "x/"),
    ],
)
@pytest.mark.parametrize("base", ["", "x/", "deep/base/"])
def test_many_files_are_selected_as_each_alone(pattern, base):
    names = ["a.py", "b.md", "a", ".py", "xa.py", "Aa.md"]
    folders = ["", "x/", "x/y/", "y/x/", "a/", "b/a/", "a.py/"]
    paths = [f"{base}{folder}{name}" for folder in folders for name in names]
    accepts = compile_filter(pattern)
    wanted = [path for path in paths if accepts(path[len(base) :])]
    found = select_paths(pattern, paths, [path.rpartition("/")[2] for path in paths], len(base))
    assert found == wanted
