"""Commits operations: records the intention, replaces the files, records the end.

1. The journal records the intention with all images, before the first file is touched.
2. Every new text is written to a temporary file beside its target.  This takes all the room that is needed.
   It is done while the disk has the intention to write, and such a file has no name before that is over.
3. Each temporary file and its target exchange their names, one pair after the other, and their folders are
   made durable.  Until then each old file still has a name, so everything can be taken back without room,
   and only bytes of our own are replaced by that.
4. The old files are removed, and the journal records the end, in room that is reserved in the state folder.
   Where even that fails, the change is done and unconfirmed; the next call, or `recovery`, records its end.
"""

from __future__ import annotations

from contextlib import suppress
from posixpath import dirname
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import FOLDER, Revision
from filepact.domain.operation import ChangeId
from filepact.errors import (
    FilepactError,
    OutcomeUnknownError,
    StateFailedError,
    WriteFailedError,
)
from filepact.values import dataclass, replace
from filepact.workspace.displaced_files import DisplacedFiles
from filepact.workspace.journal import new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from filepact.domain.document import Document, RootId, WorkspacePath
    from filepact.domain.operation import Operation, OperationState
    from filepact.fs.atomic import StagedContent
    from filepact.fs.root import Root
    from filepact.fs.staged import StagedChange, WriteResult
    from filepact.fs.state import StateFolder
    from filepact.workspace.journal import JournalStore

__all__ = [
    "Committer",
    "OperationResult",
    "make_again",
    "remove_emptied",
    "remove_folders",
    "tell_end",
]

_FEW = 64
_LONGEST_NOTE = 4_000


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
        self._show = show
        self.cut_off = False
        self.shares = False
        self.publish: Callable[[Operation, Mapping[str, bytes]], Callable[[], None] | None] = (
            lambda _operation, _contents: None
        )
        self._late = DisplacedFiles(store, state)
        self._unrecorded: list[OperationResult] = []
        self._recording = Lock()

    def commit(
        self,
        operation: Operation,
        contents: Mapping[str, bytes],
        open_folders: Mapping[WorkspacePath, int] = MappingProxyType({}),
    ) -> Operation:
        """Do an operation whose files are locked by the caller.

        Args:
            operation: What to do; its ``seq`` and state are set here.
            contents: The bytes of every revision it names.
            open_folders: Descriptors of the files' folders, as far as they are open; -1 for none.

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
            begun = self._begin(operation, contents, open_folders, prepared)
            return self._carry_out(begun, contents, open_folders, prepared)
        finally:
            for one in prepared.values():
                one.close()

    def _carry_out(
        self,
        begun: Operation,
        contents: Mapping[str, bytes],
        open_folders: Mapping[WorkspacePath, int],
        prepared: Mapping[WorkspacePath, StagedContent],
    ) -> Operation:
        parts: list[_Part] = []
        made: list[FileChange] = []
        mark: _Part | None = None
        published: Callable[[], None] | None = None
        try:
            for root, folder in begun.directories:
                self._root_of(root).make_directories(folder)
            # Whatever happens to a single file is seen, and put right, when it is exchanged.
            several = len(begun.changes.changes) > 1 or self.shares
            for number, change in _in_order(begun.changes.changes):
                if FOLDER not in (change.before, change.after):
                    parts.append(
                        self._stage(
                            *(f"{begun.id}-{number}", change, contents),
                            folder=open_folders.get(change.path, -1),
                            early=several,
                            unnamed=prepared.get(change.path),
                        )
                    )
                elif change.after is not None and self._root_of(change.path.root).make_directories(
                    change.path.path
                ):
                    made.append(change)
            mark = self._mark(begun, parts)
            published = self.publish(begun, contents)
            few = len(parts) <= _FEW
            for part in parts:
                part.staged.holds = few
                part.root.apply(part.staged)
                part.applied = True
            if mark is not None:
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
            self._take_back(begun, parts, made, mark, contents, error, end)
            if published is not None:
                raise _only_elsewhere(error) from None
            raise
        except BaseException:
            # Stopped between an effect and its note: only a look at the files tells what is done.
            self.cut_off = True
            _close(parts)
            raise
        notes = [begun.note, *self._settle(begun.id, parts)]
        notes += [f"{self._show(path)}: written, durability not confirmed" for path in unsure]
        for change in begun.changes.changes:
            if change.before == FOLDER and change.after is None:
                notes += self._remove_folder(change)
        notes += remove_emptied(begun, self._store, self._root_of)
        note = "; ".join(filter(None, notes))
        told = self._tell(OperationResult(begun.id, "applied", note))
        if not told:
            note = "; ".join(filter(None, [note, "the journal does not have the end of it yet"]))
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
        open_folders: Mapping[WorkspacePath, int],
        prepared: dict[WorkspacePath, StagedContent],
    ) -> Operation:
        def prepare() -> None:
            """Write the new texts while the journal's disk is waited for; none has a name yet."""
            for change in operation.changes.changes[:_FEW]:
                folder, after = open_folders.get(change.path, -1), change.after
                if folder < 0 or after is None or after == FOLDER or after.is_link:
                    continue
                # What is wrong with a file is found again, and told, when it is staged.
                with suppress(FilepactError):
                    one = self._root_of(change.path.root).prepare(
                        *(change.path.path, contents[after.content]),
                        after=after.compared,
                        expected=change.before and change.before.compared,
                        folder=folder,
                    )
                    if one is not None:
                        prepared[change.path] = one

        # Planned before they are made, so that a crash in between leaves none behind.
        planned = tuple(
            dict.fromkeys(
                folder
                for change in operation.changes.changes
                if change.before is None
                for folder in self._missing(change)
            )
        )
        try:
            self._state.locks.check()
            self._state.keep_room()
            if planned:
                operation = replace(operation, directories=planned)
            return self._store.begin(operation, contents, prepare)
        except StateFailedError as error:
            # The journal may have the intention, and only its disk refuse it: the next call takes it back.
            self.cut_off = True
            error.details["outcome"] = "not_applied"
            raise

    def _missing(self, change: FileChange) -> list[tuple[RootId, str]]:
        """Folders that have to be made for a new file, outermost first."""
        root = self._root_of(change.path.root)
        missing: list[tuple[RootId, str]] = []
        above = dirname(change.path.path)
        while above and root.place(above).kind == "missing":
            missing.insert(0, (change.path.root, above))
            above = dirname(above)
        return missing

    def _stage(
        self,
        token: str,
        change: FileChange,
        contents: Mapping[str, bytes],
        *,
        folder: int,
        early: bool,
        unnamed: StagedContent | None,
    ) -> _Part:
        root = self._root_of(change.path.root)
        after = change.after
        staged = root.stage(
            change.path.path,
            None if after is None else unnamed or contents[after.content],
            after=after and after.compared,
            expected=change.before and change.before.compared,
            token=token,
            folder=folder,
            early=early,
        )
        return _Part(change, root, staged)

    def _mark(self, operation: Operation, parts: list[_Part]) -> _Part | None:
        """Leave a sign that the operation is under way, where no staged text is one.

        It is an empty file under a temporary name, and goes before the folders are made durable.
        """
        changes = operation.changes.changes
        if len(changes) == 1 or any(part.change.after is not None for part in parts):
            return None
        path = changes[0].path
        root = self._root_of(path.root)
        staged = root.stage(
            path.path,
            b"",
            after=Revision.of(b"", 0o600),
            expected=None,
            token=f"{operation.id}-{len(changes)}",
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

    def _settle(self, change_id: ChangeId, parts: Iterable[_Part]) -> list[str]:
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
            notes.extend(written.notes)
            if written.displaced is not None:
                self._late.watch(change_id, part.change.path, written.displaced)
        return notes

    def _remove_folder(self, change: FileChange) -> list[str]:
        """Remove a folder that is empty; one that holds something by now stays."""
        root, path = self._root_of(change.path.root), change.path.path
        with suppress(FilepactError):
            if root.place(path).kind != "directory" or root.remove_directory(path):
                return []
        return [f"{self._show(change.path)} stays: it is not empty"]

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
        made: list[FileChange],
        mark: _Part | None,
        contents: Mapping[str, bytes],
        cause: FilepactError,
        end: OperationState,
    ) -> None:
        """Return the files that were already changed to what they were before.

        What was staged goes last: while it is there, recovery would take back as well.
        """
        kept: list[FileChange] = []
        done = [part for part in parts if part.applied]
        for number, part in enumerate(reversed(done), start=len(operation.changes.changes) + 1):
            try:
                if part.staged.retains:
                    part.root.take_back(part.staged)
                else:
                    token = f"{operation.id}-{number}"
                    make_again(part.root, part.change.inverse(), contents, token).close()
                part.applied = False
            except FilepactError:
                kept.append(part.change)
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
        for change in reversed(made):
            self._remove_folder(change)
        remove_folders(operation, self._root_of)
        if not kept:
            self._tell(OperationResult(operation.id, end, cause.message))
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


