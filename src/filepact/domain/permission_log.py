"""Questions of agents to a person, and reports of agents about their own work, as records.

Neither is a change: nothing here can be undone.  A question says what was wanted and who said
yes or no; a report says what an agent claims to have done with tools of its own.  An approval for a
session is what a person has allowed an agent in advance, until its session ends.
"""

from __future__ import annotations

from posixpath import normpath
from typing import TYPE_CHECKING, Final, Literal

from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from filepact.domain.document import RootId
    from filepact.domain.operation import Proposal, ProposalState, Session

__all__ = [
    "Deed",
    "LoggedFile",
    "PermissionRecord",
    "RecordKind",
    "SessionApproval",
    "Verdict",
    "name_files",
    "of_proposal",
    "shorten",
]

Deed = Literal["read", "list", "write", "create", "delete", "run"]
"""What is done with files, or with what a command names."""

Verdict = Literal["allowed", "refused", "cancelled", "told", "waits"]
"""``cancelled``: it ended without a yes or a no.  ``told``: nobody was asked."""

RecordKind = Literal["asked", "reads", "turns"]
"""What agents asked, told and were refused; what they read; when a person asked them for something."""

_DECIDED: Final[Mapping[ProposalState, Verdict]] = {
    "proposed": "waits",
    "committed": "allowed",
    "rejected": "refused",
    "superseded": "cancelled",
    "expired": "cancelled",
}

_TITLE: Final = 300
_FILES: Final = 50
_CHARACTERS: Final = 8_192  # of all names together: a row of an agent's making stays small


@dataclass(frozen=True, slots=True)
class SessionApproval:
    """An approval of later changes by one session to some files.

    Attributes:
        id: ``g`` and ten characters of base 32.
        session: Whose changes are approved, and nobody else's.
        root: The root in which the files lie.
        pattern: A glob over their paths in it.
        rules: The rules that the person was shown when they approved; others still ask.
        change: The proposal with which it was given.
        given: When, seconds since the epoch.
        by: Who gave it.
        expires: When it ends at the latest.
        revoked: When a person took it back; None for not.
    """

    id: str
    session: Session
    root: RootId
    pattern: str
    rules: tuple[str, ...]
    change: str
    given: float
    by: str
    expires: float
    revoked: float | None = None

    def in_force(self, now: float) -> bool:
        """Whether the approval counts at a moment."""
        return self.revoked is None and now < self.expires


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file that a question or a report names.

    Attributes:
        path: Relative to the record's root where it lies inside, else absolute.
        added: Lines that the shown diff adds; None where no texts were shown.
        removed: Lines that it removes.
    """

    path: str
    added: int | None = None
    removed: int | None = None


@dataclass(frozen=True, slots=True)
class PermissionRecord:
    """One question, with its answer, one report, one refusal, files that were read, or the begin of a turn.

    Attributes:
        when: When it was asked or told, seconds since the epoch.
        session: Whose it is.
        root: The session's working folder.
        title: As people were shown it, at most 300 characters; of a refusal the tool, of a begin the turn.
        action: What would be done with the files.
        files: At most 50.
        more: How many more were named.
        by: ``rule NAME``; ``person`` for a choice made in the editor; ``editor`` when it answered
            without one; ``nobody`` when the session ended first; empty for a report; ``rules`` for
            files that were read; of a begin what the person asked for, in its first words.
        how: The kind of the option that was chosen; for a report the state of the call; ``read`` for
            files that were read, ``turn`` for the begin of a turn.
        change: The id of the change that filepact itself asked about.
        reason: What was said to it.
    """

    when: float
    session: Session
    root: RootId
    title: str
    action: Deed
    files: tuple[LoggedFile, ...]
    verdict: Verdict
    by: str = ""
    how: str = ""
    more: int = 0
    change: str = ""
    reason: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files' names."""
        return tuple(file.path for file in self.files)

    def concerns(self, path: str) -> bool:
        """Whether the record names this file, or a file beneath this folder, relative to its root."""
        return path in ("", ".") or any(
            name == path or name.startswith(f"{path.rstrip('/')}/") for name in self.paths
        )


def shorten(text: str, most: int = _TITLE) -> str:
    """The beginning of a stranger's text, with an ellipsis where something is left out."""
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"


def name_files(
    files: Iterable[LoggedFile], folders: Sequence[str]
) -> tuple[tuple[LoggedFile, ...], int]:
    """Files as a record names them, and how many more there were.

    Args:
        files: By absolute paths, or relative ones that count from the folder.
        folders: Spellings of the root.
    """
    kept: list[LoggedFile] = []
    seen: set[str] = set()
    room = _CHARACTERS
    for file in files:
        path = _inside(normpath(file.path), folders)
        if path in seen:
            continue
        seen.add(path)
        if len(kept) < _FILES and len(path) <= room:
            room -= len(path)
            kept.append(LoggedFile(path, file.added, file.removed))
    return tuple(kept), len(seen) - len(kept)


def of_proposal(proposal: Proposal, root: RootId) -> PermissionRecord:
    """The question that filepact asked a person about a change.

    Args:
        proposal: The change, in whatever state.
        root: The folder from which its files are named.
    """
    changes = proposal.changes.changes
    files, more = name_files((LoggedFile(one.path.absolute) for one in changes), (root,))
    gone = all(one.after is None for one in changes)
    return PermissionRecord(
        when=proposal.created,
        session=proposal.session,
        root=root,
        title=shorten(f"{proposal.summary} ({proposal.rule})"),
        action="delete" if gone else "write",
        files=files,
        verdict=_DECIDED[proposal.state],
        by=proposal.decided_by,
        more=more,
        change=proposal.id,
        reason=proposal.reason,
    )


def _inside(path: str, folders: Sequence[str]) -> str:
    for folder in folders:
        if path == folder:
            return "."
        above = f"{folder.rstrip('/')}/"
        if path.startswith(above):
            return path[len(above) :]
    return path
