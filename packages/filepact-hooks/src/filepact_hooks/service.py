"""The work for each event of a hook: the rules are asked before a tool, the disk is looked at after it.

What a call names and changes is its own.  Of what nobody names a command has what changed while it ran, and so
has a tool that may change anything; the rest is nobody's: a person's, mostly.  Where two agents may have done
it, and where it is not known whether the command ran, it is nobody's as well.
"""

from __future__ import annotations

import posixpath
import secrets
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from filepact.app import ancestors, open_observed
from filepact.config.person import home_folder, read_settings
from filepact.domain.operation import BY_NOBODY, NOBODY, Actor, Session
from filepact.domain.person import has_started
from filepact.errors import FilepactError
from filepact.opening import descendants, ticks_now
from filepact.values import dataclass, field, replace
from filepact.workspace.documents import read_project_file
from filepact.workspace.file_snapshot import some_names, unwatched_said
from filepact.workspace.file_states import ALWAYS, CallRange
from filepact_hooks import judge
from filepact_hooks.agents import AGENTS, HookAgent, HookAnswer, HookEvent, read_event
from filepact_hooks.call_files import files_of, left_behind
from filepact_hooks.call_rules import CallVerdict
from filepact_hooks.tool_call import HostProcess, OpenCall, shares
from filepact_hooks.turn_errors import errors_left

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from filepact.config.settings import Settings
    from filepact.domain.document import WorkspacePath
    from filepact.workspace.file_snapshot import CallFiles
    from filepact.workspace.workspace import Workspace
    from filepact_hooks.agents import HookMode, Moment

__all__ = ["HookDaemon"]

_UNKNOWN: Final = Actor("program", "unknown")
_BEFORE_IT_RAN: Final = 1_000_000_000
"""Nanoseconds that a host may take to tell that a call has ended: what is younger is not surely a person's."""
_WHILE: Final = 5_000_000_000
"""Nanoseconds after which what was never seen to run has surely told that it has ended."""
_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_READING: Final = 5.0  # seconds that a command waits at most until all files are known
_LONGEST: Final = 3_600.0  # seconds after which a call is over, whatever was heard of it
_MOST_CALLS: Final = 1_000
_MOST_SESSIONS: Final = 1_000
_NAMED: Final = 3  # files that a person is told of one call
_NOT_KNOWN: Final = "nothing was known here before that call, so what it did is not recorded"


