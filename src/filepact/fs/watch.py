"""The stamps of files: what the system says of a file without its bytes.

A stamp says whether to look again, and nothing about what would be found.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from functools import cached_property
from itertools import groupby
from posixpath import basename, commonpath, dirname
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.domain.document import FOLDER, Revision
from filepact.domain.protected import leads_to_git, steers_git
from filepact.errors import FilepactError, NotFoundError, ReadFailedError
from filepact.fs.atomic import LARGEST
from filepact.fs.attributes import folder_state
from filepact.fs.folder_entries import MAX_ENTRIES
from filepact.fs.kernel import STAMP_CLOCK, names_in
from filepact.fs.path_form import folders_above, token_of
from filepact.fs.walk import TreeReader
from filepact.text.confusables import shown_name
from filepact.text.gitignore import MACHINE_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from filepact.fs.root import Root

__all__ = [
    "IGNORE_FILES",
    "MOST_COUNTED",
    "MOST_FILES",
    "EntryMoves",
    "RootStamps",
    "Stamp",
    "files_behind",
    "folder_sign",
    "gone_among",
    "is_gone",
    "is_later",
    "is_same_file",
    "is_temporary",
    "moment",
    "odd_said",
    "scan",
    "stamp_at",
    "stamps_at",
]

MOST_FILES: Final = 100_000
"""Most files of a root that are looked at."""

MOST_COUNTED: Final = 1_000_000
"""Most files that are counted, and not looked at."""

IGNORE_FILES: Final = (".gitignore", ".ignore", ".git/info/exclude")
"""How the paths of files end that say what is ignored."""

_NAMES: Final = (
    10  # names, folders and ignored ones as well, that are looked at for each file that is
)
_MOST_SAID: Final = 3  # names in a sentence
_MOST_STEERING: Final = 10_000  # folders and files of one repository that steer Git
_GIT_FOLDERS: Final = frozenset({"hooks", "info", "modules", "worktrees"})
_NAP: Final = 0.0005  # seconds; the clock of stamps goes on every 1 to 10 milliseconds


class Stamp(NamedTuple):
    """A regular file or a link, as the system has it.

    A named tuple, because a scan makes thousands of them.

    Attributes:
        inode: Its number on the file system.
        size: Bytes.
        modified: When the bytes were written last, nanoseconds since the epoch; can be forged.
        changed: When anything about it changed last; cannot be forged without the clock.
        mode: Kind and permission bits.
    """

    inode: int
    size: int
    modified: int
    changed: int
    mode: int

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def permissions(self) -> int:
        return stat.S_IMODE(self.mode)

    @property
    def set_aside(self) -> Revision:
        """The state of a file that is too large for the journal, by which one is found that was set aside."""
        sign = (self.inode, self.size, self.modified, self.mode)
        told = " ".join(map(str, sign))
        return Revision.unread(told, self.permissions, self.size, set_aside=True)

    def is_of_same(self, now: Stamp | None) -> bool:
        """Whether a file is as it was; one that is too large for the journal may have a name more or less (hard link)."""
        if now is None or self == now or self.size <= LARGEST:
            return self == now
        return self._replace(changed=now.changed) == now


class RootStamps(NamedTuple):
    """All files and links of a root that are not ignored.

    Attributes:
        stamps: By root-relative path, in path order.
        folders: The state of each folder, by path; `FOLDER` where it is not known.
        unreadable: Folders that could not be looked into: by rights, by depth, or since something is mounted there.
        end: The last path that was looked at when there were too many files; else None.
        cancelled: Whether the caller ended it early.
        hidden: Files and folders that are there, and were not looked at or into.
        odd: Those of them that are pipes and the like.
    """

    stamps: dict[str, Stamp]
    folders: Mapping[str, Revision]
    unreadable: tuple[str, ...]
    end: str | None
    cancelled: bool
    hidden: frozenset[str] = frozenset()
    odd: Collection[str] = ()


def scan(
    root: Root,
    base: str = ".",
    *,
    skip: Collection[str],
    most: int,
    cancelled: Callable[[], bool],
    git: bool = False,
    ignore: bool = True,
    machine: bool = True,
) -> RootStamps:
    """Take the stamps of a root.

    Links are not followed, and our own temporary files are left out.

    Args:
        root: The folder.
        base: The folder in it that is looked at.
        skip: Folders that are not entered.
        most: Most files and links; what steers Git is not counted.
        cancelled: Asked before each folder.
        git: Whether what steers Git is among them, though all else of a repository is ignored.
        ignore: Whether ignore files and the default names leave entries out.
        machine: Whether folders that programs fill, `MACHINE_FOLDERS`, are entered where nothing is ignored.

    Raises:
        PathBlockedError: The root is no longer there.
        NotFoundError: The base is not there.
    """
    stamps: dict[str, Stamp] = {}
    folders: dict[str, Revision] = {}
    if git and base == "." and (top := root.folder_state(base)):
        folders[base] = top  # Whoever wants all that steers others wants to know who may do so.
    odd: set[str] = set()
    last = ""
    cut = False

    def allow(path: str, is_dir: bool) -> bool:
        return not is_dir or not (
            path in skip or (not machine and path.rpartition("/")[2] in MACHINE_FOLDERS)
        )

    count, names = 0, max(MAX_ENTRIES, _NAMES * most)
    if git:
        _add_steering(root, ".git" if base == "." else f"{base}/.git", stamps, folders)
    with TreeReader(
        root, base, allow=allow, ignore=ignore, most=names, cancelled=cancelled
    ) as entries:
        for entry in entries:
            # Of a folder with too many names some are known, and not the first in order.
            if count >= most or entries.cut:
                cut = True
                break
            last = entry.path
            if entry.kind == "folder":
                folders[entry.path] = folder_state(entry.folder, entry.name) or FOLDER
                if git and entry.path not in skip:
                    with suppress(OSError):
                        os.stat(f"{entry.name}/.git", dir_fd=entry.folder)
                        _add_steering(root, f"{entry.path}/.git", stamps, folders)
            elif entry.kind == "other":
                odd.add(entry.path)
            elif not is_temporary(entry.name):
                try:
                    status = os.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False)
                except OSError:
                    continue
                if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                    stamps[entry.path] = _stamp(status)
                    count += 1
    end = last if cut or entries.cut else None
    hidden = {
        *skip,
        *odd,
        *entries.closed,
        *entries.ignored,
        *(one.path for one in entries.left_out),
    }
    closed = tuple(dict.fromkeys((*entries.unreadable, *entries.closed)))
    return RootStamps(stamps, folders, closed, end, entries.cancelled, frozenset(hidden), odd)


def _add_steering(
    root: Root, top: str, stamps: dict[str, Stamp], folders: dict[str, Revision]
) -> None:
    """Take the stamps of what steers Git in a Git folder, and in those of its submodules and worktrees."""
    waiting = [top]
    room = _MOST_STEERING
    while waiting and room > 0:
        path = waiting.pop()
        try:
            folder = root.open_directory(path, follow=False)
        except FilepactError:
            # That of a worktree or a submodule is a file, which names the folder.
            stamp = stamp_at(root, path)
            if stamp is not None:
                stamps[path] = stamp
            continue
        folders[path] = FOLDER
        names: list[str] = []
        with suppress(OSError):
            names = os.listdir(folder)
        room -= 1
        for name in names:
            inside = f"{path}/{name}"
            steers = steers_git(inside)
            if not steers and not leads_to_git(inside):
                continue
            with suppress(OSError):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    # What else a repository holds is long, and steers nothing.
                    if "HEAD" not in names or name in _GIT_FOLDERS:
                        waiting.append(inside)
                elif steers and not is_temporary(name):
                    room -= 1
                    if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                        stamps[inside] = _stamp(status)
        os.close(folder)


def files_behind(root: Root, skip: Collection[str], *, after: str = "", most: int = 0) -> int:
    """How many files of a root are too many, up to `MOST_COUNTED`.

    Args:
        root: The root.
        skip: Folders in it that are not entered.
        after: The last path that counts as looked at.
        most: How many more do.
    """
    walk = TreeReader(
        root,
        allow=lambda path, is_dir: not is_dir or path not in skip,
        most=MOST_COUNTED + max(MOST_FILES, most),
    )
    found = -most
    with walk:
        for prefix, names, *_ in walk.batches():
            found += sum(prefix + name > after for name in names)
            if found >= MOST_COUNTED:
                break
    return min(max(found, 0), MOST_COUNTED)


def stamp_at(root: Root, path: str, *, folder: bool = False) -> Stamp | None:
    """The stamp of one file or link, or of a folder; None where there is none, or behind a link."""
    return stamps_at(root, (path,), stat.S_ISDIR if folder else _is_file)[path]


def _is_file(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def stamps_at(
    root: Root,
    paths: Iterable[str],
    wanted: Callable[[int], object] = _is_file,
    linked: set[int] | None = None,
) -> dict[str, Stamp | None]:
    """Stamps of many files: each folder is opened once if its files follow each other.

    `linked` gets the inodes of those that have other names (hard links).
    """
    found: dict[str, Stamp | None] = {}
    for above, some in groupby(paths, dirname):
        names = [*some]
        found |= dict.fromkeys(names)
        try:
            folder = root.open_directory(above or ".", follow=False)
        except FilepactError:
            continue
        for path in names:
            name = path.rpartition("/")[2]
            with suppress(OSError):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if wanted(status.st_mode) and root.spelling.of(folder, name) == name:
                    found[path] = _stamp(status)
                    if status.st_nlink > 1 and linked is not None:
                        linked.add(status.st_ino)
        os.close(folder)
    return found


def is_same_file(root: Root, path: str, stamp: Stamp, known: Stamp) -> bool:
    """Whether what is there is a known file of its number: one that was born later has only got the number of a removed one."""
    return stamp[:3] == known[:3] or (root.born(path) or known.changed + 1) <= known.changed


def is_later(
    root: Root,
    path: str,
    stamp: Stamp | None,
    since: int,
    *,
    stood: Collection[str] = (),
    sure: bool = True,
) -> bool:
    """Whether a file has become what it is after a moment; if it is gone, whether what is there of its path has.

    One that came with a folder has its old times: any folder above it counts then, but for those that stood there before
    and may have other names or rights since; who is not sure counts none in which a name came or went last, since it may
    have got its own before.
    """
    if stamp is not None and not stood:
        return stamp.changed > since
    names = path.split("/")
    above = ["/".join(names[:end]) or "." for end in range(len(names) - bool(stood), -1, -1)]
    # Most are not there, which is told sooner than by opening what they lie in.
    there = (one for one in above if one not in stood and root.glance(one) is not None)
    # What has come in the place of a folder has come after that had gone.
    found = (stamps_at(root, (one,), stat.S_ISDIR if stamp else stat.S_IFMT)[one] for one in there)
    times = (one[2:4] for one in found if one)
    doubts = bool(stood) and not sure
    later = (now > since and not (doubts and now == modified) for modified, now in times)
    return any(later) if stood else next(later, False)


class EntryMoves:
    """Tells of names in a root whether they became what they are after a moment.

    What lies in a folder that was moved has its old times still.  What was known by another name in the very same state
    came with a folder, unless it is younger: any folder above it counts then that may have come.

    Args:
        root: The root.
        known: The stamps of files before.
        now: Those of the files that differ; None for what is gone.
        folders: The folders that were known before, with their states.
        there: Those that are there.
        looked: When the last look began, nanoseconds since the epoch; 0 for none.
    """

    def __init__(
        self,
        root: Root,
        known: Mapping[str, Stamp],
        now: Mapping[str, Stamp | None],
        folders: Mapping[str, Revision],
        there: Mapping[str, Revision],
        looked: int = 0,
    ) -> None:
        self._root, self._known, self._now, self._looked = root, known, now, looked
        self._folders, self._there = folders, there

    @cached_property
    def _files(self) -> dict[Stamp, list[str]]:
        known = ((name, self._known.get(name), now) for name, now in self._now.items())
        return {was: [name] for name, was, now in known if was and was != now}

    @cached_property
    def arrivals(self) -> dict[str, str]:
        """The names that files got in place of known ones, with those; whatever was written since."""
        both = ((name, self._known.get(name), now) for name, now in self._now.items())
        # A link that had this number before has only lost its other name.
        anew = [
            (x, was, now) for x, was, now in both if not was or not now or was.inode != now.inode
        ]
        went = {was.inode: (name, was) for name, was, _ in anew if was}
        return {
            name: went[now.inode][0]
            for name, _, now in anew
            if now and now.inode in went
            if is_same_file(self._root, name, now, went[now.inode][1])
        }

    @cached_property
    def ends(self) -> dict[str, str]:
        """The files that got new names, and the folders that have gone with them, each name with the other one."""
        found: dict[str, str] = {}
        for target, source in self.arrivals.items():
            old, new = (source, target) if target not in self._known else ("", "")
            while old and new and (old == source or old not in self._there):
                found |= {old: new, new: old}
                same = basename(old) == basename(new)
                old, new = (dirname(old), dirname(new)) if same else ("", "")
        return found

    @cached_property
    def _sources(self) -> dict[object, list[str]]:
        return _others(self._folders, self._there)

    @cached_property
    def _targets(self) -> dict[object, list[str]]:
        return _others(self._there, self._folders)

    @cached_property
    def _stood(self) -> set[str]:
        """The folders with a file that was not even renamed: none of them has come."""
        known, now = self._known.items(), self._now
        return {".", *(dirname(name) for name, one in known if now.get(name, one) == one)}

    def sources(self, name: str) -> list[str]:
        """The other names by one of which what is there was known before."""
        if stamp := self._now.get(name):
            return [] if stamp == self._known.get(name) else self._files.get(stamp, [])
        key = _key(self._there.get(name))
        same = key in (None, _key(self._folders.get(name)))
        return [] if same else self._sources.get(key, [])

    def target(self, folder: Revision | None) -> str:
        """The other name by which a folder may be there that was known in a state; empty for none."""
        return self._targets.get(_key(folder), [""])[-1]

    @cached_property
    def _gone(self) -> set[int]:
        """The modes of the folders that are there no more by the names that they had."""
        return {one.mode for name, one in self._folders.items() if name not in self._there}

    def may_be_older(self, folder: str, held: tuple[int, ...], since: int) -> bool:
        """Whether a folder that nobody knew may have come before a moment, with all in it, and only got rights since.

        One with the rights of another that has gone may be that, and have got its name since.
        """
        now = self._there.get(folder)
        new = held[2] <= since and folder not in self._folders
        return bool(new and now and now.mode not in self._gone)

    def later(self, name: str, since: int, *, sure: bool) -> bool:
        """Whether a name became what it is after a moment, as of `is_later`."""
        stamp, there = self._now.get(name), name
        if is_later(self._root, name, stamp, since):
            return True
        # What is gone went no later than something came where it lay.
        while there and self._root.glance(there) is None:
            there = dirname(there)
        if not self._came(there):
            return False
        # What lay in the same folder before has not come with that, unless the folder has its own name anew.
        common = commonpath([f"/{x}" for x in (there, *(self.sources(there) or [""]))])
        same = [x for x in folders_above(name) if f"{common}/".startswith(f"/{x}/")]
        held = {x: self._root.glance(x) for x in folders_above(name)}
        stood = {x for x in same if (one := held[x]) and one[2] == one[3]}
        stood.update(x for x in (".", *held) if x in self._stood)
        if not sure:
            stood.update(x for x, one in held.items() if one and self.may_be_older(x, one, since))
        return is_later(self._root, name, stamp, since, stood=stood, sure=sure)

    def _came(self, name: str) -> bool:
        """Whether what is there was elsewhere at the last look."""
        stamp, known = self._now.get(name), self._known.get(name)
        held = () if stamp or name not in self._there else self._root.glance(name)
        if stamp and known and stamp.inode != known.inode:
            held = stamp
        return bool(self.sources(name) or (held and held[3] < self._looked))


def _key(folder: Revision | None) -> tuple[int, int] | None:
    """The mode of a folder, and when a name came or went in it last; None where that is not known."""
    modified = folder.attributes.modified if folder and folder.attributes else None
    return (folder.mode, modified) if folder and modified else None


def _others(some: Mapping[str, Revision], than: Mapping[str, Revision]) -> dict[object, list[str]]:
    """The folders of which there are others, or none, each by its key."""
    found: dict[object, list[str]] = {}
    for name, one in some.items():
        if (key := _key(one)) and key != _key(than.get(name)):
            found.setdefault(key, []).append(name)
    return found


def is_odd(root: Root, path: str) -> bool:
    """Whether what stands there is neither a file nor a folder or link: a pipe, a socket, a device."""
    if root.glance(path) is not None:
        with suppress(FilepactError):
            return root.place(path, follow=False, known=True).kind == "other"
    return False


def odd_said(root: Root, folder: str) -> str:
    """The words about the pipes and the like that lie in a folder itself; empty for none."""
    try:
        opened = root.open_directory(folder, follow=False)
    except FilepactError:
        return ""
    try:
        paths = [f"{folder}/{name}" for name in sorted(names_in(opened))]
    finally:
        os.close(opened)
    odd = [f"{shown_name(path)} (no file)" for path in paths if is_odd(root, path)]
    return f": {', '.join(odd[:_MOST_SAID])}" if odd else ""


def is_gone(root: Root, path: str) -> bool:
    """Whether a file is gone for certain, rather than in a folder that cannot be read."""
    return path in gone_among(root, (path,))


def gone_among(root: Root, paths: Iterable[str]) -> set[str]:
    """The files that are gone, as of `is_gone`; each folder is opened once if its files follow each other."""
    found: set[str] = set()
    for above, names in groupby(paths, dirname):
        try:
            folder = root.open_directory(above or ".", follow=False)
        except FilepactError as error:
            found.update(names if _has_gone(root, above, error) else ())
            continue
        for path in names:
            with suppress(OSError):
                with suppress(FileNotFoundError):
                    os.stat(path.rpartition("/")[2], dir_fd=folder, follow_symlinks=False)
                found.add(path)
        os.close(folder)
    return found


def _has_gone(root: Root, folder: str, error: FilepactError) -> bool:
    """Whether a folder that does not open is gone, and what it held, by the error."""
    if isinstance(error, (NotFoundError, ReadFailedError)):
        return isinstance(error, NotFoundError)
    # A link or a file stands there now; or another file system is mounted there, and hides what is beneath.
    top = folder
    while dirname(top) and not _opens(root, dirname(top)):
        top = dirname(top)
    if root.glance(top) is None:
        return True  # also of a name that is no UTF-8, which has no place then
    with suppress(FilepactError):
        return root.place(top, follow=False).kind != "directory"
    return False


def _opens(root: Root, folder: str) -> bool:
    with suppress(FilepactError):
        os.close(root.open_directory(folder, follow=False))
        return True
    return False


def _stamp(status: os.stat_result) -> Stamp:
    times = status.st_mtime_ns, status.st_ctime_ns
    return Stamp(status.st_ino, status.st_size, *times, status.st_mode)


def folder_sign(root: Root, path: str) -> str:
    """Which folder it is, whatever its name; empty for none.

    The number of one that was removed may be another one's: it goes with the time of birth, or that of the last
    name in it where the system does not tell.
    """
    held = root.glance(path)
    birth = root.born(path) or (held[2] if held else 0)
    return f"{held[0]:x} {birth:x}" if held else ""


def moment() -> int:
    """Wait, some milliseconds at most, until stamps are later than the time at which this began.

    Returns:
        That time: what is changed from now on has a later stamp, and all else has none.
    """
    begun = time.time_ns()
    while _clock() <= begun:
        time.sleep(_NAP)
    return begun


def _clock() -> int:
    """The coarse clock of stamps: the earliest time that a file changed now may get."""
    return time.clock_gettime_ns(STAMP_CLOCK)


def is_temporary(name: str) -> bool:
    """Whether a name is one of our temporary files."""
    return token_of(name) is not None
