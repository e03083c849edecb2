"""Questions to the person: the agent's own, which the rules may answer, and ours."""

import pytest

from tests.faces.acp.proxy.rig import BOTH, Rig

OPTIONS = [
    {"optionId": "1", "name": "Always", "kind": "allow_always"},
    {"optionId": "2", "name": "Yes", "kind": "allow_once"},
    {"optionId": "3", "name": "Never", "kind": "reject_always"},
    {"optionId": "4", "name": "No", "kind": "reject_once"},
]


def ask(rig, call, options=OPTIONS):
    call = {"toolCallId": "t", "title": "Edit it", **call}
    params = {"sessionId": "s1", "toolCall": call, "options": options}
    return rig.agent.ask("session/request_permission", params)


def chosen(option):
    return {"outcome": {"outcome": "selected", "optionId": option}}


@pytest.fixture
def rig(tmp_path):
    with Rig(tmp_path, fs=BOTH) as made:
        yield made


OUTSIDE = [
    {"kind": "edit", "locations": [{"path": "/etc/passwd"}]},
    {
        "kind": "edit",
        "content": [{"type": "diff", "path": "/etc/x", "oldText": None, "newText": ""}],
    },
    {"rawInput": {"file_path": "/etc/x", "content": "x"}},
    {"rawInput": {"path": "../out.txt", "new_string": "x"}},
    {"kind": "read", "locations": [{"path": "/etc/passwd"}]},
    {"kind": "move", "rawInput": {"source": "a.txt", "destination": "/tmp/out"}},
    {"kind": "edit", "locations": [{"path": "id_rsa"}]},
]


@pytest.mark.parametrize("call", OUTSIDE)
def test_what_the_rules_deny_is_refused_by_kind_and_no_person_is_asked(rig, call):
    rig.start()
    assert rig.agent.answer_to(ask(rig, call))["result"] == chosen("4")
    only = [one for one in OPTIONS if one["kind"] != "reject_once"]
    assert rig.agent.answer_to(ask(rig, call, only))["result"] == chosen("3")
    cancelled = {"outcome": {"outcome": "cancelled"}}
    assert rig.agent.answer_to(ask(rig, call, OPTIONS[:2]))["result"] == cancelled
    assert rig.editor.quiet


@pytest.mark.parametrize("told", OUTSIDE)
def test_what_was_told_of_a_call_before_counts_for_a_question_that_only_names_it(rig, told):
    rig.start()
    update = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit it", **told}
    rig.agent.send({"method": "session/update", "params": {"sessionId": "s1", "update": update}})
    rig.editor.next()
    params = {"sessionId": "s1", "toolCall": {"toolCallId": "t"}, "options": OPTIONS}
    wanted = rig.agent.ask("session/request_permission", params)
    assert rig.agent.answer_to(wanted)["result"] == chosen("4")
    assert rig.editor.quiet


@pytest.mark.parametrize(
    "call",
    [
        {"kind": "edit", "locations": [{"path": "a.txt"}]},
        {"kind": "execute", "rawInput": {"command": "cat /etc/passwd", "path": "/etc/passwd"}},
        {"kind": "edit", "locations": [{"path": "Makefile"}, {"path": ".github/workflows/a.yml"}]},
        {"kind": "fetch"},
    ],
)
def test_what_the_rules_leave_open_is_for_the_person(rig, call):
    rig.start()
    wanted = ask(rig, call)
    asked = rig.editor.request("session/request_permission")
    assert asked["id"] == wanted
    assert asked["params"]["options"] == OPTIONS
    rig.editor.answer(asked, chosen("1"))
    assert rig.agent.answer_to(wanted)["result"] == chosen("1")


