"""Solution files, both forms: which projects belong together."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final

from filepact.csharp.markup import MarkupError, parse
from filepact.csharp.projects import Message

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_BYTES", "is_solution", "projects_of"]

MAX_BYTES: Final = 10_000_000
"""Largest solution file that is read."""

_ENTRY = re.compile(
    r'\s*Project\("\{[0-9A-Fa-f-]{36}\}"\)\s*=\s*"(?P<name>[^"]*)"\s*,\s*"(?P<path>[^"]*)"'
)
_PROJECT: Final = ".csproj"


def is_solution(path: str) -> bool:
    """Whether a path is a solution file's, by its name."""
    return path.lower().endswith((".sln", ".slnx"))


def projects_of(path: str, text: str) -> tuple[list[tuple[str, int]], list[Message]]:
    """The C# projects that a solution file names, and what is wrong with it.

    Args:
        path: The file, absolute.
        text: What it holds.

    Returns:
        The absolute paths of project files with the lines that name them, in order, each once.
    """
    messages: list[Message] = []
    try:
        entries = list(_elements(text) if path.lower().endswith(".slnx") else _lines(text))
    except MarkupError as error:
        return [], [Message(path, error.line, str(error))]
    found: dict[str, int] = {}
    folder = posixpath.dirname(path)
    for name, line in entries:
        if name.lower().endswith(_PROJECT):
            place = posixpath.normpath(posixpath.join(folder, name.replace("\\", "/")))
            found.setdefault(place, line)
    if not found:
        messages.append(Message(path, 0, "the solution names no C# project"))
    return list(found.items()), messages


def _lines(text: str) -> Iterator[tuple[str, int]]:
    for number, line in enumerate(text.split("\n"), 1):
        if found := _ENTRY.match(line):
            yield found["path"], number


def _elements(text: str) -> Iterator[tuple[str, int]]:
    for element in parse(text).all():
        if element.name == "Project" and element.get("Path"):
            yield element.get("Path"), element.line
