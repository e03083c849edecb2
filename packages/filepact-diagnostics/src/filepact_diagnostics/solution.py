"""The toolset of a solution: write_file, which shows before it does, and the tools that look."""

from __future__ import annotations

from typing import Annotated, Any

from filepact.tools.parameters import about
from filepact.tools.registry import ParameterName, tool
from filepact_diagnostics.lsp.diagnostics import Severity
from filepact_diagnostics.semantic.server_edits import FORMAT, NamePosition
from filepact_diagnostics.solution_answers import (
    ActionAnswer,
    AnswerFormat,
    AnswerPage,
    DiagnosticsAnswer,
    LoadAnswer,
    PathStyle,
    ReferencesAnswer,
    StatusAnswer,
    SyncAnswer,
    WriteAnswer,
    facts,
    schema_of,
)
from filepact_diagnostics.solution_engine import SolutionChange
from filepact_diagnostics.solution_port import SolutionCall

__all__ = ["SOLUTION_TOOLS"]

Style = Annotated[
    PathStyle,
    about(description="Of paths in the answer."),
    ParameterName("pathStyle"),
]
_SECONDS = 60.0
"""How long servers have for a question about places in files, their start included."""

_DIFF = 20_000
"""Most characters of the diff of a change that a server makes."""

File = Annotated[
    str,
    about(min_length=1, description="Absolute, or relative to the root."),
    ParameterName("filePath", ("path",)),
]
Apply = Annotated[
    bool, about(description="Write it, not only show it."), ParameterName("applyChanges")
]
Name = Annotated[
    str | None,
    about(min_length=1, description="Or Class.name; line, column where it is not clear."),
]
Line = Annotated[int | None, about(ge=1, description="From 1.")]
Column = Annotated[int | None, about(ge=1, description="In characters, from 1.")]
Skip = Annotated[int, about(ge=0, description="Where it begins.")]
Wait = Annotated[
    float,
    about(ge=0, le=600, description="For servers."),
    ParameterName("waitSeconds"),
]
Take = Annotated[int, about(ge=1, le=1_000, description="How many.")]


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
    file_path: File,
    content: Annotated[str, about(description="The whole new text.")],
    apply_changes: Apply = False,
    create_if_missing: Annotated[
        bool,
        about(description="Make file and folders if there is none."),
        ParameterName("createIfMissing"),
    ] = False,
    include_diff: Annotated[
        bool, about(description="Answer with unified diffs."), ParameterName("includeDiff")
    ] = True,
    max_diff_chars: Annotated[
        int, about(ge=0, description="0 for all."), ParameterName("maxDiffChars")
    ] = 50_000,
    path_style: Style = "absolute",
) -> str:
    """Preview, or with applyChanges: true write, the whole text of a file of the solution.

    A preview changes nothing and says which diagnostics the text would add and remove. An existing
    file keeps its encoding, line ends and mode. `applied`: it is on the disk; `updated`: the
    language servers have taken it up.
    """
    draft.show(path_style, diff=include_diff, most=max_diff_chars)
    return draft.write(file_path, content, apply=apply_changes, create=create_if_missing)


@tool(
    title="Rename symbol",
    level="moderate",
    tier="essential",
    destructive=True,
    output=schema_of(WriteAnswer),
)
def rename_symbol(
    draft: SolutionChange,
    file_path: File,
    new_name: Annotated[
        str, about(min_length=1, description="Its other name."), ParameterName("newName")
    ],
    name: Name = None,
    line: Line = None,
    column: Column = None,
    apply_changes: Apply = False,
    leave_uses: Annotated[
        bool,
        about(description="Also if some uses would keep the old name."),
        ParameterName("leaveUses"),
    ] = False,
) -> str:
    """Rename what a file declares or uses, in all files: one change, undone as one.

    `notes` names files that hold the word and stay. Paths are relative.
    """
    draft.show("relative", diff=True, most=_DIFF)
    queries, path = draft.queries(file_path, _SECONDS)
    edits = queries.rename(path, NamePosition(line, column, name or ""), new_name)
    return draft.carry_out(path, edits, apply=apply_changes, leave=leave_uses)


