"""What servers find after a change, and would find after one, with real servers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from filepact.errors import PathBlockedError
from tests.servers.scene import AGENT, PYTHON, WRONG_LIB, Scene, codes

if TYPE_CHECKING:
    from collections.abc import Iterator


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
    assert fixed.findings is not None
    assert (fixed.findings.total, fixed.findings.fixed) == (0, ())  # that was not this change
    ty.put("lib.py", "def double(n: bytes) -> bytes:\n    return n\n")
    worse = ty.write({"use.py": "from lib import double\n\nanswer: str = double('b')\n"})
    assert ("use.py", "invalid-assignment") in codes(worse)


@pytest.mark.parametrize("server", ["ty"])
def test_what_others_ask_after_a_change_is_not_what_was_there_before(
    server: str, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, [server])

    def ask() -> None:
        scene.semantics.look(["use.py"], session=AGENT)

    try:
        scene.write({"other.py": "import lib\n"})
        ask()
        right = scene.get("lib.py")
        worse = scene.write({"lib.py": WRONG_LIB}, meanwhile=ask)
        assert {name for name, _ in codes(worse)} == {"use.py"}
        assert codes(worse, "fixed") == []
        better = scene.write({"lib.py": right}, meanwhile=ask)
        assert codes(better, "fixed") == codes(worse)
        gone = scene.write({"lib.py": None}, remembered=True, meanwhile=ask)
        assert {name for name, _ in codes(gone)} == {"use.py", "other.py"}
        back = scene.write({"lib.py": right}, remembered=True, meanwhile=ask)
        assert codes(back, "fixed") == codes(gone)
    finally:
        scene.close()


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


@pytest.mark.parametrize("server", ["ty", "basedpyright"])
def test_a_first_change_is_compared_with_what_was_there(server: str, tmp_path: Path) -> None:
    files = {**PYTHON, "bad.py": "from lib import double\n\nx: str = double(1)\n"}
    scene = Scene(tmp_path, [server], files)
    try:
        scene.write({"other.py": "import lib\n"})
        scene.workspace.reader(AGENT).document("lib.py")
        gone = scene.write({"lib.py": None}, remembered=True)
        assert gone.findings is not None
        assert gone.findings.compared
        assert {name for name, _ in codes(gone)} == {"other.py", "use.py", "bad.py"}
        assert [name for name, _ in codes(gone, "fixed")] == ["bad.py"]
        back = scene.write({"lib.py": files["lib.py"]}, remembered=True)
        assert {name for name, _ in codes(back, "fixed")} == {"other.py", "use.py", "bad.py"}
    finally:
        scene.close()


def test_a_new_file_is_seen_by_its_users_in_a_preview(tmp_path: Path) -> None:
    project = {
        "tsconfig.json": '{"compilerOptions": {"strict": true, "module": "nodenext"}}',
        "package.json": '{"name": "p", "type": "module"}',
        "use.ts": 'import { word } from "./extra.js";\n\nexport const n: number = word;\n',
    }
    scene = Scene(tmp_path, ["typescript"], project)
    try:
        text = "export const word: string = 'one';\n"
        seen = scene.foresee({"extra.ts": text})
        assert seen.findings is not None
        assert seen.findings.complete
        assert codes(seen, "fixed") == [("use.ts", "2307")]
        assert codes(seen) == [("use.ts", "2322")]
        done = scene.write({"extra.ts": text})
        assert (done.kind, done.updated) == ("added", True)
        assert codes(done) == codes(seen)
        assert codes(done, "fixed") == codes(seen, "fixed")
    finally:
        scene.close()


def test_nothing_is_told_of_files_that_an_agent_may_not_read(tmp_path: Path) -> None:
    files = {**PYTHON, "hidden/use.py": "from lib import double\n\nsecret: int = double(7)\n"}
    rule = '[[deny]]\nname = "hidden"\npaths = ["hidden/"]\nactions = ["read"]\nwhy = "it is"\n'
    scene = Scene(tmp_path, ["ty"], files, rules=rule)
    try:
        for update in (scene.foresee({"lib.py": WRONG_LIB}), scene.write({"lib.py": WRONG_LIB})):
            assert {name for name, _ in codes(update)} == {"use.py"}
            assert update.findings is not None
            assert {one.path for one in update.findings.new} == {scene.path("use.py")}
            assert not update.findings.complete
        surveyed = scene.semantics.survey(session=AGENT)
        assert scene.path("hidden/use.py") not in {one.path for one in surveyed.reports}
        with pytest.raises(PathBlockedError):
            scene.semantics.look(["hidden/use.py"], session=AGENT)
    finally:
        scene.close()


TWO_ROOTS = {
    "ty": {
        "app/pyproject.toml": '[tool.ty.environment]\nroot = [".", "../lib"]\n',
        "app/use.py": "from lib import double\n\nanswer: int = double(21)\n",
        "lib/lib.py": PYTHON["lib.py"],
    },
    "basedpyright": {
        "app/pyrightconfig.json": '{"extraPaths": ["../lib"]}\n',
        "app/use.py": "from lib import double\n\nanswer: int = double(21)\n",
        "lib/lib.py": PYTHON["lib.py"],
    },
    "typescript": {
        "app/tsconfig.json": '{"compilerOptions": {"strict": true, "module": "esnext"}}\n',
        "app/use.ts": "import { double } from '../lib/lib';\nexport const answer: number = double(21);\n",
        "lib/lib.ts": "export const double = (n: number): number => n * 2;\n",
    },
    "clangd": {
        "app/use.c": '#include "../lib/lib.h"\nint answer(void) { return twice(21); }\n',
        "lib/lib.h": "int twice(int n);\n",
    },
}
WRONG = {
    ".py": WRONG_LIB,
    ".ts": "export const double = (n: string): string => n;\n",
    ".h": "int twice(int n, int more);\n",
}


@pytest.mark.parametrize("server", TWO_ROOTS)
def test_what_is_read_in_another_root_is_not_of_the_past(server: str, tmp_path: Path) -> None:
    files = TWO_ROOTS[server]
    scene = Scene(tmp_path, [server], files, roots=("app", "lib"))
    (use,) = (name for name in files if "/use." in name)
    (lib,) = (name for name in files if "/lib." in name)

    def wrong() -> int:
        (report,) = scene.semantics.look([scene.path(use)], session=AGENT)
        assert report.fresh, report
        return sum(one.severity == "error" for one in report.diagnostics)

    try:
        assert wrong() == 0
        update = scene.write({scene.path(lib): WRONG[Path(lib).suffix]})
        assert update.findings is None or not update.findings.complete
        assert wrong()
        scene.put(lib, files[lib])  # by another program
        assert wrong() == 0
        (scene.root / lib).unlink()
        assert wrong()
    finally:
        scene.close()
