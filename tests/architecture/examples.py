"""Runs the examples of a document as a reader would type them.

A fenced block marked `console` holds commands after `$ ` and what they print; a block marked
`python` is a whole program.  All blocks of one document run in order, in one copy of the small
project in `tree/`, with a home and a state folder of their own.

They run on a terminal, as for that reader: a decision of a person is one there.

What is printed must be what is written, with two wildcards: `...` within a line stands for any
text, and a line that is only `...` for any lines, none included.  A command that should fail says
so itself: `$ filepact undo || echo refused`.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.architecture.project import PACKAGE
from tests.terminal import on_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

TREE = Path(__file__).parent / "tree"


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
            if language == "python":
                yield Example(start + 1, "python", "\n".join(body), None)
            elif language == "console":
                yield from _commands(body, start + 1)
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
        home.mkdir()
        kept = {key: os.environ[key] for key in ("LD_LIBRARY_PATH",) if key in os.environ}
        self._environment = {
            **kept,
            "PATH": f"{programs}:{os.environ.get('PATH', os.defpath)}",
            "PYTHONPATH": str(PACKAGE.parent),
            "HOME": str(home),
            "LC_ALL": "C.UTF-8",
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "PAGER": "cat",
        }

    def run(self, example: Example) -> str:
        """Run one example; the answer is what is wrong with it, or an empty string."""
        if example.language == "python":
            command = [sys.executable, "-W", "error", "-c", example.command]
        else:
            command = ["/bin/sh", "-c", example.command]
        status, shown = on_terminal(command, cwd=self.work, env=self._environment)
        printed = tuple(line.rstrip() for line in shown.splitlines())
        if status:
            return _report(example, f"ended with status {status}", printed)
        if example.expected is not None and not matches(example.expected, printed):
            return _report(example, "printed something else than is written", printed)
        return ""


def _report(example: Example, wrong: str, printed: tuple[str, ...]) -> str:
    parts = [f"line {example.line}: {wrong}", example.command, "--- printed", *printed]
    if example.expected is not None:
        parts += ["--- written", *example.expected]
    return "\n".join(parts)
