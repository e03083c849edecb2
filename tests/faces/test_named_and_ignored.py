"""What an agent's call names comes back, whatever ignore files say of it, and what cannot is said beforehand."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_workspace
from filepact.config.settings import Settings
from filepact.domain.operation import BY_NOBODY, Actor, Session
from filepact.errors import FilepactError
from filepact.faces.hooks.service import HookDaemon
from filepact.text.shell_command import read_command
from filepact.workspace import external, file_states
from filepact.workspace.external import KnownFileLimits
from filepact.workspace.file_snapshot import unwatched_in
from tests.faces import command_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from filepact.domain.operation import Operation
    from filepact.workspace.kept_files import KnownFiles

PERSON = Session("p", Actor("person", "p"))


class Agent:
    """An agent's program that tells of its calls, and makes them."""

    def __init__(self, root: Path, state: Path) -> None:
        self.root, self.state = root, str(state)
        self.daemon = HookDaemon((str(root),), self.state)
        self.calls = 0
        self.told_after = ""

    def tell(self, event: str, tool: str, given: dict[str, Any], *, heard: int = 0) -> str:
        facts = {"session_id": "s1", "prompt_id": "turn-1", "hook_event_name": event}
        facts |= {"tool_name": tool, "tool_use_id": f"t{self.calls}", "tool_input": given}
        answer = self.daemon.answer("claude", json.dumps(facts).encode(), heard=heard)
        return str(json.loads(answer.out or "{}").get("systemMessage", ""))

    def bash(self, command: str) -> str:
        """Run a command; what the person was told before it."""
        self.calls += 1
        told = self.tell("PreToolUse", "Bash", {"command": command})
        subprocess.run(["bash", "-c", command], cwd=self.root, check=True, capture_output=True)
        self.told_after = self.tell("PostToolUse", "Bash", {"command": command})
        return told

    def write(self, name: str, text: str) -> None:
        self.calls += 1
        given = {"file_path": str(self.root / name), "content": text}
        self.tell("PreToolUse", "Write", given)
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)
        self.tell("PostToolUse", "Write", given)

    @property
    def files(self) -> KnownFiles:
        return self.daemon._desk.workspace.external._files

    def log(self) -> list[Operation]:
        """Oldest first."""
        with open_workspace(str(self.root), state_dir=self.state, settings=Settings()) as workspace:
            return list(workspace.log())[::-1]

    def undo(self) -> None:
        """Take back all that can be, the newest first."""
        operations = self.log()
        with open_workspace(str(self.root), state_dir=self.state, settings=Settings()) as workspace:
            for operation in reversed(operations):
                if "not kept, so it cannot" not in operation.note:
                    workspace.undo(PERSON, operation.id)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG_HOME", "CONFIG_DIRS"):
        monkeypatch.setenv(f"XDG_{name}", str(tmp_path / name))
    monkeypatch.delenv("FILEPACT_CONFIG", raising=False)
    made = tmp_path / "root"
    for name in ("data/base.db", "data/deep/notes", "build/notes.txt", "a.txt", "c.local"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(f"{name} of the person\n")
    for name in ("node_modules/x/index.js", "data/node_modules/y.js"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text("made by a machine\n")
    (made / ".gitignore").write_text("data/\n*.local\n*.log\nout*/\nnode_modules/\n")
    subprocess.run(["git", "init", "-q"], cwd=made, check=True)
    return made


@pytest.fixture
def agent(root: Path, tmp_path: Path) -> Iterator[Agent]:
    made = Agent(root, tmp_path / "state")
    with closing(made.daemon):
        made.bash("true")
        yield made


def folders(root: Path) -> set[tuple[str, int]]:
    found = [one for one in root.rglob("*") if one.is_dir()]
    return {(str(one.relative_to(root)), one.stat().st_mode) for one in found}


@pytest.mark.parametrize(
    "command",
    ["chmod u+x c.local run.log data/base.db", "chmod -R u+x .", "chmod --recursive 700 *"],
)
def test_the_modes_of_ignored_files_that_a_command_names_come_back(root, agent, command):
    (root / "run.log").write_text("of a program\n")
    names = ("c.local", "run.log", "data/base.db")
    before = [(root / name).stat().st_mode for name in names]
    agent.bash(command)
    assert [(root / name).stat().st_mode for name in names] != before
    agent.undo()
    assert [(root / name).stat().st_mode for name in names] == before


@pytest.mark.parametrize("command", ["chmod 700 data", "chmod -R 700 data", "chmod 711 data/deep"])
def test_the_modes_of_ignored_folders_that_a_command_names_come_back(root, agent, command):
    (root / "data/node_modules").rename(root / "node_modules/y")  # nobody looks into those
    before = folders(root)
    agent.bash(command)
    assert folders(root) != before
    agent.undo()
    assert folders(root) == before


def test_what_is_ignored_no_more_comes_back_when_it_is_removed_later(root, agent):
    agent.bash("echo nothing > .gitignore")
    agent.bash("rm -r data; rm c.local")
    agent.undo()
    assert (root / "data/deep/notes").read_text() == "data/deep/notes of the person\n"
    assert (root / "data/base.db").read_text() == "data/base.db of the person\n"
    assert (root / "c.local").read_text() == "c.local of the person\n"


@pytest.mark.parametrize("command", ["mv a.txt b.txt", "cp a.txt b.txt; ln -f a.txt b.txt"])
def test_who_takes_back_that_a_file_came_under_another_name_leaves_its_other_names(
    root, agent, command
):
    """A file that a person has under two names takes the place of another, and goes back from there alone."""
    (root / "b.txt").write_text("b.txt of the person\n")
    (root / "mine.txt").hardlink_to(root / "a.txt")
    agent.bash("true")
    agent.bash(command)
    assert (root / "b.txt").samefile(root / "mine.txt")
    with open_workspace(str(root), state_dir=agent.state, settings=Settings()) as workspace:
        workspace.undo(PERSON)
    for name in ("a.txt", "b.txt"):
        assert (root / name).read_text() == f"{name} of the person\n"
    assert (root / "mine.txt").read_text() == "a.txt of the person\n"


_MAKES = "import os; os.makedirs('app/.ve' + 'nv/lib'); os.mkfifo('pi' + 'pe'); open('new', 'w')"


@pytest.mark.parametrize("scanned", [False, True], ids=["watched", "scanned"])
def test_what_a_command_makes_that_no_undo_removes_is_named_by_it(root, agent, scanned):
    """A folder that programs make for themselves, and a pipe; not those that a person made meanwhile."""
    if scanned:
        for snapshot in agent.files._snapshots.values():
            snapshot.watcher.distrust()
    (root / "mine/.venv").mkdir(parents=True)
    os.mkfifo(root / "mine/pipe")
    agent.bash(f'python3 -c "{_MAKES}"')
    (root / "theirs/.venv").mkdir(parents=True)
    os.mkfifo(root / "theirs/pipe")
    agent.bash("true")
    given = ("--turn", "--unattended", "--root", str(root), "--state", agent.state)
    undone = command_line.command("undo", *given)
    assert undone.code == 1
    for name in ("app/.venv", "pipe"):
        assert f" {name}: it was made there" in undone.out + undone.err
    assert "mine" not in undone.out + undone.err
    assert "theirs" not in undone.out + undone.err
    assert not (root / "new").exists()
    assert (root / "app/.venv/lib").is_dir()


def test_a_pipe_that_a_command_removes_is_named_before_it_and_by_an_undo(root, agent):
    (root / "d").mkdir()
    for name in ("one", "d/two", "other"):
        os.mkfifo(root / name)
    (root / "d/file").write_text("x")
    agent.bash("true")
    told = agent.bash("rm one; rm -r d")
    assert "one (no file)" in told
    assert "d/two (no file)" in told
    assert "other" not in told
    given = ("--turn", "--unattended", "--root", str(root), "--state", agent.state)
    undone = command_line.command("undo", *given)
    assert undone.code == 1
    for name in ("one", "d/two"):
        assert f" {name}: what the file held is not in the journal" in undone.out + undone.err
    assert (root / "d/file").read_text() == "x"


@pytest.mark.parametrize("scanned", [False, True], ids=["watched", "scanned"])
def test_folders_without_files_come_back_and_go_again(root, agent, scanned):
    (root / "void/in").mkdir(parents=True)
    (root / "full").mkdir()
    (root / "full/x").write_text("x\n")
    agent.bash("true")
    if scanned:
        for snapshot in agent.daemon._desk.workspace.external._files._snapshots.values():
            snapshot.watcher.distrust()
    before, files = folders(root), tree(root)
    with open_workspace(str(root), state_dir=agent.state, settings=Settings()) as workspace:
        for command in (
            "mkdir -p new/er",
            "rmdir void/in",
            "rm -r void",
            "mv void elsewhere",
            "rm -r void; echo x > a.txt",
            "mkdir -p new/er; echo x > new/file",
            "rm -r full; mkdir full",
            "rm a.txt; mkdir -p a.txt/in",
        ):
            agent.bash(command)
            after = folders(root), tree(root)
            assert after != (before, files), command
            assert workspace.log(limit=1)[0].tool == "Bash", command
            workspace.undo(PERSON)
            assert (folders(root), tree(root)) == (before, files), command
            workspace.redo(PERSON)
            assert (folders(root), tree(root)) == after, command
            workspace.undo(PERSON)
        agent.bash("true")
        # What a person and this program itself do to folders is put down to nobody else.
        tools = [one.tool for one in workspace.log(limit=100)]
        assert (tools.count("Bash"), tools.count(BY_NOBODY)) == (8, 1)


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(one.relative_to(root)): one.read_bytes()
        for one in root.rglob("*")
        if one.is_file() and not {".git", "node_modules"} & set(one.relative_to(root).parts)
    }


AUTHOR = "export GIT_{AUTHOR,COMMITTER}_{NAME,EMAIL}=a"
STASH = f"{AUTHOR}; git commit -q --allow-empty -m x; git stash"
COMMANDS = [
    "rm -rf data",
    "rm -rf build data c.local",
    "rm data/base.db",
    "rm data/*",
    "cd data && rm base.db",
    "bash -c 'rm -r data'",
    "find data -type f -delete",
    "git clean -fdx",
    "git clean -fdX",
    "git clean -fd",
    f"{STASH} -u",
    f"{STASH} push --include-untracked -m said",
    f"{STASH} --all",
    "mv data elsewhere",
    "mv data out2",
    "mv data/base.db data/other.db",
    "mv c.local ..",
    "cp a.txt c.local",
    "cp -r data out",
    "echo new > c.local",
    "echo new >> data/deep/notes",
    "echo new > run.log",
    "mkdir out; echo new > out/new",
    "truncate -s 0 data/base.db",
    "sed -i s/person/agent/ data/deep/notes",
    "rm -r data; mkdir data; echo new > data/base.db",
]


@pytest.mark.parametrize(
    "command",
    [
        *("git checkout -q other", "git checkout -q other; git checkout -q -"),
        *(f"{AUTHOR}; git merge -q other", f"{AUTHOR}; git cherry-pick other"),
    ],
)
def test_an_ignored_file_that_git_writes_over_since_another_commit_has_it_comes_back(
    root, agent, command
):
    made = "git add .gitignore; git commit -qm x; git checkout -q -b other"
    other = "git add -f data/base.db; git commit -qm y; git checkout -q -"
    save = "mkdir -p data; echo mine > data/base.db"
    subprocess.run(["bash", "-c", f"{AUTHOR}; {made}; {other}; {save}"], cwd=root, check=True)
    agent.bash("true")
    before = tree(root)
    agent.bash(command)
    assert tree(root) != before
    agent.undo()
    assert tree(root) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_does_to_ignored_files_is_taken_back(root, agent, command):
    # rm wants no word for folders that are missing: `git clean` takes node_modules as well.
    before = tree(root)
    agent.bash(command.replace("rm data/*", "rm data/* || true"))
    assert tree(root) != before
    agent.undo()
    assert tree(root) == before


@pytest.mark.parametrize("name", ["c.local", "new.local", "data/base.db", "build/rules", "out/new"])
def test_an_ignored_file_that_a_call_names_is_recorded(root, agent, name):
    before = tree(root)
    agent.write(name, "by the agent\n")
    agent.write(name, "once more\n")
    first, second = agent.log()
    assert [one.path.path for one in (*first.changes.changes, *second.changes.changes)] == [
        name,
        name,
    ]
    agent.undo()
    assert tree(root) == before


def test_other_ignored_files_are_left_to_whoever_makes_them(root, agent):
    agent.write("c.local", "by the agent\n")
    (root / "run.log").write_text("noise")
    (root / "data/base.db").write_text("by a person")
    agent.bash("echo more > a.txt; echo $(echo noise) | cat > /dev/null")
    changed = {one.path.path for operation in agent.log() for one in operation.changes.changes}
    assert changed == {"c.local", "a.txt"}


def test_what_a_person_does_to_a_named_file_later_is_not_the_agents(root, agent):
    agent.write("c.local", "by the agent\n")
    (root / "c.local").write_text("by a person\n")
    agent.bash("echo more > a.txt")
    whose = {
        one.path.path: operation.session.actor.kind
        for operation in agent.log()
        for one in operation.changes.changes
    }
    assert whose == {"c.local": "program", "a.txt": "agent"}


@pytest.mark.parametrize(
    "command", ["rm big", "git stash -q", "git checkout -q -- big", "git clean -fdq"]
)
def test_a_large_file_is_kept_before_a_command_that_may_take_it(root, agent, command):
    (root / "big").write_bytes(bytes(range(256)) * 8_000)
    words = "add .gitignore big", "-c user.email=a@b -c user.name=a commit -qm one"
    for one in words if "clean" not in command else ():
        subprocess.run(["git", *one.split()], cwd=root, check=True)
    if "clean" not in command:
        (root / "big").write_bytes(bytes(range(255)) * 8_000)
    held = (root / "big").read_bytes()
    subprocess.run(["git", "config", "user.email", "a@b"], cwd=root, check=True)
    subprocess.run(["git", "config", "user.name", "a"], cwd=root, check=True)
    agent.bash("true")
    assert agent.bash(command) == ""
    assert not (root / "big").exists() or (root / "big").read_bytes() != held
    with open_workspace(str(root), state_dir=agent.state, settings=Settings()) as workspace:
        workspace.undo(PERSON, agent.log()[-1].id)
    assert (root / "big").read_bytes() == held


OVER = 1_100_000  # bytes: more than is read before a call in these tests


def made_large(root: Path, *names: str, size: int = OVER) -> bytes:
    """Files that are too large to be read before a call, in a state that is not racy, and what each holds."""
    for name in names:
        with (root / name).open("wb") as stream:
            stream.truncate(size - 4)
            stream.seek(0, 2)
            stream.write(b"end\n")
    settled = time.time() - 60
    for name in names:
        os.utime(root / name, (settled, settled))
    return (root / names[0]).read_bytes()


@pytest.mark.parametrize(
    ("command", "room", "lost"),
    [
        ("rm big", True, False),
        ("mv big other", True, False),
        ("echo new > big", True, False),
        ("git clean -fdq", True, False),
        ("mkdir -p in && mv big in/ && rm -r in", False, False),
        ("mv small big", False, False),
        ("cp small big", False, True),
    ],
)
def test_a_file_that_is_too_large_to_be_read_comes_back(
    root, agent, monkeypatch, command, room, lost
):
    """It is copied before the call; without room, it is held open, and comes back unless it is overwritten in place."""
    held = made_large(root, "big")
    (root / "small").write_text("small\n")
    agent.bash("true")
    agent.files.limits = agent.files.limits._replace(changed=OVER - 1)
    if not room:
        monkeypatch.setattr(agent.files._copies, "_free", 1 << 60)
    monkeypatch.setattr(file_states, "is_racy", lambda _stamp, _now: False)
    before = tree(root)
    told = agent.bash(command)
    after = tree(root)
    assert after != before
    warned = f"big ({OVER:,} bytes) if it is overwritten in place"
    assert (warned in told) == (not room and "git" not in command)
    assert not agent.files._copies._copies  # What was kept for a call is let go after it.
    if lost:
        where = ("--root", str(root), "--state", agent.state, "--unattended", "--json")
        done = command_line.command("undo", *where)
        assert done.code == 1
        assert f"big ({OVER:,} bytes): what the file held is not in the journal" in done.out
        assert tree(root) == after
        return
    assert left_by_undo(root, agent) == {}
    assert (tree(root), (root / "big").read_bytes()) == (before, held)
    with open_workspace(str(root), state_dir=agent.state, settings=Settings()) as workspace:
        workspace.redo(PERSON)
    assert tree(root) == after


def test_what_cannot_be_kept_is_said_before_with_its_size(root, agent, monkeypatch):
    monkeypatch.setattr(agent.files._copies, "_aside", "")
    with (root / "data/huge").open("wb") as stream:
        stream.truncate(70_000_000)
    told = agent.bash("rm -rf data")
    assert "data/huge (70,000,000 bytes)" in told
    lost = next(one for one in agent.log() if "not kept, so it cannot" in one.note)
    assert "data/huge (70,000,000 bytes)" in lost.note
    agent.undo()
    assert (root / "data/base.db").read_text() == "data/base.db of the person\n"


def left_by_undo(root, agent) -> dict[str, int | None]:
    """What a bare undo could not bring back, with sizes; the exit code tells the same."""
    where = ("--root", str(root), "--state", agent.state, "--unattended", "--json")
    done = command_line.command("undo", *where)
    left = {one["path"]: one["bytes"] for one in json.loads(done.out)["left"]}
    assert done.code == bool(left)
    return left


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("rm -rf node_modules data/node_modules", {"node_modules": None}),
        (
            'python3 -c \'import shutil; shutil.rmtree("node_mod" + "ules")\'',
            {"node_modules": None},
        ),
        ('python3 -c \'import os; os.remove("c.lo" + "cal")\'', {"c.local": 22}),
        ('python3 -c \'open("data/base" + ".db", "a").write("x")\'', {"data/base.db": 27}),
        ('python3 -c \'open("run.lo" + "g", "a").write("x")\'', {}),
        ('python3 -c \'open("new.lo" + "cal", "w").write("x")\'', {}),
    ],
)
def test_what_a_program_does_to_what_is_ignored_is_named(root, agent, command, left):
    (root / "run.log").write_text("of a server\n")
    agent.bash("true")
    agent.bash(f"{command}; echo new > a.txt")
    assert left_by_undo(root, agent) == left
    assert (root / "a.txt").read_text() == "a.txt of the person\n"


