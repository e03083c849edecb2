"""What no client knows: methods, notifications, updates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.faces.acp.check.group import EXTENDING, JSON_RPC, PRACTICE, SCHEMA, Group
from filepact.faces.acp.check.messages import INVALID, UNKNOWN_METHOD
from filepact.faces.acp.check.scene import READ

if TYPE_CHECKING:
    from filepact.faces.acp.check.scene import Scene

__all__ = ["GROUP"]

GROUP = Group("robustness", "Methods and updates that nobody knows")


@GROUP.must(JSON_RPC, "A request with an unknown method is refused with -32601.")
def unknown_method(scene: Scene) -> None:
    for method in ("fs/delete_file", "craft/drainQueue", "x", "Fs/Read_Text_File"):
        scene.ask(method, {"sessionId": scene.session}).refused(UNKNOWN_METHOD)


@GROUP.must(
    JSON_RPC, "A request with an unknown method that begins with `_` is refused with -32601."
)
def unknown_extension(scene: Scene) -> None:
    scene.ask("_example.org/no_such_method", {"x": 1}).refused(UNKNOWN_METHOD)


@GROUP.should(EXTENDING, "An unknown notification is ignored.")
def unknown_notification(scene: Scene) -> None:
    scene.peer.send(
        {"method": "_example.org/note", "params": {"x": 1}},
        {"method": "_auth/status_update", "params": {}},
        {"method": "craft/note", "params": {}},
        {"method": "craft/bare"},
    )
    scene.alive()


@GROUP.should(PRACTICE, "A `session/update` of an unknown kind is ignored.")
def unknown_update(scene: Scene) -> None:
    for update in ({"sessionUpdate": "from_the_future", "x": [1]}, {}, None):
        params = {"sessionId": scene.session, "update": update}
        scene.peer.send({"method": "session/update", "params": params})
    scene.alive()


@GROUP.must(SCHEMA, "A `session/update` with text and one with a tool call are taken.")
def update(scene: Scene) -> None:
    text = {"type": "text", "text": "checking"}
    call = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "read", "kind": "read"}
    for one in ({"sessionUpdate": "agent_message_chunk", "content": text}, call):
        params = {"sessionId": scene.session, "update": one}
        scene.peer.send({"method": "session/update", "params": params})
    scene.alive()


@GROUP.should(
    JSON_RPC, "A request whose parameters are no object, or are missing, is refused with -32602."
)
def odd_params(scene: Scene) -> None:
    if scene.announced(READ):
        odd: tuple[object, ...] = ([scene.session, "a.txt"], None, {})
        for params in odd:
            scene.ask(READ, params).refused(INVALID)
        request = scene.peer.request(READ, None)
        del request["params"]
        scene.peer.send(request)
        scene.peer.wait(request).refused(INVALID)
    scene.alive()


@GROUP.should(PRACTICE, "An answer to something that was never asked is ignored.")
def unknown_answer(scene: Scene) -> None:
    scene.peer.send({"id": 987_654, "result": {}}, {"id": "x", "error": {"code": 1, "message": ""}})
    scene.alive()
