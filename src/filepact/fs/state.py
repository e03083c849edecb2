"""The state folder: one person's journal, locks and rescued texts, outside every root."""

from __future__ import annotations

import errno
import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from filepact.domain.document import content_id
from filepact.domain.person import AGENT_VARIABLES, Ancestor, beyond_host, caller, host_among
from filepact.errors import StateFailedError
from filepact.fs.locks import FileLocks, ProcessLock
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from filepact.domain.document import RootId
    from filepact.domain.person import Caller

__all__ = [
    "NAME",
    "StateFolder",
    "ancestors",
    "audit_in",
    "calls_no_hook",
    "descendants",
    "forget_host",
    "holds",
    "journal_in",
    "note_host",
    "note_turns",
    "open_state",
    "read_answers",
    "read_note",
    "turn_noted",
    "who_calls",
    "whoami",
    "write_answers",
    "write_note",
]

NAME: Final = "store-name"
"""In the state folder: its name, by which a database knows its journal."""

_JOURNAL = "journal.db"
_ANSWERS = "programs.json"
_MOST_ANSWERS = 50

_LONGEST_NOTE = 1 << 20
_ROOM = 1 << 18
"""Bytes that are kept free for the end of operations."""
_HOSTS, _PREFIX = "hooks", "host-"
_MOST_ABOVE, _MOST_BELOW, _LONGEST_LINE, _LONGEST_NAME = 64, 1_024, 4_096, 256
_LARGEST_NOTE = 1 << 16


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The folder and what is in it.

    Attributes:
        path: Its true absolute path.
        locks: One lock for each real file, and for each conversation that a process goes on with.
    """

    path: str
    locks: FileLocks

    @property
    def database(self) -> str:
        """The path of the journal."""
        return os.path.join(self.path, _JOURNAL)

    @property
    def name(self) -> str:
        """The name of this folder among all that use a database; made when it is asked for first.

        Raises:
            StateFailedError: It cannot be read, or not be written down.
        """
        found = self._name()
        if not found:
            # Whoever is second to make it finds that of the first.
            with self.locks.hold({NAME}):
                found = self._name()
                if not found:
                    found = f"{os.uname().nodename} {os.urandom(8).hex()}".encode(
                        "ascii", "replace"
                    )
                    write_note(self.path, NAME, found)
        return found.decode("ascii", "replace")

    def _name(self) -> bytes:
        """The name as it is written down, and nothing where none is: a name that cannot be read must stay."""
        try:
            return _read(os.path.join(self.path, NAME))
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise StateFailedError(
                f"the name of the state folder cannot be read ({error.strerror})",
                hint=f"Make {NAME} in it readable; without it a database does not know this journal.",
            ) from None

    @property
    def known(self) -> str:
        """The path of the file that keeps what sessions know of files."""
        return os.path.join(self.path, "known.db")

    @property
    def gateway(self) -> str:
        """The path of the file that the processes of a gateway have in common."""
        return os.path.join(self.path, "gateway.db")

    @property
    def audit(self) -> str:
        """The folder of the audit log."""
        return audit_in(self.path)

    def snapshot(self, roots: Iterable[RootId]) -> str:
        """The path of the file that keeps a snapshot of some roots, in their order."""
        names = "\0".join(roots).encode("utf-8", "surrogateescape")
        return os.path.join(self.path, "snapshots", f"{content_id(names)[:16]}.db")

    def has_snapshot(self, roots: Iterable[RootId]) -> bool:
        """Whether there is a snapshot of some roots; most people have none, and to name the file takes its time."""
        folder = os.path.join(self.path, "snapshots")
        return os.path.exists(folder) and os.path.exists(self.snapshot(roots))

    def checkout(self, root: RootId) -> str:
        """The path of the file in which a checkout of a shared workspace remembers itself."""
        name = content_id(root.encode("utf-8", "surrogateescape"))[:16]
        return os.path.join(self.path, "checkouts", f"{name}.jsonl")

    def is_checkout(self, root: RootId) -> bool:
        """Whether a root is such a checkout; as with snapshots, most people have none."""
        folder = os.path.join(self.path, "checkouts")
        return os.path.exists(folder) and os.path.exists(self.checkout(root))

    def guarding(self, root: RootId) -> ProcessLock:
        """The lock of the one process that guards a root."""
        name = content_id(root.encode("utf-8", "surrogateescape"))[:16]
        return ProcessLock(os.path.join(self.path, "guards", name))

    def keep_room(self) -> None:
        """Make sure, before an operation begins, that there is room to record its end.

        A file holds it.  SQLite can be told to reserve room in a database, but not in the
        write-ahead log beside it, to which everything is written first.

        Raises:
            StateFailedError: There is none.
        """
        place = os.path.join(self.path, "room")
        with suppress(OSError):
            if os.stat(place).st_size == _ROOM:
                return
        try:
            descriptor = os.open(place, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                # Nothing that a file system could leave out or make smaller.
                if os.pwrite(descriptor, os.urandom(_ROOM), 0) != _ROOM:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(descriptor)
        except OSError as error:
            self.give_room()
            raise StateFailedError(
                f"there is no room in the state folder ({error.strerror})",
                hint="Nothing was changed. Make room and try again.",
            ) from None

    def give_room(self) -> None:
        """Remove the file that keeps room, so that the journal can use the room."""
        with suppress(OSError):
            os.truncate(os.path.join(self.path, "room"), 0)

    def rescue(self, name: str, data: bytes, folder: str = "rescued") -> str:
        """Keep bytes that would be lost otherwise; the path they were put under."""
        folder = os.path.join(self.path, folder)
        # Cut by bytes: a name of a hundred letters may have four hundred of them.
        end = os.fsencode(name.replace("/", "_"))[-150:].decode("utf-8", "ignore")
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            for number in range(10_000):
                path = os.path.join(folder, f"{stamp}-{number}-{end}")
                with suppress(FileExistsError):
                    _write_new(path, data)
                    return path
        except OSError as error:
            raise StateFailedError(
                f"a text that would be lost cannot be kept in {folder}: {error.strerror}",
                hint="Make room there.",
            ) from None
        raise StateFailedError(f"no free name left in {folder}", hint="Clear that folder.")


def _keep_apart(path: str, root: RootId) -> None:
    """Refuse to keep state where agents may write, or a root that holds the state.

    Raises:
        StateFailedError: One lies within the other.
    """
    if holds(root, path):
        raise StateFailedError(
            f"the root {root} holds the state folder {path}, where no agent may write",
            hint="Name folders below that root instead, or keep the state elsewhere with --state "
            "or FILEPACT_STATE_DIR.",
            holds=path,
        )
    if holds(path, root):
        raise StateFailedError(
            f"the root {root} lies in the state folder {path}",
            hint="Choose another state folder with --state or FILEPACT_STATE_DIR.",
        )


def journal_in(folder: str) -> str | None:
    """The journal of a state folder, which is not made; None where there is none.

    Raises:
        StateFailedError: A symbolic link stands in its place.
    """
    path = os.path.join(folder, _JOURNAL)
    if os.path.islink(path):
        # What SQLite keeps beside a journal would lie where the link leads to, perhaps in a root
        # where an agent may write, and behind the sandbox nothing there can be opened.
        raise StateFailedError(
            f"{path} is a symbolic link, but a journal has to be in the state folder itself",
            hint="Put the file in the place of the link, or name the folder that it lies in with "
            "--state or FILEPACT_STATE_DIR.",
        )
    return path if os.path.isfile(path) else None


def audit_in(folder: str) -> str:
    """The folder of the audit log in a state folder."""
    return os.path.join(folder, "audit")


def whoami() -> tuple[int, str, str]:
    """The number and name of whoever runs this process, and the machine's name; a name may be empty."""
    import pwd  # noqa: PLC0415 - does not exist on Windows, where roots are refused first

    number = os.geteuid()
    try:
        name = pwd.getpwuid(number).pw_name
    except KeyError:
        name = ""
    return number, name, os.uname().nodename


