"""Agents' own tools are judged before and recorded after, by what really changed on the disk."""

from __future__ import annotations

import json
import os
import random
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_workspace
from filepact.config.settings import Settings
from filepact.domain.operation import BY_NOBODY, Actor, Session
from filepact.errors import FilepactError, StateFailedError
from filepact.faces.cli import run
from filepact.workspace.external import ExternalChanges
from filepact_hooks.agents import AGENTS, read_event
from filepact_hooks.service import HookDaemon
from filepact_hooks.tool_call import FileAccess
from tests.domain.steering import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.domain.operation import Operation

PERSON = Session("p", Actor("person", "p"))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG_HOME", "CONFIG_DIRS"):
        monkeypatch.setenv(f"XDG_{name}", str(tmp_path / name))
    monkeypatch.delenv("FILEPACT_CONFIG", raising=False)
    made = tmp_path / "root"
    made.mkdir()
    (made / "a.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    (made / "gone.txt").write_text("gone\n")
    (made / ".env").write_text("TOKEN=SECRET\n")
    return made


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def daemon(root: Path, tmp_path: Path, clock: Clock) -> Iterator[HookDaemon]:
    with closing(HookDaemon((str(root),), str(tmp_path / "state"), clock=clock)) as made:
        yield made


def event(name: str, tool: str = "", call: str = "t1", session: str = "s1", **given: Any) -> bytes:
    facts = {"session_id": session, "prompt_id": "turn-1", "hook_event_name": name}
    return json.dumps(
        {**facts, "tool_name": tool, "tool_use_id": call, "tool_input": given}
    ).encode()


@pytest.fixture
def before(daemon: HookDaemon) -> Callable[..., tuple[str, str]]:
    def ask(tool: str, *, call: str = "t1", session: str = "s1", **given: Any) -> tuple[str, str]:
        answer = daemon.answer("claude", event("PreToolUse", tool, call, session, **given))
        said = json.loads(answer.out or "{}").get("hookSpecificOutput", {})
        return said.get("permissionDecision", ""), said.get("permissionDecisionReason", "")

    return ask


@pytest.fixture
def after(daemon: HookDaemon) -> Callable[..., None]:
    def tell(tool: str, *, call: str = "t1", session: str = "s1", **given: Any) -> None:
        answer = daemon.answer("claude", event("PostToolUse", tool, call, session, **given))
        assert answer == ("", "")

    return tell


def log(root: Path, tmp_path: Path) -> list[Operation]:
    """Oldest first."""
    with open_workspace(
        str(root), state_dir=str(tmp_path / "state"), settings=Settings()
    ) as workspace:
        return list(workspace.log())[::-1]


def undo(root: Path, tmp_path: Path, *operations: Operation) -> None:
    with open_workspace(
        str(root), state_dir=str(tmp_path / "state"), settings=Settings()
    ) as workspace:
        for operation in operations:
            workspace.undo(PERSON, operation.id)


def kinds(operation: Operation) -> dict[str, str]:
    return {one.path.path: one.kind for one in operation.changes.changes}


# -- calls' ids ---------------------------------------------------------------------------


def test_a_call_whose_id_was_used_before_is_another_call(root, before, after, tmp_path):
    path = root / "a.txt"
    # Of the third the host never says that it was over: what it did is told with the next one.
    for text, ended in (("1\n", True), ("2\n", True), ("3\n", False), ("4\n", True)):
        before("Write", call="same", file_path=str(path), content=text)
        path.write_text(text)
        if ended:
            after("Write", call="same", file_path=str(path), content=text)
    done = log(root, tmp_path)
    assert [kinds(one) for one in done] == [{"a.txt": "modify"}] * 3
    assert {one.session.actor.kind for one in done} == {"agent"}
    undo(root, tmp_path, *done[::-1])
    assert path.read_text() == "one\ntwo\nthree\nfour\nfive\n"


# -- before --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [".env", "./.env", "sub/../.env", "sub/.env", "link"])
def test_what_the_rules_keep_from_agents_is_not_read(root, before, path):
    (root / "sub").mkdir()
    (root / "link").symlink_to(".env")
    verdict, reason = before("Read", file_path=str(root / path))
    assert verdict == "deny"
    assert "PATH_BLOCKED" in reason
    assert "SECRET" not in reason


def test_whether_a_hidden_file_is_there_is_not_told(root, before):
    there = before("Read", file_path=str(root / ".env"))
    (root / ".env").unlink()
    assert before("Read", file_path=str(root / ".env")) == there


def test_what_a_person_has_to_permit_is_asked(root, before):
    assert before("Write", file_path=str(root / ".env.local"), content="X=1")[0] == "ask"


def test_of_what_no_rule_covers_the_host_decides_by_its_own(root, before):
    assert before("Write", file_path=str(root / "a.txt"), content="x") == ("", "")
    assert before("Bash", command="ls -la")[0] == ""


def test_what_a_person_allows_by_a_rule_is_allowed(root, before, tmp_path):
    settings = tmp_path / "CONFIG_HOME" / "filepact" / "filepact.toml"
    settings.parent.mkdir(parents=True)
    path = str(root / ".env.local")
    assert before("Write", file_path=path, content="x")[0] == "ask"
    settings.write_text(
        '[[allow]]\nname = "mine"\npaths = [".env.local"]\nwhy = "harmless"\n'
        'lifts = ["project secrets"]\n'
    )
    assert before("Write", file_path=path, content="x")[0] == "allow"
    settings.write_text('[[deny]]\nname = "mine"\npaths = [".env.*"]\nwhy = "mine"\n')
    assert before("Write", file_path=path, content="x")[0] == "deny"


SAID, RUNS = ('"A shop"', '"A small shop"'), ('"test": "node', '"postinstall": "x", "test": "node')


@pytest.mark.parametrize(
    ("said", "tool", "given"),
    [
        ("", "Edit", {"old_string": SAID[0], "new_string": SAID[1]}),
        (
            "",
            "Edit",
            {"old_string": "example.org", "new_string": "example.com", "replace_all": True},
        ),
        ("", "Write", {"content": PACKAGE.replace(*SAID)}),
        ("", "MultiEdit", {"edits": [{"old_string": SAID[0], "new_string": SAID[1]}]}),
        ("ask", "Edit", {"old_string": RUNS[0], "new_string": RUNS[1]}),
        ("ask", "Write", {"content": PACKAGE.replace(*RUNS)}),
        ("ask", "Write", {"content": PACKAGE.replace(*SAID), "append": True}),
        ("ask", "Write", {"content": PACKAGE.replace(*SAID), "file_text": "{}"}),
        ("ask", "Write", {"content": '{"description": "\ud800"}'}),
        ("ask", "Edit", {"old_string": "shop", "new_string": "store"}),
        ("ask", "Edit", {"old_string": "nowhere", "new_string": "x"}),
        ("ask", "Edit", {"old_string": "", "new_string": "x"}),
        ("ask", "Edit", {"old_string": SAID[0], "new_string": ["x"]}),
        ("ask", "Edit", {"old_string": SAID[0], "new_string": SAID[1], "at": 3}),
        ("ask", "MultiEdit", {"edits": [dict.fromkeys(("old_string", "new_string"), SAID[0]), {}]}),
        (
            "ask",
            "MultiEdit",
            {
                "edits": [
                    {"old_string": SAID[0], "new_string": SAID[1]},
                    {"old_string": RUNS[0], "new_string": RUNS[1]},
                ]
            },
        ),
        (
            "ask",
            "MultiEdit",
            {
                "edits": [
                    {"old_string": RUNS[0], "new_string": RUNS[1]},
                    {"old_string": RUNS[1], "new_string": RUNS[0]},
                    {"old_string": SAID[0], "new_string": SAID[1]},
                ]
            },
        ),
        ("ask", "insert", {"new_str": SAID[1], "line": 3}),
        ("ask", "Bash", {"command": "echo x > package.json"}),
    ],
)
def test_of_a_manifest_only_what_steers_is_asked_about(root, before, said, tool, given):
    (root / "package.json").write_text(PACKAGE)
    named = {} if tool == "Bash" else {"file_path": str(root / "package.json")}
    assert before(tool, **named, **given)[0] == said


PROJECT = '[project]\nname = "x"\n# remark\nrequires-python = ">=3"\n'
SMUGGLED = '"A shop\\", \\"scripts\\": {\\"postinstall\\": \\"x"'


@pytest.mark.parametrize(
    ("name", "text", "tool", "given"),
    [
        ("pyproject.toml", PROJECT, "Edit", {"old_string": "remark", "new_string": ""}),
        ("package.json", PACKAGE, "Edit", {"old_string": SAID[0], "new_string": SMUGGLED}),
        ("package.json", PACKAGE, "Write", {"content": PACKAGE.replace(SAID[0], SMUGGLED)}),
    ],
)
def test_what_a_tool_may_make_something_else_of_is_asked_about(
    root, before, name, text, tool, given
):
    (root / name).write_text(text)
    assert before(tool, file_path=str(root / name), **given)[0] == "ask"


def test_a_manifest_that_is_made_or_a_link_is_asked_about(root, before):
    path = str(root / "package.json")
    assert before("Write", file_path=path, content='{"description": "x"}')[0] == "ask"
    (root / "data.json").write_text(PACKAGE)
    os.symlink("data.json", path)
    assert before("Edit", file_path=path, old_string=SAID[0], new_string=SAID[1])[0] == "ask"


def test_a_rule_of_the_root_itself_counts_from_the_next_event_on(root, before):
    assert before("Edit", file_path=str(root / "a.txt"))[0] == ""
    (root / ".filepact.toml").write_text('[[deny]]\nname = "a"\npaths = ["a.txt"]\nwhy = "mine"\n')
    assert before("Edit", file_path=str(root / "a.txt"))[0] == "deny"


def test_relative_paths_count_from_the_folder_of_the_event(root, daemon):
    (root / "sub").mkdir()
    data = json.loads(event("PreToolUse", "Read", file_path="../.env"))
    answer = daemon.answer("claude", json.dumps({**data, "cwd": str(root / "sub")}).encode())
    assert '"deny"' in answer.out


def test_outside_the_root_only_names_count(root, before, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "through").symlink_to(root)
    assert before("Write", file_path=str(tmp_path / "other" / "a.txt"))[0] == ""
    assert before("Read", file_path=str(tmp_path / "other" / ".env"))[0] == "deny"
    (tmp_path / "other" / "plain").symlink_to(root / ".env")
    assert before("Read", file_path=str(tmp_path / "other" / "plain"))[0] == "deny"
    assert before("Read", file_path=str(tmp_path / "through" / ".env"))[0] == "deny"


@pytest.mark.parametrize(
    "command",
    ["cat .env", "grep x ./.env", "cat <.env", "sed -n p sub/.env | head", "A=.env", 'cat ".env'],
)
def test_a_command_that_names_a_hidden_file_is_refused(before, command):
    assert before("Bash", command=command)[0] == "deny"


@pytest.mark.parametrize(
    "command", ["git status", "npm run build", "python -m pytest -k env", "git commit -m 'on .env'"]
)
def test_other_commands_are_not(before, command):
    assert before("Bash", command=command)[0] == ""


@pytest.mark.parametrize("tool", ["Bash", "mcp__machine__run_command", "exec"])
@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({"command": "cat", "args": [".env"]}, "deny"),
        ({"command": "cat", "arguments": ["-n", 5, ".env"]}, "deny"),
        ({"cmd": "cat", "argv": [".env"]}, "deny"),
        ({"command": "cat", "args": ".env"}, "deny"),
        ({"command": "bash", "args": ["-c", "cat .env"]}, "deny"),
        ({"command": '["cat", ".env"]'}, "deny"),
        ({"command": "run", "arguments": '{"command": "cat .env"}'}, "deny"),
        ({"commands": ["ls", "cat .env"]}, "deny"),
        ({"command": "cp", "args": ["a.txt", ".git/hooks/pre-commit"]}, "deny"),
        ({"command": "npm", "args": ["run", "build"]}, ""),
        ({"command": "ls", "args": []}, ""),
    ],
)
def test_a_program_and_its_words_are_one_command(before, tool, given, verdict):
    assert before(tool, **given)[0] in ((verdict, "ask") if verdict else ("",))


