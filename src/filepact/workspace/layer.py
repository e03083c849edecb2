"""Commits layers: what a program did behind an overlay becomes change sets like any other.

A layer tells how files are now, not from what the program started.  The *base* of a file is its state
in the root when the run began.  The root's file itself has it, as long as its stamp is older than
the run; for one that a person has changed since, the snapshot that is taken beside the program has
it.  Where both fail, nobody can tell whose lines are whose, so the file is not merged but proposed.

What the rules allow is merged with what the root holds by now and done; what they ask about waits as
a proposal, and so does what overlaps with somebody else's change, against the file as it is.  What
they deny, and what is no file at all, stays in the layer, with the reason.
"""

from __future__ import annotations

from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.change import ChangeSet, FileChange
from filepact.domain.document import FOLDER, LINK, Revision, WorkspacePath, content_id
from filepact.errors import (
    FilepactError,
    NoChangeError,
    PathBlockedError,
    StaleFileError,
)
from filepact.fs.atomic import LARGEST
from filepact.fs.overlay import layer_entries
from filepact.fs.root import Root
from filepact.fs.walk import TreeReader
from filepact.fs.watch import stamp_at
from filepact.values import dataclass, field, replace
from filepact.workspace.authorizer import ChangePolicy
from filepact.workspace.journal import new_proposal
from filepact.workspace.rebase import RebaseResult
from filepact.workspace.receipt import Receipt, done_receipt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from filepact.domain.operation import Proposal, Session
    from filepact.fs.namespace import LayerMount
    from filepact.fs.overlay import LayerEntry
    from filepact.fs.watch import Stamp
    from filepact.workspace.external import ExternalChanges
    from filepact.workspace.guard import Guard
    from filepact.workspace.journal import JournalStore
    from filepact.workspace.pending import PendingProposals
    from filepact.workspace.rebase import Rebase
    from filepact.workspace.writer import ChangeWriter

__all__ = ["REPOSITORIES", "LayerCommitter", "LayerResult", "RunMode"]

RunMode = Literal["auto", "review"]
"""``auto``: what the rules allow is done at once.  ``review``: all of it waits for a person."""

_REVIEW: Final = "review mode"
_OVERLAP: Final = "changed meanwhile"
_LINKS: Final = "links out"
_BITS: Final = 0o777
_OPERATIONS: Final = 100
_NOTHING: Final = content_id(b"")
_REPOSITORY: Final = "hooks and settings in there run code when version control is used"
REPOSITORIES: Final = frozenset({".git", ".hg", ".svn", ".jj"})
"""The insides of version control, wherever they are: nothing in them is committed."""


@dataclass(frozen=True, slots=True)
class LayerResult:
    """What has become of the layers of a run.

    Attributes:
        receipts: Of what was done, and of what waits.
        left: What stays in the layers, by path as it is shown, with the reason.
    """

    receipts: tuple[Receipt, ...]
    left: dict[str, str]


@dataclass(slots=True)
class _Found:
    """The changes of all layers.

    Attributes:
        first: Removals that make way for something of another kind under the same name.
        changes: All others.
        unclear: Those of them of which the base is not known, so that they start from the present.
        contents: The bytes of every state.
        left: See `LayerResult`.
        own: What an earlier commit of the same layers, which was cut off, started from and made.
    """

    first: list[FileChange] = field(default_factory=list)
    changes: list[FileChange] = field(default_factory=list)
    unclear: set[WorkspacePath] = field(default_factory=set)
    contents: dict[str, bytes] = field(default_factory=lambda: {_NOTHING: b""})
    left: dict[str, str] = field(default_factory=dict)
    own: dict[WorkspacePath, set[Revision | None]] = field(default_factory=dict)


@dataclass(slots=True)
class _Sorted:
    """Changes fitted to the roots, by what is to become of them."""

    done: list[FileChange] = field(default_factory=list)
    asked: list[FileChange] = field(default_factory=list)
    overlapping: list[FileChange] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rules: dict[str, None] = field(default_factory=dict)


