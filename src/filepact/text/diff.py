"""Renders unified diffs that patch programs take byte for byte.

Lines end at LF only, as patch programs see them: a CR before it belongs to the line, and a text
with CR line ends alone is one line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.text.compare import DiffRange, compare_lines
from filepact.text.lines import middle_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact.text.lines import DiffLines

__all__ = [
    "DiffRange",
    "compare_lines",
    "cut_diff",
    "quote_name",
    "unified",
    "unified_binary",
]

_LINK = 0o120000
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


def cut_diff(diff: str, limit: int) -> str:
    """At most ``limit`` characters of a diff, whole lines, then a line on what is left out.

    A limit of 0 leaves the diff as it is.
    """
    if limit <= 0 or len(diff) <= limit:
        return diff
    # The line on the rest is longest when everything is left out, so that length is set aside.
    room = limit - len(_left_out(diff))
    kept = diff[: diff.rfind("\n", 0, max(room, 0)) + 1]
    return (kept + _left_out(diff[len(kept) :]))[:limit]


def quote_name(name: str) -> str:
    """A name as Git writes it in a diff: in quotes when it holds quotes or control characters.

    And when it ends with a blank, which GNU patch would lose.
    """
    quoted = name.translate(_QUOTED)
    return name if quoted == name and not name.endswith(" ") else f'"{quoted}"'


def _left_out(rest: str) -> str:
    lines = rest.count("\n") + (not rest.endswith("\n"))
    return f"... {lines:,} more lines ({len(rest):,} characters) left out\n"


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
    """What only Git's extended header can say; ``bare``: there are no hunks to say it."""
    if old is None:
        if new is not None and (bare or new_mode == _LINK or (new_mode or 0) & 0o100):
            yield f"new file mode {_git_mode(new_mode)}\n"
        return
    if new is None:
        if bare or old_mode == _LINK or (old_mode or 0) & 0o100:
            yield f"deleted file mode {_git_mode(old_mode)}\n"
        return
    if old_mode is not None and new_mode is not None and old_mode != new_mode:
        yield f"old mode {_git_mode(old_mode)}\n"
        yield f"new mode {_git_mode(new_mode)}\n"
    if old_name != new_name:
        yield f"rename from {quote_name(old_name)}\n"
        yield f"rename to {quote_name(new_name)}\n"


def _git_mode(mode: int | None) -> str:
    if mode == _LINK:
        return "120000"
    return f"100{0o644 if mode is None else mode & 0o777:03o}"


def _hunks(old: str, new: str, context: int) -> Iterator[str]:
    middle = middle_of(old, new)
    before, after = _records(middle.old), _records(middle.new)
    regions = compare_lines(before, after)
    first = middle.first
    if regions and not _has_room(middle, regions, len(before), context):
        before, after, first = _records(old), _records(new), 0
        regions = compare_lines(before, after)
    group: list[DiffRange] = []
    for region in regions:
        if group and region.old_start - group[-1].old_end > 2 * context:
            yield _hunk(before, after, group, context, first)
            group = []
        group.append(region)
    if group:
        yield _hunk(before, after, group, context, first)


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
        parts.extend(_signed(" ", old[at : region.old_start]))
        parts.extend(_signed("-", old[region.old_start : region.old_end]))
        parts.extend(_signed("+", new[region.new_start : region.new_end]))
        at = region.old_end
    parts.extend(_signed(" ", old[at:old_to]))
    return "".join(parts)


def _signed(sign: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield sign + line
        if not line.endswith("\n"):
            yield "\n" + _NO_NEWLINE


def _range(start: int, end: int) -> str:
    # An empty range is named by the line before it, and a count of one is left out.
    if end - start == 1:
        return str(end)
    return f"{start + 1 if end > start else start},{end - start}"
