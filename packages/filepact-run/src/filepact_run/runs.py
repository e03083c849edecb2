"""Runs: a program behind overlays, from what it may see to what becomes of its layers."""

from __future__ import annotations

import errno
import threading
import time
from contextlib import suppress
from posixpath import basename
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from filepact.domain.attributes import Attributes
from filepact.domain.document import Revision, RootId, WorkspacePath
from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError, StateFailedError
from filepact.fs.outside import existing
from filepact.fs.root import Root
from filepact.fs.walk import TreeReader
from filepact.fs.watch import stamp_at
from filepact.text.gitignore import DEFAULT_IGNORED, MACHINE_FOLDERS, is_build
from filepact.values import replace
from filepact_run.layer import LayerCommitter
from filepact_run.layer_reader import REPOSITORIES, LayerRecord, state_of
from filepact_run.namespace import NamespaceProgram, ProgramFailed
from filepact_run.overlay import (
    build_folders,
    carry,
    last_change,
    mark_whole,
    remove_empty,
    room,
)
from filepact_run.run_context import RunContext
from filepact_run.run_folder import (
    RunFolder,
    RunRecord,
    ask_commit,
    is_going_on,
    kept_files,
    list_runs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from filepact.fs.watch import Stamp
    from filepact.workspace.receipt import Receipt
    from filepact.workspace.workspace import Workspace
    from filepact_run.layer import LayerResult, RunMode
    from filepact_run.overlay import LayerMount

__all__ = [
    "ProgramFailed",
    "Run",
    "RunFolder",
    "RunRecord",
    "ask_commit",
    "commit_run",
    "is_going_on",
    "kept_files",
    "list_runs",
]


Builds = Literal["move", "record", "discard"]
"""What becomes of folders that programs fill: they go into the root unrecorded, are judged and recorded
as any other files, or are thrown away."""

_FILLED: Final = MACHINE_FOLDERS - REPOSITORIES
_MAYBE_FILLED: Final = (DEFAULT_IGNORED - MACHINE_FOLDERS) | {
    *("target", ".tox", ".nox", ".gradle", ".mypy_cache", ".pytest_cache", ".ruff_cache"),
}

_RESERVE: Final = 256 << 20
"""Bytes that stay free for the journal: before a disk is full, the program is ended."""
_EVERY: Final = 1.0
_QUIET: Final = 2.0
"""Seconds without a change in the layers after which what is allowed is committed."""
_SHARE, _SHARE_AT_REST = 20, 200
"""A look at the layers may take one part in so many of the time; where it found nothing new, of this."""
_LONGEST: Final = 30.0
"""Seconds between two looks at layers that rest; of small ones far less."""
_AT_REST: Final = 5.0
_SHORT: Final = 0.1
"""Seconds after which a program is taken for one that goes on for a while."""


class Run:
    """A run that goes on in this process; close its folder at the end.

    Args:
        workspace: Its roots.
        folder: Where its layers are.
        home: The person's home folder; None for nobody's.
        secrets: The secrets below that, by absolute path.
        writable: What the person lets the program change as it is, by absolute path.
        builds: What becomes of folders that programs fill.
        quiet: Whether what is allowed is committed at each quiet moment, and not only at the end.
    """

    def __init__(
        self,
        workspace: Workspace,
        folder: RunFolder,
        *,
        home: str | None,
        secrets: Sequence[str],
        writable: Sequence[str],
        builds: Builds = "move",
        quiet: bool = True,
    ) -> None:
        self._workspace = workspace
        self._quiet = quiet and folder.record.mode != "review"
        self._record = record_of(folder)
        self._stamps: dict[WorkspacePath, Stamp] = {}
        self._receipts: list[Receipt] = []
        self._seen = (0, 0)
        self._looked = (0, 0)
        self._rests = _EVERY
        self._next = 0.0
        self.folder = folder
        self._builds = builds
        self._context = RunContext(
            workspace.guard,
            workspace.state_folder,
            home=home,
            secrets=secrets,
            writable=writable,
        )
        self._program: NamespaceProgram | None = None
        self.full = False

    @property
    def session(self) -> Session:
        """Whose changes they are."""
        record = self.folder.record
        return Session(f"run-{record.id[1:]}", Actor("agent", record.agent))

    def start(self, environment: Mapping[str, str], command: Sequence[str]) -> NamespaceProgram:
        """Start the program.

        Raises:
            ProgramFailed: The system refuses a step, or there is no such program.
            StateFailedError: There is no room for what it writes.
        """
        if room(self.folder.path) < _RESERVE:
            raise StateFailedError(
                f"less than {_RESERVE >> 20} MiB are free where layers are kept",
                hint="Make room there, or keep the state elsewhere with --state.",
            )
        if any(root.spelling.asked() for root in self._workspace.guard.roots):
            # Linux refuses such a file system below an overlay where it knows it for one; else names are mixed up.
            why = "letter case does not tell names apart here"
            raise ProgramFailed(why, errno.EOPNOTSUPP, namespaces=True)
        record = self.folder.record
        # What is left of a run that is gone on with stays until the program changes something.
        self._seen = self._last_change()
        return NamespaceProgram.start(
            self._context.settings(self.folder), command, environment, record.folder
        )

    def attend(self, program: NamespaceProgram) -> int:
        """Wait for the program's end; how it ended, as shells tell it.

        Beside it a snapshot of the roots is taken, from which a merge can start.
        """
        over = threading.Event()
        external = self._workspace.external

        def take() -> None:
            if over.wait(_SHORT):
                return  # That is where most end, and nobody has had the time to change anything.
            with suppress(FilepactError):
                external.snapshot(cancelled=over.is_set)

        snapshot = threading.Thread(target=take, name="snapshot", daemon=True)

        def look() -> bool:
            self.full = room(self.folder.path) < _RESERVE
            if not self.full:
                self._look(program, known=not snapshot.is_alive())
            return self.full

        try:
            status = program.attend(snapshot.start, look, every=_EVERY)
        finally:
            over.set()
            program.close()
            self._program = program
            if snapshot.ident is not None:
                snapshot.join()
        with suppress(StateFailedError):  # no room, perhaps; whoever commits tells
            self.folder.note(ended=status)
        return status

    # -- while the program runs -------------------------------------------------------------

    def _look(self, program: NamespaceProgram, *, known: bool) -> None:
        """Commit if somebody asks, or at a quiet moment once the roots are known."""
        asked = self.folder.asked()
        if asked:
            answer = self._answer(program)
            for one in asked:
                self.folder.answer(one, answer)
        begun = time.monotonic()
        if not known or not self._quiet or begun < self._next:
            return
        now = self._last_change()
        took = time.monotonic() - begun
        rests = self._rests = min(2 * self._rests, _AT_REST) if now == self._looked else _EVERY
        longer = min(max(rests, _SHARE_AT_REST * took), _LONGEST)
        self._next = begun + (_SHARE * took if rests == _EVERY else longer)
        self._looked = now
        touched = self._workspace.external.was_touched()
        if now != self._seen and time.time_ns() - now[0] > _QUIET * 10**9:
            # What cannot be committed now is tried again at the end, which tells.
            with suppress(FilepactError):
                self._commit_now(program)
            self._seen = self._last_change()
        elif touched and program.hold():
            self._let_go_on(program)

    def _last_change(self) -> tuple[int, int]:
        return last_change(layer.upper for layer in self.folder.layers())

    def _answer(self, program: NamespaceProgram) -> dict[str, object]:
        if self.folder.record.mode == "review":
            return {"refused": "in review mode everything is proposed when the program ends"}
        try:
            done = self._commit_now(program)
        except FilepactError as error:
            return {"refused": error.message}
        if done is None:
            return {"refused": "the program cannot be held at this moment"}
        waiting = sorted(
            self._workspace.guard.show(one.root, one.path) for one in self._record.waiting
        )
        return {"operations": [one.operation for one in done], "waiting": waiting}

    def _commit_now(self, program: NamespaceProgram) -> tuple[Receipt, ...] | None:
        """Commit what is allowed while the program stands still; None where it does not."""
        if not program.hold():
            return None
        try:
            folder, record = self.folder, self._record
            result = LayerCommitter(self._workspace).commit(
                self.session,
                folder.layers(),
                began=folder.record.began,
                mode="auto",
                tool=" ".join(folder.record.command)[:60],
                skip=frozenset(_passed(folder, self._builds)),
                record=record,
                keep=folder.keep,
            )
            self._receipts += result.receipts
            _note(folder, record)
            uppers = {layer.root: layer.upper for layer in folder.layers()}
            for path in record.fresh:
                with suppress(OSError):
                    mark_whole(uppers[path.root], path.path)
        finally:
            self._let_go_on(program)
        return result.receipts

    def _let_go_on(self, program: NamespaceProgram) -> None:
        """Have the program see what the roots hold by now, and go on."""
        try:
            with suppress(FilepactError):
                # New folders first, then what lies in them.
                if self._show_roots(program):
                    self._show_roots(program)
        finally:
            program.release()

    def _show_roots(self, program: NamespaceProgram) -> bool:
        """Write what differs between the roots and committed files of the layers into the latter."""
        record = self._record
        wanted: dict[WorkspacePath, tuple[Revision | None, bytes]] = {}
        uppers = {layer.root: layer.upper for layer in self.folder.layers()}
        roots = {root.path: root for root in self._workspace.guard.roots}
        for path in {**record.states, **dict.fromkeys(self._unseen(roots))}:
            found = self._changed_below(roots[path.root], path)
            if found is None or path in record.waiting:
                continue
            with Root.open(uppers[path.root]) as upper:
                if _seen(upper, path, {}) == record.states.get(path):
                    wanted[path] = found
        if not wanted:
            return False
        ordered = sorted(wanted, key=_name)
        gone = [one for one in reversed(ordered) if wanted[one][0] is None]
        made = [one for one in ordered if wanted[one][0] is not None]
        program.write_through([_told(one, *wanted[one]) for one in (*gone, *made)])
        for path in wanted:
            contents: dict[str, bytes] = {}
            with Root.open(uppers[path.root]) as upper:
                was, state = record.states.get(path), _seen(upper, path, contents)
            record.states[path] = state
            if state is not None and state.is_folder:
                record.whole |= set() if was else {path}
            elif state is not None:
                self.folder.keep(state.content, contents[state.content])
        _note(self.folder, record)
        return True

    def _changed_below(
        self, root: Root, path: WorkspacePath
    ) -> tuple[Revision | None, bytes] | None:
        """The state of a root's file and its bytes, if it is not what was committed last."""
        stamp = stamp_at(root, path.path)
        if stamp is not None and self._stamps.get(path) == stamp:
            return None
        contents: dict[str, bytes] = {}
        try:
            state = state_of(root, path, contents)
        except FilepactError:
            return None
        if stamp is not None:
            self._stamps[path] = stamp
        if state == self._record.states.get(path):
            return None
        return state, b"" if state is None else contents.get(state.content, b"")

    def _unseen(self, roots: Mapping[RootId, Root]) -> Iterator[WorkspacePath]:
        """The files put into folders of the roots that the program saw as its own."""
        for folder in sorted(self._record.whole, key=_name):
            root = roots[folder.root]
            if root.place(folder.path, follow=False, known=True).kind != "directory":
                continue
            with TreeReader(root, folder.path, allow=_is_no_build, ignore=False) as entries:
                for entry in entries:
                    path = WorkspacePath(folder.root, entry.path)
                    if entry.kind != "other" and path not in self._record.states:
                        yield path

    # -- at the end ---------------------------------------------------------------------------

    def commit(self) -> LayerResult:
        """Commit the layers, and remove them where nothing is left in them.

        Raises:
            FilepactError: As `LayerCommitter.commit`; the layers are as they were.
        """
        apart: dict[str, str] = {}
        remove_empty(self._context.made)
        for path in existing(self._context.missing):
            # It steers the agent the next time, and was not there before.
            with suppress(OSError):
                apart[path] = f"kept apart as {self.folder.keep_apart(path)}"
        try:
            result = commit_run(self._workspace, self.folder, self._builds, apart)
        finally:
            self.rest()
        return replace(result, receipts=(*self._receipts, *result.receipts))

    def rest(self) -> None:
        """Wait until what is left of the layers can be used again, by another run."""
        if self._program is not None and self.folder.is_there:
            self._program.wait_for_mounts()


def _seen(upper: Root, path: WorkspacePath, contents: dict[str, bytes]) -> Revision | None:
    """The state of a file in a layer; None where it has none, or the file is gone there."""
    if upper.place(path.path, follow=False, known=True).kind in ("missing", "other"):
        return None
    return state_of(upper, path, contents)


def _told(
    path: WorkspacePath, state: Revision | None, data: bytes
) -> tuple[str, str, str, int, bytes]:
    kind = "none" if state is None else "link" if state.is_link else "file"
    if state is not None and state.is_folder:
        kind = "folder"
    return path.root, path.path, kind, 0 if state is None else state.mode & 0o7777, data


def record_of(folder: RunFolder) -> LayerRecord:
    """The record of commits made while the program of a run was running."""
    record = LayerRecord(folder.kept)
    known = folder.committed()
    if known is not None:
        for root, path, state in known["states"]:
            record.states[WorkspacePath(RootId(root), path)] = _state(*state) if state else None
        for name in ("whole", "waiting"):
            found = {WorkspacePath(RootId(root), path) for root, path in known[name]}
            setattr(record, name, found)
    return record


def _note(folder: RunFolder, record: LayerRecord) -> None:
    states = ((*_name(path), _stored(state)) for path, state in record.states.items())
    named = {"whole": record.whole, "waiting": record.waiting}
    folder.note_committed(
        {"states": list(states), **{name: [*map(_name, found)] for name, found in named.items()}}
    )


def _stored(state: Revision | None) -> tuple[str, int, str | None] | None:
    if state is None:
        return None
    held = None if state.attributes is None else state.attributes.packed().decode()
    return state.content, state.mode, held


def _state(content: str, mode: int, held: str | None) -> Revision:
    return Revision(content, mode, None if held is None else Attributes.unpacked(held.encode()))


def _name(path: WorkspacePath) -> tuple[str, str]:
    return path.root, path.path


def _passed(folder: RunFolder, builds: Builds) -> dict[str, tuple[LayerMount, str]]:
    """Folders that programs fill and that are not committed file by file, by absolute path."""
    if builds == "record":
        return {}
    return {
        f"{layer.root.rstrip('/')}/{path}": (layer, path)
        for layer in folder.layers()
        for path in build_folders(layer, folder.record.began, _is_build)
    }


def _is_no_build(path: str, is_folder: bool) -> bool:
    return not is_folder or basename(path.rstrip("/")) not in _FILLED | REPOSITORIES


def commit_run(
    workspace: Workspace,
    folder: RunFolder,
    builds: Builds,
    apart: Mapping[str, str] = MappingProxyType({}),
) -> LayerResult:
    """Commit the layers of a run, and remove them where nothing is left in them.

    Args:
        workspace: The roots of the run, in any order.
        folder: The run.
        builds: What becomes of folders that programs fill; in review ``move`` means ``discard``.
        apart: What else is kept in its folder, by absolute path, with the reason.

    Raises:
        PathBlockedError: Another folder lies where a root lay; the layers are as they were.
        FilepactError: As `LayerCommitter.commit`; the same.
    """
    record = folder.record
    record.check_places()
    mode: RunMode = "review" if record.mode == "review" else "auto"
    passed = _passed(folder, builds)
    result = LayerCommitter(workspace).commit(
        Session(f"run-{record.id[1:]}", Actor("agent", record.agent)),
        folder.layers(),
        began=record.began,
        mode=mode,
        tool=" ".join(record.command)[:60],
        skip=frozenset(passed),
        record=record_of(folder),
    )
    result.left.update(apart)
    guard, moved, dropped = workspace.guard, list[str](), list[str]()
    for whole, (layer, path) in passed.items():
        place = WorkspacePath(RootId(layer.root), path)
        if builds == "discard" or mode == "review":
            dropped.append(guard.show(place.root, path))
            continue
        try:
            guard.permit(place, "create", agent=record.agent)
            carry(layer, path)
            moved.append(guard.show(place.root, path))
        except FilepactError as error:
            result.left[whole] = error.message
        except OSError as error:
            result.left[whole] = f"it could not be moved: {error.strerror}"
    if result.left:
        dropped.clear()  # they stay as well
        folder.settle(
            {
                one if one.startswith("/") else f"{workspace.guard.start}/{one}": why
                for one, why in result.left.items()
            }
        )
    else:
        folder.discard()
    return replace(result, moved=tuple(moved), dropped=tuple(dropped))


def _is_build(name: str, names: Callable[[], list[str]]) -> bool:
    return name in _FILLED or (name in _MAYBE_FILLED and is_build(names()))
