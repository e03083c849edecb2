"""Attributes of a file or folder besides its bytes and its mode: owner, group, access lists, extended attributes, time.

The mode stands in `Revision`, since it tells the kind as well.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from struct import iter_unpack, pack
from typing import Final

from filepact.values import dataclass, field, json_writer, replace

__all__ = [
    "ACCESS_LIST",
    "DEFAULT_LIST",
    "Attributes",
    "access_list",
    "limited",
    "list_closed_to_group",
    "list_with_mode",
    "without_set_id",
]

ACCESS_LIST: Final = "system.posix_acl_access"
"""The attribute that holds an access list, as Linux has it (acl(5))."""

DEFAULT_LIST: Final = "system.posix_acl_default"
"""That of a folder, which entries made in it inherit."""

_OF_CONTENT: Final = ("security.capability",)
"""Rights that a program file holds belong to the bytes that were reviewed for them."""

_USER_OBJ, _USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 1, 2, 4, 8, 16, 32
_TAGS: Final = {
    _USER_OBJ: "user:", _USER: "user:", _GROUP_OBJ: "group:", _GROUP: "group:", _MASK: "mask:", _OTHER: "other:",
}  # fmt: skip
_OF_MODE: Final = (_USER_OBJ, _MASK, _OTHER)
_SET_USER, _SET_GROUP = 0o4000, 0o2000

_write = json_writer(ascii_only=True)


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of a file or folder: all besides its bytes and its mode.

    Attributes:
        owner: The number of the user that it belongs to.
        group: That of the group.
        extended: Extended attributes by name, in the order of their names, access lists among them, without the
            rights in these that stand in the mode.
        omitted: Names of extended attributes that were too large to be kept.
        modified: When its bytes were written last, nanoseconds since the epoch; a later time alone is no other
            state.  None where nobody knows.
        linked: Which file it is that has several names (hard links), so that those that go together come back as
            one; empty for a file of one name.  Which folder it is, where that is moved with all that is in it.
    """

    owner: int
    group: int
    extended: tuple[tuple[str, bytes], ...] = ()
    omitted: tuple[str, ...] = ()
    modified: int | None = field(default=None, compare=False)
    linked: str = field(default="", compare=False)

    @property
    def of_other_bytes(self) -> Attributes:
        """The attributes for new bytes: without those that belong to the present bytes only."""
        if not self.extended:
            return Attributes(self.owner, self.group, (), self.omitted)
        kept = tuple(one for one in self.extended if not one[0].startswith(_OF_CONTENT))
        return Attributes(self.owner, self.group, kept, self.omitted)

    def written(self, modified: int | None) -> Attributes:
        """These attributes with another modification time."""
        return replace(self, modified=modified)

    def changed(self, before: Attributes | None, after: Attributes) -> Attributes:
        """These attributes, with every difference between two others applied.

        Args:
            before: What the change was made from; None where nobody knows, and all becomes as in ``after``.
            after: What it was to become.
        """
        if before is None:
            return after
        was, will_be, now = dict(before.extended), dict(after.extended), dict(self.extended)
        for name in was.keys() | will_be.keys():
            if was.get(name) == will_be.get(name):
                continue
            now.pop(name, None)
            if name in will_be:
                now[name] = will_be[name]
        return Attributes(
            after.owner if after.owner != before.owner else self.owner,
            after.group if after.group != before.group else self.group,
            tuple(sorted(now.items())),
            self.omitted,
            after.modified,
            after.linked,
        )

    def packed(self) -> bytes:
        """All of it, to be stored."""
        extended = [[name, b64encode(value).decode()] for name, value in self.extended]
        rest = [extended, [*self.omitted]] if extended or self.omitted or self.linked else []
        rest += [self.linked] if self.linked else []
        return _write([self.owner, self.group, self.modified, *rest]).encode()

    @classmethod
    def unpacked(cls, stored: bytes) -> Attributes:
        """Attributes from their stored form."""
        owner, group, modified, *rest = json.loads(stored)
        extended, omitted = rest[:2] or ((), ())
        linked = rest[2] if len(rest) > 2 else ""
        pairs = tuple((name, b64decode(value)) for name, value in extended)
        return cls(owner, group, pairs, tuple(omitted), modified, linked)

    def differences(self, after: Attributes) -> tuple[str, ...]:
        """The differences of a later state, each in plain words."""
        if self == after:
            return ()
        told: list[str] = []
        if (self.owner, self.group) != (after.owner, after.group):
            told.append(f"owner {self.owner}:{self.group} -> {after.owner}:{after.group}")
        was, is_ = dict(self.extended), dict(after.extended)
        for name in sorted(was.keys() | is_.keys()):
            old, new = was.get(name), is_.get(name)
            if old == new:
                continue
            if name in (ACCESS_LIST, DEFAULT_LIST):
                which = "access list" if name == ACCESS_LIST else "default access list"
                before, now = (access_list(one) if one else () for one in (old, new))
                told += [f"{which}: - {one}" for one in before if one not in now]
                told += [f"{which}: + {one}" for one in now if one not in before]
            elif old is None or new is None:
                told.append(f"attribute {'+' if old is None else '-'} {name}")
            else:
                told.append(f"attribute {name} changed")
        return tuple(told)


