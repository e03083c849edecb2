"""Files that an agent asks the editor for, answered by the proxy between them."""

import json
import threading

import pytest

from filepact.tools.engine import TOOLS
from tests.faces.acp.proxy.rig import BOTH, Rig


def test_an_editor_without_files_has_them_served_from_the_disk(tmp_path):
    with Rig(tmp_path) as rig:
        (rig.work / "a.txt").write_bytes(b"one\r\ntwo\r\nthree")
        rig.start()
        announced = rig.introduced["params"]["clientCapabilities"]
        assert announced == {"fs": BOTH}
        assert rig.read("a.txt")["result"] == {"content": "one\r\ntwo\r\nthree"}
        assert rig.read("a.txt", line=2, limit=1)["result"] == {"content": "two\r\n"}
        assert rig.read("a.txt", line=9)["result"] == {"content": ""}
        assert rig.write("a.txt", "one\n2\nthree")["result"] == {}
        assert (rig.work / "a.txt").read_bytes() == b"one\r\n2\r\nthree"
        assert rig.write("new/deep/b.txt", "x\n")["result"] == {}
        assert (rig.work / "new/deep/b.txt").read_text() == "x\n"
        assert rig.editor.quiet
        assert "edit    a.txt" in rig.command("log")
        rig.command("undo", "--unattended")
        assert not (rig.work / "new").exists()


@pytest.mark.parametrize("limit", [-1, 1.5, "2", True, 2**63])
def test_a_limit_that_is_no_number_of_lines_counts_as_none(tmp_path, limit):
    with Rig(tmp_path, checked=False) as rig:
        (rig.work / "a.txt").write_text("one\ntwo\nthree\n")
        rig.start()
        assert rig.read("a.txt", line=2, limit=limit)["result"] == {"content": "two\nthree\n"}


@pytest.mark.parametrize("odd", [{}, None, 5, "text", {"content": 5}, {"content": None}])
def test_an_editor_that_answers_with_no_text_is_an_error_and_nothing_is_written(tmp_path, odd):
    with Rig(tmp_path, fs=BOTH, checked=False) as rig:
        (rig.work / "a.txt").write_text("one\n")
        rig.start()
        for begin in (rig.begin_read, lambda name: rig.begin_write(name, "two\n")):
            wanted = begin("a.txt")
            rig.editor.answer(rig.editor.request("fs/read_text_file"), odd)
            assert rig.agent.answer_to(wanted)["error"]["data"]["errorKind"] == "read_error"
        assert (rig.work / "a.txt").read_text() == "one\n"
        assert rig.editor.quiet


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("fs", "asked"),
    [
        ({"readTextFile": True}, ["read"]),
        ({"writeTextFile": True}, ["write"]),
        (BOTH, ["read", "write"]),
    ],
)
def test_the_editor_is_asked_only_for_what_it_announced(tmp_path, fs, asked):
    with Rig(tmp_path, fs=fs) as rig:
        rig.start()
        wanted = rig.begin_write("a.txt", "x\n")
        if "read" in asked:
            rig.shows("")
        if "write" in asked:
            assert rig.takes()["content"] == "x\n"
        assert rig.agent.answer_to(wanted)["result"] == {}
        assert rig.editor.quiet


def test_an_editor_whose_files_are_not_wanted_is_asked_for_none(tmp_path):
    with Rig(tmp_path, "--no-editor-files", fs=BOTH) as rig:
        (rig.work / "a.txt").write_text("one\n")
        rig.start()
        assert rig.introduced["params"]["clientCapabilities"] == {"fs": BOTH}
        assert rig.read("a.txt")["result"] == {"content": "one\n"}
        assert rig.write("a.txt", "two\n")["result"] == {}
        assert (rig.work / "a.txt").read_text() == "two\n"
        assert rig.editor.quiet


