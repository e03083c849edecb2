"""Approvals for a session: what a person has allowed an agent in advance, until its session ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.values import dataclass

if TYPE_CHECKING:
    from filepact.domain.document import RootId
    from filepact.domain.operation import Session

__all__ = ["SessionApproval"]


@dataclass(frozen=True, slots=True)
class SessionApproval:
    """An approval of later changes by one session to some files.

    Attributes:
        id: ``g`` and ten characters of base 32.
        session: Whose changes are approved, and nobody else's.
        root: The root in which the files lie.
        pattern: A glob over their paths in it.
        rules: The rules that the person was shown when they approved; others still ask.
        change: The proposal with which it was given.
        given: When, seconds since the epoch.
        by: Who gave it.
        expires: When it ends at the latest.
        revoked: When a person took it back; None for not.
    """

    id: str
    session: Session
    root: RootId
    pattern: str
    rules: tuple[str, ...]
    change: str
    given: float
    by: str
    expires: float
    revoked: float | None = None

    def in_force(self, now: float) -> bool:
        """Whether it counts at a moment."""
        return self.revoked is None and now < self.expires
