"""Our own client and our own proxy pass the conformance suite; the command that hands on to it."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path

import pytest

import filepact
from acp_conformance import CHECKS
from acp_conformance.checks import choose
from filepact.acp import ClientFileSystem, check_client
from right_client import RightClient

SOURCE = str(Path(filepact.__file__).parents[1])


@pytest.fixture(autouse=True)
def _quiet(monkeypatch, tmp_path):
    """The protocol's package logs what it cannot read, which is what the suite sends."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


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
    assert report.client["clientInfo"]["name"] == "acp-conformance-client"
    assert json.loads(json.dumps(report.facts()))["conforms"] is True


def test_the_command_hands_every_word_on_to_the_suite(cli):
    for words in (["acp-check", "--list", "--json"], ["--json", "acp-check", "--list"]):
        assert json.loads(cli(*words).out)["checks"]
    assert cli("acp-check", "--wait", "0", "--", "true").code == 2
    assert cli("acp-check", "--json", "--", "no-such-program-anywhere").code == 1


def test_without_the_suite_the_command_says_how_to_get_it(cli, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "acp_conformance"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "acp_conformance", None)
    refused = cli.json("acp-check", "--list", code=1)["error"]
    assert refused["code"] == "NOT_FOUND"
    assert "packages/acp-conformance" in refused["hint"]
    with pytest.raises(ImportError):
        _ = filepact.acp.check_client
    with pytest.raises(AttributeError):
        _ = filepact.acp.no_such_name


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
