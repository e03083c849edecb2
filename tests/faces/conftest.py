"""A folder to use the command in, and clients of the small server."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.faces.command_line import CommandLine
from tests.faces.line_client import PATIENCE, LineClient
from tests.node_programs import NodeError, Programs, install

PROGRAM = Path(__file__).with_name("small_server.py")


@pytest.fixture
def cli(
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> CommandLine:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src" / "app.py").write_text("port = 80\nhost = 'a'\n")
    (root / "windows.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    (root / ".env").write_text("KEY=SECRET\n")
    for name in ("FILEPACT_CONFIG", "FILEPACT_ROOT", "FILEPACT_DEBUG", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FILEPACT_STATE_DIR", str(tmp_path / "state"))
    # Nobody's own rules count in a test.
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "etc"))
    monkeypatch.chdir(root)
    return CommandLine(root, tmp_path / "state", capsysbinary, monkeypatch)


@pytest.fixture(scope="session")
def small():
    """The module of the small server."""
    spec = importlib.util.spec_from_file_location("small_server", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    sys.modules["small_server"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def in_thread():
    """Run a function that serves a pair of pipes in a thread; answers a client for it."""
    started = []

    def start(serve_pipes, *, blocking: bool = True) -> LineClient:
        server_in, to_server = os.pipe()
        from_server, server_out = os.pipe()
        os.set_blocking(server_in, blocking)
        os.set_blocking(server_out, blocking)

        def work() -> None:
            try:
                serve_pipes((server_in, server_out))
            finally:
                os.close(server_out)
                os.close(server_in)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        client = LineClient(to_server, from_server)
        started.append((client, thread))
        return client

    yield start
    for client, thread in started:
        client.hang_up()
        thread.join(PATIENCE)
        assert not thread.is_alive()


@pytest.fixture
def engine(small):
    return small.SmallEngine()


@pytest.fixture
def client(in_thread, small, engine) -> LineClient:
    """A client of the small server, which runs in a thread."""
    return in_thread(lambda pipes: small.start(engine, pipes=pipes))


@pytest.fixture
def program():
    """A client of the small server as a process of its own, and the process."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    client = LineClient(os.dup(process.stdin.fileno()), os.dup(process.stdout.fileno()))
    process.stdin.close()
    process.stdout.close()
    yield client, process
    client.hang_up()
    if process.poll() is None:
        process.kill()
    process.wait(PATIENCE)
    process.stderr.close()


@pytest.fixture(scope="session")
def programs() -> Programs:
    """The programs from npm, such as agents that others wrote."""
    try:
        return install()
    except NodeError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def latin(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a locale that is not UTF-8."""
    folder = tmp_path_factory.mktemp("locales")
    made = (
        subprocess.run(
            ["localedef", "-i", "en_US", "-f", "ISO-8859-1", str(folder / "en_US.ISO-8859-1")],
            capture_output=True,
            check=False,
        )
        if shutil.which("localedef")
        else None
    )
    if made is None or made.returncode:
        pytest.skip("no such locale can be made here")
    return str(folder)
