"""Which operations are meant: by turn, session, agent, time, file or id, and which of them are in force.

Whose work goes back is decided here, by one rule for every way back (`whose`): an agent's; a person's, and nobody's, stays unless it is named.
"""

from __future__ import annotations

from itertools import takewhile
from shlex import quote
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.document import same_state
from filepact.domain.operation import (
    BY_EDITOR,
    BY_NOBODY,
    BY_SEVERAL,
    FROM_ELSEWHERE,
    NOBODY,
    UNOBSERVED,
)
from filepact.errors import InvalidParamsError, NoChangeError, NotFoundError
from filepact.text.confusables import shown_name
from filepact.values import dataclass, replace
from filepact.workspace.file_snapshot import some_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from filepact.domain.document import RootId, WorkspacePath
    from filepact.domain.operation import ChangeId, Operation, Session
    from filepact.domain.permission_log import PermissionRecord
    from filepact.workspace.journal import JournalStore

__all__ = [
    "NEWEST",
    "Place",
    "Selection",
    "Turns",
    "Whose",
    "effective",
    "is_in",
    "is_in_force",
    "is_left_to_name",
    "is_passing",
    "known_author",
    "left_beside",
    "left_by",
    "lost_with",
    "newest_first",
    "operations_on",
    "partly_gone",
    "same_work",
    "select",
    "stays_beside",
    "turns_on",
    "unclaimed",
    "whose",
]

Place = tuple["RootId", str]
"""A file or folder: its root, and the path beneath it; ``.`` for all of the root."""

Turns = list[tuple["int | None", "list[Operation]"]]
"""Operations by turn: the turn's number, 1 for the newest and None for a session, and its operations, oldest first."""

NEWEST: Final = "newest"
"""Instead of a turn's name: the newest of which anything is in force."""

_NAMED: Final = 3  # turns that an error names, and files of an operation that stays
_BESIDE: Final = 8  # operations that are named since they stay
_FAR: Final = 200  # begins of turns that are looked at
_LEAST: Final = 4  # characters of a turn's name that stand for it
Whose = Literal["agent", "person", "nobody"]
"""Whose work an operation is.

``agent``: an agent's, or a program's that works through filepact.  ``person``: what a person typed in an editor,
did by a command of their own, or took back and brought back.  ``nobody``: what was seen on the disk and nobody
is known to have done, or any of several agents, or came from others who share the folder: in doubt a person's.
"""

_NOBODYS: Final = frozenset({BY_NOBODY, BY_SEVERAL, FROM_ELSEWHERE, UNOBSERVED})


@dataclass(frozen=True, slots=True)
class Selection:
    """Operations that are to be taken back together: those for which all holds that is said.

    Attributes:
        ids: Ids of operations, or the beginnings of some: any of them.
        turn: A turn by its name, or the beginning of it; by a number, 1 for the newest; or `NEWEST`.
        session: By this session, or another of its actor in the same conversation, or for what it was asked.
        agent: By agents of this name.
        since: Begun then or later, in seconds since the epoch.
        checkpoint: Done after this checkpoint of the first root was set, in that root.
        before: This operation, by its id or the beginning of it, and what was done after it.
        everybody: Whether what is selected by time alone has what `whose` leaves out, too.
        places: Only what was done to these files, or beneath these folders; if nothing else is said, what was done to each last.
    """

    ids: tuple[str, ...] = ()
    turn: str = ""
    session: Session | None = None
    agent: str = ""
    since: float | None = None
    checkpoint: str = ""
    before: str = ""
    everybody: bool = False
    places: tuple[Place, ...] = ()

    @property
    def only_places(self) -> bool:
        """Whether nothing but places is said."""
        return bool(self.places) and not (self.names_work or self.by_time)

    @property
    def names_work(self) -> bool:
        """Whether the selection says whose work is meant, or which."""
        return bool(self.ids or self.turn or self.session or self.agent)

    @property
    def by_time(self) -> bool:
        """Whether the selection says since when."""
        return self.since is not None or bool(self.checkpoint or self.before)

    def matches(self, operation: Operation) -> bool:
        """Whether an operation is of the agent and the time that are meant."""
        actor = operation.session.actor
        by = not self.agent or (actor.kind == "agent" and actor.name == self.agent)
        return by and (self.since is None or operation.created >= self.since)

    def reaches(self, operation: Operation) -> bool:
        """Whether an operation changed something in the places that are meant."""
        some = (is_in(path, at) for path in operation.changes.paths for at in self.places)
        return not self.places or any(some)

    def place_in(self, store: JournalStore, roots: Sequence[RootId]) -> int:
        """The place in the journal after which it begins; 0 for all of it.

        Raises:
            NotFoundError: There is no such checkpoint or operation.
        """
        if self.checkpoint:
            return store.checkpoint(self.checkpoint, roots[0]).seq
        return store.operation(self.before).seq - 1 if self.before else 0


