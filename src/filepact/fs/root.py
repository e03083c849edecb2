"""A directory as a capability: reading and changing beneath it, and nothing above.

The path of a verb that changes something is a canonical one, from `Root.place`; a link that
appeared in it since is refused.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING

from filepact.domain.attributes import Attributes
from filepact.domain.document import Revision
from filepact.errors import (
    FilepactError,
    NotAFileError,
    NotFoundError,
    PathBlockedError,
    StaleFileError,
    WriteFailedError,
)
from filepact.fs import atomic, staged
from filepact.fs.attributes import dress_folder, folder_state, not_kept, open_closed
from filepact.fs.in_place import (
    JOINED,
    USUAL,
    Staging,
    WriteResult,
    all_names,
    check,
    may_write,
    name_again,
    names_of,
)
from filepact.fs.kernel import born
from filepact.fs.path_form import temporary_name, token_of
from filepact.fs.read import FileContents, moved, permissions_given, write_failed
from filepact.fs.read_only_root import FOLDER, MOVED, RootReader, root_gone
from filepact.fs.staged import StagedChange, at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from filepact.fs.read_only_root import OpenFile

__all__ = ["Root"]


class Root(RootReader):
    """A directory that is held open, and may be changed.

    Attributes:
        keeps_links: Whether a file with several names (hard links) goes on being one file when it is changed.
        may_change: Whether a name of such a file may be changed along with another; of nobody who has not asked the rules.
    """

    keeps_links = True
    may_change: Callable[[str], bool] = staticmethod(lambda _path: False)

    def new_mode(self, path: str) -> int:
        """The permission bits that the system gives a new file of this name."""
        return self._given(path, 0o666)

    def new_folder_mode(self, path: str) -> int:
        """The permission bits that the system gives a new folder of this name."""
        return self._given(path, 0o777)

    def _given(self, path: str, asked: int) -> int:
        # Folders that are missing take over the list of the one that is there.
        while path:
            path = path.rpartition("/")[0]
            with suppress(FilepactError), self._open(path or ".") as folder:
                return permissions_given(folder, asked, self._mask)
        return asked & ~self._mask

    def makes(self, path: str, folder: Revision) -> bool:
        """Whether every new folder of this name is in this state, as far as it is known.

        One that is closed to others is not: whoever makes it again may have another umask, and it would be open.
        """
        has = folder.attributes
        plain = has is None or has == Attributes(os.geteuid(), os.getegid())
        is_open = folder.mode & 0o055 == 0o055
        return plain and is_open and folder.mode & 0o7777 == self.new_folder_mode(path)

    def lock_key(self, path: str) -> str:
        """The lock that a change of a path takes, whatever lies there, or on the way.

        Raises:
            PathBlockedError: The root is no longer there.
        """
        while True:
            try:
                return self.place(path, follow=False, known=True).lock_key
            except (NotFoundError, PathBlockedError):
                path = path.rpartition("/")[0]
                if not path:
                    raise

    # -- changing one file ----------------------------------------------------------------

    def stage(
        self,
        path: str,
        data: bytes | atomic.StagedContent | None,
        *,
        after: Revision | None,
        expected: Revision | None,
        token: str,
        file: OpenFile | None = None,
        beside: str | None = None,
        how: Staging = USUAL,
    ) -> StagedChange:
        """Stage the change of one file: everything that needs disk space is done now.

        It is given to `apply`, then to `sync`, then to `settle`; or, at any point before that, to
        `take_back` if it was applied, and to `drop`.

        Args:
            path: Its canonical path.
            data: What it shall hold, or what `prepare` has made of that; None: it shall go.
            after: The state that it is in then; `LINK` makes a link to the name that ``data`` is.
            expected: The state it must be in; None: it must not exist.
            token: Part of the temporary name; letters, digits and ``-``, not to be guessed.
            file: It, if it is held: its folder is looked up again to apply the change, and one that was
                moved meanwhile is found out there.
            beside: The folder in which the temporary name is, for a file that is made or removed with
                its own folder; None for that folder.
            how: How a file is replaced.

        Raises:
            StaleFileError: It is in another state.
            WriteFailedError: The system refused; nothing was changed.
        """
        if beside is not None:
            name = path.rpartition("/")[2]
            with self._open(beside) if expected is None else self._above(path) as parent:
                one = self._stage(parent, name, data, after, expected, token, path, how)
            one.beside = beside
            return one
        if file is not None and file.folder >= 0:
            name = path.rpartition("/")[2]
            one = self._stage(file.folder, name, data, after, expected, token, path, how)
            # Wherever the folder is by then, what was prepared is removed from there.
            one.keep(file.folder, lent=True)
            one.file = file
            return one
        with self._parent(path) as (parent, name):
            return self._stage(parent, name, data, after, expected, token, path, how)

    def join(
        self,
        path: str,
        other: str,
        *,
        after: Revision,
        token: str,
        beside: str | None,
        expected: Revision | None = None,
    ) -> StagedChange | None:
        """Stage one more name of a file that has, or had, several (hard links); arguments as for `stage`.

        The file is found by the canonical path ``other``, or kept there, and has to be in the state ``after`` already.

        Returns:
            None, and nothing is done, where that is another file by now, or the system joins no names.
        """
        folder = (path.rpartition("/")[0] or ".") if beside is None else beside
        there = nullcontext((-1, other)) if other.startswith("/") else self._parent(other)
        with suppress(FilepactError), there as found, self._open(folder) as parent:
            temp, name = temporary_name(token), path.rpartition("/")[2]
            if expected is not None:
                check(parent, name, expected, path)
            ours = name_again(parent, temp, found, after, path)
            one = StagedChange(name, token, path, ours)
            if expected is not None:
                one = staged.StagedOverwrite(name, token, path, expected, ours)
            one.beside = beside
            return one
        return None

    def prepare(
        self, path: str, data: bytes, *, after: Revision, expected: Revision | None, file: OpenFile
    ) -> atomic.StagedContent | None:
        """Write what `stage` is going to need, without giving it a name; arguments and errors as there.

        The caller closes it.  None, and nothing is left, where the system cannot do it.
        """
        if expected is None:
            return atomic.write_unnamed(file.folder, data, after=after, like=None)
        if file.info.mode != expected.mode:
            raise moved(path)
        old = file.reader(), expected
        if (found := atomic.write_unnamed(file.folder, data, after=after, like=old)) is not None:
            found.like = file.info.device, file.info.inode
        return found

    def _stage(
        self,
        parent: int,
        name: str,
        data: bytes | atomic.StagedContent | None,
        after: Revision | None,
        expected: Revision | None,
        token: str,
        path: str,
        how: Staging = USUAL,
    ) -> StagedChange:
        if data is None or after is None:
            if expected is None:
                raise ValueError("a change from nothing to nothing")
            return staged.remove(parent, name, expected=expected, token=token, shown=path)
        if expected is None:
            return staged.create(parent, name, data, after=after, token=token, shown=path)
        links = 0
        with suppress(OSError):  # Who looks at its bytes finds out.
            now = os.stat(name, dir_fd=parent, follow_symlinks=False)
            links, inode = now.st_nlink, (now.st_dev, now.st_ino)
            if isinstance(data, atomic.StagedContent) and data.like not in (None, inode):
                data = data.data  # Another file by now may have something else besides.
        looks = how.joins and links > 1 and self.keeps_links and not how.why
        others = self.other_names(path) if looks else None
        return staged.replace(
            *(parent, name, data),
            after=after,
            expected=expected,
            token=token,
            shown=path,
            early=how.early,
            joined=f"{JOINED}, {', '.join(others)}" if others else how.why,
        )

    def other_names(self, path: str) -> tuple[str, ...] | None:
        """The other names (hard links) of a file, all of them.

        Returns:
            None where it is no such file, or has names that are not found here, or may not be changed: then what is
            written to it would change what lies elsewhere.
        """
        with suppress(OSError, FilepactError), self._parent(path) as (parent, name):
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
            found = all_names(status, partial(self.open_directory, follow=False), path)
            if all(map(self.may_change, found)):
                return tuple(sorted({*found} - {path})) or None
        return None

    def names_of(self, file: str, *, near: str, most: int = 2) -> list[str]:
        """The names of a file of several, as `Attributes.linked` has it, that are found here and may be changed."""
        found = names_of(file, partial(self.open_directory, follow=False), near=near, most=most)
        return [*filter(self.may_change, found)]

    def apply(self, one: StagedChange) -> None:
        """Apply a staged change; errors as `StagedChange.apply`."""
        with self._above(one.shown) as parent, ExitStack() as held:
            aside = parent if one.beside is None else held.enter_context(self._open(one.beside))
            one.apply(parent, aside)
            one.keep(atomic.reopen(aside) if one.holds else -1)

    def take_back(self, one: StagedChange) -> None:
        """Undo `apply`; errors as `StagedChange.take_back`."""
        if one.beside is None:
            with self._folder(one) as parent:
                one.take_back(parent)
            return
        with self._above(one.shown) as parent, self._folder(one) as aside:
            one.take_back(parent, aside)

    def settle(self, one: StagedChange) -> WriteResult:
        """Remove the old file of an applied change; it cannot be taken back then."""
        if one.folder >= 0:
            return one.settle(one.folder)
        with self._folder(one) as parent:
            return one.settle(parent)

    def drop(self, one: StagedChange) -> None:
        """Remove the temporary file of a change that is not applied."""
        with self._folder(one) as parent:
            one.drop(parent)

    def sync(self, one: StagedChange) -> bool:
        """Synchronise the folder of a change to disk.  Returns whether the system confirmed it."""
        if one.beside is not None:
            # Its own folder has come, which was never looked into before, or has gone.
            with suppress(FilepactError), self._above(one.shown) as parent:
                if atomic.sync(parent) != "applied":
                    return False
        with self._folder(one) as parent:
            return atomic.sync(parent, opened=one.folder >= 0) == "applied"

    @contextmanager
    def _folder(self, one: StagedChange) -> Iterator[int]:
        """The folder of a staged change's temporary name: the one in which it was applied, if that is held."""
        if one.folder >= 0:
            yield one.folder
            return
        with self._above(one.shown) if one.beside is None else self._open(one.beside) as parent:
            yield parent

    def replace(
        self,
        path: str,
        data: bytes,
        *,
        mode: int,
        expected: Revision | None,
        token: str,
        attributes: Attributes | None = None,
        how: Staging = USUAL,
    ) -> WriteResult:
        """Write one file durably, if it is in an expected state; arguments as for `stage`.

        Raises:
            StaleFileError: It is in another state, and was left in it.
            WriteFailedError: The system refused; nothing was changed.
        """
        after = Revision.of(data, mode, attributes)
        with self._parent(path) as (parent, name):
            one = self._stage(parent, name, data, after, expected, token, path, how)
            return at_once(parent, one)

    def remove(self, path: str, *, expected: Revision, token: str) -> WriteResult:
        """Remove one file, if it is in an expected state; arguments and errors as `replace`."""
        with self._parent(path) as (parent, name):
            return at_once(parent, self._stage(parent, name, None, None, expected, token, path))

    def rename(self, path: str, to: str, states: Iterable[tuple[str, Revision]]) -> bool:
        """Give a file, link or folder another name in one step, durably, if it is in an expected state.

        Args:
            path: Its canonical path.
            to: The new one, which must be free.
            states: The states of all that is moved, by the paths below it; its own by an empty path.

        Returns:
            False, and nothing is done, where that takes a copy.

        Raises:
            StaleFileError: It is in another state, or the new name is taken; nothing was changed.
            WriteFailedError: The system refused; nothing was changed.
        """
        with self._parent(path) as (parent, name), self._parent(to) as (there, new):
            if not atomic.move_entry(parent, name, there, new, (path, to)):
                return False
            try:
                for below, state in (one for one in states if not one[1].is_folder):
                    self._check(f"{to}/{below}" if below else to, state)
            except FilepactError:
                # What was saved into it at this moment goes back with it.
                atomic.give_back(there, new, name, path, parent)
                raise
            atomic.sync(there)
            atomic.sync(parent)
        return True

    def _check(self, path: str, state: Revision) -> None:
        with self._parent(path) as (parent, name):
            check(parent, name, state, path)

    # -- folders --------------------------------------------------------------------------

    def make_directories(self, path: str, state: Revision | None = None) -> tuple[str, ...]:
        """Make a folder and the missing ones above it, durably.

        Args:
            path: The folder.
            state: The state that it is made in; None for that of any new folder, as the ones above it have.

        Returns:
            The canonical paths of those that were made, outermost first.
        """
        with closing(self._find(path)) as found:
            if found.status is not None:
                if not stat.S_ISDIR(found.status.st_mode):
                    raise NotAFileError(f"{path}: is not a folder", path=path)
                return ()
            names = [*found.rest, found.name]
            prefix = found.path[: -len("/".join(names))]
            here = os.dup(found.parent)
        made: list[str] = []
        try:
            for number, name in enumerate(names, start=1):
                here, new = self._make_one(
                    here, name, path, state if number == len(names) else None
                )
                if new:
                    made.append(prefix + "/".join(names[:number]))
        except WriteFailedError:
            for done in reversed(made):
                with suppress(FilepactError):
                    self.remove_directory(done)
            raise
        finally:
            os.close(here)
        return tuple(made)

    def _make_one(
        self, parent: int, name: str, path: str, state: Revision | None
    ) -> tuple[int, bool]:
        """Make a folder in another, whose descriptor is closed.

        Returns:
            The descriptor of the folder, and whether it is new.
        """
        made, below = True, -1
        try:
            try:
                # Never open to more than it is going to be; what is new is as the system makes it.
                os.mkdir(name, 0o777 if state is None else 0o700, dir_fd=parent)
            except FileExistsError:
                made = False  # Somebody else made it just now, which is as good, but theirs.
            below = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=parent)
            if made and state is not None:
                dress_folder(below, state)
            atomic.sync(parent)
        except OSError as error:
            if below >= 0:
                os.close(below)
            raise WriteFailedError(
                f"{path}: the folder {name} cannot be made ({os.strerror(error.errno or 0)})",
                hint="Nothing was written.",
                path=path,
            ) from None
        os.close(parent)
        return below, made

    def remove_directory(self, path: str) -> bool:
        """Remove a folder if it is empty.  Returns whether it was.

        Raises:
            WriteFailedError: The system refused.
        """
        with self._parent(path) as (parent, name):
            try:
                os.rmdir(name, dir_fd=parent)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR):
                    return False
                raise write_failed(error, path) from None
            atomic.sync(parent)
        return True

    def set_folder(self, path: str, state: Revision) -> tuple[str, ...]:
        """Give a folder that is no link the mode and attributes of a state; notes on what could not be given.

        Raises:
            WriteFailedError: The system refused, or it is no folder.
        """
        with self._parent(path, top=True) as (parent, name):
            try:
                folder = open_closed(parent, name)
                try:
                    return dress_folder(folder, state)
                finally:
                    os.close(folder)
            except OSError as error:
                raise write_failed(error, path) from None

    def set_time(self, path: str, was: int | None, modified: int) -> None:
        """Give a file or folder a time, if it has the one that is known or that is None; nothing depends on it."""
        with suppress(FilepactError, OSError), self._parent(path) as (parent, name):
            st = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if was in (None, st.st_mtime_ns):
                os.utime(name, ns=(st.st_atime_ns, modified), dir_fd=parent, follow_symlinks=False)

    def folder_state(self, path: str) -> Revision | None:
        """The state of a folder; None where none is."""
        with suppress(FilepactError), self._parent(path, top=True) as (parent, name):
            return folder_state(parent, name)
        return None

    def born(self, path: str) -> int | None:
        """When a file or folder was made; see `born`."""
        with suppress(FilepactError), self._parent(path) as (parent, name):
            return born(parent, name)
        return None

    def shut_folder(self, path: str) -> Revision | None:
        """The permission bits of a folder into which this process can put no names; None for any other."""
        with suppress(FilepactError), self._open(path) as folder:
            mode = os.fstat(folder).st_mode
            if not mode & 0o200 and not may_write(folder, "."):
                return Revision.folder(mode)
        return None

    def not_kept(self) -> tuple[str, ...]:
        """The attributes of a file that cannot be restored here, in plain words."""
        with self._open(".") as folder:
            return not_kept(folder)

    # -- what a crash left ----------------------------------------------------------------

    def leftovers(self, directory: str, beginning: str) -> tuple[str, ...]:
        """List the tokens of the temporary files in a folder that begin with ``beginning``."""
        tokens = (token_of(name) for name in self.names(directory))
        return tuple(one for one in tokens if one is not None and one.startswith(beginning))

    def may_have_leftover(self, directory: str, token: str) -> bool:
        """Whether the temporary file of a change may be there."""
        name = temporary_name(token)
        try:
            os.stat(f"{directory}/{name}", dir_fd=self._descriptor, follow_symlinks=False)
        except OSError:
            return False
        return True

    def leftover(self, directory: str, token: str) -> FileContents | None:
        """The bytes of a change's temporary file; None when there is none."""
        name = temporary_name(token)
        path = name if directory == "." else f"{directory}/{name}"
        kind = self.place(path, follow=False, known=True).kind
        if kind == "link":
            return self.read_link(path)
        if kind != "file":
            return None
        return self.read(path, limit=1 << 32)

    def resume(
        self,
        path: str,
        *,
        before: Revision | None,
        after: Revision | None,
        token: str,
        beside: str | None = None,
    ) -> StagedChange:
        """Resume a change that another process applied and did not settle, to take it back.

        Arguments as for `stage`, and as of `staged.resume`.

        Raises:
            StaleFileError: There is nothing to be taken back.
        """
        name = path.rpartition("/")[2]
        aside = beside if after is None else None
        with self._above(path) if aside is None else self._open(aside) as parent:
            one = staged.resume(parent, name, before=before, after=after, token=token, shown=path)
        one.beside = beside
        return one

    def discard_leftover(self, directory: str, token: str) -> None:
        """Remove the temporary file of a change."""
        name = temporary_name(token)
        with self._parent(name if directory == "." else f"{directory}/{name}") as (parent, leaf):
            with suppress(FileNotFoundError):
                os.unlink(leaf, dir_fd=parent)
            atomic.sync(parent)

    @contextmanager
    def _parent(self, path: str, *, top: bool = False) -> Iterator[tuple[int, str]]:
        """The folder of a canonical path, no link followed, and the last name; with ``top`` of the root, itself."""
        if top and path == ".":
            if not self.alive():
                raise root_gone()
            yield self._descriptor, path
            return
        if any(part in ("", ".", "..") for part in path.split("/")):
            raise ValueError(f"not a canonical path: {path!r}")
        with self._above(path) as parent:
            yield parent, path.rpartition("/")[2]

    def _above(self, path: str) -> AbstractContextManager[int]:
        """The folder of a canonical path, no link followed."""
        return self._open(path.rpartition("/")[0] or ".", path)

    @contextmanager
    def _open(self, folder: str, path: str = "") -> Iterator[int]:
        """A folder by its canonical path, no link followed; errors name what is looked for in it."""
        path = path or folder
        if not self.alive():
            raise root_gone()
        try:
            parent = self._resolver.open_folder(self._descriptor, folder)
        except OSError as error:
            if error.errno in MOVED:
                raise StaleFileError(
                    f"{path}: a folder on the way was moved or replaced meanwhile",
                    hint="Nothing was changed. Look at the tree again.",
                    path=path,
                ) from None
            raise write_failed(error, path) from None
        try:
            yield parent
        finally:
            os.close(parent)
