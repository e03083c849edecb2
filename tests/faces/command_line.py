"""Running the command in a test: in this process, with a folder and a journal of its own."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from filepact.faces.cli import run
from filepact_cli.main import build_parser
from filepact_cli.parser import renewed

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


@dataclass(frozen=True, slots=True)
class Said:
    """What a command left behind."""

    code: int
    out: str
    err: str


def command(*words: str) -> Said:
    """What a command says that is carried out in this process, which may be at any time."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = run(words)
    return Said(code, *(os.fsdecode(one.buffer.getvalue()) for one in (out, err)))


def declared(words: tuple[str, ...], *, usual: bool = False) -> set[str]:
    """The fields that the help of a command names for ``--json``, or those alone that it always has."""
    parser: argparse.ArgumentParser = parser_of_all()
    for word in renewed(words):
        below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
        if below and word in below[0].choices:
            parser = below[0].choices[word]
    named: str = getattr(parser, "answers", "")
    return set(re.findall(r"\w+", named.partition(";")[0] if usual else named))


parser_of_all = cache(build_parser)
"""The parser of all commands, which takes longer to make than most commands take."""


class CommandLine:
    """The command, used in one folder."""

    def __init__(
        self,
        root: Path,
        state: Path,
        captured: pytest.CaptureFixture[bytes],
        patch: pytest.MonkeyPatch,
    ) -> None:
        self.root = root
        self.state = state
        self._captured = captured
        self._patch = patch

    def __call__(self, *words: str, stdin: bytes = b"") -> Said:
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self._captured.readouterr()
        code = run(words)
        out, err = self._captured.readouterr()
        return Said(code, out.decode(), err.decode())

    def json(self, *words: str, stdin: bytes = b"", code: int = 0) -> Any:
        """Run with --json: exactly one object, and nothing else anywhere."""
        said = self(*words, "--json", stdin=stdin)
        assert said.code == code, said
        assert said.err == ""
        assert said.out.count("\n") == 1
        found = json.loads(said.out)
        if unnamed := found.keys() - {"error"} - declared(words):
            parser_of_all.cache_clear()  # A test may have brought an extension of its own.
            unnamed -= declared(words)
        assert not unnamed, f"fields that no help names: {sorted(unnamed)}"
        return found

    def undo_own(self) -> Said:
        """Undo what a person did last, which has to be named, by the command that the refusal says."""
        refusal = self.json("undo", "--unattended", code=2)["error"]
        assert refusal["code"] == "INVALID_PARAMS"
        said = re.search(r"`filepact (undo \w+)`", refusal["hint"])
        assert said
        return self(*said[1].split(), "--unattended")

    def newest(self) -> str:
        """The id of the newest operation."""
        found: str = self.json("log", "-n", "1")["operations"][0]["id"]
        return found