def access_list(stored: bytes) -> tuple[str, ...]:
    """The entries of an access list that the mode does not tell, such as ``user:1234:r--``."""
    return tuple(
        f"{_TAGS.get(tag, f'{tag}:')}{number if tag in (_USER, _GROUP) else ''}:"
        + "".join(sign if perm & bit else "-" for sign, bit in (("r", 4), ("w", 2), ("x", 1)))
        for tag, perm, number in _entries(stored)
        if tag not in _OF_MODE
    )


def list_with_mode(stored: bytes, mode: int) -> bytes:
    """An access list with the rights of the owner, of the mask and of others that stand in a mode.

    With the mode 0 it is as it is kept: that these rights change is told by the mode alone.
    """
    shares = {_USER_OBJ: mode >> 6, _MASK: mode >> 3, _OTHER: mode}
    return stored[:4] + b"".join(
        pack("<HHI", tag, shares[tag] & 0o7 if tag in shares else perm, number)
        for tag, perm, number in _entries(stored)
    )


def list_closed_to_group(stored: bytes, mode: int) -> bytes:
    """An access list whose owning group has no more than everybody has by a mode."""
    return stored[:4] + b"".join(
        pack("<HHI", tag, perm & mode if tag == _GROUP_OBJ else perm, number)
        for tag, perm, number in _entries(stored)
    )


def limited(mode: int, stored: bytes) -> int:
    """A mode that gives nobody more, without an access list, than a mode gave with it.

    Args:
        mode: The mode of the file that had the list, whose bits of the group are the list's mask.
        stored: The list.
    """
    entries, mask, other = _entries(stored), mode >> 3 & 0o7, mode & 0o7
    group = next((perm for tag, perm, _ in entries if tag == _GROUP_OBJ), 0) & mask
    for tag, perm, _ in entries:
        # Whoever was named, and withheld something, is one of the group or of the others then.
        if tag in (_USER, _GROUP):
            other &= perm & mask
        if tag == _USER:
            group &= perm & mask
    return mode & ~0o77 | group << 3 | other


def without_set_id(mode: int, *, user: bool, group: bool, folder: bool) -> int:
    """A mode without the bits that lend the rights of an owner or group that the file does not have any more."""
    if not user and not folder:
        mode &= ~_SET_USER
    return mode if group else mode & ~_SET_GROUP


def _entries(stored: bytes) -> list[tuple[int, int, int]]:
    body = stored[4:]
    return [*iter_unpack("<HHI", body[: len(body) // 8 * 8])]
