"""Search the contents of the files below a folder."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal

from filepact.domain.deadline import FOREVER, Deadline
from filepact.domain.policy import EntryFilter
from filepact.errors import FilepactError, PathBlockedError, TimedOutError, TooLargeError
from filepact.text.confusables import shown_line
from filepact.text.glob import compile_filter, compile_selection
from filepact.text.query import searchable
from filepact.text.secrets import KEY_WORDS, holds_private_key
from filepact.values import dataclass, field
from filepact.workspace.find import ALL_SEARCHED, SkippedFiles, unsearched
from filepact.workspace.match_lines import MatchLine, guarded_line, lines_of, matches_at, spans_in
from filepact.workspace.read_ahead import GroupReader
from filepact.workspace.search import FILE_LIMIT, NO_INDEX

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from filepact.domain.deadline import Stopped
    from filepact.fs.root import Root
    from filepact.fs.trigrams import SmallFile
    from filepact.fs.walk import EntryList, TreeReader
    from filepact.text.codec import NamedEncoding
    from filepact.text.query import Query, QueryMatch
    from filepact.workspace.match_lines import MatchSpan
    from filepact.workspace.read_ahead import Read
    from filepact.workspace.search import KnownTexts, RootSearch

__all__ = ["FILE_LIMIT", "FileMatches", "GrepMode", "MatchLine", "TextSearchResult", "grep"]

_COUNT_SECONDS = 0.0005
_COUNT_BYTES = 64 << 20
_COUNT_HITS = 1_000
"""How far it is counted on when there is enough to show."""

_COUNTED_FILE = 8 << 10
_COUNTED_BYTES = 256 << 10
"""So much is counted in any case, each file for that much more, so that a small tree's totals are true."""

_MOST_COUNTED = 10_000
"""Most matches of one file that are counted where each file's are asked for."""

_STEP_SECONDS = 0.5
_FIRST_AHEAD = 64
_MOST_AHEAD = 1_024
"""How many files of which nothing is known are read at once, at first and later."""

_FIRST_AT_ONCE = 16
_MOST_AT_ONCE = 512
"""How many files that may match are looked into at once, at first and later."""

GrepMode = Literal["content", "files", "count"]


@dataclass(frozen=True, slots=True)
class FileMatches:
    """The matches in one file.

    Attributes:
        path: Relative to the root.
        count: Matches in the file, as far as they were counted.
        groups: Runs of consecutive lines; empty but in mode ``content``.
        floor: Whether there may be more than ``count``.
    """

    path: str
    count: int
    groups: tuple[tuple[MatchLine, ...], ...] = ()
    floor: bool = False


@dataclass(frozen=True, slots=True)
class TextSearchResult:
    """The answer to one search.

    Attributes:
        files: Files in path order, with what is shown of them.
        total: All matches (mode ``content``) or matching files (other modes), shown or not.
        matches: All matches, where they were counted.
        total_is_floor: Whether there may be more than ``total``.
        offset: How many were skipped.
        shown: How many are in ``files``.
        searched: Files that were looked into.
        binary: Files skipped because they hold no text.
        large: Files skipped because they are over ``FILE_LIMIT``.
        slow: Files given up because the pattern took too long there.
        unreadable: Files and folders that could not be read.
        stopped: Why the search ended early.
        more: Whether it ended because there was enough to show and counting took too long.
        unsearched: What was left out because of its name.
    """

    pattern: str
    mode: GrepMode
    files: tuple[FileMatches, ...]
    total: int
    matches: int
    total_is_floor: bool
    offset: int
    shown: int
    searched: int
    binary: int = 0
    large: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    stopped: Stopped = ""
    more: bool = False
    unsearched: SkippedFiles = ALL_SEARCHED


