"""Who asked for what, what was decided, and what was done.

A proposal and the operation that it becomes carry the same id: what was shown is what is done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NewType

if TYPE_CHECKING:
    from filepact.domain.change import ChangeSet
    from filepact.domain.document import RootId

__all__ = [
    "BY_EDITOR",
    "PAST_THE_DOORS",
    "Actor",
    "Approval",
    "ChangeId",
    "Checkpoint",
    "Operation",
    "OperationKind",
    "OperationState",
    "Proposal",
    "ProposalState",
    "Session",
]

ChangeId = NewType("ChangeId", str)
"""Names a proposal and the operation it becomes: ``c`` and ten characters of base 32."""

BY_EDITOR: Final = "editor"
"""The tool of an operation that an editor did by itself: a person's own typing, mostly."""

PAST_THE_DOORS: Final = "outside"
"""The tool of an operation that was seen on the disk afterwards: nobody asked for it here."""

OperationKind = Literal["change", "undo", "redo", "restore"]
ProposalState = Literal["proposed", "committed", "rejected", "superseded"]
"""``superseded``: whoever made it went on with the same files, and a later one holds both."""
OperationState = Literal["intended", "applied", "rolled_back", "interrupted"]
"""``intended``: in the journal, effect not confirmed.  ``rolled_back``: nothing of it is on disk.
``interrupted``: a crash or a foreign write left it in part; ``note`` says what is where."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: an agent program, a person, or a program of the person's.

    Attributes:
        version: Of an agent's program; of others how their word came, as ``at a terminal, from bash``.
    """

    kind: Literal["agent", "person", "program"]
    name: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class Session:
    """One agent's connection, or one run of a command.

    Attributes:
        conversation: What lasts when a connection ends and another goes on with it: the host's
            name for it; empty where the host has none, so that the program stands for it; None
            where nothing lasts.
    """

    id: str
    actor: Actor
    conversation: str | None = None

    @property
    def agent(self) -> str:
        """The name that rules know the agent by; empty for a person."""
        return self.actor.name if self.actor.kind == "agent" else ""


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
        decided_by: The name of who approved or rejected it.
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


@dataclass(frozen=True, slots=True)
class Operation:
    """A committed change set, as the journal has it.

    Attributes:
        seq: Its place in the journal; later operations have higher numbers, across all roots.
        target: For undo and redo the operation that was taken back; for restore the checkpoint.
        undone_by: The undo in force that takes this back, if any.
        directories: Folders that were made for it, as root-relative paths with their root.
        created: When it was begun, seconds since the epoch.
        note: What a person should know: a merge, an interruption.
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


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A named place in one root's journal: everything up to ``seq`` belongs to it."""

    name: str
    root: RootId
    seq: int
    created: float
