"""Agents that nobody here wrote, connected to `filepact serve` as the how-to says, log their user in and edit a file."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from gateway_logins import PATIENCE, GuardedGateway, commands, follow, settings
from tests.agents.hosts import HOSTS, Host
from tests.agents.installed import or_skip
from tests.agents.model import ScriptedModel
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow(after=1), pytest.mark.timeout(600)]

MODEL = """model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
mcp_oauth_credentials_store = "file"
[model_providers.scripted]
name = "scripted"
base_url = "{model}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
"""
"""What Codex has to know of its model, and that the machine of the tests has no keychain."""


@dataclass(frozen=True)
class Way:
    """How one agent comes to be connected.

    Attributes:
        title: Of the section of the how-to.
        host: The agent.
        document: The address of what its makers say of it; empty where it registers itself.
        back: Where it comes back to after a login, as they say there.
        user: Who it works for then.
    """

    title: str
    host: str
    document: str = ""
    back: str = ""
    user: str = "ann"


WAYS = (
    Way("Claude Code", "claude-code"),
    Way("Codex", "codex"),
    Way("Gemini CLI", "gemini-cli"),
    Way(
        "Claude Code",
        "claude-code",
        "https://claude.ai/oauth/claude-code-client-metadata",
        "http://localhost/callback",
    ),
    Way(
        "Codex", "codex", "https://chatgpt.com/oauth/codex/client.json", "http://127.0.0.1/callback"
    ),
    Way("Claude Code with a token", "claude-code", user="token:ci"),
    Way("Codex with a token", "codex", user="token:ci"),
)

SOME = WAYS[:: often(3, 1)]
"""A registration, a document and a token here; every agent in each of its ways in the sweeps."""


@pytest.fixture(
    params=SOME, ids=[f"{way.title}{' by its document' * bool(way.document)}" for way in SOME]
)
def way(request: pytest.FixtureRequest) -> Way:
    chosen: Way = request.param
    with or_skip():
        host_of(chosen).command()
    return chosen


def host_of(way: Way) -> Host:
    (host,) = (one for one in HOSTS if one.name == way.host)
    return host


def environment_of(host: Host, home: Path, model: str, token: str) -> dict[str, str]:
    own = {
        name: value.replace("HOME", str(home)).replace("URL", model)
        for name, value in host.environment.items()
    }
    return {
        "HOME": str(home),
        "TMPDIR": str(home),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "FILEPACT_TOKEN": token,
        # It starts itself a second time otherwise, with more memory.
        "GEMINI_CLI_NO_RELAUNCH": "true",
        **own,
    }


def write_settings(host: Host, home: Path, model: str, url: str) -> None:
    """What the agent has to know besides the commands."""
    if host.name == "codex":
        (home / ".codex").mkdir()
        (home / ".codex/config.toml").write_text(MODEL.format(model=model))
    elif host.name == "gemini-cli":
        (home / ".gemini").mkdir()
        usual = host.settings[".gemini/settings.json"]
        assert isinstance(usual, dict)
        merged = {**usual, **settings("Gemini CLI", url)}
        (home / ".gemini/settings.json").write_text(json.dumps(merged))


WORDS = {
    "claude-code": (
        *("-p", "go", "--model", "claude-sonnet-4-5", "--output-format", "json"),
        *("--allowedTools", "mcp__filepact"),
    )
}
"""What has an agent begin, where it is not as with a server on the same machine."""


def test_an_agent_connects_as_the_how_to_says_and_edits_a_file(way: Way, tmp_path: Path) -> None:
    host, home = host_of(way), tmp_path / "agent"
    home.mkdir()
    change: dict[str, object] = {"path": "a.txt", "old_string": "two", "new_string": "2"}
    script = [*host.calls("read_file", {"path": "a.txt"}), *host.calls("edit_file", change)]
    with GuardedGateway(tmp_path) as guarded, ScriptedModel(script) as model:
        (guarded.root / "a.txt").write_text("one\ntwo\n")
        issuer = guarded.issuer
        if way.document:
            # As an issuer has it that has fetched it before; the tests ask nobody outside this machine.
            known = {"client_name": way.host, "redirect_uris": [way.back]}
            issuer.clients[way.document] = {"client_id": way.document, **known}
            issuer.documents, issuer.registers = True, False
        environment = environment_of(host, home, model.url, guarded.token)
        write_settings(host, home, model.url, guarded.url)
        for words in commands(way.title, host.command(), guarded.url, guarded.token):
            said = follow(words, environment, guarded.root)
        if way.host == "claude-code":
            assert "Connected" in said
        if way.host == "gemini-cli":
            # It logs its user in when it first needs the server, and asks whether it may.
            follow([*host.command(), *host.words], environment, guarded.root)
        else:
            done = subprocess.run(
                [*host.command(), *WORDS.get(host.name, host.words)],
                cwd=guarded.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
            )
            assert len(model.answers) == 2, (model.tools, done.stdout, done.stderr)
        assert "two" in model.answers[0][1]
        assert "Done: edit a.txt" in model.answers[1][1]
        assert (guarded.root / "a.txt").read_text() == "one\n2\n"
        if way.user == "ann":
            # It was told by the gateway where to go, was known there, and came back with a code.
            assert {"/authorize", "/token", "/keys"} <= set(issuer.asked)
            assert ("/register" in issuer.asked) is not bool(way.document)
            assert issuer.issued[0]["resource"] == guarded.url
        else:
            assert "/authorize" not in issuer.asked
        (operation,) = re.findall(r"Operation (\w+)", model.answers[1][1])
        assert f"for {way.user}" in guarded.says("show", operation)
