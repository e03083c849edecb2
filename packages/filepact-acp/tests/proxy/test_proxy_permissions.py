"""Questions to the person: the agent's own, which the rules may answer, and ours."""

import json

import pytest

from filepact.tools.engine import TOOLS
from filepact_acp.permissions import READING
from tests.faces.acp.proxy.rig import BOTH, Rig
from tests.faces.acp.schema import check_next

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


PATCH = "--- a/a.txt\n+++ /etc/x\n@@ -1 +1 @@\n-a\n+b\n"
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
    {"kind": "execute", "rawInput": {"command": "bash -lc 'cat .env | head'"}},
    {"kind": "execute", "rawInput": {"command": ["sh", "-c", "cat .env"], "cwd": "."}},
    {"kind": "execute", "rawInput": {"cmd": "filepact approve --all"}},
    {"kind": "other", "rawInput": {"deep": [{"target": {"file": "../out.txt"}}]}},
    {"kind": "edit", "rawInput": '{"input": {"uri": "file:///etc/x"}}'},
    {"kind": "execute", "rawInput": '[{"command": "cat .env"}]'},
    {"kind": "read", "rawInput": {"name": "read", "arguments": '{"file_path": "/etc/x"}'}},
    {"kind": "other", "rawInput": {"params": [{"args": '{"argv": ["cat", ".env"]}'}]}},
    {"kind": "edit", "rawInput": {"patchText": PATCH}},
    {"kind": "edit", "rawInput": {"command": ["apply_patch", PATCH]}},
    {"kind": "execute", "rawInput": {"command": "cat", "args": [".env"]}},
]


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("call", OUTSIDE[::-1])
def test_what_the_rules_deny_is_refused_by_kind_and_no_person_is_asked(rig, call):
    rig.start()
    assert rig.agent.answer_to(ask(rig, call))["result"] == chosen("4")
    only = [one for one in OPTIONS if one["kind"] != "reject_once"]
    assert rig.agent.answer_to(ask(rig, call, only))["result"] == chosen("3")
    cancelled = {"outcome": {"outcome": "cancelled"}}
    assert rig.agent.answer_to(ask(rig, call, OPTIONS[:2]))["result"] == cancelled
    assert rig.editor.quiet


def test_version_2_tells_a_call_in_pieces_and_commands_as_such(tmp_path):
    with Rig(tmp_path, fs=BOTH, protocol=2) as rig:
        rig.introduce()
        rig.open()
        told = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "kind": "edit"}
        diff = {"type": "diff", "changes": [{"operation": "modify", "path": "/etc/x"}]}
        chunk = {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "t", "content": diff}
        for update in (told, chunk):
            rig.agent.send(
                {"method": "session/update", "params": {"sessionId": "s1", "update": update}}
            )
            assert rig.editor.next()["params"]["update"] == update
        patch = {"type": "diff", "changes": [], "patch": {"format": "git_patch", "text": PATCH}}
        for subject in (
            {"type": "tool_call", "toolCall": {"toolCallId": "t"}},
            {"type": "tool_call", "toolCall": {"toolCallId": "u", "content": [patch]}},
            {"type": "command", "command": "cat .env", "cwd": str(rig.work)},
        ):
            asked = {"sessionId": "s1", "title": "May I?", "subject": subject, "options": OPTIONS}
            wanted = rig.agent.ask("session/request_permission", asked)
            assert rig.agent.answer_to(wanted)["result"] == chosen("4")
        assert rig.editor.quiet


def test_a_uri_is_judged_as_the_file_that_it_names(rig):
    rig.start()
    call = {"kind": "edit", "locations": [{"path": f"file://{rig.work}/id%5Frsa"}]}
    assert rig.agent.answer_to(ask(rig, call))["result"] == chosen("4")
    assert rig.editor.quiet


