"""The person's settings: from the text of ``filepact.toml`` to a value.

Strict: what is not known is refused, so that a mistyped key is not a setting that silently does
nothing.  Every refusal names the file, the line and the key.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

from filepact.config.places import refusal
from filepact.errors import InvalidParamsError, SearchFailedError
from filepact.text.charsets import find_charset
from filepact.text.glob import Glob

__all__ = ["Settings", "parse_settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person has set.

    Attributes:
        encodings: Globs with the encoding of the files that match, by Python's name, in the order
            of the file; of several that match the last one counts.
    """

    encodings: tuple[tuple[Glob, str], ...] = ()


def parse_settings(text: str, *, name: str) -> Settings:
    """Read the text of a settings file.

    Args:
        text: What the file holds.
        name: How the file is called in messages.

    Raises:
        InvalidParamsError: It is not TOML, or a key or a value in it is not one that is known.
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidParamsError(
            f"{name}: is not TOML: {error}", hint="Correct the file, or name another with --config."
        ) from None
    encodings: tuple[tuple[Glob, str], ...] = ()
    for key, value in found.items():
        match key:
            case "encodings":
                encodings = _encodings(value, text, name)
            case _:
                raise refusal(text, name, (key,), "there is no such setting; known is [encodings]")
    return Settings(encodings)


def _encodings(table: Any, text: str, name: str) -> tuple[tuple[Glob, str], ...]:
    if not isinstance(table, dict):
        raise refusal(text, name, ("encodings",), "has to be a table of globs")
    chosen: list[tuple[Glob, str]] = []
    for pattern, value in table.items():
        path = ("encodings", pattern)
        if isinstance(value, dict):
            raise refusal(text, name, path, "put the glob in quotes, its dots are not for TOML")
        if not isinstance(value, str):
            raise refusal(text, name, path, "has to be the name of an encoding, in quotes")
        codec = find_charset(value)
        if codec is None:
            raise refusal(
                text, name, path, f"{value!r} is not the name of an encoding that can be kept"
            )
        try:
            glob = Glob.parse(pattern, braces=True)
        except SearchFailedError as error:
            raise refusal(text, name, path, error.message) from None
        chosen.append((glob, codec))
    return tuple(chosen)
