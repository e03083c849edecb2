"""Projects and solutions as values, the patterns by which projects name files, and the port to files."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "MAX_PATTERN",
    "DiagnosticOptions",
    "FilePattern",
    "FileTree",
    "GlobalUsing",
    "ItemElement",
    "Kind",
    "Nullable",
    "Output",
    "Project",
    "ProjectFiles",
    "ProjectItem",
    "ProjectMessage",
    "Solution",
    "split_list",
    "unescape",
]

MAX_PATTERN: Final = 2_000
"""Longest pattern, in characters; what is longer matches nothing."""

_WILD = re.compile(r"[*?]")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_DEEP = "**"


@dataclass(frozen=True, slots=True)
class FilePattern:
    """One name or wildcard of a list.

    Attributes:
        folder: The absolute folder that is given without wildcards; of a plain name, the whole path.
        parts: What has to follow beneath it, in lower case; empty for a plain name.
    """

    folder: str
    parts: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, folder: str) -> FilePattern | None:
        """A pattern as it stands in a file of a folder; None if it is empty or too long.

        Args:
            text: One entry of a list.
            folder: The absolute folder from which it counts.
        """
        text = text.strip().replace("\\", "/")
        if not text or len(text) > MAX_PATTERN:
            return None
        names = [name for name in text.split("/") if name not in ("", ".")]
        first = next((at for at, name in enumerate(names) if _WILD.search(name)), len(names))
        fixed = unescape("/".join(names[:first]))
        start = "/" if text.startswith("/") else folder
        base = posixpath.normpath(posixpath.join(start, fixed))
        wild: list[str] = []
        for name in names[first:]:
            if name == "..":
                # After a wildcard it leads nowhere that could be said beforehand.
                return None
            if not (name == _DEEP and wild and wild[-1] == _DEEP):
                wild.append("*" if name == "*.*" else name.lower())
        if wild and wild[-1] == _DEEP:
            wild.append("*")
        return cls(base, tuple(wild))

    @property
    def ending(self) -> str:
        """With what the names of all files that it matches end, in lower case; may be empty."""
        return re.split(r"[*?]", self.parts[-1])[-1] if self.parts else ""

    def matches(self, path: str) -> bool:
        """Whether it names a file, by its absolute path."""
        if not self.parts:
            return path == self.folder
        above = "/" if self.folder == "/" else f"{self.folder}/"
        if not path.startswith(above):
            return False
        if self.parts[0] == _DEEP and len(self.parts) == 2 and self.parts[1] == f"*{self.ending}":
            return path.lower().endswith(self.ending)
        return _match(self.parts, path[len(above) :].lower().split("/"))


@dataclass(frozen=True, slots=True)
class ProjectItem:
    """One item of a project: files that come, or files that go.

    Attributes:
        adds: Whether they come.
        patterns: Which.
        excluding: Which of them do not come.
    """

    adds: bool
    patterns: tuple[FilePattern, ...]
    excluding: tuple[FilePattern, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """The files of a project as patterns; decides for any name, whether the file exists or not.

    Attributes:
        steps: In the order in which the project names them; the last that names a file decides.
    """

    steps: tuple[ProjectItem, ...] = ()
    _sorted: list[tuple[_Names, _Names]] = field(
        default_factory=list, init=False, compare=False, repr=False
    )
    _plain: dict[str, list[int]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    _wild: list[int] = field(default_factory=list, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Projects of the old style name thousands of files one by one.
        for number, step in enumerate(self.steps):
            names, excluding = _Names.of(step.patterns), _Names.of(step.excluding)
            self._sorted.append((names, excluding))
            for path in names.plain:
                self._plain.setdefault(path, []).append(number)
            if names.wild:
                self._wild.append(number)

    def includes(self, path: str) -> bool:
        """Whether a file belongs to the project, or would if it were there."""
        for number in sorted({*self._plain.get(path, ()), *self._wild}, reverse=True):
            names, excluding = self._sorted[number]
            if names.name(path):
                if not self.steps[number].adds:
                    return False
                if not excluding.name(path):
                    return True
        return False

    def added(self) -> Iterable[FilePattern]:
        """All patterns by which files come."""
        return (one for step in self.steps if step.adds for one in step.patterns)

    @property
    def wildcards(self) -> int:
        """The number of patterns that a file may have to be compared with."""
        return sum(len(names.wild) + len(more.wild) for names, more in self._sorted)


@dataclass(frozen=True, slots=True)
class _Names:
    """Patterns, sorted into those that are names and those that are wildcards."""

    plain: frozenset[str]
    wild: tuple[FilePattern, ...]

    @classmethod
    def of(cls, patterns: tuple[FilePattern, ...]) -> _Names:
        plain = frozenset(one.folder for one in patterns if not one.parts)
        return cls(plain, tuple(one for one in patterns if one.parts))

    def name(self, path: str) -> bool:
        return path in self.plain or any(one.matches(path) for one in self.wild)


def split_list(text: str) -> list[str]:
    """The entries of a list that is separated by semicolons, without empty ones."""
    return [one.strip() for one in text.split(";") if one.strip()]


def unescape(text: str) -> str:
    """A text in which `%2A` and its like stand for characters, without them."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _match(parts: tuple[str, ...], names: list[str]) -> bool:
    """Whether wildcards match the names of a path, from left to right, going back to the last ``**``."""
    at = name = 0
    deep, behind = -1, 0
    while name < len(names):
        if at < len(parts) and parts[at] == _DEEP:
            deep, behind = at, name
            at += 1
        elif at < len(parts) and _match_name(parts[at], names[name]):
            at += 1
            name += 1
        elif deep >= 0:
            behind += 1
            at, name = deep + 1, behind
        else:
            return False
    return all(one == _DEEP for one in parts[at:])


