"""Patterns and rules that do nothing are found before any file is asked about."""

from __future__ import annotations

import random
import re

import pytest

from filepact.config.policy_lint import (
    RuleCheck,
    covers,
    idle_lifts,
    settled,
    shared,
    unmet,
    useless,
    witnesses,
    wrong_list,
    wrong_pattern,
)
from filepact.domain.policy import ACTIONS, READS, WRITES, AccessRequest, Policy, Rule, decide
from filepact.text.pattern_set import PatternSet, split_pattern
from tests.hostile.sweeps import often

KEYS = Rule("key stores", "deny", ("*.pem", ".ssh"), "keys", actions=READS | WRITES)
LIFTING = frozenset({"key stores"})


def rule(says: str, *paths: str, **more) -> Rule:
    return Rule(more.pop("name", says), says, paths, "because", layer="person", **more)


def names(path: str) -> list[str]:
    return path.split("/")


# -- one pattern ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern",
    [
        "a",
        "a/**",
        "**",
        "**/x",
        "/a/b",
        "!a",
        "*.pem",
        "[!a-c]?.txt",
        "\\*",
        "\\!x",
        "a\\{b,c}",
        "{{cookiecutter.name}}/x",
        "~$*.docx",
        "*~",
        "Straße*",
        "a b",
        "./x",
        "[]]",
        "[[:alpha:]]",
    ],
)
def test_a_pattern_that_can_match_is_right(pattern: str) -> None:
    assert wrong_pattern(pattern) == ""


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "  ",
        "!",
        " a",
        "a ",
        "a\nb",
        "a\x85",
        "C:\\Users",
        "c:/x",
        "a\\b",
        "a\\",
        "a\\.env",
        "../a",
        "a/../b",
        "*.{a,b}",
        "~root/x",
        "[a",
        "[[:nope:]]",
        "[]",
        "/",
        ".",
        "*.",
        "[[:upper:]]",
    ],
)
def test_a_pattern_that_cannot_match_is_wrong_with_a_reason(pattern: str) -> None:
    assert wrong_pattern(pattern)


def test_a_folder_of_windows_is_told_to_use_slashes() -> None:
    assert "use /" in wrong_pattern("secrets\\keys")
    assert "//" in wrong_pattern("D:\\secrets")


# -- taking back ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patterns", "covered", "free"),
    [
        (["c/**"], ["c", "c/a", "c/a/b"], ["x/c", "d"]),
        (["c/**", "!c/readme.md"], ["c/a", "c/a/readme.md", "c/a/b"], ["c/readme.md", "x"]),
        (["c/**", "!C/README.md"], ["c/a"], ["c/readme.md", "C/ReadMe.md"]),
        (["**", "!docs/**"], ["x", "x/docs", "docsx"], ["docs", "docs/a", "docs/a/b"]),
        (["*", "!docs"], ["x", "x/y"], ["docs", "docs/a"]),
        (["*.pem", "!tests/**"], ["a.pem", "x/tests/a.pem"], ["tests/a.pem", "tests/x/a.pem"]),
        (["*.pem", "!tests/*.pem"], ["a.pem", "tests/x/a.pem"], ["tests/a.pem"]),
        (
            ["c/**", "!c/a/b/x.md", "!c/a/y.md"],
            ["c/q", "c/a/z", "c/a/b/z", "c/b"],
            ["c/a/b/x.md", "c/a/y.md"],
        ),
        (["c/**", "!c/a/**"], ["c/q", "c/b/a"], ["c/a", "c/a/z", "c/a/b/z"]),
        (["**/s/**", "!**/s/README.md"], ["s/x", "a/s/x"], ["a/s/readme.md", "s/readme.md"]),
        (["c/**", "!c/*/x.md", "c/a"], ["c/a/x.md"], []),
    ],
)
def test_what_is_taken_back_is_free_and_nothing_else(
    patterns: list[str], covered: list[str], free: list[str]
) -> None:
    found = settled(patterns)
    assert [path for path in covered if not covers(found, names(path))] == []
    assert [path for path in free if covers(found, names(path))] == []


