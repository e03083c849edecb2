"""Every request of a server is answered, and none of them changes a file."""

from __future__ import annotations

from typing import Any

import pytest

from filepact_diagnostics.lsp.capabilities import ServerCapabilities
from filepact_diagnostics.lsp.failures import RequestFailedError
from filepact_wire.messages import METHOD_NOT_FOUND

SETTINGS = {"python": {"analysis": {"mode": "strict"}}}


@pytest.fixture
def capabilities() -> ServerCapabilities:
    return ServerCapabilities("/house/p", SETTINGS)


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
    capabilities: ServerCapabilities, section: str | None, value: object
) -> None:
    items = {"items": [{"section": section, "scopeUri": "file:///house/p"}, {"section": "rust"}]}
    assert capabilities.answer("workspace/configuration", items) == [value, None]


def test_edits_are_refused_with_a_reason(capabilities: ServerCapabilities) -> None:
    said = capabilities.answer("workspace/applyEdit", {"edit": {"changes": {}}})
    assert said["applied"] is False
    assert said["failureReason"]
    assert capabilities.answer("workspace/applyEdit", {})["applied"] is False


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("window/workDoneProgress/create", None),
        ("window/showMessageRequest", None),
        ("window/showDocument", {"success": False}),
        ("workspace/semanticTokens/refresh", None),
        ("workspace/diagnostic/refresh", None),
        ("workspace/workspaceFolders", [{"uri": "file:///house/p", "name": "p"}]),
    ],
)
def test_what_servers_ask_is_answered(
    capabilities: ServerCapabilities, method: str, expected: object
) -> None:
    params = {"token": 1, "message": "choose", "actions": [{"title": "a"}]}
    assert capabilities.answer(method, params) == expected


def test_what_no_client_knows_is_refused_as_unknown(capabilities: ServerCapabilities) -> None:
    with pytest.raises(RequestFailedError) as caught:
        capabilities.answer("rust-analyzer/magic", {})
    assert caught.value.code == METHOD_NOT_FOUND


def test_capabilities_come_and_go(capabilities: ServerCapabilities) -> None:
    watch = {"watchers": [{"globPattern": "**/*.py"}]}
    one: dict[str, Any] = {
        "id": "w",
        "method": "workspace/didChangeWatchedFiles",
        "registerOptions": watch,
    }
    two = {"id": "d", "method": "textDocument/diagnostic"}
    capabilities.answer("client/registerCapability", {"registrations": [one, two]})
    assert [found.id for found in capabilities.registered("textDocument/diagnostic")] == ["d"]
    assert capabilities.watchers.count == 1
    gone = [{"id": "w", "method": one["method"]}, {"id": "unknown", "method": "x"}]
    capabilities.answer("client/unregisterCapability", {"unregisterations": gone})
    assert capabilities.watchers.count == 0
    capabilities.answer("client/unregisterCapability", {"unregistrations": [{"id": "d"}]})
    assert capabilities.registered("textDocument/diagnostic") == ()


@pytest.mark.parametrize("one", [{"id": 1, "method": "m"}, {"id": "1", "method": None}])
def test_a_registration_of_another_shape_is_refused(
    capabilities: ServerCapabilities, one: dict
) -> None:
    with pytest.raises(TypeError):
        capabilities.answer("client/registerCapability", {"registrations": [one]})


def test_registrations_have_an_end(capabilities: ServerCapabilities) -> None:
    many = [{"id": str(number), "method": "m"} for number in range(2_001)]
    with pytest.raises(ValueError, match="too many"):
        capabilities.answer("client/registerCapability", {"registrations": many})
