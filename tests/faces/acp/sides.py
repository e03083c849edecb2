"""One editor with its own mind, behind the proxy, before an agent's files, and over a client's.

The editor writes what it is given as UTF-8, reloads nothing by itself, and does what a test's
hooks say.  An agent reads and writes through whichever of the three is meant.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acp import RequestError
from acp.schema import ReadTextFileResponse, WriteTextFileResponse

from filepact.acp import ClientFileSystem
from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError
from tests.faces.acp.agent_and_client import Editor, talking
from tests.faces.acp.proxy.rig import Rig

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from filepact.domain.operation import Operation
    from tests.faces.acp.proxy.rig import Tools

__all__ = ["SILENT", "AgentSide", "ClientSide", "ProxySide", "Refused", "Screen", "Side"]

PATIENCE = 1.5
SILENT = object()
"""What a hook answers for no answer at all."""


class Refused(Exception):  # noqa: N818 - it is an answer
    """An editor's refusal, or the one that an agent gets."""

    def __init__(self, message: str, kind: str = "", data: Any = None) -> None:
        super().__init__(message)
        self.message, self.kind, self.data = message, kind, data


class Screen:
    """An editor's windows.

    Attributes:
        texts: What it shows, by path; other files it reads from the disk.
        on_read: Done before a read; may refuse, or answer.
        on_answer: Done once it is known what a read is answered, and before that is sent.
        on_write: Done before a write; may refuse.
        on_ask: Done while the person looks at a question of filepact's.
    """

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.on_read: Callable[[str], Any] = lambda _path: None
        self.on_answer: Callable[[str], Any] = lambda _path: None
        self.on_write: Callable[[str], Any] = lambda _path: None
        self.on_ask: Callable[[], Any] = lambda: None

    def read(self, path: str) -> Any:
        answer = self._read(path)
        self.on_answer(path)
        return answer

    def _read(self, path: str) -> Any:
        answer = self.on_read(path)
        if answer is not None:
            return answer
        if path in self.texts:
            return self.texts[path]
        try:
            return Path(path).read_bytes().decode()
        except FileNotFoundError:
            raise Refused("Resource not found", "not_found") from None
        except UnicodeDecodeError as error:
            raise Refused(str(error)) from None

    def write(self, path: str, text: str) -> None:
        self.on_write(path)
        if path in self.texts:
            self.texts[path] = text
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(text.encode())


class Side:
    """What an agent has of one session with the folder ``work``."""

    def __init__(self, folder: Path) -> None:
        self.screen = Screen()
        self.work = folder / "work"
        self.state = folder / "state"
        self.work.mkdir(exist_ok=True)

    def show(self, name: str, text: str) -> None:
        """The editor shows a file, in which somebody may have typed."""
        self.screen.texts[str(self.work / name)] = text

    def shown(self, name: str) -> str:
        return self.screen.texts[str(self.work / name)]

    def type(self, name: str, old: str, new: str) -> None:
        self.show(name, self.shown(name).replace(old, new))

    def disk(self, name: str) -> bytes:
        return (self.work / name).read_bytes()

    def undo(self, change: str | None = None) -> None:
        """Somebody takes a change back, the newest if none is named, in another program."""
        with open_workspace([str(self.work)], state_dir=str(self.state)) as workspace:
            workspace.undo(Session("person", Actor("person", "tester")), change, dry_run=False)

    def undo_all(self, name: str) -> None:
        """The same with all changes of a file, the newest first."""
        for done in self.operations():
            if any(path.path == name for path in done.changes.paths):
                self.undo(done.id)

    def operations(self) -> tuple[Operation, ...]:
        """What was done, the newest first."""
        with open_workspace([str(self.work)], state_dir=str(self.state)) as workspace:
            return workspace.log()

    def log(self) -> list[tuple[str, str]]:
        """Who did what, the newest first."""
        return [(one.session.actor.name, one.tool) for one in self.operations()]

    def read(self, name: str) -> str:
        raise NotImplementedError

    def write(self, name: str, text: str) -> None:
        raise NotImplementedError

    def tool(self, name: str, arguments: dict[str, Any]) -> str:
        """What one of our own tools answers, where the agent is given them."""
        del name, arguments
        return ""