def _only_elsewhere(error: FilepactError) -> WriteFailedError:
    return WriteFailedError(
        f"{error.message}. The shared workspace has the change all the same",
        hint="This folder takes it with the next call. Read the file then, before anything else.",
        outcome="elsewhere",
    )


def _close(parts: Iterable[_Part]) -> None:
    for part in parts:
        part.staged.close()


def _in_order(changes: Iterable[FileChange]) -> list[tuple[int, FileChange]]:
    """Changes with their numbers, removals first.

    So a staged text tells until the end that not all is done: a removal has none.
    """
    return sorted(enumerate(changes), key=lambda one: one[1].after is not None)


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


def make_again(
    root: Root, change: FileChange, contents: Mapping[str, bytes], token: str
) -> WriteResult:
    """Give one file another state at once, from bytes that are known; it needs room.

    Raises:
        StaleFileError: It is not in the state that the change starts from.
        WriteFailedError: The system refused; nothing was changed.
    """
    before, path = change.before and change.before.compared, change.path.path
    if change.after is None:
        if before is None:
            raise RuntimeError("a change from nothing to nothing")
        return root.remove(path, expected=before, token=token)
    data = contents[change.after.content]
    return root.replace(path, data, mode=change.after.compared.mode, expected=before, token=token)


def remove_emptied(
    operation: Operation, store: JournalStore, root_of: Callable[[RootId], Root]
) -> list[str]:
    """Undo of a creation also removes the folders that were made for it, if empty now.

    Returns:
        What a person should know.
    """
    notes: list[str] = []
    for target, whole in operation.taken_back.items():
        with suppress(FilepactError):
            if whole:
                notes += remove_folders(store.operation(target), root_of)
    return notes


def remove_folders(operation: Operation, root_of: Callable[[RootId], Root]) -> list[str]:
    """Remove the folders that were made for an operation, as far as they are empty.

    Returns:
        What a person should know.
    """
    notes: list[str] = []
    for root_id, path in reversed(operation.directories):
        try:
            root_of(root_id).remove_directory(path)
        except WriteFailedError as error:
            notes.append(f"the folder {path} stays: {error.message}")
        except FilepactError:
            pass  # It is somewhere else now, or something else.
    return notes
