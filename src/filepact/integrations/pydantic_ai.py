"""The tools for agents of Pydantic AI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai import Tool

if TYPE_CHECKING:
    from filepact.faces.library.files import Files

__all__ = ["tools"]


def tools(files: Files, **options: Any) -> list[Tool[Any]]:
    """The tools over some files, for ``Agent(tools=...)``.

    Args:
        files: What they may read and change.
        options: As of `Files.tools`: ``tier``, ``max_level``, ``read_only``.
    """
    return [
        Tool.from_schema(one.call_async, one.name, one.description, dict(one.parameters))
        for one in files.tools(**options)
    ]
