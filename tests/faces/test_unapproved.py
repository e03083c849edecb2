"""What a command does to control files and to Git's own: told at once, in the log, and taken back by a person."""

from __future__ import annotations

import json
import os
import random
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_workspace
from filepact.config.settings import Settings, parse_settings
from filepact.domain.operation import Actor, Approval, Session
from filepact.domain.protected import is_bookkeeping, steers_git
from filepact.errors import FilepactError
from filepact.workspace.selection import NEWEST, Selection
from filepact_hooks.agents import AGENTS
from filepact_hooks.service import HookDaemon
from test_hooks import event, log, undo
from tests.domain.steering import PACKAGE

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.domain.operation import Operation

PERSON = Session("p", Actor("person", "p"))


def by_agent(root: Path, tmp_path: Path) -> list[Operation]:
    return [
        one
        for one in log(root, tmp_path)
        if one.session.actor.kind == "agent" and one.kind == "change"
    ]


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


@pytest.fixture
def daemon_of(root, tmp_path):
    made = []

    def start(name: str) -> HookDaemon:
        made.append(HookDaemon((str(root),), str(tmp_path / "state")))
        made[-1].answer(name, event("SessionStart"))
        return made[-1]

    yield start
    for one in made:
        one.close()


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
    "echo '[[deny]]' > .filepact.toml; echo 'paths = [\"never\"]' >> .filepact.toml",
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
LINKED = [
    "mv .git/hooks ../old && ln -s /tmp/evil .git/hooks",
    "mkdir .git/modules && ln -s /tmp/evil .git/modules/x",
]


@pytest.mark.parametrize("command", PLANTED + LINKED)
def test_a_command_that_changes_what_steers_or_runs_is_told_and_taken_back(
    root, tmp_path, agent, command
):
    before = state(root)
    told = agent.run(command)["systemMessage"]
    (operation,) = by_agent(root, tmp_path)
    assert operation.was_unasked
    assert operation.id in told
    assert all(change.retraceable for change in operation.changes.changes)
    planted = state(root)
    undo(root, tmp_path, operation)
    after = state(root)
    if "git init" in command:
        after.pop("deep/sub/.git/info/exclude")  # which holds nothing but a remark
    assert after == before
    with open_workspace(str(root), state_dir=str(tmp_path / "state"), settings=Settings()) as again:
        again.redo(PERSON, operation.id)
    assert state(root) == planted


def test_a_repository_whose_folder_became_a_link_is_told(root, agent):
    assert ".git" in agent.run("mv .git ../old && ln -s ../old .git")["systemMessage"]


@pytest.mark.parametrize("name", ["sub", "sub/inner", "."])
def test_a_hook_of_a_repository_that_the_same_command_moves_is_told_and_taken_back_after_that(
    root, tmp_path, agent, name
):
    (root / name).mkdir(parents=True, exist_ok=True)
    sh(root / name, "git init -q; echo mine > .git/hooks/pre-push; echo text > f")
    agent.run("true")
    before = state(root)
    moves = "mkdir n; mv .git n/" if name == "." else "mv sub n"
    there = "n" if name == "." else name.replace("sub", "n")
    told = agent.run(f"{moves}; echo evil > {there}/.git/hooks/pre-push")["systemMessage"]
    inner, move = sorted(by_agent(root, tmp_path), key=lambda one: one.seq)
    assert told.index(move.id) < told.index(inner.id)
    assert move.was_unasked
    assert inner.was_unasked
    for one in (move, inner):
        undo(root, tmp_path, one)
    assert state(root) == before
    assert (root / name / ".git/HEAD").exists()


