"""Diagnostics, and what servers answer, as values; differences that survive lines that move."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

from filepact.errors import InvalidParamsError
from filepact.text.lines import LineIndex, Position, Unit
from filepact.values import dataclass, late_regex, replace
from filepact_diagnostics.lsp.failures import ServerError
from filepact_wire.uris import path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

__all__ = [
    "Confirmation",
    "Diagnostic",
    "DiagnosticsDiff",
    "DiagnosticsHistory",
    "DiagnosticsList",
    "DiagnosticsLists",
    "FileDiagnostics",
    "ServerDiagnostics",
    "ServerState",
    "ServerStatus",
    "Severity",
    "compare",
    "is_proof",
    "notes_of",
    "read_diagnostics",
    "read_tsserver",
    "weakest",
]

Severity = Literal["error", "warning", "information", "hint"]

Confirmation = Literal["version", "pull", "probe", "order", "quiet window", "none"]
"""How it is proven that a list of diagnostics is about the present text.

``version``: the server named the text's version.  ``pull``: it was asked for the list after it had
the text.  ``probe``: it has answered a request that it answers only when everything before is done.
``order``: it publishes one list after the other, and this one after it had answered a question that
was sent behind the text.  ``quiet window``: it published, and then nothing for the time that its
policy names, which proves nothing.  ``none``: it has published nothing either.
"""

ServerState = Literal["stopped", "starting", "ready", "waiting", "broken"]
"""``waiting``: it ended, and is started again after a pause.  ``broken``: it ended too often."""

_STRENGTH: tuple[Confirmation, ...] = (
    *("none", "quiet window"),
    *("order", "probe", "version", "pull"),
)
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "information", "hint")
_MOST_ITEMS = 5_000
_MESSAGE_LENGTH = 2_000
_FAR = 2**31
_MOST_KNOWN = 5_000
_MOST_MOMENTS = 4
_MOST_NOTES = 10
_NOTE_LENGTH = 300
_ENDS = late_regex(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding of a server in a file.

    Attributes:
        path: The file, absolute.
        start: Where it begins; columns count characters.
        end: Where it ends, exclusive.
        severity: How bad it is.
        code: The server's name for it; may be empty.
        source: Which part of the server says so; the server's name if it does not tell.
        message: For a reader.
        line: The line where it begins, without the blanks around it.
    """

    path: str
    start: Position
    end: Position
    severity: Severity
    code: str
    source: str
    message: str
    line: str

    @property
    def identity(self) -> tuple[str, ...]:
        """The key of a diagnostic that stays the same when lines above it are added or removed."""
        return (self.path, self.source, self.severity, self.code, self.message, self.line)


@dataclass(frozen=True, slots=True)
class FileDiagnostics:
    """The diagnostics of one server for one file.

    Attributes:
        server: Its name.
        path: The file, absolute.
        diagnostics: What it finds; of a quiet window, what it published last, which may be about an
            earlier text.
        confirmed_by: How that is proven.
        reason: Why it is not; else empty.
        complete: False if the list was cut, parts of it could not be read, or may be missing.
        seconds: From the question to the answer.
        notes: How far the answer goes, by the server itself, as sentences without a full stop.
        known: False if the server has said that it cannot tell what is wrong with the file.
    """

    server: str
    path: str
    diagnostics: tuple[Diagnostic, ...] = ()
    confirmed_by: Confirmation = "none"
    reason: str = ""
    complete: bool = True
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    known: bool = True

    def limited(self, said: Any) -> FileDiagnostics:
        """This answer with its limits, as a server says them in the member `filepact`."""
        if not isinstance(said, dict):
            return self
        known, notes = said.get("known") is not False, said.get("notes") or ()
        texts = tuple(str(one)[:_NOTE_LENGTH] for one in notes[:_MOST_NOTES])
        complete = self.complete and known and not said.get("approximate")
        return replace(self, complete=complete, notes=texts, known=known)

    @property
    def fresh(self) -> bool:
        """Whether the list is about the present text."""
        return is_proof(self.confirmed_by)


