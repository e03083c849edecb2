"""Doing what was staged: intention, effect, confirmation, and repair after a crash.

The journal holds the intention with all images before the first file is touched.  Each file is
replaced only if it still is what the change set starts from; when one of several cannot be, the
earlier ones are taken back, and only our own bytes are ever replaced by that.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from posixpath import dirname
from typing import TYPE_CHECKING

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import FOLDER, LINK, Revision, content_id
from filepact.domain.operation import ChangeId
from filepact.errors import FilepactError, TooLargeError, WriteFailedError
from filepact.fs.root import LARGEST, Expected, Written
from filepact.workspace.ids import new_id
from filepact.workspace.late import LateWrites

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact.domain.document import Document, RootId, WorkspacePath
    from filepact.domain.operation import Operation, OperationState
    from filepact.fs.lock import FileLocks
    from filepact.fs.root import Root
    from filepact.fs.state import StateFolder
    from filepact.workspace.journal import Store

__all__ = ["Committer"]


class Committer:
    """Carries out operations on the files of some roots.

    Args:
        store: The journal.
        state: Where rescued texts are put.
        locks: The locks that every change of a file holds.
        root_of: The open root of a path.
        show: How a path is shown.
    """

    def __init__(
        self,
        store: Store,
        state: StateFolder,
        locks: FileLocks,
        *,
        root_of: Callable[[RootId], Root],
        show: Callable[[WorkspacePath], str],
    ) -> None:
        self._store = store
        self._state = state
        self._locks = locks
        self._root_of = root_of
        self._show = show
        self._late = LateWrites(store, state)

    def commit(self, operation: Operation, contents: Mapping[str, bytes]) -> Operation:
        """Do an operation whose files are locked by the caller.

        Args:
            operation: What to do; its ``seq`` and state are set here.
            contents: The bytes of every revision it names.

        Raises:
            StaleFileError: A file is not what the operation starts from; nothing was changed.
            WriteFailedError: The system refused; the message says what is on disk.
        """
        # Planned before they are made, so that a crash in between leaves none behind.
        planned = tuple(
            dict.fromkeys(
                folder for change in operation.changes.changes for folder in self._missing(change)
            )
        )
        self._locks.check()
        begun = self._store.begin(replace(operation, directories=planned), contents)
        done: list[FileChange] = []
        notes: list[str] = []
        try:
            for number, change in enumerate(begun.changes.changes):
                if planned and change.before is None and (parent := dirname(change.path.path)):
                    self._root_of(change.path.root).make_directories(parent)
                written = self._apply(begun.id, number, change, contents)
                notes.extend(written.notes)
                done.append(change)
                if written.outcome == "applied_not_durable":
                    notes.append(f"{self._show(change.path)}: written, durability not confirmed")
                if written.displaced is not None:
                    self._late.watch(begun.id, change.path, written.displaced)
        except FilepactError as error:
            # Any other exception leaves the intention open: recovery will look at the files.
            self._take_back(begun, done, contents, error)
            raise
        note = "; ".join(filter(None, [begun.note, *notes]))
        self._remove_empty(begun)
        self._store.finish(begun.id, state="applied", directories=planned, note=note)
        return replace(begun, state="applied", note=note)

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
        contents = {meant.revision.content: meant.data}
        written = self._apply(new_id(), 0, change, contents)
        if written.displaced is not None:
            self._late.watch(ChangeId(change_id), meant.path, written.displaced)

    def close(self) -> None:
        """Look at replaced files for the last time."""
        self._late.close()

    # -- one file -------------------------------------------------------------------------

    def _apply(
        self, change_id: str, number: int, change: FileChange, contents: Mapping[str, bytes]
    ) -> Written:
        root = self._root_of(change.path.root)
        if FOLDER in (change.before, change.after):
            return self._apply_folder(root, change)
        expected = _expected(change.before)
        token = f"{change_id}-{number}"
        if change.after is None:
            if expected is None:
                raise RuntimeError("a change from nothing to nothing")
            return root.remove(change.path.path, expected=expected, token=token)
        return root.replace(
            change.path.path,
            contents[change.after.content],
            mode=change.after.compared.mode,
            expected=expected,
            token=token,
        )

    def _apply_folder(self, root: Root, change: FileChange) -> Written:
        """Make a folder, or remove one that is empty; one that holds something by now stays."""
        path = change.path.path
        if change.after is not None:
            root.make_directories(path)
        elif root.place(path).kind == "directory" and not root.remove_directory(path):
            return Written("applied", notes=(f"{self._show(change.path)} stays: it is not empty",))
        return Written("applied")

    def _missing(self, change: FileChange) -> list[tuple[RootId, str]]:
        """Folders that have to be made for a new file, outermost first."""
        root = self._root_of(change.path.root)
        missing: list[tuple[RootId, str]] = []
        above = dirname(change.path.path) if change.before is None else ""
        while above and root.place(above).kind == "missing":
            missing.insert(0, (change.path.root, above))
            above = dirname(above)
        return missing

    def _remove_empty(self, operation: Operation) -> None:
        """Undo of a creation also removes the folders that were made for it, if empty now."""
        if operation.kind == "undo" and operation.target:
            self._remove_folders(self._store.operation(operation.target))

    def _remove_folders(self, operation: Operation) -> None:
        """Remove the folders that were made for an operation, as far as they are empty."""
        for root_id, path in reversed(operation.directories):
            with suppress(FilepactError):
                self._root_of(root_id).remove_directory(path)

    def _take_back(
        self,
        operation: Operation,
        done: list[FileChange],
        contents: Mapping[str, bytes],
        cause: FilepactError,
    ) -> None:
        """Return the files that were already changed to what they were before."""
        kept: list[FileChange] = []
        for number, change in enumerate(reversed(done), start=len(done)):
            try:
                self._apply(operation.id, number, change.inverse(), contents)
            except FilepactError:
                kept.append(change)
        self._remove_folders(operation)
        if not kept:
            self._store.finish(operation.id, state="rolled_back", note=cause.message)
            return
        names = ", ".join(self._show(change.path) for change in kept)
        self._store.finish(
            operation.id,
            state="interrupted",
            directories=operation.directories,
            note=f"{cause.message}; already changed and not taken back: {names}",
            changes=ChangeSet(tuple(reversed(kept))),
        )
        raise WriteFailedError(
            f"{cause.message}; these files were changed before that and could not be taken "
            f"back: {names}",
            hint=f"`filepact undo {operation.id}` takes them back once the cause is gone.",
            operation=operation.id,
        ) from cause

    # -- after a crash ----------------------------------------------------------------------

    def recover(self) -> tuple[Operation, ...]:
        """Bring operations that a crash cut off to an end.

        An operation whose files are locked is still being done by another process and is left
        alone.  Nobody was told that a cut-off operation succeeded, so what it did is taken back;
        only when every file is already in its new state is it completed.

        Returns:
            The operations that were settled here, with their new states.
        """
        settled: list[Operation] = []
        for operation in self._store.unfinished():
            try:
                keys = {
                    self._root_of(path.root).place(path.path, follow=False).lock_key
                    for path in operation.changes.paths
                }
                held = self._locks.try_hold(keys)
            except FilepactError:
                # Its root is not one of ours, or is gone; or nothing can be locked here.  Whoever
                # has both will settle it.
                continue
            if held is None:
                continue
            with held:
                # It may have been finished between the listing and the lock.
                fresh = self._store.operation(operation.id)
                if fresh.state == "intended":
                    settled.append(self._settle(fresh))
        return tuple(settled)

    def _settle(self, operation: Operation) -> Operation:
        self._clear_leftovers(operation)
        states = [(change, self._now(change.path)) for change in operation.changes.changes]
        if all(now == change.after for change, now in states):
            self._remove_empty(operation)
            return self._finish(operation, "applied", "completed after a crash")
        for number, (change, now) in enumerate(states, start=len(states)):
            if now == change.after:
                with suppress(FilepactError):
                    contents = {
                        side.content: self._store.content(side.content)
                        for side in (change.before, change.after)
                        if side is not None
                    }
                    self._apply(operation.id, number, change.inverse(), contents)
        left = tuple(
            change for change in operation.changes.changes if self._now(change.path) == change.after
        )
        self._remove_folders(operation)
        if left:
            return self._finish(operation, "interrupted", "cut off by a crash in part", left)
        return self._finish(operation, "rolled_back", "cut off by a crash and taken back")

    def _finish(
        self,
        operation: Operation,
        state: OperationState,
        note: str,
        left: tuple[FileChange, ...] = (),
    ) -> Operation:
        self._store.finish(
            operation.id,
            state=state,
            directories=operation.directories,
            note="; ".join(filter(None, [operation.note, note])),
            changes=ChangeSet(left) if left else None,
        )
        return self._store.operation(operation.id)

    def _clear_leftovers(self, operation: Operation) -> None:
        """Remove our temporary files; bytes in one that are not ours are kept first."""
        ours = {
            side.content
            for change in operation.changes.changes
            for side in (change.before, change.after)
            if side is not None
        }
        folders: dict[tuple[RootId, str], list[Revision]] = {}
        for change in operation.changes.changes:
            after = folders.setdefault((change.path.root, dirname(change.path.path) or "."), [])
            if change.after is not None:
                after.append(change.after)
        for (root_id, directory), written in folders.items():
            root = self._root_of(root_id)
            # One look at each folder: an operation may have thousands of files.
            for token in root.leftovers(directory, f"{operation.id}-"):
                with suppress(FilepactError):
                    data = root.leftover(directory, token)
                    if data is None:
                        continue
                    if content_id(data) not in ours and not self._is_half(data, written):
                        self._state.rescue(_rescued_name(operation, token), data)
                    root.discard_leftover(directory, token)

    def _is_half(self, data: bytes, written: list[Revision]) -> bool:
        """Whether bytes are the beginning of what was to be written."""
        return any(self._store.content(one.content).startswith(data) for one in written)

    def _now(self, path: WorkspacePath) -> Revision | None:
        root = self._root_of(path.root)
        kind = root.place(path.path, follow=False).kind
        if kind == "missing":
            return None
        if kind == "directory":
            return FOLDER
        if kind == "link":
            return Revision.of(root.read_link(path.path), LINK)
        try:
            contents = root.read(path.path, limit=LARGEST)
        except TooLargeError:
            return Revision.unread("larger than any of ours", 0)
        return Revision.of(contents.data, contents.mode)


def _rescued_name(operation: Operation, token: str) -> str:
    """The name of the file beside which a temporary file lay, as far as its number tells."""
    number = int(token.rpartition("-")[2]) if token.rpartition("-")[2].isdigit() else -1
    if 0 <= number < len(operation.changes.changes):
        return operation.changes.changes[number].path.path.rpartition("/")[2]
    return token


def _expected(revision: Revision | None) -> Expected | None:
    return Expected(revision.content, revision.compared.mode) if revision is not None else None
