"""The public names for programs that speak the Agent Client Protocol."""

from __future__ import annotations

from filepact.faces.acp.agent import AgentFiles
from filepact.faces.acp.client import ClientFileSystem

__all__ = ["AgentFiles", "ClientFileSystem"]