@dataclass(frozen=True, slots=True)
class DiagnosticsDiff:
    """The difference between two lists of diagnostics.

    Attributes:
        new: Only in the later one.
        fixed: Only in the earlier one.
        total: How many the later one has.
    """

    new: tuple[Diagnostic, ...]
    fixed: tuple[Diagnostic, ...]
    total: int


@dataclass(frozen=True, slots=True)
class ServerDiagnostics:
    """The diagnostics of one server for some files, present or proposed.

    Attributes:
        server: Its name.
        reports: One of each file; of a proposal, with the proposed texts.
        state: ``answered``; ``pending``: not in time; ``stale``: the server is known not to see the
            files as they are; ``failed``: it is not there.
        message: Why it is not ``answered``; else empty.
        seconds: From the question to the answer.
        changes: Of how many changes of files it had been told.
        event: What it was sent for these, in the protocol's words without the part before the
            slash, such as ``didChange, didSave``; ``restart`` if it had to be started anew.
        before: Of a proposal, what it finds without it, as far as there was time.
        complete: Of a proposal, whether all files saw the proposed texts.
    """

    server: str
    reports: tuple[FileDiagnostics, ...]
    state: Literal["answered", "pending", "stale", "failed"] = "answered"
    message: str = ""
    seconds: float = 0.0
    changes: int = 0
    event: str = ""
    before: tuple[FileDiagnostics, ...] = ()
    complete: bool = True

    @property
    def confirmed_by(self) -> Confirmation:
        """The confirmation that holds for all reports."""
        return weakest(self.reports)

    @property
    def fresh(self) -> bool:
        """Whether all reports are about the texts that were asked about."""
        return is_proof(self.confirmed_by)

    def limited(self, note: str, but: Collection[str] = ()) -> ServerDiagnostics:
        """This answer as incomplete, with a sentence that says why; some servers are excepted."""
        if self.server in but:
            return self

        def limit(some: tuple[FileDiagnostics, ...]) -> tuple[FileDiagnostics, ...]:
            return tuple(replace(one, complete=False, notes=(*one.notes, note)) for one in some)

        return replace(self, reports=limit(self.reports), before=limit(self.before))

    @property
    def cannot_prove(self) -> bool:
        """Whether the server has said what it can, so that waiting for a proof is of no use."""
        return any(one.confirmed_by == "quiet window" for one in self.reports)


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One server on one root.

    Attributes:
        server: Its name.
        root: The folder that it serves, absolute.
        state: What it is doing.
        pid: Its process; 0 when there is none.
        version: As it says itself.
        open_documents: How many documents it holds open.
        starts: How often it was started.
        started_in: Seconds of the last start.
        first_report_in: Seconds from the last start to the first fresh report; None before.
        message: Why it is not there, or why it last ended.
    """

    server: str
    root: str
    state: ServerState
    pid: int
    version: str
    open_documents: int
    starts: int
    started_in: float
    first_report_in: float | None
    message: str


def is_proof(confirmation: Confirmation) -> bool:
    """Whether the answer proves that a list is about the present text."""
    return confirmation not in ("none", "quiet window")


def weakest(reports: Iterable[FileDiagnostics]) -> Confirmation:
    """The confirmation that holds for all of them; ``none`` for no reports."""
    return min((one.confirmed_by for one in reports), key=_STRENGTH.index, default="none")


def notes_of(reports: Iterable[FileDiagnostics]) -> tuple[str, ...]:
    """The server's own words about the limits of its answers, each once, the first of them."""
    notes = dict.fromkeys(note for one in reports for note in one.notes)
    return tuple(notes)[:_MOST_NOTES]


def compare(before: Iterable[Diagnostic], after: Iterable[Diagnostic]) -> DiagnosticsDiff:
    """The difference of two lists: what there is more of, or less of, whatever lines it stands in by now.

    An old error in a line that was edited is no new one, nor is one whose message names by its new name
    what was renamed.
    """
    earlier, later = list(before), list(after)
    count = len(later)
    if [one.identity for one in earlier] == [one.identity for one in later]:
        return DiagnosticsDiff((), (), count)
    for alike in (lambda one: one.identity, lambda one: one.identity[:-1], _by_place):
        earlier, later = _without(earlier, later, alike), _without(later, earlier, alike)
    return DiagnosticsDiff(tuple(later), tuple(earlier), count)


