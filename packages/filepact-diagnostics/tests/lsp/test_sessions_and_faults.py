"""Whatever a server does, an answer comes in time, and none passes for fresh that is not."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from filepact_diagnostics.lsp import session
from filepact_diagnostics.lsp.documents import DiskChange
from filepact_diagnostics.lsp.features import ReferencesQuery
from filepact_diagnostics.lsp.pool import ServerPool
from tests.servers.asking import delta_of, preview_of, report_of, update_of
from tests.servers.fakes import SECONDS, fake, pool_of, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact_diagnostics.lsp.diagnostics import FileDiagnostics


@pytest.fixture
def start() -> Iterator[Callable[..., ServerPool]]:
    pools: list[ServerPool] = []

    def begin(
        orders: dict[str, Any] | None = None, *, idle: float = 600.0, **fields: Any
    ) -> ServerPool:
        pools.append(pool_of(fake(orders, **fields), idle=idle))
        return pools[-1]

    yield begin
    for pool in pools:
        pool.close()


def ask(
    pool: ServerPool, folder: Path, text: str = "wrong", seconds: float = SECONDS
) -> FileDiagnostics:
    (report,) = report_of(pool, str(folder), {str(folder / "a.x"): text}, seconds)
    return report


def state(pool: ServerPool) -> str:
    (status,) = pool.status()
    return status.state


@pytest.mark.parametrize(
    ("orders", "fields", "confirmed_by", "whole"),
    [
        ({}, {}, "pull", True),
        ({"utf8": True}, {}, "pull", True),
        ({"late_pull": True}, {}, "pull", True),
        ({"busy": 3}, {}, "pull", True),
        ({"modified": 2}, {}, "pull", True),
        ({"flood": 20_000}, {}, "pull", True),
        ({"loud": 1_000}, {}, "pull", True),
        ({"first_words": "starting up\n"}, {}, "pull", True),
        ({"kind": "push"}, {}, "version", False),
        ({"kind": "push"}, {"once": True}, "version", True),
        ({"kind": "push"}, {"quiet": 0.05}, "version", False),
        ({"kind": "push", "versions": False, "symbols": True}, {"ordered": True}, "order", True),
        ({"kind": "push"}, {"probe": "probe"}, "version", True),
        ({"kind": "push", "versions": False}, {"probe": "probe"}, "probe", True),
        ({"kind": "push", "knows": []}, {"probe": "probe"}, "version", False),
        ({"kind": "push"}, {"probe": "probe files"}, "probe", True),
        ({"kind": "push"}, {"probe": "workspace/executeCommand look"}, "version", False),
        ({"kind": "push", "crossing": 2}, {"probe": "probe files"}, "probe", True),
    ],
)
def test_diagnostics_come_with_the_way_they_are_known(
    start: Callable[..., ServerPool],
    tmp_path: Path,
    orders: dict,
    fields: dict,
    confirmed_by: str,
    whole: bool,
) -> None:
    pool = start(orders, **fields)
    for text, count in (("wrong\nwrong", 2), ("right", 0), ("wrong", 1), ("wrong", 1)):
        report = ask(pool, tmp_path, text)
        assert len(report.diagnostics) == count
        assert report.confirmed_by == confirmed_by
        assert (report.fresh, report.complete) == (True, whole)


def test_what_a_server_lacks_by_its_own_word_is_told_with_what_it_finds(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    says = {"reading": 0.2, "says": "experimental/serverStatus"}
    ill = {"health": {"health": "warning", "message": "no library is there\ntry this"}}
    report = ask(start({**says, **ill}, reading=says["says"]), tmp_path)
    assert (len(report.diagnostics), report.fresh, report.complete) == (1, True, False)
    assert report.notes == ("no library is there",)
    report = ask(start(says, reading=says["says"]), tmp_path)
    assert (len(report.diagnostics), report.complete, report.notes) == (1, True, ())


def test_of_a_file_without_a_project_a_server_does_not_know_what_is_wrong(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    report = ask(start({}, outside=["wrong"]), tmp_path)
    assert (len(report.diagnostics), report.known, report.complete) == (1, False, False)


def test_places_are_asked_for_once_the_project_is_read(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    path, seen = str(tmp_path / "a.x"), tmp_path / "log"
    references = "textDocument/references"
    orders = {"reading": 0.5, "says": "language/status", "replies": {references: []}}
    can = {"capabilities": {"textDocumentSync": 1, "referencesProvider": True}}
    pool = start({**orders, **can, "log": str(seen)}, reading="language/status")
    question, began = ReferencesQuery(path, 0), time.monotonic()
    files = {path: "right"}
    (answer,) = pool.query(
        str(tmp_path), "fake", question, proposed={}, files=files, seconds=SECONDS
    ).result()
    assert (answer.state, answer.value) == ("answered", ())
    assert references in seen.read_text()
    assert time.monotonic() - began > 0.5


def test_a_server_that_tells_of_a_text_in_parts_has_not_told_all_with_the_first(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    # It says at first that all is well, under the number of the very text.
    report = ask(start({"kind": "push", "symbols": True, "slow": 0.3}), tmp_path, "wrong")
    assert (report.diagnostics, report.confirmed_by, report.complete) == ((), "version", False)


def test_a_server_that_is_slow_to_answer_has_to_be_quiet_for_longer(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    # It says at first that all is well, and the truth as long after its answer as that took.
    pool = start({"kind": "push", "symbols": True, "slow": 0.3}, quiet=0.05)
    report = ask(pool, tmp_path, "wrong")
    assert [one.code for one in report.diagnostics] == ["wrong"]
    assert report.confirmed_by == "version"
    assert not report.complete  # more might have come


@pytest.mark.parametrize(
    ("orders", "fields"),
    [
        ({"refuse": True}, {}),
        ({"hang": True}, {}),
        ({"busy": 10_000}, {}),
        ({"answer": {"kind": "strange"}}, {}),
        ({"answer": {"kind": "unchanged", "resultId": "1"}}, {}),
        ({"answer": {"kind": "full", "items": None}}, {}),
        ({"answer": []}, {}),
        ({"kind": "push", "mute": True}, {}),
        ({"kind": "push", "mute": True}, {"quiet": 0.05}),
        ({"kind": "push", "mute": True}, {"probe": "probe"}),
        ({"kind": "push", "crossing": 10_000}, {"probe": "probe files"}),
        ({"kind": "push", "versions": False}, {}),
        ({"kind": "push", "lie": 5}, {}),
        ({"kind": "push", "lie": 5}, {"quiet": 0.05}),
        ({"kind": "push", "lie": -1}, {}),
        ({"garbage_after": True}, {}),
        ({"crash": 1}, {}),
        ({}, {"command": ["/nowhere/at-all"]}),
    ],
)
def test_what_is_not_proven_is_not_fresh_and_shows_no_list(
    start: Callable[..., ServerPool], tmp_path: Path, orders: dict, fields: dict
) -> None:
    report = ask(start(orders, **fields), tmp_path, seconds=0.7)
    assert not report.fresh
    assert report.diagnostics == ()
    assert report.reason


def test_items_that_cannot_be_read_make_a_list_incomplete(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    place = {"line": 0, "character": 0}
    fine = {"range": {"start": place, "end": {"line": 99, "character": 0}}, "message": "m"}
    items = [fine, {"message": "no place"}, None, {**fine, "range": {"start": place, "end": 7}}]
    pool = start({"answer": {"kind": "full", "items": items}})
    report = ask(pool, tmp_path)
    assert len(report.diagnostics) == 1
    assert report.fresh
    assert not report.complete


def test_messages_that_make_no_sense_do_no_harm(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    nonsense = [
        {"id": 4711, "result": None},
        {"id": "x", "error": {"code": "y"}},
        {"id": None, "error": None},
        {"method": "textDocument/publishDiagnostics", "params": None},
        {"method": "textDocument/publishDiagnostics", "params": {"uri": "http://a", "diagnostics": 7}},
        {"method": "$/progress", "params": {"token": 1}},
        {"method": "window/showMessage", "params": []},
        {"method": "telemetry/event", "params": 1},
        {"id": 1, "method": "workspace/configuration", "params": None},
        {"id": 2, "method": "client/registerCapability", "params": {"registrations": [{}]}},
        {"id": 3, "method": "no/such/method"},
        {"nothing": True},
    ]  # fmt: skip
    assert ask(start({"nonsense": nonsense}), tmp_path).fresh


def test_a_server_that_crashes_is_started_again_with_the_same_texts(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool = start({"crash": 2})
    other = {str(tmp_path / "b.x"): "wrong wrong"}
    assert report_of(pool, str(tmp_path), other, SECONDS)[0].fresh
    assert not ask(pool, tmp_path).fresh
    (report,) = report_of(pool, str(tmp_path), other, SECONDS)
    assert len(report.diagnostics) == 2
    (status,) = pool.status()
    assert (status.starts, status.open_documents) == (2, 2)
    assert "status 7" in status.message


def test_a_server_that_cannot_start_at_first_is_tried_again(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool = start({"notes": str(tmp_path / "notes"), "fail_starts": 2})
    assert ask(pool, tmp_path).fresh
    (status,) = pool.status()
    assert status.starts == 3


def test_a_server_that_never_starts_is_given_up_and_says_why(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool = start({"notes": str(tmp_path / "notes"), "fail_starts": 1_000})
    for _ in range(5):
        assert not ask(pool, tmp_path).fresh
    assert state(pool) == "broken"
    (status,) = pool.status()
    assert status.starts == 5
    assert "cannot work today" in status.message
    (update,) = update_of(pool, str(tmp_path), [], {str(tmp_path / "a.x"): ""}, 1.0)
    assert update.state == "failed"
    pool.restart(str(tmp_path))
    assert pool.status() == ()


def test_an_answer_that_takes_long_is_waited_for_without_asking_twice(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool = start({"slow": 1.0})
    assert not ask(pool, tmp_path, seconds=0.5).fresh
    assert ask(pool, tmp_path).seconds < 2.0  # asked again it would be longer
    assert state(pool) == "ready"


def test_a_server_that_does_not_answer_any_more_is_started_again(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool = start({"hang": True}, first=0.1)
    ask(pool, tmp_path, seconds=1.0)
    (status,) = pool.status()
    assert status.state in ("waiting", "stopped")
    assert status.message


def test_a_server_is_shared_and_started_once(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool = start({})
    reports: list[FileDiagnostics] = []
    threads = [
        threading.Thread(target=lambda: reports.append(ask(pool, tmp_path))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.fresh for report in reports] == [True] * 8
    (status,) = pool.status()
    assert status.starts == 1


def test_a_server_that_nobody_uses_is_stopped_and_started_again(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool = start({}, idle=0.05)
    assert ask(pool, tmp_path).fresh
    statuses = pool.status()
    assert all(wait_for_end(status.pid) for status in statuses)
    assert ask(pool, tmp_path).fresh


def test_two_servers_look_at_one_file_and_one_of_each_role(tmp_path: Path) -> None:
    servers = [fake({}), fake({}, role="lint"), fake({}, role="lint")]
    named = [
        type(one)(**{field: getattr(one, field) for field in one.__slots__} | {"name": name})
        for one, name in zip(servers, ("a", "b", "c"), strict=True)
    ]
    pool = pool_of(*named)
    reports = report_of(pool, str(tmp_path), {str(tmp_path / "a.x"): "wrong"}, SECONDS)
    assert [report.server for report in reports] == ["a", "b"]
    assert pool.servers_for(str(tmp_path), str(tmp_path / "a.y")) == ()
    pool.close()


def test_a_pool_that_was_closed_says_so(tmp_path: Path) -> None:
    pool = pool_of(fake({}))
    pool.close()
    with pytest.raises(RuntimeError):
        ask(pool, tmp_path)


def test_an_answer_says_of_how_many_changes_the_server_was_told(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool, root, path = start({}), str(tmp_path), str(tmp_path / "a.x")
    for number, text in enumerate(("wrong\nfine", "fine\nwrong here")):
        changes = [DiskChange(path, "changed", text)] * number
        (update,) = update_of(pool, root, changes, {path: text}, SECONDS)
        assert (update.state, update.changes, update.fresh) == ("answered", number, True)
        assert [one.line for one in update.reports[0].diagnostics] == [text.split("\n")[number]]


def test_an_update_that_is_not_confirmed_in_time_is_pending(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool, path = start({"slow": 0.5}), str(tmp_path / "a.x")
    ask(pool, tmp_path, "fine")
    (update,) = update_of(
        pool, str(tmp_path), [DiskChange(path, "changed", "wrong")], {path: "wrong"}, 0.05
    )
    assert (update.state, update.fresh) == ("pending", False)
    assert update.message
    assert len(ask(pool, tmp_path, "wrong").diagnostics) == 1


def test_changes_are_told_without_waiting_and_only_to_servers_that_run(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool, path = start({}), str(tmp_path / "a.x")
    pool.tell([DiskChange(path, "created", "wrong")])
    assert pool.status() == ()
    ask(pool, tmp_path, "fine")
    pool.tell([DiskChange(path, "changed", "wrong")])
    assert len(ask(pool, tmp_path, "wrong").diagnostics) == 1


def test_so_many_changes_that_a_new_start_is_cheaper_lead_to_one(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool = start({})
    ask(pool, tmp_path, "fine")
    many = [DiskChange(str(tmp_path / f"{number}.x"), "created", "") for number in range(5_001)]
    pool.tell(many)
    assert ask(pool, tmp_path, "wrong").fresh
    (status,) = pool.status()
    assert status.starts == 2


def test_a_preview_shows_the_difference_and_leaves_nothing(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool, path, other = start({}), str(tmp_path / "a.x"), str(tmp_path / "b.x")
    files = {path: "fine"}
    (seen,) = preview_of(pool, str(tmp_path), {path: "wrong", other: "wrong wrong"}, files, SECONDS)
    assert delta_of(seen) is not None
    assert (len(delta_of(seen).new), delta_of(seen).fixed) == (3, ())
    assert not seen.complete  # nobody sees a file that is not there
    (status,) = pool.status()
    assert status.open_documents == 1
    assert ask(pool, tmp_path, "fine").diagnostics == ()


@pytest.mark.parametrize("orders", [{"crash": 2}, {"hang": True}, {"crash": 3}, {"refuse": True}])
def test_a_preview_of_a_server_that_fails_shows_the_truth_or_nothing(
    start: Callable[..., ServerPool], tmp_path: Path, orders: dict
) -> None:
    pool, path = start(orders), str(tmp_path / "a.x")
    (seen,) = preview_of(pool, str(tmp_path), {path: "wrong"}, {path: "fine"}, 1.0)
    if delta_of(seen) is not None:
        assert len(delta_of(seen).new) == 1
    again = ask(pool, tmp_path, "fine", seconds=1.0)
    assert not again.fresh or again.diagnostics == ()


def test_a_server_that_ends_while_it_is_asked_is_asked_again_by_whoever_waits_for_it(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool, path = start({"crash": 2}), str(tmp_path / "a.x")
    (seen,) = preview_of(pool, str(tmp_path), {path: "wrong"}, {path: "fine"}, SECONDS)
    assert delta_of(seen) is not None
    assert len(delta_of(seen).new) == 1
    assert pool.status()[0].starts == 2


def test_a_server_that_keeps_a_proposed_text_is_stopped(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool, path = start({"sticky": 1}), str(tmp_path / "a.x")
    (seen,) = preview_of(pool, str(tmp_path), {path: "wrong"}, {path: "fine"}, SECONDS)
    assert delta_of(seen) is not None
    assert len(delta_of(seen).new) == 1
    for _ in range(200):
        (status,) = pool.status()
        if status.state == "stopped":
            break
        time.sleep(0.01)
    assert ask(pool, tmp_path, "fine").diagnostics == ()
    assert pool.status()[0].starts == 2


def test_whoever_writes_a_proposed_file_does_not_wait_until_its_proposal_is_proven_gone(
    start: Callable[..., ServerPool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_TURN", SECONDS)
    monkeypatch.setattr(session, "_WITHDRAW_SECONDS", SECONDS)
    pool, path = start({"hang_at": 3}), str(tmp_path / "a.x")
    preview_of(pool, str(tmp_path), {path: "wrong"}, {path: "fine"}, SECONDS)
    changes = [DiskChange(path, "changed", "wrong wrong")]
    (answer,) = update_of(pool, str(tmp_path), changes, {path: "wrong wrong"}, SECONDS / 4)
    assert [(one.fresh, len(one.diagnostics)) for one in answer.reports] == [(True, 2)]


def test_whoever_asks_about_another_file_does_not_keep_a_proposal_from_being_proven_gone(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool, path, other = (
        start({"sticky": 1, "slow": 0.1}),
        *map(str, (tmp_path / "a.x", tmp_path / "b.x")),
    )
    preview_of(pool, str(tmp_path), {path: "wrong"}, {path: "fine"}, SECONDS)
    changes = [DiskChange(other, "changed", "fine")]
    update_of(pool, str(tmp_path), changes, {other: "fine"}, SECONDS)
    assert ask(pool, tmp_path, "fine").diagnostics == ()
    assert pool.status()[0].starts == 2


def test_a_change_that_comes_during_a_preview_is_not_lost(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    pool, path = start({"slow": 0.3}), str(tmp_path / "a.x")
    ask(pool, tmp_path, "fine")
    thread = threading.Thread(
        target=lambda: preview_of(pool, str(tmp_path), {path: "wrong"}, {path: "fine"}, SECONDS)
    )
    thread.start()
    pool.tell([DiskChange(path, "changed", "wrong wrong")])
    busy = ask(pool, tmp_path, "wrong wrong", seconds=0.05)
    thread.join()
    assert not busy.fresh
    assert len(ask(pool, tmp_path, "wrong wrong").diagnostics) == 2


@pytest.mark.parametrize("proposes", [True, False])
def test_an_older_text_never_takes_the_place_of_a_newer_one(
    start: Callable[..., ServerPool], tmp_path: Path, *, proposes: bool
) -> None:
    path, other, root = str(tmp_path / "a.x"), str(tmp_path / "b.x"), str(tmp_path)
    Path(path).write_text("fine")
    pool = start({"slow": 0.2, "across": [path]})
    ask(pool, tmp_path, "fine")
    files, more = {path: "fine"}, {"patient": True}
    # Somebody writes while questions about the text before wait for one another.
    asked = [pool.ask(root, files, {}, SECONDS, **more)]
    if proposes:
        asked.append(pool.propose(root, {path: "proposed"}, files, SECONDS, **more))
    else:
        asked.append(pool.ask(root, {other: "", **files}, {}, SECONDS, **more))
    Path(path).write_text("wrong")
    pool.tell([DiskChange(path, "changed", "wrong")])
    last = pool.ask(root, {other: ""}, {}, SECONDS, **more)
    for one in asked:
        one.result()
    (answer,) = last.result()
    assert [len(one.diagnostics) for one in answer.reports if one.fresh] == [1]
    (again,) = pool.ask(root, {other: ""}, {}, SECONDS, **more).result()
    assert [len(one.diagnostics) for one in again.reports if one.fresh] == [1]


def test_programs_are_looked_for_once_and_files_of_missing_ones_have_no_server(
    tmp_path: Path,
) -> None:
    asked: list[str] = []

    def locate(name: str) -> str | None:
        asked.append(name)
        return None

    pool = ServerPool([fake({})], {}, locate)
    assert report_of(pool, str(tmp_path), {str(tmp_path / "a.x"): ""}) == ()
    assert preview_of(pool, str(tmp_path), {str(tmp_path / "a.x"): ""}, {}) == ()
    assert update_of(pool, str(tmp_path), [], {str(tmp_path / "a.x"): ""}) == ()
    assert asked == [sys.executable]
    pool.close()


def test_a_server_without_what_it_needs_is_not_used(tmp_path: Path) -> None:
    there = {sys.executable: sys.executable}
    for needs, found in ((["other"], ()), ([sys.executable], ("fake",))):
        pool = ServerPool([fake({}, needs=needs)], {}, there.get)
        servers = pool.servers_for(str(tmp_path), str(tmp_path / "a.x"))
        assert tuple(server.name for server in servers) == found
        pool.close()


def test_a_question_about_places_waits_until_the_server_has_worked_up_what_it_was_shown(
    start: Callable[..., ServerPool], tmp_path: Path
) -> None:
    log, path = tmp_path / "log", str(tmp_path / "a.x")
    orders = {
        "kind": "push",
        "log": str(log),
        "capabilities": {"referencesProvider": True},
        "knows": ["textDocument/references", "textDocument/documentSymbol", "probe"],
    }
    pool = start(orders, probe="probe")
    asked = ReferencesQuery(path, 0)
    shown = {path: "wrong", str(tmp_path / "b.x"): "right"}
    question = pool.query(str(tmp_path), "fake", asked, proposed={}, files=shown, seconds=SECONDS)
    question.result()
    sent = [json.loads(line).get("method", "") for line in log.read_text("utf-8").splitlines()]
    assert sent.index("probe") < sent.index("textDocument/references")
