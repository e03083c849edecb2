"""The review: what waits for a person, and what they do about it, for every window that shows it.

A window shows what stands under an id and under a hunk's number, and hands both back.  An id stands
for exactly one change for good, so a decision is about the bytes that were shown: where the files have
moved, nothing is done, and what fits them now is shown again, under an id of its own.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from functools import partial
from threading import Event, Lock
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.operation import PREVIEW_MODE, Approval, ChangeId, who
from filepact.domain.permission_log import shorten
from filepact.errors import FilepactError, InvalidParamsError, NoChangeError, ProposalChangedError
from filepact.text.confusables import visible
from filepact.values import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from filepact.domain.document import WorkspacePath
    from filepact.domain.operation import Proposal, Session
    from filepact.workspace.approval import ChangedFile
    from filepact.workspace.hunks import ProposalHunk
    from filepact.workspace.receipt import Receipt
    from filepact.workspace.workspace import Workspace

__all__ = [
    "ChangeKind",
    "ProposalStatus",
    "Review",
    "ReviewEntry",
    "ReviewFile",
    "ReviewGroup",
    "ReviewItem",
    "ReviewResult",
    "ReviewRule",
    "author_of",
    "fenced",
    "in_groups",
]

ChangeKind = Literal["create", "modify", "delete", "rename"]

ProposalStatus = Literal["fresh", "moved", "stale"]
"""``fresh``: its files are what it was made from.  ``moved``: others have changed them, elsewhere, and
what fits them now has to be shown.  ``stale``: the same lines were changed, so it finds no place."""

_POLL: Final = 0.5
_SHARE: Final = 20
"""Looking takes one in so many parts of the time at most."""
_KEPT: Final = 8
_AUTHOR: Final = 80
_EXPIRY: Final = 60.0


@dataclass(frozen=True, slots=True)
class ReviewEntry:
    """A proposal that waits.

    Attributes:
        moved: Its files that others have changed since.
        kind: What becomes of its files; ``modify`` also where that differs.
        lines: How many it adds and removes; None where its diff cannot be made.
    """

    proposal: Proposal
    moved: tuple[ChangedFile, ...] = ()
    kind: ChangeKind = field(default="modify", compare=False)
    lines: tuple[int, int] | None = field(default=None, compare=False)

    @property
    def id(self) -> ChangeId:
        return self.proposal.id

    @property
    def asked(self) -> bool:
        """Whether a rule asks about these files, and not only the mode about every change."""
        return self.proposal.rules != (PREVIEW_MODE,)

    @property
    def letter(self) -> str:
        """The letter that Git has for the change of these files."""
        return {"create": "A", "modify": "M", "delete": "D", "rename": "R"}[self.kind]

    @property
    def status(self) -> ProposalStatus:
        if not self.moved:
            return "fresh"
        return "moved" if all(one.fits for one in self.moved) else "stale"


@dataclass(frozen=True, slots=True)
class ReviewGroup:
    """The proposals of one agent in one turn of one session."""

    session: Session
    turn: str
    entries: tuple[ReviewEntry, ...]


@dataclass(frozen=True, slots=True)
class ReviewRule:
    """Why a proposal waits.

    Attributes:
        name: The rule's.
        why: What it is there for; empty where that is not known any more.
        place: Where it stands, such as ``filepact.toml:12``.
    """

    name: str
    why: str
    place: str


@dataclass(frozen=True, slots=True)
class ReviewFile:
    """One file of a proposal.

    Attributes:
        shown: Its name as people see it; a window has yet to write out what is hidden in it.
        hunks: By their numbers; a file that is decided about as a whole is one.
        moved: What others have made of it since; None for nothing.
    """

    path: WorkspacePath
    shown: str
    hunks: tuple[ProposalHunk, ...]
    moved: ChangedFile | None = None


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A proposal with all that a person has to see of it.

    Attributes:
        fine: Whether each run of changed lines is a hunk: what the numbers count.
        divisible: Whether hunks can be decided about one by one.
        since: The diff of what others had changed when this took the place of what was shown before.
    """

    entry: ReviewEntry
    files: tuple[ReviewFile, ...]
    rules: tuple[ReviewRule, ...]
    fine: bool = False
    divisible: bool = True
    since: str = ""

    @property
    def hunks(self) -> tuple[ProposalHunk, ...]:
        """The hunks of all files."""
        return tuple(hunk for file in self.files for hunk in file.hunks)


