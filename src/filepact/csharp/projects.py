"""Solutions and projects as values, and the port through which they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from filepact.csharp.globs import Membership

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Files", "GlobalUsing", "Kind", "Message", "Nullable", "Output", "Project", "Solution"]

Kind = Literal["solution", "project", "folder", "loose"]
"""What was read: a solution file, one project, all projects below a folder, or sources of no project."""

Nullable = Literal["disable", "enable", "warnings", "annotations"]
Output = Literal["library", "exe", "winexe"]


class Files(Protocol):
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
class Message:
    """Something about a project that a reader should know.

    Attributes:
        path: The file that it is about.
        line: The line there, from 1; 0 where it is about the whole file.
        text: One sentence without a full stop.
    """

    path: str
    line: int
    text: str


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
        frameworks: Names of shared frameworks besides the usual one, such as ``Microsoft.AspNetCore.App``.
        target_framework: Such as ``net8.0``; may be empty.
        output: What is built.
        unsafe: Whether unsafe code is allowed.
        checked: Whether arithmetic is checked for overflow.
        no_warn: Codes of warnings that are not told.
        warnings_as_errors: Codes of warnings that count as errors; ``*`` for all.
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
    membership: Membership = Membership()  # noqa: RUF009 - a frozen value
    defines: tuple[str, ...] = ()
    lang_version: str = "latest"
    nullable: Nullable = "disable"
    implicit_usings: bool = False
    global_usings: tuple[GlobalUsing, ...] = ()
    references: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    missing_packages: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()
    target_framework: str = ""
    output: Output = "library"
    unsafe: bool = False
    checked: bool = False
    no_warn: tuple[str, ...] = ()
    warnings_as_errors: tuple[str, ...] = ()
    friends: tuple[str, ...] = ()
    key_file: str = ""
    approximate: bool = False
    messages: tuple[Message, ...] = ()

    def includes(self, path: str) -> bool:
        """Whether a file belongs to the project, or would if it were there."""
        return self.membership.includes(path)


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
    messages: tuple[Message, ...] = ()

    def including(self, path: str) -> tuple[Project, ...]:
        """The projects to which a file belongs, or would if it were there."""
        return tuple(one for one in self.projects if one.includes(path))

    def all_messages(self) -> tuple[Message, ...]:
        """Its own and those of its projects."""
        return (*self.messages, *(one for project in self.projects for one in project.messages))
