"""What waits in the proxy: questions to the editor, and work on one file."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace

import pytest

from filepact_acp.errors import ClientResponseError
from filepact_acp.files import ANSWER_LIMIT, _at_most, _encoded
from filepact_acp.keyed_executor import KeyedExecutor
from filepact_acp.proxy.editor_requests import EditorRequests, EditorResult
from tests.faces.acp.proxy.rig import BOTH, Rig

ASKED = "fs/read_text_file"
PARAMS = {"sessionId": "s1", "path": "/w/a.txt"}


class Editor:
    """Questions, what was sent to the editor, and what was learnt."""

    def __init__(self) -> None:
        self.sent: list[dict[str, object]] = []
        self.questions = EditorRequests(lambda line: self.sent.append(json.loads(line)))
        self.replies: list[EditorResult] = []
        self.heard = threading.Event()

    def take(self, reply: EditorResult) -> None:
        self.replies.append(reply)
        self.heard.set()

    def ask(self, patience: float = 60.0, request: object = None) -> str:
        self.questions.ask_then(ASKED, PARAMS, self.take, request=request, patience=patience)
        return str(self.sent[-1]["id"])


def test_an_answer_is_taken_by_the_thread_that_hears_it() -> None:
    editor = Editor()
    name = editor.ask()
    assert editor.sent[0] == {"jsonrpc": "2.0", "id": name, "method": ASKED, "params": PARAMS}
    editor.questions.receive_answer(name, {"id": name, "result": {"content": "x"}})
    editor.questions.receive_answer(name, {"id": name, "result": {"content": "y"}})
    assert editor.replies == [EditorResult("result", {"content": "x"})]
    failed = editor.ask()
    editor.questions.receive_answer(failed, {"id": failed, "error": {"code": 1, "message": "no"}})
    assert editor.replies[1] == EditorResult("error", ClientResponseError(1, "no"))
    editor.questions.end()


def test_an_editor_that_says_nothing_is_given_up_and_told() -> None:
    editor = Editor()
    name = editor.ask(patience=0.0)
    assert editor.heard.wait(20)
    assert editor.replies == [EditorResult("silent")]
    editor.questions.end()
    assert editor.questions._impatient is not None
    editor.questions._impatient.join(20)
    told = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": name}}
    assert editor.sent[1:] == [told]
    editor.questions.receive_answer(name, {"id": name, "result": {"content": "late"}})
    assert editor.replies == [EditorResult("silent")]


@pytest.mark.parametrize("by", ["session", "request"])
def test_what_nobody_wants_any_more_is_taken_back(by: str) -> None:
    editor = Editor()
    mine = object()
    name = editor.ask(request=mine)
    editor.questions.drop("s2")
    editor.questions.drop_for(object())
    assert not editor.replies
    if by == "session":
        editor.questions.drop("s1")
    else:
        editor.questions.drop_for(mine)
    assert editor.replies == [EditorResult("cancelled")]
    assert editor.sent[-1]["params"] == {"requestId": name}
    editor.questions.end()


@pytest.mark.parametrize("ended", [False, True])
def test_an_answer_that_comes_after_it_was_taken_back_can_be_heard(ended: bool) -> None:
    editor, late, replies = Editor(), [], []
    asked = threading.Event()

    def ask() -> None:
        with editor.questions.asked_for(SimpleNamespace(is_wanted=not ended)):
            question = editor.questions.begin(ASKED, PARAMS, late=late.append)
            asked.set()
            replies.append(editor.questions.end_of(question))

    asking = threading.Thread(target=ask)
    asking.start()
    if not ended:
        # Else it has ended already, and nobody waits for an answer.
        assert asked.wait(20)
        editor.questions.drop("s1")
    asking.join(20)
    assert replies == [EditorResult("cancelled")]
    name = str(editor.sent[0]["id"])
    for _ in range(2):
        editor.questions.receive_answer(name, {"id": name, "result": {}})
    assert late == [EditorResult("result", {})]
    editor.questions.end()


def test_an_editor_that_has_gone_answers_nothing() -> None:
    editor = Editor()
    editor.ask()
    editor.questions.end()
    assert editor.replies == [EditorResult("silent")]
    editor.questions.ask_then(ASKED, PARAMS, editor.take, request=None, patience=60.0)
    assert editor.replies == [EditorResult("silent")] * 2
    assert editor.questions.ask(ASKED, PARAMS) == EditorResult("silent")
    assert len(editor.sent) == 1


def test_a_lane_that_is_kept_holds_up_what_is_put_there_and_nothing_else() -> None:
    lanes, done, other, last = KeyedExecutor(4, "test"), [], threading.Event(), threading.Event()
    assert lanes.try_acquire("a")
    assert not lanes.try_acquire("a")
    lanes.submit("a", lambda: done.append(1))
    lanes.submit("a", lambda: (done.append(2), last.set()))
    lanes.submit("b", other.set)
    assert other.wait(20)
    assert not done
    lanes.release("a")
    assert last.wait(20)
    lanes.close()
    assert done == [1, 2]
    assert lanes.try_acquire("a")
    lanes.release("a")


def test_who_leaves_a_lane_lets_others_through_and_comes_back_after_them() -> None:
    lanes, done = KeyedExecutor(4, "test"), []
    begun, go, last = threading.Event(), threading.Event(), threading.Event()

    def waits_for_a_person() -> None:
        done.append("asked")
        with lanes.suspended("a"):
            begun.set()
            go.wait(20)
        done.append("answered")

    lanes.submit("a", waits_for_a_person)
    assert begun.wait(20)
    through, held = threading.Event(), threading.Event()

    def holds() -> None:
        done.append("other")
        through.set()
        held.wait(20)
        done.append("other ended")

    lanes.submit("a", holds)
    assert through.wait(20)
    go.set()
    held.set()
    lanes.submit("a", lambda: (done.append("next"), last.set()))
    assert last.wait(20)
    lanes.close()
    assert done[:2] == ["asked", "other"]
    # Nobody works in the lane while another does.
    assert done.index("other ended") == 2
    assert sorted(done[3:]) == ["answered", "next"]


def test_closed_lanes_hold_up_nobody_who_comes_back() -> None:
    lanes, done = KeyedExecutor(4, "test"), []
    begun, go, through = threading.Event(), threading.Event(), threading.Event()

    def waits_for_a_person() -> None:
        with lanes.suspended("a"):
            begun.set()
            go.wait(20)
        done.append("answered")

    lanes.submit("a", waits_for_a_person)
    assert begun.wait(20)
    lanes.submit("a", lambda: (through.set(), go.wait(20)))
    assert through.wait(20)
    closing = threading.Thread(target=lanes.close)
    closing.start()
    go.set()
    closing.join(20)
    assert done == ["answered"]


def test_closed_lanes_wait_for_one_that_is_kept() -> None:
    lanes, done = KeyedExecutor(4, "test"), []
    assert lanes.try_acquire("a")

    def end() -> None:
        done.append("kept")
        lanes.release("a")

    elsewhere = threading.Thread(target=end)
    elsewhere.start()
    lanes.close()
    assert done[0] == "kept"
    elsewhere.join()


@pytest.mark.parametrize(
    "text",
    ["", "plain\n", '"\\\n\r\t\b\f', "\0\x01\x1f\x7f" * 9, "caf\u00e9", "\U0001f600" * 5],
)
@pytest.mark.parametrize("times", [1, ANSWER_LIMIT // 50])
def test_what_is_told_quickly_of_an_answer_is_never_too_little(text: str, times: int) -> None:
    assert _at_most(text * times) >= _encoded(text * times)


def test_requests_about_a_file_wait_for_one_that_the_editor_has_not_answered(tmp_path):
    with Rig(tmp_path, fs={"readTextFile": True}) as rig:
        (rig.work / "a.txt").write_text("one\n")
        (rig.work / "b.txt").write_text("bee\n")
        rig.start()
        first = rig.begin_read("a.txt")
        held = rig.editor.request(ASKED)
        second = rig.begin_write("a.txt", "two\n")
        third = rig.begin_read("a.txt")
        # Another file's are not held up.
        other = rig.begin_read("b.txt")
        assert rig.shows("bee\n")["params"]["path"] == str(rig.work / "b.txt")
        assert rig.agent.answer_to(other)["result"] == {"content": "bee\n"}
        assert rig.editor.quiet
        rig.editor.answer(held, {"content": "one\n"})
        assert rig.agent.answer_to(first)["result"] == {"content": "one\n"}
        rig.shows("one\n")
        assert rig.agent.answer_to(second)["result"] == {}
        rig.shows("two\n")
        assert rig.agent.answer_to(third)["result"] == {"content": "two\n"}


def test_a_read_that_the_editor_has_not_answered_can_be_cancelled(tmp_path):
    with Rig(tmp_path, fs={"readTextFile": True}) as rig:
        (rig.work / "a.txt").write_text("one\n")
        rig.start()
        wanted = rig.begin_read("a.txt")
        held = rig.editor.request(ASKED)
        rig.agent.send({"method": "$/cancel_request", "params": {"requestId": wanted}})
        assert rig.agent.answer_to(wanted)["error"]["code"] == -32800
        # The editor hears of the question that it knows, and of no other.
        given_up = rig.editor.request("$/cancel_request")
        assert given_up["params"] == {"requestId": held["id"]}
        # What comes late is nobody's, and the file can be read again.
        rig.editor.answer(held, {"content": "late\n"})
        again = rig.begin_read("a.txt")
        rig.shows("one\n")
        assert rig.agent.answer_to(again)["result"] == {"content": "one\n"}


def test_text_that_was_unsaved_is_the_files_own_once_it_is_saved(tmp_path):
    with Rig(tmp_path, fs=BOTH) as rig:
        (rig.work / "a.txt").write_text("one\n")
        rig.start()
        for shown in ("typed\n", "typed\n", "one\n"):
            wanted = rig.begin_read("a.txt")
            rig.shows(shown)
            assert rig.agent.answer_to(wanted)["result"] == {"content": shown}
            if shown == "typed\n":
                (rig.work / "a.txt").write_text("typed\n")
            else:
                # It shows again what the disk had before.
                assert (rig.work / "a.txt").read_text() == "typed\n"
        (rig.work / "a.txt").write_text("one\n")
        wanted = rig.begin_read("a.txt", line=1, limit=1)
        rig.shows("one\n")
        assert rig.agent.answer_to(wanted)["result"] == {"content": "one\n"}
