"""What a solution's tools say of language servers: good ones, and those that fail in every way."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from filepact_diagnostics.judging import ServerJudge
from filepact_diagnostics.lsp.pool import ServerPool
from tests.servers.fakes import fake, pool_of
from tests.servers.solution_world import served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from filepact_diagnostics.semantic.updates import WorkspaceUpdate
    from tests.servers.solution_world import World

GOOD = "one\ntwo\n"
BAD = "one\nthis is wrong\nand wrong\n"


@pytest.fixture
def it(tmp_path: Path) -> Iterator[World]:
    with served(tmp_path, pool_of(fake())) as made:
        made.put("a.x", GOOD)
        yield made


def write(it: World, text: str, **arguments: Any) -> dict[str, Any]:
    return it.data("write_file", filePath="a.x", content=text, **arguments)


def test_a_preview_says_what_the_text_would_add_and_take_away(it: World) -> None:
    data = write(it, BAD)
    update = data["workspaceUpdate"]
    assert (update["kind"], update["updated"]) == ("preview", False)
    assert (update["inWorkspaceBefore"], update["inWorkspaceAfter"]) == (True, True)
    found = update["diagnostics"]
    assert (found["fresh"], found["complete"], found["newCount"], found["total"]) == (
        True,
        True,
        2,
        2,
    )
    assert found["new"][0] == {
        "filePath": str(it.root / "a.x"),
        "line": 2,
        "column": 9,
        "endLine": 2,
        "endColumn": 14,
        "severity": "error",
        "id": "wrong",
        "source": "fake",
        "message": "this is wrong",
    }
    (server,) = update["servers"]
    assert (server["name"], server["kind"], server["confirmedBy"]) == ("fake", "preview", "pull")
    assert data["hints"]["nextSteps"] == ["Send the same with applyChanges: true to write it."]
    assert it.held("a.x") == GOOD


def test_what_is_written_is_taken_up_and_compared_with_before(it: World) -> None:
    done = write(it, BAD, applyChanges=True)
    assert done["hints"]["nextSteps"] == []
    first = done["workspaceUpdate"]
    assert (first["kind"], first["updated"]) == ("updated", True)
    assert first["diagnostics"]["newCount"] == 2
    second = write(it, GOOD, applyChanges=True)["workspaceUpdate"]
    assert (second["diagnostics"]["newCount"], second["diagnostics"]["fixedCount"]) == (0, 2)
    assert second["diagnostics"]["total"] == 0
    assert second["servers"][0]["revisionAfter"] > second["servers"][0]["revisionBefore"]


def test_a_new_file_is_added_to_the_workspace(it: World) -> None:
    sent = {"filePath": "sub/b.x", "content": BAD, "createIfMissing": True}
    before = it.data("write_file", **sent)["workspaceUpdate"]
    assert (before["kind"], before["inWorkspaceBefore"], before["inWorkspaceAfter"]) == (
        "preview",
        False,
        True,
    )
    assert before["diagnostics"]["newCount"] == 2
    after = it.data("write_file", **sent, applyChanges=True, pathStyle="relative")
    update = after["workspaceUpdate"]
    assert (update["kind"], update["updated"]) == ("added", True)
    assert (update["inWorkspaceBefore"], update["inWorkspaceAfter"]) == (False, True)
    assert {one["filePath"] for one in update["diagnostics"]["new"]} == {"sub/b.x"}


def test_a_file_that_no_server_knows_is_written_all_the_same(it: World) -> None:
    data = it.data(
        "write_file", filePath="t.txt", content="x", createIfMissing=True, applyChanges=True
    )
    assert data["applied"] is True
    update = data["workspaceUpdate"]
    assert (update["kind"], update["updated"], update["servers"]) == ("none", False, [])
    assert update["message"]
    assert update["diagnostics"] is None


def test_the_same_text_again_tells_nobody(it: World) -> None:
    update = write(it, GOOD, applyChanges=True)["workspaceUpdate"]
    assert (update["kind"], update["inWorkspaceAfter"], update["servers"]) == ("none", True, [])


def test_findings_are_many_and_only_some_are_listed(it: World) -> None:
    found = write(it, "wrong\n" * 200)["workspaceUpdate"]["diagnostics"]
    assert (len(found["new"]), found["newCount"], found["total"]) == (50, 200, 200)


def test_diagnostics_of_a_file_come_in_pages_and_are_filtered(it: World) -> None:
    it.put("a.x", "wrong\n" * 7)
    pages = [
        it.data("get_diagnostics", filePath="a.x", skip=skip, take=3, pathStyle="relative")
        for skip in (0, 3, 6, 9)
    ]
    assert [page["paging"] for page in pages] == [
        {"skip": skip, "take": 3, "returned": returned, "total": 7}
        for skip, returned in ((0, 3), (3, 3), (6, 1), (9, 0))
    ]
    lines = [one["line"] for page in pages for one in page["diagnostics"]]
    assert lines == list(range(1, 8))
    first = pages[0]
    assert first["counts"] == {"error": 7, "warning": 0, "information": 0, "hint": 0}
    assert (first["fresh"], first["complete"], first["scope"]) == (True, True, "file")
    assert first["diagnostics"][0]["filePath"] == "a.x"
    assert it.data("get_diagnostics", filePath="a.x", idPrefix="WR")["paging"]["total"] == 7
    other = it.data("get_diagnostics", filePath="a.x", idPrefix="cs")
    assert (other["paging"]["total"], other["counts"]["error"]) == (0, 7)


REFUSED = [
    ({"filePath": "gone.x"}, "NOT_FOUND"),
    ({"filePath": "../a.x"}, "PATH_BLOCKED"),
    ({"filePath": ".env"}, "PATH_BLOCKED"),
    ({"filePath": "a.x", "take": -1}, "INVALID_PARAMS"),
    ({"filePath": "a.x", "skip": -1}, "INVALID_PARAMS"),
    ({"filePath": "a.x", "take": 10**6}, "INVALID_PARAMS"),
    ({"filePath": "a.x", "minSeverity": "bad"}, "INVALID_PARAMS"),
    ({"filePath": "a.x", "waitSeconds": -1}, "INVALID_PARAMS"),
]


@pytest.mark.parametrize(("sent", "code"), REFUSED)
def test_what_cannot_be_asked_is_refused(it: World, sent: dict[str, Any], code: str) -> None:
    it.put(".env", "KEY=wrong\n")
    assert it.code("get_diagnostics", **sent) == code


def test_nobody_is_asked_about_a_file_that_no_server_knows(it: World) -> None:
    it.put("t.txt", "wrong\n")
    data = it.data("get_diagnostics", filePath="t.txt")
    assert (data["fresh"], data["complete"], data["servers"]) == (False, False, [])
    assert data["message"]


# -- servers that fail ----------------------------------------------------------------------

FAILING = {
    "hangs": ({"hang": True}, {}),
    "ends before it answers": ({"crash": 1}, {}),
    "never starts": ({"fail_starts": 99}, {}),
    "refuses": ({"refuse": True}, {}),
    "says what is no message": ({"garbage_after": True}, {}),
    "answers nonsense": ({"answer": {"kind": "full", "items": 5}}, {}),
    "floods": ({"flood": 20_000, "hang": True}, {}),
    "names other versions": ({"kind": "push", "lie": -5}, {}),
    "is mute": ({"kind": "push", "mute": True}, {}),
}


@pytest.mark.parametrize("how", FAILING)
def test_whatever_a_server_does_the_file_is_written_and_the_answer_says_so(
    tmp_path: Path, how: str
) -> None:
    orders, fields = FAILING[how]
    if "fail_starts" in orders:
        orders = {**orders, "notes": str(tmp_path / "notes")}
    with served(tmp_path, pool_of(fake(orders, **fields)), budget=1.0) as it:
        it.put("a.x", GOOD)
        shown = write(it, BAD)["workspaceUpdate"]
        assert (shown["kind"], shown["updated"]) == ("preview", False)
        assert not (shown["diagnostics"] or {}).get("new")
        data = write(it, BAD, applyChanges=True)
        assert data["applied"] is True
        assert it.held("a.x") == BAD
        update = data["workspaceUpdate"]
        assert update["kind"] in ("pending", "stale", "failed")
        assert update["updated"] is False
        assert update["message"]
        (step,) = data["hints"]["nextSteps"]
        assert "The file is written" in step
        (server,) = update["servers"]
        assert server["confirmedBy"] == "none"
        assert server["message"]
        assert not (update["diagnostics"] or {}).get("new")
        asked = it.data("get_diagnostics", filePath="a.x", waitSeconds=0.5)
        assert (asked["fresh"], asked["diagnostics"]) == (False, [])
        assert asked["servers"][0]["message"]


def test_a_server_that_is_not_installed_leaves_files_that_nobody_knows(tmp_path: Path) -> None:
    with served(tmp_path, ServerPool([fake()], {}, lambda _name: None)) as it:
        it.put("a.x", GOOD)
        data = write(it, BAD, applyChanges=True)
        assert (data["applied"], data["workspaceUpdate"]["kind"]) == (True, "none")
        assert data["workspaceUpdate"]["message"]


def test_a_file_that_is_deleted_under_the_server_is_made_anew(it: World) -> None:
    write(it, BAD, applyChanges=True)
    (it.root / "a.x").unlink()
    assert it.code("get_diagnostics", filePath="a.x") == "NOT_FOUND"
    assert it.code("write_file", filePath="a.x", content=GOOD, applyChanges=True) == "NOT_FOUND"
    data = write(it, BAD, applyChanges=True, createIfMissing=True)
    assert (data["created"], data["workspaceUpdate"]["updated"]) == (True, True)
    assert data["workspaceUpdate"]["diagnostics"]["total"] == 2


def test_what_others_write_is_seen_by_the_next_question(it: World) -> None:
    assert it.data("get_diagnostics", filePath="a.x")["counts"]["error"] == 0
    it.put("a.x", BAD)
    data = it.data("get_diagnostics", filePath="a.x")
    assert (data["fresh"], data["counts"]["error"]) == (True, 2)


def test_previews_and_writes_at_once_are_answered_rightly_or_left_open(it: World) -> None:
    for number in range(4):
        it.put(f"f{number}.x", GOOD)
    problems: list[str] = []

    def work(number: int) -> None:
        apply = number % 2 == 0
        for step in range(4):
            text = BAD if step % 2 == 0 else GOOD
            update = it.data(
                "write_file", filePath=f"f{number}.x", content=text, applyChanges=apply
            )["workspaceUpdate"]
            found = update["diagnostics"]
            if found is not None and found["fresh"] and found["complete"]:
                new = [one["filePath"] for one in found["new"]]
                if new != [str(it.root / f"f{number}.x")] * (2 if text == BAD else 0):
                    problems.append(f"{number} {step}: new in {new}")
            elif not update["message"]:
                problems.append(f"{number} {step}: open, and nothing is said")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert problems == []


def test_a_call_that_is_given_up_while_servers_are_asked_keeps_what_it_wrote(
    tmp_path: Path,
) -> None:
    with served(tmp_path, pool_of(fake({"hang": True})), budget=60.0) as it:
        it.put("a.x", GOOD)
        # Given up as soon as the file has been written.
        answer = it.answer(
            "write_file",
            cancelled=lambda: it.held("a.x") == BAD,
            filePath="a.x",
            content=BAD,
            applyChanges=True,
        )
        assert (answer["success"], answer["data"]["applied"]) == (True, True)
        assert (answer["meta"]["cancelled"], answer["meta"]["timedOut"]) == (True, False)
        assert answer["data"]["workspaceUpdate"]["updated"] is False
        assert answer["meta"]["durationMs"] < 30_000


def test_a_call_whose_time_is_over_says_so_and_keeps_what_it_wrote(tmp_path: Path) -> None:
    with served(tmp_path, pool_of(fake({"hang": True})), budget=60.0, limit=1.0) as it:
        it.put("a.x", GOOD)
        answer = it.answer("write_file", filePath="a.x", content=BAD, applyChanges=True)
        assert (answer["success"], answer["data"]["applied"]) == (True, True)
        assert (answer["meta"]["cancelled"], answer["meta"]["timedOut"]) == (False, True)
        assert answer["meta"]["timeoutMs"] == 1_000
        update = answer["data"]["workspaceUpdate"]
        assert (update["kind"], update["updated"]) == ("pending", False)
        assert it.held("a.x") == BAD
        asked = it.answer("get_diagnostics", waitSeconds=60)
        assert (asked["data"]["fresh"], asked["meta"]["timedOut"]) == (False, True)


class Broken(ServerJudge):
    """One that breaks in a way that nobody foresaw."""

    def verify(self, *_arguments: Any, **_more: Any) -> WorkspaceUpdate:
        raise OSError("/home/somebody/secret")

    preview = verify


def test_what_is_written_is_said_though_asking_breaks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with served(tmp_path, pool_of(fake()), kind=Broken) as it:
        it.put("a.x", GOOD)
        assert write(it, BAD)["workspaceUpdate"]["kind"] == "preview"
        data = write(it, BAD, applyChanges=True)
        assert (data["applied"], data["workspaceUpdate"]["kind"]) == (True, "failed")
        assert data["operation"]
        assert "secret" not in str(data)
        assert "secret" in caplog.text
