"""Whole documents: decoded by what is known of their encoding, with what editors have not saved.

Of what is said about an encoding outside the file, the person's settings go first.  Then the nearest
``.editorconfig`` that names one counts, from the file's folder up to its root.  It is read as any
other file: the guard is asked, and one that may not be read says nothing.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from filepact.domain.document import Document, Revision, WorkspacePath
from filepact.errors import (
    BinaryFileError,
    EncodingUnsafeError,
    FilepactError,
    InvalidParamsError,
    NotFoundError,
    StaleFileError,
)
from filepact.text.codec import NamedEncoding, encode_new, rewrite
from filepact.text.edit import EditList, goes_on, merge
from filepact.text.editorconfig import EditorConfig, parse_editorconfig
from filepact.text.lines import adopt_line_ends
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from filepact.domain.change import FileChange
    from filepact.domain.document import RootId
    from filepact.fs.known_lines import KnownLines
    from filepact.fs.read import FileContents
    from filepact.fs.root import Root
    from filepact.text.editorconfig import Property
    from filepact.text.glob import Glob
    from filepact.workspace.buffers import Buffer, Buffers
    from filepact.workspace.guard import Guard
    from filepact.workspace.location import Location
    from filepact.workspace.pending import ProposalFile, ProposalFiles

__all__ = [
    "EDITORCONFIG",
    "EDIT_LIMIT",
    "PROJECT_FILE",
    "DocumentCache",
    "Documents",
    "EncodingSettings",
    "MergedDocument",
    "merge_unsaved",
    "read_project_file",
    "with_text",
]

EDIT_LIMIT = 10_000_000
"""Largest file, in bytes, that is loaded whole: to be edited, or to be returned as base64."""

EDITORCONFIG: Final = ".editorconfig"
_LARGEST_CONFIG = 65_536
_MOST_KEPT = 1_000
_WORTH = 32_768  # bytes from which a file is not even read again
_RECENT = 24_000_000  # bytes of all that are kept
_EACH = 4_096  # and of what one takes at least
_RACY = 2 * 10**9  # nanoseconds that make a stamp count


@lru_cache(maxsize=1_024)
def _nearest_first(folder: str) -> tuple[str, ...]:
    """The names under which ``.editorconfig`` is looked for, from a folder up to the root."""
    names = []
    while folder:
        names.append(f"{folder}/{EDITORCONFIG}")
        folder = folder.rpartition("/")[0]
    return *names, EDITORCONFIG


class EncodingSettings:
    """Encodings named by the settings and by ``.editorconfig`` files, which are cached until they change.

    Args:
        guard: The roots, and the rules about what may be read.
        chosen: Globs with the encoding of the files that match, by Python's name.  A glob counts
            from each root, or from the top of the file system if it starts with ``/``; of several
            that match, the last one counts.
    """

    def __init__(self, guard: Guard, chosen: Sequence[tuple[Glob, str]] = ()) -> None:
        self._guard = guard
        self._chosen = tuple(reversed(chosen))
        self._kept: dict[WorkspacePath, tuple[tuple[int, ...], EditorConfig]] = {}
        self._lock = threading.Lock()

    def given(self, path: WorkspacePath) -> NamedEncoding | None:
        """The encoding named for one file, which need not exist; None for none."""
        for glob, codec in self._chosen:
            absolute = glob.pattern.startswith("/")
            if glob.matches(path.absolute.lstrip("/") if absolute else path.path):
                return NamedEncoding(codec, "settings")
        charset = self.declared(path, "charset")
        return NamedEncoding(charset, ".editorconfig") if charset else None

    def declared(self, path: WorkspacePath, name: Property) -> str:
        """The value of a property in the nearest ``.editorconfig`` that sets it; empty for none."""
        folder, _, own = path.path.rpartition("/")
        root, files = self._guard.by_path.get(path.root), _nearest_first(folder)
        # The journal may know a root that is not in use; and mostly there is no such file.
        if own == EDITORCONFIG or root is None or not root.has_one_of(files):
            return ""
        for file in files:
            stamp, config = root.glance(file), None
            with suppress(FilepactError):  # One that may not be read says nothing.
                config = None if stamp is None else self._read(root, file, stamp)
            if config is None:
                continue
            said = config.said(name, path.path[len(file) - len(EDITORCONFIG) :])
            if said is not None:
                return said
            if config.root:
                break
        return ""

    def given_now(self, root: Root) -> Callable[[str], NamedEncoding | None]:
        """`given` for the files of one root, by their paths, for one search: folders are looked into once."""
        silent: set[str] = set()

        def given(path: str) -> NamedEncoding | None:
            names = _nearest_first(path.rpartition("/")[0])
            # What is above a file that is known not to be there is known as well.
            new = list(takewhile(lambda name: name not in silent, names))
            if self._chosen or root.has_one_of(new):
                return self.given(WorkspacePath(root.path, path))
            silent.update(new)
            return None

        return given

    def _read(self, root: Root, name: str, stamp: tuple[int, ...]) -> EditorConfig | None:
        asked = WorkspacePath(root.path, name)
        self._guard.permit(asked, "read")
        with self._lock:
            kept = self._kept.get(asked)
        if kept is not None and stamp and kept[0] == stamp:
            return kept[1]
        place = root.place(name)
        if place.kind != "file":
            return None
        self._guard.permit(WorkspacePath(root.path, place.path), "read")
        data = root.read(place.path, limit=_LARGEST_CONFIG).data
        config = parse_editorconfig(data.decode("utf-8", errors="replace"))
        with self._lock:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[asked] = (stamp, config)
        return config


@dataclass(frozen=True, slots=True)
class MergedDocument:
    """A file for a change.

    Attributes:
        stored: What the disk has; None for no file.
        shown: What the change starts from; None for no file.
        note: A sentence about what was merged; empty when nothing was.
    """

    stored: Document | None
    shown: Document | None
    note: str = ""

    @property
    def saved(self) -> str | None:
        """The text that the disk has, where the change starts from more; empty for no file."""
        if self.shown is None or self.shown == self.stored:
            return None
        return "" if self.stored is None else self.stored.text


class DocumentCache:
    """The states of files that changes name, as documents: each is decoded at most once.

    Args:
        content: The bytes of a revision by content id; raises `KeyError` or `NotFoundError`.
        given: What is said about a file's encoding outside the file.
    """

    def __init__(
        self,
        content: Callable[[str], bytes],
        given: Callable[[WorkspacePath], NamedEncoding | None],
    ) -> None:
        self.content = content
        self._given = given
        self._known: dict[tuple[WorkspacePath, Revision], Document] = {}

    def add(self, document: Document) -> None:
        """Take in a document that is there already."""
        self._known[document.path, document.revision] = document

    def of(self, path: WorkspacePath, revision: Revision) -> Document:
        """A file in one of its states.

        Raises:
            NotFoundError: The bytes were not kept.
        """
        known = self._known.get((path, revision))
        if known is None:
            known = Document(path, self.content(revision.content), revision, self._given(path))
            self._known[path, revision] = known
        return known

    def sides(self, change: FileChange) -> tuple[Document | None, Document | None]:
        """A file before and after its change; None for no file, and for bytes that are not kept."""
        found: list[Document | None] = []
        for revision in (change.before, change.after):
            document = None if revision is None else self._known.get((change.path, revision))
            if document is None and revision is not None:
                with suppress(KeyError, NotFoundError):
                    document = self.of(change.path, revision)
            found.append(document)
        return found[0], found[1]


class _RecentDocuments:
    """Files that were read a while ago.

    A larger one is not even read again as long as its stamp says that it is the same.  A stamp counts only if it was
    two seconds old when the file was read: a younger one is racy.  Of any other the bytes are read and compared, and
    what was made of the same bytes before (their hash, text and lines) is not made again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[WorkspacePath, tuple[tuple[int, ...], Document]] = {}
        self._room = _RECENT

    def get(self, location: Location) -> Document | None:
        """The file, if it need not be read again."""
        known, held = self._known.get(location.path), location.held
        fits = known is not None and known[0] and held is not None and held.stamp == known[0]
        return known[1] if known is not None and fits else None

    def like(self, path: WorkspacePath, contents: FileContents) -> Document | None:
        """The file as it was read before, if it has these bytes again."""
        _, before = self._known.get(path, ((), None))
        same = before is not None and before.data == contents.data
        return before.given(contents.mode, contents.attributes) if before and same else None

    def add(self, location: Location, document: Document) -> None:
        """Keep a file that was read just now."""
        known = self._known.get(document.path)
        if known is None or known[1] is not document or document.size >= _WORTH:
            self.keep(document, self._settled(location) if document.size >= _WORTH else ())

    def keep(self, document: Document, stamp: tuple[int, ...] = ()) -> None:
        """Keep a file, under a stamp if it need not be read again as long as it has that."""
        path, size = document.path, max(document.size, _EACH)
        if size > _RECENT // 2 or self._known.get(path) == (stamp, document):
            return
        with self._lock:
            if path in self._known:
                self._forget(path)
            while self._known and self._room < size:
                self._forget(next(iter(self._known)))
            self._known[path] = stamp, document
            self._room -= size

    def _settled(self, location: Location) -> tuple[int, ...]:
        """The stamp of a file, where it counts and was the same before and after it was read; else the empty one."""
        held = location.held
        stamp = () if held is None else held.stamp
        if held is None or not stamp or time.time_ns() - stamp[0] < _RACY:
            return ()
        return stamp if held.present_stamp() == stamp else ()

    @cached_property
    def known_lines(self) -> KnownLines:
        """Where lines begin in files that are too large to be kept."""
        from filepact.fs.known_lines import KnownLines  # noqa: PLC0415 - not before there is one

        return KnownLines()

    def _forget(self, path: WorkspacePath) -> None:
        known = self._known.pop(path, None)
        self._room += 0 if known is None else max(known[1].size, _EACH)


