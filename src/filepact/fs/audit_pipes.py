"""Parts of the audit log that go elsewhere: signed heads to a place outside, lines to a system's log, telemetry to a file.

What is run for it is decided by the settings of the person alone: without a shell, in the uppermost folder, with an
environment that is made here, and never from a folder that agents change.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import subprocess
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

from filepact.domain.document import content_id
from filepact.errors import StateFailedError
from filepact.fs.state import holds
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from filepact.domain.operation import AuditOptions

__all__ = ["SAFE_SETTINGS", "AuditPipes", "HeadPlace", "open_appending", "open_audit_pipes"]

SAFE_SETTINGS: Final = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "protocol.allow=never"),
    *("core.useReplaceRefs=false", "gc.auto=0", "core.alternateRefsCommand="),
)
"""Overrule what would have Git start programs that a repository names."""
_PATIENCE: Final = 10.0  # seconds of a command
_LONGEST: Final = 1 << 16
_SYSLOG_PRIORITY: Final = 10 * 8 + 5  # of RFC 5424: authorization, notice
_SYSLOG_SECONDS: Final = 2.0
_PATH: Final = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin"
_REF: Final = "filepact-audit"
_GIT: Final = {
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "filepact"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "filepact@localhost"),
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "",
}


class HeadPlace:
    """A place outside where signed heads are kept; nothing is done there before it is asked for.

    Args:
        named: The absolute path of a file; ``git:`` and that of a repository; or the words of a command.
        roots: The folders that agents change: nothing in them is used.

    Attributes:
        name: What records call it.
    """

    def __init__(self, named: str | Sequence[str], roots: Sequence[str] = ()) -> None:
        text = named if isinstance(named, str) else ""
        self._repository = text.removeprefix("git:") if text.startswith("git:") else ""
        self._path = "" if self._repository else text
        self._command = [] if text else list(named)
        kind = "file" if self._path else "git" if self._repository else "command"
        self.name = f"{kind} {content_id(repr(named).encode())[:12]}"
        paths = [self._path or self._repository] if text else self._command
        inside = [one for one in paths if os.path.isabs(one) and _within(one, roots)]
        self._refused = f"{inside[0]} is in a folder that agents change" if inside else ""
        self._file: BinaryIO | None = None
        self._helper: socket.socket | None = None

    def open(self, *, confined: bool) -> None:
        """Open what is not within reach later; what cannot be opened is told by `keep`.

        Args:
            confined: Whether this process is about to confine itself; it has no threads then.
        """
        if self._path and not self._refused:
            with suppress(StateFailedError):
                self._file = open_appending(self._path)
        elif confined and not self._refused:
            self._helper, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._helper.settimeout(2 * _PATIENCE)
            if os.fork() == 0:
                self._serve(theirs)
            theirs.close()

    def _serve(self, asked: socket.socket) -> None:
        """Keep heads for a process that has confined itself, in one that has not, until it ends."""
        try:
            os.setsid()
            os.dup2(asked.fileno(), 3)
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(nothing, number)
            os.closerange(4, os.sysconf("SC_OPEN_MAX"))
            own = socket.socket(fileno=3)
            while note := own.recv(_LONGEST):
                try:
                    self._run_for(note)
                    own.send(b"ok")
                except OSError as error:
                    own.send((error.strerror or "it failed").encode())
        finally:
            os._exit(0)

    def keep(self, note: bytes) -> None:
        """Keep a head there.

        Raises:
            OSError: It is not kept.
        """
        if self._refused:
            raise OSError(errno.EPERM, self._refused)
        if self._path:
            if self._file is None:
                with closing(_appending(self._path)) as file:
                    _add(file, note)
            else:
                _add(self._file, note)
        elif self._helper is not None:
            self._helper.send(note)
            said = self._helper.recv(_LONGEST)
            if said != b"ok":
                raise OSError(errno.EIO, said.decode() or "its process has ended")
        else:
            self._run_for(note)

    def kept(self) -> str:
        """The heads that are there, one after the other.

        Raises:
            OSError: They cannot be read.
        """
        if self._refused:
            raise OSError(errno.EPERM, self._refused)
        if self._path:
            try:
                with open(self._path, encoding="utf-8", errors="replace") as file:
                    return file.read()
            except FileNotFoundError:
                return ""
        if self._command:
            return _run([*self._command, "list"], answer=True).decode("utf-8", "replace")
        git, about = self._git()
        if not _run([*git, "for-each-ref", f"refs/notes/{_REF}"], answer=True):
            return ""
        return _run([*git, "notes", f"--ref={_REF}", "show", about], answer=True).decode()

    def close(self) -> None:
        for one in (self._file, self._helper):
            if one is not None:
                one.close()

    def _run_for(self, note: bytes) -> None:
        if self._command:
            _run([*self._command, "keep"], note)
            return
        git, about = self._git()
        folder = os.open(self._repository, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # Of two that add to the same note at once Git would lose one.
            fcntl.flock(folder, fcntl.LOCK_EX)
            _run([*git, "notes", f"--ref={_REF}", "append", "-F", "-", about], note)
        finally:
            os.close(folder)

    def _git(self) -> tuple[list[str], str]:
        """How Git is called, and what the note is about: the empty tree, which every repository has."""
        found = (os.path.join(folder, "git") for folder in _PATH.split(":"))
        program = next((one for one in found if os.access(one, os.X_OK)), "/usr/bin/git")
        git = [program, "-C", self._repository]
        for one in SAFE_SETTINGS:
            git += ["-c", one]
        return git, _run(
            [*git, "hash-object", "-t", "tree", "--stdin"], answer=True
        ).decode().strip()


def _within(path: str, roots: Sequence[str]) -> bool:
    return any(holds(root, path) for root in roots)


def _add(file: BinaryIO, note: bytes) -> None:
    file.write(note)
    file.flush()
    os.fsync(file.fileno())


def _run(words: Sequence[str], given: bytes = b"", *, answer: bool = False) -> bytes:
    """Run a program, and return its output.

    Raises:
        OSError: It cannot be started, fails, or takes too long.
    """
    import pwd  # noqa: PLC0415 - as in `whoami`

    try:
        who = pwd.getpwuid(os.geteuid())
        person = {"HOME": who.pw_dir, "USER": who.pw_name, "LOGNAME": who.pw_name}
    except KeyError:
        person = {"HOME": "/"}
    try:
        done = subprocess.run(  # noqa: S603 - the settings of the person name it
            words,
            input=given,
            stdout=subprocess.PIPE if answer else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": _PATH, "LC_ALL": "C.UTF-8", **person, **_GIT},
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OSError(errno.ETIMEDOUT, f"{words[0]} took longer than {_PATIENCE:g} s") from None
    if done.returncode:
        raise OSError(errno.EIO, f"{words[0]} ended with status {done.returncode}")
    return done.stdout or b""


class _Syslog:
    """A system's log, which is told signed heads, each as one line.

    Args:
        path: Its socket.
    """

    name = ""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(_SYSLOG_SECONDS)
        self._path = path
        with suppress(OSError):  # which is told when there is something to say
            self._socket.connect(path)

    def keep(self, note: bytes) -> None:
        told = json.dumps(note.decode())
        said = f"<{_SYSLOG_PRIORITY}>filepact[{os.getpid()}]: audit head {told}"
        try:
            self._socket.send(said.encode())
        except OSError as error:
            if not isinstance(error, ConnectionError) and error.errno != errno.ENOTCONN:
                raise
            # It was started anew, or was not there the last time.
            self._socket.connect(self._path)
            self._socket.send(said.encode())

    def close(self) -> None:
        self._socket.close()


@dataclass(frozen=True, slots=True)
class AuditPipes:
    """The outside copies of the audit log, opened before a sandbox takes them out of reach.

    Attributes:
        heads: What keeps signed heads.
        spans: Takes telemetry.
        telemetry: As in the settings.
    """

    heads: tuple[HeadPlace | _Syslog, ...] = ()
    spans: BinaryIO | None = None
    telemetry: str = ""

    def keep(self, note: str) -> tuple[list[str], str]:
        """Keep a head; the names of the places that have it now, and what has failed, empty for nothing."""
        names, failed = [], ""
        for one in self.heads:
            try:
                one.keep(note.encode())
                names += [one.name] if one.name else []
            except OSError as error:
                failed = failed or str(error.strerror or error)
        return names, failed

    def close(self) -> None:
        """Let go of what heads go to."""
        for one in self.heads:
            with suppress(OSError):
                one.close()


def open_audit_pipes(
    options: AuditOptions, roots: Sequence[str], *, confined: bool = False
) -> AuditPipes:
    """Open what the settings name for the audit log.

    Args:
        options: The settings.
        roots: The folders that agents change.
        confined: As of `HeadPlace.open`.

    Raises:
        StateFailedError: Telemetry cannot be written.
    """
    heads: list[HeadPlace | _Syslog] = []
    if options.heads:
        heads.append(place := HeadPlace(options.heads, roots))
        place.open(confined=confined)
    if options.syslog:
        heads.append(_Syslog(options.syslog))
    spans = open_appending(options.telemetry) if options.telemetry.startswith("/") else None
    return AuditPipes(tuple(heads), spans, options.telemetry)


def open_appending(path: str) -> BinaryIO:
    """A file to which records are appended, open whatever is within reach later.

    Raises:
        StateFailedError: It cannot be written.
    """
    try:
        return _appending(path)
    except OSError as error:
        raise StateFailedError(
            f"{path} cannot be written ({error.strerror}), and the settings name it in [audit]",
            hint="Make its folder and give this account the right to append to it, or name another file.",
        ) from None


def _appending(path: str) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "ab")
