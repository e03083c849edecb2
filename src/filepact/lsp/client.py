"""One conversation with one language server, from its start to its end."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final

from filepact.lsp.answers import Answers
from filepact.lsp.documents import SyncKind
from filepact.lsp.failures import GoneError, ServerError
from filepact.lsp.offer import initialize_params
from filepact.lsp.process import ServerProcess
from filepact.lsp.rpc import Peer
from filepact.wire.uris import path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from filepact.lsp.documents import Notification
    from filepact.lsp.launch import Launch
    from filepact.text.position import Unit

__all__ = ["Client", "Publication"]

_STOP_SECONDS: Final = 2.0


class Publication:
    """The last list of diagnostics that a server published about a file.

    Attributes:
        version: Of the text that it is about; None if the server did not say.
        items: The diagnostics as they came.
        at: The loop's time when it came.
        number: Which of all publications it is.
    """

    __slots__ = ("at", "items", "number", "version")

    def __init__(self, version: int | None, items: Any, at: float, number: int) -> None:
        self.version = version
        self.items = items
        self.at = at
        self.number = number


class Client:
    """A started server and what it has said so far.

    Make one with `start`; every method belongs to the event loop that it was started in.

    Args:
        root: The folder that it serves, absolute.
        settings: What it is answered when it asks for its configuration.
        on_end: Called once with the reason when it ends without having been stopped.
    """

    def __init__(
        self, root: str, settings: Mapping[str, Any], on_end: Callable[[str], None]
    ) -> None:
        self._root = root
        self._settings = settings
        self._on_end = on_end
        self._process: ServerProcess | None = None
        self._over = ""
        self._begun = False
        self._stirred = asyncio.Event()
        self._published: dict[str, Publication] = {}
        self.answers = Answers(root, settings)
        self.peer = Peer(self._write, self._answer, self._take, self._broken)
        self.capabilities: Mapping[str, Any] = {}
        self.version = ""
        self.unit: Unit = "utf-16"
        self.publications = 0
        self.partial: dict[str, list[Any]] = {}
        """Parts of answers that come one by one, by the token that was sent along."""

    @classmethod
    async def start(
        cls,
        launch: Launch,
        settings: Mapping[str, Any],
        options: Mapping[str, Any] | None,
        on_end: Callable[[str], None],
        seconds: float,
        *,
        pull: bool,
    ) -> Client:
        """Start a server and exchange the first messages with it.

        Args:
            launch: What to start; its folder is the root.
            settings: What it is answered when it asks for its configuration.
            options: Its initialisation options.
            on_end: Called once with the reason when it ends without having been stopped.
            seconds: How long it may take to answer for the first time.
            pull: Whether to say that we ask for diagnostics.

        Raises:
            ServerError: It cannot be started, or does not answer as a language server.
        """
        client = cls(launch.folder, settings, on_end)
        client._process = await ServerProcess.start(launch, client.peer.feed, client._broken)
        params = initialize_params(launch.folder, os.getpid(), options, pull=pull)
        try:
            result = await client.peer.request("initialize", params, seconds)
            client._begin(result)
            client.send([("initialized", {})])
            if settings:
                client.send([("workspace/didChangeConfiguration", {"settings": settings})])
            client._begun = True
        except BaseException as error:
            await client.kill()
            if isinstance(error, GoneError) and client.complaints:
                raise GoneError(f"{error}: {client.complaints.strip()[-300:]}") from error
            raise
        return client

    @property
    def pid(self) -> int:
        """The server's process; 0 when there is none."""
        return 0 if self._process is None else self._process.pid

    @property
    def over(self) -> str:
        """Why the conversation is over; empty while it goes on."""
        return self._over

    @property
    def complaints(self) -> str:
        """The end of what the server wrote to its standard error."""
        return "" if self._process is None else self._process.complaints

    @property
    def sync(self) -> SyncKind:
        """What the server wants to be told about open documents."""
        said = self.capabilities.get("textDocumentSync")
        dynamic_save = self.answers.registered("textDocument/didSave")
        with_text = any(one.options.get("includeText") for one in dynamic_save)
        if isinstance(said, int) and not isinstance(said, bool):
            return SyncKind(bool(said), said, bool(said), with_text)
        if not isinstance(said, dict):
            changes = self.answers.registered("textDocument/didChange")
            kinds = [one.options.get("syncKind", 1) for one in changes]
            return SyncKind(True, max(kinds, default=1), bool(dynamic_save), with_text)
        save, change = said.get("save"), said.get("change", 0)
        if isinstance(save, dict):
            with_text = with_text or bool(save.get("includeText"))
        return SyncKind(
            bool(said.get("openClose", False)),
            change if change in (0, 1, 2) else 1,
            bool(save) or isinstance(save, dict) or bool(dynamic_save),
            with_text,
        )

    @property
    def pull_identifiers(self) -> tuple[str | None, ...]:
        """The names under which diagnostics can be asked for; none if they cannot."""
        found: dict[str | None, None] = {}
        static = self.capabilities.get("diagnosticProvider")
        if isinstance(static, dict):
            found[static.get("identifier")] = None
        for one in self.answers.registered("textDocument/diagnostic"):
            found[one.options.get("identifier")] = None
        return tuple(found)

    @property
    def surveys(self) -> bool:
        """Whether it can be asked about the whole project."""
        options = [self.capabilities.get("diagnosticProvider")]
        options += [one.options for one in self.answers.registered("textDocument/diagnostic")]
        return any(one.get("workspaceDiagnostics") for one in options if isinstance(one, dict))

    @property
    def file_operations(self) -> Mapping[str, Any]:
        """What the server asked to be told of files made, removed and renamed."""
        workspace = self.capabilities.get("workspace")
        operations = workspace.get("fileOperations") if isinstance(workspace, dict) else None
        return operations if isinstance(operations, dict) else {}

    def published(self, path: str) -> Publication | None:
        """The last that was published about a file."""
        return self._published.get(path)

    def send(self, notifications: Iterable[Notification]) -> None:
        """Send notifications, in order.

        Raises:
            GoneError: The server is gone.
        """
        for method, params in notifications:
            self.peer.notify(method, params)

    async def stirring(self, seconds: float) -> bool:
        """Wait until the server has said anything; False if it did not within the time."""
        self._stirred.clear()
        try:
            await asyncio.wait_for(self._stirred.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def stop(self) -> None:
        """Ask the server to end, and end it."""
        if self._process is None:
            return
        try:
            if not self._over:
                await self.peer.request("shutdown", None, _STOP_SECONDS)
                self.peer.notify("exit", None)
        except ServerError:
            pass  # it ends all the same
        self._close("the server was stopped")
        await self._process.stop(_STOP_SECONDS)

    async def kill(self) -> None:
        """End the server without asking."""
        self._close("the server was stopped")
        if self._process is not None:
            await self._process.kill()

    def _begin(self, result: Any) -> None:
        capabilities = result.get("capabilities") if isinstance(result, dict) else None
        if not isinstance(capabilities, dict):
            raise ServerError("the server's first answer says nothing about what it can do")
        self.capabilities = capabilities
        if capabilities.get("positionEncoding") == "utf-8":
            self.unit = "utf-8"
        about = result.get("serverInfo")
        if isinstance(about, dict):
            version = str(about.get("version", ""))
            # One server tells all that it was built from instead.
            self.version = "" if version.startswith("{") else version[:100]

    def _write(self, data: bytes) -> None:
        if self._process is None:
            raise GoneError("the server is not started")
        self._process.write(data)

    def _answer(self, method: str, params: Any) -> Any:
        answer = self.answers.answer(method, params)
        self._stirred.set()
        return answer

    def _take(self, method: str, params: Any) -> None:
        match method:
            case "textDocument/publishDiagnostics":
                self._publish(params)
            case "$/progress" if params["token"] in self.partial:
                self.partial[params["token"]].append(params["value"])
            case "$/progress":
                self.answers.progress(params)
            case "window/showMessage" | "window/logMessage":
                self.answers.say(params)
            case _:
                return
        self._stirred.set()

    def _publish(self, params: Any) -> None:
        path, version = path_of(params["uri"]), params.get("version")
        if path is None:
            return
        self.publications += 1
        now = asyncio.get_running_loop().time()
        number = version if isinstance(version, int) else None
        # Removed first, so that the oldest stand in front when there are too many.
        self._published.pop(path, None)
        self._published[path] = Publication(number, params["diagnostics"], now, self.publications)
        if len(self._published) > _MOST_PUBLISHED:
            del self._published[next(iter(self._published))]

    def _broken(self, reason: str) -> None:
        if self._over:
            return
        self._close(reason)
        if self._begun:  # else whoever starts it learns of it there
            self._on_end(reason)

    def _close(self, reason: str) -> None:
        self._over = self._over or reason
        self.peer.close(reason)
        self._stirred.set()


_MOST_PUBLISHED: Final = 5_000
