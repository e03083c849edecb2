"""What a reader adds to the lines that it shows, and whether a text still has any of it.

Line numbers before the lines, a mark where a long line was cut, and a last line in brackets.  They
are not in the file, and a model that sends a whole text back may leave them in.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from filepact.text.lines import chomp, split_lines

__all__ = ["GOES_ON", "cut_mark", "left_in"]

GOES_ON: Final = " [the line goes on]"
"""What stands at the end of a line of which no more was read."""

_NUMBERED: Final = re.compile(r"[ ]*(-?\d+)\u2502")
_CUT: Final = re.compile(r" \[(\+[\d,]+ characters|the line goes on)\]$")
_FOOTER: Final = re.compile(r"\[[^\]\n]* \| revision [0-9a-f]{12}( \|[^\n]*)?\]$")

_SIGNS: Final = ("\u2502", " characters]", GOES_ON, " | revision ")

_LONG: Final = 500
"""Characters from which on a line is taken for a long one that was cut, where no file can tell."""

_SHORT: Final = 20
"""Where one can: fewer would stand in many a line."""


def cut_mark(more: int) -> str:
    """What stands at the end of a line of which so many characters are not shown."""
    return f" [+{more:,} characters]"


def left_in(text: str, there: str) -> str:
    """Which of these marks a text has that is to take another's place; empty when none.

    Args:
        text: The new text.
        there: The one that it is meant to replace, which may hold such marks itself.
    """
    if not any(sign in text for sign in _SIGNS):
        return ""
    lines = [line for line in map(chomp, split_lines(text)) if line.strip()]
    old = [chomp(line) for line in split_lines(there)]
    known = set(old)
    if _FOOTER.fullmatch(lines[-1]) and lines.pop() not in known:
        return "the last line of read_file in brackets"
    if _are_numbered(lines) and not _are_numbered([line for line in old if line.strip()]):
        return "the line numbers of read_file"
    for line in lines:
        found = _CUT.search(line)
        if found is not None and line not in known and _was_cut(line[: found.start()], old):
            return f"the mark{found[0]} of read_file, where a long line was cut"
    return ""


def _are_numbered(lines: list[str]) -> bool:
    """Whether nearly every line has a number before it, and these ascend by one."""
    numbers = [int(found[1]) for line in lines if (found := _NUMBERED.match(line))]
    if not numbers or 10 * len(numbers) < 9 * len(lines):
        return False
    # Blank lines are numbered as well; only those that were added have none.
    return all(a < b <= a + 2 for a, b in pairwise(numbers))


def _was_cut(shown: str, old: list[str]) -> bool:
    if not old:
        return len(shown) >= _LONG
    return len(shown) >= _SHORT and any(shown in line for line in old)
