"""What an agent's call names comes back, whatever ignore files say of it, and what cannot is said beforehand."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_workspace
from filepact.config.settings import Settings
from filepact.domain.operation import BY_NOBODY, Actor, Session
from filepact.errors import FilepactError
from filepact.workspace import external, file_states
from filepact.workspace.external import KnownFileLimits
from filepact.workspace.file_snapshot import COARSE, unwatched_in
from filepact_hooks.service import HookDaemon
from filepact_hooks.shell_command import read_command
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

    def watch(self, watched: bool) -> None:
        """Go on with notices of changes, or as where there are none."""
        for snapshot in self.files._snapshots.values() if not watched else ():
            snapshot.watcher.distrust()

    def log(self) -> list[Operation]:
        """Oldest first."""
        with open_workspace(str(self.root), state_dir=self.state, settings=Settings()) as workspace:
            return list(workspace.log())[::-1]

    def undo(self, after: int = 0) -> None:
        """Take back all that can be, the newest first; but for so many that came first."""
        operations = self.log()[after:]
        with open_workspace(str(self.root), state_dir=self.state, settings=Settings()) as workspace:
            for operation in reversed(operations):
                if "so that cannot be taken back" not in operation.note:
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


@pytest.mark.parametrize("scanned", [False, True], ids=["watched", "scanned"])
@pytest.mark.parametrize(
    "command",
    ["chmod u+x c.local run.log data/base.db", "chmod -R u+x .", "chmod --recursive 700 *"],
)
def test_the_modes_of_ignored_files_that_a_command_names_come_back(root, agent, command, scanned):
    agent.watch(not scanned)
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
    agent.watch(not scanned)
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
    # The folders themselves are nobody's, and said to be.
    assert "mine/" not in undone.out + undone.err
    assert "theirs/" not in undone.out + undone.err
    assert not (root / "new").exists()
    assert (root / "app/.venv/lib").is_dir()


@pytest.mark.parametrize(
    "makes",
    [
        "mkfifo {}",
        "python3 -c 'import socket; socket.socket(1).bind(\"{}\")'",
        "head -c 10000001 /dev/zero > {}",
    ],
    ids=["pipe", "socket", "large"],
)
def test_what_stands_where_a_folder_was_is_named_and_all_else_goes_back(root, agent, makes):
    before = tree(root)
    agent.bash(f"echo x > a.txt; rm -r build c.local; {makes.format('build')}")
    assert left_by_undo(root, agent).keys() == {"build", "build/notes.txt"}
    stays = {"build/notes.txt", *(["build"] if (root / "build").is_file() else [])}
    assert {k: v for k, v in tree(root).items() if k not in stays} == {
        k: v for k, v in before.items() if k not in stays
    }
    assert not (root / "build").is_dir()


def test_what_a_pipe_took_the_place_of_comes_back_once_a_person_has_removed_it(root, agent):
    before = folders(root), tree(root)
    agent.bash("rm -r build a.txt; mkfifo build a.txt")
    (root / "build").unlink()
    (root / "a.txt").unlink()
    assert left_by_undo(root, agent) == {}
    assert (folders(root), tree(root)) == before


@pytest.mark.parametrize(
    "does", ["rm pipe; echo x > pipe", "rm pipe; ln -s a.txt pipe", "mv pipe b; echo x > pipe"]
)
def test_a_pipe_that_a_file_has_taken_the_place_of_is_named_and_all_else_goes_back(
    root, agent, does
):
    os.mkfifo(root / "pipe")
    agent.bash("true")
    before = tree(root)
    agent.bash(f"rm c.local; {does}")
    assert "pipe" in left_by_undo(root, agent)
    assert (root / "pipe").read_bytes()
    assert (root / "c.local").read_bytes() == before["c.local"]


_INTO = "import os; os.rename('fo' + 'lder', 'ou' + 't/fo' + 'lder')"


@pytest.mark.parametrize("scanned", [False, True], ids=["watched", "scanned"])
@pytest.mark.parametrize(
    "command",
    [
        "mv void out/",
        "rm -r folder/*; mv folder out/",
        "mkdir another; mv another out/",
        "mv out n3; mv folder out",
        "mv out n3; mv folder out; echo x > n3/new",
        f'python3 -c "{_INTO}"',
    ],
)
def test_a_folder_that_comes_into_an_ignored_one_or_in_its_place_goes_back(
    root, agent, command, scanned
):
    (root / "void").mkdir()
    (root / "out").mkdir()
    (root / "out/old").write_text("of the person\n")
    (root / "folder/void").mkdir(parents=True, mode=0o700)
    (root / "folder/file").write_text("of the person\n")
    agent.bash("true")
    agent.watch(not scanned)
    before = folders(root), tree(root)
    agent.bash(command)
    assert (folders(root), tree(root)) != before
    assert left_by_undo(root, agent) == {}
    assert (folders(root), tree(root)) == before


def test_what_somebody_puts_into_a_folder_that_came_into_an_ignored_one_stays_and_is_named(
    root, agent
):
    (root / "out").mkdir()
    agent.bash("mkdir another; mv another out/")
    (root / "out/another/mine").write_text("of the person\n")
    assert left_by_undo(root, agent).keys() == {"out/another/"}
    assert (root / "out/another/mine").exists()


@pytest.mark.parametrize("name", ["pipe", "node_modules"])
def test_what_is_not_looked_into_is_named_each_time_that_it_comes(root, agent, name):
    (root / "node_modules/x/index.js").unlink()
    shutil.rmtree(root / "node_modules")
    makes = "mkfifo pipe" if name == "pipe" else "mkdir node_modules"
    for number in (1, 2):
        agent.bash(f"{makes}; echo {number} > a.txt")
        assert name in left_by_undo(root, agent)
        (root / name).unlink() if name == "pipe" else shutil.rmtree(root / name)
        agent.bash("true")


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
    agent.watch(not scanned)
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


@pytest.mark.parametrize(
    ("did", "since", "stays"),
    [
        ("true", "rm -r folder", set()),
        ("true", "rm -r folder/in", {"folder"}),
        ("true", "rm folder/in/one", {"folder", "folder/in"}),
        # One that is left as it is needs no folder either.
        ("echo more > folder/in/one", "rm -r folder", set()),
    ],
)
def test_folders_that_a_command_took_away_and_brought_back_are_as_a_person_left_them(
    root, agent, did, since, stays
):
    (root / "folder/in").mkdir(parents=True)
    for name in ("in/one", "two"):
        (root / "folder" / name).write_text("of the person\n")
    agent.bash("cp -r folder ../copy; rm -r folder")
    agent.bash("cp -r ../copy folder")
    agent.bash(did)
    agent.bash("echo also > a.txt")
    subprocess.run(["sh", "-c", since], cwd=root, check=True)
    given = ("--turn", "--partly", "--unattended", "--root", str(root), "--state", agent.state)
    command_line.command("undo", *given)
    assert {one for one, _ in folders(root) if one.startswith("folder")} == stays
    assert (root / "a.txt").read_text() == "a.txt of the person\n"


@pytest.mark.parametrize("beside", [False, True])
def test_an_undo_in_part_ends_with_1_only_if_something_cannot_come_back(root, agent, beside):
    agent.bash("echo agent > a.txt; mkdir folder; echo x > folder/x; echo x > other.txt")
    (root / "a.txt").write_text("by hand\n")
    if beside:
        (root / "folder/mine").write_text("by hand\n")
    given = ("undo", "--turn", "--unattended", "--root", str(root), "--state", agent.state)
    assert command_line.command(*given).code == 1
    assert (root / "other.txt").exists()
    undone = command_line.command(*given, "--partly")
    assert undone.code == int(beside)
    assert "left as it is: a.txt" in undone.out
    assert ("the folder folder stays: it is not empty" in undone.out) == beside
    assert (root / "a.txt").read_text() == "by hand\n"
    assert not (root / "other.txt").exists()


def test_a_file_that_comes_back_with_its_folder_is_not_moved_there_from_elsewhere_too(root, agent):
    (root / "folder").mkdir(mode=0o700)
    for name in ("one", "two"):
        (root / "folder" / name).write_text(f"{name} of the person\n")
    agent.bash("true")
    before = folders(root), tree(root)
    agent.bash("mv folder other; mkdir folder; cp other/one folder/")
    agent.bash("mv folder third")
    given = ("--turn", "--unattended", "--root", str(root), "--state", agent.state)
    assert command_line.command("undo", *given).code == 0
    assert (folders(root), tree(root)) == before


@pytest.mark.parametrize("empty", [True, False])
def test_a_folder_that_came_back_and_that_a_person_removed_comes_only_with_what_comes_in_it(
    root, agent, empty
):
    (root / "folder").mkdir(mode=0o700)
    for name in ("one", "two"):
        (root / "folder" / name).write_text("of the person\n")
    agent.bash("mv folder other")
    agent.bash(f"mkdir folder; mv other/{'*' if empty else 'one'} folder/; rmdir other || true")
    shutil.rmtree(root / "folder")
    given = ("--turn", "--unattended", "--root", str(root), "--state", agent.state)
    command_line.command("undo", *given)
    assert (root / "folder").exists() is not empty
    assert not (root / "folder/one").exists()
    assert empty or (root / "folder").stat().st_mode & 0o777 == 0o700
    assert empty or (root / "folder/two").read_text() == "of the person\n"


def test_a_command_that_names_links_which_lead_in_a_circle_is_recorded(root, agent):
    (root / "one").symlink_to("two/in")
    (root / "two").symlink_to("one")
    assert not agent.bash("echo x > one || echo x > two/in || echo x > a.txt")
    assert left_by_undo(root, agent) == {}
    assert (root / "a.txt").read_text() == "a.txt of the person\n"


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
    "ln -s data to; echo new > to/new; rm to/base.db",
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


@pytest.mark.parametrize(
    "command",
    [
        *("git stash -q -u", "git checkout -q -- .", "git checkout -q other", "git merge -q other"),
        "git checkout -q other; git checkout -q -",
    ],
)
@pytest.mark.parametrize("there", ["rm part/tracked", "mkdir part/in"])
def test_what_git_writes_where_searches_do_not_look_goes_again(root, agent, command, there):
    """It tracks that; a person makes something beside it."""
    made = "echo part > .ignore; mkdir part; echo old > part/tracked; echo mine > part/mine"
    base = "git add .ignore .gitignore part/tracked; git commit -qm x; git checkout -q -b other"
    other = "mkdir part/new; echo new | tee part/added > part/new/too; git add part/new part/added"
    words = f"{made}; {base}; {other}; git commit -qm y; git checkout -q -; {there}"
    subprocess.run(["bash", "-c", f"{AUTHOR}; {words}"], cwd=root, check=True)
    agent.bash("true")
    before, after = tree(root), len(agent.log())
    agent.bash(f"{AUTHOR}; {command}; mkdir -p part; echo also > part/by-hand")
    (root / "part" / "mine.too").write_text("mine\n")
    agent.undo(after)
    assert tree(root) == before | {"part/mine.too": b"mine\n"}


@pytest.mark.parametrize(
    ("does", "was"),
    [
        ("mv ../out.txt in.txt; echo more >> in.txt", "out.txt"),
        ("mkdir d; mv ../out.txt d; sed --in-place=.bak s/x/y/ d/out.txt; mv d e", "out.txt"),
        ("mv node_modules vendor; echo more >> vendor/x/index.js", "root/node_modules/x/index.js"),
        ("mv data kept; echo more >> kept/base.db", "root/data/base.db"),
        ("mv c.local kept; echo more >> kept", "root/c.local"),
    ],
)
@pytest.mark.parametrize("scanned", [False, True], ids=["watched", "scanned"])
def test_what_is_moved_and_then_written_was_there_before_and_is_not_removed(
    root, agent, scanned, does, was
):
    agent.watch(not scanned)
    (root.parent / "out.txt").write_text("of the person, outside\n")
    held = (root.parent / was).read_text()
    (root.parent / "script").write_text(does)  # The words of the command do not tell.
    time.sleep(2 * COARSE / 1e9)  # It is older than the next look, as far as births are told.
    agent.bash("true")
    agent.bash("bash ../script")
    agent.undo()
    files = [
        one
        for one in root.parent.rglob("*")
        if one.is_file() and root.parent / "state" not in one.parents
    ]
    assert [one for one in files if one.read_bytes().startswith(held.encode())]


@pytest.mark.parametrize("command", ["git mv src lib", "bash ../script"])
def test_ignored_files_that_move_with_their_folder_go_back_whatever_the_words_tell(
    root, agent, command
):
    for name in ("src/a.c", "src/x.log", "src/d/y.log"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{name} of the person\n")
    subprocess.run(["git", "add", "src"], cwd=root, check=True)
    (root.parent / "script").write_text("mv src lib")
    before = tree(root)
    agent.bash("true")
    agent.bash(command)
    (done,) = agent.log()[1:]
    assert {one.path.path for one in done.changes.changes} >= {"src/x.log", "lib/x.log"}
    agent.undo(1)
    assert tree(root) == before


@pytest.mark.parametrize("command", ["mv a.txt b.txt", "rm a.txt", "mv a.txt build/"])
def test_what_a_command_removes_by_name_goes_back_if_another_daemon_heard_of_its_begin(
    root, agent, command
):
    before = tree(root)
    agent.tell("PreToolUse", "Bash", {"command": command})
    agent.daemon.close()
    subprocess.run(command.split(), cwd=root, check=True)
    with closing(HookDaemon((str(root),), agent.state)) as agent.daemon:
        agent.tell("PostToolUse", "Bash", {"command": command})
    (done,) = agent.log()
    assert done.tool == "Bash"
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


_ODD = "\"$(printf 'odd\\376')\""


@pytest.mark.parametrize("scanned", [False, True], ids=["watched", "scanned"])
@pytest.mark.parametrize(
    "command",
    [
        "mv app t; mv lib app; mv t lib",
        f"mv app {_ODD}",
        f"mv app/deep lib/{_ODD}",
        "mv app/deep/c.local lib/$(echo moved).local",
        "mv app t; mv lib app; mv t lib; echo more >> lib/c.local",
    ],
)
def test_an_ignored_file_that_is_moved_is_there_once_after_an_undo(root, agent, command, scanned):
    """By a name that the words of the command do not tell, or in the place of something else."""
    agent.watch(not scanned)
    (root / "app/deep").mkdir(parents=True)
    (root / "lib").mkdir()
    for name in ("app/c.local", "app/deep/c.local", "app/x", "lib/y"):
        (root / name).write_text(f"{name} of the person\n")
    agent.bash("true")
    before, known = tree(root), len(agent.log())
    agent.bash(command)
    assert tree(root) != before
    agent.undo(known)
    assert tree(root) == before


@pytest.mark.parametrize("scanned", [False, True], ids=["watched", "scanned"])
def test_an_ignored_file_with_the_number_of_one_that_was_removed_is_left(root, agent, scanned):
    agent.watch(not scanned)
    (root / "app").mkdir()
    (root / "app/c.local").write_text("of the person\n")
    agent.bash("true")
    # Made by a program meanwhile: the system gives it the number of what the command has removed.
    agent.bash("""rm app/c.local; python3 -c 'open("ne" + "w.local", "w").write("noise")'""")
    agent.undo()
    assert (root / "new.local").read_text() == "noise"
    assert (root / "app/c.local").read_text() == "of the person\n"


@pytest.mark.parametrize("scanned", [False, True], ids=["watched", "scanned"])
def test_other_ignored_files_are_left_to_whoever_makes_them(root, agent, scanned):
    agent.watch(not scanned)
    agent.write("c.local", "by the agent\n")
    (root / "run.log").write_text("noise")
    (root / "data/base.db").write_text("by a person")
    # Git's own files may change and keep their stamps still: they were made a moment ago.
    agent.bash('echo more > a.txt; python3 -c \'open("oth" + "er.log", "w")\'')
    changed = {one.path.path for operation in agent.log() for one in operation.changes.changes}
    assert changed == {"c.local", "a.txt"}


@pytest.mark.parametrize("scanned", [False, True], ids=["watched", "scanned"])
def test_rights_of_an_ignored_file_that_no_word_names_are_told_of_where_its_bytes_are_not(
    root, agent, scanned
):
    (root / "run.log").write_text("noise")
    agent.bash("true")
    agent.watch(not scanned)
    agent.bash("find . -maxdepth 1 -name 'run*' -exec chmod u+x {} +; echo more > a.txt")
    changed = {one.path.path for operation in agent.log() for one in operation.changes.changes}
    assert changed == {"run.log", "a.txt"}
    agent.bash("find . -maxdepth 1 -name 'run*' -exec sh -c 'echo >> $1' - {} +")
    assert len(agent.log()) == 2


@pytest.mark.parametrize("scanned", [False, True], ids=["watched", "scanned"])
@pytest.mark.parametrize(
    ("does", "left"), [("chmod u+x {}", {}), ("sh -c 'echo >> $1' - {}", {"c.local": 22})]
)
def test_what_is_done_to_a_file_counts_where_the_same_command_has_it_ignored_no_more(
    root, agent, does, left, scanned
):
    (root / ".gitignore").write_text("*.local\n")
    (root / "c.local").chmod(0o644)
    agent.bash("true")
    agent.watch(not scanned)
    agent.bash(f"find . -maxdepth 1 -name 'c*' -exec {does} +; rm .gitignore")
    assert left_by_undo(root, agent) == left
    assert (root / "c.local").stat().st_mode & 0o777 == 0o644
    assert (root / ".gitignore").read_text() == "*.local\n"


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
    lost = next(one for one in agent.log() if "so that cannot be taken back" in one.note)
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


@pytest.mark.parametrize("name", [".cache", ".venv", "__pycache__", "d/__pycache__", "../outside"])
@pytest.mark.parametrize("when", ["before", "in the session", "before a restart"])
def test_what_lay_where_nobody_looks_is_not_lost_with_its_new_name(root, tmp_path, name, when):
    def make() -> None:
        (root / name / "deep").mkdir(parents=True)
        (root / name / "deep/only").write_text("the only copy\n")

    if when == "before":
        make()
    agent = Agent(root, tmp_path / "state")
    agent.bash("true")
    if when == "in the session":
        make()
        agent.bash("true")
    elif when == "before a restart":
        make()
        agent.bash("echo x > a.txt")
        agent.daemon.close()
        agent = Agent(root, tmp_path / "state")
    time.sleep(0.05)  # Times of files may be behind the clock.
    with closing(agent.daemon):
        agent.bash(f"mv {name} saved; echo new > made; echo more > saved/deep/more")
        with open_workspace(str(root), state_dir=agent.state, settings=Settings()) as workspace:
            for operation in agent.log()[::-1]:
                with suppress(FilepactError):
                    workspace.undo(PERSON, operation.id)
    assert (root / "saved/deep/only").read_text() == "the only copy\n"
    assert not (root / "made").exists()
    assert not (root / "saved/deep/more").exists()


UNKEPT = """python3 -c 'open("c.lo" + "cal", "a").write("and more\\n")'"""


@pytest.mark.parametrize("scanned", [False, True], ids=["watched", "scanned"])
@pytest.mark.parametrize("apart", [False, True], ids=["together", "one by one"])
@pytest.mark.parametrize(
    "then",
    ["mv {} other", "rm {}", "echo late >> {}; chmod u+x {}", "mv {} other; mv other data/third"],
)
@pytest.mark.parametrize(
    ("first", "name", "why"),
    [
        (UNKEPT, "c.local", "left it: what it held before that is not in the journal"),
        pytest.param(
            "mv ../outside came.txt",
            "came.txt",
            "it came there from elsewhere, and stays",
            marks=pytest.mark.skipif(
                sys.platform != "linux", reason="the system does not say when a file was made"
            ),
        ),
    ],
)
def test_what_is_done_after_a_change_that_was_not_kept_goes_back_to_what_that_left(
    root, tmp_path, first, name, why, then, apart, scanned
):
    (tmp_path / "outside").write_text("a person's only copy\n")
    (root / "c.local").chmod(0o644)
    time.sleep(0.05)  # Times of files may be behind the clock.
    agent = Agent(root, tmp_path / "state")
    with closing(agent.daemon):
        agent.bash("true")
        agent.watch(not scanned)
        agent.bash(first)
        left = (root / name).read_text()
        for one in then.split("; ") if apart else [then]:
            agent.bash(one.replace("{}", name))
    where = ("--root", str(root), "--state", agent.state, "--unattended")
    done = command_line.command("undo", "--turn", *where)
    assert done.code == 1
    assert why in done.out
    assert (root / name).read_text() == left
    assert (root / name).stat().st_mode & 0o777 == 0o644
    assert not (root / "other").exists()
    assert not (root / "data/third").exists()
    again = command_line.command("undo", "--turn", *where)
    assert again.code == 1
    assert (root / name).read_text() == left
    command_line.command("redo", *where)
    assert (root / "other").exists() == (then == "mv {} other")
    redone = command_line.command("undo", "--turn", *where)
    assert redone.code == 1
    assert (root / name).read_text() == left


@pytest.mark.parametrize("scanned", [False, True], ids=["watched", "scanned"])
@pytest.mark.parametrize(
    ("commands", "at"),
    [
        (["mv .env came; echo more >> came"], "came"),
        (["mv .env came; echo more >> came", "mv came third; chmod 600 third"], "came"),
        (["mv .env box/.env", "mv box/.env came"], "box/.env"),
        (["mv .env box/.env", "mv box/.env came; echo more >> came"], "came"),
        (
            [UNKEPT.replace("c.lo", ".e").replace("cal", "nv"), "mv .env came; echo x >> came"],
            "came",
        ),
    ],
)
def test_what_was_moved_and_not_read_before_stays_on_the_disk(root, agent, commands, at, scanned):
    (root / ".env").write_text("KEY=the only copy\n")
    (root / "box").mkdir()
    (root / "box/kept").write_text("kept\n")
    agent.bash("true")
    agent.watch(not scanned)
    for one in commands:
        agent.bash(one)
    where = ("--root", str(root), "--state", agent.state, "--unattended")
    for _ in range(2):
        done = command_line.command("undo", "--turn", *where)
        assert done.code == 1
        assert all(one in done.out + done.err for one in (".env", at))
        assert "KEY=the only copy" in (root / at).read_text()
        command_line.command("redo", *where)


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not say when a file was made")
@pytest.mark.parametrize("scanned", [False, True], ids=["watched", "scanned"])
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("mv ../outside a.txt", True),
        ("""python3 -c 'import os; os.rename("node_mod" + "ules/only", "a.txt")'""", True),
        ("mv .env ../t; mv a.txt .env; mv ../t a.txt", True),
        ("cp ../outside ../t; mv ../t a.txt", False),
        ("mv b.txt a.txt", False),
        ("ln -f b.txt a.txt", False),
    ],
)
def test_what_came_from_elsewhere_in_the_place_of_a_file_is_named_when_that_comes_back(
    root, tmp_path, command, told, scanned
):
    for name in ("../outside", "node_modules/only", ".env"):
        (root / name).write_text("the only copy\n")
    (root / "b.txt").write_text("b\n")
    time.sleep(0.05)  # Times of files may be behind the clock.
    agent = Agent(root, tmp_path / "state")
    with closing(agent.daemon):
        agent.bash("true")
        agent.watch(not scanned)
        agent.bash(command)
    where = ("--root", str(root), "--state", agent.state, "--unattended")
    came = (root / "a.txt").read_text()
    done = command_line.command("undo", "--turn", *where)
    assert (root / "a.txt").read_text() == "a.txt of the person\n"
    assert (root / "b.txt").read_text() == "b\n"
    assert done.code == told
    assert ("a.txt: what came there in its place is in the journal alone" in done.out) == told
    command_line.command("redo", *where)
    assert (root / "a.txt").read_text() == came


@pytest.mark.parametrize("command", ["mv b.txt a.txt", "mv b.txt t; mv a.txt b.txt; mv t a.txt"])
def test_a_file_that_was_moved_over_another_one_goes_back_with_it_or_stays(root, agent, command):
    (root / "b.txt").write_text("the only copy\n")
    agent.bash("true")
    agent.bash(command)
    where = ("--root", str(root), "--state", agent.state, "--unattended")
    after = (root / "b.txt").read_text() if (root / "b.txt").exists() else None
    for name in ("a.txt", "b.txt"):
        assert command_line.command("undo", name, *where).code == 0
        assert (root / "a.txt").read_text() == "a.txt of the person\n"
        assert (root / "b.txt").read_text() == "the only copy\n"
        assert command_line.command("redo", name, *where).code == 0
        assert (root / "a.txt").read_text() == "the only copy\n"
        assert ((root / "b.txt").read_text() if (root / "b.txt").exists() else None) == after
    (root / "b.txt").unlink(missing_ok=True)
    (root / "b.txt").write_text("a person's\n")
    done = command_line.command("undo", "--turn", "--partly", *where)
    assert done.code == 1
    assert "a.txt: b.txt stays as it is" in done.err
    assert (root / "a.txt").read_text() == "the only copy\n"
    assert (root / "b.txt").read_text() == "a person's\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not say when a file was made")
@pytest.mark.parametrize("link", [False, True])
def test_a_file_that_came_from_elsewhere_by_itself_is_not_removed_and_a_copy_is(
    root, tmp_path, link
):
    outside, hidden = tmp_path / "outside", root / ".cache/hidden"
    hidden.parent.mkdir()
    for one in (outside, hidden, tmp_path / "kept"):
        one.symlink_to("nowhere") if link else one.write_text("a person's\n")
    time.sleep(0.05)  # Times of files may be behind the clock.
    agent = Agent(root, tmp_path / "state")
    with closing(agent.daemon):
        agent.bash("true")
        moved = "import os; os.rename('.ca' + 'che/hidden', 'found')"
        agent.bash(
            f"mv {outside} brought; cp -Pp {tmp_path}/kept copy; ln -P {tmp_path}/kept linked; "
            f'python3 -c "{moved}"; echo new > new'
        )
        agent.undo()
    left = {one.name for one in root.iterdir() if not one.name.startswith(".")}
    assert left >= {"brought", "found"}
    assert not left & {"copy", "linked", "new"}


def given_again(root: Path, number: int, *, folder: bool) -> Path:
    """What is made at a name that nobody looks at, and has the number of what was removed."""
    for one in range(500):
        made = root / f"{one}.local"
        if folder:
            made.mkdir()
        else:
            made.write_text("a person's\n")
        if made.stat().st_ino == number:
            return made
    pytest.skip("this file system gives no number again")


def test_a_folder_with_the_number_of_one_that_was_removed_is_another_one(root, agent):
    number = (root / "node_modules").stat().st_ino
    agent.calls += 1
    given = {"command": "rm -r node_modules; mkdir found"}
    agent.tell("PreToolUse", "Bash", given)
    shutil.rmtree(root / "node_modules")
    given_again(root, number, folder=True).rename(root / "found")
    agent.tell("PostToolUse", "Bash", given)
    assert left_by_undo(root, agent) == {"node_modules": None}
    assert not (root / "node_modules").exists()
    assert not (root / "found").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not say when a file was made")
def test_a_file_with_the_number_of_one_that_was_removed_is_another_one(root, agent):
    """A person's, made while nobody had to look for the other one, and brought in by an agent, is not removed."""
    (root / "gone").write_text("gone\n")
    agent.bash("true")
    number = (root / "gone").stat().st_ino
    (root / "gone").unlink()
    made = given_again(root, number, folder=False)
    time.sleep(0.05)  # Times of files may be behind the clock.
    changes = agent.daemon._desk.workspace.external
    changes.detect(PERSON, wanted=lambda path: path.path != "gone")
    made.rename(root / "found")
    changes.detect(Session("s1", Actor("agent", "claude-code")), tool="Bash")
    agent.undo()
    assert (root / "found").read_text() == "a person's\n"


