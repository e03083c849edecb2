"""What stands in a folder, and who has changed it: what has to be there when the agent's changes are gone."""

from __future__ import annotations

import os
import stat
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

Entry = tuple[Any, ...]
"""What stands under a name: its kind; mode, and bytes of a file; the target of a link."""

LARGE = 1 << 20
"""Bytes of a file that is not kept when it is changed or removed."""


def tree(
    root: Path, stamps: dict[str, os.stat_result] | None = None, *, git: bool = False
) -> dict[str, Entry]:
    """All entries by name, but for what belongs to Git.

    Args:
        root: The folder.
        stamps: Takes what the system says of each.
        git: Whether what belongs to Git is there too.
    """
    found: dict[str, Entry] = {}
    left = [""]
    while left:
        folder = left.pop()
        for one in os.scandir(root / folder):
            name = f"{folder}{one.name}"
            status = one.stat(follow_symlinks=False)
            mode = stat.S_IMODE(status.st_mode)
            if one.name == ".git" and not git:
                continue
            if stamps is not None:
                stamps[name] = status
            if one.is_symlink():
                found[name] = ("link", os.readlink(one.path))
            elif one.is_dir():
                found[name] = ("folder", mode)
                left.append(f"{name}/")
            elif one.is_file():
                found[name] = ("file", mode, Path(one.path).read_bytes())
            else:
                found[name] = ("special", mode)
    return found


class Copy:
    """What is in a folder, with what belongs to Git: to have it there again."""

    def __init__(self, root: Path) -> None:
        self._root = root
        stamps: dict[str, os.stat_result] = {}
        self._entries = tree(root, stamps, git=True)
        twins: dict[int, list[str]] = {}
        for name, one in stamps.items():
            if one.st_nlink > 1 and stat.S_ISREG(one.st_mode):
                twins.setdefault(one.st_ino, []).append(name)
        self._twins = [sorted(some) for some in twins.values()]

    def set_back(self) -> None:
        """Change what is not as it was, and nothing else."""
        stamps: dict[str, os.stat_result] = {}
        found = tree(self._root, stamps, git=True)
        alone = {name for name, one in stamps.items() if one.st_nlink == 1}
        parted = {
            name
            for some in self._twins
            if alone.intersection(some) or len({stamps[x].st_ino for x in some if x in stamps}) != 1
            for name in some
        }
        joined = {name for some in self._twins for name in some} - parted
        wrong = {
            name
            for name, one in found.items()
            if self._entries.get(name) != one
            or name in parted
            or (name not in alone and name not in joined and one[0] == "file")
        }
        for name in sorted(wrong, reverse=True):
            if found[name][0] != "folder":
                os.unlink(self._root / name)
            elif self._entries.get(name, ("",))[0] != "folder":
                os.rmdir(self._root / name)
        for name in sorted(wrong | (self._entries.keys() - found.keys())):
            self._make(name)

    def _make(self, name: str) -> None:
        entry = self._entries.get(name)
        first = next((some[0] for some in self._twins if name in some[1:]), None)
        if first is not None and entry is not None:
            (self._root / name).hardlink_to(self._root / first)
        elif entry is not None:
            make(self._root / name, entry)


def make(path: Path, entry: Entry) -> None:
    """Make an entry, or have it hold this."""
    if entry[0] == "link":
        path.symlink_to(entry[1])
        return
    if entry[0] == "folder":
        path.mkdir(exist_ok=True)
    else:
        path.write_bytes(entry[2])
    path.chmod(entry[1])