def test_words_of_a_program_that_are_a_message_name_nothing(before):
    assert before("Bash", command="git", args=["commit", "-m", "on .env"])[0] == ""


PATCH = """*** Begin Patch
*** Update File: a.txt
@@
-two
+TWO
*** Add File: .env.production
+X=1
*** End Patch"""


@pytest.mark.parametrize(
    ("agent", "facts"),
    [
        ("codex", {"tool_name": "apply_patch", "tool_input": {"command": PATCH}}),
        (
            "codex",
            {"tool_name": "Bash", "tool_input": {"command": f"apply_patch <<'E'\n{PATCH}\nE"}},
        ),
        ("codex", {"tool_name": "apply_patch", "tool_input": {"command": ["apply_patch", PATCH]}}),
        ("codex", {"tool_name": "apply_patch", "tool_input": {"args": {"content": PATCH}}}),
        ("codex", {"tool_name": "apply_patch", "tool_input": ["apply_patch", PATCH]}),
        (
            "codex",
            {
                "tool_name": "patch",
                "tool_input": {"path": ".env", "patch": "@@ -1 +1 @@\n-a\n+b\n"},
            },
        ),
        ("opencode", {"tool": "apply_patch", "args": {"patchText": PATCH}}),
        ("copilot", {"toolName": "apply_patch", "toolArgs": PATCH}),
        ("copilot", {"toolName": "create", "toolArgs": json.dumps({"path": ".env.production"})}),
    ],
)
def test_every_file_of_a_patch_is_judged(root, daemon, agent, facts):
    names = {"codex": "PreToolUse", "opencode": "tool.execute.before", "copilot": "preToolUse"}
    data = json.dumps({"session_id": "s", "cwd": str(root), **facts}).encode()
    said = json.loads(daemon.answer(agent, data, names[agent]).out)
    said = said.get("hookSpecificOutput", said)
    assert said.get("permissionDecision", said.get("decision")) in ("deny", "ask")


