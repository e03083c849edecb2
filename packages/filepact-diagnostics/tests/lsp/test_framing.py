"""Bytes of language servers become messages, whatever they are cut into and whatever they hold."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact_wire.framing import HEADER_LIMIT, FrameError, FrameReader, InvalidMessage, frame

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.lists(st.dictionaries(st.text(), JSON), max_size=4), st.integers(1, 40))
def test_messages_come_back_in_whatever_pieces_they_travel(messages: list, size: int) -> None:
    data = b"".join(map(frame, messages))
    reader = FrameReader()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    found = [message for piece in pieces for message in reader.feed(piece)]
    assert found == [json.loads(json.dumps(message)) for message in messages]


def raw(body: bytes, header: str = "Content-Length: {}\r\n\r\n") -> bytes:
    return header.format(len(body)).encode() + body


@pytest.mark.parametrize(
    "header",
    [
        "Content-Length: {}\r\n\r\n",
        "content-length:{}\r\n\r\n",
        "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
        "Content-Length: {0}\r\nContent-Length: {0}\r\n\r\n",
        "starting the server\nContent-Length: {}\r\n\r\n",
    ],
)
def test_headers_of_all_kinds_are_understood(header: str) -> None:
    assert list(FrameReader().feed(raw(b"{}", header))) == [{}]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_message_costs_only_itself(body: bytes) -> None:
    reader = FrameReader()
    garbled, after = reader.feed(raw(body) + frame({"a": 1}))
    assert isinstance(garbled, InvalidMessage)
    assert garbled.size == len(body)
    assert after == {"a": 1}


@pytest.mark.parametrize(
    "data",
    [
        b"Content-Length: x\r\n\r\n{}",
        b"Content-Length: -1\r\n\r\n{}",
        b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"Length: 2\r\n\r\n{}",
        b"Content-Length: 101\r\n\r\n",
        b"a" * (HEADER_LIMIT + 1),
        b"a" * HEADER_LIMIT + b"b\r\n\r\n",
    ],
)
def test_a_header_that_cannot_be_understood_ends_it(data: bytes) -> None:
    with pytest.raises(FrameError):
        list(FrameReader(limit=100).feed(data))


def test_halves_of_surrogate_pairs_do_not_reach_the_server() -> None:
    assert list(FrameReader().feed(frame({"a": "x\ud800y"}))) == [{"a": "x?y"}]
