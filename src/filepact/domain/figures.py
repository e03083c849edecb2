"""What the journal says about itself, for people who watch their disk."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Integrity", "Pruned", "Salvaged", "Statistics", "Unusable"]


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


@dataclass(frozen=True, slots=True)
class Unusable:
    """A file of an operation or proposal of which the journal lost a content.

    Attributes:
        id: The operation, or the proposal that waits.
        summary: What it is.
        path: The file, absolute.
        content: The content that is damaged.
    """

    id: str
    summary: str
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Integrity:
    """What a journal looks like from within.

    Attributes:
        problems: What is wrong with it, a sentence each.
        contents: How many contents it keeps.
        damaged: Those that cannot be read, by their ids.
        unusable: What cannot be taken back or done because of that.
        strays: Files beside it of which it does not tell, as an interrupted clean-up leaves them.
        unfinished: Operations that were begun and neither done nor taken back.
    """

    problems: tuple[str, ...] = ()
    contents: int = 0
    damaged: tuple[str, ...] = ()
    unusable: tuple[Unusable, ...] = ()
    strays: tuple[str, ...] = ()
    unfinished: int = 0

    @property
    def sound(self) -> bool:
        """Whether everything in it can be read."""
        return not self.problems and not self.damaged


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What became of a journal that was damaged.

    Attributes:
        aside: The folder in which the damaged one lies.
        operations: How many operations could be read.
        contents: How many contents.
        lost: What could not, a sentence each.
    """

    aside: str
    operations: int
    contents: int
    lost: tuple[str, ...]
