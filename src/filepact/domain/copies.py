"""What editors, systems and people call copies of a file: backups, swap files, numbered ones.

A copy of a file with a password in it has the password in it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["copied", "looks_copied"]

_WORDS: Final = "bak|backup|bck|bkp|old|orig|original|prev|previous|sav|save|saved|copy|tmp|temp"
_STAMP: Final = r"\d{1,4}|\d{4}-?\d\d-?\d\d(?:[t_.-]?[\d:-]{4,8})?"
_COPY: Final = re.compile(
    # Emacs saves and locks; vim's swap files
    r"#(?P<hash>[^/]+)#|\.#(?P<lock>[^/]+)|\.(?P<swap>[^/]+)\.sw[a-p]"
    # x~, x.~1~, x.bak, x.bak2, x-old, x.old.1, x.orig~
    rf"|(?P<end>[^/]+?)(?:\.?~\d*~?|[._-](?:{_WORDS})[._-]?(?:{_STAMP})?|[._](?:{_STAMP}))"
    # what people and desktops make: x copy.json, x - copy 2, x (1).json, copy of x
    r"|(?P<stem>[^/]+?)(?: (?:- )?copy(?: \d+)?| \(\d+\))(?P<ending>\.[^/.]*)?|copy of (?P<of>[^/]+)"
)
_MARKS: Final = re.compile(rf"~|#|\.sw[a-p]|copy|\(\d|[._-](?:{_WORDS}|\d{{1,4}})")
_ROUNDS: Final = 3


def looks_copied(names: str) -> bool:
    """Whether one of some names, joined by slashes, may be that of a copy; quick."""
    return _MARKS.search(names) is not None


@lru_cache(maxsize=65_536)
def copied(name: str) -> str:
    """The name of what a copy was made of, as far as its own tells; the same for any other.

    Args:
        name: One part of a path, as its :func:`~filepact.domain.names.key`.
    """
    for _ in range(_ROUNDS):
        found = _COPY.fullmatch(name) if looks_copied(name) else None
        if found is None:
            break
        parts = found.groupdict("")
        name = "".join(
            parts[one] for one in ("hash", "lock", "swap", "end", "stem", "ending", "of")
        )
    return name
