"""The client's side of one conversation with a language server, and diagnostics with their proof.

A list of diagnostics counts only if it is proven to be about the text that the server was last sent:
it was pulled after that, names the text's version, came before the answer to a request that the
server answers only when it is done (the probe), or from a server that publishes for each text in
turn, once it had read the last.  Silence proves nothing: what a server that offers none of these
published last is told as that.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any, Final

from filepact_diagnostics.lsp.capabilities import ServerCapabilities, initialize_params
from filepact_diagnostics.lsp.diagnostics import (
    Confirmation,
    DiagnosticsLists,
    FileDiagnostics,
    is_proof,
    read_diagnostics,
    read_tsserver,
)
from filepact_diagnostics.lsp.failures import (
    RequestFailedError,
    RequestTimeoutError,
    ServerError,
    ServerExitedError,
)
from filepact_diagnostics.lsp.peer import ClientProtocol
from filepact_diagnostics.lsp.process import ServerProcess
from filepact_wire.messages import CONTENT_MODIFIED, METHOD_NOT_FOUND
from filepact_wire.uris import path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from filepact_diagnostics.lsp.documents import Notification, OpenDocument
    from filepact_diagnostics.lsp.forkserver import ProcessOptions
    from filepact_diagnostics.lsp.spec import ServerSpec

__all__ = ["LanguageClient"]

_STOP_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 0.02
_LONGEST_RETRY_SECONDS: Final = 0.5
_NO_PULL_AFTER: Final = 5.0
_QUIET_WITHOUT_PROBE: Final = 1.0
_QUIET_BY_ROUND_TRIP: Final = 4.0
"""How many times as long as a server takes to answer at all it has to be quiet: a busy one is slow at both."""

_EXECUTE: Final = "workspace/executeCommand"
_WORDS: Final = {"true": True, "false": False}
_TSSERVER: Final = "typescript.tsserverRequest"
_TSSERVER_LISTS: Final = ("syntactic", "semantic", "suggestion")
_FOREVER: Final = float("inf")
_NOTHING: Final = "the server has published nothing that is certainly about the present text"
_UNPROVEN: Final = "it does not say which text its list is about, so that may be an earlier one"

_Items = tuple[Any, Confirmation]


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
        self._published = DiagnosticsLists()
        self._pulled: dict[tuple[str, str | None], tuple[str, Any]] = {}
        self._limits: dict[str, Any] = {}
        self._health: dict[str, Any] | None = None
        self._settled: dict[str, tuple[int, int]] = {}
        self._probing = bool(spec.probe)
        self._sent_after = 0
        # How many texts were sent since the last list that counts, and the publications before the last.
        self._owed: dict[str, tuple[int, int]] = {}
        self._busy = bool(spec.reading)
        self._reading: Any = None
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
            answer = await client._peer.request("initialize", params, seconds)
            client.version = client.capabilities.begin(answer)
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
        self._sent_after = self._published.count
        for method, params in notifications:
            self._peer.notify(method, params)
            if self._spec.ordered and method.endswith(("didOpen", "didChange")):
                path = path_of(params["textDocument"]["uri"]) or ""
                self._owed[path] = self._owed.get(path, (0, 0))[0] + 1, self._published.count

    async def stop(self) -> None:
        """Ask the server to end, and end it."""
        if self._process is None:
            return
        with contextlib.suppress(ServerError):  # it ends all the same
            if not self._over:
                await self._peer.request("shutdown", None, _STOP_SECONDS)
                self._peer.notify("exit", None)
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
        began, stamp, spec, path = self._loop.time(), self.stamp, self._spec, document.path
        try:
            items, confirmed_by = await self.items(document, deadline)
            reason = "" if stamp == self.stamp else "the text changed while the server was asked"
        except ServerError as error:
            items, confirmed_by, reason = None, "none", str(error)
        unit, seconds = self.capabilities.unit, self._loop.time() - began
        if reason:
            return FileDiagnostics(spec.name, path, reason=reason, seconds=seconds)
        found, whole = read_diagnostics(path, document.text, items, unit, spec.name, spec.endings)
        reason = "" if is_proof(confirmed_by) else _UNPROVEN
        once = spec.once or (self._probing and not spec.quiet)
        whole &= not reason and (once or confirmed_by != "version")
        told = FileDiagnostics(spec.name, path, found, confirmed_by, reason, whole, seconds)
        if any(one.code in spec.outside for one in found):
            return told.limited({"known": False})
        return told.limited(self._limits.get(path) or self._health)

    async def items(self, document: OpenDocument, deadline: float) -> _Items:
        """The list's diagnostics as the server sent them; a ServerError if they cannot be proven."""
        if self._spec.asking == "pull":
            # Some servers register it only seconds after their start.
            until = min(deadline, self._began + _NO_PULL_AFTER)
            while not (self.capabilities.pull_identifiers or self._over):
                if (rest := until - self._loop.time()) <= 0:
                    break
                await self._next_message(rest)
            while self.capabilities.pull_identifiers:
                pulled = await self._pull(document, deadline)
                if not self._busy:  # else the project was changed, and is read anew
                    return pulled
        if self._spec.asking == "tsserver" and _TSSERVER in self.capabilities.commands:
            return await self._ask_tsserver(document, deadline), "pull"
        if self._probing and (answer := await self._probe(document, deadline)) is not None:
            return answer
        if self._spec.ordered and self.capabilities.has_symbols:
            return await self._next_in_order(document, deadline), "order"
        return await self._await_publication(document, deadline)

    async def _ask_tsserver(self, document: OpenDocument, deadline: float) -> Any:
        """The lists that TypeScript's server answers with, one request after the other."""
        items: list[Any] = []
        for kind in _TSSERVER_LISTS:
            asked = [f"{kind}DiagnosticsSync", {"file": document.path}]
            items += read_tsserver(await self.execute(_TSSERVER, asked, deadline))
        return items

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

    async def catch_up(self, deadline: float, *files: str) -> bool:
        """Wait until a server has worked up all, and told of files by address; False if it cannot say."""
        method, _, taken = self._spec.probe.partition(" ")
        params: dict[str, Any] | None = {taken: files} if taken else None
        if self._probing and method == _EXECUTE:
            command, *words = taken.split(" ")
            self._probing = command in self.capabilities.commands
            more = [_WORDS.get(one, one) for one in words]
            params = {"command": command, "arguments": [*files, *more]}
            if not files:
                return self._probing
        try:
            if self._probing:
                await self._once_read(deadline)
                await self._request(method, params, deadline)
        except RequestFailedError as error:
            self._probing = error.code != METHOD_NOT_FOUND
            if self._probing and not taken:
                raise
        return self._probing

    async def _probe(self, document: OpenDocument, deadline: float) -> _Items | None:
        while True:
            asked = self._published.count if " " in self._spec.probe else -1
            if not await self.catch_up(deadline, document.uri):
                return None
            last = self._published.get(document.path)
            if asked >= 0 and (last is None or last.number <= asked):
                return None  # it publishes nothing about such a file when asked
            if last is None:
                raise ServerError("the server has published nothing about the file")
            if asked < 0:
                return last.items, "version" if last.version == document.version else "probe"
            if last.other <= asked:
                return last.items, "probe"
            # It has also published what it had found before, and which list answers nobody knows.
            await asyncio.sleep(_RETRY_SECONDS)

    async def _next_in_order(self, document: OpenDocument, deadline: float) -> Any:
        """Wait for a list that cannot be about an earlier text.

        What comes once the server has read the last text is about that, but for one list that may
        still be on its way where texts follow each other faster than they are checked.  Then the
        server is sent the last text once more, and a second list has to come.
        """
        path, state = document.path, self._state(document)
        if self._settled.get(path) == state:
            return self._published.items(path)
        owed, sent = self._owed.get(path, (0, 0))
        await self._round_trip(document, deadline)
        read = self._published.count
        # One that checks a text before it answers anything has said it by now.
        if not owed or self._published.number(path) > sent:
            self._nudge(document)
        left = 2 if owed > 1 else 1
        while left:
            if self._busy:
                await self._once_read(deadline)
                # A list of what it had read by then may still be on its way.
                read, left = self._published.count, 2
                self._nudge(document)
            if self._published.number(path) <= read:
                await self._heard_before(deadline)
                continue
            read, left = self._published.number(path), left - 1
            if left:
                self._nudge(document)
        if state == self._state(document):
            self._owed[path] = 0, 0
            self._settled[path] = state
        return self._published.items(path)

    def _nudge(self, document: OpenDocument) -> None:
        """Send a text once more under its own version; a list is made anew for it."""
        name = {"uri": document.uri, "version": document.version}
        params = {"textDocument": name, "contentChanges": [{"text": document.text}]}
        self._peer.notify("textDocument/didChange", params)

    def _state(self, document: OpenDocument) -> tuple[int, int]:
        """The state that a list is about: a text, and all sent texts unless files do not see each other."""
        return document.version, 0 if self._spec.sync.unsaved == "alone" else self.stamp

    async def _await_publication(self, document: OpenDocument, deadline: float) -> _Items:
        """Wait for a publication about this version, or for silence after one."""
        quiet = self._spec.quiet or (_QUIET_WITHOUT_PROBE if self._spec.probe else 0.0)
        path, state, heard_from = document.path, self._state(document), self._began
        after = 0 if self._spec.sync.unsaved == "alone" else self._sent_after
        nudged = False
        if quiet and self._settled.get(path) != state:
            sent = self._loop.time()
            await self._round_trip(document, deadline)
            heard_from = self._loop.time()
            quiet = max(quiet, _QUIET_BY_ROUND_TRIP * (heard_from - sent))
        while True:
            last, now = self._published.get(path), self._loop.time()
            if last is not None and last.version not in (None, document.version):
                last = None
            if last is not None and self._settled.get(path) == state:
                return last.items, "quiet window" if last.version is None else "version"
            named = last is not None and last.version is not None and last.number > after
            told = last is not None and (named or (quiet and last.number > self._sent_after))
            rest = max(last.at if told and last else 0.0, heard_from) + quiet - now
            if quiet and rest <= 0 and not (named or nudged):
                # Some name no version of a text that is opened, or are silent where nothing is new.
                self._nudge(document)
                nudged, heard_from, rest = True, now, quiet
            if told and rest <= 0:
                self._settled[path] = state
                continue
            await self._heard_before(deadline, rest if rest > 0 else _FOREVER)

    async def _once_read(self, deadline: float) -> None:
        """Wait until a server that says so has read the project; before that it knows nothing of it."""
        while self._busy:
            await self._heard_before(deadline)

    async def _heard_before(self, deadline: float, most: float = _FOREVER) -> None:
        """Wait until the server says anything; a ServerError if it has ended, or no time is left."""
        if self._over:
            raise ServerError(self._over)
        if (rest := deadline - self._loop.time()) <= 0:
            raise RequestTimeoutError(_NOTHING)
        await self._next_message(max(min(rest, most), 0.001))

    async def _round_trip(self, document: OpenDocument, deadline: float) -> None:
        """Wait until the server has certainly read all that was sent."""
        if self.capabilities.has_symbols:
            params = {"textDocument": {"uri": document.uri}}
            with contextlib.suppress(RequestFailedError):  # a refusal is an answer all the same
                await self._request("textDocument/documentSymbol", params, deadline)

    async def _request(self, method: str, params: Any, deadline: float) -> Any:
        rest = deadline - self._loop.time()
        if rest <= 0:
            raise RequestTimeoutError(f"no time left for {method}")
        ask = self._peer.request_alone if method in self._spec.alone else self._peer.request
        return await ask(method, params, rest)

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
            await self._once_read(deadline)
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
        return await self._request(_EXECUTE, params, deadline)

    # -- what the server says -------------------------------------------------------------

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
                self._published.keep(params, self._loop.time())
            case "$/progress":
                self._progress(params["token"], params["value"])
            case "experimental/serverStatus" | "language/status" if method == self._spec.reading:
                self._status(params)
            case "window/showMessage" | "window/logMessage":
                pass  # a sign of life all the same
            case _:
                return
        self._heard.set()

    def _status(self, said: Any) -> None:
        """What a server says of itself: whether it has read the project, and what it lacks."""
        if "quiescent" in said:
            self._busy, text = said["quiescent"] is not True, str(said.get("message") or "")
            note = {"approximate": True, "notes": text.split("\n")[:1]}
            self._health = None if said.get("health") == "ok" else note
        elif said["type"] == "ServiceReady":
            self._busy = False

    def _progress(self, token: Any, value: Any) -> None:
        kind = value.get("kind") if isinstance(value, dict) else None
        if kind == "begin" and self._spec.reading and self._spec.reading in value["title"]:
            self._busy, self._reading = True, token
        elif kind == "end" and token == self._reading:
            self._busy = False

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