def _match_name(pattern: str, name: str) -> bool:
    """The same for the characters of one name."""
    if "*" not in pattern and "?" not in pattern:
        return pattern == name
    at = place = 0
    star, behind = -1, 0
    while place < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, behind = at, place
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[place]):
            at += 1
            place += 1
        elif star >= 0:
            behind += 1
            at, place = star + 1, behind
        else:
            return False
    return set(pattern[at:]) <= {"*"}


# -- projects --------------------------------------------------------------------------------------

Kind = Literal["solution", "project", "folder", "loose"]
"""What was read: a solution file, one project, all projects below a folder, or sources of no project."""

Nullable = Literal["disable", "enable", "warnings", "annotations"]
Output = Literal["library", "exe", "winexe"]


class FileTree(Protocol):
    """The files below one root, by absolute paths with forward slashes.

    Nothing outside of the root is there, but for `has`, which may know more: the packages of a project
    lie in the person's home folder.
    """

    def text(self, path: str, most: int) -> str | None:
        """The text of a file, without a byte order mark; None if there is no such file.

        Args:
            path: The file.
            most: Largest size, in bytes.

        Raises:
            FilepactError: It is there and is not read: it is too large, no text, or protected.
        """
        ...

    def below(self, folder: str, ending: str) -> Iterable[str]:
        """The files at any depth beneath a folder, links not followed.

        Args:
            folder: Where to look.
            ending: With what their names end, in lower case; names are compared in lower case.
        """
        ...

    def has(self, path: str) -> bool:
        """Whether there is such a file."""
        ...


@dataclass(frozen=True, slots=True)
class ProjectMessage:
    """Something about a project that a reader should know.

    Attributes:
        path: The file that it is about.
        line: The line there, from 1; 0 where it is about the whole file.
        text: One sentence without a full stop.
        code: Under which a build says the same; empty where it says nothing.
    """

    path: str
    line: int
    text: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class GlobalUsing:
    """A using that holds for every source of a project.

    Attributes:
        name: The namespace, or the type.
        alias: Another name for it; may be empty.
        static: Whether it is a type whose static members are meant.
    """

    name: str
    alias: str = ""
    static: bool = False

    def source(self) -> str:
        """The directive, as a line of C#."""
        static = "static " if self.static else ""
        alias = f"{self.alias} = " if self.alias else ""
        return f"global using {static}{alias}global::{self.name};"


