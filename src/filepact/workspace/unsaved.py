"""Unsaved text of editors goes to the disk before a change that starts from it.

It is an operation of its own, in the editor's name: taking the agent's change back leaves what
the person typed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.operation import Actor, Operation, Session
from filepact.errors import StaleFileError
from filepact.workspace.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from filepact.domain.document import Document, Revision, WorkspacePath
    from filepact.workspace.buffers import Buffers
    from filepact.workspace.commit import Committer
    from filepact.workspace.documents import Documents
    from filepact.workspace.guard import Guard

__all__ = ["Unsaved"]


class Unsaved:
    """Saves what editors hold.

    Args:
        guard: Finds the files.
        documents: Knows what they are to hold.
        buffers: Whose they are.
        committer: Writes them.
    """

    def __init__(
        self,
        guard: Guard,
        documents: Documents,
        buffers: Buffers,
        committer: Committer,
    ) -> None:
        self._guard = guard
        self._documents = documents
        self._buffers = buffers
        self._committer = committer

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
            Operation(
                id=new_id(),
                seq=0,
                kind="change",
                session=Session(f"editor {buffer.client}", Actor("program", buffer.client)),
                tool="editor",
                summary=f"unsaved text of {spot.shown}",
                changes=ChangeSet((FileChange(path, before, state),)),
                created=time.time(),
                state="intended",
            ),
            known,
        )
