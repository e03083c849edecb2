"""The server's side of a conversation: order, answers to everything, cancellation, the end."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from filepact.errors import InvalidParamsError
from filepact_csharp.rpc import Connection, RequestContext, RequestError
from filepact_wire.framing import FrameReader, frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INIT = {"id": 0, "method": "initialize", "params": {}}


class Line:
    """A conversation in a thread of its own, and the other end of its pipes."""

    def __init__(
        self,
        requests: dict[str, Callable[[Any, RequestContext], Any]],
        notifications: dict[str, Callable[[Any], None]] | None = None,
        idle: Callable[[RequestContext], bool] = lambda _context: False,
    ) -> None:
        theirs, self.sink = os.pipe()
        self.source, ours = os.pipe()
        requests = {"initialize": lambda _params, _context: {"capabilities": {}}, **requests}
        self.connection = Connection(theirs, ours, requests, notifications or {}, idle)
        self._theirs = (theirs, ours)
        self._reader = FrameReader()
        self._waiting: list[Any] = []
        self.status: int | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.status = self.connection.run()

    def send(self, *messages: dict[str, Any]) -> None:
        os.write(self.sink, b"".join(frame({"jsonrpc": "2.0", **one}) for one in messages))

    def take(self) -> Any:
        """The next message."""
        while not self._waiting:
            self._waiting += self._reader.feed(os.read(self.source, 1 << 16))
        return self._waiting.pop(0)

    def ended(self) -> int | None:
        self._thread.join()
        return self.status

    def close(self) -> None:
        if self.sink >= 0:
            os.close(self.sink)
            self.sink = -1

    def clean(self) -> None:
        self.close()
        self._thread.join()
        for one in (self.source, *self._theirs):
            os.close(one)


@pytest.fixture
def lines() -> Iterator[Callable[..., Line]]:
    made: list[Line] = []

    def make(*args: Any) -> Line:
        made.append(Line(*args))
        return made[-1]

    yield make
    for one in made:
        one.clean()


def echo(params: Any, _context: RequestContext) -> Any:
    return params


def test_requests_are_answered_in_order_between_what_is_told(lines: Callable[..., Line]) -> None:
    heard: list[Any] = []
    line = lines({"look": lambda _params, _context: list(heard)}, {"note": heard.append})
    line.send(INIT)
    line.take()
    line.send(
        {"method": "note", "params": 1},
        {"id": "a", "method": "look"},
        {"method": "note", "params": 2},
        {"id": "b", "method": "look"},
    )
    assert [line.take()["result"] for _ in "ab"] == [[1], [1, 2]]


def refuse(_params: Any, _context: RequestContext) -> Any:
    raise RequestError("no", -1)


def fail(_params: Any, _context: RequestContext) -> Any:
    raise InvalidParamsError("of ours")


def crash(_params: Any, _context: RequestContext) -> Any:
    raise RuntimeError("a mistake")


def misread(params: Any, _context: RequestContext) -> Any:
    return params["what"]["nobody"]["sent"]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"method": "refuse"}, -1),
        ({"method": "fail"}, -32803),
        ({"method": "crash"}, -32603),
        ({"method": "misread", "params": {}}, -32602),
        ({"method": "misread", "params": [1, 2]}, -32602),
        ({"method": "misread"}, -32602),
        ({"method": "nobody/knows"}, -32601),
        ({"method": "initialize", "params": {}}, -32600),
    ],
    ids=str,
)
def test_every_request_gets_an_answer(
    lines: Callable[..., Line], message: dict[str, Any], code: int
) -> None:
    line = lines({"refuse": refuse, "fail": fail, "crash": crash, "misread": misread, "e": echo})
    line.send(INIT, {"id": 1, **message}, {"id": 2, "method": "e", "params": [3]})
    answers = [line.take() for _ in range(3)]
    assert answers[1]["error"]["code"] == code
    assert answers[2]["result"] == [3]


def test_notifications_that_cannot_be_taken_end_nothing(lines: Callable[..., Line]) -> None:
    line = lines({"e": echo}, {"note": lambda params: params["nobody"]["sent"]})
    line.send(
        INIT,
        {"method": "note", "params": None},
        {"method": "nobody/knows"},
        {"method": 5},
        {"id": 77, "result": None},
        {"id": 78},
        {"id": None, "method": "e"},
        {"id": {"a": 1}, "method": "e"},
        {"id": 1, "method": "e", "params": "x"},
    )
    answers = [line.take() for _ in range(4)]
    assert [one["id"] for one in answers] == [0, None, {"a": 1}, 1]


def test_bodies_that_are_no_messages_are_answered_and_passed_over(
    lines: Callable[..., Line],
) -> None:
    line = lines({"e": echo})
    for body in (b"[1]", b"{", b"\xff", b"null"):
        os.write(line.sink, b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    line.send(INIT)
    answers = [line.take() for _ in range(5)]
    assert [one.get("error", {}).get("code") for one in answers] == [-32700] * 4 + [None]


def test_bytes_that_cannot_be_cut_end_the_conversation(lines: Callable[..., Line]) -> None:
    line = lines({})
    os.write(line.sink, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert line.ended() == 1


def test_nothing_is_done_before_the_beginning_or_after_the_end(lines: Callable[..., Line]) -> None:
    heard: list[Any] = []
    line = lines({"e": echo}, {"note": heard.append})
    line.send(
        {"method": "note", "params": 1},
        {"id": 1, "method": "e"},
        INIT,
        {"id": 2, "method": "shutdown"},
        {"method": "note", "params": 2},
        {"id": 3, "method": "e"},
        {"method": "exit"},
    )
    answers = {one["id"]: one.get("error", {}).get("code") for one in (line.take() for _ in "1234")}
    assert answers == {1: -32002, 0: None, 2: None, 3: -32600}
    assert line.ended() == 0
    assert heard == []


@pytest.mark.parametrize("sent", [[INIT], []])
def test_a_client_that_simply_goes_is_noticed(
    lines: Callable[..., Line], sent: list[dict[str, Any]]
) -> None:
    line = lines({})
    line.send(*sent)
    line.close()
    assert line.ended() == 1


def test_a_request_that_waits_can_be_given_up(lines: Callable[..., Line]) -> None:
    begun, go, worked = threading.Event(), threading.Event(), []

    def slow(_params: Any, _context: RequestContext) -> Any:
        begun.set()
        go.wait()
        return "done"

    def work(_params: Any, _context: RequestContext) -> Any:
        worked.append(1)

    line = lines({"slow": slow, "work": work})
    line.send(INIT, {"id": 1, "method": "slow"}, {"id": 2, "method": "work"})
    begun.wait()
    line.send(
        {"method": "$/cancelRequest", "params": {"id": 2}},
        {"method": "$/cancelRequest", "params": {"id": 99}},
        {"method": "$/cancelRequest", "params": None},
        # Behind the cancellations, so that they are read when this is.
        {"id": 1, "result": "odd"},
        {"id": 3, "method": "nobody/knows"},
    )
    while 3 not in line.connection._contexts:
        pass
    go.set()
    answers = {one["id"]: one for one in (line.take() for _ in range(4))}
    assert answers[1]["result"] == "done"
    assert answers[2]["error"]["code"] == -32800
    assert worked == []


def test_work_that_goes_on_is_ended_when_it_is_given_up(lines: Callable[..., Line]) -> None:
    stopped = threading.Event()

    def slow(_params: Any, context: RequestContext) -> Any:
        context.stops(stopped.set)
        stopped.wait()
        raise RuntimeError("whatever the work ends with")

    line = lines({"slow": slow})
    line.send(INIT, {"id": 1, "method": "slow"})
    line.take()
    line.send({"method": "$/cancelRequest", "params": {"id": 1}})
    assert line.take()["error"]["code"] == -32800


def test_work_that_goes_on_is_ended_when_the_client_goes(lines: Callable[..., Line]) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def slow(_params: Any, context: RequestContext) -> Any:
        context.stops(stopped.set)
        begun.set()
        stopped.wait()

    line = lines({"slow": slow})
    line.send(INIT, {"id": 1, "method": "slow"})
    begun.wait()
    line.close()
    assert line.ended() == 1


def test_work_that_begins_too_late_is_ended_at_once() -> None:
    context, stopped = RequestContext(), []
    context.cancel()
    context.stops(lambda: stopped.append(1))
    assert stopped == [1]
    context.stops(None)
    context.cancel()
    assert stopped == [1]


def test_what_is_done_beforehand_is_left_for_whatever_comes(lines: Callable[..., Line]) -> None:
    begun, left = threading.Event(), []

    def idle(context: RequestContext) -> bool:
        stopped = threading.Event()
        context.stops(stopped.set)
        begun.set()
        stopped.wait()
        left.append(1)
        raise RuntimeError("whatever the work ends with")

    line = lines({"e": echo}, {}, idle)
    assert not begun.is_set()
    line.send(INIT)
    line.take()
    begun.wait()
    line.send({"id": 1, "method": "e", "params": 5})
    assert line.take()["result"] == 5
    assert left


def test_what_is_done_beforehand_is_done_step_by_step_until_nothing_is_left(
    lines: Callable[..., Line],
) -> None:
    steps, over = [3, 2, 1], threading.Event()

    def idle(_context: RequestContext) -> bool:
        if steps:
            steps.pop()
            return True
        over.set()
        return False

    line = lines({"e": echo}, {}, idle)
    line.send(INIT)
    over.wait()
    assert steps == []
    line.send({"id": 1, "method": "e", "params": 5})
    assert [line.take().get("result") for _ in "ab"][1] == 5


def test_that_an_answer_has_come_is_told_once(lines: Callable[..., Line]) -> None:
    done: list[int] = []
    line = lines({"e": lambda _params, _context: len(done)})
    line.send(INIT)
    line.take()
    line.connection.request("client/asked", {}, lambda: done.append(1))
    asked = line.take()
    assert asked["method"] == "client/asked"
    answer = {"id": asked["id"], "error": {"code": 1, "message": "no"}}
    line.send(answer, answer, {"id": 5, "result": None}, {"id": 1, "method": "e"})
    assert line.take()["result"] == 1


def test_parts_of_an_answer_go_to_whoever_wants_them(lines: Callable[..., Line]) -> None:
    def parts(_params: Any, context: RequestContext) -> Any:
        if context.send is None:
            return "all"
        for number in range(3):
            context.send(number)
        return "rest"

    line = lines({"parts": parts})
    line.send(
        INIT,
        {"id": 1, "method": "parts", "params": {"partialResultToken": "t"}},
        {"id": 2, "method": "parts", "params": {"partialResultToken": [1]}},
    )
    found = [line.take() for _ in range(6)][1:]
    assert [one["params"] for one in found[:3]] == [{"token": "t", "value": n} for n in range(3)]
    assert [one["result"] for one in found[3:]] == ["rest", "all"]


def test_mutated_messages_end_nothing(lines: Callable[..., Line]) -> None:
    """Every value of a right message replaced by every odd one."""
    odd = [None, True, -1, 2**70, 1.5, "", "\ud800", "file:///x", [], [None], {}, {"id": 1}]
    right = {
        "id": 5,
        "method": "e",
        "params": {"textDocument": {"uri": "file:///a.cs"}, "x": [1, {"y": "z"}]},
    }
    line = lines({"e": misread}, {"e": lambda params: params["a"]["b"]})
    line.send(INIT)
    line.take()
    asked = answered = 0
    for text in _mutated(right, odd):
        os.write(line.sink, b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        parsed = json.loads(text)
        if isinstance(parsed, dict) and "id" in parsed and isinstance(parsed.get("method"), str):
            asked += 1
            if parsed["method"] not in ("shutdown", "exit"):
                line.take()
                answered += 1
    assert asked == answered > 50


def _mutated(value: Any, odd: list[Any]) -> Iterator[bytes]:
    def places(inner: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        yield path
        for key, one in (
            inner.items()
            if isinstance(inner, dict)
            else enumerate(inner)
            if isinstance(inner, list)
            else ()
        ):
            yield from places(one, (*path, key))

    for path in places(value):
        for one in odd:
            copy = json.loads(json.dumps(value))
            if not path:
                copy = one
            else:
                target = copy
                for key in path[:-1]:
                    target = target[key]
                target[path[-1]] = one
            if isinstance(copy, dict):
                yield json.dumps(copy).encode()
