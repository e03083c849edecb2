"""The audit log: every call, reading, refusal, proposal, decision and effect, recorded so that it can be checked.

The journal is for undoing and can be pruned; this is the account.  What is to be done is written down before its effect,
whatever changes the files.  What they hold is never in it.
"""

from __future__ import annotations

import os
import time
from collections import deque
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from threading import Lock, Thread, local
from typing import TYPE_CHECKING, Any, Final, cast

from filepact.domain.document import content_id
from filepact.errors import FilepactError, NotFoundError, StateFailedError
from filepact.text.secrets import redact
from filepact.values import begun, late_logger, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from filepact.domain.change import ChangeSet, FileChange
    from filepact.domain.document import Document, Revision
    from filepact.domain.operation import (
        Approval,
        AuditOptions,
        ChangeId,
        Operation,
        OperationState,
        Proposal,
        ProposalLimits,
        Session,
    )
    from filepact.domain.permission_log import PermissionRecord, SessionApproval
    from filepact.domain.policy import Policy
    from filepact.fs.audit_file import AuditFile
    from filepact.fs.audit_pipes import AuditPipes
    from filepact.workspace.journal import JournalStore
    from filepact.workspace.telemetry import Telemetry

    _Record = tuple[str, Mapping[str, object], float]
    """The event, what is told of it, and when it was."""

__all__ = ["AuditLog", "audit_log", "audited"]

_log = late_logger(__name__)

_DAY: Final = 86_400.0
_MEBIBYTE: Final = 1 << 20
_LARGEST: Final = 32 * _MEBIBYTE
_SIGNED: Final = 1_000  # records after which a head is signed
_MOST_HELD: Final = 200  # records of what a call has read and done that wait for its next
_FEW: Final = 50  # records for which none is signed when a process ends
_FILES: Final = 500  # files of one record
_LONGEST: Final = 1_000  # characters of a name that somebody sent
_ORIGIN: Final = "filepact-audit"


