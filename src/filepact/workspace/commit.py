"""Commits operations: records the intention, replaces the files, records the end.

1. The journal records the intention with all images, before the first file is touched.
2. Every new text is written to a temporary file beside its target.  This takes all the room that is needed.
   It is done while the disk has the intention to write, and such a file has no name before that is over.
3. Each temporary file and its target exchange their names, one pair after the other, and their folders are
   made durable.  Until then each old file still has a name, so everything can be taken back without room,
   and only bytes of our own are replaced by that.
   Removals come first.  Where a folder takes the place of a file, or a file that of a folder, the temporary
   files of all that is in it lie beside it, so that it is empty when it goes, and what it held is still there.
4. The old files are removed, and the journal records the end, in room that is reserved in the state folder.
   Where even that fails, the change is done and unconfirmed; the next call, or `recovery`, records its end.
"""

from __future__ import annotations

from contextlib import suppress
from math import inf
from posixpath import dirname
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import FOLDER, Revision
from filepact.domain.operation import ChangeId
from filepact.errors import FilepactError, OutcomeUnknownError, StateFailedError, WriteFailedError
from filepact.fs.in_place import Staging, removed_place, tidy_removed
from filepact.text.confusables import shown_name
from filepact.values import dataclass, replace
from filepact.workspace.displaced_files import DisplacedFiles
from filepact.workspace.folder_steps import (
    FolderSteps,
    lasting,
    missing_folders,
    remove_folders,
    settle_folders,
    shut_folders,
)
from filepact.workspace.handing import FileNames, file_of, stays_joined, taking_over
from filepact.workspace.journal import new_id
from filepact.workspace.moves import MoveSteps, make_again, moves_of
from filepact.workspace.receipt import first_refused, is_of_one_file, only_elsewhere

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from filepact.domain.document import Document, RootId, WorkspacePath
    from filepact.domain.operation import Operation, OperationState, PruneResult
    from filepact.fs.atomic import StagedContent
    from filepact.fs.read_only_root import OpenFile
    from filepact.fs.root import Root
    from filepact.fs.staged import StagedChange
    from filepact.fs.state import StateFolder
    from filepact.workspace.journal import JournalStore

__all__ = ["Committer", "OperationResult", "tell_end"]

_FEW = 64
_LONGEST_NOTE = 4_000
_MADE_ANEW = "the removed file was changed since, or cannot be put back; it was made anew as it was"
_UNTIDY = 1 << 12  # removed files, or as large as so many, after which there may be too many


@dataclass(slots=True)
class _Part:
    """One file of an operation under way."""

    change: FileChange
    root: Root
    staged: StagedChange
    applied: bool = False


@dataclass(frozen=True, slots=True)
class OperationResult:
    """The end of an operation, as the journal records it.

    Attributes:
        left: What it really did, when that is less than was intended.
    """

    operation: ChangeId
    state: OperationState
    note: str
    left: ChangeSet | None = None


