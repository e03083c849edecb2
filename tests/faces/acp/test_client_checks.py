"""The conformance suite: its table, its two ways to a client, and what it tells."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

import filepact
from filepact.acp import ClientFileSystem, Report, Verdict, check_client
from filepact.errors import FilepactError, InvalidParamsError, TimedOutError
from filepact.faces.acp.check.checks import CHECKS, GROUPS, choose
from filepact.faces.acp.check.plan import Plan
from filepact.faces.acp.check.runner import check_program, fill_in
from filepact.faces.cli.acp_check import tell
from tests.faces.acp.right_client import RightClient

PLAIN = Path(__file__).with_name("plain_client.py")
SOURCE = str(Path(filepact.__file__).parents[1])


@pytest.fixture(autouse=True)
def _quiet(monkeypatch, tmp_path):
    """The protocol's package logs what it cannot read, which is what the suite sends."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


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
    with pytest.raises(InvalidParamsError):
        choose(["ids.none"])


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


def test_our_own_client_has_no_fault_in_reading_windows_and_meta(tmp_path):
    files = ClientFileSystem(state_dir=str(tmp_path / "state"))
    try:
        report = asyncio.run(
            check_client(files, only=["capabilities.version", "reads", "windows", "meta"])
        )
    finally:
        files.close()
    assert report.failed() == ()
    assert report.count("passed") == len(choose(["reads", "windows", "meta"])) + 1
    assert report.client["clientInfo"]["name"] == "filepact-check-client"
    assert json.loads(json.dumps(report.facts()))["conforms"] is True


def test_the_command_checks_a_program_and_tells_people_and_programs(cli):
    command = ["acp-check", "--only", "windows.line", "--only", "ids"]
    command += ["--", sys.executable, str(PLAIN), "prompt", "{agent}"]
    said = cli(*command)
    assert said.code == 0, said
    assert "windows.line" in said.out
    assert "0 failed" in said.out


def test_the_list_names_every_check(cli):
    known = cli.json("acp-check", "--list")
    assert [one["id"] for one in known["checks"]] == [check.id for check in CHECKS]
    assert "windows.only-lf" in cli("acp-check", "--list").out


# -- programs that are clients ------------------------------------------------------------------


def checked(way, *, at="prompt", patience=5.0):
    """What is found about the plain client, which goes one of its ways."""
    command = [sys.executable, str(PLAIN), way, "{agent...}"]
    return check_program(command, Plan(at=at, patience=patience, only=("windows.line",)))


def test_checks_begin_without_a_prompt_where_that_is_asked_for():
    assert checked("wait", at="session").count("passed") == 1


def test_nothing_is_written_into_another_folder_than_the_suites_own():
    with pytest.raises(FilepactError) as caught:
        checked("elsewhere")
    assert "another folder" in caught.value.message


def test_a_client_that_starts_no_agent_is_told_so_and_with_which_status_it_ended():
    with pytest.raises(InvalidParamsError) as caught:
        checked("leave")
    assert "exit status 7" in caught.value.message
    assert "{agent}" in caught.value.hint


def test_a_client_that_never_starts_an_agent_is_not_waited_for_without_end():
    with pytest.raises(TimedOutError):
        check_program(["sh", "-c", "cat", "{agent}"], Plan(wait=0.2), say=["go"])


def test_what_was_found_before_a_client_ended_is_told():
    found = checked("drop", patience=0.1)
    assert "exit status 0" in found.trouble
    assert not found.conforms
    assert [one.outcome for one in found.verdicts] == ["skipped"]
    assert found.facts()["trouble"] == found.trouble
    assert found.trouble in "".join(span.text for span in tell(found))


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


def test_a_client_that_reads_its_prompts_is_given_some(cli):
    command = ["--only", "windows.line", "--", sys.executable, str(PLAIN), "lines", "{agent}"]
    refused = cli("acp-check", "--wait", "5", *command)
    assert (refused.code, "--say" in refused.err) == (1, True)
    said = cli("acp-check", "--say", "go", "--say", "on", *command)
    assert said.code == 0, said
    assert "1 passed" in said.out