def test_what_a_person_has_written_down_as_allowed_is_not_asked_again(tmp_path):
    settings = tmp_path / "home" / ".config" / "filepact"
    settings.mkdir(parents=True)
    (settings / "filepact.toml").write_text(
        '[[allow]]\npaths = ["**/Makefile"]\nactions = ["write"]\nlifts = ["manifests"]\n'
    )
    with Rig(tmp_path, fs=BOTH) as rig:
        rig.start()
        (rig.work / "Makefile").write_text("all:\n")
        call = {"kind": "edit", "locations": [{"path": "Makefile"}]}
        assert rig.agent.answer_to(ask(rig, call))["result"] == chosen("2")


ALLOWED = """
[default]
change = "ask"

[[allow]]
paths = ["docs/**"]
"""

MORE_THAN_FILES = {
    "a command": {"kind": "execute", "rawInput": {"command": "rm -rf ~"}},
    "an unknown tool": {"kind": "other", "rawInput": {"path": "docs/a.md", "target": "all"}},
    "a fetch": {"kind": "fetch", "rawInput": {"url": "http://x.invalid", "file": "docs/a.md"}},
    "no kind": {"rawInput": {"path": "docs/a.md", "command": "true"}},
    "another mode": {"kind": "switch_mode", "rawInput": {"mode": "yolo"}},
    "a move": {"kind": "move", "rawInput": {"src": "src/x.py", "path": "docs/x.py"}},
    "an unknown argument": {
        "kind": "edit",
        "rawInput": {"file_path": "docs/a.md", "targets": ["../src/x.py"]},
    },
    "a patch": {"kind": "edit", "rawInput": {"path": "docs/a.md", "patch": "--- x"}},
    "an unknown member": {"kind": "edit", "command": "true"},
    "unknown content": {"kind": "edit", "content": [{"type": "terminal", "terminalId": "1"}]},
    "arguments in words": {"kind": "edit", "rawInput": "rm -rf ~"},
    "a place that is none": {"kind": "edit", "rawInput": {"path": ["docs/a.md", 7]}},
    "hidden characters": {
        "kind": "edit",
        "content": [
            {"type": "diff", "path": "docs/a.md", "oldText": "a\n", "newText": "a\u202e\n"}
        ],
    },
    "one file beside it": {"kind": "edit", "locations": [{"path": "src/x.py"}]},
}

PLAIN = {
    "an edit": {
        "kind": "edit",
        "content": [{"type": "diff", "path": "docs/a.md", "oldText": "a\n", "newText": "b\n"}],
        "rawInput": {"file_path": "docs/a.md", "old_string": "a", "new_string": "b"},
    },
    "a deletion": {"kind": "delete"},
    "a reading": {"kind": "read", "rawInput": {"path": "docs/a.md", "limit": 9}},
}


@pytest.fixture
def allowing(tmp_path):
    settings = tmp_path / "home" / ".config" / "filepact"
    settings.mkdir(parents=True)
    (settings / "filepact.toml").write_text(ALLOWED)
    with Rig(tmp_path, fs=BOTH) as rig:
        rig.start()
        for name in ("docs/a.md", "src/x.py"):
            (rig.work / name).parent.mkdir()
            (rig.work / name).write_text("a\n")
        yield rig


@pytest.mark.parametrize("call", MORE_THAN_FILES.values(), ids=MORE_THAN_FILES)
def test_a_rule_about_files_never_says_yes_to_anything_else(allowing, call):
    call = {"locations": [{"path": "docs/a.md"}], **call}
    wanted = ask(allowing, call)
    asked = allowing.editor.request("session/request_permission")
    assert asked["id"] == wanted
    # What was told of the call before is not forgotten when a question shows less of it.
    update = {"sessionUpdate": "tool_call", "toolCallId": "u", "title": "Edit it", **call}
    told = {"method": "session/update", "params": {"sessionId": "s1", "update": update}}
    allowing.agent.send(told)
    allowing.editor.next()
    plain = {"toolCallId": "u", "kind": "edit", "locations": [{"path": "docs/a.md"}]}
    wanted = ask(allowing, plain)
    assert allowing.editor.request("session/request_permission")["id"] == wanted


