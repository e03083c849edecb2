"""Mutated messages of an agent do a client no harm."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from tests.fuzz.fuzz_acp_client import SECRET, fuzz
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("seed", "count"),
    [(1, 500), (2, 500), pytest.param(3, often(1_000, 10_000), marks=pytest.mark.slow)],
)
def test_mutated_messages_are_answered_and_reach_nothing_outside(
    tmp_path: Path, seed: int, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        outcome = fuzz(tmp_path, count=count, seed=seed)
    assert outcome.sent == count
    assert SECRET not in json.dumps(outcome.answers)
    assert {entry.name: entry.read_text() for entry in (tmp_path / "outside").iterdir()} == {
        "secret.txt": SECRET
    }
    assert (tmp_path / "work" / ".env").read_text() == SECRET
    assert {entry.name for entry in tmp_path.iterdir()} == {"work", "outside", "state"}
    details = [one["error"].get("data") or {} for one in outcome.answers if "error" in one]
    assert not any("details" in data or "errors" in data for data in details)
    assert {one["error"]["code"] for one in outcome.answers if "error" in one} <= {
        *(-32600, -32601, -32602, -32603, -32002, -32800)
    }