def grep(  # noqa: PLR0913 - as of the tool
    root: Root,
    base: str,
    query: Query,
    *,
    allow: Callable[[str, bool], bool],
    more: Collection[str] = (),
    deadline: Deadline = FOREVER,
    glob: str = "**/*",
    limit: int = 50,
    offset: int = 0,
    context: int = 0,
    mode: GrepMode = "content",
    progress: Callable[[int, str], None] = lambda _done, _what: None,
    overlay: Callable[[str], bytes | None] = lambda _path: None,
    net: bool = True,
    given: Callable[[str], NamedEncoding | None] = lambda _path: None,
    kept: Callable[[str, bytes], None] = lambda _path, _text: None,
    index: RootSearch = NO_INDEX,
    held: Collection[str] = (),
) -> TextSearchResult:
    """Search a file, or the files below a folder, in path order.

    When ``limit`` is reached the search goes on for a moment, only to count.

    Args:
        root: Where the names begin.
        base: A file or folder, as a canonical path; a file is searched whatever ``glob`` says.
        query: What to look for.
        allow: The guard's question; a file it refuses is never opened.
        more: Files that count as being there, though only ``overlay`` has them; searched last.
        deadline: Ends the search with what it has; asked between files and within long ones.
        glob: Only files whose path below the base matches; ``!`` before it turns it round.
        limit: Most matches (mode ``content``) or files to return.
        offset: How many of these to skip.
        context: Lines shown before and after each match.
        mode: Lines, names of files, or a count for each file.
        progress: Told now and then how many files were searched, and the last of them.
        overlay: Newer bytes of a file than those on disk, if somebody has them.
        net: Whether files that hold private keys are left out, and tokens are not shown.
        given: What is said about a file's encoding outside the file.
        kept: Told the text, as UTF-8, of each file of which lines are returned.
        index: What is known of the root's files.
        held: The files that ``overlay`` has newer bytes of.

    Raises:
        SearchFailedError: The glob cannot be understood.
        PathBlockedError: The base is a file that ``allow`` refuses.
    """
    accepts = compile_filter(glob)
    allow = allow if isinstance(allow, EntryFilter) else EntryFilter(allow)
    run = _Run(query, mode, limit, offset, context, net, given, kept, deadline)
    if root.place(base).kind == "file":
        if not allow(base, False):
            raise PathBlockedError(f"{base}: may not be read", path=base)
        run.file(base, overlay, partial(_stream, root, base))
        return run.answer()
    skip = 0 if base == "." else len(base) + 1
    come = [path for path in more if path == base or accepts(path[skip:])]
    if root.place(base).kind == "missing":
        run.come(come, overlay)
        return run.answer()
    with index.walk(root, base, allow=allow, cancelled=run.ended) as entries:
        known = index.known(base, allow, glob, query.needs, held)
        if known is not None:
            run.known(known, root, overlay, progress)
        else:
            run.unknown(entries, root, _selecting(glob, skip), held, overlay, progress)
        run.unreadable += entries.unreadable
        run.floor = run.floor or not entries.complete
    run.come(come, overlay)
    return run.answer(unsearched(entries, root, base, allow, accepts))


def _bytes(root: Root, path: str) -> bytes:
    return root.read(path, limit=FILE_LIMIT, follow=False).data


def _selecting(glob: str, skip: int) -> Callable[[EntryList], list[str]]:
    """Selects the files in a folder that a glob wants, as paths."""
    select = compile_selection(glob)

    def selected(batch: EntryList) -> list[str]:
        prefix, names, odd, *_ = batch
        files = [name for name in names if name not in odd] if odd else names
        return [prefix + name for name in select(prefix[skip:], files)]

    return selected


def _given(data: bytes) -> bytes:
    return data


def _stream(root: Root, path: str) -> bytes:
    with root.stream(path, follow=False) as (stream, size):
        data = b"" if size > FILE_LIMIT else stream.read(FILE_LIMIT + 1)
    if max(size, len(data)) > FILE_LIMIT:
        raise TooLargeError(f"{path}: over {FILE_LIMIT:,} bytes", path=path)
    return data


