"""Writes change sets: shows each to its reader, commits it, and tells editors and sessions of it.

An undo also puts back large files that were set aside, and names what stays.
"""

from __future__ import annotations

from contextlib import suppress
from posixpath import basename
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.deadline import FOREVER, Deadline
from filepact.domain.document import FOLDER, WorkspacePath
from filepact.errors import FilepactError, NoChangeError, StaleFileError
from filepact.fs.path_form import folders_above
from filepact.fs.walk import TreeReader
from filepact.fs.watch import stamp_at
from filepact.text.confusables import shown_name
from filepact.text.gitignore import MACHINE_FOLDERS
from filepact.values import replace
from filepact.workspace.documents import EDITORCONFIG, DocumentCache
from filepact.workspace.folder_steps import folder_at, turning_above, written
from filepact.workspace.handing import handed_on, stays_one, taking_over
from filepact.workspace.journal import moved_since, new_id, new_proposal, operation_of
from filepact.workspace.moves import same_entries
from filepact.workspace.receipt import Receipt, SkippedFile, origins, show_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from filepact.domain.document import Document, Revision, RootId
    from filepact.domain.operation import Approval, Operation, Proposal, Session
    from filepact.fs.read_only_root import OpenFile
    from filepact.fs.root import Root
    from filepact.fs.state import StateFolder
    from filepact.workspace.commit import Committer
    from filepact.workspace.documents import Documents
    from filepact.workspace.editors import Editors
    from filepact.workspace.guard import Guard
    from filepact.workspace.journal import JournalStore
    from filepact.workspace.read_tracker import KnownTextCache
    from filepact.workspace.rebase import Conflicts, Rebase, RebaseResult
    from filepact.workspace.receipt import ChangeDiff, Hides
    from filepact.workspace.recovery import Recovery
    from filepact.workspace.undo_plan import UndoChange

__all__ = ["ChangePublisher", "ChangeWriter", "KeptFiles", "left_files"]

_FAR: Final = 200  # begins of turns that are looked at
_UNSEEN: Final = {".git", *MACHINE_FOLDERS}
_MOST_COMPARED: Final = 64  # files that are read to find out which of them were moved
_COARSE: Final = 0.05  # seconds by which the birth of a file may be told too early


