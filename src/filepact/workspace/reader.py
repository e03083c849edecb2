"""The reader: the port of tools that read, which sees files through the guard alone."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from posixpath import join
from typing import TYPE_CHECKING

from filepact.domain.document import WorkspacePath
from filepact.domain.policy import EntryFilter
from filepact.errors import (
    ApprovalRequiredError,
    FilepactError,
    NotAFileError,
    NotFoundError,
    PathBlockedError,
)
from filepact.text.confusables import shown_name
from filepact.text.lines import chomp, line_start
from filepact.text.picture import MAX_PICTURE, check_picture
from filepact.text.raw_bytes import holds_raw_bytes, with_escapes
from filepact.text.secrets import LONGEST_KEY
from filepact.values import dataclass, replace
from filepact.workspace.documents import EDIT_LIMIT
from filepact.workspace.excerpt import excerpt_of, stream_excerpt, stream_window, window
from filepact.workspace.find import find_files, tree
from filepact.workspace.grep import grep
from filepact.workspace.location import alike_note, check_is_file, not_there
from filepact.workspace.search import NO_INDEX
from filepact.workspace.target import proposed_gone

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
    from typing import Literal

    from filepact.domain.deadline import Deadline
    from filepact.domain.document import Document, RootId
    from filepact.domain.operation import Session
    from filepact.fs.root import Root
    from filepact.text.picture import Image
    from filepact.text.query import Query
    from filepact.workspace.documents import Documents
    from filepact.workspace.excerpt import Excerpt, ExcerptOptions, LineExcerpt
    from filepact.workspace.find import FolderTree, NameSearchResult
    from filepact.workspace.grep import MatchLine, TextSearchResult
    from filepact.workspace.guard import Guard
    from filepact.workspace.location import Location, Name
    from filepact.workspace.pending import ProposalFile
    from filepact.workspace.permission_log import PermissionLog
    from filepact.workspace.read_tracker import KnownTextCache, Span
    from filepact.workspace.search import RootSearch, SearchIndexes

__all__ = ["ByteExcerpt", "Reader"]

_HEAD = 65_536
_SMALL = 1_048_576


@dataclass(frozen=True, slots=True)
class ByteExcerpt:
    """A range of a file's bytes.

    Attributes:
        first: Where in the file they begin.
        size: Bytes of the whole file.
        revision: Short revision; None for a file that is too large to be edited.
    """

    data: bytes
    first: int
    size: int
    revision: str | None


_NAMED = 5
_MARK = 800
"""Most bytes of the line about what is only proposed."""


class Reader:
    """Reads for one call of one session; what of a file is shown to it is remembered.

    Attributes:
        page: What one answer may take to reach the reader uncut, in bytes as UTF-8.
    """

    def __init__(  # noqa: PLR0913 - all that one call needs
        self,
        guard: Guard,
        seen: KnownTextCache,
        session: Session,
        *,
        documents: Documents,
        asked: PermissionLog,
        deadline: Deadline,
        progress: Callable[[int, str], None],
        page: int,
        indexes: Callable[[], SearchIndexes] | None = None,
    ) -> None:
        waits = documents.proposed is not None and documents.proposed.waits
        self.page = max(page - _MARK, page // 2) if waits else page
        self._guard = guard
        self._seen = seen
        self._session = session
        self._agent = session.agent
        self._documents = documents
        self._asked = asked
        self._deadline = deadline
        self._progress = progress
        self._indexes = indexes
        self._opened: dict[str, Document] = {}
        self._texts: dict[str, bytes] = {}
        self._marked: dict[WorkspacePath, ProposalFile] = {}
        self._alike: dict[str, str] = {}

    def marked(self, text: str) -> str:
        """An answer with a line about each name that was understood, and one about what in it is only proposed."""
        text += "".join(alike_note(sent, found) for sent, found in self._alike.items())
        if not self._marked:
            return text
        names: dict[str, list[str]] = {}
        moved: list[str] = []
        for layer in self._marked.values():
            shown = shown_name(self._guard.show(layer.path.root, layer.path.path))
            names.setdefault(layer.proposal.id, []).append(shown)
            if self._moved(layer):
                moved.append(shown)
        waiting = "; ".join(f"{id_}: {_some(each)}" for id_, each in names.items())
        parts = [f"as you proposed, waiting for a person, the disk is unchanged | {waiting}"]
        if moved:
            parts = [f"as you proposed, waiting for a person | {waiting}"]
            parts.append(f"changed on the disk meanwhile: {_some(moved)}")
        return f"{text}\n[{_cut(' | '.join(parts))}]"

    def _moved(self, layer: ProposalFile) -> bool:
        """Whether a file is no longer what a proposal was made from."""
        folder = any(side is not None and side.is_folder for side in layer.sides)
        if folder or self._guard.hides(layer.path, self._agent):
            return False
        try:
            location = self._guard.find(layer.path, "read", agent=self._agent)
            now = self._documents.present(location)
        except FilepactError:
            return True
        return (now and now.revision) != layer.change.before

    def window(self, path: str, *, first: int, count: int, column: int = 0) -> LineExcerpt:
        """Lines of a text file of any size; say with `record_shown` which of them were shown.

        Args:
            path: The file.
            first: 0-based number of the first line wanted; below 0 it counts from the end.
            count: Most lines wanted.
            column: 0-based number of the first character wanted of the first line.
        """
        wanted = {"first": first, "count": count, "column": column, "most": self.page + 1}
        with self._file(path) as location:
            if location.place.size <= EDIT_LIMIT or self._documents.has_newer(location.path):
                document = self._look(location, self._documents.seen)
                self._opened[location.shown] = document
                self._asked.read(self._session, location.path.absolute, document)
                return window(location, document, **wanted)
            given, known = self._documents.given(location.path), self._documents.known_lines
            part = stream_window(location, given, **wanted, deadline=self._deadline, known=known)
            if part.within is not None:
                self._check_around(location, part.within)
        self._asked.read(self._session, location.path.absolute)
        return part

    def piece(self, path: str, *, first: int, most: int) -> ByteExcerpt:
        """A range of bytes of a file of any size.

        Args:
            path: The file.
            first: The first byte wanted, from 0; below 0 it counts from the end.
            most: Most bytes wanted.
        """
        with self._file(path) as location:
            if location.place.size <= EDIT_LIMIT or self._documents.has_newer(location.path):
                document = self._look(location)
                size = len(document.data)
                start = min(max(size + first, 0) if first < 0 else first, size)
                data = document.data[start : start + most]
                self.remember(document, None if len(data) == size else [])
                return ByteExcerpt(data, start, size, document.revision.short)
            with location.stream() as (stream, size):
                start = min(max(size + first, 0) if first < 0 else first, size)
                stream.seek(start)
                data = stream.read(min(most, size - start))
            self._check_around(location, (start, start + len(data)))
        self._asked.read(self._session, location.path.absolute)
        return ByteExcerpt(data, start, size, None)

    def picture(self, path: str, *, shown: bool = True) -> tuple[Image, bytes] | None:
        """A picture and its bytes; None for any other file.

        Args:
            path: The file.
            shown: Whether it is shown, or only told to be one.

        Raises:
            TooLargeError: It is one, and too large for those who look at it.
            BinaryFileError: It is one, and does not decode.
        """
        with self._file(path) as location:
            if location.place.size > MAX_PICTURE:
                with location.stream() as (stream, size):
                    check_picture(location.shown, stream.read(_HEAD), size)
                return None
            document = self._look(location)
            picture = check_picture(location.shown, document.data, len(document.data))
            if picture is None:
                return None
            if shown:
                self.remember(document)
            return picture, document.data

    def record_shown(self, part: LineExcerpt, sent: int, reached: int = 0) -> None:
        """The session is shown the first lines of a window.

        Args:
            part: The window.
            sent: How many of its lines.
            reached: How many characters of the last of these are shown, counted from the line's
                start; 0 for all.
        """
        document = self._opened.get(part.shown)
        if document is not None:
            span = part.span(document.text, sent, reached)
            self._seen.shown(self._session, document, [span])

    def excerpt(
        self, path: Name, wanted: ExcerptOptions, *, found: Location | None = None
    ) -> Excerpt:
        """A part of a text file of any size, exactly as it stands.

        Args:
            path: The file.
            wanted: Which part of it, and how much may be answered.
            found: The file, where it has just been found for this reader.

        Raises:
            TooLargeError: The part is over what may be answered.
            BinaryFileError: It does not hold text there.
        """
        location = found if found is not None and found.place.kind == "file" else self._file(path)
        with location:
            if location.place.size <= EDIT_LIMIT:
                document = self._look(location)
                part = excerpt_of(document.text, wanted, location.shown)
                self.remember(document, [(part.start, part.start + len(part.text))])
                return _sent(part)
            typed = self._documents.newer_text(location.path)
            if typed is not None:
                part = excerpt_of(typed, wanted, location.shown)
            else:
                given = self._documents.given(location.path)
                known = self._documents.known_lines
                part = stream_excerpt(location, given, wanted, self._deadline, known)
                self._check_around(location, part.within)
        self._check(part.text.encode("utf-8", "replace"), location)
        self._asked.read(self._session, location.path.absolute)
        return _sent(part)

    def _meant(self, path: Name, missing: NotFoundError) -> str:
        found = missing.details.get("alike")
        if not isinstance(path, str) or not isinstance(found, str) or not found:
            raise missing
        self._alike[path] = found
        return found

    def document(self, path: Name) -> Document:
        """A whole file, text or not.

        Raises:
            TooLargeError: It is over the limit for whole reads.
        """
        return self.remember(self.glance(path))

    def glance(self, path: Name) -> Document:
        """A whole file, for a caller that does not know yet whether it will be shown."""
        with self._file(path, alike=False) as location:
            return self._look(location)

    def unwritten(self, root: RootId) -> dict[WorkspacePath, str]:
        """The texts of files of a root that the disk need not have: proposed, or unsaved in an editor.

        Files that may not be read are not among them.
        """
        found = self._documents.newer_texts(root)
        hides, agent = self._guard.hides, self._agent
        return {
            path: text
            for path, text in found.items()
            if not hides(path, agent, (text.encode("utf-8", "replace"),))
        }

    def quoted(self, path: WorkspacePath) -> None:
        """The session is told parts of lines of a file, which it does not know by that."""
        self._asked.read(self._session, path.absolute)

    def remember(self, document: Document, parts: Iterable[Span] | None = None) -> Document:
        """A file was shown to the session, all of it or these parts of its text."""
        self._asked.read(self._session, document.path.absolute, document)
        self._seen.shown(self._session, document, parts)
        return document

    def _file(self, path: Name, *, alike: bool = True) -> Location:
        """The file, which is kept open; the caller closes it.  Its name may be only ``alike``, as `marked` says."""
        self._deadline.check()
        documents = self._documents
        try:
            location = self._guard.open_file(path, agent=self._agent, held=documents.has_newer)
        except NotFoundError as missing:
            if not alike:
                raise
            return self._file(self._meant(path, missing), alike=False)
        except (PathBlockedError, ApprovalRequiredError) as error:
            raise self._refused(error)  # noqa: B904 - it is the same
        layer = documents.layer(location.path)
        if layer is not None:
            if layer.change.after is None:
                location.close()
                raise proposed_gone(location.shown, layer)
            if layer.change.after.is_folder:
                location.close()
                sent = location.as_sent(path)
                raise NotAFileError(f"{sent}: is a folder, as you proposed", path=sent)
            self._marked[layer.path] = layer
        return location

    def _look(
        self, location: Location, load: Callable[[Location], Document | None] | None = None
    ) -> Document:
        document = (load or self._documents.load)(location)
        if document is None:
            raise NotFoundError(f"{location.shown}: was removed just now", path=location.shown)
        if self._guard.holds_key(document):
            self._check(document, location)
        return document

    def _check(self, held: bytes | Document, location: Location) -> None:
        try:
            self._guard.check_held(location.path, "read", held, agent=self._agent)
        except (PathBlockedError, ApprovalRequiredError) as error:
            raise self._refused(error)  # noqa: B904 - it is the same

    def _check_around(self, location: Location, within: tuple[int, int]) -> None:
        """Refuse a part of a large file that may be the inside of a key: above it stands how it begins."""
        start, end = within
        first = max(start - LONGEST_KEY, 0)
        with location.stream() as (stream, _size):
            stream.seek(first)
            data = stream.read(end - first)
        self._check(data, location)

    def find(self, directory: str, pattern: str, *, limit: int) -> NameSearchResult:
        """Files whose path matches a glob, in path order."""
        location = self._folder(directory)
        allow, more = self._sight(location)
        with self._index(location.root) as index:
            found = index.answer(
                location.place.path,
                allow,
                None if more else ("find", pattern, limit),
                partial(
                    find_files,
                    location.root,
                    location.place.path,
                    pattern,
                    limit=limit,
                    allow=allow,
                    more=more,
                    deadline=self._deadline,
                    progress=self._progress,
                    walk=index.walk,
                ),
                lambda found: found.lasts,
            )
        self._mark(location, (path for path in found.paths if path in more))
        return found

    def grep(
        self,
        path: str,
        query: Query,
        *,
        glob: str,
        limit: int,
        offset: int,
        context: int,
        mode: Literal["content", "files", "count"],
    ) -> TextSearchResult:
        """Lines that match a query, in path order."""
        location = self._there(path)
        self._asked.read(self._session, join(location.root.path, location.place.path))
        allow, more = self._sight(location)
        with self._index(location.root) as index:
            found = grep(
                location.root,
                location.place.path,
                query,
                glob=glob,
                limit=limit,
                offset=offset,
                context=context,
                mode=mode,
                allow=allow,
                more=more,
                overlay=self._documents.newer_bytes(location.root),
                net=self._guard.net,
                given=self._documents.given_now(location.root),
                kept=self._texts.__setitem__,
                deadline=self._deadline,
                progress=self._progress,
                index=index,
                held=self._documents.held_in(location.root.path),
            )
        self._mark(location, (file.path for file in found.files))
        return found

    def record_shown_lines(self, path: str, found: Mapping[str, Sequence[MatchLine]]) -> None:
        """The session is shown some lines of files that were searched.

        Args:
            path: What was searched.
            found: The lines by the files' root-relative paths.
        """
        root = self._there(path).root if found else None
        for name, lines in found.items():
            data = self._texts.get(name, b"")
            if root is None or len(data) > _SMALL:
                continue  # nobody writes larger ones as a whole
            text = data.decode("utf-8", "surrogateescape")
            spans = [
                (at, end)
                for line, (at, end) in zip(lines, _spans(data, text, lines), strict=True)
                if chomp(text[at:end]) == line.text  # not cut, and nothing in it left out
            ]
            if spans:
                self._seen.shown_text(self._session, WorkspacePath(root.path, name), text, spans)

    def tree(
        self, path: str, *, depth: int, include_files: bool, pattern: str | None, budget: int
    ) -> FolderTree:
        """A folder and what it holds, as a drawing."""
        location = self._folder(path)
        allow, more = self._sight(location)
        self._mark(location, more)
        with self._index(location.root) as index:
            return index.answer(
                location.place.path,
                allow,
                None
                if more
                else (location.shown, depth, include_files, pattern, budget, self.page),
                partial(
                    tree,
                    location.root,
                    location.place.path,
                    depth=depth,
                    include_files=include_files,
                    pattern=pattern,
                    budget=budget,
                    page=self.page,
                    name=location.shown,
                    allow=allow,
                    more=more,
                    deadline=self._deadline,
                    progress=self._progress,
                    walk=index.walk,
                ),
                lambda drawn: not drawn.totals_are_floor,
            )

    @contextmanager
    def _index(self, root: Root) -> Iterator[RootSearch]:
        """The index of a root's files, for one search."""
        if self._indexes is None:
            yield NO_INDEX
            return
        with self._indexes().search(root) as index:
            yield index

    def naming(self, path: str) -> Callable[[str], str]:
        """The function that shows paths of the root that holds this one."""
        return partial(self._guard.show, self._there(path).root.path)

    def _sight(self, location: Location) -> tuple[EntryFilter, tuple[str, ...]]:
        """Which names below a folder may be seen, and the files there that are only proposed."""
        allow = self._guard.listing(location.root, "read", agent=self._agent)
        proposed = self._documents.proposed
        layers = () if proposed is None else proposed.below(location.root.path, location.place.path)
        gone = frozenset(one.path.path for one in layers if one.change.after is None)
        come = tuple(
            one.path.path
            for one in layers
            if one.change.before is None and one.change.after is not None
            if not one.change.after.is_folder and allow(one.path.path, False)
        )
        return (_Without(allow, gone) if gone else allow), come

    def _mark(self, location: Location, paths: Iterable[str]) -> None:
        for path in paths:
            layer = self._documents.layer(WorkspacePath(location.root.path, path))
            if layer is not None:
                self._marked[layer.path] = layer

    def _proposes_below(self, location: Location) -> bool:
        """Whether there is something at a place for this session alone."""
        proposed = self._documents.proposed
        layers = () if proposed is None else proposed.below(location.root.path, location.place.path)
        return any(one.change.after is not None for one in layers)

    def _refused(self, error: FilepactError) -> FilepactError:
        """Record a refusal of the rules in the permission log; the same error."""
        self._asked.refused(self._session, "read", error)
        return error

    def _there(self, path: str) -> Location:
        try:
            location = self._guard.find(path, "read", agent=self._agent)
        except (PathBlockedError, ApprovalRequiredError) as error:
            raise self._refused(error)  # noqa: B904 - it is the same
        layer = self._documents.layer(location.path) if location.place.path != "." else None
        if layer is not None and layer.change.after is None:
            raise proposed_gone(location.shown, layer)
        if location.place.kind == "missing" and not self._proposes_below(location):
            advice = "directory_tree shows what is there."
            missing = not_there(location, f"{path}: no such file or folder", advice, path=path)
            return self._there(self._meant(path, missing))
        if location.place.kind == "other":
            check_is_file(location, path)
        return location

    def _folder(self, path: str) -> Location:
        location = self._there(path)
        proposed = location.place.kind == "missing" and not self._documents.holds_file(
            location.path
        )
        if location.place.kind != "directory" and not proposed:
            raise NotAFileError(
                f"{path}: is not a folder",
                hint="Name a folder; read_file shows a file.",
                path=path,
            )
        return location


