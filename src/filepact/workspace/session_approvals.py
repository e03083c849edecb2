"""Approvals in advance: given with a proposal, for the same session and rules, until they are revoked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.domain.operation import PREVIEW_MODE, Approval
from filepact.domain.session_approval import SessionApproval
from filepact.errors import InvalidParamsError, NoChangeError, NotFoundError
from filepact.text.glob import compile_filter
from filepact.workspace.journal import new_id

if TYPE_CHECKING:
    from filepact.domain.operation import Proposal
    from filepact.domain.policy import Policy
    from filepact.workspace.journal import JournalStore

__all__ = ["SessionApprovals"]

_SECONDS: Final = 86_400.0


class SessionApprovals:
    """The approvals in advance of a journal.

    Args:
        store: The journal.
        policy: The rules: those about signs of a change ask each time.
    """

    def __init__(self, store: JournalStore, policy: Policy) -> None:
        self._store = store
        self._policy = policy

    def listed(self) -> tuple[SessionApproval, ...]:
        """All that were given, newest first."""
        return self._store.session_approvals()

    def in_force(self) -> tuple[SessionApproval, ...]:
        """Those that count now."""
        now = self._store.now()
        return tuple(one for one in self.listed() if one.in_force(now))

    def check(self, proposal: Proposal, pattern: str) -> None:
        """Refuse an approval that could not be given with a proposal.

        Raises:
            InvalidParamsError: The pattern fits none of its files, or a rule asks about what a change
                shows, which nobody knows in advance.
            SearchFailedError: It is no pattern.
        """
        matches = compile_filter(pattern)
        if pattern.startswith("!") or not any(matches(one.path) for one in proposal.changes.paths):
            raise InvalidParamsError(
                f"{pattern} fits no file of {proposal.id}",
                hint="Name files like those that you have looked at, such as docs/**.",
            )
        if not proposal.session.agent or not proposal.rules:
            raise InvalidParamsError("this is not an agent's change that waits for a rule")
        known = {one.name: one for one in (*self._policy.fallbacks, *self._policy.rules)}
        for name in proposal.rules:
            if name != PREVIEW_MODE and (name not in known or known[name].signs):
                raise InvalidParamsError(
                    f"the rule {name} asks about each change, and cannot be answered in advance",
                    hint="Approve this change alone.",
                )

    def give(self, proposal: Proposal, pattern: str, approval: Approval) -> SessionApproval:
        """Approve what the session of a proposal does next to files like its own.

        Raises:
            InvalidParamsError: As `check`.
        """
        self.check(proposal, pattern)
        now = self._store.now()
        given = SessionApproval(
            id=f"g{new_id()[1:]}",
            session=proposal.session,
            root=proposal.changes.paths[0].root,
            pattern=pattern,
            rules=proposal.rules,
            change=proposal.id,
            given=now,
            by=approval.actor.name,
            expires=now + _SECONDS,
        )
        self._store.add_session_approval(given)
        return given

    def revoke(self, begins: str) -> SessionApproval:
        """Take one back, by its id or the beginning of it: from now on a person is asked again.

        Raises:
            NotFoundError: There is none, or there are several.
            NoChangeError: It does not count any more.
        """
        found = [one for one in self.listed() if one.id.startswith(begins)]
        if len(found) != 1 or len(begins) < 2:
            raise NotFoundError(f"there is no such approval in advance: {begins!r}")
        (one,) = found
        now = self._store.now()
        if not one.in_force(now):
            raise NoChangeError(f"{one.id} is no longer in force")
        self._store.revoke_session_approval(one.id, now)
        return one
