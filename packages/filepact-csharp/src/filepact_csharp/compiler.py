"""Projects as the compiler has them: each a compilation, brought from one state to the next.

A compilation never changes; each change makes another that shares what is the same.  A project that
refers to another refers to its compilation, and gets a new one when that is asked for the next time.
Nothing of this is on the disk, and nothing is built.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from filepact_csharp.diagnostics import (
    ENTRY_CODES,
    WARNING,
    CompilerDiagnostic,
    entry_point,
    findings,
)
from filepact_csharp.doubts import GLOBAL_USING, DiagnosticsFilter
from filepact_csharp.roslyn import parse_options, project_options
from filepact_csharp.severities import with_configs
from filepact_csharp.strong_names import read_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from filepact_csharp.projects import Project
    from filepact_csharp.roslyn import Libraries, Roslyn

__all__ = ["Compiler", "DiagnosticsLimits"]

_HALVES: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class DiagnosticsLimits:
    """How far it is known what is wrong with a file.

    Attributes:
        known: Whether it is known at all; no project may include the file.
        approximate: Whether something could not be taken into account.
        notes: What, as sentences without a full stop.
    """

    known: bool
    approximate: bool = False
    notes: tuple[str, ...] = ()


_CHANGING: Final = (
    *("compilation", "configured", "current", "doubts", "entry", "main", "surface"),
    *("needs", "lacking", "unnamed"),
)
_FILLED: Final = ("trees", "speaking", "seen", "texts", "faces")
_MOST_FACES: Final = 6
_MOST_TABLES: Final = 8
_PARTIAL: Final = re.compile(r"\bpartial\b")

_Result = tuple[int, set[CompilerDiagnostic]]
"""What is wrong with a file that has the text of a number."""


class _Unit:
    """One project and its present compilation."""

    def __init__(self, project: Project, options: Any, parsing: Any, notes: list[str]) -> None:
        self.project = project
        self.short = False
        """Whether a library is not there."""
        self.strange = bool(notes)
        """Whether the compiler does not know the version of the language."""
        self.options = options
        self.parsing = parsing
        self.notes = notes
        self.trees: dict[str, Any] = {}
        self.speaking: set[str] = set()
        """The files that have usings for all others."""
        self.own: Any = None
        self.libraries: list[Any] = []
        self.compilation: Any = None
        self.configured: Any = None
        """The compilation that has the severities of configuration files."""
        self.current = -1
        """The state in which `compilation` is known to be the present one."""
        self.needs: tuple[str, ...] = ()
        """The projects that it refers to."""
        self.seen: dict[str, tuple[Any, Any]] = {}
        """Of each of them its compilation, and the reference to that."""
        self.friends: tuple[str, ...] = ()
        """Assemblies that may be friends by what a target says, and are taken for such."""
        self.lacking = self.unnamed = self.newer = False
        """Whether something is not known that its errors may come from: see `DiagnosticsFilter`."""
        self.main = ""
        """The file in which the entry point was last."""
        self.doubts: tuple[Any, DiagnosticsFilter | None] = (None, None)
        self.entry: tuple[Any, dict[str, set[CompilerDiagnostic]]] = (None, {})
        """Of a compilation, what is wrong with its entry point, by file."""
        self.texts: dict[str, int] = {}
        """By file, a number for its text."""
        self.faces: dict[str, int] = {}
        """By file, a number for what others see of it: the same where only bodies differ."""
        self.surface = 0
        """A number for what its files see of each other; 0 where it is to be counted anew."""

    def kept(self) -> dict[str, Any]:
        """What a change of its files or of others' may change here."""
        return {
            **{name: getattr(self, name) for name in _CHANGING},
            **{name: getattr(self, name).copy() for name in _FILLED},
        }

    def restore(self, kept: dict[str, Any]) -> None:
        """Be again as it was when that was kept."""
        for name, value in kept.items():
            setattr(self, name, value)


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
        self._faces: dict[str, list[tuple[Any, int, int]]] = {}
        self._last_face = 0
        self._tables: dict[tuple[str, tuple[int, ...]], dict[str, _Result]] = {}

    def load(self, projects: Sequence[Project]) -> None:
        """Take other projects, or the same as they are now; files that stay are not read again."""
        units: dict[str, _Unit] = {}
        for project in projects:
            unit, old = self._begun(project), self._units.get(project.path)
            unit.friends = _supposed_friends(project, projects)
            same = (
                old is not None
                and (old.project, old.friends) == (project, unit.friends)
                and old.libraries == unit.libraries
            )
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
        for unit in self._units.values():
            below = [unit, *(self._units[one] for one in unit.needs)]
            unit.lacking = any(one.short or _lacks(one.project) for one in below)
            unit.unnamed = any(one.project.missing_projects or one.project.unread for one in below)
        self.state += 1

    def projects(self, path: str) -> tuple[Project, ...]:
        """The projects that a file belongs to."""
        return tuple(unit.project for unit in self._by_file.get(path, ()))

    def parsing(self, path: str) -> Any:
        """How a file is read; as the compiler does by itself if it belongs to no project."""
        units = self._by_file.get(path)
        return units[0].parsing if units else self._roslyn.csharp.CSharpParseOptions.Default

    def notes(self, project: Project) -> tuple[str, ...]:
        """Notes on how a project is compiled, as sentences."""
        unit = self._units.get(project.path)
        return () if unit is None else tuple(unit.notes)

    def caveats(self, path: str) -> DiagnosticsLimits:
        """How far it is known what is wrong with a file."""
        units = self._by_file.get(path, ())
        notes: dict[str, None] = {}
        for unit in units:
            notes |= dict.fromkeys(_sentences(unit))
            for one in (self._units[each] for each in unit.needs):
                name = one.project.name[:80]
                notes |= dict.fromkeys(f"{name}: {text}" for text in _sentences(one))
        return DiagnosticsLimits(bool(units), bool(notes), tuple(notes))

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
        text = self._text(path) if path in self._by_file else None
        if text is not None:
            self._put(path, text)

    def _put(self, path: str, text: str) -> None:
        source = self._source(text)
        for unit in self._by_file.get(path, ()):
            old = unit.trees[path]
            if old.GetText(self._never).ContentEquals(source):
                continue
            tree = self._tree(source, unit.parsing, path)
            self._take(unit, path, tree, text)
            if unit.compilation is not None:
                unit.compilation = unit.compilation.ReplaceSyntaxTree(old, tree)
            self.state += 1

    def sources(self, path: str = "") -> Iterator[tuple[Any, dict[str, Any]]]:
        """The compilation of each project, with its trees by path; only of those with a file, if named."""
        units = self._by_file.get(path, ()) if path else self._units.values()
        for unit in units:
            yield self._compiled(unit), unit.trees

    @contextlib.contextmanager
    def supposing(
        self, texts: Mapping[str, str], projects: Sequence[Project] | None = None
    ) -> Iterator[None]:
        """Everything as if files held other texts, until it is left; nothing of it stays.

        Args:
            texts: By path; of files that belong to projects.
            projects: Other projects; None for those that there are.
        """
        units, state = list(self._units.values()), self.state
        kept = [unit.kept() for unit in units]
        all_units, by_file = self._units, self._by_file
        try:
            if projects is not None:
                self.load(projects)
            for path, text in texts.items():
                self._put(path, text)
            yield
        finally:
            for unit, before in zip(units, kept, strict=True):
                unit.restore(before)
            self._units, self._by_file, self.state = all_units, by_file, state

    def surfaces(self) -> dict[str, tuple[int, ...]]:
        """By project file, numbers that differ where more differs than bodies of members.

        Of the project and those that it refers to: where they are the same, a file with the same text
        has the same errors.
        """
        return {path: self._surface(unit) for path, unit in self._units.items()}

    def _surface(self, unit: _Unit) -> tuple[int, ...]:
        return tuple(
            self._own_surface(one) for one in (unit, *(self._units[path] for path in unit.needs))
        )

    def _own_surface(self, unit: _Unit) -> int:
        if not unit.surface:
            libraries = tuple(map(id, unit.libraries))
            unit.surface = hash(
                (unit.project, unit.friends, libraries, frozenset(unit.faces.items()))
            )
        return unit.surface

    def sources_of(self, projects: Iterable[str]) -> list[str]:
        """The files of some projects, which are named by their project files."""
        units = (self._units[one] for one in projects if one in self._units)
        return list(dict.fromkeys(path for unit in units for path in unit.trees))

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
                found |= self._result(unit, path, token)
                found |= self._entry_errors(unit).get(path, set())
        return found

    def check_project(
        self, path: str, stops: Callable[[Callable[[], None] | None], None]
    ) -> set[CompilerDiagnostic]:
        """What is wrong with a project and lies in none of its files; by its project file."""
        unit = self._units.get(path)
        if unit is None:
            return set()
        with self._token(stops) as token:
            compilation = self._compiled(unit)
            found = findings(self._roslyn, compilation.GetDeclarationDiagnostics(token))
            whole = {one for tree, one in found if tree is None}
            if unit.own is not None:
                whole |= self._found_in(unit, unit.own, token)
        return self._whole(unit, whole)

    def _whole(self, unit: _Unit, found: set[CompilerDiagnostic]) -> set[CompilerDiagnostic]:
        """What no file is to blame for, as it is told with the project file."""
        whole = {replace(one, start=0, end=0) for one in found if one.code not in ENTRY_CODES}
        return self._doubts(unit).weigh_whole(whole)

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
                entry = self._entry_errors(unit)
            by_name: dict[str, set[CompilerDiagnostic]] = {}
            for tree, one in told:
                if one.code in ENTRY_CODES:
                    continue  # told with the files that they are about
                by_name.setdefault("" if tree is None else str(tree.FilePath), set()).add(one)
            places = {str(tree.FilePath): path for path, tree in unit.trees.items()}
            found: dict[str, set[CompilerDiagnostic]] = {}
            for name, several in by_name.items():
                path = places.get(name)
                if path is None:
                    found.setdefault(unit.project.path, set()).update(self._whole(unit, several))
                else:
                    found[path] = self._weighed(unit, unit.trees[path], several)
            for path, more in entry.items():
                found.setdefault(path, set()).update(more)
            yield found

    def _result(self, unit: _Unit, path: str, token: Any) -> set[CompilerDiagnostic]:
        """What is wrong with a file in a project, looked for once for each state of it."""
        key = (unit.project.path, self._surface(unit))
        table = self._tables.pop(key, {})
        self._tables[key] = table
        while len(self._tables) > _MOST_TABLES * len(self._units):
            del self._tables[next(iter(self._tables))]
        text, tree = unit.texts[path], unit.trees[path]
        if path not in table or table[path][0] != text:
            table[path] = (text, self._weighed(unit, tree, self._found_in(unit, tree, token)))
        return table[path][1]

    def _found_in(self, unit: _Unit, tree: Any, token: Any) -> set[CompilerDiagnostic]:
        model = self._compiled(unit).GetSemanticModel(tree, False)
        return {one for _, one in findings(self._roslyn, model.GetDiagnostics(None, token))}

    def _weighed(
        self, unit: _Unit, tree: Any, found: set[CompilerDiagnostic]
    ) -> set[CompilerDiagnostic]:
        """What is wrong in a file, with what is no certain error as a warning."""
        if not any(one.severity < WARNING for one in found):
            return found
        return self._doubts(unit).weigh(tree, found)

    def _doubts(self, unit: _Unit) -> DiagnosticsFilter:
        compilation = self._compiled(unit)
        of, doubts = unit.doubts
        if doubts is None or of is not compilation:
            doubts = DiagnosticsFilter(
                self._roslyn,
                compilation,
                lacking=unit.lacking,
                unnamed=unit.unnamed or (unit.lacking and self._all_lead_nowhere(unit)),
                generating=bool(unit.project.generators),
                newer=unit.newer,
                befriended=any(self._units[one].friends for one in unit.needs),
            )
            unit.doubts = (compilation, doubts)
        return doubts

    def _entry_errors(self, unit: _Unit) -> dict[str, set[CompilerDiagnostic]]:
        """What is wrong with the entry point of a program, by the file that it is told with.

        No file is to blame for a missing one; it is told with the file that had it last.
        """
        if unit.project.output == "library" or not unit.trees:
            return {}
        compilation = self._compiled(unit)
        if unit.entry[0] is not compilation:
            severity = WARNING if unit.lacking or unit.project.generators else 1
            found, unit.main = entry_point(
                self._roslyn, compilation, unit.trees, unit.project.startup, unit.main, severity
            )
            unit.entry = (compilation, found)
        return unit.entry[1]

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
        options = project_options(self._roslyn, project)
        unit = _Unit(project, options, parse_options(self._roslyn, project, notes), notes)
        unit.libraries, more, unit.short = self._libraries.of(project)
        unit.notes += more
        unit.newer = self._libraries.are_older(project) or unit.strange
        return unit

    def _fill(self, unit: _Unit, old: _Unit | None) -> None:
        """Put its files into a project, those that it had before as they were."""
        project = unit.project
        keep = old if old is not None and old.parsing.Equals(unit.parsing) else None
        unit.main = "" if old is None else old.main
        for path in project.sources:
            if keep is not None and path in keep.trees:
                unit.trees[path] = keep.trees[path]
                unit.speaking |= {path} & keep.speaking
                unit.texts[path], unit.faces[path] = keep.texts[path], keep.faces[path]
            else:
                text = self._text(path)
                if text is None:
                    unit.notes.append(f"{posixpath.basename(path)[:80]} cannot be read")
                    continue
                tree = self._tree(self._source(text), unit.parsing, path)
                self._take(unit, path, tree, text)
        generated = _generated(project, unit.friends)
        if generated:
            name = f"{project.path}.generated.cs"
            unit.own = self._tree(self._source(generated), unit.parsing, name)

    def _take(self, unit: _Unit, path: str, tree: Any, text: str) -> None:
        unit.trees[path], unit.texts[path] = tree, hash(text)
        unit.faces[path], unit.surface = self._face(path, tree, text), 0
        if GLOBAL_USING.search(text):
            unit.speaking.add(path)
        else:
            unit.speaking.discard(path)

    def _face(self, path: str, tree: Any, text: str) -> int:
        """A number for what other files see of one: that of an earlier text from which only bodies differ."""
        known, mark = self._faces.setdefault(path, []), hash(text)
        # What one part of a type assigns counts for the constructors in others.
        whole = _PARTIAL.search(text) is not None
        for other, its_mark, number in known:
            if mark == its_mark or (
                not whole and self._roslyn.csharp.SyntaxFactory.AreEquivalent(other, tree, True)
            ):
                return number
        self._last_face += 1
        known.append((tree, mark, self._last_face))
        del known[:-_MOST_FACES]
        return self._last_face

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
        if unit.project.severities.configs and unit.configured is not unit.compilation:
            self._configure(unit)
        unit.current = self.state
        return unit.compilation

    def _configure(self, unit: _Unit) -> None:
        """Give the present sources of a project their severities."""
        try:
            options = with_configs(
                self._roslyn, unit.options, unit.project.severities.configs, unit.trees
            )
        except (AttributeError, TypeError, ValueError, self._roslyn.system.Exception):
            note = "severities in .editorconfig and .globalconfig are not known to this compiler"
            unit.notes += [] if note in unit.notes else [note]
        else:
            unit.compilation = unit.compilation.WithOptions(options)
        unit.configured = unit.compilation

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


