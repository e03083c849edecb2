"""The conformance suite: its table, its two ways to a client, and what it tells."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from filepact.acp import ClientFileSystem, check_client
from filepact.errors import InvalidParamsError
from filepact.faces.acp.check.checks import CHECKS, GROUPS, choose
from filepact.faces.acp.check.runner import fill_in

PLAIN = Path(__file__).with_name("plain_client.py")


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
