"""Which doors agents use, told to people."""

import json
import subprocess
import sys
from pathlib import Path

AGENT = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    info = {"name": "@google/gemini-cli", "version": "9"}
    print("a stray word")
    print(json.dumps({"id": asked["id"], "result": {"protocolVersion": 1, "agentInfo": info}}))
    sys.stdout.flush()
"""
DOC = Path(__file__).parents[4] / "docs" / "reference" / "agents.md"


def explain(*words):
    command = [sys.executable, "-m", "filepact", "acp", "--explain", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_all_agents_that_are_known_are_listed():
    assert "gemini-cli" in explain().stdout
    agents = json.loads(explain("--json").stdout)["agents"]
    assert agents["claude-agent-acp"]["reads"] == "no"


def test_the_page_about_agents_tells_of_the_same_ones_in_the_same_versions():
    page = DOC.read_text().lower().replace("kimi code", "kimi-code")
    for name, one in json.loads(explain("--json").stdout)["agents"].items():
        assert f"| {name} | {one['version']} |" in page


def test_an_agent_is_started_and_asked_who_it_is():
    said = explain("--", sys.executable, "-c", AGENT).stdout
    assert said.startswith("@google/gemini-cli 9, protocol version 1")
    assert "read by its client: in part" in said


def test_a_program_that_is_no_agent_is_said():
    done = explain("--", sys.executable, "-c", "pass")
    assert done.returncode == 1
    assert "did not say who it is" in done.stderr
