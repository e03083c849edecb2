"""States of files as columns of a row, and back."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from filepact.domain.attributes import Attributes
from filepact.domain.document import Revision

if TYPE_CHECKING:
    from filepact.domain.change import FileChange

__all__ = ["to_attributes", "to_revision", "to_states"]


def to_states(
    change: FileChange, before: int | None, after: int | None
) -> tuple[int | None, int | None, int | None, int | None, bytes | None, bytes | None]:
    """Both states of a file as they are stored, by the numbers of their contents."""
    was = None if change.before is None else change.before.attributes
    is_ = None if change.after is None else change.after.attributes
    same = was and was == is_ and (is_.linked or was.linked) == was.linked and not change.turns
    return (
        *(before, change.before.mode if change.before else None),
        *(after, change.after.mode if change.after else None),
        None if was is None else was.packed(),
        None if is_ is None else b"" if same else is_.packed(),
    )


def to_revision(content: str, mode: int | None, stored: bytes | None) -> Revision | None:
    """The state of three columns; None for no file."""
    if mode is None:
        return None
    return Revision(content, mode, to_attributes(stored))


def to_attributes(stored: bytes | None) -> Attributes | None:
    """The attributes of a column; None where it has none."""
    return _unpacked(bytes(stored)) if stored else None


@lru_cache(maxsize=32)
def _unpacked(stored: bytes) -> Attributes | None:
    """Stored attributes; None for what a damaged journal has in their place."""
    try:
        return Attributes.unpacked(stored)
    except (ValueError, TypeError):
        return None
