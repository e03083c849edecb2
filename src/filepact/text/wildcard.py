"""One wildcard pattern as a regular expression that cannot backtrack without bound.

The pieces between two ``*`` have a fixed length, and so have the folders between two ``**``, so
the leftmost place of each piece is always as good as any later one.  Each is therefore written
as an atomic group: once found it is never tried elsewhere, and a match takes at worst a time
proportional to the length of the path times the length of the pattern, folder by folder.
"""

from __future__ import annotations

import re

__all__ = ["WildcardError", "literal_length", "translate"]

_SPECIAL = re.compile(r"[*?\[\\]")
_NAMED_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_ANY_FOLDERS = r"(?:[^/]*+/)*?"
_NEVER = "(?!)"

_STAR = "*"
_STARS = "**"
_SLASH = "/"
_Token = tuple[str, str]
"""A kind (``*``, ``**``, ``/`` or ``1`` for one character) and the expression for it."""


class WildcardError(ValueError):
    """The pattern cannot be understood; ``at`` is the 0-based place in it."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


def literal_length(pattern: str) -> int:
    """How many characters stand before the first wildcard or backslash."""
    found = _SPECIAL.search(pattern)
    return found.start() if found else len(pattern)


def translate(pattern: str) -> str:
    """Write a pattern as the source of a regular expression for ``fullmatch``.

    ``*`` and ``?`` never match ``/``; ``**`` between slashes (or at an end) matches any number of
    folders, anywhere else it is a ``*``.  The expression is meant for ``re.DOTALL``.

    Raises:
        WildcardError: A class is not closed, or a backslash stands at the end.
    """
    segments = _segments(_tokens(pattern))
    # Two ** in a row match what one matches.
    segments = [
        segment
        for number, segment in enumerate(segments)
        if not (segment == [(_STARS, "")] and number and segments[number - 1] == segment)
    ]
    pieces: list[list[str]] = [[]]
    for segment in segments:
        if segment == [(_STARS, "")]:
            pieces.append([])
        else:
            pieces[-1].append(_segment(segment))
    if len(pieces) == 1:
        return "/".join(pieces[0])
    first, *middle, last = pieces
    source = "".join(f"{segment}/" for segment in first)
    for piece in middle:
        inner = "".join(f"{segment}/" for segment in piece)
        source += f"(?>{_ANY_FOLDERS}{inner})"
    # Whatever is left must end the path: all of it, or the last folders of it.
    return source + (f"{_ANY_FOLDERS}{'/'.join(last)}" if last else (".+" if source else ".*"))


def _segments(tokens: list[_Token]) -> list[list[_Token]]:
    segments: list[list[_Token]] = [[]]
    for token in tokens:
        if token[0] == _SLASH:
            segments.append([])
        else:
            segments[-1].append(token)
    return segments


def _segment(tokens: list[_Token]) -> str:
    """The expression for one name; it must be followed by ``/`` or the end."""
    runs: list[str] = [""]
    for kind, source in tokens:
        if kind == _STAR:
            if runs[-1] or len(runs) == 1:
                runs.append("")
        else:
            runs[-1] += source
    if len(runs) == 1:
        return runs[0]
    first, *middle, last = runs
    return first + "".join(f"(?>[^/]*?{run})" for run in middle) + f"[^/]*{last}"


def _tokens(pattern: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, end = 0, len(pattern)
    while at < end:
        char = pattern[at]
        if char == "*":
            run = at
            while at < end and pattern[at] == "*":
                at += 1
            bounded = at - run > 1 and (run == 0 or pattern[run - 1] == "/")
            if bounded and pattern.startswith("\\/", at):
                # Git lets ** before an escaped slash stand for one folder or more.
                tokens += [(_STAR, ""), (_SLASH, ""), (_STARS, "")]
            elif bounded and (at == end or pattern[at] == "/"):
                tokens.append((_STARS, ""))
            else:
                tokens.append((_STAR, ""))
            continue
        if char == "[":
            source, at = _character_class(pattern, at)
            tokens.append(("1", source))
            continue
        if char == "\\":
            at += 1
            if at == end:
                raise WildcardError("a backslash at the end escapes nothing", at - 1)
            char = pattern[at]
            tokens.append((_SLASH, "") if char == "/" else ("1", re.escape(char)))
        elif char == "/":
            tokens.append((_SLASH, ""))
        else:
            tokens.append(("1", "[^/]" if char == "?" else re.escape(char)))
        at += 1
    return tokens


def _character_class(pattern: str, start: int) -> tuple[str, int]:
    """The expression for a class that opens at ``start``, and the place behind it."""
    at = start + 1
    negated = pattern.startswith(("!", "^"), at)
    at += negated
    members: list[str] = []
    previous: str | None = None
    opened = at
    while True:
        if at >= len(pattern):
            raise WildcardError("the class [ is not closed", start)
        char = pattern[at]
        if char == "]" and at > opened:
            break
        if pattern.startswith("[:", at) and (close := pattern.find(":]", at + 2)) > 0:
            name = pattern[at + 2 : close]
            if name not in _NAMED_CLASSES:
                raise WildcardError(f"no such class [:{name}:]", at)
            members.append(_NAMED_CLASSES[name])
            previous, at = None, close + 2
            continue
        if char == "-" and previous is not None and not pattern.startswith("]", at + 1):
            last, at = _member(pattern, at + 1, start)
            if previous <= last:
                members.append(f"{re.escape(previous)}-{re.escape(last)}")
            previous = None
            continue
        previous, at = _member(pattern, at, start)
        members.append(re.escape(previous))
    if not members:
        return _NEVER, at + 1
    body = "".join(members)
    return (f"[^/{body}]" if negated else f"(?!/)[{body}]"), at + 1


def _member(pattern: str, at: int, start: int) -> tuple[str, int]:
    if pattern.startswith("\\", at):
        at += 1
    if at >= len(pattern):
        raise WildcardError("the class [ is not closed", start)
    return pattern[at], at + 1
