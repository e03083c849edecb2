"""Whatever a hook needs is broken in turn: what the rules deny is never passed, and what they allow hardly ever stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import pytest

from filepact_hooks.agents import AGENTS
from filepact_hooks.service import HookDaemon
from tests.hostile.sweeps import often
from tests.needs import CONFIG_FOLDER, STATE_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

KEPT = (
    ("Read", {"file_path": ".env"}),
    ("Write", {"file_path": ".git/hooks/pre-commit", "content": "x"}),
    ("Read", {"file_path": "~/.ssh/id_ed25519"}),
)
REFUSED = ("deny", "ask", "exit 2")


class Machine:
    """A project, a home and a hook that is started as a host starts it."""

    def __init__(self, folder: Path) -> None:
        self.root, self.home = folder / "root", folder / "home"
        self.state = self.home / STATE_FOLDER / "filepact"
        self.root.mkdir()
        (self.home / ".ssh").mkdir(parents=True)
        (self.home / ".ssh" / "id_ed25519").write_text("key")
        (self.root / ".env").write_text("TOKEN=SECRET\n")
        (self.root / "a.txt").write_text("text\n")
        subprocess.run(["git", "init", "-q", self.root], check=True)
        keep = ("PATH", "LANG", "TMPDIR", "COVERAGE_PROCESS_START")
        self.environment = {name: os.environ[name] for name in keep if name in os.environ}
        self.environment["HOME"] = str(self.home)
        self.environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))

    def hook(self, data: bytes, agent: str = "claude", *options: str) -> tuple[str, str]:
        """The decision, and what a person is told."""
        done = subprocess.run(
            [sys.executable, "-m", "filepact", "hook", agent, *options],
            input=data,
            capture_output=True,
            env=self.environment,
            cwd=self.root,
            check=False,
            timeout=120,
        )
        if done.returncode == 2:
            return "exit 2", done.stderr.decode()
        assert done.returncode == 0
        return decision(done.stdout.decode())

    def asks(self, tool: str, **given: Any) -> tuple[str, str]:
        return self.hook(event("claude", tool, given))

    def kill(self) -> None:
        for lock in (self.state / "hooks").glob("*.lock"):
            with suppress(ProcessLookupError, ValueError):
                os.kill(int(lock.read_text()), signal.SIGKILL)


def decision(out: str) -> tuple[str, str]:
    said = json.loads(out or "{}")
    inner = said.get("hookSpecificOutput", said)
    found = next(
        (inner[key] for key in ("permissionDecision", "decision", "permission") if key in inner), ""
    )
    told = next(
        (said[key] for key in ("systemMessage", "message", "user_message") if key in said), ""
    )
    return found, told


BEFORE = {
    "claude": "PreToolUse",
    "codex": "PreToolUse",
    "gemini": "BeforeTool",
    "opencode": "tool.execute.before",
    "copilot": "preToolUse",
    "cursor": "preToolUse",
}


def facts(agent: str, tool: str, given: object) -> dict[str, object]:
    names = {"copilot": ("toolName", "toolArgs"), "opencode": ("tool", "args")}
    name, arguments = names.get(agent, ("tool_name", "tool_input"))
    return {
        "session_id": "s",
        "cwd": ".",
        "hook_event_name": BEFORE[agent],
        "tool_use_id": "t",
        name: tool,
        arguments: given,
    }


def event(agent: str, tool: str, given: object) -> bytes:
    return json.dumps(facts(agent, tool, given)).encode()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.kill()


def settings(machine: Machine, text: str) -> None:
    folder = machine.home / CONFIG_FOLDER / "filepact"
    folder.mkdir(parents=True)
    (folder / "filepact.toml").write_text(text)


def begun(machine: Machine) -> Path:
    """A state folder that a daemon has worked in, which is gone now."""
    machine.asks("Bash", command="true")
    machine.kill()
    return machine.state


def spoiled_journal(machine: Machine) -> None:
    state = begun(machine)
    (state / "journal.db").write_bytes(b"x" * 5_000)
    (state / "journal.db-wal").write_bytes(b"y" * 5_000)


def other_socket(machine: Machine) -> None:
    for one in (begun(machine) / "hooks").glob("*.sock"):
        one.unlink()
        one.write_text("")


def made_state(machine: Machine) -> Path:
    machine.state.mkdir(parents=True, mode=0o700)
    return machine.state


FAULTS: dict[str, Callable[[Machine], object]] = {
    "nothing": lambda _: None,
    "project file is no TOML": lambda m: (m.root / ".filepact.toml").write_text("x="),
    "project file names a server": lambda m: (m.root / ".filepact.toml").write_text(
        '[servers.x]\ncommand = ["x"]\n'
    ),
    "project file is no UTF-8": lambda m: (m.root / ".filepact.toml").write_bytes(b"\xff\xfe"),
    "project file is a link": lambda m: (m.root / ".filepact.toml").symlink_to("/etc/passwd"),
    "project file is a folder": lambda m: (m.root / ".filepact.toml").mkdir(),
    "project file is a pipe": lambda m: os.mkfifo(m.root / ".filepact.toml"),
    "settings are no TOML": lambda m: settings(m, "[[deny]\n"),
    "settings have an unknown key": lambda m: settings(m, "[[deny]]\npath = 'x'\n"),
    "journal": spoiled_journal,
    "journal is text": lambda m: (made_state(m) / "journal.db").write_text("x"),
    "audit folder": lambda m: (made_state(m) / "audit").write_text("x"),
    "socket": other_socket,
    "folder of sockets": lambda m: (made_state(m) / "hooks").write_text("x"),
    "folder of sockets is a link": lambda m: (made_state(m) / "hooks").symlink_to(m.root),
    "state is a link": lambda m: (
        m.state.parent.mkdir(parents=True),
        m.state.symlink_to(m.home / ".ssh"),
    ),
    "state is a file": lambda m: (m.state.parent.mkdir(parents=True), m.state.write_text("x")),
    "state lies in the root": lambda m: m.environment.update(FILEPACT_STATE_DIR=str(m.root / "s")),
    "state cannot be made": lambda m: m.environment.update(FILEPACT_STATE_DIR="/dev/null/nowhere"),
    "daemon is killed": begun,
    "no HOME": lambda m: m.environment.pop("HOME"),
}


@pytest.mark.slow(after=6)
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_broken_opens_nothing(machine: Machine, fault: str) -> None:
    FAULTS[fault](machine)
    for tool, given in KEPT:
        if fault == "no HOME" and "~" in given["file_path"]:
            continue
        found, told = machine.asks(tool, **given)
        assert found in REFUSED, (tool, given, told)
    # A reading that no rule is against goes on, whatever cannot be recorded.
    assert machine.asks("Read", file_path="a.txt")[0] == ""
    judged = fault.startswith(("project", "settings"))
    # On macOS settings have the same folder, so that nobody can read them either.
    judged = judged or (fault == "state is a file" and CONFIG_FOLDER == STATE_FOLDER)
    assert machine.asks("Write", file_path="a.txt", content="x")[0] == ("ask" if judged else "")


@pytest.mark.parametrize("agent", AGENTS)
def test_where_nobody_can_be_asked_a_wrong_file_of_rules_refuses(
    tmp_path: Path, agent: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / ".filepact.toml").write_text("x=")
    with closing(HookDaemon((str(root),), str(tmp_path / "state"))) as daemon:
        said = daemon.answer(agent, event(agent, "bash", {"command": "ls"}), BEFORE[agent])
    found, _ = decision(said.out)
    assert found == ("ask" if agent in ("claude", "copilot") else "deny")
    assert ".filepact.toml, line 1" in said.out


WRONG: tuple[object, ...] = (None, 7, True, "", [], {}, "text", ["a"], {"a": 1}, "\ud800", "a\0b")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_field_of_an_event_that_is_wrong_or_missing_opens_nothing(
    tmp_path: Path, agent: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / ".env").write_text("TOKEN=SECRET\n")
    right = facts(agent, "read", {"file_path": ".env", "filePath": ".env", "path": ".env"})
    with closing(HookDaemon((str(root),), str(tmp_path / "state"))) as daemon:
        for field in right:
            changed = [{key: one for key, one in right.items() if key != field}]
            changed += [{**right, field: one} for one in WRONG]
            for one in changed:
                named = ".env" in json.dumps(one)
                data = json.dumps(one).encode()
                for option in ("", BEFORE[agent]):
                    said = daemon.answer(agent, data, option)
                    if (
                        option
                        or field != "hook_event_name"
                        or one.get(field) not in ("text", "\ud800", "a\0b")
                    ):
                        found, _ = decision(said.out)
                        harmless = not named and one.get(field) in ({}, {"a": 1})
                        assert found in REFUSED or harmless, (field, one)


@pytest.mark.parametrize("name", ["\ud800/../.env", "a\0b", ".env\0", "\ud800"])
@pytest.mark.parametrize("tool", ["Read", "Write", "Grep", "Bash", "mcp__fs__read_file"])
def test_a_name_that_cannot_be_is_refused(tmp_path: Path, tool: str, name: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    given = {"Grep": {"path": name}, "Bash": {"command": f"cat {name}"}}.get(
        tool, {"file_path": name}
    )
    with closing(HookDaemon((str(root),), str(tmp_path / "state"))) as daemon:
        said = daemon.answer("claude", event("claude", tool, given))
    assert decision(said.out)[0] == "deny"


def test_an_event_of_many_megabytes_is_judged_by_what_it_names(machine: Machine) -> None:
    text = "x" * 20_000_000
    written = {"file_path": "a.txt", "content": text}
    assert machine.asks("Write", **written)[0] == ""
    assert machine.asks("Write", **{**written, "file_path": ".git/hooks/x"})[0] == "deny"


def test_a_program_that_cannot_load_its_parts_refuses(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "re2.py").write_text("raise OSError('gone')\n")
    (tmp_path / "broken" / "apsw.py").write_text("raise OSError('gone')\n")
    (tmp_path / "broken" / "tree_sitter.py").write_text("raise OSError('gone')\n")
    paths = machine.environment["PYTHONPATH"]
    machine.environment["PYTHONPATH"] = f"{tmp_path / 'broken'}{os.pathsep}{paths}"
    for tool, given in KEPT:
        assert machine.asks(tool, **given)[0] in REFUSED
    assert machine.asks("Bash", command="cat .env")[0] in REFUSED


@pytest.mark.parametrize("daemon", ["with a daemon", "without"])
def test_a_mark_of_windows_and_blank_lines_before_an_event_are_no_part_of_it(
    machine: Machine, daemon: str
) -> None:
    if daemon == "without":
        (machine.state / "hooks").mkdir(parents=True, mode=0o755)
    mark = b"\xef\xbb\xbf"
    ways = (mark, b"\r\n\n", b"\n" + mark, mark + b"\n \n")
    for number, agent in enumerate(AGENTS):
        # All read an event in one way: each has one of these, and the first of them all.
        for before in ways if number == 0 else often((ways[number % 4],), ways):
            allowed, told = machine.hook(
                before + event(agent, "Read", {"file_path": "a.txt"}), agent
            )
            assert allowed not in REFUSED, (agent, before, told)
            denied, _ = machine.hook(before + event(agent, "Read", {"file_path": ".env"}), agent)
            assert denied in REFUSED, (agent, before)
