"""Whose a change is: by what a call can do, what its words name, and when it ran; in doubt it is nobody's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import ancestors, open_workspace
from filepact.config.settings import Settings
from filepact.domain.operation import BY_NOBODY, BY_SEVERAL, Actor, Session
from filepact.errors import NoChangeError, StaleFileError
from filepact.fs.inotify import InotifyWatcher
from filepact.opening import descendants, ticks_now
from filepact.text.confusables import shown_name
from filepact.values import replace
from filepact.workspace.selection import NEWEST, Selection
from filepact_hooks.service import HookDaemon
from tests.kinds import tree
from tests.needs import PROCESSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PERSON = Session("p", Actor("person", "p"))
COARSE = 25_000_000  # nanoseconds by which the birth of a file may be told too early
TICK = 1_000_000_000  # nanoseconds within which a change before a call may count as its own
SWAP = "mv first other; mv second first; mv other second"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")


class Agents:
    """Programs of agents in one folder, whose hooks one daemon answers, and the person beside them."""

    def __init__(self, root: Path, state: Path) -> None:
        self.root, self.state = root, state
        self.now, self.drift = 1, 0
        clocks = {"now": lambda: self.now, "drift": lambda: self.drift}
        self.daemon = HookDaemon((str(root),), str(state), **clocks)

    def tell(
        self,
        name: str,
        tool: str = "",
        call: str = "t1",
        *,
        session: str = "s1",
        agent: str = "claude",
        above: tuple[tuple[int, str], ...] = (),
        more: dict[str, Any] | None = None,
        said: str = "",
        **given: Any,
    ) -> None:
        if name == "PreToolUse" and self.now == 1:
            self.now = time.time_ns()  # What is there by now is older than the call.
        facts = {"session_id": session, "hook_event_name": name, "cwd": str(self.root)}
        facts["turn_id" if agent == "codex" else "prompt_id"] = f"turn of {session}"
        if tool:
            facts |= {"tool_name": tool, "tool_input": given}
        if tool and name != "PermissionRequest":
            facts["tool_use_id"] = call
        data = json.dumps({**facts, **(more or {})}).encode()
        out = self.daemon.answer(agent, data, above=above).out
        assert said in out
        assert bool(said) == bool(out)

    def ask(self, tool: str, **given: Any) -> None:
        """Tell of a call, and that its person is asked about it."""
        self.tell("PreToolUse", tool, **given)
        self.tell("PermissionRequest", tool, **given)

    def write(self, name: str, text: str, *, after: int = 0) -> int:
        """Make a file, later by the clock of the disk than any other, by so many nanoseconds; when that was."""
        path = self.root / name
        newest = max(
            (one.lstat().st_ctime_ns for one in self.root.rglob("*")),
            default=0,
        )
        newest += after
        anew, begun, ended = not path.exists(), 0, 0
        # Of a new one, its birth is later as well, and not long before: a busy machine may stop between the two.
        while ended <= newest or (anew and ended > begun + COARSE // 5):
            path.unlink() if anew and ended else None
            with path.open("x" if anew else "w") as file:
                begun = os.fstat(file.fileno()).st_ctime_ns
                file.write(text)
            ended = path.stat().st_ctime_ns
        return ended

    def log(self) -> list[tuple[str, set[str]]]:
        """Tools and files of what was done, oldest first."""
        with self.workspace() as workspace:
            return [
                (one.tool, {change.path.path for change in one.changes.changes})
                for one in workspace.log()[::-1]
            ]

    def workspace(self) -> Any:
        return open_workspace(str(self.root), state_dir=str(self.state), settings=Settings())


@pytest.fixture
def agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Agents]:
    if getattr(request, "param", "") == "no notices":  # as on a network's file system
        monkeypatch.setattr(InotifyWatcher, "open", lambda _root: None)
    for name in ("CONFIG_HOME", "CONFIG_DIRS"):
        monkeypatch.setenv(f"XDG_{name}", str(tmp_path / name))
    monkeypatch.delenv("FILEPACT_CONFIG", raising=False)
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    made = Agents(root, tmp_path / "state")
    with closing(made.daemon):
        made.tell("SessionStart")
        yield made


def chain(*processes: int) -> tuple[tuple[int, str], ...]:
    found = (ancestors(one, commands=False)[0][0] for one in processes)
    return tuple((one.process, one.started) for one in found)


def call(agents: Agents, does: Callable[[], object], said: str = "") -> None:
    """A command of which nobody can read what it changes."""
    agents.tell("PreToolUse", "Bash", command="./script")
    does()
    agents.tell("PostToolUse", "Bash", command="./script", said=said)


def git(agents: Agents, *words: str) -> None:
    subprocess.run(["git", *words], cwd=agents.root, check=True)


def program() -> subprocess.Popen[bytes]:
    """A program that goes on until its input is closed, as a hook, a command or what that leaves behind."""
    return subprocess.Popen(["cat"], stdin=subprocess.PIPE)


@contextmanager
def begun(agents: Agents, **given: Any) -> Iterator[dict[str, Any]]:
    """Tell of a command by a hook that a host has started; what is told of the call from then on."""
    with program() as hook:
        call = {"above": chain(hook.pid, os.getpid()), **given}
        agents.tell("UserPromptSubmit", above=chain(os.getppid(), os.getpid()))
        agents.tell("PreToolUse", "Bash", **call)
        yield call


def running(process: int) -> set[tuple[int, tuple[str, ...]]]:
    """What a process has started, by number, with the words of those that are programs by now."""
    return {(one.process, one.words) for one in descendants(process) if one.words}


def until(true: Callable[[], bool]) -> None:
    """Wait until something is so."""
    while not true():
        os.sched_yield()


def later_tick() -> None:
    """Wait until what is started begins later than now, as the system counts it."""
    now = ticks_now()
    until(lambda: ticks_now() > now)


# -- a question on the screen --------------------------------------------------------------


def test_what_a_person_saves_while_they_are_asked_about_a_command_is_not_the_commands(agents):
    agents.tell("PreToolUse", "Bash", command="make")
    agents.write("before-the-question.txt", "mine\n")
    agents.tell("PermissionRequest", "Bash", command="make")
    agents.write("mine.txt", "an hour of work\n")
    agents.now = agents.write("made.txt", "by the command\n") + TICK + 5_000_000 - 1
    agents.tell("PostToolUse", "Bash", command="make", more={"duration_ms": 5})
    assert agents.log() == [
        (BY_NOBODY, {"before-the-question.txt"}),
        ("Bash", {"made.txt"}),
        (BY_NOBODY, {"mine.txt"}),
    ]
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert sorted(one.name for one in agents.root.iterdir()) == [
        *("a.txt", "before-the-question.txt", "mine.txt")
    ]


def test_rights_of_a_folder_that_a_command_makes_anew_are_its_own(agents):
    """A file comes in it after that, so its own time tells nothing."""
    (agents.root / "folder").mkdir(mode=0o700)
    (agents.root / "folder" / "x").write_text("a\n")
    agents.ask("Bash", command="./script")
    agents.now = agents.write("made.txt", "later than that\n", after=COARSE) - 1 + TICK
    command = "mv folder other; mkdir -m 755 folder; mv other/x folder; rmdir other"
    subprocess.run(["sh", "-c", command], cwd=agents.root, check=True)
    agents.tell("PostToolUse", "Bash", command="./script", more={"duration_ms": 0})
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert (agents.root / "folder").stat().st_mode & 0o777 == 0o700
    assert (agents.root / "folder" / "x").read_text() == "a\n"


@pytest.mark.parametrize("words", ["chmod 700 d", "chmod 700 d*", "make"])
def test_rights_of_a_folder_are_a_commands_that_names_it_though_a_file_comes_in_it_later(
    agents, words
):
    (agents.root / "d").mkdir()
    agents.ask("Bash", command=f"{words}; echo x > d/new")
    (agents.root / "d").chmod(0o700)
    agents.write("d/new", "x\n")
    # The folder's own time may be a tick before that of the file which came last in it.
    agents.now = (agents.root / "d").stat().st_ctime_ns + TICK + 5_000_000 - 1
    agents.tell("PostToolUse", "Bash", command=f"{words}; echo x > d/new", more={"duration_ms": 5})
    whose = agents.log()[1:]
    if words == "make":
        assert whose == [("Bash", {"d/new"}), (BY_NOBODY, {"d"})]
    else:
        assert whose == [("Bash", {"d", "d/new"})]


def test_what_a_person_makes_below_a_name_that_a_tool_writes_is_theirs(agents):
    """A link leads to where nothing is, and a person makes a folder there."""
    (agents.root / "link").symlink_to("mine")
    agents.tell("PreToolUse", "Write", file_path="link", content="x")
    (agents.root / "mine").mkdir()
    agents.write("mine/in", "by hand\n")
    agents.tell("PostToolUse", "Write", file_path="link", content="x")
    agents.tell("Stop")
    assert [tool for tool, paths in agents.log() if "mine/in" in paths] == [BY_NOBODY]


def test_a_call_whose_begin_is_heard_after_its_end_has_nothing_that_comes_then(agents):
    """The process that told of its begin was killed, and was slower than the next one."""
    agents.tell("PreToolUse", "Bash", "t0", command="true")
    agents.tell("PostToolUse", "Bash", "t0", command="true")
    begun = agents.now
    agents.now = agents.write("made.txt", "by the command\n") + TICK
    agents.tell("PostToolUse", "Bash", "t1", command="make > made.txt")
    ended, agents.now = agents.now, begun
    agents.tell("PreToolUse", "Bash", "t1", command="make > made.txt")
    agents.now = ended
    agents.write("mine.txt", "an hour of work\n")
    agents.tell("Stop")
    assert agents.log() == [("Bash", {"made.txt"}), (BY_NOBODY, {"mine.txt"})]


def test_gemini_cli_asks_about_the_call_that_it_has_told_of_last(agents):
    def tell(name: str, **facts: Any) -> None:
        data = {"session_id": "g", "hook_event_name": name, **facts}
        assert agents.daemon.answer("gemini", json.dumps(data).encode()) == ("", "")

    tool = {"tool_name": "run_shell_command", "tool_input": {"command": "make > made.txt"}}
    tell("BeforeTool", **tool)
    tell("Notification", notification_type="Other", message="x")
    tell("Notification", notification_type="ToolPermission", details={"type": "exec"})
    agents.write("mine.txt", "an hour of work\n")
    agents.write("made.txt", "by the command\n")
    tell("AfterTool", **tool)
    assert agents.log() == [("run_shell_command", {"made.txt"}), (BY_NOBODY, {"mine.txt"})]


def test_opencode_asks_about_the_call_that_it_has_told_of_last(agents):
    def tell(event: str, **facts: Any) -> None:
        data = {"session_id": "o", "turn_id": "t", **facts}
        assert agents.daemon.answer("opencode", json.dumps(data).encode(), event) == ("", "")

    tool = {"tool": "bash", "tool_use_id": "c", "args": {"command": "make > made.txt"}}
    tell("tool.execute.before", **tool)
    tell("permission.asked")
    agents.write("mine.txt", "an hour of work\n")
    agents.write("made.txt", "by the command\n")
    tell("tool.execute.after", **tool)
    assert agents.log() == [("bash", {"made.txt"}), (BY_NOBODY, {"mine.txt"})]


def test_what_a_formatter_writes_after_the_call_goes_back_with_it_by_one_command(agents):
    (agents.root / "f.py").write_text("a = 1\n")
    agents.tell("UserPromptSubmit")
    given = {"file_path": str(agents.root / "f.py"), "content": "a  =  2\n"}
    agents.tell("PreToolUse", "Write", **given)
    agents.write("f.py", "a  =  2\n")
    agents.tell("PostToolUse", "Write", **given)
    agents.write("f.py", "a = 2\n")
    agents.tell("Stop")
    with agents.workspace() as workspace:
        formatted, made = (one.id for one in workspace.log(limit=2))
        with pytest.raises(StaleFileError) as refused:
            workspace.undo_selected(PERSON, Selection(turn=NEWEST))
        assert f"`filepact undo {made} {formatted}`" in refused.value.hint
        workspace.undo_selected(PERSON, Selection((made, formatted)))
    assert (agents.root / "f.py").read_text() == "a = 1\n"


def test_what_was_seen_in_a_turn_before_its_first_change_is_named_when_it_is_undone(agents):
    agents.write("yesterday.txt", "mine\n")
    agents.tell("UserPromptSubmit")
    agents.tell("PreToolUse", "Read", "t1", file_path="a.txt")
    agents.write("meanwhile.txt", "mine\n")
    agents.tell("PostToolUse", "Read", "t1", file_path="a.txt")
    given = {"file_path": str(agents.root / "made.txt"), "content": "x"}
    agents.tell("PreToolUse", "Write", "t2", **given)
    agents.write("made.txt", "x")
    agents.tell("PostToolUse", "Write", "t2", **given)
    with agents.workspace() as workspace:
        seen = workspace.log()[1]
        receipt = workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert [change.path.path for change in seen.changes.changes] == ["meanwhile.txt"]
    (note,) = receipt.notes
    assert seen.id in note


def test_where_the_host_does_not_say_how_long_it_ran_its_words_count(agents):
    given = {"command": "make > made.txt"}
    agents.tell("PreToolUse", "Bash", agent="codex", **given)
    agents.tell("PermissionRequest", "Bash", agent="codex", description="why", **given)
    agents.write("mine.txt", "an hour of work\n")
    agents.write("made.txt", "by the command\n")
    agents.tell("PostToolUse", "Bash", agent="codex", **given)
    assert agents.log() == [("Bash", {"made.txt"}), (BY_NOBODY, {"mine.txt"})]


def test_what_a_person_saves_before_a_named_file_is_written_stays_theirs_if_it_never_was(agents):
    given = {"file_path": str(agents.root / "a.txt"), "content": "x"}
    agents.ask("Write", **given)
    agents.now = agents.write("a.txt", "by hand\n") + TICK + 1
    agents.tell("PostToolUseFailure", "Write", more={"duration_ms": 0}, **given)
    assert agents.log() == [(BY_NOBODY, {"a.txt"})]


@LINUX
@pytest.mark.parametrize("became", ["server", "child of a server"])
def test_a_command_that_a_person_was_asked_about_runs_when_its_host_has_started_something(
    agents, became
):
    above = {"agent": "codex", "above": ((7, "7"), *chain(os.getpid()))}
    agents.tell("UserPromptSubmit", agent="codex", above=((6, "6"), *chain(os.getpid())))
    agents.tell("PreToolUse", "Bash", **above, command="make")
    server = [""] if became == "server" else ["sh"]
    with subprocess.Popen(server, executable="/bin/sh", stdin=subprocess.PIPE) as already:
        agents.tell("PermissionRequest", "Bash", **above, command="make")
        later_tick()
        # What was about to become a program then is no command, nor is what it starts.
        already.stdin.write(b"exec cat\n" if became == "server" else b"cat\n")
        already.stdin.flush()
        until(lambda: any(one.words == ("cat",) for one in descendants(os.getpid())))
        agents.now = agents.write("mine.txt", "an hour of work\n") + TICK + 1
        assert agents.daemon.poll()
        with program() as command:
            until(lambda: (command.pid, ("cat",)) in running(os.getpid()))
            agents.now += 5 * TICK
            assert agents.daemon.poll()
            agents.write("made.txt", "by the command\n")
        agents.now += TICK
        assert agents.daemon.poll()
        agents.tell("PostToolUse", "Bash", **above, command="make")
    assert not agents.daemon.poll()
    assert agents.log() == [("Bash", {"made.txt"}), (BY_NOBODY, {"mine.txt"})]


SILENT = {
    "copilot": ("userPromptSubmitted", "preToolUse", "postToolUse", "toolName", "bash", "toolArgs"),
    "cursor": (
        *("beforeSubmitPrompt", "beforeShellExecution", "afterShellExecution"),
        *("tool", "shell", "tool_input"),
    ),
}
"""Hosts that do not say when they ask a person: their events, and under which names a call stands in them."""


@LINUX
@pytest.mark.parametrize("agent", SILENT)
@pytest.mark.parametrize("between", [False, True], ids=["alone", "another event comes"])
def test_a_command_of_a_host_that_does_not_tell_of_its_question_runs_when_something_is_started(
    agents, agent, between
):
    prompt, before, after, tool, name, given = SILENT[agent]
    hooks = count(6)

    def tell(event: str, **facts: Any) -> None:
        data = {"session_id": "s", "conversation_id": "s", **facts}
        above = ((next(hooks), "6"), *chain(os.getpid()))
        answer = agents.daemon.answer(agent, json.dumps(data).encode(), event, above=above)
        assert answer.out == ""

    call = {tool: name, given: {"command": "make"}, "toolCallId": "c", "tool_use_id": "c"}
    tell(prompt)
    tell(prompt)
    agents.now = (agents.root / "a.txt").stat().st_ctime_ns
    with program():  # the hook that tells of it
        tell(before, **call)
    later_tick()
    agents.now = agents.write("mine.txt", "an hour of work\n") + TICK + 1
    assert agents.daemon.poll()
    with program() as command:
        until(lambda: (command.pid, ("cat",)) in running(os.getpid()))
        agents.now += 5 * TICK
        assert agents.daemon.poll()
        agents.write("made.txt", "by the command\n")
        if between:
            tell(prompt if agent == "copilot" else "sessionStart", agent_id="sub-agent")
    tell(after, **call)
    assert (name, {"made.txt"}) in [(tool.lower(), files) for tool, files in agents.log()]
    assert (BY_NOBODY, {"mine.txt"}) in agents.log()


@LINUX
@pytest.mark.parametrize("agent", SILENT)
def test_a_quick_command_of_such_a_host_has_what_it_did(agents, agent):
    prompt, before, after, tool, name, given = SILENT[agent]
    call = {tool: name, given: {"command": "make"}, "toolCallId": "c", "tool_use_id": "c"}
    for number, (event, facts) in enumerate(((prompt, {}), (prompt, {}), (before, call))):
        data = json.dumps({"session_id": "s", "conversation_id": "s", **facts}).encode()
        above = ((6 + number, "6"), *chain(os.getpid()))
        agents.now = time.time_ns()
        with program():  # the hook
            agents.daemon.answer(agent, data, event, above=above)
    assert agents.daemon.poll()
    (agents.root / "made.txt").write_text("by the command\n")
    agents.daemon.answer(agent, data, after, above=above)
    assert agents.log() == [(name, {"made.txt"})]


@LINUX
def test_a_hook_that_its_host_is_about_to_start_is_no_command(agents):
    """Until a new process runs a program of its own, it has the words of the one that has started it."""
    above = {"above": ((7, "7"), *chain(os.getpid()))}
    agents.tell("UserPromptSubmit", above=((6, "6"), *chain(os.getpid())))
    agents.tell("PreToolUse", "Bash", **above, command="echo x > a.txt")
    with program():  # the hook that tells of it
        agents.tell("PermissionRequest", "Bash", **above, command="echo x > a.txt")
    later_tick()
    agents.write("a.txt", "by hand\n")
    go, done = os.pipe()
    child = os.fork()
    if not child:
        os.close(done)
        os.read(go, 1)
        os._exit(0)
    until(lambda: child in dict(running(os.getpid())))
    assert agents.daemon.poll()
    os.close(done)
    os.waitpid(child, 0)
    os.close(go)
    agents.tell("UserPromptSubmit", **above)
    assert agents.log() == [(BY_NOBODY, {"a.txt"})]


@LINUX
@pytest.mark.parametrize("tool", ["Bash", "Write"])
def test_what_a_person_does_by_hand_instead_of_a_call_that_they_refuse_is_theirs(agents, tool):
    above = {"above": ((7, "7"), *chain(os.getpid()))}
    agents.tell("UserPromptSubmit", above=((6, "6"), *chain(os.getpid())))
    given = {"command": "echo x > a.txt"} if tool == "Bash" else {"file_path": "a.txt"}
    agents.tell("PreToolUse", tool, **above, **given)
    hook = [sys.executable, "-c", "input()", "filepact", "hook", "claude"]
    with subprocess.Popen(hook, stdin=subprocess.PIPE):
        agents.tell("PermissionRequest", tool, **above, **given)
        agents.write("a.txt", "by hand\n")
        with subprocess.Popen(hook, stdin=subprocess.PIPE) as process:
            assert agents.daemon.poll() is (tool == "Bash")
            process.communicate(b"\n")
        agents.tell("UserPromptSubmit", **above)
    assert agents.log() == [(BY_NOBODY, {"a.txt"})]


@pytest.mark.parametrize("again", [False, True])
def test_the_files_of_a_folder_that_a_command_moves_are_moved_by_it(agents, again):
    (agents.root / "old").mkdir()
    (agents.root / "old" / "a.txt").write_text("as long as that\n")
    agents.tell("PreToolUse", "Bash", command="mv old new")
    before = agents.write("mine.txt", "by hand\n")
    agents.write("made.txt", "later than that\n")
    (agents.root / "old").rename(agents.root / "new")
    if again:  # as `git checkout` does afterwards
        (agents.root / "old").mkdir()
        (agents.root / "old" / "a.txt").write_text("as long as that\n")
    agents.now = before + TICK + 5_000_000
    agents.tell("PostToolUse", "Bash", command="mv old new", more={"duration_ms": 5})
    ((tool, files),) = [one for one in agents.log() if "new/a.txt" in one[1]]
    moved = {"made.txt", "new/a.txt"} if again else {"made.txt", "old/a.txt", "new/a.txt"}
    assert (tool, files >= moved) == ("Bash", True)
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert sorted(str(one.relative_to(agents.root)) for one in agents.root.rglob("*.txt")) == [
        *("a.txt", "mine.txt", "old/a.txt")
    ]


def test_folders_that_a_command_has_change_places_are_moved_by_it(agents):
    """Not one file in them has another time then, and each name is there as before."""
    for one in ("first", "second"):
        (agents.root / one / "in").mkdir(parents=True)
        for name in ("a.txt", "in/b.txt"):
            (agents.root / one / name).write_text(f"of the {one}\n")
    command = "mv first other; mv second first; mv other second"
    agents.tell("PreToolUse", "Bash", command=command)
    agents.now = agents.write("made.txt", "later than that\n") - 1 + TICK
    for old, new in (("first", "other"), ("second", "first"), ("other", "second")):
        (agents.root / old).rename(agents.root / new)
    agents.tell("PostToolUse", "Bash", command=command, more={"duration_ms": 0})
    ((tool, files),) = [one for one in agents.log() if "made.txt" in one[1]]
    moved = {f"{one}/{name}" for one in ("first", "second") for name in ("a.txt", "in/b.txt")}
    assert (tool, files >= moved) == ("Bash", True)
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert {name: (agents.root / name).read_text() for name in moved} == {
        name: f"of the {name.partition('/')[0]}\n" for name in moved
    }


@pytest.mark.parametrize(
    ("there", "does", "since"),
    [
        # What stood under a name in one of the folders, and in the other, or goes as well.
        ("mkdir first/x; echo a > second/x", SWAP, ""),
        ("mkdir first/x; echo a > second/x", SWAP, "rm first/x"),
        ("mkdir first/x; echo a > second/x", SWAP, "echo b >> first/x"),
        ("mkdir first/x first/x/in; echo b > first/x/f; echo a > second/x", SWAP, ""),
        ("mkdir first/x second/x; echo a > first/x/f", SWAP, ""),
        ("mkdir -m 700 first/x; mkdir second/x", SWAP, ""),
        ("mkdir first/x second/y", SWAP, ""),
        ("mkdir first/x; echo a > second/y", SWAP, ""),
        ("mkdir -p first/in/x second/in; echo a > second/in/x", SWAP, ""),
        # From where nobody looks: it is older than what was there.
        ("mkdir ../out; echo a > ../out/x; echo b > first/x", "rm -r first; mv ../out first", ""),
    ],
)
def test_what_comes_with_a_folder_has_come_when_the_folder_did(agents, there, does, since):
    """It has its old times still, also in the place of something of another kind."""
    subprocess.run(["sh", "-c", f"mkdir first second; {there}"], cwd=agents.root, check=True)
    before = tree(agents.root)
    agents.write("beside.txt", "mine\n", after=COARSE)
    agents.ask("Bash", command=does)
    written = agents.write("beside.txt", "after a question\n", after=COARSE)
    agents.now = agents.write("made.txt", "later than that\n", after=COARSE) - 1 + TICK
    assert agents.now > written + TICK
    subprocess.run(["sh", "-c", f"{does}; {since}"], cwd=agents.root, check=True)
    agents.tell("PostToolUse", "Bash", command=does, more={"duration_ms": 0})
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    (agents.root / "beside.txt").unlink()
    assert tree(agents.root) == before


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("held", ["a folder", "nothing"])
def test_a_folder_that_a_person_made_where_a_file_was_stays_with_the_folders_in_it(
    agents, held, seen
):
    """One with nothing at all in it makes way."""
    agents.tell("PreToolUse", "Bash", command="rm a.txt")
    (agents.root / "a.txt").unlink()
    agents.tell("PostToolUse", "Bash", command="rm a.txt")
    (agents.root / "a.txt" / "mine").mkdir(parents=True)
    if held == "nothing":
        (agents.root / "a.txt" / "mine").rmdir()
    if seen:
        agents.tell("Stop")
    with agents.workspace() as workspace:
        if held == "nothing":
            workspace.undo_selected(PERSON, Selection(turn=NEWEST))
            assert (agents.root / "a.txt").read_text() == "one\n"
            return
        with pytest.raises(StaleFileError):
            workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert (agents.root / "a.txt" / "mine").is_dir()


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_lay_in_a_folder_that_is_none_any_more_keeps_only_what_comes_there_from_going_back(
    agents, kind
):
    (agents.root / "d").mkdir()
    (agents.root / "d" / "x").write_text("a\n")
    does = "rm d/x; echo 1 > d/y; echo 2 > a.txt"
    agents.tell("PreToolUse", "Bash", command=does)
    subprocess.run(["sh", "-c", does], cwd=agents.root, check=True)
    agents.tell("PostToolUse", "Bash", command=does)
    shutil.rmtree(agents.root / "d")
    if kind == "file":
        agents.write("d", "mine\n")
    else:
        (agents.root / "d").symlink_to("nowhere")
    with agents.workspace() as workspace:
        with pytest.raises(StaleFileError):
            workspace.undo_selected(PERSON, Selection(turn=NEWEST))
        done = workspace.undo_selected(PERSON, Selection(turn=NEWEST), partly=True)
    # What a link leads to may be another file.
    assert {one.path for one in done.left} == {"d/x", *(["d/y"] if kind == "link" else [])}
    assert (agents.root / "a.txt").read_text() == "one\n"


def test_a_folder_that_takes_the_name_of_an_empty_one_is_moved_by_who_names_either(agents):
    for name in ("first", "second"):
        (agents.root / name).mkdir()
    before = tree(agents.root)
    agents.tell("PreToolUse", "Bash", "t0", command="mkdir -p second/x/in")
    (agents.root / "second" / "x" / "in").mkdir(parents=True)
    agents.tell("PostToolUse", "Bash", "t0", command="mkdir -p second/x/in")
    agents.now = agents.write("made.txt", "made before\n", after=COARSE)
    agents.ask("Bash", command="mv -T second/x first")
    agents.now = agents.write("made.txt", "later than that\n", after=COARSE) - 1 + TICK
    (agents.root / "second" / "x").rename(agents.root / "first")
    agents.tell("PostToolUse", "Bash", command="mv -T second/x first", more={"duration_ms": 0})
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    (agents.root / "made.txt").unlink()
    assert tree(agents.root) == before


def test_what_a_person_renames_before_a_command_puts_a_link_in_its_place_stays_renamed(agents):
    """The folder around both is no reason to think otherwise, though something comes in it later."""
    old, new = agents.root / "d" / "old", agents.root / "d" / "new"
    (old / "in").mkdir(parents=True)
    (old / "in" / "x").write_text("mine\n")
    agents.ask("Bash", command="rm -rf d/old; ln -s .. d/old")
    old.rename(new)
    agents.now = agents.write("made.txt", "later than that\n", after=COARSE) - 1 + TICK
    old.symlink_to("..")
    agents.tell(
        *("PostToolUse", "Bash"),
        command="rm -rf d/old; ln -s .. d/old",
        more={"duration_ms": 0},
    )
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert (new / "in" / "x").read_text() == "mine\n"
    assert not old.is_symlink()


@pytest.mark.parametrize("inside", ["d/in", "d"])
def test_folders_that_were_made_for_a_file_that_the_same_turn_removed_go(agents, inside):
    for does in ("mkdir -p d/in; echo x > d/in/x", f"rm -r {inside}"):
        agents.tell("PreToolUse", "Bash", command=does)
        subprocess.run(["sh", "-c", does], cwd=agents.root, check=True)
        agents.tell("PostToolUse", "Bash", command=does)
    with agents.workspace() as workspace, suppress(NoChangeError):
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert [one.name for one in agents.root.iterdir()] == ["a.txt"]


def test_a_folder_of_whose_files_there_are_other_names_is_moved_by_who_moves_it(agents):
    """They stay, and were made so shortly before that each look reads them again."""
    (agents.root / "first").mkdir()
    (agents.root / "first" / "x").write_text("a\n")
    agents.write("made.txt", "later than that\n", after=COARSE)
    subprocess.run(["cp", "-rl", "first", "twin"], cwd=agents.root, check=True)
    agents.ask("Bash", command="mv first second")
    agents.now = agents.write("made.txt", "later than that\n", after=COARSE) - 1 + TICK
    (agents.root / "first").rename(agents.root / "second")
    agents.tell("PostToolUse", "Bash", command="mv first second", more={"duration_ms": 0})
    assert ("Bash", {"first", "first/x", "second", "second/x"}) in agents.log()


def test_a_folder_with_a_persons_file_does_not_go_back_as_an_empty_one_of_the_same_time(agents):
    """A command moves the folder and makes it anew, and the one in it was made in the very tick in which it changed last."""
    inner, file = agents.root / "first" / "in", agents.root / "first" / "x"
    inner.mkdir(parents=True)
    file.write_text("a\n")
    for one in (inner, inner.parent):
        os.utime(one, ns=(1, 1))
    command = "mv first second; mkdir first; echo a > first/x"
    agents.ask("Bash", command=command)
    file.write_text("an hour of work\n")
    agents.now = agents.write("made.txt", "later than that\n", after=COARSE) - 1 + TICK
    subprocess.run(["sh", "-c", command], cwd=agents.root, check=True)
    agents.tell("PostToolUse", "Bash", command=command, more={"duration_ms": 0})
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert sorted(inner.iterdir()) == []
    assert "an hour of work\n" in {one.read_text() for one in agents.root.glob("*/x")}


@pytest.mark.parametrize("way", ["turn", "session"])
def test_of_folders_that_change_places_a_file_that_a_person_has_just_saved_stays_and_is_named(
    agents, way
):
    """Nobody has looked at it since, and what came in its place has the only copy of that as well."""
    for one in ("first", "second"):
        (agents.root / one).mkdir()
        for name in ("a.txt", "b.txt"):
            (agents.root / one / name).write_text(f"{name} of the {one}\n")
    command = "mv first other; mv second first; mv other second"
    agents.ask("Bash", command=command)
    (agents.root / "first" / "a.txt").unlink()
    agents.write("first/a.txt", "an hour of work\n")
    agents.now = agents.write("made.txt", "later than that\n") - 1 + TICK
    for old, new in (("first", "other"), ("second", "first"), ("other", "second")):
        (agents.root / old).rename(agents.root / new)
    agents.tell("PostToolUse", "Bash", command=command, more={"duration_ms": 0})
    with agents.workspace() as workspace:
        selection = Selection(turn=NEWEST)
        if way == "session":
            of = next(one.session for one in workspace.log() if one.tool == "Bash")
            selection = Selection(session=of)
        done = workspace.undo_selected(PERSON, selection)
        left = [one for one in workspace.log() if one.tool == BY_NOBODY]
    held = {(agents.root / one / "a.txt").read_text() for one in ("first", "second")}
    assert held == {"an hour of work\n", "a.txt of the second\n"}
    for one in ("first", "second"):
        assert (agents.root / one / "b.txt").read_text() == f"b.txt of the {one}\n"
    assert left
    assert all(any(one.id in note for note in done.notes) for one in left)


def test_what_lies_deep_in_a_folder_that_a_link_takes_the_place_of_is_moved_by_it(agents):
    (agents.root / "old" / "in").mkdir(parents=True)
    (agents.root / "old" / "in" / "deep.txt").write_text("deep\n")
    agents.tell("PreToolUse", "Bash", command="mv old new; ln -s new old")
    agents.now = agents.write("made.txt", "later than that\n") - 1 + TICK
    while agents.write("made.txt", "later than that\n") <= agents.now:
        pass  # What moves in the very tick of the beginning may have moved before.
    (agents.root / "old").rename(agents.root / "new")
    (agents.root / "old").symlink_to("new")
    agents.tell("PostToolUse", "Bash", command="mv old new; ln -s new old", more={"duration_ms": 0})
    moved = {"old", "old/in/deep.txt", "new/in/deep.txt"}
    ((tool, files),) = [one for one in agents.log() if "old" in one[1]]
    assert (tool, files >= moved) == ("Bash", True)
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert (agents.root / "old" / "in" / "deep.txt").read_text() == "deep\n"
    assert sorted(one.name for one in agents.root.iterdir()) == ["a.txt", "old"]


def test_a_repository_that_a_link_takes_the_place_of_goes_back_with_what_was_committed_since(
    agents,
):
    repository = agents.root / "old/.git"
    (repository / "objects").mkdir(parents=True)
    (repository / "config").write_text("[core]\n")
    (repository / "HEAD").write_text("ref: refs/heads/main\n")
    (agents.root / "old/mine.txt").write_text("mine\n")
    agents.tell("PreToolUse", "Bash", command="mv old new; ln -s new old")
    (agents.root / "old").rename(agents.root / "new")
    (agents.root / "old").symlink_to("new")
    agents.tell("PostToolUse", "Bash", command="mv old new; ln -s new old")
    (agents.root / "new/.git/objects/new").write_text("committed since\n")
    for link in (False, True, False):
        with agents.workspace() as workspace:
            if link:
                workspace.redo(PERSON)
            else:
                workspace.undo_selected(PERSON, Selection(turn=NEWEST))
        names = {"old", "new"} if link else {"old"}
        assert {one.name for one in agents.root.iterdir()} == {"a.txt", *names}
        assert (agents.root / "old").is_symlink() == link
        assert (agents.root / "old/.git/objects/new").exists()
        assert (agents.root / "old/mine.txt").read_text() == "mine\n"


@pytest.mark.parametrize("since", [None, 0o750])
@pytest.mark.parametrize("left", [True, False])
def test_a_folder_that_was_moved_away_and_made_anew_gets_its_rights_again(agents, left, since):
    old, new = agents.root / "old", agents.root / "new"
    old.mkdir(0o700)
    (old / "in.txt").write_text("in\n")
    agents.tell("PreToolUse", "Bash", "t1", command="mv old new")
    old.rename(new)
    agents.tell("PostToolUse", "Bash", "t1", command="mv old new")
    words = "mkdir old; mv new/in.txt old/in.txt; rmdir new"
    agents.tell("PreToolUse", "Bash", "t2", command=words)
    old.mkdir(0o755)
    (new / "in.txt").rename(old / ("in.txt" if left else "other.txt"))
    new.rmdir()
    agents.tell("PostToolUse", "Bash", "t2", command=words)
    if since:
        old.chmod(since)  # by a person
    with agents.workspace() as workspace:
        if left and since:
            with pytest.raises(NoChangeError):
                workspace.undo_selected(PERSON, Selection(turn=NEWEST))
        else:
            workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert [one.name for one in old.iterdir()] == ["in.txt"]
    assert old.stat().st_mode & 0o777 == (since or 0o700)
    assert not new.exists()


def test_a_file_that_became_a_name_of_another_goes_back_before_that_is_written_in_place(agents):
    other = agents.root / "other.txt"
    other.write_text("of the other\n")
    words = "ln -f a.txt other.txt; echo more >> a.txt"
    agents.tell("PreToolUse", "Bash", command=words)
    other.unlink()
    other.hardlink_to(agents.root / "a.txt")
    agents.tell("PostToolUse", "Bash", command=words)
    before = other.read_text()
    agents.tell("PreToolUse", "Bash", "t2", command=words)
    (agents.root / "a.txt").write_text("more\n")
    agents.tell("PostToolUse", "Bash", "t2", command=words)
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert (other.read_text(), (agents.root / "a.txt").read_text()) == ("of the other\n", before)


def test_what_a_person_renames_while_they_are_asked_is_renamed_by_them(agents):
    agents.ask("Bash", command="make")
    (agents.root / "a.txt").rename(agents.root / "mine.txt")
    agents.now = agents.write("made.txt", "by the command\n") + TICK + 5_000_000 - 1
    agents.tell("PostToolUse", "Bash", command="make", more={"duration_ms": 5})
    assert agents.log() == [("Bash", {"made.txt"}), (BY_NOBODY, {"a.txt", "mine.txt"})]


def test_what_a_person_removes_and_makes_in_one_folder_while_they_are_asked_is_theirs(agents):
    """One file of each kind is what the agent had made before, in the same turn."""
    folder = agents.root / "d"
    folder.mkdir()
    for name in ("mine", "stays"):
        (folder / name).write_text(f"{name}\n")
    agents.tell("Stop")
    agents.tell("PreToolUse", "Bash", "t0", command="make")
    for name in ("gone", "over"):
        (folder / name).write_text("the agent's\n")
    agents.tell("PostToolUse", "Bash", "t0", command="make")
    agents.ask("Bash", command="make")
    (folder / "mine").unlink()
    (folder / "gone").unlink()
    agents.write("d/over", "mine over the agent's\n")
    agents.write("d/new", "mine\n")
    agents.now = agents.write("made.txt", "by the command\n") + TICK + 5_000_000 - 1
    agents.tell("PostToolUse", "Bash", command="make", more={"duration_ms": 5})
    assert agents.log()[-1] == (BY_NOBODY, {"d/mine", "d/gone", "d/over", "d/new"})
    with agents.workspace() as workspace:
        with pytest.raises(StaleFileError):
            workspace.undo_selected(PERSON, Selection(turn=NEWEST))
        assert (agents.root / "made.txt").exists()
        workspace.undo_selected(PERSON, Selection(turn=NEWEST), partly=True)
    assert not (agents.root / "made.txt").exists()
    assert {one.name: one.read_text() for one in folder.iterdir()} == {
        "stays": "stays\n",
        "over": "mine over the agent's\n",
        "new": "mine\n",
    }


def test_a_folder_that_a_person_makes_in_place_of_a_file_while_they_are_asked_is_theirs(agents):
    agents.ask("Bash", command="make")
    (agents.root / "a.txt").unlink()
    (agents.root / "a.txt").mkdir()
    (agents.root / "a.txt" / "in").write_text("by hand\n")
    agents.now = agents.write("made.txt", "by the command\n") + TICK + 5_000_000 - 1
    (agents.root / "made.txt").rename(agents.root / "made")
    agents.tell("PostToolUse", "Bash", command="make", more={"duration_ms": 5})
    assert agents.log()[0] == ("Bash", {"made"})
    assert {one[0] for one in agents.log()[1:]} == {BY_NOBODY}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("did", "given"),
    [
        ("remove all", "rm -r kept"),
        ("remove some", "rm -r kept/empty"),
        ("move out", "mv kept/empty out"),
        ("move all", "mv kept out"),
    ],
)
def test_empty_folders_in_an_ignored_one_go_back_with_their_rights(agents, did, given, named):
    kept = agents.root / "kept"
    (kept / "empty/inner").mkdir(parents=True)
    (kept / "empty/inner").chmod(0o700)
    (kept / "empty").chmod(0o750)
    (agents.root / ".gitignore").write_text("kept/\n")
    agents.tell("SessionStart")
    was = tree(agents.root)
    command = given if named else "./clean"
    agents.tell("PreToolUse", "Bash", command=command)
    if did.startswith("remove"):
        shutil.rmtree(kept if did == "remove all" else kept / "empty")
    else:
        (kept if did == "move all" else kept / "empty").rename(agents.root / "out")
    agents.tell("PostToolUse", "Bash", command=command)
    now = tree(agents.root)
    with agents.workspace() as workspace:
        assert workspace.undo_selected(PERSON, Selection(turn=NEWEST)).left == ()
        assert tree(agents.root) == was
        workspace.redo(PERSON)
        assert tree(agents.root) == now


@pytest.mark.parametrize("gone", ["app/.git", "app"])
def test_of_a_repository_that_an_agent_makes_and_removes_nothing_comes_back(agents, gone):
    was = tree(agents.root)
    call(agents, lambda: (git(agents, "init", "-q", "app"), agents.write("app/x", "x\n")))
    call(agents, lambda: (shutil.rmtree(agents.root / gone), agents.write("other", "x\n")))
    with agents.workspace() as workspace:
        assert workspace.undo_selected(PERSON, Selection(turn=NEWEST)).left == ()
    assert tree(agents.root) == was


@pytest.mark.parametrize("hook", [True, False])
def test_of_a_persons_repository_that_an_agent_removes_the_settings_come_back_and_the_rest_is_named(
    agents, hook
):
    call(agents, lambda: agents.write("other", "x\n"))
    git(agents, "init", "-q", "app")
    git(agents, "-C", "app", "remote", "add", "origin", "/elsewhere")
    if hook:
        (agents.root / "app/.git/hooks").mkdir(exist_ok=True)
        (agents.root / "app/.git/hooks/pre-push").write_text("exit 1\n")
    call(agents, lambda: agents.write("other", "y\n"))
    settings = (agents.root / "app/.git/config").read_bytes()
    told = "app/.git" if hook else ""
    call(agents, lambda: shutil.rmtree(agents.root / "app/.git"), said=told)
    with agents.workspace() as workspace:
        left = workspace.undo_selected(PERSON, Selection(turn=NEWEST)).left
    assert [one.path for one in left] == ["app/.git"]
    assert (agents.root / "app/.git/config").read_bytes() == settings
    assert (agents.root / "app/.git/hooks/pre-push").exists() is hook


def test_ignored_folders_that_go_between_calls_are_told_to_nobody(agents):
    (agents.root / "cache-of-mine/empty").mkdir(parents=True)
    (agents.root / ".gitignore").write_text("cache-of-mine/\n")
    agents.tell("SessionStart")
    for _ in range(2):
        agents.tell("PreToolUse", "Bash", command="make")
        agents.tell("PostToolUse", "Bash", command="make")
        shutil.rmtree(agents.root / "cache-of-mine", ignore_errors=True)
    agents.tell("PreToolUse", "Bash", command="make")
    assert all("cache-of-mine" not in names for _, names in agents.log())


@pytest.mark.parametrize("kind", ["file", "link", "pipe"])
def test_a_folder_that_a_person_replaces_by_something_else_while_they_are_asked_went_by_them(
    agents, kind
):
    folder = agents.root / "folder"
    folder.mkdir()
    (folder / "old.txt").write_text("old\n")
    agents.ask("Bash", command="make")
    shutil.rmtree(folder)
    if kind == "file":
        agents.write("folder", "mine\n")
    else:
        os.symlink("a.txt", folder) if kind == "link" else os.mkfifo(folder)
    agents.now = agents.write("made.txt", "by the command\n") + TICK + 5_000_000 - 1
    agents.tell("PostToolUse", "Bash", command="make", more={"duration_ms": 5})
    assert ("Bash", {"made.txt"}) in agents.log()
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert {one.name for one in agents.root.iterdir()} == {"a.txt", "folder"}
    assert not folder.is_dir()


def test_where_nothing_else_can_go_back_a_refusal_names_all_and_offers_no_part(agents):
    agents.tell("PreToolUse", "Bash", command="mkfifo pipe; echo two > a.txt")
    os.mkfifo(agents.root / "pipe")
    (agents.root / "a.txt").write_text("two\n")
    agents.tell("PostToolUse", "Bash", command="mkfifo pipe; echo two > a.txt")
    (agents.root / "a.txt").unlink()
    agents.tell("Stop")
    with agents.workspace() as workspace, pytest.raises(StaleFileError) as refused:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert "others" not in refused.value.details
    assert {path for path, *_ in refused.value.details["conflicts"]} == {"a.txt", "pipe"}


@pytest.mark.parametrize("again", [False, True])
def test_a_folder_that_a_person_renames_while_they_are_asked_is_renamed_by_them(agents, again):
    for name in ("d/a.txt", "d/in/b.txt"):
        (agents.root / name).parent.mkdir(exist_ok=True)
        (agents.root / name).write_text("by hand\n")
    agents.ask("Bash", command="make")
    (agents.root / "d").rename(agents.root / "mine")
    agents.now = agents.write("made.txt", "by the command\n") + TICK + 5_000_000 - 1
    (agents.root / "made.txt").rename(agents.root / "made")
    if again:  # as `git checkout` does
        (agents.root / "d").mkdir()
        (agents.root / "d" / "a.txt").write_text("by hand\n")
    agents.tell("PostToolUse", "Bash", command="make", more={"duration_ms": 5})
    (_, *((tool, _), (by, renamed))) = agents.log()
    named = {f"mine/{name}" for name in ("a.txt", "in/b.txt")}
    assert (tool, by, renamed >= named) == ("Bash", BY_NOBODY, True)
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert {name: (agents.root / name).exists() for name in named} == dict.fromkeys(named, True)
    assert (agents.root / "d").exists() == again


@pytest.mark.parametrize("tool", ["Bash", "Write"])
@pytest.mark.parametrize("did", ["made", "named", "filled", "filled and named"])
def test_a_folder_of_a_person_stays_theirs_if_a_call_makes_something_in_it(agents, tool, did):
    """Its own time of change tells no more then when they named it."""
    (agents.root / "d").mkdir()
    if "filled" in did:
        (agents.root / "d" / "b.txt").write_text("by hand\n")
    agents.tell("UserPromptSubmit")
    given = {"command": "make"}
    if tool == "Write":
        given = {"file_path": str(agents.root / "mine" / "new"), "content": "x"}
    agents.ask(tool, **given)
    if "named" in did:
        (agents.root / "d").rename(agents.root / "mine")
    else:
        (agents.root / "mine").mkdir()
    if did == "filled":
        (agents.root / "d").rename(agents.root / "mine" / "d")
    before = {str(one.relative_to(agents.root)) for one in agents.root.rglob("*")}
    agents.now = agents.write("made.txt", "x", after=COARSE) + TICK + 5_000_000 - 1
    agents.write("mine/new", "x")
    (agents.root / "made.txt").unlink()
    agents.tell("PostToolUse", tool, more={"duration_ms": 5}, **given)
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert {name for name in before if not (agents.root / name).exists()} == set()
    assert not (agents.root / "mine" / "new").exists()


def test_a_folder_that_a_question_or_the_command_after_it_renamed_is_nobodys_and_is_told(agents):
    """What comes into it has its time cover when it got its name, and the command's words do not tell that name."""
    for one in ("d0", "d1"):
        (agents.root / one).mkdir()
    command = """mv d1 "$(printf 'n\\376')"; mv d0 "$(printf 'n\\376')\""""
    agents.tell("UserPromptSubmit")
    agents.ask("Bash", command=command)
    agents.now = agents.write("made.txt", "x", after=COARSE) + TICK - 1
    new = os.fsdecode(b"n\xfe")
    (agents.root / "d1").rename(agents.root / new)
    (agents.root / "d0").rename(agents.root / new / "d0")
    agents.tell("PostToolUse", "Bash", more={"duration_ms": 0}, command=command)
    with agents.workspace() as workspace:
        done = workspace.undo_selected(PERSON, Selection(turn=NEWEST))
        nobodys = [one for one in workspace.log() if one.tool == BY_NOBODY]
    named = [one for one in nobodys if new in {path.path for path in one.changes.paths}]
    (beside,) = named
    said = f"{beside.id}, {beside.summary}: {shown_name(new)} (`filepact undo {beside.id}` does)."
    assert any(note.endswith(said) for note in done.notes)
    assert (agents.root / "d0").is_dir()
    assert (agents.root / new).is_dir()


