"""The files of the audit log in the state folder: appended to by all processes in one order, never changed.

Each file is named by the number of its first record.  Beside them a note tells the number and the hash of the
last record and where its file ends, so that nobody has to look for it; whoever appends holds a lock on
that note.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from typing import TYPE_CHECKING, Final

from filepact.domain.audit import NOTHING, digest, follows
from filepact.domain.document import content_id
from filepact.errors import StateFailedError
from filepact.fs.kernel import data_sync
from filepact.fs.state import write_note
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from filepact.domain.audit import AuditCheck, JournalSummary

    MakeLine = Callable[[int, str], bytes]
    """Makes a record's line of its number and the hash of the line before it."""

    Mend = Callable[[str, Mapping[str, object]], MakeLine]
    """Makes such a function for a record about what is wrong with the end of the log: the event, and facts."""

__all__ = ["AuditFile", "AuditFileInfo"]

_HEAD: Final = "head"
_KEY: Final = "key"
_KEY_BYTES: Final = 32
_ENDING: Final = ".jsonl"
_HEAD_BYTES: Final = 256
_LONGEST_LINE: Final = 1 << 24
_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class AuditFileInfo:
    """A file of the log.

    Attributes:
        name: Its name in the folder.
        first: The number of its first record.
        size: In bytes.
        modified: When it was last appended to, seconds since the epoch.
    """

    name: str
    first: int
    size: int
    modified: float


@dataclass(frozen=True, slots=True)
class _Head:
    """The head of a log: its last record, and the file that holds it.

    Attributes:
        size: Where that file ends.
    """

    seq: int = 0
    last: str = NOTHING
    first: int = 1
    size: int = 0


