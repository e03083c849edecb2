"""Renders unified diffs that patch programs take byte for byte.

Lines end at LF only, as patch programs see them: a CR before it belongs to the line, and a text
with CR line ends alone is one line.  For people, what changed inside a line is found as well.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from filepact.text.compare import DiffRange, compare_lines
from filepact.text.edit import Edit
from filepact.text.lines import line_starts, middle_of, middles_of, split_lines
from filepact.values import late_regex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from filepact.text.lines import DiffLines

__all__ = [
    "DiffRange",
    "compare_lines",
    "pair_lines",
    "quote_name",
    "refine",
    "shown_by_diff",
    "split_hunks",
    "takes_back",
    "unified",
    "unified_binary",
]

_LINK = 0o120000
_CONTEXT = 3
_NO_NEWLINE = "\\ No newline at end of file\n"
_ESCAPES = {
    7: "\\a",
    8: "\\b",
    9: "\\t",
    10: "\\n",
    11: "\\v",
    12: "\\f",
    13: "\\r",
    34: '\\"',
    92: "\\\\",
}
_QUOTED = {code: f"\\{code:03o}" for code in (*range(32), 127)} | _ESCAPES


def unified(
    old: str | None,
    new: str | None,
    *,
    old_name: str,
    new_name: str,
    context: int = 3,
    old_mode: int | None = None,
    new_mode: int | None = None,
    git: bool = False,
) -> str:
    """The unified diff from one text to another; empty when nothing differs.

    Args:
        old: Text before; None when the file does not exist.
        new: Text after; None when the file does not exist.
        old_name: Relative path before, without the ``a/``.
        new_name: Relative path after, without the ``b/``; another one is a rename.
        context: Equal lines shown around each change.
        old_mode: Permission bits before; given to show that they change.
        new_mode: Permission bits after.
        git: With Git's header also where nothing needs it; Git wants it for every file of a
            patch in which one has it.
    """
    if old == new and old_mode == new_mode and old_name == new_name:
        return ""
    hunks = "".join(_hunks(old or "", new or "", context))
    old_label, new_label = f"a/{old_name}", f"b/{new_name}"
    parts = list(
        _git_lines(old, new, old_name, new_name, old_mode, new_mode, bare=git or not hunks)
    )
    if git or parts:
        # Git names both sides here, also the one that does not exist.
        known = (old_name, new_name) if old is not None else (new_name, new_name)
        pair = (known[0], known[0] if new is None else known[1])
        parts.insert(0, f"diff --git {quote_name(f'a/{pair[0]}')} {quote_name(f'b/{pair[1]}')}\n")
    if hunks:
        parts.append(f"--- {_header_name(old_label) if old is not None else '/dev/null'}\n")
        parts.append(f"+++ {_header_name(new_label) if new is not None else '/dev/null'}\n")
        parts.append(hunks)
    return "".join(parts)


def unified_binary(old_size: int | None, new_size: int | None, name: str) -> str:
    """The line shown for a change of a binary file.

    Args:
        old_size: Bytes before; None when the file does not exist.
        new_size: Bytes after; None when the file does not exist.
        name: The file's name.
    """
    if old_size is None:
        what = f"created ({new_size} bytes)"
    elif new_size is None:
        what = f"deleted ({old_size} bytes)"
    else:
        what = f"changed ({old_size} -> {new_size} bytes)"
    return f"Binary file {quote_name(name)} {what}\n"


def quote_name(name: str) -> str:
    """A name as Git writes it in a diff: in quotes when it holds quotes or control characters.

    And when it ends with a blank, which GNU patch would lose.
    """
    quoted = name.translate(_QUOTED)
    return name if quoted == name and not name.endswith(" ") else f'"{quoted}"'


def _records(text: str) -> list[str]:
    """The lines with their LF; only the last may lack it."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _header_name(label: str) -> str:
    # Without a tab, programs take a name with blanks to end at the first of them.
    return quote_name(label) + ("\t" if " " in label else "")


def _git_lines(
    old: str | None,
    new: str | None,
    old_name: str,
    new_name: str,
    old_mode: int | None,
    new_mode: int | None,
    *,
    bare: bool,
) -> Iterator[str]:
    """The lines of Git's extended header; ``bare``: there are no hunks below."""
    if old is None:
        if new is not None and (bare or new_mode == _LINK or (new_mode or 0) & 0o100):
            yield f"new file mode {_git_mode(new_mode)}\n"
        return
    if new is None:
        if bare or old_mode == _LINK or (old_mode or 0) & 0o100:
            yield f"deleted file mode {_git_mode(old_mode)}\n"
        return
    if old_mode is not None and new_mode is not None:
        # The bits that set ids are told by nothing of Git's.
        modes = _git_mode(old_mode), _git_mode(new_mode)
        if modes[0] != modes[1]:
            yield f"old mode {modes[0]}\n"
            yield f"new mode {modes[1]}\n"
    if old_name != new_name:
        yield f"rename from {quote_name(old_name)}\n"
        yield f"rename to {quote_name(new_name)}\n"


