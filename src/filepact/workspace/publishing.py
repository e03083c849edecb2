"""The interface that makes every change of a root known elsewhere, before it is done here; the workspace knows no more of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from filepact.workspace.commit import Committer
    from filepact.workspace.rebase import Rebase
    from filepact.workspace.recovery import Recovery
    from filepact.workspace.writer import ChangeWriter

__all__ = ["ChangePublisher"]


class ChangePublisher(Protocol):
    """One root of a workspace whose changes are others' as well."""

    def bind(
        self, committer: Committer, recovery: Recovery, *, fitting: Rebase, writer: ChangeWriter
    ) -> None:
        """Take the parts of the workspace that the root is in, and publish every change that it commits."""

    def refresh(self) -> None:
        """Bring the root up to what others have published; before each call."""

    def made(self, request: str, *, settle: bool) -> bool:
        """Whether something was made for a request, by whatever machine.

        Args:
            request: Its id.
            settle: Whether what a machine that is gone has sent for it is not to be done any more.
        """
