"""Names that a shell, a command or another system takes for something else.

``rm -rf *`` beside a file called ``-rf``, a folder called ``~``, a name that a shell's expansion
would run, names that Windows keeps for devices (Microsoft, "Naming Files, Paths, and Namespaces"): all
of them are legal here.  Brackets, ``$``, ``&``, ``!`` and quotes alone are not among them, since
frameworks and titles of documents have them.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["trips_programs"]

_TRIPS: Final = re.compile(
    r"(?:^|/)(?:"
    # an option; a home folder; nothing that shows, or nothing but dots
    r"-|~(?:/|\Z)|[^/]*[*?<>|`]|\s*(?:/|\Z)|\.{3,}(?:/|\Z)"
    # what an expansion would run, or a blank that nobody sees
    r"|[^/]*\$[({]|\s|[^/]*\s(?:/|\Z)"
    # a device; with an ending it is an everyday name elsewhere
    r"|(?i:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:/|\Z)"
    r")"
)


def trips_programs(path: str) -> bool:
    """Whether one part of a relative path is such a name."""
    return _TRIPS.search(path) is not None