def test_unsaved_text_is_read_merged_into_the_file_and_stays_when_the_change_is_undone(tmp_path):
    with Rig(tmp_path, fs=BOTH) as rig:
        (rig.work / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
        rig.start()
        wanted = rig.begin_read("a.txt")
        # This editor shows LF whatever the file has, as editors do.
        assert rig.shows("one\nTWO\nthree\n")["params"] == {
            "sessionId": "s1",
            "path": str(rig.work / "a.txt"),
        }
        assert rig.agent.answer_to(wanted)["result"]["content"] == "one\r\nTWO\r\nthree\r\n"
        wanted = rig.begin_write("a.txt", "one\nTWO\n3\n")
        rig.shows("one\nTWO\nthree\n")
        told = rig.takes()
        assert told["content"] == "one\nTWO\n3\n"
        assert rig.agent.answer_to(wanted)["result"] == {}
        assert (rig.work / "a.txt").read_bytes() == b"one\r\nTWO\r\n3\r\n"
        rig.command("undo", "--unattended")
        assert (rig.work / "a.txt").read_bytes() == b"one\r\nTWO\r\nthree\r\n"


def test_what_a_person_types_after_the_agent_has_read_is_kept(tmp_path):
    with Rig(tmp_path, fs=BOTH) as rig:
        (rig.work / "a.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
        rig.start()
        wanted = rig.begin_read("a.txt")
        rig.shows("one\ntwo\nthree\nfour\nfive\n")
        rig.agent.answer_to(wanted)
        wanted = rig.begin_write("a.txt", "one\ntwo\nthree\nfour\n5\n")
        rig.shows("1\ntwo\nthree\nfour\nfive\n")
        assert rig.takes()["content"] == "1\ntwo\nthree\nfour\n5\n"
        assert rig.agent.answer_to(wanted)["result"] == {}
        assert (rig.work / "a.txt").read_text() == "1\ntwo\nthree\nfour\n5\n"


def test_an_editor_that_cannot_read_the_bytes_of_a_file_leaves_it_to_the_disk(tmp_path):
    with Rig(tmp_path, fs=BOTH) as rig:
        (rig.work / "b.txt").write_bytes(b"caf\xe9\n")
        rig.start()
        wanted = rig.begin_read("b.txt")
        request = rig.editor.request("fs/read_text_file")
        rig.editor.refuse(request, "'utf-8' codec can't decode byte 0xe9 in position 3")
        assert rig.agent.answer_to(wanted)["result"] == {"content": "caf\u00e9\n"}
        # It drops bytes that it does not understand: that is nobody's unsaved text.
        wanted = rig.begin_write("b.txt", "caf\u00e9!\n")
        rig.shows("caf\n")
        rig.takes()
        assert rig.agent.answer_to(wanted)["result"] == {}
        assert (rig.work / "b.txt").read_bytes() == b"caf\xe9!\n"


def test_a_file_that_only_the_editor_has_is_read_and_written(tmp_path):
    with Rig(tmp_path, fs=BOTH) as rig:
        rig.start()
        wanted = rig.begin_read("new.txt")
        rig.shows("typed\n")
        assert rig.agent.answer_to(wanted)["result"] == {"content": "typed\n"}
        wanted = rig.begin_read("none.txt")
        rig.shows("")
        error = rig.agent.answer_to(wanted)["error"]
        assert (error["code"], error["data"]["uri"]) == (-32002, str(rig.work / "none.txt"))


def test_what_the_editor_refuses_is_taken_back(tmp_path):
    with Rig(tmp_path, fs=BOTH) as rig:
        (rig.work / "a.txt").write_text("one\n")
        rig.start()
        wanted = rig.begin_write("a.txt", "two\n")
        rig.shows("one\n")
        rig.editor.refuse(rig.told(), "outside of my projects")
        error = rig.agent.answer_to(wanted)["error"]
        assert error["data"]["errorKind"] == "editor_refused"
        assert "outside of my projects" in error["message"]
        assert (rig.work / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("by", ["session/cancel", "$/cancel_request"])
def test_a_held_write_is_dropped_when_the_turn_is_cancelled(tmp_path, by):
    with Rig(tmp_path, fs=BOTH) as rig:
        (rig.work / "a.txt").write_text("one\n")
        rig.introduce()
        rig.open()
        prompt = rig.prompt()
        wanted = rig.begin_write("a.txt", "two\n")
        rig.shows("one\n")
        held = rig.told()
        params = {"sessionId": "s1"} if by == "session/cancel" else {"requestId": prompt["id"]}
        rig.editor.send({"method": by, "params": params})
        assert rig.agent.answer_to(wanted)["error"]["code"] == -32800
        assert (rig.work / "a.txt").read_text() == "one\n"
        given_up = rig.editor.request("$/cancel_request")
        assert given_up["params"] == {"requestId": held["id"]}
        # And so are those that come late, until there is a new turn.
        assert rig.write("a.txt", "three\n")["error"]["code"] == -32800
        assert rig.agent.request(by)["params"] == params
        rig.prompt()
        wanted = rig.begin_write("a.txt", "four\n")
        rig.shows("one\n")
        rig.takes()
        assert rig.agent.answer_to(wanted)["result"] == {}


def test_a_write_that_waits_is_dropped_when_its_request_is_cancelled(tmp_path):
    with Rig(tmp_path, fs=BOTH) as rig:
        (rig.work / "a.txt").write_text("one\n")
        rig.start()
        wanted = rig.begin_write("a.txt", "two\n")
        rig.editor.request("fs/read_text_file")
        rig.agent.send({"method": "$/cancel_request", "params": {"requestId": wanted}})
        assert rig.agent.answer_to(wanted)["error"]["code"] == -32800
        assert (rig.work / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("fs", [BOTH, None])
def test_what_was_sent_before_the_end_of_the_turn_is_written_before_the_editor_hears_of_that(
    tmp_path, fs
):
    with Rig(tmp_path, fs=fs) as rig:
        (rig.work / "a.txt").write_text("one\n")
        rig.introduce()
        rig.open()
        prompt = rig.prompt()
        wanted = rig.begin_write("a.txt", "two\n")
        rig.agent.answer(prompt, {"stopReason": "end_turn"})
        if fs is not None:
            rig.shows("one\n")
            rig.takes()
        assert rig.editor.next()["result"] == {"stopReason": "end_turn"}
        assert (rig.work / "a.txt").read_text() == "two\n"
        assert rig.agent.answer_to(wanted)["result"] == {}


def test_an_editor_that_is_slow_hears_of_the_end_and_is_written_all_the_same(tmp_path):
    with Rig(tmp_path, fs=BOTH) as rig:
        (rig.work / "a.txt").write_text("one\n")
        rig.introduce()
        rig.open()
        prompt = rig.prompt()
        wanted = rig.begin_write("a.txt", "two\n")
        asked = rig.editor.request("fs/read_text_file")
        rig.agent.answer(prompt, {"stopReason": "end_turn"})
        assert rig.editor.next()["result"] == {"stopReason": "end_turn"}
        rig.editor.answer(asked, {"content": "one\n"})
        while (request := rig.editor.next())["method"] == "fs/read_text_file":
            rig.editor.answer(request, {"content": "one\n"})
        rig.editor.answer(request, {})
        assert rig.agent.answer_to(wanted)["result"] == {}
        assert (rig.work / "a.txt").read_text() == "two\n"


def test_a_question_that_is_open_when_the_turn_ends_is_taken_back(tmp_path):
    with Rig(tmp_path, "--mode", "preview", fs=BOTH) as rig:
        rig.introduce()
        rig.open()
        prompt = rig.prompt()
        wanted = rig.begin_write("a.txt", "two\n")
        rig.shows("")
        rig.editor.request("session/request_permission")
        rig.agent.answer(prompt, {"stopReason": "end_turn"})
        assert rig.agent.answer_to(wanted)["error"]["code"] == -32800
        assert not (rig.work / "a.txt").exists()


def test_writes_to_one_file_are_done_in_the_order_in_which_they_came(tmp_path):
    with Rig(tmp_path) as rig:
        (rig.work / "a.txt").write_text("")
        (rig.work / "b.txt").symlink_to("a.txt")
        rig.start()
        wanted = [rig.begin_write("ab"[n % 2] + ".txt", f"{n}\n") for n in range(20)]
        assert [rig.agent.next()["id"] for _ in wanted] == wanted
        assert (rig.work / "a.txt").read_text() == "19\n"


def test_agents_behind_two_proxies_of_one_editor_change_a_file_one_after_the_other(tmp_path):
    """Else the editor is given the text of the first after that of the second, whose change is gone."""
    (tmp_path / "second").mkdir()
    first, second = Rig(tmp_path, fs=BOTH), Rig(tmp_path / "second", fs=BOTH)
    second.work, second.state = first.work, first.state
    file = first.work / "a.txt"
    file.write_text("one\ntwo\nthree\n")
    with first, second:
        for rig in (first, second):
            rig.start()
            wanted = rig.begin_read("a.txt")
            rig.shows("one\ntwo\nthree\n")
            rig.agent.answer_to(wanted)
        begun = first.begin_write("a.txt", "1\ntwo\nthree\n")
        first.shows("one\ntwo\nthree\n")
        held = first.told()
        also = second.begin_write("a.txt", "one\ntwo\n3\n")

        def take() -> None:
            while (request := second.editor.next())["method"] == "fs/read_text_file":
                second.editor.answer(request, {"content": file.read_text()})
            file.write_text(request["params"]["content"])
            second.editor.answer(request, {})

        taker = threading.Thread(target=take)
        taker.start()
        taker.join(1.0)  # it may come before the first one is taken, and must not
        file.write_text(held["params"]["content"])
        first.editor.answer(held, {})
        assert first.agent.answer_to(begun)["result"] == {}
        taker.join(60.0)
        assert second.agent.answer_to(also)["result"] == {}
    assert file.read_text() == "1\ntwo\n3\n"


def test_refusals_say_all_in_the_message_and_have_their_numbers_and_kinds(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "work" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "work" / "id_rsa").write_text("x")
    with Rig(tmp_path, fs=BOTH) as rig:
        rig.start()
        read, write = "fs/read_text_file", "fs/write_text_file"
        cases = [
            (read, {"path": "a.txt"}, -32602, "invalid_params"),
            (read, {"path": 7}, -32602, "invalid_params"),
            (read, {}, -32602, "invalid_params"),
            (read, {"path": str(rig.work)}, -32602, "not_a_file"),
            (read, {"path": "/etc/passwd"}, -32603, "path_outside_workspace"),
            (read, {"path": f"{rig.work}-evil/a"}, -32603, "path_outside_workspace"),
            (read, {"path": str(rig.work / "link")}, -32603, "symlink_escape"),
            (read, {"path": str(rig.work / "id_rsa")}, -32603, "protected"),
            (write, {"path": str(rig.work / "id_rsa"), "content": ""}, -32603, "protected"),
            (
                write,
                {"path": str(tmp_path / "new"), "content": ""},
                -32603,
                "path_outside_workspace",
            ),
            (write, {"path": str(rig.work / "x")}, -32602, "invalid_params"),
            (read, {"path": str(rig.work / "x"), "sessionId": "other"}, -32602, "unknown_session"),
            (read, {"path": str(rig.work / "x"), "sessionId": None}, -32602, "unknown_session"),
        ]
        for method, params, code, kind in cases:
            rig.agent.raw(
                json.dumps(
                    {
                        "jsonrpc": "2.0",
                        "id": "q",
                        "method": method,
                        "params": {"sessionId": "s1", **params},
                    }
                ).encode()
            )
            error = rig.agent.next()["error"]
            assert (error["code"], error["data"]["errorKind"]) == (code, kind), params
            assert str(tmp_path / "secret") not in json.dumps(error)
        assert rig.editor.quiet


def test_half_a_character_is_refused_and_not_written(tmp_path):
    with Rig(tmp_path, checked=False) as rig:
        rig.start()
        error = rig.write("x", "\ud800")["error"]
        assert (error["code"], error["data"]["errorKind"]) == (-32602, "bad_text")
        assert not (rig.work / "x").exists()


def test_an_agent_may_read_before_it_has_said_which_id_its_session_has(tmp_path):
    with Rig(tmp_path) as rig:
        (rig.work / "AGENTS.md").write_text("be good\n")
        rig.introduce()
        rig.editor.ask("session/new", {"cwd": str(rig.work), "mcpServers": []})
        request = rig.agent.request("session/new")
        assert rig.read("AGENTS.md")["result"] == {"content": "be good\n"}
        rig.agent.answer(request, {"sessionId": "s1"})
        assert rig.read("AGENTS.md")["result"] == {"content": "be good\n"}


def test_each_session_has_its_own_folders_and_a_closed_one_none(tmp_path):
    with Rig(tmp_path) as rig:
        other = tmp_path / "other"
        other.mkdir()
        (other / "b.txt").write_text("b\n")
        rig.introduce()
        rig.open()
        rig.open("s2", cwd=rig.work, additionalDirectories=[str(other)])
        path = str(other / "b.txt")
        assert rig.read(path)["error"]["data"]["errorKind"] == "path_outside_workspace"
        assert rig.read(path, sessionId="s2")["result"] == {"content": "b\n"}
        rig.editor.ask("session/close", {"sessionId": "s2"})
        rig.agent.answer(rig.agent.request("session/close"), {})
        rig.editor.next()
        assert rig.read(path, sessionId="s2")["error"]["data"]["errorKind"] == "unknown_session"
        wanted = rig.editor.ask(
            "session/load", {"sessionId": "s2", "cwd": str(other), "mcpServers": []}
        )
        request = rig.agent.request("session/load")
        assert rig.read(path, sessionId="s2")["result"] == {"content": "b\n"}
        rig.agent.refuse(request, "gone")
        rig.editor.answer_to(wanted)
        assert rig.read(path, sessionId="s2")["error"]["data"]["errorKind"] == "unknown_session"


def test_a_file_that_the_editor_announces_is_known_without_asking(tmp_path):
    with Rig(tmp_path, fs=BOTH, checked=False) as rig:
        (rig.work / "a.py").write_text("a = 1\nb = 2\n")
        rig.start()
        uri = (rig.work / "a.py").as_uri()
        said = {"sessionId": "s1", "uri": uri}
        opened = {**said, "languageId": "python", "version": 1, "text": "a = 1\nb = 2\n"}
        rig.editor.send({"method": "document/didOpen", "params": opened})
        place = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 5}}
        typed = {**said, "version": 2, "contentChanges": [{"range": place, "text": "one"}]}
        rig.editor.send({"method": "document/didChange", "params": typed})
        assert [rig.agent.next()["method"] for _ in range(2)] == [
            "document/didOpen",
            "document/didChange",
        ]
        assert rig.read("a.py")["result"] == {"content": "a = one\nb = 2\n"}
        rig.editor.send({"method": "document/didClose", "params": said})
        rig.agent.next()
        wanted = rig.begin_read("a.py")
        rig.shows("a = 1\nb = 2\n")
        assert rig.agent.answer_to(wanted)["result"] == {"content": "a = 1\nb = 2\n"}


def opens(rig, name, text):
    """The editor tells by itself that it shows a file; returns what every notice of it names."""
    said = {"sessionId": "s1", "uri": (rig.work / name).as_uri()}
    opened = {**said, "languageId": "text", "version": 1, "text": text}
    rig.editor.send({"method": "document/didOpen", "params": opened})
    rig.agent.next()
    return said


def test_what_is_typed_after_an_editor_opened_a_file_that_it_was_being_asked_about_is_seen(
    tmp_path,
):
    with Rig(tmp_path, fs=BOTH, checked=False) as rig:
        (rig.work / "a.txt").write_bytes(b"one\r\n")
        rig.start()
        wanted = rig.begin_read("a.txt")
        question = rig.editor.request("fs/read_text_file")
        said = opens(rig, "a.txt", "one\n")
        rig.editor.answer(question, {"content": "one\n"})
        assert rig.agent.answer_to(wanted)["result"] == {"content": "one\r\n"}
        typed = {**said, "version": 2, "contentChanges": [{"text": "one\ntyped\n"}]}
        rig.editor.send({"method": "document/didChange", "params": typed})
        rig.agent.next()
        wanted = rig.begin_read("a.txt")
        rig.shows("one\ntyped\n")
        assert rig.agent.answer_to(wanted)["result"] == {"content": "one\r\ntyped\r\n"}


def test_an_editor_that_had_no_text_of_a_file_and_opened_it_since_is_asked_before_it_is_given_one(
    tmp_path,
):
    with Rig(tmp_path, fs=BOTH, checked=False) as rig:
        rig.start()
        wanted = rig.begin_read("new.txt")
        missing = {"code": -32002, "message": "Resource not found"}
        rig.editor.send({"id": rig.editor.request("fs/read_text_file")["id"], "error": missing})
        assert "error" in rig.agent.answer_to(wanted)
        opens(rig, "new.txt", "typed\n")
        assert rig.read("new.txt")["result"] == {"content": "typed\n"}
        wanted = rig.begin_write("new.txt", "typed\n\nagent\n")
        # More was typed, and is not told yet.
        rig.shows("typed more\n")
        assert rig.takes()["content"] == "typed more\n\nagent\n"
        assert rig.agent.answer_to(wanted)["result"] == {}


def test_what_single_agents_need_is_done_for_them(tmp_path):
    with Rig(tmp_path, agent="gemini-cli") as rig:
        rig.start()
        assert rig.read("none.txt")["result"] == {"content": ""}
        assert rig.read("/etc/none")["error"]["code"] == -32603
    (tmp_path / "s").unlink()
    with Rig(tmp_path, agent="qwen-code") as rig:
        (rig.work / "a.txt").write_text("1\n2\n3\n")
        rig.start()
        assert rig.read("a.txt", line=2, limit=1)["result"] == {
            "content": "2\n",
            "_meta": {"originalLineCount": 4},
        }
        form = {"lineEnding": "crlf", "bom": True, "path": "/etc/x"}
        assert rig.write("new.txt", "a\n", _meta=form)["result"] == {}
        assert (rig.work / "new.txt").read_bytes() == b"\xef\xbb\xbfa\r\n"


def test_what_is_advised_names_no_tool_that_the_caller_does_not_have(tmp_path):
    with Rig(tmp_path) as rig:
        (rig.work / "a.bin").write_bytes(b"\0\1\2\0")
        with (rig.work / "large.txt").open("wb") as large:
            large.truncate(40_000_000)
        rig.start()
        tools = {tool.name for tool in TOOLS} | {"base64", "offset"}
        for name, kind in (
            ("a.bin", "not_text"),
            ("no/such.txt", "not_found"),
            ("large.txt", None),
            (".", "not_a_file"),
        ):
            error = rig.read(name)["error"]
            assert kind in (None, error["data"]["errorKind"])
            assert not {tool for tool in tools if tool in error["message"]}, error


@pytest.mark.parametrize(("cwd", "sent"), [("var/home", "home"), ("home", "var/home")])
def test_a_folder_with_two_names_is_one_and_the_editor_hears_its_own(tmp_path, cwd, sent):
    (tmp_path / "var" / "home").mkdir(parents=True)
    (tmp_path / "home").symlink_to("var/home")
    (tmp_path / "home" / "a.txt").write_text("one\n")
    (tmp_path / "home" / ".env").write_text("KEY=1\n")
    with Rig(tmp_path, fs=BOTH) as rig:
        rig.introduce()
        rig.open(cwd=tmp_path / cwd)
        rig.prompt()
        named = str(tmp_path / cwd / "a.txt")
        wanted = rig.begin_read(tmp_path / sent / "a.txt")
        assert rig.shows("typed\n")["params"]["path"] == named
        assert rig.agent.answer_to(wanted)["result"] == {"content": "typed\n"}
        wanted = rig.begin_write(tmp_path / sent / "a.txt", "typed\nmore\n")
        assert rig.shows("typed\n")["params"]["path"] == named
        assert rig.takes()["path"] == named
        assert rig.agent.answer_to(wanted)["result"] == {}
        refused = rig.read(tmp_path / sent / ".env")["error"]
        assert refused["data"]["errorKind"] == "protected"
