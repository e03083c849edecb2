"""Rules about what shows on a file or a change, whatever its name."""

from __future__ import annotations

from typing import Final

from filepact.domain.policy import READS, WRITES, Rule

__all__ = ["SIGN_RULES"]

SIGN_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        name="private keys",
        verdict="deny",
        actions=READS | WRITES,
        why="the file holds a private key, whatever it is called",
        paths=(),
        signs=frozenset({"private key"}),
    ),
    Rule(
        name="version control internals",
        verdict="deny",
        actions=WRITES,
        why="with it the folder is a Git repository, whose settings run code",
        paths=(),
        signs=frozenset({"repository"}),
    ),
    Rule(
        name="hidden characters",
        verdict="ask",
        actions=WRITES,
        why="it puts in characters that a reader does not see or takes for others",
        paths=(),
        signs=frozenset({"hidden characters"}),
    ),
    Rule(
        name="unusual encodings",
        verdict="ask",
        actions=WRITES,
        why="programs may read its bytes otherwise than people see them",
        paths=(),
        signs=frozenset({"encoding"}),
    ),
    Rule(
        name="look-alike names",
        verdict="ask",
        actions=WRITES,
        why="the new name looks like that of a file beside it",
        paths=(),
        signs=frozenset({"look-alike name"}),
    ),
    Rule(
        name="names that trip programs",
        verdict="ask",
        actions=WRITES,
        why="a shell, a command or another system takes the new name for something else",
        paths=(),
        signs=frozenset({"shell name"}),
    ),
    Rule(
        name="executable files",
        verdict="ask",
        actions=WRITES,
        why="the change lets the file run as a program",
        paths=(),
        signs=frozenset({"executable"}),
    ),
)
