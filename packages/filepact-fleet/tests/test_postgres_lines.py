"""The way to the database: TLS whose certificate is looked at, and PgBouncer in between."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from filepact.errors import FilepactError
from tests.postgres import Server, binaries, server
from tests.store.making import change, contents, do, operation

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("psycopg", reason="psycopg is not installed")

from filepact_fleet.postgres import PostgresStore
from filepact_fleet.postgres_connection import migrate_database
from filepact_fleet.postgres_words import open_connection

PATIENCE = 60.0


def store_of(url: str, workspace: str) -> PostgresStore:
    return PostgresStore(url, workspace=workspace, holder=workspace, patience=PATIENCE)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


# -- TLS -------------------------------------------------------------------------------------------


class Authority:
    """Somebody who signs certificates, and is trusted or not."""

    def __init__(self, name: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._signed(self.name, self.key.public_key(), None)

    def _signed(self, name: x509.Name, key: Any, host: str | None) -> bytes:
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder(self.name, name, key, x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
        )
        if host is not None:
            names: list[x509.GeneralName] = [x509.DNSName(host)]
            with suppress(ValueError):
                names = [x509.IPAddress(ip_address(host))]
            made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return made.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def issue(self, host: str) -> tuple[bytes, bytes]:
        """A certificate for a host, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return self._signed(name, key.public_key(), host), private


class SecureServer:
    """A server that speaks TLS at a port of the loopback interface."""

    def __init__(self, place: Path) -> None:
        self.port = free_port()
        self.trusted = Authority("trusted")
        self.server = Server(place, listen_addresses="'127.0.0.1'", port=str(self.port))
        self.show(self.trusted, "127.0.0.1")
        migrate_database(f"{self.server.url}&port={self.port}")

    def show(self, authority: Authority, host: str) -> None:
        """Have it show another certificate."""
        owner = self.server.data.stat()
        for name, data in zip(("crt", "key"), authority.issue(host), strict=True):
            path = self.server.data / f"server.{name}"
            path.write_bytes(data)
            path.chmod(0o600)
            os.chown(path, owner.st_uid, owner.st_gid)
        with (self.server.data / "postgresql.conf").open("a") as file:
            file.write("ssl = on\n")
        self.server.restart()

    def url(self, root: Path, mode: str = "verify-full") -> str:
        root.write_bytes(self.trusted.certificate)
        words = f"sslmode={mode}&sslrootcert={root}"
        return f"postgresql://filepact@127.0.0.1:{self.port}/postgres?{words}"


@pytest.fixture(scope="module")
def secure() -> Iterator[SecureServer]:
    place = binaries()
    if place is None or shutil.which("setpriv") is None:
        pytest.skip("no PostgreSQL server is here")
    made = SecureServer(place)
    yield made
    made.server.remove()


def refusal(url: str) -> FilepactError:
    """What is told, at once: a server that is away would be waited for."""
    with pytest.raises(FilepactError) as caught:
        store_of(url, "it")
    return caught.value


def test_a_journal_over_tls_looks_at_the_certificate(secure, tmp_path):
    secure.show(secure.trusted, "127.0.0.1")
    url = secure.url(tmp_path / "root.crt")
    with open_connection(url) as connection:
        assert connection.pgconn.ssl_in_use
    with closing(store_of(url, "tls")) as store:
        assert do(store, None, b"1").seq == 1
        secure.server.restart()
        assert do(store, b"1", b"2").seq == 2


@pytest.mark.parametrize("wrong", ["signed by another", "for another", "no root"])
def test_a_server_with_a_wrong_certificate_is_refused_at_once(secure, tmp_path, wrong):
    authority = Authority("strange") if wrong == "signed by another" else secure.trusted
    secure.show(authority, "other.example" if wrong == "for another" else "127.0.0.1")
    url = secure.url(tmp_path / "root.crt")
    if wrong == "no root":
        (tmp_path / "root.crt").unlink()
    told = refusal(url)
    assert told.code == "STATE_ERROR"
    assert "certificate" in told.message
    assert not {"filepact@127.0.0.1", str(secure.port)} & set(told.report().split())


# -- PgBouncer -------------------------------------------------------------------------------------


class Pooler:
    """PgBouncer before a server, pooling in some way, on a socket of its own."""

    def __init__(self, behind: Server, mode: str, connections: int = 3) -> None:
        found = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
        if found is None:
            pytest.skip("PgBouncer is not here")
        self.folder = Path(tempfile.mkdtemp(prefix="filepact-pb-", dir="/tmp"))
        owner = behind.data.stat()
        os.chown(self.folder, owner.st_uid, owner.st_gid)
        (self.folder / "users").write_text('"filepact" ""\n')
        (self.folder / "ini").write_text(
            f"[databases]\npostgres = host={behind.folder} dbname=postgres\n[pgbouncer]\n"
            f"unix_socket_dir = {self.folder}\nlisten_port = 6432\nauth_type = trust\n"
            f"auth_file = {self.folder}/users\npool_mode = {mode}\n"
            f"default_pool_size = {connections}\nlogfile = {self.folder}/log\n"
        )
        command = [*behind.command, found, str(self.folder / "ini")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(int(PATIENCE / 0.02)):
            if (self.folder / ".s.PGSQL.6432").exists():
                return
            assert self.process.poll() is None, (self.folder / "log").read_text()
            threading.Event().wait(0.02)
        raise TimeoutError("PgBouncer does not start")

    @property
    def url(self) -> str:
        return f"postgresql://filepact@/postgres?host={self.folder}&port=6432"

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def pooled(mode: str) -> Iterator[Pooler]:
    one = Pooler(server(), mode)
    try:
        yield one
    finally:
        one.end()


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_many_writers_share_the_connections_of_a_pooler(mode):
    name = f"pooled {mode} {os.getpid()}"
    with pooled(mode) as between, closing(store_of(between.url, name)) as store:
        begun: list[str] = []

        def run(number: int) -> None:
            for turn in range(5):
                one = operation(change(f"{number}", None, b"%d" % turn))
                store.begin(one, contents(b"%d" % turn))
                store.finish(one.id, state="applied")
                begun.append(one.id)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        # Another process's place is seen by whoever asks next, whatever connection either had.
        with closing(store_of(server().url, name)) as direct:
            found = [one.id for one in direct.operations(limit=None, newest_first=False)]
        assert sorted(found) == sorted(begun)
        assert store.last_seq() == len(found) == 40


def test_a_pooler_by_statement_is_refused_at_once_and_told_apart():
    with pooled("statement") as between:
        told = refusal(between.url)
    assert told.code == "STATE_ERROR"
    assert "transaction" in told.hint
