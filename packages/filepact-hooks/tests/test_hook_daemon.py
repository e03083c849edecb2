"""Hooks as processes: one daemon for the same roots, started by whoever finds none, and safe to kill."""

from __future__ import annotations

import ast
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_workspace
from filepact.config.folders import SET_UP_FILE, set_up_bytes
from filepact.config.settings import Settings
from filepact.domain.operation import Actor, Session
from filepact_hooks import client
from filepact_hooks.turn_errors import TurnErrors
from tests import forked
from tests.crash.near_full import fill, small_disk
from tests.faces.command_line import command
from tests.needs import BARE_PYTHON, CONFIG_FOLDER, PROCESSES
from tests.servers.fakes import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterator

PERSON = Session("p", Actor("person", "p"))


class Hooks:
    """A root, a state folder, and the hook as a host calls it.

    Args:
        folder: Where both are made.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.root.mkdir()
        (self.root / ".git").mkdir()
        (self.root / "a.txt").write_text("one\n")
        (self.root / ".env").write_text("TOKEN=SECRET\n")
        self.state = folder / ("long name " * 12) / "state"
        self.state.parent.mkdir()
        self.environment = {
            **{name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
            "HOME": str(folder),
            "FILEPACT_STATE_DIR": str(self.state),
        }

    @property
    def folder(self) -> Path:
        return self.state / "hooks"

    def start(self, *options: str, folder: Path | None = None) -> forked.Command:
        return forked.Command(
            ["hook", "claude", *options],
            cwd=folder or self.root,
            env=self.environment,
            stdin=-1,
            stdout=-1,
            stderr=-1,
        )

    def call(self, name: str, *options: str, folder: Path | None = None, **given: Any) -> str:
        """What a call of a command answers, ``given`` its further facts."""
        with self.start(*options, folder=folder) as process:
            out, err = process.communicate(event(name, **given), 90)
        assert (process.returncode, err) == (0, b"")
        return out.decode()

    def daemons(self) -> list[int]:
        found = [int(one.read_text() or 0) for one in self.folder.glob("*.lock")]
        return [pid for pid in found if pid and not is_gone(pid)]

    def kill(self) -> None:
        for pid in self.daemons():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda pid=pid: is_gone(pid))

    def log(self) -> list[tuple[str, set[str]]]:
        """Tools and files of what was done, oldest first."""
        with open_workspace(
            str(self.root), state_dir=str(self.state), settings=Settings()
        ) as workspace:
            return [
                (one.tool, {change.path.path for change in one.changes.changes})
                for one in workspace.log()[::-1]
            ]


def event(name: str, tool: str = "Bash", mode: str = "default", **given: Any) -> bytes:
    facts = {"session_id": "s", "prompt_id": "t", "hook_event_name": name}
    facts |= {"permission_mode": mode}
    given = given or {"command": "true"}
    return json.dumps(
        {**facts, "tool_name": tool, "tool_use_id": "1", "tool_input": given}
    ).encode()


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for has."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except ProcessLookupError:
        return True
    except OSError:
        return os.path.lexists("/proc/self")


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline
        os.sched_yield()


@pytest.fixture
def hooks(tmp_path: Path) -> Iterator[Hooks]:
    made = Hooks(tmp_path)
    yield made
    made.kill()


def test_a_command_is_recorded_by_a_daemon_that_the_first_event_starts(hooks):
    assert hooks.call("PreToolUse") == ""
    (pid,) = hooks.daemons()
    (hooks.root / "a.txt").write_text("two\n")
    assert hooks.call("PostToolUse") == ""
    assert hooks.daemons() == [pid]
    assert '"deny"' in hooks.call("PreToolUse", tool="Read", file_path=str(hooks.root / ".env"))
    assert hooks.log() == [("Bash", {"a.txt"})]


@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_a_folder_that_a_command_made_comes_back_with_its_rights_under_any_umask(hooks, mode):
    hooks.call("PreToolUse")
    (hooks.root / "made").mkdir()
    (hooks.root / "made").chmod(mode)
    (hooks.root / "made/x").write_text("x\n")
    hooks.call("PostToolUse")
    with open_workspace(
        str(hooks.root), state_dir=str(hooks.state), settings=Settings()
    ) as workspace:
        (operation,) = workspace.log()
        recorded = {change.path.path for change in operation.changes.changes}
        assert recorded == ({"made", "made/x"} if mode == 0o700 else {"made/x"})
        workspace.undo(PERSON, operation.id)
        assert not (hooks.root / "made").exists()
        workspace.redo(PERSON)
    assert (hooks.root / "made").stat().st_mode & 0o777 == mode


def test_the_root_is_the_repository_around_the_folder_in_which_the_host_works(hooks):
    (hooks.root / "sub").mkdir()
    hooks.call("PreToolUse", folder=hooks.root / "sub")
    (hooks.root / "a.txt").write_text("two\n")
    hooks.call("PostToolUse", "--root", str(hooks.root), folder=hooks.root.parent)
    assert len(hooks.daemons()) == 1
    assert hooks.log() == [("Bash", {"a.txt"})]


def test_all_who_come_at_once_start_one_daemon(hooks):
    processes = [hooks.start() for _ in range(8)]
    for process in processes:
        with process:
            assert process.communicate(event("PreToolUse"), 60) == (b"", b"")
    assert len(hooks.daemons()) == 1


def test_the_socket_is_for_this_person_alone(hooks):
    hooks.call("PreToolUse")
    assert hooks.folder.stat().st_mode & 0o777 == 0o700
    assert all(one.stat().st_mode & 0o077 == 0 for one in hooks.folder.iterdir())


def test_a_daemon_that_is_killed_during_a_call_loses_nothing(hooks):
    hooks.call("PreToolUse")
    (hooks.root / "a.txt").write_text("before the kill\n")
    hooks.kill()
    (hooks.root / "b.txt").write_text("after it\n")
    ended = json.loads(event("PostToolUse")) | {"duration_ms": 60_000}
    with hooks.start() as process:
        assert process.communicate(json.dumps(ended).encode(), 90) == (b"", b"")
    assert hooks.log() == [("Bash", {"a.txt", "b.txt"})]


@contextmanager
def told_by_a_host(hooks: Hooks, lines: str) -> Iterator[subprocess.Popen[bytes]]:
    """A host that does what a shell's lines say, beside the root, until it says that it is ready."""
    words = lines.replace("filepact hook", f"{sys.executable} -P -m filepact hook --root root")
    with subprocess.Popen(
        ["sh", "-c", words],
        cwd=hooks.root.parent,
        env=hooks.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as host:
        assert host.stdout.readline() == b"ready\n"
        yield host


@PROCESSES  # by which it is known that a host has ended
def test_what_a_person_does_after_the_host_was_killed_is_not_the_agents(hooks):
    lines = "filepact hook claude < start.json; filepact hook claude < before.json; echo ready; read end"
    outside = hooks.root.parent
    (outside / "start.json").write_bytes(event("SessionStart"))
    (outside / "before.json").write_bytes(event("PreToolUse"))
    with told_by_a_host(hooks, lines) as host:
        (hooks.root / "a.txt").write_text("by the agent\n")
        host.kill()
    wait_for(lambda: hooks.log() == [("Bash", {"a.txt"})])
    (hooks.root / "a.txt").write_text("by hand\n")
    hooks.call("SessionStart", "--root", str(hooks.root))
    assert hooks.log() == [("Bash", {"a.txt"}), ("unknown", {"a.txt"})]


@PROCESSES
def test_what_a_background_command_does_later_is_recorded_when_its_process_ends(hooks):
    outside = hooks.root.parent
    os.mkfifo(outside / "go")
    command = "read x; echo late > root/late.txt; rm root/a.txt"
    lines = (
        "filepact hook claude < start.json; filepact hook claude < before.json;"
        f"(exec < go; {command}) & filepact hook claude < after.json; echo ready; read end"
    )
    given = {"command": command.replace("root/", ""), "run_in_background": True}
    for name, data in {
        "start": event("SessionStart"),
        "before": event("PreToolUse", **given),
        "after": event("PostToolUse", **given),
    }.items():
        (outside / f"{name}.json").write_bytes(data)
    with told_by_a_host(hooks, lines):
        (hooks.root / "mine.txt").write_text("an hour of work\n")
        hooks.call("UserPromptSubmit", "--root", str(hooks.root))
        (outside / "go").write_text("now\n")
        later = [("unknown", {"mine.txt"}), ("Bash", {"a.txt", "late.txt"})]
        wait_for(lambda: hooks.log() == later)


HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "claude-code", "version": "1"},
}


