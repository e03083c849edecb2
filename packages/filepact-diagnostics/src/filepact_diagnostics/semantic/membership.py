"""Project membership: a file on the disk that no project includes is not in the workspace."""

from __future__ import annotations

import posixpath
import threading
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from filepact.domain.document import WorkspacePath
from filepact.errors import FilepactError
from filepact_diagnostics.semantic.tsconfig import read_commented, read_project_files
from filepact_wire.uris import uri_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from filepact.domain.document import RootId
    from filepact.workspace.external_files import ExternalFiles
    from filepact.workspace.observe import Stamp
    from filepact_diagnostics.lsp.diagnostics import ServerDiagnostics
    from filepact_diagnostics.lsp.pool import ServerPool
    from filepact_diagnostics.semantic.root_servers import RootServers
    from filepact_diagnostics.semantic.tsconfig import ProjectFiles

__all__ = ["RootProjects"]

_SCRIPTS: Final = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_UNITS: Final = (".c", ".cc", ".cpp", ".cxx", ".c++", ".m", ".mm", ".cu")
_SETTINGS: Final = ("tsconfig.json", "jsconfig.json")
_TYPESCRIPT: Final = ("typescript", "typescript-language-server")
_COMMANDS: Final = ("compile_commands.json", "build/compile_commands.json")
_LOOKED_FOR: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "ty": (("ty.toml", "pyproject.toml"),),
    **dict.fromkeys(("basedpyright", "pyright"), (("pyrightconfig.json",), ("pyproject.toml",))),
    "ruff": (("ruff.toml", ".ruff.toml", "pyproject.toml"),),
    **dict.fromkeys(_TYPESCRIPT, (_SETTINGS,)),
    "clangd": (("compile_commands.json", "compile_flags.txt"), (".clangd",)),
    "gopls": (("go.mod",), ("go.work",)),
    "bash": ((".shellcheckrc", "shellcheckrc"),),
    "filepact-csharp": (("Directory.Build.props",), (".editorconfig",)),
}
"""The settings that servers look for in all folders above a file, the nearest counts: names of which one is enough."""
_OUTSIDE: Final = "a {} above the root may count, and is not watched"
_MOST_PROJECTS: Final = 100
_MOST_IGNORED: Final = 1_000


