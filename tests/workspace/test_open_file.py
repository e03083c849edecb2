"""A name that is its file's true one is resolved in one step, with the answers of the long way."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox
from filepact.errors import PathBlockedError
from filepact.fs.read_only_root import RootReader
from filepact.tools.answers import CallContext
from filepact.workspace.buffers import Typed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.fs.read_only_root import OpenFile
    from filepact.workspace.workspace import Workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="one step needs openat2")


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were resolved in one step."""
    paths: list[str] = []
    real = RootReader.hold_in_one_step

    def hold(self: RootReader, path: str) -> OpenFile | None:
        found = real(self, path)
        if found is not None:
            paths.append(path)
        return found

    monkeypatch.setattr(RootReader, "hold_in_one_step", hold)
    return paths


def reading(workspace: Workspace, session: Session) -> Callable[[str], str]:
    """Call the tool that reads files."""
    tools = open_toolbox(workspace)
    return lambda path: tools.call("read_file", {"path": path}, CallContext(session)).text


def torture(root: Path, outside: Path) -> list[str]:
    """A tree of what may stand under a name, and names for it in every form."""
    (root / "src/deep").mkdir(parents=True)
    (root / "src/a.txt").write_text("a\n")
    (root / "src/deep/b.txt").write_text("\tb\n" * 400)
    (root / "src/ü \U0001f469.txt").write_text("odd\n")
    (root / "empty").write_bytes(b"")
    (root / "binary").write_bytes(b"\x7fELF\0\0\x01")
    (root / "latin.txt").write_bytes("grün\r\n".encode("latin-1"))
    (root / "key.txt").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n" * 9)
    (root / ".env").write_text("A=1\n")
    (root / "twice.txt").write_text("twice\n")
    os.link(root / "twice.txt", root / "src/twice.txt")
    outside.mkdir()
    (outside / "far.txt").write_text("far away\n")
    for name, target in {
        "to-file": "src/a.txt",
        "to-folder": "src",
        "to-nothing": "not/there",
        "to-itself": "to-itself",
        "out": str(outside),
        "out-file": str(outside / "far.txt"),
        "inside": str(root / "src"),
        "src/up": "..",
        "src/.env-link": "../.env",
    }.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as door, suppress(OSError):
        door.bind(os.path.relpath(root / "door"))
    names = [os.path.relpath(top, root) for top, _, _ in os.walk(root)]
    names += [os.path.relpath(one, root) for one in root.rglob("*")]
    within = [f"{name}/{end}" for name in ("to-folder", "out", "inside", "src/up", "src/a.txt")
              for end in ("a.txt", "deep/b.txt", "far.txt", "empty", "")]  # fmt: skip
    forms = ["src//a.txt", "./src/a.txt", "src/./a.txt", "src/../src/a.txt", "src/a.txt/", "src/a.txt/.",
             "../root/src/a.txt", "", ".", "..", "/", "not/there.txt", "SRC/A.TXT", "src/a.txt\0",
             "x" * 300, "y/" * 2_100, "file:///etc/passwd", "/etc/passwd"]  # fmt: skip
    every = [*names, *within, *forms]
    return [*every, *(f"{root}/{name}" for name in every)]


def test_the_short_way_and_the_long_one_give_the_same_answers(
    open_here: Callable[..., Workspace], session: Session, root: Path, taken: list[str]
) -> None:
    names = torture(root, root.parent / "elsewhere")
    short = reading(open_here(), session)
    long = reading(open_here(resolver="walk"), session)
    for _ in range(3):
        for name in names:
            assert short(name) == long(name), name
    assert {"src/a.txt", "src/deep/b.txt", "empty", "twice.txt", "src/twice.txt"} <= set(taken)
    assert not {".env", "to-file", "out-file", "to-folder/a.txt", "pipe", "door"} & set(taken)