@PROCESSES
def test_what_a_request_does_through_our_tools_and_the_agents_own_is_one_turn(hooks):
    outside = hooks.root.parent
    (outside / "claude").symlink_to("/bin/sh")
    tool = "mcp__filepact__write_file"
    given = {"path": "one.txt", "content": "1\n"}
    for name, data in {
        "start": event("SessionStart"),
        "own": event("PreToolUse", tool, **given),
        "owned": event("PostToolUse", tool, **given),
        "before": event("PreToolUse", command="echo 2 > two.txt"),
        "after": event("PostToolUse", command="echo 2 > two.txt"),
    }.items():
        (outside / f"{name}.json").write_bytes(data)
    write = {"name": "write_file", "arguments": given}
    messages = [("initialize", HELLO), ("notifications/initialized", {}), ("tools/call", write)]
    (outside / "asked.jsonl").write_text(
        "".join(
            json.dumps({"jsonrpc": "2.0", "method": name, "params": params})[:-1]
            + ("" if name.startswith("not") else f', "id": {number}')
            + "}\n"
            for number, (name, params) in enumerate(messages)
        )
    )
    words = (
        "filepact hook claude < start.json; filepact hook claude < own.json; "
        "filepact mcp root < asked.jsonl; filepact hook claude < owned.json; "
        "filepact hook claude < before.json; echo 2 > root/two.txt; filepact hook claude < after.json"
    ).replace("filepact hook claude", "filepact hook claude --root root")
    (outside / "host.sh").write_text(
        words.replace("filepact ", f"{sys.executable} -P -m filepact ")
    )
    done = subprocess.run(
        ["./claude", "host.sh"],
        cwd=outside,
        env=hooks.environment,
        capture_output=True,
        timeout=90,
        check=True,
    )
    assert b'"isError":true' not in done.stdout
    with open_workspace(
        str(hooks.root), state_dir=str(hooks.state), settings=Settings()
    ) as workspace:
        assert [(one.tool, one.session.turn) for one in workspace.log()] == [
            *(("Bash", "t"), ("write_file", "t"))
        ]