def test_a_file_in_the_place_of_a_folder_goes_back_also_if_both_are_ignored_by_now(agents):
    (agents.root / "mine").mkdir()
    agents.tell("UserPromptSubmit")
    agents.tell("PreToolUse", "Bash", command="true")
    (agents.root / ".gitignore").write_text("mine*\n")
    agents.tell("PostToolUse", "Bash", command="true")
    command = "rm -rf mine; echo x > mine"
    agents.tell("PreToolUse", "Bash", command=command)
    (agents.root / "mine").rmdir()
    (agents.root / "mine").write_text("x\n")
    agents.tell("PostToolUse", "Bash", command=command)
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert (agents.root / "mine").is_dir()


def test_an_ignored_file_in_a_folder_that_a_command_hides_is_known_to_the_next_one(agents):
    (agents.root / ".gitignore").write_text("*.log\n")
    agents.tell("UserPromptSubmit")
    (agents.root / "d").mkdir()
    (agents.root / "d" / "made.log").write_text("1\n")
    command = "chmod -R u+w d; echo d/ > .ignore"
    agents.tell("PreToolUse", "Bash", command=command)
    (agents.root / ".ignore").write_text("d/\n")
    agents.tell("PostToolUse", "Bash", command=command)
    command = "chmod -R u+x d"
    agents.tell("PreToolUse", "Bash", call="t2", command=command)
    (agents.root / "d" / "made.log").chmod(0o744)
    agents.tell("PostToolUse", "Bash", call="t2", command=command)
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert (agents.root / "d" / "made.log").stat().st_mode & 0o777 == 0o644


