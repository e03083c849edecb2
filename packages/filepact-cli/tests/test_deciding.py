"""A person's decisions: at a terminal they are asked, and a program has to say that it is one."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.domain.operation import NOBODY_LOOKED, Actor, Session
from filepact_cli.deciding import notify
from tests.architecture.project import PACKAGE
from tests.forked import Command
from tests.terminal import on_terminal

if TYPE_CHECKING:
    from tests.faces.command_line import CommandLine

QUESTION = "[y/N]"


def propose(cli: CommandLine, text: str, agent: str = "robot") -> str:
    """What an agent leaves for a person in preview mode; the proposal's id."""
    with (
        open_workspace([str(cli.root)], state_dir=str(cli.state), mode="preview") as workspace,
        workspace.draft(Session("s", Actor("agent", agent, "9")), "write_file") as draft,
    ):
        draft.write(draft.open("proposed.txt"), text)
        return str(workspace.submit(draft, "create proposed.txt").operation)


def person(*words: str, types: str = "") -> tuple[int, str]:
    """What a person at a terminal is shown, having answered every question so."""
    paths = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"PYTHONPATH": paths, "TERM": "xterm", "NO_COLOR": "1"}
    environment["FILEPACT_PAGER"] = "cat"
    typed = [(QUESTION, f"{types}\n")] if types else []
    return on_terminal(words, start=Command, typed=typed, env=environment)


@pytest.mark.parametrize("command", ["approve", "reject", "undo", "redo", "restore"])
def test_a_program_decides_nothing_without_saying_that_it_is_meant_to(
    cli: CommandLine, command: str
) -> None:
    cli("checkpoint", "here")
    proposal = propose(cli, "new\n")
    cli("write", "other.txt", "--content", "x")
    newest = cli.json("log")["operations"][0]["id"]
    if command == "redo":
        cli("undo", "--unattended", newest)
    names = {
        "approve": [proposal],
        "reject": [proposal],
        "undo": [newest],
        "restore": ["here", "--all"],
    }.get(command, [])
    before = cli.json("log"), cli.json("pending"), sorted(os.listdir(cli.root))
    assert cli.json(command, *names, code=1)["error"]["code"] == "UNATTENDED"
    assert (cli.json("log"), cli.json("pending"), sorted(os.listdir(cli.root))) == before
    assert cli(command, *names, "--unattended").code == 0


def test_a_preview_is_no_decision(cli: CommandLine) -> None:
    cli("write", "other.txt", "--content", "x")
    assert cli("undo", "--dry-run").code == 0


def test_a_person_is_shown_the_change_and_asked(cli: CommandLine) -> None:
    proposal = propose(cli, "one\u202e\n")
    code, shown = person("approve", proposal, types="n")
    assert code == 3
    assert "+one\\u202e\n" in shown.partition(QUESTION)[0]
    assert "hidden characters" in shown.partition(QUESTION)[0]
    (waiting,) = cli.json("pending")["pending"]
    assert re.search(r"^who +agent robot 9 \(session s\)\s*$", shown, re.MULTILINE)
    assert re.search(rf"^when +{re.escape(waiting['created'])},", shown, re.MULTILINE)
    assert not (cli.root / "proposed.txt").exists()
    assert [one["id"] for one in cli.json("pending")["pending"]] == [proposal]
    assert person("approve", proposal, types="y")[0] == 0
    assert (cli.root / "proposed.txt").read_text() == "one\u202e\n"


def test_while_a_person_is_asked_nobody_else_waits(cli: CommandLine) -> None:
    proposal = propose(cli, "one\n")
    others = []

    def writes_meanwhile() -> str:
        others.append(cli("write", "proposed.txt", "--content", "two\n").code)
        return "n\n"

    paths = os.pathsep.join(filter(None, sys.path))
    code, _ = on_terminal(
        ["approve", proposal],
        start=Command,
        typed=[(QUESTION, writes_meanwhile)],
        env=os.environ | {"PYTHONPATH": paths, "TERM": "xterm"},
    )
    assert (code, others) == (3, [0])
    assert (cli.root / "proposed.txt").read_text() == "two\n"


def test_the_letter_with_which_all_ids_begin_decides_nothing(cli: CommandLine) -> None:
    proposal = propose(cli, "one\n")
    for name in ("c", proposal[:3]):
        for command in ("approve", "reject"):
            said = cli.json(command, "--unattended", name, code=2)
            assert said["error"]["code"] == "INVALID_PARAMS"
    assert [one["id"] for one in cli.json("pending")["pending"]] == [proposal]