class ProxySide(Side):
    """An agent behind `filepact acp`, whose editor answers each request in a thread of its own.

    Args:
        watched: The name of an agent of which it is looked for what it writes past the doors.
        in_order: Whether it answers one after the other instead.
    """

    def __init__(
        self,
        folder: Path,
        *,
        mode: str = "auto",
        write: bool = True,
        watched: str = "",
        in_order: bool = False,
    ) -> None:
        super().__init__(folder)
        fs = {"readTextFile": True, "writeTextFile": write}
        options = [
            "--mode",
            mode,
            "--patience",
            str(PATIENCE),
            *([] if watched else ["--no-watch"]),
        ]
        self.rig = Rig(folder, *options, fs=fs, agent=watched or "far")
        self._in_order = in_order
        self._answering: list[threading.Thread] = []
        self._tools: Tools | None = None

    def __enter__(self) -> Self:
        self.rig.__enter__()
        self.request = self.rig.start()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._tools is not None:
            self._tools.close()
        for answering in tuple(self._answering):
            answering.join(30)
        self.rig.__exit__(*problem)
        self._thread.join(30)

    def _listen(self) -> None:
        with suppress(AssertionError):  # it has gone
            while True:
                with suppress(queue.Empty):
                    message = self.rig.editor.next()
                    if "id" in message and "method" in message:
                        answering = threading.Thread(target=self._answer, args=(message,))
                        self._answering.append(answering)
                        answering.start()
                        if self._in_order:
                            answering.join()

    def _answer(self, message: dict[str, Any]) -> None:
        params = message["params"]
        try:
            match message["method"]:
                case "fs/read_text_file":
                    text = self.screen.read(params["path"])
                    result: Any = {"content": text}
                    if text is SILENT:
                        return
                case "fs/write_text_file":
                    self.screen.write(params["path"], params["content"])
                    result = {}
                case _:
                    self.screen.on_ask()
                    chosen = {"outcome": "selected", "optionId": "filepact-allow"}
                    result = {"outcome": chosen}
        except Refused as refused:
            error = {"code": -32603, "message": refused.message}
            if refused.kind == "not_found":
                error = {"code": -32002, "message": refused.message}
            if refused.data is not None:
                error["data"] = refused.data
            self.rig.editor.send({"id": message["id"], "error": error})
        else:
            self.rig.editor.answer(message, result)

    def learnt(self) -> None:
        """Wait until all files are known with what they hold; some are changed for that."""
        files = [self.work / f"z{number}.txt" for number in range(50)]
        for number, file in enumerate(files, 1):
            file.write_text("changed\n")
            self.acted()
            while len(done := self.operations()) < number:
                threading.Event().wait(0.02)
            # What comes last by name is read last.
            if all(change.before.was_read for change in done[0].changes.changes):
                return
        raise AssertionError(done)

    def acted(self) -> None:
        """The agent has ended a step of its turn."""
        update = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}
        params = {"sessionId": "s1", "update": update}
        self.rig.agent.send({"method": "session/update", "params": params})

    def read(self, name: str) -> str:
        text: str = _result(self.rig.read(name))["content"]
        return text

    def write(self, name: str, text: str) -> None:
        _result(self.rig.write(name, text))

    def tool(self, name: str, arguments: dict[str, Any]) -> str:
        if self._tools is None:
            self._tools = self.rig.tools(self.request)
        return repr(self._tools.call(name, **arguments))


def _result(answer: dict[str, Any]) -> Any:
    if "error" in answer:
        error = answer["error"]
        raise Refused(error["message"], error["data"]["errorKind"], error["data"])
    return answer["result"]


