"""Pending proposals: each session's view of its own, and the notices about decisions on them.

For the session that proposed it, what waits is what its files hold: it can go on with them.  For
everybody else the files are what they are.
"""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import suppress
from functools import partial
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Final

from filepact.domain.document import Document, WorkspacePath
from filepact.domain.operation import Approval, ChangeId, ProposalLimits, decider_of
from filepact.errors import NoChangeError, NotFoundError, ProposalExpiredError, StaleFileError
from filepact.values import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from filepact.domain.change import ChangeSet, FileChange
    from filepact.domain.document import Revision, RootId
    from filepact.domain.operation import Proposal, Session
    from filepact.errors import FilepactError
    from filepact.text.codec import NamedEncoding
    from filepact.workspace.journal import JournalStore
    from filepact.workspace.read_tracker import KnownText, KnownTextCache


__all__ = [
    "DraftChanges",
    "PendingProposals",
    "ProposalFile",
    "ProposalFiles",
    "SessionEvent",
    "SessionEvents",
    "SessionLimit",
    "check_free",
]

_MOST = 200
_STEP: Final = 0.2
_TAKEN_BACK = "taken back by its author"
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class DraftChanges:
    """The result of a draft.

    Attributes:
        step: The changes of this call.
        extends: The session's own proposals that wait and that this call goes on with, oldest first.
        changes: The changes of this call combined with the proposals that it extends.
        contents: The bytes of every revision that the changes name, by content id.
    """

    step: ChangeSet
    extends: tuple[Proposal, ...]
    changes: ChangeSet
    contents: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class ProposalFile:
    """One file of a session's proposal; for that session it takes the place of the file on the disk."""

    proposal: Proposal
    change: FileChange

    @property
    def path(self) -> WorkspacePath:
        return self.change.path

    @property
    def sides(self) -> tuple[Revision | None, Revision | None]:
        """The states before and after; None for nothing."""
        return self.change.before, self.change.after


class ProposalFiles:
    """The files that one session proposes, loaded for the time of one call.

    Args:
        load: The session's proposals that wait, oldest first.
        content: The bytes of a revision by content id.
        given: What is said about a file's encoding outside the file.
    """

    def __init__(
        self,
        load: Callable[[], tuple[Proposal, ...]],
        content: Callable[[str], bytes],
        given: Callable[[WorkspacePath], NamedEncoding | None],
    ) -> None:
        self._load = load
        self._content = content
        self._given = given
        self._layers: dict[WorkspacePath, ProposalFile] | None = None

    @property
    def waits(self) -> bool:
        """Whether anything is proposed."""
        return bool(self._all())

    def of(self, path: WorkspacePath) -> ProposalFile | None:
        """The proposal's layer for a file."""
        return self._all().get(path)

    def below(self, root: RootId, folder: str) -> tuple[ProposalFile, ...]:
        """The layers for a path or for files beneath it, in path order."""
        return tuple(
            layer
            for path, layer in sorted(self._all().items(), key=lambda item: item[0].path)
            if path.root == root
            and (folder in (".", path.path) or path.path.startswith(f"{folder}/"))
        )

    def look_again(self) -> None:
        """Forget what was loaded: proposals may have been decided or added."""
        self._layers = None

    def after(self, layer: ProposalFile) -> Document | None:
        """The file after the proposal; None where it is removed."""
        return self._document(layer.path, layer.change.after)

    def before(self, layer: ProposalFile) -> Document | None:
        """The file before the proposal; None where there was none."""
        return self._document(layer.path, layer.change.before)

    def contents(self, proposals: Iterable[Proposal]) -> dict[str, bytes]:
        """The bytes of every revision that some proposals name, by content id.

        Raises:
            StaleFileError: Somebody has decided about one.
        """
        try:
            return {
                side.content: self._content(side.content)
                for proposal in proposals
                for change in proposal.changes.changes
                for side in (change.before, change.after)
                if side is not None
            }
        except NotFoundError as error:
            raise _decided(error) from error

    def _all(self) -> Mapping[WorkspacePath, ProposalFile]:
        if self._layers is None:
            self._layers = {
                change.path: ProposalFile(proposal, change)
                for proposal in self._load()
                for change in proposal.changes.changes
            }
        return self._layers

    def _document(self, path: WorkspacePath, revision: Revision | None) -> Document | None:
        if revision is None:
            return None
        try:
            data = self._content(revision.content)
        except NotFoundError as error:
            raise _decided(error) from error
        return Document(path, data, revision, self._given(path))


