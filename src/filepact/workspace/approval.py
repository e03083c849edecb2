"""Approval of proposals: exactly what was shown is done, or it is shown again.

An id stands for one change set for good.  Where the files have moved in any byte since it was
stored, what fits them now is another change: it is judged anew and waits under an id of its own,
and nothing is done.  So whoever says yes to an id has said it to these bytes, whichever face they
looked through.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from filepact.domain.change import ChangeSet, FileChange
from filepact.errors import (
    FilepactError,
    InvalidParamsError,
    NoChangeError,
    ProposalChangedError,
    StaleFileError,
    UserDeniedError,
)
from filepact.values import dataclass, replace
from filepact.workspace.authorizer import ChangePolicy
from filepact.workspace.journal import new_id
from filepact.workspace.receipt import done_receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from filepact.domain.document import WorkspacePath
    from filepact.domain.operation import Approval, ChangeId, Operation, Proposal, Session
    from filepact.workspace.documents import DocumentCache
    from filepact.workspace.guard import Guard
    from filepact.workspace.hunks import ProposalHunk
    from filepact.workspace.journal import JournalStore
    from filepact.workspace.location import Location
    from filepact.workspace.pending import PendingProposals
    from filepact.workspace.rebase import Rebase, RebaseResult
    from filepact.workspace.receipt import ChangeDiff, Receipt
    from filepact.workspace.session_approvals import SessionApprovals
    from filepact.workspace.writer import ChangeWriter

__all__ = ["Approvals", "ChangedFile"]

_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that is no longer what a proposal was made from.

    Attributes:
        fits: Whether the change still finds its place; if not, the same lines were changed.
        said: Why not, or that the file is already as it should be.
        since: The diff of what others changed in it; empty where `said` tells.
    """

    path: WorkspacePath
    fits: bool
    said: str = ""
    since: str = ""