@pytest.mark.parametrize(
    "patterns",
    [
        ["c/**", "!c/readme.md"],
        ["c/**", "!c/a/b/readme.md"],
        ["c/*", "!README.md"],
        ["**", "!docs/**"],
        ["secret-*", "!*-public"],
        ["*.pem", "!tests/**"],
        ["a", "b", "!a"],
        ["[a-c]x", "![c-e]x"],
    ],
)
def test_what_takes_something_back_is_right(patterns: list[str]) -> None:
    assert list(wrong_list(patterns)) == []


@pytest.mark.parametrize(
    ("patterns", "wrong"),
    [
        (["!a"], [0]),
        (["!a", "a"], [0]),
        (["a", "!b"], [1]),
        (["*.pem", "!tests"], [1]),
        (["secret", "!secret/a"], [1]),
        (["c/**", "!c/*/x.md"], [1]),
        (["[a-c]x", "!d*"], [1]),
        (["a", "!a", "!a"], [2]),
        (["a", "!b", "!c"], [1, 2]),
        (["a", "!**"], [1]),
    ],
)
def test_what_takes_nothing_back_is_found(patterns: list[str], wrong: list[int]) -> None:
    assert [number for number, said in wrong_list(patterns) if said] == wrong


def test_the_reason_says_what_to_write_instead() -> None:
    ((_, whole),) = wrong_list(["secret", "!secret/a"])
    assert "/*" in whole
    ((_, folder),) = wrong_list(["*.pem", "!tests"])
    assert "/**" in folder


# -- examples of patterns ---------------------------------------------------------------------


def random_pattern(chance: random.Random) -> str:
    parts = [
        "".join(chance.choices(["a", "b", "*", "?", "[ab]", "[!a]"], (4, 4, 2, 1, 1, 1), k=n))
        for n in chance.choices((1, 2, 3), k=chance.randint(1, 3))
    ]
    for _ in range(chance.choice((0, 0, 1))):
        parts.insert(chance.randint(0, len(parts) - 1), "**")
    return chance.choice(("", "/")) + "/".join(parts)


def matches(pattern: str, path: tuple[str, ...]) -> bool:
    """Whether a pattern stands for this very name, and not only for a folder above it."""
    found = PatternSet([[pattern]])
    return bool(found.matching(path)) and not found.matching(path[:-1])


def test_every_example_of_a_pattern_is_covered_by_it() -> None:
    chance = random.Random(4)
    for _ in range(500):
        pattern = random_pattern(chance)
        found = witnesses(pattern)
        assert found, pattern
        assert all(covers((pattern,), path) for path in found), pattern


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("count", [150, *[600] * often(0, 1)])
def test_two_patterns_share_a_name_exactly_if_one_is_found(count: int) -> None:
    chance = random.Random(5)
    alphabet = [(a,) for a in ("a", "b", "ab", "ba", "c", "aa", "bb", "abc")]
    trial = [*alphabet, *(x + y for x in alphabet for y in alphabet)]
    both = 0
    for _ in range(count):
        one, other = random_pattern(chance), random_pattern(chance)
        found = shared(one, other)
        if found is not None:
            both += 1
            expressions = [split_pattern(each)[1] for each in (one, other)]
            assert all(covers((each,), found) for each in (one, other)), (one, other, found)
            assert expressions
        else:
            for path in trial:
                assert not (matches(one, path) and matches(other, path)), (one, other, path)
    assert count // 6 < both < count - count // 6


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        ("secret-*", "*-public", "secret-public"),
        ("a/**/z", "**/y/z", "a/y/z"),
        ("customers/*", "README.md", "customers/readme.md"),
        ("**/x/**/y", "x/*/*/y", None),
        ("a/b", "b/a", None),
        ("[a-c]", "[d-f]", None),
        ("**", "**", ""),
        ("A*", "*b", "ab"),
    ],
)
def test_a_shared_name_is_found(one: str, other: str, path: str | None) -> None:
    found = shared(one, other)
    if path is not None:
        assert found is not None
        assert re.sub("[\ue000\ue001]", "", "/".join(found)) == path
    elif "**" in one:
        assert found is not None
    else:
        assert found is None