@pytest.mark.slow(after=1)
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


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    "call",
    [
        {"kind": "edit", "locations": [{"path": "a.txt"}]},
        {"kind": "execute", "rawInput": {"command": "cat /etc/hosts", "path": "/etc/hosts"}},
        {"kind": "edit", "locations": [{"path": "Makefile"}, {"path": ".github/workflows/a.yml"}]},
        {"kind": "fetch"},
        {"kind": "edit", "rawInput": {"path": "a.txt", "content": '{"file_path": "/etc/x"}'}},
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


@pytest.mark.slow(after=2)
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


@pytest.mark.slow(after=1)
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
    rig.command("approve", "--unattended", change)
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
        # What the person has typed there is not lost, and the agent is not shown it either.
        rig.shows("TOKEN=SECRET\nTYPED=SECRET\n")
        asked = rig.editor.request("session/request_permission")
        option = asked["params"]["options"][0]
        assert option["kind"] == "allow_once"
        rig.editor.answer(asked, chosen(option["optionId"]))
        rig.takes()
        done, answer = tools.end()
        assert done
        assert "SECRET" not in answer
        assert (rig.work / ".env").read_text() == "TOKEN=SECRET\nTYPED=SECRET\nNEW=1\n"
        tools.close()


BOTH_FILES = """\
*** Begin Patch
*** Delete File: a.txt
*** Add File: b.txt
+2
*** End Patch
"""


# -- filepact's own questions ---------------------------------------------------------------------


def asked_about(rig, name, text):
    """A write that a person is asked about: the request of the agent, and the question."""
    return rig.begin_write(name, text), rig.editor.request("session/request_permission")


def option(question, kind, nth=0):
    of_kind = [one for one in question["params"]["options"] if one["kind"] == kind]
    return of_kind[nth]["optionId"]


@pytest.fixture
def preview(tmp_path):
    with Rig(tmp_path, "--mode", "preview") as made:
        made.start()
        yield made


def test_a_question_shows_the_texts_in_the_protocols_form_and_where_they_change(preview):
    (preview.work / "a.txt").write_text("1\n2\n3\n4\n")
    wanted, question = asked_about(preview, "a.txt", "1\n2\n3\nfour\n")
    call = question["params"]["toolCall"]
    path = str(preview.work / "a.txt")
    (only,) = call["content"]
    assert (only["type"], only["path"]) == ("diff", path)
    assert (only["oldText"], only["newText"]) == ("1\n2\n3\n4\n", "1\n2\n3\nfour\n")
    assert call["locations"] == [{"path": path, "line": 4}]
    preview.editor.answer(question, chosen(option(question, "allow_once")))
    assert preview.agent.answer_to(wanted)["result"] == {}
    wanted, question = asked_about(preview, "new.txt", "x\n")
    (only,) = question["params"]["toolCall"]["content"]
    assert (only["oldText"], only["newText"]) == (None, "x\n")
    preview.editor.answer(question, chosen(option(question, "reject_once")))
    assert "error" in preview.agent.answer_to(wanted)


def test_a_file_that_moves_while_the_person_looks_is_shown_again_with_what_happened(preview):
    path = preview.work / "a.txt"
    path.write_text("1\n2\n3\n4\n5\n6\n7\n8\n")
    wanted, first = asked_about(preview, "a.txt", "1\n2\n3\n4\n5\n6\n7\nEIGHT\n")
    path.write_text("1\n2\n3\n4\n5\nby hand\n7\n8\n")
    preview.editor.answer(first, chosen(option(first, "allow_once")))
    second = preview.editor.request("session/request_permission")
    call = second["params"]["toolCall"]
    assert call["toolCallId"] != first["params"]["toolCall"]["toolCallId"]
    since, only = call["content"]
    assert "+by hand" in since["content"]["text"]
    assert only["newText"] == "1\n2\n3\n4\n5\nby hand\n7\nEIGHT\n"
    assert path.read_text() == only["oldText"]
    preview.editor.answer(second, chosen(option(second, "allow_once")))
    assert preview.agent.answer_to(wanted)["result"] == {}
    assert path.read_text() == only["newText"]


def test_a_person_who_says_no_to_what_is_shown_again_has_refused_it(preview):
    path = preview.work / "a.txt"
    path.write_text("1\n2\n3\n")
    wanted, first = asked_about(preview, "a.txt", "1\n2\nTHREE\n")
    path.write_text("by hand\n2\n3\n")
    preview.editor.answer(first, chosen(option(first, "allow_once")))
    second = preview.editor.request("session/request_permission")
    preview.editor.answer(second, chosen(option(second, "reject_once")))
    assert preview.agent.answer_to(wanted)["error"]["data"]["errorKind"] == "denied"
    assert path.read_text() == "by hand\n2\n3\n"
    assert "nothing" in preview.command("pending").lower()


def test_a_question_that_is_closed_is_told_apart_from_one_that_was_refused(preview):
    said = []
    for outcome in ({"outcome": {"outcome": "cancelled"}}, chosen("filepact-reject")):
        wanted, question = asked_about(preview, "a.txt", "x = 1\n")
        preview.editor.answer(question, outcome)
        said.append(preview.agent.answer_to(wanted)["error"]["data"])
        assert "nothing" in preview.command("pending").lower()
    closed, refused = said
    assert closed["errorKind"] == refused["errorKind"] == "denied"
    assert (closed.get("closed"), refused.get("closed")) == (True, None)


def test_a_question_says_who_asked_and_when(preview):
    wanted, question = asked_about(preview, "a.txt", "x\n")
    (waiting,) = json.loads(preview.command("pending", "--json"))["pending"]
    name = f"{waiting['actor']['name']} {waiting['actor']['version']}".strip()
    title = question["params"]["toolCall"]["title"]
    assert title.endswith(f" agent {name} at {waiting['created']}")
    preview.editor.answer(question, chosen(option(question, "reject_once")))
    assert "error" in preview.agent.answer_to(wanted)


def test_what_is_hidden_is_written_out_beside_the_texts(preview):
    wanted, question = asked_about(preview, "a.txt", "x = 1 \u202e\n")
    written_out, texts = question["params"]["toolCall"]["content"]
    assert "\\u202e" in written_out["content"]["text"]
    assert "\u202e" not in written_out["content"]["text"]
    assert texts["type"] == "diff"
    assert {one["kind"] for one in question["params"]["options"]} == {"allow_once", "reject_once"}
    preview.editor.answer(question, chosen(option(question, "reject_once")))
    preview.agent.answer_to(wanted)


def test_what_is_not_shown_whole_is_not_allowed_in_a_dialog(preview):
    text = "".join(f"line {number} {'x' * 60}\n" for number in range(3_000)) + "\u200bevil\n"
    wanted, question = asked_about(preview, "a.txt", text)
    written_out, *_ = question["params"]["toolCall"]["content"]
    said = written_out["content"]["text"]
    assert "evil" not in said
    assert "more lines" in said
    options = question["params"]["options"]
    assert {one["kind"] for one in options} == {"reject_once"}
    assert len(options) == 2
    change = question["params"]["toolCall"]["toolCallId"].removeprefix("filepact-")
    assert f"filepact diff {change}" in said
    preview.editor.answer(question, chosen(options[0]["optionId"]))
    assert preview.agent.answer_to(wanted)["error"]["data"]["errorKind"] == "approval_required"
    assert change in preview.command("pending")
    assert "evil" in preview.command("diff", change)


def test_an_encoding_that_decides_the_bytes_is_named_in_a_dialog(preview):
    (preview.work / "b.sh").write_bytes(
        "# vim: fenc=shift_jis\n# 能力とサポート\nx\n".encode("shift_jis")
    )
    wanted, question = asked_about(
        preview, "b.sh", "# vim: fenc=shift_jis\n# 能力とサポート\nx ポ sh\n"
    )
    written_out, *_ = question["params"]["toolCall"]["content"]
    assert "Encoding of b.sh: shift_jis" in written_out["content"]["text"]
    assert "ポ[\\x83|] sh" in written_out["content"]["text"]
    preview.editor.answer(question, chosen(option(question, "reject_once")))
    preview.agent.answer_to(wanted)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("kind", "status"), [("allow_once", "completed"), ("reject_once", "failed")]
)
def test_a_question_is_closed_with_what_became_of_it(preview, kind, status):
    wanted, question = asked_about(preview, "a.txt", "x\n")
    preview.editor.answer(question, chosen(option(question, kind)))
    preview.agent.answer_to(wanted)
    end = preview.editor.ask("session/prompt", {"sessionId": "s1", "prompt": []})
    preview.agent.answer(preview.agent.request("session/prompt"), {"stopReason": "end_turn"})
    preview.editor.answer_to(end)
    (closed,) = preview.editor.closed
    call = question["params"]["toolCall"]["toolCallId"]
    assert (closed["toolCallId"], closed["status"]) == (call, status)


