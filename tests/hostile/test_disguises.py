"""No spelling of a protected name passes that some system takes for the name."""

from __future__ import annotations

import pytest

from filepact.domain.policy import AccessRequest, Policy, decide
from filepact.domain.protected import BUILT_IN_RULES
from tests.hostile.disguises import (
    SHORT_NAMES,
    SPELLINGS,
    example,
    passed,
    protected,
    short,
    tells_its_beginning,
)

POLICY = Policy(BUILT_IN_RULES)


def test_every_pattern_of_the_built_in_rules_covers_its_example() -> None:
    """A pattern that another one of its rule spares, or that cannot match, protects nothing."""
    rules = {rule.name: Policy([rule]) for rule in BUILT_IN_RULES}
    idle = [
        (name.rule.name, name.pattern)
        for name in protected()
        if decide(
            AccessRequest(
                "/project", name.path, "read" if "read" in name.rule.actions else "write"
            ),
            rules[name.rule.name] if name.rule.name != "project secrets" else POLICY,
        ).verdict
        == "allow"
    ]
    assert idle == []


@pytest.mark.slow(after=len(SPELLINGS) + 1)
@pytest.mark.parametrize("disguise", SPELLINGS | SHORT_NAMES)
def test_a_disguised_name_is_decided_as_the_name_itself(disguise: str) -> None:
    """Every third name, others for each disguise; `scripts/deep` takes all of them."""
    number = [*(SPELLINGS | SHORT_NAMES)].index(disguise)
    change = (SPELLINGS | SHORT_NAMES)[disguise]
    assert list(passed(POLICY, disguise, change, slice(number % 3, None, 3))) == []


def test_each_disguise_changes_most_names() -> None:
    names = [name.path for name in protected()]
    for disguise, change in SPELLINGS.items():
        assert sum(change(path) != path for path in names) > len(names) / 2, disguise
    told = [name for name in protected() if tells_its_beginning(name.pattern)]
    assert len(told) > 0.9 * len(names)
    assert sum(short(name.path) != name.path for name in told) > len(told) / 2


def test_examples_and_short_names_are_made_as_file_systems_make_them() -> None:
    assert example("**/.aws/*.pem") == ".aws/w.pem"
    assert example("*service[-_]account*.json") == "wservice-accountw.json"
    assert example("/cookies") == "cookies"
    assert short(".git/config") == "git~1/config"
    assert short(".env.local") == "env~1.loc"
    assert short("secrets.yaml", "12") == "secre~12.yam"
    assert short("secrets.yaml", digest="0f1e") == "se0f1e~1.yam"
    assert short("id_rsa") == "id_rsa"
