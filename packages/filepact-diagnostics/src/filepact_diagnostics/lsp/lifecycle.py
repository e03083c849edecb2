"""The starts of one server: the first, and those after it has ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from filepact_diagnostics.lsp.client import LanguageClient
from filepact_diagnostics.lsp.failures import RequestTimeoutError, ServerError, ServerExitedError
from filepact_diagnostics.lsp.spec import PAUSES

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from filepact_diagnostics.lsp.diagnostics import ServerState
    from filepact_diagnostics.lsp.forkserver import ProcessOptions
    from filepact_diagnostics.lsp.spec import ServerSpec

__all__ = ["ServerLifecycle"]

_START_SECONDS: Final = 45.0
_STEADY_AFTER: Final = 60.0


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
            await asyncio.wait({self._starting}, timeout=max(deadline - self._loop.time(), 0))
            if not self._starting.done():
                raise RequestTimeoutError("the server is still starting")

    def wake(self) -> None:
        """Start the server if it does not run; nobody waits for it."""
        if self.state == "stopped":
            self._starting = asyncio.create_task(self._start())

    def give_up(self, reason: str) -> None:
        """The server has ended, or is as good as gone; it is started again after a pause."""
        self._ends = 1 if self._loop.time() - self.began > _STEADY_AFTER else self._ends + 1
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
