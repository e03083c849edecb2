"""Files that are too large for the journal come back after a command that removed, moved or replaced them."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import pytest

from filepact.fs import kept_copies
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
    assert run(agent, "undo") == (len(left), left)
    assert (sizes(agent.root), facts(huge)) == (before, was)
    assert kept(agent) == []
    agent.bash("true")  # Nobody takes it for changed.
    assert [one.kind for one in agent.log()[-2:]].count("undo") >= 1


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

    def link(*_: object, **__: object) -> None:
        raise OSError(18, "another disk")

    if why == "another disk":
        monkeypatch.setattr(kept_copies.os, "link", link)
    told = agent.bash("echo x > data/huge")
    assert f"data/huge ({SIZE:,} bytes)" in told
    assert ("if it is overwritten in place" in told) == (why == "room")
    assert run(agent, "undo")[0] == 1
