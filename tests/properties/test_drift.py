"""Between a look and a yes anything may move; only what was looked at is done."""

from __future__ import annotations

import pytest

from tests.properties.drift import run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_what_was_not_shown_is_not_done() -> None:
    count = run(tries=150, seed=1)
    # Neither refusing everything nor moving nothing would show it.
    assert count["done"] > 20
    assert count["done in part"] > 5
    assert count["the rest done"] > 0
    assert count["done in advance"] > 0
    assert count["PROPOSAL_CHANGED"] > 10
    assert count["PATH_BLOCKED"] > 0
    assert count["STALE_FILE"] > 0
