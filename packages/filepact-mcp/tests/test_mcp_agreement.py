"""Whatever a client sends, it gets what the official package for servers answers, as JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.tools.registry import Toolset
from tests.faces.envelopes import CAPABILITIES_KEY, CLIENT_KEY, VERSION_KEY, handshake, modern
from tests.faces.sdk_server import start as start_package

if TYPE_CHECKING:
    from filepact.domain.operation import Session

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


def call(name, /, _meta=None, **arguments) -> tuple:
    params = {"name": name, "arguments": arguments}
    return "tools/call", params if _meta is None else params | {"_meta": _meta}


def modern_call(name, /, _meta=None, **arguments) -> tuple:
    return "tools/call", modern(name=name, arguments=arguments, _meta=_meta or {})


def greeted(*questions, **changes) -> list:
    return [("initialize", handshake(**changes)), *questions]


# fmt: off
CALLS = [
    ("read", {"path": "a"}),
    ("read", {"path": "odd"}),
    ("read", {"path": "ü"}),
    ("read", {"path": "a", "raw": True}),
    ("read", {"path": "a", "raw": "true"}),
    ("read", {"path": "a", "raw": True, "note": "[a part of it]"}),
    ("read", {"path": "a", "raw": True, "mime": "image/png", "note": "a picture"}),
    ("read", {"path": "large"}),
    ("read", {"path": "gone"}),
    ("read", {"path": ""}),
    ("read", {"path": None}),
    ("read", {"path": 10**30}),
    ("read", {"path": ["a"]}),
    ("read", {}),
    ("read", {"path": "a", "_meta": {}}),
    ("write", {"path": "b", "content": "x"}),
    ("write", {"path": "grüße \U0001f600", "content": 'x\u2028\x00"\\', "createDirs": True}),
    ("write", {"file_path": "b", "content": "x"}),
    ("write", {"path": "b"}),
    ("fail", {}),
    ("who", {}),
    ("wait", {"steps": 1}),
    ("wait", {"steps": -1}),
    ("explode", {}),
    ("", {}),
    ("x" * 300, {}),
]

ORDINARY = [
    greeted(),
    greeted(protocolVersion="2026-07-28"),
    greeted(protocolVersion=""),
    greeted(capabilities={"sampling": {}}),
    greeted(capabilities={"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}}),
    greeted(capabilities={"extensions": {"x/ui": {"mimeTypes": ["text/html"]}}, "experimental": {"y": {"z": 1}}}),
    greeted(capabilities={"tasks": {"list": {}, "cancel": {}}, "unheard-of": {"of": {}}}),
    greeted(call("who"), clientInfo={"name": "", "version": "", "title": "T", "websiteUrl": "https://x.example"}),
    greeted(call("who"), clientInfo={"name": "a\n\x1b[31m" + "b" * 200, "version": "\x00 1 "}),
    greeted(("tools/list", None), ("ping", None), ("tools/list", {}), ("ping", {"_meta": {}})),
    greeted(("tools/list", {"_meta": {"progressToken": 3}}), ("ping", {"_meta": {"host/turn": 5}})),
    greeted(("tools/call", {"name": "who"}), ("tools/call", {"name": "who", "_meta": {}})),
    greeted(call("who", {"progressToken": "t", "traceparent": "00-1", "host/toolUseId": {"a": [1]}})),
    greeted(call("wait", {"progressToken": 0}, steps=1), call("wait", {"progressToken": ""}, steps=1)),
    greeted(call("who"), ("initialize", handshake(clientInfo={"name": "second", "version": "2"})), call("who")),
    [("server/discover", modern()), ("tools/list", modern()), ("server/discover", modern())],
    [("tools/list", modern()), ("server/discover", modern())],
    [("server/discover", {"_meta": {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {"roots": {}, "elicitation": {}}}})],
    [("tools/call", modern(name="who")), modern_call("who", {"progressToken": 1, "host/x": None})],
    [modern_call("who", {CLIENT_KEY: {"name": "other", "version": "1"}}), modern_call("who")],
    [modern_call("wait", {"progressToken": "t"}, steps=1)],
    [("tools/call", {"name": "who", "_meta": {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}}})],
    *(greeted(("tools/list", None), call("write", path="b", content="x"), call("read"), call("no"), protocolVersion=version)
      for version in VERSIONS),
]
# What no program sends that keeps to the protocol, or few do.
UNUSUAL = [
    [("initialize", None)],
    [("initialize", {})],
    greeted(protocolVersion=5),
    greeted(capabilities=[]),
    greeted(capabilities={"roots": True}),
    greeted(capabilities={"roots": {"listChanged": "perhaps"}}),
    greeted(capabilities={"sampling": {"tools": 5}}),
    greeted(capabilities={"extensions": {"x/ui": 5}}),
    greeted(clientInfo={"name": "x"}),
    greeted(clientInfo={"name": "x", "version": 5}),
    greeted(clientInfo=None),
    [("initialize", handshake() | {"_meta": {"x": 1}})],
    [("tools/list", None)],
    [("ping", None)],
    [call("who")],
    [("ping", None), ("initialize", {}), call("who")],
    [("server/discover", modern(_meta={VERSION_KEY: "2031-01-01"}))],
    [("server/discover", {"_meta": {VERSION_KEY: "2026-07-28"}})],
    [("server/discover", modern(_meta={CLIENT_KEY: "x"}))],
    greeted(("tools/list", modern())),
    greeted(("no/such/method", None)),
    greeted(("initialize", {})),
    greeted(("initialize", handshake(clientInfo={"name": "x"})), call("who")),
    greeted(("initialize", handshake(clientInfo={"name": "x", "version": "1", "icons": []})), call("who")),
    greeted(("tools/call", None)),
    greeted(("tools/call", {})),
    greeted(("tools/call", {"name": 5})),
    greeted(("tools/call", {"name": None, "arguments": {}})),
    greeted(("tools/call", {"name": "who", "arguments": None})),
    greeted(("tools/call", {"name": "who", "arguments": [1]})),
    greeted(("tools/call", {"name": "who", "arguments": "{}"})),
    greeted(("tools/call", {"name": "who", "task": {"ttl": 60_000}})),
    greeted(("tools/call", {"name": "who", "inputResponses": {}, "requestState": "x"})),
    greeted(("tools/call", {"name": "who", "surprise": 1})),
    greeted(("tools/call", {"name": "who", "_meta": 5})),
    greeted(("tools/call", {"name": "who", "_meta": None})),
    greeted(call("who", {"progressToken": True})),
    greeted(call("who", {"progressToken": 1.5})),
    greeted(call("who", {"traceparent": 5})),
    greeted(call("who", {"io.modelcontextprotocol/related-task": {"taskId": "t"}})),
    greeted(call("who", {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}})),
    [("server/discover", modern()), ("ping", modern())],
    [("server/discover", modern()), ("tools/list", None)],
    [("server/discover", modern()), call("who")],
    [("tools/list", modern()), ("initialize", modern(**handshake()))],
    [modern_call("who"), modern_call("who", {"io.modelcontextprotocol/logLevel": "debug"})],
    [modern_call("who"), ("tools/call", modern(name="who", inputResponses={}))],
    [modern_call("who"), ("tools/call", modern(name="who", arguments=None))],
    [modern_call("who"), ("tools/call", modern(name=5))],
    [modern_call("who"), ("tools/call", modern(name="who", _meta={CAPABILITIES_KEY: 5}))],
    [modern_call("who"), modern_call("who", {"io.modelcontextprotocol/logLevel": "loud"})],
    [modern_call("who"), modern_call("who", {"progressToken": [1]})],
    [modern_call("who"), modern_call("who", {"progressToken": None})],
    [modern_call("who"), modern_call("who", {"progressToken": 2.0})],
    [modern_call("who"), modern_call("who", {CLIENT_KEY: None})],
    [modern_call("who"), modern_call("who", {VERSION_KEY: 5})],
    [modern_call("who"), ("tools/call", modern(name="who", requestState=5))],
    [modern_call("who"), ("tools/call", modern(name="who", inputResponses=[]))],
    [modern_call("who"), ("no/such/method", modern()), ("resources/list", modern())],
    [modern_call("who"), ("initialize", {"protocolVersion": 5})],
    [("server/discover", modern()), ("tools/list", modern(cursor=5))],
    [("server/discover", modern(_meta={CAPABILITIES_KEY: {"elicitation": {"form": 5}}}))],
    [("server/discover", modern(_meta={CAPABILITIES_KEY: {"extensions": {"x/ui": 5}}}))],
    [("resources/list", None), ("initialize", handshake()), ("ping", {"_meta": 5})],
    greeted(("ping", {"cursor": 5}), ("ping", {"surprise": 5})),
    greeted(("tools/list", {"cursor": 5}), ("tools/list", {"cursor": None, "_meta": None})),
    greeted(("tools/call", {"name": "who", "task": 5})),
    greeted(call("who", {"progressToken": 2.0}), call("who", {"progressToken": None})),
    greeted(capabilities={"roots": {"listChanged": True}, "sampling": None}),
    greeted(capabilities={"experimental": {"x": 5}}),
    greeted(capabilities={"tasks": {"requests": {"elicitation": {"create": 5}}}}),
    greeted(capabilities={"elicitation": {"url": "x"}}),
    greeted(capabilities={"roots": {"listChanged": "YES"}}),
    greeted(capabilities={"roots": {"listChanged": 2}}),
    greeted(clientInfo={"name": "x", "version": "1", "title": 5}),
    greeted(clientInfo={"name": "x", "version": "1", "icons": [{"src": "x", "sizes": ["1x1"], "theme": "dark"}]}),
    greeted(clientInfo={"name": "x", "version": "1", "icons": [{"src": "x", "theme": "blue"}]}),
    greeted(clientInfo={"name": "x", "version": "1", "icons": [{}]}),
    greeted(clientInfo={"name": "x", "version": "1", "icons": [{"src": "x", "sizes": [5]}]}),
]
# fmt: on


@pytest.fixture
def both(in_thread, small):
    """A client of ours, and one of the package, each of an engine of its own."""

    def start(session_factory=None):
        ours, theirs = (small.SmallEngine() for _ in range(2))
        make = session_factory or small.counted_sessions
        return (
            in_thread(lambda pipes: small.start(ours, pipes=pipes, session_factory=make())),
            in_thread(
                lambda pipes: start_package(
                    Toolset(small.TOOLS, theirs), pipes=pipes, session_factory=make()
                )
            ),
        )

    return start


def said(client, questions) -> list:
    """Every answer and every other word of the server, without the requests' ids."""
    answers = []
    for method, params in questions:
        answer = client.ask(method, params)
        del answer["id"]
        answers.append(answer)
    notes = [client.notes.get_nowait() for _ in range(client.notes.qsize())]
    return [*answers, *notes]


