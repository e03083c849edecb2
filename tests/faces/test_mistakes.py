"""What a person mistypes: each answer says what is wrong and what to type next, and fits a terminal of 80 columns."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from filepact.faces.cli.screen import Terminal

if TYPE_CHECKING:
    from tests.faces.command_line import CommandLine

WIDTH = 80

TOOLS_WORDS = (
    *("createDirs", "replace_all", "directory_tree", "search_files", "read_file", "write_file"),
    *(
        "old_string",
        "new_string",
        "patch_apply",
        "manage_files",
        "expected_revision",
        "max_results",
    ),
    "the person",
)
"""What tools are called, which nobody at a terminal knows; and how tools call who sits there."""

# What was typed, the exit code, and the error's code; empty where the command line itself is not understood.
# fmt: off
MISTAKES = [
    ("lgo", 2, ""),
    ("statsu", 2, ""),
    ("undoo", 2, ""),
    ("manage", 2, ""),
    ("help nosuch", 2, ""),
    ("--nosuch", 2, ""),
    ("log --nosuch", 2, ""),
    ("log --since soon", 2, "INVALID_PARAMS"),
    ("log --limit x", 2, ""),
    ("read", 2, ""),
    ("read .", 1, "NOT_A_FILE"),
    ("read nosuch", 1, "NOT_FOUND"),
    ("read nosuch/deep/file.py", 1, "NOT_FOUND"),
    ("read .env", 1, "PATH_BLOCKED"),
    ("read blob", 1, "BINARY_FILE"),
    ("read windows.txt --lines x", 2, ""),
    ("read /etc/passwd", 1, "PATH_BLOCKED"),
    ("read ../outside", 1, "PATH_BLOCKED"),
    ("read windows.txt extra", 2, ""),
    ("write", 2, ""),
    ("write nodir/x --content hi", 1, "NOT_FOUND"),
    ("write . --content hi", 1, "NOT_A_FILE"),
    ("write /etc/x --content x", 1, "PATH_BLOCKED"),
    ("edit", 2, ""),
    ("edit windows.txt", 2, "INVALID_PARAMS"),
    ("edit windows.txt --old one", 2, "INVALID_PARAMS"),
    ("edit windows.txt --old nosuch --new y", 1, "STRING_NOT_FOUND"),
    ("edit windows.txt --old e --new y", 1, "AMBIGUOUS_MATCH"),
    ("edit windows.txt --old one --new one", 3, "NO_CHANGE"),
    ("edit windows.txt --old '' --new y", 2, "INVALID_PARAMS"),
    ("edit nosuch --old a --new b", 1, "NOT_FOUND"),
    ("patch --file nosuch.patch", 1, "NOT_FOUND"),
    ("patch --file windows.txt", 1, "PATCH_MALFORMED"),
    ("grep", 2, ""),
    ("grep [", 2, "SEARCH_ERROR"),
    ("grep (unclosed windows.txt", 2, "SEARCH_ERROR"),
    ("grep one nosuch", 1, "NOT_FOUND"),
    ("find", 2, ""),
    ("find [", 2, "SEARCH_ERROR"),
    ("tree nosuch", 1, "NOT_FOUND"),
    ("tree windows.txt", 1, "NOT_A_FILE"),
    ("tree --depth 99", 2, "INVALID_PARAMS"),
    ("tree --depth x", 2, ""),
    ("undo zzz", 1, "NOT_FOUND"),
    ("undo c99", 1, "NOT_FOUND"),
    ("undo --turn zzz", 1, "NOT_FOUND"),
    ("undo --session zzz", 1, "NOT_FOUND"),
    ("undo --since nonsense", 2, "INVALID_PARAMS"),
    ("undo --agent nobody", 3, "NO_CHANGE"),
    ("redo", 3, "NO_CHANGE"),
    ("redo zzz", 1, "NOT_FOUND"),
    ("restore", 2, "INVALID_PARAMS"),
    ("restore nosuch", 1, "NOT_FOUND"),
    ("restore --before zzz", 1, "NOT_FOUND"),
    ("checkpoint", 2, ""),
    ("checkpoint bad/name", 2, "INVALID_PARAMS"),
    ("approve", 2, "INVALID_PARAMS"),
    ("approve zzz", 1, "NOT_FOUND"),
    ("reject", 2, "INVALID_PARAMS"),
    ("reject zzz", 1, "NOT_FOUND"),
    ("reject zzz --hunks 1", 1, "NOT_FOUND"),
    ("show", 2, ""),
    ("show zzz", 1, "NOT_FOUND"),
    ("diff zzz", 1, "NOT_FOUND"),
    ("pending zzz", 2, ""),
    ("review zzz", 2, ""),
    ("status nosuch", 2, ""),
    ("doctor nosuch", 2, ""),
    ("setup nosuch", 2, "INVALID_PARAMS"),
    ("setup claud", 2, "INVALID_PARAMS"),
    ("setup --write", 2, "INVALID_PARAMS"),
    ("config", 2, ""),
    ("config nosuch", 2, ""),
    ("policy", 2, ""),
    ("policy explain", 2, ""),
    ("policy lint nosuch", 2, "INVALID_PARAMS"),
    ("explain", 2, ""),
    ("explain .env --action nosuch", 2, ""),
    ("diagnostics nosuch.py", 1, "NOT_FOUND"),
    ("mcp", 2, ""),
    ("mcp nosuch", 1, "NOT_FOUND"),
    ("mcp windows.txt", 1, "NOT_A_FILE"),
    ("run", 2, "INVALID_PARAMS"),
    ("runs nosuch", 2, ""),
    ("guard nosuch", 1, "NOT_FOUND"),
    ("grants zzz", 2, ""),
    ("audit", 2, ""),
    ("audit nosuch", 2, ""),
    ("audit verify --heads nosuch", 2, "INVALID_PARAMS"),
    ("audit verify --key nonsense", 2, "INVALID_PARAMS"),
    ("audit export --since nonsense", 1, "NOT_FOUND"),
    ("completion", 2, ""),
    ("completion nosuch", 2, ""),
    ("tour windows.txt", 1, "NOT_A_FILE"),
    ("install", 2, ""),
    ("install nosuch", 2, ""),
    ("--root nosuch log", 1, "NOT_FOUND"),
    ("--root windows.txt log", 1, "NOT_A_FILE"),
    ("--state . log", 1, "STATE_ERROR"),
    ("--config nosuch log", 2, "INVALID_PARAMS"),
    ("state", 2, ""),
]
# fmt: on


@pytest.fixture
def terminal(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command at a terminal."""
    (cli.root / "blob").write_bytes(bytes(range(256)) * 4)
    monkeypatch.setattr(Terminal, "columns", WIDTH)
    return cli


@pytest.mark.parametrize(("typed", "exit_code", "code"), MISTAKES, ids=[one[0] for one in MISTAKES])
def test_a_mistake_is_named_with_what_to_type_next_and_fits_the_terminal(
    terminal: CommandLine, typed: str, exit_code: int, code: str
) -> None:
    words = shlex.split(typed)
    # Nobody sits at this terminal.
    decides = words[0] in ("undo", "redo", "restore", "approve", "reject")
    answer = terminal(*words, *(["--unattended"] if decides else []))
    assert answer.code == exit_code, answer
    said = answer.err
    first, *more = said.splitlines()
    assert first.startswith("filepact:")
    assert (f"[{code}]" in said) if code else ("[" not in first or "'['" in first)
    assert more, "something to type next"
    # The path of a folder of this test may be longer than a line, and is not torn.
    torn = [line for line in said.splitlines() if len(line) > WIDTH and " " in line.strip()]
    assert torn == []
    assert [word for word in TOOLS_WORDS if word in said] == []