def test_a_person_goes_back_without_a_question_from_what_the_last_session_did(
    cli: CommandLine,
) -> None:
    cli("approve", "--unattended", propose(cli, "one\n"))
    code, shown = person("undo")
    assert code == 0
    assert QUESTION not in shown
    assert not (cli.root / "proposed.txt").exists()


def test_a_person_is_asked_before_their_own_work_goes_back(cli: CommandLine) -> None:
    cli("write", "other.txt", "--content", "x")
    code, shown = person("undo", types="n")
    assert code == 3
    asked = shown.partition(QUESTION)[0]
    assert "1 file" in asked
    assert "other.txt" in asked
    assert all(len(line) <= 80 for line in asked.replace("\r", "").splitlines())
    assert (cli.root / "other.txt").exists()
    assert person("undo", types="y")[0] == 0
    assert not (cli.root / "other.txt").exists()


def test_what_waits_no_more_is_not_asked_about(cli: CommandLine) -> None:
    proposal = propose(cli, "one\n")
    cli("reject", "--unattended", proposal)
    code, shown = person("approve", proposal)
    assert code == 3
    assert QUESTION not in shown


def test_who_decided_is_in_the_journal_with_the_programs_that_it_came_through(
    cli: CommandLine,
) -> None:
    by_program, by_person = propose(cli, "one\n"), ""
    cli("approve", "--unattended", by_program)
    by_person = propose(cli, "two\n")
    assert person("approve", by_person, types="y")[0] == 0
    program, terminal = (cli.json("show", one)["approved_by"] for one in (by_program, by_person))
    assert NOBODY_LOOKED in program
    assert "typed at a terminal" in terminal
    if sys.platform == "linux":
        # This process started the second one, and has the name that the system gives it.
        ours = Path("/proc/self/comm").read_text().strip()
        assert ours in terminal.partition("from ")[2].split(", ")
    assert person("undo")[0] == 0
    cli("undo", "--unattended")
    actors = [one["actor"] for one in cli.json("log", "-n", "2")["operations"]]
    assert [one["kind"] for one in actors] == ["program", "person"]


def test_an_agent_hears_nothing_of_the_programs_of_a_person(cli: CommandLine) -> None:
    session = Session("s", Actor("agent", "robot"))
    with open_workspace([str(cli.root)], state_dir=str(cli.state), mode="preview") as workspace:
        with workspace.draft(session, "write_file") as draft:
            draft.write(draft.open("proposed.txt"), "x\n")
            change = workspace.submit(draft, "create proposed.txt").operation
        cli("approve", "--unattended", str(change))
        (news,) = workspace.events(session)
    assert "terminal" not in news.text


@pytest.mark.parametrize("name", ["you (person)", "ann\nperson ann", "person ann"])
def test_no_agent_passes_for_a_person_by_its_name(cli: CommandLine, name: str) -> None:
    proposal = propose(cli, "one\n", agent=name)
    (line, *_) = cli("pending").out.splitlines()
    assert line.startswith(proposal)
    assert line.partition(" ago ")[2].split()[0] == "agent"
    cli("approve", "--unattended", proposal)
    assert cli("log").out.partition(" ago ")[2].split()[0] == "agent"


def test_only_what_people_read_names_the_commands_that_decide() -> None:
    faces = PACKAGE / "faces"
    # Hooks tell them in what hosts show to the person alone.
    people = (faces / "cli", faces / "web", faces / "hooks" / "judge.py")
    assert [
        path.name
        for path in PACKAGE.rglob("*.py")
        if not any(map(path.is_relative_to, people))
        and re.search(r"filepact (approve|reject)", path.read_text())
    ] == []


def test_a_person_is_shown_again_what_has_moved_and_asked_again(cli: CommandLine) -> None:
    (cli.root / "proposed.txt").write_text("1\n2\n3\n4\n5\n6\n")
    proposal = propose(cli, "1\n2\n3\n4\n5\nSIX\n")
    (cli.root / "proposed.txt").write_text("one\n2\n3\n4\n5\n6\n")
    paths = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"PYTHONPATH": paths, "TERM": "xterm", "NO_COLOR": "1"}
    environment["FILEPACT_PAGER"] = "cat"
    code, shown = on_terminal(
        ["approve", proposal],
        start=Command,
        typed=[(QUESTION, "y\n"), (QUESTION, "y\n")],
        env=environment,
    )
    assert code == 0
    first, second, _ = shown.split(QUESTION)
    assert (proposal in first, "+SIX" in first, "+SIX" in second) == (True, True, True)
    assert second.index("+one") < second.index("+SIX"), "what happened since, then what is asked"
    assert (cli.root / "proposed.txt").read_text() == "one\n2\n3\n4\n5\nSIX\n"


