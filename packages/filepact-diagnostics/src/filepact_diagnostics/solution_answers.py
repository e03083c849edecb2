"""Answers of a solution's tools: as values, as objects for programs, and their JSON schemas.

The schemas are made of the dataclasses, so both say the same.  Names are in camel case outside.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from pydantic import ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from filepact.text.diff import quote_name
from filepact.text.diff_lines import cut_diff
from filepact.values import dataclass, field, fields, is_dataclass

# The schemas are made of the annotations, so these are needed at run time.
from filepact_diagnostics.lsp.diagnostics import Confirmation, ServerState, Severity  # noqa: TC001
from filepact_diagnostics.lsp.spec import Role  # noqa: TC001
from filepact_diagnostics.semantic.updates import Kind, LoadedKind, Scope  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from filepact_diagnostics.lsp.diagnostics import Diagnostic
    from filepact_diagnostics.semantic.updates import (
        ReferenceList,
        ServerUpdate,
        UpdateDiagnostics,
        WorkspaceUpdate,
    )

__all__ = [
    "ActionAnswer",
    "ActionItem",
    "AnswerFormat",
    "AnswerHints",
    "AnswerPage",
    "ChangedFile",
    "DiagnosticCounts",
    "DiagnosticsAnswer",
    "LoadAnswer",
    "PathStyle",
    "PendingProposal",
    "ProcessAnswer",
    "ReferencesAnswer",
    "ServerPackage",
    "ServerSummary",
    "StatusAnswer",
    "SyncAnswer",
    "WriteAnswer",
    "by_weight",
    "facts",
    "milliseconds",
    "schema_of",
]

_T = TypeVar("_T")

PathStyle = Literal["absolute", "relative"]

_MOST_LISTED: Final = 50
"""New or fixed findings that are listed in the answer to one change; all of them are counted."""

_WEIGHT: Final[dict[Severity, int]] = {"error": 0, "warning": 1, "information": 2, "hint": 3}


class _Answer:
    """A part of an answer; outside, its fields have names in camel case."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(alias_generator=to_camel)


# -- parts of several answers ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Finding(_Answer):
    """A server's finding; lines and columns begin at 1, columns count characters, the end is outside."""

    file_path: str
    line: int
    column: int
    end_line: int
    end_column: int
    severity: Severity
    id: str
    source: str
    message: str


@dataclass(frozen=True, slots=True)
class _Paging(_Answer):
    skip: int
    take: int
    returned: int
    total: int


@dataclass(frozen=True, slots=True)
class ServerSummary(_Answer):
    """The state of one server's answer."""

    name: str
    files: int
    fresh: bool
    complete: bool
    confirmed_by: Confirmation
    ms: float
    message: str | None


# -- the answers ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DiagnosticCounts(_Answer):
    """How many findings there are before filters."""

    error: int
    warning: int
    information: int
    hint: int


@dataclass(frozen=True, slots=True)
class DiagnosticsAnswer(_Answer):
    """The answer of get_diagnostics."""

    scope: Literal["file", "project"]
    fresh: bool
    complete: bool
    counts: DiagnosticCounts
    diagnostics: list[_Finding]
    paging: _Paging
    servers: list[ServerSummary]
    message: str | None


@dataclass(frozen=True, slots=True)
class LoadAnswer(_Answer):
    """The answer of load and reload."""

    loaded_kind: LoadedKind
    loaded_path: str
    root: str
    ready: bool
    projects: list[str]
    paging: _Paging
    files: int
    approximate: bool
    servers: list[ServerSummary]
    messages: list[str]


@dataclass(frozen=True, slots=True)
class SyncAnswer(_Answer):
    """The answer of sync."""

    updated: list[str]
    skipped: list[str]
    paging: _Paging
    total_synced: int
    revision_before: int
    revision_after: int
    fallback_to_reload: bool
    fallback_reason: str | None


@dataclass(frozen=True, slots=True)
class ProcessAnswer(_Answer):
    """One process of a server."""

    root: str
    state: ServerState
    pid: int
    version: str
    open_documents: int
    starts: int
    started_in_ms: float
    first_report_in_ms: float | None
    message: str | None


@dataclass(frozen=True, slots=True)
class ServerPackage(_Answer):
    """A server that there is, or how to get it."""

    name: str
    role: Role
    files: list[str]
    installed: bool
    install: str
    running: list[ProcessAnswer]


@dataclass(frozen=True, slots=True)
class StatusAnswer(_Answer):
    """The answer of server_status."""

    root: str
    solution: str
    mode: Literal["auto", "off", "always"]
    budget_ms: int
    servers: list[ServerPackage]
    paging: _Paging
    message: str | None


