"""The face for agents: an MCP server over standard input and output, both protocol eras."""

from __future__ import annotations

from filepact.faces.mcp.server import INSTRUCTIONS_LIMIT, serve

__all__ = ["INSTRUCTIONS_LIMIT", "serve"]