def _sentences(unit: _Unit) -> list[str]:
    """What should be known of a project, as sentences."""
    said = [] if not unit.project.approximate else [one.text for one in unit.project.messages]
    return [*said, *unit.notes]


def _lacks(project: Project) -> bool:
    """Whether something that a project needs was not restored, is not there or cannot be read."""
    return bool(project.missing_packages or project.missing_projects or project.unread)


def _supposed_friends(project: Project, projects: Sequence[Project]) -> tuple[str, ...]:
    """The assemblies that a target may let see what is internal: all that refer to a project."""
    if not project.maybe_friends:
        return ()
    found = []
    for one in projects:
        key = read_key(one.key_file) if one.key_file else None
        if project.path in one.references and (key or not project.key_file):
            name = one.assembly or one.name
            found.append(f"{name}, PublicKey={key.hex()}" if key else name)
    return tuple(found)


def _generated(project: Project, friends: Iterable[str]) -> str:
    """What the build would generate: usings for every file, and who sees what is internal."""
    lines = [one.source() for one in project.global_usings]
    lines += [
        f'[assembly: System.Runtime.CompilerServices.InternalsVisibleTo("{one}")]'
        for one in dict.fromkeys((*project.friends, *friends))
        # The key of whoever is named without one may come from a target as well.
        if "PublicKey" in one or not (project.key_file and project.maybe_friends)
        if '"' not in one and "\\" not in one and one.isprintable()
    ]
    return "\n".join(lines)


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
