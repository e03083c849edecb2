"""Dependents: files in which a change of others may cause errors.

An index keeps hashes of the words of each file; a collision only has one file too many asked about.
A file is a candidate where it has a word of the changed lines, before or after, or of what encloses
them, or the name of a changed file.  Types flow on through what is declared where such words are
used, so its names are looked for as well.  That is a guess, and never known to be all.
"""

from __future__ import annotations

import math
import threading
import time
from array import array
from bisect import bisect_left
from itertools import islice
from posixpath import basename, dirname, splitext
from typing import TYPE_CHECKING, Final
from zlib import crc32

from filepact.domain.document import WorkspacePath
from filepact.values import late_regex
from filepact_diagnostics.semantic.changed_names import (
    changed_places,
    declared_in,
    flowing_names,
    places_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from filepact.domain.document import RootId
    from filepact.workspace.external_files import ExternalFiles
    from filepact.workspace.observe import Stamp
    from filepact_diagnostics.lsp.diagnostics import FileDiagnostics, ServerDiagnostics
    from filepact_diagnostics.lsp.features import QueryAnswer
    from filepact_diagnostics.semantic.updates import TextChange

__all__ = ["DependentIndex", "has_error_with", "place_of_name", "words_of"]

_WORD: Final = late_regex(r"\w+")
_STEERING: Final = late_regex(
    r"(ts|js)config[\w.-]*\.json|pyrightconfig\.json|package\.json|(pyproject|ty|Cargo)\.toml|setup\.cfg"
    r"|go\.(mod|work)|compile_flags\.txt|compile_commands\.json|\.clangd"
)
_LONGEST: Final = 262_144
_MOST_FILES: Final = 100_000
_ALWAYS: Final = 50
_SLICE: Final = 0.02
_NONE: Final = array("I")
_INDEX_NAMES: Final = frozenset({"__init__", "__main__", "index", "main", "mod", "lib"})
_MOST_NAMES: Final = 40
_MOST_READ: Final = 40
_HOPS: Final = 2
_FADING: Final = 0.5
_NEAR: Final = 0.5
_BARREL: Final = 4.0
_COMMON: Final = 0.5
_FLOWING_COMMON: Final = 0.2
_FLOWING: Final = 0.5
"""Of names that types flow on with: in what part of the files they stand at most, and their least weight."""
_FEW_FILES: Final = 20
_ASKED: Final = 40
_FEWEST: Final = 8
_MOST_ASKED: Final = 150
_FEW: Final = 6
_ALL_SECONDS: Final = 1.5
_BEHIND: Final = 3
"""How many files that depend on a change are asked about at first, at least and at most; how many answers
say how quick a server is; how long all of them may take it; and how many times as many where nobody waits."""
_MOST_PLACES: Final = 8
_MOST_FLOWS: Final = 8
_MOST_USING: Final = 150
_MOST_HOLDING: Final = 300
_MOST_HOLDING_AT_ONCE: Final = 60
"""Of servers' answers where something is used: after how many places at once, steps, files, and files that
hold the name no more are asked about."""
_USES_SHARE: Final = 0.25
_USES_AT_ONCE: Final = 0.3
_USES_BEHIND: Final = 3.0
_MOST_LATE: Final = 2


class DependentIndex:
    """An index of the words of a root's files, by the files' stamps; for all threads.

    Args:
        root: The root.
        files: Reads files.
        claimed: Whether a server knows a file, by its absolute path.

    Attributes:
        most: About how many files to ask.
    """

    def __init__(self, root: RootId, files: ExternalFiles, claimed: Callable[[str], bool]) -> None:
        self._root = root
        self._raw = files
        self._claimed = claimed
        self._words: dict[str, tuple[Stamp, array[int]]] = {}
        self._places: dict[int, list[str]] = {}
        self._endings: dict[str, bool] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self.most = _ASKED
        self._took: dict[str, tuple[float, int]] = {}

    def pace(self, answers: Iterable[ServerDiagnostics]) -> None:
        """Let how many files are asked about follow how long the servers took."""
        for one in answers:
            count = sum(each.fresh for each in one.reports)
            if count >= _FEW or (count and count < len(one.reports)):
                wanted = int(_ALL_SECONDS * count / max(one.seconds, 0.001))
                self.most = min(max((self.most + wanted) // 2, _FEWEST), _MOST_ASKED)

    def wanted(self, *, behind: bool) -> int:
        """About how many files to ask; more of them where nobody waits."""
        return min(self.most * _BEHIND, _MOST_ASKED) if behind else self.most

    def fitting(self, seconds: float) -> int:
        """How many files servers may manage in a time; a few in any case."""
        return max(int(self.most * seconds / _ALL_SECONDS), _FEWEST)

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
                self._put(name, stamp, _hashes(sample.text or ""))
        return True

    def of(self, paths: Iterable[str]) -> list[str]:
        """Files that mention others, beneath the root; the nearest first."""
        paths = set(paths)
        folders = {dirname(path) for path in paths}
        with self._lock:
            found = {
                name
                for hashes in (list(map(_hash, _parts(path))) for path in paths)
                for name in min((self._places.get(one, []) for one in hashes), key=len, default=[])
                if name not in paths
                and name in self._words
                and all(_has(self._words[name][1], one) for one in hashes)
            }
        return sorted(found, key=lambda name: (dirname(name) not in folders, name))

    def reaching(self, paths: Iterable[str], most: int) -> dict[str, None]:
        """Files that mention others, or that mention such files; after `most` no more are looked for."""
        found, new = dict[str, None](), list(paths)
        while new and len(found) <= most:
            new = [one for one in self.of(new) if one not in found]
            found |= dict.fromkeys(new)
        return found

    def _put(self, name: str, stamp: Stamp, words: array[int]) -> None:
        """Keep a file's words; where it had some before, what it has no more is left to be found out."""
        with self._lock:
            was = self._words.get(name, (stamp, _NONE))[1]
            self._words[name] = (stamp, words)
            for one in words:
                if not _has(was, one):
                    self._places.setdefault(one, []).append(name)

    def mentioning(self, name: str) -> list[str]:
        """Files that hold a word, in path order; now and then one that does not."""
        wanted = _hash(name)
        with self._lock:
            found = [
                path
                for path in dict.fromkeys(self._places.get(wanted, ()))
                if path in self._words and _has(self._words[path][1], wanted)
            ]
        return sorted(found)

    def holding(self, name: str) -> int:
        """In about how many files a word stands."""
        with self._lock:
            return len(self._places.get(_hash(name), ()))

    def including(
        self, paths: Iterable[str], endings: Sequence[tuple[str, ...]], most: int
    ) -> dict[str, None] | None:
        """Files whose texts hold the names of others, as where they are included, or of those that do.

        Args:
            paths: The others, beneath the root.
            endings: Of each server, those of texts that are included.
            most: How many are wanted.

        Returns:
            None where others may be concerned: a server looks at more than what is included, or none
            names a text that an option may include.
        """
        changed = set(paths)
        found = self.naming(changed, most) if all(endings) else {}
        unnamed = not found and any(path.endswith(one) for path in changed for one in endings)
        return None if unnamed or not all(endings) else found

    def naming(self, paths: Collection[str], most: int) -> dict[str, None]:
        """Files whose texts hold the names of others, beneath the root, or of those that do; after `most` no more are looked for."""
        found: dict[str, None] = {}
        new = set(paths)
        while new and len(found) <= most:
            names = {basename(path) for path in new}
            hashes = [list(map(_hash, _WORD.findall(name))) for name in names]
            with self._lock:
                holding = [
                    path
                    for path, (_, words) in self._words.items()
                    if path not in paths
                    and path not in found
                    and any(all(_has(words, one) for one in some) for some in hashes)
                ]
            texts = ((path, self._raw.take(WorkspacePath(self._root, path))) for path in holding)
            new = {
                path
                for path, one in texts
                if one and any(name in (one.text or "") for name in names)
            }
            found |= dict.fromkeys(sorted(new))
        return found

    def steered(self, names: Iterable[str], files: Iterable[tuple[str, Stamp]]) -> bool:
        """Whether one of some names says how sources are read: by itself, or named by another of the files that does."""
        bases = {basename(name) for name in names}
        if any(map(_STEERING.fullmatch, bases)):
            return True
        bases = {base for base in bases if base.endswith((".json", ".jsonc", ".toml", ".cfg"))}
        above = (name for name, _ in files if bases and _STEERING.fullmatch(basename(name)))
        texts = (self._raw.take(WorkspacePath(self._root, name)) for name in above)
        return any(one and any(base in (one.text or "") for base in bases) for one in texts)

    # -- what a server knows --------------------------------------------------------------

    def patience(self, server: str, rest: float, *, behind: bool) -> float:
        """How many seconds a server has to tell where something is used; 0 not to ask it.

        One that took too long is asked where nobody waits, and then no more.

        Args:
            server: Its name.
            rest: How many seconds there are.
            behind: Whether nobody waits.
        """
        took, late = self._took.get(server, (0.0, 0))
        if late >= _MOST_LATE or (took > _USES_AT_ONCE and not behind):
            return 0.0
        return min(rest * _USES_SHARE, _USES_BEHIND if behind else _USES_AT_ONCE)

    def uses(
        self,
        server: str,
        changes: Iterable[TextChange],
        ask: Callable[[Sequence[tuple[str, int]]], QueryAnswer | None],
        read: Callable[[str], str | None],
        *,
        behind: bool,
    ) -> list[str]:
        """Files that use what changed lines declare, or what is declared by such uses, the nearest first.

        Args:
            server: Whose answers these are.
            changes: What became, or is to become, of files.
            ask: Where the names at places are used: files, absolute, and offsets.
            read: The text of a file on the disk, by its absolute path; None if no server knows it.
            behind: Whether nobody waits.

        Returns:
            Absolute paths.
        """
        began, whole = time.monotonic(), True
        most = _MOST_HOLDING if behind else _MOST_HOLDING_AT_ONCE
        asked, found = set[tuple[str, int]](), dict[str, None]()
        places: list[tuple[str, dict[int, str]]] = []
        for one in changes:
            text = read(one.absolute)
            if text is not None:
                other = one.after if text == one.before else one.before
                places.append((one.absolute, changed_places(text, other)))
        for _ in range(_MOST_FLOWS):
            new = [
                (path, offset)
                for path, some in places
                for offset, name in some.items()
                if (path, offset) not in asked
                and not name.startswith("__")
                and self.holding(name) <= most
            ][:_MOST_PLACES]
            answer = ask(new) if new and len(found) < _MOST_USING else None
            whole = whole and (not new or (answer is not None and answer.state != "late"))
            if answer is None or answer.value is None:
                break
            asked |= set(new)
            spans = sorted({span for some in answer.value for span in some or ()})
            whole = whole and None not in answer.value
            lines: dict[str, dict[int, None]] = {}
            for span in spans:
                lines.setdefault(span.path, {})[span.start.line] = None
            texts = {path: text for path in lines if (text := read(path)) is not None}
            found |= dict.fromkeys(texts)
            places = [
                (path, places_of(text, lines[path], 2, flowing=True))
                for path, text in texts.items()
            ]
        took, late = time.monotonic() - began, self._took.get(server, (0.0, 0))[1]
        self._took[server] = (took if whole else math.inf, late + (behind and not whole))
        return list(found)

    # -- what words tell ------------------------------------------------------------------

    def candidates(
        self, names: Mapping[str, float], paths: Iterable[str], *, seconds: float = math.inf
    ) -> list[str]:
        """Files in which a change may cause errors, the likeliest first.

        Args:
            names: Identifiers that the change is about, with how much each counts.
            paths: The changed files, beneath the root.
            seconds: How long texts may be read for files that types may flow on to.
        """
        end, changed = time.monotonic() + seconds, set(paths)
        stems = {word: 1.0 for path in changed for word in _parts(path)}
        wanted = {**stems, **_identifiers(names)}
        scores = self._scores(wanted, changed)
        known = set(wanted)
        flows = {name for name, weight in wanted.items() if weight >= _FLOWING}
        # Of what stands in many files its uses tell nothing.
        common = max(len(self._words) * _FLOWING_COMMON, _FEW_FILES)
        for _ in range(_HOPS):
            flows = {name for name in flows if self.holding(name) <= common}
            found: dict[str, float] = {}
            for name in islice(_ranked(scores), _MOST_READ if flows else 0):
                if time.monotonic() >= end:
                    break
                sample = self._raw.take(WorkspacePath(self._root, name))
                if sample is not None and sample.text is not None and name not in changed:
                    found |= dict.fromkeys(flowing_names(sample.text, flows) - known, 1.0)
            new = _identifiers(found)
            if not new:
                break
            known |= new.keys()
            flows |= new.keys()
            for name, score in self._scores(new, changed).items():
                scores[name] = max(scores.get(name, 0.0), score * _FADING)
        return list(_ranked(scores))

    def _scores(self, names: Mapping[str, float], changed: set[str]) -> dict[str, float]:
        """A score for each file: how likely it depends on given names; rare names count more."""
        hashes = {name: _hash(name) for name in names}
        folders = {dirname(path) for path in changed}
        with self._lock:
            count = len(self._words)
            has = {
                name: [
                    path
                    for path in dict.fromkeys(self._places.get(one, ()))
                    if (held := self._words.get(path)) is not None and _has(held[1], one)
                ]
                for name, one in hashes.items()
                if count <= _FEW_FILES or len(self._places.get(one, ())) <= count * _COMMON
            }
        scores: dict[str, float] = {}
        for name, holding in has.items():
            rarity = math.log((count + 1) / (len(holding) + 0.5)) + 0.1
            for path in holding:
                if path not in changed:
                    near = _nearness(path) if dirname(path) in folders else 0.0
                    scores[path] = scores.get(path, near) + max(rarity, 0.1) * names[name]
        return scores

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


def _identifiers(names: Mapping[str, float]) -> dict[str, float]:
    """The names that may be identifiers, the longer ones first, and not too many."""
    fit = [name for name in names if len(name) > 1 and not name[0].isdigit()]
    fit.sort(key=lambda name: (-names[name], -len(name)))
    return {name: names[name] for name in fit[:_MOST_NAMES]}


def _ranked(scores: Mapping[str, float]) -> Iterator[str]:
    return iter(sorted(scores, key=lambda name: (-scores[name], name)))


# -- words ---------------------------------------------------------------------------------


def _parts(path: str) -> list[str]:
    """The words by which another file mentions this one."""
    stem = basename(path).partition(".")[0]
    if stem in _INDEX_NAMES and dirname(path):
        stem = basename(dirname(path))
    return _WORD.findall(stem)


def words_of(change: TextChange) -> set[str]:
    """The words by which others may use a file that comes: its name, and what it declares."""
    lines = (change.after or "").splitlines()
    return {*_parts(change.path.path), *(name for one in lines for name in declared_in(one))}


def has_error_with(report: FileDiagnostics, words: set[str]) -> bool:
    """Whether a line in which an error begins holds one of some words."""
    lines = (one.line for one in report.diagnostics if one.severity == "error")
    return any(not words.isdisjoint(_WORD.findall(line)) for line in lines)


def place_of_name(path: str) -> tuple[str, str]:
    """The folder and the name under which others find a file, whatever it ends with."""
    folder, stem = dirname(path), splitext(basename(path))[0].removesuffix(".d")
    return (
        (dirname(folder), basename(folder)) if stem in _INDEX_NAMES and folder else (folder, stem)
    )


def _nearness(path: str) -> float:
    """The weight of a file by its place beside a changed one, whose declarations it may pass on."""
    return _BARREL if basename(path).partition(".")[0] in _INDEX_NAMES else _NEAR


def _hashes(text: str) -> array[int]:
    return array("I", sorted({_hash(word) for word in set(_WORD.findall(text))}))


def _hash(word: str) -> int:
    return crc32(word.encode("utf-8", "surrogatepass"))


def _has(words: array[int], wanted: int) -> bool:
    at = bisect_left(words, wanted)
    return at < len(words) and words[at] == wanted
