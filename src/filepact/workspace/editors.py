"""Editors: what they say about the files that they show, and how their unsaved text reaches the disk.

Unsaved text is written before a change that starts from it, as an operation of its own in the
editor's name: taking the agent's change back leaves what the person typed.  What an editor makes of a
file that it was given to write is looked at as well: the same text in other bytes is put back,
another text is a change of its own.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import Document
from filepact.domain.operation import BY_EDITOR, PAST_THE_DOORS, Actor, Operation, Session
from filepact.errors import FilepactError, StaleFileError
from filepact.text.diff import unified
from filepact.text.diff_lines import cut_diff
from filepact.text.edit import merge
from filepact.values import dataclass
from filepact.workspace.buffers import differs_in_form, same_text
from filepact.workspace.documents import DocumentCache, with_text
from filepact.workspace.journal import new_operation
from filepact.workspace.location import Location, check_is_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from filepact.domain.document import Revision, WorkspacePath
    from filepact.fs.locks import FileLocks
    from filepact.workspace.buffers import Buffer, Buffers
    from filepact.workspace.commit import Committer
    from filepact.workspace.documents import Documents
    from filepact.workspace.guard import Guard
    from filepact.workspace.journal import JournalStore
    from filepact.workspace.location import Name


__all__ = ["BufferWriteResult", "Editors"]


_DIFF_IN_ERROR = 4_000


@dataclass(frozen=True, slots=True)
class BufferWriteResult:
    """The state of a file after an editor was given its new text to write.

    Attributes:
        kind: ``same``; ``form``: the same text in other bytes, and the file has its own again;
            ``text``: another text; ``gone``: no file.
        document: What the disk has now; None for no file.
    """

    kind: Literal["same", "form", "text", "gone"]
    document: Document | None


class Editors:
    """The editors' side of the buffers: files go by any name that was sent, or by their true one.

    An editor belongs to the person, so rules about agents do not keep it from showing a file;
    an agent that reads the file is asked about as ever.

    Args:
        guard: Finds the files.
        documents: Reads what the disk has, and knows what files are to hold.
        buffers: What editors show.
        committer: Writes the files.
        store: The journal.
        locks: The locks that every change of a file holds.

    Attributes:
        buffers: As given; what an editor does with a file that it shows is said there.
    """

    def __init__(
        self,
        guard: Guard,
        documents: Documents,
        buffers: Buffers,
        committer: Committer,
        store: JournalStore,
        locks: FileLocks,
    ) -> None:
        self._guard = guard
        self._documents = documents
        self.buffers = buffers
        self._committer = committer
        self._store = store
        self._locks = locks

    def open(
        self,
        path: Name,
        text: str,
        *,
        client: str,
        version: int,
        announced: bool = False,
    ) -> Buffer:
        """An editor shows a file, which need not be on the disk.

        Args:
            path: The file.
            text: All of its text as the editor has it, saved or not.
            client: The editor's connection.
            version: The editor's count of changes.
            announced: Whether the editor says by itself what becomes of it.

        Raises:
            PathBlockedError: It lies outside.
        """
        location = self.locate(path)
        return self.buffers.open(
            *(location.path, text),
            client=client,
            version=version,
            base=self._stored(location),
            announced=announced,
        )

    def stored(self, path: Name | Location) -> Document | None:
        """The document on the disk, for a file that may have been found before; None for no file."""
        if not isinstance(path, Location):
            return self._stored(self.locate(path))
        # Where nothing was, something may be by now.
        return self._stored(path if path.place.kind == "file" else self.locate(path.path))

    def shown(self, path: Name) -> Document | None:
        """A file as the bytes that an editor would save it as; None for no file.

        Raises:
            EncodingUnsafeError: Somebody typed what the file's encoding cannot hold.
        """
        return self._documents.present(self.locate(path))

    def locate(self, path: Name) -> Location:
        """The place of a file that an editor names.

        Raises:
            NotAFileError: It is a root.
            PathBlockedError: It lies outside.
        """
        location = self._guard.find(path, "list")
        if location.place.path == ".":
            check_is_file(location, path if isinstance(path, str) else location.shown)
        return location

    def _stored(self, location: Location) -> Document | None:
        return None if location.place.kind == "missing" else self._documents.stored(location)

    # -- what becomes of it on the disk ----------------------------------------------------

    def save(
        self, changes: ChangeSet, contents: Mapping[str, bytes]
    ) -> dict[WorkspacePath, tuple[Buffer, Document]]:
        """Bring the files of a change, which are locked, to the states that it starts from.

        Args:
            changes: What is to be done next.
            contents: The bytes of the states that it names.

        Returns:
            The buffers that it starts from, for `Buffers.deliver`.

        Raises:
            StaleFileError: A file, or its buffer, is no longer what the change was made for.
        """
        starts: dict[WorkspacePath, tuple[Buffer, Document]] = {}
        for change in changes.changes if self.buffers else ():
            if change.before is not None:
                becomes = None if change.after is None else contents.get(change.after.content)
                data = contents[change.before.content]
                start = self._bring(change.path, change.before, data, becomes)
                if start is not None:
                    starts[change.path] = start
        return starts

    def agree(self, documents: Iterable[Document]) -> None:
        """Bring locked files and their buffers to the same text, which somebody has sent.

        It is what an editor shows, or what the disk has already: the other is to have it as well.

        Raises:
            StaleFileError: A file, or its buffer, is something else by now.
        """
        for document in documents:
            start = self._bring(document.path, document.revision, document.data)
            self.buffers.deliver(document, start)

    def merge(self, path: WorkspacePath, *, agent: str) -> Document | None:
        """A file with what an editor has typed in it; neither of them has it yet.

        Args:
            path: The file.
            agent: The name that rules know the agent by that is told what is in the way.

        Returns:
            None for no file.

        Raises:
            StaleFileError: Both were changed in the same lines.
            EncodingUnsafeError: Nobody can know what the editor has of it.
        """
        location = self._guard.find(path, "list")
        try:
            return self._documents.merged(location).shown
        except StaleFileError as error:
            buffer = self.buffers.get(path)
            if buffer is None or buffer.base is None or self._hides(path, agent, buffer):
                raise
            name = location.shown
            typed = unified(buffer.base.text, buffer.text, old_name=name, new_name=name)
            raise StaleFileError(
                f"{location.shown}: somebody typed in the same lines just now:\n"
                + cut_diff(typed, _DIFF_IN_ERROR),
                hint="Nothing was changed. Read the file again and make the change for what "
                "it holds now.",
                **error.details,
            ) from None

    def _hides(self, path: WorkspacePath, agent: str, buffer: Buffer) -> bool:
        texts = (buffer.text, "" if buffer.base is None else buffer.base.text)
        held = (text.encode("utf-8", "surrogatepass") for text in texts)
        return self._guard.hides(path, agent, held)

    def alone(self, keys: Iterable[str]) -> AbstractContextManager[object]:
        """Keep other programs beside the same editor from files until it has what this one makes of them.

        Args:
            keys: The files' lock keys.

        Raises:
            TimedOutError: Another program's change is still on its way to the editor.
        """
        return self._locks.hold([f"editor {key}" for key in keys])

    def check_saved(
        self, meant: Document, *, client: str, operation: str = "", over: Document | None = None
    ) -> BufferWriteResult:
        """See what an editor made of a file that it was given to write.

        The same text in other bytes is put back; another text is the editor's own change.

        Args:
            meant: The file as it is to be.
            client: The editor.
            operation: What made it so; empty leaves another text out of the journal.
            over: What the disk had then, where more was given: the rest was typed meanwhile.

        Raises:
            StaleFileError: Somebody writes to it at this moment.
            WriteFailedError: The system refused to put it back.
            TooLargeError: It is too large by now to be looked at.
        """
        location = self._guard.find(meant.path, "list")
        with self._locks.hold({location.lock_key}):
            if location.place.kind == "missing":
                return BufferWriteResult("gone", None)
            stored = self._documents.stored(location, like=meant)
            if over is not None and over.revision != meant.revision:
                stored = self._save_typed(client, over, meant, stored)
            if stored.revision == meant.revision:
                return BufferWriteResult("same", stored)
            if stored.data == meant.data or differs_in_form(stored, meant):
                self._committer.put_back(meant, stored.revision, operation)
                return BufferWriteResult("form", meant)
            if operation:
                summary = f"{location.shown} as the editor saved it"
                self._adopt(_own(client), BY_EDITOR, summary, meant.revision, stored)
            return BufferWriteResult("text", stored)

    def _save_typed(
        self, client: str, over: Document, meant: Document, stored: Document
    ) -> Document:
        """Write unsaved text into the journal, and to the disk if the editor has not saved it."""
        operation = self._typing(client, FileChange(over.path, over.revision, meant.revision))
        contents = {one.revision.content: one.data for one in (over, meant)}
        if stored.revision == over.revision:
            self._committer.commit(operation, contents)
            return meant
        self._store.adopt(operation, contents)
        return stored

    def record_late_save(self, told: Document) -> Operation | None:
        """See whether an editor made a change all the same that it was told to forget.

        Args:
            told: The file as the editor was given it, before the change was taken back.

        Returns:
            What was put into the journal for it; None for nothing.
        """
        location = self._guard.find(told.path, "list")
        with self._locks.hold({location.lock_key}):
            if location.place.kind == "missing":
                return None
            stored = self._documents.stored(location)
            if stored.data != told.data and not differs_in_form(stored, told):
                return None
            for last, change in self._last_change(told.path):
                if change.after != stored.revision:
                    summary = f"{location.shown} as the editor saved it after it was cancelled"
                    return self._adopt(last.session, PAST_THE_DOORS, summary, change.after, stored)
            return None

    def written(self, operation: str) -> tuple[Document, ...]:
        """The files as an operation made them."""
        changes = self._store.operation(operation).changes
        versions = DocumentCache(self._store.content, self._documents.given)
        return tuple(
            versions.of(one.path, one.after)
            for one in changes.changes
            if one.after is not None and not one.after.is_folder
        )

    def before_external(self, disk: Document) -> Document | None:
        """The state of a file before a change past the doors.

        None where that is not what happened to it last.
        """
        for last, change in self._last_change(disk.path):
            before = change.before if change.after == disk.revision else None
            if last.tool == PAST_THE_DOORS and before is not None:
                with suppress(FilepactError):
                    data = self._store.content(before.content)
                    return Document(disk.path, data, before, disk.named_encoding)
        return None

    def _last_change(self, path: WorkspacePath) -> Iterator[tuple[Operation, FileChange]]:
        """The changes of a file by its last operation; none where the journal knows of none."""
        for last in self._store.operations(root=path.root, path=path.path, limit=1):
            yield from ((last, change) for change in last.changes.changes if change.path == path)

    def restore_merge(
        self, meant: Document, sent: str, session: Session, *, client: str
    ) -> Document | None:
        """Undo that an agent has written over a file by itself what it had sent before.

        What it had sent was merged with what an editor held, and its own writing knows nothing of
        that.  Both are in the journal.

        Args:
            meant: What came of what it had sent.
            sent: That text.
            session: The agent's.
            client: The editor.

        Returns:
            What the disk has then; None for no file.

        Raises:
            StaleFileError: Somebody writes to it at this moment.
            WriteFailedError: The system refused to put it back.
        """
        location = self._guard.find(meant.path, "list")
        with self._locks.hold({location.lock_key}):
            if location.place.kind == "missing":
                return None
            stored = self._documents.stored(location)
            if stored.revision == meant.revision or not same_text(sent, stored):
                return stored
            last = self._last_change(meant.path)
            if all(change.after != stored.revision for _, change in last):
                summary = f"{location.shown} written without filepact"
                self._adopt(session, PAST_THE_DOORS, summary, meant.revision, stored)
            change = FileChange(meant.path, stored.revision, meant.revision)
            contents = {one.revision.content: one.data for one in (stored, meant)}
            self._committer.commit(self._typing(client, change, ", again"), contents)
            return meant

    def _adopt(
        self, session: Session, tool: str, summary: str, before: Revision | None, stored: Document
    ) -> Operation:
        """Put into the journal what an editor has done to a file."""
        change = FileChange(stored.path, before, stored.revision)
        contents = {stored.revision.content: stored.data}
        return self._store.adopt(
            new_operation(session, tool, summary, ChangeSet((change,))), contents
        )

    def _typing(self, client: str, change: FileChange, more: str = "") -> Operation:
        """The operation that brings an editor's unsaved text to the disk."""
        summary = f"unsaved text of {self._guard.show(*change.path)}{more}"
        return new_operation(_own(client), BY_EDITOR, summary, ChangeSet((change,)))

    def _bring(
        self, path: WorkspacePath, state: Revision, data: bytes, becomes: bytes | None = None
    ) -> tuple[Buffer, Document] | None:
        buffer = self.buffers.get(path)
        if buffer is None:
            return None
        location = self._guard.find(path, "list")
        merged = self._documents.merged(location)
        stored, shown = merged.stored, merged.shown
        if shown is None or shown.revision != state.compared:
            shown = None if stored is None else _typed_on(buffer, stored, state, data, becomes)
            if shown is None:
                raise StaleFileError(
                    f"{location.shown}: somebody typed in it or wrote to it just now",
                    hint="Read the file again and make the change for what it holds now.",
                    path=location.shown,
                )
            buffer = buffer.holding(shown.text)
        if stored is None or stored.revision != state.compared:
            known, before = {state.content: data}, None
            if stored is not None:
                known[stored.revision.content], before = stored.data, stored.revision
            change = FileChange(path, before, state.compared)
            self._committer.commit(self._typing(buffer.client, change), known)
        if buffer.is_unsaved:
            # From now on what the editor shows is older than the disk.
            base = None if buffer.holding(shown.text) == buffer else buffer.base
            self.buffers.agree(shown if base is None else with_text(base, buffer.text))
        return buffer, shown


def _typed_on(
    buffer: Buffer, stored: Document, state: Revision, data: bytes, becomes: bytes | None
) -> Document | None:
    """The state of a file that a change starts from, where somebody has only typed on beside the change.

    None where the same lines were typed in, or the disk has changed.
    """
    moved = buffer.base is None or buffer.base.revision.content != stored.revision.content
    if becomes is None or (moved and stored.revision != state.compared):
        return None
    start = Document(stored.path, data, state.compared, stored.named_encoding)
    after = Document(stored.path, becomes, stored.revision, stored.named_encoding)
    with suppress(FilepactError):
        typed = with_text(start, buffer.text).text
        return None if merge(start.text, typed, after.text).text is None else start
    return None


def _own(client: str) -> Session:
    """An editor's own doing."""
    return Session(f"editor {client}", Actor("program", client))