def test_a_link_that_a_person_puts_in_the_place_of_a_file_that_is_written_stays(agents):
    file = agents.root / "a.txt"
    file.write_text("1\n")
    agents.tell("UserPromptSubmit")
    agents.tell("PreToolUse", "Write", file_path=str(file))
    file.unlink()
    file.symlink_to("mine")
    (agents.root / "mine").write_text("written\n")
    agents.tell("PostToolUse", "Write", file_path=str(file))
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert os.readlink(file) == "mine"


def test_what_a_tool_writes_by_a_link_that_a_person_has_put_there_goes_back(agents):
    file = agents.root / "a.txt"
    agents.tell("UserPromptSubmit")
    agents.tell("PreToolUse", "Write", file_path=str(file))
    agents.tell("PermissionRequest", "Write", file_path=str(file))
    file.unlink()
    file.symlink_to("mine")
    agents.now = agents.write("mine", "written\n", after=COARSE) + TICK + 5_000_000 - 1
    agents.tell("PostToolUse", "Write", more={"duration_ms": 5}, file_path=str(file))
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert os.readlink(file) == "mine"
    assert not (agents.root / "mine").exists()


def test_what_a_command_moves_and_removes_without_naming_it_goes_back_also_if_a_person_was_asked(
    agents,
):
    for name in ("d/a.txt", "e/b.txt", "e/c.txt"):
        (agents.root / name).parent.mkdir(exist_ok=True)
        (agents.root / name).write_text("by hand\n")
    (agents.root / "empty").mkdir()
    before = sorted(one.relative_to(agents.root) for one in agents.root.rglob("*"))
    agents.tell("UserPromptSubmit")
    agents.ask("Bash", command="make")
    agents.now = agents.write("made.txt", "x", after=COARSE) + TICK + 5_000_000 - 1
    (agents.root / "d").rename(agents.root / "moved")
    (agents.root / "empty").rename(agents.root / "as empty")
    (agents.root / "e" / "b.txt").unlink()
    agents.tell("PostToolUse", "Bash", more={"duration_ms": 5}, command="make")
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert sorted(one.relative_to(agents.root) for one in agents.root.rglob("*")) == before


