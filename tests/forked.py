"""Real `filepact` processes that do not pay for the start of Python: forked from a warm interpreter.

Python and the imports of the command take some tenths of a second, and hundreds of tests want such a
process.  So one process of each test run imports everything, and forks for each command: a process
with its own files, environment, folder, signals and end.  What a start itself is like is for tests
that start Python (`tests/architecture/test_start.py`, `tests/faces/test_cli_process.py`).
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tests.properties.watchdog import show_stacks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Command", "run"]

_NUMBER = struct.Struct("=q")
_DESCRIPTORS = 16
_READ_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "MALLOC_")
"""How variables begin that only a new interpreter would heed; none may differ."""
_NO_MATTER = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
"""Which of them are about imports, and those are done."""


class Command(subprocess.Popen[Any]):
    """A process of the command, with the methods of `subprocess.Popen`.

    Args:
        words: The command's arguments.
        shorter: Waits of our program, each as `module:constant` or `module:class.parameter`, and the seconds that it
            lasts in this process: for what a test would otherwise only sit through.
        options: Of `subprocess.Popen`: files, environment, folder, session, text.
    """

    def __init__(
        self,
        words: Sequence[str | os.PathLike[str]],
        shorter: Mapping[str, float] | None = None,
        **options: Any,
    ) -> None:
        self._shorter = dict(shorter or {})
        super().__init__(list(map(os.fspath, words)), **options)

    def _execute_child(self, args: Any, *more: Any) -> None:
        """Where `subprocess.Popen` starts its program, with the ends of pipes that it has made."""
        _, preexec, _, passed, folder, environment = more[:6]
        ends = more[9:15]
        *_, session, _ = more
        assert preexec is None, "a function that runs before the program needs a program"
        variables = dict(os.environ if environment is None else environment)
        # Without a locale Python takes the one of C with UTF-8; what is written is the same.
        assert _early(variables) <= _early(os.environ), "an interpreter reads these at its start"
        kept, self._line = socket.socketpair()
        files = [kept.fileno()]
        files += [one if one >= 0 else own for own, one in enumerate((ends[0], ends[3], ends[5]))]
        request = {
            "words": args,
            "variables": variables,
            "folder": os.fspath(folder or os.getcwd()),
            "session": session,
            "passed": list(passed),
            "shorter": self._shorter,
        }
        with kept:
            _server().ask(json.dumps(request).encode(), [*files, *passed])
        self.pid = self._number()
        self._child_created = True
        self._close_pipe_fds(*ends)

    def _number(self) -> int:
        """The next thing that the server says of the process: its id, then how it ended."""
        data = self._line.recv(_NUMBER.size, socket.MSG_WAITALL)
        assert len(data) == _NUMBER.size, "the process that is forked has ended"
        return int(_NUMBER.unpack(data)[0])

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if wait_flags & os.WNOHANG and not select.select([self._line], [], [], 0)[0]:
            return 0, 0
        status = self._number()
        self._line.close()
        return self.pid, status

    def _wait(self, timeout: float | None) -> int:
        """Wait as long as that, and not for the next of ever rarer looks."""
        if timeout is not None and self.returncode is None:
            # Another thread that waits as well may have heard of the end, and closed it.
            with suppress(ValueError):
                if not select.select([self._line], [], [], max(0.0, timeout))[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout)
        return super()._wait(None)  # type: ignore[misc,no-any-return]

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
            try:
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid:
                        self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode


def run(
    words: Sequence[str | os.PathLike[str]],
    *,
    input: Any = None,  # noqa: A002 - as `subprocess.run` has it
    timeout: float | None = None,
    check: bool = False,
    capture_output: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run the command to its end, as `subprocess.run` does with a program."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options["stdout"] = options["stderr"] = subprocess.PIPE
    with Command(words, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


def _early(variables: Mapping[str, str]) -> set[tuple[str, str]]:
    return {
        (name, value)
        for name, value in variables.items()
        if name.startswith(_READ_AT_START) and name not in _NO_MATTER
    }


class _Server:
    """The process that is forked, as this one sees it."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair()
        self._guard = threading.Lock()
        path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                pass_fds=(theirs.fileno(),),
            )
        atexit.register(self.close)

    def ask(self, request: bytes, files: Sequence[int]) -> None:
        with self._guard:
            socket.send_fds(self._line, [_NUMBER.pack(len(request))], files)
            self._line.sendall(request)

    def close(self) -> None:
        self._line.close()
        self._process.wait()


