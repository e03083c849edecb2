"""Language servers for C#: over the compiler, and over the project files alone.

What the client says becomes texts and projects; what is found in them answers its questions.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import FilepactError
from filepact_csharp import code_actions, formatting, sdk_projects
from filepact_csharp.compiler import Compiler
from filepact_csharp.diagnostics import WARNING, CompilerDiagnostic, TextPlaces, published
from filepact_csharp.files import SourceTree, document_path, folders_above
from filepact_csharp.roslyn import Libraries
from filepact_csharp.rpc import LanguageServer, RequestError
from filepact_csharp.severities import configs_above
from filepact_csharp.solution import read_solution
from filepact_csharp.symbols import SymbolSearch
from filepact_wire.uris import path_of, uri_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from filepact_csharp.formatting import SourceFormat
    from filepact_csharp.projects import Project, Solution
    from filepact_csharp.roslyn import Roslyn
    from filepact_csharp.rpc import RequestContext
    from filepact_csharp.sdk_projects import SdkProjects
    from filepact_csharp.symbols import SymbolEntry

__all__ = ["DEPENDENTS", "PROJECTS", "WATCHED", "CompilerServer", "ProjectServer"]

PROJECTS: Final = "filepact.projects"
"""The command that tells the projects of a file."""

DEPENDENTS: Final = "filepact.dependents"
"""The command that tells in which other files something is found anew, or no more, with a change."""

WATCHED: Final = (
    "**/*.cs",
    "**/*.{csproj,sln,slnx,props,targets,projitems}",
    "**/global.json",
    "**/obj/project.assets.json",
    "**/{.editorconfig,.globalconfig}",
    "**/*.ruleset",
)
_PROJECT_FILES: Final = (".csproj", ".sln", ".slnx", ".props", ".targets", ".projitems")
_MAX_PROJECT_FILE: Final = 4_000_000
_MILD: Final = frozenset({"MSB9008"})
"""What a build says of project files as a warning."""
_WARMED: Final = 10
_MOST_WARMED: Final = 2_000
_MOST_NOTES: Final = 8
_WRITTEN: Final = 2


class ProjectServer(LanguageServer):
    """Tells which files belong to which project; needs no compiler.

    Args:
        root: The folder to serve; empty for the one that the client names.
        solution: The solution, project or folder to read; empty for what lies in the root.
        newest: The latest version of .NET whose libraries are there; 0 if that does not matter.
    """

    name = "csharp-projects"

    def __init__(self, root: str, solution: str = "", newest: int = 0) -> None:
        super().__init__(root)
        self.newest = newest
        self._entry = solution
        self._solution: Solution | None = None
        self._supposed: SourceTree | None = None
        self._watches = False
        self._evaluation: SdkProjects | None = None
        self.requests["workspace/executeCommand"] = self._execute
        self.notifications |= {
            "initialized": self._initialized,
            "workspace/didChangeWatchedFiles": self._happened,
            "solution/open": self._open_solution,
            "project/open": self._open_projects,
        }

    def begin(self, able: Any) -> dict[str, Any]:
        """Look whether the client will tell what happens to files."""
        if not self.root.startswith("/"):
            raise RequestError("there is no folder to serve: rootUri is no file")
        watching = (able.get("workspace") or {}).get("didChangeWatchedFiles") or {}
        self._watches = bool(watching.get("dynamicRegistration"))
        return {"executeCommandProvider": {"commands": [PROJECTS]}}

    def _initialized(self, _params: Any) -> None:
        if self._watches and self._connection is not None:
            options = {"watchers": [{"globPattern": one} for one in WATCHED]}
            method = "workspace/didChangeWatchedFiles"
            registration = {"id": "files", "method": method, "registerOptions": options}
            self._connection.request(
                "client/registerCapability", {"registrations": [registration]}, self._registered
            )

    def _registered(self) -> None:
        """The client reports file events from here on; earlier changes are looked up."""
        self._solution = None

    def _open_solution(self, params: Any) -> None:
        self._enter(params["solution"])

    def _open_projects(self, params: Any) -> None:
        projects = params["projects"]
        # Several are what lies in the root; one alone is read with what it refers to.
        self._enter(projects[0] if len(projects) == 1 else uri_of(self.root))

    def _enter(self, uri: str) -> None:
        path = path_of(uri)
        if path is not None and path != self._entry:
            self._entry = path
            self._solution = None

    def _happened(self, params: Any) -> None:
        """Read all projects again, unless only sources have changed, which they name by patterns."""
        known = self._solution is not None and bool(self._solution.projects)
        if not known or not all(one["uri"].endswith(".cs") for one in params["changes"]):
            self._solution = None

    def _forget(self, path: str, kind: int) -> None:
        """Which files have a say in a project may have changed, or what a restore has brought."""
        imported = kind == _WRITTEN and path.lower().endswith(_PROJECT_FILES)
        if self._evaluation is not None and not imported and not path.endswith(".cs"):
            self._evaluation.forget()

    @property
    def _sources(self) -> SourceTree:
        return self._supposed or SourceTree(self.root, self.documents.texts)

    def _read(self) -> Solution:
        """All projects as they are now."""
        if self._solution is None:
            self._solution = self._read_from(self._sources)
        return self._solution

    def _read_from(self, tree: SourceTree, moved: Iterable[str] = ()) -> Solution:
        """All projects as some files say it, of which some come or go with what is looked at."""
        evaluate = None
        if self._evaluation is not None:
            self._evaluation.show(tree.changed(_PROJECT_FILES), moved)
            evaluate = self._evaluation.evaluate
        entry = self._entry or self.root
        return read_solution(entry, self.root, tree, self.newest, evaluate)

    def _notes(self, _project: Project) -> tuple[str, ...]:
        """Notes on how a project is compiled, as sentences."""
        return ()

    def _execute(self, params: Any, _context: RequestContext) -> Any:
        """The projects of a file, or all; see the distribution's README."""
        if params["command"] != PROJECTS:
            raise RequestError(f"{str(params['command'])[:100]} is no command here")
        (asked,) = params["arguments"]
        if "opened" in asked:
            self._enter(asked["opened"])
        solution, uri = self._read(), asked.get("uri")
        path = path_of(uri)
        if uri is None:
            found, approximate = solution.projects, solution.approximate
        else:
            found = () if path is None else solution.including(path)
            approximate = any(one.approximate for one in found)
        notes = [(one.path, note) for one in found for note in self._notes(one)]
        messages = dict.fromkeys(
            [
                *((one.path, one.line, one.text) for one in solution.messages),
                *((one.path, one.line, one.text) for each in found for one in each.messages),
                *((place, 0, note) for place, note in notes),
            ]
        )
        return {
            "projects": [one.name for one in found],
            "approximate": approximate or bool(notes),
            "messages": [
                {"path": place, "line": line, "text": text} for place, line, text in messages
            ],
        }


