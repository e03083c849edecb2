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
    from collections.abc import Mapping

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
            buffer = self._buffers.get(change.path)
            if buffer is None or change.before is None:
                continue
            spot = self._guard.find(change.path.absolute, "list")
            merged = self._documents.merged(spot)
            stored, shown = merged.stored, merged.shown
            if shown is None or shown.revision != change.before:
                raise StaleFileError(
                    f"{spot.shown}: somebody typed in it or wrote to it just now",
                    hint="Read the file again and make the change for what it holds now.",
                    path=spot.shown,
                )
            self._buffers.starts(buffer, shown)
            if stored is not None and stored.revision == change.before:
                continue
            known = {change.before.content: contents[change.before.content]}
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
                    changes=ChangeSet((FileChange(change.path, before, change.before),)),
                    created=time.time(),
                    state="intended",
                ),
                known,
            )
