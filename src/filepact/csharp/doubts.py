"""Names that are not found while packages are missing: whether they are wrong is not known.

Where nothing was restored, a `using` of a package's namespace leads nowhere, and with it every name
that the file takes from there.  Such a name is told as a warning that says so, and not as an error:
only restoring the packages can tell.  In files whose usings all lead somewhere, names that are not
found are errors as ever.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from filepact.csharp.findings import WARNING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from filepact.csharp.findings import Finding

__all__ = ["GLOBAL_USING", "doubted", "unresolved"]

GLOBAL_USING: Final = re.compile(r"(?m)^[ \t]*global[ \t]+using[ \t]")
"""A file that has one speaks for all files of its project."""

_USING: Final = re.compile(
    r"\s*(?:global\s+)?using\s+(?:static\s+)?(?:\w+\s*=\s*)?[\w.:]+(?:<[\w.:<>,\s]*>)?\s*"
)
_NOWHERE: Final = frozenset({"CS0234", "CS0246", "CS0400"})
_NAMES: Final = _NOWHERE | {"CS0012", "CS0103", "CS1061", "CS1069"}
_LONGEST: Final = 1_000
_WHY: Final = " It may be in a package that was not restored."


def unresolved(text: str, found: Iterable[Finding]) -> bool:
    """Whether a using in a text leads nowhere.

    Args:
        text: Of the file.
        found: What is wrong in it.
    """
    return any(one.code in _NOWHERE and _is_using(text, one.start) for one in found)


def doubted(one: Finding) -> Finding:
    """A finding in a file with such a using: a name that is not found is no certain error."""
    if one.code not in _NAMES or one.message.endswith(_WHY):
        return one
    return replace(one, severity=WARNING, message=one.message.rstrip(".") + "." + _WHY)


def _is_using(text: str, at: int) -> bool:
    """Whether a place lies in a using, and not in a statement that begins with the same word."""
    start = max(text.rfind(end, 0, at) for end in "\n\r;") + 1
    end = text.find(";", at, at + _LONGEST)
    return end >= 0 and _USING.fullmatch(text, start, end) is not None
