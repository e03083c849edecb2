"""A request that is sent again is answered with what was done for it, and nothing is done twice."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import struct
import threading
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import apsw
import pytest

from filepact.domain.operation import Actor, Session
from filepact.tools.registry import Toolset
from filepact_gateway.context import RealmTools, RequestContext, UserContext
from filepact_gateway.repeats import RequestHistory, RequestName, RequestRecord
from filepact_gateway.store import SqliteGatewayStore
from filepact_gateway.tokens import GatewaySession
from filepact_mcp.results import ServerInfo, ToolCache
from gateway_running import BOTH, Client, RunningGateway, children
from tests.faces.command_line import command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def other(base: Path, gateway: RunningGateway) -> Iterator[RunningGateway]:
    """Another gateway beside the one of the file, with the same state."""
    running = RunningGateway(base, [str(base / "root")])
    yield running
    assert running.end() == 0


def keyed(key: str) -> dict[str, str]:
    return {"idempotency_key": key}


def operation(answer: Any) -> str:
    return answer.result["_meta"]["filepact/receipt"]["operation"]


def is_repeated(answer: Any) -> bool:
    """Whether an answer says in its first line that it is that of an earlier request, and of when."""
    made = re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", answer.text.splitlines()[0])
    return made is not None


def made_twice(client: Client, path: str, key: str, *, again: Client | None = None) -> list[Any]:
    """A line is added, and the same is asked for again."""
    call = {"path": path, "old_string": "end\n", "new_string": "one\nend\n"}
    return [
        one.call("edit_file", id_=number, headers=keyed(key), **call)
        for number, one in enumerate((client, again or client), start=70)
    ]


def test_a_key_that_comes_again_gets_the_first_answer(gateway, base):
    (base / "root" / "twice.txt").write_text("end\n")
    before = gateway.metric("filepact_gateway_repeated_total")
    first, again = made_twice(gateway.opened(), "twice.txt", "k1")
    assert gateway.metric("filepact_gateway_repeated_total") == before + 1
    assert first.result["isError"] is again.result["isError"] is False
    assert operation(again) == operation(first)
    assert not is_repeated(first)
    assert is_repeated(again)
    assert (base / "root" / "twice.txt").read_text() == "one\nend\n"


def test_a_key_counts_in_another_session_and_at_another_worker(gateway, other, base):
    (base / "root" / "there.txt").write_text("end\n")
    first, again = made_twice(gateway.opened(), "there.txt", "k2", again=other.opened())
    assert operation(again) == operation(first)
    assert (base / "root" / "there.txt").read_text() == "one\nend\n"


def test_without_sessions_the_key_is_all_that_counts(gateway, base):
    (base / "root" / "modern.txt").write_text("end\n")
    client = gateway.client()
    arguments = {"path": "modern.txt", "old_string": "end\n", "new_string": "one\nend\n"}
    first, again = (
        client.without_session("tools/call", keyed("k3"), name="edit_file", arguments=arguments)
        for _ in range(2)
    )
    assert operation(again) == operation(first)
    assert (base / "root" / "modern.txt").read_text() == "one\nend\n"
    # Without a key the same is done again.
    for _ in range(2):
        client.without_session("tools/call", name="edit_file", arguments=arguments)
    assert (base / "root" / "modern.txt").read_text() == "one\none\none\nend\n"


def test_a_key_is_good_for_one_request(gateway):
    client = gateway.opened()
    assert client.call("write_file", headers=keyed("k4"), path="k4", content="a").status == 200
    other = client.call("write_file", headers=keyed("k4"), path="k4", content="b")
    assert (other.status, other.code) == (409, "OTHER_REQUEST")


@pytest.mark.parametrize("other", ["k5", "k6"])
def test_a_key_whose_header_stands_several_times_counts(gateway, base, other):
    client, name = gateway.client(), f"lines-{other}.txt"
    sent = {"idempotency_key": "k5", "Idempotency_Key": other}
    arguments = {"path": name, "content": "x\n", "append": True}
    for _ in range(2):
        answer = client.without_session("tools/call", sent, name="write_file", arguments=arguments)
        assert answer.result["isError"] is False
    assert (base / "root" / name).read_text() == "x\n"


@pytest.mark.parametrize(
    "sent", ["", " ", "\t", '""', "x" * 256, "a\x01b", "\x7f", "\x85", "\xa0", "k\xada"]
)
def test_a_key_that_is_none_is_refused_and_nothing_is_done(gateway, base, sent):
    client = gateway.opened()
    client.headers["Idempotency-Key"] = sent
    arguments = {"path": "no-key.txt", "content": "x"}
    for answer in (
        client.call("write_file", **arguments),
        client.without_session("tools/call", name="write_file", arguments=arguments),
    ):
        assert (answer.status, answer.code) == (400, "INVALID_PARAMS")
    assert not (base / "root" / "no-key.txt").exists()


def test_of_several_calls_that_come_as_one_each_has_the_key_for_itself(gateway, base):
    for name in ("one.txt", "two.txt"):
        (base / "root" / name).touch()
    client = gateway.client()
    client.open("2025-03-26")

    def asked(*contents: str) -> list[dict[str, Any]]:
        called = [
            {"path": path, "content": content, "append": True}
            for path, content in zip(("one.txt", "two.txt", "two.txt"), contents, strict=True)
        ]
        return [
            {
                "jsonrpc": "2.0",
                "id": id_,
                "method": "tools/call",
                "params": {"name": "write_file", "arguments": one},
            }
            for id_, one in enumerate(called)
        ]

    for _ in range(2):
        (told,) = client.post(asked("a\n", "b\n", "b\n"), **keyed("several")).messages
        assert [one["result"]["isError"] for one in told] == [False] * 3
        assert (base / "root" / "one.txt").read_text() == "a\n"
        assert (base / "root" / "two.txt").read_text() == "b\n" * 2
    (told,) = client.post(asked("a\n", "c\n", "b\n"), **keyed("several")).messages
    assert [one.get("error", {}).get("data", {}).get("code") for one in told] == [
        None,
        "OTHER_REQUEST",
        None,
    ]
    # A call alone is not the first of several.
    alone = client.post(asked("a\n", "", "")[0], **keyed("several"))
    assert not is_repeated(alone)
    assert (base / "root" / "one.txt").read_text() == "a\n" * 2


def test_a_key_is_a_short_text(gateway):
    answer = gateway.opened().call("write_file", headers=keyed("k" * 256), path="k", content="a")
    assert (answer.status, answer.code) == (400, "INVALID_PARAMS")


def test_an_id_that_is_used_anew_is_another_request(gateway, other, base):
    file = base / "root" / "id.txt"
    file.touch()
    client, there = gateway.opened(), other.client()
    there.session = client.session
    call = {"path": "id.txt", "content": "x\n", "append": True}
    # As by a client that goes on with a session that it has stored, here or elsewhere, or by a script.
    answers = [one.call("write_file", id_=1, **call) for one in (client, client, there, client)]
    assert [one.result["isError"] for one in answers] == [False] * 4
    assert not any(map(is_repeated, answers))
    assert len(set(map(operation, answers))) == 4
    client.call("history", action="undo")
    client.call("write_file", id_=1, **call)
    assert file.read_text() == "x\n" * 4


def test_over_one_connection_an_id_that_is_used_anew_is_another_request(gateway, base):
    file = base / "root" / "same.txt"
    file.touch()
    client = gateway.opened()
    usual = {"Content-Type": "application/json", "Accept": BOTH, "Mcp-Session-Id": client.session}
    arguments = {"path": "same.txt", "content": "x\n", "append": True}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    body = json.dumps({**message, "params": {"name": "write_file", "arguments": arguments}})
    connection = http.client.HTTPConnection(gateway.address, timeout=60)
    for _ in range(5):
        connection.request("POST", "/mcp", body, usual)
        assert json.loads(connection.getresponse().read())["result"]["isError"] is False
    connection.close()
    assert file.read_text() == "x\n" * 5


def test_an_answer_that_never_arrived_is_given_to_the_same_id(gateway, base):
    file = base / "root" / "lost.txt"
    file.touch()
    client = gateway.opened()
    arguments = {"path": "lost.txt", "content": "x\n", "append": True}
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
    body = json.dumps({**message, "params": {"name": "write_file", "arguments": arguments}})
    host, _, port = gateway.address.partition(":")
    with socket.create_connection((host, int(port))) as gone:
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: {gateway.address}\r\nContent-Type: application/json\r\n"
            f"Accept: {BOTH}\r\nMcp-Session-Id: {client.session}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        gone.sendall(head.encode() + body.encode())
        # Gone as by a cable that is cut, whether the answer is on its way by then or not.
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    again = client.call("write_file", id_=7, **arguments)
    assert again.result["isError"] is False
    assert file.read_text() == "x\n"


def test_what_was_undone_is_not_told_as_done_to_whoever_asks_again(gateway, base):
    client = gateway.opened()
    call = {"path": "undone.txt", "content": "a\n"}
    first = client.call("write_file", headers=keyed("k8"), **call)
    assert client.call("history", action="undo", change=operation(first)).result["isError"] is False
    again = client.call("write_file", headers=keyed("k8"), **call)
    assert again.result["isError"] is True
    assert again.text.startswith("NO_CHANGE")
    assert not (base / "root" / "undone.txt").exists()


def test_what_changed_nothing_is_told_as_such_again(gateway, base):
    (base / "root" / "so.txt").write_text("a\n")
    call = {"path": "so.txt", "content": "a\n"}
    first, again = (
        gateway.opened().call("write_file", headers=keyed("k9"), **call) for _ in range(2)
    )
    assert first.result["isError"] is again.result["isError"] is False
    assert not is_repeated(first)
    assert is_repeated(again)


def test_what_was_refused_may_be_asked_for_again(gateway, base):
    client = gateway.opened()
    call = {"path": "later.txt", "old_string": "a", "new_string": "b"}
    assert client.call("edit_file", headers=keyed("k6"), **call).result["isError"] is True
    (base / "root" / "later.txt").write_text("a\n")
    assert client.call("edit_file", headers=keyed("k6"), **call).result["isError"] is False


def test_a_proposal_that_is_asked_for_again_is_the_same(tmp_path: Path):
    (tmp_path / "root").mkdir()
    running = RunningGateway(tmp_path, [str(tmp_path / "root"), "--mode", "review"])
    try:
        answers = [
            running.opened().call("write_file", headers=keyed("p"), path="p", content="x\n")
            for _ in range(2)
        ]
        forget_answers(tmp_path)
        answers.append(
            running.opened().call("write_file", headers=keyed("p"), path="p", content="x\n")
        )
        assert len({operation(one) for one in answers}) == 1
        receipt = answers[-1].result["_meta"]["filepact/receipt"]
        assert receipt["status"] == "pending"
        assert not (tmp_path / "root" / "p").exists()
        said = command(
            *(
                "reject",
                operation(answers[0]),
                "--unattended",
                "--root",
                str(tmp_path / "root"),
                "--state",
                str(tmp_path / "state"),
            )
        )
        assert said.code == 0, said.err
        again = running.opened().call("write_file", headers=keyed("p"), path="p", content="x\n")
        assert again.result["isError"] is True
        anew = running.opened().call("write_file", path="p", content="x\n")
        receipt = anew.result["_meta"]["filepact/receipt"]
        assert receipt["status"] == "pending"
        assert operation(anew) != operation(answers[0])
    finally:
        assert running.end() == 0


def forget_answers(base: Path) -> None:
    """As it is when a worker was killed after it had done something and before that was told."""
    database = apsw.Connection(str(base / "state" / "gateway.db"))
    database.set_busy_timeout(10_000)
    database.execute("UPDATE answer SET result = NULL")
    database.close()


def test_what_a_worker_did_before_it_was_killed_is_not_done_again(gateway, other, base):
    (base / "root" / "killed.txt").write_text("end\n")
    call = {"path": "killed.txt", "old_string": "end\n", "new_string": "one\nend\n"}
    first = gateway.opened().call("edit_file", headers=keyed("k7"), **call)
    forget_answers(base)
    again = other.opened().call("edit_file", headers=keyed("k7"), **call)
    assert again.result["isError"] is False
    assert operation(again) == operation(first)
    # What only the journal tells is shown with its diff, since nobody knows how it was sent.
    one, two = (answer.result["_meta"]["filepact/receipt"] for answer in (first, again))
    assert two == {key: value for key, value in one.items() if key != "diff"}
    assert one["diff"] in again.text
    assert (base / "root" / "killed.txt").read_text() == "one\nend\n"


def test_of_two_workers_with_one_request_one_does_it(gateway, other, base):
    clients = [gateway.opened(), other.opened()]
    answers: list[Any] = []

    def ask(client: Client, name: str) -> None:
        call = {"path": name, "old_string": "end\n", "new_string": "one\nend\n"}
        answers.append(client.call("edit_file", headers=keyed(name), **call))

    for number in range(3):
        raced = base / "root" / f"race-{number}.txt"
        raced.write_text("end\n")
        answers.clear()
        both = [threading.Thread(target=ask, args=(one, raced.name)) for one in clients]
        for one in both:
            one.start()
        for one in both:
            one.join()
        assert [one.result["isError"] for one in answers] == [False, False]
        assert len({operation(one) for one in answers}) == 1
        assert raced.read_text() == "one\nend\n"


@pytest.mark.parametrize("failed", [False, True])
def test_who_comes_second_waits_for_the_answer_of_the_first(tmp_path: Path, failed: bool):
    known = RequestName("key", ("ann", ""), "k")
    called = {"name": "edit_file", "arguments": {"path": "a.txt"}}
    tools = cast(
        "Toolset",
        SimpleNamespace(
            tools=(SimpleNamespace(name="edit_file", kind="changes"),),
            done_before=lambda *_, **__: None,
        ),
    )
    session = Session("s", Actor("agent", "one"))
    stores = [SqliteGatewayStore(str(tmp_path / "gateway.db")) for _ in range(2)]
    one, two = (RequestHistory(store, b"secret") for store in stores)
    first = one.begin(known, tools, called, session)
    assert isinstance(first, RequestRecord)
    said: list[Any] = []
    second = threading.Thread(target=lambda: said.append(two.begin(known, tools, called, session)))
    second.start()
    time.sleep(0.2)
    assert said == []
    answer = {"content": [{"type": "text", "text": "text of it"}], "isError": failed}
    one.end(first, answer, tools, session)
    second.join()
    # What came to nothing is nobody's any more, so that the second is the first.
    if failed:
        assert said == [first]
    else:
        assert said[0]["content"][0]["text"].endswith("text of it")
    for store in stores:
        store.close()


def test_a_request_that_was_cancelled_is_not_known_by_its_id_any_more(tmp_path, small):
    class Engine(small.SmallEngine):
        def done_before(self, *_: Any, **_more: Any) -> None:
            """Nothing was."""

    class Cancelled:
        """A call that its client gives up when it is over."""

        over = handed_out = False

        def is_cancelled(self) -> bool:
            return self.over

        def tell(self, message: Any) -> None: ...

        def close(self) -> bool:
            self.over = True
            return False

    tools = ToolCache(lambda: Toolset(small.TOOLS, Engine()))
    facts = ServerInfo(name="s", version="1", instructions="", tools=tools.described)
    store = SqliteGatewayStore(str(tmp_path / "gateway.db"))
    session = GatewaySession("s", 0.0, "2025-11-25", ("x", "1"), "", "")
    called = {"name": "write", "arguments": {"path": "a", "content": "x"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
    repeats, rows = RequestHistory(store, b"secret"), apsw.Connection(str(tmp_path / "gateway.db"))
    for kind, kept in (("id", 0), ("key", 1)):
        context = RequestContext(
            *(UserContext("", "", RealmTools(tools, facts)), message, session),
            modern=False,
            repeats=repeats,
            key=RequestName(kind, ("s",), 1),
        )
        assert context.answer(Cancelled()) is None
        assert rows.execute("SELECT count(*) FROM answer").fetchall() == [(kept,)]
    rows.close()
    store.close()


def kill(process: int) -> None:
    """Kill a worker, also one that was killed before and is waited for just now."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


