"""The client's side of one conversation with a language server, and diagnostics with their proof.

A list of diagnostics counts only if it is proven to be about the text that the server was last sent:
it was pulled after that, names the text's version, or came before the answer to a request that the
server answers only when it is done (the probe).  A server that offers none of these has to have been
silent for a while after its last publication.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any, Final

from filepact.lsp.capabilities import ServerCapabilities, initialize_params
from filepact.lsp.diagnostics import (
    Confirmation,
    FileDiagnostics,
    read_diagnostics,
)
from filepact.lsp.failures import (
    RequestFailedError,
    RequestTimeoutError,
    ServerError,
    ServerExitedError,
)
from filepact.lsp.peer import ClientProtocol
from filepact.lsp.process import ServerProcess
from filepact.lsp.spec import PAUSES
from filepact.wire.messages import CONTENT_MODIFIED, METHOD_NOT_FOUND
from filepact.wire.uris import path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence

    from filepact.lsp.diagnostics import ServerState
    from filepact.lsp.documents import Notification, OpenDocument
    from filepact.lsp.forkserver import ProcessOptions
    from filepact.lsp.spec import ServerSpec

__all__ = ["LanguageClient", "ServerLifecycle"]

_START_SECONDS: Final = 45.0
_STEADY_AFTER: Final = 60.0
_STOP_SECONDS: Final = 2.0
_MOST_PUBLISHED: Final = 5_000
_RETRY_SECONDS: Final = 0.02
_LONGEST_RETRY_SECONDS: Final = 0.5
_NO_PULL_AFTER: Final = 5.0
_QUIET_WITHOUT_PROBE: Final = 1.0
_QUIET_BY_ROUND_TRIP: Final = 4.0
"""How many times as long as a server takes to answer at all it has to be quiet: a busy one is slow at both."""

_Items = tuple[Any, Confirmation]


class _Publication:
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


class LanguageClient:
    """A running server, from its start to its end.

    Make one with `start`; every method belongs to the event loop that it was started in.

    Args:
        spec: The server's policy.
        root: The folder that it serves, absolute.
        on_end: Called once, with the reason, when it ends without having been stopped.

    Attributes:
        capabilities: What it can do.
        version: Its version, as it says itself.
        stamp: Rises with everything that is sent and may change what it finds.
    """

    def __init__(self, spec: ServerSpec, root: str, on_end: Callable[[str], None]) -> None:
        self._spec = spec
        self._on_end = on_end
        self._process: ServerProcess | None = None
        self._peer = ClientProtocol(self._write, self._answer, self._take, self._broken)
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._over = ""
        self._initialized = False
        self._heard = asyncio.Event()
        self._published: dict[str, _Publication] = {}
        self._publications = 0
        self._pulled: dict[tuple[str, str | None], tuple[str, Any]] = {}
        self._limits: dict[str, Any] = {}
        self._settled: dict[str, tuple[int, int]] = {}
        self._probing = bool(spec.probe)
        self._sent_after = 0
        self.capabilities = ServerCapabilities(root, spec.settings)
        self.version = ""
        self.stamp = 0

    @classmethod
    async def start(
        cls, launch: ProcessOptions, spec: ServerSpec, on_end: Callable[[str], None], seconds: float
    ) -> LanguageClient:
        """Start a server and initialise it.

        Args:
            launch: How; its folder is the root.
            spec: The server.
            on_end: Called once, with the reason, when it ends without having been stopped.
            seconds: How long it may take to answer for the first time.

        Raises:
            ServerError: It cannot be started, or does not answer as a language server.
        """
        client = cls(spec, launch.folder, on_end)
        client._process = await ServerProcess.start(launch, client._peer.feed, client._broken)
        process = None if launch.sandbox else os.getpid()
        params = initialize_params(launch.folder, process, spec.options, pull=spec.asking == "pull")
        try:
            client._begin(await client._peer.request("initialize", params, seconds))
            client.send([("initialized", {})])
            if spec.settings:
                client.send([("workspace/didChangeConfiguration", {"settings": spec.settings})])
            client._began = client._loop.time()
            client._initialized = True
        except BaseException as error:
            await client.kill()
            stderr = client._process.stderr.strip()
            if isinstance(error, ServerExitedError) and stderr:
                raise ServerExitedError(f"{error}: {stderr[-300:]}") from error
            raise
        return client

    @property
    def pid(self) -> int:
        """The server's process; 0 when there is none."""
        return 0 if self._process is None else self._process.pid

    @property
    def end_reason(self) -> str:
        """Why the conversation is over; empty while it goes on."""
        return self._over

    @property
    def message_count(self) -> int:
        """The number of messages received from the server."""
        return self._peer.message_count

    async def cpu_ticks(self, seconds: float) -> int:
        """Clock ticks for which the server has worked; -1 if it does, or that is not known."""
        return -1 if self._process is None else await self._process.cpu_ticks(seconds)

    def send(self, notifications: Iterable[Notification]) -> None:
        """Send notifications, in order.

        Raises:
            ServerExitedError: The server is gone.
        """
        self.stamp += 1
        self._sent_after = self._publications
        for method, params in notifications:
            self._peer.notify(method, params)

    async def stop(self) -> None:
        """Ask the server to end, and end it."""
        if self._process is None:
            return
        try:
            if not self._over:
                await self._peer.request("shutdown", None, _STOP_SECONDS)
                self._peer.notify("exit", None)
        except ServerError:
            pass  # it ends all the same
        self._close("the server was stopped")
        await self._process.stop(_STOP_SECONDS)

    async def kill(self) -> None:
        """End the server without asking."""
        self._close("the server was stopped")
        if self._process is not None:
            await self._process.kill()

    # -- diagnostics of a document --------------------------------------------------------

    async def diagnostics(self, document: OpenDocument, deadline: float) -> FileDiagnostics:
        """The diagnostics of an open document; not fresh if that cannot be proven in time.

        Args:
            document: As the server was last sent it.
            deadline: The loop's time until which to wait.
        """
        began, stamp, spec = self._loop.time(), self.stamp, self._spec
        items: Any = None
        confirmed_by: Confirmation = "none"
        try:
            items, confirmed_by = await self.items(document, deadline)
            reason = "" if stamp == self.stamp else "the text changed while the server was asked"
        except ServerError as error:
            reason = str(error)
        seconds = self._loop.time() - began
        if reason:
            return FileDiagnostics(spec.name, document.path, reason=reason, seconds=seconds)
        found, whole = read_diagnostics(
            document.path, document.text, items, self.capabilities.unit, spec.name, spec.endings
        )
        told = FileDiagnostics(spec.name, document.path, found, confirmed_by, "", whole, seconds)
        return told.limited(self._limits.get(document.path))

    async def items(self, document: OpenDocument, deadline: float) -> _Items:
        """The same, as the server says it; a ServerError if it cannot be proven."""
        if self._spec.asking == "pull":
            while not self.capabilities.pull_identifiers and not self._over:
                # Some servers register it only seconds after their start.
                rest = min(deadline, self._began + _NO_PULL_AFTER) - self._loop.time()
                if rest <= 0:
                    break
                await self._next_message(rest)
            if self.capabilities.pull_identifiers:
                return await self._pull(document, deadline)
        if self._probing:
            answer = await self._probe(document, deadline)
            if answer is not None:
                return answer
        return await self._await_publication(document, deadline)

    async def _pull(self, document: OpenDocument, deadline: float) -> _Items:
        items: list[Any] = []
        for identifier in self.capabilities.pull_identifiers:
            found = await self._pull_one(document, identifier, deadline)
            if not isinstance(found, list):
                raise ServerError("the server's answer is not a list of diagnostics")
            items += found
        return items, "pull"

    async def _pull_one(
        self, document: OpenDocument, identifier: str | None, deadline: float
    ) -> Any:
        named = {} if identifier is None else {"identifier": identifier}
        params: dict[str, Any] = {"textDocument": {"uri": document.uri}, **named}
        key = (document.path, identifier)
        before = self._pulled.get(key)
        if before is not None:
            params["previousResultId"] = before[0]
        answer = await self.request("textDocument/diagnostic", params, deadline)
        kind = answer.get("kind") if isinstance(answer, dict) else None
        if kind == "unchanged" and before is not None:
            return before[1]
        if kind != "full":
            raise ServerError("the server's answer does not contain diagnostics")
        number = answer.get("resultId")
        self._pulled.pop(key, None)
        self._limits[document.path] = answer.get("filepact")
        if isinstance(number, str):
            self._pulled[key] = (number, answer.get("items"))
        return answer.get("items")

    async def _probe(self, document: OpenDocument, deadline: float) -> _Items | None:
        """Wait until the server has done everything; None if it does not know the request."""
        try:
            await self._request(self._spec.probe, None, deadline)
        except RequestFailedError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            self._probing = False
            return None
        last = self._published.get(document.path)
        if last is None:
            raise ServerError("the server has published nothing about the file")
        return last.items, "version" if last.version == document.version else "probe"

    async def _await_publication(self, document: OpenDocument, deadline: float) -> _Items:
        """Wait for a publication about this version, or for silence after one."""
        quiet = self._spec.quiet or (_QUIET_WITHOUT_PROBE if self._spec.probe else 0.0)
        heard_from = self._began
        if quiet and self._settled.get(document.path) != (document.version, self.stamp):
            sent = self._loop.time()
            heard_from = await self._round_trip(document, deadline)
            quiet = max(quiet, _QUIET_BY_ROUND_TRIP * (heard_from - sent))
        while True:
            if self._over:
                raise ServerError(self._over)
            last = self._published.get(document.path)
            now = self._loop.time()
            wait = deadline - now
            if last is not None and last.version in (None, document.version):
                proven = self._settled.get(document.path) == (document.version, self.stamp)
                named = last.version is not None and not quiet and last.number > self._sent_after
                rest = max(last.at, heard_from) + quiet - now
                if proven or named or (quiet and rest <= 0):
                    self._settled[document.path] = (document.version, self.stamp)
                    return last.items, "quiet window" if quiet else "version"
                if quiet:
                    wait = min(wait, rest)
            if now >= deadline:
                raise RequestTimeoutError(
                    "the server has published nothing that is certainly about the present text"
                )
            await self._next_message(max(wait, 0.001))

    async def _round_trip(self, document: OpenDocument, deadline: float) -> float:
        """The time when the server has certainly read all that was sent."""
        if self.capabilities.static.get("documentSymbolProvider"):
            params = {"textDocument": {"uri": document.uri}}
            with contextlib.suppress(RequestFailedError):  # a refusal is an answer all the same
                await self._request("textDocument/documentSymbol", params, deadline)
        return self._loop.time()

    async def _request(self, method: str, params: Any, deadline: float) -> Any:
        rest = deadline - self._loop.time()
        if rest <= 0:
            raise RequestTimeoutError(f"no time left for {method}")
        return await self._peer.request(method, params, rest)

    # -- other questions ------------------------------------------------------------------

    async def request(self, method: str, params: Any, deadline: float) -> Any:
        """The answer to a request that changes nothing; one that is put off is sent again.

        Args:
            method: The protocol's name.
            params: What it takes.
            deadline: The loop's time until which to wait.

        Raises:
            ServerError: There is no answer.
        """
        pause = _RETRY_SECONDS
        while True:
            try:
                return await self._request(method, params, deadline)
            except RequestFailedError as error:
                if not error.retry and error.code != CONTENT_MODIFIED:
                    raise
                if self._loop.time() + pause >= deadline:
                    raise RequestTimeoutError("the server keeps postponing its answer") from error
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_RETRY_SECONDS)

    async def execute(self, command: str, arguments: Sequence[Any], deadline: float) -> Any:
        """The answer to one of the server's commands; otherwise as `request`."""
        params = {"command": command, "arguments": list(arguments)}
        return await self._request("workspace/executeCommand", params, deadline)

    # -- what the server says -------------------------------------------------------------

    def _begin(self, result: Any) -> None:
        capabilities = result.get("capabilities") if isinstance(result, dict) else None
        if not isinstance(capabilities, dict):
            raise ServerError("the server's first answer says nothing about what it can do")
        self.capabilities.static = capabilities
        about = result.get("serverInfo")
        if isinstance(about, dict):
            version = str(about.get("version", ""))
            # One server tells all that it was built from instead.
            self.version = "" if version.startswith("{") else version[:100]

    def _write(self, data: bytes) -> None:
        if self._process is None:
            raise ServerExitedError("the server is not started")
        self._process.write(data)

    def _answer(self, method: str, params: Any) -> Any:
        answer = self.capabilities.answer(method, params)
        self._heard.set()
        return answer

    def _take(self, method: str, params: Any) -> None:
        match method:
            case "textDocument/publishDiagnostics":
                self._publish(params)
            case "$/progress" | "window/showMessage" | "window/logMessage":
                pass  # a sign of life all the same
            case _:
                return
        self._heard.set()

    def _publish(self, params: Any) -> None:
        path, version = path_of(params["uri"]), params.get("version")
        if path is None:
            return
        self._publications += 1
        number = version if isinstance(version, int) else None
        # Removed first, so that the oldest stand in front when there are too many.
        self._published.pop(path, None)
        self._published[path] = _Publication(
            number, params["diagnostics"], self._loop.time(), self._publications
        )
        if len(self._published) > _MOST_PUBLISHED:
            del self._published[next(iter(self._published))]

    async def _next_message(self, seconds: float) -> None:
        """Wait until the server says anything, at most so long."""
        self._heard.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._heard.wait(), seconds)

    def _broken(self, reason: str) -> None:
        if self._over:
            return
        self._close(reason)
        if self._initialized:  # else `start` raises it
            self._on_end(reason)

    def _close(self, reason: str) -> None:
        self._over = self._over or reason
        self._peer.close(reason)
        self._heard.set()