def holds(outer: str, inner: str) -> bool:
    """Whether a folder is another or lies in it, by what they are and not by their names.

    One folder may have several names: a second mount of it, or other letter case.  The inner one
    may not be there yet.
    """
    inner = os.path.realpath(inner)
    while True:
        with suppress(OSError):
            if os.path.samefile(outer, inner):
                return True
        above = os.path.dirname(inner)
        if above == inner:
            return False
        inner = above


def read_note(folder: str, name: str) -> bytes:
    """A small file of the state folder; nothing where it is not there or cannot be read."""
    try:
        return _read(os.path.join(folder, name))
    except OSError:
        return b""


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:
        return stream.read(_LONGEST_NOTE)


def write_note(folder: str, name: str, data: bytes) -> None:
    """Replace a small file of the state folder, whole or not at all.

    Raises:
        StateFailedError: It cannot be written; what was there stays.
    """
    path = os.path.join(folder, name)
    temporary = f"{path}.{os.getpid()}"
    try:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        _write_new(temporary, data)
        os.rename(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise StateFailedError(
            f"the state folder cannot be written ({error.strerror})",
            hint="Make it writable or free space on its disk, then try again.",
        ) from None


def read_answers(state_dir: str) -> dict[str, Any]:
    """Answers, at most a day old, of the programs that language servers need, by program."""
    try:
        kept = json.loads(read_note(state_dir, _ANSWERS))
        return {
            str(key): (float(when), bool(well), dict(said))
            for key, (when, well, said) in kept.items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}


def write_answers(state_dir: str, answers: Mapping[str, Any] | None) -> None:
    """Keep these besides for the next starts, or none at all; what cannot be kept is asked again."""
    if answers == {}:
        return
    kept = {} if answers is None else {**read_answers(state_dir), **answers}
    latest = sorted(kept.items(), key=lambda pair: pair[1][0])[-_MOST_ANSWERS:]
    with suppress(StateFailedError):
        write_note(state_dir, _ANSWERS, json.dumps(dict(latest)).encode())


def _write_new(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(descriptor)


def open_state(path: str, roots: Iterable[RootId] = ()) -> StateFolder:
    """Open the state folder; when it is missing it is made, after all else was found right.

    Args:
        path: The folder.
        roots: Where agents may write; the folder lies in none of them, and none in it.

    Raises:
        StateFailedError: One lies within the other, or another user could read or replace what is
            in the folder, or its journal is a symbolic link.
    """
    for root in roots:
        _keep_apart(path, root)
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        true = os.path.realpath(path, strict=True)
        found = os.stat(true)
    except OSError as error:
        raise StateFailedError(
            f"the state folder {path} cannot be used: {error.strerror}",
            hint="Choose another with --state or FILEPACT_STATE_DIR.",
        ) from None
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise StateFailedError(
            f"the state folder {path} belongs to another user",
            hint="Choose another with --state or FILEPACT_STATE_DIR.",
        )
    if found.st_mode & 0o022:
        raise StateFailedError(
            f"other users may write into the state folder {path}", hint=f"chmod 700 {path}"
        )
    journal_in(true)
    return StateFolder(true, FileLocks(os.path.join(true, "locks")))


# -- agents' programs --------------------------------------------------------------------------------


def ancestors(
    process: int | None = None, *, commands: bool = True
) -> tuple[tuple[Ancestor, ...], bool]:
    """A process and those above it, the nearest first, and whether these are all.

    Args:
        process: The number of the first one; None for the one that has started us.
        commands: Whether their command lines are wanted as well.
    """
    found: list[Ancestor] = []
    process = os.getppid() if process is None else process
    while process and len(found) < _MOST_ABOVE:
        try:
            one, (process, *_) = _process(process, commands=commands)
        except (OSError, ValueError, IndexError):
            return tuple(found), False
        found.append(one)
    return tuple(found), bool(found) and not process


def ticks_now() -> int:
    """The time in the count in which the system says when a process began."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return int(time.clock_gettime(clock) * os.sysconf("SC_CLK_TCK"))


def descendants(process: int, after: int = -1, agent: str = "") -> tuple[Ancestor, ...]:
    """The descendants of a process, as far as the system tells.

    Args:
        process: The process.
        after: What it started until then is left out, with all below that; as of `ticks_now`.
        agent: Whose program it is: what is for certain from below it, and has lost its parent, counts as well.
    """
    found: list[Ancestor] = []
    with suppress(OSError, ValueError, IndexError):
        found += _orphans(process, agent, after) if agent else ()
    waiting = [process, *(one.process for one in found)]
    while waiting and len(found) < _MOST_BELOW:
        folder = f"/proc/{waiting.pop()}/task"
        with suppress(OSError, ValueError):
            for thread in os.listdir(folder):
                told = _read_some(f"{folder}/{thread}/children", _LONGEST_LINE)
                for one in map(int, told.split()):
                    with suppress(OSError, ValueError, IndexError):
                        child = _process(one, commands=True)[0]
                        if int(child.started) > after:
                            found.append(child)
                            waiting.append(one)
    return tuple(found)


def _orphans(host: int, agent: str, after: int) -> Iterator[Ancestor]:
    """The processes left to one above an agent's program, of its group, or of no living session and with its mark."""
    marks = [f"\0{name}=" for name, whose in AGENT_VARIABLES.items() if whose == agent]
    (_, *above), _ = ancestors(host, commands=False)
    tops, (_, (_, of, _)) = {1, *(one.process for one in above)}, _process(host, commands=False)
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, ValueError, IndexError):
            one, (parent, group, session) = _process(int(name), commands=True)
            # Nobody is started in another session: it was left to its parent, or has begun one itself.
            begun = session in (one.process, _process(parent, commands=False)[1][2])
            if parent in tops and not begun and int(one.started) > after:
                told = "\0" + _read_some(f"/proc/{name}/environ", _LONGEST_NOTE)
                alone = group == of or not os.path.exists(f"/proc/{session}")
                if group == host or (alone and any(one in told for one in marks)):
                    yield one


def _process(process: int, *, commands: bool) -> tuple[Ancestor, tuple[int, ...]]:
    """A process, and the numbers of the one that has started it, of its group and of its session.

    Raises:
        OSError, ValueError, IndexError: It is gone, or the system does not tell.
    """
    # The name stands in brackets and may hold any; what follows the last one is numbers.
    told = _read_some(f"/proc/{process}/stat", _LONGEST_LINE).partition("(")[2]
    name, _, rest = told.rpartition(")")
    numbers = rest.split()
    words = _read_some(f"/proc/{process}/cmdline", _LONGEST_LINE) if commands else ""
    said = tuple(words.rstrip("\0").split("\0")) if words else ()
    return Ancestor(process, numbers[19], name, said), tuple(map(int, numbers[1:4]))


def who_calls(states: Iterable[str], *, serves: bool = False) -> Caller:
    """Who has called this program.

    Args:
        states: State folders that may hold notes.
        serves: Whether it serves the program that has started it, so that only what is above that one counts.
    """
    chain, known = ancestors()
    if serves:
        chain = tuple(beyond_host(chain))
    noted: dict[tuple[int, str], str] = {}
    for state in dict.fromkeys(states):
        for one in chain:
            with suppress(OSError):
                told = _read_some(_note(state, one), _LONGEST_NAME).partition("\n")[0]
                noted[one.process, one.started] = told or one.program
    # Some agents set their variables for their servers as well.
    return caller(chain, noted, {} if serves else os.environ, known=known)


def note_host(state: str, above: Sequence[Ancestor], agent: str) -> Ancestor | None:
    """Note the program for which a hook was called, or that we run.

    Args:
        state: The state folder.
        above: The processes above the hook, the nearest first.
        agent: The agent's name; empty where it is not known yet.

    Returns:
        The program; None where a person may be it.
    """
    host = host_among(above)
    if host is None:
        return None
    folder = os.path.join(state, _HOSTS)
    try:
        os.makedirs(state, 0o700, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(_note(state, host), flags, 0o600)
    except OSError:
        return host  # Noted before, or there is no folder to note anything in.
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(agent or host.agent)
    _forget(folder)
    return host


def note_turns(state: str, host: tuple[int, str], turns: Mapping[str, str]) -> None:
    """Note besides for which turns a program calls tools of ours just now, for the servers that it has started.

    Args:
        state: The state folder.
        host: The program as it was noted, by its number and start time.
        turns: The turn of each call, by the host's names for both.
    """
    path = os.path.join(state, _HOSTS, f"{_PREFIX}{host[0]}-{host[1]}")
    with suppress(OSError):
        agent = _read_some(path, _LONGEST_NAME).partition("\n")[0]
        temporary = os.path.join(state, _HOSTS, f".{os.getpid()}.turns")
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{agent}\n{json.dumps(turns)}")
        os.rename(temporary, path)


def turn_noted(state: str, above: Iterable[Ancestor], call: str) -> str:
    """The turn for which a program that has started us makes a call, by its hooks; empty where they do not tell.

    Args:
        state: The state folder.
        above: The processes above us, the nearest first.
        call: The host's name for the call; empty where it does not tell, and then all have to be of one turn.
    """
    # Where no hook was ever called, no process has to be asked for.
    for one in above if os.path.isdir(os.path.join(state, _HOSTS)) else ():
        with suppress(OSError, ValueError):
            turns = json.loads(_read_some(_note(state, one), _LARGEST_NOTE).partition("\n")[2])
            found = {turns[call]} if call in turns else {*turns.values()}
            return str(*found) if len(found) == 1 else ""
    return ""


def calls_no_hook(state: str, above: Sequence[Ancestor], said: str = "") -> bool:
    """Whether a program that waits for an answer of ours has called no hook before; False where nobody knows.

    Args:
        state: The state folder.
        above: The processes above us, the nearest first.
        said: Names what is said to that program; then it is True but once for each name.
    """
    if host_among(above) is None or any(os.path.lexists(_note(state, one)) for one in above):
        return False
    if not said:
        return True
    name = f"unheard-{content_id(os.fsencode(said))[:16]}"
    with suppress(OSError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        os.close(os.open(os.path.join(state, name), flags, 0o600))
        return True
    return False


def forget_host(state: str, host: tuple[int, str]) -> None:
    """Take back what `note_host` has noted of a process, by its number and start time."""
    with suppress(OSError):
        os.unlink(os.path.join(state, _HOSTS, f"{_PREFIX}{host[0]}-{host[1]}"))


def _forget(folder: str) -> None:
    """Remove the notes of processes that are gone, so that there are never more of them than processes."""
    for name in os.listdir(folder):
        if not name.startswith(_PREFIX):
            continue
        process, _, started = name.removeprefix(_PREFIX).partition("-")
        # What a sandbox does not show is not gone.
        there, _ = ancestors(int(process), commands=False) if process.isdigit() else ((), False)
        gone = there[0].started != started if there else not os.path.lexists(f"/proc/{process}")
        if gone and os.path.lexists("/proc/self"):
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))


def _note(state: str, one: Ancestor) -> str:
    return os.path.join(state, _HOSTS, f"{_PREFIX}{one.process}-{one.started}")


def _read_some(path: str, most: int) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.read(descriptor, most).decode("utf-8", "replace")
    finally:
        os.close(descriptor)
