"""What is done for an event of a hook: the rules are asked before a tool, the disk is looked at after it.

What changed while a call was under way is the call's.  What changed while none was is nobody's: a
person's, mostly.  A call is under way from the event before it to the one after; where that never
comes, until its turn is over.
"""

from __future__ import annotations

import os
import posixpath
import secrets
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from filepact.app import open_observed
from filepact.config.person import read_settings
from filepact.domain.operation import BY_NOBODY, Actor, Session
from filepact.domain.policy import AccessRequest, decide
from filepact.errors import ApprovalRequiredError, FilepactError
from filepact.faces.hooks.agents import AGENTS, HookAgent, HookAnswer, HookEvent, read_event
from filepact.values import dataclass, field, replace
from filepact.workspace.documents import read_project_file
from filepact.workspace.kept_files import some_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from filepact.config.settings import Settings
    from filepact.domain.document import WorkspacePath
    from filepact.domain.operation import ChangeId
    from filepact.domain.policy import Verdict
    from filepact.faces.hooks.agents import FileAccess
    from filepact.faces.hooks.client import HookMode
    from filepact.workspace.workspace import Workspace

__all__ = ["HookDaemon", "HostProcess", "failed"]

HostProcess = tuple[int, str]
"""A process by its number, and when it began in the system's own count: numbers come again."""