def test_a_patch_within_a_list_is_that_of_a_text_and_one_that_is_empty_names_nothing():
    sent = ({"command": PATCH}, {"command": ["apply_patch", PATCH]})
    plain, listed = (
        read_event(AGENTS["codex"], event("PreToolUse", "apply_patch", **one)).does for one in sent
    )
    assert plain.uses == listed.uses
    assert not plain.envelope
    assert not listed.envelope
    empty = read_event(AGENTS["codex"], event("PreToolUse", "apply_patch", command="")).does
    assert empty.uses == ()


def test_a_patch_that_cannot_be_read_is_judged_by_the_names_in_it():
    data = event("PreToolUse", "apply_patch", command="*** Update File: x/.env\nnonsense")
    found = read_event(AGENTS["codex"], data)
    assert found.does.uses == (FileAccess("x/.env", "write", "create"),)
    assert not found.does.open_ended


# -- after ---------------------------------------------------------------------------------


def test_what_a_command_changed_is_one_operation_that_can_be_undone(
    root, tmp_path, daemon, before, after
):
    before("Bash", command="make", call="t7")
    (root / "a.txt").write_text("ONE\ntwo\nthree\nfour\nfive\n")
    (root / "gone.txt").unlink()
    (root / "new").mkdir()
    (root / "new" / "b.bin").write_bytes(b"\0\1")
    after("Bash", command="make", call="t7")
    daemon.close()
    (operation,) = log(root, tmp_path)
    assert kinds(operation) == {"a.txt": "modify", "gone.txt": "delete", "new/b.bin": "create"}
    session = operation.session
    assert (session.actor.kind, session.actor.name) == ("agent", "claude-code")
    assert (session.id, session.turn, session.call) == ("s1", "turn-1", "t7")
    assert operation.tool == "Bash"
    (root / "a.txt").write_text("ONE\ntwo\nthree\nfour\nfive by hand\n")
    undo(root, tmp_path, operation)
    assert (root / "a.txt").read_text() == "one\ntwo\nthree\nfour\nfive by hand\n"
    assert (root / "gone.txt").read_text() == "gone\n"
    assert not (root / "new").exists()