def test_what_came_while_the_clock_was_set_back_is_never_removed_and_that_is_said(root, tmp_path):
    """Nobody can set the clock of the file system here, so it is the last look that lies an hour ahead of it."""
    drift = 0
    agent = Agent(root, tmp_path / "state")
    agent.daemon = HookDaemon((str(root),), agent.state, drift=lambda: drift)
    with closing(agent.daemon):
        agent.bash("true")
        agent.calls += 1
        given = {"command": "sh script"}
        agent.tell("PreToolUse", "Bash", given)
        drift = -3_600 * 10**9
        for snapshot in agent.files._snapshots.values():
            snapshot.looked -= drift
        (root / "brought").write_text("a person's, or the call's\n")
        (root / "a.txt").write_text("by the call\n")
        told = agent.tell("PostToolUse", "Bash", given)
        assert "clock" in told
        assert agent.bash("echo later > later") == ""
        assert "clock" not in agent.told_after
        agent.undo()
    assert (root / "brought").exists()
    assert not (root / "later").exists()
    assert (root / "a.txt").read_text() == "a.txt of the person\n"


def test_an_empty_folder_is_not_taken_for_one_that_held_others(root, tmp_path):
    for name in ("one/deep", "two/deep"):
        (root / name).mkdir(parents=True)
    (root / "one/file").touch()
    for name in ("one/deep", "two/deep", "two"):
        os.utime(root / name, (1, 1))
    agent = Agent(root, tmp_path / "state")
    with closing(agent.daemon):
        agent.bash("true")
        agent.bash("mv one/deep new; mv two/deep one/deep; rmdir two")
        agent.undo()
    assert (root / "one/deep").is_dir()
    assert (root / "two/deep").is_dir()
    assert not (root / "new").exists()
    with open_workspace(str(root), state_dir=agent.state, settings=Settings()) as workspace:
        workspace.redo(PERSON)
    assert [*(root / "new").iterdir()] == []
    assert not (root / "two").exists()