def _git_mode(mode: int | None) -> str:
    if mode == _LINK:
        return "120000"
    return f"100{0o644 if mode is None else mode & 0o777:03o}"


def split_hunks(old: str, new: str, context: int = 3) -> list[tuple[str, Edit]]:
    """The hunks of the diff from one text to another, each with the edit that it is.

    They are those of `unified`; no two edits touch, so any of them can be made without the others.
    """
    found: list[tuple[str, Edit]] = []
    done, end = 0, -1  # lines that were measured, and where they end
    for before, after, group, (first, start) in _groups(old, new, context):
        above, below = group[0].old_start, group[-1].old_end
        at = (start if end < 0 else end) + sum(map(len, before[done:above]))
        end = at + sum(map(len, before[above:below]))
        done = below
        put = "".join(after[group[0].new_start : group[-1].new_end])
        found.append((_hunk(before, after, group, context, first), Edit(at, end, put)))
    return found


def _hunks(old: str, new: str, context: int) -> Iterator[str]:
    if not old and new:
        yield _all_new(new)
        return
    for before, after, group, (first, _start) in _groups(old, new, context):
        yield _hunk(before, after, group, context, first)


def _all_new(text: str) -> str:
    """The one hunk of a file that was not there, or held nothing."""
    whole = text.endswith("\n")
    lines = text.count("\n") + (not whole)
    body = ("\n" + text[: -1 if whole else None]).replace("\n", "\n+")
    return f"@@ -0,0 +{_range(0, lines)} @@{body}\n{'' if whole else _NO_NEWLINE}"


def _groups(
    old: str, new: str, context: int
) -> Iterator[tuple[list[str], list[str], list[DiffRange], tuple[int, int]]]:
    """The changes that one hunk shows, with the lines compared and where in the text these begin.

    That is a line, 0-based, and a character.
    """
    # Mostly a few lines around show the same as many, and those the same as all.
    middle = middle_of(old, new, 2 * context)
    before, after, regions = _compared(middle.old, middle.new)
    place = middle.first, middle.start
    if regions and not (
        _has_room(middle, regions, len(before), context) and _stays(middle, regions, before, after)
    ):
        middle = middle_of(old, new)
        before, after, regions = _compared(middle.old, middle.new)
        place = middle.first, middle.start
        if not _has_room(middle, regions, len(before), context):
            before, after, regions = _compared(old, new)
            place = 0, 0
    group: list[DiffRange] = []
    for region in regions:
        if group and region.old_start - group[-1].old_end > 2 * context:
            yield before, after, group, place
            group = []
        group.append(region)
    if group:
        yield before, after, group, place


def _compared(old: str, new: str) -> tuple[list[str], list[str], list[DiffRange]]:
    before, after = _records(old), _records(new)
    return before, after, compare_lines(before, after)


def _stays(
    middle: DiffLines, regions: list[DiffRange], before: list[str], after: list[str]
) -> bool:
    """Whether nothing that was only added or only removed could stand beyond what was compared.

    Lines that repeat can be cut in many places, of which `compare_lines` takes the best that it sees.
    """
    first, last = regions[0], regions[-1]
    if not middle.whole_head:
        lines, start, end = _alone(first, before, after)
        if end > start and lines[:start] == lines[end - start : end]:
            return False
    if middle.whole_tail:
        return True
    lines, start, end = _alone(last, before, after)
    return end == start or lines[end:] != lines[start : len(lines) - (end - start)]


def _alone(region: DiffRange, before: list[str], after: list[str]) -> tuple[list[str], int, int]:
    """The lines with what was only removed or only added, and where it stands; an empty place for neither."""
    if region.new_start == region.new_end:
        return before, region.old_start, region.old_end
    if region.old_start == region.old_end:
        return after, region.new_start, region.new_end
    return before, 0, 0


def _has_room(middle: DiffLines, regions: list[DiffRange], lines: int, context: int) -> bool:
    """Whether the context around every change is within what was compared.

    Patch programs take a hunk with less context than usual to stand at an end of the file.
    """
    return (middle.whole_head or regions[0].old_start >= context) and (
        middle.whole_tail or lines - regions[-1].old_end >= context
    )