def operations_on(
    store: JournalStore,
    roots: Sequence[RootId],
    path: str | None,
    limit: int | None,
    before_seq: int | None,
) -> tuple[Operation, ...]:
    """Operations on any of some roots, or on one path in them, newest first."""
    found = {
        operation.id: operation
        for root in roots
        for operation in store.operations(root=root, path=path, limit=limit, before_seq=before_seq)
    }
    return tuple(sorted(found.values(), key=lambda operation: -operation.seq)[:limit])


def turns_on(
    store: JournalStore, roots: Sequence[RootId], limit: int | None, since: float | None = None
) -> Turns:
    """Operations in some roots by turn, or by session where no turn is known; newest first.

    Args:
        store: Their journal.
        roots: The folders.
        limit: At most so many; None for all.
        since: Only those in which something was begun then or later, seconds since the epoch.

    Returns:
        The turn's number, as a `Selection` has it, and its operations, oldest first.
    """
    inside = frozenset(roots)
    groups: dict[tuple[str, str], list[Operation]] = {}
    for operation in newest_first(store, inside):
        session = operation.session
        key = (session.turn, "" if session.turn else session.id)
        if key in groups or not operation.was_done:
            continue
        if len(groups) == limit or (since is not None and operation.created < since):
            break
        alone = None if session.turn else session
        of = store.operations(turn=session.turn, session=alone, limit=None)
        groups[key] = [
            one
            for one in reversed(of)
            if one.was_done and any(path.root in inside for path in one.changes.paths)
        ]
    numbers = {name: number for number, name in enumerate(store.turns(roots), start=1)}
    # What goes on in the background may change something after a later turn has begun.
    began = sorted(groups.items(), key=lambda one: -one[1][0].seq)
    numbered = iter(sorted((numbers[turn], of) for (turn, _), of in began if turn in numbers))
    return [next(numbered) if turn in numbers else (None, of) for (turn, _), of in began]


def whose(operation: Operation) -> Whose:
    """Whose work it is; where that is not known for certain, it is not an agent's."""
    if operation.tool in _NOBODYS or operation.is_anybodys:
        return "nobody"
    actor = operation.session.actor
    # Going back is not work of a program: who started the program decided it.
    own = operation.kind != "change" and actor.kind == "program"
    return "person" if own or actor.kind == "person" or operation.tool == BY_EDITOR else "agent"


def is_passing(operation: Operation) -> bool:
    """Whether the operation is a noticed save, which is not taken back unless it is named."""
    return operation.tool == BY_EDITOR or operation.tool in _NOBODYS


def is_in_force(operation: Operation) -> bool:
    """Whether the operation is a change that can be taken back, and no noticed save."""
    return _stands(operation) and not is_passing(operation)


def _stands(one: Operation) -> bool:
    return one.kind in ("change", "restore") and one.was_done and one.undone_by is None