ORDINARY = [
    "git status && git log && git stash list",
    "git config user.name other && git config pull.rebase true",
    "git remote set-url origin https://example.org/y.git && git remote add up ../up",
    "git checkout -qb next && echo b > b.txt && git add b.txt && git commit -qm b && git checkout -q main && git merge -q next",
    "git branch next && git config branch.next.remote origin && git config branch.next.vscode-merge-base origin/main",
    "git gc -q && git tag v1 && git notes add -m n",
    "git worktree add -q wt && git worktree remove wt",
    "git worktree add -q --no-checkout wt && git -C wt commit -q --allow-empty -m x",
    "git sparse-checkout set . && git sparse-checkout disable",
    "git init -q inner && echo x > inner/x && git -C inner add . && git -C inner commit -qm x",
    "git clone -q . ../copy && git clone -q ../copy cloned && rm -rf cloned",
    "git bisect start && git bisect reset",
    "echo b >> a.txt",
]


@pytest.mark.parametrize("command", ORDINARY)
def test_everyday_git_is_told_to_nobody(root, tmp_path, agent, command):
    assert agent.run(command) == {}
    done = by_agent(root, tmp_path)
    assert len(done) <= 1
    assert not any(one.was_unasked for one in done)


def test_what_git_notes_for_itself_is_undone_and_keeps_nothing_else_from_going_back(
    root, tmp_path, agent
):
    before = state(root)
    agent.run("echo x > new.txt; git remote set-url origin ../x")
    (first,) = by_agent(root, tmp_path)
    undo(root, tmp_path, first)
    assert state(root) == before

    agent.run("echo x > new.txt; git remote set-url origin ../x")
    sh(root, "git remote set-url origin ../mine")
    _, second = by_agent(root, tmp_path)
    undo(root, tmp_path, second)
    assert not (root / "new.txt").exists()
    assert b"../mine" in (root / ".git/config").read_bytes()


def test_a_hook_that_somebody_has_gone_on_with_is_not_lost_by_an_undo(root, tmp_path, agent):
    agent.run("echo x > new.txt; git config core.pager evil; echo evil > .git/hooks/pre-push")
    (root / ".git/hooks/pre-push").write_text("mine\n")
    (operation,) = by_agent(root, tmp_path)
    with pytest.raises(FilepactError) as caught:
        undo(root, tmp_path, operation)
    assert caught.value.code == "STALE_FILE"
    assert (root / ".git/hooks/pre-push").read_text() == "mine\n"


@pytest.mark.parametrize("seed", range(4))
def test_random_commands_over_control_files_and_git_are_taken_back(root, tmp_path, agent, seed):
    chance = random.Random(seed)
    ordinary = [one for one in ORDINARY if "config" in one or "remote" in one or "echo b" in one]
    before = state(root)
    for _ in range(12):
        agent.run(chance.choice((*PLANTED, *ordinary)) + " || true")
    after = state(root)
    with open_workspace(str(root), state_dir=str(tmp_path / "state"), settings=Settings()) as back:
        done = back.undo_selected(PERSON, Selection(turn=NEWEST)).operation
        assert comparable(state(root)) == comparable(before)
        back.undo(PERSON, done)
        assert state(root) == after
        for operation in reversed(by_agent(root, tmp_path)):
            back.undo(PERSON, operation.id)
    assert comparable(state(root)) == comparable(before)


def comparable(found: dict[str, tuple[bytes, int]]) -> dict[str, tuple[bytes, int]]:
    """Without what stays of repositories that were made, of which nothing is recorded."""
    return {name: one for name, one in found.items() if not name.startswith("deep/")}


# -- who is told, and how ------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_only_what_a_person_alone_is_shown_names_a_command(root, tmp_path, name):
    with closing(Agent(root, tmp_path / "state", name)) as agent:
        said = json.dumps(
            agent.run(
                "echo x >> AGENTS.md; for i in 1 2 3 4; do mkdir $i; echo '{}' > $i/package.json; done"
            )
        )
        (operation,) = by_agent(root, tmp_path)
        assert operation.id in said
        assert ("filepact undo" in said) == (name in ("claude", "codex", "gemini", "opencode"))
        assert said.count("package.json") <= 3
        assert "decision" not in said.lower()
        assert agent.run("echo b >> a.txt") == {}