@pytest.mark.parametrize(
    ("command", "back"),
    [
        ("mv .cache saved", True),
        ("mv .cache saved #", False),
        ("mv .cache twin; mv __pycache__ saved", False),
        ("rmdir empty; mkdir saved", False),
    ],
)
def test_an_ignored_folder_with_folders_in_it_goes_back_whole_or_stays(
    root, tmp_path, command, back
):
    (root / "empty").mkdir()
    for name in (".cache", "__pycache__"):
        (root / name / "deep").mkdir(parents=True)
        (root / name / "deep/only").write_text(f"{name}\n")
        os.utime(root / name / "deep", (1, 1))
        os.utime(root / name, (1, 1))  # as of an archive, or made at one moment
    time.sleep(0.05)  # Times of files may be behind the clock.
    agent = Agent(root, tmp_path / "state")
    with closing(agent.daemon):
        agent.bash("true")
        agent.bash(command)
        if not back:
            (root / "saved/mine").write_text("a person's\n")
        mine = (root / "saved").stat().st_ino
        with open_workspace(str(root), state_dir=agent.state, settings=Settings()) as workspace:
            workspace.undo(PERSON, agent.log()[-1].id)
            assert ((root / ".cache").stat().st_ino == mine) == back
            assert (root / "saved").exists() != back
            if back:
                assert (root / ".cache/deep/only").read_text() == ".cache\n"
                workspace.redo(PERSON)
                assert (root / "saved/deep/only").read_text() == ".cache\n"
                assert not (root / ".cache").exists()


