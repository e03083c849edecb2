"""Agents that have none but their own tools, through their hooks: refused, recorded, taken back."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.config.settings import Settings
from filepact.domain.operation import BY_NOBODY
from filepact_hooks.agents import AGENTS
from tests.agents.hooked import HOOKED, Hooked, drive
from tests.agents.installed import or_skip, skip_slow_starter
from tests.faces.command_line import command
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="the programs are those for Linux"),
]

BELOW = [one for one in HOOKED if one.name == "codex" or often(0, 1)]
"""Agents below which a command is tried; `tests/faces/test_person.py` has the variables of all of them."""

LINES = ["one", "two", "three", "four", "five", "six", "seven"]


@pytest.fixture(params=HOOKED, ids=[one.name for one in HOOKED])
def agent(request: pytest.FixtureRequest) -> Hooked:
    chosen: Hooked = request.param
    skip_slow_starter(chosen.name)
    with or_skip():
        chosen.command()
    return chosen


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "home"
    for lock in (tmp_path / "home" / "state" / "hooks").glob("*.lock"):
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(lock.read_text()), signal.SIGKILL)


def test_what_an_agent_does_with_its_own_tools_is_judged_recorded_and_undone(
    agent: Hooked, tmp_path: Path, home: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    file, gone, secret = root / "a.txt", root / "gone.bin", root / ".env"
    file.write_text("".join(f"{line}\n" for line in LINES))
    gone.write_bytes(b"\0\1\2")
    secret.write_text("TOKEN=SECRETSECRET\n")

    def by_hand() -> None:
        file.write_text(file.read_text().replace("seven", "seven by hand"))

    script = [
        agent.write(str(root / ".env.production"), "X=1"),
        agent.read(str(secret)),
        agent.read(str(file)),
        agent.edit(str(file), "two", "TWO"),
        agent.run("sed -i s/four/FOUR/ a.txt; printf new > made.txt; rm gone.bin"),
    ]
    shown = drive(agent, root, home, script, meanwhile={4: by_hand})
    assert not (root / ".env.production").exists()
    assert "SECRETSECRET" not in "".join(shown)
    assert "project secrets" in shown[0]
    changed = ["one", "TWO", "three", "FOUR", "five", "six", "seven by hand"]
    assert file.read_text().split("\n")[:-1] == changed
    assert (root / "made.txt").read_text() == "new"
    with open_workspace(str(root), state_dir=str(home / "state"), settings=Settings()) as workspace:
        found = workspace.log()
        agents = [one for one in found if one.session.agent == AGENTS[agent.name].actor]
        assert {one.tool for one in found if one not in agents} <= {BY_NOBODY}
        files = [{change.path.path for change in one.changes.changes} for one in agents]
        assert files == [{"a.txt", "made.txt", "gone.bin"}, {"a.txt"}]
        assert all(one.session.turn and one.session.call for one in agents)
        assert len({one.session.turn for one in agents}) == 1
    # As a person types it; what they wrote themselves in that turn stays.
    options = ("--root", str(root), "--state", str(home / "state"), "--unattended")
    done = command("undo", "--turn", *options)
    assert done.code == 0, done.err
    assert file.read_text().split("\n")[:-1] == [*LINES[:-1], "seven by hand"]
    assert gone.read_bytes() == b"\0\1\2"
    assert sorted(os.listdir(root)) == [".env", "a.txt", "gone.bin"]


@pytest.mark.parametrize("agent", BELOW, ids=lambda one: one.name, indirect=True)
def test_what_a_real_agent_starts_decides_nothing_with_and_without_its_variables(
    agent: Hooked, tmp_path: Path, home: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    paths = os.pathsep.join(filter(None, sys.path))
    undo = f"{sys.executable} -m filepact --state {home / 'state'} --root {root} undo --unattended"
    # In a file, so that no hook is asked about it.
    (root / "go.sh").write_text(
        f"export PYTHONPATH={paths}\n{undo}\nsetsid -w {undo}\n"
        f"env -i HOME=$HOME PYTHONPATH={paths} {undo}\n"
    )
    drive(agent, root, home, [agent.run("sh go.sh > said.txt 2>&1; true")])
    assert (root / "said.txt").read_text().count("[BELOW_AGENT]") == 3


HEARING = [one for one in HOOKED if one.name == "claude" or (one.name == "gemini" and often(0, 1))]
"""Agents whose model reads with a call's answer what a hook adds; Codex shows it beside the answer."""


@pytest.mark.parametrize("agent", HEARING, ids=lambda one: one.name, indirect=True)
def test_the_model_of_a_real_agent_reads_that_its_change_was_taken_back(
    agent: Hooked, tmp_path: Path, home: Path
) -> None:
    root, settings = tmp_path / "root", tmp_path / "settings.toml"
    root.mkdir()
    (root / "AGENTS.md").write_text("one\n")
    # In a file, so that no hook is asked about it.
    (root / "go.sh").write_text("echo x >> AGENTS.md\n")
    settings.write_text('[hooks]\nunapproved = "propose"\n')
    script = [agent.run("sh go.sh"), agent.run("true")]
    shown = drive(agent, root, home, script, options=("--config", str(settings)))
    assert (root / "AGENTS.md").read_text() == "one\n"
    assert "AGENTS.md: your change needed a person's word" in shown[0]
    assert "it waits for a person as proposal c" in shown[0]
    assert "taken back" not in shown[1]
