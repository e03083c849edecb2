"""The command as a process: patches in pipes, colours on a terminal, readers that leave."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Approval, Session
from filepact_cli.history import diff
from filepact_cli.main import build_parser
from filepact_cli.screen import Terminal
from tests.forked import Command, run
from tests.terminal import on_terminal
from tests.unprivileged import kept_so, unprivileged

if TYPE_CHECKING:
    from tests.faces.command_line import CommandLine

COMMAND = [sys.executable, "-m", "filepact"]


def environment(**changes: str) -> dict[str, str]:
    paths = os.pathsep.join(filter(None, sys.path))
    return os.environ | {"PYTHONPATH": paths, "TERM": "xterm"} | changes


def on_a_terminal(words: list[str], **changes: str) -> str:
    """What the command writes when a terminal reads it."""
    return on_terminal(words, start=Command, env=environment(**changes))[1]


# -- patches ------------------------------------------------------------------------------------

LINES = st.lists(
    st.sampled_from(
        ["one\n", "two\r\n", "\n", "\u00e9\u2028\n", "-- x\n", "\tdeep\n", "a\x0cb\n", "last"]
    ),
    max_size=8,
).map("".join)
NAMES = st.sampled_from(["a.txt", "dir/b c.txt", "\u00e9.md"])
TREES = st.dictionaries(NAMES, LINES, max_size=3)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@settings(max_examples=25)
@given(TREES, TREES)
def test_the_diff_in_a_pipe_is_a_patch_that_git_takes_back(
    before: dict[str, str], after: dict[str, str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name, "root")
        for path, text in before.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text.encode())
        (root / "dir").mkdir(parents=True, exist_ok=True)
        start = contents(root)
        workspace = open_workspace([str(root)], state_dir=str(Path(name, "state")))
        with workspace.draft(Session("s", Actor("agent", "a")), "write_file") as draft:
            for target, text in zip(draft.open_all(list(after)), after.values(), strict=True):
                draft.write(target, text)
            receipt = workspace.submit(draft, "change")
        if receipt.operation is not None and receipt.status == "pending":
            workspace.approve(receipt.operation, Approval(Actor("person", "ann")))
        workspace.close()
        if receipt.operation is None:
            return
        words = ["--root", str(root), "--state", str(Path(name, "state")), "diff"]
        arguments = build_parser().parse_args(words)
        with Path(name, "patch").open("w+b") as patch:
            screen = Terminal(patch, terminal=False, colour=False, json=False)
            screen.answer(diff(arguments, screen))
            patch.seek(0)
            git = ["git", "-c", "core.autocrlf=false", "apply", "-R", "--whitespace=nowarn"]
            subprocess.run(git, cwd=root, stdin=patch, check=True, env=environment())
        assert contents(root) == start


def test_filepact_diff_can_be_piped_into_git_apply(cli: CommandLine) -> None:
    (cli.root / "src" / "app.py").chmod(0o755)
    before = contents(cli.root)
    for path, text in (("windows.txt", b"one\n2\nthree"), ("new.txt", b"new\n")):
        assert cli("write", path, stdin=text).code == 0
    ids = [one["id"] for one in cli.json("log")["operations"]]
    for operation in ids:
        script = f"{sys.executable} -m filepact diff {operation} | git apply -R"
        subprocess.run(["sh", "-c", script], check=True, env=environment())
    assert contents(cli.root) == before


# -- terminals ----------------------------------------------------------------------------------


@pytest.fixture
def operation(cli: CommandLine) -> str:
    text = "port = 8080 \u202e\nhost = 'a'\x1b[31m\n"
    receipt = cli.json("write", "src/app.py", stdin=text.encode())
    found: str = receipt["operation"]
    cli("approve", "--unattended", found)  # What hides something waits for a person.
    return found


def test_a_terminal_gets_colours_words_and_no_foreign_control_characters(operation: str) -> None:
    text = on_a_terminal(["diff", operation])
    assert "\x1b[7;32m8080" in text
    assert "\x1b[1m--- a/src/app.py\x1b[0m\n" in text
    assert "\u202e" not in text
    assert "\\u202e" in text
    assert "\\x1b[31m" in text
    assert f"\x1b[1;36m{operation}\x1b[0m" in on_a_terminal(["log"])


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("words", "changes"),
    [
        (["--no-color", "diff"], {}),
        (["diff", "--no-color"], {}),
        (["diff"], {"NO_COLOR": "1"}),
        (["diff"], {"TERM": "dumb"}),
    ],
)
def test_colours_can_be_refused(operation: str, words: list[str], changes: dict[str, str]) -> None:
    assert operation
    text = on_a_terminal(words, **changes)
    assert "\x1b" not in text
    assert "+port = 8080 \\u202e\n" in text


def test_errors_on_a_terminal_are_escaped_too(cli: CommandLine) -> None:
    assert cli.root.exists()
    text = on_a_terminal(["read", "no\x1b[2Jfile"])
    assert text.startswith("filepact: ")
    assert "\x1b" not in text


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("words", [["write", "new.txt"], ["mcp", "."]])
def test_somebody_who_types_is_told_what_is_waited_for(cli: CommandLine, words: list[str]) -> None:
    assert cli.root.exists()
    ours, theirs = pty.openpty()
    with Command(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment()) as process:
        os.close(theirs)
        said = os.read(ours, 1_000)
        os.write(ours, b"x = 1\n\x04")
        with suppress(OSError):
            while os.read(ours, 65_536):
                pass
    os.close(ours)
    assert said.startswith(b"filepact: ")
    assert process.returncode == 0


def test_json_on_a_terminal_has_several_lines(operation: str) -> None:
    text = on_a_terminal(["show", operation, "--json"])
    assert text.startswith('{\n  "id": ')
    assert json.loads(text)["id"] == operation


# -- pipes --------------------------------------------------------------------------------------


def test_a_reader_that_leaves_is_no_error(cli: CommandLine) -> None:
    (cli.root / "long.txt").write_text("a line of some length\n" * 20_000)
    source, sink = os.pipe()
    with subprocess.Popen(
        [*COMMAND, "grep", "line", "--max", "10000"],
        stdout=sink,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        os.close(source)
        os.close(sink)
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_each_form_of_an_answer_is_the_same_process_wide(cli: CommandLine) -> None:
    done = subprocess.run(
        [*COMMAND, "read", "src/app.py", "--json"],
        capture_output=True,
        env=environment(),
        check=True,
    )
    assert json.loads(done.stdout) == cli.json("read", "src/app.py")
    refused = subprocess.run(
        [*COMMAND, "read", ".env"], capture_output=True, check=False, env=environment()
    )
    assert refused.returncode == 1
    assert refused.stdout == b""
    assert b" [PATH_BLOCKED]\n" in refused.stderr


# -- serving ------------------------------------------------------------------------------------


def exchange(cli: CommandLine, *options: str) -> list[dict[str, object]]:
    """Open a session with a server process, ask for its tools, and close it."""
    messages = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    done = run(
        ["mcp", str(cli.root), *options],
        input="".join(f"{json.dumps(one)}\n" for one in messages),
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    return [json.loads(line)["result"] for line in done.stdout.splitlines()]


def test_a_server_says_where_it_works_and_shows_its_tools(cli: CommandLine) -> None:
    opened, listed = exchange(cli)
    assert str(cli.root) in str(opened["instructions"])
    assert "undo" in str(opened["instructions"])
    assert len(list(listed["tools"])) == 9


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("options", "count", "said"),
    [
        (["--read-only"], 4, "Nothing can be changed here."),
        (["--max-level", "safe"], 4, "Nothing can be changed here."),
        (["--tier", "essential"], 6, "Every change is recorded"),
        (["--mode", "preview"], 9, "until the person agrees"),
        (["--mode", "review"], 9, "until the person agrees"),
        (["--mode", "read-only"], 4, "Nothing can be changed here."),
    ],
)
def test_a_server_can_be_narrowed(
    cli: CommandLine, options: list[str], count: int, said: str
) -> None:
    opened, listed = exchange(cli, *options)
    assert len(list(listed["tools"])) == count
    assert said in str(opened["instructions"])


def test_a_server_needs_folders_that_exist(cli: CommandLine) -> None:
    assert cli("mcp", str(cli.root / "missing")).code == 1
    assert cli("mcp", str(cli.root / "windows.txt")).code == 1


# -- a folder that is closed --------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="root's rights are given up as Linux has it")
def test_in_a_folder_that_was_closed_a_command_says_so(tmp_path: Path) -> None:
    here = tmp_path / "closed"
    here.mkdir()
    script = 'chmod 000 .; "$@"; code=$?; chmod 700 "$PWD"; exit $code'
    words = [*unprivileged(kept_so), "sh", "-c", script, "sh", *COMMAND, "log", "--json"]
    variables = environment(FILEPACT_STATE_DIR=str(tmp_path / "state"))
    done = subprocess.run(words, cwd=here, env=variables, capture_output=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (1, "NOT_FOUND")