def test_what_a_person_did_between_two_calls_is_nobodys(root, tmp_path, daemon, before, after):
    before("Edit", file_path=str(root / "gone.txt"))
    (root / "gone.txt").write_text("gone by the agent\n")
    after("Edit", file_path=str(root / "gone.txt"))
    (root / "a.txt").write_text("by hand\n")
    before("Bash", call="t2", command="true")
    after("Bash", call="t2", command="true")
    daemon.close()
    agents, nobodys = log(root, tmp_path)
    assert kinds(agents) == {"gone.txt": "modify"}
    assert kinds(nobodys) == {"a.txt": "modify"}
    assert nobodys.tool == BY_NOBODY
    with open_workspace(
        str(root), state_dir=str(tmp_path / "state"), settings=Settings()
    ) as workspace:
        workspace.undo(PERSON)
    assert (root / "gone.txt").read_text() == "gone\n"
    assert (root / "a.txt").read_text() == "by hand\n"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("AskUserQuestion", {"questions": []}),
        ("ExitPlanMode", {"plan": "x"}),
        ("Task", {"prompt": "x"}),
        ("WebFetch", {"url": "http://127.0.0.1/"}),
        ("Read", {"file_path": "a.txt"}),
        ("Grep", {"pattern": "x", "glob": "*.txt"}),
        ("mcp__filepact__read_file", {"path": "a.txt"}),
        ("mcp__other__get_issue", {"number": 7}),
        ("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "1"}),
    ],
)
def test_what_a_person_saves_during_a_call_that_did_not_do_it_is_not_its_own(
    root, tmp_path, daemon, before, after, tool, given
):
    before("Bash", command="true")
    after("Bash", command="true")
    before(tool, call="t2", **given)
    (root / "mine.txt").write_text("an hour of work\n")
    if tool == "Edit":
        (root / "a.txt").write_text("1\n")
    after(tool, call="t2", **given)
    before("Bash", call="t3", command="true")
    after("Bash", call="t3", command="true")
    found = log(root, tmp_path)
    (own,) = [one for one in found if "mine.txt" in kinds(one)]
    assert own.tool == BY_NOBODY
    assert [kinds(one) for one in found if one.session.actor.kind == "agent"] == (
        [{"a.txt": "modify"}] if tool == "Edit" else []
    )