def test_a_program_is_shown_what_has_moved_and_has_to_say_it_again(cli: CommandLine) -> None:
    (cli.root / "proposed.txt").write_text("1\n2\n3\n4\n5\n6\n")
    proposal = propose(cli, "1\n2\n3\n4\n5\nSIX\n")
    (cli.root / "proposed.txt").write_text("one\n2\n3\n4\n5\n6\n")
    error = cli.json("approve", "--unattended", proposal, code=1)["error"]
    assert error["code"] == "PROPOSAL_CHANGED"
    fitted = error["details"]["proposal"]
    assert error["details"]["diff"] == cli.json("diff", fitted)["diff"]
    assert "+one\n" in error["details"]["since"]
    assert (cli.root / "proposed.txt").read_text() == "one\n2\n3\n4\n5\n6\n"
    assert cli("approve", "--unattended", fitted).code == 0
    assert (cli.root / "proposed.txt").read_text() == "one\n2\n3\n4\n5\nSIX\n"


def test_all_that_waits_is_refused_in_one_go_or_what_one_agent_wants_or_one_folder(
    cli: CommandLine,
) -> None:
    ids: dict[str, str] = {}
    with open_workspace([str(cli.root)], state_dir=str(cli.state), mode="preview") as workspace:
        for agent in ("robot", "other"):
            for name in ("a.txt", "sub/b.txt"):
                session = Session(agent, Actor("agent", agent, "9"))
                with workspace.draft(session, "write_file") as draft:
                    draft.write(draft.open(name), f"by {agent}\n")
                    ids[f"{agent} {name}"] = str(workspace.submit(draft, "write").operation)

    def waiting() -> set[str]:
        return {one["id"] for one in cli.json("pending")["pending"]}

    for wrong in ([], ["--all", ids["robot a.txt"]], [ids["robot a.txt"], "--agent", "robot"]):
        assert (
            cli.json("reject", "--unattended", *wrong, code=2)["error"]["code"] == "INVALID_PARAMS"
        )
    assert waiting() == set(ids.values())
    refused = cli.json("reject", "--unattended", "--all", "--agent", "robot", "--path", "sub")
    assert [one["id"] for one in refused["rejected"]] == [ids["robot sub/b.txt"]]
    cli("reject", "--unattended", "--all", "--path", "a.txt", "--reason", "no")
    assert waiting() == {ids["other sub/b.txt"]}
    assert "no" in cli("show", ids["other a.txt"]).out
    assert cli("reject", "--unattended", "--all").code == 0
    assert waiting() == set()
    assert cli("reject", "--unattended", "--all").code == 3


LINES = "".join(f"line {number}\n" for number in range(1, 41))
HUNKS = LINES.replace("line 3\n", "third\n").replace("line 20\n", "").replace("line 38\n", "last\n")


def proposed_hunks(cli: CommandLine) -> str:
    """A proposal of three hunks; its id."""
    (cli.root / "proposed.txt").write_text(LINES)
    return propose(cli, HUNKS)


def test_a_person_accepts_some_hunks_by_their_numbers_and_the_others_wait(cli: CommandLine) -> None:
    proposal = proposed_hunks(cli)
    assert [one["number"] for one in cli.json("show", proposal)["hunks"]] == [1, 2, 3]
    code, shown = person("approve", proposal, "--hunks", "1,3", types="y")
    assert code == 0
    asked = shown.partition(QUESTION)[0]
    assert "hunk 3 of 3" in asked
    assert "hunk 2 of 3" not in asked
    assert "-line 20" not in asked
    assert (cli.root / "proposed.txt").read_text() == HUNKS.replace(
        "line 19\n", "line 19\nline 20\n"
    )
    (rest,) = cli.json("pending")["pending"]
    assert cli("approve", rest["id"], "--unattended").code == 0
    assert (cli.root / "proposed.txt").read_text() == HUNKS


def test_the_other_hunks_are_rejected_where_that_is_said(cli: CommandLine) -> None:
    proposal = proposed_hunks(cli)
    words = ("--hunks", "2-2", "--reject-others", "--reason", "not these", "--unattended")
    assert cli("approve", proposal, *words).code == 0
    assert (cli.root / "proposed.txt").read_text() == LINES.replace("line 20\n", "")
    assert cli.json("pending")["pending"] == []
    assert "not these" in cli.json("show", proposal)["reason"]