def _hunk(old: list[str], new: list[str], group: list[DiffRange], context: int, first: int) -> str:
    """One hunk; ``first`` is the 0-based number in the file of the first of the lines given."""
    before = min(context, group[0].old_start)
    after = min(context, len(old) - group[-1].old_end)
    old_from, old_to = group[0].old_start - before, group[-1].old_end + after
    new_from, new_to = group[0].new_start - before, group[-1].new_end + after
    old_range = _range(first + old_from, first + old_to)
    parts = [f"@@ -{old_range} +{_range(first + new_from, first + new_to)} @@\n"]
    at = old_from
    for region in group:
        parts += [f" {line}" for line in old[at : region.old_start]]
        parts += [f"-{line}" for line in old[region.old_start : region.old_end]]
        parts += [f"+{line}" for line in new[region.new_start : region.new_end]]
        at = region.old_end
    parts += [f" {line}" for line in old[at:old_to]]
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in parts)


def _range(start: int, end: int) -> str:
    # An empty range is named by the line before it, and a count of one is left out.
    if end - start == 1:
        return str(end)
    return f"{start + 1 if end > start else start},{end - start}"


Span = tuple[int, int]
"""From this code point up to, not including, that one."""

_LONGEST_LINE = 2_000
_MOST_PAIRINGS = 2_500
_ALIKE = 0.4
_TOKEN = late_regex(r"\w+|\s+|.", re.DOTALL)


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


def shown_by_diff(before: str, after: str, *, context: int = _CONTEXT) -> list[tuple[int, int]]:
    """The parts of the later text that the unified diff of two texts shows.

    Without ``context``, of a removal that is a character on each side of where it was.
    """
    lines = split_lines(after)
    starts = line_starts(lines)
    spans: list[tuple[int, int]] = []
    for region in compare_lines(split_lines(before), lines):
        first = max(0, region.new_start - context)
        last = min(len(lines), region.new_end + context)
        edge = int(first == last)
        spans.append((max(starts[first] - edge, 0), min(starts[last] + edge, len(after))))
    return spans


# -- texts that were made from an earlier one ------------------------------------------------


def takes_back(earlier: str, now: str, text: str) -> bool:
    """Whether a text leaves places of the earlier one as they were and keeps nothing since.

    Args:
        earlier: What was there before.
        now: What was made of it.
        text: A text that may have been made from either.
    """
    if not _stands_again(earlier, now, text):
        return False
    # What all have alike at both ends says nothing, and may be most of a long text.
    return _takes_back(*map(split_lines, middles_of(earlier, now, text)))


def _stands_again(earlier: str, now: str, text: str) -> bool:
    """Whether a part of the replaced text may stand in a text; a quick test, nearly always false."""
    if "\r" in earlier or "\r" in now:
        return True
    middle = middle_of(earlier, now, 0)
    lines = split_lines(middle.old)
    for one in compare_lines(lines, split_lines(middle.new)):
        # Of what was only removed or only added it depends on the lines around where it stands.
        if one.old_start == one.old_end or one.new_start == one.new_end:
            return True
        if all(line in text for line in lines[one.old_start : one.old_end]):
            return True
    return False


def _takes_back(earlier: list[str], now: list[str], text: list[str]) -> bool:
    """Whether a text leaves places of the earlier one as they were and keeps nothing since."""
    there = set(text)
    changes = compare_lines(earlier, now)
    if not any(
        there.issuperset(earlier[one.old_start : one.old_end])
        and (one.old_start < one.old_end or not there.issuperset(now[one.new_start : one.new_end]))
        for one in changes
    ):
        return False  # told quickly for most texts: nothing of before is in them
    mine = compare_lines(earlier, text)
    back = False
    for theirs in changes:
        met = [one for one in mine if _meet(one, theirs)]
        if not met:
            back = True
        elif any(_same(one, theirs, text, now) for one in met):
            return False
    return back


def _meet(one: DiffRange, other: DiffRange) -> bool:
    if one.old_start == one.old_end or other.old_start == other.old_end:
        return one.old_start <= other.old_end and other.old_start <= one.old_end
    return one.old_start < other.old_end and other.old_start < one.old_end


def _same(one: DiffRange, other: DiffRange, text: list[str], now: list[str]) -> bool:
    return (one.old_start, one.old_end) == (other.old_start, other.old_end) and (
        text[one.new_start : one.new_end] == now[other.new_start : other.new_end]
    )