@pytest.mark.slow
def test_through_kills_of_workers_everything_is_done_once(tmp_path: Path):
    root = tmp_path / "root"
    root.mkdir()
    count = 24
    (root / "all.txt").write_text("end\n")
    running = RunningGateway(tmp_path, [str(root), "--workers", "2"])
    tried = 0
    try:
        for number in range(count):
            call = {"path": "all.txt", "old_string": "end\n", "new_string": f"{number}\nend\n"}
            while True:
                tried += 1
                if tried % 3 == 1:
                    # While the call is under way, or before, or after.
                    victims = sorted(children(running.process.pid))
                    for one in victims[:1]:
                        delay = 0.0005 * (tried % 40)
                        timer = threading.Timer(delay, kill, (one,))
                        timer.start()
                try:
                    answer = running.opened().call("edit_file", headers=keyed(f"n{number}"), **call)
                except (OSError, http.client.HTTPException):
                    continue
                finally:
                    if tried % 3 == 1 and victims:
                        timer.join()
                assert answer.result["isError"] is False, answer.text
                break
        lines = (root / "all.txt").read_text().splitlines()
        assert lines == [*map(str, range(count)), "end"]
    finally:
        assert running.end() == 0


def test_what_a_session_knows_of_a_file_goes_with_it_to_another_worker(gateway, other, base):
    file = base / "root" / "known.txt"
    file.write_text("a\nb\n")
    here, there = gateway.opened(), other.client()
    there.session = here.session
    here.call("read_file", path="known.txt")
    file.write_text("a\nb\ntheirs\n")
    written = there.call("write_file", id_=90, path="known.txt", content="mine\nb\n")
    assert written.result["isError"] is False
    assert file.read_text() == "mine\nb\ntheirs\n"
