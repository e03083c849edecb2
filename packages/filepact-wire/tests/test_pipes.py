"""Messages to one client: each whole, in the order in which they were sent, whatever the pipe takes."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import threading
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

import pytest

from filepact_wire.pipes import MessagePipes, listen, stopped_by_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact_wire.messages import Message

MESSAGES = 20
WORKERS = 3


def encoded(message: Message) -> bytes:
    return json.dumps(message).encode()


def ends(kind: str) -> tuple[int, int]:
    """Where a client reads, and where its server writes."""
    if kind == "pipe":
        return os.pipe()
    here, there = socket.socketpair()
    return here.detach(), there.detach()


@pytest.fixture(params=["pipe", "socket"])
def wire(request: pytest.FixtureRequest) -> Iterator[tuple[MessagePipes, int, threading.Event]]:
    reading, writing = ends(request.param)
    source, never = os.pipe()
    lost = threading.Event()
    pipes = MessagePipes(source, writing, json.loads, encoded, workers=WORKERS)
    pipes.start(lambda _message: None, ended=lambda: None, lost=lost.set)
    yield pipes, reading, lost
    os.close(never)
    pipes.close()
    for descriptor in (reading, writing):
        os.close(descriptor)


def received(reading: int, count: int) -> list[Message]:
    pieces: list[bytes] = []
    while count > 0:
        pieces.append(os.read(reading, 65_536))
        count -= pieces[-1].count(b"\n")
    return [json.loads(line) for line in b"".join(pieces).splitlines()]


@pytest.mark.parametrize("size", [1, 5_000, 200_000])
def test_what_a_client_takes_late_comes_whole_and_in_order(
    wire: tuple[MessagePipes, int, threading.Event], size: int
) -> None:
    pipes, reading, _lost = wire
    for number in range(MESSAGES):
        pipes.send({"number": number, "text": "x" * size})  # nobody reads yet, and this never waits
    found = received(reading, MESSAGES)
    assert [one["number"] for one in found] == list(range(MESSAGES))
    assert {len(one["text"]) for one in found} == {size}
    pipes.send({"number": -1})
    assert received(reading, 1) == [{"number": -1}]


def test_threads_that_send_at_once_do_not_mix_their_messages(
    wire: tuple[MessagePipes, int, threading.Event],
) -> None:
    pipes, reading, _lost = wire

    def send(who: int) -> None:
        for number in range(MESSAGES):
            pipes.send({"who": who, "number": number, "text": "x" * (number * 1_000)})

    senders = [threading.Thread(target=send, args=(who,)) for who in range(4)]
    for one in senders:
        one.start()
    found = received(reading, 4 * MESSAGES)
    for one in senders:
        one.join()
    for who in range(4):
        assert [one["number"] for one in found if one["who"] == who] == list(range(MESSAGES))


def test_a_client_that_has_gone_is_noticed_by_what_is_sent_to_it() -> None:
    reading, writing = os.pipe()
    source, never = os.pipe()
    lost = threading.Event()
    pipes = MessagePipes(source, writing, json.loads, encoded, workers=WORKERS)
    pipes.start(lambda _message: None, ended=lambda: None, lost=lost.set)
    os.close(reading)
    pipes.send({"number": 1})
    assert lost.wait(30)
    os.close(never)
    pipes.close()
    os.close(writing)


def test_who_closes_its_ends_is_not_read_from_any_more_nor_is_what_gets_their_numbers() -> None:
    source, old = os.pipe()
    reading, writing = os.pipe()
    taken: SimpleQueue[object] = SimpleQueue()
    goes_on = threading.Event()

    def receive(message: Message) -> None:
        taken.put(message["id"])
        taken.put(threading.current_thread())
        goes_on.wait(60)

    pipes = MessagePipes(source, writing, json.loads, encoded, workers=WORKERS)
    pipes.start(receive, ended=lambda: None, lost=lambda: None)
    message = encoded({"jsonrpc": "2.0", "id": 1, "method": "a"}) + b"\n"
    os.write(old, message)
    assert taken.get(timeout=60) == 1
    reader = taken.get(timeout=60)
    assert isinstance(reader, threading.Thread)
    pipes.close()
    os.write(old, message)
    os.close(source)
    other, new = os.pipe()
    assert other == source
    os.write(new, b"theirs")
    goes_on.set()
    reader.join(60)
    assert not reader.is_alive()
    assert taken.empty()
    assert os.read(other, 10) == b"theirs"
    for descriptor in (reading, writing, other, new, old):
        os.close(descriptor)


class Client:
    """A client whose messages say what is done for them; the two ends of its pipes are in one process."""

    def __init__(self) -> None:
        self.source, self.writing = os.pipe()
        self.reading, self.sink = os.pipe()
        self.pipes = MessagePipes(self.source, self.sink, json.loads, encoded, workers=WORKERS)
        self.does: dict[str, Callable[[Message], None]] = {}
        self.waits: dict[str, str] = {}
        self.heard: SimpleQueue[str] = SimpleQueue()
        self.done: list[object] = []
        self.over = threading.Event()

    def start(self) -> None:
        self.pipes.start(self._receive, ended=self.over.set, lost=self.over.set)

    def _receive(self, message: Message) -> None:
        method = message["method"]
        self.heard.put(method)
        if method in self.does:
            self.pipes.run(partial(self._do, message), self.waits.get(method, ""))  # type: ignore[arg-type]

    def _do(self, message: Message) -> None:
        self.does[message["method"]](message)
        self.done.append(message["id"])
        self.pipes.send({"id": message["id"], "thread": threading.get_ident()})

    def say(self, *methods: str) -> None:
        """Send messages by one write, numbered."""
        lines = (
            encoded({"jsonrpc": "2.0", "id": number, "method": method}) + b"\n"
            for number, method in enumerate(methods)
        )
        os.write(self.writing, b"".join(lines))

    def hears(self, *methods: str) -> None:
        assert [self.heard.get(timeout=60) for _ in methods] == list(methods)

    def answers(self, count: int) -> list[Message]:
        return received(self.reading, count)

    def hang_up(self) -> None:
        os.close(self.writing)
        assert self.over.wait(60)
        self.pipes.close()
        for descriptor in (self.source, self.reading, self.sink):
            os.close(descriptor)


@pytest.fixture
def talking() -> Iterator[Client]:
    client = Client()
    yield client
    client.hang_up()


def test_short_work_is_done_in_order_by_the_thread_that_reads(talking: Client) -> None:
    readers: set[int] = set()
    talking.does = {"short": lambda _message: readers.add(threading.get_ident())}
    talking.start()
    talking.say(*["short"] * MESSAGES)
    assert [one["id"] for one in talking.answers(MESSAGES)] == list(range(MESSAGES))
    assert len(readers) <= 2  # the other one where this machine was busy for a while


@pytest.mark.parametrize("waits", ["", "disk", "client"])
@pytest.mark.parametrize("behind", [1, MESSAGES])
def test_work_that_lasts_holds_up_neither_messages_nor_work_behind_it(
    talking: Client, behind: int, waits: str
) -> None:
    released = threading.Event()
    talking.does = {"long": lambda _message: released.wait(60), "short": lambda _message: None}
    talking.waits = {"long": waits}
    talking.start()
    talking.say("long", *["short"] * behind)
    first = talking.answers(behind)  # all but the long one's
    talking.say("notice")
    talking.hears("long", *["short"] * behind, "notice")
    assert sorted(one["id"] for one in first) == list(range(1, behind + 1))
    assert 0 not in talking.done
    released.set()
    assert [one["id"] for one in talking.answers(1)] == [0]


@pytest.mark.parametrize("waits", ["", "disk"])
def test_as_many_pieces_of_work_are_done_at_once_as_may_be_and_the_others_after_them(
    talking: Client, waits: str
) -> None:
    begun: SimpleQueue[int] = SimpleQueue()
    released = threading.Semaphore(0)

    def last(message: Message) -> None:
        begun.put(message["id"])
        assert released.acquire(timeout=60)

    talking.does, talking.waits = {"long": last}, {"long": waits}
    talking.start()
    talking.say(*["long"] * 7)
    assert {begun.get(timeout=60) for _ in range(WORKERS)} == set(range(WORKERS))
    talking.say("notice")  # is heard although nobody is left to work
    talking.hears(*["long"] * 7, "notice")
    assert begun.empty()
    for number in range(WORKERS, 7):
        released.release()
        assert begun.get(timeout=60) == number
        assert len(talking.answers(1)) == 1
    released.release(WORKERS)
    assert len(talking.answers(WORKERS)) == WORKERS
    assert sorted(talking.done) == list(range(7))  # type: ignore[type-var]


def test_what_was_asked_for_before_the_end_is_done_and_answered(talking: Client) -> None:
    met = threading.Event()
    talking.does = {"first": lambda _message: met.wait(60), "last": lambda _message: met.set()}
    talking.start()
    os.set_blocking(talking.writing, False)
    talking.say("first", "last")
    writing, talking.writing = talking.writing, os.open(os.devnull, os.O_WRONLY)
    os.close(writing)
    assert sorted(one["id"] for one in talking.answers(2)) == [0, 1]


def test_whoever_sends_too_much_work_waits(talking: Client) -> None:
    released = threading.Event()
    talking.does = {"long": lambda _message: released.wait(60), "short": lambda _message: None}
    talking.start()
    talking.say(*["long"] * WORKERS)
    talking.hears(*["long"] * WORKERS)
    offered = 5_000
    sender = threading.Thread(target=lambda: [talking.say("short") for _ in range(offered)])
    sender.start()
    for _ in range(256):
        talking.heard.get(timeout=60)
    sender.join(1)
    assert sender.is_alive()
    assert talking.heard.qsize() < offered // 2  # what one read has given is heard as well
    released.set()
    assert len(talking.answers(WORKERS + offered)) == WORKERS + offered
    sender.join(60)


def test_of_a_client_that_takes_no_answers_no_more_is_read_until_it_does(talking: Client) -> None:
    size, offered = 200_000, 500
    asks = f"{'ask':10000}"
    sent: list[Message] = []

    def answer(message: Message) -> None:
        sent.append(message)
        talking.pipes.send({"text": "x" * size})

    talking.does = {asks: answer}
    talking.start()
    sender = threading.Thread(target=lambda: [talking.say(asks) for _ in range(offered)])
    sender.start()
    still, before = 0, -1
    while still < 20 and sender.is_alive():
        # The pipe to the server is full as long as that does not read.
        full = not select.select([], [talking.writing], [], 0)[1]
        still, before = still + 1 if full and len(sent) == before else 0, len(sent)
        sender.join(0.05)
    assert sender.is_alive()
    assert len(sent) < 200
    lines = 0
    while lines < 2 * offered:
        lines += os.read(talking.reading, 1 << 20).count(b"\n")
    assert len(sent) == offered
    sender.join(60)


def test_a_connection_sends_at_once_what_it_is_given() -> None:
    async def ask() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def came(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connected = writer.get_extra_info("socket")
            found.set_result(connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = listen("127.0.0.1", 0)
        async with await asyncio.start_server(came, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            writer.close()
            return await found

    assert asyncio.run(ask()) == 1


def test_a_signal_that_another_thread_takes_wakes_who_waits() -> None:
    over: SimpleQueue[bool] = SimpleQueue()

    def send() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    with stopped_by_signals(lambda: over.put(True)):
        sender = threading.Timer(0.2, send)  # by then this thread waits for a lock
        sender.start()
        assert over.get(timeout=60)
        sender.join()