@dataclass(frozen=True, slots=True)
class _Covered:
    """The known text of a file from before the session's first proposal for it.

    Attributes:
        known: None for nothing.
        by: The newest proposal that changes it.
        after: What that makes of it.
    """

    known: KnownText | None
    by: ChangeId
    after: Revision | None


class PendingProposals:
    """Keeps the pending proposals of sessions, and the notices about their decisions.

    The journal is asked, for a person decides in another process.

    Args:
        store: The journal.
        seen: What sessions know; after a rejection they know what they knew before.
        given: What is said about a file's encoding outside the file.
        hides: Whether an agent may not see what a file holds.
        limits: How much may wait, and for how long.
    """

    def __init__(
        self,
        store: JournalStore,
        seen: KnownTextCache,
        given: Callable[[WorkspacePath], NamedEncoding | None],
        hides: Callable[[WorkspacePath, str], bool] = lambda _path, _agent: False,
        limits: ProposalLimits = ProposalLimits(),  # noqa: B008 - frozen
    ) -> None:
        self._store = store
        self._seen = seen
        self._given = given
        self._hides = hides
        self._limits = limits
        self._open: dict[str, list[ChangeId]] = {}
        self._looked: set[Session] = set()
        self._covered: dict[tuple[Session, WorkspacePath], _Covered] = {}
        self._lock = Lock()

    def of(self, session: Session) -> ProposalFiles:
        """List a session's pending proposals."""
        return ProposalFiles(partial(self._waiting, session), self._store.content, self._given)

    def propose(
        self,
        proposal: Proposal,
        contents: Mapping[str, bytes],
        grows: Iterable[Proposal] = (),
        knows: Mapping[WorkspacePath, KnownText] | None = None,
    ) -> None:
        """Store a proposal for a person, and record its text as known to the session.

        Args:
            proposal: What is proposed.
            contents: The bytes of every revision that it names.
            grows: What the session had proposed before, and goes on with.
            knows: What the session knows of the files that it wrote for it.

        Raises:
            StaleFileError: Somebody has decided about one of these.
            PendingFullError: As much waits as may.
        """
        session, gone = proposal.session, [one.id for one in grows]
        proposal = replace(proposal, created=self._store.now())
        try:
            self._store.propose(proposal, contents, supersedes=gone, limits=self._limits)
        except (NoChangeError, ProposalExpiredError) as error:
            raise _decided(error) from error
        with self._lock:
            waiting = [one for one in self._open.get(session.id, ()) if one not in gone]
            self._open[session.id] = [*waiting, proposal.id][-_MOST:]
            for change in proposal.changes.changes:
                key = (session, change.path)
                covered = self._covered.get(key)
                known = self._seen.last(*key) if covered is None else covered.known
                self._covered[key] = _Covered(known, proposal.id, change.after)
        for change in proposal.changes.changes:
            if change.after is None:
                self._seen.forget(session, change.path)
        self._seen.record_write(session, knows or {})

    def replace(self, proposal: Proposal, contents: Mapping[str, bytes], old: ChangeId) -> None:
        """Replace a proposal that does not fit the files any more by another that waits.

        Its session, which may be of another process, is told by `events`.

        Raises:
            NoChangeError: Somebody has decided about the old one, or it was replaced before.
        """
        self._store.propose(proposal, contents, supersedes=[old])

    def expire(self) -> None:
        """Expire the proposals that have waited for too long."""
        self._store.expire(self._store.now() - self._limits.days * _DAY)

    def withdraw(self, proposals: Iterable[Proposal]) -> None:
        """Withdraw proposals for the session that made them, without a notice to it.

        Raises:
            StaleFileError: Somebody has decided about one.
        """
        for one in proposals:
            session = one.session
            try:
                self._store.reject([one.id], Approval(one.session.actor, _TAKEN_BACK))
            except (NoChangeError, ProposalExpiredError) as error:
                raise _decided(error) from error
            with self._lock:
                waiting = self._open.get(session.id, ())
                self._open[session.id] = [id_ for id_ in waiting if id_ != one.id]
            self._uncover(session)

    def events(self, session: str) -> tuple[SessionEvent, ...]:
        """One sentence for each proposal that was answered, until it is acknowledged."""
        with self._lock:
            waiting = tuple(self._open.get(session, ()))
        if not waiting:
            return ()
        later = self._later(waiting)
        if later:
            with self._lock:
                known = self._open.setdefault(session, [])
                known += [one for one in later if one not in known]
        answers = {one: self._answer(one) for one in dict.fromkeys((*waiting, *later))}
        if later:
            with self._lock:
                # What a person has left of one waits under an id that is found by its session alone.
                self._looked = {one for one in self._looked if one.id != session}
        settled = {one for one, answer in answers.items() if answer == ""}
        if settled:
            self._forget(session, settled)
        return tuple(SessionEvent(one, answer) for one, answer in answers.items() if answer)

    def acknowledge(self, session: str, news: Iterable[SessionEvent]) -> None:
        """Remove notices that the session has received."""
        self._forget(session, {one.key for one in news})

    def acknowledge_answer(self, session: str, change_id: ChangeId) -> None:
        """Remove the notice about a proposal, or its replacement, since the session is told in another way."""
        with suppress(NotFoundError):
            told = {change_id, self.newest(change_id)}
            self.acknowledge(session, [one for one in self.events(session) if one.key in told])

    def _later(self, waiting: Iterable[ChangeId]) -> tuple[ChangeId, ...]:
        """List the proposals that have superseded some others."""
        later: list[ChangeId] = []
        for one in waiting:
            with suppress(NotFoundError):
                newest = self.newest(one)
                if newest != one:
                    later.append(newest)
        return tuple(later)

    def _forget(self, session: str, proposals: AbstractSet[str]) -> None:
        with self._lock:
            if session in self._open:
                self._open[session] = [one for one in self._open[session] if one not in proposals]

    def _waiting(self, session: Session) -> tuple[Proposal, ...]:
        if self.has_none(session):
            return ()
        with self._lock:
            looked = session in self._looked
        found = self._store.proposals(session=session)
        if not looked:
            # Of an earlier process of the same conversation: it hears of these as well.
            with self._lock:
                self._looked.add(session)
                known = self._open.get(session.id, [])
                more = [one.id for one in found if one.id not in known]
                self._open[session.id] = [*more, *known][-_MOST:]
        self._uncover(session, frozenset(one.id for one in found))
        return found

    def has_none(self, session: Session) -> bool:
        """Whether nothing of a session waits, as far as is known here without asking the journal."""
        with self._lock:
            if session not in self._looked or self._open.get(session.id):
                return False
            covered = self._covered
            return not covered or not any(owner.id == session.id for owner, _ in covered)

    def _uncover(self, session: Session, waiting: AbstractSet[str] = frozenset()) -> None:
        """Where a person has said no, a session knows again what it knew of the file before.

        Args:
            session: The session.
            waiting: Proposals that are known to wait.
        """
        with self._lock:
            mine = [
                (key, one)
                for key, one in self._covered.items()
                if key[0].id == session.id and one.by not in waiting
            ]
            states = {by: self._state(by) for by in {one.by for _, one in mine}}
            for key, covered in mine:
                by, state = states[covered.by]
                if state == "proposed":
                    self._covered[key] = replace(covered, by=by)
                    continue
                del self._covered[key]
                now = self._seen.last(*key)
                if state != "rejected" or (now and now.revision) != covered.after:
                    continue
                if covered.known is None:
                    self._seen.forget(*key)
                else:
                    self._seen.record_undo(*key, covered.known)

    def _state(self, change_id: ChangeId) -> tuple[ChangeId, str]:
        """The newest version of a proposal and its state; ``proposed`` while it is being done."""
        try:
            proposal = self._store.proposal(self.newest(change_id))
            if proposal.state == "committed" and self._is_open(proposal):
                return proposal.id, "proposed"
        except NotFoundError:
            return change_id, "rejected"
        return proposal.id, "rejected" if proposal.state == "expired" else proposal.state

    def newest(self, change_id: ChangeId) -> ChangeId:
        """The newest version of a proposal: mostly itself."""
        by: str = change_id
        while by:
            change_id = ChangeId(by)
            by = self._store.proposal(change_id).superseded_by
        return change_id

    def _is_open(self, proposal: Proposal) -> bool:
        """Whether the outcome of an approved operation is not known yet."""
        return self._store.operation(proposal.id).state == "intended"

    def _answer(self, change_id: ChangeId) -> str | None:
        """The notice about a proposal's decision; empty for none, None while it is undecided."""
        try:
            proposal = self._store.proposal(change_id)
            if proposal.state == "proposed":
                return None
            if proposal.state == "superseded" and proposal.reason:
                return f"Proposal {change_id}: {proposal.reason}"
            if proposal.state == "superseded":
                newest, state = self._state(change_id)
                if state == "proposed":
                    return f"Proposal {change_id} waits as {newest} now, with what changed since."
                return ""
            return self._decision(proposal)
        except NotFoundError:
            return f"Proposal {change_id} is gone from the journal."

    def _decision(self, proposal: Proposal) -> str | None:
        if proposal.state == "expired":
            return f"Proposal {proposal.id} has expired: nobody decided about it in time."
        if proposal.state == "rejected":
            reason = f": {proposal.reason}" if proposal.reason else "."
            who = decider_of(proposal.decided_by)
            return f"Proposal {proposal.id} was rejected by {who}{reason}"
        operation = self._store.operation(proposal.id)
        if operation.state == "intended":
            return None
        agent = operation.session.agent
        hidden = any(self._hides(path, agent) for path in operation.changes.paths)
        note = f" {operation.note}" if operation.note and not hidden else ""
        done = "applied" if operation.state == "applied" else "not done, or only in part"
        by = decider_of(operation.approved_by)
        return f"Proposal {proposal.id} was approved by {by} and {done}.{note}"


