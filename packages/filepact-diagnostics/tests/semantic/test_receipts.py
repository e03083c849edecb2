"""What the seven tools' receipts say of diagnostics, and changes that would bring errors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_toolbox
from filepact.tools.registry import CallContext
from filepact_diagnostics.semantic.disk_sync import DiskSync
from tests.servers.asking import report_of
from tests.servers.fakes import SECONDS, fake
from tests.servers.scene import AGENT, WRONG_LIB, Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.tools.registry import CallResult

FILES = {"a.x": "fine\n", "b.x": "fine\n", "other.txt": "words\n"}


class Desk:
    """An agent with the seven tools, over a scene."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.turn = ""
        self._toolbox = open_toolbox(scene.workspace, semantics=scene.semantics, own=True)

    def call(self, tool: str, **arguments: Any) -> CallResult:
        session = replace(AGENT, turn=self.turn)
        outcome = self._toolbox.call(tool, arguments, CallContext(session))
        outcome.on_sent()
        return outcome

    def edit(self, path: str, old: str, new: str, **arguments: Any) -> CallResult:
        return self.call("edit_file", path=path, old_string=old, new_string=new, **arguments)


@pytest.fixture
def desk_with(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    scenes: list[Scene] = []

    def make(orders: dict[str, Any] | None = None, **options: Any) -> Desk:
        scenes.append(Scene(tmp_path / str(len(scenes)), [fake(orders)], FILES, **options))
        return Desk(scenes[-1])

    yield make
    for one in scenes:
        one.close()


def said(outcome: CallResult) -> list[str]:
    return [line for line in outcome.text.split("\n") if "iagnostics" in line]


def test_a_receipt_tells_what_a_change_brings(desk_with: Callable[..., Desk]) -> None:
    desk = desk_with()
    brought = desk.edit("a.x", "fine", "fine\nwrong\nwrong again")
    assert not brought.failed
    assert said(brought) == ["Diagnostics (fake): 2 new errors."]
    assert "  a.x:2:1 error wrong this is wrong" in brought.text
    fixed = desk.edit("a.x", "wrong again", "right")
    assert said(fixed) == ["Diagnostics (fake): 1 fixed."]
    same = desk.call("write_file", path="b.x", content="still fine\n")
    assert said(same) == ["Diagnostics (fake): nothing new."]


def test_files_that_no_server_knows_have_no_such_line(desk_with: Callable[..., Desk]) -> None:
    assert said(desk_with().edit("other.txt", "words", "wrong words")) == []


def test_a_dry_run_tells_the_difference_and_changes_nothing(
    desk_with: Callable[..., Desk],
) -> None:
    desk = desk_with()
    shown = desk.edit("a.x", "fine", "wrong", dry_run=True)
    assert said(shown) == ["Diagnostics if it is done (fake): 1 new error."]
    assert desk.scene.get("a.x") == "fine\n"
    done = desk.edit("a.x", "fine", "finer")
    assert said(done) == ["Diagnostics (fake): nothing new."]


@pytest.mark.parametrize("warnings", [False, True])
def test_warnings_are_told_where_they_are_wanted_and_hints_never(
    warnings: bool, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, ["basedpyright"], {"a.py": "x: int = 1\n"}, warnings=warnings)
    try:
        done = Desk(scene).edit("a.py", "x: int = 1", "def f(unused):\n    return 1\n")
    finally:
        scene.close()
    assert ("warning" in done.text) is warnings
    assert "hint" not in done.text


def test_several_files_of_one_patch_are_answered_once(desk_with: Callable[..., Desk]) -> None:
    patch = (
        "--- a/a.x\n+++ b/a.x\n@@ -1 +1 @@\n-fine\n+wrong\n"
        "--- a/b.x\n+++ b/b.x\n@@ -1 +1 @@\n-fine\n+wrong\n"
    )
    done = desk_with().call("patch_apply", patch=patch)
    assert said(done) == ["Diagnostics (fake): 2 new errors."]


def test_new_errors_can_be_refused(desk_with: Callable[..., Desk]) -> None:
    desk = desk_with(new_errors="deny")
    refused = desk.edit("a.x", "fine", "wrong")
    assert refused.code == "NEW_ERRORS"
    assert "a.x:1:1 error" in refused.text
    assert desk.scene.get("a.x") == "fine\n"
    assert not desk.edit("a.x", "fine", "good").failed
    assert desk.scene.get("a.x") == "good\n"


def test_errors_that_were_there_before_do_not_count(desk_with: Callable[..., Desk]) -> None:
    desk = desk_with(new_errors="deny")
    desk.scene.put("a.x", "wrong\nline\n")
    assert not desk.edit("a.x", "line", "another line").failed


def test_a_person_can_be_asked_about_new_errors(desk_with: Callable[..., Desk]) -> None:
    desk = desk_with(new_errors="ask")
    waits = desk.edit("a.x", "fine", "wrong")
    assert waits.receipt is not None
    assert waits.receipt["status"] == "pending"
    assert desk.scene.get("a.x") == "fine\n"
    (proposal,) = desk.scene.workspace.pending()
    assert proposal.rule == "new errors"
    assert not desk.edit("b.x", "fine", "better").failed
    assert desk.scene.get("b.x") == "better\n"


def test_what_cannot_be_checked_in_time_is_refused_where_new_errors_are(
    desk_with: Callable[..., Desk],
) -> None:
    desk = desk_with({"hang": True}, new_errors="deny", budget=0.3)
    desk._toolbox._seconds = 3.0
    refused = desk.edit("a.x", "fine", "good")
    assert refused.code == "NOT_JUDGED"
    assert desk.scene.get("a.x") == "fine\n"
    assert not desk.edit("other.txt", "words", "other words").failed


def test_a_server_that_is_slow_to_answer_is_waited_for_before_a_change_is_refused(
    desk_with: Callable[..., Desk],
) -> None:
    desk = desk_with({"slow": 0.4}, new_errors="deny", budget=0.1, mode="auto")
    assert desk.edit("a.x", "fine", "wrong").code == "NEW_ERRORS"
    assert not desk.edit("a.x", "fine", "good").failed
    assert desk.scene.get("a.x") == "good\n"


def test_a_change_that_cannot_be_checked_in_time_is_done_and_says_so(
    desk_with: Callable[..., Desk],
) -> None:
    desk = desk_with({"hang": True}, new_errors="ask", budget=0.3)
    desk._toolbox._seconds = 3.0
    done = desk.edit("a.x", "fine", "wrong")
    assert done.receipt is not None
    assert done.receipt["status"] == "applied"
    assert "Not checked for new errors" in done.text
    assert desk.scene.get("a.x") == "wrong\n"


@pytest.mark.parametrize(
    ("tool", "how"),
    [
        ("write_file", {"path": "b.x", "content": "other\n"}),
        ("write_file", {"path": "new.x", "content": "new\n"}),
        ("manage_files", {"action": "delete", "path": "b.x"}),
    ],
)
def test_who_waits_long_for_servers_still_has_time_for_the_change(
    desk_with: Callable[..., Desk], tool: str, how: dict[str, str]
) -> None:
    desk = desk_with({"hang": True}, new_errors="ask", budget=60)
    desk._toolbox._seconds = 3.0
    done = desk.call(tool, **how)
    assert not done.failed, done.text


@pytest.mark.parametrize("policy", ["allow", "ask", "deny"])
def test_a_mistake_of_our_own_hides_no_change(
    policy: str,
    desk_with: Callable[..., Desk],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = desk_with(new_errors=policy)
    desk.edit("b.x", "fine", "good")

    def break_down(*_: object, **__: object) -> None:
        raise KeyError("of ours")

    monkeypatch.setattr(DiskSync, "_note", break_down)
    monkeypatch.setattr(DiskSync, "_differences", break_down)
    done = desk.edit("a.x", "fine", "better")
    if policy == "deny":
        assert done.code == "NOT_JUDGED"
        assert desk.scene.get("a.x") == "fine\n"
        return
    assert done.receipt is not None
    assert done.receipt["status"] == "applied"
    assert desk.scene.get("a.x") == "better\n"
    assert "a mistake of filepact's own" in done.text
    assert "of ours" not in done.text
    assert "of ours" in caplog.text
    assert not desk.call("write_file", path="new.x", content="made\n").failed


def test_what_comes_late_is_told_with_a_later_answer(desk_with: Callable[..., Desk]) -> None:
    desk = desk_with({"slow": 0.4}, budget=0.15)
    waits = desk.edit("a.x", "fine", "wrong")
    assert said(waits) == ["Diagnostics: fake pending."]
    text = ""
    for _ in range(400):
        text = desk.call("read_file", path="b.x").text
        if "Diagnostics" in text:
            break
        report_of(desk.scene.pool, str(desk.scene.root), {desk.scene.path("b.x"): "fine\n"}, 0.1)
    assert "Diagnostics (fake) of the earlier change of a.x: " in text
    assert "1 new error" in text
    assert "Diagnostics" not in desk.call("read_file", path="b.x").text


def test_a_server_that_is_not_there_yet_is_started_and_not_waited_for(
    desk_with: Callable[..., Desk],
) -> None:
    desk = desk_with(mode="auto")
    first = desk.edit("a.x", "fine", "wrong")
    assert said(first) == ["Diagnostics: fake pending."]
    desk.scene.semantics.look(["b.x"], session=AGENT, seconds=SECONDS)
    second = desk.edit("b.x", "fine", "wrong")
    assert "Diagnostics (fake): 1 new error." in second.text


def test_errors_in_files_that_depend_on_a_change_are_refused_too(tmp_path: Path) -> None:
    scene = Scene(tmp_path, ["ty"], new_errors="deny")
    try:
        desk = Desk(scene)
        refused = desk.call("write_file", path="lib.py", content=WRONG_LIB)
        assert refused.code == "NEW_ERRORS"
        assert "use.py:3" in refused.text
        both = desk.call(
            "patch_apply",
            patch="--- a/lib.py\n+++ b/lib.py\n@@ -1,2 +1,2 @@\n"
            "-def double(n: int) -> int:\n+def double(n: str) -> str:\n     return n * 2\n"
            "--- a/use.py\n+++ b/use.py\n@@ -1,3 +1,3 @@\n from lib import double\n \n"
            "-answer: int = double(21)\n+answer: str = double('21')\n",
        )
        assert not both.failed, both.text
    finally:
        scene.close()


def test_how_far_an_answer_goes_is_told_once(desk_with: Callable[..., Desk]) -> None:
    desk = desk_with({"limits": {"notes": ["packages were not restored"], "approximate": True}})
    first = desk.edit("a.x", "fine", "wrong").text
    assert "  fake: packages were not restored." in first
    again = desk.edit("a.x", "wrong", "fine").text
    assert "1 fixed" in again
    assert "restored" not in again


def test_a_file_that_a_server_cannot_judge_is_not_known(desk_with: Callable[..., Desk]) -> None:
    desk = desk_with({"limits": {"notes": ["no project has it"], "known": False}})
    (line,) = said(desk.edit("b.x", "fine", "fine too"))
    assert line == "Diagnostics: not known."
    assert "no project has it" in desk.edit("b.x", "fine too", "fine").text


def test_a_turn_is_summed_up_when_asked_with_what_is_still_wrong(tmp_path: Path) -> None:
    scene = Scene(tmp_path, ["ty"])
    try:
        desk = Desk(scene)
        assert "No language server" in desk.call("history", action="errors").text
        desk.turn = "first"
        desk.call("write_file", path="lib.py", content=WRONG_LIB)
        desk.edit("use.py", "answer: int", "other: str = 1\n\nanswer: int")
        desk.edit("use.py", "other: str = 1", "other: int = 1")
        first, *found = desk.call("history", action="errors").text.split("\n")
        assert first == "New errors of this turn that are still found: 2."
        assert {line.split()[0].rpartition(":")[0] for line in found} == {"use.py:5"}
        desk.turn = "second"
        assert "No language server" in desk.call("history", action="errors").text
        desk.call("write_file", path="lib.py", content="def double(n: int) -> int:\n    return n\n")
        assert desk.call("history", action="errors").text.endswith(": none.")
    finally:
        scene.close()


def test_a_turn_is_summed_up_in_ten_lines_and_what_is_not_proven_is_not_judged(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, ["ty"])
    try:
        desk = Desk(scene)
        assert scene.semantics.turn_summary(session=AGENT, ends=True) == ""
        for name in ("b.py", "a.py"):
            desk.call("write_file", path=name, content="x: int = ''\n" * 12)
        first, *found, last = scene.semantics.turn_summary(session=AGENT, ends=True).split("\n")
        assert first.endswith(": 24.")
        assert [line.split()[0].partition(":")[0] for line in found] == ["a.py"] * 4 + ["b.py"] * 3
        assert last == "  and 17 more, in 2 files"
        desk.call("write_file", path="c.py", content=f"y: int = '{'long ' * 40}'\n")
        told = scene.semantics.turn_summary(session=AGENT, ends=True).split("\n")
        assert [line.split()[0].partition(":")[0] for line in told[1:-1]].count("c.py") == 1
        assert max(map(len, told)) == 80  # for a person; a model reads more of it
        asked = desk.call("history", action="errors").text.split("\n")
        assert max(map(len, asked)) > 120
        scene.pool.restart(str(scene.root))
        assert scene.semantics.turn_summary(session=AGENT, ends=True) == ""
        assert not [one for one in scene.pool.status() if one.pid]  # and it is not started for that
        for name in ("a.py", "b.py", "c.py"):
            desk.call("write_file", path=name, content="x: int = 1\n")
        assert scene.semantics.turn_summary(session=AGENT, ends=True) == ""
    finally:
        scene.close()


def test_a_summary_waits_for_what_is_pending(desk_with: Callable[..., Desk]) -> None:
    desk = desk_with({"slow": 0.4}, budget=0.15)
    assert said(desk.edit("a.x", "fine", "wrong")) == ["Diagnostics: fake pending."]
    text = desk.call("history", action="errors").text
    assert "still found: 1." in text
    assert "a.x:1:1 error" in text


def test_without_servers_a_turn_has_no_summary(desk_with: Callable[..., Desk]) -> None:
    desk = desk_with(mode="off")
    desk.edit("a.x", "fine", "wrong")
    assert "No language server" in desk.call("history", action="errors").text