def test_what_is_allowed_for_a_file_is_asked_again_for_others(preview):
    wanted, question = asked_about(preview, "a.txt", "1\n")
    preview.editor.answer(question, chosen(option(question, "allow_always")))
    preview.agent.answer_to(wanted)
    assert preview.write("a.txt", "2\n")["result"] == {}
    assert (preview.work / "a.txt").read_text() == "2\n"
    wanted, question = asked_about(preview, "b.txt", "1\n")
    preview.editor.answer(question, chosen(option(question, "reject_once")))
    assert "error" in preview.agent.answer_to(wanted)
    wanted, question = asked_about(preview, "Makefile", "all:\n")
    preview.editor.answer(question, chosen(option(question, "reject_once")))
    preview.agent.answer_to(wanted)


def test_what_is_allowed_for_a_session_is_no_yes_to_what_a_rule_asks_or_denies(preview):
    wanted, question = asked_about(preview, "a.txt", "1\n")
    preview.editor.answer(question, chosen(option(question, "allow_always", 1)))
    preview.agent.answer_to(wanted)
    assert preview.write("b.txt", "1\n")["result"] == {}
    assert "error" in preview.write(".git/config", "1\n")
    wanted, question = asked_about(preview, "Makefile", "all:\n")
    # What is protected from the start is allowed for the file that was shown, and no further.
    kinds = [one["kind"] for one in question["params"]["options"]]
    assert kinds == ["allow_once", "allow_always", "reject_once"]
    preview.editor.answer(question, chosen(option(question, "allow_always")))
    assert preview.agent.answer_to(wanted)["result"] == {}
    assert preview.write("Makefile", "none:\n")["result"] == {}
    wanted, question = asked_about(preview, "sub/Makefile", "all:\n")
    preview.editor.answer(question, chosen(option(question, "reject_once")))
    assert "error" in preview.agent.answer_to(wanted)


