"""All servers of all roots, on an event loop of their own, for callers that know no event loop."""

from __future__ import annotations

import contextlib
import re
import threading
from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING, Any, Final, TypeVar

from filepact.domain.policy import AccessRequest, Policy
from filepact.values import late_regex, replace
from filepact_diagnostics.lsp.forkserver import GIBIBYTE, ProcessOptions
from filepact_diagnostics.lsp.spec import PAUSES, beneath
from filepact_supervisor.server_sandbox import ServerSandbox

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from filepact_diagnostics.lsp.diagnostics import (
        FileDiagnostics,
        ServerDiagnostics,
        ServerStatus,
    )
    from filepact_diagnostics.lsp.documents import DiskChange
    from filepact_diagnostics.lsp.features import LanguageQuery, QueryAnswer
    from filepact_diagnostics.lsp.forkserver import ForkServer
    from filepact_diagnostics.lsp.session import ServerSession
    from filepact_diagnostics.lsp.spec import ServerSpec

__all__ = ["ServerPool"]

_T = TypeVar("_T")

_REAP_SECONDS: Final = 15.0
_STOP_SECONDS: Final = 15.0
_SLACK_SECONDS: Final = 5.0
_MOST_CHOSEN: Final = 5_000
_WITHHELD: Final = "its text names a file that may not be read"


