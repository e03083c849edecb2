"""The checks of real language servers in their large form: prints a table, ends with 1 if one fails.

python -m tests.servers.deep edits [--tries N] [--seed N]   random edits of each server
python -m tests.servers.deep sync                           every case of every server
python -m tests.servers.deep bursts [--tries N]             two agents and another program write at once
python -m tests.servers.deep kills [--tries N]              parents killed, each with all servers
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import filepact
from filepact.fs import sandbox
from filepact_diagnostics.lsp.builtin import TABLES
from tests.servers.fakes import left_of, processes_with
from tests.servers.random_edits import LANGUAGES, Edits
from tests.servers.real_servers import Tree, locate, node_folders, server

PROJECT = Path(__file__).resolve().parents[2]
PARENT = Path(__file__).with_name("parent_program.py")


def edit(name: str, tries: int, seed: int) -> tuple[bool, str]:
    """Random edits of one server; whether nothing was wrong, and what to say."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "deep" / "enough" / "project"
        root.mkdir(parents=True)
        try:
            tree = Tree(root, name)
        except pytest.skip.Exception as reason:
            return True, f"{name:<18} not had here: {reason}"
        begin, kinds, wrong = time.monotonic(), Counter[str](), []
        try:
            edits = Edits(tree, seed)
            for number in range(tries):
                try:
                    kinds[edits.step()] += 1
                except AssertionError as error:
                    wrong.append(f"edit {number}: a preview: {error}")
                wrong += [f"edit {number}: stale: {one}" for one in edits.stale()]
                wrong += [f"edit {number}: no answer: {one}" for one in edits.unanswered()]
        finally:
            tree.close()
    took = time.monotonic() - begin
    lines = [
        f"{name:<18} {tries} edits, {kinds['preview']} of them previews: {len(wrong)} wrong, {took:.0f} s",
        *(f"  {one}" for one in wrong[:5]),
    ]
    return not wrong, "\n".join(lines)


def all_edits(tries: int, seed: int) -> bool:
    said = []
    for name in LANGUAGES:
        said.append(edit(name, tries, seed))
        print(said[-1][1], flush=True)
    return all(right for right, _ in said)


def suite(tests: str, **more: str) -> bool:
    """A test file with more cases than the suite runs of it; pytest says what was wrong."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, tests], cwd=PROJECT, env=os.environ | more, check=False)
    return done.returncode == 0


def sync() -> bool:
    return suite(
        "packages/filepact-diagnostics/tests/lsp/test_sync_with_real_servers.py", LSP_ALL="1"
    )


def bursts(tries: int) -> bool:
    return suite(
        "packages/filepact-diagnostics/tests/semantic/test_races.py", LSP_BURSTS=str(tries)
    )


def tables() -> dict[str, dict[str, Any]]:
    """The servers that are here, each for files of its own, so that none stands in another's way."""
    found = {}
    for name in LANGUAGES:
        try:
            known = server(name)
        except pytest.skip.Exception:
            continue
        program, *arguments = known.filled({one: locate(one) or "" for one in known.needs})
        kept = {key: value for key, value in TABLES[name].items() if key != "needs"}
        files = {f"*.{name}": known.files[0][1]}
        found[name] = {**kept, "command": [locate(program), *arguments], "files": files}
    return found


def kill_one(number: int, mark: str, folder: Path, *, walled: bool) -> tuple[int, list[int]]:
    """Kill a parent; how many processes it had by then, and those that are left."""
    state = folder / "state"
    state.mkdir()
    environment = {
        "PATH": ":".join([str(Path(sys.executable).parent), *node_folders(), "/usr/bin:/bin"]),
        "HOME": str(folder),
        "MARK": mark,
    }
    orders = [tables(), environment, str(folder), str(state) if walled else ""]
    source = str(Path(filepact.__file__).parent.parent)
    with subprocess.Popen(
        [sys.executable, str(PARENT), json.dumps(orders)],
        env={**os.environ, "MARK": mark, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        for said in ("begun", "working")[: number % 3]:
            if parent.stdout is None or parent.stdout.readline().strip() != said:
                raise SystemExit(f"the parent did not say that it has {said}")
        there = len(processes_with(mark))
        parent.kill()
    return there, left_of(mark)


def kills(tries: int) -> bool:
    """Parents killed before they start servers, while these start, and while they work."""
    walls = [False, True] if sandbox.landlock_abi() else [False]
    right = True
    for walled in walls:
        begin, most, left = time.monotonic(), 0, 0
        for number in range(tries):
            mark = uuid4().hex
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                there, orphans = kill_one(number, mark, Path(folder).resolve(), walled=walled)
            for pid in orphans:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            most, left = max(most, there), left + len(orphans)
        way = "confined, by a fork server" if walled else "started by themselves"
        took = time.monotonic() - begin
        print(
            f"{way:<24} {tries} kills of {', '.join(tables())}: {left} left of up to {most} "
            f"processes, {took:.0f} s",
            flush=True,
        )
        right = right and not left
    return right


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.servers.deep", description=__doc__)
    parser.add_argument("check", choices=["edits", "sync", "bursts", "kills"])
    parser.add_argument("--tries", type=int, default=50)
    parser.add_argument("--seed", type=int, default=11)
    given = parser.parse_args(arguments)
    if given.check == "edits":
        return 0 if all_edits(given.tries, given.seed) else 1
    if given.check == "sync":
        return 0 if sync() else 1
    if given.check == "bursts":
        return 0 if bursts(given.tries) else 1
    return 0 if kills(given.tries) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
