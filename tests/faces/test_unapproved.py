"""What a command does to control files and to Git's own: told at once, in the log, and taken back by a person."""

from __future__ import annotations

import json
import os
import random
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from filepact.app import open_workspace
from filepact.config.settings import Settings
from filepact.domain.operation import BY_NOBODY, Actor, Approval, Session
from filepact.domain.protected import is_bookkeeping, steers_git
from filepact.errors import FilepactError
from filepact.faces.hooks.agents import AGENTS
from filepact.faces.hooks.service import HookDaemon
from tests.faces.test_hooks import event, kinds, log, undo

PERSON = Session("p", Actor("person", "p"))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG_HOME", "CONFIG_DIRS"):
        monkeypatch.setenv(f"XDG_{name}", str(tmp_path / name))
    monkeypatch.delenv("FILEPACT_CONFIG", raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "p")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "p@example.org")
    made = tmp_path / "root"
    made.mkdir()
    (made / "a.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    (made / "AGENTS.md").write_text("one\ntwo\nthree\nfour\nfive\n")
    sh(made, "git init -q -b main && git add . && git commit -qm first")
    sh(made, "git remote add origin https://p:hunter2@example.org/x.git")
    return made


def sh(root: Path, command: str) -> None:
    subprocess.run(["/bin/sh", "-c", command], cwd=root, check=True, capture_output=True)


class Agent:
    """One that runs commands under hooks."""

    def __init__(self, root: Path, state: Path, name: str = "claude") -> None:
        self.root = root
        self.name = name
        self.daemon = HookDaemon((str(root),), str(state))
        self.calls = 0
        self._tell("SessionStart")

    def close(self) -> None:
        self.daemon.close()

    def run(self, command: str, judged: str = "true", tool: str = "Bash") -> dict[str, Any]:
        """What the program is answered after a command; ``judged`` is what it is asked about before."""
        self.calls += 1
        self._tell("PreToolUse", judged, tool)
        sh(self.root, command)
        return self._tell("PostToolUse", judged, tool)

    def _tell(self, name: str, command: str = "", tool: str = "Bash") -> dict[str, Any]:
        names = dict(
            zip(("SessionStart", "PreToolUse", "PostToolUse"), _EVENTS[self.name], strict=True)
        )
        data = json.loads(event(name, tool, f"t{self.calls}", command=command))
        data["hook_event_name"] = names[name]
        data |= {"conversation_id": "s1", "sessionId": "s1", "toolCallId": f"t{self.calls}"}
        answer = self.daemon.answer(self.name, json.dumps(data).encode(), names[name])
        return json.loads(answer.out or "{}") | ({"remark": answer.remark} if answer.remark else {})


_EVENTS = {
    **dict.fromkeys(("claude", "codex"), ("SessionStart", "PreToolUse", "PostToolUse")),
    "gemini": ("SessionStart", "BeforeTool", "AfterTool"),
    "opencode": ("session.created", "tool.execute.before", "tool.execute.after"),
    "copilot": ("sessionStart", "preToolUse", "postToolUse"),
    "cursor": ("sessionStart", "preToolUse", "postToolUse"),
}


@pytest.fixture
def agent(root, tmp_path):
    with closing(Agent(root, tmp_path / "state")) as made:
        yield made


def state(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file but what Git keeps for itself."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and (".git/" not in f"{name}/" or steers_git(name)):
            found[name] = path.read_bytes(), path.stat().st_mode & 0o777
    return found


PLANTED = [
    "echo x >> AGENTS.md",
    "rm AGENTS.md",
    "mkdir -p .github/workflows && echo on > .github/workflows/a.yml",
    "echo '{}' > package.json",
    "echo '[[deny]]' > .filepact.toml; echo 'paths = [\"x\"]' >> .filepact.toml",
    "printf '#!/bin/sh\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit",
    "mkdir -p .git/hooks/pre-commit.d && echo x > .git/hooks/pre-commit.d/a",
    "ln -s /tmp/evil .git/hooks/post-checkout",
    "git config core.fsmonitor /tmp/evil",
    "git config core.hooksPath /tmp/evil",
    "git config alias.st '!evil'",
    "git remote add evil 'ext::sh -c evil'",
    "git config filter.x.clean evil && echo '*.txt filter=x' > .git/info/attributes",
    "echo 'a.txt' >> .git/info/exclude",
    "mkdir -p sub && echo 'gitdir: /tmp/evil' > sub/.git",
    "git init -q deep/sub && git -C deep/sub config core.pager evil",
    "mkdir -p .git/modules/x/hooks && touch .git/modules/x/HEAD && echo x > .git/modules/x/hooks/pre-push",
    "echo /tmp/evil > .git/commondir && rm .git/commondir && echo /tmp/e > .git/config.worktree",
    "rm .git/config",
]


@pytest.mark.parametrize("command", PLANTED)
def test_a_command_that_changes_what_steers_or_runs_is_told_and_taken_back(
    root, tmp_path, agent, command
):
    before = state(root)
    told = agent.run(command)["systemMessage"]
    (operation,) = [one for one in log(root, tmp_path) if one.tool == "Bash"]
    assert operation.was_unasked
    assert operation.id in told
    assert all(change.retraceable for change in operation.changes.changes)
    undo(root, tmp_path, operation)
    after = state(root)
    if "git init" in command:
        after.pop("deep/sub/.git/info/exclude")
    assert after == before
