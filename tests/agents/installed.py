"""Agents from registries, installed on first use.

Those from npm stand with the other programs from there: in ``tests/node/package.json`` what every
test run drives, in ``tests/node/agents`` what the large form drives besides, in ``tests/node/hosts`` those
that call ``filepact mcp`` and nothing else.  Those written in Python get environments of their own, in ``.agents`` beside the project file, so that nothing of
them gets into that of the tests.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import node_programs
from tests.fetching import PIP, FetchError, fetch
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MissingError", "node_program", "or_skip", "python_program", "skip_slow_starter"]

_HERE = Path(__file__).resolve().parent
_FOLDER = _HERE.parent.parent / ".agents"


class MissingError(Exception):
    """An agent cannot be had here; the message says why."""


@contextmanager
def or_skip() -> Iterator[None]:
    """Skip a test whose program is not installed here; continuous integration has all of them."""
    try:
        yield
    except MissingError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


def skip_slow_starter(agent: str) -> None:
    """Leave an agent that takes as long to start as all others together to the deep checks."""
    if agent == "opencode" and not often(0, 1):
        pytest.skip("it takes as long to start as all others; `scripts/deep sweeps` does it")


def node_program(package: str, script: str, *, group: str = "") -> list[str]:
    """The words that run a script, or a binary, of a package from npm.

    Args:
        package: Its name.
        script: Its path in the package; one without an ending is run without Node.
        group: The folder in ``tests/node`` that pins it; empty for ``tests/node`` itself.

    Raises:
        MissingError: Node or a package cannot be had.
    """
    try:
        words = node_programs.install(group).command(package, script)
    except node_programs.NodeError as error:
        raise MissingError(str(error)) from error
    return words if Path(script).suffix else words[1:]


def python_program(requirements: str, script: str, *, python: str = "") -> list[str]:
    """The words that run a script of a Python package, in an environment of its own.

    Args:
        requirements: The file beside this one with every package and its version.
        script: The script's name.
        python: The interpreter that it needs, such as ``python3.12``; that of the tests when empty.

    Raises:
        MissingError: The interpreter or a package cannot be had.
    """
    wanted = _HERE / requirements
    folder = _FOLDER / wanted.stem
    stamp = folder / "stamp"
    path = folder / "bin" / script
    interpreter = shutil.which(python) if python else sys.executable
    with wanted.open("rb") as pinned:
        mark = hashlib.sha256(pinned.read() + sys.version.encode()).hexdigest()
        # Two processes may want it at the same moment: the second waits, and finds it there.
        fcntl.flock(pinned, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == mark and path.exists():
            return [str(path)]
        if interpreter is None:
            raise MissingError(f"{script} needs {python}, which is not here")
        _run(script, [interpreter, "-m", "venv", "--clear", str(folder)])
        # All packages stand in the file: so there is nothing to resolve, and nothing else comes in.
        install = [str(folder / "bin" / "python"), "-m", "pip", "install", *PIP]
        _run(script, [*install, "--no-deps", "--no-compile", "-r", str(wanted)])
        stamp.write_text(mark)
    return [str(path)]


def _run(script: str, words: list[str]) -> None:
    try:
        fetch(words)
    except FetchError as error:
        raise MissingError(f"{script} cannot be installed: {error}") from error
