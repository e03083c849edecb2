"""Random lives of proposals, and a person who says yes to what they were shown.

A round makes a few proposals in a small tree, has a person look at them, and then lets files, rules,
proposals and modes change at random.  Then the person says yes to each id that they have looked at.
A model of its own, which knows nothing of merging, keeps the bytes that each look showed.  What is
on the disk after a yes that was taken must be exactly that, for every file that was shown, and no
other file may have moved; after a yes that was refused, no file at all.  Some say yes to hunks alone: then
what they read of those, applied by a few lines of this module, is what has to be there.

Run as a program: ``drift.py --tries N [--seed S]``.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.app import open_workspace
from filepact.config.settings import parse_settings
from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import FilepactError
from filepact_cli.review import Review

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from filepact.domain.operation import Proposal
    from filepact.workspace.workspace import Workspace
    from filepact_cli.review import ReviewItem

PERSON = Approval(Actor("person", "ann"))
PERSONS_OWN = Session("p", PERSON.actor)
AGENTS = (Session("s1", Actor("agent", "one")), Session("s2", Actor("agent", "two")))
NAMES = ("a.txt", "b.txt", "run.sh", "sub/c.txt", "sub/new.txt", "new.md")
RULES = (
    "",
    '[[deny]]\npaths = ["b.txt"]\nwhy = "no"\n',
    '[[deny]]\npaths = ["*.sh"]\nagents = ["one"]\nwhy = "no"\n',
    '[[ask]]\nname = "asked"\npaths = ["**"]\nwhy = "look"\n',
)

HEAD = re.compile(r"@@ -(\d+)(?:,(\d+))? ")

File = tuple[bytes, int]
Tree = dict[str, File]


@dataclass(frozen=True)
class Look:
    """What a person was shown under an id: each file as it would be, None where it would go.

    Attributes:
        agent: Who proposed it.
        diff: The text that they read.
        before: What the files held for which it was made.
        item: The same in hunks.
    """

    change: str
    files: dict[str, File | None]
    agent: str
    diff: str
    before: dict[str, File | None]
    item: ReviewItem


def with_hunks(text: str, hunks: Iterable[str]) -> str:
    """A text with some hunks of its diff, as they were read."""
    lines = text.splitlines(keepends=True)
    for hunk in sorted(hunks, key=lambda one: -int(HEAD.match(one)[1])):
        head, *body = hunk.splitlines(keepends=True)
        start, count = int(HEAD.match(head)[1]), int(HEAD.match(head)[2] or 1)
        at = start - 1 if count else start
        old = [one[1:] for one in body if one[0] in " -"]
        assert lines[at : at + count] == old, "the hunk tells of another text"
        lines[at : at + count] = [one[1:] for one in body if one[0] in " +"]
    return "".join(lines)


def tree_of(root: Path) -> Tree:
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in root.rglob("*")
        if path.is_file() and path.name != ".filepact.toml"
    }


def failure(act: Callable[[], object]) -> FilepactError | None:
    try:
        act()
    except FilepactError as error:
        return error
    return None


class Round:
    """One tree with its journal.

    Args:
        base: An empty folder.
        chance: Decides everything.
    """

    def __init__(self, base: Path, chance: random.Random) -> None:
        self.root, self.state, self.chance = base / "root", base / "state", chance
        (self.root / "sub").mkdir(parents=True)
        for name in NAMES[:4]:
            (self.root / name).write_text(self.text())
        self.rules = ""
        self.agents = open_workspace(
            [str(self.root)], state_dir=str(self.state), settings=parse_settings("", name="f")
        )
        self.granted: dict[str, tuple[str, str]] = {}
        self.count: Counter[str] = Counter()
        self.mutations = 0

    def text(self) -> str:
        return "".join(
            f"{self.chance.choice('abcde')}{n}\n" for n in range(self.chance.randint(3, 12))
        )

    def edited(self, text: str) -> str:
        """A text with one line changed, put in or taken out."""
        lines = text.splitlines(keepends=True)
        at = self.chance.randrange(len(lines) + 1)
        fresh = [f"{self.chance.choice('vwxyz')}{self.chance.randrange(99)}\n"]
        match self.chance.randrange(3):
            case 0:
                lines[at:at] = fresh
            case 1:
                lines[at : at + 1] = fresh
            case _:
                del lines[at : at + 1]
        return "".join(lines)

    # -- what agents do -----------------------------------------------------------------------

    def propose(self, mode: str = "preview") -> None:
        """An agent changes one or two files, its own waiting changes included."""
        session = self.chance.choice(AGENTS)
        names = self.chance.sample(NAMES, self.chance.choice((1, 1, 2)))
        try:
            with self.agents.draft(session, "patch_apply") as draft:
                draft.mode = "preview" if mode == "preview" else "auto"
                for target in draft.open_all(names):
                    held = None if target.document is None else target.document.data
                    if held is not None and self.chance.random() < 0.1:
                        draft.delete(target, emptied_by=None)
                        continue
                    data = self.text() if held is None else self.edited(held.decode())
                    mode_now = self.chance.choice((None, None, None, 0o755, 0o600))
                    draft.put(target, data.encode(), mode=mode_now)
                receipt = self.agents.submit(draft, "change")
                if mode == "preview" and receipt.status == "applied":
                    self.check_granted(session, [one.path for one in receipt.files])
        except FilepactError as error:
            self.count[f"proposal refused: {error.code}"] += 1

    # -- what is approved in advance ----------------------------------------------------------

    def grant(self) -> None:
        """A person approves files in advance with a proposal, or takes one of these back."""
        approvals = self.agents.approving.granted
        if self.granted and self.chance.random() < 0.4:
            one = self.chance.choice(sorted(self.granted))
            approvals.revoke(one)
            del self.granted[one]
            return
        for proposal in self.agents.pending():
            pattern = self.chance.choice(("sub/**", "**", "a.txt", "!**"))
            with suppress(FilepactError):
                given = approvals.give(proposal, pattern, PERSON)
                self.granted[given.id] = (proposal.session.id, pattern)

    def check_granted(self, session: Session, names: Iterable[str]) -> None:
        """Whether a person has said yes in advance to what was just done without asking."""
        patterns = [pattern for owner, pattern in self.granted.values() if owner == session.id]
        for name in names:
            assert any(
                pattern in ("**", name) or (pattern == "sub/**" and name.startswith("sub/"))
                for pattern in patterns
            ), f"{name} was changed in advance, and only {patterns} was approved"
        self.count["done in advance"] += 1

    # -- what happens meanwhile ---------------------------------------------------------------

    def mutate(self) -> None:
        """Something moves between the look and the yes."""
        self.mutations += 1
        names = [name for name in NAMES if (self.root / name).is_file()]
        name = self.chance.choice(names or ["a.txt"])
        path = self.root / name
        match self.chance.randrange(12):
            case 0 | 1 | 2 if names:
                path.write_text(self.edited(path.read_text()))
            case 3 if names:
                path.chmod(self.chance.choice((0o644, 0o600, 0o755)))
            case 4 if names:
                path.unlink()
            case 5:
                new = self.root / self.chance.choice(NAMES)
                new.parent.mkdir(exist_ok=True)
                new.write_text(self.text())
            case 6 if names:
                kept = path.read_bytes()
                path.unlink()
                path.write_bytes(kept)  # the same bytes in another file
            case 7:
                self.propose()
            case 8:
                self.propose("auto")
            case 9:
                self.grant()
            case 10:
                self.rules = self.chance.choice(RULES)
            case _:
                waiting = self.agents.pending()
                if waiting and self.chance.random() < 0.5:
                    self.agents.reject(self.chance.choice(waiting).id, PERSON)
                elif self.agents.log(limit=1):
                    failure(lambda: self.agents.undo(PERSONS_OWN))

    # -- what a person does -------------------------------------------------------------------

    def look(self, workspace: Workspace, proposal: Proposal) -> Look:
        """The model: from what the person was shown to what every file is to be."""
        files: dict[str, File | None] = {}
        before: dict[str, File | None] = {}
        for change in proposal.changes.changes:
            for side, sides in ((change.after, files), (change.before, before)):
                held = None
                if side is not None:
                    held = (workspace._store.content(side.content), side.mode)
                sides[change.path.path] = held
        item = Review(workspace, PERSONS_OWN).item(proposal.id, fine=self.chance.random() < 0.5)
        agent, diff = proposal.session.agent, workspace.diff(proposal)
        return Look(proposal.id, files, agent, diff, before, item)

    def say_yes_in_part(self, look: Look) -> None:
        """Say yes to some hunks of what was looked at, no to some, and mostly yes to the rest later."""
        numbers = [one.number for one in look.item.hunks]
        said = {number: self.chance.choice("ynl") for number in numbers}
        accept = {number for number in numbers if said[number] == "y"}
        reject = {number for number in numbers if said[number] == "n"}
        before = tree_of(self.root)
        settings = parse_settings(self.rules, name="filepact.toml")
        with open_workspace(
            [str(self.root)], state_dir=str(self.state), settings=settings
        ) as person:
            review, result = Review(person, PERSONS_OWN), None
            try:
                result = review.decide(look.item, accept, reject, self.chance.choice(("", "why")))
            except FilepactError as error:
                self.count[f"in part: {error.code}"] += 1
            if result is None or result.receipt is None:
                assert tree_of(self.root) == before, "nothing was done in part, and files moved"
                self.count["in part: moved"] += result is not None and result.moved
                return
            self.count["done in part"] += 1
            self.check_part(look, accept, before)
            if result.waits is not None and self.chance.random() < 0.7:
                rest = review.item(result.waits)
                review.decide(rest, {one.number for one in rest.hunks})
                self.count["the rest done"] += 1
                self.check_part(look, {*numbers} - reject, before)

    def check_part(self, look: Look, accepted: set[int], before: Tree) -> None:
        """Whether the disk holds exactly the accepted hunks, as they were read."""
        wanted: dict[str, File | None] = {**before}
        for file in look.item.files:
            some = [one for one in file.hunks if one.number in accepted]
            for name in {file.path.path, *(one.origin.path for one in some if one.origin)}:
                if some and not some[0].diff.startswith("@@"):
                    wanted[name] = look.files[name]
                elif some:
                    data, mode = look.before[name] or (b"", 0)
                    text = with_hunks(data.decode(), [one.diff for one in some])
                    wanted[name] = (text.encode(), mode)
        now: dict[str, File | None] = {**tree_of(self.root)}
        assert now == {name: file for name, file in wanted.items() if file is not None}, (
            f"done in part what was not shown:\n{look.diff}\nhunks {accepted}\nbefore {before}\nnow {now}"
        )

    def denied(self, look: Look) -> bool:
        if 'agents = ["one"]' in self.rules:
            return look.agent == "one" and any(name.endswith(".sh") for name in look.files)
        return "deny" in self.rules and "b.txt" in look.files

    def say_yes(self, look: Look) -> str | None:
        """Say yes to what was looked at; the id of what has to be looked at instead."""
        before = tree_of(self.root)
        settings = parse_settings(self.rules, name="filepact.toml")
        with open_workspace(
            [str(self.root)], state_dir=str(self.state), settings=settings
        ) as person:
            error = failure(lambda: person.approve(look.change, PERSON))
        if error is not None:
            self.count[error.code] += 1
            assert tree_of(self.root) == before, f"refused with {error.code}, and files moved"
            again = error.details.get("proposal")
            return str(again) if error.code == "PROPOSAL_CHANGED" else None
        self.count["done"] += 1
        assert not self.denied(look), "done against a rule"
        wanted: dict[str, File | None] = {**before, **look.files}
        now: dict[str, File | None] = {**tree_of(self.root)}
        assert now == {name: file for name, file in wanted.items() if file is not None}, (
            f"done what was not shown:\n{look.diff}\nbefore {before}\nnow {now}"
        )
        return None

    def live(self) -> None:
        for _ in range(self.chance.randint(1, 3)):
            self.propose()
        looks = [self.look(self.agents, one) for one in self.agents.pending()]
        for _ in range(self.chance.choice((0, 1, 1, 2, 4))):
            self.mutate()
        for look in looks:
            if self.chance.random() < 0.4:
                self.say_yes_in_part(look)
                continue
            again = self.say_yes(look)
            if again is not None:
                shown = self.look(self.agents, self.agents.proposal(again))
                if self.chance.random() < 0.5:
                    self.mutate()
                self.say_yes(shown)
            if self.chance.random() < 0.3:
                self.say_yes(look)  # once more
        if self.chance.random() < 0.3:
            self.propose()
            self.grant()
            for _ in range(3):
                self.propose()


def rounds(tries: int, seed: int) -> Iterator[Round]:
    """Rounds until so many mutations have happened."""
    number = done = 0
    while done < tries:
        with tempfile.TemporaryDirectory() as folder:
            one = Round(Path(folder), random.Random(f"{seed}-{number}"))
            try:
                one.live()
            except AssertionError as error:
                raise AssertionError(f"round {number} of seed {seed}: {error}") from None
            finally:
                one.agents.close()
        number += 1
        done += one.mutations
        yield one


def run(tries: int, seed: int) -> Counter[str]:
    """How often what happened; raises where something was done that was not shown."""
    count: Counter[str] = Counter()
    for one in rounds(tries, seed):
        count.update(one.count)
        count["rounds"] += 1
        count["mutations"] += one.mutations
    return count


def main() -> int:
    parser = argparse.ArgumentParser(prog="drift", description="Approvals of what has moved.")
    parser.add_argument("--tries", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    start = time.monotonic()
    count = run(given.tries, given.seed)
    print(", ".join(f"{name}: {number:,}" for name, number in sorted(count.items())))
    print(
        f"{count['mutations']:,} mutations between look and yes, {count['done']:,} done, 0 of them "
        f"otherwise than shown, {time.monotonic() - start:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
