"""Proposals, operations and checkpoints: who asked for what, what was decided, and what was done.

A proposal and the operation that it becomes carry the same id: what was shown is what is done.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Literal, NewType

from filepact.errors import NoChangeError, ProposalExpiredError
from filepact.text.confusables import visible
from filepact.values import dataclass, field

if TYPE_CHECKING:
    from filepact.domain.change import ChangeSet
    from filepact.domain.document import RootId

__all__ = [
    "BY_EDITOR",
    "BY_NOBODY",
    "BY_SEVERAL",
    "CHECKED",
    "CHECKED_PARTLY",
    "FROM_ELSEWHERE",
    "IN_PLACE",
    "NOBODY",
    "NOBODY_LOOKED",
    "PARTLY",
    "PAST_THE_DOORS",
    "PREVIEW_MODE",
    "SEEN",
    "UNASKED",
    "UNCHECKED",
    "UNOBSERVED",
    "WAYS",
    "Actor",
    "Approval",
    "AuditOptions",
    "ChangeId",
    "Checkpoint",
    "ContentProblem",
    "JournalCheckResult",
    "JournalEvent",
    "JournalStatistics",
    "Operation",
    "OperationKind",
    "OperationState",
    "Proposal",
    "ProposalLimits",
    "ProposalState",
    "PruneResult",
    "SalvageResult",
    "Session",
    "StoreOptions",
    "decider_of",
    "following",
    "moment",
    "who",
]

ChangeId = NewType("ChangeId", str)
"""Names a proposal and the operation it becomes: ``c`` and ten characters of base 32."""

BY_EDITOR: Final = "editor"
"""The tool of an operation that an editor did by itself: a person's own typing, mostly."""

PAST_THE_DOORS: Final = "outside"
"""The tool of an operation that was seen on the disk afterwards: nobody asked for it here."""

UNOBSERVED: Final = "unobserved"
"""The tool of an operation that was found on the disk by a guard that had just been started."""

BY_NOBODY: Final = "unknown"
"""The tool of an operation that was seen on the disk while no agent was at work: a person's, mostly."""

WAYS: Final = {
    PAST_THE_DOORS: "without filepact",
    BY_NOBODY: "outside of any call",
    UNOBSERVED: "while nothing looked",
}
"""How an operation of such a tool is said to have been done."""

BY_SEVERAL: Final = "several agents"
"""The tool of an operation that was seen on the disk while several agents worked, any of which may have done it."""

UNASKED: Final = "no approval is known of"
"""Begins the note of such an operation, if rules let nobody change some of the files without a person's word."""

SEEN: Final = "seen on the disk"
"""In the note of what others did, and was found by a look."""

IN_PLACE: Final = "the file was written in place"
"""Begins the note of it: who takes that back writes in place as well, else a name gets a file of its own."""

NOBODY: Final = "nobody"
"""The session of an operation `BY_NOBODY`; one that was seen while an agent worked has the agent's session after it."""

FROM_ELSEWHERE: Final = "workspace"
"""The tool of an operation that brought what others made of a shared workspace."""

PARTLY: Final = "*"
"""Follows, in the target of an undo, the id of an operation of which some files were left."""

CHECKED: Final = "checked for new errors"
CHECKED_PARTLY: Final = "checked for new errors in part"
UNCHECKED: Final = "not checked for new errors"
"""What stands behind the rules of a proposal where new errors are not allowed; the last is a rule."""
_SAID: Final = ("", CHECKED, CHECKED_PARTLY)
PREVIEW_MODE: Final = "preview mode"
"""Stands for a rule where every change waits."""

NOBODY_LOOKED: Final = "program, unattended"
"""How a word came that a program gave, and no person."""

