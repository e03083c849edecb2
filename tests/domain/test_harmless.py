"""Which changes of manifests steer nothing, and a long list of those that do."""

from __future__ import annotations

import re

import pytest

from filepact.domain.harmless import harmless_places, is_harmless
from tests.domain.protected_page import PAGE
from tests.domain.steering import BUMPS, HARMLESS, STEERING, Case


def said(case: Case) -> str:
    return f"{case.path}: {case.about}"


def numbered(cases: tuple[Case, ...]) -> list[str]:
    return [f"{number} {said(case)}" for number, case in enumerate(cases)]


def passes(case: Case, *, bumps: bool = False) -> bool:
    if case.before is None or case.after is None:
        return False  # the judge is asked about files that are there before and after
    return is_harmless(case.path, case.before, case.after, bumps=bumps)


def test_the_attack_list_is_long() -> None:
    assert len({(case.path, case.before, case.after) for case in STEERING}) >= 300


@pytest.mark.parametrize("case", STEERING, ids=numbered(STEERING))
def test_what_steers_is_not_harmless(case: Case) -> None:
    assert not passes(case)
    if case.before is not None and case.after is not None:
        assert not is_harmless(case.path, case.after, case.before)


@pytest.mark.parametrize("case", HARMLESS, ids=numbered(HARMLESS))
def test_what_steers_nothing_is_harmless(case: Case) -> None:
    assert passes(case)
    assert case.before is not None
    assert is_harmless(case.path, case.after or b"", case.before)


@pytest.mark.parametrize("case", BUMPS, ids=numbered(BUMPS))
def test_another_version_is_harmless_only_where_that_is_said(case: Case) -> None:
    assert not passes(case)
    assert passes(case, bumps=True)


def test_nothing_but_another_version_is_harmless_for_it() -> None:
    found = {said(case) for case in STEERING if passes(case, bumps=True)}
    assert found == {
        'package.json: "left-pad": "^1.4.0"',
        'pyproject.toml: "httpx>=0.28"',
        'Cargo.toml: serde = "1.0.201"',
        'Shop.csproj: Version="3.1.2"',
        "requirements.txt: a version",
    }


def test_the_page_names_every_place() -> None:
    for name in ("package.json", "composer.json", "pyproject.toml", "Cargo.toml", "x.csproj"):
        said = next(
            line
            for line in PAGE.read_text(encoding="utf-8").splitlines()
            if line.startswith("| `") and f"`{name.replace('x.', '*.')}`" in line
        )
        places = {place.rpartition(".")[2] for place in harmless_places(name)}
        assert places == {*re.findall(r"`(\w+)`", said.split("|")[2])}
    assert harmless_places("Dockerfile") == ()
