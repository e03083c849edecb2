"""Answers of the reading tools fit the page that their reader takes, and lead on to the rest."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox, open_workspace
from filepact.domain.operation import Actor, Approval, Session
from filepact.text.page import size_of
from filepact.tools.registry import CallContext, CallResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Tool = Callable[..., CallResult]

SESSION = Session("s1", Actor("agent", "tester"))
LINES = [f"line {number} {'x' * (number % 90)}" for number in range(1, 1_201)]


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

        def call(name: str, page: int, /, **arguments: object) -> CallResult:
            return toolbox.call(name, arguments, CallContext(SESSION, page=page))

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
        call = CallContext(SESSION, page=page)
        reasons = [f"reason {number} {'r' * 200}" for number in range(6)]
        for number, reason in enumerate(reasons):
            sent = {"path": f"{number}.txt", "content": "я\n" * 5_000}
            shown = toolbox.call("write_file", {**sent, "dry_run": True}, call).text
            waits = toolbox.call("write_file", sent, call)
            assert waits.receipt is not None
            assert size_of(waits.text) <= page
            assert size_of(shown) <= page
            assert "+я" in shown
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
                answer.on_sent()
        assert [heard.count(reason) for reason in reasons] == [1] * len(reasons)


CALLS: list[tuple[str, dict[str, object]]] = [
    *(("read_file", {"path": name}) for name in ("line.json", "wide.txt", "mix.txt", "bytes")),
    ("read_file", {"path": "bytes", "encoding": "base64"}),
    ("read_file", {"path": "long.txt", "offset": -1_100, "lines": 1_100}),
    ("read_file", {"path": "line.json", "column": 50_000}),
    ("read_file", {"paths": ["line.json", "long.txt", "mix.txt", "wide.txt"]}),
    ("read_file", {"paths": [f"{'n' * 200}{number}" for number in range(20)]}),
    ("read_file", {"paths": [f"gone-{'q' * 150}{number}" for number in range(60)]}),
    ("read_file", {"path": "x" * 4_000}),
    ("read_file", {"u" * 5_000: 1}),
    ("grep", {"pattern": "x+|y+|z+", "maxResults": 1_000, "context": 3}),
    ("grep", {"pattern": "short\nshort", "multiline": True, "maxResults": 5_000}),
    ("grep", {"pattern": "(" * 3_000}),
    ("edit_file", {"path": "long.txt", "old_string": "nowhere\n" * 200, "new_string": "x"}),
    ("edit_file", {"path": "mix.txt", "old_string": "short", "new_string": "x"}),
    ("write_file", {"path": "wide.txt", "content": "я" * 30_000, "dry_run": True}),
    ("write_file", {"path": "long.txt", "content": "", "dry_run": True}),
    ("patch_apply", {"patch": "garbage" * 3_000}),
    ("patch_apply", {"dry_run": True, "patch": "".join(
        f"--- /dev/null\n+++ b/{number}.new\n@@ -0,0 +1 @@\n+x\n" for number in range(300)
    )}),
]  # fmt: skip


@pytest.mark.parametrize("page", [2_000, 9_000, 40_000])
def test_whatever_is_asked_for_the_answer_fits_the_page(tool: Tool, root: Path, page: int):
    (root / "line.json").write_text("x" * 100_000)
    (root / "wide.txt").write_text("言語" * 20_000 + "\n")
    (root / "mix.txt").write_text(("short\n" * 50 + "y" * 5_000 + "\n") * 20)
    (root / "bytes").write_bytes(bytes(range(256)) * 400)
    for number in range(20):
        (root / f"{'n' * 200}{number}").write_text("z " * 60 + "\n" + "z" * 3_000)
    for name, sent in CALLS:
        answer = tool(name, page, **sent)
        assert size_of(answer.text) <= page, (name, str(sent)[:60])
        assert not answer.failed or size_of(answer.text) <= 10_000


def make_many(root: Path) -> None:
    for folder in range(6):
        (root / f"f{folder}").mkdir()
        for number in range(200):
            (root / f"f{folder}" / f"a-name-of-some-length-{number}.txt").touch()
