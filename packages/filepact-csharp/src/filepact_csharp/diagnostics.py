"""Diagnostics: what the compiler finds, as language servers write it."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from filepact.text.lines import LineIndex, Position

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from filepact.text.lines import Unit
    from filepact_csharp.roslyn import Roslyn

__all__ = [
    "ENTRY_CODES",
    "WARNING",
    "CompilerDiagnostic",
    "TextPlaces",
    "entry_point",
    "findings",
    "published",
]

WARNING: Final = 2
"""The severity of a warning; errors have a smaller one."""

_SEVERITIES: Final = {"Error": 1, "Warning": WARNING}
_WHOLE_ONLY: Final = frozenset({"CS0067", "CS0169", "CS0414", "CS0649", "CS7022", "CS8892"})
"""Fields, events and entry points that nobody uses: the compiler says so only when it is asked about everything,
and what is said about one file is to be the same whichever way it is asked."""

_MOST: Final = 100_000


@dataclass(frozen=True, slots=True, order=True)
class CompilerDiagnostic:
    """One thing that is wrong.

    Attributes:
        start: Where it begins, in units of UTF-16.
        end: Where it ends, exclusive.
        severity: 1 an error, 2 a warning.
        code: Such as ``CS0029``.
        message: In English.
        link: A page about it; may be empty.
    """

    start: int
    end: int
    severity: int
    code: str
    message: str
    link: str = ""


def findings(roslyn: Roslyn, diagnostics: Iterable[Any]) -> list[tuple[Any, CompilerDiagnostic]]:
    """Errors and warnings among the compiler's diagnostics, each with its tree, or None."""
    invariant = roslyn.globalization.CultureInfo.InvariantCulture
    found: list[tuple[Any, CompilerDiagnostic]] = []
    for one in diagnostics:
        severity = _SEVERITIES.get(str(one.Severity))
        code = str(one.Id)
        if severity is None or one.IsSuppressed or code in _WHOLE_ONLY:
            continue
        place = one.Location
        span = place.SourceSpan
        message = str(one.GetMessage(invariant))
        finding = CompilerDiagnostic(
            span.Start, span.End, severity, code, message, str(one.Descriptor.HelpLinkUri or "")
        )
        found.append((place.SourceTree, finding))
        if len(found) >= _MOST:
            break
    return found


def published(text: str, found: Iterable[CompilerDiagnostic], unit: Unit) -> list[dict[str, Any]]:
    """Findings in a text, sorted, each once, with places as the protocol counts them."""
    places = TextPlaces(text, unit)
    return [
        {
            "range": {"start": places.at(one.start), "end": places.at(one.end)},
            "severity": one.severity,
            "code": one.code,
            **({"codeDescription": {"href": one.link}} if one.link else {}),
            "source": "csharp",
            "message": one.message,
        }
        for one in sorted(set(found))
    ]