OperationKind = Literal["change", "undo", "redo", "restore"]
ProposalState = Literal["proposed", "committed", "rejected", "superseded", "expired"]
"""``superseded``: a later one stands in its place, which holds what its author added since, or what
others did to the files.  ``expired``: nobody has decided in time."""
OperationState = Literal["intended", "applied", "rolled_back", "interrupted"]
"""``intended``: in the journal, effect not confirmed.  ``rolled_back``: nothing of it is on disk.
``interrupted``: a crash or a foreign write left it in part; ``note`` says what is where."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: an agent program, a person, or a program of the person's.

    Attributes:
        version: Of an agent's program; of others how their word came, as ``at a terminal, from bash``.
        user: For whom an agent works, where somebody has vouched for that; empty for the one person
            whose journal it is.
    """

    kind: Literal["agent", "person", "program"]
    name: str
    version: str = ""
    user: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


def who(actor: Actor) -> str:
    """An actor in one line that begins with what it is, so that no name can pass for another.

    Of a person or a program of theirs not how the word came; `filepact show` has that.
    """
    name = str(actor) if actor.kind == "agent" else actor.name
    if actor.user:
        name += f" for {actor.user}"
    return f"{actor.kind} {' '.join(visible(name).split())}"


def decider_of(by: str) -> Literal["a person", "a program"]:
    """Who gave a word, as it is kept with what was approved or rejected."""
    # The second form is that of versions before 0.2.
    alone = f" {NOBODY_LOOKED}" in by or " without a terminal" in by
    return "a program" if alone else "a person"


def moment(when: float) -> str:
    """Seconds since the epoch in local time with its distance from UTC, as ISO 8601 has it."""
    local = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(when))
    return f"{local[:-2]}:{local[-2:]}"


@dataclass(frozen=True, slots=True)
class Session:
    """One agent's connection, or one run of a command.

    Attributes:
        conversation: What lasts when a connection ends and another goes on with it: the host's
            name for it; empty where the host has none, so that the program stands for it; None
            where nothing lasts.
        turn: What the person asked for just now, by a name that no other turn has, in whatever
            session; empty where the host does not say where turns begin.
        call: The agent's call of a tool that is carried out just now, by the host's name for it;
            empty where the host does not tell.
        change: The id of the change that is made just now; empty for a new one.  What is asked for
            twice under one id is done once.
        request: What the change is made for, by an id that is the same at every machine that is asked for it;
            empty for nothing.
        shared: Whether several processes may act for it at once, so that what it knows of files is looked
            up each time.
    """

    id: str
    actor: Actor
    conversation: str | None = None
    turn: str = field(default="", compare=False)
    call: str = field(default="", compare=False)
    change: str = field(default="", compare=False)
    request: str = field(default="", compare=False)
    shared: bool = field(default=False, compare=False)

    @property
    def agent(self) -> str:
        """The name that rules know the agent by; empty for a person."""
        return self.actor.name if self.actor.kind == "agent" else ""