def test_the_words_of_a_command_are_read_once(agent):
    read_command.cache_clear()
    agent.bash("rm data/base.db")
    assert read_command.cache_info().misses == 1


def test_what_is_ignored_and_changes_between_calls_is_told_to_nobody(root, agent):
    agent.bash("true")
    (root / "c.local").write_text("by a person\n")
    (root / "data/base.db").unlink()
    agent.bash("true")
    assert agent.log() == []


def test_what_is_not_watched_is_said_once_a_session_and_named_files_are_recorded(
    root, tmp_path, monkeypatch
):
    monkeypatch.setattr(external, "KnownFileLimits", partial(KnownFileLimits, files=2))
    monkeypatch.setenv("HOME", str(tmp_path))
    (root / "zzz").mkdir()
    for name in ("zzz/last.py", "zzz/other.py"):
        (root / name).write_text("one\n")
    agent = Agent(root, tmp_path / "state")
    with closing(agent.daemon):
        told = agent.bash("true")
        assert "2 files are not watched" in told
        assert agent.bash("true") == ""
        agent.write("zzz/last.py", "two\n")
        agent.bash(
            'echo three > zzz/new.py; echo > .gitignore; python3 -c \'open("zzz/oth" + "er.py", "w")\''
        )
        changed = [[one.path.path for one in each.changes.changes] for each in agent.log()]
        assert changed == [["zzz/last.py"], [".gitignore", "zzz/new.py"]]
        agent.undo()
        assert (root / "zzz/last.py").read_text() == "one\n"
        assert not (root / "zzz/new.py").exists()
    for words in ("status", "doctor", "log", "undo"):
        done = command_line.command(words, "--root", str(root), "--state", agent.state)
        said = " ".join((done.out + done.err).split())
        assert "2 files are not watched here" in said
        assert "All is well" not in said


