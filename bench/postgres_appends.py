"""Operations begun a second in a journal on PostgreSQL: one in each transaction, and as many as wait.

    .venv-test/bin/python bench/postgres_appends.py [OPERATIONS]

Starts a server of its own, which synchronises to the disk.  The ways take turns, and the medians of
three rounds count; ratios say more than figures, which depend on the disk and on what else runs.
"""

from __future__ import annotations

import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from filepact_fleet import postgres_connection  # noqa: E402
from filepact_fleet.postgres import PostgresStore  # noqa: E402
from filepact_fleet.postgres_connection import migrate_database  # noqa: E402
from tests.postgres import Server, binaries  # noqa: E402
from tests.store.making import change, contents, operation  # noqa: E402

WAYS = {
    "one each, one thread": (1, 1),
    "one each, 64 threads": (64, 1),
    "together, 16 threads": (16, 256),
    "together, 64 threads": (64, 256),
    "together, 256 threads": (256, 256),
}


def measure(url: str, name: str, threads: int, batch: int, count: int) -> float:
    """Operations a second."""
    postgres_connection._BATCH = batch  # noqa: SLF001
    store = PostgresStore(url, workspace=name, holder=name)
    given = []
    for number in range(count):
        old, new = b"line\n" * 40 + b"%d" % number, b"line\n" * 40 + b"%d" % (number + 1)
        given.append((operation(change(f"{number % 50}", old, new)), contents(old, new)))
    store.begin(*given.pop())
    before = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda one: store.begin(*one), given))
    took = time.perf_counter() - before
    store.close()
    return len(given) / took


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000
    place = binaries()
    if place is None:
        sys.exit("no PostgreSQL server is here")
    server = Server(place, fsync="on", full_page_writes="on", shared_buffers="128MB")
    try:
        migrate_database(server.url)
        found: dict[str, list[float]] = {way: [] for way in WAYS}
        for turn in range(3):
            for way, (threads, batch) in WAYS.items():
                some = count if batch > 1 else count // 8
                rate = measure(server.url, f"{way} {turn}", threads, batch, some)
                found[way].append(rate)
        least = statistics.median(found["one each, one thread"])
        for way, rates in found.items():
            rate = statistics.median(rates)
            print(f"{way:24} {rate:9,.0f}/s  {rate / least:6.1f} times")
    finally:
        server.remove()


if __name__ == "__main__":
    main()