def _by_place(one: Diagnostic) -> tuple[Any, ...]:
    """By kind and line, where the server names kinds; else nothing is alike."""
    return (one.path, one.source, one.severity, one.code or id(one), one.start.line)


def _without(
    wanted: Sequence[Diagnostic],
    other: Sequence[Diagnostic],
    alike: Callable[[Diagnostic], tuple[Any, ...]],
) -> list[Diagnostic]:
    """The diagnostics without an equal among others; each of the others counts for one."""
    had = Counter(map(alike, other))
    found = []
    for one in wanted:
        if had[alike(one)]:
            had[alike(one)] -= 1
        else:
            found.append(one)
    return found


@dataclass(frozen=True, slots=True)
class DiagnosticsList:
    """The last list of diagnostics that a server published about a file.

    Attributes:
        version: Of the text that it is about; None if the server did not say.
        items: The diagnostics as they came.
        at: The time when it came.
        number: Which of all publications it is.
        other: The number of the last one about the file that said something else; 0 for none.
    """

    version: int | None
    items: Any
    at: float
    number: int
    other: int = 0


class DiagnosticsLists:
    """The last lists that one server published about files.

    Attributes:
        count: How many it has published in all.
    """

    def __init__(self) -> None:
        self._last: dict[str, DiagnosticsList] = {}
        self.count = 0

    def keep(self, params: Any, at: float) -> None:
        """Keep what it published at a time; of too many files not those that it is longest silent about."""
        path, version = path_of(params["uri"]), params.get("version")
        if path is None:
            return
        self.count += 1
        named = version if isinstance(version, int) else None
        items, last = params["diagnostics"], self._last.pop(path, None)
        other = 0 if last is None else last.other if last.items == items else last.number
        self._last[path] = DiagnosticsList(named, items, at, self.count, other)
        if len(self._last) > _MOST_KNOWN:
            del self._last[next(iter(self._last))]

    def get(self, path: str) -> DiagnosticsList | None:
        """The last list about a file."""
        return self._last.get(path)

    def number(self, path: str) -> int:
        """Which of all publications that is; 0 for none."""
        last = self._last.get(path)
        return 0 if last is None else last.number

    def items(self, path: str) -> Any:
        """The list's diagnostics."""
        return self._last[path].items


