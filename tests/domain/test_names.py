"""A name as rules compare it, and the long names that a short one may stand for."""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.domain import names
from filepact.domain.names import ShortNames, is_plain, is_short, key
from filepact.domain.policy import AccessRequest, Policy, Rule, decide
from filepact.text.pattern_set import PatternSet
from tests.hostile.sweeps import often

SAME = [
    (".env", ".ENV"),
    (".env", ".Env"),
    (".env", "\uff0eenv"),
    (".env", "\u2024env"),
    (".env", ".e\uff4ev"),
    (".env", ".en\u200bv"),
    (".env", "\ufeff.env"),
    (".env", ".env\ufe0f"),
    (".env", ".e\u034fnv"),
    (".env", ".e\u3164nv"),
    (".env", ".e\uffa0nv"),
    (".env", ".e\u115fnv"),
    (".env", ".e\u17b4nv"),
    (".env", ".e\u180bnv"),
    (".env", ".e\u2065nv"),
    (".env", ".e\ufff0nv"),
    (".env", ".e\U000e0061nv"),
    (".env", ".e\U000e01efnv"),
    (".env", ".e\U000e0fffnv"),
    (".env", ".env."),
    (".env", ".env. . ."),
    (".env", ".env "),
    (".env", ".env\u00a0"),
    (".env", ".env:stream"),
    (".env", ".env::$DATA"),
    (".env", ".env. :x:$DATA"),
    (".git", ".git::$INDEX_ALLOCATION"),
    (".git", ".g\u200cit"),
    (".git", ".g\u1d62t"),
    (".ssh", ".\u017fsh"),
    (".kube", ".\u212aube"),
    ("caf\u00e9.env", "cafe\u0301.env"),
    ("caf\u00e9.env", "cafe\u034f\u0301.env"),
    ("caf\u00e9.env", "CAFE\u0301.ENV"),
    ("stra\u00dfe", "STRASSE"),
    ("\u1f80", "\u1f00\u03b9"),
    ("office", "o\ufb03ce"),
]

DIFFERENT = [
    (".git", ".g\u0131t"),  # dotless i is another letter everywhere
    (".git", ".g\u0456t"),  # Cyrillic i only looks like one
    (".env", ".env\u0301"),
    (".env", " .env"),
    (".env", ".en v"),
    (".env", "env"),
    (".env", ".%65nv"),
    (".env", ".env\t"),
    (".env", "_env"),
]


@pytest.mark.parametrize(("name", "spelling"), SAME)
def test_spellings_that_some_system_takes_for_one_name_have_one_key(
    name: str, spelling: str
) -> None:
    assert key(spelling) == key(name)


@pytest.mark.parametrize(("name", "other"), DIFFERENT)
def test_names_that_no_system_confuses_have_keys_of_their_own(name: str, other: str) -> None:
    assert key(other) != key(name)


def test_a_name_is_never_cut_down_to_nothing() -> None:
    assert [key(name) for name in (".", "..", "...", " ", ":x")] == [".", "..", "...", " ", ":x"]


@given(st.text(max_size=12))
def test_the_key_of_a_key_is_the_key(name: str) -> None:
    assert key(key(name)) == key(name)


@given(st.text(max_size=12))
def test_case_and_decomposition_never_change_a_key(name: str) -> None:
    assert key(name.casefold()) == key(name)
    assert key(unicodedata.normalize("NFD", name)) == key(name)
    assert key(unicodedata.normalize("NFKC", name)) == key(name)


@pytest.mark.slow
def test_every_single_character_has_a_stable_key() -> None:
    unstable = [
        hex(point)
        for point in range(0, sys.maxunicode + 1, often(17, 1))
        if not 0xD800 <= point < 0xE000 and (once := key(f"a{chr(point)}\u0301b")) != key(once)
    ]
    key.cache_clear()
    assert unstable == []


