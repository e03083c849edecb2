"""What lies outside of a session's folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.faces.acp.check.group import ADVICE, PRACTICE, Group
from filepact.faces.acp.check.outcome import expect, shown

if TYPE_CHECKING:
    from filepact.faces.acp.check.folder import Folder
    from filepact.faces.acp.check.scene import Scene

__all__ = ["GROUP"]

GROUP = Group("boundaries", "What lies outside of the session's folders")

_SECRET = b"secret\n"


@GROUP.should(ADVICE, "A file outside is not read.")
def read_outside(scene: Scene) -> None:
    _not_read(scene, scene.outside.put("secret.txt", _SECRET))


@GROUP.should(ADVICE, "A file outside is not written, and none is made there.")
def write_outside(scene: Scene) -> None:
    _not_written(scene, scene.outside.put("secret.txt", _SECRET))
    scene.write(scene.outside.at("new.txt"), "new\n").refused()
    scene.write(scene.outside.at("sub/new.txt"), "new\n").refused()
    expect(scene.outside.names() == ["secret.txt"], f"there are {scene.outside.names()}")


@GROUP.should(ADVICE, "`..` does not lead outside.")
def dot_dot(scene: Scene) -> None:
    scene.outside.put("secret.txt", _SECRET)
    below = scene.outside.path.removeprefix(f"{scene.scratch.path}/")
    path = f"{scene.scratch.work.path}/../{below}/secret.txt"
    _not_read(scene, path)
    _not_written(scene, path)


@GROUP.should(ADVICE, "A folder whose name only begins like the session's is outside.")
def similar_name(scene: Scene) -> None:
    path = scene.scratch.evil.put("secret.txt", _SECRET)
    _not_read(scene, path)
    _not_written(scene, path, scene.scratch.evil)


@GROUP.should(ADVICE, "A link to a file outside is not read through.")
def link_to_file(scene: Scene) -> None:
    target = scene.outside.put("secret.txt", _SECRET)
    _not_read(scene, scene.folder.link("link.txt", target))


@GROUP.should(ADVICE, "A link to a file outside is not written through.")
def write_through_link(scene: Scene) -> None:
    target = scene.outside.put("secret.txt", _SECRET)
    scene.write(scene.folder.link("link.txt", target), "changed\n")
    scene.holds("secret.txt", _SECRET, scene.outside)


@GROUP.should(ADVICE, "A link to a folder outside is not followed.")
def link_to_folder(scene: Scene) -> None:
    scene.outside.put("secret.txt", _SECRET)
    link = scene.folder.link("link", scene.outside.path)
    _not_read(scene, f"{link}/secret.txt")
    _not_written(scene, f"{link}/secret.txt")
    scene.write(f"{link}/new.txt", "new\n").refused()
    scene.write(f"{link}/sub/new.txt", "new\n").refused()
    expect(scene.outside.names() == ["secret.txt"], f"there are {scene.outside.names()}")


@GROUP.should(ADVICE, "A link to a file outside that does not exist makes none there.")
def dangling_link(scene: Scene) -> None:
    link = scene.folder.link("link.txt", scene.outside.at("new.txt"))
    scene.write(link, "new\n")
    expect(scene.outside.names() == [], f"there are {scene.outside.names()}")


@GROUP.should(ADVICE, "A link and `..` behind it do not lead outside together.")
def link_and_dot_dot(scene: Scene) -> None:
    scene.outside.put("secret.txt", _SECRET)
    link = scene.folder.link("link", scene.outside.below("sub").path)
    path = f"{link}/../secret.txt"
    reply = scene.read(path)
    expect(reply.is_error or reply.content != _SECRET.decode(), "the file outside was read")
    scene.write(path, "changed\n")
    scene.holds("secret.txt", _SECRET, scene.outside)


@GROUP.should(PRACTICE, "A link that stays inside is followed.")
def link_inside(scene: Scene) -> None:
    target = scene.folder.put("target.txt", b"inside\n")
    link = scene.folder.link("link.txt", target)
    scene.same(scene.text(link), "inside\n")
    scene.written(link, "changed\n")
    scene.holds("target.txt", b"changed\n")


def _not_read(scene: Scene, path: str) -> None:
    reply = scene.read(path)
    if not reply.is_error:
        expect(_SECRET.decode() not in reply.content, "the file outside was read")
        expect(not reply.content, f"it answered {shown(reply.content)}")
        reply.refused()


def _not_written(scene: Scene, path: str, folder: Folder | None = None) -> None:
    reply = scene.write(path, "changed\n")
    scene.holds("secret.txt", _SECRET, folder or scene.outside)
    reply.refused()
