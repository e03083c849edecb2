"""What a person mistypes: each answer says what is wrong and what to type next, and fits a terminal of 80 columns."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from filepact_cli.parser import WORDS
from filepact_cli.screen import Terminal
from test_cli_parser import commands
from tests.forked import Command, run
from tests.hostile.sweeps import often
from tests.terminal import on_terminal

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
    ("uninstall claude", 2, ""),
    ("init", 2, ""),
    ("troubleshoot", 2, ""),
    ("install claude", 2, ""),
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


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("uninstall claude", "filepact setup AGENT --remove"),
        ("init", "filepact setup"),
        ("install claude", "filepact setup AGENT"),
        ("troubleshoot", "filepact doctor"),
        ("history", "filepact log"),
        ("rollback", "filepact undo"),
        ("accept c4k2m", "filepact approve"),
        ("cat notes.txt", "filepact read"),
        ("statsu", "filepact status"),
    ],
)
def test_a_word_of_other_programs_is_answered_with_ours(
    terminal: CommandLine, typed: str, meant: str
) -> None:
    assert f"`{meant}`" in terminal(*shlex.split(typed)).err


def test_every_word_that_is_answered_with_ours_leads_to_a_command_that_there_is() -> None:
    names = {name for name, _ in commands()} | {"review", "setup"}
    words = [word for each in WORDS.values() for word in each.split()]
    assert len(words) == len(set(words))
    assert not {word for word in words if word != "install"} & {one.split()[0] for one in names}
    for ours in WORDS:
        known = [name for name in names if f"{ours} ".startswith(f"{name} ")]
        assert known, ours


@pytest.mark.parametrize("word", ["policy", "config", "store", "audit", "workspace"])
def test_a_word_that_needs_one_more_lists_them(terminal: CommandLine, word: str) -> None:
    said = terminal(word)
    assert said.code == 2
    below = [name for name, _ in commands() if name.startswith(f"{word} ")]
    assert below
    assert [name for name in below if f"filepact {name} " not in said.err] == []


@pytest.mark.parametrize("word", ["policy", "config", "audit"])
def test_what_a_list_says_goes_on_below_itself(terminal: CommandLine, word: str) -> None:
    _, *lines = terminal(word).err.splitlines()
    (column,) = {len(found[0]) for line in lines if (found := re.match(r"  filepact .*?  +", line))}
    further = [line for line in lines if not line.startswith("  filepact ")]
    assert further
    assert {len(line) - len(line.lstrip()) for line in further} == {column}


def test_what_a_check_of_all_says_fits_a_line_in_a_pipe_too(cli: CommandLine) -> None:
    said = cli("doctor", "--all").out.splitlines()
    # A path may be longer than a line, and is not torn; nor is a command.
    assert [line for line in said if len(line) > WIDTH and line.endswith(".")] == []
    assert [line for line in said if len(line) > WIDTH and line[:5].strip()] == []


def test_a_number_with_a_dash_is_how_many_the_log_shows(cli: CommandLine) -> None:
    for name in ("a", "b", "c"):
        assert cli("write", name, "--content", name).code == 0
    assert len(cli.json("log", "-2")["operations"]) == 2
    assert len(cli.json("log", "a", "-2")["operations"]) == 1


# -- outputs that take nothing -------------------------------------------------------------------

ASKS = {"acp", "acp-check", "doctor", "guard", "mcp", "serve", "tour"}
"""What serves, or takes its time; it is asked for its help alone."""


@pytest.mark.slow(after=3)
@pytest.mark.parametrize("name", [name for name, _ in commands()][:: often(3, 1)])
def test_an_output_that_is_full_or_closed_is_one_sentence_and_no_traceback(
    cli: CommandLine, name: str
) -> None:
    for more in [["--help"], *([] if name in ASKS else [["--json"]])]:
        with open("/dev/full", "wb") as full:
            done = run(
                [*name.split(), *more],
                stdin=subprocess.DEVNULL,
                stdout=full,
                stderr=subprocess.PIPE,
                timeout=60,
            )
        said = done.stderr.decode()
        assert "Traceback" not in said
        assert "INTERNAL" not in said
        assert done.returncode in (0, 1, 2, 3), said
        ours, theirs = os.pipe()
        os.close(ours)
        with os.fdopen(theirs, "wb") as closed:
            done = run(
                [*name.split(), *more],
                stdin=subprocess.DEVNULL,
                stdout=closed,
                stderr=subprocess.PIPE,
                timeout=60,
            )
        assert b"Traceback" not in done.stderr
        assert done.returncode in (0, 1, 2, 3)


@pytest.mark.parametrize(
    "words",
    [["log"], ["log", "--json"], ["nosuch"], ["status"], ["--help"], ["log", "-h"], ["--version"]],
)
def test_what_cannot_be_said_is_no_success(cli: CommandLine, words: list[str]) -> None:
    assert cli("write", "a", "--content", "a").code == 0
    with open("/dev/full", "wb") as full:
        done = run(words, stdout=full, stderr=subprocess.PIPE, timeout=60)
        assert done.returncode != 0
        assert done.stderr.startswith(b"filepact: ")
        assert run(words, stdout=full, stderr=full, timeout=60).returncode != 0


def test_a_code_is_for_programs_and_logs_and_not_for_a_person(cli: CommandLine) -> None:
    shown = on_terminal(["undo", "zzz"], start=Command)[1]
    assert "there is no" in shown
    assert "NOT_FOUND" not in shown
    assert "[NOT_FOUND]" in cli("show", "zzz").err


# -- Ctrl-C --------------------------------------------------------------------------------------

INTERRUPTED = """
import importlib.abc, os, signal, sys

class Presses(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Presses())
from filepact.faces.cli import run
sys.exit(run(sys.argv[2:]))
"""

MODULES = {
    (module if "." in module else f"filepact_cli.{module}"): name
    for name, one in commands()
    for module in [str(one.get_default("does")).partition(":")[0]]
    if name not in {"hook", "completion"}
}
"""The modules of commands, each with one of them."""

EXAMPLES = {
    name: shlex.split(
        (one.epilog or "example:\n  filepact log")
        .splitlines()[1]
        .partition("|")[0]
        .partition(">")[0]
    )
    for name, one in commands()
}


@pytest.mark.slow(after=4)
@pytest.mark.parametrize("module", ["filepact_cli.main", *MODULES])
def test_a_command_that_is_interrupted_ends_without_a_traceback(
    cli: CommandLine, module: str
) -> None:
    name = MODULES.get(module, "log")
    words = EXAMPLES[name][1:] if EXAMPLES[name][:1] == ["filepact"] else name.split()
    words = words if words[: len(name.split())] == name.split() else [*name.split(), "x"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", INTERRUPTED, module, *words],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode == 130, done
