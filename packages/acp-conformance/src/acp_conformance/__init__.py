"""Checks how a client of the Agent Client Protocol serves files to its agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acp_conformance.checks import CHECKS, GROUPS
from acp_conformance.program import check_program
from acp_conformance.report import Report, SuiteError, Verdict
from acp_conformance.scratch import Plan

if TYPE_CHECKING:
    from acp_conformance.client import check_client

__all__ = [
    "CHECKS",
    "GROUPS",
    "Plan",
    "Report",
    "SuiteError",
    "Verdict",
    "check_client",
    "check_program",
]


def __getattr__(name: str) -> Any:
    if name == "check_client":
        # The only part that needs the package `agent-client-protocol`.
        from acp_conformance.client import check_client  # noqa: PLC0415

        return check_client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
