"""What the built-in rules say about names, plain and in disguise."""

from __future__ import annotations

import pytest

from filepact.domain.policy import BUILT_IN_RULES, Rule, decide, key, suspicion

SECRET = [
    ".env",
    ".env.local",
    ".env.production",
    "config/.env.staging",
    "prod.env",
    ".envrc",
    "server.pem",
    "deep/down/tls.key",
    "id_rsa",
    "id_ed25519",
    "deploy_rsa",
    "credentials.json",
    "service-account.json",
    ".ssh/config",
    "home/.ssh/known_hosts",
    ".gnupg/pubring.kbx",
    ".aws/credentials",
    "x/.docker/config.json",
    "store.p12",
    "terraform.tfstate",
    ".bash_history",
]

SHARED = [
    ".env.example",
    ".env.sample",
    ".env.template",
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


@pytest.mark.parametrize("path", SECRET)
@pytest.mark.parametrize("action", ["read", "write", "create", "delete"])
def test_secret_names_are_denied(path: str, action: str) -> None:
    decision = decide(path, action)
    assert decision.verdict == "deny"
    assert decision.rule == "secret files"


@pytest.mark.parametrize("path", SHARED)
def test_names_that_only_look_alike_are_allowed(path: str) -> None:
    assert decide(path, "read").verdict == "allow"
    assert decide(path, "write").verdict == "allow"


@pytest.mark.parametrize("path", DISGUISES)
def test_a_disguised_secret_name_is_denied(path: str) -> None:
    assert decide(path, "read").verdict == "deny"


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".git", ".GIT/config", "git~1/config", "sub/.hg/hgrc"]
)
def test_version_control_internals_can_be_read_but_not_changed(path: str) -> None:
    assert decide(path, "write").verdict == "deny"
    assert decide(path, "create").verdict == "deny"
    assert decide(path, "read").verdict == "allow"


def test_a_name_that_begins_like_git_is_free() -> None:
    assert decide(".github/CODEOWNERS", "write").verdict == "allow"
    assert decide(".gitignore", "write").verdict == "allow"


def test_deny_beats_ask_beats_allow_whatever_the_order() -> None:
    rules = tuple(
        Rule(name=verdict, verdict=verdict, actions=frozenset({"read"}), why="", ends=(".txt",))
        for verdict in ("allow", "ask", "deny")
    )
    for order in (rules, rules[::-1]):
        assert decide("a.txt", "read", order).verdict == "deny"
        assert decide("a.txt", "read", tuple(r for r in order if r.name != "deny")).verdict == "ask"
    assert decide("a.md", "read", rules).rule == "default"


def test_a_key_is_what_a_lenient_system_would_take_the_name_for() -> None:
    assert key("README.md") == "readme.md"
    assert key("..") == ".."
    assert key(":odd") == ":odd"


def test_every_built_in_pattern_is_in_key_form() -> None:
    for rule in BUILT_IN_RULES:
        for name in (*rule.names, *rule.folders, *rule.spared):
            assert key(name) == name
        for piece in (*rule.starts, *rule.ends, *rule.spared_ends, *rule.tails):
            assert piece == piece.lower()


@pytest.mark.parametrize("path", [*SECRET, *SHARED, *DISGUISES, ".git/hooks", "plain.txt"])
@pytest.mark.parametrize("action", ["read", "write"])
def test_whatever_is_denied_by_its_last_part_is_suspicious(path: str, action: str) -> None:
    suspicious = suspicion(action, BUILT_IN_RULES)
    above, _, last = path.rpartition("/")
    by_itself = decide(path, action).verdict == "deny"
    by_folder = bool(above) and decide(above, action).verdict == "deny"
    if by_itself and not by_folder:
        assert suspicious(last)
