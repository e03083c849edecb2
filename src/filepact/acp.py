"""The public names for programs that speak the Agent Client Protocol."""

from __future__ import annotations

from filepact.config.person import read_settings, state_folder
from filepact.config.settings import Settings
from filepact.faces.acp.agent import AgentFiles
from filepact.faces.acp.check.inside import check_client
from filepact.faces.acp.check.outcome import Report, Verdict
from filepact.faces.acp.client import ClientFileSystem, Question
from filepact.faces.acp.files import Change
from filepact.text.position import Position
from filepact.workspace.buffers import Delivery, Typed

__all__ = [
    "AgentFiles",
    "Change",
    "ClientFileSystem",
    "Delivery",
    "Position",
    "Question",
    "Report",
    "Settings",
    "Typed",
    "Verdict",
    "check_client",
    "read_settings",
    "state_folder",
]
