"""What two texts share at both ends, found by comparing whole slices.

Most changes touch a few lines of a long text.  Cutting the equal ends off first makes everything
that compares line by line cost what the change costs, not what the file costs.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Middle", "common_head", "common_tail", "middle_of", "middles_of"]

_MARGIN = 64


def common_head(a: str, b: str) -> int:
    """How many characters two strings share at the front."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_tail(a: str, b: str) -> int:
    """How many characters two strings share at the back."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(frozen=True, slots=True)
class Middle:
    """The lines in which two texts differ, with some equal ones around.

    Attributes:
        old: Those of the one text.
        new: Those of the other.
        start: Where they start in both texts, in code points.
        first: 0-based number of the first of them.
        whole_head: They start where the texts start.
        whole_tail: They end where the texts end.
    """

    old: str
    new: str
    start: int
    first: int
    whole_head: bool
    whole_tail: bool


def middles_of(first: str, *others: str) -> list[str]:
    """Several texts without the lines that all of them share at both ends, but for a margin."""
    head = min(common_head(first, other) for other in others)
    tail = min(common_tail(first[head:], other[head:]) for other in others)
    start = _before_margin(first, head)
    kept = _after_margin(first[len(first) - tail :])
    return [text[start : len(text) - tail + kept] for text in (first, *others)]


def _before_margin(text: str, head: int) -> int:
    """Where the lines begin that are kept before what differs."""
    start = head
    for _ in range(_MARGIN + 1):
        start = text.rfind("\n", 0, start)
        if start < 0:
            break
    return start + 1


def _after_margin(shared: str) -> int:
    """How many characters are kept of what texts share at the back."""
    kept = 0
    for _ in range(_MARGIN + 1):
        at = shared.find("\n", kept)
        if at < 0:
            return len(shared)
        kept = at + 1
    return kept


def middle_of(old: str, new: str) -> Middle:
    """Cut off the lines that two texts share at both ends, but for a margin.

    Lines end at LF.  The margin leaves room for showing a change among its neighbours, and for
    choosing between equally good places for it.
    """
    head = common_head(old, new)
    start = _before_margin(old, head)
    tail = common_tail(old[head:], new[head:])
    old_end, new_end = len(old) - tail, len(new) - tail
    shared = old[old_end:]
    kept = _after_margin(shared)
    return Middle(
        old=old[start : old_end + kept],
        new=new[start : new_end + kept],
        start=start,
        first=old.count("\n", 0, start),
        whole_head=start == 0,
        whole_tail=kept == len(shared),
    )
