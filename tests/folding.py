"""A file system in which letter case does not tell names apart, and which cannot exchange names, as far as this process asks.

As memory cards and many mounts by FUSE have it: a name keeps the letters that it was made with, and is found by any.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from filepact.fs import atomic, resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

__all__ = ["fold_names"]

_ONE = ("open", "stat", "unlink", "rmdir", "mkdir", "readlink", "access", "utime", "symlink")


def fold_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every name below an open folder found by whatever letters."""
    listdir, rename = os.listdir, os.rename
    open_, close = os.open, os.close

    def true(path: Any, folder: int | None) -> Any:
        text = os.fsdecode(path) if isinstance(path, str | bytes) else ""
        if folder is None or text in ("", ".") or text.startswith("/"):
            return path
        parts: list[str] = []
        for part in text.split("/"):
            names: list[str] = []
            with suppress(OSError):
                above = open_("/".join(parts) or ".", os.O_RDONLY, dir_fd=folder)
                try:
                    names = listdir(above)
                finally:
                    close(above)
            alike = [one for one in names if one.casefold() == part.casefold()]
            parts.append(part if part in names or not alike else alike[0])
        return (
            type(path)("/".join(parts)) if isinstance(path, str) else os.fsencode("/".join(parts))
        )

    def folded(call: Callable[..., Any], path: Any, *more: Any, **named: Any) -> Any:
        return call(true(path, named.get("dir_fd")), *more, **named)

    def renamed(
        old: str, new: str, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
    ) -> None:
        old, there = true(old, src_dir_fd), true(new, dst_dir_fd)
        rename(
            old,
            new if there == old else there,
            src_dir_fd=src_dir_fd,
            dst_dir_fd=dst_dir_fd,
        )

    def missing(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSYS, "no")

    for name in _ONE:
        monkeypatch.setattr(os, name, partial(folded, getattr(os, name)))
    spelling = resolve.spelling
    monkeypatch.setattr(
        resolve, "spelling", lambda folder, name: spelling(folder, true(name, folder))
    )
    monkeypatch.setattr(os, "rename", renamed)
    monkeypatch.setattr(os, "link", missing)
    monkeypatch.setattr(atomic, "renameat2", missing)
    monkeypatch.setattr(resolve, "_openat2_works", lambda: False)
