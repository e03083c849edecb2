"""Every case of the corpus, through every door that has what it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hostile.corpus import DOORS, Case, load, run_case
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from pathlib import Path

ALL = load()


EVERY_DOOR = {case.id for at, case in enumerate(ALL) if at % often(10, 1) == 0}
"""Cases sent through every door here; `scripts/deep` sends all of them through all."""


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.id, marks=[pytest.mark.slow] if case.number > 1 else [])
        for case in ALL
        if case.number % often(6, 1) == often(1, 0)
    ],
)
def test_every_door_answers_right_and_with_the_same_code(case: Case, tmp_path: Path) -> None:
    codes: dict[str, str] = {}
    for door in DOORS:
        if case.fits(door) and (not codes or case.id in EVERY_DOOR):
            (tmp_path / door).mkdir()
            result = run_case(case, tmp_path / door, door)
            if result.skipped:
                pytest.skip(result.skipped)
            assert not result.wrong, (door, case.why, result.wrong)
            codes[door] = result.code
    assert len(set(codes.values())) == 1, codes


def test_most_cases_can_be_sent_through_several_doors() -> None:
    doors = [sum(case.fits(door) for door in DOORS) for case in ALL]
    assert all(doors)
    assert sum(count == len(DOORS) for count in doors) > len(ALL) / 2
    assert len(EVERY_DOOR) > 100
