"""The process that an agent's program starts for each event: it hands it on to the daemon, and prints the answer.

Every tool call of an agent waits for it, so it loads nothing but what Python has loaded by then and
what is built in: `socket` and `typing` alone take longer than Python's own start.  The daemon is
started by whoever finds none, forked from this very process.
"""

from __future__ import annotations

import _socket as socket
import os
import stat
import time

from filepact import unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from argparse import Namespace
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import Final

    from filepact_cli.screen import Terminal
    from filepact_hooks.agents import HookMode
else:
    import _signal as signal

__all__ = ["PROBE", "PROTOCOL", "HookRequest", "answer", "hook", "peer", "run"]

PROBE: Final = "filepact-doctor"
"""The session of an event with which nothing but the hook is tried."""

PROTOCOL: Final = "filepact-hook-1"
"""Of the two ends, which may be of different versions after an update."""

_PATIENCE: Final = 20.0  # seconds; hosts wait for 30 to 60
_LARGEST: Final = 64 * 1024 * 1024
_BLOCK: Final = 1 << 16
_TRIES: Final = 3
_OPTIONS: Final = ("--event", "--root", "--state", "--config")


class HookRequest:
    """One event on its way to the daemon; no dataclass, which would have to be loaded.

    Args:
        agent: The agent's name on the command line.
        event: The event's name, where the host does not write it; else empty.
        mode: How far it goes.
        state: The state folder.
        config: The person's settings file, if it is not the usual one; else empty.
        roots: The folders, absolute, without links.

    Attributes:
        key: Names the daemon.
        head: Everything but the event, for the daemon.
    """

    __slots__ = ("config", "head", "key", "roots", "state")

    def __init__(
        self,
        agent: str,
        event: str,
        mode: HookMode,
        *,
        state: str,
        config: str,
        roots: tuple[str, ...],
    ) -> None:
        from _blake2 import blake2b  # noqa: PLC0415 - `hashlib` loads OpenSSL

        self.state = state
        self.config = config
        self.roots = roots
        named = os.fsencode("\0".join((config, *roots)))
        self.key = blake2b(named, digest_size=8).hexdigest()
        facts = os.fsencode("\0".join((PROTOCOL, agent, event, mode, config, *roots)))
        self.head = b"%d\n%b" % (len(facts), facts)


class _NoDaemonError(Exception):
    """The daemon cannot be reached; the text says why."""


def hook(words: Sequence[str]) -> int | None:
    """Do what the words after `filepact hook` say, if they are simple ones.

    Returns:
        The exit code, as of `run`; None where the whole command line has to explain the words.
    """
    agent, given = "", dict.fromkeys(_OPTIONS, "")
    mode: HookMode = ""
    only = False
    left = iter(words)
    for word in left:
        if word in ("--strict", "--record"):
            if mode:
                return None
            mode = "strict" if word == "--strict" else "record"
        elif word == "--where-set-up":
            only = True
        elif word in _OPTIONS:
            given[word] = next(left, "")
            if not given[word]:
                return None
        elif agent or word.startswith("-"):
            return None
        else:
            agent = word
    if agent not in ("claude", "codex", "gemini", "opencode", "copilot", "cursor"):
        return None
    roots = (given["--root"],) if given["--root"] else ()
    return run(
        agent,
        given["--event"],
        roots,
        mode=mode,
        only=only,
        state=given["--state"],
        config=given["--config"],
    )


def answer(arguments: Namespace, _screen: Terminal) -> None:
    """Answer one event as the whole command line has understood the words."""
    run(
        arguments.agent,
        arguments.event,
        arguments.root,
        mode=arguments.mode or "",
        only=arguments.where_set_up,
        state=arguments.state or "",
        config=arguments.config or "",
    )