def test_what_a_person_makes_while_they_are_asked_stays_where_the_command_then_changes_it(agents):
    (agents.root / "d").mkdir()
    (agents.root / "d" / "a").write_text("a\n")
    agents.tell("UserPromptSubmit")
    command = "chmod -R u=rwX,go= d; echo more >> d/mine.txt; mv d/b d/named"
    agents.ask("Bash", command=command)
    for name in ("mine.txt", "b"):
        (agents.root / "d" / name).write_text("an hour of work\n")
    (agents.root / "d" / "mine").mkdir()
    agents.now = agents.write("clock", "x", after=COARSE) + TICK + 5_000_000 - 1
    (agents.root / "clock").unlink()
    for name, mode in (("a", 0o600), ("mine.txt", 0o600), ("mine", 0o700)):
        (agents.root / "d" / name).chmod(mode)
    agents.write("made.txt", "x")
    with (agents.root / "d" / "mine.txt").open("a") as file:
        file.write("more\n")
    (agents.root / "d" / "b").rename(agents.root / "d" / "named")
    agents.tell("PostToolUse", "Bash", more={"duration_ms": 5}, command=command)
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert not (agents.root / "made.txt").exists()
    assert (agents.root / "d" / "a").stat().st_mode & 0o777 == 0o644
    assert (agents.root / "d" / "mine").is_dir()
    for name in ("mine.txt", "named"):
        assert (agents.root / "d" / name).read_text().startswith("an hour of work\n")


