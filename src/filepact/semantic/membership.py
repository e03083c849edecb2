"""Which files a project includes: a file on the disk that none includes is not in the workspace."""

from __future__ import annotations

import posixpath
import threading
from typing import TYPE_CHECKING, Any, Final

from filepact.domain.document import WorkspacePath
from filepact.errors import BinaryFileError, FilepactError, TooLargeError
from filepact.semantic.tsconfig import read_commented, read_project_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from filepact.csharp.projects import Solution
    from filepact.domain.document import RootId
    from filepact.semantic.ground import Ground
    from filepact.semantic.tsconfig import ProjectFiles
    from filepact.workspace.surroundings import Stamp, Surroundings

__all__ = ["Members"]

_SCRIPTS: Final = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_UNITS: Final = (".c", ".cc", ".cpp", ".cxx", ".c++", ".m", ".mm", ".cu")
_SETTINGS: Final = ("tsconfig.json", "jsconfig.json")
_NET: Final = (".sln", ".slnx", ".csproj")
_COMMANDS: Final = ("compile_commands.json", "build/compile_commands.json")
_MOST_PROJECTS: Final = 100
_MOST_IGNORED: Final = 1_000


class Members:
    """The projects of one root, read again when a file that says what they are has changed.

    For all threads.

    Args:
        ground: The root and its servers.
        surroundings: Reads files.
    """

    def __init__(self, ground: Ground, surroundings: Surroundings) -> None:
        self._ground = ground
        self._root: RootId = ground.root
        self._surroundings = surroundings
        self._lock = threading.RLock()
        self._kept: dict[tuple[str, str], tuple[dict[str, Stamp | None], Any]] = {}
        self._ignored: dict[WorkspacePath, bool] = {}
        self._projects: tuple[int, frozenset[str]] = (-1, frozenset())
        self.opened = ""
        """The solution or project that was named, absolute; empty for the whole root."""

    def include(self, path: WorkspacePath) -> bool:
        """Whether a server knows a file and a project includes it; it need not be there."""
        if not self._ground.claimed(path.absolute):
            return False
        try:
            with self._lock:
                return self._decide(path)
        except FilepactError:
            return False

    def solution(self) -> Solution | None:
        """The C# projects; None where nothing is in C#."""
        self._ground.disk.begin()
        sources = any(name.endswith((".cs", ".csproj")) for name, _ in self._ground.disk.files)
        with self._lock:
            return self._solution() if sources else None

    def _decide(self, path: WorkspacePath) -> bool:
        absolute = path.absolute
        if absolute.endswith(".cs"):
            return bool(self._solution().including(absolute))
        if absolute.endswith(_SCRIPTS):
            project = self._project(absolute)
            if project is not None:
                return self._takes(project, absolute) or self._is_imported(project, path)
        if absolute.endswith(_UNITS):
            units = self._units(absolute)
            if units is not None:
                return absolute in units
        return not self._is_ignored(path)

    def _is_ignored(self, path: WorkspacePath) -> bool:
        """Whether ignore files name a file; of one that is gone, whether they did."""
        if self._ground.disk.listed(path):
            return False
        ignored = self._surroundings.ignored(path)
        if self._surroundings.stamp(path) is None:
            return self._ignored.get(path, ignored)
        self._ignored.pop(path, None)
        if ignored:
            self._ignored[path] = True
            while len(self._ignored) > _MOST_IGNORED:
                del self._ignored[next(iter(self._ignored))]
        return ignored

    # -- C# -------------------------------------------------------------------------------

    def _solution(self) -> Solution:
        def read() -> tuple[Solution, Iterable[str]]:
            from filepact.csharp.reading import read_solution  # noqa: PLC0415 - only C# needs it

            found = read_solution(
                self.opened or self._root, self._root, _Files(self._ground, self._text)
            )
            return found, found.inputs

        turn, named = self._ground.disk.turn, self._projects[1]
        if turn != self._projects[0]:
            names = (name for name, _ in self._ground.disk.files)
            self._projects = turn, frozenset(one for one in names if one.lower().endswith(_NET))
        if self._projects[1] != named:
            self._kept = {key: one for key, one in self._kept.items() if key[0] != "solution"}
        return self._keep("solution", self.opened, read)  # type: ignore[no-any-return]  # as it was read

    # -- TypeScript and JavaScript --------------------------------------------------------

    def _project(self, path: str) -> ProjectFiles | None:
        """The nearest project above a file."""
        folder = posixpath.dirname(path)
        while True:
            for name in _SETTINGS:
                found = self._project_at(f"{folder}/{name}")
                if found is not None:
                    return found
            if folder == self._root or not folder.startswith(f"{self._root.rstrip('/')}/"):
                return None
            folder = posixpath.dirname(folder)

    def _project_at(self, path: str) -> ProjectFiles | None:
        def read() -> tuple[ProjectFiles | None, Iterable[str]]:
            found = read_project_files(path, lambda name: self._text(name, None))
            return found, (path,) if found is None else found.inputs

        return self._keep("project", path, read)  # type: ignore[no-any-return]  # as it was read

    def _takes(self, project: ProjectFiles, path: str) -> bool:
        """Whether a project takes a file, or one that it refers to does."""
        seen, waiting = {project.path}, [project]
        while waiting and len(seen) < _MOST_PROJECTS:
            one = waiting.pop()
            if one.includes(path):
                return True
            for other in one.others:
                found = None if other in seen else self._project_at(other)
                seen.add(other)
                if found is not None:
                    waiting.append(found)
        return False

    def _is_imported(self, project: ProjectFiles, path: WorkspacePath) -> bool:
        """Whether a file of the project mentions a file, which belongs to it then."""
        found, _whole = self._ground.depending([path.path], _MOST_PROJECTS)
        return any(self._takes(project, one.absolute) for one in found)

    # -- C and C++ ------------------------------------------------------------------------

    def _units(self, path: str) -> frozenset[str] | None:
        """All files that are compiled by themselves; None where nobody says which."""
        folder = posixpath.dirname(path)
        while True:
            for name in _COMMANDS:
                found = self._units_at(f"{folder}/{name}")
                if found is not None:
                    return found
            if folder == self._root or not folder.startswith(f"{self._root.rstrip('/')}/"):
                return None
            folder = posixpath.dirname(folder)

    def _units_at(self, path: str) -> frozenset[str] | None:
        def read() -> tuple[frozenset[str] | None, Iterable[str]]:
            text = self._text(path, None)
            try:
                entries = None if text is None else read_commented(text)
            except ValueError:
                entries = None
            if not isinstance(entries, list):
                return None, (path,)
            found = {
                posixpath.normpath(posixpath.join(one.get("directory", ""), one["file"]))
                for one in entries
                if isinstance(one, dict) and isinstance(one.get("file"), str)
            }
            return frozenset(found), (path,)

        return self._keep("units", path, read)  # type: ignore[no-any-return]  # as it was read

    # -- files ----------------------------------------------------------------------------

    def _keep(self, kind: str, name: str, read: Callable[[], tuple[Any, Iterable[str]]]) -> Any:
        """What was read, as long as no file that it was read from has changed."""
        kept = self._kept.get((kind, name))
        if kept is not None and all(self._stamp(path) == was for path, was in kept[0].items()):
            return kept[1]
        value, inputs = read()
        self._kept[kind, name] = ({path: self._stamp(path) for path in inputs}, value)
        return value

    def _stamp(self, path: str) -> Stamp | None:
        place = self._beneath(path)
        return None if place is None else self._surroundings.stamp(place)

    def _text(self, path: str, most: int | None) -> str | None:
        place = self._beneath(path)
        taken = None if place is None else self._surroundings.take(place)
        if taken is None:
            return None
        if most is not None and taken.stamp.size > most:
            raise TooLargeError(f"{posixpath.basename(path)}: over {most:,} bytes", path=path)
        if taken.text is None and most is not None:
            raise BinaryFileError(f"{posixpath.basename(path)}: holds no text", path=path)
        return taken.text

    def _beneath(self, path: str) -> WorkspacePath | None:
        start = f"{self._root.rstrip('/')}/"
        clean = posixpath.normpath(path)
        if not clean.startswith(start) or clean == start:
            return None
        return WorkspacePath(self._root, clean[len(start) :])


class _Files:
    """The root's files, as the reader of C# projects wants them.

    Args:
        ground: Knows which there are.
        text: Reads one.
    """

    def __init__(self, ground: Ground, text: Callable[[str, int | None], str | None]) -> None:
        self._ground = ground
        self._text = text
        ground.disk.begin()
        start = ground.root.rstrip("/")
        self._names = dict.fromkeys(f"{start}/{name}" for name, _ in ground.disk.files)

    def text(self, path: str, most: int) -> str | None:
        """The text of a file; see `filepact.csharp.projects.Files`."""
        return self._text(path, most)

    def below(self, folder: str, ending: str) -> Iterable[str]:
        """The files beneath a folder."""
        start = f"{folder.rstrip('/')}/"
        return [
            one for one in self._names if one.startswith(start) and one.lower().endswith(ending)
        ]

    def has(self, path: str) -> bool:
        """Whether there is such a file."""
        return path in self._names
