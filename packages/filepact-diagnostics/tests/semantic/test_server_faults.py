"""Whatever a server does, a change is done, the answer comes in time and claims nothing untrue."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.servers.fakes import fake
from tests.servers.scene import AGENT, Scene, codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact_diagnostics.semantic.updates import WorkspaceUpdate

FILES = {"a.x": "fine\n", "b.x": "fine\n"}
BUDGET = 0.4


@pytest.fixture
def scene_with(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    scenes: list[Scene] = []

    def make(orders: dict[str, Any] | None = None, **options: Any) -> Scene:
        table = options.pop("table", {})
        folder = tmp_path / str(len(scenes))
        scenes.append(Scene(folder, [fake(orders, **table)], FILES, **options))
        return scenes[-1]

    yield make
    for one in scenes:
        one.close()


FAULTS: dict[str, dict[str, Any]] = {
    "never answers": {"hang": True},
    "ends when it is asked": {"crash": 1},
    "ends at its start": {"first_words": "", "fail_starts": 99},
    "refuses": {"refuse": True},
    "answers nonsense": {"answer": {"kind": "full", "items": 7}},
    "sends garbage": {"garbage_after": True},
    "floods": {"flood": 3_000, "hang": True},
    "puts it off for ever": {"busy": 10**6},
    "publishes another version": {"kind": "push", "lie": 5},
    "publishes nothing": {"kind": "push", "mute": True},
}


def unproven(update: WorkspaceUpdate) -> bool:
    return (
        not update.updated
        and update.kind in ("pending", "failed", "preview")
        and all(one.confirmed_by == "none" for one in update.servers)
        and update.findings is None
        and bool(update.message)
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_costs_no_write_and_proves_nothing(
    fault: str, scene_with: Callable[..., Scene], tmp_path: Path
) -> None:
    orders = {**FAULTS[fault]}
    if "fail_starts" in orders:
        orders["notes"] = str(tmp_path / "notes")
    scene = scene_with(orders, budget=BUDGET)
    began = time.monotonic()
    foreseen = scene.foresee({"a.x": "wrong\n"})
    followed = scene.write({"a.x": "wrong\n"})
    # Each within its budget; the rest is for a machine with much else to do.
    assert time.monotonic() - began < 2 * BUDGET + 10
    assert scene.get("a.x") == "wrong\n"
    assert unproven(foreseen)
    assert unproven(followed)


def test_a_server_that_ends_is_started_again_and_knows_the_present(
    scene_with: Callable[..., Scene],
) -> None:
    scene = scene_with({"crash": 6})
    assert codes(scene.write({"a.x": "wrong\n"})) == [("a.x", "wrong")]
    ends = [scene.write({"a.x": f"wrong {number}\n"}, seconds=5) for number in range(3)]
    assert not all(one.updated for one in ends)
    last = scene.write({"a.x": "fine\n", "b.x": "wrong\n"}, seconds=20)
    assert last.updated
    assert last.findings is not None
    assert last.findings.total == 1


def test_files_that_hold_no_text_are_told_and_not_asked_about(
    scene_with: Callable[..., Scene],
) -> None:
    scene = scene_with()
    scene.write({"a.x": "wrong\n"})
    binary = scene.write({"a.x": b"\0\1\2\xff\0" * 40})
    assert binary.findings is None or binary.findings.new == ()
    text = scene.write({"a.x": b"wrong again\n"})
    assert text.updated
    assert text.findings is not None
    assert text.findings.total == 1


def test_other_encodings_reach_servers_as_text(scene_with: Callable[..., Scene]) -> None:
    scene = scene_with()
    (scene.root / "a.x").write_bytes("name\n".encode("utf-16"))
    update = scene.write({"a.x": "näme wrong\n"})
    assert (scene.root / "a.x").read_bytes() == "näme wrong\n".encode("utf-16")
    assert update.findings is not None
    (found,) = update.findings.new
    assert found.start.column == 5
    assert found.line == "näme wrong"


def test_without_a_server_nothing_is_said(scene_with: Callable[..., Scene]) -> None:
    scene = scene_with()
    update = scene.write({"notes.txt": "wrong\n"})
    assert update.kind == "none"
    assert update.servers == ()
    assert scene.semantics.line(update, session=AGENT) == ""
    assert not scene.semantics.claims(scene.path("notes.txt"))
    assert scene.semantics.claims(scene.path("a.x"))
    assert scene.pool.status() == ()


def test_switched_off_nothing_is_started(scene_with: Callable[..., Scene]) -> None:
    scene = scene_with(mode="off")
    assert scene.write({"a.x": "wrong\n"}).kind == "none"
    assert not scene.semantics.claims(scene.path("a.x"))
    assert scene.pool.status() == ()


def test_a_log_that_is_written_all_the_time_keeps_nobody_from_an_answer(
    scene_with: Callable[..., Scene],
) -> None:
    scene = scene_with()
    scene.write({"a.x": "ready\n"})
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(0.0005):
            scene.put("server.log", str(time.monotonic()))

    writer = threading.Thread(target=go_on)
    writer.start()
    try:
        for number in range(10):
            update = scene.write({"a.x": f"wrong {number}\n"})
            assert update.updated
    finally:
        over.set()
        writer.join()


def test_two_threads_at_once_get_answers_about_their_own_files(
    scene_with: Callable[..., Scene],
) -> None:
    scene = scene_with()
    scene.write({"a.x": "ready\n"})
    wrong: list[object] = []

    def work(name: str) -> None:
        for number in range(12):
            bad = number % 2 == 0
            text = f"{'wrong' if bad else 'fine'} {name} {number}\n"
            update = scene.write({name: text})
            found = update.findings
            if not update.updated or found is None or len(found.new) != bad:
                wrong.append((name, number, update))

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a.x", "b.x")]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert wrong == []


def test_previews_during_changes_of_the_same_file_leave_no_trace(
    scene_with: Callable[..., Scene],
) -> None:
    scene = scene_with()
    scene.write({"a.x": "ready\n"})
    over = threading.Event()
    seen: list[WorkspaceUpdate] = []

    def preview() -> None:
        while not over.is_set():
            seen.append(scene.foresee({"a.x": "wrong wrong wrong\n"}, seconds=5))

    thread = threading.Thread(target=preview)
    thread.start()
    try:
        for number in range(12):
            bad = number % 2
            update = scene.write({"a.x": f"{'wrong' if bad else 'fine'} {number}\n"})
            assert update.updated, update
            assert update.findings is not None
            assert update.findings.total == bad
    finally:
        over.set()
        thread.join()
    (report,) = scene.semantics.look(["a.x"], session=AGENT)
    assert [one.line for one in report.diagnostics] == ["wrong 11"]
    told = [len(one.findings.new) for one in seen if one.findings]
    assert all(count in (2, 3) for count in told)


def test_a_caller_that_gives_up_is_not_kept(scene_with: Callable[..., Scene]) -> None:
    scene = scene_with({"hang": True})
    began = time.monotonic()
    update = scene.write({"a.x": "wrong\n"}, cancelled=lambda: True)
    assert time.monotonic() - began < 10
    assert update.kind == "pending"
    assert scene.get("a.x") == "wrong\n"