class ChangeWriter:
    """The way of every change once its files are locked and fit."""

    def __init__(
        self,
        guard: Guard,
        store: JournalStore,
        documents: Documents,
        seen: KnownTextCache,
        *,
        committer: Committer,
        editors: Editors,
    ) -> None:
        self._guard = guard
        self._store = store
        self._documents = documents
        self._seen = seen
        self._committer = committer
        self._editors = editors

    def versions(self, content: Callable[[str], bytes] | None = None) -> DocumentCache:
        """The states that changes name: of the journal, or whose bytes somebody has."""
        return DocumentCache(content or self._store.content, self._documents.given)

    def show(self, path: WorkspacePath) -> str:
        """A path as people and agents see it."""
        return self._guard.show(path.root, path.path)

    def hides(self, session: Session | None) -> Hides:
        """Whether a session may not see what a file holds; a person may see all."""

        def hidden(path: WorkspacePath, held: Iterable[bytes | Document]) -> bool:
            return session is not None and self._guard.hides(path, session.agent, held)

        return hidden

    def shown(
        self,
        changes: ChangeSet,
        versions: DocumentCache,
        session: Session | None,
        deadline: Deadline = FOREVER,
    ) -> ChangeDiff:
        """A change set as a session may see it, or a person who is to decide about it."""
        return show_changes(
            changes,
            versions,
            self.show,
            self.hides(session),
            to_agent=session is not None and bool(session.agent),
            deadline=deadline,
        )

    def linked(self, changes: ChangeSet) -> tuple[str, ...]:
        """The effect on files with several names (hard links), to be said before a change."""
        told: list[str] = []
        over = taking_over(changes.changes)
        handed = handed_on(changes.changes)
        states = {one.path: one.after for one in changes.changes}
        given = {one.path: (states[to], alike) for to, (one, alike) in handed.items()}
        for change in changes.changes:
            after, alike = given.get(change.path, (change.after, True))
            before, goes_on = change.before, change.path in given
            if not (before and after) or before.is_folder or before.is_link:
                continue
            if goes_on and after == before:
                continue
            root = self._guard.root_of(change.path.root)
            links = root.place(change.path.path, known=True).links
            if links < 2:
                continue
            shown = self.show(change.path)
            alike &= goes_on or change.path not in over
            told.append(
                f"{shown}: {why}; it stays one file with them."
                if (why := stays_one(root, change, alike=alike))
                else f"{shown} has {links} names (hard links); the others keep the old text."
            )
        return tuple(told)

    def write(
        self,
        proposal: Proposal,
        fitted: RebaseResult,
        shown: ChangeDiff,
        versions: DocumentCache,
        approval: Approval | None = None,
        held: Mapping[WorkspacePath, OpenFile] = MappingProxyType({}),
    ) -> Operation:
        """Commit a proposal whose files are locked."""
        operation = operation_of(
            proposal,
            fitted.changes,
            approved_by="" if approval is None else str(approval.actor),
            note=" ".join(fitted.notes),
            lines=shown.lines,
        )
        starts = self._editors.save(fitted.changes, fitted.contents)
        done = self._committer.commit(operation, fitted.contents, held)
        session = proposal.session
        if any(
            change.path.path.rpartition("/")[2] == EDITORCONFIG for change in done.changes.changes
        ):
            # It may say something else about the other files now.
            versions = self.versions(fitted.contents.__getitem__)
        for change in filter(None, (one.of_file for one in done.changes.changes)):
            before, after = versions.sides(change)
            if after is None:
                if before is not None:
                    self._seen.forget(session, before.path)
                continue
            self._editors.buffers.deliver(after, starts.get(after.path))
            # Who goes back is shown what that changes.
            sides = (one for one in (before, after) if one is not None)
            if done.kind != "change" and not self._guard.hides(after.path, session.agent, sides):
                self._seen.shown_change(session, before, after)
        return done


Places = dict[WorkspacePath, tuple[str, "WorkspacePath | None"]]
"""Where each file is that was set aside, and the name that it has elsewhere by now; without a place it is back already."""