@given(st.text(st.characters(max_codepoint=127), max_size=8))
def test_a_plain_name_is_its_key_in_lower_case(name: str) -> None:
    if is_plain(name):
        assert key(name) == name.lower()


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("git~1", True),
        ("secret~1.yam", True),
        ("secre~12.yam", True),
        ("env~~1", True),
        ("secrets~1.yam", False),
        ("secret~12.yam", False),
        ("head~", False),
        ("~1", False),
        ("a~1.yaml", False),
        ("pkg_1.0~1.deb", False),
        ("notes.txt.~1~", False),
    ],
)
def test_a_short_name_has_eight_and_three_characters_at_most(name: str, shape: bool) -> None:
    assert is_short(name) is shape


LISTS = (
    ("secrets.yaml", "!secrets.example.yaml"),
    (".env.*", "**/.config/gh/hosts.yml"),
    ("*.tfvars", "*-credentials.json"),
    ("id_rsa*",),
    ("a+b=c file.conf",),
)


@pytest.mark.parametrize(
    ("path", "lists"),
    [
        ("secret~1.yam", {0}),
        ("SECRET~4.YAM", {0}),
        ("secre~10.yam", {0}),
        ("sec~1000.yam", {0}),
        ("se~12345.yam", {0}),
        ("se0af3~1.yam", {0}),
        ("se0ag3~1.yam", set()),
        ("secret~1.tom", set()),
        ("secrex~1.yam", set()),
        ("env~1.loc", {1}),
        ("envpro~1.loc", {1}),
        ("en12cd~1.loc", {1}),
        ("config~1/gh/hosts.yml", {1}),
        ("config~1/gh/hosts~1.yml", {1}),
        (".config/gh/hosts.yml", {1}),
        ("other~1/gh/hosts.yml", set()),
        ("terraf~1.tfv", {2}),
        ("id_rsa~1", {3}),
        ("id_rsa~1.old", {3}),
        ("a_b_cf~1.con", {4}),
        ("ab~1.con", set()),
    ],
)
def test_a_short_name_is_read_as_every_name_that_it_may_stand_for(
    path: str, lists: set[int]
) -> None:
    parts = tuple(key(part) for part in path.split("/"))
    assert ShortNames(LISTS).covering(parts, PatternSet(LISTS)) == lists


def test_a_path_of_many_short_names_is_covered_by_everything() -> None:
    lists = ([f"secret{number}.yaml" for number in range(50)],)
    path = ("secret~1.yam",) * 8
    assert ShortNames(lists).covering(path, PatternSet(lists)) == {0}
    harmless = ("zzzzzz~1.yam",) * 8
    assert ShortNames(lists).covering(harmless, PatternSet(lists)) == set()


def test_a_short_name_is_compared_only_with_names_that_begin_and_end_as_it_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Counter[str]()

    def long_name(part: str, *more: Any) -> str | None:
        asked[part] += 1
        return compared(part, *more)

    compared = names._long_name
    monkeypatch.setattr(names, "_long_name", long_name)
    lists = [[f"{letter}{number}-secret.yaml" for number in range(9) for letter in "abcdef"]]
    assert ShortNames(lists).readings("a1-sec~1.yam") == {"a1-secret.yaml"}
    assert set(asked) == {f"a{number}-secret.yaml" for number in range(9)}


def test_a_short_name_may_be_refused_for_what_it_may_stand_for_but_is_never_allowed() -> None:
    refuse = Rule("deny", "deny", ("confidential-plans",), "private")
    allow = Rule(
        "allow",
        "allow",
        ("confidential-tests/*.md",),
        "tests",
        lifts=frozenset({"built"}),
        layer="person",
    )
    built = Rule("built", "deny", ("*.md",), "no")
    policy = Policy([refuse, allow, built])
    assert decide(AccessRequest("/w", "CONFID~1/x.txt", "read"), policy).rule.name == "deny"
    assert decide(AccessRequest("/w", "confidential-tests/x.md", "read"), policy).verdict == "allow"
    assert decide(AccessRequest("/w", "CONFID~2/x.md", "read"), policy).verdict == "deny"
    assert (
        decide(AccessRequest("/w", "CONFID~2/x.md", "read"), Policy([allow, built])).verdict
        == "deny"
    )


def test_a_short_name_is_suspicious() -> None:
    suspicious = Policy([Rule("deny", "deny", ("secrets.yaml",), "private")]).suspicion("read")
    assert suspicious("SECRET~1.YAM")
    assert suspicious("secrets.yaml")
    assert not suspicious("notes.yaml")