@dataclass
class Truth:
    """Who changed which entry to what, as it was seen at each step; what is documented as not seen.

    Attributes:
        now: What stands there.
        linked: Files that had another name (hard links) at some time, with the numbers of what stood there.
        beside: What a person left in the root beside layers.
        came: Under which name a file was before that an agent moved to a name.
        moved: To which name somebody else moved what was under a name.
        through: Files that a call may have written by a link that came meanwhile in the place of the one that it names.
        changes: By name: who, from what, to what, when.  A ``touch`` is the agent's, and the same stands there again.
    """

    now: dict[str, Entry]
    unseen: list[str] = field(default_factory=list)
    changes: dict[str, list[tuple[str, Entry | None, Entry | None, str]]] = field(
        default_factory=dict
    )
    linked: dict[str, set[int]] = field(default_factory=dict)
    beside: dict[str, Entry | None] = field(default_factory=dict)
    came: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    through: set[str] = field(default_factory=set)
    _stamps: dict[str, os.stat_result] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Path) -> Truth:
        truth = cls({})
        truth.now = truth._tree(root)
        return truth

    def _tree(self, root: Path) -> dict[str, Entry]:
        self._stamps = {}
        found = tree(root, self._stamps)
        for name, one in self._stamps.items():
            if one.st_nlink > 1 and stat.S_ISREG(one.st_mode):
                self.linked.setdefault(name, set()).add(one.st_ino)
        return found

    def look(self, root: Path, who: str, when: str) -> None:
        """See what is different: who has changed it, and when, in words."""
        stamps, found = self._stamps, None
        while found is None:
            with suppress(FileNotFoundError):  # Something goes on, as after a kill.
                found = self._tree(root)
        was = {one.st_ino: name for name, one in stamps.items()}
        for name, one in self._stamps.items():
            if was.get(one.st_ino, name) != name and stamps.get(name, None) != one:
                if who == "agent":
                    self.came[name] = was[one.st_ino]
                else:
                    self.moved[was[one.st_ino]] = name
        for name in self.now.keys() | found.keys():
            before, after = self.now.get(name), found.get(name)
            if before != after:
                # When something went, no disk tells.
                by = "either" if after is None and when.startswith("asked") else who
                self.changes.setdefault(name, []).append((by, before, after, when))
            elif who != "person" and name in stamps:
                old, new = stamps[name], self._stamps[name]
                if before is not None and before[0] == "folder":
                    self._touch(name, who, old, new)
                elif (old.st_ino, old.st_ctime_ns) != (new.st_ino, new.st_ctime_ns):
                    # What a person makes anew as it was while a command runs is put down to that.
                    by = "either" if who == "either" else "touch"
                    self.changes.setdefault(name, []).append((by, before, after, when))
                    self._touch_above(name, by, stamps, when)
        self.now = found

    def _touch_above(
        self, name: str, by: str, stamps: dict[str, os.stat_result], when: str
    ) -> None:
        """The folders of what was made anew as it was: as `git checkout` does, which removes them and makes them again."""
        for at in above(name):
            old, new, is_as = stamps.get(at), self._stamps[at], self.now.get(at)
            if old is None or old.st_mtime_ns == new.st_mtime_ns:
                return
            self.changes.setdefault(at, []).append((by, is_as, is_as, when))

    def _touch(self, folder: str, who: str, old: os.stat_result, new: os.stat_result) -> None:
        """A folder of which only the rights were set while a command ran: when it got its name, no disk tells any more."""
        if old.st_ctime_ns == new.st_ctime_ns or old.st_mtime_ns != new.st_mtime_ns:
            return
        if who != "either":
            # Nor whether a person had set the same rights just before.
            last = self.changes.get(folder, [])[-1:]
            if last and last[0][1] and last[0][2] and last[0][3].startswith("asked"):
                self.changes[folder][-1] = ("either", *last[0][1:])
            return
        for name, changes in self.changes.items():
            if f"{name}/".startswith(f"{folder}/") and changes[-1][3].startswith("asked"):
                changes[-1] = ("either", *changes[-1][1:])

    def blend(self, since: dict[str, int], named: Collection[str] = ()) -> None:
        """Of what both changed between two looks, nobody can tell whose it is.

        Args:
            since: By name, how many of its changes came before the first look.
            named: Files of which nobody can tell in any case.
        """
        # Who changes what lies in a folder changes that as well, and so has its rights.
        agents = {
            name.rpartition("/")[0]
            for name, changes in self.changes.items()
            if any(one[0] != "person" for one in changes[since.get(name, 0) :])
        }
        folders = {at for one in named for at in above(one)}
        # Of what a person has moved away in that moment the folder alone tells nothing.
        left = {at for one in named if one not in self.now for at in above(one)}
        for name, changes in self.changes.items():
            at = since.get(name, 0)
            who = {one[0] for one in changes[at:]}
            # A call makes the folders of what it names, and has them with it.
            made = name in folders and any(one[1] is None for one in changes[at:])
            rights = name in agents and all(one[1] and one[2] for one in changes[at:])
            alone = (name in named or made or rights) and who == {"person"}
            if len(who) > 1 or alone or (made and name in left and who):
                changes[at:] = [("either", *one[1:]) for one in changes[at:]]

    def share(self, since: dict[str, int]) -> None:
        """Of what one of several agents changed, nobody can tell which it was; `since` as of `blend`."""
        for name, changes in self.changes.items():
            at = since.get(name, 0)
            changes[at:] = [
                one if one[0] == "person" else ("either", *one[1:]) for one in changes[at:]
            ]

    @property
    def counts(self) -> dict[str, int]:
        return {name: len(changes) for name, changes in self.changes.items()}

    def really(self, name: str) -> list[tuple[str, Entry | None, Entry | None, str]]:
        """The changes after which something else stood there; those of another turn after it stay as a person's do."""
        found = [one for one in self.changes.get(name, []) if one[0] != "touch"]
        first = next((at for at, one in enumerate(found) if one[0] == "agent"), len(found))
        after = ("person" if one[0] == "other" else one[0] for one in found[first:])
        return found[:first] + [
            (by, *one[1:]) for by, one in zip(after, found[first:], strict=True)
        ]

    def was_removed(self, entry: Entry) -> bool:
        """Whether somebody else than the agent has removed a file like this one, or put another kind in its place."""
        ends = (one for some in self.changes.values() for one in some if one[0] != "agent")
        return any(one[1] == entry and (one[2] or ("",))[0] != "file" for one in ends)

    def removed(self, name: str) -> list[Entry | None]:
        """What stood under a name until it was removed last by the agent, if nothing came there since."""
        return [one[1] for one in self.really(name)[-1:] if one[0] == "agent" and one[2] is None]

    def left(self, name: str) -> list[Entry | None]:
        """What a person left under a name when they changed it last, if they have."""
        return [one[2] for one in self.really(name) if one[0] == "person"][-1:]

    @property
    def acted(self) -> bool:
        return any(one[0] == "agent" for some in self.changes.values() for one in some)

    def names(self, found: dict[str, Entry]) -> list[str]:
        """Every name that something stood under."""
        return sorted(self.now.keys() | found.keys() | self.changes.keys())

    def wanted(self, name: str) -> tuple[list[Entry | None], bool]:
        """What may stand under a name when the agent's changes are gone; whether both have changed it."""
        changes = self.really(name)
        who = [one[0] for one in changes]
        now = self.now.get(name)
        if "either" in who:
            # Nobody can tell which of them the agent's were.
            both = "agent" in who or set(who[who.index("either") :]) != {"either"}
            return [now, *(state for one in changes for state in one[1:3])], both
        if "agent" not in who:
            return [now], False
        first = who.index("agent")
        back = changes[first][1]
        ends = [*who[first:], "person"].index("person") + first
        if ends < len(who) and changes[ends - 1][2] == back and "agent" in who[ends:]:
            # What the agent did until then came to nothing, and the person went on with what was there.
            first = who.index("agent", ends)
            back = changes[first][1]
        if "person" not in who[first:]:
            return [back], False
        last = len(who) - 1 - who[::-1].index("agent")
        if changes[last][2] == back and "person" not in who[first:last]:
            return [now], True  # The agent has taken its own back.
        # Where the person's came last, and in its place, it may stay; that has to be said.
        return [back], True

    def in_the_way(self, name: str) -> bool:
        """Whether a person has put something below a name that has to become something else than a folder."""
        wanted, _ = self.wanted(name)
        return not any(one and one[0] == "folder" for one in wanted) and any(
            below.startswith(f"{name}/") and below in self.now and changes[-1][0] != "agent"
            for below, changes in self.changes.items()
        )

    def is_hidden(self, name: str) -> bool:
        """Whether somebody else has put what is no folder above a name, or above the one that it was moved from."""
        names = [name, *filter(None, [self.came.get(name)])]
        tops = [
            at for one in names for at in above(one) if self.now.get(at, ("folder",))[0] != "folder"
        ]
        return any(self.really(at)[-1:] and self.really(at)[-1][0] != "agent" for at in tops)

    def is_led_to(self, name: str) -> bool:
        """Whether a call may have written a file by a link that came meanwhile, or that somebody else has made."""
        links = (
            (at, one[2][1])
            for at, some in self.changes.items()
            for one in some
            if one[0] != "agent" and one[2] and one[2][0] == "link"
        )
        return name in self.through or any(
            os.path.normpath(os.path.join(os.path.dirname(at), to)) == name for at, to in links
        )

    def came_with_others(self, name: str) -> bool:
        """Whether what an agent moved to a name came from where somebody else had a hand in it, or what went from there has."""
        seen: set[str] = set()
        while name in self.came and name not in seen:
            seen.add(name)
            name = self.came[name]
            if any(one[0] not in ("agent", "touch") for one in self.changes.get(name, ())):
                return True
        return False

    def suits(self, name: str, entry: Entry | None) -> bool:
        """Whether an entry may stand under a name when the agent's changes are gone."""
        wanted, both = self.wanted(name)
        changes = self.really(name)
        if entry in wanted and not (both and entry and entry[0] == "file" and self._added(name)):
            return True
        # A person has changed the rights of a folder since.
        if both and entry and entry[0] == "folder":
            last = changes[-1]
            stays = entry in (self.now.get(name), last[2])
            if stays and last[0] == "person" and last[1] and last[1][0] == "folder":
                return True
        # One that the agent has made anew, and a person has removed since, stays away, whatever rights it had had.
        if both and entry is None and changes[-1][:1] == ("person",) and changes[-1][2] is None:
            made = [one[2] for one in changes if one[0] == "agent" and one[1] is None]
            if made and made[-1] and made[-1][0] == "folder" and changes[-1][1] == made[-1]:
                return True
        # What a call did to a file by another name is nobody's, and all of them have one mode.
        if name in self.linked:
            held = {s[2] for c in self.by_all_names(name) for s in c[1:3] if s and s[0] == "file"}
            if entry is None or (entry[2] in held if entry[0] == "file" else entry in wanted):
                return True
            # One that stays since a person wrote to it by another name holds what that holds.
            twins = [x for x, files in self.linked.items() if files & self.linked[name]]
            for other in twins if both and entry[0] == "file" else ():
                by = {one[0] for one in self.really(other)}
                if by == {"agent", "person"} and self._is_merged(other, entry):
                    return True
        if not entry or entry[0] != "file":
            return False
        if "either" in {one[0] for one in changes}:
            # Of what went in between nobody knows whose it was; what was surely the person's stays.
            found, agents = {*_lines(entry)}, self._lines_of("agent", name)
            others = {*()}.union(
                *(self._lines_of(who, name) for who in ("person", "either", "other"))
            )
            # By one of several names of a file its lines come from what is done by the others.
            by_others = self.by_all_names(name) if name in self.linked else ()
            before = {line for one in (changes[0], *by_others) for line in _lines(one[1])}
            own = self._added(name) <= found and not (agents - others - before) & found
            return (own and found <= before | others) or (
                self._added(name) <= found and entry in wanted
            )
        return both and self._is_merged(name, entry)

    def has_only_other_rights(self, name: str, entry: Entry | None) -> bool:
        """Whether a file holds what it holds now, and has rights that it had before somebody set others, nobody knows who."""
        now, changes = self.now.get(name), self.really(name)
        if not (entry and now and entry[0] == now[0] == "file" and entry[2:] == now[2:]):
            return False
        rights = {one[1][1] for one in changes if one[0] == "either" and one[1]}
        return entry[1] in rights

    def by_all_names(self, name: str) -> list[tuple[str, Entry | None, Entry | None, str]]:
        """The changes of a file by each name that it had: who writes to one of them writes to all."""
        own = self.linked[name]
        return [
            change
            for other, files in self.linked.items()
            if files & own
            for change in self.changes.get(other, ())
        ]

    def _added(self, name: str) -> set[bytes]:
        """The lines of a file that are surely the person's, and still there: nobody has removed and added them since."""
        whose: dict[bytes, str] = {}
        for by, before, after, _ in self.changes.get(name, ()):
            now = _lines(after)
            whose = {line: one for line, one in whose.items() if line in now}
            # A line that the person has as well is there as often as both have added it.
            came = {x for x in _gained(before, after) if by == "person" or x not in whose}
            whose |= dict.fromkeys(came, by)
        return {line for line, by in whose.items() if by == "person"} & {
            *_lines(self.now.get(name))
        }

    def holds_only_persons(self, name: str, start: Entry | None, entry: Entry | None) -> bool:
        """Whether a file has what was there first, and the lines that are surely a person's."""
        if not (start and entry and start[0] == entry[0] == "file"):
            return False
        found = {*_lines(entry)}
        return self._added(name) <= found <= {*_lines(start)} | self._lines_of("person", name)

    def has_less(self, name: str, entry: Entry | None) -> bool:
        """Whether a file holds nothing but what it holds now, and all of that which is surely the person's."""
        found = {*_lines(entry)}
        return bool(entry) and self._added(name) <= found <= {*_lines(self.now.get(name))}

    def goes_back_with(self, name: str, back: Entry | None, entry: Entry) -> bool:
        """Whether a file that goes back from a name holds what it had before, and of what others did to it there no less
        than is surely the person's.
        """
        if not (back and back[0] == entry[0] == "file"):
            return False
        others = ("person", "either", "other")
        plus = {*()}.union(*(self._lines_of(who, name) for who in others))
        minus = {*()}.union(*(self._lines_of(who, name, gone=True) for who in others))
        found, before = {*_lines(entry)}, {*_lines(back)}
        return self._added(name) <= found <= before | plus and before - minus <= found

    def _lines_of(self, who: str, name: str, *, gone: bool = False) -> set[bytes]:
        """The lines that somebody has added to a file, or taken from it."""
        return {
            line
            for by, before, after, _ in self.changes.get(name, ())
            if by == who
            for sides in [(before, after) if gone else (after, before)]
            for line in _gained(sides[1], sides[0])
        }

    def _is_merged(self, name: str, entry: Entry) -> bool:
        """Whether the person's lines are there, and the agent's are not, but those that it removed."""
        changes = self.really(name)
        first = [one[0] for one in changes].index("agent")
        back, found = {*_lines(changes[first][1])}, {*_lines(entry)}
        plus: dict[str, set[bytes]] = {"agent": set(), "person": set()}
        minus: dict[str, set[bytes]] = {"agent": set(), "person": set()}
        theirs = (one[2] for one in changes[first:] if one[0] == "person")
        modes = {one[1] for one in (changes[first][1], self.now.get(name), *theirs) if one}
        for who, before, after, _ in changes[first:]:
            plus[who] |= _gained(before, after)
            minus[who] |= _gained(after, before)
        agents = plus["agent"] - plus["person"] - back
        return (
            self._added(name) <= found
            and not agents & found
            and (back & minus["agent"]) - minus["person"] <= found
            and found <= back | plus["person"]
            and entry[1] in modes
        )


def _lines(entry: Entry | None) -> list[bytes]:
    return entry[2].splitlines() if entry and entry[0] == "file" else []


def _gained(before: Entry | None, after: Entry | None) -> set[bytes]:
    """The lines that a file has more often than before."""
    return {*(Counter(_lines(after)) - Counter(_lines(before)))}


def above(name: str) -> Iterator[str]:
    """The folders that a name lies in, the nearest first."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name