class RootProjects:
    """The projects of one root, read again when a file that says what they are has changed.

    For all threads.

    Args:
        servers: The root's servers.
        files: Reads files.
        pool: The servers, of which one may know projects.
        seconds: How long that one may take.
    """

    def __init__(
        self, servers: RootServers, files: ExternalFiles, pool: ServerPool, seconds: float
    ) -> None:
        self._servers = servers
        self._pool = pool
        self._seconds = seconds
        self._root: RootId = servers.root
        self._files = files
        self._lock = threading.RLock()
        self._kept: dict[tuple[str, str], tuple[dict[str, Stamp | None], Any]] = {}
        self._ignored: dict[WorkspacePath, bool] = {}
        servers.outside = self._limited
        self.opened = ""
        """The solution or project that was named, absolute; empty for the whole root."""

    def include(self, path: WorkspacePath) -> bool:
        """Whether a server knows a file and a project includes it; it need not be there."""
        if not self._servers.claimed(path.absolute):
            return False
        try:
            told = self._told(path.absolute, {"uri": uri_of(path.absolute)})
            if told is not None:
                return bool(told.get("projects"))
            with self._lock:
                return self._decide(path)
        except FilepactError:
            return False

    def solution(self) -> Mapping[str, Any] | None:
        """All projects, as a server tells them (`filepact.projects`); None where there is none."""
        self._servers.disk.begin()
        start = self._root.rstrip("/")
        for name, _ in self._servers.disk.files:
            path = f"{start}/{name}"
            if self._pool.projects_server(self._root, path) is not None:
                return self._told(path, {})
        return None

    def _decide(self, path: WorkspacePath) -> bool:
        absolute = path.absolute
        if absolute.endswith(_SCRIPTS):
            project = self._project(absolute)
            if project is not None:
                return self._takes(project, absolute) or self._is_imported(project, path)
        if absolute.endswith(_UNITS):
            units = self._units(absolute)
            if units is not None:
                return absolute in units
        return not self._is_ignored(path)

    def _limited(self, answer: ServerDiagnostics) -> ServerDiagnostics:
        """An answer, not complete where settings above the root may count: nothing there is read, nor watched."""
        looked_for = _LOOKED_FOR.get(answer.server, ())
        above = {names: self._files.above(self._root, names) for names in looked_for}
        # For all in one folder the same ones count.
        places = {posixpath.dirname(one.path): one.path for one in answer.reports}
        typed = answer.server in _TYPESCRIPT
        names = (self._outside(path, above, typed=typed) for path in places.values())
        name = next(filter(None, names), "")
        return answer.limited(_OUTSIDE.format(posixpath.basename(name))) if name else answer

    def _outside(
        self, path: str, above: Mapping[tuple[str, ...], tuple[str, ...]], *, typed: bool
    ) -> str:
        """A settings file above the root that may count for a file; empty for none.

        Args:
            path: The file, absolute.
            above: What lies above the root, by the names of which one is enough.
            typed: Whether it has a TypeScript project, whose settings may extend others.
        """
        for names, found in above.items():
            near = (f"{folder}/{name}" for folder in self._folders(path) for name in names)
            if found and not any(map(self._stamp, near)):
                return found[-1]
        with self._lock:
            project = self._project(path) if typed else None
        inputs = project.inputs if project is not None else ()
        return next((one for one in inputs if not self._beneath(one)), "")

    def _is_ignored(self, path: WorkspacePath) -> bool:
        """Whether ignore files name a file; of one that is gone, whether they did."""
        if self._servers.disk.listed(path):
            return False
        ignored = self._files.ignored(path)
        if self._files.stamp(path) is None:
            return self._ignored.get(path, ignored)
        self._ignored.pop(path, None)
        if ignored:
            self._ignored[path] = True
            while len(self._ignored) > _MOST_IGNORED:
                del self._ignored[next(iter(self._ignored))]
        return ignored

    # -- what a server knows --------------------------------------------------------------

    def _told(self, path: str, asked: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The answer of a server that knows projects; None if there is none.

        Args:
            path: A file of the kind that it knows, absolute.
            asked: The command's argument.
        """
        if self._pool.projects_server(self._root, path) is None:
            return None
        self._servers.disk.begin()  # from here on the server is told what happens
        asked = {"opened": uri_of(self.opened or self._root), **asked}
        told = self._pool.projects(self._root, path, asked, self._seconds)
        return told if isinstance(told, dict) else None

    # -- TypeScript and JavaScript --------------------------------------------------------

    def _project(self, path: str) -> ProjectFiles | None:
        """The nearest project above a file."""
        places = (f"{folder}/{name}" for folder in self._folders(path) for name in _SETTINGS)
        return next((found for one in places if (found := self._project_at(one))), None)

    def _project_at(self, path: str) -> ProjectFiles | None:
        def read() -> tuple[ProjectFiles | None, Iterable[str]]:
            found = read_project_files(path, self._text)
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
        found = islice(self._servers.depending(path), _MOST_PROJECTS)
        return any(self._takes(project, one.absolute) for one in found)

    # -- C and C++ ------------------------------------------------------------------------

    def _units(self, path: str) -> frozenset[str] | None:
        """All files that are compiled by themselves; None where nobody says which."""
        places = (f"{folder}/{name}" for folder in self._folders(path) for name in _COMMANDS)
        return next((found for one in places if (found := self._units_at(one)) is not None), None)

    def _units_at(self, path: str) -> frozenset[str] | None:
        def read() -> tuple[frozenset[str] | None, Iterable[str]]:
            text = self._text(path)
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

    def _folders(self, path: str) -> Iterator[str]:
        """The folders above a file up to the root, the nearest first."""
        folder = posixpath.dirname(path)
        yield folder
        while folder != self._root and folder.startswith(f"{self._root.rstrip('/')}/"):
            folder = posixpath.dirname(folder)
            yield folder

    # -- files ----------------------------------------------------------------------------

    def _keep(self, kind: str, name: str, read: Callable[[], tuple[Any, Iterable[str]]]) -> Any:
        """Keep a result until one of the files that it was read from changes."""
        kept = self._kept.get((kind, name))
        if kept is not None and all(self._stamp(path) == was for path, was in kept[0].items()):
            return kept[1]
        value, inputs = read()
        self._kept[kind, name] = ({path: self._stamp(path) for path in inputs}, value)
        return value

    def _stamp(self, path: str) -> Stamp | None:
        place = self._beneath(path)
        return None if place is None else self._files.stamp(place)

    def _text(self, path: str) -> str | None:
        place = self._beneath(path)
        sample = None if place is None else self._files.take(place)
        return None if sample is None else sample.text

    def _beneath(self, path: str) -> WorkspacePath | None:
        start = f"{self._root.rstrip('/')}/"
        clean = posixpath.normpath(path)
        if not clean.startswith(start) or clean == start:
            return None
        return WorkspacePath(self._root, clean[len(start) :])
