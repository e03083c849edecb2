"""A loopback bridge from HTTP to `filepact mcp`, for a suite that speaks nothing else.

It carries messages and looks into them only to know which process they are for and which answer ends a
request.  What HTTP itself asks of a server (origins, headers, resumed streams) is the bridge's and not
filepact's, which has no such transport; the suite's scenarios about that are left out.

    python -m tests.suites.http_bridge FOLDER
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import uuid
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.faces.envelopes import VERSION_KEY

__all__ = ["Bridge"]

_PATIENCE = 30.0
_MODERN = "without a session"
_STATUS = {-32601: 404, -32600: 400, -32602: 400, -32022: 400}
"""The status by which HTTP tells an error, where there was no handshake."""


class _Process:
    """A server process and who waits for what it says."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
        )
        self._turn = threading.Lock()
        self._waiting: dict[str, queue.SimpleQueue[dict[str, Any] | None]] = {}
        self._numbers: dict[str, Any] = {}
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def tell(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with self._turn:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def ask(self, message: dict[str, Any]) -> queue.SimpleQueue[dict[str, Any] | None]:
        """Pass a request on; what comes until its answer, and then None, is found in the queue."""
        heard: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        # Clients of one process may use the same ids; on the pipe they have others.
        inner = uuid.uuid4().hex
        self._numbers[inner] = message["id"]
        self._waiting[inner] = heard
        self.tell({**message, "id": inner})
        return heard

    def end(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            inner = message.get("id")
            if "method" not in message and inner in self._waiting:
                heard = self._waiting.pop(inner)
                heard.put({**message, "id": self._numbers.pop(inner)})
                heard.put(None)
            else:
                # A notification or a request of the server's: whoever waits may see it.
                for heard in list(self._waiting.values())[-1:]:
                    heard.put(message)


class Bridge(ThreadingHTTPServer):
    """Listens on the loopback interface.

    Args:
        command: Starts the server.
        env: Its environment.
    """

    daemon_threads = True

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._command = command
        self._env = env
        self._turn = threading.Lock()
        self.sessions: dict[str, _Process] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mcp"

    def process(self, session: str) -> _Process:
        """The process of a session, started if it is new."""
        with self._turn:
            if session not in self.sessions:
                self.sessions[session] = _Process(self._command, self._env)
            return self.sessions[session]

    def end(self) -> None:
        self.shutdown()
        self.server_close()
        for one in self.sessions.values():
            one.end()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Bridge

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        message = json.loads(self.rfile.read(length))
        session = self.headers.get("Mcp-Session-Id") or ""
        enveloped = VERSION_KEY in ((message.get("params") or {}).get("_meta") or {})
        if not session and message.get("method") == "initialize" and not enveloped:
            session = uuid.uuid4().hex
        elif session and session not in self.server.sessions:
            self._say(404, b"")
            return
        # Without a handshake nobody has a session: those requests are one process's, but for what would be
        # of a conversation with one.
        key = session or (_MODERN if enveloped else uuid.uuid4().hex)
        process = self.server.process(key)
        if "id" not in message or "method" not in message:
            process.tell(message)
            self._say(202, b"")
            return
        heard = process.ask(message)
        first = heard.get(timeout=_PATIENCE)
        assert first is not None
        if key not in {session, _MODERN}:
            self.server.sessions.pop(key).end()
        headers = {"Mcp-Session-Id": session} if session else {}
        if "method" not in first:
            code = first.get("error", {}).get("code")
            status = 200 if session else _STATUS.get(code, 200)
            self._say(status, json.dumps(first).encode(), headers, "application/json")
            return
        self._stream(first, heard, headers)

    def do_GET(self) -> None:
        self._say(405, b"")

    def do_DELETE(self) -> None:
        session = self.headers.get("Mcp-Session-Id") or ""
        process = self.server.sessions.pop(session, None)
        if process is not None:
            process.end()
        self._say(200 if process is not None else 404, b"")

    def _stream(
        self,
        first: dict[str, Any],
        heard: queue.SimpleQueue[dict[str, Any] | None],
        headers: dict[str, str],
    ) -> None:
        self.send_response(200)
        for name, value in {"Content-Type": "text/event-stream", **headers}.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        message: dict[str, Any] | None = first
        while message is not None:
            self.wfile.write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")
            self.wfile.flush()
            message = heard.get(timeout=_PATIENCE)
        self.close_connection = True

    def _say(
        self,
        status: int,
        body: bytes,
        headers: dict[str, str] | None = None,
        kind: str = "text/plain",
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads along."""


if __name__ == "__main__":
    bridge = Bridge([sys.executable, "-m", "filepact", "mcp", *sys.argv[1:]], dict(os.environ))
    print(bridge.url, flush=True)
    bridge.serve_forever()
