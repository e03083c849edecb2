"""`filepact mcp` at an address: what a client sends by HTTP is written to its standard input, and its answer sent back.

Each handshake begins a process of its own, whose session it is; requests without one go to a process for all of them.
The suite of the protocol speaks HTTP alone; of it only what passes through unchanged is looked at this way.
"""

from __future__ import annotations

import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from tests.forked import Command

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["StdioBridge"]

_MODERN = ""


class _Server:
    """One process; asked by one thread at a time."""

    def __init__(self, words: Sequence[str]) -> None:
        self._process = Command(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._guard = threading.Lock()

    def ask(self, message: Any) -> Any:
        """The answer to a request; None to what has none."""
        source, sink = self._process.stdout, self._process.stdin
        assert source is not None
        assert sink is not None
        with self._guard:
            sink.write(json.dumps(message).encode() + b"\n")
            sink.flush()
            if "id" not in message or "method" not in message:
                return None
            while True:
                answer = json.loads(source.readline())
                if answer.get("id") == message["id"] and "method" not in answer:
                    return answer

    def close(self) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        code = self._process.wait(60)
        self._process.stdout.close()
        return code


class StdioBridge:
    """The address, until it is closed.

    Args:
        words: Of the command, after its name.
    """

    def __init__(self, words: Sequence[str]) -> None:
        servers: dict[str, _Server] = {_MODERN: _Server(words)}
        self._servers = servers

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["content-length"])))
                session = self.headers.get("mcp-session-id", _MODERN)
                if message.get("method") == "initialize":
                    session = uuid4().hex
                    servers[session] = _Server(words)
                answer = servers[session].ask(message)
                body = b"" if answer is None else json.dumps(answer).encode()
                self.send_response(200 if body else 202)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                if session:
                    self.send_header("mcp-session-id", session)
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                self.send_response(405)
                self.send_header("content-length", "0")
                self.end_headers()

            def do_DELETE(self) -> None:
                self.do_GET()

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/mcp"
        self._thread = threading.Thread(target=self._http.serve_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        assert [one.close() for one in self._servers.values()] == [0] * len(self._servers)
