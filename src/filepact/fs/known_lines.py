"""Line positions of files that are too large to be loaded, so that any lines of them are one read away."""

from __future__ import annotations

import os
import threading
import time
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from filepact.text.secrets import LONGEST_KEY, LONGEST_WORD, mentions_private_key
from filepact.values import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from filepact.fs.read_only_root import OpenFile
    from filepact.text.codec import Encoding, NamedEncoding

__all__ = ["KnownExcerpt", "KnownLines"]

_STEP = 16_384
_READ = 64  # steps that are read at a time where nothing is known
_MOST = 1 << 18  # numbers that are kept, of all files: 4 GiB of text
_RACY = 2 * 10**9
"""Nanoseconds in which a file may change twice under one stamp, on some file systems."""

_LINE = 512  # bytes that are read for each line
_LEAST = 4_096  # and at least
_SMALLEST = 512  # bytes in which line feeds are looked for one by one
_NEAR = 4_096  # bytes above lines that are searched each time for a key, which hardly one is longer than
_PARTS = 32  # of one file that are known to have no word of a key

_Stamp = tuple[int, ...]


class KnownExcerpt(NamedTuple):
    """Lines of a file of which it was known where they stand; no key is near them.

    Attributes:
        data: They, with their ends.
        start: Where in the file they begin.
        more: Whether lines follow.
        encoding: Of the file.
    """

    data: bytes
    start: int
    more: bool
    encoding: Encoding


@dataclass(slots=True, eq=False)
class _Known:
    """The facts about one file, valid as long as it has this stamp.

    Attributes:
        feeds: How many line feeds stand before the end of each step, as far as it was read.
        told: Its name, and what was said of its encoding, by which the encoding was found.
        clean: Parts ``[start, end)`` that were searched for the words of keys, and have none.
    """

    stamp: _Stamp
    feeds: array[int] = field(default_factory=lambda: array("Q"))
    told: tuple[str, NamedEncoding | None] = ("", None)
    encoding: Encoding | None = None
    clean: tuple[tuple[int, int], ...] = ()


