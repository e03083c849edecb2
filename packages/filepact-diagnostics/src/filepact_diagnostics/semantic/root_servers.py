"""The servers of one root: kept in step with the disk, and asked.

A server is asked first, and the disk is looked at while it works.  If somebody has written meanwhile
what the server did not know, it is told and asked again: an answer counts only if all files were, at
some moment since the question, as the server knew them.
"""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import islice
from posixpath import basename, splitext
from typing import TYPE_CHECKING, Any, Final

from filepact.domain.document import WorkspacePath
from filepact.errors import FilepactError
from filepact.values import replace
from filepact_diagnostics.lsp.diagnostics import DiagnosticsHistory, FileDiagnostics
from filepact_diagnostics.lsp.features import DependentsQuery, SymbolReferencesQuery
from filepact_diagnostics.semantic.changed_names import changed_texts, names_of_changes
from filepact_diagnostics.semantic.deadline import CallDeadline
from filepact_diagnostics.semantic.dependents import DependentIndex
from filepact_diagnostics.semantic.disk_sync import DiskSync
from filepact_diagnostics.semantic.updates import FreshDiagnostics

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from filepact.domain.document import RootId
    from filepact.workspace.external_files import ExternalFiles
    from filepact.workspace.observe import Stamp
    from filepact_diagnostics.lsp.diagnostics import Diagnostic, ServerDiagnostics
    from filepact_diagnostics.lsp.features import LanguageQuery, QueryAnswer
    from filepact_diagnostics.lsp.pool import ServerPool
    from filepact_diagnostics.lsp.spec import ServerSpec
    from filepact_diagnostics.semantic.updates import TextChange

__all__ = ["RootServers"]

_ROUNDS: Final = 4
_INDEXING: Final = 0.05
_READING: Final = 3.0
_MOST_MISSES: Final = 2
_LATE: Final = "no answer in time"
_AT_ONCE: Final = 12
_MOST_AT_ONCE: Final = 48
_QUICK: Final = 1.0
_TOLD_SHARE: Final = 0.4
_TOLD_AT_ONCE: Final = 0.2
"""The share of the time in which a server has to tell what a change concerns; seconds for a receipt."""
_FLOWS_SHARE: Final = 0.15
_FLOWS_SECONDS: Final = 1.0
"""The share of the time for which texts are read for names that types flow on with, and the most."""
_SETTINGS: Final = (".json", ".jsonc", ".toml", ".mod", ".work", ".ini", ".cfg")
"""Endings of files that say what others mean, or are used by them, and have servers of their own."""


