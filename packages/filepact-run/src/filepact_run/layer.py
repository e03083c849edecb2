"""Commits layers: what a program did behind an overlay becomes change sets like any other.

A layer tells how files are now, not from what the program started.  The *base* of a file is its state
in the root when the run began.  The root's file itself has it, as long as its stamp is older than
the run; for one that a person has changed since, the snapshot that is taken beside the program has
it.  Where both fail, nobody can tell whose lines are whose, so the file is not merged but proposed.

What the rules allow is merged with what the root holds by now and done; what they ask about waits as
a proposal, and so does what overlaps with somebody else's change, against the file as it is.  What
they deny, and what is no file at all, stays in the layer, with the reason.

While the program runs only what is allowed is done, and the layer stays as it is, since the program
goes on with it.  What a file of the layer held then is *recorded*: that is what its next change starts from.
"""

from __future__ import annotations

from contextlib import suppress
from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import same_state
from filepact.errors import (
    FilepactError,
    NoChangeError,
    NotFoundError,
    PathBlockedError,
    StaleFileError,
)
from filepact.values import dataclass, field, replace
from filepact.workspace.authorizer import ChangePolicy, rules_on
from filepact.workspace.folder_steps import turning_above
from filepact.workspace.journal import new_proposal
from filepact.workspace.moves import same_entries
from filepact.workspace.rebase import RebaseResult
from filepact.workspace.receipt import Receipt, done_receipt, refused_files, renames
from filepact_run.layer_reader import LayerChanges, LayerReader, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from filepact.domain.document import Revision, WorkspacePath
    from filepact.domain.operation import Proposal, Session
    from filepact.workspace.workspace import Workspace
    from filepact_run.layer_reader import LayerRecord
    from filepact_run.overlay import LayerMount

__all__ = ["LayerCommitter", "LayerResult", "RunMode"]

RunMode = Literal["auto", "review"]
"""``auto``: what the rules allow is done at once.  ``review``: all of it waits for a person."""

_REVIEW: Final = "review mode"
_OVERLAP: Final = "changed meanwhile"
_LINKS: Final = "links out"
_NOT_ALL: Final = "something of another kind is to replace it, and not all of that may be done"
_OTHER_END: Final = "what it is to become has to wait, or cannot be made"
_OPERATIONS: Final = 100


@dataclass(frozen=True, slots=True)
class LayerResult:
    """The outcome of committing a run's layers.

    Attributes:
        receipts: Of what was done, and of what waits.
        left: What stays in the layers, by path as it is shown, with the reason.
        notes: What else a person should know.
        moved: Folders that programs fill, by path as it is shown, that are as the program left them, unrecorded.
        dropped: Those of which nothing was kept.
    """

    receipts: tuple[Receipt, ...]
    left: dict[str, str]
    notes: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(slots=True)
class _Sorted:
    """Changes fitted to the roots, by what is to become of them."""

    done: list[FileChange] = field(default_factory=list)
    asked: list[FileChange] = field(default_factory=list)
    overlapping: list[FileChange] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rules: dict[str, None] = field(default_factory=dict)


