"""Errors about one key of a settings file, with where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.config.lines import Lines
from filepact.config.problems import Problem, written
from filepact.errors import InvalidParamsError

if TYPE_CHECKING:
    from filepact.config.lines import Key

__all__ = ["refusal"]


def refusal(text: str, name: str, path: Key, why: str) -> InvalidParamsError:
    """An error about one key of a settings file, with the file, the line and the key.

    Args:
        text: What the file holds.
        name: How the file is called in messages.
        path: The key, from the outermost table inwards.
        why: What is wrong with it.
    """
    problem = Problem(name, Lines(text).of(path), written(path), why)
    return InvalidParamsError(
        str(problem),
        hint="Correct the file; nothing starts before.",
        file=name,
        line=problem.line,
        key=problem.key,
    )