class ServerLifecycle:
    """Starts one server on one root, and again, after a pause, when it has ended.

    Args:
        spec: The server.
        launch: How it is started; the folder is the root.
        on_start: Called with each new client, before anybody else gets it.
        pauses: Seconds before new starts.

    Attributes:
        client: The running server; None when there is none.
        starts: How often it was started.
        began: The loop's time of the last start.
        started_in: Seconds that the last start took.
        message: Why it last ended.
    """

    def __init__(
        self,
        spec: ServerSpec,
        launch: ProcessOptions,
        on_start: Callable[[LanguageClient], None],
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self._spec = spec
        self._launch = launch
        self._on_start = on_start
        self._pauses = tuple(pauses)
        self._loop = asyncio.get_running_loop()
        self._starting: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._ends = 0
        self._not_before = 0.0
        self.client: LanguageClient | None = None
        self.starts = 0
        self.began = 0.0
        self.started_in = 0.0
        self.message = ""

    @property
    def state(self) -> ServerState:
        """The present state of the server."""
        if self.client is not None and not self.client.end_reason:
            return "ready"
        if self._starting is not None and not self._starting.done():
            return "starting"
        if self._ends > len(self._pauses):
            return "broken"
        return "waiting" if self._loop.time() < self._not_before else "stopped"

    async def ready(self, deadline: float) -> LanguageClient:
        """The running server, which is started if it does not run.

        Args:
            deadline: The loop's time until which to wait.

        Raises:
            ServerError: It is not there by then; its start goes on.
        """
        while True:
            if self.client is not None and not self.client.end_reason:
                return self.client
            state = self.state
            if state == "broken" or (state == "waiting" and self._not_before >= deadline):
                raise ServerExitedError(self.message)
            if state == "waiting":
                await asyncio.sleep(self._not_before - self._loop.time())
                continue
            if self._starting is None or self._starting.done():
                self._starting = asyncio.create_task(self._start())
            rest = max(deadline - self._loop.time(), 0)
            await asyncio.wait({self._starting}, timeout=rest)
            if not self._starting.done():
                raise RequestTimeoutError("the server is still starting")

    def wake(self) -> None:
        """Start the server if it does not run; nobody waits for it."""
        if self.state == "stopped":
            self._starting = asyncio.create_task(self._start())

    def give_up(self, reason: str) -> None:
        """The server has ended, or is as good as gone; it is started again after a pause."""
        steady = self._loop.time() - self.began > _STEADY_AFTER
        self._ends = 1 if steady else self._ends + 1
        if self._ends <= len(self._pauses):
            self._not_before = self._loop.time() + self._pauses[self._ends - 1]
        self.message = reason
        client, self.client = self.client, None
        if client is not None:
            self._end_in_background(client.kill())

    async def stop(self) -> None:
        """End the server; it is started again when it is next needed."""
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
        client, self.client = self.client, None
        if client is not None:
            await client.stop()
        # The caller may be one of these tasks.
        others = [task for task in self._ending if task is not asyncio.current_task()]
        await asyncio.gather(*others, return_exceptions=True)

    def _end_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _start(self) -> None:
        self.began = self._loop.time()
        self.starts += 1
        try:
            client = await LanguageClient.start(
                self._launch, self._spec, self.give_up, _START_SECONDS
            )
        except ServerError as error:
            self.give_up(str(error))
            return
        self.started_in = self._loop.time() - self.began
        self._on_start(client)
        self.client = client
