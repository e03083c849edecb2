"""The suite against a client object of this process."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from acp import RequestError, spawn_agent_process, text_block
from acp.schema import ClientCapabilities, FileSystemCapabilities, Implementation

from filepact.errors import FilepactError, TimedOutError
from filepact.faces.acp.check.checks import choose
from filepact.faces.acp.check.folder import resolved
from filepact.faces.acp.check.plan import Log, Plan, agent_command, prepare

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from acp.client.connection import ClientSideConnection

    from filepact.faces.acp.check.folder import Scratch
    from filepact.faces.acp.check.outcome import Report

__all__ = ["check_client"]

_TICK = 0.01
_WAIT = 30.0
_LAST_WORDS = 3.0


async def check_client(
    client: Any,
    *,
    capabilities: ClientCapabilities | None = None,
    only: Sequence[str] = (),
    patience: float = 5.0,
    through: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Report:
    """Run the checks against a client object, over the pipes of a real agent process.

    Args:
        client: Has the methods that the protocol's official package calls.
        capabilities: What is announced; None takes ``client.capabilities()`` if there is such a
            method, else both file methods are announced.
        only: Ids of checks, or names of groups; empty for all.
        patience: Seconds for one check.
        through: Words of a program that stands between, such as a proxy; the words that start
            the agent are put behind them.
        env: Variables for that program besides the few that the package hands on.

    Returns:
        What was found; `Report.failed` is empty for a client without a fault.

    Raises:
        InvalidParamsError: A name in ``only`` is no check's and no group's.
        FilepactError: The checks could not be run.
    """
    choose(only)
    path = resolved(tempfile.mkdtemp(prefix="filepact-acp-check-"))
    try:
        plan = Plan(patience=patience, wait=_WAIT, steered=True, only=tuple(only))
        scratch = prepare(path, plan)
        words = [*through, *agent_command(scratch)]
        async with _started(client, words, env, scratch) as (agent, process):
            steering = _Steering(agent, scratch, capabilities or _announced(client))
            return await steering.run(process, longest=_WAIT + 3 * patience * len(choose(only)))
    finally:
        shutil.rmtree(path, ignore_errors=True)


@asynccontextmanager
async def _started(
    client: Any, words: Sequence[str], env: Mapping[str, str] | None, scratch: Scratch
) -> AsyncIterator[tuple[ClientSideConnection, Process]]:
    # Nobody reads what an agent says beside the protocol; a full pipe would stop it.
    options = {"stderr": None}
    process: Process | None = None
    try:
        async with spawn_agent_process(
            client, *words, env=env, cwd=scratch.work.path, transport_kwargs=options
        ) as (agent, process):
            yield agent, process
    finally:
        if process is not None:
            # The package leaves pipes open if something in them was not read or not taken.
            process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - see above
            # One turn of the loop finds that nobody is at the other end, the next ones let go.
            for _ in range(5):
                await asyncio.sleep(0)


def _announced(client: Any) -> ClientCapabilities:
    own = getattr(client, "capabilities", None)
    if own is not None:
        found: ClientCapabilities = own()
        return found
    return ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True))


class _Steering:
    """Does what the agent wishes of its client."""

    def __init__(
        self, agent: ClientSideConnection, scratch: Scratch, announced: ClientCapabilities
    ) -> None:
        self._agent = agent
        self._scratch = scratch
        self._announced = announced
        self._log = Log(scratch)
        self._wished: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._turns: set[asyncio.Task[None]] = set()
        self._wishes: dict[str, Callable[[dict[str, Any]], Awaitable[None]]] = {
            "session": self._open,
            "prompt": self._prompt,
            "cancel": self._cancel,
            "close": self._close,
        }

    async def run(self, process: Process, *, longest: float) -> Report:
        """Be the client until the agent says that it is over."""
        client = asyncio.create_task(self._be_client())
        silent = 0.0
        try:
            async with asyncio.timeout(longest):
                while not self._log.over and silent < _LAST_WORDS:
                    for wish in self._log.follow():
                        self._wished.put_nowait(wish)
                    await asyncio.sleep(_TICK)
                    if process.returncode is not None:
                        # What stands between has ended; the agent may still be writing.
                        silent += _TICK
        except TimeoutError:
            raise TimedOutError(f"the checks were not over after {longest:.0f} seconds") from None
        finally:
            tasks = (client, *self._turns)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        tuple(self._log.follow())
        if not self._log.over or self._log.trouble:
            why = self._log.trouble or "the agent's connection ended before the checks were over"
            raise FilepactError(f"the checks could not be run: {why}")
        return self._log.report()

    async def _be_client(self) -> None:
        """Open the session, and then do what is wished, one after the other."""
        with contextlib.suppress(ConnectionError, RequestError):
            info = Implementation(name="filepact-check-client", version="1")
            await self._agent.initialize(1, client_capabilities=self._announced, client_info=info)
            await self._open({"cwd": self._scratch.work.path, "more": []})
        while True:
            wish = await self._wished.get()
            with contextlib.suppress(ConnectionError, RequestError):
                await self._wishes[wish["wants"]](wish)

    async def _open(self, wish: dict[str, Any]) -> None:
        cwd, more = wish["cwd"], wish["more"]
        session = await self._agent.new_session(
            cwd=cwd, mcp_servers=[], **({"additional_directories": more} if more else {})
        )
        await self._prompt({"session": session.session_id})

    async def _prompt(self, wish: dict[str, Any]) -> None:
        async def turn() -> None:
            with contextlib.suppress(ConnectionError, RequestError):
                await self._agent.prompt(prompt=[text_block("check")], session_id=wish["session"])

        task = asyncio.create_task(turn())
        self._turns.add(task)
        task.add_done_callback(self._turns.discard)

    async def _cancel(self, wish: dict[str, Any]) -> None:
        await self._agent.cancel(session_id=wish["session"])

    async def _close(self, wish: dict[str, Any]) -> None:
        await self._agent.close_session(session_id=wish["session"])