class Committer:
    """Carries out operations on the files of some roots.

    Args:
        store: The journal.
        state: Where rescued texts are put, and room is kept.
        root_of: The open root of a path.
        show: How a path is shown.

    Attributes:
        cut_off: Whether an operation was stopped in between, so that recovery is needed.
        shares: Whether what others see depends on it, so that each file is looked at before anything is done.
        publish: Makes a change known elsewhere when all is staged here, and before anything is replaced; what is
            to be told when it is done here, None for nothing.  An error of it is one of the operation, and nothing was changed.
    """

    def __init__(
        self,
        store: JournalStore,
        state: StateFolder,
        *,
        root_of: Callable[[RootId], Root],
        show: Callable[[WorkspacePath], str],
    ) -> None:
        self._store = store
        self._state = state
        self._root_of = root_of
        self._show: Callable[[WorkspacePath], str] = lambda path: shown_name(show(path))
        self.cut_off = False
        self.shares = False
        self.publish: Callable[[Operation, Mapping[str, bytes]], Callable[[], None] | None] = (
            lambda _operation, _contents: None
        )
        self._late = DisplacedFiles(store, state)
        self._unrecorded: list[OperationResult] = []
        self._kept = 0
        self._recording = Lock()

    def commit(
        self,
        operation: Operation,
        contents: Mapping[str, bytes],
        held: Mapping[WorkspacePath, OpenFile] = MappingProxyType({}),
    ) -> Operation:
        """Do an operation whose files are locked by the caller.

        Args:
            operation: What to do; its ``seq`` and state are set here.
            contents: The bytes of every revision it names.
            held: The files, as far as they are kept open.

        Returns:
            The operation as done; ``confirmed`` tells whether disk and journal said so.

        Raises:
            StaleFileError: A file is not what the operation starts from; nothing was changed.
            WriteFailedError: The system refused; the message says what is on disk, and
                ``outcome`` in the details as well.
            StateFailedError: The journal cannot be written; nothing was changed.
        """
        self.record_ends()
        prepared: dict[WorkspacePath, StagedContent] = {}
        try:
            begun = self._begin(operation, contents, held, prepared)
            return self._carry_out(begun, contents, held, prepared)
        finally:
            for one in prepared.values():
                one.close()

    def _carry_out(
        self,
        begun: Operation,
        contents: Mapping[str, bytes],
        held: Mapping[WorkspacePath, OpenFile],
        prepared: Mapping[WorkspacePath, StagedContent],
    ) -> Operation:
        parts: list[_Part] = []
        mark: _Part | None = None
        published: Callable[[], None] | None = None
        folders = FolderSteps(begun, self._root_of)
        moves = MoveSteps(begun, self._root_of, folders)
        joins = stays_joined(begun, self._store)
        handing = FileNames(begun, self._root_of, joins=joins)
        given = parts, begun, contents, held, prepared, folders, (joins, handing)
        try:
            folders.make()
            self._stage_all(*given, lambda path: path not in moves.paths)
            mark = self._mark(begun, parts, moves, folders, always=bool(handing or moves.late))
            published = self.publish(begun, contents)
            if copied := moves.do():
                self._stage_all(*given, copied.__contains__)
            few = len(parts) <= _FEW
            turned = False
            for part in sorted(parts, key=_turn_of):
                if part.change.after is not None and not turned:
                    moves.turn()
                    turned = True
                part.staged.holds = few
                part.root.apply(part.staged)
                part.applied = True
            if not turned:
                moves.turn()
            if mark is not None:
                if handing:
                    self._sync([*parts, mark])
                    handing.write(contents)
                mark.root.drop(mark.staged)
            unsure = self._sync(parts)
            if published is not None:
                published()
        except OutcomeUnknownError:
            # Only the shared workspace can tell whether this was done, and it does not answer.
            self.cut_off = True
            _close(parts)
            raise
        except FilepactError as error:
            end: OperationState = "rolled_back" if published is None else "applied"
            kept = handing.take_back(contents)
            self._take_back(begun, parts, (folders, moves), mark, contents, error, end, kept)
            if published is not None:
                raise only_elsewhere(error) from None
            raise
        except BaseException:
            # Stopped between an effect and its note: only a look at the files tells what is done.
            self.cut_off = True
            _close(parts)
            raise
        notes = [begun.note, *self._settle(begun.id, parts)]
        notes += [f"{self._show(path)}: written, durability not confirmed" for path in unsure]
        stay = settle_folders(folders, begun, self._store, self._root_of)
        if stay and self._late.let_go(stay):
            # Some file systems keep a file in its folder, under a hidden name, as long as it is open.
            stay = settle_folders(folders, begun, self._store, self._root_of)
        notes += [f"the folder {self._show(path)} stays: {why}" for path, why in stay.items()]
        notes += [
            f"{self._show(path)}: {'; '.join(told)}" for path, told in folders.notes.items() if told
        ]
        note = "; ".join(filter(None, notes))
        left = lasting(begun.changes)
        told = self._tell(OperationResult(begun.id, "applied", note, left))
        if not told:
            note = "; ".join(filter(None, [note, "the journal does not have the end of it yet"]))
        begun = replace(begun, changes=left or begun.changes)
        return replace(begun, state="applied", note=note, confirmed=told and not unsure)

    def put_back(self, meant: Document, found: Revision, change_id: str) -> None:
        """Give a locked file the bytes again that an operation gave it.

        It is no operation of its own: whoever wrote in between wrote the same text.

        Args:
            meant: The file as it is to be.
            found: What the disk has.
            change_id: The operation; empty for none that the journal knows.

        Raises:
            StaleFileError: It is something else by now.
            WriteFailedError: The system refused; nothing was changed.
        """
        change = FileChange(meant.path, found, meant.revision)
        written = make_again(
            self._root_of(meant.path.root),
            change,
            {meant.revision.content: meant.data},
            f"{new_id()}-0",
        )
        if written.displaced is not None:
            self._late.watch(ChangeId(change_id), meant.path, written.displaced)

    def record_ends(self) -> None:
        """Tell the journal how operations ended, where it could not take that down before."""
        if not self._unrecorded:
            return
        with self._recording:
            owed, self._unrecorded = self._unrecorded, []
        for end in owed:
            self._tell(end)

    @property
    def unrecorded(self) -> tuple[OperationResult, ...]:
        """Ends that the journal could not take down yet."""
        return tuple(self._unrecorded)

    def close(self) -> None:
        """Look at replaced files for the last time, and tell what is left to be told."""
        self._late.close()
        self.record_ends()

    # -- the beginning --------------------------------------------------------------------

    def _begin(
        self,
        operation: Operation,
        contents: Mapping[str, bytes],
        held: Mapping[WorkspacePath, OpenFile],
        prepared: dict[WorkspacePath, StagedContent],
    ) -> Operation:
        def prepare() -> None:
            """Write the new texts while the journal's disk is waited for; none has a name yet."""
            moved = {one.path for move in moves_of(operation.changes) for one in move.changes}
            for change in operation.changes.changes[:_FEW]:
                file, to = held.get(change.path), change.after
                if file is None or file.folder < 0 or change.path in moved:
                    continue
                if not to or to.is_folder or to.is_link:
                    continue
                # What is wrong with a file is found again, and told, when it is staged.
                with suppress(FilepactError):
                    one = self._root_of(change.path.root).prepare(
                        change.path.path,
                        contents[to.content],
                        after=to.compared,
                        expected=change.before and change.before.compared,
                        file=file,
                    )
                    if one is not None:
                        prepared[change.path] = one

        # Planned before they are made, so that a crash in between leaves none behind.
        planned = missing_folders(operation.changes, self._root_of)
        try:
            self._state.locks.check()
            self._state.keep_room()
            if planned:
                operation = replace(operation, directories=planned)
            if shut := shut_folders(operation, self._root_of):
                changes = ChangeSet((*operation.changes.changes, *shut))
                operation = replace(operation, changes=changes)
                contents = {**contents, FOLDER.content: b""}
            return self._store.begin(operation, contents, prepare)
        except StateFailedError as error:
            # The journal may have the intention, and only its disk refuse it: the next call takes it back.
            self.cut_off = True
            error.details["outcome"] = "not_applied"
            raise

    def _stage_all(
        self,
        parts: list[_Part],
        begun: Operation,
        contents: Mapping[str, bytes],
        held: Mapping[WorkspacePath, OpenFile],
        prepared: Mapping[WorkspacePath, StagedContent],
        folders: FolderSteps,
        joining: tuple[bool, FileNames],
        wanted: Callable[[WorkspacePath], bool],
    ) -> None:
        """Stage every wanted file, in the order in which they are applied.

        Raises:
            FilepactError: The first that is wrong with one, with all the files of which something is.
        """
        # Whatever happens to a single file is seen, and put right, when it is exchanged.
        changes = begun.changes if begun.kind == "change" else begun.changes.written_now
        several = len(changes.changes) > 1 or self.shares
        joins, handing = joining
        over = taking_over(begun.changes.changes, back=begun.kind != "change")
        refused: list[FilepactError] = []
        for number, change in changes.in_order:
            if not wanted(change.path):
                continue
            try:
                if begun.kind == "change":
                    _refuse_protected(change)
                part = self._stage(
                    f"{begun.id}-{number}",
                    change,
                    contents,
                    file=held.get(change.path),
                    unnamed=prepared.get(change.path),
                    beside=folders.beside(change.path),
                    handing=handing,
                    how=Staging(
                        several, change.path not in over and bool(joins or change.of_one_file)
                    ),
                )
            except FilepactError as error:
                refused.append(error)
                if not is_of_one_file(error):
                    break
            else:
                parts.append(part)
        if refused:
            raise first_refused(refused)

    def _stage(
        self,
        token: str,
        change: FileChange,
        contents: Mapping[str, bytes],
        *,
        file: OpenFile | None,
        unnamed: StagedContent | None,
        beside: str | None,
        handing: FileNames,
        how: Staging,
    ) -> _Part:
        root, path, after = self._root_of(change.path.root), change.path.path, change.after
        had = after.attributes if handing.brings_back and after and not change.before else None
        kept = ""
        if had and had.modified and after and not (file_of(change) or after.is_link):
            named = self._state.path, change.path, after.content
            if kept := removed_place(*named, len(contents[after.content])):
                self._late.let_go([change.path])  # What is written to it is lost no more.
        if joined := handing.stage(change, token, beside, kept):
            return _Part(change, root, joined)
        staged = root.stage(
            path,
            None if after is None else unnamed or contents[after.content],
            after=after and after.compared,
            expected=change.before and change.before.compared,
            token=token,
            file=file,
            beside=beside,
            how=how,
        )
        staged.notes += (_MADE_ANEW,) * bool(kept)
        before = change.before
        if after is None and before and before.was_read and not before.is_link:
            staged.place = removed_place(self._state.path, change.path, before.content)
        handing.made_anew(change, staged, joins=how.joins)
        return _Part(change, root, staged)

    def _mark(
        self,
        operation: Operation,
        parts: list[_Part],
        moves: MoveSteps,
        folders: FolderSteps,
        *,
        always: bool,
    ) -> _Part | None:
        """Leave a sign that the operation is under way, where no staged text is one, or ``always``.

        It is an empty file under a temporary name, and goes before the folders are made durable.
        """
        changes = operation.changes.changes
        once = len(changes) == 1 + bool(moves.paths)
        if not always and (once or any(part.staged.is_aside for part in parts)):
            return None
        going = [part.change.path for part in parts if part.change.after is None]
        if parts and not going and not moves.first and not always:
            return None  # All are written in place, in folders that take no other file.
        # Beside what is moved, and not in it.
        path = moves.first or (going or [changes[0].path])[0]
        root = self._root_of(path.root)
        staged = root.stage(
            path.path,
            b"",
            after=Revision.of(b"", 0o600),
            expected=None,
            token=f"{operation.id}-{len(changes)}",
            beside=folders.beside(path),
        )
        return _Part(changes[0], root, staged)

    # -- the end --------------------------------------------------------------------------

    def _sync(self, parts: Iterable[_Part]) -> list[WorkspacePath]:
        """Make the folders of files durable; the files for which nobody confirmed it."""
        folders: dict[tuple[RootId, str], bool] = {}
        unsure: list[WorkspacePath] = []
        for part in parts:
            path = part.change.path
            key = (path.root, dirname(path.path))
            if key not in folders:
                folders[key] = part.root.sync(part.staged)
            if not folders[key]:
                unsure.append(path)
        return unsure

    def _settle(self, change_id: ChangeId, parts: Sequence[_Part]) -> list[str]:
        """Give up the old files; what a person should know."""
        notes: list[str] = []
        for part in parts:
            try:
                written = part.root.settle(part.staged)
            except FilepactError as error:
                # Its folder was moved away just now, and is not held as there are so many.
                notes.append(f"the old text could not be removed: {error.message}")
                continue
            finally:
                part.staged.close()
            name = f"{self._show(part.change.path)}: " if len(parts) > 1 else ""
            notes.extend(f"{name}{note}" for note in written.notes)
            if written.displaced is not None:
                if written.displaced.kept:
                    self._kept += 1 + (written.displaced.status().st_size >> 14)
                self._late.watch(change_id, part.change.path, written.displaced)
        if self._kept >= _UNTIDY:
            self.tidy()
        return notes

    def tidy(self, pruned: PruneResult | None = None) -> None:
        """Give up removed files that are too many, or went before all that the journal has still."""
        oldest = (pruned.oldest or inf) if pruned and pruned.contents else None
        if self._kept or oldest:
            self._kept = 0
            tidy_removed(self._state.path, oldest)

    def _tell(self, end: OperationResult) -> bool:
        """Tell the journal how an operation ended; whether it has taken it down."""
        try:
            tell_end(self._store, self._state, end)
        except FilepactError:
            with self._recording:
                self._unrecorded.append(end)
            return False
        return True

    # -- taking back ----------------------------------------------------------------------

    def _take_back(
        self,
        operation: Operation,
        parts: list[_Part],
        steps: tuple[FolderSteps, MoveSteps],
        mark: _Part | None,
        contents: Mapping[str, bytes],
        cause: FilepactError,
        end: OperationState,
        kept: list[FileChange],
    ) -> None:
        """Return the files that were already changed to what they were before, but for those that are ``kept``.

        What was staged goes last: while it is there, recovery would take back as well.
        """
        folders, moves = steps
        done = [part for part in parts if part.applied]
        for number, part in enumerate(reversed(done), start=len(operation.changes.changes) + 1):
            if part.change.after is None:
                kept += moves.turn_back()
            try:
                if part.staged.retains:
                    part.root.take_back(part.staged)
                else:
                    token = f"{operation.id}-{number}"
                    make_again(part.root, part.change.inverse(), contents, token).close()
                part.applied = False
            except FilepactError:
                kept.append(part.change)
        kept += moves.take_back()
        if kept:
            # The end comes first: without temporary files nobody could find it out any more.
            self._tell_part(operation, kept, cause)
        self._settle(operation.id, [part for part in parts if part.applied])
        for part in [*(part for part in parts if not part.applied), *([mark] if mark else [])]:
            with suppress(FilepactError):
                part.root.drop(part.staged)
        with suppress(FilepactError):
            self._sync(parts)
        _close(parts)
        folders.take_back()
        remove_folders(operation, self._root_of)
        if not kept:
            told = OperationResult(operation.id, end, cause.message, lasting(operation.changes))
            self._tell(told)
            cause.details["outcome"] = "not_applied"
            return
        names = ", ".join(self._show(change.path) for change in kept)
        raise WriteFailedError(
            f"{cause.message}; these files were changed before that and could not be taken back: "
            f"{names}",
            hint=f"Once the cause is gone, the person can take them back: {operation.id} in `filepact log`.",
            operation=operation.id,
            outcome="in_part",
        ) from cause

    def _tell_part(
        self, operation: Operation, kept: list[FileChange], cause: FilepactError
    ) -> None:
        names = ", ".join(self._show(change.path) for change in kept)
        note = f"{cause.message}; already changed and not taken back: {names}"
        left = ChangeSet(tuple(reversed(kept)))
        self._tell(OperationResult(operation.id, "interrupted", note, left))


def _close(parts: Iterable[_Part]) -> None:
    for part in parts:
        part.staged.close()


def tell_end(store: JournalStore, state: StateFolder, end: OperationResult) -> None:
    """Tell the journal how an operation ended, in the room that is kept for it if need be.

    Raises:
        StateFailedError: It cannot be written all the same.
        TimedOutError: Another process held it for too long.
    """
    # What is said of thousands of files must not need more room than is kept.
    note = end.note if len(end.note) <= _LONGEST_NOTE else f"{end.note[:_LONGEST_NOTE]}..."
    try:
        store.finish(end.operation, state=end.state, note=note, changes=end.left)
    except FilepactError:
        state.give_room()
        store.finish(end.operation, state=end.state, note=note, changes=end.left)


def _refuse_protected(change: FileChange) -> None:
    """Refuse to take away a file's protection, and to write to it: only an undo or a redo of just that may."""
    if change.before and change.after and change.before.is_protected:
        from filepact.fs.in_place import write_protected  # noqa: PLC0415 - nearly never

        raise write_protected(change.path.path)


def _turn_of(part: _Part) -> tuple[bool, bool]:
    """When it is applied: what goes first, and last what is written in its place, which its other names show as well."""
    return part.change.after is not None, part.staged.writes_over
