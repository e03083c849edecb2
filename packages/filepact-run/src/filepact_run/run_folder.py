"""The folders of runs: what a program did, and what is known of it, until it was committed or discarded.

A *run* is a folder of the state folder with a layer for each root; it lasts whatever has become of
the program.  One process holds it.  Others may ask that one for a commit, by a file in it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Self

from filepact.domain.document import FOLDER
from filepact.errors import FilepactError, NotFoundError, PathBlockedError, StateFailedError
from filepact.fs.kernel import place_of, same_places
from filepact.fs.root import Root
from filepact.fs.state import write_note
from filepact.fs.watch import moment
from filepact.values import asdict, dataclass, field, replace
from filepact_run.overlay import TOP, LayerMount, layer_entries, remove_tree, settle

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["RunFolder", "RunRecord", "ask_commit", "is_going_on", "kept_files", "list_runs"]

_RUNS: Final = "runs"
_RECORD: Final = "run.json"
_COMMITTED: Final = "committed.json"
_APART: Final = "apart"
_DISCARDED: Final = "discarded.json"
_ASKED, _ANSWERED = "asked-", "answered-"
_PATIENCE: Final = 60.0
_NAP: Final = 0.02


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The record of a run whose program has ended.

    Attributes:
        id: ``r`` and eight hexadecimal digits.
        command: The program with its words.
        agent: The name that rules know the program by.
        mode: ``auto`` or ``review``.
        roots: True paths; the layers have the same order.
        folder: Where the program was started.
        began: When the layers were made, nanoseconds since the epoch, by the clock of stamps.
        created: The same by the calendar, in seconds.
        ended: How the program ended, as shells tell it; None if nobody saw it.
        left: What is still in the layers, by path, with the reason; filled in by a commit.
        places: Which folders the roots were, as of `place_of`; none of a run of an earlier version.
    """

    id: str
    command: tuple[str, ...]
    agent: str
    mode: str
    roots: tuple[str, ...]
    folder: str
    began: int
    created: float
    ended: int | None = None
    left: dict[str, str] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)

    def check_places(self) -> None:
        """Refuse what would go into another folder that lies where a root lay.

        Raises:
            PathBlockedError: One does, or none.
        """
        for root, place in self.places.items():
            if not same_places({root: place}, {root: place_of(root)}):
                raise PathBlockedError(
                    f"{root}: is not the folder any more in which the run {self.id} was started",
                    hint="Nothing was changed. Move that folder back to its place, and try again; "
                    f"or `filepact runs --discard {self.id}` drops what the run has written.",
                )


