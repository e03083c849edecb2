"""Where lines begin in files that are too large to be loaded, so that any line is one read away."""

from __future__ import annotations

import os
import threading
import time
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

__all__ = ["KnownLines"]

_STEP = 65_536
_READ = 16  # steps that are read at a time where nothing is known
_MOST = 1 << 18  # numbers that are kept, of all files: 16 GiB of text
_RACY = 2 * 10**9
"""Nanoseconds in which a file may change twice under one stamp, on some file systems."""

_Stamp = tuple[int, ...]


class KnownLines:
    """How many line feeds stand before each 64 kB of files, as far as they were read.  For all threads.

    What is known of a file counts as long as its stamp is the same, and only if that stamp was two
    seconds old when the file was read: a younger one is racy.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[int, int], tuple[_Stamp, array[int]]] = {}
        self._room = _MOST

    def skip(self, stream: BinaryIO, lines: int, check: Callable[[], None]) -> int:
        """Pass over lines from the beginning of a file, by their line feeds alone.

        Args:
            stream: The file; it is left at the line after them, or at the end.
            lines: How many.
            check: Called now and then, to raise what ends the search.

        Returns:
            How many lines fewer there were.
        """
        if not lines:
            return 0
        now, before = time.time_ns(), os.fstat(stream.fileno())
        file, stamp = (before.st_dev, before.st_ino), _stamp(before)
        feeds = self._get(file, stamp)
        known = len(feeds)
        missing = _pass_over(stream, lines, feeds, check)
        settled = now - before.st_ctime_ns >= _RACY
        if settled and len(feeds) > known and _stamp(os.fstat(stream.fileno())) == stamp:
            self._put(file, stamp, feeds)
        return missing

    def _get(self, file: tuple[int, int], stamp: _Stamp) -> array[int]:
        """What is known, as a copy: another thread may find out more at the same time."""
        with self._lock:
            found, feeds = self._known.get(file, ((), _NOTHING))
            return feeds[:] if found == stamp else array("Q")

    def _put(self, file: tuple[int, int], stamp: _Stamp, feeds: array[int]) -> None:
        if len(feeds) > _MOST:
            return
        with self._lock:
            self._forget(file)
            while self._known and self._room < len(feeds):
                self._forget(next(iter(self._known)))
            self._known[file] = stamp, feeds
            self._room -= len(feeds)

    def _forget(self, file: tuple[int, int]) -> None:
        _, feeds = self._known.pop(file, ((), _NOTHING))
        self._room += len(feeds)


_NOTHING: array[int] = array("Q")


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _pass_over(stream: BinaryIO, lines: int, feeds: array[int], check: Callable[[], None]) -> int:
    """See `KnownLines.skip`; adds what it counts on its way.

    Args:
        stream: See there.
        lines: How many, at least 1.
        feeds: Of each whole step, from the first on: how many line feeds stand in it and before it.
        check: See there.
    """
    at = bisect_left(feeds, lines)
    passed = feeds[at - 1] if at else 0
    stream.seek(at * _STEP)
    steps = 1
    while block := stream.read(steps * _STEP):
        check()
        for start in range(0, len(block), _STEP):
            found = block.count(b"\n", start, start + _STEP)
            if passed + found >= lines:
                end = _after(block, start, lines - passed)
                stream.seek(end - len(block), os.SEEK_CUR)
                return 0
            passed += found
            if at == len(feeds) and len(block) - start >= _STEP:
                feeds.append(passed)
            at += 1
        steps = _READ
    return lines - passed


def _after(block: bytes, start: int, lines: int) -> int:
    """Where a line begins, after so many line feeds."""
    for _ in range(lines):
        start = block.index(b"\n", start) + 1
    return start
