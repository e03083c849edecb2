"""A file that was opened for a change."""

from __future__ import annotations

from dataclasses import dataclass
from posixpath import dirname, normpath
from typing import TYPE_CHECKING

from filepact.errors import InvalidParamsError, NotFoundError, PathBlockedError
from filepact.workspace.guard import not_there

if TYPE_CHECKING:
    from filepact.domain.document import Document
    from filepact.workspace.guard import Spot
    from filepact.workspace.seen import Known
    from filepact.workspace.waiting import Layer

__all__ = ["Target", "check_link_moves", "existing", "proposed_gone"]


@dataclass(frozen=True, slots=True)
class Target:
    """A file that was opened for a change.

    Attributes:
        document: What it holds now; None when there is no such file yet.
        seen: What the session knows of it; None when it was never shown any of it.
        waits: What the session has proposed for it, which ``document`` is the end of.
        proved: The session has named the revision that the file is at.
        hidden: The session may not see what it holds.
        saved: The text that the disk has, where an editor holds more; empty for no file.
        overtaken: The disk has changed under what the editor holds.
    """

    spot: Spot
    document: Document | None
    seen: Known | None
    waits: Layer | None = None
    proved: bool = False
    hidden: bool = False
    saved: str | None = None
    overtaken: bool = False

    @property
    def unread(self) -> bool:
        """Whether it holds something that the session was never shown any of, and could be."""
        return (
            self.document is not None
            and bool(self.document.data)
            and self.seen is None
            and not (self.proved or self.hidden)
        )

    @property
    def moved(self) -> bool:
        """Whether the file is no longer what the session knows."""
        return (
            self.seen is not None and self.document is not None and self.seen.differs(self.document)
        )


def proposed_gone(shown: str, layer: Layer) -> NotFoundError:
    """The refusal of a file that the session itself wants to be gone."""
    proposal = layer.proposal.id
    return NotFoundError(
        f"{shown}: you have proposed to remove it ({proposal}, which waits for a person)",
        hint="Go on without it, or write it anew.",
        path=shown,
        proposal=proposal,
    )


def existing(target: Target) -> Document:
    """What a target holds.

    Raises:
        NotFoundError: There is no such file.
    """
    if target.document is None and target.waits is not None:
        raise proposed_gone(target.spot.shown, target.waits)
    if target.document is None:
        shown = target.spot.shown
        advice = "Look for the name with search_files."
        raise not_there(target.spot, f"{shown}: no such file", advice, path=shown)
    return target.document


def check_link_moves(source: Target, target: Target, *, edited: bool) -> None:
    """Refuse to give a link another name where that is not all, or where it would lead outside."""
    if edited:
        raise InvalidParamsError(
            f"{source.spot.shown}: is a link, which has no lines of its own to be changed",
            hint="Rename it without hunks, and change the file that it leads to by that one's name.",
            path=source.spot.shown,
        )
    root, old, new = source.spot.path.root, source.spot.place.path, target.spot.place.path
    if root == target.spot.path.root and dirname(old) == dirname(new):
        return
    leads = existing(source).data.decode("utf-8", "replace")
    above = dirname(f"{root}/{new}")
    if not leads.startswith("/") and not f"{normpath(f'{above}/{leads}')}/".startswith(f"{root}/"):
        raise PathBlockedError(
            f"{target.spot.shown}: the link would lead out of the root from there, to {leads}",
            hint="Leave the link in its folder.",
            path=target.spot.shown,
        )