class RunFolder:
    """The folder of one run, held by one process at a time; a context manager that gives it up.

    Attributes:
        record: What is known of it.
        path: Where it is.
    """

    def __init__(self, path: str, record: RunRecord, lock: int) -> None:
        self.path = path
        self.record = record
        self._lock = lock

    @classmethod
    def make(
        cls,
        state: str,
        *,
        command: Sequence[str],
        agent: str,
        mode: str,
        roots: Sequence[str],
        folder: str,
    ) -> RunFolder:
        """Make the folder of a new run.

        Args:
            state: The state folder.
            command: See `RunRecord`, as for the others.
            agent: See there.
            mode: See there.
            roots: See there.
            folder: See there.

        Raises:
            StateFailedError: It cannot be made.
        """
        name = f"r{os.urandom(4).hex()}"
        path = os.path.join(state, _RUNS, name)
        try:
            os.makedirs(path, mode=0o700)
            lock = _lock(path)
            try:
                _make_layers(path, roots)
            except (OSError, FilepactError):
                os.close(lock)
                remove_tree(path)
                raise
        except OSError as error:
            raise _unusable(path, error) from None
        record = RunRecord(
            name,
            tuple(command),
            agent,
            mode,
            tuple(roots),
            folder,
            moment(),
            time.time(),
            places={root: place_of(root) for root in roots},
        )
        run = cls(path, record, lock)
        run.note()
        return run

    @classmethod
    def open(cls, state: str, name: str) -> RunFolder:
        """Take over a run that was left.

        Args:
            state: The state folder.
            name: The run's id, or the beginning of it.

        Raises:
            NotFoundError: There is no such run, or more than one.
            StateFailedError: It is still going on.
        """
        found = [one for one in list_runs(state) if name and one.id.startswith(name)]
        if len(found) != 1:
            what = "several runs" if found else "no run"
            raise NotFoundError(
                f"{what} with an id that begins with {name!r}", hint="`filepact runs` lists them."
            )
        path = os.path.join(state, _RUNS, found[0].id)
        gone = NotFoundError(f"the run {found[0].id} is gone")
        try:
            lock = _lock(path)
        except BlockingIOError:
            raise StateFailedError(
                f"the run {found[0].id} is still going on",
                hint="Wait until its program has ended, or end it.",
            ) from None
        except FileNotFoundError:
            raise gone from None
        except OSError as error:
            raise _unusable(path, error) from None
        # Another process may have settled it just before.
        record = _read(path)
        if record is None:
            os.close(lock)
            raise gone
        return cls(path, record, lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lock)

    @property
    def private(self) -> str:
        """The folder for the program's temporary files."""
        return os.path.join(self.path, "private")

    def layers(self) -> tuple[LayerMount, ...]:
        """The layers, of the roots in their order."""
        return tuple(
            LayerMount(root, *(os.path.join(self.path, str(at), one) for one in ("upper", "work")))
            for at, root in enumerate(self.record.roots)
        )

    @property
    def is_there(self) -> bool:
        """Whether the run is still there, not discarded."""
        return os.path.exists(self.path)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in its layers, and nothing is kept apart."""
        folders = [*(layer.upper for layer in self.layers()), os.path.join(self.path, _APART)]
        return not any(os.listdir(one) for one in folders if os.path.isdir(one))

    def settle(self, left: dict[str, str]) -> None:
        """Keep of the layers only what was not committed, as changes that begin now.

        Args:
            left: By absolute path, with the reason.

        Raises:
            StateFailedError: The system refused.
        """
        try:
            for layer in self.layers():
                prefix = f"{layer.root.rstrip('/')}/"
                keep = (one[len(prefix) :] for one in left if one.startswith(prefix))
                settle(layer.upper, frozenset(keep))
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self.path, _COMMITTED))
        except OSError as error:
            raise _unusable(self.path, error) from None
        self.record = replace(self.record, began=moment())
        self.note(left=left)

    def note(self, *, ended: int | None = None, left: dict[str, str] | None = None) -> None:
        """Keep what is known by now.

        Raises:
            StateFailedError: It cannot be written; what was there stays.
        """
        known = self.record
        self.record = replace(
            known,
            ended=known.ended if ended is None else ended,
            left=known.left if left is None else left,
        )
        write_note(self.path, _RECORD, json.dumps(asdict(self.record)).encode())

    # -- what was committed while the program ran ---------------------------------------------

    def note_committed(self, known: object) -> None:
        """Keep what layers held at the last commit, as JSON has it.

        Raises:
            StateFailedError: It cannot be written; what was there stays.
        """
        write_note(self.path, _COMMITTED, json.dumps(known).encode())

    def committed(self) -> Any:
        """The record of the last commit before the end; None where there was none."""
        try:
            with open(os.path.join(self.path, _COMMITTED), "rb") as stream:
                return json.load(stream)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StateFailedError(
                f"what was committed of the run {self.record.id} cannot be read: {error}",
                hint=f"`filepact runs --discard {self.record.id}` drops what was not committed.",
            ) from None

    def keep(self, name: str, data: bytes) -> None:
        """Keep bytes by their content id, unless they are.

        Raises:
            StateFailedError: They cannot be written.
        """
        folder = os.path.join(self.path, "kept")
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        if not os.path.exists(os.path.join(folder, name)):
            write_note(folder, name, data)

    def kept(self, name: str) -> bytes:
        """Bytes that were kept.

        Raises:
            NotFoundError: They were not.
        """
        try:
            with open(os.path.join(self.path, "kept", name), "rb") as stream:
                return stream.read()
        except OSError:
            raise NotFoundError("the content of a file at a commit was not kept") from None

    def asked(self) -> list[str]:
        """Who asks for a commit, by names of theirs."""
        names = (one for one in os.listdir(self.path) if one.startswith(_ASKED))
        # One with a dot is still being written: answered now, it would be asked under its own name.
        return [one.removeprefix(_ASKED) for one in names if "." not in one]

    def answer(self, name: str, facts: object) -> None:
        """Answer somebody who asked.

        Raises:
            StateFailedError: It cannot be written.
        """
        write_note(self.path, _ANSWERED + name, json.dumps(facts).encode())
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.path, _ASKED + name))

    def keep_apart(self, path: str) -> str:
        """Move a file of this machine out of its place; the place that it has now.

        Raises:
            OSError: The system refused.
        """
        folder = os.path.join(self.path, _APART)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        target = os.path.join(folder, f"{os.urandom(2).hex()}-{os.path.basename(path)}")
        try:
            os.rename(path, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            target = f"{path}.{self.record.id}"
            os.rename(path, target)
        return target

    def discard(self) -> None:
        """Remove it with all that its layers hold; once that has begun, it is no run any more.

        Raises:
            StateFailedError: The system refused; what is left of it is removed when runs are listed.
        """
        try:
            os.rename(os.path.join(self.path, _RECORD), os.path.join(self.path, _DISCARDED))
            remove_tree(self.path)
        except OSError as error:
            raise _unusable(self.path, error) from None


def list_runs(state: str) -> tuple[RunRecord, ...]:
    """The runs of a state folder, oldest first."""
    folder = os.path.join(state, _RUNS)
    try:
        names = os.listdir(folder)
    except OSError:
        return ()
    paths = [os.path.join(folder, name) for name in names]
    for path in paths:
        if os.path.exists(os.path.join(path, _DISCARDED)):
            _remove_rest(path)
    return tuple(sorted(filter(None, map(_read, paths)), key=lambda one: one.created))


def _remove_rest(path: str) -> None:
    """Remove what a process has left that was killed while it discarded a run."""
    with suppress(OSError):  # another process does just that, or it cannot be removed
        lock = _lock(path)
        try:
            remove_tree(path)
        finally:
            os.close(lock)


def kept_files(state: str, record: RunRecord) -> int:
    """How many files, and folders without any, a run keeps, whatever a commit has said of them."""
    path = os.path.join(state, _RUNS, record.id)
    found = 0
    with suppress(FileNotFoundError):  # another process commits it just now
        for layer in RunFolder(path, record, -1).layers():
            paths = [one.path for one in layer_entries(layer.upper)]
            found += sum(not below.startswith(f"{one}/") for one, below in pairwise((*paths, "")))
        found += len(os.listdir(os.path.join(path, _APART)))
    return found


def is_going_on(state: str, name: str) -> bool:
    """Whether a process holds a run; one that is gone is held by none."""
    try:
        os.close(_lock(os.path.join(state, _RUNS, name)))
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


def ask_commit(state: str, name: str) -> dict[str, Any] | None:
    """Ask the process that holds a run for a commit, and wait for its answer.

    Args:
        state: The state folder.
        name: The run's id.

    Returns:
        What it answers; None if the run ends meanwhile.

    Raises:
        StateFailedError: It does not answer.
    """
    path = os.path.join(state, _RUNS, name)
    mine = os.urandom(4).hex()
    answer = os.path.join(path, _ANSWERED + mine)
    write_note(path, _ASKED + mine, b"")
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        try:
            with open(answer, "rb") as stream:
                found: dict[str, Any] = json.load(stream)
        except FileNotFoundError:
            if not is_going_on(state, name):
                return None
            time.sleep(_NAP)
        else:
            return found
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(path, _ASKED + mine))
    raise StateFailedError(
        f"the run {name} does not answer",
        hint="It may be stopped: continue it, or wait until its program has ended.",
    )


def _read(path: str) -> RunRecord | None:
    try:
        with open(os.path.join(path, _RECORD), "rb") as stream:
            found = json.load(stream)
        found["command"], found["roots"] = tuple(found["command"]), tuple(found["roots"])
        return RunRecord(**found)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _make_layers(path: str, roots: Sequence[str]) -> None:
    for number, root in enumerate(roots):
        os.stat(root)  # which may be gone
        above = os.path.join(path, str(number))
        for part in ("upper", TOP, "work"):
            os.makedirs(os.path.join(above, part), mode=0o700)
        with Root.open(root) as top, Root.open(above) as made:
            # As open as the root itself is: the overlay's top takes from here what it has.
            for part in ("upper", TOP):
                made.set_folder(part, top.folder_state(".") or FOLDER)
    os.mkdir(os.path.join(path, "private"), 0o700)


def _lock(path: str) -> int:
    """Take a run's lock.

    Raises:
        BlockingIOError: Somebody has it.
        FileNotFoundError: There is no such run any more.
    """
    lock = os.open(os.path.join(path, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise BlockingIOError(error.errno, error.strerror) from None
    return lock


def _unusable(path: str, error: OSError) -> StateFailedError:
    return StateFailedError(
        f"the folder of a run, {path}, cannot be used: {error.strerror}",
        hint="Make it writable or free space on its disk, then try again.",
    )
