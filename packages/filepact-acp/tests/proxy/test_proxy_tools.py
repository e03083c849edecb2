"""The seven tools that agents get beside the protocol's own two."""

import pytest

from tests.faces.acp.proxy.rig import Rig


def test_tools_see_and_change_what_the_editor_shows(rig):
    (rig.work / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    tools = rig.tools(rig.start())
    tools.begin("read_file", path="a.txt")
    assert rig.shows("one\nTWO\n")["params"]["path"] == str(rig.work / "a.txt")
    done, said = tools.end()
    assert done
    assert "TWO" in said
    tools.begin("edit_file", path="a.txt", old_string="TWO", new_string="2")
    rig.shows("one\nTWO\n")
    assert rig.takes() == {
        "sessionId": "s1",
        "path": str(rig.work / "a.txt"),
        "content": "one\n2\n",
    }
    done, said = tools.end()
    assert done
    assert (rig.work / "a.txt").read_bytes() == b"one\r\n2\r\n"
    tools.begin(
        "patch_apply",
        patch="--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+ONE\n 2\n"
        "--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+new\n",
    )
    rig.shows("one\n2\n")
    rig.shows("")
    assert [rig.takes()["content"] for _ in range(2)] == ["ONE\n2\n", "new\n"]
    assert tools.end()[0]
    assert tools.close() == 0
    assert "far" in rig.command("show", rig.command("log").split()[0])


def test_several_files_are_read_as_the_editor_shows_them(rig):
    for name in ("a.txt", "b.txt"):
        (rig.work / name).write_text("one\n")
    tools = rig.tools(rig.start())
    tools.begin("read_file", paths=["a.txt", "b.txt"])
    for name in ("a.txt", "b.txt"):
        assert rig.shows(f"typed in {name}\n")["params"]["path"] == str(rig.work / name)
    done, said = tools.end()
    assert done
    assert "1\u2502typed in a.txt" in said
    assert "1\u2502typed in b.txt" in said
    tools.close()


def test_a_tool_whose_change_the_editor_refuses_fails_and_changes_nothing(rig):
    (rig.work / "a.txt").write_text("one\n")
    tools = rig.tools(rig.start())
    tools.begin("write_file", path="a.txt", content="two\n")
    rig.shows("one\n")
    rig.editor.refuse(rig.told(), "read only")
    done, said = tools.end()
    assert not done
    assert "read only" in said
    assert (rig.work / "a.txt").read_text() == "one\n"
    tools.close()


def test_a_tool_asks_the_person_in_the_editor(rig):
    tools = rig.tools(rig.start())
    tools.begin("write_file", path="Makefile", content="all:\n")
    rig.shows("")
    asked = rig.editor.request("session/request_permission")
    assert asked["params"]["sessionId"] == "s1"
    outcome = {"outcome": {"outcome": "selected", "optionId": "filepact-allow"}}
    rig.editor.answer(asked, outcome)
    rig.takes()
    done, said = tools.end()
    assert done
    assert said.startswith("Done")
    assert "Proposal" not in said
    tools.begin("write_file", path="Makefile", content="none:\n")
    rig.shows("all:\n")
    asked = rig.editor.request("session/request_permission")
    rig.editor.answer(asked, {"outcome": {"outcome": "cancelled"}})
    assert not tools.end()[0]
    # Allowed, and then not taken by the editor: that it was allowed is no news of a change.
    tools.begin("write_file", path="Makefile", content="none:\n")
    rig.shows("all:\n")
    while (asked := rig.editor.next())["method"] != "session/request_permission":
        pass
    rig.editor.answer(asked, outcome)
    rig.editor.refuse(rig.told(), "read only")
    done, said = tools.end()
    assert not done
    assert "read only" in said
    assert "applied" not in said
    assert (rig.work / "Makefile").read_text() == "all:\n"
    tools.close()


def test_tools_are_there_before_the_session_has_its_id_and_gone_with_it(tmp_path):
    with Rig(tmp_path) as rig:
        (rig.work / "a.txt").write_text("one\n")
        rig.introduce()
        rig.editor.ask("session/new", {"cwd": str(rig.work), "mcpServers": []})
        request = rig.agent.request("session/new")
        tools = rig.tools(request)
        assert tools.call("read_file", path="a.txt")[0]
        rig.agent.answer(request, {"sessionId": "s1"})
        rig.editor.next()
        assert not tools.call("read_file", path="/etc/passwd")[0]
        rig.editor.ask("session/close", {"sessionId": "s1"})
        rig.agent.answer(rig.agent.request("session/close"), {})
        rig.editor.next()
        with pytest.raises(AssertionError, match="gone"):
            rig.tools(request)
        tools.close()


def test_tools_keep_the_time_limit_that_is_set(tmp_path):
    settings = tmp_path / "home" / ".config" / "filepact"
    settings.mkdir(parents=True)
    (settings / "filepact.toml").write_text("[mcp]\ntimeout = 1\n")
    with Rig(tmp_path, fs={}) as rig:
        text = "".join(f"line {n}\n" for n in range(400_000))
        (rig.work / "large.txt").write_text(text)
        # More than a second's work, and less than the usual limit.
        edits = [{"old_string": f"line {n}\n", "new_string": f"{n}\n"} for n in range(900, 1_050)]
        tools = rig.tools(rig.start())
        done, said = tools.call("edit_file", path="large.txt", edits=edits)
        assert not done
        assert said.startswith("TIMEOUT: ")
        assert (rig.work / "large.txt").read_text() == text
        tools.close()


def test_a_server_of_the_editors_keeps_its_name_and_ours_takes_a_free_one(rig):
    rig.introduce()
    theirs = [{"name": name, "command": "x", "args": [], "env": []} for name in ("FilePact", "b")]
    for others, names in (
        (theirs, ["FilePact", "b", "filepact-2"]),
        (
            [{**theirs[0], "name": "filepact-2"}, theirs[0]],
            ["filepact-2", "FilePact", "filepact-3"],
        ),
        ([], ["filepact"]),
    ):
        wanted = rig.editor.ask("session/new", {"cwd": str(rig.work), "mcpServers": others})
        request = rig.agent.request("session/new")
        assert [one["name"] for one in request["params"]["mcpServers"]] == names
        rig.agent.answer(request, {"sessionId": "s1"})
        rig.editor.answer_to(wanted)
