"""A name that leads to nothing is answered with names that may have been meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from filepact.errors import NotFoundError
from filepact.text.query import Query
from filepact.workspace import find

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from filepact.domain.operation import Session
    from filepact.workspace.workspace import Workspace

FILES = [
    "a.txt",
    "notes.md",
    "src/main.py",
    "src/util/helpers.py",
    "docs/Guide.md",
    "tests/util/x.txt",
    "deep/one/two/three/only.ts",
]
WANTED = {
    "A.TXT": "a.txt",
    "atxt": "a.txt",
    "a/x.txt": "tests/util/x.txt",
    "note.md": "notes.md",
    "ntoes.md": "notes.md",
    "Src/main.py": "src/main.py",
    "src/mian.py": "src/main.py",
    "src\\main.py": "src/main.py",
    "src/main.py:12": "src/main.py",
    "src/main.py:12:4": "src/main.py",
    "src/utils/helper.py": "src/util/helpers.py",
    "doc/guide.md": "docs/Guide.md",
    "main.py": "src/main.py",
    "only.ts": "deep/one/two/three/only.ts",
    "src/notes.md": "notes.md",
    "test/": "tests/",
}


@pytest.fixture
def ask(workspace: Workspace, session: Session, root: Path) -> Callable[[str], tuple[str, ...]]:
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")

    def asked(name: str) -> tuple[str, ...]:
        with pytest.raises(NotFoundError) as caught:
            workspace.reader(session).document(name)
        assert all(one in caught.value.hint for one in caught.value.details["near"])
        return caught.value.details["near"]

    return asked


@pytest.mark.parametrize("name", WANTED)
def test_names_that_are_nearly_the_same_are_told(
    ask: Callable[[str], tuple[str, ...]], name: str
) -> None:
    assert ask(name)[0] == WANTED[name]


@pytest.mark.parametrize("name", ["quite/another.rs", "b", "z.py", "x"])
def test_nothing_is_guessed_without_reason(
    ask: Callable[[str], tuple[str, ...]], name: str
) -> None:
    assert ask(name) == ()


def test_editing_and_folders_are_advised_alike(
    ask: Callable[[str], tuple[str, ...]], workspace: Workspace, session: Session
) -> None:
    reader = workspace.reader(session)
    with workspace.draft(session, "edit_file") as draft, pytest.raises(NotFoundError) as caught:
        draft.open_existing("A.txt")
    assert caught.value.details["near"] == ("a.txt",)
    with pytest.raises(NotFoundError) as caught:
        reader.find("test/util", "*", limit=1)
    assert caught.value.details["near"][0] == "tests/util/"
    with pytest.raises(NotFoundError) as caught:
        reader.grep(
            "source/main.py",
            Query.compile("x"),
            glob="**/*",
            limit=1,
            offset=0,
            context=0,
            mode="content",
        )
    assert caught.value.details["near"] == ("src/main.py",)


def test_protected_names_are_never_told(ask: Callable[[str], tuple[str, ...]], root: Path) -> None:
    (root / ".ssh").mkdir()
    for name in (".env.local", "id_rsa", ".ssh/id_rsa", "env.local"):
        (root / name).write_text("SECRET\n")
    for name in ("nv.locl", "id_rs", "idrsb", "src/id_rs", "ssh/id_rs"):
        assert not any("id_rsa" in one or ".env" in one or ".ssh" in one for one in ask(name))


def test_a_large_tree_is_not_walked_to_its_end(
    ask: Callable[[str], tuple[str, ...]], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find, "_MOST_NAMES", 30)
    for number in range(60):
        (root / "big").mkdir(exist_ok=True)
        (root / "big" / f"name{number}").write_text("")
    (root / "zz").mkdir()
    (root / "zz" / "far.txt").write_text("")
    assert ask("far.txt") == ()
    assert ask("A.txt") == ("a.txt",)


def test_links_lead_nowhere_when_names_are_looked_for(
    ask: Callable[[str], tuple[str, ...]], root: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "hidden_name.txt").write_text("")
    (root / "out").symlink_to(tmp_path / "outside")
    assert ask("hidden_name.txt") == ()
    assert ask("ut/hidden_name.txt") == ()


def test_in_very_many_folders_nothing_is_looked_for_any_more(
    workspace: Workspace, session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        (root / f"util{number}" / "deep").mkdir(parents=True)
    (root / "util4" / "deep" / "wanted.py").touch()
    asked = "utils/deeb/wantet.py"
    monkeypatch.setattr(find, "_MOST_FOLDERS", 2)
    with pytest.raises(NotFoundError) as caught:
        workspace.reader(session).document(asked)
    assert "util4/deep/wanted.py" not in caught.value.report()
