"""The record of what agents ask and tell, without an agent: what it holds on to, and for how long."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_workspace
from filepact.domain.permission_log import LoggedFile
from filepact_acp.agents import ConnectionInfo
from filepact_acp.permissions import PermissionDecision, read_question
from filepact_acp.record import FileDiff, PermissionLogWriter, count_lines, read_report
from filepact_acp.sessions import AcpSession

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from filepact.domain.permission_log import PermissionRecord

YES = {"optionId": "y", "kind": "allow_once"}


class Scene:
    """A record over a real journal."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.root.mkdir()
        self._open = partial(open_workspace, [str(self.root)], state_dir=str(folder / "state"))
        self.bound = AcpSession("s1", (str(self.root),), self._open())
        self.other = AcpSession("s2", self.bound.roots, self.bound.workspace)
        self.gone: list[AcpSession] = []
        self.record = PermissionLogWriter(ConnectionInfo(agent="far"), self.gone.append)

    def question(self, title: str, session: str = "s1") -> dict[str, Any]:
        call = {"title": title, "kind": "edit", "locations": [{"path": "a.txt"}]}
        return {"sessionId": session, "toolCall": call, "options": [YES]}

    def passed(self, wanted: Any, title: str, session: str = "s1") -> None:
        params = self.question(title, session)
        asked = read_question(params, str(self.root))
        there = self.bound if session == "s1" else self.other
        self.record.record_question(wanted, there, params, asked)

    def answered(self, wanted: Any) -> None:
        outcome = {"outcome": "selected", "optionId": "y"}
        self.record.record_answer(wanted, {"result": {"outcome": outcome}})

    def tell(self, **call: Any) -> None:
        self.record.record_call(self.bound, {"toolCallId": "t", **call})

    def written(self) -> tuple[PermissionRecord, ...]:
        """What is in the journal, oldest first, once all is written."""
        self.record.close()
        found = self.bound.workspace.asked.questions(limit=None)
        self.bound.workspace.close()
        return found[::-1]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    return Scene(tmp_path)


def diff(path: str, old: str | None, new: str) -> dict[str, Any]:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def test_of_very_many_open_questions_the_oldest_is_given_up_as_unanswered(scene: Scene) -> None:
    for number in range(257):
        scene.passed(number, f"{number}")
    scene.answered(0)
    scene.answered(256)
    written = scene.written()
    assert [one.title for one in written] == [f"{number}" for number in range(257)]
    assert [one.title for one in written if one.by == "person"] == ["256"]
    assert {(one.verdict, one.by) for one in written[:-1]} == {("cancelled", "nobody")}


def test_an_id_that_is_used_again_is_another_question(scene: Scene) -> None:
    scene.passed(1, "first")
    scene.passed(1, "second")
    scene.answered(1)
    scene.answered(1)
    assert [(one.title, one.verdict) for one in scene.written()] == [
        ("first", "cancelled"),
        ("second", "allowed"),
    ]


def test_the_end_of_a_session_ends_its_questions_and_no_others(scene: Scene) -> None:
    scene.passed(1, "here", "s1")
    scene.passed(2, "there", "s2")
    scene.tell(title="Edit", content=[diff("a", "", "a\n")])
    scene.record.end(scene.bound)
    # The call is forgotten with its session.
    scene.tell(status="completed")
    scene.answered(2)
    assert [(one.title, one.verdict) for one in scene.written()] == [
        ("here", "cancelled"),
        ("there", "allowed"),
    ]
    assert scene.gone == [scene.bound]


def test_of_very_many_open_calls_the_oldest_is_forgotten(scene: Scene) -> None:
    for number in range(257):
        scene.tell(toolCallId=f"{number}", title=f"{number}", content=[diff("a", "", "a\n")])
    for number in (0, 1):
        scene.tell(toolCallId=f"{number}", status="completed")
    assert [one.title for one in scene.written()] == ["1"]