def test_what_the_host_has_asked_its_person_about_is_approved(root, tmp_path, daemon_of):
    daemon = daemon_of("claude")
    path = str(root / "AGENTS.md")
    for call, tool in (("a", "Write"), ("b", "Bash")):
        given = {"file_path": path} if tool == "Write" else {"command": "true"}
        daemon.answer("claude", event("PreToolUse", tool, call, **given))
        with (root / "AGENTS.md").open("a") as file:
            file.write(tool)
        told = daemon.answer("claude", event("PostToolUse", tool, call, **given)).out
        assert bool(told) == (tool == "Bash")
    assert [one.was_unasked for one in by_agent(root, tmp_path)] == [False, True]


def test_what_the_host_was_not_asked_about_is_looked_at_as_it_was_made(root, tmp_path, daemon_of):
    path, said = root / "package.json", {"old_string": '"A shop"', "new_string": '"Small"'}
    path.write_text(PACKAGE)
    daemon = daemon_of("claude")
    for call, made in (("a", '"Small"'), ("b", '"x", "scripts2": {}')):
        path.write_text(PACKAGE)
        given = {"file_path": str(path), **said}
        assert not daemon.answer("claude", event("PreToolUse", "Edit", call, **given)).out
        path.write_text(PACKAGE.replace('"A shop"', made))
        told = daemon.answer("claude", event("PostToolUse", "Edit", call, **given)).out
        assert bool(told) == (call == "b")
    assert [one.was_unasked for one in by_agent(root, tmp_path)] == [False, True]


def test_a_question_that_the_host_took_for_a_denial_is_no_approval(root, daemon_of):
    daemon = daemon_of("codex")
    path = str(root / "AGENTS.md")
    daemon.answer("codex", event("PreToolUse", "Write", file_path=path))
    (root / "AGENTS.md").write_text("anyway")
    assert daemon.answer("codex", event("PostToolUse", "Write", file_path=path)).out


def test_nobody_is_told_of_what_a_person_does_or_of_what_only_is_recorded(root, daemon_of):
    daemon = daemon_of("claude")
    (root / "AGENTS.md").write_text("mine")
    (root / ".git/hooks/pre-push").write_text("mine")
    assert daemon.answer("claude", event("UserPromptSubmit")) == ("", "")
    daemon.answer("claude", event("PreToolUse", "Bash", command="true"), mode="record")
    (root / "AGENTS.md").write_text("its")
    answer = daemon.answer("claude", event("PostToolUse", "Bash", command="true"), mode="record")
    assert answer == ("", "")


def test_a_call_of_which_nothing_more_was_heard_is_told_at_the_end_of_its_turn(root, daemon_of):
    daemon = daemon_of("claude")
    daemon.answer("claude", event("PreToolUse", "Bash", command="true"))
    (root / "AGENTS.md").write_text("its")
    assert "AGENTS.md" in daemon.answer("claude", event("Stop")).out
    assert daemon.answer("claude", event("Stop")) == ("", "")


def test_what_a_rule_of_the_person_allows_is_told_to_nobody(root, tmp_path):
    settings = tmp_path / "CONFIG_HOME" / "filepact" / "filepact.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        '[[allow]]\npaths = ["AGENTS.md"]\nactions = ["write"]\nwhy = "ours"\nlifts = ["control files"]\n'
    )
    with closing(Agent(root, tmp_path / "state")) as agent:
        assert agent.run("echo x >> AGENTS.md") == {}
        assert "package.json" in agent.run("echo x >> package.json")["systemMessage"]


def test_the_settings_of_git_are_kept_for_a_person_and_not_shown_to_an_agent(root, tmp_path, agent):
    agent.run("git config core.pager evil")
    (operation,) = by_agent(root, tmp_path)
    with open_workspace(
        str(root), state_dir=str(tmp_path / "state"), settings=Settings()
    ) as opened:
        assert "evil" in opened.diff(operation)
        past = opened.past(operation.session)
        shown = past.diff(operation)
        assert not {"evil", "hunter2"} & {*shown.replace("@", " ").replace(":", " ").split()}
        with pytest.raises(FilepactError) as caught:
            past.undo(operation.id, dry_run=False)
        assert caught.value.code == "PATH_BLOCKED"
    for path in (tmp_path / "state").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0 or path.is_dir()


