"""One root and its servers: kept in step with the disk, and asked.

A server is asked first, and the disk is looked at while it works.  If somebody has written by then
what the server did not know, it is told and asked again: so an answer counts only if all files
were, at some moment since the question, as the server knew them.
"""

from __future__ import annotations

import threading
from posixpath import splitext
from typing import TYPE_CHECKING, Any, Final, TypeVar

from filepact.domain.document import WorkspacePath
from filepact.errors import FilepactError
from filepact.lsp.changes import Change
from filepact.lsp.diagnostics import Report
from filepact.semantic.asked import Asked
from filepact.semantic.dependents import Dependents
from filepact.semantic.told import Told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from filepact.domain.document import RootId
    from filepact.lsp.diagnostics import Diagnostic
    from filepact.lsp.inquiry import Inquiry
    from filepact.lsp.outcome import Preview, Update
    from filepact.lsp.pool import Pool
    from filepact.semantic.asked import Limit
    from filepact.semantic.texts import Step
    from filepact.semantic.told import Difference
    from filepact.workspace.surroundings import Surroundings

__all__ = ["Ground"]

_T = TypeVar("_T", "Preview", "Update")

_ROUNDS: Final = 4
_INDEXING: Final = 0.05
_MOST_TEXTS: Final = 500
_MOST_KNOWN: Final = 5_000
_MOST_SHOWN: Final = 200
_RESTLESS: Final = "files went on changing while the servers were asked"
_LATE: Final = "no answer in time"
_CLOSED: Final = "all servers were ended"
_CANCELLED: Final = "cancelled"