@dataclass(frozen=True, slots=True)
class DiagnosticOptions:
    """What decides about the compiler's messages, besides a list of those that are not told or are errors.

    Attributes:
        not_errors: Codes of warnings that are no errors, where all are.
        level: Up to which level warnings are told; None for that of the framework.
        rules: What a rule set makes of codes: pairs of a code, or ``*``, and an action in lower case.
        configs: Paths and texts of configuration files in which severities of codes stand.
    """

    not_errors: tuple[str, ...] = ()
    level: int | None = None
    rules: tuple[tuple[str, str], ...] = ()
    configs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Project:
    """One C# project for one target framework.

    Attributes:
        path: The project file; of sources without a project, their folder.
        name: What people call it: the project file's name without its ending.
        assembly: The assembly's name.
        sources: The files that are compiled and are there, sorted.
        membership: Which files would be, if they were there.
        defines: Symbols for `#if`.
        lang_version: Such as ``12.0``, ``latest`` or ``preview``, as the compiler takes it.
        nullable: The nullable context.
        implicit_usings: Whether the usual namespaces are imported without being named.
        global_usings: All usings for every source, those usual ones among them.
        references: The project files of all projects whose code it sees.
        packages: The DLLs of packages and other assemblies that it sees; they need not be there.
        missing_packages: Packages that it names and whose DLLs are not known, because nothing was
            restored; errors about what is in them mean nothing.
        missing_projects: Project files that it refers to and that are not there or cannot be read.
        unread: Whether the project file itself cannot be read, so that nothing is known of it.
        maybe_friends: Whether more assemblies may see what is internal here than `friends` names,
            because that is decided when it is built.
        generators: Packages whose generators do not run here; what they would add is not known.
        startup: The type whose `Main` is the entry point; empty for whichever has one.
        frameworks: Names of shared frameworks besides the usual one, such as ``Microsoft.AspNetCore.App``.
        target_framework: Such as ``net8.0``; may be empty.
        output: What is built.
        unsafe: Whether unsafe code is allowed.
        checked: Whether arithmetic is checked for overflow.
        no_warn: Codes of warnings that are not told.
        warnings_as_errors: Codes of warnings that count as errors; ``*`` for all.
        severities: What else decides about the compiler's messages.
        documented: Whether comments that document are looked into.
        features: Of the compiler that are switched on, each with its value.
        friends: Assemblies that see what is internal here, each with its public key if one is named.
        key_file: The file of keys with which the assembly is signed; empty if it is not, or if the file is
            not there.
        approximate: Whether something that was read could not be taken into account.
        messages: What, and what else should be known.
    """

    path: str
    name: str
    assembly: str = ""
    sources: tuple[str, ...] = ()
    membership: ProjectFiles = ProjectFiles()
    defines: tuple[str, ...] = ()
    lang_version: str = "latest"
    nullable: Nullable = "disable"
    implicit_usings: bool = False
    global_usings: tuple[GlobalUsing, ...] = ()
    references: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    missing_packages: tuple[str, ...] = ()
    missing_projects: tuple[str, ...] = ()
    unread: bool = False
    maybe_friends: bool = False
    generators: tuple[str, ...] = ()
    startup: str = ""
    frameworks: tuple[str, ...] = ()
    target_framework: str = ""
    output: Output = "library"
    unsafe: bool = False
    checked: bool = False
    no_warn: tuple[str, ...] = ()
    warnings_as_errors: tuple[str, ...] = ()
    severities: DiagnosticOptions = DiagnosticOptions()
    documented: bool = False
    features: tuple[tuple[str, str], ...] = ()
    friends: tuple[str, ...] = ()
    key_file: str = ""
    approximate: bool = False
    messages: tuple[ProjectMessage, ...] = ()

    def includes(self, path: str) -> bool:
        """Whether a file belongs to the project, or would if it were there."""
        return self.membership.includes(path)


@dataclass(frozen=True, slots=True)
class ItemElement:
    """One item element: what it includes, removes and excludes.

    Attributes:
        kind: The items' name, in lower case, such as ``compile``.
        includes: The list that comes; may be empty.
        excludes: What of it does not come.
        removes: The list that goes.
        updates: The list of which only something is said.
        metadata: What is said of each, by names in lower case.
        path: The file in which it stands; the project's own if empty.
        line: The line there; 0 where it is not known.
    """

    kind: str
    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    updates: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Solution:
    """All projects that belong together, those that are only referenced among them.

    Attributes:
        kind: What it was read from.
        path: The solution file, project file or folder.
        projects: In the order of the file, then those that they refer to; each after nothing in particular.
        inputs: The files that said so, and those that would have a say if they were there: when one of
            them changes, all has to be read again.
        approximate: Whether that holds for any project, or a project could not be read.
        messages: About the solution itself; those of its projects are with them.
    """

    kind: Kind
    path: str
    projects: tuple[Project, ...] = ()
    inputs: tuple[str, ...] = ()
    approximate: bool = False
    messages: tuple[ProjectMessage, ...] = ()

    def including(self, path: str) -> tuple[Project, ...]:
        """The projects to which a file belongs, or would if it were there; of a project file, that project."""
        found = tuple(one for one in self.projects if path == one.path or one.includes(path))
        return found or (self.projects if path in self.inputs else ())

    def all_messages(self) -> tuple[ProjectMessage, ...]:
        """Its own and those of its projects."""
        return (*self.messages, *(one for project in self.projects for one in project.messages))
