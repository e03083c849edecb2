"""A bounded form of bench/day_of_agents.py: what real agents make of a day's work with the tools of filepact."""

from __future__ import annotations

import pytest

from bench.day_of_agents import both_days, served_day
from bench.day_parts import PARTS
from tests.agents.installed import or_skip
from tests.hostile.sweeps import often

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# What nobody could make as it was sent: lines that a formatter, and a person, had changed.
CHANGED_BY_OTHERS = {"formatter", "same_line"}
# Gemini CLI alone asks its own person about these, whatever tool changes them.
ASKS_ITSELF = {"gemini": {"waiting"}}


@pytest.mark.parametrize("name", ["codex", *("gemini",) * often(0, 1)])
def test_a_day_ends_as_it_was_meant_and_nothing_is_refused_without_need(name: str) -> None:
    parts = [one for one in [*PARTS][:: often(2, 1)] if one not in ASKS_ITSELF.get(name, ())]
    with or_skip():
        ours = both_days(name, parts)[1] if often(0, 1) else served_day(name, parts)
    assert ours.wrong == []
    assert ours.left == 0
    refused = [part for part, _call, _answer in ours.refused]
    assert len(refused) == len(set(refused))
    assert set(refused) <= CHANGED_BY_OTHERS
    assert ours.waited == (3 if "waiting" in parts else 0)
