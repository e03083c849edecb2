"""Why a text is not found: the nearest lines, and in what they differ.

This only explains.  What it finds similar is shown to the author, never replaced.  All work is
bounded, so a miss in a huge file or in one huge line is answered as fast as any other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from heapq import nsmallest
from typing import TYPE_CHECKING

from filepact.text.compare import Region, compare_lines
from filepact.text.contrast import (
    Contrast,
    anchor,
    contrast_lines,
    contrast_part,
    excerpt,
    fold,
    squeeze,
    words_of,
)
from filepact.text.lines import line_ends

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Explanation", "explain_miss"]

_HINT = "Nothing was changed. Send the text exactly as the file has it; read those lines again."
_PREFIX = re.compile(r"[ \t]*\d+(?:[\u2502\u2192|\t]|: ?)", re.ASCII)
_ESCAPE = re.compile(r"\\([nrt\"'\\/`$])")
_ESCAPED_QUOTE = re.compile(r"\\([\"'`])")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}

_MOST_LINES = 2_000
_MOST_SENT = 20_000
_MOST_THERE = 200_000
"""Most lines of both texts where similar ones are looked for."""

_MOST_PLACES = 20
_MOST_CANDIDATES = 6
_LONGEST_COMPARED = 300
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
    whole, sent = text.replace("\r\n", "\n"), old.replace("\r\n", "\n")
    if line_ends(text) == "cr":
        whole, sent = text.replace("\r", "\n"), sent.replace("\r", "\n")
    if sent.count("\n") > _MOST_SENT or whole.count("\n") > _MOST_THERE:
        return Explanation(
            "So many lines are not looked through for similar ones.",
            "Nothing was changed. Send less of the text, as the file has it.",
        )
    lines = whole.removesuffix("\n").split("\n")
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
    wanted = sent.split("\n")
    if len(wanted) > 1 and not wanted[-1]:
        wanted.pop()
    whole_key = squeeze(fold(whole))
    keys = [squeeze(fold(line)) for line in wanted]
    if len(keys) == 1 and keys[0] and (at := whole_key.find(keys[0])) != -1:
        # A part of a line that is the same but for blanks, letter case and typography.
        number = whole_key.count("\n", 0, at)
        first = at - whole_key.rfind("\n", 0, at) - 1
        contrast = contrast_part(wanted[0], lines[number], first, first + len(keys[0]))
        return _show(lines, _Difference(number, contrast), note)
    file_keys = whole_key.split("\n")[: len(lines)]
    start = _by_equal_lines(file_keys, keys)
    if start is not None:
        return _show(lines, _first_difference(lines, file_keys, wanted, keys, start), note)
    pair = _by_words(file_keys, wanted)
    if pair is not None:
        index, number = pair
        return _show(lines, _Difference(number, contrast_lines(wanted[index], lines[number])), note)
    return Explanation(
        f"{note}No line of the file is similar to it.",
        "Nothing was changed. Read the file; the text may have been changed or removed, "
        "or it is in another file.",
    )


def _by_equal_lines(file_keys: list[str], keys: list[str]) -> int | None:
    """Where the window begins that has most lines in common, 0-based; may be negative."""
    places: dict[str, list[int]] = {key: [] for key in keys if key}
    for number, key in enumerate(file_keys):
        found = places.get(key)
        if found is not None and len(found) < _MOST_PLACES:
            found.append(number)
    votes: dict[int, int] = {}
    for index, key in enumerate(keys[:_MOST_LINES]):
        found = places.get(key, [])
        # A closing bracket that stands everywhere says little about the place.
        weight = min(len(key), 40) * (4 if len(found) == 1 else 1)
        for number in found:
            votes[number - index] = votes.get(number - index, 0) + weight
    if not votes:
        return None
    return max(votes, key=lambda start: (votes[start], start >= 0, -abs(start)))


def _by_words(file_keys: list[str], wanted: list[str]) -> tuple[int, int] | None:
    """Of lines of which none is equal, the longest that was sent and the one most like it."""
    index = max(range(len(wanted)), key=lambda i: (len(wanted[i].strip()), -i))
    line = fold(wanted[index][: 4 * _LONGEST_COMPARED])
    words = words_of(line)
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
            start = anchor(part, target, words)
            part = part[start : start + len(target)]
        matcher = SequenceMatcher(None, target, part, autojunk=False)
        if matcher.quick_ratio() > best_likeness and (ratio := matcher.ratio()) > best_likeness:
            best, best_likeness = (index, number), ratio
    return best


# -- the first difference -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Difference:
    """The first place where what was sent and the file differ.

    Attributes:
        line: 0-based number of the file's line there.
        contrast: What differs, and both lines; one of them is empty where there is none.
        first: The first line of the file that belongs to what was sent; ``line`` if None.
        last: The last such line.
        equal: How many lines are the same, and of how many; empty for a single line.
    """

    line: int
    contrast: Contrast
    first: int | None = None
    last: int | None = None
    equal: str = ""


def _first_difference(
    lines: list[str], file_keys: list[str], wanted: list[str], keys: list[str], start: int
) -> _Difference:
    """Align lines that are equal but for blanks and the like, and find the first that differs."""
    low = max(start - _CLOSE_BY, 0)
    near = file_keys[low : max(start, 0) + len(keys) + _CLOSE_BY]
    first_found: tuple[int, Contrast] | None = None
    aligned: list[tuple[int, int]] = []
    at = other = 0
    for region in [*compare_lines(keys, near), Region(len(keys), len(keys), len(near), len(near))]:
        run = [(at + i, low + other + i) for i in range(region.old_start - at)]
        aligned += run
        found = next(((i, j) for i, j in run if wanted[i] != lines[j]), None)
        if first_found is None and found is not None:
            first_found = found[1], contrast_lines(wanted[found[0]], lines[found[1]])
        if first_found is None:
            first_found = _in_region(lines, wanted, region, low)
        at, other = region.old_end, region.new_end
    equal = sum(wanted[i] == lines[j] for i, j in aligned)
    line, contrast = first_found or (low, Contrast("nothing that can be seen", "", ""))
    numbers = [line, *(j for _, j in aligned)]
    share = f", {equal} of {len(wanted)} equal" if equal else ""
    return _Difference(line, contrast, min(numbers), max(numbers), share)


def _in_region(
    lines: list[str], wanted: list[str], region: Region, low: int
) -> tuple[int, Contrast] | None:
    """What differs where nothing could be aligned; None for lines before or after what was sent."""
    sent, there = wanted[region.old_start : region.old_end], region.new_end - region.new_start
    line = low + region.new_start
    if there and region.old_start == 0:
        line = max(low + region.new_end - len(sent), line)
    if sent:
        moved = _elsewhere(lines, line, sent[0])
        also = "" if moved is None else f"; what was sent stands at line {moved + 1}"
        if there:
            contrast = contrast_lines(sent[0], lines[line])
            return line, replace(contrast, what=contrast.what + also)
        what = "a blank line" if not sent[0].strip() else "this line"
        said = f"{what} was sent that the file does not have there{also}"
        return line, Contrast(said, excerpt(sent[0]), "")
    if 0 < region.old_start < len(wanted):
        what = "a line" if lines[line].strip() else "a blank line"
        said = f"the file has {what} there that was not sent"
        return line, Contrast(said, "", excerpt(lines[line]))
    return None


def _elsewhere(lines: list[str], number: int, sent: str) -> int | None:
    """A line close by that is the one that was sent."""
    close = range(max(number - _CLOSE_BY, 0), min(number + _CLOSE_BY + 1, len(lines)))
    return next((i for i in close if sent.strip() and lines[i] == sent), None)


def _show(lines: list[str], difference: _Difference, note: str) -> Explanation:
    line, contrast = difference.line, difference.contrast
    first = line if difference.first is None else difference.first
    last = line if difference.last is None else difference.last
    if last <= first:
        head = f"Nearest: line {line + 1}, which differs: {contrast.what}."
    else:
        head = f"Nearest: lines {first + 1}-{last + 1}{difference.equal}. "
        head += f"Line {line + 1} differs: {contrast.what}."
    # A line that only the author has stands between two of the file's.
    after = line + 1 if contrast.there or not contrast.sent else line
    shown = [
        note + head,
        _numbered(lines, max(line - _SHOWN_AROUND, first), line),
        f"{line + 1}\u2502{contrast.there}" if after > line else "",
        f"sent: {contrast.sent}" if contrast.sent else "",
        _numbered(lines, after, min(after + _SHOWN_AROUND, last + 1)),
    ]
    return Explanation("\n".join(filter(None, shown)), line=line + 1)


def _numbered(lines: list[str], start: int, end: int) -> str:
    return "\n".join(
        f"{number + 1}\u2502{excerpt(lines[number])}"
        for number in range(start, min(end, len(lines)))
    )
