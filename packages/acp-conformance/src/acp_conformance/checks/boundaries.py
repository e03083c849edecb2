"""Checks of what a client refuses, and how: files outside of the session's folders, and errors."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from acp_conformance.check import ADVICE, JSON_RPC, PAGE, PRACTICE, SCHEMA, CheckGroup
from acp_conformance.connection import INVALID_PARAMS, READ, RESOURCE_NOT_FOUND, WRITE
from acp_conformance.report import CheckSkippedError, expect, short

if TYPE_CHECKING:
    from collections.abc import Mapping

    from acp_conformance.check import CheckContext
    from acp_conformance.connection import RequestResult
    from acp_conformance.scratch import Folder

BOUNDARIES = CheckGroup("boundaries", "What lies outside of the session's folders")

_SECRET = b"secret\n"


@BOUNDARIES.should(ADVICE, "A file outside is not read.")
def boundaries_read_outside(context: CheckContext) -> None:
    _not_read(context, context.outside.put("secret.txt", _SECRET))


@BOUNDARIES.should(ADVICE, "A file outside is not written, and none is made there.")
def boundaries_write_outside(context: CheckContext) -> None:
    _not_written(context, context.outside.put("secret.txt", _SECRET))
    context.write(context.outside.at("new.txt"), "new\n").refused()
    context.write(context.outside.at("sub/new.txt"), "new\n").refused()
    expect(context.outside.names() == ["secret.txt"], f"there are {context.outside.names()}")


@BOUNDARIES.should(ADVICE, "`..` does not lead outside.")
def boundaries_dot_dot(context: CheckContext) -> None:
    context.outside.put("secret.txt", _SECRET)
    below = context.outside.path.removeprefix(f"{context.scratch.path}/")
    path = f"{context.scratch.work.path}/../{below}/secret.txt"
    _not_read(context, path)
    _not_written(context, path)


@BOUNDARIES.should(ADVICE, "A folder whose name only begins like the session's is outside.")
def boundaries_similar_name(context: CheckContext) -> None:
    path = context.scratch.evil.put("secret.txt", _SECRET)
    _not_read(context, path)
    _not_written(context, path, context.scratch.evil)


@BOUNDARIES.should(ADVICE, "A link to a file outside is not read through.")
def boundaries_link_to_file(context: CheckContext) -> None:
    target = context.outside.put("secret.txt", _SECRET)
    _not_read(context, context.folder.link("link.txt", target))


@BOUNDARIES.should(ADVICE, "A link to a file outside is not written through.")
def boundaries_write_through_link(context: CheckContext) -> None:
    target = context.outside.put("secret.txt", _SECRET)
    context.write(context.folder.link("link.txt", target), "changed\n")
    context.holds("secret.txt", _SECRET, context.outside)


@BOUNDARIES.should(ADVICE, "A link to a folder outside is not followed.")
def boundaries_link_to_folder(context: CheckContext) -> None:
    context.outside.put("secret.txt", _SECRET)
    link = context.folder.link("link", context.outside.path)
    _not_read(context, f"{link}/secret.txt")
    _not_written(context, f"{link}/secret.txt")
    context.write(f"{link}/new.txt", "new\n").refused()
    context.write(f"{link}/sub/new.txt", "new\n").refused()
    expect(context.outside.names() == ["secret.txt"], f"there are {context.outside.names()}")


@BOUNDARIES.should(ADVICE, "A link to a file outside that does not exist makes none there.")
def boundaries_dangling_link(context: CheckContext) -> None:
    link = context.folder.link("link.txt", context.outside.at("new.txt"))
    context.write(link, "new\n")
    expect(context.outside.names() == [], f"there are {context.outside.names()}")


@BOUNDARIES.should(ADVICE, "A link and `..` behind it do not lead outside together.")
def boundaries_link_and_dot_dot(context: CheckContext) -> None:
    context.outside.put("secret.txt", _SECRET)
    link = context.folder.link("link", context.outside.below("sub").path)
    path = f"{link}/../secret.txt"
    reply = context.read(path)
    expect(reply.is_error or reply.content != _SECRET.decode(), "the file outside was read")
    context.write(path, "changed\n")
    context.holds("secret.txt", _SECRET, context.outside)


@BOUNDARIES.should(PRACTICE, "A link that stays inside is followed.")
def boundaries_link_inside(context: CheckContext) -> None:
    target = context.folder.put("target.txt", b"inside\n")
    link = context.folder.link("link.txt", target)
    context.expect_text(context.text(link), "inside\n")
    context.written(link, "changed\n")
    context.holds("target.txt", b"changed\n")


def _not_read(context: CheckContext, path: str) -> None:
    reply = context.read(path)
    if not reply.is_error:
        expect(_SECRET.decode() not in reply.content, "the file outside was read")
        expect(not reply.content, f"it answered {short(reply.content)}")
        reply.refused()


def _not_written(context: CheckContext, path: str, folder: Folder | None = None) -> None:
    reply = context.write(path, "changed\n")
    context.holds("secret.txt", _SECRET, folder or context.outside)
    reply.refused()


ERRORS = CheckGroup("errors", "Refusals")

_EXCEPTION = re.compile(
    r"Traceback \(most recent|\[Errno -?\d|\bOSError|\b[A-Z]\w+(Error|Exception):"
    r"|File \"[^\"]+\", line \d|\bE[A-Z]{3,12}: |\bat .+:\d+:\d+\)|panicked at |os error \d"
)


@ERRORS.should(SCHEMA, "A read of a file that does not exist is refused with -32002.")
def errors_missing_file(context: CheckContext) -> None:
    context.read(context.folder.at("none.txt")).refused(RESOURCE_NOT_FOUND)
    context.read(context.folder.at("no/such/folder.txt")).refused(RESOURCE_NOT_FOUND)


@ERRORS.should(PRACTICE, "That refusal names the file as `data.uri`.")
def errors_missing_uri(context: CheckContext) -> None:
    path = context.folder.at("none.txt")
    (reply,) = _refusals(context.read(path))
    data = reply.error.get("data")
    uri = data.get("uri") if isinstance(data, dict) else None
    expect(uri in {path, f"file://{path}"}, f"data is {short(data)}")


@ERRORS.should(
    PRACTICE, "Neither a folder nor what lies below a file is read or written as a file."
)
def errors_no_file(context: CheckContext) -> None:
    folder, file = context.folder.below("folder").path, context.folder.put("a.txt", b"a\n")
    for path in (folder, f"{file}/below.txt"):
        if context.announced(READ):
            context.read(path).refused()
        if context.announced(WRITE):
            context.write(path, "text\n").refused()
    context.holds("a.txt", b"a\n")


@ERRORS.should(SCHEMA, "A folder in the place of a file is refused with -32602.")
def errors_folder_code(context: CheckContext) -> None:
    folder = context.folder.below("folder").path
    for reply in _refusals(*_either(context, folder)):
        reply.refused(INVALID_PARAMS)


@ERRORS.should(PAGE, "A path that is not absolute is refused with -32602.")
def errors_relative_path(context: CheckContext) -> None:
    context.folder.put("a.txt", b"a\n")
    name = f"{context.folder.path.rpartition('/')[2]}/a.txt"
    for path in (name, f"./{name}", "", "~/a.txt"):
        context.read(path).refused(INVALID_PARAMS)
        context.write(path, "b\n").refused(INVALID_PARAMS)
    context.holds("a.txt", b"a\n")


@ERRORS.should(PRACTICE, "A path with NUL in it is refused with -32602.")
def errors_nul_in_path(context: CheckContext) -> None:
    path = context.folder.put("a.txt", b"a\n")
    context.read(f"{path}\0.png").refused(INVALID_PARAMS)
    context.write(f"{path}\0.png", "b\n").refused(INVALID_PARAMS)
    context.holds("a.txt", b"a\n")


@ERRORS.should(
    PRACTICE, "A path that is too long for the system is refused, and the client goes on."
)
def errors_long_path(context: CheckContext) -> None:
    for path in (context.folder.at("n" * 300), context.folder.at("deep/" * 2_000 + "a.txt")):
        context.read(path).refused()
    context.expect_alive()


@ERRORS.must(SCHEMA, "A request without a parameter that is required is refused.")
def errors_required(context: CheckContext) -> None:
    for method, params in _faulty(context):
        context.ask(method, params).refused()
    context.holds("a.txt", b"a\n")


@ERRORS.should(JSON_RPC, "It is refused with -32602, as is one of the wrong kind.")
def errors_required_code(context: CheckContext) -> None:
    path = context.folder.at("a.txt")
    wrong: list[tuple[str, Mapping[str, object]]] = [
        (READ, {"sessionId": context.session, "path": 7}),
        (READ, {"sessionId": context.session, "path": None}),
        (WRITE, {"sessionId": context.session, "path": [path], "content": "b\n"}),
        (WRITE, {"sessionId": context.session, "path": path, "content": {"text": "b"}}),
        (WRITE, {"sessionId": context.session, "path": path, "content": None}),
    ]
    for reply in _refusals(*(context.ask(method, params) for method, params in _faulty(context))):
        reply.refused(INVALID_PARAMS)
    for method, params in wrong:
        if context.announced(method):
            context.ask(method, params).refused(INVALID_PARAMS)
    context.holds("a.txt", b"a\n")


@ERRORS.should(PRACTICE, "A refusal says why in its message, not only that.")
def errors_reason(context: CheckContext) -> None:
    paths = (context.outside.put("secret.txt", b"secret\n"), context.folder.at("none.txt"))
    for reply in _refusals(*map(context.read, paths)):
        error = reply.error
        message = str(error.get("message", "")).strip().lower().rstrip(".")
        bare = message in {"", "error", "internal error", "invalid params", "invalid request"}
        expect(not bare, f"the message is {short(error.get('message'))}")


@ERRORS.should(
    PRACTICE, "No refusal tells where a link outside leads to, or any other path of the system."
)
def errors_no_host_path(context: CheckContext) -> None:
    hidden = context.outside.below("told-to-nobody").put("secret.txt", b"secret\n")
    link = context.folder.link("link.txt", hidden)
    loop = context.folder.link("loop.txt", context.folder.at("loop.txt"))
    replies = [context.read(path) for path in (link, f"{link}/a.txt", loop, context.folder.path)]
    if context.announced(WRITE):
        replies += [context.write(path, "a\n") for path in (link, f"{link}/a.txt", loop)]
    for reply in replies:
        text = json.dumps(reply.message.get("error"))
        for secret in ("told-to-nobody", "site-packages", "node_modules", "/usr/lib", ".py:"):
            expect(secret not in text, f"a refusal holds {secret!r}: {short(text)}")


@ERRORS.should(PRACTICE, "No refusal holds the text of an exception or a trace.")
def errors_no_exception(context: CheckContext) -> None:
    folder = context.folder.below("folder").path
    loop = context.folder.link("loop.txt", context.folder.at("loop.txt"))
    paths = (folder, loop, context.folder.at("none.txt"), context.folder.at("n" * 300), "a.txt")
    replies = [context.read(path) for path in paths]
    if context.announced(WRITE):
        replies += [context.write(path, "a\n") for path in (folder, loop)]
    for reply in [*replies, *context.connection.refusals]:
        found = _EXCEPTION.search(json.dumps(reply.message.get("error"), ensure_ascii=False))
        expect(found is None, f"a refusal holds {found and found[0]!r}: {reply.error_text}")


@ERRORS.should(PRACTICE, "A refusal does not send the agent's own text back.")
def errors_no_echo(context: CheckContext) -> None:
    text = "this-must-not-come-back " * 20
    several = ({"path": 7}, {"sessionId": 7}, {"sessionId": "nobody-opened-this"})
    replies = [context.write(context.folder.at("a.txt"), text, more) for more in several]
    for reply in _refusals(*replies):
        told = json.dumps(reply.error)
        expect("this-must-not-come-back" not in told, f"a refusal of {len(told):,} characters did")


@ERRORS.must(JSON_RPC, "An error has a whole number as `code` and a text as `message`.")
def errors_form(context: CheckContext) -> None:
    if context.announced(READ):
        context.read(context.folder.below("folder").path).refused()
    for reply in context.connection.refusals:
        error = reply.error
        expect(type(error.get("code")) is int, f"code is {short(error.get('code'))}")
        expect(isinstance(error.get("message"), str), f"message is {short(error.get('message'))}")


def _refusals(*replies: RequestResult) -> list[RequestResult]:
    """Those that are refusals; that the others should be is for other checks to find.

    Raises:
        CheckSkippedError: None of them is.
    """
    found = [reply for reply in replies if reply.is_error]
    if not found:
        raise CheckSkippedError("nothing was refused")
    return found


def _either(context: CheckContext, path: str) -> list[RequestResult]:
    """What is answered to a read and to a write, as far as they were announced."""
    replies = [context.read(path)] if context.announced(READ) else []
    return [*replies, context.write(path, "text\n")] if context.announced(WRITE) else replies


def _faulty(context: CheckContext) -> list[tuple[str, Mapping[str, object]]]:
    """Requests that lack something, for methods that were announced."""
    path = context.folder.put("a.txt", b"a\n")
    session = {"sessionId": context.session}
    requests: list[tuple[str, Mapping[str, object]]] = [
        (READ, session),
        (WRITE, {**session, "path": path}),
        (WRITE, {**session, "content": "b\n"}),
        (WRITE, {"path": path, "content": "b\n"}),
        (READ, {}),
    ]
    return [(method, params) for method, params in requests if context.announced(method)]