class Documents:
    """Whole documents: what an editor has not saved stands before what the disk has.

    What a session has proposed stands before both, for that session alone.

    Args:
        encodings: What is said about files' encodings outside the files.
        buffers: What editors hold.
        proposed: What the session wants that looks; None for the files as they are.
        once: Whether it serves one call, for which each file's encoding is looked up once.
        recent: What others have read; None begins anew.
    """

    def __init__(
        self,
        encodings: EncodingSettings,
        buffers: Buffers,
        proposed: ProposalFiles | None = None,
        *,
        once: bool = False,
        recent: _RecentDocuments | None = None,
    ) -> None:
        self._recent = _RecentDocuments() if recent is None else recent
        self._encodings = encodings
        self._buffers = buffers
        self.proposed = proposed
        self._said: dict[WorkspacePath, NamedEncoding | None] | None = {} if once else None

    def with_proposals(self, proposed: ProposalFiles, *, once: bool = False) -> Documents:
        """These documents, with a session's proposals before everything else."""
        recent = self._recent
        return Documents(self._encodings, self._buffers, proposed, once=once, recent=recent)

    @property
    def known_lines(self) -> KnownLines:
        """Where lines begin in files that are too large to be loaded."""
        return self._recent.known_lines

    def keep(self, document: Document) -> None:
        """Keep the document that a file is to hold: read in that state, its bytes are not decoded again."""
        self._recent.keep(document)

    def layer(self, path: WorkspacePath) -> ProposalFile | None:
        """The session's proposal for a file."""
        return None if self.proposed is None else self.proposed.of(path)

    def given(self, path: WorkspacePath) -> NamedEncoding | None:
        """The encoding that settings or ``.editorconfig`` name for a file."""
        if self._said is None:
            return self._encodings.given(path)
        if path not in self._said:
            self._said[path] = self._encodings.given(path)
        return self._said[path]

    def line_ends(self, path: WorkspacePath) -> str:
        """The end of each line that ``.editorconfig`` wants in a new file; empty for any."""
        return self._encodings.declared(path, "end_of_line")

    def given_in(self, root: Root) -> Callable[[str], NamedEncoding | None]:
        """`given` for the files of one root, by their canonical paths."""
        return lambda path: self.given(WorkspacePath(root.path, path))

    def given_now(self, root: Root) -> Callable[[str], NamedEncoding | None]:
        """As `given_in`, for one search."""
        return self._encodings.given_now(root)

    def has_newer(self, path: WorkspacePath) -> bool:
        """Whether there is a text of the file that the disk need not have."""
        layer = None if self.proposed is None else self.proposed.of(path)
        if layer is not None:
            return layer.change.after is not None
        return self._buffers.get(path) is not None

    def holds_file(self, path: WorkspacePath) -> bool:
        """Whether a buffer or a proposal holds a text of the path, and not a folder."""
        layer = self.layer(path)
        after = None if layer is None else layer.change.after
        return self.has_newer(path) and not (after is not None and after.is_folder)

    def newer_text(self, path: WorkspacePath) -> str | None:
        """The text of a file that the disk need not have: proposed, or unsaved in an editor."""
        layer = self.layer(path)
        if layer is not None and self.proposed is not None:
            document = self.proposed.after(layer)
            return None if document is None else document.text
        buffer = self._unsaved(path)
        return None if buffer is None else buffer.text

    def newer_texts(self, root: RootId) -> dict[WorkspacePath, str]:
        """The texts of all files of a root that the disk need not have, as `newer_text` has each."""
        found: dict[WorkspacePath, str] = {}
        for path in (WorkspacePath(root, one) for one in self.held_in(root)):
            with suppress(BinaryFileError):
                if (text := self.newer_text(path)) is not None:
                    found[path] = text
        return found

    def holds_below(self, top: WorkspacePath) -> bool:
        """Whether an editor shows a file in a folder, or the session has proposed something for one."""
        return bool(self.proposed and self.proposed.below(*top)) or self._buffers.shows_below(top)

    def held_in(self, root: RootId) -> frozenset[str]:
        """The files of a root that a buffer or a proposal may hold a text of, by path beneath it."""
        shown = (one.path for one in self._buffers.present if one.path.root == root)
        found = {path.path for path in shown if self._unsaved(path)}
        if self.proposed is not None:
            found |= {layer.path.path for layer in self.proposed.below(root, ".")}
        return frozenset(found)

    def stored(
        self, location: Location, *, limit: int = EDIT_LIMIT, like: Document | None = None
    ) -> Document:
        """The document on the disk.

        Args:
            location: The file.
            limit: Most bytes of it.
            like: The file as it is to be, to which this is compared: what is said about the
                encoding of that counts.

        Raises:
            TooLargeError: It has more than ``limit`` bytes.
        """
        if location.place.kind == "link":
            link = location.root.read_link(location.place.path)
            return Document(location.path, link.data, link.revision)
        if location.held is not None:
            contents = location.held.read(limit=limit)
        else:
            # The rules were asked about this very path: a link that appeared in it since is refused.
            contents = location.root.read(location.place.path, limit=limit, follow=False)
        given = self.given(location.path) if like is None else like.named_encoding
        before = self._recent.like(location.path, contents)
        if before is not None and before.named_encoding == given:
            return before
        return Document(location.path, contents.data, contents.revision, given)

    def load(self, location: Location, *, limit: int = EDIT_LIMIT) -> Document | None:
        """The session's proposal for a file, else the editor's text, else the disk's; None for no file.

        An editor's text comes as the bytes that it would be saved as.

        Raises:
            TooLargeError: It has more than ``limit`` bytes.
            EncodingUnsafeError: Somebody typed what the file's encoding cannot hold.
        """
        layer = self.layer(location.path)
        if layer is not None and self.proposed is not None:
            return self.proposed.after(layer)
        return self.present(location, limit=limit)

    def seen(self, location: Location) -> Document | None:
        """As `load`, for who only shows it: a larger file whose stamp is the same is not read again."""
        path = location.path
        if self.has_newer(path):
            return self.load(location)
        document = self._recent.get(location)
        if document is not None and document.named_encoding == self.given(path):
            return document
        if location.place.kind == "missing":
            return None
        document = self.stored(location)
        self._recent.add(location, document)
        return document

    def present(self, location: Location, *, limit: int = EDIT_LIMIT) -> Document | None:
        """The file as a person sees it, without the session's proposals; None for no file."""
        stored = None if location.place.kind == "missing" else self.stored(location, limit=limit)
        buffer = self._unsaved(location.path)
        if buffer is None:
            return stored
        if stored is None:
            data = encode_new(buffer.text, location.shown, self.given(location.path))
            revision = Revision.of(data, location.new_mode)
            return Document(location.path, data, revision, self.given(location.path))
        return with_text(stored, buffer.text)

    def merged(
        self, location: Location, *, limit: int = EDIT_LIMIT, layer: ProposalFile | None = None
    ) -> MergedDocument:
        """The file that a change starts from, with unsaved text merged into what the disk has.

        Args:
            location: The file.
            limit: Most bytes of it.
            layer: What the session proposed for it, if that counts.

        Raises:
            StaleFileError: Somebody wrote to the disk on lines that the editor has changed too.
            EncodingUnsafeError: Nobody can know what the editor has of it.
        """
        if layer is not None and self.proposed is not None:
            # What happened to the file since is asked when a person says yes.
            return MergedDocument(self.proposed.before(layer), self.proposed.after(layer))
        buffers = self._buffers
        if buffers and buffers.is_doubtful(location.path):
            raise EncodingUnsafeError(
                f"{location.shown}: the editor shows it in a wrong encoding and may have unsaved text "
                "of it, which a change would lose",
                hint="Ask the person to save it, or to open it again in its own encoding.",
                path=location.shown,
            )
        stored = None if location.place.kind == "missing" else self.stored(location, limit=limit)
        buffer = buffers.get(location.path) if buffers else None
        if buffer is None or stored is None:
            return MergedDocument(stored, stored if buffer is None else self.present(location))
        base = buffer.base
        if base is None:
            return MergedDocument(stored, with_text(stored, buffer.text))
        moved = base.revision.content != stored.revision.content
        note = (
            f"{location.shown} had changed on the disk while an editor had it open; both were merged."
            if moved
            else ""
        )
        if not buffer.is_unsaved:
            return MergedDocument(stored, stored, note)
        if not moved:
            return MergedDocument(stored, with_text(stored, buffer.text))
        both = merge_unsaved(stored, base, buffer.text)
        if both is None:
            raise StaleFileError(
                f"{location.shown}: the editor has unsaved changes on lines that the disk has "
                "changed too",
                hint="Ask the person to save or to reload the file in the editor.",
                path=location.shown,
            )
        return MergedDocument(stored, both, note)

    def newer_bytes(self, root: Root) -> Callable[[str], bytes | None]:
        """The question of a search: the bytes of a file of a root that the disk need not have."""
        waits = self.proposed is not None and self.proposed.below(root.path, ".")
        if not self._buffers and not waits:
            return lambda _path: None

        def bytes_of(path: str) -> bytes | None:
            layer = self.layer(WorkspacePath(root.path, path))
            if layer is not None and self.proposed is not None:
                document = self.proposed.after(layer)
                return None if document is None else document.data
            buffer = self._unsaved(WorkspacePath(root.path, path))
            return None if buffer is None else buffer.text.encode("utf-8", "replace")

        return bytes_of

    def _unsaved(self, path: WorkspacePath) -> Buffer | None:
        """The buffer of a file, if it holds anything that the disk never had."""
        buffer = self._buffers.get(path)
        return buffer if buffer is not None and buffer.is_unsaved else None


