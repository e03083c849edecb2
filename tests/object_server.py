"""A real S3 server for tests, and a proxy before it that loses answers, refuses and waits."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Fault", "FaultProxy", "ObjectServer", "program"]

_KEY, _SECRET = "tests", "only-for-tests"
_PATIENCE = 60.0
_SLOW = 0.5


def program() -> str | None:
    """The server's program, beside the interpreter; None where it is not installed."""
    return shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")


def _free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


class ObjectServer:
    """SeaweedFS with one master, one volume and its S3 gateway, on loopback, in a folder of its own."""

    def __init__(self) -> None:
        found = program()
        if found is None:
            raise FileNotFoundError("weed")
        self._folder = tempfile.mkdtemp(prefix="objects-")
        who = {"name": "t", "credentials": [{"accessKey": _KEY, "secretKey": _SECRET}]}
        settings = Path(self._folder, "s3.json")
        settings.write_text(json.dumps({"identities": [{**who, "actions": ["Admin"]}]}))
        ports = _free_ports(8)
        names = (
            *("master.port", "master.port.grpc", "volume.port", "volume.port.grpc"),
            *("filer.port", "filer.port.grpc", "s3.port", "s3.port.grpc"),
        )
        self.port = ports[6]
        command = [
            *(found, "server", "-dir", self._folder, "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
            *(f"-{name}={port}" for name, port in zip(names, ports, strict=True)),
            *("-filer", "-s3", f"-s3.config={settings}", "-volume.max=8"),
            # Else each would listen at the same port as well, so that no two could run at once.
            *("-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"),
            *("-master.volumeSizeLimitMB=64", "-master.volumePreallocate=false"),
        ]
        self._command = command
        self.start()

    def start(self) -> None:
        """Start it, in the same folder and at the same ports as before."""
        with Path(self._folder, "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._ready = False

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it: stop it, have it go on, kill it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
        if number == signal.SIGKILL:
            self._process.wait()

    def close(self) -> None:
        """End it, by its own id."""
        self.signal(signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    def environment(self, port: int | None = None) -> dict[str, str]:
        """What a client is told, perhaps with a proxy's port; waits until the server takes objects."""
        told = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port or self.port}",
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            "AWS_REGION": "us-east-1",
        }
        if not self._ready:
            self._wait(told)
        return told

    def _wait(self, told: dict[str, str]) -> None:
        from obstore.store import S3Store  # noqa: PLC0415 - may not be installed

        end = threading.Event()
        for _ in range(int(_PATIENCE / 0.1)):
            assert self._process.poll() is None, Path(self._folder, "log").read_text()[-2_000:]
            with suppress(Exception):
                store: Any = S3Store(
                    "tests",
                    endpoint=told["AWS_ENDPOINT_URL"],
                    access_key_id=_KEY,
                    secret_access_key=_SECRET,
                    region="us-east-1",
                    client_options={"allow_http": True},
                    retry_config={"max_retries": 0},
                )
                store.put("ready", b"yes")
                self._ready = True
                return
            end.wait(0.1)
        raise TimeoutError("the object server does not start")


class Fault:
    """What happens to one request, the next one that fits.

    Args:
        method: Of HTTP.
        ends: How the path ends.
        kind: A status that is answered instead; ``lost`` forwards it and gives no answer; ``unsent`` does not forward it;
            ``held`` forwards it when `go` is set, ``slow`` after a while; ``half`` breaks off within the answer, ``wrong`` answers other bytes.
    """

    def __init__(self, method: str, ends: str, kind: int | str) -> None:
        self.method = method
        self.ends = ends
        self.kind = kind
        self.met = threading.Event()
        self.go = threading.Event()


class FaultProxy:
    """Stands before a server on loopback; a context manager.

    Args:
        port: The server's.
    """

    def __init__(self, port: int) -> None:
        self.faults: list[Fault] = []
        self.every: Callable[[str, str], int | str | None] = lambda _method, _path: None
        self.seen: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"proxy": self, "behind": port})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fault in self.faults:
            fault.go.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def fault(self, method: str, path: str) -> Fault | None:
        """The fault for a request, which is used up by it."""
        path = path.partition("?")[0]
        with self._lock:
            self.seen.append((method, path))
            for fault in self.faults:
                if fault.method == method and path.endswith(fault.ends) and not fault.met.is_set():
                    fault.met.set()
                    return fault
            kind = self.every(method, path)
        return None if kind is None else Fault(method, path, kind)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: ClassVar[FaultProxy]
    behind: ClassVar[int]

    def _do(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        fault = self.proxy.fault(self.command, self.path)
        kind = None if fault is None else fault.kind
        if isinstance(kind, int):
            self._answer(
                kind, [], b"<Error><Code>Fault</Code><Message>of the test</Message></Error>"
            )
            return
        if kind == "unsent":
            self._cut()
            return
        if kind == "held" and fault is not None:
            fault.go.wait(_PATIENCE)
        if kind == "slow":
            threading.Event().wait(_SLOW)
        behind = http.client.HTTPConnection("127.0.0.1", self.behind, timeout=_PATIENCE)
        try:
            behind.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                behind.putheader(name, value)
            behind.endheaders(body or None)
            answer = behind.getresponse()
            data = answer.read()
        finally:
            behind.close()
        if kind == "lost":
            self._cut()
            return
        if kind == "wrong":
            data = bytes(one ^ 1 for one in data)
        self._answer(answer.status, answer.getheaders(), data, half=kind == "half")

    def _cut(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _answer(
        self, status: int, headers: list[tuple[str, str]], data: bytes, *, half: bool = False
    ) -> None:
        self.send_response_only(status)
        known = {name.lower(): value for name, value in headers}
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        size = known.get("content-length") if self.command == "HEAD" else None
        self.send_header("Content-Length", size or str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if half else data)
        if half:
            self._cut()

    do_GET = do_PUT = do_DELETE = do_HEAD = do_POST = _do  # noqa: N815 - names of the library

    def handle(self) -> None:
        with suppress(ConnectionError, BrokenPipeError):
            super().handle()

    def log_message(self, *_: object) -> None:
        """Say nothing."""