class KnownLines:
    """How many line feeds stand before each 16 kB of files, as far as they were read, and what encoding they have.

    What is known of a file counts as long as its stamp is the same, and only if that stamp was two
    seconds old when the file was read: a younger one is racy.  For all threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[int, int], _Known] = {}
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
        known = self._of(file, stamp)
        # As a copy: another thread may find out more at the same time.
        feeds = array("Q") if known is None else known.feeds[:]
        some = len(feeds)
        missing = _pass_over(stream, lines, feeds, check)
        settled = now - before.st_ctime_ns >= _RACY
        if settled and len(feeds) > some and _stamp(os.fstat(stream.fileno())) == stamp:
            self._keep(file, stamp, feeds)
        return missing

    def learn(
        self, opened: OpenFile, when: int, encoding: Encoding, given: NamedEncoding | None
    ) -> None:
        """Keep the encoding of a file, as its first bytes have it.

        Args:
            opened: The file.
            when: The time before they were read, in nanoseconds since the epoch.
            encoding: What was found.
            given: What was said about it outside the file.
        """
        status = opened.status
        if status is None or when - status.st_ctime_ns < _RACY:
            return
        if opened.present_stamp() != opened.stamp:
            return
        file, stamp = (status.st_dev, status.st_ino), _stamp(status)
        if self._of(file, stamp) is None:
            self._keep(file, stamp, array("Q"))
        known = self._of(file, stamp)
        if known is not None:
            known.told, known.encoding = (opened.info.path, given), encoding

    def part(
        self, opened: OpenFile, given: NamedEncoding | None, first: int, count: int, most: int
    ) -> KnownExcerpt | None:
        """Lines of a file, by one read; None where not enough is known, or a key may be near.

        Args:
            opened: The file.
            given: What is said about its encoding outside the file.
            first: 0-based number of the first line; below 0 it counts from the end.
            count: How many, at least 1.
            most: Most bytes of them.
        """
        status = opened.status
        known = None if status is None else self._of((status.st_dev, status.st_ino), _stamp(status))
        if status is None or known is None or known.encoding is None or count < 1:
            return None
        if known.told != (opened.info.path, given):
            return None
        room = min(max(_LINE * max(count, -first), _LEAST), 4 * most)
        begin = len(known.encoding.bom)
        if first < 0:
            step, left, end = max(status.st_size - room, begin), first, status.st_size
        else:
            # Behind the last step that was counted as well: mostly the line is in the next one.
            at = bisect_left(known.feeds, first) if first else 0
            step = at * _STEP if first else begin
            left = first - (known.feeds[at - 1] if at and first else 0)
            end = min(step + _STEP * bool(first) + room, status.st_size)
        # Above the lines there may be the beginning of a key, in what was not searched yet.
        reach = max(step - LONGEST_KEY, 0)
        searched = max((b for a, b in known.clean if a <= reach < b), default=reach)
        fresh = max(searched - LONGEST_WORD, reach) if searched > reach else reach
        source = min(max(step - _NEAR, 0), fresh)
        data = opened.read_part(source, end - source)
        if data is None:
            return None
        cut = _cut(data, step - source, left, count, to_end=end == status.st_size)
        if cut is None or cut[1] - cut[0] >= most:
            return None
        start, stop = cut
        more = source + stop < status.st_size
        near = max(start - _NEAR, 0)
        if mentions_private_key(data[min(fresh - source, near) : stop]):
            return None
        known.clean = _joined(known.clean, reach, source + stop)
        return KnownExcerpt(data[start:stop], source + start, more, known.encoding)

    def _of(self, file: tuple[int, int], stamp: _Stamp) -> _Known | None:
        known = self._known.get(file)
        return known if known is not None and known.stamp == stamp else None

    def _keep(self, file: tuple[int, int], stamp: _Stamp, feeds: array[int]) -> None:
        size = len(feeds) + 1
        if size > _MOST:
            return
        with self._lock:
            known = self._of(file, stamp) or _Known(stamp)
            self._forget(file)
            while self._known and self._room < size:
                self._forget(next(iter(self._known)))
            known.feeds = feeds
            self._known[file] = known
            self._room -= size

    def _forget(self, file: tuple[int, int]) -> None:
        known = self._known.pop(file, None)
        self._room += 0 if known is None else len(known.feeds) + 1


def _cut(data: bytes, at: int, left: int, count: int, *, to_end: bool) -> tuple[int, int] | None:
    """Where some lines begin and end in a part of a file; None where they are not all in it.

    Args:
        data: The part.
        at: Where a line begins, or the first from which lines are counted back.
        left: How many lines to pass over from there; below 0 they are counted from the end.
        count: How many lines.
        to_end: Whether the part is the end of the file, and the lines may be fewer.
    """
    if left < 0:
        start = len(data) - data.endswith(b"\n")
        for _ in range(-left):
            start = data.rfind(b"\n", at, start)
            if start < 0:
                return None
        start += 1
    else:
        found = _line_start(data, at, left)
        if found is None or found == len(data):
            return None
        start = found
    if count >= -left > 0:
        return start, len(data)
    stop = _line_start(data, start, count)
    if stop is None and to_end:
        stop = len(data)
    return None if stop is None else (start, stop)


def _line_start(data: bytes, at: int, lines: int) -> int | None:
    """Where a line begins, so many line feeds after a place; None where there are fewer."""
    step = _STEP
    while lines and step > _SMALLEST:
        step //= 4
        while lines and (found := data.count(b"\n", at, at + step)) < lines:
            lines -= found
            at += step
            if at >= len(data):
                return None
    for _ in range(lines):
        at = data.find(b"\n", at) + 1
        if not at:
            return None
    return at


def _joined(
    parts: tuple[tuple[int, int], ...], start: int, end: int
) -> tuple[tuple[int, int], ...]:
    """Parts with one more; those that touch it become one with it, and of too many the oldest goes."""
    apart = [(a, b) for a, b in parts if b < start or end < a]
    for a, b in parts:
        if not (b < start or end < a):
            start, end = min(a, start), max(b, end)
    return (*apart, (start, end))[-_PARTS:]


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _pass_over(stream: BinaryIO, lines: int, feeds: array[int], check: Callable[[], None]) -> int:
    """See `KnownLines.skip`, of at least one line; adds what it counts on its way.

    ``feeds`` has of each whole step, from the first on, how many line feeds stand in it and before it.
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
