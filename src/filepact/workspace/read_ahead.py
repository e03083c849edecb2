"""Files that are read, and those left out that cannot match, while the walk that finds them goes on."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final, Self

from filepact.values import begun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.fs.trigrams import FileRead

    Read = Callable[[list[str]], Iterator[FileRead]]

__all__ = ["FileGroup", "GroupReader"]

_MOST_BYTES: Final = 8 << 20
"""So many bytes of some files are held; the others are read when it is their turn."""

_MOST_THREADS: Final = 2
_MOST_WAITING: Final = 4


class FileGroup:
    """A group of files, and the results read so far.

    Attributes:
        paths: The files.
    """

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        self._got: list[FileRead] = []
        self._failed: BaseException | None = None
        self._done = threading.Event()

    def fill(self, read: Read) -> None:
        """Read them, up to a bound."""
        size = 0
        try:
            for found in read(self.paths):
                self._got.append(found)
                size += len(found[0]) if isinstance(found, tuple) else 0
                if size > _MOST_BYTES:
                    break
        except Exception as error:  # noqa: BLE001 - raised where they are asked for
            self._failed = error
        finally:
            self._done.set()

    def each(self, read: Read) -> Iterator[FileRead]:
        """The result for each file, in order; the rest is read now."""
        self._done.wait()
        if self._failed is not None:
            raise self._failed
        yield from self._got
        if len(self._got) < len(self.paths):
            yield from read(self.paths[len(self._got) :])


class GroupReader:
    """Reads files in threads, in the order in which they are given; a context manager.

    Args:
        read: Reads some.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._waiting: deque[FileGroup] = deque()
        self._open: deque[FileGroup | None] = deque()
        self._more = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.clear()
        for _ in self._threads:
            self._open.append(None)
            self._more.release()
        for thread in self._threads:
            thread.join()

    @property
    def full(self) -> bool:
        """Whether enough files wait to be taken."""
        return len(self._waiting) >= _MOST_WAITING

    def add(self, paths: list[str]) -> None:
        """Have files read."""
        files = FileGroup(paths)
        self._waiting.append(files)
        self._open.append(files)
        if len(self._threads) < _MOST_THREADS:
            thread = threading.Thread(target=self._run, name="search", daemon=True)
            if begun(thread):
                self._threads.append(thread)
            elif not self._threads:
                self._open.pop()
                files.fill(self._read)
                return
        self._more.release()

    def take(self) -> FileGroup | None:
        """The files that were given first and not taken yet; None where there are none."""
        return self._waiting.popleft() if self._waiting else None

    def _run(self) -> None:
        while True:
            self._more.acquire()
            try:
                files = self._open.popleft()
            except IndexError:
                continue  # what was given was taken back
            if files is None:
                return
            files.fill(self._read)