class _Loop:
    """An event loop in a thread, for sides that are asynchronous."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, awaitable: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(awaitable, self._loop).result(30)

    def close(self) -> None:
        self.run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_default_executor()


class _Windows(Editor):
    """The editor as a client of the protocol's package."""

    def __init__(self, screen: Screen, *, in_order: bool) -> None:
        super().__init__()
        self._screen = screen
        self._in_order = in_order

    async def _do(self, work: Callable[..., Any], *arguments: str) -> Any:
        return work(*arguments) if self._in_order else await asyncio.to_thread(work, *arguments)

    async def read_text_file(self, session_id, path, line=None, limit=None, **_):  # noqa: ARG002
        try:
            text = await self._do(self._screen.read, path)
        except Refused as refused:
            raise RequestError(*_error(refused)) from None
        if text is SILENT:
            await asyncio.Event().wait()
        return ReadTextFileResponse(content=text)

    async def write_text_file(self, session_id, path, content, **_):  # noqa: ARG002
        try:
            await self._do(self._screen.write, path, content)
        except Refused as refused:
            raise RequestError(*_error(refused)) from None
        return WriteTextFileResponse()

    async def request_permission(self, session_id, tool_call, options, **_):  # noqa: ARG002
        await asyncio.to_thread(self._screen.on_ask)
        return {"outcome": {"outcome": "selected", "optionId": "filepact-allow"}}


def _error(refused: Refused) -> tuple[int, str, Any]:
    return (-32002 if refused.kind == "not_found" else -32603, refused.message, refused.data)


class AgentSide(Side):
    """An agent with `AgentFiles`, connected to the editor."""

    def __init__(
        self, folder: Path, *, mode: str = "auto", write: bool = True, in_order: bool = False
    ) -> None:
        super().__init__(folder)
        windows = _Windows(self.screen, in_order=in_order)
        options = {"mode": mode, "patience": PATIENCE}
        self._talking = talking(folder, write=write, client_files=windows, **options)

    def __enter__(self) -> Self:
        self._loop = _Loop()
        _, self._files = self._loop.run(self._talking.__aenter__())
        return self

    def __exit__(self, *_problem: object) -> None:
        self._loop.run(self._talking.__aexit__(None, None, None))
        self._loop.close()

    def read(self, name: str) -> str:
        return self._asked(self._files.read(str(self.work / name)))

    def write(self, name: str, text: str) -> None:
        self._asked(self._files.write(str(self.work / name), text))

    def tool(self, name: str, arguments: dict[str, Any]) -> str:
        outcome = self._loop.run(self._files.call(name, arguments))
        return f"{outcome.text} {outcome.receipt} {outcome.data!r}"

    def take_back(self) -> None:
        """The agent undoes its newest change."""
        self._loop.run(self._files.undo())

    def _asked(self, awaitable: Any) -> Any:
        try:
            return self._loop.run(awaitable)
        except FilepactError as error:
            raise Refused(error.message, _KINDS.get(error.code, error.code.lower())) from None


_KINDS = {"STALE_FILE": "stale", "READ_ERROR": "editor_refused", "WRITE_ERROR": "editor_refused"}


class ClientSide(Side):
    """A client with `ClientFileSystem`, whose editor tells it what it shows."""

    def __init__(self, folder: Path, *, mode: str = "auto") -> None:
        super().__init__(folder)

        async def ask(_question: Any) -> bool:
            await asyncio.to_thread(self.screen.on_ask)
            return True

        self._files = partial(
            ClientFileSystem,
            state_dir=str(self.state),
            mode=mode,
            ask=ask,
            on_delivery=self._deliver,
        )
        self._versions = 0

    def __enter__(self) -> Self:
        self._loop = _Loop()
        self._loop.run(self._open())
        return self

    async def _open(self) -> None:
        self.files = self._files()
        await self.files.session_started("s1", str(self.work))

    def __exit__(self, *_problem: object) -> None:
        self.files.close()
        self._loop.close()

    def show(self, name: str, text: str) -> None:
        super().show(name, text)
        self._versions += 1
        path = str(self.work / name)
        if self._versions == 1:
            self.files.buffers.open(path, text, self._versions)
        else:
            self.files.buffers.change(path, text, self._versions)

    async def _deliver(self, delivery: Any) -> bool:
        self._versions = delivery.version + 1
        self.screen.texts[delivery.path.absolute] = delivery.text
        return True

    def read(self, name: str) -> str:
        asked = self.files.read_text_file("s1", str(self.work / name))
        return self._asked(asked).content

    def write(self, name: str, text: str) -> None:
        self._asked(self.files.write_text_file("s1", str(self.work / name), text))

    def _asked(self, awaitable: Any) -> Any:
        try:
            return self._loop.run(awaitable)
        except RequestError as error:
            raise Refused(str(error), error.data["errorKind"], error.data) from None
