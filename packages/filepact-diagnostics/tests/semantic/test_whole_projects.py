"""Everything is looked at, however much it is, and nothing is called whole that is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.servers.fakes import fake
from tests.servers.scene import AGENT, Scene

if TYPE_CHECKING:
    from pathlib import Path

MANY = 330


def test_a_large_project_is_looked_at_file_by_file(tmp_path: Path) -> None:
    files = {f"pack/m{number}.py": f"value: int = {number}\n" for number in range(MANY)}
    files |= {f"pack/m{number}.py": "value: int = 'x'\n" for number in (7, 160, 329)}
    scene = Scene(tmp_path, ["ty"], files)
    said: list[tuple[int, str]] = []
    try:
        seen = scene.semantics.survey(session=AGENT, progress=lambda *one: said.append(one))
    finally:
        scene.close()
    wrong = sorted(one.path.rpartition("/")[2] for one in seen.reports if one.diagnostics)
    assert wrong == ["m160.py", "m329.py", "m7.py"]
    assert (seen.complete, len(seen.reports), seen.messages) == (True, MANY, ())
    counts = [count for count, _ in said]
    assert counts == sorted(counts)
    assert counts[-1] == MANY


def test_what_there_was_no_time_for_is_looked_at_by_the_next_call(tmp_path: Path) -> None:
    files = {f"f{number}.x": "wrong\n" for number in range(100)}
    scene = Scene(tmp_path, [fake({"slow": 0.02})], files)
    try:
        scene.semantics.look(["f0.x"], session=AGENT)
        first = scene.semantics.survey(session=AGENT, seconds=0.7)
        assert not first.complete
        assert first.messages
        assert len(first.reports) < len(files)
        assert all(one.fresh for one in first.reports)
        whole = first
        for _ in range(100):
            whole = scene.semantics.survey(session=AGENT, seconds=0.7)
            if whole.complete:
                break
        assert (whole.complete, len(whole.reports)) == (True, len(files))
        # What was found before counts no more when a file has changed.
        scene.put("f3.x", "fine\n")
        after = scene.semantics.survey(session=AGENT)
    finally:
        scene.close()
    assert after.complete
    assert sum(len(one.diagnostics) for one in after.reports) == len(files) - 1


def test_a_part_is_never_called_whole(tmp_path: Path) -> None:
    files = {f"f{number}.x": "wrong\n" for number in range(40)}
    scene = Scene(tmp_path, [fake()], files)
    try:
        part = scene.semantics.survey(session=AGENT, most=10)
    finally:
        scene.close()
    assert (part.complete, len(part.reports)) == (False, 10)
    assert part.messages
