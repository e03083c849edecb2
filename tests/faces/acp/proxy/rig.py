"""A real proxy with a test at both of its ends: the editor's pipes, and the agent's."""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.faces.acp.schema import Talk
from tests.faces.command_line import command
from tests.forked import Command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

__all__ = ["BOTH", "Peer", "Rig", "Tools"]

Message = dict[str, Any]

BOTH = {"readTextFile": True, "writeTextFile": True}

_AGENT = Path(__file__).with_name("far_agent.py")
_PATIENCE = 90.0


class Peer:
    """One end: what it hears, in order, and what it says.

    Args:
        read: Gives the next bytes; empty at the end.
        write: Takes bytes.
        saw: Told every message that is heard.
        said: Told every message that is sent.
    """

    def __init__(
        self,
        read: Callable[[], bytes],
        write: Callable[[bytes], object],
        saw: Callable[[Message], None],
        said: Callable[[Message], None],
    ) -> None:
        self._write = write
        self._saw = saw
        self._said = said
        self._heard: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._put_back: list[Message] = []
        self._count = 0
        self.wrong: list[str] = []
        self.closed: list[Message] = []
        self._listener = threading.Thread(target=self._listen, args=(read,), daemon=True)
        self._listener.start()

    def join(self) -> None:
        self._listener.join(_PATIENCE)

    def _listen(self, read: Callable[[], bytes]) -> None:
        rest = b""
        while data := read():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._heard.put(line)
        self._heard.put(None)

    def raw(self, line: bytes) -> None:
        self._write(line + b"\n")

    def send(self, message: Mapping[str, Any]) -> None:
        whole = {"jsonrpc": "2.0", **message}
        self._said(whole)
        self.raw(json.dumps(whole).encode())

    def ask(self, method: str, params: Message, wanted: Any = None) -> Any:
        """Send a request; its id."""
        if wanted is None:
            self._count += 1
            wanted = self._count
        self.send({"id": wanted, "method": method, "params": params})
        return wanted

    def line(self) -> bytes | None:
        """The next line as it came; None at the end."""
        return self._heard.get(timeout=_PATIENCE)

    def next(self) -> Message:
        """The next message; what is told of filepact's own questions is kept in ``closed``."""
        if self._put_back:
            return self._put_back.pop(0)
        line = self.line()
        assert line is not None, "it has gone"
        message: Message = json.loads(line)
        try:
            self._saw(message)
        except AssertionError as error:
            self.wrong.append(str(error))
        update = message.get("params", {}).get("update", {}) if "method" in message else {}
        if str(update.get("toolCallId")).startswith("filepact-"):
            self.closed.append(update)
            return self.next()
        return message

    def request(self, method: str) -> Message:
        """The next message, which has to be a request of this method."""
        message = self.next()
        assert message.get("method") == method, message
        return message

    def answer_to(self, wanted: Any) -> Message:
        """The answer to a request; what else is heard meanwhile is kept."""
        kept: list[Message] = []
        while True:
            message = self.next()
            if "method" not in message and message.get("id") == wanted:
                self._put_back[:0] = kept
                return message
            kept.append(message)

    def answer(self, request: Message, result: Any) -> None:
        self.send({"id": request["id"], "result": result})

    def refuse(self, request: Message, message: str) -> None:
        self.send({"id": request["id"], "error": {"code": -32603, "message": message}})

    @property
    def quiet(self) -> bool:
        """Whether nothing more has been heard so far."""
        return not self._put_back and self._heard.empty()