def test_of_two_sessions_each_has_what_it_did(root, tmp_path, daemon, before, after):
    before("Bash", command="make", call="t1", session="s1")
    before("Write", file_path=str(root / "b.txt"), call="t1", session="s2")
    (root / "a.txt").write_text("by the command\n")
    (root / "b.txt").write_text("by the tool\n")
    after("Write", file_path=str(root / "b.txt"), call="t1", session="s2")
    after("Bash", command="make", call="t1", session="s1")
    daemon.close()
    told = [(one.session.id, kinds(one)) for one in log(root, tmp_path)]
    assert told == [("s2", {"b.txt": "create"}), ("s1", {"a.txt": "modify"})]


def test_a_call_of_which_nothing_more_is_heard_is_settled_when_its_turn_ends(
    root, tmp_path, daemon, before
):
    before("Bash", command="make")
    (root / "a.txt").write_text("by the command\n")
    daemon.answer("claude", event("Stop"))
    (root / "gone.txt").write_text("by hand\n")
    daemon.answer("claude", event("SessionEnd"))
    daemon.close()
    told = [(one.tool, kinds(one)) for one in log(root, tmp_path)]
    assert told == [("Bash", {"a.txt": "modify"}), (BY_NOBODY, {"gone.txt": "modify"})]


def test_a_patch_by_a_command_is_settled_by_the_next_call(root, tmp_path, daemon):
    start = {"session_id": "s", "cwd": str(root), "hook_event_name": "PreToolUse", "turn_id": "t"}
    patch = {"command": "apply_patch <<'E'\n" + PATCH.replace(".env.production", "b.txt") + "\nE"}
    given = {"tool_name": "Bash", "tool_use_id": "1", "tool_input": patch}
    assert daemon.answer("codex", json.dumps({**start, **given}).encode()) == ("", "")
    (root / "a.txt").write_text("one\nTWO\nthree\nfour\nfive\n")
    given = {"tool_name": "Bash", "tool_use_id": "2", "tool_input": {"command": "ls"}}
    daemon.answer("codex", json.dumps({**start, **given}).encode())
    daemon.close()
    (operation,) = log(root, tmp_path)
    assert (operation.session.call, operation.session.agent) == ("1", "codex")


