"""filepact with nothing installed but what it needs without extras: the protocol of agents, undo, the audit log."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.faces.envelopes import handshake, modern
from tests.installed import copy_into
from tests.terminal import on_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder from which nothing else can be imported."""
    folder = tmp_path_factory.mktemp("packages")
    copy_into(folder)
    return folder


@pytest.fixture
def run(packages: Path, tmp_path: Path) -> Run:
    """Run a command in a project of its own, without the packages of these tests."""
    (tmp_path / "project").mkdir()
    variables = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(packages)}

    def start(*words: str, sent: str = "") -> subprocess.CompletedProcess[str]:
        # -S: no site-packages.
        return subprocess.run(
            [sys.executable, "-S", "-m", "filepact", *words],
            cwd=tmp_path / "project",
            env=variables,
            input=sent,
            capture_output=True,
            text=True,
            check=False,
        )

    return start


def lines(questions: Sequence[tuple[str, dict[str, Any]]]) -> str:
    return "".join(
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
        for number, (method, params) in enumerate(questions)
    )


def edit(old: str, new: str) -> dict[str, Any]:
    arguments = {"path": "a.txt", "old_string": old, "new_string": new}
    return {"name": "edit_file", "arguments": arguments}


READ = {"name": "read_file", "arguments": {"path": "a.txt"}}


def test_agents_of_both_eras_are_served_and_what_they_do_is_undone(
    run: Run, tmp_path: Path
) -> None:
    for package in ("mcp", "anyio", "cryptography", "starlette"):
        code = f"import {package}"
        gone = subprocess.run(
            [sys.executable, "-S", "-c", code], capture_output=True, env={}, check=False
        )
        assert gone.returncode == 1, package
    file = tmp_path / "project" / "a.txt"
    file.write_text("one\n")
    older = [
        ("initialize", handshake()),
        ("tools/list", {}),
        ("tools/call", READ),
        ("tools/call", edit("one", "two")),
        ("no/such/method", {}),
    ]
    answers = run("mcp", ".", sent=lines(older)).stdout.splitlines()
    assert sorted(json.loads(line)["id"] for line in answers) == [0, 1, 2, 3, 4]
    assert file.read_text() == "two\n"
    newer = [
        ("server/discover", modern()),
        ("tools/call", modern(**READ)),
        ("tools/call", modern(**edit("two", "three"))),
    ]
    answers = run("mcp", ".", sent=lines(newer)).stdout.splitlines()
    assert all("result" in json.loads(line) for line in answers)
    assert file.read_text() == "three\n"
    # Of another session's work than the newest it has to be said which.
    done = [one["id"] for one in json.loads(run("log", "--json").stdout)["operations"]]
    for change, before in zip(done, ("two\n", "one\n"), strict=True):
        assert run("undo", change, "--unattended").returncode == 0
        assert file.read_text() == before


def test_the_log_is_checked_but_not_signed_and_the_extra_for_that_is_named(run: Run) -> None:
    assert run("write", "a.txt", "--content", "one").returncode == 0
    verified = json.loads(run("audit", "verify", "--json").stdout)
    assert (verified["sound"], verified["signed"]) == (True, 0)
    for words in (["sign"], ["verify", "--key", "filepact+x+y"]):
        refused = run("audit", *words, "--json")
        assert refused.returncode == 1
        error = json.loads(refused.stdout)["error"]
        assert error["code"] == "NOT_FOUND"
        assert "filepact[sign]" in error["hint"]
    (extras,) = (
        one
        for one in json.loads(run("doctor", "--json").stdout)["checks"]
        if one["name"] == "extras"
    )
    assert sorted(extras["extras"]) == [
        "acp",
        "objects",
        "postgres",
        "review",
        "serve",
        "sign",
        "web",
    ]


def test_the_tour_needs_no_package_for_the_protocol(run: Run) -> None:
    assert json.loads(run("tour", "--json").stdout)["ok"] is True


def test_a_gateway_names_the_extra_that_it_needs(run: Run) -> None:
    refused = run("serve", ".", "--json")
    assert refused.returncode == 1
    error = json.loads(refused.stdout)["error"]
    assert error["code"] == "NOT_FOUND"
    assert "filepact[serve]" in error["hint"]


@pytest.mark.parametrize("words", [["review"], ["review", "--web"]])
def test_a_review_that_needs_an_extra_names_it(run: Run, words: list[str]) -> None:
    refused = run(*words, "--json")
    assert refused.returncode != 0
    assert "error" in json.loads(refused.stdout)


def test_a_review_in_plain_lines_says_what_fills_the_screen(packages: Path, tmp_path: Path) -> None:
    variables = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(packages)}
    command = [sys.executable, "-S", "-m", "filepact", "review"]
    (tmp_path / "project").mkdir()
    code, shown = on_terminal(command, cwd=tmp_path / "project", env=variables | {"TERM": "xterm"})
    assert code == 0, shown
    assert re.search(r"^  .*\binstall\b.*filepact\[review\]", shown, re.MULTILINE), shown
