"""What agents ask a person for, and tell of their own work, is in the journal."""

from __future__ import annotations

import json
import time

import apsw
import pytest

from tests.faces.acp.proxy.rig import BOTH, Rig

OPTIONS = [
    {"optionId": "1", "name": "Always", "kind": "allow_always"},
    {"optionId": "2", "name": "Yes", "kind": "allow_once"},
    {"optionId": "4", "name": "No", "kind": "reject_once"},
]
EDIT = {"toolCallId": "t", "title": "Edit it", "kind": "edit"}


def ask(rig, session="s1", wanted=None, options=OPTIONS, **call):
    params = {"sessionId": session, "toolCall": {**EDIT, **call}, "options": options}
    return rig.agent.ask("session/request_permission", params, wanted)


def tell(rig, what="tool_call_update", session="s1", **call):
    update = {"sessionUpdate": what, "toolCallId": "t", **call}
    rig.agent.send({"method": "session/update", "params": {"sessionId": session, "update": update}})
    rig.editor.next()


def diff(path, old, new):
    return {"type": "diff", "path": str(path), "oldText": old, "newText": new}


def chosen(option):
    return {"outcome": {"outcome": "selected", "optionId": option}}


def asked(rig, *words):
    return json.loads(rig.command("log", "--asked", "--json", *words))["asked"]


def wait_for(rig, count):
    for _ in range(200):
        found = asked(rig)
        if len(found) >= count:
            return found
        time.sleep(0.05)
    raise AssertionError(found)


def test_what_the_rules_refuse_is_written_down_with_the_rule(rig):
    rig.start()
    rig.agent.answer_to(ask(rig, locations=[{"path": "id_rsa"}]))
    rig.agent.answer_to(ask(rig, locations=[{"path": "/etc/passwd"}], title="x" * 999))
    outside, key = wait_for(rig, 2)
    assert key["verdict"] == outside["verdict"] == "refused"
    assert key["by"].startswith("rule ")
    assert key["by"] != outside["by"] == "rule roots"
    assert (key["session"], key["actor"]["name"], key["root"]) == ("s1", "far", str(rig.work))
    assert (key["title"], key["action"]) == ("Edit it", "write")
    assert [one["path"] for one in key["files"]] == ["id_rsa"]
    assert [one["path"] for one in outside["files"]] == ["/etc/passwd"]
    assert len(outside["title"]) == 300


def test_what_a_person_has_written_down_as_allowed_names_that_rule(tmp_path):
    settings = tmp_path / "home" / ".config" / "filepact"
    settings.mkdir(parents=True)
    (settings / "filepact.toml").write_text(
        '[[allow]]\nname = "mine"\npaths = ["**/Makefile"]\nactions = ["write"]\n'
        'lifts = ["manifests"]\n'
    )
    with Rig(tmp_path, fs=BOTH) as rig:
        (rig.work / "Makefile").write_text("all:\n")
        rig.start()
        rig.agent.answer_to(ask(rig, locations=[{"path": "Makefile"}]))
        # There is nothing to choose, so nothing was allowed.
        rig.agent.answer_to(ask(rig, locations=[{"path": "Makefile"}], options=OPTIONS[2:]))
        nothing, known = wait_for(rig, 2)
    assert (known["verdict"], known["by"]) == ("allowed", "rule mine")
    assert (nothing["verdict"], nothing["by"]) == ("cancelled", "rule mine")


CANCELLED = {"outcome": {"outcome": "cancelled"}}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("result", "verdict", "by", "how"),
    [
        (chosen("1"), "allowed", "person", "allow_always"),
        (chosen("2"), "allowed", "person", "allow_once"),
        (chosen("4"), "refused", "person", "reject_once"),
        (chosen("9"), "cancelled", "editor", ""),
        (CANCELLED, "cancelled", "editor", ""),
        (None, "cancelled", "editor", ""),
    ],
)
def test_what_the_person_answers_is_written_down_by_the_options_kind(rig, result, verdict, by, how):
    rig.start()
    wanted = ask(rig, locations=[{"path": "a.txt"}])
    question = rig.editor.request("session/request_permission")
    if result is None:
        rig.editor.refuse(question, "no dialogs here")
    else:
        rig.editor.answer(question, result)
    rig.agent.answer_to(wanted)
    (known,) = wait_for(rig, 1)
    assert (known["verdict"], known["by"], known["how"]) == (verdict, by, how)
    assert [one["path"] for one in known["files"]] == ["a.txt"]


