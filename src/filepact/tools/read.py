"""The four tools that read, and their answers: read_file, search_files, grep, directory_tree.

The last line of a search stands in brackets: totals, what was left out and why, and how to get the
rest.
"""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal

from filepact.errors import BinaryFileError, FilepactError, InvalidParamsError
from filepact.text.confusables import shown_name
from filepact.text.glob import literal_forms
from filepact.text.page import (
    GOES_ON,
    LABEL,
    PAGE,
    LineWriter,
    beginning,
    cut_mark,
    cut_to,
    fits_in,
    numbered,
    numbered_lines,
    size_of,
)
from filepact.text.query import Query
from filepact.tools.parameters import about
from filepact.tools.registry import ContentAnswer, ParameterName, tool
from filepact.values import dataclass
from filepact.workspace.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from filepact.domain.deadline import Stopped
    from filepact.text.picture import Image
    from filepact.workspace.excerpt import LineExcerpt
    from filepact.workspace.find import NameSearchResult, SkippedFiles, SkippedFolder
    from filepact.workspace.grep import MatchLine, TextSearchResult

__all__ = ["directory_tree", "grep", "read_file", "render_found", "render_grepped", "search_files"]

_LINES = 2_000
_FOOTER = 260  # more than a last line takes
_MARK = 40
_LEAST = 600
_MOST_OPENED = 64_000_000  # bytes of files that are held until the answer is made
_TREE_ENTRIES = 1_000


