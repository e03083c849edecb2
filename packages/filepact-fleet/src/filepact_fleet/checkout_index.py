"""What a checkout of a shared workspace remembers, in the state folder: from which state each of its files came.

A log: a line for each thing that changed, so that what is remembered costs as little as what changed.  A line that a crash cut
off is passed over, and so is what another process has not told yet: a file then comes from an older state than it really does, and what
is new in both is found to be the same.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import StateFailedError
from filepact_fleet.manifest import ManifestEntry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact_fleet.manifest import SharedHead

__all__ = ["CheckoutIndex"]

_FORM: Final = "filepact checkout 1"
_SLACK: Final = 1_000
"""Lines that are superfluous before the log is written anew."""


class CheckoutIndex:
    """The index of one checkout.  For all threads.

    Args:
        path: The file.

    Attributes:
        url: The shared workspace.
        name: What this checkout is called there.
        workspace: The id of the shared workspace; empty where that was not noted yet.
        number: The version up to which the files were brought.
        change: The id of the change that made it; empty for none yet.
        files: From what each file came.
        coming: What files were going to be made, of which nobody has noted yet whether they were.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = RLock()
        self._read = 0
        self._identity: tuple[int, int] | None = None
        self._lines = 0
        self.url = ""
        self.name = ""
        self.workspace = ""
        self.number = 0
        self.change = ""
        self.files: dict[str, ManifestEntry] = {}
        self.coming: dict[str, ManifestEntry | None] = {}

    def exists(self) -> bool:
        """Whether there is one."""
        return os.path.exists(self._path)

    def begin(self, url: str, name: str) -> None:
        """Make one, in place of any that is there.

        Raises:
            StateFailedError: It cannot be written.
        """
        self.url, self.name, self.workspace, self.number, self.change = url, name, "", 0, ""
        self.files, self.coming = {}, {}
        self._rewrite()

    def load(self) -> None:
        """Read what was written since this was last called.

        Raises:
            StateFailedError: It is not there, or is none.
        """
        with self._lock:
            self._load()

    def _load(self) -> None:
        try:
            with open(self._path, "rb") as stream:
                found = os.fstat(stream.fileno())
                if (found.st_dev, found.st_ino) != self._identity or found.st_size < self._read:
                    self._identity = (found.st_dev, found.st_ino)
                    self._read, self._lines, self.files, self.coming = 0, 0, {}, {}
                    self.workspace, self.number, self.change = "", 0, ""
                if found.st_size == self._read:
                    return
                stream.seek(self._read)
                data = stream.read()
        except OSError as error:
            raise StateFailedError(
                f"what this checkout remembers cannot be read ({error.strerror})",
                hint="Check the shared workspace out into another folder, and bring over what is only here.",
            ) from None
        whole = data[: data.rfind(b"\n") + 1]
        for line in whole.splitlines():
            with suppress(ValueError, TypeError, KeyError, AttributeError):
                self._take(json.loads(line))
        self._read += len(whole)
        if not self.url:
            raise StateFailedError("what this checkout remembers is not what filepact writes")

    def _take(self, told: Any) -> None:
        self._lines += 1
        if told.get("form") == _FORM:
            self.url, self.name = str(told["url"]), str(told["name"])
        if "at" in told:
            number, change, *workspace = told["at"]
            # Another process may have been further before it could note this one.
            if int(number) >= self.number:
                self.number, self.change = int(number), str(change)
                self.workspace = str(workspace[0]) if workspace else ""
        for path, entry in told.get("coming", {}).items():
            self.coming[path] = None if entry is None else ManifestEntry(*entry)
        for path, entry in told.get("files", {}).items():
            self.coming.pop(path, None)
            if entry is None:
                self.files.pop(path, None)
            else:
                self.files[path] = ManifestEntry(*entry)

    def note(
        self,
        files: Mapping[str, ManifestEntry | None],
        at: SharedHead | None = None,
        *,
        coming: Mapping[str, ManifestEntry | None] | None = None,
    ) -> None:
        """Remember from what files come by now, None for none, and up to which version.

        Args:
            files: From what they come.
            at: The version.
            coming: What files are going to be made.

        Raises:
            StateFailedError: It cannot be written; what is remembered is older then, which is safe.
        """
        told: dict[str, object] = {"files": files} if files else {}
        if coming:
            told["coming"] = coming
        if at is not None:
            told["at"] = (at.number, at.change, at.workspace)
        with self._lock:
            self._append(told)

    def _append(self, told: dict[str, object]) -> None:
        # It begins with a line's end: what a crash cut off is a line of its own then.
        line = f"\n{json.dumps(told, separators=(',', ':'))}\n".encode()
        descriptor = -1
        try:
            descriptor = self._locked()
            self._load()
            if self._lines > 2 * len(self.files) + _SLACK:
                self._take(told)
                self._rewrite()
                return
            os.write(descriptor, line)
        except OSError as error:
            raise _unwritable(error) from None
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        self._load()

    def _locked(self) -> int:
        """The log, open and locked: a line in one that has just been written anew elsewhere would be lost."""
        while True:
            descriptor = os.open(
                self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            )
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(descriptor), os.stat(self._path)):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _rewrite(self) -> None:
        lines: list[dict[str, object]] = [
            {
                "form": _FORM,
                "url": self.url,
                "name": self.name,
                "at": (self.number, self.change, self.workspace),
            }
        ]
        items = list(self.files.items())
        lines += [
            {"files": dict(items[begin : begin + 100])} for begin in range(0, len(items), 100)
        ]
        if self.coming:
            lines.append({"coming": self.coming})
        data = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
        temporary = f"{self._path}.{os.getpid()}"
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            with open(temporary, "wb", opener=_private) as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.rename(temporary, self._path)
        except OSError as error:
            with suppress(OSError):
                os.unlink(temporary)
            raise _unwritable(error) from None
        self._identity = None
        self._load()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _unwritable(error: OSError) -> StateFailedError:
    return StateFailedError(
        f"what a checkout remembers cannot be written ({error.strerror})",
        hint="Make the state folder writable or free space on its disk, then try again.",
    )