class RootServers:
    """The servers of one root, and what they last found; for all threads.

    Attributes:
        root: The root.
        disk: Keeps them in step with it.
        index: Which of its files may depend on others.
        outside: Limits an answer for which settings above the root may count.
        others: Keep the servers in step with the other roots, where a source may read.
        blind: The servers that show nothing of a file to others before it is on the disk.

    Args:
        root: The root.
        files: Reads the disk.
        pool: The servers.
    """

    def __init__(self, root: RootId, files: ExternalFiles, pool: ServerPool) -> None:
        self.root = root
        self.disk = DiskSync(root, files, pool, self._reads)
        self._raw = files
        self._pool = pool
        self.index = DependentIndex(root, files, self.claimed)
        self._steered = {name for one in pool.servers for name in one.steered}
        self._only_new = {one.name for one in pool.servers if one.only_new}
        self._alone = {one.name for one in pool.servers if one.sync.unsaved == "alone"}
        self.blind = {one.name for one in pool.servers if one.sync.unsaved_new == "nothing"}
        self._known = DiagnosticsHistory()
        self._misses: dict[str, int] = {}
        self._swept: dict[str, list[FileDiagnostics]] = {}
        self._swept_turn = -1
        self._at_once = _AT_ONCE
        self._wrong_first: list[str] = []
        self.outside: Callable[[ServerDiagnostics], ServerDiagnostics] = lambda one: one
        self.others: tuple[DiskSync, ...] = ()
        self._prefer_configured()

    def close(self) -> None:
        """Look at the disk no more."""
        self.index.close()
        self.disk.close()

    def forget(self) -> None:
        """All servers are going to be ended; the next ones read the disk as it is then."""
        self.disk.begin_anew()
        self.unlearn()
        self._prefer_configured()

    def unlearn(self) -> None:
        """Forget earlier diagnostics: later ones are not compared with them."""
        with self.disk.lock:
            self._known.clear()

    # -- files and servers ----------------------------------------------------------------

    def _prefer_configured(self) -> None:
        """Prefer, of several servers that fit, the one that the project has settings for."""
        names: list[str] = []
        for one in self._pool.servers:
            for place in one.configured:
                name, _, mark = place.partition(" ")
                with suppress(FilepactError):
                    sample = self._raw.take(WorkspacePath(self.root, name))
                    if sample is not None and mark in (sample.text or ""):
                        names.append(one.name)
        self._pool.prefer(self.root, names)

    def servers(self, path: str) -> tuple[str, ...]:
        """The names of the installed servers that know a file, which need not exist."""
        return tuple(one.name for one in self._pool.servers_for(self.root, path))

    def claimed(self, path: str) -> bool:
        """Whether an installed server knows a file, which need not exist."""
        return bool(self._pool.servers_for(self.root, path))

    def _reads(self, path: str) -> bool:
        """Whether a server has read a file, as a source, or as what says how it reads others."""
        return basename(path) in self._steered or self.claimed(path)

    def only_new(self, server: str) -> bool:
        """Whether only differences between a server's lists mean something."""
        return server in self._only_new

    def depending(self, path: WorkspacePath) -> Iterator[WorkspacePath]:
        """Files that mention another by name."""
        across = self.looking_across(path)
        if across:
            self.disk.begin()
            self.index.learn(self.disk.files, _INDEXING)
            paths = (WorkspacePath(self.root, name) for name in self.index.of([path.path]))
            yield from (one for one in paths if across & self.looking_across(one))

    def reach(self, names: Collection[str], *, waits: bool) -> tuple[dict[str, None], bool]:
        """Files that mention others, or such files, and whether all were looked through, for which it may wait."""
        self.disk.begin()
        with suppress(FilepactError):
            _ = waits and self.disk.catch_up()
        whole = self.index.learn(self.disk.files, _READING if waits else _INDEXING)
        most = self.index.wanted(behind=True)
        found = self.index.reaching(names, most) | self.index.naming(names, most)
        return found, whole and len(found) <= most

    def users(self, names: Collection[str], *, waits: bool) -> tuple[list[WorkspacePath], bool]:
        """Sources that may use other roots' files, below their roots' names, or links; else as `reach`."""
        found, whole = self.reach(names, waits=waits)
        if self.index.steered(names, self.disk.files):
            found |= dict.fromkeys(name for name, _ in self.disk.files)
        every = (WorkspacePath(self.root, name) for name in found)
        fit = [one for one in every if self.looking_across(one)]
        most = self.index.wanted(behind=True)
        return fit[:most], whole and len(fit) <= most

    @property
    def indexed(self) -> bool:
        """Whether the words of all files are known; if not, more of them are read."""
        return self.index.learn(self.disk.files, _INDEXING)

    def teller(self, changes: Sequence[TextChange]) -> ServerSpec | None:
        """The one server of changed files, if it runs and tells which others a change concerns."""
        paths = [one for each in changes for one in (each.path, each.old) if one is not None]
        across = {server for path in paths for server in self.looking_across(path)}
        found = [one for one in self._pool.servers if one.name in across]
        if len(found) != 1 or not found[0].dependents:
            return None
        ready = (found[0].name, self.root, "ready")
        running = any(ready == (one.server, one.root, one.state) for one in self._pool.status())
        return found[0] if running else None

    def _told_dependents(
        self, changes: Sequence[TextChange], deadline: CallDeadline, *, quick: bool
    ) -> list[WorkspacePath] | None:
        """The files that a change concerns as its server tells them; None if it does not, in time."""
        server, sides = self.teller(changes), changed_texts(changes)
        if server is None or not sides:
            return None
        seconds = min(deadline.left * _TOLD_SHARE, _TOLD_AT_ONCE if quick else deadline.left)
        wait = CallDeadline(seconds, deadline.cancelled, patient=False)
        question = DependentsQuery(server.dependents, sides)
        answer, _ = self.query(server.name, question, (), {}, wait)
        if answer is None or answer.state != "answered":
            return None
        start = f"{self.root.rstrip('/')}/"
        return self.paths(
            one for one in answer.value if one.startswith(start) and self.claimed(one)
        )

    def _used_in(
        self, across: Collection[str], changes: Sequence[TextChange], deadline: CallDeadline
    ) -> list[str]:
        """Files that use what changed lines declare, as a running server knows it, beneath the root."""
        running = {one.server for one in self._pool.status() if one.root == self.root}
        server = next((one.name for one in self._pool.servers if one.name in across), "")
        seconds = self.index.patience(server, deadline.left, behind=deadline.patient)
        if server not in running or not seconds:
            return []
        wait = CallDeadline(seconds, deadline.cancelled, patient=False)

        def ask(places: Sequence[tuple[str, int]]) -> QueryAnswer | None:
            paths = self.paths(dict.fromkeys(path for path, _ in places))
            return self.query(server, SymbolReferencesQuery(tuple(places)), paths, {}, wait)[0]

        def read(path: str) -> str | None:
            return self.disk.texts(self.paths([path])).get(path) if self.claimed(path) else None

        found = self.index.uses(server, changes, ask, read, behind=deadline.patient)
        start = len(self.root.rstrip("/")) + 1
        return [one[start:] for one in found]

    def dependents(
        self, changes: Sequence[TextChange], deadline: CallDeadline, *, quick: bool = False
    ) -> tuple[list[WorkspacePath], bool]:
        """Files in which changes may cause diagnostics, the likeliest first.

        Args:
            changes: What becomes of files.
            deadline: How long the question takes, of which this may take a part.
            quick: Whether to leave out those that types may flow on to.

        Returns:
            The files, and whether no other can be concerned: a server has told these, they are all
            that there are, or the servers look at one file at a time.
        """
        self.disk.begin()
        paths = [one for each in changes for one in (each.path, each.old) if one is not None]
        across = {server for path in paths for server in self.looking_across(path)}
        files = self.disk.files
        readers = [] if across else self.readers(changes)
        if not across and not readers:
            typed = all(self._is_typed(path.absolute) for path in paths)
            settings = any(path.path.endswith(_SETTINGS) for path in paths)
            return [], typed and not (settings and self._looks_across(files))
        across = across.union(*map(self.looking_across, readers))
        most = self.index.wanted(behind=deadline.patient and not quick)
        told = self._told_dependents(changes, deadline, quick=quick)
        if told is not None:
            return told[:most], len(told) <= most
        self.index.learn(files, _INDEXING)
        changed = {path.path for path in paths}
        endings = [one.includes for one in self._pool.servers if one.name in across]
        ranked = dict.fromkeys(one.path for one in readers) or None
        if ranked is None:
            ranked = self.index.including(changed, endings, most)
        if ranked is None:
            used = [] if quick else self._used_in(across, changes, deadline)
            ranked = dict.fromkeys(name for name in used if name not in changed)
            most_read = 0.0 if quick else min(deadline.left * _FLOWS_SHARE, _FLOWS_SECONDS)
            names = names_of_changes(changes)
            ranked |= dict.fromkeys(self.index.candidates(names, changed, seconds=most_read))
        rest = [name for name, _ in files if name not in ranked and name not in changed]
        every = (WorkspacePath(self.root, name) for name in (*ranked, *rest))
        fit = (path for path in every if self.index.fits(path))
        found = list(islice((one for one in fit if across & self.looking_across(one)), most + 1))
        if len(found) <= most:
            return found, self.disk.complete
        return [path for path in found[:most] if path.path in ranked], False

    def readers(self, changes: Sequence[TextChange]) -> list[WorkspacePath]:
        """Sources that may be read otherwise because of changed files that no server of sources knows.

        These name such a file, as what they include or import; where it says how sources are read,
        all are meant.  Servers see it on the disk alone.
        """
        paths = {path for each in changes for path in (each.path, each.old) if path is not None}
        names = {path.path for path in paths if not self.looking_across(path)}
        if not names:
            return []
        self.disk.begin()
        files = self.disk.files
        if not self._looks_across(files):
            return []
        self.index.learn(files, _INDEXING)
        most = self.index.wanted(behind=True)
        found = dict.fromkeys(self.index.naming(names, most))
        if self.index.steered(names, files):
            found |= dict.fromkeys(name for name, _ in files)
        every = (WorkspacePath(self.root, name) for name in found if name not in names)
        return list(islice((one for one in every if self.looking_across(one)), most))

    def _is_typed(self, path: str) -> bool:
        """Whether a server looks at a file for more than its form."""
        servers = self._pool.servers_for(self.root, path)
        return any(one.role == "types" and not one.only_new for one in servers) or not servers

    def _looks_across(self, files: Sequence[tuple[str, Stamp]]) -> bool:
        """Whether a server that looks from one file at another knows some of them."""
        kinds = {splitext(name)[1]: name for name, _ in files}
        return any(self.looking_across(WorkspacePath(self.root, name)) for name in kinds.values())

    def looking_across(self, path: WorkspacePath) -> set[str]:
        """The servers of a file that look from one file at another."""
        servers = self._pool.servers_for(self.root, path.absolute)
        return {one.name for one in servers if one.sync.unsaved != "alone"}

    def paths(self, absolute: Iterable[str]) -> list[WorkspacePath]:
        """Files beneath the root by their absolute paths."""
        start = len(self.root.rstrip("/")) + 1
        return [WorkspacePath(self.root, one[start:]) for one in absolute]

    def files(self) -> list[WorkspacePath]:
        """The files that a server knows, as far as they are not ignored."""
        self.disk.begin()
        paths = (WorkspacePath(self.root, name) for name, _ in self.disk.files)
        return [path for path in paths if self.index.fits(path)]

    def sweep(
        self,
        files: Sequence[WorkspacePath],
        deadline: CallDeadline,
        progress: Callable[[int, str], None],
    ) -> tuple[list[FileDiagnostics], int]:
        """The diagnostics of many files, the likeliest to have errors first.

        What is found stays known until a file changes, so another call goes on where this one ended.

        Args:
            files: All files that are to be looked at.
            deadline: How long to go on.
            progress: Is told how many files were looked at, and of how many.

        Returns:
            The reports, and how many files are left.
        """
        late: dict[str, list[FileDiagnostics]] = {}
        self._found_others(deadline, any_file=True)
        while True:
            turn = self.disk.turn
            if self._swept_turn != turn:
                self._wrong_first = [
                    path
                    for path, some in self._swept.items()
                    if any(one.severity == "error" for each in some for one in each.diagnostics)
                ]
                self._swept, self._swept_turn, late = {}, turn, {}
            known = self._swept.keys() | late.keys()
            left = [path for path in files if path.absolute not in known]
            if not left or deadline.cancelled() or (known and not deadline.left):
                break
            first = dict.fromkeys((*reversed(self.disk.shown), *self._wrong_first))
            rank = {path: number for number, path in enumerate(first)}
            left.sort(key=lambda path: rank.get(path.absolute, len(rank)))
            asked: dict[str, list[FileDiagnostics]] = {}
            began = time.monotonic()
            for one in self.report(left[: self._at_once], deadline):
                asked.setdefault(one.path, []).append(one)
            if self.disk.turn != turn:
                continue  # They may depend on what has changed.
            # A question that is given up still costs the server its time.
            if not all(one.fresh for some in asked.values() for one in some):
                self._at_once = max(self._at_once // 2, 1)
            elif time.monotonic() - began < _QUICK:
                self._at_once = min(self._at_once * 2, _MOST_AT_ONCE)
            for path, some in asked.items():
                (self._swept if all(one.fresh for one in some) else late)[path] = some
            progress(len(self._swept), f"of {len(files):,} files")
        found = [one for path in files for one in self._swept.get(path.absolute, ())]
        # Where a server has answered about others, a file that was too late only counts as left.
        heard = {one.server for one in found}
        silent = [one for some in late.values() for one in some if one.server not in heard]
        return [*found, *silent], sum(path.absolute not in self._swept for path in files)

    # -- what the servers find ------------------------------------------------------------

    def last_diagnostics(
        self, server: str, path: str, text: str | None, before: int | None = None
    ) -> tuple[Diagnostic, ...] | None:
        """The last diagnostics of a file, or before a moment; None if they are of another text."""
        with self.disk.lock:
            return None if text is None else self._known.get(server, path, text, before)

    def learn(self, asked: FreshDiagnostics, report: FileDiagnostics) -> None:
        """Keep what a server found in a file."""
        with self.disk.lock:
            self._known.keep(report, asked.texts[report.path], asked.moment)

    def ask(
        self,
        paths: Sequence[WorkspacePath],
        also: Sequence[WorkspacePath],
        deadline: CallDeadline,
        *,
        rest: float | None = None,
        slow: Collection[str] = (),
        background: bool = False,
    ) -> FreshDiagnostics:
        """The diagnostics of files.

        Args:
            paths: Files.
            also: Files that may be found fault with because of those.
            deadline: How long to wait.
            rest: How many seconds to wait for those others at most; None for as long as there is.
            slow: Servers that are asked and not waited for.
            background: Whether other questions come first.
        """

        def question() -> tuple[Future[tuple[ServerDiagnostics, ...]], dict[str, str]]:
            files, others = self.disk.texts(paths), self.disk.texts(also)
            future = self._pool.ask(
                self.root,
                files,
                others,
                deadline.for_servers,
                patient=deadline.patient,
                rest=rest,
                slow=slow,
                background=background,
            )
            return future, {**others, **files}

        return self._limited(self._until_steady(question, deadline))

    @property
    def slow(self) -> frozenset[str]:
        """The servers that were too late the last times, and are not waited for."""
        return frozenset(name for name, count in self._misses.items() if count >= _MOST_MISSES)

    def record_timeliness(self, server: str, *, in_time: bool, waited: bool) -> None:
        """Record whether a server was in time for a receipt, which has waited or will, once, if it was."""
        misses = self._misses.get(server, 0)
        later = min(misses, _MOST_MISSES - 1) if in_time else misses
        self._misses[server] = later if not waited else 0 if in_time else misses + 1

    def propose(
        self, proposed: Mapping[str, str], paths: Sequence[WorkspacePath], deadline: CallDeadline
    ) -> FreshDiagnostics:
        """The diagnostics if some files held other texts."""

        def question() -> tuple[Future[tuple[ServerDiagnostics, ...]], dict[str, str]]:
            files = self.disk.texts(paths)
            future = self._pool.propose(
                self.root, proposed, files, deadline.for_servers, patient=deadline.patient
            )
            return future, files

        return self._limited(self._until_steady(question, deadline))

    def _limited(self, asked: FreshDiagnostics) -> FreshDiagnostics:
        """The answer, incomplete where sources or settings count that nobody watches."""
        note = self.disk.overlooked or self.disk.linked
        some = (one.limited(note, but=self._alone) if note else one for one in asked.answers)
        return replace(asked, answers=tuple(map(self.outside, some)))

    def query(
        self,
        server: str,
        question: LanguageQuery,
        paths: Sequence[WorkspacePath],
        unsaved: Mapping[str, str],
        deadline: CallDeadline,
    ) -> tuple[QueryAnswer | None, str]:
        """One server's answer to a question about places in files; else None and why.

        Args:
            server: Its name.
            question: The question.
            paths: Files that it is shown.
            unsaved: Texts that these are to have where the disk has others, by absolute path.
            deadline: How long to wait.
        """

        def ask() -> tuple[Future[tuple[QueryAnswer, ...]], dict[str, str]]:
            files = self.disk.texts(paths)
            proposed = {path: text for path, text in unsaved.items() if files.get(path) != text}
            future = self._pool.query(
                *(self.root, server, question),
                proposed=proposed,
                files=files,
                seconds=deadline.for_servers,
            )
            return future, files

        asked = self._until_steady(ask, deadline)
        answers: tuple[Any, ...] = asked.answers
        return (answers[0], "") if answers else (None, asked.reason)

    def mentioning(self, name: str, seconds: float) -> tuple[list[WorkspacePath], bool]:
        """Files that hold a word, and whether all files were looked through."""
        self.disk.begin()
        whole = self.index.learn(self.disk.files, seconds) and self.disk.complete
        found = (WorkspacePath(self.root, one) for one in self.index.mentioning(name))
        return [path for path in found if self.index.fits(path)], whole

    def baseline(self, paths: Sequence[WorkspacePath], deadline: CallDeadline) -> None:
        """Learn what is found in files now, where that is not known."""
        if not self.disk.started:
            return
        texts = self.disk.texts(paths)
        new = [
            path
            for path in paths
            for text in (texts.get(path.absolute),)
            if any(
                self.last_diagnostics(one, path.absolute, text) is None
                for one in self.servers(path.absolute)
            )
        ]
        if new:
            self.report(new, deadline)

    def report(
        self, paths: Sequence[WorkspacePath], deadline: CallDeadline
    ) -> tuple[FileDiagnostics, ...]:
        """The diagnostics of files, one value for each server and file."""
        asked = self.ask(paths, (), deadline)
        reports = [one for answer in asked.answers for one in answer.reports]
        for one in reports:
            if one.fresh and one.path in asked.texts:
                self.learn(asked, one)
        if asked.answers:
            return tuple(reports)
        return tuple(
            FileDiagnostics(server, path.absolute, reason=asked.reason)
            for path in paths
            for server in self.servers(path.absolute)
        )

    def _until_steady(
        self,
        question: Callable[[], tuple[Future[tuple[Any, ...]], dict[str, str]]],
        deadline: CallDeadline,
    ) -> FreshDiagnostics:
        """Ask until the answer is about the files as they were at some moment since the start."""
        start, disk = time.time_ns(), self.disk
        for asked in range(_ROUNDS):
            for one in (disk, *self.others):
                one.begin()
            try:
                with disk.lock:
                    turns = [(one, one.turn) for one in (disk, *self.others)]
                    future, texts = question()
            except RuntimeError:
                return FreshDiagnostics(reason="all servers were ended")
            found = self._found_others(deadline, any_file=not asked)
            answers = deadline.wait(future)
            with disk.lock:
                moved = found or disk.is_outdated(texts)
                moved = moved or any(one.moved(turn, start) for one, turn in turns)
                moment = disk.moment
            if answers is None:
                return FreshDiagnostics(reason="cancelled" if deadline.cancelled() else _LATE)
            if not moved:
                return FreshDiagnostics(answers, "", texts, moment)
            if not deadline.left:
                break
        return FreshDiagnostics((), "files went on changing while the servers were asked")

    def _found_others(self, deadline: CallDeadline, *, any_file: bool) -> bool:
        """Whether others have written something that counts; the servers are told in any case.

        Args:
            deadline: Whether to go on.
            any_file: Whether files count that no server knows, such as settings.  To ask again for
                them once is enough: a log that is written all the time would keep us from asking.
        """
        try:
            disks = (self.disk, *self.others)
            changes = [change for one in disks for change in one.catch_up(deadline.cancelled)]
            names = {f"{self.root}/{basename(one.path)}" for one in changes}
            return any(any_file or self.claimed(name) for name in names)
        except FilepactError:
            # The root itself is gone, and nothing of it is certain any more.
            return True
