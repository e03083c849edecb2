"""The page that says what is guarded in which agent says what was seen with the real programs, and nothing else."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.agents.guarded import GUARDED, SCENES, seen
from tests.agents.hooked import HOOKED
from tests.agents.installed import MissingError

if TYPE_CHECKING:
    from tests.agents.hooked import Hooked

PROJECT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = PROJECT / "docs" / "reference" / "what-is-guarded.md"


def rows() -> list[list[str]]:
    """The cells of the first table of the page, without its head."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_the_page_says_of_each_agent_what_was_seen_with_it() -> None:
    table = {name: cells for name, *cells in rows()[: len(SCENES)]}
    assert [*table] == [*SCENES]
    for column, agent in enumerate(GUARDED):
        assert {name: cells[column] for name, cells in table.items()} == dict(
            zip(SCENES, GUARDED[agent], strict=True)
        )
    assert {cells[len(GUARDED)] for cells in table.values()} == {"not run here"}


def test_the_page_explains_every_word_of_its_table() -> None:
    used = {word for words in GUARDED.values() for word in words}
    explained = {cells[0] for cells in rows()[len(SCENES) :]}
    assert used <= explained


def test_the_page_names_the_versions_that_were_tried() -> None:
    pinned: dict[str, str] = {}
    for file in (PROJECT / "tests" / "node").rglob("package.json"):
        pinned |= json.loads(file.read_text()).get("dependencies", {})
    named = re.findall(r"\d+\.\d+\.\d+", PAGE.read_text())
    for agent in HOOKED:
        found = re.search(r"\d+\.\d+\.\d+", pinned[agent.package])
        assert found is not None
        assert found[0] in named


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="the programs are those for Linux")
@pytest.mark.parametrize("agent", HOOKED, ids=[one.name for one in HOOKED])
def test_each_agent_may_do_with_its_own_tools_what_the_table_says(
    agent: Hooked, tmp_path: Path
) -> None:
    try:
        agent.command()
    except MissingError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    assert seen(agent.name, tmp_path) == dict(zip(SCENES, GUARDED[agent.name], strict=True))
