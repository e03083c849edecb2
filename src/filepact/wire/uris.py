"""Paths as the URIs that language servers use, and back."""

from __future__ import annotations

import os
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

__all__ = ["path_of", "uri_of"]


def uri_of(path: str) -> str:
    """The URI of an absolute path."""
    return "file://" + quote_from_bytes(os.fsencode(path), safe="/-._~")


def path_of(uri: str) -> str | None:
    """The path of a URI, however it is escaped; None when it names no local file."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    # A path may hold what separates the parts of other URIs, and some servers leave it so.
    rest = uri.split("://", 1)[1].removeprefix(parts.netloc)
    path = os.fsdecode(unquote_to_bytes(rest))
    return os.path.normpath(path) if path.startswith("/") and "\0" not in path else None