TURNS = {
    "claude": ("PreToolUse", "PostToolUse", "Stop", "systemMessage"),
    "codex": ("PreToolUse", "PostToolUse", "Stop", "systemMessage"),
    "gemini": ("BeforeTool", "AfterTool", "AfterAgent", "systemMessage"),
    "opencode": ("tool.execute.before", "tool.execute.after", "session.idle", "message"),
    "copilot": ("preToolUse", "postToolUse", "agentStop", ""),
}
"""Events of programs that call a tool and end a turn, and where the person is told something; nowhere in the last."""


@PROCESSES
@pytest.mark.slow(after=1)
@pytest.mark.parametrize("agent", TURNS)
def test_errors_that_a_turn_has_left_are_told_when_it_ends(hooks: Hooks, agent: str) -> None:
    outside, (before, after, stop, key) = hooks.root.parent, TURNS[agent]
    (outside / agent).symlink_to("/bin/sh")
    (hooks.root / "a.x").write_text("one\n")
    settings = outside / CONFIG_FOLDER / "filepact" / "filepact.toml"
    settings.parent.mkdir(parents=True)
    command = json.dumps([sys.executable, "-I", "-S", PROGRAM, "{}"])
    settings.write_text(
        '[diagnostics]\nmode = "always"\nbudget = 20\n'
        f'[servers.fake]\nfiles = {{"*.x" = "x"}}\ncommand = {command}\n'
    )
    given = {"path": "a.x", "content": "wrong\nwrong\n"}
    write = {"name": "write_file", "arguments": given}
    messages = [("initialize", HELLO), ("notifications/initialized", {}), ("tools/call", write)]
    (outside / "asked").write_text(
        "".join(
            json.dumps({"jsonrpc": "2.0", "method": name, "params": params})[:-1]
            + ("" if name.startswith("not") else f', "id": {number}')
            + "}\n"
            for number, (name, params) in enumerate(messages)
        )
    )
    facts = {"session_id": "s", "sessionId": "s", "prompt_id": "t", "turn_id": "t"}
    call = {**facts, "tool_name": "mcp__filepact__write_file", "tool_use_id": "1", "args": given}
    # OpenCode and Copilot CLI have the event's name on the command line.
    words = f"{sys.executable} -P -m filepact hook {agent} --root root --event"
    (outside / "call.json").write_text(json.dumps(call))
    (outside / "stop.json").write_text(json.dumps(facts))
    (outside / "host.sh").write_text(
        f"mkfifo in; {sys.executable} -P -m filepact mcp root < in > out & exec 3> in\n"
        f"{words} {before} < call.json; cat asked >&3\n"
        """until grep -q '"id":2' out; do :; done\n"""
        f"{words} {after} < call.json; {words} {stop} < stop.json > first\n"
        f"echo fine > root/a.x; {words} {stop} < stop.json > repaired\n"
        f"""echo '{{"session_id": "s", "turn_id": "other"}}' | {words} {stop} > other\n"""
        "exec 3>&-; wait\n"
    )
    words_of_host = [f"./{agent}", "host.sh"]
    subprocess.run(words_of_host, cwd=outside, env=hooks.environment, timeout=120, check=True)
    said = json.loads((outside / "first").read_text() or "{}")
    lines = said.get(key, "").split("\n")
    assert [line.split()[0] for line in lines[1:]] == ["a.x:1:1", "a.x:2:1"] * bool(key)
    assert [*said] == [key] * bool(key)
    assert (outside / "repaired").read_text() == (outside / "other").read_text() == ""


