"""The state folder: one person's journal, locks and rescued texts, outside every root."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.errors import StateFailedError
from filepact.fs.lock import FileLocks

if TYPE_CHECKING:
    from filepact.domain.document import RootId

__all__ = ["StateFolder", "open_state"]


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The folder and what is in it.

    Attributes:
        path: Its true absolute path.
        locks: One lock for each real file.
    """

    path: str
    locks: FileLocks

    @property
    def database(self) -> str:
        """Where the journal is."""
        return os.path.join(self.path, "journal.db")

    def guard_against(self, root: RootId) -> None:
        """Refuse to keep state where agents may write, or a root that holds the state.

        Raises:
            StateFailedError: One lies within the other.
        """
        inside = os.path.commonpath([self.path, root])
        if inside in (self.path, root):
            raise StateFailedError(
                f"the state folder {self.path} and the root {root} lie within each other",
                hint="Choose another state folder with --state or FILEPACT_STATE_DIR.",
            )

    def rescue(self, name: str, data: bytes) -> str:
        """Keep bytes that would be lost otherwise; the path they were put under."""
        folder = os.path.join(self.path, "rescued")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        for number in range(10_000):
            path = os.path.join(folder, f"{stamp}-{number}-{name[-100:]}")
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                continue
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(descriptor)
            return path
        raise StateFailedError(f"no free name left in {folder}", hint="Clear that folder.")


def open_state(path: str) -> StateFolder:
    """Open the state folder, made when it is missing.

    Raises:
        StateFailedError: Another user could read or replace what is in it.
    """
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        true = os.path.realpath(path, strict=True)
        found = os.stat(true)
    except OSError as error:
        raise StateFailedError(
            f"the state folder {path} cannot be used: {error.strerror}",
            hint="Choose another with --state or FILEPACT_STATE_DIR.",
        ) from None
    if not stat.S_ISDIR(found.st_mode):
        raise StateFailedError(f"{path} is not a folder", hint="Choose another with --state.")
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise StateFailedError(
            f"the state folder {path} belongs to another user",
            hint="Choose another with --state or FILEPACT_STATE_DIR.",
        )
    if found.st_mode & 0o022:
        raise StateFailedError(
            f"other users may write into the state folder {path}",
            hint=f"chmod 700 {path}",
        )
    return StateFolder(true, FileLocks(os.path.join(true, "locks")))