def test_what_takes_the_place_of_a_file_goes_the_long_way(
    workspace: Workspace, session: Session, root: Path, taken: list[str]
) -> None:
    outside = root.parent / "elsewhere"
    outside.mkdir()
    (outside / "a.txt").write_text("far away\n")
    file, folder = root / "src/a.txt", root / "src"
    folder.mkdir()
    file.write_text("here\n")
    read = reading(workspace, session)
    said = [read("src/a.txt"), read("src/a.txt")]
    assert said[0] == said[1]
    # The first one of a root tells whether letter case tells names apart there.
    assert taken == ["src/a.txt"]
    folder.rename(root / "moved")
    folder.symlink_to("moved")
    assert read("src/a.txt") == read("moved/a.txt")
    folder.unlink()
    folder.symlink_to(outside)
    assert read("src/a.txt").startswith("PATH_BLOCKED")
    folder.unlink()
    folder.mkdir()
    assert read("src/a.txt").startswith("NOT_FOUND")
    os.mkfifo(file)
    assert read("src/a.txt").startswith("PATH_BLOCKED")
    file.unlink()
    file.symlink_to(outside / "a.txt")
    assert read("src/a.txt").startswith("PATH_BLOCKED")
    file.unlink()
    file.symlink_to("../.env")
    (root / ".env").write_text("A=1\n")
    assert read("src/a.txt").startswith("PATH_BLOCKED")
    file.unlink()
    file.mkdir()
    assert read("src/a.txt").startswith("NOT_A_FILE")
    file.rmdir()
    file.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n")
    assert read("src/a.txt").startswith("PATH_BLOCKED")
    file.write_text("again\n")
    assert "again" in read("src/a.txt")
    root.rename(root.parent / "gone")
    root.mkdir()
    folder.mkdir()
    file.write_text("another root\n")
    assert read("src/a.txt").startswith("PATH_BLOCKED")


def test_nothing_from_outside_is_read_while_folders_and_files_are_exchanged(
    workspace: Workspace, session: Session, root: Path, taken: list[str]
) -> None:
    outside = root.parent / "elsewhere"
    for one in (outside, root / "src"):
        one.mkdir()
        (one / "a.txt").write_text("far away\n" if one == outside else "here\n")
    (root / "link").symlink_to(outside)
    (root / "file-link").symlink_to(outside / "a.txt")
    over = Event()

    def exchange() -> None:
        while not over.is_set():
            for held, one, other in (
                ("kept", "src", "link"),
                ("src/kept", "src/a.txt", "file-link"),
            ):
                (root / one).rename(root / held)
                (root / other).rename(root / one)
                (root / one).rename(root / other)
                (root / held).rename(root / one)

    read = reading(workspace, session)
    read("src/a.txt")
    thread = Thread(target=exchange)
    thread.start()
    try:
        said = {read("src/a.txt") for _ in range(400)}
    finally:
        over.set()
        thread.join()
    assert taken
    assert not [one for one in said if "far" in one]
    assert {one.split(":")[0] for one in said if "here" not in one} <= {
        "PATH_BLOCKED", "NOT_FOUND", "STALE_FILE", "READ_ERROR",
    }  # fmt: skip


def test_what_a_client_does_not_share_is_forgotten(
    workspace: Workspace, session: Session, root: Path, taken: list[str]
) -> None:
    for name in ("src", "docs"):
        (root / name).mkdir()
        (root / name / "a.txt").write_text(f"{name}\n")
    read = reading(workspace, session)
    for name in ("src/a.txt", f"{root}/src/a.txt", f"{root}/docs/a.txt"):
        assert read(name) == read(name)
    assert taken == ["src/a.txt"] * 3 + ["docs/a.txt"] * 2
    workspace.guard.narrow([str(root / "docs")])
    assert read("src/a.txt").startswith("NOT_FOUND"), "names start in that folder now"
    assert read(f"{root}/src/a.txt").startswith("PATH_BLOCKED")
    assert "docs" in read(f"{root}/docs/a.txt")
    assert "docs" in read("a.txt")
    (root / "docs/src").mkdir()
    (root / "docs/src/a.txt").write_text("docs/src\n")
    assert "docs/src" in read("src/a.txt")


def test_what_an_editor_shows_stands_before_the_file_by_the_short_way_as_well(
    workspace: Workspace, session: Session, root: Path, taken: list[str]
) -> None:
    (root / "a.txt").write_text("saved\n")
    read = reading(workspace, session)
    assert "saved" in read("a.txt") == read("a.txt")
    stored = workspace.editors.stored("a.txt").text
    workspace.editors.open("a.txt", stored, client="zed", version=1)
    workspace.editors.buffers.change(
        workspace.editors.locate("a.txt").path, [Typed("typed\n")], client="zed", version=2
    )
    assert "typed" in read("a.txt")
    assert len(taken) == 2
    workspace.editors.buffers.close(workspace.editors.locate("a.txt").path, client="zed")
    assert "saved" in read("a.txt")


def test_a_rule_about_one_agent_is_no_rule_about_another(
    workspace: Workspace, session: Session, other: Session, root: Path
) -> None:
    (root / "a.txt").write_text("a\n")
    for agent in (session.agent, other.agent, session.agent):
        with workspace.guard.open_file("a.txt", agent=agent) as location:
            assert location.lookup.agent == agent
            assert location.path.path == "a.txt"


def test_what_is_only_read_is_never_locked(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_text("a\n")
    for _ in range(2):
        with workspace.guard.open_file("a.txt") as location:
            key = location.lock_key
    assert not key
    with pytest.raises(PathBlockedError):
        workspace.guard.open_file(".env/../.ssh/id_rsa")
