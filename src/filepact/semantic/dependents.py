"""Dependents: files that mention another by name, in which a change of that one may cause errors.

Nearly every import, in any language, has the other file's name as a word.  An index keeps hashes of
the words of each file; a collision only has one file too many asked about.
"""

from __future__ import annotations

import re
import threading
import time
from array import array
from bisect import bisect_left
from posixpath import basename, dirname
from typing import TYPE_CHECKING, Final
from zlib import crc32

from filepact.domain.document import WorkspacePath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from filepact.domain.document import RootId
    from filepact.workspace.observe import RawFiles, Stamp

__all__ = ["Dependents"]

_WORD: Final = re.compile(r"\w+")
_LONGEST: Final = 262_144
_MOST_FILES: Final = 100_000
_ALWAYS: Final = 50
_SLICE: Final = 0.02
_NONE: Final = array("I")
_INDEX_NAMES: Final = frozenset({"__init__", "__main__", "index", "main", "mod", "lib"})


class Dependents:
    """An index of the words of a root's files, by the files' stamps; for all threads.

    Args:
        root: The root.
        files: Reads files.
        claimed: Whether a server knows a file, by its absolute path.
    """

    def __init__(self, root: RootId, files: RawFiles, claimed: Callable[[str], bool]) -> None:
        self._root = root
        self._raw = files
        self._claimed = claimed
        self._words: dict[str, tuple[Stamp, array[int]]] = {}
        self._endings: dict[str, bool] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._over = threading.Event()

    def learn(self, files: Iterable[tuple[str, Stamp]], seconds: float) -> bool:
        """Index files that are new or have changed.

        What does not fit into the time is indexed in the background, for later questions.

        Args:
            files: All files beneath the root, with stamps.
            seconds: How long it may take; a few files are read in any case.

        Returns:
            Whether the words of all files are known.
        """
        wanted = dict(files)
        whole = self._learn(wanted, seconds)
        with self._lock:
            gone = self._words.keys() - wanted.keys()
            for name in gone:
                del self._words[name]
            if not whole and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(
                    target=self._go_on, args=(wanted,), name="words of files", daemon=True
                )
                self._thread.start()
        return whole

    def close(self) -> None:
        """Stop indexing in the background."""
        self._over.set()

    def _go_on(self, wanted: dict[str, Stamp]) -> None:
        while not self._learn(wanted, _SLICE) and not self._over.wait(_SLICE):
            if len(self._words) >= _MOST_FILES:
                return

    def _learn(self, wanted: dict[str, Stamp], seconds: float) -> bool:
        end, read = time.monotonic() + seconds, 0
        for name, stamp in wanted.items():
            has = self._words.get(name)
            if has is not None and (has[0] is stamp or has[0] == stamp):
                continue
            if not self._fits(name, stamp):
                with self._lock:
                    self._words[name] = (stamp, _NONE)
                continue
            if len(self._words) >= _MOST_FILES or (read > _ALWAYS and time.monotonic() > end):
                return False
            read += 1
            sample = self._raw.take(WorkspacePath(self._root, name))
            if sample is not None:
                # Under the stamp that was asked for: if the file has another by now, that is asked for next.
                with self._lock:
                    self._words[name] = (stamp, _hashes(sample.text or ""))
        return True

    def of(self, paths: Iterable[str]) -> list[str]:
        """Files that mention others, the nearest first.

        Args:
            paths: The others, beneath the root.
        """
        paths = set(paths)
        wanted = [sorted(map(_hash, _parts(path))) for path in paths]
        folders = {dirname(path) for path in paths}
        with self._lock:
            found = [
                name
                for name, (_, words) in self._words.items()
                if name not in paths
                and any(hashes and all(_has(words, one) for one in hashes) for hashes in wanted)
            ]
        return sorted(found, key=lambda name: (dirname(name) not in folders, name))

    def fits(self, path: WorkspacePath) -> bool:
        """Whether a server knows files with the ending of this one."""
        ending = basename(path.path).rpartition(".")[2]
        if ending not in self._endings:
            self._endings[ending] = self._claimed(path.absolute)
        return self._endings[ending]

    def _fits(self, name: str, stamp: Stamp) -> bool:
        """Whether a file may name others, by its ending and size."""
        if stamp.is_link or stamp.size > _LONGEST:
            return False
        return self.fits(WorkspacePath(self._root, name))


def _parts(path: str) -> list[str]:
    """The words by which another file mentions this one."""
    stem = basename(path).partition(".")[0]
    if stem in _INDEX_NAMES and dirname(path):
        stem = basename(dirname(path))
    return _WORD.findall(stem)


def _hashes(text: str) -> array[int]:
    return array("I", sorted({_hash(word) for word in set(_WORD.findall(text))}))


def _hash(word: str) -> int:
    return crc32(word.encode("utf-8", "surrogatepass"))


def _has(words: array[int], wanted: int) -> bool:
    at = bisect_left(words, wanted)
    return at < len(words) and words[at] == wanted
