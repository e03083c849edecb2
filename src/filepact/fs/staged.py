"""Changes of one file in steps that can be taken back, so that nobody's bytes are lost.

A change has steps, so that several files are changed together.  It is *staged*: the new text is
written beside the target and made durable, which needs all the room that it will ever need.  It is
*applied*: the two names are exchanged in one step, and what came out is looked at; if that is not
what the change started from, it goes back.  So a save that another program makes at the same moment
is never overwritten unseen, and a reader sees the old text or the new one, never a part.  Until it
is *settled*, the old file lies under the temporary name and can be *taken back* without any room.

Bytes that are neither ours nor the expected ones are never unlinked.  When they cannot go back
either, they are put beside the file under a name that people see.

Where the file system cannot exchange two names, the file is checked as late as possible and then
replaced by a plain rename; a save that falls between the two is overwritten, and taking it back
needs room.  A new file is treated so where there are no second names either.  `WriteResult.notes` says so.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from filepact.domain.document import LINK
from filepact.domain.operation import IN_PLACE
from filepact.errors import StaleFileError, WriteFailedError
from filepact.fs.atomic import (
    DisplacedFile,
    Outcome,
    StagedContent,
    StagedFile,
    StagedLink,
    discard,
    exchange,
    give_back,
    make_link,
    move_out,
    open_expected,
    put_aside,
    rename_new,
    sync,
    write_temp,
)
from filepact.fs.in_place import (
    MOUNTED,
    NOT_OURS,
    SHUT,
    Overwrite,
    WriteResult,
    check,
    check_writable,
    keep_removed,
    may_write,
    same_owner,
    write_over,
)
from filepact.fs.kernel import only_takes
from filepact.fs.path_form import temporary_name
from filepact.fs.read import (
    NO_EXCHANGE,
    inode_of,
    is_link,
    link_target,
    made_meanwhile,
    moved,
    not_removed,
    open_named,
    saved_twice,
    write_failed,
)
from filepact.values import replace as with_outcome

if TYPE_CHECKING:
    from filepact.domain.document import Revision
    from filepact.fs.read_only_root import OpenFile

__all__ = [
    "StagedChange",
    "StagedOverwrite",
    "at_once",
    "create",
    "remove",
    "replace",
    "resume",
]

_UNMOVED = "this process may neither make nor move links: only the person can bring it back, and what took its place at the same instant could have been removed"
_LEFT = "the old text could not be removed and is still there as {}"


class StagedChange:
    """A change of one name that is prepared, and takes effect when it is applied.

    As it stands, the change of a name that is free: it is given to what was prepared.

    Every step is given the folder by its descriptor, since an operation may have more files than a
    process may have open.  Where the folder itself comes or goes with the operation, the temporary name
    is in another one, of which `apply` and `take_back` are given the descriptor ``aside`` as well, and
    `settle` and `drop` alone.

    Args:
        name: The target's name in its folder.
        token: Makes the temporary name; not to be guessed.
        shown: How the file is called in messages.
        ours: The new text or link as we left it under the temporary name; None where there is none.

    Attributes:
        temp: The temporary name.
        beside: The path of the folder that it is in; None for the target's own.
        holds: Whether the old file and the folder stay open from when it is applied until it is
            settled or closed.
        folder: Descriptor of the folder, where it is held; ``file``: the old file, where it is.
        retains: Whether the old file has a name until then, so that it comes back without room.
        writes_over: Whether the file itself is written, so that its other names (hard links) show that as well.
        place: Where the file is kept once it is removed, or was kept until it came back, as of `removed_place`; empty for nowhere.
        notes: What a person should know, as far as it goes.
    """

    def __init__(
        self, name: str, token: str, shown: str, ours: StagedFile | StagedLink | None = None
    ) -> None:
        self.name = name
        self.temp = temporary_name(token)
        self.beside: str | None = None
        self.shown = shown
        self.holds = True
        self.folder = -1
        self.lent = False
        self.file: OpenFile | None = None
        self.retains = True
        self.writes_over = False
        self.place = ""
        self.notes: tuple[str, ...] = ()
        self._ours = ours
        self._held: DisplacedFile | None = None

    def apply(self, parent: int, aside: int = -1) -> None:
        """Apply the change.

        Raises:
            StaleFileError: The target is in another state; it was left as it is.
            WriteFailedError: The system refused; nothing was changed.
        """
        self._bring_in(parent, aside)

    def take_back(self, parent: int, aside: int = -1) -> None:
        """Undo what `apply` did, where the old file is retained; it can be dropped then.

        Raises:
            StaleFileError: Somebody has changed it since; what they made of it is in place.
            WriteFailedError: The system refused.
        """
        aside = parent if aside < 0 else aside
        move_out(parent, self.name, self.temp, self.shown, aside)
        if not self._new_aside(aside):
            give_back(aside, self.temp, self.name, self.shown, parent)
            raise moved(self.shown)

    def settle(self, parent: int) -> WriteResult:
        """Remove the old file; ``applied_not_durable`` where it could not be removed."""
        outcome: Outcome = "applied"
        held, self._held = self._held, None
        # Only the old file: what could not be put aside is somebody's, and stays.
        old = self._old_aside(parent)
        if old and self.place and keep_removed(parent, self.temp, self.place):
            if held is not None:
                held.kept = True
        elif old and not discard(parent, self.temp):
            outcome = "applied_not_durable"
            self.notes += (_LEFT.format(self.temp),)
        if self.place and self._ours is not None:
            discard(parent, self.place)
        return WriteResult(outcome, held, self.notes)

    def drop(self, parent: int) -> None:
        """Remove what was prepared and is not applied, unless somebody else has changed it."""
        if self._ours is None:
            return
        if self._ours.unused(parent, self.temp):
            discard(parent, self.temp)
        elif self._is_ours(parent, self.temp):
            # An editor that opened it while it had the target's name may save into it at any moment after; that text
            # is the person's, and gets a name that people see.
            put_aside(parent, self.temp, self.name)

    def keep(self, folder: int, *, lent: bool = False) -> None:
        """Keep a folder's descriptor in place of the one so far; who has ``lent`` it closes it."""
        if self.folder >= 0 and not self.lent:
            os.close(self.folder)
        self.folder, self.lent = folder, lent

    def close(self) -> None:
        """Close the old file and the folder."""
        self.keep(-1)
        if self._held is not None:
            self._held.close()
            self._held = None

    def _old_aside(self, _parent: int) -> bool:
        """Whether the temporary name leads to what was replaced."""
        return False

    def _new_aside(self, parent: int) -> bool:
        """Whether the temporary name leads to what was prepared."""
        return self._ours is not None and self._ours.still(parent, self.temp)

    @property
    def is_aside(self) -> bool:
        """Whether what was prepared has a temporary name until the change is settled."""
        return self._ours is not None

    def _is_ours(self, parent: int, name: str) -> bool:
        """Whether a name leads to the file that we wrote, whatever it holds by now."""
        return self._ours is not None and inode_of(parent, name) == self._ours.inode

    def _bring_in(self, parent: int, aside: int) -> None:
        """Rename what was prepared to the target's name, which must be free."""
        try:
            told = rename_new(parent if aside < 0 else aside, self.temp, self.name, parent)
        except OSError as error:
            if error.errno == errno.EEXIST:
                raise made_meanwhile(self.shown) from None
            raise write_failed(error, self.shown) from None
        self.notes += (told,) * bool(told)