class Approvals:
    """The proposals of all sessions, and what a person says to them.

    Args:
        guard: The roots and the rules.
        store: The journal.
        waiting: What sessions have proposed.
        fitting: Fits change sets to what files hold.
        writer: Shows change sets, and writes them.
    """

    def __init__(
        self,
        guard: Guard,
        store: JournalStore,
        waiting: PendingProposals,
        *,
        fitting: Rebase,
        writer: ChangeWriter,
    ) -> None:
        self._guard = guard
        self._store = store
        self._waiting = waiting
        self._fitting = fitting
        self._writer = writer

    @cached_property
    def granted(self) -> SessionApprovals:
        """The approvals in advance."""
        from filepact.workspace.session_approvals import SessionApprovals  # noqa: PLC0415 - to write

        return SessionApprovals(self._store, self._guard.policy)

    def pending(self) -> tuple[Proposal, ...]:
        """Changes of these roots that wait, oldest first."""
        self._waiting.expire()
        roots = {root.path for root in self._guard.roots}
        return tuple(
            proposal
            for proposal in self._store.proposals()
            if any(path.root in roots for path in proposal.changes.paths)
        )

    def approve(self, change_id: str, approval: Approval, *, to_agent: bool) -> Receipt:
        """As `Workspace.approve`."""
        proposal = self._find(change_id)
        reader = proposal.session if to_agent else None
        with self._fitting.locked(proposal.changes.paths):
            shown, done = self._carry_out(proposal, approval, reader)
        return done_receipt(done, shown)

    def _carry_out(
        self, proposal: Proposal, approval: Approval, reader: Session | None
    ) -> tuple[ChangeDiff, Operation]:
        number = 0
        while True:
            number += 1
            fitted, versions = self._unmoved(proposal, reader)
            try:
                shown = self._writer.shown(fitted.changes, versions, reader)
                return shown, self._writer.write(proposal, fitted, shown, versions, approval)
            except (NoChangeError, UserDeniedError):
                raise  # Somebody else was faster.
            except FilepactError as error:
                # A program that knows no locks may have been faster: then the files have moved.
                waits = self._store.proposal(proposal.id).state == "proposed"
                if not isinstance(error, StaleFileError) or not waits or number == _TRIES:
                    self._tell_what_waits(proposal, error)
                    raise

    def _unmoved(
        self, proposal: Proposal, reader: Session | None
    ) -> tuple[RebaseResult, DocumentCache]:
        """The change set of a proposal as it fits its locked files, if it is still the same one.

        Raises:
            ProposalChangedError: It is not; what fits them waits.
        """
        judge = ChangePolicy(self._guard, proposal.session.agent)
        coming = proposal.changes.coming
        locations = {path: judge.locate(path, coming) for path in proposal.changes.paths}
        self._guard.check_together(proposal.changes, agent=proposal.session.agent)
        fitted = self._fitting.fit(proposal.changes, self._writer.hides(reader))
        versions = self._writer.versions(fitted.contents.__getitem__)
        self._record(judge, locations, fitted.changes, versions)
        if fitted.changes.exact != proposal.changes.exact:
            asks = filter(None, judge.asks.split(", "))
            rules = tuple(dict.fromkeys((*proposal.unjudged, *asks)))
            raise self._moved(proposal, fitted, rules, reader)
        return fitted, versions

    def shows_author_all(self, proposal: Proposal) -> bool:
        """Whether the author of a proposal may see all that a person is shown of it."""
        versions = self._writer.versions()
        return self._writer.shown(proposal.changes, versions, proposal.session).whole

    def check_unmoved(self, change_id: str, *, to_agent: bool = False) -> None:
        """Refuse a proposal whose files have moved, as `Workspace.approve` would; nothing is done.

        Raises:
            ProposalChangedError: What fits the files now waits under another id.
        """
        proposal = self._find(change_id)
        with self._fitting.locked(proposal.changes.paths):
            self._unmoved(proposal, proposal.session if to_agent else None)

    def hunks(self, proposal: Proposal, *, fine: bool = False) -> tuple[ProposalHunk, ...]:
        """The parts of a proposal that can be decided about one by one; empty if that is not so.

        Args:
            proposal: One that waits.
            fine: Whether each run of changed lines is one, also where several are shown together.
        """
        return self.parts(proposal, fine=fine) if proposal.kind == "change" else ()

    def parts(self, proposal: Proposal, *, fine: bool = False) -> tuple[ProposalHunk, ...]:
        """As `hunks`, also of what goes back, which is done as a whole."""
        from filepact.workspace.hunks import split_proposal  # noqa: PLC0415 - few decide in part

        if proposal.state != "proposed":
            return ()
        versions, show = self._writer.versions(), self._writer.show
        return split_proposal(proposal.changes, versions, show, fine=fine)

    def versions(self) -> DocumentCache:
        """The states that proposals name."""
        return self._writer.versions()

    def version(self) -> object:
        """A value that differs whenever the journal does; it costs one question that reads nothing."""
        return self._store.version()

    def moved(self, proposal: Proposal) -> tuple[WorkspacePath, ...]:
        """The files of a proposal that are no longer what it was made from."""
        return self._fitting.moved(proposal.changes)

    def moved_files(self, proposal: Proposal) -> tuple[ChangedFile, ...]:
        """The files of a proposal that have moved, each with what others have made of it."""
        moved = {*self.moved(proposal)}
        return tuple(
            self._moved_file(ChangeSet((one,)))
            for one in proposal.changes.changes
            if one.path in moved
        )

    def _moved_file(self, changes: ChangeSet) -> ChangedFile:
        (path,) = changes.paths
        try:
            fitted = self._fitting.fit(changes, self._writer.hides(None))
        except NoChangeError as error:
            return ChangedFile(path, fits=True, said=error.message)
        except FilepactError as error:
            return ChangedFile(path, fits=False, said=error.message)
        return ChangedFile(path, fits=True, since=self._since(changes, fitted, None))

    def decide(
        self,
        change_id: str,
        approval: Approval,
        *,
        accept: Collection[int] = (),
        reject: Collection[int] = (),
        fine: bool = False,
        approve: Callable[[ChangeId, Approval], Receipt] | None = None,
    ) -> tuple[Receipt | None, ChangeId | None]:
        """Decide about some hunks of a proposal, by their numbers.

        What is accepted is done, as an operation with an id of its own.  What is neither accepted nor
        rejected waits, under another id.  The author is told which are which, and the reason.

        Args:
            change_id: As for `Workspace.approve`, with its errors.
            approval: Who says so, and why, where some are rejected.
            accept: The hunks to be done.
            reject: The hunks that are refused.
            fine: As for `hunks`: what the numbers count.
            approve: Does what is accepted; None for `approve`.

        Returns:
            The receipt of what was done, and the id of what waits; None for nothing.

        Raises:
            InvalidParamsError: There are no such hunks, or it goes back, which is done as a whole.
        """
        proposal = self._divisible(change_id)
        do = approve or partial(self.approve, to_agent=False)
        every = {one.number for one in self.hunks(proposal, fine=fine)}
        if every == {*accept} and not {*reject} and not approval.reason:
            return do(proposal.id, approval), None
        if every == {*reject} and not {*accept}:
            self.reject(proposal.id, approval)
            return None, None
        done, waits = self.divide(change_id, approval, accept=accept, reject=reject, fine=fine)
        if done is None:
            return None, waits
        return do(done, approval), waits

    def divide(
        self,
        change_id: str,
        approval: Approval,
        *,
        accept: Collection[int] = (),
        reject: Collection[int] = (),
        fine: bool = False,
    ) -> tuple[ChangeId | None, ChangeId | None]:
        """Divide a proposal as `decide` does, and do nothing yet.

        Returns:
            The ids of what was accepted, and of what is left; None for nothing.
        """
        from filepact.workspace.hunks import choose_hunks  # noqa: PLC0415 - as above

        proposal = self._divisible(change_id)
        every = {one.number for one in self.hunks(proposal, fine=fine)}
        versions = self._writer.versions()
        part = choose_hunks(proposal.changes, versions, accept, reject, fine=fine)
        done = self._part(proposal, part.accepted) if part.accepted else None
        rest = self._part(proposal, part.rest) if part.rest else None
        told = [
            f"{_numbered(numbers)} {what}"
            for numbers, what in (
                (accept, f"accepted as {done.id}" if done else ""),
                (every - {*accept, *reject}, f"waiting as {rest.id}" if rest else ""),
                (reject, "rejected"),
            )
            if numbers
        ]
        kept = [one for one in (done, rest) if one is not None]
        self._store.propose(
            kept[0],
            part.contents,
            supersedes=[proposal.id],
            rest=kept[1] if len(kept) > 1 else None,
            decided=_with_reason(approval, f"of {len(every)} hunks {', '.join(told)}"),
        )
        return None if done is None else done.id, None if rest is None else rest.id

    def edit(
        self, change_id: str, texts: Mapping[WorkspacePath, str], approval: Approval
    ) -> Proposal:
        """Have other texts proposed in the place of some, as a person has edited them.

        What was proposed is kept as well, under its id; the edited one waits, to be approved.

        Raises:
            InvalidParamsError: It does not change such a file, or nothing would change.
        """
        from filepact.workspace.hunks import replace_texts  # noqa: PLC0415 - few decide in part

        proposal = self._divisible(change_id)
        changes, contents = replace_texts(proposal.changes, self._writer.versions(), texts)
        if not changes:
            raise InvalidParamsError(
                "with these texts nothing would change", hint="Reject the proposal instead."
            )
        edited = self._like(proposal, changes, f" (edited by a person; proposed as {proposal.id})")
        decided = _with_reason(approval, f"a person has changed it, and it waits as {edited.id}")
        self._store.propose(edited, contents, supersedes=[proposal.id], decided=decided)
        return self._store.proposal(edited.id)

    def _divisible(self, change_id: str) -> Proposal:
        proposal = self._find(change_id)
        if proposal.kind != "change":
            raise InvalidParamsError(
                f"{proposal.id} takes a change back, so it is done as a whole or not at all",
                hint="Approve or reject all of it.",
            )
        return proposal

    def _part(self, proposal: Proposal, changes: ChangeSet) -> Proposal:
        """A part of a proposal, which says where it is of fewer files."""
        here, of = len(changes.changes), len(proposal.changes.changes)
        return self._like(
            proposal, changes, f" (only {here:,} of {of:,} files)" if here < of else ""
        )

    def _like(self, proposal: Proposal, changes: ChangeSet, more: str = "") -> Proposal:
        said, rule = f"{proposal.summary}{more}", ", ".join(proposal.unjudged)
        return replace(proposal, id=new_id(), changes=changes, summary=said, reason="", rule=rule)

    def reject(self, change_id: str, approval: Approval) -> Proposal:
        """As `Workspace.reject`."""
        proposal = self._find(change_id)
        self._store.reject([proposal.id], approval)
        return self._store.proposal(proposal.id)

    def reject_all(self, proposals: tuple[Proposal, ...], approval: Approval) -> None:
        """Refuse several, all or none."""
        self._store.reject([one.id for one in proposals], approval)

    def renew(self, operation: Operation) -> ChangeId | None:
        """Propose again, under a new id, what was approved and was done only in part.

        What of it is on the disk is in the log, and is left out when this is fitted.
        """
        try:
            proposal = self._store.proposal(operation.id)
        except FilepactError:
            return None
        again = replace(proposal, id=new_id(), state="proposed", created=self._store.now())
        self._store.propose(again, self._contents(proposal.changes))
        return again.id

    # -- one proposal -------------------------------------------------------------------------

    def _find(self, change_id: str) -> Proposal:
        """A proposal that waits.

        Raises:
            NoChangeError: It does not any more.
            ProposalExpiredError: It has waited for too long.
        """
        self._waiting.expire()
        proposal = self._store.proposal(change_id)
        proposal.check_waits()
        return proposal

    def _record(
        self,
        judge: ChangePolicy,
        locations: Mapping[WorkspacePath, Location],
        changes: ChangeSet,
        versions: DocumentCache,
    ) -> None:
        """Ask the rules about the rebased change set, as when it was proposed.

        Raises:
            PathBlockedError: A rule denies it by now.
        """
        for change in changes.changes:
            location = locations[change.path]
            before, after = (
                None
                if side is None or side.is_link or side.is_folder
                else versions.of(change.path, side)
                for side in (change.before, change.after)
            )
            for side in (before, after):
                if side is not None:
                    judge.check_held(location, side)
            judge.record(location, change, source=before, written=after)

    def _moved(
        self,
        proposal: Proposal,
        fitted: RebaseResult,
        rules: tuple[str, ...],
        reader: Session | None,
    ) -> ProposalChangedError:
        """The refusal of a change that is another one by now; that one waits."""
        now = replace(
            proposal,
            id=new_id(),
            changes=fitted.changes,
            created=self._store.now(),
            rule=", ".join(rules),
        )
        # Before what only the old one needed is given up.
        since = self._since(proposal.changes, fitted, reader)
        self._waiting.replace(now, fitted.contents, proposal.id)
        versions = self._writer.versions(fitted.contents.__getitem__)
        shown = self._writer.shown(now.changes, versions, reader)
        return ProposalChangedError(
            f"the files have changed since {proposal.id} was made, so it is another change now: "
            f"{now.id}",
            hint="Nothing was done. Look at that one and decide about it.",
            proposal=now.id,
            diff=shown.diff,
            since=since,
            notes=fitted.notes,
        )

    def _since(self, shown: ChangeSet, fitted: RebaseResult, reader: Session | None) -> str:
        """The diff of what others changed in the files since the proposal was shown."""
        before = {path: side for path, side, _ in shown.exact}
        moved = ChangeSet(
            tuple(
                FileChange(path, before[path], now)
                for path, now, _ in fitted.changes.exact
                if before[path] != now
            )
        )

        def content(name: str) -> bytes:
            return fitted.contents[name] if name in fitted.contents else self._store.content(name)

        return self._writer.shown(moved, self._writer.versions(content), reader).diff

    def _tell_what_waits(self, proposal: Proposal, error: FilepactError) -> None:
        """Add the proposal's present state to an error of the commit."""
        state = self._store.proposal(proposal.id).state
        waits: str | None = proposal.id if state == "proposed" else None
        if state == "committed":
            operation = self._store.operation(proposal.id)
            waits = self.renew(operation) if operation.state == "interrupted" else None
        if waits is not None:
            hint = f"{waits} waits as before; approve it again once the cause is gone."
            error.hint = " ".join(filter(None, (error.hint, hint)))
            error.details["proposal"] = waits

    def _contents(self, changes: ChangeSet) -> dict[str, bytes]:
        return {
            side.content: self._store.content(side.content)
            for change in changes.changes
            for side in (change.before, change.after)
            if side is not None
        }


def _numbered(numbers: Collection[int]) -> str:
    """Hunks by their numbers, as a person and an agent are told."""
    some = sorted(numbers)
    return f"{'hunk' if len(some) == 1 else 'hunks'} {', '.join(map(str, some))}"


def _with_reason(approval: Approval, said: str) -> Approval:
    """The person's decision, as the author is told of it."""
    more = f": {approval.reason}" if approval.reason else "."
    return replace(approval, reason=f"{said}{more}")