class HookDaemon:
    """Answers the events of some roots; for all threads, one event at a time.

    Args:
        roots: The folders, the working folder first.
        state: The state folder.
        config: The person's settings file, if it is not the usual one; may be empty.
        clock: A steady clock, in seconds.
        now: Nanoseconds since the epoch.
        drift: By how many nanoseconds that differs from a clock that nobody sets.
    """

    def __init__(
        self,
        roots: Sequence[str],
        state: str,
        config: str = "",
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], int] = time.time_ns,
        drift: Callable[[], int] = lambda: time.time_ns() - time.clock_gettime_ns(_STEADY),
    ) -> None:
        self._roots = tuple(roots)
        self._state, self._config = state, config
        self._clock, self._now = clock, now
        self._drift, self._drifted, self._touched = drift, drift(), 0
        self._lock = threading.Lock()
        self._desk: _Desk | None = None
        self._places: tuple[tuple[int, int], ...] = ()
        self._calls: dict[tuple[str, str], OpenCall] = {}
        self._over: dict[tuple[str, str], int] = {}
        self._turns: dict[str, str] = {}
        self._within: dict[str, str] = {}
        self._above: dict[str, tuple[HostProcess, ...]] = {}
        self._untold: list[judge.CallMessage] = []
        self._unrecorded: dict[str, str] = {}
        self._warned: set[str] = set()
        self._judge = judge.HookJudge(self._roots, state, config)

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        with self._lock:
            self._forget_old()
            return bool(self._calls)

    @property
    def awaited(self) -> frozenset[HostProcess]:
        """The processes with whose end calls are over, as far as they are known."""
        with self._lock:
            calls = self._calls.values()
            hosts = {one.host for one in calls if one.host is not None}
            return frozenset(hosts.union(*(one.late for one in calls)))

    @property
    def under_way(self) -> frozenset[HostProcess]:
        """The processes above calls that are under way."""
        with self._lock:
            return frozenset(one for call in self._calls.values() for one in call.above)

    def turns_of(self, process: HostProcess) -> dict[str, str]:
        """The turns for which calls of our own tools are under way below a process, by call."""
        with self._lock:
            own = [one for one in self._calls.values() if one.own and process in one.above]
            return {one.session.call: one.session.turn for one in own}

    def ended(self, process: HostProcess) -> None:
        """Settle the calls that are over with a process: what is changed from now on is not their own."""
        with self._lock:
            for key, call in sorted(self._calls.items(), key=lambda one: bool(one[1].late)):
                left = call.late - {process}
                if call.host != process and (left or not call.late):
                    self._calls[key] = replace(call, late=left)
                    continue
                del self._calls[key]
                if self._desk is not None:
                    with suppress(FilepactError):  # The rest is nobody's, or found by a later look.
                        self._settle(self._desk, call)
                        self._look(self._desk)

    def close(self) -> None:
        """Keep what is known, and end."""
        with self._lock:
            self._judge.close()
            self._let_go()

    def answer(
        self,
        agent: str,
        data: bytes,
        event: str = "",
        *,
        mode: HookMode = "",
        above: tuple[HostProcess, ...] = (),
        heard: int = 0,
    ) -> HookAnswer:
        """Answer one event; whatever goes wrong is told in the host's own form.

        Args:
            agent: The agent's name on our command line, one of `AGENTS`.
            data: What its program wrote.
            event: The event's name, where the host does not write it.
            mode: How far the hook goes.
            above: The process that handed it on, and those that have started it, the nearest first.
            heard: When it was handed on, in nanoseconds since the epoch; 0 for now.
        """
        known, heard = AGENTS[agent], heard or self._now()
        try:
            read = read_event(known, data, event)
        except Exception as error:  # noqa: BLE001 - what cannot be read may be a call
            return judge.answer_unread(known, data, event, mode, judge.told(error))
        judges = read.moment == "before" and mode != "record"
        left = self._left(known, read, above)
        with self._lock:
            # Before and apart from everything that may break.
            said = self._judge.judge(known, read) if judges else CallVerdict("allow")
            try:
                return self._answer(known, read, said, heard, left, judges=judges, above=above)
            except Exception as error:  # noqa: BLE001 - a hook must not break the turn of its host
                why = judge.told(error)
            before, self._unrecorded[read.session] = self._unrecorded.get(read.session), why
            while len(self._unrecorded) > _MOST_SESSIONS:
                del self._unrecorded[next(iter(self._unrecorded))]
        # Once a session is enough, but for who wants such calls refused.
        once = "" if before == why and mode != "strict" else why
        return judge.answer_unrecorded(known, read, said, mode, once)

    def _answer(
        self,
        agent: HookAgent,
        event: HookEvent,
        said: CallVerdict,
        heard: int,
        left: str,
        *,
        judges: bool,
        above: tuple[HostProcess, ...],
    ) -> HookAnswer:
        if event.moment == "other":
            return HookAnswer()
        self._watch_clock()
        desk = self._opened(self._judge.settings if judges else None)
        session = self._session(desk, agent, event, above)
        if desk.anew:
            desk.anew, desk.knew_nothing, self._calls = False, False, {}
            self._untold.append(judge.CallMessage(session, judge.ANOTHER.format(self._roots[0])))
        host, self._above[session.id] = self._host(session.id, above), above
        if event.moment == "before":
            key, times = (session.id, event.call), (heard, host, above)
            unkept = self._before(desk, event, session, said, *times, judges=judges)
            if key in self._calls and not agent.tells_of_questions:
                self._wait_for(key, heard, told=False)
            return agent.answer(said, f"{self._unwatched(desk, session)} {unkept}".strip())
        if event.moment == "after":
            self._after(desk, event, session, heard, above)
            return self._told(desk, agent, event, session, self._unwatched(desk, session))
        if event.moment == "asked":
            self._asked(event, session, heard)
        if event.moment == "prompt" and not event.inner:
            desk.workspace.asked.turn(session, event.words)
        if event.moment in ("stop", "end", "prompt") and not event.inner:
            self._finish(desk, session, event.moment)
        self._look(desk, session if event.moment in ("asked", "stop") else None)
        if event.moment == "end":
            self._forget_session(session.id)
        return self._told(desk, agent, event, session, left)

    def _left(self, agent: HookAgent, event: HookEvent, above: tuple[HostProcess, ...]) -> str:
        """The errors that a turn has left which ends now; others' events go on meanwhile."""
        if event.moment != "stop" or event.inner or agent.name not in judge.TELLING:
            return ""
        with self._lock:
            host, turn = self._host(event.session, above), self._turns.get(event.session, "")
        said = errors_left(host, event.turn or turn) if host and (event.turn or turn) else ""
        return said and f"filepact: {said}"

    def _host(self, session: str, above: tuple[HostProcess, ...]) -> HostProcess | None:
        """Return the host's process, which has started two hooks of a session; a hook's own parent may end before."""
        return next((one for one in above if one in self._above.get(session, ())), None)

    # -- who ------------------------------------------------------------------------------

    def _session(
        self, desk: _Desk, agent: HookAgent, event: HookEvent, above: tuple[HostProcess, ...]
    ) -> Session:
        """The session of an event, with its turn; without a host's name for that, one of ours."""
        name, actor = event.session or agent.name, Actor("agent", agent.actor)
        if name not in self._turns:
            while len(self._turns) >= _MOST_SESSIONS:
                self._forget_session(next(iter(self._turns)))
            begun_by = [
                one.session.id
                for one in self._calls.values()
                if one.starts and one.host in above and one.session.actor == actor
            ]
            if begun_by:
                self._within[name] = begun_by[0]
        if event.moment == "prompt" or name not in self._turns:
            # A daemon that ended while the model thought was not the end of the turn.
            goes_on = event.session and event.moment != "prompt"
            known = goes_on and desk.workspace.asked.turn_of(name)
            self._turns[name] = known or f"{name[:40]}-{secrets.token_hex(4)}"
        if event.turn and not event.inner:
            self._turns[name] = event.turn
        # What an agent does that another has started is done for the same request.
        turn = self._turns.get(self._within.get(name, name), event.turn) or self._turns[name]
        return Session(name, actor, event.session or None, turn=turn, call=event.call)

    def _forget_session(self, name: str) -> None:
        for known in (self._turns, self._within, self._above):
            known.pop(name, None)

    def _before(
        self,
        desk: _Desk,
        event: HookEvent,
        session: Session,
        said: CallVerdict,
        heard: int,
        host: HostProcess | None,
        above: tuple[HostProcess, ...],
        *,
        judges: bool,
    ) -> str:
        """Write down that a call begins, and what has changed until then; what a person is told of it."""
        does, workspace, desk.knew_nothing = event.does, desk.workspace, False
        if said.error is not None:
            workspace.asked.refused(session, does.tool, said.error)
        if workspace.audit is not None:
            asked = does.uses[0].path if does.uses else ""
            word = {"allow": "OK", "ask": "APPROVAL_REQUIRED", "deny": "PATH_BLOCKED"}[said.verdict]
            workspace.audit.called(session, does.tool, asked, word, 0.0)
        key = (session.id, event.call)
        # Whoever told that it begins may have been killed, and is heard when its end was.
        if said.verdict == "deny" or heard < self._over.get(key, 0):
            return ""
        # Another call of its session begins, so one of which nothing more is heard is over.
        for name, call in [*self._calls.items()]:
            if call.lone and call.session.id == session.id:
                self._settle(desk, call)
                del self._calls[name]
        self._look(desk, session)
        may = desk.may_change(event)
        desk.know(may.names.files, all_files=does.open_ended)
        unkept = desk.attend(may, key, {key, *self._calls})
        while len(self._calls) >= _MOST_CALLS:
            del self._calls[next(iter(self._calls))]
        self._calls[key] = OpenCall(
            *(session, does.tool, may.names, does.open_ended, event.lone, self._clock()),
            *(heard, host, above),
            sweeping=may.sweeping,
            approved=not judges or said.verdict == "ask",
            given=event.given,
            starts=does.starts_agent,
            own=does.deed == "own",
            command=does.deed == "run",
            asked_at=ticks_now() * hasattr(time, "CLOCK_BOOTTIME"),
        )
        return unkept

    def _asked(self, event: HookEvent, session: Session, heard: int) -> None:
        """Note that nobody knows from now on whether a call runs: a person is asked about it."""
        calls = reversed(self._calls.items())
        of = [key for key, one in calls if key[0] == session.id and not one.asked]
        # Most hosts do not say which call it is, and some tell with the question more than they do with the call.
        likely = [key for key in of if event.given == self._calls[key].given]
        alike = [key for key in of if event.does.tool in ("", self._calls[key].tool)]
        for key in (likely or alike)[:1]:
            self._wait_for(key, heard)

    def _wait_for(self, key: tuple[str, str], heard: int, *, told: bool = True) -> None:
        """Have a call run from when its host starts something; if no question is told of, only where that can be seen."""
        call = self._calls[key]
        tells = call.command and call.host is not None and descendants(call.host[0])
        if told or tells:
            since, self._touched = heard if tells else 0, 0
            self._calls[key] = replace(call, asked=True, asked_at=ticks_now(), since=since)

    def poll(self) -> bool:
        """Look whether commands run about which a person was asked; whether there are any."""
        with self._lock:
            self._watch_clock()
            for key, call in [one for one in self._calls.items() if one[1].watched]:
                now, host = self._now(), ancestors(call.host[0] if call.host else 0)[0]
                below = descendants(host[0].process, call.asked_at) if host else ()
                runs = has_started(host, below)
                self._calls[key] = found = call.looked_at(now, _BEFORE_IT_RAN, runs=runs)
                if found.since == now:
                    self._look_meanwhile(now)
            if any(one.waits for one in self._calls.values()):
                self._look_meanwhile(self._now())
            return any(one.asked and one.since for one in self._calls.values())

    def _look_meanwhile(self, now: int) -> None:
        """Write down what a person saved a while ago, lest a call changes it before anybody has looked."""
        desk, until, calls = self._desk, now - _WHILE, self._calls.values()
        if desk is None or any(one.runs for one in calls):
            return
        self._touched = self._touched or (now if desk.workspace.external.was_touched() else 0)
        if 0 < self._touched <= until:
            self._touched, late = now, [one for one in calls if one.late]
            nobody, span = Session(NOBODY, _UNKNOWN), CallRange(0, until)
            with suppress(FilepactError):  # The next look finds it still.
                desk.look(nobody, BY_NOBODY, lambda x: not any(one.named(x) for one in late), span)

    def _watch_clock(self) -> None:
        """If somebody has set the clock, no time tells what was changed before the calls that are under way."""
        before, self._drifted = self._drifted, self._drift()
        if abs(self._drifted - before) > _BEFORE_IT_RAN // 2:
            calls = self._calls.items()
            self._calls = {key: replace(one, since=0, gone=0, untimed=True) for key, one in calls}
            self._over.clear()
            if self._drifted < before:
                for one in self._calls.values():
                    self._untold.append(judge.CallMessage(one.session, judge.SET_BACK))

    def _after(
        self,
        desk: _Desk,
        event: HookEvent,
        session: Session,
        heard: int,
        above: tuple[HostProcess, ...],
    ) -> None:
        call = self._calls.pop(key := (session.id, event.call), None)
        self._over[key] = heard
        while len(self._over) > _MOST_CALLS:
            del self._over[next(iter(self._over))]
        if call is None:
            # The process that heard of its begin is gone.  What it does not name is its own only where its
            # host tells how long it ran: a person may have saved before it began.
            does, names = event.does, desk.may_change(event, over=True).names
            timed = does.open_ended and event.seconds is not None
            call = OpenCall(session, does.tool, names, timed, lone=False, begun=0.0)
            if desk.knew_nothing and (does.open_ended or names):
                self._untold.append(judge.CallMessage(session, _NOT_KNOWN))
        elif call.names and not call.may_link:
            # By a link that a person has put there meanwhile, it has written to what that leads to.
            alone = call.names.alone | desk.may_change(event).names.alone
            call = replace(call, names=replace(call.names, alone=alone))
        call, since = call.over(heard, event.seconds, _BEFORE_IT_RAN)
        # What was changed since it ended, while this process stood still, is not its own.
        until = end if self._now() > (end := heard + _BEFORE_IT_RAN) else 0
        done = call.done | self._settle(desk, call, since=since, until=until)
        # What is left was there before it ran, or nobody knows whether it ran.
        self._look(desk, session)
        behind = left_behind(event.does)
        if late := self._late(call, above, session.actor.name * bool(behind)):
            if behind:  # What is over had what its own words name.
                call = replace(call, names=desk.may_change(replace(event, does=behind), done).names)
            self._calls[key] = replace(call, late=late, done=done, begun=self._clock(), above=())

    def _late(
        self, call: OpenCall, above: tuple[HostProcess, ...], agent: str
    ) -> frozenset[HostProcess]:
        """Return what a command has started and still runs, by an agent's name what it has left to others as well."""
        if not call.open_ended or call.host is None or not call.above:
            return frozenset()
        others = frozenset(above).union(*(one.late for one in self._calls.values()))
        found = descendants(call.host[0], int(call.above[0][1]) - 1, agent)
        return frozenset((one.process, one.started) for one in found) - others

    def _settle(
        self, desk: _Desk, call: OpenCall, *, since: int = 0, until: int = 0
    ) -> frozenset[WorkspacePath]:
        """Write down what a call has changed, if not before or after a time, as of `detect`; the files."""
        if not (call.open_ended or call.names):
            return frozenset()  # It can change nothing: what did meanwhile is somebody else's.
        others = [one for one in self._calls.values() if one is not call]
        done: frozenset[WorkspacePath] = frozenset()
        for session, tool, wanted in shares(call, others, desk.workspace.guard):
            claims = call.named if since > call.heard else ALWAYS.claims
            span = CallRange(since, until, call.heard, claims)
            told, paths = desk.look(session, tool, wanted, span, approved=call.approved)
            self._untold += [replace(one, session=call.session) for one in told]
            done |= paths
        del self._untold[:-_MOST_CALLS]
        return done

    def _unwatched(self, desk: _Desk, session: Session) -> str:
        """Return the warning, once a session, that there are more files than are looked at."""
        files = desk.workspace.external.unwatched
        if session.id in self._warned or not files:
            return ""
        self._warned = {*list(self._warned)[: _MOST_SESSIONS - 1], session.id}
        return f"filepact: {unwatched_said(files)}."

    def _told(
        self, desk: _Desk, agent: HookAgent, event: HookEvent, session: Session, besides: str
    ) -> HookAnswer:
        """Return an answer with what the person and the model were not told yet of a session; mostly there is nothing."""
        some = [one for one in self._untold if one.session.id == session.id]
        decided = desk.workspace.events(session) if event.heard else ()
        desk.workspace.acknowledge(session, decided)
        answer, later = judge.tell(agent, event, some, besides, [one.text for one in decided])
        self._untold = later + [one for one in self._untold if one not in some]
        return answer

    def _look(self, desk: _Desk, beside: Session | None = None) -> None:
        """Write down what has changed that no call names, while a session was at work, if one was."""
        self._forget_old()
        # What goes on in the background has what it names, before others write over it and its turn goes back.
        for call in [one for one in self._calls.values() if one.late]:
            self._settle(desk, call)
        if running := next((one for one in self._calls.values() if one.runs), None):
            since = max(running.since - _BEFORE_IT_RAN, 0)
            self._settle(desk, running, since=since, until=running.gone)
        if not running or running.gone:
            calls = [*self._calls.values()]
            nobody = Session(f"{NOBODY} {beside.id}" if beside else NOBODY, _UNKNOWN)
            desk.look(nobody, BY_NOBODY, lambda path: not any(one.named(path) for one in calls))
        desk.workspace.external.let_go(self._calls)

    def _finish(self, desk: _Desk, session: Session, moment: Moment) -> None:
        """End the calls of a session of which nothing more was heard."""
        for key, call in [*self._calls.items()]:
            if key[0] != session.id or (call.late and moment != "end"):
                continue
            # What a person was asked about and never ran has changed nothing.
            if not call.asked or (call.command and (call.seen or not call.since)):
                # Nobody told that its turn is over, so a person has broken it off at some moment.
                known = moment == "stop" or call.gone
                one, since = replace(call, asked=True, seen=0), max(call.since - _BEFORE_IT_RAN, 0)
                self._settle(desk, call if known else one, since=since, until=call.gone)
            del self._calls[key]

    def _forget_old(self) -> None:
        begun = self._clock() - _LONGEST
        self._calls = {key: call for key, call in self._calls.items() if call.begun >= begun}

    def _opened(self, settings: Settings | None) -> _Desk:
        """The workspace by the rules in force now, with a person's settings if they were read for this event."""
        settings = settings or read_settings(self._config or None)
        if self._desk is not None and not self._desk.is_current(settings):
            self._places = self._desk.places
            self._let_go()
        if self._desk is None:
            workspace = open_observed(self._roots, state_dir=self._state, settings=settings)
            self._desk = _Desk(workspace, settings)
            self._desk.anew = self._places not in ((), self._desk.places)
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
        knew_nothing: Whether it was opened without a snapshot, and nobody has looked since.
        anew: Whether other folders lay there before, and nobody was told.
    """

    workspace: Workspace
    settings: Settings
    knew_nothing: bool = False
    anew: bool = False
    _rules: tuple[str | None, ...] = ()
    _ending: threading.Event = field(default_factory=threading.Event)
    _reader: threading.Thread | None = None

    def __post_init__(self) -> None:
        self._rules = tuple(map(read_project_file, self.workspace.guard.roots))
        status = self.workspace.external.snapshot(contents=False)
        self.knew_nothing = not status.kept
        if not status.complete:
            self._read()

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """The device and inode of each root."""
        return tuple(root.identity for root in self.workspace.guard.roots)

    def _read(self) -> None:
        read = partial(self.workspace.external.read_contents, cancelled=self._ending.is_set)
        self._reader = threading.Thread(target=read, name="contents", daemon=True)
        self._reader.start()

    def is_current(self, settings: Settings) -> bool:
        """Whether rules and roots are what they were when it was opened."""
        roots = self.workspace.guard.roots
        lasts = settings == self.settings and all(root.alive() for root in roots)
        return lasts and tuple(map(read_project_file, roots)) == self._rules

    def close(self) -> None:
        self._ending.set()
        if self._reader is not None:
            self._reader.join()
        self.workspace.close()

    def know(self, names: frozenset[WorkspacePath], *, all_files: bool) -> None:
        """Read what some files hold before somebody changes them, or all files that may be changed."""
        idle = self._reader is None or not self._reader.is_alive()
        if idle and not self.workspace.external.has_read:
            self._read()
        if all_files and self._reader is not None:
            self._reader.join(_READING)
        else:
            self.workspace.external.read_first(names)

    def may_change(
        self, event: HookEvent, done: Collection[WorkspacePath] = (), *, over: bool = False
    ) -> CallFiles:
        """Return the files that a call may change, as its words tell; `done` and `over` as of `files_of`."""
        start = posixpath.join((guard := self.workspace.guard).roots[0].path, event.cwd)
        return files_of(event.does, guard, start, home_folder() or "", done, over=over)

    def attend(
        self, may: CallFiles, call: tuple[str, str], under_way: Collection[tuple[str, str]]
    ) -> str:
        """Keep what a call may change; what a person is told if some of it cannot be kept."""
        unkept = some_names(self.workspace.external.attend(call, may, under_way), _NAMED)
        said = f"filepact: if this call changes them, no undo brings these back: {unkept}"
        return said if unkept else ""

    def look(
        self,
        session: Session,
        tool: str,
        wanted: Callable[[WorkspacePath], bool],
        span: CallRange = ALWAYS,
        *,
        approved: bool = False,
    ) -> tuple[list[judge.CallMessage], frozenset[WorkspacePath]]:
        """Write down what has changed; what a person should have been asked about may be taken back.

        Returns:
            What they are to be told, and the files.
        """
        external, self.knew_nothing = self.workspace.external, False
        found = external.detect(session, tool=tool, wanted=wanted, span=span, approved=approved)
        paths = frozenset(found.touched).union(*(one.changes.paths for one in found.operations))
        propose = self.settings.hooks.unapproved == "propose"
        return judge.unapproved(self.workspace, session, found, propose=propose), paths
