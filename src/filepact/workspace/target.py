"""A file that was opened for a change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.errors import NotFoundError

if TYPE_CHECKING:
    from filepact.domain.document import Document
    from filepact.workspace.guard import Spot

__all__ = ["Target", "existing"]


@dataclass(frozen=True, slots=True)
class Target:
    """A file that was opened for a change.

    Attributes:
        document: What it holds now; None when there is no such file yet.
        seen: What the session saw of it last; None when it never read it.
    """

    spot: Spot
    document: Document | None
    seen: Document | None

    @property
    def moved(self) -> bool:
        """Whether the file is no longer what the session saw."""
        return (
            self.seen is not None
            and self.document is not None
            and self.seen.revision != self.document.revision
        )


def existing(target: Target) -> Document:
    """What a target holds.

    Raises:
        NotFoundError: There is no such file.
    """
    if target.document is None:
        raise NotFoundError(
            f"{target.spot.shown}: no such file",
            hint="Look for the name with search_files.",
            path=target.spot.shown,
        )
    return target.document