def test_a_call_that_began_an_hour_ago_is_over(root, tmp_path, daemon, before, clock):
    before("Bash", command="sleep 9999")
    assert daemon.busy
    clock.now += 3_601
    assert not daemon.busy
    (root / "a.txt").write_text("by hand\n")
    daemon.answer("claude", event("SessionStart", session="s2"))
    daemon.close()
    (operation,) = log(root, tmp_path)
    assert operation.tool == BY_NOBODY


@pytest.mark.parametrize("told", [True, False])
def test_what_changed_while_no_process_ran_belongs_to_the_call_that_ends_then(
    root, tmp_path, daemon, before, told
):
    before("Bash", command="make")
    daemon.close()
    (root / "a.txt").write_text("by the command\n")
    ended = json.loads(event("PostToolUse", "Bash", command="make"))
    with closing(HookDaemon((str(root),), str(tmp_path / "state"))) as other:
        more = {"duration_ms": 60_000} if told else {}
        other.answer("claude", json.dumps(ended | more).encode())
    (operation,) = log(root, tmp_path)
    # Where its host does not tell how long it ran, a person may have done it before it began.
    whose = ("Bash", "t1") if told else ("unknown", "")
    assert (operation.tool, operation.session.call) == whose


def test_a_hosts_turns_have_names_of_their_own_where_it_gives_them_none(root, tmp_path, daemon):
    def tell(name: str, **more: object) -> None:
        data = {"sessionId": "s", "cwd": str(root), **more}
        daemon.answer("copilot", json.dumps(data).encode(), name)

    for number in range(2):
        tell("userPromptSubmitted", prompt="go")
        for name in ("preToolUse", "postToolUse"):
            tell(name, toolName="bash", toolArgs={"command": f"make {number}"})
            (root / "a.txt").write_text(f"{number}\n")
        tell("agentStop")
    daemon.close()
    turns = [one.session.turn for one in log(root, tmp_path) if one.tool == "bash"]
    assert len(turns) == len(set(turns)) == 2
    assert all(turns)


# -- what goes wrong -----------------------------------------------------------------------


BAD = [
    b"",
    b"{",
    b"null",
    b"[1]",
    b'"PreToolUse"',
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"hook_event_name": 7}',
    b'{"tool_name": "Write"}',
]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("data", BAD, ids=range(len(BAD)))
def test_what_is_no_event_is_refused_unless_nothing_is_judged(daemon, agent, data):
    assert "deny" in daemon.answer(agent, data).out
    assert "INVALID" not in daemon.answer(agent, data).out
    passed = daemon.answer(agent, data, mode="record")
    assert "deny" not in passed.out
    assert passed.out or passed.remark


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_no_event_and_comes_after_a_tool_is_told(daemon, agent):
    name = next(one for one, moment in AGENTS[agent].events.items() if moment == "stop")
    for data, option in ((b"{", name), (b'{"hook_event_name": "%b", ' % name.encode(), "")):
        said = daemon.answer(agent, data, option)
        assert "deny" not in said.out
        assert said.out or said.remark


