"""The tools for agents of LangChain and LangGraph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.tools import StructuredTool

if TYPE_CHECKING:
    from filepact.faces.library.files import Files

__all__ = ["tools"]


def tools(files: Files, **options: Any) -> list[StructuredTool]:
    """The tools over some files, for ``create_agent(tools=...)`` or ``model.bind_tools``.

    Args:
        files: What they may read and change.
        options: As of `Files.tools`: ``tier``, ``max_level``, ``read_only``.
    """
    return [
        StructuredTool(
            name=one.name,
            description=one.description,
            args_schema=dict(one.parameters),
            func=one,
            coroutine=one.call_async,
        )
        for one in files.tools(**options)
    ]