class KeptFiles:
    """The files of an undo that the journal does not have.

    Args:
        guard: The roots.
        store: The journal.
        state: In which they are.
        fitting: Says what files are by now, and holds their locks.
        writer: Shows changes.
    """

    def __init__(
        self,
        guard: Guard,
        store: JournalStore,
        state: StateFolder,
        *,
        fitting: Rebase,
        writer: ChangeWriter,
    ) -> None:
        self._guard = guard
        self._store = store
        self._state = state
        self._fitting = fitting
        self._writer = writer

    def find(self, lost: Mapping[WorkspacePath, FileChange], conflicts: Conflicts) -> Places:
        """Where the files of an undo are that were set aside.

        Args:
            lost: What became of each file that the journal cannot bring back.
            conflicts: Takes those of which something else is in the place.
        """
        from filepact.fs.kept_copies import find_aside  # noqa: PLC0415 - nearly never

        found: Places = {}
        for path, one in lost.items():
            if one.before is None and self._guard.root_of(path.root).glance(path.path) is None:
                found[path] = "", None  # It was made, and somebody has removed it.
            now = stamp_at(self._guard.root_of(path.root), path.path) if one.returns else None
            place, inode = find_aside(self._state.path, one.before) if one.returns else ("", 0)
            if now and now.set_aside == one.before:
                found[path] = "", None
            elif place:
                made = (at for at, other in lost.items() if other.before is None)
                held = ((at, self._guard.root_of(at.root).glance(at.path)) for at in made)
                found[path] = place, next((at for at, it in held if it and it[0] == inode), None)
        going = [lost[path].inverse() for path, (place, _) in found.items() if place]
        for path in self._fitting.moved(ChangeSet(tuple(going))):
            shown = self._writer.show(path)
            why = "somebody made or changed a file of this name meanwhile"
            hint = "Nothing was changed. Move that file elsewhere first."
            conflicts[path] = StaleFileError(f"{shown}: {why}", hint=hint, path=shown)
            del found[path]
        return found

    def moved_on(
        self, plan: UndoChange, session: Session, fits: Callable[[list[str], Conflicts], bool]
    ) -> Conflicts:
        """The files that were to be removed, and somebody has moved since: they stay, and are named with their other names.

        Args:
            plan: What goes back.
            session: Who wants it.
            fits: Whether some operations, taken back together, leave none of some conflicts.
        """
        roots = ((one, self._guard.root_of(one.path.root)) for one in plan.changes.changes)
        some = (x for x, root in roots if not x.after and root.glance(x.path.path) is None)
        gone = {one.path: one.before for one in some if one.before and not _is_linked(one.before)}
        if not gone:
            return {}
        by, others = moved_since(self._store, plan.operations, gone)
        others |= {path for step in (plan.changes, *plan.earlier) for path in step.paths}
        # A folder in which something comes or goes was there, whatever else has its time.
        others |= {x._replace(path=up) for x in others for up in folders_above(x.path)}
        began = min((one.created for one in plan.operations), default=0.0)
        roots_of, turns = {x.root for x in gone}, {x.session.turn for x in plan.operations}
        told = (
            x for at in roots_of for x in self._store.questions(root=at, limit=_FAR, kind="turns")
        )
        born = min((x.when for x in told if x.title in turns), default=began) - _COARSE
        # What an undo has brought back may be the file itself, which is older than that undo.
        sides = (
            (x.before, x.after) if one.kind == "change" else (x.after, None)
            for one in plan.operations
            for x in one.changes.changes
        )
        older = {there.content for there, then in sides if there and not then}
        seen = self._guard.root_of, self._fitting.current, self._store.content
        hides = self._writer.hides(session if session.agent else None)
        found: Conflicts = {}
        fit: dict[tuple[str, ...], bool] = {}

        def may_be_older(path: WorkspacePath, content: str) -> bool:
            return content in older or bool(by.get(path))

        for path, new in _moved_on(
            gone, *seen, since=began, born=born, older=may_be_older, among=others
        ).items():
            first = plan.operations[0].seq
            if new not in by and self._store.operations(
                root=new.root, path=new.path, before_seq=first, limit=1
            ):
                continue  # It was there before.
            shown, at = (shown_name(self._writer.show(one)) for one in (path, new))
            to = "" if hides(new, ()) else f" to {at}"
            way = ", and it stays there"
            since = [one.id for one in by.get(new, ())]
            ids = (*(one.id for one in plan.operations if path in one.changes.paths), *since)
            if since and not session.agent:
                to += f" (operation {', '.join(since)})"
                if ids not in fit:
                    fit[ids] = fits([*ids], {path: StaleFileError(shown)})
                way = (
                    f"; `filepact undo {' '.join(ids)}` takes all of that back" if fit[ids] else way
                )
            why = f"{shown}: somebody moved it{to} since{way}"
            hint = "Nothing was changed. Remove it there yourself, or move it back first."
            found[path] = StaleFileError(why, hint=hint, path=shown)
        return found

    def empty_folders(self, plan: UndoChange) -> tuple[ChangeSet, list[str]]:
        """The removal of the folders that were made for files which are all gone, as far as they hold nothing; and the others."""
        parts = {one.id: one for one in plan.parts if not one.whole}
        # A folder that one of them had removed was there before.
        every = (x for one in plan.operations for x in one.changes.changes)
        had = {x.path for x in every if x.before and x.before.is_folder}
        made: dict[WorkspacePath, Revision] = {}
        for one in plan.operations:
            within = parts[one.id].files if one.id in parts else None
            for path in {WorkspacePath(*at) for at in one.directories} - had:
                if within is None or any(turning_above(each, (path,)) for each in within):
                    made |= {path: now} if (now := folder_at(self._guard, path)) else {}
        full: list[str] = []
        for path in sorted(made):
            root = self._guard.root_of(path.root)
            with TreeReader(root, path.path, allow=lambda _, _is: True, ignore=False) as held:
                if any(WorkspacePath(path.root, one.path) not in made for one in held):
                    del made[path]
                    full.append(shown_name(self._writer.show(path)))
        order = sorted(made, reverse=True)
        return ChangeSet(tuple(FileChange(path, made[path], None) for path in order)), full

    def with_empty_folders(self, plan: UndoChange, fitted: RebaseResult) -> RebaseResult:
        """Add the folders that were made for files which are gone already to what goes back: a redo makes them anew."""
        partly = {one.id for one in plan.parts if not one.whole}
        whole = [one for one in plan.operations if one.id not in partly and plan.kind != "redo"]
        used = fitted.changes.paths
        stay = {*used, *(x._replace(path=up) for x in used for up in folders_above(x.path))}
        gone, _ = self.empty_folders(replace(plan, operations=tuple(whole)))
        more = [x for x in gone.changes if x.path not in stay]
        changes = ChangeSet((*fitted.changes.changes, *more)) if more else fitted.changes
        return replace(fitted, changes=changes, contents={**fitted.contents, FOLDER.content: b""})

    def without_empty_folders(
        self, plan: UndoChange, fitted: RebaseResult, conflicts: Conflicts
    ) -> RebaseResult:
        """Leave out the folders that would come again for files alone that stay as they are.

        Raises:
            NoChangeError: Nothing is left.
        """
        made = {WorkspacePath(*at) for one in plan.operations for at in one.directories}
        comes = [x.path for x in fitted.changes.changes if x.after and not x.after.is_folder]
        idle = {x._replace(path=up) for x in conflicts for up in folders_above(x.path)} & made
        idle -= {x._replace(path=up) for x in comes for up in folders_above(x.path)}
        left = [x.path for x in fitted.changes.changes if x.path in idle and not x.before]
        if len(left) == len(fitted.changes.changes):
            raise NoChangeError("only folders are left, which nothing comes into")
        return replace(fitted, changes=fitted.changes.without(left))

    def put_back(
        self,
        receipt: Receipt,
        plan: UndoChange,
        conflicts: Conflicts,
        places: Places,
        session: Session,
        *,
        dry_run: bool,
    ) -> Receipt:
        """Put them back after all else has gone back, with an entry of its own in the journal.

        Args:
            receipt: What is said of all else.
            plan: What goes back in all.
            conflicts: What does not.
            places: As `find` has it.
            session: Who wants it.
            dry_run: Whether it is only shown.

        Returns:
            The receipt of both, with all that is left.
        """
        from filepact.fs.kept_copies import put_back  # noqa: PLC0415 - nearly never

        failed: Conflicts = {}
        done: list[FileChange] = []
        for path, (place, other) in places.items():
            if not place:
                continue
            ends = [path, *([other] if other else [])]
            root, now = self._guard.root_of(path.root), plan.lost[path].after
            try:
                self._guard.permit(path, "write", back=True)
                if not dry_run:
                    with self._fitting.locked(ends):
                        by, token = other.path if other else "", f"{new_id()}-0"
                        put_back(place, root, path.path, now=now, other=by, token=token)
            except FilepactError as error:
                failed[path] = error
            else:
                done += [plan.lost[one].inverse() for one in ends]
        left = left_files(self._writer.show, conflicts, {**plan.unable, **failed})
        receipt = replace(receipt, left=(*receipt.left, *left))
        if not done:
            return receipt
        changes = ChangeSet(tuple(done))
        shown = self._writer.shown(changes, self._writer.versions(), None)
        files = (*receipt.files, *shown.files)
        receipt = replace(receipt, files=files, diff=receipt.diff + shown.diff)
        if dry_run:
            return receipt
        stays = {*plan.changes.paths, *plan.lost, *plan.unable}.difference(changes.paths)
        made = new_proposal(session, plan.tool or plan.kind, plan.summary, changes)
        made = replace(made, kind=plan.kind, target=plan.target_without(stays))
        id_ = self._store.adopt(operation_of(made, changes), {}).id
        return replace(receipt, operation=receipt.operation or id_, status="applied")


