"""Long answers on a terminal go through the person's pager."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.forked import Command
from tests.terminal import on_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faces.command_line import CommandLine


@pytest.fixture
def pager(tmp_path: Path) -> str:
    """A pager that says that it is one, and shows the first line only."""
    program = tmp_path / "pager"
    program.write_text("#!/bin/sh\necho paged $1\nhead -n 1\n")
    program.chmod(0o755)
    return str(program)


@pytest.fixture
def long(cli: CommandLine) -> str:
    """An operation with more lines than a screen has."""
    text = "".join(f"line {number}\n" for number in range(20_000))
    return str(cli.json("write", "long.txt", stdin=text.encode())["operation"])


def shown(*words: str, **changes: str) -> str:
    paths = os.pathsep.join(filter(None, sys.path))
    unset = {"PAGER", "FILEPACT_PAGER", "NO_COLOR"}
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    environment = kept | {"PYTHONPATH": paths, "TERM": "xterm"} | changes
    status, text = on_terminal(words, start=Command, env=environment)
    assert status == 0
    return text


def test_a_long_diff_goes_through_it_and_who_leaves_has_seen_enough(long: str, pager: str) -> None:
    text = shown("diff", long, PAGER="false", FILEPACT_PAGER=f"{pager} -x")
    assert text.splitlines()[0] == "paged -x"
    assert "--- /dev/null" in text
    assert "line 19999" not in text
    assert "paged" in shown("show", long, PAGER=pager)


@pytest.mark.parametrize(
    "words", [("--no-pager", "diff"), ("diff", "--no-pager"), ("--json", "diff")]
)
def test_who_wants_none_gets_all_at_once(long: str, pager: str, words: tuple[str, ...]) -> None:
    text = shown(*words, long, PAGER=pager)
    assert "paged" not in text
    assert "line 19999" in text


@pytest.mark.parametrize("wanted", ["cat", "", "no-such-program-anywhere", "'"])
def test_without_a_pager_all_is_shown_all_the_same(long: str, wanted: str) -> None:
    assert "line 19999" in shown("diff", long, PAGER=wanted)


def test_what_fits_on_the_screen_needs_none(cli: CommandLine, pager: str) -> None:
    cli("write", "short.txt", "--content", "x")
    assert "paged" not in shown("log", PAGER=pager)


def test_no_program_of_the_folder_that_agents_write_is_started(
    cli: CommandLine, long: str, pager: str
) -> None:
    (cli.root / "less").write_text(f"#!/bin/sh\nexec {pager}\n")
    (cli.root / "less").chmod(0o755)
    for path in (str(cli.root), ".", ""):
        assert "paged" not in shown(
            "diff", long, PATH=f"{path}:{os.environ['PATH']}", PAGER="less -E"
        )


def test_in_a_pipe_there_is_none(
    cli: CommandLine, long: str, pager: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER", pager)
    assert cli("diff", long).out.endswith("+line 19999\n")
