"""The built-in rules: names that are protected wherever they stand.

No project can take these rules away; a person or an administrator can, rule by rule and for paths
that they name.  What a rule protects depends on the name alone, so a file that does not exist yet
is protected as well.  The names themselves are data, in ``protected_names.txt`` beside this module.
"""

from __future__ import annotations

from posixpath import dirname, join
from typing import TYPE_CHECKING, Final, cast

from filepact.domain.policy import READS, WRITES, Rule

if TYPE_CHECKING:
    from importlib.machinery import SourceFileLoader

__all__ = ["BUILT_IN_RULES", "NAMES"]


def _names() -> dict[str, dict[str, tuple[str, ...]]]:
    """The lists of each rule by their titles, as they stand in the file."""
    loader = cast("SourceFileLoader", __spec__.loader)
    data = loader.get_data(join(dirname(__file__), "protected_names.txt"))
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for part in f"\n{data.decode()}".split("\n[")[1:]:
        rule, _, rest = part.partition("]\n")
        lists = (each.partition("\n") for each in f"\n{rest}".split("\n== "))
        found[rule] = {
            title: names
            for title, _, lines in lists
            if (names := tuple(one for one in lines.split("\n") if one and one[:2] != "# "))
        }
    return found


NAMES: Final = _names()
"""By rule, and by the title of each of its lists; a rule of one list has none."""

_SECRETS_WHY: Final = "passwords or tokens of the project are kept under this name"


def _paths(rule: str) -> tuple[str, ...]:
    return tuple(name for names in NAMES[rule].values() for name in names)


BUILT_IN_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        name="key stores",
        verdict="deny",
        actions=READS | WRITES,
        why="keys, passwords or tokens are kept under this name",
        paths=_paths("key stores"),
        copies=True,
    ),
    Rule(
        name="project secrets",
        verdict="deny",
        # Whoever deletes or moves it could bring it back under another name.
        actions=READS | {"delete"},
        why=_SECRETS_WHY,
        paths=_paths("project secrets"),
        copies=True,
    ),
    Rule(
        name="project secrets",
        verdict="ask",
        actions=WRITES - {"delete"},
        why=_SECRETS_WHY,
        paths=_paths("project secrets"),
        copies=True,
    ),
    Rule(
        name="version control internals",
        verdict="deny",
        actions=WRITES,
        why="hooks and settings in there run code when version control is used",
        paths=_paths("version control internals"),
    ),
    Rule(
        name="version control settings",
        verdict="ask",
        actions=READS,
        why="the address of a remote may have a password in it",
        paths=_paths("version control settings"),
    ),
    Rule(
        name="own files",
        verdict="deny",
        actions=WRITES,
        why="it says what agents may do, and only a person may change it",
        paths=_paths("own files"),
    ),
    Rule(
        name="temporary files of filepact",
        verdict="deny",
        actions=READS | WRITES,
        why="it exists only while filepact replaces a file",
        paths=_paths("temporary files of filepact"),
    ),
    Rule(
        name="control files",
        verdict="ask",
        actions=WRITES,
        why="it steers agents or editors, or runs code that nobody has started",
        paths=_paths("control files"),
    ),
    Rule(
        name="manifests",
        verdict="ask",
        actions=WRITES,
        why="it says what is installed, built and run",
        paths=_paths("manifests"),
    ),
)
"""The rules about names."""
