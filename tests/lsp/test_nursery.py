"""Servers of a process that has confined itself: started by another, which does nothing else."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filepact.lsp.failures import GoneError
from filepact.lsp.launch import Launch
from filepact.lsp.nursery import Nursery
from filepact.lsp.pool import Pool
from tests.lsp.fakes import PAUSES, SECONDS, fake, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact.lsp.servers import Server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    made = Nursery.start()
    yield made
    made.close()


def pool_with(nursery: Nursery, root: Path, *servers: Server, **environment: str) -> Pool:
    return Pool(
        servers,
        {"PATH": os.environ["PATH"], **environment},
        lambda name: name,
        pauses=PAUSES,
        nursery=nursery,
        roots=[str(root)],
    )


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def said(nursery: Nursery, launch: Launch) -> str:
    """What is said on a warden's line when this is to be started, up to its end."""
    ours, theirs = socket.socketpair()
    with ours, open(os.devnull, "r+b") as nothing:
        with theirs:
            ends = (nothing.fileno(), nothing.fileno(), nothing.fileno(), theirs.fileno())
            nursery.start_warden(launch, ends)
        ours.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: ours.recv(256), b"")).decode()


def test_servers_are_started_by_the_nursery_and_work_as_always(
    nursery: Nursery, tmp_path: Path
) -> None:
    pool = pool_with(nursery, tmp_path, fake(), MARK="seen")
    path = str(tmp_path / "a.x")
    (report,) = pool.report(str(tmp_path), {path: "wrong"}, SECONDS)
    assert [one.code for one in report.diagnostics] == ["wrong"]
    (status,) = pool.status()
    assert parent_of(parent_of(status.pid)) == nursery.pid
    assert b"MARK=seen" in Path(f"/proc/{status.pid}/environ").read_bytes()
    assert Path(f"/proc/{status.pid}/cwd").resolve() == tmp_path.resolve()
    pool.close()
    assert wait_for_end(status.pid)


def test_a_server_that_ends_is_started_again(nursery: Nursery, tmp_path: Path) -> None:
    pool = pool_with(nursery, tmp_path, fake())
    files = {str(tmp_path / "a.x"): "wrong"}
    assert pool.report(str(tmp_path), files, SECONDS)[0].fresh
    (before,) = pool.status()
    os.kill(before.pid, signal.SIGKILL)
    assert wait_for_end(before.pid)
    while not pool.report(str(tmp_path), files, SECONDS)[0].fresh:
        continue
    (after,) = pool.status()
    assert after.starts == 2
    assert after.pid != before.pid
    pool.close()


def test_the_nursery_has_nothing_of_ours(nursery: Nursery, tmp_path: Path) -> None:
    with open(tmp_path / "kept", "w") as kept:
        os.set_inheritable(kept.fileno(), True)
        other = Nursery.start()
    try:
        pool = pool_with(other, tmp_path, fake())
        assert pool.report(str(tmp_path), {str(tmp_path / "a.x"): ""}, SECONDS)[0].fresh
        held = [os.readlink(one) for one in Path(f"/proc/{other.pid}/fd").iterdir()]
        assert sorted(one for one in held if "socket" not in one) == [os.devnull] * 3
        assert len(held) == 4
        assert not Path(f"/proc/{other.pid}/environ").read_bytes()
        assert os.getsid(other.pid) == other.pid
        pool.close()
    finally:
        other.close()


def test_only_what_was_agreed_upon_is_started(nursery: Nursery, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    agreed = Launch((sys.executable, "-c", "pass"), "/", {})
    nursery.agree([agreed], [str(root)], {})

    def refused(folder: Path | str, command: tuple[str, ...] = agreed.command) -> str:
        return said(nursery, Launch(command, str(folder), {}))

    assert "started" in refused(root)
    assert "started" in refused(root / "inner")
    for folder in (tmp_path, "/", f"{root}2", f"{root}/../root2", ""):
        assert refused(folder) == "failed 1\n"
    assert refused(root / "nowhere") == "failed 2\n"
    with pytest.raises(GoneError):
        refused(root, (sys.executable, "-c", "print()"))
    with pytest.raises(ValueError, match="once"):
        nursery.agree([], ["/"], {})


def test_whoever_speaks_nonsense_to_it_ends_it(tmp_path: Path) -> None:
    pieces = (b"\0\0\0\5", b"\xff\xff\xff\xff", b"\0\0\0\2[}", b"\0\0\0\2{}\0\0")
    for piece in pieces:
        nursery = Nursery.start()
        nursery._line.sendall(piece)
        nursery._line.shutdown(socket.SHUT_WR)
        assert wait_for_end(nursery.pid)
        nursery.close()


def test_a_number_that_stands_for_nothing_is_refused(nursery: Nursery, tmp_path: Path) -> None:
    nursery.agree([], [str(tmp_path)], {})
    nursery._agreed = {((sys.executable,), 0): 7}
    assert said(nursery, Launch((sys.executable,), str(tmp_path), {})) == "failed 1\n"


def test_without_the_nursery_there_are_no_new_servers_and_old_ones_go_on(
    nursery: Nursery, tmp_path: Path
) -> None:
    pool = pool_with(nursery, tmp_path, fake())
    root, files = str(tmp_path), {str(tmp_path / "a.x"): "wrong"}
    assert pool.report(root, files, SECONDS)[0].fresh
    os.kill(nursery.pid, signal.SIGKILL)
    assert wait_for_end(nursery.pid)
    assert pool.report(root, {**files, str(tmp_path / "b.x"): ""}, SECONDS)[0].fresh
    (status,) = pool.status()
    pool.restart(root)
    assert wait_for_end(status.pid)
    (report,) = pool.report(root, files, SECONDS)
    assert not report.fresh
    assert "it has ended" in report.reason
    pool.close()
