"""Ids, lines and the form of messages; much of it is about everything that was sent so far."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from filepact.faces.acp.check.group import JSON_RPC, TRANSPORT, Group
from filepact.faces.acp.check.outcome import Skipped, expect
from filepact.faces.acp.check.scene import READ

if TYPE_CHECKING:
    from filepact.faces.acp.check.scene import Scene

__all__ = ["GROUP"]

GROUP = Group("ids", "Ids and lines")


@GROUP.must(JSON_RPC, "A request with the id 0 is answered.")
def zero(scene: Scene) -> None:
    if scene.talk.early is None:
        raise Skipped("the client does not announce readTextFile")
    # The first request of all had it.
    scene.peer.wait(scene.talk.early)


@GROUP.must(JSON_RPC, "An id that is a text comes back as that text.")
def text(scene: Scene) -> None:
    for number in ("a", "7", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "h\u00e9 \u4e2d"):
        _answered(scene, number)


@GROUP.must(JSON_RPC, "An id that is a large or negative number comes back as that number.")
def numbers(scene: Scene) -> None:
    for number in (9_007_199_254_740_991, 2_147_483_648, -5):
        _answered(scene, number)


@GROUP.must(JSON_RPC, "Every request is answered once, and nothing else is answered.")
def once(scene: Scene) -> None:
    scene.alive()
    expect(not scene.peer.unasked, f"there were answers for {', '.join(scene.peer.unasked[:5])}")


@GROUP.must(TRANSPORT, "A line that comes in pieces is one message.")
def pieces(scene: Scene) -> None:
    path = scene.folder.put("\u00e4\u4e2d.txt", b"pieces\n")
    request = scene.read_request(path)
    line = json.dumps({"jsonrpc": "2.0", **request}, ensure_ascii=False).encode() + b"\n"
    for at in range(0, len(line), 7):
        scene.peer.send_bytes(line[at : at + 7])
    scene.same(scene.peer.wait(request).content, "pieces\n")


@GROUP.must(TRANSPORT, "Text is UTF-8, whether it is written out or as escapes.")
def escapes(scene: Scene) -> None:
    path = scene.folder.put("\u00e4\U0001f600.txt", b"name\n")
    for plain in (True, False):
        request = scene.read_request(path)
        line = json.dumps({"jsonrpc": "2.0", **request}, ensure_ascii=plain)
        scene.peer.send_bytes(f"{line}\n".encode())
        scene.same(scene.peer.wait(request).content, "name\n")


@GROUP.must(TRANSPORT, "Every line that the client sends is one JSON object.")
def lines(scene: Scene) -> None:
    scene.alive()
    strange = scene.peer.strange
    expect(not strange, f"{len(strange)} lines are none, the first is {strange[:1]}")


@GROUP.must(
    JSON_RPC, 'Every message has `jsonrpc: "2.0"`, and every answer one of result and error.'
)
def form(scene: Scene) -> None:
    scene.alive()
    sloppy = scene.peer.sloppy
    expect(not sloppy, f"{len(sloppy)} messages have not; the first: {sloppy[:1]}")


def _answered(scene: Scene, number: int | str) -> None:
    if not scene.announced(READ):
        raise Skipped("the client does not announce readTextFile")
    path = scene.scratch.work.at("alive.txt")
    scene.ask(READ, {"sessionId": scene.session, "path": path}, number)
