"""The face for agents: an MCP server over standard input and output, both protocol eras."""

from __future__ import annotations

from filepact_mcp.server import INSTRUCTIONS_LIMIT, serve

__all__ = ["INSTRUCTIONS_LIMIT", "serve"]
