"""Where a key of a TOML file stands: the reader of the standard library does not keep places."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

from filepact.errors import InvalidParamsError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["refusal"]

_HEADER = re.compile(r"\s*\[(?!\[)(.+?)\]\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\])*"|'[^']*'|\s*\.\s*)+?)\s*=""")
_PART = re.compile(r"""([A-Za-z0-9_-]+)|("(?:\\.|[^"\\])*")|'([^']*)'""")


def refusal(text: str, name: str, path: Sequence[str], why: str) -> InvalidParamsError:
    """An error about one key of a settings file, with the file, the line and the key.

    Args:
        text: What the file holds.
        name: How the file is called in messages.
        path: The key, from the outermost table inwards.
        why: What is wrong with it.
    """
    line = _line_of(text, path)
    key = ".".join(part if re.fullmatch(r"[\w-]+", part) else f'"{part}"' for part in path)
    return InvalidParamsError(
        f"{name}, line {line}, {key}: {why}",
        hint="Correct the file, or name another with --config.",
        file=name,
        line=line,
        key=key,
    )


def _line_of(text: str, path: Sequence[str]) -> int:
    """The 1-based line on which a key stands, or its table; 1 when neither is found.

    TOML's own reader does not keep places, and the file has been read by it already, so looking
    for headers and keys is enough.
    """
    wanted = list(path)
    table: list[str] = []
    inside = above = 0
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header:
            table = _parts(header[1])
            here = table
        else:
            key = _KEY.match(line)
            if key is None:
                continue
            here = table + _parts(key[1])
        if here == wanted:
            return number
        if here[: len(wanted)] == wanted:
            inside = inside or number
        elif wanted[: len(here)] == here:
            above = number
    return inside or above or 1


def _parts(dotted: str) -> list[str]:
    """The names in a dotted key, without their quotes."""
    parts = []
    for bare, double, single in _PART.findall(dotted):
        parts.append(tomllib.loads(f"k = {double}")["k"] if double else bare or single)
    return parts
