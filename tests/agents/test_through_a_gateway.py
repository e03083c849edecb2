"""An agent that nobody here wrote logs its user in at an issuer, and edits a file through `filepact serve`."""

from __future__ import annotations

import os
import re
import subprocess
import urllib.request
from threading import Timer
from typing import TYPE_CHECKING

import pytest

from tests.agents.hosts import HOSTS
from tests.agents.installed import MissingError
from tests.agents.model import ScriptedModel
from tests.faces.gateway.issuer import Issuer
from tests.faces.gateway.running import RunningGateway
from tests.forked import run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow(after=1), pytest.mark.timeout(600)]

PATIENCE = 120
SETTINGS = """
model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
mcp_oauth_credentials_store = "file"
[model_providers.scripted]
name = "scripted"
base_url = "{model}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
[mcp_servers.filepact]
required = true
url = "http://{gateway}/mcp"
"""


@pytest.fixture
def codex() -> list[str]:
    (host,) = (one for one in HOSTS if one.name == "codex")
    try:
        return host.command()
    except MissingError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


def log_in(command: list[str], environment: dict[str, str]) -> str:
    """Have it log in, with a person who opens the page that it names; what it said."""
    process = subprocess.Popen(
        [*command, "mcp", "login", "filepact"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    late = Timer(PATIENCE, process.kill)
    late.start()
    said = ""
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            said += line
            page = re.search(r"http://127\.0\.0\.1:\d+/authorize\S*", line)
            if page is not None:
                with urllib.request.urlopen(page[0], timeout=PATIENCE) as answer:  # noqa: S310 - loopback
                    answer.read()
    late.cancel()
    assert process.returncode == 0, said
    return said


def test_codex_logs_its_user_in_and_edits_a_file(codex: list[str], tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "agent"
    (home / ".codex").mkdir(parents=True)
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n")
    issuer = Issuer()
    serve = f'[serve]\nissuer = "{issuer.url}"\nscopes = ["files"]\n'
    gateway = RunningGateway(tmp_path, [str(root)], settings=serve)
    change: dict[str, object] = {"path": "a.txt", "old_string": "two", "new_string": "2"}
    environment = {
        "HOME": str(home),
        "CODEX_HOME": str(home / ".codex"),
        "TMPDIR": str(home),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "SCRIPTED_KEY": "none",
    }
    try:
        with ScriptedModel([("mcp__filepact.edit_file", change)]) as model:
            settings = SETTINGS.format(model=model.url, gateway=gateway.address)
            (home / ".codex/config.toml").write_text(settings)
            log_in(codex, environment)
            done = subprocess.run(
                [*codex, "exec", "--skip-git-repo-check", "--json", "go"],
                cwd=root,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
            )
            assert len(model.answers) == 1, (model.tools, done.stdout, done.stderr)
            assert "Done: edit a.txt" in model.answers[0][1]
        assert (root / "a.txt").read_text() == "one\n2\n"
        # It was told by the gateway where to go, registered itself there, and came back with a code.
        assert {"/register", "/authorize", "/token", "/keys"} <= set(issuer.asked)
        state = ["--state", str(tmp_path / "state"), "--root", str(root)]
        shown = run([*state, "log"], capture_output=True).stdout.decode()
        assert "codex" in shown.lower()
        operation = re.findall(r"Operation (\w+)", model.answers[0][1])[0]
        shown = run([*state, "show", operation], capture_output=True).stdout.decode()
        assert "for ann" in shown
    finally:
        assert gateway.end() == 0
        issuer.end()
