"""The audit log line by line, beside what happened: through every door, and the same edit through each."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from contextlib import closing, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

import filepact
from filepact_hooks.service import HookDaemon
from run_place import Place
from tests.faces.acp.proxy.rig import BOTH, Rig
from tests.faces.command_line import command
from tests.faces.line_client import serving

if TYPE_CHECKING:
    from collections.abc import Callable
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
        if one["event"] in ("intent", "external"):
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
        ("outcome", "applied"),
        ("refused", agent, ".env", "project secrets"),
        ("call", agent, "Read", secret, "PATH_BLOCKED"),
        ("call", agent, "Bash", None, "OK"),
        (
            *("external", agent, "Bash"),
            [("a.txt", sha("two\n"), None), ("made.txt", None, sha("made\n"))],
        ),
        ("outcome", "applied"),
    ]


# -- the same edit through each door ------------------------------------------------------------------
#
# Each changes a file named a.txt from one line to another, and answers with the file and the state folder.


def by_the_library(folder: Path) -> tuple[Path, Path]:
    file = begun(folder)
    with filepact.open(file.parent, state_dir=folder / "state", home=folder) as files:
        files.write("a.txt", "two\n")
    return file, folder / "state"


def by_a_tool_of_a_framework(folder: Path) -> tuple[Path, Path]:
    file = begun(folder)
    with filepact.open(file.parent, agent="far", state_dir=folder / "state", home=folder) as files:
        (write,) = [one for one in files.tools() if one.name == "write_file"]
        assert not write.run({"path": "a.txt", "content": "two\n"}).failed
    return file, folder / "state"


def by_a_server(folder: Path) -> tuple[Path, Path]:
    file = begun(folder)
    with served(file.parent, folder / "state") as client:
        client.call("edit_file", path="a.txt", old_string="one", new_string="two")
    return file, folder / "state"


def by_an_approval_of_the_command(folder: Path) -> tuple[Path, Path]:
    file = begun(folder)
    with served(file.parent, folder / "state", "--mode", "preview") as client:
        client.call("write_file", path="a.txt", content="two\n")
    place = ("--root", str(file.parent), "--state", str(folder / "state"))
    (waits,) = json.loads(command("pending", "--json", *place).out)["pending"]
    assert command("approve", waits["id"], "--unattended", *place).code == 0
    return file, folder / "state"


def by_the_proxy(folder: Path) -> tuple[Path, Path]:
    with Rig(folder) as rig:
        (rig.work / "a.txt").write_text("one\n")
        rig.start()
        assert rig.write("a.txt", "two\n")["result"] == {}
    return rig.work / "a.txt", rig.state


def by_a_run(folder: Path) -> tuple[Path, Path]:
    place = Place(folder)
    file = place.file("a.txt", "one\n")
    place.run("echo two > a.txt")
    return file, folder / "state"


def by_a_hook(folder: Path) -> tuple[Path, Path]:
    file = begun(folder)
    facts = {"session_id": "s1", "cwd": str(file.parent), "tool_name": "Edit", "tool_use_id": "1"}
    given = {"tool_input": {"file_path": str(file)}}
    with closing(HookDaemon((str(file.parent),), str(folder / "state"))) as daemon:
        for event in ("PreToolUse", "PostToolUse"):
            said = {**facts, **given, "hook_event_name": event}
            daemon.answer("claude", json.dumps(said).encode())
            file.write_text("two\n")
    return file, folder / "state"


def begun(folder: Path) -> Path:
    file = folder / "root" / "a.txt"
    file.parent.mkdir()
    file.write_text("one\n")
    return file


def served(root: Path, state: Path, *words: str) -> Any:
    @contextmanager
    def started() -> Any:
        given = ("mcp", str(root), "--state", str(state), *words)
        with serving(*given, stderr=subprocess.DEVNULL) as (_, client):
            client.shake_hands()
            yield client

    return started()


DOORS = [
    by_the_library,
    by_a_tool_of_a_framework,
    by_a_server,
    by_an_approval_of_the_command,
    by_the_proxy,
    pytest.param(
        by_a_run, marks=pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
    ),
]
ALWAYS = {"seq", "time", "before", "event", "change", "kind", "session", "tool", "files"}


def the_edit(record: dict[str, Any], file: Path) -> None:
    """A record has the facts of the edit, whoever made it."""
    assert ALWAYS <= record.keys() <= ALWAYS | {"approved_by"}, record
    assert {"id", "kind", "name"} <= record["session"].keys()
    (one,) = record["files"]
    mode = file.stat().st_mode & 0o777
    sides = [{"size": 4, "sha256": sha(text), "mode": f"{mode:o}"} for text in ("one\n", "two\n")]
    found = {
        **one,
        **{side: {**one[side], "mode": sides[0]["mode"]} for side in ("before", "after")},
    }
    assert found == {"root": one["root"], "path": "a.txt", "before": sides[0], "after": sides[1]}
    assert one["before"]["mode"] == one["after"]["mode"]
    assert record["kind"] == "change"


@pytest.mark.parametrize("door", DOORS)
def test_an_edit_is_told_before_and_after_with_the_same_facts_through_each_door(
    tmp_path: Path, door: Callable[[Path], tuple[Path, Path]]
) -> None:
    file, state = door(tmp_path)
    assert file.read_text() == "two\n"
    found = lines(state)
    (intent,) = [one for one in found if one["event"] == "intent"]
    (outcome,) = [one for one in found if one.get("event") == "outcome"]
    the_edit(intent, file)
    assert outcome.keys() == {"seq", "time", "before", "event", "change", "state", "journal"}
    assert (outcome["change"], outcome["state"]) == (intent["change"], "applied")
    # What the file became is younger than what was told of it before, and not than its end.
    made = file.stat().st_ctime
    told_at = [datetime.fromisoformat(one["time"]).timestamp() for one in (intent, outcome)]
    assert told_at[0] <= made
    assert intent["seq"] < outcome["seq"]
    assert ("approved_by" in intent) == (door is by_an_approval_of_the_command)


def test_what_a_hook_finds_done_is_told_with_the_same_facts(tmp_path: Path) -> None:
    """An agent's own tool has changed the file by then: there is no intention of ours."""
    file, state = by_a_hook(tmp_path)
    found = lines(state)
    assert not [one for one in found if one["event"] == "intent"]
    (external,) = [one for one in found if one["event"] == "external"]
    (outcome,) = [one for one in found if one["event"] == "outcome"]
    assert (outcome["change"], outcome["state"]) == (external["change"], "applied")
    the_edit({**external, "kind": "change"}, file)


def test_who_is_answered_finds_the_call_in_the_log_also_where_many_are_in_flight(
    tmp_path: Path,
) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    for number in range(64):
        (root / f"{number}.txt").write_text(f"text {number}\n")
    with served(root, state) as client:
        asked = [
            client.begin(
                "tools/call", {"name": "read_file", "arguments": {"path": f"{number}.txt"}}
            )
            for number in range(64)
        ]
        for number, call in enumerate(asked):
            assert f"text {number}" in client.answer(call)["result"]["content"][0]["text"]
            named = {one["asked"] for one in lines(state) if one["event"] == "call"}
            assert f"{number}.txt" in named
