"""Names in other letters: one file has one name where letter case does not tell names apart, and gets new letters like any name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.app import open_toolbox
from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError
from filepact.tools.registry import CallContext
from tests.folding import fold_names
from tests.workspace.acting import edit, read, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.workspace.workspace import Workspace

AGENT = Session("a", Actor("agent", "a"))
PERSON = Session("p", Actor("person", "p"))


@pytest.fixture(params=["told apart", "folded"])
def workspace(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    root: Path,
    open_here: Callable[..., Workspace],
) -> Workspace:
    (root / "readme.md").write_text("read me\n")
    (root / "Src").mkdir()
    (root / "Src" / "a.py").write_text("a\n")
    if request.param == "folded":
        fold_names(monkeypatch)
    return open_here()


def names(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def call(workspace: Workspace, tool: str, **given: str) -> str:
    outcome = open_toolbox(workspace, own=True).call(tool, given, CallContext(AGENT))
    assert not outcome.failed, outcome.text
    return outcome.text


def by_patch(workspace: Workspace, path: str, to: str) -> None:
    patch = (
        f"diff --git a/{path} b/{to}\nsimilarity index 100%\nrename from {path}\nrename to {to}\n"
    )
    call(workspace, "patch_apply", patch=patch)


def by_tool(workspace: Workspace, path: str, to: str) -> None:
    call(workspace, "manage_files", action="move", path=path, to=to)


@pytest.mark.parametrize(
    ("act", "path", "to"),
    [
        (by_tool, "readme.md", "README.md"),
        (by_patch, "readme.md", "README.md"),
        (by_tool, "Src", "src"),
        (by_tool, "Src/a.py", "Src/A.py"),
    ],
)
def test_a_name_gets_other_letters_and_its_own_again(
    workspace: Workspace,
    root: Path,
    act: Callable[[Workspace, str, str], None],
    path: str,
    to: str,
) -> None:
    was = names(root)
    act(workspace, path, to)
    now = {to + one[len(path) :] if f"{one}/".startswith(f"{path}/") else one for one in was}
    for go, state in (
        (None, now),
        (workspace.undo, was),
        (workspace.redo, now),
        (workspace.undo, was),
    ):
        if go is not None:
            go(PERSON)
        assert names(root) == state
    if path == "Src":
        return
    workspace.external.resnapshot()
    (root / path).rename(root / to)
    assert names(root) == now
    assert workspace.external.detect(AGENT, tool="bash").operation is not None
    workspace.undo(PERSON)
    assert names(root) == was
    assert workspace.external.detect(AGENT, tool="bash").operation is None


def test_a_file_has_one_name_whatever_letters_are_sent(
    root: Path, monkeypatch: pytest.MonkeyPatch, open_here: Callable[..., Workspace]
) -> None:
    (root / "readme.md").write_text("read me\n")
    (root / ".env").write_text("SECRET=1\n")
    fold_names(monkeypatch)
    workspace = open_here()
    assert read(workspace, AGENT, "README.MD") == "read me\n"
    edit(workspace, AGENT, "README.md", "me", "it")
    edit(workspace, AGENT, "Readme.md", "it", "all")
    assert {str(path) for one in workspace.log() for path in one.changes.paths} == {"readme.md"}
    with pytest.raises(FilepactError) as caught:
        read(workspace, AGENT, ".ENV")
    assert caught.value.code == "PATH_BLOCKED"
    write(workspace, AGENT, "new.txt", "new\n")
    with pytest.raises(FilepactError):
        write(workspace, AGENT, "NEW.txt/below", "no\n")
    assert names(root) == {"readme.md", ".env", "new.txt"}


def test_what_is_made_in_a_folder_has_the_name_that_the_folder_has(
    root: Path, monkeypatch: pytest.MonkeyPatch, open_here: Callable[..., Workspace]
) -> None:
    (root / "Src").mkdir()
    fold_names(monkeypatch)
    workspace = open_here()
    write(workspace, AGENT, "SRC/new.py", "one\n")
    edit(workspace, AGENT, "src/NEW.py", "one", "two")
    assert {str(path) for one in workspace.log() for path in one.changes.paths} == {"Src/new.py"}
    assert names(root) == {"Src", "Src/new.py"}
