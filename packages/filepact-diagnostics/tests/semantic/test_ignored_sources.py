"""Sources that ignore rules leave out of searches, and servers read all the same: generated code."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.servers.scene import AGENT, Scene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = {
    ".gitignore": "gen/\n*_pb2.py\nmany/\n",
    "gen/__init__.py": "",
    "gen/api.py": "A = 1\n",
    "x_pb2.py": "M = 1\n",
    "a.py": "from gen.api import A, B\nfrom x_pb2 import M, N\n\nprint(A, B, M, N)\n",
}
SCRIPTS = {
    ".gitignore": "node_modules/\n",
    "tsconfig.json": '{"compilerOptions": {"strict": true, "module": "esnext", '
    '"moduleResolution": "bundler"}, "include": ["*.ts"]}',
    "node_modules/.prisma/client/index.d.ts": "export declare const A: number;\n",
    "a.ts": "import { A, B } from '.prisma/client';\nconsole.log(A, B);\n",
}


@pytest.fixture
def ty(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path, ["ty"], FILES)
    yield scene
    scene.close()


def wrong(scene: Scene, name: str = "a.py") -> list[int]:
    """The lines with errors, as a list that is told as fresh and complete."""
    (report,) = scene.semantics.look([name], session=AGENT)
    assert (report.fresh, report.complete) == (True, True), report
    return [one.start.line + 1 for one in report.diagnostics if one.severity == "error"]


def test_ignored_sources_that_another_program_makes_anew_are_seen(ty: Scene) -> None:
    assert wrong(ty) == [1, 2]
    ty.put("gen/api.py", "A = 1\nB = 2\n")
    ty.put("x_pb2.py", "M = 1\nN = 2\n")
    assert wrong(ty) == []
    ty.put("gen/api.py", "A = 1\n")
    assert wrong(ty) == [1]
    (ty.root / "gen/api.py").unlink()
    assert wrong(ty) == [1]
    ty.put("gen/api.py", "A = 1\nB = 2\n")
    assert wrong(ty) == []


def test_ignored_sources_and_folders_that_come_and_go_are_seen(ty: Scene) -> None:
    ty.put("a.py", "from gen.more import C\nfrom gen.deep.er import D\nfrom y_pb2 import E\n")
    assert wrong(ty) == [1, 2, 3]
    ty.put("gen/more.py", "C = 1\n")
    assert wrong(ty) == [2, 3]
    ty.put("gen/deep/er/__init__.py", "D = 1\n")
    assert wrong(ty) == [3]
    ty.put("y_pb2.py", "E = 1\n")
    assert wrong(ty) == []
    for one in ("gen/more.py", "gen/deep/er/__init__.py", "gen/__init__.py", "gen/api.py"):
        (ty.root / one).unlink()
    (ty.root / "gen/deep/er").rmdir()
    assert wrong(ty) == [1, 2]
    ty.put("gen/deep/er.py", "D = 1\n")  # into a folder in which nothing was
    assert wrong(ty) == [1]
    shutil.rmtree(ty.root / "gen")
    assert wrong(ty) == [1, 2]
    ty.put("gen/more.py", "C = 1\n")
    ty.put("gen/deep/er.py", "D = 1\n")
    assert wrong(ty) == []


def test_ignored_sources_are_no_part_of_what_is_looked_through(ty: Scene) -> None:
    ty.put("gen/api.py", "A: int = ''\n")
    found = ty.semantics.survey(session=AGENT)
    assert {one.path for one in found.reports} == {ty.path("a.py")}


def test_ignored_sources_are_told_of_when_everything_is(ty: Scene) -> None:
    assert wrong(ty) == [1, 2]
    told = ty.semantics.sync(force=True)
    assert {ty.path(one) for one in ("a.py", "gen/api.py", "x_pb2.py")} <= set(told.updated)


def test_with_too_many_ignored_files_nothing_is_called_complete(ty: Scene) -> None:
    (ty.root / "many").mkdir()
    for number in range(5_001):
        ty.put(f"many/{number}.csv", "")
    (report,) = ty.semantics.look(["a.py"], session=AGENT)
    assert (report.fresh, report.complete) == (True, False)
    assert any("many/" in one for one in report.notes)
    assert ty.semantics.sync(force=True).reloaded
    shutil.rmtree(ty.root / "many")
    assert wrong(ty) == [1, 2]


@pytest.mark.parametrize(
    ("name", "target", "whole"),
    [
        ("way", "real", False),
        ("way.d", "real", False),
        ("way.py", "real/z.py", False),
        ("node_modules", "real", True),
        ("tool", "real/z.py", True),
        ("gone", "nothing", True),
        ("out", "..", True),
    ],
)
def test_what_is_read_through_a_link_is_not_called_complete(
    ty: Scene, name: str, target: str, whole: bool
) -> None:
    ty.put("real/z.py", "Z = 1\n")
    ty.put("a.py", "from way.z import Z\n" if name == "way" else "print(1)\n")
    (ty.root / name).symlink_to(target)
    (report,) = ty.semantics.look(["a.py"], session=AGENT)
    assert (report.fresh, report.complete) == (True, whole)
    assert any(name in one for one in report.notes) != whole
    (ty.root / name).unlink()
    ty.put("a.py", "print(2)\n")
    assert wrong(ty) == []


def test_a_generated_client_within_packages_is_seen(tmp_path: Path) -> None:
    scene = Scene(tmp_path, ["typescript"], SCRIPTS)
    try:
        assert wrong(scene, "a.ts") == [1]
        text = "export declare const A: number;\nexport declare const B: number;\n"
        scene.put("node_modules/.prisma/client/index.d.ts", text)
        assert wrong(scene, "a.ts") == []
    finally:
        scene.close()


@pytest.mark.parametrize("place", ["compile_flags.txt", "build/compile_commands.json"])
def test_flags_that_another_program_writes_count_at_once(place: str, tmp_path: Path) -> None:
    files = {".gitignore": "/build/\n", "a.c": "int a(void) { return ANSWER; }\n"}

    def flags(root: Path, flag: str) -> str:
        unit = {"directory": str(root), "file": "a.c", "arguments": ["cc", *flag.split(), "a.c"]}
        return json.dumps([unit]) if place.endswith(".json") else f"{flag}\n"

    scene = Scene(tmp_path, ["clangd"], files)
    scene.put(place, flags(scene.root, "-DOTHER=1"))
    try:
        assert wrong(scene, "a.c") == [1]
        scene.put(place, flags(scene.root, "-DANSWER=42"))
        assert wrong(scene, "a.c") == []
        (scene.root / place).unlink()
        assert wrong(scene, "a.c") == [1]
    finally:
        scene.close()
