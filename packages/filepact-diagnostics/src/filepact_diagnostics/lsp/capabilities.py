"""Capabilities: what the client offers, what a server can do, and the answers to its requests.

A server may register capabilities at any time after its start.  Every request of its gets an answer:
servers give up loading when one is refused as unknown, and some report nothing before their settings
have arrived.  No request changes a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from filepact.values import dataclass
from filepact_diagnostics.lsp.documents import FileWatchers, SyncKind
from filepact_diagnostics.lsp.failures import RequestFailedError, ServerError
from filepact_wire.messages import METHOD_NOT_FOUND
from filepact_wire.uris import uri_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.text.lines import Unit

__all__ = ["CapabilityRequest", "ServerCapabilities", "initialize_params"]

NO_EDITS: Final = "files are changed through filepact's own tools, not by a language server"

_MOST_REGISTRATIONS: Final = 2_000
_ACTIONS: Final = ("", "quickfix", "refactor", "source", "source.fixAll", "source.organizeImports")
_IGNORED: Final = frozenset(
    {
        # That something long begins and ends is said by notifications.
        "window/workDoneProgress/create",
        "window/showMessageRequest",
        # Diagnostics are asked for anew with every question; of the rest nothing is held.
        "workspace/diagnostic/refresh",
        "workspace/codeLens/refresh",
        "workspace/foldingRange/refresh",
        "workspace/inlayHint/refresh",
        "workspace/inlineValue/refresh",
        "workspace/semanticTokens/refresh",
        "workspace/textDocumentContent/refresh",
    }
)


def initialize_params(
    root: str, process: int | None, options: Mapping[str, Any] | None, *, pull: bool
) -> dict[str, Any]:
    """The parameters of ``initialize``.

    Args:
        root: The folder to serve, absolute.
        process: This process; many servers end when it does.  None for one that cannot see it, and
            would take it for ended.
        options: The server's initialisation options.
        pull: Whether to offer to pull diagnostics; some servers publish only to clients that do not.
    """
    params: dict[str, Any] = {
        "processId": process,
        "clientInfo": {"name": "filepact"},
        "locale": "en",
        "rootPath": root,
        "rootUri": uri_of(root),
        "workspaceFolders": [_folder(root)],
        "capabilities": _offered(pull=pull),
    }
    if options is not None:
        params["initializationOptions"] = dict(options)
    return params


def _folder(root: str) -> dict[str, str]:
    return {"uri": uri_of(root), "name": root.rpartition("/")[2] or "/"}


def _offered(*, pull: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "synchronization": {"dynamicRegistration": True, "didSave": True},
        "publishDiagnostics": {
            "relatedInformation": True,
            "versionSupport": True,
            "codeDescriptionSupport": True,
            "dataSupport": True,  # by it some servers know what they can mend
            "tagSupport": {"valueSet": [1, 2]},
        },
        # A request that every server answers: its answer shows how much the server has read.
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "references": {},
        "rename": {"prepareSupport": True},
        "formatting": {},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": list(_ACTIONS)}},
            "dataSupport": True,
            "disabledSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
    }
    workspace: dict[str, Any] = {
        "applyEdit": True,
        # Such edits are read and shown, and done by nobody but the workspace, all or none.
        "workspaceEdit": {
            "documentChanges": True,
            "resourceOperations": ["create", "rename", "delete"],
            "failureHandling": "transactional",
        },
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
        "workspaceFolders": True,
        "fileOperations": {"didCreate": True, "didRename": True, "didDelete": True},
    }
    if pull:
        document["diagnostic"] = {"dynamicRegistration": True, "relatedDocumentSupport": True}
        workspace["diagnostics"] = {"refreshSupport": True}
    return {
        "general": {"positionEncodings": ["utf-8", "utf-16"]},
        "textDocument": document,
        "workspace": workspace,
        "window": {
            "workDoneProgress": True,
            "showMessage": {"messageActionItem": {}},
            "showDocument": {"support": True},
        },
        "experimental": {"serverStatusNotification": True},
    }


@dataclass(frozen=True, slots=True)
class CapabilityRequest:
    """A capability that a server registered after its start.

    Attributes:
        id: The server's name for it.
        method: The method that it is about.
        options: Its options.
    """

    id: str
    method: str
    options: Mapping[str, Any]


class ServerCapabilities:
    """The capabilities of one server, and the answers to its requests.

    Args:
        root: The folder that it serves, absolute.
        settings: Answers requests for its configuration, nested by section.

    Attributes:
        static: What it said of itself when it was initialised.
        watchers: The patterns of the files that it wants to hear of.
    """

    def __init__(self, root: str, settings: Mapping[str, Any]) -> None:
        self._root = root
        self._settings = settings
        self._registered: dict[str, CapabilityRequest] = {}
        self.static: Mapping[str, Any] = {}
        self.watchers = FileWatchers(root)

    def begin(self, answer: Any) -> str:
        """Take the answer to ``initialize``; the server's version, as it says itself.

        Raises:
            ServerError: It is none.
        """
        said = answer.get("capabilities") if isinstance(answer, dict) else None
        if not isinstance(said, dict):
            raise ServerError("the server's first answer says nothing about what it can do")
        self.static = said
        about = answer.get("serverInfo")
        version = str(about.get("version", "")) if isinstance(about, dict) else ""
        # One server tells all that it was built from instead.
        return "" if version.startswith("{") else version[:100]

    # -- what it can do -------------------------------------------------------------------

    @property
    def has_symbols(self) -> bool:
        """Whether the server can be asked for the symbols of a document."""
        return bool(self.static.get("documentSymbolProvider"))

    @property
    def unit(self) -> Unit:
        """The position encoding: what a column counts."""
        return "utf-8" if self.static.get("positionEncoding") == "utf-8" else "utf-16"

    @property
    def sync(self) -> SyncKind:
        """The notifications about open documents that the server wants."""
        said = self.static.get("textDocumentSync")
        dynamic_save = self.registered("textDocument/didSave")
        with_text = any(one.options.get("includeText") for one in dynamic_save)
        if isinstance(said, int) and not isinstance(said, bool):
            return SyncKind(bool(said), said, bool(said), with_text)
        if not isinstance(said, dict):
            changes = self.registered("textDocument/didChange")
            kinds = [one.options.get("syncKind", 1) for one in changes]
            return SyncKind(True, max(kinds, default=1), bool(dynamic_save), with_text)
        save, change = said.get("save"), said.get("change", 0)
        if isinstance(save, dict):
            with_text = with_text or bool(save.get("includeText"))
        return SyncKind(
            bool(said.get("openClose", False)),
            change if change in (0, 1, 2) else 1,
            bool(save) or isinstance(save, dict) or bool(dynamic_save),
            with_text,
        )

    @property
    def pull_identifiers(self) -> tuple[str | None, ...]:
        """The identifiers under which diagnostics can be pulled; none if they cannot."""
        found: dict[str | None, None] = {}
        static = self.static.get("diagnosticProvider")
        if isinstance(static, dict):
            found[static.get("identifier")] = None
        for one in self.registered("textDocument/diagnostic"):
            found[one.options.get("identifier")] = None
        return tuple(found)

    @property
    def file_operations(self) -> Mapping[str, Any]:
        """The filters of created, deleted and renamed files that the server asks for."""
        workspace = self.static.get("workspace")
        operations = workspace.get("fileOperations") if isinstance(workspace, dict) else None
        return operations if isinstance(operations, dict) else {}

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that it names; none if it names them otherwise than it should."""
        said = self.static.get("executeCommandProvider")
        named = said.get("commands") if isinstance(said, dict) else None
        return tuple(map(str, named)) if isinstance(named, list) else ()

    def registered(self, method: str) -> tuple[CapabilityRequest, ...]:
        """All registrations of a method."""
        return tuple(one for one in self._registered.values() if one.method == method)

    # -- what it requests -----------------------------------------------------------------

    def answer(self, method: str, params: Any) -> Any:
        """The result of one request.

        Raises:
            RequestFailedError: No client knows such a request.
        """
        match method:
            case "workspace/configuration":
                return [self._configuration(item) for item in params["items"]]
            case "client/registerCapability":
                for one in params["registrations"]:
                    self._register(one)
            case "client/unregisterCapability":
                # The misspelling is the protocol's.
                for one in params.get("unregisterations", params.get("unregistrations", [])):
                    self._registered.pop(one["id"], None)
                    self.watchers.unregister(one["id"])
            case "workspace/applyEdit":
                return {"applied": False, "failureReason": NO_EDITS}
            case "workspace/workspaceFolders":
                return [_folder(self._root)]
            case "window/showDocument":
                return {"success": False}
            case _ if method in _IGNORED:
                pass
            case _:
                raise RequestFailedError(METHOD_NOT_FOUND, f"{method[:100]} is not known here")
        return None

    def _register(self, one: Mapping[str, Any]) -> None:
        number, method, options = one["id"], one["method"], one.get("registerOptions")
        if not isinstance(number, str) or not isinstance(method, str):
            raise TypeError("a registration has an id and a method")
        if len(self._registered) >= _MOST_REGISTRATIONS:
            raise ValueError("too many registrations")
        options = options if isinstance(options, dict) else {}
        self._registered[number] = CapabilityRequest(number, method, options)
        if method == "workspace/didChangeWatchedFiles":
            self.watchers.register(number, options)

    def _configuration(self, item: Mapping[str, Any]) -> Any:
        value: Any = self._settings
        for part in filter(None, (item.get("section") or "").split(".")):
            value = value.get(part) if isinstance(value, dict) else None
        return value
