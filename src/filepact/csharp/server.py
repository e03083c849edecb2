"""A language server for C#: what the client says becomes texts and projects, and what is found answers."""

from __future__ import annotations

import hashlib
import json
import posixpath
from typing import TYPE_CHECKING, Any, Final

from filepact.csharp.compiler import Compiler
from filepact.csharp.conversation import RefusedError
from filepact.csharp.documents import Documents, document_path
from filepact.csharp.findings import published
from filepact.csharp.reading import read_solution
from filepact.csharp.references import Libraries
from filepact.csharp.sources import Sources
from filepact.wire.uris import path_of, uri_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from filepact.csharp.conversation import Conversation, Ticket
    from filepact.csharp.findings import Finding
    from filepact.csharp.projects import Solution
    from filepact.csharp.runtime import Roslyn

__all__ = ["Server"]

NAME: Final = "filepact-csharp"
WATCHED: Final = (
    "**/*.cs",
    "**/*.{csproj,sln,slnx,props,targets,projitems}",
    "**/global.json",
    "**/obj/project.assets.json",
)
_MOST_MESSAGES: Final = 20
_WARMED: Final = 10
_WRITTEN: Final = 2


class Server:
    """The server; `requests` and `notifications` are what a conversation is given.

    Args:
        roslyn: Starts the compiler; called once.
        root: The folder to serve; empty for the one that the client names.
        solution: The solution, project or folder to read; empty for what lies in the root.
    """

    def __init__(self, roslyn: Callable[[], Roslyn], root: str, solution: str) -> None:
        self._start = roslyn
        self._root = root
        self._entry = solution
        self._documents = Documents()
        self._compiler: Compiler | None = None
        self._solution: Solution | None = None
        self._inputs: frozenset[str] = frozenset()
        self._newest = 0
        self._behind: dict[str, None] = {}
        self._answers: dict[str, tuple[int, str, list[Any]]] = {}
        self._watches = False
        self._told = False
        self._cold: list[str] | None = None
        self.conversation: Conversation | None = None
        self.requests: dict[str, Callable[[Any, Ticket], Any]] = {
            "initialize": self._initialize,
            "textDocument/diagnostic": self._diagnose,
            "workspace/diagnostic": self._survey,
            "filepact/projects": self._projects,
        }
        self.notifications: dict[str, Callable[[Any], None]] = {
            "initialized": self._initialized,
            "textDocument/didOpen": self._opened,
            "textDocument/didChange": self._changed,
            "textDocument/didClose": self._closed,
            "workspace/didChangeWatchedFiles": self._happened,
            "solution/open": self._open_solution,
            "project/open": self._open_projects,
        }

    # -- the beginning ------------------------------------------------------------------------

    def _initialize(self, params: Any, _ticket: Ticket) -> Any:
        able = params.get("capabilities") or {}
        root = params.get("rootUri")
        self._root = self._root or (path_of(root) if isinstance(root, str) else None) or ""
        if not self._root.startswith("/"):
            raise RefusedError("there is no folder to serve: rootUri is no file")
        offered = (able.get("general") or {}).get("positionEncodings") or []
        self._documents.unit = "utf-8" if "utf-8" in offered else "utf-16"
        watching = (able.get("workspace") or {}).get("didChangeWatchedFiles") or {}
        self._watches = bool(watching.get("dynamicRegistration"))
        roslyn = self._start()
        self._newest = int(roslyn.system.Environment.Version.Major)
        self._compiler = Compiler(roslyn, Libraries(roslyn), self._text)
        return {
            "capabilities": {
                "positionEncoding": self._documents.unit,
                "textDocumentSync": {"openClose": True, "change": 2, "save": False},
                "diagnosticProvider": {
                    "interFileDependencies": True,
                    "workspaceDiagnostics": True,
                },
            },
            "serverInfo": {"name": NAME, "version": roslyn.version},
        }

    def _initialized(self, _params: Any) -> None:
        if self._watches and self.conversation is not None:
            options = {"watchers": [{"globPattern": one} for one in WATCHED]}
            method = "workspace/didChangeWatchedFiles"
            registration = {"id": "files", "method": method, "registerOptions": options}
            self.conversation.request(
                "client/registerCapability", {"registrations": [registration]}, self._registered
            )

    def _registered(self) -> None:
        """From here on the client tells what happens; what it did not tell before is looked up."""
        self._told = True
        if self._solution is not None and self._compiler is not None:
            self._solution = None
            self._behind.update(dict.fromkeys(self._compiler.files))

    def _open_solution(self, params: Any) -> None:
        self._enter(params["solution"])

    def _open_projects(self, params: Any) -> None:
        projects = params["projects"]
        # Several are what lies in the root; one alone is read with what it refers to.
        self._enter(projects[0] if len(projects) == 1 else uri_of(self._root))

    def _enter(self, uri: str) -> None:
        path = path_of(uri)
        if path is not None and path != self._entry:
            self._entry = path
            self._solution = None

    def warm(self, ticket: Ticket) -> bool:
        """Do a part of what the first question would have to wait for; whether there is more."""
        if not self._told:
            return False  # what is read now might change without being told
        compiler = self._present()
        if self._cold is None:
            self._cold = list(compiler.samples()[:_WARMED])
        if not self._cold:
            return False
        # The most of it is done once for all files, which are not of interest here.
        compiler.check(self._cold.pop(), ticket.stops)
        return bool(self._cold)

    # -- texts ----------------------------------------------------------------------------------

    def _opened(self, params: Any) -> None:
        self._touch(self._documents.open(params))

    def _changed(self, params: Any) -> None:
        self._touch(self._documents.change(params))

    def _closed(self, params: Any) -> None:
        path = self._documents.close(params)
        self._touch(path)
        if not Sources(self._root, {}).has(path):
            self._solution = None

    def _touch(self, path: str) -> None:
        """A text may have changed; it is looked at before the next answer."""
        self._behind[path] = None
        solution, compiler = self._solution, self._compiler
        if path in self._inputs or (
            solution is not None
            and compiler is not None
            and not compiler.projects(path)
            and any(one.includes(path) for one in solution.projects)
        ):
            self._solution = None

    def _happened(self, params: Any) -> None:
        gone: set[str] = set()
        for event in params["changes"]:
            path, kind = path_of(event["uri"]), event["type"]
            if path is None:
                continue
            self._touch(path)
            if kind != _WRITTEN or not path.endswith(".cs"):
                # A file that has come or gone, a project, or a whole folder.
                self._solution = None
                gone.add(path)
        if gone and self._compiler is not None:
            for path in self._compiler.files:
                if not gone.isdisjoint(_above(path)):
                    self._behind[path] = None

    def _text(self, path: str) -> str | None:
        return self._sources.source(path)

    @property
    def _sources(self) -> Sources:
        return Sources(self._root, self._documents.texts)

    def _present(self) -> Compiler:
        """The compiler, with all texts and projects as they are now."""
        compiler = self._compiler
        if compiler is None:
            raise RefusedError("the compiler was not started")
        if self._solution is None:
            sources = self._sources
            entry = self._entry or self._root
            solution = read_solution(entry, self._root, sources, self._newest)
            compiler.load(solution.projects)
            self._solution, self._inputs = solution, frozenset(solution.inputs)
        for path in list(self._behind):
            compiler.put(path)
            del self._behind[path]
        return compiler

    def _known(self) -> Compiler:
        """The same, if all texts are known; each may count for every file."""
        lost = self._documents.first_lost
        if lost is not None:
            name = posixpath.basename(lost)[:80]
            raise RefusedError(f"the text of {name} is not known any more; send it whole")
        return self._present()

    # -- questions ------------------------------------------------------------------------------

    def _diagnose(self, params: Any, ticket: Ticket) -> Any:
        path = document_path(params["textDocument"])
        compiler = self._known()
        state, number, items = self._answers.get(path, (-1, "", []))
        if state != compiler.state:
            found = compiler.check(path, ticket.stops)
            number, items = self._keep(compiler, path, found)
        if number and params.get("previousResultId") == number:
            return {"kind": "unchanged", "resultId": number}
        return {"kind": "full", "resultId": number, "items": items}

    def _survey(self, params: Any, ticket: Ticket) -> Any:
        compiler = self._known()
        before = {one["uri"]: one["value"] for one in params.get("previousResultIds") or []}
        found: dict[str, set[Finding]] = {}
        told: dict[str, Any] = {}
        for part in compiler.check_all(ticket.stops):
            items = []
            for path, more in part.items():
                found.setdefault(path, set()).update(more)
                item = self._surveyed(compiler, path, found[path], before)
                told[item["uri"]] = item
                items.append(item)
            if ticket.send is not None and items:
                ticket.send({"items": items})
        gone = [self._surveyed(compiler, path, set(), before) for path in self._fixed(before, told)]
        return {"items": gone if ticket.send is not None else [*told.values(), *gone]}

    def _fixed(self, before: Iterable[str], told: Iterable[str]) -> Iterator[str]:
        """Files that had something wrong and have not any more."""
        for uri in set(before) - set(told):
            path = path_of(uri)
            if path is not None:
                yield path

    def _surveyed(
        self, compiler: Compiler, path: str, found: set[Finding], before: dict[str, Any]
    ) -> dict[str, Any]:
        uri = uri_of(path)
        items = published(compiler.shown(path), found, self._documents.unit)
        number = _digest(items)
        told = {"uri": uri, "version": None, "resultId": number}
        if before.get(uri) == number:
            return {**told, "kind": "unchanged"}
        return {**told, "kind": "full", "items": items}

    def _keep(self, compiler: Compiler, path: str, found: set[Finding]) -> tuple[str, list[Any]]:
        items = published(compiler.shown(path), found, self._documents.unit)
        number = _digest(items)
        if len(self._answers) > 1_000:
            self._answers.clear()
        self._answers[path] = (compiler.state, number, items)
        return number, items

    def _projects(self, params: Any, _ticket: Ticket) -> Any:
        path = path_of(params["uri"])
        compiler = self._present()
        solution = self._solution
        found = () if path is None else compiler.projects(path)
        messages = [one.text for one in solution.messages] if solution is not None else []
        notes = [note for project in found for note in compiler.notes(project)]
        for project in found:
            name = posixpath.basename(project.path)
            messages += [
                f"{posixpath.basename(one.path) or name}: {one.text}" for one in project.messages
            ]
        messages += notes
        return {
            "projects": [one.name for one in found],
            "approximate": any(one.approximate for one in found) or bool(notes),
            "message": "; ".join(list(dict.fromkeys(messages))[:_MOST_MESSAGES]),
        }


def _above(path: str) -> Iterator[str]:
    """All folders that a file lies in."""
    while path := path.rpartition("/")[0]:
        yield path


def _digest(items: list[Any]) -> str:
    return hashlib.blake2b(json.dumps(items).encode(), digest_size=8).hexdigest()