@PROCESSES
def test_a_turn_that_cannot_be_summed_up_takes_nothing_from_the_next_one() -> None:
    def summary(*, session: Session) -> str:
        return {"fine": "one: 1."}[str(session.turn)]

    turns = TurnErrors(summary)
    # What a hook asks are the descendants of its host, of which this is none.
    ask = (
        "import socket, sys; asking = socket.socket(socket.AF_UNIX)\n"
        f"asking.connect('\\0filepact-turns-{os.getpid()}'); asking.sendall(sys.argv[1].encode())\n"
        "asking.shutdown(socket.SHUT_WR); print(asking.makefile().read())"
    )
    try:
        told = []
        for turn in ("broken", "fine"):
            turns.note(Session("s", Actor("agent", "a"), turn=turn))
            words = [sys.executable, "-c", ask, turn]
            told.append(subprocess.run(words, capture_output=True, timeout=60, check=True).stdout)
        assert told == [b"\n", b"one: 1.\n"]
    finally:
        turns.close()


def test_a_daemon_ends_when_nobody_asks_and_the_next_one_goes_on(hooks, tmp_path):
    settings = tmp_path / "filepact.toml"
    settings.write_text("[hooks]\nidle = 1\n")
    hooks.environment["FILEPACT_CONFIG"] = str(settings)
    hooks.call("SessionStart")
    (pid,) = hooks.daemons()
    wait_for(lambda: is_gone(pid))
    assert not list(hooks.folder.glob("*.sock"))
    (hooks.root / "a.txt").write_text("two\n")
    hooks.call("SessionStart")
    assert hooks.log() == [("unknown", {"a.txt"})]