_NOBODY: Final = Session("nobody", Actor("program", "unknown"))
_NO_FILES: Final[frozenset[WorkspacePath]] = frozenset()
_READING: Final = 5.0  # seconds that a command waits at most until all files are known
_LONGEST: Final = 3_600.0  # seconds after which a call is over, whatever was heard of it
_MOST_CALLS: Final = 1_000
_MOST_SESSIONS: Final = 1_000
_NAMED: Final = 3  # files that a person is told of one call
_TELLING: Final = frozenset({"claude", "codex", "gemini", "opencode"})
"""Agents whose programs show a message to the person alone."""
_DECIDING: Final = {
    "undo": "`filepact undo {}` takes back what that call did",
    "approve": "`filepact approve {}` shows it and decides",
    "redo": "`filepact redo {}` brings it back",
}


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that is under way.

    Attributes:
        session: Whose.
        tool: What it uses.
        names: The files that it names.
        open_ended: Whether it may change others.
        lone: Whether nothing is heard when it is over.
        begun: By a steady clock, in seconds.
        host: The process with whose end it is over, if that is known.
        approved: Whether its host has asked a person about it, since we wanted so.
    """

    session: Session
    tool: str
    names: frozenset[WorkspacePath]
    open_ended: bool
    lone: bool
    begun: float
    host: HostProcess | None = None
    approved: bool = False


@dataclass(frozen=True, slots=True)
class _Unapproved:
    """What a person has to be told of a call.

    Attributes:
        session: Whose.
        said: What it has changed.
        ids: What they can decide about, with the command for each.
    """

    session: Session
    said: str
    ids: Mapping[ChangeId, Literal["undo", "approve", "redo"]] = field(default_factory=dict)


class HookDaemon:
    """Answers the events of some roots; for all threads, one event at a time.

    Args:
        roots: The folders, the working folder first.
        state: The state folder.
        config: The person's settings file, if it is not the usual one; may be empty.
        clock: A steady clock, in seconds.
    """

    def __init__(
        self,
        roots: Sequence[str],
        state: str,
        config: str = "",
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._roots = tuple(roots)
        self._state = state
        self._config = config
        self._clock = clock
        self._lock = threading.Lock()
        self._desk: _Desk | None = None
        self._calls: dict[tuple[str, str], _Call] = {}
        self._turns: dict[str, str] = {}
        self._above: dict[str, tuple[HostProcess, ...]] = {}
        self._untold: list[_Unapproved] = []

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        with self._lock:
            self._forget_old()
            return bool(self._calls)

    @property
    def hosts(self) -> frozenset[HostProcess]:
        """The hosts of calls that are under way, as far as they are known."""
        with self._lock:
            return frozenset(one.host for one in self._calls.values() if one.host is not None)

    def host_ended(self, host: HostProcess) -> None:
        """Settle the calls of a host that is gone: what is changed from now on is not its own."""
        with self._lock:
            for key in [key for key, call in self._calls.items() if call.host == host]:
                if self._desk is not None:
                    # What cannot be recorded now is found by the next look, and is nobody's then.
                    with suppress(FilepactError):
                        self._settle(self._desk, self._calls[key])
                del self._calls[key]

    def close(self) -> None:
        """Keep what is known, and end."""
        with self._lock:
            self._let_go()

    def answer(
        self,
        agent: str,
        data: bytes,
        event: str = "",
        *,
        mode: HookMode = "",
        above: tuple[HostProcess, ...] = (),
    ) -> HookAnswer:
        """Answer one event; whatever goes wrong is told in the host's own form.

        Args:
            agent: The agent's name on our command line, one of `AGENTS`.
            data: What its program wrote.
            event: The event's name, where the host does not write it.
            mode: How far the hook goes.
            above: The process that handed it on, and those that have started it, the nearest first.
        """
        known = AGENTS[agent]
        read: HookEvent | None = None
        try:
            read = read_event(known, data, event)
            with self._lock:
                return self._answer(known, read, judges=mode != "record", above=above)
        except FilepactError as error:
            said = f"{error.message}. {error.hint}".strip()
        except Exception as error:  # noqa: BLE001 - a hook must not break the turn of its host
            said = f"{type(error).__name__}, which should not happen; please report it"
        before = read is None or read.moment == "before"
        return failed(known, said, refuses=mode == "strict" and before)

    def _answer(
        self,
        agent: HookAgent,
        event: HookEvent,
        *,
        judges: bool,
        above: tuple[HostProcess, ...],
    ) -> HookAnswer:
        if event.moment == "other":
            return HookAnswer()
        desk = self._opened()
        start = event.cwd or self._roots[0]
        uses = tuple(use._replace(path=posixpath.join(start, use.path)) for use in event.uses)
        event = replace(event, uses=uses)
        session = self._session(agent, event)
        # What starts a hook may end with it; what has started two of a session is there to stay.
        host = next((one for one in above if one in self._above.get(session.id, ())), None)
        self._above[session.id] = above
        if event.moment == "before":
            return self._before(desk, agent, event, session, judges=judges, host=host)
        if event.moment == "after":
            self._after(desk, event, session)
            return self._told(agent, session)
        if event.moment in ("stop", "end", "prompt"):
            self._finish(desk, session)
        self._look(desk)
        if event.moment == "end":
            self._turns.pop(session.id, None)
            self._above.pop(session.id, None)
        return self._told(agent, session)

    # -- who ------------------------------------------------------------------------------

    def _session(self, agent: HookAgent, event: HookEvent) -> Session:
        """The session of an event, with its turn; without a host's name for that, one of ours."""
        name = event.session or agent.name
        if event.moment == "prompt" or name not in self._turns:
            while len(self._turns) >= _MOST_SESSIONS:
                oldest = next(iter(self._turns))
                del self._turns[oldest]
                self._above.pop(oldest, None)
            self._turns[name] = f"{name[:40]}-{secrets.token_hex(4)}"
        actor = Actor("agent", agent.actor)
        turn = event.turn or self._turns[name]
        return Session(name, actor, event.session or None, turn=turn, call=event.call)

    # -- before and after -----------------------------------------------------------------

    def _before(
        self,
        desk: _Desk,
        agent: HookAgent,
        event: HookEvent,
        session: Session,
        *,
        judges: bool,
        host: HostProcess | None,
    ) -> HookAnswer:
        begun = self._clock()
        verdict, reason = desk.judge(event, session) if judges else ("allow", "")
        if desk.workspace.audit is not None:
            asked = event.uses[0].path if event.uses else ""
            said = {"allow": "OK", "ask": "APPROVAL_REQUIRED", "deny": "PATH_BLOCKED"}[verdict]
            seconds = self._clock() - begun
            desk.workspace.audit.called(session, event.tool, asked, said, seconds)
        if verdict == "ask" and not event.asks:
            verdict, reason = "deny", f"{reason}; nobody is asked here, so it is refused"
        if verdict == "deny":
            return agent.verdict(verdict, reason)
        try:
            self._look_before(desk, session)
        except FilepactError as error:
            if verdict != "ask":
                raise
            return agent.verdict(verdict, f"{reason}; not recorded: {error.message}")
        names = desk.names(event.uses)
        desk.know(names, all_files=event.open_ended)
        while len(self._calls) >= _MOST_CALLS:
            del self._calls[next(iter(self._calls))]
        self._calls[session.id, event.call] = _Call(
            *(session, event.tool, names),
            open_ended=event.open_ended,
            lone=event.lone,
            begun=self._clock(),
            host=host,
            # One that knows no question has refused it.
            approved=not judges
            or (verdict == "ask" and agent.decide("ask", "") != agent.decide("deny", "")),
        )
        return agent.verdict(verdict, reason) if reason else HookAnswer()

    def _look_before(self, desk: _Desk, session: Session) -> None:
        """Write down what has changed until now, before a call changes something."""
        for key, call in [*self._calls.items()]:
            # Another call of its session begins, so one of which nothing more is heard is over.
            if call.lone and call.session.id == session.id:
                self._settle(desk, call)
                del self._calls[key]
        self._look(desk)

    def _after(self, desk: _Desk, event: HookEvent, session: Session) -> None:
        call = self._calls.pop((session.id, event.call), None)
        if call is None:
            # The process that heard of its begin is gone; what changed since is the call's.
            names = desk.names(event.uses)
            call = _Call(session, event.tool, names, event.open_ended, lone=False, begun=0.0)
        self._settle(desk, call)

    def _settle(self, desk: _Desk, call: _Call) -> None:
        """Write down what a call has changed."""
        others = [one for one in self._calls.values() if one is not call]
        named = _NO_FILES.union(*(one.names for one in others)) - call.names
        alone = not call.open_ended and any(one.open_ended for one in others)

        def wanted(path: WorkspacePath) -> bool:
            # What a call does not name was done by one that does not say what it changes.
            return path in call.names if alone else path not in named

        found = desk.look(call.session, call.tool, wanted, approved=call.approved)
        self._untold = [*self._untold, *found][-_MOST_CALLS:]

    def _told(self, agent: HookAgent, session: Session) -> HookAnswer:
        """What a person has still to be told of a session's calls: nothing, mostly."""
        some = [one for one in self._untold if one.session.id == session.id]
        if not some:
            return HookAnswer()
        self._untold = [one for one in self._untold if one not in some]
        # What may reach the model names no command that decides.
        how = _DECIDING if agent.name in _TELLING else {}
        said = [
            "; ".join((one.said, *(how.get(by, "{}").format(id_) for id_, by in one.ids.items())))
            for one in some
        ]
        return agent.message(f"filepact: {'. '.join(said)}.")

    def _look(self, desk: _Desk) -> None:
        """Write down what has changed that no call names."""
        self._forget_old()
        named = _NO_FILES.union(*(one.names for one in self._calls.values()))
        under_way = [one for one in self._calls.values() if one.open_ended]
        if under_way:
            self._settle(desk, under_way[0])
        else:
            desk.look(_NOBODY, BY_NOBODY, lambda path: path not in named)

    def _finish(self, desk: _Desk, session: Session) -> None:
        """End the calls of a session of which nothing more was heard."""
        for key in [key for key in self._calls if key[0] == session.id]:
            self._settle(desk, self._calls[key])
            del self._calls[key]

    def _forget_old(self) -> None:
        end = self._clock() - _LONGEST
        for key in [key for key, call in self._calls.items() if call.begun < end]:
            del self._calls[key]

    # -- the workspace --------------------------------------------------------------------

    def _opened(self) -> _Desk:
        """The workspace by the rules that are in force now, over the folders that are there now."""
        settings = read_settings(self._config or None)
        places = tuple(map(_identity, self._roots))
        if self._desk is not None and not self._desk.is_current(settings, places):
            self._let_go()
        if self._desk is None:
            workspace = open_observed(self._roots, state_dir=self._state, settings=settings)
            self._desk = _Desk(workspace, settings, places)
        return self._desk

    def _let_go(self) -> None:
        desk, self._desk = self._desk, None
        if desk is not None:
            desk.close()


