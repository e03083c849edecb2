"""Lists of gitignore patterns: which cover a path, against Git's own reading of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.text.gitignore import IgnoreRules, IgnoreRuleSet
from filepact.text.glob import GlobError
from filepact.text.pattern_set import PatternSet, split_pattern

COVERED = [
    ("x", "x"),
    ("x", "deep/down/x"),
    ("x", "x/inside/it"),
    ("x/", "x"),
    ("x/**", "x"),
    ("x/**", "x/a/b"),
    ("/x", "x"),
    ("a/x", "a/x"),
    ("**/a/x", "b/a/x/c"),
    ("a/**/x", "a/x"),
    ("a/**/x", "a/b/c/x"),
    ("*.pem", "tls/server.pem"),
    ("id_*", "id_rsa"),
    ("a*z", "abcz"),
    ("[ab].txt", "b.txt"),
    ("a/*.txt", "a/b.txt"),
    ("**", "anything/at/all"),
    ("/**", "anything"),
    ("*", "anything"),
    (r"\!x", "!x"),
]

SPARED = [
    ("/x", "a/x"),
    ("a/x", "b/a/x"),
    ("x", "xx"),
    ("*.pem", "pem"),
    ("a/*.txt", "a/b/c.txt"),
    ("a*z", "azy"),
    ("", "x"),
    ("/", "x"),
]


@pytest.mark.parametrize(("pattern", "path"), COVERED)
def test_a_pattern_covers_a_path_or_a_folder_above_it(pattern: str, path: str) -> None:
    assert PatternSet([[pattern]]).matching(path.split("/")) == {0}


@pytest.mark.parametrize(("pattern", "path"), SPARED)
def test_a_pattern_covers_nothing_else(pattern: str, path: str) -> None:
    assert PatternSet([[pattern]]).matching(path.split("/")) == frozenset()


def test_a_later_pattern_of_the_same_list_takes_a_name_back() -> None:
    patterns = PatternSet([[".env.*", "!.env.example"], [".env.example"]])
    assert patterns.matching([".env.local"]) == {0}
    assert patterns.matching(["app", ".env.example"]) == {1}
    assert patterns.matching([".env.d", ".env.example"]) == {0, 1}


def test_an_earlier_pattern_takes_nothing_back() -> None:
    assert PatternSet([["!x", "x"]]).matching(["x"]) == {0}
    assert PatternSet([["**", "!**"]]).matching(["x"]) == {0}


def test_several_lists_answer_at_once() -> None:
    patterns = PatternSet([["*.txt"], ["a/**"], ["b"], ["a/?.txt"]])
    assert patterns.matching(["a", "b.txt"]) == {0, 1, 3}
    assert patterns.matching(["a", "b", "c"]) == {1, 2}


@pytest.mark.parametrize("pattern", ["[a", "a/[b", "x\\"])
def test_a_pattern_that_cannot_be_understood_is_refused(pattern: str) -> None:
    with pytest.raises(GlobError):
        PatternSet([[pattern]])


def test_the_parts_of_a_pattern_say_where_it_counts() -> None:
    assert split_pattern("!/a/b/**") == (True, ("a", "b"))
    assert split_pattern("x") == (False, ("**", "x"))


_NAMES = st.sampled_from(["a", "b", "ab", "a.b", "b.a", ".a"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=4)
_GLOBS = st.sampled_from(
    [
        "a",
        "b",
        "*.b",
        "a*",
        "?b",
        "*a*",
        "/a",
        "a/b",
        "a/*",
        "**/b",
        "a/**",
        "a/**/b",
        "*/a.b",
        ".*",
    ]
)


@given(_GLOBS, _PATHS)
def test_one_pattern_covers_what_git_ignores(pattern: str, parts: list[str]) -> None:
    rules = IgnoreRuleSet().with_rules("gitignore", IgnoreRules.parse(pattern, "."))
    above = ["".join(f"{part}/" for part in parts[:count]) for count in range(len(parts))]
    names = [f"{part}/" for part in parts]
    ignored = not all(
        rules.sift(*one).kept for one in zip(above, ([n] for n in names), strict=True)
    )
    # A folder whose whole content is named is covered too.
    whole = pattern.endswith("/**") and parts[0] == pattern[:-3]
    assert bool(PatternSet([[pattern]]).matching(parts)) == (ignored or whole)


@given(st.lists(st.lists(_GLOBS, max_size=3), max_size=4), _PATHS)
def test_whatever_is_covered_by_its_last_part_is_suspected(
    lists: list[list[str]], parts: list[str]
) -> None:
    patterns = PatternSet(lists)
    if patterns.matching(parts) - patterns.matching(parts[:-1]):
        assert patterns.suspecting()(parts[-1])
    names = "//".join(["", *parts, ""]).encode()
    assert patterns.suspecting().hints(names) >= any(map(patterns.suspecting(), parts))


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("*a[bc]d*.e", "xacdy.e"), ("[!a]b", "cb"), ("*a[b]", "ab"), ("?[]x]y", "a]y"), ("**", "q")],
)
def test_a_name_that_only_a_class_matches_is_hinted_at(pattern: str, name: str) -> None:
    suspected = PatternSet([[pattern]]).suspecting()
    assert suspected(name)
    assert suspected.hints(f"//{name}//".encode())


def test_other_names_are_not_hinted_at() -> None:
    suspected = PatternSet([["*.key", "id_*", "env", "*se[ck]ret*.json"]]).suspecting()
    assert not suspected.hints(b"//keys.py//environment//an_id_//secret.txt//a.json//")


def test_remembering_is_bounded() -> None:
    patterns = PatternSet([["*.x"]])
    for number in range(50_001):
        patterns.matching([f"{number}.x"])
    assert len(patterns._remembered) <= 50_000