class _OfOld(StagedChange):
    """A change of an existing file or link, whose state is checked once it has been moved out.

    Args:
        expected: The state that it must be in.
    """

    def __init__(
        self,
        name: str,
        token: str,
        shown: str,
        expected: Revision,
        ours: StagedFile | StagedLink | None = None,
    ) -> None:
        super().__init__(name, token, shown, ours)
        self._expected = expected
        self._aside: tuple[int, int] | None = None
        self._why_not: OSError | None = None

    def settle(self, parent: int) -> WriteResult:
        if self._aside is not None and self._held is None:
            with suppress(OSError):
                self._held = DisplacedFile(open_named(parent, self.temp), self._expected.content)
        return super().settle(parent)

    def note_aside(self, parent: int) -> None:
        """Note that the temporary name holds the old file."""
        self._aside = inode_of(parent, self.temp)

    def _old_aside(self, parent: int) -> bool:
        return self._aside is not None and inode_of(parent, self.temp) == self._aside

    def _came_out(self, parent: int, name: str) -> bool:
        """Whether a name leads to a file in the expected state; then it is the old one.

        What cannot be read cannot be trusted to be in it: then `_why_not` is the reason.
        """
        self._why_not = None
        if self._expected.mode == LINK:
            same = is_link(parent, name, self._expected)
            self._aside = inode_of(parent, name) if same else None
            return same
        try:
            found = self.file and self.file.open_again(parent, name)
            now = found[0] if found else open_named(parent, name)
            old = DisplacedFile(now, self._expected.content)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ELOOP, errno.EINVAL):
                self._why_not = error
            return False
        same = False
        try:
            status = found[1] if found else old.status()
            same = stat.S_IMODE(status.st_mode) == self._expected.mode
            same = same and old.is_as_it_was(status.st_size)
            self._aside = (status.st_dev, status.st_ino) if same else None
        except OSError as error:
            self._why_not = error
        if same and self.holds:
            self._held = old
        else:
            old.close()
        return same

    def _refusal(self) -> StaleFileError | WriteFailedError:
        """Why what came out is not taken for the old file."""
        if self._why_not is not None:
            return write_failed(self._why_not, self.shown)
        return moved(self.shown)


