"""What a caller can do next, once it knows how the servers took a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filepact.semantic.update import WorkspaceUpdate
    from filepact.workspace.receipt import Status

__all__ = ["next_steps"]

_AFTER = {
    "pending": "The file is written, so do not write it again: get_diagnostics waits for the servers.",
    "stale": "The file is written, and a server still has the old text: call reload, then "
    "get_diagnostics.",
    "failed": "The file is written, and a server is not there: server_status says why, reload "
    "starts it anew.",
}


def next_steps(status: Status, update: WorkspaceUpdate, *, created: bool) -> list[str]:
    """Sentences for whoever sent a change, the most important one first; none if all is well.

    Args:
        status: What came of the change.
        update: How the servers took it, or would take it.
        created: Whether the file is new.
    """
    if status == "unchanged":
        return []
    if status == "pending":
        return ["Go on with other work; a later answer tells in meta.news what the person said."]
    steps: list[str] = []
    if status == "preview":
        steps.append("Send the same with applyChanges: true to write it.")
        if any(one.confirmed_by == "none" for one in update.servers):
            steps.append(
                "Not every server has answered: load waits for them, then preview again to know "
                "what the text would break."
            )
    elif update.kind in _AFTER:
        steps.append(_AFTER[update.kind])
    if update.servers and created and not update.in_workspace_after:
        steps.append("No project includes this file: add it to one, or move it into its folder.")
    if update.kind == "none" and not update.servers:
        steps.append(
            "No server has looked at it: server_status with includeMissing: true names those that "
            "can be installed; `filepact doctor` tells the person which wait to be trusted."
        )
    return steps
