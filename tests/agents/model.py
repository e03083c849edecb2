"""A model server on loopback that plays fixed lists of tool calls, for driving real agents.

It keeps no state between requests.  Which list is played says the prompt (the last text of a
person that names one), and how far it is says the number of tools' answers after that prompt: so
requests that are sent again, or aside (for a title, say), do no harm.  A request that declares
none of the list's tools gets a sentence.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from tests.agents.dialects import Answer, Call, Heard, Reply, dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

__all__ = ["Call", "ScriptedModel"]


class ScriptedModel:
    """Answers with the calls of a script, one a request, and with a sentence when it is over.

    Args:
        scripts: The calls by the word in the prompt that chooses them; or one list, for any prompt.
            A pattern in an argument stands for the number that the last answer has there.
        meanwhile: What somebody else does, once, before a call is sent, by script and its place.

    Attributes:
        tools: Names of the tools that the agent offered in its last full request.
    """

    def __init__(
        self,
        scripts: Mapping[str, Sequence[Call]] | Sequence[Call],
        meanwhile: Mapping[tuple[str, int], Callable[[], None]] | None = None,
    ) -> None:
        self._scripts: Mapping[str, Sequence[Call]] = (
            {"": scripts} if isinstance(scripts, (list, tuple)) else scripts  # type: ignore[dict-item]
        )
        self._heard: dict[str, list[Answer]] = {}
        self._meanwhile = dict(meanwhile or {})
        self._turn = threading.Lock()
        self.tools: tuple[str, ...] = ()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def answers(self) -> list[tuple[str, str]]:
        """Tool and answer of every call of the only script, in order."""
        return [(one.tool, one.text) for one in self._heard.get("", ())]

    def answers_to(self, script: str) -> list[str]:
        """What the tools answered to a script's calls, as the agent reported it."""
        return [one.text for one in self._heard.get(script, ())]

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

    def weigh(self, request: dict[str, Any]) -> None:
        """Look at a request as it came; nothing is looked for here."""

    def reply(self, heard: Heard) -> Reply:
        """The next answer, given everything said so far."""
        chosen, answers = self.place(heard)
        if chosen is None:
            return Reply(len(heard.turns), text="Nothing to do.")
        script = self._scripts[chosen]
        if not {name for name, _ in script} & set(heard.tools):
            return Reply(len(heard.turns), text="Nothing to do.")
        self.tools = heard.tools
        self._heard[chosen] = answers
        if len(answers) >= len(script):
            return Reply(len(heard.turns), text="All done.")
        with self._turn:
            # A request may be sent again; what somebody does is done once, before any answer.
            act = self._meanwhile.pop((chosen, len(answers)), None)
            if act is not None:
                act()
        name, given = script[len(answers)]
        arguments = {
            key: int(value.findall(answers[-1].text)[0]) if isinstance(value, re.Pattern) else value
            for key, value in given.items()
        }
        return Reply(len(heard.turns), calls=((name, arguments),))

    def place(self, heard: Heard) -> tuple[str | None, list[Answer]]:
        """The script that the conversation is in, and the answers to its calls so far."""
        chosen = "" if "" in self._scripts else None
        answers: list[Answer] = []
        for turn in heard.turns:
            if isinstance(turn, Answer):
                answers.append(turn)
                continue
            named = [word for word in self._scripts if word and word in turn]
            if named:
                chosen, answers = max(named, key=turn.rfind), []
        return chosen, answers

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers.get("content-length", 0))
                request = json.loads(self.rfile.read(size) or b"{}")
                dialect = dialect_of(self.path)
                if dialect is None:
                    # Counting tokens, in either of two dialects; everything else is not needed.
                    self._send({"totalTokens": 1, "input_tokens": 1})
                    return
                model.weigh(request)
                reply = model.reply(dialect.hear(request))
                if request.get("stream") or "stream" in self.path:
                    self._send_events(list(dialect.stream(reply)))
                else:
                    self._send(dialect.say(reply))

            def do_GET(self) -> None:
                self._send({"data": []})

            def do_HEAD(self) -> None:
                self._answer(b"", "text/plain")

            def _send(self, answer: dict[str, Any]) -> None:
                self._answer(json.dumps(answer).encode(), "application/json")

            def _send_events(self, events: list[tuple[str, str]]) -> None:
                lines = [
                    (f"event: {name}\n" if name else "") + f"data: {data}\n\n"
                    for name, data in events
                ]
                self._answer("".join(lines).encode(), "text/event-stream")

            def _answer(self, body: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                # An agent whose turn was cancelled does not wait for the answer.
                with contextlib.suppress(ConnectionError):
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
