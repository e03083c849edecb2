"""A real agent program that nobody here wrote works through `filepact mcp`, offline.

Gemini CLI is driven by a scripted model on loopback: it reads, edits, writes and searches a real
repository (a copy of a small installed package) with filepact's tools and nothing else.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import iniconfig
import pytest

from tests.agents.model import ScriptedModel

if TYPE_CHECKING:
    from tests.node_programs import Programs

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    shutil.copytree(
        Path(iniconfig.__file__).parent, root, ignore=shutil.ignore_patterns("__pycache__")
    )
    notes = root / "NOTES.txt"
    notes.write_bytes(b"first\r\nsecond\r\n")
    return root


def run_agent(
    programs: Programs, root: Path, home: Path, script: list[tuple[str, dict[str, object]]]
) -> tuple[ScriptedModel, dict[str, object]]:
    """Let the agent carry out a script on a folder; the model it spoke to and its own report."""
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "mcpServers": {
            "filepact": {
                "command": sys.executable,
                "args": ["-m", "filepact", "mcp", str(root), "--state", str(home / "state")],
                "trust": True,
            }
        },
    }
    (home / ".gemini").mkdir(parents=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    with ScriptedModel(script) as model:
        environment = programs.environment(home) | {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": model.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }
        done = subprocess.run(
            [
                *programs.command("@google/gemini-cli", "bundle/gemini.js"),
                *("-p", "go", "-m", "gemini-2.5-pro", "--approval-mode", "yolo", "-o", "json"),
            ],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=270,
        )
    assert done.returncode == 0, done.stderr
    return model, json.loads(done.stdout)


def test_an_agent_reads_edits_writes_and_searches_and_a_person_takes_it_back(
    programs: Programs, repository: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    before = {path.name: path.read_bytes() for path in repository.iterdir()}
    model, report = run_agent(
        programs,
        repository,
        home,
        [
            ("mcp_filepact_read_file", {"path": "NOTES.txt"}),
            (
                "mcp_filepact_edit_file",
                {"path": "NOTES.txt", "old_string": "second", "new_string": "second\nthird"},
            ),
            ("mcp_filepact_write_file", {"path": "NEW.md", "content": "# new\n"}),
            ("mcp_filepact_grep", {"pattern": "class .*Error", "glob": "*.py"}),
            ("mcp_filepact_read_file", {"path": "../home/.gemini/settings.json"}),
        ],
    )
    tools = report["stats"]["tools"]  # type: ignore[index]
    assert tools["totalCalls"] == 5
    assert tools["totalFail"] == 1
    read, edit, write, grep, refused = (answer for _, answer in model.answers)
    assert "1\u2502first" in read
    assert "Done: edit NOTES.txt" in edit
    assert "Done: create NEW.md" in write
    assert "exceptions.py:" in grep
    assert "PATH_BLOCKED" in refused
    assert (repository / "NOTES.txt").read_bytes() == b"first\r\nsecond\r\nthird\r\n"
    assert (repository / "NEW.md").read_text() == "# new\n"

    for _ in range(2):
        subprocess.run(
            [
                *(sys.executable, "-m", "filepact", "undo", "--unattended"),
                *("--root", str(repository), "--state", str(home / "state")),
            ],
            check=True,
            capture_output=True,
        )
    after = {path.name: path.read_bytes() for path in repository.iterdir()}
    assert after == before
