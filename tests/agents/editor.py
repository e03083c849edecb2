"""An editor as agents see it: a client of the protocol that speaks plain lines to a program.

It has files with unsaved text beside those on the disk, answers permission requests by the kind of
their options, can hold a write or a question, and keeps every message.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

__all__ = ["PERMISSION", "READ", "WRITE", "Editor", "EndedError", "Message", "close_pipes"]

_LINE = 64 * 1024 * 1024
READ, WRITE, PERMISSION = "fs/read_text_file", "fs/write_text_file", "session/request_permission"


class EndedError(Exception):
    """The program ended, or did not answer; the message has the last it printed as an error."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message; `sent`: by the editor."""

    sent: bool
    body: dict[str, Any]


@dataclass(slots=True)
class Editor:
    """A client that starts one program.

    Args:
        command: The words that start it.
        environment: All its variables.
        root: The folder of the session.
        fs: Whether reading, and whether writing, is announced and served.
        protocol: The version to ask for.
        unsaved: Text by path that is not on the disk.
        kinds: The permission to give: the first option of the first kind that is offered.
        hold: Which of the agent's requests wait for `release`.
        patience: Seconds to wait for an answer.

    Attributes:
        messages: All, in order.
        held: Set once something is held.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    root: Path
    fs: tuple[bool, bool] = (True, True)
    protocol: int = 1
    unsaved: dict[str, str] = field(default_factory=dict)
    kinds: tuple[str, ...] = ("allow_once", "allow_always")
    hold: Callable[[dict[str, Any]], bool] = lambda _request: False
    patience: float = 90
    messages: list[Message] = field(default_factory=list)
    held: asyncio.Event = field(default_factory=asyncio.Event)
    session: str = ""
    info: dict[str, Any] = field(default_factory=dict)
    _process: asyncio.subprocess.Process | None = None
    _waiting: dict[int, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)
    _kept: list[dict[str, Any]] = field(default_factory=list)
    _idle: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _errors: list[str] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *self.command,
            cwd=self.root,
            env=dict(self.environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE,
            start_new_session=True,
        )
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._drain())]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process = self._running()
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            # Not every agent ends when its input does; what it started is in its group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        close_pipes(process)

    # -- what a person does ---------------------------------------------------------------------

    async def start(self) -> None:
        """Introduce itself and open a session in the root."""
        read, write = self.fs
        able = {"fs": {"readTextFile": read, "writeTextFile": write}} if read or write else {}
        who = {"name": "raw-editor", "version": "1"}
        asked: dict[str, Any] = {"protocolVersion": self.protocol}
        if self.protocol == 1:
            asked |= {"clientCapabilities": able, "clientInfo": who}
        else:
            asked |= {"capabilities": {}, "info": who}
        self.info = await self.request("initialize", asked)
        opened = await self.request("session/new", {"cwd": str(self.root), "mcpServers": []})
        self.session = opened["sessionId"]

    async def prompt(self, text: str) -> str:
        """Let the agent do something; why it stopped."""
        words = [{"type": "text", "text": text}]
        asked = {"sessionId": self.session, "prompt": words}
        done = await self.request("session/prompt", asked)
        if "stopReason" in done:
            return str(done["stopReason"])
        # From version 2 on the answer only says that the prompt was taken.
        return await asyncio.wait_for(self._idle.get(), self.patience)

    async def cancel(self) -> None:
        """Cancel the turn, as an editor must: with its open questions."""
        for asked in [one for one in self._kept if one["method"] == PERMISSION]:
            self._kept.remove(asked)
            self._answer(asked, {"outcome": {"outcome": "cancelled"}})
        self._send({"method": "session/cancel", "params": {"sessionId": self.session}})

    def release(self) -> None:
        """Go on with what is held."""
        kept, self._kept = self._kept, []
        for request in kept:
            self._serve(request)

    async def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask for something and wait; an error is raised with what the program said."""
        number = len(self.messages)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._send({"id": number, "method": method, "params": params})
        try:
            answer = await asyncio.wait_for(waiting, self.patience)
        except TimeoutError:
            raise EndedError(f"no answer to {method}: {self._last_words()}") from None
        finally:
            del self._waiting[number]
        if "error" in answer:
            raise EndedError(f"{method}: {answer['error']}; {self._last_words()}")
        return answer.get("result") or {}

    # -- what was seen --------------------------------------------------------------------------

    def requests(self) -> list[str]:
        """The methods of everything that was asked so far."""
        heard = [one.body for one in self.messages if not one.sent]
        return [body["method"] for body in heard if "method" in body and "id" in body]

    # -- the wire -------------------------------------------------------------------------------

    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise EndedError("the editor was not started")
        return self._process

    def _send(self, body: dict[str, Any]) -> None:
        self.messages.append(Message(True, body))
        stdin = self._running().stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(json.dumps({"jsonrpc": "2.0", **body}).encode() + b"\n")

    def _last_words(self) -> str:
        return "".join(self._errors)[-2000:]

    async def _drain(self) -> None:
        stderr = self._running().stderr
        while stderr is not None and (some := await stderr.read(65536)):
            self._errors.append(some.decode(errors="replace"))
            del self._errors[:-50]

    async def _listen(self) -> None:
        stdout = self._running().stdout
        while stdout is not None and (line := await stdout.readline()):
            try:
                body = json.loads(line)
            except ValueError:
                continue  # agents print other things by mistake
            self.messages.append(Message(False, body))
            if "method" not in body:
                waiting = self._waiting.get(body["id"])
                if waiting is not None and not waiting.done():
                    waiting.set_result(body)
            elif "id" not in body:
                self._notice(body)
            elif self.hold(body):
                self._kept.append(body)
                self.held.set()
            else:
                self._serve(body)
        for one in self._waiting.values():
            if not one.done():
                one.set_exception(EndedError(f"the program ended: {self._last_words()}"))

    def _notice(self, body: dict[str, Any]) -> None:
        update = (body.get("params") or {}).get("update") or {}
        if update.get("sessionUpdate") == "state_update" and update.get("state") == "idle":
            self._idle.put_nowait(str(update.get("stopReason")))

    # -- what an editor serves ------------------------------------------------------------------

    def _answer(self, request: dict[str, Any], result: object) -> None:
        self._send({"id": request["id"], "result": result})

    def _refuse(self, request: dict[str, Any], code: int, text: str, **data: object) -> None:
        self._send({"id": request["id"], "error": {"code": code, "message": text, "data": data}})

    def _serve(self, request: dict[str, Any]) -> None:
        method, params = request["method"], request["params"]
        if method == READ and self.fs[0]:
            self._read(request, params)
        elif method == WRITE and self.fs[1]:
            self._write(params)
            self._answer(request, {})
        elif method == PERMISSION:
            self._answer(request, {"outcome": self._permit(params["options"])})
        else:
            self._refuse(request, -32601, f"{method} is not known here")

    def _read(self, request: dict[str, Any], params: dict[str, Any]) -> None:
        path = params["path"]
        text = self.unsaved.get(path)
        if text is None:
            try:
                text = Path(path).read_bytes().decode()
            except FileNotFoundError:
                self._refuse(request, -32002, "Resource not found", uri=path)
                return
            except (OSError, UnicodeDecodeError) as error:
                self._refuse(request, -32603, type(error).__name__)
                return
        lines = text.split("\n")
        first = max(0, (params.get("line") or 1) - 1)
        limit = params.get("limit")
        last = len(lines) if limit is None else first + limit
        chosen = "\n".join(lines[first:last])
        if chosen and last < len(lines):
            chosen += "\n"
        self._answer(request, {"content": chosen})

    def _write(self, params: dict[str, Any]) -> None:
        """Put a text into a file and, as editors do, save it."""
        path = Path(params["path"])
        if str(path) in self.unsaved:
            self.unsaved[str(path)] = params["content"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(params["content"].encode())

    def _permit(self, options: list[dict[str, Any]]) -> dict[str, str]:
        for kind in self.kinds:
            for option in options:
                if option["kind"] == kind:
                    return {"outcome": "selected", "optionId": option["optionId"]}
        return {"outcome": "cancelled"}


def close_pipes(process: asyncio.subprocess.Process) -> None:
    """Close what is left of an ended process's pipes, while the loop can still do it.

    Something that an agent left behind may hold their other ends.
    """
    process._transport.close()  # type: ignore[attr-defined]
