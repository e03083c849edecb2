"""The plugins in `plugins`: what they bring is what `filepact setup` writes, with `filepact` from the PATH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filepact import VERSION
from filepact.values import replace
from filepact_setup.checks import check_agents
from filepact_setup.connections import connections
from filepact_setup.hook_command import with_paths_emptied
from filepact_setup.hosts import HOSTS, hook_wants
from tests.faces.line_client import serving

if TYPE_CHECKING:
    from tests.faces.command_line import CommandLine
    from tests.node_programs import Programs

PROJECT = Path(__file__).resolve().parents[2]
PLUGINS = PROJECT / "plugins"
BY_NAME = {one.name: one for one in HOSTS}


def read(path: str) -> Any:
    return json.loads((PLUGINS / path).read_text())


@pytest.mark.parametrize(
    ("name", "manifest", "servers"),
    [
        ("claude", "claude/.claude-plugin/plugin.json", "claude/.mcp.json"),
        ("gemini", "gemini/gemini-extension.json", "gemini/gemini-extension.json"),
    ],
)
def test_a_plugin_brings_the_server_and_the_hooks_of_setup(
    name: str, manifest: str, servers: str
) -> None:
    assert (read(manifest)["name"], read(manifest)["version"]) == ("filepact", VERSION)
    entry = with_paths_emptied({"command": "filepact", "args": ["mcp", "."]})
    assert set(entry["env"].values()) == {""}
    assert read(servers)["mcpServers"] == {"filepact": entry}
    hooks = BY_NAME[name].hooks
    assert hooks is not None
    file = replace(hooks.wanted()[0], path="the plugin filepact")
    wanted = hook_wants(hooks, file, ["filepact", "hook", name])
    assert read(f"{name}/hooks/hooks.json")["hooks"] == wanted["hooks"]


@pytest.mark.parametrize("servers", ["claude/.mcp.json", "gemini/gemini-extension.json"])
def test_the_server_of_a_plugin_imports_nothing_of_the_project(
    tmp_path: Path, servers: str
) -> None:
    root, mark = tmp_path / "p", tmp_path / "mark"
    (root / "src").mkdir(parents=True)
    for name in ("re", "csv", "usercustomize", "sitecustomize"):
        (root / "src" / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\nraise SystemExit\n")
    entry = read(servers)["mcpServers"]["filepact"]
    program = Path(sys.executable).with_name(entry["command"])
    options = {"cwd": root, "env": {**os.environ, "PYTHONPATH": "src", **entry["env"]}}
    words = (str(program), *entry["args"], "--state", str(tmp_path / "state"))
    with serving(*words, start=subprocess.Popen, **options) as (_, client):
        client.shake_hands()
        assert "re.py" in client.text("directory_tree")
    assert not mark.exists()


def test_the_plugin_of_opencode_is_the_one_that_setup_writes() -> None:
    hooks = BY_NAME["opencode"].hooks
    assert hooks is not None
    wanted = hook_wants(hooks, hooks.wanted()[0], ["filepact", "hook", "opencode"])
    text = (PLUGINS / "opencode" / "filepact.js").read_text()
    assert text.splitlines()[1:] == wanted.splitlines()[1:]


BOTH = """\
import { Filepact as first } from "./first.js"
import { Filepact as second } from "./second.js"
const shown = []
let refused = 0
const client = { tui: { showToast: async ({ body }) => shown.push(body.message) } }
const hooks = [await first({ client, directory: "." }), await second({ client, directory: "." })]
for (const id of ["1", "2"]) {
  const call = { tool: "read", sessionID: "s", callID: id, args: {} }
  for (const one of hooks) await one["tool.execute.before"](call, { args: {} }).catch(() => refused++)
  for (const one of hooks) await one["tool.execute.after"](call, { args: {} })
}
const idle = { type: "session.idle", properties: { sessionID: "s" } }
await Promise.all(hooks.map((one) => one.event({ event: idle })))
console.log(JSON.stringify([shown, refused]))
"""


def test_with_both_plugins_of_opencode_a_text_is_shown_once(
    programs: Programs, tmp_path: Path
) -> None:
    text = (PLUGINS / "opencode" / "filepact.js").read_text()
    for name in ("first.js", "second.js"):
        (tmp_path / name).write_text(text)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "both.js").write_text(BOTH)
    # There is no filepact on this path, which each event is told of.
    done = subprocess.run(
        [str(programs.node), str(tmp_path / "both.js")],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    shown, refused = json.loads(done.stdout)
    assert (len(shown), refused) == (3, 4)


def test_the_marketplace_of_claude_code_names_a_plugin_that_is_there() -> None:
    told = json.loads((PROJECT / ".claude-plugin" / "marketplace.json").read_text())
    (plugin,) = told["plugins"]
    assert (told["name"], plugin["name"]) == ("filepact", "filepact")
    assert (PROJECT / plugin["source"] / ".claude-plugin" / "plugin.json").is_file()


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("claude", ".claude/settings.json", '{"enabledPlugins": {"filepact@filepact": true}}'),
        ("gemini", ".gemini/extensions/filepact/gemini-extension.json", '{"name": "filepact"}'),
        (
            "opencode",
            ".config/opencode/plugin/filepact.js",
            (PLUGINS / "opencode" / "filepact.js").read_text(),
        ),
    ],
)
def test_an_agent_with_the_plugin_is_connected_and_guarded(
    cli: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    file: str,
    text: str,
) -> None:
    for variable in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = tmp_path / "home" / file
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    (found,) = (one for one in connections(cli.root, str(cli.state)) if one.host.name == name)
    assert (found.plugin, found.guard) == (False, None)
    path.write_text(text)
    (found,) = (one for one in connections(cli.root, str(cli.state)) if one.host.name == name)
    assert found.guard == "own-tools"
    # Of OpenCode it is the hooks alone, as `setup` writes them.
    assert (found.plugin, found.server) == ((name != "opencode",) * 2)
    # Its hooks are found on the search path.
    monkeypatch.setenv("PATH", str(tmp_path))
    found_all = check_agents(cli.root, ("--state", str(cli.state)), str(cli.state))
    check = {one.name: one.level for one in found_all}
    assert check[f"agent {name}"] == "warn"
