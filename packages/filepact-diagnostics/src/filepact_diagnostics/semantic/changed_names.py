"""Identifiers that changes of texts are about, and those that a text declares by using others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from filepact.text.compare import compare_lines
from filepact.text.lines import LineIndex, Position
from filepact.values import late_regex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from filepact_diagnostics.semantic.updates import TextChange

__all__ = [
    "changed_names",
    "changed_places",
    "changed_texts",
    "declared_in",
    "flowing_names",
    "names_of_changes",
    "places_of",
]

_WORD: Final = late_regex(r"\w+")
_LONGEST_LINE: Final = 500
_DECLARED: Final = 2.0
_COME_OR_GONE: Final = 2.0
_KEPT: Final = 0.25
_FADING: Final = 0.5
_DECLARES: Final = (
    r"\b(?:class|const|def|enum|fn|func|function|interface|let|module|namespace|record|static|struct"
    r"|trait|type|val|var)\s+(\w+)"
)
_DECLARING: Final = late_regex(_DECLARES)
_GIVEN: Final = late_regex(r"(\w+)\s*(?:<[^<>]*>\s*)?(?:\(|\??:|=>|=(?!=)|\{)")
_IMPORTING: Final = late_regex(r"^\s*(?:from|import|export|using|use|require|global)\b")
_HANDING_ON: Final = late_regex(rf" as |{_DECLARES}")
_RENAMED: Final = late_regex(r"\bas\s+(\w+)")
_NO_NAMES: Final = frozenset(
    {
        *("as", "catch", "elif", "else", "except", "export", "for", "foreach", "from", "global"),
        *("if", "import", "lock", "match", "require", "return", "switch", "try", "use", "using"),
        *("while", "with", "yield"),
    }
)


def changed_texts(changes: Iterable[TextChange]) -> tuple[tuple[str, str | None, str | None], ...]:
    """Files by absolute path, with their texts before and after; none if a text is not known."""
    found: list[tuple[str, str | None, str | None]] = []
    for one in changes:
        if one.old is not None:
            found += [(one.old.absolute, one.before, None), (one.absolute, None, one.after)]
        elif one.kind == "changed" and None in (one.before, one.after):
            return ()
        else:
            found.append((one.absolute, one.before, one.after))
    return tuple(found)


def names_of_changes(changes: Iterable[TextChange]) -> dict[str, float]:
    """The identifiers that changes are about, with how much each counts."""
    names: dict[str, float] = {}
    for one in changes:
        for name, weight in changed_names(one.before, one.after).items():
            names[name] = max(weight, names.get(name, 0.0))
    return names


def changed_names(before: str | None, after: str | None) -> dict[str, float]:
    """The identifiers on the lines that differ before and after, with None for no file, and on those that enclose them, and their weights."""
    old, new = (before or "").splitlines(), (after or "").splitlines()
    found: dict[str, float] = {}
    for region in compare_lines(old, new):
        sides = ((old, region.old_start, region.old_end), (new, region.new_start, region.new_end))
        words = [
            {name for line in lines[start:end] for name in _WORD.findall(line[:_LONGEST_LINE])}
            for lines, start, end in sides
        ]
        for lines, start, end in sides:
            declared = {name for line in lines[start:end] for name in declared_in(line)}
            for name in words[0] | words[1]:
                # What stands on both sides is the same as before, unless it is what is declared.
                weight = _KEPT if name in words[0] & words[1] else 1.0
                if name in declared:
                    weight = _DECLARED * (_COME_OR_GONE if weight == 1.0 else 1.0)
                found[name] = max(weight, found.get(name, 0.0))
            weight = _FADING
            for at in _enclosing(lines, start) if start < end else ():
                for name in declared_in(lines[at]):
                    found[name] = max(weight, found.get(name, 0.0))
                weight *= _FADING
    return found


def changed_places(text: str, other: str | None) -> dict[int, str]:
    """Where a text declares what differs from another one, and what that stands in: offsets and names.

    Args:
        text: A file's text.
        other: What it held before, or is to hold; None for no file.
    """
    numbers: dict[int, None] = {}
    for region in compare_lines(_lines(text), _lines(other or "")):
        start = min(region.old_start, region.old_end - 1)  # of what is put in, the line above
        numbers |= dict.fromkeys(range(max(start, 0), region.old_end))
    return places_of(text, numbers, 3)


def places_of(
    text: str, numbers: Iterable[int], depth: int, *, flowing: bool = False
) -> dict[int, str]:
    """The offsets of names that lines declare, and that what they stand in does, and the names.

    Args:
        text: A text.
        numbers: Its lines.
        depth: How many of these to take, from outside.
        flowing: Whether the lines are uses, of which an import declares nothing new.
    """
    index, lines, found = LineIndex(text), _lines(text), dict[int, str]()
    for number in numbers:
        if number >= len(lines):
            continue
        line = lines[number]
        if flowing and _IMPORTING.match(line) and not _HANDING_ON.search(line):
            continue
        chain = [number, *_enclosing(lines, number)]
        for at in chain[-depth:]:
            start = index.offset(Position(at, 0), "utf-32")
            names = set(declared_in(lines[at])) | set(_RENAMED.findall(lines[at]))
            found |= {
                start + one.start(): one[0]
                for one in _WORD.finditer(lines[at][:_LONGEST_LINE])
                if one[0] in names
            }
    return found


def _lines(text: str) -> list[str]:
    """The lines of a text as servers count them."""
    index = LineIndex(text)
    return [index.line(number) for number in range(index.lines)]


def flowing_names(text: str, names: Iterable[str]) -> set[str]:
    """The names that a text declares by uses of given names: types may flow there.

    Args:
        text: A file's text.
        names: The names.
    """
    held = [name for name in names if name in text]
    wanted = re.compile(rf"\b(?:{'|'.join(held)})\b")
    lines = text.splitlines() if held else []
    found: set[str] = set()
    seen: set[int] = set()
    for at, line in enumerate(lines):
        if not wanted.search(line, 0, _LONGEST_LINE):
            continue
        if _IMPORTING.match(line):
            if " as " in line:  # under another name
                found |= set(_WORD.findall(line[:_LONGEST_LINE])) - _NO_NAMES
            if not _DECLARING.search(line):
                continue
        found |= set(declared_in(line))
        for one in _enclosing(lines, at):
            if one in seen:
                break  # and with it all that it stands in
            seen.add(one)
            found |= set(declared_in(lines[one]))
    return found


def declared_in(line: str) -> list[str]:
    """The names that a line declares, as far as it looks like that."""
    line = line[:_LONGEST_LINE]
    found = _DECLARING.findall(line)
    given = _GIVEN.search(line)
    found += [given[1]] if given is not None else []
    return [name for name in found if name not in _NO_NAMES]


def _enclosing(lines: list[str], at: int) -> Iterator[int]:
    """The lines that a line stands beneath, by number, the nearest first."""
    if at >= len(lines):
        return
    depth = _depth(lines[at]) + (not lines[at].strip()) * _LONGEST_LINE
    for number in range(at - 1, -1, -1):
        line = lines[number]
        if depth <= 0:
            return
        inner = line.lstrip()
        if not inner or _depth(line) >= depth:
            continue
        if inner[0] in "(){}[]":
            depth = _depth(line) + 1  # What it belongs to begins as far left.
            continue
        depth = _depth(line)
        yield number


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
