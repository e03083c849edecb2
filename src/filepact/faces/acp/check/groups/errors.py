"""How a client refuses."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from filepact.faces.acp.check.group import JSON_RPC, PAGE, PRACTICE, SCHEMA, Group
from filepact.faces.acp.check.messages import INVALID, MISSING
from filepact.faces.acp.check.outcome import Skipped, expect, shown
from filepact.faces.acp.check.scene import READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.faces.acp.check.messages import Reply
    from filepact.faces.acp.check.scene import Scene

__all__ = ["GROUP"]

GROUP = Group("errors", "Refusals")

_EXCEPTION = re.compile(
    r"Traceback \(most recent|\[Errno -?\d|\bOSError|\b[A-Z]\w+(Error|Exception):"
    r"|File \"[^\"]+\", line \d|\bE[A-Z]{3,12}: |\bat .+:\d+:\d+\)|panicked at |os error \d"
)


@GROUP.should(SCHEMA, "A read of a file that does not exist is refused with -32002.")
def missing_file(scene: Scene) -> None:
    scene.read(scene.folder.at("none.txt")).refused(MISSING)
    scene.read(scene.folder.at("no/such/folder.txt")).refused(MISSING)


@GROUP.should(PRACTICE, "That refusal names the file as `data.uri`.")
def missing_uri(scene: Scene) -> None:
    path = scene.folder.at("none.txt")
    (reply,) = _refusals(scene.read(path))
    data = reply.error.get("data")
    uri = data.get("uri") if isinstance(data, dict) else None
    expect(uri in {path, f"file://{path}"}, f"data is {shown(data)}")


@GROUP.should(PRACTICE, "Neither a folder nor what lies below a file is read or written as a file.")
def no_file(scene: Scene) -> None:
    folder, file = scene.folder.below("folder").path, scene.folder.put("a.txt", b"a\n")
    for path in (folder, f"{file}/below.txt"):
        if scene.announced(READ):
            scene.read(path).refused()
        if scene.announced(WRITE):
            scene.write(path, "text\n").refused()
    scene.holds("a.txt", b"a\n")


@GROUP.should(SCHEMA, "A folder in the place of a file is refused with -32602.")
def folder_code(scene: Scene) -> None:
    folder = scene.folder.below("folder").path
    for reply in _refusals(*_either(scene, folder)):
        reply.refused(INVALID)


@GROUP.should(PAGE, "A path that is not absolute is refused with -32602.")
def relative_path(scene: Scene) -> None:
    scene.folder.put("a.txt", b"a\n")
    name = f"{scene.folder.path.rpartition('/')[2]}/a.txt"
    for path in (name, f"./{name}", "", "~/a.txt"):
        scene.read(path).refused(INVALID)
        scene.write(path, "b\n").refused(INVALID)
    scene.holds("a.txt", b"a\n")


@GROUP.should(PRACTICE, "A path with NUL in it is refused with -32602.")
def nul_in_path(scene: Scene) -> None:
    path = scene.folder.put("a.txt", b"a\n")
    scene.read(f"{path}\0.png").refused(INVALID)
    scene.write(f"{path}\0.png", "b\n").refused(INVALID)
    scene.holds("a.txt", b"a\n")


@GROUP.should(
    PRACTICE, "A path that is too long for the system is refused, and the client goes on."
)
def long_path(scene: Scene) -> None:
    for path in (scene.folder.at("n" * 300), scene.folder.at("deep/" * 2_000 + "a.txt")):
        scene.read(path).refused()
    scene.alive()


@GROUP.must(SCHEMA, "A request without a parameter that is required is refused.")
def required(scene: Scene) -> None:
    for method, params in _faulty(scene):
        scene.ask(method, params).refused()
    scene.holds("a.txt", b"a\n")


@GROUP.should(JSON_RPC, "It is refused with -32602, as is one of the wrong kind.")
def required_code(scene: Scene) -> None:
    path = scene.folder.at("a.txt")
    wrong: list[tuple[str, Mapping[str, object]]] = [
        (READ, {"sessionId": scene.session, "path": 7}),
        (READ, {"sessionId": scene.session, "path": None}),
        (WRITE, {"sessionId": scene.session, "path": [path], "content": "b\n"}),
        (WRITE, {"sessionId": scene.session, "path": path, "content": {"text": "b"}}),
        (WRITE, {"sessionId": scene.session, "path": path, "content": None}),
    ]
    for reply in _refusals(*(scene.ask(method, params) for method, params in _faulty(scene))):
        reply.refused(INVALID)
    for method, params in wrong:
        if scene.announced(method):
            scene.ask(method, params).refused(INVALID)
    scene.holds("a.txt", b"a\n")


@GROUP.should(PRACTICE, "A refusal says why in its message, not only that.")
def reason(scene: Scene) -> None:
    paths = (scene.outside.put("secret.txt", b"secret\n"), scene.folder.at("none.txt"))
    for reply in _refusals(*map(scene.read, paths)):
        error = reply.error
        message = str(error.get("message", "")).strip().lower().rstrip(".")
        bare = message in {"", "error", "internal error", "invalid params", "invalid request"}
        expect(not bare, f"the message is {shown(error.get('message'))}")


@GROUP.should(
    PRACTICE, "No refusal tells where a link outside leads to, or any other path of the system."
)
def no_host_path(scene: Scene) -> None:
    hidden = scene.outside.below("told-to-nobody").put("secret.txt", b"secret\n")
    link = scene.folder.link("link.txt", hidden)
    loop = scene.folder.link("loop.txt", scene.folder.at("loop.txt"))
    replies = [scene.read(path) for path in (link, f"{link}/a.txt", loop, scene.folder.path)]
    if scene.announced(WRITE):
        replies += [scene.write(path, "a\n") for path in (link, f"{link}/a.txt", loop)]
    for reply in replies:
        text = json.dumps(reply.message.get("error"))
        for secret in ("told-to-nobody", "site-packages", "node_modules", "/usr/lib", ".py:"):
            expect(secret not in text, f"a refusal holds {secret!r}: {shown(text)}")


@GROUP.should(PRACTICE, "No refusal holds the text of an exception or a trace.")
def no_exception(scene: Scene) -> None:
    folder = scene.folder.below("folder").path
    loop = scene.folder.link("loop.txt", scene.folder.at("loop.txt"))
    paths = (folder, loop, scene.folder.at("none.txt"), scene.folder.at("n" * 300), "a.txt")
    replies = [scene.read(path) for path in paths]
    if scene.announced(WRITE):
        replies += [scene.write(path, "a\n") for path in (folder, loop)]
    for reply in [*replies, *scene.peer.errors]:
        found = _EXCEPTION.search(json.dumps(reply.message.get("error"), ensure_ascii=False))
        expect(found is None, f"a refusal holds {found and found[0]!r}: {reply.told}")


@GROUP.should(PRACTICE, "A refusal does not send the agent's own text back.")
def no_echo(scene: Scene) -> None:
    text = "this-must-not-come-back " * 20
    several = ({"path": 7}, {"sessionId": 7}, {"sessionId": "nobody-opened-this"})
    replies = [scene.write(scene.folder.at("a.txt"), text, more) for more in several]
    for reply in _refusals(*replies):
        told = json.dumps(reply.error)
        expect("this-must-not-come-back" not in told, f"a refusal of {len(told):,} characters did")


@GROUP.must(JSON_RPC, "An error has a whole number as `code` and a text as `message`.")
def form(scene: Scene) -> None:
    if scene.announced(READ):
        scene.read(scene.folder.below("folder").path).refused()
    for reply in scene.peer.errors:
        error = reply.error
        expect(type(error.get("code")) is int, f"code is {shown(error.get('code'))}")
        expect(isinstance(error.get("message"), str), f"message is {shown(error.get('message'))}")


def _refusals(*replies: Reply) -> list[Reply]:
    """Those that are refusals; that the others should be is for other checks to find.

    Raises:
        Skipped: None of them is.
    """
    found = [reply for reply in replies if reply.is_error]
    if not found:
        raise Skipped("nothing was refused")
    return found


def _either(scene: Scene, path: str) -> list[Reply]:
    """What is answered to a read and to a write, as far as they were announced."""
    replies = [scene.read(path)] if scene.announced(READ) else []
    return [*replies, scene.write(path, "text\n")] if scene.announced(WRITE) else replies


def _faulty(scene: Scene) -> list[tuple[str, Mapping[str, object]]]:
    """Requests that lack something, for methods that were announced."""
    path = scene.folder.put("a.txt", b"a\n")
    session = {"sessionId": scene.session}
    requests: list[tuple[str, Mapping[str, object]]] = [
        (READ, session),
        (WRITE, {**session, "path": path}),
        (WRITE, {**session, "content": "b\n"}),
        (WRITE, {"path": path, "content": "b\n"}),
        (READ, {}),
    ]
    return [(method, params) for method, params in requests if scene.announced(method)]