def test_that_a_tree_grows_beyond_what_is_watched_is_said_at_once_and_kept_with_the_operation(
    root, tmp_path, monkeypatch
):
    monkeypatch.setattr(external, "KnownFileLimits", partial(KnownFileLimits, files=20))
    monkeypatch.setenv("HOME", str(tmp_path))
    agent = Agent(root, tmp_path / "state")
    with closing(agent.daemon):
        assert agent.bash("true") == ""
        script = tmp_path / "grow"
        script.write_text("mkdir new; for i in $(seq 10 39); do echo > new/$i; done")
        agent.bash(f"sh {script}")
        assert "files are not watched" in agent.told_after
        agent.bash("true")
        assert agent.told_after == ""
    (made,) = agent.log()
    assert 0 < len(made.changes.changes) < 30
    assert unwatched_in(made.note)
    # What was found is taken back, and there are few enough again.
    agent.undo()
    with closing(HookDaemon((str(root),), agent.state)) as agent.daemon:
        agent.bash("rm -rf new")
        assert "not watched" not in agent.bash("true")
    said = command_line.command("undo", "--root", str(root), "--state", agent.state)
    assert "not watched" not in said.err.replace("\n", " ").partition("UNATTENDED")[0]


def test_a_folder_that_is_ignored_and_was_there_is_not_called_new_and_stays(root, agent):
    (root / "data/empty").mkdir()
    agent.bash("echo new > data/empty/new.txt; mkdir -p data/more/deep; echo > data/more/deep/x")
    (made,) = agent.log()
    assert sorted(path for _, path in made.directories) == ["data/more", "data/more/deep"]
    agent.undo()
    assert (root / "data/empty").is_dir()
    assert not (root / "data/more").exists()


