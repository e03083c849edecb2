"""One server at work on one root: started when needed, kept in step with the files, asked.

Whatever goes wrong with the server is a value in an answer and never an exception: nothing that a
language server does may stand in the way of a write.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from filepact.values import replace
from filepact_diagnostics.lsp.diagnostics import (
    FileDiagnostics,
    ServerDiagnostics,
    ServerStatus,
)
from filepact_diagnostics.lsp.failures import RequestFailedError, RequestTimeoutError, ServerError
from filepact_diagnostics.lsp.features import QueryAnswer, UnknownMethodError
from filepact_diagnostics.lsp.lifecycle import ServerLifecycle
from filepact_diagnostics.lsp.sync import DocumentSync, ServerTurns
from filepact_wire.uris import uri_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from filepact_diagnostics.lsp.client import LanguageClient
    from filepact_diagnostics.lsp.documents import DiskChange
    from filepact_diagnostics.lsp.features import LanguageQuery
    from filepact_diagnostics.lsp.forkserver import ProcessOptions
    from filepact_diagnostics.lsp.spec import ServerSpec

__all__ = ["ServerSession"]

_WITHDRAW_SECONDS: Final = 4.0
_SILENT_FACTOR: Final = 3
_LONGEST_QUESTION: Final = 120.0
_LONGEST_REASON: Final = 500
_BUSY: Final = "the server is busy with something else"
_NEW_SHARE: Final = 0.6
_HUNG_SECONDS: Final = 1.2
_LATER: Final = "there was no time left to ask about it"
_NOT_WITHDRAWN: Final = "it was stopped, to be rid of a proposed text that it had kept in mind"
_TURN: Final = 0.2
_FIRST_PACE: Final = 0.025
_MOST_AT_ONCE: Final = 60
_MOST_BEHIND: Final = 2
_MOST_YIELDED: Final = 3


class ServerSession:
    """A server on a root, for one question after the other.

    Every method belongs to one event loop.

    Args:
        spec: The server.
        launch: How it is started; the folder is the root.
        facts: Values for the braces in the server's announcements.
        pauses: Seconds before it is started again, by how often it has ended.

    Attributes:
        used: The loop's time when it was last used.
    """

    def __init__(
        self,
        spec: ServerSpec,
        launch: ProcessOptions,
        facts: Mapping[str, str],
        pauses: Sequence[float],
    ) -> None:
        self.spec = spec
        self._launch = launch
        self._loop = asyncio.get_running_loop()
        self._turns = ServerTurns()
        self._sync = DocumentSync(spec, launch.folder, facts)
        self._lifecycle = ServerLifecycle(spec, launch, self._begin, pauses)
        self._questions: dict[str, tuple[int, asyncio.Task[FileDiagnostics]]] = {}
        self._told: set[str] = set()
        self._silent_for = 0.0
        self._first_report_in: float | None = None
        self._pace = _FIRST_PACE
        self._yielded = 0
        self._idle: tuple[int, int, float] | None = None
        self._proof: asyncio.Task[None] | None = None
        self.used = self._loop.time()

    @property
    def status(self) -> ServerStatus:
        """The present state of the server."""
        lifecycle, client = self._lifecycle, self._lifecycle.client
        return ServerStatus(
            *(self.spec.name, self._launch.folder, lifecycle.state),
            0 if client is None else client.pid,
            "" if client is None else client.version,
            len(self._sync.documents.paths),
            lifecycle.starts,
            lifecycle.started_in,
            self._first_report_in,
            lifecycle.message,
        )

    @property
    def busy(self) -> bool:
        """Whether somebody is waiting for it."""
        return self._turns.busy

    @property
    def changes(self) -> int:
        """How many changes of files it was told of."""
        return self._sync.changes

    def tell(self, changes: Sequence[DiskChange]) -> None:
        """Note what happened on the disk; the server hears of it before it is next asked."""
        self._sync.note(changes)
        if self._lifecycle.state == "ready" and not self._turns.busy:
            self._sync.deliver()

    async def ask(
        self,
        files: Mapping[str, str],
        others: Mapping[str, str],
        seconds: float,
        *,
        as_of: int,
        patient: bool = True,
        rest: float | None = None,
        background: bool = False,
    ) -> ServerDiagnostics:
        """The diagnostics of files.

        Args:
            files: Their texts as they are on the disk, by absolute path.
            others: The same of files to ask about when these are answered, a few at a time.
            seconds: How long to wait in all.
            as_of: The session's `changes` when these texts were read.
            patient: Whether a server that starts is waited for; if not, it is started all the same.
            rest: How long to wait for the others at most; None for as long as there is.
            background: Whether others may come first, between two of the others.
        """
        began = self.used = self._loop.time()
        absent = self._absent([*files, *others], patient=patient)
        if absent is not None:
            return absent
        self._sync.count_events()
        deadline = began + seconds
        if await self._turns.acquire(deadline, urgent=not background):
            try:
                reports = await self._reports(files, deadline, as_of)
                if all(one.fresh for one in reports):
                    end = deadline if rest is None else min(deadline, self._loop.time() + rest)
                    reports += await self._in_turn(others, end, as_of, background=background)
                else:
                    reports += self._unknown(others, _LATER)
            finally:
                self._release()
        else:
            reports = self._unknown([*files, *others], _BUSY)
        lifecycle = self._lifecycle
        answer = ServerDiagnostics(
            self.spec.name,
            reports,
            seconds=self._loop.time() - began,
            changes=self._sync.changes,
            event=self._sync.take_events(),
            state="answered",
        )
        reason = next((one.reason for one in reports if not one.fresh), "")
        if lifecycle.state in ("waiting", "broken") and lifecycle.message:
            return replace(answer, state="failed", message=lifecycle.message)
        if self._sync.blind:
            return replace(answer, state="stale", message=self._sync.blind)
        return replace(answer, state="pending", message=reason) if reason else answer

    async def propose(
        self,
        proposed: Mapping[str, str],
        files: Mapping[str, str],
        others: Mapping[str, str],
        seconds: float,
        *,
        as_of: int,
        patient: bool = True,
    ) -> ServerDiagnostics:
        """The diagnostics if some files held other texts; the server then forgets these texts.

        When nobody waits, the server has to show that it has the disk's texts again.

        Args:
            proposed: The other texts, by absolute path.
            files: Texts as they are on the disk, of the proposed files that exist.
            others: The same of others, to ask about when these are answered, a few at a time.
            seconds: How long to wait in all.
            as_of: As for `ask`.
            patient: As for `ask`.
        """
        began = self.used = self._loop.time()
        deadline = began + seconds
        absent = self._absent([*proposed, *others], patient=patient)
        if absent is not None:
            return replace(absent, before=absent.reports)
        if not await self._turns.acquire(deadline):
            return self._proposal((), self._unknown([*proposed, *others], ""), began, _BUSY)
        # Where all files are new, another one has to show that nothing stays.
        known = {**files} or dict(list(others.items())[:1])
        before: tuple[FileDiagnostics, ...] = ()
        shown = False
        try:
            before = await self._reports(known, deadline, as_of, patient=patient)
            reason = next((one.reason for one in before if not one.fresh), "")
            if not reason and not self._sync.documents.kind.texts:
                reason = "the server takes no texts that are not on the disk"
            if reason:
                unknown = self._unknown([*proposed, *others], "")
                return self._proposal(before, unknown, began, reason)
            shown = True
            try:
                after = await self._reports(dict(proposed), deadline, None, patient=patient)
                now = self._loop.time()
                after += await self._in_turn(others, now + (deadline - now) * _NEW_SHARE, as_of)
            finally:
                self._sync.withdraw(proposed, files, as_of)
            # Where something is found it has to be known whether it is new.
            asked = [one for one in after if one.fresh and one.path in others.keys() - known.keys()]
            asked.sort(key=lambda one: not one.diagnostics)
            left = {one.path: others[one.path] for one in asked}
            before += await self._in_turn(left, deadline, as_of)
            reason = next((one.reason for one in after if not one.fresh), "")
            answer = self._proposal(before, after, began, reason)
            sync = self.spec.sync
            unseen = sync.unsaved == "nothing" or (
                sync.unsaved_new == "nothing" and not proposed.keys() <= files.keys()
            )
            return replace(answer, complete=answer.complete and not unseen)
        finally:
            if shown and known:
                was = before[: len(known)]
                self._proof = asyncio.create_task(self._prove_withdrawn(known, was, as_of))
            else:
                self._release()

    async def query(
        self,
        question: LanguageQuery,
        proposed: Mapping[str, str],
        files: Mapping[str, str],
        seconds: float,
        *,
        as_of: int,
    ) -> QueryAnswer:
        """The answer to a question about places in files; nothing that is shown for it stays.

        Args:
            question: The question.
            proposed: Texts that the disk does not have, by absolute path.
            files: Texts as they are on the disk, which it is shown where there is no other.
            seconds: How long to wait in all; a server that does not run is started.
            as_of: As for `ask`.
        """
        name, texts = self.spec.name, {**files, **proposed}
        deadline = self._loop.time() + seconds
        if not await self._turns.acquire(deadline):
            return QueryAnswer(name, state="late", reason=_BUSY)
        try:
            client = await self._shown(texts, deadline, as_of)
            await client.catch_up(deadline)
            value = await question.ask(client, self._sync.documents, deadline)
            self._sync.confirm()
            if self._sync.racy:
                await self._sync.repeat_racy(texts)
                value = await question.ask(client, self._sync.documents, deadline)
            return QueryAnswer(name, value, client.capabilities.unit)
        except UnknownMethodError as error:
            return QueryAnswer(name, state="lacking", reason=str(error))
        except RequestFailedError as error:
            return QueryAnswer(name, state="refused", reason=error.message[:_LONGEST_REASON])
        except RequestTimeoutError as error:
            return QueryAnswer(name, state="late", reason=str(error))
        except ServerError as error:
            return QueryAnswer(name, state="failed", reason=str(error))
        finally:
            if proposed:
                self._sync.withdraw(proposed, files, as_of)
            self._release()

    async def execute(self, command: str, arguments: Sequence[Any], seconds: float) -> Any:
        """The answer to one of the server's commands; None if there is none.

        Args:
            command: Its name.
            arguments: Values that JSON knows.
            seconds: How long to wait in all.
        """
        self.used = self._loop.time()
        deadline = self.used + seconds
        if not await self._turns.acquire(deadline):
            return None
        try:
            self._sync.deliver()
            client = await self._lifecycle.ready(deadline)
            self._sync.deliver()
            return await client.execute(command, arguments, deadline)
        except ServerError:
            return None
        finally:
            self._release()

    async def stop(self) -> None:
        """End the server; it is started again when it is next needed."""
        proof, self._proof = self._proof, None
        if proof is not None and proof is not asyncio.current_task():
            proof.cancel()
            await asyncio.gather(proof, return_exceptions=True)
        questions, self._questions = self._questions, {}
        for _stamp, task in questions.values():
            task.cancel()
        await asyncio.gather(*(task for _, task in questions.values()), return_exceptions=True)
        await self._lifecycle.stop()

    def _begin(self, client: LanguageClient) -> None:
        """Bring a new server to where the last one was."""
        self._first_report_in = None
        self._sync.begin(client)

    def _absent(self, files: Iterable[str], *, patient: bool) -> ServerDiagnostics | None:
        """The answer of a server that is not waited for, which is started; None if it is asked."""
        self._lifecycle.wake()
        state = self._lifecycle.state
        if state == "ready" or (state in ("starting", "waiting") and patient):
            return None
        starting = state == "starting"
        reason = "the server is starting" if starting else self._lifecycle.message
        return ServerDiagnostics(
            self.spec.name,
            self._unknown(files, reason),
            "pending" if starting else "failed",
            reason,
            changes=self._sync.changes,
        )

    async def _reports(
        self,
        files: Mapping[str, str],
        deadline: float,
        as_of: int | None,
        *,
        give_way: bool = False,
        patient: bool = False,
    ) -> tuple[FileDiagnostics, ...]:
        """The diagnostics of files; the caller holds the lock.

        With `patient` a server that ends while it is asked is started and asked again, once.
        """
        if patient:
            found = await self._reports(files, deadline, as_of)
            if self._lifecycle.state in ("ready", "broken"):
                return found
        try:
            client = await self._shown(files, deadline, as_of)
        except ServerError as error:
            return self._unknown(files, str(error))
        asking = self._ask_shown(client, files, deadline)
        if as_of is None or not give_way:
            return await asking
        known = await self._turns.unless_urgent(asking, lambda: self._sync.outdated(files, as_of))
        return self._unknown(files, _LATER) if known is None else known

    async def _in_turn(
        self, files: Mapping[str, str], deadline: float, as_of: int, *, background: bool = False
    ) -> tuple[FileDiagnostics, ...]:
        """The diagnostics of files, a few at a time; with `background` until somebody else waits."""
        found: tuple[FileDiagnostics, ...] = ()
        left = list(files.items())
        while left:
            client, began = self._lifecycle.client, self._loop.time()
            # One that has given way often has its turn.
            yields = background and self._yielded < _MOST_YIELDED
            late = began >= deadline or (yields and self._turns.urgent > 0)
            if not background and deadline - began < self._pace:
                self._pace, late = self._pace / 2, True  # Not begun; the next question may try it.
            if client is None or client.end_reason or late:
                self._yielded += background
                break
            # A server that publishes is waited for as long for one file as for many.
            count = len(left) if self.spec.asking == "push" else max(int(_TURN / self._pace), 1)
            count = min(count, _MOST_BEHIND) if background else count
            some, left = dict(left[:count]), left[count:]
            self._sync.show(some, as_of)
            asking = self._ask_shown(client, some, deadline)
            if yields:
                reports = await self._turns.unless_urgent(asking) or self._unknown(some, _LATER)
            else:
                reports = await asking
            found += reports
            if not all(one.fresh for one in reports):
                self._yielded += yields
                if not yields:
                    self._give_up(some)
                break
            self._yielded = 0 if background else self._yielded
            pace = (self._loop.time() - began) / len(some)
            self._pace = max((self._pace + pace) / 2, _TURN / _MOST_AT_ONCE)
        return found + self._unknown([path for path, _ in left], _LATER)

    def _give_up(self, paths: Iterable[str]) -> None:
        """Ask no more about files, so that the server has time for others."""
        for path in paths:
            _stamp, task = self._questions.pop(path, (0, None))
            if task is not None:
                task.cancel()

    async def _ask_shown(
        self, client: LanguageClient, files: Mapping[str, str], deadline: float
    ) -> tuple[FileDiagnostics, ...]:
        """The diagnostics of files whose texts the server has."""
        reports = await self._ask_all(client, files, deadline)
        if self._sync.racy and any(one.fresh for one in reports):
            await self._sync.repeat_racy(files)
            reports = await self._ask_all(client, files, deadline)
        if self._first_report_in is None and any(one.fresh for one in reports):
            self._first_report_in = self._loop.time() - self._lifecycle.began
        return reports

    async def _shown(
        self, files: Mapping[str, str], deadline: float, as_of: int | None
    ) -> LanguageClient:
        """The server, once it has these texts; for whoever holds the lock.

        Raises:
            ServerError: It is not there in time, or does not see the files as they are.
        """
        self._sync.deliver()
        if self._sync.restart:
            await self.stop()
            self._sync.end()
        client = await self._lifecycle.ready(deadline)
        # What was noted while it started.
        self._sync.deliver()
        if self._sync.reload is not None:
            client = await self._reload(client, self._sync.reload, deadline)
        self._sync.show(files, as_of)
        if self._sync.blind:
            raise ServerError(self._sync.blind)
        return client

    async def _reload(self, client: LanguageClient, path: str, deadline: float) -> LanguageClient:
        """Make the server reload its project, or restart it.

        Raises:
            ServerError: Neither is done in time.
        """
        try:
            await client.execute(self.spec.sync.reload, [{"URI": uri_of(path)}], deadline)
        except RequestTimeoutError:
            raise
        except ServerError:
            await self.stop()
            self._sync.end()
            client = await self._lifecycle.ready(deadline)
        self._sync.reload = None
        return client

    async def _ask_all(
        self, client: LanguageClient, files: Iterable[str], deadline: float
    ) -> tuple[FileDiagnostics, ...]:
        """Ask about documents at once; a server that stays silent for long is given up."""
        heard, began = client.message_count, self._loop.time()
        asked = {path: self._question(client, path) for path in files}
        if asked:
            wait = max(deadline - began, 0)
            early = min(wait, _HUNG_SECONDS / 4)
            await asyncio.wait(asked.values(), timeout=early)
            if wait > early and not all(task.done() for task in asked.values()):
                look = asyncio.create_task(self._look(client, heard))
                await asyncio.wait(asked.values(), timeout=max(deadline - self._loop.time(), 0))
                look.cancel()
        reports = [self._report(path, task) for path, task in asked.items()]
        if fresh := {one.path for one in reports if one.fresh}:
            self._sync.confirm()
        self._told |= fresh
        if fresh or client.message_count != heard:
            self._silent_for = 0.0
        elif reports:
            self._silent_for += self._loop.time() - began
            hung = await self._look(client, heard)
            if hung or self._silent_for > self.spec.first * _SILENT_FACTOR:
                self._silent_for = 0.0
                self._lifecycle.give_up("the server no longer answers")
        return tuple(reports)

    async def _look(self, client: LanguageClient, heard: int) -> bool:
        """Whether a server that owes an answer has said and done nothing for a while.

        Only of one that can be asked: what publishes may have nothing to say.
        """
        ticks = -1
        if client.message_count == heard and client.capabilities.pull_identifiers:
            ticks = await client.cpu_ticks(_HUNG_SECONDS / 4)
        was, now = self._idle, self._loop.time()
        if ticks < 0 or was is None or was[:2] != (ticks, heard):
            self._idle = None if ticks < 0 else (ticks, heard, now)
            return False
        return now - was[2] >= _HUNG_SECONDS

    def _question(self, client: LanguageClient, path: str) -> asyncio.Task[FileDiagnostics]:
        """Ask about one document, or go on with what was asked before, still counts and was not told yet."""
        stamp, task = self._questions.get(path, (-1, None))
        last = self._report(path, task) if task and stamp == client.stamp else None
        if task is None or last is None or (task.done() and (path in self._told or not last.fresh)):
            was = 0.0 if last is None else last.seconds
            self._give_up([path])
            self._told.discard(path)
            task = asyncio.create_task(self._diagnostics(client, path, was))
            self._questions[path] = (client.stamp, task)
        return task

    async def _diagnostics(self, client: LanguageClient, path: str, was: float) -> FileDiagnostics:
        document = self._sync.documents.get(path)
        if document is None:
            return FileDiagnostics(self.spec.name, path, reason="the document is not open")
        report = await client.diagnostics(document, self._loop.time() + _LONGEST_QUESTION)
        if self._sync.documents.get(path) == document:
            return replace(report, seconds=max(report.seconds, was))
        reason = "the text changed while the server was asked"
        return FileDiagnostics(self.spec.name, path, reason=reason, seconds=report.seconds)

    def _report(self, path: str, task: asyncio.Task[FileDiagnostics]) -> FileDiagnostics:
        """The answer to a question, as far as there is one."""
        if not task.done():
            reason = "no answer in time; the server is still being asked"
        elif task.cancelled():
            reason = "the question was cancelled"
        else:
            return task.result()
        return FileDiagnostics(self.spec.name, path, reason=reason)

    def _unknown(self, files: Iterable[str], reason: str) -> tuple[FileDiagnostics, ...]:
        return tuple(FileDiagnostics(self.spec.name, path, reason=reason) for path in files)

    def _proposal(
        self,
        before: tuple[FileDiagnostics, ...],
        after: tuple[FileDiagnostics, ...],
        began: float,
        reason: str,
    ) -> ServerDiagnostics:
        answered = bool(after) and all(one.fresh for one in after)
        return ServerDiagnostics(
            self.spec.name,
            after,
            "answered" if answered else "pending",
            reason,
            self._loop.time() - began,
            self._sync.changes,
            before=before,
            complete=answered and all(one.complete for one in after),
        )

    async def _prove_withdrawn(
        self, files: Mapping[str, str], before: Sequence[FileDiagnostics], as_of: int
    ) -> None:
        """Ask again without the proposal; where it is not as before, stop the server.

        Not while somebody waits, or where the files have changed since.  The lock is given back
        in the end.
        """
        try:
            end = self._loop.time() + _WITHDRAW_SECONDS
            again: tuple[FileDiagnostics, ...] = ()
            while not again or not all(one.fresh for one in again):
                if (
                    self._sync.outdated(files, as_of)
                    or self._turns.urgent
                    or self._loop.time() >= end
                ):
                    return
                end_of_turn = self._loop.time() + _TURN
                again = await self._reports(files, end_of_turn, as_of, give_way=True)
            if self._sync.outdated(files, as_of):
                return
            for one, was in zip(again, before, strict=True):
                if was.fresh and one.diagnostics != was.diagnostics:
                    await self.stop()
                    self._lifecycle.message = _NOT_WITHDRAWN
                    return
        finally:
            self._release()

    def _release(self) -> None:
        self.used = self._loop.time()
        self._sync.deliver()
        self._turns.release()