@dataclass(frozen=True, slots=True)
class ChangedFile(_Answer):
    """One file of a change."""

    file_path: str
    change_count: int
    diff: str | None


@dataclass(frozen=True, slots=True)
class _UpdatedServer(_Answer):
    name: str
    kind: Kind
    event: str
    confirmed_by: Confirmation
    revision_before: int
    revision_after: int
    ms: float
    message: str | None


@dataclass(frozen=True, slots=True)
class _Findings(_Answer):
    scope: Scope
    fresh: bool
    complete: bool
    compared: bool
    new: list[_Finding]
    fixed: list[_Finding]
    new_count: int
    fixed_count: int
    total: int | None


@dataclass(frozen=True, slots=True)
class _Update(_Answer):
    kind: Kind
    updated: bool
    in_workspace_before: bool
    in_workspace_after: bool
    message: str | None
    servers: list[_UpdatedServer]
    diagnostics: _Findings | None


@dataclass(frozen=True, slots=True)
class PendingProposal(_Answer):
    """A change that waits for a person."""

    id: str
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class AnswerHints(_Answer):
    """Advice on the next step."""

    next_steps: list[str]


@dataclass(frozen=True, slots=True)
class WriteAnswer(_Answer):
    """The answer of write_file."""

    file_path: str
    changed: bool
    applied: bool
    created: bool
    files_changed: int
    unified_diff: str | None
    changed_files: list[ChangedFile]
    workspace_update: _Update
    operation: str | None
    pending: PendingProposal | None
    notes: list[str]
    hints: AnswerHints


@dataclass(frozen=True, slots=True)
class ActionItem(_Answer):
    """A code action that a server offers."""

    title: str
    kind: str
    server: str
    disabled: str | None


@dataclass(frozen=True, slots=True)
class ActionAnswer(_Answer):
    """The answer of code_action: what is offered, or what one of these changes."""

    actions: list[ActionItem]
    applied: bool
    operation: str | None
    change: WriteAnswer | None


@dataclass(frozen=True, slots=True)
class _Reference(_Answer):
    file_path: str
    line: int
    column: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class ReferencesAnswer(_Answer):
    """The answer of find_references."""

    name: str
    references: list[_Reference]
    paging: _Paging
    files: int
    hidden: int
    outside: int
    server: str


# -- how a caller wants to see them -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """A part of a list.

    Attributes:
        skip: How many entries are left out at the beginning.
        take: Most entries that are answered.
    """

    skip: int = 0
    take: int = 100

    def of(self, entries: Sequence[_T]) -> tuple[list[_T], _Paging]:
        """The part, and what it is a part of."""
        part = list(entries[self.skip : self.skip + self.take])
        return part, _Paging(self.skip, self.take, len(part), len(entries))


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """How paths, differences and findings are shown.

    Attributes:
        root: The folder of the solution, absolute.
        style: Absolute paths, or such that count from the root; what lies outside is absolute.
        diff: Whether differences are shown at all.
        most: Most characters of one difference; 0 for all.
    """

    root: str
    style: PathStyle = "absolute"
    diff: bool = True
    most: int = 50_000

    def path(self, shown: str) -> str:
        """A path that is absolute or counts from the root."""
        whole = shown if shown.startswith("/") else os.path.normpath(f"{self.root}/{shown}")
        if self.style == "absolute":
            return whole
        if whole == self.root:
            return "."
        inside = whole.startswith(f"{self.root.rstrip('/')}/")
        return whole[len(self.root.rstrip("/")) + 1 :] if inside else whole

    def difference(self, diff: str, shown: str) -> str | None:
        """One file's unified diff as it is answered: its own names, and no longer than wanted.

        Args:
            diff: As the workspace makes it.
            shown: The file's name in it.
        """
        return cut_diff(_named(diff, shown, self.path(shown)), self.most) if self.diff else None

    def found(self, found: Sequence[Diagnostic]) -> list[_Finding]:
        """Findings, as they are answered."""
        return [
            _Finding(
                file_path=self.path(one.path),
                line=one.start.line + 1,
                column=one.start.column + 1,
                end_line=one.end.line + 1,
                end_column=one.end.column + 1,
                severity=one.severity,
                id=one.code,
                source=one.source,
                message=one.message,
            )
            for one in found
        ]

    def references(self, found: ReferenceList, page: AnswerPage) -> ReferencesAnswer:
        """Where a name is used, as it is answered."""
        part, paging = page.of(found.found)
        return ReferencesAnswer(
            name=found.name,
            references=[
                _Reference(
                    file_path=self.path(one.path),
                    line=one.start.line + 1,
                    column=one.start.column + 1,
                    end_column=one.end.column + 1,
                    text=one.text,
                )
                for one in part
            ],
            paging=paging,
            files=len({one.path for one in found.found}),
            hidden=found.hidden,
            outside=found.outside,
            server=found.server,
        )

    def update(self, update: WorkspaceUpdate) -> _Update:
        """The servers' update after a change, as it is answered."""
        return _Update(
            kind=update.kind,
            updated=update.updated,
            in_workspace_before=update.in_workspace_before,
            in_workspace_after=update.in_workspace_after,
            message=update.message,
            servers=[_updated(one) for one in update.servers],
            diagnostics=None if update.findings is None else self._findings(update.findings),
        )

    def _findings(self, findings: UpdateDiagnostics) -> _Findings:
        new = sorted(findings.new, key=by_weight)
        fixed = sorted(findings.fixed, key=by_weight)
        return _Findings(
            scope=findings.scope,
            fresh=findings.fresh,
            complete=findings.complete,
            compared=findings.compared,
            new=self.found(new[:_MOST_LISTED]),
            fixed=self.found(fixed[:_MOST_LISTED]),
            new_count=len(new),
            fixed_count=len(fixed),
            total=findings.total,
        )


