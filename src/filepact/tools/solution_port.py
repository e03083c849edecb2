"""What the tools of a solution that change nothing work with: its servers, and what they say."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, get_args

from filepact.lsp.diagnostics import Severity
from filepact.lsp.outcome import weakest
from filepact.tools.view import by_weight, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from filepact.lsp.diagnostics import Diagnostic, Report
    from filepact.semantic.insight import Insight
    from filepact.tools.registry import Call
    from filepact.tools.view import Page, View
    from filepact.workspace.workspace import Workspace

__all__ = ["Solution"]

_SEVERITIES: tuple[Severity, ...] = get_args(Severity)
_OFF = "language servers are switched off"
_UNKNOWN = "no installed language server knows the file"


class Solution:
    """A solution for one call.

    Args:
        workspace: Whose first root is the solution's.
        insight: Its servers; None where they are switched off.
        name: The solution's file in that root; empty for the root itself.
        call: Who calls.
    """

    def __init__(
        self, workspace: Workspace, insight: Insight | None, name: str, call: Call
    ) -> None:
        self.root = workspace.guard.roots[0].path
        self._workspace = workspace
        self._insight = insight
        self._name = name
        self._call = call

    def diagnostics(
        self,
        path: str,
        *,
        view: View,
        page: Page,
        least: Severity,
        prefix: str,
        seconds: float,
    ) -> dict[str, Any]:
        """What servers find in a file now.

        Args:
            path: The file.
            view: How it is shown.
            page: Which part of the list.
            least: Nothing that is less bad.
            prefix: Only what is called so, or begins so; empty for all.
            seconds: How long the servers have.

        Raises:
            FilepactError: The path may not be used, or leads to no file.
        """
        reports: Sequence[Report] = ()
        message: str | None = _OFF
        if self._insight is not None:
            reports = self._insight.look(
                [path],
                session=self._call.session,
                seconds=seconds,
                cancelled=self._call.cancelled,
            )
            message = None if reports else _UNKNOWN
        else:
            self._workspace.guard.find_file(path, "read", agent=self._call.session.agent)
        found = [one for report in reports if report.fresh for one in report.diagnostics]
        wanted = sorted(_filtered(found, least, prefix), key=by_weight)
        part, paging = page.of(wanted)
        counts = Counter(one.severity for one in found)
        return {
            "scope": "file",
            "fresh": bool(reports) and all(one.fresh for one in reports),
            "complete": bool(reports) and all(one.fresh and one.complete for one in reports),
            "counts": {severity: counts[severity] for severity in _SEVERITIES},
            "diagnostics": [view.found(one) for one in part],
            "paging": paging,
            "servers": _by_server(reports),
            "message": message,
        }


def _filtered(found: Iterable[Diagnostic], least: Severity, prefix: str) -> Iterable[Diagnostic]:
    wanted = _SEVERITIES[: _SEVERITIES.index(least) + 1]
    start = prefix.lower()
    return (one for one in found if one.severity in wanted and one.code.lower().startswith(start))


def _by_server(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """How sure it is what each server says."""
    names = dict.fromkeys(one.server for one in reports)
    told: list[dict[str, Any]] = []
    for name in names:
        its = [one for one in reports if one.server == name]
        told.append(
            {
                "name": name,
                "files": len(its),
                "fresh": all(one.fresh for one in its),
                "complete": all(one.fresh and one.complete for one in its),
                "confirmedBy": weakest(its),
                "ms": milliseconds(max(one.seconds for one in its)),
                "message": next((one.reason for one in its if one.reason), None),
            }
        )
    return told
