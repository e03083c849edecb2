"""Projects as the compiler has them: each a compilation, brought from one state to the next.

A compilation never changes; each change makes another that shares what is the same.  A project that
refers to another refers to its compilation, and gets a new one when that is asked for the next time.
Nothing of this is on the disk, and nothing is built.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from filepact_csharp.diagnostics import (
    GLOBAL_USING,
    CompilerDiagnostic,
    doubted,
    findings,
    unresolved,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from filepact_csharp.projects import Project
    from filepact_csharp.roslyn import Libraries, Roslyn

__all__ = ["Compiler", "public_key"]

_KINDS: Final = {
    "library": "DynamicallyLinkedLibrary",
    "exe": "ConsoleApplication",
    "winexe": "WindowsApplication",
}
_ALWAYS_QUIET: Final = ("CS1701", "CS1702")  # versions of packages that the build brings together
_MODERN: Final = re.compile(r"net(\d+)\.\d")
_OLD_LEVEL: Final = 4
_HALVES: Final = re.compile("[\ud800-\udfff]")


class _Unit:
    """One project and its present compilation."""

    def __init__(self, project: Project, options: Any, parsing: Any, notes: list[str]) -> None:
        self.project = project
        self.options = options
        self.parsing = parsing
        self.notes = notes
        self.trees: dict[str, Any] = {}
        self.speaking: set[str] = set()
        """The files that have usings for all others."""
        self.own: Any = None
        self.libraries: list[Any] = []
        self.compilation: Any = None
        self.current = -1
        """The state in which `compilation` is known to be the present one."""
        self.needs: tuple[str, ...] = ()
        """The projects that it refers to."""
        self.seen: dict[str, tuple[Any, Any]] = {}
        """Of each of them its compilation, and the reference to that."""


class Compiler:
    """The projects of one solution.

    Args:
        roslyn: The compiler.
        libraries: Of frameworks and packages.
        text: The present text of a file by its path; None if it is not there.
    """

    def __init__(
        self, roslyn: Roslyn, libraries: Libraries, text: Callable[[str], str | None]
    ) -> None:
        self._roslyn = roslyn
        self._libraries = libraries
        self._text = text
        self._units: dict[str, _Unit] = {}
        self._by_file: dict[str, list[_Unit]] = {}
        self._never = roslyn.threading.CancellationToken(False)
        self.state = 0
        """Rises with everything that may change what is found."""

    def load(self, projects: Sequence[Project]) -> None:
        """Take other projects, or the same as they are now; files that stay are not read again."""
        units: dict[str, _Unit] = {}
        for project in projects:
            unit, old = self._begun(project), self._units.get(project.path)
            same = old is not None and old.project == project and old.libraries == unit.libraries
            if old is None or not same or len(old.trees) != len(project.sources):
                self._fill(unit, old)
            else:
                unit = old
            units[project.path] = unit
        self._units = units
        self._by_file = {}
        for unit in self._units.values():
            for path in unit.trees:
                self._by_file.setdefault(path, []).append(unit)
        for unit in self._units.values():
            needs = tuple(self._needs(unit))
            if needs != unit.needs:
                unit.needs, unit.compilation = needs, None
        self.state += 1

    def projects(self, path: str) -> tuple[Project, ...]:
        """The projects that a file belongs to."""
        return tuple(unit.project for unit in self._by_file.get(path, ()))

    def notes(self, project: Project) -> tuple[str, ...]:
        """Notes on how a project is compiled, as sentences."""
        unit = self._units.get(project.path)
        return () if unit is None else tuple(unit.notes)

    def shown(self, path: str) -> str:
        """The text of a file as it was last looked at; empty if it belongs to no project."""
        units = self._by_file.get(path)
        return str(units[0].trees[path].GetText(self._never)) if units else ""

    @property
    def files(self) -> tuple[str, ...]:
        """All files of all projects."""
        return tuple(self._by_file)

    def put(self, path: str) -> None:
        """Take the present text of a file, if it belongs to a project."""
        units = self._by_file.get(path)
        text = self._text(path) if units else None
        if not units or text is None:
            return
        source = self._source(text)
        for unit in units:
            old = unit.trees[path]
            if old.GetText(self._never).ContentEquals(source):
                continue
            tree = self._tree(source, unit.parsing, path)
            self._take(unit, path, tree, text)
            if unit.compilation is not None:
                unit.compilation = unit.compilation.ReplaceSyntaxTree(old, tree)
            self.state += 1

    def check(
        self, path: str, stops: Callable[[Callable[[], None] | None], None]
    ) -> set[CompilerDiagnostic]:
        """The diagnostics of one file, in all projects that it belongs to.

        Args:
            path: The file.
            stops: Is given what ends the work.
        """
        found: set[CompilerDiagnostic] = set()
        with self._token(stops) as token:
            for unit in self._by_file.get(path, ()):
                here = self._found_in(unit, unit.trees[path], token)
                if unit.project.missing_packages and (
                    self._leads_nowhere(unit.trees[path], here) or self._all_lead_nowhere(unit)
                ):
                    here = {doubted(one) for one in here}
                found |= here
        return found

    def samples(self) -> tuple[str, ...]:
        """One file of each project, with which to begin."""
        return tuple(next(iter(unit.trees)) for unit in self._units.values() if unit.trees)

    def check_all(
        self, stops: Callable[[Callable[[], None] | None], None]
    ) -> Iterator[dict[str, set[CompilerDiagnostic]]]:
        """The diagnostics of each file, project by project; the rest are the project's."""
        for unit in list(self._units.values()):
            with self._token(stops) as token:
                told = findings(self._roslyn, self._compiled(unit).GetDiagnostics(token))
            by_name: dict[str, set[CompilerDiagnostic]] = {}
            for tree, one in told:
                by_name.setdefault("" if tree is None else str(tree.FilePath), set()).add(one)
            places = {str(tree.FilePath): path for path, tree in unit.trees.items()}
            doubting = bool(unit.project.missing_packages)
            everywhere = doubting and self._all_lead_nowhere(unit)
            found: dict[str, set[CompilerDiagnostic]] = {}
            for name, several in by_name.items():
                path = places.get(name)
                if path is None:
                    whole = {replace(one, start=0, end=0) for one in several}
                    found.setdefault(unit.project.path, set()).update(whole)
                elif everywhere or (doubting and self._leads_nowhere(unit.trees[path], several)):
                    found[path] = {doubted(one) for one in several}
                else:
                    found[path] = several
            yield found

    def _found_in(self, unit: _Unit, tree: Any, token: Any) -> set[CompilerDiagnostic]:
        model = self._compiled(unit).GetSemanticModel(tree, False)
        return {one for _, one in findings(self._roslyn, model.GetDiagnostics(None, token))}

    def _leads_nowhere(self, tree: Any, found: Iterable[CompilerDiagnostic]) -> bool:
        return unresolved(str(tree.GetText(self._never)), found)

    def _all_lead_nowhere(self, unit: _Unit) -> bool:
        """Whether one of the usings that hold for a whole project leads nowhere.

        Diagnostics would say so too, but of such usings only after a look at all files.
        """
        compilation, extensions = self._compiled(unit), self._roslyn.core.ModelExtensions
        speaking = [unit.trees[path] for path in unit.speaking]
        for tree in [*speaking, *([unit.own] if unit.own is not None else [])]:
            model = compilation.GetSemanticModel(tree, False)
            for using in tree.GetRoot(self._never).Usings:
                name = using.Name
                if name and extensions.GetSymbolInfo(model, name, self._never).Symbol is None:
                    return True
        return False

    # -- projects ---------------------------------------------------------------------------

    def _begun(self, project: Project) -> _Unit:
        """A project without its files."""
        notes: list[str] = []
        unit = _Unit(project, self._options(project), self._parsing(project, notes), notes)
        unit.libraries, more = self._libraries.of(project)
        unit.notes += more
        return unit

    def _fill(self, unit: _Unit, old: _Unit | None) -> None:
        """Put its files into a project, those that it had before as they were."""
        project = unit.project
        keep = old if old is not None and old.parsing.Equals(unit.parsing) else None
        for path in project.sources:
            if keep is not None and path in keep.trees:
                unit.trees[path] = keep.trees[path]
                unit.speaking |= {path} & keep.speaking
            else:
                text = self._text(path)
                if text is None:
                    unit.notes.append(f"{posixpath.basename(path)[:80]} cannot be read")
                    continue
                tree = self._tree(self._source(text), unit.parsing, path)
                self._take(unit, path, tree, text)
        generated = _generated(project)
        if generated:
            name = f"{project.path}.generated.cs"
            unit.own = self._tree(self._source(generated), unit.parsing, name)

    def _take(self, unit: _Unit, path: str, tree: Any, text: str) -> None:
        unit.trees[path] = tree
        if GLOBAL_USING.search(text):
            unit.speaking.add(path)
        else:
            unit.speaking.discard(path)

    def _needs(self, unit: _Unit) -> Iterator[str]:
        """The projects that one refers to and that are there, without those that refer to it."""
        for path in unit.project.references:
            other = self._units.get(path)
            if other is not None and unit.project.path not in (path, *other.project.references):
                yield path

    def _compiled(self, unit: _Unit) -> Any:
        """The present compilation of a project, with those of the projects that it refers to."""
        if unit.compilation is not None and unit.current == self.state:
            return unit.compilation
        present = {path: self._compiled(self._units[path]) for path in unit.needs}
        if unit.compilation is None:
            unit.seen = {path: (one, one.ToMetadataReference()) for path, one in present.items()}
            unit.compilation = self._create(unit)
        for path, compilation in present.items():
            before, reference = unit.seen[path]
            if before is not compilation:
                new = compilation.ToMetadataReference()
                unit.compilation = unit.compilation.ReplaceReference(reference, new)
                unit.seen[path] = (compilation, new)
        unit.current = self.state
        return unit.compilation

    def _create(self, unit: _Unit) -> Any:
        trees = [*unit.trees.values(), *([unit.own] if unit.own is not None else [])]
        references = [*unit.libraries, *(reference for _, reference in unit.seen.values())]
        core = self._roslyn.core
        return self._roslyn.csharp.CSharpCompilation.Create(
            unit.project.assembly or unit.project.name,
            self._roslyn.array(core.SyntaxTree, trees),
            self._roslyn.array(core.MetadataReference, references),
            unit.options,
        )

    def _parsing(self, project: Project, notes: list[str]) -> Any:
        csharp = self._roslyn.csharp
        facts, version = csharp.LanguageVersionFacts, csharp.LanguageVersion
        known, wanted = facts.TryParse(project.lang_version, version.Default)
        if not known:
            newest = facts.ToDisplayString(facts.MapSpecifiedToEffectiveVersion(version.Latest))
            notes.append(
                f"this compiler does not know C# {project.lang_version[:20]}; C# {newest} is used"
            )
            wanted = version.Preview
        symbols = self._roslyn.array(self._roslyn.system.String, project.defines)
        parsing = csharp.CSharpParseOptions(wanted)
        return parsing.WithPreprocessorSymbols(symbols)

    def _options(self, project: Project) -> Any:
        core, csharp = self._roslyn.core, self._roslyn.csharp
        report = core.ReportDiagnostic
        nullable = getattr(core.NullableContextOptions, project.nullable.title())
        options = csharp.CSharpCompilationOptions(getattr(core.OutputKind, _KINDS[project.output]))
        options = (
            options.WithNullableContextOptions(nullable)
            .WithAllowUnsafe(project.unsafe)
            .WithOverflowChecks(project.checked)
            .WithWarningLevel(_level(project.target_framework))
            .WithAssemblyIdentityComparer(core.DesktopAssemblyIdentityComparer.Default)
        )
        options = self._signed(project, options)
        if "*" in project.warnings_as_errors:
            options = options.WithGeneralDiagnosticOption(report.Error)
        kinds = dict.fromkeys(self._codes(project.warnings_as_errors), report.Error)
        kinds |= dict.fromkeys(self._codes((*project.no_warn, *_ALWAYS_QUIET)), report.Suppress)
        table = self._roslyn.table(self._roslyn.system.String, report)
        for code, kind in kinds.items():
            table[code] = kind
        return options.WithSpecificDiagnosticOptions(table)

    def _signed(self, project: Project, options: Any) -> Any:
        """Options with the public key by which others let the project see their inside."""
        key = _read_key(project.key_file) if project.key_file else None
        if key is None:
            return options
        name = f"Any, PublicKey={key.hex()}"
        known, identity = self._roslyn.core.AssemblyIdentity.TryParseDisplayName(name, None)
        return options.WithCryptoPublicKey(identity.PublicKey) if known else options

    def _codes(self, codes: Iterable[str]) -> Iterator[str]:
        """Codes, with those in place of the name that stands for all about null."""
        for code in codes:
            if code.lower() != "nullable":
                yield code
                continue
            found = self._roslyn.field(
                "Microsoft.CodeAnalysis.CSharp.ErrorFacts", "NullableWarnings"
            )
            yield from (str(one) for one in found or ())

    # -- texts ------------------------------------------------------------------------------

    def _source(self, text: str) -> Any:
        return self._roslyn.text.SourceText.From(_plain(text), self._roslyn.utf8)

    def _tree(self, source: Any, parsing: Any, path: str) -> Any:
        return self._roslyn.csharp.CSharpSyntaxTree.ParseText(source, parsing, _shown(path))

    @contextlib.contextmanager
    def _token(self, stops: Callable[[Callable[[], None] | None], None]) -> Iterator[Any]:
        """The cancellation token of the compiler."""
        source = self._roslyn.threading.CancellationTokenSource()
        stops(source.Cancel)
        try:
            yield source.Token
        finally:
            stops(None)