@pytest.mark.parametrize("fills", [False, True])
def test_a_folder_that_a_person_moves_into_one_whose_rights_a_command_changes_stays_there(
    agents, fills
):
    for name in ("d/a.txt", "mine/in/b.txt"):
        (agents.root / name).parent.mkdir(parents=True)
        (agents.root / name).write_text("by hand\n")
    agents.tell("UserPromptSubmit")
    command = "echo new > d/new; " * fills + "chmod 700 d; make"
    agents.tell("PreToolUse", "Bash", command=command)
    agents.tell("PermissionRequest", "Bash", command=command)
    (agents.root / "mine").rename(agents.root / "d" / "mine")
    agents.now = agents.write("clock", "x", after=COARSE) + TICK + 5_000_000 - 1
    if fills:
        agents.write("d/new", "x")
    (agents.root / "d").chmod(0o700)
    agents.write("made.txt", "x")
    agents.tell("PostToolUse", "Bash", more={"duration_ms": 5}, command=command)
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert (agents.root / "d" / "mine" / "in" / "b.txt").exists()
    assert not (agents.root / "mine").exists()
    assert (agents.root / "d").stat().st_mode & 0o777 == 0o755
    assert not (agents.root / "d" / "new").exists()


@pytest.mark.parametrize("ignored", [False, True])
def test_a_folder_that_a_person_moves_into_a_new_one_stays_there_though_that_gets_rights_later(
    agents, ignored
):
    mine, folder = agents.root / "mine", agents.root / "d"
    (mine / "in").mkdir(parents=True)
    (mine / "in" / "b.txt").write_text("by hand\n")
    if ignored:
        (agents.root / ".gitignore").write_text("mine\n")
    agents.tell("UserPromptSubmit")
    agents.ask("Bash", command="make")
    folder.mkdir()
    mine.rename(folder / "mine")
    agents.now = agents.write("clock", "x", after=COARSE) + TICK + 5_000_000 - 1
    agents.write("made.txt", "x")
    folder.chmod(0o700)
    agents.tell("PostToolUse", "Bash", more={"duration_ms": 5}, command="make")
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert (folder / "mine" / "in" / "b.txt").exists()
    assert not mine.exists()
    assert not (agents.root / "made.txt").exists()


def test_a_folder_that_a_person_renames_stays_where_it_is_though_it_gets_other_rights_later(agents):
    (agents.root / "d" / "in").mkdir(parents=True)
    (agents.root / "d" / "in" / "b.txt").write_text("by hand\n")
    agents.tell("UserPromptSubmit")
    agents.ask("Bash", command="make")
    (agents.root / "d").rename(agents.root / "mine")
    agents.now = agents.write("clock", "x", after=COARSE) + TICK + 5_000_000 - 1
    agents.write("made.txt", "x")
    (agents.root / "mine").chmod(0o700)
    agents.tell("PostToolUse", "Bash", more={"duration_ms": 5}, command="make")
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert {one.name for one in agents.root.iterdir()} == {"a.txt", "mine"}
    assert (agents.root / "mine" / "in" / "b.txt").exists()
    assert (agents.root / "mine").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("command", ["find d -name 'g*' -delete", "find d -name 'g*' | xargs rm"])
def test_a_folder_that_a_person_moves_to_where_a_command_removes_others_stays(agents, command):
    """A search names what it looks for, not all that lies there."""
    (agents.root / "d").mkdir()
    (agents.root / "d" / "g").write_text("x\n")
    (agents.root / "mine").mkdir()
    agents.tell("UserPromptSubmit")
    agents.ask("Bash", command=command)
    (agents.root / "mine").rename(agents.root / "d" / "mine")
    agents.now = agents.write("clock", "x", after=COARSE) + TICK + 5_000_000 - 1
    agents.write("made.txt", "x")
    (agents.root / "d" / "g").unlink()
    agents.tell("PostToolUse", "Bash", more={"duration_ms": 5}, command=command)
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert {one.name for one in agents.root.iterdir()} == {"a.txt", "d"}
    assert {one.name for one in (agents.root / "d").iterdir()} == {"g", "mine"}


@pytest.mark.parametrize("outside", [False, True])
def test_a_file_that_a_person_moves_while_asked_is_not_made_by_a_command_that_writes_it(
    agents, outside
):
    (agents.root.parent / "outside.txt").write_text("by hand\n")
    (agents.root / "d").mkdir()
    (agents.root / "d" / "b.txt").write_text("by hand\n")
    was, name = (agents.root.parent, "outside.txt") if outside else (agents.root / "d", "b.txt")
    time.sleep(2 * COARSE / 1e9)  # It is older than the next look, as far as births are told.
    agents.tell("UserPromptSubmit")
    agents.ask("Bash", command="make")
    (was / name).rename(agents.root / "mine.txt")
    agents.now = agents.write("clock", "x", after=COARSE) + TICK + 5_000_000 - 1
    (agents.root / "mine.txt").write_text("by hand\nmore\n")
    (agents.root / "mine.txt").chmod(0o755)
    agents.tell("PostToolUse", "Bash", more={"duration_ms": 5}, command="make")
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert (agents.root / "mine.txt").read_text().startswith("by hand\n")
    assert not (was / name).exists()
    assert not (agents.root / "clock").exists()


