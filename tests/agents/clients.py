"""The two ways of a client of ours to an agent: the library in its process, and the proxy."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from acp import RequestError, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

from filepact.acp import ClientFileSystem
from tests.agents.editor import PERMISSION, Editor, close_pipes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from acp.schema import PermissionOption, ToolCallUpdate

    from filepact.faces.acp.client import Question
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

    async def prompt(self, text: str) -> str: ...
    async def cancel(self) -> None: ...
    def release(self) -> None: ...


class Client(Protocol):
    """A way to an agent: opens a session in a place."""

    def __call__(self, place: Place) -> contextlib.AbstractAsyncContextManager[Talk]: ...


class _Terminal(ClientFileSystem):
    """A client of the official package: says yes to all, in its own time.

    Attributes:
        seen: Method, path and the number of the error, if any, of what the agent asked.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(state_dir=str(place.state), mode=place.mode, ask=self._approve)
        self.held = asyncio.Event()
        self.seen: list[tuple[str, str, int | None]] = []
        self.permissions: list[ToolCallUpdate] = []
        self._released = asyncio.Event()
        self._hold = place.hold

    def release(self) -> None:
        self._released.set()

    async def _approve(self, question: Question) -> bool:
        if self._hold and question.path.endswith(self._hold):
            self.held.set()
            await self._released.wait()
        return True

    async def _noted(self, name: str, path: str, answer: Any) -> Any:
        try:
            result = await answer
        except RequestError as error:
            self.seen.append((name, path, error.code))
            raise
        self.seen.append((name, path, None))
        return result

    async def read_text_file(self, session_id: str, path: str, *more: Any, **named: Any) -> Any:
        answer = super().read_text_file(session_id, path, *more, **named)
        return await self._noted("read", path, answer)

    async def write_text_file(self, session_id: str, path: str, content: str, **named: Any) -> Any:
        answer = super().write_text_file(session_id, path, content, **named)
        return await self._noted("write", path, answer)

    async def request_permission(
        self,
        session_id: str,  # noqa: ARG002 - the protocol's
        tool_call: ToolCallUpdate,
        options: list[PermissionOption],
        **_: Any,
    ) -> RequestPermissionResponse:
        self.permissions.append(tool_call)
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


@contextlib.asynccontextmanager
async def proxy(place: Place) -> AsyncIterator[Talk]:
    """`filepact acp` between the agent and an editor that knows nothing of it."""
    environment = place.agent.prepare(place.home, place.url)
    ours = ["-m", "filepact", "acp", "--state", str(place.state), "--mode", place.mode, "--"]
    editor = Editor(
        [sys.executable, *ours, *place.agent.command(place.home, place.url)],
        environment,
        place.root,
        protocol=place.agent.protocol,
        unsaved=place.unsaved,
        hold=lambda request: _is_ours(request, place.hold),
    )
    async with editor:
        await editor.start()
        yield editor


def _is_ours(request: dict[str, Any], name: str) -> bool:
    """Whether a request is a question of the proxy, not of the agent, about a file."""
    text = json.dumps(request["params"])
    return bool(name) and request["method"] == PERMISSION and '"filepact-' in text and name in text


CLIENTS: dict[str, Callable[[Place], contextlib.AbstractAsyncContextManager[Talk]]] = {
    "library": library,
    "proxy": proxy,
}
"""By name, as the tests are named."""
