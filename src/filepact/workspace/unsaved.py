"""Unsaved text of editors goes to the disk before a change that starts from it.

It is an operation of its own, in the editor's name: taking the agent's change back leaves what
the person typed.  What an editor makes of a file that it was given to write is looked at as well:
the same text in other bytes is none of its business, another text is a change of its own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.operation import BY_EDITOR, Actor, Operation, Session
from filepact.errors import StaleFileError
from filepact.workspace.ids import new_id
from filepact.workspace.standing import differs_in_form

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from filepact.domain.document import Document, Revision, WorkspacePath
    from filepact.workspace.buffers import Buffers
    from filepact.workspace.commit import Committer
    from filepact.workspace.documents import Documents
    from filepact.workspace.guard import Guard
    from filepact.workspace.journal import Store

__all__ = ["Left", "Unsaved"]


@dataclass(frozen=True, slots=True)
class Left:
    """What an editor left of a file that it was given to write.

    Attributes:
        kind: ``same``; ``form``: the same text in other bytes, and the file has its own again;
            ``text``: another text; ``gone``: no file.
        document: What the disk has now; None for no file.
    """

    kind: Literal["same", "form", "text", "gone"]
    document: Document | None


class Unsaved:
    """Saves what editors hold.

    Args:
        guard: Finds the files.
        documents: Knows what they are to hold.
        buffers: Whose they are.
        committer: Writes them.
        store: The journal.
    """

    def __init__(
        self,
        guard: Guard,
        documents: Documents,
        buffers: Buffers,
        committer: Committer,
        store: Store,
    ) -> None:
        self._guard = guard
        self._documents = documents
        self._buffers = buffers
        self._committer = committer
        self._store = store

    def save(self, changes: ChangeSet, contents: Mapping[str, bytes]) -> None:
        """Bring the files of a change, which are locked, to the states that it starts from.

        Args:
            changes: What is to be done next.
            contents: The bytes of the states that it names.

        Raises:
            StaleFileError: A file, or its buffer, is no longer what the change was made for.
        """
        for change in changes.changes:
            if change.before is not None:
                self._bring(change.path, change.before, contents[change.before.content])

    def agree(self, documents: Iterable[Document]) -> None:
        """Bring locked files and their buffers to the same text, which somebody has sent.

        It is what an editor shows, or what the disk has already: the other is to have it as well.

        Raises:
            StaleFileError: A file, or its buffer, is something else by now.
        """
        for document in documents:
            self._bring(document.path, document.revision, document.data)
            self._buffers.deliver(document)

    def look_after(self, meant: Document, *, client: str, operation: str) -> Left:
        """See what an editor made of a locked file that it was given to write.

        Args:
            meant: The file as the disk had it before the editor wrote.
            client: The editor.
            operation: What made it so; empty where the journal knows nothing of it.
        """
        spot = self._guard.find(meant.path.absolute, "list")
        if spot.place.kind == "missing":
            return Left("gone", None)
        stored = self._documents.stored(spot)
        if stored.revision == meant.revision:
            return Left("same", stored)
        if stored.data == meant.data or differs_in_form(stored, meant):
            self._committer.put_back(meant, stored.revision, operation)
            return Left("form", meant)
        if operation:
            summary = f"{spot.shown} as the editor saved it"
            change = FileChange(meant.path, meant.revision, stored.revision)
            contents = {meant.revision.content: meant.data, stored.revision.content: stored.data}
            self._store.adopt(_operation(client, summary, change), contents)
        return Left("text", stored)

    def _bring(self, path: WorkspacePath, state: Revision, data: bytes) -> None:
        buffer = self._buffers.get(path)
        if buffer is None:
            return
        spot = self._guard.find(path.absolute, "list")
        merged = self._documents.merged(spot)
        stored, shown = merged.stored, merged.shown
        if shown is None or shown.revision != state:
            raise StaleFileError(
                f"{spot.shown}: somebody typed in it or wrote to it just now",
                hint="Read the file again and make the change for what it holds now.",
                path=spot.shown,
            )
        self._buffers.starts(buffer, shown)
        if stored is not None and stored.revision == state:
            return
        known = {state.content: data}
        if stored is not None:
            known[stored.revision.content] = stored.data
        before = None if stored is None else stored.revision
        self._committer.commit(
            _operation(
                buffer.client, f"unsaved text of {spot.shown}", FileChange(path, before, state)
            ),
            known,
        )


def _operation(client: str, summary: str, change: FileChange) -> Operation:
    """An editor's own change of one file."""
    return Operation(
        id=new_id(),
        seq=0,
        kind="change",
        session=Session(f"editor {client}", Actor("program", client)),
        tool=BY_EDITOR,
        summary=summary,
        changes=ChangeSet((change,)),
        created=time.time(),
        state="intended",
    )