class StagedOverwrite(_OfOld):
    """A file or link that is there, and another one in its place; arguments as for the others."""

    in_place: Overwrite | None = None

    def apply(self, parent: int, aside: int = -1) -> None:  # noqa: ARG002 - both names are in one folder
        if self.in_place and self.in_place.why:
            self._write_over(parent, self.in_place)
            return
        try:
            exchange(parent, self.temp, self.name)
        except OSError as error:
            if error.errno == errno.EBUSY and self.in_place:
                self.in_place.why = MOUNTED
                self._write_over(parent, self.in_place)
                return
            if error.errno == errno.ENOSYS:
                self._rename(parent)
                return
            if error.errno == errno.ENOENT:
                raise moved(self.shown) from None
            raise write_failed(error, self.shown) from None
        if self._came_out(parent, self.temp):
            return
        # Somebody saved at this very moment.  Their text is under our temporary name now.
        try:
            exchange(parent, self.temp, self.name)
        except OSError:
            kept = put_aside(parent, self.temp, self.name)
            if self._is_ours(parent, self.name):
                self.retains = False
                told = f"another program saved the file at the same moment; its text is in {kept}"
                self.notes += (told,)
                return
            raise saved_twice(self.shown, kept) from None
        if self._new_aside(parent):
            raise self._refusal()
        self._newest_in_place(parent)

    def _write_over(self, parent: int, how: Overwrite) -> None:
        """Write the new text over the old one in the same file; what was prepared stays until it is settled."""
        self.notes = write_over(
            parent, self.name, how.data, expected=self._expected, after=how.after, shown=self.shown
        )
        self.notes += (f"{IN_PLACE}: {how.why}",)
        self._aside, self.retains = None, False

    def settle(self, parent: int) -> WriteResult:
        if self.in_place and self.in_place.why:
            self.drop(parent)
            # Whoever finds what was prepared takes the change for one that is not done.
            sync(parent)
        return super().settle(parent)

    def _newest_in_place(self, parent: int) -> None:
        """Leave the newest text in place: somebody saved once more, over our text or into it.

        Raises:
            StaleFileError: Always.
        """
        with suppress(OSError):
            exchange(parent, self.temp, self.name)
        raise saved_twice(self.shown, put_aside(parent, self.temp, self.name))

    def _rename(self, parent: int) -> None:
        """Replace by a plain rename, checked as late as possible."""
        if not self._came_out(parent, self.name):
            raise self._refusal()
        self._aside, self.retains = None, False
        try:
            os.rename(self.temp, self.name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError as error:
            self.close()
            raise write_failed(error, self.shown) from None
        self.notes += (NO_EXCHANGE,)

    def take_back(self, parent: int, aside: int = -1) -> None:  # noqa: ARG002 - both names are in one folder
        if not self._old_aside(parent):
            raise moved(self.shown)
        try:
            exchange(parent, self.temp, self.name)
        except OSError as error:
            raise write_failed(error, self.shown) from None
        if not self._new_aside(parent):
            with suppress(OSError):
                exchange(parent, self.temp, self.name)
            raise moved(self.shown)
        self._aside = None


class _Removal(_OfOld):
    """A file or link that is to go away, and not what that leads to."""

    def apply(self, parent: int, aside: int = -1) -> None:
        aside = parent if aside < 0 else aside
        try:
            move_out(parent, self.name, self.temp, self.shown, aside)
        except WriteFailedError as error:
            refused = error.details.get("errno") in (errno.EACCES, errno.EPERM)
            if not refused or self._expected.mode != LINK:
                raise
            self._unlink(parent)
            return
        if not self._came_out(aside, self.temp):
            give_back(aside, self.temp, self.name, self.shown, parent)
            raise self._refusal()

    def _unlink(self, parent: int) -> None:
        """Remove a link: whoever is confined may do that, but move none, which would be to make one."""
        if not is_link(parent, self.name, self._expected):
            raise moved(self.shown)
        if not discard(parent, self.name):
            raise not_removed(self.shown)
        self.retains = False
        self.notes += (_UNMOVED,)

    def take_back(self, parent: int, aside: int = -1) -> None:
        if not self._old_aside(parent if aside < 0 else aside):
            raise moved(self.shown)
        self._bring_in(parent, aside)
        self._aside = None


# -- staging ----------------------------------------------------------------------------------


def create(
    parent: int, name: str, data: bytes | StagedContent, *, after: Revision, token: str, shown: str
) -> StagedChange:
    """Prepare a file or link that must not exist.

    Args:
        parent: Descriptor of its folder.
        name: Its name there.
        data: What it shall hold, of a link the name that it leads to, or the file that has it already and lacks its name.
        after: The state that it is in then.
        token: Makes the temporary name; not to be guessed.
        shown: How the file is called in messages.

    Raises:
        WriteFailedError: The system refused; nothing was changed.
    """
    ours, notes = _written(parent, name, data, after, None, token, shown)
    staged = StagedChange(name, token, shown, ours)
    staged.notes = notes
    return staged


def replace(  # noqa: PLR0913 - what there is to be said of one change
    parent: int,
    name: str,
    data: bytes | StagedContent,
    *,
    after: Revision,
    expected: Revision,
    token: str,
    shown: str,
    early: bool = True,
    joined: str = "",
) -> StagedChange:
    """Prepare a new content for a file or link that is in an expected state; arguments as for `create`.

    Of a file, owner, extended attributes and access lists are kept as far as the system lets us.
    With ``early`` its bytes are looked at now already, and not only when the change is applied.
    With ``joined`` it is written in place, for this reason.

    Raises:
        StaleFileError: It is in another state.
        WriteFailedError: The system refused; nothing was changed.
    """
    file = LINK not in (expected.mode, after.mode)
    if file:
        check_writable(parent, name, expected=expected, after=after, shown=shown)
    ours: StagedFile | StagedLink | None = None
    notes: tuple[str, ...] = ()
    try:
        ours, notes = _written(parent, name, data, after, expected, token, shown, early=early)
    except WriteFailedError:
        if not file or (may_write(parent, ".") and not only_takes(parent)):
            raise
        joined = SHUT
    staged = StagedOverwrite(name, token, shown, expected, ours)
    staged.notes = notes
    if file:
        if not joined and not same_owner(parent, name, ours, expected, after):
            joined = NOT_OURS
        held = data.data if isinstance(data, StagedContent) else data
        staged.in_place, staged.writes_over = Overwrite(after, held, joined), bool(joined)
    return staged


def _written(
    parent: int,
    name: str,
    data: bytes | StagedContent,
    after: Revision,
    expected: Revision | None,
    token: str,
    shown: str,
    *,
    early: bool = False,
) -> tuple[StagedFile | StagedLink, tuple[str, ...]]:
    """The new text or link under its temporary name, and notes."""
    if only_takes(parent):
        # The temporary name could neither be given up nor removed again.
        raise write_failed(PermissionError(errno.EPERM, ""), shown)
    temp = temporary_name(token)
    if after.mode == LINK and isinstance(data, bytes):
        if expected is not None:
            check(parent, name, expected, shown)
        return make_link(parent, temp, data, after.attributes, shown)
    if isinstance(data, StagedContent):
        if early and expected is not None:
            check(parent, name, expected, shown)
        if (ours := data.give_name(parent, temp, shown)) is not None:
            return ours, data.notes
        data = data.data
    if expected is None or expected.mode == LINK:
        if expected is not None:
            check(parent, name, expected, shown)
        return write_temp(parent, temp, data, after=after, like=None, shown=shown)
    old = open_expected(parent, name, expected, shown, whole=early)
    try:
        return write_temp(parent, temp, data, after=after, like=(old, expected), shown=shown)
    finally:
        os.close(old)


def remove(parent: int, name: str, *, expected: Revision, token: str, shown: str) -> StagedChange:
    """Prepare the removal of a file or link that is in an expected state; arguments as for `create`.

    Raises:
        StaleFileError: It is in another state.
        WriteFailedError: The system refused; nothing was changed.
    """
    check(parent, name, expected, shown)
    return _Removal(name, token, shown, expected)


def resume(
    parent: int,
    name: str,
    *,
    before: Revision | None,
    after: Revision | None,
    token: str,
    shown: str,
) -> StagedChange:
    """The change that a process that is gone has applied, to be taken back.

    Args:
        parent: Descriptor of its folder.
        name: The target's name there.
        before: What the old file is, under the temporary name; None: there was none.
        after: What the target is now; None: it has gone.
        token: As for `create`.
        shown: As for `create`.

    Raises:
        StaleFileError: One of both is not there.
    """
    temp = temporary_name(token)
    here = name if after is not None else temp
    try:
        status = os.stat(here, dir_fd=parent, follow_symlinks=False)
    except OSError:
        raise moved(shown) from None
    ours: StagedFile | StagedLink | None = None
    if after is not None and after.mode == LINK:
        ours = StagedLink(link_target(parent, here) or b"", (status.st_dev, status.st_ino))
    elif after is not None:
        ours = StagedFile(status, after.content)
    if before is None:
        return StagedChange(name, token, shown, ours)
    found: _OfOld
    if ours is None:
        found = _Removal(name, token, shown, before)
    else:
        found = StagedOverwrite(name, token, shown, before, ours)
    found.note_aside(parent)
    return found


def at_once(parent: int, one: StagedChange) -> WriteResult:
    """Apply a change that is staged, and settle it."""
    try:
        one.apply(parent)
    except BaseException:
        one.drop(parent)
        raise
    try:
        durable = sync(parent) == "applied"
        written = one.settle(parent)
    finally:
        one.close()
    return written if durable else with_outcome(written, outcome="applied_not_durable")
