"""What a reading tool works with: files seen through the guard, and nothing else."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from filepact.errors import NotAFileError, NotFoundError
from filepact.workspace.documents import EDIT_LIMIT, window
from filepact.workspace.excerpt import excerpt_of, stream_excerpt
from filepact.workspace.guard import check_is_file
from filepact.workspace.search import find_files, grep, tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from filepact.domain.document import Document
    from filepact.domain.operation import Session
    from filepact.text.match import Query
    from filepact.workspace.documents import Documents, Window
    from filepact.workspace.excerpt import Excerpt, Wanted
    from filepact.workspace.guard import Guard, Spot
    from filepact.workspace.search import Found, Grepped, Tree
    from filepact.workspace.seen import Seen

__all__ = ["Reader"]


class Reader:
    """Reads for one call of one session; every file it returns is remembered as seen.

    Attributes:
        page: What one answer may take to reach the reader uncut, in bytes as UTF-8.
    """

    def __init__(
        self,
        guard: Guard,
        seen: Seen,
        session: Session,
        *,
        documents: Documents,
        cancelled: Callable[[], bool],
        progress: Callable[[int, str], None],
        page: int,
    ) -> None:
        self.page = page
        self._guard = guard
        self._seen = seen
        self._session = session
        self._documents = documents
        self._cancelled = cancelled
        self._progress = progress

    def window(self, path: str, *, first: int, count: int) -> Window:
        """Lines of a text file of any size.

        Args:
            path: The file.
            first: 0-based number of the first line wanted.
            count: Most lines wanted.
        """
        spot = self._file(path)
        if spot.place.size > EDIT_LIMIT and not self._documents.held(spot.path):
            part = window(spot, None, self._documents, first=first, count=count)
            self._check("\n".join(part.lines).encode("utf-8", "replace"), spot)
            return part
        document = self._load(spot)
        return window(spot, document, self._documents, first=first, count=count)

    def excerpt(self, path: str, wanted: Wanted, *, found: Spot | None = None) -> Excerpt:
        """A part of a text file of any size, exactly as it stands.

        Args:
            path: The file.
            wanted: Which part of it, and how much may be answered.
            found: The file, where it has just been found for this reader.

        Raises:
            TooLargeError: The part is over what may be answered.
            BinaryFileError: It does not hold text there.
        """
        spot = found if found is not None and found.place.kind == "file" else self._file(path)
        if spot.place.size <= EDIT_LIMIT:
            return excerpt_of(self._load(spot).text, wanted, spot.shown)
        typed = self._documents.typed(spot.path)
        if typed is not None:
            part = excerpt_of(typed, wanted, spot.shown)
        else:
            given = self._documents.given(spot.path)
            part = stream_excerpt(spot, given, wanted, self._cancelled)
        self._check(part.text.encode("utf-8", "replace"), spot)
        return part

    def document(self, path: str) -> Document:
        """A whole file, text or not.

        Raises:
            TooLargeError: It is over the limit for whole reads.
        """
        return self.remember(self.glance(path))

    def glance(self, path: str) -> Document:
        """The same for who does not know yet whether it will be shown."""
        return self._look(self._file(path))

    def remember(self, document: Document) -> Document:
        """A file was shown to the session."""
        self._seen.note(self._session.id, document)
        return document

    def _file(self, path: str) -> Spot:
        agent, held = self._session.agent, self._documents.held
        return self._guard.find_file(path, "read", agent=agent, held=held)

    def _load(self, spot: Spot) -> Document:
        return self.remember(self._look(spot))

    def _look(self, spot: Spot) -> Document:
        document = self._documents.load(spot)
        if document is None:
            raise NotFoundError(f"{spot.shown}: was removed just now", path=spot.shown)
        self._check(document.data, spot)
        return document

    def _check(self, data: bytes, spot: Spot) -> None:
        self._guard.check_held(spot.path, "read", data, agent=self._session.agent)

    def find(self, directory: str, pattern: str, *, limit: int) -> Found:
        """Files whose path matches a glob, in path order."""
        spot = self._folder(directory)
        return find_files(
            spot.root,
            spot.place.path,
            pattern,
            limit=limit,
            allow=self._guard.listing(spot.root, "read", agent=self._session.agent),
            cancelled=self._cancelled,
            progress=self._progress,
        )

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
    ) -> Grepped:
        """Lines that match a query, in path order."""
        spot = self._there(path)
        return grep(
            spot.root,
            spot.place.path,
            query,
            glob=glob,
            limit=limit,
            offset=offset,
            context=context,
            mode=mode,
            allow=self._guard.listing(spot.root, "read", agent=self._session.agent),
            overlay=self._documents.newer(spot.root),
            net=self._guard.net,
            given=self._documents.given_in(spot.root),
            cancelled=self._cancelled,
            progress=self._progress,
        )

    def tree(
        self, path: str, *, depth: int, include_files: bool, pattern: str | None, budget: int
    ) -> Tree:
        """A folder and what it holds, as a drawing."""
        spot = self._folder(path)
        return tree(
            spot.root,
            spot.place.path,
            depth=depth,
            include_files=include_files,
            pattern=pattern,
            budget=budget,
            page=self.page,
            allow=self._guard.listing(spot.root, "read", agent=self._session.agent),
            cancelled=self._cancelled,
            progress=self._progress,
        )

    def naming(self, path: str) -> Callable[[str], str]:
        """How paths in the root that holds this one are shown."""
        return partial(self._guard.show, self._there(path).root.path)

    def _there(self, path: str) -> Spot:
        spot = self._guard.find(path, "read", agent=self._session.agent)
        if spot.place.kind == "missing":
            raise NotFoundError(
                f"{path}: no such file or folder",
                hint="directory_tree shows what is there.",
                path=path,
            )
        if spot.place.kind == "other":
            check_is_file(spot, path)
        return spot

    def _folder(self, path: str) -> Spot:
        spot = self._there(path)
        if spot.place.kind != "directory":
            raise NotAFileError(
                f"{path}: is not a folder",
                hint="Name a folder; read_file shows a file.",
                path=path,
            )
        return spot
