"""Messages to one client: each whole, in the order in which they were sent, whatever the pipe takes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

import pytest

from filepact.wire.pipes import MessagePipes, listen, stopped_by_signals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact.wire.messages import Message

MESSAGES = 20


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
    pipes = MessagePipes(source, writing, json.loads, encoded)
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
    pipes = MessagePipes(source, writing, json.loads, encoded)
    pipes.start(lambda _message: None, ended=lambda: None, lost=lost.set)
    os.close(reading)
    pipes.send({"number": 1})
    assert lost.wait(30)
    os.close(never)
    pipes.close()
    os.close(writing)


@pytest.mark.parametrize("last", ["another message", "the end"])
def test_who_works_in_the_reading_thread_does_not_keep_others_from_being_read(last: str) -> None:
    source, client = os.pipe()
    reading, writing = os.pipe()
    pipes = MessagePipes(source, writing, json.loads, encoded)
    begun, heard, over, alone = (threading.Event() for _ in range(4))
    awaited = over if last == "the end" else heard
    done: list[bool] = []

    def work() -> None:
        begun.set()
        done.append(awaited.wait(30))

    def receive(message: Message) -> None:
        if message["method"] != "first":
            heard.set()
        elif pipes.run_alone(work):
            alone.set()

    pipes.start(receive, ended=over.set, lost=lambda: None)
    os.write(client, encoded({"jsonrpc": "2.0", "method": "first"}) + b"\n")
    assert begun.wait(30)
    if last == "another message":
        os.write(client, encoded({"jsonrpc": "2.0", "method": "second"}) + b"\n")
    os.close(client)
    assert over.wait(30)
    assert alone.wait(30)
    assert done == [True]
    pipes.close()
    for descriptor in (source, reading, writing):
        os.close(descriptor)


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
