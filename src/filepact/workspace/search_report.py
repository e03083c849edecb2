"""Renders the results of searches as the text that the tools print.

The last line stands in brackets: totals, what was left out and why, and how to get the rest.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from filepact.text.confusables import shown_name
from filepact.text.page import PAGE, LineWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from filepact.domain.deadline import Stopped
    from filepact.workspace.find import NameSearchResult, SkippedFiles, SkippedFolder
    from filepact.workspace.grep import MatchLine, TextSearchResult

__all__ = ["render_found", "render_grepped"]

_NAMED = 3


def _same(path: str) -> str:
    return path


def render_found(
    found: NameSearchResult, *, show: Callable[[str], str] = _same, page: int = PAGE
) -> str:
    """One path a line, then the totals.

    Args:
        found: The answer.
        show: How a root-relative path is called; control characters are escaped after it.
        page: What it may take in all.
    """
    sheet = LineWriter(page)
    for path in found.paths:
        if not sheet.add(shown_name(show(path))):
            break
    return sheet.close(lambda sent: _found_in_all(found, sent, show))


def _found_in_all(found: NameSearchResult, sent: int, show: Callable[[str], str]) -> str:
    total = _count(found.total, "file", floor=found.total_is_floor)
    if found.pattern.endswith("/"):
        total = _count(found.total, "folder", floor=found.total_is_floor)
    if not found.total:
        words = [f"nothing matches {found.pattern}"]
        if found.total_is_floor:
            words.append("not everything was looked at")
    elif sent < found.total:
        more = "maxResults" if sent == len(found.paths) else "a narrower pattern"
        words = [f"first {sent:,} of {total}", f"{more} gets others"]
    else:
        words = [total]
    words += _left_out(found.unreadable, "not readable", show)
    words += _unsearched(found.unsearched, "" if found.total else "directory", show)
    words += _stopped(found.stopped)
    return f"[{' | '.join(words)}]"


def render_grepped(
    result: TextSearchResult,
    *,
    show: Callable[[str], str] = _same,
    page: int = PAGE,
    shown: Callable[[str, MatchLine], None] = lambda _path, _line: None,
) -> str:
    """Results by mode, then the totals.

    Mode ``content``: ``file:line: text`` for matches, ``file-line- text`` for context, ``--``
    between groups.  Mode ``files``: one path a line.  Mode ``count``: ``path: matches``.

    Args:
        result: The answer.
        show: How a root-relative path is called; control characters are escaped after it.
        page: What it may take in all; for what does not fit there is the next page.
        shown: Told each line of mode ``content`` that is there, with its root-relative path.
    """
    sheet = LineWriter(page)
    for row, hits in _rows(result, show):
        if not sheet.add(row, hits):
            break
    text = sheet.close(lambda sent: f"[{' | '.join(_totals(result, sent, show))}]")
    lines = ((file.path, line) for file in result.files for run in file.groups for line in run)
    for path, line in islice(lines, sheet.rows):
        shown(path, line)
    return text


def _rows(result: TextSearchResult, show: Callable[[str], str]) -> Iterator[tuple[str, int]]:
    """Each row of the answer, and how many results begin on it."""
    context = any(not line.matched for f in result.files for g in f.groups for line in g)
    first = True
    for file in result.files:
        name = shown_name(show(file.path))
        if result.mode != "content":
            count = f"{'at least ' if file.floor else ''}{file.count:,}"
            yield (name if result.mode == "files" else f"{name}: {count}"), 1
            continue
        for group in file.groups:
            between = "--\n" if context and not first else ""
            first = False
            for line in group:
                mark = ":" if line.matched else "-"
                yield f"{between}{name}{mark}{line.number}{mark} {line.text}", line.hits
                between = ""


def _totals(result: TextSearchResult, sent: int, show: Callable[[str], str]) -> list[str]:
    floor = result.total_is_floor
    unit = "match" if result.mode == "content" else "file"
    total = _count(result.total, unit, floor=floor)
    if not result.total:
        words = [f"no matches in {_count(result.searched, 'file')}"]
        words += ["not everything was looked at"] if floor and not result.stopped else []
        words += [_BAR] if "\\|" in result.pattern else []
    elif result.offset >= result.total:
        words = [f"offset {result.offset:,} is past the end: {total}"]
    elif result.offset or sent < result.total or result.more:
        first, last = result.offset + 1, result.offset + sent
        plural = "matches" if unit == "match" else "files"
        least = "at least " if floor else ""
        words = [f"{plural} {first:,}-{last:,} of {least}{result.total:,}"]
    else:
        words = [total]
    whole = sent == result.total and not (result.offset or result.more)
    if result.mode == "content" and result.files and whole:
        words[0] += f" in {_count(len(result.files), 'file')}"
    if result.mode == "count" and result.total:
        words.append(_count(result.matches, "match", floor=floor))
    if sent and (result.offset + sent < result.total or result.more):
        words.append(f"next: offset={result.offset + sent}")
    words += _stopped(result.stopped)
    if result.binary:
        words.append(f"{_count(result.binary, 'binary file')} skipped")
    words += _left_out(result.large, "over 64 MB, not searched", show)
    words += _left_out(result.slow, "the pattern took too long in", show)
    words += _left_out(result.unreadable, "not readable", show)
    words += _unsearched(result.unsearched, "" if result.total else "path", show)
    return words


_BAR = r"note: \| means the character |; alternatives are written a|b"


def _stopped(why: Stopped) -> list[str]:
    if not why:
        return []
    return [f"{'out of time' if why == 'time' else why}, so results are partial"]


def _count(count: int, unit: str, *, floor: bool = False) -> str:
    plural = f"{unit}es" if unit.endswith("ch") else f"{unit}s"
    return f"{'at least ' if floor else ''}{count:,} {unit if count == 1 else plural}"


def _unsearched(left_out: SkippedFiles, parameter: str, show: Callable[[str], str]) -> list[str]:
    """Ignored folders and files, and how many are protected, which are not named.

    Args:
        left_out: What was not searched.
        parameter: Where a folder can be named to be searched; empty for who need not be told.
        show: How a root-relative path is called.
    """
    folders = [_skipped(one, show) for one in left_out.folders[:_NAMED]]
    words: list[str] = []
    if len(left_out.folders) > _NAMED:
        folders.append(_count(len(left_out.folders) - _NAMED, "more folder"))
    if left_out.files:
        folders.append(_count(left_out.files, "ignored file"))
    if folders:
        advice = f"; name one as {parameter} to search it" if parameter else ""
        words = [f"not searched: {', '.join(folders)}{advice}"]
    if left_out.mounted:
        words.append(f"{_count(left_out.mounted, 'mounted folder')} not entered")
    if left_out.protected:
        words.append(f"{_count(left_out.protected, 'protected name')} left out")
    return words


def _skipped(folder: SkippedFolder, show: Callable[[str], str]) -> str:
    about: list[str] = []
    if folder.files:
        about.append(_count(folder.files, "file", floor=folder.floor))
    if folder.why:
        about.append(folder.why)
    name = f"{shown_name(show(folder.path))}/"
    return f"{name} ({', '.join(about)})" if about else name


def _left_out(paths: Sequence[str], why: str, show: Callable[[str], str]) -> list[str]:
    if not paths:
        return []
    names = ", ".join(shown_name(show(path)) for path in paths[:_NAMED])
    more = f" (+{len(paths) - _NAMED:,} more)" if len(paths) > _NAMED else ""
    return [f"{why}: {names}{more}"]
