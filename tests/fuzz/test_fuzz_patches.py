"""A bounded form of the fuzzing that `python -m tests.fuzz.fuzz_patches` does for longer."""

from __future__ import annotations

import pytest

from filepact.errors import FilepactError
from filepact.text.patch import parse
from tests.fuzz.fuzz_patches import run, seeds
from tests.hostile.sweeps import often


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("seed", [1, *[2] * often(0, 1)])
def test_damaged_patches_are_applied_or_refused_and_never_crash(seed: int):
    tally = run(seed=seed, cases=3_000)
    assert tally.applied > 100
    assert tally.refused > 100
    assert tally.malformed > 100


def test_the_seeds_are_patches():
    for source in seeds():
        try:
            assert parse(source)
        except FilepactError as error:  # pragma: no cover - says which one
            pytest.fail(f"{error.message}\n{source}")
