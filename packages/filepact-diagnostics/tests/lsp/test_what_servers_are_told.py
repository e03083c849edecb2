"""Each policy sends what makes its server look again, in an order that leaves no gap."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from filepact.domain.policy import Policy
from filepact.domain.protected import BUILT_IN_RULES
from filepact_diagnostics.lsp.documents import DiskChange
from filepact_diagnostics.lsp.pool import names_protected
from tests.servers.asking import delta_of, preview_of, report_of, update_of
from tests.servers.fakes import SECONDS, fake, pool_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from filepact_diagnostics.lsp.diagnostics import ServerDiagnostics

WATCH = [
    {
        "id": "w",
        "method": "workspace/didChangeWatchedFiles",
        "registerOptions": {"watchers": [{"globPattern": "**"}]},
    }
]
QUESTIONS = {"textDocument/diagnostic", "workspace/executeCommand"}
PULL: dict[str, Any] = {
    "textDocumentSync": 1,
    "diagnosticProvider": {"interFileDependencies": True, "workspaceDiagnostics": False},
}


class Scene:
    """A server whose notes are read when it has ended; ``a.x`` is open, ``b.x`` is not."""

    def __init__(self, folder: Path, **fields: Any) -> None:
        self.folder = folder
        self.log = folder / "log"
        orders = {"log": str(self.log), "register": WATCH, **fields.pop("orders", {})}
        self.pool = pool_of(fake(orders, **fields))
        self.report({"a.x": "old"})
        self.before = len(self.told())

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def report(self, files: dict[str, str]) -> None:
        texts = {self.path(name): text for name, text in files.items()}
        for report in report_of(self.pool, str(self.folder), texts, SECONDS):
            assert report.fresh, report.reason

    def change(self, *changes: DiskChange) -> None:
        self.pool.tell(changes)
        self.report({"a.x": "old"})

    def preview(self, proposed: dict[str, str], files: dict[str, str]) -> ServerDiagnostics:
        one, two = (
            {self.path(name): text for name, text in some.items()} for some in (proposed, files)
        )
        (seen,) = preview_of(self.pool, str(self.folder), one, two, SECONDS)
        return seen

    def told(self) -> list[dict]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def end(self) -> list[str]:
        """What it was told, by the last part of each name, with the file or the number of them."""
        self.pool.close()
        return [short(one) for one in self.told()[self.before :] if "id" not in one]


def short(message: dict) -> str:
    params = message.get("params") or {}
    name = message["method"].rpartition("/")[2]
    if "textDocument" in params:
        return f"{name} {params['textDocument']['uri'].rpartition('/')[2]}"
    if "changes" in params:
        return " ".join([name, *(f"{one['type']}:{one['uri'].rpartition('/')[2]}" for one in params["changes"])])  # fmt: skip
    return name


def told(
    folder: Path, sync: dict[str, Any], changes: Sequence[DiskChange], **fields: Any
) -> list[str]:
    scene = Scene(folder, sync=sync, **fields)
    scene.change(*changes)
    found = scene.end()
    return [one for one in found if one not in ("exit", "initialized")]


EVENT = "didChangeWatchedFiles"


@pytest.mark.parametrize(
    ("sync", "kind", "expected"),
    [
        ({}, "changed", [f"{EVENT} 2:b.x"]),
        ({}, "created", [f"{EVENT} 1:b.x"]),
        ({}, "deleted", [f"{EVENT} 3:b.x"]),
        ({"written": "save"}, "changed", [f"{EVENT} 2:b.x", "didSave a.x"]),
        ({"deleted": "save"}, "deleted", [f"{EVENT} 3:b.x", "didSave a.x"]),
        ({"created": "repeat"}, "created", [f"{EVENT} 1:b.x", "didChange a.x"]),
        (
            {"written": "open"},
            "changed",
            ["didOpen b.x", f"{EVENT} 2:b.x", "didSave b.x", "didChange a.x"],
        ),
        ({"created": "announce"}, "created", [f"{EVENT} 1:b.x", "again"]),
        ({"folders": True}, "created", [f"{EVENT} 1:b.x"]),
        ({"lazy": True}, "created", [f"{EVENT} 2:b.x 1:b.x"]),
        ({"lazy": True}, "changed", [f"{EVENT} 2:b.x"]),
    ],
)
def test_a_change_of_a_closed_file(
    tmp_path: Path, sync: dict, kind: Any, expected: list[str]
) -> None:
    text = None if kind == "deleted" else "new"
    announce = [{"method": "fake/again", "params": {"list": ["{root_uri}"], "n": 1}}]
    change = DiskChange(str(tmp_path / "b.x"), kind, text)
    assert told(tmp_path, sync, [change], announce=announce) == expected


@pytest.mark.parametrize(
    ("by_date", "same_date", "kind", "expected"),
    [
        (True, True, "changed", ["didOpen b.x", "didClose b.x", f"{EVENT} 2:b.x"]),
        (True, True, "created", ["didOpen b.x", "didClose b.x", f"{EVENT} 1:b.x"]),
        (True, False, "changed", [f"{EVENT} 2:b.x"]),
        (False, True, "changed", [f"{EVENT} 2:b.x"]),
    ],
)
def test_a_text_that_dates_do_not_tell_from_the_last_is_opened_and_closed(
    tmp_path: Path, by_date: bool, same_date: bool, kind: Any, expected: list[str]
) -> None:
    change = DiskChange(str(tmp_path / "b.x"), kind, "new", same_date=same_date)
    assert told(tmp_path, {"by_date": by_date}, [change]) == expected


def test_one_that_cannot_be_opened_starts_the_server_anew(tmp_path: Path) -> None:
    scene = Scene(tmp_path, sync={"by_date": True})
    for starts, name in ((1, "b.other"), (2, "b.x")):
        scene.change(DiskChange(scene.path(name), "changed", None, same_date=True))
        (status,) = scene.pool.status()
        assert status.starts == starts
    scene.pool.close()


def test_an_open_file_that_was_written_is_changed_and_saved(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.pool.tell([DiskChange(scene.path("a.x"), "changed", "new")])
    scene.report({"a.x": "new"})
    assert scene.end()[:-1] == ["didChange a.x", f"{EVENT} 2:a.x", "didSave a.x"]


@pytest.mark.parametrize("text", [None, "new"])
def test_a_renamed_open_file_is_closed(tmp_path: Path, text: str | None) -> None:
    change = DiskChange(str(tmp_path / "b.x"), "renamed", text, str(tmp_path / "a.x"))
    found = told(tmp_path, {}, [change])
    assert found == ["didClose a.x", f"{EVENT} 3:a.x 1:b.x", "didOpen a.x"]


def test_a_file_that_is_no_text_any_more_is_closed(tmp_path: Path) -> None:
    found = told(tmp_path, {}, [DiskChange(str(tmp_path / "a.x"), "changed", None)])
    assert found == ["didClose a.x", f"{EVENT} 2:a.x", "didOpen a.x"]


def test_new_folders_are_told_once_and_again_when_they_may_have_gone(tmp_path: Path) -> None:
    scene = Scene(tmp_path, sync={"folders": True})
    for names in (["p/q/c.x", "p/d.x"], ["p/q/e.x"], ["-p/q/c.x"], ["p/q/c.x", "p/q/f.x"]):
        scene.change(
            *(
                DiskChange(scene.path(one.removeprefix("-")), "deleted")
                if one.startswith("-")
                else DiskChange(scene.path(one), "created", "")
                for one in names
            )
        )
    events = [one.split()[1:] for one in scene.end() if one.startswith(EVENT)]
    assert events == [
        ["1:p", "1:q", "1:c.x", "1:d.x"],
        ["1:e.x"],
        ["3:c.x"],
        ["1:p", "1:q", "1:c.x", "1:f.x"],
    ]


def test_the_folder_of_a_file_that_it_may_know_is_told_each_time(tmp_path: Path) -> None:
    scene = Scene(tmp_path, sync={"folders": True})
    scene.change(DiskChange(scene.path("p/b.x"), "created", ""))
    scene.change(DiskChange(scene.path("p/c.x"), "created", "", same_date=True))
    scene.report({"p/d.x": "shown before it is there"})
    scene.change(DiskChange(scene.path("p/d.x"), "created", ""))
    scene.change(DiskChange(scene.path("e.x"), "created", "", same_date=True))
    events = [one.split()[1:] for one in scene.end() if one.startswith(EVENT)]
    root = f"1:{tmp_path.name}"
    assert events == [["1:p", "1:b.x"], ["1:p", "1:c.x"], ["1:p", "1:d.x"], [root, "1:e.x"]]


def test_a_change_that_no_event_shows_starts_the_server_anew(tmp_path: Path) -> None:
    scene = Scene(tmp_path, sync={"created": "nothing"})
    scene.change(DiskChange(scene.path("b.x"), "created", "new"))
    (status,) = scene.pool.status()
    assert status.starts == 2
    scene.change(DiskChange(scene.path("a.x"), "changed", "old"))
    (status,) = scene.pool.status()
    assert status.starts == 2
    scene.pool.close()


def test_an_announcement_whose_facts_are_not_known_is_left_out(tmp_path: Path) -> None:
    announce = [{"method": "solution/open", "params": {"solution": "{solution_uri}"}}]
    for number, facts in enumerate(({}, {"solution_uri": "file:///s.sln"})):
        folder = tmp_path / str(number)
        folder.mkdir()
        log = folder / "log"
        pool = pool_of(fake({"log": str(log)}, announce=announce))
        pool.know(str(folder), **facts)
        report_of(pool, str(folder), {str(folder / "a.x"): ""}, SECONDS)
        pool.close()
        sent = [one["params"] for one in map(json.loads, log.read_text().splitlines()) if one["method"] == "solution/open"]  # fmt: skip
        assert sent == ([{"solution": "file:///s.sln"}] if facts else [])


def test_a_server_that_was_not_told_what_to_open_is_stale_and_shows_no_list(
    tmp_path: Path,
) -> None:
    announce = [{"method": "solution/open", "params": {"solution": "{solution_uri}"}}]
    pool = pool_of(fake(announce=announce))
    files = {str(tmp_path / "a.x"): "wrong"}
    change = DiskChange(str(tmp_path / "a.x"), "changed", "wrong")
    (update,) = update_of(pool, str(tmp_path), [change], files, SECONDS)
    assert (update.state, update.fresh) == ("stale", False)
    assert "solution_uri" in update.message
    assert not [one for report in update.reports for one in report.diagnostics]
    (seen,) = preview_of(pool, str(tmp_path), files, files, SECONDS)
    assert delta_of(seen) is None
    pool.know(str(tmp_path), solution_uri="file:///s.sln")
    pool.restart(str(tmp_path))
    (update,) = update_of(pool, str(tmp_path), [change], files, SECONDS)
    assert (update.state, update.fresh) == ("answered", True)
    pool.close()


def test_a_server_that_finds_projects_by_itself_starts_anew_for_what_it_is_not_told(
    tmp_path: Path,
) -> None:
    announce = [{"method": "solution/open", "params": {"solution": "{solution_uri}"}}]
    scene = Scene(tmp_path, announce=announce, discovers=True, sync={"created": "announce"})
    scene.change(DiskChange(scene.path("b.x"), "created", "new"))
    (status,) = scene.pool.status()
    assert status.starts == 2
    scene.pool.close()


@pytest.mark.parametrize(
    ("orders", "sync", "kind", "event"),
    [
        ({}, {}, "changed", "didChange, didChangeWatchedFiles, didSave"),
        ({}, {}, "created", "didOpen, didChangeWatchedFiles"),
        ({"capabilities": PULL}, {}, "changed", "didChange, didChangeWatchedFiles, didSave"),
        ({}, {"written": "nothing"}, "changed", "didChange, didChangeWatchedFiles, didSave, restart, fake/again, didOpen"),
        ({}, {"created": "announce"}, "created", "didOpen, didChangeWatchedFiles, fake/again"),
    ],
)  # fmt: skip
def test_an_update_says_what_was_sent_for_it(
    tmp_path: Path, orders: dict, sync: dict, kind: Any, event: str
) -> None:
    announce = [{"method": "fake/again", "params": {}}]
    pool = pool_of(fake({"register": WATCH, **orders}, sync=sync, announce=announce))
    root, path = str(tmp_path), str(tmp_path / ("b.x" if kind == "created" else "a.x"))
    report_of(pool, root, {str(tmp_path / "a.x"): "old"}, SECONDS)
    (update,) = update_of(pool, root, [DiskChange(path, kind, "new")], {path: "new"}, SECONDS)
    assert set(update.event.split(", ")) == set(event.split(", "))
    # The same, told first and asked about later.
    pool.tell([DiskChange(path, "changed", "newer")])
    (update,) = update_of(pool, root, [], {path: "newer"}, SECONDS)
    assert "didChange" in update.event
    (update,) = update_of(pool, root, [], {path: "newer"}, SECONDS)
    assert update.event == ""
    pool.close()


def test_a_server_that_takes_no_changes_gets_the_whole_document_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    sync = {"openClose": True, "change": 0}
    orders = {"log": str(log), "capabilities": {**PULL, "textDocumentSync": sync}}
    pool = pool_of(fake(orders))
    path = str(tmp_path / "a.x")
    for text, count in (("", 0), ("wrong", 1), ("wrong wrong", 2)):
        (report,) = report_of(pool, str(tmp_path), {path: text}, SECONDS)
        assert (report.fresh, len(report.diagnostics)) == (True, count)
    pool.close()
    names = [json.loads(line).get("method") for line in log.read_text().splitlines()]
    assert "textDocument/didChange" not in names


def test_a_server_that_takes_no_texts_at_all_has_no_previews(tmp_path: Path) -> None:
    pool = pool_of(fake({"capabilities": {**PULL, "textDocumentSync": 0}}))
    path = str(tmp_path / "a.x")
    (seen,) = preview_of(pool, str(tmp_path), {path: "wrong"}, {path: ""}, SECONDS)
    assert delta_of(seen) is None
    assert "texts" in seen.message
    pool.close()


@pytest.mark.parametrize(
    ("sync", "complete", "again"),
    [
        ({}, True, 0),
        ({"unsaved": "repeat"}, True, 2),
        ({"unsaved": "alone"}, True, 0),
        ({"unsaved": "nothing"}, False, 0),
    ],
)
def test_a_preview_shows_dependents_what_the_policy_can(
    tmp_path: Path, sync: dict, complete: bool, again: int
) -> None:
    scene = Scene(tmp_path, sync=sync)
    scene.report({"a.x": "old", "b.x": "user"})
    seen = scene.preview({"a.x": "wrong"}, {"a.x": "old", "b.x": "user"})
    assert seen.complete is complete
    found = scene.end()
    assert found.count("didChange a.x") >= 2
    assert found.count("didChange b.x") >= again
    assert bool(found.count("didChange b.x")) is bool(again)


def test_few_documents_stay_open(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for number in range(60):
        scene.report({f"{number}.x": ""})
    (status,) = scene.pool.status()
    assert status.open_documents == 40
    assert scene.end().count("didClose a.x") == 1


def test_a_twin_is_sent_again_with_those_who_look_at_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, sync={"coarse": True, "unsaved": "repeat"})
    scene.report({"a.x": "new", "b.x": "user"})
    scene.report({"a.x": "old", "b.x": "user"})
    scene.pool.tell([DiskChange(scene.path("b.x"), "deleted")])
    scene.report({"a.x": "old"})
    found = scene.end()
    assert found.count("didChange a.x") >= 3
    assert found.count("didChange b.x") >= 1


@pytest.mark.parametrize(
    ("capabilities", "sends"),
    [
        ({"textDocumentSync": 1}, {"didOpen", "didChange", "didSave"}),
        ({"textDocumentSync": 2}, {"didOpen", "didChange", "didSave"}),
        ({}, {"didOpen", "didChange"}),
        ({"textDocumentSync": {"openClose": True, "change": 1}}, {"didOpen", "didChange"}),
        (
            {"textDocumentSync": {"openClose": True, "change": 9, "save": {}}},
            {"didOpen", "didChange", "didSave"},
        ),
        ({"textDocumentSync": {}}, set()),
    ],
)
def test_servers_are_told_what_they_can_take(
    tmp_path: Path, capabilities: dict, sends: set[str]
) -> None:
    log = tmp_path / "log"
    pool = pool_of(fake({"log": str(log), "capabilities": capabilities, "kind": "push"}))
    path = str(tmp_path / "a.x")
    for text in ("one", "two"):
        report_of(
            pool, str(tmp_path), {path: text}, 0.2 if "openClose" in str(capabilities) else 2.0
        )
    pool.tell([DiskChange(path, "changed", "three")])
    pool.close()
    names = {json.loads(line)["method"].rpartition("/")[2] for line in log.read_text().splitlines()}
    assert names & {"didOpen", "didChange", "didSave"} == sends


def test_a_server_that_dates_all_texts_anew_at_a_save_is_told_of_none(tmp_path: Path) -> None:
    sync = {"written": "open", "created": "save", "unsaved": "repeat", "coarse": True}
    changes = [
        DiskChange(str(tmp_path / "b.x"), "changed", "new"),
        DiskChange(str(tmp_path / "c.x"), "created", "new"),
    ]
    assert not [one for one in told(tmp_path, sync, changes) if one.startswith("didSave")]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('#include "../.env"\n', True),
        ("#include <keys/id_rsa>\n", True),
        ("x = require('./secrets.json')\n", True),
        ("const key = `/project/.ssh/config`\n", True),
        ("//go:embed a.txt tls/server.key\nvar all string\n", True),
        ('#include "main.h"\nprint(".enviable")\n', False),
        # Beside a protected name, and without leading to one.
        ("x = '.env/../readme.txt'\n", False),
        ("id_rsa = .env  # names in no quotes\n", False),
    ],
)
def test_a_text_that_names_what_may_not_be_read_is_known(text: str, *, named: bool) -> None:
    assert names_protected(text, "/project", "src/main.c", Policy(BUILT_IN_RULES)) is named


@pytest.mark.parametrize(("idle", "closed"), [(False, 11), (True, 0)])
def test_more_documents_are_left_open_where_they_are_no_work(
    tmp_path: Path, *, idle: bool, closed: int
) -> None:
    scene = Scene(tmp_path, sync={"idle": idle})
    scene.report({f"f{number}.x": "fine" for number in range(45)})
    scene.report({f"g{number}.x": "fine" for number in range(5)})
    assert sum(one.startswith("didClose") for one in scene.end()) == closed