def merge_unsaved(stored: Document, base: Document, typed: str) -> Document | None:
    """Text typed into an earlier state of a file, merged into its present one; None where both changed lines.

    Raises:
        EncodingUnsafeError: The file's encoding cannot hold what was typed.
    """
    text = with_text(base, typed).text
    if goes_on(base.text, text, stored.text):
        return with_text(stored, text)  # Another program has saved an earlier state of it.
    both = merge(base.text, text, stored.text)
    return None if both.text is None else with_text(stored, both.text)


def with_text(document: Document, text: str) -> Document:
    """A document with another text, in its own encoding and with its own line ends.

    Raises:
        EncodingUnsafeError: Its encoding cannot hold the text.
    """
    edits = EditList.between(document.text, adopt_line_ends(text, document.text))
    if not edits:
        return document
    data = rewrite(document.source, edits, name=document.path.path)
    revision = document.revision.with_bytes(data)
    return Document(document.path, data, revision, document.named_encoding)


PROJECT_FILE: Final = ".filepact.toml"
_LARGEST = 32_768


def read_project_file(root: Root) -> str | None:
    """The text of the file, or None when there is none.

    Raises:
        InvalidParamsError: It is no regular file of its own, or not text.
        PathBlockedError: It is a link that leads out of the root.
        TooLargeError: It has more than 32 kB.
        ReadFailedError: It may not be read.
    """
    place = root.place(PROJECT_FILE)
    if place.kind == "missing":
        return None
    name = f"{root.path.rstrip('/')}/{PROJECT_FILE}"
    if place.kind != "file" or place.path != PROJECT_FILE:
        # What a link leads to has another name, under which agents could change it.
        raise InvalidParamsError(
            f"{name}: has to be a regular file, not a link",
            hint="Put the rules into a file of that name, or remove it.",
            file=name,
        )
    try:
        return root.read(PROJECT_FILE, limit=_LARGEST).data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidParamsError(
            f"{name}: is not UTF-8 (byte {error.start})", hint="Save it as UTF-8.", file=name
        ) from None