def test_what_came_while_a_call_went_on_is_told_of_at_its_end_however_often_others_looked(
    root, agent
):
    agent.tell("PreToolUse", "Bash", {"command": "sh make.sh"})
    (root / "new").mkdir()
    (root / "new/b.txt").write_text("of the command\n")
    time.sleep(0.05)
    agent.calls += 1
    agent.write("a.txt", "by another call\n")
    agent.calls -= 2
    agent.tell("PostToolUse", "Bash", {"command": "sh make.sh"})
    told = [str(path.path) for one in agent.log() for path in one.changes.paths]
    assert "new/b.txt" in told


def everywhere(root: Path) -> dict[str, tuple[int, bytes]]:
    """Which file or folder each name is, whoever made it, and what it holds."""
    return {
        str(one.relative_to(root)): (one.stat().st_ino, one.read_bytes() if one.is_file() else b"")
        for one in root.rglob("*")
        if ".git" not in one.parts
    }


FILLED = ("node_modules", ".venv", "__pycache__", ".cache", "app/.venv", "app/in/node_modules")


@pytest.mark.parametrize("scanned", [False, True], ids=["watched", "scanned"])
@pytest.mark.parametrize(
    "command",
    [
        *(f"mv {name} other; echo x > a.txt" for name in FILLED[:4]),
        "mv .venv app/in/",
        "mv .venv venv",
        "mv node_modules out2",
        "mv node_modules app/node_modules",
        "mv node_modules one; mv .venv two; mkdir made; mv .cache made/",
        "mv app/.venv .; mv app/in/node_modules nm; mv app app2",
        "mv app app2; rm a.txt",
        "mkdir -p deep/er; mv app deep/er/",
    ],
)
def test_a_folder_that_nobody_looks_into_gets_its_former_name_again(
    root, tmp_path, command, scanned
):
    shutil.rmtree(root / "node_modules")
    subprocess.run(
        ["git", "rm", "-q", "--cached", "-r", "--ignore-unmatch", "."], cwd=root, check=True
    )
    for name in FILLED:
        (root / name / "deep").mkdir(parents=True)
        (root / name / "deep/only").write_text(f"{name}\n")
    (root / "app/in/f.py").write_text("f\n")
    time.sleep(0.05)  # Times of files may be behind the clock.
    agent = Agent(root, tmp_path / "state")
    with closing(agent.daemon):
        agent.bash("true")
        agent.watch(not scanned)
        before = everywhere(root)
        agent.bash(command)
        after = everywhere(root)
        assert left_by_undo(root, agent) == {}
        now = everywhere(root)
        assert now.keys() == before.keys()
        assert {name: now[name][1] for name in now} == {name: before[name][1] for name in now}
        for name in FILLED:
            assert now[name] == before[name]
            assert now[f"{name}/deep/only"] == before[f"{name}/deep/only"]
        with open_workspace(str(root), state_dir=agent.state, settings=Settings()) as workspace:
            workspace.redo(PERSON)
            assert everywhere(root).keys() == after.keys()
            workspace.undo(PERSON)
        assert everywhere(root).keys() == before.keys()
        agent.bash("true")
        # Nothing of it is taken for a change of somebody else's.
        changes = [one.session.actor.kind for one in agent.log() if one.kind == "change"]
        assert changes == ["agent"]


