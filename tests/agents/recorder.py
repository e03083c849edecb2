"""Records what agents' programs send to their hooks: `python -m tests.agents.recorder` writes ``events.jsonl``.

Each program calls every tool that it has, as far as a scripted model can call it, and those of a foreign
MCP server.  What differs from one run to the next (names of folders, sessions, calls, times) is replaced;
the rest stands as it was sent.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.agents.hooked import HOOKED, Hooked, drive
from tests.agents.installed import node_program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.agents.model import Call

__all__ = ["CLAUDE_TOOLS", "EVENTS", "SEARCH", "record"]

EVENTS: Final = Path(__file__).with_name("events.jsonl")

_TAKE: Final = """\
import json, os, sys
text = sys.stdin.read()
event = sys.argv[sys.argv.index("--event") + 1] if "--event" in sys.argv else ""
variables = {n: v for n, v in os.environ.items() if n.endswith("_PROJECT_DIR")}
line = json.dumps({"option": event, "variables": variables, "sent": json.loads(text)})
with open(LOG, "a") as log:
    log.write(line + chr(10))
"""
"""A hook that has nothing against anything."""

_SUB: Final = "SUBSCRIPT"
"""In a prompt: the part of an agent that a main agent starts."""


_AS: Final = ("-c", "user.name=a", "-c", "user.email=a@b")
_PICTURE: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a49"
    "444154789c636000000002000148afa4710000000049454e44ae426082"
)
_NOTEBOOK: Final = json.dumps(
    {
        "cells": [
            {
                "cell_type": "code",
                "id": "c1",
                "source": ["print(1)"],
                "metadata": {},
                "outputs": [],
                "execution_count": None,
            }
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
)
SEARCH: Final = "vendor/x86_64-unknown-linux-musl/codex-path/rg"
"""What OpenCode searches with, and would fetch."""
_LONGEST: Final = 300
_SAME: Final = {
    "transcriptpath": "/home/person/transcript.jsonl",
    "agenttranscriptpath": "/home/person/agent.jsonl",
    **dict.fromkeys(("timestamp", "durationms", "totaldurationms", "totaltokens"), 1),
}
"""What a field holds that holds something else in every run."""
_DATES: Final = re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z?")
_IDS: Final = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b(?:ses|msg|prt)_\w{20,}"
)

CLAUDE_TOOLS: Final = (
    "Agent,Bash,CronList,Edit,EnterWorktree,ExitWorktree,Glob,Grep,Monitor,NotebookEdit,Read,"
    "Skill,TaskCreate,TaskList,TaskUpdate,WebFetch,WebSearch,Write"
)
"""It offers two of them only where they are named."""
_WORDS: Final = {
    "claude": (
        *("-p", "go", "--model", "claude-sonnet-4-5", "--output-format", "json"),
        *("--tools", CLAUDE_TOOLS, "--allowedTools", f"{CLAUDE_TOOLS},mcp__files"),
    ),
}
_MORE_EVENTS: Final = ("SubagentStart", "SubagentStop", "CwdChanged", "PermissionRequest")


def _claude_hooks(command: str) -> object:
    found = dict(next(one for one in HOOKED if one.name == "claude").hooks(command))
    return {**found, **dict.fromkeys(_MORE_EVENTS, found["SessionStart"])}


_HOOKS: Final = {"claude": _claude_hooks}


def _claude(root: str) -> Iterator[Call]:
    yield "Read", {"file_path": f"{root}/a.txt"}
    yield "Read", {"file_path": f"{root}/a.txt", "offset": 1, "limit": 1}
    yield "Grep", {"pattern": "one", "path": root, "output_mode": "content"}
    yield "Grep", {"pattern": "one", "glob": "*.{txt,md}", "-i": True}
    yield "Grep", {"pattern": "one", "type": "py", "path": f"{root}/src"}
    yield "Glob", {"pattern": "**/*.txt"}
    yield "Glob", {"pattern": "*", "path": f"{root}/src"}
    yield "Edit", {"file_path": f"{root}/a.txt", "old_string": "one", "new_string": "ONE"}
    yield "Write", {"file_path": f"{root}/new.txt", "content": "new\n"}
    yield "Read", {"file_path": f"{root}/n.ipynb"}
    cell = {"cell_id": "c1", "new_source": "print(2)", "cell_type": "code"}
    yield "NotebookEdit", {"notebook_path": f"{root}/n.ipynb", **cell}
    yield "Bash", {"command": "cat a.txt > b.txt && ls | head -1", "description": "Copy"}
    yield "Bash", {"command": "false", "description": "Fail"}
    yield "Bash", {"command": "sleep 1; echo late > late.txt", "run_in_background": True}
    yield "Bash", {"command": "cd src && pwd", "description": "Go down"}
    yield "Read", {"file_path": "a.txt"}
    yield "Monitor", {"description": "Wait", "timeout_ms": 1000, "command": "echo seen"}
    yield "TaskCreate", {"subject": "Work", "description": "Some work"}
    yield "TaskUpdate", {"taskId": "1", "status": "completed"}
    yield "TaskList", {}
    yield "Skill", {"skill": "no-such-skill"}
    yield "CronList", {}
    yield "WebFetch", {"url": "http://127.0.0.1:9/", "prompt": "Read"}
    yield "WebSearch", {"query": "anything"}
    prompt = {"prompt": _SUB, "subagent_type": "general-purpose"}
    yield "Agent", {"description": "Look", **prompt, "run_in_background": False}
    yield "EnterWorktree", {"name": "side"}
    yield "Bash", {"command": "pwd; echo x > in-side.txt", "description": "Where"}
    yield "Write", {"file_path": "relative.txt", "content": "in the worktree\n"}
    yield "ExitWorktree", {"action": "remove", "discard_changes": True}


def _claude_sub(root: str) -> Iterator[Call]:
    yield "Read", {"file_path": f"{root}/src/b.py"}
    yield "Bash", {"command": "echo sub > sub.txt", "description": "Write"}


def _codex(root: str) -> Iterator[Call]:
    yield "exec_command", {"cmd": "cat a.txt"}
    yield "exec_command", {"cmd": "grep -rn one .", "workdir": f"{root}/src", "login": False}
    yield "exec_command", {"cmd": "false"}
    yield "exec_command", {"cmd": "sh", "tty": True, "yield_time_ms": 250}
    session = re.compile(r"session ID (\d+)")
    yield (
        "write_stdin",
        {"session_id": session, "chars": "echo typed > typed.txt; exit\n", "yield_time_ms": 250},
    )
    yield "exec_command", {"cmd": "sleep 2; echo late > late.txt", "yield_time_ms": 250}
    yield _patch(f"*** Add File: {root}/new.txt\n+new")
    yield _patch("*** Update File: a.txt\n@@\n-one\n+ONE")
    yield _patch("*** Update File: a.txt\n*** Move to: c.txt\n@@\n-two\n+TWO")
    yield _patch("*** Delete File: new.txt")
    heredoc = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: h.txt\n+h\n*** End Patch\nEOF"
    yield "exec_command", {"cmd": heredoc}
    yield "exec_command", {"cmd": "cd src && cat ../c.txt > d.txt"}
    yield "view_image", {"path": f"{root}/p.png"}
    yield "update_plan", {"plan": [{"step": "Work", "status": "pending"}]}
    yield "request_user_input", {"questions": []}
    yield "multi_agent_v1.spawn_agent", {"message": _SUB}
    yield "multi_agent_v1.list_agents", {}
    yield "get_goal", {}


def _patch(parts: str, name: str = "input") -> Call:
    return ("apply_patch", {name: f"*** Begin Patch\n{parts}\n*** End Patch"})


def _codex_sub(_root: str) -> Iterator[Call]:
    yield "exec_command", {"cmd": "echo sub > sub.txt"}


def _gemini(root: str) -> Iterator[Call]:
    yield "read_file", {"file_path": "a.txt"}
    yield "read_file", {"file_path": f"{root}/a.txt", "start_line": 1, "end_line": 1}
    yield "list_directory", {"dir_path": root}
    yield "list_directory", {"dir_path": "src", "ignore": ["*.pyc"]}
    yield "grep_search", {"pattern": "one"}
    yield "grep_search", {"pattern": "one", "dir_path": "src", "include_pattern": "*.{py,txt}"}
    yield "grep_search", {"pattern": "one", "exclude_pattern": ".*", "names_only": True}
    yield "glob", {"pattern": "**/*.txt"}
    yield "glob", {"pattern": "*", "dir_path": "src", "respect_git_ignore": False}
    change = {"old_string": "one", "new_string": "ONE", "instruction": "Change it"}
    yield "replace", {"file_path": f"{root}/a.txt", **change}
    yield "write_file", {"file_path": "new.txt", "content": "new\n"}
    yield "run_shell_command", {"command": "cat a.txt > b.txt", "description": "Copy"}
    yield "run_shell_command", {"command": "false"}
    yield "run_shell_command", {"command": "pwd", "dir_path": "src"}
    yield "run_shell_command", {"command": "sleep 1; echo late > l.txt", "is_background": True}
    yield "list_background_processes", {}
    yield "write_todos", {"todos": [{"description": "Work", "status": "pending"}]}
    yield "update_topic", {"title": "T", "summary": "S", "strategic_intent": "I"}
    yield "web_fetch", {"prompt": "Read http://127.0.0.1:9/"}
    yield "google_web_search", {"query": "anything"}
    yield "activate_skill", {"name": "no-such-skill"}
    yield "invoke_agent", {"agent_name": "generalist", "prompt": _SUB}


def _gemini_sub(_root: str) -> Iterator[Call]:
    yield "run_shell_command", {"command": "echo sub > sub.txt"}
    yield "complete_task", {"response": "done", "result": "done"}


def _opencode(root: str) -> Iterator[Call]:
    yield "read", {"filePath": f"{root}/a.txt"}
    yield "read", {"filePath": "a.txt", "offset": 1, "limit": 1}
    yield "read", {"filePath": f"{root}/src"}
    yield "grep", {"pattern": "one"}
    yield "grep", {"pattern": "one", "path": f"{root}/src", "include": "*.{py,txt}"}
    yield "glob", {"pattern": "**/*.txt"}
    yield "glob", {"pattern": "*", "path": f"{root}/src"}
    yield "edit", {"filePath": f"{root}/a.txt", "oldString": "one", "newString": "ONE"}
    yield "write", {"filePath": f"{root}/new.txt", "content": "new\n"}
    yield "bash", {"command": "cat a.txt > b.txt", "description": "Copy"}
    yield "bash", {"command": "false"}
    yield "bash", {"command": "pwd", "workdir": f"{root}/src"}
    yield "bash", {"command": "(sleep 1; echo late > late.txt) >/dev/null 2>&1 &"}
    yield "todowrite", {"todos": [{"content": "Work", "status": "pending", "priority": "low"}]}
    yield "webfetch", {"url": "http://127.0.0.1:9/", "format": "text"}
    yield "skill", {"name": "no-such-skill"}
    yield "task", {"description": "Look", "prompt": _SUB, "subagent_type": "general"}


def _opencode_sub(root: str) -> Iterator[Call]:
    yield "read", {"filePath": f"{root}/src/b.py"}
    yield "bash", {"command": "echo sub > sub.txt"}


def _opencode_patches(root: str) -> Iterator[Call]:
    yield _patch(f"*** Add File: {root}/new.txt\n+new", "patchText")
    yield _patch("*** Update File: a.txt\n*** Move to: c.txt\n@@\n-two\n+TWO", "patchText")


def _copilot(root: str) -> Iterator[Call]:
    yield "view", {"path": f"{root}/a.txt"}
    yield "view", {"path": f"{root}/a.txt", "view_range": [1, 1]}
    yield "view", {"path": f"{root}/src"}
    yield "grep", {"pattern": "one"}
    yield "grep", {"pattern": "one", "paths": f"{root}/src", "glob": "*.py", "-n": True}
    yield "grep", {"pattern": "one", "paths": [root], "output_mode": "content"}
    yield "glob", {"pattern": "**/*.txt"}
    yield "glob", {"pattern": "*", "paths": f"{root}/src"}
    yield "edit", {"path": f"{root}/a.txt", "old_str": "one", "new_str": "ONE"}
    yield "create", {"path": f"{root}/new.txt", "file_text": "new\n"}
    yield "bash", {"command": "cat a.txt > b.txt", "description": "Copy"}
    yield "bash", {"command": "false", "description": "Fail"}
    yield "bash", {"command": "cd src && pwd", "description": "Go down"}
    wait = {"description": "Wait", "mode": "async", "shellId": "s1"}
    yield "bash", {"command": "sleep 1; echo late > late.txt", **wait}
    yield "read_bash", {"shellId": "s1", "delay": 2}
    apart = {"description": "Apart", "mode": "async", "detach": True}
    yield "bash", {"command": "sleep 1; echo apart > apart.txt", **apart}
    yield "list_bash", {}
    yield "sql", {"description": "Look", "query": "select 1"}
    yield "skill", {"skill": "no-such-skill"}
    yield "fetch_copilot_cli_documentation", {}
    prompt = {"prompt": _SUB, "agent_type": "general-purpose", "name": "look"}
    yield "task", {"description": "Look", **prompt, "mode": "sync"}
    yield "list_agents", {}


def _copilot_sub(root: str) -> Iterator[Call]:
    yield "view", {"path": f"{root}/src/b.py"}
    yield "bash", {"command": "echo sub > sub.txt", "description": "Write"}


_SCRIPTS: Final = {
    "claude": (_claude, _claude_sub, "mcp__files__{}"),
    "codex": (_codex, _codex_sub, "mcp__files.{}"),
    "gemini": (_gemini, _gemini_sub, "mcp_files_{}"),
    "opencode": (_opencode, _opencode_sub, "files_{}"),
    "copilot": (_copilot, _copilot_sub, "files-{}"),
}


def _foreign(name: str, root: str) -> Iterator[Call]:
    """Calls of a server that is not ours."""
    yield name.format("read_text_file"), {"path": f"{root}/a.txt"}
    yield name.format("write_file"), {"path": f"{root}/m.txt", "content": "m\n"}
    yield name.format("move_file"), {"source": f"{root}/m.txt", "destination": f"{root}/o.txt"}
    yield name.format("read_multiple_files"), {"paths": [f"{root}/a.txt", f"{root}/o.txt"]}
    yield name.format("search_files"), {"path": root, "pattern": "*.txt"}


def _servers(agent: Hooked, root: Path) -> Mapping[str, Any]:
    """The settings file of an agent with a foreign server besides."""
    words = [*node_program("@modelcontextprotocol/server-filesystem", "dist/index.js"), str(root)]
    command = {"command": words[0], "args": words[1:]}
    name = next(iter(agent.settings))
    if agent.name == "claude":
        return {".claude/.claude.json": {"mcpServers": {"files": {"type": "stdio", **command}}}}
    if agent.name == "copilot":
        server = {"type": "local", "tools": ["*"], **command}
        return {".copilot/mcp-config.json": {"mcpServers": {"files": server}}}
    if agent.name == "codex":
        return {
            name: f"{agent.settings[name]}[mcp_servers.files]\ncommand = {json.dumps(words[0])}\n"
            f"args = {json.dumps(words[1:])}\n"
        }
    settings: Any = agent.settings[name]
    if agent.name == "gemini":
        return {name: {**settings, "mcpServers": {"files": command}}}
    return {name: {**settings, "mcp": {"files": {"type": "local", "command": words}}}}


def record(agent: Hooked, folder: Path, *, patches: bool = False) -> Iterator[dict[str, Any]]:
    """What an agent's program sends, an event each, without what is this run's alone.

    Args:
        agent: The agent.
        patches: Whether OpenCode has a model that it gives its tool for patches instead of two others.
        folder: An empty folder for all of it.
    """
    root, home, log = folder / "project", folder / "home", folder / "log"
    (root / "src").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "src" / "b.py").write_text("one = 1\n")
    (root / "p.png").write_bytes(_PICTURE)
    (root / "n.ipynb").write_text(_NOTEBOOK)
    for words in (["init", "-q"], ["add", "-A"], [*_AS, "commit", "-qm", "start"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    take = folder / "take.py"
    take.write_text(_TAKE.replace("LOG", repr(str(log))))
    main, sub, names = _SCRIPTS[agent.name]
    script = [*_foreign(names, str(root)), *main(str(root))]
    settings = {**agent.settings, **_servers(agent, root)}
    if patches:
        script = [*_opencode_patches(str(root))]
        settings = json.loads(json.dumps(settings).replace("scripted/scripted", "scripted/gpt-5"))
        provider = settings[next(iter(settings))]["provider"]["scripted"]
        provider["models"] = {"gpt-5": {"tool_call": True}}
    search = Path(node_program("@openai/codex-linux-x64", SEARCH, group="hosts")[0]).parent
    chosen = replace(
        agent,
        words=_WORDS.get(agent.name, agent.words),
        settings=settings,
        environment={**agent.environment, "PATH": f"{search}:/usr/local/bin:/usr/bin:/bin"},
        hooks=_HOOKS.get(agent.name, agent.hooks),
    )
    hook = shlex.join([sys.executable, str(take)])
    shown = drive(chosen, root, home, script, hook=hook, aside={_SUB: list(sub(str(root)))})
    for (tool, _), answer in zip(script, shown, strict=True):
        print(f"{agent.name} {tool}: {answer[:150]!r}", file=sys.stderr)
    known: dict[str, str] = {}
    for line in log.read_text().splitlines():
        yield {"agent": agent.name, **_stripped(json.loads(line), folder, known)}


def _stripped(value: Any, folder: Path, known: dict[str, str]) -> Any:
    """A value with the same names in every run."""
    if isinstance(value, dict):
        return {
            name: _SAME.get(name.lower().replace("_", "")) or _stripped(one, folder, known)
            for name, one in value.items()
        }
    if isinstance(value, list):
        return [_stripped(one, folder, known) for one in value]
    if not isinstance(value, str):
        return value
    for place, name in ((sys.prefix, "/usr"), (str(EVENTS.parents[2]), "/opt")):
        value = value.replace(place, name)
    value = value.replace(str(folder), "/home/person").replace("/home/person/home", "/home/person")
    value = value.replace(re.sub(r"\W", "-", str(folder)), "-home-person")[:_LONGEST]
    value = _DATES.sub("2026-01-01T00:00:00Z", value)
    return _IDS.sub(lambda found: known.setdefault(found[0], f"id-{len(known)}"), value)


def main() -> None:
    """Write what all programs send."""
    chosen = sys.argv[1:]
    kept = (
        [
            line
            for line in EVENTS.read_text().splitlines(keepends=True)
            if chosen and json.loads(line)["agent"] not in chosen
        ]
        if EVENTS.exists()
        else []
    )
    for agent in HOOKED:
        if chosen and agent.name not in chosen:
            continue
        found: list[dict[str, Any]] = []
        for patches in (False, True)[: 1 + (agent.name == "opencode")]:
            with tempfile.TemporaryDirectory() as folder:
                found += record(agent, Path(folder).resolve(), patches=patches)
        print(f"{agent.name}: {len(found)} events", file=sys.stderr)
        kept += [json.dumps(one, ensure_ascii=False) + "\n" for one in found]
    EVENTS.write_text("".join(kept))


if __name__ == "__main__":
    main()
