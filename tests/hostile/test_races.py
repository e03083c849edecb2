"""Swap races and random paths in the bounded form; `scripts/deep` runs the long one."""

from __future__ import annotations

import pytest

from tests.hostile import path_fuzz, races
from tests.hostile.sweeps import often


@pytest.mark.parametrize("operation", races.OPERATIONS)
def test_a_short_exchange_of_names_does_not_lead_outside(operation: races.Operation) -> None:
    done = 0
    for _ in range(50):  # On a busy machine, 200 tries may all meet an exchange and be refused.
        results = [
            races.run(operation, "folder and link", 200, resolver=one) for one in races.RESOLVERS
        ]
        assert [result.escapes for result in results] == [0, 0]
        done += sum(result.done for result in results)
        if done:
            break
    assert done > 0


@pytest.mark.slow
@pytest.mark.parametrize("operation", races.OPERATIONS)
@pytest.mark.parametrize("shape", races.SHAPES[often(1, 0) :])  # the first is raced above
@pytest.mark.timeout(300)
def test_no_exchange_of_names_leads_outside(operation: races.Operation, shape: races.Shape) -> None:
    results = [
        races.run(operation, shape, often(1_200, 3_000), resolver=resolver)
        for resolver in races.RESOLVERS
    ]
    assert [result.escapes for result in results] == [0, 0]
    # A race in which every try is refused, or none meets an exchange, shows nothing.
    assert sum(result.done for result in results) > 0


def test_no_path_out_of_some_thousands_leads_outside() -> None:
    result = path_fuzz.run(2_000, seed=1)
    assert result.escapes == ()
    assert result.found > 100
    assert result.refused > 100


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_random_path_leads_outside() -> None:
    result = path_fuzz.run(often(10_000, 200_000), seed=1)
    assert result.escapes == ()
    assert result.found > often(500, 10_000)
    assert result.refused > often(1_000, 10_000)