def test_what_is_allowed_for_longer_is_listed_told_and_revoked_as_any_approval_in_advance(preview):
    wanted, question = asked_about(preview, "a.txt", "1\n")
    preview.editor.answer(question, chosen(option(question, "allow_always", 1)))
    preview.agent.answer_to(wanted)
    assert preview.write("b.txt", "1\n")["result"] == {}
    (given,) = json.loads(preview.command("grants", "--json"))["grants"]
    assert (given["pattern"], given["rules"]) == ("**", ["preview mode"])
    newest, first = json.loads(preview.command("log", "--json"))["operations"]
    assert given["id"] in newest["approved_by"]
    assert given["id"] not in first["approved_by"]
    preview.command("grants", "--revoke", given["id"], "--unattended")
    wanted, question = asked_about(preview, "b.txt", "2\n")
    preview.editor.answer(question, chosen(option(question, "reject_once")))
    assert "error" in preview.agent.answer_to(wanted)


def test_another_session_is_asked_of_its_own(preview):
    wanted, question = asked_about(preview, "a.txt", "1\n")
    preview.editor.answer(question, chosen(option(question, "allow_always", 1)))
    preview.agent.answer_to(wanted)
    preview.open("s2")
    preview.prompt("s2")
    params = {"sessionId": "s2", "path": str(preview.work / "a.txt"), "content": "2\n"}
    wanted = preview.agent.ask("fs/write_text_file", params)
    question = preview.editor.request("session/request_permission")
    preview.editor.answer(question, chosen(option(question, "reject_once")))
    assert "error" in preview.agent.answer_to(wanted)