def test_a_run_without_layers_tells_what_it_does_not_look_at(root, tmp_path, monkeypatch):
    monkeypatch.setattr(external, "KnownFileLimits", partial(KnownFileLimits, files=2))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(root)
    common = ("--root", str(root), "--state", str(tmp_path / "state"))
    (root / "zzz").write_text("one\n")
    script = "echo > a.txt; echo two > zzz"
    done = command_line.command("run", *common, "--layers", "off", "--", "sh", "-c", script)
    assert "not watched here" in done.err
    for words in (("doctor",), ("log",), ("undo", "--unattended")):
        said = command_line.command(*words, *common)
        assert "not watched here" in " ".join((said.out + said.err).split()), words
    assert (root / "a.txt").read_text() == "a.txt of the person\n"


def test_what_a_person_saves_while_the_daemon_stands_still_is_not_the_calls(root, agent):
    """As on a machine that sleeps: the end of the call is heard of when the person has saved long since."""
    script = root.parent / "script"
    script.write_text("echo agent > a.txt")
    agent.calls += 1
    agent.tell("PreToolUse", "Bash", {"command": f"sh {script}"})
    subprocess.run(["sh", script], cwd=root, check=True)
    ended = time.time_ns() - 60 * 10**9
    (root / "saved.txt").write_text("a person's\n")
    # Nobody can set back when a file changed, so it is the end that lies before all of them here.
    agent.tell("PostToolUse", "Bash", {"command": f"sh {script}"}, heard=ended)
    agent.tell("Stop", "", {})
    (made,) = agent.log()
    assert made.session.actor.kind == "program"
    assert {one.path.path for one in made.changes.changes} == {"a.txt", "saved.txt"}
    # What is heard of at once is the call's own.
    agent.bash("sed -i s/agent/again/ a.txt")
    assert agent.log()[-1].session.actor.kind == "agent"


