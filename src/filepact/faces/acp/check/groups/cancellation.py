"""Turns and requests that are cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.faces.acp.check.group import CANCELLING, PRACTICE, Group
from filepact.faces.acp.check.messages import CANCELLED
from filepact.faces.acp.check.outcome import Skipped, expect

if TYPE_CHECKING:
    from filepact.faces.acp.check.scene import Scene

__all__ = ["GROUP"]

GROUP = Group("cancellation", "Cancelling")


@GROUP.must(
    CANCELLING, "A request that `$/cancel_request` names is answered all the same: done, or -32800."
)
def request(scene: Scene) -> None:
    asked = scene.read_request(scene.folder.put("a.txt", b"a\n" * 1_000))
    scene.peer.send(asked, _cancel(asked["id"]))
    reply = scene.peer.wait(asked)
    if reply.is_error:
        reply.refused(CANCELLED)
    else:
        scene.same(reply.content, "a\n" * 1_000)


@GROUP.must(
    CANCELLING, "A write that `$/cancel_request` names is done and says so, or is not done."
)
def write(scene: Scene) -> None:
    asked = scene.write_request(scene.folder.put("a.txt", b"old\n"), "new\n")
    scene.peer.send(asked, _cancel(asked["id"]))
    reply = scene.peer.wait(asked)
    if reply.is_error:
        reply.refused(CANCELLED)
    scene.alive()
    scene.holds("a.txt", b"old\n" if reply.is_error else b"new\n")


@GROUP.must(CANCELLING, "`$/cancel_request` for what was answered, or was never asked, is ignored.")
def unknown_request(scene: Scene) -> None:
    for number in (0, 987_654, "never-asked", None):
        scene.peer.send(_cancel(number))
    scene.alive()


@GROUP.should(
    PRACTICE, "A write that comes after `session/cancel` and before the turn's end is not done."
)
def late_write(scene: Scene) -> None:
    opened = scene.talk.want_session(scene.scratch.work.path)
    scene.session = opened.id
    scene.written(scene.folder.at("early.txt"), "early\n")
    scene.talk.want_cancel(opened)
    scene.write(scene.folder.at("late.txt"), "late\n").refused()
    scene.talk.end_turn(opened, "cancelled")
    expect(scene.folder.get("late.txt") is None, "the file was written")


@GROUP.should(PRACTICE, "It is refused with -32800.")
def late_write_code(scene: Scene) -> None:
    opened = scene.talk.want_session(scene.scratch.work.path)
    scene.session = opened.id
    scene.talk.want_cancel(opened)
    reply = scene.write(scene.folder.at("late.txt"), "late\n")
    scene.talk.end_turn(opened, "cancelled")
    if not reply.is_error:
        raise Skipped("it was not refused")
    reply.refused(CANCELLED)


@GROUP.should(PRACTICE, "The turn after a cancelled one is served like any other.")
def next_turn(scene: Scene) -> None:
    opened = scene.talk.want_session(scene.scratch.work.path)
    scene.session = opened.id
    scene.talk.want_cancel(opened)
    scene.talk.end_turn(opened, "cancelled")
    scene.talk.want_prompt(opened)
    path = scene.folder.at("next.txt")
    scene.written(path, "next\n")
    scene.same(scene.text(path), "next\n")


def _cancel(number: object) -> dict[str, object]:
    return {"method": "$/cancel_request", "params": {"requestId": number}}