# -- taken back ----------------------------------------------------------------------------


@pytest.fixture
def proposing(root, tmp_path):
    settings = tmp_path / "CONFIG_HOME" / "filepact" / "filepact.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[hooks]\nunapproved = "propose"\n')
    with closing(Agent(root, tmp_path / "state")) as made:
        yield made


def test_what_nobody_was_asked_about_is_taken_back_and_waits(root, tmp_path, proposing):
    before = state(root)
    told = proposing.run("echo x >> AGENTS.md; echo b >> a.txt; echo '{}' > package.json")
    after = state(root)
    assert {name for name in after if after[name] != before.get(name)} == {"a.txt"}
    with open_workspace(
        str(root), state_dir=str(tmp_path / "state"), settings=Settings()
    ) as opened:
        (waits,) = opened.pending()
        assert waits.id in told["systemMessage"]
        assert {"control files", "manifests"} == {*waits.rules}
        assert waits.session.actor.name == "claude-code"
        opened.approve(waits.id, Approval(PERSON.actor))
        assert (root / "AGENTS.md").read_text().endswith("five\nx\n")
        assert (root / "package.json").read_text() == "{}\n"
        assert not opened.pending()
    heard = known(proposing.run("true"))
    assert heard.startswith(f"filepact: Proposal {waits.id} was approved by ")
    assert heard.endswith("applied.")
    assert proposing.run("true") == {}


@pytest.mark.parametrize("hook", [False, True], ids=["moved", "moved, with a new hook"])
@pytest.mark.parametrize(
    ("moves", "there"),
    [
        ("mv sub n", "n/.git"),
        ("mv sub/.git sub/git", "sub/git"),
        ("mv .git git2", "git2"),
        ("mkdir n; mv .git n", "n/.git"),
    ],
)
def test_a_moved_repository_is_taken_back_whole_where_that_is_wanted(
    root, proposing, moves, there, hook
):
    (root / "sub").mkdir()
    for one in (root, root / "sub"):
        sh(one, "git init -q; echo mine > .git/hooks/pre-push; echo text > f")
    proposing.run("true")
    before = state(root)
    evil = f"; echo evil > {there}/hooks/pre-push" if hook else ""
    told = proposing.run(moves + evil)["systemMessage"]
    assert ".git" in told
    assert "could not" not in told
    assert "records nothing" not in told
    assert state(root) == before
    assert (root / ".git/HEAD").exists()
    assert (root / "sub/.git/HEAD").exists()


def known(answer: dict[str, Any], name: str = "PostToolUse") -> str:
    """What the model reads of an answer."""
    assert answer.get("hookSpecificOutput", {"hookEventName": name})["hookEventName"] == name
    return answer.get("hookSpecificOutput", {}).get("additionalContext", "")


@pytest.mark.parametrize("name", AGENTS)
def test_the_model_hears_that_its_change_was_taken_back_and_what_became_of_it(
    root: Path, tmp_path: Path, name: str, proposing: Agent
) -> None:
    after = _EVENTS[name][2]
    with closing(Agent(root, tmp_path / "other", name)) as agent:
        heard = known(agent.run("echo x >> AGENTS.md"), after)
        state = str(tmp_path / "other")
        with open_workspace(str(root), state_dir=state, settings=Settings()) as opened:
            (waits,) = opened.pending()
            opened.reject(waits.id, Approval(PERSON.actor, "not that word"))
        if name not in ("claude", "codex", "gemini"):
            # No answer of theirs reaches the model here.
            assert (heard, known(agent.run("true"))) == ("", "")
            return
        assert "AGENTS.md" in heard
        assert f"proposal {waits.id}" in heard
        assert known(agent.run("true"), after) == (
            f"filepact: Proposal {waits.id} was rejected by a person: not that word"
        )