def following(change: str) -> str:
    """The id of the next try to make a change, where the journal knows this one as taken back."""
    from hashlib import sha256  # noqa: PLC0415 - a server answers before it needs it

    digits = "0123456789abcdefghjkmnpqrstvwxyz"
    return "c" + "".join(digits[byte % 32] for byte in sha256(change.encode()).digest()[:10])


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's answer to a proposal."""

    actor: Actor
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change set with its author and its verdict, not yet done.

    Attributes:
        kind: What the operation will be; an undo can be previewed as well.
        target: For undo and redo the operation that is taken back; for restore the checkpoint.
        rule: The rule that decided, for people.
        created: Seconds since the epoch.
        superseded_by: The proposal that took its place.
        decided_by: Who approved or rejected it.
    """

    id: ChangeId
    session: Session
    tool: str
    summary: str
    changes: ChangeSet
    created: float
    kind: OperationKind = "change"
    target: str = ""
    state: ProposalState = "proposed"
    rule: str = ""
    reason: str = ""
    superseded_by: str = ""
    decided_by: str = field(default="", compare=False)

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that want a person's word."""
        return tuple(one for one in self.rule.split(", ") if one not in _SAID)

    @staticmethod
    def asked_by(rules: list[str], judged: str) -> str:
        """The rules of a change, with what servers said to it behind them; empty if nobody is asked."""
        names = dict.fromkeys(one for some in rules for one in some.split(", "))
        asking = [one for one in names if one not in (*_SAID, UNCHECKED)]
        return ", ".join(filter(None, [*asking, judged])) if asking else ""

    @property
    def unjudged(self) -> tuple[str, ...]:
        """The same, of other texts than those that servers were shown."""
        was = {*self.rule.split(", ")} & {CHECKED, CHECKED_PARTLY, UNCHECKED}
        return (*(one for one in self.rules if one != UNCHECKED), *((UNCHECKED,) if was else ()))

    @property
    def kept(self) -> ChangeSet:
        """Its changes, without what the files were to hold where nobody needs that any more."""
        divided = self.state == "superseded" and self.decided_by
        if divided or self.state in ("proposed", "committed"):
            return self.changes
        return self.changes.unread

    def check_waits(self) -> None:
        """Refuse to decide about a proposal that does not wait any more.

        Raises:
            NoChangeError: Somebody has decided about it, or another stands in its place.
            ProposalExpiredError: Nobody did in time.
        """
        if self.superseded_by:
            raise NoChangeError(
                f"{self.id} no longer waits: {self.superseded_by} replaces it, with what has "
                "changed since",
                hint=f"Look at it: `filepact diff {self.superseded_by}`.",
                superseded_by=self.superseded_by,
            )
        if self.state == "expired":
            raise ProposalExpiredError(
                f"{self.id} has expired: nobody decided about it in time",
                hint="Nothing was changed. Propose it again if it is still wanted.",
            )
        if self.state != "proposed":
            hint = "`filepact log` shows what was done."
            raise NoChangeError(f"{self.id} was already {self.state}", hint=hint)


@dataclass(frozen=True, slots=True)
class Operation:
    """A committed change set, as the journal has it.

    Attributes:
        seq: Its place in the journal; later operations have higher numbers, across all roots.
        target: For undo the operations that were taken back, for redo the undo, for restore the
            checkpoint, or the operation before which the files were so.
        undone_by: The undo in force that takes this back, if any.
        directories: Folders that were made for it, as root-relative paths with their root.
        created: When it was begun, seconds since the epoch.
        approved_by: Who approved the proposal that it was.
        note: What a person should know: a merge, an interruption.
        lines: How many it added and removed; None where that was not counted when it was done.
        confirmed: Whether the disk and the journal confirmed that it lasts; only of what was done
            just now.
        logged: The number of the audit log's record of it; only of what is begun just now.
    """

    id: ChangeId
    seq: int
    kind: OperationKind
    session: Session
    tool: str
    summary: str
    changes: ChangeSet
    created: float
    target: str = ""
    undone_by: ChangeId | None = None
    state: OperationState = "applied"
    directories: tuple[tuple[RootId, str], ...] = ()
    approved_by: str = ""
    note: str = field(default="", compare=False)
    lines: tuple[int, int] | None = field(default=None, compare=False)
    confirmed: bool = field(default=True, compare=False)
    logged: int | None = field(default=None, compare=False)

    @property
    def kept(self) -> ChangeSet:
        """Its changes; of a proposal this may be less."""
        return self.changes

    @property
    def was_done(self) -> bool:
        """Whether the operation is on the disk, or was, whole or in part."""
        return self.state in ("applied", "interrupted")

    @property
    def was_unasked(self) -> bool:
        """Whether the operation changed, past the doors, files about which a person was to be asked."""
        return self.note.startswith(UNASKED)

    @property
    def is_anybodys(self) -> bool:
        """Whether the operation was seen on the disk, and nothing tells whether an agent or a person did it."""
        seen = self.tool == PAST_THE_DOORS or self.tool.startswith("git ")
        return seen and self.session.actor.kind == "program"

    @property
    def taken_back(self) -> dict[ChangeId, bool]:
        """The operations that an undo took back, newest first, each with whether all of it."""
        named = self.target.split() if self.kind == "undo" else []
        return {ChangeId(one.rstrip(PARTLY)): not one.endswith(PARTLY) for one in named}


