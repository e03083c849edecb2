"""A fleet that runs for real: gateways and workers on checkouts of one shared workspace, a database, an object store.

All of it is killed, stopped and started again while clients work with it.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from gateway_running import RunningGateway, children
from tests.forked import run
from tests.object_server import ObjectServer
from tests.postgres import Server, binaries

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GATEWAYS", "TROUBLE", "Fleet", "Worker", "build_trouble"]

GATEWAYS = 2
URL = "s3://tests/fleet"
TROUBLE = "TROUBLE"
"""Names the file that says how slow a program's disk is, and how wrong its clock: `trouble.c`."""
_SETTINGS = """
[store]
url = "{url}"
[audit]
enabled = true
[serve]
session_calls = 1000000
user_calls = 1000000
user_at_once = 1000
session_at_once = 1000
user_megabytes = 100000
"""


class Place:
    """One machine: a checkout, a state folder and settings."""

    def __init__(self, base: Path, settings: str) -> None:
        self.base = base
        self.files = base / "files"
        self.files.mkdir(parents=True)
        self.state = base / "state"
        self.settings = settings
        (base / "settings.toml").write_text(settings)

    def command(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A command of a person at this machine."""
        where = ("--root", str(self.files), "--state", str(self.state))
        told = run(
            [*where, "--config", str(self.base / "settings.toml"), *words],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert not check or told.returncode == 0, (words, told.stdout, told.stderr)
        return told


class Worker:
    """A process that works on a checkout by itself, with no gateway.

    Args:
        place: Its machine.
        name: Of its session.
    """

    def __init__(self, place: Place, name: str) -> None:
        self._place, self._name = place, name
        self._guard = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self.kills = 0

    def call(self, tool: str, **arguments: Any) -> str | None:
        """What a tool answers; None where the process was killed before that was heard."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps([tool, arguments]) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (OSError, ValueError):
            line = ""
        if not line:
            process.wait()
            _close(process)
            return None
        return str(json.loads(line))

    def _running(self) -> subprocess.Popen[str]:
        with self._guard:
            if self._process is None or self._process.poll() is not None:
                if self._process is not None:
                    _close(self._process)
                place = self._place
                words = [str(place.files), str(place.state), str(place.base / "settings.toml")]
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.fleet.worker", *words, self._name],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            return self._process

    def kill(self) -> None:
        with self._guard:
            if self._process is not None and self._process.poll() is None:
                self._process.kill()
                self._process.wait()
                self.kills += 1

    def end(self) -> None:
        """Have it close what it has open."""
        with self._guard:
            if self._process is not None:
                assert self._process.stdin is not None
                with suppress(OSError):
                    self._process.stdin.close()
                self._process.wait(120)
                _close(self._process)


def _close(process: subprocess.Popen[str]) -> None:
    for one in (process.stdin, process.stdout):
        assert one is not None
        with suppress(OSError):
            one.close()


class Fleet:
    """All of it; a context manager.

    Args:
        base: A folder for all that it keeps.
        seed: Which random moments.
        direct: Machines whose programs work on their checkout without a gateway.
        workers: Processes of each gateway; 1 for no others than itself.
    """

    def __init__(self, base: Path, seed: int, *, direct: int, workers: int = 1) -> None:
        place = binaries()
        assert place is not None
        from filepact_fleet.postgres_connection import migrate_database  # noqa: PLC0415 - an extra

        self.random = random.Random(seed)
        self.base = base
        self.of_gateways = workers
        self.objects = ObjectServer()
        # With a disk that may be slow the database waits for it.
        slow = TROUBLE in os.environ
        self.database = Server(place, max_connections="200", fsync="on" if slow else "off")
        os.environ.update(self.objects.environment())
        migrate_database(self.database.url)
        settings = _SETTINGS.format(url=self.database.url)
        self.places = [Place(base / f"m{n}", settings) for n in range(GATEWAYS + direct)]
        run(["workspace", "create", URL], check=True, capture_output=True)
        for one in self.places:
            one.command("workspace", "checkout", URL, str(one.files))
        self.gateways: list[RunningGateway | None] = [None] * GATEWAYS
        self.workers = [
            Worker(one, f"w{number}.{process}")
            for number, one in enumerate(self.places[GATEWAYS:])
            for process in range(2)
        ]
        self.faults: dict[str, int] = {}
        self.database_up, self.database_restarts = threading.Event(), 0
        self.database_up.set()
        self._ending = threading.Event()
        self._breaking: list[threading.Thread] = []
        for number in range(GATEWAYS):
            self._start(number)

    def memory(self) -> float:
        """MiB that are the gateways' own, in all their processes."""
        found = 0
        for one in self.gateways:
            if one is not None:
                for process in (one.process.pid, *children(one.process.pid)):
                    with suppress(OSError):
                        text = Path(f"/proc/{process}/smaps_rollup").read_text()
                        found += sum(
                            int(line.split()[1])
                            for line in text.splitlines()
                            if line.startswith(("Private_Clean", "Private_Dirty"))
                        )
        return found / 1024

    def _start(self, number: int) -> None:
        place = self.places[number]
        words = [str(place.files), "--workers", str(self.of_gateways)]
        self.gateways[number] = RunningGateway(place.base, words, settings=place.settings)

    def address(self, number: int) -> str | None:
        """Where a gateway is now."""
        one = self.gateways[number]
        return None if one is None else one.address

    # -- what breaks --------------------------------------------------------------------------

    def begin_breaking(self, often: float) -> None:
        """Break something at random moments, on average after so many seconds each."""
        kinds: list[tuple[float, Callable[[random.Random], None]]] = [
            (often, self._kill_gateway),
            (often / 2, self._kill_worker),
            (3 * often, self._restart_database),
            (2 * often, self._stop_objects),
            (6 * often, self._restart_objects),
        ]
        if self.of_gateways > 1:
            kinds += [
                (often / 3, self._kill_one_of_gateway),
                (often / 2, self._hang_one_of_gateway),
            ]
        if TROUBLE in os.environ:
            kinds += [(often, self._slow_disk), (often, self._step_clock)]
        for mean, act in kinds:
            chance = random.Random(self.random.random())
            one = threading.Thread(target=self._break, args=(mean, act, chance))
            one.start()
            self._breaking.append(one)

    def _break(
        self, mean: float, act: Callable[[random.Random], None], chance: random.Random
    ) -> None:
        while not self._ending.wait(chance.uniform(0.2, 1.8) * mean):
            act(chance)

    def end_breaking(self) -> None:
        """Have all run again."""
        self._ending.set()
        for one in self._breaking:
            one.join()

    def _note(self, what: str) -> None:
        self.faults[what] = self.faults.get(what, 0) + 1

    def _kill_gateway(self, chance: random.Random) -> None:
        number = chance.randrange(GATEWAYS)
        one = self.gateways[number]
        assert one is not None
        self.gateways[number] = None
        one.kill()
        self._note("gateways killed")
        time.sleep(chance.uniform(0, 1))
        for _ in range(60):
            with suppress(AssertionError):  # a database that is down just now ends it again
                self._start(number)
                return
        raise AssertionError("a gateway does not start again")

    def _one_of_gateway(self, chance: random.Random) -> int | None:
        """A worker of a gateway that runs just now."""
        one = self.gateways[chance.randrange(GATEWAYS)]
        found = [] if one is None else sorted(children(one.process.pid))
        return chance.choice(found) if found else None

    def _kill_one_of_gateway(self, chance: random.Random) -> None:
        process = self._one_of_gateway(chance)
        if process is not None:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            self._note("workers of gateways killed")

    def _hang_one_of_gateway(self, chance: random.Random) -> None:
        process = self._one_of_gateway(chance)
        if process is not None:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
                time.sleep(chance.uniform(0.1, 3))
                os.kill(process, signal.SIGCONT)
            self._note("workers of gateways stopped")

    def _kill_worker(self, chance: random.Random) -> None:
        chance.choice(self.workers).kill()
        self._note("direct processes killed")

    def _restart_database(self, chance: random.Random) -> None:
        mode = chance.choice(["fast", "immediate"])
        self.database_up.clear()
        self.database_restarts += 1
        self.database.stop(mode)
        time.sleep(chance.uniform(0, 1.5))
        self.database.start()
        self.database_up.set()
        self._note(f"database restarted ({mode})")

    def _stop_objects(self, chance: random.Random) -> None:
        self.objects.signal(signal.SIGSTOP)
        time.sleep(chance.uniform(0.1, 3))
        self.objects.signal(signal.SIGCONT)
        self._note("object store stopped")

    def _restart_objects(self, chance: random.Random) -> None:
        self.objects.signal(signal.SIGKILL)
        time.sleep(chance.uniform(0, 1))
        self.objects.start()
        self.objects.environment()
        self._note("object store killed")

    def _slow_disk(self, chance: random.Random) -> None:
        """Of all parts but the object store, for a while."""
        self._trouble(0, int(chance.uniform(5_000, 300_000)))
        self._note("slow disks")
        self._ending.wait(chance.uniform(0.5, 4))
        self._trouble(0, 0)

    def _step_clock(self, chance: random.Random) -> None:
        """All clocks at once, forward or back by as much as an object store lets pass."""
        self._trouble(1, chance.randrange(-600, 601))
        self._note("clock steps")

    @staticmethod
    def _trouble(place: int, value: int) -> None:
        with Path(os.environ[TROUBLE]).open("r+b") as file:
            file.seek(8 * place)
            file.write(struct.pack("=q", value))

    # -- the end ------------------------------------------------------------------------------

    def end_processes(self) -> list[int]:
        """End gateways and workers as an operator does; the exit codes of the gateways."""
        for worker in self.workers:
            worker.end()
        codes = [one.end() for one in self.gateways if one is not None]
        self.gateways = []
        return codes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end_breaking()
        for one in self.gateways:
            if one is not None:
                one.kill()
        for worker in self.workers:
            worker.kill()
        self.database.remove()
        self.objects.close()


def build_trouble(folder: Path) -> dict[str, str]:
    """The variables with which a program's disk can be slow, and its clock step.

    Raises:
        SystemExit: There is no compiler, or no such system.
    """
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        raise SystemExit("skipped: no C compiler here, or not Linux")
    made, told = folder / "trouble.so", folder / "trouble"
    source = Path(__file__).with_name("trouble.c")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    told.write_bytes(bytes(16))
    folder.chmod(0o755)  # the database is another user
    return {"LD_PRELOAD": str(made), TROUBLE: str(told)}


def folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fleet-")
