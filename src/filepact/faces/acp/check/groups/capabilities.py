"""What a client says of itself, and whether it does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.faces.acp.check.group import PAGE, PRACTICE, SCHEMA, START, Group
from filepact.faces.acp.check.messages import UNKNOWN_METHOD
from filepact.faces.acp.check.outcome import Skipped, an_object, expect, shown
from filepact.faces.acp.check.scene import READ, WRITE

if TYPE_CHECKING:
    from filepact.faces.acp.check.scene import Scene

__all__ = ["GROUP"]

GROUP = Group("capabilities", "What the client announces")


@GROUP.must(START, "The first message of a connection is `initialize`.")
def initialize_first(scene: Scene) -> None:
    first = scene.talk.methods[0]
    expect(first == "initialize", f"the first message was {shown(first)}")


@GROUP.must(SCHEMA, "`protocolVersion` is a whole number from 0 to 65535.")
def version(scene: Scene) -> None:
    number = scene.talk.initialize.get("protocolVersion")
    expect(type(number) is int and 0 <= number <= 65_535, f"protocolVersion is {shown(number)}")


@GROUP.must(
    SCHEMA, "`clientCapabilities` and its `fs` are objects; what `fs` offers is true or false."
)
def form(scene: Scene) -> None:
    sent = an_object(scene.talk.initialize.get("clientCapabilities", {}), "clientCapabilities")
    fs = an_object(sent.get("fs", {}), "clientCapabilities.fs")
    for name in ("readTextFile", "writeTextFile"):
        flag = fs.get(name, False)
        expect(isinstance(flag, bool), f"{name} is {shown(flag)}")


@GROUP.should(SCHEMA, "`clientInfo` has a name and a version.")
def client_info(scene: Scene) -> None:
    info = an_object(scene.talk.initialize.get("clientInfo"), "clientInfo")
    for name in ("name", "version"):
        expect(isinstance(info.get(name), str), f"clientInfo.{name} is {shown(info.get(name))}")


@GROUP.must(PAGE, "A method that was announced is served.")
def announced_is_served(scene: Scene) -> None:
    for method in (READ, WRITE):
        if scene.announced(method):
            params = {"sessionId": scene.session, "path": scene.folder.put("a.txt", b"a\n")}
            if method == WRITE:
                params["content"] = "a\n"
            reply = scene.ask(method, params)
            expect(reply.code != UNKNOWN_METHOD, f"{method} was answered {reply.told}")


@GROUP.should(PAGE, "A method that was not announced is refused with -32601.")
def not_announced_is_refused(scene: Scene) -> None:
    tried = [method for method in (READ, WRITE) if not scene.announced(method)]
    if not tried:
        raise Skipped("the client announces both methods")
    for method in tried:
        path = scene.folder.put("a.txt", b"a\n")
        params = {"sessionId": scene.session, "path": path, "content": "b\n"}
        scene.ask(method, params).refused(UNKNOWN_METHOD)


@GROUP.should(PRACTICE, "Terminals that were not announced are refused with -32601.")
def no_terminal(scene: Scene) -> None:
    if scene.talk.capability("terminal") is True:
        raise Skipped("the client announces terminals")
    params = {"sessionId": scene.session, "command": "true"}
    scene.ask("terminal/create", params).refused(UNKNOWN_METHOD)