class ServerPool:
    """One server for each pair of server and root, started when it is first needed.

    Every method may be called from any thread but the pool's own, and none raises because of a
    server.

    Args:
        servers: Those that may be used, in order of preference.
        environment: All variables that servers see.
        locate: The absolute path of a program by its name, or None where there is none; it looks
            nowhere in a root.
        idle: Seconds without use after which a server is stopped.
        pauses: Seconds before a server that has ended is started again, by how often it has.
        memory: Bytes that a server may use with all that it starts, where the system tells; it is
            started again then.  0 for any number.
        fork_server: Starts the servers, for a process that cannot any more.  They are all looked
            for now, since it starts no others.
        sandbox: Its roots are the folders that servers work in; those that are confined get it,
            with what is their own.
    """

    def __init__(
        self,
        servers: Iterable[ServerSpec],
        environment: Mapping[str, str],
        locate: Callable[[str], str | None],
        *,
        idle: float = 600.0,
        pauses: Sequence[float] = PAUSES,
        memory: int = 2 * GIBIBYTE,
        fork_server: ForkServer | None = None,
        sandbox: ServerSandbox | None = None,
    ) -> None:
        self._servers = {one.name: one.placed(locate) for one in servers}
        self._environment = dict(environment)
        self._locate = locate
        self._idle = idle
        self._pauses = tuple(pauses)
        self._memory = memory
        self._sandbox = sandbox or ServerSandbox("", (), ())
        self._policy: Policy | None = None
        self._naming: dict[str, tuple[int, bool]] = {}
        self._starter = None if fork_server is None else fork_server.start_supervisor
        self._programs: dict[str, str | None] = {}
        self._chosen: dict[tuple[str, str], tuple[ServerSpec, ...]] = {}
        self._sessions: dict[tuple[str, str], ServerSession] = {}
        self._preferred: dict[str, frozenset[str]] = {}
        self._facts: dict[str, dict[str, str]] = {}
        self._guard = threading.Lock()
        self._work: set[Future[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        if fork_server is not None:
            roots = self._sandbox.roots
            launches = [
                self._launch(one, root)
                for one in self.servers
                for root in roots
                if one.allowed_in(root) and self.program(one)
            ]
            fork_server.agree(launches, roots, self._environment)

    @property
    def servers(self) -> tuple[ServerSpec, ...]:
        """All that may be used, installed or not."""
        return tuple(self._servers.values())

    def servers_for(self, root: str, path: str) -> tuple[ServerSpec, ...]:
        """The servers for a file: of each role the preferred, or first, that knows it, is there and allowed.

        Args:
            root: Absolute.
            path: Absolute, beneath it.
        """
        found = self._chosen.get((root, path))
        if found is None:
            name = beneath(root, path)
            chosen: dict[str, ServerSpec] = {}
            preferred = self._preferred.get(root, frozenset())
            for server in sorted(
                self.servers, key=lambda one: not (one.named or one.name in preferred)
            ):
                if name is None or server.role in (*chosen, "projects"):
                    continue
                if server.language(name) is None or not server.allowed_in(root):
                    continue
                if self.program(server) is not None:
                    chosen[server.role] = server
            if len(self._chosen) >= _MOST_CHOSEN:
                self._chosen.clear()
            found = self._chosen[root, path] = tuple(chosen.values())
        return found

    def program(self, server: ServerSpec) -> str | None:
        """The path of a server's program; None if it or another that it needs is missing."""
        for name in (server.command[0], *server.needs):
            if name not in self._programs:
                self._programs[name] = self._locate(name)
        if any(self._programs[name] is None for name in server.needs):
            return None
        return self._programs[server.command[0]]

    def prefer(self, root: str, names: Iterable[str]) -> None:
        """Use some servers on a root before others of their role."""
        self._preferred[root] = frozenset(names)
        self._chosen.clear()

    def know(self, root: str, **facts: str) -> None:
        """Keep facts about a root for the announcements of its servers, such as ``solution_uri``."""
        self._facts.setdefault(root, {}).update(facts)

    # -- work -----------------------------------------------------------------------------

    def tell(self, changes: Sequence[DiskChange]) -> None:
        """Pass on what happened on the disk, to all servers that run; waits for nothing."""

        async def pass_on() -> None:
            for session in self._sessions.values():
                session.tell(changes)

        # Not only where there are sessions: one may be about to be made by a question on its way.
        if self._loop is not None:
            self._run(pass_on())

    def ask(
        self,
        root: str,
        files: Mapping[str, str],
        also: Mapping[str, str],
        seconds: float,
        *,
        patient: bool,
        rest: float | None = None,
        slow: Collection[str] = (),
        background: bool = False,
    ) -> Future[tuple[ServerDiagnostics, ...]]:
        """The diagnostics of files, by server.

        Each is asked about the files that it knows, and about dependents only if it looks from one
        file at another.

        Args:
            root: Absolute.
            files: Their texts as they are on the disk, by absolute path.
            also: The same of dependents, which did not change themselves.
            seconds: How long the servers have.
            patient: Whether servers that are starting are waited for; if not, they are started
                all the same.
            rest: How long dependents are waited for at most; None for as long as there is.
            slow: Servers that are asked and not waited for.
            background: Whether other questions come first.
        """

        def ask(one: ServerSession, some: dict[str, str]) -> Coroutine[Any, Any, ServerDiagnostics]:
            own = {path: text for path, text in some.items() if path in files}
            others = {path: text for path, text in some.items() if path not in files}
            wait = 0.0 if one.spec.name in slow else seconds
            more: Any = {"patient": patient, "rest": rest, "background": background}
            return one.ask(own, others, wait, as_of=one.changes, **more)

        return self._ask_each(root, self._shares(root, files, also), ask, {})

    def propose(
        self,
        root: str,
        proposed: Mapping[str, str],
        files: Mapping[str, str],
        seconds: float,
        *,
        patient: bool,
    ) -> Future[tuple[ServerDiagnostics, ...]]:
        """The diagnostics, by server, if files held other texts, which are then forgotten.

        Args:
            root: Absolute.
            proposed: The other texts, by absolute path.
            files: Texts as they are on the disk, of the proposed files that exist and of others
                to ask about.
            seconds: How long the servers have.
            patient: As for `ask`.
        """
        present = {path: text for path, text in files.items() if path in proposed}
        others = {path: text for path, text in files.items() if path not in proposed}
        known = self._shares(root, present, others)

        def ask(one: ServerSession, some: dict[str, str]) -> Coroutine[Any, Any, ServerDiagnostics]:
            there = known.get(one.spec.name, {})
            own = {path: text for path, text in there.items() if path in proposed}
            rest = {path: text for path, text in there.items() if path not in proposed}
            return one.propose(some, own, rest, seconds, as_of=one.changes, patient=patient)

        return self._ask_each(root, self._shares(root, proposed, {}), ask, files)

    def query(
        self,
        root: str,
        server: str,
        question: LanguageQuery,
        *,
        proposed: Mapping[str, str],
        files: Mapping[str, str],
        seconds: float,
    ) -> Future[tuple[QueryAnswer, ...]]:
        """One server's answer to a question about places in files.

        Args:
            root: Absolute.
            server: Its name.
            question: The question.
            proposed: Texts that it is shown in place of the disk's, by absolute path.
            files: Texts that it is shown as they are on the disk.
            seconds: How long it has, its start included.
        """

        async def ask() -> tuple[QueryAnswer, ...]:
            from filepact_diagnostics.lsp.features import QueryAnswer  # noqa: PLC0415 - as below

            if self._withholds(server, root) and any(
                self._names_protected(root, path, text)
                for path, text in (*files.items(), *proposed.items())
            ):
                return (QueryAnswer(server, state="refused", reason=_WITHHELD),)
            session = self._session(server, root)
            as_of = session.changes
            return (await session.query(question, proposed, files, seconds, as_of=as_of),)

        return self._submit(ask())

    def projects_server(self, root: str, path: str) -> ServerSpec | None:
        """The installed server that knows the projects of a file, which need not exist.

        Args:
            root: Absolute.
            path: Absolute, beneath it.
        """
        name = beneath(root, path)
        for server in self.servers:
            if server.role == "projects" and name and server.language(name) is not None:
                return server if self.program(server) is not None else None
        return None

    def projects(self, root: str, path: str, asked: Mapping[str, Any], seconds: float) -> Any:
        """Send a server, started if necessary, the command `filepact.projects`.

        Args:
            root: Absolute.
            path: Absolute, beneath it.
            asked: The command's argument.
            seconds: How long to wait in all.

        Returns:
            None where there is no such server, or it does not answer.
        """
        server = self.projects_server(root, path)
        if server is None:
            return None

        async def execute() -> Any:
            session = self._session(server.name, root)
            return await session.execute("filepact.projects", [asked], seconds)

        return self._run(execute(), seconds)

    def status(self) -> tuple[ServerStatus, ...]:
        """All servers that were started, and what they are doing."""

        async def look() -> tuple[ServerStatus, ...]:
            return tuple(session.status for session in self._sessions.values())

        return () if self._loop is None else self._run(look())

    def restart(self, root: str, *, announced: bool = False) -> None:
        """End the servers of a root; each is started again when it is next needed.

        Args:
            root: Absolute.
            announced: Only those that are told after their start what was opened.
        """

        async def end() -> None:
            import asyncio  # noqa: PLC0415 - not before a server is started

            keys = [
                key
                for key, one in self._sessions.items()
                if key[1] == root and (one.spec.announce or not announced)
            ]
            ending = [self._sessions.pop(key) for key in keys]
            await asyncio.gather(*(one.stop() for one in ending))

        if self._loop is not None:
            self._run(end())

    def close(self) -> None:
        """End all servers and the event loop; the pool cannot be used any more."""
        with self._guard:
            loop, thread, self._closed = self._loop, self._thread, True
        if loop is None or thread is None:
            return
        import asyncio  # noqa: PLC0415 - not before a server is started

        # Whoever still waits for a server would start it again.
        for future in list(self._work):
            future.cancel()

        async def end() -> None:
            sessions = list(self._sessions.values())
            self._sessions.clear()
            await asyncio.gather(*(one.stop() for one in sessions), return_exceptions=True)

        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(end(), loop).result(_STOP_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_STOP_SECONDS)
        self._loop = self._thread = None

    # -- sessions -------------------------------------------------------------------------

    def _shares(
        self, root: str, files: Mapping[str, str], also: Mapping[str, str]
    ) -> dict[str, dict[str, str]]:
        """The files of each server, by its name; dependents come behind the files themselves."""
        shares: dict[str, dict[str, str]] = {}
        for path, text in files.items():
            for server in self.servers_for(root, path):
                shares.setdefault(server.name, {})[path] = text
        for path, text in also.items():
            for server in self.servers_for(root, path):
                if server.sync.unsaved != "alone":
                    shares.setdefault(server.name, {}).setdefault(path, text)
        return shares

    def _session(self, name: str, root: str) -> ServerSession:
        """The session of a server on a root, made on the pool's loop."""
        found = self._sessions.get((name, root))
        if found is None:
            from filepact_diagnostics.lsp.session import ServerSession  # noqa: PLC0415 - as above

            server = self._servers[name]
            launch, facts = self._launch(server, root), self._facts.get(root, {})
            found = self._sessions[name, root] = ServerSession(server, launch, facts, self._pauses)
        return found

    def _launch(self, server: ServerSpec, root: str) -> ProcessOptions:
        program = self.program(server) or server.command[0]
        found = {name: place for name in server.needs if (place := self._programs.get(name))}
        command = (program, *server.filled(found)[1:])
        sandbox = self._sandboxed(server, program, found) if server.is_confined(root) else ""
        return ProcessOptions(
            command, root, self._environment, self._memory, sandbox, self._starter
        )

    def _sandboxed(self, server: ServerSpec, program: str, needs: Mapping[str, str | None]) -> str:
        """The sandbox of a server, as JSON."""
        programs = (program, *(place for place in needs.values() if place))
        toolchain = server.folders_of(self._environment)
        own = replace(self._sandbox, name=server.name, programs=programs, toolchain=toolchain)
        return own.to_json()

    def _ask_each(
        self,
        root: str,
        shares: Mapping[str, dict[str, str]],
        ask: Callable[[ServerSession, dict[str, str]], Coroutine[Any, Any, ServerDiagnostics]],
        others: Mapping[str, str],
    ) -> Future[tuple[ServerDiagnostics, ...]]:
        async def every() -> tuple[ServerDiagnostics, ...]:
            import asyncio  # noqa: PLC0415 - not before a server is started

            work = [ask(self._session(name, root), some) for name, some in shares.items()]
            # A single one needs no task of its own.
            answers = [await work[0]] if len(work) == 1 else await asyncio.gather(*work)
            return tuple(
                self._without_protected(root, one, shares[one.server], others)
                if self._withholds(one.server, root)
                else one
                for one in answers
            )

        return self._submit(every())

    def _without_protected(
        self,
        root: str,
        answer: ServerDiagnostics,
        texts: Mapping[str, str],
        earlier: Mapping[str, str],
    ) -> ServerDiagnostics:
        """An answer without what a confined server says of texts that name a file that may not be read.

        It cannot read such a file.  That it is there, or is not, would show all the same.
        """

        def told(one: FileDiagnostics, some: Mapping[str, str]) -> FileDiagnostics:
            text = some.get(one.path) or earlier.get(one.path, "")
            if not self._names_protected(root, one.path, text):
                return one
            return replace(one, diagnostics=(), complete=False, notes=(_WITHHELD,), known=False)

        return replace(
            answer,
            reports=tuple(told(one, texts) for one in answer.reports),
            before=tuple(told(one, {}) for one in answer.before),
        )

    def _withholds(self, server: str, root: str) -> bool:
        """Whether what a server says of a text tells which of the files are there that it names."""
        one = self._servers[server]
        return one.risk != "evaluates" and one.is_confined(root)

    def _names_protected(self, root: str, path: str, text: str) -> bool:
        """Whether a text names a file that may not be read; remembered for the last text of each file."""
        mark, known = self._naming.get(path, (None, False))
        if mark != hash(text):
            self._policy = self._policy or Policy(*self._sandbox.rules)
            known = names_protected(text, root, beneath(root, path) or "", self._policy)
            if len(self._naming) >= _MOST_CHOSEN:
                self._naming.clear()
            self._naming[path] = hash(text), known
        return known

    # -- the loop -------------------------------------------------------------------------

    def _submit(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Run something on the pool's loop; it ends early when its future is cancelled.

        Raises:
            RuntimeError: The pool is closed.
        """
        import asyncio  # noqa: PLC0415 - not before a server is started

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
        """Run something on the pool's loop and wait for it."""
        future = self._submit(work)
        try:
            # A server's own limits count; this one is for mistakes of ours.
            return future.result(seconds + _SLACK_SECONDS + _STOP_SECONDS)
        except BaseException:
            future.cancel()
            raise

    def _started(self) -> asyncio.AbstractEventLoop:
        import asyncio  # noqa: PLC0415 - not before a server is started

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
        import asyncio  # noqa: PLC0415 - not before a server is started

        asyncio.set_event_loop(loop)
        reaper = loop.create_task(self._reap())
        loop.run_forever()
        reaper.cancel()
        loop.run_until_complete(asyncio.gather(reaper, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    async def _reap(self) -> None:
        """End servers that nobody has used for a while."""
        import asyncio  # noqa: PLC0415 - not before a server is started

        while True:
            await asyncio.sleep(min(_REAP_SECONDS, max(self._idle / 2, 0.05)))
            now = asyncio.get_running_loop().time()
            for key, session in list(self._sessions.items()):
                if now - session.used > self._idle and not session.busy:
                    del self._sessions[key]
                    await session.stop()


_QUOTED: Final = late_regex(r"""(?=(["'`])([^"'`\n]{1,300})\1)|<([^<>\n]{1,300})>""")
_EMBEDDED: Final = late_regex(r"^[ \t]*//go:embed[ \t]+(.{1,1000})", re.MULTILINE)


def names_protected(text: str, root: str, path: str, policy: Policy) -> bool:
    """Whether a text names, as a program would include, import or embed it, a file that may not be read.

    Args:
        text: Of the file.
        root: The folder that the path starts at, absolute.
        path: The file, beneath it; relative names start at its folder.
        policy: The rules.
    """
    named = {found[2] or found[3] for found in _QUOTED.finditer(text)}
    named |= {one for found in _EMBEDDED.finditer(text) for one in found[1].split()}
    suspicion = policy.suspicion("read")
    for name in named:
        if any(map(suspicion, filter(None, name.split("/")))):
            place = normpath(join(dirname(path), name.removeprefix(f"{root.rstrip('/')}/")))
            if policy.decide(AccessRequest(root, place.lstrip("/"), "read")).verdict != "allow":
                return True
    return False
