"""The suite's table of checks, client programs, the command, and the report that people see."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

from acp_conformance import (
    CHECKS,
    GROUPS,
    Plan,
    Report,
    SuiteError,
    Verdict,
    check_program,
    program,
)
from acp_conformance.checks import choose
from acp_conformance.cli import main, render
from acp_conformance.program import fill_in
from acp_conformance.report import Code

PLAIN = Path(__file__).with_name("plain_client.py")


@pytest.fixture(autouse=True)
def little_grace(monkeypatch):
    """Let a client that does not end be waited for only shortly: every wait for one that never will is whole."""
    monkeypatch.setattr(program, "_GRACE", 0.5)


@pytest.fixture
def suite(capfd):
    """The command, carried out in this process; answers its exit status and both outputs."""

    def run(*words):
        capfd.readouterr()
        code = main(words)
        out, err = capfd.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return run


def test_every_check_has_an_id_of_its_own_and_says_what_is_wanted():
    assert len(CHECKS) >= 60
    assert max(Counter(check.id for check in CHECKS).values()) == 1
    assert {group.name for group in GROUPS} == {check.id.partition(".")[0] for check in CHECKS}
    for check in CHECKS:
        assert re.fullmatch(r"[a-z]+\.[a-z0-9]+(-[a-z0-9]+)*", check.id), check.id
        assert check.says.endswith("."), check.id
        assert check.source, check.id


def test_checks_are_chosen_by_name_and_by_group():
    assert [check.id for check in choose(["ids.zero", "ids.text"])] == ["ids.zero", "ids.text"]
    assert len(choose(["meta"])) == sum(check.id.startswith("meta.") for check in CHECKS)
    assert choose([]) == CHECKS
    with pytest.raises(SuiteError) as caught:
        choose(["ids.none"])
    assert caught.value.code == "UNKNOWN_CHECK"


@pytest.mark.parametrize(
    ("words", "filled"),
    [
        (["c"], ["c", "py", "a b"]),
        (["c", "{agent}"], ["c", "py 'a b'"]),
        (["c", "--cmd={agent}", "z"], ["c", "--cmd=py 'a b'", "z"]),
        (["c", "{agent...}", "z"], ["c", "py", "a b", "z"]),
    ],
)
def test_the_agent_goes_where_the_client_takes_it(words, filled):
    assert fill_in(words, ["py", "a b"]) == filled


def test_the_command_checks_a_program_and_tells_people_and_programs(suite):
    command = ["--only", "windows.line", "--only", "ids"]
    command += ["--", sys.executable, str(PLAIN), "prompt", "{agent}"]
    said = suite(*command)
    assert said.code == 0, said
    assert "windows.line" in said.out
    assert "0 failed" in said.out


def test_the_list_names_every_check(suite):
    known = json.loads(suite("--list", "--json").out)
    assert [one["id"] for one in known["checks"]] == [check.id for check in CHECKS]
    assert "windows.only-lf" in suite("--list").out


# -- programs that are clients ------------------------------------------------------------------


def checked(way, *, at="prompt", patience=5.0):
    """What is found about the plain client, which goes one of its ways."""
    command = [sys.executable, str(PLAIN), way, "{agent...}"]
    return check_program(command, Plan(at=at, patience=patience, only=("windows.line",)))


def test_checks_begin_without_a_prompt_where_that_is_asked_for():
    assert checked("wait", at="session").count("passed") == 1


def test_nothing_is_written_into_another_folder_than_the_suites_own():
    with pytest.raises(SuiteError) as caught:
        checked("elsewhere")
    assert caught.value.code == "CHECKS_NOT_RUN"
    assert "another folder" in caught.value.message


def test_a_client_that_starts_no_agent_is_told_so_and_with_which_status_it_ended():
    with pytest.raises(SuiteError) as caught:
        checked("leave")
    assert caught.value.code == "AGENT_NOT_STARTED"
    assert "exit status 7" in caught.value.message
    assert "{agent}" in caught.value.hint


def test_a_client_that_never_starts_an_agent_is_not_waited_for_without_end():
    with pytest.raises(SuiteError) as caught:
        check_program(["sh", "-c", "cat", "{agent}"], Plan(wait=0.2), say=["go"])
    assert caught.value.code == "TIMED_OUT"


def test_what_was_found_before_a_client_ended_is_told():
    found = checked("drop", patience=0.5)
    assert "exit status 0" in found.trouble
    assert not found.conforms
    assert [one.outcome for one in found.verdicts] == ["skipped"]
    assert found.facts()["trouble"] == found.trouble
    assert found.trouble in "".join(text for text, _ in render(found))


def test_the_check_that_a_client_did_not_survive_says_how_it_ended():
    command = [sys.executable, str(PLAIN), "fall", "{agent...}"]
    only = ("windows.limit", "windows.line", "windows.exact")
    found = check_program(command, Plan(only=only))
    assert [(one.id, one.outcome) for one in found.verdicts] == [
        ("windows.line", "failed"),
        ("windows.limit", "skipped"),
        ("windows.exact", "skipped"),
    ]
    assert "exit status 9" in found.verdicts[0].why


def test_a_client_that_reads_its_prompts_is_given_some(suite):
    command = ["--only", "windows.line", "--", sys.executable, str(PLAIN), "lines", "{agent}"]
    refused = suite("--wait", "5", *command)
    assert (refused.code, "--say" in refused.err) == (1, True)
    said = suite("--say", "go", "--say", "on", *command)
    assert said.code == 0, said
    assert "1 passed" in said.out


def test_a_client_in_the_folder_from_which_it_is_checked_is_found(suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("right_client.py", PLAIN.name):
        (tmp_path / name).write_text(PLAIN.with_name(name).read_text())
    (tmp_path / "prompt").write_text("no file that is meant")
    command = [sys.executable, "plain_client.py", "prompt", "{agent...}"]
    said = suite("--only", "windows.line", "--", *command)
    assert said.code == 0, said


def test_a_program_that_is_not_there_cannot_be_checked(suite):
    said = suite("--", "no-such-program-anywhere")
    assert said.code == 1
    assert "no-such-program-anywhere" in said.err


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        ([], "NO_CLIENT", 1),
        (["--only", "nothing", "--", "true"], "UNKNOWN_CHECK", 1),
        (["--", "no-such-program-anywhere"], "CLIENT_NOT_FOUND", 1),
        (["--wait", "0", "--", "true"], "USAGE", 2),
        (["--no-such-option", "--", "true"], "USAGE", 2),
    ],
)
def test_what_keeps_the_checks_from_being_made_has_a_code_of_its_own(suite, words, code, status):
    said = suite("--json", *words)
    assert (said.code, said.err) == (status, "")
    assert json.loads(said.out)["error"]["code"] == code
    assert f"{code}: " in suite(*words).err


def test_an_option_of_the_client_is_none_of_the_suite(suite):
    said = suite("--", "no-such-program-anywhere", "--json")
    assert said.code == 1
    assert said.out == ""


def test_every_code_stands_in_the_manual():
    manual = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")
    for code in get_args(Code):
        assert f"| `{code}` |" in manual, code


def test_a_client_stays_no_longer_than_its_last_words_are_waited_for(tmp_path):
    script = "trap '' TERM; {agent} </dev/null; sleep 300"
    with pytest.raises(SuiteError):
        check_program(["sh", "-c", script], Plan(wait=0.2, only=("windows.line",)))


@pytest.mark.parametrize("deaf", [False, True])
def test_who_ends_the_command_ends_the_client_with_it(tmp_path, deaf):
    note = tmp_path / "client"
    script = f"echo $$ > {note}.new; mv {note}.new {note}; exec sleep 300"
    command = [sys.executable, "-m", "acp_conformance", "--", "sh", "-c", script]
    if deaf:
        # A shell's programs in the background ignore the other signal that ends programs.
        command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    variables = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=variables, stderr=subprocess.DEVNULL) as suite:
        while not note.exists():
            assert suite.poll() is None
        suite.send_signal(signal.SIGTERM)
        assert suite.wait(60) == 130
    with suppress(ProcessLookupError):
        while True:  # Whoever inherits it may take a moment to let go of it.
            os.kill(int(note.read_text()), 0)
    assert [path.name for path in tmp_path.iterdir()] == ["client"]


def test_a_client_that_is_just_being_started_is_ended_as_well(suite, monkeypatch):
    started = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            started.append(self)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    assert suite("--", "sh", "-c", "exec sleep 300").code == 130
    (client,) = started
    assert client.returncode == -signal.SIGTERM


# -- what people are told -----------------------------------------------------------------------


def report(*outcomes):
    verdicts = [
        Verdict(check.id, level, check.source, check.says, outcome, f"because of {level}")
        for check, (level, outcome) in zip(CHECKS, outcomes, strict=False)
    ]
    return Report({"clientInfo": None}, tuple(verdicts))


def test_a_report_conforms_when_nothing_failed_that_is_demanded():
    assert report(("must", "passed"), ("should", "failed"), ("must", "skipped")).conforms
    assert not report(("must", "passed"), ("must", "failed")).conforms
    assert not report().conforms


def test_people_see_each_check_and_why_it_failed():
    text = "".join(
        text
        for text, _ in render(report(("must", "failed"), ("should", "skipped"), ("must", "passed")))
    )
    assert f"FAILED  {CHECKS[0].id}  must, {CHECKS[0].source}" in text
    assert f"{CHECKS[0].says}\n          because of must" in text
    assert f"skipped {CHECKS[1].id}  because of should" in text
    assert "1 passed, 1 failed (1 must, 0 should), 1 skipped." in text


def test_what_is_advised_counts_only_where_that_is_asked_for(suite):
    command = ["--only", "capabilities.client-info", "--", sys.executable, str(PLAIN), "prompt"]
    assert suite(*command).code == 0
    assert suite("--strict", *command).code == 1
