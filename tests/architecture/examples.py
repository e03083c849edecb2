"""Runs the examples of a document as a reader would type them, or checks what cannot be run.

All blocks of one document are taken in order, in one copy of the small project in `tree/`, with a home
and a state folder of their own, and on a terminal, as for that reader: a decision of a person is one
there.  By the mark of a fenced block:

- `console`: commands after `$ ` and what they print.  It must be what is written, with two wildcards:
  `...` within a line stands for any text, and a line that is only `...` for any lines, none included.
  A command that should fail says so itself: `$ filepact undo || echo refused`.
- `sh`: commands that have to end well.  `ID` stands for what they would be given at that point: the
  newest operation, what waits, a run.
- `python`: a whole program; `py`: a part of one, whose names of ours have to be there.
- `toml`: settings or rules, read by the reader of settings.
- `json`: settings of another program, which have to start our command as `filepact setup` would, or to
  name a gateway.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from signal import SIGINT
from subprocess import Popen
from typing import TYPE_CHECKING, Any

from filepact.config.settings import parse_settings
from filepact.errors import FilepactError
from filepact_cli.main import parse
from filepact_setup.hook_command import hook_lines
from filepact_setup.hosts import HOSTS
from tests.architecture.project import PACKAGE
from tests.forked import Command
from tests.terminal import on_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Typed = Sequence[tuple[str, str | Callable[[], str]]]

TREE = Path(__file__).parent / "tree"
CHECKED = ("python", "py", "toml", "json")
_IDS = (
    ("c4k2m", ["log", "-n", "1"], "operations"),
    ("c4k2m", ["review", "--list"], "pending"),
    ("g4k2m", ["policy", "grants"], "grants"),
)
"""Ids as they are written, and what lists those that they stand for."""
_FOR_A_SHELL = re.compile(r"[|<>&;`$~*()\\]|^\w+=")
"""What only a shell makes something of; other lines are words, and need no shell."""


@dataclass(frozen=True, slots=True)
class Example:
    """One thing to run.

    Attributes:
        line: 1-based line of the document where it stands.
        command: Text for the shell, or a Python program.
        expected: Lines that must be printed; None when nothing is compared.
    """

    line: int
    language: str
    command: str
    expected: tuple[str, ...] | None


def find_examples(text: str) -> Iterator[Example]:
    """The examples of a Markdown text, in order; fences within longer fences are only text."""
    fence, language, body, start = "", "", list[str](), 0
    for number, line in enumerate(text.splitlines(), start=1):
        mark = re.match(r"(`{3,})([^`]*)$", line)
        if not fence and mark:
            fence, language, body, start = mark[1], mark[2].strip(), [], number
        elif fence and mark and not mark[2].strip() and len(mark[1]) >= len(fence):
            if language == "console":
                yield from _commands(body, start + 1)
            elif language == "sh":
                yield from _lines(body, start + 1)
            elif language in CHECKED:
                yield Example(start + 1, language, "\n".join(body), None)
            fence = ""
        elif fence:
            body.append(line)


def _commands(body: list[str], first: int) -> Iterator[Example]:
    if not body or not body[0].startswith("$ "):
        raise ValueError(f"line {first}: a console block begins with a command after `$ `")
    starts = [at for at, line in enumerate(body) if line.startswith("$ ")]
    for at, end in zip(starts, [*starts[1:], len(body)], strict=True):
        stop = at
        while body[stop].endswith("\\") and stop + 1 < end:
            stop += 1
        command = "\n".join(body[at : stop + 1])[2:]
        yield Example(first + at, "console", command, tuple(body[stop + 1 : end]))


def _lines(body: list[str], first: int) -> Iterator[Example]:
    """The commands of a shell block, without the remarks behind them."""
    at = 0
    while at < len(body):
        start = at
        while body[at].endswith("\\") and at + 1 < len(body):
            at += 1
        at += 1
        command = re.sub(r"(^|\s+)#.*$", "", "\n".join(body[start:at]), flags=re.MULTILINE)
        if command:
            yield Example(first + start, "sh", command, None)


def matches(expected: tuple[str, ...], printed: tuple[str, ...]) -> bool:
    """Whether printed lines are what is expected, wildcards considered."""
    rows: list[str] = []
    for line in expected:
        if line.strip() == "...":
            rows.append(r"(?:[^\n]*\n)*?")
        else:
            inside = ".*?".join(re.escape(part) for part in line.rstrip().split("..."))
            rows.append(inside + r"[ \t]*\n")
    return re.fullmatch("".join(rows), "".join(f"{line}\n" for line in printed)) is not None


class Shell:
    """A copy of the small project, and a shell in it.

    Args:
        folder: An empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self.work = folder / "project"
        shutil.copytree(TREE, self.work)
        programs = folder / "bin"
        programs.mkdir()
        command = programs / "filepact"
        start = "import sys; from filepact.faces.cli import run; sys.exit(run())"
        command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{start}' \"$@\"\n")
        command.chmod(0o755)
        home = folder / "home"
        (home / "project").mkdir(parents=True)
        kept = {key: os.environ[key] for key in ("LD_LIBRARY_PATH",) if key in os.environ}
        self.environment = {
            **kept,
            "PATH": f"{programs}:{os.environ.get('PATH', os.defpath)}",
            "PYTHONPATH": str(PACKAGE.parent),
            "HOME": str(home),
            "LC_ALL": "C.UTF-8",
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "PAGER": "cat",
        }

    def run(
        self,
        example: Example,
        *,
        typed: Typed = (),
        stop_at: str | None = None,
        allowed: tuple[int, ...] = (0,),
    ) -> str:
        """Run or check one example; the answer is what is wrong with it, or an empty string.

        Args:
            example: The example.
            typed: What is typed in answer to what it asks.
            stop_at: What it prints before it is interrupted; None where it ends by itself.
            allowed: How it may end.
        """
        if example.language in _CHECKS:
            try:
                _CHECKS[example.language](example.command)
            except (AssertionError, ImportError, ValueError, FilepactError) as error:
                return _report(example, f"{type(error).__name__}: {error}", ())
            return ""
        if example.language == "python":
            words = [sys.executable, "-W", "error", "-c", example.command]
            status, shown = on_terminal(words, cwd=self.work, env=self.environment)
        else:
            status, shown = self._started(
                self._filled(example.command) if example.language == "sh" else example.command,
                typed,
                stop_at,
            )
        printed = tuple(line.rstrip() for line in shown.splitlines())
        if status not in (allowed if stop_at is None else (*allowed, 130, -2)):
            return _report(example, f"ended with status {status}", printed)
        if example.expected is not None and not matches(example.expected, printed):
            return _report(example, "printed something else than is written", printed)
        return ""

    def do(self, command: str) -> None:
        """Run a command that is no example."""
        status, shown = self._started(self._filled(command), (), None)
        assert status == 0, f"{command}: {shown}"

    def _filled(self, command: str) -> str:
        """A command with what its ids stand for here."""
        for name, listing, key in _IDS:
            decides = re.search(r"\b(approve|reject) ", command) is not None
            if name in command and decides == (key == "pending"):
                command = command.replace(name, self._json(listing)[key][0]["id"])
        return command

    def _json(self, words: list[str]) -> Any:
        return json.loads(self._started(shlex.join(["filepact", *words, "--json"]), (), None)[1])

    def _started(self, command: str, typed: Typed, stop_at: str | None) -> tuple[int, str]:
        plain = command.startswith("filepact ") and not _FOR_A_SHELL.search(command)
        words = (
            shlex.split(command)[1:]
            if plain
            else ["/bin/sh", "-c", f"exec {command}" if stop_at is not None else command]
        )
        environment = self.environment
        if plain:
            # The same process without the start of a shell and of Python.
            early = ("PYTHON", "LC_", "LD_")
            environment = {
                name: one for name, one in environment.items() if not name.startswith(early)
            }
        held: list[Popen[Any]] = []

        def start(*args: Any, **options: Any) -> Popen[Any]:
            held.append((Command if plain else Popen)(*args, **options))
            return held[0]

        def stop() -> str:
            held[0].send_signal(SIGINT)
            return ""

        answers = [*typed, *([(stop_at, stop)] if stop_at is not None else [])]
        return on_terminal(words, typed=answers, start=start, cwd=self.work, env=environment)


