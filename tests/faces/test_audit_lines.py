"""The audit log line by line, beside what happened: through the proxy, behind `run`, and in hooks."""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from filepact.faces.hooks.service import HookDaemon
from tests.faces.acp.proxy.rig import BOTH, Rig
from tests.faces.test_run import Place

if TYPE_CHECKING:
    from pathlib import Path


def lines(state: Path) -> list[dict[str, Any]]:
    """Every record, with the chain checked by hand."""
    found: list[dict[str, Any]] = []
    before = "0" * 64
    for file in sorted((state / "audit").glob("*.jsonl")):
        for line in file.read_bytes().splitlines():
            record = json.loads(line)
            assert record["before"] == before
            assert record["seq"] == len(found) + 1
            before = hashlib.sha256(line).hexdigest()
            found.append(record)
    return found


def told(record: dict[str, Any]) -> tuple[Any, ...]:
    """What a line says happened, without what is different each time."""
    event = record["event"]
    files = [
        (
            one["path"],
            *(side and side.get("sha256", side) for side in (one.get("before"), one.get("after"))),
        )
        for one in record.get("files", ())
    ]
    who = record.get("session", {}).get("name")
    match event:
        case "call":
            return event, who, record["tool"], record.get("asked"), record["code"]
        case "read":
            return event, who, record["path"].rpartition("/")[2], record.get("sha256")
        case "refused":
            return event, who, record["asked"].rpartition("/")[2], record["rule"]
        case "intent" | "external" | "proposed":
            return event, who, record["tool"], files
        case "outcome":
            return event, record["state"]
        case "decided":
            return event, record["verdict"], record["by"]
        case _:
            return (event,)


def pairs(found: list[dict[str, Any]]) -> None:
    """Every intention has one end, after it, under its id."""
    open_ones: set[str] = set()
    for one in found:
        if one["event"] == "intent":
            open_ones.add(one["change"])
        elif one["event"] == "outcome" and one["change"] in open_ones:
            open_ones.remove(one["change"])
    assert not open_ones


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def checked(state: Path) -> list[tuple[Any, ...]]:
    found = lines(state)
    pairs(found)
    every = json.dumps(found)
    assert "PLANTED" not in every
    assert found[0]["event"] == "start"
    return [told(one) for one in found[1:]]


def test_the_proxy_writes_down_each_thing_once_and_in_order(tmp_path: Path) -> None:
    with Rig(tmp_path) as rig:
        (rig.work / "a.txt").write_text("one\n")
        (rig.work / ".env").write_text("KEY=PLANTED\n")
        rig.start()
        assert rig.read("a.txt")["result"]
        assert rig.write("a.txt", "two\n")["result"] == {}
        assert "error" in rig.read(".env")
        wanted = rig.begin_write(".env", "KEY=PLANTED2\n")
        asked = rig.editor.request("session/request_permission")
        refused = {"outcome": "selected", "optionId": "filepact-reject"}
        rig.editor.answer(asked, {"outcome": refused})
        assert "error" in rig.agent.answer_to(wanted)
        assert rig.write("b.txt", "new\n")["result"] == {}
        assert "error" in rig.read("gone.txt")
    read, write = "fs/read_text_file", "fs/write_text_file"

    def call(tool: str, name: str, code: str) -> tuple[str, ...]:
        return ("call", "far", tool, str(rig.work / name), code)

    assert checked(rig.state) == [
        ("read", "far", "a.txt", sha("one\n")),
        call(read, "a.txt", "OK"),
        ("intent", "far", write, [("a.txt", sha("one\n"), sha("two\n"))]),
        ("outcome", "applied"),
        call(write, "a.txt", "OK"),
        ("refused", "far", ".env", "project secrets"),
        call(read, ".env", "PATH_BLOCKED"),
        ("proposed", "far", write, [(".env", sha("KEY=PLANTED\n"), sha("KEY=PLANTED2\n"))]),
        call(write, ".env", "OK"),  # It waits, for the person.
        ("decided", "rejected", "editor"),
        ("intent", "far", write, [("b.txt", None, sha("new\n"))]),
        ("outcome", "applied"),
        call(write, "b.txt", "OK"),
        call(read, "gone.txt", "NOT_FOUND"),
    ]


def test_what_the_editor_shows_of_a_file_is_written_down_as_well(tmp_path: Path) -> None:
    with Rig(tmp_path, fs=BOTH) as rig:
        for name in ("a.txt", "b.txt"):
            (rig.work / name).write_text("one\n")
        rig.start()
        wanted = rig.begin_read("a.txt")
        rig.shows("one\n")
        assert rig.agent.answer_to(wanted)["result"] == {"content": "one\n"}
        wanted = rig.begin_read("b.txt")
        rig.shows("typed\n")
        assert rig.agent.answer_to(wanted)["result"] == {"content": "typed\n"}
    tool = "fs/read_text_file"
    assert checked(rig.state) == [
        ("read", "far", "a.txt", sha("one\n")),
        ("call", "far", tool, str(rig.work / "a.txt"), "OK"),
        ("read", "far", "b.txt", sha("typed\n")),
        ("call", "far", tool, str(rig.work / "b.txt"), "OK"),
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
def test_a_run_writes_down_what_was_committed_and_what_waits(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.file("a.txt", "one\n")
    place.file("gone.txt", "gone\n")
    place.run("echo two > a.txt; rm gone.txt; echo new > b.txt; echo K=PLANTED > .env")
    changed = [
        ("a.txt", sha("one\n"), sha("two\n")),
        ("b.txt", None, sha("new\n")),
        ("gone.txt", sha("gone\n"), None),
    ]
    assert checked(tmp_path / "state") == [
        ("intent", "sh", "run", changed),
        ("outcome", "applied"),
        ("proposed", "sh", "run", [(".env", None, sha("K=PLANTED\n"))]),
    ]
    assert (place.root / "a.txt").read_text() == "two\n"
    assert not (place.root / ".env").exists()


def test_hooks_write_down_what_was_asked_refused_and_changed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    (root / ".env").write_text("KEY=PLANTED\n")

    def event(name: str, tool: str, call: str, **given: Any) -> bytes:
        facts = {"session_id": "s1", "hook_event_name": name, "cwd": str(root)}
        more = {"tool_name": tool, "tool_use_id": call, "tool_input": given}
        return json.dumps({**facts, **more}).encode()

    with closing(HookDaemon((str(root),), str(tmp_path / "state"))) as daemon:
        path, secret = str(root / "a.txt"), str(root / ".env")
        daemon.answer("claude", event("PreToolUse", "Edit", "1", file_path=path))
        (root / "a.txt").write_text("two\n")
        daemon.answer("claude", event("PostToolUse", "Edit", "1", file_path=path))
        daemon.answer("claude", event("PreToolUse", "Read", "2", file_path=secret))
        daemon.answer("claude", event("PreToolUse", "Bash", "3", command="make PLANTED"))
        (root / "made.txt").write_text("made\n")
        (root / "a.txt").unlink()
        daemon.answer("claude", event("PostToolUse", "Bash", "3", command="make PLANTED"))
    agent = "claude-code"
    assert checked(tmp_path / "state") == [
        ("call", agent, "Edit", path, "OK"),
        ("external", agent, "Edit", [("a.txt", sha("one\n"), sha("two\n"))]),
        ("refused", agent, ".env", "project secrets"),
        ("call", agent, "Read", secret, "PATH_BLOCKED"),
        ("call", agent, "Bash", None, "OK"),
        (
            *("external", agent, "Bash"),
            [("a.txt", sha("two\n"), None), ("made.txt", None, sha("made\n"))],
        ),
    ]
