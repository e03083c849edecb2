"""Carries out plans of going back, and gives a session its view of its own past.

A session can look at its own changes, take them back and hear what a person said to them.  What others
did is not in its view, not even what they changed.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.change import FileChange
from filepact.domain.deadline import FOREVER, Deadline
from filepact.domain.document import FOLDER
from filepact.domain.operation import Actor, ChangeId, Proposal, Session, following, who
from filepact.errors import (
    FilepactError,
    InvalidParamsError,
    NoChangeError,
    NotFoundError,
    PathBlockedError,
    WriteFailedError,
)
from filepact.fs.watch import is_odd
from filepact.text.confusables import shown_name
from filepact.values import replace
from filepact.workspace.authorizer import rules_on
from filepact.workspace.file_snapshot import INSTEAD
from filepact.workspace.folders import check_moved
from filepact.workspace.journal import changed_since, new_proposal
from filepact.workspace.pending import check_free
from filepact.workspace.rebase import RebaseResult, nothing_to_do, together
from filepact.workspace.receipt import Receipt, done_receipt, not_kept, refused_files
from filepact.workspace.selection import Selection, newest_first, stays_beside
from filepact.workspace.undo_plan import plan_redo, plan_selection, plan_undo
from filepact.workspace.writer import ChangeWriter, KeptFiles, left_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from filepact.domain.change import ChangeSet
    from filepact.domain.document import RootId, WorkspacePath
    from filepact.domain.operation import Operation
    from filepact.domain.policy import Rule
    from filepact.fs.state import StateFolder
    from filepact.workspace.documents import DocumentCache
    from filepact.workspace.guard import Guard
    from filepact.workspace.journal import JournalStore
    from filepact.workspace.pending import PendingProposals, SessionLimit
    from filepact.workspace.rebase import Conflicts, Rebase
    from filepact.workspace.undo_plan import UndoChange
    from filepact.workspace.writer import Places

    Agrees = Callable[[UndoChange], bool]
    """Asks a person whether a plan that is in doubt is what they mean."""
    Judges = Callable[[ChangeSet, DocumentCache], str]
    """Says by what a person is asked about what would go back; empty for nothing."""


__all__ = ["SessionHistory", "UndoExecutor"]

_DECIDED: Final = 10
_FAR: Final = 20  # operations that are named as a way on
_LISTED: Final = "history with action log lists what you changed, and what of it is undone."


class UndoExecutor:
    """Carries out plans of going back: fits them to what the files hold, and writes them."""

    def __init__(
        self,
        guard: Guard,
        store: JournalStore,
        waiting: PendingProposals,
        state: StateFolder,
        *,
        fitting: Rebase,
        writer: ChangeWriter,
    ) -> None:
        self._large = KeptFiles(guard, store, state, fitting=fitting, writer=writer)
        self._guard = guard
        self._store = store
        self._waiting = waiting
        self._fitting = fitting
        self._writer = writer

    def diff(self, change: Operation | Proposal, session: Session, deadline: Deadline) -> str:
        """The diff of a change, as a session may see it."""
        return self._writer.shown(change.kept, self._writer.versions(), session, deadline).diff

    def go_back(
        self,
        plan: UndoChange,
        session: Session,
        deadline: Deadline,
        *,
        dry_run: bool,
        preview: bool,
        partly: bool = False,
        judge: Judges | None = None,
    ) -> Receipt:
        """Carry out for an agent what was planned: where a change would wait, this waits too.

        Raises:
            NoChangeError: A change of the same files by this session waits already.
        """
        rule = rules_on(self._guard, plan.changes, {}, agent=session.agent)
        rule = rule or "preview mode" * preview
        check_free(self._waiting.of(session), plan.changes.paths, self._writer.show)
        check_moved(self._guard, session.agent, plan.changes)

        def asks(fitted: RebaseResult, rule: str) -> str:
            if rule and not preview:  # It went by names alone: what is harmless does not wait.
                rule = rules_on(self._guard, fitted.changes, fitted.contents, agent=session.agent)
            versions = self._writer.versions(fitted.contents.__getitem__)
            said = judge(fitted.changes, versions) if judge else ""
            return ", ".join(dict.fromkeys(filter(None, (*rule.split(", "), said))))

        return self.carry_out(
            plan, session, deadline, dry_run=dry_run, rule=rule, partly=partly, asks=asks
        )

    def carry_out(
        self,
        plan: UndoChange,
        session: Session,
        deadline: Deadline = FOREVER,
        *,
        dry_run: bool,
        rule: str = "",
        partly: bool = False,
        agrees: Agrees | None = None,
        asks: Callable[[RebaseResult, str], str] | None = None,
    ) -> Receipt:
        """Carry out what was planned, or only show it; where rules want a person's word, it waits.

        Args:
            plan: What goes back.
            session: Who wants it.
            deadline: When it has to be over.
            dry_run: Whether it is only shown.
            rule: What wants a person's word, if anything does.
            partly: Whether files that cannot go back are left, and the others go.
            agrees: Asks a person where the plan is in doubt; None where nobody can be asked.
            asks: What wants their word for what fits the files; is told what wants it by now.

        Raises:
            InvalidParamsError: The plan is in doubt, and nobody can be asked.
            NoChangeError: The person said no, or nothing is to be done.
        """
        if plan.doubt and not dry_run:
            if agrees is not None and not agrees(plan):
                raise NoChangeError("nothing was done: you did not agree")
            if agrees is None and plan.way:
                raise InvalidParamsError(plan.doubt, hint=plan.way)
        show = self._writer.show
        plan = plan.unsized(show) if session.agent else plan
        hides = self._writer.hides(session if session.agent else None)
        beside = stays_beside(plan.beside, lambda x: "" if hides(x, ()) else shown_name(show(x)))
        plan = replace(plan, notes=(*plan.notes, *beside))
        conflicts: dict[WorkspacePath, FilepactError] = {}
        # What took the place of a file after anybody looked stays like what was seen to.
        free = (x.path for x in plan.changes.changes if not x.before)
        odd = (x for x in free if is_odd(self._guard.root_of(x.root), x.path))
        instead = {x: not_kept(x.path, FileChange(x, None, INSTEAD)) for x in odd}
        plan = replace(plan, unable={**instead, **plan.unable}).around(self._is_no_folder)
        moved = self._large.moved_on(plan, session, partial(self._fits, plan))
        plan = replace(plan.without(moved), unable={**plan.unable, **moved})
        aside = {} if rule else self._large.find(plan.lost, conflicts)
        ends = {*aside, *conflicts, *(other for _, other in aside.values() if other)}
        files = len({*plan.unable, *ends}) + len(plan.changes.changes)
        plan = replace(plan, unable={k: one for k, one in plan.unable.items() if k not in ends})
        for change in plan.changes.changes:
            try:
                self._guard.permit(change.path, "write" if change.after else "delete", back=True)
            except PathBlockedError as error:
                conflicts[change.path] = error
        whole, plan = plan, plan.without(conflicts)
        if not (plan.changes or conflicts or any(one.directories for one in plan.operations)):
            return self._put_back(plan, aside, files, session, dry_run=dry_run)
        self._guard.check_together(plan.changes, agent=session.agent)
        with self._fitting.locked(plan.changes.paths):
            again: ChangeId | None = None
            while True:
                try:
                    fitted = self._fit(
                        plan, whole, session, deadline, conflicts, files=files, partly=partly
                    )
                except NoChangeError:
                    folders, full = self._large.empty_folders(plan)
                    if not folders:
                        given = plan, aside, files, session, full
                        return self._put_back(*given, dry_run=dry_run)
                    fitted = RebaseResult(folders, {FOLDER.content: b""}, ())
                part = whole.in_part([*conflicts, *moved])
                left = left_files(self._writer.show, conflicts, part.unable)
                said = (f"left as it is: {one.reason}" for one in left)
                fitted = replace(fitted, notes=(*fitted.notes, *said))
                rule = asks(fitted, rule) if asks else rule
                proposal = replace(
                    new_proposal(session, whole.tool or whole.kind, part.summary, fitted.changes),
                    rule=rule,
                    kind=part.kind,
                    target=part.target_without([*conflicts, *part.stay, *ends]),
                )
                proposal = replace(proposal, id=again or proposal.id)
                try:
                    receipt = self._do(proposal, fitted, part.notes, deadline, dry_run=dry_run)
                except FilepactError as error:
                    refused = refused_files(error, fitted.changes)
                    if not refused or refused.keys() <= conflicts.keys():
                        raise
                    # What cannot be written is one more that cannot go back.
                    conflicts |= {
                        path: type(error)(why, hint=error.hint, path=path.path)
                        for path, why in refused.items()
                    }
                    again = ChangeId(following(proposal.id))
                else:
                    return self._large.put_back(
                        receipt, part, conflicts, aside, session, dry_run=dry_run
                    )

    def _put_back(
        self,
        plan: UndoChange,
        aside: Places,
        files: int,
        session: Session,
        full: Sequence[str] = (),
        *,
        dry_run: bool,
    ) -> Receipt:
        """Put back what was set aside, where all else is as it should be already; arguments as of `carry_out`.

        Raises:
            FilepactError: There is none of that either; it names what cannot be brought back.
        """
        if not aside and plan.unable:
            raise together(dict(plan.unable), files)
        if not plan.unable and not any(place for place, _ in aside.values()):
            stay = (f"The folder {one} stays: it is not empty." for one in full)
            raise nothing_to_do(" ".join(stay))
        receipt = Receipt(None, "preview", plan.summary)
        return self._large.put_back(receipt, plan, {}, aside, session, dry_run=dry_run)

    def _is_no_folder(self, path: WorkspacePath) -> bool:
        root = self._guard.root_of(path.root)
        return root.glance(path.path) is not None and root.folder_state(path.path) is None

    def _fit(
        self,
        plan: UndoChange,
        whole: UndoChange,
        session: Session,
        deadline: Deadline,
        conflicts: Conflicts,
        *,
        files: int,
        partly: bool,
    ) -> RebaseResult:
        """The result of a plan for the present files, without those that cannot go back.

        Raises:
            FilepactError: There are such, and they are not to be left.
        """
        try:
            hides = self._writer.hides(session if session.agent else None)
            steps = (plan.changes, *plan.earlier)
            fitted = self._fitting.fit_all(steps, hides, deadline, conflicts)
            anew = self._fitting.made_anew(steps, fitted.changes, plan.operations)
            anew |= self._fitting.torn(plan.changes, {**conflicts, **anew}) if partly else {}
            if anew:
                conflicts |= anew
                fitted = self._fitting.fit_all(steps, hides, deadline, conflicts)
            fitted = self._large.without_empty_folders(plan, fitted, conflicts)
        except NoChangeError:
            if conflicts:  # All else is as it should be already.
                files = len({*conflicts, *plan.unable})
                raise self._refusal(whole, conflicts, files, session) from None
            raise
        if conflicts and not (partly or self._fitting.are_bookkeeping(plan.changes, conflicts)):
            raise self._refusal(whole, conflicts, files, session)
        return fitted if conflicts else self._large.with_empty_folders(plan, fitted)

    def _do(
        self,
        proposal: Proposal,
        fitted: RebaseResult,
        notes: tuple[str, ...],
        deadline: Deadline,
        *,
        dry_run: bool,
    ) -> Receipt:
        """Carry out what fits, or show it, or have it wait."""
        reader = proposal.session if proposal.session.agent else None
        versions = self._writer.versions(fitted.contents.__getitem__)
        shown = self._writer.shown(fitted.changes, versions, reader, deadline)
        deadline.check()
        said = (*notes, *fitted.notes)
        receipt = Receipt(None, "preview", proposal.summary, shown.files, shown.diff, said)
        if dry_run:
            return receipt
        if proposal.rule:
            self._waiting.propose(proposal, fitted.contents)
            return replace(receipt, operation=proposal.id, status="pending", rule=proposal.rule)
        return done_receipt(self._writer.write(proposal, fitted, shown, versions), shown, notes)

    def _refusal(
        self, plan: UndoChange, conflicts: Conflicts, files: int, session: Session
    ) -> FilepactError:
        """One refusal for all files that cannot go back, with the way on that there is."""
        ways: list[str] = []
        others, alone = files - len({*conflicts, *plan.unable}), plan.alone
        partly = f"{f'`filepact {plan.kind} {alone} --partly`' if alone else 'The same with `--partly`'} changes the other {others:,} and leaves these alone."
        if session.agent:
            links = {one.path for one in plan.changes.changes if one.after and one.after.is_link}
            if links >= conflicts.keys() and {*map(type, conflicts.values())} == {WriteFailedError}:
                # A confined server makes no links; a person's command does.
                partly, others = f"`filepact {plan.kind} {alone}` does all of it.", 1
            way = f"Tell the person: {partly}" if others and alone else ""
            return together(conflicts, files, way)
        between = changed_since(self._store, plan.operations, conflicts)
        if between:
            named = between[: -_DECIDED - 1 : -1]
            said = ", ".join(
                f"{one.id} ({who(one.session.actor)}, {_span(one.created - plan.operations[-1].created)} later)"
                for one in named
            )
            more = f" and {len(between) - len(named):,} more" if len(between) > len(named) else ""
            ways.append(f"Changed since by {said}{more}.")
            ids = [str(one.id) for one in (*plan.operations, *between)]
            if self._fits(plan, ids, conflicts):
                ways.append(f"`filepact undo {' '.join(ids)}` takes all of that back together.")
        ways += [partly] * bool(others)
        verb = "brought back" if plan.kind == "redo" else "taken back"
        whole = conflicts if others else {**conflicts, **plan.unable}
        error = together(whole, files, " ".join(ways), verb)
        if others and alone:
            error.details |= {"operation": alone, "others": others}
        return error

    def _fits(self, plan: UndoChange, ids: list[str], conflicts: Conflicts) -> bool:
        """Whether some operations, taken back together, leave none of the conflicts."""
        if plan.kind == "redo" or len(ids) > _FAR:
            return False
        try:
            roots = tuple({path.root for path in conflicts})
            both = plan_selection(self._store, roots, Selection(tuple(ids)))
            still: Conflicts = {}
            self._fitting.fit_all((both.changes, *both.earlier), lambda *_: False, FOREVER, still)
        except FilepactError:
            return False
        return not still

    def take_back(
        self, of: Operation, rules: Mapping[WorkspacePath, Rule], roots: Sequence[RootId]
    ) -> tuple[dict[ChangeId, Literal["approve", "redo"]], list[WorkspacePath]]:
        """Take back, for a person who wants it so, what a program did without their word.

        What rules ask about waits as a proposal then: a redo of what went back.  What they let nobody
        change only goes back, and a person can redo it.

        Args:
            of: What changed the files.
            rules: Those of its files that go back, with the rule that is against each.
            roots: The folders in use.

        Returns:
            What waits, and the undo of what does not, each with what a person decides it by; and the
            files that could not go back.
        """
        by = Session(f"undo-{of.id}", Actor("program", "filepact"))
        ids, left = dict[ChangeId, Literal["approve", "redo"]](), list["WorkspacePath"]()
        for verdict in ("deny", "ask"):  # By both names of a folder the stricter one decides.
            some = {path: rule.name for path, rule in rules.items() if rule.verdict == verdict}
            if not some:
                continue
            places = tuple((path.root, path.path) for path in some)
            plan = plan_selection(self._store, roots, Selection((of.id,), places=places))
            try:
                done = self.carry_out(plan, by, dry_run=False, partly=True)
            except FilepactError:
                left += some
                continue
            undo = ChangeId(done.operation or "")
            gone = self._store.operation(undo).changes.paths
            left += [path for path in some if path not in gone]
            rules = {path: rule for path, rule in rules.items() if path not in gone}
            ids[undo] = "redo"
            if verdict == "ask":
                rule = ", ".join(dict.fromkeys(some.values()))
                # Where no more may wait, the undo is what they can decide about.
                with suppress(FilepactError):
                    again = plan_redo(self._store, roots, undo)
                    waits = self.carry_out(again, of.session, dry_run=False, rule=rule)
                    ids[ChangeId(waits.operation or "")] = "approve"
                    del ids[undo]
        return ids, left


def _span(seconds: float) -> str:
    """How long something took, in its largest unit."""
    for unit, letter in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds // unit:.0f} {letter}"
    return f"{max(seconds, 0):.0f} s"


class SessionHistory:
    """The operations and proposals of one session.

    Args:
        store: The journal.
        waiting: What sessions have proposed.
        session: Whose they are.
        roots: The folders in use.
        plans: Carries out what is planned, or has it wait.
        deadline: When it has to be over.
        preview: Whether every change waits for a person.
        patience: Bounds how many wait.
        cancelled: Whether nobody waits for the answer any more.
        page: What one answer may take, in bytes as UTF-8.

    Attributes:
        errors: Says which new errors this turn has brought, as far as somebody knows.
        judge: As for `UndoExecutor.go_back`; None for nobody.
        confirm: Is told what came of that.
    """

    def __init__(  # noqa: PLR0913 - the parts of an engine, by name
        self,
        store: JournalStore,
        waiting: PendingProposals,
        session: Session,
        *,
        roots: Iterable[RootId],
        plans: UndoExecutor,
        deadline: Deadline,
        preview: bool,
        patience: SessionLimit,
        cancelled: Callable[[], bool],
        page: int,
    ) -> None:
        self.page = page
        self._roots = tuple(roots)
        self._plans = plans
        self._deadline = deadline
        self._preview = preview
        self._store = store
        self._waiting = waiting
        self._session = session
        self._patience = patience
        self._cancelled = cancelled
        self.errors: Callable[[], str] = lambda: "No language server knows what you changed."
        self.judge: Judges | None = None
        self.confirm: Callable[[Receipt], object] = lambda _receipt: None

    def diff(self, change: Operation | Proposal) -> str:
        """The diff of a change, as the session may see it."""
        return self._plans.diff(change, self._session, self._deadline)

    def log(self, limit: int) -> tuple[Operation, ...]:
        """The session's own operations, newest first."""
        return self._store.operations(session=self._session, limit=limit)

    def change(self, change_id: str | None) -> Operation | Proposal:
        """One change by its id or the beginning of it; the newest where none is named.

        Raises:
            NotFoundError: The session has no such change.
        """
        if change_id is None:
            newest = self.log(1)
            if not newest:
                raise NotFoundError("you have changed nothing yet", hint=_LISTED)
            return newest[0]
        found: Operation | Proposal
        try:
            found = self._store.operation(change_id)
            if found.state == "rolled_back":
                # Where it was approved, it waits again.
                with suppress(NotFoundError):
                    proposal = self._store.proposal(found.id)
                    found = proposal if proposal.state == "proposed" else found
        except NotFoundError:
            found = self._proposal(change_id)
        if found.session.id not in self._store.sessions(self._session):
            raise self._not_its_own(change_id)
        return found

    def undo(self, change_id: str | None, *, dry_run: bool, partly: bool = False) -> Receipt:
        """Take back one of the session's own operations, or a proposal of its own that waits.

        Without an id it is the newest operation in force; ``turn`` and ``session`` stand for all
        that the session has done in this turn, or ever, and is in force.

        Raises:
            NotFoundError: The session has no such change.
            NoChangeError: There is nothing to take back.
        """
        if change_id in ("turn", "session"):
            turn = self._session.turn if change_id == "turn" else ""
            if change_id == "turn" and not turn:
                hint = "Name a change, or `session` for all that you have done."
                raise InvalidParamsError("your host does not say where turns begin", hint=hint)
            selection = Selection(turn=turn, session=self._session)
            plan = plan_selection(self._store, self._roots, selection)
            return self._go_back(plan, dry_run=dry_run, partly=partly)
        change = self._newest(undone=False) if change_id is None else self.change(change_id)
        if isinstance(change, Proposal):
            return self._withdraw(change, dry_run=dry_run)
        plan = plan_undo(self._store, self._roots, change.id)
        return self._go_back(plan, dry_run=dry_run, partly=partly)

    def redo(self, change_id: str | None, *, dry_run: bool, partly: bool = False) -> Receipt:
        """Bring back what the session has undone itself; arguments and errors as for `undo`."""
        change = self._newest(undone=True) if change_id is None else self.change(change_id)
        plan = plan_redo(self._store, self._roots, change.id)
        if self._store.operation(plan.target).session.id not in self._store.sessions(self._session):
            hint = "Ask the person whether to bring it back."
            raise NoChangeError(f"{change.id} was undone by somebody else", hint=hint)
        return self._go_back(plan, dry_run=dry_run, partly=partly)

    def status(self, wait: float = 0.0, change: str = "") -> tuple[Proposal, ...]:
        """The session's proposals: those that wait, and the last on which somebody has decided.

        Args:
            wait: Seconds to wait until one of those that wait is decided.
            change: The only one that is waited for; empty for any.
        """
        waiting = frozenset(one.id for one in self._open() if change in ("", one.id))
        if wait and waiting:
            answers = (lambda: not waiting <= {one.id for one in self._open()}), self._cancelled
            self._patience.wait(wait, *answers)
        done = [
            *self._store.proposals(session=self._session, state="committed"),
            *self._store.proposals(session=self._session, state="rejected"),
            *self._store.proposals(session=self._session, state="expired"),
        ]
        done.sort(key=lambda proposal: proposal.created)
        return (*self._open(), *done[: -_DECIDED - 1 : -1])

    def _go_back(self, plan: UndoChange, *, dry_run: bool, partly: bool) -> Receipt:
        receipt = self._plans.go_back(
            plan,
            self._session,
            self._deadline,
            dry_run=dry_run,
            preview=self._preview,
            partly=partly,
            judge=None if dry_run else self.judge,
        )
        self.confirm(receipt)
        return receipt

    def _open(self) -> tuple[Proposal, ...]:
        return self._store.proposals(session=self._session)

    def _proposal(self, change_id: str) -> Proposal:
        try:
            return self._store.proposal(change_id)
        except NotFoundError:
            raise self._not_its_own(change_id) from None

    def _not_its_own(self, change_id: str) -> NotFoundError:
        hint = f"{_LISTED} People see all with `filepact log`."
        return NotFoundError(f"there is no change {change_id!r} of yours", hint=hint)

    def _newest(self, *, undone: bool) -> Operation:
        """The newest change in force; with ``undone`` the last undo if no change came after it."""
        for operation in self._own():
            if operation.kind == "undo":
                if undone and operation.undone_by is None:
                    return operation
            elif operation.kind != "redo":
                if undone:
                    break
                if operation.undone_by is None:
                    return operation
        what = "undo of yours since your last change" if undone else "change of yours is in force"
        verb = "redo" if undone else "undo"
        raise NoChangeError(f"there is nothing to {verb}: no {what}", hint=_LISTED)

    def _own(self) -> Iterator[Operation]:
        own = newest_first(self._store, None, self._session)
        return (one for one in own if one.state in ("applied", "interrupted"))

    def _withdraw(self, proposal: Proposal, *, dry_run: bool) -> Receipt:
        if proposal.state != "proposed":
            said = f"{proposal.id} no longer waits: it was {proposal.state}"
            raise NoChangeError(said, hint=_LISTED)
        summary = f"take back the proposal {proposal.id} ({proposal.summary})"
        if dry_run:
            return Receipt(None, "preview", summary)
        self._waiting.withdraw([proposal])
        return Receipt(None, "withdrawn", summary)
