"""A day of many agents at one gateway, as fast as it goes: what is wrong in the end, and what memory it takes meanwhile.

    python -m bench.gateway_day [SESSIONS] [OPERATIONS]

An agent makes ten operations a minute (docs/explanation/scale.md), so 144,000 are the day of ten.  Here they are those of a thousand
sessions, each with a file of its own: a read, a search now and then, and one of seven a change, which is sent twice
with its key now and then.  Every read has to show what was changed last, and every file has to hold it in the end.
"""

from __future__ import annotations

import http.client
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench.gateway_cost import memory
from gateway_running import Client, RunningGateway, children

CLIENTS = 16
SETTINGS = "[serve]\nsession_calls = 1000000\nuser_calls = 1000000\nuser_at_once = 1000\n"


class Day:
    """All sessions, and what was found."""

    def __init__(self, address: str, sessions: int, operations: int) -> None:
        self.address, self.sessions, self.operations = address, sessions, operations
        self.counts = [0] * sessions
        self.wrong: list[str] = []
        self.done = self.repeated = 0
        self._guard = threading.Lock()

    def work(self, number: int) -> None:
        """What one client does, for the sessions whose number fits it."""
        chance, mine = random.Random(number), range(number, self.sessions, CLIENTS)
        clients = {one: Client(self.address) for one in mine}
        for client in clients.values():
            client.open()
        while self.done < self.operations:
            one = chance.choice(mine)
            try:
                self._operate(one, clients[one], chance)
            except (OSError, http.client.HTTPException, KeyError) as error:
                self.wrong.append(f"{one}: {type(error).__name__}: {error}")
            with self._guard:
                self.done += 1

    def _operate(self, one: int, client: Client, chance: random.Random) -> None:
        name, count, kind = f"own-{one}", self.counts[one], chance.random()
        if kind < 0.15:
            key = {"idempotency_key": f"{one}.{count}"}
            change = {"old_string": f"n={count}\n", "new_string": f"n={count + 1}\n"}
            for _ in range(1 + (kind < 0.015)):
                text = client.call("edit_file", headers=key, path=name, **change).text
                if not text.startswith("Done") and "Done" not in text:
                    self.wrong.append(f"{name} at {count}: {text[:200]}")
            self.repeated += kind < 0.015
            self.counts[one] += 1
        elif kind < 0.2:
            client.call("search_files", pattern=f"{name}*")
        else:
            text = client.call("read_file", path=name).text
            if f"n={count}" not in text.split("\n")[0]:
                self.wrong.append(f"{name} at {count} is read as {text[:200]}")


def main() -> None:
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    operations = int(sys.argv[2]) if len(sys.argv) > 2 else 144_000
    base = Path(tempfile.mkdtemp(prefix="filepact-bench-"))
    root = base / "root"
    root.mkdir()
    for number in range(sessions):
        (root / f"own-{number}").write_text("n=0\n")
    running = RunningGateway(base, [str(root), "--workers", "2"], settings=SETTINGS)
    day = Day(running.address, sessions, operations)
    threads = [threading.Thread(target=day.work, args=(number,)) for number in range(CLIENTS)]
    begun, said = time.monotonic(), 0
    for one in threads:
        one.start()
    while any(one.is_alive() for one in threads):
        time.sleep(0.2)
        if day.done >= operations * said / 10:
            own = sum(map(memory, children(running.process.pid)))
            print(f"{day.done} operations, {own:.0f} MiB of both workers", flush=True)
            said += 1
    passed = time.monotonic() - begun
    for number, count in enumerate(day.counts):
        text = (root / f"own-{number}").read_text()
        if text != f"n={count}\n":
            day.wrong.append(f"own-{number} holds {text!r} and not {count}")
    for one in day.wrong[:20]:
        print(f"WRONG: {one}")
    changes = sum(day.counts)
    print(
        f"{day.done} operations of {sessions} sessions in {passed:.0f} s, {changes} changes of them,",
        end=" ",
    )
    print(f"{day.repeated} sent twice: {len(day.wrong)} wrong; it ended with {running.end()}")


if __name__ == "__main__":
    main()
