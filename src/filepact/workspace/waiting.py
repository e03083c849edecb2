"""What each session was told to wait for, and what a person has said to it since."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from filepact.errors import NotFoundError

if TYPE_CHECKING:
    from filepact.domain.operation import ChangeId
    from filepact.workspace.journal import Store

__all__ = ["Waiting"]

_MOST = 200


class Waiting:
    """Proposals of the sessions in this process that nobody was seen to answer yet.

    The journal is asked, for the answer comes from another process.  A proposal of an earlier
    process is not in here: its agent has ended, and so has the conversation that it was for.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: dict[str, list[ChangeId]] = {}
        self._lock = Lock()

    def add(self, session: str, proposal: ChangeId) -> None:
        """Remember a proposal that a session was told about; of very many only the last ones."""
        with self._lock:
            self._open[session] = [*self._open.get(session, []), proposal][-_MOST:]

    def answers(self, session: str) -> tuple[str, ...]:
        """One sentence for each proposal that was answered since this was last asked."""
        with self._lock:
            waiting = self._open.get(session)
            if not waiting:
                return ()
            answers = {one: self._answer(one) for one in waiting}
            self._open[session] = [one for one, answer in answers.items() if not answer]
        return tuple(answer for answer in answers.values() if answer)

    def _answer(self, change_id: ChangeId) -> str:
        try:
            proposal = self._store.proposal(change_id)
            if proposal.state == "proposed":
                return ""
            if proposal.state == "rejected":
                reason = f": {proposal.reason}" if proposal.reason else "."
                return f"Proposal {change_id} was rejected by a person{reason}"
            operation = self._store.operation(change_id)
        except NotFoundError:
            return f"Proposal {change_id} is gone from the journal."
        note = f" {operation.note}" if operation.note else ""
        return f"Proposal {change_id} was approved by {operation.approved_by} and applied.{note}"
