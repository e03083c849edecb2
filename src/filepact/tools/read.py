"""The four tools that look: read_file, search_files, grep, directory_tree."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from filepact.errors import InvalidParamsError
from filepact.text.match import Query
from filepact.text.page import Page
from filepact.tools.registry import Alias, tool
from filepact.workspace.reader import Reader
from filepact.workspace.search import render_found, render_grepped

if TYPE_CHECKING:
    from filepact.workspace.documents import Window

__all__ = ["directory_tree", "grep", "read_file", "search_files"]

_LINES = 2_000
_LINE_WIDTH = 2_000
_TREE_ENTRIES = 1_000


@tool(title="Read file", level="safe", tier="essential")
def read_file(
    files: Reader,
    path: Annotated[
        str, Field(min_length=1, description="File, relative to the root or absolute.")
    ],
    encoding: Annotated[
        Literal["utf-8", "base64"],
        Field(description="base64 returns the raw bytes of any file; utf-8 returns text."),
    ] = "utf-8",
    lines: Annotated[int | None, Field(ge=0, description="Most lines to return.")] = None,
    offset: Annotated[int, Field(ge=0, description="First line, 0-indexed.")] = 0,
    numbers: Annotated[bool, Field(description="Put line numbers before the lines.")] = True,
) -> str:
    """Read a file, whole or a range of lines.

    Lines come as `NUMBER\u2502TEXT`; the part up to `\u2502` is not in the file. The last line says what was
    sent, the revision, and the call for the rest.
    """
    if encoding == "base64":
        if lines is not None or offset:
            raise InvalidParamsError(
                "lines and offset count lines of text and do not go with encoding base64",
                hint="Leave them out.",
            )
        return base64.b64encode(files.document(path).data).decode("ascii")
    window = files.window(path, first=offset, count=_LINES if lines is None else lines)
    return files.marked(_render_window(window, numbers=numbers, page=files.page))


def _render_window(window: Window, *, numbers: bool, page: int) -> str:
    """The lines that fit on a page, and the footer."""
    width = len(str(window.first + len(window.lines)))
    sheet = Page(page)
    cut: list[bool] = []
    for number, line in enumerate(window.lines, start=window.first + 1):
        text = line
        if len(line) > _LINE_WIDTH:
            text = f"{line[:_LINE_WIDTH]} [+{len(line) - _LINE_WIDTH:,} characters]"
        if not sheet.add(f"{number:>{width}}\u2502{text}" if numbers else text):
            break
        cut.append(text is not line)
    return sheet.close(lambda sent: _footer(window, sent=sent, cut=sum(cut[:sent])))


def _footer(window: Window, *, sent: int, cut: int) -> str:
    """One line: what was sent, of how much, which revision, and how to go on."""
    last = window.first + sent
    if window.total == 0:
        parts = ["empty file"]
    elif sent:
        of = f" of {window.total:,}" if window.total is not None else ""
        parts = [f"lines {window.first + 1}-{last}{of}"]
    elif window.total is not None and window.first >= window.total:
        parts = [f"no lines: offset {window.first} is past the end, the file has {window.total:,}"]
    else:
        parts = ["no lines asked for"]
    if window.total is None:
        parts.append(f"file of {window.size:,} bytes")
    parts.append(f"revision {window.revision}" if window.revision else "too large to be edited")
    parts.append(_nature(window))
    if cut:
        parts.append(f"{cut} long {'line' if cut == 1 else 'lines'} cut")
    if window.more or sent < len(window.lines):
        parts.append(f"next: offset={last}")
    return f"[{' | '.join(part for part in parts if part)}]"


def _nature(window: Window) -> str:
    """What a writer of this file should know: encoding, line ends, indentation, last line."""
    words = [window.encoding]
    if window.ends in ("crlf", "cr", "mixed"):
        words.append({"crlf": "CRLF", "cr": "CR", "mixed": "mixed line ends"}[window.ends])
    if any(line.startswith("\t") for line in window.lines):
        words.append("indented with tabs")
    if not window.ends_with_newline and not window.more:
        words.append("no newline at the end")
    return ", ".join(words)


@tool(title="Find files", level="safe", tier="essential")
def search_files(
    files: Reader,
    pattern: Annotated[
        str, Field(min_length=1, description="Glob such as `**/*.ts` or `src/**/test_*.py`.")
    ],
    directory: Annotated[str, Field(description="Folder to search in.")] = ".",
    max_results: Annotated[
        int, Field(ge=1, le=10_000, description="Most files to return."), Alias("maxResults")
    ] = 100,
) -> str:
    """Find files by a glob on their path. Ignored ones (.gitignore) are left out and told."""
    found = files.find(directory, pattern, limit=max_results)
    return files.marked(render_found(found, show=files.naming(directory), page=files.page))


@tool(title="Search contents", level="safe", tier="essential")
def grep(
    files: Reader,
    pattern: Annotated[str, Field(min_length=1, description="Regular expression.")],
    path: Annotated[str, Field(description="File or folder to search.")] = ".",
    glob: Annotated[str, Field(description="Only files whose path matches.")] = "**/*",
    max_results: Annotated[
        int, Field(ge=1, le=10_000, description="Most matches to return."), Alias("maxResults")
    ] = 50,
    context: Annotated[
        int, Field(ge=0, le=50, description="Lines shown before and after each match.")
    ] = 0,
    case_sensitive: Annotated[bool, Field(description="Tell letter case apart.")] = False,
    output_mode: Annotated[
        Literal["content", "files", "count"],
        Field(description="Matching lines, only file names, or a count for each file."),
    ] = "content",
    multiline: Annotated[bool, Field(description="Let a match span lines.")] = False,
    offset: Annotated[int, Field(ge=0, description="Matches to skip, for the next page.")] = 0,
) -> str:
    """Search file contents with a regular expression. Prints `file:line: content`."""
    query = Query.compile(pattern, case_sensitive=case_sensitive, multiline=multiline)
    result = files.grep(
        path,
        query,
        glob=glob,
        limit=max_results,
        offset=offset,
        context=context,
        mode=output_mode,
    )
    return files.marked(render_grepped(result, show=files.naming(path), page=files.page))


@tool(title="Show folder tree", level="safe", tier="essential")
def directory_tree(
    files: Reader,
    path: Annotated[str, Field(description="Folder to draw.")] = ".",
    depth: Annotated[int, Field(ge=1, le=10, description="Levels to descend.")] = 3,
    include_files: Annotated[bool, Field(description="Files too, not only folders.")] = True,
    pattern: Annotated[str | None, Field(description="Only files whose name matches.")] = None,
) -> str:
    """Show a folder and what it holds as a tree. Ignored folders and files are left out."""
    drawn = files.tree(
        path, depth=depth, include_files=include_files, pattern=pattern, budget=_TREE_ENTRIES
    )
    return files.marked(drawn.text)
