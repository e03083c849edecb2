"""A model server on loopback that plays a fixed list of tool calls, for driving real agents.

It speaks as much of the Gemini API as the agent program needs: each request is answered with the
next call of the script, and with a closing sentence when the script is over.  What the agent sent
back (the tools' answers) is kept for the test to look at.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["ScriptedModel"]


class ScriptedModel:
    """Answers with the calls of a script, one a turn.

    Args:
        script: Tool name and arguments of each call, in order.

    Attributes:
        answers: Name and answer of every tool call that the agent reported back, in order.
        tools: Names of the tools that the agent offered in its first full request.
    """

    def __init__(self, script: list[tuple[str, dict[str, object]]]) -> None:
        self.script = script
        self.answers: list[tuple[str, str]] = []
        self.tools: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def turn(self, request: dict[str, Any]) -> dict[str, Any]:
        """The parts of the next answer, given everything said so far."""
        offered = [
            declaration["name"]
            for group in request.get("tools", [])
            for declaration in group.get("functionDeclarations", [])
        ]
        if offered:
            self.tools = offered
        reported = [
            part["functionResponse"]
            for content in request.get("contents", [])
            for part in content.get("parts", [])
            if "functionResponse" in part
        ]
        self.answers = [
            (one["name"], json.dumps(one["response"], ensure_ascii=False)) for one in reported
        ]
        if len(reported) < len(self.script) and offered:
            name, arguments = self.script[len(reported)]
            part: dict[str, Any] = {"functionCall": {"name": name, "args": arguments}}
        else:
            part = {"text": "All done."}
        return {
            "candidates": [
                {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
            ],
            "usageMetadata": {
                "promptTokenCount": 1,
                "candidatesTokenCount": 1,
                "totalTokenCount": 2,
            },
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers.get("content-length", 0))
                request = json.loads(self.rfile.read(size) or b"{}")
                if "countTokens" in self.path:
                    self._send(json.dumps({"totalTokens": 1}).encode(), "application/json")
                    return
                answer = json.dumps(model.turn(request)).encode()
                if "streamGenerateContent" in self.path:
                    self._send(b"data: " + answer + b"\n\n", "text/event-stream")
                else:
                    self._send(answer, "application/json")

            def _send(self, body: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