@tool(
    title="Find references",
    level="safe",
    tier="essential",
    output=schema_of(ReferencesAnswer),
)
def find_references(
    solution: SolutionCall,
    file_path: File,
    name: Name = None,
    line: Line = None,
    column: Column = None,
    skip: Skip = 0,
    take: Take = 100,
) -> Any:
    """List where a name of a file is used and declared, as a language server knows it.

    `hidden` counts uses in files that you may not read.
    """
    return facts(
        solution.references(
            file_path,
            NamePosition(line, column, name or ""),
            view=AnswerFormat(solution.root, "relative"),
            page=AnswerPage(skip, take),
            seconds=_SECONDS,
        )
    )


@tool(
    title="Code action",
    level="moderate",
    tier="standard",
    destructive=True,
    output=schema_of(ActionAnswer),
)
def code_action(
    draft: SolutionChange,
    file_path: File,
    title: Annotated[
        str | None, about(min_length=1, description="As listed; left out, titles are listed.")
    ] = None,
    line: Line = None,
    end_line: Annotated[
        int | None, about(ge=1, description="The last one."), ParameterName("endLine")
    ] = None,
    apply_changes: Apply = False,
) -> str:
    """List what servers offer for lines of a file (fixes, formatting), or do one."""
    draft.show("relative", diff=True, most=_DIFF)
    queries, path = draft.queries(file_path, _SECONDS)
    first = line or 1
    last = end_line or first
    if title is None:
        draft.offer(queries.actions(path, first, last))
        return "list code actions"
    if title == FORMAT:
        return draft.carry_out(path, queries.format(path), apply=apply_changes)
    return draft.carry_out(path, queries.action(path, first, last, title), apply=apply_changes)


@tool(title="Get diagnostics", level="safe", tier="essential", output=schema_of(DiagnosticsAnswer))
def get_diagnostics(
    solution: SolutionCall,
    file_path: Annotated[
        str | None,
        about(min_length=1, description="None for the whole solution."),
        ParameterName("filePath", ("path",)),
    ] = None,
    min_severity: Annotated[
        Severity, about(description="Nothing that is less bad."), ParameterName("minSeverity")
    ] = "hint",
    id_prefix: Annotated[
        str, about(description="Only ids that begin so, such as CS80."), ParameterName("idPrefix")
    ] = "",
    skip: Skip = 0,
    take: Take = 100,
    wait_seconds: Wait = 30.0,
    path_style: Style = "absolute",
) -> Any:
    """List what language servers find wrong, the errors first.

    Only where `fresh` is true is the list about the present text; `counts` is before filters.
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
        about(min_length=1, description="Solution, project or folder."),
        ParameterName("solutionPath", ("path",)),
    ] = None,
    skip: Skip = 0,
    take: Take = 100,
    wait_seconds: Wait = 30.0,
    path_style: Style = "absolute",
) -> Any:
    """Open the solution for the language servers, start them, and wait until they answer.

    Not needed, but the next call is quicker then. `messages` says what cannot be read or lies outside.
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
    """Start all language servers anew, and wait until they answer.

    When a server is stale or failed; else sync is enough.
    """
    view, page = AnswerFormat(solution.root, path_style), AnswerPage(skip, take)
    return facts(solution.reload(view=view, page=page, seconds=wait_seconds))


@tool(title="Synchronise", level="safe", tier="standard", output=schema_of(SyncAnswer))
def sync(
    solution: SolutionCall,
    force_sync: Annotated[
        bool,
        about(description="Of every file, changed or ignored too."),
        ParameterName("forceSync"),
    ] = False,
    skip: Skip = 0,
    take: Take = 100,
    path_style: Style = "absolute",
) -> Any:
    """Tell the language servers what other programs have written.

    Every other call does it too; this one says which files.
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
        about(description="Not installed ones, too."),
        ParameterName("includeMissing"),
    ] = False,
    skip: Skip = 0,
    take: Take = 100,
    path_style: Style = "absolute",
) -> Any:
    """Say which language servers there are, and what they do."""
    view, page = AnswerFormat(solution.root, path_style), AnswerPage(skip, take)
    return facts(solution.status(missing=include_missing, view=view, page=page))


SOLUTION_TOOLS = (
    *(write_file, rename_symbol, find_references, code_action),
    *(get_diagnostics, load, reload, sync, server_status),
)
"""The toolset `solution`, in the order in which it is shown."""