def alike(answers) -> list:
    """The same without what is said in other words: of what is malformed ours name the member; they list all versions, and
    a client may keep what they list; they know tasks."""
    for one in answers:
        error = one.get("error", {})
        if error.get("code") == -32602:
            error.update(message="", data="")
        error.pop("data", None) if error.get("code") == -32022 else None
        for name in ("supportedVersions", "ttlMs"):
            one.get("result", {}).pop(name, None)
        one.get("result", {}).get("capabilities", {}).pop("extensions", None)
    return answers


@pytest.mark.parametrize("questions", [*ORDINARY, *UNUSUAL])
def test_questions_are_answered_as_the_package_does(both, questions):
    ours, package = (alike(said(client, questions)) for client in both())
    assert ours == package


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_every_kind_of_call_is_answered_as_the_package_does(both, era):
    if era == "handshake":
        questions = greeted(*(call(name, **arguments) for name, arguments in CALLS))
    else:
        questions = [modern_call(name, **arguments) for name, arguments in CALLS]
    ours, package = (said(client, questions) for client in both())
    assert ours == package


def test_a_session_that_cannot_be_made_is_the_same_error(both):
    def no_session(_actor) -> Session:
        raise OSError("/home/somebody/state")

    clients = both(lambda: no_session)
    ours, package = (said(client, greeted(call("who"))) for client in clients)
    assert ours == package
    assert "error" in ours[-1]


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_however_a_call_is_written_the_client_has_one_session(in_thread, small, engine, era):
    client = in_thread(lambda pipes: small.start(engine, pipes=pipes))
    usual, unusual = {"name": "who"}, {"name": "who", "arguments": None}
    if era == "handshake":
        client.shake_hands()
    else:
        usual, unusual = modern(**usual), modern(**unusual)
    answers = [client.ask("tools/call", params)["result"] for params in (usual, unusual, usual)]
    texts = [answer["content"][0]["text"] for answer in answers]
    assert texts == ["s0 tester 7"] * 3
