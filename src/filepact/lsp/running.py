"""One server kept running: started when it is needed, and again, after a pause, when it has ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from filepact.lsp.client import Client
from filepact.lsp.failures import GoneError, LateError, ServerError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from filepact.lsp.launch import Launch
    from filepact.lsp.outcome import State
    from filepact.lsp.servers import Server

__all__ = ["PAUSES", "Running"]

_START_SECONDS: Final = 45.0
PAUSES: Final = (0.2, 1.0, 5.0, 20.0)
"""Seconds before a new start, by how often the server has ended shortly after its start; once more,
and it is not started any more."""

_STEADY_AFTER: Final = 60.0


class Running:
    """The life of one server on one root.

    Args:
        server: What is to be started.
        launch: How; the folder is the root.
        on_start: Called with each new conversation, before anybody else gets it.
        pauses: Seconds before new starts.
    """

    def __init__(
        self,
        server: Server,
        launch: Launch,
        on_start: Callable[[Client], None],
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self._server = server
        self._launch = launch
        self._on_start = on_start
        self._pauses = tuple(pauses)
        self._loop = asyncio.get_running_loop()
        self._starting: asyncio.Task[None] | None = None
        self._aside: set[asyncio.Task[None]] = set()
        self._ends = 0
        self._not_before = 0.0
        self.client: Client | None = None
        self.starts = 0
        self.began = 0.0
        """The loop's time of the last start."""
        self.started_in = 0.0
        self.message = ""
        """Why it last ended."""

    @property
    def state(self) -> State:
        """What it is doing now."""
        if self.client is not None and not self.client.over:
            return "ready"
        if self._starting is not None and not self._starting.done():
            return "starting"
        if self._ends > len(self._pauses):
            return "broken"
        return "waiting" if self._loop.time() < self._not_before else "stopped"

    async def ready(self, deadline: float) -> Client:
        """The conversation with the server, which is started if it does not run.

        Args:
            deadline: The loop's time until which to wait.

        Raises:
            ServerError: It is not there by then; its start goes on.
        """
        while True:
            if self.client is not None and not self.client.over:
                return self.client
            state = self.state
            if state == "broken" or (state == "waiting" and self._not_before >= deadline):
                raise GoneError(self.message)
            if state == "waiting":
                await asyncio.sleep(self._not_before - self._loop.time())
                continue
            if self._starting is None or self._starting.done():
                self._starting = asyncio.create_task(self._start())
            rest = max(deadline - self._loop.time(), 0)
            await asyncio.wait({self._starting}, timeout=rest)
            if not self._starting.done():
                raise LateError("the server is still starting")

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
            self.aside(client.kill())

    async def stop(self) -> None:
        """End the server; it is started again when it is next needed."""
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
        client, self.client = self.client, None
        if client is not None:
            await client.stop()
        # Whoever stops it may be doing so aside.
        others = [task for task in self._aside if task is not asyncio.current_task()]
        await asyncio.gather(*others, return_exceptions=True)

    def aside(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for."""
        task = asyncio.create_task(work)
        self._aside.add(task)
        task.add_done_callback(self._aside.discard)

    async def _start(self) -> None:
        self.began = self._loop.time()
        self.starts += 1
        server = self._server
        try:
            client = await Client.start(
                self._launch,
                server.settings,
                server.options,
                self.give_up,
                _START_SECONDS,
                pull=server.asking == "pull",
            )
        except ServerError as error:
            self.give_up(str(error))
            return
        self.started_in = self._loop.time() - self.began
        self._on_start(client)
        self.client = client
