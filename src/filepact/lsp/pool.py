"""All servers of all roots, on an event loop of their own, for callers that know no event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

from filepact.lsp.launch import GIBIBYTE, Launch
from filepact.lsp.running import PAUSES
from filepact.lsp.service import Service
from filepact.lsp.watched import beneath

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from filepact.lsp.changes import Change
    from filepact.lsp.diagnostics import Report
    from filepact.lsp.nursery import Nursery
    from filepact.lsp.outcome import Preview, Status, Update
    from filepact.lsp.servers import Server
    from filepact.lsp.survey import Survey

__all__ = ["Pool"]

_T = TypeVar("_T")

_REAP_SECONDS: Final = 15.0
_STOP_SECONDS: Final = 15.0
_SLACK_SECONDS: Final = 5.0
_CHOSEN_AT_MOST: Final = 5_000


class Pool:
    """One server for each pair of server and root, started when it is first needed.

    Every method may be called from any thread but the pool's own, and none raises because of a
    server.

    Args:
        servers: Those that may be used, in order of preference.
        environment: All variables that servers see.
        locate: The absolute path of a program by its name, or None where there is none; it looks
            nowhere in a root.  It also knows the names that begin with `filepact-`.
        idle: Seconds without use after which a server is stopped.
        pauses: Seconds before a server that has ended is started again, by how often it has.
        memory: Bytes that a server may use with all that it starts, where the system tells; it is
            started again then.  0 for any number.
        nursery: Starts the servers, for a process that cannot any more.  They are all looked for
            now, since it starts no others.
        roots: The folders that it may start them in, and in those beneath.
    """

    def __init__(
        self,
        servers: Iterable[Server],
        environment: Mapping[str, str],
        locate: Callable[[str], str | None],
        *,
        idle: float = 600.0,
        pauses: Sequence[float] = PAUSES,
        memory: int = 2 * GIBIBYTE,
        nursery: Nursery | None = None,
        roots: Iterable[str] = (),
    ) -> None:
        self._servers = tuple(one.placed(locate) for one in servers)
        self._environment = dict(environment)
        self._locate = locate
        self._idle = idle
        self._pauses = tuple(pauses)
        self._memory = memory
        self._starter = None if nursery is None else nursery.start_warden
        self._found: dict[str, str | None] = {}
        self._chosen: dict[tuple[str, str], tuple[Server, ...]] = {}
        self._services: dict[tuple[str, str], Service] = {}
        self._facts: dict[str, dict[str, str]] = {}
        self._guard = threading.Lock()
        self._work: set[Future[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        if nursery is not None:
            launches = [self._launch(one, "/") for one in self._servers if self.program(one)]
            nursery.agree(launches, roots, self._environment)

    @property
    def servers(self) -> tuple[Server, ...]:
        """All that may be used, installed or not."""
        return self._servers

    def servers_for(self, root: str, path: str) -> tuple[Server, ...]:
        """The servers for a file: of each role the first that knows it and is installed.

        Args:
            root: Absolute.
            path: Absolute, beneath it.
        """
        found = self._chosen.get((root, path))
        if found is None:
            name = beneath(root, path)
            chosen: dict[str, Server] = {}
            for server in self._servers:
                if name is None or server.role in chosen or server.language(name) is None:
                    continue
                if self.program(server) is not None:
                    chosen[server.role] = server
            if len(self._chosen) >= _CHOSEN_AT_MOST:
                self._chosen.clear()
            found = self._chosen[root, path] = tuple(chosen.values())
        return found

    def program(self, server: Server) -> str | None:
        """Where a server's program is; None if it, or another that it needs, is not installed."""
        for name in (server.command[0], *server.needs):
            if name not in self._found:
                self._found[name] = self._locate(name)
        if any(self._found[name] is None for name in server.needs):
            return None
        return self._found[server.command[0]]

    def know(self, root: str, **facts: str) -> None:
        """Keep what servers of a root are told after their start, such as ``solution_uri``."""
        self._facts.setdefault(root, {}).update(facts)

    def tell(self, root: str, changes: Sequence[Change]) -> None:
        """Pass on what happened on the disk, to the servers that run; waits for nothing."""

        async def pass_on() -> None:
            for service in self._of(root):
                service.tell(changes)

        if self._services:
            self._run(pass_on())

    def report(
        self, root: str, files: Mapping[str, str], seconds: float = 2.0
    ) -> tuple[Report, ...]:
        """What all servers find in files; servers that do not run are started.

        Args:
            root: Absolute.
            files: Their texts as they are on the disk, by absolute path.
            seconds: How long to wait in all.
        """
        work = [
            (lambda one=service, some=some: one.report(some, seconds))
            for service, some in self.shares(root, files)
        ]
        return tuple(one for several in self._all(work, seconds) for one in several)

    def update(
        self,
        root: str,
        changes: Sequence[Change],
        files: Mapping[str, str],
        seconds: float = 2.0,
    ) -> tuple[Update, ...]:
        """Pass on what happened on the disk, and what each server makes of it.

        Args:
            root: Absolute.
            changes: What happened.
            files: What to ask about, with their texts as they are now, by absolute path.
            seconds: How long to wait in all.
        """
        shares = dict(self.shares(root, files))
        for service in self._of(root):
            shares.setdefault(service, {})
        work = [
            (lambda one=service, some=some: one.update(changes, some, seconds))
            for service, some in shares.items()
        ]
        return tuple(self._all(work, seconds))

    def preview(
        self,
        root: str,
        proposed: Mapping[str, str],
        files: Mapping[str, str],
        seconds: float = 2.0,
    ) -> tuple[Preview, ...]:
        """What each server would find if some files held other texts; nothing of it stays.

        Args:
            root: Absolute.
            proposed: The other texts, by absolute path.
            files: Texts as they are on the disk, of the proposed files that exist and of others
                to ask about.
            seconds: How long to wait in all.
        """
        known = dict(self.shares(root, files))
        work = [
            (lambda one=service, some=some: one.preview(some, known.get(one, {}), seconds))
            for service, some in self.shares(root, proposed)
        ]
        return tuple(self._all(work, seconds))

    def survey(self, root: str, seconds: float = 10.0) -> tuple[Survey, ...]:
        """Which files of a whole project its running servers find something wrong with.

        Args:
            root: Absolute.
            seconds: How long to wait in all.
        """
        work = [(lambda one=service: one.survey(seconds)) for service in self._of(root)]
        return tuple(self._all(work, seconds))

    def status(self) -> tuple[Status, ...]:
        """All servers that were started, and what they are doing."""

        async def look() -> tuple[Status, ...]:
            return tuple(service.status for service in self._services.values())

        return self._run(look()) if self._services else ()

    def restart(self, root: str) -> None:
        """End all servers of a root; each is started again when it is next needed."""

        async def end() -> None:
            for key in [key for key in self._services if key[1] == root]:
                await self._services.pop(key).stop()

        if self._services:
            self._run(end())

    def close(self) -> None:
        """End all servers and the event loop; the pool cannot be used any more."""
        with self._guard:
            loop, thread, self._closed = self._loop, self._thread, True
        if loop is None or thread is None:
            return
        # Whoever still waits for a server would start it again.
        for future in list(self._work):
            future.cancel()

        async def end() -> None:
            services = list(self._services.values())
            self._services.clear()
            await asyncio.gather(*(one.stop() for one in services), return_exceptions=True)

        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(end(), loop).result(_STOP_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_STOP_SECONDS)
        self._loop = self._thread = None

    def shares(self, root: str, files: Mapping[str, str]) -> list[tuple[Service, dict[str, str]]]:
        """The files of each server, for work that is then submitted.

        Args:
            root: Absolute.
            files: Their texts by absolute path.
        """
        shares: dict[str, dict[str, str]] = {}
        by_name = {server.name: server for server in self._servers}
        for path, text in files.items():
            for server in self.servers_for(root, path):
                shares.setdefault(server.name, {})[path] = text
        return [(self._service(by_name[name], root), some) for name, some in shares.items()]

    def _of(self, root: str) -> list[Service]:
        return [service for (_, place), service in list(self._services.items()) if place == root]

    def _service(self, server: Server, root: str) -> Service:
        key = (server.name, root)
        there = self._services.get(key)
        if there is not None:
            return there

        async def make() -> Service:
            if key not in self._services:
                launch, facts = self._launch(server, root), self._facts.get(root, {})
                self._services[key] = Service(server, launch, facts, self._pauses)
            return self._services[key]

        return self._run(make())

    def _launch(self, server: Server, root: str) -> Launch:
        program = self.program(server) or server.command[0]
        found = {name: place for name in server.needs if (place := self._found.get(name))}
        command = (program, *server.filled(found)[1:])
        return Launch(command, root, self._environment, self._memory, self._starter)

    def _all(
        self, work: Sequence[Callable[[], Coroutine[Any, Any, _T]]], seconds: float
    ) -> list[_T]:
        async def together() -> list[_T]:
            if len(work) == 1:  # without a task of its own
                return [await work[0]()]
            return list(await asyncio.gather(*(one() for one in work)))

        return self._run(together(), seconds) if work else []

    def submit(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Do something on the pool's loop; it ends early when its future is cancelled.

        Raises:
            RuntimeError: The pool is closed.
        """
        try:
            loop = self._started()
        except RuntimeError:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        self._work.add(future)
        future.add_done_callback(self._work.discard)
        return future

    def _run(self, work: Coroutine[Any, Any, _T], seconds: float = 0.0) -> _T:
        """Do something on the pool's loop and wait for it."""
        future = self.submit(work)
        try:
            # A server's own limits count; this one is for mistakes of ours.
            return future.result(seconds + _SLACK_SECONDS + _STOP_SECONDS)
        except BaseException:
            future.cancel()
            raise

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._guard:
            if self._closed:
                raise RuntimeError("the pool is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._serve, args=(self._loop,), name="language servers", daemon=True
                )
                self._thread.start()
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        reaper = loop.create_task(self._reap())
        loop.run_forever()
        reaper.cancel()
        loop.run_until_complete(asyncio.gather(reaper, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    async def _reap(self) -> None:
        """End servers that nobody has used for a while."""
        while True:
            await asyncio.sleep(min(_REAP_SECONDS, max(self._idle / 2, 0.05)))
            now = asyncio.get_running_loop().time()
            for key, service in list(self._services.items()):
                if now - service.used > self._idle and not service.busy:
                    del self._services[key]
                    await service.stop()