def _is_linked(state: Revision) -> bool:
    """Whether a file had several names, of which nobody knows which one a name is that it has now."""
    return bool(state.attributes and state.attributes.linked and not state.is_whole)


def left_files(
    show: Callable[[WorkspacePath], str],
    conflicts: Conflicts,
    lost: Mapping[WorkspacePath, FilepactError],
) -> tuple[SkippedFile, ...]:
    """The files that stay, each with the first line of the reason, whose other lines show what differs."""
    left: list[SkippedFile] = []
    for some in (conflicts, lost):
        for path, why in some.items():
            taken, said = why.details.get("bytes"), why.message.partition("\n")[0]
            size = taken if isinstance(taken, int) else None
            left.append(SkippedFile(show(path), said, size, lost=some is lost))
    return tuple(left)


class ChangePublisher(Protocol):
    """One root of a workspace whose changes are others' as well."""

    def bind(
        self, committer: Committer, recovery: Recovery, *, fitting: Rebase, writer: ChangeWriter
    ) -> None:
        """Take the parts of the workspace that the root is in, and publish every change that it commits."""

    def refresh(self) -> None:
        """Bring the root up to what others have published; before each call."""

    def made(self, request: str, *, settle: bool) -> bool:
        """Whether something was made for a request, by whatever machine.

        Args:
            request: Its id.
            settle: Whether what a machine that is gone has sent for it is not to be done any more.
        """