def check_free(
    proposed: ProposalFiles, paths: Iterable[WorkspacePath], show: Callable[[WorkspacePath], str]
) -> None:
    """Refuse to go back with files of which a change by the same session waits already.

    Raises:
        NoChangeError: One does.
    """
    for path in paths:
        layer = proposed.of(path)
        if layer is not None:
            raise NoChangeError(
                f"{show(path)}: a change of yours waits for a person, {layer.proposal.id}",
                hint="Take that back first, or wait for the answer.",
                proposal=layer.proposal.id,
            )


def _decided(error: FilepactError) -> StaleFileError:
    """The refusal of a change that builds on what somebody decided about just now."""
    return StaleFileError(
        f"the change that this one builds on no longer waits: {error.message}",
        hint="Read the file again and make the change for what it holds now.",
    )


_MOST_NEWS: Final = 20


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """A notice for a session.

    Attributes:
        key: Identifies it when it is acknowledged; two with the same key are one.
        text: One sentence, or several lines that belong together.
    """

    key: str
    text: str


class SessionEvents:
    """Keeps the notices of sessions until they are acknowledged; of very many only the last ones."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[SessionEvent]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def add(self, session: str, text: str) -> None:
        """Add a notice for a session."""
        with self._lock:
            news = SessionEvent(f"{id(self)}-{next(self._numbers)}", text)
            self._waiting[session] = [*self._waiting.get(session, []), news][-_MOST_NEWS:]

    def of(self, session: str) -> tuple[SessionEvent, ...]:
        """The notices for a session; each stays until it is acknowledged."""
        with self._lock:
            return tuple(self._waiting.get(session, ()))

    def acknowledge(self, session: str, news: Iterable[SessionEvent]) -> None:
        """Remove notices that an answer has told."""
        about = {one.key for one in news}
        with self._lock:
            rest = [one for one in self._waiting.pop(session, ()) if one.key not in about]
            if rest:
                self._waiting[session] = rest


class SessionLimit:
    """Bounds how many sessions wait for a person at the same time; further ones do not wait."""

    def __init__(self, most: int = 2) -> None:
        self._room = BoundedSemaphore(most)

    def wait(self, seconds: float, over: Callable[[], bool], cancelled: Callable[[], bool]) -> None:
        """Wait until something is over, nobody wants to know any more, or the time has passed."""
        if not self._room.acquire(blocking=False):
            return
        try:
            until = time.monotonic() + seconds
            while not over() and not cancelled():
                left = until - time.monotonic()
                if left <= 0:
                    return
                time.sleep(min(_STEP, left))
        finally:
            self._room.release()
