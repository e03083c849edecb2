"""The table of scenarios in `docs/explanation/undo.md`: the columns that can be played are played."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filepact_hooks.service import HookDaemon
from tests.faces.command_line import command

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("git") is None, reason="needs a shell, modes and Git"
)

PAGE = Path(__file__).parents[2] / "docs/explanation/undo.md"
HOST = (1, "the agent's program")
LINES = "1\n2\n3\n4\n5\n"
Tree = dict[str, tuple[str, str | bytes | None, int]]


class Filepact:
    """Claude Code's hooks, answered by filepact."""

    def __init__(self, root: Path, state: Path) -> None:
        self.root, self.state = root, state
        self.daemon = HookDaemon((str(root),), str(state))
        self.calls = 0

    def tell(self, name: str, tool: str = "", **given: str) -> None:
        facts: dict[str, Any] = {"session_id": "s", "prompt_id": "t", "hook_event_name": name}
        if tool:
            facts |= {"tool_name": tool, "tool_input": given, "tool_use_id": str(self.calls)}
        self.daemon.answer("claude", json.dumps(facts).encode(), above=(HOST,))

    def begin(self) -> None:
        self.tell("SessionStart")
        self.tell("UserPromptSubmit")

    def call(self, tool: str, act: Callable[[], object], **given: str) -> None:
        self.calls += 1
        self.tell("PreToolUse", tool, **given)
        act()
        self.tell("PostToolUse", tool, **given)

    def undo(self) -> None:
        self.tell("Stop")
        self.daemon.close()
        self.answer("undo", "--turn")

    def redo(self) -> bool:
        self.answer("redo")
        return True

    def answer(self, *words: str) -> None:
        where = ("--root", str(self.root), "--state", str(self.state))
        said = command(*words, "--unattended", *where)
        assert said.code == 0, said


class ShadowGit:
    """A second repository over the same folder, as several agents keep one: `add -A`, `reset`, `clean`."""

    def __init__(self, root: Path, state: Path) -> None:
        self.root = root
        self.git = ["git", f"--git-dir={state}", f"--work-tree={root}"]
        subprocess.run(["git", "init", "-q", "--bare", str(state)], check=True)

    def run(self, *words: str) -> None:
        who = ("-c", "user.name=x", "-c", "user.email=x@localhost")
        subprocess.run([*self.git, *who, *words], cwd=self.root, check=True)

    def begin(self) -> None:
        self.run("add", "-A")
        self.run("commit", "-qm", "before", "--allow-empty")

    def call(self, _tool: str, act: Callable[[], object], **_given: str) -> None:
        act()

    def undo(self) -> None:
        self.run("reset", "-q", "--hard")
        self.run("clean", "-fdq")

    def redo(self) -> bool:
        return False


Way = Filepact | ShadowGit


def tree(root: Path) -> Tree:
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path), 0)
        elif path.is_dir():
            found[name] = ("folder", None, 0)
        else:
            found[name] = ("file", path.read_bytes(), status.st_mode & 0o777)
    return found


