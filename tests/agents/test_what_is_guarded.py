"""What the page says is guarded in each agent is what is seen with the real programs, and nothing else."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.agents.guarded import SCENES, seen
from tests.agents.hooked import HOOKED
from tests.agents.installed import or_skip, skip_slow_starter
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from tests.agents.hooked import Hooked

PROJECT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = PROJECT / "docs" / "reference" / "what-is-guarded.md"
COLUMNS: Final = {
    "claude": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
    "opencode": "OpenCode",
    "copilot": "Copilot CLI",
}


def table(number: int) -> list[list[str]]:
    """The rows of a table of the page, without the line below its head."""
    found: list[list[list[str]]] = [[]]
    for line in PAGE.read_text().splitlines():
        if line.startswith("| "):
            found[-1].append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif found[-1]:
            found.append([])
    head, _, *rows = found[number]
    return [head, *rows]


def test_the_page_has_a_row_for_all_that_is_tried_and_explains_every_word() -> None:
    (_, *agents), *rows = table(0)
    assert [name for name, *_ in rows] == [*SCENES]
    assert [*agents] == [*COLUMNS.values(), "Cursor"]
    assert {cells[-1] for cells in rows} == {"not run here"}
    used = {word for _, *cells, _ in rows for word in cells}
    assert used == {word for word, _ in table(1)[1:]}


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
@pytest.mark.parametrize("agent", HOOKED[: often(1, 9)], ids=lambda agent: agent.name)
def test_each_agent_may_do_with_its_own_tools_what_the_table_says(
    agent: Hooked, tmp_path: Path
) -> None:
    skip_slow_starter(agent.name)
    with or_skip():
        agent.command()
    column = 1 + [*COLUMNS].index(agent.name)
    assert seen(agent.name, tmp_path) == {row[0]: row[column] for row in table(0)[1:]}