class CompilerServer(ProjectServer):
    """Tells what the compiler finds wrong.

    Args:
        roslyn: Starts the compiler; called once.
        root: The folder to serve; empty for the one that the client names.
        solution: The solution, project or folder to read; empty for what lies in the root.
    """

    name = "filepact-csharp"

    def __init__(self, roslyn: Callable[[], Roslyn], root: str, solution: str) -> None:
        super().__init__(root, solution)
        self._start = roslyn
        self._version = ""
        self._compiler: Compiler | None = None
        self._roslyn: Roslyn | None = None
        self._form: SourceFormat | None = None
        self._loaded: Solution | None = None
        self._inputs: frozenset[str] = frozenset()
        self._behind: dict[str, None] = {}
        self._answers: dict[str, tuple[int, str, list[Any]]] = {}
        self._told = False
        self._cold: list[str] | None = None
        self._exact = False
        self.requests |= {
            "textDocument/diagnostic": self._diagnose,
            "workspace/diagnostic": self._survey,
            "textDocument/references": self._references,
            "textDocument/prepareRename": self._name,
            "textDocument/rename": self._rename,
            "textDocument/documentSymbol": self._declarations,
            "textDocument/formatting": self._format,
            "textDocument/codeAction": self._actions,
        }
        self.notifications |= {
            "textDocument/didOpen": self._opened,
            "textDocument/didChange": self._changed,
            "textDocument/didClose": self._closed,
        }

    @property
    def version(self) -> str:
        """Of the compiler."""
        return self._version

    def begin(self, able: Any) -> dict[str, Any]:
        """Start the compiler."""
        said = super().begin(able)
        roslyn = self._start()
        self._version = roslyn.version
        self.newest = int(roslyn.system.Environment.Version.Major)
        self._compiler = Compiler(roslyn, Libraries(roslyn), self._text)
        self._roslyn = roslyn
        self._evaluation = sdk_projects.begin(roslyn, self.root)
        self._form = formatting.begin(roslyn)
        said["executeCommandProvider"]["commands"].append(DEPENDENTS)
        return {
            **said,
            "textDocumentSync": {"openClose": True, "change": 2, "save": False},
            "diagnosticProvider": {"interFileDependencies": True, "workspaceDiagnostics": True},
            "referencesProvider": True,
            "renameProvider": {"prepareProvider": True},
            "documentSymbolProvider": True,
            "codeActionProvider": {"codeActionKinds": ["quickfix", "source.organizeImports"]},
            "documentFormattingProvider": self._form is not None,
        }

    def _registered(self) -> None:
        self._told = True
        if self._solution is not None and self._compiler is not None:
            super()._registered()
            self._behind.update(dict.fromkeys(self._compiler.files))

    def warm(self, context: RequestContext) -> bool:
        """Check a file of each project, before anybody asks."""
        if not self._told:
            return False  # what is read now might change without being told
        compiler = self._present()
        if self._cold is None:
            # Whoever asks what a change concerns is answered from what was found before it.
            rest = compiler.files[:_MOST_WARMED] if self._exact else ()
            self._cold = [*reversed(rest), *compiler.samples()[:_WARMED]]
        if not self._cold:
            return False
        # The most of it is done once for all files, which are not of interest here.
        compiler.check(self._cold.pop(), context.stops)
        return bool(self._cold)

    # -- texts ----------------------------------------------------------------------------------

    def _opened(self, params: Any) -> None:
        self._touch(self.documents.open(params))

    def _changed(self, params: Any) -> None:
        self._touch(self.documents.change(params))

    def _closed(self, params: Any) -> None:
        path = self.documents.close(params)
        self._touch(path)
        if not SourceTree(self.root, {}).has(path):
            self._solution = None

    def _touch(self, path: str) -> None:
        """A text may have changed; it is looked at before the next answer."""
        self._behind[path] = None
        solution, compiler = self._solution, self._compiler
        if (
            path in self._inputs
            or path.lower().endswith(_PROJECT_FILES)
            or (
                solution is not None
                and compiler is not None
                and not compiler.projects(path)
                and any(one.includes(path) for one in solution.projects)
            )
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
                self._forget(path, kind)
                gone.add(path)
        if gone and self._compiler is not None:
            for path in self._compiler.files:
                if not gone.isdisjoint(folders_above(path)):
                    self._behind[path] = None

    def _text(self, path: str) -> str | None:
        return self._sources.source(path)

    def _present(self) -> Compiler:
        """The compiler, with all texts and projects as they are now."""
        compiler = self._compiler
        if compiler is None:
            raise RequestError("the compiler was not started")
        if self._loaded is not self._read():
            solution = self._read()
            compiler.load(solution.projects)
            self._loaded, self._inputs = solution, frozenset(solution.inputs)
        for path in list(self._behind):
            compiler.put(path)
            del self._behind[path]
        return compiler

    def _known(self) -> Compiler:
        """The same, if all texts are known; each may count for every file."""
        lost = self.documents.first_lost
        if lost is not None:
            name = posixpath.basename(lost)[:80]
            raise RequestError(f"the text of {name} is not known any more; send it whole")
        return self._present()

    # -- questions ------------------------------------------------------------------------------

    def _diagnose(self, params: Any, context: RequestContext) -> Any:
        path = document_path(params["textDocument"])
        compiler = self._known()
        state, number, items = self._answers.get(path, (-1, "", []))
        if state != compiler.state:
            if path.lower().endswith(_PROJECT_FILES):
                text, found = self._project_file(compiler, path, context)
            else:
                text, found = compiler.shown(path), compiler.check(path, context.stops)
            number, items = self._keep(compiler, path, text, found)
        caveats = self._caveats(compiler, path)
        number = f"{number}-{_digest([caveats])}"
        if params.get("previousResultId") == number:
            return {"kind": "unchanged", "resultId": number}
        return {"kind": "full", "resultId": number, "items": items, "filepact": caveats}

    def _project_file(
        self, compiler: Compiler, path: str, context: RequestContext
    ) -> tuple[str, set[CompilerDiagnostic]]:
        """The text of a project file, and what is wrong with it or with what it sets."""
        try:
            text = self._sources.text(path, _MAX_PROJECT_FILE) or ""
        except FilepactError:
            text = ""
        places, found = TextPlaces(text, self.documents.unit), set[CompilerDiagnostic]()
        lines = text.split("\n")
        for one in self._read().all_messages():
            if one.path == path and one.code:
                line = min(max(one.line, 1), len(lines)) - 1
                start, end = places.offset(line, 0), places.offset(line, len(lines[line]) * 2)
                severity = WARNING if one.code in _MILD else 1
                found.add(CompilerDiagnostic(start, end, severity, one.code, one.text))
        return text, found | compiler.check_project(path, context.stops)

    def _caveats(self, compiler: Compiler, path: str) -> dict[str, Any]:
        """How far the answer about a file goes; see the distribution's README."""
        caveats = compiler.caveats(path)
        notes = list(caveats.notes)
        solution = self._read()
        if path in solution.inputs:
            said = [one for one in solution.all_messages() if one.path == path and not one.code]
            caveats = replace(caveats, known=True, approximate=bool(said))
            notes += [one.text for one in said]
        elif path.lower().endswith(_PROJECT_FILES) and not path.lower().endswith(".csproj"):
            caveats = replace(caveats, known=True)  # nothing is built by it
        approximate = caveats.approximate or bool(solution.messages)
        if not caveats.known:
            notes.append(f"no project includes {posixpath.basename(path)[:80]}")
            notes += [
                f"{one.name[:80]}: {each.text}"
                for one in solution.projects
                if one.unread
                for each in one.messages[:1]
            ]
        notes += [f"{posixpath.basename(one.path)[:80]}: {one.text}" for one in solution.messages]
        return {
            "known": caveats.known,
            "approximate": approximate or not caveats.known,
            "notes": list(dict.fromkeys(notes))[:_MOST_NOTES],
        }

    def _execute(self, params: Any, context: RequestContext) -> Any:
        if params["command"] != DEPENDENTS:
            return super()._execute(params, context)
        (asked,) = params["arguments"]
        changes = {document_path(one): one for one in asked["changes"]}
        files = self._dependents(changes, context.stops)
        return {"files": [uri_of(path) for path in sorted(files - changes.keys())]}

    def _dependents(
        self,
        changes: dict[str, Any],
        stops: Callable[[Callable[[], None] | None], None],
    ) -> set[str]:
        """The files in which something else is found after some changes than before."""
        compiler = self._known()
        if not self._exact:
            self._exact, self._cold = True, None
        with self._supposing(compiler, changes, "after") as solution:
            surfaces, told = compiler.surfaces(), solution.all_messages()
        with self._supposing(compiler, changes, "before") as solution:
            now = compiler.surfaces()
            other = [one for one in now if now[one] != surfaces.get(one)]
            seen = {path: compiler.check(path, stops) for path in compiler.sources_of(other)}
            told_of = {one.path for one in {*told} ^ {*solution.all_messages()} if one.code}
        other = [one for one in surfaces if surfaces[one] != now.get(one)]
        if not other:
            return told_of
        with self._supposing(compiler, changes, "after"):
            found = {path: compiler.check(path, stops) for path in compiler.sources_of(other)}
        return told_of | {path for path, some in found.items() if some != seen.get(path, set())}

    @contextmanager
    def _supposing(
        self, compiler: Compiler, changes: dict[str, Any], side: str
    ) -> Iterator[Solution]:
        """Everything as it is on one side of some changes; the solution as it is then."""
        texts = {path: one[side] for path, one in changes.items() if one[side] is not None}
        sources = {path: text for path, text in texts.items() if path.endswith(".cs")}
        stays = all(None not in (one["before"], one["after"]) for one in changes.values())
        if stays and sources.keys() == changes.keys():
            with compiler.supposing(sources):
                yield self._read()
            return
        shown = {path: text for path, text in self.documents.texts.items() if path not in changes}
        self._supposed = SourceTree(self.root, shown | texts, changes.keys() - texts.keys())
        try:
            moved = [path for path, one in changes.items() if None in (one["before"], one["after"])]
            solution = self._read_from(self._supposed, moved)
            with compiler.supposing(sources, solution.projects):
                yield solution
        finally:
            self._supposed = None

    def _survey(self, params: Any, context: RequestContext) -> Any:
        compiler = self._known()
        before = {one["uri"]: one["value"] for one in params.get("previousResultIds") or []}
        found: dict[str, set[CompilerDiagnostic]] = {}
        told: dict[str, Any] = {}
        for part in compiler.check_all(context.stops):
            items = []
            for path, more in part.items():
                found.setdefault(path, set()).update(more)
                item = self._surveyed(compiler, path, found[path], before)
                told[item["uri"]] = item
                items.append(item)
            if context.send is not None and items:
                context.send({"items": items})
        gone = [self._surveyed(compiler, path, set(), before) for path in self._fixed(before, told)]
        return {"items": gone if context.send is not None else [*told.values(), *gone]}

    def _fixed(self, before: Iterable[str], told: Iterable[str]) -> Iterator[str]:
        """Files that had something wrong and have not any more."""
        for uri in set(before) - set(told):
            path = path_of(uri)
            if path is not None:
                yield path

    def _surveyed(
        self, compiler: Compiler, path: str, found: set[CompilerDiagnostic], before: dict[str, Any]
    ) -> dict[str, Any]:
        uri = uri_of(path)
        items = published(compiler.shown(path), found, self.documents.unit)
        number = _digest(items)
        told = {"uri": uri, "version": None, "resultId": number}
        if before.get(uri) == number:
            return {**told, "kind": "unchanged"}
        return {**told, "kind": "full", "items": items}

    def _keep(
        self, compiler: Compiler, path: str, text: str, found: set[CompilerDiagnostic]
    ) -> tuple[str, list[Any]]:
        items = published(text, found, self.documents.unit)
        number = _digest(items)
        if len(self._answers) > 1_000:
            self._answers.clear()
        self._answers[path] = (compiler.state, number, items)
        return number, items

    def _notes(self, project: Project) -> tuple[str, ...]:
        return self._present().notes(project)

    # -- names ------------------------------------------------------------------------------

    def _finder(self, params: Any, context: RequestContext) -> tuple[SymbolSearch, str, int]:
        """What finds names, and the place that a client names."""
        path, compiler = document_path(params["textDocument"]), self._known()
        if self._roslyn is None or not compiler.projects(path):
            raise RequestError(f"no project includes {posixpath.basename(path)[:80]}")
        finder = SymbolSearch(self._roslyn, compiler, context.stops, lambda: context.cancelled)
        place = params.get("position") or {"line": 0, "character": 0}
        return finder, path, self._places(path).offset(place["line"], place["character"])

    def _places(self, path: str) -> TextPlaces:
        return TextPlaces(self._present().shown(path), self.documents.unit)

    def _name(self, params: Any, context: RequestContext) -> Any:
        finder, path, offset = self._finder(params, context)
        found = finder.name_at(path, offset)
        return found and self._places(path).range(found.start, found.end)

    def _references(self, params: Any, context: RequestContext) -> Any:
        finder, path, offset = self._finder(params, context)
        by_file: dict[str, list[Any]] = {}
        for one in finder.uses(path, offset):
            by_file.setdefault(one.path, []).append(one)
        found = []
        for file, some in by_file.items():
            places = self._places(file)
            found += [
                {"uri": uri_of(file), "range": places.range(one.start, one.end)} for one in some
            ]
        return found

    def _rename(self, params: Any, context: RequestContext) -> Any:
        new = params["newName"]
        if not isinstance(new, str):
            raise TypeError("a name is a text")
        finder, path, offset = self._finder(params, context)
        changes = {}
        for file, edits in finder.rename(path, offset, new).items():
            places = self._places(file)
            changes[uri_of(file)] = places.edits(edits)
        return {"changes": changes} if changes else None

    def _format(self, params: Any, _context: RequestContext) -> Any:
        path, compiler = document_path(params["textDocument"]), self._known()
        text, options = self._text(path), params["options"]
        if self._form is None or text is None or not path.lower().endswith(".cs"):
            raise RequestError(f"{posixpath.basename(path)[:80]} is not formatted here")
        indent = " " * min(int(options["tabSize"]), 16) if options["insertSpaces"] else "\t"
        places = TextPlaces(text, self.documents.unit)
        configs = configs_above(path, self.root, self._sources)
        found = self._form.edits(path, text, configs, compiler.parsing(path), indent)
        return places.edits(found)

    def _actions(self, params: Any, _context: RequestContext) -> Any:
        path, compiler = document_path(params["textDocument"]), self._known()
        places, ends = self._places(path), [params["range"][one] for one in ("start", "end")]
        start, end = (places.offset(one["line"], one["character"]) for one in ends)
        uri, found = uri_of(path), code_actions.offered(compiler, path, start, end)
        return [
            {"title": title, "kind": kind, "edit": {"changes": {uri: places.edits(edits)}}}
            for title, kind, edits in found
        ]

    def _declarations(self, params: Any, context: RequestContext) -> Any:
        finder, path, _ = self._finder(params, context)
        places = self._places(path)

        def told(one: SymbolEntry) -> dict[str, Any]:
            return {
                "name": one.name,
                "kind": one.kind,
                "range": places.range(one.start, one.end),
                "selectionRange": places.range(one.name_start, one.name_end),
                "children": [told(each) for each in one.inner],
            }

        return [told(one) for one in finder.declarations(path)]


def _digest(items: Any) -> str:
    return hashlib.blake2b(json.dumps(items).encode(), digest_size=8).hexdigest()
