"""Globs as matchers that take linear time.

The dialect is that of ``.gitignore``: ``*`` and ``?`` stay within a name, ``**`` between slashes
is any number of folders, ``[a-z]`` and ``[!a]`` are classes, a backslash escapes.  A pattern
without a slash matches a name at any depth; a slash at the beginning or inside ties it to the
folder that is searched; a slash at the end means folders only.  One character is one code point.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from filepact.errors import SearchFailedError
from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "MAX_ALTERNATIVES",
    "MAX_LENGTH",
    "Glob",
    "GlobError",
    "compile_filter",
    "compile_selection",
    "expand_braces",
    "literal_forms",
    "literal_length",
    "translate",
]

MAX_LENGTH: Final = 1_000
"""Longest pattern, in characters."""

MAX_STARS: Final = 20
"""Most ``**`` in one pattern."""

MAX_ALTERNATIVES: Final = 256
"""Most patterns that the braces of one pattern may stand for."""

_MAX_EXPANDED = 20_000
_MAX_NESTED = 10

_BRACKET = late_regex(r"(?<!\\)[\[\]]")
_WILD = late_regex(r"[*?{]")
_PLAIN = late_regex(r"[^*?\[\\/]+")
_ODD_PART = late_regex(r"[\[\\]")
_WILD_PART = late_regex(r"[*?/]+")
_ENDING = late_regex(r"(?:\*\*/)?\*(\.[^*?\[\\/]+)")


@dataclass(frozen=True, slots=True)
class Glob:
    """A compiled pattern.

    Attributes:
        pattern: As it was sent.
        directories_only: Every alternative ended with a slash.
    """

    pattern: str
    directories_only: bool
    _everything: bool
    _names: frozenset[str]
    _endings: tuple[str, ...]
    _on_name: re.Pattern[str] | None
    _on_path: re.Pattern[str] | None
    _on_directory: Glob | None
    _parts: tuple[
        str, ...
    ] = ()  # one of them is in each path that matches on the path; none for not known

    @classmethod
    def parse(cls, pattern: str, *, braces: bool = False) -> Glob:
        """Compile a pattern.

        Args:
            pattern: The glob.
            braces: Whether ``{a,b}`` stands for alternatives; else braces are plain characters.

        Raises:
            SearchFailedError: It is empty, too long, or not a pattern.
        """
        if not pattern.strip("/"):
            raise _refusal(pattern, "it names nothing")
        if len(pattern) > MAX_LENGTH:
            raise _refusal(pattern[:50] + "...", f"it is longer than {MAX_LENGTH:,} characters")
        if pattern.count("**") > MAX_STARS and len(re.findall(r"\*\*+", pattern)) > MAX_STARS:
            raise _refusal(pattern, f"it has more than {MAX_STARS} `**`")
        if ".." in pattern and ".." in re.split(r"[/{},]", pattern):
            raise _refusal(pattern, "it leads out of the folder that is searched")
        try:
            alternatives = expand_braces(pattern) if braces else [pattern]
            plain = [text for text in alternatives if not text.endswith("/")]
            folders = [text for text in alternatives if text.endswith("/")]
            if not folders:
                return cls._build(pattern, plain)
            below = cls._build(pattern, [text.rstrip("/") for text in folders])
            return cls._build(pattern, plain, below, directories_only=not plain)
        except GlobError as error:
            raise _refusal(pattern, f"{error} (at character {error.at + 1})") from error

    @classmethod
    def parse_unwanted(cls, pattern: str) -> Glob:
        """Compile what stands after a ``!``, with braces: what is not to be found.

        Raises:
            SearchFailedError: It is not a pattern, or matches everything, so nothing is left.
        """
        glob = cls.parse(pattern, braces=True)
        if glob.finds_everything:
            raise _refusal(f"!{pattern}", "it leaves nothing to be found")
        return glob

    @classmethod
    def _build(
        cls,
        pattern: str,
        alternatives: list[str],
        on_directory: Glob | None = None,
        *,
        directories_only: bool = False,
    ) -> Glob:
        everything = False
        names: set[str] = set()
        endings: list[str] = []
        on_name: list[str] = []
        on_path: list[str] = []
        parts: list[str] = []
        for alternative in alternatives:
            text = f"/{alternative[2:]}" if alternative.startswith("./") else alternative
            bare = text.removeprefix("**/")
            if bare in ("*", "**") and (bare != text or "/" not in text):
                everything = True
            elif _PLAIN.fullmatch(bare):
                names.add(bare)
            elif ending := _ENDING.fullmatch(text):
                endings.append(ending[1])
            elif "/" in bare:
                on_path.append(translate(text.removeprefix("/")))
                parts.append(_longest_part(bare))
            else:
                on_name.append(translate(bare))
        return cls(
            pattern,
            directories_only,
            everything,
            frozenset(names),
            tuple(endings),
            _alternation(on_name),
            _alternation(on_path),
            on_directory,
            tuple(parts) if all(parts) else (),
        )

    def matches(self, path: str, *, is_dir: bool = False) -> bool:
        """Whether a path matches.

        Args:
            path: Parts joined by ``/``, relative to the folder that is searched.
            is_dir: Whether it is a folder.
        """
        if self._everything:
            return True
        name = path[path.rfind("/") + 1 :]
        if name in self._names or (self._endings and name.endswith(self._endings)):
            return True
        if self._on_name is not None and self._on_name.fullmatch(name):
            return True
        if self._on_path is not None and self._on_path.fullmatch(path):
            return True
        return is_dir and self.matches_folder(path)

    def among(self, folder: str, names: list[str]) -> list[str]:
        """The matching files among those in one folder.

        Args:
            folder: The folder's path with a slash behind it; empty for the one that is searched.
            names: The files' names.
        """
        if self._everything:
            return names
        if self._on_name is None and self._on_path is None:
            literal, endings = self._names, self._endings
            return [name for name in names if name in literal or name.endswith(endings)]
        if self._on_name is not None and self._on_path is None:
            literal, endings, fits = self._names, self._endings, self._on_name.fullmatch
            return [
                name
                for name in names
                if fits(name) or name in literal or (endings and name.endswith(endings))
            ]
        return [name for name in names if self.matches(folder + name)]

    def select(self, paths: list[str], names: list[str], skip: int) -> list[str]:
        """The matching files among many.

        Args:
            paths: They, some of them in folders.
            names: Their names, in the same order.
            skip: How many characters of each path belong to the folder that is searched.
        """
        if self._everything:
            return paths
        endings = self._endings
        if not (self._names or self._on_name or self._on_path):
            return [path for path in paths if path.endswith(endings)] if endings else []
        wanted = self._names
        if self._on_name is not None or endings:
            fits = None if self._on_name is None else self._on_name.fullmatch
            wanted = frozenset(
                name
                for name in frozenset(names)
                if name in wanted or name.endswith(endings) or (fits and fits(name))
            )
        both = zip(paths, names, strict=True)
        if self._on_path is None:
            return [path for path, name in both if name in wanted]
        fits, parts = self._on_path.fullmatch, self._parts
        if len(parts) == 1:
            (part,) = parts
            return [
                path for path, name in both if name in wanted or (part in path and fits(path, skip))
            ]
        return [path for path, name in both if name in wanted or fits(path, skip)]

    @property
    def finds_everything(self) -> bool:
        """Whether an alternative matches whatever there is."""
        return self._everything

    @property
    def finds_folders(self) -> bool:
        """Whether an alternative ends with a slash, so that it matches folders only."""
        return self._on_directory is not None

    def matches_folder(self, path: str) -> bool:
        """Whether a folder matches an alternative that asks for folders."""
        return self._on_directory is not None and self._on_directory.matches(path)


def compile_filter(pattern: str) -> Callable[[str], bool]:
    """A question about files for a glob with braces; ``!`` before the glob turns it round.

    Raises:
        SearchFailedError: See :meth:`Glob.parse` and :meth:`Glob.parse_unwanted`.
    """
    if pattern.startswith("!"):
        unwanted = Glob.parse_unwanted(pattern[1:])
        return lambda path: not unwanted.matches(path)
    return Glob.parse(pattern, braces=True).matches


def compile_selection(pattern: str) -> Callable[[str, list[str]], list[str]]:
    """A matcher for the files of one folder at once; see :meth:`Glob.among`."""
    if not pattern.startswith("!"):
        return Glob.parse(pattern, braces=True).among
    unwanted = Glob.parse_unwanted(pattern[1:])

    def others(folder: str, names: list[str]) -> list[str]:
        found = frozenset(unwanted.among(folder, names))
        return [name for name in names if name not in found]

    return others


def select_paths(pattern: str, paths: list[str], names: list[str], skip: int) -> list[str]:
    """The matching files among many; see :meth:`Glob.select`."""
    if not pattern.startswith("!"):
        return Glob.parse(pattern, braces=True).select(paths, names, skip)
    unwanted = frozenset(Glob.parse_unwanted(pattern[1:]).select(paths, names, skip))
    return [path for path in paths if path not in unwanted]


def literal_forms(pattern: str) -> tuple[str, str]:
    """Other forms of a pattern that may be the name of something: as it stands, and as a folder's.

    Returns:
        One in which brackets are plain characters, empty where there are none; and where no character
        stands for others, the same for a folder.
    """
    if pattern.startswith("!") or not pattern.strip("/"):
        return "", ""
    plain = _BRACKET.sub(r"\\\g<0>", pattern)
    named = not (_WILD.search(pattern) or pattern.endswith("/"))
    return plain if plain != pattern else "", f"{plain}/" if named else ""


def _longest_part(pattern: str) -> str:
    """The longest text that stands in every path that matches; nothing where that is not plain."""
    return "" if _ODD_PART.search(pattern) else max(_WILD_PART.split(pattern), key=len)


def _alternation(sources: list[str]) -> re.Pattern[str] | None:
    return (
        re.compile("|".join(f"(?:{source})" for source in sources), re.DOTALL) if sources else None
    )


def _refusal(pattern: str, why: str) -> SearchFailedError:
    return SearchFailedError(
        f"glob {pattern!r} cannot be used: {why}",
        hint="Globs look like `**/*.ts`, `src/**/test_*.py` or `*.{js,ts}`.",
        pattern=pattern,
    )


# -- braces -----------------------------------------------------------------------------------


def expand_braces(pattern: str) -> list[str]:
    """All patterns that the braces expand to, in order.

    Raises:
        GlobError: Braces do not pair, or stand for too many patterns.
    """
    expanded, at = _sequence(pattern, 0, depth=0)
    if at < len(pattern):
        raise GlobError("a } without its {", at)
    if sum(map(len, expanded)) > _MAX_EXPANDED:
        raise GlobError("its braces stand for too much text", 0)
    return expanded


def _sequence(pattern: str, at: int, *, depth: int) -> tuple[list[str], int]:
    """Expand up to the end, or within braces up to ``,`` or ``}``."""
    results = [""]
    while at < len(pattern):
        char = pattern[at]
        if char == "}" or (char == "," and depth):
            break
        if char == "{":
            options, at = _alternatives(pattern, at, depth=depth + 1)
            if len(results) * len(options) > MAX_ALTERNATIVES:
                raise GlobError(
                    f"its braces stand for more than {MAX_ALTERNATIVES} patterns", at - 1
                )
            results = [result + option for result in results for option in options]
            continue
        after = at + 1
        if char == "\\":
            after += 1
        elif char == "[":
            after = _class_end(pattern, at)
        results = [result + pattern[at:after] for result in results]
        at = after
    return results, at


def _alternatives(pattern: str, opened: int, *, depth: int) -> tuple[list[str], int]:
    if depth > _MAX_NESTED:
        raise GlobError(f"braces are nested more than {_MAX_NESTED} deep", opened)
    options: list[str] = []
    at = opened
    while True:
        found, at = _sequence(pattern, at + 1, depth=depth)
        options += found
        if len(options) > MAX_ALTERNATIVES:
            raise GlobError(f"its braces stand for more than {MAX_ALTERNATIVES} patterns", opened)
        if at >= len(pattern):
            raise GlobError("a { without its }", opened)
        if pattern[at] == "}":
            return options, at + 1


def _class_end(pattern: str, at: int) -> int:
    """The place behind a class, so that a brace within it is a plain character."""
    close = pattern.find("]", at + (3 if pattern.startswith(("!", "^"), at + 1) else 2))
    return close + 1 if close > 0 else at + 1


# -- one wildcard pattern as a regular expression that cannot backtrack without bound ------------
#
# The pieces between two ``*`` have a fixed length, and so have the folders between two ``**``, so
# the leftmost place of each piece is always as good as any later one.  Each is therefore written
# as an atomic group: once found it is never tried elsewhere, and a match takes at worst a time
# proportional to the length of the path times the length of the pattern, folder by folder.


_SPECIAL = late_regex(r"[*?\[\\]")
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


class GlobError(ValueError):
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
        GlobError: A class is not closed, or a backslash stands at the end.
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
                raise GlobError("a backslash at the end escapes nothing", at - 1)
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
            raise GlobError("the class [ is not closed", start)
        char = pattern[at]
        if char == "]" and at > opened:
            break
        if pattern.startswith("[:", at) and (close := pattern.find(":]", at + 2)) > 0:
            name = pattern[at + 2 : close]
            if name not in _NAMED_CLASSES:
                raise GlobError(f"no such class [:{name}:]", at)
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
        raise GlobError("the class [ is not closed", start)
    return pattern[at], at + 1
