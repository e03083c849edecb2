"""The paper plan: the same each time, and what the document says."""

from __future__ import annotations

from bench.capacity import contention, fleet, lines
from tests.architecture.project import ROOT


def test_the_tables_of_the_document_are_those_of_the_simulation() -> None:
    text = (ROOT / "docs" / "explanation" / "scale.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines() if line and line not in text] == []


def test_a_simulation_is_the_same_each_time() -> None:
    assert contention(4, 0.1, 0.01, 20.0) == contention(4, 0.1, 0.01, 20.0)
    assert fleet(1_000) == fleet(1_000)


def test_more_writers_come_too_late_more_often_and_a_slower_server_does_less() -> None:
    alone, many = contention(1, 0.01, 0.01, 20.0), contention(16, 0.01, 0.01, 20.0)
    assert alone.again == 0 < many.again
    assert contention(16, 0.01, 0.1, 20.0).done < many.done


def test_a_fleet_grows_with_its_sessions() -> None:
    small, large = fleet(1_000), fleet(100_000)
    assert 90 * small.commits > large.commits > 50 * small.commits
    assert large.second * 60 > 3_000_000  # a million a minute on average, thrice at the peak
    assert small.shards <= large.shards
