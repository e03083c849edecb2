"""Checks a client object of this process, on the Python package of the protocol."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from acp import RequestError, spawn_agent_process, text_block
from acp.schema import ClientCapabilities, FileSystemCapabilities, Implementation

from acp_conformance.checks import choose
from acp_conformance.report import SuiteError
from acp_conformance.scratch import CheckLog, Plan, agent_command, new_scratch

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from acp.client.connection import ClientSideConnection

    from acp_conformance.report import Report
    from acp_conformance.scratch import CheckFolders

__all__ = ["ClientExecutor", "check_client"]

_TICK = 0.01
_WAIT = 30.0
_GRACE = 3.0


async def check_client(
    client: Any,
    *,
    capabilities: ClientCapabilities | None = None,
    only: Sequence[str] = (),
    patience: float = 5.0,
    through: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Report:
    """Make the checks with a client object, over the pipes of a real agent process.

    Args:
        client: Has the methods that the package `agent-client-protocol` calls.
        capabilities: To announce; None takes ``client.capabilities()`` if there is such a method,
            else both file methods.
        only: Ids of checks, or names of groups; empty for all.
        patience: Seconds for one check.
        through: The command line of a proxy between the client and the agent; the agent's is
            appended to it.
        env: Variables for the proxy besides the few that the package passes on.

    Returns:
        The report; its `failed()` is empty for a client without a fault.

    Raises:
        SuiteError: `UNKNOWN_CHECK`: a name in ``only`` is no check's and no group's.
            `TIMED_OUT` or `CHECKS_NOT_RUN`: the checks could not be made.
    """
    longest = _WAIT + 3 * patience * len(choose(only))
    plan = Plan(patience=patience, wait=_WAIT, driven=True, only=tuple(only))
    with new_scratch(plan) as scratch:
        words = [*through, *agent_command(scratch)]
        async with _started(client, words, env, scratch) as (agent, process):
            driver = ClientExecutor(agent, scratch, capabilities or _announced(client))
            return await driver.run(process, longest=longest)


@asynccontextmanager
async def _started(
    client: Any, words: Sequence[str], env: Mapping[str, str] | None, scratch: CheckFolders
) -> AsyncIterator[tuple[ClientSideConnection, Process]]:
    # Nobody reads an agent's standard error; a full pipe would stop it.
    options = {"stderr": None}
    process: Process | None = None
    checked = False
    try:
        async with spawn_agent_process(
            client, *words, env=env, cwd=scratch.work.path, transport_kwargs=options
        ) as (agent, process):
            yield agent, process
            checked = True
    except ConnectionError:
        # The package tells so of an agent that has ended before all was sent to it.
        if not checked:
            raise
    finally:
        if process is not None:
            # The package leaves pipes open if something in them was not read or not written.
            process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - see above
            # The first turn of the loop notices the closed pipes, the next ones release them.
            for _ in range(5):
                await asyncio.sleep(0)


def _announced(client: Any) -> ClientCapabilities:
    own = getattr(client, "capabilities", None)
    if own is not None:
        found: ClientCapabilities = own()
        return found
    return ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True))


class ClientExecutor:
    """Drives the client: opens the first session, then takes the actions that the agent logs."""

    def __init__(
        self, agent: ClientSideConnection, scratch: CheckFolders, announced: ClientCapabilities
    ) -> None:
        self._agent = agent
        self._scratch = scratch
        self._announced = announced
        self._log = CheckLog(scratch)
        self._asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._turns: set[asyncio.Task[None]] = set()
        self._actions: dict[str, Callable[[dict[str, Any]], Awaitable[None]]] = {
            "session": self._open,
            "prompt": self._prompt,
            "cancel": self._cancel,
            "close": self._close,
        }

    async def run(self, process: Process, *, longest: float) -> Report:
        """Drive the client until the agent has made all checks."""
        client = asyncio.create_task(self._drive())
        silent = 0.0
        try:
            async with asyncio.timeout(longest):
                while not self._log.over and silent < _GRACE:
                    for action in self._log.follow():
                        self._asked.put_nowait(action)
                    await asyncio.sleep(_TICK)
                    if process.returncode is not None:
                        # The proxy has ended; the agent may still be writing.
                        silent += _TICK
        except TimeoutError:
            raise SuiteError(
                "TIMED_OUT", f"the checks were not over after {longest:.0f} seconds"
            ) from None
        finally:
            tasks = (client, *self._turns)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        tuple(self._log.follow())
        if not self._log.over or self._log.trouble:
            why = self._log.trouble or "the agent's connection ended before the checks were over"
            raise SuiteError("CHECKS_NOT_RUN", f"the checks could not be made: {why}")
        return self._log.report()

    async def _drive(self) -> None:
        """Open the first session, then take one action after the other."""
        with contextlib.suppress(ConnectionError, RequestError):
            info = Implementation(name="acp-conformance-client", version="1")
            await self._agent.initialize(1, client_capabilities=self._announced, client_info=info)
            await self._open({"cwd": self._scratch.work.path, "more": []})
        while True:
            action = await self._asked.get()
            with contextlib.suppress(ConnectionError, RequestError):
                await self._actions[action["action"]](action)

    async def _open(self, action: dict[str, Any]) -> None:
        cwd, more = action["cwd"], action["more"]
        session = await self._agent.new_session(
            cwd=cwd, mcp_servers=[], **({"additional_directories": more} if more else {})
        )
        await self._prompt({"session": session.session_id})

    async def _prompt(self, action: dict[str, Any]) -> None:
        async def turn() -> None:
            with contextlib.suppress(ConnectionError, RequestError):
                await self._agent.prompt(prompt=[text_block("check")], session_id=action["session"])

        task = asyncio.create_task(turn())
        self._turns.add(task)
        task.add_done_callback(self._turns.discard)

    async def _cancel(self, action: dict[str, Any]) -> None:
        await self._agent.cancel(session_id=action["session"])

    async def _close(self, action: dict[str, Any]) -> None:
        await self._agent.close_session(session_id=action["session"])
