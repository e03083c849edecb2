"""The record of what agents ask and tell: written into the journal by a thread for which nobody waits."""

from __future__ import annotations

import logging
import posixpath
import threading
import time
from collections import OrderedDict
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from filepact.domain.operation import Actor, Session
from filepact.domain.permission_log import LoggedFile, PermissionRecord, name_files, shorten
from filepact.errors import FilepactError
from filepact.text.compare import compare_lines
from filepact.text.lines import split_lines
from filepact.text.patch_parse import parse
from filepact.values import dataclass, replace
from filepact_acp.agents import ENDED
from filepact_acp.permissions import call_of
from filepact_wire.uris import path_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from filepact.domain.permission_log import Verdict
    from filepact.domain.policy import Action
    from filepact.text.patch_model import FilePatch
    from filepact.workspace.workspace import Workspace
    from filepact_acp.agents import ConnectionInfo
    from filepact_acp.permissions import PermissionDecision, PermissionRequest
    from filepact_acp.sessions import AcpSession
    from filepact_wire.messages import Message

__all__ = ["FileDiff", "PermissionLogWriter", "ToolCallReport", "count_lines", "read_report"]

_log = logging.getLogger(__name__)

_OPEN: Final = 256  # questions and calls that are remembered until they end
_OPTIONS: Final = 50
_WORD: Final = 100  # characters of an option's kind
_WAITING: Final = 10_000  # pieces of work; what the journal would keep of them
_HEAVY: Final = 262_144  # characters of one message's texts in which lines are counted
_HELD: Final = 64 * _HEAVY  # the same of all that waits


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that the person has not answered.

    Attributes:
        options: The kinds of its options, by their ids.
    """

    session: AcpSession
    question: PermissionRecord
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Call:
    """The state of a call.

    Attributes:
        noted: The state in which it was put into the journal, and the files.
    """

    title: str = ""
    action: Action = "write"
    files: tuple[LoggedFile, ...] = ()
    more: int = 0
    noted: tuple[str, tuple[LoggedFile, ...]] | None = None


class PermissionLogWriter:
    """One thread that writes; what it is told is small, and it is told from any thread.

    Args:
        facts: Who the agent is.
        let_go: Told when nothing is written any more for a session.
    """

    def __init__(self, facts: ConnectionInfo, let_go: Callable[[AcpSession], None]) -> None:
        self._facts = facts
        self._let_go = let_go
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._held = 0
        self._full = False
        self._closing = self._lost = False
        # These two are the thread's own.
        self._asked: OrderedDict[Any, _Asked] = OrderedDict()
        self._calls: OrderedDict[tuple[AcpSession, str], _Call] = OrderedDict()
        self._thread = threading.Thread(target=self._run, name="acp-record", daemon=True)
        self._thread.start()

    # -- told from outside ----------------------------------------------------------------

    def record_ruling(
        self,
        session: AcpSession,
        params: Message,
        asked: PermissionRequest,
        ruling: PermissionDecision,
        answer: Message,
    ) -> None:
        """The rules have answered a question."""
        verdict: Verdict = "refused"
        if ruling.verdict == "allow":
            # Where nothing is offered that allows it just once, there is nothing to choose.
            selected = answer["outcome"]["outcome"] == "selected"
            verdict = "allowed" if selected else "cancelled"
        question = self._question(session, params, asked)
        question = replace(question, verdict=verdict, by=f"rule {shorten(ruling.rule)}")
        self._shown(session, params)
        self._put(partial(self._note, session.workspace, question))

    def record_question(
        self, wanted: Any, session: AcpSession, params: Message, asked: PermissionRequest
    ) -> None:
        """A question is about to be put to the person, under this id."""
        given = params.get("options")
        options = {
            one["optionId"]: shorten(str(one.get("kind") or ""), _WORD)
            for one in (given if isinstance(given, list) else [])[:_OPTIONS]
            if isinstance(one, dict) and isinstance(one.get("optionId"), str)
        }
        waits = _Asked(session, self._question(session, params, asked), options)
        self._shown(session, params)
        self._put(partial(self._wait, _key(wanted), waits))

    def record_answer(self, wanted: Any, message: Message) -> None:
        """The editor has answered something; maybe one of these questions."""
        result = message.get("result")
        outcome = result.get("outcome") if isinstance(result, dict) else None
        chosen = outcome.get("optionId") if isinstance(outcome, dict) else None
        self._put(partial(self._settle, _key(wanted), chosen if isinstance(chosen, str) else None))

    def record_call(self, session: AcpSession, call: Message) -> None:
        """The agent tells of a call of its own tools."""
        report = read_report(call, session.roots[0])
        if not (report.diffs or report.title or report.kind or report.status in ENDED):
            return
        if report.weight > _HEAVY or self._held + report.weight > _HELD:
            light = tuple(one.without_texts() for one in report.diffs)
            report = replace(report, diffs=light)
        with self._lock:
            self._held += report.weight
        if not self._put(partial(self._add_report, session, report, time.time())):
            with self._lock:
                self._held -= report.weight

    def end(self, session: AcpSession) -> None:
        """Write what is left of a session, and let go of it."""
        self._work.put(partial(self._end, session))

    def close(self) -> None:
        """Write what is left of all, and end."""
        self._closing = True
        self._work.put(None)
        self._thread.join()

    def _put(self, work: Callable[[], None]) -> bool:
        """Queue work for the thread, unless more waits than the journal would keep."""
        if self._work.qsize() >= _WAITING:
            if not self._full:
                self._full = True
                _log.warning("the agent asks and tells faster than can be written down")
            return False
        self._work.put(work)
        return True

    def _question(
        self, session: AcpSession, params: Message, asked: PermissionRequest
    ) -> PermissionRecord:
        """A question that nobody has answered."""
        files, more = name_files(map(LoggedFile, asked.paths), _folders(session))
        return PermissionRecord(
            when=time.time(),
            session=self._session(str(params.get("sessionId"))),
            root=session.workspace.guard.roots[0].path,
            title=shorten(asked.title),
            action="run" if asked.runs else asked.action,
            files=files,
            verdict="cancelled",
            by="nobody",
            more=more,
        )

    def _session(self, session: str) -> Session:
        return Session(session, Actor("agent", self._facts.agent, self._facts.version), session)

    def _shown(self, session: AcpSession, params: Message) -> None:
        """The call that a question is about may not be shown again when it is over."""
        self.record_call(session, {**call_of(params), "status": None})

    # -- in the thread --------------------------------------------------------------------

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            self._try(work)
        for waits in self._asked.values():
            self._try(partial(self._note, waits.session.workspace, waits.question))

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:  # noqa: BLE001 - what is written down must not end what it is about
            _log.exception("what the agent asked or told was not written down")

    def _note(self, workspace: Workspace, question: PermissionRecord) -> None:
        if self._lost:
            return
        try:
            workspace.asked.note(question)
        except FilepactError as error:
            # Others hold the journal, or it is gone: at the end nobody waits for that again.
            self._lost = self._closing
            _log.warning("what the agent asked or told was not written down: %s", error.message)

    def _wait(self, key: Any, waits: _Asked) -> None:
        earlier = self._asked.pop(key, None)
        if earlier is None and len(self._asked) >= _OPEN:
            _, earlier = self._asked.popitem(last=False)
        if earlier is not None:
            self._note(earlier.session.workspace, earlier.question)
        self._asked[key] = waits

    def _settle(self, key: Any, chosen: str | None) -> None:
        waits = self._asked.pop(key, None)
        if waits is None:
            return
        kind = waits.options.get(chosen) if chosen is not None else None
        question = replace(waits.question, by="editor")
        if kind is not None:
            question = replace(question, verdict=_verdict(kind), by="person", how=kind)
        self._note(waits.session.workspace, question)

    def _add_report(self, session: AcpSession, report: ToolCallReport, when: float) -> None:
        with self._lock:
            self._held -= report.weight
        key = (session, report.call)
        call = self._calls.pop(key, _Call())
        if report.diffs:
            files, more = name_files(map(count_lines, report.diffs), _folders(session))
            call = replace(call, files=files, more=more)
        if report.kind:
            call = replace(call, action="delete" if report.kind == "delete" else "write")
        call = replace(call, title=shorten(report.title) or call.title)
        ended = (report.status, call.files)
        # Some agents say twice that a call is over.
        if report.status in ENDED and call.files and call.noted != ended:
            call = replace(call, noted=ended)
            self._note(
                session.workspace,
                PermissionRecord(
                    when=when,
                    session=self._session(session.id),
                    root=session.workspace.guard.roots[0].path,
                    title=call.title,
                    action=call.action,
                    files=call.files,
                    verdict="told",
                    how=report.status,
                    more=call.more,
                ),
            )
        if report.call and (call.files or report.status not in ENDED):
            self._calls[key] = call
            if len(self._calls) > _OPEN:
                self._calls.popitem(last=False)

    def _end(self, session: AcpSession) -> None:
        for key, waits in tuple(self._asked.items()):
            if waits.session is session:
                del self._asked[key]
                self._note(waits.session.workspace, waits.question)
        for name in [name for name in self._calls if name[0] is session]:
            del self._calls[name]
        self._let_go(session)


def _folders(session: AcpSession) -> tuple[str, ...]:
    """The spellings of a session's working folder."""
    return (session.workspace.guard.roots[0].path, session.roots[0])


