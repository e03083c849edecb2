"""What the tools of a solution answer, as JSON schemas."""

from __future__ import annotations

from typing import Any, Final, get_args

from filepact.lsp.diagnostics import Confirmation, Severity
from filepact.lsp.outcome import State
from filepact.lsp.servers import Role
from filepact.semantic.project import LoadedKind
from filepact.semantic.update import Kind, Scope

__all__ = ["DIAGNOSED", "LOADED", "STATUS", "SYNCED", "WRITTEN", "answer_of"]

_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}
_WHOLE: Final = {"type": "integer"}
_NUMBER: Final = {"type": "number"}
_MAYBE_TEXT: Final = {"type": ["string", "null"]}
_MAYBE_FLAG: Final = {"type": ["boolean", "null"]}


def _object(**properties: Any) -> dict[str, Any]:
    """An object that has all of these."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]}


def _list(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def _one_of(names: Any) -> dict[str, Any]:
    return {"enum": list(get_args(names))}


def answer_of(**data: Any) -> dict[str, Any]:
    """The schema of an envelope, by what its data has when the call has succeeded."""
    meta = _object(durationMs=_WHOLE, cancelled=_FLAG, timedOut=_FLAG, timeoutMs=_WHOLE)
    return _object(
        success=_FLAG,
        data=_or_null(_object(**data)),
        meta={**meta, "properties": {**meta["properties"], "news": _list(_TEXT)}},
        error=_or_null(_object(code=_TEXT, message=_TEXT, hint=_TEXT)),
    )


_FOUND: Final = _object(
    filePath=_TEXT,
    line=_WHOLE,
    column=_WHOLE,
    endLine=_WHOLE,
    endColumn=_WHOLE,
    severity=_one_of(Severity),
    id=_TEXT,
    source=_TEXT,
    message=_TEXT,
)

_UPDATE: Final = _object(
    kind=_one_of(Kind),
    updated=_FLAG,
    inWorkspaceBefore=_FLAG,
    inWorkspaceAfter=_FLAG,
    message=_MAYBE_TEXT,
    servers=_list(
        _object(
            name=_TEXT,
            kind=_one_of(Kind),
            event=_TEXT,
            confirmedBy=_one_of(Confirmation),
            revisionBefore=_WHOLE,
            revisionAfter=_WHOLE,
            ms=_NUMBER,
            message=_MAYBE_TEXT,
        )
    ),
    diagnostics=_or_null(
        _object(
            scope=_one_of(Scope),
            fresh=_FLAG,
            complete=_FLAG,
            compared=_FLAG,
            new=_list(_FOUND),
            fixed=_list(_FOUND),
            newCount=_WHOLE,
            fixedCount=_WHOLE,
            total={"type": ["integer", "null"]},
        )
    ),
)

_PAGING: Final = _object(skip=_WHOLE, take=_WHOLE, returned=_WHOLE, total=_WHOLE)

_COUNTS: Final = _object(error=_WHOLE, warning=_WHOLE, information=_WHOLE, hint=_WHOLE)

_ANSWERED: Final = _object(
    name=_TEXT,
    files=_WHOLE,
    fresh=_FLAG,
    complete=_FLAG,
    confirmedBy=_one_of(Confirmation),
    ms=_NUMBER,
    message=_MAYBE_TEXT,
)

DIAGNOSED: Final = answer_of(
    scope={"enum": ["file", "project"]},
    fresh=_FLAG,
    complete=_FLAG,
    counts=_COUNTS,
    diagnostics=_list(_FOUND),
    paging=_PAGING,
    servers=_list(_ANSWERED),
    message=_MAYBE_TEXT,
)
"""The answer of get_diagnostics."""

LOADED: Final = answer_of(
    loadedKind=_one_of(LoadedKind),
    loadedPath=_TEXT,
    root=_TEXT,
    ready=_FLAG,
    projects=_list(_TEXT),
    paging=_PAGING,
    files=_WHOLE,
    approximate=_FLAG,
    servers=_list(_ANSWERED),
    messages=_list(_TEXT),
)
"""The answer of load and reload."""

SYNCED: Final = answer_of(
    updated=_list(_TEXT),
    skipped=_list(_TEXT),
    paging=_PAGING,
    totalSynced=_WHOLE,
    revisionBefore=_WHOLE,
    revisionAfter=_WHOLE,
    fallbackToReload=_FLAG,
    fallbackReason=_MAYBE_TEXT,
)
"""The answer of sync."""

STATUS: Final = answer_of(
    root=_TEXT,
    solution=_TEXT,
    mode={"enum": ["auto", "off", "always"]},
    budgetMs=_WHOLE,
    servers=_list(
        _object(
            name=_TEXT,
            role=_one_of(Role),
            files=_list(_TEXT),
            installed=_FLAG,
            install=_TEXT,
            running=_list(
                _object(
                    root=_TEXT,
                    state=_one_of(State),
                    pid=_WHOLE,
                    version=_TEXT,
                    openDocuments=_WHOLE,
                    starts=_WHOLE,
                    startedInMs=_NUMBER,
                    firstReportInMs={"type": ["number", "null"]},
                    message=_MAYBE_TEXT,
                )
            ),
        )
    ),
    paging=_PAGING,
    message=_MAYBE_TEXT,
)
"""The answer of server_status."""

WRITTEN: Final = answer_of(
    filePath=_TEXT,
    changed=_FLAG,
    applied=_FLAG,
    created=_FLAG,
    filesChanged=_WHOLE,
    unifiedDiff=_MAYBE_TEXT,
    changedFiles=_list(_object(filePath=_TEXT, changeCount=_WHOLE, diff=_MAYBE_TEXT)),
    workspaceUpdate=_UPDATE,
    operation=_MAYBE_TEXT,
    pending=_or_null(_object(id=_TEXT, rule=_TEXT, message=_TEXT)),
    notes=_list(_TEXT),
    hints=_object(nextSteps=_list(_TEXT)),
)
"""The answer of write_file."""
