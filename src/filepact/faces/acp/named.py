"""Which files a call of a tool is about, as far as its arguments name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.errors import FilepactError
from filepact.text.patch import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["named_files"]

_BY_PATH = frozenset({"read_file", "write_file", "edit_file", "grep", "patch_apply"})


def named_files(tool: str, arguments: Mapping[str, object]) -> tuple[str, ...]:
    """The paths that a call names, as they were sent; a reader and a patch may name many.

    Arguments that the tool will refuse name nothing.
    """
    path = arguments.get("path")
    if isinstance(path, str) and path:
        return (path,) if tool in _BY_PATH else ()
    paths = arguments.get("paths")
    if tool == "read_file" and isinstance(paths, list):
        return tuple(dict.fromkeys(name for name in paths if isinstance(name, str) and name))
    patch = arguments.get("patch")
    if tool != "patch_apply" or not isinstance(patch, str):
        return ()
    try:
        parts = parse(patch)
    except FilepactError:
        return ()
    names = (name for part in parts for name in (part.old_path, part.new_path))
    return tuple(dict.fromkeys(name for name in names if name))
