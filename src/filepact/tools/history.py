"""The tool with which an agent looks at its own changes and takes them back: history."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from filepact.domain.operation import Operation
from filepact.errors import InvalidParamsError
from filepact.text.page import cut_to, size_of
from filepact.tools.answer import fitted, receipt_facts, render_receipt
from filepact.tools.edit import DryRun
from filepact.tools.registry import Written, tool
from filepact.workspace.past import Past

if TYPE_CHECKING:
    from filepact.domain.operation import Proposal

__all__ = ["history"]

_LISTED = 20


@tool(title="Own changes", level="moderate", tier="standard", destructive=True)
def history(
    past: Past,
    action: Annotated[
        Literal["log", "diff", "undo", "redo", "status"],
        Field(description="status: what waits for a person, and what was decided."),
    ],
    change: Annotated[
        str | None, Field(min_length=2, description="Its id; else the newest.")
    ] = None,
    wait: Annotated[
        int, Field(ge=0, le=50, description="For status: seconds to wait for a decision.")
    ] = 0,
    dry_run: DryRun = False,
) -> str | Written:
    """List, show, undo or redo changes that you have made yourself.

    undo of a change that waits takes it back.
    """
    if wait and action != "status":
        raise InvalidParamsError("wait goes with action status", hint="Leave it out.")
    if action in ("undo", "redo"):
        go_back = past.undo if action == "undo" else past.redo
        receipt = go_back(change, dry_run=dry_run)
        return Written(render_receipt(receipt, page=past.page), receipt_facts(receipt))
    if action == "diff":
        return _shown(past, past.change(change))
    if change is not None:
        return _line(past.change(change), time.time())
    if action == "log":
        done = past.log(_LISTED + 1)
        lines = [_line(one, time.time()) for one in done[:_LISTED]]
        if len(done) > _LISTED:
            lines.append(f"[the newest {_LISTED}; name others by their ids]")
        return cut_to("\n".join(lines), past.page) or "You have changed nothing yet."
    lines = [_line(one, time.time()) for one in past.status(wait)]
    return cut_to("\n".join(lines), past.page) or "Nothing waits."


def _shown(past: Past, change: Operation | Proposal) -> str:
    line = _line(change, time.time())
    return f"{line}\n{fitted(past.diff(change), past.page - size_of(line) - 1)}"


def _line(change: Operation | Proposal, now: float) -> str:
    """One change: id, what became of it, how long ago, and what it does."""
    seconds = max(0, int(now - change.created))
    ago = f"{seconds} s" if seconds < 120 else f"{seconds // 60:,} min"
    return f"{change.id} {_state(change)} | {ago} ago | {change.summary}"


def _state(change: Operation | Proposal) -> str:
    if isinstance(change, Operation):
        if change.undone_by is not None:
            return f"undone by {change.undone_by}"
        by = ", approved by a person" if change.approved_by else ""
        return change.state.replace("_", " ") + by
    if change.state == "proposed":
        return f"waits for a person ({change.rule})"
    if change.state == "superseded":
        return f"superseded by {change.superseded_by}"
    return {"committed": "approved"}.get(change.state, change.state) + (
        f": {change.reason}" if change.reason else ""
    )
