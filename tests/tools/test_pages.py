"""Answers of the reading tools fit the page that their reader takes, and lead on to the rest."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Approval, Session
from filepact.text.page import size_of
from filepact.tools.registry import Call, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Tool = Callable[..., Outcome]

SESSION = Session("s1", Actor("agent", "tester"))
LINES = [f"line {number} {'x' * (number % 90)}" for number in range(1, 3_001)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "long.txt").write_text("\n".join(LINES) + "\n")
    return folder


@pytest.fixture
def tool(root: Path, tmp_path: Path) -> Iterator[Tool]:
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
        assert size_of(answer) <= page
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
        assert size_of(answer) <= page
        *lines, footer = answer.split("\n")
        read += lines
        following = re.search(r"next: offset=(\d+)", footer)
        offset = int(following[1]) if following else None
    assert read == [f"long.txt:{at}: {line}" for at, line in enumerate(LINES, start=1)]


@pytest.mark.parametrize("page", [2_000, 9_000, 30_000])
def test_names_that_were_found_fit_the_page(tool: Tool, root: Path, page: int):
    make_many(root)
    answer = tool("search_files", page, pattern="**/*", maxResults=10_000).text
    assert size_of(answer) <= page
    *names, footer = answer.split("\n")
    assert len(names) > page / 100
    assert footer.startswith(f"[first {len(names)} of 1,201 files")


@pytest.mark.parametrize("page", [2_000, 9_000, 40_000])
def test_a_drawn_tree_fits_the_page_and_says_how_much_there_is(tool: Tool, root: Path, page: int):
    make_many(root)
    answer = tool("directory_tree", page, depth=5).text
    assert size_of(answer) <= page
    assert answer.count("\n") > page / 100
    assert answer.endswith("\n6 directories, 1,201 files")


@pytest.mark.parametrize(
    ("tool_name", "sent"),
    [("read_file", {"lines": 5_000}), ("grep", {"pattern": ".", "maxResults": 5_000})],
)
def test_a_page_is_counted_in_bytes_and_in_lines_as_hosts_count_it(
    tool: Tool, root: Path, tool_name: str, sent: dict[str, object]
):
    (root / "wide.txt").write_text("языки и 言語\n" * 5_000)
    (root / "short.txt").write_text("x12345\n" * 5_000)
    for name in ("wide.txt", "short.txt"):
        answer = tool(tool_name, 20_000, path=name, **sent).text
        assert 10_000 < size_of(answer) <= 20_000
        assert answer.count("\n") < 1_000


@pytest.mark.parametrize("page", [2_000, 9_000])
def test_news_and_refusals_and_diffs_have_room_on_the_page(root: Path, tmp_path: Path, page: int):
    with closing(
        open_workspace([str(root)], state_dir=str(tmp_path / "state"), mode="preview")
    ) as workspace:
        toolbox = open_toolbox(workspace)
        call = Call(SESSION, page=page)
        reasons = [f"reason {number} {'r' * 200}" for number in range(6)]
        for number, reason in enumerate(reasons):
            sent = {"path": f"{number}.txt", "content": "я\n" * 5_000}
            waits = toolbox.call("write_file", sent, call)
            assert waits.receipt is not None
            assert size_of(waits.text) <= page
            assert "+я" in waits.text
            workspace.reject(waits.receipt["operation"], Approval(Actor("person", "ann"), reason))
        heard = ""
        for _ in reasons:
            for name, sent in (
                ("read_file", {"path": "long.txt"}),
                ("read_file", {"path": f"gone-{'x' * 190}"}),
                ("write_file", {"path": "long.txt", "content": "new\n", "dry_run": True}),
            ):
                answer = toolbox.call(name, sent, call)
                assert size_of(answer.text) <= page
                heard += answer.text
                answer.sent()
        assert [heard.count(reason) for reason in reasons] == [1] * len(reasons)


def make_many(root: Path) -> None:
    for folder in range(6):
        (root / f"f{folder}").mkdir()
        for number in range(200):
            (root / f"f{folder}" / f"a-name-of-some-length-{number}.txt").touch()
