"""Recovery of operations that a crash or a power cut has cut off.

The journal has the intention.  Of the end it has nothing, and that alone says little: how an
operation ended is not synchronised, so after a power cut one that was answered may look unfinished.
The disk tells.  A change has three traces: what lies under its temporary name, what lies under its
own, and the sign that an operation of removals only leaves while it is under way.

========================  ================  ==================================================
under the temporary name  under the own     says
========================  ================  ==================================================
the new text, or a part   any               not done: it was staged, not exchanged
the old text              any               done
nothing                   the new state     done: old texts go only when all is done
nothing                   the old state     nothing: not begun, or somebody has gone back
nothing                   something else    what `_holds` finds of the change in it, or nothing
another program's text    any               as for nothing; the text is kept in the state folder
========================  ================  ==================================================

1. One change is not done, or the sign is there: the operation was never answered, since both go
   before that.  What was done is taken back.
   A file that is written in place (`fs/in_place.py`) may be half old and half new then; it is given its old text.
2. Else, one change is done: all were, since removals come first and every other change leaves its
   staged text until it is done itself.  The operation is completed.  So one that was answered is
   never taken back, whatever a person has made of its files since; that stays as well.
3. Else, every file is as before: nothing was done.
4. Else, somebody has changed all its files that are not as before, and nobody can tell whether they
   held the change then.  Nothing is touched, and the log says so; undo takes out what it can.

In a checkout of a shared workspace all this only tells what to do with the files here.  Whether an operation was done
says the shared workspace: nothing is done here before it is done there.

On a file system that makes a later rename durable before an earlier one, a power cut may leave a
removal undone in an operation that is completed by 2.  It was not answered then; the log names the
file.
"""

from __future__ import annotations

import time
from contextlib import suppress
from math import inf
from posixpath import dirname
from typing import TYPE_CHECKING, Literal

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import FOLDER, Revision, content_id
from filepact.errors import (
    FilepactError,
    NotFoundError,
    ObjectStoreFailedError,
    SharedBusyError,
    SharedGoneError,
    TooLargeError,
)
from filepact.fs.atomic import LARGEST, UNFINISHED
from filepact.fs.in_place import is_torn, tidy_removed
from filepact.text.edit import merge
from filepact.values import dataclass, replace
from filepact.workspace.commit import OperationResult, tell_end
from filepact.workspace.folder_steps import FolderSteps, lasting, remove_folders, settle_folders
from filepact.workspace.handing import handed, write_joined
from filepact.workspace.moves import MoveSteps, make_again

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.domain.document import RootId, WorkspacePath
    from filepact.domain.operation import Operation, OperationState
    from filepact.fs.root import Root
    from filepact.fs.state import StateFolder
    from filepact.workspace.commit import Committer
    from filepact.workspace.journal import JournalStore

__all__ = ["Recovery"]

_LATEST = 16
_LATER = 1.0  # seconds after which it is looked again at what somebody was at work on


@dataclass(frozen=True, slots=True)
class _Leftover:
    """A temporary file of an operation."""

    root: Root
    folder: str
    token: str
    data: bytes
    mode: int

    @property
    def content(self) -> str:
        return content_id(self.data)

    def discard(self) -> None:
        self.root.discard_leftover(self.folder, self.token)


@dataclass(slots=True)
class _Trace:
    """The remains of one change after a crash.

    Attributes:
        aside: What lies under the temporary name.
        now: What lies under its own.
    """

    token: str
    change: FileChange
    aside: Literal["nothing", "new", "old", "foreign"]
    now: Revision | None

    @property
    def of_file(self) -> bool:
        """Whether the change is of a file or link, or of a folder alone."""
        return self.change.of_file is not None

    @property
    def not_done(self) -> bool:
        return self.aside == "new"

    @property
    def done(self) -> bool:
        return not self.not_done and (self.aside == "old" or self.now == self.change.after)


