"""The first answers of a session, given while the protocol package is still being imported.

That import takes longer than some clients wait.  What is asked first (who are you, which tools
do you have) needs nothing of it, so it is answered from here; every message goes to the package
all the same, and its own answer to a question that was answered is dropped.  Anything that is not
exactly an ordinary opening is left to the package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.faces.mcp.lines import Message
    from filepact.tools.registry import Tool

__all__ = ["Opening", "describe_tool"]

_HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_MODERN_VERSION: Final = "2026-07-28"

_META: Final = "io.modelcontextprotocol/"
_VERSION_KEY: Final = _META + "protocolVersion"
_CAPABILITIES_KEY: Final = _META + "clientCapabilities"
_CLIENT_KEY: Final = _META + "clientInfo"
_SERVER_KEY: Final = _META + "serverInfo"

_CAPABILITIES: Final = {"tools": {"listChanged": False}}

_FILE_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "before": {"type": ["string", "null"]},
        "after": {"type": ["string", "null"]},
        "added": {"type": "integer"},
        "removed": {"type": "integer"},
    },
    "required": ["path", "before", "after", "added", "removed"],
}
_RECEIPT_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "operation": {"type": ["string", "null"]},
        "status": {"enum": ["applied", "preview", "pending", "unchanged"]},
        "files": {"type": "array", "items": _FILE_SCHEMA},
    },
    "required": ["operation", "status", "files"],
}


def describe_tool(tool: Tool) -> dict[str, Any]:
    """A tool as the protocol lists it."""
    described: dict[str, Any] = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.schema,
        "annotations": {
            "readOnlyHint": tool.kind == "reads",
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": False,
        },
    }
    if tool.kind == "writes":
        described["outputSchema"] = _RECEIPT_SCHEMA
    return described


class Opening:
    """Answers the first questions of one client.

    Args:
        tools: The tools as the protocol lists them.
    """

    def __init__(
        self, *, name: str, version: str, instructions: str, tools: Sequence[dict[str, Any]]
    ) -> None:
        self._server = {"name": name, "version": version}
        self._instructions = instructions
        self._tools = list(tools)
        self._era: Literal["", "handshake", "modern", "other"] = ""

    def answer(self, message: Message) -> dict[str, Any] | None:
        """The result for a request, or None when it is not for here.

        The first request decides the era of the connection, as it does in the package.
        """
        if "method" not in message or "id" not in message:
            return None
        method, params = message["method"], message.get("params") or {}
        modern = _ordinary_envelope(params)
        if not self._era:
            if method == "initialize" and _ordinary_handshake(params):
                self._era = "handshake"
                return self._initialized(params["protocolVersion"])
            self._era = "modern" if modern and method != "initialize" else "other"
        if self._era == "modern" and modern:
            return self._modern(method, params)
        if self._era == "handshake" and _VERSION_KEY not in params.get("_meta", {}):
            return self._handshake(method, params)
        return None

    def _initialized(self, asked: str) -> dict[str, Any]:
        return {
            "protocolVersion": asked if asked in _HANDSHAKE_VERSIONS else _HANDSHAKE_VERSIONS[-1],
            "capabilities": _CAPABILITIES,
            "serverInfo": self._server,
            "instructions": self._instructions,
        }

    def _handshake(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if params.keys() - {"_meta"}:
            return None
        if method == "tools/list":
            return {"tools": self._tools}
        return {} if method == "ping" else None

    def _modern(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if params.keys() - {"_meta"}:
            return None
        envelope = {
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {_SERVER_KEY: self._server},
        }
        if method == "tools/list":
            return {"tools": self._tools, **envelope}
        if method == "server/discover":
            return {
                "supportedVersions": [_MODERN_VERSION],
                "capabilities": _CAPABILITIES,
                "instructions": self._instructions,
                **envelope,
            }
        return None


def _ordinary_handshake(params: dict[str, Any]) -> bool:
    """Whether the package would accept these parameters of ``initialize`` without doubt."""
    return (
        params.keys() <= {"protocolVersion", "capabilities", "clientInfo"}
        and isinstance(params.get("protocolVersion"), str)
        and _ordinary_capabilities(params.get("capabilities"))
        and _ordinary_client(params.get("clientInfo"))
    )


def _ordinary_envelope(params: dict[str, Any]) -> bool:
    """The same for the ``_meta`` of a request without a handshake."""
    meta = params.get("_meta")
    return (
        isinstance(meta, dict)
        and meta.keys() <= {_VERSION_KEY, _CAPABILITIES_KEY, _CLIENT_KEY}
        and meta.get(_VERSION_KEY) == _MODERN_VERSION
        and _ordinary_capabilities(meta.get(_CAPABILITIES_KEY))
        and (_CLIENT_KEY not in meta or _ordinary_client(meta[_CLIENT_KEY]))
    )


def _ordinary_client(client: object) -> bool:
    return (
        isinstance(client, dict)
        and {"name", "version"} <= client.keys()
        and client.keys() <= {"name", "version", "title", "websiteUrl", "description"}
        and all(isinstance(value, str) for value in client.values())
    )


def _ordinary_capabilities(capabilities: object) -> bool:
    """Objects where the protocol has objects and flags where it has flags."""
    if not isinstance(capabilities, dict):
        return False
    for name, value in capabilities.items():
        if not isinstance(value, dict):
            return False
        if name == "roots":
            if not all(isinstance(flag, bool) for flag in value.values()):
                return False
        elif name in ("experimental", "extensions"):
            if not all(isinstance(settings, dict) for settings in value.values()):
                return False
        elif not _only_objects(value):
            return False
    return True


def _only_objects(value: object) -> bool:
    return isinstance(value, dict) and all(map(_only_objects, value.values()))
