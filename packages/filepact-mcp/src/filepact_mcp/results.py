"""The results of requests in either protocol era, and the names that stand in them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from filepact_mcp.app import app_capabilities, app_resource, app_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from filepact.tools.registry import CallResult, Tool, Toolset
    from filepact_wire.messages import Message

__all__ = [
    "BATCH_VERSION",
    "CAPABILITIES_KEY",
    "CLIENT_KEY",
    "HANDSHAKE_VERSIONS",
    "MODERN_VERSION",
    "RECEIPT_KEY",
    "TASKS_KEY",
    "VERSIONS",
    "VERSION_KEY",
    "ServerInfo",
    "ToolCache",
    "ToolResponse",
    "call_result",
    "describe_tool",
    "elicitation_modes",
]

MODERN_VERSION: Final = "2026-07-28"
BATCH_VERSION: Final = "2025-03-26"
"""The one in which several messages may come as one."""
HANDSHAKE_VERSIONS: Final = ("2024-11-05", BATCH_VERSION, "2025-06-18", "2025-11-25")
VERSIONS: Final = (*HANDSHAKE_VERSIONS, MODERN_VERSION)
"""All that are served."""

_RESERVED: Final = "io.modelcontextprotocol/"
VERSION_KEY: Final = _RESERVED + "protocolVersion"
CAPABILITIES_KEY: Final = _RESERVED + "clientCapabilities"
CLIENT_KEY: Final = _RESERVED + "clientInfo"
_SERVER_KEY: Final = _RESERVED + "serverInfo"
TASKS_KEY: Final = _RESERVED + "tasks"
"""The extension's name among capabilities."""

_KEPT: Final = {"ttlMs": 300_000, "cacheScope": "private"}

_CAPABILITIES: Final = {"tools": {"listChanged": False}}

_DEPTH: Final = 4
"""The envelope of an answer, what is in it, and parts of that, are listed with their members."""

RECEIPT_KEY: Final = "filepact/receipt"
"""Where a change's facts for programs stand in the ``_meta`` of its result.

Not in ``structuredContent``: several hosts show their model that alone, where there is some, and the
diff and every remark about the change stand in the text.
"""


def describe_tool(tool: Tool) -> dict[str, Any]:
    """A tool as the protocol lists it."""
    described: dict[str, Any] = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": _brief(tool.schema),
        "annotations": _hints(tool),
    }
    if tool.output is not None:
        described["outputSchema"] = _outline(tool.output)
    return described


