"""write_file of a solution: what it shows, what it does, and what it refuses."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Approval
from filepact.errors import InvalidParamsError
from filepact.tools.answers import CallResult
from filepact.tools.registry import CallContext, Toolset, tool
from filepact.workspace.pending import SessionEvent
from filepact_diagnostics.envelope import CALL_SECONDS, Envelope
from filepact_diagnostics.solution import SOLUTION_TOOLS
from tests.servers.solution_world import AGENT, OTHER, world

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.solution_world import World

OLD = "namespace P;\n\npublic class Program\n{\n}\n"
NEW = "namespace P;\n\npublic class Program { }"
PERSON = Actor("person", "p")


@pytest.fixture
def it(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        made.put("Program.cs", OLD)
        yield made


def test_the_parameters_are_those_of_the_document() -> None:
    (tool,) = (one for one in SOLUTION_TOOLS if one.name == "write_file")
    properties = tool.schema["properties"]
    assert {name: one.get("default") for name, one in properties.items()} == {
        "filePath": None,
        "content": None,
        "applyChanges": False,
        "createIfMissing": False,
        "includeDiff": True,
        "maxDiffChars": 50_000,
        "pathStyle": "absolute",
    }
    assert tool.schema["required"] == ["filePath", "content"]
    assert (tool.level, tool.tier, tool.kind) == ("moderate", "essential", "writes")


def test_a_preview_answers_field_for_field_and_changes_nothing(it: World) -> None:
    path = str(it.root / "Program.cs")
    answer = it.answer("write_file", filePath=path, content=NEW)
    header = f"--- {path}\n+++ {path}\n@@ "
    data = answer["data"]
    assert data["unifiedDiff"].startswith(header)
    assert data["changedFiles"] == [
        {"filePath": path, "changeCount": 1, "diff": data["unifiedDiff"]}
    ]
    asked = ("filePath", "changed", "applied", "created", "filesChanged")
    assert [data[name] for name in asked] == [path, True, False, False, 1]
    update = data["workspaceUpdate"]
    assert (update["kind"], update["updated"]) == ("preview", False)
    assert (data["operation"], data["pending"]) == (None, None)
    assert answer["meta"]["timeoutMs"] == 1_200_000
    assert answer["meta"]["cancelled"] is answer["meta"]["timedOut"] is False
    assert it.held("Program.cs") == OLD
    assert it.workspace.log() == ()


def test_what_is_applied_is_on_the_disk_and_can_be_undone(it: World) -> None:
    data = it.data("write_file", filePath="Program.cs", content=NEW, applyChanges=True)
    assert (data["applied"], data["created"], data["changed"]) == (True, False, True)
    assert it.held("Program.cs") == NEW
    it.workspace.undo(OTHER, data["operation"], dry_run=False)
    assert it.held("Program.cs") == OLD


def test_a_file_that_is_missing_is_made_only_when_that_is_asked_for(it: World) -> None:
    wanted = {"filePath": "src/deep/New.cs", "content": NEW, "applyChanges": True}
    refused = it.answer("write_file", **wanted)
    assert refused["error"]["code"] == "NOT_FOUND"
    assert "createIfMissing" in refused["error"]["hint"]
    assert not (it.root / "src").exists()
    shown = it.data("write_file", **wanted | {"applyChanges": False, "createIfMissing": True})
    assert (shown["created"], shown["applied"]) == (True, False)
    assert not (it.root / "src").exists()
    done = it.data("write_file", **wanted, createIfMissing=True, pathStyle="relative")
    assert (done["created"], done["applied"], done["filesChanged"]) == (True, True, 1)
    assert done["filePath"] == done["changedFiles"][0]["filePath"] == "src/deep/New.cs"
    assert done["unifiedDiff"].startswith("--- /dev/null\n+++ src/deep/New.cs\n@@ ")
    assert it.held("src/deep/New.cs") == NEW


@pytest.mark.parametrize("apply", [False, True])
def test_a_text_that_is_there_already_is_no_change(it: World, apply: bool) -> None:
    data = it.data("write_file", filePath="Program.cs", content=OLD, applyChanges=apply)
    assert (data["changed"], data["applied"], data["filesChanged"]) == (False, False, 0)
    assert (data["changedFiles"], data["unifiedDiff"]) == ([], "")
    assert it.workspace.log() == ()


def test_differences_are_left_out_where_nobody_wants_them(it: World) -> None:
    data = it.data("write_file", filePath="Program.cs", content=NEW, includeDiff=False)
    assert data["unifiedDiff"] is None
    assert data["changedFiles"][0]["diff"] is None
    assert data["changedFiles"][0]["changeCount"] == 1


def test_a_difference_is_cut_at_a_line_and_says_how_much_is_missing(it: World) -> None:
    content = "".join(f"line {number}\n" for number in range(2_000))
    whole = it.data("write_file", filePath="Program.cs", content=content, maxDiffChars=0)
    cut = it.data("write_file", filePath="Program.cs", content=content, maxDiffChars=1_000)
    shown, all_of_it = cut["unifiedDiff"], whole["unifiedDiff"]
    assert len(all_of_it) > 20_000
    assert len(shown) <= 1_000
    *lines, last = shown.splitlines(keepends=True)
    kept = "".join(lines)
    assert all_of_it.startswith(kept)
    missing = all_of_it[len(kept) :]
    assert f"{len(missing):,} characters" in last
    assert f"{missing.count(chr(10)):,} more lines" in last
    assert cut["changedFiles"][0]["changeCount"] == whole["changedFiles"][0]["changeCount"]


@pytest.mark.parametrize("name", ["with blank.cs", 'quo"te.cs', "ünï.cs", "new\nline.cs"])
@pytest.mark.parametrize("style", ["absolute", "relative"])
def test_every_path_of_an_answer_has_the_style_that_was_asked_for(
    it: World, name: str, style: str
) -> None:
    it.put(name, "a\n--- a/x\n+++ b/x\n")
    expected = name if style == "relative" else str(it.root / name)
    data = it.data("write_file", filePath=name, content="b\n--- a/x\n+++ b/x\n", pathStyle=style)
    assert data["filePath"] == data["changedFiles"][0]["filePath"] == expected
    old, new, _, *rest = data["unifiedDiff"].split("\n")
    assert (old[:4], new[:4]) == ("--- ", "+++ ")
    assert old[4:] == new[4:]
    label = old[4:].rstrip("\t")
    assert (json.loads(label) if label.startswith('"') else label) == expected
    assert rest == ["-a", "+b", " --- a/x", " +++ b/x", ""]


def test_an_empty_new_file_is_told_by_its_own_name(it: World) -> None:
    data = it.data(
        "write_file", filePath="e.cs", content="", createIfMissing=True, pathStyle="relative"
    )
    assert data["unifiedDiff"] == "diff --git e.cs e.cs\nnew file mode 100644\n"
    assert (data["changed"], data["created"]) == (True, True)


REFUSED = [
    ({"filePath": "../outside.cs"}, "PATH_BLOCKED"),
    ({"filePath": "/etc/hostname"}, "PATH_BLOCKED"),
    ({"filePath": "."}, "NOT_A_FILE"),
    ({"filePath": "src"}, "NOT_A_FILE"),
    ({"filePath": ".ssh/id_rsa", "createIfMissing": True}, "PATH_BLOCKED"),
    ({"filePath": "pipe"}, "PATH_BLOCKED"),
    ({"filePath": ""}, "INVALID_PARAMS"),
    ({"filePath": None}, "INVALID_PARAMS"),
    ({"filePath": "a\0b"}, "PATH_BLOCKED"),
    ({"pathStyle": "windows"}, "INVALID_PARAMS"),
    ({"maxDiffChars": -1}, "INVALID_PARAMS"),
    ({"maxDiffChars": 1e300}, "INVALID_PARAMS"),
    ({"maxDiffChars": "many"}, "INVALID_PARAMS"),
    ({"applyChanges": "perhaps"}, "INVALID_PARAMS"),
    ({"content": 5}, "INVALID_PARAMS"),
    ({"content": "\ud800"}, "INVALID_PARAMS"),
    ({"content": "x" * 10_000_001}, "INVALID_PARAMS"),
    ({"unknown": 1}, "INVALID_PARAMS"),
    ({"filePath": "latin.cs", "content": "\u0416"}, "ENCODING_UNSAFE"),
    ({"filePath": "missing.cs"}, "NOT_FOUND"),
    ({"filePath": "Program.cs/x.cs", "createIfMissing": True}, "NOT_FOUND"),
]


@pytest.mark.parametrize("apply", [False, True])
@pytest.mark.parametrize(("sent", "code"), REFUSED, ids=lambda one: str(one)[:40])
def test_a_refusal_has_its_code_in_the_envelope_and_changes_nothing(
    it: World, sent: dict[str, object], code: str, apply: bool
) -> None:
    (it.root / "src").mkdir()
    (it.root / "latin.cs").write_bytes(b"// caf\xe9 \xe8 \xe0 na\xefve\n" * 5)
    os.mkfifo(it.root / "pipe")
    before = {path: path.read_bytes() for path in it.root.rglob("*.cs")}
    arguments = {"filePath": "Program.cs", "content": NEW, "applyChanges": apply} | sent
    assert it.code("write_file", **arguments) == code
    assert {path: path.read_bytes() for path in it.root.rglob("*.cs")} == before
    assert it.workspace.log() == ()


def test_a_file_that_is_no_text_is_replaced_only_as_a_whole_and_shown_as_such(it: World) -> None:
    (it.root / "data.bin").write_bytes(b"\x00\x01\x02" * 50)
    answer = it.answer("write_file", filePath="data.bin", content="text\n", pathStyle="relative")
    if answer["success"]:
        assert answer["data"]["unifiedDiff"].startswith("Binary file data.bin changed")
    else:
        assert answer["error"]["code"] == "BINARY_FILE"


@pytest.mark.parametrize("sent", ["path", "file_path", "filePath"])
def test_other_spellings_of_the_path_are_taken(it: World, sent: str) -> None:
    assert it.data("write_file", **{sent: "Program.cs", "content": NEW})["changed"]


def test_line_ends_and_encoding_of_a_file_are_kept(it: World) -> None:
    (it.root / "w.cs").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    it.data("write_file", filePath="w.cs", content="one\n2\n", applyChanges=True)
    assert (it.root / "w.cs").read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n"


def test_what_somebody_writes_between_preview_and_apply_is_not_lost(it: World) -> None:
    mine = OLD.replace("class Program", "class Main")
    it.data("write_file", filePath="Program.cs", content=mine)
    it.put("Program.cs", OLD + "// by a person\n")
    data = it.data("write_file", filePath="Program.cs", content=mine, applyChanges=True)
    assert it.held("Program.cs") == mine + "// by a person\n"
    assert data["notes"]
    it.data("write_file", filePath="Program.cs", content=mine.replace("Main", "Other"))
    it.put("Program.cs", mine.replace("Main", "Theirs"))
    sent = {"filePath": "Program.cs", "content": mine.replace("Main", "Ours")}
    assert it.code("write_file", **sent, applyChanges=True) == "STALE_FILE"
    assert it.held("Program.cs") == mine.replace("Main", "Theirs")


def test_a_text_that_was_sent_before_takes_nothing_back_until_that_was_shown(it: World) -> None:
    sent = {"filePath": "Program.cs", "content": NEW}
    it.data("write_file", **sent)
    it.data("write_file", **sent, applyChanges=True)
    theirs = NEW.replace("Program", "Theirs")
    assert theirs != NEW
    it.put("Program.cs", theirs)
    assert it.code("write_file", **sent, applyChanges=True) == "STALE_FILE"
    assert it.code("write_file", **sent, applyChanges=True) == "STALE_FILE"
    shown = it.data("write_file", **sent)
    assert (shown["changed"], it.held("Program.cs")) == (True, theirs)
    # Now that it was shown, the same text is meant to replace it.
    again = it.data("write_file", **sent, applyChanges=True)
    assert (again["changed"], again["applied"], it.held("Program.cs")) == (True, True, NEW)
    same = it.data("write_file", **sent, applyChanges=True)
    assert (same["changed"], same["hints"]["nextSteps"]) == (False, [])


def test_what_a_person_has_approved_is_what_the_next_text_is_compared_with(tmp_path: Path) -> None:
    with world(tmp_path, mode="preview") as it:
        it.put("Program.cs", OLD)
        it.data("write_file", filePath="Program.cs", content=NEW)
        waits = it.data("write_file", filePath="Program.cs", content=NEW, applyChanges=True)
        # In another process, as `filepact approve` is.
        other = open_workspace([str(it.root)], state_dir=str(tmp_path / "state"))
        other.approve(waits["pending"]["id"], Approval(PERSON))
        other.close()
        assert it.held("Program.cs") == NEW
        back = it.data("write_file", filePath="Program.cs", content=OLD)
        assert back["changed"]
        assert "-" in back["unifiedDiff"]
        again = it.data("write_file", filePath="Program.cs", content=OLD, applyChanges=True)
        it.workspace.approve(again["pending"]["id"], Approval(PERSON))
        assert it.held("Program.cs") == OLD


def test_a_change_that_waits_for_a_person_says_so(tmp_path: Path) -> None:
    with world(tmp_path, mode="preview") as it:
        it.put("Program.cs", OLD)
        sent = {"filePath": "Program.cs", "content": NEW}
        answer = it.answer("write_file", **sent, applyChanges=True)
        data = answer["data"]
        assert (data["applied"], data["operation"]) == (False, None)
        assert data["pending"].keys() == {"id", "rule", "message"}
        assert data["pending"]["id"] in data["pending"]["message"]
        assert data["workspaceUpdate"]["kind"] == "preview"
        assert it.held("Program.cs") == OLD
        (waiting,) = it.workspace.pending()
        assert waiting.id == data["pending"]["id"]
        it.workspace.reject(waiting.id, Approval(PERSON, "no, please"))
        later = it.answer("write_file", **sent)
        assert any("no, please" in line for line in later["meta"]["news"])


def test_a_change_that_a_rule_asks_for_is_foretold_and_waits(it: World) -> None:
    sent = {"filePath": ".env", "content": "KEY=1\n", "createIfMissing": True}
    shown = it.data("write_file", **sent)
    assert any("approve" in note for note in shown["notes"])
    assert shown["pending"] is None
    data = it.data("write_file", **sent, applyChanges=True)
    assert data["applied"] is False
    assert data["pending"]["rule"]
    assert it.held(".env") is None
    it.workspace.approve(data["pending"]["id"], Approval(PERSON))
    assert it.held(".env") == "KEY=1\n"


def test_a_call_that_is_given_up_before_it_writes_leaves_nothing(it: World) -> None:
    answer = it.answer(
        "write_file",
        cancelled=lambda: True,
        filePath="Program.cs",
        content=NEW,
        applyChanges=True,
    )
    assert answer["error"]["code"] == "CANCELLED"
    assert answer["meta"]["cancelled"] is True
    assert answer["meta"]["timedOut"] is False
    assert it.held("Program.cs") == OLD


def test_a_caller_that_gave_up_hears_later_what_was_written(it: World) -> None:
    sent = {"filePath": "Program.cs", "content": NEW, "applyChanges": True}
    answer = it.answer("write_file", cancelled=lambda: it.held("Program.cs") == NEW, **sent)
    assert answer["meta"]["cancelled"] is True
    assert answer["data"]["applied"] is True
    assert it.held("Program.cs") == NEW
    strange = it.answer("write_file", session=OTHER, filePath="Program.cs", content=NEW)
    assert "news" not in strange["meta"]
    again = it.answer("write_file", filePath="Program.cs", content=NEW)
    (news,) = again["meta"]["news"]
    assert answer["data"]["operation"] in news
    assert "news" not in it.answer("write_file", filePath="Program.cs", content=NEW)["meta"]


def test_two_calls_at_once_are_both_done_or_say_why(it: World) -> None:
    for number in range(8):
        it.put(f"f{number % 2}.cs", "start\n")
    answers: list[dict] = []

    def write(number: int) -> None:
        answers.append(
            it.answer(
                "write_file",
                filePath=f"f{number % 2}.cs",
                content=f"text {number}\n",
                applyChanges=True,
            )
        )

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(answers) == 8
    for one in answers:
        assert one["success"] or one["error"]["code"] == "STALE_FILE"
    for number in range(2):
        held = it.held(f"f{number}.cs")
        assert held is not None
        assert held.startswith("text ")
        assert held.count("\n") == 1


# -- the envelope ---------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@tool(title="Scripted", level="safe", tier="full")
def scripted(files) -> CallResult:
    """Do what a test says."""
    work, call = files
    return work(call)


class Script:
    """An engine whose calls and news are those of a test."""

    def __init__(self, work, news, heard) -> None:
        self.work = work
        self.events = lambda _call: news()
        self.acknowledge = lambda _call, told: heard(told)

    def port(self, call, _name):
        return self.work, call

    def record(self, *_told) -> None:
        """There is no audit log."""


def answered(
    work,
    *,
    cancelled=lambda: False,
    news=lambda: (),
    heard=lambda _news: None,
    limit=CALL_SECONDS,
    clock=time.monotonic,
) -> CallResult:
    engine = Script(work, news, heard)
    toolbox = Toolset([scripted], engine, form=Envelope(), seconds=limit, clock=clock)
    return toolbox.call("scripted", {}, CallContext(AGENT, cancelled))


def test_times_are_told_in_milliseconds_and_the_limit_as_it_is() -> None:
    clock = Clock()

    def work(_call: CallContext) -> CallResult:
        clock.now += 0.25
        return CallResult("", receipt={"a": 1})

    answer = answered(work, limit=30.0, clock=clock).receipt
    assert answer == {
        "success": True,
        "data": {"a": 1},
        "meta": {"durationMs": 250, "cancelled": False, "timedOut": False, "timeoutMs": 30_000},
        "error": None,
    }


def test_work_is_told_that_its_time_is_over_and_what_it_did_stays_said() -> None:
    clock = Clock()

    def work(call: CallContext) -> CallResult:
        assert not call.cancelled()
        clock.now += 31.0
        assert call.cancelled()
        return CallResult("", receipt={"applied": True})

    answer = answered(work, limit=30.0, clock=clock).receipt
    assert answer is not None
    assert (answer["success"], answer["data"]) == (True, {"applied": True})
    assert (answer["meta"]["timedOut"], answer["meta"]["cancelled"]) == (True, False)


def test_work_that_is_over_before_anybody_looked_has_not_run_out_of_time() -> None:
    clock = Clock()

    def work(_call: CallContext) -> CallResult:
        clock.now += 31.0
        return CallResult("", receipt={})

    answer = answered(work, limit=30.0, clock=clock).receipt
    assert answer is not None
    assert answer["meta"]["timedOut"] is False


def test_a_caller_that_gave_up_is_told_apart_from_time_that_ran_out() -> None:
    given_up = threading.Event()

    def work(call: CallContext) -> CallResult:
        given_up.set()
        assert call.cancelled()
        return CallResult("", receipt={})

    answer = answered(work, cancelled=given_up.is_set).receipt
    assert answer is not None
    assert (answer["meta"]["timedOut"], answer["meta"]["cancelled"]) == (False, True)


def test_what_nobody_foresaw_is_an_answer_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def work(_call: CallContext) -> CallResult:
        raise OSError("/home/somebody/secret")

    outcome = answered(work)
    assert outcome.failed
    assert outcome.code == "INTERNAL"
    assert "secret" not in outcome.text
    assert "secret" in caplog.text


def test_a_refusal_and_its_news_are_both_told() -> None:
    def work(_call: CallContext) -> CallResult:
        raise InvalidParamsError("so not", hint="But so.")

    told: list[SessionEvent] = []
    known = [SessionEvent("1", "one"), SessionEvent("2", "two\n  more")]
    outcome = answered(work, news=lambda: known, heard=told.extend)
    answer = outcome.receipt
    assert answer is not None
    assert answer["error"] == {"code": "INVALID_PARAMS", "message": "so not", "hint": "But so."}
    assert answer["meta"]["news"] == ["one", "two\n  more"]
    assert told == []
    outcome.on_sent()
    assert told == known


def test_news_that_cannot_be_had_hide_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def news() -> tuple[SessionEvent, ...]:
        raise OSError("/home/somebody/journal")

    answer = answered(lambda _call: CallResult("", receipt={"applied": True}), news=news)
    assert answer.receipt is not None
    assert (answer.receipt["success"], answer.receipt["data"]) == (True, {"applied": True})
    assert "journal" not in answer.text
    assert "journal" in caplog.text


def test_names_that_are_no_text_can_be_sent() -> None:
    outcome = answered(lambda _call: CallResult("", receipt={"path": "a\udcff"}))
    assert json.loads(outcome.text)["data"]["path"] == "a\\xff"