class LayerCommitter:
    """Commits layers to the roots of one workspace.

    Args:
        guard: The roots and the rules.
        store: The journal, which has what an earlier commit of the same layers has tried.
        waiting: Where proposals are put.
        fitting: Fits change sets to what files hold.
        writer: Shows change sets, and writes them.
        external: The snapshot that is taken beside the program.
    """

    def __init__(
        self,
        guard: Guard,
        store: JournalStore,
        waiting: PendingProposals,
        *,
        fitting: Rebase,
        writer: ChangeWriter,
        external: ExternalChanges,
    ) -> None:
        self._guard = guard
        self._store = store
        self._waiting = waiting
        self._fitting = fitting
        self._writer = writer
        self._external = external

    def commit(
        self,
        session: Session,
        layers: Iterable[LayerMount],
        *,
        began: int,
        mode: RunMode,
        tool: str,
        skip: frozenset[str] = frozenset(),
    ) -> LayerResult:
        """Commit what the layers hold; they themselves stay as they are.

        Call it when no program changes them any more.

        Args:
            session: Whose changes they are.
            layers: Of roots of this workspace.
            began: When they were empty, nanoseconds since the epoch by the clock of stamps.
            mode: Whether what is allowed is done, or waits.
            tool: What the journal calls the program.
            skip: Absolute paths of folders in the roots that are not looked into.

        Raises:
            PendingFullError: As much waits as may; what was done before that stays done.
            StateFailedError: The journal cannot be written.
            WriteFailedError: The system refused; the message says what is on disk.
        """
        found = _Found(own=self._own_states(session))
        for layer in layers:
            _Reader(self._guard, self._external, found, began, layer, skip).read()
        if mode == "review" and found.first:
            for change in found.first:
                found.left[self._writer.show(change.path)] = (
                    "something of another kind is to replace it"
                )
            ways = {change.path for change in found.first}
            found.changes = [
                one for one in found.changes if not any(_meet(one.path, way) for way in ways)
            ]
            found.first = []
        receipts: list[Receipt] = []
        for changes in (found.first, found.changes):
            if changes:
                receipts += self._commit(session, tool, changes, found, mode)
        return LayerResult(tuple(receipts), found.left)

    def _own_states(self, session: Session) -> dict[WorkspacePath, set[Revision | None]]:
        """The states between which operations of this run have changed files, or were to."""
        states: dict[WorkspacePath, set[Revision | None]] = {}
        for operation in self._store.operations(session=session, limit=_OPERATIONS):
            for change in operation.changes.changes:
                states.setdefault(change.path, set()).update((change.before, change.after))
        return states

    def _commit(
        self,
        session: Session,
        tool: str,
        changes: list[FileChange],
        found: _Found,
        mode: RunMode,
    ) -> Iterator[Receipt]:
        """Do, or propose, one change of each path."""
        judged = self._judge(session, changes, found)
        if not judged:
            return
        with self._fitting.locked(ChangeSet(tuple(one for one, _ in judged))):
            sorted_ = self._fit(judged, found, mode)
            if sorted_.done:
                yield self._write(session, tool, sorted_, found)
        everything = sorted_.asked + sorted_.overlapping
        parts = [everything] if mode == "review" else [sorted_.asked, sorted_.overlapping]
        for part in parts:
            if part:
                rules = [*sorted_.rules] if part is not sorted_.overlapping else [_OVERLAP]
                if part is everything and sorted_.overlapping:
                    rules.append(_OVERLAP)
                yield self._propose(session, tool, part, found, ", ".join(rules))

    # -- the rules ------------------------------------------------------------------------

    def _judge(
        self, session: Session, changes: Iterable[FileChange], found: _Found
    ) -> list[tuple[FileChange, str]]:
        """The changes that are not denied, each with the rules that ask about it."""
        kept: list[tuple[FileChange, str]] = []
        versions = self._writer.versions(found.contents.__getitem__)
        for change in changes:
            judge = ChangePolicy(self._guard, session.agent)
            shown = self._writer.show(change.path)
            if self._guard.root_of(change.path.root).place(
                dirname(change.path.path) or "."
            ).path != (dirname(change.path.path) or "."):
                found.left[shown] = "a folder above it is a link by now"
                continue
            try:
                location = judge.find(shown, follow=False)
                sides = [
                    None
                    if side is None or side.is_link or side.is_folder
                    else versions.of(change.path, side)
                    for side in (change.before, change.after)
                ]
                for side in sides:
                    if side is not None:
                        judge.check_held(location, side)
                judge.record(location, change, source=sides[0], written=sides[1])
            except PathBlockedError as error:
                found.left[shown] = error.message
                continue
            if change.after is not None and change.after.is_link:
                target = found.contents[change.after.content].decode("utf-8", "surrogateescape")
                if _leads_out(change.path.path, target):
                    judge.require(_LINKS)
            kept.append((change, judge.asks))
        try:
            self._guard.check_together(
                ChangeSet(tuple(one for one, _ in kept)), agent=session.agent
            )
        except PathBlockedError as error:
            for one, _ in kept:
                found.left[self._writer.show(one.path)] = error.message
            return []
        return kept

    # -- what the roots hold by now ---------------------------------------------------------

    def _fit(
        self, judged: Iterable[tuple[FileChange, str]], found: _Found, mode: RunMode
    ) -> _Sorted:
        sorted_ = _Sorted()
        hides = self._writer.hides(None)
        for change, rules in judged:
            try:
                one = self._fitting.fit(
                    ChangeSet((change,)), hides, content=found.contents.__getitem__
                )
            except NoChangeError:
                continue
            except StaleFileError as error:
                self._overlap(change, found, sorted_, error)
                continue
            except FilepactError as error:
                found.left[self._writer.show(change.path)] = error.message
                continue
            found.contents |= one.contents
            sorted_.notes += one.notes
            if change.path in found.unclear:
                sorted_.overlapping += one.changes.changes
            elif rules or mode == "review":
                sorted_.asked += one.changes.changes
                sorted_.rules |= dict.fromkeys(rules.split(", ") if rules else [_REVIEW])
            else:
                sorted_.done += one.changes.changes
        return sorted_

    def _overlap(
        self, change: FileChange, found: _Found, sorted_: _Sorted, error: StaleFileError
    ) -> None:
        """Have a change wait that touches what somebody else changed: against the file as it is."""
        root = self._guard.root_of(change.path.root)
        shown = self._writer.show(change.path)
        try:
            now = _state_of(root, change.path, found.contents)
        except FilepactError:
            found.left[shown] = error.message
            return
        if now == change.after:
            return
        kinds = {side.is_link for side in (now, change.after) if side is not None}
        if len(kinds) > 1:
            found.left[shown] = error.message
            return
        sorted_.overlapping.append(FileChange(change.path, now, change.after))

    # -- doing ----------------------------------------------------------------------------

    def _write(self, session: Session, tool: str, sorted_: _Sorted, found: _Found) -> Receipt:
        changes = ChangeSet(tuple(sorted_.done))
        proposal, fitted = self._made(session, tool, changes, found)
        fitted = replace(fitted, notes=tuple(dict.fromkeys(sorted_.notes)))
        versions = self._writer.versions(fitted.contents.__getitem__)
        shown = self._writer.shown(changes, versions, None)
        return done_receipt(self._writer.write(proposal, fitted, shown, versions), shown)

    def _propose(
        self, session: Session, tool: str, changes: list[FileChange], found: _Found, rule: str
    ) -> Receipt:
        proposal, fitted = self._made(session, tool, ChangeSet(tuple(changes)), found)
        proposal = replace(proposal, rule=rule)
        self._waiting.propose(proposal, fitted.contents)
        versions = self._writer.versions(fitted.contents.__getitem__)
        shown = self._writer.shown(fitted.changes, versions, None)
        return Receipt(
            *(proposal.id, "pending", proposal.summary, shown.files, shown.diff), rule=rule
        )

    def _made(
        self, session: Session, tool: str, changes: ChangeSet, found: _Found
    ) -> tuple[Proposal, RebaseResult]:
        count = len(changes.changes)
        summary = f"{tool}: {count:,} {'file' if count == 1 else 'files'}"
        contents = {
            side.content: found.contents[side.content]
            for change in changes.changes
            for side in (change.before, change.after)
            if side is not None
        }
        return new_proposal(session, "run", summary, changes), RebaseResult(changes, contents, ())


