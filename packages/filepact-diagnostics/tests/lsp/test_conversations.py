"""Requests, answers and processes, one conversation at a time."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from filepact_diagnostics.lsp.capabilities import initialize_params
from filepact_diagnostics.lsp.client import LanguageClient
from filepact_diagnostics.lsp.failures import (
    RequestFailedError,
    RequestTimeoutError,
    ServerError,
    ServerExitedError,
)
from filepact_diagnostics.lsp.forkserver import ProcessOptions
from filepact_diagnostics.lsp.peer import ClientProtocol
from filepact_diagnostics.lsp.process import ServerProcess
from filepact_supervisor import supervisor
from filepact_wire.framing import FrameReader, frame
from filepact_wire.messages import (
    CONTENT_MODIFIED,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    SERVER_CANCELLED,
)
from tests.servers.fakes import PROGRAM, fake

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Side:
    """A peer, what it has sent, and what it was told."""

    def __init__(self, answer: Callable[[str, Any], Any] = lambda _m, _p: None) -> None:
        self.sent: list[dict] = []
        self.told: list[str] = []
        self.broken: list[str] = []
        self.gone = False
        self.peer = ClientProtocol(self._send, answer, self._tell, self.broken.append)

    def _send(self, data: bytes) -> None:
        if self.gone:
            raise ServerExitedError("gone")
        self.sent += FrameReader().feed(data)

    def _tell(self, method: str, params: Any) -> None:
        self.told.append(method)
        if params == "bad":
            raise ValueError(params)

    def hear(self, **message: Any) -> None:
        self.peer.feed(frame(message))


def asked(answer: dict) -> Any:
    """What a request gets for an answer."""

    async def talk() -> Any:
        side = Side()
        request = asyncio.create_task(side.peer.request("m", {"p": 1}, 5.0))
        await asyncio.sleep(0)
        side.hear(id=side.sent[0]["id"], **answer)
        return await request

    return asyncio.run(talk())


def test_an_answer_reaches_who_asked() -> None:
    assert asked({"result": [1]}) == [1]
    assert asked({"result": None}) is None


@pytest.mark.parametrize(
    ("error", "code", "retry"),
    [
        ({"code": SERVER_CANCELLED, "message": "m"}, SERVER_CANCELLED, True),
        ({"code": SERVER_CANCELLED, "data": {"retriggerRequest": False}}, SERVER_CANCELLED, False),
        ({"code": CONTENT_MODIFIED, "message": "m"}, CONTENT_MODIFIED, False),
        ({"code": "odd", "message": 7}, INTERNAL_ERROR, False),
    ],
)
def test_an_error_says_whether_to_ask_again(error: dict, code: int, retry: bool) -> None:
    with pytest.raises(RequestFailedError) as caught:
        asked({"error": error})
    assert (caught.value.code, caught.value.retry) == (code, retry)


def test_a_request_that_is_late_or_given_up_is_cancelled_there() -> None:
    async def talk() -> list[str]:
        side = Side()
        with pytest.raises(RequestTimeoutError):
            await side.peer.request("m", None, 0.01)
        request = asyncio.create_task(side.peer.request("n", None, 5.0))
        await asyncio.sleep(0)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        side.hear(id=1, result=None)  # too late
        assert side.peer.nonsense == 1
        return [one["method"] for one in side.sent]

    assert asyncio.run(talk()) == ["m", "$/cancelRequest", "n", "$/cancelRequest"]


async def sent(side: Side, count: int) -> None:
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(side.sent) == count


def test_requests_that_are_answered_alone_wait_for_each_other_and_are_not_cancelled() -> None:
    async def talk() -> list[str]:
        side = Side()
        first = asyncio.create_task(side.peer.request_alone("m", None, 0.3))
        second = asyncio.create_task(side.peer.request_alone("n", None, 5.0))
        for one in (first, asyncio.create_task(side.peer.request_alone("o", None, 0.3))):
            with pytest.raises(RequestTimeoutError):
                await one
        assert [one["method"] for one in side.sent] == ["m"]
        side.hear(id=1, result=[1])
        await sent(side, 2)
        side.hear(id=side.sent[1]["id"], result=[2])
        assert await second == [2]
        last = asyncio.create_task(side.peer.request_alone("p", None, 5.0))
        await sent(side, 3)
        side.peer.close("gone")
        with pytest.raises(ServerExitedError):
            await last
        return [one["method"] for one in side.sent]

    assert asyncio.run(talk()) == ["m", "n", "p"]


def test_whoever_waits_learns_that_the_other_side_is_gone() -> None:
    async def talk() -> None:
        side = Side()
        request = asyncio.create_task(side.peer.request("m", None, 5.0))
        await asyncio.sleep(0)
        side.peer.feed(b"Content-Length: none\r\n\r\n")
        side.peer.close("again")
        with pytest.raises(ServerExitedError):
            await request
        with pytest.raises(ServerExitedError):
            await side.peer.request("m", None, 5.0)
        with pytest.raises(ServerExitedError):
            side.peer.notify("m", None)
        side.hear(method="ignored")
        assert side.told == []
        assert len(side.broken) == 1

    asyncio.run(talk())


def test_requests_of_the_other_side_get_what_they_ask_for() -> None:
    def answer(method: str, params: Any) -> Any:
        if method == "unknown":
            raise RequestFailedError(METHOD_NOT_FOUND, "no")
        return params["value"]

    side = Side(answer)
    side.hear(id=1, method="m", params={"value": 2})
    side.hear(id="x", method="unknown")
    side.hear(id=3, method="m", params=None)
    results = [
        (one["id"], one.get("result"), one.get("error", {}).get("code")) for one in side.sent
    ]
    assert results == [(1, 2, None), ("x", None, METHOD_NOT_FOUND), (3, None, INTERNAL_ERROR)]


def test_notifications_of_another_shape_and_bodies_that_are_none_are_counted() -> None:
    side = Side()
    side.hear(method="a")
    side.hear(method="b", params="bad")
    side.peer.feed(b"Content-Length: 1\r\n\r\n{")
    assert side.told == ["a", "b"]
    assert side.peer.nonsense == 2
    assert side.peer.message_count == 2


def test_an_answer_that_cannot_be_sent_ends_the_conversation() -> None:
    side = Side()
    side.gone = True
    side.hear(id=1, method="m")
    assert side.broken == ["gone"]


def launch(folder: Path, *command: str) -> ProcessOptions:
    return ProcessOptions(command, str(folder), {"PATH": os.environ["PATH"]})


async def collect(folder: Path, *command: str) -> tuple[bytes, str, ServerProcess]:
    """What a program writes until it ends, why it ended, and the process."""
    output, end = bytearray(), asyncio.get_running_loop().create_future()
    process = await ServerProcess.start(launch(folder, *command), output.extend, end.set_result)
    reason = await asyncio.wait_for(end, 20)
    await process.stop(1.0)
    return bytes(output), reason, process


@pytest.mark.parametrize(
    ("program", "word"),
    [("import os; os._exit(3)", "status 3"), ("import os; os.abort()", "SIGABRT")],
)
def test_a_process_says_how_it_ended(tmp_path: Path, program: str, word: str) -> None:
    async def run() -> None:
        _output, reason, process = await collect(tmp_path, sys.executable, "-c", program)
        assert word in reason
        assert process.ended
        with pytest.raises(ServerExitedError):
            process.write(b"x")

    asyncio.run(run())


def test_what_a_process_wrote_before_its_end_is_read(tmp_path: Path) -> None:
    program = "import sys; sys.stdout.write('o' * 500_000); sys.stderr.write('e' * 500_000)"

    async def run() -> None:
        output, _reason, process = await collect(tmp_path, sys.executable, "-c", program)
        assert output == b"o" * 500_000
        assert process.stderr == "e" * 16_384

    asyncio.run(run())


@pytest.mark.parametrize("command", ["/no/such/program", "no-such-program-anywhere"])
def test_a_program_that_is_not_there_is_refused_in_words(tmp_path: Path, command: str) -> None:
    with pytest.raises(ServerExitedError, match="No such file"):
        asyncio.run(collect(tmp_path, command))


def test_a_folder_that_is_not_there_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(ServerExitedError, match="No such file"):
        asyncio.run(collect(tmp_path / "nowhere", sys.executable))


def test_an_end_is_not_left_half_done_where_whoever_waits_gives_up(tmp_path: Path) -> None:
    async def run() -> None:
        before = set(os.listdir("/proc/self/fd")) if sys.platform == "linux" else set()
        program = (sys.executable, "-c", "import time; time.sleep(600)")
        process = await ServerProcess.start(launch(tmp_path, *program), len, len)
        ending = asyncio.create_task(process.kill())
        for _ in range(2):
            await asyncio.sleep(0)
            ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)
        if before:
            assert set(os.listdir("/proc/self/fd")) == before

    asyncio.run(run())


def test_a_process_that_does_not_read_does_not_fill_our_memory(tmp_path: Path) -> None:
    async def run() -> None:
        program = (sys.executable, "-c", "import time; time.sleep(600)")
        process = await ServerProcess.start(launch(tmp_path, *program), len, len)
        process.write(b"x" * 100 * 1024 * 1024)
        with pytest.raises(ServerExitedError, match="unread"):
            process.write(b"x")
        assert process.pid
        await process.kill()

    asyncio.run(run())


@pytest.mark.parametrize("answer", [None, {"capabilities": 7}])
def test_a_first_answer_that_says_nothing_is_no_start(tmp_path: Path, answer: object) -> None:
    orders = json.dumps({"first_answer": answer})
    command = (sys.executable, "-I", "-S", PROGRAM, orders)
    with pytest.raises(ServerError):
        asyncio.run(LanguageClient.start(launch(tmp_path, *command), fake(), print, 20.0))


def test_a_program_that_is_no_language_server_is_refused_with_what_it_said(tmp_path: Path) -> None:
    program = "import sys; sys.exit('I am no server')"
    command = (sys.executable, "-c", program)
    with pytest.raises(ServerExitedError, match="I am no server"):
        asyncio.run(LanguageClient.start(launch(tmp_path, *command), fake(), print, 20.0))


def test_the_first_message_offers_both_encodings_and_pull_only_if_wanted() -> None:
    with_pull = initialize_params("/house/p", 7, {"a": 1}, pull=True)
    without = initialize_params("/", 7, None, pull=False)
    assert with_pull["capabilities"]["general"]["positionEncodings"] == ["utf-8", "utf-16"]
    assert "diagnostic" in with_pull["capabilities"]["textDocument"]
    assert "diagnostic" not in without["capabilities"]["textDocument"]
    assert "initializationOptions" not in without
    assert without["workspaceFolders"][0]["name"] == "/"


def test_a_supervisor_talks_to_nobody_without_harm() -> None:
    reader, writer = os.pipe()
    supervisor._say(writer, "started 1")
    assert supervisor._alive(reader)
    os.close(writer)
    assert not supervisor._alive(reader)
    os.close(reader)
    supervisor._say(writer, "ended 0")
    assert not supervisor._alive(reader)
    assert isinstance(supervisor._children(os.getpid()), list)
    assert supervisor._memory_of_descendants(0) == 0