@dataclass(frozen=True, slots=True)
class ProposalLimits:
    """Limits of what may wait for a person.

    Attributes:
        days: After so many a proposal expires.
        count: Proposals of one session that may wait.
        megabytes: What those in one root may give files to hold, in all.
    """

    days: int = 14
    count: int = 100
    megabytes: int = 100


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """The settings of the audit log.

    Attributes:
        enabled: Whether there is one.
        sync: Whether an intention is on the disk before its effect; else a power cut, but no crash, can
            take the last records.
        days: Files of the log that were last written so long ago are given up.
        megabytes: The oldest are given up when all take more.
        heads: Where signed heads are kept as well: the absolute path of a file, ``git:`` and that of a repository, or
            the words of a command; empty for nowhere.
        syslog: The socket of a system's log that is told them as well, absolute; empty for none.
        telemetry: Where spans and counts go: ``provider`` for what the process has set up, or a file,
            absolute; empty for nowhere.
    """

    enabled: bool = True
    sync: bool = False
    days: int = 365
    megabytes: int = 1_000
    heads: str | tuple[str, ...] = ""
    syslog: str = ""
    telemetry: str = ""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Where the journal is kept when it is not in the state folder.

    Attributes:
        url: The address of a database, without a password.
        workspace: The name of the journal in it; empty for that of the state folder.
        schema: The schema with its tables.
    """

    url: str
    workspace: str = ""
    schema: str = "filepact"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A named place in one root's journal: everything up to ``seq`` belongs to it."""

    name: str
    root: RootId
    seq: int
    created: float


@dataclass(frozen=True, slots=True)
class JournalEvent:
    """An event of an operation or a proposal.

    Attributes:
        version: The place of its transaction among those of the journal.
        what: What it is and its state now: ``operation applied``.
        change_id: Its id.
    """

    version: int
    what: str
    change_id: ChangeId


# -- figures of the journal ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JournalStatistics:
    """Figures of a journal, over all roots.

    Attributes:
        operations: Operations in the journal, whatever became of them.
        proposals: Proposals that wait for a person.
        contents: Different contents that can be brought back.
        bytes_on_disk: Bytes that the journal takes, with the contents kept beside it.
        oldest: When the oldest operation was begun from which on everything can be taken back,
            seconds since the epoch; None when there is none.
    """

    operations: int
    proposals: int
    contents: int
    bytes_on_disk: int
    oldest: float | None


@dataclass(frozen=True, slots=True)
class PruneResult:
    """The result of pruning the journal.

    Attributes:
        contents: Contents that were given up.
        bytes_freed: Bytes by which the stored contents became smaller.
        bytes_kept: Bytes of the stored contents that are left.
        oldest: As in `JournalStatistics`.
    """

    contents: int
    bytes_freed: int
    bytes_kept: int
    oldest: float | None


@dataclass(frozen=True, slots=True)
class ContentProblem:
    """A file of an operation or proposal of which the journal lost a content.

    Attributes:
        id: The operation, or the proposal that waits.
        summary: What it is.
        path: The file, absolute.
        content: The content that is damaged.
    """

    id: str
    summary: str
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class JournalCheckResult:
    """The result of a check of the journal.

    Attributes:
        problems: What is wrong with it, a sentence each.
        contents: How many contents it keeps.
        damaged: Those that cannot be read, by their ids.
        unusable: What cannot be taken back or done because of that.
        strays: Files beside it of which it does not tell, as an interrupted clean-up leaves them.
        unfinished: Operations that were begun and neither done nor taken back.
    """

    problems: tuple[str, ...] = ()
    contents: int = 0
    damaged: tuple[str, ...] = ()
    unusable: tuple[ContentProblem, ...] = ()
    strays: tuple[str, ...] = ()
    unfinished: int = 0

    @property
    def sound(self) -> bool:
        """Whether everything in it can be read."""
        return not self.problems and not self.damaged


@dataclass(frozen=True, slots=True)
class SalvageResult:
    """The result of salvaging a damaged journal.

    Attributes:
        damaged_folder: The folder in which the damaged one lies.
        operations: How many operations could be read.
        contents: How many contents.
        lost: What could not, a sentence each.
    """

    damaged_folder: str
    operations: int
    contents: int
    lost: tuple[str, ...]
