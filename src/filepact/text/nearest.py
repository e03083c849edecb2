"""Why a text is not found: the nearest lines, and in what they differ.

This only explains.  What it finds similar is shown to the author, never replaced.  All work is
bounded, so a miss in a huge file or in one huge line is answered as fast as any other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import nsmallest
from typing import TYPE_CHECKING

from filepact.text.contrast import compare_line, excerpt, fold, squeeze
from filepact.text.edit import common_head
from filepact.text.lines import chomp, line_ends, split_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.text.contrast import Contrast

__all__ = ["Explanation", "explain_miss"]

_HINT = "Nothing was changed. Send the text exactly as the file has it; read those lines again."
_PREFIX = re.compile(r"[ \t]*\d+(?:[\u2502\u2192|\t]|: ?)", re.ASCII)
_ESCAPE = re.compile(r"\\([nrt\"'\\/`$])")
_ESCAPED_QUOTE = re.compile(r"\\([\"'`])")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_WORD = re.compile(r"\w{3,}")

_MOST_LINES = 2_000
_MOST_PLACES = 20
_MOST_CANDIDATES = 6
_LONGEST_COMPARED = 300
_LONGEST_LINE = 2_000
_LEAST_LIKENESS = 0.6
_SHOWN_AROUND = 2
_CLOSE_BY = 5


@dataclass(frozen=True, slots=True)
class Explanation:
    """What to tell the author of a text that is not in the file.

    Attributes:
        message: The nearest lines with their numbers, and what differs.
        hint: What to do.
        line: 1-based number of the first line that differs; None when nothing is similar.
    """

    message: str
    hint: str = _HINT
    line: int | None = None


def explain_miss(text: str, old: str) -> Explanation:
    """Explain why ``old``, which is not empty, is nowhere in the text."""
    if not text:
        return Explanation("The file is empty.", "Nothing was changed. Use write_file to fill it.")
    ends = line_ends(text)
    lines = [chomp(line) for line in split_lines(text)]
    whole = "\n".join(lines) + ("\n" if text.endswith(("\n", "\r")) else "")
    sent = old.replace("\r\n", "\n") if ends != "cr" else old.replace("\r", "\n")
    for say, hint, repair in _REPAIRS:
        repaired = repair(sent)
        if repaired and repaired != sent and (at := whole.find(repaired)) != -1:
            line = whole.count("\n", 0, at) + 1
            shown = _numbered(lines, line - 1, line - 1 + min(repaired.count("\n") + 1, 3))
            return Explanation(
                f"{say} Without that, it stands at line {line}:\n{shown}", hint, line
            )
    unnumbered = _without_numbers(sent)
    note = "" if unnumbered == sent else f"{_NUMBERED} There is more that differs. "
    return _nearest(lines, whole, unnumbered, note)


# -- mistakes that have a name ----------------------------------------------------------------


def _without_numbers(sent: str) -> str:
    """Without a line number before every line, as programs show them."""
    lines = sent.split("\n")
    matches = [_PREFIX.match(line) for line in lines]
    if all(match or not line.strip() for match, line in zip(matches, lines, strict=True)):
        return "\n".join(
            line[match.end() :] if match else line
            for match, line in zip(matches, lines, strict=True)
        )
    return sent


def _unescaped(sent: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), sent)


def _unquoted(sent: str) -> str:
    return _ESCAPED_QUOTE.sub(r"\1", sent)


_NUMBERED = "The lines start with line numbers, which are not part of the file."
_OVERESCAPED = "It holds escapes, a backslash and a letter or quote, that the file does not have."
_SEND_CHARACTERS = "Nothing was changed. Send the characters themselves, also in the new text."

_REPAIRS: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    (
        _NUMBERED,
        "Nothing was changed. Leave the line numbers out, also of the new text.",
        _without_numbers,
    ),
    (_OVERESCAPED, _SEND_CHARACTERS, _unescaped),
    (_OVERESCAPED, _SEND_CHARACTERS, _unquoted),
    (
        "It holds carriage returns that the file does not have.",
        "Nothing was changed. Send plain line feeds; the file's own line ends are kept.",
        lambda sent: sent.replace("\r", ""),
    ),
    (
        "It ends with a line end where the file has none: the line goes on, or is the last.",
        "Nothing was changed. Leave out the line end, also of the new text.",
        lambda sent: sent.removesuffix("\n"),
    ),
    (
        "It has blank lines at its start or end that the file does not have there.",
        "Nothing was changed. Leave them out, or send the lines as the file has them.",
        lambda sent: sent.strip("\n"),
    ),
)


# -- the nearest lines ------------------------------------------------------------------------


def _nearest(lines: list[str], whole: str, sent: str, note: str) -> Explanation:
    wanted = sent.split("\n")[:_MOST_LINES]
    if len(wanted) > 1 and not wanted[-1]:
        wanted.pop()
    whole_key = squeeze(fold(whole))
    keys = [squeeze(fold(line)) for line in wanted]
    if len(keys) == 1 and keys[0] and (at := whole_key.find(keys[0])) != -1:
        # A part of a line that is the same but for blanks, letter case and typography.
        number = whole_key.count("\n", 0, at)
        first = at - whole_key.rfind("\n", 0, at) - 1
        return _explain(lines, number, wanted, note, near=(first, first + len(keys[0])))
    file_keys = whole_key.split("\n")
    start = _by_equal_lines(file_keys, keys)
    if start is None:
        start = _by_words(file_keys, wanted)
    if start is None:
        return Explanation(
            f"{note}No line of the file is similar to it.",
            "Nothing was changed. Read the file; the text may have been changed or removed, "
            "or it is in another file.",
        )
    return _explain(lines, start, wanted, note)


def _by_equal_lines(file_keys: list[str], keys: list[str]) -> int | None:
    """The 0-based first line of the window that has most lines in common."""
    places: dict[str, list[int]] = {key: [] for key in keys if key}
    for number, key in enumerate(file_keys):
        found = places.get(key)
        if found is not None and len(found) < _MOST_PLACES:
            found.append(number)
    votes: dict[int, int] = {}
    for index, key in enumerate(keys):
        found = places.get(key, [])
        # A closing bracket that stands everywhere says little about the place.
        weight = min(len(key), 40) * (4 if len(found) == 1 else 1)
        for number in found:
            votes[number - index] = votes.get(number - index, 0) + weight
    if not votes:
        return None
    return max(votes, key=lambda start: (votes[start], start >= 0, -abs(start)))


def _by_words(file_keys: list[str], wanted: list[str]) -> int | None:
    """The same for lines of which none is equal: by the words of the longest of them."""
    index = max(range(len(wanted)), key=lambda i: (len(wanted[i].strip()), -i))
    line = fold(wanted[index][: 4 * _LONGEST_COMPARED])
    words = sorted(set(_WORD.findall(line)), key=lambda word: (-len(word), word))[:10]
    target = squeeze(line)[:_LONGEST_COMPARED]
    scores = [sum(word in key for word in words) for key in file_keys] if words else []
    ranked = nsmallest(
        _MOST_CANDIDATES,
        (number for number, score in enumerate(scores) if score),
        key=lambda number: (-scores[number], number),
    )
    best, best_likeness = None, _LEAST_LIKENESS
    for number in ranked:
        part = file_keys[number]
        if len(part) > _LONGEST_COMPARED:
            start = _anchor(part, target)
            part = part[start : start + len(target)]
        matcher = SequenceMatcher(None, target, part, autojunk=False)
        if matcher.quick_ratio() > best_likeness and (ratio := matcher.ratio()) > best_likeness:
            best, best_likeness = number - index, ratio
    return best


def _anchor(line: str, target: str) -> int:
    """Where in a long line something like the target may start: where a piece of it stands."""
    for size in (96, 48, 24, 12):
        for at in range(0, max(len(target) - size, 0) + 1, max(len(target) // 6, 1)):
            found = line.find(target[at : at + size])
            if found != -1:
                return max(found - at, 0)
    words = sorted(_WORD.findall(target), key=len, reverse=True)[:10]
    word = next((word for word in words if word in line), "")
    return max(line.find(word) - target.find(word), 0)


# -- showing them -----------------------------------------------------------------------------


def _explain(
    lines: list[str],
    start: int,
    wanted: list[str],
    note: str,
    near: tuple[int, int] | None = None,
) -> Explanation:
    """Compare line by line from ``start`` on and show the first that differs.

    Args:
        lines: The file's lines without ends.
        start: 0-based number of the line to compare the first with; may lie outside the file.
        wanted: The lines that were sent.
        note: What to say first.
        near: The text was sent as a part of a line and is similar to this part, which is
            counted in folded characters that are not blank.
    """
    count = len(wanted)
    there = [lines[i] if 0 <= i < len(lines) else None for i in range(start, start + count)]
    at = next((i for i, (a, b) in enumerate(zip(wanted, there, strict=True)) if a != b), 0)
    number = max(start + at, 0)
    contrast = _contrast(wanted[at], there[at], near)
    what = "the file begins after this line" if start + at < 0 else contrast.what
    moved = _elsewhere(lines, number, wanted[at])
    if moved is not None:
        what += f"; the line that was sent stands at line {moved + 1}"
    first, last = max(start, 0) + 1, min(start + count, len(lines))
    equal = sum(a == b for a, b in zip(wanted, there, strict=True))
    if last <= first:
        head = f"Nearest: line {number + 1}, which differs: {what}."
    else:
        share = f", {equal} of {count} equal" if equal else ""
        head = f"Nearest: lines {first}-{last}{share}. Line {number + 1} differs: {what}."
    shown = [
        note + head,
        _numbered(lines, max(number - _SHOWN_AROUND, start), number),
        f"{number + 1}\u2502{contrast.there}" if there[at] is not None else "",
        f"sent: {contrast.sent}",
        _numbered(lines, number + 1, min(number + 1 + _SHOWN_AROUND, start + count)),
    ]
    return Explanation("\n".join(filter(None, shown)), line=number + 1)


def _contrast(sent: str, there: str | None, near: tuple[int, int] | None) -> Contrast:
    """Contrast two lines, of a long one only the part that matters."""
    column = 0
    if there is not None and near is not None:
        column, there = _part(there, sent, *near)
    elif there is not None and len(there) > _LONGEST_LINE:
        column = _anchor(fold(there), fold(sent[:_LONGEST_LINE]))
        there = there[column : column + len(sent)]
    if there is not None and max(len(sent), len(there)) > _LONGEST_LINE:
        skipped = max(common_head(sent, there) - _LONGEST_COMPARED, 0)
        sent = sent[skipped : skipped + _LONGEST_LINE]
        there = there[skipped : skipped + _LONGEST_LINE]
        column += skipped
    return compare_line(sent, there, column=column + 1)


def _part(line: str, wanted: str, first: int, last: int) -> tuple[int, str]:
    """A part of a line, given in folded characters that are not blank: its offset and itself."""
    start = _offset(line, first)
    end = start + _offset(line[start:], last - first)
    # Blanks around it belong to the comparison as far as some were sent.
    if wanted[:1].isspace():
        start = len(line[:start].rstrip())
    if not wanted[-1:].isspace():
        end = start + len(line[start:end].rstrip())
    return start, line[start:end]


def _offset(line: str, count: int) -> int:
    """The last offset before which there are so many folded characters that are not blank."""
    low, high = 0, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        size = len(squeeze(fold(line[low:middle])))
        if size <= count:
            low = middle
            count -= size
        else:
            high = middle - 1
    return low


def _elsewhere(lines: list[str], number: int, sent: str) -> int | None:
    """A line close by that is the one that was sent: lines were lost or added between."""
    if not sent.strip():
        return None
    close = range(max(number - _CLOSE_BY, 0), min(number + _CLOSE_BY + 1, len(lines)))
    return next((i for i in close if i != number and lines[i] == sent), None)


def _numbered(lines: list[str], start: int, end: int) -> str:
    return "\n".join(
        f"{number + 1}\u2502{excerpt(lines[number])}"
        for number in range(max(start, 0), min(end, len(lines)))
    )
