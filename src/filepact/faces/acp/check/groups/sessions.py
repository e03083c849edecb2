"""Sessions: each has its folders, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.faces.acp.check.group import ADVICE, PRACTICE, SCHEMA, SETUP, Group, builds_on
from filepact.faces.acp.check.groups.boundaries import read_outside
from filepact.faces.acp.check.messages import UNKNOWN_METHOD
from filepact.faces.acp.check.outcome import Skipped, expect, shown
from filepact.faces.acp.check.scene import READ

if TYPE_CHECKING:
    from filepact.faces.acp.check.scene import Scene

__all__ = ["GROUP"]

GROUP = Group("sessions", "Sessions and their folders")


@GROUP.must(SETUP, "`cwd` of `session/new` is an absolute path.")
def absolute_cwd(scene: Scene) -> None:
    cwd = _first(scene).get("cwd")
    expect(isinstance(cwd, str) and cwd.startswith("/"), f"cwd is {shown(cwd)}")


@GROUP.must(SCHEMA, "`session/new` has a list of `mcpServers`.")
def mcp_servers(scene: Scene) -> None:
    servers = _first(scene).get("mcpServers")
    expect(isinstance(servers, list), f"mcpServers is {shown(servers)}")


@GROUP.must(SETUP, "`additionalDirectories` are sent only to agents that announce them.")
def unwanted_directories(scene: Scene) -> None:
    if scene.talk.plan.steered:
        raise Skipped("the suite announced them")
    sent = _first(scene).get("additionalDirectories")
    expect(not sent, f"additionalDirectories is {shown(sent)}")


@GROUP.should(PRACTICE, "A request that comes right behind the answer to `session/new` is served.")
def early_request(scene: Scene) -> None:
    if scene.talk.early is None:
        raise Skipped("the client does not announce readTextFile")
    reply = scene.peer.wait(scene.talk.early)
    expect(not reply.is_error, f"it was refused: {reply.told}")
    scene.same(reply.content, "alive\n")


@GROUP.must(SCHEMA, "A request for no session at all is refused.")
def no_session(scene: Scene) -> None:
    if not scene.announced(READ):
        raise Skipped("the client does not announce readTextFile")
    scene.ask(READ, {"path": scene.folder.put("a.txt", b"a\n")}).refused()


@GROUP.should(SCHEMA, "A request for a session that was never opened is refused.")
def unknown_session(scene: Scene) -> None:
    path = scene.folder.put("a.txt", b"a\n")
    reply = scene.read(path, {"sessionId": "nobody-opened-this"})
    reply.refused()
    expect(reply.code != UNKNOWN_METHOD, "it was refused as an unknown method")


@GROUP.should(SETUP, "Files in a session's `additionalDirectories` are read and written.")
def additional_directories(scene: Scene) -> None:
    opened = scene.talk.want_session(scene.scratch.work.path, [scene.scratch.more.path])
    path = scene.scratch.more.put("a.txt", b"more\n")
    here = {"sessionId": opened.id}
    scene.same(scene.text(path, here), "more\n")
    scene.written(path, "changed\n", here)
    scene.holds("a.txt", b"changed\n", scene.scratch.more)


@GROUP.should(ADVICE, "One session does not reach the folder of another.")
def two_sessions(scene: Scene) -> None:
    builds_on(scene, read_outside)
    opened = scene.talk.want_session(scene.scratch.other.path)
    theirs = scene.scratch.other.put("theirs.txt", b"theirs\n")
    ours = scene.folder.put("ours.txt", b"ours\n")
    scene.same(scene.text(theirs, {"sessionId": opened.id}), "theirs\n")
    scene.same(scene.text(ours), "ours\n")
    scene.read(ours, {"sessionId": opened.id}).refused()
    scene.read(theirs).refused()


@GROUP.should(PRACTICE, "After `session/close` nothing of the session is served.")
def closed_session(scene: Scene) -> None:
    builds_on(scene, unknown_session)
    opened = scene.talk.want_session(scene.scratch.other.path)
    path = scene.scratch.other.put("closed.txt", b"a\n")
    scene.same(scene.text(path, {"sessionId": opened.id}), "a\n")
    scene.talk.want_close(opened)
    # The next session is opened after the answer to the close has been read.
    scene.talk.want_session(scene.scratch.more.path)
    reply = scene.read(path, {"sessionId": opened.id})
    reply.refused()
    expect(reply.code != UNKNOWN_METHOD, "it was refused as an unknown method")


@GROUP.must(SCHEMA, "A session's id that is no text is refused.")
def odd_session(scene: Scene) -> None:
    scene.read(scene.folder.put("a.txt", b"a\n"), {"sessionId": 7}).refused()


def _first(scene: Scene) -> dict[str, object]:
    return scene.talk.sessions[scene.session].params
