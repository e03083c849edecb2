"""The review as an MCP App: what hosts that show such are told of its frame, and of the calls that it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "ANSWER",
    "APP_KEY",
    "APP_TOOLS",
    "SHOW",
    "app_capabilities",
    "app_resource",
    "app_tools",
    "knows",
    "shows_apps",
]

APP_KEY: Final = "io.modelcontextprotocol/ui"
"""The extension's name among capabilities."""

_MEDIA: Final = "text/html;profile=mcp-app"
_PLACE: Final = "ui://filepact/review"
SHOW: Final = "review_show"
ANSWER: Final = "review_answer"

APP_TOOLS: Final = frozenset({SHOW, ANSWER})
"""The names of the calls that the frame makes."""


def knows(capabilities: object, extension: str) -> dict[str, Any] | None:
    """The value that a client declares of an extension; None where it does not know it."""
    declared = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    wanted = declared.get(extension) if isinstance(declared, dict) else None
    return wanted if isinstance(wanted, dict) else None


def shows_apps(capabilities: object) -> bool:
    """Whether a client shows apps of the one kind that there is, by what it declares."""
    media = (knows(capabilities, APP_KEY) or {}).get("mimeTypes")
    return isinstance(media, list) and _MEDIA in media


def app_capabilities(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The server's capabilities for a client that shows apps."""
    extensions = {**plain.get("extensions", {}), APP_KEY: {}}
    return {**plain, "resources": {"listChanged": False}, "extensions": extensions}


def app_tools(described: Sequence[dict[str, Any]], leaving: frozenset[str]) -> list[dict[str, Any]]:
    """The tools as such a client is told them.

    Args:
        described: As every client is.
        leaving: The names of those whose changes may be left waiting.
    """
    shown = {"_meta": {"ui": {"resourceUri": _PLACE}}}
    listed = [{**one, **shown} if one["name"] in leaving else one for one in described]
    return [*listed, *_DESCRIBED] if leaving else listed


def _described(name: str, title: str, description: str, **properties: Any) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": ["change"]},
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
        "_meta": {"ui": {"resourceUri": _PLACE, "visibility": ["app"]}},
    }


_CHANGE: Final = {"type": "string", "description": "The id of a proposal"}
_DESCRIBED: Final = (
    _described(
        SHOW,
        "Show what waits",
        "For the frame of the review: a change that waits for the person, as they are shown it.",
        change=_CHANGE,
        page={"type": "integer", "description": "From 1 on", "default": 1},
    ),
    _described(
        ANSWER,
        "Ask the person",
        "For the frame of the review: has the person asked in a dialog about a change that waits. "
        "It decides nothing.",
        change=_CHANGE,
        hunks={"type": "string", "description": "Those that the person has marked, such as 1,3-5"},
    ),
)


def app_resource(method: str, wanted: str, document: Callable[[], str]) -> dict[str, Any] | None:
    """The result of a request about resources; None where there is no such resource.

    Args:
        method: What is asked for.
        wanted: Of a request for a resource its address.
        document: Makes the HTML of the frame.
    """
    facts: dict[str, Any] = {"uri": _PLACE, "mimeType": _MEDIA}
    # Nothing is loaded from elsewhere, and nothing is sent there.
    shown = {"_meta": {"ui": {"csp": {}, "prefersBorder": True}}}
    match method:
        case "resources/list":
            named = {**facts, "name": "review", "title": "Review of what waits", **shown}
            return {"resources": [named]}
        case "resources/templates/list":
            return {"resourceTemplates": []}
        case _ if wanted == _PLACE:
            return {"contents": [{**facts, "text": document(), **shown}]}
        case _:
            return None
