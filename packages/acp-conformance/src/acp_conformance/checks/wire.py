"""Checks of the messages themselves: `_meta`, unknown methods, ids, lines, and hostile input."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from acp_conformance.check import (
    ADVICE,
    EXTENDING,
    JSON_RPC,
    PRACTICE,
    SCHEMA,
    TRANSPORT,
    CheckGroup,
)
from acp_conformance.connection import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    READ,
    WRITE,
    RequestTimeoutError,
)
from acp_conformance.report import CheckSkippedError, expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from acp_conformance.check import CheckContext

META = CheckGroup("meta", "_meta and unknown parameters")


@META.must(EXTENDING, "A path in `_meta` is not read in the place of the parameter.")
def meta_read_path(context: CheckContext) -> None:
    path, other = context.folder.put("a.txt", b"a\n"), context.folder.put("b.txt", b"b\n")
    reply = context.read(path, {"_meta": {"path": other}})
    expect(reply.is_error or reply.content == "a\n", "the other file was read")


@META.must(EXTENDING, "A path in `_meta` is not written in the place of the parameter.")
def meta_write_path(context: CheckContext) -> None:
    path, other = context.folder.put("a.txt", b"a\n"), context.folder.put("b.txt", b"b\n")
    reply = context.write(path, "new\n", {"_meta": {"path": other}})
    context.holds("b.txt", b"b\n")
    context.holds("a.txt", b"a\n" if reply.is_error else b"new\n")


@META.must(EXTENDING, "A `content` in `_meta` is not written in the place of the parameter.")
def meta_content(context: CheckContext) -> None:
    path = context.folder.put("a.txt", b"a\n")
    reply = context.write(path, "new\n", {"_meta": {"content": "other\n"}})
    context.holds("a.txt", b"a\n" if reply.is_error else b"new\n")


@META.must(EXTENDING, "`line` and `limit` in `_meta` do not count.")
def meta_window(context: CheckContext) -> None:
    path = context.folder.put("a.txt", b"one\ntwo\nthree\n")
    for more, meta in (
        ({"line": 1, "limit": 1}, {"line": 2, "limit": 2}),
        ({}, {"line": 2, "limit": 0}),
    ):
        plain = context.text(path, more)
        reply = context.read(path, {**more, "_meta": meta})
        expect(reply.is_error or reply.content == plain, "other lines were read")


@META.must(EXTENDING, "A session's id in `_meta` does not count.")
def meta_session(context: CheckContext) -> None:
    path = context.folder.put("a.txt", b"a\n")
    unknown = {"sessionId": "nobody-opened-this"}
    # A client that looks at no ids at all is another matter: only the difference counts.
    plain = context.read(path, unknown)
    for name in ("sessionId", "session_id"):
        reply = context.read(path, {**unknown, "_meta": {name: context.session}})
        served = plain.is_error and not reply.is_error
        expect(not served, f"a request for no session was served because of {name} in `_meta`")


@META.must(SCHEMA, "`_meta` may be null or an object with anything in it.")
def meta_anything(context: CheckContext) -> None:
    path = context.folder.put("a.txt", b"a\n")
    many = {"example.org/note": {"deep": [1, None, {"x": "y"}]}, "self": 1, "kwargs": {}, "": 0}
    for more in (None, {}, many):
        context.expect_text(context.text(path, {"_meta": more}), "a\n")
        context.written(path, "a\n", {"_meta": more})


@META.should(SCHEMA, "A `_meta` that is no object counts as absent.")
def meta_odd(context: CheckContext) -> None:
    path = context.folder.put("a.txt", b"a\n")
    for more in ("text", ["list"], 7):
        context.expect_text(context.text(path, {"_meta": more}), "a\n")


@META.should(PRACTICE, "A parameter that nobody knows is ignored.")
def meta_unknown_parameter(context: CheckContext) -> None:
    path = context.folder.put("a.txt", b"a\n")
    more = {"encoding": "utf-7", "future": {"x": 1}, "file": "b.txt"}
    context.expect_text(context.text(path, more), "a\n")
    context.written(path, "b\n", more)
    context.holds("a.txt", b"b\n")


ROBUSTNESS = CheckGroup("robustness", "Methods and updates that nobody knows")


@ROBUSTNESS.must(JSON_RPC, "A request with an unknown method is refused with -32601.")
def robustness_unknown_method(context: CheckContext) -> None:
    for method in ("fs/delete_file", "craft/drainQueue", "x", "Fs/Read_Text_File"):
        context.ask(method, {"sessionId": context.session}).refused(METHOD_NOT_FOUND)


@ROBUSTNESS.must(
    JSON_RPC, "A request with an unknown method that begins with `_` is refused with -32601."
)
def robustness_unknown_extension(context: CheckContext) -> None:
    context.ask("_example.org/no_such_method", {"x": 1}).refused(METHOD_NOT_FOUND)


@ROBUSTNESS.should(EXTENDING, "An unknown notification is ignored.")
def robustness_unknown_notification(context: CheckContext) -> None:
    context.connection.send(
        {"method": "_example.org/note", "params": {"x": 1}},
        {"method": "_auth/status_update", "params": {}},
        {"method": "craft/note", "params": {}},
        {"method": "craft/bare"},
    )
    context.expect_alive()


@ROBUSTNESS.should(PRACTICE, "A `session/update` of an unknown kind is ignored.")
def robustness_unknown_update(context: CheckContext) -> None:
    for update in ({"sessionUpdate": "from_the_future", "x": [1]}, {}, None):
        params = {"sessionId": context.session, "update": update}
        context.connection.send({"method": "session/update", "params": params})
    context.expect_alive()


@ROBUSTNESS.must(SCHEMA, "A `session/update` with text and one with a tool call are taken.")
def robustness_update(context: CheckContext) -> None:
    text = {"type": "text", "text": "checking"}
    call = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "read", "kind": "read"}
    for one in ({"sessionUpdate": "agent_message_chunk", "content": text}, call):
        params = {"sessionId": context.session, "update": one}
        context.connection.send({"method": "session/update", "params": params})
    context.expect_alive()


@ROBUSTNESS.should(
    JSON_RPC, "A request whose parameters are no object, or are missing, is refused with -32602."
)
def robustness_odd_params(context: CheckContext) -> None:
    if context.announced(READ):
        odd: tuple[object, ...] = ([context.session, "a.txt"], None, {})
        for params in odd:
            context.ask(READ, params).refused(INVALID_PARAMS)
        request = context.connection.request(READ, None)
        del request["params"]
        context.connection.send(request)
        context.connection.wait(request).refused(INVALID_PARAMS)
    context.expect_alive()


@ROBUSTNESS.should(PRACTICE, "An answer to something that was never asked is ignored.")
def robustness_unknown_answer(context: CheckContext) -> None:
    context.connection.send(
        {"id": 987_654, "result": {}}, {"id": "x", "error": {"code": 1, "message": ""}}
    )
    context.expect_alive()


IDS = CheckGroup("ids", "Ids and lines")


@IDS.must(JSON_RPC, "A request with the id 0 is answered.")
def ids_zero(context: CheckContext) -> None:
    if context.conversation.early is None:
        raise CheckSkippedError("the client does not announce readTextFile")
    # The first request of all had it.
    context.connection.wait(context.conversation.early)


@IDS.must(JSON_RPC, "An id that is a text comes back as that text.")
def ids_text(context: CheckContext) -> None:
    for number in ("a", "7", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "h\u00e9 \u4e2d"):
        _answered(context, number)


@IDS.must(JSON_RPC, "An id that is a large or negative number comes back as that number.")
def ids_numbers(context: CheckContext) -> None:
    for number in (9_007_199_254_740_991, 2_147_483_648, -5):
        _answered(context, number)


@IDS.must(JSON_RPC, "Every request is answered once, and nothing else is answered.")
def ids_once(context: CheckContext) -> None:
    context.expect_alive()
    expect(
        not context.connection.unexpected_replies,
        f"there were answers for {', '.join(context.connection.unexpected_replies[:5])}",
    )


@IDS.must(TRANSPORT, "A line that comes in pieces is one message.")
def ids_pieces(context: CheckContext) -> None:
    path = context.folder.put("\u00e4\u4e2d.txt", b"pieces\n")
    request = context.read_request(path)
    line = json.dumps({"jsonrpc": "2.0", **request}, ensure_ascii=False).encode() + b"\n"
    for at in range(0, len(line), 7):
        context.connection.send_bytes(line[at : at + 7])
    context.expect_text(context.connection.wait(request).content, "pieces\n")


@IDS.must(TRANSPORT, "Text is UTF-8, whether it is written out or as escapes.")
def ids_escapes(context: CheckContext) -> None:
    path = context.folder.put("\u00e4\U0001f600.txt", b"name\n")
    for plain in (True, False):
        request = context.read_request(path)
        line = json.dumps({"jsonrpc": "2.0", **request}, ensure_ascii=plain)
        context.connection.send_bytes(f"{line}\n".encode())
        context.expect_text(context.connection.wait(request).content, "name\n")


@IDS.must(TRANSPORT, "Every line that the client sends is one JSON object.")
def ids_lines(context: CheckContext) -> None:
    context.expect_alive()
    strange = context.connection.malformed_lines
    expect(not strange, f"{len(strange)} lines are none, the first is {strange[:1]}")


@IDS.must(JSON_RPC, 'Every message has `jsonrpc: "2.0"`, and every answer one of result and error.')
def ids_form(context: CheckContext) -> None:
    context.expect_alive()
    sloppy = context.connection.form_errors
    expect(not sloppy, f"{len(sloppy)} messages have not; the first: {sloppy[:1]}")


def _answered(context: CheckContext, number: int | str) -> None:
    if not context.announced(READ):
        raise CheckSkippedError("the client does not announce readTextFile")
    path = context.scratch.work.at("alive.txt")
    context.ask(READ, {"sessionId": context.session, "path": path}, number)


HOSTILE = CheckGroup("hostile", "What could stop a client")


@HOSTILE.should(PRACTICE, "A named pipe is refused, and holds nothing up.")
def hostile_pipe(context: CheckContext) -> None:
    if not context.announced(READ):
        raise CheckSkippedError("the client does not announce readTextFile")
    with _released(context):
        context.read(context.folder.pipe("pipe")).refused()
        context.expect_alive()


@HOSTILE.should(PRACTICE, "Writing to a named pipe holds nothing up either.")
def hostile_write_to_pipe(context: CheckContext) -> None:
    if not context.announced(WRITE):
        raise CheckSkippedError("the client does not announce writeTextFile")
    with _released(context):
        context.write(context.folder.pipe("pipe"), "text\n").refused()
        context.expect_alive()


@HOSTILE.should(ADVICE, "A device is not read.")
def hostile_device(context: CheckContext) -> None:
    # One that harms nobody who reads it all the same.
    context.read("/dev/null").refused()
    context.read(context.folder.link("null", "/dev/null")).refused()
    context.expect_alive()


@HOSTILE.should(TRANSPORT, "A line that is no JSON is skipped, or answered with -32700.")
def hostile_no_json(context: CheckContext) -> None:
    context.connection.send_bytes(b'Loading model...\n{"jsonrpc": "2.0", "id":\n\n   \n{]\n')
    context.expect_alive()


@HOSTILE.should(TRANSPORT, "Bytes that are no UTF-8 end nothing.")
def hostile_no_utf_8(context: CheckContext) -> None:
    context.connection.send_bytes(b'\xff\xfe\x00caf\xe9\n{"jsonrpc": "2.0", "method": "\xff"}\n')
    context.expect_alive()


@HOSTILE.should(PRACTICE, "A message that is nested very deeply ends nothing.")
def hostile_deep(context: CheckContext) -> None:
    nested = b"[" * 50_000 + b"]" * 50_000
    context.connection.send_bytes(
        b'{"jsonrpc": "2.0", "method": "x/y", "params": {"a": ' + nested + b"}}\n"
    )
    context.expect_alive()


@HOSTILE.should(PRACTICE, "A long line of 8 MB that means nothing ends nothing.")
def hostile_long_line(context: CheckContext) -> None:
    filler = b"x" * 8_000_000
    context.connection.send_bytes(
        b'{"jsonrpc": "2.0", "method": "x/y", "params": {"a": "' + filler + b'"}}\n'
    )
    context.expect_alive()


@HOSTILE.should(JSON_RPC, "A message without a method, an id or a result ends nothing.")
def hostile_hollow(context: CheckContext) -> None:
    context.connection.send_bytes(
        b'{}\n{"jsonrpc": "2.0"}\n{"jsonrpc": "2.0", "id": null}\n'
        b'{"jsonrpc": "2.0", "method": 7}\n{"jsonrpc": "2.0", "method": "x/y", "params": 7}\n'
    )
    context.expect_alive()


@HOSTILE.should(JSON_RPC, "A batch, which the protocol does not use, is refused or ignored.")
def hostile_batch(context: CheckContext) -> None:
    context.connection.send_bytes(b"[]\n[{}]\n")
    context.expect_alive()


@HOSTILE.should(JSON_RPC, "A line that is JSON but no object is refused or ignored.")
def hostile_scalar(context: CheckContext) -> None:
    context.connection.send_bytes(b'7\n"text"\ntrue\n')
    context.expect_alive()


@HOSTILE.should(JSON_RPC, "A line that is only `null` is refused or ignored, and is no end.")
def hostile_null(context: CheckContext) -> None:
    context.connection.send_bytes(b"null\n")
    context.expect_alive()


@contextmanager
def _released(context: CheckContext) -> Iterator[None]:
    """Let go a client that waits at the pipe, so that it can be asked other things."""
    try:
        yield
    except RequestTimeoutError:
        context.folder.release("pipe")
        raise
