"""What the journal says about itself, for people who watch their disk."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Pruned", "Statistics"]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Figures of a journal, over all roots.

    Attributes:
        operations: Operations in the journal, whatever became of them.
        proposals: Proposals that wait for a person.
        contents: Different contents that can be brought back.
        bytes_on_disk: Bytes that the journal takes, with the contents kept beside it.
        oldest: When the oldest operation was begun from which on everything can be taken back,
            seconds since the epoch; None when there is none.
    """

    operations: int
    proposals: int
    contents: int
    bytes_on_disk: int
    oldest: float | None


@dataclass(frozen=True, slots=True)
class Pruned:
    """What making room did.

    Attributes:
        contents: Contents that were given up.
        bytes_freed: Bytes by which the stored contents became smaller.
        bytes_kept: Bytes of the stored contents that are left.
        oldest: As in `Statistics`.
    """

    contents: int
    bytes_freed: int
    bytes_kept: int
    oldest: float | None