class _Reader:
    """Reads one layer as changes.

    Args:
        guard: See `LayerCommitter`.
        external: See there.
        found: What is found is added to it.
        began: See `LayerCommitter.commit`.
        layer: The layer.
        skip: See there.
    """

    def __init__(
        self,
        guard: Guard,
        external: ExternalChanges,
        found: _Found,
        began: int,
        layer: LayerMount,
        skip: frozenset[str],
    ) -> None:
        self._guard = guard
        self._external = external
        self._found = found
        self._began = began
        self._layer = layer
        self._root = next(root for root in guard.roots if root.path == layer.root)
        prefix = f"{layer.root.rstrip('/')}/"
        self._skip = frozenset(one[len(prefix) :] for one in skip if one.startswith(prefix))
        self._entries: dict[str, LayerEntry] = {}
        self._full: set[str] = set()
        self._replaced: set[str] = set()

    def read(self) -> None:
        for entry in layer_entries(self._layer.upper, self._skip):
            self._full.add(dirname(entry.path))
            inside = _repository(entry.path)
            if inside is None:
                self._entries[entry.path] = entry
            else:
                # Thousands of files, of which each would be denied by itself.
                self._found.left.setdefault(self._show(inside), _REPOSITORY)
        with Root.open(self._layer.upper) as upper:
            for entry in self._entries.values():
                try:
                    self._one(entry, upper)
                except FilepactError as error:
                    self._found.left[self._show(entry.path)] = error.message

    def _show(self, path: str) -> str:
        return self._guard.show(self._root.path, path)

    def _one(self, entry: LayerEntry, upper: Root) -> None:
        """Note what one entry changes."""
        lower = "missing"
        if dirname(entry.path) in self._replaced:
            self._replaced.add(entry.path)  # What lies below is new as well.
        else:
            lower = self._root.place(entry.path, follow=False).kind
        if entry.kind == "other":
            self._found.left[self._show(entry.path)] = "it is not a regular file, folder or link"
        elif entry.kind == "whiteout":
            self._remove(entry.path, lower, self._found.changes)
        elif entry.kind in ("folder", "opaque"):
            self._folder(entry, lower)
        elif lower == "other":
            self._found.left[self._show(entry.path)] = (
                "a device, pipe or socket stands in its place"
            )
        else:
            self._file(entry, lower, upper)

    def _folder(self, entry: LayerEntry, lower: str) -> None:
        path = WorkspacePath(self._root.path, entry.path)
        if lower == "directory":
            if entry.kind == "opaque":
                self._remove_inside(entry.path, self._found.changes)
            return
        if lower != "missing":
            if entry.kind == "folder":
                # The program found no such thing there: then this folder would hide what was below.
                self._found.left[self._show(entry.path)] = "somebody put something else there"
                return
            self._remove(entry.path, lower, self._found.first)
            self._replaced.add(entry.path)
        if entry.path not in self._full:
            self._found.changes.append(FileChange(path, None, FOLDER))

    def _file(self, entry: LayerEntry, lower: str, upper: Root) -> None:
        path = WorkspacePath(self._root.path, entry.path)
        after, data = _load(upper, entry.path, link=entry.kind == "link")
        if lower not in ("missing", entry.kind):
            self._remove(entry.path, lower, self._found.first)
            before: Revision | None = None
        else:
            before = self._base(path)
        self._found.contents[after.content] = data
        if before != after:
            self._found.changes.append(FileChange(path, before, after))
        else:
            self._found.unclear.discard(path)

    # -- removals -------------------------------------------------------------------------

    def _remove(self, path: str, lower: str, into: list[FileChange]) -> None:
        if lower == "directory":
            self._remove_inside(path, into)
            into.append(FileChange(WorkspacePath(self._root.path, path), FOLDER, None))
        elif lower in ("file", "link"):
            self._remove_file(path, into)

    def _remove_file(self, path: str, into: list[FileChange]) -> None:
        where = WorkspacePath(self._root.path, path)
        before = self._base(where)
        if before is not None:
            into.append(FileChange(where, before, None))

    def _remove_inside(self, path: str, into: list[FileChange]) -> None:
        """Everything below a folder of the root that the layer does not have."""
        folders: list[str] = []
        with TreeReader(self._root, path, allow=_every, ignore=False) as entries:
            for entry in entries:
                mine = self._entries.get(entry.path)
                if entry.path in self._skip or (mine is not None and mine.kind != "whiteout"):
                    continue
                if entry.kind == "folder":
                    folders.append(entry.path)
                elif entry.kind != "other":
                    try:
                        self._remove_file(entry.path, into)
                    except FilepactError as error:
                        self._found.left[self._show(entry.path)] = error.message
        into.extend(
            FileChange(WorkspacePath(self._root.path, one), FOLDER, None)
            for one in reversed(folders)
        )

    # -- what the program started from ------------------------------------------------------

    def _base(self, path: WorkspacePath) -> Revision | None:
        """The state of a file when the run began; its bytes are added to the contents."""
        stamp = stamp_at(self._root, path.path)
        known = self._external.known(path)
        if stamp is not None and stamp.changed <= self._began:
            return _state_of(self._root, path, self._found.contents)
        if known is not None and self._add(known):
            return known[1]
        if stamp is None:
            return None
        present = _state_of(self._root, path, self._found.contents)
        if present not in self._found.own.get(path, ()):
            # Somebody made or changed it since, and nobody kept what it was.
            self._found.unclear.add(path)
        return present

    def _add(self, known: tuple[Stamp, Revision | None, bytes | None]) -> bool:
        stamp, revision, data = known
        if stamp.changed > self._began or revision is None or data is None:
            return False
        self._found.contents[revision.content] = data
        return True


