"""Patterns as people write them, with ``~`` and ``//``, to lists that each count from one folder.

Absolute patterns are compared with true paths, in which no link is left.  So where the folders that
such a pattern names lead elsewhere, it stands for that place as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from filepact.domain.lint import settled, wrong_list, wrong_pattern
from filepact.text.wildcard import literal_length

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.config.lines import Key
    from filepact.config.problems import Problems

__all__ = ["NOWHERE", "Folders", "exactly", "grouped", "named_path"]

_WILD = re.compile(r"([*?\[\\])")


def _same(path: str) -> str:
    return path


@dataclass(frozen=True, slots=True)
class Folders:
    """What absolute patterns start at.

    Attributes:
        home: The home folder, absolute; None where there is none.
        true_path: The path of a folder with every link resolved.
    """

    home: str | None = None
    true_path: Callable[[str], str] = _same


NOWHERE: Final = Folders()
"""No home, and no link looked at."""


def exactly(path: str) -> str:
    """The pattern for one path from the top and nothing else."""
    escaped = _WILD.sub(r"\\\1", path.strip("/"))
    return f"/{escaped}"


def grouped(
    patterns: Sequence[str], key: Key, folders: Folders, problems: Problems
) -> list[tuple[str | None, tuple[str, ...]]]:
    """Patterns by the folder that they count from, ready for rules.

    Args:
        patterns: As they were written; an empty one was found wrong before.
        key: Where the list stands.
        folders: What absolute ones start at.
        problems: Takes what is wrong with them.

    Returns:
        ``/`` with what is absolute, and None with what counts from each root, as far as there is
        any.
    """
    lists: dict[str | None, list[tuple[int, str]]] = {None: [], "/": []}
    good = True
    for number, pattern in enumerate(patterns):
        absolute = _from_the_top(pattern, folders)
        said = "" if pattern == "" else wrong_pattern(absolute or pattern)
        if absolute == "":
            said = "starts at the home folder, and there is none"
        if said or not pattern:
            good = False
            if said:
                problems.add((*key, number), f"{pattern!r} {said}")
            continue
        for base in (None, "/") if _is_floating(pattern) else ("/" if absolute else None,):
            lists[base].append((number, absolute or pattern))
    if good and patterns:
        _check_lists(list(lists.values()), patterns, key, problems)
    return [
        (base, settled(_with_true_paths([each for _number, each in numbered], folders, base)))
        for base, numbered in lists.items()
        if any(not each.startswith("!") for _number, each in numbered)
    ]


def named_path(path: str, key: Key, folders: Folders, problems: Problems) -> str:
    """The path of one file, from a root or with ``/`` in front from the top of the file system."""
    if path.startswith("~/") and folders.home is None:
        problems.add(key, f"{path!r} starts at the home folder, and there is none")
    if path.startswith("~/"):
        name = f"{(folders.home or '').rstrip('/')}/{path[2:]}"
    else:
        name = path[1:] if path.startswith("//") else path.lstrip("/")
    if ".." in name.split("/"):
        problems.add(key, f"{path!r} has a .. in it; name the file itself")
    return name


def _from_the_top(pattern: str, folders: Folders) -> str | None:
    """An absolute pattern as one from the top; None if it is not absolute, empty without home."""
    negation = "!" if pattern.startswith("!") else ""
    body = pattern[len(negation) :]
    if body.startswith("//"):
        return f"{negation}/{body.lstrip('/')}"
    if body == "~" or body.startswith("~/"):
        if folders.home is None:
            return ""
        return f"{negation}{exactly(folders.home).rstrip('/')}/{body[1:].strip('/') or '**'}"
    return None


def _is_floating(pattern: str) -> bool:
    """Whether it takes back names wherever they are, so from any list."""
    return pattern.startswith("!") and "/" not in pattern.rstrip("/") and pattern != "!~"


def _check_lists(
    lists: Sequence[Sequence[tuple[int, str]]],
    patterns: Sequence[str],
    key: Key,
    problems: Problems,
) -> None:
    if all(pattern.startswith("!") for pattern in patterns):
        problems.add(key, "takes back only, and covers nothing")
        return
    idle: dict[int, str] = {}
    useful: set[int] = set()
    for numbered in lists:
        wrong = dict(wrong_list([each for _number, each in numbered]))
        for at, (number, _pattern) in enumerate(numbered):
            if at in wrong:
                idle[number] = max(idle.get(number, ""), wrong[at], key=len)
            else:
                useful.add(number)
    for number, said in idle.items():
        if number not in useful:
            problems.add((*key, number), f"{patterns[number]!r} {said}")


def _with_true_paths(patterns: Sequence[str], folders: Folders, base: str | None) -> list[str]:
    """Absolute patterns, each followed by the one for where its folders lead by links."""
    if base is None:
        return list(patterns)
    found: list[str] = []
    for pattern in patterns:
        found.append(pattern)
        negation, _slash, inside = pattern.partition("/")
        parts = inside.split("/")
        plain = 0
        while plain < len(parts) - 1 and literal_length(parts[plain]) == len(parts[plain]):
            plain += 1
        named = "/" + "/".join(parts[:plain])
        true = folders.true_path(named) if plain else named
        if true != named and negation in ("", "!"):
            rest = "/".join(parts[plain:])
            found.append(f"{negation}{exactly(true).rstrip('/')}/{rest}")
    return found