def test_a_turn_that_its_host_does_not_name_goes_on_with_the_next_daemon(hooks: Hooks) -> None:
    def tell(name: str, **given: object) -> None:
        facts = {"session_id": "s", "hook_event_name": name, **given}
        words = ["hook", "gemini", "--root", "root"]
        outside, environment = hooks.root.parent, hooks.environment
        with forked.Command(words, cwd=outside, env=environment, stdin=-1, stdout=-1) as process:
            process.communicate(json.dumps(facts).encode(), 90)
        assert process.returncode == 0

    tell("BeforeAgent", prompt="write it all")
    for name in ("b.txt", "c.txt"):
        hooks.kill()
        call = {"tool_name": "write_file", "tool_input": {"file_path": name, "content": name}}
        tell("BeforeTool", **call)
        (hooks.root / name).write_text(name)
        tell("AfterTool", **call)
    tell("BeforeAgent", prompt="and that")
    call = {"tool_name": "write_file", "tool_input": {"file_path": "d.txt", "content": "d"}}
    tell("BeforeTool", **call)
    (hooks.root / "d.txt").write_text("d")
    tell("AfterTool", **call)
    with open_workspace(
        str(hooks.root), state_dir=str(hooks.state), settings=Settings()
    ) as workspace:
        newest, *others = [one.session.turn for one in workspace.log()]
        requests = workspace.asked.requests()
    assert [requests[newest], *(requests[one] for one in others)] == [
        "and that",
        *["write it all"] * 2,
    ]


def test_a_daemon_that_nobody_can_reach_any_more_ends(hooks, monkeypatch):
    from filepact_hooks import daemon  # noqa: PLC0415

    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    monkeypatch.chdir(hooks.root)
    listening.bind("s")
    listening.listen()
    monkeypatch.setattr(daemon, "_LOOK", 0.01)
    roots = (str(hooks.root),)
    request = client.HookRequest("claude", "", "", state=str(hooks.state), config="", roots=roots)
    listener = daemon._Listener(request, listening)
    (hooks.root / "s").unlink()
    listener.run()
    listener.close()
    listening.close()


def test_a_daemon_that_is_asked_to_end_does_so(hooks):
    hooks.call("SessionStart")
    (pid,) = hooks.daemons()
    os.kill(pid, signal.SIGTERM)
    wait_for(lambda: is_gone(pid))
    assert not list(hooks.folder.glob("*.sock"))


@pytest.mark.parametrize("what", ["file", "link", "folder"])
def test_what_stands_in_the_place_of_the_socket_is_not_used(hooks, tmp_path, monkeypatch, what):
    hooks.call("SessionStart")
    (place,) = hooks.folder.glob("*.sock")
    hooks.kill()
    place.unlink()
    other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if what == "file":
        place.write_text("in the way")
    elif what == "folder":
        place.mkdir()
    else:
        monkeypatch.chdir(tmp_path)
        other.bind("s")
        other.listen()
        place.symlink_to(tmp_path / "s")
    with other:
        assert "systemMessage" in hooks.call("PreToolUse")
        assert '"deny"' in hooks.call("PreToolUse", "--strict")
        assert "deny" not in hooks.call("Stop", "--strict")
    assert hooks.daemons() == []


@pytest.mark.parametrize("lost", [1, 2])
def test_after_one_that_ends_without_an_answer_the_next_daemon_answers(hooks, monkeypatch, lost):
    """One that is being killed may still take a connection; to start another is no answer yet."""
    hooks.call("SessionStart")
    (place,) = hooks.folder.glob("*.sock")
    hooks.kill()
    place.unlink()
    monkeypatch.chdir(hooks.folder)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dying, hooks.start() as process:
        dying.bind(place.name)
        dying.listen()
        process.stdin.write(event("PreToolUse"))
        process.stdin.close()
        process.stdin = None
        for left in range(lost)[::-1]:
            taken, _ = dying.accept()
            if not left:
                dying.close()
            taken.close()
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")
    assert len(hooks.daemons()) == 1


@pytest.mark.parametrize("what", ["open to others", "link", "file"])
def test_a_folder_of_sockets_that_others_may_use_is_not_used(hooks, tmp_path, what):
    hooks.state.mkdir(mode=0o700)
    if what == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        hooks.folder.symlink_to(tmp_path / "elsewhere")
    elif what == "file":
        hooks.folder.write_text("")
    else:
        hooks.folder.mkdir()
        hooks.folder.chmod(0o777)
    assert '"deny"' in hooks.call("PreToolUse", "--strict")
    assert "systemMessage" in hooks.call("PreToolUse")


