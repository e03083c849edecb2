"""The ways of a client to an agent: the library in its process, the proxy, and neither."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from acp import spawn_agent_process, text_block
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

from filepact.acp import ClientFileSystem, Settings
from tests.agents.editor import PERMISSION, READ, WRITE, Editor, close_pipes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from acp.schema import PermissionOption, ToolCallUpdate

    from filepact.acp import Delivery, Question
    from filepact.workspace.workspace import Mode
    from tests.agents.agents import Agent

__all__ = ["CLIENTS", "Client", "Place", "Talk"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a scene plays.

    Attributes:
        agent: Who acts.
        url: The address of its model.
        home: Its home.
        root: The folder of the session.
        state: The state folder of filepact.
        unsaved: Text by path that a person has not saved.
        mode: Whether filepact does what is allowed, or asks the person first.
        hold: A file; when the person is asked about it, the answer waits for `Talk.release`.
    """

    agent: Agent
    url: str
    home: Path
    root: Path
    state: Path
    unsaved: dict[str, str] = field(default_factory=dict)
    mode: Mode = "auto"
    hold: str = ""


class Talk(Protocol):
    """A session with an agent.

    Attributes:
        held: Set once a change is held.
    """

    held: asyncio.Event

    def requests(self) -> list[str]:
        """The methods of everything that was asked so far."""
        ...

    async def prompt(self, text: str) -> str: ...
    async def cancel(self) -> None: ...
    def release(self) -> None: ...


class Client(Protocol):
    """A way to an agent: opens a session in a place."""

    def __call__(self, place: Place) -> contextlib.AbstractAsyncContextManager[Talk]: ...


class _Terminal(ClientFileSystem):
    """A client of the official package: says yes to all, in its own time.

    Attributes:
        seen: The methods that the agent used.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(
            state_dir=str(place.state),
            mode=place.mode,
            ask=self._approve,
            settings=Settings(),
            on_delivery=self._show,
        )
        self.unsaved = place.unsaved
        for path, text in self.unsaved.items():
            self.buffers.open(path, text, version=1)
        self.held = asyncio.Event()
        self.seen: list[str] = []
        self._released = asyncio.Event()
        self._hold = place.hold

    def release(self) -> None:
        self._released.set()

    async def _approve(self, question: Question) -> bool:
        if self._hold and question.path.endswith(self._hold):
            self.held.set()
            await self._released.wait()
        return True

    async def _show(self, delivery: Delivery) -> bool:
        for path in self.buffers.names(delivery.path):
            self.unsaved[path] = delivery.edits.apply(self.unsaved[path])
        return True

    async def read_text_file(self, *more: Any, **named: Any) -> Any:
        self.seen.append(READ)
        return await super().read_text_file(*more, **named)

    async def write_text_file(self, *more: Any, **named: Any) -> Any:
        self.seen.append(WRITE)
        return await super().write_text_file(*more, **named)

    async def request_permission(
        self,
        session_id: str,  # noqa: ARG002 - the protocol's
        tool_call: ToolCallUpdate,  # noqa: ARG002 - the protocol's
        options: list[PermissionOption],
        **_: Any,
    ) -> RequestPermissionResponse:
        self.seen.append(PERMISSION)
        for option in options:
            if option.kind == "allow_once":
                chosen = AllowedOutcome(outcome="selected", option_id=option.option_id)
                return RequestPermissionResponse(outcome=chosen)
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


@dataclass(slots=True)
class _LibraryTalk:
    terminal: _Terminal
    agent: Any
    session: str

    @property
    def held(self) -> asyncio.Event:
        return self.terminal.held

    async def prompt(self, text: str) -> str:
        done = await self.agent.prompt(prompt=[text_block(text)], session_id=self.session)
        return str(done.stop_reason)

    async def cancel(self) -> None:
        await self.agent.cancel(session_id=self.session)

    def release(self) -> None:
        self.terminal.release()

    def requests(self) -> list[str]:
        return list(self.terminal.seen)


@contextlib.asynccontextmanager
async def library(place: Place) -> AsyncIterator[Talk]:
    """`filepact.acp.ClientFileSystem` in a client of the official package."""
    terminal = _Terminal(place)
    environment = place.agent.prepare(place.home, place.url)
    try:
        async with spawn_agent_process(
            terminal,
            *place.agent.command(place.home, place.url),
            env=environment,
            cwd=place.root,
            transport_kwargs={"stderr": asyncio.subprocess.DEVNULL},
        ) as (agent, process):
            await agent.initialize(1, client_capabilities=terminal.capabilities())
            opened = await agent.new_session(cwd=str(place.root), mcp_servers=[])
            yield _LibraryTalk(terminal, agent, opened.session_id)
        close_pipes(process)
    finally:
        terminal.close()


def _editor(place: Place, *before: str) -> Editor:
    """An editor that knows nothing of filepact."""
    environment = place.agent.prepare(place.home, place.url)
    return Editor(
        [*before, *place.agent.command(place.home, place.url)],
        environment,
        place.root,
        protocol=place.agent.protocol,
        unsaved=place.unsaved,
        hold=lambda request: _is_held(request, place),
    )


@contextlib.asynccontextmanager
async def proxy(place: Place) -> AsyncIterator[Talk]:
    """`filepact acp` between the agent and an editor that knows nothing of it."""
    words = ("-m", "filepact", "acp", "--state", str(place.state), "--mode", place.mode, "--")
    async with _editor(place, sys.executable, *words) as editor:
        await editor.start()
        yield editor


@contextlib.asynccontextmanager
async def bare(place: Place) -> AsyncIterator[Talk]:
    """Nothing between the agent and the editor; for seeing what an agent asks."""
    async with _editor(place) as editor:
        await editor.start()
        yield editor


def _is_held(request: dict[str, Any], place: Place) -> bool:
    """Whether a request is the question that a scene holds.

    It is the proxy's own where there is one, because that is asked last.
    """
    if not place.hold or request["method"] != PERMISSION:
        return False
    text = json.dumps(request["params"])
    return place.hold in text and ('"filepact-' in text or not place.agent.writes)


CLIENTS: dict[str, Callable[[Place], contextlib.AbstractAsyncContextManager[Talk]]] = {
    "library": library,
    "proxy": proxy,
    "bare": bare,
}
"""By name, as the tests are named."""