@pytest.mark.parametrize(
    "facts",
    [
        {"tool_name": 7, "tool_input": 3},
        {"tool_name": "Write"},
        {"tool_name": "Write", "tool_input": {"file_path": {"a": 1}}},
        {"tool_name": "Nobody'sTool", "tool_input": {"path": ["a", 1, None, {"path": "b"}]}},
        {"tool_name": "Write", "tool_input": {"file_path": ""}},
        {"tool_name": "Bash", "tool_input": {"command": "'" * 1_001}},
        {"tool_name": "Bash", "tool_input": {"command": "x " * 100_000}},
        {"tool_name": "x" * 10_000, "tool_use_id": "y" * 10_000},
        {"session_id": None, "cwd": 9, "tool_name": "Read", "tool_input": {"file_path": "a.txt"}},
    ],
    ids=range(9),
)
def test_an_event_in_a_form_that_nobody_expects_has_an_answer(daemon, facts):
    data = json.dumps({"session_id": "s", "hook_event_name": "PreToolUse", **facts}).encode()
    answer = daemon.answer("claude", data, mode="strict")
    assert not answer.out or json.loads(answer.out)["hookSpecificOutput"]
    data = data.replace(b"PreToolUse", b"PostToolUse")
    assert daemon.answer("claude", data, mode="strict") == ("", "")


@pytest.mark.parametrize("path", ["a\0b", "x" * 5_000, "a/" * 3_000, "\udcff", "~/.ssh/id_rsa"])
def test_a_path_that_is_none_is_refused_or_left_to_the_host(daemon, before, path):
    verdict, _ = before("Write", file_path=path)
    assert verdict in ("", "deny", "ask")


def test_of_a_tool_that_nobody_knows_hidden_files_stay_unread(root, before):
    assert before("FancyTool", path=str(root / ".env"))[0] == "deny"
    assert before("FancyTool", path=str(root / "a.txt"))[0] == ""


def test_random_objects_break_nothing(daemon):
    dice = random.Random(17)
    values: list[Any] = ["a.txt", "", None, 7, ["b"], {"path": "c"}, "../x", "/etc", "PreToolUse"]
    keys = [
        "hook_event_name",
        "tool_name",
        "tool_input",
        "cwd",
        "session_id",
        "args",
        "path",
        "tool",
    ]
    for _ in range(300):
        found = {key: dice.choice(values) for key in dice.sample(keys, dice.randrange(8))}
        for name in ("", "PreToolUse", "PostToolUse"):
            daemon.answer("claude", json.dumps(found).encode(), name)


def test_an_event_that_is_none_of_ours_is_passed(daemon):
    assert daemon.answer("claude", event("Notification")) == ("", "")


@pytest.mark.parametrize(
    ("agent", "foreign"),
    [
        ("claude", "BeforeTool"),
        ("claude", "preToolUse"),
        ("gemini", "PreToolUse"),
        ("cursor", "Stop"),
    ],
)
def test_an_event_of_another_agents_program_is_not_passed_in_silence(daemon, agent, foreign):
    assert "deny" in daemon.answer(agent, event(foreign)).out


