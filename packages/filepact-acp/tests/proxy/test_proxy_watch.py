"""What an agent writes past all doors is in the journal, and can be undone."""

import json
import shutil
import subprocess
import time

import pytest

from tests.faces.acp.proxy.rig import Rig


def wait_for(rig, count):
    for _ in range(200):
        said = json.loads(rig.command("log", "--json"))["operations"]
        if len(said) >= count:
            return said
        time.sleep(0.05)
    raise AssertionError(said)


def learned(rig):
    """Wait until it is known what is there, after which a command is attended to: no prompt waits for that."""
    call = {"toolCallId": "0", "title": "true", "kind": "execute", "rawInput": {"command": "true"}}
    options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
    given = {"sessionId": "s1", "toolCall": call, "options": options}
    asked = rig.agent.ask("session/request_permission", given)
    question = rig.editor.request("session/request_permission")
    rig.editor.answer(question, {"outcome": {"outcome": "selected", "optionId": "y"}})
    rig.agent.answer_to(asked)


def end(rig, prompt):
    rig.agent.answer(prompt, {"stopReason": "end_turn"})
    rig.editor.next()


def test_what_is_written_in_a_turn_is_seen_and_undone_and_the_persons_own_is_not(tmp_path):
    with Rig(tmp_path) as rig:
        (rig.work / "a.txt").write_text("one\n")
        rig.introduce()
        rig.open()
        learned(rig)
        prompt = rig.prompt(words="tidy the texts")
        assert rig.write("door.txt", "x\n")["result"] == {}
        (rig.work / "a.txt").write_text("two\n")
        (rig.work / "new.txt").write_text("new\n")
        end(rig, prompt)
        newest, by_door = wait_for(rig, 2)
        assert newest["tool"] == "outside"
        assert newest["turn"] == by_door["turn"] != ""
        assert {one["path"] for one in newest["files"]} == {"a.txt", "new.txt"}
        (turn,) = json.loads(rig.command("log", "--turns", "--json"))["turns"]
        assert turn["request"] == "tidy the texts"
        rig.command("undo", "--unattended")
        assert (rig.work / "a.txt").read_text() == "one\n"
        assert not (rig.work / "new.txt").exists()

        (rig.work / "a.txt").write_text("mine\n")
        prompt = rig.prompt()
        (rig.work / "b.txt").write_text("b\n")
        update = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}
        rig.agent.send(
            {"method": "session/update", "params": {"sessionId": "s1", "update": update}}
        )
        newest = wait_for(rig, 4)[0]
        assert newest["turn"] not in ("", by_door["turn"])
        assert [one["path"] for one in newest["files"]] == ["b.txt"]
        # The last that is written before everything ends is seen too.
        (rig.work / "c.txt").write_text("c\n")
    newest = wait_for(rig, 5)[0]
    assert [one["path"] for one in newest["files"]] == ["c.txt"]


def test_it_can_be_switched_off(tmp_path):
    with Rig(tmp_path, "--no-watch") as rig:
        rig.introduce()
        rig.open()
        prompt = rig.prompt()
        (rig.work / "a.txt").write_text("two\n")
        end(rig, prompt)
    assert json.loads(rig.command("log", "--json"))["operations"] == []


def test_a_second_agent_that_begins_does_not_hide_what_the_first_is_doing(tmp_path):
    with Rig(tmp_path) as rig:
        (rig.work / "a.txt").write_text("one\n")
        rig.introduce()
        rig.open()
        rig.open("s2")
        prompt = rig.prompt()
        (rig.work / "a.txt").write_text("two\n")
        rig.prompt("s2")
        (newest,) = wait_for(rig, 1)
        assert [one["path"] for one in newest["files"]] == ["a.txt"]
        assert newest["session"] == "s1"
        end(rig, prompt)


def test_a_session_that_the_agent_refused_does_not_keep_the_next_from_being_watched(tmp_path):
    with Rig(tmp_path) as rig:
        (rig.work / "a.txt").write_text("one\n")
        rig.introduce()
        wanted = rig.editor.ask("session/new", {"cwd": str(rig.work), "mcpServers": []})
        request = rig.agent.request("session/new")
        rig.agent.refuse(request, "not now")
        assert "error" in rig.editor.answer_to(wanted)
        rig.open()
        prompt = rig.prompt()
        (rig.work / "a.txt").write_text("two\n")
        end(rig, prompt)
        (newest,) = wait_for(rig, 1)
        assert [one["path"] for one in newest["files"]] == ["a.txt"]


def test_what_steers_git_is_seen_in_a_turn_and_is_noted(tmp_path):
    with Rig(tmp_path) as rig:
        subprocess.run(["git", "init", "-q", rig.work], check=True)
        rig.introduce()
        rig.open()
        learned(rig)
        prompt = rig.prompt()
        hook = rig.work / ".git/hooks/pre-push"
        hook.write_text("evil\n")
        end(rig, prompt)
        (newest,) = wait_for(rig, 1)
        assert [one["path"] for one in newest["files"]] == [".git/hooks/pre-push"]
        assert ".git/hooks/pre-push" in newest["note"]
        rig.command("undo", "--unattended")
        assert not hook.exists()


@pytest.mark.parametrize("asked", [True, False], ids=["asked", "only told"])
def test_what_a_command_names_is_kept_before_it_runs_though_it_is_ignored_or_large(tmp_path, asked):
    """Git ignores the one, and the other is too large to be known from the beginning."""
    with Rig(tmp_path) as rig:
        subprocess.run(["git", "init", "-q", rig.work], check=True)
        large = bytes(range(256)) * 8_000
        for name, held in ((".gitignore", b"data/\n"), ("data/mine", b"mine\n"), ("big", large)):
            (rig.work / name).parent.mkdir(exist_ok=True)
            (rig.work / name).write_bytes(held)
        rig.introduce()
        rig.open()
        prompt = rig.prompt()
        call = {"toolCallId": "t", "title": "rm", "kind": "execute", "status": "pending"}
        call |= {"rawInput": {"command": "rm -r data big"}}
        if not asked:
            update = {"sessionUpdate": "tool_call", **call}
            told = {"method": "session/update", "params": {"sessionId": "s1", "update": update}}
            rig.agent.send(told)
            rig.editor.next()
            # When this is asked about, the other has been looked at.
            call |= {"toolCallId": "t2", "rawInput": {"command": "true"}}
        options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
        given = {"sessionId": "s1", "toolCall": call, "options": options}
        rig.agent.ask("session/request_permission", given)
        rig.editor.request("session/request_permission")
        shutil.rmtree(rig.work / "data")
        (rig.work / "big").unlink()
        end(rig, prompt)
        wait_for(rig, 1)
        rig.command("undo", "--turn", "--unattended")
        assert (rig.work / "data/mine").read_bytes() == b"mine\n"
        assert (rig.work / "big").read_bytes() == large
