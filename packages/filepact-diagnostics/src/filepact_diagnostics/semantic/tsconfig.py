"""Reads a ``tsconfig.json``: which files it takes into its project, by files, include, exclude and extends.

What these files import belongs to the project as well, and is not known here.
"""

from __future__ import annotations

import json
import posixpath
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from filepact.text.glob import GlobError, translate
from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["ProjectFiles", "read_commented", "read_project_files"]

_COMMENT: Final = r"//[^\n]*+|/\*(?>.*?\*/|.*)"
# Atomic groups, since Pythons before 3.11.5 match possessive repetitions of alternatives wrongly.
_TOKENS: Final = late_regex(
    rf'"(?>(?:\\.|[^"\\\n])*)"|{_COMMENT}|,(?=(?>(?:\s|{_COMMENT})*)[}}\]])', re.DOTALL
)
_TYPED: Final = (".ts", ".tsx", ".mts", ".cts")
_SCRIPTS: Final = (".js", ".jsx", ".mjs", ".cjs")
_NEVER: Final = ("node_modules", "bower_components", "jspm_packages")
_DEEPEST: Final = 20
_MOST_PATTERNS: Final = 200
_LITERAL: Final = late_regex(r"[\[\\]")


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """The files of one project.

    Attributes:
        path: Its settings file, absolute.
        named: Files that it names one by one, absolute.
        included: Patterns of those that come.
        excluded: Patterns of those of them that do not.
        endings: With what files of the project end.
        others: The settings files of projects that it refers to.
        inputs: All files that were read for it, or would have been if they were there.
    """

    path: str
    named: frozenset[str]
    included: tuple[re.Pattern[str], ...]
    excluded: tuple[re.Pattern[str], ...]
    endings: tuple[str, ...]
    others: tuple[str, ...]
    inputs: tuple[str, ...]

    def includes(self, path: str) -> bool:
        """Whether the project takes a file, by itself; it need not be there."""
        if path in self.named:
            return True
        if not path.endswith(self.endings) or not any(one.fullmatch(path) for one in self.included):
            return False
        return not any(one.fullmatch(path) for one in self.excluded)


def read_project_files(path: str, read: Callable[[str], str | None]) -> ProjectFiles | None:
    """The files of a project; None if its settings file is not there or cannot be understood.

    Args:
        path: The settings file, absolute.
        read: The text of a file by its absolute path; None if it is not there.
    """
    inputs: list[str] = []
    settings = _extended(path, read, inputs, 0)
    if settings is None:
        return None
    folder = posixpath.dirname(path)
    options = settings.get("compilerOptions")
    options = options if isinstance(options, dict) else {}
    scripts = options.get("allowJs", posixpath.basename(path).startswith("jsconfig"))
    files = settings.get("files")
    include = settings.get("include")
    if include is None and files is None:
        include = [posixpath.join(folder, "**/*")]
    exclude = settings.get("exclude")
    if exclude is None:
        made = (options.get("outDir"), options.get("declarationDir"))
        places = [posixpath.join(folder, one) for one in made if isinstance(one, str)]
        exclude = [*(posixpath.join(folder, "**", one) for one in _NEVER), *places]
    return ProjectFiles(
        path,
        frozenset(map(posixpath.normpath, _texts(files))),
        _patterns(_texts(include)),
        _patterns(_texts(exclude)),
        (*_TYPED, *(_SCRIPTS if scripts else ())),
        tuple(_references(settings, folder)),
        tuple(inputs),
    )


def read_commented(text: str) -> Any:
    """The value of a JSON text with comments and commas before closing brackets.

    Raises:
        ValueError: It is none.
    """

    def plain(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') else " "

    try:
        return json.loads(_TOKENS.sub(plain, text.removeprefix("\ufeff")))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _extended(
    path: str, read: Callable[[str], str | None], inputs: list[str], depth: int
) -> dict[str, Any] | None:
    """The settings with what they extend; places in them are absolute."""
    inputs.append(path)
    text = read(path) if depth < _DEEPEST else None
    if text is None:
        return None
    try:
        own = read_commented(text)
    except ValueError:
        return None
    if not isinstance(own, dict):
        return None
    folder = posixpath.dirname(path)
    merged: dict[str, Any] = {}
    for name in _texts(own.get("extends"), single=True):
        # What a package offers is not looked for: it seldom says which files belong to a project.
        if not name.startswith((".", "/")):
            continue
        place = posixpath.normpath(posixpath.join(folder, name))
        place = place if place.endswith(".json") else f"{place}.json"
        merged = _merged(merged, _extended(place, read, inputs, depth + 1) or {})
    for key in ("files", "include", "exclude"):
        if isinstance(own.get(key), list):
            own[key] = [posixpath.join(folder, one) for one in _texts(own[key])]
    options = own.get("compilerOptions")
    for key in ("outDir", "declarationDir"):
        if isinstance(options, dict) and isinstance(options.get(key), str):
            options[key] = posixpath.join(folder, options[key])
    return _merged(merged, own)


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    options = [one.get("compilerOptions") for one in (under, over)]
    together = {
        key: value for one in options if isinstance(one, dict) for key, value in one.items()
    }
    return {**under, **over, "compilerOptions": together}


def _references(settings: Mapping[str, Any], folder: str) -> Iterable[str]:
    found = settings.get("references")
    for one in found if isinstance(found, list) else ():
        place = one.get("path") if isinstance(one, dict) else None
        if isinstance(place, str):
            whole = posixpath.normpath(posixpath.join(folder, place))
            yield whole if whole.endswith(".json") else posixpath.join(whole, "tsconfig.json")


def _texts(value: Any, *, single: bool = False) -> list[str]:
    if single and isinstance(value, str):
        return [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _patterns(globs: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    """Patterns of whole paths; one that ends in a folder's name stands for all beneath it."""
    found: list[re.Pattern[str]] = []
    for glob in list(globs)[:_MOST_PATTERNS]:
        # Only `*`, `**` and `?` mean more than themselves.
        plain = _LITERAL.sub(r"\\\g<0>", posixpath.normpath(glob))
        last = posixpath.basename(plain)
        beneath = not set("*?") & set(last) and "." not in last[1:]
        for one in (plain, f"{plain}/**") if beneath else (plain,):
            with suppress(GlobError):
                found.append(re.compile(translate(one), re.DOTALL))
    return tuple(found)