def is_left_to_name(operation: Operation) -> bool:
    """Whether the operation is in force, and passed by since nobody knows whose it is."""
    return operation.kind == "change" and _stands(operation) and operation.tool in _NOBODYS


def same_work(one: Operation, other: Operation) -> bool:
    """Whether two operations are of one session, or were done for one request."""
    return one.session.id == other.session.id or one.session.turn == other.session.turn != ""


def lost_with(store: JournalStore, operation: Operation) -> Operation | None:
    """The operation with those changes of the same call that cannot be brought back, if any."""
    for one in store.operations(before_seq=operation.seq, limit=1):
        together = one.seq == operation.seq - 1 and one.session == operation.session
        lost = not any(change.returns for change in one.changes.changes)
        if together and lost and (one.tool, one.was_done) == (operation.tool, True):
            return one
    return None


def known_author(operation: Operation) -> Operation:
    """The operation, if it is known who did it; InvalidParamsError else: it may be what a person saved, and has to be named."""
    if operation.is_anybodys:
        what = " ".join(operation.summary.split())
        raise InvalidParamsError(
            f"the last change was seen on the disk, and may be your own: {operation.id}, {what}",
            hint=f"`filepact diff {operation.id}` shows it; name it to take it back. `filepact log` lists "
            "others.",
            operation=operation.id,
        )
    return operation


def newest_first(
    store: JournalStore, roots: frozenset[RootId] | None, session: Session | None = None
) -> Iterable[Operation]:
    """Operations that touch one of the roots, or of one session, newest first, read in pages."""
    before, most = None, 4  # One of the first is nearly always the one.
    while page := store.operations(session=session, before_seq=before, limit=most):
        for one in page:
            if roots is None or any(path.root in roots for path in one.changes.paths):
                yield one
        before, most = page[-1].seq, 100


def select(
    store: JournalStore, roots: Sequence[RootId], selection: Selection
) -> tuple[list[Operation], dict[str, tuple[Place, ...]]]:
    """The operations that are meant, in force or not, oldest first; and for each that counts in some places alone, by its id, these.

    Raises:
        NoChangeError: Nothing that was done to a place is in force, or no turn is.
        NotFoundError: There is no such operation or turn.
        InvalidParamsError: Several turns are meant.
    """
    places: dict[str, tuple[Place, ...]] = {}
    if selection.only_places:
        only = _last_on_each(store, selection.places)
        chosen = list({operation.id: operation for operation, _ in only}.values())
        for operation, place in only:
            places[operation.id] = (*places.get(operation.id, ()), place)
    else:
        among = _candidates(store, roots, selection)
        if selection.turn and any(map(selection.matches, among)):
            # Whatever name its calls of our tools come under: a turn is one agent's.
            selection = replace(selection, agent="")
        chosen = [one for one in among if one.was_done and selection.matches(one)]
        within = selection.places or (((roots[0], "."),) if selection.checkpoint else ())
        if within:
            places = {one.id: within for one in chosen}
    return sorted(chosen, key=lambda operation: operation.seq), places


def _candidates(
    store: JournalStore, roots: Sequence[RootId], selection: Selection
) -> list[Operation]:
    turn = _turn_named(store, roots, selection) if selection.turn else ""
    mates = None if selection.session is None else store.sessions(selection.session)
    if selection.ids:
        named = [store.operation(one) for one in dict.fromkeys(selection.ids)]
        return [
            one
            for one in {operation.id: operation for operation in named}.values()
            if turn in ("", one.session.turn) and (mates is None or one.session.id in mates)
        ]
    inside, after = frozenset(roots), selection.place_in(store, roots)
    itself = after + 1 if selection.before else -1
    if turn or selection.session is not None:
        some = [store.operations(turn=turn or None, session=selection.session, limit=None)]
        if mates and not turn:
            # What it was asked itself is whole, also where another session did some of it.
            asked = {one.title: one.session.id for one in reversed(_begins(store, roots))}
            own = [one for one, by in asked.items() if by in mates]
            some += [store.operations(turn=one, limit=None) for one in own]
        # What a guard found as it began was done before its time.
        return [
            one
            for one in {one.id: one for of in some for one in of}.values()
            if one.seq > after
            and one.tool != UNOBSERVED
            and any(path.root in inside for path in one.changes.paths)
        ]
    return [
        one
        for one in _since(store, inside, selection.since, after)
        if selection.everybody or whose(one) == "agent" or one.seq == itself
    ]


