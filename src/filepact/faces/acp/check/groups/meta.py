"""``_meta``, which is for additions, and parameters that nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.faces.acp.check.group import EXTENDING, PRACTICE, SCHEMA, Group
from filepact.faces.acp.check.outcome import expect

if TYPE_CHECKING:
    from filepact.faces.acp.check.scene import Scene

__all__ = ["GROUP"]

GROUP = Group("meta", "_meta and unknown parameters")


@GROUP.must(EXTENDING, "A path in `_meta` is not read in the place of the parameter.")
def read_path(scene: Scene) -> None:
    path, other = scene.folder.put("a.txt", b"a\n"), scene.folder.put("b.txt", b"b\n")
    reply = scene.read(path, {"_meta": {"path": other}})
    expect(reply.is_error or reply.content == "a\n", "the other file was read")


@GROUP.must(EXTENDING, "A path in `_meta` is not written in the place of the parameter.")
def write_path(scene: Scene) -> None:
    path, other = scene.folder.put("a.txt", b"a\n"), scene.folder.put("b.txt", b"b\n")
    reply = scene.write(path, "new\n", {"_meta": {"path": other}})
    scene.holds("b.txt", b"b\n")
    scene.holds("a.txt", b"a\n" if reply.is_error else b"new\n")


@GROUP.must(EXTENDING, "A `content` in `_meta` is not written in the place of the parameter.")
def content(scene: Scene) -> None:
    path = scene.folder.put("a.txt", b"a\n")
    reply = scene.write(path, "new\n", {"_meta": {"content": "other\n"}})
    scene.holds("a.txt", b"a\n" if reply.is_error else b"new\n")


@GROUP.must(EXTENDING, "`line` and `limit` in `_meta` do not count.")
def window(scene: Scene) -> None:
    path = scene.folder.put("a.txt", b"one\ntwo\nthree\n")
    for more, meta in (
        ({"line": 1, "limit": 1}, {"line": 2, "limit": 2}),
        ({}, {"line": 2, "limit": 0}),
    ):
        plain = scene.text(path, more)
        reply = scene.read(path, {**more, "_meta": meta})
        expect(reply.is_error or reply.content == plain, "other lines were read")


@GROUP.must(EXTENDING, "A session's id in `_meta` does not count.")
def session(scene: Scene) -> None:
    path = scene.folder.put("a.txt", b"a\n")
    unknown = {"sessionId": "nobody-opened-this"}
    # A client that looks at no ids at all is another matter: only the difference counts.
    plain = scene.read(path, unknown)
    for name in ("sessionId", "session_id"):
        reply = scene.read(path, {**unknown, "_meta": {name: scene.session}})
        served = plain.is_error and not reply.is_error
        expect(not served, f"a request for no session was served because of {name} in `_meta`")


@GROUP.must(SCHEMA, "`_meta` may be null or an object with anything in it.")
def anything(scene: Scene) -> None:
    path = scene.folder.put("a.txt", b"a\n")
    many = {"example.org/note": {"deep": [1, None, {"x": "y"}]}, "self": 1, "kwargs": {}, "": 0}
    for more in (None, {}, many):
        scene.same(scene.text(path, {"_meta": more}), "a\n")
        scene.written(path, "a\n", {"_meta": more})


@GROUP.should(SCHEMA, "A `_meta` that is no object counts as absent.")
def odd(scene: Scene) -> None:
    path = scene.folder.put("a.txt", b"a\n")
    for more in ("text", ["list"], 7):
        scene.same(scene.text(path, {"_meta": more}), "a\n")


@GROUP.should(PRACTICE, "A parameter that nobody knows is ignored.")
def unknown_parameter(scene: Scene) -> None:
    path = scene.folder.put("a.txt", b"a\n")
    more = {"encoding": "utf-7", "future": {"x": 1}, "file": "b.txt"}
    scene.same(scene.text(path, more), "a\n")
    scene.written(path, "b\n", more)
    scene.holds("a.txt", b"b\n")
