"""Finds paths, and replaces files that lie in no root: the settings of agents, editors and filepact itself, at a person's word."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from filepact.domain.document import Revision
from filepact.errors import StaleFileError, WriteFailedError
from filepact.fs.root import Root

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["existing", "replace_outside"]

_LARGEST = 1 << 24


def existing(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths at which an entry exists; a link counts."""
    return tuple(path for path in dict.fromkeys(paths) if os.path.lexists(path))


def replace_outside(path: str, data: bytes | None, *, expected: bytes | None, token: str) -> None:
    """Replace one file that lies in no root, in one step, and keep its mode and what else it has.

    Args:
        path: Its absolute path; of a link, what it leads to is replaced.
        data: What it shall hold; None removes it.
        expected: What it holds; None where it is not there.
        token: As for `Root.stage`.

    Raises:
        StaleFileError: It holds something else, and was left so.
        WriteFailedError: It may not be written, or the system refused; nothing was changed.
    """
    above, _, name = os.path.realpath(path).rpartition("/")
    missing: list[str] = []
    while not os.path.lexists(above):
        above, _, part = above.rpartition("/")
        missing.insert(0, part)
    with Root.open(above or "/", mounts=True) as folder:
        if missing and data is not None:
            folder.make_directories("/".join(missing))
        place = "/".join([*missing, name])
        found = folder.place(place)
        held = None
        if found.kind != "missing":
            if not found.mode & 0o222:
                raise WriteFailedError(
                    f"{path}: is read-only; nothing was changed",
                    hint=f"Make it writable: chmod u+w {path}",
                )
            held = folder.read(place, limit=_LARGEST).data
        if held != expected:
            raise StaleFileError(
                f"{path}: has changed meanwhile; nothing was changed", hint="Try again."
            )
        before = None if held is None else Revision.of(held, found.mode)
        if data is not None:
            mode = found.mode if held is not None else folder.new_mode(place)
            folder.replace(place, data, mode=mode, expected=before, token=token).close()
        elif before is not None:
            folder.remove(place, expected=before, token=token).close()
