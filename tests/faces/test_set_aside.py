"""Files that are too large for the journal come back after a command that removed, moved or replaced them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.fs import kept_copies
from tests.crash.near_full import loop_disk
from tests.faces import command_line
from tests.faces.test_named_and_ignored import Agent, agent, root

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["agent", "root"]

SIZE = 70_000_000


@pytest.fixture
def huge(agent: Agent) -> Path:
    """A file that takes little room on the disk, and was last written a while ago."""
    made = agent.root / "data/huge"
    with made.open("wb") as stream:
        stream.truncate(SIZE - 4)
        stream.seek(0, 2)
        stream.write(b"end\n")
    made.chmod(0o640)
    os.utime(made, (time.time() - 60, time.time() - 60))
    agent.bash("true")
    return made


def facts(path: Path) -> tuple[object, ...]:
    status = path.stat()
    with path.open("rb") as stream:
        stream.seek(-4, 2)
        end = stream.read()
    return status.st_size, status.st_mode, status.st_mtime_ns, status.st_nlink, end


def sizes(folder: Path) -> dict[str, int]:
    return {
        str(one.relative_to(folder)): one.stat().st_size
        for one in folder.rglob("*")
        if one.is_file() and not {".git", "node_modules"} & set(one.relative_to(folder).parts)
    }


def kept(agent: Agent) -> list[int]:
    """How many names those files have that were set aside."""
    folder = agent.root.parent / "state/kept"
    return [one.stat().st_nlink for one in folder.rglob("*") if one.is_file()]


def run(agent: Agent, *words: str) -> tuple[int, set[str]]:
    """The exit code of a command that goes back, and what it has left as it is."""
    where = ("--root", str(agent.root), "--state", agent.state, "--unattended", "--json")
    done = command_line.command(*words, *where)
    return done.code, {one["path"] for one in json.loads(done.out).get("left", ())}


@pytest.mark.parametrize(
    "command",
    [
        "rm data/huge",
        "rm -rf data",
        "rm data/huge; echo x > a.txt",
        "mv data/huge data/other",
        "mv data moved",
        "mv a.txt data/huge",
        "git clean -fdxq",
        "truncate -s 5 data/huge",
        "echo x > data/huge",
    ],
)
def test_what_is_too_large_for_the_journal_comes_back(
    agent: Agent, huge: Path, command: str
) -> None:
    before, was = sizes(agent.root), facts(huge)
    assert agent.bash(command) == ""
    assert sizes(agent.root) != before
    made = {"git clean -fdxq": {"node_modules"}, "mv data moved": {"moved/node_modules"}}
    left = made.get(command, set[str]())
    assert run(agent, "undo", "--dry-run")[1] == left
    assert sizes(agent.root) != before
    stay = {"moved/"} if left == {"moved/node_modules"} else set()
    assert run(agent, "undo") == (len(left), left | stay)
    assert (sizes(agent.root), facts(huge)) == (before, was)
    assert kept(agent) == []
    agent.bash("true")  # Nobody takes it for changed.
    assert [one.kind for one in agent.log()[-2:]].count("undo") >= 1


def test_what_was_set_aside_comes_back_also_where_all_else_has_by_itself(
    agent: Agent, huge: Path
) -> None:
    before, was, text = sizes(agent.root), facts(huge), (agent.root / "a.txt").read_bytes()
    assert agent.bash("rm data/huge; echo x > a.txt") == ""
    (agent.root / "a.txt").write_bytes(text)
    assert run(agent, "undo", "--dry-run") == (0, set())
    assert run(agent, "undo") == (0, set())
    assert (sizes(agent.root), facts(huge)) == (before, was)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["xfs", "btrfs"])
def test_where_blocks_are_shared_a_copy_takes_no_room_whatever_its_size(
    root: Path, tmp_path: Path, kind: str
) -> None:
    """More than is copied elsewhere, and overwritten in place; also what is copied into the journal afterwards."""
    with loop_disk(tmp_path / "disk", kind, 900 << 20) as disk:
        there = disk / "root"
        shutil.copytree(root, there)
        for name, size in (("huge", 270_000_000), ("large", 30_000_000)):
            with (there / "data" / name).open("wb") as stream:
                for _ in range(size // 1_000_000):
                    stream.write(bytes(range(250)) * 4_000)
            os.utime(there / "data" / name, (1, 1))
        agent = Agent(there, disk / "state")
        with closing(agent.daemon):
            agent.bash("true")
            for command in ("rm data/huge data/large", "echo x | tee data/huge > data/large"):
                before, was = facts(there / "data/huge"), facts(there / "data/large")
                os.sync()
                free = os.statvfs(disk).f_bavail
                agent.calls += 1
                assert agent.tell("PreToolUse", "Bash", {"command": command}) == ""
                os.sync()
                taken = (free - os.statvfs(disk).f_bavail) * os.statvfs(disk).f_frsize
                assert taken < 8_000_000
                subprocess.run(["bash", "-c", command], cwd=there, check=True)
                agent.tell("PostToolUse", "Bash", {"command": command})
                assert run(agent, "undo") == (0, set())
                assert facts(there / "data/huge") == before
                # One that stayed has the time of the undo.
                now = facts(there / "data/large")
                assert (now[:2], now[3:]) == (was[:2], was[3:])


@pytest.mark.parametrize("again", ["rm {}", "echo x > {}", "mv {} {}2"])
@pytest.mark.parametrize("first", ["rm {}", "echo x > {}"])
def test_it_comes_back_again_and_again(agent: Agent, huge: Path, first: str, again: str) -> None:
    was = facts(huge)
    for command in (first, again, again):
        assert agent.bash(command.replace("{}", "data/huge")) == ""
        assert run(agent, "undo") == (0, set())
        assert facts(huge) == was


def test_what_a_program_does_to_it_after_it_came_back_is_told(agent: Agent, huge: Path) -> None:
    agent.bash("rm data/huge")
    assert run(agent, "undo") == (0, set())
    agent.bash("python3 -c \"open('data/hu' + 'ge', 'a').write('x')\"; echo x > a.txt")
    assert run(agent, "undo") == (1, {"data/huge"})
    assert (agent.root / "a.txt").read_text() != "x\n"


def test_a_file_that_a_call_names_and_leaves_is_not_held_after_it(agent: Agent, huge: Path) -> None:
    was, operations = facts(huge), len(agent.log())
    assert agent.bash("[ -e a.txt ] || rm data/huge") == ""
    assert (facts(huge), kept(agent)) == (was, [])
    agent.bash("true")
    assert len(agent.log()) == operations


def test_it_comes_back_after_the_daemon_was_killed_in_the_call(agent: Agent, huge: Path) -> None:
    was = facts(huge)
    agent.calls += 1
    agent.tell("PreToolUse", "Bash", {"command": "rm data/huge"})
    assert huge.stat().st_nlink == 2
    killed, agent.daemon = agent.daemon, type(agent.daemon)((str(agent.root),), agent.state)
    huge.unlink()
    agent.bash("true")
    operation = agent.log()[-1].id
    assert run(agent, "undo", operation) == (0, set())
    assert facts(huge) == was
    killed.close()
    assert (facts(huge), kept(agent)) == (was, [])


def test_a_name_that_is_taken_by_now_is_left_and_what_was_kept_stays(
    agent: Agent, huge: Path
) -> None:
    agent.bash("rm data/huge; echo x > a.txt")
    huge.write_text("by a person\n")
    assert run(agent, "undo")[0] == 1
    assert (agent.root / "a.txt").read_text() == "x\n"
    assert huge.read_text() == "by a person\n"
    huge.unlink()
    operation = next(one.id for one in agent.log() if one.kind == "change")
    assert run(agent, "undo", operation) == (0, set())
    assert facts(huge)[0] == SIZE


def test_redo_passes_by_what_was_put_back(agent: Agent, huge: Path) -> None:
    agent.bash("rm data/huge; echo x > a.txt")
    run(agent, "undo")
    assert run(agent, "redo") == (0, set())
    assert (agent.root / "a.txt").read_text() == "x\n"
    assert facts(huge)[0] == SIZE
    assert run(agent, "undo") == (0, set())
    assert (agent.root / "a.txt").read_text() == "a.txt of the person\n"
    assert facts(huge)[0] == SIZE


@pytest.mark.parametrize("why", ["room", "another disk"])
def test_what_cannot_be_set_aside_is_said_before(
    agent: Agent, huge: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "room":
        monkeypatch.setattr(agent.files._copies, "_free", 1 << 60)

    def place(*_: object) -> str:
        raise OSError(18, "another disk")

    if why == "another disk":
        monkeypatch.setattr(kept_copies.KeptCopies, "_place_aside", place)
    told = agent.bash("echo x > data/huge")
    assert f"data/huge ({SIZE:,} bytes)" in told
    assert ("if it is overwritten in place" in told) == (why == "room")
    assert run(agent, "undo")[0] == 1


def test_redo_names_what_it_leaves_of_a_folder_that_came_back_around_such_a_file(
    agent: Agent,
) -> None:
    (agent.root / "only").mkdir()
    with (agent.root / "only/huge").open("wb") as stream:
        stream.truncate(SIZE)
    (agent.root / "only/small").write_text("small\n")
    agent.bash("true")
    agent.bash("rm -r only; echo x > a.txt")
    before = sizes(agent.root)
    assert run(agent, "undo") == (0, set())
    where = ("--root", str(agent.root), "--state", agent.state, "--unattended", "--json")
    done = json.loads(command_line.command("redo", *where).out)
    assert "only/huge" in " ".join(done["notes"])
    assert sizes(agent.root) == {**before, "only/huge": SIZE}
