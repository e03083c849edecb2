"""A PostgreSQL server of a test session's own, started when the first test wants it."""

from __future__ import annotations

import atexit
import contextlib
import glob
import os
import pwd
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

__all__ = ["Server", "server"]

SETTINGS = {
    "listen_addresses": "''",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "log_min_messages": "fatal",
}
"""Nothing here has to outlast a power cut; `Server.restart` crashes the server, not the system."""


class Server:
    """A server on a socket in a private folder; as root it runs as another user.

    Args:
        binaries: Where its programs are.
        of: The server whose standby it is; None for one of its own.
        settings: What it is set to besides.
    """

    def __init__(self, binaries: Path, *, of: Server | None = None, **settings: str) -> None:
        self.binaries = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="filepact-pg-", dir="/tmp"))
        self.data = self.folder / "data"
        self.command: list[str] = []
        if os.geteuid() == 0:
            try:
                user = pwd.getpwnam("postgres")
            except KeyError:
                user = pwd.getpwnam("nobody")
            self.folder.chmod(0o755)
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            ids = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
            self.command = ["setpriv", *ids]
        if of is None:
            self._run("initdb", "-D", self.data, "-U", "filepact", "-A", "trust", "-E", "UTF8",
                      "--locale=C", "--no-sync")  # fmt: skip
        else:
            self._run("pg_basebackup", "-D", self.data, "-h", of.folder, "-U", "filepact",
                      "--write-recovery-conf", "--checkpoint=fast", "--no-sync")  # fmt: skip
        lines = [f"{name} = {value}" for name, value in (SETTINGS | settings).items()]
        lines.append(f"unix_socket_directories = '{self.folder}'")
        with (self.data / "postgresql.conf").open("a") as file:
            file.write("\n".join(lines) + "\n")
        self.start()

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run(
            [*self.command, str(self.binaries / program), *map(str, arguments)],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )

    def start(self) -> None:
        self._run("pg_ctl", "-D", self.data, "-w", "-t", "60", "start")

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "-D", self.data, "-w", "-m", mode, "stop")

    def restart(self) -> None:
        """Crash the server and start it again."""
        self._run("pg_ctl", "-D", self.data, "-w", "-t", "60", "-m", "immediate", "restart")

    def promote(self) -> None:
        """Make a standby a server that takes changes."""
        self._run("pg_ctl", "-D", self.data, "-w", "-t", "60", "promote")

    @property
    def url(self) -> str:
        """Where its database is."""
        return f"postgresql://filepact@/postgres?host={self.folder}"

    def remove(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def binaries() -> Path | None:
    """Where the newest server is, if one is here."""
    found = glob.glob("/usr/lib/postgresql/*/bin/postgres")
    if found:
        return Path(max(found, key=lambda one: int(one.split("/")[4]))).parent
    program = shutil.which("postgres")
    return None if program is None else Path(program).resolve().parent


@cache
def server() -> Server:
    """The one server of this process, with the tables in it; skips where none can be had."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    place = binaries()
    if place is None or shutil.which("setpriv") is None:
        pytest.skip("no PostgreSQL server is here")
    from filepact_fleet.postgres_connection import migrate_database

    one = Server(place)
    atexit.register(one.remove)
    migrate_database(one.url)
    return one