def test_who_says_nothing_or_nonsense_keeps_nobody_from_an_answer(hooks, monkeypatch):
    hooks.call("SessionStart")
    (place,) = hooks.folder.glob("*.sock")
    monkeypatch.chdir(place.parent)
    silent = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(5)]
    for number, one in enumerate(silent):
        one.connect(place.name)
        one.send([b"", b"99999999999\n", b"x\n", b"5\nabcde0\n", b"3\na\0b-1\n"][number])
    assert hooks.call("PreToolUse") == ""
    for one in silent:
        one.close()
    assert hooks.call("PreToolUse") == ""


def test_an_event_that_is_too_large_has_an_answer(hooks, monkeypatch):
    large = event("PreToolUse", tool="Write", file_path="a.txt", content="x" * 8_000_000)
    with hooks.start() as process:
        assert process.communicate(large, 60) == (b"", b"")
    monkeypatch.setattr(client, "_LARGEST", 1_000)
    read, written = os.pipe()
    os.write(written, b"x" * 2_000)
    os.close(written)
    monkeypatch.setattr(os, "read", lambda _descriptor, size, real=os.read: real(read, size))
    with pytest.raises(client._NoDaemonError):
        client._standard_input()


def test_words_that_are_not_understood_are_explained_and_never_exit_with_two(hooks):
    done = forked.run(
        ["hook", "nobody"], cwd=hooks.root, env=hooks.environment, capture_output=True, input=b""
    )
    assert done.returncode == 1
    assert b"nobody" in done.stderr
    assert done.stdout == b""


@BARE_PYTHON
def test_a_hook_loads_next_to_nothing(hooks):
    import subprocess  # noqa: PLC0415

    program = "import sys; had = {*sys.modules}; from filepact.faces.cli import run; "
    program += "run(['hook', 'claude']); print(sorted(sys.modules.keys() - had))"
    hooks.call("SessionStart")
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=hooks.root,
        env=hooks.environment,
        input=event("PreToolUse"),
        capture_output=True,
        check=True,
    )
    assert ast.literal_eval(done.stdout.decode()) == [
        "__future__",
        "_blake2",
        "_socket",
        "filepact",
        "filepact.config",
        "filepact.config.folders",
        "filepact.faces",
        "filepact.faces.cli",
        "filepact_hooks",
        "filepact_hooks.client",
        "gc",
    ]


# -- hooks for all projects --------------------------------------------------------------------------


def set_up(hooks: Hooks, *folders: Path, guard: str = "own-tools") -> None:
    hooks.state.mkdir(exist_ok=True)
    found = [("claude", guard, str(folder)) for folder in folders]
    (hooks.state / SET_UP_FILE).write_bytes(set_up_bytes(found))


def judged(hooks: Hooks, folder: Path, **environment: str) -> str:
    """What a hook for all projects says where the agent reads a secret in a folder."""
    hooks.environment.update(environment)
    secret = {"tool": "Read", "file_path": str(folder / ".env")}
    said = hooks.call("PreToolUse", "--where-set-up", folder=folder, **secret)
    return str(json.loads(said)["hookSpecificOutput"]["permissionDecision"]) if said else ""


def linked(hooks: Hooks, tree: Path) -> Path:
    """A linked worktree as Git makes it."""
    place = hooks.root / ".git" / "worktrees" / tree.name
    place.mkdir(parents=True)
    tree.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {place}\n")
    (place / "gitdir").write_text(f"{tree}/.git\n")
    (place / "commondir").write_text("../..\n")
    return tree


def test_a_hook_for_all_projects_speaks_where_setup_was_asked_for_and_nowhere_else(
    hooks: Hooks, tmp_path: Path
) -> None:
    other = tmp_path / "an other"
    (hooks.root / "a" / "b").mkdir(parents=True)
    other.mkdir()
    trees = [linked(hooks, tmp_path / "tree"), linked(hooks, hooks.root / ".claude" / "x")]
    set_up(hooks, hooks.root)
    for folder in (hooks.root, hooks.root / "a" / "b", *trees):
        assert judged(hooks, folder) == "deny"
    assert judged(hooks, other) == ""
    assert len(hooks.daemons()) == 3
    # Each worktree is a root of its own.
    for folder in (hooks.root, *trees):
        hooks.call("PreToolUse", "--where-set-up", folder=folder)
        (folder / f"in-{folder.name}.txt").write_text("new\n")
        hooks.call("PostToolUse", "--where-set-up", folder=folder)
    assert ("Bash", {"in-root.txt"}) in hooks.log()