def left_by(
    store: JournalStore, roots: Sequence[RootId], selection: Selection, chosen: Sequence[Operation]
) -> list[Operation]:
    """Operations in the selected time that are in force and stay, since nobody named them, undos of what is older included."""
    if not selection.by_time:
        return []
    named, after = {one.id for one in chosen}, selection.place_in(store, roots)
    done = [one for one in _since(store, frozenset(roots), selection.since, after) if one.was_done]
    return [one for one in effective(store, done) if one.id not in named and selection.reaches(one)]


def _since(
    store: JournalStore, roots: frozenset[RootId], since: float | None, after: int
) -> Iterable[Operation]:
    """Operations in some roots from a time on, or after a place in the journal; newest first."""
    for operation in newest_first(store, roots):
        if operation.seq <= after or (since is not None and operation.created < since):
            return
        yield operation


def _turn_named(store: JournalStore, roots: Sequence[RootId], selection: Selection) -> str:
    """The whole name of a turn; the newest is that of the agent and session that are meant."""
    name = selection.turn
    if name == NEWEST:
        return _newest_turn(store, roots, selection)
    if name.isascii() and name.isdigit() and len(name) < _LEAST:
        newest = store.turns(roots, limit=int(name))
        if not 0 < int(name) <= len(newest):
            raise NotFoundError(
                f"there is no turn {name} here: {len(newest)} are known"
                if newest
                else "no turn is known here: no agent has told where one begins",
                hint="`filepact log --turns` shows them; --session and --since need none.",
            )
        return newest[-1]
    found = store.turns(roots, begins=name, limit=_NAMED)
    if name in found:
        return name
    if len(found) == 1 and len(name) >= _LEAST:
        return found[0]
    if not found:
        raise NotFoundError(
            f"there is no turn {name!r} here", hint="`filepact log --turns` shows all."
        )
    raise InvalidParamsError(
        f"{name!r} is too short a part of a turn's name: {', '.join(found)}",
        hint=f"Give more of it, at least {_LEAST} characters.",
    )


def _newest_turn(store: JournalStore, roots: Sequence[RootId], selection: Selection) -> str:
    known = False
    for name in store.turns(roots):
        of = store.operations(turn=name, session=selection.session, limit=None)
        done = [one for one in of if one.was_done]
        matches = any(map(selection.matches, done))
        known |= matches
        if matches and effective(store, done):
            _check_newest(store, roots, selection, done)
            return name
    hint = "`filepact log --turns` shows turns and sessions; --session and --since need no turn."
    if not known and _begun(store, roots, selection):
        raise _nothing_done(store, roots, selection, hint)
    none = "no turn is known here: no agent has told where one begins"
    raise NoChangeError("every such turn is undone already" if known else none, hint=hint)


def _nothing_done(
    store: JournalStore, roots: Sequence[RootId], selection: Selection, hint: str
) -> NoChangeError:
    """Nothing of the newest turn was recorded; what nobody is known to have done since its begin is named."""
    agent = _begun(store, roots, selection)[-1].session.agent
    beside = unclaimed(store, roots, selection)
    said = f"of the last turn of {agent}, nothing was recorded{' as its own' if beside else ''}"
    return NoChangeError(said, hint=f"{beside} {hint}".strip())


