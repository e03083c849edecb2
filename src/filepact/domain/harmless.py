"""Judges whether a change of a manifest steers nothing: no code runs, comes in or is chosen by it.

A text is read as strictly as its format can be, so that every program reads it the same way.  What is left when
all that is known to be harmless is taken away has to be the same before and after, in the same order.  Where
that cannot be told, the answer is no.  To make or remove a file is never harmless: programs look for the name.
The places in each file are data, in ``protected_names.txt``.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from filepact.domain.protected import NAMES
from filepact.values import late_regex

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator, Mapping
    from xml.etree.ElementTree import Element

    _Place = tuple[str, ...]
    _Check = Callable[[object], bool]

__all__ = ["harmless_places", "is_harmless"]

_LARGEST: Final = 1 << 18
_DEEPEST: Final = 60
_LONGEST: Final = 1_000
_PROJECTS: Final = (".csproj", ".fsproj", ".vbproj")
_LINES: Final = late_regex(r"(?:.*/)?requirements(?:[\w-]*|/[\w-]+)\.txt")

# -- values ------------------------------------------------------------------------------------------

_EXPANDED: Final = late_regex(
    # Shells, templates, MSBuild, RPM and web pages make something else of these.
    r"`|\$[\w({\[]|%[\w({]|[@#!][({]|\{[{%#]|<[!/?%]|<\w+[\s/>]"
)


def _is_text(value: object) -> bool:
    short = isinstance(value, str) and len(value) <= _LONGEST and value.isprintable()
    return short and _EXPANDED.search(str(value)) is None


def _like(pattern: str) -> _Check:
    compiled = late_regex(pattern)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def _each(check: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _table(**checks: _Check) -> _Check:
    return lambda value: (
        isinstance(value, dict)
        and all(key in checks and checks[key](one) for key, one in value.items())
    )


def _either(*checks: _Check) -> _Check:
    return lambda value: any(check(value) for check in checks)


def _are_urls(value: object) -> bool:
    return isinstance(value, dict) and all(_is_text(k) and _is_url(v) for k, v in value.items())


_is_url: Final = _like(
    # Two slashes in the path of a page's own address would have it load its parts from another host.
    r"https?://[\w-]+(\.[\w-]+)*(:\d+)?(/(?!\.\.?(/|\Z))[\w.~+=%-]+)*/?(\?[\w.~+=%&-]*)?(#[\w.-]*)?"
)
_is_person: Final = _either(_is_text, _table(name=_is_text, email=_is_text, url=_is_url))
_is_fund: Final = _either(_is_url, _table(type=_is_text, url=_is_url))
_KINDS: Final[Mapping[str, _Check]] = {
    # What has no release, or is "Private", is not published; so that is there before and after, or neither.
    **dict.fromkeys(("version", "release"), _like(r"v?[0-9][0-9A-Za-z.+-]{0,60}")),
    "text": _is_text,
    "texts": _each(_is_text),
    "url": _is_url,
    "urls": _are_urls,
    "bugs": _either(_is_url, _table(url=_is_url, email=_is_text)),
    "person": _is_person,
    "persons": _each(_is_person),
    "funds": _either(_is_fund, _each(_is_fund)),
    "license": _like(r"(?!SEE )\(?[A-Za-z][\w .()+-]{0,80}(?:/[A-Za-z][\w.+-]{0,80})?"),
    "readme": _like(r"(?i:readme)[\w-]*(\.(md|rst|txt))?"),  # what it names is published
    "classifiers": _each(_like(r"(?!(?i:private))[A-Z][\w .:/()+#,&'-]{1,150}")),
}
_VERSIONS: Final[Mapping[str, re.Pattern[str]]] = {
    "range": late_regex(r"()[~^=]?\d+(?:\.\d+){0,2}(?:-[0-9A-Za-z.-]+)?"),
    "requirement": late_regex(
        r"([A-Za-z0-9][\w.-]*(?:\[[\w,. -]*\])?)\s*(?:[<>=!~]=|[<>])\s*[\w.*+!]+"
        r"(?:\s*,\s*(?:[<>=!~]=|[<>])\s*[\w.*+!]+)*"
    ),
}
"""Of what is there already; what stands before them stays as it is."""


@lru_cache
def _places(path: str) -> Mapping[_Place, str]:
    """Places of a file with the kind of what stands there; ``*`` is any key, ``[]`` each of a list, ``@`` an attribute."""
    title = "*.csproj" if path.endswith(_PROJECTS) else path.rpartition("/")[2]
    title = "requirements.txt" if _LINES.fullmatch(path) else title
    lines = (line.partition(": ") for line in NAMES["harmless places"].get(title, ()))
    return {tuple(one.split(".")): kind for kind, _, places in lines for one in places.split()}


def harmless_places(path: str) -> tuple[str, ...]:
    """The places of a file that steer nothing, for people; empty where every change may steer."""
    return tuple(".".join(place) for place, kind in _places(path).items() if kind in _KINDS)


# -- the judge ---------------------------------------------------------------------------------------


def is_harmless(path: str, before: bytes, after: bytes, *, bumps: bool = False) -> bool:
    """Whether the change of a file steers nothing.

    Args:
        path: Of the file; the end of it tells what it is.
        before: What it holds.
        after: What it is to hold.
        bumps: Whether another version of something that is named already is harmless as well.
    """
    places = _places(path)
    if not places or max(len(before), len(after)) > _LARGEST:
        return False
    try:
        sides = [before.decode(), after.decode()]
        read: Callable[[str], object] = _json
        if path.endswith(_PROJECTS):
            read = _xml
            if all(one.startswith("\ufeff") for one in sides):
                sides = [one[1:] for one in sides]
        elif path.endswith(".txt"):
            read = str.splitlines
        elif path.endswith(".toml"):
            read = _toml
            if _marks(sides[0]) != _marks(sides[1]):
                return False
        values = [*map(read, sides)]
        if read is _xml:
            # What a project refers to, or to what is made of it, is more than a word about itself.
            used = {*_REFERS.findall(repr(values).lower().replace("company", "authors"))}
            places = {k: v for k, v in places.items() if not any(u in k[-1].lower() for u in used)}
        left = [[*_left(one, places, (), bumps)] for one in values]
    except (ValueError, SyntaxError, RecursionError):
        return False
    return left[0] == left[1]


def _left(
    value: object, places: Mapping[_Place, str], place: _Place, bumps: bool
) -> Iterator[tuple[_Place, str]]:
    """The values that are not known to be harmless, each with the keys that lead to it, in order."""
    if len(place) > _DEEPEST:
        raise RecursionError
    check = _KINDS.get(places.get(place, ""))
    if check is not None and check(value):
        yield from ((place, ""),) if places[place] == "release" else ()
        return
    if isinstance(value, dict | tuple | list):
        yield place, type(value).__name__
        pairs = value.items() if isinstance(value, dict) else value
        for key, one in (("[]", one) for one in value) if isinstance(value, list) else pairs:
            yield from _left(one, places, (*place, key), bumps)
    else:
        yield place, (bumps and _unversioned(value, places, place)) or repr(value)


def _unversioned(value: object, places: Mapping[_Place, str], place: _Place) -> str:
    """The value with its plain version left out, where another version may stand; else empty."""
    for known, kind in places.items() if isinstance(value, str) else ():
        if kind in _VERSIONS and len(known) == len(place):
            found = _VERSIONS[kind].fullmatch(str(value))
            if found and all(a in ("*", b) for a, b in zip(known, place, strict=True)):
                return f"version of {found[1]}"
    return ""


# -- the formats: a list is a list, and what has keys a dictionary, or pairs where some stand twice ----


def _json(text: str) -> object:
    import json  # noqa: PLC0415 - few changes are of manifests

    return json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice, and programs take the first one or the last")
    return found


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def _toml(text: str) -> object:
    import tomllib  # noqa: PLC0415 - as above

    return tomllib.loads(text)


_MARK: Final = late_regex(r"#\s*(?:[a-z@][\w./-]*\s*[:=]|:|x-)|\"\"\"|'''|\\\Z")


def _marks(text: str) -> list[tuple[str, str, str]]:
    """The parts of a TOML text that have to stay, with their places.

    Comments that programs obey, and texts of several lines, in which older readers find tables.
    """
    found: list[tuple[str, str, str]] = []
    for line, after in pairwise([*text.split("\n"), ""]):
        mark = _MARK.search(line)
        if mark and mark[0][0] == "#":
            begin, rest = line[: mark.start()], line[mark.start() :]
            found.append((begin.partition("=")[0], rest, after.partition("=")[0]))
        elif mark:
            found.append((line, "", after))
    return found


_COMMENT: Final = "!"
"""Stands for a tag, which none can be called."""
_BEGIN: Final = late_regex(
    r"(?:<\?xml version=\"1\.0\"(?: encoding=\"(?i:utf-8)\")?(?: standalone=\"yes\")? ?\?>)?"
)
# .NET keeps a break of lines in an attribute, and other readers have a blank there.
_UNCLEAR: Final = late_regex(r"<\?|<!(?!--)|=\s*(?:\"[^\"<]*[\t\r\n]|'[^'<]*[\t\r\n])")
_REFERS: Final = late_regex(r"\$\([^)]*?(version|descr|title|authors|copyright|tags|notes|url)")


def _xml(text: str) -> object:
    from xml.etree import ElementTree as ET  # noqa: PLC0415 - as above

    begin = _BEGIN.match(text)
    if begin is None or _UNCLEAR.search(text, begin.end()):
        raise ValueError("programs may read it differently")
    builder = ET.TreeBuilder(
        comment_factory=lambda said: ET.Element(_COMMENT, {_COMMENT: said or ""}),
        insert_comments=True,
    )
    root = ET.fromstring(text, ET.XMLParser(target=builder))  # noqa: S314 - no entities
    return ((root.tag, _pairs(root, 0)),)


def _pairs(element: Element, depth: int) -> object:
    """An element without attributes that holds a text alone is that; blanks and comments between elements are nothing."""
    if depth > _DEEPEST:
        raise RecursionError
    below = [one for one in element if one.tag != _COMMENT]
    if not element.attrib and not len(element):
        return element.text or ""
    said = "".join((element.text or "", *(one.tail or "" for one in element)))
    pairs: list[tuple[str, object]] = [(f"@{key}", one) for key, one in element.attrib.items()]
    pairs += [(one.tag, _pairs(one, depth + 1)) for one in (below or element)]
    return (*pairs, ("", said if said.strip() or not below else ""))
