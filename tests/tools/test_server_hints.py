"""Every refusal of what language servers do says what to do next, and who does that gets on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.servers.fakes import fake, pool_of
from tests.servers.solution_world import served, world
from tests.tools.test_server_edits import NAMED, OFFERS, SENT, TREE, edit, made_up, placed

if TYPE_CHECKING:
    from pathlib import Path

RENAME = ("rename_symbol", {**SENT, "applyChanges": True})
BY_HAND = ("write_file", {"filePath": "a.x", "content": "one other\n", "applyChanges": True})
COMMAND = {"title": "Tidy", "command": {"title": "Tidy", "command": "tidy"}}
DISABLED = {"title": "Tidy", "disabled": {"reason": "not now"}, "edit": {"changes": {}}}
LACKING = {
    one: OFFERS[one] for one in ("textDocumentSync", "diagnosticProvider")
}  # so that nobody waits for what it never says

Step = tuple[str, dict[str, Any]]


def tidied(answer: dict[str, Any]) -> dict[str, Any]:
    return {"textDocument/codeAction": [answer], "codeAction/resolve": answer}


CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], Step, str, list[Step]]] = {
    "renames something else": (
        *("SERVER_REFUSED", {"textDocument/rename": {"changes": {"A": [edit((0, 0), (0, 3), "other")]}}}),
        *({}, RENAME, "line and column", [BY_HAND]),
    ),
    "cannot be carried out": (
        *("SERVER_REFUSED", {"textDocument/rename": {"changes": {"A": [NAMED, NAMED]}}}),
        *({}, RENAME, "reload", [("reload", {}), BY_HAND]),
    ),
    "says no": (
        *("SERVER_REFUSED", {"textDocument/rename": {"refused": "not this one"}}),
        *({}, RENAME, "write_file", [BY_HAND]),
    ),
    "a command": (
        *("SERVER_REFUSED", tidied(COMMAND), {}),
        ("code_action", {"filePath": "a.x", "title": "Tidy", "applyChanges": True}),
        *("write_file", [BY_HAND]),
    ),
    "disabled": (
        *("SERVER_REFUSED", tidied(DISABLED), {}),
        ("code_action", {"filePath": "a.x", "title": "Tidy", "applyChanges": True}),
        *("write_file", [BY_HAND]),
    ),
    "offers nothing": (
        *("NO_SERVER", {}, {"capabilities": LACKING}, RENAME, "server_status"),
        [("server_status", {"includeMissing": True}), BY_HAND],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_who_does_what_a_refusal_of_a_server_says_gets_on(tmp_path: Path, case: str) -> None:
    code, replies, orders, (tool, sent), said, then = CASES[case]
    with made_up(tmp_path, placed(replies, tmp_path), TREE, **orders) as it:
        error = it.answer(tool, **sent)["error"]
        assert (error["code"], said in error["hint"]) == (code, True), error
        assert it.held("a.x") == TREE["a.x"]
        for name, arguments in then:
            it.data(name, **arguments)
        assert it.held("a.x") == "one other\n"


@pytest.mark.parametrize("tool", ["rename_symbol", "find_references", "code_action"])
def test_who_has_no_server_goes_on_without_one(tmp_path: Path, tool: str) -> None:
    sent = {"rename_symbol": SENT, "find_references": {"filePath": "a.x", "name": "name"}}
    with world(tmp_path) as it:
        it.put("a.x", TREE["a.x"])
        error = it.answer(tool, **sent.get(tool, {"filePath": "a.x"}))["error"]
        assert (error["code"], "write_file" in error["hint"]) == ("NO_SERVER", True)
        it.data(BY_HAND[0], **BY_HAND[1])
        assert it.held("a.x") == "one other\n"


def test_a_change_that_brings_errors_is_made_without_them(tmp_path: Path) -> None:
    with served(tmp_path, pool_of(fake()), new_errors="deny") as it:
        it.put("a.x", "good\n")
        bad = {"filePath": "a.x", "content": "wrong\n", "applyChanges": True}
        error = it.answer("write_file", **bad)["error"]
        assert (error["code"], "a preview lists" in error["hint"]) == ("NEW_ERRORS", True)
        shown = it.data("write_file", **{**bad, "applyChanges": False})["workspaceUpdate"]
        assert shown["diagnostics"]["newCount"] == 1
        it.data("write_file", **{**bad, "content": "fine\n"})
        assert it.held("a.x") == "fine\n"


def test_a_change_that_no_server_has_judged_is_made_as_soon_as_a_person_wants_that(
    tmp_path: Path,
) -> None:
    asked = {"new_errors": "deny", "budget": 0.2, "limit": 2.0}
    with served(tmp_path, pool_of(fake({"hang": True})), **asked) as it:
        it.put("a.x", "good\n")
        sent = {"filePath": "a.x", "content": "fine\n", "applyChanges": True}
        error = it.answer("write_file", **sent)["error"]
        assert (error["code"], 'new_errors = "ask"' in error["hint"]) == ("NOT_JUDGED", True)
        assert it.held("a.x") == "good\n"
    with served(tmp_path, pool_of(fake()), new_errors="deny") as it:
        it.data("write_file", **sent)  # It has answered by now.
        assert it.held("a.x") == "fine\n"
