"""Where filepact does not run, it says so at every door, and what does; where names are not UTF-8, it starts again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from filepact import unsupported
from test_cli_parser import NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WINDOWS = """
import asyncio, importlib.abc, os, signal, socket, sys, _signal, _socket  # asyncio has a form for each system

sys.platform = "win32"
GONE = {"fcntl", "termios", "pwd", "grp", "resource", "tty", "pty", "readline"}
for name in GONE:
    sys.modules.pop(name, None)

class Gone(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in GONE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Gone())
LACKS = {
    os: "O_NOFOLLOW O_DIRECTORY O_PATH O_TMPFILE O_CLOEXEC O_NONBLOCK O_NOCTTY fork getuid geteuid getegid getgid"
    " setsid fchmod fchown fchdir listxattr getxattr pidfd_open uname fdatasync pread pwrite statvfs sysconf mkfifo"
    " getpgid killpg openpty",
    (socket, _socket): "AF_UNIX SO_PEERCRED",
    (signal, _signal): "SIGALRM SIGHUP SIGPIPE SIGUSR1 SIGUSR2 SIGURG SIGCHLD SIGKILL SIGWINCH setitimer alarm"
    " pthread_sigmask",
}
for modules, names in LACKS.items():
    for module in modules if isinstance(modules, tuple) else (modules,):
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
"""
"""What Python does not have on Windows, as far as a start comes; that much can be had here."""

COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from filepact.faces.cli import run

said = {}
for line in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stderr(err), redirect_stdout(out):
        code = run(line.split())
    said[line] = [code, out.getvalue(), err.getvalue()]
print(json.dumps(said))
"""

LIBRARY = """
import importlib, json
import filepact

def tried(what):
    try:
        what()
    except ImportError as error:
        return str(error)
    return ""

said = {name: tried(lambda: getattr(filepact, name)) for name in filepact.__all__}
for name in ("acp", "app", "integrations.pytest_plugin"):
    said[name] = tried(lambda: importlib.import_module("filepact." + name))
print(json.dumps(said))
"""


def python(
    program: str,
    *words: str,
    given: bytes = b"",
    more: Mapping[str, str] | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program with the modules of this test."""
    paths = os.pathsep.join(filter(None, sys.path))
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        input=given,
        env=os.environ | {"PYTHONPATH": paths} | (more or {}),
        capture_output=True,
        check=False,
        timeout=90,
        **options,
    )


def test_every_command_says_on_windows_what_does_work() -> None:
    lines = [*(name for name in NAMES if name != "hook"), "", "--help", "log --json"]
    done = python(WINDOWS + COMMANDS, json.dumps(lines))
    assert done.returncode == 0, done.stderr.decode()
    said = json.loads(done.stdout)
    assert set(said) == set(lines)
    for code, out, err in said.values():
        assert (code, out) == (1, "")
        assert "\n  wsl --install\n" in err
        assert "INTERNAL" not in err


@pytest.mark.parametrize(
    ("event", "options", "code"),
    [
        ("PreToolUse", [], 2),
        ("PreToolUse", ["--record"], 0),
        ("PreToolUse", ["--where-set-up"], 0),
        ("Stop", [], 0),
    ],
)
def test_a_hook_refuses_on_windows_what_it_cannot_check(
    event: str, options: list[str], code: int
) -> None:
    start = "\nimport sys\nfrom filepact.faces.cli import run\nsys.exit(run(sys.argv[1:]))"
    given = json.dumps({"hook_event_name": event, "tool_name": "Read"}).encode()
    done = python(WINDOWS + start, "hook", "claude", *options, given=given)
    assert (done.returncode, done.stdout) == (code, b"")
    assert b"Traceback" not in done.stderr


def test_the_library_says_so_on_windows_whatever_is_imported_of_it() -> None:
    done = python(WINDOWS + LIBRARY)
    assert done.returncode == 0, done.stderr.decode()
    said = json.loads(done.stdout)
    # Values and errors can be had anywhere; so can what other tests' runs load at their start.
    assert said["CODES"] == said["Edit"] == said["integrations.pytest_plugin"] == ""
    for name in ("open", "open_workspace", "Files", "AsyncFiles", "acp", "app"):
        assert "wsl --install" in said[name]
    assert {one for one in said.values() if one} == {said["open"]}


# -- names beyond ASCII ------------------------------------------------------------------------

RULE = '[[deny]]\npaths = ["geheim-\u00e9/**"]\n'


@pytest.fixture
def rooms(tmp_path: Path, latin: str) -> tuple[Path, dict[str, str]]:
    """A folder with a file that a rule beyond ASCII is for, and an environment that is not UTF-8."""
    root, settings = tmp_path / "root", tmp_path / "filepact.toml"
    (root / "geheim-\u00e9").mkdir(parents=True)
    (root / "geheim-\u00e9" / "k.txt").write_text("KEY\n")
    settings.write_text(RULE, encoding="utf-8")
    return root, {
        "LC_ALL": "en_US.ISO-8859-1",
        "LOCPATH": latin,
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "FILEPACT_CONFIG": str(settings),
        "FILEPACT_STATE_DIR": str(tmp_path / "state"),
    }


def test_a_program_in_another_locale_is_told_how_to_start(
    rooms: tuple[Path, dict[str, str]],
) -> None:
    root, variables = rooms
    program = (
        "import filepact, sys\n"
        "try:\n    with filepact.open(sys.argv[1]) as files: print(files.read('geheim-\\u00e9/k.txt'))\n"
        "except filepact.FilepactError as error: print(error.code)\n"
    )
    done = python(program, str(root), more=variables)
    assert done.stdout == b"LOCALE_NOT_UTF8\n", done
    done = python(program, str(root), more=variables | {"PYTHONUTF8": "1"})
    assert done.stdout == b"PATH_BLOCKED\n", done


def test_a_server_in_another_locale_keeps_rules_and_names(
    rooms: tuple[Path, dict[str, str]],
) -> None:
    root, variables = rooms
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read_file", {"path": "geheim-\u00e9/k.txt"}),
        ("grep", {"pattern": "^KEY$"}),
        ("write_file", {"path": "neu-\u65e5\u00fc.txt", "content": "\u00e9\n"}),
    ]
    asked = [{"id": 0, "method": "initialize", "params": START}]
    asked += [
        {"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls, 1)
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "filepact", "mcp", str(root)],
        input=lines.encode(),
        env=os.environ | variables,
        capture_output=True,
        check=True,
        timeout=90,
    )
    answers = {one["id"]: one for one in map(json.loads, done.stdout.splitlines()) if "id" in one}
    text = {number: answers[number]["result"]["content"][0]["text"] for number in (1, 2, 3)}
    assert text[1].startswith("PATH_BLOCKED")
    assert "k.txt" not in text[2]
    assert (root / "neu-\u65e5\u00fc.txt").read_bytes() == "\u00e9\n".encode()


START = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "somebody", "version": "1"},
}


def test_the_stand_in_leaves_the_package_as_it_is_elsewhere() -> None:
    assert unsupported() == ""
