"""The proxy: lines from both sides pass, and what is not to pass goes to the service."""

from __future__ import annotations

import logging
import posixpath
import threading
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

from filepact_acp.proxy.editor_requests import EditorRequests
from filepact_acp.proxy.line import encode, parse
from filepact_acp.proxy.protocol import (
    AgentMessage,
    AgentRequest,
    EditorMessage,
    EditorResponse,
    ProxyProtocol,
)
from filepact_wire.messages import INVALID_REQUEST, error_response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.workspace.workspace import Mode
    from filepact_acp.agents import ConnectionInfo
    from filepact_acp.proxy.line import MessageLine
    from filepact_acp.proxy.protocol import Step
    from filepact_acp.proxy.service import ProxyExecutor
    from filepact_wire.messages import Message

__all__ = ["Proxy", "ProxySide"]

_log = logging.getLogger(__name__)


class ProxySide(Protocol):
    """One of the two between whom a proxy stands."""

    def start(self, receive: Callable[[bytes | None], None], *, ended: Callable[[], None]) -> None:
        """Begin to listen: each line in order, None for one that is too long; then the end."""

    def send(self, line: bytes) -> None:
        """Send a line, after those before it."""

    def close(self) -> None:
        """Send what waits, and nothing afterwards."""


class Proxy:
    """One editor and one agent.

    The service behind it is made while the agent gets ready, so that nobody waits for it.

    Args:
        editor: The one side.
        agent: The other.
        make: Makes the service; called once, in a thread of its own.
        roots: The folders in which sessions may be, by their true names; none for wherever the editor says.
        true_name: Follows the links in the name of a folder.
        tools: Whether agents are offered the tools.
        files: Whether the editor is asked for files, where it offers any.
    """

    def __init__(
        self,
        editor: ProxySide,
        agent: ProxySide,
        make: Callable[
            [Callable[[bytes], None], Callable[[bytes], None], EditorRequests, ConnectionInfo],
            ProxyExecutor,
        ],
        *,
        roots: tuple[str, ...] = (),
        true_name: Callable[[str], str] = str,
        tools: bool = True,
        files: bool = True,
    ) -> None:
        self._editor = editor
        self._agent = agent
        self._roots, self._true_name = roots, true_name
        self._over: SimpleQueue[None] = SimpleQueue()  # which a signal's handler may use too
        self._questions = EditorRequests(editor.send)
        self._traffic = ProxyProtocol(
            server=self._entry if tools else None,
            check=self._check,
            mode=self._mode,
            files=files,
        )
        self._making: Future[ProxyExecutor] = Future()
        self._made: ProxyExecutor | None = None

        def prepare() -> None:
            try:
                self._making.set_result(
                    make(editor.send, agent.send, self._questions, self._traffic.facts)
                )
            except BaseException as error:  # noqa: BLE001 - told to whoever needs the service
                self._making.set_exception(error)
                self.stop()

        self._preparing: threading.Thread | None = threading.Thread(
            target=prepare, name="acp-service", daemon=True
        )
        self._lock = threading.Lock()

    def run(self) -> None:
        """Pass lines until one side ends.

        Raises:
            FilepactError: The service cannot be had, and so nothing may pass.
        """
        self._editor.start(self._receive_from_editor, ended=self.stop)
        self._agent.start(self._receive_from_agent, ended=self.stop)
        self._over.get()
        self._prepare()
        self._questions.end()
        self._making.result()

    def stop(self) -> None:
        """End the proxy; may be called at any moment, in a signal handler too."""
        self._over.put(None)

    def close(self) -> None:
        """Finish what has begun, and forget everything."""
        if self._making.exception() is None:
            self._service.close()

    @property
    def _service(self) -> ProxyExecutor:
        made = self._made
        if made is None:
            self._prepare()
            made = self._made = self._making.result()
        return made

    def _prepare(self) -> None:
        """Begin to make the service, unless that was done."""
        if self._preparing is None:
            return
        with self._lock:
            preparing, self._preparing = self._preparing, None
        if preparing is not None:
            preparing.start()

    def _entry(self, token: str) -> Message:
        return self._service.entry(token)

    def _mode(self, session: str) -> Mode | None:
        return self._service.mode(session)

    # -- lines ----------------------------------------------------------------------------

    def _receive_from_editor(self, raw: bytes | None) -> None:
        if raw is None:
            _log.warning("a message of the editor is too long and was not passed on")
            return
        line = parse(raw, doubt=False)  # what the editor sends is passed on as it came
        self._carry_out(line, self._traffic.from_editor(line), self._editor)
        if self._preparing is not None:
            # Not before the agent has heard the first line, for it would have to wait.
            self._prepare()

    def _receive_from_agent(self, raw: bytes | None) -> None:
        if raw is None:
            _log.warning("a message of the agent is too long and was not passed on")
            told = error_response(None, INVALID_REQUEST, "The message is too long.")
            self._agent.send(encode(told))
            return
        line = parse(raw)
        if line.message is None:
            _log.warning("the agent wrote a line that is no message: %r", raw[:200])
        self._carry_out(line, self._traffic.from_agent(line), self._agent)

    def _carry_out(self, line: MessageLine, steps: Iterator[Step], sender: ProxySide) -> None:
        taken = False
        try:
            for step in steps:
                self._do(step)
                taken = taken or isinstance(step, AgentMessage | EditorMessage | AgentRequest)
        except RecursionError:
            _log.warning("a message is nested too deeply to be looked at")
        except Exception:  # noqa: BLE001 - what goes wrong with one line must not end the others
            _log.exception("a message could not be dealt with")
        else:
            return
        if not taken:
            _refuse(line, sender)

    def _do(self, step: Step) -> None:
        match step:
            case AgentMessage(data):
                self._agent.send(data)
            case EditorMessage(data):
                self._editor.send(data)
            case EditorResponse(name, message):
                self._questions.receive_answer(name, message)
            case _:
                self._service.do(step)

    def _check(self, folders: tuple[str, ...]) -> str:
        """Why a session in these folders is refused."""
        for folder in folders:
            if not _nameable(folder):
                return "The name of a folder holds a zero or half a character."
            true = self._true_name(folder) if self._roots else folder
            if self._roots and not any(_beneath(true, root) for root in self._roots):
                return (
                    f"{folder} lies outside the folders that filepact was started for "
                    f"({', '.join(self._roots)}). Start it with another --root, or open a folder "
                    "inside."
                )
        return self._service.check(folders)


def _nameable(folder: str) -> bool:
    """Whether a file can have this name at all."""
    try:
        return b"\0" not in folder.encode()
    except UnicodeEncodeError:
        return False


def _refuse(line: MessageLine, sender: ProxySide) -> None:
    """Tell who sent a request that nothing becomes of it: it would wait for ever."""
    message = line.message
    if message is None or "id" not in message or not isinstance(message.get("method"), str):
        return
    said = INVALID_REQUEST, "This could not be dealt with."
    try:
        sender.send(encode(error_response(message["id"], *said)))
    except RecursionError:
        sender.send(encode(error_response(None, *said)))


def _beneath(folder: str, root: str) -> bool:
    clean = posixpath.normpath(folder)
    return clean == root or clean.startswith(f"{root.rstrip('/')}/")