def _brief(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A compact schema without what goes without saying, for the list that every model is sent.

    That a text is not empty, a number not negative and a flag off unless it is sent nobody has to be
    told, and other names are refused in words, or understood.
    """
    shaped = {
        name: value
        for name, value in schema.items()
        if name not in ("additionalProperties", "minLength", "minItems", "maxItems")
        and not (name == "minimum" and value in (0, 1))
        and not (name == "default" and value is False)
    }
    if "properties" in shaped:
        shaped["properties"] = {
            name: _brief(described) for name, described in shaped["properties"].items()
        }
    if "items" in shaped:
        shaped["items"] = _brief(shaped["items"])
    return shaped


def _outline(schema: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """The schema of an answer as it is listed: that members are always there goes without saying, and small parts show themselves."""
    kept = {name: value for name, value in schema.items() if name != "required" or not depth}
    if "items" in kept:
        kept["items"] = _outline(kept["items"], depth)
    if "properties" in kept and depth < _DEPTH:
        members = kept["properties"].items()
        kept["properties"] = {name: _outline(part, depth + 1) for name, part in members}
    else:
        kept.pop("properties", None)
    return kept


def _hints(tool: Tool) -> dict[str, bool]:
    """Return the hints that differ from the defaults; the protocol gives two of the four a meaning for writers alone."""
    if tool.kind == "reads":
        return {"readOnlyHint": True, "openWorldHint": False}
    hints = {"openWorldHint": False}
    if not tool.destructive:
        hints["destructiveHint"] = False
    if tool.idempotent:
        hints["idempotentHint"] = True
    return hints


def call_result(outcome: CallResult) -> dict[str, Any]:
    """A tool's answer as the handshake era has it; the modern one wraps it."""
    result: dict[str, Any] = {"content": _content(outcome), "isError": outcome.failed}
    if outcome.receipt is not None and outcome.whole:
        result["structuredContent"] = outcome.receipt
    elif outcome.receipt is not None:
        result["_meta"] = {RECEIPT_KEY: outcome.receipt}
    return result


def _content(outcome: CallResult) -> list[dict[str, Any]]:
    """The answer in blocks: one of text mostly, and what is said about bytes in one of its own."""
    block = {"type": "text", "text": outcome.text}
    if outcome.mime:
        block = {"type": "image", "data": outcome.text, "mimeType": outcome.mime}
    return [block, {"type": "text", "text": outcome.note}] if outcome.note else [block]


def _nothing() -> None:
    """An answer that tells nothing besides."""


class ToolResponse(NamedTuple):
    """The answer to a call.

    Attributes:
        message: It.
        sent: To be called when it is sent.
        lost: To be called when it is not.
    """

    message: Message
    sent: Callable[[], None] = _nothing
    lost: Callable[[], None] = _nothing


class ToolCache:
    """The tools, which are made when they are first listed or called.

    Args:
        open_tools: Makes them; called once.

    Attributes:
        changing: The names of those that change files; none before they are made.
        write_records: Puts calls that are over into the audit log, where that is not done for each by itself.
    """

    def __init__(self, open_tools: Callable[[], Toolset]) -> None:
        self._open = open_tools
        self.write_records: Callable[[], None] = _nothing
        self._lock = threading.Lock()
        self._toolbox: Toolset | None = None
        self.changing: frozenset[str] = frozenset()

    def toolbox(self) -> Toolset:
        """The tools themselves."""
        with self._lock:
            if self._toolbox is None:
                self._toolbox = self._open()
                changing = (one.name for one in self._toolbox.tools if one.kind != "reads")
                self.changing = frozenset(changing)
            return self._toolbox

    def described(self) -> list[dict[str, Any]]:
        """The tools as the protocol lists them."""
        return [describe_tool(tool) for tool in self.toolbox().tools]

    def names(self) -> frozenset[str]:
        """The names of all."""
        return frozenset(one.name for one in self.toolbox().tools)

    def leaving(self) -> frozenset[str]:
        """The names of the tools whose changes may be left waiting."""
        return frozenset(one.name for one in self.toolbox().tools if one.port == "draft")


class ServerInfo:
    """The results that say who the server is and what it has.

    Args:
        name: The server's name as hosts show it.
        version: The program's version.
        instructions: What an agent should know before its first call.
        tools: Gives the tools as the protocol lists them.
        leaving: Gives the names of those whose changes may be left waiting.
        app: Makes the HTML of the frame of the review; None where there is none.
    """

    def __init__(
        self,
        *,
        name: str,
        version: str,
        instructions: str,
        tools: Callable[[], Sequence[dict[str, Any]]],
        leaving: Callable[[], frozenset[str]] = frozenset,
        app: Callable[[], str] | None = None,
    ) -> None:
        self._leaving = leaving
        self._app = app
        self.name = name
        self.version = version
        self.instructions = instructions
        self.tools = tools
        self._server = {"name": name, "version": version}

    @property
    def has_app(self) -> bool:
        """Whether there is a frame of the review, for clients that show such."""
        return self._app is not None

    def initialized(self, asked: str, *, apps: bool = False) -> dict[str, Any]:
        """The answer to ``initialize``, for the protocol version that the client asked for."""
        return {
            "protocolVersion": asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": app_capabilities(_CAPABILITIES) if apps else _CAPABILITIES,
            "serverInfo": self._server,
            "instructions": self.instructions,
        }

    def listed(self, *, apps: bool = False) -> dict[str, Any]:
        """The answer to ``tools/list`` in the handshake era."""
        tools = self.tools()
        return {"tools": app_tools(tools, self._leaving()) if apps else tools}

    def listed_modern(self, *, apps: bool = False) -> dict[str, Any]:
        """The answer to ``tools/list`` in the modern era."""
        return self.cached(self.listed(apps=apps))

    def resource(self, method: str, wanted: str) -> dict[str, Any] | None:
        """The answer to a request about resources in the handshake era; None where there is no such."""
        return None if self._app is None else app_resource(method, wanted, self._app)

    def cached(self, result: dict[str, Any]) -> dict[str, Any]:
        """A result as the modern era has what a client may keep: it changes only with another start."""
        return self.modern({**result, **_KEPT})

    def discovered(self, *, apps: bool = False) -> dict[str, Any]:
        """The answer to ``server/discover``."""
        plain: dict[str, Any] = {**_CAPABILITIES, "extensions": {TASKS_KEY: {}}}
        return self.modern(
            {
                "supportedVersions": [*VERSIONS],
                "capabilities": app_capabilities(plain) if apps else plain,
                "instructions": self.instructions,
                **_KEPT,
            }
        )

    def asking(self, requests: Mapping[str, Any], state: str) -> dict[str, Any]:
        """The answer to a call of the modern era for which the client is to ask its person."""
        result = self.modern({"inputRequests": dict(requests), "requestState": state})
        return {**result, "resultType": "input_required"}

    def modern(self, result: dict[str, Any]) -> dict[str, Any]:
        """A result with what the modern era adds to each."""
        meta = {**result.get("_meta", {}), _SERVER_KEY: self._server}
        return {**result, "resultType": "complete", "_meta": meta}


def elicitation_modes(capabilities: object, version: str) -> frozenset[str]:
    """The modes in which a client asks its person, by what it declares in a protocol version."""
    declared = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    if not isinstance(declared, dict) or version < "2025-06-18":
        return frozenset()
    known = ("form",) if version < "2025-11-25" else ("form", "url")
    named = frozenset(one for one in known if isinstance(declared.get(one), dict))
    # One that names no mode knows forms alone.
    return named if {"form", "url"} & declared.keys() else frozenset({"form"})
