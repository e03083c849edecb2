"""A root that is a checkout of a shared workspace: brought up to the newest version before a call, and published with every change.

A change of ours is staged on the disk, then made the newest version elsewhere, and only then done here.  So whoever is told that
it was done can rely on it being in the shared workspace, whoever reads here never sees what was refused there, and a crash in
between leaves a folder that is older than the shared workspace, which the next call brings up.

What others made is fitted to what the folder holds, as an approval is to files that have moved, and done as an operation of its own.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import Revision, WorkspacePath, content_id
from filepact.domain.operation import FROM_ELSEWHERE, Actor, Session
from filepact.errors import (
    FilepactError,
    InvalidParamsError,
    NoChangeError,
    NotFoundError,
    PathBlockedError,
    SharedConflictError,
    SharedGoneError,
    StateFailedError,
)
from filepact.fs.atomic import LARGEST
from filepact.fs.walk import TreeReader
from filepact.values import dataclass
from filepact.workspace.journal import new_id, new_proposal
from filepact_fleet.manifest import FileState, fault_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from filepact.domain.operation import Operation
    from filepact.fs.locks import FileLocks
    from filepact.fs.root import Root
    from filepact.workspace.commit import Committer
    from filepact.workspace.rebase import Conflicts, Rebase, RebaseResult
    from filepact.workspace.recovery import Recovery
    from filepact.workspace.writer import ChangeWriter
    from filepact_fleet.checkout_index import CheckoutIndex
    from filepact_fleet.manifest import ManifestEntry, SharedFiles, SharedHead

__all__ = ["FolderFiles", "SharedRoot", "SharedStatus", "SyncResult", "file_state"]

_PERMISSIONS: Final = 0o777
_TOGETHER: Final = 256 << 20
"""Bytes of changes of others that are done as one operation."""
_TRIES: Final = 8
_UNLISTED: Final = (".git",)


def file_state(data: bytes, mode: int) -> FileState:
    """The state of a file as a manifest names it."""
    return FileState(content_id(data), len(data), mode & _PERMISSIONS)


@dataclass(frozen=True, slots=True)
class SharedStatus:
    """How a folder differs from what it came from, and that from the newest version.

    Attributes:
        url: The place of the shared workspace.
        number: The version that the folder was brought to.
        newest: The newest version.
        ours: Files that were changed here and are not in the shared workspace.
        theirs: Files that were changed there since.
        left_out: What a shared workspace cannot have, with the reason.
    """

    url: str
    number: int
    newest: int
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What has been brought and sent.

    Attributes:
        number: The version that the folder stands at now.
        brought: Files that others had changed.
        sent: Files that were changed here.
        conflicts: Files that both changed, in ways that do not fit together: as they were here.
        left_out: What a shared workspace cannot have, with the reason.
    """

    number: int
    brought: tuple[str, ...]
    sent: tuple[str, ...]
    conflicts: tuple[str, ...]
    left_out: tuple[str, ...]


class FolderFiles:
    """The files of a folder that a shared workspace can have.

    What ignore files name is not among them, unless it was there before, nor is Git's own folder.

    Args:
        root: The folder.
        known: Files that count in any case.

    Attributes:
        left_out: What it cannot have, with the reason; complete when all was looked at.
    """

    def __init__(self, root: Root, known: Iterable[str] = ()) -> None:
        self._root = root
        self._known = tuple(known)
        self.left_out: list[str] = []

    def states(self) -> Iterator[tuple[str, FileState]]:
        """Every file and what it is, read one after the other."""
        seen: set[str] = set()
        allowed = self._allowed
        with TreeReader(self._root, allow=allowed) as tree:
            for entry in tree:
                if entry.kind == "folder":
                    continue
                fault = fault_of(entry.path) or (
                    "is not an ordinary file" if entry.kind != "file" else ""
                )
                if fault:
                    self.left_out.append(f"{entry.path}: {fault}")
                    continue
                seen.add(entry.path)
                found = self._state(entry.path)
                if found is not None:
                    yield entry.path, found
            self.left_out += [f"{path}: cannot be read" for path in tree.unreadable]
            complete = tree.complete
        if not complete:
            raise InvalidParamsError(
                "parts of this folder cannot be read, so removed files cannot be told from unreadable ones",
                hint="Make them readable, or name them in an ignore file: "
                + ", ".join(self.left_out[:5]),
            )
        for path in self._known:
            if path not in seen:
                found = self._state(path)
                if found is not None:
                    yield path, found

    @staticmethod
    def _allowed(path: str, _is_dir: bool) -> bool:
        return path.rpartition("/")[2].lower() not in _UNLISTED

    def _state(self, path: str) -> FileState | None:
        try:
            if self._root.place(path, follow=False).kind != "file":
                return None
            found = self._root.read(path, limit=LARGEST, follow=False)
        except NotFoundError:
            return None
        except FilepactError as error:
            self.left_out.append(error.message)
            return None
        return file_state(found.data, found.mode)

    def content(self, path: str, wanted: str) -> bytes:
        """The bytes of a file that was looked at.

        Raises:
            NoChangeError: It is another by now: look again.
        """
        data = self._root.read(path, limit=LARGEST, follow=False).data
        if content_id(data) != wanted:
            raise NoChangeError(
                f"{path}: was written to just now", hint="Nothing was sent. Try again."
            )
        return data


