"""Where a person is in a review: the proposal and the hunk they look at, and what they have marked.

A mark is done when every hunk of its proposal has one, or when the person says so.  Until then it is
nobody's business but theirs, and can be taken back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from filepact.domain.operation import who
from filepact.errors import FilepactError
from filepact.text.confusables import visible
from filepact.values import dataclass
from filepact_cli.render import count
from filepact_cli.review import in_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.domain.document import WorkspacePath
    from filepact.domain.operation import ChangeId
    from filepact.workspace.hunks import ProposalHunk
    from filepact_cli.review import (
        Review,
        ReviewEntry,
        ReviewFile,
        ReviewItem,
        ReviewResult,
    )

__all__ = ["KEYS", "ReviewMessage", "ReviewSelection", "Scope", "said"]

Scope = Literal["turn", "session", "all"]
"""What is decided about together: what an agent did in a turn, in a session, or all that waits."""

KEYS = (
    ("y", "accept this hunk"),
    ("n", "reject this hunk"),
    ("a", "accept this and all later hunks of the file"),
    ("d", "reject this and all later hunks of the file"),
    ("s", "split into runs of changed lines, or join them again"),
    ("e", "edit the proposed text in your editor; it is shown again"),
    ("w", "carry out what is marked; the other hunks wait on"),
    ("j k", "next hunk, hunk before"),
    ("J K", "next proposal, proposal before"),
    ("tab", "next hunk without a mark"),
    ("c", "write a reason, for the agent to read"),
    ("t", "accept or reject the whole turn"),
    ("S", "accept or reject the whole session"),
    ("A", "accept or reject all that waits"),
    ("u", "take the last mark back, or undo what was done last"),
    ("r", "redo what was undone last"),
    ("/", "find text"),
    ("D", "ask language servers what the change brings"),
    ("q", "leave; what has no mark waits on"),
    ("?", "these keys"),
)


@dataclass(frozen=True, slots=True)
class ReviewMessage:
    """One line for the person; ``bad`` is what they should not miss."""

    text: str
    bad: bool = False


class ReviewSelection:
    """A person's place in a review.

    Args:
        review: What it is about.
    """

    def __init__(self, review: Review) -> None:
        self.review = review
        self.entries: tuple[ReviewEntry, ...] = ()
        self.item: ReviewItem | None = None
        self.hunk = 0
        self.reasons: dict[ChangeId, str] = {}
        self.requests: dict[str, str] = {}
        self._wanted: ChangeId | None = None
        self._fine: set[ChangeId] = set()
        self._marks: dict[ChangeId, dict[int, bool]] = {}
        self._order: list[tuple[ChangeId, tuple[int, ...]]] = []

    # -- where ----------------------------------------------------------------------------

    def show(self, entries: Sequence[ReviewEntry]) -> bool:
        """Take in what waits, and stay where the person is, if that is still there.

        Returns:
            Whether another proposal is to be loaded, or the same one as it is now.
        """
        before = self.current
        ordered = [one for group in in_groups(entries) for one in group.entries]
        place = self.place
        self.entries = tuple(ordered)
        self.requests = self.review.workspace.asked.requests() if ordered else {}
        known = {one.id for one in ordered}
        for gone in self._marks.keys() - known:
            del self._marks[gone]
        self._order = [one for one in self._order if one[0] in known]
        if self._wanted not in known:
            following = ordered[min(place, len(ordered) - 1)] if ordered else None
            self.choose(None if following is None else following.id)
        return self.current != before or (self.current is not None and self.item is None)

    @property
    def current(self) -> ReviewEntry | None:
        """The proposal that is looked at."""
        return next((one for one in self.entries if one.id == self._wanted), None)

    @property
    def place(self) -> int:
        """Its number, from 0."""
        return next((at for at, one in enumerate(self.entries) if one.id == self._wanted), 0)

    @property
    def request(self) -> str:
        """The person's request from which this proposal came; empty if it is not known."""
        turn = self.current.proposal.session.turn if self.current else ""
        return self.requests.get(turn, "")

    def choose(self, change_id: ChangeId | None) -> None:
        """Look at another proposal; it has to be loaded."""
        self._wanted, self.item, self.hunk = change_id, None, 0

    def step(self, by: int) -> bool:
        """Look at the proposal so many further on; false where there is none."""
        at = self.place + by
        if not 0 <= at < len(self.entries):
            return False
        self.choose(self.entries[at].id)
        return True

    @property
    def fine(self) -> bool:
        """Whether the proposal is split into runs of changed lines."""
        return self._wanted in self._fine

    def loaded(self, item: ReviewItem) -> None:
        """Take in what `Review.item` says of the proposal that is looked at."""
        if item.entry.id == self._wanted:
            self.item = item
            self.hunk = min(self.hunk, max(len(item.hunks) - 1, 0))

    @property
    def current_hunk(self) -> ProposalHunk | None:
        """The hunk that is looked at."""
        hunks = () if self.item is None else self.item.hunks
        return hunks[self.hunk] if self.hunk < len(hunks) else None

    @property
    def current_file(self) -> ReviewFile | None:
        """The file that it is of."""
        hunk = self.current_hunk
        if hunk is None or self.item is None:
            return None
        return next(one for one in self.item.files if one.path == hunk.path)

    def next_hunk(self, by: int) -> bool:
        """Look at another hunk of the proposal; false where there is none so far on."""
        hunks = () if self.item is None else self.item.hunks
        if not 0 <= self.hunk + by < len(hunks):
            return False
        self.hunk += by
        return True

    def next_unmarked(self) -> bool:
        """Look at the next hunk without a mark, from here on and then from the top."""
        if self.item is None:
            return False
        hunks = self.item.hunks
        for further in range(1, len(hunks) + 1):
            at = (self.hunk + further) % len(hunks)
            if self.mark_of(hunks[at].number) is None:
                self.hunk = at
                return True
        return False

    # -- marks ----------------------------------------------------------------------------

    def mark_of(self, number: int) -> bool | None:
        """Return the mark of a hunk: true to accept it, false to reject it, None for none."""
        return self.marks.get(number)

    @property
    def marks(self) -> dict[int, bool]:
        """All marks of the proposal that is looked at."""
        return {} if self._wanted is None else self._marks.get(self._wanted, {})

    @property
    def left(self) -> int:
        """How many marks of all proposals are not carried out."""
        return sum(map(len, self._marks.values()))

    def marked(self, change_id: ChangeId) -> tuple[int, int]:
        """How many hunks of a proposal are to be accepted, and to be rejected."""
        marks = self._marks.get(change_id, {}).values()
        return sum(marks), len(marks) - sum(marks)

    def mark(self, verdict: bool, *, rest: bool = False) -> bool:
        """Mark the hunk that is looked at, and go on to the next one without a mark.

        What can only be decided about as a whole is marked as a whole.

        Args:
            verdict: Whether it is to be accepted.
            rest: With all later hunks of the same file.

        Returns:
            Whether all hunks of the proposal have a mark now.
        """
        item, hunk = self.item, self.current_hunk
        if item is None or hunk is None or self._wanted is None:
            return False
        numbers = [hunk.number]
        if not item.divisible:
            numbers = [one.number for one in item.hunks]
        elif rest:
            later = (one for one in item.hunks if one.path == hunk.path)
            numbers = [one.number for one in later if one.number >= hunk.number]
        marks = self._marks.setdefault(self._wanted, {})
        marks |= dict.fromkeys(numbers, verdict)
        self._order.append((self._wanted, tuple(numbers)))
        return not self.next_unmarked()

    def unmark(self) -> bool:
        """Take the last mark back, and look at its hunk; false where there is none."""
        if not self._order:
            return False
        change_id, numbers = self._order.pop()
        marks = self._marks.get(change_id, {})
        for number in numbers:
            marks.pop(number, None)
        if not marks:
            self._marks.pop(change_id, None)
        if change_id != self._wanted:
            self.choose(change_id)
        elif self.item is not None:
            all_numbers = [one.number for one in self.item.hunks]
            self.hunk = all_numbers.index(numbers[0])
        return True

    def split(self) -> ReviewMessage:
        """Split the proposal into runs of changed lines, or join them; marks of it are dropped."""
        if self._wanted is None or self.item is None:
            return ReviewMessage("Nothing is shown.")
        if not self.item.divisible:
            return ReviewMessage("It goes back, and is decided about as a whole.")
        self._drop(self._wanted)
        self._fine ^= {self._wanted}
        self.item = None
        return ReviewMessage(
            "Every run of changed lines is a hunk now." if self.fine else "Joined again."
        )

    def _drop(self, change_id: ChangeId) -> None:
        self._marks.pop(change_id, None)
        self._order = [one for one in self._order if one[0] != change_id]

    # -- deciding -------------------------------------------------------------------------

    def carry_out(self) -> ReviewMessage:
        """Do what is marked in the proposal that is looked at; hunks without a mark wait on."""
        item, marks = self.item, self.marks
        if item is None or not marks:
            return ReviewMessage("Nothing is marked.")
        accept = {number for number, verdict in marks.items() if verdict}
        reject = marks.keys() - accept
        reason = self.reasons.get(item.entry.id, "")
        try:
            result = self.review.decide(item, accept, reject, reason)
        except FilepactError as error:
            self._drop(item.entry.id)
            return _failed(error)
        self._forget(result)
        return said(result, len(reject))

    def _forget(self, result: ReviewResult) -> None:
        """Drop what was kept of a proposal that was decided about, and look at what took its place."""
        self._drop(result.id)
        reason = self.reasons.pop(result.id, "")
        if result.waits is None:
            return
        if result.id in self._fine:
            self._fine.add(result.waits)
        if result.moved:
            if reason:
                self.reasons[result.waits] = reason
            self._wanted, self.item, self.hunk = result.waits, None, 0

    def renew(self) -> ReviewMessage | None:
        """Have a proposal whose files others have changed shown as it fits them; None if none did."""
        item = self.item
        if item is None or not item.entry.moved:
            return None
        try:
            result = self.review.renew(item.entry.id)
        except FilepactError as error:
            return _failed(error)
        if not result.moved:
            return None
        self._forget(result)
        return said(result, 0)

    def group(self, scope: Scope) -> tuple[str, tuple[ReviewEntry, ...]]:
        """Return the name of a scope, and the proposals that are decided about together with the current one."""
        current = self.current
        if current is None:
            return "nothing", ()
        session = current.proposal.session
        if scope == "all":
            return "all that waits", self.entries
        name = who(session.actor)
        some = [one for one in self.entries if one.proposal.session.id == session.id]
        if scope == "session":
            return f"the session of {name}", tuple(some)
        turn = session.turn
        return f"this turn of {name}", tuple(
            one for one in some if one.proposal.session.turn == turn
        )

    def decide_all(self, entries: Sequence[ReviewEntry], *, accept: bool) -> ReviewMessage:
        """Accept or reject several proposals as they were listed; marks of theirs are dropped."""
        ids = [one.id for one in entries]
        reason = "" if self._wanted is None else self.reasons.get(self._wanted, "")
        act = self.review.accept_all if accept else self.review.reject_all
        results = act(ids, reason)
        for one in ids:
            self._drop(one)
        done = sum(one.error is None and not one.moved for one in results)
        text = f"{'Accepted' if accept else 'Rejected'} {count(done, 'proposal')}."
        moved = sum(one.moved for one in results)
        if moved:
            text += f" The files of {moved} have changed: look at them again."
        failed = [one.error for one in results if one.error is not None]
        if failed:
            text += f" {len(failed)} not: {visible(failed[0].message)}"
        return ReviewMessage(text, bad=bool(moved or failed))

    def edit(self, path: WorkspacePath, text: str) -> ReviewMessage:
        """Put another text in the place of the one that is proposed, to be shown again."""
        if self._wanted is None:
            return ReviewMessage("Nothing is shown.")
        old = self._wanted
        try:
            edited = self.review.edit(old, {path: text}, self.reasons.get(old, ""))
        except FilepactError as error:
            return _failed(error)
        self._drop(old)
        self.reasons.pop(old, None)
        self._wanted, self.item, self.hunk = edited, None, 0
        return ReviewMessage(f"Your text waits as {edited}; accept it if it is right.")

    def undo(self) -> ReviewMessage:
        """Take the last mark back, or undo what was done last."""
        if self.unmark():
            return ReviewMessage("The last mark is gone.")
        return self._back(undo=True)

    def redo(self) -> ReviewMessage:
        """Redo what was undone last."""
        return self._back(undo=False)

    def _back(self, *, undo: bool) -> ReviewMessage:
        try:
            result = self.review.undo() if undo else self.review.redo()
        except FilepactError as error:
            return _failed(error)
        return ReviewMessage(f"{'Undone' if undo else 'Done again'}: {result.id}.")


def said(result: ReviewResult, rejected: int) -> ReviewMessage:
    """Return a decision's result in one line."""
    if result.moved:
        return ReviewMessage(
            f"Nothing done: files have changed. It is {result.waits} now; look at it again.",
            bad=True,
        )
    parts: list[str] = []
    if result.receipt is not None:
        parts.append(f"Done as {result.receipt.operation}")
    if rejected:
        parts.append(f"rejected {count(rejected, 'hunk')}")
    if result.waits is not None:
        parts.append(f"the rest waits as {result.waits}")
    text = "; ".join(parts) or "Nothing done"
    return ReviewMessage(f"{text[0].upper()}{text[1:]}.")


def _failed(error: FilepactError) -> ReviewMessage:
    return ReviewMessage(visible(error.message.partition("\n")[0]), bad=True)
