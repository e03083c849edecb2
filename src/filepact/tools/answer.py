"""Renders the receipt of a change: what happened, the diff, and how to undo it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from filepact.text.diff import cut_diff
from filepact.text.page import PAGE, cut_to, size_of

if TYPE_CHECKING:
    from filepact.workspace.receipt import Receipt

__all__ = ["fitted", "receipt_facts", "render_receipt"]

_DIFF = 8_000  # most characters of a diff in an answer; people see the whole with `filepact diff`


def render_receipt(receipt: Receipt, *, page: int = PAGE, diagnostics: str = "") -> str:
    """The answer for a reader: one line that says what happened, notes, and the diff.

    Args:
        receipt: What came of it.
        page: What it may take.
        diagnostics: What language servers say of it; empty where they say nothing.
    """
    said = "\n".join(filter(None, [_headline(receipt), *receipt.notes, diagnostics]))
    said = cut_to(said, page * 3 // 4)
    diff = fitted(receipt.step or receipt.diff, page - size_of(said) - 1)
    return f"{said}\n{diff}" if diff else said


def fitted(diff: str, room: int) -> str:
    """As much of a diff as there is room for, with what is left out said."""
    limit = min(_DIFF, room)
    shown = cut_diff(diff, limit)
    while (taken := size_of(shown)) > room:
        limit = min(limit * room // taken, limit - 1)
        shown = cut_diff(diff, limit)
    return shown


def _headline(receipt: Receipt) -> str:
    done = receipt.summary[:1].upper() + receipt.summary[1:]
    if receipt.status == "applied":
        said = "Done" if receipt.confirmed else "Done, but not confirmed"
        return (
            f"{said}: {receipt.summary}. Operation {receipt.operation}; "
            f"undo with `filepact undo {receipt.operation}`."
        )
    if receipt.status == "preview":
        return f"Preview, nothing changed: {receipt.summary}."
    if receipt.status == "pending":
        return (
            f"Waiting for a person ({receipt.rule}), nothing changed yet: {receipt.summary}. "
            f"Proposal {receipt.operation}; the person finds it with `filepact pending` and decides "
            "there, and a later answer of these tools tells you. Until then these "
            "tools show you the files as if it were done: go on from there, do not send it again."
        )
    if receipt.status == "withdrawn":
        return f"{done}: nothing waits of it any more, and nothing was changed."
    return f"{done}: nothing to change, the file already is like that."


def receipt_facts(receipt: Receipt) -> dict[str, object]:
    """The receipt as a small object for programs."""
    return {
        "operation": receipt.operation,
        "status": receipt.status,
        "confirmed": receipt.confirmed,
        "files": [
            {
                "path": file.path,
                "before": file.before,
                "after": file.after,
                "added": file.added,
                "removed": file.removed,
            }
            for file in receipt.files
        ],
    }