def test_settings_that_are_wrong_are_as_strict_as_they_could_be(root, daemon, before, tmp_path):
    settings = tmp_path / "CONFIG_HOME" / "filepact" / "filepact.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("nonsense = [")
    verdict, reason = before("Write", file_path=str(root / "a.txt"))
    assert verdict == "ask"
    assert str(settings) in reason
    assert before("Read", file_path=str(root / "a.txt"))[0] == ""
    assert before("Read", file_path=str(root / ".env"))[0] == "deny"
    settings.unlink()
    assert before("Write", file_path=str(root / "a.txt"))[0] == ""


def test_what_the_rules_deny_stays_denied_when_nothing_can_be_recorded(
    root, daemon, before, monkeypatch
):
    before("Bash", command="true")

    def full(*_: object, **__: object) -> None:
        raise StateFailedError("no room", hint="Make room.")

    monkeypatch.setattr(ExternalChanges, "detect", full)
    assert before("Read", file_path=str(root / ".env"))[0] == "deny"
    assert before("Write", file_path=str(root / ".env.local"))[0] == "ask"


def test_a_root_that_moves_is_another_folder(root, tmp_path, daemon, before):
    before("Bash", command="true")
    root.rename(tmp_path / "moved")
    answer = daemon.answer("claude", event("PostToolUse", "Bash", command="true"))
    assert "systemMessage" in json.loads(answer.out)
    root.mkdir()
    (root / "other.txt").write_text("other")
    daemon.answer("claude", event("SessionStart"))
    (root / "other.txt").write_text("changed")
    daemon.answer("claude", event("PostToolUse", "Bash", command="true", call="t9"))
    daemon.close()
    (operation,) = log(root, tmp_path)
    assert kinds(operation) == {"other.txt": "modify"}
    assert sorted(os.listdir(tmp_path / "moved")) == [".env", "a.txt", "gone.txt"]


def test_a_folder_that_holds_the_state_is_no_root(tmp_path):
    (tmp_path / "state").mkdir(mode=0o700)
    with closing(HookDaemon((str(tmp_path),), str(tmp_path / "state"))) as daemon:
        answer = daemon.answer("claude", event("PreToolUse", "Bash"), mode="strict")
    assert '"deny"' in answer.out
    with pytest.raises(FilepactError):
        open_workspace(str(tmp_path), state_dir=str(tmp_path / "state"), settings=Settings())


def test_who_only_records_asks_no_rules_and_knows_what_a_person_did_between(root, tmp_path, daemon):
    def use(moment: str, tool: str, **given: Any) -> None:
        assert daemon.answer("claude", event(moment, tool, **given), mode="record") == ("", "")

    use("PreToolUse", "Write", file_path=str(root / ".env"))
    use("PostToolUse", "Write", file_path=str(root / ".env"))
    (root / "a.txt").write_text("a person's\n")
    use("PreToolUse", "Bash", command="true")
    (root / "gone.txt").unlink()
    use("PostToolUse", "Bash", command="true")
    person, agent = log(root, tmp_path)
    assert (person.tool, kinds(person)) == (BY_NOBODY, {"a.txt": "modify"})
    assert (agent.session.actor.kind, kinds(agent)) == ("agent", {"gone.txt": "delete"})


# -- what the person asked for -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("make the header blue", "make the header blue"),
        ("  first line\n\nsecond\t\x1b[31mline", "first line second \x1b[31mline"),
        ("x" * 500, "x" * 119 + "\u2026"),
        (f"use ghp_{'a1B2' * 9} for it", ""),
        ("", None),
        ("<task-notification>\n<task-id>1</task-id>", None),
        (7, None),
    ],
)
def test_the_log_of_turns_has_the_persons_words_without_secrets(
    daemon: HookDaemon,
    before: Callable[..., tuple[str, str]],
    after: Callable[..., None],
    root: Path,
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    words: object,
    kept: str | None,
) -> None:
    facts = {"session_id": "s1", "prompt_id": "turn-1", "hook_event_name": "UserPromptSubmit"}
    assert daemon.answer("claude", json.dumps({**facts, "prompt": words}).encode()) == ("", "")
    assert before("Write", file_path="new.txt", content="new\n") == ("", "")
    (root / "new.txt").write_text("new\n")
    after("Write", file_path="new.txt", content="new\n")
    at = ["--root", str(root), "--state", str(tmp_path / "state")]
    assert run([*at, "log", "--turns", "--json"]) == 0
    (turn,) = json.loads(capsysbinary.readouterr().out)["turns"]
    assert turn["turn"] == "turn-1"
    if kept:
        assert turn["request"] == kept
    else:
        assert (turn["request"] == "") == (kept is None)
    assert "ghp_" not in turn["request"]
    assert run([*at, "log", "--turns"]) == 0
    shown = capsysbinary.readouterr().out.decode()
    assert "\x1b" not in shown
    assert ("turn-1" in shown) == (kept is None)
    assert "ghp_" not in shown
    assert run([*at, "log"]) == 0
    plain = capsysbinary.readouterr().out.decode()
    assert len(plain.splitlines()) == 1 + (kept is not None)
    assert "\x1b" not in plain
    assert plain.splitlines()[-1].startswith("c")
    assert "ghp_" not in plain
    # Nor does anything that goes elsewhere.
    logs = [one for one in (tmp_path / "state" / "audit").rglob("*") if one.is_file()]
    assert logs
    assert not any(b"header" in one.read_bytes() for one in logs)
    with open_workspace(str(root), state_dir=str(tmp_path / "state")) as workspace:
        assert [one for one in workspace.asked.questions() if one.how == "turn"] == []