class Rig:
    """A proxy process.

    Args:
        folder: For the work folder, the state folder and the socket.
        options: Of the command.
        fs: What the editor says that it can do with files.
        protocol: The version that both sides speak.
        agent: The agent's name.
        program: What Python is to run instead of the command.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        fs: Mapping[str, bool] | None = None,
        protocol: int = 1,
        agent: str = "far",
        checked: bool = True,
        program: Sequence[str] = (),
    ) -> None:
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        self.state = folder / "state"
        self.home = folder / "home"
        self.home.mkdir(exist_ok=True)
        self._address = folder / "s"
        self._options = options
        self._fs = fs
        self._protocol = protocol
        self._name = agent
        self._near, self._far = Talk(), Talk()
        self._program = program
        self._checked = checked and protocol == 1
        self.introduced: Message = {}
        self._shown: dict[str, str] = {}

    def __enter__(self) -> Self:
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        door.bind(str(self._address))
        door.listen()
        door.settimeout(_PATIENCE)
        words = ["acp", "--state", str(self.state), *self._options, "--"]
        agent = [sys.executable, str(_AGENT), str(self._address)]
        environment = {
            **os.environ,
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
        }
        start: Callable[..., subprocess.Popen[bytes]] = Command
        if self._program:
            start, words = subprocess.Popen, [sys.executable, *self._program, *words]
        self.process = start(
            [*words, *agent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.said = bytearray()
        self._errors = threading.Thread(target=self._hear_errors, daemon=True)
        self._errors.start()
        sink, source = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._connection, _ = door.accept()
        door.close()
        self.editor = Peer(
            lambda: os.read(source, 1 << 16),
            lambda data: _write(sink, data),
            lambda message: self._see(self._near, message, "agent"),
            lambda message: self._see(self._near, message, "client"),
        )
        self.agent = Peer(
            self._receive,
            self._connection.sendall,
            lambda message: self._see(self._far, message, "client"),
            lambda message: self._see(self._far, message, "agent"),
        )
        return self

    def _see(self, talk: Talk, message: Message, direction: Any) -> None:
        if self._checked:
            talk.see(message, direction)

    def _receive(self) -> bytes:
        with suppress(OSError):
            return self._connection.recv(1 << 16)
        return b""

    def _hear_errors(self) -> None:
        assert self.process.stderr is not None
        while data := os.read(self.process.stderr.fileno(), 1 << 16):
            self.said += data

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()  # type: ignore[union-attr]
        try:
            self.process.wait(_PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self.editor.join()
            self._errors.join(_PATIENCE)
            for pipe in (self.process.stdout, self.process.stderr):
                pipe.close()  # type: ignore[union-attr]
            self._connection.close()
        wrong = [*self.editor.wrong, *self.agent.wrong]
        assert not wrong, "\n".join(wrong)

    # -- what most tests begin with -------------------------------------------------------

    def introduce(self) -> None:
        """Both sides say who they are."""
        able: Message = {} if self._fs is None else {"fs": dict(self._fs)}
        wanted = self.editor.ask(
            "initialize", {"protocolVersion": self._protocol, "clientCapabilities": able}
        )
        self.introduced = self.agent.request("initialize")
        info = {"name": self._name, "version": "1"}
        self.agent.answer(self.introduced, {"protocolVersion": self._protocol, "agentInfo": info})
        self.editor.answer_to(wanted)

    def open(self, session: str = "s1", cwd: Path | None = None, **more: Any) -> Message:
        """A session in the work folder; the request as the agent gets it."""
        params = {"cwd": str(cwd or self.work), "mcpServers": [], **more}
        wanted = self.editor.ask("session/new", params)
        request = self.agent.request("session/new")
        self.agent.answer(request, {"sessionId": session})
        self.editor.answer_to(wanted)
        return request

    def start(self) -> Message:
        """Introduced, and with a session in which a turn has begun."""
        self.introduce()
        request = self.open()
        self.prompt()
        return request

    def prompt(self, session: str = "s1", words: str = "") -> Message:
        blocks = [{"type": "text", "text": words}] if words else []
        self.editor.ask("session/prompt", {"sessionId": session, "prompt": blocks})
        return self.agent.request("session/prompt")

    # -- what agents ask ------------------------------------------------------------------

    def begin_read(self, name: str | Path, **more: Any) -> Any:
        params = {"sessionId": "s1", "path": str(self.work / name), **more}
        return self.agent.ask("fs/read_text_file", params)

    def begin_write(self, name: str | Path, content: str, **more: Any) -> Any:
        params = {"sessionId": "s1", "path": str(self.work / name), "content": content, **more}
        return self.agent.ask("fs/write_text_file", params)

    def read(self, name: str | Path, **more: Any) -> Message:
        return self.agent.answer_to(self.begin_read(name, **more))

    def write(self, name: str | Path, content: str, **more: Any) -> Message:
        return self.agent.answer_to(self.begin_write(name, content, **more))

    def shows(self, text: str) -> Message:
        """The editor says what it shows of the file that it is asked for, now and from now on."""
        request = self.editor.request("fs/read_text_file")
        self._shown[request["params"]["path"]] = text
        self.editor.answer(request, {"content": text})
        return request

    def told(self) -> Message:
        """The request to the editor to write a new text; it is asked before what it shows."""
        while (request := self.editor.next())["method"] == "fs/read_text_file":
            text = self._shown[request["params"]["path"]]
            self.editor.answer(request, {"content": text})
        assert request["method"] == "fs/write_text_file", request
        return request

    def takes(self) -> Message:
        """The editor takes a new text; what it was told."""
        request = self.told()
        self.editor.answer(request, {})
        params: Message = request["params"]
        self._shown[params["path"]] = params["content"]
        return params

    def command(self, *words: str) -> str:
        """What the command for people says, about the same folder and journal."""
        said = command("--root", str(self.work), "--state", str(self.state), *words)
        assert said.code == 0, said
        return said.out

    def tools(self, request: Message) -> Tools:
        """The server of tools that a session's request names, started as an agent would."""
        (server,) = request["params"]["mcpServers"]
        return Tools([server["command"], *server["args"]])


class Tools:
    """A connection to the injected server of tools."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/", env={}
        )
        info = {"name": "client", "version": "1"}
        self._count = 0
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        try:
            self._answer(self._ask("initialize", params))
        except BaseException:
            self.close()
            raise
        self._send({"method": "notifications/initialized"})

    def begin(self, name: str, **arguments: Any) -> None:
        self._ask("tools/call", {"name": name, "arguments": arguments})

    def end(self) -> tuple[bool, str]:
        """Whether the call that was begun succeeded, and what it says."""
        result = self._answer(self._count)["result"]
        return not result["isError"], result["content"][0]["text"]

    def call(self, name: str, **arguments: Any) -> tuple[bool, str]:
        self.begin(name, **arguments)
        return self.end()

    def close(self) -> int:
        with self.process:
            self.process.stdin.close()  # type: ignore[union-attr]
            return self.process.wait(_PATIENCE)

    def _ask(self, method: str, params: Message) -> int:
        self._count += 1
        self._send({"id": self._count, "method": method, "params": params})
        return self._count

    def _send(self, message: Message) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def _answer(self, wanted: int) -> Message:
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline()
            assert line, "it has gone"
            message: Message = json.loads(line)
            if message.get("id") == wanted:
                return message


def _write(sink: int, data: bytes) -> None:
    while data:
        data = data[os.write(sink, data) :]
