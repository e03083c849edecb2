"""Questions to the person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.faces.acp.check.group import CANCELLING, PERMISSIONS, PRACTICE, Group, builds_on
from filepact.faces.acp.check.outcome import Failed, Skipped, an_object, expect, shown
from filepact.faces.acp.check.peer import Closed, NoAnswer

if TYPE_CHECKING:
    from filepact.faces.acp.check.messages import Message, Reply
    from filepact.faces.acp.check.scene import Scene

__all__ = ["GROUP", "permission"]

GROUP = Group("permissions", "Asking the person")

_KINDS = ("allow_always", "allow_once", "reject_once", "reject_always")


@GROUP.must(
    PERMISSIONS, "`session/request_permission` is answered with an offered option, or cancelled."
)
def answer(scene: Scene) -> None:
    _chosen(_ask(scene, _KINDS))


@GROUP.should(PRACTICE, "The option is chosen by its kind and not by its position.")
def by_kind(scene: Scene) -> None:
    builds_on(scene, answer)
    first = _chosen(_ask(scene, _KINDS))
    second = _chosen(_ask(scene, _KINDS[::-1]))
    expect(first == second, f"the same question was answered {first}, then {second}")


@GROUP.should(PRACTICE, "Nothing is allowed when only refusing is offered.")
def only_refusals(scene: Scene) -> None:
    builds_on(scene, answer)
    chosen = _chosen(_ask(scene, ("reject_once", "reject_always")))
    expect(not chosen.startswith("allow"), f"it was answered {chosen}")


@GROUP.must(CANCELLING, "When the turn is cancelled, every question that is open is answered.")
def at_cancel(scene: Scene) -> None:
    opened = scene.talk.want_session(scene.scratch.work.path)
    scene.session = opened.id
    question = permission(scene, _KINDS)
    scene.peer.send(question)
    scene.talk.want_cancel(opened)
    reply = scene.peer.wait(question)
    scene.talk.end_turn(opened, "cancelled")
    if not reply.is_error:
        _chosen(reply)


def permission(scene: Scene, kinds: tuple[str, ...]) -> Message:
    """A question that is not sent yet, with an option of each kind."""
    path = scene.folder.at("asked.txt")
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
    params = {"sessionId": scene.session, "toolCall": call, "options": options}
    return scene.peer.request("session/request_permission", params)


def _ask(scene: Scene, kinds: tuple[str, ...]) -> Reply:
    question = permission(scene, kinds)
    scene.peer.send(question)
    try:
        return scene.peer.wait(question)
    except Closed:
        raise
    except NoAnswer:
        raise Skipped("the question was not answered; a person may have to do it") from None


def _chosen(reply: Reply) -> str:
    """The kind that was chosen, or ``cancelled``."""
    outcome = an_object(an_object(reply.result, "the result").get("outcome"), "the outcome")
    if outcome.get("outcome") == "cancelled":
        return "cancelled"
    expect(outcome.get("outcome") == "selected", f"the outcome is {shown(outcome)}")
    option = outcome.get("optionId")
    for kind in _KINDS:
        if option == f"option-{kind}":
            return kind
    raise Failed(f"optionId is {shown(option)}, which was not offered")
