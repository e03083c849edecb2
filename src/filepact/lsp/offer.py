"""What we tell a server about ourselves when the conversation begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from filepact.wire.uris import uri_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["initialize_params"]


def initialize_params(
    root: str, process: int, options: Mapping[str, Any] | None, *, pull: bool
) -> dict[str, Any]:
    """The parameters of ``initialize``.

    Args:
        root: The folder to serve, absolute.
        process: Our process, whose end many servers take for their own.
        options: The server's initialisation options.
        pull: Whether to say that we ask for diagnostics; some servers publish only if we do not.
    """
    name = root.rpartition("/")[2] or "/"
    params: dict[str, Any] = {
        "processId": process,
        "clientInfo": {"name": "filepact"},
        "locale": "en",
        "rootPath": root,
        "rootUri": uri_of(root),
        "workspaceFolders": [{"uri": uri_of(root), "name": name}],
        "capabilities": _capabilities(pull=pull),
    }
    if options is not None:
        params["initializationOptions"] = dict(options)
    return params


def _capabilities(*, pull: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "synchronization": {"dynamicRegistration": True, "didSave": True},
        "publishDiagnostics": {
            "relatedInformation": True,
            "versionSupport": True,
            "codeDescriptionSupport": True,
            "dataSupport": False,
            "tagSupport": {"valueSet": [1, 2]},
        },
        # A request that every server knows serves as a question whether it has come so far.
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
    }
    workspace: dict[str, Any] = {
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True},
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
    }