def test_a_client_in_the_folder_from_which_it_is_checked_is_found(cli):
    (cli.root / "mine.py").write_text(PLAIN.read_text())
    (cli.root / "prompt").write_text("no file that is meant")
    command = [sys.executable, "mine.py", "prompt", "{agent...}"]
    said = cli("acp-check", "--only", "windows.line", "--", *command)
    assert said.code == 0, said


def test_a_program_that_is_not_there_cannot_be_checked(cli):
    said = cli("acp-check", "--", "no-such-program-anywhere")
    assert said.code == 1
    assert "no-such-program-anywhere" in said.err


def test_no_client_and_an_unknown_check_are_mistakes(cli):
    assert cli("acp-check").code == 1
    assert cli("acp-check", "--only", "nothing", "--", "true").code == 1
    assert cli("acp-check", "--wait", "0", "--", "true").code == 2


def test_a_client_stays_no_longer_than_its_last_words_are_waited_for(tmp_path):
    script = "trap '' TERM; {agent} </dev/null; sleep 300"
    with pytest.raises(FilepactError):
        check_program(["sh", "-c", script], Plan(wait=0.2, only=("windows.line",)))


@pytest.mark.parametrize("deaf", [False, True])
def test_who_ends_the_command_ends_the_client_with_it(tmp_path, deaf):
    note = tmp_path / "client"
    script = f"echo $$ > {note}.new; mv {note}.new {note}; exec sleep 300"
    command = [sys.executable, "-m", "filepact", "acp-check", "--", "sh", "-c", script]
    if deaf:
        # A shell's programs in the background ignore the other signal that ends programs.
        command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    variables = {**os.environ, "PYTHONPATH": SOURCE, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=variables, stderr=subprocess.DEVNULL) as suite:
        while not note.exists():
            assert suite.poll() is None
        suite.send_signal(signal.SIGTERM)
        assert suite.wait(60) == 130
    with suppress(ProcessLookupError):
        while True:  # Whoever inherits it may take a moment to let go of it.
            os.kill(int(note.read_text()), 0)
    assert [path.name for path in tmp_path.iterdir()] == ["client"]


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
        span.text
        for span in tell(report(("must", "failed"), ("should", "skipped"), ("must", "passed")))
    )
    assert f"FAILED  {CHECKS[0].id}  must, {CHECKS[0].source}" in text
    assert f"{CHECKS[0].says}\n          because of must" in text
    assert f"skipped {CHECKS[1].id}  because of should" in text
    assert "1 passed, 1 failed (1 must, 0 should), 1 skipped." in text


def test_what_is_advised_counts_only_where_that_is_asked_for(cli, monkeypatch):
    command = ["--only", "capabilities.client-info", "--", sys.executable, str(PLAIN), "prompt"]
    assert cli("acp-check", *command).code == 0
    assert cli("acp-check", "--strict", *command).code == 1


# -- our own -----------------------------------------------------------------------------------


def test_our_own_client_passes_everything(tmp_path):
    files = ClientFileSystem(state_dir=str(tmp_path / "state"))
    try:
        found = asyncio.run(check_client(files, patience=10))
    finally:
        files.close()
    assert [(one.id, one.why) for one in found.failed()] == []
    assert found.count("passed") == len(CHECKS) - 2


class NoFiles(RightClient):
    """An editor without the two methods."""

    reads = writes = False


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("editor", [RightClient, NoFiles])
def test_our_own_proxy_passes_everything_in_front_of_any_editor(tmp_path, editor):
    through = [sys.executable, "-m", "filepact", "acp", "--state", str(tmp_path / "state"), "--"]
    variables = {"PYTHONPATH": SOURCE, "XDG_CONFIG_HOME": str(tmp_path)}
    found = asyncio.run(check_client(editor(), patience=10, through=through, env=variables))
    assert [(one.id, one.why) for one in found.failed()] == []
