"""The paper plan of `docs/explanation/scale.md`, simulated: `python -m bench.capacity`.

Two questions.  How many changes a second does *one* shared workspace take, when all its writers exchange one head?  That is
simulated event by event, with the same tries and waits as `objects/repository.py`.  And what does a fleet need: its arrivals in the hour of the
peak are drawn second by second, and every engine is compared with what it can do.  Seeded; it prints the same each time.
"""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 21
OPERATIONS = 10 / 60  # of a session in a second
READ, SEARCH, WRITE = 0.70, 0.15, 0.15
PEAK = 3.0

# Processor time of a call in milliseconds, on a machine of 24 November 2026 (2 shared virtual cores): measured with the
# toolset on a checkout with a server on loopback; search and the gateway's HTTP are assumed.
READ_CPU, WRITE_CPU, SEARCH_CPU, HTTP_CPU = 1.1, 6.3, 12.0, 1.5
BUSY = 0.6
"""Share of a core that is planned with: the rest is for the seconds that have more than others."""
COMMITS = 10_109  # PostgreSQL, 64 connections, 2 shared cores, one journal row and one head row (21 November 2026)
JOURNAL_ROW = 544  # bytes, with the change as a delta
HEAD_BYTES = 12_000
PACK_BYTES = 4_000
PUT_PRICE, GET_PRICE, BYTE_PRICE = (
    5e-6,
    4e-7,
    0.023 / 1e9,
)  # US list prices from memory: check before quoting
MONTH = 30 * 86_400

_TRIES, _FIRST, _LONGEST = 24, 0.004, 0.5  # of objects/repository.py


@dataclass
class _Writer:
    machine: int
    begun: float = 0.0
    attempt: int = 0
    read: int = 0


@dataclass
class Contention:
    """What one shared workspace did.

    Attributes:
        done: Changes a second.
        again: Exchanges of the head that came too late, for each change.
        p50: Milliseconds until a change was made.
        p99: The same of the slowest hundredth.
        refused: Changes that were given up.
    """

    done: float
    again: float
    p50: float
    p99: float
    refused: int


def contention(writers: int, think: float, answer: float, seconds: float = 120.0) -> Contention:
    """Machines that change different files of one shared workspace.

    Args:
        writers: Machines.
        think: Seconds between two changes of one, on average.
        answer: Seconds until the server answers.
        seconds: How long.
    """
    chance = random.Random(f"{SEED} {writers} {think} {answer}")
    events: list[tuple[float, int, str, _Writer]] = []
    number = version = done = again = refused = 0
    times: list[float] = []

    def later(at: float, what: str, who: _Writer) -> None:
        nonlocal number
        number += 1
        heapq.heappush(events, (at, number, what, who))

    def spent() -> float:
        return answer * (0.5 + chance.expovariate(2.0))

    for one in range(writers):
        later(chance.expovariate(1 / think), "begin", _Writer(one))
    while events:
        now, _, what, who = heapq.heappop(events)
        if now > seconds:
            break
        if what == "begin":
            who.begun, who.attempt = now, 0
            later(now + spent(), "look", who)
        elif what == "look":
            who.read = version
            later(
                now + spent() * (2 if who.attempt == 0 else 1), "swap", who
            )  # the pack once, then the head
        elif who.read == version:
            version += 1
            done += 1
            times.append(now - who.begun)
            later(now + chance.expovariate(1 / think), "begin", who)
        else:
            again += 1
            who.attempt += 1
            if who.attempt >= _TRIES:
                refused += 1
                later(now + chance.expovariate(1 / think), "begin", who)
                continue
            wait = min(_LONGEST, _FIRST * 2 ** min(who.attempt, 10)) * (0.5 + chance.random())
            later(now + wait + spent(), "look", who)
    times.sort()
    place = len(times) - 1
    return Contention(
        done / seconds,
        again / max(done, 1),
        1_000 * times[place // 2] if times else math.inf,
        1_000 * times[place * 99 // 100] if times else math.inf,
        refused,
    )


@dataclass
class Fleet:
    """What some sessions need in their busiest hour.

    Attributes:
        second: Operations in the busiest second.
        gateways: Cores of gateways, at `BUSY` of each.
        commits: Journal rows in the busiest second.
        shards: Of PostgreSQL, that none takes more than half of `COMMITS`.
        pool: Connections of each shard.
        puts: Writes to the bucket in the busiest second.
        journal: Gigabytes of journal a day.
        money: US dollars a month for requests and bytes of the bucket.
        asked: US dollars of it for asking what is newest.
    """

    second: int
    gateways: int
    commits: int
    shards: int
    pool: int
    puts: int
    journal: float
    money: float
    asked: float


def fleet(sessions: int) -> Fleet:
    """The busiest hour of some sessions, second by second."""
    chance = random.Random(f"{SEED} {sessions}")
    average = sessions * OPERATIONS
    drawn = [_poisson(chance, average * PEAK) for _ in range(3_600)]
    second = max(drawn)
    cpu = READ * READ_CPU + WRITE * WRITE_CPU + SEARCH * SEARCH_CPU + HTTP_CPU
    commits = math.ceil(second * WRITE)
    shards = max(1, math.ceil(commits / (COMMITS / 2)))
    writes = average * WRITE * MONTH
    asked = average * MONTH * GET_PRICE
    stored = writes * PACK_BYTES * BYTE_PRICE / 2  # a month's packs, half of them on average
    return Fleet(
        second,
        math.ceil(second * cpu / 1_000 / BUSY),
        commits,
        shards,
        math.ceil(64 / shards) if shards < 2 else 64,
        2 * commits,
        average * WRITE * 86_400 * JOURNAL_ROW / 1e9,
        2 * writes * PUT_PRICE + asked + stored,
        asked,
    )


def _poisson(chance: random.Random, mean: float) -> int:
    """Arrivals of one second; by the normal distribution where there are many."""
    if mean > 50:
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))
    limit, count, product = math.exp(-mean), 0, chance.random()
    while product > limit:
        count, product = count + 1, product * chance.random()
    return count


def lines() -> Iterator[str]:
    """The tables, as the document has them."""
    yield "| machines that change one workspace | answer of the server | changes/s | tries too late, each | p50 | p99 | given up |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for answer in (0.003, 0.030):
        for writers in (1, 4, 16, 64, 256):
            one = contention(writers, 40.0, answer)
            yield (
                f"| {writers} | {answer * 1_000:.0f} ms | {one.done:.2f} | {one.again:.2f} | {one.p50:.0f} ms | "
                f"{one.p99:.0f} ms | {one.refused} |"
            )
    for answer in (0.003, 0.030):
        one = contention(16, 0.01, answer)
        yield (
            f"| 16, without a pause | {answer * 1_000:.0f} ms | {one.done:.2f} | {one.again:.2f} | {one.p50:.0f} ms | "
            f"{one.p99:.0f} ms | {one.refused} |"
        )
    yield ""
    yield "| sessions | operations/s at the peak | cores of gateways | commits/s | shards | connections each | writes/s to the bucket | journal a day | bucket a month | of it for asking |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for sessions in (100, 1_000, 10_000, 100_000):
        need = fleet(sessions)
        yield (
            f"| {sessions:,} | {need.second:,} | {need.gateways:,} | {need.commits:,} | {need.shards} | {need.pool} | "
            f"{need.puts:,} | {need.journal:.1f} GB | ${need.money:,.0f} | ${need.asked:,.0f} |"
        )


if __name__ == "__main__":
    for line in lines():
        print(line)