def run(
    agent: str,
    event: str,
    roots: Sequence[str],
    *,
    mode: HookMode,
    only: bool = False,
    state: str,
    config: str,
) -> int:
    """Answer one event: from standard input to standard output.

    Args:
        agent: The agent's name.
        event: The event's name, where the host does not write it; else empty.
        roots: The folders; none for where the host says that its project is.
        mode: How far it goes.
        only: Whether it is only for folders that were set up, in which their own mode counts.
        state: The state folder; empty for the person's.
        config: The settings file; empty for the usual one.

    Returns:
        The exit code: 0, or 2 where nothing but that is left to refuse a call with.
    """

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise _NoDaemonError(f"there was no answer within {_PATIENCE:.0f} seconds")

    if why := unsupported():
        # Nothing can be set up there, so what is only for folders that were is for none.
        return 0 if only else _refuse(event, mode, _standard_input(), why)
    data = b""
    request: HookRequest | None = None
    try:
        signal.signal(signal.SIGALRM, give_up)
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
        data = _standard_input()
        from filepact.config.folders import state_folder  # noqa: PLC0415 - may wait for a disk

        state = state_folder(state)
        if only and not roots:
            found = _set_up(agent, data, state)
            if found is None:
                return 0
            roots, mode = found[0], mode or found[1]
        config = config or os.environ.get("FILEPACT_CONFIG") or ""
        request = HookRequest(
            agent,
            event,
            mode,
            state=state,
            config=os.path.abspath(config) if config else "",
            roots=tuple(map(os.path.realpath, roots or _roots(agent))),
        )
        out, remark = _ask(request, data)
    except Exception as error:  # noqa: BLE001 - a mistake in a guard must not open it
        try:
            signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
            out, remark = _alone(request, agent, event, mode, data, error)
        except Exception as worse:  # noqa: BLE001 - the same
            return _refuse(event, mode, data, f"{type(worse).__name__}: {worse}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    _write(1, out)
    _write(2, remark)
    return 0


def _standard_input() -> bytes:
    blocks: list[bytes] = []
    left = _LARGEST
    while block := os.read(0, _BLOCK):
        left -= len(block)
        if left >= 0:
            blocks.append(block)
    if left < 0:
        raise _NoDaemonError(f"the event has more than {_LARGEST:,} bytes")
    return b"".join(blocks).strip().removeprefix(b"\xef\xbb\xbf")  # the mark of Windows


def _read_all(read: Callable[[int], bytes]) -> bytes:
    """Return all bytes up to the end."""
    return b"".join(iter(lambda: read(_BLOCK), b""))


def _set_up(agent: str, data: bytes, state: str) -> tuple[tuple[str, ...], HookMode] | None:
    """The root of a session in a folder that was set up, and how far that was wanted; None elsewhere."""
    from filepact.config.folders import read_set_up, set_up_root  # noqa: PLC0415 - as above

    known = {folder: guard for name, guard, folder in read_set_up(state) if name == agent}
    if not known:
        return _roots(agent), ""
    places = _places(agent, data)
    roots = [one for place in places if (one := set_up_root(place, known)) is not None]
    if roots:
        # A session that has gone into a worktree within its project works there.
        inner = (one for one in roots if one[0].startswith(f"{roots[0][0]}/"))
        root, project = max(inner, default=roots[0])
        guard = known.get(project, "")
        mode: HookMode = "strict" if guard == "only-filepact" else ""
        return (root,), "record" if guard == "record" else mode
    if not places:
        raise _NoDaemonError("nobody can tell in which folder this is")
    return None


def _places(agent: str, data: bytes) -> list[str]:
    """True paths of the folders that a session is in: its project's first, which stays the same."""
    found = [os.environ.get(f"{agent.upper()}_PROJECT_DIR", "")]
    try:  # noqa: SIM105 - `contextlib` would have to be loaded
        found.append(os.getcwd())
    except OSError:
        pass  # It was removed.
    if b'"cwd":"%b"' % os.fsencode(found[-1]) not in data:
        import json  # noqa: PLC0415 - hosts start hooks where they are themselves, mostly

        try:
            said = json.loads(data)
            # Cursor starts those of the person elsewhere.
            found += [said.get("cwd"), *(said.get("workspace_roots") or ())]
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass  # Whoever judges the event tells.
    return [os.path.realpath(one) for one in found if one and isinstance(one, str)]


def _roots(agent: str) -> tuple[str, ...]:
    """The folders that the environment names, else the project of the host, or around this folder."""
    named = os.environ.get("FILEPACT_ROOT", "")
    if named:
        return tuple(filter(None, named.split(os.pathsep)))
    project = os.environ.get(f"{agent.upper()}_PROJECT_DIR", "")
    if project and os.path.isdir(project):
        return (project,)
    here = above = os.getcwd()
    while not os.path.lexists(os.path.join(above, ".git")):
        if above == os.path.dirname(above):
            return (here,)
        above = os.path.dirname(above)
    return (above,)


def _ask(request: HookRequest, data: bytes) -> tuple[bytes, bytes]:
    """The daemon's answer; it is started if there is none."""
    before, heard = os.getcwd(), b"%d" % time.time_ns()
    _enter_folder(request)
    try:
        for _ in range(2 * _TRIES):  # Each second one may do no more than start it.
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                if not _connected(connection, request):
                    _start(request)
                    continue
                connection.sendall(request.head + b"%d\n" % len(data))
                # When it was, since it may be heard much later; who does not know of that reads no further.
                connection.sendall(data + heard)
                connection.shutdown(socket.SHUT_WR)
                said = _read_all(connection.recv)
            except (BrokenPipeError, ConnectionResetError):
                continue  # It was about to end.
            finally:
                connection.close()
            head, _, rest = said.partition(b"\n")
            if head.isdigit() and len(rest) >= int(head):
                return rest[: int(head)], rest[int(head) :]
        raise _NoDaemonError("the process that answers ended three times without an answer")
    finally:
        os.chdir(before)


def _connected(connection: socket.socket, request: HookRequest) -> bool:
    """Whether a daemon of this very person listens."""
    name = f"{request.key}.sock"
    try:
        found = os.lstat(name)
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
        raise _NoDaemonError(f"something else stands in the place of its socket, hooks/{name}")
    try:
        connection.connect(name)
    except (ConnectionRefusedError, FileNotFoundError):
        return False
    if peer(connection)[1] not in (None, os.geteuid()):
        raise _NoDaemonError("another user's process listens in its place")
    return True


def _enter_folder(request: HookRequest) -> None:
    """Make the folder of sockets the working folder: their whole paths may be too long.

    Raises:
        _NoDaemonError: Others could put something into it.
    """
    folder = os.path.join(request.state, "hooks")
    for root in request.roots:
        if f"{folder}/".startswith(f"{root.rstrip('/')}/"):
            raise _NoDaemonError(f"the root {root} holds the state folder {request.state}")
    os.makedirs(request.state, 0o700, exist_ok=True)
    try:  # noqa: SIM105 - `contextlib` would have to be loaded
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise _NoDaemonError(f"others may use the folder {folder} (chmod 700)")
        os.fchdir(descriptor)
    finally:
        os.close(descriptor)


def peer(connection: socket.socket) -> tuple[int, int | None]:
    """The process and the user at the other end; 0 and None where the system does not say."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        try:
            # macOS: `struct xucred` of LOCAL_PEERCRED, then LOCAL_PEERPID, of the level SOL_LOCAL.
            user = memoryview(connection.getsockopt(0, 1, 76)).cast("I")[1]
            return connection.getsockopt(0, 2), user
        except (OSError, IndexError):
            return 0, None
    process, user, _ = memoryview(connection.getsockopt(socket.SOL_SOCKET, option, 12)).cast("I")
    return process, user


def _start(request: HookRequest) -> None:
    """Start the daemon, unless somebody else does so at this moment."""
    import fcntl  # noqa: PLC0415 - only here

    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    lock = os.open(f"{request.key}.start", flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            if _connected(connection, request):
                return  # Somebody was quicker.
        finally:
            connection.close()
        ready, told = os.pipe()
        if os.fork() == 0:
            _become_daemon(request, told)
        os.close(told)
        said = _read_all(lambda most: os.read(ready, most))
        os.close(ready)
        if said:
            raise _NoDaemonError(said.decode("utf-8", "replace"))
    finally:
        os.close(lock)


def _become_daemon(request: HookRequest, told: int) -> None:
    """Be the daemon, in a forked process, to its end."""
    status = 1
    try:
        os.setsid()
        # The host waits until nobody holds the ends of its pipes any more.
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nowhere, descriptor)
        os.dup2(told, 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        # By name: it loads the database, and the floors of imports have no way back.
        from importlib import import_module  # noqa: PLC0415 - only here

        status = import_module("filepact_hooks.daemon").serve(request, 3)
    except BaseException as error:  # noqa: BLE001 - nothing of this process may go on in its parent
        try:  # noqa: SIM105 - as above
            os.write(3, f"it could not be started ({type(error).__name__}: {error})".encode())
        except OSError:
            pass
    finally:
        os._exit(status)


def _alone(
    request: HookRequest | None,
    agent: str,
    event: str,
    mode: HookMode,
    data: bytes,
    error: Exception,
) -> tuple[bytes, bytes]:
    """The answer without a daemon: the rules are asked here.

    Args:
        request: What was to be asked; None where it did not come so far.
        agent: The agent's name.
        event: The event's name, where the host does not write it; else empty.
        mode: How far the hook goes.
        data: What the host has sent.
        error: Why there is no daemon.
    """
    from filepact_hooks.agents import AGENTS, read_event  # noqa: PLC0415 - hardly ever needed
    from filepact_hooks.call_rules import CallVerdict  # noqa: PLC0415 - the same
    from filepact_hooks.judge import (  # noqa: PLC0415 - the same
        HookJudge,
        answer_unread,
        answer_unrecorded,
        told,
    )

    known = AGENTS[agent]
    why = str(error) if isinstance(error, _NoDaemonError) else told(error)
    read = None
    if request is not None:
        try:
            read = read_event(known, data, event)
        except Exception as unread:  # noqa: BLE001 - what cannot be read may be a call
            why = told(unread)
    if request is None or read is None:
        answer = answer_unread(known, data, event, mode, why)
    else:
        said = CallVerdict("allow")
        if read.moment == "before" and mode != "record":
            said = HookJudge(request.roots, request.state, request.config).judge(known, read)
        # Who keeps nothing cannot say it once: it is said where a turn or a call begins.
        loud = read.moment in ("start", "prompt", "before")
        answer = answer_unrecorded(known, read, said, mode, why if loud else "")
    return answer.out.encode("utf-8", "replace"), answer.remark.encode("utf-8", "replace")


def _refuse(event: str, mode: HookMode, data: bytes, why: str) -> int:
    """Refuse a call in the only form that needs nothing: hosts take this exit code for a no.

    Args:
        event: The event's name, where the command line has it.
        mode: How far the hook goes.
        data: What the host has sent.
        why: Why nothing else is left.
    """
    name = event.encode("utf-8", "replace").lower()
    early = any(
        b'"' + one in data for one in (b"PreToolUse", b"BeforeTool", b"preToolUse", b"before")
    )
    if name:
        early = name.startswith((b"pre", b"before")) or name.endswith(b"before")
    _write(2, f"filepact could not check this call: {why}\n".encode("utf-8", "replace"))
    return 2 if mode != "record" and (early or (not name and b"event" not in data)) else 0


def _write(descriptor: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        pass  # The host has gone; it will not miss the answer.
