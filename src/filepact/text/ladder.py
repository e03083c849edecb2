"""The steps by which a text to be replaced may be found, strictest first, and what each overlooks.

Every step compares whole lines and overlooks one kind of slip.  There is no step for a text that
is merely similar: what differs in a letter is another text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "BLANKS",
    "STEPS",
    "Step",
    "body_of",
    "differing",
    "fold",
    "indent_of",
    "trail_of",
    "unnumbered",
]

Step = Literal[
    "exact",
    "line ends",
    "trailing blanks",
    "indentation",
    "line numbers",
    "typography",
    "blank line",
]

STEPS: dict[Step, str] = {
    "exact": "the same characters",
    "line ends": "the same lines with the file's own line ends",
    "trailing blanks": "the same lines but for blanks at their ends; the file's were kept",
    "indentation": "the same lines but for their indentation; the file's was kept",
    "line numbers": "the same lines after taking the line numbers off that came before them",
    "typography": "the same lines but for typographic quotes, dashes or blanks; "
    "the file's were kept",
    "blank line": "the same lines but for one blank line; the file's were kept",
}
"""In the order in which they are tried: what was found, for people."""

_QUOTES = "\u2018\u2019\u201a\u201b\u2032\u00b4"
_DOUBLE_QUOTES = "\u201c\u201d\u201e\u201f\u2033"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_ODD_BLANKS = "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000"
_KEYBOARD = str.maketrans(
    _QUOTES + _DOUBLE_QUOTES + _DASHES + _ODD_BLANKS,
    "'" * len(_QUOTES) + '"' * len(_DOUBLE_QUOTES) + "-" * len(_DASHES) + " " * len(_ODD_BLANKS),
)

BLANKS = " \t" + _ODD_BLANKS
"""What may stand around a line's body."""

_NUMBERED = re.compile(r"[ \t]*(\d{1,9})([\u2502\u2192|\t])", re.ASCII)


def fold(text: str) -> str:
    """A text with quotes, dashes and blanks as on a keyboard, character by character."""
    return text if text.isascii() else text.translate(_KEYBOARD)


def body_of(line: str) -> str:
    """A line without the blanks around it."""
    return line.strip(BLANKS)


def indent_of(line: str) -> str:
    """The blanks at the beginning of a line; all of it when there is nothing else."""
    return line[: len(line) - len(line.lstrip(BLANKS))]


def trail_of(line: str) -> str:
    """The blanks at the end of a line."""
    return line[len(line.rstrip(BLANKS)) :]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Which of the steps it takes to make two lines equal."""

    trailing: bool
    indentation: bool
    typography: bool


def differing(sent: list[str], there: list[str]) -> tuple[Step, ...]:
    """The steps that are needed to see lines that are alike as the same, in their order.

    Args:
        sent: Lines without their ends, none of them blank.
        there: The file's lines, each alike to the one sent.
    """
    found = [_compare(one, other) for one, other in zip(sent, there, strict=True)]
    steps: list[Step] = []
    if any(one.trailing for one in found):
        steps.append("trailing blanks")
    if any(one.indentation for one in found):
        steps.append("indentation")
    if any(one.typography for one in found):
        steps.append("typography")
    return tuple(steps)


def _compare(sent: str, there: str) -> _Comparison:
    if sent == there:
        return _Comparison(trailing=False, indentation=False, typography=False)
    return _Comparison(
        trailing=trail_of(sent) != trail_of(there),
        indentation=indent_of(sent) != indent_of(there),
        typography=body_of(sent) != body_of(there),
    )


def unnumbered(old: str, new: str) -> tuple[str, str] | None:
    """Both texts without the line numbers that a program showed before each line.

    Every line of the old text that is not empty must have one, the numbers ascend by one, and
    all are set off by the same sign.  In the new text a line may lack it, as lines do that were
    added.

    Returns:
        None when these are no such numbers.
    """
    first: int | None = None
    sign = ""
    stripped = []
    for index, line in enumerate(old.split("\n")):
        match = _NUMBERED.match(line)
        if match is None:
            if line.strip():
                return None
            stripped.append(line)
            continue
        if first is None:
            first, sign = int(match[1]) - index, match[2]
        if int(match[1]) - index != first or match[2] != sign:
            return None
        stripped.append(line[match.end() :])
    if not any(line.strip() for line in stripped):
        return None
    fresh = []
    for line in new.split("\n"):
        match = _NUMBERED.match(line)
        fresh.append(line[match.end() :] if match and match[2] == sign else line)
    return "\n".join(stripped), "\n".join(fresh)
