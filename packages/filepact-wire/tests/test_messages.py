"""What the protocols share of JSON-RPC: framing of lines, errors of answers, pending requests."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from filepact_wire import messages
from filepact_wire.framing import ByteLineReader, read_message
from filepact_wire.messages import ResponseError
from filepact_wire.pending_requests import PendingRequests


def test_members_that_are_none_are_not_sent():
    assert messages.request(1, "a") == {"jsonrpc": "2.0", "id": 1, "method": "a"}
    assert messages.notification("a", {}) == {"jsonrpc": "2.0", "method": "a", "params": {}}
    assert messages.response(1, None) == {"jsonrpc": "2.0", "id": 1, "result": None}
    told = messages.error_response(None, messages.PARSE_ERROR, "no")
    assert told == {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no"}}
    assert messages.error_response(1, 2, "no", [])["error"]["data"] == []


@pytest.mark.parametrize("wanted", [None, True, 1.5, math.nan, math.inf, [], {}])
def test_what_is_no_id_is_none(wanted):
    assert messages.request_id({"id": wanted}) is None
    table: PendingRequests[str] = PendingRequests()
    table.add("one")
    assert table.pop(wanted) is None


@pytest.mark.parametrize("wanted", [1.0, 1e3, -0.0])
def test_a_whole_number_is_an_id_however_it_is_written(wanted):
    assert messages.request_id({"id": wanted}) == wanted
    asked = read_message(json.dumps(messages.request(wanted, "ping")).encode(), json.loads)
    assert asked == messages.request(wanted, "ping")


@pytest.mark.parametrize(
    ("error", "read"),
    [
        ({"code": 5, "message": "no", "data": [1]}, ResponseError(5, "no", [1])),
        ({"code": True, "message": None}, ResponseError(messages.INTERNAL_ERROR, "")),
        ({}, ResponseError(messages.INTERNAL_ERROR, "")),
        ("no", ResponseError(messages.INTERNAL_ERROR, "")),
        (None, ResponseError(messages.INTERNAL_ERROR, "")),
    ],
)
def test_every_error_of_an_answer_can_be_read(error, read):
    assert ResponseError.of(error) == read


def test_a_line_that_is_too_long_is_told_of_once_and_costs_only_itself():
    cutter = ByteLineReader(limit=10)
    found = [
        *cutter.feed(b"12345\n1234567"),
        *cutter.feed(b"890123"),
        *cutter.feed(b"456\nnext\nla"),
    ]
    assert [*found, *cutter.feed(b"st"), *cutter.end()] == [b"12345", None, b"next", b"last"]


# -- pending requests -------------------------------------------------------------------------


def test_a_request_is_taken_out_once():
    table: PendingRequests[str] = PendingRequests("ours:")
    first, second = table.add("a"), table.add("b")
    assert (first, second) == ("ours:1", "ours:2")
    assert table.pop(second) == "b"
    assert table.pop(second) is None
    assert table.pop_where(lambda entry: entry == "a") == {first: "a"}
    assert table.entries() == ()


def test_a_closed_table_gives_back_what_was_pending_and_takes_nothing_more():
    table: PendingRequests[str] = PendingRequests()
    wanted = table.add("a")
    assert table.close() == {wanted: "a"}
    assert table.pop(wanted) is None
    assert table.add("b") is None
    assert table.close() == {}


def test_of_many_threads_one_gets_each_request():
    table: PendingRequests[int] = PendingRequests()
    wanted = [table.add(number) for number in range(500)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(table.pop, wanted * 4))
    assert sorted(one for one in found if one is not None) == list(range(500))
    assert len({json.dumps(one) for one in wanted}) == 500
