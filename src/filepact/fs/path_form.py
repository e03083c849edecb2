"""Checks the form of a path, before any disk is asked.

Strings are looked at once, here; after that only the kernel decides what a name leads to.  What is
an ordinary name on one system is another file's on the next, so each system has its own rules;
which one is meant is an argument, and all of them can be asked anywhere.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from posixpath import dirname
from typing import TYPE_CHECKING, Literal

from filepact.errors import PathBlockedError
from filepact.values import late_regex

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

__all__ = [
    "LONGEST_PART",
    "LONGEST_PATH",
    "System",
    "at_home",
    "check_form",
    "check_new_name",
    "folders_above",
    "is_beneath",
    "lock_key",
    "temporary_name",
    "this_system",
    "token_of",
]

LONGEST_PATH = 4_096
LONGEST_PART = 255
_BEGINS, _ENDS = ".filepact-", ".tmp"

System = Literal["linux", "macos", "windows"]

# Refused everywhere: meant for another program, or for another machine.
_SCHEME = late_regex(r"[a-z][a-z0-9+.-]+://|file:", re.ASCII | re.IGNORECASE)
_FOREIGN = late_regex(r"[A-Za-z]:([\\/]|\Z)|\\\\|//[?.]/|\\\?\?\\", re.ASCII)

# macOS: files by their number, ways around links, and the second half that a file may have.
_MACOS = late_regex(r"/+\.(vol|nofollow|resolve)(/|\Z)", re.IGNORECASE)
_MACOS_FORK = late_regex(r"(^|/)\.\.namedfork(/|\Z)", re.IGNORECASE)

_DRIVE = late_regex(r"[A-Za-z]:[\\/]", re.ASCII)
_NETWORK = late_regex(r"[\\/]{2}|\\\?\?\\")
# Superscripts count as digits there.  Blanks before the first dot are left out as well.
_DEVICE = late_regex(
    r"(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(COM|LPT)[1-9\u00b9\u00b2\u00b3])[ ]*([.].*)?",
    re.IGNORECASE | re.DOTALL,
)
_SHORT = late_regex(r"[^./\\]{1,6}~[0-9]+([.].{0,3})?", re.ASCII)
_RESERVED = late_regex(r'[<>"|?*\0-\x1f]')

_SPOKEN = {"\0": "a NUL", "\n": "a line feed"}
_MISLEADING = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co"})


def this_system() -> System:
    """The system whose rules for names are in force here."""
    if sys.platform == "win32":
        return "windows"
    return "macos" if sys.platform == "darwin" else "linux"


def check_form(path: str, system: System | None = None) -> str:
    """Check a path for its form alone, before any disk is asked.

    ``~``, ``$HOME`` and ``%41`` are plain characters: nothing is expanded or decoded.

    Args:
        path: As somebody sent it.
        system: Whose rules count; None: this one's.

    Returns:
        The path as it came.

    Raises:
        PathBlockedError: It cannot be a path on that system, or hides what it is.
    """
    system = system or this_system()
    if not path.isprintable() and (bad := _hidden(path, {"Cs"}, {"\0"})):
        raise _form(path, f"contains {bad}")
    if _SCHEME.match(path):
        raise _form(path, "is a URL, not a path")
    if system == "windows":
        _check_windows(path)
        return path
    if _FOREIGN.match(path):
        raise _form(path, "is a Windows drive, network or device path")
    if system == "macos" and (_MACOS.match(path) or _MACOS_FORK.search(path)):
        raise _form(path, "names a file by its number, or its resource fork")
    encoded = len(path.encode("utf-8", "surrogatepass"))
    if encoded >= LONGEST_PATH:
        raise _form(path, f"has {encoded:,} bytes, at most {LONGEST_PATH - 1:,} are possible")
    if encoded > LONGEST_PART:
        _check_parts(path.split("/"), "utf-8")
    return path


def check_new_name(path: str) -> None:
    """Check the name of a file or folder that is about to be made.

    Characters that cannot be seen are left alone in names that exist (some emoji hold them), but
    a new one would only serve to look like another, or to mislead who reads about it.

    Raises:
        PathBlockedError: It holds such a character.
    """
    if not path.isprintable() and (bad := _hidden(path, _MISLEADING, ())):
        raise PathBlockedError(
            f"{_shown(path)}: nothing has this name, and it contains {bad}, which a new name may not",
            hint="Send the name without it: of characters that can be seen.",
        )


def _check_windows(path: str) -> None:
    """Refuse a path that Windows would take for something else than it looks like."""
    if _NETWORK.match(path):
        raise _form(path, "is a network or device path")
    drive = _DRIVE.match(path)
    rest = path[2:] if drive else path
    if not drive and path[:1] in ("/", "\\"):
        raise _form(path, "begins at the root of the current drive")
    if ":" in rest:
        raise _form(path, "names a stream of a file, or a drive's current folder")
    if bad := _RESERVED.search(rest):
        raise _form(path, f"contains {_described(bad[0])}, which no name may contain")
    parts = re.split(r"[\\/]+", rest)
    depth = 0
    for part in parts:
        depth += {"": 0, ".": 0, "..": -1}.get(part, 1)
        if depth < 0:
            # There `..` cancels the part before it, whatever that is.
            raise _form(path, "leads out of the root")
        _check_windows_part(path, part)
    _check_parts(parts, "utf-16-le")
    if len(path) > LONGEST_PATH:
        raise _form(path, f"has {len(path):,} characters, at most {LONGEST_PATH:,} are possible")


def _check_windows_part(path: str, part: str) -> None:
    if part in ("", ".", ".."):
        return
    if part[-1] in ". ":
        raise _form(path, "has a part that ends in a dot or a blank, which the system leaves out")
    if _DEVICE.fullmatch(part):
        raise _form(path, "names a device")
    if _SHORT.fullmatch(part):
        raise _form(path, "may be the short form of another name")


def _check_parts(parts: Iterable[str], encoding: str) -> None:
    unit = 2 if encoding == "utf-16-le" else 1
    for part in parts:
        if len(part.encode(encoding, "surrogatepass")) > LONGEST_PART * unit:
            units = "characters" if unit == 2 else "bytes"
            raise _form(part, f"has a part of more than {LONGEST_PART} {units}")


def _hidden(path: str, categories: Iterable[str], chars: Iterable[str]) -> str:
    """The first character of some categories, or of some, described; empty when there is none."""
    for char in path:
        if char in chars or unicodedata.category(char) in categories:
            return _described(char)
    return ""


def _described(char: str) -> str:
    if char.isprintable():
        return f"\u201c{char}\u201d"
    if "\udc80" <= char <= "\udcff":
        return f"the byte 0x{ord(char) - 0xDC00:02X}, which is no UTF-8"
    return _SPOKEN.get(char) or f"the invisible character U+{ord(char):04X}"


def _shown(path: str) -> str:
    written = path[:100].encode("unicode_escape").decode("ascii")
    return re.sub(r"(?<!\\)\\udc([89a-f][0-9a-f])", r"\\x\1", written)


def _form(path: str, what: str) -> PathBlockedError:
    return PathBlockedError(
        f"{_shown(path)}: {what}", hint="Send a plain path, relative to the root or absolute."
    )


def at_home(path: str, home: str) -> str:
    """A path with what ``~`` stands for, where there is a home folder."""
    return home + path[1:] if home and (path == "~" or path.startswith("~/")) else path


def folders_above(path: str) -> Iterator[str]:
    """The folders that a file or folder lies in, but for the root, the nearest first."""
    while path := dirname(path):
        yield path


def is_beneath(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it, by names; a relative one lies in ``.``."""
    return folder in (".", path) or path.startswith(f"{folder.rstrip('/')}/")


def temporary_name(token: str) -> str:
    """The name beside the target under which a change keeps its other text for a moment."""
    if not re.fullmatch(r"[A-Za-z0-9-]{4,64}", token):
        raise ValueError(f"not a token: {token!r}")
    return f"{_BEGINS}{token}{_ENDS}"


def token_of(name: str) -> str | None:
    """The token of a temporary name; None for any other name."""
    if not (name.startswith(_BEGINS) and name.endswith(_ENDS)):
        return None
    return name.removeprefix(_BEGINS).removesuffix(_ENDS)


def lock_key(parent: os.stat_result, rest: str) -> str:
    """The key of the lock of a name in a folder, which other letters of it have as well."""
    one = rest.lower() if rest.isascii() else _folded(rest)
    return f"{parent.st_dev}:{parent.st_ino}:{one}"


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
