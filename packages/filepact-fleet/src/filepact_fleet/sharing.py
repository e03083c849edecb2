"""Puts shared workspaces together: the object store, the folder that is a checkout, and what a person wants of both."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from filepact.errors import (
    FilepactError,
    InvalidParamsError,
    ObjectStoreFailedError,
    SharedConflictError,
    SharedGoneError,
)
from filepact.fs.root import Root
from filepact.fs.state import open_state
from filepact.values import dataclass
from filepact.workspace.journal import new_id
from filepact_fleet.checkout import FolderFiles, SharedRoot, SharedStatus, SyncResult
from filepact_fleet.checkout_index import CheckoutIndex
from filepact_fleet.git_repository import CommitRecord, GitFolder
from filepact_fleet.objects.bucket import open_bucket
from filepact_fleet.objects.repository import BucketWorkspace
from filepact_fleet.objects.upkeep import (
    GRACE,
    BucketLifecycle,
    BucketPruneResult,
    BucketStatistics,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from filepact.fs.state import StateFolder
    from filepact.workspace.workspace import Workspace
    from filepact_fleet.git_repository import GitRevision
    from filepact_fleet.manifest import FileState, ManifestEntry
    from filepact_fleet.objects.heads import Head

__all__ = [
    "GRACE",
    "CommitResult",
    "LoadResult",
    "SharedPlace",
    "begin_checkout",
    "open_checkout",
    "shared_status",
    "sync_checkout",
]


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What was imported.

    Attributes:
        number: The version that has it.
        files: Files of the folder, or of the commit.
        left_out: What a shared workspace cannot have, with the reason.
        commit: The commit that they are of; empty for a folder.
    """

    number: int
    files: int
    left_out: tuple[str, ...]
    commit: str = ""


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What was exported to a Git repository.

    Attributes:
        number: The version.
        files: How many files it has.
        commit: The commit that the branch is at.
        made: Whether it was made now; a branch that holds the version already stays as it is.
    """

    number: int
    files: int
    commit: str
    made: bool


class SharedPlace:
    """A shared workspace at its place, for a person.

    Args:
        url: The place.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        bucket = open_bucket(url)
        self.workspace = BucketWorkspace(bucket)
        self.lifecycle = BucketLifecycle(self.workspace, bucket)

    def create(self, by: str) -> None:
        """Make it.

        Raises:
            InvalidParamsError: There is one.
            ObjectStoreUnsafeError: The server does not keep conditions.
        """
        self.workspace.create(new_id(), by)

    def goes_on(self, index: CheckoutIndex) -> bool:
        """Whether what is here goes on from the version that a checkout stands at."""
        workspace = BucketWorkspace(open_bucket(self.url))
        workspace.expect(index.workspace, index.number, index.change)
        try:
            workspace.newest()
        except SharedGoneError:
            return False
        return True

    def figures(self) -> tuple[Head, BucketStatistics]:
        """Its newest version, and what all of it takes."""
        return self.workspace.newest(), self.lifecycle.figures()

    def check(self) -> Iterator[tuple[str, FilepactError]]:
        """Read all of the newest version; the files that cannot be read, with the reason."""
        return self.lifecycle.check()

    def collect(self, by: str, grace: float) -> BucketPruneResult:
        """One round of upkeep."""
        return self.lifecycle.collect(new_id(), by, grace=grace)

    def take_in(self, folder: str, by: str, *, replace: bool = False) -> LoadResult:
        """Import the files of a folder as one new version.

        Args:
            folder: Its path.
            by: Who does it.
            replace: Whether files that are there with other bytes are replaced.

        Raises:
            SharedConflictError: There are such files.
        """
        with Root.open(folder) as root:
            return self._take(FolderFiles(root), by, replace=replace)

    def take_revision(
        self, repository: str, revision: str, by: str, *, replace: bool = False
    ) -> LoadResult:
        """Import the files of a commit as one new version; a work tree is not looked at.

        Args:
            repository: The folder of a Git repository.
            revision: A branch, a tag or a commit of it.
            by: Who does it.
            replace: Whether files that are there with other bytes are replaced.

        Raises:
            InvalidParamsError: There is no repository.
            NotFoundError: It has no such commit.
            SharedConflictError: There are such files.
        """
        with GitFolder(repository).revision(revision) as files:
            done = self._take(files, by, replace=replace)
            return LoadResult(done.number, done.files, done.left_out, files.commit)

    def _take(self, files: FolderFiles | GitRevision, by: str, *, replace: bool) -> LoadResult:
        wanted: dict[str, FileState | None] = dict(files.states())
        where = {one.content: path for path, one in wanted.items() if one is not None}

        def agrees(path: str, there: FileState | None) -> bool:
            return replace or there is None or there == wanted[path]

        head, _ = self.workspace.publish(
            new_id(), by, wanted, lambda name: files.content(where[name], name), agrees
        )
        return LoadResult(head.number, len(wanted), tuple(files.left_out))

    def write_out(self, folder: str) -> tuple[Head, Mapping[str, ManifestEntry]]:
        """Export the newest version into a folder that is empty, or in which some of it is already.

        Raises:
            SharedConflictError: A file of the folder is another.
        """
        head = self.workspace.newest()
        with Root.open(folder) as root:
            return head, self.fill(root, head)

    def commit(self, repository: str, branch: str) -> CommitResult:
        """Export the newest version as a commit on a branch of a Git repository, whose work tree is left alone.

        Args:
            repository: Its folder.
            branch: The branch, which is made where there is none.

        Raises:
            InvalidParamsError: There is no repository, or the branch is in use in a work tree.
            SharedConflictError: Somebody else moved the branch meanwhile.
            WriteFailedError: Git cannot write.
        """
        git = GitFolder(repository)
        head = self.workspace.newest()
        files = self.workspace.files(head)
        says = (
            f"Version {head.number} of {self.url}\n\n"
            f"Filepact-Version: {head.number}\nFilepact-Change: {head.change}\n"
        )
        entries = {entry.content: entry for entry in files.values()}
        commit, made = git.write(
            branch,
            CommitRecord(head.by, int(head.at), says),
            {path: (entry.content, entry.mode) for path, entry in files.items()},
            ((one.content, data) for one, data in self.workspace.contents(entries.values())),
        )
        return CommitResult(head.number, len(files), commit, made)

    def fill(self, root: Root, head: Head) -> Mapping[str, ManifestEntry]:
        """Write the files of a version into a folder; errors as `write_out`."""
        files = self.workspace.files(head)
        there = dict(FolderFiles(root, files).states())
        other = [
            path for path, one in there.items() if path not in files or files[path].state != one
        ]
        if other:
            raise SharedConflictError(
                f"{len(other):,} files in the folder are not those of the shared workspace: {other[0]}",
                hint="Nothing was changed. Use an empty folder, or import this one with `filepact workspace import`.",
            )
        missing: dict[str, list[str]] = {}
        for path, entry in sorted(files.items()):
            if path not in there:
                missing.setdefault(entry.content, []).append(path)
        made: set[str] = set()
        wanted = {files[paths[0]].content: files[paths[0]] for paths in missing.values()}
        for entry, data in self.workspace.contents(wanted.values()):
            for path in missing[entry.content]:
                above = path.rpartition("/")[0]
                if above and above not in made:
                    root.make_directories(above)
                    made.add(above)
                root.replace(path, data, mode=files[path].mode, expected=None, token=new_id())
        return files


