"""What one session has done and proposed, for that session itself.

It can look at its own changes, take them back and hear what a person said to them.  What others did is
not in here, not even what they changed.
"""

from __future__ import annotations

import time
from contextlib import suppress
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Final

from filepact.domain.operation import Proposal
from filepact.errors import NoChangeError, NotFoundError
from filepact.workspace.history import plan_redo, plan_undo
from filepact.workspace.receipt import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from filepact.domain.document import RootId
    from filepact.domain.operation import Operation, Session
    from filepact.workspace.history import Plan
    from filepact.workspace.journal import Store
    from filepact.workspace.waiting import Waiting

__all__ = ["Past", "Patience"]

_STEP: Final = 0.2
_DECIDED: Final = 10


class Patience:
    """How many sessions may wait for a person at once; further ones are answered at once."""

    def __init__(self, most: int = 2) -> None:
        self._room = BoundedSemaphore(most)

    def wait(self, seconds: float, over: Callable[[], bool], cancelled: Callable[[], bool]) -> None:
        """Wait until something is over, nobody wants to know any more, or the time has passed."""
        if not self._room.acquire(blocking=False):
            return
        try:
            until = time.monotonic() + seconds
            while not over() and not cancelled():
                left = until - time.monotonic()
                if left <= 0:
                    return
                time.sleep(min(_STEP, left))
        finally:
            self._room.release()


class Past:
    """The operations and proposals of one session.

    Args:
        store: The journal.
        waiting: What sessions have proposed.
        session: Whose they are.
        roots: The folders in use.
        go_back: Carries out what is planned, or has it wait.
        diff: The diff of a change, as the session may see it.
        patience: Bounds how many wait.
        cancelled: Whether nobody waits for the answer any more.
        page: What one answer may take, in bytes as UTF-8.
    """

    def __init__(
        self,
        store: Store,
        waiting: Waiting,
        session: Session,
        *,
        roots: Iterable[RootId],
        go_back: Callable[[Plan, bool], Receipt],
        diff: Callable[[Operation | Proposal], str],
        patience: Patience,
        cancelled: Callable[[], bool],
        page: int,
    ) -> None:
        self.page = page
        self.diff = diff
        self._roots = tuple(roots)
        self._go_back = go_back
        self._store = store
        self._waiting = waiting
        self._session = session
        self._patience = patience
        self._cancelled = cancelled

    def log(self, limit: int) -> tuple[Operation, ...]:
        """What the session has done, newest first."""
        return self._store.operations(session=self._session, limit=limit)

    def change(self, change_id: str | None) -> Operation | Proposal:
        """One change by its id or the beginning of it; the newest where none is named.

        Raises:
            NotFoundError: The session has no such change.
        """
        if change_id is None:
            newest = self.log(1)
            if not newest:
                raise NotFoundError("you have changed nothing yet")
            return newest[0]
        found: Operation | Proposal
        try:
            found = self._store.operation(change_id)
            if found.state == "rolled_back":
                # Where it was approved, it waits again.
                with suppress(NotFoundError):
                    proposal = self._store.proposal(found.id)
                    found = proposal if proposal.state == "proposed" else found
        except NotFoundError:
            found = self._proposal(change_id)
        if found.session.id not in self._store.sessions(self._session):
            raise self._not_its_own(change_id)
        return found

    def undo(self, change_id: str | None, *, dry_run: bool) -> Receipt:
        """Take back one of the session's own operations, or a proposal of its own that waits.

        Without an id it is the newest operation in force.

        Raises:
            NotFoundError: The session has no such change.
            NoChangeError: There is nothing to take back.
        """
        change = self._newest(undone=False) if change_id is None else self.change(change_id)
        if isinstance(change, Proposal):
            return self._withdraw(change, dry_run=dry_run)
        plan = plan_undo(self._store, self._roots, change.id)
        return self._go_back(plan, dry_run)

    def redo(self, change_id: str | None, *, dry_run: bool) -> Receipt:
        """Bring back what the session has undone itself; arguments and errors as for `undo`."""
        change = self._newest(undone=True) if change_id is None else self.change(change_id)
        plan = plan_redo(self._store, self._roots, change.id)
        if self._store.operation(plan.target).session.id not in self._store.sessions(self._session):
            raise NoChangeError(
                f"{change.id} was undone by somebody else",
                hint="Ask the person whether it is to come back.",
            )
        return self._go_back(plan, dry_run)

    def status(self, wait: float = 0.0) -> tuple[Proposal, ...]:
        """The session's proposals: those that wait, and the last on which somebody has decided.

        Args:
            wait: Seconds to wait until one of those that wait is decided.
        """
        waiting = frozenset(one.id for one in self._open())
        if wait and waiting:

            def decided() -> bool:
                return not waiting <= {one.id for one in self._open()}

            self._patience.wait(wait, decided, self._cancelled)
        done = [
            *self._store.proposals(session=self._session, state="committed"),
            *self._store.proposals(session=self._session, state="rejected"),
            *self._store.proposals(session=self._session, state="expired"),
        ]
        done.sort(key=lambda proposal: proposal.created)
        return (*self._open(), *done[: -_DECIDED - 1 : -1])

    def _open(self) -> tuple[Proposal, ...]:
        return self._store.proposals(session=self._session)

    def _proposal(self, change_id: str) -> Proposal:
        try:
            return self._store.proposal(change_id)
        except NotFoundError:
            raise self._not_its_own(change_id) from None

    def _not_its_own(self, change_id: str) -> NotFoundError:
        return NotFoundError(
            f"there is no change {change_id!r} of yours",
            hint="history with action log lists yours; people see all with `filepact log`.",
        )

    def _newest(self, *, undone: bool) -> Operation:
        """The newest change in force; with ``undone`` the last undo if no change came after it."""
        for operation in self._own():
            if operation.kind == "undo":
                if undone and operation.undone_by is None:
                    return operation
            elif operation.kind != "redo":
                if undone:
                    break
                if operation.undone_by is None:
                    return operation
        what = (
            "redo: no undo of yours since your last change"
            if undone
            else "undo: no change of yours"
        )
        raise NoChangeError(f"there is nothing to {what}")

    def _own(self) -> Iterator[Operation]:
        before: int | None = None
        while page := self._store.operations(session=self._session, before_seq=before, limit=100):
            yield from (one for one in page if one.state in ("applied", "interrupted"))
            before = page[-1].seq

    def _withdraw(self, proposal: Proposal, *, dry_run: bool) -> Receipt:
        if proposal.state != "proposed":
            raise NoChangeError(f"{proposal.id} does not wait: it was {proposal.state}")
        summary = f"take back the proposal {proposal.id} ({proposal.summary})"
        if dry_run:
            return Receipt(None, "preview", summary)
        self._waiting.withdraw([proposal])
        return Receipt(None, "withdrawn", summary)
