"""The stamps of a root's files as their owner knows them, and what is different by now.

A file that nobody knows was created only if it is known not to have been there: what a look leaves out is
remembered, so that the next one does not take a change of what is ignored for a change of files.
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from posixpath import basename, dirname
from typing import TYPE_CHECKING, Final, NamedTuple

from filepact.domain.document import Revision, WorkspacePath
from filepact.errors import FilepactError
from filepact.fs.path_form import folders_above
from filepact.fs.walk import TreeReader, was_ignored
from filepact.fs.watch import (
    IGNORE_FILES,
    MOST_COUNTED,
    MOST_FILES,
    RootStamps,
    Stamp,
    folder_sign,
    gone_among,
    is_gone,
    is_odd,
    is_same_file,
    scan,
    stamp_at,
    stamps_at,
)
from filepact.text.gitignore import MACHINE_FOLDERS, is_build

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from filepact.domain.document import NamedFiles, RootId
    from filepact.fs.root import Root
    from filepact.workspace.guard import Guard
    from filepact.workspace.observe import RootEvents, RootWatcher

    Held = Callable[[str], bytes | None]
    Folder = tuple[RootId, str]
    """By its root, and its path beneath it; ``.`` is the root itself."""

__all__ = [
    "CACHES",
    "COARSE",
    "INSTEAD",
    "PIPE",
    "CallFiles",
    "FileSnapshot",
    "RacyFiles",
    "files_below",
    "is_free",
    "is_machine_made",
    "is_racy",
    "nested_roots",
    "some_names",
    "unwatched_in",
    "unwatched_said",
]

_RACY: Final = 2 * 10**9  # nanoseconds in which a file may change twice under one stamp
COARSE: Final = 20 * 10**6  # nanoseconds by which times of files may be behind the clock
_MOST_HIDDEN: Final = 1_000  # files of a folder that is ignored from now on, if all are looked for
_MOST_MOVED: Final = 20_000  # those of which it is asked whether they were moved there
_UNWATCHED: Final = "not watched here: what changes in them is recorded"
_UNKNOWN: Final = Stamp(0, 0, 0, 0, 0)


def is_racy(stamp: Stamp, now: int) -> bool:
    """Whether a file may still change without changing its stamp; `now` in nanoseconds since the epoch."""
    return now - stamp.changed < _RACY


def nested_roots(root: Root, guard: Guard) -> frozenset[str]:
    """List the folders of a root that are roots themselves, by their path beneath it."""
    return frozenset(
        other.path[len(root.path) :].lstrip("/")
        for other in guard.roots
        if other is not root and other.path.startswith(f"{root.path.rstrip('/')}/")
    )


PIPE: Final = Revision.unread("special", 0o600)
"""The state of a pipe, a socket or a device."""
INSTEAD: Final = Revision.unread("instead", 0o600)
"""That of one that has taken the place of something."""
CACHES: Final = frozenset({".cache", "__pycache__"})
"""Folders whose beginning and end nobody needs to hear of."""


class CallFiles(NamedTuple):
    """The files and folders that a call may change.

    Attributes:
        files: Files that it names, whether they are there or not.
        written: Those of them that may be overwritten in place, and not only be removed or moved.
        folders: Folders, by root and path, of which it may remove or move everything.
        sweeping: Whether it may also change files that nobody names, as Git does.
        open_ended: Whether it may change any file.
        names: What its words name of all that, and what comes meanwhile under such a name.
    """

    files: frozenset[WorkspacePath]
    written: frozenset[WorkspacePath]
    folders: frozenset[Folder]
    sweeping: bool
    open_ended: bool
    names: NamedFiles


class RacyFiles(NamedTuple):
    """Files that may differ from what is known of them.

    Attributes:
        stamps: Their present stamps; None for a file that is gone.
        newly: Those that are only seen now: they may have been there before, whatever they held.
        came: Those among them that have come from elsewhere to where nothing was.
        unexpected: Those of which no notice was given, and that were not in doubt.
    """

    stamps: dict[str, Stamp | None]
    newly: frozenset[str] = frozenset()
    came: frozenset[str] = frozenset()
    unexpected: frozenset[str] = frozenset()


class FileSnapshot:
    """The stamps of a root's files as its owner knows them.

    A file stays suspect until its owner has put, or dropped, what it knows of it by now.  Only `check`
    may run while another thread uses the rest.

    Args:
        root: The root.
        skip: Folders in it that are roots of their own.
        most: Most files that are known.
        overlooks: Whether a file is not looked at unless it is known.
        few: As for `RootWatcher`; without a scan such files are not `listed`.
        git: As for `RootWatcher`.

    Attributes:
        stamps: By path beneath the root.
        folders: The folders that are known, as of `RootStamps`.
        there: Those that were there at the last look; what is different has still to be told.
        made: Those that programs make for themselves, that a call may remove, and pipes and the like that were there.
        lent: Ignored ones that a call may remove, and of which all is known until the next one.
        hidden: The files and folders that were there, and were not looked at or into.
        passed: Those of them that were there when a call began; what comes from then on is new.  None where none has.
        came: Folders that came into what is not looked into, by the words of a call or with files that are known.
        end: The last path that was looked at where there are too many files; else None.
        looked: When the last look began, nanoseconds since the epoch; 0 for none.
    """

    def __init__(
        self,
        root: Root,
        skip: Collection[str],
        *,
        most: int = MOST_FILES,
        overlooks: Callable[[str], bool] | None = None,
        few: int = 0,
        git: bool = False,
    ) -> None:
        self._root = root
        self._skip = skip
        self._overlooks = overlooks or (lambda _name: False)
        self._listed: Collection[str] = ()
        self._attended: frozenset[str] = frozenset()
        self._trees: frozenset[str] = frozenset()
        self._swept: frozenset[str] | None = None
        self._written: frozenset[str] = frozenset()
        self._racy: set[str] = set()
        self._doubtful: set[str] = set()
        self._most, self._few, self._git = most, few, git
        self._watcher: RootWatcher | None = None
        self.stamps: dict[str, Stamp] = {}
        self.folders: Mapping[str, Revision] = {}
        self.made: dict[str, Revision] = {}
        self.lent: dict[str, Revision] = {}
        self.there: Mapping[str, Revision] = {}
        self.hidden: frozenset[str] = frozenset()
        self.passed: frozenset[str] | None = None
        self.came: dict[str, Revision] = {}
        self.end: str | None = None
        self.looked = self._began = 0
        self._seen: Sequence[Stamp] = ()

    @property
    def watcher(self) -> RootWatcher:
        """Watches the root, once somebody looks."""
        if self._watcher is None:
            from filepact.workspace.observe import RootWatcher  # noqa: PLC0415 - most never look

            self._watcher = RootWatcher(
                self._root, self._skip, most=self._most, few=self._few, git=self._git
            )
            self._watcher.besides = lambda: {dirname(name) or "." for name in self.stamps}
        return self._watcher

    def close(self) -> None:
        """Stop watching."""
        if self._watcher is not None:
            self._watcher.close()

    def racy(self, name: str) -> bool:
        """Whether a file may have changed and kept its stamp."""
        return name in self._racy

    def listed(self, name: str) -> bool:
        """Whether a file was there, and not ignored, at the last scan."""
        return name in self._listed

    # -- what is known --------------------------------------------------------------------

    def begin(self, seen: RootEvents) -> None:
        """Replace all known stamps by those of a scan."""
        if seen.scan is None:
            raise ValueError("a snapshot begins with a scan")
        now = time.time_ns()
        self._note(seen.scan)
        self.stamps = dict(seen.scan.stamps)
        self._doubtful.clear()
        stamps = {} if seen.watched else self.stamps
        self._racy = {name for name, stamp in stamps.items() if is_racy(stamp, now)}

    def put(self, name: str, stamp: Stamp | None, *, racy: bool = False) -> None:
        """Set the known stamp of a file; it is checked again if that is None, or racy."""
        self.stamps[name] = stamp or _UNKNOWN
        if self._watcher is not None:
            self._watcher.mind(name)
        self._doubtful.discard(name)
        self._racy.discard(name)
        if stamp is None:
            self._doubtful.add(name)
        if racy:
            self._racy.add(name)

    def settle(self, name: str, *, racy: bool) -> None:
        """Record that a suspect file has not changed; `racy` if it may still change without a new stamp."""
        self._doubtful.discard(name)
        if not racy:
            self._racy.discard(name)

    def drop(self, name: str) -> None:
        """Forget the known stamp of a file."""
        self.stamps.pop(name, None)
        self._racy.discard(name)
        self._doubtful.discard(name)

    def doubt(self, name: str) -> None:
        """Have a file checked the next time, whatever the events say."""
        self._doubtful.add(name)

    def know_folders(self, top: str, inner: Collection[str]) -> None:
        """Know of a folder that no scan sees, and of those in it, with their rights."""
        if inner or top not in self.folders:
            states = {name: self._root.folder_state(name) for name in (top, *inner)}
            self.folders = {**self.folders, **{name: one for name, one in states.items() if one}}

    def folder_now(self, name: str) -> Revision | None:
        """The state of a folder as of the last look; of one that no scan sees, as it is."""
        if not _is_below(name, self.hidden):
            return self.there.get(name)
        if name in self.there:  # Another file system is mounted there.
            return self.folders.get(name, self.there[name])
        return self._root.folder_state(name)

    def attend(
        self, names: Collection[str], trees: Collection[str], swept: frozenset[str] | None = None
    ) -> None:
        """Look at some files every time, whatever ignore rules say of them, until this is called again.

        Args:
            names: The files.  Those that nobody knows are not there.
            trees: Names that nothing is at, where a folder may come.
            swept: Where Git may write anywhere, what is not looked into and of which all files are known; else None.
        """
        known = self._attended.difference(names) & self.stamps.keys()
        left = [name for name in known if name not in self._listed]
        self._attended, self._trees, self._swept = frozenset(names), frozenset(trees), swept
        self.watcher.watch({dirname(name) or "." for name in left})
        self._doubtful.update(left)

    def unkept(self, since: int) -> Iterator[tuple[str, Revision | None, Revision | None]]:
        """Unwatched entries that went since a call began, or came since a time, with their states."""
        root, gone = self._root, {x.attributes.linked for x in self.made.values() if x.attributes}
        for name, was in [*self.made.items()]:
            other = was == PIPE and not is_odd(root, name)
            if other if root.glance(name) else is_gone(root, name):
                yield name, was, None
        passed = self.hidden if self.passed is None else self.passed
        for name in sorted(self.hidden - passed - self.folders.keys()):
            held = root.glance(name)
            state = unkept_state(root, name, empty=folder_sign(root, name) in gone)
            if state and held and held[3] > since and is_free(passed, self.end, name):
                yield name, None, state

    def tell(self, name: str, after: Revision | None) -> None:
        """Note that what became of what is not looked into was told."""
        self.made.pop(name, None)
        if after and not after.was_read and (after.is_folder or is_odd(self._root, name)):
            self.made[name] = after if after.is_folder else PIPE
            self.hidden |= {name}
            self.passed = (self.hidden if self.passed is None else self.passed) | {name}

    # -- what is different ----------------------------------------------------------------

    def check(self, cancelled: Callable[[], bool], *, keep: bool = False) -> RootEvents:
        """The entries touched since the last check; arguments and errors as for `RootWatcher.check`."""
        self._began = time.time_ns() - COARSE
        return self.watcher.check(
            lambda name: name in self.stamps or self._overlooks(name), cancelled, keep=keep
        )

    def compare(
        self, seen: RootEvents, *, racy: bool = True, held: Held | None = None
    ) -> RacyFiles:
        """List the files that may have changed since they became known.

        Args:
            seen: What was touched; its scan, if it has one, is complete.
            racy: Whether racy files are suspects without a notice as well; where there was a scan
                they are in any case.
            held: Gives what a file held at the last look; with it files count that came where they
                were not ignored by that, and are ignored by now.
        """
        before = self._doubtful | self._racy
        if seen.scan is None:
            self._doubtful |= seen.names
            suspects = self._doubtful | self._racy if racy else self._doubtful
            stamps = self._rechecked(suspects | self._expected(seen.hidden))
            stamps |= self._moved_and_hidden(stamps, seen.hidden)
            newly = self._newly_seen(stamps)
            self._follow(seen)
            self.made |= {name: PIPE for name in seen.hidden if is_odd(self._root, name)}
            touched = sorted(self.hidden & (seen.removed | seen.turned))
            gone = gone_among(self._root, [x for x in touched if self._root.glance(x) is None])
            self.hidden = (self.hidden - gone) | seen.hidden
            return RacyFiles(stamps, *newly)
        stamps = {
            name: stamp for name, stamp in seen.scan.stamps.items() if self._differs(name, stamp)
        }
        some = self._expected(seen.scan.hidden)
        expected = some - seen.scan.stamps.keys() - self.stamps.keys()
        stamps |= self._rechecked((*self._missing(seen.scan), *expected))
        stamps |= self._moved_and_hidden(stamps, seen.scan.hidden)
        # Of one that is only in doubt, the rules are what they were: what they name was ignored when it came.
        other = (name for name, one in stamps.items() if one != self.stamps.get(name))
        if held and any(name.endswith(IGNORE_FILES) for name in other):
            stamps |= self._made_and_hidden(seen.scan, held)
        newly = self._newly_seen(stamps)
        self._doubtful |= stamps.keys()
        found = seen.scan.folders
        # What is only seen now may have been there before.
        new = found.keys() - self.there.keys() - self.folders.keys()
        if strange := {one: found[one] for one in new if not self.was_free(one)}:
            self.folders = {**self.folders, **strange}
        self._note(seen.scan)
        return RacyFiles(stamps, *newly, frozenset(stamps.keys() - seen.names - before))

    def _follow(self, seen: RootEvents) -> None:
        """Take in what became of folders, where not all were looked at."""
        touched = {one: self._root.folder_state(one) for one in self.there.keys() & seen.turned}
        gone = {one for one, state in touched.items() if state is None}
        if touched or seen.folders:
            left = {one: state for one, state in self.there.items() if not _is_below(one, gone)}
            found = {one: state for one, state in touched.items() if state is not None}
            self.there = {**left, **found, **seen.folders}

    @property
    def was_free(self) -> Callable[[str], bool]:
        """Tells of a file or folder whether there was none at the last look by now, for certain."""
        named, trees, free = self._attended, self._trees, partial(is_free, self.hidden, self.end)
        return lambda name: (
            name in named
            or name in self.came
            or name in self._written
            or _is_below(name, trees)
            or free(name)
        )

    def _newly_seen(self, stamps: dict[str, Stamp | None]) -> tuple[frozenset[str], frozenset[str]]:
        """The entries that existed before, under names that were not watched or elsewhere; those that came from elsewhere.

        What was made before the last look, which has not seen it, came by another name: it may be the only copy.
        """
        looked, self.looked, was_free = self.looked, self._began, self.was_free
        new = {name: one for name, one in stamps.items() if one and name not in self.stamps}
        # What is moved by itself changes by that, and may be written as well, but is as old as it was.
        born = {x: self._root.born(x) for x in new}
        came = {x for x in new if min(new[x].changed, born[x] or looked) < looked}
        known = {x.inode: x.changed for x in (*self.stamps.values(), *self._seen)} if came else {}
        # What was born after a known file changed last is not that one, and has its number.
        before = {x for x in came if (born[x] or 0) > known.get(new[x].inode, -1)}
        # Where a folder is known to have been there was no file; nor where one is now that was known by another name.
        known_by = ((self.stamps.get(x), now) for x, now in stamps.items())
        went = {x[:3] for x, now in known_by if x and (now is None or now.inode != x.inode)}
        others = (name for name in new if name not in self.folders and new[name][:3] not in went)
        there = {name for name in others if not was_free(name)}
        self._seen = [one for one in stamps.values() if one]
        # With its folder it comes as that does.
        alone = {x for x in before - there if new[x].changed >= looked}
        above = {one for one in map(dirname, alone) if one and one not in self.folders}
        whole = {one for one in above if (self._root.born(one) or 0) < looked}
        return frozenset(before | there), frozenset(x for x in alone if dirname(x) not in whole)

    def is_from_elsewhere(self, name: str, stamp: Stamp, looked: int) -> bool:
        """Whether a file in the place of a known one is older than the last look, and none that was known then."""
        older = 0 < (self._root.born(name) or 0) < looked - COARSE
        return older and all(one.inode != stamp.inode for one in self.stamps.values())

    def _expected(self, hidden: Collection[str]) -> set[str]:
        """The files that are looked at every time, with those of folders that came, and what Git has put into hidden ones."""
        names, written = set(self._attended), set[str]()
        some = () if self._swept is None else self.hidden.union(hidden)
        tracked = [one for one in some if self._is_tracked(one)]
        tops = *self.came, *self._trees, *tracked
        states = {one: self._root.folder_state(one) for one in tops}
        came = {one: x for one, x in states.items() if x and not is_machine_made(self._root, one)}
        for tree in self._trees:
            below = files_below(self._root, tree, _MOST_HIDDEN)
            names.update(below.stamps)
            came |= below.folders
        for top in tracked:
            below = files_below(self._root, top, _MOST_MOVED)
            if below.end is None and (top in (self._swept or ()) or top not in (self.passed or ())):
                written |= {
                    x for x in below.stamps.keys() - self.stamps.keys() if self._is_tracked(x)
                }
                came |= {x: y for x, y in below.folders.items() if self._is_tracked(x)}
        self._written = frozenset(written)
        self.came = {x: came[x] for x in came.keys() - self.folders.keys()}
        return names | written

    def _is_tracked(self, name: str) -> bool:
        """Whether the repository that a path lies in tracks it, or anything below it."""
        trees = (self._root.trees.at(above) for above in (*folders_above(name), "."))
        tracked = next(filter(None, trees), None)
        return tracked is not None and tracked(name)

    def _moved_and_hidden(
        self, stamps: Mapping[str, Stamp | None], hidden: Collection[str]
    ) -> dict[str, Stamp]:
        """Known files that went from their names, by those that they have now among what is ignored."""
        known = [(self.stamps.get(name), now) for name, now in stamps.items()]
        went = {x.inode: x for x, now in known if x and (now is None or now.inode != x.inode)}
        found, gone = dict[str, Stamp](), list[Revision]()
        for path in sorted(filter(self._is_other, hidden)) if went else ():
            below = files_below(self._root, path, _MOST_MOVED)
            found |= below.stamps
            gone = gone or [x for name, x in self.folders.items() if not self._root.glance(name)]
            self.came |= {x: y for x, y in below.folders.items() if y.attributes and y in gone}
        new = {x: (one, went.get(one.inode)) for x, one in found.items() if x not in self.stamps}
        return {
            x: one for x, (one, was) in new.items() if was and is_same_file(self._root, x, one, was)
        }

    def _is_other(self, hidden: str) -> bool:
        """Whether an entry that is not looked into has come, or got a name in it or its own one, since the last look."""
        held = self._root.glance(hidden) if hidden in self.hidden else ()
        return held == () or bool(held and held[3] >= self.looked)

    def _made_and_hidden(self, found: RootStamps, held: Held) -> dict[str, Stamp | None]:
        """Files that came where they were not ignored, and are by rules that came meanwhile."""
        made: dict[str, Stamp | None] = {}
        was_free = self.was_free
        for path in found.hidden - self.hidden:
            inner = files_below(self._root, path, _MOST_HIDDEN)
            new = inner.stamps.items() if inner.end is None else ()
            free = {x: one for x, one in new if x not in self.stamps and was_free(x)}
            made |= {
                name: one
                for name, one in free.items()
                if self._differs(name, one)
                and not was_ignored(self._root, name, self.stamps, self.folders, held)
            }
        return made

    def _rechecked(self, names: Iterable[str]) -> dict[str, Stamp | None]:
        """The suspect files among these; the others are in doubt no more."""
        stamps = stamps_at(self._root, sorted(names), linked=(linked := set[int]()))
        if linked:  # Only the name by which a file is written is touched.
            others = [x for x, one in self.stamps.items() if one.inode in linked]
            stamps |= stamps_at(self._root, sorted(others))
        gone = gone_among(self._root, (name for name, stamp in stamps.items() if stamp is None))
        found: dict[str, Stamp | None] = {}
        for name, stamp in stamps.items():
            if not self._differs(name, stamp):
                self._doubtful.discard(name)
            elif stamp is not None or name in gone:
                found[name] = stamp
        return found

    def _differs(self, name: str, stamp: Stamp | None) -> bool:
        known = self.stamps.get(name)
        if known is None:
            return stamp is not None and not self._overlooks(name)
        return known != stamp or name in self._racy

    def _missing(self, found: RootStamps) -> list[str]:
        """Known files that a scan has not seen, but for those in folders that cannot be read."""
        dark = tuple(f"{folder}/" for folder in found.unreadable)
        gone = self.stamps.keys() - found.stamps.keys()
        return [name for name in gone if not name.startswith(dark)]

    def _note(self, found: RootStamps) -> None:
        self._listed = found.stamps.keys()
        self.there, self.hidden, self.end = found.folders, found.hidden, found.end
        self.made |= dict.fromkeys(found.odd, PIPE)


def is_free(hidden: Collection[str], end: str | None, name: str) -> bool:
    """Whether nothing was there, if it was not seen, for certain."""
    # What is in these folders, nobody lists.
    listed = (end is None or name <= end) and "__pycache__" not in name.split("/")
    return listed and not _is_below(name, hidden)


def _is_below(path: str, tops: Collection[str]) -> bool:
    """Whether a path is one of some folders, or lies in one."""
    while path and path not in tops:
        path = dirname(path)
    return bool(path)


def files_below(root: Root, path: str, most: int, *, made: bool = False) -> RootStamps:
    """The stamps of a file, or of all files below a folder, whatever ignore rules say.

    What programs make for themselves is left out: `MACHINE_FOLDERS`, and what carries the marks of a build;
    with `made` the folder itself is looked into all the same.
    """
    stamp = stamp_at(root, path)
    if stamp is None and (made or not is_machine_made(root, path)):
        with suppress(FilepactError):
            return scan(
                root, path, skip=(), most=most, cancelled=lambda: False, ignore=False, machine=False
            )
    return RootStamps({path: stamp} if stamp else {}, {}, (), None, False)


def unkept_state(
    root: Root, path: str, *, empty: bool = True, known: Collection[str] | None = None
) -> Revision | None:
    """The state of what is not looked into: a folder that programs have made for themselves, a pipe or the like.

    Args:
        root: Where.
        path: Its name.
        empty: Whether any other folder counts as well, but for repositories.
        known: The folders that are known in it: one that holds nothing else does not count.
    """
    if is_odd(root, path):
        return PIPE
    wanted = basename(path) != ".git" and (empty or is_machine_made(root, path))
    if wanted and known is not None:
        walk = TreeReader(root, path, allow=lambda _path, _is_folder: True, ignore=False)
        with suppress(FilepactError), walk:
            wanted = not (all(one.path in known for one in walk) and walk.complete)
    return root.folder_state(path) if wanted else None


def is_machine_made(root: Root, path: str) -> bool:
    """Whether programs have made a folder for themselves, by its name or the marks of a build in it."""
    if not MACHINE_FOLDERS.isdisjoint(path.split("/")):
        return True
    walk = TreeReader(root, path, allow=lambda _path, _is_folder: True, ignore=False, max_depth=1)
    with suppress(FilepactError), walk:
        return is_build({entry.name for entry in walk})
    return False


def unwatched_said(files: int) -> str:
    """The sentence for a root that has more files than are watched."""
    some = f"{files:,} {'file is' if files == 1 else 'files are'}"
    some = f"more than {some}" if files >= MOST_COUNTED else some
    return f"{some} {_UNWATCHED} only where a call names them"


def unwatched_in(note: str) -> str:
    """The sentence of `unwatched_said` in an operation's note; empty where it has none."""
    return next((one for one in note.split("; ") if _UNWATCHED in one), "")


def some_names(names: Sequence[str], most: int = 5) -> str:
    """The first of many names, for a sentence."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown
