"""The gateway's processes: workers that listen at one address, and their end when they are told to."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from filepact.errors import FilepactError, InvalidParamsError
from filepact.values import dataclass, late_logger
from filepact_gateway.exchange import ASIDE, HEAD, MergedConnection, answer_events
from filepact_gateway.requests import HttpAnswer, HttpRequest
from filepact_wire import pipes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from filepact_gateway.handler import GatewayHandler
    from filepact_gateway.metrics import Metrics
    from filepact_wire.messages import RequestId

__all__ = ["GatewaySockets", "GatewayWorker", "WorkerPipes", "listen", "run_workers"]

_log = late_logger(__name__)

_BACKLOG: Final = 512
_CONNECTIONS: Final = 4_000
_TICKS: Final = 5  # of so many ticks of the server, one looks for clients that are too slow
_IDLE: Final = 75.0  # seconds for which a connection is kept that asks for nothing
_AGAIN: Final = 1.0  # seconds before a worker is started in the place of one that has failed
_CANNOT: Final = 3  # the exit code of a worker that would fail again
_LAST: Final = 10.0  # seconds that a worker has besides, to end what it cancels
_ANSWERS: Final = 1.0  # seconds of these to send the last answers
_BEAT: Final = 1.0  # seconds after which an event loop says that it still turns
_LOOKS: Final = 12  # looks in a row that find no new word of a worker, after which it is killed
_LOOK: Final = 5.0  # seconds between two looks


@dataclass(frozen=True, slots=True)
class GatewaySockets:
    """The sockets that all workers listen at.

    Attributes:
        health: Of what is told to whoever watches over the gateway; None for nowhere.
    """

    main: socket.socket
    health: socket.socket | None = None

    def close(self) -> None:
        """Listen no more."""
        for one in filter(None, (self.main, self.health)):
            one.close()


def listen(address: tuple[str, int]) -> socket.socket:
    """A socket that listens at an address.

    Raises:
        InvalidParamsError: That cannot be had.
    """
    host, port = address
    try:
        made = pipes.listen(host, port, backlog=_BACKLOG)
    except OSError as error:
        raise InvalidParamsError(
            f"nothing can be served at {host}:{port} ({error.strerror or error})",
            hint="Name another address with --listen.",
        ) from None
    made.setblocking(False)
    return made


# -- one worker ----------------------------------------------------------------------------------


class _Protocol(H11Protocol):
    """Lets the application cut a connection off, and counts connections."""

    metrics: Metrics
    patience: float

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._joined = MergedConnection(transport)
        self.app_state = {ASIDE: self._joined}
        joined: Any = self._joined
        super().connection_made(joined)
        self.metrics.add("filepact_gateway_connections")
        self._await_head()

    def eof_received(self) -> None:
        self._joined.ended()
        super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.metrics.add("filepact_gateway_connections", by=-1.0)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        cycle: Any = self.cycle
        if not self._joined.due and (cycle is None or cycle.response_complete):
            self._await_head()
        super().data_received(data)

    def _await_head(self) -> None:
        # Who never comes to the end of a request's headers, or of one that was refused, is cut off.
        self._joined.due[HEAD] = time.monotonic() + self.patience

    def look(self, now: float) -> None:
        """Cut the client off if it has had its time."""
        if self._joined.due and now >= min(self._joined.due.values()):
            self._joined.cut_off(self.metrics)


class _Health:
    """Answers whoever watches over the gateway; an ASGI application."""

    def __init__(self, metrics: Metrics, ready: Callable[[], bool]) -> None:
        self._metrics = metrics
        self._ready = ready

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        for event in answer_events(self._answer(HttpRequest.of(scope))):
            await send(event)

    def _answer(self, request: HttpRequest) -> HttpAnswer:
        if request.method not in ("GET", "HEAD"):
            return HttpAnswer(405, b"", {"Allow": "GET"}, "text/plain")
        if request.path == "/healthz":
            return HttpAnswer(200, b"ok\n", media="text/plain")
        if request.path == "/readyz":
            status, said = (200, b"ready\n") if self._ready() else (503, b"not ready\n")
            return HttpAnswer(status, said, media="text/plain")
        if request.path == "/metrics":
            text = self._metrics.text().encode()
            return HttpAnswer(200, text, media="text/plain; version=0.0.4; charset=utf-8")
        return HttpAnswer(404, b"", media="text/plain")


class _Server(Server):
    """A server that ends when it is told to, without ending its process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second; looks for slow clients in place of a timer for each step of each request."""
        now = time.monotonic()
        for one in list(self.server_state.connections) if counter % _TICKS == 0 else ():
            if isinstance(one, _Protocol):
                one.look(now)
        return await super().on_tick(counter)


class WorkerPipes:
    """What workers tell each other, that a client does not want an answer any more, and hear of the process that watches over them.

    Args:
        workers: How many there are; made before they are forked.
    """

    def __init__(self, workers: int) -> None:
        self._pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(workers)]
        for pair in self._pairs:
            for end in pair:
                end.setblocking(False)
        # Only the process that watches has the second end: with it, however it goes, that end is closed.
        self._watched, self._watching = os.pipe()

    @property
    def workers(self) -> int:
        """How many there are."""
        return len(self._pairs)

    def begin(self) -> None:
        """This process is a worker from now on."""
        os.close(self._watching)

    def tell(self, worker: int, session: str, wanted: RequestId) -> None:
        """Tell the other workers; one that does not listen just now is not waited for."""
        data = json.dumps([session, wanted]).encode()
        for number, (_, sending) in enumerate(self._pairs):
            if number != worker:
                with suppress(OSError):
                    sending.send(data)

    def listen(
        self, worker: int, heard: Callable[[str, RequestId], object], alone: Callable[[], object]
    ) -> None:
        """Have what the others tell be heard, and that nobody watches over them any more; in the event loop."""
        receiving = self._pairs[worker][0]
        loop = asyncio.get_running_loop()

        def read() -> None:
            with suppress(OSError, ValueError):
                session, wanted = json.loads(receiving.recv(65_536))
                heard(session, wanted)

        def left() -> None:
            loop.remove_reader(self._watched)
            alone()

        loop.add_reader(receiving, read)
        loop.add_reader(self._watched, left)


class GatewayWorker:
    """One worker of a gateway.

    Args:
        listeners: Where it listens.
        endpoint: What answers.
        metrics: Counts connections.
        drain: Seconds that calls in flight may take to finish.
        patience: Seconds that a client may take to begin its first request.
        ready: Whether there is nothing that keeps calls from being carried out.
        links: What tells other workers.
    """

    def __init__(
        self,
        listeners: GatewaySockets,
        endpoint: GatewayHandler,
        metrics: Metrics,
        *,
        drain: float,
        patience: float,
        ready: Callable[[], bool],
        links: WorkerPipes | None = None,
    ) -> None:
        self._listeners = listeners
        self._endpoint = endpoint
        self._metrics = metrics
        self._links = links
        protocol = type("_Counted", (_Protocol,), {"metrics": metrics, "patience": patience})
        self._main = _Server(_config(endpoint, protocol, drain))
        health = _Health(metrics, lambda: not endpoint.draining and ready())
        self._watching = _Server(_config(health, H11Protocol, 1.0))

    def serve(self) -> None:
        """Serve until this process gets one of the `_ends`; then calls in flight are finished."""
        asyncio.run(self.run(signals=_ends()))

    def end(self) -> None:
        """Take nothing more, and end when what is in flight is done; in the event loop."""
        self._endpoint.draining = True
        self._main.should_exit = True

    def _beat(self) -> None:
        self._metrics.beat()
        asyncio.get_running_loop().call_later(_BEAT, self._beat)

    async def run(self, signals: Sequence[signal.Signals] = ()) -> None:
        """Serve until one of these signals comes, or `end` is called."""
        loop = asyncio.get_running_loop()
        for number in signals:
            loop.add_signal_handler(number, self.end)
        if self._links is not None:
            # Workers that nobody watches over would keep the address, and nobody could end them all.
            self._links.listen(self._metrics.worker, self._endpoint.cancel, self.end)
            self._beat()
        health = None
        if self._listeners.health is not None:
            health = asyncio.create_task(self._watching.serve(sockets=[self._listeners.health]))
        try:
            await self._main.serve(sockets=[self._listeners.main])
        finally:
            self._endpoint.draining = True
            await asyncio.to_thread(self._endpoint.close)
            if self._main.server_state.tasks:
                # What was cancelled is answered: it may be sent again.
                await asyncio.wait(self._main.server_state.tasks, timeout=_ANSWERS)
            self._watching.should_exit = True
            if health is not None:
                await health


def _ends() -> tuple[signal.Signals, ...]:
    """The signals that end a gateway; a lost terminal only where that is not to be outlasted."""
    lost = getattr(signal, "SIGHUP", signal.SIGTERM)
    ends = signal.SIGTERM, signal.SIGINT
    return ends if signal.getsignal(lost) is signal.SIG_IGN else (*ends, lost)


def _config(application: ASGIApp, protocol: Any, drain: float) -> Config:
    return Config(
        application,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=int(_IDLE),
        timeout_graceful_shutdown=max(1, round(drain)),
        backlog=_BACKLOG,
        limit_concurrency=_CONNECTIONS,
    )


# -- several workers -----------------------------------------------------------------------------


def run_workers(
    links: WorkerPipes,
    work: Callable[[int], None],
    beats: Callable[[int], float],
    *,
    drain: float,
    look: float = _LOOK,
) -> bool:
    """Run workers until this process gets one of the `_ends`; one that fails, or hangs, is started anew.

    Args:
        links: What they are told; for as many as there are to be.
        work: What each does, given its number; in a process of its own.
        beats: How often the event loop of a worker has said that it turns; 0 before it does.
        drain: Seconds that they have to end.
        look: Seconds between two looks at that.

    Returns:
        Whether none of them could begin, which ends them all.
    """
    waking, wake = os.pipe()
    os.set_blocking(wake, False)
    ending = cannot = served = False

    def end(_number: int, _frame: object) -> None:
        nonlocal ending
        ending = True

    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    before = {one: signal.signal(one, end) for one in _ends()}
    before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, int] = {}
    due: dict[int, float] = dict.fromkeys(range(links.workers), 0.0)
    watch = _Watch(beats)
    looks = time.monotonic() + look
    try:
        while not ending:
            now = time.monotonic()
            for number, when in list(due.items()):
                if when <= now:
                    del due[number]
                    running[_fork(number, work, (waking, wake), links)] = number
            rest = min((looks, *due.values())) - now
            select.select([waking], [], [], max(0.0, rest))
            _read_all(waking)
            served = served or any(beats(number) for number in range(links.workers))
            for number, status in _ended(running):
                if os.waitstatus_to_exitcode(status) == _CANNOT and not served:
                    # Later it may be a database that is away for a while, and the others go on.
                    cannot = ending = True
                _log.warning("worker %d has ended and is started anew", number)
                due[number] = time.monotonic() + _AGAIN
            if time.monotonic() >= looks:
                looks = time.monotonic() + look
                for process in watch.hanging(running):
                    _log.error("worker %d hangs and is killed", running[process])
                    os.kill(process, signal.SIGKILL)
        _stop(running, waking, drain + _LAST)
        return cannot
    finally:
        signal.set_wakeup_fd(-1)
        for one, handler in before.items():
            signal.signal(one, handler)
        os.close(waking)
        os.close(wake)


class _Watch:
    """Finds the workers whose event loop does not turn any more.

    It counts looks, not seconds: where all of them were stopped for a while, or the machine was, that is one look.

    Args:
        beats: As for `run_workers`.
    """

    def __init__(self, beats: Callable[[int], float]) -> None:
        self._beats = beats
        self._seen: dict[int, tuple[float, int]] = {}

    def hanging(self, running: Mapping[int, int]) -> list[int]:
        """Those that say nothing any more, at a further look; one that does not serve yet may take its time."""
        before, self._seen = self._seen, {}
        for process, number in running.items():
            beat = self._beats(number)
            seen, silent = before.get(process, (0.0, 0))
            self._seen[process] = (beat, silent + 1 if beat and beat == seen else 0)
        return [process for process, (_, silent) in self._seen.items() if silent >= _LOOKS]


def _fork(number: int, work: Callable[[int], None], pipe: Sequence[int], links: WorkerPipes) -> int:
    """A process that does its work and ends, whatever comes."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for one in (*_ends(), signal.SIGCHLD):
            signal.signal(one, signal.SIG_DFL)
        for end in pipe:
            os.close(end)
        links.begin()
        work(number)
        code = 0
    except FilepactError as error:
        code = _CANNOT
        _log.error("%s", error.report())
    except BaseException:  # noqa: BLE001 - whatever it is, the process ends here
        _log.exception("worker %d has failed", number)
    finally:
        sys.stderr.flush()
        os._exit(code)


def _read_all(waking: int) -> None:
    with suppress(BlockingIOError):
        os.set_blocking(waking, False)
        while os.read(waking, 4_096):
            pass


def _ended(running: dict[int, int]) -> list[tuple[int, int]]:
    """The numbers of workers that have ended, which are running no more, and how they did."""
    found: list[tuple[int, int]] = []
    for process in list(running):
        with suppress(ChildProcessError):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended == process:
                found.append((running.pop(process), status))
    return found


def _stop(running: dict[int, int], waking: int, seconds: float) -> None:
    for process in running:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    until = time.monotonic() + seconds
    while running and time.monotonic() < until:
        _ended(running)
        if running:
            select.select([waking], [], [], min(1.0, max(0.0, until - time.monotonic())))
            _read_all(waking)
    for process in running:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    for process in running:
        with suppress(ChildProcessError):
            os.waitpid(process, 0)