def test_a_turn_in_which_nothing_was_recorded_is_not_confused_with_the_one_before(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    way = Filepact(root, tmp_path / "state")
    way.begin()
    shell(way, "echo 1 > first")
    way.tell("UserPromptSubmit")
    shell(way, "true")
    way.tell("Stop")
    way.daemon.close()
    where = ("--root", str(root), "--state", str(way.state), "--unattended", "--json")
    error = json.loads(command("undo", "--turn", *where).out)["error"]
    assert error["code"] == "NO_CHANGE"
    assert (root / "first").exists()
    assert "filepact undo --turn t`" in error["hint"]
    assert command("undo", "--turn", "t", *where).code == 0
    assert not (root / "first").exists()


def shell(way: Way, line: str) -> None:
    way.call(
        "Bash",
        lambda: subprocess.run(["sh", "-ec", line], cwd=way.root, check=True),
        command=line,
    )


def edit(way: Way) -> None:
    path = way.root / "a.txt"
    way.call("Edit", lambda: path.write_text(LINES.replace("2", "TWO")), file_path=str(path))


def back(way: Way, act: Callable[[Way], object]) -> bool:
    """Whether everything is as before when a turn was taken back."""
    start = tree(way.root)
    way.begin()
    act(way)
    assert tree(way.root) != start
    way.undo()
    return tree(way.root) == start


def keeps_a_note(way: Way) -> bool:
    way.begin()
    edit(way)
    with (way.root / "a.txt").open("a") as file:
        file.write("my note\n")
    way.undo()
    return (way.root / "a.txt").read_text() == f"{LINES}my note\n"


def removes_created_files(way: Way) -> bool:
    def create(way: Way) -> None:
        path = way.root / "n" / "new.py"

        def act() -> None:
            path.parent.mkdir()
            path.write_text("x\n")

        way.call("Write", act, file_path=str(path))

    return back(way, create)


def redoes(way: Way) -> bool:
    way.begin()
    edit(way)
    after = tree(way.root)
    way.undo()
    return way.redo() and tree(way.root) == after


def outlives_the_agent(way: Way) -> bool:
    """The agent is killed while its command is at work; what it has changed until then goes back."""
    start = tree(way.root)
    way.begin()

    def act() -> None:
        line = "rm -r d; echo hi > a.txt; echo; read x"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(["sh", "-c", line], cwd=way.root, **pipes) as agent:  # type: ignore[call-overload]
            agent.stdout.readline()
            agent.send_signal(signal.SIGKILL)

    if isinstance(way, Filepact):
        way.tell("PreToolUse", "Bash", command="rm -r d; echo hi > a.txt")
        act()
        way.daemon.ended(HOST)
    else:
        act()
    way.undo()
    return tree(way.root) == start


def keeps_ignored_files(way: Way) -> bool:
    (way.root / ".gitignore").write_text("data/\n")
    (way.root / "data").mkdir()
    (way.root / "data" / "mine").write_text("mine\n")
    return back(way, lambda way: shell(way, "echo dist/ > .gitignore"))


def keeps_what_was_saved_meanwhile(way: Way) -> bool:
    way.begin()
    edit(way)
    mine = way.root / "mine.txt"
    way.call("AskUserQuestion", lambda: mine.write_text("an hour of work\n"))
    way.undo()
    return mine.exists() and (way.root / "a.txt").read_text() == LINES


KINDS = "ln -sfn r2 current; rm a.txt; mkdir a.txt; echo k > a.txt/k; rm -r d; echo f > d"
SCENARIOS: dict[str, Callable[[Way], bool]] = {
    "keeps a line that you add afterwards to the same file": keeps_a_note,
    "removes files that the agent created": removes_created_files,
    "brings back a folder that a command removed": lambda way: back(
        way, lambda way: shell(way, "rm -r d")
    ),
    "takes back what a command changed and created": lambda way: back(
        way, lambda way: shell(way, "echo hi > a.txt; echo z > z")
    ),
    "takes back a move": lambda way: back(way, lambda way: shell(way, "mv a.txt moved.txt")),
    "takes back a change of permissions": lambda way: back(
        way, lambda way: shell(way, "chmod 700 t.sh")
    ),
    "can be undone itself": redoes,
    "works after the agent was killed in the middle of a command": outlives_the_agent,
    "takes back a new target of a link, a file that became a folder, a folder that became a file": (
        lambda way: back(way, lambda way: shell(way, KINDS))
    ),
    "keeps your ignored files if the agent changed what is ignored": keeps_ignored_files,
    "keeps a file that you saved while the agent waited for your answer": (
        keeps_what_was_saved_meanwhile
    ),
}
WAYS: dict[str, type[Filepact | ShadowGit]] = {"filepact": Filepact, "shadow Git": ShadowGit}


def table() -> tuple[list[str], dict[str, list[str]]]:
    """The head and the rows of the table, each by what it says first."""
    section = PAGE.read_text().partition("## Beside other ways")[2]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return rows[0][1:], {row[0]: row[1:] for row in rows[2:]}


def test_the_table_has_these_scenarios() -> None:
    assert list(table()[1]) == list(SCENARIOS)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [one for one in os.environ if one.startswith("GIT_")]:
        monkeypatch.delenv(name)
    root = tmp_path / "root"
    for name in ("d/e", "r1", "r2"):
        (root / name).mkdir(parents=True)
    for name in ("d/x", "d/e/y", "t.sh", "r1/1", "r2/2"):
        (root / name).write_text(f"{name}\n")
    (root / "a.txt").write_text(LINES)
    (root / "t.sh").chmod(0o750)
    (root / "current").symlink_to("r1")
    return tmp_path


@pytest.mark.parametrize("who", WAYS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_the_table_says_is_true(place: Path, scenario: str, who: str) -> None:
    head, rows = table()
    said = rows[scenario][head.index(who)]
    way = WAYS[who](place / "root", place / "state")
    try:
        done = SCENARIOS[scenario](way)
    finally:
        if isinstance(way, Filepact):
            with suppress(Exception), closing(way.daemon):
                pass
    assert said.startswith("yes" if done else "no"), said