@cache
def _server() -> _Server:
    return _Server()


# -- in the process that is forked ------------------------------------------------------------


def _serve(line: socket.socket) -> list[str]:
    """Fork for each request until there are no more; in a fork, its words."""
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken)
    watchers: dict[int, int] = {}
    while True:
        readable = select.select([line, wake], [], [])[0]
        if wake in readable:
            os.read(wake, 1 << 12)
            _report(watchers)
        if line in readable:
            head, files, *_ = socket.recv_fds(line, _NUMBER.size, _DESCRIPTORS)
            if not head:
                sys.exit()
            request = b""
            while missing := _NUMBER.unpack(head)[0] - len(request):
                request += line.recv(missing)
            watcher = files.pop(0)
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for one in (line.detach(), wake, woken, watcher, *watchers.values()):
                    os.close(one)
                return _become(json.loads(request), files)
            for one in files:
                os.close(one)
            watchers[pid] = watcher
            os.write(watcher, _NUMBER.pack(pid))


def _report(watchers: dict[int, int]) -> None:
    while watchers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        watcher = watchers.pop(pid)
        with suppress(BrokenPipeError):
            os.write(watcher, _NUMBER.pack(status))
        os.close(watcher)


def _become(request: dict[str, Any], files: Sequence[int]) -> list[str]:
    """Be the process that was asked for; its words."""
    places = [0, 1, 2, *request["passed"]]
    above = max(*places, *files) + 1
    # Out of the way first: a file may stand where another belongs.
    held = [os.dup2(one, above + at) for at, one in enumerate(files)]
    for one in files:
        os.close(one)
    for one, place in zip(held, places, strict=True):
        os.dup2(one, place)
        os.close(one)
    if request["session"]:
        os.setsid()
    for place, seconds in request["shorter"].items():
        _shorten(place, seconds)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["variables"])
    sys.path[0] = request["folder"]
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    words: list[str] = request["words"]
    sys.orig_argv[1:] = ["-m", "filepact", *words]
    return words


def _shorten(place: str, seconds: float) -> None:
    """Have a wait last so long: a constant of a module, or a parameter of what the module makes."""
    module, _, name = place.partition(":")
    made, _, parameter = name.partition(".")
    within = import_module(module)
    usual = getattr(within, made)  # fails where there is none
    setattr(within, made, partial(usual, **{parameter: seconds}) if parameter else seconds)


def main() -> NoReturn:
    import filepact  # noqa: PLC0415
    from filepact.config.layers import RuleSet  # noqa: PLC0415
    from filepact.faces.cli import perform  # noqa: PLC0415

    for module in pkgutil.walk_packages(filepact.__path__, "filepact."):
        # What fits it to frameworks takes longer than all else, and no command knows it.
        if not module.name.endswith("__main__") and ".integrations" not in module.name:
            import_module(module.name)
    _ = RuleSet().policy  # which is kept, and is most of what is left of a start
    sys.argv[:] = [str(Path(filepact.__file__).with_name("__main__.py"))]
    line = socket.socket(fileno=int(sys.orig_argv[-1]))
    show_stacks()
    gc.collect()
    gc.freeze()
    words = sys.argv[1:] = _serve(line)
    try:
        status = perform(words, alone=True)
    except BaseException:  # noqa: BLE001 - as the interpreter does it
        traceback.print_exc()
        status = 1
    # As an interpreter ends, but for taking hundreds of modules apart: nobody would see that.
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
