"""One root and its servers: kept abreast of the disk, and asked.

A server is asked first, and the disk is looked at while it works.  If somebody has written by then
what the server did not know, it is told and asked again: so an answer counts only if all files
were, at some moment since the question, as the server knew them.
"""

from __future__ import annotations

import time
from itertools import islice
from posixpath import splitext
from typing import TYPE_CHECKING, Any, Final, TypeVar

from filepact.domain.document import WorkspacePath
from filepact.errors import FilepactError
from filepact.lsp.diagnostics import Report
from filepact.semantic.abreast import Abreast
from filepact.semantic.asked import Asked
from filepact.semantic.dependents import Dependents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from filepact.domain.document import RootId
    from filepact.lsp.diagnostics import Diagnostic
    from filepact.lsp.inquiry import Inquiry
    from filepact.lsp.outcome import Preview, Update
    from filepact.lsp.pool import Pool
    from filepact.semantic.asked import Limit
    from filepact.workspace.surroundings import Surroundings

__all__ = ["Ground"]

_T = TypeVar("_T", "Preview", "Update")

_ROUNDS: Final = 4
_INDEXING: Final = 0.05
_MOST_KNOWN: Final = 5_000
_RESTLESS: Final = "files went on changing while the servers were asked"
_LATE: Final = "no answer in time"
_CLOSED: Final = "all servers were ended"
_CANCELLED: Final = "cancelled"