def test_hunks_are_rejected_and_the_others_wait(cli: CommandLine) -> None:
    proposal = proposed_hunks(cli)
    left = cli.json("reject", proposal, "--hunks", "1", "--reason", "no", "--unattended")
    assert (cli.root / "proposed.txt").read_text() == LINES
    assert [one["id"] for one in cli.json("pending")["pending"]] == [left["id"]]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["approve", "ID", "--hunks", "4"], 2),
        (["approve", "ID", "--hunks", "0"], 2),
        (["approve", "ID", "--hunks", "3-1"], 2),
        (["approve", "ID", "--hunks", "x"], 2),
        (["approve", "ID", "--hunks", "1-99999999"], 2),
        (["approve", "ID", "--reject-others"], 2),
        (["approve", "ID", "ID", "--hunks", "1"], 2),
        (["approve", "--session", "s", "--hunks", "1"], 2),
        (["approve", "ID", "--session", "s"], 2),
        (["approve", "ID", "--agent", "robot"], 2),
        (["reject", "--session", "nobody"], 3),
        (["reject", "ID", "--hunks", "1-4"], 2),
        (["reject", "--all", "--hunks", "1"], 2),
    ],
)
def test_hunks_that_make_no_sense_are_refused_and_nothing_is_done(
    cli: CommandLine, words: list[str], code: int
) -> None:
    proposal = proposed_hunks(cli)
    named = [proposal if one == "ID" else one for one in words]
    assert cli(*named, "--unattended").code == code
    assert (cli.root / "proposed.txt").read_text() == LINES
    assert [one["id"] for one in cli.json("pending")["pending"]] == [proposal]


def proposals(cli: CommandLine) -> dict[str, str]:
    """Four proposals of two sessions, by session and name."""
    ids: dict[str, str] = {}
    with open_workspace([str(cli.root)], state_dir=str(cli.state), mode="preview") as workspace:
        for agent in ("robot", "other"):
            for name in ("a.txt", "b.txt"):
                session = Session(agent, Actor("agent", agent, "9"))
                with workspace.draft(session, "write_file") as draft:
                    draft.write(draft.open(f"{agent}/{name}"), f"by {agent}\n")
                    ids[f"{agent} {name}"] = str(workspace.submit(draft, "write").operation)
    return ids


def test_several_are_approved_by_their_ids_or_by_their_session(cli: CommandLine) -> None:
    ids = proposals(cli)
    names = [ids["robot a.txt"], ids["other a.txt"], ids["robot a.txt"]]
    said = cli.json("approve", *names, "--unattended")
    assert [one["operation"] for one in said["approved"]] == names[:2]
    assert said["failed"] == []
    said = cli.json("approve", "--session", "rob", "--unattended", "--reason", "good")
    assert len(said["approved"]) == 1
    assert (cli.root / "robot" / "b.txt").read_text() == "by robot\n"
    assert "good" in cli.json("show", ids["robot b.txt"])["reason"]
    cli("reject", "--session", "other", "--unattended")
    assert cli.json("pending")["pending"] == []
    assert cli.json("approve", "--all", "--unattended", code=3) == {"approved": [], "failed": []}


def test_of_several_what_cannot_be_done_is_told_and_the_rest_is_done(cli: CommandLine) -> None:
    ids = proposals(cli)
    (cli.root / "robot").mkdir()
    (cli.root / "robot" / "a.txt").write_text("mine\n")
    said = cli.json("approve", "--all", "--unattended", code=1)
    assert [(one["id"], one["code"]) for one in said["failed"]] == [
        (ids["robot a.txt"], "STALE_FILE")
    ]
    assert len(said["approved"]) == 3
    assert (cli.root / "robot" / "a.txt").read_text() == "mine\n"
    assert "STALE_FILE" in cli("approve", "--all", "--unattended").out


def test_a_person_is_asked_about_each_of_several(cli: CommandLine) -> None:
    ids = proposals(cli)
    paths = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"PYTHONPATH": paths, "TERM": "xterm", "FILEPACT_PAGER": "cat"}
    typed = [(QUESTION, "n\n"), (QUESTION, "y\n")]
    words = ["approve", ids["robot a.txt"], ids["robot b.txt"]]
    code, shown = on_terminal(words, start=Command, typed=typed, env=environment)
    assert code == 0
    assert shown.count(QUESTION) == 2
    assert not (cli.root / "robot" / "a.txt").exists()
    assert (cli.root / "robot" / "b.txt").exists()


def test_sessions_that_begin_alike_have_to_be_told_apart(cli: CommandLine) -> None:
    with open_workspace([str(cli.root)], state_dir=str(cli.state), mode="preview") as workspace:
        for name in ("s1", "s2"):
            session = Session(name, Actor("agent", "robot"))
            with workspace.draft(session, "write_file") as draft:
                draft.write(draft.open(name), "x\n")
                workspace.submit(draft, "write")
    said = cli.json("approve", "--session", "s", "--unattended", code=2)
    assert said["error"]["code"] == "INVALID_PARAMS"
    assert len(cli.json("pending")["pending"]) == 2