@LINUX
def test_a_file_that_a_person_moves_to_a_name_of_a_background_command_is_moved_by_them(agents):
    with begun(agents, command="(sleep 5; echo x >> b.txt) &") as call, program():
        agents.tell("PostToolUse", "Bash", **call)
        (agents.root / "a.txt").rename(agents.root / "b.txt")
        (agents.root / "b.txt").write_text("one\nx\n")
        agents.tell("Stop")
    assert agents.log() == [(BY_NOBODY, {"a.txt", "b.txt"})]


@pytest.mark.parametrize("then", ["stays", "a link", "gone"])
def test_a_file_that_is_written_anew_beside_its_other_name_was_not_moved_to_that(agents, then):
    """Most tools write a file beside the old one and rename it: the link keeps what it had."""
    (agents.root / "link.txt").hardlink_to(agents.root / "a.txt")
    agents.tell("UserPromptSubmit")
    agents.tell("PreToolUse", "Edit", file_path="a.txt")
    (agents.root / "new").write_text("by the agent\n")
    (agents.root / "new").rename(agents.root / "a.txt")
    agents.tell("PostToolUse", "Edit", file_path="a.txt")
    if then != "stays":
        (agents.root / "a.txt").unlink()
    if then == "a link":
        (agents.root / "a.txt").symlink_to("nowhere")
    agents.tell("Stop")
    assert ("Edit", {"a.txt"}) in agents.log()


def test_of_a_file_that_an_agent_moves_while_another_names_it_both_ends_have_one_owner(agents):
    for session in ("s1", "s2"):
        agents.tell("UserPromptSubmit", session=session)
    agents.tell("PreToolUse", "Bash", "t1", command="sed -i s/x/y/ a.txt")
    agents.tell("PreToolUse", "Bash", "t2", session="s2", command="mv a.txt b.txt")
    (agents.root / "a.txt").rename(agents.root / "b.txt")
    agents.tell("PostToolUse", "Bash", "t2", session="s2", command="mv a.txt b.txt")
    agents.tell("PostToolUse", "Bash", "t1", command="sed -i s/x/y/ a.txt")
    assert agents.log() == [(BY_SEVERAL, {"a.txt", "b.txt"})]


def test_a_folder_that_a_command_renames_after_another_made_something_in_it_goes_back(agents):
    (agents.root / "d" / "in").mkdir(parents=True)
    (agents.root / "d" / "in" / "b.txt").write_text("by hand\n")
    was = tree(agents.root)
    agents.tell("UserPromptSubmit")
    for call, did in (
        ("first", lambda: agents.write("d/new.txt", "x")),
        ("second", lambda: (agents.root / "d").rename(agents.root / "e")),
    ):
        agents.now = time.time_ns()
        agents.tell("PreToolUse", "Bash", call=call, command="make")
        agents.tell("PermissionRequest", "Bash", call=call, command="make")
        agents.now = agents.write("clock", call, after=COARSE) + TICK + 5_000_000 - 1
        did()
        agents.tell("PostToolUse", "Bash", call=call, more={"duration_ms": 5}, command="make")
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert tree(agents.root) == was


@pytest.mark.parametrize("by", ["turn", "session", "turn after another"])
def test_where_a_turn_has_nothing_of_its_own_what_nobody_is_known_to_have_done_is_named(agents, by):
    if by == "turn after another":
        former: dict[str, Any] = {"session": "s0", "file_path": "made.txt"}
        agents.tell("UserPromptSubmit", session="s0")
        agents.tell("PreToolUse", "Write", **former)
        agents.write("made.txt", "x")
        agents.tell("PostToolUse", "Write", **former)
        agents.tell("Stop", session="s0")
    agents.tell("UserPromptSubmit")
    agents.ask("Bash", command="mv mine.txt moved.txt")
    agents.write("mine.txt", "by hand\n")
    agents.now = agents.write("clock", "x", after=COARSE) + TICK + 5_000_000 - 1
    (agents.root / "clock").unlink()
    (agents.root / "mine.txt").rename(agents.root / "moved.txt")
    more = {"duration_ms": 5}
    agents.tell("PostToolUse", "Bash", more=more, command="mv mine.txt moved.txt")
    with agents.workspace() as workspace:
        work = [
            one for one in workspace.log() if "moved.txt" in {x.path for x in one.changes.paths}
        ]
        chosen = {
            "turn": Selection(turn=NEWEST),
            "session": Selection(session=replace(PERSON, id="s1")),
        }[by.partition(" ")[0]]
        with pytest.raises(NoChangeError) as refused:
            workspace.undo_selected(PERSON, chosen)
        agent = Session("s1", Actor("agent", "claude-code"))
        with pytest.raises(NoChangeError) as of_agent:
            workspace.undo_selected(agent, Selection(session=agent))
    assert "moved.txt" not in of_agent.value.hint
    assert [one.tool for one in work] == [BY_NOBODY]
    said = f"Not taken back, since nobody knows whose it is: {work[0].id}, "
    assert said in refused.value.hint
    assert "moved.txt" in refused.value.hint
    assert f"`filepact undo {work[0].id}` does" in refused.value.hint
    earlier = "`filepact undo --turn 'turn of s0'` takes it back"
    assert (earlier in refused.value.hint) == (by == "turn after another")


def test_what_a_person_saves_in_a_turn_is_named_by_its_undo_whatever_another_session_has_done(
    agents,
):
    for session in ("s1", "s2"):
        agents.tell("UserPromptSubmit", session=session)
        given: dict[str, Any] = {"session": session, "file_path": f"by-{session}.txt"}
        agents.tell("PreToolUse", "Write", **given)
        agents.write(f"by-{session}.txt", "x")
        agents.tell("PostToolUse", "Write", **given)
    agents.tell("PreToolUse", "Read", file_path="a.txt")
    agents.write("by-hand.txt", "x")
    agents.tell("PostToolUse", "Read", file_path="a.txt")
    next_turn = {"prompt_id": "next"}
    agents.tell("UserPromptSubmit", more=next_turn)
    agents.tell("PreToolUse", "Write", file_path="next.txt", more=next_turn)
    agents.write("next.txt", "x")
    agents.write("later-by-hand.txt", "x")
    agents.tell("PostToolUse", "Write", file_path="next.txt", more=next_turn)
    agents.tell("Stop")
    with agents.workspace() as workspace:
        receipt = workspace.undo_selected(PERSON, Selection(turn="turn of s1"))
    beside = " ".join(receipt.notes)
    assert "by-hand.txt" in beside
    assert "later-by-hand.txt" not in beside
    assert not (agents.root / "by-s1.txt").exists()
    assert (agents.root / "by-s2.txt").exists()


def test_a_folder_with_a_file_that_a_call_names_is_moved_by_who_moves_it(agents):
    for name in ("d/a.txt", "d/in/b.txt", "d/deep/in/c.txt"):
        (agents.root / name).parent.mkdir(parents=True, exist_ok=True)
        (agents.root / name).write_text("by hand\n")
    (agents.root / "d" / "empty").mkdir()
    given = {"file_path": str(agents.root / "d" / "a.txt")}
    agents.tell("UserPromptSubmit")
    agents.tell("PreToolUse", "Edit", **given)
    (agents.root / "d").rename(agents.root / "mine")
    agents.tell("PostToolUse", "Edit", **given)
    (_, *found) = agents.log()
    assert {one for one, _ in found} == {BY_NOBODY}
    assert set().union(*(names for _, names in found)) >= {
        "d/a.txt",
        "d/in",
        "d/deep",
        "d/empty",
        "mine/a.txt",
        "mine/empty",
    }
    with agents.workspace() as workspace, pytest.raises(NoChangeError) as refused:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert "nobody knows whose it is" in refused.value.hint
    assert (agents.root / "mine" / "in" / "b.txt").exists()
    assert not (agents.root / "d").exists()


def test_a_folder_that_a_person_takes_out_of_one_before_a_command_removes_that_is_renamed_by_them(
    agents,
):
    for name in ("d/a.txt", "d/in/b.txt"):
        (agents.root / name).parent.mkdir(exist_ok=True)
        (agents.root / name).write_text("by hand\n")
    agents.ask("Bash", command="rm -r d")
    (agents.root / "d" / "in").rename(agents.root / "mine")
    agents.now = agents.write("made.txt", "by the command\n") + TICK + 5_000_000 - 1
    (agents.root / "d" / "a.txt").unlink()
    (agents.root / "d").rmdir()
    agents.tell("PostToolUse", "Bash", command="rm -r d", more={"duration_ms": 5})
    assert agents.log()[1] == ("Bash", {"made.txt", "d", "d/a.txt"})
    assert {tool for tool, _ in agents.log()[2:]} == {BY_NOBODY}
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert [one.name for one in (agents.root / "d").iterdir()] == ["a.txt"]
    assert (agents.root / "mine" / "b.txt").exists()


def test_a_command_that_points_a_link_elsewhere_has_made_nothing_of_what_lies_there(tmp_path):
    root = tmp_path / "root"
    for name in ("one", "two"):
        (root / name).mkdir(parents=True)
    (root / "link").symlink_to("one")
    (root / ".gitignore").write_text("*.log\n")
    (root / "one" / "mine.log").write_text("mine\n")
    agents = Agents(root, tmp_path / "state")
    with closing(agents.daemon):
        agents.tell("SessionStart")
        agents.tell("PreToolUse", "Bash", command="ln -sfn two link")
        (root / "new").symlink_to("two")
        (root / "new").replace(root / "link")
        agents.tell("PostToolUse", "Bash", command="ln -sfn two link")
    assert agents.log() == [("Bash", {"link"})]


@pytest.mark.parametrize("asked", [True, False])
def test_after_an_interruption_only_what_the_command_names_is_its_own(agents, asked):
    given = {"command": "echo x > named.txt; make"}
    agents.tell("PreToolUse", "Bash", **given)
    if asked:
        agents.tell("PermissionRequest", "Bash", **given)
    agents.write("named.txt", "x\n")
    agents.write("mine.txt", "an hour of work\n")
    agents.tell("UserPromptSubmit")
    assert agents.log() == [("Bash", {"named.txt"}), (BY_NOBODY, {"mine.txt"})]


def test_while_one_call_is_asked_about_another_has_only_its_own(agents):
    agents.tell("PreToolUse", "Bash", "t1", command="make")
    agents.tell("PermissionRequest", "Bash", command="make")
    agents.write("mine.txt", "an hour of work\n")
    agents.tell("PreToolUse", "Bash", "t2", command="true", more={"agent_id": "a1"})
    agents.tell("PostToolUse", "Bash", "t2", command="true", more={"agent_id": "a1"})
    assert agents.log() == [(BY_NOBODY, {"mine.txt"})]


@LINUX
@pytest.mark.parametrize("agents", ["notices", "no notices"], indirect=True)
def test_what_a_person_saves_while_they_are_asked_is_known_before_the_command_removes_it(agents):
    (agents.root / "d").mkdir()
    above = {"above": ((7, "7"), *chain(os.getpid()))}
    agents.tell("UserPromptSubmit", above=((6, "6"), *chain(os.getpid())))
    given = {"command": "rm -r d"}
    agents.tell("PreToolUse", "Bash", **above, **given)
    with program():  # the hook that tells of it
        agents.tell("PermissionRequest", "Bash", **above, **given)
    agents.now = agents.write("d/mine.txt", "an hour of work\n")
    assert agents.daemon.poll()
    agents.now = agents.write(
        "just-now.txt", "perhaps by a command that was too quick to be seen\n"
    )
    agents.now += 4 * TICK
    assert agents.daemon.poll()
    assert agents.log()[1:] == []
    agents.now = (agents.root / "d/mine.txt").stat().st_ctime_ns + 5 * TICK
    assert agents.daemon.poll()
    assert agents.log()[1:] == [(BY_NOBODY, {"d/mine.txt"})]
    (agents.root / "d/mine.txt").unlink()
    (agents.root / "d").rmdir()
    agents.now += TICK
    agents.tell("PostToolUse", "Bash", **above, more={"duration_ms": 10_000}, **given)
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert (agents.root / "d/mine.txt").read_text() == "an hour of work\n"


