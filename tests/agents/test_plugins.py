"""The plugins in `plugins`, installed by the real programs: they start our server and call our hook."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agents.installed import node_program, or_skip, skip_slow_starter
from tests.agents.machines import AGENTS, Machine, SetUp
from tests.agents.model import Call, ScriptedModel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROJECT = Path(__file__).resolve().parents[2]


def install(machine: Machine, command: list[str]) -> None:
    """Install the plugin as its page says."""
    if machine.agent.name == "opencode":
        folder = machine.home / ".config" / "opencode" / "plugin"
        folder.mkdir(parents=True)
        shutil.copy(PROJECT / "plugins" / "opencode" / "filepact.js", folder)
        return
    words = {
        "claude": (
            ["plugin", "marketplace", "add", str(PROJECT)],
            ["plugin", "install", "filepact@filepact"],
        ),
        "gemini": (["extensions", "install", str(PROJECT / "plugins" / "gemini"), "--consent"],),
    }
    for one in words[machine.agent.name]:
        done = machine.run([*command, *one], answer="y\n")
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["claude", "gemini", "opencode"])
def test_a_plugin_guards_and_records_the_agents_own_tools(name: str, tmp_path: Path) -> None:
    skip_slow_starter(name)
    agent: SetUp = next(one for one in AGENTS if one.name == name)
    package, program, group = agent.package
    with or_skip():
        command = node_program(package, program, group=group)
    machine = Machine(agent, tmp_path)
    tool, facts = agent.write
    own: Call = (
        tool,
        {key: text.replace("ROOT", str(machine.root)) for key, text in facts.items()},
    )
    secret: Call = (tool, {key: text.replace("own.txt", ".env") for key, text in own[1].items()})
    # Claude Code puts a plugin's name before those of its servers.
    called = "mcp__plugin_filepact_filepact__{}" if name == "claude" else agent.tool
    agent = replace(
        agent, words=tuple(one.replace("mcp__filepact", called[:-4]) for one in agent.words)
    )
    read: Call = (called.format("read_file"), {"path": "a.txt"})
    script = [secret, own, *([read] if name != "opencode" else [])]
    with ScriptedModel(script) as model:
        machine.settle(model.url)
        if name == "claude":
            # It installs nothing where its settings hold a comment.
            (machine.home / ".claude" / "settings.json").write_text("{}")
        install(machine, command)
        done = machine.run([*command, *agent.words], model.url)
    assert len(model.answers) == len(script), (
        model.tools,
        done.stdout[-3000:],
        done.stderr[-3000:],
    )
    assert not (machine.root / ".env").exists()
    assert (machine.root / "own.txt").read_text() == "own"
    if name != "opencode":
        assert "what the server reads" in model.answers[-1][1]
    log = machine.run([str(machine.program), "log", "--turns", "--no-pager"])
    assert "own.txt" in log.stdout, log.stderr
    undone = machine.run([str(machine.program), "undo", "--turn", "--unattended"])
    assert undone.returncode == 0, undone.stderr
    assert not (machine.root / "own.txt").exists()
    said = machine.run([str(machine.program), "setup", "--json"]).stdout
    assert '"guard": "own-tools"' in said