def test_the_model_hears_later_what_an_answer_cannot_hold(root: Path, proposing: Agent) -> None:
    """The turn ends while the command still has the question: only the next prompt can tell the model."""
    proposing._tell("PreToolUse", "true")
    sh(root, "echo x >> AGENTS.md")
    answer = proposing.daemon.answer("claude", event("Stop"))
    assert "taken back" in json.loads(answer.out)["systemMessage"]
    assert known(json.loads(answer.out)) == ""
    prompt = json.loads(proposing.daemon.answer("claude", event("UserPromptSubmit")).out)
    assert "AGENTS.md" in known(prompt, "UserPromptSubmit")
    assert "systemMessage" not in prompt


def test_what_a_person_wrote_meanwhile_stays_when_it_is_taken_back(root, tmp_path, proposing):
    (root / "AGENTS.md").write_text("mine\ntwo\nthree\nfour\nfive\n")
    proposing.run("echo x >> AGENTS.md")
    assert (root / "AGENTS.md").read_text() == "mine\ntwo\nthree\nfour\nfive\n"


def test_what_nobody_may_change_is_taken_back_and_a_person_brings_it_again(
    root, tmp_path, proposing
):
    before = state(root)
    told = proposing.run("echo evil > .git/hooks/pre-push; git config core.pager evil")
    assert state(root) == before
    with open_workspace(
        str(root), state_dir=str(tmp_path / "state"), settings=Settings()
    ) as opened:
        assert not opened.pending()
        (undone,) = [one for one in opened.log() if one.kind == "undo"]
        assert undone.id in told["systemMessage"]
        opened.redo(PERSON, undone.id)
    assert (root / ".git/hooks/pre-push").read_text() == "evil\n"


def test_where_no_more_may_wait_it_is_taken_back_and_can_be_redone(root, tmp_path, proposing):
    settings = tmp_path / "CONFIG_HOME" / "filepact" / "filepact.toml"
    settings.write_text('[hooks]\nunapproved = "propose"\n[proposals]\ncount = 1\n')
    before = state(root)
    assert "filepact approve" in proposing.run("echo x >> AGENTS.md")["systemMessage"]
    told = proposing.run("echo '{}' > package.json")["systemMessage"]
    assert state(root) == before
    with open_workspace(
        str(root), state_dir=str(tmp_path / "state"), settings=Settings()
    ) as opened:
        (newest, *_) = opened.log()
        assert newest.id in told
        opened.redo(PERSON, newest.id)
    assert (root / "package.json").exists()


def test_everyday_git_is_left_as_it_is(root, proposing):
    assert proposing.run("git remote add up ../up && git config user.name x") == {}
    assert b"../up" in (root / ".git/config").read_bytes()


def test_what_cannot_be_taken_back_is_told(root, proposing):
    (root / ".env").write_text("A=1\n")
    assert ".env" in proposing.run("echo B=2 >> .env")["systemMessage"]
    assert (root / ".env").read_text() == "A=1\nB=2\n"


@pytest.mark.parametrize("value", ["take", True, 1, ["tell"]])
def test_no_other_word_is_taken_for_it(value):
    with pytest.raises(FilepactError) as caught:
        parse_settings(f"[hooks]\nunapproved = {json.dumps(value)}\n", name="x")
    assert caught.value.code == "INVALID_PARAMS"


def test_a_project_has_no_say_in_it(root, tmp_path, proposing):
    (root / ".filepact.toml").write_text('[hooks]\nunapproved = "tell"\n')
    proposing.run("true")
    assert b"tell" in (root / ".filepact.toml").read_bytes()


