"""A person is a person: what an agent's program calls decides nothing, in whatever way it does so."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_workspace
from filepact.domain.operation import NOBODY_LOOKED, Actor, Session
from filepact.domain.person import (
    AGENT_VARIABLES,
    DECIDING,
    Ancestor,
    beyond_host,
    caller,
    decides,
    host_among,
)
from filepact_cli.main import build_parser
from filepact_cli.parser import OLD_NAMES
from filepact_setup.hosts import HOSTS as TO_SET_UP
from tests.terminal import on_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faces.command_line import CommandLine

FILEPACT = f"{shlex.quote(sys.executable)} -m filepact"
PROGRAM = f"""#!{sys.executable}
import subprocess, sys
for command in sys.argv[1:]:
    code = subprocess.run(["/bin/sh", "-c", command]).returncode
sys.exit(code)
"""
EVENT = {
    "session_id": "s",
    "hook_event_name": "PreToolUse",
    "tool_name": "Read",
    "tool_input": {"file_path": "windows.txt"},
}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "helper", "version": "1"},
    },
}

linux = pytest.mark.skipif(sys.platform != "linux", reason="what is above is read from /proc")


@pytest.fixture
def place(cli: CommandLine) -> Iterator[CommandLine]:
    yield cli
    for lock in (cli.state / "hooks").glob("*.lock"):
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(lock.read_text()), signal.SIGTERM)


def program(folder: Path, name: str) -> Path:
    """A program with that name, which has a shell carry out each of its words."""
    file = folder / name
    file.write_text(PROGRAM)
    file.chmod(0o755)
    return file


def does(file: Path, *commands: str) -> subprocess.CompletedProcess[str]:
    """What becomes of commands below a program."""
    return subprocess.run(
        [file, *commands],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )


def calls_hook(root: Path, name: str = "PreToolUse") -> str:
    event = json.dumps({**EVENT, "hook_event_name": name, "cwd": str(root)})
    return f"printf %s {shlex.quote(event)} | {FILEPACT} hook claude"


def starts_server(root: Path) -> str:
    return (
        f"printf '%s\\n' {shlex.quote(json.dumps(HELLO))} | {FILEPACT} mcp {shlex.quote(str(root))}"
    )


def propose(cli: CommandLine, text: str = "new\n") -> str:
    with (
        open_workspace([str(cli.root)], state_dir=str(cli.state), mode="preview") as workspace,
        workspace.draft(Session("s", Actor("agent", "robot", "9")), "write_file") as draft,
    ):
        draft.write(draft.open("proposed.txt"), text)
        return str(workspace.submit(draft, "create proposed.txt").operation)


def waits(cli: CommandLine) -> list[str]:
    return [one["id"] for one in cli.json("pending")["pending"]]


WAYS = {
    "plainly": "{filepact} approve --unattended {change}",
    "by a terminal of its own": "printf 'y\\ny\\n' | script -qec '{filepact} approve {change}' /dev/null",
    "in a session of its own": "setsid -w {filepact} approve --unattended {change}",
    "without hanging up": "nohup {filepact} approve --unattended {change}",
    "by shells in shells": "bash -lc 'sh -c \"exec {filepact} approve --unattended {change}\"'",
    "with nothing in its environment": "env -i HOME=$HOME FILEPACT_STATE_DIR=$FILEPACT_STATE_DIR "
    "{filepact} approve --unattended {change}",
    "by the page": "{filepact} review --web --unattended",
    "with another folder of state": "{filepact} --state $FILEPACT_STATE_DIR/../elsewhere approve "
    "--unattended {change}",
}


@linux
@pytest.mark.parametrize("known", [True, False], ids=["by its name", "by its hook"])
def test_what_an_agents_program_calls_decides_nothing(place: CommandLine, known: bool) -> None:
    change = propose(place)
    agent = program(place.root.parent, "claude" if known else "helper-7")
    if not known:
        # Nobody knows it yet, and it may be a program of the person's own.
        assert "BELOW_AGENT" not in does(agent, f"{FILEPACT} approve --unattended cccc").stderr
    first = [] if known else [calls_hook(place.root)]
    for way, command in WAYS.items():
        said = does(agent, *first, command.format(filepact=FILEPACT, change=change))
        if "script" not in command:  # at a terminal errors have no codes
            assert "[BELOW_AGENT]" in said.stdout + said.stderr, (way, said)
        assert "--unattended" not in said.stdout + said.stderr, way
    assert waits(place) == [change]


@linux
def test_a_program_of_ones_own_decides_while_no_call_of_it_is_under_way(place: CommandLine) -> None:
    change = propose(place)
    own = program(place.root.parent, "helper-7")
    approves = f"{FILEPACT} approve --unattended {change}"
    begins, ends = calls_hook(place.root), calls_hook(place.root, "PostToolUse")
    note = f"stat -c %a {shlex.quote(str(place.state))}/hooks/host-*"
    said = does(own, begins, note, approves, ends, starts_server(place.root), approves)
    assert "[BELOW_AGENT]" in said.stderr
    assert "600\n" in said.stdout
    assert said.returncode == 0
    assert waits(place) == []
    assert [*(place.state / "hooks").glob("host-*")] == []


@linux
def test_each_deciding_command_is_refused_below_an_agent(place: CommandLine) -> None:
    words = {
        **{one: f"{one} --unattended" for one in ("approve", "reject", "undo", "redo", "restore")},
        "review": "review --plain",
        "grants": "grants --revoke g4k2m --unattended",
        "trust": "trust rust-analyzer",
        "runs": "runs --discard r1",
        "setup": "setup claude --write --unattended",
        "config": "config edit",
        "state": "state repair",
        "policy": "policy grants --revoke g4k2m --unattended",
        "doctor": "doctor --moved /old",
        "store": "store prune --days 1",
        "guard": "guard --stop",
    }
    assert words.keys() == DECIDING.keys()
    calls = [f"{FILEPACT} --json {one}" for one in words.values()]
    said = does(program(place.root.parent, "codex"), *calls).stdout.splitlines()
    codes = [json.loads(one)["error"]["code"] for one in said]
    assert dict(zip(words, codes, strict=True)) == dict.fromkeys(words, "BELOW_AGENT")


@pytest.mark.parametrize("name", AGENT_VARIABLES)
def test_a_variable_of_an_agents_program_refuses(
    cli: CommandLine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = propose(cli)
    monkeypatch.setenv(name, "1")
    error = cli.json("approve", "--unattended", change, code=1)["error"]
    assert error["code"] == "BELOW_AGENT"
    assert waits(cli) == [change]


@linux
def test_no_variable_lets_an_agent_decide(place: CommandLine) -> None:
    change = propose(place)
    agent = program(place.root.parent, "claude")
    for name in (*AGENT_VARIABLES, "PYTEST_CURRENT_TEST", "CI", "FILEPACT_DEBUG"):
        command = f"env -u CLAUDECODE {name}= {FILEPACT} approve --unattended {change}"
        assert "[BELOW_AGENT]" in does(agent, command).stderr
    assert waits(place) == [change]


@linux
def test_what_only_shows_is_not_refused_below_an_agent(place: CommandLine) -> None:
    place("write", "other.txt", "--content", "x")
    agent = program(place.root.parent, "claude")
    for words in (
        "undo --dry-run",
        "setup claude",
        "log",
        "trust",
        "runs",
        "grants",
        "config path",
    ):
        assert "BELOW_AGENT" not in does(agent, f"{FILEPACT} {words}").stderr


@linux
def test_a_command_that_changes_files_acts_as_the_agent_that_called_it(place: CommandLine) -> None:
    agent = program(place.root.parent, "claude")
    does(agent, f"{FILEPACT} write new.txt --content x")
    (done,) = place.json("log")["operations"]
    assert (done["actor"]["kind"], done["actor"]["name"]) == ("agent", "claude-code")
    asked = json.loads(does(agent, f"{FILEPACT} write AGENTS.md --content x --json").stdout)
    assert asked["status"] == "pending"
    assert not (place.root / "AGENTS.md").exists()
    refused = does(agent, f"{FILEPACT} read .env")
    assert "[PATH_BLOCKED]" in refused.stderr
    said = does(agent, f"{FILEPACT} write GEMINI.md --content x")
    assert "approve" not in said.stdout + said.stderr


@linux
def test_a_server_that_an_agents_shell_has_started_asks_nobody(place: CommandLine) -> None:
    settings = place.root.parent / "settings.toml"
    settings.write_text('[mcp]\nelicitation = "form"\n')
    call = {"name": "write_file", "arguments": {"path": "AGENTS.md", "content": "x"}}
    lines = [
        HELLO,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
        {"jsonrpc": "2.0", "id": "filepact-1", "result": {"action": "accept", "content": {}}},
    ]
    sent = place.root.parent / "sent"
    sent.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    serves = f"cat {shlex.quote(str(sent))} | {FILEPACT} --config {settings} mcp {place.root}"
    said = does(program(place.root.parent, "claude"), serves).stdout
    assert "elicitation/create" not in said
    assert len(waits(place)) == 1
    # A program of the person's own is asked, by the same lines.
    assert "elicitation/create" in does(program(place.root.parent, "helper-7"), serves).stdout


# -- honest people ---------------------------------------------------------------------------------


@linux
def test_a_person_is_not_taken_for_an_agent_by_a_word(place: CommandLine) -> None:
    folder = place.root.parent / "claude"
    folder.mkdir()
    change = propose(place)
    shell = f"cd {folder} && {FILEPACT} --root {place.root} approve {change}; :"
    code, _ = on_terminal(["bash", "-c", shell, "claude", "codex"], typed=[("[y/N]", "y\n")])
    assert code == 0
    assert waits(place) == []
    by = place.json("show", change)["approved_by"]
    assert "typed at a terminal, no agent above, from " in by


@linux
def test_an_editor_that_starts_servers_keeps_its_persons_terminal(place: CommandLine) -> None:
    change = propose(place)
    editor = program(place.root.parent, "zed-editor")
    approves = f"{FILEPACT} approve --unattended {change}"
    assert does(editor, starts_server(place.root), approves).returncode == 0
    assert waits(place) == []


@linux
def test_a_person_who_has_tried_a_hook_by_hand_may_decide(place: CommandLine) -> None:
    change = propose(place)
    typed = f"{calls_hook(place.root)}\n{FILEPACT} approve --unattended {change}\n"
    subprocess.run(["bash"], input=typed, text=True, check=True, capture_output=True)
    assert waits(place) == []


def test_what_no_person_looked_at_is_marked(cli: CommandLine) -> None:
    change = propose(cli)
    cli("approve", "--unattended", change)
    assert NOBODY_LOOKED in cli.json("show", change)["approved_by"]
    assert "by a program" in cli("log").out
    assert "no person" in cli("show", change).out
    cli("write", "other.txt", "--content", "x")
    assert "by a program" not in cli("log", "-n", "1").out


# -- who is above ----------------------------------------------------------------------------------


def chain(*lines: str) -> tuple[Ancestor, ...]:
    """Processes by their command lines, the nearest first."""
    words = [tuple(shlex.split(one)) for one in lines]
    names = [one[0].rpartition("/")[2][:15] for one in words]
    return tuple(
        Ancestor(100 - at, str(at), name, line)
        for at, (name, line) in enumerate(zip(names, words, strict=True))
    )


AGENTS = {
    "claude-code": ["/home/u/.local/bin/claude", "claude -p go", "node /usr/bin/claude"],
    "gemini-cli": [
        "/usr/bin/node --max-old-space-size=99 /x/node_modules/@google/gemini-cli/bundle/gemini.js -p",
        "node -r ./x.js /usr/local/bin/gemini",
    ],
    "codex": ["/opt/codex exec", "node /x/node_modules/@openai/codex/bin/codex.js"],
    "opencode": ["bun run /x/node_modules/.bin/opencode"],
    "aider": ["python3.12 -m aider", "/venv/bin/python /venv/bin/aider --yes", "python -X dev -m aider.main"],
    "cursor": ["/u/.local/share/cursor-agent/versions/1/node /u/.local/share/cursor-agent/versions/1/index.js"],
    "copilot": ["node /x/node_modules/@github/copilot/index.js"],
}  # fmt: skip
PEOPLE = [
    "-bash", "zsh -l", "tmux new -s claude", "ssh claude@host", "sudo -u claude bash", "su - codex",
    "sshd: claude@pts/0", "vim /home/claude/gemini", "/home/claude/bin/bash", "script -c claude",
    "bash -c 'echo claude' claude", "node /home/claude/codex/server.js", "python -m http.server -d claude",
    "python /home/gemini/tool.py claude", "/usr/share/code/code --type=utility claude", "zed-editor claude",
    "node --eval claude", "code-server-linux /claude", "make claude", "git -C claude commit",
    "/opt/Claude/claude-desktop", "node /vscode/extensions/anthropic.claude-code/x.js", "bash -lic claude",
]  # fmt: skip


@pytest.mark.parametrize(("agent", "line"), [(k, one) for k, v in AGENTS.items() for one in v])
def test_an_agents_program_is_known_however_it_is_started(agent: str, line: str) -> None:
    above = chain("bash -c x", "script -qc x", line, "-zsh", "tmux")
    assert caller(above, {}, {}, known=True).agent == agent


@pytest.mark.parametrize("line", PEOPLE)
def test_a_word_that_names_an_agent_is_none(line: str) -> None:
    said = caller(chain("bash", line, "-zsh", "init"), {}, {}, known=True)
    assert (said.agent, str(said)) == ("", "no agent above")


def test_a_process_that_was_noted_is_another_when_it_began_at_another_time() -> None:
    (one,) = chain("helper")
    noted = {(one.process, one.started): "claude-code"}
    assert caller([one], noted, {}, known=True).agent == "claude-code"
    later = Ancestor(one.process, "77", one.name, one.words)
    assert caller([later], noted, {}, known=True).agent == ""
    assert str(caller([], {}, {}, known=False)) == "what is above is not known"


HOSTS = [
    (["sh -c 'filepact hook claude'", "helper run", "-bash"], "helper"),
    (["bash -lc x", "uvx filepact mcp .", "node /opt/host.js"], "host.js"),
    (["/usr/bin/python /x/agent.py", "bash"], "agent.py"),
    (["bash /x/agent.sh", "bash"], "agent.sh"),
    (["code --type=utility --utility-sub-type=node", "code"], "code"),
    (["bash"], None), (["-zsh", "tmux: server"], None), (["zed-editor"], None), (["code ."], None),
    (["sh -c x", "sshd: u@pts/0"], None), (["/usr/bin/java -jar idea.jar"], None), ([], None),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "name"), HOSTS)
def test_a_host_is_what_stands_behind_shells_and_never_what_a_person_sits_at(
    lines: list[str], name: str | None
) -> None:
    found = host_among(chain(*lines))
    assert (found and found.program) == name


def test_who_serves_a_program_is_asked_about_by_what_is_above_that() -> None:
    def agent(*lines: str) -> str:
        return caller(beyond_host(chain(*lines)), {}, {}, known=True).agent

    assert agent("claude", "-bash", "tmux") == ""
    assert agent("uvx filepact", "claude", "-bash") == ""
    assert agent("python evil.py", "bash -c x", "claude", "-bash") == "claude-code"
    assert agent("bash -c x", "claude", "-bash") == "claude-code"
    assert agent("claude", "bash -c claude", "codex") == "codex"


# -- which commands --------------------------------------------------------------------------------


def test_every_command_that_may_be_given_without_a_person_is_a_deciding_one() -> None:
    parser: Any = build_parser()
    (commands,) = (one for one in parser._actions if one.dest == "command")
    named = {
        name
        for name, command in commands.choices.items()
        if any("--unattended" in one.option_strings for one in command._actions)
    }
    renamed = {one.partition(" ")[0] for one in OLD_NAMES}
    assert named <= DECIDING.keys() <= commands.choices.keys() | renamed


@pytest.mark.parametrize(
    ("line", "whether"),
    [
        ("approve c4k2m", True), ("--root x --json approve --all", True), ("--root=x undo", True),
        ("review --web", True), ("undo --dry-run", False), ("undo -- --dry-run", True),
        ("approve --help", False), ("help approve", False), ("grants", False), ("policy grants", False),
        ("policy grants --revoke g1", True), ("review --list", False), ("review --watch", False),
        ("doctor --repair", True), ("doctor --moved=/old", True), ("doctor --journal", False),
        ("grants --revoke=g1", True), ("trust", False), ("trust rust-analyzer", True),
        ("trust -- x", True), ("runs", False), ("runs --commit r1", True), ("setup claude", False),
        ("setup claude --write", True), ("setup --remove --dry-run claude", False),
        ("config show", False), ("config edit", True), ("state check", False), ("state repair", True),
        ("guard --status", False), ("guard . --stop", True), ("log approve", False), ("", False),
        ("diff undo", False), ("read approve", False), ("--state approve log", False),
    ],
)  # fmt: skip
def test_which_words_decide(line: str, whether: bool) -> None:
    assert decides(line.split()) is whether


# -- programs that should have called a hook ----------------------------------------------------------


def serves_call(cli: CommandLine, client: str) -> str:
    """What starts a server, and reads two files through it."""
    hello = json.loads(json.dumps(HELLO).replace("helper", client))
    call = {"name": "read_file", "arguments": {"path": "windows.txt"}}
    asked = [{"jsonrpc": "2.0", "method": "tools/call", "params": call, "id": n} for n in (2, 3)]
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    sent = cli.root.parent / f"sent-{client}"
    sent.write_text("".join(f"{json.dumps(one)}\n" for one in (hello, ready, *asked)))
    return f"cat {shlex.quote(str(sent))} | {FILEPACT} mcp {shlex.quote(str(cli.root))}"


def told(cli: CommandLine, client: str, *before: str) -> int:
    """Of both answers to a program, with how many something is said beside what was asked for."""
    lines = does(program(cli.root.parent, "claude"), *before, serves_call(cli, client)).stdout
    answers = {one["id"]: one for one in map(json.loads, lines.splitlines()) if "id" in one}
    return sum(len(answers[number]["result"]["content"]) > 1 for number in (2, 3))


def wrote_hooks(cli: CommandLine) -> None:
    cli.state.mkdir(mode=0o700, exist_ok=True)
    change = {"holders": [], "values": [], "items": []}
    path = str(cli.root / HOOKS_OF_CLAUDE)
    files = {path: {"after": "", "origin": None, "change": change}}
    (cli.state / "setup.json").write_text(json.dumps({"files": files}))


HOOKS_OF_CLAUDE = next(
    host.hooks.path for host in TO_SET_UP if host.name == "claude" and host.hooks
)


@linux
def test_a_program_that_calls_no_hook_where_some_were_set_up_is_told_once_in_each_session(
    place: CommandLine,
) -> None:
    wrote_hooks(place)
    assert told(place, "claude-code") == 1
    assert told(place, "claude-code") == 1


@linux
def test_where_no_hooks_were_set_up_it_is_told_once_for_a_folder(place: CommandLine) -> None:
    assert told(place, "claude-code") == 1
    assert told(place, "claude-code") == 0
    # Another program is another guard that may be believed in.
    assert told(place, "gemini-cli-mcp-client") == 1


@linux
def test_a_program_that_has_called_a_hook_or_has_none_is_told_nothing(place: CommandLine) -> None:
    wrote_hooks(place)
    assert told(place, "claude-code", calls_hook(place.root)) == 0
    assert told(place, "some-editor") == 0