class AuditFile:
    """Appends records, one at a time over all processes.  For all threads.

    Args:
        folder: Where its files are; made with the first record.
        largest: Bytes after which another file is begun.
    """

    def __init__(self, folder: str, largest: int) -> None:
        self.folder = folder
        self._largest = largest
        self._turn = threading.Lock()
        self._note = -1
        self._descriptor = -1
        self._first = 0
        self._head = _Head()
        self._told = b""

    def append(self, mend: Mend, *makes: MakeLine) -> int:
        """Append records, one right after the other.

        Args:
            mend: Makes the lines of records about what is wrong with the end of the log.
            makes: Each makes the line of one.

        Returns:
            The number of the last.

        Raises:
            StateFailedError: It cannot be written; nothing was.
        """
        with self._turn:
            try:
                if self._note < 0:
                    self._open()
                fcntl.flock(self._note, fcntl.LOCK_EX)
                try:
                    head = self._head
                    # Mostly nobody else has appended since.
                    status = os.fstat(self._descriptor) if self._told else None
                    if (
                        status is None
                        or os.pread(self._note, _HEAD_BYTES, 0) != self._told
                        or (status.st_size, status.st_nlink) != (head.size, 1)
                    ):
                        head = self._ready(mend)
                    while head.size > self._largest:
                        head = self._in_next_file(head, mend)
                    return self._write(head, *makes)
                finally:
                    fcntl.flock(self._note, fcntl.LOCK_UN)
            except OSError as error:
                self._let_go()
                raise StateFailedError(
                    f"the audit log in {self.folder} cannot be written ({error.strerror})",
                    hint="Make it writable or free space on its disk, then try again.",
                ) from None

    def sync(self) -> None:
        """Make what was appended last as long as the disk."""
        with self._turn, contextlib.suppress(OSError):
            if self._descriptor >= 0:
                data_sync(self._descriptor)

    def close(self) -> None:
        with self._turn:
            self._let_go()

    @property
    def begun(self) -> bool:
        """Whether anything was ever recorded."""
        return os.path.lexists(os.path.join(self.folder, _HEAD)) or bool(self.files())

    def files(self) -> tuple[AuditFileInfo, ...]:
        """The files, oldest first."""
        found = []
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(self.folder) as entries,
        ):
            for entry in entries:
                number = entry.name.removesuffix(_ENDING)
                if entry.name.endswith(_ENDING) and number.isdecimal() and not entry.is_symlink():
                    status = entry.stat()
                    found.append(
                        AuditFileInfo(entry.name, int(number), status.st_size, status.st_mtime)
                    )
        return tuple(sorted(found, key=lambda one: one.first))

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of a file, each with its newline; a longer one than any record comes in parts.

        Raises:
            StateFailedError: It cannot be read.
        """
        try:
            with open(
                os.open(os.path.join(self.folder, name), os.O_RDONLY | _FLAGS), "rb"
            ) as stream:
                while line := stream.readline(_LONGEST_LINE):
                    yield line
        except OSError as error:
            raise StateFailedError(
                f"the audit log {name} cannot be read ({error.strerror})"
            ) from None

    def check(
        self,
        found: AuditCheck,
        tell: Callable[[str], None],
        journal: Callable[[], JournalSummary | None] = lambda: None,
    ) -> tuple[int, str] | None:
        """Hand all lines to a check; what the note tells of the last record, None where it is gone.

        Nothing is appended meanwhile, so that what the journal tells is of the same moment.

        Raises:
            StateFailedError: It cannot be read.
        """
        if not os.path.isdir(self.folder):
            account = journal()
            # Of what a journal tells, the log was begun before: by now it is there.
            if not os.path.isdir(self.folder):
                found.against(account)
                return None
        try:
            with self._turn, self._held():
                found.against(journal())
                for file in self.files():
                    tell(f"reading {file.name}")
                    found.begin(file.name)
                    for line in self.lines(file.name):
                        found.add(line)
                head = self._read_head()
        except OSError as error:
            raise StateFailedError(
                f"the audit log in {self.folder} cannot be read ({error.strerror})"
            ) from None
        return None if head is None else (head.seq, head.last)

    @contextlib.contextmanager
    def _held(self, lock: int = fcntl.LOCK_SH) -> Iterator[None]:
        """Keep others from appending."""
        if self._note < 0:
            try:
                self._open()
            except OSError:
                # Where nothing can be written, nobody appends, and the note may be missing.
                path = os.path.join(self.folder, _HEAD)
                readable = path if os.path.exists(path) else os.devnull
                self._note = os.open(readable, os.O_RDONLY | _FLAGS)
        fcntl.flock(self._note, lock)
        try:
            yield
        finally:
            fcntl.flock(self._note, fcntl.LOCK_UN)

    def remove(self, name: str) -> None:
        """Remove a file of which the log says that it was given up."""
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.folder, name))

    def key(self, make: Callable[[], bytes]) -> bytes:
        """The private key beside the log, made when it is first needed.

        Raises:
            StateFailedError: It can neither be read nor made.
        """
        path = os.path.join(self.folder, _KEY)
        try:
            # Who makes it keeps others from reading half of it, or making one besides.
            with self._turn, self._held(fcntl.LOCK_EX):
                if not os.path.lexists(path):
                    write_note(self.folder, _KEY, make().hex().encode())
                with open(os.open(path, os.O_RDONLY | _FLAGS), "rb") as stream:
                    key = bytes.fromhex(stream.read(256).decode("ascii"))
            if len(key) != _KEY_BYTES:
                raise ValueError("it is no key")  # noqa: TRY301 - told as what cannot be read
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", "") or "it is no key"
            raise StateFailedError(
                f"the key of the audit log, {path}, cannot be used ({said})",
                hint="Move it away: a new one is made with the next signature.",
            ) from None
        return key

    # -- under the lock -----------------------------------------------------------------------

    def _open(self) -> None:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        path = os.path.join(self.folder, _HEAD)
        self._note = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)

    def _let_go(self) -> None:
        for descriptor in (self._note, self._descriptor):
            if descriptor >= 0:
                os.close(descriptor)
        self._note = self._descriptor = -1
        self._first, self._told = 0, b""

    def _read_head(self) -> _Head | None:
        try:
            seq, last, first, size = os.pread(self._note, _HEAD_BYTES, 0).split()
            return _Head(int(seq), last.decode("ascii"), int(first), int(size))
        except ValueError:
            return None

    def _use(self, first: int) -> int:
        """Open the file that begins with a record; its size."""
        status = os.fstat(self._descriptor) if self._first == first else None
        if status is None or not status.st_nlink:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
            path = os.path.join(self.folder, f"{first:012d}{_ENDING}")
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _FLAGS, 0o600)
            self._first = first
            status = os.fstat(self._descriptor)
        return status.st_size

    def _ready(self, mend: Mend) -> _Head:
        """The end of the log, put right where a crash or a stranger has left it otherwise."""
        head = self._read_head()
        if head is None:
            files = self.files()
            if not files:
                self._use(1)
                return _Head()
            head = self._found_end(files[-1].first)
            self._write(head, mend("lost head", {}))
            return self._head
        size = self._use(head.first)
        if size == head.size:
            return head
        if size > head.size:
            return self._adopt(head, size, mend)
        left = self._found_end(head.first)
        # Its numbers go on where they were, so that what is missing stays to be seen.
        facts = {"first": left.seq + 1, "last": head.seq}
        self._write(_Head(head.seq, left.last, left.first, left.size), mend("gap", facts))
        return self._head

    def _adopt(self, head: _Head, size: int, mend: Mend) -> _Head:
        """Take over whole records that the note does not tell of yet; own up to anything else there."""
        rest = os.pread(self._descriptor, size - head.size, head.size)
        while rest:
            line, newline, after = rest.partition(b"\n")
            if not newline or not follows(line, head.seq, head.last):
                break
            head = _Head(head.seq + 1, digest(line), head.first, head.size + len(line) + 1)
            rest = after
        if not rest:
            return head
        if not rest.endswith(b"\n"):
            self._put(b"\n", size)
            rest += b"\n"
        head = _Head(head.seq, head.last, head.first, head.size + len(rest))
        self._write(head, mend("torn", {"bytes": len(rest), "sha256": content_id(rest)}))
        return self._head

    def _found_end(self, first: int) -> _Head:
        """The last record of a file that can be read, and where the file ends."""
        size = self._use(first)
        seq, last, end = first - 1, NOTHING, 0
        with open(os.dup(self._descriptor), "rb") as stream:
            stream.seek(0)
            for line in stream:
                end += len(line)
                if line.endswith(b"\n") and (seq < first or follows(line, seq, last)):
                    seq, last = seq + 1, digest(line)
        if end and os.pread(self._descriptor, 1, size - 1) != b"\n":
            self._put(b"\n", size)
            size += 1
        return _Head(seq, last, first, size)

    def _in_next_file(self, head: _Head, mend: Mend) -> _Head:
        """This end of the log, in the next file: its file is full."""
        size = self._use(head.seq + 1)
        head = _Head(head.seq, head.last, head.seq + 1, 0)
        # A process may have died when it had begun this file, and the note does not tell of it yet.
        return self._adopt(head, size, mend) if size else head

    def _write(self, head: _Head, *makes: MakeLine) -> int:
        lines, seq, last = [], head.seq, head.last
        for make in makes:
            lines.append(line := make(seq + 1, last))
            seq, last = seq + 1, digest(line)
        data = b"".join(lines)
        self._put(data, head.size)
        size = head.size + len(data)
        self._told = b"%d %b %d %d\n" % (seq, last.encode(), head.first, size)
        self._told = self._told.rjust(_HEAD_BYTES)
        os.pwrite(self._note, self._told, 0)
        self._head = _Head(seq, last, head.first, size)
        return seq

    def _put(self, data: bytes, size: int) -> None:
        """Write all of it at the end, or nothing."""
        written, said = 0, "no room left"
        try:
            written = os.write(self._descriptor, data)
        except OSError as error:
            said = error.strerror or said
        if written != len(data):
            # Nobody was told of these bytes, and nobody else writes while we hold the lock.
            os.ftruncate(self._descriptor, size)
            raise OSError(errno.EIO, said)