def test_version_2_is_asked_with_changes_and_a_patch(tmp_path):
    with Rig(tmp_path, "--mode", "preview", protocol=2) as rig:
        (rig.work / "a.txt").write_text("1\n")
        tools = rig.tools(rig.start())
        tools.begin("patch_apply", patch=BOTH_FILES)
        question = rig.editor.request("session/request_permission")
        params = question["params"]
        call = params["subject"]["toolCall"]
        (only,) = call["content"]
        assert [(one["operation"], one["path"]) for one in only["changes"]] == [
            ("delete", str(rig.work / "a.txt")),
            ("add", str(rig.work / "b.txt")),
        ]
        assert only["patch"]["format"] == "git_patch"
        assert "+++ b/b.txt" in only["patch"]["text"]
        assert "description" not in params
        check_next("RequestPermissionRequest", params)
        rig.editor.answer(question, chosen(option(question, "allow_once")))
        assert tools.end()[0]
        tools.close()


# -- whether filepact's own reading tools may be used ----------------------------------------------

CLAUDE = "@zed-industries/claude-code-acp"


def named(tool):
    return {"kind": "other", "title": tool, "_meta": {"claudeCode": {"toolName": tool}}}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("tool", READING)
def test_questions_about_own_reading_tools_are_answered(tmp_path, tool):
    with Rig(tmp_path, agent=CLAUDE) as rig:
        rig.start()
        call = named(f"mcp__filepact__{tool}")
        assert rig.agent.answer_to(ask(rig, call))["result"] == chosen("2")
        assert rig.editor.quiet
        # What reaches outside is refused before that.
        outside = {**call, "rawInput": {"path": "/etc/passwd"}}
        assert rig.agent.answer_to(ask(rig, outside))["result"] == chosen("4")


def test_own_reading_tools_are_those_that_change_nothing():
    assert {tool.name for tool in TOOLS if tool.kind == "reads" and tool.level == "safe"} == set(
        READING
    )


FOREIGN = {
    "a writing tool": (CLAUDE, named("mcp__filepact__write_file"), []),
    "another server": (CLAUDE, named("mcp__filepact2__read_file"), []),
    "a title alone": (CLAUDE, {"kind": "read", "title": "mcp__filepact__read_file"}, []),
    "another agent": ("kimi-code", named("mcp__filepact__read_file"), []),
    "a server of the same name": (
        CLAUDE,
        named("mcp__filepact__read_file"),
        [{"name": "Filepact", "command": "/bin/true", "args": [], "env": []}],
    ),
}


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("agent", "call", "servers"), FOREIGN.values(), ids=FOREIGN)
def test_questions_about_anything_else_reach_the_person(tmp_path, agent, call, servers):
    with Rig(tmp_path, agent=agent) as rig:
        rig.introduce()
        rig.open(mcpServers=servers)
        rig.prompt()
        wanted = ask(rig, call)
        assert rig.editor.request("session/request_permission")["id"] == wanted


def test_answering_for_own_tools_can_be_switched_off(tmp_path):
    settings = tmp_path / "home" / ".config" / "filepact"
    settings.mkdir(parents=True)
    (settings / "filepact.toml").write_text("[acp]\nanswer_own = false\n")
    with Rig(tmp_path, agent=CLAUDE) as rig:
        rig.start()
        wanted = ask(rig, named("mcp__filepact__read_file"))
        assert rig.editor.request("session/request_permission")["id"] == wanted
