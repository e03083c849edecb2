"""Checks of capabilities, sessions, permission requests and cancellation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_conformance.check import (
    ADVICE,
    CANCELLING,
    PAGE,
    PRACTICE,
    SCHEMA,
    SETUP,
    START,
    TOOL_CALLS,
    CheckGroup,
    requires,
)
from acp_conformance.checks.boundaries import boundaries_read_outside
from acp_conformance.connection import (
    METHOD_NOT_FOUND,
    READ,
    REQUEST_CANCELLED,
    WRITE,
    ConnectionClosedError,
    RequestTimeoutError,
)
from acp_conformance.report import CheckFailedError, CheckSkippedError, as_object, expect, short

if TYPE_CHECKING:
    from acp_conformance.check import CheckContext
    from acp_conformance.connection import Message, RequestResult

CAPABILITIES = CheckGroup("capabilities", "What the client announces")


@CAPABILITIES.must(START, "The first message of a connection is `initialize`.")
def capabilities_initialize_first(context: CheckContext) -> None:
    first = context.conversation.methods[0]
    expect(first == "initialize", f"the first message was {short(first)}")


@CAPABILITIES.must(SCHEMA, "`protocolVersion` is a whole number from 0 to 65535.")
def capabilities_version(context: CheckContext) -> None:
    number = context.conversation.initialize.get("protocolVersion")
    expect(type(number) is int and 0 <= number <= 65_535, f"protocolVersion is {short(number)}")


@CAPABILITIES.must(
    SCHEMA, "`clientCapabilities` and its `fs` are objects; what `fs` offers is true or false."
)
def capabilities_form(context: CheckContext) -> None:
    sent = as_object(
        context.conversation.initialize.get("clientCapabilities", {}), "clientCapabilities"
    )
    fs = as_object(sent.get("fs", {}), "clientCapabilities.fs")
    for name in ("readTextFile", "writeTextFile"):
        flag = fs.get(name, False)
        expect(isinstance(flag, bool), f"{name} is {short(flag)}")


@CAPABILITIES.must(
    SCHEMA, "`elicitation`, `session` and what they offer are objects or null; `auth` is an object."
)
def capabilities_extensions(context: CheckContext) -> None:
    sent = as_object(
        context.conversation.initialize.get("clientCapabilities", {}), "clientCapabilities"
    )
    as_object(sent.get("auth", {}), "clientCapabilities.auth")
    for name, offers in (("elicitation", ("form", "url")), ("session", ("configOptions",))):
        group = as_object(sent.get(name) or {}, f"clientCapabilities.{name}")
        for offer in offers:
            as_object(group.get(offer) or {}, f"clientCapabilities.{name}.{offer}")


@CAPABILITIES.should(SCHEMA, "`clientInfo` has a name and a version.")
def capabilities_client_info(context: CheckContext) -> None:
    info = as_object(context.conversation.initialize.get("clientInfo"), "clientInfo")
    for name in ("name", "version"):
        expect(isinstance(info.get(name), str), f"clientInfo.{name} is {short(info.get(name))}")


@CAPABILITIES.must(PAGE, "A method that was announced is served.")
def capabilities_announced_is_served(context: CheckContext) -> None:
    for method in (READ, WRITE):
        if context.announced(method):
            params = {"sessionId": context.session, "path": context.folder.put("a.txt", b"a\n")}
            if method == WRITE:
                params["content"] = "a\n"
            reply = context.ask(method, params)
            expect(reply.code != METHOD_NOT_FOUND, f"{method} was answered {reply.error_text}")


@CAPABILITIES.should(PAGE, "A method that was not announced is refused with -32601.")
def capabilities_not_announced_is_refused(context: CheckContext) -> None:
    tried = [method for method in (READ, WRITE) if not context.announced(method)]
    if not tried:
        raise CheckSkippedError("the client announces both methods")
    for method in tried:
        path = context.folder.put("a.txt", b"a\n")
        params = {"sessionId": context.session, "path": path, "content": "b\n"}
        context.ask(method, params).refused(METHOD_NOT_FOUND)


@CAPABILITIES.should(PRACTICE, "Terminals that were not announced are refused with -32601.")
def capabilities_no_terminal(context: CheckContext) -> None:
    if context.conversation.capability("terminal") is True:
        raise CheckSkippedError("the client announces terminals")
    params = {"sessionId": context.session, "command": "true"}
    context.ask("terminal/create", params).refused(METHOD_NOT_FOUND)


@CAPABILITIES.should(
    PRACTICE,
    "Questions to the person (`elicitation/create`) in a mode that was not announced are refused.",
)
def capabilities_no_elicitation(context: CheckContext) -> None:
    announced = context.conversation.capability("elicitation")
    announced = announced if isinstance(announced, dict) else {}
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    modes: dict[str, Message] = {
        "form": {"requestedSchema": schema},
        "url": {"url": "https://example.com/", "elicitationId": "e1"},
    }
    tried = [mode for mode in modes if announced.get(mode) is None]
    if not tried:
        raise CheckSkippedError("the client announces both modes")
    for mode in tried:
        params = {"sessionId": context.session, "mode": mode, "message": "?", **modes[mode]}
        context.ask("elicitation/create", params).refused()


SESSIONS = CheckGroup("sessions", "Sessions and their folders")


@SESSIONS.must(SETUP, "`cwd` of `session/new` is an absolute path.")
def sessions_absolute_cwd(context: CheckContext) -> None:
    cwd = _first(context).get("cwd")
    expect(isinstance(cwd, str) and cwd.startswith("/"), f"cwd is {short(cwd)}")


@SESSIONS.must(SCHEMA, "`session/new` has a list of `mcpServers`.")
def sessions_mcp_servers(context: CheckContext) -> None:
    servers = _first(context).get("mcpServers")
    expect(isinstance(servers, list), f"mcpServers is {short(servers)}")


@SESSIONS.must(SETUP, "`additionalDirectories` are sent only to agents that announce them.")
def sessions_unwanted_directories(context: CheckContext) -> None:
    if context.conversation.plan.driven:
        raise CheckSkippedError("the suite announced them")
    sent = _first(context).get("additionalDirectories")
    expect(not sent, f"additionalDirectories is {short(sent)}")


@SESSIONS.should(
    PRACTICE, "A request that comes right behind the answer to `session/new` is served."
)
def sessions_early_request(context: CheckContext) -> None:
    if context.conversation.early is None:
        raise CheckSkippedError("the client does not announce readTextFile")
    reply = context.connection.wait(context.conversation.early)
    expect(not reply.is_error, f"it was refused: {reply.error_text}")
    context.expect_text(reply.content, "alive\n")


@SESSIONS.must(SCHEMA, "A request for no session at all is refused.")
def sessions_no_session(context: CheckContext) -> None:
    if not context.announced(READ):
        raise CheckSkippedError("the client does not announce readTextFile")
    context.ask(READ, {"path": context.folder.put("a.txt", b"a\n")}).refused()


@SESSIONS.should(SCHEMA, "A request for a session that was never opened is refused.")
def sessions_unknown_session(context: CheckContext) -> None:
    path = context.folder.put("a.txt", b"a\n")
    reply = context.read(path, {"sessionId": "nobody-opened-this"})
    reply.refused()
    expect(reply.code != METHOD_NOT_FOUND, "it was refused as an unknown method")


@SESSIONS.should(SETUP, "Files in a session's `additionalDirectories` are read and written.")
def sessions_additional_directories(context: CheckContext) -> None:
    opened = context.conversation.open_session(
        context.scratch.work.path, [context.scratch.more.path]
    )
    path = context.scratch.more.put("a.txt", b"more\n")
    here = {"sessionId": opened.id}
    context.expect_text(context.text(path, here), "more\n")
    context.written(path, "changed\n", here)
    context.holds("a.txt", b"changed\n", context.scratch.more)


@SESSIONS.should(ADVICE, "One session does not reach the folder of another.")
def sessions_two_sessions(context: CheckContext) -> None:
    requires(context, boundaries_read_outside)
    opened = context.conversation.open_session(context.scratch.other.path)
    theirs = context.scratch.other.put("theirs.txt", b"theirs\n")
    ours = context.folder.put("ours.txt", b"ours\n")
    context.expect_text(context.text(theirs, {"sessionId": opened.id}), "theirs\n")
    context.expect_text(context.text(ours), "ours\n")
    context.read(ours, {"sessionId": opened.id}).refused()
    context.read(theirs).refused()


@SESSIONS.should(PRACTICE, "After `session/close` nothing of the session is served.")
def sessions_closed_session(context: CheckContext) -> None:
    requires(context, sessions_unknown_session)
    opened = context.conversation.open_session(context.scratch.other.path)
    path = context.scratch.other.put("closed.txt", b"a\n")
    context.expect_text(context.text(path, {"sessionId": opened.id}), "a\n")
    context.conversation.close_session(opened)
    # The next session is opened after the answer to the close has been read.
    context.conversation.open_session(context.scratch.more.path)
    reply = context.read(path, {"sessionId": opened.id})
    reply.refused()
    expect(reply.code != METHOD_NOT_FOUND, "it was refused as an unknown method")


@SESSIONS.must(SCHEMA, "A session's id that is no text is refused.")
def sessions_odd_session(context: CheckContext) -> None:
    context.read(context.folder.put("a.txt", b"a\n"), {"sessionId": 7}).refused()


def _first(context: CheckContext) -> dict[str, object]:
    return context.conversation.sessions[context.session].params


PERMISSIONS = CheckGroup("permissions", "Asking the person")

_KINDS = ("allow_always", "allow_once", "reject_once", "reject_always")


@PERMISSIONS.must(
    TOOL_CALLS, "`session/request_permission` is answered with an offered option, or cancelled."
)
def permissions_answer(context: CheckContext) -> None:
    _chosen(_ask(context, _KINDS))


@PERMISSIONS.should(PRACTICE, "The option is chosen by its kind and not by its position.")
def permissions_by_kind(context: CheckContext) -> None:
    requires(context, permissions_answer)
    first = _chosen(_ask(context, _KINDS))
    second = _chosen(_ask(context, _KINDS[::-1]))
    expect(first == second, f"the same question was answered {first}, then {second}")


@PERMISSIONS.should(PRACTICE, "Nothing is allowed when only refusing is offered.")
def permissions_only_refusals(context: CheckContext) -> None:
    requires(context, permissions_answer)
    chosen = _chosen(_ask(context, ("reject_once", "reject_always")))
    expect(not chosen.startswith("allow"), f"it was answered {chosen}")


@PERMISSIONS.must(
    CANCELLING, "When the turn is cancelled, every question that is open is answered."
)
def permissions_at_cancel(context: CheckContext) -> None:
    opened = context.conversation.open_session(context.scratch.work.path)
    context.session = opened.id
    question = permission(context, _KINDS)
    context.connection.send(question)
    context.conversation.cancel_turn(opened)
    reply = context.connection.wait(question)
    context.conversation.end_turn(opened, "cancelled")
    if not reply.is_error:
        _chosen(reply)


def permission(context: CheckContext, kinds: tuple[str, ...]) -> Message:
    """A question that is not sent yet, with an option of each kind."""
    path = context.folder.at("asked.txt")
    call = {
        "toolCallId": "asked",
        "title": "Write asked.txt",
        "kind": "edit",
        "status": "pending",
        "locations": [{"path": path}],
        "content": [{"type": "diff", "path": path, "oldText": None, "newText": "new\n"}],
        "rawInput": {"path": path, "content": "new\n"},
    }
    options = [{"optionId": f"option-{kind}", "name": kind, "kind": kind} for kind in kinds]
    params = {"sessionId": context.session, "toolCall": call, "options": options}
    return context.connection.request("session/request_permission", params)


def _ask(context: CheckContext, kinds: tuple[str, ...]) -> RequestResult:
    question = permission(context, kinds)
    context.connection.send(question)
    try:
        return context.connection.wait(question)
    except ConnectionClosedError:
        raise
    except RequestTimeoutError:
        raise CheckSkippedError(
            "the question was not answered; a person may have to do it"
        ) from None


def _chosen(reply: RequestResult) -> str:
    """The kind that was chosen, or ``cancelled``."""
    outcome = as_object(as_object(reply.result, "the result").get("outcome"), "the outcome")
    if outcome.get("outcome") == "cancelled":
        return "cancelled"
    expect(outcome.get("outcome") == "selected", f"the outcome is {short(outcome)}")
    option = outcome.get("optionId")
    for kind in _KINDS:
        if option == f"option-{kind}":
            return kind
    raise CheckFailedError(f"optionId is {short(option)}, which was not offered")


CANCELLATION = CheckGroup("cancellation", "Cancelling")


@CANCELLATION.must(
    CANCELLING, "A request that `$/cancel_request` names is answered all the same: done, or -32800."
)
def cancellation_request(context: CheckContext) -> None:
    asked = context.read_request(context.folder.put("a.txt", b"a\n" * 1_000))
    context.connection.send(asked, _cancel(asked["id"]))
    reply = context.connection.wait(asked)
    if reply.is_error:
        reply.refused(REQUEST_CANCELLED)
    else:
        context.expect_text(reply.content, "a\n" * 1_000)


@CANCELLATION.must(
    CANCELLING, "A write that `$/cancel_request` names is done and says so, or is not done."
)
def cancellation_write(context: CheckContext) -> None:
    asked = context.write_request(context.folder.put("a.txt", b"old\n"), "new\n")
    context.connection.send(asked, _cancel(asked["id"]))
    reply = context.connection.wait(asked)
    if reply.is_error:
        reply.refused(REQUEST_CANCELLED)
    context.expect_alive()
    context.holds("a.txt", b"old\n" if reply.is_error else b"new\n")


@CANCELLATION.must(
    CANCELLING, "`$/cancel_request` for what was answered, or was never asked, is ignored."
)
def cancellation_unknown_request(context: CheckContext) -> None:
    for number in (0, 987_654, "never-asked", None):
        context.connection.send(_cancel(number))
    context.expect_alive()


@CANCELLATION.should(
    PRACTICE, "A write that comes after `session/cancel` and before the turn's end is not done."
)
def cancellation_late_write(context: CheckContext) -> None:
    opened = context.conversation.open_session(context.scratch.work.path)
    context.session = opened.id
    context.written(context.folder.at("early.txt"), "early\n")
    context.conversation.cancel_turn(opened)
    context.write(context.folder.at("late.txt"), "late\n").refused()
    context.conversation.end_turn(opened, "cancelled")
    expect(context.folder.get("late.txt") is None, "the file was written")


@CANCELLATION.should(PRACTICE, "It is refused with -32800.")
def cancellation_late_write_code(context: CheckContext) -> None:
    opened = context.conversation.open_session(context.scratch.work.path)
    context.session = opened.id
    context.conversation.cancel_turn(opened)
    reply = context.write(context.folder.at("late.txt"), "late\n")
    context.conversation.end_turn(opened, "cancelled")
    if not reply.is_error:
        raise CheckSkippedError("it was not refused")
    reply.refused(REQUEST_CANCELLED)


@CANCELLATION.should(PRACTICE, "The turn after a cancelled one is served like any other.")
def cancellation_next_turn(context: CheckContext) -> None:
    opened = context.conversation.open_session(context.scratch.work.path)
    context.session = opened.id
    context.conversation.cancel_turn(opened)
    context.conversation.end_turn(opened, "cancelled")
    context.conversation.start_turn(opened)
    path = context.folder.at("next.txt")
    context.written(path, "next\n")
    context.expect_text(context.text(path), "next\n")


def _cancel(number: object) -> dict[str, object]:
    return {"method": "$/cancel_request", "params": {"requestId": number}}