@pytest.mark.parametrize("broken", ["missing", "empty", "cut", "unreadable"])
def test_without_the_list_of_folders_every_one_is_guarded(
    hooks: Hooks, tmp_path: Path, broken: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    set_up(hooks, hooks.root)
    file = hooks.state / SET_UP_FILE
    if broken == "missing":
        file.unlink()
    elif broken == "unreadable":
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(b"" if broken == "empty" else b"claude own-to")
    assert judged(hooks, other) == "deny"


def test_a_worktree_of_which_nobody_can_tell_whose_it_is_is_guarded(
    hooks: Hooks, tmp_path: Path
) -> None:
    set_up(hooks, hooks.root)
    tree = linked(hooks, tmp_path / "tree")
    for text in ("gitdir: nowhere\n", "", "gitdir:", "x\0y"):
        (tree / ".git").write_text(text)
        assert judged(hooks, tree) == "deny"


def test_a_session_that_goes_elsewhere_stays_guarded(hooks: Hooks, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    set_up(hooks, hooks.root)
    # It was started in the project and is elsewhere, or the other way round, by what the host says.
    assert judged(hooks, other, CLAUDE_PROJECT_DIR=str(hooks.root)) == "deny"
    assert judged(hooks, hooks.root, CLAUDE_PROJECT_DIR=str(other)) == "deny"
    facts = {"session_id": "s", "hook_event_name": "PreToolUse", "cwd": str(hooks.root)}
    given = {**facts, "tool_name": "Read", "tool_input": {"file_path": ".env"}}
    with hooks.start("--where-set-up", folder=other) as process:
        out, _ = process.communicate(json.dumps(given).encode(), 90)
    assert b'"deny"' in out


def test_a_session_that_goes_into_a_worktree_within_its_project_works_there(hooks: Hooks) -> None:
    tree = linked(hooks, hooks.root / ".claude" / "worktrees" / "side")
    set_up(hooks, hooks.root)
    hooks.environment["CLAUDE_PROJECT_DIR"] = str(hooks.root)

    def writes(name: str) -> str:
        path = str(tree / name)
        return hooks.call(
            "PreToolUse", "--where-set-up", folder=tree, tool="Write", file_path=path, content="x"
        )

    assert not writes("a.txt")
    assert '"ask"' in writes(".claude/settings.json")
    assert judged(hooks, tree) == "deny"


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
def test_an_agent_writes_its_plans_and_work_trees_and_by_no_link_what_steers_it(
    hooks: Hooks, mode: str
) -> None:
    tree = linked(hooks, hooks.root / ".claude" / "worktrees" / "side")
    claude = hooks.root / ".claude"
    (claude / "commands").mkdir()
    (claude / "worktrees" / "up").symlink_to("..")
    (claude / "worktrees" / "own").mkdir()
    (claude / "worktrees" / "own" / "made").symlink_to("../../commands")
    (hooks.root / "other" / ".claude").mkdir(parents=True)
    (hooks.root / "other" / ".claude" / "plans").symlink_to("../../.claude/commands")

    def writes(path: object) -> str:
        given = {"file_path": str(path), "content": "x"}
        return hooks.call("PreToolUse", tool="Write", mode=mode, **given)

    free = [claude / "plans" / "bright-fox.md", tree / "a.txt", tree / "src" / "new.py"]
    assert {writes(path) for path in free} == {""}
    steering = [
        *(tree / ".claude" / "settings.json", tree / "CLAUDE.md", claude / "settings.json"),
        *(claude / "worktrees" / "up" / "settings.json", claude / "plans" / "CLAUDE.md"),
        *(claude / "worktrees" / "own" / "made" / "x.md", "other/.claude/plans/x.md"),
    ]
    held = '"ask"' if mode == "default" else '"deny"'
    assert [path for path in steering if held not in writes(path)] == []


def test_how_far_a_folder_is_guarded_is_what_was_asked_for_there(hooks: Hooks) -> None:
    set_up(hooks, hooks.root, guard="record")
    assert judged(hooks, hooks.root) == ""
    hooks.call("PreToolUse", "--where-set-up")
    (hooks.root / "a.txt").write_text("two\n")
    hooks.call("PostToolUse", "--where-set-up")
    assert hooks.log()[-1] == ("Bash", {"a.txt"})


def test_hooks_of_the_person_and_of_the_project_record_a_call_once(hooks: Hooks) -> None:
    set_up(hooks, hooks.root)
    both = (("--where-set-up",), ("--root", str(hooks.root)))
    for options in both:
        hooks.call("PreToolUse", *options)
    (hooks.root / "a.txt").write_text("two\n")
    for options in both:
        hooks.call("PostToolUse", *options)
    assert hooks.log() == [("Bash", {"a.txt"})]
    assert len(hooks.daemons()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["watches", "instances"])
def test_where_the_system_watches_no_more_folders_all_is_recorded_and_undone(
    hooks: Hooks, limit: str
) -> None:
    """The daemon lives in a namespace of its own, whose limit is that."""
    for number in range(40):
        (hooks.root / f"d{number}").mkdir()
        (hooks.root / f"d{number}/a.txt").write_text("before\n")
    most = 20 if limit == "watches" else 0
    script = f'echo {most} > /proc/sys/user/max_inotify_{limit} && exec "$@"'
    program = sys.executable, "-m", "filepact"
    first = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", script, "-", *program, "hook", "claude"],
        input=event("SessionStart"),
        cwd=hooks.root,
        env=hooks.environment,
        capture_output=True,
        check=False,
    )
    if b"unshare" in first.stderr:
        pytest.skip("no namespaces may be made here")
    assert (first.returncode, first.stderr) == (0, b"")
    (daemon,) = hooks.daemons()
    some = "/proc/{}/ns/user"
    assert os.readlink(some.format(daemon)) != os.readlink(some.format("self"))
    before = {one: one.read_bytes() for one in hooks.root.rglob("*.txt")}
    for line in (
        "rm d0/a.txt; mkdir e; echo x > e/f; echo x > d39/a.txt",
        "echo y >> e/f; echo x > d20/a.txt",
    ):
        hooks.call("PreToolUse", command=line)
        subprocess.run(["sh", "-c", line], cwd=hooks.root, check=True)
        hooks.call("PostToolUse", command=line)
        (hooks.root / "d7/mine.txt").write_text("mine\n")
    hooks.call("Stop")
    assert hooks.daemons() == [daemon]
    names = {"Bash": {"d0/a.txt", "e/f", "d39/a.txt", "d20/a.txt"}, "unknown": {"d7/mine.txt"}}
    told: dict[str, set[str]] = {}
    for tool, files in hooks.log():
        told[tool] = told.get(tool, set()) | {one for one in files if one != "e"}
    assert told == names
    places = ("--root", str(hooks.root), "--state", str(hooks.state))
    assert command("undo", "--unattended", "--turn", *places).code == 0
    mine = {hooks.root / "d7/mine.txt": b"mine\n"}
    assert {one: one.read_bytes() for one in hooks.root.rglob("*.txt")} == before | mine
    assert not (hooks.root / "e").exists()


@pytest.mark.slow
def test_on_a_full_state_disk_it_is_said_and_what_changed_is_recorded_once_there_is_room(
    hooks, tmp_path
):
    with small_disk(tmp_path / "disk", "3m") as disk:
        hooks.state = disk / "state"
        hooks.environment["FILEPACT_STATE_DIR"] = str(hooks.state)
        hooks.call("PreToolUse", command="true")
        hooks.call("PostToolUse", command="true")
        fill(disk / "fill", 0)
        text = os.urandom(50_000).hex()
        hooks.call("PreToolUse", command="x > a.txt")
        (hooks.root / "a.txt").write_text(text)
        said = hooks.call("PostToolUse", command="x > a.txt")
        assert "records nothing" in said
        assert "full" in said
        assert hooks.log() == []
        (disk / "fill").unlink()
        hooks.call("PreToolUse", command="true")
        # Nobody knows any more whose it was.
        assert hooks.log() == [("unknown", {"a.txt"})]
        assert (hooks.root / "a.txt").read_text() == text
        hooks.kill()
