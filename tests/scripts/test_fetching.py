"""Fetching what tests need ends, whatever the network does."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from tests import node_programs
from tests.fetching import NO_FETCH, NPM, FetchError, fetch


@pytest.fixture
def dead_registry():
    """The address of a server that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def may_fetch(monkeypatch):
    """Fetch here, also in a run whose preparation failed: no test that uses it needs a network."""
    monkeypatch.delenv(NO_FETCH, raising=False)


@pytest.fixture
def programs():
    """Npm, which is there or not before `may_fetch`: where it is not, no test waits for it."""
    try:
        return node_programs.install()
    except node_programs.NodeError as error:
        pytest.skip(str(error))


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_npm_is_ended_when_nothing_arrives_from_its_registry(
    programs, may_fetch, dead_registry, tmp_path
):
    npm = programs.node.parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    words = ["view", "semver", f"--registry={dead_registry}", f"--cache={tmp_path}", *NPM]
    with pytest.raises(FetchError, match="nothing has arrived"):
        fetch([str(programs.node), str(npm), *words], env=programs.environment(tmp_path), silence=2)


def test_what_a_silent_program_has_started_ends_with_it(may_fetch, tmp_path):
    started = tmp_path / "started"
    os.mkfifo(started)
    inner = "import os, time; os.write(1, str(os.getpid()).encode()); time.sleep(600)"
    outer = (
        f"import subprocess, sys; out = open({str(started)!r}, 'wb', buffering=0);"
        f"subprocess.run([sys.executable, '-c', {inner!r}], stdout=out)"
    )
    end = os.open(started, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(FetchError, match="nothing has arrived"):
            fetch(python(outer), silence=2)
        os.set_blocking(end, True)
        while os.read(end, 20):  # ends when nobody has the other end open any more
            pass
    finally:
        os.close(end)


def test_a_failure_is_kept_and_the_program_not_run_again(may_fetch, tmp_path):
    count = tmp_path / "count"
    program = python(f"open({str(count)!r}, 'a').write('.'); print('why'); raise SystemExit(3)")
    for _ in range(2):
        with pytest.raises(FetchError, match="why"):
            fetch(program)
    assert count.read_text() == "."


def test_nothing_is_fetched_in_a_run_whose_preparation_failed(monkeypatch):
    monkeypatch.setenv(NO_FETCH, "1")
    with pytest.raises(FetchError):
        fetch(python(""))


def test_the_same_words_are_run_in_each_folder(may_fetch, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        fetch(
            python("import os, time; os.close(1); os.close(2); open('made', 'w')"),
            cwd=tmp_path / name,
        )
        assert (tmp_path / name / "made").exists()
