"""What servers find after a change, and would find after one, with real servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.semantic.scene import WRONG_LIB, Scene, codes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def ty(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path, ["ty", "ruff"])
    yield scene
    scene.close()


def test_a_change_is_followed_into_the_files_that_depend_on_it(ty: Scene) -> None:
    update = ty.write({"lib.py": WRONG_LIB})
    assert update.kind == "updated"
    assert update.updated
    assert {one.server for one in update.servers} == {"ty", "ruff"}
    assert codes(update) == [
        ("use.py", "invalid-argument-type"),
        ("use.py", "invalid-assignment"),
    ]
    assert update.findings is not None
    assert update.findings.scope == "dependents"
    assert update.findings.fresh
    assert update.findings.complete
    assert update.findings.compared


def test_a_preview_tells_the_difference_and_leaves_nothing(ty: Scene) -> None:
    before = ty.get("lib.py")
    update = ty.foresee({"lib.py": WRONG_LIB})
    assert update.kind == "preview"
    assert not update.updated
    assert len(codes(update)) == 2
    assert ty.get("lib.py") == before
    again = ty.write({"lib.py": before + "\n"})
    assert codes(again, "new") == codes(again, "fixed") == []
    assert again.findings is not None
    assert [one for one in again.findings.new if one.severity == "error"] == []


def test_what_another_program_wrote_is_noticed(ty: Scene) -> None:
    assert codes(ty.write({"lib.py": WRONG_LIB})) != []
    ty.put("use.py", "from lib import double\n\nanswer: str = double('a')\n")
    fixed = ty.write({"lib.py": WRONG_LIB + "# more\n"})
    assert fixed.updated
    assert len(codes(fixed, "fixed")) == 2
    ty.put("lib.py", "def double(n: bytes) -> bytes:\n    return n\n")
    worse = ty.write({"use.py": "from lib import double\n\nanswer: str = double('b')\n"})
    assert ("use.py", "invalid-assignment") in codes(worse)


@pytest.mark.parametrize("server", ["ty"])
def test_files_come_and_go(server: str, tmp_path: Path) -> None:
    scene = Scene(tmp_path, [server])
    try:
        made = scene.write({"new.py": "x: int = ''\n"})
        assert (made.kind, made.updated) == ("added", True)
        assert codes(made) == [("new.py", "invalid-assignment")]
        moved = scene.move("new.py", "newer.py")
        assert (moved.kind, moved.updated) == ("renamed", True)
        assert codes(moved) == []
        gone = scene.write({"newer.py": None})
        assert gone.kind == "removed"
        assert codes(gone, "fixed") == [("newer.py", "invalid-assignment")]
        scene.write({"use.py": scene.get("use.py") + "\n"})
        lost = scene.write({"lib.py": None})
        assert [name for name, _ in codes(lost)] == ["use.py"]
    finally:
        scene.close()