@dataclass(frozen=True, slots=True)
class ReviewResult:
    """The result of a decision.

    Attributes:
        id: What was decided about.
        receipt: What was done; None for nothing.
        waits: What waits under another id: what is left, or what has to be looked at again.
        moved: Whether nothing was done because the files have moved.
        diff: That of what waits then, as far as who hears the result may see it.
        since: The diff of what others have changed in them.
        error: Why nothing was done.
    """

    id: ChangeId
    receipt: Receipt | None = None
    waits: ChangeId | None = None
    moved: bool = False
    diff: str = ""
    since: str = ""
    error: FilepactError | None = None


def author_of(proposal: Proposal) -> str:
    """The name of who has proposed, which is of its own choice, on one line of bounded length."""
    return visible(shorten(who(proposal.session.actor), _AUTHOR))


def fenced(shown: str) -> str:
    """A diff as a block of Markdown, which nothing in it can end."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", shown)), default=0))
    return f"{fence}diff\n{shown}\n{fence}"


def in_groups(entries: Sequence[ReviewEntry]) -> tuple[ReviewGroup, ...]:
    """Waiting proposals by agent, session and turn, in the order of the oldest of each; what a rule asks about comes first in it."""
    agents: dict[str, dict[tuple[str, str], list[ReviewEntry]]] = {}
    for one in entries:
        session = one.proposal.session
        turns = agents.setdefault(str(session.actor), {})
        turns.setdefault((session.id, session.turn), []).append(one)
    return tuple(
        ReviewGroup(
            some[0].proposal.session, turn, tuple(sorted(some, key=lambda one: not one.asked))
        )
        for turns in agents.values()
        for (_, turn), some in turns.items()
    )


class Review:
    """The review of a workspace by one person; for all threads.

    Args:
        workspace: Whose proposals.
        session: The person who decides.
        diagnose: What servers find in a proposal, as lines for people; None where none are asked.
        approve: Does what is accepted; None for the workspace.
        to_agent: Whether the results go to the agent that proposed, as for `Workspace.approve`.
    """

    def __init__(
        self,
        workspace: Workspace,
        session: Session,
        diagnose: Callable[[Proposal], str] | None = None,
        *,
        approve: Callable[[ChangeId, Approval], Receipt] | None = None,
        to_agent: bool = False,
    ) -> None:
        self.workspace = workspace
        self.session = session
        self._diagnose = diagnose
        self._to_agent = to_agent
        self._approve = approve or partial(workspace.approve, to_agent=to_agent)
        self._lock = Lock()
        self._version: object = None
        self._asked = 0.0
        self._waiting: tuple[Proposal, ...] = ()
        self._since: dict[ChangeId, str] = {}
        self._parts: OrderedDict[tuple[ChangeId, bool], tuple[ProposalHunk, ...]] = OrderedDict()
        self._counted: dict[ChangeId, tuple[ChangeKind, tuple[int, int] | None]] = {}
        self._done: list[ChangeId] = []
        self._undone: list[ChangeId] = []

    # -- looking --------------------------------------------------------------------------

    def waiting(self) -> tuple[ReviewEntry, ...]:
        """The waiting proposals, oldest first, each with the present state of its files."""
        found = [self._entry(one) for one in self._proposals()]
        return tuple(one for one in found if one is not None)

    def wait(
        self, seen: Sequence[ReviewEntry], seconds: float, ended: Event | None = None
    ) -> tuple[ReviewEntry, ...]:
        """Wait until the list of proposals is another than the one seen, or the time is over.

        New proposals, decided ones, and files that others change: all are told.

        Args:
            seen: What `waiting` said.
            seconds: How long to wait.
            ended: Ends it when it is set.
        """
        ended = ended or Event()
        until = time.monotonic() + seconds
        while True:
            began, found = time.monotonic(), self.waiting()
            now = time.monotonic()
            if found != tuple(seen) or now >= until:
                return found
            if ended.wait(min(max(_POLL, _SHARE * (now - began)), until - now)):
                return found

    def item(self, change_id: str, *, fine: bool = False) -> ReviewItem:
        """All of one proposal that waits.

        Args:
            change_id: Its id, or the beginning of it.
            fine: Whether each run of changed lines is a hunk, also where several are shown together.

        Raises:
            NoChangeError: It does not wait any more.
            ProposalExpiredError: Nobody has decided about it in time.
        """
        proposal = self.workspace.proposal(change_id)
        proposal.check_waits()
        moved = {one.path: one for one in self.workspace.approving.moved_files(proposal)}
        files: dict[WorkspacePath, list[ProposalHunk]] = {}
        for hunk in self._hunks(proposal, fine):
            files.setdefault(hunk.path, []).append(hunk)
        origins = {hunk.path: hunk.origin for some in files.values() for hunk in some}
        return ReviewItem(
            ReviewEntry(proposal, tuple(moved.values()), *self._count(proposal)),
            tuple(
                ReviewFile(
                    path,
                    self.workspace.show(path),
                    tuple(hunks),
                    moved.get(path) or _of(moved, origins[path]),
                )
                for path, hunks in files.items()
            ),
            tuple(self._rules(proposal)),
            fine=fine,
            divisible=proposal.kind == "change",
            since=self._since.get(proposal.id, ""),
        )

    def shows_author_all(self, item: ReviewItem) -> bool:
        """Whether the author may see all of it, so that its program may be handed what a person is shown."""
        return self.workspace.approving.shows_author_all(item.entry.proposal)

    def diagnostics(self, change_id: str) -> str:
        """The findings of language servers in a proposal, as lines for people; empty where none are asked.

        It may take as long as servers may.
        """
        if self._diagnose is None:
            return ""
        return self._diagnose(self.workspace.proposal(change_id))

    def proposed_text(self, change_id: str, path: WorkspacePath) -> str | None:
        """The proposed text of a file, for a person to edit; None where it is no text, or is removed."""
        texts = self.workspace.texts(self.workspace.proposal(change_id))
        return next((one.after for one in texts if one.path == path), None)

    def text_before(self, change_id: str, path: WorkspacePath) -> str | None:
        """The text of a file before, for the lines that no hunk shows; None where it is no text, or was none."""
        texts = self.workspace.texts(self.workspace.proposal(change_id))
        return next((one.before for one in texts if one.path == path), None)

    def _entry(self, proposal: Proposal) -> ReviewEntry | None:
        """A proposal as its files are now; None where somebody has decided about it just now."""
        try:
            moved = self.workspace.approving.moved_files(proposal)
            entry = ReviewEntry(proposal, moved, *self._count(proposal))
        except FilepactError:
            if self._waits(proposal):
                raise
            return None
        # What a decided one was to hold may be given up, which looks like a file that has moved.
        return entry if not entry.moved or self._waits(proposal) else None

    def _waits(self, proposal: Proposal) -> bool:
        return self.workspace.proposal(proposal.id).state == "proposed"

    def _proposals(self) -> tuple[Proposal, ...]:
        version, now = self.workspace.approving.version(), time.monotonic()
        with self._lock:
            if version == self._version and now - self._asked < _EXPIRY:
                return self._waiting
        found = self.workspace.pending()
        with self._lock:
            self._version, self._asked, self._waiting = version, now, found
            known = self._counted.keys() & {one.id for one in found}
            self._counted = {id_: self._counted[id_] for id_ in known}
        return found

    def _count(self, proposal: Proposal) -> tuple[ChangeKind, tuple[int, int] | None]:
        """The kind of change of a proposal's files, and its added and removed lines; counted once for each id."""
        if (known := self._counted.get(proposal.id)) is not None:
            return known
        try:
            hunks = self._hunks(proposal, fine=False)
        except FilepactError:  # what it was to hold was given up
            return "modify", None
        kinds = {one.kind for one in hunks}
        kind = kinds.pop() if len(kinds) == 1 else "modify"
        found = kind, (sum(one.added for one in hunks), sum(one.removed for one in hunks))
        self._counted[proposal.id] = found
        return found

    def _hunks(self, proposal: Proposal, fine: bool) -> tuple[ProposalHunk, ...]:
        key = (proposal.id, fine)
        with self._lock:
            known = self._parts.get(key)
            if known is not None:
                self._parts.move_to_end(key)
                return known
        found = self.workspace.approving.parts(proposal, fine=fine)
        with self._lock:
            self._parts[key] = found
            while len(self._parts) > _KEPT:
                self._parts.popitem(last=False)
        return found

    def _rules(self, proposal: Proposal) -> Iterator[ReviewRule]:
        policy = self.workspace.guard.policy
        known = {rule.name: rule for rule in (*policy.fallbacks, *policy.rules)}
        for name in proposal.rules:
            rule = known.get(name)
            yield ReviewRule(name, rule.why if rule else "", rule.place if rule else "")

    # -- deciding -------------------------------------------------------------------------

    def decide(
        self,
        item: ReviewItem,
        accept: Collection[int],
        reject: Collection[int] = (),
        reason: str = "",
        by: Approval | None = None,
    ) -> ReviewResult:
        """Decide about hunks of a proposal as they were shown: what is in neither waits on.

        Args:
            item: What was shown.
            accept: The numbers of those that are to be done.
            reject: Of those that are refused.
            reason: Why, for the agent.
            by: What was approved in advance, where that decides; None for the person, now.

        Raises:
            InvalidParamsError: There are no such hunks, or only all of it can be decided about.
            NoChangeError: Somebody else has decided.
            StaleFileError: The same lines were changed since; it waits as before.
        """
        proposal, approving = item.entry.proposal, self.workspace.approving
        word = by or Approval(self.session.actor, reason)
        every = {one.number for one in item.hunks}
        if not item.divisible and every not in ({*accept}, {*reject}):
            raise InvalidParamsError(
                f"{proposal.id} takes a change back, so it is done as a whole or not at all",
                hint="Approve or reject all of it.",
            )
        if not accept and {*reject} == every:
            self.workspace.reject(proposal.id, word)
            return ReviewResult(proposal.id)
        try:
            if accept:
                # Before it is divided: what has to be looked at again stays one.
                approving.check_unmoved(proposal.id, to_agent=self._to_agent)
            if not item.divisible:
                return self._did(proposal, self._approve(proposal.id, word))
            receipt, waits = approving.decide(
                proposal.id,
                word,
                accept=accept,
                reject=reject,
                fine=item.fine,
                approve=self._approve,
            )
        except ProposalChangedError as changed:
            return self._changed(proposal.id, changed)
        return self._did(proposal, receipt, waits)

    def renew(self, change_id: ChangeId) -> ReviewResult:
        """Have a proposal whose files have moved wait as it fits them now, to be shown again.

        Raises:
            NoChangeError: Somebody else has decided.
            StaleFileError: The same lines were changed since; it waits as before.
        """
        try:
            self.workspace.approving.check_unmoved(change_id)
        except ProposalChangedError as changed:
            return self._changed(change_id, changed)
        return ReviewResult(change_id)

    def accept_all(self, shown: Sequence[ChangeId], reason: str = "") -> tuple[ReviewResult, ...]:
        """Accept several proposals, one after the other; what cannot be done is left, and told."""
        return tuple(self._whole(one, reason, accept=True) for one in shown)

    def reject_all(self, shown: Sequence[ChangeId], reason: str = "") -> tuple[ReviewResult, ...]:
        """Reject several proposals; what does not wait any more is told."""
        return tuple(self._whole(one, reason, accept=False) for one in shown)

    def _whole(self, change_id: ChangeId, reason: str, *, accept: bool) -> ReviewResult:
        try:
            item = self.item(change_id)
            every = [one.number for one in item.hunks]
            return self.decide(item, every if accept else (), () if accept else every, reason)
        except FilepactError as error:
            return ReviewResult(change_id, error=error)

    def edit(
        self, change_id: str, texts: Mapping[WorkspacePath, str], reason: str = ""
    ) -> ChangeId:
        """Put other texts in the place of some that are proposed; that waits, under its own id.

        What was proposed is kept under its id, and the agent is told.

        Raises:
            InvalidParamsError: It changes no such file, or nothing would change.
        """
        word = Approval(self.session.actor, reason)
        return self.workspace.approving.edit(change_id, texts, word).id

    def _did(
        self, proposal: Proposal, receipt: Receipt | None, waits: ChangeId | None = None
    ) -> ReviewResult:
        if receipt is not None and receipt.operation:
            self._done.append(ChangeId(receipt.operation))
            self._undone.clear()
        return ReviewResult(proposal.id, receipt, waits)

    def _changed(self, change_id: ChangeId, changed: ProposalChangedError) -> ReviewResult:
        now = ChangeId(str(changed.details["proposal"]))
        diff, since = str(changed.details["diff"]), str(changed.details["since"])
        with self._lock:
            self._since[now] = since
        return ReviewResult(change_id, waits=now, moved=True, diff=diff, since=since)

    # -- going back -----------------------------------------------------------------------

    @property
    def last_done(self) -> ChangeId | None:
        """The operation that `undo` takes back: the last one of this review that is in force."""
        return self._done[-1] if self._done else None

    def undo(self) -> ReviewResult:
        """Take back what was done last in this review.

        Raises:
            NoChangeError: Nothing of it is in force.
        """
        if not self._done:
            raise NoChangeError("this review has done nothing to take back")
        last = self._done[-1]
        receipt = self.workspace.undo(self.session, last)
        self._undone.append(self._done.pop())
        return ReviewResult(last, receipt)

    def redo(self) -> ReviewResult:
        """Bring back what was undone last in this review.

        Raises:
            NoChangeError: Nothing was.
        """
        if not self._undone:
            raise NoChangeError("this review has undone nothing to bring back")
        last = self._undone[-1]
        receipt = self.workspace.redo(self.session, last)
        self._done.append(self._undone.pop())
        return ReviewResult(last, receipt)


def _of(
    moved: Mapping[WorkspacePath, ChangedFile], path: WorkspacePath | None
) -> ChangedFile | None:
    return None if path is None else moved.get(path)
