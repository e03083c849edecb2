"""``file:`` URIs (RFC 8089) and the absolute paths that they name: the one parser of all protocols."""

from __future__ import annotations

import os

__all__ = ["path_named", "path_of", "uri_of"]

_HERE = ("", "localhost")


def uri_of(path: str) -> str:
    """The URI of an absolute path."""
    from urllib.parse import quote_from_bytes  # noqa: PLC0415 - not before there is a URI

    return "file://" + quote_from_bytes(os.fsencode(path), safe="/-._~")


def path_of(uri: object) -> str | None:
    """The path of a URI, decoded once and without dot segments; None when it names no local file.

    ``#`` and ``?`` are part of the path: many programs do not escape them, and what is cut off
    there would leave the name of another file.
    """
    scheme, _, rest = uri.partition(":") if isinstance(uri, str) else ("", "", "")
    if scheme.lower() != "file":
        return None
    if rest.startswith("//"):
        authority, slash, below = rest[2:].partition("/")
        if authority.lower() not in _HERE:
            return None
        rest = slash + below
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415 - as above

    try:
        path = os.fsdecode(unquote_to_bytes(rest))
    except UnicodeEncodeError:
        return None  # It holds half a character.
    return os.path.normpath(path) if path.startswith("/") and "\0" not in path else None


def path_named(name: str) -> str:
    """The path that a text names, which is a path or a URI; what is neither stays as it is."""
    return path_of(name) or name
