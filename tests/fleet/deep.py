"""Sessions and writers on a fleet whose parts are killed and started again, judged in the end: prints what was found.

python -m tests.fleet.deep [--operations N] [--sessions N] [--writers N] [--direct N] [--workers N] [--kills N]
    [--often SECONDS] [--trouble] [--calm]

Two gateways with several workers each and two direct machines, each on a checkout of one shared workspace, 64 sessions of MCP, 16 of which write to
one file, with two writers on each direct machine.  Each adds its token; the file is changed for a new one now and then.
With --trouble disks are slow and clocks step as well; with --calm nothing breaks.  What memory the gateways have of their own
is told ten times.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gateway_running import Answer, Client
from tests.fleet.histories import Event, History, digest_of, violations
from tests.fleet.running import GATEWAYS, TROUBLE, Fleet, Worker, build_trouble, folder

TOKENS: Final = 150  # lines of a file before the next one is begun
_UNSURE: Final = frozenset({"OUTCOME_UNKNOWN", "STORE_UNSURE", "TIMED_OUT", "WRITE_ERROR", ""})
"""Refusals that do not say that nothing was done; a client sends the call again with its key."""
_LONGEST = 120.0  # seconds for which a client goes on asking
_CODE = re.compile(r"^([A-Z][A-Z_]+):")


class Session:
    """A client of the fleet: it goes to another gateway when its own does not answer."""

    def __init__(self, fleet: Fleet, number: int, seed: int) -> None:
        self.fleet, self.number = fleet, number
        self.chance = random.Random(seed)
        self.at = number % GATEWAYS
        self.client: Client | None = None
        self.ids = 0
        self.opened = 0

    def _connected(self) -> Client:
        address = self.fleet.address(self.at)
        if address is None:
            self.at = (self.at + 1) % GATEWAYS
            raise ConnectionRefusedError
        if self.client is None:
            client = Client(address)
            if client.open().status != 200:
                raise ConnectionError
            self.client, self.opened = client, self.opened + 1
        self.client.address = address
        return self.client

    def send(self, tool: str, key: str = "", **arguments: Any) -> Answer | None:
        """One try; None where no answer came."""
        try:
            client = self._connected()
            self.ids += 1
            answer = client.call(
                tool,
                id_=f"{self.number}.{self.ids}",
                headers={"idempotency_key": key} if key else {},
                **arguments,
            )
        except (OSError, http.client.HTTPException, AssertionError):
            if self.chance.random() < 0.7:
                self.at = (self.at + 1) % GATEWAYS
            time.sleep(self.chance.uniform(0.02, 0.3))
            return None
        if answer.status == 404:  # another gateway does not know the session
            self.client = None
            return None
        if not answer.messages and answer.status not in (202, 429, 503):
            raise ValueError(f"answered {answer.status}: {answer.headers}, {answer.body[:500]!r}")
        if answer.status in (202, 429, 503) or "result" not in answer.message:
            time.sleep(self.chance.uniform(0.02, 0.2))
            return None
        return answer

    def end(self) -> str | None:
        """End the session, and ask for it at every gateway; what was wrong, None where that cannot be told.

        A gateway that cannot ask the database goes by what it knew: so nothing is told where that was away meanwhile.
        """
        client, before = self.client, self.fleet.database_restarts
        if client is None or not self.fleet.database_up.is_set():
            return None
        self.client = None
        told: list[int] = []
        try:
            if client.send("DELETE", mcp_session_id=client.session).status != 204:
                return None
            for number in [*range(GATEWAYS)] * 2:
                address = self.fleet.address(number)
                if address is not None:
                    client.address = address
                    told.append(client.ask("ping").status)
        except (OSError, http.client.HTTPException):
            pass
        if self.fleet.database_restarts != before or not told:
            return None
        taken = [one for one in told if one not in (404, 503)]
        return f"a session that was ended is answered {taken}" if taken else ""


def code_of(text: str) -> str:
    found = _CODE.match(text)
    return found[1] if found else ""


def numbered(text: str) -> list[str]:
    """The lines that `read_file` shows."""
    return [line.partition("│")[2] for line in text.splitlines() if "│" in line]


class Run:
    """What all clients share."""

    def __init__(
        self,
        fleet: Fleet,
        operations: int,
        seed: int,
        *,
        sessions: int,
        writers: int,
        kills: int,
    ) -> None:
        self.kills = kills
        self.fleet, self.operations, self.seed = fleet, operations, seed
        self.sessions, self.writers = sessions, writers
        self.history = History()
        self.codes: Counter[str] = Counter()
        self.counters: dict[str, tuple[int, int]] = {}
        self.wrong: list[str] = []
        self.file = 0
        self.files = ["log-0"]
        self._guard = threading.Lock()
        self.memory: list[int] = []
        self.ending = threading.Event()
        self.begun = time.monotonic()

    def enough(self) -> bool:
        broken = self.fleet.faults.get("gateways killed", 0) >= self.kills
        many = len(self.history.events) >= self.operations
        return (many and broken) or self.ending.is_set()

    def now(self) -> float:
        return time.monotonic() - self.begun

    def refusal(self, text: str, of: str = "") -> str:
        """The code of a refusal, counted; the first of its kind is printed."""
        code = code_of(text)
        kind = f"{of} {code or text[:60]}".strip()
        self.codes[kind] += 1
        if self.codes[kind] == 1:
            print(f"first {kind}: {text[:300]!r}", flush=True)
        return code

    def write(self, token: str, ask: Any, chance: random.Random) -> None:
        """Add a token to the present file, and note what is heard of it."""
        file = self.files[-1]
        begun = self.now()
        unsure, code = False, ""
        while True:
            text = ask("edit_file", path=file, old_string="end\n", new_string=f"{token}\nend\n")
            if text is None:
                unsure = True
            elif text.startswith("Done") or "came before" in text:
                self.history.add(Event(file, begun, self.now(), "written", token))
                return
            else:
                code = self.refusal(text)
                unsure = code in _UNSURE
                if code == "STALE_FILE":
                    self.read(ask)
                if not unsure and chance.random() < 0.3:
                    self.history.add(Event(file, begun, self.now(), "refused", token, code=code))
                    return
            if self.now() - begun > _LONGEST:
                kind = "unknown" if unsure else "refused"
                self.history.add(Event(file, begun, self.now(), kind, token, code=code))  # type: ignore[arg-type]
                return

    def read(self, ask: Any) -> None:
        file = self.files[-1]
        begun = self.now()
        text = ask("read_file", path=file)
        if text is None:
            return
        if code_of(text):
            self.refusal(text, "read")
            return
        lines = numbered(text)
        if lines[:1] != ["begin"] or lines[-1:] != ["end"]:
            self.wrong.append(f"{file} was read as {text[:200]!r}")
            return
        seen = lines[1:-1]
        digest = digest_of(seen)
        self.history.add(Event(file, begun, self.now(), "read", lines=len(seen), digest=digest))
        if len(seen) >= TOKENS:
            self.next_file(file, ask)

    def next_file(self, after: str, ask: Any) -> None:
        with self._guard:
            if self.files[-1] != after:
                return
            name = f"log-{len(self.files)}"
            while True:
                text = ask("write_file", path=name, content="begin\nend\n")
                if text is not None and (text.startswith("Done") or "EXISTS" in text):
                    break
                if text is not None and "nothing to change" in text.lower():
                    break
                if self.ending.is_set():
                    return
            self.files.append(name)

    # -- what clients do ----------------------------------------------------------------------

    def writer(self, number: int) -> None:
        session = Session(self.fleet, number, self.seed + number)
        turn = 0
        while not self.enough():
            turn += 1
            token = f"s{number}.{turn}"

            def ask(tool: str, token: str = token, **arguments: Any) -> str | None:
                key = token if tool == "edit_file" else ""
                answer = session.send(tool, key, **arguments)
                return None if answer is None else answer.text

            self.write(token, ask, session.chance)
            if session.chance.random() < 0.3:
                self.read(ask)
        self.codes["sessions opened"] += session.opened

    def other(self, number: int) -> None:
        """Counts in a file of its own, reads the common one, and takes something back now and then."""
        session = Session(self.fleet, number, self.seed + number)
        path, count, turn = f"own-{number}", 0, 0

        def ask(tool: str, key: str = "", **arguments: Any) -> str:
            while True:
                answer = session.send(tool, key, **arguments)
                if answer is not None:
                    return answer.text
                if self.ending.is_set():
                    raise TimeoutError

        def change(tool: str, **arguments: Any) -> bool:
            """Whether it was done; certain, or else this run is over."""
            nonlocal turn
            turn += 1
            begun = time.monotonic()
            while time.monotonic() - begun < _LONGEST:
                text = ask(tool, f"o{number}.{turn}", **arguments)
                code = code_of(text)
                if not code:
                    return True
                self.refusal(text, "own")
                if code in (
                    "STRING_NOT_FOUND",
                    "FILE_EXISTS",
                    "NO_CHANGE",
                    "STALE_FILE",
                    "NOT_FOUND",
                ):
                    self.wrong.append(f"{path} at {count}: {text[:300]}")
                    return False
            raise TimeoutError

        with suppress(TimeoutError):
            change("write_file", path=path, content="n=0\n")
            while not self.enough():
                kind = session.chance.random()
                if kind < 0.2:
                    if change(
                        "edit_file",
                        path=path,
                        old_string=f"n={count}\n",
                        new_string=f"n={count + 1}\n",
                    ):
                        count += 1
                        self.counters[path] = (count, count)
                elif kind < 0.24:
                    wrong = session.end()
                    if wrong is not None:
                        self.codes["sessions ended everywhere"] += not wrong
                        self.wrong += [wrong] * bool(wrong)
                elif kind < 0.34:
                    lines = numbered(ask("read_file", path=path))
                    if lines and lines != [f"n={count}"]:
                        self.wrong.append(f"{path} is {lines} and should be {count}")
                else:
                    self.read(ask)
            return
        self.counters.pop(path, None)

    def direct(self, worker: Worker, number: int) -> None:
        chance = random.Random(self.seed + 1_000 + number)
        turn = 0

        def ask(tool: str, **arguments: Any) -> str | None:
            return worker.call(tool, **arguments)

        while not self.enough():
            turn += 1
            token, file, begun = f"d{number}.{turn}", self.files[-1], self.now()
            text = ask("edit_file", path=file, old_string="end\n", new_string=f"{token}\nend\n")
            code = "" if text is None else code_of(text)
            if text is not None and text.startswith("Done"):
                kind = "written"
            elif text is None or code in _UNSURE:
                kind = "unknown"
            else:
                kind = "refused"
            if code:
                self.refusal(text or "", "direct")
            self.history.add(Event(file, begun, self.now(), kind, token, code=code))  # type: ignore[arg-type]
            self.read(ask)
            time.sleep(chance.uniform(0, 0.05))

    def go(self) -> None:
        def guarded(work: Any, *arguments: Any) -> None:
            try:
                work(*arguments)
            except Exception:  # noqa: BLE001 - a client that ends is told of
                self.wrong.append(f"a client ended: {traceback.format_exc()}")

        first = Session(self.fleet, 0, self.seed)
        answer = first.send("write_file", path="log-0", content="begin\nend\n")
        assert answer is not None
        assert answer.text.startswith("Done"), answer.text
        threads = [
            threading.Thread(target=guarded, args=(self.writer, n))
            for n in range(1, self.writers + 1)
        ]
        threads += [
            threading.Thread(target=guarded, args=(self.other, n))
            for n in range(self.writers + 1, self.sessions + 1)
        ]
        threads += [
            threading.Thread(target=guarded, args=(self.direct, one, n))
            for n, one in enumerate(self.fleet.workers)
        ]
        for one in threads:
            one.start()
        said = self.now()
        try:
            while not self.enough():
                time.sleep(0.2)
                if len(self.history.events) >= self.operations * (len(self.memory) + 1) / 10:
                    self.memory.append(round(self.fleet.memory()))
                    print(f"memory of the gateways: {self.memory[-1]} MiB", flush=True)
                if self.now() - said > 60:
                    said = self.now()
                    print(f"{len(self.history.events)} operations after {said:.0f} s", flush=True)
        except KeyboardInterrupt:
            print("interrupted: judged as far as it came", flush=True)
            self.ending.set()
        self.fleet.end_breaking()
        late = time.monotonic() + 2 * _LONGEST
        for one in threads:
            one.join(max(1.0, late - time.monotonic()))
        self.ending.set()
        for one in threads:
            one.join()


def judge(run: Run) -> list[str]:
    """What is wrong, in words, now that all runs again and nobody works."""
    fleet, wrong = run.fleet, [*run.wrong]
    codes = fleet.end_processes()
    if any(codes):
        wrong.append(f"gateways ended with {codes}")
    trees = []
    for number, place in enumerate(fleet.places):
        brought = place.command("workspace", "sync", check=False)
        if brought.returncode:
            wrong.append(f"machine {number} does not follow: {brought.stdout}{brought.stderr}")
        files = sorted(one for one in place.files.rglob("*") if one.is_file())
        trees.append({str(one.relative_to(place.files)): one.read_text() for one in files})
        odd = [name for name in trees[-1] if ".filepact" in name]
        if odd:
            wrong.append(f"machine {number} has left {odd}")
    for number, tree in enumerate(trees[1:], start=1):
        if tree != trees[0]:
            names = [
                one for one in tree.keys() | trees[0].keys() if tree.get(one) != trees[0].get(one)
            ]
            wrong.append(f"machine {number} has other files than machine 0: {names}")
    final = {
        name: [line for line in text.splitlines() if line not in ("begin", "end")]
        for name, text in trees[0].items()
        if name.startswith("log-")
    }
    wrong += violations(run.history.events, final)
    for path, (least, most) in run.counters.items():
        value = int(trees[0].get(path, "n=-1").strip().removeprefix("n="))
        if not least <= value <= most:
            wrong.append(f"{path} is {value}, and was told to be {least} to {most}")
    wrong += _journals(run, final)
    return wrong


def _journals(run: Run, final: dict[str, list[str]]) -> list[str]:
    """Whether journals tell of each line once, audit logs are whole, and undo works."""
    wrong = []
    # By their ids: a request that was begun at a gateway that is killed, and is sent again to the other one, is the
    # same change in the journals of both.
    told: dict[str, set[str]] = {name: set() for name in final}
    for number, place in enumerate(run.fleet.places):
        for name in final:
            shown = json.loads(place.command("--json", "log", name, "-n", "100000").stdout)
            for one in shown["operations"]:
                if one["tool"] != "edit_file":
                    continue
                if one["state"] == "intended":
                    wrong.append(f"machine {number}: {one['id']} has no end")
                elif one["state"] == "applied":
                    told[name].add(one["id"])
                elif one["state"] == "interrupted":
                    wrong.append(
                        f"machine {number}: {one['id']} was done in part: {one.get('note')}"
                    )
        audit = place.command("audit", "verify", check=False)
        if audit.returncode:
            wrong.append(f"machine {number}: {audit.stdout}{audit.stderr}")
    for name, some in final.items():
        if len(told[name]) != len(some):
            wrong.append(f"{name} has {len(some)} lines, and these made them: {sorted(told[name])}")
    for number, place in enumerate(run.fleet.places):
        before = (place.files / "log-0").read_text()
        last = Worker(place, f"last {number}")
        last.call("edit_file", path="log-0", old_string="end\n", new_string="last\nend\n")
        last.end()
        undone = place.command("undo", "--unattended", check=False)
        if undone.returncode or (place.files / "log-0").read_text() != before:
            wrong.append(f"machine {number}: undo: {undone.stdout}{undone.stderr}")
    return wrong


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.fleet.deep")
    parser.add_argument("--operations", type=int, default=20_000)
    parser.add_argument("--sessions", type=int, default=64)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--direct", type=int, default=2, help="machines without a gateway")
    parser.add_argument("--workers", type=int, default=3, help="processes of each gateway")
    parser.add_argument("--kills", type=int, default=20, help="of gateways, at least")
    parser.add_argument("--often", type=float, default=8.0, help="seconds between kills")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--trouble", action="store_true", help="slow disks and clocks that step")
    parser.add_argument("--calm", action="store_true", help="break nothing")
    given = parser.parse_args(arguments)
    if given.trouble and TROUBLE not in os.environ:
        with tempfile.TemporaryDirectory() as place:
            variables = os.environ | build_trouble(Path(place))
            words = [sys.executable, "-m", "tests.fleet.deep", *arguments]
            return subprocess.run(words, env=variables, check=False).returncode
    many = {"direct": given.direct, "workers": given.workers}
    with folder() as base, Fleet(Path(base).resolve(), given.seed, **many) as fleet:
        run = Run(
            *(fleet, given.operations, given.seed),
            sessions=given.sessions,
            writers=given.writers,
            kills=0 if given.calm else given.kills,
        )
        if not given.calm:
            fleet.begin_breaking(given.often)
        run.go()
        took = run.now()
        wrong = judge(run)
    return told(run, wrong, took, given.seed)


def told(run: Run, wrong: list[str], took: float, seed: int) -> int:
    """Print what was done and found; 1 if anything was wrong."""
    kinds = Counter(one.kind for one in run.history.events)
    for one in wrong[:40]:
        print(f"WRONG: {one}")
    print(f"refusals and such: {dict(run.codes.most_common())}")
    faults = ", ".join(f"{count} {what}" for what, count in sorted(run.fleet.faults.items()))
    print(f"seed {seed}; faults: {faults}")
    print(f"memory of the gateways, in MiB: {run.memory}")
    print(
        f"{len(run.history.events)} operations in {took:.0f} s ({dict(kinds)}), {len(wrong)} wrong"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
