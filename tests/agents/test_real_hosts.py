"""What the models of Claude Code and Codex are shown of the answers of `filepact mcp`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.agents.host_scenes import SCENES
from tests.agents.hosts import BOUNDED, Host
from tests.agents.installed import or_skip
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow(after=1), pytest.mark.timeout(600)]


# The texts are the same for both, which differ in how they show them: that is seen with one scene of the second.
PAIRS = [(host, scene) for host in BOUNDED for scene in SCENES]
PAIRS = PAIRS if often(0, 1) else PAIRS[: len(SCENES) + 1]


@pytest.fixture
def host(request: pytest.FixtureRequest) -> Host:
    chosen: Host = request.param
    with or_skip():
        chosen.command()
    return chosen


@pytest.mark.parametrize(
    ("host", "scene"),
    PAIRS,
    ids=[f"{host.name}-{scene}" for host, scene in PAIRS],
    indirect=["host"],
)
def test_a_model_is_shown_all_that_an_answer_says(host: Host, scene: str, tmp_path: Path) -> None:
    SCENES[scene](host, tmp_path / "scene")
