"""What an answer shows of paths, differences and findings, as its caller wants to see them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from filepact.text.diff import cut_diff, quote_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.lsp.diagnostics import Diagnostic, Severity
    from filepact.semantic.update import Findings, Took, WorkspaceUpdate

__all__ = ["MOST_LISTED", "Page", "PathStyle", "View", "by_weight", "milliseconds"]

_T = TypeVar("_T")

PathStyle = Literal["absolute", "relative"]

MOST_LISTED: Final = 50
"""New or fixed findings that are listed in the answer to one change; all of them are counted."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list.

    Attributes:
        skip: How many entries are left out at the beginning.
        take: Most entries that are answered.
    """

    skip: int = 0
    take: int = 100

    def of(self, entries: Sequence[_T]) -> tuple[list[_T], dict[str, int]]:
        """The part, and what it is a part of."""
        part = list(entries[self.skip : self.skip + self.take])
        facts = {"skip": self.skip, "take": self.take, "returned": len(part), "total": len(entries)}
        return part, facts


@dataclass(frozen=True, slots=True)
class View:
    """How paths and differences are shown.

    Attributes:
        root: The folder of the solution, absolute.
        style: Absolute paths, or such that count from the root; what lies outside is absolute.
        diff: Whether differences are shown at all.
        most: Most characters of one difference; 0 for all.
    """

    root: str
    style: PathStyle = "absolute"
    diff: bool = True
    most: int = 50_000

    def path(self, shown: str) -> str:
        """A path that is absolute or counts from the root."""
        whole = shown if shown.startswith("/") else os.path.normpath(f"{self.root}/{shown}")
        if self.style == "absolute":
            return whole
        if whole == self.root:
            return "."
        inside = whole.startswith(f"{self.root.rstrip('/')}/")
        return whole[len(self.root.rstrip("/")) + 1 :] if inside else whole

    def difference(self, diff: str, shown: str) -> str | None:
        """One file's unified diff as it is answered: its own names, and no longer than wanted.

        Args:
            diff: As the workspace makes it.
            shown: The file's name in it.
        """
        return cut_diff(_named(diff, shown, self.path(shown)), self.most) if self.diff else None

    def found(self, one: Diagnostic) -> dict[str, Any]:
        """A finding; lines and columns begin at 1, columns count characters, the end is outside."""
        return {
            "filePath": self.path(one.path),
            "line": one.start.line + 1,
            "column": one.start.column + 1,
            "endLine": one.end.line + 1,
            "endColumn": one.end.column + 1,
            "severity": one.severity,
            "id": one.code,
            "source": one.source,
            "message": one.message,
        }

    def update(self, update: WorkspaceUpdate) -> dict[str, Any]:
        """How a change was taken."""
        findings = update.findings
        return {
            "kind": update.kind,
            "updated": update.updated,
            "inWorkspaceBefore": update.in_workspace_before,
            "inWorkspaceAfter": update.in_workspace_after,
            "message": update.message,
            "servers": [_took(one) for one in update.servers],
            "diagnostics": None if findings is None else self._findings(findings),
        }

    def _findings(self, findings: Findings) -> dict[str, Any]:
        new = sorted(findings.new, key=by_weight)
        fixed = sorted(findings.fixed, key=by_weight)
        return {
            "scope": findings.scope,
            "fresh": findings.fresh,
            "complete": findings.complete,
            "compared": findings.compared,
            "new": [self.found(one) for one in new[:MOST_LISTED]],
            "fixed": [self.found(one) for one in fixed[:MOST_LISTED]],
            "newCount": len(new),
            "fixedCount": len(fixed),
            "total": findings.total,
        }


_WEIGHT: Final[dict[Severity, int]] = {"error": 0, "warning": 1, "information": 2, "hint": 3}


def by_weight(one: Diagnostic) -> tuple[object, ...]:
    """Errors before warnings; then file by file, from the top to the bottom."""
    return (_WEIGHT[one.severity], one.path, one.start, one.source, one.code, one.message)


def milliseconds(seconds: float) -> float:
    """A time as it is answered."""
    return round(seconds * 1000, 1)


def _took(one: Took) -> dict[str, Any]:
    return {
        "name": one.server,
        "kind": one.kind,
        "event": one.event,
        "confirmedBy": one.confirmed_by,
        "revisionBefore": one.revision_before,
        "revisionAfter": one.revision_after,
        "ms": milliseconds(one.seconds),
        "message": one.message or None,
    }


def _named(diff: str, shown: str, name: str) -> str:
    """A diff with another name in its header; what differs stays as it is."""
    start = diff.find("\n@@ ") + 1
    head, body = (diff[:start], diff[start:]) if start else (diff, "")
    label = quote_name(name) + ("\t" if " " in name else "")
    lines: list[str] = []
    for line in head.split("\n"):
        if line.startswith(("--- ", "+++ ")) and line[4:] != "/dev/null":
            lines.append(f"{line[:4]}{label}")
        elif line.startswith("diff --git "):
            lines.append(f"diff --git {quote_name(name)} {quote_name(name)}")
        elif line.startswith("Binary file "):
            lines.append(line.replace(quote_name(shown), quote_name(name), 1))
        else:
            lines.append(line)
    return "\n".join(lines) + body
