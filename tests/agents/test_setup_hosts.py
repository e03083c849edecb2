"""What `filepact setup` writes, read by the real programs: they start our server and call our hook."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filepact_hooks.agents import AGENTS as ACTORS
from tests.agents.hooked import HOOKED
from tests.agents.installed import node_program, or_skip, skip_slow_starter
from tests.agents.machines import AGENTS, Machine, SetUp
from tests.agents.model import Call, ScriptedModel
from tests.architecture.examples import matches
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGES = Path(__file__).resolve().parents[2] / "docs" / "tutorial"
TUTORIALS = {"claude": "claude-code.md", "codex": "codex.md", "gemini": "gemini-cli.md"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def _of_folder(call: Call, root: Path) -> Call:
    return call[0], json.loads(json.dumps(call[1]).replace("ROOT", str(root)))


@pytest.fixture(params=AGENTS, ids=[one.name for one in AGENTS])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    agent: SetUp = request.param
    skip_slow_starter(agent.name)
    with or_skip():
        node_program(agent.package[0], agent.package[1], group=agent.package[2])
    return Machine(agent, tmp_path)


def drive(
    machine: Machine,
    script: Sequence[Call],
    *options: str,
    words: Sequence[str] = (),
    cwd: Path | None = None,
) -> ScriptedModel:
    """Set the agent up, and let it carry out a script; the model, with what it was shown."""
    package, program, group = machine.agent.package
    with ScriptedModel(list(script)) as model:
        machine.settle(model.url)
        machine.setup("--write", *options)
        command = node_program(package, program, group=group)
        done = machine.run([*command, *machine.agent.words, *words], model.url, cwd=cwd)
    assert len(model.answers) == len(script), (
        model.tools,
        done.stdout[-3000:],
        done.stderr[-3000:],
    )
    return model


def follow_tutorial(machine: Machine) -> None:
    """Do what the agent's tutorial has after its work, and compare what it shows."""
    name = machine.agent.name
    text = (PAGES / TUTORIALS[name]).read_text().replace("hello", "own")
    blocks = re.findall(r"^```(sh|text)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    typed = [body.strip() for mark, body in blocks if mark == "sh"]
    _, setup, agent, *after = typed
    assert setup == f"filepact setup {name} --write"
    assert agent.startswith(f"{name} ")
    assert after == ["filepact log", "filepact diff", "filepact undo --turn"]
    shown = [body.splitlines() for mark, body in blocks if mark == "text"]
    for command, expected in zip(after, shown, strict=True):
        words = [str(machine.program), *command.split()[1:]]
        # Nobody sits at a terminal here.
        done = machine.run([*words, *(["--unattended"] if "undo" in words else [])])
        assert done.returncode == 0, done.stderr
        assert matches(tuple(expected), tuple(done.stdout.splitlines())), done.stdout
    assert not (machine.root / "own.txt").exists()


def test_the_program_starts_our_server_and_calls_our_hook(machine: Machine) -> None:
    agent = machine.agent
    read = (agent.tool.format("read_file"), {"path": "a.txt"})
    model = drive(machine, [read, _of_folder(agent.write, machine.root)])
    assert "what the server reads" in model.answers[0][1]
    calls = machine.calls()
    assert any(call.startswith("mcp ") for call in calls)
    # One before and one after each call of a tool, at least.
    assert sum(call.startswith(f"hook {agent.name}") for call in calls) >= 4
    if agent.name in TUTORIALS:
        follow_tutorial(machine)
    machine.setup("--remove")
    for name in agent.settings:
        assert "filepact" not in (machine.home / name).read_text() or name.endswith("settings.json")


def test_its_own_writers_are_gone_when_only_filepact_is_left(machine: Machine) -> None:
    agent = machine.agent
    if not agent.writers:
        pytest.skip("no settings file can take them away")
    read: Call = (agent.tool.format("read_file"), {"path": "a.txt"})
    # One of its own first, where it does not wait for the server.
    own: list[Call] = [("Read", {"file_path": "a.txt"})] if agent.name == "claude" else []
    model = drive(machine, [*own, read], "--guard", "only-filepact")
    assert not set(agent.writers) & set(model.tools)


# What the table of `what-is-guarded.md` says of the first two is seen with each agent as well.
@pytest.mark.parametrize("started", [*(("src", "../tree") * often(0, 1)), "--worktree"])
def test_a_session_is_guarded_wherever_in_the_project_it_is_started(
    machine: Machine, started: str
) -> None:
    agent, root = machine.agent, machine.root
    if started == "--worktree" and agent.name != "claude":
        pytest.skip("only Claude Code makes worktrees of its own")
    own = next(one for one in HOOKED if one.name == agent.name)
    options: tuple[str, ...] = ()
    if agent.name == "claude":
        options = ("--allowedTools", "Read,Bash")
    cwd, place = root, root / ".claude" / "worktrees" / "other"
    if started == "--worktree":
        options += (started, "other")
    else:
        cwd = place = Path(os.path.normpath(root / started))
    for path in ("src/id_rsa", "src/cart.py"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("SECRETSECRET\n")
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b"]
    add = ("worktree", "add", "-q", "--detach", str(root.parent / "tree"))
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "s"), add):
        subprocess.run([*git, *words], check=True)
    secret = place / "id_rsa" if place.name == "src" else place / "src" / "id_rsa"
    script = [own.read(str(secret)), own.run("echo own > own.txt")]
    model = drive(machine, script, words=options, cwd=cwd)
    assert "SECRETSECRET" not in "".join(text for _, text in model.answers)
    assert (place / "own.txt").exists()
    # Told in the project, and there.
    for folder in (root, place):
        said = machine.run([str(machine.program), "log", "--json"], cwd=folder).stdout
        newest = json.loads(said)["operations"][0]
        assert newest["actor"]["name"] == ACTORS[agent.name].actor
        assert [Path(one["path"]).name for one in newest["files"]] == ["own.txt"]