@LINUX
@pytest.mark.parametrize("agents", ["notices", "no notices"], indirect=True)
@pytest.mark.parametrize("timed", [True, False])
def test_what_a_person_saves_while_they_are_asked_about_an_edit_is_known_before_it(agents, timed):
    (agents.root / "b.txt").write_text("1\n2\n3\n")
    agents.tell("UserPromptSubmit")
    agents.ask("Edit", file_path="b.txt")
    agents.daemon.poll()
    (agents.root / "b.txt").write_text("1\n2\nby hand\n")
    agents.now = (agents.root / "b.txt").stat().st_ctime_ns
    agents.daemon.poll()
    assert agents.log()[1:] == []
    agents.now += 5 * TICK
    agents.daemon.poll()
    assert agents.log()[1:] == [(BY_NOBODY, {"b.txt"})]
    agents.now = agents.write("b.txt", "one\n2\nby hand\n")
    more = {"duration_ms": 5} if timed else {}
    agents.tell("PostToolUse", "Edit", more=more, file_path="b.txt")
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert (agents.root / "b.txt").read_text() == "1\n2\nby hand\n"


def test_of_a_first_turn_in_which_nothing_changed_the_agent_is_named(agents):
    agents.tell("UserPromptSubmit")
    with agents.workspace() as workspace, pytest.raises(NoChangeError) as refused:
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert "claude-code" in refused.value.message


@pytest.mark.parametrize("knew", [False, True])
def test_what_a_call_did_in_a_folder_of_which_nothing_was_known_is_told_as_not_recorded(
    tmp_path, knew
):
    """As when a command has moved the folder: its end is told from where it is now."""
    root = tmp_path / "moved"
    root.mkdir()
    (root / "a.txt").write_text("by the command\n")
    with closing(HookDaemon((str(root),), str(tmp_path / "state"))) as daemon:

        def tell(name: str, tool: str = "Bash") -> str:
            facts = {"session_id": "s", "hook_event_name": name, "cwd": str(root)}
            given = {"tool_name": tool, "tool_use_id": "t", "tool_input": {"command": "make"}}
            return daemon.answer("claude", json.dumps(facts | given).encode()).out

        if knew:
            tell("UserPromptSubmit")
        assert ("is not recorded" in tell("PostToolUse")) != knew
        assert tell("PostToolUse") == ""


@pytest.mark.parametrize("hours", [-1, 24])
@pytest.mark.parametrize(
    "says",
    [
        pytest.param(True, id="the host says how long"),
        pytest.param(False, id="it does not", marks=PROCESSES),
    ],
)
def test_if_the_clock_is_set_while_a_person_is_asked_what_they_save_stays_theirs(
    agents, hours, says
):
    above = {} if says else {"above": ((7, "7"), *chain(os.getpid()))}
    agents.tell("UserPromptSubmit", **({} if says else {"above": ((6, "6"), above["above"][1])}))
    given = {"command": "make > made.txt"}
    agents.tell("PreToolUse", "Bash", **above, **given)
    with program():  # the hook that tells of it
        agents.tell("PermissionRequest", "Bash", **above, **given)
    saved = agents.write("mine.txt", "an hour of work\n")
    agents.write("made.txt", "by the command\n")
    # What was saved has the time of the old clock: by the new one, after the command began, or long before.
    agents.now, agents.drift = saved + hours * 3_600 * TICK, hours * 3_600 * TICK
    agents.daemon.poll()
    more = {"duration_ms": 5} if says else {}
    told = {"said": "clock"} if hours < 0 else {}
    agents.tell("PostToolUse", "Bash", **above, **told, more=more, **given)
    assert agents.log() == [("Bash", {"made.txt"}), (BY_NOBODY, {"mine.txt"})]


def test_if_the_clock_is_set_while_nobody_is_asked_the_command_has_what_changed(agents):
    agents.tell("PreToolUse", "Bash", command="make")
    agents.now = agents.write("made.txt", "by the command\n") + 24 * 3_600 * TICK
    agents.drift = 24 * 3_600 * TICK
    agents.tell("PostToolUse", "Bash", command="make", more={"duration_ms": 5})
    assert agents.log() == [("Bash", {"made.txt"})]


# -- what goes on --------------------------------------------------------------------------


@LINUX
def test_what_a_background_command_names_is_its_own_until_its_process_ends(agents):
    with begun(
        agents, command="sleep 2; echo late > late.txt; rm a.txt", run_in_background=True
    ) as call:
        with program() as late:
            agents.tell("PostToolUse", "Bash", **call)
            agents.tell("Stop")
            assert agents.daemon.awaited == {*chain(os.getpid(), late.pid)}
            agents.write("mine.txt", "an hour of work\n")
            agents.tell("UserPromptSubmit", more={"prompt_id": "the next"})
            agents.write("late.txt", "late\n")
            (agents.root / "a.txt").unlink()
            (ended,) = chain(late.pid)
        agents.daemon.ended(ended)
        agents.write("late.txt", "by hand\n")
        agents.tell("SessionEnd")
    assert agents.log() == [
        (BY_NOBODY, {"mine.txt"}),
        ("Bash", {"a.txt", "late.txt"}),
        (BY_NOBODY, {"late.txt"}),
    ]
    with agents.workspace() as workspace:
        assert workspace.log()[1].session.turn == "turn of s1"


@LINUX
def test_what_a_background_command_has_written_when_the_turn_ends_goes_back_with_it(agents):
    with begun(agents, command="(sleep 2; echo x > a.txt; npm run dev) &") as call, program():
        agents.tell("PostToolUse", "Bash", **call)
        agents.write("a.txt", "x\n")
        agents.tell("Stop")
        assert agents.log() == [("Bash", {"a.txt"})]


@LINUX
def test_what_a_background_command_writes_by_one_name_of_a_file_is_its_own_by_all_names(agents):
    (agents.root / "other.txt").hardlink_to(agents.root / "a.txt")
    with begun(agents, command="(sleep 2; echo x >> a.txt; npm run dev) &") as call, program():
        agents.tell("PostToolUse", "Bash", **call)
        (agents.root / "a.txt").write_text("more\n")
        (agents.root / "mine.txt").hardlink_to(agents.root / "a.txt")
        agents.tell("Stop")
    assert agents.log()[1:] == [("Bash", {"a.txt", "other.txt"}), (BY_NOBODY, {"mine.txt"})]


@LINUX
@pytest.mark.parametrize("ends", ["PostToolUse", "killed"])
def test_what_two_calls_name_is_not_that_ones_which_only_goes_on_in_the_background(agents, ends):
    with begun(agents, command="(sleep 2; echo x > a.txt; npm run dev) &") as call, program():
        agents.tell("PostToolUse", "Bash", **call)
        then = {"call": "t2", "above": call["above"], "more": {"prompt_id": "the next"}}
        agents.tell("UserPromptSubmit", **{**then, "above": chain(os.getppid(), os.getpid())})
        agents.tell("PreToolUse", "Bash", command="sed -i s/1/2/ a.txt", **then)
        agents.write("a.txt", "y\n")
        if ends == "killed":
            agents.daemon.ended(call["above"][1])
        else:
            agents.tell(ends, "Bash", command="sed -i s/1/2/ a.txt", **then)
        with agents.workspace() as workspace:
            assert [one.session.turn for one in workspace.log()] == ["the next"]


@LINUX
@pytest.mark.parametrize(
    ("words", "turns"), [("git checkout -q -- .", {"the next"}), ("make", {"turn of s1"})]
)
def test_git_has_what_it_changes_also_if_a_background_command_names_it(agents, words, turns):
    with begun(agents, command="(sleep 2; echo x > a.txt; npm run dev) &") as call, program():
        agents.tell("PostToolUse", "Bash", **call)
        then = {"call": "t2", "above": call["above"], "more": {"prompt_id": "the next"}}
        agents.tell("UserPromptSubmit", **{**then, "above": chain(os.getppid(), os.getpid())})
        agents.tell("PreToolUse", "Bash", command=words, **then)
        agents.write("a.txt", "y\n")
        agents.tell("PostToolUse", "Bash", command=words, **then)
        with agents.workspace() as workspace:
            assert {one.session.turn for one in workspace.log()} == turns


@LINUX
@pytest.mark.parametrize(
    ("words", "whose"),
    [("mv a.txt b.txt", "Bash"), ("git mv a.txt b.txt", "Bash"), ("make", BY_NOBODY)],
)
def test_a_file_that_a_background_command_names_is_moved_by_who_names_both_ends(
    agents, words, whose
):
    """Of a program that names neither, and is killed, nobody knows; it is in the journal then, to be named."""
    with begun(agents, command="(sleep 2; echo x >> a.txt; npm run dev) &") as call, program():
        agents.tell("PostToolUse", "Bash", **call)
        then = {"call": "t2", "above": call["above"], "more": {"prompt_id": "the next"}}
        agents.tell("UserPromptSubmit", **{**then, "above": chain(os.getppid(), os.getpid())})
        agents.tell("PreToolUse", "Bash", command=words, **then)
        (agents.root / "a.txt").rename(agents.root / "b.txt")
        agents.daemon.ended(call["above"][1])
        assert agents.log() == [(whose, {"a.txt", "b.txt"})]


@LINUX
def test_what_a_person_makes_where_a_background_command_has_moved_a_folder_from_is_theirs(agents):
    (agents.root / "d").mkdir()
    agents.write("d/b.txt", "b\n")
    with begun(agents, command="mv d e; npm run dev &") as call, program():
        (agents.root / "d").rename(agents.root / "e")
        agents.tell("PostToolUse", "Bash", **call)
        (agents.root / "d").mkdir()
        agents.write("d/mine.txt", "by hand\n")
        agents.tell("Stop")
    bash, mine = agents.log()[1:]
    assert bash == ("Bash", {"d", "d/b.txt", "e", "e/b.txt"})
    assert mine == (BY_NOBODY, {"d/mine.txt"})


@LINUX
@pytest.mark.parametrize("words", ["mv d e", "rm -rf d", "chmod -R u+x d"])
def test_what_a_person_makes_where_a_background_command_found_nothing_to_remove_is_theirs(
    agents, words
):
    with begun(agents, command=f"{words}; npm run dev &") as call, program():
        agents.tell("PostToolUse", "Bash", **call)
        (agents.root / "d").mkdir()
        agents.write("d/mine.txt", "by hand\n")
        agents.tell("Stop")
    assert agents.log() == [(BY_NOBODY, {"d/mine.txt"})]


@LINUX
@pytest.mark.parametrize("words", ["mv e d", "cp -r e d"])
@pytest.mark.parametrize("there", [False, True])
def test_what_a_person_saves_in_a_folder_that_a_background_command_names_is_theirs(
    agents, words, there
):
    if there:
        (agents.root / "d").mkdir()
    with begun(agents, command=f"{words}; npm run dev &") as call, program():
        agents.tell("PostToolUse", "Bash", **call)
        (agents.root / "d").mkdir(exist_ok=True)
        agents.write("d/mine.txt", "by hand\n")
        agents.tell("Stop")
    assert agents.log()[-1] == (BY_NOBODY, {"d/mine.txt"})


@LINUX
def test_what_a_person_saved_while_asked_about_a_background_command_that_names_it_is_theirs(agents):
    with begun(agents, command="git rm a.txt; npm run dev &") as call:
        agents.tell("PermissionRequest", "Bash", **call)
        agents.write("a.txt", "by hand\n")
        with program():
            agents.now = agents.write("made.txt", "made\n") + TICK + 5_000_000 - 1
            agents.tell("PostToolUse", "Bash", more={"duration_ms": 5}, **call)
            agents.tell("Stop")
    assert agents.log() == [("Bash", {"made.txt"}), (BY_NOBODY, {"a.txt"})]