class DiagnosticsHistory:
    """The last findings of servers in files, and earlier ones; not for several threads."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], list[tuple[int, int, tuple[Diagnostic, ...]]]] = {}

    def keep(self, report: FileDiagnostics, text: str, moment: int) -> None:
        """Keep what a server found.

        Args:
            report: What it says of a file.
            text: What the file held.
            moment: By when it had said so; a number that rises when files change.
        """
        found = self._known.pop((report.server, report.path), [])
        self._known[report.server, report.path] = found
        at = len(found)
        while at and found[at - 1][0] > moment:
            at -= 1  # Who asked before may come to say so later.
        new = (moment, hash(text), report.diagnostics)
        if not at or found[at - 1][1:] != new[1:]:
            found.insert(at, new)
            del found[:-_MOST_MOMENTS]
        while len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def get(
        self, server: str, path: str, text: str, before: int | None = None
    ) -> tuple[Diagnostic, ...] | None:
        """The last findings, or the last before a moment; None if they were of another text."""
        for moment, mark, found in reversed(self._known.get((server, path), ())):
            if before is None or moment < before:
                return found if mark == hash(text) else None
        return None

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()


def read_diagnostics(
    path: str, text: str, items: Any, unit: Unit, server: str, endings: tuple[str, ...] = ()
) -> tuple[tuple[Diagnostic, ...], bool]:
    """The diagnostics that a server has sent, in the order of the text, and whether these are all.

    Args:
        path: The file that they are about, absolute.
        text: Its text as the server has it.
        items: What was sent.
        unit: What its columns count.
        server: Stands for a missing source.
        endings: Are cut off messages.
    """
    if not isinstance(items, list):
        return (), False
    positions = _Positions(text, unit)
    found: list[Diagnostic] = []
    whole = len(items) <= _MOST_ITEMS
    for item in items[:_MOST_ITEMS]:
        try:
            span = item["range"]
            start, end = positions.read(span["start"]), positions.read(span["end"])
            severity = item.get("severity")
            code = item.get("code")
            code = code.get("value", "") if isinstance(code, dict) else code
            found.append(
                Diagnostic(
                    path,
                    start,
                    end,
                    _SEVERITIES[severity - 1] if severity in (1, 2, 3, 4) else "error",
                    "" if code is None else str(code)[:100],
                    str(item.get("source") or server)[:100],
                    _message(item["message"], endings),
                    positions.stripped(start.line),
                )
            )
        except (AttributeError, KeyError, TypeError, ValueError, InvalidParamsError):
            whole = False
    found.sort(key=_order)
    return tuple(found), whole


_TSSERVER_SEVERITIES = {"error": 1, "warning": 2, "message": 3, "suggestion": 4}


def read_tsserver(answer: Any) -> list[Any]:
    """The diagnostics of an answer in tsserver's own protocol, in the form of the language protocol.

    What is none is left as it is, and so makes a list incomplete.

    Raises:
        ServerError: The answer holds no list.
    """
    body = answer.get("body") if isinstance(answer, dict) else None
    if not isinstance(body, list):
        raise ServerError("the server's answer does not contain diagnostics")
    return [_from_tsserver(one) for one in body]


def _from_tsserver(one: Any) -> Any:
    try:
        start, end = (
            {"line": place["line"] - 1, "character": place["offset"] - 1}
            for place in (one["start"], one["end"])
        )
        severity = _TSSERVER_SEVERITIES.get(one["category"], 1)
        words = {"code": one.get("code"), "source": one.get("source") or "typescript"}
    except (AttributeError, KeyError, TypeError):
        return None
    said = {"severity": severity, "message": one.get("text")}
    return {"range": {"start": start, "end": end}, **said, **words}


def _message(value: Any, endings: tuple[str, ...]) -> str:
    text = str(value.get("value", "") if isinstance(value, dict) else value)
    for ending in endings:
        text = text.removesuffix(ending)
    return text[:_MESSAGE_LENGTH]


def _order(one: Diagnostic) -> tuple[Any, ...]:
    start, end = one.start, one.end
    return (
        *(start.line, start.column, end.line, end.column),
        *(one.severity, one.code, one.message),
    )


class _Positions:
    """Positions in one text, as a server counts; quick for many on few lines."""

    def __init__(self, text: str, unit: Unit) -> None:
        self._unit = unit
        self._lines = _ENDS.split(text) if "\r" in text else text.split("\n")
        self._lengths: dict[int, int] = {}
        self._stripped: dict[int, str] = {}

    def read(self, value: Any) -> Position:
        """A position in characters; one behind the last line is the end of the text."""
        line, column = value["line"], value["character"]
        if not isinstance(line, int) or not isinstance(column, int):
            raise TypeError("a position has two numbers")
        length = self._lengths.get(line)
        if length is None:
            if line < 0:
                raise ValueError("the first line is 0")
            if line >= len(self._lines):
                line, column = len(self._lines) - 1, _FAR
            text = self._lines[line]
            length = self._lengths[line] = len(text) if text.isascii() else -1
        if length < 0:
            text = self._lines[line]
            return Position(line, LineIndex(text).offset(Position(0, column), self._unit))
        return Position(line, min(max(column, 0), length))

    def stripped(self, number: int) -> str:
        """A line without the blanks around it."""
        found = self._stripped.get(number)
        if found is None:
            found = self._stripped[number] = self._lines[number].strip()
        return found
