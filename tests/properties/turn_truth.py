"""What stands in a folder, and who has changed it: what has to be there when the agent's changes are gone."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Entry = tuple[Any, ...]
"""What stands under a name: its kind; mode, and bytes of a file; the target of a link."""

LARGE = 1 << 20
"""Bytes of a file that is not kept when it is changed or removed."""


def tree(root: Path) -> dict[str, Entry]:
    """All entries by name, but for what belongs to Git."""
    found: dict[str, Entry] = {}
    left = [""]
    while left:
        folder = left.pop()
        for one in os.scandir(root / folder):
            name = f"{folder}{one.name}"
            status = one.stat(follow_symlinks=False)
            mode = stat.S_IMODE(status.st_mode)
            if one.name == ".git":
                continue
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


@dataclass
class Truth:
    """Who changed which entry to what, as it was seen at each step; what is documented as not seen."""

    now: dict[str, Entry]
    unseen: list[str] = field(default_factory=list)
    changes: dict[str, list[tuple[str, Entry | None, Entry | None, str]]] = field(
        default_factory=dict
    )

    def see(self, found: dict[str, Entry], who: str, when: str) -> None:
        for name in self.now.keys() | found.keys():
            before, after = self.now.get(name), found.get(name)
            if before != after:
                # When something went, no disk tells.
                whose = "either" if after is None and when.startswith("asked") else who
                self.changes.setdefault(name, []).append((whose, before, after, when))
        self.now = found

    def blend(self, since: dict[str, int]) -> None:
        """Of what both changed between two looks, nobody can tell whose it is.

        Args:
            since: By name, how many of its changes came before the first look.
        """
        for name, changes in self.changes.items():
            at = since.get(name, 0)
            if len({one[0] for one in changes[at:]}) > 1:
                changes[at:] = [("either", *one[1:]) for one in changes[at:]]

    @property
    def counts(self) -> dict[str, int]:
        return {name: len(changes) for name, changes in self.changes.items()}

    @property
    def acted(self) -> bool:
        return any(one[0] == "agent" for some in self.changes.values() for one in some)

    def wanted(self, name: str) -> tuple[list[Entry | None], bool]:
        """What may stand under a name when the agent's changes are gone; whether both have changed it."""
        changes = self.changes.get(name, [])
        who = [one[0] for one in changes]
        now = self.now.get(name)
        if "either" in who:
            # Nobody can tell which of them the agent's were.
            after = set(who[who.index("either") :]) != {"either"}
            return [now, *(state for one in changes for state in one[1:3])], after
        if "agent" not in who:
            return [now], False
        first = who.index("agent")
        back = changes[first][1]
        if "person" not in who[first:]:
            return [back], False
        last = len(who) - 1 - who[::-1].index("agent")
        if changes[last][2] == back and "person" not in who[first:last]:
            return [now], True  # The agent has taken its own back.
        added = b"".join(
            after[2][len(before[2]) :]
            for one, before, after, _ in changes[first:]
            if one == "person" and before and after and (before[0], after[0]) == ("file", "file")
        )
        merged = (*back[:2], back[2] + added) if added and back and back[0] == "file" else back
        # Where the person's came last, and in its place, it may stay; that has to be said.
        return [merged], True

    def suits(self, name: str, entry: Entry | None) -> bool:
        """Whether an entry may stand under a name when the agent's changes are gone."""
        wanted, both = self.wanted(name)
        if entry in wanted:
            return True
        changes = self.changes.get(name, [])
        if (
            not both
            or not entry
            or entry[0] != "file"
            or "either" not in {one[0] for one in changes}
        ):
            return False
        # Of what went in between nobody knows whose it was; what was surely the person's stays.
        own = [
            after[2].removeprefix(before[2])
            for who, before, after, _ in changes
            if who == "person" and before and after and before[0] == after[0] == "file"
        ]
        return bool(own) and all(one in entry[2] for one in own)