@LINUX
@pytest.mark.parametrize(
    ("command", "late"),
    [
        ("cp a.txt b.txt; (sleep 2; echo x > late.txt) &", "late.txt"),
        (
            "cd d; rm -f ../b.txt; nohup sh -c 'echo x > late.txt' > log.txt 2>&1 & true",
            "d/late.txt",
        ),
        ("touch b.txt && { sleep 2; echo x | tee late.txt; } &> /dev/null & disown", "late.txt"),
    ],
)
def test_of_a_command_in_the_background_what_is_over_has_nothing_any_more(agents, command, late):
    (agents.root / "d").mkdir()
    agents.write("b.txt", "b\n")
    foreground = not command.startswith("touch")
    with begun(agents, command=command) as call, program():
        agents.tell("PostToolUse", "Bash", **call)
        agents.write(late, "x\n")
        agents.write("b.txt", "by hand\n")
        agents.tell("Stop")
    told = agents.log()[1:]
    if foreground:
        assert told == [("Bash", {late}), (BY_NOBODY, {"b.txt"})]
    else:
        assert told == [("Bash", {late, "b.txt"})]


@LINUX
@pytest.mark.parametrize(
    ("start", "its"),
    [
        ("sh -c", True),
        ("CLAUDECODE=1 setsid --wait sh -c", True),
        ("setsid --wait sh -c", False),
        ("CODEX_CI=1 setsid --wait sh -c", False),
        ("CLAUDECODE=1 sh -c", True),
    ],
)
def test_what_a_shell_has_left_in_the_background_is_of_its_call_if_that_is_certain(
    agents, start, its
):
    """A shell that ends leaves what it has started with `&` to a process above the agent's program."""
    given = {"command": "(sleep 2; echo late > late.txt) & rm a.txt"}
    new = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
    with (
        subprocess.Popen(["sh"], **new) as host,
        program() as hook,
    ):
        above = chain(hook.pid, host.pid)
        agents.tell("UserPromptSubmit", above=chain(os.getppid(), host.pid))
        agents.tell("PreToolUse", "Bash", above=above, **given)
        background = r"sh -c 'echo \$\$; exec sleep 60' & true"
        host.stdin.write(f'{start} "{background}"\n'.encode())
        host.stdin.flush()
        late = int(host.stdout.readline())
        try:
            until(lambda: late not in {one.process for one in descendants(host.pid)})
            (ended,) = chain(late)
            (agents.root / "a.txt").unlink()
            agents.tell("PostToolUse", "Bash", above=above, **given)
            assert agents.daemon.awaited == ({(chain(host.pid)[0]), ended} if its else set())
            agents.write("late.txt", "late\n")
            (agents.root / "a.txt").write_text("by hand\n")
            agents.tell("Stop")
        finally:
            os.kill(late, signal.SIGKILL)
    log = agents.log()
    assert log[0] == ("Bash", {"a.txt"})
    assert (("Bash", {"late.txt"}) in log) == its


@LINUX
def test_a_file_that_a_background_command_has_written_once_may_be_a_persons_again(agents):
    with begun(agents, command="echo x > a.txt; npm run dev") as call, program():
        agents.write("a.txt", "x\n")
        agents.tell("PostToolUse", "Bash", **call)
        agents.write("a.txt", "by hand\n")
        agents.tell("Stop")
    assert agents.log() == [("Bash", {"a.txt"}), (BY_NOBODY, {"a.txt"})]


@LINUX
def test_a_file_that_a_background_command_has_made_anew_as_it_was_may_be_a_persons_again(agents):
    with (
        begun(agents, command="git rm a.txt; git checkout HEAD a.txt; npm run dev &") as call,
        program(),
    ):
        (agents.root / "a.txt").unlink()
        agents.write("a.txt", "one\n")
        agents.tell("PostToolUse", "Bash", **call)
        agents.write("a.txt", "by hand\n")
        agents.tell("Stop")
    assert agents.log() == [(BY_NOBODY, {"a.txt"})]


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_what_a_link_that_a_background_command_has_made_leads_to_is_not_its_own(agents):
    (agents.root / "mine").write_text("one\n")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as hook:
        above = chain(hook.pid, os.getpid())
        agents.tell("UserPromptSubmit", above=chain(os.getppid(), os.getpid()))
        given = {"command": "ln -sf mine a.txt; (sleep 9; echo late >> a.txt) &"}
        agents.tell("PreToolUse", "Bash", above=above, **given)
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE):
            (agents.root / "a.txt").unlink()
            (agents.root / "a.txt").symlink_to("mine")
            agents.tell("PostToolUse", "Bash", above=above, **given)
            agents.write("mine", "by hand\n")
            agents.tell("Stop")
    assert agents.log()[1:] == [("Bash", {"a.txt"}), (BY_NOBODY, {"mine"})]


# -- several at once -----------------------------------------------------------------------


def test_of_two_agents_at_once_each_has_what_its_command_names(agents):
    one = {"command": "echo 1 > c1.txt; rm -r old; mv *.md notes/"}
    two = {"command": "cd sub && python -c \"open('c2.txt', 'w').write('2')\""}
    for name in ("old", "sub", "notes"):
        (agents.root / name).mkdir()
    for name in ("old/x.txt", "r.md"):
        agents.write(name, "x\n")
    agents.tell("UserPromptSubmit")
    agents.tell("PreToolUse", "Bash", **one)
    agents.tell("PreToolUse", "Bash", session="s2", agent="codex", **two)
    agents.write("c1.txt", "1\n")
    agents.write("sub/c2.txt", "2\n")
    (agents.root / "old" / "x.txt").unlink()
    (agents.root / "r.md").rename(agents.root / "notes" / "r.md")
    agents.write("somebodys.txt", "3\n")
    agents.tell("PostToolUse", "Bash", session="s2", agent="codex", **two)
    agents.tell("PostToolUse", "Bash", **one)
    agents.write("later.txt", "mine\n")
    agents.tell("Stop")
    assert agents.log()[1:] == [
        ("Bash", {"sub/c2.txt"}),
        (BY_SEVERAL, {"somebodys.txt"}),
        ("Bash", {"c1.txt", "old/x.txt", "r.md", "notes/r.md"}),
        (BY_NOBODY, {"later.txt"}),
    ]
    with agents.workspace() as workspace:
        assert [str(one.session.actor) for one in workspace.log()[:4]] == [
            *("unknown", "claude-code", "claude-code or codex", "codex")
        ]
        # What may be of either goes back if it is named, and not with all that one of them did.
        for name in ("claude-code", "codex"):
            workspace.undo_selected(PERSON, Selection(agent=name))
        with pytest.raises(NoChangeError):
            workspace.undo(PERSON)
        assert (agents.root / "somebodys.txt").exists()
        workspace.undo(PERSON, next(one.id for one in workspace.log() if one.tool == BY_SEVERAL))
    assert not (agents.root / "somebodys.txt").exists()


def test_a_file_that_is_moved_after_another_agent_has_written_it_anew_goes_back_from_its_new_name(
    agents,
):
    """The look at the other's end has seen it, and left it to who names it."""
    one, two = {"command": "mv a.txt new.txt"}, {"command": "make"}
    agents.ask("Bash", **one)
    agents.tell("PreToolUse", "Bash", session="s2", agent="codex", **two)
    agents.write("beside", "ONE\n")
    (agents.root / "beside").replace(agents.root / "a.txt")  # as `sed -i` does
    # By the times of files nobody can tell otherwise that it was there before the look.
    written = (agents.root / "a.txt").stat().st_ctime_ns
    until(lambda: time.time_ns() > written + TICK // 20)
    agents.tell("PostToolUse", "Bash", session="s2", agent="codex", **two)
    (agents.root / "a.txt").rename(agents.root / "new.txt")
    agents.tell("PostToolUse", "Bash", **one)
    assert agents.log() == [("Bash", {"a.txt", "new.txt"})]
    with agents.workspace() as workspace:
        workspace.undo_selected(PERSON, Selection(agent="claude-code"))
    assert [(one.name, one.read_text()) for one in agents.root.iterdir()] == [("a.txt", "one\n")]


def test_two_calls_for_one_request_are_not_two_agents(agents):
    agents.tell("PreToolUse", "Bash", "t1", command="make")
    agents.tell("PreToolUse", "Bash", "t2", command="make", more={"agent_id": "a1"})
    agents.write("made.txt", "x\n")
    agents.tell("PostToolUse", "Bash", "t2", command="make", more={"agent_id": "a1"})
    agents.tell("PostToolUse", "Bash", "t1", command="make")
    assert agents.log() == [("Bash", {"made.txt"})]


def test_what_a_sub_agent_does_is_of_the_turn_of_the_agent_that_has_started_it(agents):
    above = ((7, "70"), (3, "30"))
    agents.tell("UserPromptSubmit", agent="codex", above=((6, "60"), (3, "30")))
    agents.tell("PreToolUse", "spawn_agent", "t1", agent="codex", above=above, prompt="x")
    inner = {"session": "s2", "agent": "codex"}
    for call, facts in (("i1", {}), ("i2", {"more": {"agent_id": "a1", "turn_id": "its own"}})):
        which = inner if call == "i1" else {"agent": "codex"}
        agents.tell("PreToolUse", "Bash", call, above=above, command="make", **which, **facts)
        agents.write(f"{call}.txt", "x\n")
        agents.tell("PostToolUse", "Bash", call, above=above, command="make", **which, **facts)
        if call == "i1":
            agents.tell("Stop", above=above, **inner)
    agents.tell("PostToolUse", "spawn_agent", "t1", agent="codex", above=above, prompt="x")
    with agents.workspace() as workspace:
        assert {one.session.turn for one in workspace.log()} == {"turn of s1"}
        workspace.undo_selected(PERSON, Selection(turn=NEWEST))
    assert [one.name for one in agents.root.iterdir()] == ["a.txt"]


# -- an end that nobody tells of -----------------------------------------------------------


@LINUX
@pytest.mark.parametrize("then", ["Stop", "UserPromptSubmit", "SessionEnd", "another call"])
def test_what_a_person_saves_after_a_command_whose_end_was_never_told_is_theirs(agents, then):
    """The hook that comes after it was killed; it was seen to run, and then not any more."""
    agents.tell("UserPromptSubmit", above=((6, "6"), *chain(os.getpid())))
    above = {"above": ((7, "7"), *chain(os.getpid()))}
    agents.tell("PreToolUse", "Bash", **above, command="make > named.txt")
    later_tick()
    with program() as command:
        until(lambda: (command.pid, ("cat",)) in running(os.getpid()))
        agents.daemon.poll()
        agents.write("named.txt", "by the command\n")
        agents.now = agents.write("made.txt", "by the command\n")
    agents.daemon.poll()
    agents.now -= TICK  # so that a second has passed since, by the times of files
    agents.daemon.poll()
    before = agents.daemon._calls["s1", "t1"]
    agents.daemon._calls["s1", "t1"] = replace(before, gone=agents.now + TICK)
    agents.write("mine.txt", "an hour of work\n")
    if then == "another call":
        agents.tell("PreToolUse", "Read", "t2", **above, file_path="a.txt")
    else:
        agents.tell(then, **above)
    whose = {name: tool for tool, names in agents.log() for name in names}
    assert whose == {"named.txt": "Bash", "made.txt": "Bash", "mine.txt": BY_NOBODY}


@LINUX
def test_a_command_of_which_nothing_is_seen_has_all_when_its_end_is_told(agents):
    agents.tell("UserPromptSubmit", above=((6, "6"), *chain(os.getpid())))
    above = {"above": ((7, "7"), *chain(os.getpid()))}
    agents.tell("PreToolUse", "Bash", **above, command="make")
    agents.daemon.poll()
    agents.write("made.txt", "by the command\n")
    agents.tell("PostToolUse", "Bash", **above, command="make")
    assert agents.log() == [("Bash", {"made.txt"})]