def by_weight(one: Diagnostic) -> tuple[object, ...]:
    """Errors before warnings; then file by file, from the top to the bottom."""
    return (_WEIGHT[one.severity], one.path, one.start, one.source, one.code, one.message)


def milliseconds(seconds: float) -> float:
    """A time as it is answered."""
    return round(seconds * 1000, 1)


def _updated(one: ServerUpdate) -> _UpdatedServer:
    return _UpdatedServer(
        name=one.server,
        kind=one.kind,
        event=one.event,
        confirmed_by=one.confirmed_by,
        revision_before=one.revision_before,
        revision_after=one.revision_after,
        ms=milliseconds(one.seconds),
        message=one.message or None,
    )


def _named(diff: str, shown: str, name: str) -> str:
    """A diff with another name in its header; what differs stays as it is."""
    start = diff.find("\n@@ ") + 1
    head, body = (diff[:start], diff[start:]) if start else (diff, "")
    label = quote_name(name) + ("\t" if " " in name else "")
    lines: list[str] = []
    for line in head.split("\n"):
        if line.startswith(("--- ", "+++ ")) and line[4:] != "/dev/null":
            lines.append(f"{line[:4]}{label}")
        elif line.startswith("diff --git "):
            lines.append(f"diff --git {quote_name(name)} {quote_name(name)}")
        elif line.startswith("Binary file "):
            lines.append(line.replace(quote_name(shown), quote_name(name), 1))
        else:
            lines.append(line)
    return "\n".join(lines) + body


# -- as objects for programs, and what these look like ------------------------------------------


def facts(value: Any) -> Any:
    """An answer as an object for programs."""
    if is_dataclass(value):
        return {to_camel(one.name): facts(getattr(value, one.name)) for one in fields(value)}
    return [facts(one) for one in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class _Meta(_Answer):
    duration_ms: int
    cancelled: bool
    timed_out: bool
    timeout_ms: int
    news: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Refusal(_Answer):
    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class _Envelope(_Answer):
    success: bool
    data: dict[str, Any] | None
    meta: _Meta
    error: _Refusal | None


def schema_of(answer: type[_Answer]) -> dict[str, Any]:
    """The schema of an envelope, by what its data is when the call has succeeded."""
    envelope, data = _schema(_Envelope), _schema(answer)
    envelope["properties"]["data"] = _or_null(data)
    return envelope


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of what may be null as well: what is said of members binds objects alone, and several hosts take no list of types."""
    return {name: part for name, part in schema.items() if name not in ("type", "enum")}


def _schema(answer: type[_Answer]) -> dict[str, Any]:
    made = TypeAdapter(answer).json_schema(mode="serialization")
    return _plain(made, made.get("$defs", {}))


def _plain(schema: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """A generated schema without titles, references and defaults."""
    if "$ref" in schema:
        schema = named[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return _or_null(_plain(schema["anyOf"][0], named))
    if "enum" in schema:
        return {"enum": schema["enum"]}
    plain = {"type": schema["type"]}
    if "properties" in schema:
        parts = schema["properties"].items()
        plain["properties"] = {name: _plain(part, named) for name, part in parts}
        plain["required"] = schema["required"]
    if "items" in schema:
        plain["items"] = _plain(schema["items"], named)
    return plain
