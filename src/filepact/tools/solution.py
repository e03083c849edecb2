"""The toolset of a solution: write_file, which shows before it does, and the tools that look."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from filepact.lsp.diagnostics import Severity
from filepact.tools.registry import ParameterName, tool
from filepact.tools.solution_answers import (
    AnswerFormat,
    AnswerPage,
    DiagnosticsAnswer,
    LoadAnswer,
    PathStyle,
    StatusAnswer,
    SyncAnswer,
    WriteAnswer,
    facts,
    schema_of,
)
from filepact.tools.solution_engine import SolutionChange
from filepact.tools.solution_port import SolutionCall

__all__ = ["SOLUTION_TOOLS"]

Style = Annotated[
    PathStyle,
    Field(description="Paths in the answer: absolute, or relative to the solution's root."),
    ParameterName("pathStyle"),
]
Skip = Annotated[int, Field(ge=0, description="Entries to leave out, for the next page.")]
Wait = Annotated[
    float,
    Field(ge=0, le=600, description="How long to wait for servers."),
    ParameterName("waitSeconds"),
]
Take = Annotated[int, Field(ge=1, le=1_000, description="Most entries to answer.")]


@tool(
    title="Write file",
    level="moderate",
    tier="essential",
    idempotent=True,
    destructive=True,
    output=schema_of(WriteAnswer),
)
def write_file(
    draft: SolutionChange,
    file_path: Annotated[
        str,
        Field(min_length=1, description="File, absolute or relative to the solution's root."),
        ParameterName("filePath", ("path",)),
    ],
    content: Annotated[str, Field(description="The whole new text.")],
    apply_changes: Annotated[
        bool, Field(description="Write it; otherwise only show it."), ParameterName("applyChanges")
    ] = False,
    create_if_missing: Annotated[
        bool,
        Field(description="Make the file, and its folders, if there is none."),
        ParameterName("createIfMissing"),
    ] = False,
    include_diff: Annotated[
        bool, Field(description="Answer with unified diffs."), ParameterName("includeDiff")
    ] = True,
    max_diff_chars: Annotated[
        int,
        Field(ge=0, description="Most characters of a diff; 0 for all."),
        ParameterName("maxDiffChars"),
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


@tool(title="Get diagnostics", level="safe", tier="essential", output=schema_of(DiagnosticsAnswer))
def get_diagnostics(
    solution: SolutionCall,
    file_path: Annotated[
        str | None,
        Field(min_length=1, description="File; leave it out for the whole solution."),
        ParameterName("filePath", ("path",)),
    ] = None,
    min_severity: Annotated[
        Severity, Field(description="Nothing that is less bad."), ParameterName("minSeverity")
    ] = "hint",
    id_prefix: Annotated[
        str, Field(description="Only ids that begin so, such as CS80."), ParameterName("idPrefix")
    ] = "",
    skip: Skip = 0,
    take: Take = 100,
    wait_seconds: Wait = 30.0,
    path_style: Style = "absolute",
) -> Any:
    """List what language servers find wrong, the errors first.

    Servers that do not run are started and waited for. Only where `fresh` is true is the list about
    the present text; `counts` has everything that was found, before filters.
    """
    return facts(
        solution.diagnostics(
            file_path or "",
            view=AnswerFormat(solution.root, path_style),
            page=AnswerPage(skip, take),
            least=min_severity,
            prefix=id_prefix,
            seconds=wait_seconds,
        )
    )


@tool(title="Load solution", level="safe", tier="standard", output=schema_of(LoadAnswer))
def load(
    solution: SolutionCall,
    solution_path: Annotated[
        str | None,
        Field(min_length=1, description="Solution, project or folder; usually left out."),
        ParameterName("solutionPath", ("path",)),
    ] = None,
    skip: Skip = 0,
    take: Take = 100,
    wait_seconds: Wait = 30.0,
    path_style: Style = "absolute",
) -> Any:
    """Open the solution for the language servers, start them, and wait until they answer.

    Not needed before other calls, but the first of them is quicker then. `messages` says what could
    not be read, and what lies outside and is not covered.
    """
    view, page = AnswerFormat(solution.root, path_style), AnswerPage(skip, take)
    return facts(solution.load(solution_path or "", view=view, page=page, seconds=wait_seconds))


@tool(title="Reload solution", level="safe", tier="standard", output=schema_of(LoadAnswer))
def reload(
    solution: SolutionCall,
    skip: Skip = 0,
    take: Take = 100,
    wait_seconds: Wait = 30.0,
    path_style: Style = "absolute",
) -> Any:
    """Start all language servers anew with the files as they are, and wait until they answer.

    For when a server is stale or has failed; otherwise sync is enough.
    """
    view, page = AnswerFormat(solution.root, path_style), AnswerPage(skip, take)
    return facts(solution.reload(view=view, page=page, seconds=wait_seconds))


@tool(title="Synchronise", level="safe", tier="standard", output=schema_of(SyncAnswer))
def sync(
    solution: SolutionCall,
    force_sync: Annotated[
        bool, Field(description="Tell of every file, changed or not."), ParameterName("forceSync")
    ] = False,
    skip: Skip = 0,
    take: Take = 100,
    path_style: Style = "absolute",
) -> Any:
    """Tell the language servers what other programs have written.

    Done by every other call as well; here it says which files these were.
    """
    return facts(
        solution.sync(
            force=force_sync,
            view=AnswerFormat(solution.root, path_style),
            page=AnswerPage(skip, take),
        )
    )


@tool(title="Server status", level="safe", tier="standard", output=schema_of(StatusAnswer))
def server_status(
    solution: SolutionCall,
    include_missing: Annotated[
        bool,
        Field(description="Servers that are not installed, too, and how to get them."),
        ParameterName("includeMissing"),
    ] = False,
    skip: Skip = 0,
    take: Take = 100,
    path_style: Style = "absolute",
) -> Any:
    """Say which language servers there are, and what they are doing."""
    view, page = AnswerFormat(solution.root, path_style), AnswerPage(skip, take)
    return facts(solution.status(missing=include_missing, view=view, page=page))


SOLUTION_TOOLS = (write_file, get_diagnostics, load, reload, sync, server_status)
"""The toolset `solution`, in the order in which it is shown."""