@pytest.mark.parametrize("call", PLAIN.values(), ids=PLAIN)
def test_a_plain_call_that_a_person_has_allowed_is_answered(allowing, call):
    call = {"locations": [{"path": "docs/a.md"}], **call}
    assert allowing.agent.answer_to(ask(allowing, call))["result"] == chosen("2")


def test_a_denial_is_found_behind_a_file_that_a_person_is_asked_about(allowing):
    call = {"kind": "edit", "locations": [{"path": "src/x.py"}, {"path": "/etc/passwd"}]}
    assert allowing.agent.answer_to(ask(allowing, call))["result"] == chosen("4")


def test_a_change_that_a_rule_asks_about_is_put_to_the_person_in_the_editor(rig):
    rig.start()
    wanted = rig.begin_write("Makefile", "all:\n\techo \u202e\n")
    rig.shows("")
    asked = rig.editor.request("session/request_permission")
    call = asked["params"]["toolCall"]
    assert "Makefile" in call["title"]
    shown = call["content"][0]["content"]["text"]
    assert "+all:" in shown
    assert "\u202e" not in shown
    kinds = {one["kind"]: one["optionId"] for one in asked["params"]["options"]}
    rig.editor.answer(asked, chosen(kinds["allow_once"]))
    assert rig.takes()["content"] == "all:\n\techo \u202e\n"
    assert rig.agent.answer_to(wanted)["result"] == {}
    assert (rig.work / "Makefile").exists()

    wanted = rig.begin_write("Makefile", "none:\n")
    rig.shows("all:\n\techo \u202e\n")
    asked = rig.editor.request("session/request_permission")
    rig.editor.answer(asked, chosen(kinds["reject_once"]))
    assert rig.agent.answer_to(wanted)["error"]["data"]["errorKind"] == "denied"
    assert "all:" in (rig.work / "Makefile").read_text()


def test_a_question_of_ours_ends_with_the_turn(rig):
    rig.start()
    wanted = rig.begin_write("Makefile", "all:\n")
    rig.shows("")
    rig.editor.request("session/request_permission")
    rig.editor.send({"method": "session/cancel", "params": {"sessionId": "s1"}})
    assert rig.agent.answer_to(wanted)["error"]["code"] == -32800
    assert not (rig.work / "Makefile").exists()
    assert "nothing" in rig.command("pending").lower()


def test_without_a_dialog_a_change_waits_for_the_command(rig):
    rig.start()
    wanted = rig.begin_write("Makefile", "all:\n")
    rig.shows("")
    rig.editor.refuse(rig.editor.request("session/request_permission"), "no dialogs here")
    error = rig.agent.answer_to(wanted)["error"]
    assert error["data"]["errorKind"] == "approval_required"
    change = error["message"].split(" as ")[1].split()[0]
    rig.command("approve", change)
    assert (rig.work / "Makefile").read_text() == "all:\n"


def test_in_preview_every_change_is_put_to_the_person(tmp_path):
    with Rig(tmp_path, "--mode", "preview") as rig:
        rig.start()
        wanted = rig.begin_write("a.txt", "a\n")
        asked = rig.editor.request("session/request_permission")
        rig.editor.answer(asked, chosen("filepact-allow"))
        assert rig.agent.answer_to(wanted)["result"] == {}
        assert (rig.work / "a.txt").read_text() == "a\n"


def test_what_a_person_allows_in_a_protected_file_is_not_shown_to_the_agent(tmp_path):
    with Rig(tmp_path, fs=BOTH) as rig:
        request = rig.start()
        (rig.work / ".env").write_text("TOKEN=SECRET\n")
        tools = rig.tools(request)
        tools.begin("write_file", path=".env", content="NEW=1\n", append=True)
        asked = rig.editor.request("session/request_permission")
        option = asked["params"]["options"][0]
        assert option["kind"] == "allow_once"
        rig.editor.answer(asked, chosen(option["optionId"]))
        rig.takes()
        done, answer = tools.end()
        assert done
        assert "SECRET" not in answer
        assert (rig.work / ".env").read_text() == "TOKEN=SECRET\nNEW=1\n"
        tools.close()
