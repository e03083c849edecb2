"""Every check of the guard taken out in turn, and some test that notices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hostile.removals import checks, survivors
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_check_can_be_taken_out_unnoticed(tmp_path: Path) -> None:
    shares = often(12, 1)
    tried, unnoticed = survivors(tmp_path, parts=shares)
    assert tried == len(list(checks())[::shares]) > 40 // shares
    assert list(map(str, unnoticed)) == []


def test_a_check_that_is_taken_out_is_missed(tmp_path: Path) -> None:
    tried, unnoticed = survivors(tmp_path, parts=len(list(checks())))
    assert tried == 1
    assert unnoticed == []