def test_questions_at_once_are_told_apart_by_their_ids(rig):
    rig.start()
    for wanted, name in ((7, "number"), ("7", "text")):
        ask(rig, wanted=wanted, title=name, locations=[{"path": name}])
    first, second = (rig.editor.request("session/request_permission") for _ in range(2))
    rig.editor.answer(second, chosen("4"))
    rig.editor.answer(first, chosen("2"))
    known = {one["title"]: one["verdict"] for one in wait_for(rig, 2)}
    assert known == {"number": "allowed", "text": "refused"}
    # An answer that comes twice, or that nobody asked for, is nobody's.
    rig.editor.answer(first, chosen("4"))
    rig.editor.send({"id": 99, "result": chosen("4")})
    wanted = ask(rig, locations=[{"path": "/etc/x"}])
    rig.agent.answer_to(wanted)
    assert len(wait_for(rig, 3)) == 3


def test_a_question_that_nobody_answers_is_written_down_when_the_session_ends(tmp_path):
    with Rig(tmp_path, fs=BOTH) as rig:
        rig.start()
        rig.open("s2")
        ask(rig, "s2", title="closed")
        rig.editor.request("session/request_permission")
        wanted = rig.editor.ask("session/close", {"sessionId": "s2"})
        rig.agent.answer(rig.agent.request("session/close"), {})
        rig.editor.answer_to(wanted)
        (known,) = wait_for(rig, 1)
        assert (known["title"], known["session"]) == ("closed", "s2")
        assert (known["verdict"], known["by"]) == ("cancelled", "nobody")
        ask(rig, title="left")
        rig.editor.request("session/request_permission")
    known = asked(rig)[0]
    assert (known["title"], known["by"]) == ("left", "nobody")


def test_a_call_with_a_diff_is_written_down_once_when_it_is_over(rig):
    rig.start()
    shown = [
        diff(rig.work / "a.txt", "one\ntwo\n", "one\n2\n3\n"),
        diff("/elsewhere/new", None, "n\n"),
        {"type": "content", "content": {"type": "text", "text": "x"}},
    ]
    tell(rig, "tool_call", title="Edit a", kind="edit", status="pending")
    tell(rig, status="in_progress", content=shown)
    tell(rig, status="completed")
    tell(rig, status="completed", content=shown)
    tell(rig, toolCallId="look", status="completed")
    tell(rig, toolCallId="gone", kind="delete", status="failed", content=[diff("b", "b\n", "")])
    gone, known = wait_for(rig, 2)
    assert known["files"] == [
        {"path": "a.txt", "added": 2, "removed": 1},
        {"path": "/elsewhere/new", "added": 1, "removed": 0},
    ]
    assert (known["title"], known["verdict"], known["how"]) == ("Edit a", "told", "completed")
    assert (known["by"], known["action"]) == ("", "write")
    assert (gone["action"], gone["how"]) == ("delete", "failed")
    assert gone["files"] == [{"path": "b", "added": 0, "removed": 1}]
    assert len(asked(rig)) == 2
    assert asked(rig, "a.txt") == [known]
    assert asked(rig, "-n", "1") == [gone]


def test_the_diff_of_a_question_is_the_calls_own(rig):
    rig.start()
    wanted = ask(rig, content=[diff(rig.work / "a.txt", "", "new\n")])
    question = rig.editor.request("session/request_permission")
    rig.editor.answer(question, chosen("2"))
    rig.agent.answer_to(wanted)
    tell(rig, status="completed")
    told, _ = wait_for(rig, 2)
    assert (told["verdict"], told["title"]) == ("told", "Edit it")
    assert told["files"] == [{"path": "a.txt", "added": 1, "removed": 0}]


def test_what_is_told_again_of_a_session_that_is_loaded_is_not_new(rig):
    rig.introduce()
    wanted = rig.editor.ask(
        "session/load", {"sessionId": "s1", "cwd": str(rig.work), "mcpServers": []}
    )
    request = rig.agent.request("session/load")
    tell(rig, title="old", status="completed", content=[diff("a.txt", "", "a\n")])
    rig.agent.answer(request, {})
    rig.editor.answer_to(wanted)
    tell(rig, title="new", status="completed", content=[diff("b.txt", "", "b\n")])
    assert [one["title"] for one in wait_for(rig, 1)] == ["new"]