@pytest.mark.parametrize(
    ("then", "left"),
    [
        ("node_modules/mine", {"node_modules", "other"}),
        ("other/mine", {"node_modules", "other"}),
    ],
)
def test_a_folder_that_nobody_looks_into_stays_where_a_person_has_used_either_name_since(
    root, agent, then, left
):
    agent.bash("mv node_modules other; echo x > a.txt")
    (root / then).parent.mkdir(exist_ok=True)
    (root / then).write_text("a person's\n")
    given = ("--unattended", "--root", str(root), "--state", agent.state)
    assert command_line.command("undo", "--turn", *given).code == 1
    assert (root / "a.txt").read_text() == "x\n"
    said = command_line.command("undo", "--turn", "--partly", *given, "--json")
    assert {one for one in left if f"{one}:" in said.out} == left
    assert (root / "a.txt").read_text() == "a.txt of the person\n"
    assert (root / then).read_text() == "a person's\n"
    assert (root / "other/x/index.js").read_text() == "made by a machine\n"


def test_who_changes_what_was_moved_with_its_folder_gets_it_all_back_but_for_that(root, agent):
    (root / "src/.venv").mkdir(parents=True)
    (root / "src/.venv/only").write_text("only\n")
    (root / "src/other.txt").write_text("other\n")
    (root / "src/notes.txt").write_text("notes\n")
    agent.bash("true")
    agent.bash("mv src moved")
    (root / "moved/notes.txt").write_text("notes of a person\n")
    (root / "moved/mine").write_text("mine\n")
    assert left_by_undo(root, agent) == {"moved/": None}
    assert (root / "src/notes.txt").read_text() == "notes of a person\n"
    assert (root / "src/other.txt").read_text() == "other\n"
    assert (root / "src/.venv/only").read_text() == "only\n"
    assert [one.name for one in (root / "moved").iterdir()] == ["mine"]


