"""Which rule decides, and what the built-in rules say about names."""

from __future__ import annotations

import random
import re

import pytest

from filepact.domain.names import are_plain, is_plain
from filepact.domain.policy import AccessRequest, Policy, Rule, decide
from filepact.domain.protected import BUILT_IN_RULES, SIGN_RULES

BUILT_IN = Policy((*BUILT_IN_RULES, *SIGN_RULES))

SECRET = [
    ".env",
    ".env.local",
    ".env.production",
    "config/.env.staging",
    "server.pem",
    "deep/down/tls.key",
    "id_rsa",
    "id_ed25519",
    ".ssh/config",
    "home/.ssh/known_hosts",
]

SHARED = [
    ".env.example",
    ".env.sample",
    ".envoy.yaml",
    "environment.py",
    "src/keys.py",
    "monkey.py",
    "tokenizer.json",
    "docker/config.json",
    "credentials.py",
    "id_rsa.pub",
    "settings.py",
    "keyboard.keymap",
]

DISGUISES = [
    ".ENV",
    ".Env.Local",
    "SERVER.PEM",
    ".env.",
    ".env ",
    ".env::$DATA",
    ".e\u200bnv",
    "\uff0eenv",
    ".env\ufe0f",
    "id_r\u017fa",
    "tls.\u212aey",
    ".SSH/config",
]


def verdict(path: str, action: str, policy: Policy = BUILT_IN, agent: str = "", **more) -> str:
    return decide(AccessRequest("/project", path, action, agent, **more), policy).verdict


@pytest.mark.parametrize("path", SECRET)
def test_secret_names_are_denied(path: str) -> None:
    assert verdict(path, "read") == "deny"
    assert verdict(path, "delete") == "deny"
    assert verdict(path, "write") != "allow"
    assert verdict(path, "create") != "allow"


@pytest.mark.parametrize("path", SHARED)
def test_names_that_only_look_alike_are_allowed(path: str) -> None:
    assert verdict(path, "read") == "allow"
    assert verdict(path, "write") == "allow"


@pytest.mark.parametrize("path", DISGUISES)
def test_a_disguised_secret_name_is_denied(path: str) -> None:
    assert verdict(path, "read") == "deny"


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".git", ".GIT/index", "git~1/index", "sub/.hg/hgrc"]
)
def test_version_control_internals_can_be_read_but_not_changed(path: str) -> None:
    assert verdict(path, "write") == "deny"
    assert verdict(path, "create") == "deny"
    assert verdict(path, "read") == "allow"


def test_a_name_that_begins_like_git_is_free() -> None:
    assert verdict(".gitted", "write") == "allow"
    assert verdict(".gitkeep", "write") == "allow"


def rule(says: str, *paths: str, **more) -> Rule:
    return Rule(more.pop("name", says), says, paths, "because", **more)


def test_deny_beats_ask_beats_allow_whatever_the_order() -> None:
    rules = [rule(says, "*.txt", layer="person") for says in ("allow", "ask", "deny")]
    for order in (rules, rules[::-1]):
        assert verdict("a.txt", "read", Policy(order)) == "deny"
        without = [each for each in order if each.verdict != "deny"]
        assert verdict("a.txt", "read", Policy(without)) == "ask"
    found = decide(AccessRequest("/project", "a.md", "read"), Policy(rules))
    assert (found.verdict, found.rule.name, found.rule.place) == ("allow", "default", "built-in")


def test_an_allow_sets_aside_only_the_built_in_rules_that_it_names() -> None:
    lifting = rule("allow", "tests/*.pem", lifts=frozenset({"key stores"}), layer="person")
    policy = Policy((*BUILT_IN_RULES, lifting))
    assert verdict("tests/a.pem", "read", policy) == "allow"
    assert verdict("a.pem", "read", policy) == "deny"
    other = rule("allow", "tests/*.pem", lifts=frozenset({"manifests"}), layer="person")
    assert verdict("tests/a.pem", "read", Policy((*BUILT_IN_RULES, other))) == "deny"


def test_nobody_s_own_rule_is_set_aside_even_under_the_name_of_a_built_in_one() -> None:
    own = rule("deny", "*.pem", name="key stores", layer="administrator")
    lifting = rule("allow", "*.pem", lifts=frozenset({"key stores"}), layer="person")
    assert verdict("a.pem", "read", Policy((own, lifting))) == "deny"


def test_an_allow_for_another_action_or_agent_lifts_nothing() -> None:
    lifting = rule(
        "allow",
        "*.pem",
        lifts=frozenset({"key stores"}),
        layer="person",
        actions=frozenset({"read"}),
        agents=("Helper*",),
    )
    policy = Policy((*BUILT_IN_RULES, lifting))
    assert verdict("a.pem", "read", policy, "helper-cli") == "allow"
    assert verdict("a.pem", "write", policy, "helper-cli") == "deny"
    assert verdict("a.pem", "read", policy, "other") == "deny"
    assert verdict("a.pem", "read", policy) == "deny"


def test_a_fallback_counts_only_where_nothing_else_does() -> None:
    policy = Policy([rule("allow", "docs", layer="person")], [rule("ask", "**", layer="person")])
    assert verdict("docs/a.md", "write", policy) == "allow"
    assert verdict("src/a.py", "write", policy) == "ask"


def test_a_built_in_ask_does_not_take_the_place_of_a_default_denial() -> None:
    denying = [rule("deny", "**", layer="person", actions=frozenset({"write"}))]
    policy = Policy(BUILT_IN_RULES, denying)
    assert verdict("AGENTS.md", "write", policy) == "deny"
    assert verdict("AGENTS.md", "write", Policy(BUILT_IN_RULES)) == "ask"
    allowing = rule("allow", "AGENTS.md", layer="person", lifts=frozenset({"control files"}))
    assert verdict("AGENTS.md", "write", Policy((*BUILT_IN_RULES, allowing), denying)) == "allow"


