"""The lines of a receipt about diagnostics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from filepact_diagnostics.lsp.diagnostics import Diagnostic, Severity
    from filepact_diagnostics.semantic.updates import (
        ServerUpdate,
        UpdateDiagnostics,
        WorkspaceUpdate,
    )

__all__ = ["describe", "describe_late", "describe_turn", "list_found", "place_of"]

MOST_SHOWN: Final = 5
_MOST_OF_TURN: Final = 8
_MOST_CHARACTERS: Final = 200
_WIDTH: Final = 80
_FEWEST_CHARACTERS: Final = 20
_ORDER: Final[tuple[Severity, ...]] = ("error", "warning", "information", "hint")
_PLURALS: Final[dict[Severity, str]] = {
    "error": "errors",
    "warning": "warnings",
    "information": "remarks",
    "hint": "hints",
}
_SINGULARS: Final[dict[Severity, str]] = {**_PLURALS, "error": "error", "warning": "warning"} | {
    "information": "remark",
    "hint": "hint",
}


def describe(
    update: WorkspaceUpdate,
    show: Callable[[str], str],
    *,
    warnings: bool = False,
    told: set[str] | None = None,
) -> str:
    """The lines of a receipt about a change; empty where no server knows the files.

    Only errors are told, how many were fixed, and what servers say of how far their answers go.

    Args:
        update: How the servers took it.
        show: A file's absolute path as a reader knows it.
        warnings: Whether warnings are told as well.
        told: What was said before of how far answers go, and is not said again; what is said now is added.
    """
    told = set() if told is None else told
    said: list[str] = []
    findings = update.findings
    answered = dict.fromkeys(one.server for one in update.servers if one.proven)
    if findings is not None and answered:
        before = "Diagnostics" if update.kind != "preview" else "Diagnostics if it is done"
        said.append(f"{before} ({', '.join(answered)}): {_counts(findings, warnings=warnings)}")
        said += list_found(_told(findings.new, warnings=warnings), show)
    for one in update.servers:
        if not one.proven or not one.message:
            continue
        note = f"  {one.server}: {_cut(one.message)}."
        if findings is None:
            said.append(f"Diagnostics: not known.\n{note}")
        elif note not in told:
            said.append(note)
        told.add(note)
    said += [
        f"Diagnostics: {one.server} {_silence(one, update.kind)}"
        for one in update.servers
        if not one.proven
    ]
    if update.kind == "failed" and not update.servers:
        said.append(f"Diagnostics could not be asked for: {update.message}")
    return "\n".join(said)


def describe_late(
    servers: Iterable[str],
    findings: UpdateDiagnostics,
    names: Iterable[str],
    show: Callable[[str], str],
    *,
    warnings: bool = False,
) -> str:
    """The lines about a change whose diagnostics came too late for its receipt.

    Args:
        servers: Who answered.
        findings: What they find.
        names: The files that had changed, absolute.
        show: A file's absolute path as a reader knows it.
        warnings: Whether warnings are told as well.
    """
    files = ", ".join(sorted(map(show, names)))
    head = f"Diagnostics ({', '.join(servers)}) of the earlier change of {files}: "
    found = list_found(_told(findings.new, warnings=warnings), show)
    return "\n".join([head + _counts(findings, warnings=warnings), *found])


def describe_turn(
    found: Iterable[Diagnostic], unjudged: int, show: Callable[[str], str], *, ends: bool
) -> str:
    """The lines about all errors that a turn has brought and left: ten at most, by file, and some of each.

    Args:
        found: Those that are still found.
        unjudged: Of how many files that is not known.
        show: A file's absolute path as a reader knows it.
        ends: Whether nobody has asked, so that nothing is said of nothing.
    """
    errors = sorted(found, key=lambda one: (one.path, one.start))
    if ends and not errors:
        return ""
    said = [f"New errors of this turn that are still found: {len(errors) or 'none'}."]
    most = _MOST_OF_TURN - (len(errors) > _MOST_OF_TURN)
    rounds: list[tuple[int, Diagnostic]] = []
    counts = Counter[str]()
    for one in errors:  # the first of each file goes before the second of any
        rounds.append((counts[one.path], one))
        counts[one.path] += 1
    chosen = {id(one) for _, one in sorted(rounds, key=lambda each: each[0])[:most]}
    shown = [one for one in errors if id(one) in chosen]
    said += list_found(shown, show, most, _WIDTH if ends else 0)
    if more := [one.path for one in errors if id(one) not in chosen]:
        said.append(f"  and {len(more)} more, in {_files({*more})}")
    if unjudged:
        said.append(f"Not judged: {_files(range(unjudged))}.")
    return "\n".join(said)


def _files(some: Collection[object]) -> str:
    return f"{len(some)} {'file' if len(some) == 1 else 'files'}"


def place_of(one: Diagnostic, show: Callable[[str], str], width: int = 0) -> str:
    """A diagnostic on one line, of a width if one is given; lines and columns count from 1."""
    where = f"{show(one.path)}:{one.start.line + 1}:{one.start.column + 1}"
    start = " ".join(part for part in (where, one.severity, one.code) if part)
    room = max(width - len(start) - 2, _FEWEST_CHARACTERS) if width else _MOST_CHARACTERS
    return f"{start} {_cut(one.message, room)}".rstrip()


def _cut(text: str, most: int = _MOST_CHARACTERS) -> str:
    words = " ".join(text.split())
    return words if len(words) <= most else f"{words[:most]}…"


def _told(found: Iterable[Diagnostic], *, warnings: bool) -> list[Diagnostic]:
    wanted = ("error", "warning") if warnings else ("error",)
    return [one for one in found if one.severity in wanted]


def _counts(findings: UpdateDiagnostics, *, warnings: bool) -> str:
    fixed = len(_told(findings.fixed, warnings=warnings))
    parts = _by_severity(_told(findings.new, warnings=warnings), "new ")
    if fixed:
        parts.append(f"{fixed} fixed")
    if not findings.compared:
        parts.append("not all of it can be compared with before")
    elif not parts:
        parts.append("nothing new")
    text = ", ".join(parts)
    if not findings.complete and findings.files:
        text += f" in {findings.files} {'file' if findings.files == 1 else 'files'}"
    if findings.pending:
        text += f", {findings.pending} pending"
    return f"{text}."


def _by_severity(found: Iterable[Diagnostic], word: str) -> list[str]:
    counts = Counter(one.severity for one in found)
    return [
        f"{counts[one]} {word}{_SINGULARS[one] if counts[one] == 1 else _PLURALS[one]}"
        for one in _ORDER
        if counts[one]
    ]


def list_found(
    found: Iterable[Diagnostic], show: Callable[[str], str], most: int = MOST_SHOWN, width: int = 0
) -> list[str]:
    """The first diagnostics, the worst before others, one on each line."""
    ranked = sorted(found, key=lambda one: _ORDER.index(one.severity))
    return [f"  {place_of(one, show, width - 2 if width else 0)}" for one in ranked[:most]]


def _silence(one: ServerUpdate, whole: str) -> str:
    kind, message = one.kind, one.message
    if one.confirmed_by == "quiet window":
        return f"is not told: {message}."
    if kind == "failed":
        return f"is not there: {message or 'it has ended'}."
    if whole == "preview" or kind == "preview":
        return f"cannot say it in time: {message or 'no answer'}."
    if kind in ("removed", "renamed"):
        return "was told, and has nothing to say about it."
    return "pending."
