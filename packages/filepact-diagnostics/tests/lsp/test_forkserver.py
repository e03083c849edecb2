"""Servers of a process that has confined itself: started by another, which does nothing else."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filepact_diagnostics.lsp.failures import ServerExitedError
from filepact_diagnostics.lsp.forkserver import ForkServer, ProcessOptions
from filepact_diagnostics.lsp.pool import ServerPool
from filepact_supervisor.server_sandbox import ServerSandbox
from tests.servers.asking import report_of
from tests.servers.fakes import PAUSES, SECONDS, fake, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact_diagnostics.lsp.spec import ServerSpec

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
def fork_server() -> Iterator[ForkServer]:
    made = ForkServer.start()
    yield made
    made.close()


def pool_with(
    fork_server: ForkServer, root: Path, *servers: ServerSpec, **environment: str
) -> ServerPool:
    return ServerPool(
        servers,
        {"PATH": os.environ["PATH"], **environment},
        lambda name: name,
        pauses=PAUSES,
        fork_server=fork_server,
        sandbox=ServerSandbox("", (str(root),), ()),
    )


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def said(fork_server: ForkServer, launch: ProcessOptions) -> str:
    """What is said on a supervisor's line when this is to be started, up to its end."""
    ours, theirs = socket.socketpair()
    with ours, open(os.devnull, "r+b") as nothing:
        with theirs:
            ends = (nothing.fileno(), nothing.fileno(), nothing.fileno(), theirs.fileno())
            fork_server.start_supervisor(launch, ends)
        ours.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: ours.recv(256), b"")).decode()


def test_servers_are_started_by_the_fork_server_and_work_as_always(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    pool = pool_with(fork_server, tmp_path, fake(), MARK="seen")
    path = str(tmp_path / "a.x")
    (report,) = report_of(pool, str(tmp_path), {path: "wrong"}, SECONDS)
    assert [one.code for one in report.diagnostics] == ["wrong"]
    (status,) = pool.status()
    assert parent_of(parent_of(status.pid)) == fork_server.pid
    assert b"MARK=seen" in Path(f"/proc/{status.pid}/environ").read_bytes()
    assert Path(f"/proc/{status.pid}/cwd").resolve() == tmp_path.resolve()
    pool.close()
    assert wait_for_end(status.pid)


def test_a_server_that_ends_is_started_again(fork_server: ForkServer, tmp_path: Path) -> None:
    pool = pool_with(fork_server, tmp_path, fake())
    files = {str(tmp_path / "a.x"): "wrong"}
    assert report_of(pool, str(tmp_path), files, SECONDS)[0].fresh
    (before,) = pool.status()
    os.kill(before.pid, signal.SIGKILL)
    assert wait_for_end(before.pid)
    while not report_of(pool, str(tmp_path), files, SECONDS)[0].fresh:
        continue
    (after,) = pool.status()
    assert after.starts == 2
    assert after.pid != before.pid
    pool.close()


def test_the_fork_server_has_nothing_of_ours(fork_server: ForkServer, tmp_path: Path) -> None:
    with open(tmp_path / "kept", "w") as kept:
        os.set_inheritable(kept.fileno(), True)
        other = ForkServer.start()
    try:
        pool = pool_with(other, tmp_path, fake())
        assert report_of(pool, str(tmp_path), {str(tmp_path / "a.x"): ""}, SECONDS)[0].fresh
        held = [os.readlink(one) for one in Path(f"/proc/{other.pid}/fd").iterdir()]
        # Newer ones of libffi keep their own file open, for what they write into memory to be run.
        held = [one for one in held if "/libffi.so" not in one]
        assert sorted(one for one in held if "socket" not in one) == [os.devnull] * 3
        assert len(held) == 4
        assert not Path(f"/proc/{other.pid}/environ").read_bytes()
        assert os.getsid(other.pid) == other.pid
        pool.close()
    finally:
        other.close()


def test_only_what_was_agreed_upon_is_started(fork_server: ForkServer, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    agreed = ProcessOptions((sys.executable, "-c", "pass"), "/", {})
    fork_server.agree([agreed], [str(root)], {})

    def refused(folder: Path | str, command: tuple[str, ...] = agreed.command) -> str:
        return said(fork_server, ProcessOptions(command, str(folder), {}))

    assert "started" in refused(root)
    assert "started" in refused(root / "inner")
    for folder in (tmp_path, "/", f"{root}2", f"{root}/../root2", ""):
        assert refused(folder) == "failed 1\n"
    assert refused(root / "nowhere") == "failed 2\n"
    with pytest.raises(ServerExitedError):
        refused(root, (sys.executable, "-c", "print()"))
    with pytest.raises(ValueError, match="once"):
        fork_server.agree([], ["/"], {})


def test_whoever_speaks_nonsense_to_it_ends_it(tmp_path: Path) -> None:
    pieces = (b"\0\0\0\5", b"\xff\xff\xff\xff", b"\0\0\0\2[}", b"\0\0\0\2{}\0\0")
    for piece in pieces:
        fork_server = ForkServer.start()
        fork_server._line.sendall(piece)
        fork_server._line.shutdown(socket.SHUT_WR)
        assert wait_for_end(fork_server.pid)
        fork_server.close()


def test_a_number_that_stands_for_nothing_is_refused(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    fork_server.agree([], [str(tmp_path)], {})
    fork_server._agreed = {((sys.executable,), 0, ""): 7}
    assert said(fork_server, ProcessOptions((sys.executable,), str(tmp_path), {})) == "failed 1\n"


def test_without_the_fork_server_there_are_no_new_servers_and_old_ones_go_on(
    fork_server: ForkServer, tmp_path: Path
) -> None:
    pool = pool_with(fork_server, tmp_path, fake())
    root, files = str(tmp_path), {str(tmp_path / "a.x"): "wrong"}
    assert report_of(pool, root, files, SECONDS)[0].fresh
    os.kill(fork_server.pid, signal.SIGKILL)
    assert wait_for_end(fork_server.pid)
    assert report_of(pool, root, {**files, str(tmp_path / "b.x"): ""}, SECONDS)[0].fresh
    (status,) = pool.status()
    pool.restart(root)
    assert wait_for_end(status.pid)
    (report,) = report_of(pool, root, files, SECONDS)
    assert not report.fresh
    assert "it has ended" in report.reason
    pool.close()