def test_a_folder_that_nobody_looks_into_and_is_changed_by_the_same_command_is_told(root, agent):
    agent.bash("mv node_modules other; echo more > other/x/more")
    stay = {"other/": None, "other/x/": None}
    assert left_by_undo(root, agent) == {"node_modules": None} | stay
    assert (root / "other/x/index.js").exists()
    assert not (root / "other/x/more").exists()


@pytest.mark.parametrize(
    ("then", "back"),
    [
        ("echo more >> other/x/index.js", True),
        ("rm -r other/x", False),
        ("mkdir -p node_modules/z; echo 1 > node_modules/z/i.js", False),
    ],
)
def test_what_the_same_turn_does_in_such_a_folder_goes_back_first_and_the_folder_after_it(
    root, agent, then, back
):
    agent.bash("mv node_modules other; echo x > a.txt")
    first = agent.log()[-1].id
    agent.bash(then)
    given = ("--unattended", "--root", str(root), "--state", agent.state)
    undone = command_line.command("undo", "--turn", *given)
    assert undone.code == 1
    assert f"filepact undo {first}" in undone.out
    assert (root / "a.txt").read_text() == "a.txt of the person\n"
    assert (root / "other/x/index.js").read_text() == "made by a machine\n"
    if back:
        assert command_line.command("undo", first, *given).code == 0
        assert (root / "node_modules/x/index.js").read_text() == "made by a machine\n"