class Recovery:
    """Brings operations that were cut off to an end; this module says how it decides.

    Args:
        store: The journal.
        state: Where rescued texts are put, and the locks that every change of a file holds.
        root_of: The open root of a path.
        show: How a path is shown.
        in_part: Told of an operation of which a part is done.

    Attributes:
        published: Whether an operation is in the shared workspace that a root is a checkout of; None for one that has
            no place there.
    """

    def __init__(
        self,
        store: JournalStore,
        state: StateFolder,
        root_of: Callable[[RootId], Root],
        show: Callable[[WorkspacePath], str],
        in_part: Callable[[Operation], object],
    ) -> None:
        self._store = store
        self._state = state
        self._root_of = root_of
        self._show = show
        self._in_part = in_part
        self._due = inf
        self.published: Callable[[Operation], bool | None] = lambda _operation: None

    def run(self) -> tuple[Operation, ...]:
        """Settle what can be settled here, and remove what the latest operations have left.

        An operation whose files are locked is left alone for now: mostly another process is still doing it.

        Returns:
            The operations that were settled, with their new states: ``rolled_back`` says that
            nothing of it is there, so that it can be done anew.
        """
        settled: list[Operation] = []
        self._due = inf
        for operation in self._store.unfinished():
            try:
                keys = {
                    self._root_of(path.root).lock_key(path.path) for path in operation.changes.paths
                }
                held = self._state.locks.try_hold(keys)
            except FilepactError:
                # Its root is not one of ours, or is gone; or nothing can be locked here.  Whoever
                # has both will settle it.
                continue
            if held is None:
                # Somebody is at work on one of its files: on this change, or on another.
                self._due = min(self._due, time.monotonic() + _LATER)
                continue
            with held:
                # It may have been finished between the listing and the lock.
                fresh = self._store.operation(operation.id)
                if fresh.state == "intended":
                    try:
                        settled.append(self._settle(fresh))
                    except (ObjectStoreFailedError, SharedBusyError, SharedGoneError):
                        self._due = 0.0  # until it can be asked
                    except FilepactError:
                        # What cannot be looked at or told now is left as it is, for the next start.
                        continue
        self._sweep({operation.id for operation in settled})
        if settled:
            tidy_removed(self._state.path, 0.0)
        for operation in settled:
            if operation.state == "interrupted":
                self._in_part(operation)
        return tuple(settled)

    def mend(self, committer: Committer, then: Callable[[], None] | None = None) -> None:
        """Bring to an end what an earlier call of this process could not, and then do what a call begins with."""
        if committer.unrecorded:
            self._tell_ends(committer)
        if committer.cut_off or time.monotonic() >= self._due:
            committer.cut_off = False
            self.run()
        if then is not None:
            then()

    def _tell_ends(self, committer: Committer) -> None:
        """Tell the journal how operations ended, and clear away what those that were not done have left."""
        owed = [end for end in committer.unrecorded if end.state != "applied"]
        for end in owed:
            # What refused the journal has often refused to let go of files as well.
            with suppress(FilepactError):
                self._clear_away(self._store.operation(end.operation))
        committer.record_ends()
        for end in owed:
            with suppress(FilepactError):
                told = self._store.operation(end.operation)
                if told.state == "interrupted":
                    self._in_part(told)

    def _settle(self, operation: Operation) -> Operation:
        there = self.published(operation)
        if there is False:
            # Nothing is exchanged here before it is there.
            notes = self._clear_away(operation)
            return self._end(operation, "rolled_back", ["cut off and not done", *notes])
        left = self._leftovers(operation)
        if there:
            # Whatever of it the folder has, the next call brings the rest, and others may have gone on from it.
            notes = self._clear(operation, left)
            return self._end(operation, "applied", ["cut off; the shared workspace has it", *notes])
        traces, mark = self._traces(operation, left)
        files = [one for one in traces if one.of_file]
        if mark or any(one.not_done or self._is_torn(one) for one in files):
            folders = FolderSteps(operation, self._root_of)
            renamed = self._written_back(operation, folders)
            MoveSteps(operation, self._root_of, folders).take_back_after_crash()
            traces, _ = self._traces(renamed, self._leftovers(operation))
            return self._take_back(operation, traces)
        if any(one.done for one in files or traces):
            return self._complete(operation, files or traces, left)
        if all(one.now == one.change.before for one in files):
            return self._take_back(operation, traces)
        unsure = [one for one in files if one.now != one.change.before]
        found = {self._holds(one) for one in unsure}
        if True in found:
            return self._complete(operation, files, left)
        if found == {False}:
            return self._take_back(operation, traces)
        names = ", ".join(self._show(one.change.path) for one in unsure)
        return self._end_in_part(
            operation,
            f"cut off by a crash; somebody has changed {names} since, and whether this change was "
            "made in it before cannot be told",
            left,
            [one.change for one in unsure],
        )

    # -- what is there ------------------------------------------------------------------------

    def _traces(self, operation: Operation, left: list[_Leftover]) -> tuple[list[_Trace], bool]:
        """The traces of each change; and whether there are others that say that it is under way."""
        begins = f"{operation.id}-"
        found = {one.token.removeprefix(begins): one for one in left}
        traces = []
        for number, whole in enumerate(operation.changes.compared.changes):
            change = whole.of_file
            if change is None and whole.before is not None and whole.after is not None:
                continue  # A folder that stays: nothing lies beside it.
            change = change or FileChange(
                whole.path, whole.before and FOLDER, whole.after and FOLDER
            )
            now, beside = self._now(change.path), found.pop(str(number), None)
            if whole.turns and now is not None and now.is_folder:
                now = None  # Of the file or link there is nothing.
            if change.before is not None and change.before.compared == change.after:
                continue  # Written once more as it was, which leaves nothing to tell by.
            aside = self._aside(change, now, beside)
            traces.append(_Trace(f"{begins}{number}", change, aside, now))
        return traces, bool(found)

    def _aside(
        self, change: FileChange, now: Revision | None, left: _Leftover | None
    ) -> Literal["nothing", "new", "old", "foreign"]:
        if left is None:
            return "nothing"
        before, after = change.before, change.after
        new = None if after is None else self._store.content(after.content)
        part = new is not None and new.startswith(left.data)
        if before is None or left.content != before.content:
            return "new" if part else "foreign"
        # The beginning of a new text may be the old one, and of a change of rights both texts are
        # the same.  Then the rights tell, which are given when all is written.
        half = left.mode == UNFINISHED and now == before and part
        return "new" if half or after == Revision(left.content, left.mode) else "old"

    def _holds(self, trace: _Trace) -> bool | None:
        """Whether a text that somebody changed has a change in it; None when it cannot be told.

        It has when making it once more makes no difference, and lacks it when taking it out makes
        none.  Of a file that it made, it has when most of the lines are there.
        """
        change, now = trace.change, trace.now
        if change.after is None or now is None:
            return None
        try:
            # Any bytes are such a text, and lines stay lines.
            new = self._store.content(change.after.content).decode("latin-1")
            root = self._root_of(change.path.root)
            text = root.read(change.path.path, limit=LARGEST).data.decode("latin-1")
            if change.before is None:
                lines, there = new.splitlines(), set(text.splitlines())
                return True if 2 * sum(one in there for one in lines) > len(lines) else None
            old = self._store.content(change.before.content).decode("latin-1")
        except FilepactError:
            return None
        lacks, has = merge(new, old, text).text == text, merge(old, new, text).text == text
        return has if has != lacks else None

    def _now(self, path: WorkspacePath) -> Revision | None:
        root = self._root_of(path.root)
        try:
            kind = root.place(path.path, follow=False, known=True).kind
        except NotFoundError:
            return None  # What has the name of its folder is none.
        if kind == "missing":
            return None
        if kind == "directory":
            return FOLDER
        if kind == "link":
            return root.read_link(path.path).revision
        try:
            contents = root.read(path.path, limit=LARGEST)
        except TooLargeError:
            return Revision.unread("larger than any of ours", 0)
        return contents.revision

    # -- what is done about it ----------------------------------------------------------------

    def _complete(
        self, operation: Operation, files: list[_Trace], left: list[_Leftover]
    ) -> Operation:
        notes = self._clear(operation, left)
        folders = FolderSteps(operation, self._root_of)
        folders.complete()
        stay = settle_folders(folders, operation, self._store, self._root_of)
        notes += [f"the folder {self._show(path)} stays: {why}" for path, why in stay.items()]
        note = "completed after a crash"
        as_before = [self._show(one.change.path) for one in files if one.now == one.change.before]
        if as_before:
            note += f"; as before, by somebody's hand or the crash: {', '.join(as_before)}"
        return self._end(operation, "applied", [note, *notes])

    def _take_back(self, operation: Operation, traces: list[_Trace]) -> Operation:
        kept: list[FileChange] = []
        folders = FolderSteps(operation, self._root_of)
        for one in sorted(traces, key=lambda one: one.change.after is None):
            change = one.change
            if change.after is None:
                folders.turn_back()
            both = change.before is not None and change.after is not None
            if one.now != change.after and one.done and both:
                # What somebody has made of it stays; undo takes out what it can.
                kept.append(change)
            elif (
                self._is_torn(one) or one.now == change.after or (one.done and change.after is None)
            ):
                try:
                    token = f"{operation.id}-{len(operation.changes.changes) + 1}"
                    self._bring_back(one, token, folders.beside(change.path))
                except FilepactError:
                    kept.append(change)
        # What was brought back has left its new text under the temporary name.
        if kept:
            left = self._leftovers(operation)
            settled = self._end_in_part(operation, "cut off by a crash in part", left, kept)
            remove_folders(operation, self._root_of)
            return settled
        notes = self._clear_away(operation)
        return self._end(operation, "rolled_back", ["cut off by a crash and taken back", *notes])

    def _written_back(self, operation: Operation, folders: FolderSteps) -> Operation:
        """Give files that have another name, and were written there, their old text; the operation without these texts."""
        files = handed(operation, self._root_of, folders.of_temporary)
        changes: list[FileChange] = []
        for one in operation.changes.changes:
            change, has = files.get(one.path, (one, False))
            changes.append(change)
            now, old = self._now(one.path) if has else None, change.after
            if now is None or old is None:
                continue
            torn = self._is_torn(_Trace("", FileChange(one.path, old, one.after), "new", now))
            if torn or now == one.after:
                token = f"{operation.id}-{len(operation.changes.changes) + 2}"
                contents = {old.content: self._store.content(old.content)}
                back = FileChange(one.path, now, old)
                write_joined(self._root_of, back, contents, token, "cut off by a crash")
        return replace(operation, changes=ChangeSet(tuple(changes)))

    def _clear_away(self, operation: Operation) -> list[str]:
        """Remove what an operation that was taken back has made; what the log is to say of it."""
        notes = self._clear(operation, self._leftovers(operation))
        FolderSteps(operation, self._root_of).remove_made()
        remove_folders(operation, self._root_of)
        return notes

    def _end_in_part(
        self, operation: Operation, note: str, left: list[_Leftover], kept: list[FileChange]
    ) -> Operation:
        # The end comes first: without temporary files nobody could find it out any more.
        notes = self._rescue(operation, left)
        settled = self._end(operation, "interrupted", [note, *notes], ChangeSet(tuple(kept)))
        self._discard(left)
        return settled

    def _bring_back(self, one: _Trace, token: str, beside: str | None) -> None:
        change, path = one.change, one.change.path
        root = self._root_of(path.root)
        if not one.of_file:
            return  # They go when nothing lies in them any more; none was removed yet.
        if one.aside == ("nothing" if change.before is None else "old"):
            staged = root.resume(
                path.path,
                before=change.before and change.before.compared,
                after=change.after and change.after.compared,
                token=one.token,
                beside=beside,
            )
            root.take_back(staged)
            root.sync(staged)
        else:
            contents = {
                side.content: self._store.content(side.content)
                for side in (change.before, change.after)
                if side is not None
            }
            make_again(
                root, FileChange(change.path, one.now, change.before), contents, token
            ).close()

    def _is_torn(self, one: _Trace) -> bool:
        """Whether a crash has cut off the writing of a text over another, in the same file."""
        now, before, after = one.now, one.change.before, one.change.after
        if one.aside not in ("new", "nothing") or now is None or before is None or after is None:
            return False
        link = any(side.is_link for side in (now, before, after))
        if now in (before, after) or link or not now.was_read:
            return False
        old, new = (self._store.content(side.content) for side in (before, after))
        found = self._root_of(one.change.path.root).read(one.change.path.path, limit=LARGEST).data
        return is_torn(found, old, new)

    def _end(
        self,
        operation: Operation,
        state: OperationState,
        notes: list[str],
        changes: ChangeSet | None = None,
    ) -> Operation:
        note = "; ".join(filter(None, [operation.note, *notes]))
        changes = changes or lasting(operation.changes)
        tell_end(self._store, self._state, OperationResult(operation.id, state, note, changes))
        return self._store.operation(operation.id)

    # -- temporary files ------------------------------------------------------------------------

    def _leftovers(self, operation: Operation) -> list[_Leftover]:
        """All temporary files of an operation, from one look at each folder."""
        folders = dict.fromkeys(
            [
                *((path.root, dirname(path.path) or ".") for path in operation.changes.paths),
                *operation.directories,
            ]
        )
        found: list[_Leftover] = []
        for root_id, folder in folders:
            root = self._root_of(root_id)
            for token in root.leftovers(folder, f"{operation.id}-"):
                left = self._leftover(root, folder, token)
                if left is not None:
                    found.append(left)
        return found

    def _leftover(self, root: Root, folder: str, token: str) -> _Leftover | None:
        found = root.leftover(folder, token)
        return None if found is None else _Leftover(root, folder, token, found.data, found.mode)

    def _clear(self, operation: Operation, left: list[_Leftover]) -> list[str]:
        """Remove temporary files; what the log is to say of it."""
        notes = self._rescue(operation, left)
        self._discard(left)
        return notes

    def _discard(self, left: list[_Leftover]) -> None:
        for one in left:
            with suppress(FilepactError):
                one.discard()

    def _rescue(self, operation: Operation, left: list[_Leftover]) -> list[str]:
        """Keep the bytes in temporary files that are not ours; what the log is to say of it."""
        sides = [(change.before, change.after) for change in operation.changes.changes]
        ours = {side.content for pair in sides for side in pair if side is not None}
        notes: list[str] = []
        for one in left:
            if one.content in ours or self._is_half(one, operation):
                continue
            kept = self._state.rescue(_rescued_name(operation, one.token), one.data)
            notes.append(f"another program's text was kept in {kept}")
        return notes

    def _is_half(self, left: _Leftover, operation: Operation) -> bool:
        """Whether bytes are the beginning of what was to be written there."""
        folders = FolderSteps(operation, self._root_of)
        return any(
            self._store.content(change.after.content).startswith(left.data)
            for change in filter(None, (one.of_file for one in operation.changes.changes))
            if change.after is not None and folders.of_temporary(change.path) == left.folder
        )

    def _sweep(self, seen: set[str]) -> None:
        """Remove what a power cut has brought back of operations that had ended.

        The removal of an old text is not made durable by itself.  One goes only if the journal
        has its bytes.
        """
        for operation in self._store.operations(limit=_LATEST):
            if operation.id in seen:
                continue
            with suppress(FilepactError):
                for left in self._came_back(operation):
                    if self._store.content(left.content) == left.data:
                        left.discard()

    def _came_back(self, operation: Operation) -> list[_Leftover]:
        if operation.state != "applied":
            return self._leftovers(operation)  # Its changes are fewer than their names were.
        folders = FolderSteps(operation, self._root_of)
        found = [
            (root, folders.of_temporary(change.path), f"{operation.id}-{number}")
            for number, change in enumerate(operation.changes.changes)
            for root in (self._root_of(change.path.root),)
        ]
        left = [self._leftover(*one) for one in found if one[0].may_have_leftover(*one[1:])]
        return [one for one in left if one is not None]


def _rescued_name(operation: Operation, token: str) -> str:
    """The name of the file beside which a temporary file lay, as far as its number tells."""
    number = int(token.rpartition("-")[2]) if token.rpartition("-")[2].isdigit() else -1
    if 0 <= number < len(operation.changes.changes):
        return operation.changes.changes[number].path.path.rpartition("/")[2]
    return token
