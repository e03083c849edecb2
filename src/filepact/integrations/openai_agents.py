"""The tools for agents of the OpenAI Agents SDK, and the editor behind its ``apply_patch``."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from agents import FunctionTool
from agents.editor import ApplyPatchResult

from filepact.errors import FilepactError
from filepact.tools.answers import failure, render_receipt

if TYPE_CHECKING:
    from agents.editor import ApplyPatchOperation
    from agents.tool_context import ToolContext

    from filepact.faces.library.agent_tool import AgentTool
    from filepact.faces.library.files import Files

__all__ = ["Editor", "tools"]


def tools(files: Files, **options: Any) -> list[FunctionTool]:
    """The tools over some files, for ``Agent(tools=...)``.

    Args:
        files: What they may read and change.
        options: As of `Files.tools`: ``tier``, ``max_level``, ``read_only``.
    """
    return [
        FunctionTool(
            name=one.name,
            description=one.description,
            params_json_schema=dict(one.parameters),
            on_invoke_tool=partial(_call, one),
            strict_json_schema=False,  # parameters may be left out
        )
        for one in files.tools(**options)
    ]


async def _call(tool: AgentTool, _context: ToolContext[Any], arguments: str) -> str:
    try:
        sent = json.loads(arguments or "{}")
    except ValueError:
        sent = None
    if not isinstance(sent, dict):
        return "INVALID_PARAMS: the arguments are not a JSON object\nSend one object."
    return await tool.call_async(**sent)


class Editor:
    """The editor of ``ApplyPatchTool(editor=Editor(files))``: patches are placed, checked and recorded.

    Args:
        files: What it may change.
    """

    def __init__(self, files: Files) -> None:
        self._files = files

    async def create_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._apply(f"*** Add File: {operation.path}", operation.diff)

    async def update_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        head = f"*** Update File: {operation.path}"
        moved = getattr(operation, "move_to", None)  # newer versions have it
        return await self._apply(f"{head}\n*** Move to: {moved}" if moved else head, operation.diff)

    async def delete_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._apply(f"*** Delete File: {operation.path}", None)

    async def _apply(self, head: str, diff: str | None) -> ApplyPatchResult:
        parts = ["*** Begin Patch", head, *([diff.rstrip("\n")] if diff else []), "*** End Patch"]
        try:
            receipt = await asyncio.to_thread(self._files.patch, "\n".join(parts) + "\n")
        except FilepactError as error:
            return ApplyPatchResult(status="failed", output=failure(error).text)
        return ApplyPatchResult(status="completed", output=render_receipt(receipt))
