"""The permission log: what agents asked for and read, and what they were refused, in the roots."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from filepact.domain.permission_log import (
    LoggedFile,
    PermissionRecord,
    name_files,
    of_proposal,
    shorten,
)
from filepact.errors import FilepactError
from filepact.text.secrets import redact
from filepact.values import begun, dataclass, late_logger, late_regex

if TYPE_CHECKING:
    from collections.abc import Iterable

    from filepact.domain.document import Document, RootId, WorkspacePath
    from filepact.domain.operation import Session
    from filepact.domain.policy import Action
    from filepact.workspace.audit import AuditLog
    from filepact.workspace.guard import Guard
    from filepact.workspace.journal import JournalStore

__all__ = ["PermissionLog"]

_log = late_logger(__name__)

_TOGETHER: Final = 2.0  # seconds in which what is read goes into one row
_AGAIN: Final = 600.0  # seconds after which the same is written down again
_REMEMBERED: Final = 10_000
_ROW: Final = 50  # files of one row
_CALLED: Final = late_regex(  # a secret by what is said of it
    r"(?i)((?<![a-z])(?:pass|pwd|secret|token|(?:api)?key|pin)\w*[\"']?(?:\s*[:=]+|\s+ist?\b)\s*"
    r"|(?<![a-z])(?:bearer|token|key)\s+(?=\S*\d)(?=\S{12})|://[^/\s:@]*:(?=[^/\s]*@)|\s-u\s*\w+:)(?!\[)[^\s@]+"
)
_DOING: Final[dict[str, Action]] = {"read": "read"}


_Key = tuple[str, str, str, str]
"""The key of an entry that is recorded once: session, tool, path and rule."""


@dataclass(frozen=True, slots=True)
class _Access:
    """An access to a file that an agent made or wanted to make.

    Attributes:
        rule: The rule that refused it; empty where it was done.
    """

    session: Session
    tool: str
    path: str
    rule: str = ""


class PermissionLog:
    """The record of questions, reports, readings and refusals.  For all threads.

    Readings and refusals are written behind, each once for a file in a turn: nobody waits for it.

    Args:
        guard: The roots.
        store: The journal.
        audit: The audit log, which has each of them, at once; None for none.
    """

    def __init__(self, guard: Guard, store: JournalStore, audit: AuditLog | None = None) -> None:
        self._guard = guard
        self._store = store
        self._audit = audit
        self._changed = threading.Condition()
        self._noted: OrderedDict[_Key, float] = OrderedDict()
        self._unwritten: list[tuple[_Access, float]] = []
        self._closing = False
        self._writer: threading.Thread | None = None

    # -- written down ---------------------------------------------------------------------

    def note(self, question: PermissionRecord) -> None:
        """Keep a question with its answer, or a report."""
        self._store.note(question)

    def read(self, session: Session, path: str, held: Document | None = None) -> None:
        """A session was shown a file, or lines of it or of what lies in a folder; absolute."""
        if self._audit is not None:
            self._audit.read(session, path, held)
        if session.agent:
            self._add(session, "read", path)

    def refused(self, session: Session, tool: str, error: FilepactError) -> None:
        """The rules have refused something to a session.

        Args:
            session: Whose it was.
            tool: ``read``, or the tool that was to change a file.
            error: What it was told: with the path as it was named, and the rule if it was one.
        """
        if self._audit is not None:
            self._audit.refused(session, tool, error)
        if session.agent:
            path, rule = error.details.get("path"), error.details.get("rule", "roots")
            self._add(session, tool, str(path or "."), str(rule))

    def turn(self, session: Session, words: str = "") -> None:
        """A session's turn begins: what it does again is written down again; that it began, at once.

        Args:
            session: Whose, with the turn.
            words: What the person asked for; its beginning is kept, and no secret in it.
        """
        with self._changed:
            for key in [one for one in self._noted if one[0] == session.id]:
                del self._noted[key]
        asked = redact(" ".join(words[:4_096].split()))
        begin = PermissionRecord(
            time.time(),
            session,
            self._guard.roots[0].path,
            session.turn,
            "run",
            (),
            "told",
            by=shorten(_CALLED.sub(r"\1[not shown]", asked), 120),
            how="turn",
        )
        try:
            self._store.note(begin)
        except FilepactError as error:
            _log.warning("that a turn began was not written down: %s", error.message)

    def close(self) -> None:
        """Write what is left."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            writer = self._writer
        if writer is not None:
            writer.join()
        self.flush()

    def _add(self, session: Session, tool: str, path: str, rule: str = "") -> None:
        now, key = time.time(), (session.id, tool, path, rule)
        # Asked without the lock first: most of what is read was read before.
        if now - self._noted.get(key, 0.0) < _AGAIN:
            return
        deed = _Access(session, tool, path, rule)
        with self._changed:
            if now - self._noted.get(key, 0.0) < _AGAIN:
                return
            self._noted[key] = now
            self._noted.move_to_end(key)
            if len(self._noted) > _REMEMBERED:
                self._noted.popitem(last=False)
            self._unwritten.append((deed, now))
            if self._writer is None and not self._closing:
                writer = threading.Thread(target=self._run, name="asked", daemon=True)
                if begun(writer):
                    self._writer = writer
                else:
                    self.flush()
            elif len(self._unwritten) == 1:
                self._changed.notify_all()

    def _run(self) -> None:
        while not self._closing:
            with self._changed:
                self._changed.wait_for(lambda: self._unwritten or self._closing)
                self._changed.wait_for(lambda: self._closing, _TOGETHER)
            self.flush()

    def flush(self) -> None:
        """Write what waits, at once."""
        with self._changed:
            waiting, self._unwritten = self._unwritten, []
        try:
            for question in self._questions(waiting):
                self._store.note(question)
        except FilepactError as error:
            _log.warning("what agents read was not written down: %s", error.message)

    def _questions(self, deeds: Iterable[tuple[_Access, float]]) -> Iterable[PermissionRecord]:
        """Rows for readings, many files in one, and for refusals."""
        rows: dict[tuple[object, ...], list[tuple[_Access, float]]] = {}
        for deed, when in deeds:
            row = rows.setdefault(
                (deed.session, deed.tool, deed.rule, len(rows) * bool(deed.rule)), []
            )
            row.append((deed, when))
        folder = self._guard.roots[0].path
        for row in rows.values():
            for start in range(0, len(row), _ROW):
                part = row[start : start + _ROW]
                (first, when), rule = part[0], part[0][0].rule
                files, more = name_files((LoggedFile(one.path) for one, _ in part), (folder,))
                yield PermissionRecord(
                    when=when,
                    session=first.session,
                    root=folder,
                    title="" if not rule else shorten(first.tool),
                    action=_DOING.get(first.tool, "write"),
                    files=files,
                    verdict="refused" if rule else "allowed",
                    by=f"rule {shorten(rule)}" if rule else "rules",
                    how="" if rule else "read",
                    more=more,
                )

    # -- looked up ------------------------------------------------------------------------

    def requests(self) -> dict[str, str]:
        """The person's request of each turn, its first words, by the turn's name, as far as it was told."""
        return {
            one.title: one.by
            for root in self._guard.roots
            for one in self._store.questions(root=root.path, limit=None, kind="turns")
            if one.by and one.title
        }

    def turn_of(self, session: str) -> str:
        """The name of the turn that a session began last, by the id of the session; empty if none was told."""
        root = self._guard.roots[0].path
        found = self._store.questions(root=root, session=session, limit=1, kind="turns")
        return found[0].title if found else ""

    def questions(
        self,
        *,
        path: str | None = None,
        session: str | None = None,
        limit: int | None = 50,
        reads: bool = False,
    ) -> tuple[PermissionRecord, ...]:
        """The sessions that work in this workspace's roots, newest first.

        That is what agents asked, what filepact itself asked a person for, and what was refused.

        Args:
            path: Only what names this file, or a file beneath this folder.
            session: Only those of the session with this id.
            limit: At most so many; None for all.
            reads: What agents read, and nothing else.

        Raises:
            PathBlockedError: The path leads outside.
        """
        named: WorkspacePath | None = None
        if path is not None:
            named = self._guard.find(path, "list").path
        most = limit if named is None else None
        found = [
            question
            for root in self._guard.roots
            for question in self._of(root.path, session=session, limit=most, reads=reads)
            if named is None
            or question.concerns(named.path if named.root == question.root else named.absolute)
        ]
        found.sort(key=lambda question: -question.when)
        return tuple(found[:limit])

    def _of(
        self, root: RootId, *, session: str | None, limit: int | None, reads: bool
    ) -> Iterable[PermissionRecord]:
        yield from self._store.questions(
            root=root, session=session, limit=limit, kind="reads" if reads else "asked"
        )
        if reads:
            return
        for state in ("proposed", "committed", "rejected", "expired"):
            for proposal in self._store.proposals(root=root, state=state, limit=limit):
                # One that changes files of several roots is told of once.
                first = next(one for one in proposal.changes.paths if self._holds(one.root))
                if first.root == root and session in (None, proposal.session.id):
                    yield of_proposal(proposal, root)

    def _holds(self, root: RootId) -> bool:
        return any(one.path == root for one in self._guard.roots)
