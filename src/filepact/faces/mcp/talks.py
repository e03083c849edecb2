"""Which conversation of its host a call belongs to, where the host says so.

What a session knows of files goes on with its conversation when the server is started anew, and
is told apart between agents that speak through one connection.  None of these names is proof of
anything: they decide only whose text a change is merged from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["conversation_in", "conversation_of_server"]

_KEYS: Final = {
    # One for each agent, sub-agents too.
    "threadId": "codex",
    "ai.opencode/sessionID": "",
    "vscode.conversationId": "",
    "antigravity.google/conversation_id": "",
}
"""Notes that hosts put beside a call, by the beginning of the client's name where they are short."""

_VARIABLES: Final = {"claude-code": "CLAUDE_CODE_SESSION_ID"}
"""Variables that hosts set for the servers that they start, by the client's name.

Programs hand on what they inherit, so a variable counts for its own host's client alone.
"""

_LONGEST: Final = 200


def conversation_in(client: str, meta: Mapping[str, Any] | None) -> str:
    """The host's name for a call's conversation; empty where the call has none.

    Args:
        client: The client's name for itself.
        meta: The call's notes.
    """
    for key, whose in _KEYS.items():
        value = (meta or {}).get(key)
        if isinstance(value, str) and client.startswith(whose) and 0 < len(value) <= _LONGEST:
            return f"{key} {value}"
    return ""


def conversation_of_server(client: str, variables: Mapping[str, str]) -> str:
    """The host's name for the conversation that it has started a server for; empty for none.

    Args:
        client: The client's name for itself.
        variables: Those that the server was started with.
    """
    name = _VARIABLES.get(client, "")
    value = variables.get(name, "")
    return f"{name} {value}" if 0 < len(value) <= _LONGEST else ""
