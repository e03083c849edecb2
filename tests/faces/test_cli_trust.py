"""The command by which a person lets a language server work for agents in a folder."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.faces.test_cli_servers import UNCONFINED, checks, settings, table
from tests.forked import Command
from tests.terminal import on_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faces.command_line import CommandLine

__all__ = ["settings"]


def at_terminal(*words: str, types: str) -> tuple[int, str]:
    """What a person at a terminal is shown, having answered the question so."""
    paths = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"PYTHONPATH": paths, "TERM": "xterm", "NO_COLOR": "1"}
    return on_terminal(words, start=Command, typed=[("[y/N]", f"{types}\n")], env=environment)


@pytest.fixture
def risky(settings: Path) -> None:
    settings.write_text(table(risk="discloses") + table("worse", risk="runs") + UNCONFINED)


@pytest.mark.usefixtures("risky")
def test_a_person_gives_trust_and_withdraws_it(cli: CommandLine) -> None:
    waits = {one["server"]: one["trusted"] for one in cli.json("trust")["servers"]}
    assert waits == {"fake": False, "worse": False}
    said = cli("trust").out
    assert "waits    fake: it tells what is in any file that a text names" in said
    assert "filepact trust fake" in said
    code, shown = at_terminal("trust", "fake", types="n")
    assert (code, "Nothing is changed." in shown) == (3, True)
    code, shown = at_terminal("trust", "fake", types="y")
    assert code == 0
    assert f"fake is trusted in {cli.root}" in shown
    assert checks(cli)["fake"]["used"] is True
    assert checks(cli)["worse"]["used"] is False
    trusted = {one["server"]: one["trusted"] for one in cli.json("trust")["servers"]}
    assert trusted == {"fake": True, "worse": False}
    assert cli("trust", "fake").code == 3
    assert cli.json("trust", "fake", "--withdraw")["trusted"] is False
    assert checks(cli)["fake"]["used"] is False
    assert cli("trust", "fake", "--withdraw").code == 3


@pytest.mark.usefixtures("risky")
def test_trust_holds_in_one_folder(cli: CommandLine, tmp_path: Path) -> None:
    at_terminal("trust", "fake", types="y")
    other = tmp_path / "other"
    other.mkdir()
    known = cli.json("trust", "--root", str(other))["servers"][0]
    assert (known["server"], known["folder"], known["trusted"]) == ("fake", str(other), False)


@pytest.mark.usefixtures("risky")
@pytest.mark.parametrize("words", [("fake",), ("fake", "--json")])
def test_a_program_gives_no_trust(cli: CommandLine, words: tuple[str, ...]) -> None:
    said = cli("trust", *words, stdin=b"y\n")
    assert said.code == 1
    assert "terminal" in said.out + said.err
    assert not (cli.state / "trust.json").exists()
    assert checks(cli)["fake"]["used"] is False


@pytest.mark.usefixtures("risky")
def test_what_needs_no_trust_gets_none(cli: CommandLine) -> None:
    for words in (("ruff",), ("nonsense",), ("--withdraw",)):
        assert cli.json("trust", *words, code=2)["error"]["code"] == "INVALID_PARAMS"


@pytest.mark.usefixtures("risky")
def test_setup_names_what_waits(cli: CommandLine) -> None:
    words = ("setup", "claude", "--write", "--unattended")
    assert cli.json(*words)["waiting_for_trust"] == ["fake", "worse"]
    assert "here: fake, worse." in cli(*words).out
    at_terminal("trust", "worse", types="y")
    assert cli.json(*words)["waiting_for_trust"] == ["fake"]
