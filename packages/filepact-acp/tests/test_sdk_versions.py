"""What stands on the protocol's package works with every version of it that we say it works with."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from acp import spawn_agent_process, text_block

from filepact.acp import ClientFileSystem
from tests.faces.acp.sdk_versions import VERSIONS, SdkError, fetch
from tests.faces.acp.talking import AGENT
from tests.hostile.sweeps import often

HERE = Path(__file__).parent
PROJECT = HERE.parents[2]

SIDES = (
    "test_client_file_system.py",
    "test_client_permissions.py",
    "test_client_changes.py",
    "test_agent_notices.py",
    "test_conformance.py::test_our_own_client_passes_everything",
)
"""Conversations over pipes of a client with an agent that sends raw lines, and of both of ours; and the
whole conformance suite."""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", VERSIONS[:: often(3, 1)])
def test_a_client_and_an_agent_work_with_the_versions_that_others_pin(version):
    try:
        folder = fetch(version)
    except SdkError as error:
        pytest.skip(str(error))
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    which = "import importlib.metadata as m; print(m.version('agent-client-protocol'))"
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *(str(HERE / one) for one in SIDES)]
    for words in (["-c", which], tests):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
        if words[0] == "-c":
            assert done.stdout.strip() == version


def test_every_version_from_the_oldest_tested_on_may_be_installed():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    (wanted,) = project["optional-dependencies"]["acp"]
    oldest = ".".join(VERSIONS[0].split(".")[:2])
    assert wanted.startswith(f"agent-client-protocol>={oldest},")


class Shut:
    """A connection of which only the public methods are seen."""

    def __init__(self, connection):
        self._hidden = connection

    def __getattr__(self, name):
        return getattr(self._hidden, name)


Shut._conn = property(lambda _: None)


def test_sessions_are_learned_from_the_public_methods_where_nothing_else_is_seen(tmp_path, caplog):
    """As with a version whose parts are called otherwise."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\n")
    files = ClientFileSystem(state_dir=str(tmp_path / "state"))
    closed = []
    read = ["fs/read_text_file", {"path": str(work / "a.txt")}]
    write = ["fs/write_text_file", {"path": str(work / "a.txt"), "content": "two\n"}]
    script = json.dumps({"prompt": [read, write]})

    class Client:
        """Hands its files on, and shows its connection from outside."""

        def on_connect(self, connection):
            self.shut = Shut(connection)
            files.on_connect(self.shut)

        async def read_text_file(self, **more):
            return await files.read_text_file(**more)

        async def write_text_file(self, **more):
            return await files.write_text_file(**more)

        async def session_update(self, **_): ...

    async def scene():
        client = Client()
        async with spawn_agent_process(client, sys.executable, str(AGENT), script, "raw"):
            agent = client.shut
            await agent.initialize(1, client_capabilities=files.capabilities())
            session = (await agent.new_session(cwd=str(work), mcp_servers=[])).session_id
            done = await agent.prompt(prompt=[text_block("go")], session_id=session)
            await agent.cancel(session_id=session)
            await agent.close_session(session)
            closed.append(files._sessions.get(session))
            return done.field_meta["answers"]

    with caplog.at_level(logging.WARNING, "filepact.acp"):
        shown, written = asyncio.run(scene())
    files.close()
    assert shown["result"] == {"content": "one\n"}
    assert written["result"] == {}
    assert (work / "a.txt").read_text() == "two\n"
    assert closed == [None]
    assert "cannot be listened to" in caplog.text
    assert files._agent.name == "raw"