def another(root: Path) -> None:
    """Have another folder, with the same name and other files, lie where a root lay."""
    root.rename(root.with_name("elsewhere"))
    root.mkdir()
    (root / "a.txt").write_text("of another project\n")


@pytest.mark.parametrize("when", ["in a call", "between calls", "between two processes"])
def test_a_folder_in_whose_place_another_one_comes_keeps_its_history_and_the_new_one_has_none(
    root, tmp_path, when
):
    agent = Agent(root, tmp_path / "state")
    agent.bash("true")
    agent.bash("echo 1 >> a.txt")
    (first,) = agent.log()
    kept = (root / "a.txt").read_text()
    agent.calls += 1
    if when == "in a call":
        agent.tell("PreToolUse", "Bash", {"command": "sh elsewhere.sh"})
        another(root)
        said = agent.tell("PostToolUse", "Bash", {"command": "sh elsewhere.sh"})
    else:
        another(root)
        if when == "between two processes":
            agent.daemon.close()
            agent = Agent(root, tmp_path / "state")
        agent.tell("PreToolUse", "Bash", {"command": "true"})
        said = agent.tell("PostToolUse", "Bash", {"command": "true"})
    assert (str(root) in said) == (when != "between two processes")
    assert agent.log() == []
    agent.bash("echo 2 >> a.txt")
    agent.daemon.close()
    second, *others = agent.log()
    assert (second.tool, others) == ("Bash", [])
    places = ("--root", str(root), "--state", agent.state)
    for words in ((first.id,), (second.id,)):
        done = command_line.command("undo", "--unattended", *words, *places)
        assert done.code == (0 if words == (second.id,) else 1)
    assert (root / "a.txt").read_text() == "of another project\n"
    # Of what lies in its place nothing more can be taken back, and the next step is named.
    said = command_line.command("undo", "--session", "s1", "--unattended", *places)
    assert (said.code, str(root) in said.err) == (3, True)
    places = ("--root", str(root.with_name("elsewhere")), "--state", agent.state)
    assert (root.with_name("elsewhere") / "a.txt").read_text() == kept
    assert command_line.command("undo", "--unattended", first.id, *places).code == 0
    assert (root.with_name("elsewhere") / "a.txt").read_text() == "a.txt of the person\n"