def _check_newest(
    store: JournalStore, roots: Sequence[RootId], selection: Selection, done: Sequence[Operation]
) -> None:
    """Refuse a turn where a later one began, of which nothing is recorded: that one is meant."""
    begun, turn = _begun(store, roots, selection), done[0].session.turn
    at = {one.title: one.when for one in reversed(begun)}

    def began(name: str) -> float:
        return at.get(name) or min(one.created for one in store.operations(turn=name, limit=None))

    if not begun or began(turn) >= begun[-1].when:
        return
    last, mine, agent = begun[-1], begun[-1].session.id, begun[-1].session.agent
    for one in newest_first(store, frozenset(roots)):
        if one.created < last.when:
            break
        name = one.session.turn
        # A host may name a turn only with its first call, and its calls of our tools come under other names.
        its = one.session.id == mine or one.session.agent.startswith(agent)
        if name and (name == last.title or (its and began(name) >= last.when)):
            return
    count = len({path for one in done for path in one.changes.paths})
    hint = f"Before it was turn {turn} ({count:,} {'file' if count == 1 else 'files'}): "
    hint += f"`filepact undo --turn {quote(turn)}` takes it back."
    raise _nothing_done(store, roots, selection, hint)


def _begun(
    store: JournalStore, roots: Sequence[RootId], selection: Selection
) -> list[PermissionRecord]:
    """The begins of turns of the session and agent that are meant, oldest first."""
    mates = None if selection.session is None else store.sessions(selection.session)
    begun = [one for one in _begins(store, roots) if mates is None or one.session.id in mates]
    return [one for one in begun if selection.agent in ("", one.session.actor.name)]


def _begins(store: JournalStore, roots: Sequence[RootId]) -> list[PermissionRecord]:
    """The begins of turns, oldest first."""
    every = (one for at in roots for one in store.questions(root=at, limit=_FAR, kind="turns"))
    return sorted(every, key=lambda one: one.when)


def left_beside(
    store: JournalStore, roots: Sequence[RootId], taken: Sequence[Operation]
) -> list[Operation]:
    """Operations in force from the time of a turn that are not of it: the agent's own, or nobody's; newest first.

    Args:
        store: The journal.
        roots: The folders.
        taken: What is taken back of the turn.
    """
    first, last = min(one.seq for one in taken), max(one.seq for one in taken)
    turns, ids = {one.session.turn for one in taken}, {one.id for one in taken}
    agents = {one.session.agent for one in taken} - {""}
    found: list[Operation] = []
    beside = {f"{NOBODY} {one.session.id}" for one in taken}
    begun = next((x.when for x in _begins(store, roots) if x.title in turns), float("inf"))
    for one in newest_first(store, frozenset(roots)):
        early = one.seq < first and one.session.id not in beside
        if early and one.created < begun:
            break
        if early and one.tool != BY_SEVERAL:
            continue
        if one.session.turn:
            if one.session.turn not in turns and one.seq > last and one.session.agent in agents:
                other = f"{NOBODY} {one.session.id}" not in beside  # Else the next turn had begun.
                found = [x for x in found if other and x.session.id in beside]
            continue
        done = one.kind == "change" and _stands(one)
        own = any(one.session.agent.startswith(agent) for agent in agents)
        if done and one.id not in ids and (own or whose(one) == "nobody"):
            found.append(one)
    return found


def stays_beside(
    beside: Sequence[Operation], show: Callable[[WorkspacePath], str]
) -> Iterator[str]:
    """The sentences about operations from the time of what goes back that are not of it.

    Args:
        beside: They.
        show: A file as a reader may see it; empty for one that it may not know of.
    """
    for one in beside[:_BESIDE]:
        why = "it is of no turn" if whose(one) == "agent" else "nobody knows whose it is"
        why = "several agents were at work" if one.tool == BY_SEVERAL else why
        files = some_names([*filter(None, map(show, one.changes.paths))], _NAMED)
        what = f"{one.summary}: {files}" if files else one.summary
        yield f"Not taken back, since {why}: {one.id}, {what} (`filepact undo {one.id}` does)."
    if len(beside) > _BESIDE:
        yield f"Nor are {len(beside) - _BESIDE:,} more of that time, which `filepact log` shows."


