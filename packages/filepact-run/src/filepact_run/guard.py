"""`filepact guard`: a process that records whatever changes the files of a folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from filepact.domain.operation import moment
from filepact.errors import (
    FilepactError,
    InvalidParamsError,
    NoChangeError,
    StateFailedError,
    TimedOutError,
)
from filepact.faces.cli import isolated_command
from filepact.workspace.file_snapshot import unwatched_said
from filepact_cli.context import CommandContext, find_context
from filepact_cli.render import count
from filepact_cli.screen import CommandAnswer, TerminalText, plain

if TYPE_CHECKING:
    from argparse import Namespace

    from filepact.domain.operation import Operation
    from filepact_cli.screen import Terminal
    from filepact_run.recorder import GuardLock

__all__ = ["guard"]

_PATIENCE: Final = 60.0  # seconds for a guard to look around before it is said to have started
_END: Final = 120.0  # seconds for one to record what is left
_NAP: Final = 0.02
_SCANNED: Final = "changes are found by scans, every few seconds or, in a large folder, minutes"
_NOT_GUARDED: Final = "What Git ignores is not recorded.\n"
_READING: Final = (
    "What they hold is still being read: a file that is changed before its turn\n"
    "cannot be taken back.\n"
)


def guard(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Guard a folder, in the foreground or not; stop the guard of one; or say what it does."""
    from filepact.app import guarding  # noqa: PLC0415 - loads the database

    context = _context(arguments)
    lock = guarding(context.state, context.roots[0])
    if arguments.stop:
        return _stop(context, lock)
    if arguments.status:
        return _status(context, lock)
    running = lock.told()
    if running is not None:
        raise NoChangeError(
            f"{context.roots[0]} is guarded already, by process {_facts(running).get('pid')}",
            hint="`filepact guard --status` says since when, `filepact guard --stop` ends it.",
        )
    if arguments.detach:
        return _detach(arguments, context, lock)
    return _run(arguments, context, lock, screen)


def _context(arguments: Namespace) -> CommandContext:
    """The folder, absolute: what is below it is recorded under it and no other."""
    context = find_context(arguments)
    if arguments.directory is not None:
        if arguments.root:
            raise InvalidParamsError("name the folder once", hint="Leave --root out.")
        context = CommandContext((arguments.directory,), context.state, "--root")
    if len(context.roots) != 1:
        raise InvalidParamsError(
            "a guard has one folder", hint="Start one for each: `filepact guard DIR --detach`."
        )
    return CommandContext((str(Path(context.roots[0]).absolute()),), context.state, context.origin)


def _facts(told: str) -> dict[str, Any]:
    """Return the facts that a guard has told about itself; none where they cannot be read."""
    try:
        found = json.loads(told)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# -- one that runs ---------------------------------------------------------------------------------


def _run(
    arguments: Namespace, context: CommandContext, lock: GuardLock, screen: Terminal
) -> CommandAnswer:
    from filepact.app import open_observed  # noqa: PLC0415 - loads the database
    from filepact.config.person import read_settings  # noqa: PLC0415 - with it
    from filepact.domain.operation import Actor, Session  # noqa: PLC0415 - the same
    from filepact_run.recorder import ChangeRecorder  # noqa: PLC0415 - the same

    settings = read_settings(arguments.config)
    recording = settings.recording
    (root,) = context.roots
    if not lock.take():
        raise NoChangeError(
            f"{root} is guarded already", hint="`filepact guard --status` says more."
        )
    read_end, write_end = os.pipe()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: os.write(write_end, b"."))
    state: dict[str, Any] = {"pid": os.getpid(), "root": root, "since": time.time()}
    state |= {"session": f"guard-{os.urandom(4).hex()}", "operations": 0, "ready": False}
    state |= {"unwatched": 0, "unrecorded": ""}

    def told(operation: Operation) -> None:
        more = workspace.external.unwatched
        news = f"{unwatched_said(more)}.\n" if more > state["unwatched"] else ""
        if not any(one.returns for one in operation.changes.changes):
            news = f"  {operation.note}\n"  # Which says how many are not watched as well.
        state["operations"] += 1
        state["unwatched"] = more
        lock.tell(json.dumps(state))
        _say(screen, f"{operation.id}  {operation.summary}\n{news}")

    def failed(why: str) -> None:
        state["unrecorded"] = why
        lock.tell(json.dumps(state))

    lock.tell(json.dumps(state))
    try:
        with open_observed(
            (root,), state_dir=context.state, settings=settings, guards=True
        ) as workspace:
            recorder = ChangeRecorder(
                workspace,
                Session(state["session"], Actor("program", "unknown")),
                quiet=recording.quiet,
                longest=recording.longest,
                room=recording.megabytes << 20,
                told=told,
                failed=failed,
            )
            state |= {"files": recorder.begin(), "watched": recorder.is_watched, "ready": True}
            state |= {"read": recorder.has_read, "unwatched": workspace.external.unwatched}
            lock.tell(json.dumps(state))
            known = count(state["files"], "file")
            _say(screen, f"Guarding {root}: {known} known. Ctrl-C ends it.\n{_limits(state)}")
            recorder.run(read_end)
    finally:
        lock.release()
    made = count(state["operations"], "operation")
    return CommandAnswer(plain(f"Guarded {root}: {made} recorded.\n"), _told(state))


