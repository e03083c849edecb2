"""One change on one root: previewed by its servers, or verified after it was done."""

from __future__ import annotations

from posixpath import basename
from typing import TYPE_CHECKING, Final

from filepact.domain.document import WorkspacePath
from filepact.values import dataclass, replace
from filepact_diagnostics.semantic.dependents import has_error_with, place_of_name, words_of
from filepact_diagnostics.semantic.updates import (
    DiagnosticsSummary,
    ServerUpdate,
    kind_of,
    preview_of,
    update_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from filepact.domain.change import ChangeSet, FileChange
    from filepact.workspace.guard import Guard
    from filepact_diagnostics.lsp.diagnostics import Diagnostic
    from filepact_diagnostics.semantic.deadline import CallDeadline
    from filepact_diagnostics.semantic.root_servers import RootServers
    from filepact_diagnostics.semantic.updates import FreshDiagnostics, Kind, TextChange

__all__ = [
    "PROMPT",
    "ChangeDiagnostics",
    "DependentFiles",
    "FoundDiagnostics",
    "UpdateResult",
    "by_every_name",
    "changes_link",
    "dependents_on_disk",
]

_PAST_COSTS: Final = 3
PROMPT: Final = 0.25
"""Seconds in which a server answers about changed files for which receipts wait."""

_NOT_WAITED: Final = "it was too late the last times, so nobody waits for it"

_UNKNOWN: Final = "which of the errors are new is not known"

_LATE: Final = "no answer in time"

FoundDiagnostics = dict[tuple[str, str], "tuple[Diagnostic, ...]"]


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """The update of one root's servers by a change.

    Attributes:
        servers: One by one.
        left: Files that may be concerned, and that not all servers have answered about.
        unsure: Whether there may be more of these, since not all files were looked through yet.
        answered: The files that they have answered about, absolute.
        done: The moment when they were first given something of the change.
    """

    servers: Sequence[ServerUpdate]
    left: tuple[WorkspacePath, ...] = ()
    unsure: bool = False
    answered: frozenset[str] = frozenset()
    done: int | None = None


@dataclass(frozen=True, slots=True)
class ChangeDiagnostics:
    """The diagnostics of one root's servers for one change.

    Attributes:
        servers: The root's servers.
        changes: What becomes of files.
        may_see: Whether the caller may be told what is in a file.
    """

    servers: RootServers
    changes: Sequence[TextChange]
    may_see: Callable[[WorkspacePath], bool]

    @property
    def concerns_servers(self) -> bool:
        """Whether a server knows one of the files, or sources that read it."""
        return bool(self.servers.readers(self.changes)) or any(
            self.servers.claimed(path.absolute)
            for one in self.changes
            for path in (one.path, one.old)
            if path is not None
        )

    @property
    def is_current(self) -> bool:
        """Whether the files still hold what the change has made of them."""
        texts = self.servers.disk.texts(one.path for one in self.changes)
        return all(texts.get(one.absolute) == one.after for one in self.changes)

    # -- before it is done -----------------------------------------------------------------

    def preview(self, tally: DiagnosticsSummary, deadline: CallDeadline) -> list[ServerUpdate]:
        """Preview the change: the diagnostics if it were done."""
        gone = [one.old or one.path for one in self.changes if one.old or one.kind == "deleted"]
        going = {path.absolute: path for path in gone if self.may_see(path)}
        tally.doubtful |= {one.absolute for one in self.servers.readers(self.changes)}
        proposed = self._emptied(going.values()) | {
            one.absolute: one.after
            for one in self.changes
            if one.after is not None and self.may_see(one.path)
        }
        if not proposed:
            return []
        there = [
            one.path for one in self.changes if one.kind == "changed" and one.absolute in proposed
        ]
        also, _ = self._dependents(tally, deadline)
        asked = self.servers.propose(proposed, [*going.values(), *there, *also], deadline)
        if not asked.answers:
            tally.miss()
            return self._unanswered("preview", asked.reason)
        self.servers.index.pace(asked.answers)
        came = [one for one in self.changes if one.kind in ("created", "renamed")]
        new = {one.absolute: one.old.absolute if one.old else "" for one in came}
        brought = {one.absolute: words_of(one) for one in came}
        left: set[str] = set()
        unknown: set[str] = set()
        if any(one.absolute not in asked.texts for one in also):
            tally.miss()  # of a file whose text nobody could show
        for answer in asked.answers:
            if not answer.complete and all(one.fresh for one in answer.reports):
                tally.miss()  # of a server that does not look at all unsaved texts
            before = {one.path: one for one in answer.before if one.fresh and one.path not in new}
            for one in before.values():
                self.servers.learn(asked, one)
            blind = answer.server in self.servers.blind
            for report in answer.reports:
                if report.path in going:
                    continue
                if not report.fresh and report.path not in proposed:
                    left.add(report.path)
                    continue
                was = self.servers.last_diagnostics(
                    answer.server, report.path, asked.texts.get(report.path)
                )
                if report.path in new:
                    had = before.get(new[report.path])
                    found = had.diagnostics if had else ()
                    was = tuple(replace(one, path=report.path) for one in found)
                elif report.path in before:
                    was = before[report.path].diagnostics
                if was is None and any(one.severity == "error" for one in report.diagnostics):
                    unknown.add(answer.server)
                tally.add(report, was, only_new=self.servers.only_new(answer.server))
                others = (some for path, some in brought.items() if path != report.path)
                if blind and has_error_with(report, set().union(*others)):
                    tally.doubtful.add(report.path)
        tally.leave(len(left))
        updates = [preview_of(one, proposed, self.servers.disk.turn) for one in asked.answers]
        return [
            replace(one, confirmed_by="none", message=_UNKNOWN) if one.server in unknown else one
            for one in updates
        ]

    def _emptied(self, going: Collection[WorkspacePath]) -> dict[str, str]:
        """The files that go, as empty ones: on the disk servers would find them; none that others find by its name."""
        left = {name for name, _ in self.servers.disk.files} if going else set()
        left |= {one.path.path for one in self.changes if one.kind != "deleted"}
        others = {place_of_name(name) for name in left.difference(one.path for one in going)}
        return {one.absolute: "" for one in going if place_of_name(one.path) not in others}

    def baseline(self, deadline: CallDeadline) -> None:
        """Record diagnostics before the change if files appear or disappear.

        Afterwards they could not be obtained: an earlier text can be shown to servers again, a file
        that is not on the disk cannot.
        """
        readers = self.servers.readers(self.changes)
        foreseen = all(one.kind == "changed" for one in self.changes)
        if not readers and (foreseen or not self.concerns_servers):
            return
        there = [
            path
            for one in self.changes
            for path in ((one.old or one.path),)
            if one.before is not None and self.may_see(path)
        ]
        if self.servers.disk.started:
            also, _ = self._dependents(DiagnosticsSummary("dependents"), deadline)
            # What was found earlier in readers need not be so since what they read has changed.
            ask = self.servers.report if readers else self.servers.baseline
            ask([*there, *also], deadline)

    # -- afterwards -----------------------------------------------------------------------

    def verify(
        self,
        tally: DiagnosticsSummary,
        deadline: CallDeadline,
        told: int = 0,
        *,
        rest: float | None = None,
    ) -> UpdateResult:
        """Verify the change: the diagnostics after it was done.

        Args:
            tally: Counts what they find.
            deadline: How long to wait.
            told: Of how many files they were told.
            rest: How many seconds to wait for what depends on the files; None for as long as there
                is.  Of a receipt, which waits for no server that was too late the last times.
        """
        servers = self.servers
        tally.doubtful |= {one.absolute for one in servers.readers(self.changes)}
        done = servers.disk.given(self.changes)
        paths = self.visible_paths
        quick = rest is not None and not deadline.patient
        slow = frozenset[str]() if rest is None or deadline.patient else servers.slow
        also: list[WorkspacePath] = []
        whole = False
        across = [servers.looking_across(one.path) for one in self.changes] if slow else []
        if across and all(some and some <= slow for some in across):
            # Nobody would wait for what is found in other files: they are looked for later.
            tally.miss()
        else:
            also, whole = self._dependents(tally, deadline, quick=quick)
        gone = any(one.kind == "deleted" for one in self.changes)
        witness = [] if paths else self.asked_paths
        wanted = kind_of(self.changes)
        if not paths and not also and not witness:
            return UpdateResult(self._unanswered(wanted, ""))
        first = also[: servers.index.fitting(rest)] if quick and rest is not None else also
        asked = servers.ask(paths or witness, first, deadline, rest=rest, slow=slow)
        if not asked.answers:
            tally.miss()
            tally.leave(len(also))
            unanswered = self._unanswered("pending", asked.reason)
            for each in unanswered if rest is not None and not deadline.cancelled() else ():
                servers.record_timeliness(
                    each.server, in_time=False, waited=each.server not in slow
                )
            updates = _waited_for(unanswered, slow)
            return UpdateResult(updates, tuple(also), quick or not servers.indexed, done=done)
        servers.index.pace(asked.answers)
        if any(one.absolute not in asked.texts for one in first):
            tally.miss()
        # Others may have asked since the change was done; what they found was not there before.
        before = self._known_before(asked, done)
        self._ask_for_past(before, asked, [*paths, *first], deadline, repairs=rest is None)
        changed = {one.absolute for one in self.changes}
        left = dict.fromkeys(one.absolute for one in also[len(first) :])
        for answer in asked.answers:
            only_new = servers.only_new(answer.server)
            own = [one for one in answer.reports if one.path in changed]
            if own and answer.server not in slow and answer.state != "failed":
                in_time = all(one.fresh and one.seconds <= PROMPT for one in own)
                servers.record_timeliness(answer.server, in_time=in_time, waited=True)
            for report in answer.reports:
                if any(report.path == one.absolute for one in witness if one not in also):
                    continue
                was = before.get((answer.server, report.path))
                if report.path not in changed and (not report.fresh or was is None):
                    left[report.path] = None
                    continue
                tally.add(report, was, only_new=only_new)
                if report.fresh:
                    servers.learn(asked, report)
        tally.leave(len(left))
        for step in self.changes if gone else ():
            for server in servers.servers(step.absolute) if step.kind == "deleted" else ():
                tally.gone(servers.last_diagnostics(server, step.absolute, step.before) or ())
        updates = [update_of(one, wanted, changed, told) for one in asked.answers]
        updates = _waited_for(updates, slow)
        rest_of = tuple(one for one in also if one.absolute in left)
        answered = {one.path for each in asked.answers for one in each.reports} - left.keys()
        told_later = servers.teller(self.changes) is not None
        unsure = not whole and (quick or told_later or not servers.indexed)
        return UpdateResult(updates, rest_of, unsure, frozenset(answered), done)

    @property
    def visible_paths(self) -> list[WorkspacePath]:
        """The changed files that are there and that the caller may be told of."""
        return [
            one.path for one in self.changes if one.after is not None and self.may_see(one.path)
        ]

    @property
    def asked_paths(self) -> list[WorkspacePath]:
        """The same; where none is there, a file by which servers show that they have heard of what went."""
        gone = [one.path.path for one in self.changes if one.kind == "deleted"]
        return self.visible_paths or (self.servers.disk.witness(gone[0]) if gone else [])

    def diagnostics_before(
        self, paths: Iterable[WorkspacePath], done: int | None
    ) -> FoundDiagnostics:
        """The diagnostics before the change, of all files, as far as they are known; before a moment, if given."""
        servers = self.servers
        texts = servers.disk.texts(paths)
        found: FoundDiagnostics = {}
        past = {(one.old or one.path).absolute: one.before for one in self.changes}
        for path, text in {**texts, **past}.items():
            for server in servers.servers(path):
                known = servers.last_diagnostics(server, path, text, done)
                if known is not None:
                    found[server, path] = known
        return found

    def earlier(
        self,
        known: FoundDiagnostics,
        asked: FreshDiagnostics,
        paths: Sequence[WorkspacePath],
        deadline: CallDeadline,
        done: int | None,
    ) -> FoundDiagnostics:
        """The diagnostics before the change, and before a moment, requested where they are needed and unknown."""
        before = {**self._known_before(asked, done), **known}
        self._ask_for_past(before, asked, paths, deadline, repairs=False)
        return before

    def _known_before(self, asked: FreshDiagnostics, done: int | None) -> FoundDiagnostics:
        """The diagnostics before the change, as far as they are known.

        Args:
            asked: What is found now.
            done: The moment when the servers were first given something of it.
        """
        steps = {one.absolute: one for one in self.changes}
        found: FoundDiagnostics = {}
        for report in (one for each in asked.answers for one in each.reports):
            step = steps.get(report.path)
            if step is None:
                known = self.servers.last_diagnostics(
                    report.server, report.path, asked.texts[report.path], done
                )
            elif step.kind == "created":
                known = ()
            else:
                old = (step.old or step.path).absolute
                known = self.servers.last_diagnostics(report.server, old, step.before, done)
                known = known and tuple(replace(one, path=report.path) for one in known)
            if known is not None:
                found[report.server, report.path] = known
        return found

    def _ask_for_past(
        self,
        before: FoundDiagnostics,
        asked: FreshDiagnostics,
        paths: Sequence[WorkspacePath],
        deadline: CallDeadline,
        *,
        repairs: bool,
    ) -> None:
        """Ask what was found before the change, where nobody had asked then.

        Args:
            before: What is known of it; the rest is added.
            asked: What is found now.
            paths: The files.
            deadline: How long to wait.
            repairs: Whether that is wanted too where nothing is found now, and so nothing is new.
        """
        reports = [one for each in asked.answers for one in each.reports if one.fresh]
        changed = {one.absolute for one in self.changes}
        unknown = {
            one.path
            for one in reports
            if (one.server, one.path) not in before
            and (repairs or one.diagnostics or one.path in changed)
        }
        # Asked at once, files wait for each other, so that together they took less than one by one.
        spent = min(
            sum({one.path: one.seconds for one in reports if one.path in unknown}.values()),
            max((each.seconds for each in asked.answers), default=0.0),
        )
        past = {one.absolute: one.before for one in self.changes if one.before is not None}
        # What has come since is shown empty, as what goes is.
        come = (one for one in self.changes if one.kind == "created" and one.after is not None)
        past |= {one.absolute: "" for one in come}
        kinds = ("changed", "created")
        exact = all(one.kind in kinds and one.absolute in past for one in self.changes)
        exact = exact and not self.servers.readers(self.changes)
        if unknown and exact and deadline.left >= spent * _PAST_COSTS:
            wanted = [one for one in paths if one.absolute in unknown or one.absolute in past]
            earlier = self.servers.propose(past, wanted, deadline)
            for answer in earlier.answers:
                for report in answer.reports:
                    key, own = (answer.server, report.path), report.path in past
                    same = own or earlier.texts.get(report.path) == asked.texts.get(report.path)
                    if report.fresh and same and (answer.complete or own):
                        before.setdefault(key, report.diagnostics)
        for one in reports:
            if not repairs and not one.diagnostics and one.path not in changed:
                before.setdefault((one.server, one.path), ())

    # -- both -----------------------------------------------------------------------------

    def _dependents(
        self, tally: DiagnosticsSummary, deadline: CallDeadline, *, quick: bool = False
    ) -> tuple[list[WorkspacePath], bool]:
        """Files in which the change may cause diagnostics, the likeliest first, and whether these are all."""
        found, whole = self.servers.dependents(self.changes, deadline, quick=quick)
        seen = [path for path in found if self.may_see(path)]
        if not whole or len(seen) < len(found):
            tally.miss()
        return seen, whole

    def _unanswered(self, kind: Kind, reason: str) -> list[ServerUpdate]:
        """The updates of the files' servers if none of them has answered."""
        names = dict.fromkeys(
            server for one in self.changes for server in self.servers.servers(one.absolute)
        )
        turn = self.servers.disk.turn
        return [ServerUpdate(name, kind, "", "none", turn, turn, 0.0, reason) for name in names]


@dataclass(frozen=True, slots=True)
class DependentFiles:
    """Files of a root that may use what its servers see on the disk alone: other roots' files, and links."""

    servers: RootServers
    paths: Sequence[WorkspacePath]

    def look(
        self,
        tally: DiagnosticsSummary,
        deadline: CallDeadline,
        before: FoundDiagnostics,
        done: bool,
    ) -> list[ServerUpdate]:
        """What is found in them: taken into `before` until the change is done, and then compared with it."""
        across = {one.absolute: self.servers.looking_across(one) for one in self.paths}
        tally.doubtful |= across.keys()
        turn, updates = self.servers.disk.turn, dict[str, ServerUpdate]()
        kind: Kind = "updated" if done else "preview"
        there = self.servers.disk.texts(self.paths)
        paths = [one for one in self.paths if one.absolute in there]
        reports = self.servers.report(paths, deadline) if paths else ()
        for one in (each for each in reports if each.server in across[each.path]):
            key = (one.server, one.path)
            if one.confirmed_by == "quiet window":
                tally.miss()  # It can prove nothing, however long it is asked.
            elif not one.fresh or (done and key not in before):
                tally.leave(1)
            elif done:
                tally.add(one, before[key], only_new=self.servers.only_new(one.server))
            else:
                before[key] = one.diagnostics
                tally.miss()
            said = "" if one.fresh else one.reason or _LATE
            if said or one.server not in updates:
                proof, took = one.confirmed_by, one.seconds
                new = ServerUpdate(one.server, kind, "", proof, turn, turn, took, said)
                updates[one.server] = new
        return list(updates.values())


def changes_link(change: FileChange) -> bool:
    """Whether a link comes, goes or is pointed elsewhere."""
    sides = (change.before, change.after)
    return change.before != change.after and any(one and one.is_link for one in sides)


def dependents_on_disk(
    changes: ChangeSet,
    every: Collection[RootServers],
    may_see: Callable[[WorkspacePath], bool],
    *,
    waits: bool,
) -> tuple[list[DependentFiles], bool]:
    """Files that may use another root's changed files, or changed links, and whether there are no more."""
    links = {one.path for one in changes.changes if changes_link(one)}
    found, complete = list[DependentFiles](), True
    reached: dict[str, set[str]] = {}
    for origin in every if len(every) > 1 else ():
        names = {one.path.path for one in changes.changes if one.path.root == origin.root}
        also, whole = origin.reach(names, waits=waits) if names else ({}, True)
        complete &= whole
        reached[origin.root] = {f"{basename(origin.root)}/{one}" for one in names.union(also)}
    for target in every:
        own = {one.path.path for one in changes.changes if one.path.root == target.root}
        wanted = {one.path for one in links if one.root == target.root}
        wanted |= {alias for _, alias in target.disk.aliases(own)}
        wanted = wanted.union(*(some for root, some in reached.items() if root != target.root))
        paths, whole = target.users(wanted, waits=waits) if wanted else ([], True)
        seen = [one for one in paths if may_see(one)]
        complete = complete and whole and len(seen) == len(paths)
        if seen:
            found.append(DependentFiles(target, seen))
    return found, complete


def by_every_name(steps: Sequence[TextChange], guard: Guard) -> tuple[TextChange, ...]:
    """Changes, and those of the other names (hard links) of their files, which hold the same."""
    every = {one.path: one for one in steps}
    for one in steps:
        root = guard.root_of(one.path.root)
        stays = one.kind == "changed" and root.keeps_links
        for name in (root.other_names(one.path.path) if stays else None) or ():
            path = WorkspacePath(one.path.root, name)
            every.setdefault(path, replace(one, path=path))
    return tuple(every.values())


def _waited_for(updates: Iterable[ServerUpdate], slow: frozenset[str]) -> list[ServerUpdate]:
    """Updates, of which those of slow servers that are pending say why nobody waits for these."""
    return [
        replace(one, message=_NOT_WAITED) if one.server in slow and one.kind == "pending" else one
        for one in updates
    ]
