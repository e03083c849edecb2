"""Texts that an agent sends to its client and writes to the disk by itself as well.

Nobody knows which of both comes first.  What it sends is merged with what the editor has unsaved;
what it writes is not, so after it the file is given the merged text again.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.domain.document import WorkspacePath
from filepact.errors import FilepactError
from filepact.workspace.buffers import same_text

if TYPE_CHECKING:
    from filepact.domain.document import Document
    from filepact.domain.operation import Session
    from filepact.faces.acp.sessions import Bound
    from filepact.workspace.guard import Location

__all__ = ["Twice"]


@dataclass(slots=True, eq=False)
class _Sent:
    """A text that was merged.

    Attributes:
        turn: The session's turn in which it was sent.
        text: As it was sent.
        meant: The file that came of it.
    """

    session: Session
    turn: int
    text: str
    meant: Document


class Twice:
    """What such an agent has sent, until it has written it; for all threads.

    Args:
        client: The editor among the buffers.
    """

    def __init__(self, client: str) -> None:
        self._client = client
        self._sent: dict[WorkspacePath, _Sent] = {}
        self._lock = threading.Lock()

    def first(
        self, bound: Bound, session: Session, path: str, text: str
    ) -> tuple[Document | None, Document | None]:
        """What a file was before the agent wrote a text to it that it now sends, and is now.

        What it wrote is in the journal then.  None for the first where it has not, or nobody knows.
        """
        with suppress(FilepactError):
            disk = bound.workspace.editors.stored(path)
            if disk is not None and same_text(text, disk):
                bound.workspace.external.detect_in(disk.path, session)
                return bound.workspace.unsaved.overtaken(disk), disk
        return None, None

    def sent(self, bound: Bound, session: Session, text: str, meant: Document) -> None:
        """A text was sent and written; another one may have come of it."""
        with self._lock:
            if same_text(text, meant):
                self._sent.pop(meant.path, None)
            else:
                self._sent[meant.path] = _Sent(session, bound.turn, text, meant)

    def became(self, path: WorkspacePath, meant: Document | None) -> None:
        """The file has become something else since, which is meant as well."""
        with self._lock:
            sent = self._sent.get(path)
            if sent is not None and meant is not None:
                sent.meant = meant

    def forget(self, path: WorkspacePath) -> None:
        """What was sent is taken back."""
        with self._lock:
            self._sent.pop(path, None)

    def disk(self, bound: Bound, file: WorkspacePath | Location) -> Document | None:
        """What the disk has of a file, once the agent's own writing of it is put right.

        Args:
            bound: The session.
            file: Its true name, or the file where it was found before.

        Raises:
            FilepactError: It cannot be read whole, or not be put right.
        """
        with self._lock:
            sent = self._sent.get(file if isinstance(file, WorkspacePath) else file.path)
        if sent is None or bound.turn != sent.turn:
            return bound.workspace.editors.stored(file)
        return self._keep(bound, sent)

    def put_right(self, bound: Bound, path: WorkspacePath) -> None:
        """Put the agent's own writing of a file right, if it may have written it.

        Raises:
            FilepactError: It cannot be.
        """
        with self._lock:
            sent = self._sent.get(path)
        if sent is not None and bound.turn == sent.turn:
            self._keep(bound, sent)

    def looked(self, bound: Bound) -> None:
        """The agent has ended one of its steps: what it wrote in it is on the disk."""
        with self._lock:
            ended = [one for one in self._sent.values() if one.session.id == bound.id]
            for one in ended:
                del self._sent[one.meant.path]
        for one in ended:
            self._keep(bound, one)

    def _keep(self, bound: Bound, sent: _Sent) -> Document | None:
        keep = bound.workspace.unsaved.keep
        return keep(sent.meant, sent.text, sent.session, client=self._client)