def test_a_rule_with_a_root_counts_below_it_only_and_from_there() -> None:
    policy = Policy([rule("deny", "/private", root="/project/app", layer="project")])
    assert verdict("app/private/a", "read", policy) == "deny"
    assert verdict("private/a", "read", policy) == "allow"
    inside = AccessRequest("/project/app/private", "a", "read")
    assert decide(inside, policy).verdict == "deny"
    assert decide(AccessRequest("/elsewhere", "private/a", "read"), policy).verdict == "allow"


def test_patterns_are_compared_in_the_form_of_names() -> None:
    policy = Policy([rule("deny", "Kunden/*.CSV", "!Kunden/\uff21.csv", layer="person")])
    assert verdict("kunden/b.csv", "read", policy) == "deny"
    assert verdict("KUNDEN/B.CSV", "read", policy) == "deny"
    assert verdict("kunden/a.csv", "read", policy) == "allow"


@pytest.mark.parametrize(
    ("sign", "says"),
    [
        ("private key", "deny"),
        ("hidden characters", "ask"),
        ("look-alike name", "ask"),
        ("executable", "ask"),
    ],
)
def test_what_shows_on_a_change_counts_whatever_its_name(sign: str, says: str) -> None:
    assert verdict("plain.txt", "write", signs=frozenset({sign})) == says
    lifts = frozenset(each.name for each in SIGN_RULES)
    lifting = rule("allow", "plain.txt", lifts=lifts, layer="person")
    policy = Policy((*SIGN_RULES, lifting))
    assert verdict("plain.txt", "write", policy, signs=frozenset({sign})) == "allow"


def test_a_rule_says_where_it_stands() -> None:
    assert (
        rule("deny", "x", layer="person", file="filepact.toml", line=3).place == "filepact.toml:3"
    )


@pytest.mark.parametrize("path", [*SECRET, *SHARED, *DISGUISES, ".git/hooks", "plain.txt"])
@pytest.mark.parametrize("action", ["read", "write"])
def test_whatever_is_refused_by_its_last_part_is_suspicious(path: str, action: str) -> None:
    suspicious = BUILT_IN.suspicion(action)
    above, _, last = path.rpartition("/")
    by_folder = bool(above) and verdict(above, action) != "allow"
    if verdict(path, action) != "allow" and not by_folder:
        assert suspicious(last)


@pytest.mark.parametrize("action", ["read", "write"])
def test_many_names_are_suspected_like_each_of_them(action: str) -> None:
    suspicious = BUILT_IN.suspicion(action)
    parts = [path.rpartition("/")[2] for path in (*SECRET, *SHARED, *DISGUISES)]
    parts += [part.upper() for part in parts] + [f"plain{number}.txt" for number in range(9_000)]
    plain = [part for part in parts if are_plain(part) and "~" not in part]
    for names in (parts, plain):
        found = suspicious.among(names)
        assert found == [at for at, name in enumerate(names) if suspicious(name)]
        assert found


_COPIES = ["#{}#", ".#{}", ".{}.swp", "{}~", "{}.bak", "{}-old", "{}_2", "copy of {}", "{} copy"]
_COPIES += [
    "{} (1)",
    "{} - copy 2.json",
    "{} (3).env",
    "{}.orig~",
    "{}.~1~",
    "{}",
    "{}",
    "x{}",
    "{}y",
]


@pytest.mark.parametrize("action", ["read", "write"])
def test_no_name_is_cleared_that_is_suspicious(action: str) -> None:
    suspicious, dice = BUILT_IN.suspicion(action), random.Random(5)
    words = [pattern.rpartition("/")[2] for rule in BUILT_IN.rules for pattern in rule.paths]
    words = [re.sub(r"\[(.).*\]|[*?]", r"\1", word) for word in words] + ["plain.txt", "a\u00e4"]
    found = 0
    for _ in range(5_000):
        name = dice.choice(words) or "x"
        for _ in range(dice.randint(0, 3)):
            name = dice.choice(_COPIES).format(name)
        name = name.upper() if dice.random() < 0.2 else name
        found += suspicious(name)
        if suspicious(name):
            assert not suspicious.clears(["first.txt", name, "folder/"]), name
    assert found > 1_000


def test_ordinary_names_are_cleared_at_one_look() -> None:
    assert BUILT_IN.suspicion("read").clears(["main.py", "src/", "Makefile", "index_12.json"])


@pytest.mark.parametrize("place", ["/data", "/data/Shop", "/data/shop/state", None])
def test_a_rule_about_a_folder_makes_names_suspicious_in_every_root_that_it_can_cover(
    place: str | None,
) -> None:
    policy = Policy([rule("deny", "**", root=place)])
    assert policy.suspicion("write", "/data/shop")("main.py")
    assert policy.suspicion("write")("main.py")


@pytest.mark.parametrize("place", ["/data/other", "/data/shop2", "/home"])
def test_a_rule_about_a_folder_elsewhere_makes_no_name_suspicious(place: str) -> None:
    policy = Policy([rule("deny", "**", root=place)])
    assert not policy.suspicion("write", "/data/shop")("main.py")
    assert policy.suspicion("write")("main.py")
    assert verdict("main.py", "write", policy) == "allow"


def test_names_that_are_plain_together_are_plain_each() -> None:
    for odd in ("a.", "a ", "a:b", "\u00e4", ""):
        assert not is_plain(odd)
        for names in ([odd, "a"], ["a", odd], ["a", odd, "b"]):
            alone = [name for name in names if name]
            assert not are_plain("/".join(names)) or all(map(is_plain, alone))
    assert are_plain("a/b.c/D")
