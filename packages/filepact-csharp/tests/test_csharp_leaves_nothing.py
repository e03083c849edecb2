"""The server for C#, with a whole runtime in it, never outlives whoever has started it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

import filepact
from talk import copy_shop
from tests.servers.csharp_toolchain import toolchain_or_skip
from tests.servers.fakes import left_of, processes_with

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")

PARENT = str(Path(__file__).parents[3] / "tests" / "servers" / "parent_program.py")


@pytest.fixture
def mark() -> Iterator[str]:
    word = uuid4().hex
    yield word
    for pid in processes_with(word):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("moment", ["begun", "working"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_parent_that_is_killed_leaves_no_server(
    mark: str, tmp_path: Path, moment: str, how: signal.Signals
) -> None:
    found = toolchain_or_skip()
    root = str(copy_shop(tmp_path / "shop"))
    program = str(Path(sys.executable).with_name("filepact-csharp"))
    words = ["serve", "--root", root, "--roslyn", found.roslyn, "--dotnet", found.dotnet]
    command = [program, *words]
    tables = {"cs": {"command": command, "files": {"*.cs": "csharp"}}}
    environment = {"PATH": os.environ["PATH"], "MARK": mark}
    with subprocess.Popen(
        [sys.executable, PARENT, json.dumps([tables, environment, root, ""])],
        env={
            **os.environ,
            "MARK": mark,
            "PYTHONPATH": str(Path(filepact.__file__).parent.parent),
        },
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        said = ""
        while said != moment:
            said = parent.stdout.readline().strip()
            assert said, "the parent has ended by itself"
        parent.send_signal(how)
    assert left_of(mark) == []