def unclaimed(store: JournalStore, roots: Sequence[RootId], selection: Selection) -> str:
    """Sentences about what was done since a newest turn or a session began, and is nobody's; an agent is told nothing."""
    begun, of = _begun(store, roots, selection), selection.session
    if not begun or not (selection.turn == NEWEST or (of and not of.agent and not selection.turn)):
        return ""
    first, every = begun[-1 if selection.turn else 0].when, newest_first(store, frozenset(roots))
    since = takewhile(lambda one: one.created >= first, every)
    return " ".join(stays_beside([*filter(is_left_to_name, since)], lambda at: shown_name(at.path)))


def _last_on_each(store: JournalStore, places: Sequence[Place]) -> list[tuple[Operation, Place]]:
    """The newest operation in force on each file or folder."""
    found: list[tuple[Operation, Place]] = []
    for place in dict.fromkeys(places):
        newest = _last_on(store, place)
        if newest is None:
            raise NoChangeError(
                f"nothing that was done to {place[1]} is in force",
                hint="`filepact log PATH` shows what happened to it.",
                path=place[1],
            )
        found.append((known_author(newest), place))
    return found


def _last_on(store: JournalStore, place: Place) -> Operation | None:
    root, path = place
    gone: set[tuple[str, WorkspacePath]] = set()
    before: int | None = None
    while page := store.operations(root=root, path=path, before_seq=before, limit=50):
        for operation in page:
            gone |= partly_gone(store, operation)
            if is_in_force(operation) and any(
                is_in(change.path, place) and (operation.id, change.path) not in gone
                for change in operation.changes.changes
            ):
                return operation
        before = page[-1].seq
    return None


def is_in(path: WorkspacePath, place: Place) -> bool:
    root, above = place
    return path.root == root and (above in (".", path.path) or path.path.startswith(f"{above}/"))


def partly_gone(store: JournalStore, operation: Operation) -> set[tuple[str, WorkspacePath]]:
    """The changes that an undo has taken back of operations that are in force in other files, also where two came to nothing."""
    if operation.kind != "undo" or operation.undone_by is not None or not operation.was_done:
        return set()
    taken = [(store.operation(one), whole) for one, whole in operation.taken_back.items()]
    now = {one.path: one.after for one in operation.changes.changes}
    along = {path for one, whole in taken if whole for path in one.changes.paths}
    return {
        (one.id, of.path)
        for one, whole in taken
        for of in (() if whole else one.changes.changes)
        # What is as the operation left it was taken back of a later one alone.
        if (not same_state(now[of.path], of.after) if of.path in now else of.path in along)
    }


def effective(store: JournalStore, chosen: Sequence[Operation]) -> list[Operation]:
    """The chosen operations that have to be taken back for all of them to be."""
    names = {one.id for one in chosen}
    alone = [one for one in chosen if not _settled(store, one, names)]
    undos = {one.id for one in alone if one.kind == "undo"}
    brought_back = {
        original
        for one in alone
        if one.kind == "redo"
        for original in store.operation(one.target).taken_back
    }
    return [
        one
        for one in chosen
        if one in alone
        or (
            one.kind in ("change", "restore")
            and one.id not in brought_back
            and (one.undone_by is None or one.undone_by in undos)
        )
    ]


def _settled(store: JournalStore, operation: Operation, names: set[ChangeId]) -> bool:
    """Whether an operation is no undo or redo that has to be taken back itself."""
    if operation.kind == "undo":
        return operation.undone_by is not None or names.issuperset(operation.taken_back)
    if operation.kind == "redo":
        undo = store.operation(operation.target)
        # With its undo it comes to nothing.
        both = undo.id in names
        return both or undo.undone_by != operation.id or names.issuperset(undo.taken_back)
    return True