def check_toml(text: str) -> None:
    """Read settings or rules, as the command reads them."""
    parse_settings(text, name="settings")


def check_json(text: str) -> None:
    """Compare settings of another program with what `setup` writes for it, and parse our words in them."""
    value = json.loads(text)
    (key, entries), *others = value.items()
    assert not others, "one key at the top"
    if key == "hooks":
        events = next(one.hooks for one in HOSTS if one.name == "claude")
        assert events is not None
        assert {*entries} == {*events.before, *events.after}, (
            "the events of `filepact setup claude`"
        )
        lines = hook_lines([*entries.values()])
        assert len(lines) == len(entries)
        words = [shlex.split(line) for line in lines]
    else:
        forms = {
            "mcpServers": {"command", "args"},
            "agent_servers": {"type", "command", "args", "env"},
        }
        started = [entry for entry in entries.values() if "url" not in entry]
        for entry in started:
            assert {"command", "args"} <= {*entry} <= forms[key], entry
        words = [[entry["command"], *entry["args"]] for entry in started]
    for program, *rest in words:
        assert Path(program).name == "filepact"
        assert parse(rest).does


def check_fragment(text: str) -> None:
    """Compile a part of a program, and import what it takes from us."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("filepact"):
            module = import_module(str(node.module))
            missing = [one.name for one in node.names if not hasattr(module, one.name)]
            assert not missing, f"{node.module} has no {missing}"


_CHECKS = {"toml": check_toml, "json": check_json, "py": check_fragment}


def _report(example: Example, wrong: str, printed: tuple[str, ...]) -> str:
    parts = [f"line {example.line}: {wrong}", example.command, "--- printed", *printed]
    if example.expected is not None:
        parts += ["--- written", *example.expected]
    return "\n".join(parts)