class _Without(EntryFilter):
    """A walk's question, for a session that wants some of the files to be gone."""

    def __init__(self, allow: EntryFilter, gone: frozenset[str]) -> None:
        super().__init__(allow)
        self._inner = allow
        self._gone = gone

    @property
    def key(self) -> Hashable:
        inner = self._inner.key
        return None if inner is None else (inner, self._gone)

    def __call__(self, path: str, is_dir: bool) -> bool:
        return path not in self._gone and self._inner(path, is_dir)

    def among(self, prefix: str, keys: list[str]) -> list[str]:
        before = self._inner.refused
        seen = self._inner.among(prefix, keys)
        self.refused += self._inner.refused - before
        return [key for key in seen if (prefix + key).rstrip("/") not in self._gone]


def _spans(data: bytes, text: str, lines: Sequence[MatchLine]) -> Iterator[Span]:
    """Where some lines of a text stand in it, with their ends; they are in order."""
    at, number, chars = 0, 1, 0
    for line in lines:
        if b"\r" in data:
            chars, number = line_start(text, line.number - number, chars), line.number
            yield chars, line_start(text, 1, chars)
            continue
        behind = len(data[at : line.start].decode("utf-8", "surrogateescape"))
        chars = line.start if len(data) == len(text) else chars + behind
        at = line.start
        yield chars, text.find("\n", chars) + 1 or len(text)


def _sent(part: Excerpt) -> Excerpt:
    """A part as it can be sent: with its raw bytes in escapes."""
    return replace(part, text=with_escapes(part.text)) if holds_raw_bytes(part.text) else part


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _cut(line: str) -> str:
    data = line.encode("utf-8", "backslashreplace")
    return line if len(data) <= _MARK - 10 else data[: _MARK - 10].decode("utf-8", "ignore") + "..."