def _generated(project: Project) -> str:
    """Generate what a build would: global usings and ``InternalsVisibleTo``."""
    lines = [one.source() for one in project.global_usings]
    lines += [
        f'[assembly: System.Runtime.CompilerServices.InternalsVisibleTo("{one}")]'
        for one in project.friends
        if '"' not in one and "\\" not in one and one.isprintable()
    ]
    return "\n".join(lines)


def _level(target: str) -> int:
    """The warning level: one more with each version of .NET since the fifth."""
    modern = _MODERN.match(target)
    return max(int(modern[1]), _OLD_LEVEL) if modern else _OLD_LEVEL


def _plain(text: str) -> str:
    """A text that .NET can take: halves of surrogate pairs would end the process."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return _HALVES.sub("\ufffd", text)
    return text


def _shown(path: str) -> str:
    """A path that .NET can take, different from that of every other file."""
    return path.encode("utf-8", "backslashreplace").decode()


# -- strong names ----------------------------------------------------------------------------------

_MAX_KEY_FILE: Final = 100_000

_PUBLIC, _PAIR = 0x06, 0x07
_BLOB_VERSION: Final = 0x02
_SIGNS: Final = 0x2400
_HASHES: Final = 0x8004
_MAGIC: Final = {b"RSA1": _PUBLIC, b"RSA2": _PAIR}
_HEAD = struct.Struct("<BBHI4sII")
_MAX_BITS: Final = 16_384


def public_key(content: bytes) -> bytes | None:
    """The public key as .NET writes it into an assembly's name; None if there is none to be found.

    Args:
        content: A key file: a pair of keys, a public key alone, or one that is in that form already.
    """
    # A public key as .NET has it: two numbers for how it signs, its length, and the key.
    if len(content) > 12 and content[12:13] == bytes([_PUBLIC]):
        whole = struct.unpack_from("<I", content, 8)[0]
        content = content[12 : 12 + whole]
    if len(content) < _HEAD.size:
        return None
    kind, version, _, _, magic, bits, exponent = _HEAD.unpack_from(content)
    if (
        version != _BLOB_VERSION
        or _MAGIC.get(magic) != kind
        or bits % 8
        or not 0 < bits <= _MAX_BITS
    ):
        return None
    modulus = content[_HEAD.size : _HEAD.size + bits // 8]
    if len(modulus) != bits // 8:
        return None
    key = _HEAD.pack(_PUBLIC, _BLOB_VERSION, 0, _SIGNS, b"RSA1", bits, exponent) + modulus
    return struct.pack("<III", _SIGNS, _HASHES, len(key)) + key


def _read_key(path: str) -> bytes | None:
    """The public key of a key file; None if it cannot be read or has none."""
    try:
        with Path(path).open("rb") as handle:
            return public_key(handle.read(_MAX_KEY_FILE))
    except OSError:
        return None
