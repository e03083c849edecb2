"""Long lines, which are read and written another way, are the same messages."""

from __future__ import annotations

import json

import pytest

from filepact_acp.proxy.line import encode, parse
from tests.faces.acp.proxy.rig import Rig

LONG = 1_100_000
TEXTS = {
    "plain": "a line\n" * (LONG // 7),
    "escaped": '"\\\t\r\n\b\f\0\x1f\x7f' * (LONG // 10),
    "beyond ASCII": "caf\u00e9 \u2028 \U0001f600" * (LONG // 8),
    "ends of lines for some": "a\u2028b\u2029c\x85d",
    "half a character": "x" * LONG + "\ud83d",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("more", [{}, {"_meta": {"originalLineCount": 3, "content": "\n"}}])
@pytest.mark.parametrize("wanted", [0, "a b", 1.5, -(1 << 70)])
def test_a_long_answer_is_the_message_that_it_was(text, more, wanted):
    message = {"jsonrpc": "2.0", "id": wanted, "result": {"content": text, **more}}
    line = encode(message)
    assert len(line.decode("utf-8", "surrogatepass").splitlines()) == 1
    assert json.loads(line.decode("utf-8", "surrogatepass")) == message
    for doubt in (True, False):
        read = parse(line, doubt=doubt)
        assert (read.raw, read.message, read.plain) == (line, message, True)


@pytest.mark.parametrize("ending", [b"", b"}}", b'"}]', b'"}}x', b'\n"}}'])
def test_a_long_line_that_is_no_message_has_none(ending):
    line = b'{"jsonrpc":"2.0","id":1,"result":{"content":"' + b"x" * LONG + ending
    assert parse(line, doubt=False).message is None


def test_bytes_of_a_long_line_that_are_no_characters_are_halves_of_some():
    line = b'{"jsonrpc":"2.0","id":1,"result":{"content":"' + b"x" * LONG + b'\xff"}}'
    for doubt in (True, False):
        read = parse(line, doubt=doubt)
        assert read.message is not None
        assert read.message["result"]["content"][LONG:] == "\udcff"
        assert read.encoded == line


def test_two_members_of_one_name_are_noticed_in_a_long_line_too():
    line = b'{"id":1,"id":2,"method":"x","params":"' + b"x" * LONG + b'"}'
    read = parse(line)
    assert not read.plain
    assert read.message is not None
    assert json.loads(read.encoded) == read.message


def test_a_long_file_is_read_whether_the_editor_shows_it_or_something_else(tmp_path):
    text = 'a "line" that\tis \\ long\r\n' * 60_000
    with Rig(tmp_path, fs={"readTextFile": True}) as rig:
        (rig.work / "a.txt").write_bytes(text.encode())
        rig.start()
        for shown in (text, "typed\r\n" + text, "short\r\n"):
            wanted = rig.begin_read("a.txt")
            rig.shows(shown)
            assert rig.agent.answer_to(wanted)["result"] == {"content": shown}
