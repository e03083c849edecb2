"""Swap races and random paths in the bounded form; `scripts/deep` runs the long one."""

from __future__ import annotations

import pytest

from tests.hostile import path_fuzz, races

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("operation", races.OPERATIONS)
@pytest.mark.parametrize("shape", races.SHAPES)
@pytest.mark.timeout(300)
def test_no_exchange_of_names_leads_outside(operation: races.Operation, shape: races.Shape) -> None:
    results = [
        races.run(operation, shape, 10_000, resolver=resolver) for resolver in races.RESOLVERS
    ]
    assert [result.escapes for result in results] == [0, 0]
    # A race in which every try is refused, or none meets an exchange, shows nothing.
    assert sum(result.done for result in results) > 0


@pytest.mark.timeout(300)
def test_no_random_path_leads_outside() -> None:
    result = path_fuzz.run(200_000, seed=1)
    assert result.escapes == ()
    assert result.found > 10_000
    assert result.refused > 10_000
