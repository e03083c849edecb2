"""Finds what changed inside a line, for people who look at a diff."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from filepact.text.compare import compare_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["pair_lines", "refine"]

Span = tuple[int, int]
"""From this code point up to, not including, that one."""

_LONGEST_LINE = 2_000
_MOST_PAIRINGS = 2_500
_ALIKE = 0.4
_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)


def refine(old_line: str, new_line: str) -> tuple[list[Span], list[Span]]:
    """The spans that differ in each of two lines, in order and not touching.

    Compared are words, runs of blanks and single other characters.  Changes with nothing but
    blanks between them are one span.  A line of more than 2,000 characters is one span.
    """
    if old_line == new_line:
        return [], []
    if max(len(old_line), len(new_line)) > _LONGEST_LINE:
        return _whole(old_line), _whole(new_line)
    old, new = _TOKEN.findall(old_line), _TOKEN.findall(new_line)
    old_at, new_at = _offsets(old), _offsets(new)
    regions = compare_lines(old, new)
    return (
        _joined([(old_at[r.old_start], old_at[r.old_end]) for r in regions], old_line),
        _joined([(new_at[r.new_start], new_at[r.new_end]) for r in regions], new_line),
    )


def pair_lines(removed: Sequence[str], added: Sequence[str]) -> list[tuple[int, int]]:
    """Which removed line became which added line, as indices, both ascending.

    Lines pair when they share enough words; of all pairings in order, the one of the greatest
    likeness is taken.  Large blocks (over 2,500 possible pairs) are paired one by one from the
    top.
    """
    if len(removed) * len(added) > _MOST_PAIRINGS:
        bags = zip(map(_words, removed), map(_words, added), strict=False)
        return [(i, i) for i, (a, b) in enumerate(bags) if _likeness(a, b) >= _ALIKE]
    old_bags, new_bags = [_words(line) for line in removed], [_words(line) for line in added]
    # best[i][j]: the greatest likeness of pairings of the lines from i and from j on.
    best = [[0.0] * (len(added) + 1) for _ in range(len(removed) + 1)]
    alike = [[_likeness(a, b) for b in new_bags] for a in old_bags]
    for i in range(len(removed) - 1, -1, -1):
        for j in range(len(added) - 1, -1, -1):
            paired = alike[i][j] + best[i + 1][j + 1] if alike[i][j] >= _ALIKE else 0.0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    pairs = []
    i = j = 0
    while i < len(removed) and j < len(added):
        if alike[i][j] >= _ALIKE and best[i][j] == alike[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _whole(line: str) -> list[Span]:
    return [(0, len(line))] if line else []


def _offsets(tokens: list[str]) -> list[int]:
    offsets = [0]
    for token in tokens:
        offsets.append(offsets[-1] + len(token))
    return offsets


def _joined(spans: list[Span], line: str) -> list[Span]:
    joined: list[Span] = []
    for start, end in spans:
        if start == end:
            continue
        if joined and not line[joined[-1][1] : start].strip():
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _words(line: str) -> Counter[str]:
    return Counter(token for token in _TOKEN.findall(line[:_LONGEST_LINE]) if not token.isspace())


def _likeness(a: Counter[str], b: Counter[str]) -> float:
    """The share of common words, 0 to 1; two blank lines are alike."""
    total = a.total() + b.total()
    return 2 * (a & b).total() / total if total else 1.0