class LayerCommitter:
    """Commits layers to the roots of one workspace.

    Args:
        workspace: The roots, with the snapshot that is taken beside the program.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._guard = workspace.guard
        self._store, self._waiting, self._fitting, self._writer = workspace.parts()
        self._external = workspace.external

    def commit(
        self,
        session: Session,
        layers: Iterable[LayerMount],
        *,
        began: int,
        mode: RunMode,
        tool: str,
        skip: frozenset[str] = frozenset(),
        record: LayerRecord | None = None,
        keep: Callable[[str, bytes], None] | None = None,
    ) -> LayerResult:
        """Commit what the layers hold; they themselves stay as they are.

        Call it when no program changes them any more, or for the moment.

        Args:
            session: Whose changes they are.
            layers: Of roots of this workspace.
            began: When they were empty, nanoseconds since the epoch by the clock of stamps.
            mode: Whether what is allowed is done, or waits.
            tool: What the journal calls the program.
            skip: Absolute paths of folders in the roots that are not looked into.
            record: What was committed while the program ran.
            keep: Keeps bytes of states that the record is given.  With it the program goes on: only
                what is allowed is done, and the record is brought up to date.

        Raises:
            PendingFullError: As much waits as may; what was done before that stays done.
            StateFailedError: The journal cannot be written.
            WriteFailedError: The system refused; the message says what is on disk.
        """
        found = LayerChanges(own=self._own_states(session))
        if record is not None:
            found.record = record
            found.content = self._content_of(record)
        for layer in layers:
            LayerReader(self._guard, self._external, found, began, layer, skip).read()
        receipts: list[Receipt] = []
        waiting: set[WorkspacePath] = set()
        pairs = [*renames(found.changes, found.contents.__getitem__).items()]
        pairs += [(new.path, old) for old, new in same_entries(found.changes)]
        found.origins = dict(pairs)
        if found.changes:
            receipts += self._commit(session, tool, found, mode, None if keep is None else waiting)
        for path, times in found.times.items() if mode == "auto" else ():
            with suppress(FilepactError):
                if self._guard.permit(path, "write", agent=session.agent).verdict == "allow":
                    self._guard.root_of(path.root).set_time(path.path, *times)
        if keep is not None:
            self._note(found, waiting, keep)
        return LayerResult(tuple(receipts), found.left, tuple(found.notes))

    def _content_of(self, record: LayerRecord) -> Callable[[str], bytes]:
        """The bytes of recorded states: kept with the record, or by the journal."""

        def content(name: str) -> bytes:
            try:
                return record.content(name)
            except NotFoundError:
                return self._store.content(name)

        return content

    def _note(
        self, found: LayerChanges, waiting: set[WorkspacePath], keep: Callable[[str, bytes], None]
    ) -> None:
        """Bring the record of what was committed up to date."""
        record = found.record
        waiting |= found.unclear | found.held
        waiting |= {path for path in found.states if self._writer.show(path) in found.left}
        for path, state in found.states.items():
            if path not in waiting:
                known = state is None or state.is_folder or record.unchanged(path, state)
                if state is not None and not known and state.content not in found.written:
                    keep(state.content, found.contents[state.content])
                record.states[path] = state
        record.waiting = waiting
        record.fresh = [path for path in found.fresh if path not in record.whole]
        record.whole |= set(found.fresh)

    def _own_states(self, session: Session) -> dict[WorkspacePath, set[Revision | None]]:
        """The states between which operations of this run have changed files, or were to."""
        states: dict[WorkspacePath, set[Revision | None]] = {}
        for operation in self._store.operations(session=session, limit=_OPERATIONS):
            for change in operation.changes.changes:
                states.setdefault(change.path, set()).update((change.before, change.after))
        return states

    def _commit(
        self,
        session: Session,
        tool: str,
        found: LayerChanges,
        mode: RunMode,
        waiting: set[WorkspacePath] | None,
    ) -> Iterator[Receipt]:
        """Do, or propose, one change of each path; or leave waiting what would be proposed."""
        judged = self._judge(session, found.changes, found)
        if not judged:
            return
        with self._fitting.locked(one.path for one, _ in judged):
            sorted_ = self._fit(judged, found, mode, session.agent)
            if sorted_.done:
                yield from self._write(session, tool, sorted_, found)
                found.written |= {one.after.content for one in sorted_.done if one.after}
        everything = sorted_.asked + sorted_.overlapping
        if waiting is not None:
            waiting |= {one.path for one in everything}
            return
        parts = [everything] if mode == "review" else [sorted_.asked, sorted_.overlapping]
        for part in parts:
            if part:
                rules = [*sorted_.rules] if part is not sorted_.overlapping else [_OVERLAP]
                if part is everything and sorted_.overlapping:
                    rules.append(_OVERLAP)
                yield self._propose(session, tool, part, found, ", ".join(rules))

    # -- the rules ------------------------------------------------------------------------

    def _judge(
        self, session: Session, changes: Iterable[FileChange], found: LayerChanges
    ) -> list[tuple[FileChange, str]]:
        """The changes that are not denied, each with the rules that ask about it."""
        kept: list[tuple[FileChange, str]] = []
        versions = self._writer.versions(found.contents.__getitem__)
        folders: dict[tuple[str, str], bool] = {}
        coming = ChangeSet(tuple(changes)).coming
        for change in changes:
            judge = ChangePolicy(self._guard, session.agent)
            shown = self._writer.show(change.path)
            folder = change.path.root, dirname(change.path.path) or "."
            if folder not in folders and turning_above(change.path, coming) is None:
                place = self._guard.root_of(change.path.root).place(folder[1], known=True)
                folders[folder] = place.path == folder[1]
            if not folders.get(folder, True):
                found.left[shown] = "a folder above it is a link by now"
                continue
            try:
                location = judge.locate(change.path, coming)
                sides = [
                    None
                    if side is None or side.is_link or side.is_folder
                    else versions.of(change.path, side)
                    for side in (change.before, change.after)
                ]
                for side in sides:
                    if side is not None:
                        judge.check_held(location, side)
                origin = found.origins.get(change.path)
                if origin is not None and origin.before is not None and sides[1] is not None:
                    sides[0] = versions.of(origin.path, origin.before)
                judge.record(location, change, source=sides[0], written=sides[1])
            except PathBlockedError as error:
                found.left[shown] = error.message
                continue
            if change.after is not None and change.after.is_link:
                target = found.contents[change.after.content].decode("utf-8", "surrogateescape")
                if _leads_out(change.path.path, target):
                    judge.require(_LINKS)
            kept.append((change, judge.asks))
        try:
            self._guard.check_together(
                ChangeSet(tuple(one for one, _ in kept)), agent=session.agent
            )
        except PathBlockedError as error:
            for one, _ in kept:
                found.left[self._writer.show(one.path)] = error.message
            return []
        return kept

    # -- what the roots hold by now ---------------------------------------------------------

    def _fit(
        self,
        judged: Iterable[tuple[FileChange, str]],
        found: LayerChanges,
        mode: RunMode,
        agent: str,
    ) -> _Sorted:
        sorted_ = _Sorted()
        hides = self._writer.hides(None)
        among = {change.path for change in found.changes}
        there: set[WorkspacePath] = set()
        for change, asking in judged:
            rules = asking
            try:
                one = self._fitting.fit(
                    ChangeSet((change,)),
                    hides,
                    content=found.contents.__getitem__,
                    among=among,
                )
                if not rules and one.changes.exact != ChangeSet((change,)).exact:
                    rules = rules_on(self._guard, one.changes, one.contents, agent=agent)
            except NoChangeError:
                there.add(change.path)
                continue
            except StaleFileError as error:
                self._overlap(change, found, sorted_, error)
                continue
            except FilepactError as error:
                found.left[self._writer.show(change.path)] = error.message
                continue
            found.contents |= one.contents
            sorted_.notes += one.notes
            if change.path in found.unclear:
                sorted_.overlapping += one.changes.changes
            elif rules or mode == "review":
                sorted_.asked += one.changes.changes
                sorted_.rules |= dict.fromkeys(rules.split(", ") if rules else [_REVIEW])
            else:
                sorted_.done += one.changes.changes
        sorted_.notes += self._dropped(sorted_.done)
        self._keep_together(found, sorted_, there)
        # What somebody removed comes back with what is done in it; else it waits, as what is in it does.
        coming = {change.path for change in sorted_.done} - found.gone
        for gone in [change for change in sorted_.done if change.path in found.gone]:
            if not any(turning_above(path, {gone.path}) for path in coming):
                sorted_.done.remove(gone)
                sorted_.overlapping.append(gone)
        return sorted_

    def _dropped(self, changes: list[FileChange]) -> Iterator[str]:
        """Tell which rights and attributes of files that get another name the layers cannot hold."""
        gone = {
            x.before.content: x.before for x in changes if x.before and x.of_file and not x.after
        }
        for new in changes:
            old = gone.get(new.after.content) if new.after and not new.before else None
            if old and old.attributes and new.after and new.after.attributes:
                has = dict(new.after.attributes.extended)
                some = [one for one, _ in old.attributes.extended if one not in has]
                if lost := ", ".join(x for x in some if x.startswith(("trusted.", "security."))):
                    yield f"{self._writer.show(new.path)}: a run does not keep {lost}"

    def _keep_together(
        self, found: LayerChanges, sorted_: _Sorted, there: set[WorkspacePath]
    ) -> None:
        """Have a file that becomes a folder, or the reverse, done, waiting or left with everything below it."""
        ways = [one.path for one in found.changes if one.turns]
        wholes = {
            way: {one.path for one in found.changes if turning_above(one.path, {way})} | {way}
            for way in ways
        }
        asked = {one.path for one in sorted_.asked}
        waits = set().union(*(whole for whole in wholes.values() if not asked.isdisjoint(whole)))
        sorted_.asked += [one for one in sorted_.done if one.path in waits]
        sorted_.done = [one for one in sorted_.done if one.path not in waits]
        unable: dict[WorkspacePath, FilepactError] = {}
        fits = there
        for part in (sorted_.done, sorted_.asked):
            fits = fits | {one.path for one in part}
            with suppress(NoChangeError):
                result = RebaseResult(ChangeSet(tuple(part)), found.contents, ())
                turned = self._fitting.turned(result, unable)
                found.contents |= turned.contents
                part[:] = turned.changes.changes
        left = {path: error.message for path, error in unable.items()}
        for way, whole in wholes.items():
            if not whole <= fits:
                left.setdefault(way, found.left.get(self._writer.show(way), _NOT_ALL))
        self._leave(left, found, sorted_)
        parts = (sorted_.done, sorted_.asked, sorted_.overlapping)
        at = {one.path: (part, one) for part in parts for one in part}
        for new, old in found.origins.items():
            ends = [at[path] for path in (old.path, new) if path in at]
            if len(ends) == 1 and there.isdisjoint((old.path, new)):
                path = ends[0][1].path
                self._leave(
                    {path: found.left.get(self._writer.show(path), _OTHER_END)}, found, sorted_
                )
            elif len(ends) == 2 and ends[0][0] is not ends[1][0]:
                # What an entry was goes when what it becomes comes, and not before.
                for part, one in ends:
                    if part is sorted_.done:
                        part.remove(one)
                        next(each for each, _ in ends if each is not part).append(one)

    def _overlap(
        self, change: FileChange, found: LayerChanges, sorted_: _Sorted, error: StaleFileError
    ) -> None:
        """Have a change wait that touches what somebody else changed: against the file as it is."""
        root = self._guard.root_of(change.path.root)
        shown = self._writer.show(change.path)
        try:
            now = state_of(root, change.path, found.contents)
        except FilepactError:
            found.left[shown] = error.message
            return
        if same_state(now, change.after):
            return
        kinds = {(side.is_link, side.is_folder) for side in (now, change.after) if side is not None}
        if len(kinds) > 1:
            found.left[shown] = error.message
            return
        sorted_.overlapping.append(FileChange(change.path, now, change.after))

    # -- doing ----------------------------------------------------------------------------

    def _write(
        self, session: Session, tool: str, sorted_: _Sorted, found: LayerChanges
    ) -> Iterator[Receipt]:
        """Do what is to be done, but for files that cannot be written, which stay in the layers."""
        while sorted_.done:
            changes = ChangeSet(tuple(sorted_.done))
            proposal, fitted = self._made(session, tool, changes, found)
            fitted = replace(fitted, notes=tuple(dict.fromkeys(sorted_.notes)))
            versions = self._writer.versions(fitted.contents.__getitem__)
            shown = self._writer.shown(changes, versions, None)
            try:
                yield done_receipt(self._writer.write(proposal, fitted, shown, versions), shown)
            except FilepactError as error:
                refused = refused_files(error, changes)
                if not refused:
                    raise
                self._leave(refused, found, sorted_)
            else:
                return

    def _leave(
        self, refused: Mapping[WorkspacePath, str], found: LayerChanges, sorted_: _Sorted
    ) -> None:
        """Leave files in the layers, and where one has a name that turns, all that turns with it."""
        turning = {one.path for one in found.changes if one.turns}
        ends = {old.path: new for new, old in found.origins.items()}
        ends |= {new: old for old, new in ends.items()}
        others = {ends[path]: _OTHER_END for path in refused if path in ends}
        left = {
            turning_above(path, turning) or path: why
            for path, why in (others | {**refused}).items()
        }
        found.left |= {self._writer.show(path): why for path, why in left.items()}
        ways = turning & left.keys()
        for part in (sorted_.done, sorted_.asked, sorted_.overlapping):
            part[:] = [
                one
                for one in part
                if one.path not in left and turning_above(one.path, ways) is None
            ]
        found.held |= {one.path for one in found.changes if turning_above(one.path, ways)}

    def _propose(
        self, session: Session, tool: str, changes: list[FileChange], found: LayerChanges, rule: str
    ) -> Receipt:
        proposal, fitted = self._made(session, tool, ChangeSet(tuple(changes)), found)
        proposal = replace(proposal, rule=rule)
        self._waiting.propose(proposal, fitted.contents)
        versions = self._writer.versions(fitted.contents.__getitem__)
        shown = self._writer.shown(fitted.changes, versions, None)
        return Receipt(proposal.id, "pending", proposal.summary, shown.files, shown.diff, rule=rule)

    def _made(
        self, session: Session, tool: str, changes: ChangeSet, found: LayerChanges
    ) -> tuple[Proposal, RebaseResult]:
        count = len(changes.changes)
        summary = f"{tool}: {count:,} {'file' if count == 1 else 'files'}"
        contents = {
            side.content: found.contents[side.content]
            for change in changes.changes
            for side in (change.before, change.after)
            if side is not None
        }
        return new_proposal(session, "run", summary, changes), RebaseResult(changes, contents, ())


def _leads_out(path: str, target: str) -> bool:
    """Whether a link leads out of its root, by names."""
    whole = normpath(join(dirname(path) or ".", target))
    return target.startswith("/") or whole == ".." or whole.startswith("../")