def test_a_call_without_an_id_that_can_be_remembered_stands_for_itself(scene: Scene) -> None:
    for name in (None, 7, "x" * 1_001):
        scene.tell(toolCallId=name, content=[diff("a", "", "a\n")])
        scene.tell(toolCallId=name, status="completed", content=[diff("b", "", "b\n")])
    assert [one.paths for one in scene.written()] == [("b",)] * 3


def test_texts_that_are_too_long_are_not_counted_and_named_all_the_same(scene: Scene) -> None:
    scene.tell(status="completed", content=[diff("a", None, "x\n" * 200_000)])
    (known,) = scene.written()
    assert known.files == (LoggedFile("a"),)


def test_who_asks_faster_than_can_be_written_is_not_kept_waiting(scene: Scene) -> None:
    go = threading.Event()
    scene.record._let_go = lambda _bound: go.wait(20) and None
    scene.record.end(scene.other)
    for number in range(10_100):
        scene.answered(f"nobody's {number}")
    scene.tell(status="completed", content=[diff("late", "", "x\n")])
    assert scene.record._held == 0
    go.set()
    assert scene.written() == ()


def test_a_journal_that_is_closed_stops_nothing(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.bound.workspace.close()
    for _ in range(2):
        params = scene.question("x")
        asked = read_question(params, "/")
        scene.record.record_ruling(
            scene.bound, params, asked, PermissionDecision("deny", rule="r"), {}
        )
    scene.passed(1, "open")
    scene.record.close()
    assert "was not written down" in caplog.text


@pytest.mark.parametrize(
    "call",
    [
        {},
        {"content": "diff", "status": "completed"},
        {"content": [None, 5, {"type": "diff"}, {"type": "diff", "path": ""}], "status": "failed"},
        {"content": [{"type": "diff", "path": "a\0b", "newText": "x"}], "status": "completed"},
        {"content": [{"type": "diff", "path": 7, "changes": "x", "patch": 5}], "title": []},
        {"content": [{"type": "diff", "changes": [None, {"path": None}, {}]}], "kind": {}},
        {"title": 5, "kind": ["edit"], "status": {"completed": 1}, "toolCallId": {}},
    ],
)
def test_what_makes_no_sense_is_no_report(scene: Scene, call: dict[str, Any]) -> None:
    scene.record.record_call(scene.bound, call)
    scene.passed(1, "next")
    scene.answered(1)
    assert [one.title for one in scene.written()] == ["next"]


@pytest.mark.parametrize(
    ("shown", "lines"),
    [
        (FileDiff("/a", "", ""), (0, 0)),
        (FileDiff("/a", "1\n2\n", "1\n"), (0, 1)),
        (FileDiff("/a", "1\r2", "1\r2\r3"), (2, 1)),
        (FileDiff("/a", "x"), (None, None)),
        (FileDiff("/a", patch="no patch"), (None, None)),
        (FileDiff("/a", patch="--- b\n+++ b\n@@ -1 +1 @@\n-x\n+y\n"), (None, None)),
        (FileDiff("/w/a", patch="--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-x\n+y\n+z\n"), (2, 1)),
        (FileDiff("/w/a", patch="--- /dev/null\n+++ b/w/a\n@@ -0,0 +1 @@\n+y\n"), (1, 0)),
    ],
)
def test_lines_are_counted_where_they_can_be(
    shown: FileDiff, lines: tuple[int | None, int | None]
) -> None:
    assert count_lines(shown) == LoggedFile(shown.path, *lines)


def test_a_report_names_few_files_and_counts_from_the_working_folder() -> None:
    content = [diff(f"{number}", None, "x") for number in range(300)]
    content[0] = diff("file:///etc/x", None, "x")
    report = read_report({"content": content}, "/w")
    assert len(report.diffs) == 200
    assert [one.path for one in report.diffs[:2]] == ["/etc/x", "/w/1"]
    assert report.weight == 200
