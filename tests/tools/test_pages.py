"""Answers of the reading tools fit the page that their reader takes, and lead on to the rest."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Session
from filepact.tools.registry import Call, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Tool = Callable[..., Outcome]

SESSION = Session("s1", Actor("agent", "tester"))
LINES = [f"line {number} {'x' * (number % 90)}" for number in range(1, 3_001)]


@pytest.fixture
def tool(tmp_path: Path) -> Iterator[Tool]:
    root = tmp_path / "root"
    root.mkdir()
    (root / "long.txt").write_text("\n".join(LINES) + "\n")
    with closing(open_workspace([str(root)], state_dir=str(tmp_path / "state"))) as workspace:
        toolbox = open_toolbox(workspace)

        def call(name: str, page: int, /, **arguments: object) -> Outcome:
            return toolbox.call(name, arguments, Call(SESSION, page=page))

        yield call


@pytest.mark.parametrize("page", [2_000, 9_000, 40_000])
def test_a_file_is_read_page_by_page_and_every_line_comes_once(tool: Tool, page: int):
    read: list[str] = []
    offset: int | None = 0
    while offset is not None:
        answer = tool("read_file", page, path="long.txt", offset=offset, numbers=False).text
        assert len(answer) <= page
        *lines, footer = answer.split("\n")
        read += lines
        following = re.search(r"next: offset=(\d+)", footer)
        offset = int(following[1]) if following else None
    assert read == LINES


@pytest.mark.parametrize("page", [2_000, 9_000, 40_000])
def test_a_search_is_read_page_by_page_and_every_match_comes_once(tool: Tool, page: int):
    read: list[str] = []
    offset: int | None = 0
    while offset is not None:
        answer = tool("grep", page, pattern="^line", max_results=10_000, offset=offset).text
        assert len(answer) <= page
        *lines, footer = answer.split("\n")
        read += lines
        following = re.search(r"next: offset=(\d+)", footer)
        offset = int(following[1]) if following else None
    assert read == [f"long.txt:{at}: {line}" for at, line in enumerate(LINES, start=1)]