class SharedRoot:
    """The checkout that a root of a workspace is.  For all threads.

    Args:
        shared: What it is a checkout of.
        index: From what its files came.
        root: The folder.
        locks: Of this machine, so that two processes do not bring the same version.
        note: Is told which version the folder stands at.
    """

    def __init__(
        self,
        shared: SharedFiles,
        index: CheckoutIndex,
        root: Root,
        locks: FileLocks,
        note: Callable[[int], None] = lambda _number: None,
    ) -> None:
        self._shared = shared
        self._index = index
        self._root = root
        self._locks = locks
        self._note = note
        self._own: set[str] = set()
        self._at = ""
        self._began = index.number
        self._parts: tuple[Rebase, ChangeWriter] | None = None

    def bind(
        self,
        committer: Committer,
        recovery: Recovery,
        *,
        fitting: Rebase,
        writer: ChangeWriter,
    ) -> None:
        """Take the parts of the workspace that the root is in, and publish every change that it commits."""
        self._parts = fitting, writer
        committer.publish, committer.shares = self.publish, True
        recovery.published = self.published

    # -- before a call ---------------------------------------------------------------------

    def refresh(self) -> None:
        """Bring the folder up to the newest version; cheap where it is.

        Raises:
            ObjectStoreFailedError: The server cannot be asked, so nobody can say what is newest.
            PathBlockedError: The folder has lost all files.
        """
        if not self._at:
            self._check_folder()
        head = self._shared.newest()
        if head.change != self._at:
            self._bring(head)

    def _check_folder(self) -> None:
        """Refuse an empty folder that had files: its disk is another one, or was wiped, and nobody has removed them."""
        self._index.load()
        if self._index.files and not self._root.names("."):
            raise PathBlockedError(
                f"this folder is empty or cannot be read, and {len(self._index.files):,} files of the shared workspace were in it",
                hint="Nothing was changed. `filepact workspace checkout` on this folder brings them again; `filepact "
                "workspace sync --ours` removes them there as well.",
                outcome="not_applied",
            )

    def _bring(
        self, head: SharedHead, theirs: frozenset[str] = frozenset()
    ) -> tuple[list[str], list[str]]:
        """Bring the folder up to a version; the files that were, and those that cannot be.

        Args:
            head: The version.
            theirs: Files that become what they are there, whatever was made of them here.
        """
        brought: list[str] = []
        stuck: list[str] = []
        with self._locks.hold({f"shared {self._root.path}"}):
            index = self._index
            index.load()
            if head.number < index.number:
                # Another process of this machine is further already; else the server has gone back.
                if self._shared.newest().number < index.number:
                    raise SharedGoneError(
                        f"the shared workspace is at version {head.number:,}, and this checkout has seen"
                        f" version {index.number:,}",
                        hint="Nothing was changed. An older state was put in its place; a person has to say which "
                        "counts.",
                        outcome="not_applied",
                    )
                return brought, stuck
            files = self._shared.files(head)
            paths = sorted({*_differing(index.files, files), *index.coming})
            for group in _groups(paths, files):
                conflicts = self._apply(group, theirs)
                brought += [path for path in group if path not in conflicts]
                stuck += conflicts
            index.note({}, head)
            if not stuck:
                self._at = head.change
        if brought:
            self._note(head.number)
        return brought, stuck

    def _apply(self, paths: list[str], theirs: frozenset[str]) -> list[str]:
        """Do what others did to some files; those where it does not fit."""
        if self._parts is None:
            raise StateFailedError("the checkout is not open")
        fitting, writer = self._parts
        with fitting.locked(WorkspacePath(self._root.path, path) for path in paths):
            # A change of ours may have been published since a version was asked for, and older ones do not have
            # it.  While the files are locked none is: what is newest now has all of ours.
            self._index.load()
            if arrived := self._arrived(paths):
                self._index.note(arrived)
            head = self._shared.newest()
            files = self._shared.files(head)
            places = {
                entry.content: entry
                for path in paths
                for entry in (self._index.files.get(path), files.get(path))
                if entry is not None
            }
            wanted = [files[path] for path in paths if path in files]
            held = {entry.content: data for entry, data in self._shared.contents(wanted)}

            def content(name: str) -> bytes:
                if name not in held:
                    held[name] = self._shared.content(places[name])
                return held[name]

            changes = tuple(
                FileChange(WorkspacePath(self._root.path, path), before, after)
                for path in paths
                for before in (self._before(path, held, theirs),)
                for after in (_revision(files.get(path)),)
                if before != after
            )
            conflicts: Conflicts = {}
            if changes:
                self._index.note({}, coming={path: files.get(path) for path in paths})
                with suppress(NoChangeError):
                    fitted = fitting.fit(
                        ChangeSet(changes),
                        writer.hides(None),
                        content=content,
                        conflicts=conflicts,
                    )
                    self._write(head, fitted, writer)
            stuck = {path.path for path in conflicts}
            self._index.note({path: files.get(path) for path in paths if path not in stuck})
        return [path.path for path in conflicts]

    def _arrived(self, paths: Iterable[str]) -> dict[str, ManifestEntry | None]:
        """From what those files come whose change was cut off before that was noted; their locks are held."""
        came: dict[str, ManifestEntry | None] = {}
        for path in paths:
            if path in self._index.coming:
                before, after = self._index.files.get(path), self._index.coming[path]
                came[path] = after if self._now(path) == _plain(after) else before
        return came

    def _now(self, path: str) -> tuple[str, int] | None:
        if self._root.place(path, follow=False).kind != "file":
            return None
        found = self._root.read(path, limit=LARGEST, follow=False)
        return _plain(file_state(found.data, found.mode))

    def _write(self, head: SharedHead, fitted: RebaseResult, writer: ChangeWriter) -> None:
        paths = fitted.changes.paths
        several = f"{len(paths):,} files" if len(paths) > 1 else paths[0].path
        proposal = new_proposal(
            Session(f"shared-{head.change}", Actor("program", "shared workspace", head.by)),
            FROM_ELSEWHERE,
            f"bring {several} from version {head.number}",
            fitted.changes,
        )
        self._own.add(proposal.id)
        versions = writer.versions(fitted.contents.__getitem__)
        shown = writer.shown(fitted.changes, versions, None)
        writer.write(proposal, fitted, shown, versions)

    def _before(self, path: str, held: dict[str, bytes], theirs: frozenset[str]) -> Revision | None:
        """What a change of others starts from: what the file came from, or what it is."""
        if path not in theirs:
            return _revision(self._index.files.get(path))
        if self._root.place(path, follow=False).kind != "file":
            return None
        found = self._root.read(path, limit=LARGEST, follow=False)
        held[content_id(found.data)] = found.data
        return Revision.of(found.data, found.mode)

    # -- with a change -----------------------------------------------------------------------

    def publish(
        self, operation: Operation, contents: Mapping[str, bytes]
    ) -> Callable[[], None] | None:
        """Make an operation whose files are staged here the newest version.

        Returns:
            What is to be called when it is done here, while its files are locked; None for nothing to publish.

        Raises:
            SharedConflictError: A file is something else there by now; nothing was changed.
        """
        if operation.id in self._own:
            return None
        wanted: dict[str, FileState | None] = {}
        before: dict[str, tuple[str, int] | None] = {}
        files = (one.of_file for one in operation.changes.compared.changes)
        for change in filter(None, files):
            if change.path.root != self._root.path:
                continue
            path, after = change.path.path, change.after
            if after is not None and after.is_link:
                raise InvalidParamsError(
                    f"{path}: a shared workspace has no links", hint="Nothing was changed."
                )
            wanted[path] = (
                None
                if after is None
                else FileState(
                    after.content, len(contents[after.content]), after.mode & _PERMISSIONS
                )
            )
            was = change.before
            before[path] = None if was is None else (was.content, was.mode & _PERMISSIONS)
        if not wanted:
            return None
        self._index.load()
        came = self._index.files

        def agrees(path: str, there: FileState | None) -> bool:
            now = None if there is None else (there.content, there.mode)
            base = came.get(path)
            return now in (before[path], None if base is None else (base.content, base.mode))

        head, made = self._shared.publish(
            operation.id,
            str(operation.session.actor),
            wanted,
            contents.__getitem__,
            agrees,
            _request_id(operation.session.request),
        )
        # Whatever cuts this off, what the files hold tells from which state they came.
        with suppress(StateFailedError):
            self._index.note({}, coming=made)
        return lambda: self._published(head, made)

    def _published(self, head: SharedHead, made: Mapping[str, ManifestEntry | None]) -> None:
        goes_on = bool(self._at) and head.parent == self._at
        # What is not remembered is found to be the same later.
        with suppress(StateFailedError):
            self._index.note(made, head if goes_on else None)
        if goes_on:
            self._at = head.change

    def published(self, operation: Operation) -> bool | None:
        """Whether an operation that was cut off is in the shared workspace; where it is not, it never will be.

        Returns:
            None for one that has no place there.
        """
        if all(path.root != self._root.path for path in operation.changes.paths):
            return None
        if operation.tool == FROM_ELSEWHERE:
            return True
        return self._shared.made(operation.id, fence=new_id(), after=self._began)

    def made(self, request: str, *, settle: bool) -> bool:
        """Whether something was made for a request, by whatever machine.

        Args:
            request: Its id.
            settle: Whether what a machine that is gone has sent for it is not to be done any more.
        """
        return self._shared.made(_request_id(request), fence=new_id() if settle else "")

    # -- for a person ------------------------------------------------------------------------

    def status(self) -> SharedStatus:
        """How the folder differs from the shared workspace; nothing is changed."""
        head = self._shared.newest()
        self._index.load()
        base, files = self._index.files, self._shared.files(head)
        folder = FolderFiles(self._root, base)
        here = dict(folder.states())
        return SharedStatus(
            self._index.url,
            self._index.number,
            head.number,
            tuple(_differing(base, here)),
            tuple(_differing(base, files)),
            tuple(folder.left_out),
        )

    def sync(self, by: str, *, ours: bool = False, theirs: bool = False) -> SyncResult:
        """Bring what others made, and send what was changed here, by whatever program, as one new version.

        Args:
            by: Who wants it.
            ours: Whether a file that both changed becomes what it is here.
            theirs: Whether it becomes what it is there; what it was here is in the journal.

        Raises:
            SharedConflictError: Others changed the same files again and again meanwhile.
            PathBlockedError: The folder has lost all files, and `ours` does not say that this is meant.
        """
        if not ours:
            self._check_folder()
        brought: dict[str, None] = {}
        for _ in range(_TRIES):
            head = self._shared.newest()
            done, stuck = self._bring(head)
            brought |= dict.fromkeys(done)
            if stuck and (ours or theirs):
                if theirs:
                    self._bring(head, frozenset(stuck))
                else:
                    files = self._shared.files(head)
                    self._index.note({path: files.get(path) for path in stuck})
                stuck = []
            try:
                sent, left_out, number = self._send(by, frozenset(stuck))
            except SharedConflictError:
                continue
            return SyncResult(number, tuple(brought), tuple(sent), tuple(stuck), tuple(left_out))
        raise SharedConflictError(
            "others changed the same files again and again meanwhile",
            hint="What they did is here; what was changed here was not sent. Try again.",
        )

    def _send(self, by: str, but: frozenset[str]) -> tuple[list[str], list[str], int]:
        self._index.load()
        base = dict(self._index.files)
        folder = FolderFiles(self._root, base)
        here = dict(folder.states())
        paths = [path for path in _differing(base, here) if path not in but]
        if not paths:
            return [], folder.left_out, self._index.number
        wanted = {path: here.get(path) for path in paths}
        where = {state.content: path for path, state in wanted.items() if state is not None}

        def agrees(path: str, there: FileState | None) -> bool:
            known = base.get(path)
            return there == (None if known is None else known.state)

        head, made = self._shared.publish(
            new_id(), by, wanted, lambda name: folder.content(where[name], name), agrees
        )
        self._published(head, made)
        return paths, folder.left_out, head.number


def _request_id(request: str) -> str:
    """What a version has of a request; not the id of its first try, which may have been made anew under another."""
    return f"r{request}" if request else ""


def _revision(entry: ManifestEntry | None) -> Revision | None:
    return None if entry is None else Revision(entry.content, entry.mode)


def _differing(
    one: Mapping[str, ManifestEntry | FileState], other: Mapping[str, ManifestEntry | FileState]
) -> list[str]:
    """The paths whose files are not the same, in order."""
    return sorted(
        path
        for path in one.keys() | other.keys()
        if _plain(one.get(path)) != _plain(other.get(path))
    )


def _plain(entry: ManifestEntry | FileState | None) -> tuple[str, int] | None:
    return None if entry is None else (entry.content, entry.mode)


def _groups(paths: list[str], files: Mapping[str, ManifestEntry]) -> Iterator[list[str]]:
    """Paths in as few groups as memory allows."""
    group: list[str] = []
    size = 0
    for path in paths:
        taken = files[path].size if path in files else 0
        if group and size + taken > _TOGETHER:
            yield group
            group, size = [], 0
        group.append(path)
        size += taken
    if group:
        yield group
