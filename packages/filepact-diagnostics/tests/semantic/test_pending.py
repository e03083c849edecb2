"""What servers could not answer in time is told later, and nobody waits for a slow one again and again."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.servers.fakes import fake
from tests.servers.scene import AGENT, WRONG_LIB, Scene, codes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONG = 60.0
OTHERS = {f"o{number}.x": "fine\n" for number in range(8)}


@pytest.fixture
def ty(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path, ["ty"])
    yield scene
    scene.close()


def news(scene: Scene) -> str:
    """What is told next, once there is something."""
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        found = scene.semantics.events(AGENT.id)
        if found:
            scene.semantics.acknowledge(AGENT.id, found)
            return "\n".join(one.text for one in found)
        scene.semantics.sync()
    return ""


def test_what_a_change_breaks_elsewhere_is_told_later(ty: Scene) -> None:
    ty.write({"lib.py": ty.get("lib.py") + "\n"})
    late = ty.write({"lib.py": WRONG_LIB}, seconds=0.0)
    assert late.kind == "pending"
    text = news(ty)
    assert "use.py:3" in text
    assert "lib.py" in text.splitlines()[0]
    assert not ty.semantics.events(AGENT.id)


def test_a_later_change_takes_nothing_away_from_what_is_told(ty: Scene) -> None:
    ty.write({"lib.py": ty.get("lib.py") + "\n"})
    ty.write({"lib.py": WRONG_LIB}, seconds=0.0)
    ty.write({"lib.py": WRONG_LIB + "\nmore: int = 'x'\n"}, seconds=0.0)
    text = news(ty)
    assert "use.py:3" in text
    assert "lib.py:4" in text
    assert text.count("use.py:3:15") <= 1


def test_a_later_change_that_is_still_under_way_takes_nothing_away(ty: Scene) -> None:
    ty.write({"lib.py": ty.get("lib.py") + "\n"})
    ty.write({"lib.py": WRONG_LIB}, seconds=0.0)
    with ty.workspace.draft(AGENT, "write_file") as draft:
        (target,) = draft.open_all(["lib.py"])
        draft.write(target, WRONG_LIB + "\nmore: int = 'x'\n")
        changes, versions = draft.changes, draft.versions
        ty.workspace.submit(draft, "a change")
    waiting = ty.semantics._deferred._waiting
    while waiting and not waiting[0].outdated:
        ty.semantics.sync()
    ty.semantics.verify(changes, versions, session=AGENT, seconds=0.0)
    text = news(ty)
    assert "use.py:3" in text
    assert "lib.py:4" in text


def test_what_was_told_at_once_is_not_told_again(ty: Scene) -> None:
    ty.write({"lib.py": ty.get("lib.py") + "\n"})
    ty.write({"lib.py": ty.get("lib.py") + "one: int = 'x'\n"}, seconds=0.0)
    now = ty.write({"use.py": ty.get("use.py") + "two: int = 'x'\n"})
    assert ("use.py", "invalid-assignment") in codes(now)
    text = news(ty)
    assert "lib.py:4" in text
    assert "use.py:4" not in text


@pytest.mark.parametrize("servers", [["ty"], ["ty", "ruff"]])
def test_what_a_change_broke_stays_its_own_though_the_next_one_was_answered_first(
    tmp_path: Path, servers: list[str]
) -> None:
    files = {
        "lib.py": "def double(n: int) -> int:\n    return n * 2\n",
        "use.py": "from lib import double\n\nanswer: int = double(21)\n",
        "other.py": "one: int = 1\n",
    }
    scene = Scene(tmp_path, servers, files, mode="auto")
    try:
        scene.semantics.look(["lib.py"], session=AGENT, seconds=LONG)
        scene.write({"lib.py": WRONG_LIB}, brief=True, seconds=0.0)
        # Of files that nobody asked about before, what was found before comes of a past text.
        now = scene.write(
            {"other.py": "one: int = 'x'\ntwo: int = 'x'\n"}, brief=True, seconds=LONG
        )
        told = len(now.findings.new) if now.findings else 0
        text = news(scene)
        assert "use.py:3" in text
        assert "fixed" not in text
        summary = scene.semantics.turn_summary(session=AGENT, ends=True)
    finally:
        scene.close()
    # Two errors in each of use.py and other.py, whichever were told at once.
    assert told in (0, 2)
    assert "still found: 4." in summary, summary


def test_the_changed_file_is_answered_before_those_that_depend_on_it(tmp_path: Path) -> None:
    files = {"a.x": "fine\n", **OTHERS}
    scene = Scene(tmp_path, [fake({"slow": 0.3})], files, mode="auto", budget=4.0)
    try:
        scene.semantics.look(["a.x"], session=AGENT, seconds=LONG)
        update = scene.write({"a.x": "wrong\n"}, brief=True)
    finally:
        scene.close()
    assert codes(update) == [("a.x", "wrong")]
    assert update.findings is not None
    assert update.findings.pending >= len(OTHERS) // 2
    assert not update.findings.complete


def test_a_server_that_was_too_late_twice_is_not_waited_for(tmp_path: Path) -> None:
    # Longer than anybody waits, and far shorter than what takes a server for hung, also where it is starved.
    scene = Scene(tmp_path, [fake({"slow": 0.6})], {"a.x": "fine\n"}, mode="auto", budget=2.0)
    try:
        scene.semantics.look(["a.x"], session=AGENT, seconds=LONG)
        said = [
            scene.write({"a.x": f"wrong {number}\n"}, brief=True).servers[0].message
            for number in range(4)
        ]
        assert "a.x:1:1 error" in news(scene)
    finally:
        scene.close()
    assert ["nobody waits" in one for one in said] == [False, False, True, True]


def test_files_that_would_take_too_long_are_left_out_and_what_was_found_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("filepact_diagnostics.semantic.later._ENOUGH", 0.0)
    files = {"a.x": "fine\n", **dict.fromkeys(OTHERS, "a\nwrong\n")}
    scene = Scene(tmp_path, [fake({"slow": 0.3})], files, mode="auto", budget=0.4)
    try:
        scene.semantics.look(["a.x"], session=AGENT, seconds=LONG)
        scene.write({"a.x": "wrong\n"}, brief=True)
        said = news(scene)
    finally:
        scene.close()
    assert "1 new error in 1 file." in said
    assert "a.x:1:1 error" in said


def test_a_server_that_took_long_twice_is_not_waited_for_though_it_was_in_time(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, [fake({"slow": 0.4})], {"a.x": "fine\n"}, mode="auto", budget=60.0)
    try:
        scene.semantics.look(["a.x"], session=AGENT, seconds=LONG)
        updates = [scene.write({"a.x": "wrong\n" * one}, brief=True) for one in (1, 2, 3)]
        assert "a.x:3:1 error" in news(scene)
        updates.append(scene.write({"a.x": "wrong\n" * 4}, brief=True))
    finally:
        scene.close()
    assert [one.kind for one in updates] == ["updated", "updated", "pending", "pending"]
    assert all("nobody waits" in one.servers[0].message for one in updates[2:])


def test_no_answer_at_all_is_too_late_as_well(tmp_path: Path) -> None:
    scene = Scene(tmp_path, [fake({"hang": True})], {"a.x": "fine\n"}, mode="auto", budget=60.0)
    try:
        scene.semantics.look(["a.x"], session=AGENT, seconds=1.0)
        said = [
            scene.write({"a.x": f"wrong {number}\n"}, brief=True, seconds=0.0).servers[0].message
            for number in range(3)
        ]
    finally:
        scene.close()
    assert ["nobody waits" in one for one in said] == [False, False, True]


def test_a_server_that_hangs_is_replaced_within_one_call(tmp_path: Path) -> None:
    scene = Scene(tmp_path, ["ty"])
    try:
        scene.write({"lib.py": scene.get("lib.py") + "\n"})
        (before,) = scene.pool.status()
        os.kill(before.pid, signal.SIGSTOP)
        late = scene.write({"lib.py": WRONG_LIB}, seconds=3.0)
        assert late.kind in ("pending", "failed")
        again = scene.write({"lib.py": WRONG_LIB + "\n"})
        (after,) = scene.pool.status()
    finally:
        scene.close()
    assert again.updated
    assert (after.starts, after.pid != before.pid) == (2, True)


@pytest.mark.parametrize(
    ("settings", "chosen"),
    [
        ({}, "ty"),
        ({"pyrightconfig.json": "{}\n"}, "basedpyright"),
        ({"pyproject.toml": '[tool.basedpyright]\ntypeCheckingMode = "strict"\n'}, "basedpyright"),
        ({"pyproject.toml": "[tool.ty.rules]\n", "a/pyrightconfig.json": "{}\n"}, "ty"),
    ],
)
def test_of_several_servers_the_one_that_the_project_configures_is_used(
    settings: dict[str, str], chosen: str, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, ["ty", "basedpyright"], {"lib.py": "x = 1\n", **settings})
    try:
        found = scene.pool.servers_for(str(scene.root), scene.path("lib.py"))
    finally:
        scene.close()
    assert [one.name for one in found] == [chosen]


def test_a_server_that_runs_is_not_started_anew_by_loading(tmp_path: Path) -> None:
    scene = Scene(tmp_path, ["ty"])
    try:
        scene.write({"lib.py": scene.get("lib.py") + "\n"})
        before = scene.pool.status()
        for path in (".", "."):
            scene.semantics.load(path)
        after = scene.pool.status()
    finally:
        scene.close()
    assert [(one.pid, one.starts) for one in after] == [(one.pid, one.starts) for one in before]
