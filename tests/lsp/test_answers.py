"""Every request of a server is answered, and none of them changes a file."""

from __future__ import annotations

from typing import Any

import pytest

from filepact.lsp.answers import Answers
from filepact.lsp.failures import METHOD_NOT_FOUND, AnswerError

SETTINGS = {"python": {"analysis": {"mode": "strict"}}}


@pytest.fixture
def answers() -> Answers:
    return Answers("/house/p", SETTINGS)


@pytest.mark.parametrize(
    ("section", "value"),
    [
        ("python.analysis", {"mode": "strict"}),
        ("python.analysis.mode", "strict"),
        ("python.analysis.mode.deeper", None),
        ("rust", None),
        ("", SETTINGS),
        (None, SETTINGS),
    ],
)
def test_settings_are_answered_by_section(
    answers: Answers, section: str | None, value: object
) -> None:
    items = {"items": [{"section": section, "scopeUri": "file:///house/p"}, {"section": "rust"}]}
    assert answers.answer("workspace/configuration", items) == [value, None]


def test_edits_are_refused_with_a_reason_and_kept(answers: Answers) -> None:
    said = answers.answer("workspace/applyEdit", {"edit": {"changes": {}}})
    assert said["applied"] is False
    assert said["failureReason"]
    assert list(answers.refused_edits) == [{"changes": {}}]
    assert answers.answer("workspace/applyEdit", {})["applied"] is False


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("window/workDoneProgress/create", None),
        ("window/showMessageRequest", None),
        ("window/showDocument", {"success": False}),
        ("workspace/semanticTokens/refresh", None),
        ("workspace/workspaceFolders", [{"uri": "file:///house/p", "name": "p"}]),
    ],
)
def test_what_servers_ask_is_answered(answers: Answers, method: str, expected: object) -> None:
    params = {"token": 1, "message": "choose", "actions": [{"title": "a"}]}
    assert answers.answer(method, params) == expected


def test_what_no_client_knows_is_refused_as_unknown(answers: Answers) -> None:
    with pytest.raises(AnswerError) as caught:
        answers.answer("rust-analyzer/magic", {})
    assert caught.value.code == METHOD_NOT_FOUND


def test_capabilities_come_and_go(answers: Answers) -> None:
    watch = {"watchers": [{"globPattern": "**/*.py"}]}
    one: dict[str, Any] = {
        "id": "w",
        "method": "workspace/didChangeWatchedFiles",
        "registerOptions": watch,
    }
    two = {"id": "d", "method": "textDocument/diagnostic"}
    answers.answer("client/registerCapability", {"registrations": [one, two]})
    assert [found.id for found in answers.registered("textDocument/diagnostic")] == ["d"]
    assert answers.watchers.count == 1
    gone = [{"id": "w", "method": one["method"]}, {"id": "unknown", "method": "x"}]
    answers.answer("client/unregisterCapability", {"unregisterations": gone})
    assert answers.watchers.count == 0
    answers.answer("client/unregisterCapability", {"unregistrations": [{"id": "d"}]})
    assert answers.registered("textDocument/diagnostic") == ()


@pytest.mark.parametrize("one", [{"id": 1, "method": "m"}, {"id": "1", "method": None}])
def test_a_registration_of_another_shape_is_refused(answers: Answers, one: dict) -> None:
    with pytest.raises(TypeError):
        answers.answer("client/registerCapability", {"registrations": [one]})


def test_registrations_have_an_end(answers: Answers) -> None:
    many = [{"id": str(number), "method": "m"} for number in range(2_001)]
    with pytest.raises(ValueError, match="too many"):
        answers.answer("client/registerCapability", {"registrations": many})


def test_work_begins_and_ends(answers: Answers) -> None:
    assert not answers.working
    answers.progress({"token": 1, "value": {"kind": "begin"}})
    answers.progress({"token": "1", "value": {"kind": "begin"}})
    answers.progress({"token": 1, "value": {"kind": "report"}})
    answers.progress({"token": 1, "value": {"kind": "end"}})
    assert answers.working
    answers.progress({"token": "1", "value": {"kind": "end"}})
    assert not answers.working
    answers.progress({"token": 2, "value": []})
    assert not answers.working


def test_refreshes_are_counted_and_messages_kept(answers: Answers) -> None:
    assert answers.answer("workspace/diagnostic/refresh", None) is None
    assert answers.refreshes == 1
    for number in range(100):
        answers.say({"message": f"{number} " * 1_000})
    assert len(answers.messages) == 50
    assert len(answers.messages[-1]) == 500
