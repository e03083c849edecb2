"""Records whatever changes files of a root, while nobody need ask for it.

The recorder sleeps until the kernel tells that something was touched, waits until all is quiet, and has
the external changes put into the journal: one operation for what was done together.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

from filepact.domain.operation import PAST_THE_DOORS, UNOBSERVED, Actor
from filepact.errors import FilepactError, PathBlockedError
from filepact.values import late_logger, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact.domain.operation import Operation, Session
    from filepact.fs.root import Root
    from filepact.workspace.workspace import Workspace

__all__ = ["ChangeRecorder", "GuardLock"]

_log = late_logger(__name__)

_BREATH: Final = 0.05
"""Seconds between two looks at what was touched, while files are being written to."""
_SCAN: Final = 2.0
_SHARE: Final = 20
"""A scan comes so many times its own length after the one before, but not sooner than `_SCAN`."""
_READ: Final = 20.0  # seconds
_UPKEEP: Final = 50  # changed files after which the journal is made smaller, if it has to be
_LONGEST_GIT: Final = 600.0  # seconds
_HEAD: Final = ".git/logs/HEAD"
_INDEX_LOCK: Final = ".git/index.lock"
_LONGEST_LOG: Final = 16 << 20
_LONGEST_WORD: Final = 200


class GuardLock(Protocol):
    """The lock of the one process that guards a root, with what it tells of itself."""

    def take(self) -> bool:
        """Take the lock; False where another process holds it."""

    def tell(self, text: str) -> None:
        """Have others read a line of text for as long as the lock is held."""

    def told(self, *, after: bool = False) -> str | None:
        """The text of the process that holds the lock; with ``after`` also of one that did."""

    def release(self) -> None:
        """Let go of it."""


class ChangeRecorder:
    """Records in one thread, from `run` to its end.

    Args:
        workspace: One root, whose snapshot outlasts the process.
        session: Under which it is recorded; who wrote is known only where the system tells it.
        quiet: Seconds without a change that end an operation.
        longest: Seconds after which it ends although changes go on.
        room: Bytes that the journal may take; older contents are given up then.
        told: Is told every operation.
        failed: Is told why what was changed is not recorded yet; empty once it is.

    Attributes:
        has_read: Whether all files had been read when it began; the rest is read while it runs.
    """

    def __init__(
        self,
        workspace: Workspace,
        session: Session,
        *,
        quiet: float,
        longest: float,
        room: int,
        told: Callable[[Operation], None],
        failed: Callable[[str], None] = lambda _why: None,
    ) -> None:
        self._workspace = workspace
        self._external = workspace.external
        self._session = session
        self._quiet = quiet
        self._longest = longest
        self._room = room
        self._told = told
        self._failed = failed
        self._unrecorded = ""
        self._git = _GitLog(workspace.guard.roots[0])
        self._every = _SCAN
        self._count = 0
        self._news = "quiet"
        self.has_read = False

    @property
    def is_watched(self) -> bool:
        """Whether the kernel tells of every change; else the root is scanned now and then."""
        return self._external.is_watched

    def begin(self) -> int:
        """Record what was changed while nothing looked, and watch from now on.

        Returns:
            How many files are known.

        Raises:
            PathBlockedError: The root is no longer there.
        """
        self._git.news()
        status = self._external.snapshot(contents=False)
        self._look(UNOBSERVED)
        # What is changed before it was read cannot be taken back, so nobody is told to begin yet.
        until = time.monotonic() + _READ
        self.has_read = self._external.read_contents(cancelled=lambda: time.monotonic() > until)
        return status.files

    def run(self, stop: int) -> None:
        """Record until a descriptor can be read.

        Raises:
            PathBlockedError: The root is no longer there.
        """
        while self._news != "stopped":
            # What only came to be looked at, as by a change of ignore files, has to be read as well.
            if not self._external.has_read:
                self._external.read_contents(cancelled=lambda: self._has_news(stop))
            if self._news == "quiet":
                sleeps = self.is_watched and not self._unrecorded
                self._news = self._external.wait(stop, None if sleeps else self._every)
                if self._news == "quiet" and sleeps:
                    continue
            if self._news == "touched":
                self._news = "quiet"
                self._settle(stop)
            self._look(PAST_THE_DOORS)

    def _has_news(self, stop: int) -> bool:
        self._news = self._external.wait(stop, 0)
        return self._news != "quiet"

    def _settle(self, stop: int) -> None:
        """Wait until nothing is touched for a while, or it takes too long."""
        begun = last = time.monotonic()
        while True:
            now = time.monotonic()
            left = min(last + self._quiet, begun + self._longest) - now
            if left <= 0 and self._git.is_busy() and now < begun + _LONGEST_GIT:
                # What it does to thousands of files is one thing, however long it takes.
                left = _BREATH
            if left <= 0:
                return
            # Whoever writes without a pause must not keep this busy as well.
            time.sleep(min(_BREATH, left))
            news = self._external.wait(stop, max(0, left - _BREATH))
            if news == "touched":
                last = time.monotonic()
            elif news == "stopped":
                self._news = news
                return

    def _look(self, tool: str) -> None:
        begun = time.monotonic()
        moved = self._git.news()
        session = self._session
        if moved and tool == PAST_THE_DOORS:
            tool, session = f"git {moved}", replace(session, actor=Actor("program", "git"))
        try:
            found = self._external.detect(session, tool=tool)
        except PathBlockedError:
            raise
        except FilepactError as error:
            # It is found again by the next look.
            if not self._unrecorded:
                _log.warning("what was changed is not recorded yet: %s", error.message)
            self._unrecorded = error.message
            self._failed(error.message)
            return
        if self._unrecorded:
            self._unrecorded = ""
            self._failed("")
        self._every = max(_SCAN, _SHARE * (time.monotonic() - begun))
        for operation in found.operations:
            self._told(operation)
            self._count += len(operation.changes.changes)
        if self._count >= _UPKEEP:
            self._count = 0
            self._workspace.prune(self._room)


class _GitLog:
    """Moves of ``HEAD`` in Git's own log: commits, checkouts, resets, merges."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._size = 0

    def is_busy(self) -> bool:
        """Whether Git is changing the work tree, as far as its lock tells."""
        found = self._root.glance(_INDEX_LOCK)
        # One that a crash of Git has left behind holds up nobody.
        if not found:
            return False
        return time.time_ns() - found[3] < _LONGEST_GIT * 10**9

    def news(self) -> str:
        """The move of ``HEAD`` since the last look, in Git's words; empty for none."""
        try:
            data = self._root.read(_HEAD, limit=_LONGEST_LOG, follow=False).data
        except FilepactError:
            return ""
        before, self._size = self._size, len(data)
        if not 0 < before < len(data):
            return ""
        line = data.rstrip(b"\n").rpartition(b"\n")[2].rpartition(b"\t")[2]
        said = line.decode("utf-8", "replace")
        return "".join(one if one.isprintable() else "?" for one in said)[:_LONGEST_WORD]