def _moved_on(
    gone: Mapping[WorkspacePath, Revision],
    root_of: Callable[[RootId], Root],
    held: Callable[[WorkspacePath], Document | None],
    content: Callable[[str], bytes],
    *,
    since: float,
    born: float,
    older: Callable[[WorkspacePath, str], bool],
    among: Collection[WorkspacePath],
) -> dict[WorkspacePath, WorkspacePath]:
    """The names that files and folders have by now, which somebody moved: by what they hold and its time, or by most lines.

    Args:
        gone: They, as they were, by the names that nothing has any more.
        root_of: The open root of a path.
        held: What a name holds by now.
        content: Stored bytes by content id.
        since: When it was recorded that they had come, seconds since the epoch.
        born: No file is one of them that was made earlier, seconds since the epoch.
        older: But for those that had been there by another name: told of a name, and what it holds by its content id.
        among: Names that are none of these.
    """
    times = {one.attributes.modified for one in gone.values() if one.attributes}
    came: dict[WorkspacePath, Document] = {}
    few = _MOST_COMPARED
    for at in {path.root for path in gone}:
        root = root_of(at)
        with TreeReader(root, allow=lambda x, _: basename(x) not in _UNSEEN, ignore=False) as found:
            for entry in found:
                stamp, path = root.glance(entry.path), WorkspacePath(at, entry.path)
                other = stamp and stamp[2] not in times
                if stamp is None or path in among or (other and stamp[3] < since * 1e9):
                    continue
                few -= bool(other)
                with suppress(FilepactError):
                    there = held(path) if few >= 0 or not other else None
                    # Where the system does not say when, the twin of one that was removed may be another's.
                    made = root.born(entry.path) or (stamp[3] if stamp else born * 1e9)
                    if there and (older(path, there.revision.content) or made >= born * 1e9):
                        came[path] = there
    both = [FileChange(path, state.compared, None) for path, state in gone.items()]
    both += [FileChange(path, None, one.revision) for path, one in came.items()]
    folders = [one for one in both if one.before and one.before.is_folder]
    to = {
        old.path: new.path
        for old in folders
        for new in both
        if new.after == old.before and written(new.after) == written(old.before)
    }
    to |= {old.path: new.path for old, new in same_entries(both)}
    rest = [one for one in both if one.path not in to and one.path not in to.values()]
    bytes_of = {one.revision.content: one.data for one in came.values()}
    with suppress(FilepactError):
        pairs = origins(rest, lambda one: bytes_of[one] if one in bytes_of else content(one))
        to |= {old.path: new for new, old in pairs.items()}
    return to
