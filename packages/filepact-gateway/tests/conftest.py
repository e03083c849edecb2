"""Gateways as processes, and one in a thread over the small tools."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from filepact.tools.registry import Toolset
from filepact_gateway.context import RealmTools, UserContext
from filepact_gateway.handler import GatewayHandler, GatewayOptions
from filepact_gateway.limits import LimitChecks
from filepact_gateway.metrics import Metrics
from filepact_gateway.repeats import RequestHistory
from filepact_gateway.requests import RequestChecks
from filepact_gateway.server import GatewaySockets, GatewayWorker, listen
from filepact_gateway.settings import CallLimits
from filepact_gateway.store import SqliteGatewayStore
from filepact_gateway.tokens import SessionTokens
from filepact_mcp.results import ServerInfo, ToolCache
from gateway_running import Client, RunningGateway
from tests.faces.conftest import small

__all__ = ["small"]
"""A fixture of the faces' tests."""

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a root of a few files."""
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "root").mkdir()
    (folder / "root" / "a.txt").write_text("one\ntwo\n")
    return folder


@pytest.fixture(scope="module")
def gateway(base: Path) -> Iterator[RunningGateway]:
    """One gateway for all tests of a file."""
    running = RunningGateway(base, [str(base / "root")])
    yield running
    assert running.end() == 0


class _Everybody:
    """Lets everybody use the small tools."""

    def __init__(self, served: RealmTools) -> None:
        self.served = served

    def realm(self, path: str) -> str | None:
        return "" if path == "/mcp" else None

    async def caller(self, _request: Any, realm: str) -> UserContext:
        return UserContext("", realm, self.served)

    def page(self, _request: Any) -> None:
        return None


class SmallGateway:
    """A gateway over the small tools, in a thread of this process."""

    def __init__(
        self,
        small: Any,
        store: SqliteGatewayStore,
        limits: CallLimits,
        options: GatewayOptions,
        drain: float,
    ) -> None:
        self.engine = small.SmallEngine()
        tools = ToolCache(lambda: Toolset(small.TOOLS, self.engine))
        facts = ServerInfo(
            name="small", version="1.2", instructions="Be gentle.", tools=tools.described
        )
        self.metrics = Metrics()
        self.ended: set[str] = set()
        self.elsewhere: list[tuple[str, Any]] = []
        self.socket = listen(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.endpoint = GatewayHandler(
            _Everybody(RealmTools(tools, facts)),
            RequestChecks([self.address], ["https://pages.example"]),
            SessionTokens(b"secret", lasts=60, has_ended=self.ended.__contains__),
            LimitChecks(limits),
            self.metrics,
            options,
            ended=lambda session, _until: self.ended.add(session) or 0.0,
            cancelled=lambda session, wanted: self.elsewhere.append((session, wanted)),
            repeats=RequestHistory(store, b"secret"),
        )
        self.worker = GatewayWorker(
            GatewaySockets(self.socket),
            self.endpoint,
            self.metrics,
            drain=drain,
            patience=options.patience,
            ready=lambda: True,
        )
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self.worker.run())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def client(self) -> Client:
        return Client(self.address)

    def opened(self) -> Client:
        client = self.client()
        assert client.open().status == 200
        return client

    def end(self) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.worker.end)
        self.thread.join(60)
        assert not self.thread.is_alive()


@pytest.fixture
def small_gateway(small: Any, tmp_path: Path) -> Iterator[Callable[..., SmallGateway]]:
    """Starts gateways over the small tools, which have a file in common; each has a clock of its own."""
    started: list[SmallGateway] = []
    stores: list[SqliteGatewayStore] = []

    def start(
        limits: CallLimits | None = None,
        *,
        drain: float = 20.0,
        ahead: float = 0.0,
        **options: Any,
    ) -> SmallGateway:
        store = SqliteGatewayStore(str(tmp_path / "gateway.db"))
        stores.append(store)
        store.now = lambda: time.time() + ahead  # type: ignore[method-assign]
        made = SmallGateway(small, store, limits or CallLimits(), GatewayOptions(**options), drain)
        started.append(made)
        return made

    yield start
    for one in started:
        one.end()
    for store in stores:
        store.close()