@pytest.mark.parametrize("command", ["rm -r data", "mv data moved", "git clean -fdxq data"])
def test_an_ignored_folder_comes_back_with_its_rights(agent: Agent, command: str) -> None:
    (agent.root / "data").chmod(0o700)
    (agent.root / "data/deep").chmod(0o750)
    agent.bash(command)
    assert not (agent.root / "data/deep").exists()
    agent.undo()
    assert (agent.root / "data/deep/notes").exists()
    modes = [(agent.root / name).stat().st_mode & 0o777 for name in ("data", "data/deep")]
    assert modes == [0o700, 0o750]


def test_a_folder_that_programs_make_is_recorded_once_when_it_is_removed(
    root: Path, agent: Agent
) -> None:
    agent.bash("rm -r node_modules; echo x > a.txt")
    paths = [str(one.path) for each in agent.log() for one in each.changes.changes]
    assert sorted(paths) == ["a.txt", "node_modules"]
    assert left_by_undo(root, agent) == {"node_modules": None}
    assert not (root / "node_modules").exists()


def test_what_was_made_and_a_person_has_removed_since_is_not_named_by_an_undo(
    root: Path, agent: Agent
) -> None:
    agent.bash(f'python3 -c "{_MAKES}"')
    shutil.rmtree(root / "app")
    (root / "pipe").unlink()
    assert left_by_undo(root, agent) == {}
    assert not (root / "new").exists()


@pytest.mark.parametrize("name", [".venv", "node_modules"])
def test_what_lay_in_a_folder_that_nobody_looks_into_is_not_lost_with_its_new_name(
    root, tmp_path, name
):
    (root / name / "deep").mkdir(parents=True)
    (root / name / "deep/only").write_text("the only copy\n")
    with closing((agent := Agent(root, tmp_path / "state")).daemon):
        agent.bash("true")
        time.sleep(0.05)  # Times of files may be behind the clock.
        agent.bash(f"mv {name} saved; echo new > made")
        with open_workspace(str(root), state_dir=agent.state, settings=Settings()) as workspace:
            for operation in agent.log()[::-1]:
                with suppress(FilepactError):
                    workspace.undo(PERSON, operation.id)
    assert (root / "saved/deep/only").read_text() == "the only copy\n"
    assert not (root / "made").exists()