class Watching:
    """A `filepact review --watch`, of which lines are read as they come."""

    def __init__(self, *words: str, **variables: str) -> None:
        paths = os.pathsep.join(filter(None, sys.path))
        self._process = Command(
            ["pending", "--watch", *words],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": paths} | variables,
        )

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode()

    def end(self) -> int:
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code


def test_what_waits_is_told_as_it_comes_and_what_becomes_of_it(cli: CommandLine) -> None:
    (cli.root / "proposed.txt").write_text(LINES)
    first = propose(cli, HUNKS)
    watch, programs = Watching(), Watching("--json")
    try:
        assert first in watch.line()
        known = json.loads(programs.line())
        assert (known["event"], known["id"], known["added"]) == ("waits", first, 2)
        assert known["files"][0]["path"] == "proposed.txt"
        (cli.root / "proposed.txt").write_text(LINES.replace("line 12\n", "mine\n"))
        assert watch.line().startswith("moved")
        assert json.loads(programs.line())["event"] == "moved"
        cli("reject", first, "--unattended")
        assert watch.line().startswith("rejected")
        said = json.loads(programs.line())
        assert said.get("event") == "rejected", said
    finally:
        assert (watch.end(), programs.end()) == (130, 130)


def test_the_desktop_is_told_the_names_of_files_where_that_is_set(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, told = tmp_path / "mine.toml", tmp_path / "told"
    settings.write_text("[proposals]\nnotify = true\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "notify-send").write_text(
        f'#!/bin/sh\nfor w in "$@"; do echo "$w"; done > {told}\n'
    )
    (programs / "notify-send").chmod(0o755)
    propose(cli, "the text itself\n", agent="<b>robot")
    watch = Watching("--config", str(settings), PATH=f"{programs}{os.pathsep}{os.environ['PATH']}")
    try:
        assert "proposed.txt" in watch.line()
        propose(cli, "another text\n", agent="second")
        assert "second" in watch.line()
    finally:
        watch.end()
    assert "proposed.txt" in told.read_text()
    assert "text itself" not in told.read_text()
    monkeypatch.setenv("PATH", str(programs))
    assert notify(["<b>\u202e.txt", *map(str, range(9))])
    assert "&lt;b&gt;\\u202e.txt" in told.read_text()
    assert "and 5 more" in told.read_text()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not notify(["a.txt"])


def test_what_is_approved_in_advance_is_listed_and_revoked(cli: CommandLine) -> None:
    first = propose(cli, "one\n")
    assert cli.json("approve", first, "--also", "src/**", "--unattended", code=2)["error"][
        "code"
    ] == ("INVALID_PARAMS")
    given = cli.json("approve", first, "--also", "*.txt", "--unattended")["grant"]
    with (
        open_workspace([str(cli.root)], state_dir=str(cli.state), mode="preview") as workspace,
        workspace.draft(Session("s", Actor("agent", "robot", "9")), "write_file") as draft,
    ):
        draft.write(draft.open("other.txt"), "x\n")
        assert workspace.submit(draft, "create other.txt").status == "applied"
    (listed,) = cli.json("policy", "grants")["grants"]
    assert (listed["id"], listed["pattern"], listed["change"]) == (given, "*.txt", first)
    shown = cli("policy", "grants").out
    assert given in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert cli.json("policy", "grants", "--revoke", given, code=1)["error"]["code"] == "UNATTENDED"
    cli("policy", "grants", "--revoke", given, "--unattended")
    assert cli("policy", "grants").code == 3
    (over,) = cli.json("policy", "grants", "--all")["grants"]
    assert over["revoked"]
    assert cli("policy", "grants", "--revoke", given, "--unattended").code == 3


def test_what_was_accepted_says_how_many_files_it_is(cli: CommandLine) -> None:
    with (
        open_workspace([str(cli.root)], state_dir=str(cli.state), mode="preview") as workspace,
        workspace.draft(Session("s", Actor("agent", "robot")), "patch_apply") as draft,
    ):
        for target in draft.open_all(["a", "b", "c", "d"]):
            draft.write(target, "1\n")
        proposal = workspace.submit(draft, "make four files").operation
    assert proposal
    done = cli.json("approve", proposal, "--hunks", "1", "--unattended")
    assert len(done["files"]) == 1
    assert "1 of 4 files" in done["summary"]
    [waits] = cli.json("pending")["pending"]
    assert "3 of 4 files" in waits["summary"]