def test_version_2_shows_patches(tmp_path):
    with Rig(tmp_path, protocol=2) as rig:
        rig.start()
        path = str(rig.work / "a.txt")
        patch = f"diff --git a{path} b{path}\n--- a{path}\n+++ b{path}\n@@ -1,2 +1 @@\n-x\n-y\n+z\n"
        changes = [{"operation": "modify", "path": path}, {"operation": "add", "path": "/x/new"}]
        shown = {
            "type": "diff",
            "changes": changes,
            "patch": {"format": "git_patch", "text": patch},
        }
        tell(rig, title="Edit", status="completed", content=[shown])
        call = {"type": "tool_call", "toolCall": {**EDIT, "locations": [{"path": "/etc/x"}]}}
        params = {"sessionId": "s1", "title": "May I", "subject": call, "options": OPTIONS}
        rig.agent.answer_to(rig.agent.ask("session/request_permission", params))
        refused, told = wait_for(rig, 2)
    assert told["files"] == [
        {"path": "a.txt", "added": 1, "removed": 2},
        {"path": "/x/new", "added": None, "removed": None},
    ]
    assert (refused["verdict"], refused["by"]) == ("refused", "rule roots")


def test_the_list_for_people_hides_nothing_and_keeps_its_lines(rig):
    rig.start()
    title = "Harmless\n  0s  far 1  allowed\u202e\x1b[2K"
    rig.agent.answer_to(ask(rig, title=title, locations=[{"path": "/etc/\u202epasswd"}]))
    tell(rig, title="Edit", status="completed", content=[diff(f"{n}", "", "") for n in range(9)])
    wait_for(rig, 2)
    told, refused = rig.command("log", "--asked").splitlines()
    assert "refused" in refused
    assert "by rule roots" in refused
    assert "\\u202e\\x1b[2K" in refused
    assert "/etc/\\u202epasswd" in refused
    assert "\x1b" not in refused
    assert "and 6 more files" in told
    assert "0 +0 -0" in told


def test_nobody_waits_for_a_journal_that_others_hold(rig):
    rig.start()
    other = apsw.Connection(str(rig.state / "journal.db"))
    other.execute("BEGIN IMMEDIATE")
    for _ in range(3):
        wanted = ask(rig, locations=[{"path": "/etc/passwd"}])
        assert rig.agent.answer_to(wanted)["result"] == chosen("4")
    tell(rig, status="completed", content=[diff("a", "", "a\n")])
    wanted = ask(rig)
    rig.editor.answer(rig.editor.request("session/request_permission"), chosen("2"))
    assert rig.agent.answer_to(wanted)["result"] == chosen("2")
    assert other.in_transaction
    other.execute("COMMIT")
    other.close()
    verdicts = [one["verdict"] for one in wait_for(rig, 5)]
    assert verdicts == ["allowed", "told", "refused", "refused", "refused"]


def test_a_command_is_called_one_whatever_files_it_names(rig):
    rig.start()
    ask(rig, kind="execute", rawInput={"command": "echo x > c.txt"}, locations=[{"path": "c.txt"}])
    request = rig.editor.request("session/request_permission")
    rig.editor.answer(request, chosen("2"))
    (only,) = wait_for(rig, 1)
    assert only["action"] == "run"
    assert [one["path"] for one in only["files"]] == ["c.txt"]


def test_reads_refusals_and_what_filepact_asked_itself_can_be_found_afterwards(tmp_path):
    with Rig(tmp_path, "--mode", "preview") as rig:
        (rig.work / "a.txt").write_text("one\n")
        (rig.work / ".env").write_text("TOKEN=1\n")
        rig.start()
        assert "result" in rig.read("a.txt")
        assert "error" in rig.read(".env")
        wanted = rig.begin_write("b.txt", "x\n")
        question = rig.editor.request("session/request_permission")
        reject = question["params"]["options"][-1]["optionId"]
        rig.editor.answer(question, chosen(reject))
        assert "error" in rig.agent.answer_to(wanted)
        assert "error" in rig.write(".git/config", "x\n")
    found = {one["files"][0]["path"]: one for one in asked(rig)}
    assert set(found) == {".env", "b.txt", ".git/config"}
    assert {one["verdict"] for one in found.values()} == {"refused"}
    assert found["b.txt"]["by"] == "editor"
    assert found["b.txt"]["change"]
    (read,) = json.loads(rig.command("log", "--reads", "--json"))["reads"]
    assert [one["path"] for one in read["files"]] == ["a.txt"]
    assert "read a.txt" in rig.command("log", "--reads")
    assert "b.txt" in rig.command("log", "--asked")
