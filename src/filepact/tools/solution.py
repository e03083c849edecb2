"""The tools of a solution: write_file, which shows before it does."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from filepact.tools.registry import Alias, tool
from filepact.tools.solution_engine import Planned
from filepact.tools.solution_schema import WRITTEN
from filepact.tools.view import PathStyle

__all__ = ["write_file"]

Style = Annotated[
    PathStyle,
    Field(description="Paths in the answer: absolute, or relative to the solution's root."),
    Alias("pathStyle"),
]


@tool(
    title="Write file",
    level="moderate",
    tier="essential",
    idempotent=True,
    destructive=True,
    output=WRITTEN,
)
def write_file(
    draft: Planned,
    file_path: Annotated[
        str,
        Field(min_length=1, description="File, absolute or relative to the solution's root."),
        Alias("filePath", ("path",)),
    ],
    content: Annotated[str, Field(description="The whole new text.")],
    apply_changes: Annotated[
        bool, Field(description="Write it; otherwise only show it."), Alias("applyChanges")
    ] = False,
    create_if_missing: Annotated[
        bool,
        Field(description="Make the file, and its folders, if there is none."),
        Alias("createIfMissing"),
    ] = False,
    include_diff: Annotated[
        bool, Field(description="Answer with unified diffs."), Alias("includeDiff")
    ] = True,
    max_diff_chars: Annotated[
        int, Field(ge=0, description="Most characters of a diff; 0 for all."), Alias("maxDiffChars")
    ] = 50_000,
    path_style: Style = "absolute",
) -> str:
    """Preview, or with applyChanges: true write, the whole text of a file of the solution.

    A preview changes nothing and says which diagnostics the text would add and remove. An existing
    file keeps its encoding, line ends and mode. `applied` (on the disk) and `workspaceUpdate.updated`
    (taken up by the language servers) are two facts.
    """
    draft.show(path_style, diff=include_diff, most=max_diff_chars)
    return draft.write(file_path, content, apply=apply_changes, create=create_if_missing)