def begin_checkout(url: str, folder: str, state_dir: str) -> tuple[int, int]:
    """Check a shared workspace out into a folder, which is a root like any other then.

    A folder that has lost all files, or is a checkout of what is not at the place any more, is begun with anew, if what it has is what
    the shared workspace has.

    Args:
        url: The shared workspace.
        folder: The folder: empty, or one in which this was begun before.
        state_dir: The state folder, in which the checkout remembers itself.

    Returns:
        The version, and how many files it has.

    Raises:
        InvalidParamsError: The folder is a checkout already.
        SharedConflictError: It has other files.
    """
    place = SharedPlace(url)
    head = place.workspace.newest()
    with Root.open(folder) as root:
        state = open_state(state_dir, [root.path])
        index = CheckoutIndex(state.checkout(root.path))
        if index.exists():
            index.load()
            lost = bool(index.files) and not root.names(".")
            if index.url == url and index.change and (lost or not place.goes_on(index)):
                index.begin(url, index.name)
            if index.url != url or index.change:
                raise InvalidParamsError(
                    f"{folder} is a checkout of {index.url} already",
                    hint="`filepact workspace sync` brings it up to date.",
                )
        else:
            index.begin(url, new_id())
        place.lifecycle.note(index.name, head.number)
        files = place.fill(root, head)
        index.note(files, head)
        return head.number, len(files)


def open_checkout(state: StateFolder, roots: Iterable[Root]) -> SharedRoot:
    """Open the checkout among the roots of a workspace, while certificates and settings are within reach.

    Args:
        state: The state folder of the workspace.
        roots: Those of them that are checkouts.

    Raises:
        InvalidParamsError: There are several.
    """
    root, *others = roots
    if others:
        raise InvalidParamsError(
            "two folders of one workspace are checkouts", hint="Name one of them alone."
        )
    index = CheckoutIndex(state.checkout(root.path))
    index.load()
    place = SharedPlace(index.url)
    place.workspace.expect(index.workspace, index.number, index.change)

    def note(number: int) -> None:
        # Without it upkeep keeps more than it has to, and nothing else.
        with suppress(ObjectStoreFailedError):
            place.lifecycle.note(index.name, number)

    return SharedRoot(place.workspace, index, root, state.locks, note)


def shared_status(workspace: Workspace) -> SharedStatus:
    """How the checkout among the roots differs from its place.

    Raises:
        InvalidParamsError: There is none.
    """
    return _checkout_of(workspace).status()


def sync_checkout(
    workspace: Workspace, by: str, *, ours: bool = False, theirs: bool = False
) -> SyncResult:
    """Bring and send; see `SharedRoot.sync`."""
    if ours and theirs:
        raise InvalidParamsError("conflicts are settled with ours or with theirs, not with both")
    return _checkout_of(workspace).sync(by, ours=ours, theirs=theirs)


def _checkout_of(workspace: Workspace) -> SharedRoot:
    if not isinstance(workspace.publisher, SharedRoot):
        raise InvalidParamsError(
            "no folder here is a checkout of a shared workspace",
            hint="`filepact workspace checkout URL DIR` makes one.",
        )
    return workspace.publisher
