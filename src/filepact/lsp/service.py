"""One server at work on one root: kept in step, asked, started again when it ends.

Whatever goes wrong with the server is a value in an answer and never an error: nothing that a
language server does may stand in the way of a write.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from filepact.lsp.confirm import Asker
from filepact.lsp.diagnostics import Diagnostic, Report, compare
from filepact.lsp.failures import ServerError
from filepact.lsp.outcome import Preview, Status, Update, make_update, weakest
from filepact.lsp.running import PAUSES, Running
from filepact.lsp.sight import Sight
from filepact.lsp.survey import Survey, survey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from filepact.lsp.changes import Change
    from filepact.lsp.client import Client
    from filepact.lsp.launch import Launch
    from filepact.lsp.outcome import State
    from filepact.lsp.servers import Server

__all__ = ["Service"]

_WITHDRAW_SECONDS: Final = 4.0
_MARGIN: Final = 0.05
_DEAF_FACTOR: Final = 3
_PATIENCE: Final = 120.0
_BUSY: Final = "the server is busy with something else"


class Service:
    """A server and its place in the files.

    Every method belongs to one event loop.

    Args:
        server: What is to be started.
        launch: How; the folder is the root.
        facts: What may stand in braces in the server's announcements.
        pauses: Seconds before it is started again, by how often it has ended.
    """

    def __init__(
        self,
        server: Server,
        launch: Launch,
        facts: Mapping[str, str],
        pauses: Sequence[float] = PAUSES,
    ) -> None:
        self.server = server
        self._launch = launch
        self._loop = asyncio.get_running_loop()
        self._lock = asyncio.Lock()
        self._sight = Sight(server, launch.folder, facts, self._sent)
        self._running = Running(server, launch, self._begin, pauses)
        self._asker: Asker | None = None
        self._asked: dict[str, tuple[int, asyncio.Task[Report]]] = {}
        self._known: dict[str, tuple[Diagnostic, ...]] = {}
        self._deaf = 0.0
        self._first_report_in: float | None = None
        self.used = self._loop.time()

    @property
    def status(self) -> Status:
        """What it is doing now."""
        running, client = self._running, self._running.client
        return Status(
            self.server.name,
            self._launch.folder,
            running.state,
            0 if client is None else client.pid,
            "" if client is None else client.version,
            len(self._sight.documents.paths),
            running.starts,
            running.started_in,
            self._first_report_in,
            running.message,
        )

    @property
    def busy(self) -> bool:
        """Whether somebody is waiting for it."""
        return self._lock.locked()

    def wake(self) -> State:
        """Start the server if it does not run; what it is doing by then."""
        self.used = self._loop.time()
        self._running.wake()
        return self._running.state

    @property
    def told(self) -> int:
        """How many changes it was told of."""
        return self._sight.told

    def tell(self, changes: Iterable[Change]) -> None:
        """Take down what happened on the disk; the server hears of it before it is next asked."""
        changes = list(changes)
        for one in changes:
            if one.kind in ("deleted", "renamed"):
                self._known.pop(one.old_path or one.path, None)
        self._sight.note(changes)
        if self._running.state == "ready" and not self._lock.locked():
            self._sight.deliver()

    async def report(self, files: Mapping[str, str], seconds: float) -> tuple[Report, ...]:
        """What the server finds in files.

        Args:
            files: Their texts as they are on the disk, by absolute path.
            seconds: How long to wait in all.
        """
        self.used = self._loop.time()
        deadline = self.used + seconds
        if not await self._acquire(deadline):
            return self._none(files, _BUSY)
        try:
            return await self._report(files, deadline)
        finally:
            self._release()

    async def update(
        self, changes: Sequence[Change], files: Mapping[str, str], seconds: float
    ) -> Update:
        """Tell the server of changes on the disk, and what it finds since.

        Args:
            changes: What happened.
            files: What to ask about, with their texts as they are now, by absolute path.
            seconds: How long to wait in all.
        """
        began, before = self._loop.time(), self._sight.told
        known = dict(self._known)
        for one in changes:
            if one.kind == "renamed" and one.old_path in known:
                known[one.path] = ()
        self.tell(changes)
        after = self._sight.told
        reports = await self.report(files, seconds)
        running = self._running
        failed = running.message if running.state in ("waiting", "broken") else ""
        took = self._loop.time() - began
        return make_update(
            self.server.name,
            changes,
            reports,
            known,
            (before, after),
            took,
            failed,
            event=self._sight.take_words(),
            blind=self._sight.blind,
        )

    async def preview(
        self, proposed: Mapping[str, str], files: Mapping[str, str], seconds: float
    ) -> Preview:
        """What the server would find if some files held other texts; nothing of it stays.

        Args:
            proposed: The other texts, by absolute path.
            files: Texts as they are on the disk, of the proposed files that exist and of others
                to ask about.
            seconds: How long to wait in all.
        """
        began = self._loop.time()
        deadline = began + seconds
        self.used = began
        nothing = self._none({**files, **proposed}, "")
        if not await self._acquire(deadline):
            return self._preview(nothing, nothing, began, True, _BUSY)
        try:
            before = await self._report(files, deadline)
            if weakest(before) == "none" and before:
                reason = next(one.reason for one in before if not one.fresh)
                return self._preview(before, nothing, began, True, reason)
            if not self._sight.documents.kind.texts:
                reason = "the server takes no texts that are not on the disk"
                return self._preview(before, nothing, began, True, reason)
            sync = self.server.sync
            alone = sync.unsaved == "nothing" or (
                sync.unsaved_new == "nothing" and not proposed.keys() <= files.keys()
            )
            wrong = ""
            try:
                after = await self._report({**files, **proposed}, deadline, keep=False)
            finally:
                self._sight.withdraw(proposed, files)
                wrong = await self._prove(files, before)
            reason = wrong or next((one.reason for one in after if not one.fresh), "")
            return self._preview(before, after, began, not wrong, reason, alone=alone)
        finally:
            self._release()

    async def survey(self, seconds: float) -> Survey:
        """Which files of the whole project the server finds something wrong with.

        Args:
            seconds: How long to wait in all; a server that never ends its answer takes all of it.
        """
        began = self.used = self._loop.time()
        try:
            async with asyncio.timeout_at(began + seconds), self._lock:
                self._sight.deliver()
                client = await self._running.ready(began + seconds)
                if self._sight.blind:
                    took = self._loop.time() - began
                    return Survey(self.server.name, (), False, took, self._sight.blind)
                rest = began + seconds - self._loop.time() - _MARGIN
                return await survey(self.server.name, client, max(rest, 0.0))
        except TimeoutError:
            reason = _BUSY
        except ServerError as error:
            reason = str(error)
        return Survey(self.server.name, (), False, self._loop.time() - began, reason)

    async def stop(self) -> None:
        """End the server; it is started again when it is next needed."""
        asked, self._asked = self._asked, {}
        for _stamp, task in asked.values():
            task.cancel()
        await asyncio.gather(*(task for _, task in asked.values()), return_exceptions=True)
        await self._running.stop()

    def _begin(self, client: Client) -> None:
        """Bring a new conversation to where the last one was."""
        self._asker = Asker(self.server, client, self._sight.documents)
        self._first_report_in = None
        self._sight.begin(client)

    def _sent(self) -> None:
        if self._asker is not None:
            self._asker.stir()

    async def _report(
        self, files: Mapping[str, str], deadline: float, *, keep: bool = True
    ) -> tuple[Report, ...]:
        """The same as `report`, for whoever holds the lock; ``keep`` if the texts are the disk's."""
        try:
            self._sight.deliver()
            if self._sight.lost:
                await self.stop()
                self._sight.leave()
            await self._running.ready(deadline)
            # What was told while it started.
            self._sight.deliver()
            self._sight.show(files)
        except ServerError as error:
            return self._none(files, str(error))
        asker, blind = self._asker, self._sight.blind
        if asker is None or blind:
            return self._none(files, blind or "the server is not there")
        reports = await self._ask_all(asker, files, deadline)
        if self._sight.has_twins and any(one.fresh for one in reports):
            await self._sight.tell_twins_apart(files)
            reports = await self._ask_all(asker, files, deadline)
        if keep:
            self._known.update({one.path: one.diagnostics for one in reports if one.fresh})
        if self._first_report_in is None and any(one.fresh for one in reports):
            self._first_report_in = self._loop.time() - self._running.began
        return reports

    async def _ask_all(
        self, asker: Asker, files: Iterable[str], deadline: float
    ) -> tuple[Report, ...]:
        """Ask about documents at once; a server that stays silent for long is given up."""
        heard, began = asker.heard, self._loop.time()
        asked = [self._ask(asker, path) for path in files]
        if asked:
            await asyncio.wait(asked, timeout=max(deadline - began, 0))
        reports = [self._heard(path, task) for path, task in zip(files, asked, strict=True)]
        if any(one.fresh for one in reports):
            self._sight.answered()
        if any(one.fresh for one in reports) or asker.heard != heard:
            self._deaf = 0.0
        elif reports:
            self._deaf += self._loop.time() - began
            if self._deaf > self.server.first * _DEAF_FACTOR:
                self._deaf = 0.0
                self._running.give_up("the server does not answer any more")
        return tuple(reports)

    def _ask(self, asker: Asker, path: str) -> asyncio.Task[Report]:
        """Ask about one document, or go on with what was asked before and still counts."""
        stamp, task = self._asked.get(path, (-1, None))
        if task is None or stamp != asker.stamp or task.done():
            if task is not None:
                task.cancel()
            task = asyncio.create_task(asker.ask(path, self._loop.time() + _PATIENCE))
            self._asked[path] = (asker.stamp, task)
        return task

    def _heard(self, path: str, task: asyncio.Task[Report]) -> Report:
        """The answer, as far as there is one."""
        if not task.done():
            reason = "no answer in time; the server is still being asked"
        elif task.cancelled():
            reason = "the question was given up"
        else:
            return task.result()
        return Report(self.server.name, path, reason=reason)

    async def _prove(self, files: Mapping[str, str], before: Sequence[Report]) -> str:
        """Why it is not proven that the server finds again what it found, if so; it is stopped then."""
        again = await self._report(files, self._loop.time() + _WITHDRAW_SECONDS)
        for one, was in zip(again, before, strict=True):
            if not one.fresh or one.diagnostics != was.diagnostics:
                await self.stop()
                why = one.reason or "the server does not find again what it had found"
                return f"stopped, to be rid of the proposed texts: {why}"
        return ""

    def _preview(
        self,
        before: tuple[Report, ...],
        after: tuple[Report, ...],
        began: float,
        withdrawn: bool,
        reason: str,
        *,
        alone: bool = False,
    ) -> Preview:
        fresh = all(one.fresh for one in after) and bool(after)
        delta = None
        if fresh:
            delta = compare(
                (found for one in before for found in one.diagnostics),
                (found for one in after for found in one.diagnostics),
            )
        complete = fresh and not alone and all(one.complete for one in after)
        seconds = self._loop.time() - began
        return Preview(self.server.name, before, after, delta, withdrawn, complete, seconds, reason)

    def _none(self, files: Iterable[str], reason: str) -> tuple[Report, ...]:
        return tuple(Report(self.server.name, path, reason=reason) for path in files)

    async def _acquire(self, deadline: float) -> bool:
        """Wait until nobody else is at work with the server; False if that takes too long."""
        if not self._lock.locked():
            return await self._lock.acquire()
        try:
            async with asyncio.timeout_at(deadline):
                return await self._lock.acquire()
        except TimeoutError:
            return False

    def _release(self) -> None:
        self.used = self._loop.time()
        self._sight.deliver()
        self._lock.release()