# -- what steers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "steers"),
    [
        (".git/config", True),
        ("a/b/.git/config", True),
        (".git", True),
        ("sub/.git", True),
        (".git/hooks/pre-commit", True),
        (".git/hooks/pre-commit.sample", False),
        (".git/hooks/d/x", True),
        (".git/modules/a/b/config", True),
        (".git/modules/a/modules/b/hooks/x", True),
        (".git/worktrees/w/config.worktree", True),
        (".git/HEAD", False),
        (".git/index", False),
        (".git/config.lock", False),
        (".git/logs/HEAD", False),
        (".git/refs/heads/config", False),
        (".git/hooks", True),
        (".git/modules/x/index", False),
        (".git/worktrees/w/HEAD", False),
        (".gitignore", False),
        ("x.git/config", False),
        ("a/.gitx/config", False),
    ],
)
def test_what_steers_git_is_known_by_its_place(path, steers):
    assert steers_git(path) is steers


@pytest.mark.parametrize(
    ("before", "after", "everyday"),
    [
        ("[core]\n\tbare = false\n", '[core]\n\tbare = false\n[branch "x"]\n\tmerge = y\n', True),
        ("[core]\n\tbare = false\n", "[core]\n\tbare = false\n\tfsmonitor = x\n", False),
        ("[core]\n\teditor = x\n", "", False),
        ("", '[remote "o"]\n\turl = ext::sh\n', False),
        ("", "[include]\n\tpath = x\n", False),
        ("", "[user]\n\tname = x \\\n[alias]\n", False),
        ("", "[user] name = x\n", False),
        ("", '[branch "x"]\n\tmergeoptions = -s evil\n', False),
        ("", "[core]\n\tworktree = /\n", False),
        ("", "[core]\n\tworktree = ../sub\n", True),
        ("", '[submodule "x"]\n\tupdate = !evil\n', False),
        ("", "[alias.x]\n\ty = !z\n", False),
        ('[url "a"]\n\tinsteadOf = x\n', '[url "b"]\n\tinsteadOf = x\n', False),
        ("[core]\n\tpager = a\n\tpager = b\n", "[core]\n\tpager = b\n\tpager = a\n", False),
        ("[core]\n\tpager = a\n", "[core]\n\tpager = a\n\tbare = true\n", True),
        ("", "[gc]\n\trecentObjectsHook = evil\n", False),
        ("", "[init]\n\ttemplateDir = /tmp/evil\n", False),
        ("", '[branch "x"]\n\tremote = ext::sh\n', False),
        ("", "[user]\r\n\tname = x \\\r\n\r\n", False),
        ("", "[core]\n\tautocrlf = a\u2028[branch]\n\tfsmonitor = x\n", False),
        ("", "[core]\r\n\tautocrlf = input\r\n", True),
        ("", "# only a remark\n", True),
    ],
)
def test_a_setting_of_git_that_starts_nothing_is_everyday(before, after, everyday):
    found = is_bookkeeping("/r", ".git/config", before.encode(), after.encode())
    assert bool(found) is everyday


@pytest.mark.parametrize(
    ("path", "held", "everyday"),
    [
        ("sub/.git", "gitdir: ../.git/modules/sub\n", True),
        ("sub/.git", "gitdir: /r/.git/modules/sub\n", True),
        ("a/sub/.git", "gitdir: ../.git/modules/sub\n", True),
        ("wt/.git", "gitdir: /r/.git/worktrees/wt\n", True),
        ("sub/.git", "gitdir: ../ignored/.git/modules/sub\n", False),
        ("sub/.git", "gitdir: ../../r2/.git/modules/sub\n", False),
        ("sub/.git", "gitdir: ../.git\n", False),
        ("sub/.git", "../.git/modules/sub\n", False),
        (".git/worktrees/wt/commondir", "../..\n", True),
        (".git/worktrees/wt/commondir", "../../../evil\n", False),
        (".git/commondir", "../..\n", False),
        (".git/hooks/config", "", False),
        (".git/hooks/d/exclude", "# x", False),
        (".git/info/exclude", "# x\n\n", True),
        (".git/info/exclude", " # x\n", False),
    ],
)
def test_what_git_writes_for_a_worktree_or_a_submodule_is_everyday(path, held, everyday):
    assert bool(is_bookkeeping("/r", path, None, held.encode())) is everyday
    assert bool(is_bookkeeping("/r", path, held.encode(), None)) is everyday