# -- rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rules",
    [
        [rule("deny", "*.pem")],
        [rule("ask", "*.pem")],
        [rule("ask", "a/*"), rule("deny", "a/b")],
        [rule("ask", "a/b"), rule("deny", "a", actions=READS)],
        [rule("ask", "a"), rule("deny", "a", agents=("g*",))],
        [rule("ask", "a", agents=("g*",)), rule("deny", "a", agents=("g-*",))],
        [rule("ask", "c/readme.md"), rule("deny", "c/*", "!c/readme.md")],
        [rule("allow", "tests/*.pem", lifts=LIFTING)],
        [rule("allow", "*.pem", lifts=LIFTING), rule("ask", "*.pem", actions=READS)],
        [rule("ask", "/x", root="/"), rule("deny", "x", actions=READS)],
        [rule("ask", "/project/.ssh/**", root="/")],
    ],
)
def test_rules_that_may_decide_are_right(rules: list[Rule]) -> None:
    assert list(useless(rules, [KEYS], strict=frozenset())) == []


@pytest.mark.parametrize(
    "rules",
    [
        [rule("ask", "a/b"), rule("deny", "a")],
        [rule("ask", "a/b/*.c"), rule("deny", "a/**")],
        [rule("ask", "a*b"), rule("deny", "a*")],
        [
            rule("ask", "a"),
            rule("deny", "a", actions=READS),
            rule("deny", "a", actions=WRITES | {"list"}),
        ],
        [rule("ask", "a", agents=("g-*",)), rule("deny", "a", agents=("G*",))],
        [rule("ask", "a", agents=("g?",)), rule("deny", "*")],
        [rule("ask", "x/*.pem", actions=READS)],
        [rule("ask", "/project/x.pem", root="/", actions=READS)],
        [rule("allow", "*.pem", actions=WRITES)],
        [rule("allow", "src")],
        [rule("allow", "*.pem")],
    ],
)
def test_a_rule_that_can_never_decide_is_found(rules: list[Rule]) -> None:
    ((found, said),) = useless(rules, [KEYS], strict=frozenset())
    assert found is rules[0]
    assert said


def test_an_allow_does_something_where_the_default_is_another() -> None:
    allow = rule("allow", "src", actions=WRITES)
    assert list(useless([allow], [KEYS], strict=frozenset({"write"}))) == []
    assert [said for _rule, said in useless([allow], [KEYS], strict=READS) if "create" in said]


def test_an_allow_that_loses_to_a_built_in_rule_is_told_how_to_set_it_aside() -> None:
    ((_rule, said),) = useless([rule("allow", "*.pem")], [KEYS], strict=ACTIONS - {"list"})
    assert 'lifts = ["key stores"]' in said


@pytest.mark.parametrize(
    ("allow", "idle"),
    [
        (rule("allow", "**/*.pem", lifts=LIFTING), False),
        (rule("allow", "/.ssh/config", lifts=LIFTING), False),
        (rule("allow", "*.txt", "!x.txt", lifts=LIFTING), False),
        (rule("allow", "/home/u/x/a.pem", root="/", lifts=LIFTING), False),
        (rule("allow", "/tests/a", lifts=LIFTING), True),
        (rule("allow", "/x.pem", actions=frozenset({"list"}), lifts=LIFTING), True),
    ],
)
def test_setting_aside_what_says_nothing_is_found(allow: Rule, idle: bool) -> None:
    anchored = Rule("key stores", "deny", ("/*.pem", "/.ssh"), "keys", actions=READS | WRITES)
    assert bool(list(idle_lifts(allow, [anchored]))) == idle