def _state_of(root: Root, path: WorkspacePath, contents: dict[str, bytes]) -> Revision | None:
    """The present state of a file or link; its bytes are added to the contents."""
    kind = root.place(path.path, follow=False).kind
    if kind == "missing":
        return None
    if kind == "directory":
        return FOLDER
    revision, data = _load(root, path.path, link=kind == "link")
    contents[revision.content] = data
    return revision


def _load(root: Root, path: str, *, link: bool) -> tuple[Revision, bytes]:
    if link:
        data = root.read_link(path)
        return Revision.of(data, LINK), data
    found = root.read(path, limit=LARGEST, follow=False)
    # Nobody becomes somebody else by running what a program has made.
    return Revision.of(found.data, found.mode & _BITS), found.data


def _repository(path: str) -> str | None:
    """The inside of version control that a path is, or lies in."""
    parts = path.split("/")
    at = next((at for at, part in enumerate(parts) if part.lower() in REPOSITORIES), None)
    return None if at is None else "/".join(parts[: at + 1])


def _leads_out(path: str, target: str) -> bool:
    """Whether a link leads out of its root, by names."""
    whole = normpath(join(dirname(path) or ".", target))
    return target.startswith("/") or whole == ".." or whole.startswith("../")


def _meet(one: WorkspacePath, other: WorkspacePath) -> bool:
    """Whether two paths are one, or one lies in the other."""
    if one.root != other.root:
        return False
    return f"{one.path}/".startswith(f"{other.path}/") or f"{other.path}/".startswith(
        f"{one.path}/"
    )


def _every(_path: str, _is_folder: bool) -> bool:
    return True