class TextPlaces:
    """Offsets in units of UTF-16 as lines and columns, and back.

    Args:
        text: The text.
        unit: What columns count.
    """

    def __init__(self, text: str, unit: Unit) -> None:
        self._index = LineIndex(text)
        self._unit: Unit = unit
        self._length = len(text)
        # Where the characters begin that take two units.
        self._wide: list[int] = []
        if text and not text.isascii() and max(text) > "\uffff":
            wide = (at for at, char in enumerate(text) if char > "\uffff")
            self._wide = [at + before for before, at in enumerate(wide)]

    def at(self, offset: int) -> dict[str, int]:
        """The line and column of an offset, both from 0."""
        offset = self.characters(offset)
        position = self._index.position(min(max(offset, 0), self._length), self._unit)
        return {"line": position.line, "character": position.column}

    def range(self, start: int, end: int) -> dict[str, Any]:
        """What lies between two offsets."""
        return {"start": self.at(start), "end": self.at(end)}

    def edits(self, edits: Iterable[tuple[int, int, str]]) -> list[dict[str, Any]]:
        """Texts that come in place of what lies between offsets."""
        return [{"range": self.range(start, end), "newText": new} for start, end, new in edits]

    def characters(self, offset: int) -> int:
        """How many characters stand before an offset."""
        return offset - bisect_left(self._wide, offset)

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and column.

        Raises:
            InvalidParamsError: There is no such place.
        """
        return self.units(self._index.offset(Position(line, column), self._unit))

    def units(self, characters: int) -> int:
        """The offset before which a number of characters stand."""
        found = characters
        for wide in self._wide:
            if wide >= found:
                break
            found += 1
        return found


# -- entry points ----------------------------------------------------------------------------------

_NO_MAIN: Final = (
    "CS5001",
    "Program does not contain a static 'Main' method suitable for an entry point",
)
_MANY_MAINS: Final = (
    "CS0017",
    (
        "Program has more than one entry point defined. "
        "Compile with /main to specify the type that contains the entry point."
    ),
)
_USUAL_START: Final = "program.cs"

ENTRY_CODES: Final = (_NO_MAIN[0], _MANY_MAINS[0])
"""Codes of what `entry_point` finds, and the compiler only when it is asked about everything."""


def entry_point(
    roslyn: Roslyn,
    compilation: Any,
    trees: Mapping[str, Any],
    startup: str,
    last: str,
    severity: int,
) -> tuple[dict[str, set[CompilerDiagnostic]], str]:
    """What is wrong with the entry point of a program, and the file in which it is, or was last.

    No file is to blame for a missing one; it is told with the file that had it last.

    Args:
        roslyn: The compiler.
        compilation: The program.
        trees: Its files.
        startup: The type that has to have the entry point; empty for any.
        last: The file in which it was last; may be empty.
        severity: Of what is found.
    """
    never = roslyn.threading.CancellationToken(False)
    places = {str(tree.FilePath): path for path, tree in trees.items()}
    entry = compilation.GetEntryPoint(never)
    if entry is not None:
        (where,) = [str(one.SyntaxTree.FilePath) for one in entry.DeclaringSyntaxReferences][:1]
        return {}, places.get(where, "")
    named = compilation.GetSymbolsWithName("Main", roslyn.core.SymbolFilter.Member, never)
    mains = [roslyn.core.IMethodSymbol(one) for one in named if str(one.Kind) == "Method"]
    mains = [one for one in mains if _is_entry(one, startup)]
    mains = [one for one in mains if str(one.ReturnType.Name) != "Task"] or mains
    if mains:
        found: dict[str, set[CompilerDiagnostic]] = {}
        for one in mains:
            span, tree = one.Locations[0].SourceSpan, one.Locations[0].SourceTree
            path = places.get(str(tree.FilePath), last)
            finding = CompilerDiagnostic(span.Start, span.End, severity, *_MANY_MAINS)
            found.setdefault(path, set()).add(finding)
        return (found if len(mains) > 1 else {}), last
    if any(
        type(one).__name__ == "GlobalStatementSyntax"
        for tree in trees.values()
        for one in tree.GetRoot(never).Members
    ):
        return {}, last  # they are the entry point, and what is wrong with them is told with them
    if last not in trees:
        usual = [one for one in trees if one.lower().endswith(f"/{_USUAL_START}")]
        last = min(usual or trees, key=lambda one: (one.count("/"), one))
    return {last: {CompilerDiagnostic(0, 0, severity, *_NO_MAIN)}}, last


def _is_entry(method: Any, startup: str) -> bool:
    """Whether a method called Main may be where a program starts."""
    if not method.IsStatic or method.Arity:
        return False
    holder = method.ContainingType
    if startup and str(holder) != startup:
        return False
    while holder is not None:
        if holder.Arity:
            return False
        holder = holder.ContainingType
    returned = str(method.ReturnType)
    takes = [str(one.Type).replace("?", "") for one in method.Parameters]
    task = "System.Threading.Tasks.Task"
    return returned in ("void", "int", task, f"{task}<int>") and takes in ([], ["string[]"])
