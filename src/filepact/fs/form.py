"""The form of a name, before any disk is asked.

Strings are looked at once, here; after that only the kernel decides what a name leads to.
"""

from __future__ import annotations

import re
import unicodedata

from filepact.errors import PathBlockedError

__all__ = ["LONGEST_PART", "LONGEST_PATH", "check_form", "check_new_name"]

LONGEST_PATH = 4_096
LONGEST_PART = 255

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://|file:", re.ASCII | re.IGNORECASE)
_WINDOWS = re.compile(r"[A-Za-z]:([\\/]|$)|\\\\|//[?.]/", re.ASCII)


def check_form(path: str) -> str:
    """Check a path for its form alone, before any disk is asked.

    ``~``, ``$HOME`` and ``%41`` are plain characters: nothing is expanded or decoded.

    Returns:
        The path as it came.

    Raises:
        PathBlockedError: It cannot be a path on this system, or hides what it is.
    """
    if not path.isprintable() and (bad := _hidden(path, ("Cc", "Cs"))):
        raise _form(path, f"contains {bad}")
    if _SCHEME.match(path):
        raise _form(path, "is a URL, not a path")
    if _WINDOWS.match(path):
        raise _form(path, "is a Windows drive, network or device path")
    encoded = len(path.encode("utf-8", "surrogatepass"))
    if encoded > LONGEST_PATH:
        raise _form(path, f"has {encoded:,} bytes, at most {LONGEST_PATH:,} are possible")
    if encoded > LONGEST_PART and any(
        len(part.encode("utf-8", "surrogatepass")) > LONGEST_PART for part in path.split("/")
    ):
        raise _form(path, f"has a part of more than {LONGEST_PART} bytes")
    return path


def _hidden(path: str, categories: tuple[str, ...]) -> str:
    """The first character of some categories, described; empty when there is none."""
    for char in path:
        category = unicodedata.category(char)
        if category in categories:
            name = {"\0": "a NUL", "\n": "a line feed"}.get(char)
            return name or f"the invisible character U+{ord(char):04X}"
    return ""


def check_new_name(path: str) -> None:
    """Check a name that is about to be made.

    Characters that cannot be seen are left alone in names that exist (some emoji hold them), but
    a new one would only serve to look like another.

    Raises:
        PathBlockedError: It holds such a character.
    """
    if not path.isprintable() and (bad := _hidden(path, ("Cf", "Zl", "Zp", "Co"))):
        raise _form(path, f"contains {bad}")


def _form(path: str, what: str) -> PathBlockedError:
    shown = path[:100].encode("unicode_escape").decode("ascii")
    return PathBlockedError(
        f"{shown}: {what}",
        hint="Send a plain path, relative to the root or absolute.",
    )
