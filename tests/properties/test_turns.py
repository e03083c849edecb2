"""What an agent did in a turn goes back, and what a person did meanwhile stays; also if something is killed."""

from __future__ import annotations

import shutil
import sys

import pytest

from tests.properties import killed_turns, turns

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("git") is None, reason="namespaces are Linux's"
    ),
    pytest.mark.slow,
]


@pytest.mark.parametrize(("door", "tries"), [("hook", 12), ("off", 2), ("guard", 2), ("layers", 2)])
def test_only_the_agents_changes_go_back(door: turns.Door, tries: int) -> None:
    count = turns.through_doors(tries, 1, [door])
    assert not count.wrong, count.said
    assert count.acted > tries // 2


@pytest.mark.parametrize("victim", killed_turns.VICTIMS)
def test_a_kill_at_any_moment_loses_nothing_of_a_person(victim: str) -> None:
    count = killed_turns.through_kills(1, 1, [victim])
    assert not count.wrong, count.said
