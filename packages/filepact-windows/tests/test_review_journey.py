"""Twelve proposals of a real server, reviewed in a real terminal by forty keys."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.faces.line_client import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faces.command_line import CommandLine

pytest.importorskip("textual", reason="the extra `review` is not installed")
pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

TRIES = 600
PLAN = [4, 4, 4, 4, *([3] * 8)]  # hunks of each proposal, forty in all


class Tmux:
    """One terminal of 80 columns and 24 rows, with a server of its own."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux")

    def run(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", *words],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout

    def start(self, command: list[str], environment: dict[str, str]) -> None:
        named = [f"{name}={value}" for name, value in environment.items()]
        line = f"{shlex.join(['env', *named, *command])}; echo ended; cat"
        self.run("new-session", "-d", "-x", "80", "-y", "24", line)

    def keys(self, *keys: str) -> None:
        self.run("send-keys", *keys)

    def screen(self, wanted: str) -> str:
        """The screen once it shows this."""
        shown = ""
        for _ in range(TRIES):
            shown = self.run("capture-pane", "-p")
            if wanted in shown:
                return shown
            time.sleep(0.05)
        raise AssertionError(f"{wanted!r} is not shown:\n{shown}")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Tmux]:
    one = Tmux(tmp_path)
    yield one
    one.run("kill-server")


def text_of(file: int, accepted: set[int]) -> str:
    """A file of which some hunks were accepted."""
    lines = [f"file {file} line {number}\n" for number in range(12 * PLAN[file])]
    for hunk in accepted:
        lines[12 * hunk + 5] = f"file {file} hunk {hunk} is new\n"
    return "".join(lines)


def accepts(file: int, hunk: int) -> bool:
    return (file + hunk) % 3 != 0


@pytest.mark.slow
def test_forty_hunks_take_forty_keys_and_the_agent_is_told_of_each(
    cli: CommandLine, terminal: Tmux
) -> None:
    for file, hunks in enumerate(PLAN):
        (cli.root / f"file{file:02}.txt").write_text(text_of(file, set()))
        assert hunks >= 3
    paths = os.pathsep.join(filter(None, sys.path))
    environment = {
        "PYTHONPATH": paths,
        "FILEPACT_STATE_DIR": str(cli.state),
        "TERM": "tmux-256color",
    }
    with serving("mcp", str(cli.root), "--mode", "preview") as (_, client):
        client.shake_hands()
        said = [
            client.text(
                "write_file",
                path=f"file{file:02}.txt",
                content=text_of(file, {*range(hunks)}),
            )
            for file, hunks in enumerate(PLAN)
        ]
        ids = [re.search(r"\bc[0-9a-hjkmnp-tv-z]{10}\b", one)[0] for one in said]
        assert len({*ids}) == len(PLAN)
        terminal.start(
            [sys.executable, "-m", "filepact", "--root", str(cli.root), "review"], environment
        )
        shown = terminal.screen("hunk 1/4")
        assert "of 12 proposals" in shown
        terminal.keys(
            *(
                "y" if accepts(file, hunk) else "n"
                for file, hunks in enumerate(PLAN)
                for hunk in range(hunks)
            )
        )
        terminal.screen("Nothing waits for you")
        terminal.keys("q")
        terminal.screen("ended")
        for file, hunks in enumerate(PLAN):
            accepted = {hunk for hunk in range(hunks) if accepts(file, hunk)}
            assert (cli.root / f"file{file:02}.txt").read_text() == text_of(file, accepted)
        told = "\n".join(client.text("read_file", path="file00.txt") for _ in range(3))
        for file, change_id in enumerate(ids):
            rejected = [str(hunk + 1) for hunk in range(PLAN[file]) if not accepts(file, hunk)]
            (line,) = {one for one in told.splitlines() if f"Proposal {change_id}" in one}
            assert f"{', '.join(rejected)} rejected" in line
        assert client.text("read_file", path="file11.txt").count("Proposal") == 0


@pytest.mark.slow
def test_a_text_is_edited_in_the_persons_editor_and_nothing_hostile_reaches_the_terminal(
    cli: CommandLine, terminal: Tmux, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/hostile/harmless/ "$1"\n')
    editor.chmod(0o755)
    paths = os.pathsep.join(filter(None, sys.path))
    environment = {
        "PYTHONPATH": paths,
        "FILEPACT_STATE_DIR": str(cli.state),
        "TERM": "tmux-256color",
        "EDITOR": str(editor),
        "NO_COLOR": "1",
    }
    text = "a hostile line \x1b[2J\x1b]0;title\x07\u202e\u0441onfig\n"
    with serving("mcp", str(cli.root), "--mode", "preview") as (_, client):
        client.shake_hands()
        client.text("write_file", path="odd.txt", content=text)
        terminal.start([sys.executable, "-m", "filepact", "review"], environment)
        shown = terminal.screen("hunk 1/1")
        assert "\\x1b[2J" in shown
        assert "\\u202e" in shown
        assert "\\u0441onfig" in shown.replace("\n", "")
        terminal.keys("e")
        terminal.screen("Your text waits as")
        terminal.keys("y")
        terminal.screen("Nothing waits for you")
        terminal.keys("q")
        terminal.screen("ended")
        assert (cli.root / "odd.txt").read_text() == text.replace("hostile", "harmless")
        told = client.text("read_file", path="odd.txt")
        assert "a person has changed it" in told
    assert "\x1b" not in shown