class Ground:
    """A root, its servers, and what they last found.

    Attributes:
        root: The root.
        disk: What the servers know of it.

    Args:
        root: The root.
        surroundings: Looks at the disk.
        pool: The servers.
        inquiry: Asks them.
    """

    def __init__(
        self, root: RootId, surroundings: Surroundings, pool: Pool, inquiry: Inquiry
    ) -> None:
        self.root = root
        self.disk = Abreast(root, surroundings, pool, self.claimed)
        self._surroundings = surroundings
        self._pool = pool
        self._inquiry = inquiry
        self._dependents = Dependents(root, surroundings, self.claimed)
        self._only_new = {one.name for one in pool.servers if one.only_new}
        self._known: dict[tuple[str, str], tuple[Diagnostic, ...]] = {}
        self._asking: list[tuple[Future[Any], dict[str, str]]] = []

    def close(self) -> None:
        """Look at nothing any more."""
        self._dependents.close()
        self.disk.close()

    def forget(self) -> None:
        """All servers are going to be ended; the next ones read the disk as it is then."""
        self.disk.begin_anew()
        self._known.clear()

    # -- files and servers ----------------------------------------------------------------

    def servers(self, path: str) -> tuple[str, ...]:
        """The names of the installed servers that know a file, which need not exist."""
        return tuple(one.name for one in self._pool.servers_for(self.root, path))

    def claimed(self, path: str) -> bool:
        """Whether there is such a server."""
        return bool(self._pool.servers_for(self.root, path))

    def only_new(self, server: str) -> bool:
        """Whether only differences between a server's lists mean something."""
        return server in self._only_new

    def depending(self, names: Sequence[str], most: int) -> tuple[list[WorkspacePath], bool]:
        """Files that mention others by name, and whether all files were looked through.

        Args:
            names: The others, beneath the root.
            most: How many are wanted.
        """
        self.disk.begin()
        across = {
            server
            for name in names
            for server in self._across(WorkspacePath(self.root, name).absolute)
        }
        if not across:
            return [], True
        whole = self._dependents.learn(self.disk.files, _INDEXING)
        found = (WorkspacePath(self.root, name) for name in self._dependents.of(names))
        return list(
            islice((one for one in found if across & self._across(one.absolute)), most)
        ), whole

    def _across(self, path: str) -> set[str]:
        """The servers of a file that look from one file at another."""
        servers = self._pool.servers_for(self.root, path)
        return {one.name for one in servers if one.sync.unsaved != "alone"}

    def witness(self, gone: str) -> list[WorkspacePath]:
        """A file by which servers can show that they have heard of another's end, if there is one.

        Args:
            gone: The other, beneath the root.
        """
        ending = splitext(gone)[1]
        start = len(self.root.rstrip("/")) + 1
        names = [path[start:] for path in reversed(self.disk.shown)]
        names += [name for name, _ in self.disk.files]
        paths = (WorkspacePath(self.root, one) for one in names if splitext(one)[1] == ending)
        return [path for path in paths if self._surroundings.stamp(path) is not None][:1]

    def members(self) -> list[WorkspacePath]:
        """The files that a server knows, as far as they are not ignored."""
        self.disk.begin()
        paths = (WorkspacePath(self.root, name) for name, _ in self.disk.files)
        return [path for path in paths if self._dependents.fits(path)]

    def affected(self, members: Sequence[WorkspacePath], limit: Limit) -> list[WorkspacePath]:
        """The files that servers find something wrong with in everything, and those shown before.

        Args:
            members: The files that a server knows.
            limit: How long to wait; the half of it is used.
        """
        # Only servers that run can say it.
        kinds = {splitext(path.path)[1]: path for path in members}
        self.report(list(kinds.values()), limit)
        found = self._pool.survey(self.root, limit.rest / 2)
        wanted = {one.path for each in found for one in each.files} | set(self.disk.shown)
        return [path for path in members if path.absolute in wanted]

    # -- what the servers find ------------------------------------------------------------

    def known(self, server: str, path: str) -> tuple[Diagnostic, ...] | None:
        """What a server last found in a file; None if it was never asked."""
        return self._known.get((server, path))

    def learn(self, server: str, path: str, found: tuple[Diagnostic, ...] | None) -> None:
        """Keep what a server found in a file; None to forget it."""
        with self.disk.lock:
            self._known.pop((server, path), None)
            if found is not None:
                self._known[server, path] = found
            while len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]

    def ask(
        self, paths: Sequence[WorkspacePath], also: Sequence[WorkspacePath], limit: Limit
    ) -> Asked[Update]:
        """What the servers find in files.

        Args:
            paths: Files.
            also: Files that may be found fault with because of those.
            limit: How long to wait.
        """

        def question() -> tuple[Future[tuple[Update, ...]], dict[str, str]]:
            files, others = self.disk.texts(paths), self.disk.texts(also)
            future = self._inquiry.ask(
                self.root, files, others, limit.for_servers, patient=limit.patient
            )
            return future, {**others, **files}

        return self._until_steady(question, limit)

    def propose(
        self, proposed: Mapping[str, str], paths: Sequence[WorkspacePath], limit: Limit
    ) -> Asked[Preview]:
        """What the servers would find if some files held other texts.

        Args:
            proposed: The other texts, by absolute path.
            paths: All files to ask about, the proposed ones among them.
            limit: How long to wait.
        """

        def question() -> tuple[Future[tuple[Preview, ...]], dict[str, str]]:
            files = self.disk.texts(paths)
            future = self._inquiry.propose(
                self.root, proposed, files, limit.for_servers, patient=limit.patient
            )
            return future, files

        return self._until_steady(question, limit)

    def remember(self, paths: Sequence[WorkspacePath], limit: Limit) -> None:
        """Learn what is found in files now, where that is not known.

        Args:
            paths: Files that are going to change, or others because of them.
            limit: How long to wait.
        """
        new = [
            path
            for path in paths
            if any(self.known(one, path.absolute) is None for one in self.servers(path.absolute))
        ]
        if new and self.disk.begun:
            self.report(new, limit)

    def report(self, paths: Sequence[WorkspacePath], limit: Limit) -> tuple[Report, ...]:
        """What the servers find in files, one report of each server and file."""
        asked = self.ask(paths, (), limit)
        reports = [one for answer in asked.answers for one in answer.reports]
        for one in reports:
            if one.fresh:
                self.learn(one.server, one.path, one.diagnostics)
        if asked.answers:
            return tuple(reports)
        return tuple(
            Report(server, path.absolute, reason=asked.reason)
            for path in paths
            for server in self.servers(path.absolute)
        )

    def _until_steady(
        self,
        question: Callable[[], tuple[Future[tuple[_T, ...]], dict[str, str]]],
        limit: Limit,
    ) -> Asked[_T]:
        """Ask until the answer is about the files as they were at some moment since the start."""
        start, disk = time.time_ns(), self.disk
        for asked in range(_ROUNDS):
            disk.begin()
            try:
                with disk.lock:
                    turn = disk.turn
                    future, texts = question()
                    self._asking.append((future, texts))
            except RuntimeError:
                return Asked(reason=_CLOSED)
            found = self._found_others(limit, any_file=not asked)
            answers = limit.wait(future)
            with disk.lock:
                overtaken = bool(disk.overtaken(texts))
                self._mend()
                moved = found or overtaken or disk.moved(turn, start)
            if answers is None:
                return Asked(reason=_CANCELLED if limit.cancelled() else _LATE)
            if not moved:
                return Asked(answers)
            if not limit.rest:
                break
        return Asked((), _RESTLESS)

    def _found_others(self, limit: Limit, *, any_file: bool) -> bool:
        """Whether others have written something that counts; the servers are told in any case.

        Args:
            limit: Whether to go on.
            any_file: Whether files count that no server knows, such as settings.  To ask again for
                them once is enough: a log that is written all the time would keep us from asking.
        """
        try:
            changes = self.disk.catch_up(limit.cancelled)
            return any(any_file or self.claimed(one.path) for one in changes)
        except FilepactError:
            # The root itself is gone, and nothing of it is certain any more.
            return True

    def _mend(self) -> None:
        """Tell servers of present texts once more where a question may have shown them older ones.

        A question that is not over can still do it.
        """
        paths = {path for _, texts in self._asking for path in self.disk.overtaken(texts)}
        self._asking = [one for one in self._asking if not one[0].done()]
        start = len(self.root.rstrip("/")) + 1
        if paths:
            self.disk.tell_anew(WorkspacePath(self.root, path[start:]) for path in paths)