class AuditLog:
    """Records what happens in one process.  For all threads.

    Args:
        folder: Where it is, or is made with the first record.
        options: What is to be kept.
        about: What this process tells of itself with its first record.
        outside: What keeps signed heads elsewhere as well; closed with the log.
        telemetry: Makes spans and counts of what it is told; closed with the log.
    """

    def __init__(
        self,
        folder: str,
        options: AuditOptions,
        about: Callable[[], Mapping[str, object]],
        outside: AuditPipes | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.telemetry = telemetry
        self._folder = folder
        self._options = options
        self._about = about
        self._outside = outside
        self._lock = Lock()
        self._here = local()
        self._gathers = False
        self._gathered: deque[_Record] = deque()
        self._writing = Lock()
        self._told: tuple[Session, Mapping[str, object]] | None = None
        self._started = False
        self._lost = 0
        self._since = 0
        self._signer: Thread | None = None
        self._warned = False

    @cached_property
    def file(self) -> AuditFile:
        """The files of the log."""
        from filepact.fs.audit_file import AuditFile  # noqa: PLC0415 - a server starts without

        return AuditFile(self._folder, _LARGEST)

    # -- what is told ---------------------------------------------------------------------

    def record(self, event: str, facts: Mapping[str, object], *, needed: bool = False) -> int:
        """Write down what happens.

        Args:
            event: One word.
            facts: What is told of it.
            needed: Whether it may not happen otherwise.

        Returns:
            The number of its record; 0 where it could not be written.

        Raises:
            StateFailedError: It cannot be written, and is needed.
        """
        held = getattr(self._here, "held", None) or ()
        records = [*held, (event, facts, time.time())]
        if held:
            held.clear()
        return self._write(records, needed=needed)

    def gather(self) -> Callable[[], None]:
        """From now on calls are written down together, before anybody is shown what came of them.

        Returns:
            What writes them down: to be called before an answer is sent.
        """
        self._gathers = True
        return cast("Callable[[], None]", self._write)

    def _write(self, added: Sequence[_Record] = (), *, needed: bool = False) -> int:
        """Write down what was gathered, and more; also waits until others have done so.  The number of the last."""
        with self._writing:
            # Others may add to it, and nobody else takes from it.
            records = [self._gathered.popleft() for _ in range(len(self._gathered))]
            records += added
            if not records:
                return 0
            try:
                if self._lost:
                    event, facts, when = records[0]
                    records[0] = (event, {**facts, "lost": self._lost}, when)
                lines = records
                if not self._started:
                    start = {"pid": os.getpid(), **self._about()}
                    lines = [("start", start, time.time()), *records]
                line = self._line_of
                seq = self.file.append(
                    self._mend,
                    *[partial(line, event=one, facts=about, when=at) for one, about, at in lines],
                )
                self._started = True
                self._since += len(lines)
                if seq % _SIGNED < len(lines):
                    self._sign_later()
                if self.telemetry is not None:
                    for one in records:
                        self.telemetry.record(*one)
                if "lost" in records[0][1]:
                    self._lost = 0
                if needed and self._options.sync:
                    self.file.sync()
            except StateFailedError as error:
                if needed:
                    self._lost += len(records) - 1
                    error.details["outcome"] = "not_applied"
                    raise
                self._lost += len(records)
                _log.warning("not in the audit log: %s", error.message)
                return 0
            return seq

    def note(self, event: str, facts: Mapping[str, object]) -> None:
        """Write down what has happened: in a call that holds, with its next record, for which nothing else waits."""
        waiting = getattr(self._here, "held", None)
        if waiting is None or len(waiting) >= _MOST_HELD:
            self.record(event, facts)
        else:
            waiting.append((event, facts, time.time()))

    def hold(self) -> None:
        """Record what this thread notes with its next record: nobody is shown anything before the call is over."""
        if getattr(self._here, "held", None) is None:
            self._here.held = []

    def _session(self, session: Session) -> Mapping[str, object]:
        """The facts about a session; those of the last session are kept."""
        known = self._told
        if known is None or known[0] is not session:
            known = self._told = session, _session(session)
        return known[1]

    @contextmanager
    def call(self, session: Session, tool: str, asked: str = "") -> Iterator[None]:
        """A call of a session, recorded when it is over, whatever came of it.

        Args:
            session: Whose.
            tool: What is called.
            asked: The path that it names.
        """
        begun, code = time.perf_counter(), "INTERNAL_ERROR"
        self.hold()
        try:
            yield
            code = "OK"
        except FilepactError as error:
            code = error.code
            raise
        finally:
            self.called(session, tool, asked, code, time.perf_counter() - begun)

    def called(self, session: Session, tool: str, asked: str, code: str, seconds: float) -> None:
        """A call is over.

        Args:
            session: Whose it was.
            tool: What was called.
            asked: The path that it named, as it was sent; empty for none.
            code: The error's code, or ``OK``.
            seconds: How long it took.
        """
        facts: dict[str, object] = {"session": self._session(session), "tool": tool, "code": code}
        if asked:
            facts["asked"] = _name(asked)
        facts["ms"] = round(seconds * 1_000, 2)
        if self._gathers:
            held = getattr(self._here, "held", None) or ()
            self._gathered.extend([*held, ("call", facts, time.time())])
        else:
            self.record("call", facts)
        self._here.held = None

    def read(self, session: Session, path: str, held: Document | None = None) -> None:
        """A session was shown a file, or part of it, or lines of what lies in a folder; absolute."""
        facts: dict[str, object] = {"session": self._session(session), "path": _name(path)}
        if held is not None:
            facts["sha256"], facts["size"] = held.revision.content, len(held.data)
        self.note("read", facts)

    def refused(self, session: Session, tool: str, error: FilepactError) -> None:
        """The rules have refused something."""
        asked, rule = error.details.get("path"), error.details.get("rule", "roots")
        facts = {"session": _session(session), "tool": tool, "code": error.code}
        self.record("refused", {**facts, "asked": _name(str(asked or ".")), "rule": str(rule)})

    # -- heads ----------------------------------------------------------------------------

    def sign(self) -> str:
        """Sign the present end of the log, which becomes a record itself.

        Returns:
            The signed head, as it may be kept elsewhere.

        Raises:
            NotFoundError: The package that signs is not installed.
            StateFailedError: The key or the log cannot be used.
        """
        from filepact.domain.audit import head_text, line_of  # noqa: PLC0415 - as above
        from filepact.text.signed_note import can_sign, new_key, sign, verifier  # noqa: PLC0415 - it takes a while

        if not can_sign():
            raise NotFoundError(
                "the package that signs the audit log is not installed: cryptography",
                hint="Install filepact's extra `sign`.",
            )
        key = self.file.key(new_key)
        public = verifier(_ORIGIN, key)
        signed: list[tuple[int, str]] = []

        def make(seq: int, before: str) -> bytes:
            note = sign(_ORIGIN, key, head_text(_ORIGIN, seq - 1, before))
            signed.append((seq - 1, note))
            return line_of(seq, before, "head", {"key": public, "note": note}, time.time())

        self.file.append(self._mend, make)
        self.file.sync()
        with self._lock:
            self._since = 0
        seq, note = signed[-1]
        places, failed = ((), "") if self._outside is None else self._outside.keep(note)
        for place in places:
            self.record("kept", {"head": seq, "place": place})
        if failed:
            raise StateFailedError(
                f"a signed head of the audit log was not kept outside ({failed})",
                hint="Correct that place, or [audit] in your settings; then: filepact audit sign",
            )
        return note

    def _try_to_sign(self) -> None:
        """Sign, where that can be done; without the extra the log is a chain of hashes alone.

        What goes wrong is told once, as it mostly stays so, and keeps nobody from anything.
        """
        from filepact.text.signed_note import can_sign  # noqa: PLC0415 - as above

        said = ""
        try:
            if can_sign():
                self.sign()
            elif self._outside is not None and self._outside.heads:
                said = "no signed heads are kept outside: filepact[sign] is not installed"
        except StateFailedError as error:
            said = error.message
        if said and not self._warned:
            self._warned = True
            _log.warning("the audit log: %s", said)

    def close(self) -> None:
        """Sign what is not signed, if it is much, and give up what is too old."""
        if self._signer is not None:
            self._signer.join()
        self._write()
        if self._started:
            if self._since > _FEW:
                self._try_to_sign()
            with suppress(StateFailedError):  # the next one does it
                self._retire()
        # Who only compared the log has its file open as well.
        for one in (vars(self).get("file"), self._outside, self.telemetry):
            if one is not None:
                one.close()

    # -- one record -----------------------------------------------------------------------

    def _mend(self, event: str, facts: Mapping[str, object]) -> Callable[[int, str], bytes]:
        return partial(self._line_of, event=event, facts=facts, when=time.time())

    @cached_property
    def _line_of(self) -> Callable[..., bytes]:
        from filepact.domain.audit import line_of  # noqa: PLC0415 - as above

        return line_of

    def _sign_later(self) -> None:
        """Sign in a thread: the first time it takes a while."""
        if self._signer is None or not self._signer.is_alive():
            self._signer = Thread(target=self._try_to_sign, name="audit", daemon=True)
            begun(self._signer)  # else the next call tries it

    def _retire(self) -> None:
        """Give up the oldest files, where they are too old or too many; the log says so first."""
        from filepact.domain.audit import parse  # noqa: PLC0415 - as above

        files = self.file.files()
        left = sum(one.size for one in files)
        oldest = time.time() - self._options.days * _DAY
        for one, after in pairwise(files):
            if one.modified >= oldest and left <= self._options.megabytes * _MEBIBYTE:
                return
            follower = parse(next(iter(self.file.lines(after.name)), b"")) or {}
            last = str(follower.get("before"))
            self.record(
                "retired", {"first": one.first, "last": after.first - 1, "hash": last}, needed=True
            )
            self.file.remove(one.name)
            left -= one.size


def audit_log(
    options: AuditOptions,
    folder: str,
    policy: Policy,
    user: tuple[int, str, str],
    outside: AuditPipes | None,
    journal: JournalStore,
) -> AuditLog | None:
    """The audit log of a process; None where the settings want none.

    Args:
        options: As the settings have it.
        folder: Where it is.
        policy: The rules in force, of which it tells the hash.
        user: What the system says of who runs this, as `filepact.fs.state.whoami` has it.
        outside: What else is told of it.
        journal: The journal; the newest of its operations is noted with the first record.

    Raises:
        InvalidParamsError: The settings want telemetry, and its packages are not installed.
    """
    if not options.enabled:
        return None

    def about() -> dict[str, object]:
        rules = repr((policy.rules, policy.fallbacks)).encode("utf-8", "backslashreplace")
        facts: dict[str, object] = {"format": 1, "user": user[1] or user[0], "machine": user[2]}
        facts |= {"policy": content_id(rules)[:16], "journal": journal.name}
        with suppress(FilepactError):
            for newest in journal.operations(limit=1):
                facts |= {"newest": newest.id, "place": newest.seq}
        return facts

    telemetry = None
    if outside is not None and outside.telemetry:
        from filepact.workspace.telemetry import telemetry_of  # noqa: PLC0415 - few want it

        telemetry = telemetry_of(outside.telemetry, outside.spans)
    return AuditLog(folder, options, about, outside, telemetry)


def _session(session: Session) -> dict[str, object]:
    actor = session.actor
    name = _name(actor.name)
    facts: dict[str, object] = {"id": _name(session.id), "kind": actor.kind, "name": name}
    if actor.version:
        facts["version"] = _name(actor.version)
    if actor.user:
        facts["user"] = _name(actor.user)
    if session.turn:
        facts["turn"] = _name(session.turn)
    if session.call:
        facts["call"] = _name(session.call)
    return facts


@lru_cache(maxsize=4_096)
def _name(text: str) -> str:
    """A name as it may be written down: not endless, and without what looks like a token."""
    return redact(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


# -- effects ---------------------------------------------------------------------------------------


def audited(store: JournalStore, log: AuditLog) -> JournalStore:
    """A journal of which the audit log tells what is proposed, decided, begun and ended."""
    return cast("JournalStore", _AuditedJournal(store, log))


class _AuditedJournal:
    """A journal that tells the audit log first; all else is the journal's own.

    Whatever changes files has to begin in the journal, so nothing passes this by.
    """

    def __init__(self, store: JournalStore, log: AuditLog) -> None:
        self._store = store
        self._log = log

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        # Kept, so that this is asked once for each.
        setattr(self, name, found)
        return found

    def begin(
        self,
        operation: Operation,
        contents: Mapping[str, bytes],
        meanwhile: Callable[[], None] | None = None,
    ) -> Operation:
        decision = {"approved_by": _name(operation.approved_by)} if operation.approved_by else {}
        number = self._tell("intent", operation, operation.changes, contents, decision)
        operation = replace(operation, logged=number or None)
        try:
            return self._store.begin(operation, contents, meanwhile)
        except FilepactError as error:
            self._log.record(
                "outcome", {"change": operation.id, "state": "not begun", "code": error.code}
            )
            raise

    def adopt(self, operation: Operation, contents: Mapping[str, bytes]) -> Operation:
        number = self._tell("external", operation, operation.changes, contents, {})
        adopted = self._store.adopt(replace(operation, logged=number or None), contents)
        self._ended(adopted.id, "applied")
        return adopted

    def finish(
        self,
        change_id: ChangeId,
        *,
        state: OperationState,
        note: str = "",
        changes: ChangeSet | None = None,
    ) -> None:
        self._store.finish(change_id, state=state, note=note, changes=changes)
        self._ended(change_id, state)

    def _ended(self, change_id: ChangeId, state: OperationState) -> None:
        # Told when the journal has it, and which one: it can be asked for it later.
        facts = {"change": change_id, "state": state, "journal": self._store.name}
        self._log.note("outcome", facts)

    def propose(
        self,
        proposal: Proposal,
        contents: Mapping[str, bytes],
        *,
        supersedes: Sequence[ChangeId] = (),
        limits: ProposalLimits | None = None,
        rest: Proposal | None = None,
        decided: Approval | None = None,
    ) -> None:
        more = {"supersedes": list(supersedes)} if supersedes else {}
        facts: dict[str, object] = {"rule": proposal.rule, **more}
        if decided is not None:
            facts["by"] = _name(str(decided.actor))
        self._tell("proposed", proposal, proposal.changes, contents, facts)
        if rest is not None:
            self._tell("proposed", rest, rest.changes, contents, facts)
        try:
            self._store.propose(
                proposal,
                contents,
                supersedes=supersedes,
                limits=limits,
                rest=rest,
                decided=decided,
            )
        except FilepactError as error:
            self._log.record(
                "outcome", {"change": proposal.id, "state": "not proposed", "code": error.code}
            )
            raise

    def reject(self, change_ids: Sequence[ChangeId], approval: Approval) -> None:
        self._store.reject(change_ids, approval)
        facts = {"verdict": "rejected", "by": _name(str(approval.actor))}
        for change_id in change_ids:
            self._log.record("decided", {"change": change_id, **facts})

    def add_session_approval(self, given: SessionApproval) -> None:
        facts = {"change": given.change, "grant": given.id, "verdict": "approved in advance"}
        about = {"pattern": _name(given.pattern), "rules": list(given.rules), "by": _name(given.by)}
        self._log.record("decided", {**facts, **about, "session": _session(given.session)})
        self._store.add_session_approval(given)

    def revoke_session_approval(self, approval_id: str, when: float) -> None:
        self._store.revoke_session_approval(approval_id, when)
        self._log.record("decided", {"grant": approval_id, "verdict": "revoked"})

    def note(self, question: PermissionRecord) -> None:
        self._store.note(question)
        refused = question.verdict == "refused" and question.by.startswith("rule ")
        if refused or question.how in ("read", "turn"):
            return  # told when it happened; or each call tells its turn
        facts = {
            "session": _session(question.session),
            "action": question.action,
            "verdict": question.verdict,
            "by": _name(question.by),
            "files": [{"root": question.root, "path": _name(one)} for one in question.paths],
        }
        self._log.record("question", facts)

    def _tell(
        self,
        event: str,
        change: Operation | Proposal,
        changes: ChangeSet,
        contents: Mapping[str, bytes],
        more: Mapping[str, object],
    ) -> int:
        """Tell of a change; the number of the last record that does."""
        facts: dict[str, object] = {
            "change": change.id,
            "kind": change.kind,
            "session": _session(change.session),
            "tool": change.tool,
            **({"target": change.target} if change.target else {}),
            **more,
        }
        some, number = changes.changes, 0
        for start in range(0, len(some), _FILES):
            files = [self._change(one, contents) for one in some[start : start + _FILES]]
            part = {"part": start // _FILES + 1} if len(some) > _FILES else {}
            number = self._log.record(event, {**facts, **part, "files": files}, needed=True)
        return number

    def _change(self, change: FileChange, contents: Mapping[str, bytes]) -> dict[str, object]:
        facts: dict[str, object] = {"root": change.path.root, "path": _name(change.path.path)}
        for key, side in (("before", change.before), ("after", change.after)):
            if side is not None:
                facts[key] = _side(side, contents)
        return facts


def _side(side: Revision, contents: Mapping[str, bytes]) -> dict[str, object]:
    facts: dict[str, object] = {"mode": f"{side.mode:o}"}
    if side.is_folder:
        return {"folder": True}
    if side.was_read:
        facts["sha256"] = side.content
    # Others may tell it without unpacking what they hold, or do not.
    size_of = getattr(contents, "size_of", None)
    with suppress(KeyError):
        if size_of is not None:
            facts["size"] = size_of(side.content)
        elif isinstance(contents, dict):
            facts["size"] = len(contents[side.content])
    return facts