def _limits(state: dict[str, Any]) -> str:
    """What a guard that has begun does not record, or finds late."""
    said = _NOT_GUARDED
    if not state.get("read", True):
        said += _READING
    if state.get("unwatched"):
        said += (
            f"{unwatched_said(state['unwatched'])}; {_SCANNED}. "
            "`[recording]` `files` in the settings raises the limit.\n"
        )
    elif not state.get("watched", True):
        said += (
            "The system cannot watch so many folders, or others write to this file system, so "
            f"{_SCANNED} (fs.inotify.max_user_watches raises the limit).\n"
        )
    return said


def _say(screen: Terminal, text: str) -> None:
    """Tell whoever listens; programs hear all at the end, and one that has detached nobody."""
    if not screen.json:
        with suppress(OSError, ValueError):
            screen.write(plain(text))


def _told(state: dict[str, Any]) -> dict[str, object]:
    return {**state, "since": moment(state["since"])}


# -- one that runs elsewhere -----------------------------------------------------------------------


def _detach(arguments: Namespace, context: CommandContext, lock: GuardLock) -> CommandAnswer:
    """Start a guard in a session of its own, and wait until it looks."""
    (root,) = context.roots
    words = [*isolated_command(), "guard", root, "--state", context.state]
    if arguments.config:
        words += ["--config", str(Path(arguments.config).absolute())]
    process = subprocess.Popen(  # noqa: S603 - this very program
        [*words, "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    until = time.monotonic() + _PATIENCE
    known: dict[str, Any] = {}
    while time.monotonic() < until:
        known = _facts(lock.told() or "")
        if known.get("ready"):
            break
        if process.poll() is not None:
            raise _failed(process)
        time.sleep(_NAP)
    else:
        known = {"pid": process.pid, "root": root, "since": time.time(), "ready": False}
    if process.stdout is not None:
        process.stdout.close()
    process.returncode = 0  # It is not waited for: it outlives this process.
    more = "" if known["ready"] else " It still looks around."
    said = f"Guarding {root}, as process {known['pid']}.{more}\n"
    said += _limits(known) if known["ready"] else _NOT_GUARDED
    return CommandAnswer(
        (TerminalText(said, "good"), TerminalText("`filepact guard --stop` ends it.\n", "dim")),
        _told(known),
    )


def _failed(process: subprocess.Popen[bytes]) -> FilepactError:
    said = process.stdout.read() if process.stdout is not None else b""
    error = _facts(said.decode("utf-8", "replace")).get("error")
    if isinstance(error, dict):
        return StateFailedError(
            f"the guard did not start: {error.get('message')}", hint=str(error.get("hint") or "")
        )
    return StateFailedError(
        f"the guard did not start (exit code {process.returncode})",
        hint="Start it without --detach to see what is wrong.",
    )


def _stop(context: CommandContext, lock: GuardLock) -> CommandAnswer:
    (root,) = context.roots
    told = lock.told()
    known = _facts(told or "")
    if told is None or type(known.get("pid")) is not int:
        raise NoChangeError(
            f"no guard runs in {root}", hint="`filepact guard --detach` starts one."
        )
    with suppress(ProcessLookupError):
        os.kill(known["pid"], signal.SIGTERM)
    until = time.monotonic() + _END
    while lock.told() is not None:
        if time.monotonic() > until:
            raise TimedOutError(
                f"the guard of {root}, process {known['pid']}, has not ended yet",
                hint="It records what is left; look again with `filepact guard --status`.",
            )
        time.sleep(_NAP)
    known = _facts(lock.told(after=True) or "") or known
    made = count(known.get("operations", 0), "operation")
    return CommandAnswer(plain(f"Stopped guarding {root}: {made} recorded.\n"), _told(known))


def _status(context: CommandContext, lock: GuardLock) -> CommandAnswer:
    (root,) = context.roots
    told = lock.told()
    if told is None:
        return CommandAnswer(
            plain(f"No guard runs in {root}.\n"), {"root": root, "running": False}, code=3
        )
    known = _facts(told)
    said = f"Process {known.get('pid')} guards {root} since {moment(known.get('since', 0.0))}: "
    said += f"{count(known.get('operations', 0), 'operation')}, {count(known.get('files', 0), 'file')}.\n"
    if why := known.get("unrecorded"):
        said += f"What was changed since is not recorded yet: {why}. It tries again.\n"
    if unwatched := known.get("unwatched"):
        said += f"{unwatched_said(unwatched)}; {_SCANNED}.\n"
    elif known.get("ready") and not known.get("watched"):
        said += f"The system cannot watch it; {_SCANNED}.\n"
    return CommandAnswer(plain(said), {**_told({"since": 0.0, **known}), "running": True})
