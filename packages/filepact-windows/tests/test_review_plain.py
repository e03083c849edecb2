"""The review line by line, at a person's terminal, as somebody with a screen reader has it."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.errors import InvalidParamsError, WriteFailedError
from filepact_windows.review_editor import edit_text
from filepact_windows.review_selection import KEYS
from reviewing import AGENT, NEW, OLD, OTHER
from tests.architecture.project import ROOT
from tests.forked import Command
from tests.terminal import on_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from filepact.domain.operation import Session
    from tests.faces.command_line import CommandLine

ASKED = "? for all] "


def propose(cli: CommandLine, path: str, text: str, session: Session = AGENT) -> str:
    with (
        open_workspace([str(cli.root)], state_dir=str(cli.state), mode="preview") as workspace,
        workspace.draft(session, "write_file") as draft,
    ):
        draft.write(draft.open(path), text)
        return str(workspace.submit(draft, f"write {path}").operation)


def reviewed(*types: str | tuple[str, str], editor: str = "", pager: str = "cat") -> str:
    """What a person is shown who types these lines, each in answer to a question."""
    paths = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"PYTHONPATH": paths, "TERM": "xterm", "NO_COLOR": "1"}
    environment |= {"FILEPACT_PAGER": pager, "VISUAL": "", "EDITOR": editor}
    typed = [
        (ASKED, f"{one}\n") if isinstance(one, str) else (one[0], f"{one[1]}\n") for one in types
    ]
    code, shown = on_terminal(["review", "--plain"], start=Command, typed=typed, env=environment)
    assert code == 0, shown
    return shown


@pytest.fixture
def waits(cli: CommandLine) -> str:
    (cli.root / "a.txt").write_text(OLD)
    (cli.root / "b.txt").write_text(OLD)
    return propose(cli, "a.txt", NEW)


def test_a_program_reviews_nothing(cli: CommandLine) -> None:
    assert cli.json("review", code=1)["error"]["code"] == "UNATTENDED"


def test_without_proposals_it_ends_at_once(cli: CommandLine) -> None:
    assert "Nothing waits" in reviewed()


def test_each_hunk_is_shown_and_asked_about(cli: CommandLine, waits: str) -> None:
    shown = reviewed("y", "n", "", "u", "?", "y", "n")
    assert re.search(r"hunk 1 of 3 .*?-line 3.*?\+third.*?hunk 1 of 3: accept", shown, re.DOTALL)
    assert "undo what was done last" in shown
    done = OLD.replace("line 3\n", "third\n").replace("line 20\n", "")
    assert (cli.root / "a.txt").read_text() == done


def test_what_stands_above_a_hunk_ends_between_words(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    propose(cli, "AGENTS.md", "Be kind.\n")
    above, _, _ = reviewed("q").partition("hunk 1 of 1")
    lines = above.splitlines()
    (why,) = [at for at, line in enumerate(lines) if line.startswith("waits for control files")]
    assert max(map(len, lines)) <= 60
    assert lines[why + 1].strip()


def test_no_pager_takes_the_keys_that_answer_a_question(cli: CommandLine, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho paged\n")
    pager.chmod(0o755)
    propose(cli, "long.txt", "".join(f"line {number}\n" for number in range(400)))
    shown = reviewed("y", pager=str(pager))
    assert "paged" not in shown
    assert "line 399" in shown
    assert (cli.root / "long.txt").exists()


def test_what_is_left_waits_on(cli: CommandLine, waits: str) -> None:
    shown = reviewed("j", "y", "w", "q")
    assert "1 proposal waits" in shown
    assert (cli.root / "a.txt").read_text() == OLD.replace("line 20\n", "")
    assert "not carried out" in reviewed("y", "q")


def test_a_turn_is_decided_about_with_a_reason_and_undone(cli: CommandLine, waits: str) -> None:
    propose(cli, "c.txt", "new\n")
    propose(cli, "b.txt", NEW, OTHER)
    shown = reviewed(
        "t",
        ("n rejects all:", "y"),
        "u",
        "r",
        "c",
        ("decision:", "later"),
        "S",
        ("n rejects all:", "n"),
    )
    assert "Accepted 2 proposals" in shown
    assert "Undone" in shown
    assert "Done again" in shown
    assert (cli.root / "a.txt").read_text() == NEW
    assert (cli.root / "b.txt").read_text() == OLD
    assert cli.json("show", cli.json("log")["operations"][0]["id"])["state"] == "applied"


def test_text_is_found_and_hunks_are_split(cli: CommandLine) -> None:
    (cli.root / "a.txt").write_text(OLD)
    propose(cli, "a.txt", OLD.replace("line 3\n", "third\n").replace("line 5\n", "fifth\n"))
    shown = reviewed("s", "/fifth", "/no such", "k", "K", "J", "D", "e", "n", "y")
    assert "hunk 2 of 2" in shown
    assert "Not found" in shown
    assert "No editor" in shown or "no editor" in shown
    assert (cli.root / "a.txt").read_text() == OLD.replace("line 5\n", "fifth\n")


def test_a_proposed_text_is_edited_and_both_are_kept(
    cli: CommandLine, waits: str, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/third/3rd/ "$1"\n')
    editor.chmod(0o755)
    shown = reviewed("e", "a", editor=str(editor))
    assert "Your text waits as" in shown
    assert (cli.root / "a.txt").read_text() == NEW.replace("third", "3rd")
    assert "third" in cli.json("show", waits)["diff"]


def test_an_editor_has_to_be_there_and_to_end_well(monkeypatch: pytest.MonkeyPatch) -> None:
    for editor in ("", "no-such-editor-here", "'", "false"):
        monkeypatch.setenv("VISUAL", editor)
        monkeypatch.setenv("EDITOR", editor)
        failed = WriteFailedError if editor == "false" else InvalidParamsError
        with pytest.raises(failed):
            edit_text("x", "a.txt")
    monkeypatch.setenv("VISUAL", "true")
    assert edit_text("a\r\nb\udc80\n", "odd;name.$x") == "a\r\nb\udc80\n"
    for half in ("\ud83d", "\udc78"):
        with pytest.raises(InvalidParamsError, match="half of a character"):
            edit_text(half, "u.txt")


def test_hidden_characters_are_written_out(cli: CommandLine) -> None:
    propose(cli, "odd.txt", "a\u202eb\x1b[2J\n")
    shown = reviewed("n")
    assert "\\u202eb\\x1b[2J" in shown
    assert "\u202e" not in shown
    assert "\x1b[2J" not in shown


def test_every_key_is_documented() -> None:
    page = (ROOT / "docs" / "how-to" / "review-in-a-terminal.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (`[^|]+`) \| (.+) \|$", page, re.MULTILINE))
    for key, does in KEYS:
        written = " ".join(f"`{one}`" for one in key.split())
        assert rows[written].startswith(does)
