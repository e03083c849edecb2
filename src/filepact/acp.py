"""The public names for programs that speak the Agent Client Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from filepact.config.person import read_settings, state_folder
from filepact.config.settings import Settings
from filepact.text.lines import Position
from filepact.workspace.buffers import Delivery, Typed
from filepact_acp.agent import AgentFiles
from filepact_acp.client import ClientFileSystem
from filepact_acp.files import Change, Question

if TYPE_CHECKING:
    from acp_conformance import Report, Verdict, check_client

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


def __getattr__(name: str) -> Any:
    if name in {"Report", "Verdict", "check_client"}:
        try:
            import acp_conformance  # noqa: PLC0415 - a distribution of its own
        except ImportError as missing:
            raise ImportError(
                f"{name} is part of acp-conformance, which is not installed; install it from "
                "filepact's repository: pip install ./packages/acp-conformance"
            ) from missing
        return getattr(acp_conformance, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