def _verdict(kind: str) -> Verdict:
    if kind.startswith("allow"):
        return "allowed"
    return "refused" if kind.startswith("reject") else "cancelled"


def _key(wanted: Any) -> tuple[str, Any]:
    """An id as a key: 1 and "1" are two."""
    return type(wanted).__name__, wanted if isinstance(wanted, str | int | float) else None


_MOST: Final = 200  # files of one call that are looked at
_LONGEST_ID: Final = 1_000  # characters; longer ones name nothing that is remembered


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The diff of one file.

    Attributes:
        path: Absolute.
        old: The text before; empty for a new file.
        new: The text after; None where none was shown.
        patch: A Git patch that tells of this file among others, where there is one.
    """

    path: str
    old: str = ""
    new: str | None = None
    patch: str = ""

    @property
    def weight(self) -> int:
        """Characters that it holds on to."""
        return len(self.old) + len(self.new or "") + len(self.patch)

    def without_texts(self) -> FileDiff:
        """Return the diff without its texts, whose lines are then not counted."""
        return replace(self, old="", new=None, patch="")


@dataclass(frozen=True, slots=True)
class ToolCallReport:
    """A report of one message about a call.

    Attributes:
        call: The call's id; empty where it has none that can be remembered.
        title: As people are shown it; empty where the message says nothing new.
        kind: What the agent says that the call does.
        status: Its state, if the message tells.
        diffs: The diffs; none where the message shows none.
    """

    call: str
    title: str
    kind: str
    status: str
    diffs: tuple[FileDiff, ...]

    @property
    def weight(self) -> int:
        """Characters of all its texts."""
        return sum(shown.weight for shown in self.diffs)


def read_report(call: Message, cwd: str) -> ToolCallReport:
    """Read a tool call, an update of one, or the call in a question.

    Args:
        call: Of either version of the protocol.
        cwd: Where relative paths count from.
    """
    name = call.get("toolCallId")
    shown = tuple(
        replace(one, path=posixpath.join(cwd, one.path))
        for one, _ in zip(_diffs(call.get("content")), range(_MOST), strict=False)
    )
    return ToolCallReport(
        name if isinstance(name, str) and len(name) <= _LONGEST_ID else "",
        _text(call.get("title")),
        _text(call.get("kind")),
        _text(call.get("status")),
        shown,
    )


def count_lines(shown: FileDiff) -> LoggedFile:
    """The file with the lines that its diff adds and removes, where that can be told."""
    if shown.new is not None:
        old, new = split_lines(shown.old), split_lines(shown.new)
        regions = compare_lines(old, new)
        return LoggedFile(
            shown.path,
            sum(region.new_end - region.new_start for region in regions),
            sum(region.old_end - region.old_start for region in regions),
        )
    if shown.patch:
        try:
            parts = [part for part in parse(shown.patch) if _is_about(part, shown.path)]
        except FilepactError:
            return LoggedFile(shown.path)
        signs = [line[0] for part in parts for hunk in part.hunks for line in hunk.lines]
        if parts:
            return LoggedFile(shown.path, signs.count("+"), signs.count("-"))
    return LoggedFile(shown.path)


def _diffs(content: Any) -> Iterator[FileDiff]:
    for one in content if isinstance(content, list) else []:
        if not isinstance(one, dict) or one.get("type") != "diff":
            continue
        old, new = _text(one.get("oldText")), one.get("newText")
        for path in _path(one.get("path")):
            yield FileDiff(path, old, new if isinstance(new, str) else None)
        changes, patch = one.get("changes"), one.get("patch")
        patch = _text(patch.get("text")) if isinstance(patch, dict) else ""
        for change in changes if isinstance(changes, list) else []:
            for path in _path(change.get("path") if isinstance(change, dict) else None):
                yield FileDiff(path, patch=patch)


def _is_about(part: FilePatch, path: str) -> bool:
    """Whether a part of a patch is a file's; patches often lack the slash at the beginning."""
    names = {name.lstrip("/") for name in (part.old_path, part.new_path) if name}
    return any(path.endswith(f"/{name}") for name in names)


def _path(found: Any) -> tuple[str, ...]:
    """The path that is named, if it can be one."""
    if isinstance(found, str) and found and "\0" not in found:
        return (path_named(found),)
    return ()


def _text(found: Any) -> str:
    return found if isinstance(found, str) else ""