def test_a_rule_about_signs_can_always_be_set_aside() -> None:
    signs = Rule("private keys", "deny", (), "keys", signs=frozenset({"private key"}))
    assert list(idle_lifts(rule("allow", "a", lifts=frozenset({"private keys"})), [signs])) == []


# -- expectations -----------------------------------------------------------------------------


def test_an_expectation_that_is_met_says_nothing() -> None:
    policy = Policy([KEYS])
    met = RuleCheck(("a.pem", "/srv/b.pem"), ("read", "write"), "deny", rule="key stores")
    assert list(unmet(met, policy, "/project")) == []


@pytest.mark.parametrize(
    "expectation",
    [
        RuleCheck(("a.pem",), ("read",), "allow"),
        RuleCheck(("a.txt",), ("read",), "deny", rule="key stores"),
        RuleCheck(("a.pem",), ("read",), "deny", rule="other"),
        RuleCheck(("a.txt", "a.pem"), ("list", "read"), "allow"),
    ],
)
def test_an_expectation_that_is_not_met_is_told_by_path_and_action(
    expectation: RuleCheck,
) -> None:
    (said,) = unmet(expectation, Policy([KEYS]), "/project")
    assert said.startswith(expectation.paths[-1])


# -- at random --------------------------------------------------------------------------------

SMALL = ("a", "b", "ab", "aab", "c", "x")
UNIVERSE = [
    *((one,) for one in SMALL),
    *((one, two) for one in SMALL for two in SMALL),
    *((one, two, three) for one in SMALL for two in SMALL for three in SMALL),
]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("count", [40, *[150] * often(0, 1)])
def test_what_is_said_to_take_nothing_back_changes_nothing(count: int) -> None:
    chance = random.Random(6)
    idle = 0
    for _ in range(count):
        patterns = [
            ("!" if number and chance.random() < 0.6 else "") + random_pattern(chance)
            for number in range(chance.randint(2, 4))
        ]
        if chance.random() < 0.5:
            patterns[0] += "/**"
        for number, _said in wrong_list(patterns):
            idle += 1
            less = settled(patterns[:number], until=number + 1)
            more = settled(patterns[: number + 1])
            for path in UNIVERSE:
                assert covers(less, path) <= covers(more, path), (patterns, number, path)
    assert idle > count // 4


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("count", [75, *[300] * often(0, 1)])
def test_what_is_said_never_to_decide_decides_nothing(count: int) -> None:
    chance = random.Random(7)
    idle = 0
    for _ in range(count):
        rules = [
            rule(
                chance.choice(("deny", "ask", "allow")),
                *(random_pattern(chance) for _ in range(chance.randint(1, 2))),
                name=str(number),
                actions=chance.choice((READS, WRITES, READS | WRITES)),
                agents=chance.choice((("*",), ("g*",), ("g-?",))),
            )
            for number in range(4)
        ]
        policy = Policy(rules)
        found = {each.name for each, _said in useless(rules, strict=ACTIONS)}
        idle += len(found)
        for path in UNIVERSE if found else ():
            for action in ("read", "write"):
                for agent in ("", "g-1", "gx"):
                    request = AccessRequest("/project", "/".join(path), action, agent)
                    assert decide(request, policy).rule.name not in found, (rules, path)
    assert idle > count // 15


@pytest.mark.parametrize(
    ("weak", "strong"),
    [
        (("*.pem",), ("[!a]*.pem",)),
        (("?x",), ("[!a-c]x",)),
        (("[a-d]",), ("[!d]",)),
        (("b",), ("/?", "/b")),
        (("*",), ("?", "??", "???")),
        (("a/**/b",), ("a/?/b", "a/b", "a/?/?/b")),
    ],
)
def test_what_classes_and_lengths_leave_out_keeps_a_rule_alive(
    weak: tuple[str, ...], strong: tuple[str, ...]
) -> None:
    assert not list(useless([rule("ask", *weak), rule("deny", *strong)], strict=frozenset()))
