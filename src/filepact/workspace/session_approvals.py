"""Approvals in advance: given with a proposal, for the same session and rules, until they are revoked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.operation import PREVIEW_MODE, Approval
from filepact.domain.permission_log import SessionApproval
from filepact.errors import InvalidParamsError, NoChangeError, NotFoundError
from filepact.text.glob import compile_filter
from filepact.workspace.authorizer import SessionPermissions
from filepact.workspace.journal import new_id

if TYPE_CHECKING:
    from filepact.domain.document import RootId, WorkspacePath
    from filepact.domain.operation import Proposal
    from filepact.domain.policy import Policy
    from filepact.workspace.journal import JournalStore

__all__ = ["ApprovalScope", "SessionApprovals", "pattern_of"]

ApprovalScope = Literal["change", "file", "session"]
"""How far an approval may reach: the one change, its files, or whatever its session does."""

_SCOPES: Final[tuple[ApprovalScope, ...]] = ("change", "file", "session")
_SECONDS: Final = 86_400.0
_NAMED: Final = 3


def pattern_of(path: WorkspacePath) -> str:
    """The pattern that fits this file and no other of its root."""
    return "/" + re.sub(r"[*?{}\[\]\\]", r"\\\g<0>", path.path)


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
        """The approvals in force."""
        now = self._store.now()
        return tuple(one for one in self.listed() if one.in_force(now))

    def scope(self, proposal: Proposal) -> ApprovalScope:
        """How far an approval may reach that is given with a proposal.

        What shows on a change, such as hidden characters, may be another thing in the next.  What is
        protected from the start is approved for the files that were shown, and no further.
        """
        if not proposal.session.agent or not proposal.rules:
            return "change"
        return min((self._scope_of(name) for name in proposal.rules), key=_SCOPES.index)

    def _scope_of(self, name: str) -> ApprovalScope:
        if name == PREVIEW_MODE:
            return "session"
        rules = [one for one in (*self._policy.fallbacks, *self._policy.rules) if one.name == name]
        if not rules or any(one.signs for one in rules):
            return "change"
        return "file" if any(one.layer == "built-in" for one in rules) else "session"

    def covering(self, proposal: Proposal) -> Approval | None:
        """The approval in advance under which a proposal may be carried out; None where a person is to be asked."""
        permissions = SessionPermissions(self._store, proposal.session)
        rules, paths = proposal.rules, proposal.changes.paths
        if not rules or not all(permissions.allows(path, rule) for rule in rules for path in paths):
            return None
        return permissions.approval

    def check(self, proposal: Proposal, pattern: str) -> None:
        """Refuse an approval that could not be given with a proposal.

        Raises:
            InvalidParamsError: The pattern fits none of its files, or reaches further than `scope`.
            SearchFailedError: It is no pattern.
        """
        matches = compile_filter(pattern)
        if pattern.startswith("!") or not any(matches(one.path) for one in proposal.changes.paths):
            raise InvalidParamsError(
                f"{pattern} fits no file of {proposal.id}",
                hint="Name files like those that you have looked at, such as docs/**.",
            )
        scope = self.scope(proposal)
        if scope == "change":
            raise InvalidParamsError(
                f"{proposal.rule or 'no rule'} asks about each change, and cannot be answered in advance",
                hint="Approve this change alone.",
            )
        exact = [pattern_of(path) for path in proposal.changes.paths]
        if scope == "file" and pattern not in exact:
            raise InvalidParamsError(
                f"{proposal.rule} is approved in advance for the files that you have seen alone",
                hint=f"Name one of them: {', '.join(exact[:_NAMED])}.",
            )

    def give(
        self, proposal: Proposal, pattern: str, approval: Approval, root: RootId | None = None
    ) -> SessionApproval:
        """Approve what the session of a proposal does next to files like its own.

        Args:
            proposal: What the person was shown.
            pattern: A glob that fits one of its files at least.
            approval: The person's word.
            root: Where the files lie; None for the root of the first that the pattern fits.

        Raises:
            InvalidParamsError: As `check`.
        """
        self.check(proposal, pattern)
        now, matches = self._store.now(), compile_filter(pattern)
        given = SessionApproval(
            id=f"g{new_id()[1:]}",
            session=proposal.session,
            root=root or next(one.root for one in proposal.changes.paths if matches(one.path)),
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
            raise NotFoundError(
                f"no such approval: {begins!r}", hint="See `filepact policy grants`."
            )
        (one,) = found
        now = self._store.now()
        if not one.in_force(now):
            raise NoChangeError(f"{one.id} is no longer in force")
        self._store.revoke_session_approval(one.id, now)
        return one