@dataclass(slots=True)
class _Desk:
    """An open workspace, its snapshot, and what it was opened by.

    Attributes:
        settings: The person's.
        places: What the roots are, by device and inode.
    """

    workspace: Workspace
    settings: Settings
    places: tuple[tuple[int, int], ...]
    _rules: tuple[str | None, ...] = ()
    _ending: threading.Event = field(default_factory=threading.Event)
    _reader: threading.Thread | None = None

    def __post_init__(self) -> None:
        self._rules = tuple(map(read_project_file, self.workspace.guard.roots))
        external = self.workspace.external
        status = external.snapshot(contents=False)
        if not status.complete:
            read = partial(external.read_contents, cancelled=self._ending.is_set)
            self._reader = threading.Thread(target=read, name="contents", daemon=True)
            self._reader.start()

    def is_current(self, settings: Settings, places: tuple[tuple[int, int], ...]) -> bool:
        """Whether rules and roots are what they were when it was opened."""
        if (settings, places) != (self.settings, self.places):
            return False
        return tuple(map(read_project_file, self.workspace.guard.roots)) == self._rules

    def close(self) -> None:
        self._ending.set()
        if self._reader is not None:
            self._reader.join()
        self.workspace.close()

    def know(self, names: frozenset[WorkspacePath], *, all_files: bool) -> None:
        """Read what some files hold before somebody changes them, or all files that may be changed."""
        if self._reader is None or not self._reader.is_alive():
            return
        if all_files:
            self._reader.join(_READING)
        else:
            self.workspace.external.read_first(names)

    def look(
        self,
        session: Session,
        tool: str,
        wanted: Callable[[WorkspacePath], bool],
        *,
        approved: bool = False,
    ) -> list[_Unapproved]:
        """Write down what has changed; what a person should have been asked about may be taken back."""
        workspace = self.workspace
        found = workspace.external.detect(session, tool=tool, wanted=wanted, approved=approved)
        whole = found.operation
        kept = () if whole is None else whole.changes.paths
        rules = {path: rule for path, rule in found.unasked.items() if path in kept}
        left = [path for path in found.unasked if path not in rules]
        said: list[_Unapproved] = []
        if whole is not None and rules:
            ids: dict[ChangeId, Literal["undo", "approve", "redo"]] = {whole.id: "undo"}
            became = ""
            if self.settings.hooks.unapproved == "propose":
                back, stays = workspace.take_back(whole, rules)
                left += stays
                rules = {path: rule for path, rule in rules.items() if path not in stays}
                ids, became = {**back}, ", and was taken back"
            if rules:
                said.append(_Unapproved(session, self._unapproved([*rules]) + became, ids))
        if left:
            said.append(
                _Unapproved(session, f"{self._unapproved(left)}, and could not be taken back")
            )
        return said

    def _unapproved(self, paths: list[WorkspacePath]) -> str:
        names = some_names([self.workspace.show(path) for path in paths], _NAMED)
        return f"{names} changed without your approval"

    def names(self, uses: Sequence[FileAccess]) -> frozenset[WorkspacePath]:
        """The true names of the files that a call may change."""
        found: set[WorkspacePath] = set()
        for use in uses:
            path = self._inside(use.path)
            if use.action == "read" or path is None:
                continue
            try:
                found.add(self.workspace.guard.find(path, use.action, missing=use.missing).path)
            except (FilepactError, ValueError):
                continue
        return frozenset(found)

    # -- the rules ------------------------------------------------------------------------

    def judge(self, event: HookEvent, session: Session) -> tuple[Verdict, str]:
        """What the rules say of a call, with the reason; without one they say nothing of it."""
        verdict: Verdict = "allow"
        reason = ""
        for use in event.uses:
            said, why = self._judge(use, session, event.tool)
            if said == "deny":
                return said, why
            if said == "ask" or (not reason and why):
                verdict, reason = said, why
        for word in event.words:
            said, why = self._judge_word(word, session)
            if said == "deny":
                return said, why
        return verdict, reason

    def _judge(self, use: FileAccess, session: Session, tool: str) -> tuple[Verdict, str]:
        guard, agent = self.workspace.guard, session.agent
        path = self._inside(use.path)
        if path is None:
            return self._judge_name(use, agent)
        try:
            location = guard.find(path, use.action, agent=agent, missing=use.missing)
        except ApprovalRequiredError as error:
            return "ask", error.report()
        except FilepactError as error:
            self.workspace.asked.refused(session, tool, error)
            return "deny", error.report()
        decision = location.decision
        if decision.verdict == "ask":
            return "ask", f"{use.path}: rule \u201c{decision.rule.name}\u201d ({decision.why})"
        # Nobody has said a word about most files: then the host goes by its own rules.
        given = decision.rule.layer in ("person", "administrator")
        return "allow", f"rule \u201c{decision.rule.name}\u201d" if given else ""

    def _judge_name(self, use: FileAccess, agent: str) -> tuple[Verdict, str]:
        """What the rules say of a name outside all roots: only what they forbid by name."""
        for path in dict.fromkeys((posixpath.normpath(use.path), os.path.realpath(use.path))):
            request = AccessRequest("/", path.lstrip("/") or ".", use.action, agent)
            decision = decide(request, self.workspace.guard.policy)
            if decision.verdict != "allow":
                return (
                    decision.verdict,
                    f"{use.path}: rule \u201c{decision.rule.name}\u201d ({decision.why})",
                )
        return "allow", ""

    def _judge_word(self, word: str, session: Session) -> tuple[Verdict, str]:
        """What the rules say of a word of a command, if it is a name that nobody may read."""
        name = "/".join(part for part in word.split("/") if part not in ("", ".", "..")) or "."
        request = AccessRequest(self.workspace.guard.roots[0].path, name, "read", session.agent)
        decision = decide(request, self.workspace.guard.policy)
        why = f"{word}: rule \u201c{decision.rule.name}\u201d ({decision.why})"
        return ("deny", why) if decision.verdict == "deny" else ("allow", "")

    def _inside(self, path: str) -> str | None:
        """The path if it lies in a root, in a spelling that the guard knows; else None."""
        if "\0" in path:
            return path  # for the guard to refuse
        roots = [root.path.rstrip("/") + "/" for root in self.workspace.guard.roots]
        for one in (posixpath.normpath(path), os.path.realpath(path)):
            if any(f"{one}/".startswith(root) for root in roots):
                return path if one == posixpath.normpath(path) else one
        return None


def failed(agent: HookAgent, said: str, *, refuses: bool) -> HookAnswer:
    """The answer when the event could not be dealt with.

    Args:
        agent: Who wants it.
        said: What went wrong.
        refuses: Whether the call is refused for that.
    """
    if refuses:
        return agent.verdict("deny", f"filepact could not check this call: {said}")
    return agent.message(f"filepact has not checked or recorded this: {said}")


def _identity(path: str) -> tuple[int, int]:
    """The device and inode of a folder; zeros where nothing is."""
    with suppress(OSError):
        found = Path(path).stat()
        return found.st_dev, found.st_ino
    return 0, 0