def test_a_folder_that_is_removed_and_made_again_can_be_given_the_history_of_the_one_before(
    root, agent, monkeypatch
):
    agent.bash("echo 1 >> a.txt")
    kept = root.with_name("kept")
    shutil.copytree(root, kept)
    shutil.rmtree(root)
    shutil.copytree(kept, root)
    agent.bash("true")
    assert agent.log() == []
    monkeypatch.chdir(root)
    places = ("--root", str(root), "--state", agent.state)
    moved = json.loads(command_line.command("status", "--json", *places).out)["moved"]
    _, name = moved.split("doctor --moved ")
    assert command_line.command("doctor", "--moved", name.strip("`.").strip("'"), *places).code == 0
    assert command_line.command("undo", "--unattended", *places).code == 0
    assert (root / "a.txt").read_text() == "a.txt of the person\n"


def test_a_folder_that_stays_is_named_once_not_called_removed_and_the_undo_ends_with_1(root, agent):
    agent.bash("mkdir -m 700 new; mkdir new/empty; echo x > new/x; mkdir other; echo x > other/y")
    (root / "new/mine.txt").write_text("by hand\n")
    places = ("--root", str(root), "--state", agent.state)
    done = command_line.command("undo", "--unattended", "--json", "--session", "s1", *places)
    facts = json.loads(done.out)
    assert {one["path"] for one in facts["files"]} == {"new/x", "new/empty/", "other/y"}
    assert "Removed folder new/\n" not in facts["diff"]
    assert " ".join(facts["notes"]).count("new ") == 1
    assert (done.code, [one["path"] for one in facts["left"]]) == (1, ["new/"])
    assert (root / "new/mine.txt").read_text() == "by hand\n"
    assert not (root / "other").exists()


def test_a_name_with_a_line_feed_makes_no_line_of_its_own_in_the_answer_of_an_undo(root, agent):
    agent.bash("mkdir 'new\nDone'; echo x > 'new\nDone/x'")
    (root / "new\nDone/mine.txt").write_text("by hand\n")
    places = ("--root", str(root), "--state", agent.state)
    done = command_line.command("undo", "--unattended", *places)
    assert done.code == 1
    assert sum(line.startswith("Done") for line in done.out.splitlines()) == 1
    assert [one.name for one in (root / "new\nDone").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("becomes", ["echo now > d", "ln -s a.txt d"])
def test_a_known_folder_that_is_ignored_by_now_and_becomes_something_else_comes_back(
    root, agent, becomes
):
    agent.bash("mkdir d; echo 1 > d/one; echo 2 > d/two")
    agent.bash("echo 'd/' > .gitignore")
    agent.bash(f"rm -r d; {becomes}")
    with open_workspace(str(root), state_dir=agent.state, settings=Settings()) as workspace:
        for operation in agent.log()[:0:-1]:
            workspace.undo(PERSON, operation.id)
    assert {one.name: one.read_text() for one in (root / "d").iterdir()} == {
        "one": "1\n",
        "two": "2\n",
    }


@pytest.mark.parametrize("whole", [True, False], ids=["one in part", "both in part"])
def test_a_folder_of_a_removal_that_goes_back_in_part_goes_or_is_named(root, agent, whole):
    """One command has made it for a file, another has removed the file, and something else of both stays."""
    for name in ("f", "g", "h"):
        (root / name).write_text("of the person\n")
    agent.bash("true")
    agent.bash("mkdir -p w/v; echo x > w/v/x; echo agent > f")
    agent.bash("rm w/v/x; echo agent > h" if whole else "rm w/v/x; echo agent > h; echo agent > g")
    for name in ("f", "g"):
        (root / name).write_text("by the person since\n")
    place = "--root", str(root), "--state", agent.state
    said = command_line.command("undo", "--turn", "--partly", "--unattended", *place)
    assert "left as it is: f:" in said.out
    assert (root / "h").read_text() == "of the person\n"
    for folder in ("w", "w/v"):
        assert (root / folder).exists() != whole
        assert (f"the folder {folder} stays" in said.out) != whole
    assert said.code == (not whole)


@pytest.mark.parametrize(
    ("command", "there"),
    [
        ("mv p q", "q"),
        ("rm -r p; mkdir p; echo f > p/f", "p"),
        ("rm -r p; echo f > q", "."),
        ("mv p q; mkdir p; echo f > p/f", "q"),
        ("mv p q; ln -s q p", "q"),
    ],
)
def test_what_a_person_puts_into_a_folder_before_and_after_a_command_moves_or_replaces_it_stays(
    root, agent, command, there
):
    (root / "p").mkdir()
    (root / "p/b").write_text("b\n")
    agent.bash("true")
    (root / "p/early").write_text("early\n")
    agent.bash(command)
    (root / there / "late").write_text("late\n")
    common = ("--root", str(root), "--state", agent.state)
    command_line.command("undo", "--turn", "--unattended", *common)
    assert (root / "p/b").read_text() == "b\n"
    assert (root / "p/early").read_text() == "early\n"
    assert "late\n" in [one.read_text() for one in root.rglob("late")]
    assert not [*root.rglob("f")]
    assert not (root / "p").is_symlink()