class Ground:
    """A root, what its servers know of it, and what they last found.

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
        self._surroundings = surroundings
        self._pool = pool
        self._inquiry = inquiry
        self._lock = threading.RLock()
        self._told = Told(root, surroundings)
        self._dependents = Dependents(root, surroundings, self.claimed)
        self._only_new = {one.name for one in pool.servers if one.only_new}
        self._shown: dict[str, None] = {}
        self._known: dict[tuple[str, str], tuple[Diagnostic, ...]] = {}
        self._asking: list[tuple[Future[Any], tuple[WorkspacePath, ...], int]] = []

    def close(self) -> None:
        """Look at nothing aside any more."""
        self._dependents.close()

    # -- what the servers know ------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Whether servers may have read something of it."""
        return self._told.begun

    @property
    def turn(self) -> int:
        """How many changes of files the servers were told of."""
        return self._told.turn

    @property
    def whole(self) -> bool:
        """Whether no change of a file can be missed for there being too many files."""
        return self._told.whole

    @property
    def names(self) -> list[str]:
        """The files that there are, beneath the root, as far as they are not ignored."""
        with self._lock:
            return [name for name, _ in self._told]

    @property
    def shown(self) -> tuple[str, ...]:
        """Files that servers were asked about, absolute, the last ones at the end."""
        with self._lock:
            return tuple(self._shown)

    def members(self) -> list[WorkspacePath]:
        """The files that a server knows, as far as they are not ignored."""
        self.begin()
        paths = (WorkspacePath(self.root, name) for name in self.names)
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
        wanted = {one.path for each in found for one in each.files} | set(self.shown)
        return [path for path in members if path.absolute in wanted]

    def begin(self) -> None:
        """Take the disk as it is for known; call it before a server is started."""
        with self._lock:
            if not self._told.begun:
                self._told.begin(self._surroundings.scan(self.root))

    def forget(self) -> None:
        """All servers were ended; the next ones read the disk as it is then."""
        with self._lock:
            self._told.begin(self._surroundings.scan(self.root))
            self._known.clear()

    def servers(self, path: str) -> tuple[str, ...]:
        """The names of the installed servers that know a file, which need not exist."""
        return tuple(one.name for one in self._pool.servers_for(self.root, path))

    def claimed(self, path: str) -> bool:
        """Whether there is such a server."""
        return bool(self._pool.servers_for(self.root, path))

    def only_new(self, server: str) -> bool:
        """Whether only differences between a server's lists mean something."""
        return server in self._only_new

    def depending(self, names: Sequence[str]) -> tuple[list[WorkspacePath], bool]:
        """Files that mention others by name, and whether all files were looked through.

        Args:
            names: The others, beneath the root.
        """
        self.begin()
        with self._lock:
            files = list(self._told)
        whole = self._dependents.learn(files, _INDEXING)
        found = [WorkspacePath(self.root, name) for name in self._dependents.of(names)]
        across = {
            server
            for name in names
            for server in self._across(WorkspacePath(self.root, name).absolute)
        }
        return [one for one in found if across & self._across(one.absolute)], whole

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
        names = [path[start:] for path in reversed(self.shown)] + self.names
        paths = (WorkspacePath(self.root, one) for one in names if splitext(one)[1] == ending)
        return [path for path in paths if self._surroundings.stamp(path) is not None][:1]

    def tell(self, steps: Iterable[Step]) -> int:
        """Tell the servers of what was done, with what the files hold by now.

        Returns:
            How many files they were told of.
        """
        with self._lock:
            changes: list[Change] = []
            for step in steps:
                old = "" if step.old is None else step.old.absolute
                if step.old is not None:
                    self._told.note(step.old, None)
                taken = self._surroundings.take(step.path)
                self._told.note(step.path, taken)
                if taken is None:
                    # Gone again; what it was renamed from has gone as well.
                    changes += [Change(one, "deleted") for one in (old, step.absolute) if one]
                elif step.kind == "deleted":
                    changes.append(Change(step.absolute, "created", taken.text))
                else:
                    changes.append(Change(step.absolute, step.kind, taken.text, old))
            self._pool.tell(self.root, changes)
            return len(changes)

    def catch_up(self, cancelled: Callable[[], bool] = lambda: False) -> tuple[Change, ...]:
        """Tell the servers of what others have written since they were last told.

        Raises:
            PathBlockedError: The root is no longer there.
        """
        with self._lock:
            begun = self._told.begun
        if not begun:
            self.begin()
            return ()
        found = self._surroundings.scan(self.root, cancelled)
        if found.cancelled:
            return ()
        with self._lock:
            differences = self._told.differences(found)
            texts = len(differences) <= _MOST_TEXTS
            changes = tuple(self._change(one, texts) for one in differences)
            if changes:
                self._pool.tell(self.root, changes)
            return changes

    def touch(self, paths: Iterable[WorkspacePath]) -> int:
        """Tell the servers of files anew, whatever they know of them."""
        with self._lock:
            changes = []
            for path in paths:
                taken = self._surroundings.take(path)
                self._told.note(path, taken)
                text = None if taken is None else taken.text
                changes.append(
                    Change(path.absolute, "deleted" if taken is None else "changed", text)
                )
            self._pool.tell(self.root, changes)
            return len(changes)

    def _change(self, one: Difference, texts: bool) -> Change:
        path = one.path.absolute
        taken = None if one.stamp is None else self._surroundings.take(one.path)
        self._told.note(one.path, taken)
        if taken is None:
            return Change(path, "deleted")
        wanted = path in self._shown or (texts and self.claimed(path))
        return Change(path, "changed" if one.known else "created", taken.text if wanted else None)

    # -- what the servers find ------------------------------------------------------------

    def known(self, server: str, path: str) -> tuple[Diagnostic, ...] | None:
        """What a server last found in a file; None if it was never asked."""
        return self._known.get((server, path))

    def learn(self, server: str, path: str, found: tuple[Diagnostic, ...] | None) -> None:
        """Keep what a server found in a file; None to forget it."""
        with self._lock:
            self._known.pop((server, path), None)
            if found is not None:
                self._known[server, path] = found
            while len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]

    def texts(self, paths: Iterable[WorkspacePath]) -> dict[str, str]:
        """What files hold, by absolute path, as far as they are there and are text."""
        taken = {path.absolute: self._surroundings.take(path) for path in paths}
        return {path: one.text for path, one in taken.items() if one and one.text is not None}

    def ask(
        self, paths: Sequence[WorkspacePath], also: Sequence[WorkspacePath], limit: Limit
    ) -> Asked[Update]:
        """What the servers find in files.

        Args:
            paths: Files.
            also: Files that may be found fault with because of those.
            limit: How long to wait.
        """

        def question() -> Future[tuple[Update, ...]]:
            files, others = self.texts(paths), self.texts(also)
            self._show([*files, *others])
            return self._inquiry.ask(
                self.root, files, others, limit.for_servers, patient=limit.patient
            )

        return self._until_steady(question, [*paths, *also], limit)

    def propose(
        self, proposed: Mapping[str, str], paths: Sequence[WorkspacePath], limit: Limit
    ) -> Asked[Preview]:
        """What the servers would find if some files held other texts.

        Args:
            proposed: The other texts, by absolute path.
            paths: All files to ask about, the proposed ones among them.
            limit: How long to wait.
        """

        def question() -> Future[tuple[Preview, ...]]:
            files = self.texts(paths)
            self._show(files)
            return self._inquiry.propose(
                self.root, proposed, files, limit.for_servers, patient=limit.patient
            )

        return self._until_steady(question, paths, limit)

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
        question: Callable[[], Future[tuple[_T, ...]]],
        paths: Sequence[WorkspacePath],
        limit: Limit,
    ) -> Asked[_T]:
        """Ask until nobody has written anything meanwhile."""
        for _ in range(_ROUNDS):
            self.begin()
            try:
                with self._lock:
                    turn = self._told.turn
                    future = question()
            except RuntimeError:
                return Asked(reason=_CLOSED)
            moved = self._moved(limit)
            answers = limit.wait(future)
            with self._lock:
                self._asking.append((future, tuple(paths), turn))
                again = self._told_again()
            if answers is None:
                return Asked(reason=_CANCELLED if limit.cancelled() else _LATE)
            if not moved and not again:
                return Asked(answers)
            if not limit.rest:
                break
        return Asked((), _RESTLESS)

    def _moved(self, limit: Limit) -> bool:
        """Whether others have written something; the servers are told then."""
        try:
            return bool(self.catch_up(limit.cancelled))
        except FilepactError:
            # The root itself is gone, and nothing of it is certain any more.
            return True

    def _told_again(self) -> bool:
        """Whether a question may have shown servers older texts than they had been told of.

        They are told of the present ones again; questions that are not over can still do it.
        """
        stale = {
            path
            for _, paths, turn in self._asking
            for path in paths
            if self._told.later(path, turn)
        }
        self._asking = [one for one in self._asking if not one[0].done()]
        if stale:
            self.touch(stale)
        return bool(stale)

    def _show(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._shown.pop(path, None)
            self._shown[path] = None
        while len(self._shown) > _MOST_SHOWN:
            del self._shown[next(iter(self._shown))]
