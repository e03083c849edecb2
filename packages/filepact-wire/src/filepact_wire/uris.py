"""``file:`` URIs (RFC 8089) and the absolute paths that they name: the one parser of all protocols."""

from __future__ import annotations

import os
import sys

__all__ = ["path_named", "path_of", "uri_of"]

_HERE = ("", "localhost", "127.0.0.1", "[::1]")


def uri_of(path: str, system: str = sys.platform) -> str:
    """The URI of an absolute path."""
    from urllib.parse import quote_from_bytes  # noqa: PLC0415 - not before there is a URI

    if system == "win32":
        path = path.replace("\\", "/")
        path = path[2:] if path.startswith("//") else f"/{path}"
    return "file://" + quote_from_bytes(os.fsencode(path), safe="/-._~")


def path_of(uri: object, system: str = sys.platform) -> str | None:
    """The path of a URI, decoded once and without dot segments; None when it names no local file.

    ``#`` and ``?`` are part of the path: many programs do not escape them, and what is cut off
    there would leave the name of another file.
    """
    scheme, _, rest = uri.partition(":") if isinstance(uri, str) else ("", "", "")
    if scheme.lower() != "file":
        return None
    windows = system == "win32"
    rest = rest.replace("\\", "/") if windows else rest
    if rest.startswith("//"):
        authority, slash, below = rest[2:].partition("/")
        here = authority.lower() in _HERE
        if not here:
            from platform import node  # noqa: PLC0415 - few write the machine's own name

            here = authority.lower().partition(".")[0] == node().lower().partition(".")[0]
        if here:
            rest = slash + below
        elif not windows:
            return None
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415 - as above

    try:
        path = os.fsdecode(unquote_to_bytes(rest))
    except UnicodeEncodeError:
        return None  # It holds half a character.
    if windows:
        return _path_there(path)
    return os.path.normpath(path) if path.startswith("/") and "\0" not in path else None


def _path_there(path: str) -> str | None:
    """The path on Windows of what a URI has behind its scheme and machine; a share stays one, to be refused as that."""
    from ntpath import isabs, normpath, splitdrive  # noqa: PLC0415 - there alone

    named = path.lstrip("/\\")
    share = len(path) - len(named) > 1 and named[1:2] != ":"
    there = normpath(f"\\\\{named}" if share else named)
    return there if "\0" not in there and splitdrive(there)[0] and isabs(there) else None


def path_named(name: str) -> str:
    """The path that a text names, which is a path or a URI; what is neither stays as it is."""
    return path_of(name) or name