@dataclass(slots=True)
class _Run:
    """The matches of one search so far."""

    query: Query
    mode: GrepMode
    limit: int
    offset: int
    context: int
    net: bool
    given: Callable[[str], NamedEncoding | None]
    kept: Callable[[str, bytes], None]
    deadline: Deadline
    files: list[FileMatches] = field(default_factory=list)
    total: int = 0
    matches: int = 0
    shown: int = 0
    searched: int = 0
    binary: int = 0
    floor: bool = False
    more: bool = False
    stopped: Stopped = ""
    large: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    bytes_left: int = field(default_factory=lambda: _COUNT_BYTES)
    hits_left: int = field(default_factory=lambda: _COUNT_HITS)
    enough: bool = False
    counting: Deadline = FOREVER

    def ended(self) -> bool:
        """Whether to stop now: cancelled, out of time, or counted long enough."""
        why = self.deadline.why
        if self.enough and (why == "time" or self._counted()):
            # There is enough to show: all of these were only granted for counting.
            self.more = True
        elif why:
            self.stopped = why
        else:
            return False
        self.floor = True
        return True

    def _counted(self) -> bool:
        """Whether matches have been counted long enough."""
        if self.bytes_left <= 0 or self.hits_left <= 0:
            return True
        few = self.query.linear and self.bytes_left > _COUNT_BYTES - _COUNTED_BYTES
        return not few and self.counting.passed()

    def come(self, paths: Collection[str], overlay: Callable[[str], bytes | None]) -> None:
        """Search files that the disk does not have."""
        for path in paths:
            if not self.ended():
                self.file(path, overlay, lambda: b"")

    def unknown(
        self,
        entries: TreeReader,
        root: Root,
        select: Callable[[EntryList], list[str]],
        held: Collection[str],
        overlay: Callable[[str], bytes | None],
        progress: Callable[[int, str], None],
    ) -> None:
        """Search the files of a walk of which nothing is known; arguments as of `grep`.

        What ``select`` gives of a folder is wanted; of those ``held`` something else than the disk is searched.
        """
        query, waiting, step = self.query, list[str](), _FIRST_AHEAD
        read = partial(root.read_small, needs=query.needs, fold=not query.exact, odd=KEY_WORDS)
        with GroupReader(read) as ahead:
            for batch in entries.batches():
                waiting += select(batch)
                while len(waiting) >= step:
                    some, waiting = waiting[:step], waiting[step:]
                    ahead.add(some)
                    step = min(step * 2, _MOST_AHEAD)
                    if ahead.full:
                        progress(self.searched, self._unknown(ahead, read, root, held, overlay))
                    if self.ended():
                        return
            if waiting:
                ahead.add(waiting)
            while last := self._unknown(ahead, read, root, held, overlay):
                progress(self.searched, last)
                if self.ended():
                    return

    def _unknown(
        self,
        ahead: GroupReader,
        read: Read,
        root: Root,
        held: Collection[str],
        overlay: Callable[[str], bytes | None],
    ) -> str:
        """Search some that are read, of plain texts only those that hold what is needed; the last of them."""
        files = ahead.take()
        if files is None:
            return ""
        for path, now in zip(files.paths, files.each(read), strict=True):
            if now is False and path not in held:
                self.searched += 1
            elif self.ended():
                break
            elif now is True and path not in held and self.given(path) is None:
                self.searched += 1
            else:
                data = now[0] if isinstance(now, tuple) and len(now[0]) <= FILE_LIMIT else None
                got = partial(_bytes, root, path) if data is None else partial(_given, data)
                self.file(path, overlay, got)
        return files.paths[-1]

    def known(
        self,
        known: KnownTexts,
        root: Root,
        overlay: Callable[[str], bytes | None],
        progress: Callable[[int, str], None],
    ) -> None:
        """Search the files that may match, of those of which something is known."""
        self.searched += known.passed
        self.binary += known.binary
        at, step = 0, _FIRST_AT_ONCE
        while at < len(known.look) and not self.ended():
            some = known.look[at : at + min(step, self._lacking(at))]
            self._several(some, known, root, overlay)
            progress(self.searched, some[-1])
            at, step = at + len(some), min(step * 2, _MOST_AT_ONCE)

    def _lacking(self, at: int) -> int:
        """How many files to look into at once: about as many as it takes until there is enough to show."""
        if self.enough:
            return _FIRST_AT_ONCE
        if not self.total or not at:
            return _MOST_AT_ONCE
        return max((self.offset + self.limit - self.total) * at // self.total, _FIRST_AT_ONCE)

    def _several(
        self,
        paths: list[str],
        known: KnownTexts,
        root: Root,
        overlay: Callable[[str], bytes | None],
    ) -> None:
        """Search some files that may match: the texts of those that are known at once, and then what is left."""
        read = self._read(paths, known, root)
        texts = {path: one[0] for path, one in read.items() if one}
        order, spans = list(texts), spans_in(self.query, list(texts.values()))
        found = {order[at]: spans[at] for at in spans}
        searched = 0
        for place, path in enumerate(paths):
            if path not in found and path in read:
                continue
            if self.ended():
                return
            # Those that were passed over have been searched as well.
            self.searched += place - searched
            searched = place + 1
            if path in found:
                # It is as it was when it was found to be text without a key.
                self._text(path, texts[path], found[path])
            else:
                self.file(path, overlay, partial(_bytes, root, path), known)
        self.searched += len(paths) - searched

    def _read(
        self, paths: list[str], known: KnownTexts, root: Root
    ) -> dict[str, SmallFile | Literal[False]]:
        """Read those of some files that are known, and are still as they were, if they hold what is needed."""
        some = [path for path in paths if known.sure(path) and path not in known.recoded]
        query = self.query
        found: dict[str, SmallFile | Literal[False]] = {}
        reading = root.read_small(some, query.needs, fold=not query.exact)
        for path, read in zip(some, reading, strict=True):
            if read is False:
                found[path] = False
            elif isinstance(read, tuple) and known.same(path, read[1]):
                found[path] = read
        return found

    def file(
        self,
        path: str,
        overlay: Callable[[str], bytes | None],
        read: Callable[[], bytes],
        known: KnownTexts | None = None,
    ) -> None:
        """Search one file, which ``read`` reads; a file that cannot be searched is noted."""
        try:
            newer = overlay(path)
            data = read() if newer is None else newer
        except TooLargeError:
            self.large.append(path)
            return
        except FilepactError:
            self.unreadable.append(path)
            return
        # A known text had no key in it; of one that has changed since only its lines matter.
        known = known if known is not None and known.sure(path) else None
        if self.net and known is None and holds_private_key(data):
            self.unreadable.append(path)
            return
        text = searchable(data, name=path, given=partial(self.given, path))
        if text is None:
            self.binary += 1
            return
        if known is not None:
            spans = spans_in(self.query, [text])
            if not spans:
                self.searched += 1
                return
            if self.net and holds_private_key(data):
                self.unreadable.append(path)
                return
            self._text(path, text, spans[0])
            return
        self._text(path, text)

    def _text(self, path: str, text: bytes, spans: list[MatchSpan] | None = None) -> None:
        """Search one text, or take its matches from where they are known to stand."""
        self.searched += 1
        counting = self.enough
        prepared = self.query.prepare(text)
        try:
            self._search(path, prepared, spans if prepared is text else None)
        except TimedOutError:
            self.floor = True
            if not self.ended():
                self.slow.append(path)
                # A pattern that was too slow twice is so on every file: it shall not add up.
                if len(self.slow) > 1:
                    self.deadline = self.deadline.within(0)
        if self.mode == "content" and self.files and self.files[-1].path == path:
            self.kept(path, text)
        if counting:
            self.bytes_left -= len(text) + _COUNTED_FILE

    def answer(self, left_out: SkippedFiles = ALL_SEARCHED) -> TextSearchResult:
        return TextSearchResult(
            pattern=self.query.pattern,
            mode=self.mode,
            files=tuple(self.files),
            total=self.total,
            matches=self.matches,
            total_is_floor=self.floor,
            offset=self.offset,
            shown=self.shown,
            searched=self.searched,
            binary=self.binary,
            large=tuple(self.large),
            slow=tuple(self.slow),
            unreadable=tuple(self.unreadable),
            stopped=self.stopped,
            more=self.more,
            unsearched=left_out,
        )

    def _search(self, path: str, text: bytes, spans: list[MatchSpan] | None) -> None:
        seconds = max(0.05, min(_STEP_SECONDS, self.deadline.left, self.counting.left))
        if self.mode == "content":
            self._search_lines(path, text, seconds, spans)
            return
        most = 1 if self.mode == "files" else _MOST_COUNTED + 1
        count = self._count(text, most, seconds, spans)
        if not count:
            return
        cut = count > _MOST_COUNTED
        count = min(count, _MOST_COUNTED)
        self.floor = self.floor or cut
        self.total += 1
        self.matches += count
        if self.enough:
            self.hits_left -= 1
        if self.offset < self.total <= self.offset + self.limit:
            self.files.append(FileMatches(path, count, floor=cut))
            self._note_shown(1)

    def _count(self, text: bytes, most: int, seconds: float, spans: list[MatchSpan] | None) -> int:
        if spans is not None:
            return min(len(spans), most)
        return self.query.count(text, most, stop=self.ended, seconds=seconds)

    def _search_lines(
        self, path: str, text: bytes, seconds: float, spans: list[MatchSpan] | None
    ) -> None:
        """Take the matches that are wanted, and count on a little way."""
        wanted = self.offset + self.limit
        if self.total >= wanted:
            self._count_on(self._count(text, self.hits_left, seconds, spans))
            return
        hits: Iterator[QueryMatch]
        if spans is None:
            hits = self.query.hits(text, stop=self.ended, seconds=seconds)
        else:
            hits = matches_at(text, spans)
        kept: list[QueryMatch] = []
        count = 0
        most = max(wanted - self.total, 0) + self.hits_left
        try:
            for hit in islice(hits, most):
                count += 1
                if self.offset < self.total + count <= wanted:
                    kept.append(hit)
            if count == most:
                self.floor = self.more = True
        finally:
            self.total += count
            self.matches += count
            if self.total > wanted:
                self.hits_left -= min(count, self.total - wanted)
            if kept:
                show = guarded_line if self.net else shown_line
                groups = lines_of(text, kept, self.context, show)
                self.files.append(FileMatches(path, count, groups))
                self._note_shown(len(kept))

    def _count_on(self, count: int) -> None:
        self.total += count
        self.matches += count
        self.hits_left -= count
        if not self.hits_left:
            self.floor = self.more = True

    def _note_shown(self, count: int) -> None:
        self.shown += count
        if self.shown >= self.limit:
            self.enough = True
            self.counting = self.deadline.within(_COUNT_SECONDS)