@tool(title="Read file", level="safe", tier="essential")
def read_file(
    files: Reader,
    path: Annotated[
        str | None, about(description="File, relative to the root or absolute.")
    ] = None,
    paths: Annotated[list[str] | None, about(description="Several files, instead of path.")] = None,
    encoding: Annotated[
        Literal["utf-8", "base64"],
        about(description="base64: raw bytes, counted by lines and offset."),
    ] = "utf-8",
    lines: Annotated[int | None, about(ge=1, description="Most lines to return.")] = None,
    offset: Annotated[int, about(description="First line, 0-indexed; below 0 from the end.")] = 0,
    column: Annotated[int, about(ge=0, description="Characters of it to skip.")] = 0,
    numbers: Annotated[bool, about(description="Number the lines.")] = True,
) -> str | ContentAnswer:
    """Read a file, as much as fits one answer or a range of lines, or look at an image.

    Lines come as `NUMBER\u2502TEXT`; only TEXT is in the file. The last line says what was sent, the
    revision, and the call for the rest.
    """
    part = _Part(_LINES if lines is None else lines, offset, column, numbers=numbers)
    if paths is not None:
        if path is not None or encoding == "base64" or column or not paths:
            raise InvalidParamsError(
                "paths does not go with path, column or encoding base64",
                hint="Send paths for the text of several files, or path for one file.",
            )
        return files.marked(_read_several(files, list(dict.fromkeys(paths)), part))
    if not path:
        raise InvalidParamsError(
            "no file is named", hint="Send path for one file, or paths for several."
        )
    if encoding == "base64":
        if column:
            raise InvalidParamsError(
                "column counts characters of a line and does not go with encoding base64",
                hint="offset is the first byte then.",
            )
        return _read_bytes(files, path, offset, lines)
    try:
        return files.marked(_read_text(files, path, part, files.page))
    except BinaryFileError:
        shown = files.picture(path)
        if shown is None:
            raise
        picture, data = shown
        return ContentAnswer(
            data, mime=picture.mime, note=_describe(path, picture, len(data)) + files.marked("")
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """Which part of a text is wanted, and how it is shown."""

    lines: int
    offset: int
    column: int
    numbers: bool


def _describe(path: str, picture: Image, size: int) -> str:
    pixels = f", {picture.width} x {picture.height} pixels" if picture.width else ""
    return f"[{shown_name(path)} | {picture.name}{pixels} | {size:,} bytes]"


def _read_bytes(files: Reader, path: str, offset: int, count: int | None) -> ContentAnswer:
    """A file's bytes, or as many as fit on a page."""
    # Parts of a multiple of three bytes can be put together without being decoded first.
    room = max((files.page - _FOOTER) // 4 * 3, 3)
    whole = files.page // 4 * 3
    piece = files.piece(path, first=offset, most=whole if count is None else min(count, whole))
    if len(piece.data) == piece.size:
        return ContentAnswer(piece.data, note=files.marked("").lstrip())
    data = piece.data[:room]
    end = piece.first + len(data)
    said = f"bytes {piece.first}-{end - 1}" if data else f"no bytes at offset {piece.first}"
    words = [f"{said} of {piece.size:,}"]
    if piece.revision:
        words.append(f"revision {piece.revision}")
    if end < piece.size:
        words.append(f"next: offset={end}")
    return ContentAnswer(data, note=files.marked(f"[{' | '.join(words)}]"))


def _read_several(files: Reader, paths: list[str], part: _Part) -> str:
    """Each file under its name, in as much of the page as the others leave it."""
    asked = len(paths)
    while len(paths) > 1 and _size_of_list(paths) > files.page // 4:
        paths = paths[: len(paths) * 3 // 4]
    names = [f"==> {shown_name(path)} <==\n" for path in paths]
    found: list[LineExcerpt | str] = []
    sheets: list[_Sheet] = []
    texts: list[str] = []
    taken = size = 0
    for path, name in zip(paths, names, strict=True):
        if taken > files.page or size > _MOST_OPENED:
            break  # The rest has no room, however it is shared.
        found.append(one := _window_or_why(files, path, part))
        sheets.append(_rendered(one, part, files.page))
        texts.append(name + sheets[-1].text)
        taken += min(size_of(texts[-1]), _LEAST)
        size += 0 if isinstance(one, str) or not one.revision else one.size
    room = files.page - _FOOTER * (1 if len(paths) == asked else 2) - _size_of_list(paths)
    shares = _shares([size_of(text) + 2 for text in texts], room)
    shown: list[str] = []
    missing: list[str] = []
    for at, share in enumerate(shares):
        left = share - 2 - size_of(names[at])
        if size_of(texts[at]) + 2 <= share:
            shown.append(names[at] + sheets[at].show(files))
        elif (share < _LEAST or left < _FOOTER) and len(paths) > 1:
            missing.append(paths[at])
        else:
            shown.append(names[at] + _rendered(found[at], part, left).show(files))
    missing += paths[len(found) :]
    if missing:
        named = json.dumps(missing, ensure_ascii=False)
        shown.append(f"[no room for {len(missing)} more | next: paths={named}]")
    if later := asked - len(paths):
        shown.append(f"[the last {later:,} were not looked at: too many for one answer]")
    return "\n\n".join(shown)


def _size_of_list(paths: list[str]) -> int:
    return size_of(json.dumps(paths, ensure_ascii=False))


def _window_or_why(files: Reader, path: str, part: _Part) -> LineExcerpt | str:
    """The excerpt of a file, or why there is none."""
    try:
        try:
            return files.window(path, first=part.offset, count=part.lines)
        except BinaryFileError:
            if files.picture(path, shown=False) is None:
                raise
            return "[an image: read it alone, with path, to see it]"
    except FilepactError as error:
        return error.report()


@dataclass(frozen=True, slots=True)
class _Sheet:
    """An answer about one file.

    Attributes:
        window: What it shows; None for a refusal.
        sent: How many lines of it.
        reached: How far into the last of them, if it goes on.
    """

    text: str
    window: LineExcerpt | None = None
    sent: int = 0
    reached: int = 0

    def show(self, files: Reader) -> str:
        """The text, which the session is shown now."""
        if self.window is not None:
            files.record_shown(self.window, self.sent, self.reached)
        return self.text


def _rendered(found: LineExcerpt | str, part: _Part, page: int) -> _Sheet:
    if isinstance(found, str):
        return _Sheet(cut_to(found, page))
    return _render_window(found, numbers=part.numbers, page=page)


def _shares(sizes: list[int], room: int) -> list[int]:
    """How much each may take: all it wants, or as much as every other that wants more.

    When that is too little for any of those, the first of them have it.
    """
    shares = [0] * len(sizes)
    by_size = sorted(range(len(sizes)), key=lambda at: sizes[at])
    for done, at in enumerate(by_size):
        share = room // (len(sizes) - done)
        if sizes[at] > share:
            large = sorted(by_size[done:])
            most = max(room // _LEAST, 1)
            for one in large[:most]:
                shares[one] = room // min(len(large), most)
            return shares
        shares[at] = sizes[at]
        room -= sizes[at]
    return shares


def _read_text(files: Reader, path: str, part: _Part, page: int) -> str:
    window = files.window(path, first=part.offset, count=part.lines, column=part.column)
    return _render_window(window, numbers=part.numbers, page=page).show(files)


def _render_window(window: LineExcerpt, *, numbers: bool, page: int) -> _Sheet:
    """The lines that fit on a page, and the footer; a line is cut only where no page holds it."""
    # Lines that are counted from the end have no other number.
    begin = window.first + (window.first >= 0)
    last = len(window.lines) - 1
    width = max(len(str(begin)), len(str(begin + last)))
    labels = width + LABEL if numbers else 0
    body = "\n".join(window.lines)
    nature = _nature(window, body)
    if not window.goes_on and fits_in(page, size_of(body) + _FOOTER, last + 1, labels):
        rows = numbered_lines(window.lines, begin, width) if numbers else window.lines
        return _Sheet("\n".join((*rows, _footer(window, nature, last + 1, 0))), window, last + 1)
    sheet = LineWriter(page)
    cut_at, reached, done = -1, 0, 0
    whole_lines = window.lines[: len(window.lines) - window.goes_on]
    if whole_lines and labels + size_of(whole_lines[0]) + 1 <= page - _FOOTER:
        nul = "\0" in body
        done = sheet.fill(whole_lines, first=begin, width=width if numbers else 0, holds_nul=nul)
    for at, line in enumerate(window.lines[done:], done):
        label = numbered(begin + at, width) if numbers else ""
        size, whole = labels + size_of(line) + 1, not (window.goes_on and at == last)
        if whole and size <= sheet.left - (0 if at else _FOOTER):
            if not sheet.add(label + line, 1, size):
                break
            continue
        if at and ((whole and size <= page - _FOOTER) or sheet.left < page // 4):
            break  # the next page has room for all of it, or for more
        room = sheet.left - _FOOTER - _MARK - labels
        shown = beginning(line, room if at else max(room, _MARK))
        mark = cut_mark(len(line) - len(shown)) if whole else GOES_ON
        if sheet.add(label + shown + mark):
            cut_at, reached = at, len(shown) + (0 if at else window.column)
        break
    text = sheet.close(
        lambda sent: _footer(window, nature, sent, reached if sent == cut_at + 1 else 0)
    )
    return _Sheet(text, window, sheet.worth, reached if sheet.worth == cut_at + 1 else 0)


def _footer(window: LineExcerpt, nature: str, sent: int, reached: int) -> str:
    """One line: what was sent, of how much, which revision, and how to go on.

    Args:
        window: What was read.
        nature: What a writer of the file should know.
        sent: How many of its lines.
        reached: How far into the last of them, if it goes on.
    """
    first, last = window.first, window.first + sent
    if window.total == 0:
        parts = ["empty file"]
    elif sent and first < 0:
        parts = [f"lines {first} to {last - 1}, counted from the end"]
    elif sent:
        of = f" of {window.total:,}" if window.total is not None else ""
        parts = [f"lines {first + 1}-{last}{of}"]
    elif window.total is not None and first >= window.total:
        parts = [f"no lines: offset {first} is past the end, the file has {window.total:,}"]
    else:
        parts = ["no lines asked for"]
    if sent and window.column:
        parts[0] += f", the first from column {window.column}"
    if window.total is None:
        parts.append(f"file of {window.size:,} bytes")
    parts.append(f"revision {window.revision}" if window.revision else "too large to be edited")
    parts.append(nature)
    if reached:
        parts += ["the last line goes on", f"next: offset={last - 1}, column={reached}"]
    elif window.more or sent < len(window.lines):
        parts.append(f"next: offset={last}")
    return f"[{' | '.join(parts)}]"


def _nature(window: LineExcerpt, body: str) -> str:
    """Facts for a writer of this file: encoding, line ends, indentation, last line."""
    words = [window.encoding]
    if window.ends in ("crlf", "cr", "mixed"):
        words.append({"crlf": "CRLF", "cr": "CR", "mixed": "mixed line ends"}[window.ends])
    if "\t" in body and (body[0] == "\t" or "\n\t" in body):
        words.append("indented with tabs")
    if not window.ends_with_newline and not window.more:
        words.append("no newline at the end")
    return ", ".join(words)


@tool(title="Find files", level="safe", tier="essential")
def search_files(
    files: Reader,
    pattern: Annotated[
        str,
        about(min_length=1, description="Glob such as `src/**/*.ts`; without `/` at any depth."),
    ],
    directory: Annotated[str, about(description="Folder to search in.")] = ".",
    max_results: Annotated[
        int, about(ge=1, le=10_000, description="Most files."), ParameterName("maxResults")
    ] = 100,
) -> str:
    """Find files by a glob on their path. Ignored ones are left out and told."""
    found = files.find(directory, pattern, limit=max_results)
    return files.marked(render_found(found, show=files.naming(directory), page=files.page))


@tool(title="Search contents", level="safe", tier="essential")
def grep(  # noqa: PLR0913 - the parameters of the tool
    files: Reader,
    pattern: Annotated[str, about(min_length=1, description="Regular expression.")],
    path: Annotated[str, about(description="File or folder to search.")] = ".",
    glob: Annotated[str, about(description="Only files whose path matches.")] = "**/*",
    max_results: Annotated[
        int, about(ge=1, le=10_000, description="Most matches."), ParameterName("maxResults")
    ] = 50,
    context: Annotated[int, about(ge=0, le=50, description="Lines around each match.")] = 0,
    case_sensitive: Annotated[bool, about(description="Tell letter case apart.")] = False,
    output_mode: Annotated[
        Literal["content", "files", "count"],
        about(description="Matching lines, file names, or a count for each file."),
    ] = "content",
    multiline: Annotated[bool, about(description="Let a match span lines.")] = False,
    offset: Annotated[int, about(ge=0, description="Matches to skip.")] = 0,
) -> str:
    """Search file contents with a regular expression. Prints `file:line: content`.

    Letter case does not count by default. Ignored files (.gitignore) are left out and told.
    """
    query = Query.compile(pattern, case_sensitive=case_sensitive, multiline=multiline)
    result = files.grep(
        path,
        query,
        glob=_as_named(files, path, glob),
        limit=max_results,
        offset=offset,
        context=context,
        mode=output_mode,
    )
    lines: dict[str, list[MatchLine]] = {}
    text = render_grepped(
        result,
        show=files.naming(path),
        page=files.page,
        shown=lambda name, line: lines.setdefault(name, []).append(line),
    )
    files.record_shown_lines(path, lines)
    if not result.searched and literal_forms(glob)[0]:
        text = f"{text.removesuffix(']')} | {_BRACKETS}]"
    return files.marked(text)


@tool(title="Show folder tree", level="safe", tier="essential")
def directory_tree(
    files: Reader,
    path: Annotated[str, about(description="Folder to draw.")] = ".",
    depth: Annotated[int, about(ge=1, le=10, description="Levels to descend.")] = 3,
    include_files: Annotated[bool, about(description="Files too, not only folders.")] = True,
    pattern: Annotated[str | None, about(description="Only files whose name matches.")] = None,
) -> str:
    """Show a folder and what it holds as a tree. Ignored ones are left out and told."""
    named = pattern and _as_named(files, path, pattern)
    drawn = files.tree(
        path, depth=depth, include_files=include_files, pattern=named, budget=_TREE_ENTRIES
    )
    odd = pattern and not drawn.files and literal_forms(pattern)[0]
    return files.marked(drawn.text + (f"\n[{_BRACKETS}]" if odd else ""))


def _as_named(files: Reader, folder: str, pattern: str) -> str:
    """The form of a glob that something is named by: brackets may stand for themselves, as web frameworks have them."""
    if (literal := literal_forms(pattern)[0]) or not pattern.isascii():
        with suppress(FilepactError):
            found = files.find(folder, literal or pattern, limit=1)
            form = found.pattern.rstrip("/") + "/" * pattern.endswith("/")
            return form if found.total else pattern
    return pattern


_NAMED = 3


def render_found(
    found: NameSearchResult, *, show: Callable[[str], str] = str, page: int = PAGE
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
    unit = "folder" if found.pattern.endswith("/") else "file"
    total = _count(found.total, unit, floor=found.total_is_floor)
    if not found.total:
        words = [f"nothing matches {found.pattern}"]
        words += [_BRACKETS] if literal_forms(found.pattern)[0] else []
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
    show: Callable[[str], str] = str,
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


_BRACKETS = r"note: [abc] stands for one of these characters; \[ and \] are brackets"
_BAR = r"note: \| means the character |; alternatives are written a|b"


def _stopped(why: Stopped) -> list[str]:
    return [f"{'out of time' if why == 'time' else why}, so results are partial"] if why else []


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
    if left_out.more_rules:
        words.append("ignore files above the shared folder are not read")
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
